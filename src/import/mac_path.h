/* SPDX-License-Identifier: MIT */
/*
 * Pathnames that mean something on macOS alone, as pathnames that mean about the
 * same elsewhere.
 *
 *   DIR/NAME/..namedfork/rsrc       the resource fork: DIR/._NAME, where macOS
 *                                   itself puts it on a file system that has
 *                                   none
 *   /.vol/VOLUME/INODE[/REST]       a file by number: its path, or "/"
 */
#ifndef IMPORT_MAC_PATH_H
#define IMPORT_MAC_PATH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"

/* The path of an inode, NULL when it is not known. */
typedef const char *(*mac_path_of_inode)(const void *ctx, uint64_t inode);

/* Whether the path ends as that of a resource fork; *ret_len: without that end. */
bool mac_path_is_fork(const char *path, size_t len, size_t *ret_len);
/* Appends the name of the file that stands for the fork of the file at path. */
void mac_path_put_fork(struct buf *out, const char *path, size_t len);
/* Appends what stands for the path, "" for "" and most paths for themselves. */
void mac_path_put(struct buf *out, const char *path, size_t len, mac_path_of_inode find,
		  const void *ctx);

#endif
