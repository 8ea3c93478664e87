/* SPDX-License-Identifier: MIT */
/*
 * Asynchronous requests of the kernel's first kind, and those of macOS. A
 * context and each request in it are resources; a request touches its file when
 * it is submitted and again when it is harvested, for it was at work in between.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "base/banned.h"
#include "fsmodel/tables.h"

struct aio_request {
	struct res res; /* RES_AIO */
	struct inode *inode; /* held; NULL: none */
	uint32_t how;
	uint64_t from, to;
	struct request_end end; /* where it was submitted; the rest comes with its completion */
};

struct aio_context {
	struct res res; /* RES_AIO */
	struct ids requests; /* address of the block -> struct aio_request */
};

enum iocb_cmd {
	AIO_PREAD = 0,
	AIO_PWRITE = 1,
	AIO_FSYNC = 2,
	AIO_FDSYNC = 3,
	AIO_POLL = 5,
	AIO_NOOP = 6,
	AIO_PREADV = 7,
	AIO_PWRITEV = 8,
};

struct request_end request_begin(const struct call *c, uint32_t number)
{
	return (struct request_end){ .tid = c->ev->tid, .seq = c->ev->seq, .number = number };
}

bool request_fails_alone(int64_t res)
{
	switch (res) {
	case -ECANCELED:
	case -EFAULT:
	case -EINVAL:
		return true;
	default:
		return false;
	}
}

void request_push_end(struct call *c, const struct request_end *end, struct value *completion,
		      int64_t res)
{
	struct request_end done = *end;

	done.completion = completion;
	done.res = res;
	VEC_PUSH(&c->facts->request_ends, done);
}

/* An address in the event is that of a context or a request. */
static void refer(struct call *c, const struct value *where, struct res *res, bool made)
{
	if (where)
		VEC_PUSH(&c->facts->maps,
			 ((struct map_ref){ .where = (struct value *)(uintptr_t)where,
					    .map = res,
					    .made = made }));
}

static void request_free(struct call *c, struct fsmodel *m, struct aio_request *q)
{
	if (c) {
		touch_use(c, &q->res, TOUCH_DELETE);
		if (q->inode)
			touch_add(c, &q->inode->res, q->how, q->from, q->to);
	}
	if (q->inode)
		inode_unref(m, q->inode);
	res_bury(m, &q->res, NULL);
}

static void context_free(struct call *c, struct fsmodel *m, struct aio_context *x)
{
	IDS_EACH (&x->requests, s)
		request_free(c, m, s->value);
	ids_release(&x->requests);
	if (c)
		touch_use(c, &x->res, TOUCH_DELETE);
	res_bury(m, &x->res, NULL);
}

void aio_clear(struct call *c, struct fsmodel *m, struct ids *contexts)
{
	IDS_EACH (contexts, s)
		context_free(c, m, s->value);
	ids_release(contexts);
}

static struct aio_context *context_new(struct call *c, uint64_t id)
{
	struct ids *all = space_aio(c->proc->space);
	struct aio_context *x = ids_remove(all, id);

	if (x)
		context_free(c, c->m, x);
	x = xcalloc(1, sizeof(*x));
	res_init(c->m, &x->res, RES_AIO);
	touch_use(c, &x->res, TOUCH_CREATE);
	ids_set(all, id, x);
	return x;
}

static struct aio_context *context_find(const struct call *c, uint64_t id)
{
	return ids_get(space_aio(c->proc->space), id);
}

/* What the request does to its file, from what the transfer found. */
static struct aio_request *request_new(struct call *c, struct aio_context *x, uint64_t obj,
				       struct inode *i, const struct transfer *t, uint32_t how)
{
	struct aio_request *q = ids_remove(&x->requests, obj);

	if (q)
		request_free(c, c->m, q);
	q = xcalloc(1, sizeof(*q));
	res_init(c->m, &q->res, RES_AIO);
	touch_use(c, &q->res, TOUCH_CREATE);
	if (i && !i->special) {
		q->inode = i;
		inode_ref(i);
		q->how = how;
		q->from = t->from;
		q->to = t->count > TOUCH_TO_END - t->from ? TOUCH_TO_END : t->from + t->count;
	}
	ids_set(&x->requests, obj, q);
	return q;
}

/*
 * What a write was to do was done to the model when it was submitted. That it
 * did less is known only now; how far it came with the size is not.
 */
static void end_request(struct call *c, struct aio_request *q, struct value *event)
{
	int64_t res = value_int_or(field_of(event, STRUCT_io_event, "res"), 0);
	bool writes = q->how & TOUCH_WRITE;
	bool is_short = writes && q->inode && res >= 0 && (uint64_t)res < q->to - q->from;

	if (writes && q->inode && (res < 0 || is_short))
		q->inode->size_known = false;
	if (is_short || (writes && res < 0) || request_fails_alone(res))
		request_push_end(c, &q->end, event, res);
}

/* event: the completion; NULL: there is none, the request was cancelled. */
static void harvest(struct call *c, struct aio_context *x, const struct value *obj,
		    struct value *event)
{
	struct aio_request *q = ids_remove(&x->requests, value_addr_or0(obj));

	if (!q)
		return;
	refer(c, obj, &q->res, false);
	if (event)
		end_request(c, q, event);
	request_free(c, c->m, q);
}

static struct outcome ask_io_setup(struct call *c)
{
	if (!value_int_or(arg_at(c, 0), 0))
		return fails(EINVAL);
	return succeeds(0);
}

static void apply_io_setup(struct call *c)
{
	const struct value *id = value_item(arg_at(c, 1), 0);

	refer(c, id, &context_new(c, value_addr_or0(id))->res, true);
}

const struct call_row model_io_setup = { ask_io_setup, apply_io_setup, NULL };

static struct outcome ask_context(struct call *c)
{
	struct aio_context *x = context_find(c, value_addr_or0(arg_at(c, 0)));

	/* One from before the trace, or of a library that keeps them elsewhere. */
	if (!x)
		c->unsure = true;
	else
		touch_use(c, &x->res, TOUCH_USE);
	return succeeds(0);
}

static void apply_io_destroy(struct call *c)
{
	struct aio_context *x = ids_remove(space_aio(c->proc->space), value_addr_or0(arg_at(c, 0)));

	if (!x)
		return;
	refer(c, arg_at(c, 0), &x->res, false);
	context_free(c, c->m, x);
}

const struct call_row model_io_destroy = { ask_context, apply_io_destroy, NULL };

static void submit(struct call *c, struct aio_context *x, const struct value *iocb, uint32_t n)
{
	int64_t cmd = value_int_or(field_of(iocb, STRUCT_iocb, "aio_lio_opcode"), AIO_NOOP);
	int64_t number = value_int_or(field_of(iocb, STRUCT_iocb, "aio_fildes"), -1);
	const struct value *where = field_of(iocb, STRUCT_iocb, "obj");
	uint64_t obj = value_addr_or0(where);
	struct transfer t = { .positional = true };
	struct aio_request *q;
	struct inode *i;

	t.d = fd_get(c, number);
	i = t.d ? t.d->open->inode : NULL;
	if (!t.d)
		return;
	switch (cmd) {
	case AIO_PREAD:
	case AIO_PWRITE:
	case AIO_PREADV:
	case AIO_PWRITEV:
		t.write = cmd == AIO_PWRITE || cmd == AIO_PWRITEV;
		t.offset = value_int_or(field_of(iocb, STRUCT_iocb, "aio_offset"), 0);
		t.count = cmd == AIO_PREAD || cmd == AIO_PWRITE
				  ? (uint64_t)value_int_or(
					    field_of(iocb, STRUCT_iocb, "aio_nbytes"), 0)
				  : vector_bytes(field_of(iocb, STRUCT_iocb, "iov"));
		if (transfer_ask(c, &t).err || t.d->open->unknown)
			i = NULL;
		else if (t.write && i)
			transfer_apply(c, &t, t.count);
		q = request_new(c, x, obj, i, &t, t.write ? TOUCH_WRITE : TOUCH_READ);
		break;
	case AIO_FSYNC:
	case AIO_FDSYNC:
		t.count = TOUCH_TO_END;
		if (i)
			touch_add(c, &i->res, TOUCH_READ | TOUCH_SIZE_READ | TOUCH_META_READ, 0,
				  TOUCH_TO_END);
		q = request_new(c, x, obj, i, &t, TOUCH_READ | TOUCH_SIZE_READ | TOUCH_META_READ);
		break;
	default:
		q = request_new(c, x, obj, NULL, &t, 0);
		break;
	}
	q->end = request_begin(c, n);
	refer(c, where, &q->res, true);
}

static struct outcome ask_io_submit(struct call *c)
{
	c->any_ret = true;
	if (!c->want_ok)
		c->unsure = true; /* the first of its blocks was refused */
	return ask_context(c);
}

static void apply_io_submit(struct call *c)
{
	struct aio_context *x = context_find(c, value_addr_or0(arg_at(c, 0)));
	int64_t nr =
		c->m->options.execute ? value_int_or(arg_at(c, 1), 0) : c->m->tables->result.ret;
	struct value *iocb;
	uint32_t n;

	if (!x)
		x = context_new(c, value_addr_or0(arg_at(c, 0)));
	refer(c, arg_at(c, 0), &x->res, false);
	for (n = 0; n < nr && (iocb = value_item(arg_at(c, 2), n)); n++)
		submit(c, x, iocb, n);
	c->m->tables->result.ret = n;
}

const struct call_row model_io_submit = { ask_io_submit, apply_io_submit, NULL };

static void apply_io_getevents(struct call *c)
{
	struct aio_context *x = context_find(c, value_addr_or0(arg_at(c, 0)));
	struct value *event;
	uint32_t n;

	if (x)
		refer(c, arg_at(c, 0), &x->res, false);
	for (n = 0; x && (event = value_item(arg_at(c, 3), n)); n++)
		harvest(c, x, field_of(event, STRUCT_io_event, "obj"), event);
}

const struct call_row model_io_getevents = { ask_io_submit, apply_io_getevents, NULL };
const struct call_row model_io_pgetevents = { ask_io_submit, apply_io_getevents, NULL };

static void apply_io_cancel(struct call *c)
{
	struct aio_context *x = context_find(c, value_addr_or0(arg_at(c, 0)));

	if (!x)
		return;
	refer(c, arg_at(c, 0), &x->res, false);
	harvest(c, x, field_of(arg_at(c, 1), STRUCT_iocb, "obj"), NULL);
}

static struct outcome ask_io_cancel(struct call *c)
{
	c->unsure = true;
	return ask_context(c);
}

const struct call_row model_io_cancel = { ask_io_cancel, apply_io_cancel, NULL };

/* Those of macOS have no context: one of the address space stands for it. */

#define MAC_CONTEXT 0

static struct outcome ask_mac_submit(struct call *c)
{
	struct transfer *t = &c->t1;

	t->d = fd_usable(c, value_int_or(arg_at(c, 1), -1));
	if (!t->d)
		return fails(EBADF);
	t->write = c->ev->row->id == SC_aio_write;
	t->positional = true;
	t->offset = value_int_or(arg_at(c, 2), 0);
	t->count = (uint64_t)value_int_or(arg_at(c, 3), 0);
	c->any_ret = true;
	if (t->offset < 0)
		return fails(EINVAL);
	return transfer_ask(c, t);
}

static void apply_mac_submit(struct call *c)
{
	struct aio_context *x = context_find(c, MAC_CONTEXT);
	struct inode *i = c->t1.d->open->inode;

	if (!x)
		x = context_new(c, MAC_CONTEXT);
	if (c->t1.write && i && !c->t1.d->open->unknown)
		transfer_apply(c, &c->t1, c->t1.count);
	refer(c, arg_at(c, 0),
	      &request_new(c, x, value_addr_or0(arg_at(c, 0)), i, &c->t1,
			   c->t1.write ? TOUCH_WRITE : TOUCH_READ)
		       ->res,
	      true);
}

const struct call_row model_aio_read = { ask_mac_submit, apply_mac_submit, NULL };
const struct call_row model_aio_write = { ask_mac_submit, apply_mac_submit, NULL };

static struct outcome ask_mac_request(struct call *c)
{
	struct aio_context *x = context_find(c, MAC_CONTEXT);
	struct aio_request *q = x ? ids_get(&x->requests, value_addr_or0(arg_at(c, 0))) : NULL;

	if (q && c->ev->row->id != SC_aio_suspend)
		touch_use(c, &q->res, TOUCH_USE);
	c->any_ret = c->unsure = true;
	return succeeds(0);
}

static void apply_aio_return(struct call *c)
{
	struct aio_context *x = context_find(c, MAC_CONTEXT);

	if (x)
		harvest(c, x, arg_at(c, 0), NULL);
}

const struct call_row model_aio_error = { ask_mac_request, NULL, NULL };
const struct call_row model_aio_return = { ask_mac_request, apply_aio_return, NULL };
const struct call_row model_aio_suspend = { ask_mac_request, NULL, NULL };
