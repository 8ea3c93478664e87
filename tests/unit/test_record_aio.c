/* SPDX-License-Identifier: MIT */
/*
 * What is in no register: files behind descriptors, futexes, asynchronous
 * requests. The calls are made for real, by this process, with the capture
 * around them that a recorder would do.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/io_uring.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include "capture_rig.h"
#include "model/fields.h"
#include "model/kernel_structs.h"
#include "record/aio.h"
#include "record/aio_requests.h"
#include "record/capture_inside.h"
#include "record/found.h"

#ifdef __aarch64__
#define ARCH_OWN ARCH_AARCH64
#else
#define ARCH_OWN ARCH_X86_64
#endif

static struct aio *aio;

static int aio_setup(void **state)
{
	aio = aio_new();
	return capture_setup(state);
}

static int aio_teardown(void **state)
{
	aio_free(aio);
	return capture_teardown(state);
}

#define AIO_TEST(name) cmocka_unit_test_setup_teardown(name, aio_setup, aio_teardown)

static struct aio_call this_call(const struct outcome *o)
{
	return (struct aio_call){ .pid = getpid(),
				  .tid = gettid(),
				  .row = row,
				  .regs = regs,
				  .outcome = o,
				  .args = args };
}

/* Makes the call, captured. Its result, or -errno. */
static int64_t make_call(enum row_id id, const uint64_t *values, size_t nr)
{
	const struct row *base = row_by_id((unsigned int)id);
	struct outcome o = { 0 };
	struct aio_call call;

	set_regs(id, values, nr);
	call = this_call(NULL);
	OK(capture_entry(&capture, row, regs, args));
	OK(aio_entry(aio, &capture, &call));
	if (row_variant_of(row))
		base = row_by_id(row_variant_of(row)->base);
	o.ret = syscall(row_nr(ARCH_OWN, base), regs[0], regs[1], regs[2], regs[3], regs[4],
			regs[5]);
	o.err = o.ret == -1 ? errno : 0;
	call.outcome = &o;
	OK(capture_exit(&capture, row, regs, &o, args));
	OK(aio_exit(aio, &capture, &call));
	return o.err ? -o.err : o.ret;
}

#define MAKE(id, ...)                                                                              \
	({                                                                                         \
		const uint64_t values_[] = { __VA_ARGS__ };                                        \
		make_call(id, values_, ARRAY_LEN(values_));                                        \
	})

static int open_file(const char *content)
{
	int fd = open(scratch_path("file"), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);

	assert_true(fd >= 0);
	assert_int_equal(pwrite(fd, content, strlen(content), 0), strlen(content));
	return fd;
}

static const struct value *field(const struct value *v, unsigned int n)
{
	const struct value *f = value_field(v, n);

	assert_non_null(f);
	return f;
}

static void assert_bytes(const struct value *v, const char *expected)
{
	assert_int_equal(v->type, VALUE_DATA);
	assert_int_equal(v->data->len_bytes, strlen(expected));
	assert_int_equal(v->data->kept_bytes, strlen(expected));
	if (v->data->bytes)
		assert_memory_equal(v->data->bytes, expected, strlen(expected));
	else
		assert_true(
			hash_equal(v->data->refs[0].hash, hash_bytes(expected, strlen(expected))));
}

/* The table of requests. */

static void test_requests(void **state)
{
	struct requests r = { 0 };
	struct rng rng = { 5 };
	uint64_t i, nr = 3000;

	(void)state;
	/* Few keys: many have the same. */
	for (i = 0; i < nr; i++)
		assert_true(requests_add(
			&r, &(struct request){ .key = { i % 2, i % 3, i % 50 }, .number = i }));
	for (i = 0; i < nr / 2; i++) {
		uint64_t n = rng_below(&rng, nr), key[3] = { n % 2, n % 3, n % 50 };
		struct request *req = requests_find(&r, key);
		uint64_t first;

		if (!req)
			continue;
		/* The oldest comes first, and the next one after it. */
		first = req->number;
		requests_remove(&r, req);
		req = requests_find(&r, key);
		assert_true(!req || req->number > first);
	}
	for (i = 0; i < nr; i++) {
		uint64_t key[3] = { i % 2, i % 3, i % 50 };
		struct request *req = requests_find_number(&r, key, i);

		if (req)
			requests_remove(&r, req);
	}
	assert_int_equal(r.nr_taken, 0);
	for (i = 0; i < nr; i++)
		assert_true(requests_add(&r, &(struct request){ .key = { i % 2, i % 3, i } }));
	i = 1;
	requests_remove_all(&r, 0, &i);
	assert_int_equal(r.nr_taken, nr - nr / 6);
	requests_remove_all(&r, 0, NULL);
	assert_int_equal(r.nr_taken, nr / 2);
	requests_release(&r);
}

/* Neither requests of one key nor long vectors take up all time or memory. */
static void test_requests_are_bounded(void **state)
{
	struct requests r = { 0 };
	struct request one = { .key = { 1, 2, 3 } },
		       wide = { .key = { 4 }, .nr_iov = REQUESTS_IOVS_MAX / 2 };
	size_t nr = 0;

	(void)state;
	while (nr < REQUESTS_MAX && requests_add(&r, &one))
		nr++;
	assert_in_range(nr, 1000, REQUESTS_RUN_MAX);
	assert_true(requests_add(&r, &wide));
	assert_true(requests_add(&r, &wide));
	assert_false(requests_add(&r, &wide));
	requests_remove(&r, requests_find(&r, wide.key));
	assert_true(requests_add(&r, &wide));
	requests_release(&r);
}

/* Asynchronous I/O. */

static void test_aio(void **state)
{
	int fd = open_file("hello, world");
	struct iovec iov[2] = { { room + 500, 3 }, { room + 600, 9 } };
	struct k_iocb cb[3] = {
		{ .aio_lio_opcode = IOCB_CMD_PREAD, .aio_nbytes = 100, .aio_buf = U(room + 300) },
		{ .aio_lio_opcode = IOCB_CMD_PREADV, .aio_nbytes = 2 },
		{ .aio_lio_opcode = IOCB_CMD_PWRITE, .aio_nbytes = 3, .aio_offset = 50 },
	};
	uint64_t pointers[3], ctx = 0;
	unsigned int seen = 0;
	uint32_t i;

	(void)state;
	if (syscall(SYS_io_setup, 8, &ctx)) {
		print_message("# no asynchronous I/O: %s\n", strerror(errno));
		skip();
	}
	cb[1].aio_buf = U(put(400, iov, sizeof(iov)));
	cb[2].aio_buf = U(put(700, "new", 3));
	for (i = 0; i < 3; i++) {
		cb[i].aio_fildes = (uint32_t)fd;
		pointers[i] = U(put(i * 64, &cb[i], sizeof(cb[i])));
	}
	assert_int_equal(MAKE(SC_io_submit, ctx, 3, U(put(800, pointers, sizeof(pointers)))), 3);
	assert_bytes(field(&args[2].items[2], FIELD_OF(iocb, buf)), "new");
	/* What the kernel was told once may be forgotten. */
	memset(room + 400, 0, sizeof(iov));
	memset(room, 0, sizeof(cb));
	assert_int_equal(MAKE(SC_io_getevents, ctx, 3, 3, U(room + 1000), 0), 3);
	for (i = 0; i < 3; i++) {
		const struct value *ev = &args[3].items[i];
		uint64_t opcode = field(ev, FIELD_OF(io_event, opcode))->u;

		seen |= 1u << opcode;
		if (opcode == IOCB_CMD_PWRITE)
			assert_null(value_field(ev, FIELD_OF(io_event, buf)));
		else
			assert_bytes(field(ev, FIELD_OF(io_event, buf)), "hello, world");
	}
	assert_int_equal(seen, 1 << IOCB_CMD_PREAD | 1 << IOCB_CMD_PREADV | 1 << IOCB_CMD_PWRITE);
	(void)syscall(SYS_io_destroy, ctx);
	(void)close(fd);
}

/* io_uring. */

struct uring {
	int fd;
	struct io_uring_params p;
	uint8_t *sq, *cq;
	struct io_uring_sqe *sqes;
};

static uint32_t *word(uint8_t *ring, uint32_t offset)
{
	return (uint32_t *)(void *)(ring + offset);
}

/* Where the kernel gives none, there is nothing to test. */
static void open_uring(struct uring *u)
{
	size_t sq_len, cq_len;
	int64_t r;

	memset(room, 0, sizeof(u->p));
	r = MAKE(SC_io_uring_setup, 8, U(room));
	if (r < 0) {
		print_message("# no io_uring: %s\n", strerror((int)-r));
		skip();
	}
	u->fd = (int)r;
	memcpy(&u->p, room, sizeof(u->p));
	sq_len = u->p.sq_off.array + u->p.sq_entries * 4;
	cq_len = u->p.cq_off.cqes + u->p.cq_entries * 16;
	if (cq_len > sq_len)
		sq_len = cq_len;
	r = MAKE(SC_mmap, 0, sq_len, PROT_READ | PROT_WRITE, MAP_SHARED, (uint64_t)u->fd,
		 IORING_OFF_SQ_RING);
	assert_true(r > 0);
	u->sq = (uint8_t *)(uintptr_t)r;
	u->cq = u->sq;
	assert_true(u->p.features & IORING_FEAT_SINGLE_MMAP);
	r = MAKE(SC_mmap, 0, u->p.sq_entries * 64, PROT_READ | PROT_WRITE, MAP_SHARED,
		 (uint64_t)u->fd, IORING_OFF_SQES);
	assert_true(r > 0);
	u->sqes = (struct io_uring_sqe *)(uintptr_t)r;
}

static void close_uring(struct uring *u)
{
	assert_int_equal(MAKE(SC_close, (uint64_t)u->fd), 0);
}

static struct io_uring_sqe *add_sqe(struct uring *u, uint8_t opcode, int fd)
{
	uint32_t tail = *word(u->sq, u->p.sq_off.tail), i = tail & (u->p.sq_entries - 1);

	memset(&u->sqes[i], 0, sizeof(u->sqes[i]));
	u->sqes[i].opcode = opcode;
	u->sqes[i].fd = fd;
	u->sqes[i].user_data = 0x100 + tail;
	word(u->sq, u->p.sq_off.array)[i] = i;
	*word(u->sq, u->p.sq_off.tail) = tail + 1;
	return &u->sqes[i];
}

static void enter(struct uring *u, uint32_t submit, uint32_t wait)
{
	int64_t r = MAKE(SC_io_uring_enter, (uint64_t)u->fd, submit, wait,
			 wait ? IORING_ENTER_GETEVENTS : 0, 0, 0);

	if (r != -EINTR)
		assert_int_equal(r, submit);
}

/* A wait may end before its time: then it is made again. */
static const struct value *only_completion(struct uring *u)
{
	assert_int_equal(args[7].type, VALUE_LIST);
	while (!args[7].count)
		enter(u, 0, 1);
	assert_int_equal(args[7].count, 1);
	return &args[7].items[0];
}

static void test_uring_data(void **state)
{
	int fd = open_file("");
	struct iovec iov[2] = { { room + 2000, 2 }, { room + 2100, 100 } };
	const struct value *cqe;
	struct io_uring_sqe *sqe;
	struct uring u;

	(void)state;
	open_uring(&u);
	sqe = add_sqe(&u, IORING_OP_WRITE, fd);
	sqe->addr = U(put(1000, "written", 7));
	sqe->len = 7;
	enter(&u, 1, 1);
	assert_int_equal(args[6].count, 1);
	assert_bytes(field(&args[6].items[0], FIELD_OF(io_uring_sqe, buf)), "written");
	assert_int_equal(field(&args[6].items[0], FIELD_OF(io_uring_sqe, request))->u, 0);
	cqe = only_completion(&u);
	assert_int_equal(field(cqe, FIELD_OF(io_uring_cqe, opcode))->u, IORING_OP_WRITE);
	assert_null(value_field(cqe, FIELD_OF(io_uring_cqe, buf)));

	sqe = add_sqe(&u, IORING_OP_READ, fd);
	sqe->addr = U(room + 1100);
	sqe->len = 50;
	enter(&u, 1, 1);
	assert_null(value_field(&args[6].items[0], FIELD_OF(io_uring_sqe, buf)));
	assert_bytes(field(only_completion(&u), FIELD_OF(io_uring_cqe, buf)), "written");
	assert_int_equal(field(only_completion(&u), FIELD_OF(io_uring_cqe, request))->u, 1);

	sqe = add_sqe(&u, IORING_OP_READV, fd);
	sqe->addr = U(put(1200, iov, sizeof(iov)));
	sqe->len = 2;
	enter(&u, 1, 1);
	assert_int_equal(field(&args[6].items[0], FIELD_OF(io_uring_sqe, iov))->count, 2);
	assert_bytes(field(only_completion(&u), FIELD_OF(io_uring_cqe, buf)), "written");
	close_uring(&u);
	(void)close(fd);
}

/* A ring from before the recording: what it takes is not seen, but counted. */
static void test_uring_strange(void **state)
{
	struct uring u;

	(void)state;
	open_uring(&u);
	(void)add_sqe(&u, IORING_OP_NOP, -1);
	enter(&u, 1, 1);
	assert_int_equal(aio_nr_strange(aio), 0);
	aio_forget(aio, getpid());
	(void)add_sqe(&u, IORING_OP_NOP, -1);
	(void)add_sqe(&u, IORING_OP_NOP, -1);
	enter(&u, 2, 0);
	assert_int_not_equal(args[6].type, VALUE_LIST);
	assert_int_equal(aio_nr_strange(aio), 2);
	(void)MAKE(SC_io_uring_enter, (uint64_t)-1, 1, 0, 0, 0, 0);
	assert_int_equal(aio_nr_strange(aio), 2);
	close_uring(&u);
}

static void test_uring_names(void **state)
{
	const struct value *cqe;
	struct io_uring_sqe *sqe;
	struct stat st;
	struct uring u;

	(void)state;
	(void)close(open_file("x"));
	open_uring(&u);
	sqe = add_sqe(&u, IORING_OP_OPENAT, AT_FDCWD);
	sqe->addr = U(put(1000, scratch_path("file"), strlen(scratch_path("file")) + 1));
	sqe->open_flags = O_RDONLY | O_CLOEXEC;
	enter(&u, 1, 1);
	assert_bytes(field(&args[6].items[0], FIELD_OF(io_uring_sqe, path)), scratch_path("file"));
	cqe = only_completion(&u);
	assert_int_equal(stat(scratch_path("file"), &st), 0);
	assert_int_equal(field(field(cqe, FIELD_OF(io_uring_cqe, file)), FIELD_OF(file_id, ino))->u,
			 st.st_ino);
	(void)close((int)field(cqe, 1)->i);

	sqe = add_sqe(&u, IORING_OP_STATX, AT_FDCWD);
	sqe->addr = U(room + 1000);
	sqe->off = U(room + 3000);
	sqe->len = 0x7ff;
	enter(&u, 1, 1);
	assert_int_equal(field(only_completion(&u), FIELD_OF(io_uring_cqe, statx))->type,
			 VALUE_STRUCT);
	close_uring(&u);
}

/* Completions that come between two calls belong to the next. */
static void test_uring_late_completion(void **state)
{
	struct uring u;

	(void)state;
	open_uring(&u);
	(void)add_sqe(&u, IORING_OP_NOP, -1);
	(void)add_sqe(&u, IORING_OP_NOP, -1);
	(void)add_sqe(&u, IORING_OP_NOP, -1);
	/* Not all are taken. */
	enter(&u, 2, 0);
	assert_int_equal(args[6].count, 2);
	enter(&u, 1, 3);
	assert_int_equal(args[6].count, 1);
	assert_int_equal(field(&args[6].items[0], FIELD_OF(io_uring_sqe, user_data))->u, 0x102);
	enter(&u, 0, 0);
	assert_int_equal(args[6].count, 0);
	assert_int_equal(args[7].count, 0);
	close_uring(&u);
}

/* What was there when the call began is told from what came while it ran. */
static void test_uring_early_completion(void **state)
{
	struct uring u;

	(void)state;
	open_uring(&u);
	(void)add_sqe(&u, IORING_OP_NOP, -1);
	assert_int_equal(syscall(SYS_io_uring_enter, u.fd, 1, 1, IORING_ENTER_GETEVENTS, NULL, 0),
			 1);
	(void)add_sqe(&u, IORING_OP_NOP, -1);
	enter(&u, 1, 2);
	assert_int_equal(args[7].count, 2);
	assert_int_equal(field(&args[7].items[0], FIELD_OF(io_uring_cqe, early))->u, 1);
	assert_null(value_field(&args[7].items[1], FIELD_OF(io_uring_cqe, early)));
	close_uring(&u);
}

static void test_uring_fixed_files(void **state)
{
	int fd = open_file("fixed");
	struct io_uring_sqe *sqe;
	struct stat st;
	int32_t fds[2] = { -1, fd };
	struct uring u;

	(void)state;
	open_uring(&u);
	assert_int_equal(fstat(fd, &st), 0);
	assert_int_equal(MAKE(SC_io_uring_register_files, (uint64_t)u.fd, IORING_REGISTER_FILES,
			      U(put(1000, fds, sizeof(fds))), 2),
			 0);
	sqe = add_sqe(&u, IORING_OP_READ, 1);
	sqe->flags = IOSQE_FIXED_FILE;
	sqe->addr = U(room + 2000);
	sqe->len = 50;
	enter(&u, 1, 1);
	assert_int_equal(field(field(&args[6].items[0], FIELD_OF(io_uring_sqe, file)),
			       FIELD_OF(file_id, ino))
				 ->u,
			 st.st_ino);
	assert_bytes(field(only_completion(&u), FIELD_OF(io_uring_cqe, buf)), "fixed");
	close_uring(&u);
	(void)close(fd);
}

/* A program may write what it likes into its rings. */
static void test_uring_hostile(void **state)
{
	struct rng r = { 3 };
	struct uring u;
	unsigned int turn;

	(void)state;
	open_uring(&u);
	for (turn = 0; turn < 200; turn++) {
		struct outcome o = { .ret = (int64_t)rng_below(&r, 4) };
		uint64_t values[6] = { (uint64_t)u.fd, rng_below(&r, 100), 0, 0, 0, 0 };
		struct aio_call call;

		rng_fill(&r, (uint8_t *)u.sqes, u.p.sq_entries * 64);
		rng_fill(&r, u.sq + u.p.sq_off.array, u.p.sq_entries * 4);
		*word(u.sq, u.p.sq_off.tail) = (uint32_t)rng_next(&r);
		word(u.sq, u.p.sq_off.array)[0] = 0;
		arena_reset(&arena);
		set_regs(SC_io_uring_enter, values, 6);
		call = this_call(NULL);
		OK(capture_entry(&capture, row, regs, args));
		OK(aio_entry(aio, &capture, &call));
		/* The call is not made. */
		call.outcome = &o;
		OK(capture_exit(&capture, row, regs, &o, args));
		*word(u.cq, u.p.cq_off.tail) = (uint32_t)rng_next(&r);
		OK(aio_exit(aio, &capture, &call));
		(void)printed();
	}
	close_uring(&u);
}

/* What the kernel is asked. */

static struct value ask(enum row_id id, const uint64_t *values, size_t nr, int64_t ret)
{
	struct outcome o = { .ret = ret };
	struct found *f = found_new();
	unsigned int i;

	set_regs(id, values, nr);
	OK(capture_entry(&capture, row, regs, args));
	OK(capture_exit(&capture, row, regs, &o, args));
	OK(found_fill(f, &capture, getpid(), gettid(), 42, row, regs, &o, args));
	found_free(f);
	for (i = 0; i < row->nr_args; i++) {
		if (row->args[i].reg == REG_NONE)
			return args[i];
	}
	return (struct value){ .type = VALUE_NONE };
}

#define ASK(id, ret, ...)                                                                          \
	({                                                                                         \
		const uint64_t values_[] = { __VA_ARGS__ };                                        \
		ask(id, values_, ARRAY_LEN(values_), ret);                                         \
	})

static void test_files(void **state)
{
	int fd = open_file("12345");
	struct value v;
	struct stat st;

	(void)state;
	assert_int_equal(fstat(fd, &st), 0);
	v = ASK(SC_openat, fd, 3, 0, 0, 0);
	assert_int_equal(field(&v, FIELD_OF(file_id, dev))->u, st.st_dev);
	assert_int_equal(field(&v, FIELD_OF(file_id, ino))->u, st.st_ino);
	assert_int_equal(field(&v, FIELD_OF(file_id, mode))->u, S_IFREG | 0600);
	assert_int_equal(field(&v, FIELD_OF(file_id, size))->u, 5);
	v = ASK(SC_mmap, 0x1000, 0, 4096, 1, MAP_PRIVATE, (uint64_t)fd, 0);
	assert_int_equal(field(&v, FIELD_OF(file_id, ino))->u, st.st_ino);
	v = ASK(SC_mmap, 0x1000, 0, 4096, 1, MAP_PRIVATE | MAP_ANONYMOUS, (uint64_t)fd, 0);
	assert_int_equal(v.type, VALUE_NONE);
	(void)close(fd);
	v = ASK(SC_openat, fd, 3, 0, 0, 0);
	assert_int_equal(v.type, VALUE_NONE);
}

static void test_futexes(void **state)
{
	int fd = open_file("");
	struct value v;
	struct stat st;
	uint8_t *shared;

	(void)state;
	assert_int_equal(ftruncate(fd, 3 * PAGE), 0);
	assert_int_equal(fstat(fd, &st), 0);
	shared = mmap(NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 2 * PAGE);
	assert_true(shared != MAP_FAILED);
	/* Private by the call, private by the map, shared by the map. */
	v = ASK(SC_futex_op_wake, 0, U(room + 8), 0x81, 1);
	assert_int_equal(field(&v, FIELD_OF(futex_key, space))->u, 42);
	assert_int_equal(field(&v, FIELD_OF(futex_key, addr))->u, U(room + 8));
	v = ASK(SC_futex_op_wake, 0, U(room + 8), 0x1, 1);
	assert_int_equal(field(&v, FIELD_OF(futex_key, space))->u, 42);
	v = ASK(SC_futex_op_wake, 0, U(shared + 8), 0x1, 1);
	assert_null(value_field(&v, FIELD_OF(futex_key, space)));
	assert_int_equal(field(&v, FIELD_OF(futex_key, dev))->u, st.st_dev);
	assert_int_equal(field(&v, FIELD_OF(futex_key, ino))->u, st.st_ino);
	assert_int_equal(field(&v, FIELD_OF(futex_key, offset))->u, 2 * PAGE + 8);
	v = ASK(SC_futex_op_wake, 0, 8, 0x1, 1);
	assert_int_equal(v.type, VALUE_NONE);
	(void)munmap(shared, PAGE);
	(void)close(fd);
}

static void test_many_futexes(void **state)
{
	struct k_futex_waitv waiters[2] = { { 0, U(room), 0x82, 0 }, { 0, U(room + 4), 0x82, 0 } };
	struct value v;

	(void)state;
	v = ASK(SC_futex_waitv, 0, U(put(100, waiters, sizeof(waiters))), 2, 0, 0, 0);
	assert_int_equal(v.count, 2);
	assert_int_equal(field(&v.items[1], FIELD_OF(futex_key, addr))->u, U(room + 4));
	/* Of a requeue the second key is that of the second address. */
	v = ASK(SC_futex_op_requeue, 0, U(room), 0x83, 1, 1, U(room + 64));
	assert_int_equal(field(&args[6], FIELD_OF(futex_key, addr))->u, U(room + 64));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		AIO_TEST(test_requests),
		AIO_TEST(test_requests_are_bounded),
		AIO_TEST(test_aio),
		AIO_TEST(test_uring_data),
		AIO_TEST(test_uring_strange),
		AIO_TEST(test_uring_names),
		AIO_TEST(test_uring_late_completion),
		AIO_TEST(test_uring_early_completion),
		AIO_TEST(test_uring_fixed_files),
		AIO_TEST(test_uring_hostile),
		AIO_TEST(test_files),
		AIO_TEST(test_futexes),
		AIO_TEST(test_many_futexes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
