/* SPDX-License-Identifier: MIT */
/*
 * Sites of files that earlier recordings have looked through, and which of them were used: a
 * directory with a small file for each, by build-id, size, time of the last change, device and inode: so
 * that no file that a program has made is taken for another one. It is a help and no more: what
 * cannot be read, or is not as it should be, is looked for again. And what is changed in a
 * program is compared before with what stands there (patcher.c).
 */
#ifndef RECORD_AGENT_SITE_STORE_H
#define RECORD_AGENT_SITE_STORE_H

#include <stdbool.h>

#include "base/buf.h"
#include "record/agent/sites.h"

struct site_store;

/*
 * In a directory that must be there, and our own; what is below it is made. NULL: without a store, also
 * when others could have written into it.
 */
struct site_store *site_store_open(const char *dir, const char *below);
void site_store_close(struct site_store *s); /* NULL is fine */
/* Nothing was in it when it was opened. */
bool site_store_is_empty(const struct site_store *s);

/* "" for a file that cannot be known again. */
struct site_key {
	char text[160];
};

/* Of an open ELF file. */
struct stat;
void site_store_key(int fd, const struct stat *st, struct site_key *ret);
/* False: they are not known. The sites are the caller's to release. */
bool site_store_load(const struct site_store *s, const struct site_key *key, struct sites *ret);
void site_store_save(struct site_store *s, const struct site_key *key, const struct sites *sites);

/* What is in a file of the store; false: it is none. */
bool site_store_parse(const struct site_key *key, const uint8_t *p, size_t len, struct sites *ret);
void site_store_print(const struct site_key *key, const struct sites *sites, struct buf *ret);

#endif
