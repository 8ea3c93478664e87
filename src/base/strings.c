/* SPDX-License-Identifier: MIT */
#include "base/strings.h"

#include <ctype.h>
#include <errno.h>
#include <limits.h>

#include "base/banned.h"
#include "base/clock.h"

/*
 * Three digits of v in the first of the units, each `step` times the one
 * before, that suits it.
 */
static void put_scaled(struct buf *b, double v, double step, const char *const *units)
{
	/* The half: 999.7 would be printed as 1000. */
	while (v >= step - 0.5 && units[1]) {
		v /= step;
		units++;
	}
	buf_printf(b, "%.*f %s", v < 9.995 ? 2 : v < 99.95 ? 1 : 0, v, *units);
}

void strings_put_bytes(struct buf *b, uint64_t bytes)
{
	static const char *const units[] = { "KiB", "MiB", "GiB", "TiB", "PiB", "EiB", NULL };

	if (bytes < 1024)
		buf_printf(b, "%u B", (unsigned int)bytes);
	else
		put_scaled(b, (double)bytes / 1024, 1024, units);
}

void strings_put_count(struct buf *b, uint64_t n)
{
	static const char *const units[] = { "k", "M", "G", "T", "P", "E", NULL };

	if (n < 10000)
		buf_printf(b, "%u", (unsigned int)n);
	else
		put_scaled(b, (double)n / 1000, 1000, units);
}

void strings_put_duration(struct buf *b, uint64_t ns)
{
	static const char *const units[] = { "us", "ms", "s", NULL };
	uint64_t s = ns / NS_PER_S + (ns % NS_PER_S >= NS_PER_S / 2);

	if (ns < NS_PER_US)
		buf_printf(b, "%u ns", (unsigned int)ns);
	else if (ns < 60 * NS_PER_S - 50 * NS_PER_MS) /* from here on it would read 60.0 s */
		put_scaled(b, (double)ns / 1000, 1000, units);
	else if (s < 3600)
		buf_printf(b, "%um%02us", (unsigned int)(s / 60), (unsigned int)(s % 60));
	else
		buf_printf(b, "%lluh%02um", (unsigned long long)(s / 3600),
			   (unsigned int)(s / 60 % 60));
}

static int digit_value(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	if (c >= 'a' && c <= 'f')
		return c - 'a' + 10;
	if (c >= 'A' && c <= 'F')
		return c - 'A' + 10;
	return INT_MAX;
}

/*
 * Reads digits up to the first other character, whose place it returns; NULL
 * when there is none.
 */
static const char *parse_digits(const char *s, unsigned int radix, uint64_t *ret,
				bool *ret_overflow)
{
	uint64_t v = 0;
	const char *p = s;

	*ret_overflow = false;
	for (; (unsigned int)digit_value(*p) < radix; p++) {
		if (__builtin_mul_overflow(v, radix, &v) ||
		    __builtin_add_overflow(v, (uint64_t)digit_value(*p), &v))
			*ret_overflow = true;
	}
	*ret = v;
	return p == s ? NULL : p;
}

int strings_parse_u64(const char *s, uint64_t *ret)
{
	bool is_hex = s[0] == '0' && (s[1] == 'x' || s[1] == 'X');
	bool overflow;
	uint64_t v;
	const char *end = parse_digits(is_hex ? s + 2 : s, is_hex ? 16 : 10, &v, &overflow);

	if (!end || *end)
		return -EINVAL;
	if (overflow)
		return -ERANGE;
	*ret = v;
	return 0;
}

struct unit {
	const char *name;
	uint64_t value;
};

/*
 * What follows the point, in billionths; digits beyond those are below every
 * unit we know.
 */
static const char *parse_fraction(const char *p, uint32_t *ret_billionths)
{
	uint32_t v = 0;
	unsigned int nr;
	const char *start = p;

	for (nr = 0; nr < 9; nr++)
		v = v * 10 + (isdigit((unsigned char)*p) ? (uint32_t)(*p++ - '0') : 0);
	while (isdigit((unsigned char)*p))
		p++;
	*ret_billionths = v;
	return p == start ? NULL : p;
}

/*
 * A decimal number and one of the units, computed without floating point: 0.1s
 * is exact.
 */
static int parse_scaled(const char *s, const struct unit *units, uint64_t *ret)
{
	uint64_t whole, result, scale, part;
	uint32_t billionths = 0;
	bool overflow;
	const char *p = parse_digits(s, 10, &whole, &overflow);

	if (p && *p == '.')
		p = parse_fraction(p + 1, &billionths);
	if (!p)
		return -EINVAL;
	while (units->name && strcmp(units->name, p) != 0)
		units++;
	if (!units->name)
		return -EINVAL;
	scale = units->value;
	/* billionths * scale / 1e9, in an order that stays within 64 bits */
	part = billionths * (scale / 1000000000) + billionths * (scale % 1000000000) / 1000000000;
	if (overflow || __builtin_mul_overflow(whole, scale, &result) ||
	    __builtin_add_overflow(result, part, &result))
		return -ERANGE;
	*ret = result;
	return 0;
}

int strings_parse_size(const char *s, uint64_t *ret_bytes)
{
	static const struct unit units[] = {
		{ "", 1 },
		{ "B", 1 },
		{ "k", UINT64_C(1) << 10 },
		{ "K", UINT64_C(1) << 10 },
		{ "KiB", UINT64_C(1) << 10 },
		{ "M", UINT64_C(1) << 20 },
		{ "MiB", UINT64_C(1) << 20 },
		{ "G", UINT64_C(1) << 30 },
		{ "GiB", UINT64_C(1) << 30 },
		{ "T", UINT64_C(1) << 40 },
		{ "TiB", UINT64_C(1) << 40 },
		{ 0 },
	};

	return parse_scaled(s, units, ret_bytes);
}

int strings_parse_duration(const char *s, uint64_t *ret_ns)
{
	static const struct unit units[] = {
		{ "", NS_PER_S },	  { "ns", 1 },
		{ "us", NS_PER_US },	  { "ms", NS_PER_MS },
		{ "s", NS_PER_S },	  { "m", 60 * NS_PER_S },
		{ "h", 3600 * NS_PER_S }, { 0 },
	};

	return parse_scaled(s, units, ret_ns);
}

size_t strings_utf8_sequence(const uint8_t *p, size_t len)
{
	/*
	 * The first continuation byte of some lead bytes has a narrower range,
	 * which shuts out overlong forms, surrogates and what lies beyond
	 * U+10FFFF.
	 */
	uint8_t low = 0x80, high = 0xbf;
	size_t want, i;

	if (p[0] < 0x80)
		return 1;
	if (p[0] < 0xc2 || p[0] > 0xf4)
		return 0;
	want = p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;
	if (p[0] == 0xe0)
		low = 0xa0;
	else if (p[0] == 0xed)
		high = 0x9f;
	else if (p[0] == 0xf0)
		low = 0x90;
	else if (p[0] == 0xf4)
		high = 0x8f;
	if (len < want || p[1] < low || p[1] > high)
		return 0;
	for (i = 2; i < want; i++) {
		if ((p[i] & 0xc0) != 0x80)
			return 0;
	}
	return want;
}

bool strings_is_utf8(const void *p, size_t len)
{
	const uint8_t *pos = p, *end = pos + len;

	while (pos < end) {
		size_t n = strings_utf8_sequence(pos, (size_t)(end - pos));

		if (!n)
			return false;
		pos += n;
	}
	return true;
}

/* A valid sequence of two bytes or more that may be shown. */
static bool is_harmless(const uint8_t *p, size_t len)
{
	uint32_t c;

	if (len == 2) {
		c = (p[0] & 0x1fu) << 6 | (p[1] & 0x3fu);
		return c >= 0xa0 && c != 0x61c; /* not C1; not the Arabic letter mark */
	}
	if (len == 3) {
		c = (p[0] & 0x0fu) << 12 | (p[1] & 0x3fu) << 6 | (p[2] & 0x3fu);
		/* Zero width and direction marks, separators, embeddings, isolates, byte order mark. */
		return !(c >= 0x200b && c <= 0x200f) && !(c >= 0x2028 && c <= 0x202e) &&
		       !(c >= 0x2060 && c <= 0x206f) && c != 0xfeff;
	}
	return len == 4 && p[0] < 0xf3; /* beyond are tags and private characters */
}

static void put_foreign(struct buf *b, const uint8_t *p, size_t len, bool keep_backslash)
{
	size_t n;

	for (; len; p += n, len -= n) {
		n = strings_utf8_sequence(p, len);
		if (n == 1 ? *p >= 0x20 && *p < 0x7f && (keep_backslash || *p != '\\')
			   : n && is_harmless(p, n)) {
			buf_put(b, p, n);
			continue;
		}
		n = 1; /* what follows in a sequence is no beginning of another */
		buf_printf(b, "\\x%02x", (unsigned int)*p);
	}
}

void strings_put_foreign(struct buf *b, const void *text, size_t len)
{
	put_foreign(b, text, len, false);
}

void strings_put_message(struct buf *b, const char *text)
{
	put_foreign(b, (const uint8_t *)text, strlen(text), true);
}

#define WORD_MAX 63

static unsigned int min_of(unsigned int a, unsigned int b)
{
	return a < b ? a : b;
}

unsigned int strings_edit_distance(const char *a, const char *b)
{
	/* Three rows of the usual table: a swap looks back two. */
	unsigned int rows[3][WORD_MAX + 1];
	unsigned int *before = rows[0], *last = rows[1], *now = rows[2], *spare;
	size_t a_len = strlen(a), b_len = strlen(b), i, j;

	if (a_len > WORD_MAX || b_len > WORD_MAX)
		return UINT_MAX;
	for (j = 0; j <= b_len; j++)
		now[j] = (unsigned int)j;
	for (i = 1; i <= a_len; i++) {
		spare = before;
		before = last;
		last = now;
		now = spare;
		now[0] = (unsigned int)i;
		for (j = 1; j <= b_len; j++) {
			now[j] = min_of(last[j - 1] + (a[i - 1] != b[j - 1]),
					1 + min_of(last[j], now[j - 1]));
			if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1])
				now[j] = min_of(now[j], before[j - 2] + 1);
		}
	}
	return now[b_len];
}

void nearest_offer(struct nearest *n, const char *word)
{
	size_t typed_len = strlen(n->typed), word_len = strlen(word);
	size_t longer = typed_len > word_len ? typed_len : word_len;
	unsigned int distance = strings_edit_distance(n->typed, word);
	bool is_near = distance <= longer / 3;

	if (typed_len >= 2 && !strncmp(n->typed, word, typed_len)) {
		distance = 1;
		is_near = true;
	}
	if (!is_near || (n->word && n->distance <= distance))
		return;
	n->word = word;
	n->distance = distance;
}
