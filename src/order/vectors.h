/* SPDX-License-Identifier: MIT */
/*
 * What each lane knows: up to which action of every other lane all is done when
 * its next action starts. This is what makes an edge superfluous.
 *
 * A vector is an array of chunks of lanes, those that a lane has heard of. An
 * edge to action k of lane u also brings what u knew when k started. Since u may
 * have learnt more since, its last changes are kept and undone on the way; when
 * they no longer reach back to k only k itself is learnt: an edge too many may
 * then stay, never one too few.
 */
#ifndef ORDER_VECTORS_H
#define ORDER_VECTORS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/mem.h"

#define VECTOR_CHUNK 16

struct vector_change {
	uint64_t nr; /* of the action whose edges changed it */
	uint64_t old;
	uint32_t lane;
};

struct vector {
	uint64_t nr_seen; /* actions that the lane has had */
	uint64_t **chunks; /* each VECTOR_CHUNK numbers: that many actions are done */
	uint32_t nr_chunks;
	uint32_t log_cap, log_first, log_len; /* a ring of changes */
	struct vector_change *log;
	uint64_t changed_nr; /* the action that changed it last */
	uint64_t kept_from; /* all changes by this action and later ones are in the log */
};

struct vectors {
	VEC(struct vector) lanes;
	/* To undo changes: by lane, valid where the stamp is the current one. */
	uint64_t *undone, *undone_stamp;
	size_t undone_cap;
	uint64_t stamp;
	uint32_t budget; /* chunks that may still be merged for the action at hand */
};

void vectors_release(struct vectors *v);
/* The vector of a lane, made when it is new; valid until another is made. */
struct vector *vectors_lane(struct vectors *v, uint32_t lane);
/* An action of some lane is about to raise its vector. */
void vectors_begin(struct vectors *v);

/* Whether nr actions of `of` are done when the lane's next action starts. */
bool vector_covers(const struct vectors *v, uint32_t lane, uint32_t of, uint64_t nr);

/*
 * Action `at` of the lane starts only when `nr` actions of `of` are done; then
 * it knows all that `of` did when its action `known` started.
 */
void vector_learn(struct vectors *v, uint32_t lane, uint64_t at, uint32_t of, uint64_t nr,
		  uint64_t known);

#endif
