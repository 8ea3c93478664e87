/* SPDX-License-Identifier: MIT */
/*
 * What a pipe holds: the bytes that were written to it and not yet read, by
 * reference to the trace. When several threads read or write a pipe at the same
 * time no clock tells who was first, but the bytes do: a read took place when
 * what it returned was next in the pipe.
 */
#ifndef FSMODEL_HELD_H
#define FSMODEL_HELD_H

#include "base/buf.h"
#include "base/mem.h"
#include "model/event.h"

struct held_piece {
	uint64_t from, to; /* in the stream */
	bool mixed; /* others could write at the same time */
	bool is_short; /* its bytes are here */
	uint64_t blob_bytes; /* else the length of `ref`, of which they are the first; 0: unknown */
	union {
		struct blob_ref ref;
		uint8_t bytes[DATA_INLINE_MAX];
	};
};

struct held_bytes {
	VEC(struct held_piece) pieces;
	size_t first; /* those before it have been read */
	bool lost; /* there were too many */
};

/* Loads a piece of data: its bytes, valid until the next call; NULL when it cannot. */
struct held_loader {
	const uint8_t *(*load)(void *arg, const struct blob_ref *ref, uint64_t len);
	void *arg;
};

enum held_answer { HELD_SAME, HELD_OTHER, HELD_UNKNOWN };

/* The event wrote its first `len` bytes at this place. */
void held_put(struct held_bytes *h, const struct event *ev, uint64_t at, uint64_t len, bool mixed);
/* Whether others could write meanwhile to any of these bytes. */
bool held_is_mixed(const struct held_bytes *h, uint64_t from, uint64_t to);
/* Whether the `len` bytes that the event read are those at this place. */
enum held_answer held_compare(const struct held_bytes *h, const struct held_loader *l,
			      struct buf *room, const struct event *ev, uint64_t at, uint64_t len);
/* What is before this place has been read. */
void held_drop(struct held_bytes *h, uint64_t until);
void held_release(struct held_bytes *h);

#endif
