/* SPDX-License-Identifier: MIT */
/* The sources of one session: the one that runs the program, and those beside it in their threads. */
#ifndef RECORD_SESSION_SOURCES_H
#define RECORD_SESSION_SOURCES_H

#include "record/session.h"
#include "record/source.h"

struct session_sources;

/* Opens all of them; the one that runs the program first. */
MUST_CHECK int session_sources_open(struct session *s, const struct source *runs, struct err *err);
MUST_CHECK int session_sources_describe(struct session *s);
/* Runs the program, with the others beside it; they have ended when it returns. */
MUST_CHECK int session_sources_run(struct session *s, struct err *err);
MUST_CHECK int session_sources_account(struct session *s);
void session_sources_close(struct session *s);

#endif
