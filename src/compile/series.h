/* SPDX-License-Identifier: MIT */
/*
 * Action series: for each resource the numbers of the events that touched it, in
 * order, as in Figure 2(b) of the ROOT paper. A renamed directory takes the
 * names below it along: each old one ends and each new one begins with the
 * rename. Looks on while a trace is compiled; keeps all that it will tell.
 */
#ifndef COMPILE_SERIES_H
#define COMPILE_SERIES_H

#include "compile/compile.h"

struct series;

struct series *series_new(void);
void series_free(struct series *s);
struct compile_observer *series_observer(struct series *s);

/* In the order of first touch. */
struct series_entry {
	const char *name; /* path(/a/b)@1, fd3@2, thread(12) ... */
	const uint64_t *events;
	size_t nr_events;
};

size_t series_count(const struct series *s);
struct series_entry series_get(const struct series *s, size_t n);

#endif
