/* SPDX-License-Identifier: MIT */
/*
 * Memory of a run that stands for data nobody has: the filler, for bytes to be
 * written that were not kept, and the sink, for reads larger than what a lane
 * can look at. Both are as large as the largest call, but a small file is
 * mapped there again and again, so that they take no more than that.
 */
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/banned.h"
#include "replay/inside.h"

#define TILE_BYTES ((uint64_t)2 << 20)
#define SINK_BYTES ((uint64_t)2 << 30) /* the kernel moves no more at once */

static uint8_t *map_tiles(uint64_t bytes, int prot, uint64_t seed)
{
	uint8_t *base, *tile;
	uint64_t at, i;
	int fd = memfd_create("reprise", MFD_CLOEXEC);

	if (fd < 0 || ftruncate(fd, (off_t)TILE_BYTES) < 0)
		goto fail;
	base = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (base == MAP_FAILED)
		goto fail;
	for (at = 0; at < bytes; at += TILE_BYTES) {
		int writable = at ? prot : PROT_READ | PROT_WRITE;

		if (mmap(base + at, TILE_BYTES, writable, MAP_SHARED | MAP_FIXED, fd, 0) ==
		    MAP_FAILED) {
			(void)munmap(base, bytes);
			goto fail;
		}
	}
	(void)close(fd);
	/* Not compressible, and the same in every run. */
	tile = base;
	for (i = 0; i < TILE_BYTES; i += sizeof(seed)) {
		seed ^= seed << 13;
		seed ^= seed >> 7;
		seed ^= seed << 17;
		memcpy(tile + i, &seed, sizeof(seed));
	}
	if (mprotect(base, TILE_BYTES, prot) < 0) {
		(void)munmap(base, bytes);
		return NULL;
	}
	return base;
fail:
	if (fd >= 0)
		(void)close(fd);
	return NULL;
}

uint8_t *run_sink(struct run *run)
{
	if (!run->sink) {
		run->sink = map_tiles(SINK_BYTES, PROT_READ | PROT_WRITE, 1);
		run->sink_bytes = run->sink ? SINK_BYTES : 0;
	}
	return run->sink;
}

int run_memory_prepare(struct run *run, struct err *err)
{
	uint64_t bytes = (run->max_data_bytes + TILE_BYTES) & ~(TILE_BYTES - 1);
	uint8_t *filler = map_tiles(bytes, PROT_READ, UINT64_C(0x9e3779b97f4a7c15));

	if (!filler)
		return err_set(err, -ENOMEM, "cannot map memory for filler");
	run->filler = filler;
	run->filler_bytes = bytes;
	return 0;
}

void run_memory_release(struct run *run)
{
	if (run->filler)
		(void)munmap((void *)(uintptr_t)run->filler, run->filler_bytes);
	if (run->sink)
		(void)munmap(run->sink, run->sink_bytes);
	run->filler = NULL;
	run->sink = NULL;
}
