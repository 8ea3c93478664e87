/* SPDX-License-Identifier: MIT */
/*
 * The inside of capture, for its own files and for those that capture what no
 * row describes (found.c, aio.c).
 *
 *   job: one call, before or after it
 *   target: a piece of memory to be read, and the value that it becomes
 *
 * Targets wait in a queue. capture_run() takes as many from its head as fit the
 * scratch memory, reads them all by one call, and makes values of them; that
 * may add targets (what a struct points to), which so are read together too:
 * one read for each level of pointers.
 */
#ifndef RECORD_CAPTURE_INSIDE_H
#define RECORD_CAPTURE_INSIDE_H

#include "base/mem.h"
#include "record/capture.h"

/* Limits of what a program may make us read. */
#define CAPTURE_PATH_MAX 4096 /* as the kernel has it, with the NUL */
#define CAPTURE_STR_MAX ((size_t)64 << 10)
#define CAPTURE_ARG_MAX ((size_t)128 << 10) /* one string of an execve, as the kernel has it */
/* All of an execve with their pointers, as the kernel has it; so no more than these, with a letter each. */
#define CAPTURE_STRV_MAX_BYTES ((size_t)6 << 20)
#define CAPTURE_STRV_MAX (CAPTURE_STRV_MAX_BYTES / (sizeof(uint64_t) + 2))
#define CAPTURE_LIST_MAX ((uint64_t)64 << 10)
#define CAPTURE_DIRENTS_MAX_BYTES ((uint64_t)8 << 20)
#define CAPTURE_CONTROL_MAX_BYTES ((uint64_t)64 << 10)
#define CAPTURE_FDSET_MAX_BITS ((uint64_t)1 << 20)
#define CAPTURE_SOCKADDR_MAX 128
#define CAPTURE_TARGETS_MAX ((uint64_t)1 << 20) /* of one job */
#define CAPTURE_ITEMS_MAX ((uint64_t)256 << 10) /* of all its lists */
#define CAPTURE_DATA_MAX_BYTES UINT64_C(0x7ffff000) /* no call moves more */

enum capture_flag {
	CAPTURE_AFTER = 1, /* what the call has written */
	CAPTURE_NOT_OUT = 2, /* of a struct: leave out what is known only after the call */
	CAPTURE_MERGE = 4, /* of a struct: add that to what dest has */
	CAPTURE_NO_DATA = 8, /* what vectors point to stays an address */
	CAPTURE_KEEP = 16, /* whatever the policy: part of a struct, or a name */
};

/* What is kept of data. */
enum capture_keep {
	CAPTURE_KEEP_NOTHING,
	CAPTURE_KEEP_HASH,
	CAPTURE_KEEP_BYTES,
};

struct capture_target {
	const struct arg *a;
	struct value *dest; /* stays where it is until capture_run() returns */
	uint64_t addr;
	uint64_t
		len; /* bytes of data, of a sized struct; items of a list; most of a string (0: the limit) */
	uint64_t moved_bytes; /* what the call has moved, for the vectors below */
	uint8_t flags; /* enum capture_flag */
	uint8_t arg_no; /* the argument that it belongs to */

	/* The queue's own. */
	uint64_t done; /* bytes or items of earlier turns */
	const uint8_t *local;
	size_t want, got;
};

/* Arguments that point to what is read in one pass; a second round is for what the first says more of. */
struct capture_pass {
	uint8_t nr_first, nr; /* of the first round, of both */
	uint8_t args[ROW_ARGS_MAX];
};

/* A number in a register. */
struct capture_scalar {
	uint8_t arg, reg;
	uint8_t shift; /* so many of the upper bits do not count */
	bool is_signed;
};

/* What is to be done for the arguments of a row, so that it is looked for only once. */
struct capture_shape {
	const struct row *row; /* NULL: not known yet */
	uint8_t nr_scalars;
	struct capture_scalar scalars[ROW_ARGS_MAX];
	struct capture_pass in, out;
	bool is_plain; /* capture_plain.c */
};

struct capture_scratch {
	struct capture_shape *shapes; /* of ROW_ID_MAX rows */
	uint8_t *area; /* BLOB_MAX_BYTES: what one turn reads */
	uint8_t *text; /* CAPTURE_ARG_MAX: a long string */
	VEC(struct capture_target) queue;
	size_t head;
	VEC(uint64_t) pointers; /* to strings of an execve */
};

struct capture_job {
	struct capture *c;
	struct capture_scratch *s;
	const struct row *row; /* NULL: lengths come with the targets alone */
	const uint64_t *regs;
	const struct value *args;
	const struct outcome *outcome; /* NULL before the call */
	uint64_t data_left_bytes, text_left_bytes, targets_left, items_left;
	int r; /* the feed's first failure */
};

void capture_begin(struct capture_job *j, struct capture *c);
struct capture_scratch *capture_scratch_of(struct capture *c);
const struct capture_shape *capture_shape_of(struct capture_scratch *s, const struct row *row);
/* Said of one that is known but for this. */
bool capture_shape_is_plain(const struct capture_shape *s);
/* dest gets a value at once: its address or, when there is nothing to read, the final one. */
void capture_push(struct capture_job *j, const struct capture_target *t);
MUST_CHECK int capture_run(struct capture_job *j);

/* How many bytes of one span could be read. */
size_t capture_read(struct capture *c, uint64_t addr, void *p, size_t len);
/* The spans one behind the other as one piece of data, of which len bytes count. */
MUST_CHECK int capture_gather(struct capture_job *j, const struct iovec *spans, size_t nr,
			      const struct capture_target *t);

/* As the policy says, of an argument with these flags (enum capture_flag). */
enum capture_keep capture_keep(const struct capture *c, const struct row *row, uint8_t flags);
/* One piece of data, of which not nothing is kept. It may change meanwhile. */
MUST_CHECK int capture_piece(struct capture *c, enum capture_keep keep, const uint8_t *bytes,
			     size_t len, struct blob_ref *ret);

static inline struct value capture_scalar(const struct capture_scalar *s, const uint64_t from[6])
{
	uint64_t v = from[s->reg] << s->shift;

	return s->is_signed ? value_int((int64_t)v >> s->shift) : value_uint(v >> s->shift);
}

/* A number of memory, of the given width, or 0. */
uint64_t capture_number(const uint8_t *p, unsigned int width_bytes, bool is_signed);
bool capture_is_scalar(const struct arg *a);
bool capture_is_signed(const struct arg *a);
/* The register that an argument is in; -1: none. */
int capture_register(const struct row *row, unsigned int i);
/* What an argument says as a length: its number, or the number that it points to; never below 0. */
uint64_t capture_arg_number(const struct capture_job *j, unsigned int i);
/* As arg.len and arg.cap of an argument say. */
uint64_t capture_len(const struct capture_job *j, unsigned int code);

/* The bytes that an element of a list of numbers has. */
unsigned int capture_elem_width(const struct arg *a);

/* Where the fields of a struct are in the memory of this program; size 0: not known. */
struct capture_layout {
	uint16_t size_bytes;
	const struct field_place *places;
};
struct capture_layout capture_layout(const struct capture *c, unsigned int struct_id);
/* Whether what an argument points to can be read at all. */
bool capture_can_read(const struct capture *c, const struct arg *a);

/* Takes what was read of a target of these kinds (capture_struct.c). */
void capture_finish_struct(struct capture_job *j, struct capture_target *t);
void capture_finish_array(struct capture_job *j, struct capture_target *t);
void capture_finish_ptrs(struct capture_job *j, struct capture_target *t);
void capture_finish_dirents(struct capture_job *j, struct capture_target *t);
void capture_finish_cmsgs(struct capture_job *j, struct capture_target *t);
void capture_finish_sockaddr(struct capture_job *j, struct capture_target *t);
/* Puts a target back, because only a part of it was read in this turn. */
void capture_again(struct capture_job *j, const struct capture_target *t);

/*
 * A struct from bytes that are here, len of them; t says where they were and
 * how they are to be read. `extra` are fields that the caller will fill in.
 */
struct value capture_struct_from(struct capture_job *j, const struct capture_target *t,
				 const uint8_t *bytes, size_t len, uint64_t extra);

#endif
