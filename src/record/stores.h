/* SPDX-License-Identifier: MIT */
/*
 * What programs store through shared maps of files. No call shows that, so the mapped parts of a
 * file are looked at whenever it can matter, in one of two ways:
 *
 *   compared  Each page is compared with a hash of what it held before. Needs nothing of the
 *             program, but the whole map is read at each look: for small maps and new files.
 *   marked    The kernel marks pages that are written to (page_marks.h). A look costs little
 *             however much there is, but the program has to make a descriptor for it.
 *
 * A large map is marked from its beginning; one that turns out to be looked at for too long is
 * marked from then on. What a call has written there is found as well, which is harmless.
 *
 * A file is held from its first shared map to its last, by a descriptor of the program, so that it
 * can be looked at when the program is gone. Maps are known by the number of their
 * address space. Those that cannot be written to count, too: that may change. Owned by the
 * recorder's thread.
 */
#ifndef RECORD_STORES_H
#define RECORD_STORES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/attrs.h"

struct stores;

/* A run of pages that differ, in a map of this process. */
struct stored {
	pid_t pid;
	uint64_t addr, offset; /* in the file */
	const uint8_t *bytes;
	size_t len_bytes;
	uint64_t dev, ino;
};

/* Who is told of what was found; -errno ends the look. */
struct stores_sink {
	int (*put)(void *of, const struct stored *found);
	void *of;
};

struct stores *stores_new(void);
void stores_free(struct stores *s);

/* There is a shared map of a file. */
bool stores_has_maps(const struct stores *s);
/* Something can be stored to this file. */
bool stores_has_file(const struct stores *s, uint64_t dev, uint64_t ino);

/* A range of addresses. */
struct stores_range {
	uint64_t space, start, end;
};

/*
 * The process has mapped a file, which descriptor fd of it was of, from this offset on. 1: it is followed,
 * unless stores_take_lost() says otherwise; 0: it is nothing that could be stored to; -errno: what is
 * stored there will not be seen.
 */
MUST_CHECK int stores_map(struct stores *s, const struct stores_range *at, pid_t pid, int fd,
			  uint64_t offset, bool is_writable);
void stores_unmap(struct stores *s, const struct stores_range *at);
/* What was mapped there is at `to` from now on, and as long as that. */
void stores_move(struct stores *s, const struct stores_range *from, const struct stores_range *to,
		 bool keeps);
/* It can be written to from now on. */
void stores_allow(struct stores *s, const struct stores_range *at);
/* A process was forked. */
void stores_fork(struct stores *s, uint64_t from, uint64_t to, pid_t pid);
/* An address space is gone. */
void stores_drop(struct stores *s, uint64_t space);

/* Looks at what is mapped in the range; 0, or what the sink has ended the look by. */
int stores_look_at(struct stores *s, const struct stores_range *at, const struct stores_sink *sink);
/* At a file, wherever it is mapped; at all files. */
int stores_look_file(struct stores *s, uint64_t dev, uint64_t ino, const struct stores_sink *sink);
int stores_look_all(struct stores *s, const struct stores_sink *sink);
/* At an address space that is about to end, at the last moment at which there are marks; it did not end. */
int stores_look_last(struct stores *s, uint64_t space, const struct stores_sink *sink);
void stores_goes_on(struct stores *s, uint64_t space);
/* It was looked at, and nothing can be stored there any more. */
void stores_note_end(struct stores *s, uint64_t space);
/* At one that has ended. */
int stores_look_ended(struct stores *s, uint64_t space, const struct stores_sink *sink);

/*
 * Marks: an address space with large maps awaits a userfaultfd that its process has made with
 * PAGE_MARKS_FLAGS, or a negative number. Takes the descriptor; true: there are marks. What is stored
 * before that is not seen, so no thread of the process may run meanwhile that could.
 */
bool stores_awaits_marks(const struct stores *s, uint64_t space);
bool stores_give_marks(struct stores *s, uint64_t space, pid_t pid, int uffd);
bool stores_has_marks(const struct stores *s, uint64_t space);
/* The program is going to use a userfaultfd itself, which ours would be in the way of. */
int stores_refuse_marks(struct stores *s, uint64_t space, const struct stores_sink *sink);

/*
 * To look at a large file before each call would take longer than the program: then it is looked at
 * less often, and always when a map of it ends. How often it was not, of files whose maps have ended since
 * the last time that was asked.
 */
uint64_t stores_take_late(struct stores *s);
/* A file that could not be read, so that stores are missing: true once for each, and how long its map is. */
bool stores_take_lost(struct stores *s, uint64_t *ret_bytes);
/* True once for a file with so large a map that pages which the kernel reclaims between looks are missed. */
bool stores_take_doubt(struct stores *s);

#endif
