/* SPDX-License-Identifier: MIT */
/*
 * Plans that lie: checksums are right, actions, totals and index are not. Each is
 * refused with words that name the file, before anybody gets a wrong action.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <linux/io_uring.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/varint.h"
#include "forge.h"
#include "model/codec.h"
#include "plan/action_codec.h"
#include "plan/plan.h"
#include "plan/refs.h"
#include "scratch.h"
#include "trace/event_codec.h"

#define NR_LANES 3
#define NR_SLOTS 10
#define NR_OTHERS 2 /* actions of the lanes but the first */

static struct forge forge;
static struct schema *schema;
static struct arena arena;
static struct buf meta, actions;
static uint64_t nr_actions;

static const char *path(void)
{
	return scratch_path("hostile.plan");
}

static void put_meta(const char *key, const char *value)
{
	struct item item = { .row = row_by_id(REC_meta) };

	item.args[0] = value_str(&arena, key);
	item.args[1] = value_str(&arena, value);
	assert_int_equal(item_put(schema, &item, NULL, &meta), 0);
}

static void put_number(const char *key, uint64_t value)
{
	char text[32];

	(void)snprintf(text, sizeof(text), "%llu", (unsigned long long)value);
	put_meta(key, text);
}

static struct action good_action(void)
{
	struct action a = { .row = row_by_id(SC_pread64), .pid = 1, .tid = 2, .seq = 5 };

	a.enter_ns = 100;
	a.exit_ns = 110;
	a.args[0] = value_int(NR_SLOTS - 1);
	a.args[2] = value_uint(10);
	a.args[3] = value_int(0);
	return a;
}

static struct events_prefix prefix_of(uint64_t first_index, uint32_t nr)
{
	return (struct events_prefix){ .pid = 1,
				       .tid = 2,
				       .first_index = first_index,
				       .nr_events = nr,
				       .first_ns = 100,
				       .last_ns = 110,
				       .base_ns = 100,
				       .base_seq = 4 };
}

/* A block with whatever has been put into `actions`. */
static struct block_entry *put_block(uint64_t lane, const struct events_prefix *prefix)
{
	struct buf payload = { 0 };
	struct block_entry *e;

	events_prefix_put(buf_reserve(&payload, EVENTS_PREFIX_BYTES), prefix);
	payload.len = EVENTS_PREFIX_BYTES;
	buf_put(&payload, actions.data, actions.len);
	forge_block(&forge, BLOCK_ACTIONS, lane, payload.data, payload.len, 0);
	e = &forge.entries.items[forge.entries.len - 1];
	e->pid = prefix->pid;
	e->tid = prefix->tid;
	e->nr_events = prefix->nr_events;
	e->first_index = prefix->first_index;
	e->first_ns = prefix->first_ns;
	e->last_ns = prefix->last_ns;
	nr_actions += prefix->nr_events;
	buf_release(&payload);
	buf_clear(&actions);
	return e;
}

/* One action in a block of its own, unchecked. */
static void put_action(uint64_t lane, uint64_t nr, const struct action *a)
{
	struct events_prefix prefix = prefix_of(nr, 1);
	struct action_state state;

	action_state_begin(&state, &prefix);
	assert_int_equal(action_put(schema, a, &state, &actions), 0);
	(void)put_block(lane, &prefix);
}

static void put_others(void)
{
	const struct action a = good_action();
	uint64_t lane, nr;

	for (lane = 1; lane < NR_LANES; lane++) {
		for (nr = 0; nr < NR_OTHERS; nr++)
			put_action(lane, nr, &a);
	}
}

/* Totals that fit, but for the key that is given. */
static void finish_but(const char *key, const char *value)
{
	const struct {
		const char *key;
		uint64_t value;
	} totals[] = {
		{ "plan.version", 1 },	     { "plan.actions", nr_actions },
		{ "plan.lanes", NR_LANES },  { "plan.slots", NR_SLOTS },
		{ "plan.edges", 0 },	     { "plan.elapsed_ns", 10 },
		{ "plan.first_ns", 100 },    { "plan.max_data_bytes", 100 },
		{ "plan.started_edges", 0 }, { "plan.prologue", 0 },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(totals); i++) {
		if (!key || strcmp(key, totals[i].key))
			put_number(totals[i].key, totals[i].value);
		else if (value)
			put_meta(key, value);
	}
	forge_block(&forge, BLOCK_META, 0, meta.data, meta.len, 0);
	forge_close(&forge);
	forge_save(&forge, path());
}

static int setup(void **state)
{
	(void)state;
	schema = schema_new();
	arena_init(&arena);
	forge_init_with_schema(&forge);
	nr_actions = 0;
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	schema_free(schema);
	arena_release(&arena);
	forge_release(&forge);
	buf_release(&meta);
	buf_release(&actions);
	return 0;
}

/* For the next plan of the same test; values stay. */
static void start_over(void)
{
	forge_release(&forge);
	forge_init_with_schema(&forge);
	buf_clear(&meta);
	nr_actions = 0;
}

/* Opens, checks, reads: the first failure. */
static int try_plan(struct err *err)
{
	struct plan *p;
	int r = plan_open(path(), &p, err);

	if (r < 0)
		return r;
	r = plan_check(p, NULL, err);
	if (!r)
		r = plan_check_data(p, NULL, err);
	plan_close(p);
	return r;
}

static void assert_refused(int wanted, const char *words)
{
	struct err err = { "" };
	int r = try_plan(&err);

	if (r != wanted || !strstr(err.text, words) || !strstr(err.text, path()))
		fail_msg("%d, '%s'; should be %d and say '%s'", r, err.text, wanted, words);
}

static void assert_accepted(void)
{
	struct err err = { "" };

	if (try_plan(&err) < 0)
		fail_msg("%s", err.text);
}

static void refuse_action(const struct action *a, int wanted, const char *words)
{
	put_others();
	put_action(0, 0, a);
	finish_but(NULL, NULL);
	assert_refused(wanted, words);
	assert_refused(wanted, "lane 0: action 0");
	start_over();
}

static void accept_action(const struct action *a)
{
	put_others();
	put_action(0, 0, a);
	finish_but(NULL, NULL);
	assert_accepted();
	start_over();
}

static void test_good_action(void **state)
{
	struct action a = good_action();

	(void)state;
	accept_action(&a);
	a.args[0] = value_int(-100);
	accept_action(&a);
}

static void test_slots(void **state)
{
	struct action a = good_action();

	(void)state;
	a.args[0] = value_int(NR_SLOTS);
	refuse_action(&a, -EBADMSG, "fd is slot 10 of 10");
	a.args[0] = value_int(INT64_MIN);
	refuse_action(&a, -EBADMSG, "fd is slot");
	a = good_action();
	a.row = row_by_id(SC_openat);
	a.args[0] = value_int(NR_SLOTS);
	a.args[2] = (struct value){ .type = VALUE_NONE };
	a.args[3] = a.args[2];
	refuse_action(&a, -EBADMSG, "dirfd is slot");
	a.args[0] = value_int(0);
	a.outcome.ret = NR_SLOTS;
	refuse_action(&a, -EBADMSG, "the outcome is slot");
	a.outcome.err = 2;
	accept_action(&a);
	a.outcome.err = 0;
	a.outcome.ret = -1;
	accept_action(&a);
}

static void test_slots_in_lists(void **state)
{
	struct action a = { .row = row_by_id(SC_pipe), .enter_ns = 1, .exit_ns = 1 };

	(void)state;
	a.args[0] = value_list(&arena, 2);
	a.args[0].items[0] = value_int(1);
	a.args[0].items[1] = value_int(NR_SLOTS);
	refuse_action(&a, -EBADMSG, "pipefd is slot");
}

static void test_slots_in_structs(void **state)
{
	struct action a = { .row = row_by_id(SC_poll), .enter_ns = 1, .exit_ns = 1 };
	struct value *control;

	(void)state;
	a.args[0] = value_list(&arena, 1);
	a.args[0].items[0] = value_struct(&arena, 1);
	a.args[0].items[0].fields->items[0] = value_int(NR_SLOTS);
	refuse_action(&a, -EBADMSG, "fd is slot");

	a.row = row_by_id(SC_sendmsg);
	a.args[0] = value_int(0);
	a.args[1] = value_struct(&arena, 1 << 4);
	control = &a.args[1].fields->items[0];
	*control = value_list(&arena, 1);
	control->items[0] = value_struct(&arena, 1 << 3);
	control->items[0].fields->items[0] = value_list(&arena, 1);
	control->items[0].fields->items[0].items[0] = value_int(NR_SLOTS);
	refuse_action(&a, -EBADMSG, "fds is slot");
}

static void test_addresses(void **state)
{
	struct action a = { .row = row_by_id(SC_munmap), .enter_ns = 1, .exit_ns = 1 };

	(void)state;
	a.args[0] = value_uint(0x7f0000000000);
	refuse_action(&a, -EBADMSG, "addr is an address");
	assert_true(plan_put_map_ref(NR_SLOTS, 4096, &a.args[0]));
	refuse_action(&a, -EBADMSG, "addr is slot");
	assert_true(plan_put_map_ref(NR_SLOTS - 1, 4096, &a.args[0]));
	accept_action(&a);
	a.row = row_by_id(SC_io_cancel);
	a.args[0] = value_uint(0);
	a.args[1] = value_struct(&arena, 1);
	a.args[1].fields->items[0] = value_uint(NR_SLOTS + 1);
	refuse_action(&a, -EBADMSG, "obj is slot");
}

static void test_paths(void **state)
{
	struct action a = { .row = row_by_id(SC_unlink), .enter_ns = 1, .exit_ns = 1 };
	const struct blob_ref ref = { .hash = { 1, 2 } };

	(void)state;
	a.args[0] = plan_put_fd_path(&arena, NR_SLOTS, "/x", 2);
	refuse_action(&a, -EBADMSG, "path is slot");
	a.args[0] = value_bytes(&arena, "\0\xff\xff", 3);
	refuse_action(&a, -EBADMSG, "path is malformed");
	a.args[0] = plan_put_fd_path(&arena, 1, "/x", 2);
	accept_action(&a);
	*a.args[0].data = (struct data){ .len_bytes = 9, .kept_bytes = 9, .refs = &ref };
	refuse_action(&a, -EBADMSG, "does not stand in the action");
	/* The name of a socket that is no file. */
	a.row = row_by_id(SC_bind);
	a.args[0] = value_int(0);
	a.args[1] = value_struct(&arena, 1 << 1);
	a.args[1].fields->items[0] = value_bytes(&arena, "\0\xff\xff", 3);
	accept_action(&a);
}

static struct value *add_request(struct action *a, uint8_t opcode, uint8_t flags, int64_t fd)
{
	*a = (struct action){ .row = row_by_id(SC_io_uring_enter), .enter_ns = 1, .exit_ns = 1 };
	a->args[6] = value_list(&arena, 1);
	a->args[6].items[0] = value_struct(&arena, 1 | 1 << 1 | 1 << 3 | 1 << 11);
	a->args[6].items[0].fields->items[0] = value_int(opcode);
	a->args[6].items[0].fields->items[1] = value_uint(flags);
	a->args[6].items[0].fields->items[2] = value_int(fd);
	a->args[6].items[0].fields->items[3] = value_int(0);
	return a->args[6].items[0].fields->items;
}

static void test_requests(void **state)
{
	struct action a;
	struct value *fields;

	(void)state;
	(void)add_request(&a, IORING_OP_READ, 0, NR_SLOTS);
	assert_string_equal(a.row->args[6].name, "sqes");
	refuse_action(&a, -EBADMSG, "fd is slot");
	(void)add_request(&a, IORING_OP_READ, IOSQE_FIXED_FILE, NR_SLOTS);
	accept_action(&a);
	fields = add_request(&a, IORING_OP_SPLICE, 0, 0);
	fields[3] = value_int(NR_SLOTS);
	refuse_action(&a, -EBADMSG, "second descriptor is slot");
	fields = add_request(&a, IORING_OP_READ, 0, 0);
	fields[3] = value_int(NR_SLOTS);
	accept_action(&a);

	a.args[6] = (struct value){ .type = VALUE_NONE };
	a.args[7] = value_list(&arena, 1);
	a.args[7].items[0] = value_struct(&arena, 1 << 1 | 1 << 3);
	a.args[7].items[0].fields->items[0] = value_int(NR_SLOTS);
	a.args[7].items[0].fields->items[1] = value_int(IORING_OP_OPENAT);
	refuse_action(&a, -EBADMSG, "res is slot");
	a.args[7].items[0].fields->items[1] = value_int(IORING_OP_READ);
	accept_action(&a);
}

static void test_heads(void **state)
{
	struct action a = good_action();

	(void)state;
	a.flags = 0x800;
	refuse_action(&a, -EOPNOTSUPP, "flags 0x800");
	a = good_action();
	a.flags = ACTION_ENFORCED;
	a.outcome = (struct outcome){ .ret = -1, .err = 18 };
	accept_action(&a);
	a.outcome = (struct outcome){ 0 };
	refuse_action(&a, -EBADMSG, "enforced");
	a = good_action();
	a.exit_ns = PLAN_TIME_MAX + 1;
	refuse_action(&a, -EBADMSG, "impossible times");
	a = good_action();
	a.wait_ns = UINT64_MAX;
	refuse_action(&a, -EBADMSG, "impossible times");
	a = good_action();
	a.outcome.err = 100000;
	refuse_action(&a, -EBADMSG, "impossible error");
	a = good_action();
	a.row = row_by_id(REC_loss);
	memset(a.args, 0, sizeof(a.args));
	refuse_action(&a, -EBADMSG, "a record is no action");
}

static void test_data(void **state)
{
	struct action a = { .row = row_by_id(SC_write), .enter_ns = 1, .exit_ns = 1 };

	(void)state;
	a.args[1] = value_str(&arena, "x");
	a.args[1].data->len_bytes = 101;
	refuse_action(&a, -EBADMSG, "more data");
	a.args[1].data->len_bytes = UINT64_MAX;
	refuse_action(&a, -EBADMSG, "more data");
	a.args[1].data->len_bytes = 100;
	accept_action(&a);
}

static void test_dangling_data(void **state)
{
	struct action a = { .row = row_by_id(SC_write), .enter_ns = 1, .exit_ns = 1 };
	const struct blob_ref ref = { .hash = { 1, 2 }, .blob = 1 << 24 };
	struct data d = { .len_bytes = 100, .kept_bytes = 100, .refs = &ref };

	(void)state;
	a.args[1] = (struct value){ .type = VALUE_DATA, .data = &d };
	put_others();
	put_action(0, 0, &a);
	finish_but(NULL, NULL);
	assert_refused(-ENODATA, "data block 1 is missing");
}

static void test_edges(void **state)
{
	struct action_edge e = { .lane = NR_LANES };
	struct action a = good_action();

	(void)state;
	a.edges = &e;
	a.nr_edges = 1;
	refuse_action(&a, -EBADMSG, "an edge to lane 3 of 3");
	e.lane = UINT32_MAX;
	refuse_action(&a, -EBADMSG, "an edge to lane");
	e.lane = 0;
	refuse_action(&a, -EBADMSG, "own lane");
	e = (struct action_edge){ .lane = 1, .nr = NR_OTHERS };
	refuse_action(&a, -EBADMSG, "action 2 of lane 1, which has 2");
	e = (struct action_edge){ .lane = 1, .nr = UINT64_MAX };
	refuse_action(&a, -EBADMSG, "an edge to action");
	e = (struct action_edge){ .lane = 1, .started = true };
	refuse_action(&a, -EBADMSG, "without such");
	/* One that is good, but not counted in the totals. */
	e = (struct action_edge){ .lane = 1, .nr = NR_OTHERS - 1 };
	put_others();
	put_action(0, 0, &a);
	finish_but(NULL, NULL);
	assert_refused(-EBADMSG, "has 1 edges, should have 0");
}

/* Whoever goes on behind a fault gets the fault again, not what may stand there. */
static void test_behind_a_fault(void **state)
{
	struct action a = good_action();
	const struct action *got;
	struct plan_lane *l;
	struct plan *p;
	struct err err = { "" };

	(void)state;
	put_action(0, 0, &a);
	a.flags = 0x800;
	put_action(0, 1, &a);
	a.flags = 0;
	put_action(0, 2, &a);
	finish_but(NULL, NULL);
	assert_int_equal(plan_open(path(), &p, &err), 0);
	assert_int_equal(plan_lane_open(p, 0, &l, &err), 0);
	assert_int_equal(plan_lane_next(l, &got, &err), 1);
	assert_int_equal(plan_lane_next(l, &got, &err), -EOPNOTSUPP);
	assert_int_equal(plan_lane_next(l, &got, &err), -EOPNOTSUPP);
	assert_int_equal(plan_lane_next(l, &got, &err), -EOPNOTSUPP);
	plan_lane_close(l);
	plan_close(p);
}

static void test_number_of_edges(void **state)
{
	struct events_prefix prefix = prefix_of(0, 1);
	struct buf body = { 0 };

	(void)state;
	forge_put_u(&body, 1 << 10); /* edges */
	forge_put_u(&body, SC_close);
	forge_put_i(&body, 0);
	forge_put_u(&body, 0);
	forge_put_i(&body, 0);
	forge_put_u(&body, UINT64_C(1) << 40);
	forge_put_u(&body, 0); /* missing */
	forge_put_i(&body, 0);
	forge_put_body(&actions, &body);
	buf_release(&body);
	(void)put_block(0, &prefix);
	finish_but(NULL, NULL);
	assert_refused(-EBADMSG, "action 0: malformed");
}

static void test_bytes(void **state)
{
	struct events_prefix prefix = prefix_of(0, 1);
	const struct action a = good_action();
	struct action_state st;

	(void)state;
	action_state_begin(&st, &prefix);
	assert_int_equal(action_put(schema, &a, &st, &actions), 0);
	buf_puts(&actions, "more");
	(void)put_block(0, &prefix);
	finish_but(NULL, NULL);
	assert_refused(-EBADMSG, "block holds more than it says");
	start_over();

	prefix.nr_events = 2;
	action_state_begin(&st, &prefix);
	assert_int_equal(action_put(schema, &a, &st, &actions), 0);
	(void)put_block(0, &prefix);
	finish_but(NULL, NULL);
	assert_refused(-EBADMSG, "lane 0: action 1: malformed");
	start_over();

	buf_puts(&actions, "\x01\x02\x03garbage");
	prefix.nr_events = 1;
	(void)put_block(0, &prefix);
	finish_but(NULL, NULL);
	assert_refused(-EBADMSG, "malformed");
}

static void test_index(void **state)
{
	const struct action a = good_action();
	struct events_prefix prefix = prefix_of(0, 1);
	struct action_state st;

	(void)state;
	put_action(NR_LANES, 0, &a);
	finish_but(NULL, NULL);
	assert_refused(-EBADMSG, "block of lane 3 does not fit");
	start_over();

	put_action(0, 1, &a); /* the first is missing */
	finish_but(NULL, NULL);
	assert_refused(-EBADMSG, "block of lane 0 does not fit");
	start_over();

	/* The index says of the block what it does not say of itself. */
	action_state_begin(&st, &prefix);
	assert_int_equal(action_put(schema, &a, &st, &actions), 0);
	put_block(0, &prefix)->nr_events = 2;
	nr_actions++;
	finish_but(NULL, NULL);
	assert_refused(-EBADMSG, "malformed block of actions");
}

static void refuse_total(const char *key, const char *value, int wanted, const char *words)
{
	put_others();
	finish_but(key, value);
	assert_refused(wanted, words);
	start_over();
}

static void test_totals(void **state)
{
	(void)state;
	refuse_total("plan.version", "2", -EOPNOTSUPP, "version 2 of the plan format");
	refuse_total("plan.lanes", NULL, -EBADMSG, "without plan.lanes");
	refuse_total("plan.lanes", "4294967295", -EBADMSG, "plan.lanes is '4294967295'");
	refuse_total("plan.lanes", "2", -EBADMSG, "does not fit");
	refuse_total("plan.slots", "-1", -EBADMSG, "plan.slots is '-1'");
	refuse_total("plan.slots", "99999999999", -EBADMSG, "plan.slots is");
	refuse_total("plan.slots", "3", -EBADMSG, "fd is slot 9 of 3");
	refuse_total("plan.actions", "7", -EBADMSG, "has 4 actions, should have 7");
	refuse_total("plan.max_data_bytes", "1e9", -EBADMSG, "plan.max_data_bytes is");
	put_others();
	put_number("plan.slots", 5);
	finish_but(NULL, NULL);
	assert_refused(-EBADMSG, "plan.slots is there twice");
}

static void test_source(void **state)
{
	(void)state;
	put_others();
	put_meta("data_file", "/dev/zero");
	finish_but(NULL, NULL);
	assert_refused(-EBADMSG, "path or id");
	start_over();
	put_others();
	put_meta("data_file", "/dev/zero");
	put_meta("data_file_id", "5-5");
	finish_but(NULL, NULL);
	assert_refused(-ENODATA, "/dev/zero: not a regular file");
}

static void test_not_closed(void **state)
{
	(void)state;
	put_others();
	finish_but(NULL, NULL);
	scratch_write(path(), forge.file.data,
		      forge.file.len - BLOCK_HEADER_BYTES - FOOTER_PAYLOAD_BYTES);
	assert_refused(-EBADMSG, "not finished");
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_good_action),	  T(test_slots),     T(test_slots_in_lists),
		T(test_slots_in_structs), T(test_addresses), T(test_paths),
		T(test_requests),	  T(test_heads),     T(test_data),
		T(test_dangling_data),	  T(test_edges),     T(test_behind_a_fault),
		T(test_number_of_edges),  T(test_bytes),     T(test_index),
		T(test_totals),		  T(test_source),    T(test_not_closed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
