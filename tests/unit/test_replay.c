/* SPDX-License-Identifier: MIT */
/* Runs of plans that are written as text: order, verification, stops, big data. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/banned.h"
#include "base/clock.h"
#include "run_rig.h"
#include "sample.h"
#include "trace/reader.h"

/* Of a file in the tree. */
static const char *inside(const char *name)
{
	static char path[4096];

	snprintf(path, sizeof(path), "%s/%s", dir_name(), name);
	return path;
}

static void assert_clean(uint64_t nr_actions)
{
	assert_no_mismatch();
	assert_int_equal(res->nr_done, nr_actions);
}

static void test_calls(void **state)
{
	struct buf content = { 0 };

	(void)state;
	perform_text("0 plan_handle(path=\"/\", dir=0)\n"
		     "0 plan_cwd(dir=0)\n"
		     "0 plan_umask(mask=022)\n"
		     "0 umask(mask=077) = 022\n"
		     "0 mkdir(path=\"a\", mode=0777) = 0\n"
		     "0 openat(dirfd=0, path=\"a/f\", flags=O_RDWR|O_CREAT|O_EXCL, mode=0666) = 1\n"
		     "0 write(fd=1, buf=\"hello world\", count=11) = 11\n"
		     "0 pwritev(fd=1, iov=[{iov_base=\"HE\", iov_len=2}, {iov_base=\"LL\", "
		     "iov_len=2}], iovcnt=2, offset=0) = 4\n"
		     "0 lseek(fd=1, offset=0, whence=SEEK_SET) = 0\n"
		     "0 read(fd=1, buf=\"HELLo world\", count=100) = 11\n"
		     "0 preadv(fd=1, iov=[{iov_base=\"HEL\", iov_len=3}, {iov_base=\"Lo \", "
		     "iov_len=3}], iovcnt=2, offset=0) = 6\n"
		     "0 dup(oldfd=1) = 2\n"
		     "0 close(fd=1) = 0\n"
		     "0 ftruncate(fd=2, length=5) = 0\n"
		     "0 fsetxattr(fd=2, name=\"user.x\", value=\"v\", size=1, flags=0) = 0\n"
		     "0 fgetxattr(fd=2, name=\"user.x\", value=\"v\", size=10) = 1\n"
		     "0 link(oldpath=\"a/f\", newpath=\"a/g\") = 0\n"
		     "0 symlink(target=\"f\", linkpath=\"a/l\") = 0\n"
		     "0 readlink(path=\"a/l\", buf=\"f\", bufsiz=10) = 1\n"
		     "0 renameat2(olddirfd=0, oldpath=\"a/g\", newdirfd=0, newpath=\"a/l\", "
		     "flags=RENAME_EXCHANGE) = 0\n"
		     "0 utimensat(dirfd=0, path=\"a/f\", times=[{tv_sec=1, tv_nsec=2}, {tv_sec=3, "
		     "tv_nsec=4}], flags=0) = 0\n"
		     "0 copy_file_range(fd_in=2, off_in=[0], fd_out=2, off_out=[100], len=5, "
		     "flags=0) = 5\n"
		     "0 unlink(path=\"a/none\") = -1 ENOENT\n"
		     "0 chdir(path=\"a\") = 0\n"
		     "0 access(path=\"f\", mode=R_OK) = 0\n"
		     "0 mmap(length=4096, prot=PROT_READ, flags=MAP_SHARED, fd=2, offset=0) = 3\n"
		     "0 mknod(path=\"p\", mode=S_IFIFO|0600, dev=0) = 0\n"
		     "0 open(path=\"p\", flags=O_RDWR, mode=0) = 4\n"
		     "0 write(fd=4, buf=\"pipe\", count=4) = 4\n"
		     "0 read(fd=4, buf=\"pipe\", count=10) = 4\n"
		     "0 fsync(fd=2) = 0\n"
		     "0 plan_drop(fd=4)\n"
		     "0 close(fd=2) = 0\n"
		     "0 close(fd=2) = -1 EBADF\n"
		     "0 exit_group(status=0) = ?\n");
	assert_clean(35);
	assert_true(res->nr_results_verified >= 5);
	scratch_read(inside("a/f"), &content);
	assert_int_equal(content.len, 105);
	assert_memory_equal(content.data, "HELLo", 5);
	assert_memory_equal(content.data + 100, "HELLo", 5);
	buf_release(&content);
}

static void test_mismatches(void **state)
{
	(void)state;
	perform_text(
		"0 openat(dirfd=AT_FDCWD, path=\"/f\", flags=O_RDWR|O_CREAT, mode=0644) = 1\n"
		"0 write(fd=1, buf=\"abc\", count=3) = 3\n"
		"0 openat(dirfd=AT_FDCWD, path=\"/no\", flags=O_RDONLY, mode=0) = 2\n" /* failed */
		"0 mkdir(path=\"/d\", mode=0755) = -1 EEXIST\n" /* succeeded */
		"0 fallocate(fd=1, mode=FALLOC_FL_KEEP_SIZE, offset=0, len=10) = -1 EOPNOTSUPP\n"
		"0 rmdir(path=\"/no\") = -1 EBUSY\n" /* other error */
		"0 pread64(fd=1, count=10, offset=0) = 5\n" /* short */
		"0 pread64(fd=1, count=10, offset=0) = 2\n" /* long */
		"0 umask(mask=022) = 0777\n" /* other value */
		"0 pread64(fd=1, buf=\"abd\", count=3, offset=0) = 3\n" /* other result */
		"0 flags=16 rmdir(path=\"/no\") = -1 EBUSY\n" /* any outcome will do */
		"0 flags=1 rmdir(path=\"/no\") = 0\n" /* not made */
		"0 pread64(fd=1, buf=\"abc\", count=3, offset=0) = 3\n");
	assert_int_equal(res->nr_done, 13);
	assert_int_equal(res->nr_mismatches, 8);
	for (int kind = 0; kind < RUN_MISMATCH_MAX; kind++)
		assert_int_equal(res->mismatches_by_kind[kind], 1);
	assert_int_equal(res->mismatches[0].seq, 3);
	assert_int_equal(res->mismatches[0].got.err, ENOENT);

	o.verify = RUN_VERIFY_OUTCOME;
	perform();
	assert_int_equal(res->mismatches_by_kind[RUN_MISMATCH_OTHER_RESULT], 0);
	o.verify = RUN_VERIFY_OFF;
	perform();
	assert_int_equal(res->nr_mismatches, 0);
	o.verify = RUN_VERIFY_DATA;
	o.on_mismatch = RUN_MISMATCH_STOP;
	perform();
	assert_int_equal(res->end, RUN_MISMATCHED);
	assert_int_equal(res->nr_done, 3);
}

#define ORDER_LANES 4
#define ORDER_ACTIONS 200

/* Lanes take turns at random to append their letter; `ordered`: as edges say. */
static void write_order_plan(bool ordered, char *letters)
{
	uint64_t nr[ORDER_LANES] = { 1, 0, 0, 0 };
	struct plan_text *p = plan_text_new(plan_name(), 4);
	struct rng rng = { 7 };
	int i, last = 0;
	char line[256];

	plan_text_add(p, "0 openat(dirfd=AT_FDCWD, path=\"/log\", "
			 "flags=O_WRONLY|O_CREAT|O_TRUNC|O_APPEND, mode=0644) = 1");
	for (i = 0; i < ORDER_ACTIONS; i++) {
		int lane = (int)rng_below(&rng, ORDER_LANES);
		char edge[64] = "";

		if (i < ORDER_LANES)
			lane = i;
		if (lane != last && (ordered || i < ORDER_LANES))
			snprintf(edge, sizeof(edge), "<%d:%llu ", ordered ? last : 0,
				 ordered ? (unsigned long long)nr[last] - 1 : 0ULL);
		letters[i] = (char)('a' + lane);
		snprintf(line, sizeof(line), "%d %swrite(fd=1, buf=\"%c\", count=1) = 1", lane,
			 edge, letters[i]);
		plan_text_add(p, line);
		nr[lane]++;
		last = lane;
	}
	plan_text_close(p);
}

static bool order_is(const char *letters)
{
	struct buf content = { 0 };
	bool same;

	scratch_read(inside("log"), &content);
	assert_int_equal(content.len, ORDER_ACTIONS);
	same = !memcmp(content.data, letters, ORDER_ACTIONS);
	buf_release(&content);
	return same;
}

static void test_order(void **state)
{
	char letters[ORDER_ACTIONS];
	int other = 0;

	(void)state;
	write_order_plan(true, letters);
	for (o.perturb_seed = 0; o.perturb_seed < 6; o.perturb_seed++) {
		perform();
		assert_clean(ORDER_ACTIONS + 1);
		assert_true(order_is(letters));
	}
	/* That it could have failed: without the edges the order is another one. */
	write_order_plan(false, letters);
	for (o.perturb_seed = 1; o.perturb_seed < 6; o.perturb_seed++) {
		perform();
		assert_clean(ORDER_ACTIONS + 1);
		other += !order_is(letters);
	}
	assert_true(other > 0);
}

/* An action that is let go when the other has begun must not wait for its end. */
static void test_started(void **state)
{
	(void)state;
	o.stall_ns = 20 * NS_PER_S;
	perform_text("0 mknod(path=\"/p\", mode=S_IFIFO|0600, dev=0) = 0\n"
		     "0 open(path=\"/p\", flags=O_RDWR, mode=0) = 0\n"
		     "0 read(fd=0, buf=\"x\", count=1) = 1\n"
		     "1 <0:1 !0:2 write(fd=0, buf=\"x\", count=1) = 1\n"
		     "1 <0:2 close(fd=0) = 0\n");
	assert_clean(5);
}

#define MANY_LANES 1000

/* A chain through all lanes, there and back. */
static void test_many_lanes(void **state)
{
	struct plan_text *p = plan_text_new(plan_name(), 4);
	char line[256];
	int i;

	(void)state;
	plan_text_add(p, "0 openat(dirfd=AT_FDCWD, path=\"/n\", "
			 "flags=O_WRONLY|O_CREAT|O_TRUNC|O_APPEND, mode=0644) = 1");
	plan_text_add(p, "0 write(fd=1, buf=\"x\", count=1) = 1");
	for (i = 1; i < MANY_LANES; i++) {
		snprintf(line, sizeof(line), "%d <%d:%d write(fd=1, buf=\"x\", count=1) = 1", i,
			 i - 1, i == 1);
		plan_text_add(p, line);
	}
	for (i = MANY_LANES - 2; i >= 0; i--) {
		snprintf(line, sizeof(line), "%d <%d:%d write(fd=1, buf=\"x\", count=1) = 1", i,
			 i + 1, i + 1 == MANY_LANES - 1 ? 0 : 1);
		plan_text_add(p, line);
	}
	plan_text_close(p);
	perform();
	assert_clean(2 * MANY_LANES);
	assert_int_equal(res->nr_lanes, MANY_LANES);
	assert_int_equal(scratch_size(inside("n")), 2 * MANY_LANES - 1);
}

/* More data in flight than the loader holds: each lane's block waits for the lane before. */
static void test_big_data(void **state)
{
	enum { LANES = 40, BYTES = 4 << 20 };
	struct plan_text *p = plan_text_new(plan_name(), LANES + 1);
	char *data = malloc(BYTES + 1), *line = malloc(BYTES + 256);
	int i;

	(void)state;
	memset(data, 'd', BYTES);
	data[BYTES] = 0;
	/* The first lane comes last: all others have loaded before it can go. */
	for (i = 0; i < LANES; i++) {
		snprintf(line, BYTES + 256,
			 "%d openat(dirfd=AT_FDCWD, path=\"/b%d\", "
			 "flags=O_WRONLY|O_CREAT|O_TRUNC, mode=0644) = %d",
			 i, i, i);
		plan_text_add(p, line);
		if (i + 1 < LANES)
			snprintf(line, BYTES + 256,
				 "%d <%d:1 write(fd=%d, buf=\"%s\", count=%d) = %d", i, i + 1, i,
				 data, BYTES, BYTES);
		else
			snprintf(line, BYTES + 256, "%d write(fd=%d, buf=\"%s\", count=%d) = %d", i,
				 i, data, BYTES, BYTES);
		plan_text_add(p, line);
	}
	plan_text_close(p);
	o.stall_ns = 60 * NS_PER_S;
	perform();
	assert_clean(2 * LANES);
	for (i = 0; i < LANES; i++) {
		snprintf(line, 64, "b%d", i);
		assert_int_equal(scratch_size(inside(line)), BYTES);
	}
	free(data);
	free(line);
}

/* Bytes that were not kept are filler, the same in every run. */
static void test_filler(void **state)
{
	struct buf first = { 0 }, second = { 0 };

	(void)state;
	plan_from_text(plan_name(), 4,
		       "0 openat(dirfd=AT_FDCWD, path=\"/f\", flags=O_WRONLY|O_CREAT|O_TRUNC, "
		       "mode=0644) = 1\n"
		       "0 write(fd=1, buf=\"abc\"/10000, count=10000) = 10000\n"
		       "0 pwrite64(fd=1, buf=?/5000, count=5000, offset=20000) = 5000\n");
	perform();
	assert_clean(3);
	scratch_read(inside("f"), &first);
	assert_int_equal(first.len, 25000);
	assert_memory_equal(first.data, "abc", 3);
	perform();
	scratch_read(inside("f"), &second);
	assert_memory_equal(first.data, second.data, 25000);
	buf_release(&first);
	buf_release(&second);
}

static void test_times(void **state)
{
	(void)state;
	o.speed = RUN_NATURAL;
	perform_text("0 mkdir(path=\"/a\", mode=0755) = 0\n"
		     "0 think=3000000,4000000 mkdir(path=\"/b\", mode=0755) = 0\n"
		     "1 <0:1 think=1000000,2000000 mkdir(path=\"/c\", mode=0755) = 0\n");
	assert_clean(3);
	/* 7 ms in lane 0; what is after the wait comes on top, what is before is over by then. */
	assert_true(res->elapsed_ns >= 9 * NS_PER_MS);
	assert_int_equal(res->lateness.count, 2);
}

/* Actions begin at their original times, scaled. */
static void test_timed(void **state)
{
	(void)state;
	o.speed = RUN_TIMED;
	o.scale = 2;
	perform_text("0 1/1 #1 1000+10 mkdir(path=\"/a\", mode=0755) = 0\n"
		     "0 1/1 #2 5001000+10 mkdir(path=\"/b\", mode=0755) = 0\n");
	assert_clean(2);
	assert_true(res->elapsed_ns >= 10 * NS_PER_MS);
}

static bool stop_soon(void *arg)
{
	int *calls = arg;

	return ++*calls > 10;
}

static void test_interrupt(void **state)
{
	int calls = 0;
	struct run_watcher w = { .arg = &calls, .want_stop = stop_soon };

	(void)state;
	/* One lane waits for another, that one in a call, a third for its time. */
	plan_from_text(plan_name(), 4,
		       "0 mknod(path=\"/p\", mode=S_IFIFO|0600, dev=0) = 0\n"
		       "0 open(path=\"/p\", flags=O_RDWR, mode=0) = 0\n"
		       "0 read(fd=0, buf=\"x\", count=1) = 1\n"
		       "1 <0:2 close(fd=0) = 0\n"
		       "2 think=60000000000,0 sync() = 0\n");
	o.speed = RUN_NATURAL;
	perform_watched(&w);
	assert_int_equal(res->end, RUN_INTERRUPTED);
	assert_true(res->nr_done <= 3);
	assert_true(res->elapsed_ns < 50 * NS_PER_S);
}

static void test_stall(void **state)
{
	(void)state;
	o.stall_ns = 200 * NS_PER_MS;
	plan_from_text(plan_name(), 4,
		       "0 <1:0 mkdir(path=\"/a\", mode=0755) = 0\n"
		       "1 <0:0 mkdir(path=\"/b\", mode=0755) = 0\n");
	perform_watched(NULL);
	assert_int_equal(res->end, RUN_STALLED);
	assert_int_equal(res->nr_done, 0);
	assert_int_equal(res->lanes[0].edge_lane, 1);
}

static void test_output(void **state)
{
	const char *run = scratch_path("t.run");
	struct trace_query q = { 0 };
	struct trace_iter *it;
	struct event *ev;
	struct trace *t;
	int nr = 0;

	(void)state;
	o.output = run;
	o.replace = true;
	perform_text("0 100/101 #1 5+1 mkdir(path=\"/a\", mode=0755) = 0\n"
		     "0 100/102 #2 9+1 rmdir(path=\"/x\") = -1 ENOENT\n"
		     "1 200/200 #3 9+1 sync() = 0\n");
	assert_clean(3);
	assert_int_equal(trace_open(run, 0, &t, &err), 0);
	assert_int_equal(trace_iter_open(t, &q, &it, &err), 0);
	while (trace_iter_next(it, &ev, &err) > 0) {
		nr++;
		if (ev->tid == 102)
			assert_int_equal(ev->outcome.err, ENOENT);
	}
	assert_int_equal(nr, 3);
	trace_iter_close(it);
	assert_int_equal(trace_tail(t, &err), 0);
	trace_close(t);
}

/* Rings that are too small for the lane: the loader and the keeper must follow. */
static void test_long_lane(void **state)
{
	enum { ACTIONS = 200000 };
	struct plan_text *p = plan_text_new(plan_name(), 4);
	int i;

	(void)state;
	for (i = 0; i < ACTIONS; i++)
		plan_text_add(p, i % 2 ? "0 close(fd=1) = 0" : "1 <0:0 close(fd=2) = 0");
	plan_text_close(p);
	o.engine = "null";
	perform();
	assert_clean(ACTIONS);
	assert_int_equal(res->calls[SC_close].count, ACTIONS);
}

static void test_failures(void **state)
{
	const char *plan = plan_name(), *none = scratch_path("none.plan");

	(void)state;
	plan_from_text(plan, 4, "0 sync() = 0\n");
	assert_int_equal(run_perform(&plan, 1, scratch_path("nowhere"), &o, NULL, &res, &err),
			 -ENOENT);
	assert_int_equal(run_perform(&none, 1, dir_name(), &o, NULL, &res, &err), -ENOENT);
	o.engine = "steam";
	assert_int_equal(run_perform(&plan, 1, dir_name(), &o, NULL, &res, &err), -EINVAL);
	assert_non_null(strstr(err.text, "steam"));
	res = NULL;
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_calls),      TEST(test_mismatches), TEST(test_order),	 TEST(test_started),
		TEST(test_many_lanes), TEST(test_big_data),   TEST(test_filler), TEST(test_times),
		TEST(test_timed),      TEST(test_interrupt),  TEST(test_stall),	 TEST(test_output),
		TEST(test_long_lane),  TEST(test_failures),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
