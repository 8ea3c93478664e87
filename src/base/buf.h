/* SPDX-License-Identifier: MIT */
/*
 * A growing array of bytes, also used to build text. `data` is not
 * NUL-terminated unless buf_str() was the last call. Owned by one thread.
 */
#ifndef BASE_BUF_H
#define BASE_BUF_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "base/attrs.h"

struct buf {
	uint8_t *data;
	size_t len, cap;
};

void buf_release(struct buf *b);
void buf_grow(struct buf *b, size_t more);

static inline void buf_clear(struct buf *b)
{
	b->len = 0;
}

/* Makes room for `more` bytes and returns where they go, never NULL; the caller adds to len. */
static inline uint8_t *buf_reserve(struct buf *b, size_t more)
{
	if (UNLIKELY(!b->data || b->cap - b->len < more))
		buf_grow(b, more);
	return b->data + b->len;
}

static inline void buf_put(struct buf *b, const void *p, size_t len)
{
	if (len)
		memcpy(buf_reserve(b, len), p, len);
	b->len += len;
}

static inline void buf_putc(struct buf *b, char c)
{
	*buf_reserve(b, 1) = (uint8_t)c;
	b->len++;
}

static inline void buf_puts(struct buf *b, const char *s)
{
	buf_put(b, s, strlen(s));
}

PRINTF_LIKE(2, 3) void buf_printf(struct buf *b, const char *fmt, ...);
PRINTF_LIKE(2, 0) void buf_vprintf(struct buf *b, const char *fmt, va_list ap);
/* The contents as a string; valid until the next change. */
const char *buf_str(struct buf *b);

#endif
