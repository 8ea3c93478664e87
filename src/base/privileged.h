/* SPDX-License-Identifier: MIT */
/*
 * Metadata that gives rights. A tree or a run has it only where that was asked for
 * (--privileged-metadata); else what lacks it is no difference.
 */
#ifndef BASE_PRIVILEGED_H
#define BASE_PRIVILEGED_H

#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>

#define PRIVILEGED_MODE_BITS ((mode_t)(S_ISUID | S_ISGID))

static inline bool privileged_xattr(const void *name, size_t len)
{
	return (len >= 9 && !memcmp(name, "security.", 9)) ||
	       (len >= 8 && !memcmp(name, "trusted.", 8));
}

#endif
