/* SPDX-License-Identifier: MIT */
#include "export/strace_args.h"

#include <sys/socket.h>

#include "base/banned.h"
#include "model/fields.h"

static const struct value *after_of(const struct row *row, const struct value *args, unsigned int i,
				    const struct arg **ret)
{
	unsigned int j;

	for (j = i + 1; j < row->nr_args; j++) {
		if (row->args[j].reg == A0 + i && args[j].type != VALUE_NONE) {
			*ret = &row->args[j];
			return &args[j];
		}
	}
	return NULL;
}

static void put_field(const struct print_style *style, struct buf *out, const struct value *v,
		      const struct struct_desc *d, unsigned int n)
{
	const struct value *field = value_field(v, n);

	if (field)
		print_value(out, &d->fields[n], field, style);
	else
		buf_puts(out, "NULL");
}

/* {sa_family=AF_INET, sin_port=htons(80), sin_addr=inet_addr("127.0.0.1")} and the like. */
static void put_sockaddr(const struct print_style *style, struct buf *out, const struct value *v)
{
	const struct struct_desc *d = &struct_descs[STRUCT_sockaddr];
	const struct value *family = value_field(v, FIELD_OF(sockaddr, family));
	bool six = family && family->u == AF_INET6;

	buf_puts(out, "{sa_family=");
	put_field(style, out, v, d, FIELD_OF(sockaddr, family));
	if (value_field(v, FIELD_OF(sockaddr, path))) {
		buf_puts(out, ", sun_path=");
		put_field(style, out, v, d, FIELD_OF(sockaddr, path));
	}
	if (value_field(v, FIELD_OF(sockaddr, port))) {
		buf_puts(out, six ? ", sin6_port=htons(" : ", sin_port=htons(");
		put_field(style, out, v, d, FIELD_OF(sockaddr, port));
		buf_putc(out, ')');
	}
	if (value_field(v, FIELD_OF(sockaddr, address))) {
		buf_puts(out, six ? ", inet_pton(AF_INET6, " : ", sin_addr=inet_addr(");
		put_field(style, out, v, d, FIELD_OF(sockaddr, address));
		buf_puts(out, six ? ", &sin6_addr)" : ")");
	}
	buf_putc(out, '}');
}

/* [28 => 16], [0] => [10]: as it was, and as it is. */
static bool put_changed(const struct print_style *style, struct buf *out, const struct row *row,
			const struct value *args, unsigned int i)
{
	const struct value *before = &args[i], *after;
	const struct arg *a = &row->args[i], *of_after;
	struct arg item = *a;

	after = after_of(row, args, i, &of_after);
	if (!after || before->type != VALUE_LIST || after->type != VALUE_LIST ||
	    before->count != 1 || after->count != 1 || before->items[0].u == after->items[0].u)
		return false;
	if (a->elem == KIND_OFF) {
		print_value(out, a, before, style);
		buf_puts(out, " => ");
		print_value(out, of_after, after, style);
		return true;
	}
	item.kind = a->elem;
	buf_putc(out, '[');
	print_value(out, &item, &before->items[0], style);
	buf_puts(out, " => ");
	print_value(out, &item, &after->items[0], style);
	buf_putc(out, ']');
	return true;
}

/* [{fd=3, events=POLLIN}]: `field` of those that have it and, if only_set, not as 0. */
static void put_pollfds(const struct print_style *style, struct buf *out, const struct value *fds,
			unsigned int field, bool only_set)
{
	const struct struct_desc *d = &struct_descs[STRUCT_pollfd];
	const char *between = "";
	uint32_t i;

	buf_putc(out, '[');
	for (i = 0; i < fds->count; i++) {
		const struct value *f = value_field(&fds->items[i], field);

		if (only_set && (!f || !f->u))
			continue;
		buf_printf(out, "%s{fd=", between);
		put_field(style, out, &fds->items[i], d, FIELD_OF(pollfd, fd));
		buf_printf(out, ", %s=", d->fields[field].name);
		put_field(style, out, &fds->items[i], d, field);
		buf_putc(out, '}');
		between = ", ";
	}
	buf_putc(out, ']');
}

static bool is_poll(const struct row *row)
{
	return row->id == SC_poll || row->id == SC_ppoll;
}

bool strace_put_arg(const struct print_style *style, struct buf *out, const struct row *row,
		    const struct value *args, unsigned int i)
{
	const struct arg *a = &row->args[i];

	if (a->kind == KIND_SOCKADDR && args[i].type == VALUE_STRUCT) {
		put_sockaddr(style, out, &args[i]);
		return true;
	}
	if (is_poll(row) && i == 0 && args[i].type == VALUE_LIST) {
		put_pollfds(style, out, &args[i], FIELD_OF(pollfd, events), false);
		return true;
	}
	return a->kind == KIND_PTR && put_changed(style, out, row, args, i);
}

/* Notes. */

static void put_left(const struct print_style *style, struct buf *out, const struct event *ev,
		     unsigned int timeout, const char *between)
{
	const struct arg *a;
	const struct value *left = after_of(ev->row, ev->args, timeout, &a);

	if (!left || left->type != VALUE_STRUCT)
		return;
	buf_printf(out, "%sleft ", between);
	print_value(out, a, left, style);
}

static void put_poll_note(const struct print_style *style, struct buf *out, const struct event *ev)
{
	put_pollfds(style, out, &ev->args[0], FIELD_OF(pollfd, revents), true);
	if (ev->row->id == SC_ppoll)
		put_left(style, out, ev, 2, ", ");
}

static void put_select_note(const struct print_style *style, struct buf *out,
			    const struct event *ev)
{
	static const char *const words[] = { "in", "out", "except" };
	const char *between = "";
	unsigned int i;

	for (i = 0; i < 3; i++) {
		const struct arg *a;
		const struct value *after = after_of(ev->row, ev->args, 1 + i, &a);

		if (!after || after->type != VALUE_LIST || !after->count)
			continue;
		buf_printf(out, "%s%s ", between, words[i]);
		print_value(out, a, after, style);
		between = ", ";
	}
	put_left(style, out, ev, 4, between);
}

/* Whether what the call found is known: of a trace that does not tell, nothing is said. */
static bool knows_found(const struct event *ev)
{
	unsigned int i;
	const struct arg *a;

	if (is_poll(ev->row))
		return ev->args[0].type == VALUE_LIST && ev->args[0].count &&
		       value_field(&ev->args[0].items[0], FIELD_OF(pollfd, revents));
	if (ev->row->id != SC_select && ev->row->id != SC_pselect6)
		return false;
	for (i = 1; i < 4; i++) {
		if (after_of(ev->row, ev->args, i, &a))
			return true;
	}
	return false;
}

void strace_put_note(const struct print_style *style, struct buf *out, const struct event *ev)
{
	if (ev->outcome.err || ev->outcome.ret < 0 || ev->flags & EVENT_UNFINISHED ||
	    !knows_found(ev))
		return;
	buf_puts(out, " (");
	if (!ev->outcome.ret)
		buf_puts(out, "Timeout");
	else if (is_poll(ev->row))
		put_poll_note(style, out, ev);
	else
		put_select_note(style, out, ev);
	buf_putc(out, ')');
}
