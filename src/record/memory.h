/* SPDX-License-Identifier: MIT */
/*
 * The memory of the thread that is being recorded, as a recorder can reach it
 * (another process's by process_vm_readv, or copies that an agent made).
 */
#ifndef RECORD_MEMORY_H
#define RECORD_MEMORY_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <sys/uio.h>

struct memory {
	/*
	 * Reads the remote spans into the local ones, in order, in one go. Returns
	 * how many bytes were read before the first address that is not there;
	 * -errno when none could be.
	 */
	ssize_t (*read)(struct memory *m, const struct iovec *local, const struct iovec *remote,
			unsigned int nr);
	/*
	 * Where that many bytes stand in our own memory, until the call's record is
	 * taken in; NULL: they have to be read. May be NULL itself. Who else writes
	 * there is not known: nothing may be looked at twice.
	 */
	const uint8_t *(*borrow)(struct memory *m, uint64_t addr, size_t len);
	bool is_whole; /* what stands between the things that a call points to is there too */
};

#endif
