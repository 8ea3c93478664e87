/* SPDX-License-Identifier: MIT */
/* The small parts of strace's text: strings, numbers, and what can be passed over. */
#include <string.h>

#include "base/attrs.h"
#include "base/banned.h"
#include "import/strace_value.h"

/* Strings. */

static int hex_digit(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 32;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* \N, \NN or \NNN; from points to the first digit. */
static const char *take_octal(const char *from, const char *to, uint8_t *ret)
{
	const char *stop = to - from > 3 ? from + 3 : to;
	unsigned int v = 0;

	while (from < stop && *from >= '0' && *from <= '7')
		v = v * 8 + (unsigned int)(*from++ - '0');
	*ret = (uint8_t)v;
	return from;
}

/* What follows a backslash. A character that needed none stands for itself. */
static const char *take_escape(const char *from, const char *to, uint8_t *ret)
{
	static const char letters[] = "ntrvfabe", bytes[] = "\n\t\r\v\f\a\b\033";
	const char *found;

	if (*from == 'x' && to - from >= 3 && hex_digit(from[1]) >= 0 && hex_digit(from[2]) >= 0) {
		*ret = (uint8_t)(hex_digit(from[1]) << 4 | hex_digit(from[2]));
		return from + 3;
	}
	if (*from >= '0' && *from <= '7')
		return take_octal(from, to, ret);
	found = *from ? strchr(letters, *from) : NULL;
	*ret = (uint8_t)(found ? bytes[found - letters] : *from);
	return from + 1;
}

/* All of it is \xHH, as -x and -xx print it: the common form of data. */
static uint8_t *take_hex(const char *from, const char *to, uint8_t *out)
{
	while (to - from >= 4 && from[0] == '\\' && from[1] == 'x') {
		int high = hex_digit(from[2]), low = hex_digit(from[3]);

		if ((high | low) < 0)
			break;
		*out++ = (uint8_t)(high << 4 | low);
		from += 4;
	}
	return out;
}

const uint8_t *strace_unescape(struct arena *arena, const char *from, const char *to,
			       size_t *ret_len)
{
	const char *escape = memchr(from, '\\', (size_t)(to - from));
	uint8_t *bytes, *out;

	if (!escape) {
		*ret_len = (size_t)(to - from);
		return (const uint8_t *)from;
	}
	bytes = out = arena_alloc(arena, (size_t)(to - from));
	while (from < to) {
		size_t plain = (size_t)((escape ? escape : to) - from);

		memcpy(out, from, plain);
		out += plain;
		from += plain;
		if (from < to) {
			uint8_t *after = take_hex(from, to, out);

			from += (after - out) * 4;
			out = after;
		}
		if (from < to && *from == '\\' && from + 1 < to)
			from = take_escape(from + 1, to, out++);
		else if (from < to && *from == '\\')
			from++;
		/* Dense escapes are taken one by one; a search pays only for stretches without. */
		escape =
			from < to && *from == '\\' ? from : memchr(from, '\\', (size_t)(to - from));
	}
	*ret_len = (size_t)(out - bytes);
	return bytes;
}

/* Numbers. */

bool strace_number(struct strace_text *t, uint64_t *ret)
{
	const char *p = t->pos, *first;
	bool minus = p < t->end && *p == '-';
	uint64_t v = 0;

	p += minus;
	first = p;
	if (t->end - p > 2 && p[0] == '0' && p[1] == 'x') {
		int digit;

		for (first = p += 2; p < t->end && (digit = hex_digit(*p)) >= 0; p++)
			v = v << 4 | (uint64_t)digit;
	} else if (t->end - p > 1 && *p == '0') {
		for (; p < t->end && *p >= '0' && *p <= '7'; p++)
			v = v << 3 | (uint64_t)(*p - '0');
	} else {
		for (; p < t->end && *p >= '0' && *p <= '9'; p++)
			v = v * 10 + (uint64_t)(*p - '0');
	}
	if (p == first)
		return false;
	t->pos = p;
	*ret = minus ? -v : v;
	return true;
}

/* Passing over. */

/* What may follow a decoration, so that a '>' in an old version's names does not end it. */
static bool ends_decoration(const char *p, const char *end)
{
	return p == end || strchr(",) ](}|>=", *p);
}

void strace_skip_decoration(struct strace_text *t)
{
	const char *p = t->pos + 1;
	unsigned int depth = 1;

	if (t->pos == t->end || *t->pos != '<')
		return;
	for (; p < t->end; p++) {
		if (*p == '<') {
			depth++;
		} else if (*p == '>' && p[-1] != '-' && ends_decoration(p + 1, t->end)) {
			if (!--depth)
				break;
		}
	}
	if (p == t->end)
		return; /* no end: it is something else */
	t->path = t->pos + 1;
	t->path_len = (size_t)(p - t->path);
	t->pos = p + 1;
	(void)STRACE_ACCEPT(t, "(deleted)");
}

static void skip_string(struct strace_text *t)
{
	for (t->pos++; t->pos < t->end && *t->pos != '"'; t->pos++) {
		if (*t->pos == '\\' && t->pos + 1 < t->end)
			t->pos++;
	}
	t->pos += t->pos < t->end;
}

static void skip_comment(struct strace_text *t)
{
	const char *stop = memmem(t->pos, (size_t)(t->end - t->pos), "*/", 2);

	t->pos = stop ? stop + 2 : t->end;
}

void strace_skip(struct strace_text *t)
{
	unsigned int depth = 0;

	while (t->pos < t->end) {
		char c = *t->pos;

		if (c == '"') {
			skip_string(t);
			continue;
		}
		if (c == '/' && t->pos + 1 < t->end && t->pos[1] == '*') {
			skip_comment(t);
			continue;
		}
		if (c == '<' && t->pos[-1] != ' ') {
			const char *at = t->pos;

			strace_skip_decoration(t);
			if (t->pos != at)
				continue;
		}
		if (!depth && (c == ',' || c == ')' || c == ']' || c == '}'))
			return;
		depth += c == '(' || c == '[' || c == '{';
		depth -= c == ')' || c == ']' || c == '}';
		t->pos++;
	}
}
