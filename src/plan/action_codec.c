/* SPDX-License-Identifier: MIT */
#include "plan/action_codec.h"

#include <errno.h>

#include "base/varint.h"
#include "trace/event_codec.h"

/* Bits of an action's parts, and the order in which they follow. */
enum {
	PART_FLAGS,
	PART_ERRNO,
	PART_SEQ,
	PART_NO_SEQ,
	PART_BEFORE,
	PART_AFTER,
	PART_WAIT,
	PART_PID,
	PART_TID,
	PART_ORIGIN,
	PART_EDGES,
	PART_MAX,
};

#define EDGE_BYTES_MIN 3
#define EDGE_BYTES_MAX ((size_t)3 * VARINT_MAX + 1)
#define RESULT_BYTES 16

void action_state_begin(struct action_state *state, const struct events_prefix *prefix)
{
	*state = (struct action_state){ .exit_ns = prefix->base_ns,
					.seq = prefix->base_seq,
					.pid = prefix->pid,
					.tid = prefix->tid };
}

static unsigned int collect_parts(const struct action *a, const struct action_state *state,
				  uint64_t parts[PART_MAX])
{
	unsigned int set = 0;

#define PART(bit, condition, value)                                                                \
	if (condition) {                                                                           \
		set |= 1u << (bit);                                                                \
		parts[bit] = (value);                                                              \
	}
	PART(PART_FLAGS, a->flags, a->flags)
	PART(PART_ERRNO, a->outcome.err, (uint32_t)a->outcome.err)
	PART(PART_SEQ, a->seq && a->seq != state->seq + 1,
	     zigzag((int64_t)(a->seq - state->seq - 1)))
	PART(PART_NO_SEQ, !a->seq, 0)
	PART(PART_BEFORE, a->compute_before_ns, a->compute_before_ns)
	PART(PART_AFTER, a->compute_after_ns, a->compute_after_ns)
	PART(PART_WAIT, a->wait_ns, a->wait_ns)
	PART(PART_PID, a->pid != state->pid, a->pid)
	PART(PART_TID, a->tid != state->tid, a->tid)
	PART(PART_ORIGIN, a->origin, a->origin)
	PART(PART_EDGES, a->nr_edges, a->nr_edges)
#undef PART
	return set;
}

static void put_head(const struct action *a, const struct action_state *state, struct buf *out)
{
	uint64_t parts[PART_MAX];
	unsigned int set = collect_parts(a, state, parts), left;
	uint8_t *p = buf_reserve(out, (5 + PART_MAX) * VARINT_MAX + RESULT_BYTES);

	p = put_uvarint(p, set);
	p = put_uvarint(p, a->row->id);
	p = put_svarint(p, (int64_t)(a->enter_ns - state->exit_ns));
	p = put_uvarint(p, a->exit_ns - a->enter_ns);
	p = put_svarint(p, a->outcome.ret);
	for (left = set; left; left &= left - 1)
		p = put_uvarint(p, parts[__builtin_ctz(left)]);
	if (a->flags & ACTION_HAS_RESULT) {
		put_le64(p, a->result.low);
		put_le64(p + 8, a->result.high);
		p += RESULT_BYTES;
	}
	out->len = (size_t)(p - out->data);
}

static void put_edges(const struct action *a, struct action_state *state, struct buf *out)
{
	uint8_t *p = buf_reserve(out, a->nr_edges * EDGE_BYTES_MAX);
	uint32_t i;

	for (i = 0; i < a->nr_edges; i++) {
		const struct action_edge *e = &a->edges[i];
		uint64_t *last = &state->edge_nr[e->lane % EDGE_CLASSES];

		p = put_uvarint(p, (uint64_t)e->lane << 1 | e->started);
		p = put_svarint(p, (int64_t)(e->nr - *last));
		*p++ = e->rule;
		if (a->flags & ACTION_EDGE_THINK)
			p = put_uvarint(p, e->think_ns);
		*last = e->nr;
	}
	out->len = (size_t)(p - out->data);
}

static void step_state(struct action_state *state, const struct action *a)
{
	state->exit_ns = a->exit_ns;
	if (a->seq)
		state->seq = a->seq;
	state->pid = a->pid;
	state->tid = a->tid;
}

int action_put(const struct schema *s, const struct action *a, struct action_state *state,
	       struct buf *out)
{
	const struct schema_row *row = &s->rows[a->row->id];
	size_t start = out->len;
	int r;

	if (row->row != a->row)
		return -EOPNOTSUPP;
	(void)buf_reserve(out, 1);
	out->len++;
	put_head(a, state, out);
	r = codec_put_args(row, s, a->args, NULL, out);
	if (!r && out->len - start + a->nr_edges * EDGE_BYTES_MAX > EVENT_MAX_BYTES)
		r = -E2BIG;
	if (r < 0) {
		out->len = start;
		return r;
	}
	put_edges(a, state, out);
	event_close_body(out, start);
	step_state(state, a);
	return 0;
}

static bool apply_parts(uint64_t set, const uint64_t parts[PART_MAX], struct action_state *state,
			struct action *a)
{
#define PART_OR(bit, otherwise) (set >> (bit)&1 ? parts[bit] : (otherwise))
	uint64_t flags = PART_OR(PART_FLAGS, 0), err = PART_OR(PART_ERRNO, 0);
	uint64_t pid = PART_OR(PART_PID, state->pid), tid = PART_OR(PART_TID, state->tid);

	if (flags > UINT16_MAX || err > INT32_MAX || pid > UINT32_MAX || tid > UINT32_MAX)
		return false;
	a->flags = (uint16_t)flags;
	a->outcome.err = (int32_t)err;
	a->seq = 0;
	if (!(set >> PART_NO_SEQ & 1))
		a->seq = state->seq + 1 + (uint64_t)unzigzag(PART_OR(PART_SEQ, 0));
	a->compute_before_ns = PART_OR(PART_BEFORE, 0);
	a->compute_after_ns = PART_OR(PART_AFTER, 0);
	a->wait_ns = PART_OR(PART_WAIT, 0);
	a->pid = (uint32_t)pid;
	a->tid = (uint32_t)tid;
	a->origin = PART_OR(PART_ORIGIN, 0);
#undef PART_OR
	return true;
}

static bool get_result(struct cursor *in, struct action *a)
{
	const uint8_t *p;

	a->result = (struct hash128){ 0 };
	if (!(a->flags & ACTION_HAS_RESULT))
		return true;
	if (!cursor_get_bytes(in, RESULT_BYTES, &p))
		return false;
	a->result = (struct hash128){ get_le64(p), get_le64(p + 8) };
	return true;
}

static bool get_edges(struct cursor *in, uint64_t nr, bool think, struct action_state *state,
		      struct action_edges *edges)
{
	edges->list.len = 0;
	if (nr > ACTION_EDGES_MAX || nr > cursor_left(in) / EDGE_BYTES_MIN)
		return false;
	for (; nr; nr--) {
		struct action_edge e = { 0 };
		const uint8_t *rule;
		uint64_t head, *last;
		int64_t diff;

		if (!cursor_get_uvarint(in, &head) || head >> 1 > UINT32_MAX ||
		    !cursor_get_svarint(in, &diff) || !cursor_get_bytes(in, 1, &rule) ||
		    (think && !cursor_get_uvarint(in, &e.think_ns)))
			return false;
		e.lane = (uint32_t)(head >> 1);
		e.started = head & 1;
		e.rule = *rule;
		last = &state->edge_nr[e.lane % EDGE_CLASSES];
		e.nr = *last += (uint64_t)diff;
		VEC_PUSH(&edges->list, e);
	}
	return true;
}

bool action_get(const struct schema *s, struct cursor *in, struct action_state *state,
		struct arena *arena, struct action_edges *edges, struct action *ret)
{
	uint64_t len, set, id, duration, parts[PART_MAX];
	struct cursor c;
	int64_t gap;

	if (!cursor_get_uvarint(in, &len) || !cursor_get_bytes(in, len, &c.pos))
		return false;
	c.end = c.pos + len;
	if (!cursor_get_uvarint(&c, &set) || !cursor_get_uvarint(&c, &id) ||
	    !cursor_get_svarint(&c, &gap) || !cursor_get_uvarint(&c, &duration) ||
	    !cursor_get_svarint(&c, &ret->outcome.ret) ||
	    !event_get_parts(&c, set, parts, PART_MAX))
		return false;
	if (id >= ROW_ID_MAX || !s->rows[id].row)
		return false;
	ret->row = s->rows[id].row;
	ret->enter_ns = state->exit_ns + (uint64_t)gap;
	ret->exit_ns = ret->enter_ns + duration;
	if (ret->exit_ns < ret->enter_ns || !apply_parts(set, parts, state, ret) ||
	    !get_result(&c, ret) || !codec_get_args(&s->rows[id], s, &c, arena, ret->args) ||
	    !get_edges(&c, set >> PART_EDGES & 1 ? parts[PART_EDGES] : 0,
		       ret->flags & ACTION_EDGE_THINK, state, edges))
		return false;
	ret->edges = edges->list.items;
	ret->nr_edges = (uint32_t)edges->list.len;
	step_state(state, ret);
	return true;
}
