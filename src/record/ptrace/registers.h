/* SPDX-License-Identifier: MIT */
/* The registers of a stopped thread that hold its call. */
#ifndef RECORD_PTRACE_REGISTERS_H
#define RECORD_PTRACE_REGISTERS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/user.h>

#include "base/attrs.h"

/* The cs register of a thread whose code has 64 bits. */
#define REGISTERS_CODE_64 0x33

/* The first argument, as the program has passed it. compat: through a 32-bit interface. */
MUST_CHECK int registers_set_first(pid_t tid, bool compat, uint64_t value);
MUST_CHECK int registers_set_second(pid_t tid, bool compat, uint64_t value);
/* At the entry of a call: it is not made, and fails with this error. */
MUST_CHECK int registers_skip_call(pid_t tid, int err);
/*
 * At the beginning of a signal handler: will the call that the signal broke off
 * return EINTR? Else it is made again. -EOPNOTSUPP when that cannot be seen here.
 */
MUST_CHECK int registers_frame_is_eintr(pid_t tid, bool compat, bool *ret);

struct broken_call {
	uint64_t nr, args[6];
};
/* The call from which the thread comes back with EINTR; -ENOENT: none, as far as can be seen here. */
MUST_CHECK int registers_broken_call(pid_t tid, struct broken_call *ret);
/* It makes that again instead; or returns this; or, before it has begun to, returns EINTR after all. */
MUST_CHECK int registers_make_again(pid_t tid);
MUST_CHECK int registers_set_result(pid_t tid, int64_t result);
MUST_CHECK int registers_end_again(pid_t tid);

/* Whether the thread, which is stopped, runs code in which a call can be made for us. */
bool registers_can_inject(pid_t tid);

/* What a thread was before it made a call for us. */
struct kept_registers {
	struct user_regs_struct regs;
	uint64_t mask; /* of signals */
};
/*
 * The thread makes this call when it goes on, with one argument and others of 0, at
 * the instruction before ip, and takes no signals. It is outside of calls, or at the
 * end of one. -ENOENT: that cannot be done; it is as it was.
 */
MUST_CHECK int registers_inject(pid_t tid, uint64_t ip, long nr, uint64_t arg,
				struct kept_registers *ret);
/* At the end of that call. Fails only when the thread is gone. */
void registers_put_back(pid_t tid, const struct kept_registers *kept);

#endif
