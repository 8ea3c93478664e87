/* SPDX-License-Identifier: MIT */
#include "model/print.h"

#include <string.h>
#include <sys/sysmacros.h>

#include "base/banned.h"
#include "model/vocab.h"

const struct print_style print_human = { .form = PRINT_HUMAN, .string_max = 32, .items_max = 32 };
const struct print_style print_exact = { .form = PRINT_EXACT, .full = true };

const struct mode_type mode_types[NR_MODE_TYPES] = {
	{ "S_IFREG", 0100000 }, { "S_IFDIR", 0040000 },	 { "S_IFLNK", 0120000 },
	{ "S_IFIFO", 0010000 }, { "S_IFSOCK", 0140000 }, { "S_IFCHR", 0020000 },
	{ "S_IFBLK", 0060000 },
};

/* A struct with more fields than this is shown to people by its telling fields. */
#define SHORT_STRUCT_FIELDS 8
#define DECIMAL_MAX 20

static bool is_exact(const struct print_style *style)
{
	return style->form == PRINT_EXACT;
}

/* Numbers. buf_printf() would do, at several times the cost. */

static void put_unsigned(struct buf *out, uint64_t v)
{
	char digits[DECIMAL_MAX];
	size_t at = sizeof(digits);

	do {
		digits[--at] = (char)('0' + v % 10);
		v /= 10;
	} while (v);
	buf_put(out, digits + at, sizeof(digits) - at);
}

static void put_signed(struct buf *out, int64_t v)
{
	if (v < 0)
		buf_putc(out, '-');
	put_unsigned(out, v < 0 ? -(uint64_t)v : (uint64_t)v);
}

static void put_hex_digits(struct buf *out, uint64_t v, unsigned int nr_digits)
{
	static const char hex[] = "0123456789abcdef";
	uint8_t *p = buf_reserve(out, nr_digits);
	unsigned int i;

	for (i = nr_digits; i-- > 0; v >>= 4)
		p[i] = (uint8_t)hex[v & 15];
	out->len += nr_digits;
}

static void put_hex(struct buf *out, uint64_t v)
{
	if (!v) {
		buf_putc(out, '0');
		return;
	}
	buf_puts(out, "0x");
	put_hex_digits(out, v, (67 - (unsigned int)__builtin_clzll(v)) / 4);
}

void print_hash(struct buf *out, struct hash128 hash)
{
	put_hex_digits(out, hash.high, 16);
	put_hex_digits(out, hash.low, 16);
}

/* Text. */

static void put_escape(struct buf *out, uint8_t c)
{
	buf_putc(out, '\\');
	switch (c) {
	case '\n':
		buf_putc(out, 'n');
		break;
	case '\t':
		buf_putc(out, 't');
		break;
	case '\r':
		buf_putc(out, 'r');
		break;
	case '\\':
	case '"':
		buf_putc(out, (char)c);
		break;
	default:
		buf_putc(out, 'x');
		put_hex_digits(out, c, 2);
	}
}

static void put_escaped(struct buf *out, const uint8_t *bytes, size_t len)
{
	size_t i, plain = 0; /* where the run of plain bytes began */

	if (!len)
		return; /* then there may be no bytes at all */
	for (i = 0; i < len; i++) {
		uint8_t c = bytes[i];

		if (LIKELY(c >= 0x20 && c < 0x7f && c != '"' && c != '\\'))
			continue;
		buf_put(out, bytes + plain, i - plain);
		put_escape(out, c);
		plain = i + 1;
	}
	buf_put(out, bytes + plain, len - plain);
}

void print_quoted(struct buf *out, const void *bytes, size_t len)
{
	buf_putc(out, '"');
	put_escaped(out, bytes, len);
	buf_putc(out, '"');
}

/* Scalars. */

static void put_mode(struct buf *out, uint64_t mode)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(mode_types); i++) {
		if ((mode & ~(uint64_t)07777) == mode_types[i].mode) {
			buf_puts(out, mode_types[i].name);
			buf_putc(out, '|');
			mode &= 07777;
			break;
		}
	}
	buf_printf(out, mode ? "0%llo" : "%llo", (unsigned long long)mode);
}

static void put_dev(struct buf *out, uint64_t dev, const struct print_style *style)
{
	if (is_exact(style))
		buf_printf(out, "%u:%u", major(dev), minor(dev));
	else
		buf_printf(out, "makedev(0x%x, 0x%x)", major(dev), minor(dev));
}

static const char *signal_short_name(unsigned int signo)
{
	const char *name = signal_name((int)signo);

	return name && !strncmp(name, "SIG", 3) ? name + 3 : NULL;
}

/* Bit n is signal n + 1. Where most bits are set, the others are listed: ~[KILL STOP]. */
static void put_sigmask(struct buf *out, uint64_t mask)
{
	const char *between = "";
	uint64_t left;

	if (__builtin_popcountll(mask) > 32) {
		buf_putc(out, '~');
		mask = ~mask;
	}
	buf_putc(out, '[');
	for (left = mask; left; left &= left - 1) {
		unsigned int signo = (unsigned int)__builtin_ctzll(left) + 1;
		const char *name = signal_short_name(signo);

		buf_puts(out, between);
		if (name)
			buf_puts(out, name);
		else
			put_unsigned(out, signo);
		between = " ";
	}
	buf_putc(out, ']');
}

static void put_fd(struct buf *out, int64_t fd, const struct print_style *style)
{
	const char *path = NULL;

	put_signed(out, fd);
	if (!is_exact(style) && style->fd_path && fd >= 0 && fd <= INT32_MAX)
		path = style->fd_path(style->ctx, (int)fd);
	if (!path)
		return;
	buf_putc(out, '<');
	put_escaped(out, (const uint8_t *)path, strlen(path));
	buf_putc(out, '>');
}

static void put_name_or_number(struct buf *out, const char *name, int64_t number)
{
	if (name)
		buf_puts(out, name);
	else
		put_signed(out, number);
}

static const char *small_number_name(const char *(*name_of)(int), int64_t number)
{
	return number > 0 && number <= INT32_MAX ? name_of((int)number) : NULL;
}

static void put_address(struct buf *out, uint64_t addr, const struct print_style *style)
{
	if (!addr && !is_exact(style))
		buf_puts(out, "NULL");
	else
		put_hex(out, addr);
}

static void put_number(struct buf *out, const struct arg *a, const struct value *v,
		       const struct print_style *style)
{
	switch ((enum kind)a->kind) {
	case KIND_FLAGS:
		vocab_print_flags(out, (enum set_id)a->set, v->u);
		break;
	case KIND_ENUM:
		vocab_print_enum(out, (enum set_id)a->set, v->i);
		break;
	case KIND_FD:
		put_fd(out, v->i, style);
		break;
	case KIND_DIRFD:
		if (v->i == DIRFD_CWD)
			buf_puts(out, "AT_FDCWD");
		else
			put_fd(out, v->i, style);
		break;
	case KIND_MODE:
		put_mode(out, v->u);
		break;
	case KIND_DEV:
		put_dev(out, v->u, style);
		break;
	case KIND_UID:
	case KIND_GID:
		if (v->u == ID_NONE)
			buf_puts(out, "-1");
		else
			put_unsigned(out, v->u);
		break;
	case KIND_SIGNO:
		put_name_or_number(out, small_number_name(signal_name, v->i), v->i);
		break;
	case KIND_ERRNO:
		put_name_or_number(out, small_number_name(errno_name, v->i), v->i);
		break;
	case KIND_SIGMASK:
		put_sigmask(out, v->u);
		break;
	case KIND_ADDR:
		put_address(out, v->u, style);
		break;
	case KIND_HEX:
		put_hex(out, v->u);
		break;
	default:
		if (kind_infos[a->kind].wire == 'i')
			put_signed(out, v->i);
		else
			put_unsigned(out, v->u);
	}
}

/* Data. */

/* @HASH+HASH/len or @HASH/len/kept; % instead of @ from the first piece on that is not stored. */
static void put_refs(struct buf *out, const struct data *d)
{
	uint64_t i, nr = data_nr_pieces(d);
	char mark = 0;

	for (i = 0; i < nr; i++) {
		const struct blob_ref *ref = &d->refs[i];
		char own = ref->blob ? '@' : '%';

		if (i)
			buf_putc(out, '+');
		if (own != mark)
			buf_putc(out, own);
		mark = own;
		print_hash(out, ref->hash);
	}
	buf_putc(out, '/');
	put_unsigned(out, d->len_bytes);
	if (d->kept_bytes < d->len_bytes) {
		buf_putc(out, '/');
		put_unsigned(out, d->kept_bytes);
	}
}

static bool is_plain_hash(const struct arg *a, const struct data *d)
{
	return a->kind == KIND_HASH && d->bytes && !d->refs && d->kept_bytes == 16 &&
	       d->len_bytes == 16;
}

static void put_hash_bytes(struct buf *out, const uint8_t *bytes)
{
	unsigned int i;

	for (i = 0; i < 16; i++)
		put_hex_digits(out, bytes[i], 2);
}

static void put_data_exact(struct buf *out, const struct arg *a, const struct data *d)
{
	if (is_plain_hash(a, d)) {
		put_hash_bytes(out, d->bytes);
	} else if (d->len_bytes && !d->kept_bytes) {
		buf_puts(out, "?/");
		put_unsigned(out, d->len_bytes);
	} else if (d->kept_bytes && d->refs) {
		put_refs(out, d);
	} else {
		print_quoted(out, d->bytes, d->kept_bytes);
		if (d->kept_bytes < d->len_bytes) {
			buf_putc(out, '/');
			put_unsigned(out, d->len_bytes);
		}
	}
}

/* The bytes to show to people, at most max of them; false when none are at hand. */
static bool find_bytes(const struct data *d, uint64_t max, const struct print_style *style,
		       const uint8_t **ret, uint64_t *ret_len)
{
	if (d->bytes || !d->len_bytes) {
		*ret = d->bytes;
		*ret_len = d->kept_bytes < max ? d->kept_bytes : max;
		return d->kept_bytes || !d->len_bytes;
	}
	if (!style->load || !d->kept_bytes)
		return false;
	*ret_len = style->load(style->ctx, d, max < d->kept_bytes ? max : d->kept_bytes, ret);
	return *ret_len > 0;
}

static void put_data_human(struct buf *out, const struct arg *a, const struct data *d,
			   const struct print_style *style)
{
	uint64_t max = a->kind == KIND_PATH ? BLOB_MAX_BYTES : style->string_max;
	const uint8_t *bytes;
	uint64_t len;

	if (is_plain_hash(a, d)) {
		put_hash_bytes(out, d->bytes);
		return;
	}
	if (!find_bytes(d, max, style, &bytes, &len)) {
		buf_putc(out, '<');
		put_unsigned(out, d->len_bytes);
		buf_puts(out, " bytes>");
		return;
	}
	print_quoted(out, bytes, len);
	if (len < d->len_bytes)
		buf_puts(out, "...");
}

/* Structs and lists. */

/* Of a long struct, people are shown what says something: not addresses, counters and times. */
static bool is_telling(const struct arg *field, const struct value *v)
{
	switch ((enum kind)field->kind) {
	case KIND_MODE:
	case KIND_SIZE:
	case KIND_OFF:
	case KIND_FLAGS:
	case KIND_ENUM:
	case KIND_SIGNO:
	case KIND_ERRNO:
		return v->u != 0;
	case KIND_FD:
	case KIND_DIRFD:
	case KIND_PATH:
	case KIND_STR:
	case KIND_BUF:
		return true;
	default:
		return false;
	}
}

static void put_struct(struct buf *out, const struct arg *a, const struct value *v,
		       const struct print_style *style)
{
	const struct struct_desc *desc = &struct_descs[a->struct_id];
	bool only_telling = !style->full && v->count > SHORT_STRUCT_FIELDS;
	const struct value *item = v->fields->items;
	const char *between = "";
	uint64_t left;

	buf_putc(out, '{');
	for (left = v->fields->present; left; left &= left - 1, item++) {
		unsigned int n = (unsigned int)__builtin_ctzll(left);
		const struct arg *field;

		if (n >= desc->nr_fields)
			break;
		field = &desc->fields[n];
		if (only_telling && !is_telling(field, item))
			continue;
		buf_puts(out, between);
		buf_puts(out, field->name);
		buf_putc(out, '=');
		print_value(out, field, item, style);
		between = ", ";
	}
	if (only_telling)
		buf_printf(out, "%s...", between);
	buf_putc(out, '}');
}

static void put_list(struct buf *out, const struct arg *a, const struct value *v,
		     const struct print_style *style)
{
	struct arg elem = *a;
	uint32_t i;

	elem.kind = a->elem ? a->elem : KIND_STRUCT;
	if (!is_exact(style) && a->kind == KIND_PTR && a->elem == KIND_SIGMASK && v->count == 1) {
		print_value(out, &elem, v->items, style);
		return;
	}
	buf_putc(out, '[');
	for (i = 0; i < v->count; i++) {
		if (i)
			buf_puts(out, ", ");
		if (!is_exact(style) && i == style->items_max) {
			buf_puts(out, "...");
			break;
		}
		print_value(out, &elem, &v->items[i], style);
	}
	buf_putc(out, ']');
}

void print_value(struct buf *out, const struct arg *a, const struct value *v,
		 const struct print_style *style)
{
	switch ((enum value_type)v->type) {
	case VALUE_NONE:
		buf_putc(out, '?');
		break;
	case VALUE_NULL:
		buf_puts(out, "NULL");
		break;
	case VALUE_ADDR:
		buf_puts(out, is_exact(style) ? "&0x" : "0x");
		buf_printf(out, "%llx", (unsigned long long)v->u);
		break;
	case VALUE_INT:
		put_number(out, a, v, style);
		break;
	case VALUE_DATA:
		if (is_exact(style))
			put_data_exact(out, a, v->data);
		else
			put_data_human(out, a, v->data, style);
		break;
	case VALUE_STRUCT:
		put_struct(out, a, v, style);
		break;
	case VALUE_LIST:
		put_list(out, a, v, style);
		break;
	}
}

/* Arguments. */

static void put_named(struct buf *out, const struct arg *a, const struct value *v,
		      const struct print_style *style)
{
	buf_puts(out, a->name);
	buf_putc(out, '=');
	print_value(out, a, v, style);
}

static bool is_stored(const struct arg *a, const struct value *v)
{
	return a->kind != KIND_HOLE && v->type != VALUE_NONE;
}

static void print_named_args(struct buf *out, const struct row *row, const struct value *args,
			     const struct print_style *style)
{
	const char *between = "";
	unsigned int i;

	for (i = 0; i < row->nr_args; i++) {
		if (!is_stored(&row->args[i], &args[i]))
			continue;
		buf_puts(out, between);
		put_named(out, &row->args[i], &args[i], style);
		between = ", ";
	}
}

/* A register that selects the variant is not stored: its value is what the row stands for. */
static void put_selector(struct buf *out, const struct row *row, const struct arg *a)
{
	const struct row_variant *variant = row_variant_of(row);

	if (!variant || &row->args[variant->reg] != a)
		buf_putc(out, '?');
	else if (vocab_name((enum set_id)a->set, variant->value))
		vocab_print_enum(out, (enum set_id)a->set, (int64_t)variant->value);
	else
		vocab_print_flags(out, (enum set_id)a->set, variant->value);
}

static void print_positional_args(struct buf *out, const struct row *row, const struct value *args,
				  const struct print_style *style)
{
	const char *between = "";
	unsigned int i;

	for (i = 0; i < row->nr_args; i++) {
		const struct arg *a = &row->args[i];

		if (a->reg != REG_OWN || (a->kind == KIND_HOLE && !a->set))
			continue;
		buf_puts(out, between);
		if (a->kind == KIND_HOLE)
			put_selector(out, row, a);
		else if (!style->arg || !style->arg(style->ctx, out, row, args, i))
			print_value(out, a, &args[i], style);
		between = ", ";
	}
}

void print_args(struct buf *out, const struct row *row, const struct value *args,
		const struct print_style *style)
{
	if (is_exact(style) || row->sort != ROW_CALL)
		print_named_args(out, row, args, style);
	else
		print_positional_args(out, row, args, style);
}

static void print_extras(struct buf *out, const struct event *ev, const struct print_style *style)
{
	const char *before = " {";
	unsigned int i;

	for (i = 0; i < ev->row->nr_args; i++) {
		const struct arg *a = &ev->row->args[i];

		if (a->reg == REG_OWN || !is_stored(a, &ev->args[i]))
			continue;
		buf_puts(out, before);
		put_named(out, a, &ev->args[i], style);
		before = ", ";
	}
	if (*before == ',')
		buf_putc(out, '}');
}

/* Outcomes. */

static void put_result(struct buf *out, const struct event *ev, const struct print_style *style)
{
	int64_t ret = ev->outcome.ret;

	if (ret < 0) {
		put_signed(out, ret);
		return;
	}
	switch ((enum row_result)ev->row->result) {
	case RESULT_ADDRESS:
		put_hex(out, (uint64_t)ret);
		break;
	case RESULT_MODE:
		put_mode(out, (uint64_t)ret);
		break;
	case RESULT_OPEN_FLAGS:
		vocab_print_flags(out, SET_open_flags, (uint64_t)ret);
		break;
	case RESULT_NEW_FD:
		put_fd(out, ret, style);
		break;
	default:
		put_signed(out, ret);
	}
}

static void put_error(struct buf *out, int err, const struct print_style *style)
{
	const char *words;

	buf_putc(out, ' ');
	put_name_or_number(out, small_number_name(errno_name, err), err);
	if (is_exact(style))
		return;
	words = err > 0 ? strerrordesc_np(err) : NULL;
	if (words)
		buf_printf(out, " (%s)", words);
}

/* " = ?" stands for no outcome; a writer that noted one all the same is believed. */
static bool is_unfinished(const struct event *ev)
{
	return ev->flags & EVENT_UNFINISHED && !ev->outcome.ret && !ev->outcome.err;
}

void print_outcome(struct buf *out, const struct event *ev, const struct print_style *style)
{
	if (is_unfinished(ev)) {
		buf_puts(out, " = ?");
		return;
	}
	if (ev->row->sort != ROW_CALL && !ev->outcome.ret && !ev->outcome.err)
		return;
	buf_puts(out, " = ");
	put_result(out, ev, style);
	if (ev->outcome.err)
		put_error(out, ev->outcome.err, style);
}

const char *print_row_name(const struct row *row, enum print_form form)
{
	const struct row_variant *variant = NULL;

	if (form == PRINT_HUMAN && row->sort == ROW_CALL)
		variant = row_variant_of(row);
	return variant ? row_by_id(variant->base)->name : row->name;
}

void print_call(struct buf *out, const struct event *ev, const struct print_style *style)
{
	buf_puts(out, print_row_name(ev->row, style->form));
	buf_putc(out, '(');
	print_args(out, ev->row, ev->args, style);
	buf_putc(out, ')');
	print_outcome(out, ev, style);
	if (!is_exact(style) && style->extras && ev->row->sort == ROW_CALL)
		print_extras(out, ev, style);
}

/* Lines. */

static void put_thread(struct buf *out, uint32_t pid, uint32_t tid, uint32_t generation)
{
	put_unsigned(out, pid);
	buf_putc(out, '/');
	put_unsigned(out, tid);
	if (generation) {
		buf_putc(out, '@');
		put_unsigned(out, generation);
	}
}

static const char *put_detail(struct buf *out, const char *before, const char *name, uint64_t v)
{
	if (!v)
		return before;
	buf_puts(out, before);
	buf_puts(out, name);
	put_unsigned(out, v);
	return ", ";
}

static void put_details(struct buf *out, const struct event *ev)
{
	unsigned int flags = ev->flags;
	const char *before = " {";

	if (is_unfinished(ev))
		flags &= ~(unsigned int)EVENT_UNFINISHED; /* said by " = ?" */
	if (flags) {
		buf_puts(out, " {flags=");
		vocab_print_flags(out, SET_event_flags, flags);
		before = ", ";
	}
	before = put_detail(out, before, "cpu=", ev->cpu_ns);
	before = put_detail(out, before, "held=", ev->held_ns);
	before = put_detail(out, before, "held_before=", ev->held_before_ns);
	before = put_detail(out, before, "held_inside=", ev->held_inside_ns);
	before = put_detail(out, before, "gap_cpu=", ev->gap_cpu_ns);
	before = put_detail(out, before, "ppid=", ev->ppid);
	before = put_detail(out, before, "pgid=", ev->pgid);
	before = put_detail(out, before, "origin=", ev->origin);
	if (*before == ',')
		buf_putc(out, '}');
}

void print_event_line(struct buf *out, const struct event *ev, uint32_t generation)
{
	int64_t duration_ns = (int64_t)(ev->exit_ns - ev->enter_ns);

	put_thread(out, ev->pid, ev->tid, generation);
	buf_puts(out, " #");
	put_unsigned(out, ev->seq);
	buf_putc(out, ' ');
	put_unsigned(out, ev->enter_ns);
	if (duration_ns >= 0)
		buf_putc(out, '+');
	put_signed(out, duration_ns);
	buf_putc(out, ' ');
	print_call(out, ev, &print_exact);
	put_details(out, ev);
}

void print_item_line(struct buf *out, const struct item *item)
{
	buf_puts(out, item->row->name);
	buf_putc(out, '(');
	print_args(out, item->row, item->args, &print_exact);
	buf_putc(out, ')');
}

void print_blob_line(struct buf *out, struct hash128 hash, const void *bytes, size_t len)
{
	buf_puts(out, "blob ");
	print_hash(out, hash);
	buf_putc(out, ' ');
	print_quoted(out, bytes, len);
}

void print_stream_line(struct buf *out, uint32_t pid, uint32_t tid, uint32_t generation,
		       uint64_t nr_events)
{
	buf_puts(out, "stream ");
	put_thread(out, pid, tid, generation);
	buf_putc(out, ' ');
	put_unsigned(out, nr_events);
}
