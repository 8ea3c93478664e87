/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "event_text.h"
#include "report/fdpaths.h"

static struct fdpaths *paths;

static int setup(void **state)
{
	paths = fdpaths_new(NULL);
	return event_text_setup(state);
}

static int teardown(void **state)
{
	fdpaths_free(paths);
	return event_text_teardown(state);
}

static void apply(const char *text)
{
	struct event ev = event_from_text(text);

	fdpaths_apply(paths, &ev);
}

/* What a descriptor is for a process at a time; "" for nothing. */
static void expect_at(uint32_t pid, uint64_t when_ns, int64_t fd, const char *path)
{
	char text[64];
	struct event ev;
	const struct fd_file *f;

	(void)snprintf(text, sizeof(text), "%u/%u #1 %llu+0 getpid() = 1", pid, pid,
		       (unsigned long long)when_ns);
	ev = event_from_text(text);
	f = fdpaths_find(paths, &ev, fd);
	assert_string_equal(f ? f->path : "", path);
}

static void expect(uint32_t pid, int64_t fd, const char *path)
{
	expect_at(pid, UINT32_MAX, fd, path);
}

static void expect_joined(const char *dir, const char *name, const char *joined)
{
	struct buf b = { 0 };

	buf_puts(&b, dir);
	fdpaths_join(&b, name, strlen(name));
	assert_string_equal(buf_str(&b), joined);
	buf_release(&b);
}

static void test_join(void **state)
{
	(void)state;
	expect_joined("/a", "b", "/a/b");
	expect_joined("/", "b", "/b");
	expect_joined("/a", "/b", "/b");
	expect_joined("/a", "../b", "/b");
	expect_joined("/a/b", "..", "/a");
	expect_joined("/a", "../../../b", "/b");
	expect_joined("/a", "./b//c/./", "/a/b/c");
	expect_joined("/a", "", "/a");
	expect_joined("", "b/c", "b/c");
	expect_joined("", "../b", "../b");
	expect_joined("", "../../b", "../../b");
	expect_joined("", "b/../c", "c");
	expect_joined("/a", "...", "/a/...");
	expect_joined("", "//x", "/x");
}

static void test_open_and_close(void **state)
{
	(void)state;
	apply("1/1 #1 10+5 open(path=\"/a\", flags=O_RDONLY, mode=0) = 3");
	expect(1, 3, "/a");
	expect(1, 4, "");
	expect(1, -1, "");
	expect(1, INT64_MAX, "");
	apply("1/1 #2 20+5 close(fd=3) = 0");
	expect(1, 3, "");
	/* What failed opened nothing. */
	apply("1/1 #3 30+5 open(path=\"/b\", flags=O_RDONLY, mode=0) = -1 ENOENT");
	expect(1, 3, "");
}

static void test_a_failed_close_closes(void **state)
{
	(void)state;
	apply("1/1 #1 10+5 open(path=\"/a\", flags=O_RDONLY, mode=0) = 3");
	apply("1/1 #2 20+5 close(fd=3) = -1 EBADF");
	expect(1, 3, "/a");
	apply("1/1 #3 30+5 close(fd=3) = -1 EIO");
	expect(1, 3, "");
}

static void test_relative_names(void **state)
{
	(void)state;
	apply("1/1 #1 10+5 openat(dirfd=AT_FDCWD, path=\"x\", flags=O_RDONLY, mode=0) = 3");
	expect(1, 3, "x"); /* the cwd is not known */
	apply("1/1 #2 20+5 chdir(path=\"/home/u\") = 0");
	apply("1/1 #3 30+5 openat(dirfd=AT_FDCWD, path=\"x\", flags=O_RDONLY, mode=0) = 3");
	expect(1, 3, "/home/u/x");
	apply("1/1 #4 40+5 openat(dirfd=AT_FDCWD, path=\"/d\", flags=O_RDONLY, mode=0) = 4");
	apply("1/1 #5 50+5 openat(dirfd=4, path=\"y\", flags=O_RDONLY, mode=0) = 5");
	expect(1, 5, "/d/y");
	apply("1/1 #6 60+5 fchdir(fd=4) = 0");
	apply("1/1 #7 70+5 open(path=\"z\", flags=O_RDONLY, mode=0) = 6");
	expect(1, 6, "/d/z");
	apply("1/1 #8 80+5 chdir(path=\"/gone\") = -1 ENOENT");
	apply("1/1 #9 90+5 open(path=\"z\", flags=O_RDONLY, mode=0) = 6");
	expect(1, 6, "/d/z");
}

static void test_resolve_takes_the_dirfd_before_each_name(void **state)
{
	struct buf out = { 0 };
	struct event ev;

	(void)state;
	apply("1/1 #1 10+5 open(path=\"/from\", flags=O_RDONLY, mode=0) = 3");
	apply("1/1 #2 20+5 open(path=\"/to\", flags=O_RDONLY, mode=0) = 4");
	ev = event_from_text("1/1 #3 30+5 renameat2(olddirfd=3, oldpath=\"a\", newdirfd=4, "
			     "newpath=\"b\", flags=0) = 0");
	assert_true(fdpaths_resolve(paths, &ev, 1, &out));
	assert_string_equal(buf_str(&out), "/from/a");
	assert_true(fdpaths_resolve(paths, &ev, 3, &out));
	assert_string_equal(buf_str(&out), "/to/b");
	assert_false(fdpaths_resolve(paths, &ev, 0, &out));
	/* A link's target is no name to look up. */
	ev = event_from_text("1/1 #4 40+5 symlinkat(target=\"t\", newdirfd=4, linkpath=\"l\") = 0");
	assert_false(fdpaths_resolve(paths, &ev, 0, &out));
	assert_true(fdpaths_resolve(paths, &ev, 2, &out));
	assert_string_equal(buf_str(&out), "/to/l");
	/* An empty name is the directory itself. */
	ev = event_from_text("1/1 #5 50+5 unlinkat(dirfd=4, path=\"\", flags=0) = 0");
	assert_true(fdpaths_resolve(paths, &ev, 1, &out));
	assert_string_equal(buf_str(&out), "/to");
	buf_release(&out);
}

static void test_duplicates(void **state)
{
	(void)state;
	apply("1/1 #1 10+5 open(path=\"/a\", flags=O_RDONLY, mode=0) = 3");
	apply("1/1 #2 20+5 dup(oldfd=3) = 4");
	apply("1/1 #3 30+5 dup2(oldfd=4, newfd=9) = 9");
	apply("1/1 #4 40+5 fcntl_dupfd_cloexec(fd=9, arg=100) = 100");
	apply("1/1 #5 50+5 close(fd=3) = 0");
	apply("1/1 #6 60+5 dup2(oldfd=4, newfd=4) = 4");
	expect(1, 3, "");
	expect(1, 4, "/a");
	expect(1, 9, "/a");
	expect(1, 100, "/a");
}

static void test_nameless(void **state)
{
	(void)state;
	apply("1/1 #1 10+5 pipe2(pipefd=[3, 4], flags=0) = 0");
	apply("1/1 #2 20+5 socket(domain=AF_UNIX, type=SOCK_STREAM, protocol=0) = 5");
	apply("1/1 #3 30+5 accept(sockfd=5) = 6");
	apply("1/1 #4 40+5 eventfd2(initval=0, flags=0) = 7");
	apply("1/1 #5 50+5 epoll_create1(flags=0) = 8");
	apply("1/1 #6 60+5 memfd_create(name=\"m\", flags=0) = 9");
	expect(1, 3, "pipe:");
	expect(1, 4, "pipe:");
	expect(1, 5, "socket:");
	expect(1, 6, "socket:");
	expect(1, 7, "eventfd:");
	expect(1, 8, "epoll:");
	expect(1, 9, "memfd:m");
}

static void test_fork_copies(void **state)
{
	(void)state;
	apply("1/1 #1 10+5 chdir(path=\"/w\") = 0");
	apply("1/1 #2 20+5 open(path=\"a\", flags=O_RDONLY, mode=0) = 3");
	apply("1/1 #3 30+5 fork() = 2");
	apply("1/1 #4 40+5 close(fd=3) = 0");
	expect(1, 3, "");
	expect(2, 3, "/w/a");
	apply("2/2 #5 50+5 chdir(path=\"/v\") = 0");
	apply("2/2 #6 60+5 open(path=\"b\", flags=O_RDONLY, mode=0) = 4");
	apply("1/1 #7 70+5 open(path=\"b\", flags=O_RDONLY, mode=0) = 4");
	expect(2, 4, "/v/b");
	expect(1, 4, "/w/b");
}

static void test_clone_files_shares(void **state)
{
	(void)state;
	apply("1/1 #1 10+5 clone(flags=CLONE_FILES|CLONE_FS, stack=0) = 2");
	apply("2/2 #2 20+5 open(path=\"/a\", flags=O_RDONLY, mode=0) = 3");
	expect(1, 3, "/a");
	apply("2/2 #3 30+5 unshare(flags=CLONE_FILES) = 0");
	apply("2/2 #4 40+5 close(fd=3) = 0");
	expect(1, 3, "/a");
	expect(2, 3, "");
	/* A thread is no new process. */
	apply("1/1 #5 50+5 clone(flags=CLONE_THREAD|CLONE_FILES|CLONE_VM, stack=0) = 7");
	apply("1/7 #6 60+5 open(path=\"/t\", flags=O_RDONLY, mode=0) = 4");
	expect(1, 4, "/t");
	expect(7, 4, "");
}

static void test_the_childs_side_of_a_fork(void **state)
{
	(void)state;
	apply("1/1 #1 10+5 open(path=\"/a\", flags=O_RDONLY, mode=0) = 3");
	/* The parent's call comes later, as it does in the order of exits. */
	apply("2/2 #2 20+0 thread_start(parent=1, clone_flags=0)");
	expect(2, 3, "/a");
	apply("2/2 #3 25+5 open(path=\"/b\", flags=O_RDONLY, mode=0) = 4");
	apply("1/1 #4 15+50 fork() = 2");
	expect(2, 4, "/b");
	expect(1, 4, "");
}

static void test_a_pid_that_is_used_again(void **state)
{
	(void)state;
	apply("1/1 #1 10+5 open(path=\"/a\", flags=O_RDONLY, mode=0) = 3");
	apply("1/1 #2 20+5 fork() = 2");
	apply("2/2 #3 30+5 open(path=\"/old\", flags=O_RDONLY, mode=0) = 4");
	apply("2/2 #4 40+0 exit_group(status=0) = ?");
	expect(2, 4, "");
	apply("1/1 #5 50+5 close(fd=3) = 0");
	apply("1/1 #6 60+5 fork() = 2");
	expect(2, 3, "");
	expect(2, 4, "");
}

static void test_exec_closes(void **state)
{
	(void)state;
	apply("1/1 #1 10+5 open(path=\"/keep\", flags=O_RDONLY, mode=0) = 3");
	apply("1/1 #2 20+5 open(path=\"/drop\", flags=O_RDONLY|O_CLOEXEC, mode=0) = 4");
	apply("1/1 #3 30+5 dup(oldfd=4) = 5"); /* a duplicate does not inherit the flag */
	apply("1/1 #4 40+5 dup3(oldfd=3, newfd=6, flags=O_CLOEXEC) = 6");
	apply("1/1 #5 50+5 fcntl_setfd(fd=3, arg=FD_CLOEXEC) = 0");
	apply("1/1 #6 55+1 fcntl_setfd(fd=3, arg=0) = 0");
	apply("1/1 #7 60+5 openat2(dirfd=AT_FDCWD, path=\"/how\", how={flags=O_CLOEXEC}, size=24) = 7");
	apply("1/1 #8 70+5 execve(path=\"/no\", argv=[], envp=[]) = -1 ENOENT");
	expect(1, 4, "/drop");
	apply("1/1 #9 80+5 execve(path=\"/yes\", argv=[], envp=[]) = 0");
	expect(1, 3, "/keep");
	expect(1, 4, "");
	expect(1, 5, "/drop");
	expect(1, 6, "");
	expect(1, 7, "");
}

static void test_close_range(void **state)
{
	(void)state;
	apply("1/1 #1 10+1 open(path=\"/a\", flags=O_RDONLY, mode=0) = 3");
	apply("1/1 #2 20+1 open(path=\"/b\", flags=O_RDONLY, mode=0) = 200");
	apply("1/1 #3 30+1 open(path=\"/c\", flags=O_RDONLY, mode=0) = 300");
	apply("1/1 #4 40+1 close_range(first=4, last=250, flags=0) = 0");
	expect(1, 3, "/a");
	expect(1, 200, "");
	expect(1, 300, "/c");
	apply("1/1 #5 50+1 close_range(first=0, last=4294967295, flags=CLOSE_RANGE_CLOEXEC) = 0");
	expect(1, 300, "/c");
	apply("1/1 #6 60+1 execve(path=\"/x\", argv=[], envp=[]) = 0");
	expect(1, 3, "");
	expect(1, 300, "");
}

static void test_calls_that_overlap(void **state)
{
	(void)state;
	apply("1/1 #1 10+5 open(path=\"/old\", flags=O_RDONLY, mode=0) = 3");
	/* The slow open gets the number that the close in between sets free. */
	apply("1/1 #2 20+80 open(path=\"/new\", flags=O_RDONLY, mode=0) = 3");
	expect_at(1, 40, 3, "/old");
	apply("1/2 #3 50+5 close(fd=3) = 0");
	expect_at(1, 200, 3, "/new");
}

static void test_found_state(void **state)
{
	(void)state;
	apply("1/1 #1 0+0 found_state(cwd=\"/w\", root=\"/\", umask=022)");
	apply("1/1 #2 0+0 found_fd(fd=0, path=\"/dev/tty\", flags=O_RDWR)");
	apply("1/1 #3 0+0 found_fd(fd=5, path=\"pipe:[42]\", flags=O_RDWR, cloexec=1)");
	apply("1/1 #4 10+5 open(path=\"a\", flags=O_RDONLY, mode=0) = 3");
	expect(1, 0, "/dev/tty");
	expect(1, 5, "pipe:[42]");
	expect(1, 3, "/w/a");
	apply("1/1 #5 20+0 exec(path=\"/bin/x\")");
	expect(1, 0, "/dev/tty");
	expect(1, 5, "");
}

/* Descriptors beyond all reason and very many of them: followed as far as memory is granted. */
static void test_memory_is_bounded(void **state)
{
	struct event ev =
		event_from_text("1/1 #1 10+5 open(path=\"/a\", flags=O_RDONLY, mode=0) = 3");
	uint32_t pid;
	int fd;

	(void)state;
	ev.outcome.ret = INT32_MAX;
	fdpaths_apply(paths, &ev);
	expect(1, INT32_MAX, "");
	for (pid = 1; pid < 40 && !fdpaths_nr_forgotten(paths); pid++) {
		ev.pid = ev.tid = pid;
		ev.stream = pid;
		for (fd = 0; fd < 1 << 20; fd += 64) {
			ev.outcome.ret = fd;
			fdpaths_apply(paths, &ev);
		}
	}
	assert_true(fdpaths_nr_forgotten(paths) > 0);
	expect(1, 3 * 64, "/a");
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_join),
		TEST(test_open_and_close),
		TEST(test_a_failed_close_closes),
		TEST(test_relative_names),
		TEST(test_resolve_takes_the_dirfd_before_each_name),
		TEST(test_duplicates),
		TEST(test_nameless),
		TEST(test_fork_copies),
		TEST(test_clone_files_shares),
		TEST(test_the_childs_side_of_a_fork),
		TEST(test_a_pid_that_is_used_again),
		TEST(test_exec_closes),
		TEST(test_close_range),
		TEST(test_calls_that_overlap),
		TEST(test_found_state),
		TEST(test_memory_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
