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
 * before the ring is overwritten and no call follows; with SQPOLL requests that
 * the kernel's thread took and the program overwrote between two calls of
 * io_uring_enter; bytes in buffers that the kernel picks (IOSQE_BUFFER_SELECT);
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
/* The process has ended, or runs another program now. */
void aio_forget(struct aio *x, pid_t pid);

#endif
