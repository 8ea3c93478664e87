/* SPDX-License-Identifier: MIT */
/*
 * Which pages of a process were written to since the last look, by the kernel's own marks: a
 * userfaultfd protects pages against writing, and the kernel takes the protection of a page
 * away at the first write, by itself, so that nobody has to handle a fault. A look finds the
 * pages that lost it and protects them again, in one step (Linux 6.7 or later).
 *
 * Marks do not survive mremap(), nor fork() in the child. They end with the process, so the
 * last look must be made before that.
 */
#ifndef RECORD_PAGE_MARKS_H
#define RECORD_PAGE_MARKS_H

#include <fcntl.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/attrs.h"

struct page_marks;

struct page_run {
	uint64_t start, end;
};

/* The flags by which the process itself has to make the descriptor. */
#define PAGE_MARKS_FLAGS (O_CLOEXEC | O_NONBLOCK | 1 /* UFFD_USER_MODE_ONLY */)

/* Takes the descriptor, also when it fails. */
MUST_CHECK int page_marks_open(pid_t pid, int uffd, struct page_marks **ret);
void page_marks_close(struct page_marks *m);

/*
 * From now on writes to these addresses are noticed. Without `protects` the first look finds all
 * pages that are present as well: for maps whose page tables would be too large.
 */
MUST_CHECK int page_marks_begin(struct page_marks *m, uint64_t start, uint64_t end, bool protects);
void page_marks_end(struct page_marks *m, uint64_t start, uint64_t end);

/*
 * Finds pages that were written to, from *at on, and moves *at behind what was looked at. The
 * number of runs, at most nr, or -errno. only_present: where not all was protected.
 */
MUST_CHECK int page_marks_take(struct page_marks *m, uint64_t *at, uint64_t end, bool only_present,
			       struct page_run *ret, size_t nr);

#endif
