/* SPDX-License-Identifier: MIT */
/*
 * Pathnames and other strings that are too long to stand in an event, brought
 * in from the store: whoever walks paths needs their bytes. What was loaded is
 * remembered by its hash, because programs use the same names again and again.
 */
#ifndef COMPILE_TEXTS_H
#define COMPILE_TEXTS_H

#include "base/arena.h"
#include "base/map.h"
#include "model/event.h"
#include "trace/reader.h"

struct texts {
	struct map by_hash;
	uint64_t nr_bytes;
};

void texts_release(struct texts *t);
/*
 * Puts bytes where there were references, in values of the kinds PATH and STR
 * and in lists of names. They stay valid until texts_trim(). What cannot be
 * loaded stays as it is, and trace_tail() will say why.
 */
void texts_load(struct texts *t, struct trace *trace, const struct row *row, struct value *args);
/* Nobody uses what was loaded: it may be forgotten if it has become much. */
void texts_trim(struct texts *t);

#endif
