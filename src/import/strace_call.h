/* SPDX-License-Identifier: MIT */
/*
 * A whole call in strace's text, `name(arguments) = result <time>`, as an event.
 * Which row it is, and how its arguments are read, the table says; what strace
 * prints otherwise than the table has it is listed in strace_call.c.
 */
#ifndef IMPORT_STRACE_CALL_H
#define IMPORT_STRACE_CALL_H

#include "base/err.h"
#include "import/strace_value.h"
#include "model/event.h"

/* A descriptor among the arguments that -y decorates: `3</tmp/x>`. */
struct strace_fd {
	uint64_t fd;
	const char *path; /* in the text */
	size_t path_len;
	bool is_directory; /* the call takes it for one */
};
#define STRACE_CALL_FDS_MAX 3

struct strace_call {
	struct event ev; /* row, arguments, outcome, flags; values in the text's arena */
	bool has_duration; /* -T */
	uint64_t duration_ns;
	uint64_t cut_bytes; /* data that the text leaves out */
	const char *note; /* what stands in parentheses behind the result, NULL: nothing */
	size_t note_len;
	struct strace_fd fds[STRACE_CALL_FDS_MAX];
	unsigned int nr_fds;
};

/*
 * Reads the call that stands in t. -EBADMSG with words: it is none, or of an
 * unknown name. Arguments that are not understood are VALUE_NONE, and t->bad
 * tells. A call without a result has EVENT_UNFINISHED.
 */
MUST_CHECK int strace_call_read(struct strace_text *t, struct strace_call *ret, struct err *err);

/* The error of a call that a signal broke off (ERESTARTSYS ...). */
static inline bool strace_call_is_broken(const struct event *ev)
{
	return ev->outcome.err >= 512 && ev->outcome.err <= 516;
}

/* Whether it makes a thread or process, and with which flags of clone. */
bool strace_call_makes_thread(const struct event *ev, uint64_t *ret_flags);

#endif
