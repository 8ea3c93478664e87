/* SPDX-License-Identifier: MIT */
/*
 * Waiting at a pipe. Nobody waits for ever: a pipe at which somebody waits while no
 * lane of the run gets on comes to a standstill only when the trace lies, or the
 * plan leaves out its order.
 */
#ifndef REPLAY_PIPE_WAIT_H
#define REPLAY_PIPE_WAIT_H

#include "replay/inside.h"

/* One call that may wait several times. */
struct pipe_wait {
	struct lane *l;
	const struct ready *a;
	struct pipe *in, *out; /* whose end is waited for; NULL: none */
	unsigned int nr_vain;
	/* Of the others: what they had done when they last got on, and when that was. */
	uint64_t seen, seen_ns;
};

/* Until the descriptor is ready for that, or for a moment without one; false: there is no more to wait for. */
bool pipe_wait_ready(struct pipe_wait *w, int fd, short events);

#endif
