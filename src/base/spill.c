/* SPDX-License-Identifier: MIT */
#include "base/spill.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/banned.h"

#define PAGE_BYTES ((size_t)4096)
/*
 * Page faults of the thread after which pages are let go. Each maps at most 64 KiB
 * (fault_around_bytes), so about 8 MiB are resident at most.
 */
#define FAULTS_MAX 128
/* To ask how many there were costs as much as one of them. */
#define ASK_EVERY 16

void spill_init(struct spill *s, const char *dir, uint64_t memory_max_bytes)
{
	*s = (struct spill){ .dir = dir ? xstrdup(dir) : NULL,
			     .fd = -1,
			     .memory_max_bytes = memory_max_bytes };
}

static void free_piece(struct spill *s, const struct spill_piece *piece)
{
	if (piece->is_in_file) {
		(void)munmap(piece->at, piece->len_bytes);
		return;
	}
	s->memory_bytes -= piece->len_bytes;
	free(piece->at);
}

void spill_release(struct spill *s)
{
	size_t i;

	for (i = 0; i < s->pieces.len; i++)
		free_piece(s, &s->pieces.items[i]);
	VEC_RELEASE(&s->pieces);
	if (s->fd >= 0)
		(void)close(s->fd); /* nothing of it is wanted any more */
	free(s->dir);
	*s = (struct spill){ .fd = -1 };
}

static int make_file(const char *dir)
{
	int fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600), flags = FS_NOCOW_FL;

	/* Btrfs would need room for each change of what has room already; others know no such flag. */
	if (fd >= 0)
		(void)ioctl(fd, FS_IOC_SETFLAGS, &flags);
	return fd;
}

static bool take_of_file(struct spill *s, size_t len_bytes, struct spill_piece *ret)
{
	size_t whole = (len_bytes + PAGE_BYTES - 1) & -PAGE_BYTES;
	void *p = MAP_FAILED;

	if (!s->dir)
		return false;
	if (s->fd < 0)
		s->fd = make_file(s->dir);
	/* A full disk shows here, and not when the memory is used. */
	if (s->fd >= 0 && !fallocate(s->fd, 0, (off_t)s->file_bytes, (off_t)whole))
		p = mmap(NULL, whole, PROT_READ | PROT_WRITE, MAP_SHARED, s->fd,
			 (off_t)s->file_bytes);
	if (p == MAP_FAILED) {
		free(s->dir);
		s->dir = NULL; /* it is not tried again */
		return false;
	}
	*ret = (struct spill_piece){
		.at = p, .len_bytes = whole, .offset = s->file_bytes, .is_in_file = true
	};
	s->file_bytes += whole;
	return true;
}

void *spill_take(struct spill *s, size_t len_bytes, bool is_hot)
{
	uint64_t bytes = s->memory_bytes + len_bytes;
	uint64_t most = is_hot ? s->memory_max_bytes : s->memory_max_bytes / 4;
	struct spill_piece piece = { .len_bytes = len_bytes };

	if (bytes <= most || !take_of_file(s, len_bytes, &piece)) {
		if (bytes > s->memory_max_bytes * SPILL_WITHOUT_FILE)
			return NULL;
		s->memory_bytes = bytes;
		piece.at = xcalloc(1, len_bytes);
	}
	VEC_PUSH(&s->pieces, piece);
	return piece.at;
}

void spill_give_back(struct spill *s, void *p)
{
	size_t i;

	for (i = 0; i < s->pieces.len; i++) {
		struct spill_piece *piece = &s->pieces.items[i];

		if (piece->at != p)
			continue;
		free_piece(s, piece);
		/* Where that cannot be done the file is larger than it need be. */
		if (piece->is_in_file)
			(void)fallocate(s->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
					(off_t)piece->offset, (off_t)piece->len_bytes);
		*piece = s->pieces.items[--s->pieces.len];
		return;
	}
}

void spill_relax(struct spill *s)
{
	struct rusage usage;
	size_t i;

	if (!s->file_bytes || ++s->nr_asked % ASK_EVERY || getrusage(RUSAGE_THREAD, &usage) ||
	    usage.ru_minflt - s->nr_faults < FAULTS_MAX)
		return;
	s->nr_faults = usage.ru_minflt;
	/* They are the file's: nothing is lost. */
	for (i = 0; i < s->pieces.len; i++) {
		const struct spill_piece *piece = &s->pieces.items[i];

		if (piece->is_in_file)
			(void)madvise(piece->at, piece->len_bytes, MADV_DONTNEED);
	}
}
