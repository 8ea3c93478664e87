/* SPDX-License-Identifier: MIT */
/*
 * Events to bytes and back (doc/trace-format.md, "Events"). Within a block an
 * event is stored as its difference to the one before it in the same thread.
 */
#ifndef TRACE_EVENT_CODEC_H
#define TRACE_EVENT_CODEC_H

#include "model/codec.h"
#include "model/event.h"

/* An event takes at most this much; longer ones are refused. */
#define EVENT_MAX_BYTES ((size_t)8 << 20)

/* What the next event of a block refers to; zeroed but for base_ns and base_seq at its start. */
struct event_state {
	uint64_t exit_ns, seq, cpu_ns;
	uint32_t ppid, pgid;
};

/*
 * Puts the length in front of a body that was just appended at `start`, for which
 * one byte was left there.
 */
void event_close_body(struct buf *out, size_t start);

/* The numbers that the bits of set stand for; those that nobody knows yet are passed. */
static inline bool event_get_parts(struct cursor *in, uint64_t set, uint64_t *parts,
				   unsigned int nr_parts)
{
	uint64_t dropped;

	for (; set; set &= set - 1) {
		unsigned int bit = (unsigned int)__builtin_ctzll(set);

		if (!cursor_get_uvarint(in, bit < nr_parts ? &parts[bit] : &dropped))
			return false;
	}
	return true;
}

/* Appends, under the given number; on failure out is as it was. */
MUST_CHECK int event_put(const struct schema *s, const struct event *ev, uint64_t seq,
			 struct event_state *state, struct blob_sink *sink, struct buf *out);

/*
 * Reads all but the arguments, so that a merge can compare before it decodes.
 * *ret_args gets where they are. False when the bytes are malformed or the
 * schema has no such row.
 */
MUST_CHECK bool event_get_head(const struct schema *s, struct cursor *in, struct event_state *state,
			       struct event *ev, struct cursor *ret_args);
MUST_CHECK bool event_get_args(const struct schema *s, struct cursor *args, struct arena *arena,
			       struct event *ev);

/* Records of the other sections. */
MUST_CHECK int item_put(const struct schema *s, const struct item *item, struct blob_sink *sink,
			struct buf *out);
MUST_CHECK bool item_get(const struct schema *s, struct cursor *in, struct arena *arena,
			 struct item *ret);

#endif
