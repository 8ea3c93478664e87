/* SPDX-License-Identifier: MIT */
/* A futex call as its event tells it: which words, who may be woken, how many. */
#ifndef ORDER_FUTEX_CALL_H
#define ORDER_FUTEX_CALL_H

#include "model/event.h"

enum futex_what {
	FUTEX_NOTHING,
	FUTEX_WAITS, /* until woken at its word */
	FUTEX_LOCKS, /* may not have waited at all */
	FUTEX_WAKES,
	FUTEX_REQUEUES, /* wakes some, the others then wait at the second word */
	FUTEX_WAKES_TWO, /* at either word: how many at which is not told */
	FUTEX_UNLOCKS,
};

enum futex_key_kind {
	FUTEX_KEY_NONE,
	FUTEX_KEY_PRIVATE, /* address space, address */
	FUTEX_KEY_SHARED, /* device, inode, offset */
	FUTEX_KEY_LOCAL, /* process, address: when nothing better is known, and for the kernel's own wakes */
};

/* Compared and hashed as bytes. */
struct futex_key {
	uint64_t kind, a, b, c;
};

struct futex_call {
	enum futex_what what;
	struct futex_key key, key2;
	struct futex_key local; /* of the first word, by process and address */
	uint32_t bitset;
	uint32_t nr_woken; /* at most, of the result */
	uint32_t nr_moved;
	bool all; /* whoever waits is woken (or moved) */
	const struct value *woken; /* the threads, where the recorder knows them; else NULL */
};

struct futex_key futex_key_local(uint32_t pid, uint64_t addr);

/* false: no futex call, or one without a word. */
bool futex_call_read(const struct event *ev, struct futex_call *ret);

#endif
