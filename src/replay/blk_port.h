/* SPDX-License-Identifier: MIT */
/*
 * What takes requests to the targets and brings their completions. A port belongs
 * to one submitter, which opens, uses and closes it in its own thread.
 * Private to this directory.
 */
#ifndef REPLAY_BLK_PORT_H
#define REPLAY_BLK_PORT_H

#include "base/err.h"
#include "replay/blk_data.h"
#include "replay/blk_run.h"
#include "replay/blk_target.h"

struct blk_slot;
struct blk_port;

struct blk_done {
	uint64_t index;
	int32_t result; /* bytes, or -errno */
};

struct blk_engine {
	const char *name;
	int (*open)(struct blk_port *p, struct err *err);
	void (*close)(struct blk_port *p);
	/* Makes a request ready to be submitted. */
	void (*put)(struct blk_port *p, const struct blk_slot *s, uint64_t index);
	/* Submits all that was put: 0; 1: completions have to be taken first, then again; -errno. */
	int (*submit)(struct blk_port *p, struct err *err);
	unsigned int (*take)(struct blk_port *p, struct blk_done *out, unsigned int max);
	/* Whether there is anything to take; lets the kernel hand it over. */
	bool (*look)(struct blk_port *p);
	/*
	 * Until there are nr (at least 1; of what is in flight, or nothing is), or for so long; not
	 * much longer than BLK_WAIT_MAX_NS.
	 */
	void (*wait)(struct blk_port *p, uint64_t ns, unsigned int nr, bool in_flight);
};

#define BLK_WAIT_MAX_NS (100 * NS_PER_MS)

struct blk_port {
	const struct blk_engine *engine;
	const struct blk_target *targets;
	uint32_t nr_targets;
	uint64_t depth; /* never more in flight */
	bool poll;
	struct blk_data data;
	void *state; /* of the engine */
	uint64_t nr_submits; /* calls */
	bool registered; /* buffers and files are known to the kernel */
};

extern const struct blk_engine blk_engine_uring, blk_engine_aio;

/* False: the kernel has none, or it is forbidden. */
bool blk_uring_is_allowed(void);

#endif
