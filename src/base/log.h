/* SPDX-License-Identifier: MIT */
/*
 * Lines for those who debug this program, chosen by directory:
 * REPRISE_DEBUG=trace,order (or "all"). When an area is off, log_debug() costs
 * one test of a word and does not evaluate its arguments. The mask is set once,
 * before there are threads; then any thread may log, a line at a time.
 */
#ifndef BASE_LOG_H
#define BASE_LOG_H

#include "base/attrs.h"
#include "base/err.h"

/* One for each directory of src/, by its name. */
#define LOG_AREAS(AREA)                                                                            \
	AREA(BASE, "base")                                                                         \
	AREA(MODEL, "model")                                                                       \
	AREA(TRACE, "trace")                                                                       \
	AREA(IMPORT, "import")                                                                     \
	AREA(RECORD, "record")                                                                     \
	AREA(FSMODEL, "fsmodel")                                                                   \
	AREA(ORDER, "order")                                                                       \
	AREA(PLAN, "plan")                                                                         \
	AREA(COMPILE, "compile")                                                                   \
	AREA(SNAPSHOT, "snapshot")                                                                 \
	AREA(REPLAY, "replay")                                                                     \
	AREA(REPORT, "report")                                                                     \
	AREA(DIST, "dist")                                                                         \
	AREA(CLI, "cli")

enum log_area {
#define AREA(id, name) LOG_##id,
	LOG_AREAS(AREA)
#undef AREA
		LOG_AREA_MAX,
};

extern unsigned int log_mask;

#define log_debug(area, ...)                                                                       \
	do {                                                                                       \
		if (UNLIKELY(log_mask & (1u << (area))))                                           \
			log_print((area), __VA_ARGS__);                                            \
	} while (0)

PRINTF_LIKE(2, 3) void log_print(enum log_area area, const char *fmt, ...);

/*
 * Sets the mask from a list of names; NULL and "" mean none. -EINVAL for an
 * unknown name.
 */
MUST_CHECK int log_set_areas(const char *names, struct err *err);

#endif
