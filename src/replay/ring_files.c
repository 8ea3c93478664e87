/* SPDX-License-Identifier: MIT */
#include "replay/ring_files.h"

#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/banned.h"

struct ring_files *ring_files_new(struct run *run, uint32_t nr)
{
	struct ring_files *f = xcalloc(1, sizeof(*f) + nr * sizeof(f->items[0]));
	uint32_t i;

	f->nr = nr;
	for (i = 0; i < nr; i++) {
		atomic_init(&f->items[i].slot, READY_NO_SLOT);
		atomic_init(&f->items[i].fd, -1);
	}
	f->next = run->ring_files;
	run->ring_files = f;
	return f;
}

void ring_files_close(struct ring_files *f)
{
	uint32_t i;

	for (i = 0; f && i < f->nr; i++)
		ring_files_put(f, i, READY_NO_SLOT, -1);
}

void ring_files_free_all(struct run *run)
{
	struct ring_files *f;

	while ((f = run->ring_files)) {
		run->ring_files = f->next;
		ring_files_close(f);
		free(f);
	}
}

int ring_files_take(struct ring_files *f, uint64_t index)
{
	if (!f || index >= f->nr)
		return -1;
	atomic_store(&f->items[index].slot, READY_NO_SLOT);
	return atomic_exchange(&f->items[index].fd, -1);
}

bool ring_files_put(struct ring_files *f, uint64_t index, uint32_t slot, int fd)
{
	int old = fd;

	if (f && index < f->nr) {
		atomic_store(&f->items[index].slot, slot);
		old = atomic_exchange(&f->items[index].fd, fd);
	}
	if (old >= 0)
		(void)close(old);
	return f && index < f->nr;
}

void ring_files_update(const struct run *run, struct ring_files *f, uint64_t first,
		       const struct ring_files *from)
{
	uint32_t i;

	for (i = 0; f && i < from->nr && first < f->nr && i < f->nr - first; i++) {
		uint32_t slot = atomic_load(&from->items[i].slot);
		int fd = slot < run->nr_slots ? atomic_load(&run->slots[slot].fd) : -1;

		if (slot != RING_FILE_SKIP)
			(void)ring_files_put(f, first + i, slot,
					     fd < 0 ? -1 : fcntl(fd, F_DUPFD_CLOEXEC, 0));
	}
}
