/* SPDX-License-Identifier: MIT */
/*
 * Which file a descriptor refers to, followed through the events of a trace:
 * opens, duplicates, closes, pipes and sockets, fork and exec, cwd. For showing
 * and counting, not for replay: names are joined and cleaned lexically, links
 * and later renames are not looked at.
 *
 *   process ---> table ---> pages of 64 slots ---> file (path, counted)
 *          \---> cwd        (tables and cwds are shared after CLONE_FILES, CLONE_FS)
 *
 * Events may come in any order that keeps the order of each thread. A slot
 * remembers since when its file counts and what was there before: so a close
 * that another thread began earlier, but that is seen later, does not take away
 * the file of an open which got the same number, and a call that was entered
 * before that open still finds the former file.
 *
 * Memory is bounded: what would go beyond FDPATHS_MAX_BYTES is not followed,
 * its descriptors have no path. Owned by one thread.
 */
#ifndef REPORT_FDPATHS_H
#define REPORT_FDPATHS_H

#include <stdbool.h>

#include "base/buf.h"
#include "model/event.h"
#include "trace/reader.h"

#define FDPATHS_MAX_BYTES ((uint64_t)256 << 20)
/* Longer names are cut. */
#define FDPATHS_PATH_MAX 4096

struct fdpaths;

/* An opened file. Things without a name are called "pipe:", "socket:" and so on. */
struct fd_file {
	uint32_t refs;
	uint32_t path_len;
	void *user; /* NULL until who walks the events hangs something on it */
	char path[];
};

/* Borrows the trace, where longer names are stored; NULL: events bring all bytes with them. */
struct fdpaths *fdpaths_new(struct trace *t);
void fdpaths_free(struct fdpaths *p);

/* To be called with every event, after its arguments have been looked up. */
void fdpaths_apply(struct fdpaths *p, const struct event *ev);

/*
 * The file of a descriptor of ev's process: as the call found it when it was
 * entered, or as it left it. NULL when that is not known. Valid until the next
 * fdpaths_apply().
 */
struct fd_file *fdpaths_find(struct fdpaths *p, const struct event *ev, int64_t fd);
struct fd_file *fdpaths_find_after(struct fdpaths *p, const struct event *ev, int64_t fd);

/* The call makes descriptors: its result and lists are known only after fdpaths_apply(). */
bool fdpaths_opens(struct fdpaths *p, const struct event *ev);

/*
 * Replaces `out` by the name in argument nr, joined to the directory that it is
 * relative to. It stays relative when that is not known. False when the
 * argument is no name of a file, or was not kept.
 */
bool fdpaths_resolve(struct fdpaths *p, const struct event *ev, unsigned int nr, struct buf *out);

/* Appends name to the directory in out (or to nothing) without "." and "..", "//" and the last "/". */
void fdpaths_join(struct buf *out, const char *name, size_t len);

/* How many descriptors were not followed because memory is bounded. */
uint64_t fdpaths_nr_forgotten(const struct fdpaths *p);

#endif
