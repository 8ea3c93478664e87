/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/banned.h"
#include "base/io.h"
#include "base/mem.h"
#include "snapshot/contain.h"
#include "snapshot/inside.h"

static int open_file(struct worker *w, const struct snapshot_entry *e)
{
	int flags = O_RDONLY | O_NONBLOCK | O_NOCTTY;
	int fd = contain_open(w->c->dir_fd, e->path, flags | O_NOATIME, w->c->o->cross_mounts);

	return fd == -EPERM ? contain_open(w->c->dir_fd, e->path, flags, w->c->o->cross_mounts)
			    : fd;
}

/* Files that we may not read are left alone in both. */
static int drop_file(struct worker *w, uint32_t nr)
{
	AUTO_CLOSE int fd = open_file(w, &w->c->entries[nr]);

	if (fd >= 0)
		(void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED); /* advice */
	return 0;
}

static int warm_file(struct worker *w, uint32_t nr)
{
	const struct snapshot_entry *e = &w->c->entries[nr];
	AUTO_CLOSE int fd = -1;
	uint64_t offset = 0;
	ssize_t n;
	int r = 0;

	if (content_has_holes(e, w->c->sparse_over_bytes))
		return 0;
	fd = open_file(w, e);
	while (fd >= 0 && !r) {
		n = pread_full(fd, w->have, BLOB_MAX_BYTES, offset);
		if (n < 0)
			return worker_fail(w, e, (int)n, "read");
		offset += (uint64_t)n;
		if ((size_t)n < BLOB_MAX_BYTES)
			break;
		r = worker_check_stop(w);
	}
	return r;
}

/* All of the machine; false when we may not. */
static bool drop_all(void)
{
	AUTO_CLOSE int fd = open("/proc/sys/vm/drop_caches", O_WRONLY | O_CLOEXEC);

	return fd >= 0 && write(fd, "3\n", 2) == 2;
}

int cache_prepare(struct creation *c, struct snapshot_result *counts, struct err *err)
{
	uint32_t *files;
	struct pool_work work = { .c = c };
	size_t i;
	int r;

	if (c->o->cache == SNAPSHOT_CACHE_KEEP)
		return 0;
	/* What is not written yet cannot be dropped. */
	if (c->o->cache == SNAPSHOT_CACHE_DROP && syncfs(c->dir_fd))
		return err_set(err, -errno, "cannot write all of %s to its storage", c->dir);
	if (c->o->cache == SNAPSHOT_CACHE_DROP && drop_all())
		return 0;
	counts->cache_partly = c->o->cache == SNAPSHOT_CACHE_DROP;
	files = xcalloc(c->nr_entries, sizeof(*files));
	for (i = 0; i < c->nr_entries; i++) {
		const struct snapshot_entry *e = &c->entries[i];

		if (snapshot_is_made(e) && e->type == SNAPSHOT_FILE && e->first_link == i)
			files[work.nr++] = (uint32_t)i;
	}
	work.order = files;
	work.run = c->o->cache == SNAPSHOT_CACHE_WARM ? warm_file : drop_file;
	r = pool_run(&work, err);
	free(files);
	return r;
}
