/* SPDX-License-Identifier: MIT */
/*
 * Numbers as bytes: fixed little-endian fields, and LEB128 varints (7 bits a
 * byte, low bits first, top bit = more follows; at most 10 bytes). Signed
 * numbers are folded by zigzag (0, -1, 1, -2 ... -> 0, 1, 2, 3 ...).
 * Writers need VARINT_MAX bytes of room, all of which they may change; readers never
 * pass `end`.
 */
#ifndef BASE_VARINT_H
#define BASE_VARINT_H

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

#include "base/attrs.h"

#define VARINT_MAX 10

static inline void put_le16(uint8_t *p, uint16_t v)
{
	p[0] = (uint8_t)v;
	p[1] = (uint8_t)(v >> 8);
}

static inline void put_le32(uint8_t *p, uint32_t v)
{
	put_le16(p, (uint16_t)v);
	put_le16(p + 2, (uint16_t)(v >> 16));
}

static inline void put_le64(uint8_t *p, uint64_t v)
{
	put_le32(p, (uint32_t)v);
	put_le32(p + 4, (uint32_t)(v >> 32));
}

static inline uint16_t get_le16(const uint8_t *p)
{
	return (uint16_t)(p[0] | p[1] << 8);
}

static inline uint32_t get_le32(const uint8_t *p)
{
	return get_le16(p) | (uint32_t)get_le16(p + 2) << 16;
}

static inline uint64_t get_le64(const uint8_t *p)
{
	return get_le32(p) | (uint64_t)get_le32(p + 4) << 32;
}

static inline uint8_t *put_uvarint(uint8_t *p, uint64_t v)
{
	unsigned int more;

	if (v < 0x80) {
		*p = (uint8_t)v;
		return p + 1;
	}
	if (UNLIKELY(v >> 56)) {
		while (v >= 0x80) {
			*p++ = (uint8_t)v | 0x80;
			v >>= 7;
		}
		*p++ = (uint8_t)v;
		return p;
	}
	/* How long a number is nobody can foretell: without a branch for each byte. */
	more = (63 - (unsigned int)__builtin_clzll(v)) / 7;
	v = (v & UINT64_C(0xfffffff)) | (v & UINT64_C(0xfffffff0000000)) << 4;
	v = (v & UINT64_C(0x3fff00003fff)) | (v & UINT64_C(0xfffc0000fffc000)) << 2;
	v = (v & UINT64_C(0x7f007f007f007f)) | (v & UINT64_C(0x3f803f803f803f80)) << 1;
	put_le64(p, v | (UINT64_C(0x8080808080808080) & ((UINT64_C(1) << 8 * more) - 1)));
	return p + more + 1;
}

static inline uint64_t zigzag(int64_t v)
{
	return ((uint64_t)v << 1) ^ (uint64_t)(v >> 63);
}

static inline int64_t unzigzag(uint64_t v)
{
	return (int64_t)(v >> 1) ^ -(int64_t)(v & 1);
}

static inline uint8_t *put_svarint(uint8_t *p, int64_t v)
{
	return put_uvarint(p, zigzag(v));
}

/* A read position in bytes of foreign origin. A failed read leaves it where it was. */
struct cursor {
	const uint8_t *pos, *end;
};

bool cursor_get_uvarint_slow(struct cursor *c, uint64_t *ret);

/* False at the end of the input or when the number does not fit 64 bits. */
static inline MUST_CHECK bool cursor_get_uvarint(struct cursor *c, uint64_t *ret)
{
	if (LIKELY(c->pos < c->end && *c->pos < 0x80)) {
		*ret = *c->pos++;
		return true;
	}
	return cursor_get_uvarint_slow(c, ret);
}

static inline MUST_CHECK bool cursor_get_svarint(struct cursor *c, int64_t *ret)
{
	uint64_t v;

	if (!cursor_get_uvarint(c, &v))
		return false;
	*ret = unzigzag(v);
	return true;
}

/* Points into the input; nothing is copied. */
static inline MUST_CHECK bool cursor_get_bytes(struct cursor *c, uint64_t len, const uint8_t **ret)
{
	if (len > (uint64_t)(c->end - c->pos))
		return false;
	*ret = c->pos;
	c->pos += len;
	return true;
}

static inline size_t cursor_left(const struct cursor *c)
{
	return (size_t)(c->end - c->pos);
}

#endif
