/* SPDX-License-Identifier: MIT */
/*
 * A line of strace's text, taken apart as far as it can be without knowing
 * calls: who, when, and what sort of line it is. All is borrowed from the line.
 */
#ifndef IMPORT_STRACE_LINE_H
#define IMPORT_STRACE_LINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum strace_sort {
	STRACE_CALL, /* name( ... also without an end */
	STRACE_RESUMED, /* <... name resumed> rest */
	STRACE_SIGNAL, /* --- SIGxxx {...} --- */
	STRACE_STOPPED, /* --- stopped by SIGxxx --- */
	STRACE_EXITED, /* +++ exited with N +++ */
	STRACE_KILLED, /* +++ killed by SIGxxx (core dumped) +++ */
	STRACE_SUPERSEDED, /* +++ superseded by execve in pid N +++ */
	STRACE_DUMP, /* | 00000  68 65 ...: bytes of the call before */
	STRACE_REMARK, /* what strace says beside: stacks, tables, attachments */
	STRACE_EMPTY,
	STRACE_UNKNOWN,
};

enum strace_clock {
	STRACE_NO_TIME,
	STRACE_UNIX_TIME,
	STRACE_DAY_TIME, /* since midnight, wraps */
	STRACE_DELTA, /* since the line before, of any thread */
};

struct strace_line {
	enum strace_sort sort;
	enum strace_clock clock;
	bool coarse; /* the time has no fraction */
	uint32_t tid; /* 0: the line does not say */
	uint64_t time_ns;
	const char *comm; /* -Y; NULL: not told */
	size_t comm_len;
	/*
	 * CALL: from its name on. RESUMED: behind "resumed>". SIGNAL, STOPPED, KILLED:
	 * the signal's name on. EXITED, SUPERSEDED: the number on. DUMP: all.
	 */
	const char *body, *end;
	bool split; /* a remark stands in the middle of it: the rest may be the next line */
	bool unfinished; /* of a call: `body` to `end` is a first part */
};

/*
 * Digits behind a decimal point, from *p on, as ns; beyond the ninth they count
 * nothing. *p is moved behind them.
 */
uint64_t strace_take_fraction_ns(const char **p, const char *end);
void strace_split_line(const char *text, size_t len, struct strace_line *ret);

#endif
