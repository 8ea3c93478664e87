/* SPDX-License-Identifier: MIT */
/* Calls whose arguments do not follow from their kinds alone. */
#include <errno.h>
#include <fcntl.h>
#include <linux/io_uring.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "base/banned.h"
#include "model/kernel_structs.h"
#include "plan/refs.h"
#include "plan/result.h"
#include "replay/build.h"
#include "replay/calls.h"

#define EXTENTS_MAX 256
#define DEDUPE_MAX 120
#define REQUESTS_MAX 4096

static const struct value no_value = { .type = VALUE_NONE };

static const struct value *arg_of(const struct builder *b, const char *name)
{
	const struct value *v =
		args_find(b->act->row, (struct value *)(uintptr_t)b->act->args, name);

	return v ? v : &no_value;
}

/* A field by name. */
static const struct value *field_of(const struct value *v, enum struct_id id, const char *name)
{
	const struct struct_desc *d = &struct_descs[id];
	unsigned int i;

	for (i = 0; i < d->nr_fields; i++) {
		if (!strcmp(d->fields[i].name, name)) {
			const struct value *f = value_field(v, i);

			return f ? f : &no_value;
		}
	}
	return &no_value;
}

static void build_pipe(struct builder *b)
{
	const struct value *v = arg_of(b, "pipefd");
	uint32_t i;

	for (i = 0; i < 2 && v->type == VALUE_LIST && i < v->count; i++)
		if (v->items[i].type == VALUE_INT)
			b->a->slots[i] = build_slot(b, v->items[i].i);
}

static void build_io_setup(struct builder *b)
{
	const struct value *v = arg_of(b, "ctx_idp");
	uint32_t slot;

	if (v->type == VALUE_LIST && v->count && plan_get_aio_ref(&v->items[0], &slot))
		b->a->slots[0] = build_slot(b, slot);
}

static void build_fiemap(struct builder *b)
{
	const struct value *v = &b->act->args[2];
	uint64_t nr = build_uint(field_of(v, STRUCT_fiemap, "fm_extent_count"));
	struct k_fiemap *map;

	if (v->type != VALUE_STRUCT)
		return;
	if (nr > EXTENTS_MAX)
		nr = EXTENTS_MAX;
	map = build_alloc(b, sizeof(*map) + nr * sizeof(struct k_fiemap_extent), 8);
	if (!map)
		return;
	build_struct(b, &b->act->row->args[2], v, (uint8_t *)map);
	map->fm_extent_count = (uint32_t)nr;
	b->a->regs[2] = (uint64_t)(uintptr_t)map;
}

static void build_dedupe(struct builder *b)
{
	const struct value *v = &b->act->args[2];
	const struct value *info = field_of(v, STRUCT_file_dedupe_range, "info");
	uint64_t i, nr = info->type == VALUE_LIST ? info->count : 0;
	static const struct arg item = { .kind = KIND_STRUCT,
					 .struct_id = STRUCT_file_dedupe_range_info };
	struct k_file_dedupe_range *range;

	if (v->type != VALUE_STRUCT)
		return;
	if (nr > DEDUPE_MAX)
		nr = DEDUPE_MAX;
	range = build_alloc(b, sizeof(*range) + nr * sizeof(range->info[0]), 8);
	if (!range)
		return;
	build_struct(b, &b->act->row->args[2], v, (uint8_t *)range);
	range->dest_count = (uint16_t)nr;
	for (i = 0; i < nr; i++)
		build_struct(b, &item, &info->items[i],
			     (uint8_t *)range + sizeof(*range) + i * sizeof(range->info[0]));
	b->a->regs[2] = (uint64_t)(uintptr_t)range;
}

/* One iocb: reads go to the sink, for they may end after the lane went on. */
static bool build_iocb(struct builder *b, const struct value *v, struct k_iocb *cb)
{
	static const struct arg type = { .kind = KIND_STRUCT, .struct_id = STRUCT_iocb };
	uint64_t room, nbytes;
	uint32_t slot;

	build_struct(b, &type, v, (uint8_t *)cb);
	cb->aio_buf = 0;
	cb->aio_flags = 0; /* no eventfd: who waits for it waits by an edge */
	cb->aio_resfd = 0;
	cb->aio_key = 0;
	cb->aio_data = 0;
	if (plan_get_aio_ref(field_of(v, STRUCT_iocb, "obj"), &slot) &&
	    (slot = build_slot(b, slot)) != READY_NO_SLOT)
		cb->aio_data = (uint64_t)slot + 1; /* comes back with its result */
	nbytes = cb->aio_nbytes;
	switch (cb->aio_lio_opcode) {
	case 0: /* PREAD */
		cb->aio_buf = (uint64_t)(uintptr_t)run_sink(b->run);
		if (nbytes > b->run->sink_bytes)
			cb->aio_nbytes = b->run->sink_bytes;
		return false;
	case 1: /* PWRITE */
		cb->aio_buf = (uint64_t)(uintptr_t)build_data(b, field_of(v, STRUCT_iocb, "buf"),
							      nbytes, &room);
		if (nbytes > room)
			cb->aio_nbytes = room;
		return true;
	case 7: /* PREADV */
	case 8: { /* PWRITEV */
		const struct value *iov = field_of(v, STRUCT_iocb, "iov");
		uint64_t nr = iov->type == VALUE_LIST ? iov->count : 0;
		struct iovec *vec;
		uint64_t i;

		cb->aio_nbytes = nr < 1024 ? nr : 1024;
		vec = build_iovecs(b, iov, cb->aio_nbytes, cb->aio_lio_opcode == 7);
		cb->aio_buf = (uint64_t)(uintptr_t)vec;
		for (i = 0; vec && cb->aio_lio_opcode == 7 && i < cb->aio_nbytes; i++)
			vec[i].iov_base = run_sink(b->run);
		return true;
	}
	default: /* syncs; anything else the kernel refuses */
		cb->aio_nbytes = 0;
		return false;
	}
}

static void build_io_submit(struct builder *b)
{
	const struct value *list = arg_of(b, "iocbpp");
	uint32_t i, nr = list->type == VALUE_LIST ? list->count : 0;
	struct aio_batch *batch = build_alloc(b, sizeof(*batch), 8);

	if (!batch || nr > REQUESTS_MAX) {
		b->unbuilt = true;
		return;
	}
	batch->blocks = build_alloc(b, nr * sizeof(void *), 8);
	for (i = 0; batch->blocks && i < nr; i++) {
		struct k_iocb *cb = build_alloc(b, sizeof(*cb), 8);

		if (!cb)
			return;
		batch->nr_writes += build_iocb(b, &list->items[i], cb);
		batch->blocks[i] = cb;
	}
	batch->nr = nr;
	b->a->extra = batch;
}

static uint64_t sqe_uint(const struct value *v, const char *name)
{
	return build_uint(field_of(v, STRUCT_io_uring_sqe, name));
}

static uint64_t sqe_path(struct builder *b, const struct value *v, const char *name)
{
	const struct value *path = field_of(v, STRUCT_io_uring_sqe, name);

	return path->type == VALUE_DATA ? (uint64_t)(uintptr_t)build_string(b, path) : 0;
}

/* The slot that an open fills stands in the completion of the same request, if that is here. */
static uint32_t opened_slot(struct builder *b, const struct value *sqe)
{
	const struct value *cqes = arg_of(b, "cqes");
	uint64_t request = sqe_uint(sqe, "request");
	uint32_t i;

	for (i = 0; cqes->type == VALUE_LIST && i < cqes->count; i++) {
		const struct value *res = field_of(&cqes->items[i], STRUCT_io_uring_cqe, "res");

		if (build_uint(field_of(&cqes->items[i], STRUCT_io_uring_cqe, "request")) ==
			    request &&
		    res->type == VALUE_INT)
			return build_slot(b, res->i);
	}
	return READY_NO_SLOT;
}

static void request_fd(struct builder *b, const struct value *sqe, struct request *q)
{
	static const struct arg fd = { .kind = KIND_FD };

	if (sqe_uint(sqe, "flags") & IOSQE_FIXED_FILE)
		q->fixed = (uint32_t)sqe_uint(sqe, "fd") + 1;
	else
		build_number(b, &fd, field_of(sqe, STRUCT_io_uring_sqe, "fd"), &q->regs[0], 8);
}

static void request_data(struct builder *b, const struct value *sqe, struct request *q, bool write)
{
	uint64_t room, len = sqe_uint(sqe, "len");

	q->nr = write ? SYS_pwrite64 : SYS_pread64;
	if (write)
		q->regs[1] = (uint64_t)(uintptr_t)build_data(
			b, field_of(sqe, STRUCT_io_uring_sqe, "buf"), len, &room);
	else
		q->regs[1] = (uint64_t)(uintptr_t)build_out(b, len, &room);
	q->regs[2] = len < room ? len : room;
	q->regs[3] = sqe_uint(sqe, "off");
	if (q->regs[3] == UINT64_MAX) /* at the file's own offset */
		q->nr = write ? SYS_write : SYS_read;
}

static void request_vectors(struct builder *b, const struct value *sqe, struct request *q,
			    bool write)
{
	const struct value *iov = field_of(sqe, STRUCT_io_uring_sqe, "iov");

	q->nr = write ? SYS_pwritev2 : SYS_preadv2;
	q->regs[2] = iov->type == VALUE_LIST ? iov->count : 0;
	if (q->regs[2] > 1024)
		q->regs[2] = 1024;
	q->regs[1] = (uint64_t)(uintptr_t)build_iovecs(b, iov, q->regs[2], !write);
	q->regs[3] = sqe_uint(sqe, "off");
	q->regs[5] = sqe_uint(sqe, "op_flags");
}

static void request_open(struct builder *b, const struct value *sqe, struct request *q, bool how)
{
	static const struct arg type = { .kind = KIND_STRUCT, .struct_id = STRUCT_open_how };
	uint8_t *mem;

	q->slot = opened_slot(b, sqe);
	q->opens = true;
	q->regs[1] = sqe_path(b, sqe, "path");
	if (!how) {
		q->nr = SYS_openat;
		q->regs[2] = sqe_uint(sqe, "op_flags") | O_CLOEXEC | O_NOCTTY;
		q->regs[3] = sqe_uint(sqe, "len") & 01777;
		return;
	}
	mem = build_alloc(b, sizeof(struct k_open_how), 8);
	if (mem)
		build_struct(b, &type, field_of(sqe, STRUCT_io_uring_sqe, "how"), mem);
	q->nr = SYS_openat2;
	q->regs[2] = (uint64_t)(uintptr_t)mem;
	q->regs[3] = sizeof(struct k_open_how);
}

/* Names; the second directory is in len. */
static void request_names(struct builder *b, const struct value *sqe, struct request *q, int nr)
{
	static const struct arg dir = { .kind = KIND_DIRFD };
	struct value second = value_int((int32_t)sqe_uint(sqe, "len"));

	q->nr = nr;
	q->regs[1] = sqe_path(b, sqe, "path");
	if (nr == SYS_unlinkat) {
		q->regs[2] = sqe_uint(sqe, "op_flags");
	} else if (nr == SYS_mkdirat) {
		q->regs[2] = sqe_uint(sqe, "len") & 01777;
	} else if (nr == SYS_symlinkat) {
		q->regs[1] = q->regs[0]; /* target, directory, name */
		q->swap = true;
		q->regs[2] = sqe_path(b, sqe, "path2");
		q->regs[0] = sqe_path(b, sqe, "path");
	} else {
		build_number(b, &dir, &second, &q->regs[2], 8);
		q->regs[3] = sqe_path(b, sqe, "path2");
		q->regs[4] = sqe_uint(sqe, "op_flags");
	}
}

static bool is_verified(const struct builder *b)
{
	return b->run->o->verify != RUN_VERIFY_OFF && b->run->engine->gives_back &&
	       !(b->act->flags & ACTION_SETUP);
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
		return true;
	default:
		return false;
	}
}

/* What the trace says of the requests that were seen to complete here. */
static void build_ring_completions(struct builder *b, struct completions *all)
{
	const struct value *cqes = arg_of(b, "cqes");
	uint32_t i, nr = cqes->type == VALUE_LIST ? cqes->count : 0;

	if (!nr || nr > REQUESTS_MAX || !is_verified(b))
		return;
	all->items = build_alloc(b, nr * sizeof(*all->items), 8);
	for (i = 0; all->items && i < nr; i++) {
		const struct value *c = &cqes->items[i];
		const struct value *res = field_of(c, STRUCT_io_uring_cqe, "res");
		struct completion *want = &all->items[i];

		want->number = build_uint(field_of(c, STRUCT_io_uring_cqe, "request"));
		want->res = res->type == VALUE_INT ? res->i : 0;
		want->counts_bytes =
			op_counts_bytes(build_uint(field_of(c, STRUCT_io_uring_cqe, "opcode")));
		want->has_hash = want->counts_bytes && want->res > 0 &&
				 b->run->o->verify == RUN_VERIFY_DATA &&
				 result_hash_value(field_of(c, STRUCT_io_uring_cqe, "buf"),
						   (uint64_t)want->res, &want->hash);
	}
	all->nr = all->items ? nr : 0;
}

/* Likewise of aio: named by the slots of the requests. */
static void build_aio_completions(struct builder *b)
{
	const struct value *list = arg_of(b, "events");
	uint32_t i, slot, nr = list->type == VALUE_LIST ? list->count : 0;
	struct requests *all = build_alloc(b, sizeof(*all), 8);

	b->a->extra = all;
	if (!all || !nr || nr > REQUESTS_MAX || !is_verified(b))
		return;
	all->done.items = build_alloc(b, nr * sizeof(*all->done.items), 8);
	for (i = 0; all->done.items && i < nr; i++) {
		const struct value *res = field_of(&list->items[i], STRUCT_io_event, "res");
		const struct value *obj = field_of(&list->items[i], STRUCT_io_event, "obj");

		if (res->type != VALUE_INT || !plan_get_aio_ref(obj, &slot))
			continue;
		slot = build_slot(b, slot);
		if (slot != READY_NO_SLOT)
			all->done.items[all->done.nr++] = (struct completion){
				.number = slot, .res = res->i, .counts_bytes = true
			};
	}
}

static void build_request(struct builder *b, const struct value *sqe, struct request *q)
{
	q->nr = -1;
	q->number = sqe_uint(sqe, "request");
	q->hashes = b->run->o->verify == RUN_VERIFY_DATA;
	q->slot = READY_NO_SLOT;
	request_fd(b, sqe, q);
	switch (sqe_uint(sqe, "opcode")) {
	case IORING_OP_READV:
	case IORING_OP_WRITEV:
		request_vectors(b, sqe, q, sqe_uint(sqe, "opcode") == IORING_OP_WRITEV);
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
		q->nr = sqe_uint(sqe, "op_flags") & IORING_FSYNC_DATASYNC ? SYS_fdatasync
									  : SYS_fsync;
		break;
	case IORING_OP_SYNC_FILE_RANGE:
		q->nr = SYS_sync_file_range;
		q->regs[1] = sqe_uint(sqe, "off");
		q->regs[2] = sqe_uint(sqe, "len");
		q->regs[3] = sqe_uint(sqe, "op_flags");
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
		q->closes = true;
		break;
	case IORING_OP_STATX:
		q->nr = SYS_statx;
		q->regs[1] = sqe_path(b, sqe, "path");
		q->regs[2] = sqe_uint(sqe, "op_flags");
		q->regs[3] = sqe_uint(sqe, "len");
		q->regs[4] = (uint64_t)(uintptr_t)build_scratch(b, sizeof(struct k_statx) + 256);
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
	const struct value *list = arg_of(b, "sqes");
	uint32_t i, nr = list->type == VALUE_LIST ? list->count : 0;
	struct requests *all = build_alloc(b, sizeof(*all), 8);

	if (!all || nr > REQUESTS_MAX) {
		b->unbuilt = true;
		return;
	}
	all->items = build_alloc(b, nr * sizeof(*all->items), 8);
	for (i = 0; all->items && i < nr && !b->unbuilt; i++) {
		build_request(b, &list->items[i], &all->items[i]);
		if (b->a->flags & READY_SINK) /* from here on nobody can look at it */
			all->items[i].hashes = false;
	}
	all->nr = nr;
	build_ring_completions(b, &all->done);
	b->a->extra = all;
}

/* The results of a ring live as long as the run, too. */
static void build_ring_results(struct builder *b)
{
	struct ring_results *results;

	if (!is_verified(b))
		return;
	results = xcalloc(1, sizeof(*results));
	results->next = b->run->ring_results;
	b->run->ring_results = results;
	b->a->extra = results;
}

/* The table lives as long as the run: requests of any lane may use it. */
static void build_ring_files(struct builder *b, const struct value *fds)
{
	uint32_t i, nr = fds->type == VALUE_LIST ? fds->count : 0;
	struct ring_files *files;

	if (nr > REQUESTS_MAX)
		nr = REQUESTS_MAX;
	files = xcalloc(1, sizeof(*files) + nr * sizeof(files->slots[0]));
	files->nr = nr;
	for (i = 0; i < nr; i++)
		atomic_init(&files->slots[i], fds->items[i].type == VALUE_INT
						      ? build_slot(b, fds->items[i].i)
						      : READY_NO_SLOT);
	files->next = b->run->ring_files;
	b->run->ring_files = files;
	b->a->extra = files;
}

static void build_files_update(struct builder *b, const struct value *offset,
			       const struct value *fds)
{
	build_ring_files(b, fds);
	b->a->regs[4] = build_uint(offset);
}

static void build_fstore(struct builder *b)
{
	const struct value *v = &b->act->args[1];

	b->a->regs[2] = build_uint(field_of(v, STRUCT_mac_fstore, "fst_offset"));
	b->a->regs[3] = build_uint(field_of(v, STRUCT_mac_fstore, "fst_length"));
}

static void build_mac_times(struct builder *b)
{
	const struct value *list = &b->act->args[1];
	struct timespec *ts = build_alloc(b, 2 * sizeof(*ts), 8);
	uint32_t i;

	for (i = 0; ts && list->type == VALUE_LIST && i < 2 && i < list->count; i++) {
		ts[i].tv_sec =
			(time_t)build_uint(field_of(&list->items[i], STRUCT_timeval, "tv_sec"));
		ts[i].tv_nsec =
			(long)(build_uint(field_of(&list->items[i], STRUCT_timeval, "tv_usec")) %
			       1000000 * 1000);
	}
	b->a->regs[1] = list->type == VALUE_LIST ? (uint64_t)(uintptr_t)ts : 0;
}

static void build_mac_listing(struct builder *b)
{
	uint64_t room;
	uint64_t want = b->act->row->id == SC_getdirentries64 ? build_uint(&b->act->args[1]) : 0;

	if (!want)
		want = 32768; /* not told */
	if (want > b->l->memory.out_bytes)
		want = b->l->memory.out_bytes;
	b->a->regs[1] = (uint64_t)(uintptr_t)build_out(b, want, &room);
	b->a->regs[2] = want < room ? want : room;
}

void build_more(struct builder *b)
{
	const struct value *arg = &b->act->args[2];

	switch (b->act->row->id) {
	case SC_pipe:
	case SC_pipe2:
		build_pipe(b);
		break;
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
		build_ring_results(b);
		break;
	case SC_ioctl_fs_ioc_fiemap:
		build_fiemap(b);
		break;
	case SC_ioctl_fideduperange:
		build_dedupe(b);
		break;
	case SC_io_uring_enter:
		build_uring_enter(b);
		break;
	case SC_io_uring_register_files:
		build_ring_files(b, arg);
		break;
	case SC_io_uring_register_files2:
		build_ring_files(b, field_of(arg, STRUCT_io_uring_rsrc_files, "data"));
		break;
	case SC_io_uring_register_files_update:
		build_files_update(b, field_of(arg, STRUCT_io_uring_files_update, "offset"),
				   field_of(arg, STRUCT_io_uring_files_update, "fds"));
		break;
	case SC_io_uring_register_files_update2:
		build_files_update(b, field_of(arg, STRUCT_io_uring_rsrc_update2_files, "offset"),
				   field_of(arg, STRUCT_io_uring_rsrc_update2_files, "data"));
		break;
	case SC_mac_fcntl_preallocate:
		build_fstore(b);
		break;
	case SC_mac_futimes:
		build_mac_times(b);
		break;
	case SC_getdirentries64:
	case SC_getdirentriesattr:
	case SC_getattrlistbulk:
		build_mac_listing(b);
		break;
	default:
		break;
	}
}
