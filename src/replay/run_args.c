/* SPDX-License-Identifier: MIT */
#include "replay/run_args.h"

#include <string.h>
#include <sys/stat.h>

#include "base/banned.h"
#include "base/mem.h"

/* What plan/result.c compares of these. */
static const struct {
	uint16_t struct_id;
	const char *fields[6];
} stable_structs[] = {
	{ STRUCT_stat, { "st_mode", "st_size", "st_rdev" } },
	{ STRUCT_statx,
	  { "stx_mask", "stx_mode", "stx_size", "stx_rdev_major", "stx_rdev_minor" } },
	{ STRUCT_dirent64, { "d_type", "d_name" } },
	{ STRUCT_dirent_old, { "d_type", "d_name" } },
};

static uint64_t field_bit(uint16_t struct_id, const char *name)
{
	const struct struct_desc *desc = &struct_descs[struct_id];
	unsigned int i;

	for (i = 0; i < desc->nr_fields; i++) {
		if (!strcmp(desc->fields[i].name, name))
			return UINT64_C(1) << i;
	}
	return 0;
}

void run_args_init(struct run_args *ra, struct arena *arena)
{
	size_t i, n;

	*ra = (struct run_args){ .arena = arena };
	picker_init(&ra->picker, arena);
	for (i = 0; i < ARRAY_LEN(stable_structs); i++)
		for (n = 0; n < ARRAY_LEN(stable_structs[i].fields); n++)
			if (stable_structs[i].fields[n])
				ra->stable[stable_structs[i].struct_id] |= field_bit(
					stable_structs[i].struct_id, stable_structs[i].fields[n]);
}

/* The size of a directory is its file system's own. */
static uint64_t stable_fields(const struct run_args *ra, uint16_t struct_id, const struct value *v)
{
	static const char *const modes[] = { "st_mode", "stx_mode" };
	static const char *const sizes[] = { "st_size", "stx_size" };
	uint64_t set = ra->stable[struct_id];
	unsigned int which = struct_id == STRUCT_statx;
	const struct value *mode;

	if (struct_id != STRUCT_stat && struct_id != STRUCT_statx)
		return set ? set : UINT64_MAX;
	mode = value_field(v, (unsigned int)__builtin_ctzll(field_bit(struct_id, modes[which])));
	if (!mode || (!S_ISREG(mode->u) && !S_ISLNK(mode->u)))
		set &= ~field_bit(struct_id, sizes[which]);
	return set;
}

static struct value keep_fields(const struct run_args *ra, const struct value *v, uint64_t wanted)
{
	const struct value *item = v->fields->items;
	struct value copy, *to;
	uint64_t left;

	if ((v->fields->present & ~wanted) == 0)
		return *v;
	copy = value_struct(ra->arena, v->fields->present & wanted);
	to = copy.fields->items;
	for (left = v->fields->present; left; left &= left - 1, item++) {
		if (wanted & left & -left)
			*to++ = *item;
	}
	return copy;
}

static struct value keep_stable(const struct run_args *ra, const struct arg *arg,
				const struct value *v)
{
	struct value copy;
	uint32_t i;

	if (v->type == VALUE_STRUCT)
		return keep_fields(ra, v, stable_fields(ra, arg->struct_id, v));
	if (v->type != VALUE_LIST || !ra->stable[arg->struct_id])
		return *v;
	copy = value_list(ra->arena, v->count);
	for (i = 0; i < v->count; i++)
		copy.items[i] = keep_stable(ra, arg, &v->items[i]);
	return copy;
}

/* Whether the call itself wrote it, or the recorder found it out. */
static bool came_back(const struct arg *arg)
{
	if (arg->reg == REG_NONE)
		return arg->kind != KIND_FD && arg->kind != KIND_SQES;
	return arg->dir == ARG_OUT;
}

static void reduce_args(const struct run_args *ra, struct event *ev)
{
	struct value picked[ROW_ARGS_MAX];
	unsigned int i;

	picker_args(&ra->picker, ev->row, ev->args, picked);
	for (i = 0; i < ev->row->nr_args; i++) {
		const struct arg *arg = &ev->row->args[i];

		if (!came_back(arg) || ev->args[i].type == VALUE_NONE)
			continue;
		if ((ev->flags & EVENT_VERIFIED) && arg->reg != REG_NONE)
			ev->args[i] = keep_stable(ra, arg, &ev->args[i]);
		else
			ev->args[i] = picked[i];
	}
}

void run_args_keep_compared(const struct run_args *ra, struct event *ev)
{
	unsigned int i;

	for (i = 0; i < ev->row->nr_args; i++) {
		const struct arg *arg = &ev->row->args[i];

		if (came_back(arg) && arg->reg != REG_NONE)
			ev->args[i] = keep_stable(ra, arg, &ev->args[i]);
	}
}

/* Data that is referred to: the bytes stay where they are, unless they are a name. */

static void forget_places(const struct run_args *ra, struct value *v)
{
	uint64_t i, nr = data_nr_pieces(v->data);
	struct data *d;
	struct blob_ref *refs;

	if (!v->data->refs || v->data->bytes)
		return;
	d = arena_alloc(ra->arena, sizeof(*d));
	refs = arena_alloc(ra->arena, nr * sizeof(*refs));
	for (i = 0; i < nr; i++)
		refs[i] = (struct blob_ref){ .hash = v->data->refs[i].hash };
	*d = *v->data;
	d->refs = refs;
	v->data = d;
}

static void forget_data(const struct run_args *ra, unsigned int kind, uint16_t struct_id,
			struct value *v)
{
	const struct struct_desc *desc = &struct_descs[struct_id];
	struct value *item;
	uint64_t left;
	uint32_t i;

	if (v->type == VALUE_DATA && kind != KIND_PATH && kind != KIND_STR) {
		forget_places(ra, v);
	} else if (v->type == VALUE_LIST && kind != KIND_STRV) {
		for (i = 0; i < v->count; i++)
			forget_data(ra, KIND_BUF, struct_id, &v->items[i]);
	} else if (v->type == VALUE_STRUCT) {
		item = v->fields->items;
		for (left = v->fields->present; left; left &= left - 1, item++) {
			const struct arg *field = &desc->fields[__builtin_ctzll(left)];

			forget_data(ra, field->kind, field->struct_id, item);
		}
	}
}

void run_args_reduce(const struct run_args *ra, struct event *ev)
{
	unsigned int i;

	if (!(ev->flags & EVENT_SIMULATED))
		reduce_args(ra, ev);
	for (i = 0; i < ev->row->nr_args; i++)
		forget_data(ra, ev->row->args[i].kind, ev->row->args[i].struct_id, &ev->args[i]);
}
