/* SPDX-License-Identifier: MIT */
/*
 * A directory for the files of one test program: made at the first use, removed
 * with its files when the process that made it exits. Only the main thread may
 * call. Failures abort: without it there is nothing to test.
 */
#ifndef LIB_SCRATCH_H
#define LIB_SCRATCH_H

#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/* The path of a file in it; valid for ever, the same pointer for the same name. */
const char *scratch_path(const char *name);

/* Whole files. */
void scratch_write(const char *path, const void *p, size_t len);
void scratch_read(const char *path, struct buf *ret);
uint64_t scratch_size(const char *path);

#endif
