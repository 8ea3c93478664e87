/* SPDX-License-Identifier: MIT */
/*
 * Requests in flight, by a key of three words. Several may have one key: the
 * oldest is found first. What was never seen to complete stays, so the table
 * has a limit; beyond it requests are refused and their completions are not
 * matched. Owned by one thread.
 */
#ifndef RECORD_AIO_REQUESTS_H
#define RECORD_AIO_REQUESTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/uio.h>

#define REQUESTS_MAX ((size_t)1 << 18)
/* Of all requests together. */
#define REQUESTS_IOVS_MAX ((size_t)4 << 20)
/* So many stand side by side at most: a program that gives all of them one key would make each look long. */
#define REQUESTS_RUN_MAX 4096u

struct request {
	uint64_t key[3]; /* process; context or ring; iocb or user_data */
	uint64_t number; /* in the order of submission */
	uint64_t addr, addr2, len;
	struct iovec *iov; /* owned by the table; NULL: addr and len are all */
	uint32_t nr_iov;
	uint32_t file_index;
	uint8_t opcode, flags;
	bool taken;
};

struct requests {
	struct request *slots;
	size_t nr_slots, nr_taken;
	size_t nr_iovs;
	uint64_t seed; /* so that no program can choose keys that have their places side by side */
};

/* A zeroed table is an empty table. */
void requests_release(struct requests *r);
/* False when there are too many, or too many of its key; then iov is still the caller's. */
bool requests_add(struct requests *r, const struct request *req);
/* Valid until the next change; NULL: none. */
struct request *requests_find(const struct requests *r, const uint64_t key[3]);
struct request *requests_find_number(const struct requests *r, const uint64_t key[3],
				     uint64_t number);
void requests_remove(struct requests *r, struct request *req);
/* All whose first word, and second unless that is NULL, are these. */
void requests_remove_all(struct requests *r, uint64_t first, const uint64_t *second);

#endif
