/* SPDX-License-Identifier: MIT */
#include "plan/action_check.h"

#include <errno.h>
#include <string.h>

#include "base/banned.h"
#include "model/uring.h"
#include "plan/refs.h"

#define FLAGS_KNOWN                                                                                \
	(ACTION_SIMULATED | ACTION_SHARED_FD | ACTION_HAS_RESULT | ACTION_COMPAT |                 \
	 ACTION_ANY_OUTCOME | ACTION_PARTIAL_DATA | ACTION_SETUP | ACTION_EDGE_THINK |             \
	 ACTION_CACHE_MISS | ACTION_STREAM | ACTION_ENFORCED)
#define ERRNO_MAX 4095

struct walk {
	const struct action *a;
	const struct action_limits *l;
	struct action_needs *needs;
	struct err *err;
	bool completion; /* within one: data is what came out */
};

static int check_value(struct walk *w, const struct arg *arg, const struct value *v);

static int check_slot(struct walk *w, const char *name, int64_t slot)
{
	if (slot >= (int64_t)w->l->nr_slots || slot < INT32_MIN)
		return err_set(w->err, -EBADMSG, "%s is slot %lld of %u", name, (long long)slot,
			       w->l->nr_slots);
	if (slot >= (int64_t)w->needs->nr_slots)
		w->needs->nr_slots = (uint32_t)slot + 1;
	return 0;
}

static int check_ref(struct walk *w, const char *name, const struct value *v)
{
	uint64_t offset;
	uint32_t slot;

	if (plan_get_map_ref(v, &slot, &offset))
		return check_slot(w, name, slot);
	if (v->type == VALUE_INT && v->u)
		return err_set(w->err, -EBADMSG, "%s is an address", name);
	return 0;
}

static int check_path(struct walk *w, const struct arg *arg, const struct value *v)
{
	const char *rest;
	uint32_t slot;
	size_t len;
	int r = plan_get_fd_path(v, &slot, &rest, &len);

	if (r < 0)
		return err_set(w->err, r, "%s is malformed", arg->name);
	return r ? check_slot(w, arg->name, slot) : 0;
}

static int check_data(struct walk *w, const struct arg *arg, uint8_t kind, const struct value *v)
{
	const struct data *d = v->data;

	if (kind_is_text(kind) && d->refs && d->kept_bytes <= PLAN_TEXT_MAX && !w->completion)
		return err_set(w->err, -EBADMSG, "%s does not stand in the action", arg->name);
	if (w->completion)
		return 0;
	if (d->len_bytes > w->l->max_data_bytes - w->needs->data_bytes)
		return err_set(w->err, -E2BIG, "more data than the %llu bytes that are allowed",
			       (unsigned long long)w->l->max_data_bytes);
	w->needs->data_bytes += d->len_bytes;
	if (kind == KIND_PATH && arg->look != LOOK_TEXT)
		return check_path(w, arg, v);
	return 0;
}

/* What is a slot in a request though its kind does not say so. */
static int check_request(struct walk *w, const struct value *v)
{
	const struct value *second = uring_second_fd(v);

	return second ? check_slot(w, "the second descriptor", (int32_t)second->u) : 0;
}

static int check_completion(struct walk *w, const struct value *v)
{
	const struct value *made = uring_new_fd(v);

	return made ? check_slot(w, "res", made->i) : 0;
}

static int check_field(struct walk *w, uint16_t struct_id, const struct arg *field,
		       const struct value *v)
{
	/* Names of sockets that are no files begin with a NUL. */
	if (struct_id == STRUCT_sockaddr && field->kind == KIND_PATH)
		return 0;
	if (field->kind == KIND_ADDR)
		return (struct_id == STRUCT_iocb || struct_id == STRUCT_io_event) &&
				       !strcmp(field->name, "obj")
			       ? check_ref(w, field->name, v)
			       : 0;
	return check_value(w, field, v);
}

static int check_struct(struct walk *w, uint16_t struct_id, const struct value *v)
{
	const struct struct_desc *desc = &struct_descs[struct_id];
	const struct value *item = v->fields->items;
	bool outer = w->completion;
	bool fixed_file = struct_id == STRUCT_io_uring_sqe && !uring_fd_counts(v);
	uint64_t left;
	int r = 0;

	if (struct_id == STRUCT_io_uring_sqe)
		r = check_request(w, v);
	else if (struct_id == STRUCT_io_uring_cqe)
		r = check_completion(w, v);
	if (struct_id == STRUCT_io_uring_cqe || struct_id == STRUCT_io_event)
		w->completion = true;
	for (left = v->fields->present; left && !r; left &= left - 1, item++) {
		const struct arg *field = &desc->fields[__builtin_ctzll(left)];

		if (fixed_file && field->kind == KIND_FD && !strcmp(field->name, "fd"))
			continue;
		r = check_field(w, struct_id, field, item);
	}
	w->completion = outer;
	return r;
}

static int check_scalar(struct walk *w, const struct arg *arg, uint8_t kind, const struct value *v)
{
	if (v->type != VALUE_INT)
		return 0;
	if (kind == KIND_FD || kind == KIND_DIRFD)
		return check_slot(w, arg->name, v->i);
	if (kind == KIND_ADDR && plan_addr_is_ref(w->a->row))
		return check_ref(w, arg->name, v);
	return 0;
}

static int check_list(struct walk *w, const struct arg *arg, const struct value *v)
{
	uint32_t i;
	int r = 0;

	for (i = 0; i < v->count && !r; i++) {
		const struct value *item = &v->items[i];

		if (item->type == VALUE_STRUCT)
			r = check_struct(w, arg->struct_id, item);
		else if (item->type == VALUE_DATA)
			r = check_data(w, arg, arg->elem, item);
		else
			r = check_scalar(w, arg, arg->elem, item);
	}
	return r;
}

static int check_value(struct walk *w, const struct arg *arg, const struct value *v)
{
	switch (v->type) {
	case VALUE_DATA:
		return check_data(w, arg, arg->kind, v);
	case VALUE_STRUCT:
		return check_struct(w, arg->struct_id, v);
	case VALUE_LIST:
		return check_list(w, arg, v);
	}
	return check_scalar(w, arg, arg->kind, v);
}

static int check_head(struct walk *w)
{
	const struct action *a = w->a;

	if (row_by_id(a->row->id) != a->row)
		return err_set(w->err, -EOPNOTSUPP, "a call that this program does not know");
	if (a->row->sort == ROW_RECORD)
		return err_set(w->err, -EBADMSG, "a record is no action");
	if (a->flags & ~FLAGS_KNOWN)
		return err_set(w->err, -EOPNOTSUPP, "flags 0x%x of a later version",
			       a->flags & ~FLAGS_KNOWN);
	if (a->exit_ns < a->enter_ns || a->exit_ns > PLAN_TIME_MAX ||
	    a->compute_before_ns > PLAN_TIME_MAX || a->compute_after_ns > PLAN_TIME_MAX ||
	    a->wait_ns > PLAN_TIME_MAX)
		return err_set(w->err, -EBADMSG, "impossible times");
	if (a->outcome.err < 0 || a->outcome.err > ERRNO_MAX)
		return err_set(w->err, -EBADMSG, "impossible error %d", a->outcome.err);
	if ((a->flags & ACTION_ENFORCED) && !a->outcome.err)
		return err_set(w->err, -EBADMSG, "an enforced failure that is none");
	if (!a->outcome.err && plan_ret_is_slot(a->row))
		return check_slot(w, "the outcome", a->outcome.ret);
	return 0;
}

static int check_edges(struct walk *w, uint32_t lane)
{
	uint32_t i;

	if (w->a->nr_edges > ACTION_EDGES_MAX)
		return err_set(w->err, -EBADMSG, "%u edges", w->a->nr_edges);
	for (i = 0; i < w->a->nr_edges; i++) {
		const struct action_edge *e = &w->a->edges[i];

		if (e->lane >= w->l->nr_lanes)
			return err_set(w->err, -EBADMSG, "an edge to lane %u of %u", e->lane,
				       w->l->nr_lanes);
		if (e->lane == lane)
			return err_set(w->err, -EBADMSG, "an edge to its own lane");
		if (w->l->lane_actions && e->nr >= w->l->lane_actions[e->lane])
			return err_set(w->err, -EBADMSG,
				       "an edge to action %llu of lane %u, which has %llu",
				       (unsigned long long)e->nr, e->lane,
				       (unsigned long long)w->l->lane_actions[e->lane]);
		if (e->think_ns > PLAN_TIME_MAX)
			return err_set(w->err, -EBADMSG, "an impossible think time");
		if (e->started && !w->l->started_edges)
			return err_set(w->err, -EBADMSG,
				       "an edge to a start in a plan without such");
	}
	return 0;
}

int action_check(const struct action *a, uint32_t lane, const struct action_limits *l,
		 struct action_needs *ret, struct err *err)
{
	struct walk w = { .a = a, .l = l, .needs = ret, .err = err };
	unsigned int i;
	int r;

	*ret = (struct action_needs){ 0 };
	r = check_head(&w);
	for (i = 0; !r && i < a->row->nr_args; i++)
		r = check_value(&w, &a->row->args[i], &a->args[i]);
	return r ? r : check_edges(&w, lane);
}
