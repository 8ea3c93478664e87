/* SPDX-License-Identifier: MIT */
/*
 * A recorder that is killed. A child appends events of four threads, flushes now
 * and then and reports how far it got; the parent kills it at a random moment.
 * What was reported must be in the file, with its data, and nothing in the file
 * may refer to what is not there.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "sample.h"
#include "scratch.h"
#include "trace/check.h"
#include "trace/reader.h"
#include "trace/writer.h"

#define NR_ROUNDS 30
#define NR_STREAMS 4
#define LARGE_BYTES ((size_t)300 << 10)

/* Now and then with much data, so that blocks are large and the kill tears some. */
static void make_event(struct arena *a, uint32_t tid, uint64_t n, struct event *ret)
{
	struct rng r = { tid * 1000 + n };
	uint8_t *p;

	sample_event(a, tid, n, ret);
	if (n % 256 != 1)
		return;
	p = arena_alloc(a, LARGE_BYTES);
	rng_fill(&r, p, LARGE_BYTES);
	ret->args[1] = value_bytes(a, p, LARGE_BYTES);
}

/* Of the child: returns only when something fails. */
static int append_for_ever(const char *path, int report_fd, unsigned int flush_every)
{
	const struct trace_writer_options options = { .replace = true };
	struct trace_stream *s[NR_STREAMS];
	struct trace_writer *w;
	struct trace_feed *f;
	struct arena a;
	uint64_t n, i;
	int r = trace_writer_open(path, &options, &w, NULL);

	if (r < 0)
		return r;
	f = trace_writer_add_feed(w);
	for (i = 0; i < NR_STREAMS; i++)
		s[i] = trace_feed_open_stream(f, 100, (uint32_t)i + 1);
	arena_init(&a);
	for (n = 0; !r; n++) {
		for (i = 0; i < NR_STREAMS && !r; i++) {
			struct event ev;

			arena_reset(&a);
			make_event(&a, (uint32_t)i + 1, n, &ev);
			r = trace_feed_event(f, s[i], &ev);
		}
		if (r || n % flush_every)
			continue;
		r = trace_feed_flush(f);
		if (!r)
			r = trace_writer_sync(w, NULL);
		if (!r && write(report_fd, &n, sizeof(n)) != sizeof(n))
			r = -EPIPE;
	}
	return r;
}

/* Runs and kills a child; returns how many events of each stream it reported. */
static uint64_t run_and_kill(const char *path, struct rng *rng)
{
	const struct timespec delay = { .tv_nsec = (long)rng_below(rng, 40 * NS_PER_MS) };
	unsigned int flush_every = 1 + (unsigned int)rng_below(rng, 100);
	uint64_t last, done = 0;
	int fds[2], status;
	pid_t pid;

	assert_int_equal(pipe(fds), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		(void)close(fds[0]);
		_exit(append_for_ever(path, fds[1], flush_every) < 0 ? 1 : 0);
	}
	(void)close(fds[1]);
	assert_int_equal(nanosleep(&delay, NULL), 0);
	assert_int_equal(kill(pid, SIGKILL), 0);
	assert_int_equal(waitpid(pid, &status, 0), pid);
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	while (read_full(fds[0], &last, sizeof(last)) == sizeof(last))
		done = last + 1;
	(void)close(fds[0]);
	return done;
}

static void assert_is_sample(struct trace *t, const struct event *ev, uint64_t n, struct arena *a)
{
	struct hash128 got, wanted_hash;
	struct event wanted;
	struct err err = { "" };

	arena_reset(a);
	make_event(a, ev->tid, n, &wanted);
	if (sample_digest_event(t, ev, &got, &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(sample_digest_event(t, &wanted, &wanted_hash, &err), 0);
	assert_true(hash_equal(got, wanted_hash));
}

static void read_back(struct trace *t, uint64_t reported)
{
	uint64_t n[NR_STREAMS] = { 0 };
	struct trace_iter *it;
	struct event *ev;
	struct arena a;
	struct err err = { "" };
	unsigned int i;
	int r;

	arena_init(&a);
	assert_int_equal(trace_iter_open(t, &(struct trace_query){ 0 }, &it, &err), 0);
	while ((r = trace_iter_next(it, &ev, &err)) == 1) {
		assert_in_range(ev->tid, 1, NR_STREAMS);
		assert_is_sample(t, ev, n[ev->tid - 1]++, &a);
	}
	if (r < 0)
		fail_msg("%s", err.text);
	for (i = 0; i < NR_STREAMS; i++)
		assert_true(n[i] >= reported);
	trace_iter_close(it);
	arena_release(&a);
}

static void check_round(const char *path, uint64_t reported, unsigned int *nr_torn)
{
	struct check_result c;
	struct err err = { "" };
	struct trace *t;
	int r = trace_open(path, 0, &t, &err);

	if (r < 0 && !reported)
		return; /* it had not come to its first block */
	if (r < 0)
		fail_msg("%s", err.text);
	read_back(t, reported);
	r = trace_tail(t, &err);
	assert_true(r == 1 || r == -EBADMSG);
	assert_non_null(strstr(err.text, path));
	*nr_torn += r < 0;
	trace_close(t);

	assert_int_equal(trace_check(path, NULL, &c, &err), 0);
	assert_false(check_ok(&c));
	assert_false(c.closed);
	assert_int_equal(c.nr_dangling, 0);
	assert_int_equal(c.nr_bad_blobs, 0);
	assert_int_equal(c.nr_missing_events, 0);
	assert_int_equal(c.nr_bad_blocks, r < 0 ? 1 : 0); /* the torn one */
}

static void test_killed_writer(void **state)
{
	const char *path = scratch_path("killed.trace");
	struct rng rng = { (uint64_t)getpid() << 32 ^ clock_monotonic_ns() };
	unsigned int round, nr_torn = 0;
	uint64_t seed = rng.state, sum = 0;

	(void)state;
	for (round = 0; round < NR_ROUNDS; round++) {
		uint64_t reported = run_and_kill(path, &rng);

		sum += reported;
		check_round(path, reported, &nr_torn);
		(void)unlink(path); /* the child may have died before it was made */
	}
	printf("# seed %llu: %llu reports held, %u of %u files end in a torn block\n",
	       (unsigned long long)seed, (unsigned long long)sum, nr_torn, NR_ROUNDS);
	assert_true(sum > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_killed_writer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
