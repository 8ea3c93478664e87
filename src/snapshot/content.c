/* SPDX-License-Identifier: MIT */
/*
 * What files hold, a piece of 1 MiB at a time. Each piece is one of three: held by
 * the trace; filler, made up but always the same; or a hole, where filler would be
 * too much. A file that exists is read and only what differs is written; where
 * the trace names a piece by its hash, the piece is not even loaded.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/falloc.h>
#include <string.h>
#include <unistd.h>

#include "base/banned.h"
#include "base/hash.h"
#include "base/io.h"
#include "base/varint.h"
#include "snapshot/inside.h"

uint64_t content_size(const struct snapshot_entry *e)
{
	if (e->content)
		return e->content->len_bytes;
	return e->type == SNAPSHOT_FILE && e->known & SNAPSHOT_HAS_SIZE ? e->size_bytes : 0;
}

static bool is_held(const struct data *d, uint64_t piece)
{
	return d && piece < data_nr_pieces(d) && (d->bytes || d->refs[piece].blob);
}

static uint64_t min_u64(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

uint64_t content_held_bytes(const struct snapshot_entry *e)
{
	uint64_t i, held = 0, nr = e->content ? data_nr_pieces(e->content) : 0;

	for (i = 0; i < nr; i++) {
		if (is_held(e->content, i))
			held += min_u64(e->content->kept_bytes - i * BLOB_MAX_BYTES,
					BLOB_MAX_BYTES);
	}
	return held;
}

bool content_has_holes(const struct snapshot_entry *e, uint64_t sparse_over_bytes)
{
	/* What /proc and /sys show has a size that means nothing. */
	return e->flags & SNAPSHOT_SPECIAL ||
	       content_size(e) - content_held_bytes(e) > sparse_over_bytes;
}

void content_fill(const struct snapshot_entry *e, uint64_t offset, uint8_t *p, size_t len)
{
	uint64_t seed = XXH3_64bits(e->path, e->path_len), x;
	uint8_t word[8];
	size_t at;

	for (at = 0; at < len; at += sizeof(word)) {
		/* A counter, mixed: any offset can be made by itself. */
		x = seed + (offset + at) / sizeof(word) * UINT64_C(0x9e3779b97f4a7c15);
		x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
		x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
		x ^= x >> 31;
		if (len - at >= sizeof(word)) {
			put_le64(p + at, x);
		} else {
			put_le64(word, x);
			memcpy(p + at, word, len - at);
		}
	}
}

/* A file that is being filled. */
struct filling {
	struct worker *w;
	const struct snapshot_entry *e;
	int fd;
	bool fresh, holes, changed;
	uint64_t size; /* as large as it can be here */
	uint64_t held_end; /* behind it the trace has nothing */
};

static int fail(struct filling *f, int r, const char *what)
{
	return worker_fail(f->w, f->e, r, what);
}

/* File systems have limits of their own: then as much as there can be. */
static int set_size(struct filling *f)
{
	uint64_t size = f->size;

	while (ftruncate(f->fd, (off_t)size)) {
		if ((errno != EFBIG && errno != EINVAL) || !size)
			return fail(f, -errno, "set the size of");
		size /= 2;
	}
	if (size != f->size)
		f->w->counts.nr_too_large++;
	f->size = size;
	return 0;
}

/* A piece, or all up to the end of the file, becomes a hole. */
static int punch(struct filling *f, uint64_t offset, uint64_t len)
{
	off_t data = lseek(f->fd, (off_t)offset, SEEK_DATA);
	int r;

	if (data < 0 && errno == ENXIO)
		return 0;
	if (data >= 0 && (uint64_t)data >= offset + len)
		return 0;
	f->changed = true;
	if (!fallocate(f->fd, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, (off_t)offset,
		       (off_t)len))
		return 0;
	if (offset + len == f->size) {
		if (ftruncate(f->fd, (off_t)offset) || ftruncate(f->fd, (off_t)f->size))
			return fail(f, -errno, "cut");
		return 0;
	}
	memset(f->w->want, 0, (size_t)len); /* a piece at most */
	r = pwrite_full(f->fd, f->w->want, (size_t)len, offset);
	return r < 0 ? fail(f, r, "write") : 0;
}

/* What the piece shall be, in w->want; behind what is held there is filler, or nothing. */
static int make_piece(struct filling *f, uint64_t piece, size_t len)
{
	uint64_t offset = piece * BLOB_MAX_BYTES;
	struct worker *w = f->w;
	size_t held = 0;
	int r = 0;

	if (is_held(f->e->content, piece)) {
		r = snapshot_load_piece(w->c->s, f->e, piece, w->want, &held, &w->err);
		if (r < 0)
			return err_wrap(&w->err, r, "cannot make %s/%s", w->c->dir, f->e->path);
		w->counts.nr_lost += !r;
	}
	if (held >= len)
		return 0;
	if (f->holes) {
		memset(w->want + held, 0, len - held);
		return 0;
	}
	/* Filler is made from the beginning of the piece: its place decides what it is. */
	content_fill(f->e, offset, w->have, len);
	memcpy(w->want + held, w->have + held, len - held);
	return 0;
}

static bool is_same_by_hash(const struct filling *f, uint64_t piece, size_t len)
{
	const struct data *d = f->e->content;

	return is_held(d, piece) && d->refs && d->kept_bytes - piece * BLOB_MAX_BYTES >= len &&
	       hash_equal(hash_bytes(f->w->have, len), d->refs[piece].hash);
}

static int fill_piece(struct filling *f, uint64_t piece)
{
	uint64_t offset = piece * BLOB_MAX_BYTES;
	size_t len = (size_t)min_u64(f->size - offset, BLOB_MAX_BYTES);
	struct worker *w = f->w;
	ssize_t n;
	int r;

	if (f->holes && !is_held(f->e->content, piece))
		return f->fresh ? 0 : punch(f, offset, len);
	if (!f->fresh) {
		n = pread_full(f->fd, w->have, len, offset);
		if (n < 0)
			return fail(f, (int)n, "read");
		if ((size_t)n == len && is_same_by_hash(f, piece, len))
			return 0;
	}
	r = make_piece(f, piece, len);
	if (r < 0)
		return r;
	if (!f->fresh) {
		/* make_piece() may have used the room. */
		n = pread_full(f->fd, w->have, len, offset);
		if (n < 0)
			return fail(f, (int)n, "read");
		if ((size_t)n == len && !memcmp(w->have, w->want, len))
			return 0;
	}
	r = pwrite_full(f->fd, w->want, len, offset);
	if (r < 0)
		return fail(f, r, "write");
	w->counts.bytes_written += len;
	f->changed = true;
	return 0;
}

int content_write(struct worker *w, const struct snapshot_entry *e, int fd, bool fresh,
		  bool *ret_changed)
{
	struct filling f = { .w = w, .e = e, .fd = fd, .fresh = fresh, .size = content_size(e) };
	uint64_t piece;
	struct stat st = { 0 };
	int r = 0;

	f.holes = content_has_holes(e, w->c->sparse_over_bytes);
	f.held_end = e->content ? e->content->kept_bytes : 0;
	if (!fresh && fstat(fd, &st))
		return fail(&f, -errno, "stat");
	if ((uint64_t)st.st_size != f.size && (!fresh || f.holes)) {
		r = set_size(&f);
		f.changed = (uint64_t)st.st_size != f.size;
	}
	for (piece = 0; !r && piece * BLOB_MAX_BYTES < f.size; piece++) {
		if (f.holes && piece * BLOB_MAX_BYTES >= f.held_end) {
			/* All the rest at once, however long it is. */
			if (!fresh)
				r = punch(&f, piece * BLOB_MAX_BYTES,
					  f.size - piece * BLOB_MAX_BYTES);
			break;
		}
		r = worker_check_stop(w);
		if (!r)
			r = fill_piece(&f, piece);
	}
	if (!r && f.changed)
		*ret_changed = true;
	return r;
}
