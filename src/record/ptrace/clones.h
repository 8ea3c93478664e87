/* SPDX-License-Identifier: MIT */
/*
 * Calls that make a child. With CLONE_UNTRACED the kernel would hide the child
 * from us; and if a filter of ours chooses the calls, the child would inherit
 * it without a tracer, and its calls would fail. So the flag is taken out while
 * the call is made, and put back before parent or child can see that.
 */
#ifndef RECORD_PTRACE_CLONES_H
#define RECORD_PTRACE_CLONES_H

#include <stdbool.h>
#include <stdint.h>

struct row;
struct tracee;

/* A flag that was taken out. */
struct hidden_flag {
	bool is_hidden;
	uint64_t at; /* in memory; 0: in the first register */
	uint64_t value; /* what stood there */
};

bool clones_is_one(const struct row *row);
/*
 * At the entry: notes the flags of the call, with the signal at the child's
 * end as clone() has it. False when a child would not be seen.
 */
bool clones_enter(struct tracee *t);
/* Before that: whether the child will run in the same memory, beside its parent. */
bool clones_will_share_memory(const struct tracee *t);
/* After that: whether the child will run in the same memory, beside its parent. */
bool clones_shares_memory(const struct tracee *t);
/* The thread is stopped: what was taken out is put back. */
void clones_put_back(struct tracee *t);
/* The child has a copy of what its parent had then. */
void clones_pass_on(const struct tracee *parent, struct tracee *child);

#endif
