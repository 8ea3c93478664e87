/* SPDX-License-Identifier: MIT */
/*
 * A small plan, cut at every byte and changed at every byte: it is refused, or
 * it says what it said before. And what the commands say of plans.
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
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"
#include "base/mem.h"
#include "forge.h"
#include "plan/plan.h"
#include "sample.h"
#include "scratch.h"
#include "trace/check.h"
#include "trace/writer.h"

#define NR_LANES 3
#define NR_EACH 12

static struct buf original;
static struct hash128 digest; /* of all that an undamaged plan says */

/* The copy that is damaged: a file in memory. */
static int copy_fd;
static char copy_path[64];

#define OK(call)                                                                                   \
	do {                                                                                       \
		if ((call) < 0)                                                                    \
			fail_msg("%s: %s", #call, err.text);                                       \
	} while (0)

static struct trace *make_trace(const char *path)
{
	const struct trace_writer_options options = { .replace = true };
	struct trace_writer *w;
	struct trace *t;
	struct err err = { "" };

	OK(trace_writer_open(path, &options, &w, &err));
	OK(trace_writer_close(w, &err));
	OK(trace_open(path, 0, &t, &err));
	return t;
}

/* Actions of all kinds that sample events have, with edges to the lane before. */
static void append_actions(struct plan_writer *w, struct arena *a)
{
	struct err err = { "" };
	uint64_t n;
	uint32_t lane;

	for (lane = 0; lane < NR_LANES; lane++)
		(void)plan_writer_add_lane(w);
	for (n = 0; n < NR_EACH; n++) {
		for (lane = 0; lane < NR_LANES; lane++) {
			const struct action_edge edge = { .lane = (lane + 1) % NR_LANES,
							  .nr = n ? n - 1 : 0,
							  .rule = (uint8_t)lane };
			struct action action = { .edges = &edge, .nr_edges = n > 0 };
			struct event ev;

			sample_event(a, lane + 1, n, &ev);
			action.row = ev.row;
			action.seq = ev.seq;
			action.pid = ev.pid;
			action.tid = ev.tid;
			action.enter_ns = ev.enter_ns;
			action.exit_ns = ev.exit_ns;
			action.compute_before_ns = ev.cpu_ns;
			action.outcome = ev.outcome;
			memcpy(action.args, ev.args, sizeof(action.args));
			OK(plan_writer_action(w, lane, &action, &err));
		}
	}
}

static void write_plan(const char *path, struct trace *from)
{
	const struct plan_writer_options options = { .replace = true };
	const struct plan_totals totals = { .nr_slots = 8, .elapsed_ns = 1000 };
	struct plan_writer *w;
	struct arena a;
	struct err err = { "" };

	arena_init(&a);
	OK(plan_writer_open(path, from, &options, &w, &err));
	OK(plan_writer_meta(w, "command", "cp"));
	append_actions(w, &a);
	OK(plan_writer_close(w, &totals, &err));
	arena_release(&a);
}

/* The same blocks behind a schema of few rows: the whole one would take most of the time. */
static void shrink(const char *path)
{
	static const uint16_t rows[] = { SC_openat, SC_read,  SC_write, SC_writev,
					 SC_fstat,  SC_close, REC_meta, REC_loss };
	const struct block_entry *e;
	struct buf bytes = { 0 };
	struct forge f;
	struct trace *t;
	struct err err = { "" };
	size_t i, nr;

	scratch_read(path, &bytes);
	OK(trace_open(path, 0, &t, &err));
	forge_init(&f);
	forge_schema(&f, rows, ARRAY_LEN(rows));
	e = trace_blocks(t, &nr);
	for (i = 0; i < nr; i++) {
		if (e[i].type != BLOCK_FILE && e[i].type != BLOCK_SCHEMA)
			forge_copy(&f, &e[i], bytes.data);
	}
	f.counts = *trace_footer(t);
	forge_close(&f);
	forge_save(&f, path);
	forge_release(&f);
	trace_close(t);
	buf_release(&bytes);
}

static void put_numbers(struct buf *b, const uint64_t *numbers, size_t nr)
{
	buf_put(b, numbers, nr * sizeof(*numbers));
}

static int digest_action(struct plan *p, const struct action *a, struct buf *out, struct err *err)
{
	struct event ev = { .row = a->row, .seq = a->seq, .pid = a->pid, .tid = a->tid };
	struct hash128 hash;
	uint32_t i;
	int r;

	ev.flags = a->flags;
	ev.enter_ns = a->enter_ns;
	ev.exit_ns = a->exit_ns;
	ev.outcome = a->outcome;
	memcpy(ev.args, a->args, sizeof(ev.args));
	r = sample_digest_event(plan_data_source(p), &ev, &hash, err);
	put_numbers(out, (uint64_t[]){ hash.low, hash.high, a->compute_before_ns, a->nr_edges }, 4);
	for (i = 0; i < a->nr_edges; i++)
		put_numbers(out, (uint64_t[]){ a->edges[i].lane, a->edges[i].nr, a->edges[i].rule },
			    3);
	return r;
}

static int digest_lane(struct plan *p, uint32_t lane, struct buf *out, struct err *err)
{
	const struct action *a;
	struct plan_lane *l;
	int r = plan_lane_open(p, lane, &l, err);

	if (r < 0)
		return r;
	while ((r = plan_lane_next(l, &a, err)) == 1) {
		r = digest_action(p, a, out, err);
		if (r < 0)
			break;
	}
	plan_lane_close(l);
	return r;
}

/* Everything that a replay would learn from the file, or the first failure. */
static int digest_plan(const char *path, struct hash128 *ret, struct err *err)
{
	const struct plan_totals *t;
	struct buf bytes = { 0 };
	struct plan *p;
	uint32_t lane;
	int r = plan_open(path, &p, err);

	if (r < 0)
		return r;
	t = plan_totals(p);
	put_numbers(&bytes,
		    (uint64_t[]){ t->nr_actions, t->nr_lanes, t->nr_slots, t->nr_edges,
				  t->elapsed_ns, t->first_ns, t->max_data_bytes,
				  t->has_started_edges },
		    8);
	r = plan_check(p, NULL, err);
	for (lane = 0; lane < t->nr_lanes && !r; lane++)
		r = digest_lane(p, lane, &bytes, err);
	if (!r)
		*ret = hash_bytes(bytes.data, bytes.len);
	buf_release(&bytes);
	plan_close(p);
	return r;
}

static int setup(void **state)
{
	const char *path = scratch_path("original.plan");
	struct trace *from = make_trace(scratch_path("original.trace"));
	struct check_result c;
	struct err err = { "" };

	(void)state;
	write_plan(path, from);
	trace_close(from);
	shrink(path);
	scratch_read(path, &original);
	OK(trace_check(path, NULL, &c, &err));
	assert_true(check_intact(&c));
	OK(digest_plan(path, &digest, &err));
	copy_fd = memfd_create("damaged", MFD_CLOEXEC);
	assert_true(copy_fd >= 0);
	(void)snprintf(copy_path, sizeof(copy_path), "/proc/self/fd/%d", copy_fd);
	assert_int_equal(pwrite_full(copy_fd, original.data, original.len, 0), 0);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	(void)close(copy_fd);
	buf_release(&original);
	return 0;
}

static void assert_words(const struct err *err)
{
	if (!strstr(err->text, copy_path))
		fail_msg("'%s' does not name the file", err->text);
}

static void test_change_every_byte(void **state)
{
	struct rng rng = { 1 };
	size_t at;

	(void)state;
	for (at = 0; at < original.len; at++) {
		uint8_t byte = original.data[at] ^ (uint8_t)(1u << rng_below(&rng, 8));
		struct err err = { "" };
		struct check_result c;
		struct hash128 hash;

		assert_int_equal(pwrite_full(copy_fd, &byte, 1, at), 0);
		if (digest_plan(copy_path, &hash, &err) < 0)
			assert_words(&err);
		else if (!hash_equal(hash, digest))
			fail_msg("byte %zu: %02x for %02x makes another plan", at, byte,
				 original.data[at]);
		if (!trace_check(copy_path, NULL, &c, &err) && check_intact(&c))
			fail_msg("byte %zu: %02x for %02x is not noticed", at, byte,
				 original.data[at]);
		assert_int_equal(pwrite_full(copy_fd, &original.data[at], 1, at), 0);
	}
}

/* Less than all of it is no plan. */
static void test_cut_at_every_byte(void **state)
{
	size_t len;

	(void)state;
	for (len = original.len; len-- > 0;) {
		struct err err = { "" };
		struct plan *p;

		assert_int_equal(ftruncate(copy_fd, (off_t)len), 0);
		assert_true(plan_open(copy_path, &p, &err) < 0);
		assert_words(&err);
	}
	assert_int_equal(pwrite_full(copy_fd, original.data, original.len, 0), 0);
}

/* The file may not grow: the writer says so, and leaves nothing behind. */
static void test_no_room(void **state)
{
	const struct plan_writer_options options = { .replace = true, .level = -1 };
	const struct rlimit small = { .rlim_cur = 1 << 20, .rlim_max = RLIM_INFINITY };
	struct trace *from = make_trace(scratch_path("room.trace"));
	const char *path = scratch_path("room.plan");
	struct action a = { .row = row_by_id(SC_sync) };
	struct rlimit before;
	struct plan_writer *w;
	struct err err = { "" };
	unsigned int n;
	int r = 0;

	(void)state;
	assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
	assert_true(signal(SIGXFSZ, SIG_IGN) != SIG_ERR);
	OK(plan_writer_open(path, from, &options, &w, &err));
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
	(void)plan_writer_add_lane(w);
	for (n = 0; n < 1000000 && !r; n++) {
		a.enter_ns = a.exit_ns = n;
		r = plan_writer_action(w, 0, &a, &err);
	}
	if (!r)
		r = plan_writer_close(w, &(struct plan_totals){ 0 }, &err);
	else
		plan_writer_abandon(w);
	assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
	assert_int_equal(r, -EFBIG);
	assert_non_null(strstr(err.text, path));
	assert_int_not_equal(access(path, F_OK), 0);
	trace_close(from);
}

/* The exit status of a command, and what it printed on both outputs. */
static int run(const char *words, const char *path, struct buf *ret)
{
	AUTO_FREE char *line = NULL;
	const char *out = scratch_path("out");
	int status;

	assert_true(asprintf(&line, "\"$REPRISE\" %s %s >%s 2>&1 </dev/null", words, path, out) >
		    0);
	status = system(line);
	assert_true(WIFEXITED(status));
	buf_clear(ret);
	scratch_read(out, ret);
	return WEXITSTATUS(status);
}

static void test_commands(void **state)
{
	static const char *const readers[] = { "show", "stat", "slice -o /dev/null",
					       "check --salvage -o /dev/null" };
	const char *path = scratch_path("original.plan"), *damaged = scratch_path("damaged.plan");
	struct buf text = { 0 }, bytes = { 0 };
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(readers); i++) {
		assert_int_equal(run(readers[i], path, &text), 2);
		assert_non_null(strstr(buf_str(&text), "original.plan is a plan"));
	}
	assert_int_equal(run("check", path, &text), 0);
	assert_non_null(strstr(buf_str(&text), "intact and complete"));
	assert_non_null(strstr(buf_str(&text), "36 actions"));
	assert_non_null(strstr(buf_str(&text), "33 edges"));
	assert_int_equal(run("check --json", path, &text), 0);
	assert_non_null(strstr(buf_str(&text), "\"lanes\": 3"));
	buf_put(&bytes, original.data, original.len);
	bytes.data[bytes.len / 2] ^= 1;
	scratch_write(damaged, bytes.data, bytes.len);
	assert_int_equal(run("check", damaged, &text), 2);
	assert_non_null(strstr(buf_str(&text), "damaged or unfinished"));
	buf_release(&text);
	buf_release(&bytes);
}

static void test_command_finds_circle(void **state)
{
	const struct plan_writer_options options = { .replace = true };
	const struct action_edge edges[2] = { { .lane = 1 }, { .lane = 0 } };
	struct trace *from = make_trace(scratch_path("circle.trace"));
	const char *path = scratch_path("circle.plan");
	struct plan_writer *w;
	struct buf text = { 0 };
	struct err err = { "" };
	uint32_t i;

	(void)state;
	OK(plan_writer_open(path, from, &options, &w, &err));
	(void)plan_writer_add_lane(w);
	(void)plan_writer_add_lane(w);
	for (i = 0; i < 2; i++) {
		const struct action a = { .row = row_by_id(SC_sync),
					  .edges = &edges[i],
					  .nr_edges = 1 };

		OK(plan_writer_action(w, i, &a, &err));
	}
	OK(plan_writer_close(w, &(struct plan_totals){ 0 }, &err));
	trace_close(from);
	assert_int_equal(run("check", path, &text), 2);
	assert_non_null(strstr(buf_str(&text), "actions wait for each other: action 0 of lane 0"));
	buf_release(&text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_change_every_byte),
		cmocka_unit_test(test_cut_at_every_byte),
		cmocka_unit_test(test_no_room),
		cmocka_unit_test(test_commands),
		cmocka_unit_test(test_command_finds_circle),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
