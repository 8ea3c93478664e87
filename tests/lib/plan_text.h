/* SPDX-License-Identifier: MIT */
/*
 * Plans written as text, for tests. A line is an action:
 *
 *     LANE [<LANE:NR ...] [!LANE:NR ...] [think=BEFORE,AFTER] [flags=N] EVENT
 *
 * <1:3 waits until action 3 of lane 1 is done, !1:3 until it has started; think
 * is in ns; EVENT is an event as exact text, with slots for descriptors. What the
 * text says of data that was read becomes the result that a replay verifies.
 * Empty lines and lines that begin with # do not count. Aborts with a word about
 * what is wrong: without the plan there is nothing to test.
 */
#ifndef LIB_PLAN_TEXT_H
#define LIB_PLAN_TEXT_H

#include <stdint.h>

struct plan_text;

struct plan_text *plan_text_new(const char *path, uint32_t nr_slots);
void plan_text_add(struct plan_text *p, const char *line);
/* Writes the plan and frees p. */
void plan_text_close(struct plan_text *p);

/* All of it at once; lines are separated by newlines. */
void plan_from_text(const char *path, uint32_t nr_slots, const char *text);

#endif
