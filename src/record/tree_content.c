/* SPDX-License-Identifier: MIT */
/* What files hold: read whole, hashed, and kept where it is wanted. */
#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/banned.h"
#include "base/hash.h"
#include "base/io.h"
#include "base/varint.h"
#include "record/tree_inside.h"

int tree_open_to_read(int fd, int flags)
{
	char path[64];
	int opened;

	flags |= O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
	opened = open(tree_self_path(fd, path), flags | O_NOATIME);
	if (opened < 0 && errno == EPERM)
		opened = open(path, flags);
	return opened;
}

/*
 * A program that goes on meanwhile may have changed other things of the file than what it holds:
 * then that it has been changed says nothing.
 */
bool tree_has_changed(const struct statx *before, int fd, bool alone)
{
	struct statx now;

	if (!tree_stat(fd, "", AT_EMPTY_PATH, &now))
		return true;
	return before->stx_size != now.stx_size ||
	       !tree_same_time(&before->stx_mtime, &now.stx_mtime) ||
	       (alone && !tree_same_time(&before->stx_ctime, &now.stx_ctime));
}

static void set_hash(struct tree_content *c, struct hash128 hash)
{
	put_le64(c->hash, hash.low);
	put_le64(c->hash + 8, hash.high);
}

static struct hash128 digest_of(XXH3_state_t *state)
{
	XXH128_hash_t h = XXH3_128bits_digest(state);

	return (struct hash128){ .low = h.low64, .high = h.high64 };
}

static struct data *put_content(struct arena *a, struct tree_content *c)
{
	struct data *d = arena_alloc(a, sizeof(*d));

	*d = (struct data){ .len_bytes = c->len_bytes, .kept_bytes = c->len_bytes };
	c->content = (struct value){ .type = VALUE_DATA, .data = d };
	return d;
}

/* Of all three: as long as it was when it was asked, as a file that grows all the time has an end too. */

static bool read_small(struct tree *t, int fd, uint64_t size, struct tree_content *c)
{
	ssize_t n = pread_full(fd, t->piece, (size_t)size, 0);

	if (n < 0)
		return false;
	c->len_bytes = (uint64_t)n;
	set_hash(c, hash_bytes(t->piece, (size_t)n));
	put_content(&t->item, c)->bytes =
		(uint8_t *)arena_memdup0(&t->item, t->piece, (size_t)c->len_bytes);
	return true;
}

static bool read_hash(struct tree *t, int fd, uint64_t size, struct tree_content *c)
{
	XXH3_state_t *whole = XXH3_createState();
	ssize_t n = 1;

	(void)XXH3_128bits_reset(whole);
	while (c->len_bytes < size && n > 0) {
		uint64_t left = size - c->len_bytes;

		n = pread_full(fd, t->piece,
			       left < TREE_PIECE_BYTES ? (size_t)left : TREE_PIECE_BYTES,
			       c->len_bytes);
		if (n <= 0)
			break;
		(void)XXH3_128bits_update(whole, t->piece, (size_t)n);
		c->len_bytes += (uint64_t)n;
	}
	set_hash(c, digest_of(whole));
	(void)XXH3_freeState(whole);
	return n >= 0;
}

/* One piece more, read to where it is kept. How long it is; 0: there is none; -errno. */
static ssize_t keep_piece(struct tree_keeper *k, int fd, uint64_t at, size_t want,
			  XXH3_state_t *whole, struct blob_ref *ret)
{
	uint8_t *room;
	ssize_t n;

	if (!k->r)
		k->r = trace_feed_blob_room(k->feed, want, &room);
	if (k->r < 0)
		return k->r;
	n = pread_full(fd, room, want, at);
	if (n <= 0)
		return n;
	k->r = trace_feed_blob_filled(k->feed, room, (size_t)n, ret);
	if (whole)
		(void)XXH3_128bits_update(whole, room, (size_t)n);
	return k->r < 0 ? k->r : n;
}

static bool read_pieces(struct tree_keeper *k, int fd, uint64_t size, struct tree_content *c)
{
	struct blob_ref *refs =
		arena_alloc(k->arena, (size_t)(size / BLOB_MAX_BYTES + 1) * sizeof(*refs));
	struct data *d;
	/* The hash of an only piece is that of the whole. */
	XXH3_state_t *whole = size > BLOB_MAX_BYTES ? XXH3_createState() : NULL;
	uint64_t nr = 0;
	ssize_t n = 1;

	refs[0].hash = hash_bytes("", 0); /* unless there is a piece */
	if (whole)
		(void)XXH3_128bits_reset(whole);
	while (c->len_bytes < size && n > 0) {
		uint64_t left = size - c->len_bytes;

		n = keep_piece(k, fd, c->len_bytes,
			       (size_t)(left < BLOB_MAX_BYTES ? left : BLOB_MAX_BYTES), whole,
			       &refs[nr++]);
		if (n > 0)
			c->len_bytes += (uint64_t)n;
		if (n > 0 && (uint64_t)n < BLOB_MAX_BYTES)
			break;
	}
	set_hash(c, whole ? digest_of(whole) : refs[0].hash);
	(void)XXH3_freeState(whole);
	if (n < 0)
		return false;
	d = put_content(k->arena, c);
	if (c->len_bytes)
		d->refs = refs;
	else
		d->bytes = (const uint8_t *)"";
	return true;
}

bool tree_keep_content(struct tree_keeper *k, const struct tree_file *f, struct tree_content *ret)
{
	*ret = (struct tree_content){ .content = { .type = VALUE_NONE } };
	if (!read_pieces(k, f->fd, f->st.stx_size, ret))
		return false;
	ret->changed = f->is_copy ? f->changed : tree_has_changed(&f->st, f->fd, false);
	return true;
}

static bool read_content(struct tree *t, int fd, uint64_t size, bool keep, struct tree_content *c)
{
	struct tree_keeper k = { .feed = t->feed, .arena = &t->item, .r = t->r };
	bool is_read;

	if (!keep)
		return read_hash(t, fd, size, c);
	if (size <= DATA_INLINE_MAX)
		return read_small(t, fd, size, c);
	is_read = read_pieces(&k, fd, size, c);
	t->r = k.r;
	return is_read;
}

bool tree_read_content(struct tree *t, const struct tree_object *o, uint64_t max_bytes, bool keep,
		       struct tree_content *ret)
{
	AUTO_CLOSE int fd = -1;

	*ret = (struct tree_content){ .content = { .type = VALUE_NONE } };
	if (!S_ISREG(o->st.stx_mode) || o->special || o->st.stx_size > max_bytes)
		return false;
	fd = tree_open_to_read(o->fd, 0);
	if (fd < 0 || !read_content(t, fd, o->st.stx_size, keep, ret))
		return false;
	ret->changed = tree_has_changed(&o->st, fd, true);
	return true;
}

/* What was noted of the file when it was not read yet. */
static void remember_hash(struct noted *n, const struct statx *st, const struct tree_content *c)
{
	struct noted_file *nf = n->file;

	if (!nf || nf->ino != st->stx_ino)
		return;
	nf->has_hash = true;
	nf->settled &= !c->changed;
	memcpy(nf->hash, c->hash, sizeof(nf->hash));
}

void tree_write_content(struct tree *t, struct noted *n, const struct statx *st,
			const struct tree_content *c, bool is_read)
{
	struct tree_record rec = { .which = TREE_INITIAL,
				   .path = n->path,
				   .path_len = strlen(n->path),
				   .flags = TREE_UNREADABLE };

	if (is_read) {
		remember_hash(n, st, c);
		rec.content = c->content;
		rec.hash = c->hash;
		rec.flags = TREE_CONTENT_KEPT | (c->changed ? TREE_CHANGED : 0);
	}
	t->nr_incomplete += !is_read;
	tree_write(t, &rec);
}

void tree_keep_file(struct tree *t, struct tree_file *f, bool soon)
{
	struct tree_content c = { .content = { .type = VALUE_NONE } };
	bool is_read;

	if (soon && tree_later_add(t, f))
		return;
	is_read = read_content(t, f->fd, f->st.stx_size, true, &c);
	c.changed = f->is_copy ? f->changed : tree_has_changed(&f->st, f->fd, false);
	tree_write_content(t, f->noted, &f->st, &c, is_read);
	(void)close(f->fd); /* only read from */
}
