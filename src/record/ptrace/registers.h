/* SPDX-License-Identifier: MIT */
/* The registers of a stopped thread that hold its call. */
#ifndef RECORD_PTRACE_REGISTERS_H
#define RECORD_PTRACE_REGISTERS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/attrs.h"

/* The cs register of a thread whose code has 64 bits. */
#define REGISTERS_CODE_64 0x33

/* The first argument, as the program has passed it. compat: through a 32-bit interface. */
MUST_CHECK int registers_set_first(pid_t tid, bool compat, uint64_t value);
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

#endif
