/* SPDX-License-Identifier: MIT */
/*
 * Names in strace's text: of calls, and of the words of all vocabularies. Made
 * once for an import, constant afterwards; a look-up hashes the word and, as a
 * rule, compares once.
 */
#ifndef IMPORT_STRACE_NAMES_H
#define IMPORT_STRACE_NAMES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model/row.h"

struct strace_names;

/* What is known of a call besides its row. */
struct strace_call_name {
	const char *name;
	size_t len;
	const struct row *row; /* of the kernel's call */
	int selector; /* which argument selects a variant; -1: it has none */
};

struct strace_names *strace_names_new(void);
void strace_names_free(struct strace_names *n);

/* NULL when there is no such call. */
const struct strace_call_name *strace_names_call(const struct strace_names *n, const char *word,
						 size_t len);
/*
 * The number that a word stands for: in the vocabulary or, when that has no such
 * word, in all of them, if they agree on it.
 */
bool strace_names_word(const struct strace_names *n, enum set_id set, const char *word, size_t len,
		       uint64_t *ret);

#endif
