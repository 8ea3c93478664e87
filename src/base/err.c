/* SPDX-License-Identifier: MIT */
#include "base/err.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

static int explained_by_words(int r)
{
	return r >= 0 || r == -EBADMSG || r == -EOPNOTSUPP || r == -EINVAL || r == -E2BIG;
}

int err_set(struct err *err, int r, const char *fmt, ...)
{
	va_list ap;
	int len;

	if (!err)
		return r;
	va_start(ap, fmt);
	len = vsnprintf(err->text, sizeof(err->text), fmt, ap);
	va_end(ap);
	if (len >= 0 && (size_t)len < sizeof(err->text) && !explained_by_words(r))
		snprintf(err->text + len, sizeof(err->text) - (size_t)len, ": %s", strerror(-r));
	return r;
}

int err_wrap(struct err *err, int r, const char *fmt, ...)
{
	char outer[ERR_TEXT_SIZE];
	size_t len, room, inner_len;
	va_list ap;

	if (!err)
		return r;
	va_start(ap, fmt);
	(void)vsnprintf(outer, sizeof(outer) - 2, fmt, ap); /* cut short is better than lost */
	va_end(ap);
	len = strlen(outer);
	memcpy(outer + len, ": ", 2);
	len += 2;
	room = sizeof(err->text) - 1 - len;
	inner_len = strnlen(err->text, room);
	memmove(err->text + len, err->text, inner_len);
	err->text[len + inner_len] = 0;
	memcpy(err->text, outer, len);
	return r;
}
