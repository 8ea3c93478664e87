/* SPDX-License-Identifier: MIT */
/*
 * What asynchronous calls are about, beyond their arguments.
 *
 * Of the kernel's first kind of it: which request an io_event completes, and
 * the bytes that it has read. Of io_uring: the requests that io_uring_enter
 * takes from the submission ring, and the completions that became visible in
 * the completion ring up to the end of the call, with what they read.
 *
 * Best effort. Not seen are: completions that the program takes from a ring
 * before the ring is overwritten and no call follows; requests that a kernel
 * thread took (SQPOLL) and the program overwrote between two calls of
 * io_uring_enter, which are counted; bytes in buffers that the kernel picks (IOSQE_BUFFER_SELECT);
 * rings of another process (inherited or passed on) or of before the recording;
 * rings with entries of mixed size. A completion is matched to the oldest
 * request in flight with its user_data. Bytes are read when a completion is
 * seen: a program that has seen it earlier may have changed them.
 *
 * Memory is bounded by REQUESTS_MAX requests and the limits in aio_uring.c.
 * Owned by the recorder's thread.
 */
#ifndef RECORD_AIO_H
#define RECORD_AIO_H

#include "record/capture.h"

struct aio;

struct aio_call {
	pid_t pid, tid;
	const struct row *row;
	const uint64_t *regs; /* of the entry */
	const struct outcome *outcome; /* NULL at the entry */
	struct value *args;
};

struct aio *aio_new(void);
void aio_free(struct aio *x);

/* Behind capture_entry(), before tree_touch(). -errno: the feed failed. */
MUST_CHECK int aio_entry(struct aio *x, struct capture *c, const struct aio_call *call);
/* Behind capture_exit(). */
MUST_CHECK int aio_exit(struct aio *x, struct capture *c, const struct aio_call *call);
/*
 * Calls from which it is learnt where rings are. They must go through aio_exit()
 * also when they are not recorded, if io_uring_enter is; of these only outcome
 * and registers are looked at, and memory.
 */
bool aio_follows(const struct row *row);
/*
 * Rings that the program takes for ones whose submission queue a kernel thread
 * polls, and that the recorder has set up without it (ptrace/polled.h).
 */
struct aio_polled {
	pid_t pid;
	int fd; /* -1: closed */
	uint64_t ip; /* behind the instruction that made it */
	uint64_t head_at, tail_at, flags_at; /* of its submission queue; 0: not mapped yet */
	bool is_flagged; /* the program is told to wake the thread */
	bool has_waited; /* at the last look something was pending, from `head` on */
	uint32_t head;
};

void aio_hide_polling(struct aio *x, pid_t pid, int fd, uint64_t ip);
/* Valid until the next call; NULL: none, or no more. */
struct aio_polled *aio_polled_of(struct aio *x, const struct aio_call *call);
struct aio_polled *aio_polled_at(struct aio *x, size_t i);
/* Requests of rings that a kernel thread does poll, which it took before we saw them. */
uint64_t aio_nr_unseen(const struct aio *x);
/*
 * Requests of rings that were there before the recording, or that came from a
 * process that has set them up: where they are in memory nobody has seen.
 */
uint64_t aio_nr_strange(const struct aio *x);
/* Whether a process has ended, with such a ring, without a last look at it: there may be more of them. */
bool aio_may_be_more(const struct aio *x);

/* The process has ended, or runs another program now. */
void aio_forget(struct aio *x, pid_t pid);

#endif
