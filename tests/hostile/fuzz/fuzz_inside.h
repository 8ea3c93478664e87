/* SPDX-License-Identifier: MIT */
/*
 * A program that writes into all memory that it shares with its recorder, while it makes
 * calls. What becomes of itself does not matter; the recorder has to go on, and its trace
 * has to be whole.
 */
#ifndef HOSTILE_FUZZ_INSIDE_H
#define HOSTILE_FUZZ_INSIDE_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/wire.h"

extern atomic_bool round_is_over;

/* Random numbers of one thread. */
uint64_t draw(uint64_t *x);
/* One that is likely to lie at a limit of something. */
uint64_t draw_value(uint64_t *x);

/* shared.c: the agent's memory. */

/* Finds all of it. False: there is none, as the program has no agent (yet). */
bool shared_find(void);
/* The block of the thread that calls; NULL: none. */
struct wire_block *shared_own_block(void);
uint8_t *shared_ring_of(struct wire_block *b);
/* A block that some thread uses; NULL: chance has found none. */
struct wire_block *shared_any_block(uint64_t *x);
/* A word anywhere in the memory that is mapped. */
uint64_t *shared_any_word(uint64_t *x);

/* forge.c: records that no agent has made. */

/* At most FORGED_MAX_BYTES of it; returns its length. */
#define FORGED_MAX_BYTES 65536u
uint64_t forge_record(const struct wire_rule *rules, uint8_t *at, uint64_t *x);
/*
 * Puts records into the ring of the calling thread, which makes no calls meanwhile, and writes over its
 * block. Does not return.
 */
void forge_records(uint64_t seed) __attribute__((noreturn));
/* One thing that every recorder has to notice. 0: it has; 77: there is no agent. */
int forge_once(const char *kind);

/* programs.c: what others do meanwhile, each as the body of a thread or process. */

void make_calls(uint64_t seed);
void make_processes(uint64_t seed);
void use_uring(uint64_t seed);
void use_aio(uint64_t seed);
/* Maps a copy of the library, and writes over it. */
void use_library(uint64_t seed, const char *library);

#endif
