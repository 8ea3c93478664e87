/* SPDX-License-Identifier: MIT */
#include "record/stores_inside.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "record/found.h"

/* A map with more data than this is marked from its beginning, so that the data need not be read. */
#define COMPARED_MAX_BYTES (UINT64_C(32) << 20)
/* Without marks, a map with more data is not followed. */
#define FILE_MAX_BYTES (UINT64_C(1) << 30)
/* Marks of a larger map are not set in advance: page tables take 2 MiB per GiB. */
#define PROTECTED_MAX_BYTES (UINT64_C(16) << 30)

struct stores *stores_new(void)
{
	return xcalloc(1, sizeof(struct stores));
}

bool stores_has_maps(const struct stores *s)
{
	return s->files.len;
}

struct stored_file *stores_find_file(const struct stores *s, uint64_t dev, uint64_t ino)
{
	size_t i;

	for (i = 0; i < s->files.len; i++) {
		struct stored_file *f = s->files.items[i];

		if (f->ino == ino && f->dev == dev)
			return f;
	}
	return NULL;
}

bool stores_has_file(const struct stores *s, uint64_t dev, uint64_t ino)
{
	return stores_find_file(s, dev, ino);
}

static void unref_file(struct stores *s, struct stored_file *f)
{
	size_t i;

	if (--f->nr_maps)
		return;
	for (i = 0; s->files.items[i] != f; i++)
		;
	s->files.items[i] = s->files.items[--s->files.len];
	s->nr_late += f->nr_late;
	(void)close(f->fd); /* it was only read */
	VEC_RELEASE(&f->hashes);
	free(f);
}

void stores_lose(struct stored_file *f, uint64_t bytes)
{
	f->is_lost = true;
	f->lost_bytes = f->lost_bytes > bytes ? f->lost_bytes : bytes;
}

/* Spaces. */

struct stored_space *stores_find_space(const struct stores *s, uint64_t number)
{
	size_t i;

	for (i = 0; i < s->spaces.len; i++) {
		if (s->spaces.items[i]->number == number)
			return s->spaces.items[i];
	}
	return NULL;
}

static struct stored_space *get_space(struct stores *s, uint64_t number, pid_t pid)
{
	struct stored_space *found = stores_find_space(s, number);

	if (!found) {
		found = xcalloc(1, sizeof(*found));
		found->number = number;
		found->pid = pid;
		VEC_PUSH(&s->spaces, found);
	}
	return found;
}

/* Marks must be made by the process itself: when it can be had to is not known here. */
static void await_marks(struct stores *s, struct stored_space *p)
{
	if (p->marks || p->awaits || p->is_refused)
		return;
	p->awaits = true;
	s->nr_awaiting++;
}

static void end_waiting(struct stores *s, struct stored_space *p)
{
	s->nr_awaiting -= p->awaits;
	p->awaits = false;
}

static void add_map(struct stored_space *p, struct stored_map map)
{
	map.file->nr_maps++;
	VEC_PUSH(&p->maps, map);
}

bool stores_is_sparse(const struct stored_map *m)
{
	return m->end - m->start > PROTECTED_MAX_BYTES;
}

int stores_mark(struct stored_space *p, struct stored_map *m)
{
	int r = page_marks_begin(p->marks, m->start, m->end, !stores_is_sparse(m));

	m->is_marked = !r;
	return r;
}

void stores_unmap(struct stores *s, const struct stores_range *at)
{
	struct stored_space *p = stores_find_space(s, at->space);
	size_t i = 0;

	while (p && i < p->maps.len) {
		struct stored_map *m = &p->maps.items[i], rest = *m;

		if (m->end <= at->start || m->start >= at->end) {
			i++;
			continue;
		}
		if (m->end > at->end) {
			rest.offset += at->end - rest.start;
			rest.start = at->end;
			add_map(p, rest);
			m = &p->maps.items[i]; /* the array may have moved */
		}
		if (m->start < at->start) {
			m->end = at->start;
			i++;
			continue;
		}
		rest = *m;
		p->maps.items[i] = p->maps.items[--p->maps.len];
		unref_file(s, rest.file);
	}
}

void stores_move(struct stores *s, const struct stores_range *from, const struct stores_range *to,
		 bool keeps)
{
	struct stored_space *p = stores_find_space(s, from->space);
	struct stored_map moved = { .file = NULL };
	size_t i;

	for (i = 0; p && i < p->maps.len; i++) {
		const struct stored_map *m = &p->maps.items[i];

		if (m->start <= from->start && from->start < m->end) {
			moved = *m;
			moved.offset += from->start - m->start;
			moved.start = to->start;
			moved.end = to->end;
		}
	}
	if (moved.file)
		moved.file->nr_maps++; /* it may be its last one while it is on the way */
	if (!keeps)
		stores_unmap(s, from);
	stores_unmap(s, to);
	if (!moved.file)
		return;
	add_map(p, moved);
	moved.file->nr_maps--;
	if (moved.is_marked && stores_mark(p, &p->maps.items[p->maps.len - 1]) < 0)
		stores_lose(moved.file, moved.end - moved.start);
}

void stores_fork(struct stores *s, uint64_t from, uint64_t to, pid_t pid)
{
	const struct stored_space *p = stores_find_space(s, from);
	struct stored_space *child;
	size_t i;

	if (!p)
		return;
	child = get_space(s, to, pid);
	for (i = 0; i < p->maps.len; i++) {
		struct stored_map m = p->maps.items[i];

		m.awaits |= m.is_marked;
		m.is_marked = false;
		add_map(child, m);
	}
	if (p->marks || p->awaits)
		await_marks(s, child);
}

void stores_drop(struct stores *s, uint64_t space)
{
	size_t i;

	stores_unmap(s, &(struct stores_range){ space, 0, UINT64_MAX });
	for (i = 0; i < s->spaces.len; i++) {
		struct stored_space *p = s->spaces.items[i];

		if (p->number != space)
			continue;
		s->spaces.items[i] = s->spaces.items[--s->spaces.len];
		end_waiting(s, p);
		page_marks_close(p->marks);
		VEC_RELEASE(&p->maps);
		free(p);
		return;
	}
}

void stores_free(struct stores *s)
{
	if (!s)
		return;
	while (s->spaces.len)
		stores_drop(s, s->spaces.items[0]->number);
	VEC_RELEASE(&s->spaces);
	VEC_RELEASE(&s->files);
	free(s->room);
	free(s);
}

/* Making them. */

/*
 * The file by a descriptor of our own, which leaves no trace of having been read, if we may open it again;
 * else by the program's.
 */
static int open_again(int fd, bool *ret_has_own_offset)
{
	char name[64];
	int own;

	(void)snprintf(name, sizeof(name), "/proc/self/fd/%d", fd);
	own = open(name, O_RDONLY | O_NOATIME | O_CLOEXEC | O_NONBLOCK);
	if (own < 0)
		own = open(name, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	*ret_has_own_offset = own >= 0;
	if (own < 0)
		return fd;
	(void)close(fd); /* the program has it still */
	return own;
}

/* 1: a file of which shared maps can be written to; 0: none. */
static int find_out(pid_t pid, int fd, struct stored_file *ret)
{
	int taken = found_take(pid, fd), flags;
	struct stat st;

	if (taken < 0)
		return taken;
	flags = fcntl(taken, F_GETFL);
	if (flags < 0 || (flags & O_ACCMODE) != O_RDWR || fstat(taken, &st) < 0 ||
	    !S_ISREG(st.st_mode)) {
		(void)close(taken); /* likewise */
		return 0;
	}
	*ret = (struct stored_file){ .dev = st.st_dev, .ino = st.st_ino };
	ret->fd = open_again(taken, &ret->has_own_offset);
	return 1;
}

static uint64_t map_end(const struct stored_map *m)
{
	return m->offset + (m->end - m->start);
}

/*
 * From this offset of the file on, up to where it is the same: true, another map of it could be
 * stored to. What was stored by that is not known yet.
 */
static bool is_followed(const struct stores *s, const struct stored_map *but, uint64_t from,
			uint64_t *to)
{
	uint64_t next = *to;
	size_t i, k;

	for (i = 0; i < s->spaces.len; i++) {
		const struct stored_space *p = s->spaces.items[i];

		for (k = 0; k < p->maps.len; k++) {
			const struct stored_map *m = &p->maps.items[k];

			if (m == but || m->file != but->file || !m->is_writable ||
			    map_end(m) <= from)
				continue;
			if (m->offset <= from) {
				*to = map_end(m) < *to ? map_end(m) : *to;
				return true;
			}
			next = m->offset < next ? m->offset : next;
		}
	}
	*to = next;
	return false;
}

/* Notes what is there before something is stored through the map, or has it marked. */
static void begin(struct stores *s, struct stored_space *p, struct stored_map *m)
{
	struct look l = { .file = m->file };
	uint64_t bytes = m->end - m->start, at = m->offset, to;
	struct stat st;

	m->awaits = false;
	if (fstat(m->file->fd, &st) < 0) {
		stores_lose(m->file, bytes);
		return;
	}
	if (bytes > (uint64_t)st.st_blocks * 512)
		bytes = (uint64_t)st.st_blocks * 512;
	if (p->marks && bytes > COMPARED_MAX_BYTES && !stores_mark(p, m)) {
		m->file->is_doubted |= stores_is_sparse(m);
		return;
	}
	if (bytes > FILE_MAX_BYTES) {
		stores_lose(m->file, bytes);
		return;
	}
	for (; at < map_end(m); at = to) {
		to = map_end(m);
		if (!is_followed(s, m, at, &to))
			(void)stores_look_through(s, &l, at, to); /* without a sink nothing fails */
	}
}

/* It may be written to now. Marks are worth their cost only to large maps. */
static void allow(struct stores *s, struct stored_space *p, struct stored_map *m)
{
	m->is_writable = true;
	m->awaits = p->awaits && m->end - m->start >= MARKED_MIN_BYTES;
	if (!m->awaits)
		begin(s, p, m);
}

int stores_map(struct stores *s, const struct stores_range *at, pid_t pid, int fd, uint64_t offset,
	       bool is_writable)
{
	struct stored_file found, *f;
	struct stored_space *p;
	int r = find_out(pid, fd, &found);

	if (r <= 0)
		return r;
	f = stores_find_file(s, found.dev, found.ino);
	if (f) {
		(void)close(found.fd); /* likewise */
	} else {
		f = xmalloc(sizeof(*f));
		*f = found;
		f->since_ns = clock_monotonic_ns();
		VEC_PUSH(&s->files, f);
	}
	p = get_space(s, at->space, pid);
	if (at->end - at->start >= MARKED_MIN_BYTES)
		await_marks(s, p);
	add_map(p, (struct stored_map){
			   .start = at->start, .end = at->end, .offset = offset, .file = f });
	if (is_writable)
		allow(s, p, &p->maps.items[p->maps.len - 1]);
	return 1;
}

void stores_allow(struct stores *s, const struct stores_range *at)
{
	struct stored_space *p = stores_find_space(s, at->space);
	size_t i;

	for (i = 0; p && i < p->maps.len; i++) {
		struct stored_map *m = &p->maps.items[i];

		if (m->end > at->start && m->start < at->end && !m->is_writable)
			allow(s, p, m);
	}
}

/* Marks. */

bool stores_awaits_marks(const struct stores *s, uint64_t space)
{
	const struct stored_space *p = s->nr_awaiting ? stores_find_space(s, space) : NULL;

	return p && p->awaits;
}

bool stores_has_marks(const struct stores *s, uint64_t space)
{
	const struct stored_space *p = stores_find_space(s, space);

	return p && p->marks;
}

bool stores_give_marks(struct stores *s, uint64_t space, pid_t pid, int uffd)
{
	struct stored_space *p = stores_find_space(s, space);
	size_t i;

	end_waiting(s, p);
	p->is_refused = uffd < 0 || page_marks_open(pid, uffd, &p->marks) < 0;
	for (i = 0; i < p->maps.len; i++) {
		if (p->maps.items[i].awaits)
			begin(s, p, &p->maps.items[i]);
	}
	return p->marks;
}

int stores_refuse_marks(struct stores *s, uint64_t space, const struct stores_sink *sink)
{
	struct stored_space *p = stores_find_space(s, space);
	struct page_marks *marks = p ? p->marks : NULL;
	size_t i;
	int r;

	if (!marks)
		return 0;
	r = stores_look_last(s, space, sink);
	p->marks = NULL;
	p->is_refused = true;
	p->is_looked_last = false;
	for (i = 0; i < p->maps.len; i++) {
		struct stored_map *m = &p->maps.items[i];

		if (!m->is_marked)
			continue;
		m->is_marked = false;
		page_marks_end(marks, m->start, m->end);
		begin(s, p, m);
	}
	page_marks_close(marks);
	return r;
}
