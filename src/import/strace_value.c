/* SPDX-License-Identifier: MIT */
#include "import/strace_value.h"

#include <string.h>
#include <sys/sysmacros.h>

#include "base/attrs.h"
#include "base/banned.h"
#include "base/mem.h"
#include "model/kernel_structs.h"

/* How long a list can be that is read without knowing its length. */
#define LIST_STEP 32

static bool next_is(const struct strace_text *t, char c)
{
	return t->pos < t->end && *t->pos == c;
}

static const bool word_chars[256] = {
	['0' ... '9'] = true,
	['A' ... 'Z'] = true,
	['_'] = true,
	['a' ... 'z'] = true,
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static size_t word_len(const struct strace_text *t)
{
	const char *p = t->pos;

	while (p < t->end && word_chars[(uint8_t)*p])
		p++;
	return (size_t)(p - t->pos);
}

/* Notes the place that is not understood. */
static bool not_understood(struct strace_text *t)
{
	const char *at = t->pos;

	strace_skip(t);
	if (!t->bad) {
		t->bad = at;
		t->bad_len = (size_t)(t->pos - at);
	}
	return false;
}

static void skip_space(struct strace_text *t)
{
	while (next_is(t, ' '))
		t->pos++;
}

/* Comments explain what stands before them. */
static void skip_comments(struct strace_text *t)
{
	while (t->end - t->pos > 3 && t->pos[0] == ' ' && t->pos[1] == '/' && t->pos[2] == '*') {
		const char *stop = memmem(t->pos + 3, (size_t)(t->end - t->pos - 3), "*/", 2);

		t->pos = stop ? stop + 2 : t->end;
	}
}

/* Scalars. */

/* As a value of this width is stored: the upper half of a register is not part of it. */
static uint64_t fit(const struct arg *a, uint64_t v)
{
	const struct kind_info *k = &kind_infos[a->kind];
	unsigned int width = a->width_bytes ? a->width_bytes : k->width_bytes;

	if (width == 4)
		return k->wire == 'i' ? (uint64_t)(int64_t)(int32_t)v : (uint32_t)v;
	return v;
}

/* NAME(a, b, ...): its arguments are numbers or names, or a string. */
static bool take_macro(struct strace_text *t, const char *name, size_t len, uint64_t *ret)
{
	uint64_t v[4] = { 0 };
	unsigned int nr = 0;
	struct arg any = { .kind = KIND_ULONG };
	struct value value;

	for (t->pos++; nr < ARRAY_LEN(v) && t->pos < t->end && !next_is(t, ')'); nr++) {
		if (!strace_value(t, &any, &value, NULL))
			return false;
		v[nr] = value.u;
		if (next_is(t, ','))
			t->pos++;
		skip_space(t);
	}
	if (!next_is(t, ')'))
		return false;
	t->pos++;
	if (len == 7 && !memcmp(name, "makedev", 7))
		*ret = makedev((unsigned int)v[0], (unsigned int)v[1]);
	else if (len == 4 && !memcmp(name, "_IOC", 4))
		*ret = v[0] << 30 | (v[3] & 0x3fff) << 16 | (v[1] & 0xff) << 8 | (v[2] & 0xff);
	else if (len == 5 && (!memcmp(name, "htons", 5) || !memcmp(name, "htonl", 5)))
		*ret = v[0];
	else
		return false;
	return true;
}

/* One name or number. */
static bool take_term(struct strace_text *t, const struct arg *a, uint64_t *ret)
{
	const char *word = t->pos;
	size_t len;

	if (t->pos < t->end && (is_digit(*t->pos) || *t->pos == '-')) {
		uint64_t factor;

		if (!strace_number(t, ret))
			return false;
		if (next_is(t, '*') && t->end - t->pos > 1 && is_digit(t->pos[1])) {
			t->pos++;
			if (!strace_number(t, &factor))
				return false;
			*ret *= factor;
		}
		return true;
	}
	len = word_len(t);
	if (!len)
		return false;
	t->pos += len;
	if (next_is(t, '('))
		return take_macro(t, word, len, ret);
	return strace_names_word(t->names, (enum set_id)a->set, word, len, ret);
}

/* `A or B`: the same number means both; one of them is of our vocabulary. */
static bool take_alternatives(struct strace_text *t, const struct arg *a, bool known, uint64_t *v)
{
	while (STRACE_ACCEPT(t, " or ")) {
		uint64_t other;

		if (take_term(t, a, &other) && !known) {
			*v = other;
			known = true;
		}
	}
	return known;
}

static bool take_names(struct strace_text *t, const struct arg *a, uint64_t *ret)
{
	const char *from = t->pos;
	uint64_t all = 0, v = 0;
	bool more;

	do {
		bool known = take_term(t, a, &v);

		if (next_is(t, ' '))
			known = take_alternatives(t, a, known, &v);
		if (!known) {
			t->pos = from;
			return not_understood(t);
		}
		all |= v;
		skip_comments(t);
		more = next_is(t, '|');
		t->pos += more;
	} while (more);
	*ret = all;
	return true;
}

/* [INT CHLD], ~[RTMIN RT_1], [] */
static bool take_sigmask(struct strace_text *t, uint64_t *ret)
{
	bool inverted = next_is(t, '~');
	uint64_t mask = 0;

	t->pos += inverted;
	if (!next_is(t, '['))
		return not_understood(t);
	for (t->pos++; !next_is(t, ']');) {
		char name[32] = "SIG";
		size_t len = word_len(t);
		uint64_t signo;

		if (!len || len > sizeof(name) - 3)
			return not_understood(t);
		memcpy(name + 3, t->pos, len);
		if (is_digit(*t->pos)) {
			if (!strace_number(t, &signo))
				return not_understood(t);
		} else if (strace_names_word(t->names, SET_signal_names, name, len + 3, &signo) ||
			   strace_names_word(t->names, SET_signal_names, t->pos, len, &signo)) {
			t->pos += len;
		} else {
			return not_understood(t);
		}
		if (signo < 1 || signo > 64)
			return not_understood(t);
		mask |= (uint64_t)1 << (signo - 1);
		skip_comments(t);
		skip_space(t);
	}
	t->pos++;
	*ret = inverted ? ~mask : mask;
	return true;
}

/* -X raw prints no bits at all as nothing at all. */
static bool is_nothing(const struct strace_text *t, const struct arg *a)
{
	return a->kind == KIND_FLAGS && (next_is(t, ',') || next_is(t, ')'));
}

/*
 * What is said of a value, but not the value: a date of unknown zone
 * (2013/11/04-17:00:01, before 4.15), the target of what is taken as an address.
 */
static bool is_untold(const struct strace_text *t, const struct arg *a)
{
	if (a->kind == KIND_ADDR || a->kind == KIND_HEX)
		return next_is(t, '[') || next_is(t, '{') || next_is(t, '"');
	return t->end - t->pos > 4 && is_digit(t->pos[0]) && is_digit(t->pos[3]) &&
	       t->pos[4] == '/';
}

static bool take_scalar(struct strace_text *t, const struct arg *a, struct value *ret)
{
	uint64_t v = 0;
	const char *p = t->pos;

	if (UNLIKELY(a->kind == KIND_SIGMASK) && (next_is(t, '[') || next_is(t, '~'))) {
		if (!take_sigmask(t, &v))
			return false;
		*ret = value_uint(v);
		return true;
	}
	/* The common case by itself: a small decimal number. */
	while (p < t->end && is_digit(*p) && p - t->pos < 18)
		v = v * 10 + (uint64_t)(*p++ - '0');
	if (p > t->pos && (*t->pos != '0' || p == t->pos + 1) && p < t->end &&
	    (*p == ',' || *p == ')'))
		t->pos = p;
	else if (is_nothing(t, a))
		v = 0;
	else if (is_untold(t, a)) {
		strace_skip(t);
		return true;
	} else if (!take_names(t, a, &v))
		return false;
	if (next_is(t, '<'))
		strace_skip_decoration(t);
	*ret = value_uint(fit(a, v));
	return true;
}

/* Data. */

static const char *find_quote(const char *p, const char *end)
{
	for (;;) {
		const char *quote = memchr(p, '"', (size_t)(end - p));
		const char *back;

		if (!quote)
			return NULL;
		/* Escaped by an odd number of backslashes. */
		for (back = quote; back > p && back[-1] == '\\'; back--)
			;
		if (!((quote - back) & 1))
			return quote;
		p = quote + 1;
	}
}

static bool take_string(struct strace_text *t, struct value *ret)
{
	const char *from = t->pos + 1, *quote = find_quote(from, t->end);
	struct data *d;
	size_t len;

	if (!quote)
		return not_understood(t);
	d = arena_alloc(t->arena, sizeof(*d));
	*d = (struct data){ .bytes = strace_unescape(t->arena, from, quote, &len) };
	d->len_bytes = d->kept_bytes = len;
	t->pos = quote + 1;
	if (STRACE_ACCEPT(t, "...")) {
		d->len_bytes = DATA_LEN_UNKNOWN;
		t->cut = true;
	}
	skip_comments(t);
	*ret = (struct value){ .type = VALUE_DATA, .data = d };
	return true;
}

/* [N]: a number that is handed over in memory, as socket options are. */
static bool take_number_as_data(struct strace_text *t, struct value *ret)
{
	uint8_t *bytes = arena_alloc(t->arena, 8);
	struct arg any = { .kind = KIND_ULONG };
	uint64_t v;

	t->pos++;
	if (!take_names(t, &any, &v) || !next_is(t, ']'))
		return not_understood(t);
	t->pos++;
	memcpy(bytes, &v, 8);
	*ret = value_bytes(t->arena, bytes, 4);
	return true;
}

/* Structs. */

/* Which field a name is. Names come in the order of the fields, as a rule. */
static int find_field(const struct struct_desc *d, unsigned int guess, const char *name, size_t len)
{
	unsigned int i;

	for (i = 0; i < d->nr_fields; i++) {
		unsigned int n = guess + i < d->nr_fields ? guess + i : guess + i - d->nr_fields;

		if (!strncmp(d->fields[n].name, name, len) && !d->fields[n].name[len])
			return (int)n;
	}
	/* Old versions left out the prefix: type= for l_type=. */
	for (i = 0; i < d->nr_fields; i++) {
		const char *full = d->fields[i].name, *bar = strchr(full, '_');

		if (bar && !strncmp(bar + 1, name, len) && !bar[len + 1])
			return (int)i;
	}
	return -1;
}

struct struct_reader {
	const struct struct_desc *desc;
	struct value values[STRUCT_FIELDS_MAX];
	uint64_t present;
	unsigned int next;
};

static bool take_field(struct strace_text *t, struct struct_reader *s)
{
	size_t len = word_len(t);
	bool named = len && t->pos + len < t->end && t->pos[len] == '=' &&
		     !(t->pos + len + 1 < t->end && t->pos[len + 1] == '>');
	int n = named ? find_field(s->desc, s->next, t->pos, len) : (int)s->next;
	const struct arg *field;

	if (n < 0 || n >= s->desc->nr_fields)
		return not_understood(t);
	if (named)
		t->pos += len + 1;
	field = &s->desc->fields[n];
	if (field->kind == KIND_BUF && next_is(t, '[') && s->desc == &struct_descs[STRUCT_cmsghdr])
		field = &s->desc->fields[--n]; /* descriptors that are passed on */
	s->next = (unsigned int)n + 1;
	if (!strace_value(t, field, &s->values[n], NULL))
		return false;
	if (s->values[n].type != VALUE_NONE)
		s->present |= (uint64_t)1 << n;
	return true;
}

static bool take_fields(struct strace_text *t, struct struct_reader *s)
{
	bool all = true;

	for (t->pos++; t->pos < t->end && !next_is(t, '}');) {
		if (STRACE_ACCEPT(t, "...")) {
			t->cut = true;
		} else if (!take_field(t, s)) {
			strace_skip(t);
			all = false;
		}
		if (t->pos < t->end && !next_is(t, '}') && !STRACE_ACCEPT(t, ", "))
			t->pos++; /* unknown separators: never stand still */
	}
	t->pos += t->pos < t->end;
	return all;
}

static struct value pack_struct(struct strace_text *t, const struct struct_reader *s)
{
	struct value v = value_struct(t->arena, s->present), *item = v.fields->items;
	uint64_t left;

	for (left = s->present; left; left &= left - 1)
		*item++ = s->values[__builtin_ctzll(left)];
	return v;
}

/* UTIME_NOW for a whole timespec. */
static bool take_special_time(struct strace_text *t, struct struct_reader *s)
{
	size_t len = word_len(t);
	uint64_t v;

	if (s->desc != &struct_descs[STRUCT_timespec] || !len ||
	    !strace_names_word(t->names, SET_none, t->pos, len, &v))
		return false;
	t->pos += len;
	s->values[1] = value_uint(v); /* the seconds mean nothing then, and are not told */
	s->present = 2;
	return true;
}

static bool take_struct(struct strace_text *t, const struct arg *a, struct value *ret)
{
	struct struct_reader s;
	bool all = true;

	s.desc = &struct_descs[a->struct_id];
	s.present = 0;
	s.next = 0;
	if (next_is(t, '{'))
		all = take_fields(t, &s);
	else if (!take_special_time(t, &s))
		return not_understood(t);
	/* What the call changed of it comes second and counts. */
	while (t->end - t->pos > 5 && !memcmp(t->pos, " => {", 5)) {
		t->pos += 4;
		s.next = 0;
		all &= take_fields(t, &s);
	}
	skip_comments(t);
	*ret = pack_struct(t, &s);
	return all;
}

/* Socket addresses: {sa_family=AF_UNIX, sun_path="..."} and the like. */

enum {
	SOCKADDR_FAMILY,
	SOCKADDR_PATH,
	SOCKADDR_PORT,
	SOCKADDR_ADDRESS,
};

static bool take_address_text(struct strace_text *t, struct struct_reader *s)
{
	const char *quote = memchr(t->pos, '"', (size_t)(t->end - t->pos));

	if (!quote)
		return not_understood(t);
	t->pos = quote;
	if (!take_string(t, &s->values[SOCKADDR_ADDRESS]))
		return false;
	s->present |= 1 << SOCKADDR_ADDRESS;
	strace_skip(t);
	if (next_is(t, ')'))
		t->pos++;
	return true;
}

static bool take_sockaddr_field(struct strace_text *t, struct struct_reader *s)
{
	static const struct {
		const char *name;
		int field;
	} names[] = {
		{ "sa_family=", SOCKADDR_FAMILY }, { "sun_path=", SOCKADDR_PATH },
		{ "sin_port=", SOCKADDR_PORT },	   { "sin6_port=", SOCKADDR_PORT },
		{ "sin_addr=", SOCKADDR_ADDRESS },
	};
	size_t i;

	if (STRACE_ACCEPT(t, "inet_pton("))
		return take_address_text(t, s);
	for (i = 0; i < ARRAY_LEN(names); i++) {
		int n = names[i].field;

		if (!strace_accept(t, names[i].name, strlen(names[i].name)))
			continue;
		if (n == SOCKADDR_ADDRESS)
			return take_address_text(t, s);
		if (n == SOCKADDR_PATH && next_is(t, '@'))
			t->pos++; /* an abstract name: its first byte is a NUL */
		if (!strace_value(t, &s->desc->fields[n], &s->values[n], NULL))
			return false;
		s->present |= (uint64_t)1 << n;
		return true;
	}
	strace_skip(t); /* flow labels and the like: the table has no place for them */
	return true;
}

static bool take_sockaddr(struct strace_text *t, struct value *ret)
{
	struct struct_reader s = { .desc = &struct_descs[STRUCT_sockaddr] };
	bool all = true;

	if (!next_is(t, '{'))
		return not_understood(t);
	for (t->pos++; t->pos < t->end && !next_is(t, '}');) {
		if (!take_sockaddr_field(t, &s)) {
			strace_skip(t);
			all = false;
		}
		if (t->pos < t->end && !next_is(t, '}') && !STRACE_ACCEPT(t, ", "))
			t->pos++;
	}
	t->pos += t->pos < t->end;
	*ret = pack_struct(t, &s);
	return all;
}

/* Lists. */

/* {WIFEXITED(s) && WEXITSTATUS(s) == 3} */
static bool take_wait_status(struct strace_text *t, struct value *ret)
{
	const char *stop = memchr(t->pos, '}', (size_t)(t->end - t->pos));
	struct strace_text inside = *t;
	struct arg signal = { .kind = KIND_SIGNO, .set = SET_signal_names };
	const char *number;
	uint64_t v = 0;

	if (!stop)
		return not_understood(t);
	inside.end = stop;
	number = memmem(t->pos, (size_t)(stop - t->pos), "== ", 3);
	inside.pos = number ? number + 3 : stop;
	if (!take_term(&inside, &signal, &v))
		v = 0xffff; /* WIFCONTINUED(s) */
	else if (memmem(t->pos, (size_t)(stop - t->pos), "WIFEXITED", 9))
		v <<= 8;
	else if (memmem(t->pos, (size_t)(stop - t->pos), "WIFSTOPPED", 10))
		v = v << 8 | 0x7f;
	if (memmem(t->pos, (size_t)(stop - t->pos), "WCOREDUMP", 9))
		v |= 0x80;
	t->pos = stop + 1;
	*ret = value_uint(v);
	return true;
}

struct list_reader {
	struct value *items;
	uint32_t nr, cap;
};

static struct value *list_slot(struct strace_text *t, struct list_reader *l)
{
	if (l->nr == l->cap) {
		struct value *more =
			arena_alloc(t->arena, (l->cap ? l->cap * 2 : LIST_STEP) * sizeof(*more));

		if (l->nr)
			memcpy(more, l->items, l->nr * sizeof(*more));
		l->items = more;
		l->cap = l->cap ? l->cap * 2 : LIST_STEP;
	}
	return &l->items[l->nr];
}

static bool take_element(struct strace_text *t, const struct arg *elem, struct list_reader *l,
			 struct value *ret_after)
{
	struct value *v = list_slot(t, l), second;

	if (next_is(t, '{') && elem->kind == KIND_INT) {
		l->nr++;
		return take_wait_status(t, v);
	}
	if (!strace_value(t, elem, v, NULL))
		return false;
	l->nr++;
	if (!STRACE_ACCEPT(t, " => "))
		return true;
	if (!strace_value(t, elem, &second, NULL))
		return false;
	if (ret_after) {
		*ret_after = value_list(t->arena, 1);
		ret_after->items[0] = second;
	}
	return true;
}

/* {{...} {...}}: lists of structs before 4.12 */
static bool is_old_list(const struct strace_text *t)
{
	return t->end - t->pos > 1 && t->pos[0] == '{' && (t->pos[1] == '{' || t->pos[1] == '}');
}

static bool take_list(struct strace_text *t, const struct arg *a, struct value *ret,
		      struct value *ret_after)
{
	struct list_reader l = { 0 };
	struct arg elem = *a;
	bool all = true;

	elem.kind = a->elem ? a->elem : KIND_STRUCT;
	elem.width_bytes = a->elem ? a->width_bytes : 0;
	if (elem.kind == KIND_SIGMASK && (next_is(t, '[') || next_is(t, '~'))) {
		/* The brackets are the mask's own. */
		all = take_element(t, &elem, &l, NULL);
	} else if (!next_is(t, '[') && !is_old_list(t)) {
		return not_understood(t);
	} else {
		char close = next_is(t, '[') ? ']' : '}';

		for (t->pos++; t->pos < t->end && !next_is(t, close);) {
			if (STRACE_ACCEPT(t, "...")) {
				t->cut = true;
			} else if (!take_element(t, &elem, &l, ret_after)) {
				strace_skip(t);
				all = false;
			}
			if (t->pos < t->end && !next_is(t, close) && !STRACE_ACCEPT(t, ", "))
				t->pos++;
		}
		t->pos += t->pos < t->end;
	}
	skip_comments(t);
	*ret = (struct value){ .type = VALUE_LIST, .count = l.nr, .items = l.items };
	return all;
}

/* Any value. */

/*
 * What a pointer can be instead of its target: NULL, or an address. An address
 * with a comment stands for what was there but is not shown.
 */
static bool take_pointer(struct strace_text *t, struct value *ret)
{
	uint64_t v;

	if (STRACE_ACCEPT(t, "NULL")) {
		*ret = (struct value){ .type = VALUE_NULL };
		return true;
	}
	if (t->pos == t->end || !is_digit(*t->pos) || !strace_number(t, &v))
		return false;
	*ret = value_addr(v);
	if (next_is(t, ' ') && t->end - t->pos > 2 && t->pos[1] == '/') {
		skip_comments(t);
		*ret = (struct value){ .type = VALUE_NONE };
		t->cut = true;
	}
	return true;
}

/* [0] => [10]: as it was, and as it is. */
static bool take_second_list(struct strace_text *t, const struct arg *a, struct value *ret_after)
{
	struct value after;

	if (!take_list(t, a, &after, NULL))
		return false;
	if (ret_after)
		*ret_after = after;
	return true;
}

static bool take_pointed(struct strace_text *t, const struct arg *a, struct value *ret,
			 struct value *ret_after)
{
	bool ok;

	if (take_pointer(t, ret))
		return true;
	if (++t->depth > VALUE_DEPTH_MAX) {
		ok = not_understood(t);
	} else {
		switch (kind_infos[a->kind].wire) {
		case 'd':
			ok = next_is(t, '"')   ? take_string(t, ret)
			     : next_is(t, '[') ? take_number_as_data(t, ret)
					       : not_understood(t);
			break;
		case 's':
			ok = a->kind == KIND_SOCKADDR ? take_sockaddr(t, ret)
						      : take_struct(t, a, ret);
			break;
		default:
			ok = take_list(t, a, ret, ret_after);
			if (next_is(t, ' ') && STRACE_ACCEPT(t, " => "))
				ok &= take_second_list(t, a, ret_after);
			break;
		}
	}
	t->depth--;
	return ok;
}

bool strace_value(struct strace_text *t, const struct arg *a, struct value *ret,
		  struct value *ret_after)
{
	char wire = kind_infos[a->kind].wire;

	*ret = (struct value){ .type = VALUE_NONE };
	if (wire == 'u' || wire == 'i')
		return take_scalar(t, a, ret);
	if (wire == '-') {
		strace_skip(t);
		return true;
	}
	return take_pointed(t, a, ret, ret_after);
}
