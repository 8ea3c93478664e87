/* SPDX-License-Identifier: MIT */
/* Compiler attributes and the two scope-bound clean-ups that the style allows. */
#ifndef BASE_ATTRS_H
#define BASE_ATTRS_H

#include <stddef.h>

#define PRINTF_LIKE(f, a) __attribute__((format(printf, f, a)))
#define MUST_CHECK __attribute__((warn_unused_result))
#define NORETURN __attribute__((noreturn))
#define UNUSED __attribute__((unused))
#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)

#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

void attrs_free_ptr(void *pp);
void attrs_close_fd(int *fd);

#define AUTO_FREE __attribute__((cleanup(attrs_free_ptr)))
#define AUTO_CLOSE __attribute__((cleanup(attrs_close_fd)))

/* Moves a descriptor out of an AUTO_CLOSE variable. */
static inline int fd_take(int *fd)
{
	int taken = *fd;

	*fd = -1;
	return taken;
}

#endif
