/* SPDX-License-Identifier: MIT */
/* Calls whose arguments do not follow from their kinds alone. */
#include <string.h>
#include <sys/uio.h>

#include "base/banned.h"
#include "model/kernel_structs.h"
#include "replay/build.h"
#include "replay/calls.h"

#define EXTENTS_MAX 256
#define DEDUPE_MAX 120

static const struct value no_value = { .type = VALUE_NONE };

const struct value *build_arg_of(const struct builder *b, const char *name)
{
	const struct value *v =
		args_find(b->act->row, (struct value *)(uintptr_t)b->act->args, name);

	return v ? v : &no_value;
}

const struct value *build_field_of(const struct value *v, enum struct_id id, const char *name)
{
	const struct struct_desc *d = &struct_descs[id];
	unsigned int i;

	for (i = 0; i < d->nr_fields; i++) {
		if (!strcmp(d->fields[i].name, name)) {
			const struct value *f = value_field(v, i);

			return f ? f : &no_value;
		}
	}
	return &no_value;
}

static void build_fiemap(struct builder *b)
{
	const struct value *v = &b->act->args[2];
	uint64_t nr = build_uint(build_field_of(v, STRUCT_fiemap, "fm_extent_count"));
	struct k_fiemap *map;

	if (v->type != VALUE_STRUCT)
		return;
	if (nr > EXTENTS_MAX)
		nr = EXTENTS_MAX;
	map = build_alloc(b, sizeof(*map) + nr * sizeof(struct k_fiemap_extent), 8);
	if (!map)
		return;
	build_struct(b, &b->act->row->args[2], v, (uint8_t *)map);
	map->fm_extent_count = (uint32_t)nr;
	b->a->regs[2] = (uint64_t)(uintptr_t)map;
}

static void build_dedupe(struct builder *b)
{
	const struct value *v = &b->act->args[2];
	const struct value *info = build_field_of(v, STRUCT_file_dedupe_range, "info");
	uint64_t i, nr = info->type == VALUE_LIST ? info->count : 0;
	static const struct arg item = { .kind = KIND_STRUCT,
					 .struct_id = STRUCT_file_dedupe_range_info };
	struct k_file_dedupe_range *range;

	if (v->type != VALUE_STRUCT)
		return;
	if (nr > DEDUPE_MAX)
		nr = DEDUPE_MAX;
	range = build_alloc(b, sizeof(*range) + nr * sizeof(range->info[0]), 8);
	if (!range)
		return;
	build_struct(b, &b->act->row->args[2], v, (uint8_t *)range);
	range->dest_count = (uint16_t)nr;
	for (i = 0; i < nr; i++)
		build_struct(b, &item, &info->items[i],
			     (uint8_t *)range + sizeof(*range) + i * sizeof(range->info[0]));
	b->a->regs[2] = (uint64_t)(uintptr_t)range;
}

static void build_fstore(struct builder *b)
{
	const struct value *v = &b->act->args[1];

	b->a->regs[2] = build_uint(build_field_of(v, STRUCT_mac_fstore, "fst_offset"));
	b->a->regs[3] = build_uint(build_field_of(v, STRUCT_mac_fstore, "fst_length"));
}

static void build_mac_times(struct builder *b)
{
	const struct value *list = &b->act->args[1];
	struct timespec *ts = build_alloc(b, 2 * sizeof(*ts), 8);
	uint32_t i;

	for (i = 0; ts && list->type == VALUE_LIST && i < 2 && i < list->count; i++) {
		ts[i].tv_sec = (time_t)build_uint(
			build_field_of(&list->items[i], STRUCT_timeval, "tv_sec"));
		ts[i].tv_nsec = (long)(build_uint(build_field_of(&list->items[i], STRUCT_timeval,
								 "tv_usec")) %
				       1000000 * 1000);
	}
	b->a->regs[1] = list->type == VALUE_LIST ? (uint64_t)(uintptr_t)ts : 0;
}

static void build_mac_listing(struct builder *b)
{
	uint64_t room;
	uint64_t want = b->act->row->id == SC_getdirentries64 ? build_uint(&b->act->args[1]) : 0;

	if (!want)
		want = 32768; /* not told */
	if (want > b->l->memory.out_bytes)
		want = b->l->memory.out_bytes;
	b->a->regs[1] = (uint64_t)(uintptr_t)build_out(b, want, &room);
	b->a->regs[2] = want < room ? want : room;
}

/* The slots stand where the call puts the numbers. */
static void build_pipe(struct builder *b)
{
	const struct value *list = &b->act->args[0];
	uint32_t i;

	for (i = 0; list->type == VALUE_LIST && i < 2 && i < list->count; i++)
		if (list->items[i].type == VALUE_INT)
			b->a->slots[i] = build_slot(b, list->items[i].i);
}

void build_cut_vector(struct iovec *iov, uint64_t *nr, uint64_t left)
{
	uint64_t i;

	if (*nr > IOVECS_MAX) /* refused, and not all there */
		return;
	for (i = 0; i < *nr && left; i++) {
		if (iov[i].iov_len > left)
			iov[i].iov_len = left;
		left -= iov[i].iov_len;
	}
	*nr = i;
}

/*
 * A limit, a full device or a signal may have cut a write short, which this target
 * would not: only what was written there is written here.
 */
static void cut_write(struct builder *b)
{
	const struct action *act = b->act;
	uint64_t done = (uint64_t)act->outcome.ret;
	uint64_t *regs = b->a->regs;
	unsigned int i;

	if ((act->row->result != RESULT_BYTES_WRITTEN && act->row->result != RESULT_BYTES_COPIED) ||
	    row_class(act->row) != C_DATA || (act->flags & ACTION_STREAM) || act->outcome.err ||
	    act->outcome.ret <= 0)
		return;
	for (i = 0; i < act->row->nr_args && i < 6; i++) {
		if (act->row->args[i].kind == KIND_SIZE && regs[i] > done)
			regs[i] = done;
		else if (act->row->args[i].struct_id == STRUCT_iovec && regs[i])
			build_cut_vector((struct iovec *)(uintptr_t)regs[i], &regs[i + 1], done);
	}
}

void build_more(struct builder *b)
{
	cut_write(b);
	switch (b->act->row->id) {
	case SC_pipe:
	case SC_pipe2:
		build_pipe(b);
		break;
	case SC_ioctl_fs_ioc_fiemap:
		build_fiemap(b);
		break;
	case SC_ioctl_fideduperange:
		build_dedupe(b);
		break;
	case SC_fcntl_getlk:
	case SC_fcntl_ofd_getlk:
		b->a->out = (void *)(uintptr_t)b->a->regs[2];
		b->a->out_bytes = sizeof(struct k_flock);
		break;
	case SC_mac_fcntl_preallocate:
		build_fstore(b);
		break;
	case SC_mac_futimes:
		build_mac_times(b);
		break;
	case SC_getdirentries64:
	case SC_getdirentriesattr:
	case SC_getattrlistbulk:
		build_mac_listing(b);
		break;
	default:
		build_async(b);
		break;
	}
}
