/* SPDX-License-Identifier: MIT */
#include "import/strace_after.h"

#include <errno.h>
#include <string.h>

#include "base/banned.h"
#include "model/fields.h"
#include "model/kernel_structs.h"

/* The argument that is read after the call from where argument i points; -1: there is none. */
static int find_after(const struct row *row, unsigned int i)
{
	unsigned int j;

	for (j = i + 1; j < row->nr_args; j++) {
		if (row->args[j].reg == A0 + i)
			return (int)j;
	}
	return -1;
}

void strace_after_put(struct event *ev, unsigned int i, const struct value *after)
{
	int j = find_after(ev->row, i);

	if (j >= 0)
		ev->args[j] = *after;
}

/*
 * An address in place of a target: the target was not read. That is what a
 * recorder keeps too of a call that failed, or that could not read it; else it
 * is merely not told.
 */
static void forget_addresses(struct event *ev)
{
	unsigned int i;

	for (i = 0; i < ev->row->nr_args; i++) {
		const struct arg *a = &ev->row->args[i];
		bool failed = a->dir == ARG_IN ? ev->outcome.err == EFAULT : ev->outcome.err != 0;

		if (ev->args[i].type == VALUE_ADDR && !failed)
			ev->args[i] = (struct value){ .type = VALUE_NONE };
	}
}

/* Lengths of addresses are shown again only when they have changed; offsets move by what was copied. */
static void infer_number(struct strace_text *t, struct event *ev, const struct value *before,
			 unsigned int j)
{
	const struct arg *a = &ev->row->args[j];
	uint64_t moved = 0;

	if (a->kind != KIND_PTR || before->type != VALUE_LIST || before->count != 1 ||
	    ev->outcome.err || ev->outcome.ret < 0)
		return;
	if (a->elem == KIND_OFF && ev->row->result == RESULT_BYTES_COPIED)
		moved = (uint64_t)ev->outcome.ret;
	else if (row_class(ev->row) != C_NET)
		return;
	ev->args[j] = value_list(t->arena, 1);
	ev->args[j].items[0] = value_uint(before->items[0].u + moved);
}

/* What came back where strace does not show it, but where that tells it. */
static void infer_untold(struct strace_text *t, struct event *ev)
{
	unsigned int j;

	for (j = 1; j < ev->row->nr_args; j++) {
		unsigned int reg = ev->row->args[j].reg;
		const struct value *before;

		if (reg < A0 || reg >= A0 + j || ev->args[j].type != VALUE_NONE)
			continue;
		before = &ev->args[reg - A0];
		/* Nothing comes back to where nothing was. */
		if (before->type == VALUE_NULL)
			ev->args[j] = *before;
		else
			infer_number(t, ev, before, j);
	}
}

/* F_GETLK shows what came back; what was asked for is not told. */
static void mend_shown_after(struct event *ev)
{
	if (ev->row->id != SC_fcntl_getlk && ev->row->id != SC_fcntl_ofd_getlk)
		return;
	if (ev->outcome.err || ev->args[2].type != VALUE_STRUCT)
		return;
	strace_after_put(ev, 2, &ev->args[2]);
	ev->args[2] = (struct value){ .type = VALUE_NONE };
}

/* The result of getcwd counts the NUL, which strace does not print. */
static void mend_getcwd(struct strace_text *t, struct event *ev)
{
	struct data *d = ev->args[0].type == VALUE_DATA ? ev->args[0].data : NULL;

	if (ev->row->id == SC_getcwd && d && ev->outcome.ret > 0 &&
	    d->kept_bytes + 1 == (uint64_t)ev->outcome.ret && d->len_bytes == d->kept_bytes)
		ev->args[0] = value_bytes(t->arena,
					  arena_memdup0(t->arena, d->bytes, (size_t)d->kept_bytes),
					  (size_t)d->kept_bytes + 1);
}

/* Polling: `= 1 ([{fd=3, revents=POLLIN}], left {...})`, `= 1 (in [3], left {...})`, `= 0 (Timeout)`. */

/* The note as a text of its own. */
static struct strace_text note_text(const struct strace_text *t, const struct strace_call *c)
{
	struct strace_text note = *t;

	note.pos = c->note ? c->note : t->end;
	note.end = note.pos + (c->note ? c->note_len : 0);
	return note;
}

/* strace lists only those that are ready, in their order: the next of them, or not ready. */
static uint64_t next_revents(const struct value *ready, const struct value *fd, uint32_t *next)
{
	const struct value *its, *revents;

	if (ready->type != VALUE_LIST || *next >= ready->count)
		return 0;
	its = value_field(&ready->items[*next], FIELD_OF(pollfd, fd));
	revents = value_field(&ready->items[*next], FIELD_OF(pollfd, revents));
	if (!its || !revents || its->u != fd->u)
		return 0;
	++*next;
	return revents->u;
}

static void set_revents(struct strace_text *t, struct value *fds, const struct value *ready)
{
	uint32_t i, next = 0;

	for (i = 0; i < fds->count; i++) {
		const struct value *fd = value_field(&fds->items[i], FIELD_OF(pollfd, fd));
		const struct value *events = value_field(&fds->items[i], FIELD_OF(pollfd, events));
		struct value mended;

		if (!fd || !events)
			continue;
		mended = value_struct(t->arena, FIELD_BIT(pollfd, fd) | FIELD_BIT(pollfd, events) |
							FIELD_BIT(pollfd, revents));
		*value_field(&mended, FIELD_OF(pollfd, fd)) = *fd;
		*value_field(&mended, FIELD_OF(pollfd, events)) = *events;
		*value_field(&mended, FIELD_OF(pollfd, revents)) =
			value_uint(next_revents(ready, fd, &next));
		fds->items[i] = mended;
	}
}

static void take_left(struct strace_text *note, struct event *ev, unsigned int timeout)
{
	int after = find_after(ev->row, timeout);

	if (after >= 0 && STRACE_ACCEPT(note, "left "))
		(void)strace_value(note, &ev->row->args[after], &ev->args[after],
				   NULL); /* not known, then */
}

static void mend_poll(struct strace_text *t, struct strace_call *c)
{
	struct strace_text note = note_text(t, c);
	struct event *ev = &c->ev;
	struct value ready = { .type = VALUE_NONE };

	if (ev->args[0].type != VALUE_LIST || t->cut)
		return;
	if (ev->outcome.ret > 0 && !strace_value(&note, &ev->row->args[0], &ready, NULL))
		return;
	set_revents(t, &ev->args[0], &ready);
	if (ev->row->id == SC_ppoll && (ev->outcome.ret == 0 || STRACE_ACCEPT(&note, ", ")))
		take_left(&note, ev, 2);
}

static void mend_select(struct strace_text *t, struct strace_call *c)
{
	static const char *const words[] = { "in ", "out ", "except " };
	struct strace_text note = note_text(t, c);
	struct event *ev = &c->ev;
	unsigned int i;

	for (i = 0; i < ARRAY_LEN(words); i++) {
		int after = find_after(ev->row, 1 + i);

		if (after < 0 || ev->args[1 + i].type != VALUE_LIST)
			continue;
		if (strace_accept(&note, words[i], strlen(words[i])) &&
		    strace_value(&note, &ev->row->args[after], &ev->args[after], NULL)) {
			(void)!STRACE_ACCEPT(&note, ", ");
			continue;
		}
		ev->args[after] = (struct value){ .type = VALUE_LIST };
	}
	take_left(&note, ev, 4);
}

static void mend_polling(struct strace_text *t, struct strace_call *c)
{
	/* Without a note the version that printed it tells nothing of what came back. */
	if (c->ev.outcome.err || c->ev.outcome.ret < 0 || !c->note)
		return;
	switch (c->ev.row->id) {
	case SC_poll:
	case SC_ppoll:
		mend_poll(t, c);
		return;
	case SC_select:
	case SC_pselect6:
		mend_select(t, c);
		return;
	default:
		return;
	}
}

void strace_after_apply(struct strace_text *t, struct strace_call *c)
{
	forget_addresses(&c->ev);
	mend_shown_after(&c->ev);
	mend_getcwd(t, &c->ev);
	mend_polling(t, c);
	infer_untold(t, &c->ev);
}
