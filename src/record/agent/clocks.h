/* SPDX-License-Identifier: MIT */
/*
 * What the agent takes the time from: the processor's counter, which costs least, if it is
 * steady; else the kernel's clock, read as the kernel lets programs do it themselves (by the
 * vDSO), or asked for.
 */
#ifndef RECORD_AGENT_CLOCKS_H
#define RECORD_AGENT_CLOCKS_H

#include <stdbool.h>
#include <stdint.h>

#include "record/recorder.h"

struct tracee;

struct clocks {
	bool by_kernel; /* not by the counter */
	uint64_t vdso_offset; /* of the function in the vDSO; 0: the kernel is to be asked */
};

void clocks_choose(struct clocks *c, enum record_clock wish);
/* "counter", "vdso" or "kernel". */
const char *clocks_name(const struct clocks *c);
/* Where the function is in the program; 0: nowhere. */
uint64_t clocks_function_of(const struct clocks *c, const struct tracee *t);

#endif
