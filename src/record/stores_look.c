/* SPDX-License-Identifier: MIT */
#include "record/stores_inside.h"

#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <xxhash.h>

#include "base/clock.h"

#define CHUNK_BYTES ((size_t)1 << 20)
/* A file is looked at whenever it may matter for so long in all, then for this share of the time. */
#define SPENT_FIRST_NS UINT64_C(200000000)
#define SPENT_SHARE 4
#define RUNS_AT_ONCE 256u

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
				stores_lose(l->file, to - from);
			return 0;
		}
		r = compare_pages(l, s->chunk, (size_t)n, from);
		from += (size_t)n;
	}
	return r;
}

int stores_look_through(struct stores *s, struct look *l, uint64_t from, uint64_t to)
{
	struct stored_file *f = l->file;
	struct stat st;
	int r = 0;

	if (fstat(f->fd, &st) < 0) {
		stores_lose(f, to - from);
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
		stores_lose(l->file, end - at);
		return 0;
	}
	file_end = (uint64_t)st.st_size > m->offset ? (uint64_t)st.st_size - m->offset : 0;
	file_end = m->start + ((file_end + PAGE - 1) & ~(PAGE - 1));
	if (end > file_end)
		end = file_end;
	l->is_marked = true;
	while (at < end && !r) {
		nr = page_marks_take(marks, &at, end, stores_is_sparse(m), runs, RUNS_AT_ONCE);
		if (nr < 0)
			stores_lose(l->file, end - at);
		if (nr < 0)
			break;
		for (i = 0; i < nr && !r; i++)
			r = stores_look_through(s, l, m->offset + (runs[i].start - m->start),
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
			 : stores_look_through(s, &l, m->offset + (start - m->start),
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
	const struct stored_space *p = stores_find_space(s, at->space);

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
			    m->end - m->start < MARKED_MIN_BYTES || stores_mark(p, m) < 0)
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
	struct stored_file *f = stores_find_file(s, dev, ino);

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
	struct stored_space *p = stores_find_space(s, space);
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
	struct stored_space *p = stores_find_space(s, space);

	if (p)
		p->is_looked_last = false;
}

void stores_note_end(struct stores *s, uint64_t space)
{
	struct stored_space *p = stores_find_space(s, space);

	if (p)
		p->is_over = true;
}

int stores_look_ended(struct stores *s, uint64_t space, const struct stores_sink *sink)
{
	struct stored_space *p = stores_find_space(s, space);
	size_t i;
	int r = 0;

	for (i = 0; p && !p->is_over && i < p->maps.len && !r; i++) {
		struct stored_map *m = &p->maps.items[i];

		if (m->awaits || (m->is_marked && !p->is_looked_last))
			stores_lose(m->file, m->end - m->start);
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
