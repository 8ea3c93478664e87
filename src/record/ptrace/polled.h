/* SPDX-License-Identifier: MIT */
/*
 * Rings of io_uring whose submission queue a kernel thread would poll
 * (IORING_SETUP_SQPOLL). Their requests are made without a call, so nobody could
 * see them. The recorder sets such a ring up without the kernel's thread, and the
 * program takes it for one that has gone to sleep:
 *
 *   io_uring_setup  is made without the flag, which the program gets back;
 *   the ring        says IORING_SQ_NEED_WAKEUP, so that the program calls
 *   io_uring_enter  to wake the thread: that call submits all that is pending,
 *                   and returns what it would have returned.
 *
 * A program that never looks at the flag keeps polling for completions. So the
 * recorder looks at such rings, and has a running thread of the process make the
 * io_uring_enter. A ring for which all that cannot be done is left as it is, and
 * the ledger has the number of requests that were not seen (aio_nr_unseen()).
 */
#ifndef RECORD_PTRACE_POLLED_H
#define RECORD_PTRACE_POLLED_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "record/ptrace/clones.h"
#include "record/ptrace/registers.h"

struct tracer;
struct tracee;

/* Of a thread. Zeroed at first. */
struct polled {
	struct hidden_flag hidden; /* of io_uring_setup */
	bool is_enter; /* the call submits more than the program said */
	uint64_t to_submit; /* what that was */
	int wanted_fd; /* 1 + the ring that it shall submit to, when it has stopped; 0: none */
	bool is_working; /* it makes that call for us */
	struct kept_registers kept; /* then: what it was before */
};

/* At the entry of a call. setup: after its arguments were read; enter: before its requests are. */
void polled_enter_setup(const struct tracer *tr, struct tracee *t);
void polled_enter_submit(struct tracer *tr, struct tracee *t);
/* At the end of a call, before anything else looks at it, and when the thread is let go for good. */
void polled_put_back(struct tracee *t);
/* After the end of a call was noted. ip: behind its instruction. */
void polled_after_call(struct tracer *tr, struct tracee *t, bool was_hidden, int64_t ret,
		       uint64_t ip);
/* Last of all: the program sees what it should. */
void polled_leave(struct tracee *t, int64_t ret);
/* Likewise of a thread that is stopped anywhere, and let go for good. */
void polled_leave_alone(struct tracee *t);

/*
 * Whether the program could come to wait for ever without us. Whom we have not
 * started we leave all the same.
 */
bool polled_needs_us(const struct tracer *tr, const struct tracee *t);

/* Looks whether something waits in a ring that nobody submits. */
void polled_watch(struct tracer *tr);
/* The thread has stopped where we wanted it to. */
void polled_begin_work(struct tracer *tr, struct tracee *t);

#endif
