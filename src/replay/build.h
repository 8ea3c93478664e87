/* SPDX-License-Identifier: MIT */
/*
 * Making an action ready: its arguments, translated by their kinds, become
 * registers and the memory that they point to. Owned by the loader's thread.
 *
 * Nothing of a plan is trusted. The kernel is never given a length that leads
 * beyond what was laid out for it: every buffer has its room, and the register
 * or field that states its length is cut to that.
 *
 *   part       edges | patches | strings, structs, data to be written
 *   scratch    structs and numbers that the call gives back (the lane's)
 *   out        data that the call gives back (the lane's), or the sink
 */
#ifndef REPLAY_BUILD_H
#define REPLAY_BUILD_H

#include "replay/inside.h"

struct iovec;

#define BUILD_CLAMPS_MAX 8
#define IOVECS_MAX 1024 /* the kernel takes no more */

struct builder {
	struct run *run;
	struct lane *l;
	const struct action *act;
	struct ready *a;
	uint8_t *pos, *end;
	struct patch *patches;
	uint32_t max_patches;
	uint64_t scratch_used, out_used;
	struct {
		uint8_t reg;
		uint64_t max;
	} clamps[BUILD_CLAMPS_MAX];
	uint32_t nr_clamps;
	uint32_t from_fds; /* pathnames of a call without dirfds that begin in run->fds_fd: bits */
	bool unbuilt;
	struct err *err;
	int r; /* a failure of ours: data that cannot be read */
};

/* Zeroed memory of the part, aligned; NULL and b->unbuilt when there is none left. */
void *build_alloc(struct builder *b, uint64_t bytes, uint64_t align);
/* Memory for results, zero or not; NULL and b->unbuilt when it is too much. */
void *build_scratch(struct builder *b, uint64_t bytes);
/* Room for data that is read; sets a->out. `sink` tells that it cannot be looked at. */
void *build_out(struct builder *b, uint64_t bytes, uint64_t *ret_room);
/* Bytes that go in, `bytes` of them: what was kept, then filler. */
void *build_data(struct builder *b, const struct value *v, uint64_t bytes, uint64_t *ret_room);
#define PATH_BYTES_MAX 65536

/* A string with its NUL. */
char *build_string(struct builder *b, const struct value *v);
void build_patch(struct builder *b, void *where, enum patch_kind kind, uint32_t slot,
		 uint64_t offset);
/* A number, a descriptor or a reference at its place. */
void build_number(struct builder *b, const struct arg *arg, const struct value *v, void *where,
		  unsigned int width_bytes);
/* Fields of a struct into mem, which has room for it. */
void build_struct(struct builder *b, const struct arg *arg, const struct value *v, uint8_t *mem);
/* Vectors; `out`: for data that is read. nr is what the call will be told. */
void *build_iovecs(struct builder *b, const struct value *list, uint64_t nr, bool out);
/* Leaves so many bytes of the nr vectors. */
void build_cut_vector(struct iovec *iov, uint64_t *nr, uint64_t left);
/* All registers (build_args.c). */
void build_args(struct builder *b);
/* Reads of the action are not wanted (--reads). */
bool build_skips_reads(const struct run *run, const struct action *act);
/* The pathname of an argument; build_path.c. */
void *build_path(struct builder *b, unsigned int i);
/* Registers of a call without dirfds whose pathnames need one (b->from_fds). */
void build_at_form(struct builder *b);
/* A slot of the plan as one of the run; READY_NO_SLOT when it is none. */
uint32_t build_slot(const struct builder *b, int64_t slot);

/* Calls whose arguments are not in registers alone (build_more.c). */
void build_more(struct builder *b);
/* Likewise of asynchronous I/O (build_async.c). */
void build_async(struct builder *b);
/* What that takes beyond what its values do. */
uint64_t build_bound_async(const struct run *run, const struct action *act);

/* An argument of the action, a field of a struct, by name; of type VALUE_NONE when it has none. */
const struct value *build_arg_of(const struct builder *b, const char *name);
const struct value *build_field_of(const struct value *v, enum struct_id id, const char *name);

static inline uint64_t build_uint(const struct value *v)
{
	if (v->type == VALUE_LIST && v->count)
		return v->items[0].type == VALUE_INT ? v->items[0].u : 0;
	return v->type == VALUE_INT || v->type == VALUE_ADDR ? v->u : 0;
}

#endif
