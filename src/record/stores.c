/* SPDX-License-Identifier: MIT */
#include "record/stores.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/clock.h"
#include "base/mem.h"
#include "record/found.h"
#include "record/page_marks.h"

#define PAGE UINT64_C(4096)
#define CHUNK_BYTES ((size_t)1 << 20)
/* Smaller maps are never marked: to compare their pages costs less than to ask for marks. */
#define MARKED_MIN_BYTES (UINT64_C(1) << 20)
/* A map with more data than this is marked from its beginning, so that the data need not be read. */
#define COMPARED_MAX_BYTES (UINT64_C(32) << 20)
/* Without marks, a map with more data is not followed. */
#define FILE_MAX_BYTES (UINT64_C(1) << 30)
/* Marks of a larger map are not set in advance: page tables take 2 MiB per GiB. */
#define PROTECTED_MAX_BYTES (UINT64_C(16) << 30)
/* A file is looked at whenever it may matter for so long in all, then for this share of the time. */
#define SPENT_FIRST_NS UINT64_C(200000000)
#define SPENT_SHARE 4
#define RUNS_AT_ONCE 256u

struct stored_file {
	uint64_t dev, ino;
	int fd;
	bool has_own_offset; /* of the descriptor: it may be moved */
	bool is_lost, is_told; /* it could not be read */
	bool is_doubted; /* marks may be missing */
	uint64_t lost_bytes;
	unsigned int nr_maps;
	uint64_t since_ns, spent_ns; /* by looking */
	uint64_t nr_late; /* how often that would have taken too long */
	/* Of pages: what they held when they were looked at; 0: nothing but zeros, as beyond the end. */
	VEC(uint64_t) hashes;
};

struct stored_map {
	uint64_t start, end;
	uint64_t offset; /* in the file */
	struct stored_file *file;
	bool is_writable; /* or was */
	bool is_marked; /* by the marks of its space, else pages are compared */
	bool awaits; /* it is followed as soon as it is known whether its space has marks */
};

struct stored_space {
	uint64_t number;
	pid_t pid;
	struct page_marks *marks; /* or NULL */
	bool awaits; /* that marks are given or refused */
	bool is_refused; /* there will be no marks */
	bool is_looked_last; /* at what is marked */
	bool is_over; /* nothing more can be stored */
	VEC(struct stored_map) maps;
};

struct stores {
	VEC(struct stored_file *) files;
	VEC(struct stored_space *) spaces;
	size_t nr_awaiting; /* of the spaces */
	uint64_t nr_late; /* of files that are gone */
	void *room;
	uint8_t *chunk; /* in it, as files that are open with O_DIRECT demand it */
};

struct stores *stores_new(void)
{
	return xcalloc(1, sizeof(struct stores));
}

bool stores_has_maps(const struct stores *s)
{
	return s->files.len;
}

static struct stored_file *find_file(const struct stores *s, uint64_t dev, uint64_t ino)
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
	return find_file(s, dev, ino);
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

static void lose(struct stored_file *f, uint64_t bytes)
{
	f->is_lost = true;
	f->lost_bytes = f->lost_bytes > bytes ? f->lost_bytes : bytes;
}

/* Spaces. */

static struct stored_space *find_space(const struct stores *s, uint64_t number)
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
	struct stored_space *found = find_space(s, number);

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

static bool is_sparse(const struct stored_map *m)
{
	return m->end - m->start > PROTECTED_MAX_BYTES;
}

static int mark(struct stored_space *p, struct stored_map *m)
{
	int r = page_marks_begin(p->marks, m->start, m->end, !is_sparse(m));

	m->is_marked = !r;
	return r;
}

void stores_unmap(struct stores *s, const struct stores_range *at)
{
	struct stored_space *p = find_space(s, at->space);
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
	struct stored_space *p = find_space(s, from->space);
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
	if (moved.is_marked && mark(p, &p->maps.items[p->maps.len - 1]) < 0)
		lose(moved.file, moved.end - moved.start);
}

void stores_fork(struct stores *s, uint64_t from, uint64_t to, pid_t pid)
{
	const struct stored_space *p = find_space(s, from);
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

/* Pages. */

static bool is_zero(const uint8_t *p, size_t len)
{
	return !*p && !memcmp(p, p + 1, len - 1);
}

static uint64_t hash_page(const uint8_t *p, size_t len)
{
	uint64_t hash;

	if (is_zero(p, len))
		return 0;
	hash = XXH3_64bits(p, len);
	return hash ? hash : 1;
}

/* What is read on: a stretch of a file as a map shows it. */
struct look {
	struct stored_file *file;
	const struct stores_sink *sink; /* NULL: what is there now is what is known */
	bool is_marked; /* all that is there was stored */
	struct stored found; /* of what is found: where offset 0 of the file would be */
};

static int put_run(const struct look *l, const uint8_t *bytes, size_t len, uint64_t offset)
{
	struct stored found = l->found;

	if (!len || !l->sink)
		return 0;
	found.addr += offset;
	found.offset = offset;
	found.bytes = bytes;
	found.len_bytes = len;
	return l->sink->put(l->sink->of, &found);
}

/* Pages with this in them, from an offset on. */
static int compare_pages(struct look *l, const uint8_t *bytes, size_t len, uint64_t offset)
{
	struct stored_file *f = l->file;
	size_t at, run = 0;
	int r = 0;

	if (l->is_marked)
		return put_run(l, bytes, len, offset);
	for (at = 0; at < len && !r; at += PAGE) {
		size_t n = len - at < PAGE ? len - at : PAGE;
		uint64_t hash = hash_page(bytes + at, n), page = (offset + at) / PAGE;

		while (f->hashes.len <= page)
			VEC_PUSH(&f->hashes, 0);
		if (f->hashes.items[page] == hash) {
			r = put_run(l, bytes + run, at - run, offset + run);
			run = at + n;
		}
		f->hashes.items[page] = hash;
	}
	if (!r)
		r = put_run(l, bytes + (run < len ? run : len), run < len ? len - run : 0,
			    offset + run);
	return r;
}

/* Holes read as zeros: pages that were known to hold something else, and are none now, are told of. */
static int compare_hole(struct look *l, uint64_t from, uint64_t to)
{
	static const uint8_t zeros[PAGE];
	struct stored_file *f = l->file;
	uint64_t page;
	int r = 0;

	for (page = from / PAGE; page < f->hashes.len && page * PAGE < to && !r; page++) {
		if (!f->hashes.items[page] || l->is_marked)
			continue;
		f->hashes.items[page] = 0;
		r = put_run(l, zeros, to - page * PAGE < PAGE ? to - page * PAGE : PAGE,
			    page * PAGE);
	}
	return r;
}

/* Where data begins at or after the offset, page by page; `to` when there is none. */
static uint64_t find_data(const struct stored_file *f, uint64_t from, uint64_t to)
{
	off_t at = f->has_own_offset ? lseek(f->fd, (off_t)from, SEEK_DATA) : (off_t)from;

	if (at < 0)
		return errno == ENXIO ? to : from;
	return (uint64_t)at < to ? (uint64_t)at & ~(PAGE - 1) : to;
}

static uint64_t find_hole(const struct stored_file *f, uint64_t from, uint64_t to)
{
	off_t at = f->has_own_offset ? lseek(f->fd, (off_t)from, SEEK_HOLE) : -1;

	return at < 0 || (uint64_t)at >= to ? to : ((uint64_t)at + PAGE - 1) & ~(PAGE - 1);
}

static int compare_data(struct stores *s, struct look *l, uint64_t from, uint64_t to)
{
	ssize_t n;
	int r = 0;

	while (from < to && !r) {
		size_t want = to - from < CHUNK_BYTES ? to - from : CHUNK_BYTES;

		n = pread(l->file->fd, s->chunk, want, (off_t)from);
		if (n <= 0) { /* cut meanwhile, or unreadable */
			if (n < 0)
				lose(l->file, to - from);
			return 0;
		}
		r = compare_pages(l, s->chunk, (size_t)n, from);
		from += (size_t)n;
	}
	return r;
}

/* Of the file, from one offset to another. */
static int look_through(struct stores *s, struct look *l, uint64_t from, uint64_t to)
{
	struct stored_file *f = l->file;
	struct stat st;
	int r = 0;

	if (fstat(f->fd, &st) < 0) {
		lose(f, to - from);
		return 0;
	}
	if (to > (uint64_t)st.st_size)
		to = (uint64_t)st.st_size;
	if (f->hashes.len > ((uint64_t)st.st_size + PAGE - 1) / PAGE)
		f->hashes.len = ((uint64_t)st.st_size + PAGE - 1) / PAGE;
	if (!s->room) {
		s->room = xmalloc(CHUNK_BYTES + PAGE);
		s->chunk = (uint8_t *)(((uintptr_t)s->room + PAGE - 1) & ~(uintptr_t)(PAGE - 1));
	}
	while (from < to && !r) {
		uint64_t data = find_data(f, from, to), hole;

		r = compare_hole(l, from, data);
		hole = data < to ? find_hole(f, data, to) : to;
		if (hole > to)
			hole = to;
		if (!r)
			r = compare_data(s, l, data, hole);
		from = hole > from ? hole : to;
	}
	return r;
}

/* Maps. */

/* Up to where the file reaches: what is mapped beyond cannot be stored to. */
static int look_marked(struct stores *s, struct look *l, struct page_marks *marks,
		       const struct stored_map *m, uint64_t at, uint64_t end)
{
	struct page_run runs[RUNS_AT_ONCE];
	uint64_t file_end;
	struct stat st;
	int i, nr, r = 0;

	if (fstat(l->file->fd, &st) < 0) {
		lose(l->file, end - at);
		return 0;
	}
	file_end = (uint64_t)st.st_size > m->offset ? (uint64_t)st.st_size - m->offset : 0;
	file_end = m->start + ((file_end + PAGE - 1) & ~(PAGE - 1));
	if (end > file_end)
		end = file_end;
	l->is_marked = true;
	while (at < end && !r) {
		nr = page_marks_take(marks, &at, end, is_sparse(m), runs, RUNS_AT_ONCE);
		if (nr < 0)
			lose(l->file, end - at);
		if (nr < 0)
			break;
		for (i = 0; i < nr && !r; i++)
			r = look_through(s, l, m->offset + (runs[i].start - m->start),
					 m->offset + (runs[i].end - m->start));
	}
	return r;
}

static int look_map(struct stores *s, const struct stored_space *p, const struct stored_map *m,
		    const struct stores_range *at, const struct stores_sink *sink)
{
	struct look l = { .file = m->file, .sink = sink };
	uint64_t start = m->start, end = m->end, begin_ns = clock_monotonic_ns();
	int r;

	if (at && at->start > start)
		start = at->start;
	if (at && at->end < end)
		end = at->end;
	if (start >= end || !m->is_writable || m->awaits || m->file->is_lost)
		return 0;
	l.found = (struct stored){ .pid = p->pid,
				   .addr = m->start - m->offset,
				   .dev = m->file->dev,
				   .ino = m->file->ino };
	r = m->is_marked ? look_marked(s, &l, p->marks, m, start, end)
			 : look_through(s, &l, m->offset + (start - m->start),
					m->offset + (end - m->start));
	m->file->spent_ns += clock_monotonic_ns() - begin_ns;
	return r;
}

static int look_space(struct stores *s, const struct stored_space *p, const struct stores_range *at,
		      const struct stored_file *only, const struct stores_sink *sink)
{
	size_t i;
	int r = 0;

	for (i = 0; i < p->maps.len && !r; i++) {
		if (!only || p->maps.items[i].file == only)
			r = look_map(s, p, &p->maps.items[i], at, sink);
	}
	return r;
}

/* Whether it is worth the time now; when its maps end, it always is. */
static bool is_worth_it(const struct stored_file *f)
{
	return f->spent_ns < SPENT_FIRST_NS + (clock_monotonic_ns() - f->since_ns) / SPENT_SHARE;
}

uint64_t stores_take_late(struct stores *s)
{
	uint64_t nr = s->nr_late;

	s->nr_late = 0;
	return nr;
}

int stores_look_at(struct stores *s, const struct stores_range *at, const struct stores_sink *sink)
{
	const struct stored_space *p = find_space(s, at->space);

	return p ? look_space(s, p, at, NULL, sink) : 0;
}

static int look_everywhere(struct stores *s, const struct stored_file *only,
			   const struct stores_sink *sink)
{
	size_t i;
	int r = 0;

	for (i = 0; i < s->spaces.len && !r; i++)
		r = look_space(s, s->spaces.items[i], NULL, only, sink);
	return r;
}

/*
 * To compare the file takes too long: it is done once more, for what was stored before there were
 * marks. How many maps are marked now that were not.
 */
static int change_to_marks(struct stores *s, const struct stored_file *f,
			   const struct stores_sink *sink, unsigned int *ret_nr)
{
	size_t i, k;
	int r = 0;

	*ret_nr = 0;
	for (i = 0; i < s->spaces.len && !r; i++) {
		struct stored_space *p = s->spaces.items[i];

		for (k = 0; p->marks && k < p->maps.len && !r; k++) {
			struct stored_map *m = &p->maps.items[k];

			if (m->file != f || m->is_marked || m->awaits || !m->is_writable ||
			    m->end - m->start < MARKED_MIN_BYTES || mark(p, m) < 0)
				continue;
			m->is_marked = false;
			r = look_map(s, p, m, NULL, sink);
			m->is_marked = true;
			++*ret_nr;
		}
	}
	return r;
}

static int look_file(struct stores *s, struct stored_file *f, const struct stores_sink *sink)
{
	unsigned int nr_changed;
	int r;

	if (is_worth_it(f))
		return look_everywhere(s, f, sink);
	r = change_to_marks(s, f, sink, &nr_changed);
	if (nr_changed) {
		f->spent_ns = 0;
		f->since_ns = clock_monotonic_ns();
	} else {
		f->nr_late++;
	}
	return r;
}

int stores_look_file(struct stores *s, uint64_t dev, uint64_t ino, const struct stores_sink *sink)
{
	struct stored_file *f = find_file(s, dev, ino);

	return f ? look_file(s, f, sink) : 0;
}

int stores_look_all(struct stores *s, const struct stores_sink *sink)
{
	size_t i;
	int r = 0;

	for (i = 0; i < s->files.len && !r; i++)
		r = look_file(s, s->files.items[i], sink);
	return r;
}

int stores_look_last(struct stores *s, uint64_t space, const struct stores_sink *sink)
{
	struct stored_space *p = find_space(s, space);
	size_t i;
	int r = 0;

	if (!p || !p->marks)
		return 0;
	p->is_looked_last = true;
	for (i = 0; i < p->maps.len && !r; i++) {
		if (p->maps.items[i].is_marked)
			r = look_map(s, p, &p->maps.items[i], NULL, sink);
	}
	return r;
}

void stores_goes_on(struct stores *s, uint64_t space)
{
	struct stored_space *p = find_space(s, space);

	if (p)
		p->is_looked_last = false;
}

void stores_note_end(struct stores *s, uint64_t space)
{
	struct stored_space *p = find_space(s, space);

	if (p)
		p->is_over = true;
}

int stores_look_ended(struct stores *s, uint64_t space, const struct stores_sink *sink)
{
	struct stored_space *p = find_space(s, space);
	size_t i;
	int r = 0;

	for (i = 0; p && !p->is_over && i < p->maps.len && !r; i++) {
		struct stored_map *m = &p->maps.items[i];

		if (m->awaits || (m->is_marked && !p->is_looked_last))
			lose(m->file, m->end - m->start);
		else if (!m->is_marked)
			r = look_map(s, p, m, NULL, sink);
	}
	return r;
}

bool stores_take_lost(struct stores *s, uint64_t *ret_bytes)
{
	size_t i;

	for (i = 0; i < s->files.len; i++) {
		struct stored_file *f = s->files.items[i];

		if (f->is_lost && !f->is_told) {
			f->is_told = true;
			*ret_bytes = f->lost_bytes;
			return true;
		}
	}
	return false;
}

bool stores_take_doubt(struct stores *s)
{
	bool is_doubted = false;
	size_t i;

	for (i = 0; i < s->files.len; i++) {
		is_doubted |= s->files.items[i]->is_doubted;
		s->files.items[i]->is_doubted = false;
	}
	return is_doubted;
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
		lose(m->file, bytes);
		return;
	}
	if (bytes > (uint64_t)st.st_blocks * 512)
		bytes = (uint64_t)st.st_blocks * 512;
	if (p->marks && bytes > COMPARED_MAX_BYTES && !mark(p, m)) {
		m->file->is_doubted |= is_sparse(m);
		return;
	}
	if (bytes > FILE_MAX_BYTES) {
		lose(m->file, bytes);
		return;
	}
	for (; at < map_end(m); at = to) {
		to = map_end(m);
		if (!is_followed(s, m, at, &to))
			(void)look_through(s, &l, at, to); /* without a sink nothing fails */
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
	f = find_file(s, found.dev, found.ino);
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
	struct stored_space *p = find_space(s, at->space);
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
	const struct stored_space *p = s->nr_awaiting ? find_space(s, space) : NULL;

	return p && p->awaits;
}

bool stores_has_marks(const struct stores *s, uint64_t space)
{
	const struct stored_space *p = find_space(s, space);

	return p && p->marks;
}

bool stores_give_marks(struct stores *s, uint64_t space, pid_t pid, int uffd)
{
	struct stored_space *p = find_space(s, space);
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
	struct stored_space *p = find_space(s, space);
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
