/* SPDX-License-Identifier: MIT */
#include "import/strace_call.h"

#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <string.h>

#include "base/attrs.h"
#include "base/banned.h"
#include "base/clock.h"
#include "import/strace_after.h"
#include "import/strace_line.h"
#include "model/fields.h"
#include "model/kernel_structs.h"

/* strace's names for the arguments of clone, which it prints by name. */
static const struct {
	const char *strace, *row;
} clone_names[] = {
	{ "child_stack", "stack" },
	{ "child_tidptr", "child_tid" },
	{ "parent_tidptr", "parent_tid" },
	{ "parent_tid", "parent_tid" },
	{ "flags", "flags" },
	{ "tls", "tls" },
};

static bool next_is(const struct strace_text *t, char c)
{
	return t->pos < t->end && *t->pos == c;
}

static size_t word_len(const struct strace_text *t)
{
	const char *p = t->pos;

	while (p < t->end && ((*p >= 'a' && *p <= 'z') || (*p >= '0' && *p <= '9') || *p == '_'))
		p++;
	return (size_t)(p - t->pos);
}

/* The name. */

static int unknown_call(struct err *err, const char *name, size_t len)
{
	return err_set(err, -EBADMSG, "unknown call '%.*s'", (int)(len < 64 ? len : 64), name);
}

/* syscall_0x1ab: strace had no name for it. */
static bool take_number_as_name(struct strace_text *t, const char *name, size_t len,
				struct event *ev)
{
	struct strace_text number = *t;
	uint64_t nr;

	if (len < 11 || memcmp(name, "syscall_0x", 10) != 0)
		return false;
	number.pos = name + 8;
	number.end = name + len;
	if (!strace_number(&number, &nr))
		return false;
	ev->row = row_by_id(SC_unknown_call);
	ev->args[0] = value_uint(nr);
	return true;
}

static int take_name(struct strace_text *t, struct event *ev, int *ret_selector, struct err *err)
{
	const char *name = t->pos, *paren = memchr(t->pos, '(', (size_t)(t->end - t->pos));
	const struct strace_call_name *call;
	const char *hash;
	size_t len;

	if (!paren)
		return err_set(err, -EBADMSG, "no call");
	len = (size_t)(paren - name);
	hash = memchr(name, '#', len); /* of another personality: read#64 */
	if (hash)
		len = (size_t)(hash - name);
	t->pos = paren + 1;
	*ret_selector = -1;
	call = strace_names_call(t->names, name, len);
	if (!call)
		return take_number_as_name(t, name, len, ev) ? 0 : unknown_call(err, name, len);
	ev->row = call->row;
	*ret_selector = call->selector;
	return 0;
}

/* Arguments. */

static int find_arg(const struct row *row, const char *name)
{
	unsigned int i;

	for (i = 0; i < row->nr_args; i++) {
		if (!strcmp(row->args[i].name, name))
			return (int)i;
	}
	return -1;
}

static void note_fd(const struct strace_text *t, struct strace_call *c, const struct arg *a,
		    const struct value *v)
{
	if (!t->path || v->type != VALUE_INT || c->nr_fds == STRACE_CALL_FDS_MAX)
		return;
	c->fds[c->nr_fds++] = (struct strace_fd){ .fd = v->u,
						  .path = t->path,
						  .path_len = t->path_len,
						  .is_directory = a->kind == KIND_DIRFD ||
								  row_class(c->ev.row) == C_DIR ||
								  c->ev.row->id == SC_fchdir };
}

static void take_arg(struct strace_text *t, struct strace_call *c, unsigned int i)
{
	struct value after = { .type = VALUE_NONE };
	struct event *ev = &c->ev;
	bool is_fd = ev->row->args[i].kind == KIND_FD || ev->row->args[i].kind == KIND_DIRFD;

	t->path = NULL;
	(void)strace_value(t, &ev->row->args[i], &ev->args[i], &after); /* t->bad tells */
	if (after.type != VALUE_NONE)
		strace_after_put(ev, i, &after);
	if (is_fd)
		note_fd(t, c, &ev->row->args[i], &ev->args[i]);
}

/* The argument that decides which row of the call it is. */
static void take_selector(struct strace_text *t, struct event *ev, unsigned int i)
{
	const struct arg *arg = &ev->row->args[i];
	uint64_t regs[6] = { 0 };
	struct value v;

	if (!strace_value(t, arg, &v, NULL))
		return;
	regs[i] = v.u;
	ev->row = row_select_variant(ev->row, regs);
	if (i < ev->row->nr_args && ev->row->args[i].kind != KIND_HOLE)
		ev->args[i] = v;
}

/* NAME=value, as -N prints all arguments: their order says the same. */
static void skip_arg_name(struct strace_text *t)
{
	size_t len;

	if (t->pos == t->end || *t->pos < 'a' || *t->pos > 'z')
		return; /* as most values begin */
	len = word_len(t);
	if (t->pos + len + 1 < t->end && t->pos[len] == '=' && t->pos[len + 1] != '=' &&
	    t->pos[len + 1] != '>')
		t->pos += len + 1;
}

/* Between two arguments. False: there are no more. */
static bool take_separator(struct strace_text *t)
{
	if (STRACE_ACCEPT(t, ", "))
		return true;
	if (t->pos == t->end || next_is(t, ')'))
		return false;
	strace_skip(t); /* what a value of this kind should not have behind it */
	if (STRACE_ACCEPT(t, ", "))
		return true;
	/* Another bracket than should be: never stand still. */
	t->pos += t->pos < t->end && !next_is(t, ')');
	return t->pos < t->end && !next_is(t, ')');
}

static void take_clone_arg(struct strace_text *t, struct strace_call *c)
{
	struct event *ev = &c->ev;
	size_t i, len = word_len(t);
	const char *name = t->pos;
	struct arg signal = { .kind = KIND_SIGNO, .set = SET_signal_names };
	struct value v;

	if (!len || t->pos + len == t->end || t->pos[len] != '=') {
		strace_skip(t);
		return;
	}
	t->pos += len + 1;
	if (len == 11 && !memcmp(name, "exit_signal", 11)) {
		if (strace_value(t, &signal, &v, NULL))
			ev->args[0] = value_uint(ev->args[0].u | v.u);
		return;
	}
	for (i = 0; i < ARRAY_LEN(clone_names); i++) {
		int n = find_arg(ev->row, clone_names[i].row);

		if (n < 0 || strncmp(clone_names[i].strace, name, len) != 0 ||
		    clone_names[i].strace[len])
			continue;
		take_arg(t, c, (unsigned int)n);
		return;
	}
	strace_skip(t);
}

static bool is_named(const struct strace_text *t, const struct row *row)
{
	size_t len = word_len(t);

	return (row->id == SC_clone || row->id == SC_clone_backwards) && len &&
	       t->pos + len < t->end && t->pos[len] == '=';
}

static unsigned int count_text_args(struct strace_text at)
{
	unsigned int nr = 0;

	while (at.pos < at.end && !next_is(&at, ')')) {
		nr++;
		strace_skip(&at);
		if (!take_separator(&at))
			break;
	}
	return nr;
}

/*
 * Registers without a meaning for this call (the upper half of an offset, what an
 * operation of futex does not use) are left out by strace, but not with -e raw=.
 */
static bool is_left_out(const struct strace_text *t, const struct row *row, unsigned int i)
{
	unsigned int nr = 0, j;

	if (i >= row->nr_args || row->args[i].kind != KIND_HOLE || row->args[i].set)
		return false;
	for (j = i; j < row->nr_args; j++)
		nr += row->args[j].reg == REG_OWN;
	return count_text_args(*t) < nr;
}

static void take_args(struct strace_text *t, struct strace_call *c, int selector)
{
	struct event *ev = &c->ev;
	unsigned int first = ev->row->id == SC_unknown_call; /* its number is not among them */
	bool named = is_named(t, ev->row);
	unsigned int i;

	if (t->pos == t->end || next_is(t, ')'))
		return;
	for (i = first; t->pos < t->end; i++) {
		while (next_is(t, ' '))
			t->pos++;
		if (next_is(t, '<')) {
			/* <... resuming interrupted read ...>, <unfinished ...> */
			const char *stop = memchr(t->pos, '>', (size_t)(t->end - t->pos));

			t->pos = stop ? stop + 1 : t->end;
			return;
		}
		if (named) {
			take_clone_arg(t, c);
		} else if (is_left_out(t, ev->row, i)) {
			continue;
		} else {
			skip_arg_name(t);
			if ((int)i == selector)
				take_selector(t, ev, i);
			else if (i < ev->row->nr_args && ev->row->args[i].reg == REG_OWN)
				take_arg(t, c, i);
			else
				strace_skip(t);
		}
		if (!take_separator(t))
			return;
	}
}

/* The result. */

static bool take_duration(struct strace_text *t, struct strace_call *c)
{
	const char *p = t->pos + 1, *stop = memchr(t->pos, '>', (size_t)(t->end - t->pos));
	uint64_t ns = 0;

	if (!stop)
		return false;
	for (; p < stop && *p >= '0' && *p <= '9'; p++)
		ns = ns * 10 + (uint64_t)(*p - '0');
	ns *= NS_PER_S;
	if (p < stop && *p == '.') {
		p++;
		ns += strace_take_fraction_ns(&p, stop);
	}
	if (p != stop)
		return false;
	c->has_duration = true;
	c->duration_ns = ns;
	t->pos = stop + 1;
	return true;
}

/* (text), which may hold parentheses and strings of its own. */
static void take_note(struct strace_text *t, struct strace_call *c)
{
	const char *from = ++t->pos;

	while (t->pos < t->end && !next_is(t, ')')) {
		strace_skip(t);
		if (t->pos < t->end && !next_is(t, ')'))
			t->pos++;
	}
	c->note = from;
	c->note_len = (size_t)(t->pos - from);
	t->pos += t->pos < t->end;
	if (c->note_len >= 8 && !memcmp(from, "INJECTED", 8))
		c->ev.flags |= EVENT_INJECTED;
}

static bool take_error(struct strace_text *t, struct event *ev)
{
	const char *p = t->pos;
	uint64_t v;

	while (p < t->end && ((*p >= 'A' && *p <= 'Z') || (*p >= '0' && *p <= '9') || *p == '_'))
		p++;
	if (!strace_names_word(t->names, SET_errno_names, t->pos, (size_t)(p - t->pos), &v))
		return false;
	t->pos = p;
	ev->outcome = (struct outcome){ .ret = -1, .err = (int32_t)v };
	return true;
}

/* -1 (errno 4095): one without a name. */
static void take_errno_note(struct strace_text *t, struct strace_call *c)
{
	struct strace_text number = *t;
	uint64_t v;

	if (c->note_len < 7 || memcmp(c->note, "errno ", 6) != 0)
		return;
	number.pos = c->note + 6;
	number.end = c->note + c->note_len;
	if (strace_number(&number, &v) && v < 4096)
		c->ev.outcome.err = (int32_t)v;
}

static int take_tail(struct strace_text *t, struct strace_call *c, bool may_fail, struct err *err)
{
	while (t->pos < t->end) {
		char ch = *t->pos;

		if (ch == ' ')
			t->pos++;
		else if (ch == '<' && take_duration(t, c))
			continue;
		else if (ch == '<')
			t->pos = t->end; /* <unavailable> */
		else if (ch == '(')
			take_note(t, c);
		else if (may_fail && ch == 'E' && take_error(t, &c->ev))
			may_fail = false;
		else
			return err_set(err, -EBADMSG, "unknown result '%.*s'",
				       (int)(t->end - t->pos < 40 ? t->end - t->pos : 40), t->pos);
	}
	if (may_fail && c->note)
		take_errno_note(t, c);
	return 0;
}

static int take_result(struct strace_text *t, struct strace_call *c, struct err *err)
{
	struct event *ev = &c->ev;
	bool known;
	uint64_t v;

	if (t->pos == t->end) {
		ev->flags |= EVENT_UNFINISHED;
		return 0;
	}
	t->pos++; /* the parenthesis */
	while (next_is(t, ' '))
		t->pos++;
	if (!STRACE_ACCEPT(t, "= ") && !STRACE_ACCEPT(t, "="))
		return err_set(err, -EBADMSG, "the call has no result");
	known = !next_is(t, '?');
	if (!known) {
		t->pos++;
	} else if (strace_number(t, &v)) {
		ev->outcome.ret = (int64_t)v;
		strace_skip_decoration(t);
	} else {
		return err_set(err, -EBADMSG, "the result is no number");
	}
	if (take_tail(t, c, !known || ev->outcome.ret == -1, err) < 0)
		return -EBADMSG;
	if (!known && !ev->outcome.err)
		ev->flags |= EVENT_UNFINISHED;
	if (ev->outcome.err == EINTR && ev->row->id != SC_rt_sigreturn)
		ev->flags |= EVENT_INTERRUPTED;
	return 0;
}

/* Lengths of data that was cut off. */

static uint64_t number_of(const struct value *v)
{
	if (v->type == VALUE_LIST && v->count)
		v = &v->items[0];
	return v->type == VALUE_INT ? v->u : 0;
}

static uint64_t resolve_len(const struct event *ev, const struct value *siblings, unsigned int nr,
			    unsigned int len)
{
	if (len & LEN_CONST)
		return len & ~(unsigned int)LEN_CONST;
	if (len == RET)
		return ev->outcome.err || ev->outcome.ret < 0 ? 0 : (uint64_t)ev->outcome.ret;
	if (len >= A0 && len - A0 < nr)
		return number_of(&siblings[len - A0]);
	return 0;
}

static void settle_data(struct strace_call *c, struct data *d, uint64_t len)
{
	if (d->len_bytes != DATA_LEN_UNKNOWN)
		return;
	d->len_bytes = len > d->kept_bytes ? len : d->kept_bytes + 1;
	c->cut_bytes += d->len_bytes - d->kept_bytes;
}

static void settle_value(struct strace_call *c, const struct arg *a, struct value *v, uint64_t len,
			 uint64_t *left);

static void settle_struct(struct strace_call *c, const struct arg *a, struct value *v,
			  uint64_t *left)
{
	const struct struct_desc *desc = &struct_descs[a->struct_id];
	struct value siblings[STRUCT_FIELDS_MAX];
	unsigned int i;

	for (i = 0; i < desc->nr_fields; i++) {
		const struct value *f = value_field(v, i);

		siblings[i] = f ? *f : (struct value){ .type = VALUE_NONE };
	}
	for (i = 0; i < desc->nr_fields; i++) {
		struct value *f = value_field(v, i);

		if (f)
			settle_value(
				c, &desc->fields[i], f,
				resolve_len(&c->ev, siblings, desc->nr_fields, desc->fields[i].len),
				left);
	}
}

/* `left` is how much of what was read the vectors before did not take. */
static void settle_value(struct strace_call *c, const struct arg *a, struct value *v, uint64_t len,
			 uint64_t *left)
{
	struct arg elem;
	uint32_t i;

	switch ((enum value_type)v->type) {
	case VALUE_DATA:
		if (a->kind == KIND_BUF && *left < len)
			len = *left;
		settle_data(c, v->data, len);
		if (a->kind == KIND_BUF && *left != UINT64_MAX)
			*left -= v->data->len_bytes < *left ? v->data->len_bytes : *left;
		return;
	case VALUE_STRUCT:
		settle_struct(c, a, v, left);
		return;
	case VALUE_LIST:
		elem = *a;
		elem.kind = a->elem ? a->elem : KIND_STRUCT;
		for (i = 0; i < v->count; i++)
			settle_value(c, &elem, &v->items[i], 0, left);
		return;
	default:
		return;
	}
}

static void settle_lengths(struct strace_call *c)
{
	struct event *ev = &c->ev;
	unsigned int i;

	for (i = 0; i < ev->row->nr_args; i++) {
		const struct arg *a = &ev->row->args[i];
		uint64_t len = resolve_len(ev, ev->args, ev->row->nr_args, a->len), cap;
		uint64_t left = UINT64_MAX;

		cap = a->cap ? resolve_len(ev, ev->args, ev->row->nr_args, a->cap) : UINT64_MAX;
		if (a->dir == ARG_OUT && a->kind == KIND_ARRAY && a->len != RET &&
		    ev->outcome.ret >= 0)
			left = (uint64_t)ev->outcome.ret;
		settle_value(c, a, &ev->args[i], len < cap ? len : cap, &left);
	}
}

int strace_call_read(struct strace_text *t, struct strace_call *ret, struct err *err)
{
	struct event *ev = &ret->ev;
	int selector, r;

	*ret = (struct strace_call){ 0 };
	t->cut = false;
	r = take_name(t, ev, &selector, err);
	if (r < 0)
		return r;
	take_args(t, ret, selector);
	r = take_result(t, ret, err);
	if (r < 0)
		return r;
	if (t->cut)
		settle_lengths(ret);
	strace_after_apply(t, ret);
	return 0;
}

bool strace_call_makes_thread(const struct event *ev, uint64_t *ret_flags)
{
	const struct value *f;

	switch (ev->row->id) {
	case SC_fork:
		*ret_flags = SIGCHLD;
		return true;
	case SC_vfork:
		*ret_flags = CLONE_VFORK | CLONE_VM | SIGCHLD;
		return true;
	case SC_clone:
	case SC_clone_backwards:
		*ret_flags = ev->args[0].type == VALUE_INT ? ev->args[0].u : SIGCHLD;
		return true;
	case SC_clone3:
		f = value_field(&ev->args[0], FIELD_OF(clone_args, flags));
		*ret_flags = f ? f->u : 0;
		f = value_field(&ev->args[0], FIELD_OF(clone_args, exit_signal));
		*ret_flags |= f ? f->u & 0xff : 0;
		return true;
	default:
		return false;
	}
}
