/* SPDX-License-Identifier: MIT */
/*
 * What a call of a mismatch gave back. The lane copies it, up to a bound, into
 * memory that it shares with the caller of the run:
 *
 *   lane: found_keep()  -->  run_result.found  -->  caller: found_put(), found_next_entry()
 *
 * The first mismatches of a run are kept (RUN_MISMATCHES_KEPT), each with at most
 * a share of the bytes that are left. Where the expected bytes differ is for the
 * caller to find: a lane knows their hash only.
 */
#ifndef REPLAY_FOUND_H
#define REPLAY_FOUND_H

#include "base/arena.h"
#include "replay/run.h"

struct lane;
struct ready;

/* By a lane, when a result was compared and differs, or was cut short. */
void found_keep(struct lane *l, const struct ready *a, const struct outcome *got,
		struct run_found *ret);

/*
 * Puts what came back into the arguments of ev, which has those of the original
 * or of the plan: bytes, and the fields of a struct that are compared; other
 * fields are left out. Parts are in the arena or in res. False: nothing is known,
 * or it is a listing.
 */
bool found_put(const struct run_result *res, const struct run_found *f, struct event *ev,
	       struct arena *arena);

/* An entry of a listing; is_own: the target's, which is no difference where it was not recorded. */
struct found_entry {
	const char *name;
	size_t name_len;
	unsigned int type;
	bool is_own;
};

/* True when all entries were kept. */
bool found_has_listing(const struct run_found *f);
/* The entry at *pos, which begins at 0; false at the end. */
bool found_next_entry(const struct run_result *res, const struct run_found *f, uint64_t *pos,
		      struct found_entry *ret);

#endif
