/* SPDX-License-Identifier: MIT */
/*
 * What a process has mapped, as the kernel tells it at one moment.
 */
#ifndef RECORD_AGENT_MAPS_H
#define RECORD_AGENT_MAPS_H

#include <stdbool.h>
#include <stdint.h>

#include "base/buf.h"
#include "base/mem.h"
#include "record/ptrace/tracee.h"

struct map_line {
	uint64_t start, end, offset, dev, ino;
	bool is_executable;
	bool is_private; /* what is changed there is nobody else's, and not the file's */
	const char *path; /* as the process sees it; or another word, or empty; the maps' */
};

struct maps {
	VEC(struct map_line) lines; /* by address */
	struct buf text;
};

/* None when the process is gone. */
void maps_read(const struct tracee *t, struct maps *ret);
void maps_release(struct maps *m);

/* The code that the kernel puts into every process, the same everywhere; NULL: it is not there. */
const struct map_line *maps_find_vdso(const struct maps *m);
/* Of a file. */
bool maps_is_text(const struct map_line *l);
/* Whether a jump can go from one to the other. */
bool maps_are_near(uint64_t a, uint64_t b);
/* Where so much can be mapped near an address, as far below the next map as can be; 0: nowhere. */
#define MAPS_GAP_BYTES UINT64_C(0x40000)
uint64_t maps_find_gap(const struct maps *m, uint64_t near);
/*
 * Where memory is in nobody's way: no stack grows to there, and the kernel chooses it for
 * nothing that the program maps. 0: nowhere.
 */
uint64_t maps_find_apart(const struct maps *m, uint64_t bytes);

#endif
