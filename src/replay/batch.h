/* SPDX-License-Identifier: MIT */
/*
 * Reads of a lane that follow each other and wait for nothing, made at once
 * through an io_uring of the lane's own (--batch-reads):
 *
 *     ring of the lane:  pread pread pread ... | anything else, or an edge that is not satisfied
 *                        one io_uring_enter    |
 *
 * Only reads that name their offset: they depend on no other read. Where one comes
 * back otherwise than it was recorded (short, or refused by the ring) it is made
 * again by the call itself, and that counts.
 *
 * The lane's buffer is registered with its ring, and so are files that many reads
 * of a batch use. A registered file would stay open when its slot is closed, so
 * whoever closes a slot takes it out of all rings first (batch_forget()).
 */
#ifndef REPLAY_BATCH_H
#define REPLAY_BATCH_H

#include <stdint.h>

struct batch;
struct lane;
struct ready;
struct run;
struct slot;

/* NULL, and *ret_errno, when the kernel gives no ring. On the lane's thread. */
struct batch *batch_new(struct lane *l, int *ret_errno);
void batch_free(struct batch *b);
/* Performs actions from this one on, number `nr` of the lane. How many; 0: it is none for a batch. */
uint64_t batch_perform(struct lane *l, struct ready *a, uint64_t nr);
/* No ring keeps the file of the slot any more. Any thread. */
void batch_forget(struct run *run, struct slot *s);

#endif
