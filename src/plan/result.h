/* SPDX-License-Identifier: MIT */
/*
 * What a call gives back besides its outcome, as far as it must be the same
 * wherever it is made again: one hash over the stable parts.
 *
 *   data read           the bytes
 *   stat, statx         type, permissions, size of files and symlinks, rdev (a link elsewhere is none of the trace's)
 *   listings            names and types as a set: their order is the file system's own business
 *   readlink, xattrs    the bytes; lists of xattr names as a set
 *   F_GETLK             type and range of the lock that was found, or that there is none
 *   anything else       nothing (times, inode numbers, block counts, addresses)
 */
#ifndef PLAN_RESULT_H
#define PLAN_RESULT_H

#include <stdbool.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "base/attrs.h"
#include "model/event.h"
#include "model/kernel_structs.h"

/*
 * False: there is nothing to compare, or what there is was not kept. Data that
 * is given by refs counts by their hashes, data that is given by bytes is cut
 * into the same pieces and hashed, so both come to the same. A list of names of
 * xattrs must be given by bytes.
 *
 * Results of listings (of directories and of names of xattrs) add up, low and
 * high halves apart: the sum over the calls that make up one listing is that of
 * the whole, wherever it was cut. A call at the end of a listing gives 0.
 */
bool result_hash(const struct row *row, const struct outcome *outcome, const struct value *args,
		 struct hash128 *ret);

/* Of data that is all known, at least by its hashes, and so long; as result_hash_data(). */
MUST_CHECK bool result_hash_value(const struct value *v, uint64_t len, struct hash128 *ret);
/* The same for bytes at hand: what a replay has read into one buffer. */
struct hash128 result_hash_data(const void *bytes, uint64_t len);
/* ... or into several, of which the first len bytes were filled. */
struct hash128 result_hash_vec(const struct iovec *iov, uint64_t nr_iov, uint64_t len);
/* ... stat, statx, records of getdents64 and getdents, and lists of names as the kernel gives them. */
struct hash128 result_hash_stat(const struct stat *st);
/* False: type, mode, links or size are not in its mask. */
MUST_CHECK bool result_hash_statx(const struct statx *stx, struct hash128 *ret);
struct hash128 result_hash_dirents64(const void *records, size_t len);
struct hash128 result_hash_dirents(const void *records, size_t len);
/* What the entry of this name adds to such a hash; false when it is not among the records. */
MUST_CHECK bool result_find_dirent(const void *records, size_t len, bool old, const char *name,
				   struct hash128 *ret);
struct hash128 result_hash_names(const void *names, size_t len);
/* ... and the answer of F_GETLK: the lock, and what it comes to if only the fact counts. */
struct hash128 result_hash_lock(const struct k_flock *lock);
struct hash128 result_hash_no_lock(void);
struct hash128 result_hash_some_lock(void);

/* For sums of listings. */
static inline void result_add(struct hash128 *sum, struct hash128 more)
{
	sum->low += more.low;
	sum->high += more.high;
}

#endif
