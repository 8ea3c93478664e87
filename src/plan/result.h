/* SPDX-License-Identifier: MIT */
/*
 * What a call gives back besides its outcome, as far as it must be the same
 * wherever it is made again: one hash over the stable parts.
 *
 *   data read           the bytes
 *   stat, statx         type, permissions, links of what is no directory, size of files and symlinks, rdev
 *   listings            names and types as a set: their order is the file system's own business
 *   readlink, xattrs    the bytes; lists of xattr names as a set
 *   anything else       nothing (times, inode numbers, block counts, addresses)
 */
#ifndef PLAN_RESULT_H
#define PLAN_RESULT_H

#include <stdbool.h>

#include "model/event.h"

/*
 * False: there is nothing to compare, or what there is was not kept. Data that
 * is given by refs counts by their hashes, data that is given by bytes is cut
 * into the same pieces and hashed, so both come to the same.
 */
bool result_hash(const struct row *row, const struct outcome *outcome, const struct value *args,
		 struct hash128 *ret);

/* The same for bytes at hand: what a replay has read. */
struct hash128 result_hash_data(const void *bytes, uint64_t len);

#endif
