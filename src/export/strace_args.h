/* SPDX-License-Identifier: MIT */
/*
 * Where strace prints otherwise than we do: socket addresses, numbers that a call
 * changes in memory, and what polling found, which stands behind the result.
 */
#ifndef EXPORT_STRACE_ARGS_H
#define EXPORT_STRACE_ARGS_H

#include "model/print.h"

/* For print_style.arg. */
bool strace_put_arg(const struct print_style *style, struct buf *out, const struct row *row,
		    const struct value *args, unsigned int i);
/* What stands behind the result, with a blank before it; nothing for most calls. */
void strace_put_note(const struct print_style *style, struct buf *out, const struct event *ev);

#endif
