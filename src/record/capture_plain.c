/* SPDX-License-Identifier: MIT */
/*
 * The short way for calls whose arguments are numbers and at most one piece of
 * data, which is at hand: no queue of what is to be read, no arena, no second pass.
 * Most of what a busy program does is such calls. What comes of them is the same as of
 * capture_entry() and capture_exit(), which a unit test holds against each other.
 */
#include "record/capture_inside.h"

#include "base/banned.h"

/* A length that is known when the numbers are. */
static bool is_plain_len(const struct capture_shape *s, unsigned int code)
{
	unsigned int n;

	for (n = 0; n < s->nr_scalars; n++) {
		if (code == (unsigned int)A0 + s->scalars[n].arg)
			return true;
	}
	return code & LEN_CONST || (code == RET && s->out.nr);
}

bool capture_shape_is_plain(const struct capture_shape *s)
{
	unsigned int nr_data = s->in.nr + s->out.nr;
	const struct arg *a;

	if (s->nr_scalars + nr_data != s->row->nr_args || nr_data > 1)
		return false;
	if (!nr_data)
		return true;
	a = &s->row->args[s->in.nr ? s->in.args[0] : s->out.args[0]];
	return a->kind == KIND_BUF && a->cap == LEN_NONE && is_plain_len(s, a->len);
}

static uint64_t len_of(const struct arg *a, const struct capture_shape *s,
		       const struct outcome *outcome, const struct value *args)
{
	const struct value *v;

	if (a->len & LEN_CONST)
		return a->len & ~(unsigned int)LEN_CONST;
	if (a->len == RET)
		return outcome->ret > 0 ? (uint64_t)outcome->ret : 0;
	v = &args[a->len - A0];
	return capture_is_signed(&s->row->args[a->len - A0]) && v->i < 0 ? 0 : v->u;
}

/* All len bytes of what is at the address, of which not nothing is kept. */
static int keep_data(struct capture *c, struct capture_seen *seen, enum capture_keep keep,
		     const uint8_t *bytes, uint64_t len)
{
	int r;

	seen->data.kept_bytes = len;
	if (keep == CAPTURE_KEEP_BYTES && len <= DATA_INLINE_MAX) {
		seen->data.bytes = bytes; /* read once, when the event is encoded */
		return 1;
	}
	seen->data.refs = &seen->ref;
	r = capture_piece(c, keep, bytes, (size_t)len, &seen->ref);
	return r < 0 ? r : 1;
}

/* The argument that is data. */
static int put_data(struct capture *c, const struct capture_shape *s, struct capture_seen *seen,
		    struct value *args)
{
	bool after = s->out.nr;
	unsigned int i = after ? s->out.args[0] : s->in.args[0];
	struct memory *m = after ? seen->after : seen->before;
	uint64_t addr = seen->regs[capture_register(s->row, i)], len;
	enum capture_keep keep = capture_keep(c, s->row, after ? CAPTURE_AFTER : 0);
	const uint8_t *bytes;

	args[i] = value_addr(addr);
	if (!addr || (after && seen->outcome->err))
		return 1;
	len = len_of(&s->row->args[i], s, seen->outcome, args);
	seen->data = (struct data){ .len_bytes = len };
	args[i] = (struct value){ .type = VALUE_DATA, .data = &seen->data };
	if (!len || keep == CAPTURE_KEEP_NOTHING)
		return 1;
	bytes = len <= BLOB_MAX_BYTES ? m->borrow(m, addr, (size_t)len) : NULL;
	return bytes ? keep_data(c, seen, keep, bytes, len) : 0;
}

int capture_plain(struct capture *c, const struct row *row, struct capture_seen *seen,
		  struct value *args)
{
	const struct capture_shape *s = capture_shape_of(capture_scratch_of(c), row);
	unsigned int n;

	if (!s->is_plain || c->narrow)
		return 0;
	for (n = 0; n < s->nr_scalars; n++)
		args[s->scalars[n].arg] = capture_scalar(&s->scalars[n], seen->regs);
	return s->in.nr + s->out.nr ? put_data(c, s, seen, args) : 1;
}
