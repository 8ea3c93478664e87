/* SPDX-License-Identifier: MIT */
#include "model/vocab.h"

#include <string.h>

#include "model/event.h"

#define SET(name) static const struct set_entry entries_##name[] = {
#define F(name, value) { #name, value, value },
#define M(name, value, mask) { #name, value, mask },
#define END_SET                                                                                    \
	}                                                                                          \
	;
#include "model/flags.def"
#undef SET
#undef F
#undef M
#undef END_SET

const struct set_desc set_descs[SET_MAX] = {
	[SET_none] = { "none", NULL, 0 },
#define SET(name)                                                                                  \
	[SET_##name] = { #name, entries_##name, sizeof(entries_##name) / sizeof(struct set_entry) },
#define F(name, value)
#define M(name, value, mask)
#define END_SET
#include "model/flags.def"
#undef SET
#undef F
#undef M
#undef END_SET
};

void vocab_print_flags(struct buf *out, enum set_id set, uint64_t v)
{
	const struct set_desc *d = &set_descs[set];
	const char *between = "";
	uint64_t left = v;
	size_t i;

	for (i = 0; i < d->nr_entries; i++) {
		const struct set_entry *e = &d->entries[i];
		bool named = e->value ? (left & e->value) == e->value : true;

		/* Bits already named do not name again: O_SYNC hides O_DSYNC. */
		if (!named || (v & e->mask) != e->value || (!e->value && !e->mask && v))
			continue;
		buf_puts(out, between);
		buf_puts(out, e->name);
		left &= ~e->mask;
		between = "|";
	}
	if (left || !*between)
		buf_printf(out, left ? "%s0x%llx" : "%s%llu", between, (unsigned long long)left);
}

const char *vocab_name(enum set_id set, uint64_t v)
{
	const struct set_desc *d = &set_descs[set];
	size_t i;

	for (i = 0; i < d->nr_entries; i++) {
		if (d->entries[i].value == v)
			return d->entries[i].name;
	}
	return NULL;
}

void vocab_print_enum(struct buf *out, enum set_id set, int64_t v)
{
	const char *name = vocab_name(set, (uint64_t)v);

	if (name)
		buf_puts(out, name);
	else
		buf_printf(out, "%lld", (long long)v);
}

static bool parse_number(const char *text, size_t len, uint64_t *ret)
{
	bool minus = len && text[0] == '-';
	unsigned int base = 10;
	uint64_t v = 0;
	size_t i = minus;

	if (len > i + 2 && text[i] == '0' && text[i + 1] == 'x') {
		base = 16;
		i += 2;
	} else if (len > i + 1 && text[i] == '0') {
		base = 8;
		i++;
	}
	if (i == len)
		return false;
	for (; i < len; i++) {
		unsigned int digit = text[i] <= '9' ? (unsigned int)(text[i] - '0')
						    : (unsigned int)((text[i] | 32) - 'a') + 10;

		if (digit >= base || __builtin_mul_overflow(v, base, &v) ||
		    __builtin_add_overflow(v, digit, &v))
			return false;
	}
	*ret = minus ? -v : v;
	return true;
}

static bool parse_word(enum set_id set, const char *text, size_t len, uint64_t *ret)
{
	const struct set_desc *d = &set_descs[set];
	size_t i;

	if (len && (text[0] == '-' || (text[0] >= '0' && text[0] <= '9')))
		return parse_number(text, len, ret);
	for (i = 0; i < d->nr_entries; i++) {
		if (strlen(d->entries[i].name) == len && !memcmp(d->entries[i].name, text, len)) {
			*ret = d->entries[i].value;
			return true;
		}
	}
	return false;
}

bool vocab_parse(enum set_id set, const char *text, size_t len, uint64_t *ret)
{
	const char *end = text + len;
	uint64_t all = 0, v;

	for (;;) {
		const char *bar = memchr(text, '|', (size_t)(end - text));
		const char *stop = bar ? bar : end;

		if (!parse_word(set, text, (size_t)(stop - text), &v))
			return false;
		all |= v;
		if (!bar)
			break;
		text = bar + 1;
	}
	*ret = all;
	return true;
}

const char *errno_name(int err)
{
	return vocab_name(SET_errno_names, (uint64_t)err);
}

const char *signal_name(int signo)
{
	return vocab_name(SET_signal_names, (uint64_t)signo);
}

bool errno_parse(const char *text, size_t len, int32_t *ret)
{
	uint64_t v;

	if (!parse_word(SET_errno_names, text, len, &v) || v > INT32_MAX)
		return false;
	*ret = (int32_t)v;
	return true;
}

bool signal_parse(const char *text, size_t len, int32_t *ret)
{
	uint64_t v;

	if (!parse_word(SET_signal_names, text, len, &v) || v > INT32_MAX)
		return false;
	*ret = (int32_t)v;
	return true;
}
