/* SPDX-License-Identifier: MIT */
/*
 * The memory that a record has copies of. The record stands in a ring that the program can change
 * at any moment. So the heads of its copies are read once, checked, and kept here. What stays in the
 * ring are the copied bytes: whoever takes some reads them once, into memory of his own.
 */
#ifndef RECORD_AGENT_COPIES_H
#define RECORD_AGENT_COPIES_H

#include <stddef.h>
#include <string.h>

#include "base/attrs.h"
#include "record/memory.h"

/* From memory that others write: what is here then is not read from there again. */
static inline void copy_once(void *to, const void *from, size_t len)
{
	memcpy(to, from, len);
	__atomic_signal_fence(__ATOMIC_ACQ_REL); /* the compiler might, else */
}

struct copy {
	uint64_t addr, len_bytes; /* in the program */
	const uint8_t *bytes; /* in the ring */
};

struct copies {
	struct memory memory; /* first: its functions get a pointer to it */
	const struct copy *list; /* the caller's */
	size_t nr;
	size_t next; /* the last one that was found: the next one is often behind it */
	uint64_t nr_missed;
};

/* The heads of nr copies, which take up len bytes. False: no agent has written them. */
MUST_CHECK bool copies_read(const uint8_t *bytes, uint64_t len, size_t nr, struct copy *ret);
struct copies copies_of(const struct copy *list, size_t nr);
/* How many bytes from the address on there are in one copy; *ret: where. */
uint64_t copies_find(struct copies *c, uint64_t addr, const uint8_t **ret);

#endif
