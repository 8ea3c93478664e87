/* SPDX-License-Identifier: MIT */
/*
 * Requests of asynchronous I/O. They may be in flight after their action is
 * performed, so all that they use is in the action's own memory: what they read
 * too, where it is to be verified.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/banned.h"
#include "model/kernel_structs.h"
#include "model/uring.h"
#include "plan/refs.h"
#include "plan/result.h"
#include "replay/build.h"
#include "replay/flight.h"
#include "replay/ring_files.h"

#define REQUESTS_MAX 4096
#define RING_FILES_MAX 65536 /* more the kernel does not give by default */
#define READ_KEPT_MAX ((uint64_t)4 << 20) /* of a larger one the data is not verified */
#define KEPT_LINKS (IOSQE_IO_DRAIN | IOSQE_IO_LINK | IOSQE_IO_HARDLINK | IOSQE_ASYNC)

enum iocb_cmd {
	AIO_PREAD = 0,
	AIO_PWRITE = 1,
	AIO_FSYNC = 2,
	AIO_FDSYNC = 3,
	AIO_PREADV = 7,
	AIO_PWRITEV = 8,
};

static bool is_verified(const struct builder *b)
{
	return b->run->o->verify != RUN_VERIFY_OFF && b->run->engine->gives_back &&
	       !(b->act->flags & ACTION_SETUP);
}

static bool is_kept(const struct run *run, uint64_t len)
{
	return run->o->verify == RUN_VERIFY_DATA && len <= READ_KEPT_MAX;
}

/* Room for what a request reads; where nobody will look at it the sink is good enough. */
static void *build_room(struct builder *b, struct request *q, uint64_t len, uint64_t *ret_room)
{
	void *p;

	*ret_room = len;
	if (is_kept(b->run, len)) {
		q->data = build_alloc(b, len, 4096);
		return q->data;
	}
	p = run_sink(b->run);
	b->unbuilt |= !p;
	if (len > b->run->sink_bytes)
		*ret_room = b->run->sink_bytes;
	return p;
}

static void build_buffer(struct builder *b, struct request *q, const struct value *data,
			 uint64_t len, bool write)
{
	uint64_t room;

	q->nr = write ? SYS_pwrite64 : SYS_pread64;
	if (write)
		q->regs[1] = (uint64_t)(uintptr_t)build_data(b, data, len, &room);
	else
		q->regs[1] = (uint64_t)(uintptr_t)build_room(b, q, len, &room);
	q->regs[2] = len < room ? len : room;
	if (!write && build_skips_reads(b->run, b->act))
		q->nr = -1;
}

static uint64_t vector_bytes(const struct value *iov)
{
	uint64_t sum = 0;
	uint32_t i;

	for (i = 0; iov->type == VALUE_LIST && i < iov->count && i < IOVECS_MAX; i++) {
		uint64_t len = build_uint(build_field_of(&iov->items[i], STRUCT_iovec, "iov_len"));

		sum = len > UINT64_MAX - sum ? UINT64_MAX : sum + len;
	}
	return sum;
}

static void *build_read_vectors(struct builder *b, struct request *q, const struct value *list,
				uint64_t nr)
{
	struct iovec *iov = build_alloc(b, (nr ? nr : 1) * sizeof(*iov), 8);
	uint64_t i, done = 0, room;
	uint8_t *p = build_room(b, q, vector_bytes(list), &room);

	for (i = 0; iov && p && i < nr; i++) {
		uint64_t len = build_uint(build_field_of(&list->items[i], STRUCT_iovec, "iov_len"));

		/* What is kept is kept in one piece, as the trace has it. */
		iov[i].iov_base = q->data ? p + done : p;
		iov[i].iov_len = len < room ? len : room;
		done += len;
	}
	return iov;
}

static void build_vectors(struct builder *b, struct request *q, const struct value *iov, bool write)
{
	q->nr = write ? SYS_pwritev2 : SYS_preadv2;
	q->regs[2] = iov->type == VALUE_LIST ? iov->count : 0;
	if (q->regs[2] > IOVECS_MAX)
		q->regs[2] = IOVECS_MAX;
	q->regs[1] = (uint64_t)(uintptr_t)(write ? build_iovecs(b, iov, q->regs[2], false)
						 : build_read_vectors(b, q, iov, q->regs[2]));
	if (!write && build_skips_reads(b->run, b->act))
		q->nr = -1;
}

static struct requests *build_requests(struct builder *b, uint32_t nr)
{
	struct requests *all = build_alloc(b, sizeof(*all), 8);

	if (!all || nr > REQUESTS_MAX) {
		b->unbuilt = true;
		return NULL;
	}
	all->items = build_alloc(b, nr * sizeof(*all->items), 8);
	all->nr = all->items ? nr : 0;
	if (nr && !b->l->aloft)
		b->l->aloft = xcalloc(FLIGHT_ALOFT_MAX, sizeof(*b->l->aloft));
	if ((b->act->flags & ACTION_SETUP) || lane_is_prologue(b->l))
		b->a->flags |= READY_AT_ONCE;
	b->a->extra = all;
	return all;
}

/* The trace says that the request failed, and it might not fail here: it is not made. */
static bool is_enforced(const struct builder *b, uint32_t number)
{
	int64_t res;

	return plan_request_outcome(b->l->plan->plan, b->act, number, &res) && res < 0;
}

/* A write that was cut short there writes no more here. */
static void cut_request(const struct builder *b, uint32_t number, struct request *q)
{
	int64_t res;

	if (!plan_request_outcome(b->l->plan->plan, b->act, number, &res) || res < 0)
		return;
	if (q->nr == SYS_pwritev2)
		build_cut_vector((struct iovec *)(uintptr_t)q->regs[1], &q->regs[2], (uint64_t)res);
	else if ((q->nr == SYS_pwrite64 || q->nr == SYS_write) && q->regs[2] > (uint64_t)res)
		q->regs[2] = (uint64_t)res;
}

static void request_init(struct request *q)
{
	*q = (struct request){ .nr = -1, .slot = READY_NO_SLOT, .slot2 = READY_NO_SLOT };
}

/* The kernel's first kind. */

static void build_io_setup(struct builder *b)
{
	const struct value *v = build_arg_of(b, "ctx_idp");
	uint32_t slot;

	if (v->type == VALUE_LIST && v->count && plan_get_aio_ref(&v->items[0], &slot))
		b->a->slots[0] = build_slot(b, slot);
	if (b->run->engine->gives_back)
		b->a->extra = flight_new(b->run);
}

static void build_iocb(struct builder *b, const struct value *v, uint32_t number, struct request *q)
{
	static const struct arg type = { .kind = KIND_STRUCT, .struct_id = STRUCT_iocb };
	const struct value *fd = build_field_of(v, STRUCT_iocb, "aio_fildes");
	struct k_iocb *cb = build_alloc(b, sizeof(*cb), 8);
	uint32_t slot;
	uint64_t nr;

	request_init(q);
	if (!cb)
		return;
	build_struct(b, &type, v, (uint8_t *)cb);
	q->block = cb;
	q->slot = fd->type == VALUE_INT ? build_slot(b, fd->i) : READY_NO_SLOT;
	if (q->slot == READY_NO_SLOT && !b->act->outcome.err)
		q->flags |= REQUEST_ABSENT;
	q->number = UINT64_MAX;
	if (plan_get_aio_ref(build_field_of(v, STRUCT_iocb, "obj"), &slot))
		q->number = build_slot(b, slot);
	nr = cb->aio_nbytes;
	cb->aio_flags = 0; /* no eventfd: who waits for it waits by an edge */
	cb->aio_resfd = 0;
	cb->aio_key = 0;
	cb->aio_buf = 0;
	cb->aio_nbytes = 0;
	if (is_enforced(b, number))
		return;
	switch (cb->aio_lio_opcode) {
	case AIO_PREAD:
	case AIO_PWRITE:
		build_buffer(b, q, build_field_of(v, STRUCT_iocb, "buf"), nr,
			     cb->aio_lio_opcode == AIO_PWRITE);
		break;
	case AIO_PREADV:
	case AIO_PWRITEV:
		build_vectors(b, q, build_field_of(v, STRUCT_iocb, "iov"),
			      cb->aio_lio_opcode == AIO_PWRITEV);
		break;
	case AIO_FSYNC:
	case AIO_FDSYNC:
		q->nr = SYS_fsync;
		break;
	default: /* waiting, and what the kernel refuses */
		if (b->act->outcome.err && cb->aio_lio_opcode > AIO_PWRITEV)
			q->nr = SYS_fsync;
		break;
	}
	cut_request(b, number, q);
	cb->aio_buf = q->regs[1];
	cb->aio_nbytes = q->regs[2];
	if (cb->aio_lio_opcode != AIO_PREAD && cb->aio_lio_opcode != AIO_PREADV)
		q->flags |= REQUEST_CHANGES;
}

static void build_io_submit(struct builder *b)
{
	const struct value *list = build_arg_of(b, "iocbpp");
	uint32_t i, nr = list->type == VALUE_LIST ? list->count : 0;
	struct requests *all = build_requests(b, nr);

	if (!all)
		return;
	all->blocks = build_alloc(b, nr * sizeof(struct k_iocb *), 8);
	for (i = 0; i < all->nr && !b->unbuilt; i++)
		build_iocb(b, &list->items[i], i, &all->items[i]);
}

/* What the trace says of the requests that were seen to complete: named by their slots. */
static void build_aio_completions(struct builder *b)
{
	const struct value *list = build_arg_of(b, "events");
	uint32_t i, slot, nr = list->type == VALUE_LIST ? list->count : 0;
	struct requests *all = build_requests(b, 0);

	if (!all || nr > REQUESTS_MAX)
		return;
	all->done.items = build_alloc(b, nr * sizeof(*all->done.items), 8);
	for (i = 0; all->done.items && i < nr; i++) {
		const struct value *res = build_field_of(&list->items[i], STRUCT_io_event, "res");
		const struct value *obj = build_field_of(&list->items[i], STRUCT_io_event, "obj");
		struct completion *want = &all->done.items[all->done.nr];

		if (res->type != VALUE_INT || !plan_get_aio_ref(obj, &slot))
			continue;
		*want = (struct completion){ .number = build_slot(b, slot),
					     .slot = READY_NO_SLOT,
					     .res = res->i,
					     .is_verified = is_verified(b),
					     .counts_bytes = true };
		want->has_hash =
			want->res > 0 && b->run->o->verify == RUN_VERIFY_DATA &&
			result_hash_value(build_field_of(&list->items[i], STRUCT_io_event, "buf"),
					  (uint64_t)want->res, &want->hash);
		all->done.nr++;
	}
}

/* io_uring. */

static uint64_t sqe_uint(const struct value *v, const char *name)
{
	return build_uint(build_field_of(v, STRUCT_io_uring_sqe, name));
}

static uint64_t sqe_path(struct builder *b, const struct value *v, const char *name)
{
	const struct value *path = build_field_of(v, STRUCT_io_uring_sqe, name);

	return path->type == VALUE_DATA ? (uint64_t)(uintptr_t)build_string(b, path) : 0;
}

/* A descriptor is looked up when the request is submitted: what came before may have opened it. */
static void request_fd(struct builder *b, const struct value *sqe, struct request *q)
{
	const struct value *fd = build_field_of(sqe, STRUCT_io_uring_sqe, "fd");

	q->direct = uring_file_index(sqe);
	if (sqe_uint(sqe, "flags") & IOSQE_FIXED_FILE) {
		q->fixed = (uint32_t)sqe_uint(sqe, "fd") + 1;
		return;
	}
	q->regs[0] = (uint64_t)-1;
	if (fd->type != VALUE_INT || (q->direct && q->opcode == IORING_OP_CLOSE))
		return;
	q->slot = build_slot(b, fd->i);
	if (fd->i < 0)
		q->regs[0] = (uint64_t)fd->i;
	if (fd->i < 0 && fd->i != AT_FDCWD)
		q->flags |= REQUEST_ABSENT;
}

static void request_data(struct builder *b, const struct value *sqe, struct request *q, bool write)
{
	build_buffer(b, q, build_field_of(sqe, STRUCT_io_uring_sqe, "buf"), sqe_uint(sqe, "len"),
		     write);
	q->regs[3] = sqe_uint(sqe, "off");
	if (q->nr >= 0 && q->regs[3] == UINT64_MAX) /* at the file's own offset */
		q->nr = write ? SYS_write : SYS_read;
}

static void request_vectors(struct builder *b, const struct value *sqe, struct request *q,
			    bool write)
{
	build_vectors(b, q, build_field_of(sqe, STRUCT_io_uring_sqe, "iov"), write);
	q->regs[3] = sqe_uint(sqe, "off");
	q->regs[5] = q->op_flags;
}

static void request_open(struct builder *b, const struct value *sqe, struct request *q, bool how)
{
	static const struct arg type = { .kind = KIND_STRUCT, .struct_id = STRUCT_open_how };
	uint8_t *mem;

	q->flags |= REQUEST_OPENS;
	if (q->direct)
		q->flags |= REQUEST_BY_CALL;
	q->regs[1] = sqe_path(b, sqe, "path");
	if (!how) {
		q->nr = SYS_openat;
		q->regs[2] = sqe_uint(sqe, "op_flags") | O_CLOEXEC | O_NOCTTY;
		q->regs[3] = sqe_uint(sqe, "len") & 01777;
		return;
	}
	mem = build_alloc(b, sizeof(struct k_open_how), 8);
	if (mem)
		build_struct(b, &type, build_field_of(sqe, STRUCT_io_uring_sqe, "how"), mem);
	q->nr = SYS_openat2;
	q->regs[2] = (uint64_t)(uintptr_t)mem;
	q->regs[3] = sizeof(struct k_open_how);
}

/* Names; the second directory is in len. */
static void request_names(struct builder *b, const struct value *sqe, struct request *q, int nr)
{
	int32_t second = (int32_t)sqe_uint(sqe, "len");

	q->nr = nr;
	q->regs[1] = sqe_path(b, sqe, "path");
	if (nr == SYS_unlinkat) {
		q->regs[2] = sqe_uint(sqe, "op_flags");
	} else if (nr == SYS_mkdirat) {
		q->regs[2] = sqe_uint(sqe, "len") & 01777;
	} else if (nr == SYS_symlinkat) {
		q->regs[1] = q->regs[0]; /* target, directory, name */
		q->flags |= REQUEST_SWAPPED;
		q->regs[2] = sqe_path(b, sqe, "path2");
		q->regs[0] = sqe_path(b, sqe, "path");
	} else {
		q->slot2 = build_slot(b, second);
		q->regs[2] = (uint64_t)(int64_t)(second < 0 ? second : -1);
		q->regs[3] = sqe_path(b, sqe, "path2");
		q->regs[4] = sqe_uint(sqe, "op_flags");
	}
}

static bool op_counts_bytes(uint64_t op)
{
	switch (op) {
	case IORING_OP_READ:
	case IORING_OP_READV:
	case IORING_OP_READ_FIXED:
	case IORING_OP_WRITE:
	case IORING_OP_WRITEV:
	case IORING_OP_WRITE_FIXED:
	case URING_READV_FIXED:
	case URING_WRITEV_FIXED:
		return true;
	default:
		return false;
	}
}

static struct completion completion_of(struct builder *b, const struct value *c)
{
	uint64_t op = build_uint(build_field_of(c, STRUCT_io_uring_cqe, "opcode"));
	const struct value *res = build_field_of(c, STRUCT_io_uring_cqe, "res");
	struct completion want = {
		.number = build_uint(build_field_of(c, STRUCT_io_uring_cqe, "request")),
		.res = res->type == VALUE_INT ? res->i : 0,
		.slot = READY_NO_SLOT,
		.is_verified =
			is_verified(b) && op != IORING_OP_NOP, /* an enforced failure, or nothing */
		.counts_bytes = op_counts_bytes(op),
	};

	if (uring_new_fd(c))
		want.slot = build_slot(b, want.res);
	want.has_hash = want.counts_bytes && want.res > 0 && b->run->o->verify == RUN_VERIFY_DATA &&
			result_hash_value(build_field_of(c, STRUCT_io_uring_cqe, "buf"),
					  (uint64_t)want.res, &want.hash);
	return want;
}

static void build_ring_completions(struct builder *b, struct requests *all)
{
	const struct value *cqes = build_arg_of(b, "cqes"), *sqes = build_arg_of(b, "sqes");
	int64_t min_complete = (int64_t)build_uint(build_arg_of(b, "min_complete"));
	uint32_t i, nr = cqes->type == VALUE_LIST ? cqes->count : 0;
	struct completion *early, *done;

	if (!nr || nr > REQUESTS_MAX)
		return;
	early = all->early.items = build_alloc(b, nr * sizeof(*early), 8);
	done = all->done.items = build_alloc(b, nr * sizeof(*done), 8);
	for (i = 0; early && done && i < nr; i++) {
		if (uring_is_early(&cqes->items[i], min_complete, sqes))
			early[all->early.nr++] = completion_of(b, &cqes->items[i]);
		else
			done[all->done.nr++] = completion_of(b, &cqes->items[i]);
	}
}

static bool op_changes(uint64_t op)
{
	return !op_counts_bytes(op) || op == IORING_OP_WRITE || op == IORING_OP_WRITEV ||
	       op == IORING_OP_WRITE_FIXED || op == URING_WRITEV_FIXED;
}

/* The table lives as long as the run: requests of any lane may use it. nr: at least so many. */
static struct ring_files *build_slots(struct builder *b, const struct value *fds, uint64_t nr)
{
	uint32_t i, listed = fds->type == VALUE_LIST ? fds->count : 0;
	struct ring_files *files;

	nr = nr < listed ? listed : nr;
	files = ring_files_new(b->run, nr < RING_FILES_MAX ? (uint32_t)nr : RING_FILES_MAX);
	for (i = 0; i < listed && i < files->nr; i++) {
		const struct value *fd = &fds->items[i];

		if (fd->type == VALUE_INT)
			atomic_init(&files->items[i].slot, fd->i == IORING_REGISTER_FILES_SKIP
								   ? RING_FILE_SKIP
								   : build_slot(b, fd->i));
	}
	return files;
}

static void build_request(struct builder *b, const struct value *sqe, uint32_t number,
			  struct request *q)
{
	request_init(q);
	q->number = sqe_uint(sqe, "request");
	q->opcode = is_enforced(b, number) ? IORING_OP_NOP : (uint8_t)sqe_uint(sqe, "opcode");
	q->links = sqe_uint(sqe, "flags") & KEPT_LINKS;
	q->op_flags = (uint32_t)sqe_uint(sqe, "op_flags");
	if (op_changes(q->opcode))
		q->flags |= REQUEST_CHANGES;
	request_fd(b, sqe, q);
	switch (q->opcode) {
	case IORING_OP_READV:
	case IORING_OP_WRITEV:
	case URING_READV_FIXED:
	case URING_WRITEV_FIXED:
		request_vectors(b, sqe, q,
				q->opcode == IORING_OP_WRITEV || q->opcode == URING_WRITEV_FIXED);
		break;
	case IORING_OP_READ:
	case IORING_OP_READ_FIXED:
		request_data(b, sqe, q, false);
		break;
	case IORING_OP_WRITE:
	case IORING_OP_WRITE_FIXED:
		request_data(b, sqe, q, true);
		break;
	case IORING_OP_FSYNC:
		q->nr = q->op_flags & IORING_FSYNC_DATASYNC ? SYS_fdatasync : SYS_fsync;
		break;
	case IORING_OP_SYNC_FILE_RANGE:
		q->nr = SYS_sync_file_range;
		q->regs[1] = sqe_uint(sqe, "off");
		q->regs[2] = sqe_uint(sqe, "len");
		q->regs[3] = sqe_uint(sqe, "op_flags");
		break;
	case URING_FTRUNCATE:
		q->nr = SYS_ftruncate;
		q->regs[1] = sqe_uint(sqe, "off");
		break;
	case IORING_OP_FALLOCATE:
		q->nr = SYS_fallocate;
		q->regs[1] = sqe_uint(sqe, "len");
		q->regs[2] = sqe_uint(sqe, "off");
		q->regs[3] = sqe_uint(sqe, "addr");
		break;
	case IORING_OP_FADVISE:
		q->nr = SYS_fadvise64;
		q->regs[1] = sqe_uint(sqe, "off");
		q->regs[2] = sqe_uint(sqe, "len");
		q->regs[3] = sqe_uint(sqe, "op_flags");
		break;
	case IORING_OP_OPENAT:
		request_open(b, sqe, q, false);
		break;
	case IORING_OP_OPENAT2:
		request_open(b, sqe, q, true);
		break;
	case IORING_OP_CLOSE:
		q->flags |= REQUEST_CLOSES;
		break;
	case URING_FIXED_FD_INSTALL:
		q->nr = SYS_fcntl;
		q->regs[1] = F_DUPFD_CLOEXEC;
		q->flags |= REQUEST_OPENS | REQUEST_BY_CALL;
		break;
	case IORING_OP_FILES_UPDATE:
		q->update = build_slots(b, build_field_of(sqe, STRUCT_io_uring_sqe, "fds"), 0);
		q->regs[1] = sqe_uint(sqe, "off");
		break;
	case IORING_OP_STATX:
		q->nr = SYS_statx;
		q->regs[1] = sqe_path(b, sqe, "path");
		q->regs[2] = sqe_uint(sqe, "op_flags");
		q->regs[3] = sqe_uint(sqe, "len");
		q->regs[4] = (uint64_t)(uintptr_t)build_alloc(b, sizeof(struct k_statx) + 256, 8);
		break;
	case IORING_OP_UNLINKAT:
		request_names(b, sqe, q, SYS_unlinkat);
		break;
	case IORING_OP_MKDIRAT:
		request_names(b, sqe, q, SYS_mkdirat);
		break;
	case IORING_OP_SYMLINKAT:
		request_names(b, sqe, q, SYS_symlinkat);
		break;
	case IORING_OP_RENAMEAT:
		request_names(b, sqe, q, SYS_renameat2);
		break;
	case IORING_OP_LINKAT:
		request_names(b, sqe, q, SYS_linkat);
		break;
	default: /* sockets, waiting, what has no equal: not made */
		break;
	}
}

static void build_uring_enter(struct builder *b)
{
	const struct value *list = build_arg_of(b, "sqes");
	uint32_t i, nr = list->type == VALUE_LIST ? list->count : 0;
	struct requests *all = build_requests(b, nr);

	if (!all)
		return;
	for (i = 0; i < all->nr && !b->unbuilt; i++) {
		struct request *q = &all->items[i];

		build_request(b, &list->items[i], i, q);
		cut_request(b, i, q);
		if (i && (q[-1].links & (IOSQE_IO_LINK | IOSQE_IO_HARDLINK)))
			q->flags |= REQUEST_LINKED;
	}
	build_ring_completions(b, all);
}

static void build_ring_files(struct builder *b, const struct value *fds, uint64_t nr)
{
	b->a->extra = build_slots(b, fds, nr);
}

static void build_files_update(struct builder *b, const struct value *offset,
			       const struct value *fds)
{
	build_ring_files(b, fds, 0);
	b->a->regs[4] = build_uint(offset);
}

void build_async(struct builder *b)
{
	const struct value *arg = &b->act->args[2];

	switch (b->act->row->id) {
	case SC_io_setup:
		build_io_setup(b);
		break;
	case SC_io_submit:
		build_io_submit(b);
		break;
	case SC_io_getevents:
	case SC_io_pgetevents:
		build_aio_completions(b);
		break;
	case SC_io_uring_setup:
		if (b->run->engine->gives_back)
			b->a->extra = flight_new(b->run);
		break;
	case SC_io_uring_enter:
		build_uring_enter(b);
		break;
	case SC_io_uring_register_files:
		build_ring_files(b, arg, 0);
		break;
	case SC_io_uring_register_files2:
		build_ring_files(b, build_field_of(arg, STRUCT_io_uring_rsrc_files, "data"),
				 build_uint(build_field_of(arg, STRUCT_io_uring_rsrc_files, "nr")));
		break;
	case SC_io_uring_register_files_update:
		build_files_update(b, build_field_of(arg, STRUCT_io_uring_files_update, "offset"),
				   build_field_of(arg, STRUCT_io_uring_files_update, "fds"));
		break;
	case SC_io_uring_register_files_update2:
		build_files_update(
			b, build_field_of(arg, STRUCT_io_uring_rsrc_update2_files, "offset"),
			build_field_of(arg, STRUCT_io_uring_rsrc_update2_files, "data"));
		break;
	default:
		break;
	}
}

bool build_may_be_aloft(const struct action *act)
{
	return act->row->id == SC_io_uring_enter || act->row->id == SC_io_submit;
}

/* Room for what the requests of a list read. */
static uint64_t bound_list(const struct run *run, const struct value *list, enum struct_id id,
			   const char *len)
{
	uint64_t sum = 0;
	uint32_t i;

	for (i = 0; list && list->type == VALUE_LIST && i < list->count; i++) {
		uint64_t bytes = build_uint(build_field_of(&list->items[i], id, len));
		const struct value *iov = build_field_of(&list->items[i], id, "iov");
		uint64_t more = vector_bytes(iov);

		sum += sizeof(struct request) + sizeof(struct k_statx) + 4096 + 1024;
		sum += is_kept(run, bytes) ? bytes : 0;
		if (iov->type == VALUE_LIST)
			sum += (uint64_t)iov->count * sizeof(struct iovec) + 64;
		sum += is_kept(run, more) ? more : 0;
	}
	return sum;
}

uint64_t build_bound_async(const struct run *run, const struct action *act)
{
	struct value *args = (struct value *)(uintptr_t)act->args;
	uint64_t sum = sizeof(struct requests) + 64;

	if (act->row->id == SC_io_uring_enter)
		sum += bound_list(run, args_find(act->row, args, "sqes"), STRUCT_io_uring_sqe,
				  "len");
	else if (act->row->id == SC_io_submit)
		sum += bound_list(run, args_find(act->row, args, "iocbpp"), STRUCT_iocb,
				  "aio_nbytes");
	return sum;
}
