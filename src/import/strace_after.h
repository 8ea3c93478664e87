/* SPDX-License-Identifier: MIT */
/*
 * What a call gave back, where strace shows it elsewhere than the table has it:
 * behind the result, in place of what was asked for, or not at all because the rest
 * of the line implies it.
 */
#ifndef IMPORT_STRACE_AFTER_H
#define IMPORT_STRACE_AFTER_H

#include "import/strace_call.h"

/* `in => out`: the second goes to the argument that is read after the call. */
void strace_after_put(struct event *ev, unsigned int i, const struct value *after);
/* Completes a call whose arguments, result and note have been read. */
void strace_after_apply(struct strace_text *t, struct strace_call *c);

#endif
