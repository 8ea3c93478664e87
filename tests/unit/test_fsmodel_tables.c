/* SPDX-License-Identifier: MIT */
/*
 * Descriptors, processes, streams, maps, requests and locks in the model: what
 * small traces touch, what is inferred, what contradicts, and that no event
 * whatever can harm it.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "event_text.h"
#include "fsmodel/fsmodel.h"
#include "sample.h"

static struct fsmodel *m;
static const struct facts *facts;

static int begin_test(void **state)
{
	struct fsmodel_options options = { 0 };

	(void)event_text_setup(state);
	m = fsmodel_new(&options);
	return 0;
}

static int end_test(void **state)
{
	fsmodel_free(m);
	return event_text_teardown(state);
}

/* "CALL" of thread 1; "2/3 CALL" of thread 3 of process 2. */
static struct event make(const char *text)
{
	char line[512];

	if (text[0] >= '0' && text[0] <= '9') {
		size_t head = strcspn(text, " ");

		(void)snprintf(line, sizeof(line), "%.*s #1 10+5 %s", (int)head, text,
			       text + head + 1);
	} else {
		(void)snprintf(line, sizeof(line), "1/1 #1 10+5 %s", text);
	}
	/* What is parsed borrows from the text. */
	return event_from_text(arena_memdup0(&event_text.arena, line, strlen(line)));
}

static void step(const char *text)
{
	struct event ev = make(text);

	facts = fsmodel_step(m, &ev);
}

/* It must go as the model foretells. */
static void ok(const char *text)
{
	step(text);
	if (facts->contradiction)
		fail_msg("%s: %s", text, fsmodel_why(m));
}

static void contradicts(const char *text, enum contradiction kind)
{
	step(text);
	assert_int_equal(facts->contradiction, kind);
	assert_true(*fsmodel_why(m));
}

static bool fits(const char *text)
{
	struct event ev = make(text);

	return fsmodel_fits(m, &ev);
}

/* The n-th touch of a kind, NULL when there are fewer. */
static const struct touch *touched(enum res_kind kind, size_t n)
{
	size_t i;

	for (i = 0; i < facts->touches.len; i++) {
		if (facts->touches.items[i].res->kind == kind && !n--)
			return &facts->touches.items[i];
	}
	return NULL;
}

/* All that is said of resources of the kind. */
static uint32_t how(enum res_kind kind)
{
	uint32_t all = 0;
	size_t i;

	for (i = 0; i < facts->touches.len; i++) {
		if (facts->touches.items[i].res->kind == kind)
			all |= facts->touches.items[i].how;
	}
	return all;
}

static void expect_range(enum res_kind kind, uint32_t bit, uint64_t from, uint64_t to)
{
	size_t i;

	for (i = 0; i < facts->touches.len; i++) {
		const struct touch *t = &facts->touches.items[i];

		if (t->res->kind == kind && t->how & bit && t->from == from && t->to == to)
			return;
	}
	fail_msg("no touch of [%llu, %llu)", (unsigned long long)from, (unsigned long long)to);
}

#define OPEN(path, flags, fd)                                                                      \
	"openat(dirfd=AT_FDCWD, path=\"" path "\", flags=" flags ", mode=0644) = " #fd

static void test_life_of_a_descriptor(void **state)
{
	const struct res *fd, *open;

	(void)state;
	ok(OPEN("/a", "O_RDWR|O_CREAT", 3));
	assert_true(how(RES_FD) & TOUCH_CREATE);
	assert_true(how(RES_OPEN) & TOUCH_CREATE);
	fd = touched(RES_FD, 0)->res;
	open = touched(RES_OPEN, 0)->res;
	assert_int_equal(facts->fds.len, 1);
	assert_null(facts->fds.items[0].where);
	assert_ptr_equal(facts->fds.items[0].fd, fd);
	assert_true(facts->fds.items[0].made);

	ok("dup2(oldfd=3, newfd=7) = 7");
	assert_ptr_equal(touched(RES_FD, 0)->res, fd);
	assert_ptr_not_equal(touched(RES_FD, 1)->res, fd);
	assert_true(touched(RES_FD, 1)->how & TOUCH_CREATE);
	assert_ptr_equal(touched(RES_OPEN, 0)->res, open);
	assert_int_equal(facts->fds.len, 3); /* old, new, result */
	assert_false(facts->fds.items[0].made);
	assert_true(facts->fds.items[1].made);

	ok("close(fd=3) = 0");
	assert_true(how(RES_FD) & TOUCH_DELETE);
	assert_false(how(RES_OPEN) & TOUCH_DELETE);
	ok("close(fd=7) = 0");
	assert_true(how(RES_OPEN) & TOUCH_DELETE);
	ok("close(fd=7) = -1 EBADF");
	assert_int_equal(facts->fds.len, 1);
	assert_null(facts->fds.items[0].fd);
}

static void test_forked_tables_share(void **state)
{
	const struct res *fd;

	(void)state;
	ok(OPEN("/a", "O_RDWR|O_CREAT", 3));
	fd = touched(RES_FD, 0)->res;
	ok("fork() = 2");
	assert_int_equal(facts->child_tid, 2);
	ok("2/2 close(fd=3) = 0");
	assert_ptr_equal(touched(RES_FD, 0)->res, fd);
	assert_false(how(RES_FD) & TOUCH_DELETE);
	ok("2/2 close(fd=3) = -1 EBADF");
	ok("write(fd=3, count=5) = 5");
	ok("exit_group(status=0) = ?");
	assert_true(how(RES_FD) & TOUCH_DELETE);
	assert_true(how(RES_OPEN) & TOUCH_DELETE);
}

/* The child of a vfork lives and ends before its maker's call returns. */
static void test_child_before_its_maker_returns(void **state)
{
	(void)state;
	ok(OPEN("/a", "O_RDWR|O_CREAT|O_CLOEXEC", 3));
	ok("2/2 thread_start(parent=1, clone_flags=CLONE_VM|CLONE_VFORK, how=clone)");
	assert_int_equal(facts->child_tid, 2);
	ok("2/2 dup(oldfd=3) = 4");
	ok("2/2 exit_group(status=0) = ?");
	ok("2/2 thread_exit(status=0)");
	ok("vfork() = 2");
	assert_int_equal(facts->child_tid, 0);
	ok("dup(oldfd=3) = 4");
	/* The number is free again. */
	ok("fork() = 2");
	assert_int_equal(facts->child_tid, 2);
}

static void test_threads_share(void **state)
{
	(void)state;
	ok(OPEN("/a", "O_RDWR|O_CREAT", 3));
	ok("clone(flags=CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_SIGHAND|CLONE_THREAD, stack=NULL) = 2");
	ok("1/2 close(fd=3) = 0");
	assert_true(how(RES_FD) & TOUCH_DELETE);
	ok("close(fd=3) = -1 EBADF");
	ok("1/2 unshare(flags=CLONE_FILES) = 0");
	ok("1/2 " OPEN("/a", "O_RDWR", 3));
	ok("close(fd=3) = -1 EBADF");
}

static void test_exec_closes(void **state)
{
	(void)state;
	ok(OPEN("/a", "O_RDWR|O_CREAT|O_CLOEXEC", 3));
	ok(OPEN("/a", "O_RDWR", 4));
	ok("fcntl_dupfd_cloexec(fd=4, arg=10) = 10");
	ok("fcntl_setfd(fd=10, arg=0) = 0");
	ok("execve(path=\"/prog\") = 0");
	assert_true(how(RES_FD) & TOUCH_DELETE);
	ok("exec(path=\"/prog\", secure=0)");
	ok("close(fd=3) = -1 EBADF");
	ok("close(fd=4) = 0");
	ok("close(fd=10) = 0");
}

static void test_offsets_and_sizes(void **state)
{
	(void)state;
	ok(OPEN("/a", "O_RDWR|O_CREAT|O_EXCL", 3));
	ok("write(fd=3, count=100) = 100");
	assert_true(how(RES_OPEN) & TOUCH_OFFSET);
	assert_true(how(RES_FILE) & TOUCH_SIZE_WRITE);
	expect_range(RES_FILE, TOUCH_WRITE, 0, 100);
	ok("pwrite64(fd=3, count=10, offset=20) = 10");
	assert_false(how(RES_OPEN) & TOUCH_OFFSET);
	assert_false(how(RES_FILE) & TOUCH_SIZE_WRITE);
	expect_range(RES_FILE, TOUCH_WRITE, 20, 30);
	assert_int_equal(facts->offset, 20);
	ok("pread64(fd=3, count=50, offset=0) = 50");
	assert_false(how(RES_FILE) & TOUCH_SIZE_READ);
	ok("pread64(fd=3, count=50, offset=80) = 20");
	assert_true(how(RES_FILE) & TOUCH_SIZE_READ);
	expect_range(RES_FILE, TOUCH_READ, 80, 130);
	ok("lseek(fd=3, offset=-10, whence=SEEK_END) = 90");
	assert_true(how(RES_FILE) & TOUCH_SIZE_READ);
	ok("read(fd=3, count=50) = 10");
	assert_int_equal(facts->offset, 90);
	ok("ftruncate(fd=3, length=40) = 0");
	expect_range(RES_FILE, TOUCH_WRITE, 40, TOUCH_TO_END);
	assert_true(how(RES_FILE) & TOUCH_SIZE_WRITE);
	ok("fcntl_setfl(fd=3, arg=O_APPEND) = 0");
	ok("write(fd=3, count=5) = 5");
	assert_true((how(RES_FILE) & (TOUCH_SIZE_READ | TOUCH_SIZE_WRITE)) ==
		    (TOUCH_SIZE_READ | TOUCH_SIZE_WRITE));
	expect_range(RES_FILE, TOUCH_WRITE, 40, 45);
	ok("fsync(fd=3) = 0");
	expect_range(RES_FILE, TOUCH_READ, 0, TOUCH_TO_END);
	assert_false(how(RES_FILE) & (TOUCH_WRITE | TOUCH_SIZE_WRITE | TOUCH_META_WRITE));
	assert_true(fits("pread64(fd=3, count=50, offset=40) = 5"));
	assert_false(fits("pread64(fd=3, count=50, offset=40) = 6"));
	contradicts("pread64(fd=3, count=50, offset=40) = 6", CONTRADICTION_SIZE);
	assert_true(facts->repaired);
	ok("pread64(fd=3, count=50, offset=40) = 6");
}

static void test_pipe(void **state)
{
	(void)state;
	ok("pipe2(pipefd=[3, 4], flags=0) = 0");
	assert_int_equal(facts->fds.len, 2);
	assert_true(facts->fds.items[0].made && facts->fds.items[1].made);
	assert_false(fits("read(fd=3, count=100) = 7"));
	ok("write(fd=4, count=7) = 7");
	expect_range(RES_STREAM, TOUCH_WRITE, 0, 7);
	assert_non_null(facts->stream);
	assert_true(facts->local_peer);
	assert_true(fits("read(fd=3, count=100) = 7"));
	assert_true(fits("read(fd=3, count=100) = 5"));
	ok("read(fd=3, count=100) = 5");
	expect_range(RES_STREAM, TOUCH_READ, 0, 5);
	contradicts("read(fd=3, count=100) = 5", CONTRADICTION_SIZE);
	/* What was read too early is not missed later. */
	ok("write(fd=4, count=3) = 3");
	ok("lseek(fd=3, offset=0, whence=SEEK_SET) = -1 ESPIPE");
	ok("close(fd=4) = 0");
	expect_range(RES_STREAM, TOUCH_WRITE, 10, TOUCH_TO_END);
	ok("read(fd=3, count=100) = 0");
	expect_range(RES_STREAM, TOUCH_READ, 10, TOUCH_TO_END);
	ok("close(fd=3) = 0");
	assert_true(how(RES_STREAM) & TOUCH_DELETE);
}

static void test_sockets_meet_by_address(void **state)
{
	(void)state;
	ok("socket(domain=AF_UNIX, type=SOCK_STREAM, protocol=0) = 3");
	ok("bind(sockfd=3, addr={family=AF_UNIX, path=\"/s\"}, addrlen=10) = 0");
	assert_true(how(RES_NAME) & TOUCH_CREATE);
	ok("listen(sockfd=3, backlog=5) = 0");
	ok("socket(domain=AF_UNIX, type=SOCK_STREAM, protocol=0) = 4");
	ok("connect(sockfd=4, addr={family=AF_UNIX, path=\"/s\"}, addrlen=10) = 0");
	ok("accept4(sockfd=3, flags=0) = 5");
	ok("sendto(sockfd=4, len=9, flags=0) = 9");
	assert_true(facts->local_peer);
	expect_range(RES_STREAM, TOUCH_WRITE, 0, 9);
	assert_false(fits("read(fd=4, count=9) = 9"));
	ok("read(fd=5, count=9) = 9");
	expect_range(RES_STREAM, TOUCH_READ, 0, 9);
	ok("write(fd=3, count=1) = -1 ENOTCONN");
}

/* A relative path, a symlink and another name lead to the same socket. */
static void test_sockets_meet_by_file(void **state)
{
	(void)state;
	ok("mkdir(path=\"/d\", mode=0755) = 0");
	ok("chdir(path=\"/d\") = 0");
	ok("socket(domain=AF_UNIX, type=SOCK_STREAM, protocol=0) = 3");
	ok("bind(sockfd=3, addr={family=AF_UNIX, path=\"s\"}, addrlen=4) = 0");
	ok("listen(sockfd=3, backlog=5) = 0");
	contradicts("bind(sockfd=3, addr={family=AF_UNIX, path=\"s\"}, addrlen=4) = 0",
		    CONTRADICTION_ERROR);
	ok("bind(sockfd=3, addr={family=AF_UNIX, path=\"s\"}, addrlen=4) = -1 EADDRINUSE");
	ok("rename(oldpath=\"s\", newpath=\"t\") = 0");
	ok("symlink(target=\"d/t\", linkpath=\"/l\") = 0");
	ok("socket(domain=AF_UNIX, type=SOCK_STREAM, protocol=0) = 4");
	ok("connect(sockfd=4, addr={family=AF_UNIX, path=\"/l\"}, addrlen=5) = 0");
	ok("accept4(sockfd=3, flags=0) = 5");
	ok("sendto(sockfd=4, len=9, flags=0) = 9");
	assert_true(facts->local_peer);
}

static void test_abstract_sockets_meet(void **state)
{
	(void)state;
	ok("socket(domain=AF_UNIX, type=SOCK_STREAM, protocol=0) = 3");
	ok("bind(sockfd=3, addr={family=AF_UNIX, address=\"@a\"}, addrlen=4) = 0");
	assert_false(how(RES_NAME) & TOUCH_CREATE);
	ok("listen(sockfd=3, backlog=5) = 0");
	ok("socket(domain=AF_UNIX, type=SOCK_STREAM, protocol=0) = 4");
	ok("connect(sockfd=4, addr={family=AF_UNIX, address=\"@a\"}, addrlen=4) = 0");
	ok("accept4(sockfd=3, flags=0) = 5");
	ok("sendto(sockfd=4, len=9, flags=0) = 9");
	assert_true(facts->local_peer);
}

static void test_descriptors_in_messages(void **state)
{
	const struct res *open;

	(void)state;
	ok(OPEN("/a", "O_RDWR|O_CREAT", 3));
	open = touched(RES_OPEN, 0)->res;
	ok("socketpair(domain=AF_UNIX, type=SOCK_STREAM, protocol=0, sv=[4, 5]) = 0");
	ok("sendmsg(sockfd=4, msg={msg_iov=[{iov_len=1}], msg_control=[{cmsg_level=SOL_SOCKET, "
	   "cmsg_type=1, fds=[3]}]}, flags=0) = 1");
	ok("close(fd=3) = 0");
	assert_false(how(RES_OPEN) & TOUCH_DELETE);
	ok("recvmsg(sockfd=5, msg={msg_iov=[{iov_len=1}], msg_control=[{cmsg_level=SOL_SOCKET, "
	   "cmsg_type=1, fds=[9]}]}, flags=0) = 1");
	assert_int_equal(facts->fds.len, 2);
	assert_true(facts->fds.items[1].made);
	ok("fsync(fd=9) = 0");
	assert_ptr_equal(touched(RES_OPEN, 0)->res, open);
}

static void test_what_was_open_before(void **state)
{
	(void)state;
	ok("read(fd=0, count=10) = 10");
	assert_int_equal(facts->fds.len, 1);
	assert_non_null(facts->fds.items[0].fd);
	ok("lseek(fd=5, offset=0, whence=SEEK_SET) = 0");
	ok("pread64(fd=5, count=10, offset=100) = 10");
	expect_range(RES_FILE, TOUCH_READ, 100, 110);
	ok("getdents64(fd=6, count=100) = 24");
	assert_true(how(RES_FILE) & TOUCH_LIST);
	ok("close(fd=5) = 0");
	/* What the trace has seen closed is not inferred again. */
	contradicts("pread64(fd=5, count=10, offset=100) = 10", CONTRADICTION_FD);
	assert_true(facts->repaired);
	ok("close(fd=5) = 0");
	ok("read(fd=8, count=1) = -1 EBADF");
}

#define FOUND(fd, id) "found_fd(fd=" #fd ", path=\"/f\", flags=O_RDWR, offset=0, open_file=" #id ")"

/* Descriptors that were open before may share their open file, also with another process. */
static void test_what_was_shared_before(void **state)
{
	const struct res *first, *open;
	struct fd_info info;

	(void)state;
	ok(FOUND(1, 7));
	first = touched(RES_FD, 0)->res;
	open = touched(RES_OPEN, 0)->res;
	fsmodel_fd_info(m, first, &info);
	assert_null(info.shared);
	ok(FOUND(2, 7));
	assert_ptr_equal(touched(RES_OPEN, 0)->res, open);
	fsmodel_fd_info(m, touched(RES_FD, 0)->res, &info);
	assert_ptr_equal(info.shared, first);
	ok("2/2 " FOUND(1, 7));
	assert_ptr_equal(touched(RES_OPEN, 0)->res, open);
	ok(FOUND(3, 8));
	assert_ptr_not_equal(touched(RES_OPEN, 0)->res, open);
	ok(FOUND(4, 0));
	ok(FOUND(5, 0));
	fsmodel_fd_info(m, touched(RES_FD, 0)->res, &info);
	assert_null(info.shared);

	ok("write(fd=1, buf=\"abc\", count=3) = 3");
	ok("write(fd=2, buf=\"abc\", count=3) = 3");
	expect_range(RES_FILE, TOUCH_WRITE, 3, 6);
	/* The same number again, and one after all are closed. */
	ok(FOUND(2, 7));
	ok("close(fd=1) = 0");
	ok(FOUND(6, 7));
	fsmodel_fd_info(m, touched(RES_FD, 0)->res, &info);
	assert_null(info.shared);
	ok("close(fd=6) = 0");
	ok("close(fd=2) = 0");
	ok("2/2 close(fd=1) = 0");
	assert_true(how(RES_OPEN) & TOUCH_DELETE);
	ok(FOUND(2, 7));
	assert_true(how(RES_OPEN) & TOUCH_CREATE);
}

static void test_numbers_that_should_be_taken(void **state)
{
	(void)state;
	ok(OPEN("/a", "O_RDWR|O_CREAT", 3));
	assert_false(fits(OPEN("/a", "O_RDWR", 3)));
	contradicts(OPEN("/a", "O_RDWR", 3), CONTRADICTION_FD);
	assert_true(facts->repaired);
	assert_true(how(RES_FD) & TOUCH_DELETE);
	ok("close(fd=3) = 0");
	ok("close(fd=3) = -1 EBADF");
}

static void test_unknown_threads(void **state)
{
	(void)state;
	ok("getpid() = 1");
	/* A trace that tells no beginnings has threads that just are there. */
	ok("77/78 read(fd=0, count=1) = 1");
	ok("80/80 thread_start(parent=0, clone_flags=0, how=launch)");
	contradicts("87/88 read(fd=0, count=1) = 1", CONTRADICTION_PROCESS);
	ok("87/88 read(fd=0, count=1) = 1");
	ok("77/78 exit_group(status=0) = ?");
	contradicts("77/78 read(fd=0, count=1) = 1", CONTRADICTION_PROCESS);
}

static void test_maps(void **state)
{
	const struct res *map;

	(void)state;
	ok(OPEN("/a", "O_RDWR|O_CREAT", 3));
	ok("mmap(addr=NULL, length=12288, prot=PROT_READ|PROT_WRITE, flags=MAP_SHARED, fd=3, "
	   "offset=4096) = 0x10000");
	assert_true(how(RES_MAP) & TOUCH_CREATE);
	expect_range(RES_FILE, TOUCH_WRITE, 4096, 16384);
	assert_int_equal(facts->maps.len, 1);
	assert_true(facts->maps.items[0].made);
	map = facts->maps.items[0].map;
	ok("close(fd=3) = 0");
	ok("fork() = 2");
	ok("munmap(addr=0x11000, length=4096) = 0");
	assert_int_equal(facts->maps.len, 1);
	assert_ptr_equal(facts->maps.items[0].map, map);
	assert_int_equal(facts->maps.items[0].offset_bytes, 4096);
	expect_range(RES_FILE, TOUCH_WRITE, 8192, 12288);
	assert_false(how(RES_MAP) & TOUCH_DELETE);
	ok("msync(addr=0x12000, length=100, flags=MS_SYNC) = 0");
	expect_range(RES_FILE, TOUCH_WRITE, 12288, 16384);
	ok("munmap(addr=0x10000, length=12288) = 0");
	assert_false(how(RES_MAP) & TOUCH_DELETE);
	ok("2/2 mremap(old_address=0x10000, old_size=12288, new_size=12288, flags=MREMAP_MAYMOVE) = "
	   "0x50000");
	ok("2/2 munmap(addr=0x50000, length=12288) = 0");
	assert_true(how(RES_MAP) & TOUCH_DELETE);
}

static void test_requests(void **state)
{
	const struct res *context;

	(void)state;
	ok(OPEN("/a", "O_RDWR|O_CREAT", 3));
	ok("io_setup(nr_events=8, ctx_idp=[0x7000]) = 0");
	context = touched(RES_AIO, 0)->res;
	ok("io_submit(ctx_id=0x7000, nr=1, iocbpp=[{obj=0x1, aio_lio_opcode=IOCB_CMD_PWRITE, "
	   "aio_fildes=3, aio_nbytes=4096, aio_offset=8192}]) = 1");
	assert_ptr_equal(touched(RES_AIO, 0)->res, context);
	assert_true(touched(RES_AIO, 1)->how & TOUCH_CREATE);
	expect_range(RES_FILE, TOUCH_WRITE, 8192, 12288);
	assert_true(how(RES_FILE) & TOUCH_SIZE_WRITE);
	ok("io_getevents(ctx_id=0x7000, min_nr=1, nr=1, events=[{obj=0x1, res=4096}]) = 1");
	assert_true(touched(RES_AIO, 1)->how & TOUCH_DELETE);
	expect_range(RES_FILE, TOUCH_WRITE, 8192, 12288);
	ok("io_destroy(ctx_id=0x7000) = 0");
	assert_true(how(RES_AIO) & TOUCH_DELETE);
}

static void test_ring(void **state)
{
	(void)state;
	ok(OPEN("/a", "O_RDWR|O_CREAT", 3));
	ok("io_uring_setup(entries=8) = 4");
	ok("io_uring_register_files(fd=4, opcode=2, arg=[3], nr_args=1) = 0");
	ok("close(fd=3) = 0");
	assert_false(how(RES_OPEN) & TOUCH_DELETE);
	ok("io_uring_enter(fd=4, to_submit=2, min_complete=0, flags=0, sqes=[{opcode=IORING_OP_WRITE, "
	   "flags=IOSQE_FIXED_FILE, fd=0, off=10, len=20, request=1}, {opcode=IORING_OP_OPENAT, "
	   "fd=-100, path=\"/a\", request=2}]) = 2");
	expect_range(RES_FILE, TOUCH_WRITE, 10, 30);
	ok("io_uring_enter(fd=4, to_submit=0, min_complete=2, flags=0, cqes=[{request=2, res=3}, "
	   "{request=1, res=20}]) = 0");
	assert_true(how(RES_FD) & TOUCH_CREATE);
	assert_true(how(RES_FILE) & TOUCH_SIZE_WRITE);
	ok("pread64(fd=3, count=100, offset=0) = 30");
	ok("close(fd=4) = 0");
	ok("close(fd=3) = 0");
	assert_true(how(RES_OPEN) & TOUCH_DELETE);
}

static void test_locks(void **state)
{
	(void)state;
	ok(OPEN("/a", "O_RDWR|O_CREAT", 3));
	ok(OPEN("/a", "O_RDWR", 4));
	ok("flock(fd=3, op=LOCK_EX) = 0");
	assert_true(how(RES_LOCKS) & TOUCH_WRITE);
	assert_false(fits("flock(fd=4, op=LOCK_SH) = 0"));
	assert_true(fits("flock(fd=4, op=LOCK_SH|LOCK_NB) = -1 EAGAIN"));
	ok("fcntl_setlk(fd=4, arg={l_type=F_WRLCK, l_whence=SEEK_SET, l_start=10, l_len=5}) = 0");
	expect_range(RES_LOCKS, TOUCH_WRITE, 10, 15);
	ok("fork() = 2");
	assert_false(fits("2/2 fcntl_setlkw(fd=4, arg={l_type=F_RDLCK, l_whence=SEEK_SET, "
			  "l_start=14, l_len=1}) = 0"));
	assert_true(fits("2/2 fcntl_setlkw(fd=4, arg={l_type=F_RDLCK, l_whence=SEEK_SET, "
			 "l_start=15, l_len=1}) = 0"));
	ok("fcntl_setlk(fd=4, arg={l_type=F_UNLCK, l_whence=SEEK_SET, l_start=12, l_len=1}) = 0");
	expect_range(RES_LOCKS, TOUCH_WRITE, 12, 13);
	ok("2/2 fcntl_setlk(fd=4, arg={l_type=F_RDLCK, l_whence=SEEK_SET, l_start=12, l_len=1}) = 0");
	expect_range(RES_LOCKS, TOUCH_READ, 12, 13);
	/* Any close of the file ends the process's. */
	ok("close(fd=4) = 0");
	expect_range(RES_LOCKS, TOUCH_WRITE, 10, 12);
	expect_range(RES_LOCKS, TOUCH_WRITE, 13, 15);
	ok("2/2 exit_group(status=0) = ?");
	expect_range(RES_LOCKS, TOUCH_READ, 12, 13);
	ok("close(fd=3) = 0");
	assert_true(how(RES_LOCKS) & TOUCH_WRITE);
}

#define LOCK_OF(type, start, len)                                                                  \
	"{l_type=" type ", l_whence=SEEK_SET, l_start=" #start ", l_len=" #len "}"
#define LOCK(type, start, len) "fcntl_setlk(fd=3, arg=" LOCK_OF(type, start, len) ")"
#define ASK(type, start, len, found)                                                               \
	"fcntl_getlk(fd=3, arg=" LOCK_OF(type, start, len) ", arg_after=" found ") = 0"

/* Locks belong to descriptor tables, and so does who holds them. */
static void test_lockers(void **state)
{
	const struct res *first;

	(void)state;
	ok(OPEN("/a", "O_RDWR|O_CREAT", 3));
	ok(LOCK("F_UNLCK", 0, 0) " = 0");
	assert_null(facts->locker);
	ok(LOCK("F_WRLCK", 0, 10) " = 0");
	assert_true(how(RES_LOCKER) & TOUCH_CREATE);
	first = facts->locker;
	ok("clone(flags=CLONE_FILES|SIGCHLD, stack=0) = 2");
	ok("fork() = 3");
	ok("2/2 " LOCK("F_WRLCK", 10, 5) " = 0");
	assert_ptr_equal(facts->locker, first);
	assert_int_equal(how(RES_LOCKER), TOUCH_USE);
	ok("3/3 " LOCK("F_RDLCK", 12, 1) " = -1 EAGAIN");
	assert_false(facts->unexplained);
	assert_ptr_not_equal(facts->locker, first);
	/* What both have locked is one lock. */
	ok("3/3 " ASK("F_RDLCK", 0, 0, LOCK_OF("F_WRLCK", 0, 15)));
	assert_true(facts->lock_foretold);
	assert_int_equal(facts->nr_lock_owners, 1);
	expect_range(RES_LOCKS, TOUCH_READ, 0, (uint64_t)INT64_MAX + 1);
	ok(OPEN("/a", "O_PATH", 4));
	ok("close(fd=4) = 0");
	assert_false(how(RES_LOCKER));
	ok("2/2 exit_group(status=0) = ?");
	assert_false(how(RES_LOCKER));
	ok(OPEN("/a", "O_RDONLY", 4));
	ok("close(fd=4) = 0");
	assert_ptr_equal(touched(RES_LOCKER, 0)->res, first);
	assert_true(how(RES_LOCKER) & TOUCH_DELETE);
	ok("3/3 " LOCK("F_RDLCK", 12, 1) " = 0");
	ok("3/3 exit_group(status=0) = ?");
	assert_true(how(RES_LOCKER) & TOUCH_DELETE);
}

/* What others find tells when a lock was taken and given up. */
static void test_answers_about_locks(void **state)
{
	(void)state;
	ok(OPEN("/a", "O_RDWR|O_CREAT", 3));
	ok("fork() = 2");
	assert_false(fits("2/2 " LOCK("F_WRLCK", 0, 10) " = -1 EAGAIN"));
	assert_false(fits("2/2 " ASK("F_WRLCK", 0, 0, LOCK_OF("F_WRLCK", 0, 10))));
	ok(LOCK("F_RDLCK", 0, 10) " = 0");
	assert_true(fits("2/2 " LOCK("F_WRLCK", 0, 10) " = -1 EAGAIN"));
	assert_false(fits("2/2 " ASK("F_WRLCK", 0, 0, LOCK_OF("F_WRLCK", 0, 10))));
	assert_true(fits("2/2 " ASK("F_WRLCK", 0, 0, LOCK_OF("F_RDLCK", 0, 10))));
	/* One that the trace does not know of is in the way: nothing else explains it. */
	ok("2/2 " LOCK("F_RDLCK", 0, 10) " = -1 EAGAIN");
	assert_true(facts->unexplained);
	ok("2/2 " LOCK("F_RDLCK", 0, 10) " = 0");
	ok("fork() = 4");
	ok("4/4 " ASK("F_WRLCK", 0, 0, LOCK_OF("F_RDLCK", 0, 10)));
	assert_int_equal(facts->nr_lock_owners, 2);
	/* It got what both have: they must have given it up, and all else there. */
	contradicts("4/4 " LOCK("F_WRLCK", 5, 1) " = 0", CONTRADICTION_ERROR);
	assert_true(facts->repaired);
	assert_true(how(RES_LOCKER) & TOUCH_DELETE);
	ok("4/4 " LOCK("F_WRLCK", 0, 10) " = 0");
}

static bool blocks(uint32_t tid, const char *text)
{
	struct event ev = make(text);

	return fsmodel_locks_out(m, tid, &ev);
}

static void test_who_is_in_the_way(void **state)
{
	(void)state;
	ok(OPEN("/a", "O_RDWR|O_CREAT", 3));
	ok(LOCK("F_WRLCK", 0, 10) " = 0");
	ok("fork() = 2");
	ok("2/2 " OPEN("/a", "O_RDWR", 4));
	assert_true(blocks(1, "2/2 " LOCK("F_RDLCK", 9, 1) " = 0"));
	assert_false(blocks(1, "2/2 " LOCK("F_RDLCK", 10, 1) " = 0"));
	assert_false(blocks(2, "2/2 " LOCK("F_RDLCK", 9, 1) " = 0"));
	ok("flock(fd=3, op=LOCK_EX) = 0");
	/* Both have the open file. */
	assert_true(blocks(1, "2/2 flock(fd=4, op=LOCK_EX) = 0"));
	assert_true(blocks(2, "2/2 flock(fd=4, op=LOCK_EX) = 0"));
	ok("2/2 close(fd=3) = 0");
	assert_false(blocks(2, "2/2 flock(fd=4, op=LOCK_EX) = 0"));
}

static void test_directories_of_a_process(void **state)
{
	const struct res *cwd;

	(void)state;
	ok("mkdir(path=\"/d\", mode=0755) = 0");
	ok("chdir(path=\"/d\") = 0");
	assert_non_null(facts->new_handle);
	cwd = facts->new_handle;
	ok("fork() = 2");
	assert_ptr_equal(facts->cwd, cwd);
	ok("umask(mask=077) = 022");
	ok(OPEN("x", "O_RDWR|O_CREAT", 3));
	assert_int_equal(facts->umask, 077);
	ok("2/2 umask(mask=0) = 022");
	ok("fchdir(fd=3) = -1 ENOTDIR");
	ok("chdir(path=\"/\") = 0");
	assert_false(how(RES_HANDLE) & TOUCH_DELETE);
	ok("2/2 exit_group(status=0) = ?");
	assert_true(how(RES_HANDLE) & TOUCH_DELETE);
}

/* Asking changes nothing: the same step gives the same touches whether it was asked about or not. */
static void test_asking_changes_nothing(void **state)
{
	struct fsmodel_totals before, after;

	(void)state;
	ok(OPEN("/a", "O_RDWR|O_CREAT", 3));
	before = fsmodel_totals(m);
	(void)fits(OPEN("/b", "O_RDWR|O_CREAT", 4));
	(void)fits("read(fd=9, count=1) = 1");
	(void)fits("close(fd=3) = 0");
	(void)fits("5/5 close(fd=3) = 0");
	(void)fits("flock(fd=3, op=LOCK_EX) = 0");
	(void)fits("lseek(fd=9, offset=0, whence=SEEK_END) = 1");
	after = fsmodel_totals(m);
	assert_memory_equal(&before, &after, sizeof(before));
	ok("lseek(fd=3, offset=0, whence=SEEK_CUR) = 0");
}

/* Anything at all, in any order, asked and done, observed and executed. */
static void hostile(uint64_t seed, bool execute)
{
	struct fsmodel_options options = { .execute = execute, .max_absent = 100 };
	struct fsmodel *model = fsmodel_new(&options);
	struct schema *s = schema_new();
	struct rng r = { seed };
	unsigned int n;
	struct arena a;

	arena_init(&a);
	for (n = 0; n < 20000; n++) {
		unsigned int id = (unsigned int)rng_below(&r, 2200);
		const struct row *row = row_by_id(id);
		struct event ev = { .row = row };
		unsigned int k;

		if (!row || row->sort == ROW_RECORD)
			continue;
		arena_reset(&a);
		sample_args(s, id, &r, &a, ev.args);
		/* Mostly numbers that have met something before. */
		for (k = 0; k < row->nr_args; k++) {
			if (ev.args[k].type == VALUE_INT && rng_below(&r, 3))
				ev.args[k].i = (int64_t)rng_below(&r, 8);
			if (!rng_below(&r, 20))
				ev.args[k] = (struct value){ .type = VALUE_ADDR, .u = 4096 };
		}
		ev.pid = (uint32_t)rng_below(&r, 4);
		ev.tid = rng_below(&r, 3) ? ev.pid : (uint32_t)rng_below(&r, 8);
		ev.ppid = (uint32_t)rng_below(&r, 4);
		ev.flags = rng_below(&r, 10) ? 0 : EVENT_UNFINISHED;
		ev.outcome.ret =
			rng_below(&r, 4) ? (int64_t)rng_below(&r, 9) : (int64_t)rng_next(&r);
		ev.outcome.err = rng_below(&r, 3) ? 0 : (int32_t)rng_below(&r, 140);
		(void)fsmodel_fits(model, &ev);
		(void)fsmodel_step(model, &ev);
		(void)fsmodel_why(model);
	}
	fsmodel_free(model);
	schema_free(s);
	arena_release(&a);
}

static void test_hostile_events(void **state)
{
	const char *from = getenv("FSMODEL_SEED");
	uint64_t seed = from ? strtoull(from, NULL, 10) : 1;
	unsigned int n;

	(void)state;
	for (n = 0; n < 10; n++) {
		hostile(seed + n, false);
		hostile(seed + n, true);
	}
}

#define TEST(f) cmocka_unit_test_setup_teardown(f, begin_test, end_test)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_life_of_a_descriptor),
		TEST(test_forked_tables_share),
		TEST(test_child_before_its_maker_returns),
		TEST(test_threads_share),
		TEST(test_exec_closes),
		TEST(test_offsets_and_sizes),
		TEST(test_pipe),
		TEST(test_sockets_meet_by_address),
		TEST(test_sockets_meet_by_file),
		TEST(test_abstract_sockets_meet),
		TEST(test_descriptors_in_messages),
		TEST(test_what_was_open_before),
		TEST(test_what_was_shared_before),
		TEST(test_numbers_that_should_be_taken),
		TEST(test_unknown_threads),
		TEST(test_maps),
		TEST(test_requests),
		TEST(test_ring),
		TEST(test_locks),
		TEST(test_lockers),
		TEST(test_answers_about_locks),
		TEST(test_who_is_in_the_way),
		TEST(test_directories_of_a_process),
		TEST(test_asking_changes_nothing),
		cmocka_unit_test(test_hostile_events),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
