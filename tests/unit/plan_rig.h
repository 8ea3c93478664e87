/* SPDX-License-Identifier: MIT */
/*
 * What the tests of plans share: a trace to make plans of, a plan that is
 * written, then read, and failures that end the test with the words of the
 * error. Included behind cmocka.h, once in a program.
 */
#ifndef UNIT_PLAN_RIG_H
#define UNIT_PLAN_RIG_H

#include <stdio.h>
#include <unistd.h>

#include "plan/plan.h"
#include "plan/refs.h"
#include "sample.h"
#include "scratch.h"
#include "trace/check.h"

#define NR_SLOTS 50
/* Data of the trace: as long as it takes to have a blob, and pieces of one. */
#define NR_WRITES 6

static struct arena arena;
static struct err err;
static struct trace *source; /* the trace that plans are made of */
static struct plan_writer *writer;
static struct plan *plan;
static struct plan_lane *reader; /* of one of its lanes */

#define OK(call)                                                                                   \
	do {                                                                                       \
		if ((call) < 0)                                                                    \
			fail_msg("%s: %s", #call, err.text);                                       \
	} while (0)

/* It fails with this status and these words. */
#define FAILS(call, status, words)                                                                 \
	do {                                                                                       \
		err.text[0] = 0;                                                                   \
		assert_int_equal(call, status);                                                    \
		if (!strstr(err.text, words))                                                      \
			fail_msg("'%s' should say '%s'", err.text, words);                         \
	} while (0)

#define TEST(name) cmocka_unit_test_setup_teardown(name, rig_setup, rig_teardown)

static inline const char *trace_name(void)
{
	return scratch_path("source.trace");
}

static inline const char *plan_name(void)
{
	return scratch_path("t.plan");
}

static const size_t write_bytes[NR_WRITES] = { 10, 64, 65, 4096, 1 << 20, (1 << 20) + 5 };

/* The bytes of the n-th write. */
static inline uint8_t *write_content(unsigned int n)
{
	struct rng rng = { n + 1 };
	uint8_t *p = arena_alloc(&arena, write_bytes[n]);

	rng_fill(&rng, p, write_bytes[n]);
	return p;
}

/* A trace of writes, and of one open of a name that is longer than what stands in events. */
static inline void write_trace(const char *path, unsigned int nr_writes)
{
	const struct trace_writer_options options = { .replace = true };
	struct event ev = { .pid = 1, .tid = 1 };
	struct item entry = { .row = row_by_id(REC_tree_entry) };
	struct trace_stream *s;
	struct trace_writer *w;
	struct trace_feed *f;
	char name[200];
	unsigned int i;

	OK(trace_writer_open(path, &options, &w, &err));
	f = trace_writer_add_feed(w);
	s = trace_feed_open_stream(f, 1, 1);
	for (i = 0; i < nr_writes; i++) {
		ev.row = row_by_id(SC_write);
		ev.enter_ns = ev.exit_ns = 10 * i;
		ev.args[0] = value_int(3);
		ev.args[1] = value_bytes(&arena, write_content(i), write_bytes[i]);
		ev.args[2] = value_uint(write_bytes[i]);
		OK(trace_feed_event(f, s, &ev));
	}
	memset(name, 'n', sizeof(name));
	ev.row = row_by_id(SC_openat);
	ev.args[0] = value_int(-100);
	ev.args[1] = value_bytes(&arena, name, sizeof(name));
	ev.args[2] = value_uint(0);
	ev.args[3] = (struct value){ .type = VALUE_NONE };
	OK(trace_feed_event(f, s, &ev));
	OK(trace_feed_meta(f, "command", "cp"));
	OK(trace_feed_meta(f, "plan.version", "77")); /* not to be taken over */
	memset(name, 'c', sizeof(name));
	OK(trace_feed_meta(f, "cwd", (name[sizeof(name) - 1] = 0, name)));
	entry.args[0] = value_int(0);
	entry.args[1] = value_str(&arena, "/data");
	entry.args[5] = value_bytes(&arena, write_content(3), write_bytes[3]);
	OK(trace_feed_item(f, &entry));
	OK(trace_writer_close(w, &err));
}

static int rig_setup(void **state)
{
	(void)state;
	arena_init(&arena);
	err.text[0] = 0;
	write_trace(trace_name(), NR_WRITES);
	OK(trace_open(trace_name(), 0, &source, &err));
	return 0;
}

static int rig_teardown(void **state)
{
	(void)state;
	plan_writer_abandon(writer);
	writer = NULL;
	plan_lane_close(reader);
	reader = NULL;
	plan_close(plan);
	plan = NULL;
	trace_close(source);
	source = NULL;
	arena_release(&arena);
	return 0;
}

static inline void begin(enum plan_data data)
{
	const struct plan_writer_options options = { .data = data, .replace = true };

	OK(plan_writer_open(plan_name(), source, &options, &writer, &err));
}

static inline void end_with(const struct plan_totals *totals)
{
	struct plan_writer *w = writer;

	writer = NULL;
	OK(plan_writer_close(w, totals, &err));
	OK(plan_open(plan_name(), &plan, &err));
}

static inline void end(void)
{
	end_with(&(struct plan_totals){ .nr_slots = NR_SLOTS });
}

/* pread64(slot, NULL, 4096, offset) at a time. */
static inline struct action pread_at(uint64_t enter_ns, uint64_t offset)
{
	struct action a = { .row = row_by_id(SC_pread64), .pid = 100, .tid = 101 };

	a.seq = enter_ns / 1000 + 1;
	a.enter_ns = enter_ns;
	a.exit_ns = enter_ns + 900;
	a.outcome.ret = 4096;
	a.args[0] = value_int(3);
	a.args[2] = value_uint(4096);
	a.args[3] = value_int((int64_t)offset);
	return a;
}

static inline void append(uint32_t lane, const struct action *a)
{
	OK(plan_writer_action(writer, lane, a, &err));
}

/* An action that does nothing but wait for others. */
static inline void append_waiting(uint32_t lane, const struct action_edge *edges, uint32_t nr_edges)
{
	struct action a = pread_at(1000, 0);

	a.edges = edges;
	a.nr_edges = nr_edges;
	append(lane, &a);
}

/* NULL at the end. */
static inline const struct action *next(struct plan_lane *l)
{
	const struct action *a = NULL;

	OK(plan_lane_next(l, &a, &err));
	return a;
}

static inline struct plan_lane *open_lane(uint32_t lane)
{
	struct plan_lane *l;

	OK(plan_lane_open(plan, lane, &l, &err));
	return l;
}

static inline void assert_whole(void)
{
	struct check_result c;

	OK(trace_check(plan_name(), NULL, &c, &err));
	assert_string_equal(c.first_fault.text, "");
	assert_true(c.closed);
	OK(plan_check(plan, NULL, &err));
	OK(plan_check_data(plan, NULL, &err));
}

#endif
