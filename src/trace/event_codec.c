/* SPDX-License-Identifier: MIT */
#include "trace/event_codec.h"

#include <errno.h>

/*
 * Parts that most events do not have. Each set bit is followed by one varint,
 * also the bits of later versions, so that these can be passed over.
 */
enum event_part {
	PART_FLAGS,
	PART_ERRNO,
	PART_SEQ, /* difference to the number before plus one */
	PART_CPU,
	PART_HELD,
	PART_PPID,
	PART_PGID,
	PART_ORIGIN,
	PART_GAP_CPU,
	PART_HELD_BEFORE,
	PART_HELD_INSIDE,
	PART_MAX,
};

static unsigned int collect_parts(const struct event *ev, uint64_t seq,
				  const struct event_state *state, uint64_t parts[PART_MAX])
{
	unsigned int set = 0;

#define PART(bit, differs, value)                                                                  \
	if (differs) {                                                                             \
		parts[bit] = (value);                                                              \
		set |= 1u << (bit);                                                                \
	}
	PART(PART_FLAGS, ev->flags, ev->flags)
	PART(PART_ERRNO, ev->outcome.err, zigzag(ev->outcome.err))
	PART(PART_SEQ, seq != state->seq + 1, zigzag((int64_t)(seq - state->seq - 1)))
	PART(PART_CPU, ev->cpu_ns != state->cpu_ns, zigzag((int64_t)(ev->cpu_ns - state->cpu_ns)))
	PART(PART_HELD, ev->held_ns, ev->held_ns)
	PART(PART_PPID, ev->ppid != state->ppid, ev->ppid)
	PART(PART_PGID, ev->pgid != state->pgid, ev->pgid)
	PART(PART_ORIGIN, ev->origin, ev->origin)
	PART(PART_GAP_CPU, ev->gap_cpu_ns, ev->gap_cpu_ns)
	PART(PART_HELD_BEFORE, ev->held_before_ns, ev->held_before_ns)
	PART(PART_HELD_INSIDE, ev->held_inside_ns, ev->held_inside_ns)
#undef PART
	return set;
}

static void put_head(const struct event *ev, uint64_t seq, const struct event_state *state,
		     struct buf *out)
{
	uint64_t parts[PART_MAX];
	unsigned int set = collect_parts(ev, seq, state, parts), left;
	uint8_t *p = buf_reserve(out, (5 + PART_MAX) * VARINT_MAX);

	p = put_uvarint(p, set);
	p = put_uvarint(p, ev->row->id);
	p = put_svarint(p, (int64_t)(ev->enter_ns - state->exit_ns));
	p = put_svarint(p, (int64_t)(ev->exit_ns - ev->enter_ns));
	p = put_svarint(p, ev->outcome.ret);
	for (left = set; left; left &= left - 1)
		p = put_uvarint(p, parts[__builtin_ctz(left)]);
	out->len = (size_t)(p - out->data);
}

void event_close_body(struct buf *out, size_t start)
{
	size_t len = out->len - start - 1;
	uint8_t head[VARINT_MAX];
	size_t n = (size_t)(put_uvarint(head, len) - head);

	if (n > 1) {
		(void)buf_reserve(out, n - 1);
		memmove(out->data + start + n, out->data + start + 1, len);
		out->len += n - 1;
	}
	memcpy(out->data + start, head, n);
}

int event_put(const struct schema *s, const struct event *ev, uint64_t seq,
	      struct event_state *state, struct blob_sink *sink, struct buf *out)
{
	const struct schema_row *row = &s->rows[ev->row->id];
	size_t start = out->len;
	int r;

	if (row->row != ev->row)
		return -EOPNOTSUPP;
	(void)buf_reserve(out, 1);
	out->len++;
	put_head(ev, seq, state, out);
	r = codec_put_args(row, s, ev->args, sink, out);
	if (!r && out->len - start > EVENT_MAX_BYTES)
		r = -E2BIG;
	if (r < 0) {
		out->len = start;
		return r;
	}
	event_close_body(out, start);
	*state = (struct event_state){ .exit_ns = ev->exit_ns,
				       .seq = seq,
				       .cpu_ns = ev->cpu_ns,
				       .ppid = ev->ppid,
				       .pgid = ev->pgid };
	return 0;
}

static void apply_parts(uint64_t set, const uint64_t parts[PART_MAX], struct event_state *state,
			struct event *ev)
{
#define HAS(bit) (set >> (bit)&1)
	ev->flags = HAS(PART_FLAGS) ? (uint16_t)parts[PART_FLAGS] : 0;
	ev->outcome.err = HAS(PART_ERRNO) ? (int32_t)unzigzag(parts[PART_ERRNO]) : 0;
	state->seq++;
	if (HAS(PART_SEQ))
		state->seq += (uint64_t)unzigzag(parts[PART_SEQ]);
	if (HAS(PART_CPU))
		state->cpu_ns += (uint64_t)unzigzag(parts[PART_CPU]);
	ev->held_ns = HAS(PART_HELD) ? parts[PART_HELD] : 0;
	if (HAS(PART_PPID))
		state->ppid = (uint32_t)parts[PART_PPID];
	if (HAS(PART_PGID))
		state->pgid = (uint32_t)parts[PART_PGID];
	ev->origin = HAS(PART_ORIGIN) ? parts[PART_ORIGIN] : 0;
	ev->gap_cpu_ns = HAS(PART_GAP_CPU) ? parts[PART_GAP_CPU] : 0;
	ev->held_before_ns = HAS(PART_HELD_BEFORE) ? parts[PART_HELD_BEFORE] : 0;
	ev->held_inside_ns = HAS(PART_HELD_INSIDE) ? parts[PART_HELD_INSIDE] : 0;
#undef HAS
	ev->seq = state->seq;
	ev->cpu_ns = state->cpu_ns;
	ev->ppid = state->ppid;
	ev->pgid = state->pgid;
}

bool event_get_head(const struct schema *s, struct cursor *in, struct event_state *state,
		    struct event *ev, struct cursor *ret_args)
{
	uint64_t len, set, id, parts[PART_MAX];
	int64_t gap, duration, ret;
	struct cursor c;

	if (!cursor_get_uvarint(in, &len) || !cursor_get_bytes(in, len, &c.pos))
		return false;
	c.end = c.pos + len;
	if (!cursor_get_uvarint(&c, &set) || !cursor_get_uvarint(&c, &id) ||
	    !cursor_get_svarint(&c, &gap) || !cursor_get_svarint(&c, &duration) ||
	    !cursor_get_svarint(&c, &ret) || !event_get_parts(&c, set, parts, PART_MAX))
		return false;
	if (id >= ROW_ID_MAX || !s->rows[id].row)
		return false;
	ev->row = s->rows[id].row;
	ev->enter_ns = state->exit_ns + (uint64_t)gap;
	ev->exit_ns = ev->enter_ns + (uint64_t)duration;
	state->exit_ns = ev->exit_ns;
	ev->outcome.ret = ret;
	apply_parts(set, parts, state, ev);
	*ret_args = c;
	return true;
}

bool event_get_args(const struct schema *s, struct cursor *args, struct arena *arena,
		    struct event *ev)
{
	return codec_get_args(&s->rows[ev->row->id], s, args, arena, ev->args);
}

int item_put(const struct schema *s, const struct item *item, struct blob_sink *sink,
	     struct buf *out)
{
	const struct schema_row *row = &s->rows[item->row->id];
	size_t start = out->len;
	uint8_t *p;
	int r;

	if (row->row != item->row)
		return -EOPNOTSUPP;
	p = buf_reserve(out, 1 + VARINT_MAX);
	out->len = (size_t)(put_uvarint(p + 1, item->row->id) - out->data);
	r = codec_put_args(row, s, item->args, sink, out);
	if (!r && out->len - start > EVENT_MAX_BYTES)
		r = -E2BIG;
	if (r < 0) {
		out->len = start;
		return r;
	}
	event_close_body(out, start);
	return 0;
}

bool item_get(const struct schema *s, struct cursor *in, struct arena *arena, struct item *ret)
{
	uint64_t len, id;
	struct cursor c;

	if (!cursor_get_uvarint(in, &len) || !cursor_get_bytes(in, len, &c.pos))
		return false;
	c.end = c.pos + len;
	if (!cursor_get_uvarint(&c, &id) || id >= ROW_ID_MAX || !s->rows[id].row)
		return false;
	ret->row = s->rows[id].row;
	return codec_get_args(&s->rows[id], s, &c, arena, ret->args);
}
