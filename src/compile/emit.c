/* SPDX-License-Identifier: MIT */
/*
 * The steps of an event are decided before its edges are known, because the
 * number of the last one is what others will wait for; slots are taken after
 * them, because the edges say which slots are certain to be free.
 */
#include "compile/emit.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <stddef.h>
#include <string.h>
#include <sys/stat.h>

#include "base/banned.h"
#include "model/fields.h"
#include "plan/refs.h"
#include "plan/result.h"

/* A plan's actions need no larger buffer than this; longer transfers are made in parts. */
#define DATA_MAX_BYTES ((uint64_t)64 << 20)

/* Deciding. */

static void add_step(struct compiler *c, enum step_kind kind, struct res *res)
{
	VEC_PUSH(&c->steps, ((struct step){ .kind = kind, .res = res }));
}

static bool uses(const struct facts *facts, const struct res *res)
{
	for (size_t i = 0; i < facts->touches.len; i++) {
		if (facts->touches.items[i].res == res &&
		    !(facts->touches.items[i].how & TOUCH_DELETE))
			return true;
	}
	return false;
}

static void plan_directory(struct compiler *c, struct res *handle, enum step_kind kind,
			   uint64_t present)
{
	if (!handle || handle->id == present)
		return;
	add_step(c, kind, handle);
}

/* The lane takes over what its process has, where the call depends on it. */
static void plan_context(struct compiler *c, const struct event *ev, const struct facts *facts,
			 const struct lane *lane)
{
	bool submits = ev->row->id == SC_io_uring_enter; /* whose requests may name files */

	if (!row_looks_up(ev->row) && !submits)
		return;
	if (!c->first_root && facts->root)
		c->first_root = facts->root->id;
	if (facts->root && uses(facts, facts->root))
		plan_directory(c, facts->root, STEP_ROOT, lane->root ? lane->root : c->first_root);
	if (facts->cwd && (uses(facts, facts->cwd) || ev->row->id == SC_getcwd))
		plan_directory(c, facts->cwd, STEP_CWD, lane->cwd ? lane->cwd : c->first_root);
	if ((row_makes_names(ev->row) || submits) && lane->umask != facts->umask)
		add_step(c, STEP_UMASK, NULL);
}

/* Whether the call itself gives up what it deletes, so that nothing is left to drop. */
static bool gives_up_itself(const struct event *ev, const struct touch *t)
{
	switch (t->res->kind) {
	case RES_FD:
		return ev->row->id == SC_close;
	case RES_MAP:
		return row_class(ev->row) == C_MAP;
	case RES_AIO:
		return row_class(ev->row) == C_AIO;
	default:
		return false;
	}
}

static bool is_slotted(const struct res *res)
{
	return res->slot >= 0 &&
	       (res->kind == RES_FD || res->kind == RES_HANDLE || res->kind == RES_MAP ||
		res->kind == RES_AIO || res->kind == RES_LOCKER);
}

/* Of what a replay does not have (sockets, terminals) there is nothing to copy. */
void steps_plan_copies(struct compiler *c, const struct facts *facts)
{
	for (size_t i = 0; i < facts->fd_copies.len; i++) {
		const struct fd_copy *copy = &facts->fd_copies.items[i];

		if (copy->from->slot >= 0)
			VEC_PUSH(&c->steps,
				 ((struct step){
					 .kind = STEP_COPY, .res = copy->to, .from = copy->from }));
	}
}

void steps_plan_drops(struct compiler *c, const struct event *ev, const struct facts *facts,
		      bool call)
{
	for (size_t i = 0; i < facts->touches.len; i++) {
		const struct touch *t = &facts->touches.items[i];

		if (!(t->how & TOUCH_DELETE) || !is_slotted(t->res) || t->res->kind == RES_LOCKER)
			continue;
		if (!(call && gives_up_itself(ev, t)))
			add_step(c, STEP_DROP, t->res);
	}
}

/* Locks that end with the event go before its call, which may be one that takes them. */
static void plan_lockers(struct compiler *c, const struct facts *facts, bool call)
{
	for (size_t i = 0; i < facts->touches.len; i++) {
		const struct touch *t = &facts->touches.items[i];

		if (t->how & TOUCH_DELETE && t->res->kind == RES_LOCKER && is_slotted(t->res))
			add_step(c, STEP_DROP, t->res);
	}
	if (call && facts->locker && facts->locker->slot < 0)
		add_step(c, STEP_LOCKER, facts->locker);
}

void steps_plan(struct compiler *c, const struct event *ev, const struct facts *facts, bool call,
		const struct lane *lane)
{
	c->steps.len = 0;
	plan_lockers(c, facts, call);
	if (call) {
		plan_context(c, ev, facts, lane);
		add_step(c, STEP_CALL, NULL);
	}
}

/* Slots. */

static void take_slot(struct compiler *c, struct res *res, uint32_t lane)
{
	if (res && res->slot < 0)
		res->slot = slots_take(&c->slots, c->order, lane);
}

static void take_made_slots(struct compiler *c, const struct facts *facts, uint32_t lane)
{
	for (size_t i = 0; i < facts->fds.len; i++) {
		if (facts->fds.items[i].made)
			take_slot(c, facts->fds.items[i].fd, lane);
	}
	for (size_t i = 0; i < facts->maps.len; i++) {
		if (facts->maps.items[i].made)
			take_slot(c, facts->maps.items[i].map, lane);
	}
	take_slot(c, facts->new_handle, lane);
}

static void give_back_slots(struct compiler *c, const struct facts *facts,
			    const struct action_ref *self)
{
	for (size_t i = 0; i < facts->touches.len; i++) {
		struct res *res = facts->touches.items[i].res;

		if (!(facts->touches.items[i].how & TOUCH_DELETE) || !is_slotted(res))
			continue;
		slots_give_back(&c->slots, res->slot, self);
		res->slot = -1;
	}
}

/* Translating. */

static bool is_file(const struct fsmodel *m, const struct res *fd)
{
	struct fd_info info;

	fsmodel_fd_info(m, fd, &info);
	return info.object == FD_OBJECT_FILE || info.object == FD_OBJECT_SPECIAL ||
	       info.object == FD_OBJECT_URING;
}

static void translate_fds(const struct compiled *view, struct outcome *outcome)
{
	const struct facts *facts = view->facts;
	bool files_only = row_is_async(view->ev->row);

	for (size_t i = 0; i < facts->fds.len; i++) {
		const struct fd_ref *ref = &facts->fds.items[i];
		int32_t slot = ref->fd ? ref->fd->slot : -1;

		if (files_only && !ref->result && ref->fd && !is_file(view->model, ref->fd))
			slot = -1; /* a request that is not made */

		if (ref->where)
			*ref->where = value_int(slot);
		else if (!outcome->err)
			outcome->ret = slot;
	}
}

static bool is_in_map(const struct facts *facts, const struct value *v)
{
	for (size_t i = 0; i < facts->maps.len; i++) {
		if (facts->maps.items[i].where == v)
			return true;
	}
	return false;
}

static bool is_descriptor(const struct facts *facts, const struct value *v)
{
	for (size_t i = 0; i < facts->fds.len; i++) {
		if (facts->fds.items[i].where == v)
			return true;
	}
	return false;
}

static void forget_request(const struct facts *facts, enum struct_id id, const struct value *v)
{
	const struct struct_desc *d = &struct_descs[id];

	for (unsigned int i = 0; v->type == VALUE_STRUCT && i < d->nr_fields; i++) {
		struct value *field = (struct value *)(uintptr_t)value_field(v, i);

		if (!field)
			continue;
		if (!strcmp(d->fields[i].name, "obj") && !is_in_map(facts, field))
			*field = (struct value){ .type = VALUE_NULL };
		else if (d->fields[i].kind == KIND_FD && !is_descriptor(facts, field))
			*field = value_int(PLAN_NO_SLOT);
	}
}

/* Requests of aio that were not made, or not seen to be made. */
static void forget_requests(const struct facts *facts, const struct arg *arg, const struct value *v)
{
	if (arg->struct_id != STRUCT_iocb && arg->struct_id != STRUCT_io_event)
		return;
	if (v->type != VALUE_LIST)
		forget_request(facts, arg->struct_id, v);
	for (uint32_t i = 0; v->type == VALUE_LIST && i < v->count; i++)
		forget_request(facts, arg->struct_id, &v->items[i]);
}

/*
 * Numbers that stand for nothing the plan holds: where the program wanted to
 * have something in its memory, descriptors that were not open.
 */
static void forget_numbers(const struct event *ev, const struct facts *facts, struct value *args)
{
	for (unsigned int i = 0; i < ev->row->nr_args; i++) {
		unsigned int kind = ev->row->args[i].kind;
		const struct value *v = &ev->args[i];

		if (kind == KIND_ARRAY || kind == KIND_PTRS || kind == KIND_STRUCT)
			forget_requests(facts, &ev->row->args[i], v);
		if (kind == KIND_ADDR && !is_in_map(facts, v))
			args[i] = (struct value){ .type = VALUE_NULL };
		else if ((kind == KIND_FD || kind == KIND_DIRFD) && v->type == VALUE_INT &&
			 v->i != AT_FDCWD && !is_descriptor(facts, v))
			args[i] = value_int(PLAN_NO_SLOT);
	}
}

static void translate_maps(const struct facts *facts, struct outcome *outcome)
{
	for (size_t i = 0; i < facts->maps.len; i++) {
		const struct map_ref *ref = &facts->maps.items[i];
		int32_t slot = ref->map->slot;

		if (!ref->where && !outcome->err)
			outcome->ret = slot;
		else if (ref->where &&
			 (slot < 0 ||
			  !plan_put_map_ref((uint32_t)slot, ref->offset_bytes, ref->where)))
			*ref->where = (struct value){ .type = VALUE_NULL };
	}
}

/*
 * A pathname of an event ends at its first NUL, so one that begins with it is
 * empty. In a plan such a beginning means a descriptor: translate_fd_paths().
 */
static void end_path(struct compiler *c, unsigned int kind, const struct value *v)
{
	if (kind == KIND_PATH && v->type == VALUE_DATA && v->data->bytes && v->data->kept_bytes &&
	    !v->data->bytes[0])
		*(struct value *)(uintptr_t)v = value_bytes(&c->arena, "", 0);
}

static void end_paths(struct compiler *c, const struct arg *arg, const struct value *v)
{
	const struct struct_desc *d = &struct_descs[arg->struct_id];

	end_path(c, arg->kind, v);
	for (uint32_t i = 0; v->type == VALUE_LIST && i < v->count; i++) {
		if (v->items[i].type == VALUE_STRUCT)
			end_paths(c, arg, &v->items[i]);
		else
			end_path(c, arg->elem, &v->items[i]);
	}
	/* Names of sockets that are no files do begin with a NUL. */
	if (v->type != VALUE_STRUCT || arg->struct_id == STRUCT_sockaddr)
		return;
	for (unsigned int i = 0; i < d->nr_fields; i++) {
		const struct value *field = value_field(v, i);

		if (field)
			end_paths(c, &d->fields[i], field);
	}
}

static void translate_fd_paths(struct compiler *c, const struct facts *facts)
{
	for (size_t i = 0; i < facts->fd_paths.len; i++) {
		const struct fd_path *p = &facts->fd_paths.items[i];
		const struct data *d = p->where ? p->where->data : NULL;

		if (d && p->fd->slot >= 0 && p->rest <= d->kept_bytes && d->bytes)
			*p->where = plan_put_fd_path(&c->arena, (uint32_t)p->fd->slot,
						     d->bytes + p->rest, d->kept_bytes - p->rest);
	}
}

/* Whether bytes that the call wants to write are not all there. */
static bool lacks_data(const struct event *ev)
{
	for (unsigned int i = 0; i < ev->row->nr_args; i++) {
		const struct value *v = &ev->args[i];

		if (ev->row->args[i].kind == KIND_BUF && (ev->row->args[i].dir & ARG_IN) &&
		    v->type == VALUE_DATA && v->data->kept_bytes < v->data->len_bytes)
			return true;
	}
	return false;
}

static uint64_t buffer_bytes(const struct facts *facts)
{
	uint64_t most = 0;

	for (size_t i = 0; i < facts->touches.len; i++) {
		const struct touch *t = &facts->touches.items[i];

		if ((t->how & (TOUCH_READ | TOUCH_WRITE)) && t->to != TOUCH_TO_END &&
		    t->to > t->from && t->to - t->from > most)
			most = t->to - t->from;
	}
	return most < DATA_MAX_BYTES ? most : DATA_MAX_BYTES;
}

static struct value path_value(struct compiler *c, const struct res *res)
{
	buf_clear(&c->path);
	if (!fsmodel_path(c->model, res, &c->path))
		buf_puts(&c->path, "/"); /* nothing leads there any more */
	return value_bytes(&c->arena, arena_memdup0(&c->arena, c->path.data, c->path.len),
			   c->path.len);
}

/*
 * Handles of one file system mean nothing to another, and opening by one needs
 * rights that a replay should not need: what it led to is opened by its name.
 * False: it failed, or there is no name.
 */
static bool make_open_by_name(struct compiler *c, const struct compiled *view, struct action *a)
{
	const struct event *ev = view->ev;
	struct res *fd = NULL;

	for (size_t i = 0; i < view->facts->fds.len; i++) {
		if (view->facts->fds.items[i].made)
			fd = view->facts->fds.items[i].fd;
	}
	buf_clear(&c->path);
	if (ev->outcome.err || !fd || !fsmodel_path(c->model, fd, &c->path))
		return false;
	take_made_slots(c, view->facts, view->self.lane);
	a->row = row_by_id(SC_open);
	a->outcome = (struct outcome){ .ret = fd->slot };
	a->args[0] = path_value(c, fd);
	a->args[1] = value_uint(ev->args[2].u & ~(uint64_t)(O_CREAT | O_EXCL | O_TRUNC));
	a->args[2] = value_uint(0);
	return true;
}

/*
 * Of a bind() the file is made, and no socket. The mode of what bind() makes is cut
 * by the umask even where the directory has a default ACL.
 */
static bool make_socket_file(struct compiler *c, const struct compiled *view, struct action *a)
{
	const struct event *ev = view->ev;
	const struct value *path = fsmodel_socket_path(&ev->args[1]);
	struct fd_info info = { 0 };
	uint32_t mode;

	if (!path)
		return false;
	if (view->facts->fds.len && view->facts->fds.items[0].fd)
		fsmodel_fd_info(c->model, view->facts->fds.items[0].fd, &info);
	mode = S_ISSOCK(info.mode) ? info.mode & 07777 : 0777;
	translate_fd_paths(c, view->facts);
	a->row = row_by_id(SC_mknodat);
	a->outcome = ev->outcome;
	if (a->outcome.err == EADDRINUSE)
		a->outcome.err = EEXIST;
	if (view->enforced)
		a->flags |= ACTION_ENFORCED;
	a->args[0] = value_int(AT_FDCWD);
	a->args[1] = *path;
	a->args[2] = value_uint(S_IFSOCK | (mode & ~view->facts->umask));
	a->args[3] = value_uint(0);
	return true;
}

/*
 * What a look for locks finds is the same if it finds those of one owner. Which of
 * several owners comes first is luck, and what the trace does not know is not there.
 */
static bool narrow_result(const struct facts *facts, struct action *a)
{
	if (a->row->id != SC_fcntl_getlk && a->row->id != SC_fcntl_ofd_getlk)
		return true;
	if (facts->nr_lock_owners > 1)
		a->result = result_hash_some_lock();
	return facts->lock_foretold;
}

/* What was read of bytes that the trace does not have will be another. */
static void note_result(struct compiler *c, const struct facts *facts, struct action *a)
{
	if (c->reads_unknown || !narrow_result(facts, a))
		c->totals->nr_unverifiable++;
	else
		a->flags |= ACTION_HAS_RESULT;
}

static struct value *field_of(const struct value *v, enum struct_id id, const char *name)
{
	const struct struct_desc *d = &struct_descs[id];

	for (unsigned int i = 0; v->type == VALUE_STRUCT && i < d->nr_fields; i++) {
		if (!strcmp(d->fields[i].name, name))
			return value_field(v, i);
	}
	return NULL;
}

/*
 * Requests that failed for a reason of the environment are not made, and those
 * that were cut short write no more than they did. The actions that submit them
 * may be written already: a replay reads these outcomes before it begins.
 */
int put_request_ends(struct compiler *c, const struct event *ev, const struct facts *facts,
		     struct err *err)
{
	bool is_aio = row_class(ev->row) == C_AIO;
	int r = 0;

	for (size_t i = 0; i < facts->request_ends.len && !r; i++) {
		const struct request_end *end = &facts->request_ends.items[i];
		struct item item = { .row = row_by_id(REC_request_outcome) };
		struct value *v = is_aio ? field_of(end->completion, STRUCT_io_event, "res")
					 : field_of(end->completion, STRUCT_io_uring_cqe, "opcode");

		item.args[0] = value_uint(end->tid);
		item.args[1] = value_uint(end->seq);
		item.args[2] = value_uint(end->number);
		item.args[3] = value_int(end->res);
		if (c->writer)
			r = plan_writer_item(c->writer, &item, err);
		c->totals->nr_enforced_requests += end->res < 0;
		/* Nothing is expected of what is not made. */
		if (end->res < 0 && v)
			*v = is_aio ? (struct value){ .type = VALUE_NONE }
				    : value_uint(IORING_OP_NOP);
	}
	return r;
}

/* Leaves so many bytes of the vectors; how many they are follows. */
static void cut_vectors(struct value *list, struct value *nr, uint64_t left)
{
	uint32_t i;

	for (i = 0; i < list->count && left; i++) {
		struct value *len = value_field(&list->items[i], FIELD_OF(iovec, iov_len));

		if (!len || len->type != VALUE_INT)
			return;
		if (len->u > left)
			*len = value_uint(left);
		left -= len->u;
	}
	list->count = i;
	*nr = value_uint(i);
}

/*
 * The file holds more than was read: a part of the buffer was no memory of the
 * program, or a signal came. A replay, which has its own buffers, asks for as
 * much as that; how much of it was there is verified all the same.
 */
static void cut_read(const struct facts *facts, struct action *a)
{
	uint64_t done = (uint64_t)a->outcome.ret;

	if (a->row->result != RESULT_BYTES_READ || row_class(a->row) != C_DATA ||
	    (a->flags & (ACTION_STREAM | ACTION_ANY_OUTCOME)) || a->outcome.err ||
	    a->outcome.ret <= 0 || facts->predicted.err || facts->predicted.ret <= a->outcome.ret)
		return;
	for (unsigned int i = 0; i < a->row->nr_args; i++) {
		if (a->row->args[i].kind == KIND_SIZE)
			a->args[i] = value_uint(done);
		else if (a->row->args[i].struct_id == STRUCT_iovec && a->args[i].type == VALUE_LIST)
			cut_vectors(&a->args[i], &a->args[i + 1], done);
	}
}

/* Blocks that the kernel did not take are not submitted; the program may have tried them again. */
static void cut_submitted(const struct event *ev)
{
	struct value *blocks = (struct value *)(uintptr_t)&ev->args[2];
	uint64_t nr = ev->outcome.err || ev->outcome.ret < 0 ? 0 : (uint64_t)ev->outcome.ret;

	if (blocks->type == VALUE_LIST && blocks->count > nr)
		blocks->count = (uint32_t)nr;
}

/*
 * In a replay the locks of all processes are those of lockers, which have offsets
 * of their own: where the lock begins is said by itself.
 */
static void lock_by_locker(const struct facts *facts, struct action *a)
{
	struct value *whence, *start;

	if (!facts->locker || facts->locker->slot < 0)
		return;
	a->args[0] = value_int(facts->locker->slot);
	whence = field_of(&a->args[2], STRUCT_flock, "l_whence");
	start = field_of(&a->args[2], STRUCT_flock, "l_start");
	if (!whence || !start || whence->type != VALUE_INT || whence->i != SEEK_CUR)
		return;
	*whence = value_uint(SEEK_SET);
	*start = value_int(start->i + (int64_t)facts->offset);
}

static void make_call(struct compiler *c, const struct compiled *view, struct action *a)
{
	const struct event *ev = view->ev;
	uint64_t bytes = buffer_bytes(view->facts);

	if (c->is_setup && part_make_seek(ev, view->facts, a))
		return;
	if (ev->row->id == SC_open_by_handle_at && make_open_by_name(c, view, a))
		return;
	if (ev->row->id == SC_bind && make_socket_file(c, view, a))
		return;
	a->row = ev->row;
	a->outcome = ev->outcome;
	if (ev->flags & EVENT_COMPAT)
		a->flags |= ACTION_COMPAT;
	if (lacks_data(ev))
		a->flags |= ACTION_PARTIAL_DATA;
	if (!row_is_async(ev->row) && event_is_on_stream(c->model, ev, view->facts))
		a->flags |= ACTION_STREAM;
	if (outcome_is_free(c->model, ev, view->facts))
		a->flags |= ACTION_ANY_OUTCOME;
	else if (result_hash(ev->row, &ev->outcome, ev->args, &a->result))
		note_result(c, view->facts, a);
	if (view->enforced)
		a->flags |= ACTION_ENFORCED;
	if (ev->row->id == SC_io_submit)
		cut_submitted(ev);
	take_made_slots(c, view->facts, view->self.lane);
	for (unsigned int i = 0; i < ev->row->nr_args; i++)
		end_paths(c, &ev->row->args[i], &ev->args[i]);
	translate_fd_paths(c, view->facts);
	translate_fds(view, &a->outcome);
	translate_maps(view->facts, &a->outcome);
	if (view->facts->new_handle && !a->outcome.err)
		a->outcome.ret = view->facts->new_handle->slot;
	memcpy(a->args, ev->args, ev->row->nr_args * sizeof(*a->args));
	forget_numbers(ev, view->facts, a->args);
	lock_by_locker(view->facts, a);
	cut_read(view->facts, a);
	if (bytes > c->totals->plan.max_data_bytes)
		c->totals->plan.max_data_bytes = bytes;
	c->totals->call_ns += ev->exit_ns - ev->enter_ns;
}

/* What is left of an action that a plan cannot hold: that it was, when, and how it ended. */
static void strip_action(struct action *a)
{
	a->flags |= a->outcome.err ? ACTION_ENFORCED : ACTION_SIMULATED;
	a->flags &= ~(unsigned int)(ACTION_HAS_RESULT | ACTION_PARTIAL_DATA | ACTION_STREAM);
	if (plan_ret_is_slot(a->row) && !a->outcome.err)
		a->outcome.ret = PLAN_NO_SLOT;
	if (a->outcome.err < 0 || a->outcome.err > ERRNO_UNKNOWN)
		a->outcome.err = ERRNO_UNKNOWN;
	for (unsigned int i = 0; i < a->row->nr_args; i++)
		a->args[i] = (struct value){ .type = VALUE_NONE };
}

/*
 * No event makes a trace unusable. One that cannot be stored as it is (too much
 * data, numbers that stand for nothing) is not made, and counted. A failure loses
 * nothing by that: it stands.
 */
static int put_action(struct compiler *c, uint32_t lane, struct action *a, struct err *err)
{
	bool is_made = !(a->flags & (ACTION_ENFORCED | ACTION_SIMULATED));
	bool is_failure = a->outcome.err;
	int r;

	if (!c->writer)
		return 0;
	plan_writer_limit_slots(c->writer, c->slots.nr);
	r = plan_writer_action(c->writer, lane, a, err);
	if (r != -E2BIG && r != -EINVAL)
		return r;
	strip_action(a);
	c->totals->nr_unsupported += is_made && !is_failure;
	c->totals->nr_enforced += is_made && is_failure;
	return plan_writer_action(c->writer, lane, a, err);
}

/* What a process had before its first action is made ready before all else. */
static int put_prologue(struct compiler *c, struct action *a, struct res *res, struct err *err)
{
	res->slot = (int32_t)c->slots.nr++;
	c->lanes.list.items[PROLOGUE_LANE].nr_actions++;
	c->totals->plan.nr_actions++;
	return put_action(c, PROLOGUE_LANE, a, err);
}

static int ready_handle(struct compiler *c, struct res *res, struct err *err)
{
	struct action a;

	if (!res || res->slot >= 0)
		return 0;
	a = (struct action){ .row = row_by_id(EV_plan_handle) };
	a.args[0] = path_value(c, res);
	a.args[1] = value_int(c->slots.nr);
	return put_prologue(c, &a, res, err);
}

static bool is_openable(const struct fd_info *info)
{
	return info->object == FD_OBJECT_FILE || info->object == FD_OBJECT_SPECIAL;
}

/* The model is behind the call, which may have moved on where the file stood before. */
static uint64_t offset_before(const struct event *ev, const struct facts *facts,
			      const struct fd_info *info)
{
	uint64_t moved = ev->outcome.ret > 0 ? (uint64_t)ev->outcome.ret : 0;

	return row_class(ev->row) == C_DATA && facts->offset + moved == info->offset ? facts->offset
										     : info->offset;
}

/* Another descriptor has the same open file: a replay must have one for both. */
static int ready_shared(struct compiler *c, const struct res *shared, struct res *res,
			struct err *err)
{
	struct action a = { .row = row_by_id(SC_dup),
			    .flags = ACTION_SETUP,
			    .outcome = { .ret = c->slots.nr } };

	a.args[0] = value_int(shared->slot);
	return put_prologue(c, &a, res, err);
}

static int ready_descriptor(struct compiler *c, const struct event *ev, const struct facts *facts,
			    struct res *res, struct err *err)
{
	struct action a;
	struct fd_info info;

	if (res->slot >= 0) /* as nearly all have one */
		return 0;
	fsmodel_fd_info(c->model, res, &info);
	if (info.shared && info.shared->slot >= 0)
		return ready_shared(c, info.shared, res, err);
	buf_clear(&c->path);
	if (!is_openable(&info) || info.lost)
		return 0;
	if (!fsmodel_path(c->model, res, &c->path)) {
		if (!fsmodel_infer_name(c->model, res))
			return 0;
		fsmodel_fd_info(c->model, res, &info);
	}
	a = (struct action){ .row = row_by_id(EV_plan_open) };
	a.args[0] = path_value(c, res);
	a.args[1] = value_uint(info.flags & ~(uint32_t)(O_CREAT | O_EXCL | O_TRUNC | O_CLOEXEC));
	a.args[2] = value_int((int64_t)offset_before(ev, facts, &info));
	a.args[3] = value_uint(info.mode);
	a.args[4] = value_int(c->slots.nr);
	return put_prologue(c, &a, res, err);
}

int ready_found(struct compiler *c, const struct event *ev, const struct facts *facts, bool call,
		struct err *err)
{
	int r = 0;

	arena_reset(&c->arena);
	for (size_t i = 0; i < facts->fds.len && !r; i++) {
		const struct fd_ref *ref = &facts->fds.items[i];

		if (ref->fd && (ref->made ? ev->row->id == EV_found_fd : call))
			r = ready_descriptor(c, ev, facts, ref->fd, err);
	}
	for (size_t i = 0; i < facts->fd_copies.len && !r; i++)
		r = ready_descriptor(c, ev, facts, facts->fd_copies.items[i].from, err);
	for (size_t i = 0; i < c->steps.len && !r; i++) {
		if (c->steps.items[i].kind == STEP_CWD || c->steps.items[i].kind == STEP_ROOT)
			r = ready_handle(c, c->steps.items[i].res, err);
	}
	return r;
}

/* Of the descriptor that the call is about. */
static int32_t slot_of_caller(const struct facts *facts)
{
	return facts->fds.len && facts->fds.items[0].fd ? facts->fds.items[0].fd->slot
							: PLAN_NO_SLOT;
}

static void make_step(struct compiler *c, const struct compiled *view, const struct step *s,
		      struct action *a)
{
	struct lane *lane = &c->lanes.list.items[view->self.lane];

	switch (s->kind) {
	case STEP_ROOT:
		a->row = row_by_id(EV_plan_root);
		a->args[0] = value_int(s->res->slot);
		lane->root = s->res->id;
		break;
	case STEP_CWD:
		a->row = row_by_id(EV_plan_cwd);
		a->args[0] = value_int(s->res->slot);
		lane->cwd = s->res->id;
		break;
	case STEP_UMASK:
		a->row = row_by_id(EV_plan_umask);
		a->args[0] = value_uint(view->facts->umask);
		lane->umask = view->facts->umask;
		break;
	case STEP_LOCKER:
		take_slot(c, s->res, view->self.lane);
		a->row = row_by_id(EV_plan_locker);
		a->args[0] = value_int(slot_of_caller(view->facts));
		a->args[1] = value_int(s->res->slot);
		break;
	case STEP_CALL:
		make_call(c, view, a);
		break;
	case STEP_COPY:
		take_slot(c, s->res, view->self.lane);
		a->row = row_by_id(EV_plan_dup);
		a->args[0] = value_int(s->from->slot);
		a->args[1] = value_int(s->res->slot);
		break;
	case STEP_DROP:
		a->row = row_by_id(EV_plan_drop);
		a->args[0] = value_int(s->res->slot);
		break;
	}
}

/* The lane's thread has changed its own cwd or root by making the call. */
static void follow_call(struct compiler *c, const struct compiled *view)
{
	struct lane *lane = &c->lanes.list.items[view->self.lane];
	const struct res *made = view->facts->new_handle;

	if (!made)
		return;
	if (view->ev->row->id == SC_chroot)
		lane->root = made->id;
	else
		lane->cwd = made->id;
}

static void take_edges(struct compiler *c, const struct edges *edges)
{
	c->edges.len = 0;
	for (size_t i = 0; i < edges->list.len; i++) {
		const struct edge *e = &edges->list.items[i];

		VEC_PUSH(&c->edges, ((struct action_edge){ .lane = e->from.lane,
							   .nr = e->from.nr,
							   .rule = e->rule,
							   .started = e->started }));
		c->totals->plan.has_started_edges |= e->started;
	}
}

static void count_action(struct compiler *c, const struct event *ev)
{
	struct plan_totals *p = &c->totals->plan;

	p->nr_actions++;
	if (c->is_setup) {
		c->totals->nr_setup++;
		return;
	}
	if (!c->last_ns || ev->enter_ns < p->first_ns)
		p->first_ns = ev->enter_ns;
	if (ev->exit_ns > c->last_ns)
		c->last_ns = ev->exit_ns;
}

/* Arguments are as many as the row has, whatever stood there before: most have few. */
static void begin_action(struct action *a, const struct event *ev)
{
	memset(a, 0, offsetof(struct action, args));
	a->edges = NULL;
	a->nr_edges = 0;
	a->pid = ev->pid;
	a->tid = ev->tid;
	a->origin = ev->origin;
	a->enter_ns = a->exit_ns = ev->enter_ns;
}

static bool missed_cache(const struct thread *t, const struct event *ev)
{
	return ev->row->result == RESULT_BYTES_READ && t->has_missed &&
	       t->missed_ns >= ev->enter_ns && t->missed_ns <= ev->exit_ns;
}

int steps_emit(struct compiler *c, const struct compiled *view, struct thread *t, struct err *err)
{
	const struct event *ev = view->ev;
	struct action *a = &c->action;
	int r = 0;

	arena_reset(&c->arena);
	take_edges(c, view->edges);
	for (size_t i = 0; i < c->steps.len && !r; i++) {
		const struct step *s = &c->steps.items[i];

		begin_action(a, ev);
		if (s->kind == STEP_CALL) {
			a->exit_ns = ev->exit_ns;
			a->seq = ev->seq;
		}
		if (c->is_setup)
			a->flags |= ACTION_SETUP;
		else if (!i) {
			a->edges = c->edges.items;
			a->nr_edges = (uint32_t)c->edges.len;
			a->compute_before_ns = t->think.before_ns;
			a->compute_after_ns = t->think.after_ns;
			a->wait_ns = t->think.wait_ns;
		}
		make_step(c, view, s, a);
		if (s->kind == STEP_CALL && missed_cache(t, ev))
			a->flags |= ACTION_CACHE_MISS;
		count_action(c, ev);
		c->lanes.list.items[view->self.lane].nr_actions++;
		r = put_action(c, view->self.lane, a, err);
	}
	follow_call(c, view);
	give_back_slots(c, view->facts, &view->self);
	return r;
}

/* The first process. */

void state_at_start(struct compiler *c, const struct event *first)
{
	struct event ev = { .row = row_by_id(EV_found_state),
			    .pid = first->pid,
			    .tid = first->tid };
	struct buf text = { 0 };
	const char *cwd = trace_meta(c->trace, "cwd", &text);

	c->knows_start = true;
	if (cwd && first->row->id != EV_found_state) {
		ev.enter_ns = ev.exit_ns = first->enter_ns;
		ev.stream = first->stream;
		ev.args[0] = value_str(&c->arena, cwd);
		ev.args[1] = value_str(&c->arena, "/");
		ev.args[2] = value_uint(022); /* what most have, until the trace says otherwise */
		(void)fsmodel_step(c->model, &ev);
	}
	buf_release(&text);
}
