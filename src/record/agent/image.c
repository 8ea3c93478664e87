/* SPDX-License-Identifier: MIT */
/*
 * The memory that programs share with us: one piece for all of them, which they can only
 * read, and one for each image. Many images live shortly, and pages that are new cost more
 * than all else of them, so a few that were used are kept, unless programs may be of different
 * users: one could hold on to its pages, and see what the next one does. They are cleared.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <unistd.h>

#include "record/agent/inside.h"

#define SPARE_MAX 4u
/* That of one that had more threads is not kept. */
#define SMALL_SLOTS 4u

/* linux/fcntl.h, which does not go with fcntl.h: the memory is not made writable by others. */
#define SEAL_FUTURE_WRITE 0x0010

/* Nobody can take it away below us: what is mapped would be gone, and to touch it deadly. */
#define SEALS (F_SEAL_SHRINK | F_SEAL_GROW)

/* Memory of the kernel's own making, without a name: of others there may be none left to be had. */
static bool is_memory(int fd, uid_t owner)
{
	struct statfs fs;
	struct stat st;

	return !fstat(fd, &st) && S_ISREG(st.st_mode) && st.st_uid == owner && !st.st_size &&
	       !fstatfs(fd, &fs) && fs.f_type == TMPFS_MAGIC && fcntl(fd, F_GET_SEALS) == 0;
}

bool agent_seal_memory(int fd, uid_t owner, uint64_t bytes)
{
	struct stat st;

	return is_memory(fd, owner) && !ftruncate(fd, (off_t)bytes) &&
	       !fcntl(fd, F_ADD_SEALS, SEALS | F_SEAL_SEAL) && !fstat(fd, &st) &&
	       (uint64_t)st.st_size == bytes;
}

/* A descriptor of so much; -1: it cannot be had, as with a limit for the size of files. */
static int make_memory(const char *name, int seals, uint64_t bytes)
{
	int fd = memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING);

	if (fd < 0 || (!ftruncate(fd, (off_t)bytes) && !fcntl(fd, F_ADD_SEALS, seals)))
		return fd;
	(void)close(fd); /* nothing is in it */
	return -1;
}

/* With the first program that needs it. */
static bool has_common(struct agent *a)
{
	void *p;
	int fd;

	if (a->common)
		return true;
	fd = make_memory("reprise-common", SEALS, WIRE_COMMON_BYTES);
	if (fd < 0)
		return false;
	p = mmap(NULL, WIRE_COMMON_BYTES, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (p == MAP_FAILED) {
		(void)close(fd); /* likewise */
		return false;
	}
	a->common = p;
	a->common_fd = fd;
	(void)fcntl(a->common_fd, F_ADD_SEALS,
		    SEAL_FUTURE_WRITE | F_SEAL_SEAL); /* older kernels have no such seal */
	memcpy(a->common, a->is_watching ? a->watchful : a->rules, sizeof(a->rules));
	return true;
}

static void add_image(struct agent *a, struct agent_image *im)
{
	im->next = a->images;
	a->images = im;
}

struct agent_image *agent_new_image(struct agent *a)
{
	struct agent_image *im = a->spare;

	if (!has_common(a))
		return NULL;
	if (im) {
		a->spare = im->next;
		a->nr_spare--;
		add_image(a, im);
		return im;
	}
	im = xcalloc(1, sizeof(*im));
	im->fd = make_memory("reprise", SEALS | F_SEAL_SEAL, WIRE_IMAGE_BYTES);
	im->shared = im->fd < 0 ? NULL : outlive_map(a, im->fd);
	if (im->shared) {
		add_image(a, im);
		return im;
	}
	if (im->fd >= 0)
		(void)close(im->fd); /* likewise */
	free(im);
	return NULL;
}

/* A record that was begun, and not published, is behind the others. */
#define BEGUN_MAX_BYTES ((uint64_t)WIRE_RECORD_MOST_OF(WIRE_RING_FIRST_BYTES))

/* From there on; `to` when it is not before that, or where nobody tells. */
static off_t find_in_memory(int fd, off_t from, off_t to, int what)
{
	off_t found = lseek(fd, from, what);

	if (found < 0 && errno != ENXIO) /* which is: nothing more is used */
		return what == SEEK_DATA ? from : to;
	return found < 0 || found > to ? to : found;
}

/* Only what somebody has used: to ask for that is cheaper than pages that nobody needs. */
static void clear_used(const struct agent_image *im, const uint8_t *at, uint64_t bytes)
{
	off_t from = at - im->shared, to = from + (off_t)bytes, hole;

	while ((from = find_in_memory(im->fd, from, to, SEEK_DATA)) < to) {
		hole = find_in_memory(im->fd, from, to, SEEK_HOLE);
		memset(im->shared + from, 0, (size_t)(hole - from));
		from = hole;
	}
}

void agent_clear_slot(const struct agent_thread *at)
{
	struct agent_image *im = at->space->image;
	uint64_t used = at->tail + BEGUN_MAX_BYTES;

	if (!at->block)
		return;
	if (at->ring_bytes > WIRE_RING_FIRST_BYTES || at->slot > SMALL_SLOTS || at->is_damaged ||
	    at->block->phase != WIRE_OUTSIDE)
		im->is_large = true;
	if (im->is_large)
		return;
	clear_used(im, (const uint8_t *)at->block,
		   WIRE_BLOCK_BYTES + (used < at->ring_bytes ? used : at->ring_bytes));
}

static void release(struct agent *a, struct agent_image *im)
{
	outlive_unmap(a, im->shared);
	if (im->fd >= 0)
		(void)close(im->fd); /* nothing of it is wanted any more */
	free(im);
}

bool agent_image_adopt(struct agent *a, struct agent_image *im, int fd)
{
	uint8_t *p = outlive_map(a, fd);

	if (!p)
		return false;
	outlive_unmap(a, im->shared);
	(void)close(im->fd); /* likewise */
	im->fd = -1;
	im->shared = p;
	im->is_large = true; /* that is the program's, and ends with it */
	return true;
}

void agent_free_image(struct agent *a, struct agent_image *im)
{
	struct agent_image **at = &a->images, *kept;

	while (*at && *at != im)
		at = &(*at)->next;
	if (*at)
		*at = im->next;
	if (im->is_large || a->nr_spare == SPARE_MAX || a->outlives || a->serves_all) {
		release(a, im);
		return;
	}
	kept = xcalloc(1, sizeof(*kept));
	kept->fd = im->fd;
	kept->shared = im->shared;
	kept->next = a->spare;
	a->spare = kept;
	a->nr_spare++;
	free(im);
}

void agent_images_release(struct agent *a)
{
	struct agent_image *lists[] = { a->images, a->spare }, *im;
	unsigned int i;

	for (i = 0; i < 2; i++) {
		while ((im = lists[i])) {
			lists[i] = im->next;
			release(a, im);
		}
	}
	a->images = a->spare = NULL;
	if (!a->common)
		return;
	(void)munmap(a->common, WIRE_COMMON_BYTES);
	(void)close(a->common_fd); /* likewise */
}
