/* SPDX-License-Identifier: MIT */
/*
 * Descriptors that were open before the trace began: the calls do not tell what they
 * are, but -y does. When such a one is used for the first time, found_fd says what a
 * recorder would have said at the beginning.
 */
#ifndef IMPORT_STRACE_FDS_H
#define IMPORT_STRACE_FDS_H

#include "import/strace_call.h"
#include "import/strace_threads.h"

/* Before the event of a call is put: what its arguments use. `arena` holds what the events need. */
MUST_CHECK int strace_fds_find(struct strace_threads *ts, struct strace_thread *t,
			       const struct strace_call *c, struct arena *arena, struct err *err);
/* What the call made is known. */
void strace_fds_made(struct strace_process *p, const struct event *ev);

#endif
