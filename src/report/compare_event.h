/* SPDX-License-Identifier: MIT */
/*
 * Are two events the same, apart from when they happened and from numbers that
 * the system deals out anew in each run? Pure functions; any thread may call.
 */
#ifndef REPORT_COMPARE_EVENT_H
#define REPORT_COMPARE_EVENT_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "model/event.h"

/* What is no difference. Times of events, their seq, cpu and held never are. */
enum compare_ignore {
	IGNORE_PIDS = 1, /* of processes and threads */
	IGNORE_ADDRS = 2, /* addresses of memory */
	IGNORE_TIMES = 4, /* that calls gave back: of files, of clocks, of timers */
	IGNORE_INODES = 8, /* and device numbers */
	IGNORE_FDS = 16, /* numbers of descriptors */
	IGNORE_OWNERS = 32, /* users and groups */
	IGNORE_DATA = 64, /* what is in buffers */
	IGNORE_UNKNOWN = 128, /* what only one of the traces knows */
};
#define COMPARE_IGNORE_DEFAULT (IGNORE_PIDS | IGNORE_ADDRS | IGNORE_TIMES)

/* "pids", "addrs,times"; adds to *ret. */
MUST_CHECK int compare_parse_ignore(const char *words, unsigned int *ret, struct err *err);

/* In this order: an event that differs in several ways is counted under the first. */
enum difference {
	DIFFERENCE_MISSING, /* the second trace lacks it */
	DIFFERENCE_EXTRA, /* the first trace lacks it */
	DIFFERENCE_CALL, /* another call stands in its place */
	DIFFERENCE_ARGUMENT, /* what was asked for */
	DIFFERENCE_OUTCOME, /* what came back, but for data */
	DIFFERENCE_DATA, /* what was written or read */
	DIFFERENCE_MAX,
};

extern const char *const difference_names[DIFFERENCE_MAX];

/* True when they differ: how, and in what (the name of an argument, or "result"; borrowed). */
bool compare_events(const struct event *a, const struct event *b, unsigned int ignore,
		    enum difference *ret_how, const char **ret_what);

/* True when these differ: values of an argument or field, results of the same call. */
bool compare_values(const struct arg *arg, const struct value *a, const struct value *b,
		    unsigned int ignore, bool came_back);
bool compare_results(const struct event *a, const struct event *b, unsigned int ignore);
/* What the recorder read after the call, or found elsewhere. */
bool compare_came_back(const struct arg *arg);

/* Equal for what does not differ, and hardly ever for what does. */
uint64_t compare_fingerprint(const struct event *ev, unsigned int ignore);
uint64_t compare_fingerprint_item(const struct item *item, unsigned int ignore);

#endif
