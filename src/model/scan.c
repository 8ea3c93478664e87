/* SPDX-License-Identifier: MIT */
#include "model/scan.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/banned.h"

/* How much of a word that is not understood is shown. */
#define SHOWN_MAX 40

/* Faults. */

int scan_bad(struct scan *s, const char *at, const char *fmt, ...)
{
	char words[160];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(words, sizeof(words), fmt, ap); /* cut short is better than lost */
	va_end(ap);
	return err_set(s->err, -EBADMSG, "column %zu: %s", (size_t)(at - s->start) + 1, words);
}

int scan_bad_word(struct scan *s, const char *what, struct scan_word w)
{
	return scan_bad(s, w.text, "unknown %s '%.*s%s'", what,
			(int)(w.len < SHOWN_MAX ? w.len : SHOWN_MAX), w.text,
			w.len > SHOWN_MAX ? "..." : "");
}

int scan_bad_expected(struct scan *s, const char *what)
{
	unsigned char c = s->pos < s->end ? (unsigned char)*s->pos : 0;

	if (s->pos == s->end)
		return scan_bad(s, s->pos, "expected %s, found the end of the line", what);
	if (c < 0x20 || c >= 0x7f)
		return scan_bad(s, s->pos, "expected %s, found byte 0x%02x", what, c);
	return scan_bad(s, s->pos, "expected %s, found '%c'", what, c);
}

/* Tokens. */

void scan_skip_space(struct scan *s)
{
	while (s->pos < s->end && (*s->pos == ' ' || *s->pos == '\t'))
		s->pos++;
}

bool scan_next_is(const struct scan *s, char c)
{
	return s->pos < s->end && *s->pos == c;
}

bool scan_accept_here(struct scan *s, char c)
{
	if (!scan_next_is(s, c))
		return false;
	s->pos++;
	return true;
}

bool scan_accept(struct scan *s, char c)
{
	scan_skip_space(s);
	return scan_accept_here(s, c);
}

int scan_expect(struct scan *s, char c, const char *what)
{
	return scan_accept(s, c) ? 0 : scan_bad_expected(s, what);
}

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

bool scan_is_word_char(char c)
{
	return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

bool scan_next_is_digit(const struct scan *s)
{
	return s->pos < s->end && is_digit(*s->pos);
}

struct scan_word scan_peek_word(const struct scan *s)
{
	struct scan_word w = { .text = s->pos };

	while (w.text + w.len < s->end && scan_is_word_char(w.text[w.len]))
		w.len++;
	return w;
}

int scan_take_word(struct scan *s, const char *what, struct scan_word *ret)
{
	scan_skip_space(s);
	*ret = scan_peek_word(s);
	if (!ret->len || is_digit(*ret->text))
		return scan_bad_expected(s, what);
	s->pos += ret->len;
	return 0;
}

bool scan_word_is(struct scan_word w, const char *text)
{
	return strlen(text) == w.len && !memcmp(w.text, text, w.len);
}

int scan_hex_digit(char c)
{
	if (is_digit(c))
		return c - '0';
	c = (char)(c | 0x20);
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* Numbers. */

bool scan_convert(struct scan_word w, uint64_t base, uint64_t *ret)
{
	uint64_t v = 0;
	size_t i;

	for (i = 0; i < w.len; i++) {
		int digit = scan_hex_digit(w.text[i]);

		if (digit < 0 || (uint64_t)digit >= base || __builtin_mul_overflow(v, base, &v) ||
		    __builtin_add_overflow(v, (uint64_t)digit, &v))
			return false;
	}
	*ret = v;
	return w.len > 0;
}

int scan_take_number(struct scan *s, struct scan_number *ret)
{
	const char *at = s->pos;
	uint64_t base = 10;
	struct scan_word w;

	ret->minus = scan_accept_here(s, '-');
	if (!scan_next_is_digit(s))
		return scan_bad_expected(s, "a number");
	w = scan_peek_word(s);
	s->pos += w.len;
	if (w.len > 1 && w.text[0] == '0') {
		base = (w.text[1] | 0x20) == 'x' ? 16 : 8;
		w.text += base == 16 ? 2 : 1;
		w.len -= base == 16 ? 2 : 1;
	}
	if (!scan_convert(w, base, &ret->magnitude)) {
		s->pos = at;
		return scan_bad(s, at, "malformed number, or beyond 64 bits");
	}
	return 0;
}

int scan_bad_range(struct scan *s, const char *at)
{
	s->pos = at;
	return scan_bad(s, at, "number out of range");
}

int scan_take_unsigned(struct scan *s, uint64_t max, uint64_t *ret)
{
	const char *at = s->pos;
	struct scan_number n = { 0 };
	int r = scan_take_number(s, &n);

	if (r < 0)
		return r;
	if (n.minus || n.magnitude > max)
		return scan_bad_range(s, at);
	*ret = n.magnitude;
	return 0;
}

int scan_take_u32(struct scan *s, uint32_t *ret)
{
	uint64_t v = 0;
	int r = scan_take_unsigned(s, UINT32_MAX, &v);

	if (!r)
		*ret = (uint32_t)v;
	return r;
}

bool scan_signed_fits(const struct scan_number *n, uint64_t max)
{
	return n->magnitude <= max + n->minus;
}

uint64_t scan_with_sign(const struct scan_number *n)
{
	return n->minus ? -n->magnitude : n->magnitude;
}

bool scan_take_hex_byte(struct scan *s, uint8_t *ret)
{
	int high, low;

	if (s->end - s->pos < 2)
		return false;
	high = scan_hex_digit(s->pos[0]);
	low = scan_hex_digit(s->pos[1]);
	if (high < 0 || low < 0)
		return false;
	s->pos += 2;
	*ret = (uint8_t)(high << 4 | low);
	return true;
}
