/* SPDX-License-Identifier: MIT */
#include "import/strace_dump.h"

#include <stdlib.h>
#include <string.h>

#include "base/banned.h"
#include "model/fields.h"
#include "model/scan.h"

#define BYTES_PER_LINE 16

void strace_dump_release(struct strace_dump *d)
{
	buf_release(&d->bytes);
	VEC_RELEASE(&d->starts);
}

void strace_dump_clear(struct strace_dump *d)
{
	buf_clear(&d->bytes);
	d->starts.len = 0;
}

bool strace_dump_is_below(const char *text, size_t len)
{
	return len > 2 && text[0] == ' ' && (text[1] == '|' || text[1] == '*' || text[1] == '>') &&
	       text[2] == ' ';
}

void strace_dump_add(struct strace_dump *d, const char *line, size_t len)
{
	const char *p = line + 2, *end = line + len;
	unsigned int nr;

	if (line[1] == '*')
		VEC_PUSH(&d->starts, d->bytes.len);
	if (line[1] != '|')
		return;
	while (p < end && *p == ' ')
		p++;
	while (p < end && scan_hex_digit(*p) >= 0)
		p++; /* the offset */
	/* Two columns of eight; a short line ends in blanks. */
	for (nr = 0; nr < BYTES_PER_LINE; nr++) {
		const char *digits = p + (nr == 0 ? 2 : nr == BYTES_PER_LINE / 2 ? 2 : 1);

		if (end - digits < 2 || scan_hex_digit(digits[0]) < 0 ||
		    scan_hex_digit(digits[1]) < 0)
			return;
		buf_putc(&d->bytes,
			 (char)(scan_hex_digit(digits[0]) << 4 | scan_hex_digit(digits[1])));
		p = digits + 2;
	}
}

static void set_data(const struct strace_dump *d, struct arena *arena, size_t from, size_t to,
		     struct value *v)
{
	struct value whole = value_bytes(arena, d->bytes.data + from, to - from);

	if (v->type == VALUE_DATA && v->data->len_bytes > to - from)
		return; /* less than the line itself says: not this argument's */
	*v = whole;
}

static void apply_to_vector(const struct strace_dump *d, struct arena *arena, struct value *list)
{
	size_t i;

	for (i = 0; i < d->starts.len && i < list->count; i++) {
		size_t to = i + 1 < d->starts.len ? d->starts.items[i + 1] : d->bytes.len;
		struct value *base = value_field(&list->items[i], FIELD_OF(iovec, iov_base));

		if (base && to > d->starts.items[i])
			set_data(d, arena, d->starts.items[i], to, base);
	}
}

void strace_dump_apply(const struct strace_dump *d, struct arena *arena, struct event *ev)
{
	unsigned int i;

	if (!d->bytes.len)
		return;
	for (i = 0; i < ev->row->nr_args; i++) {
		const struct arg *a = &ev->row->args[i];

		if (a->kind == KIND_BUF) {
			set_data(d, arena, 0, d->bytes.len, &ev->args[i]);
			return;
		}
		if (a->struct_id == STRUCT_iovec && ev->args[i].type == VALUE_LIST) {
			apply_to_vector(d, arena, &ev->args[i]);
			return;
		}
	}
}
