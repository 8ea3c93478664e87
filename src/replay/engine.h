/* SPDX-License-Identifier: MIT */
/*
 * What performs actions. An engine is a constant struct at the foot of its own
 * file and a line in engines.def: it says for each row which function makes the
 * call. These functions run on a lane: they allocate nothing, print nothing and
 * touch only what the loader has prepared (replay/inside.h).
 */
#ifndef REPLAY_ENGINE_H
#define REPLAY_ENGINE_H

#include "model/event.h"

struct lane;
struct ready;

typedef void (*call_fn)(struct lane *l, struct ready *a, struct outcome *out);

struct engine {
	const char *name;
	const char *summary;
	bool gives_back; /* calls fill their buffers: what came can be verified */
	/* NULL: actions of this row are not made, their recorded outcome stands. */
	call_fn (*find)(const struct row *row);
};

#define ENGINE(name) extern const struct engine engine_##name;
#include "replay/engines.def"
#undef ENGINE

/* NULL when there is none of that name. */
const struct engine *engine_by_name(const char *name);

#endif
