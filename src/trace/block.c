/* SPDX-License-Identifier: MIT */
#include "trace/block.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <zstd.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/varint.h"

static const uint8_t magic[4] = { 'R', 'P', 'R', 'B' };

bool block_has_magic(const uint8_t *p)
{
	return !memcmp(p, magic, sizeof(magic));
}

uint64_t block_checksum(const void *payload, size_t len)
{
	return XXH3_64bits(payload, len);
}

static uint32_t header_checksum(const uint8_t *p)
{
	return (uint32_t)XXH3_64bits(p, BLOCK_HEADER_BYTES - 4);
}

void block_header_put(uint8_t *p, const struct block_header *h)
{
	memcpy(p, magic, sizeof(magic));
	p[4] = h->type;
	p[5] = h->version;
	put_le16(p + 6, h->flags);
	put_le32(p + 8, h->stored_bytes);
	put_le32(p + 12, h->plain_bytes);
	put_le64(p + 16, h->number);
	put_le64(p + 24, h->checksum);
	put_le32(p + 32, 0);
	put_le32(p + 36, header_checksum(p));
}

int block_header_get(const uint8_t *p, struct block_header *ret)
{
	if (!block_has_magic(p) || get_le32(p + 36) != header_checksum(p))
		return -EBADMSG;
	*ret = (struct block_header){
		.type = p[4],
		.version = p[5],
		.flags = get_le16(p + 6),
		.stored_bytes = get_le32(p + 8),
		.plain_bytes = get_le32(p + 12),
		.number = get_le64(p + 16),
		.checksum = get_le64(p + 24),
	};
	return 0;
}

void events_prefix_put(uint8_t *p, const struct events_prefix *e)
{
	put_le32(p, e->pid);
	put_le32(p + 4, e->tid);
	put_le64(p + 8, e->first_index);
	put_le64(p + 16, e->nr_events);
	put_le64(p + 24, e->first_ns);
	put_le64(p + 32, e->last_ns);
	put_le64(p + 40, e->base_ns);
	put_le64(p + 48, e->base_seq);
}

bool events_prefix_get(const uint8_t *p, size_t len, struct events_prefix *ret)
{
	if (len < EVENTS_PREFIX_BYTES || get_le64(p + 16) > len)
		return false;
	*ret = (struct events_prefix){
		.pid = get_le32(p),
		.tid = get_le32(p + 4),
		.first_index = get_le64(p + 8),
		.nr_events = (uint32_t)get_le64(p + 16),
		.first_ns = get_le64(p + 24),
		.last_ns = get_le64(p + 32),
		.base_ns = get_le64(p + 40),
		.base_seq = get_le64(p + 48),
	};
	return true;
}

void footer_put(uint8_t *p, const struct footer *f)
{
	put_le64(p, f->index_offset);
	put_le64(p + 8, f->nr_blocks);
	put_le64(p + 16, f->nr_events);
	put_le64(p + 24, f->nr_streams);
	put_le64(p + 32, f->nr_blobs);
	put_le64(p + 40, f->blob_bytes);
	put_le64(p + 48, f->nr_losses);
	put_le64(p + 56, f->own_offset);
}

void footer_get(const uint8_t *p, struct footer *f)
{
	*f = (struct footer){
		.index_offset = get_le64(p),
		.nr_blocks = get_le64(p + 8),
		.nr_events = get_le64(p + 16),
		.nr_streams = get_le64(p + 24),
		.nr_blobs = get_le64(p + 32),
		.blob_bytes = get_le64(p + 40),
		.nr_losses = get_le64(p + 48),
		.own_offset = get_le64(p + 56),
	};
}

void block_entry_put(uint8_t *p, const struct block_entry *e)
{
	put_le32(p, e->type);
	put_le32(p + 4, e->stored_bytes);
	put_le64(p + 8, e->offset);
	put_le64(p + 16, e->number);
	put_le32(p + 24, e->pid);
	put_le32(p + 28, e->tid);
	put_le64(p + 32, e->nr_events);
	put_le64(p + 40, e->first_index);
	put_le64(p + 48, e->first_ns);
	put_le64(p + 56, e->last_ns);
}

void block_entry_get(const uint8_t *p, struct block_entry *e)
{
	*e = (struct block_entry){
		.type = p[0],
		.stored_bytes = get_le32(p + 4),
		.offset = get_le64(p + 8),
		.number = get_le64(p + 16),
		.pid = get_le32(p + 24),
		.tid = get_le32(p + 28),
		.nr_events = (uint32_t)get_le64(p + 32),
		.first_index = get_le64(p + 40),
		.first_ns = get_le64(p + 48),
		.last_ns = get_le64(p + 56),
	};
}

struct block_packer {
	ZSTD_CCtx *cctx;
};

struct block_packer *block_packer_new(void)
{
	struct block_packer *p = xmalloc(sizeof(*p));

	p->cctx = ZSTD_createCCtx();
	if (!p->cctx)
		abort();
	return p;
}

void block_packer_free(struct block_packer *p)
{
	if (!p)
		return;
	ZSTD_freeCCtx(p->cctx);
	free(p);
}

void block_pack(struct block_packer *p, struct block_header h, const void *payload, size_t len,
		int level, struct buf *out)
{
	size_t room = level > 0 ? ZSTD_compressBound(len) : len;
	uint8_t *header = buf_reserve(out, BLOCK_HEADER_BYTES + room);
	uint8_t *stored = header + BLOCK_HEADER_BYTES;
	size_t n = len;

	if (level > 0) {
		n = ZSTD_compressCCtx(p->cctx, stored, room, payload, len, level);
		if (ZSTD_isError(n) || n >= len)
			n = len;
		else
			h.flags |= BLOCK_ZSTD;
	}
	if (!(h.flags & BLOCK_ZSTD) && len)
		memcpy(stored, payload, len);
	h.stored_bytes = (uint32_t)n;
	h.plain_bytes = (uint32_t)len;
	h.checksum = block_checksum(stored, n);
	block_header_put(header, &h);
	out->len += BLOCK_HEADER_BYTES + n;
}

struct block_unpacker {
	ZSTD_DCtx *dctx;
};

struct block_unpacker *block_unpacker_new(void)
{
	struct block_unpacker *u = xmalloc(sizeof(*u));

	u->dctx = ZSTD_createDCtx();
	if (!u->dctx)
		abort();
	return u;
}

void block_unpacker_free(struct block_unpacker *u)
{
	if (!u)
		return;
	ZSTD_freeDCtx(u->dctx);
	free(u);
}

int block_unpack(struct block_unpacker *u, const struct block_header *h, const uint8_t *stored,
		 struct buf *plain, const uint8_t **ret, struct err *err)
{
	size_t n;

	if (block_checksum(stored, h->stored_bytes) != h->checksum)
		return err_set(err, -EBADMSG, "checksum of the block does not match");
	if (h->version > BLOCK_VERSION || (h->flags & BLOCK_FLAGS_BINDING & ~BLOCK_ZSTD))
		return err_set(err, -EOPNOTSUPP, "block uses a feature of a later version");
	if (h->plain_bytes > BLOCK_PLAIN_MAX)
		return err_set(err, -EBADMSG, "block claims %u bytes, more than the format allows",
			       h->plain_bytes);
	if (!(h->flags & BLOCK_ZSTD)) {
		if (h->plain_bytes != h->stored_bytes)
			return err_set(err, -EBADMSG, "lengths of the block contradict each other");
		*ret = stored;
		return 0;
	}
	buf_clear(plain);
	n = ZSTD_decompressDCtx(u->dctx, buf_reserve(plain, h->plain_bytes), h->plain_bytes, stored,
				h->stored_bytes);
	if (ZSTD_isError(n) || n != h->plain_bytes)
		return err_set(err, -EBADMSG, "block cannot be unpacked");
	plain->len = n;
	*ret = plain->data;
	return 0;
}
