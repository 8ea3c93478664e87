/* SPDX-License-Identifier: MIT */
/*
 * Which calls to record when only some paths are of interest: those that touch
 * one, by a name or by a descriptor, and those without which the others cannot
 * be understood.
 *
 * A name is tried as the call gives it, made absolute and cleaned of "." and
 * "..", and as the kernel resolves it; a descriptor by the name that its file
 * has now, or "pipe:[N]" and the like. All of them as the recorder sees them:
 * when the program has changed its root, with the new root in front.
 */
#ifndef RECORD_PATHS_H
#define RECORD_PATHS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "record/capture.h"

struct path_choice {
	bool (*wants)(void *of, const char *path); /* NULL: every call is recorded */
	void *of;
	bool only; /* leave out what touches no path at all, too */
};

/*
 * At the entry of a call: is it to be recorded? Kept in any case: the beginning
 * and end of processes, cwd, root and umask, waits (order follows from them),
 * what may be about any descriptor (aio, io_uring, close_range), sync and msync.
 */
bool paths_want_call(const struct path_choice *choice, struct capture *c, pid_t tid,
		     const struct row *row, const uint64_t regs[6]);
/* Is the path wanted that a descriptor of the thread leads to now? False: it leads nowhere. */
bool paths_look_up(const struct path_choice *choice, pid_t tid, int fd, bool *ret);

#endif
