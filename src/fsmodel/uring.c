/* SPDX-License-Identifier: MIT */
/*
 * io_uring. A request is kept from the call that submits it until its completion
 * is seen; then it is made as the call that it stands for, with the outcome that
 * the completion tells. While it is in flight it touches what it works on; both
 * ends of its life do so again.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>

#include "base/banned.h"
#include "fsmodel/tables.h"
#include "model/uring.h"

#define REQUESTS_MAX 65536 /* in flight in one ring; the kernel has half of that */
#define FIXED_MAX 65536
#define SQE_FIXED_FILE 1
#define PATH_BYTES_MAX 4096
/* Under which a file is opened that goes to the ring's own table: no program has so many. */
#define DIRECT_NUMBER (INT32_MAX - 1)

struct uring_request {
	struct res res; /* RES_AIO */
	uint8_t opcode;
	uint8_t flags;
	struct open_file
		*open; /* held: what the descriptor was when it was submitted; may be NULL */
	int64_t fd;
	int64_t off;
	uint32_t file_index; /* 1 + that of the ring's own table, or URING_INDEX_ALLOC; 0: none */
	uint64_t len, op_flags, bytes, addr;
	uint64_t how_flags, how_mode; /* of OPENAT2 */
	char *path, *path2; /* may be NULL */
	size_t path_len, path2_len;
	struct request_end end; /* where it was submitted; the rest comes with its completion */
};

struct uring {
	struct ids requests; /* number -> struct uring_request */
	struct open_file **fixed; /* held; NULL entries are free */
	uint32_t nr_fixed;
};

static void request_free(struct call *c, struct fsmodel *m, struct uring_request *q)
{
	if (c)
		touch_use(c, &q->res, TOUCH_DELETE);
	if (q->open)
		open_file_unref(c, m, q->open);
	free(q->path);
	free(q->path2);
	res_bury(m, &q->res, NULL);
}

static void drop_fixed(struct call *c, struct fsmodel *m, struct uring *u)
{
	uint32_t n;

	for (n = 0; n < u->nr_fixed; n++) {
		if (u->fixed[n])
			open_file_unref(c, m, u->fixed[n]);
	}
	free(u->fixed);
	u->fixed = NULL;
	u->nr_fixed = 0;
}

void uring_free(struct call *c, struct fsmodel *m, struct uring *u)
{
	IDS_EACH (&u->requests, s)
		request_free(c, m, s->value);
	ids_release(&u->requests);
	drop_fixed(c, m, u);
	free(u);
}

/* Setting up. */

static struct outcome ask_setup(struct call *c)
{
	c->any_ret = true;
	return succeeds(0);
}

static void apply_setup(struct call *c)
{
	struct open_file *o = open_file_new(c->m, OBJECT_URING, O_RDWR);

	o->uring = xcalloc(1, sizeof(*o->uring));
	fd_make_result(c, o, true);
}

const struct call_row model_io_uring_setup = { ask_setup, apply_setup, NULL };

/* A registered ring stands in the arguments by its index: nothing is known then. */
static struct outcome ask_ring(struct call *c)
{
	const struct value *opcode = arg_at(c, 1);
	bool registered = c->ev->row->id == SC_io_uring_enter
				  ? value_int_or(arg_at(c, 3), 0) & 16
				  : value_int_or(opcode, 0) & 0x80000000ll;

	c->any_ret = c->unsure = true;
	if (registered)
		return succeeds(0);
	c->fd = fd_get(c, value_int_or(arg_at(c, 0), -1));
	if (!c->fd)
		return fails(EBADF);
	if (c->fd->open->unknown && !c->quiet) {
		c->fd->open->unknown = false;
		c->fd->open->object = OBJECT_URING;
	}
	if (c->fd->open->object != OBJECT_URING)
		return fails(EOPNOTSUPP);
	if (!c->fd->open->uring && !c->quiet)
		c->fd->open->uring = xcalloc(1, sizeof(*c->fd->open->uring));
	return succeeds(0);
}

/* Takes over a reference to the file; NULL: none. */
static void put_fixed(struct call *c, struct uring *u, uint64_t index, struct open_file *o)
{
	if (index >= FIXED_MAX || (o && o->object == OBJECT_URING)) {
		/* The kernel takes no rings: they would hold themselves. */
		if (o)
			open_file_unref(c, c->m, o);
		o = NULL;
	}
	if (index >= FIXED_MAX)
		return;
	if (index >= u->nr_fixed) {
		uint32_t want = (uint32_t)index + 1;

		u->fixed = xrealloc(u->fixed, want * sizeof(*u->fixed));
		memset(u->fixed + u->nr_fixed, 0, (want - u->nr_fixed) * sizeof(*u->fixed));
		u->nr_fixed = want;
	}
	if (u->fixed[index])
		open_file_unref(c, c->m, u->fixed[index]);
	u->fixed[index] = o;
}

static void set_fixed(struct call *c, struct uring *u, uint64_t from, const struct value *list)
{
	struct value *item;
	uint32_t n;

	for (n = 0; (item = value_item(list, n)) && from + n < FIXED_MAX; n++) {
		int64_t number = value_int_or(item, -1);
		struct descriptor *d;

		if (number == -2) /* IORING_REGISTER_FILES_SKIP */
			continue;
		d = fd_table_get(c->thread->files, number);
		if (d)
			d->open->refs++;
		put_fixed(c, u, from + n, d ? d->open : NULL);
	}
}

static void apply_register(struct call *c)
{
	struct uring *u = c->fd ? c->fd->open->uring : NULL;
	const struct value *arg = c->ev->row->nr_args > 2 ? arg_at(c, 2) : NULL;

	if (!u)
		return;
	switch (c->ev->row->id) {
	case SC_io_uring_register_files:
		drop_fixed(c, c->m, u);
		set_fixed(c, u, 0, arg);
		break;
	case SC_io_uring_register_files2:
		drop_fixed(c, c->m, u);
		set_fixed(c, u, 0, field_of(arg, STRUCT_io_uring_rsrc_files, "data"));
		break;
	case SC_io_uring_register_files_update:
		set_fixed(c, u,
			  (uint64_t)value_int_or(
				  field_of(arg, STRUCT_io_uring_files_update, "offset"), 0),
			  field_of(arg, STRUCT_io_uring_files_update, "fds"));
		break;
	case SC_io_uring_register_files_update2:
		set_fixed(c, u,
			  (uint64_t)value_int_or(
				  field_of(arg, STRUCT_io_uring_rsrc_update2_files, "offset"), 0),
			  field_of(arg, STRUCT_io_uring_rsrc_update2_files, "data"));
		break;
	case SC_io_uring_unregister_files:
		drop_fixed(c, c->m, u);
		break;
	default:
		break;
	}
}

#define REGISTER(name)                                                                             \
	const struct call_row model_io_uring_##name = { ask_ring, apply_register, NULL }

REGISTER(register_buffers);
REGISTER(unregister_buffers);
REGISTER(register_files);
REGISTER(unregister_files);
REGISTER(register_eventfd);
REGISTER(unregister_eventfd);
REGISTER(register_files_update);
REGISTER(register_eventfd_async);
REGISTER(register_enable_rings);
REGISTER(register_files2);
REGISTER(register_files_update2);
REGISTER(register_buffers2);
REGISTER(register_buffers_update);
REGISTER(register_ring_fds);
REGISTER(unregister_ring_fds);
REGISTER(register_pbuf_ring);
REGISTER(unregister_pbuf_ring);
REGISTER(register_file_alloc_range);
REGISTER(register_clone_buffers);
REGISTER(register_resize_rings);

/* Requests. */

static char *copy_path(const struct value *sqe, const char *name, size_t *ret_len)
{
	const struct value *v = field_of(sqe, STRUCT_io_uring_sqe, name);

	if (!v || v->type != VALUE_DATA || !v->data->bytes || v->data->kept_bytes > PATH_BYTES_MAX)
		return NULL;
	*ret_len = v->data->kept_bytes;
	return xmemdup0(v->data->bytes, v->data->kept_bytes);
}

static struct open_file *file_of(struct call *c, struct uring *u, const struct uring_request *q)
{
	struct descriptor *d;

	if (q->flags & SQE_FIXED_FILE)
		return q->fd >= 0 && q->fd < u->nr_fixed ? u->fixed[q->fd] : NULL;
	if (q->fd < 0 || q->opcode == URING_SOCKET || (q->opcode == URING_CLOSE && q->file_index))
		return NULL;
	d = fd_get(c, q->fd);
	return d ? d->open : NULL;
}

static uint64_t bytes_of(const struct value *sqe, const struct uring_request *q)
{
	if (q->opcode != URING_READV && q->opcode != URING_WRITEV &&
	    q->opcode != URING_READV_FIXED && q->opcode != URING_WRITEV_FIXED)
		return q->len;
	return vector_bytes(field_of(sqe, STRUCT_io_uring_sqe, "iov"));
}

static bool is_transfer(uint8_t opcode, bool *ret_write)
{
	switch (opcode) {
	case URING_WRITEV:
	case URING_WRITEV_FIXED:
	case URING_WRITE_FIXED:
	case URING_WRITE:
	case URING_SEND:
		*ret_write = true;
		return true;
	case URING_READV:
	case URING_READV_FIXED:
	case URING_READ_FIXED:
	case URING_READ:
	case URING_RECV:
		*ret_write = false;
		return true;
	default:
		return false;
	}
}

/* The transfer that the request is; d stands in for the descriptor that it may no longer have. */
static bool request_transfer(const struct uring_request *q, struct descriptor *d,
			     struct transfer *t)
{
	*t = (struct transfer){ .d = d, .count = q->bytes, .offset = q->off };
	*d = (struct descriptor){ .open = q->open };
	t->positional = q->off != -1 && q->opcode != URING_SEND && q->opcode != URING_RECV;
	/* Where positions mean nothing the ring does not mind one. */
	if (q->open &&
	    (q->open->object != OBJECT_FILE || (q->open->inode && q->open->inode->type == S_IFIFO)))
		t->positional = false;
	return is_transfer(q->opcode, &t->write) && q->open && !q->open->unknown &&
	       (!t->positional || t->offset >= 0);
}

static void touch_request(struct call *c, const struct uring_request *q)
{
	struct descriptor d;
	struct transfer t;

	if (!q->open)
		return;
	touch_use(c, &q->open->res, TOUCH_USE);
	if (q->opcode == URING_FSYNC && q->open->inode)
		touch_add(c, &q->open->inode->res, TOUCH_READ | TOUCH_SIZE_READ | TOUCH_META_READ,
			  0, TOUCH_TO_END);
	else if (request_transfer(q, &d, &t))
		(void)transfer_ask(c, &t);
}

static void submit(struct call *c, struct uring *u, struct value *sqe, uint32_t n)
{
	uint64_t number = (uint64_t)uring_sqe_int(sqe, "request");
	const struct value *how = field_of(sqe, STRUCT_io_uring_sqe, "how");
	struct uring_request *q = ids_remove(&u->requests, number);

	if (q)
		request_free(c, c->m, q);
	refs_of_request(c, sqe);
	if (u->requests.nr_used >= REQUESTS_MAX)
		return;
	q = xcalloc(1, sizeof(*q));
	res_init(c->m, &q->res, RES_AIO);
	q->end = request_begin(c, n);
	q->opcode = (uint8_t)uring_sqe_int(sqe, "opcode");
	q->flags = (uint8_t)uring_sqe_int(sqe, "flags");
	q->fd = uring_sqe_int(sqe, "fd");
	q->off = uring_sqe_int(sqe, "off");
	q->file_index = uring_file_index(sqe);
	q->len = (uint64_t)uring_sqe_int(sqe, "len");
	q->addr = value_addr_or0(field_of(sqe, STRUCT_io_uring_sqe, "addr"));
	q->op_flags = (uint64_t)uring_sqe_int(sqe, "op_flags");
	q->bytes = bytes_of(sqe, q);
	q->how_flags = (uint64_t)value_int_or(field_of(how, STRUCT_open_how, "flags"), 0);
	q->how_mode = (uint64_t)value_int_or(field_of(how, STRUCT_open_how, "mode"), 0);
	q->path = copy_path(sqe, "path", &q->path_len);
	q->path2 = copy_path(sqe, "path2", &q->path2_len);
	q->open = file_of(c, u, q);
	if (q->opcode == URING_FILES_UPDATE)
		set_fixed(c, u, (uint64_t)q->off, field_of(sqe, STRUCT_io_uring_sqe, "fds"));
	if (q->open && q->open->object == OBJECT_URING)
		q->open = NULL; /* nothing is read from or written to a ring */
	if (q->open)
		q->open->refs++;
	ids_set(&u->requests, number, q);
	touch_use(c, &q->res, TOUCH_CREATE);
	/* Names begin where the thread is that submits them, whoever looks them up, and when. */
	if (q->path) {
		touch_use(c, &c->fs->root->res, 0);
		touch_use(c, &c->fs->cwd->res, 0);
	}
	touch_request(c, q);
}

/* Making the call that a completed request stands for. */

/* An event of that call, with room for what its arguments need. */
struct stand_in {
	struct event ev;
	struct data path, path2;
};

static struct value path_value(struct data *d, const char *path, size_t len)
{
	if (!path)
		return (struct value){ .type = VALUE_NONE };
	*d = (struct data){ .len_bytes = len, .kept_bytes = len, .bytes = (const uint8_t *)path };
	return (struct value){ .type = VALUE_DATA, .data = d };
}

static void set_call(struct stand_in *s, unsigned int id, const struct event *like, int64_t res)
{
	s->ev = *like;
	s->ev.row = row_by_id(id);
	memset(s->ev.args, 0, sizeof(s->ev.args));
	s->ev.outcome = res < 0 ? (struct outcome){ .ret = -1, .err = (int32_t) - (uint64_t)res }
				: (struct outcome){ .ret = res };
}

/* false: no call that the model knows. */
static bool stand_in_for(struct stand_in *s, const struct uring_request *q, const struct event *ev,
			 int64_t res)
{
	struct value *args = s->ev.args;

	switch (q->opcode) {
	case URING_OPENAT:
		set_call(s, SC_openat, ev, res);
		args[0] = value_int(q->fd);
		args[1] = path_value(&s->path, q->path, q->path_len);
		args[2] = value_uint(q->op_flags);
		args[3] = value_uint(q->len);
		return true;
	case URING_OPENAT2:
		set_call(s, SC_openat, ev, res);
		args[0] = value_int(q->fd);
		args[1] = path_value(&s->path, q->path, q->path_len);
		args[2] = value_uint(q->how_flags);
		args[3] = value_uint(q->how_mode);
		return true;
	case URING_CLOSE:
		set_call(s, SC_close, ev, res);
		args[0] = value_int(q->fd);
		return true;
	case URING_UNLINKAT:
		set_call(s, SC_unlinkat, ev, res);
		args[0] = value_int(q->fd);
		args[1] = path_value(&s->path, q->path, q->path_len);
		args[2] = value_uint(q->op_flags);
		return true;
	case URING_MKDIRAT:
		set_call(s, SC_mkdirat, ev, res);
		args[0] = value_int(q->fd);
		args[1] = path_value(&s->path, q->path, q->path_len);
		args[2] = value_uint(q->len);
		return true;
	case URING_RENAMEAT:
	case URING_LINKAT:
		set_call(s, q->opcode == URING_LINKAT ? SC_linkat : SC_renameat2, ev, res);
		args[0] = value_int(q->fd);
		args[1] = path_value(&s->path, q->path, q->path_len);
		args[2] = value_int((int32_t)q->len);
		args[3] = path_value(&s->path2, q->path2, q->path2_len);
		args[4] = value_uint(q->op_flags);
		return true;
	case URING_SYMLINKAT:
		set_call(s, SC_symlinkat, ev, res);
		args[0] = path_value(&s->path, q->path, q->path_len);
		args[1] = value_int(q->fd);
		args[2] = path_value(&s->path2, q->path2, q->path2_len);
		return true;
	case URING_FALLOCATE:
		set_call(s, SC_fallocate, ev, res);
		args[0] = value_int(q->fd);
		args[1] = value_uint(q->len);
		args[2] = value_int(q->off);
		args[3] = value_uint(q->addr);
		return !(q->flags & SQE_FIXED_FILE);
	case URING_FTRUNCATE:
		set_call(s, SC_ftruncate, ev, res);
		args[0] = value_int(q->fd);
		args[1] = value_int(q->off);
		return !(q->flags & SQE_FIXED_FILE);
	default:
		return false;
	}
}

/* The call within the call: same facts, its own event. True: it failed, and nothing that is modelled says why. */
static bool make_call(struct call *c, struct stand_in *s, const struct value *cqe)
{
	const struct row_info *info = &c->m->tables->rows[s->ev.row->id];
	struct outcome result = c->m->tables->result;
	const struct value *file = field_of(cqe, STRUCT_io_uring_cqe, "file");
	struct call inner = *c;
	struct outcome foretold;

	if (!info->calls)
		return false;
	if (file && s->ev.row->id == SC_openat)
		s->ev.args[4] = *file;
	memset(&inner.at, 0, sizeof(inner.at));
	memset(&inner.at2, 0, sizeof(inner.at2));
	memset(&inner.t1, 0, sizeof(inner.t1));
	memset(&inner.t2, 0, sizeof(inner.t2));
	inner.ev = &s->ev;
	inner.fd = inner.fd2 = NULL;
	inner.any_ret = inner.unsure = false;
	inner.want_ok = !s->ev.outcome.err;
	c->facts->by_environment = false;
	foretold = info->calls->ask(&inner);
	if (foretold.err && !s->ev.outcome.err && info->calls->mend && info->calls->mend(&inner)) {
		memset(&inner.at, 0, sizeof(inner.at));
		memset(&inner.at2, 0, sizeof(inner.at2));
		foretold = info->calls->ask(&inner);
	}
	c->m->tables->result = s->ev.outcome;
	if (!s->ev.outcome.err && !foretold.err && info->calls->apply)
		info->calls->apply(&inner);
	else if (!s->ev.outcome.err && info->makes_fd)
		fd_make_result(&inner, open_file_unknown(c->m), false);
	else if (!s->ev.outcome.err && foretold.err && !inner.unsure)
		contradict(c, CONTRADICTION_ERROR, false, "%s in a request should have failed",
			   s->ev.row->name);
	c->m->tables->result = result;
	return s->ev.outcome.err && fsmodel_is_change(c->m, &s->ev) &&
	       (foretold.err != s->ev.outcome.err || c->facts->by_environment);
}

/* True: likewise, or it was cut short. Reads without an offset move one. */
static bool make_transfer(struct call *c, struct transfer *t, int64_t res)
{
	struct outcome foretold = transfer_ask(c, t);

	if (!foretold.err && res >= 0)
		transfer_apply(c, t, (uint64_t)res > t->count ? t->count : (uint64_t)res);
	if (res >= 0)
		return t->write && (uint64_t)res < t->count;
	return foretold.err != (int32_t)(0 - (uint64_t)res) && (t->write || !t->positional);
}

/* The descriptor may lead elsewhere by now: another thread may have closed and used it again. */
static bool closes_its_file(struct call *c, const struct uring_request *q)
{
	const struct descriptor *d = fd_table_get(c->thread->files, q->fd);

	return !q->open || (d && d->open == q->open);
}

/* What was just opened goes to the ring's own table. */
static void move_to_fixed(struct call *c, struct uring *u, const struct uring_request *q,
			  int64_t res)
{
	struct descriptor *d = fd_table_get(c->thread->files, DIRECT_NUMBER);

	if (!d)
		return;
	d->open->refs++;
	put_fixed(c, u, q->file_index == URING_INDEX_ALLOC ? (uint64_t)res : q->file_index - 1,
		  d->open);
	fd_close(c, DIRECT_NUMBER);
}

/* Descriptors that requests make without a call of the table. */
static void make_fd(struct call *c, struct open_file *o, int64_t number)
{
	struct outcome result = c->m->tables->result;

	c->m->tables->result.ret = number;
	fd_make_result(c, o, true);
	c->m->tables->result = result;
}

/* True: it failed for a reason of the environment, and would change something. */
static bool complete_other(struct call *c, struct uring *u, struct uring_request *q,
			   const struct value *cqe, int64_t res)
{
	int64_t number = q->file_index && res >= 0 ? DIRECT_NUMBER : res;
	struct stand_in s;
	bool failed = false;

	if (q->opcode == URING_CLOSE && q->file_index) {
		if (!res)
			put_fixed(c, u, q->file_index - 1, NULL);
		return false;
	}
	if (q->opcode == URING_CLOSE && !closes_its_file(c, q))
		return false;
	if (q->opcode == URING_FIXED_FD_INSTALL) {
		if (res >= 0)
			make_fd(c, q->open ? q->open : open_file_unknown(c->m), res);
		return false;
	}
	if (q->opcode == URING_ACCEPT || q->opcode == URING_SOCKET) {
		if (res >= 0)
			make_fd(c, open_file_new(c->m, OBJECT_SOCKET, O_RDWR), number);
	} else if (stand_in_for(&s, q, c->ev, number)) {
		failed = make_call(c, &s, cqe);
	}
	if (q->file_index && res >= 0)
		move_to_fixed(c, u, q, res);
	return failed;
}

/* Traces of before the mark `direct` do not tell an index from a descriptor. */
static void mark_direct(const struct uring_request *q, const struct value *cqe)
{
	struct value *res = uring_new_fd(cqe);

	if (res && q->file_index)
		*res = value_int(-EOPNOTSUPP);
}

/* Files of the ring's own table have no number by which a call could be made on them. */
static bool changes_fixed(const struct uring_request *q)
{
	return (q->flags & SQE_FIXED_FILE) && q->open && q->open->inode &&
	       (q->opcode == URING_FALLOCATE || q->opcode == URING_FTRUNCATE);
}

static void complete(struct call *c, struct uring *u, struct value *cqe)
{
	uint64_t number = (uint64_t)uring_cqe_int(cqe, "request");
	int64_t res = uring_cqe_int(cqe, "res");
	struct uring_request *q = ids_get(&u->requests, number);
	struct descriptor d;
	struct transfer t;
	bool failed = false;

	if (!q) {
		refs_of_completion(c, cqe);
		return;
	}
	if (request_transfer(q, &d, &t)) {
		failed = make_transfer(c, &t, res);
	} else if (q->opcode == URING_FSYNC) {
		touch_request(c, q);
	} else if (changes_fixed(q)) {
		q->open->inode->size_known = false;
		touch_add(c, &q->open->inode->res, TOUCH_WRITE | TOUCH_SIZE_WRITE, 0, TOUCH_TO_END);
	} else {
		failed = complete_other(c, u, q, cqe, res);
	}
	if (failed || request_fails_alone(res))
		request_push_end(c, &q->end, cqe, res);
	mark_direct(q, cqe);
	refs_of_completion(c, cqe);
	/* More is to come of the same request (IORING_CQE_F_MORE). */
	if (uring_cqe_int(cqe, "flags") & 2)
		return;
	ids_remove(&u->requests, number);
	request_free(c, c->m, q);
}

void uring_collect(struct call *c)
{
	struct value *item;
	uint32_t n;

	for (n = 0; (item = value_item(arg_at(c, 6), n)); n++)
		refs_of_request(c, item);
	for (n = 0; (item = value_item(arg_at(c, 7), n)); n++)
		refs_of_completion(c, item);
}

static void complete_all(struct call *c, struct uring *u, bool early)
{
	int64_t min_complete = value_int_or(arg_at(c, 2), 0);
	struct value *item;
	uint32_t n;

	for (n = 0; (item = value_item(arg_at(c, 7), n)); n++) {
		if (uring_is_early(item, min_complete, arg_at(c, 6)) == early)
			complete(c, u, item);
	}
}

static void apply_enter(struct call *c)
{
	struct open_file *ring = c->fd ? c->fd->open : NULL;
	struct value *item;
	uint32_t n;

	if (!ring || !ring->uring) {
		uring_collect(c);
		return;
	}
	/* A request may close the ring itself. */
	ring->refs++;
	complete_all(c, ring->uring, true);
	for (n = 0; (item = value_item(arg_at(c, 6), n)); n++)
		submit(c, ring->uring, item, n);
	complete_all(c, ring->uring, false);
	c->any_ret = c->unsure = true;
	open_file_unref(c, c->m, ring);
}

const struct call_row model_io_uring_enter = { ask_ring, apply_enter, NULL };
