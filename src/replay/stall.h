/* SPDX-License-Identifier: MIT */
/*
 * Whether a run can still move, as its watcher sees it from outside. A run stands
 * still while no action ends and nothing can make one end: no lane waits for its
 * time, no thread runs or waits for a device, and whoever is in a call waits there
 * for somebody else (a lock, the other end of a pipe).
 */
#ifndef REPLAY_STALL_H
#define REPLAY_STALL_H

#include <sys/types.h>

#include "replay/run.h"

/* Begins as { 0 }. */
struct stall {
	uint64_t done_seen, looked_ns;
	uint64_t still_ns; /* for so long, as far as it was looked at, since an action ended */
};

/* To be called often. True: the run has stood still for limit_ns; res->waits says who waits for whom. */
bool stall_look(struct stall *s, struct run_result *res, pid_t pid, uint64_t limit_ns,
		uint64_t now_ns);

#endif
