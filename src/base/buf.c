/* SPDX-License-Identifier: MIT */
#include "base/buf.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/mem.h"

void buf_release(struct buf *b)
{
	free(b->data);
	*b = (struct buf){ 0 };
}

void buf_grow(struct buf *b, size_t more)
{
	size_t want = b->cap ? b->cap * 2 : 256;

	if (want < b->len + more)
		want = b->len + more;
	b->data = xrealloc(b->data, want);
	b->cap = want;
}

void buf_vprintf(struct buf *b, const char *fmt, va_list ap)
{
	va_list again;
	int n;

	va_copy(again, ap);
	n = vsnprintf((char *)buf_reserve(b, 64), 64, fmt, ap);
	if (n >= 64)
		(void)vsnprintf((char *)buf_reserve(b, (size_t)n + 1), (size_t)n + 1, fmt, again);
	if (n > 0)
		b->len += (size_t)n;
	va_end(again);
}

void buf_printf(struct buf *b, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	buf_vprintf(b, fmt, ap);
	va_end(ap);
}

const char *buf_str(struct buf *b)
{
	*buf_reserve(b, 1) = 0;
	return (const char *)b->data;
}
