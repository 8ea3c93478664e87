/* SPDX-License-Identifier: MIT */
/*
 * Lines of the iBench tools: "[field]; [field]; ...; ". Whatever stands between
 * two separators is a field, brackets too.
 */
#ifndef IMPORT_BRACKETS_H
#define IMPORT_BRACKETS_H

#include <stddef.h>

#include "base/attrs.h"
#include "base/err.h"
#include "model/scan.h"

/* How many fields the line has, at most `max`, or -EBADMSG. */
MUST_CHECK int brackets_split(const char *line, size_t len, struct scan_word *ret, unsigned int max,
			      struct err *err);

#endif
