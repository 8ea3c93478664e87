/* SPDX-License-Identifier: MIT */
#include "base/varint.h"

bool cursor_get_uvarint_slow(struct cursor *c, uint64_t *ret)
{
	const uint8_t *p = c->pos;
	uint64_t v = 0;
	unsigned int shift;

	for (shift = 0; shift < 64; shift += 7) {
		uint8_t byte;

		if (p >= c->end)
			return false;
		byte = *p++;
		/* The tenth byte holds the single bit 63. */
		if (shift == 63 && byte > 1)
			return false;
		v |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80)) {
			c->pos = p;
			*ret = v;
			return true;
		}
	}
	return false;
}
