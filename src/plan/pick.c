/* SPDX-License-Identifier: MIT */
#include "plan/pick.h"

#include <string.h>

#include "base/banned.h"
#include "base/mem.h"
#include "plan/refs.h"

/* Structs that a call fills and of which something goes into a plan all the same. */
static const struct {
	uint16_t struct_id;
	const char *fields[6]; /* NULL: all */
} kept_structs[] = {
	{ STRUCT_iovec, { "iov_len" } },
	{ STRUCT_msghdr,
	  { "msg_namelen", "msg_iov", "msg_iovlen", "msg_control", "msg_controllen" } },
	{ STRUCT_mmsghdr, { "msg_hdr" } },
	{ STRUCT_cmsghdr, { "cmsg_len", "cmsg_level", "cmsg_type", "fds" } },
	{ STRUCT_io_event, { NULL } },
	{ STRUCT_io_uring_cqe, { NULL } },
};

static uint64_t field_set(uint16_t struct_id, const char *const *names, size_t nr_names)
{
	const struct struct_desc *desc = &struct_descs[struct_id];
	uint64_t set = 0;
	unsigned int i, n;

	if (!names[0])
		return UINT64_MAX;
	for (i = 0; i < desc->nr_fields; i++) {
		for (n = 0; n < nr_names && names[n]; n++) {
			if (!strcmp(desc->fields[i].name, names[n]))
				set |= UINT64_C(1) << i;
		}
	}
	return set;
}

void picker_init(struct picker *p, struct arena *arena)
{
	size_t i;

	*p = (struct picker){ .arena = arena };
	for (i = 0; i < ARRAY_LEN(kept_structs); i++)
		p->out_fields[kept_structs[i].struct_id] =
			field_set(kept_structs[i].struct_id, kept_structs[i].fields,
				  ARRAY_LEN(kept_structs[i].fields));
}

/* How a value is treated; a struct hands it on to its fields. */
enum mode {
	MODE_IN,
	MODE_OUT, /* what the call writes */
	MODE_WHOLE, /* a completion: all of it, but data by hash */
};

static struct value pick_value(const struct picker *p, const struct arg *arg, const struct value *v,
			       enum mode mode);

static struct value nothing(void)
{
	return (struct value){ .type = VALUE_NONE };
}

/* Data as its hashes. */
static struct value pick_hashes(const struct picker *p, const struct value *v)
{
	struct data *d = arena_alloc(p->arena, sizeof(*d));
	uint64_t i, nr = data_nr_pieces(v->data);
	struct blob_ref *refs;

	*d = *v->data;
	if (!nr)
		return (struct value){ .type = VALUE_DATA, .data = d };
	refs = arena_alloc(p->arena, nr * sizeof(*refs));
	for (i = 0; i < nr; i++) {
		uint64_t from = i * BLOB_MAX_BYTES, len = d->kept_bytes - from;

		refs[i] = (struct blob_ref){ 0 };
		refs[i].hash = d->refs ? d->refs[i].hash
				       : hash_bytes(d->bytes + from,
						    len < BLOB_MAX_BYTES ? len : BLOB_MAX_BYTES);
	}
	d->bytes = NULL;
	d->refs = refs;
	return (struct value){ .type = VALUE_DATA, .data = d };
}

static uint64_t wanted_fields(const struct picker *p, uint16_t struct_id, enum mode mode)
{
	const struct struct_desc *desc = &struct_descs[struct_id];
	uint64_t set = UINT64_MAX;
	unsigned int i;

	if (mode == MODE_OUT)
		return p->out_fields[struct_id];
	for (i = 0; mode == MODE_IN && i < desc->nr_fields; i++) {
		if (desc->fields[i].dir == ARG_OUT)
			set &= ~(UINT64_C(1) << i);
	}
	return set;
}

static struct value pick_struct(const struct picker *p, uint16_t struct_id, const struct value *v,
				enum mode mode)
{
	uint64_t left, wanted = wanted_fields(p, struct_id, mode);
	const struct value *item = v->fields->items;
	struct value copy, *to;

	if (mode == MODE_OUT && wanted == UINT64_MAX)
		mode = MODE_WHOLE;
	copy = value_struct(p->arena, v->fields->present & wanted);
	to = copy.fields->items;
	for (left = v->fields->present; left; left &= left - 1, item++) {
		unsigned int n = (unsigned int)__builtin_ctzll(left);

		if (wanted >> n & 1)
			*to++ = pick_value(p, &struct_descs[struct_id].fields[n], item, mode);
	}
	return copy;
}

static struct value pick_list(const struct picker *p, const struct arg *arg, const struct value *v,
			      enum mode mode)
{
	struct value copy = value_list(p->arena, v->count);
	uint32_t i;

	for (i = 0; i < v->count; i++) {
		const struct value *item = &v->items[i];

		if (item->type == VALUE_STRUCT)
			copy.items[i] = pick_struct(p, arg->struct_id, item, mode);
		else if (item->type == VALUE_DATA && mode == MODE_WHOLE)
			copy.items[i] = pick_hashes(p, item);
		else if (item->type == VALUE_ADDR)
			copy.items[i] = value_addr(1);
		else
			copy.items[i] = *item;
	}
	return copy;
}

static struct value pick_value(const struct picker *p, const struct arg *arg, const struct value *v,
			       enum mode mode)
{
	switch (v->type) {
	case VALUE_ADDR:
		/* Where it was says nothing, that it was not null does. */
		return value_addr(1);
	case VALUE_DATA:
		return mode == MODE_WHOLE ? pick_hashes(p, v) : *v;
	case VALUE_STRUCT:
		return pick_struct(p, arg->struct_id, v, mode);
	case VALUE_LIST:
		return pick_list(p, arg, v, mode);
	}
	return *v;
}

/* Whether the argument is memory in which the call leaves something that has a slot. */
static bool makes_slots(const struct row *row, const struct arg *arg)
{
	if (arg->kind != KIND_PTR && arg->kind != KIND_VEC)
		return false;
	return arg->elem == KIND_FD || (arg->elem == KIND_ADDR && row_class(row) == C_AIO);
}

static struct value pick_arg(const struct picker *p, const struct row *row, const struct arg *arg,
			     const struct value *v)
{
	bool out = arg->dir == ARG_OUT || arg->kind == KIND_CQES;

	if (arg->reg == REG_NONE && arg->kind != KIND_FD && arg->kind != KIND_SQES &&
	    arg->kind != KIND_CQES)
		return nothing();
	if (arg->kind == KIND_ADDR && !plan_addr_is_ref(row))
		return nothing();
	if (!out)
		return pick_value(p, arg, v, MODE_IN);
	if (v->type == VALUE_NULL)
		return *v;
	if (v->type != VALUE_STRUCT && v->type != VALUE_LIST)
		return nothing();
	if (makes_slots(row, arg))
		return *v;
	return p->out_fields[arg->struct_id] ? pick_value(p, arg, v, MODE_OUT) : nothing();
}

void picker_args(const struct picker *p, const struct row *row, const struct value *args,
		 struct value *ret)
{
	unsigned int i;

	for (i = 0; i < row->nr_args; i++)
		ret[i] = args[i].type == VALUE_NONE ? nothing()
						    : pick_arg(p, row, &row->args[i], &args[i]);
}
