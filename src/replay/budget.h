/* SPDX-License-Identifier: MIT */
/*
 * How much memory a plan may make a run use: its lanes, pages of private maps,
 * what its pipes can hold. It is taken before it is used; what is refused is not
 * used, and counted. What memfds hold is bounded apart, by the kernel
 * (contain_memory()). Any thread may call.
 */
#ifndef REPLAY_BUDGET_H
#define REPLAY_BUDGET_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>

struct budget {
	uint64_t limit_bytes;
	_Atomic uint64_t taken_bytes, nr_refused;
};

/*
 * A quarter of what the machine has available, or of what the tightest of our
 * control groups leaves, without page cache: memfds may take as
 * much again.
 */
uint64_t budget_default_bytes(void);
/* False, and counted: it would be too much. */
bool budget_take(struct budget *b, uint64_t bytes);
void budget_give(struct budget *b, uint64_t bytes);

#endif
