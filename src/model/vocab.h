/* SPDX-License-Identifier: MIT */
/*
 * Vocabularies: the names of bits and numbers. One that is printed and read
 * back is unchanged whatever bits it has: unknown ones appear as numbers.
 */
#ifndef MODEL_VOCAB_H
#define MODEL_VOCAB_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "model/row.h"

struct set_entry {
	const char *name;
	uint64_t value, mask; /* named when (v & mask) == value */
};

struct set_desc {
	const char *name;
	const struct set_entry *entries;
	size_t nr_entries;
};

extern const struct set_desc set_descs[SET_MAX];

void vocab_print_flags(struct buf *out, enum set_id set, uint64_t v);
void vocab_print_enum(struct buf *out, enum set_id set, int64_t v);
/* The name of exactly this number, NULL if it has none. */
const char *vocab_name(enum set_id set, uint64_t v);
/* Reads "A|B|0x10" or a number; false when a word is unknown. */
bool vocab_parse(enum set_id set, const char *text, size_t len, uint64_t *ret);

/* Names of error numbers and signals ("ENOENT", "SIGINT"), NULL when there is none. */
const char *errno_name(int err);
const char *signal_name(int signo);
bool errno_parse(const char *text, size_t len, int32_t *ret);
bool signal_parse(const char *text, size_t len, int32_t *ret);

#endif
