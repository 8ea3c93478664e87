/* SPDX-License-Identifier: MIT */
/* An event in one line, for commands that show some of a trace. */
#ifndef CLI_EVENT_LINE_H
#define CLI_EVENT_LINE_H

#include "base/buf.h"
#include "trace/reader.h"

/* "PID/TID #SEQ call(...) = result", as `reprise show` prints the call; data is loaded from t. */
void event_line_put(struct trace *t, const struct event *ev, struct buf *b);
/* ... with the paths behind its descriptors; a NULL of fd_path(): not known. */
void event_line_put_paths(struct trace *t, const struct event *ev,
			  const char *(*fd_path)(void *ctx, int fd), void *ctx, struct buf *b);

#endif
