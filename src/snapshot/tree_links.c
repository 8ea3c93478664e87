/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/banned.h"
#include "base/hash.h"
#include "base/map.h"
#include "base/mem.h"
#include "base/varint.h"
#include "snapshot/tree_inside.h"

/* Links. */

struct link_key {
	uint64_t source, dev, ino;
};

static bool may_have_links(const struct snapshot_entry *e)
{
	/* The number of an inode with one name is used again when that name is gone. */
	return snapshot_is_made(e) && e->type != SNAPSHOT_DIR && e->known & SNAPSHOT_HAS_ID &&
	       !(e->known & SNAPSHOT_HAS_NLINK && e->nlink < 2) && !(e->flags & SNAPSHOT_SPECIAL);
}

/*
 * All names of a file get the state that was seen first: a name that was noted
 * later shows what the program had already done by way of another. (Until here
 * first_link is the number of the path's first record.)
 */
static void join_link(struct snapshot_entry *first, const struct snapshot_entry *e)
{
	uint32_t order = first->first_link;

	if (e->first_link < order) {
		order = e->first_link;
		tree_copy_known(first, e);
	} else if (e->content && !first->content) {
		first->content = e->content;
		first->size_bytes = e->size_bytes;
		first->known |= SNAPSHOT_HAS_SIZE;
	}
	if (e->known & ~first->known & SNAPSHOT_HAS_HASH) {
		memcpy(first->hash, e->hash, sizeof(first->hash));
		first->known |= SNAPSHOT_HAS_HASH;
	}
	first->first_link = order;
}

void tree_find_links(struct snapshot *s)
{
	struct entries *v = &s->entries;
	uint32_t *firsts = xcalloc(v->len, sizeof(*firsts));
	struct map map = { 0 };
	size_t i;

	for (i = 0; i < v->len; i++) {
		struct snapshot_entry *e = &v->items[i];
		struct link_key key = { e->source, e->dev, e->ino };
		struct snapshot_entry *first;
		void **slot;

		firsts[i] = (uint32_t)i;
		e->nr_links = 1;
		if (!may_have_links(e))
			continue;
		slot = map_slot(&map, &key, sizeof(key));
		first = *slot;
		if (!first) {
			*slot = e;
		} else if (first->type == e->type) {
			firsts[i] = (uint32_t)(first - v->items);
			first->nr_links++;
			join_link(first, e);
		}
	}
	map_release(&map);
	for (i = 0; i < v->len; i++) {
		struct snapshot_entry *e = &v->items[i];

		e->first_link = firsts[i];
		if (e->content) {
			e->size_bytes = e->content->len_bytes;
			e->known |= SNAPSHOT_HAS_SIZE;
		}
	}
	free(firsts);
}

/* Identity. */

static void hash_u64(XXH3_state_t *h, uint64_t v)
{
	uint8_t bytes[8];

	put_le64(bytes, v);
	(void)XXH3_128bits_update(h, bytes, sizeof(bytes));
}

static void hash_text(XXH3_state_t *h, const void *p, size_t len)
{
	hash_u64(h, len);
	if (len)
		(void)XXH3_128bits_update(h, p, len);
}

static void hash_content(XXH3_state_t *h, const struct data *d)
{
	uint64_t i, nr = d ? data_nr_pieces(d) : 0;

	hash_u64(h, !!d);
	if (!d)
		return;
	hash_u64(h, d->len_bytes);
	hash_u64(h, d->kept_bytes);
	for (i = 0; i < nr; i++) {
		uint64_t from = i * BLOB_MAX_BYTES, len = d->kept_bytes - from;
		struct hash128 piece;

		if (d->refs)
			piece = d->refs[i].hash;
		else
			piece = hash_bytes(d->bytes + from,
					   (size_t)(len < BLOB_MAX_BYTES ? len : BLOB_MAX_BYTES));
		hash_u64(h, piece.low);
		hash_u64(h, piece.high);
		/* Without its bytes it will be filler. */
		hash_u64(h, d->refs && !d->refs[i].blob);
	}
}

static void hash_entry(XXH3_state_t *h, const struct snapshot_entry *e)
{
	uint32_t i;

	hash_text(h, e->path, e->path_len);
	hash_u64(h, (uint64_t)e->flags << 32 | (uint64_t)e->known << 8 | e->type);
	hash_u64(h, e->first_link);
	hash_u64(h, e->mode);
	hash_u64(h, (uint64_t)e->uid << 32 | e->gid);
	hash_u64(h, e->size_bytes);
	hash_u64(h, e->rdev);
	hash_u64(h, (uint64_t)e->mtime_ns);
	hash_u64(h, (uint64_t)e->atime_ns);
	hash_text(h, e->target, e->target_len);
	hash_u64(h, e->nr_xattrs);
	for (i = 0; i < e->nr_xattrs; i++) {
		hash_text(h, e->xattrs[i].name, strlen(e->xattrs[i].name));
		hash_text(h, e->xattrs[i].value, e->xattrs[i].value_len);
	}
	hash_content(h, e->content);
}

void tree_identify(struct snapshot *s)
{
	XXH3_state_t *h = XXH3_createState();
	XXH128_hash_t digest;
	size_t i;

	(void)XXH3_128bits_reset(h);
	for (i = 0; i < s->entries.len; i++)
		hash_entry(h, &s->entries.items[i]);
	digest = XXH3_128bits_digest(h);
	(void)XXH3_freeState(h);
	s->identity = (struct hash128){ digest.low64, digest.high64 };
}
