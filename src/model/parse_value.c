/* SPDX-License-Identifier: MIT */
#include <string.h>
#include <sys/sysmacros.h>

#include "base/banned.h"
#include "model/parse_inside.h"
#include "model/print.h"
#include "model/vocab.h"

#define HASH_DIGITS 32
#define SIGNAL_NAME_MAX 32

/* A number as one of this kind is stored. */
static int parse_kind_number(struct parser *p, const struct arg *a, uint64_t *ret)
{
	const char *at = p->scan.pos;
	struct scan_number n;
	int r = scan_take_number(&p->scan, &n);

	if (r < 0)
		return r;
	if (kind_infos[a->kind].wire == 'i' ? !scan_signed_fits(&n, INT64_MAX) : n.minus) {
		if ((a->kind != KIND_UID && a->kind != KIND_GID) || n.magnitude != 1)
			return scan_bad_range(&p->scan, at);
		*ret = ID_NONE;
		return 0;
	}
	*ret = scan_with_sign(&n);
	return 0;
}

/* Scalars. */

static bool find_mode_type(struct scan_word w, uint64_t *ret)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(mode_types); i++) {
		if (scan_word_is(w, mode_types[i].name)) {
			*ret = mode_types[i].mode;
			return true;
		}
	}
	return false;
}

/* The names of error numbers and signals. */
static bool find_small(bool (*find)(const char *, size_t, int32_t *), struct scan_word w,
		       uint64_t *ret)
{
	int32_t v;

	if (!find(w.text, w.len, &v))
		return false;
	*ret = (uint64_t)(int64_t)v;
	return true;
}

/* What a word means for a kind; *ret_what gets what to call it when it means nothing. */
static bool find_name(const struct arg *a, struct scan_word w, uint64_t *ret, const char **ret_what)
{
	switch ((enum kind)a->kind) {
	case KIND_FLAGS:
		*ret_what = "flag";
		return vocab_parse((enum set_id)a->set, w.text, w.len, ret);
	case KIND_ENUM:
		*ret_what = "name";
		return vocab_parse((enum set_id)a->set, w.text, w.len, ret);
	case KIND_MODE:
		*ret_what = "file type";
		return find_mode_type(w, ret);
	case KIND_SIGNO:
		*ret_what = "signal";
		return find_small(signal_parse, w, ret);
	case KIND_ERRNO:
		*ret_what = "error";
		return find_small(errno_parse, w, ret);
	case KIND_DIRFD:
	case KIND_FD:
		*ret_what = "descriptor";
		*ret = (uint64_t)(int64_t)DIRFD_CWD;
		return scan_word_is(w, "AT_FDCWD");
	case KIND_ADDR:
		*ret_what = "address";
		*ret = 0;
		return scan_word_is(w, "NULL");
	default:
		*ret_what = NULL; /* has no names */
		return false;
	}
}

/* Names and numbers joined by '|'. */
int parse_names(struct parser *p, const struct arg *a, uint64_t *ret)
{
	uint64_t all = 0, v = 0;
	const char *what = NULL;
	int r = 0;

	do {
		struct scan_word w = scan_peek_word(&p->scan);

		if (scan_next_is(&p->scan, '-') || scan_next_is_digit(&p->scan)) {
			r = parse_kind_number(p, a, &v);
		} else if (!w.len) {
			r = scan_bad_expected(&p->scan, "a value");
		} else if (!find_name(a, w, &v, &what)) {
			r = what ? scan_bad_word(&p->scan, what, w)
				 : scan_bad_expected(&p->scan, "a number");
		} else {
			p->scan.pos += w.len;
		}
		if (r < 0)
			return r;
		all |= v;
	} while (scan_accept_here(&p->scan, '|'));
	*ret = all;
	return 0;
}

/* 8:1, makedev(8, 1), or the number itself. */
static int parse_dev(struct parser *p, uint64_t *ret)
{
	struct scan_word w = scan_peek_word(&p->scan);
	bool call = scan_word_is(w, "makedev");
	uint64_t major_no, minor_no;
	int r;

	if (call) {
		p->scan.pos += w.len;
		r = scan_expect(&p->scan, '(', "'('");
		if (r < 0)
			return r;
		scan_skip_space(&p->scan);
	}
	r = scan_take_unsigned(&p->scan, UINT64_MAX, &major_no);
	if (r < 0)
		return r;
	if (!call && !scan_accept_here(&p->scan, ':')) {
		*ret = major_no;
		return 0;
	}
	if (major_no > UINT32_MAX)
		return scan_bad(&p->scan, p->scan.pos, "major number out of range");
	if (call) {
		r = scan_expect(&p->scan, ',', "','");
		if (r < 0)
			return r;
		scan_skip_space(&p->scan);
	}
	r = scan_take_unsigned(&p->scan, UINT32_MAX, &minor_no);
	if (r < 0)
		return r;
	*ret = makedev((unsigned int)major_no, (unsigned int)minor_no);
	return call ? scan_expect(&p->scan, ')', "')'") : 0;
}

/* INT, SIGINT or 2. */
static int parse_signal(struct parser *p, uint64_t *ret_signo)
{
	char name[SIGNAL_NAME_MAX] = "SIG";
	struct scan_word w = scan_peek_word(&p->scan);
	int32_t signo;

	if (scan_next_is_digit(&p->scan)) {
		const char *at = p->scan.pos;
		int r = scan_take_unsigned(&p->scan, 64, ret_signo);

		return !r && !*ret_signo ? scan_bad_range(&p->scan, at) : r;
	}
	if (!w.len)
		return scan_bad_expected(&p->scan, "a signal");
	if (w.len + 3 > sizeof(name))
		return scan_bad_word(&p->scan, "signal", w);
	memcpy(name + 3, w.text, w.len);
	if (!signal_parse(name, w.len + 3, &signo) && !signal_parse(w.text, w.len, &signo))
		return scan_bad_word(&p->scan, "signal", w);
	if (signo < 1 || signo > 64)
		return scan_bad_word(&p->scan, "signal", w);
	p->scan.pos += w.len;
	*ret_signo = (uint64_t)signo;
	return 0;
}

/* [INT CHLD], ~[KILL], or the number itself. */
static int parse_sigmask(struct parser *p, uint64_t *ret)
{
	bool inverted = scan_accept_here(&p->scan, '~');
	uint64_t mask = 0, signo = 1;
	int r;

	if (!inverted && scan_next_is_digit(&p->scan))
		return scan_take_unsigned(&p->scan, UINT64_MAX, ret);
	r = scan_expect(&p->scan, '[', "'['");
	if (r < 0)
		return r;
	while (!scan_accept(&p->scan, ']')) {
		r = parse_signal(p, &signo);
		if (r < 0)
			return r;
		mask |= (uint64_t)1 << (signo - 1);
		(void)scan_accept(&p->scan, ',');
	}
	*ret = inverted ? ~mask : mask;
	return 0;
}

static int parse_scalar(struct parser *p, const struct arg *a, struct value *ret)
{
	uint64_t v = 0;
	int r;

	if (a->kind == KIND_DEV)
		r = parse_dev(p, &v);
	else if (a->kind == KIND_SIGMASK)
		r = parse_sigmask(p, &v);
	else
		r = parse_names(p, a, &v);
	if (!r)
		*ret = value_uint(v);
	return r;
}

/* Data. */

static struct value new_data(struct parser *p, struct data **ret)
{
	struct data *d = arena_alloc(p->arena, sizeof(*d));

	*d = (struct data){ 0 };
	*ret = d;
	return (struct value){ .type = VALUE_DATA, .data = d };
}

/* After the backslash. */
static bool take_escape(struct parser *p, uint8_t *ret)
{
	if (p->scan.pos == p->scan.end)
		return false;
	switch (*p->scan.pos++) {
	case 'n':
		*ret = '\n';
		return true;
	case 't':
		*ret = '\t';
		return true;
	case 'r':
		*ret = '\r';
		return true;
	case '\\':
		*ret = '\\';
		return true;
	case '"':
		*ret = '"';
		return true;
	case 'x':
		return scan_take_hex_byte(&p->scan, ret);
	}
	return false;
}

/* From the first quote to the last; *ret_escapes when the bytes are not what they mean. */
static const char *find_quote(const struct parser *p, const char *from, bool *ret_escapes)
{
	const char *s;

	for (s = from; s < p->scan.end && *s != '"'; s++) {
		if (*s != '\\')
			continue;
		*ret_escapes = true;
		if (++s == p->scan.end)
			break;
	}
	return s;
}

int parse_quoted(struct parser *p, const uint8_t **ret, size_t *ret_len)
{
	const char *from = ++p->scan.pos, *quote;
	bool escapes = false;
	uint8_t *bytes;
	size_t len = 0;

	quote = find_quote(p, from, &escapes);
	if (quote == p->scan.end)
		return scan_bad(&p->scan, from - 1, "string without an end");
	if (!escapes) {
		p->scan.pos = quote + 1;
		*ret = (const uint8_t *)from;
		*ret_len = (size_t)(quote - from);
		return 0;
	}
	bytes = arena_alloc(p->arena, (size_t)(quote - from));
	while (p->scan.pos < quote) {
		const char *at = p->scan.pos++;

		if (*at != '\\')
			bytes[len++] = (uint8_t)*at;
		else if (!take_escape(p, &bytes[len++]) || p->scan.pos > quote)
			return scan_bad(&p->scan, at, "unknown escape");
	}
	p->scan.pos = quote + 1;
	*ret = bytes;
	*ret_len = len;
	return 0;
}

static int parse_string_data(struct parser *p, struct value *ret)
{
	struct data *d;
	size_t len;
	int r;

	*ret = new_data(p, &d);
	r = parse_quoted(p, &d->bytes, &len);
	if (r < 0)
		return r;
	d->len_bytes = d->kept_bytes = len;
	if (scan_accept_here(&p->scan, '/')) {
		const char *at = p->scan.pos;

		r = scan_take_unsigned(&p->scan, UINT64_MAX, &d->len_bytes);
		if (!r && d->len_bytes < d->kept_bytes)
			r = scan_bad(&p->scan, at, "length is less than what is there");
	}
	return r;
}

int parse_hash(struct parser *p, struct hash128 *ret)
{
	struct scan_word w = scan_peek_word(&p->scan);

	if (w.len != HASH_DIGITS ||
	    !scan_convert((struct scan_word){ w.text, 16 }, 16, &ret->high) ||
	    !scan_convert((struct scan_word){ w.text + 16, 16 }, 16, &ret->low))
		return scan_bad(&p->scan, p->scan.pos, "expected a hash of 32 hex digits");
	p->scan.pos += w.len;
	return 0;
}

/* How many hashes stand here, so that there is room for them before they are read. */
static size_t count_pieces(const struct parser *p)
{
	const char *s = p->scan.pos;
	size_t nr = 1;

	while (s < p->scan.end && (scan_is_word_char(*s) || *s == '@' || *s == '%' || *s == '+'))
		nr += *s++ == '+';
	return nr;
}

static int parse_ref_lengths(struct parser *p, size_t nr_pieces, struct data *d)
{
	const char *at;
	int r;

	if (!scan_accept_here(&p->scan, '/'))
		return scan_bad_expected(&p->scan, "'/' and a length");
	at = p->scan.pos;
	r = scan_take_unsigned(&p->scan, UINT64_MAX, &d->len_bytes);
	d->kept_bytes = d->len_bytes;
	if (!r && scan_accept_here(&p->scan, '/')) {
		at = p->scan.pos;
		r = scan_take_unsigned(&p->scan, UINT64_MAX, &d->kept_bytes);
	}
	if (r < 0)
		return r;
	if (d->kept_bytes > d->len_bytes)
		return scan_bad(&p->scan, at, "more is kept than there was");
	if (data_nr_pieces(d) != nr_pieces)
		return scan_bad(&p->scan, at, "length does not fit %zu pieces", nr_pieces);
	return 0;
}

/* @HASH is stored, %HASH is not; a later piece without a mark is as the one before it. */
static int parse_refs(struct parser *p, struct value *ret)
{
	size_t i, nr = count_pieces(p);
	struct blob_ref *refs = arena_alloc(p->arena, nr * sizeof(*refs));
	uint64_t place = 0;
	struct data *d;
	int r;

	*ret = new_data(p, &d);
	for (i = 0; i < nr; i++) {
		if (i && !scan_accept_here(&p->scan, '+'))
			return scan_bad_expected(&p->scan, "'+'");
		if (scan_accept_here(&p->scan, '@'))
			place = BLOB_PLACE_UNKNOWN;
		else if (scan_accept_here(&p->scan, '%'))
			place = 0;
		r = parse_hash(p, &refs[i].hash);
		if (r < 0)
			return r;
		refs[i].blob = place;
	}
	d->refs = refs;
	return parse_ref_lengths(p, nr, d);
}

static int parse_hash_data(struct parser *p, struct value *ret)
{
	uint8_t *bytes = arena_alloc(p->arena, HASH_DIGITS / 2);
	const char *at = p->scan.pos;
	unsigned int i;

	for (i = 0; i < HASH_DIGITS / 2; i++) {
		if (!scan_take_hex_byte(&p->scan, &bytes[i]))
			return scan_bad(&p->scan, at, "expected a hash of 32 hex digits");
	}
	*ret = value_bytes(p->arena, bytes, HASH_DIGITS / 2);
	return 0;
}

static int parse_data(struct parser *p, const struct arg *a, struct value *ret)
{
	if (scan_next_is(&p->scan, '"'))
		return parse_string_data(p, ret);
	if (scan_next_is(&p->scan, '@') || scan_next_is(&p->scan, '%'))
		return parse_refs(p, ret);
	if (a->kind == KIND_HASH && p->scan.pos < p->scan.end && scan_hex_digit(*p->scan.pos) >= 0)
		return parse_hash_data(p, ret);
	return scan_bad_expected(&p->scan, "a string");
}

/* Structs and lists. */

/* Reads NAME= and returns which of the arguments or fields it is. */
int parse_arg_name(struct parser *p, const struct arg *args, unsigned int nr_args, const char *what,
		   unsigned int *ret)
{
	struct scan_word w;
	unsigned int i;
	int r = scan_take_word(&p->scan, what, &w);

	if (r < 0)
		return r;
	for (i = 0; i < nr_args; i++) {
		if (args[i].kind != KIND_HOLE && scan_word_is(w, args[i].name))
			break;
	}
	if (i == nr_args)
		return scan_bad_word(&p->scan, what, w);
	*ret = i;
	return scan_expect(&p->scan, '=', "'='");
}

static int parse_struct(struct parser *p, const struct arg *a, struct value *ret)
{
	const struct struct_desc *desc = &struct_descs[a->struct_id];
	struct value values[STRUCT_FIELDS_MAX];
	uint64_t present = 0, left;
	struct value *item;
	unsigned int n = 0;
	int r = scan_expect(&p->scan, '{', "'{'");

	if (r < 0)
		return r;
	while (!scan_accept(&p->scan, '}')) {
		const char *at;

		if (present) {
			r = scan_expect(&p->scan, ',', "',' or '}'");
			if (r < 0)
				return r;
		}
		scan_skip_space(&p->scan);
		at = p->scan.pos;
		r = parse_arg_name(p, desc->fields, desc->nr_fields, "field", &n);
		if (r < 0)
			return r;
		if (present >> n & 1)
			return scan_bad(&p->scan, at, "field '%s' given twice",
					desc->fields[n].name);
		r = parse_any(p, &desc->fields[n], &values[n]);
		if (r < 0)
			return r;
		present |= (uint64_t)1 << n;
	}
	*ret = value_struct(p->arena, present);
	item = ret->fields->items;
	for (left = present; left; left &= left - 1)
		*item++ = values[__builtin_ctzll(left)];
	return 0;
}

static int parse_list(struct parser *p, const struct arg *a, struct value *ret)
{
	size_t base = p->stack.len, count;
	struct arg elem = *a;
	struct value v;
	int r = scan_expect(&p->scan, '[', "'['");

	elem.kind = a->elem ? a->elem : KIND_STRUCT;
	if (r < 0)
		return r;
	while (!scan_accept(&p->scan, ']')) {
		if (p->stack.len > base) {
			r = scan_expect(&p->scan, ',', "',' or ']'");
			if (r < 0)
				return r;
		}
		r = parse_any(p, &elem, &v);
		if (r < 0)
			return r;
		VEC_PUSH(&p->stack, v);
	}
	count = p->stack.len - base;
	if (count > UINT32_MAX)
		return scan_bad(&p->scan, p->scan.pos, "list is too long");
	*ret = (struct value){ .type = VALUE_LIST };
	if (count) {
		*ret = value_list(p->arena, (uint32_t)count);
		memcpy(ret->items, p->stack.items + base, count * sizeof(v));
	}
	p->stack.len = base;
	return 0;
}

/* What any pointer can be instead of its target. 1: it was, 0: it was not. */
static int parse_no_target(struct parser *p, const struct arg *a, struct value *ret)
{
	struct data *d;
	struct scan_word w = scan_peek_word(&p->scan);
	int r;

	if (scan_accept_here(&p->scan, '&')) {
		ret->type = VALUE_ADDR;
		r = scan_take_unsigned(&p->scan, UINT64_MAX, &ret->u);
		return r < 0 ? r : 1;
	}
	if (scan_word_is(w, "NULL")) {
		p->scan.pos += w.len;
		ret->type = VALUE_NULL;
		return 1;
	}
	if (!scan_accept_here(&p->scan, '?'))
		return 0;
	ret->type = VALUE_NONE;
	if (kind_infos[a->kind].wire != 'd' || !scan_accept_here(&p->scan, '/'))
		return 1;
	*ret = new_data(p, &d);
	r = scan_take_unsigned(&p->scan, UINT64_MAX, &d->len_bytes);
	return r < 0 ? r : 1;
}

static int parse_target(struct parser *p, const struct arg *a, struct value *ret)
{
	int r = parse_no_target(p, a, ret);

	if (r)
		return r < 0 ? r : 0;
	switch (kind_infos[a->kind].wire) {
	case 's':
		return parse_struct(p, a, ret);
	case 'l':
		return parse_list(p, a, ret);
	}
	return parse_data(p, a, ret);
}

int parse_any(struct parser *p, const struct arg *a, struct value *ret)
{
	int r;

	*ret = (struct value){ 0 };
	scan_skip_space(&p->scan);
	if (strchr("ui", kind_infos[a->kind].wire))
		return parse_scalar(p, a, ret);
	if (p->depth == PARSE_DEPTH_MAX)
		return scan_bad(&p->scan, p->scan.pos, "nested too deeply");
	p->depth++;
	r = parse_target(p, a, ret);
	p->depth--;
	return r;
}
