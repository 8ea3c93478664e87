/* SPDX-License-Identifier: MIT */
/*
 * What an io_uring holds:
 *
 *   submission ring: head (kernel's), tail (program's), array of indices
 *   requests:        what the indices point to
 *   completion ring: head (program's), tail (kernel's), completions
 *
 * At the entry of io_uring_enter the requests between head and tail are read
 * before the kernel takes them; completions are read at the entry (those that
 * came by themselves since the last call) and at the exit, from where the last
 * look ended up to the tail.
 */
#include <linux/io_uring.h>
#include <stdlib.h>
#include <string.h>

#include "base/banned.h"
#include "model/fields.h"
#include "model/uring.h"
#include "record/aio_inside.h"
#include "record/found.h"

/* What older headers lack. */
#define SETUP_NO_SQARRAY (1u << 16)

/* Operations that the system's header may not know yet. */
enum {
	OP_BIND = 56,
	OP_READV_FIXED = 60,
	OP_WRITEV_FIXED = 61,
	OP_PIPE = 62,
};

/* Slots that a request fills or empties: what they hold then is not known. */
static void forget_files(struct ring *ring, uint64_t first, uint64_t nr)
{
	uint64_t i;

	for (i = 0; i < nr && first + i < ring->nr_files; i++)
		ring->files[first + i].known = false;
}

static void put_fixed_file(struct capture_job *j, const struct ring *ring, int32_t slot,
			   struct value *dest)
{
	const struct ring_file *f = &ring->files[slot];

	*dest = value_struct(j->c->arena, FIELD_BIT(file_id, dev) | FIELD_BIT(file_id, ino) |
						  FIELD_BIT(file_id, mode));
	dest->fields->items[0] = value_uint(f->dev);
	dest->fields->items[1] = value_uint(f->ino);
	dest->fields->items[2] = value_uint(f->mode);
}

/* Requests. */

/* What a request has beyond its own bytes: target n is field `field` of the sqe. */
struct sqe_extra {
	unsigned int field;
	uint64_t addr, len;
	uint8_t flags;
};

#define SQE_EXTRAS_MAX 3

static unsigned int extras_of_names(const struct k_io_uring_sqe *s, struct sqe_extra *e)
{
	switch (s->opcode) {
	case IORING_OP_OPENAT:
	case IORING_OP_UNLINKAT:
	case IORING_OP_MKDIRAT:
	case IORING_OP_STATX:
		e[0] = (struct sqe_extra){ FIELD_OF(io_uring_sqe, path), s->addr, 0, 0 };
		return 1;
	case IORING_OP_OPENAT2:
		e[0] = (struct sqe_extra){ FIELD_OF(io_uring_sqe, path), s->addr, 0, 0 };
		e[1] = (struct sqe_extra){ FIELD_OF(io_uring_sqe, how), s->off, s->len, 0 };
		return 2;
	case IORING_OP_RENAMEAT:
	case IORING_OP_LINKAT:
	case IORING_OP_SYMLINKAT:
		e[0] = (struct sqe_extra){ FIELD_OF(io_uring_sqe, path), s->addr, 0, 0 };
		e[1] = (struct sqe_extra){ FIELD_OF(io_uring_sqe, path2), s->off, 0, 0 };
		return 2;
	case IORING_OP_SETXATTR:
		e[0] = (struct sqe_extra){ FIELD_OF(io_uring_sqe, path), s->addr3, 0, 0 };
		e[1] = (struct sqe_extra){ FIELD_OF(io_uring_sqe, name), s->addr, 0, 0 };
		e[2] = (struct sqe_extra){ FIELD_OF(io_uring_sqe, buf), s->off, s->len, 0 };
		return 3;
	case IORING_OP_FSETXATTR:
		e[0] = (struct sqe_extra){ FIELD_OF(io_uring_sqe, name), s->addr, 0, 0 };
		e[1] = (struct sqe_extra){ FIELD_OF(io_uring_sqe, buf), s->off, s->len, 0 };
		return 2;
	case IORING_OP_GETXATTR:
		e[0] = (struct sqe_extra){ FIELD_OF(io_uring_sqe, path), s->addr3, 0, 0 };
		e[1] = (struct sqe_extra){ FIELD_OF(io_uring_sqe, name), s->addr, 0, 0 };
		return 2;
	case IORING_OP_FGETXATTR:
		e[0] = (struct sqe_extra){ FIELD_OF(io_uring_sqe, name), s->addr, 0, 0 };
		return 1;
	}
	return 0;
}

static unsigned int extras_of_send(const struct k_io_uring_sqe *s, struct sqe_extra *e)
{
	unsigned int nr = 0;

	if (!(s->flags & IOSQE_BUFFER_SELECT))
		e[nr++] = (struct sqe_extra){ FIELD_OF(io_uring_sqe, buf), s->addr, s->len, 0 };
	if (s->off)
		e[nr++] = (struct sqe_extra){ FIELD_OF(io_uring_sqe, sockaddr), s->off,
					      (uint16_t)s->splice_fd_in, 0 };
	return nr;
}

static unsigned int extras_of(const struct k_io_uring_sqe *s, struct sqe_extra *e)
{
	switch (s->opcode) {
	case IORING_OP_WRITE:
	case IORING_OP_WRITE_FIXED:
		e[0] = (struct sqe_extra){ FIELD_OF(io_uring_sqe, buf), s->addr, s->len, 0 };
		return 1;
	case IORING_OP_WRITEV:
	case OP_WRITEV_FIXED:
		e[0] = (struct sqe_extra){ FIELD_OF(io_uring_sqe, iov), s->addr, s->len, 0 };
		return 1;
	case IORING_OP_READV:
	case OP_READV_FIXED:
		e[0] = (struct sqe_extra){ FIELD_OF(io_uring_sqe, iov), s->addr, s->len,
					   CAPTURE_NO_DATA };
		return 1;
	case IORING_OP_SEND:
	case IORING_OP_SEND_ZC:
		return extras_of_send(s, e);
	case IORING_OP_SENDMSG:
	case IORING_OP_SENDMSG_ZC:
		e[0] = (struct sqe_extra){ FIELD_OF(io_uring_sqe, msg), s->addr, 0, 0 };
		return 1;
	case IORING_OP_CONNECT:
	case OP_BIND:
		e[0] = (struct sqe_extra){ FIELD_OF(io_uring_sqe, sockaddr), s->addr, s->off, 0 };
		return 1;
	case IORING_OP_TIMEOUT:
	case IORING_OP_LINK_TIMEOUT:
		e[0] = (struct sqe_extra){ FIELD_OF(io_uring_sqe, timeout), s->addr, 0, 0 };
		return 1;
	case IORING_OP_TIMEOUT_REMOVE:
		e[0] = (struct sqe_extra){ FIELD_OF(io_uring_sqe, timeout), s->off, 0, 0 };
		return s->op_flags & IORING_TIMEOUT_UPDATE ? 1 : 0;
	case IORING_OP_FILES_UPDATE:
		e[0] = (struct sqe_extra){ FIELD_OF(io_uring_sqe, fds), s->addr, s->len, 0 };
		return 1;
	case IORING_OP_EPOLL_CTL:
		e[0] = (struct sqe_extra){ FIELD_OF(io_uring_sqe, event), s->addr, 0, 0 };
		return 1;
	}
	return extras_of_names(s, e);
}

/* What the request will do to the table of fixed files. */
static void watch_files(struct ring *ring, const struct k_io_uring_sqe *s)
{
	uint32_t index = (uint32_t)s->splice_fd_in;

	switch (s->opcode) {
	case IORING_OP_FILES_UPDATE:
		forget_files(ring, s->off, s->len);
		break;
	case IORING_OP_OPENAT:
	case IORING_OP_OPENAT2:
	case IORING_OP_ACCEPT:
	case IORING_OP_SOCKET:
	case IORING_OP_CLOSE:
		if (index && index != FILE_INDEX_ALLOC)
			forget_files(ring, index - 1, 1);
		break;
	}
}

static struct value sqe_value(struct capture_job *j, struct ring *ring,
			      const struct k_io_uring_sqe *s, const struct capture_target *t)
{
	struct sqe_extra e[SQE_EXTRAS_MAX];
	unsigned int i, nr = extras_of(s, e);
	bool fixed = s->flags & IOSQE_FIXED_FILE && (uint32_t)s->fd < ring->nr_files &&
		     ring->files[s->fd].known;
	uint64_t extra = FIELD_BIT(io_uring_sqe, request) | (uint64_t)fixed
								    << FIELD_OF(io_uring_sqe, file);
	struct value v;

	for (i = 0; i < nr; i++)
		extra |= (UINT64_C(1) << e[i].field);
	v = capture_struct_from(j, t, (const uint8_t *)s, sizeof(*s), extra);
	*value_field(&v, FIELD_OF(io_uring_sqe, request)) = value_uint(ring->next_request);
	if (fixed)
		put_fixed_file(j, ring, s->fd, value_field(&v, FIELD_OF(io_uring_sqe, file)));
	for (i = 0; i < nr; i++)
		capture_push(j, &(struct capture_target){
					.a = &struct_descs[STRUCT_io_uring_sqe].fields[e[i].field],
					.dest = value_field(&v, e[i].field),
					.addr = e[i].addr,
					.len = e[i].len,
					.flags = e[i].flags });
	return v;
}

static struct request request_of(struct ring *ring, const struct k_io_uring_sqe *s)
{
	return (struct request){
		.key = { (uint64_t)ring->pid, ring->number, s->user_data },
		.number = ring->next_request++,
		.addr = s->addr,
		.addr2 = s->off,
		.len = s->len,
		.file_index = (uint32_t)s->splice_fd_in,
		.opcode = s->opcode,
		.flags = s->flags,
	};
}

/* The vectors of a read, once they have been captured; kept until it completes. */
static void note_request(struct aio *x, struct request *req, const struct value *sqe)
{
	if (req->opcode == IORING_OP_READV || req->opcode == OP_READV_FIXED)
		req->iov =
			aio_copy_iov(value_field(sqe, FIELD_OF(io_uring_sqe, iov)), &req->nr_iov);
	if (!requests_add(&x->requests, req))
		free(req->iov);
}

static bool read_u32(struct capture *c, uint64_t addr, uint32_t *ret)
{
	return capture_read(c, addr, ret, sizeof(*ret)) == sizeof(*ret);
}

/* Reads nr items of a ring's array, which may wrap around. */
static bool read_wrapped(struct capture *c, uint64_t base, uint32_t entries, uint32_t first,
			 uint32_t nr, size_t item_bytes, uint8_t *ret)
{
	uint32_t at = first & (entries - 1);
	uint32_t head = nr < entries - at ? nr : entries - at;
	size_t head_bytes = head * item_bytes, tail_bytes = (nr - head) * item_bytes;

	return capture_read(c, base + at * item_bytes, ret, head_bytes) == head_bytes &&
	       capture_read(c, base, ret + head_bytes, tail_bytes) == tail_bytes;
}

/* Where the requests are that stand in the ring from `first` on. */
static uint32_t *read_indices(struct capture *c, const struct ring *ring, uint32_t first,
			      uint32_t nr)
{
	uint32_t *indices = arena_alloc(c->arena, nr * sizeof(*indices)), i;

	if (ring->p.flags & SETUP_NO_SQARRAY) {
		for (i = 0; i < nr; i++)
			indices[i] = (first + i) & (ring->p.sq_entries - 1);
		return indices;
	}
	if (!read_wrapped(c, ring->sq_addr + ring->p.sq_off.array, ring->p.sq_entries, first, nr,
			  sizeof(*indices), (uint8_t *)indices))
		return NULL;
	return indices;
}

/* The requests of the indices, those that are neighbours together. How many could be read. */
static uint32_t read_sqes(struct capture *c, const struct ring *ring, const uint32_t *indices,
			  uint32_t nr, uint8_t *ret)
{
	size_t size = sizeof(struct k_io_uring_sqe) << !!(ring->p.flags & IORING_SETUP_SQE128);
	uint32_t i = 0, run;

	while (i < nr && indices[i] < ring->p.sq_entries) {
		for (run = 1; i + run < nr && indices[i + run] == indices[i] + run &&
			      indices[i + run] < ring->p.sq_entries;)
			run++;
		if (capture_read(c, ring->sqes_addr + indices[i] * size, ret + i * size,
				 run * size) < run * size)
			break;
		i += run;
	}
	return i;
}

bool ring_skip_taken(struct capture *c, struct ring *ring, uint64_t *ret_nr)
{
	uint32_t head;

	*ret_nr = 0;
	if (!ring->sq_addr)
		return true;
	if (!read_u32(c, ring->sq_addr + ring->p.sq_off.head, &head))
		return ring->is_settled; /* it is no longer mapped */
	if ((int32_t)(head - ring->sq_seen) > 0) {
		*ret_nr = head - ring->sq_seen;
		ring->sq_seen = head;
	}
	return true;
}

/* From where and how many requests the kernel is going to take. */
static uint32_t find_pending(struct aio *x, struct capture *c, struct ring *ring,
			     const struct aio_call *call, uint32_t *ret_first)
{
	uint32_t head, tail, first, nr, wish = (uint32_t)call->regs[1];
	bool polled = ring->p.flags & IORING_SETUP_SQPOLL;

	if (!ring->sq_addr || !ring->sqes_addr ||
	    !read_u32(c, ring->sq_addr + ring->p.sq_off.head, &head) ||
	    !read_u32(c, ring->sq_addr + ring->p.sq_off.tail, &tail))
		return 0;
	/* Another thread that is in the call may have noted some that are still there. */
	first = polled || (int32_t)(ring->sq_seen - head) > 0 ? ring->sq_seen : head;
	nr = tail - first;
	if (nr > ring->p.sq_entries) {
		/* A program that moves its tail back, or requests that we did not see in time. */
		if ((int32_t)nr < 0)
			return 0;
		if (polled)
			x->nr_unseen += nr - ring->p.sq_entries;
		first = tail - ring->p.sq_entries;
		nr = ring->p.sq_entries;
	}
	if (!polled && nr > wish)
		nr = wish;
	*ret_first = first;
	return nr;
}

int ring_take_requests(struct aio *x, struct capture *c, const struct aio_call *call,
		       struct ring *ring, unsigned int arg_no)
{
	size_t size = sizeof(struct k_io_uring_sqe) << !!(ring->p.flags & IORING_SETUP_SQE128);
	struct capture_target t = { .a = &call->row->args[arg_no], .arg_no = (uint8_t)arg_no };
	uint32_t first = 0, nr = find_pending(x, c, ring, call, &first), i;
	const uint32_t *indices = read_indices(c, ring, first, nr);
	struct request *reqs = arena_alloc(c->arena, nr * sizeof(*reqs));
	uint8_t *bytes = arena_alloc(c->arena, nr * size);
	struct capture_job j;
	struct value list;
	int r;

	if (!indices)
		return 0;
	capture_begin(&j, c);
	j.row = call->row;
	j.regs = call->regs;
	j.args = call->args;
	nr = read_sqes(c, ring, indices, nr, bytes);
	list = value_list(c->arena, nr);
	for (i = 0; i < nr; i++) {
		struct k_io_uring_sqe sqe;

		memcpy(&sqe, bytes + i * size, sizeof(sqe));
		t.addr = ring->sqes_addr + indices[i] * size;
		list.items[i] = sqe_value(&j, ring, &sqe, &t);
		reqs[i] = request_of(ring, &sqe);
		watch_files(ring, &sqe);
	}
	r = capture_run(&j);
	for (i = 0; i < nr; i++)
		note_request(x, &reqs[i], &list.items[i]);
	ring->sq_seen = first + nr;
	call->args[arg_no] = list;
	return r;
}

void ring_give_back_requests(struct aio *x, const struct aio_call *call, struct ring *ring,
			     unsigned int arg_no)
{
	struct value *list = &call->args[arg_no];
	uint64_t taken = call->outcome->err ? 0 : (uint64_t)call->outcome->ret;
	uint32_t i;

	if (list->type != VALUE_LIST || ring->p.flags & IORING_SETUP_SQPOLL || taken >= list->count)
		return;
	for (i = (uint32_t)taken; i < list->count; i++) {
		const struct value *user_data =
			value_field(&list->items[i], FIELD_OF(io_uring_sqe, user_data));
		const struct value *number =
			value_field(&list->items[i], FIELD_OF(io_uring_sqe, request));
		uint64_t key[3] = { (uint64_t)ring->pid, ring->number, user_data->u };
		struct request *req = requests_find_number(&x->requests, key, number->u);

		if (req)
			requests_remove(&x->requests, req);
	}
	ring->sq_seen -= list->count - (uint32_t)taken;
	list->count = (uint32_t)taken;
}

/* Completions. */

static bool reads_data(const struct request *req)
{
	switch (req->opcode) {
	case IORING_OP_READ:
	case IORING_OP_READ_FIXED:
	case IORING_OP_READV:
	case IORING_OP_RECV:
	case OP_READV_FIXED:
		return !(req->flags & IOSQE_BUFFER_SELECT);
	}
	return false;
}

static bool opens_file(const struct request *req)
{
	switch (req->opcode) {
	case IORING_OP_OPENAT:
	case IORING_OP_OPENAT2:
	case IORING_OP_ACCEPT:
	case IORING_OP_SOCKET:
		return !req->file_index;
	case URING_FIXED_FD_INSTALL:
		return true;
	}
	return false;
}

/* Which fields the completion of a request has beyond its own bytes; 0: none. */
static unsigned int result_field(const struct request *req, const struct k_io_uring_cqe *cqe)
{
	if (reads_data(req))
		return cqe->res > 0 ? FIELD_OF(io_uring_cqe, buf) : 0;
	if (opens_file(req))
		return cqe->res >= 0 ? FIELD_OF(io_uring_cqe, file) : 0;
	switch (req->opcode) {
	case IORING_OP_STATX:
		return cqe->res == 0 ? FIELD_OF(io_uring_cqe, statx) : 0;
	case IORING_OP_RECVMSG:
		return cqe->res >= 0 && !(req->flags & IOSQE_BUFFER_SELECT)
			       ? FIELD_OF(io_uring_cqe, msg)
			       : 0;
	case OP_PIPE:
		return cqe->res == 0 && !req->file_index ? FIELD_OF(io_uring_cqe, fds) : 0;
	}
	return 0;
}

static void put_result(struct capture_job *j, const struct request *req,
		       const struct k_io_uring_cqe *cqe, pid_t tid, struct capture_target *t)
{
	struct stat st;

	t->flags = CAPTURE_AFTER;
	t->addr = req->addr;
	t->moved_bytes = (uint64_t)cqe->res;
	switch (t->a - struct_descs[STRUCT_io_uring_cqe].fields) {
	case FIELD_OF(io_uring_cqe, buf):
		aio_push_read(j, req, (uint64_t)cqe->res, t);
		return;
	case FIELD_OF(io_uring_cqe, file):
		if (found_stat(tid, cqe->res, &st))
			*t->dest = found_file_id(j->c, &st);
		return;
	case FIELD_OF(io_uring_cqe, statx):
		t->addr = req->addr2;
		break;
	case FIELD_OF(io_uring_cqe, fds):
		t->len = 2;
		break;
	}
	capture_push(j, t);
}

static struct value cqe_value(struct aio *x, struct capture_job *j, struct ring *ring,
			      const struct aio_call *call, bool early,
			      const struct k_io_uring_cqe *cqe)
{
	const struct arg cqe_arg = { .struct_id = STRUCT_io_uring_cqe };
	struct capture_target t = { .a = &cqe_arg };
	uint64_t key[3] = { (uint64_t)ring->pid, ring->number, cqe->user_data }, extra = 0;
	struct request *req = requests_find(&x->requests, key);
	unsigned int field = req ? result_field(req, cqe) : 0;
	bool direct = req && req->file_index && uring_op_opens(req->opcode) && cqe->res >= 0;
	struct value v;

	if (req)
		extra = FIELD_BIT(io_uring_cqe, opcode) | FIELD_BIT(io_uring_cqe, request);
	if (field)
		extra |= (UINT64_C(1) << field);
	if (early)
		extra |= FIELD_BIT(io_uring_cqe, early);
	if (direct)
		extra |= FIELD_BIT(io_uring_cqe, direct);
	v = capture_struct_from(j, &t, (const uint8_t *)cqe, sizeof(*cqe), extra);
	if (early)
		*value_field(&v, FIELD_OF(io_uring_cqe, early)) = value_uint(1);
	if (direct)
		*value_field(&v, FIELD_OF(io_uring_cqe, direct)) = value_uint(1);
	if (!req)
		return v;
	*value_field(&v, FIELD_OF(io_uring_cqe, opcode)) = value_uint(req->opcode);
	*value_field(&v, FIELD_OF(io_uring_cqe, request)) = value_uint(req->number);
	if (field) {
		t.a = &struct_descs[STRUCT_io_uring_cqe].fields[field];
		t.dest = value_field(&v, field);
		put_result(j, req, cqe, call->tid, &t);
	}
	if (req->file_index == FILE_INDEX_ALLOC && cqe->res >= 0)
		forget_files(ring, (uint64_t)cqe->res, 1);
	if (!(cqe->flags & IORING_CQE_F_MORE))
		requests_remove(&x->requests, req);
	return v;
}

/* The list with room for more behind its end. */
static struct value longer_list(struct arena *a, const struct value *list, uint32_t more)
{
	uint32_t had = list->type == VALUE_LIST ? list->count : 0;
	struct value v = value_list(a, had + more);

	if (had)
		memcpy(v.items, list->items, had * sizeof(*v.items));
	return v;
}

int ring_take_completions(struct aio *x, struct capture *c, const struct aio_call *call,
			  struct ring *ring, bool early, struct value *list)
{
	size_t size = sizeof(struct k_io_uring_cqe) << !!(ring->p.flags & IORING_SETUP_CQE32);
	struct capture_job j;
	uint32_t tail, nr, i;
	uint8_t *bytes;

	if (!ring->cq_addr || !read_u32(c, ring->cq_addr + ring->p.cq_off.tail, &tail))
		return 0;
	nr = tail - ring->cq_seen;
	if (nr > ring->p.cq_entries) {
		/* Overwritten before we looked. */
		c->truncated_bytes += (nr - ring->p.cq_entries) * size;
		ring->cq_seen = tail - ring->p.cq_entries;
		nr = ring->p.cq_entries;
	}
	bytes = arena_alloc(c->arena, nr * size);
	if (!read_wrapped(c, ring->cq_addr + ring->p.cq_off.cqes, ring->p.cq_entries, ring->cq_seen,
			  nr, size, bytes))
		return 0;
	ring->cq_seen = tail;
	*list = longer_list(c->arena, list, nr);
	capture_begin(&j, c);
	j.row = call->row;
	j.regs = call->regs;
	j.args = call->args;
	j.outcome = call->outcome;
	for (i = 0; i < nr; i++) {
		struct k_io_uring_cqe cqe;

		memcpy(&cqe, bytes + i * size, sizeof(cqe));
		list->items[list->count - nr + i] = cqe_value(x, &j, ring, call, early, &cqe);
	}
	return capture_run(&j);
}
