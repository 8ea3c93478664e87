/* SPDX-License-Identifier: MIT */
/* What the commands that read a trace have in common: opening, filters, the end of the file. */
#ifndef CLI_OPEN_TRACE_H
#define CLI_OPEN_TRACE_H

#include "cli/cli.h"
#include "report/filter.h"
#include "trace/reader.h"

/* CLI_DONE; or CLI_FAILED, having said why. */
MUST_CHECK int open_trace(const struct cli *cli, const char *path, struct trace **ret);

/*
 * Ends the reading: closes the trace and returns the exit status. A failure that
 * was met while reading (r < 0) is told. Else, what is missing at the end of the
 * file is: a warning when it ends with a whole block, a failure when it ends
 * within one. To be called after all that could be read was printed.
 */
MUST_CHECK int close_trace(const struct cli *cli, struct trace *t, int r, const struct err *err);

/* The rows of a filter in a table of options; `field` is a struct filter_options. */
#define OPT_FILTERS(struct_type, field)                                                            \
	OPT_U64S('p', "pid", "PID", struct_type, field.pids, "only this process"),                 \
		OPT_U64S('t', "tid", "TID", struct_type, field.tids, "only this thread"),          \
		OPT_STRINGS('c', "call", "NAME", struct_type, field.calls,                         \
			    "only these calls: names or globs, separated by commas; !NAME: not "   \
			    "this one; a name stands for its variants too"),                       \
		OPT_STRINGS('C', "class", "CLASS", struct_type, field.classes,                     \
			    "only calls of this class, as 'reprise calls' shows them; %file: "     \
			    "with a name of a file, %desc: with a descriptor"),                    \
		OPT_STRINGS('P', "path", "PATH", struct_type, field.paths,                         \
			    "only events on this path (or glob) or below it, by name or by "       \
			    "descriptor"),                                                         \
		OPT_U64S(0, "fd", "FD", struct_type, field.fds,                                    \
			 "only events with this descriptor"),                                      \
		OPT_FLAG(0, "failed", struct_type, field.failed, "only calls that failed"),        \
		OPT_FLAG(0, "ok", struct_type, field.ok, "only calls that succeeded"),             \
		OPT_STRINGS('e', "errno", "NAME", struct_type, field.errnos,                       \
			    "only calls that failed with this error"),                             \
		OPT_DURATION(0, "min-duration", "TIME", struct_type, field.min_duration_ns,        \
			     "only events that took at least so long"),                            \
		OPT_DURATION(0, "max-duration", "TIME", struct_type, field.max_duration_ns,        \
			     "only events that took at most so long"),                             \
		OPT_DURATION(0, "from", "TIME", struct_type, field.from_ns,                        \
			     "only events that end at this time after the start, or later"),       \
		OPT_DURATION(0, "to", "TIME", struct_type, field.to_ns,                            \
			     "only events that begin before this time after the start")

#endif
