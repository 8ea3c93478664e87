/* SPDX-License-Identifier: MIT */
#include "record/aio.h"

#include <linux/aio_abi.h>
#include <stdlib.h>

#include "base/banned.h"
#include "model/fields.h"
#include "record/aio_inside.h"

struct aio *aio_new(void)
{
	return xcalloc(1, sizeof(struct aio));
}

void aio_free(struct aio *x)
{
	if (!x)
		return;
	uring_release(x);
	requests_release(&x->requests);
	free(x);
}

void aio_forget(struct aio *x, pid_t pid)
{
	if (x->requests.nr_taken)
		requests_remove_all(&x->requests, (uint64_t)pid, NULL);
	uring_forget(x, pid);
}

struct iovec *aio_copy_iov(const struct value *list, uint32_t *ret_nr)
{
	struct iovec *iov;
	uint32_t i;

	if (!list || list->type != VALUE_LIST || !list->count)
		return NULL;
	iov = xcalloc(list->count, sizeof(*iov));
	for (i = 0; i < list->count; i++) {
		const struct value *base = value_field(&list->items[i], FIELD_OF(iovec, iov_base));
		const struct value *len = value_field(&list->items[i], FIELD_OF(iovec, iov_len));

		if (base && base->type == VALUE_ADDR && len)
			iov[i] = (struct iovec){ (void *)(uintptr_t)base->u, len->u };
	}
	*ret_nr = list->count;
	return iov;
}

void aio_push_read(struct capture_job *j, const struct request *req, uint64_t len_bytes,
		   const struct capture_target *t)
{
	struct capture_target data = *t;

	data.addr = req->addr;
	data.len = len_bytes;
	data.flags = CAPTURE_AFTER;
	if (!req->iov) {
		if (data.len > req->len)
			data.len = req->len;
		capture_push(j, &data);
		return;
	}
	(void)!capture_gather(j, req->iov, req->nr_iov, &data); /* its failure stays in the job */
}

/* Submission. */

static const struct value *list_of(const struct aio_call *call, enum struct_id id,
				   unsigned int *ret_arg)
{
	unsigned int i;

	for (i = 0; i < call->row->nr_args; i++) {
		if (call->row->args[i].struct_id == id) {
			*ret_arg = i;
			return call->args[i].type == VALUE_LIST ? &call->args[i] : NULL;
		}
	}
	return NULL;
}

static uint64_t number_of(const struct value *v, unsigned int n)
{
	const struct value *f = value_field(v, n);

	return f && f->type == VALUE_INT ? f->u : 0;
}

static void set_key(uint64_t key[3], const struct aio_call *call, uint64_t obj)
{
	key[0] = (uint64_t)call->pid;
	key[1] = call->regs[0];
	key[2] = obj;
}

static void note_iocb(struct aio *x, const struct aio_call *call, const struct value *cb)
{
	struct request req = {
		.number = x->next_request++,
		.addr = number_of(cb, FIELD_OF(iocb, aio_buf)),
		.len = number_of(cb, FIELD_OF(iocb, aio_nbytes)),
		.opcode = (uint8_t)number_of(cb, FIELD_OF(iocb, aio_lio_opcode)),
	};
	struct request *old;

	set_key(req.key, call, number_of(cb, FIELD_OF(iocb, obj)));
	/* Its completion was not seen (a program may take it from the ring without a call). */
	old = requests_find(&x->requests, req.key);
	if (old)
		requests_remove(&x->requests, old);
	if (req.opcode == IOCB_CMD_PREADV)
		req.iov = aio_copy_iov(value_field(cb, FIELD_OF(iocb, iov)), &req.nr_iov);
	if (!requests_add(&x->requests, &req))
		free(req.iov);
}

/*
 * Noted before the call: another thread may take the completion before it
 * returns.
 */
static void note_submission(struct aio *x, const struct aio_call *call)
{
	unsigned int arg;
	const struct value *list = list_of(call, STRUCT_iocb, &arg);
	uint32_t i;

	for (i = 0; list && i < list->count; i++) {
		if (list->items[i].type == VALUE_STRUCT)
			note_iocb(x, call, &list->items[i]);
	}
}

/* What the kernel did not take will not complete. */
static void drop_refused(struct aio *x, const struct aio_call *call)
{
	unsigned int arg;
	const struct value *list = list_of(call, STRUCT_iocb, &arg);
	uint64_t i = call->outcome->err ? 0 : (uint64_t)call->outcome->ret;
	struct request *req;
	uint64_t key[3];

	for (; list && i < list->count; i++) {
		set_key(key, call, number_of(&list->items[i], FIELD_OF(iocb, obj)));
		req = requests_find(&x->requests, key);
		if (req)
			requests_remove(&x->requests, req);
	}
}

/* Completion. */

/* Adds what is known of the request to an io_event. */
static void complete(struct aio *x, struct capture_job *j, const struct aio_call *call,
		     struct value *event)
{
	int64_t res = (int64_t)number_of(event, FIELD_OF(io_event, res));
	struct value *items, *old;
	struct request *req;
	bool has_data;
	uint64_t key[3];
	uint32_t i;

	if (event->type != VALUE_STRUCT)
		return;
	set_key(key, call, number_of(event, FIELD_OF(io_event, obj)));
	req = requests_find(&x->requests, key);
	if (!req)
		return;
	has_data = res > 0 && (req->opcode == IOCB_CMD_PREAD || req->opcode == IOCB_CMD_PREADV);
	old = event->fields->items;
	i = event->count; /* the new fields come behind those that there are */
	*event = value_struct(j->c->arena, event->fields->present | FIELD_BIT(io_event, opcode) |
						   (uint64_t)has_data << FIELD_OF(io_event, buf));
	items = event->fields->items;
	memcpy(items, old, i * sizeof(*items));
	items[i++] = value_uint(req->opcode);
	if (has_data)
		aio_push_read(
			j, req, (uint64_t)res,
			&(struct capture_target){
				.a = &struct_descs[STRUCT_io_event].fields[FIELD_OF(io_event, buf)],
				.dest = &items[i] });
	requests_remove(&x->requests, req);
}

static int complete_all(struct aio *x, struct capture *c, const struct aio_call *call)
{
	struct capture_job j;
	unsigned int i;
	uint32_t k;

	capture_begin(&j, c);
	j.row = call->row;
	j.regs = call->regs;
	j.args = call->args;
	j.outcome = call->outcome;
	for (i = 0; i < call->row->nr_args; i++) {
		struct value *v = &call->args[i];

		if (call->row->args[i].struct_id != STRUCT_io_event)
			continue;
		for (k = 0; v->type == VALUE_LIST && k < v->count; k++)
			complete(x, &j, call, &v->items[k]);
		complete(x, &j, call, v);
	}
	return capture_run(&j);
}

int aio_entry(struct aio *x, struct capture *c, const struct aio_call *call)
{
	if (call->row->id == SC_io_submit)
		note_submission(x, call);
	else if (row_class(call->row) == C_URING)
		return uring_entry(x, c, call);
	else if (x->rings.len)
		uring_count_unseen(x, c, call);
	return 0;
}

bool aio_follows(const struct row *row)
{
	return row->id == SC_mmap || row->id == SC_close ||
	       (row_class(row) == C_URING && row->id != SC_io_uring_enter);
}

int aio_exit(struct aio *x, struct capture *c, const struct aio_call *call)
{
	switch ((int)call->row->id) {
	case SC_io_submit:
		drop_refused(x, call);
		return 0;
	case SC_io_getevents:
	case SC_io_pgetevents:
	case SC_io_cancel:
		return call->outcome->err ? 0 : complete_all(x, c, call);
	case SC_io_destroy:
		if (!call->outcome->err)
			requests_remove_all(&x->requests, (uint64_t)call->pid, &call->regs[0]);
		return 0;
	}
	/* Of other classes the maps of rings and the closing of their descriptors. */
	if (row_class(call->row) == C_URING || x->rings.len)
		return uring_exit(x, c, call);
	return 0;
}
