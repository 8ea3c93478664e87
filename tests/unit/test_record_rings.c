/* SPDX-License-Identifier: MIT */
/* What is taken from rings, which programs may write into as they like. */
#include <errno.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <x86intrin.h>

#include <cmocka.h>

#include "base/clock.h"
#include "record/agent/inside.h"
#include "record/agent/rules.h"
#include "trace/check.h"

/* A recording of ourselves, of which only the rings are looked at. */
struct rig {
	struct tracer tr;
	struct session session;
	struct record_options o;
	struct record_result res;
	struct tracee t;
	struct agent_thread at;
	struct agent_space space;
	struct agent_image image;
	uint8_t *slot;
};

static void rig_open(struct rig *g, const char *path)
{
	struct trace_writer_options options = { .replace = true };
	struct tree_options tree_options = { .content_max_bytes = 0 };
	static struct memory nowhere;
	struct err err = { "" };

	memset(g, 0, sizeof(*g));
	g->tr.o = &g->o;
	g->tr.session = &g->session;
	g->session.res = &g->res;
	g->session.start_ns = clock_monotonic_ns();
	assert_int_equal(trace_writer_open(path, &options, &g->session.writer, &err), 0);
	g->session.feed = trace_writer_add_feed(g->session.writer);
	g->session.tree = tree_new(g->session.feed, &tree_options);
	g->tr.found = found_new();
	g->tr.aio = aio_new();
	g->tr.capture = (struct capture){ .memory = &nowhere, .feed = g->session.feed };
	assert_int_equal(agent_new(&g->tr, &g->tr.agent, &err), 0);
	g->slot = calloc(1, WIRE_SLOT_BYTES);
	g->space.image = &g->image;
	g->at = (struct agent_thread){ .space = &g->space,
				       .slot = 1,
				       .block = (void *)g->slot,
				       .ring = g->slot + WIRE_BLOCK_BYTES,
				       .ring_bytes = WIRE_RING_FIRST_BYTES };
	g->t = (struct tracee){ .tid = getpid(), .pid = getpid(), .state = TRACEE_RUNNING };
	g->t.agent = &g->at;
	arena_init(&g->t.arena);
	g->t.stream =
		trace_feed_open_stream(g->session.feed, (uint32_t)getpid(), (uint32_t)getpid());
}

static void rig_close(struct rig *g)
{
	struct err err = { "" };

	assert_int_equal(trace_feed_close_stream(g->session.feed, g->t.stream), 0);
	arena_release(&g->t.arena);
	tree_free(g->session.tree);
	found_free(g->tr.found);
	aio_free(g->tr.aio);
	capture_release(&g->tr.capture);
	agent_free(g->tr.agent);
	assert_int_equal(trace_writer_close(g->session.writer, &err), 0);
	free(g->slot);
}

/* Whatever was in the rings, the trace is whole. Returns how many ledger entries it has. */
static uint64_t check_trace(const char *path)
{
	struct check_result c;
	struct err err = { "" };

	assert_int_equal(trace_check(path, NULL, &c, &err), 0);
	assert_string_equal(c.first_fault.text, "");
	assert_true(check_intact(&c));
	return c.nr_losses;
}

static uint64_t draw(uint64_t *x)
{
	*x ^= *x << 13;
	*x ^= *x >> 7;
	*x ^= *x << 17;
	return *x;
}

/* So many copies of random length; how many bytes they are. */
static uint64_t put_random_copies(uint8_t *at, const uint64_t regs[6], unsigned int nr, uint64_t *x)
{
	uint64_t len = 0;
	unsigned int i;

	for (i = 0; i < nr; i++) {
		struct wire_copy c = { regs[draw(x) % 6],
				       draw(x) % 64 ? 1 + draw(x) % 500 : draw(x) };

		memcpy(at + len, &c, sizeof(c));
		len += sizeof(c) + (c.len_bytes % 512 + 7) / 8 * 8;
	}
	return len;
}

/* A record as the agent could have made it, but for a number here and there. */
static uint64_t put_random_record(uint8_t *at, uint64_t *x)
{
	struct wire_record rec = { .nr = (uint32_t)(draw(x) % 450),
				   .ret = (int64_t)(draw(x) % 4096) };
	uint64_t len = sizeof(rec), i;

	for (i = 0; i < 6; i++)
		rec.regs[i] = draw(x) % 4 ? draw(x) % 4096 : draw(x);
	rec.enter_tsc = draw(x);
	rec.exit_tsc = __rdtsc();
	rec.nr_in = draw(x) % 3;
	rec.nr_out = draw(x) % 2;
	rec.in_bytes = put_random_copies(at + len, rec.regs, rec.nr_in, x);
	len += rec.in_bytes;
	len += put_random_copies(at + len, rec.regs, rec.nr_out, x);
	rec.size_bytes = (uint32_t)len;
	if (draw(x) % 64 == 0)
		rec.size_bytes = (uint32_t)draw(x);
	if (draw(x) % 64 == 0)
		rec.in_bytes = draw(x);
	if (draw(x) % 64 == 0)
		rec.nr = (uint32_t)draw(x);
	memcpy(at, &rec, sizeof(rec));
	return len;
}

/* The program may write into its ring what it likes: we end, and go on. */
static void survives_any_ring(void **state)
{
	char path[] = "/tmp/reprise-rings-XXXXXX";
	int fd = mkstemp(path);
	uint64_t x = 88172645463325252u, round, nr_damaged = 0;
	struct rig g;

	(void)state;
	assert_true(fd >= 0);
	rig_open(&g, path);
	for (round = 0; round < 10000; round++) {
		struct wire_block *b = g.at.block;
		uint8_t *ring = g.slot + WIRE_BLOCK_BYTES;
		uint64_t len = 0;

		g.at.tail = g.at.given_back = draw(&x) % 8 ? 0 : draw(&x) / 8 * 8;
		if (draw(&x) % 16 == 0) {
			for (len = 0; len < 65536; len += 8)
				memcpy(ring + len, &(uint64_t){ draw(&x) }, 8);
		}
		for (len = 0; len < 8192;)
			len += put_random_record(ring + len, &x);
		g.at.is_damaged = false;
		b->head = draw(&x) % 8 ? g.at.tail + len : draw(&x);
		(void)drain_thread(&g.tr, &g.t, DRAIN_ALL);
		assert_int_equal(g.at.tail, b->head);
		nr_damaged += g.at.is_damaged;
	}
	assert_true(agent_nr_events(g.tr.agent) > 1000);
	rig_close(&g);
	assert_true(check_trace(path) >= nr_damaged);
	close(fd);
	unlink(path);
}

/* A write of so many bytes, from the address 4096 on. Returns its length. */
static uint64_t put_write(uint8_t *at, uint32_t len)
{
	uint64_t padded = sizeof(struct wire_copy) + ((uint64_t)len + 7) / 8 * 8;
	struct wire_copy c = { 4096, len };
	struct wire_record rec = { .size_bytes = (uint32_t)(sizeof(rec) + padded),
				   .nr = SYS_pwrite64,
				   .nr_in = 1,
				   .ret = len,
				   .regs = { 5, 4096, len, 0 },
				   .in_bytes = padded };

	rec.enter_tsc = rec.exit_tsc = __rdtsc();
	memcpy(at, &rec, sizeof(rec));
	memcpy(at + sizeof(rec), &c, sizeof(c));
	return rec.size_bytes;
}

#define WRITE_BYTES 40u
#define COPY_LEN_AT (sizeof(struct wire_record) + offsetof(struct wire_copy, len_bytes))

/* What no agent can have written ends the taking, and is in the ledger. */
static void refuses_forged_records(void **state)
{
	static const struct {
		size_t at;
		uint64_t value;
		size_t len;
	} cases[] = {
		{ offsetof(struct wire_record, size_bytes), 0, 4 },
		{ offsetof(struct wire_record, size_bytes), 8, 4 },
		{ offsetof(struct wire_record, size_bytes), sizeof(struct wire_record) - 8, 4 },
		{ offsetof(struct wire_record, size_bytes), sizeof(struct wire_record), 4 },
		{ offsetof(struct wire_record, size_bytes), sizeof(struct wire_record) + 63, 4 },
		{ offsetof(struct wire_record, size_bytes), UINT32_MAX & ~7u, 4 },
		{ offsetof(struct wire_record, nr), SYS_clone, 4 },
		{ offsetof(struct wire_record, nr), WIRE_NR_CALLS, 4 },
		{ offsetof(struct wire_record, nr), WIRE_SKIP, 4 },
		{ offsetof(struct wire_record, nr), WIRE_LEFT_OUT | SYS_pwrite64, 4 },
		{ offsetof(struct wire_record, nr_in), 0, 4 },
		{ offsetof(struct wire_record, nr_in), 2, 4 },
		{ offsetof(struct wire_record, nr_in), UINT32_MAX, 4 },
		{ offsetof(struct wire_record, nr_out), 1, 4 },
		{ offsetof(struct wire_record, nr_out), UINT32_MAX, 4 },
		{ offsetof(struct wire_record, in_bytes), 0, 8 },
		{ offsetof(struct wire_record, in_bytes), 48, 8 },
		{ offsetof(struct wire_record, in_bytes), UINT64_MAX - 7, 8 },
		{ COPY_LEN_AT, 0, 8 },
		{ COPY_LEN_AT, WRITE_BYTES + 8, 8 },
		{ COPY_LEN_AT, UINT64_MAX, 8 },
	};
	char path[] = "/tmp/reprise-rings-XXXXXX";
	int fd = mkstemp(path);
	struct rig g;
	uint8_t *ring;
	size_t i;

	(void)state;
	assert_true(fd >= 0);
	rig_open(&g, path);
	ring = g.slot + WIRE_BLOCK_BYTES;
	for (i = 0; i <= ARRAY_LEN(cases); i++) {
		g.at.tail = g.at.given_back = 0;
		g.at.is_damaged = false;
		g.at.block->head = put_write(ring, WRITE_BYTES);
		if (i < ARRAY_LEN(cases))
			memcpy(ring + cases[i].at, &cases[i].value, cases[i].len);
		(void)drain_thread(&g.tr, &g.t, DRAIN_ALL);
		assert_int_equal(g.at.is_damaged, i < ARRAY_LEN(cases));
		assert_int_equal(agent_nr_events(g.tr.agent), i == ARRAY_LEN(cases));
	}
	rig_close(&g);
	assert_int_equal(check_trace(path), ARRAY_LEN(cases));
	close(fd);
	unlink(path);
}

/* The record of a call that is being made is checked as well. */
static void refuses_forged_calls(void **state)
{
	char path[] = "/tmp/reprise-rings-XXXXXX";
	int fd = mkstemp(path);
	uint64_t at[] = { 8, WIRE_RING_FIRST_BYTES - 8, UINT64_MAX }, i;
	struct rig g;
	uint8_t *ring;

	(void)state;
	assert_true(fd >= 0);
	rig_open(&g, path);
	ring = g.slot + WIRE_BLOCK_BYTES;
	(void)put_write(ring, WRITE_BYTES);
	assert_true(drain_begin_call(&g.tr, &g.t, 0, 0));
	assert_false(g.at.is_damaged);
	memcpy(ring + COPY_LEN_AT, &(uint64_t){ 1000 }, 8);
	assert_false(drain_begin_call(&g.tr, &g.t, 0, 0));
	assert_true(g.at.is_damaged);
	for (i = 0; i < ARRAY_LEN(at); i++) {
		g.at.is_damaged = false;
		/* Another call has begun meanwhile: that is no damage. */
		assert_false(drain_begin_call(&g.tr, &g.t, at[i], 0));
		assert_false(g.at.is_damaged);
		g.at.block->call_head = at[i];
		assert_false(drain_begin_call(&g.tr, &g.t, at[i], 0));
		assert_true(g.at.is_damaged);
		g.at.block->call_head = 0;
	}
	rig_close(&g);
	assert_int_equal(check_trace(path), 1 + ARRAY_LEN(at));
	close(fd);
	unlink(path);
}

/* The agent has made no execve: it has only said that there is no such file. */
static void refuses_other_answers(void **state)
{
	static const int64_t results[] = { -ENOENT, 0, -EACCES, -ENOTDIR, 1, INT64_MIN };
	char path[] = "/tmp/reprise-rings-XXXXXX";
	int fd = mkstemp(path);
	struct wire_record rec = { .size_bytes = sizeof(rec), .nr = SYS_execve };
	struct rig g;
	size_t i;

	(void)state;
	assert_true(fd >= 0);
	rig_open(&g, path);
	for (i = 0; i < ARRAY_LEN(results); i++) {
		g.at.tail = g.at.given_back = 0;
		g.at.is_damaged = false;
		rec.enter_tsc = rec.exit_tsc = __rdtsc();
		rec.ret = results[i];
		memcpy(g.slot + WIRE_BLOCK_BYTES, &rec, sizeof(rec));
		g.at.block->head = sizeof(rec);
		(void)drain_thread(&g.tr, &g.t, DRAIN_ALL);
		assert_int_equal(g.at.is_damaged, i > 0);
		assert_int_equal(agent_nr_events(g.tr.agent), 1);
		/* Likewise of one that is not published; what its record says is not its result. */
		g.at.is_damaged = false;
		rec.ret = -ENOENT;
		memcpy(g.slot + WIRE_BLOCK_BYTES, &rec, sizeof(rec));
		assert_int_equal(drain_begin_call(&g.tr, &g.t, 0, results[i]), !i);
		assert_int_equal(g.at.is_damaged, i > 0);
	}
	rig_close(&g);
	assert_int_equal(check_trace(path), 2 * (ARRAY_LEN(results) - 1));
	close(fd);
	unlink(path);
}

#define LONG_WRITE_BYTES 60000u
#define NR_LONG_WRITES 4u

struct changer {
	uint8_t *ring;
	atomic_bool done;
};

/* Data, and the numbers that say where it is, to and fro. */
static void *change_ring(void *p)
{
	static const struct {
		size_t at;
		uint32_t values[2];
	} places[] = {
		{ offsetof(struct wire_record, size_bytes),
		  { 8, sizeof(struct wire_record) + 16 + LONG_WRITE_BYTES } },
		{ offsetof(struct wire_record, in_bytes), { 8, 16 + LONG_WRITE_BYTES } },
		{ COPY_LEN_AT, { LONG_WRITE_BYTES, UINT32_MAX } },
		{ sizeof(struct wire_record) + LONG_WRITE_BYTES, { 1, 2 } },
		{ sizeof(struct wire_record) + LONG_WRITE_BYTES, { 3, 4 } },
		{ sizeof(struct wire_record) + LONG_WRITE_BYTES, { 5, 6 } },
	};
	struct changer *c = p;
	uint64_t x = 88172645463325252u, i;

	while (!atomic_load(&c->done)) {
		size_t n = draw(&x) % ARRAY_LEN(places);
		uint8_t *rec =
			c->ring + draw(&x) % NR_LONG_WRITES *
					  (sizeof(struct wire_record) + 16 + LONG_WRITE_BYTES);
		uint32_t *word = (uint32_t *)(void *)(rec + places[n].at);

		for (i = 0; i < 16; i++)
			__atomic_store_n(word, places[n].values[i % 2], __ATOMIC_RELAXED);
	}
	return NULL;
}

/* What changes while it is taken is one or the other, and all the same in the trace. */
static void survives_changes(void **state)
{
	char path[] = "/tmp/reprise-rings-XXXXXX";
	int fd = mkstemp(path);
	struct changer c = { .done = false };
	unsigned int round, i;
	pthread_t changer;
	struct rig g;

	(void)state;
	assert_true(fd >= 0);
	rig_open(&g, path);
	c.ring = g.slot + WIRE_BLOCK_BYTES;
	assert_int_equal(pthread_create(&changer, NULL, change_ring, &c), 0);
	for (round = 0; round < 400; round++) {
		uint64_t len = 0;

		g.at.tail = g.at.given_back = 0;
		g.at.is_damaged = false;
		for (i = 0; i < NR_LONG_WRITES; i++) {
			memcpy(c.ring + len + 200, &round, sizeof(round));
			len += put_write(c.ring + len, LONG_WRITE_BYTES);
		}
		g.at.block->head = len;
		(void)drain_thread(&g.tr, &g.t, DRAIN_ALL);
	}
	atomic_store(&c.done, true);
	assert_int_equal(pthread_join(changer, NULL), 0);
	rig_close(&g);
	(void)check_trace(path);
	close(fd);
	unlink(path);
}

/* What a thread waited for room is time that the recorder held it; and not all is taken at a time. */
static void takes_records(void **state)
{
	char path[] = "/tmp/reprise-rings-XXXXXX";
	int fd = mkstemp(path);
	struct wire_record rec = { .size_bytes = sizeof(rec), .nr = SYS_getppid };
	struct rig g;
	size_t i;

	(void)state;
	assert_true(fd >= 0);
	rig_open(&g, path);
	rec.enter_tsc = rec.exit_tsc = __rdtsc();
	memcpy(g.slot + WIRE_BLOCK_BYTES, &rec, sizeof(rec));
	g.at.block->head = sizeof(rec);
	(void)drain_thread(&g.tr, &g.t, DRAIN_ALL);
	assert_int_equal(agent_nr_events(g.tr.agent), 1);
	assert_int_equal(g.res.held_ns, 0);
	rec.enter_tsc = rec.exit_tsc = __rdtsc();
	rec.waited_ticks = ticks_in_ns(&g.tr.agent->ticks, 1000);
	memcpy(g.slot + WIRE_BLOCK_BYTES + sizeof(rec), &rec, sizeof(rec));
	g.at.block->head += sizeof(rec);
	(void)drain_thread(&g.tr, &g.t, DRAIN_ALL);
	assert_in_range(g.res.held_ns, 1, 100000);
	/* Not all at a time. */
	for (i = 2; i < 6; i++)
		memcpy(g.slot + WIRE_BLOCK_BYTES + i * sizeof(rec), &rec, sizeof(rec));
	g.at.block->head += 4 * sizeof(rec);
	assert_int_equal(drain_thread(&g.tr, &g.t, sizeof(rec) + 1), 2 * sizeof(rec));
	assert_int_equal(g.at.block->tail, 4 * sizeof(rec));
	assert_int_equal(drain_thread(&g.tr, &g.t, DRAIN_ALL), 2 * sizeof(rec));
	assert_int_equal(agent_nr_events(g.tr.agent), 6);
	rig_close(&g);
	close(fd);
	unlink(path);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(takes_records),	cmocka_unit_test(refuses_forged_records),
		cmocka_unit_test(refuses_forged_calls), cmocka_unit_test(survives_any_ring),
		cmocka_unit_test(survives_changes),	cmocka_unit_test(refuses_other_answers),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
