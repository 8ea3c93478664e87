/* SPDX-License-Identifier: MIT */
/*
 * From registers and memory to the values of an event, as the row says. Driven
 * by kinds alone: no call is known here by name. Used by every recorder.
 *
 * capture_entry() reads what the call will read, capture_exit() what it has
 * written. Values live in the arena, which must last from entry to exit. Data
 * longer than DATA_INLINE_MAX goes to the feed's blob store at once, so that
 * the arena stays small whatever the program writes.
 */
#ifndef RECORD_CAPTURE_H
#define RECORD_CAPTURE_H

#include "base/arena.h"
#include "model/event.h"
#include "record/memory.h"
#include "trace/writer.h"

/*
 * What is kept of buffers. Paths, names (what readlink and getcwd return among
 * them) and structs always are.
 */
enum data_policy {
	DATA_ALL,
	DATA_WRITES, /* of what was read only the hash */
	DATA_HASH,
	DATA_NONE, /* lengths only */
};

struct capture_scratch;

struct capture {
	struct memory *memory;
	struct trace_feed *feed;
	struct arena *arena;
	enum data_policy policy;
	bool narrow; /* a call of a 32-bit program: structs are laid out in another way */
	uint32_t narrow_nr; /* its number there: it says in which */
	/*
	 * Added to: what was not kept because it could not be read, or is beyond a
	 * limit. capture_exit() expects here what there was after the entry of the
	 * same call, and takes off what the call did not use.
	 */
	uint64_t truncated_bytes;
	/* Added to likewise: what was not read because its layout is not known (narrow). */
	uint64_t nr_unread_structs;
	struct capture_scratch *scratch; /* ours, made when first needed */
	/* The trace itself, and whether the program has opened it. */
	uint64_t own_dev, own_ino;
	bool is_own_open;
};

/* Frees what capture has added to the struct itself. */
void capture_release(struct capture *c);

/* args gets all that is known before the call; what comes later is VALUE_NONE. -errno: the feed failed. */
MUST_CHECK int capture_entry(struct capture *c, const struct row *row, const uint64_t regs[6],
			     struct value *args);
/*
 * After a call that turned out to write what argument i points to, where its row
 * says that it reads.
 */
MUST_CHECK int capture_turned(struct capture *c, const struct row *row, const uint64_t regs[6],
			      const struct outcome *outcome, struct value *args, unsigned int i);
/* The registers are those of the entry. An OUT argument of a call that failed becomes its address. */
MUST_CHECK int capture_exit(struct capture *c, const struct row *row, const uint64_t regs[6],
			    const struct outcome *outcome, struct value *args);

/* A call that is over, and the memory that it has read and written: it lends. */
struct capture_seen {
	const uint64_t *regs; /* of the entry */
	const struct outcome *outcome;
	struct memory *before, *after;
	/* Ours: what args lead to. */
	struct data data;
	struct blob_ref ref;
};

/*
 * Both in one go, for a call of numbers and at most one piece of data: 1, or 0 when it is no such call
 * or its data is not at hand. Then nothing has happened, but that args may be anything.
 */
MUST_CHECK int capture_plain(struct capture *c, const struct row *row, struct capture_seen *seen,
			     struct value *args);

#endif
