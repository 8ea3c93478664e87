/* SPDX-License-Identifier: MIT */
/* Which descriptors stand in an event, by the kinds of its arguments. */
#include "base/banned.h"
#include "fsmodel/tables.h"
#include "model/uring.h"

struct walk {
	struct call *c;
	bool nested; /* their use is told here: no handler has done so */
};

static void add_number(struct walk *w, struct value *v, int64_t number)
{
	struct call *c = w->c;
	struct descriptor *d;

	if (v->type != VALUE_INT || number < 0)
		return;
	d = fd_table_get(c->thread->files, number);
	if (d && w->nested)
		touch_use(c, &d->res, TOUCH_USE);
	VEC_PUSH(&c->facts->fds,
		 ((struct fd_ref){ .where = v,
				   .fd = d ? &d->res : NULL,
				   .made = d && !d->found && d->step == c->m->tables->step }));
}

static void add_fd(struct walk *w, struct value *v)
{
	add_number(w, v, v->i);
}

static void walk_value(struct walk *w, const struct arg *arg, struct value *v);

/* Whether a field that is a descriptor by its kind is one in this struct. */
static bool field_counts(unsigned int id, const struct value *v, const char *name)
{
	if (id == STRUCT_io_uring_sqe && !strcmp(name, "fd"))
		return uring_fd_counts(v);
	if (id == STRUCT_iocb && !strcmp(name, "aio_resfd"))
		return value_int_or(field_of(v, STRUCT_iocb, "aio_flags"), 0) & 1;
	return true;
}

static void walk_struct(struct walk *w, unsigned int id, struct value *v)
{
	const struct struct_desc *desc = &struct_descs[id];
	unsigned int n;

	if (v->type != VALUE_STRUCT)
		return;
	for (n = 0; n < desc->nr_fields; n++) {
		struct value *field = value_field(v, n);

		if (field && arg_has_fds(&desc->fields[n]) &&
		    field_counts(id, v, desc->fields[n].name))
			walk_value(w, &desc->fields[n], field);
	}
}

static void walk_value(struct walk *w, const struct arg *arg, struct value *v)
{
	struct value *item;
	uint32_t i;

	if (arg->kind == KIND_FD || arg->kind == KIND_DIRFD) {
		add_fd(w, v);
		return;
	}
	if (v->type == VALUE_STRUCT)
		walk_struct(w, arg->struct_id, v);
	if (v->type != VALUE_LIST)
		return;
	for (i = 0; i < v->count; i++) {
		item = &v->items[i];
		if (arg->struct_id)
			walk_struct(w, arg->struct_id, item);
		else
			add_fd(w, item);
	}
}

void refs_of_request(struct call *c, struct value *sqe)
{
	struct walk w = { .c = c, .nested = true };
	struct value *second = uring_second_fd(sqe);

	walk_struct(&w, STRUCT_io_uring_sqe, sqe);
	if (second) /* 32 bits, whatever the kind of the field */
		add_number(&w, second, (int32_t)second->u);
}

void refs_of_completion(struct call *c, struct value *cqe)
{
	struct walk w = { .c = c };
	struct value *made = uring_new_fd(cqe);

	walk_struct(&w, STRUCT_io_uring_cqe, cqe);
	if (!made)
		return;
	add_fd(&w, made);
	c->facts->fds.items[c->facts->fds.len - 1].result = true;
}

void refs_collect(struct call *c, const struct row_info *info, bool after)
{
	uint16_t scalars = after ? info->fd_args & info->after : info->fd_args & ~info->after;
	uint16_t nested = after ? info->nested & info->after : info->nested & ~info->after;
	struct walk w = { .c = c };
	unsigned int n;

	if (!c->thread)
		return;
	for (n = 0; scalars; n++, scalars >>= 1) {
		if (scalars & 1)
			add_fd(&w, arg_at(c, n));
	}
	w.nested = !after;
	for (n = 0; nested; n++, nested >>= 1) {
		if (nested & 1)
			walk_value(&w, &c->ev->row->args[n], arg_at(c, n));
	}
	if (after && info->makes_fd) {
		int64_t number = c->m->tables->result.ret;
		struct descriptor *d = fd_table_get(c->thread->files, number);

		if (d)
			VEC_PUSH(&c->facts->fds,
				 ((struct fd_ref){ .where = NULL,
						   .fd = &d->res,
						   .made = d->step == c->m->tables->step }));
	}
}

bool refs_fit(const struct call *c, const struct row_info *info)
{
	uint16_t lists = info->nested & info->after;
	const struct value *v;
	unsigned int n;
	uint32_t i;

	/* What these replace may be open. */
	if (c->ev->row->id == SC_dup2 || c->ev->row->id == SC_dup3)
		return true;
	if (info->makes_fd && !fd_may_be_given(c, c->ev->outcome.ret))
		return c->ev->row->id == SC_signalfd || c->ev->row->id == SC_signalfd4;
	for (n = 0; lists; n++, lists >>= 1) {
		v = arg_at(c, n);
		if (!(lists & 1) || v->type != VALUE_LIST || c->ev->row->args[n].struct_id)
			continue;
		for (i = 0; i < v->count; i++) {
			if (v->items[i].type == VALUE_INT && v->items[i].i >= 0 &&
			    !fd_may_be_given(c, v->items[i].i))
				return false;
		}
	}
	return true;
}
