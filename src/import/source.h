/* SPDX-License-Identifier: MIT */
/*
 * Where an import gets its bytes from. A source may stand on another one (an
 * unpacker on a file) and then owns it. Belongs to one thread.
 */
#ifndef IMPORT_SOURCE_H
#define IMPORT_SOURCE_H

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/attrs.h"
#include "base/err.h"
#include "base/progress.h"

struct import_source {
	/* The number of bytes, 0 at the end, or -errno. */
	ssize_t (*read)(struct import_source *s, void *p, size_t len, struct err *err);
	void (*close)(struct import_source *s);
};

/*
 * The bytes of a file, or of standard input when the path is "-", unpacked when
 * they begin like something that gzip, zstd or xz packed. Progress counts bytes
 * of the file.
 */
MUST_CHECK int import_source_open(const char *path, struct progress *progress,
				  struct import_source **ret, struct err *err);

/*
 * When `first`, the beginning of what `inner` gives (already taken from it), is
 * that of packed bytes: a source of the unpacked ones in *ret, which owns inner.
 * Else *ret is NULL.
 */
MUST_CHECK int import_source_unpack(struct import_source *inner, const uint8_t *first, size_t len,
				    struct import_source **ret, struct err *err);
/* How many first bytes tell. */
#define IMPORT_MAGIC_BYTES 6

#endif
