/* SPDX-License-Identifier: MIT */
/*
 * Pipes, eventfds and inotify in plans that are written as text; also in plans
 * that lie about them, which must come to an end. The flag 512 says that an action
 * is on such a thing.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/banned.h"
#include "base/clock.h"
#include "run_rig.h"

/* All of it was performed as recorded, and so many pipes came to a standstill. */
static void assert_went(uint64_t nr_pipes, uint64_t nr_broken)
{
	assert_no_mismatch();
	assert_int_equal(res->nr_done, res->nr_actions);
	assert_int_equal(res->nr_pipes, nr_pipes);
	assert_int_equal(res->nr_pipes_broken, nr_broken);
	assert_int_equal(res->nr_unbuilt, 0);
}

static void assert_content(const char *name, const char *wanted)
{
	char path[4096], got[100] = "";
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir_name(), name);
	fd = open(path, O_RDONLY);
	assert_true(fd >= 0);
	assert_int_equal(read(fd, got, sizeof(got) - 1), strlen(wanted));
	assert_string_equal(got, wanted);
	close(fd);
}

#define PIPE(read, write) "0 flags=512 pipe2(pipefd=[" #read ", " #write "], flags=0) = 0\n"

static void test_one_lane(void **state)
{
	(void)state;
	perform_text(PIPE(0, 1) "0 flags=512 write(fd=1, buf=\"hello\", count=5) = 5\n"
				"0 flags=512 write(fd=1, buf=\"\", count=0) = 0\n"
				"0 flags=512 dup(oldfd=1) = 2\n"
				"0 flags=512 writev(fd=2, iov=[{iov_base=\" w\", iov_len=2}, "
				"{iov_base=\"orld\", iov_len=4}], iovcnt=2) = 6\n"
				"0 flags=516 read(fd=0, buf=\"hel\", count=3) = 3\n"
				"0 flags=516 readv(fd=0, iov=[{iov_base=\"l\", iov_len=1}, "
				"{iov_base=\"o w\", iov_len=3}], iovcnt=2) = 4\n"
				"0 flags=512 fcntl_setpipe_sz(fd=0, arg=131072) = 131072\n"
				"0 flags=512 close(fd=1) = 0\n"
				"0 flags=512 lseek(fd=0, offset=0, whence=SEEK_CUR) = -1 ESPIPE\n"
				"0 flags=516 read(fd=0, buf=\"orld\", count=100) = 4\n"
				"0 flags=512 close(fd=2) = 0\n"
				"0 flags=516 read(fd=0, buf=\"\", count=100) = 0\n"
				"0 flags=512 close(fd=0) = 0\n");
	assert_went(1, 0);
	assert_int_equal(res->nr_made, 14);
}

/* What is read is compared. */
static void test_other_data(void **state)
{
	(void)state;
	perform_text(PIPE(0, 1) "0 flags=512 write(fd=1, buf=\"hello\", count=5) = 5\n"
				"0 flags=516 read(fd=0, buf=\"hallo\", count=5) = 5\n"
				"0 flags=512 write(fd=1, buf=\"more\", count=4) = 4\n"
				"0 flags=512 close(fd=1) = 0\n"
				"0 flags=512 read(fd=0, buf=\"\", count=5) = 0\n");
	assert_int_equal(res->end, RUN_COMPLETE);
	assert_int_equal(res->nr_mismatches, 2);
	assert_int_equal(res->mismatches_by_kind[RUN_MISMATCH_OTHER_RESULT], 1);
	assert_int_equal(res->mismatches_by_kind[RUN_MISMATCH_LONG], 1);
}

/* Between a pipe and files, and pipes: the bytes come where they belong. */
static void test_copies(void **state)
{
	(void)state;
	perform_text(PIPE(0, 1) PIPE(
		2,
		3) "0 openat(dirfd=-100, path=\"/f\", flags=O_RDWR|O_CREAT, mode=0644) = 4\n"
		   "0 openat(dirfd=-100, path=\"/g\", flags=O_RDWR|O_CREAT, mode=0644) = 5\n"
		   "0 flags=512 vmsplice(fd=1, iov=[{iov_base=\"abcdef\", iov_len=6}], "
		   "nr_segs=1, flags=0) = 6\n"
		   "0 flags=512 tee(fd_in=0, fd_out=3, len=4, flags=0) = 4\n"
		   "0 flags=512 splice(fd_in=0, off_in=NULL, fd_out=4, off_out=NULL, len=100, flags=0) = 6\n"
		   "0 flags=512 splice(fd_in=2, off_in=NULL, fd_out=5, off_out=[2], len=3, flags=0) = 3\n"
		   "0 flags=516 read(fd=2, buf=\"d\", count=9) = 1\n"
		   "0 flags=512 sendfile(out_fd=1, in_fd=4, offset=[1], count=9) = 5\n"
		   "0 flags=512 splice(fd_in=0, off_in=NULL, fd_out=3, off_out=NULL, len=2, flags=0) = 2\n"
		   "0 flags=516 read(fd=0, buf=\"def\", count=9) = 3\n"
		   "0 flags=516 read(fd=2, buf=\"bc\", count=9) = 2\n"
		   "0 flags=512 close(fd=1) = 0\n"
		   "0 flags=512 splice(fd_in=0, off_in=NULL, fd_out=4, off_out=NULL, len=100, flags=0) = 0\n");
	assert_went(2, 0);
	assert_content("f", "abcdef");
}

#define BIG_TEXT "3000000"

/* A write that no pipe holds: its reader is not to wait for its end. */
static void test_does_not_fit(void **state)
{
	char text[16384] = "", line[256];
	int i, n;

	(void)state;
	n = snprintf(text, sizeof(text),
		     PIPE(0, 1) "1 <0:0 flags=512 write(fd=1, buf=\"x\"/" BIG_TEXT
				", count=" BIG_TEXT ") = " BIG_TEXT "\n"
				"1 flags=512 close(fd=1) = 0\n");
	for (i = 0; i < 30; i++) {
		snprintf(line, sizeof(line),
			 "2 %sflags=512 read(fd=0, buf=\"x\"/100000, count=100000) = 100000\n",
			 i ? "" : "!1:0 ");
		n += snprintf(text + n, sizeof(text) - (size_t)n, "%s", line);
	}
	snprintf(text + n, sizeof(text) - (size_t)n,
		 "2 <1:1 flags=516 read(fd=0, buf=\"\", count=100000) = 0\n");
	o.perturb_seed = 1;
	perform_text(text);
	assert_went(1, 0);
}

/* Whether the reader is still there is luck; what it got is not. */
static void test_unread(void **state)
{
	(void)state;
	perform_text(PIPE(0, 1) "0 flags=512 close(fd=0) = 0\n"
				"0 flags=512 write(fd=1, buf=\"x\", count=1) = 1\n"
				"0 flags=512 close(fd=1) = 0\n");
	assert_went(1, 0);
}

/* Nothing comes, and nobody is there who could send it: no lane waits for ever. */
static void test_lies(void **state)
{
	(void)state;
	perform_text(PIPE(0, 1) PIPE(2, 3)
			     PIPE(4, 5) "0 flags=516 read(fd=0, buf=\"x\", count=1) = 1\n"
					"0 flags=512 write(fd=3, buf=\"ab\", count=2) = 2\n"
					"0 flags=516 read(fd=2, buf=\"abc\", count=3) = 3\n"
					"0 flags=516 read(fd=4, buf=\"\", count=3) = 0\n"
					"0 flags=512 write(fd=5, buf=\"ab\", count=2) = 2\n"
					"0 flags=512 write(fd=1, buf=\"y\", count=1) = 1\n");
	assert_went(3, 3);
	/* What was not made is not said to have been. */
	assert_int_equal(res->nr_made, 4);
}

/* Two that wait for each other, and one that writes what nobody reads. */
static void test_lies_between_lanes(void **state)
{
	(void)state;
	o.stall_ns = 2 * NS_PER_S; /* a pipe is given up after half of it at most */
	perform_text(PIPE(0, 1) PIPE(2, 3)
			     PIPE(4, 5) "1 <0:2 flags=516 read(fd=0, buf=\"x\", count=1) = 1\n"
					"1 flags=512 write(fd=3, buf=\"x\", count=1) = 1\n"
					"2 <0:2 flags=516 read(fd=2, buf=\"x\", count=1) = 1\n"
					"2 flags=512 write(fd=1, buf=\"x\", count=1) = 1\n"
					"3 <0:2 flags=512 write(fd=5, buf=\"x\"/" BIG_TEXT
					", count=" BIG_TEXT ") = " BIG_TEXT "\n");
	assert_int_equal(res->end, RUN_COMPLETE);
	assert_int_equal(res->nr_done, res->nr_actions);
	assert_int_equal(res->nr_mismatches, 0);
	assert_in_range(res->nr_pipes_broken, 2, 3);
}

/* Of a pipe that nobody made, and with flags where there is no pipe. */
static void test_no_pipe(void **state)
{
	(void)state;
	perform_text(
		"0 flags=512 read(fd=9, buf=\"x\", count=1) = 1\n"
		"0 flags=512 splice(fd_in=9, off_in=NULL, fd_out=8, off_out=NULL, len=5, flags=0) = 5\n"
		"0 flags=512 vmsplice(fd=9, iov=[{iov_base=\"x\", iov_len=1}], nr_segs=1, flags=0) = 1\n"
		"0 openat(dirfd=-100, path=\"/f\", flags=O_RDWR|O_CREAT, mode=0644) = 4\n"
		"0 flags=512 write(fd=4, buf=\"ab\", count=2) = 2\n"
		"0 flags=512 splice(fd_in=9, off_in=NULL, fd_out=4, off_out=NULL, len=3, flags=0) = 3\n"
		"0 flags=528 read(fd=4, buf=\"xx\", count=2) = 2\n");
	assert_went(0, 0);
}

static void test_others(void **state)
{
	(void)state;
	perform_text(
		"0 mkdir(path=\"/d\", mode=0755) = 0\n"
		"0 flags=528 eventfd2(initval=1, flags=0) = 0\n"
		"0 flags=528 write(fd=0, buf=\"\\x02\\x00\\x00\\x00\\x00\\x00\\x00\\x00\", count=8) = 8\n"
		"0 flags=528 read(fd=0, buf=\"\\x03\\x00\\x00\\x00\\x00\\x00\\x00\\x00\", count=8) = 8\n"
		"0 flags=528 read(fd=0, buf=\"\\x03\\x00\\x00\\x00\\x00\\x00\\x00\\x00\", count=8) = 8\n"
		"0 flags=528 inotify_init1(flags=0) = 1\n"
		"0 flags=512 inotify_add_watch(fd=1, path=\"/d\", mask=0x100) = 7\n"
		"0 flags=512 inotify_add_watch(fd=1, path=\"/none\", mask=0x100) = -1 ENOENT\n"
		"0 mkdir(path=\"/d/e\", mode=0755) = 0\n"
		"0 flags=528 read(fd=1, buf=\"x\"/32, count=4096) = 32\n"
		"0 flags=528 read(fd=1, buf=\"x\"/32, count=4096) = 32\n"
		"0 flags=528 inotify_rm_watch(fd=1, wd=7) = 0\n");
	assert_went(0, 0);
	assert_int_equal(res->nr_made, res->nr_actions);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_one_lane),	       TEST(test_other_data), TEST(test_copies),
		TEST(test_does_not_fit),       TEST(test_unread),     TEST(test_lies),
		TEST(test_lies_between_lanes), TEST(test_no_pipe),    TEST(test_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
