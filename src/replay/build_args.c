/* SPDX-License-Identifier: MIT */
/* Arguments, by their kinds, become registers and the memory that they point to. */
#include "replay/build.h"

#include <errno.h>
#include <limits.h>
#include <linux/fs.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>

#include "base/banned.h"
#include "base/privileged.h"
#include "model/fields.h"
#include "model/kernel_structs.h"
#include "plan/refs.h"
#include "replay/calls.h"

/* Beyond these nothing is built: the kernel takes no more, or nobody needs it. */
#define ITEMS_MAX 65536
#define STRUCT_SIZED_MAX 4096

static uint64_t align_for(uint64_t bytes)
{
	/* Files may be open with O_DIRECT. */
	return bytes >= 4096 ? 4096 : bytes >= 512 ? 512 : 8;
}

static uint64_t align_up(uint64_t n, uint64_t align)
{
	return (n + align - 1) & ~(align - 1);
}

/*
 * What a value takes at most. Numbers count a patch each, data its alignment.
 * Data beyond the plan's stated largest is not built, so it does not count.
 * struct_bytes: that the call may say of a struct beyond its own.
 */
static uint64_t bound_value(const struct run *run, const struct arg *arg, const struct value *v,
			    uint64_t struct_bytes)
{
	uint64_t sum = 64, len;
	uint32_t i, n = 0;

	switch ((enum value_type)v->type) {
	case VALUE_INT:
		return sum + sizeof(struct patch);
	case VALUE_DATA:
		len = v->data->len_bytes;
		if (len > run->max_data_bytes && len > PATH_BYTES_MAX)
			return sum;
		return sum + len + (len >= 512 ? 4096 : 16);
	case VALUE_STRUCT: {
		const struct struct_desc *d = &struct_descs[arg->struct_id];

		sum += struct_bytes + d->size_bytes;
		for (i = 0; i < d->nr_fields; i++)
			if (v->fields->present & (UINT64_C(1) << i))
				sum += bound_value(run, &d->fields[i], &v->fields->items[n++], 0);
		return sum;
	}
	case VALUE_LIST:
		sum += (uint64_t)v->count * 64 + 64;
		for (i = 0; i < v->count; i++)
			sum += bound_value(run, arg, &v->items[i], 0);
		return sum;
	default:
		return sum;
	}
}

uint64_t build_bound(const struct run *run, const struct action *act)
{
	uint64_t sum = 512 + (uint64_t)act->nr_edges * sizeof(struct run_edge);
	unsigned int i;

	for (i = 0; i < act->row->nr_args; i++) {
		const struct arg *arg = &act->row->args[i];

		sum += bound_value(run, arg, &act->args[i], STRUCT_SIZED_MAX);
		/* A length that is more than the data that was kept. */
		if (arg->kind == KIND_BUF && (arg->dir & ARG_IN) && arg->len >= A0 &&
		    arg->len <= A11) {
			uint64_t len = build_uint(&act->args[arg->len - A0]);

			if (len <= run->max_data_bytes)
				sum += len + 4096;
		}
		if (arg->kind == KIND_ARRAY && arg->struct_id == STRUCT_iovec)
			sum += IOVECS_MAX * sizeof(struct iovec);
	}
	return sum + build_bound_async(run, act);
}

void *build_alloc(struct builder *b, uint64_t bytes, uint64_t align)
{
	uint8_t *p = (uint8_t *)align_up((uintptr_t)b->pos, align);

	if (p > b->end || bytes > (uint64_t)(b->end - p)) {
		b->unbuilt = true;
		return NULL;
	}
	memset(p, 0, bytes);
	b->pos = p + bytes;
	return p;
}

void *build_scratch(struct builder *b, uint64_t bytes)
{
	uint8_t *p = b->l->memory.scratch + b->scratch_used;

	if (bytes > b->l->memory.scratch_bytes - b->scratch_used) {
		b->unbuilt = true;
		return NULL;
	}
	b->scratch_used += align_up(bytes, 64);
	if (b->scratch_used > b->l->memory.scratch_bytes)
		b->scratch_used = b->l->memory.scratch_bytes;
	if (!b->a->out) {
		b->a->out = p;
		b->a->out_bytes = bytes;
	}
	return p;
}

void *build_out(struct builder *b, uint64_t bytes, uint64_t *ret_room)
{
	const struct lane_memory *m = &b->l->memory;
	void *p;

	if (bytes <= m->out_bytes - b->out_used) {
		p = m->out + b->out_used;
		b->out_used += align_up(bytes, align_for(bytes));
		if (b->out_used > m->out_bytes)
			b->out_used = m->out_bytes;
		*ret_room = bytes;
	} else {
		p = run_sink(b->run);
		if (!p) {
			b->unbuilt = true;
			*ret_room = 0;
			return NULL;
		}
		b->a->flags |= READY_SINK;
		*ret_room = b->run->sink_bytes;
	}
	if (!b->a->out) {
		b->a->out = p;
		b->a->out_bytes = *ret_room;
	}
	return p;
}

void build_patch(struct builder *b, void *where, enum patch_kind kind, uint32_t slot,
		 uint64_t offset)
{
	if (b->a->nr_patches == b->max_patches) {
		b->unbuilt = true;
		return;
	}
	b->patches[b->a->nr_patches++] = (struct patch){ where, offset, slot, kind };
}

uint32_t build_slot(const struct builder *b, int64_t slot)
{
	const struct run_plan *p = b->l->plan;

	if (slot < 0 || slot >= p->nr_slots)
		return READY_NO_SLOT;
	return p->slot_base + (uint32_t)slot;
}

static void put_number(void *where, uint64_t u, unsigned int width_bytes)
{
	/* Little-endian, as all machines that we run on. */
	memcpy(where, &u, width_bytes < sizeof(u) ? width_bytes : sizeof(u));
}

/* Bits that give rights to who executes a file, or take them from who wants to remove it. */
static uint64_t privileged_bits(const struct arg *arg)
{
	if (arg->kind == KIND_MODE)
		return PRIVILEGED_MODE_BITS;
	if (arg->kind == KIND_FLAGS && arg->set == SET_inode_flags)
		return FS_IMMUTABLE_FL | FS_APPEND_FL;
	if (arg->kind == KIND_FLAGS && arg->set == SET_fsx_xflags)
		return FS_XFLAG_IMMUTABLE | FS_XFLAG_APPEND;
	return 0;
}

void build_number(struct builder *b, const struct arg *arg, const struct value *v, void *where,
		  unsigned int width_bytes)
{
	uint64_t offset, u = v->type == VALUE_INT ? v->u : 0;
	uint32_t slot;

	if (arg->kind == KIND_FD || arg->kind == KIND_DIRFD) {
		slot = v->type == VALUE_INT ? build_slot(b, v->i) : READY_NO_SLOT;
		if (v->type != VALUE_INT || (v->i >= 0 && slot == READY_NO_SLOT)) {
			u = (uint64_t)-1;
		} else if (v->i >= 0) {
			build_patch(b, where, width_bytes == 8 ? PATCH_FD64 : PATCH_FD32, slot, 0);
			return;
		}
	} else if (arg->kind == KIND_ADDR) {
		u = 0;
		if (plan_get_map_ref(v, &slot, &offset)) {
			slot = build_slot(b, slot);
			if (slot != READY_NO_SLOT)
				build_patch(b, where,
					    row_class(b->act->row) == C_AIO ? PATCH_CONTEXT
									    : PATCH_ADDR,
					    slot, offset);
		}
	} else if (!b->run->o->privileged_metadata) {
		u &= ~privileged_bits(arg);
	}
	put_number(where, u, width_bytes);
}

/* What was kept of the data, in pieces; the rest of mem is filler. */
static void copy_data(struct builder *b, const struct data *d, uint8_t *mem, uint64_t bytes)
{
	struct trace *source = plan_data_source(b->l->plan->plan);
	uint64_t done = 0, kept = d ? d->kept_bytes : 0, piece;

	if (kept > bytes)
		kept = bytes;
	if (kept && d->bytes) {
		memcpy(mem, d->bytes, kept);
		done = kept;
	}
	for (piece = 0; done < kept; piece++) {
		const uint8_t *p;
		size_t len;
		int r = trace_load_piece(source, d, piece, &p, &len, b->err);

		if (r < 0 && r != -ENODATA)
			b->r = r;
		if (r <= 0)
			break;
		if (len > kept - done)
			len = kept - done;
		memcpy(mem + done, p, len);
		done += len;
	}
	if (done < bytes)
		memcpy(mem + done, b->run->filler + done, bytes - done);
}

void *build_data(struct builder *b, const struct value *v, uint64_t bytes, uint64_t *ret_room)
{
	const struct data *d = v->type == VALUE_DATA ? v->data : NULL;
	uint8_t *mem;

	if (bytes > b->run->filler_bytes)
		bytes = b->run->filler_bytes;
	*ret_room = bytes;
	if (!d || !d->kept_bytes)
		return (void *)(uintptr_t)b->run->filler; /* the kernel only reads it */
	mem = build_alloc(b, bytes, align_for(bytes));
	if (mem)
		copy_data(b, d, mem, bytes);
	return mem;
}

char *build_string(struct builder *b, const struct value *v)
{
	const struct data *d = v->type == VALUE_DATA ? v->data : NULL;
	char *s;

	/* The kernel reads no string beyond PATH_MAX, so the rest makes no difference. */
	if (!d || (d->kept_bytes != d->len_bytes && d->kept_bytes < PATH_MAX) ||
	    d->kept_bytes > PATH_BYTES_MAX) {
		b->unbuilt = true;
		return NULL;
	}
	s = build_alloc(b, d->kept_bytes + 1, 1);
	if (s && d->kept_bytes)
		copy_data(b, d, (uint8_t *)s, d->kept_bytes);
	return s;
}

/* How many bytes or items an argument has, as another one says. */
static uint64_t stated_length(const struct arg *args, const struct value *values, unsigned int nr,
			      unsigned int i, int *ret_from)
{
	const struct arg *arg = &args[i];
	unsigned int from = arg->cap ? arg->cap : arg->len;

	*ret_from = -1;
	if (from & LEN_CONST)
		return from & ~(unsigned int)LEN_CONST;
	if (from == RET) /* by the custom of all calls: buffer, size */
		from = i + 1 < nr ? i + 1 + A0 : LEN_NONE;
	if (from < A0 || from > A11 || from - A0 >= nr)
		return 0;
	from -= A0;
	if (args[from].kind == KIND_INT && values[from].type == VALUE_INT && values[from].i < 0)
		return 0;
	*ret_from = (int)from;
	return build_uint(&values[from]);
}

static void *build_iovec_base(struct builder *b, const struct value *base, uint64_t len, bool out,
			      uint64_t *ret_room)
{
	if (out)
		return build_out(b, len, ret_room);
	return build_data(b, base, len, ret_room);
}

void *build_iovecs(struct builder *b, const struct value *list, uint64_t nr, bool out)
{
	uint32_t i, count = list->type == VALUE_LIST ? list->count : 0;
	struct iovec *iov;

	if (count > IOVECS_MAX)
		count = IOVECS_MAX;
	if (nr > IOVECS_MAX) /* the kernel refuses before it looks */
		nr = count;
	if (nr < count)
		nr = count;
	iov = build_alloc(b, (nr ? nr : 1) * sizeof(*iov), 8);
	if (!iov)
		return NULL;
	for (i = 0; i < count; i++) {
		static const struct value none = { .type = VALUE_NONE };
		const struct value *base = value_field(&list->items[i], FIELD_OF(iovec, iov_base));
		const struct value *len = value_field(&list->items[i], FIELD_OF(iovec, iov_len));
		uint64_t room = 0, want = len ? build_uint(len) : 0;

		if (!len && base && base->type == VALUE_DATA)
			want = base->data->len_bytes;
		iov[i].iov_base = build_iovec_base(b, base ? base : &none, want, out, &room);
		iov[i].iov_len = want < room ? want : room;
	}
	/* Those of a call that failed were not kept: with none it might succeed. */
	for (; out && i < nr && b->act->outcome.err; i++) {
		uint64_t room = 0;

		iov[i].iov_base = build_out(b, 1, &room);
		iov[i].iov_len = room ? 1 : 0;
	}
	return iov;
}

static void put_pointer(uint8_t *where, const void *p)
{
	memcpy(where, &p, sizeof(p));
}

static void build_field(struct builder *b, const struct struct_desc *d, struct value *values,
			unsigned int n, uint8_t *mem)
{
	const struct arg *f = &d->fields[n];
	const struct field_place *place = &d->places()[n];
	const struct value *v = &values[n];
	uint8_t *where = mem + place->offset_bytes;
	uint64_t room;
	int from;

	if (place->offset_bytes == OFFSET_NONE || v->type == VALUE_NONE || v->type == VALUE_NULL)
		return;
	switch ((enum kind)f->kind) {
	case KIND_STRUCT:
		if (f->here && place->width_bytes >= struct_descs[f->struct_id].size_bytes)
			build_struct(b, f, v, where);
		break;
	case KIND_BUF:
		if (f->here)
			break;
		room = stated_length(d->fields, values, d->nr_fields, n, &from);
		put_pointer(where, f->dir & ARG_OUT ? build_out(b, room, &room)
						    : build_data(b, v, room, &room));
		/* The field that states the length comes after it in every struct: cut here. */
		if (from > (int)n && build_uint(&values[from]) > room)
			values[from].u = room;
		break;
	case KIND_PATH:
	case KIND_STR:
		if (!f->here)
			put_pointer(where, build_string(b, v));
		break;
	default:
		if (kind_infos[f->kind].width_bytes)
			build_number(b, f, v, where, place->width_bytes);
		break;
	}
}

void build_struct(struct builder *b, const struct arg *arg, const struct value *v, uint8_t *mem)
{
	const struct struct_desc *d = &struct_descs[arg->struct_id];
	struct value values[STRUCT_FIELDS_MAX];
	unsigned int i;

	for (i = 0; i < d->nr_fields; i++) {
		const struct value *field = value_field(v, i);

		values[i] = field ? *field : (struct value){ .type = VALUE_NONE };
		/* A buffer that goes out has no value in a plan, yet needs its place. */
		if (!field && d->fields[i].kind == KIND_BUF && (d->fields[i].dir & ARG_OUT))
			values[i].type = VALUE_ADDR;
	}
	for (i = 0; i < d->nr_fields; i++)
		build_field(b, d, values, i, mem);
}

static void add_clamp(struct builder *b, int reg, uint64_t max)
{
	if (reg < 0 || reg >= 6)
		return;
	if (b->nr_clamps == BUILD_CLAMPS_MAX) {
		b->unbuilt = true;
		return;
	}
	b->clamps[b->nr_clamps].reg = (uint8_t)reg;
	b->clamps[b->nr_clamps++].max = max;
}

static void *build_buffer(struct builder *b, unsigned int i)
{
	const struct arg *arg = &b->act->row->args[i];
	int from;
	uint64_t room, len = stated_length(b->act->row->args, b->act->args, b->act->row->nr_args, i,
					   &from);
	void *p;

	if (arg->dir == ARG_OUT) {
		p = build_out(b, len, &room);
	} else {
		p = build_data(b, &b->act->args[i], len, &room);
	}
	if (len > room)
		add_clamp(b, from, room);
	return p;
}

static void *build_struct_arg(struct builder *b, unsigned int i)
{
	const struct arg *arg = &b->act->row->args[i];
	const struct struct_desc *d = &struct_descs[arg->struct_id];
	uint64_t size = d->size_bytes;
	uint8_t *mem;
	int from;

	if (arg->len) {
		uint64_t stated = stated_length(b->act->row->args, b->act->args,
						b->act->row->nr_args, i, &from);

		/* The kernel refuses a larger one before it looks. */
		if (stated > size)
			size = stated < STRUCT_SIZED_MAX ? stated : STRUCT_SIZED_MAX;
	}
	if (arg->dir == ARG_OUT)
		return build_scratch(b, size + 512); /* a later kernel may write more */
	mem = build_alloc(b, size, 8);
	if (mem)
		build_struct(b, arg, &b->act->args[i], mem);
	return mem;
}

/* Items in memory: numbers of PTR and VEC, structs of ARRAY. */
static void *build_items(struct builder *b, unsigned int i)
{
	const struct arg *arg = &b->act->row->args[i];
	const struct value *v = &b->act->args[i];
	struct arg elem = { .kind = arg->elem, .width_bytes = arg->width_bytes, .set = arg->set };
	bool structs = arg->kind == KIND_ARRAY;
	uint64_t width = structs	    ? struct_descs[arg->struct_id].size_bytes
			 : arg->width_bytes ? arg->width_bytes
					    : kind_infos[arg->elem].width_bytes;
	uint32_t n, count = v->type == VALUE_LIST ? v->count : 0;
	int from;
	uint64_t nr =
		stated_length(b->act->row->args, b->act->args, b->act->row->nr_args, i, &from);
	uint8_t *mem;

	if (structs && arg->struct_id == STRUCT_iovec)
		return build_iovecs(b, v, nr, arg->dir == ARG_OUT);
	if (nr < count)
		nr = count;
	if (nr > ITEMS_MAX) {
		b->unbuilt = true;
		return NULL;
	}
	if (arg->dir == ARG_OUT)
		return build_scratch(b, nr * width);
	mem = build_alloc(b, nr * width, 8);
	for (n = 0; mem && n < count; n++) {
		if (structs)
			build_struct(b, arg, &v->items[n], mem + n * width);
		else
			build_number(b, &elem, &v->items[n], mem + n * width, (unsigned int)width);
	}
	return mem;
}

static void *build_pointer(struct builder *b, unsigned int i)
{
	switch ((enum kind)b->act->row->args[i].kind) {
	case KIND_PATH:
		return build_path(b, i);
	case KIND_STR:
		return build_string(b, &b->act->args[i]);
	case KIND_BUF:
	case KIND_DIRENTS:
		return build_buffer(b, i);
	case KIND_STRUCT:
		return build_struct_arg(b, i);
	case KIND_PTR:
	case KIND_VEC:
	case KIND_ARRAY:
		return build_items(b, i);
	default:
		return NULL; /* of calls that are not made, or that build_more() completes */
	}
}

/* An address that no process has. */
#define BAD_POINTER ((uint64_t)8)

static void build_arg(struct builder *b, unsigned int i)
{
	const struct arg *arg = &b->act->row->args[i];
	const struct value *v = &b->act->args[i];

	if (kind_infos[arg->kind].width_bytes) {
		build_number(b, arg, v, &b->a->regs[i], 8);
		return;
	}
	if (v->type == VALUE_NULL)
		return;
	if (v->type == VALUE_ADDR && b->act->outcome.err == EFAULT) {
		b->a->regs[i] = BAD_POINTER;
		return;
	}
	if ((arg->dir & ARG_IN) && arg->kind != KIND_BUF && arg->kind != KIND_STRV &&
	    (v->type == VALUE_NONE || v->type == VALUE_ADDR)) {
		/* Imports of macOS lack much; their functions do without. */
		b->unbuilt |= !(b->act->row->class & A_MAC) || arg->kind == KIND_PATH;
		return;
	}
	b->a->regs[i] = (uint64_t)(uintptr_t)build_pointer(b, i);
}

void build_args(struct builder *b)
{
	const struct row *row = b->act->row;
	const struct row_variant *variant = row_variant_of(row);
	unsigned int i;

	for (i = 0; i < row->nr_args && i < 6; i++) {
		if (row->args[i].reg != REG_OWN)
			continue;
		if (row->args[i].kind != KIND_HOLE)
			build_arg(b, i);
		else if (variant && variant->reg == i)
			b->a->regs[i] = variant->value;
	}
	if (b->from_fds)
		build_at_form(b);
	for (i = 0; i < b->nr_clamps; i++)
		if (b->a->regs[b->clamps[i].reg] > b->clamps[i].max)
			b->a->regs[b->clamps[i].reg] = b->clamps[i].max;
}
