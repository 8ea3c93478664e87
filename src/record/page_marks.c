/* SPDX-License-Identifier: MIT */
#include "record/page_marks.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/userfaultfd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/mem.h"

/* As of <linux/userfaultfd.h> and <linux/fs.h>, which are older where we are built. */
#ifndef UFFD_FEATURE_WP_UNPOPULATED
#define UFFD_FEATURE_WP_UNPOPULATED (1 << 13)
#endif
#ifndef UFFD_FEATURE_WP_ASYNC
#define UFFD_FEATURE_WP_ASYNC (1 << 15)
#endif
#define FEATURES                                                                                   \
	(UFFD_FEATURE_WP_ASYNC | UFFD_FEATURE_WP_UNPOPULATED | UFFD_FEATURE_WP_HUGETLBFS_SHMEM)

struct scanned_region {
	uint64_t start, end, categories;
};

struct scan {
	uint64_t size, flags, start, end, walk_end, vec, vec_len, max_pages;
	uint64_t category_inverted, category_mask, category_anyof_mask, return_mask;
};

#define SCAN _IOWR('f', 16, struct scan)
#define SCAN_PROTECTS 1
#define SCAN_CHECKS 2 /* fails where pages are not protected by marks like ours */
#define IS_WRITTEN 2
#define IS_PRESENT 8

#define RUNS_AT_ONCE 256u

struct page_marks {
	int uffd, pagemap;
};

void page_marks_close(struct page_marks *m)
{
	if (!m)
		return;
	(void)close(m->uffd); /* nothing was written to them */
	if (m->pagemap >= 0)
		(void)close(m->pagemap);
	free(m);
}

/* The program may have put another file there, which the recorder must not command. */
static bool is_userfaultfd(int fd)
{
	static const char wanted[] = "anon_inode:[userfaultfd]";
	char name[64], target[sizeof(wanted)];

	(void)snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	return readlink(name, target, sizeof(target)) == sizeof(wanted) - 1 &&
	       !memcmp(target, wanted, sizeof(wanted) - 1);
}

int page_marks_open(pid_t pid, int uffd, struct page_marks **ret)
{
	struct uffdio_api api = { .api = UFFD_API, .features = FEATURES };
	struct page_marks *m = xcalloc(1, sizeof(*m));
	char name[64];
	int r;

	(void)snprintf(name, sizeof(name), "/proc/%d/pagemap", (int)pid);
	m->uffd = uffd;
	m->pagemap = -1;
	if (!is_userfaultfd(uffd)) {
		page_marks_close(m);
		return -EBADF;
	}
	m->pagemap = open(name, O_RDONLY | O_CLOEXEC);
	if (m->pagemap < 0 || ioctl(uffd, UFFDIO_API, &api) < 0) {
		r = -errno;
		page_marks_close(m);
		return r;
	}
	*ret = m;
	return 0;
}

int page_marks_begin(struct page_marks *m, uint64_t start, uint64_t end, bool protects)
{
	struct uffdio_register reg = { .range = { start, end - start },
				       .mode = UFFDIO_REGISTER_MODE_WP };
	struct uffdio_writeprotect protect = { .range = reg.range,
					       .mode = UFFDIO_WRITEPROTECT_MODE_WP };
	int r;

	if (ioctl(m->uffd, UFFDIO_REGISTER, &reg) < 0)
		return -errno;
	if (!protects || !ioctl(m->uffd, UFFDIO_WRITEPROTECT, &protect))
		return 0;
	r = -errno;
	page_marks_end(m, start, end);
	return r;
}

void page_marks_end(struct page_marks *m, uint64_t start, uint64_t end)
{
	struct uffdio_range range = { start, end - start };

	(void)ioctl(m->uffd, UFFDIO_UNREGISTER, &range); /* or the map is gone, and its marks too */
}

int page_marks_take(struct page_marks *m, uint64_t *at, uint64_t end, bool only_present,
		    struct page_run *ret, size_t nr)
{
	struct scanned_region regions[RUNS_AT_ONCE];
	struct scan s = { .size = sizeof(s),
			  .flags = SCAN_PROTECTS | SCAN_CHECKS,
			  .start = *at,
			  .end = end,
			  .vec = (uintptr_t)regions,
			  .vec_len = nr < RUNS_AT_ONCE ? nr : RUNS_AT_ONCE,
			  .category_mask = IS_WRITTEN | (only_present ? IS_PRESENT : 0),
			  .return_mask = IS_WRITTEN };
	int i, found = ioctl(m->pagemap, SCAN, &s);

	if (found < 0)
		return -errno;
	for (i = 0; i < found; i++)
		ret[i] = (struct page_run){ regions[i].start, regions[i].end };
	*at = s.walk_end > *at ? s.walk_end : end;
	return found;
}
