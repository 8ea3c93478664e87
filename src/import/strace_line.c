/* SPDX-License-Identifier: MIT */
#include "import/strace_line.h"

#include <endian.h>
#include <string.h>

#include "base/attrs.h"
#include "base/banned.h"
#include "base/clock.h"

/* A relative time of more seconds than this would be an absolute one. */
#define DELTA_MAX_S 10000000

struct cursor {
	const char *pos, *end;
};

static bool is_digit(char c)
{
	return c >= '0' && c <= '9';
}

static bool starts(const struct cursor *c, const char *text, size_t len)
{
	return (size_t)(c->end - c->pos) >= len && !memcmp(c->pos, text, len);
}
#define STARTS(c, literal) starts(c, literal, sizeof(literal) - 1)

static void skip_space(struct cursor *c)
{
	while (c->pos < c->end && *c->pos == ' ')
		c->pos++;
}

/* Eight digits at once, as the bytes of a word (little-endian); false: not all are digits. */
static bool take_eight(const char *p, uint64_t *ret)
{
	uint64_t w;

	memcpy(&w, p, 8);
	w = le64toh(w);
	if ((w & UINT64_C(0xf0f0f0f0f0f0f0f0)) != UINT64_C(0x3030303030303030) ||
	    ((w + UINT64_C(0x0606060606060606)) & UINT64_C(0xf0f0f0f0f0f0f0f0)) !=
		    UINT64_C(0x3030303030303030))
		return false;
	w &= UINT64_C(0x0f0f0f0f0f0f0f0f);
	w = w * 10 + (w >> 8); /* pairs, in every other byte */
	*ret = (((w & UINT64_C(0x000000ff000000ff)) * UINT64_C(0x000f424000000064)) +
		((w >> 16 & UINT64_C(0x000000ff000000ff)) * UINT64_C(0x0000271000000001))) >>
	       32;
	return true;
}

/* Digits, at least one, of which no more than 18 count. */
static bool take_digits(struct cursor *c, uint64_t *ret)
{
	const char *from = c->pos, *p = from;
	const char *stop = c->end - from > 18 ? from + 18 : c->end;
	uint64_t v = 0;

	if (stop - p >= 8 && take_eight(p, &v))
		p += 8;
	while (p < stop && is_digit(*p))
		v = v * 10 + (uint64_t)(*p++ - '0');
	while (p < c->end && is_digit(*p))
		p++;
	c->pos = p;
	*ret = v;
	return p > from;
}

uint64_t strace_take_fraction_ns(const char **pos, const char *end)
{
	static const uint32_t units[] = { 1000000000, 100000000, 10000000, 1000000, 100000,
					  10000,      1000,	 100,	   10,	    1 };
	const char *from = *pos, *p = from, *stop = end - from > 9 ? from + 9 : end;
	uint64_t v = 0;

	while (p < stop && is_digit(*p))
		v = v * 10 + (uint64_t)(*p++ - '0');
	v *= units[p - from];
	while (p < end && is_digit(*p))
		p++;
	*pos = p;
	return v;
}

/* Threads: `123 `, `123<comm> `, `[pid   123] `, `[pid 123<comm>] `. */

static bool take_comm(struct cursor *c, char after, struct strace_line *ret)
{
	const char end[2] = { '>', after }, *stop;

	if (c->pos == c->end || *c->pos != '<')
		return true;
	stop = memmem(c->pos, (size_t)(c->end - c->pos), end, 2);
	if (!stop)
		return false;
	ret->comm = c->pos + 1;
	ret->comm_len = (size_t)(stop - ret->comm);
	c->pos = stop + 1;
	return true;
}

static void take_tid(struct cursor *c, struct strace_line *ret)
{
	struct cursor at = *c;
	bool bracket = STARTS(&at, "[pid ");
	char after = bracket ? ']' : ' ';
	uint64_t tid;

	if (bracket) {
		at.pos += 5;
		skip_space(&at);
	}
	if (!take_digits(&at, &tid) || tid > UINT32_MAX || !take_comm(&at, after, ret) ||
	    at.pos == at.end || *at.pos != after)
		return;
	at.pos++;
	skip_space(&at);
	ret->tid = (uint32_t)tid;
	*c = at;
}

/* Times: `12:34:56`, `12:34:56.789012`, `1700000000.123456`, `     0.000123`. */

static bool take_fraction(struct cursor *c, uint64_t *ret_ns)
{
	if (c->pos == c->end || *c->pos != '.')
		return false;
	c->pos++;
	*ret_ns += strace_take_fraction_ns(&c->pos, c->end);
	return true;
}

static bool take_clock_part(struct cursor *c, uint64_t *ret)
{
	if (c->pos == c->end || *c->pos != ':')
		return false;
	c->pos++;
	return take_digits(c, ret) && *ret < 62;
}

static void take_time(struct cursor *c, struct strace_line *ret)
{
	struct cursor at = *c;
	uint64_t first, minutes, seconds, ns;
	bool fraction;

	skip_space(&at);
	if (!take_digits(&at, &first))
		return;
	if (at.pos < at.end && *at.pos == ':') {
		if (first > 23 || !take_clock_part(&at, &minutes) ||
		    !take_clock_part(&at, &seconds))
			return;
		ret->clock = STRACE_DAY_TIME;
		ns = ((first * 60 + minutes) * 60 + seconds) * NS_PER_S;
	} else {
		ret->clock = first > DELTA_MAX_S ? STRACE_UNIX_TIME : STRACE_DELTA;
		ns = first * NS_PER_S;
	}
	fraction = take_fraction(&at, &ns);
	if ((!fraction && ret->clock == STRACE_DELTA) || at.pos == at.end || *at.pos != ' ' ||
	    first >= UINT64_MAX / NS_PER_S) {
		ret->clock = STRACE_NO_TIME;
		return;
	}
	ret->coarse = !fraction;
	ret->time_ns = ns;
	at.pos++;
	*c = at;
}

/* `(+     0.000123) ` beside an absolute time: says nothing new. */
static void skip_delta(struct cursor *c)
{
	const char *stop;

	skip_space(c);
	if (!STARTS(c, "(+"))
		return;
	stop = memchr(c->pos, ')', (size_t)(c->end - c->pos));
	if (!stop)
		return;
	c->pos = stop + 1;
	skip_space(c);
}

/* `[ 257] ` a number of a call, `[00007f...] ` or `[????????] ` an address, `[ctx] ` a context. */
static void skip_brackets(struct cursor *c)
{
	while (c->pos < c->end && *c->pos == '[' && !STARTS(c, "[ Process ")) {
		const char *stop = memchr(c->pos, ']', (size_t)(c->end - c->pos));

		if (!stop || stop + 1 == c->end || stop[1] != ' ')
			return;
		c->pos = stop + 1;
		skip_space(c);
	}
}

/* Sorts. */

static bool ends_with(const struct strace_line *l, const char *text, size_t len)
{
	return (size_t)(l->end - l->body) >= len && !memcmp(l->end - len, text, len);
}
#define ENDS_WITH(l, literal) ends_with(l, literal, sizeof(literal) - 1)

/* On a terminal what strace says of a new process may stand in the middle of a call. */
static bool cut_attachment(struct strace_line *l)
{
	const char *remark;

	if (!ENDS_WITH(l, " attached"))
		return false;
	remark = memmem(l->body, (size_t)(l->end - l->body), "strace: Process ", 16);
	if (!remark)
		return false;
	l->end = remark;
	l->split = true;
	return true;
}

/* <unfinished ...>, <detached ...>, <pid changed to 123 ...> */
static void cut_mark(struct strace_line *l)
{
	const char *p = l->end - 5;

	while (p > l->body && *p != '<')
		p--;
	if (p > l->body && p[-1] == ' ') {
		l->end = p - 1;
		l->unfinished = true;
	}
}

static enum strace_sort sort_call(struct strace_line *l)
{
	const char *p = l->body;

	while (p < l->end && ((*p >= 'a' && *p <= 'z') || is_digit(*p) || *p == '_' || *p == '?' ||
			      *p == '#' || (*p >= 'A' && *p <= 'Z')))
		p++;
	if (p == l->end || *p != '(' || p == l->body)
		return STRACE_UNKNOWN;
	if (l->end[-1] == 'd' && cut_attachment(l)) {
		l->unfinished = true;
		return STRACE_CALL;
	}
	if (l->end[-1] != '>' || l->end[-2] != '.')
		return STRACE_CALL;
	if (ENDS_WITH(l, " ...>"))
		cut_mark(l);
	return STRACE_CALL;
}

static enum strace_sort sort_resumed(struct strace_line *l)
{
	const char *stop = memmem(l->body, (size_t)(l->end - l->body), " resumed>", 9);

	if (!stop)
		return STRACE_UNKNOWN;
	l->body = stop + 9;
	/* Up to 4.26 a blank followed. */
	if (l->body < l->end && *l->body == ' ')
		l->body++;
	return STRACE_RESUMED;
}

static enum strace_sort sort_marked(struct strace_line *l)
{
	static const struct {
		const char *text;
		enum strace_sort sort;
	} marks[] = {
		{ "--- stopped by ", STRACE_STOPPED },
		{ "--- SIG", STRACE_SIGNAL },
		{ "+++ exited with ", STRACE_EXITED },
		{ "+++ killed by ", STRACE_KILLED },
		{ "+++ superseded by execve in pid ", STRACE_SUPERSEDED },
	};
	struct cursor c = { l->body, l->end };
	size_t i;

	for (i = 0; i < ARRAY_LEN(marks); i++) {
		if (!starts(&c, marks[i].text, strlen(marks[i].text)))
			continue;
		l->body += strlen(marks[i].text);
		if (marks[i].sort == STRACE_SIGNAL)
			l->body -= 3;
		return marks[i].sort;
	}
	return STRACE_UNKNOWN;
}

static bool is_remark(const struct cursor *c)
{
	/* Few lines begin like one: the first character says so. */
	switch (c->pos < c->end ? *c->pos : 0) {
	case 's':
		return STARTS(c, "strace: ");
	case '[':
		return STARTS(c, "[ Process ");
	case 'P':
		return STARTS(c, "Process ");
	case ' ':
		return STARTS(c, " <unfinished ...>") || STARTS(c, " > ") || STARTS(c, " * ");
	case '%':
		return STARTS(c, "% time");
	case '-':
		return STARTS(c, "------ ");
	default:
		return false;
	}
}

static enum strace_sort sort_body(struct strace_line *l)
{
	struct cursor c = { l->body, l->end };

	if (c.pos == c.end)
		return STRACE_EMPTY;
	if (*c.pos == '<' && STARTS(&c, "<... "))
		return sort_resumed(l);
	if (is_remark(&c))
		return STRACE_REMARK;
	if (*c.pos == '-' || *c.pos == '+')
		return sort_marked(l);
	return sort_call(l);
}

void strace_split_line(const char *text, size_t len, struct strace_line *ret)
{
	struct cursor c = { text, text + len };

	*ret = (struct strace_line){ .body = text, .end = text + len };
	if (len > 2 && text[0] == ' ' && text[1] == '|') {
		ret->sort = STRACE_DUMP;
		return;
	}
	if (is_remark(&c)) {
		ret->sort = STRACE_REMARK;
		return;
	}
	take_tid(&c, ret);
	if (c.pos < c.end && *c.pos == '[')
		skip_brackets(&c);
	take_time(&c, ret);
	skip_delta(&c);
	skip_brackets(&c);
	ret->body = c.pos;
	ret->sort = sort_body(ret);
}
