/* SPDX-License-Identifier: MIT */
/* Inside of stores.h: stores.c knows which maps there are, stores_look.c looks at what is in them. */
#ifndef RECORD_STORES_INSIDE_H
#define RECORD_STORES_INSIDE_H

#include "base/mem.h"
#include "record/page_marks.h"
#include "record/stores.h"

#define PAGE UINT64_C(4096)
/* Smaller maps are never marked: to compare their pages costs less than to ask for marks. */
#define MARKED_MIN_BYTES (UINT64_C(1) << 20)

struct stored_file {
	uint64_t dev, ino;
	int fd;
	bool has_own_offset; /* of the descriptor: it may be moved */
	bool is_lost, is_told; /* it could not be read */
	bool is_doubted; /* marks may be missing */
	uint64_t lost_bytes;
	unsigned int nr_maps;
	uint64_t since_ns, spent_ns; /* by looking */
	uint64_t nr_late; /* how often that would have taken too long */
	/* Of pages: what they held when they were looked at; 0: nothing but zeros, as beyond the end. */
	VEC(uint64_t) hashes;
};

struct stored_map {
	uint64_t start, end;
	uint64_t offset; /* in the file */
	struct stored_file *file;
	bool is_writable; /* or was */
	bool is_marked; /* by the marks of its space, else pages are compared */
	bool awaits; /* it is followed as soon as it is known whether its space has marks */
};

struct stored_space {
	uint64_t number;
	pid_t pid;
	struct page_marks *marks; /* or NULL */
	bool awaits; /* that marks are given or refused */
	bool is_refused; /* there will be no marks */
	bool is_looked_last; /* at what is marked */
	bool is_over; /* nothing more can be stored */
	VEC(struct stored_map) maps;
};

struct stores {
	VEC(struct stored_file *) files;
	VEC(struct stored_space *) spaces;
	size_t nr_awaiting; /* of the spaces */
	uint64_t nr_late; /* of files that are gone */
	void *room;
	uint8_t *chunk; /* in it, as files that are open with O_DIRECT demand it */
};

/* NULL: none. */
struct stored_file *stores_find_file(const struct stores *s, uint64_t dev, uint64_t ino);
struct stored_space *stores_find_space(const struct stores *s, uint64_t number);
/* The file could not be followed; how much of it. */
void stores_lose(struct stored_file *f, uint64_t bytes);
/* Its marks are not set in advance. */
bool stores_is_sparse(const struct stored_map *m);
MUST_CHECK int stores_mark(struct stored_space *p, struct stored_map *m);

/* What is read on: a stretch of a file as a map shows it. */
struct look {
	struct stored_file *file;
	const struct stores_sink *sink; /* NULL: what is there now is what is known */
	bool is_marked; /* all that is there was stored */
	struct stored found; /* of what is found: where offset 0 of the file would be */
};

/* Looks at the file, from one offset to another. */
int stores_look_through(struct stores *s, struct look *l, uint64_t from, uint64_t to);

#endif
