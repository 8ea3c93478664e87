/* SPDX-License-Identifier: MIT */
/*
 * Transfers that are whole or say why not: signals, short transfers and
 * descriptors in non-blocking mode are dealt with here. Any thread may call
 * these; the descriptor stays the caller's. And the way in which files are made.
 */
#ifndef BASE_IO_H
#define BASE_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/attrs.h"
#include "base/buf.h"
#include "base/err.h"

/* The number of bytes, less than len only at the end of the file; or -errno. */
MUST_CHECK ssize_t read_full(int fd, void *p, size_t len);
MUST_CHECK ssize_t pread_full(int fd, void *p, size_t len, uint64_t offset);

/* 0 when all is written, or -errno; then part of it may be written. */
MUST_CHECK int write_full(int fd, const void *p, size_t len);
MUST_CHECK int pwrite_full(int fd, const void *p, size_t len, uint64_t offset);

/*
 * Appends a whole file to ret; works for files of /proc, whose size is not known
 * before. -E2BIG when it is longer than max_bytes. On failure ret is as before.
 */
MUST_CHECK int io_read_file(const char *path, size_t max_bytes, struct buf *ret, struct err *err);

/* Files hold what programs have read and written: only their owner may use them. */
#define IO_FILE_MODE 0600

/*
 * Creates a file and opens it for writing; returns the descriptor, or -EEXIST
 * without words if there is one that is not to be replaced, or cannot be since it
 * is not a regular file. A file that is replaced is unlinked, as it may be in use.
 * mode: exactly that, whatever the umask; 0 for IO_FILE_MODE.
 */
MUST_CHECK int io_create_file(const char *path, bool replace, unsigned int mode, struct err *err);

#endif
