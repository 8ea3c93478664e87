/* SPDX-License-Identifier: MIT */
/* Plans: what is written comes back, in bounded memory, and what is wrong is refused. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <malloc.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "base/mem.h"
#include "plan_rig.h"

/* Random actions of every row. */

struct tamer {
	struct rng *rng;
	const struct row *row;
};

static void tame(struct tamer *t, const struct arg *arg, uint8_t kind, struct value *v);

/* Numbers that mean slots become slots; the others stay what they are. */
static void tame_struct(struct tamer *t, uint16_t struct_id, struct value *v)
{
	const struct struct_desc *desc = &struct_descs[struct_id];
	struct value *item = v->fields->items;
	uint64_t left;

	for (left = v->fields->present; left; left &= left - 1, item++) {
		const struct arg *f = &desc->fields[__builtin_ctzll(left)];

		tame(t, f, f->kind, item);
		if (!strcmp(f->name, "splice_fd_in") ||
		    (struct_id == STRUCT_io_uring_cqe && !strcmp(f->name, "res")))
			item->i = (int64_t)rng_below(t->rng, NR_SLOTS + 1) - 1;
		if (!strcmp(f->name, "obj") && rng_below(t->rng, 4))
			assert_true(plan_put_aio_ref((uint32_t)rng_below(t->rng, NR_SLOTS), item));
		else if (!strcmp(f->name, "obj"))
			*item = value_uint(0);
	}
}

static void tame(struct tamer *t, const struct arg *arg, uint8_t kind, struct value *v)
{
	uint32_t i;

	if (v->type == VALUE_INT && (kind == KIND_FD || kind == KIND_DIRFD)) {
		*v = value_int((int64_t)rng_below(t->rng, NR_SLOTS + 1) - 1);
	} else if (v->type == VALUE_INT && kind == KIND_ADDR && plan_addr_is_ref(t->row)) {
		if (!plan_put_map_ref((uint32_t)rng_below(t->rng, NR_SLOTS), rng_next(t->rng) >> 20,
				      v))
			fail();
	} else if (v->type == VALUE_DATA && kind == KIND_PATH && v->data->bytes &&
		   v->data->kept_bytes && !v->data->bytes[0]) {
		*(uint8_t *)(uintptr_t)v->data->bytes = 'a';
	} else if (v->type == VALUE_STRUCT) {
		tame_struct(t, arg->struct_id, v);
	} else if (v->type == VALUE_LIST) {
		for (i = 0; i < v->count; i++)
			tame(t, arg, arg->elem, &v->items[i]);
	}
}

static void random_edges(struct rng *r, uint32_t lane, uint32_t nr_lanes, struct action *a)
{
	struct action_edge *edges = arena_alloc(&arena, nr_lanes * sizeof(*edges));
	uint32_t i;

	a->edges = edges;
	a->nr_edges = 0;
	for (i = 0; i < nr_lanes; i++) {
		uint64_t so_far = plan_writer_nr_actions(writer, i);

		if (i == lane || !so_far || rng_below(r, 3))
			continue;
		edges[a->nr_edges++] = (struct action_edge){ .lane = i,
							     .nr = rng_below(r, so_far),
							     .rule = (uint8_t)rng_next(r),
							     .started = rng_next(r) & 1 };
	}
}

static struct action random_action(const struct schema *s, const struct row *row, struct rng *r)
{
	struct tamer t = { .rng = r, .row = row };
	struct action a = { .row = row };
	unsigned int i;

	a.flags = (uint16_t)rng_below(r, ACTION_ANY_OUTCOME * 2);
	a.pid = (uint32_t)rng_below(r, 3);
	a.tid = (uint32_t)rng_next(r);
	a.seq = rng_below(r, 4) ? rng_next(r) >> rng_below(r, 60) : 0;
	a.origin = rng_below(r, 3) ? 0 : rng_next(r);
	a.enter_ns = rng_next(r) >> (5 + rng_below(r, 50));
	a.exit_ns = a.enter_ns + (rng_next(r) >> (6 + rng_below(r, 50)));
	a.compute_before_ns = rng_below(r, 3) ? rng_next(r) >> 4 : 0;
	a.compute_after_ns = rng_below(r, 3) ? rng_next(r) >> 30 : 0;
	a.wait_ns = rng_below(r, 3) ? 0 : rng_next(r) >> 10;
	a.outcome.ret = rng_below(r, 2) ? (int64_t)rng_next(r) : (int64_t)rng_below(r, 5000);
	a.outcome.err = rng_below(r, 3) ? 0 : (int32_t)rng_below(r, 134);
	if (!a.outcome.err && plan_ret_is_slot(row))
		a.outcome.ret = (int64_t)rng_below(r, NR_SLOTS + 1) - 1;
	if (a.flags & ACTION_HAS_RESULT)
		a.result = (struct hash128){ rng_next(r), rng_next(r) };
	sample_args(s, row->id, r, &arena, a.args);
	for (i = 0; i < row->nr_args; i++)
		tame(&t, &row->args[i], row->args[i].kind, &a.args[i]);
	return a;
}

static bool same_in(const struct arg *arg, uint8_t kind, const struct value *want,
		    const struct value *got);

/* All fields but those that only come out. */
static bool same_fields(uint16_t struct_id, const struct value *want, const struct value *got)
{
	const struct struct_desc *desc = &struct_descs[struct_id];
	unsigned int i;

	for (i = 0; i < desc->nr_fields; i++) {
		const struct arg *f = &desc->fields[i];
		const struct value *a = value_field(want, i), *b = value_field(got, i);

		if (f->dir == ARG_OUT) {
			if (b)
				return false;
		} else if (!a != !b || (a && !same_in(f, f->kind, a, b))) {
			return false;
		}
	}
	return true;
}

static bool same_in(const struct arg *arg, uint8_t kind, const struct value *want,
		    const struct value *got)
{
	bool text = kind == KIND_PATH || kind == KIND_STR;
	uint32_t i;

	if (want->type != got->type)
		return false;
	if (want->type == VALUE_ADDR)
		return got->u == 1;
	if (want->type == VALUE_STRUCT)
		return same_fields(arg->struct_id, want, got);
	if (want->type == VALUE_DATA && text && want->data->refs && want->data->kept_bytes <= 4096)
		return got->data->len_bytes == want->data->len_bytes && !got->data->kept_bytes;
	if (want->type != VALUE_LIST)
		return value_equal(want, got);
	if (want->count != got->count)
		return false;
	for (i = 0; i < want->count; i++) {
		if (!same_in(arg, arg->elem, &want->items[i], &got->items[i]))
			return false;
	}
	return true;
}

static void assert_same_head(const struct action *want, const struct action *got)
{
	uint32_t i;

	assert_ptr_equal(got->row, want->row);
	assert_int_equal(got->flags & ~ACTION_PARTIAL_DATA, want->flags);
	assert_int_equal(got->pid, want->pid);
	assert_int_equal(got->tid, want->tid);
	assert_true(got->seq == want->seq && got->origin == want->origin);
	assert_true(got->enter_ns == want->enter_ns && got->exit_ns == want->exit_ns);
	assert_true(got->compute_before_ns == want->compute_before_ns);
	assert_true(got->compute_after_ns == want->compute_after_ns);
	assert_true(got->wait_ns == want->wait_ns);
	assert_true(got->outcome.ret == want->outcome.ret);
	assert_int_equal(got->outcome.err, want->outcome.err);
	assert_true(hash_equal(got->result, want->result));
	assert_int_equal(got->nr_edges, want->nr_edges);
	for (i = 0; i < want->nr_edges; i++) {
		const struct action_edge *a = &want->edges[i], *b = &got->edges[i];

		assert_int_equal(a->lane, b->lane);
		assert_true(a->nr == b->nr);
		assert_int_equal(a->rule, b->rule);
		assert_int_equal(a->started, b->started);
	}
}

static bool is_left_out(const struct row *row, const struct arg *arg)
{
	if (arg->reg == REG_NONE)
		return arg->kind != KIND_FD && arg->kind != KIND_SQES && arg->kind != KIND_CQES;
	return arg->kind == KIND_ADDR && !plan_addr_is_ref(row);
}

static void assert_same(const struct action *want, const struct action *got)
{
	unsigned int i;

	assert_same_head(want, got);
	for (i = 0; i < want->row->nr_args; i++) {
		const struct arg *arg = &want->row->args[i];

		if (is_left_out(want->row, arg)) {
			assert_int_equal(got->args[i].type, VALUE_NONE);
		} else if (arg->dir == ARG_OUT || arg->kind == KIND_CQES) {
			assert_int_not_equal(got->args[i].type, VALUE_DATA);
			assert_int_not_equal(got->args[i].type, VALUE_ADDR);
		} else if (!same_in(arg, arg->kind, &want->args[i], &got->args[i])) {
			fail_msg("%s: %s has changed", want->row->name, arg->name);
		}
	}
}

#define NR_RANDOM_LANES 5

static void round_trip(enum plan_data data, unsigned int rounds)
{
	struct plan_lane *lanes[NR_RANDOM_LANES];
	VEC(struct action) actions = { 0 };
	struct schema *s = schema_new();
	struct rng rng = { 11 + data };
	unsigned int id, i, n;

	begin(data);
	for (i = 0; i < NR_RANDOM_LANES; i++)
		assert_int_equal(plan_writer_add_lane(writer), i);
	for (n = 0; n < rounds; n++) {
		for (id = 1; id < ROW_ID_MAX; id++) {
			const struct row *row = row_by_id(id);
			uint32_t lane = (uint32_t)(actions.len % NR_RANDOM_LANES);
			struct action a;

			if (!row || row->sort == ROW_RECORD)
				continue;
			a = random_action(s, row, &rng);
			random_edges(&rng, lane, NR_RANDOM_LANES, &a);
			append(lane, &a);
			VEC_PUSH(&actions, a);
		}
	}
	end();
	assert_true(plan_totals(plan)->nr_actions == actions.len);
	assert_true(plan_totals(plan)->has_started_edges);
	for (i = 0; i < NR_RANDOM_LANES; i++)
		lanes[i] = open_lane(i);
	for (i = 0; i < actions.len; i++) {
		const struct action *a = next(lanes[i % NR_RANDOM_LANES]);

		assert_non_null(a);
		assert_same(&actions.items[i], a);
	}
	for (i = 0; i < NR_RANDOM_LANES; i++) {
		assert_null(next(lanes[i]));
		assert_null(next(lanes[i]));
		plan_lane_close(lanes[i]);
	}
	assert_whole();
	VEC_RELEASE(&actions);
	schema_free(s);
}

static void test_every_row_own(void **state)
{
	(void)state;
	round_trip(PLAN_DATA_OWN, 4);
}

static void test_every_row_trace(void **state)
{
	(void)state;
	round_trip(PLAN_DATA_TRACE, 4);
}

/* What comes out of calls. */

/* The action as it is read again; valid until the end of the test. */
static const struct action *write_and_read(const struct action *a)
{
	plan_lane_close(reader);
	reader = NULL;
	plan_close(plan);
	plan = NULL;
	begin(PLAN_DATA_OWN);
	(void)plan_writer_add_lane(writer);
	append(0, a);
	end();
	assert_whole();
	reader = open_lane(0);
	return next(reader);
}

static struct value data_of(const char *text)
{
	return value_str(&arena, text);
}

static struct value vector_of(const char *text, uint64_t len)
{
	struct value v = value_list(&arena, 1);

	v.items[0] = value_struct(&arena, 3);
	v.items[0].fields->items[0] = data_of(text);
	v.items[0].fields->items[1] = value_uint(len);
	return v;
}

static void test_slots_that_come_out(void **state)
{
	struct action a = { .row = row_by_id(SC_pipe2) };
	const struct action *got;
	uint32_t slot;

	(void)state;
	a.args[0] = value_list(&arena, 2);
	a.args[0].items[0] = value_int(7);
	a.args[0].items[1] = value_int(8);
	a.args[1] = value_uint(0);
	got = write_and_read(&a);
	assert_true(value_equal(&got->args[0], &a.args[0]));

	a = (struct action){ .row = row_by_id(SC_io_setup) };
	a.args[0] = value_uint(128);
	a.args[1] = value_list(&arena, 1);
	assert_true(plan_put_aio_ref(9, &a.args[1].items[0]));
	got = write_and_read(&a);
	assert_int_equal(got->args[1].type, VALUE_LIST);
	assert_true(plan_get_aio_ref(&got->args[1].items[0], &slot));
	assert_int_equal(slot, 9);
}

static void test_descriptors_of_a_message(void **state)
{
	struct action a = { .row = row_by_id(SC_recvmsg), .flags = ACTION_SIMULATED };
	struct value *msg = &a.args[1], *control, *got;
	const struct action *read;

	(void)state;
	a.args[0] = value_int(3);
	*msg = value_struct(&arena, 0x7f);
	msg->fields->items[0] = (struct value){ .type = VALUE_NULL };
	msg->fields->items[1] = value_int(0);
	msg->fields->items[2] = vector_of("received", 100);
	msg->fields->items[3] = value_uint(1);
	control = &msg->fields->items[4];
	*control = value_list(&arena, 1);
	control->items[0] = value_struct(&arena, 1 << 3); /* fds */
	control->items[0].fields->items[0] = value_list(&arena, 1);
	control->items[0].fields->items[0].items[0] = value_int(11);
	msg->fields->items[5] = value_uint(24);
	msg->fields->items[6] = value_uint(0);
	read = write_and_read(&a);
	got = value_field(&read->args[1], 4);
	assert_non_null(got);
	assert_true(value_equal(got, control));
	got = value_field(&read->args[1], 2);
	assert_non_null(got);
	assert_null(value_field(&got->items[0], 0)); /* not what was received */
	assert_true(value_field(&got->items[0], 1)->u == 100); /* but how much could be */
	assert_null(value_field(&read->args[1], 6));
}

static void test_completions(void **state)
{
	struct action a = { .row = row_by_id(SC_io_getevents) };
	struct value *event;
	const struct action *read;
	const struct value *buf;

	(void)state;
	assert_true(plan_put_aio_ref(4, &a.args[0]));
	a.args[1] = value_int(1);
	a.args[2] = value_int(8);
	a.args[3] = value_list(&arena, 1);
	event = &a.args[3].items[0];
	*event = value_struct(&arena, 1 << 1 | 1 << 2 | 1 << 5);
	assert_true(plan_put_aio_ref(5, &event->fields->items[0]));
	event->fields->items[1] = value_int(5);
	event->fields->items[2] = data_of("bytes");
	read = write_and_read(&a);
	assert_int_equal(read->args[3].type, VALUE_LIST);
	buf = value_field(&read->args[3].items[0], 5);
	assert_non_null(buf);
	assert_null(buf->data->bytes);
	assert_true(hash_equal(buf->data->refs[0].hash, hash_bytes("bytes", 5)));
	assert_true(value_field(&read->args[3].items[0], 2)->i == 5);
	assert_int_equal(read->flags, 0);
}

static void test_what_is_left_out(void **state)
{
	struct action a = pread_at(0, 0);
	const struct action *read;

	(void)state;
	a.args[1] = data_of("was read");
	read = write_and_read(&a);
	assert_int_equal(read->args[1].type, VALUE_NONE);
	a.args[1] = (struct value){ .type = VALUE_NULL };
	read = write_and_read(&a);
	assert_int_equal(read->args[1].type, VALUE_NULL);
	a.row = row_by_id(SC_preadv);
	a.args[1] = vector_of("was read", 50);
	read = write_and_read(&a);
	assert_int_equal(read->args[1].count, 1);
	assert_null(value_field(&read->args[1].items[0], 0));
	assert_true(value_field(&read->args[1].items[0], 1)->u == 50);
}

/* Slots in addresses and pathnames. */

static void test_refs(void **state)
{
	struct value v = value_uint(0x500000);
	uint64_t offset;
	uint32_t slot;
	const char *rest;
	size_t len;

	(void)state;
	assert_false(plan_get_map_ref(&v, &slot, &offset)); /* an address, not a reference */
	assert_false(plan_put_map_ref(PLAN_REF_SLOT_MAX + 1, 0, &v));
	assert_false(plan_put_map_ref(0, UINT64_C(1) << 44, &v));
	assert_true(v.u == 0x500000);
	assert_true(plan_put_map_ref(PLAN_REF_SLOT_MAX, 12345, &v));
	assert_true(plan_get_map_ref(&v, &slot, &offset));
	assert_int_equal(slot, PLAN_REF_SLOT_MAX);
	assert_true(offset == 12345);
	assert_true(plan_put_map_ref(0, 0, &v));
	assert_true(v.u);

	v = plan_put_fd_path(&arena, 300, "/a/b", 4);
	assert_int_equal(plan_get_fd_path(&v, &slot, &rest, &len), 1);
	assert_int_equal(slot, 300);
	assert_int_equal(len, 4);
	assert_memory_equal(rest, "/a/b", 4);
	v = plan_put_fd_path(&arena, 0, NULL, 0);
	assert_int_equal(plan_get_fd_path(&v, &slot, &rest, &len), 1);
	assert_int_equal(len, 0);
	v = data_of("/a/b");
	assert_int_equal(plan_get_fd_path(&v, &slot, &rest, &len), 0);
	v = value_bytes(&arena, "\0\x80", 2);
	assert_int_equal(plan_get_fd_path(&v, &slot, &rest, &len), -EBADMSG);
	v = value_bytes(&arena, "\0", 1);
	assert_int_equal(plan_get_fd_path(&v, &slot, &rest, &len), -EBADMSG);
}

static void test_which_rows_have_refs(void **state)
{
	(void)state;
	assert_true(plan_addr_is_ref(row_by_id(SC_munmap)));
	assert_true(plan_addr_is_ref(row_by_id(SC_msync)));
	assert_true(plan_addr_is_ref(row_by_id(SC_io_submit)));
	assert_false(plan_addr_is_ref(row_by_id(SC_brk)));
	assert_true(plan_ret_is_slot(row_by_id(SC_mmap)));
	assert_true(plan_ret_is_slot(row_by_id(SC_mremap)));
	assert_true(plan_ret_is_slot(row_by_id(SC_openat)));
	assert_false(plan_ret_is_slot(row_by_id(SC_read)));
	assert_false(plan_ret_is_slot(row_by_id(SC_brk)));
}

/* Data. */

/* The events of the trace as actions of one lane. */
static void copy_trace(enum plan_data data)
{
	struct trace_items *items;
	struct trace_iter *it;
	struct event *ev;
	struct item *item;

	begin(data);
	(void)plan_writer_add_lane(writer);
	OK(trace_iter_open(source, &(struct trace_query){ 0 }, &it, &err));
	while (trace_iter_next(it, &ev, &err) == 1) {
		struct action a = { .row = ev->row, .seq = ev->seq };

		memcpy(a.args, ev->args, sizeof(a.args));
		append(0, &a);
	}
	trace_iter_close(it);
	OK(trace_items_open(source, BLOCK_META, &items, &err));
	while (trace_items_next(items, &item, &err) == 1)
		OK(plan_writer_item(writer, item, &err));
	trace_items_close(items);
	OK(trace_items_open(source, BLOCK_TREE, &items, &err));
	while (trace_items_next(items, &item, &err) == 1)
		OK(plan_writer_item(writer, item, &err));
	trace_items_close(items);
	assert_string_equal(err.text, "");
	OK(plan_writer_meta(writer, "order", "root"));
	end();
}

static void assert_data(const struct value *v, const uint8_t *want, size_t want_len)
{
	size_t done = 0;
	uint64_t i;

	assert_int_equal(v->type, VALUE_DATA);
	assert_true(v->data->len_bytes == want_len && v->data->kept_bytes == want_len);
	for (i = 0; i < data_nr_pieces(v->data); i++) {
		const uint8_t *bytes;
		size_t len;

		assert_int_equal(
			trace_load_piece(plan_data_source(plan), v->data, i, &bytes, &len, &err),
			1);
		assert_memory_equal(bytes, want + done, len);
		done += len;
	}
	assert_int_equal(done, want_len);
}

static void assert_copied(void)
{
	struct buf text = { 0 };
	struct trace_items *items;
	const struct action *a;
	struct item *item;
	char name[200];
	unsigned int i;

	reader = open_lane(0);
	for (i = 0; i < NR_WRITES; i++) {
		a = next(reader);
		assert_non_null(a);
		assert_data(&a->args[1], write_content(i), write_bytes[i]);
		assert_int_equal(a->flags, 0);
	}
	a = next(reader);
	assert_non_null(a);
	memset(name, 'n', sizeof(name));
	assert_non_null(a->args[1].data->bytes); /* a name stands in the action */
	assert_data(&a->args[1], (const uint8_t *)name, sizeof(name));
	assert_null(next(reader));
	plan_lane_close(reader);
	reader = NULL;

	memset(name, 'c', sizeof(name));
	name[sizeof(name) - 1] = 0;
	assert_string_equal(trace_meta(plan_container(plan), "cwd", &text), name);
	assert_string_equal(trace_meta(plan_container(plan), "command", &text), "cp");
	assert_string_equal(trace_meta(plan_container(plan), "order", &text), "root");
	assert_string_equal(trace_meta(plan_container(plan), "plan.version", &text), "1");
	buf_release(&text);
	OK(trace_items_open(plan_container(plan), BLOCK_TREE, &items, &err));
	assert_int_equal(trace_items_next(items, &item, &err), 1);
	assert_data(&item->args[5], write_content(3), write_bytes[3]);
	assert_int_equal(trace_items_next(items, &item, &err), 0);
	trace_items_close(items);
	assert_true(plan_totals(plan)->max_data_bytes == write_bytes[NR_WRITES - 1]);
}

static void test_own_data(void **state)
{
	(void)state;
	copy_trace(PLAN_DATA_OWN);
	assert_int_equal(unlink(trace_name()), 0);
	assert_copied();
	assert_whole();
	assert_ptr_equal(plan_data_source(plan), plan_container(plan));
}

static void reopen(void)
{
	plan_close(plan);
	plan = NULL;
	OK(plan_open(plan_name(), &plan, &err));
}

static void test_data_of_the_trace(void **state)
{
	const char *away = scratch_path("away.trace");

	(void)state;
	copy_trace(PLAN_DATA_TRACE);
	assert_copied();
	assert_whole();
	assert_true(scratch_size(plan_name()) < 100000);

	/* The trace has gone. */
	assert_int_equal(rename(trace_name(), away), 0);
	plan_close(plan);
	plan = NULL;
	FAILS(plan_open(plan_name(), &plan, &err), -ENODATA, trace_name());
	/* Another one is there. */
	write_trace(trace_name(), NR_WRITES - 1);
	FAILS(plan_open(plan_name(), &plan, &err), -EBADMSG, "another trace now");
	/* It is back. */
	assert_int_equal(rename(away, trace_name()), 0);
	reopen();
	assert_copied();
}

static void test_changed_trace(void **state)
{
	struct buf bytes = { 0 };

	(void)state;
	copy_trace(PLAN_DATA_TRACE);
	plan_close(plan);
	plan = NULL;
	scratch_read(trace_name(), &bytes);
	bytes.data[bytes.len - 200] ^= 1;
	scratch_write(trace_name(), bytes.data, bytes.len);
	FAILS(plan_open(plan_name(), &plan, &err), -EBADMSG, "another trace now");
	buf_release(&bytes);
}

/* Both have been moved to another directory. */
static void test_trace_beside_the_plan(void **state)
{
	char dir[4096], name[8192], *slash;

	(void)state;
	(void)snprintf(dir, sizeof(dir), "%s", plan_name());
	slash = strrchr(dir, '/');
	assert_non_null(slash);
	(void)snprintf(slash, sizeof(dir) - (size_t)(slash - dir), "/moved-%d", getpid());
	assert_int_equal(mkdir(dir, 0700), 0);
	copy_trace(PLAN_DATA_TRACE);
	plan_close(plan);
	plan = NULL;
	(void)snprintf(name, sizeof(name), "%s/source.trace", dir);
	assert_int_equal(rename(trace_name(), name), 0);
	(void)snprintf(name, sizeof(name), "%s/t.plan", dir);
	assert_int_equal(rename(plan_name(), name), 0);
	OK(plan_open(name, &plan, &err));
	assert_copied();
	assert_int_equal(unlink(name), 0);
	(void)snprintf(name, sizeof(name), "%s/source.trace", dir);
	assert_int_equal(unlink(name), 0);
	assert_int_equal(rmdir(dir), 0);
}

/* Bytes that the trace does not have. */
static void test_bytes_of_others(void **state)
{
	struct action a = { .row = row_by_id(SC_write) };
	enum plan_data data;

	(void)state;
	for (data = PLAN_DATA_OWN; data <= PLAN_DATA_TRACE; data++) {
		plan_lane_close(reader);
		plan_close(plan);
		reader = NULL;
		plan = NULL;
		begin(data);
		(void)plan_writer_add_lane(writer);
		a.args[1] = value_bytes(&arena, write_content(5), write_bytes[5]);
		append(0, &a);
		end();
		reader = open_lane(0);
		assert_data(&next(reader)->args[1], write_content(5), write_bytes[5]);
	}
}

static void test_partial_data(void **state)
{
	struct action a = { .row = row_by_id(SC_write) };
	struct blob_ref ref = { .hash = { 1, 2 } };

	(void)state;
	a.args[1] = data_of("begin");
	assert_int_equal(write_and_read(&a)->flags, 0);
	a.args[1].data->len_bytes = 100;
	assert_int_equal(write_and_read(&a)->flags, ACTION_PARTIAL_DATA);
	/* Only its hash. */
	*a.args[1].data = (struct data){ .len_bytes = 9, .kept_bytes = 9, .refs = &ref };
	assert_int_equal(write_and_read(&a)->flags, ACTION_PARTIAL_DATA);
	/* A place that the trace does not have. */
	ref.blob = UINT64_C(99) << 24;
	assert_int_equal(write_and_read(&a)->flags, ACTION_PARTIAL_DATA);
}

/* Heads. */

static void test_totals(void **state)
{
	const struct plan_totals totals = { .nr_slots = 12,
					    .elapsed_ns = 5000,
					    .first_ns = 77,
					    .max_data_bytes = 1234,
					    .nr_actions = 99 };
	const struct action_edge edge = { .lane = 0, .nr = 0, .rule = 3 };
	const struct plan_totals *t;

	(void)state;
	begin(PLAN_DATA_OWN);
	(void)plan_writer_add_lane(writer);
	(void)plan_writer_add_lane(writer);
	(void)plan_writer_add_lane(writer);
	append_waiting(0, NULL, 0);
	append_waiting(0, NULL, 0);
	append_waiting(2, &edge, 1);
	assert_true(plan_writer_nr_actions(writer, 0) == 2);
	end_with(&totals);
	t = plan_totals(plan);
	assert_true(t->nr_actions == 3 && t->nr_edges == 1);
	assert_int_equal(t->nr_lanes, 3);
	assert_int_equal(t->nr_slots, 12);
	assert_true(t->elapsed_ns == 5000 && t->first_ns == 77 && t->max_data_bytes == 1234);
	assert_false(t->has_started_edges);
	assert_true(plan_lane_nr_actions(plan, 0) == 2);
	assert_true(plan_lane_nr_actions(plan, 1) == 0);
	assert_true(plan_lane_nr_actions(plan, 2) == 1);
	assert_true(plan_is_plan(plan_container(plan)));
	reader = open_lane(1);
	assert_null(next(reader));
	assert_whole();
	assert_int_equal(plan_lane_open(plan, 3, &reader, &err), -EINVAL);
}

static void test_empty_plan(void **state)
{
	(void)state;
	begin(PLAN_DATA_OWN);
	end_with(&(struct plan_totals){ 0 });
	assert_int_equal(plan_totals(plan)->nr_lanes, 0);
	assert_true(plan_is_plan(plan_container(plan)));
	assert_whole();
}

static void test_trace_is_no_plan(void **state)
{
	(void)state;
	assert_false(plan_is_plan(source));
	FAILS(plan_open(trace_name(), &plan, &err), -EINVAL, "is no plan");
}

static void test_abandoned_plan(void **state)
{
	(void)state;
	begin(PLAN_DATA_OWN);
	plan_writer_abandon(writer);
	writer = NULL;
	FAILS(plan_open(plan_name(), &plan, &err), -ENOENT, plan_name());
}

static void test_time_is_cut(void **state)
{
	struct action a = pread_at(UINT64_MAX - 1, 0);

	(void)state;
	a.exit_ns = 5;
	a.wait_ns = UINT64_MAX;
	a = *write_and_read(&a);
	assert_true(a.enter_ns == PLAN_TIME_MAX && a.exit_ns == PLAN_TIME_MAX);
	assert_true(a.wait_ns == PLAN_TIME_MAX);
}

/* What the writer does not take. */

static void test_writer_refuses(void **state)
{
	const struct plan_writer_options options = { .replace = true };
	struct action_edge edge = { .lane = 0, .nr = 0 };
	struct plan_writer *other;
	struct action a = pread_at(0, 0);

	(void)state;
	FAILS(plan_writer_open(trace_name(), source, &options, &other, &err), -EINVAL, "replace");
	begin(PLAN_DATA_OWN);
	(void)plan_writer_add_lane(writer);
	FAILS(plan_writer_action(writer, 1, &a, &err), -EINVAL, "no lane 1");
	a.args[0] = value_int(PLAN_SLOTS_MAX);
	FAILS(plan_writer_action(writer, 0, &a, &err), -EINVAL, "fd is slot");
	a.args[0] = value_int(3);
	a.edges = &edge;
	a.nr_edges = 1;
	FAILS(plan_writer_action(writer, 0, &a, &err), -EINVAL, "own lane");
	edge.lane = 1;
	FAILS(plan_writer_action(writer, 0, &a, &err), -EINVAL, "lane 1 of 1");
	a.nr_edges = 0;
	a.flags = 0x8000;
	FAILS(plan_writer_action(writer, 0, &a, &err), -EINVAL, "flags");
	a.flags = 0;
	a.row = row_by_id(REC_meta);
	FAILS(plan_writer_action(writer, 0, &a, &err), -EINVAL, "record");
	a.row = row_by_id(SC_munmap);
	a.args[0] = value_uint(0x7f0000100000);
	FAILS(plan_writer_action(writer, 0, &a, &err), -EINVAL, "is an address");
	assert_int_equal(plan_writer_meta(writer, "plan.lanes", "7"), -EINVAL);
	assert_int_equal(plan_writer_meta(writer, "data_file", "/"), -EINVAL);
	assert_true(plan_writer_nr_actions(writer, 0) == 0);
}

static void test_too_large(void **state)
{
	struct action a = { .row = row_by_id(SC_execve) };
	struct check_result c;
	uint32_t i;

	(void)state;
	begin(PLAN_DATA_TRACE);
	(void)plan_writer_add_lane(writer);
	a.args[0] = data_of("/bin/true");
	a.args[1] = value_list(&arena, 9);
	for (i = 0; i < 9; i++)
		a.args[1].items[i] = value_bytes(&arena, write_content(4), write_bytes[4]);
	FAILS(plan_writer_action(writer, 0, &a, &err), -E2BIG, "too large");
	a.row = row_by_id(SC_write);
	a.args[0] = value_int(1);
	a.args[1] = data_of("x");
	a.args[1].data->len_bytes = PLAN_DATA_MAX + 1;
	FAILS(plan_writer_action(writer, 0, &a, &err), -E2BIG, "too large");
	append_waiting(0, NULL, 0);
	end();
	assert_true(plan_totals(plan)->nr_actions == 1);
	OK(trace_check(plan_name(), NULL, &c, &err));
	assert_true(check_intact(&c) && c.nr_lost_events == 2);
}

static int try_end(const struct plan_totals *totals)
{
	struct plan_writer *w = writer;

	writer = NULL;
	return plan_writer_close(w, totals, &err);
}

static void test_wrong_totals(void **state)
{
	const struct action_edge edge = { .lane = 1, .nr = 1 };

	(void)state;
	begin(PLAN_DATA_OWN);
	(void)plan_writer_add_lane(writer);
	append_waiting(0, NULL, 0);
	FAILS(try_end(&(struct plan_totals){ .nr_slots = 3 }), -EINVAL, "3 are stated");
	begin(PLAN_DATA_OWN);
	(void)plan_writer_add_lane(writer);
	(void)plan_writer_add_lane(writer);
	append_waiting(0, &edge, 1);
	append_waiting(1, NULL, 0);
	FAILS(try_end(&(struct plan_totals){ .nr_slots = 4 }), -EINVAL,
	      "action 1 of lane 1, which has 1");
	assert_int_not_equal(access(plan_name(), F_OK), 0);
}

/* Deadlocks. */

static void test_circle(void **state)
{
	const struct action_edge to_b = { .lane = 1, .nr = 0 }, to_a = { .lane = 0, .nr = 1 };

	(void)state;
	begin(PLAN_DATA_OWN);
	(void)plan_writer_add_lane(writer);
	(void)plan_writer_add_lane(writer);
	(void)plan_writer_add_lane(writer);
	append_waiting(0, NULL, 0);
	append_waiting(0, &to_b, 1);
	append_waiting(1, &to_a, 1);
	append_waiting(2, &to_a, 1); /* waits for those who wait for each other */
	end();
	FAILS(plan_check(plan, NULL, &err), -EBADMSG,
	      "actions wait for each other: action 1 of lane 0 (pread64) waits for action 0 of "
	      "lane 1, action 0 of lane 1 (pread64) waits for action 1 of lane 0");
	if (strstr(err.text, "lane 2"))
		fail_msg("%s", err.text);
}

static void test_long_circle(void **state)
{
	uint32_t i;

	(void)state;
	begin(PLAN_DATA_OWN);
	for (i = 0; i < 100; i++)
		(void)plan_writer_add_lane(writer);
	for (i = 0; i < 100; i++)
		append_waiting(i, &(struct action_edge){ .lane = (i + 1) % 100, .started = true },
			       1);
	end();
	FAILS(plan_check(plan, NULL, &err), -EBADMSG, "100 lanes in all");
}

/* Whatever points back in the order of writing is no circle, however the lanes are mixed. */
static void test_no_circle(void **state)
{
	struct rng rng = { 3 };
	unsigned int n;

	(void)state;
	begin(PLAN_DATA_OWN);
	for (n = 0; n < 40; n++)
		(void)plan_writer_add_lane(writer);
	for (n = 0; n < 5000; n++) {
		struct action a = pread_at(n * 1000, n);
		uint32_t lane = (uint32_t)rng_below(&rng, 40);

		arena_reset(&arena);
		random_edges(&rng, lane, 40, &a);
		append(lane, &a);
	}
	end();
	assert_whole();
}

/* Sizes. */

static void test_action_is_small(void **state)
{
	struct rng rng = { 5 };
	struct trace *t;
	const struct block_entry *e;
	uint64_t bytes = 0;
	size_t i, nr;
	unsigned int n;

	(void)state;
	begin(PLAN_DATA_OWN);
	(void)plan_writer_add_lane(writer);
	for (n = 0; n < 1000; n++) {
		struct action a = pread_at(1000000000 + n * 3000, rng_below(&rng, 1 << 20) * 4096);

		a.compute_before_ns = 1500 + rng_below(&rng, 1000);
		a.result = (struct hash128){ rng_next(&rng), rng_next(&rng) };
		a.flags = ACTION_HAS_RESULT;
		append(0, &a);
	}
	end();
	t = plan_container(plan);
	e = trace_blocks(t, &nr);
	for (i = 0; i < nr; i++) {
		struct buf stored = { 0 }, plain = { 0 };
		struct block_read b = { .stored = &stored, .plain = &plain };

		if (e[i].type != BLOCK_ACTIONS)
			continue;
		OK(trace_read_block(t, e[i].offset, &b, &err));
		bytes += b.len;
		buf_release(&stored);
		buf_release(&plain);
	}
	assert_in_range(bytes / 1000, 1, 48);
}

#define NR_LANES 1500
#define MANY_ACTIONS 600000

static size_t heap_bytes(void)
{
	struct mallinfo2 m = mallinfo2();

	return m.uordblks + m.hblkhd;
}

/* Neither who writes many lanes nor who reads all of them at once needs much memory. */
static void test_many_lanes(void **state)
{
	AUTO_FREE struct plan_lane **lanes = xcalloc(NR_LANES, sizeof(struct plan_lane *));
	size_t before, peak = 0, i;
	unsigned int n, nr_lanes = 0;

	(void)state;
	begin(PLAN_DATA_OWN);
	before = heap_bytes();
	for (n = 0; n < MANY_ACTIONS; n++) {
		struct action a = pread_at(n * 1000, n);

		if (nr_lanes < NR_LANES && n % 100 == 0)
			nr_lanes = plan_writer_add_lane(writer) + 1;
		append(n % nr_lanes, &a);
		if (n % 1000 == 0 && heap_bytes() - before > peak)
			peak = heap_bytes() - before;
	}
	assert_in_range(peak, 0, 24 << 20);
	end();
	assert_true(plan_totals(plan)->nr_actions == MANY_ACTIONS);
	before = heap_bytes();
	for (i = 0; i < NR_LANES; i++) {
		lanes[i] = open_lane((uint32_t)i);
		assert_non_null(next(lanes[i]));
	}
	assert_in_range(heap_bytes() - before, 0, 40 << 20);
	for (i = 0; i < NR_LANES; i++)
		plan_lane_close(lanes[i]);
	assert_whole();
}

/* More lanes than there is room for the least buffer of each. */
static void test_crowd_of_lanes(void **state)
{
	unsigned int n, nr = 20000;
	size_t before, peak = 0;

	(void)state;
	begin(PLAN_DATA_OWN);
	before = heap_bytes();
	for (n = 0; n < nr; n++)
		(void)plan_writer_add_lane(writer);
	for (n = 0; n < 20 * nr; n++) {
		struct action a = pread_at(n * 1000, n);

		append(n % nr, &a);
		if (n % 1000 == 0 && heap_bytes() - before > peak)
			peak = heap_bytes() - before;
	}
	/* 20,000 lanes with what is known of each beside its buffer. */
	assert_in_range(peak, 0, 48 << 20);
	end();
	assert_true(plan_lane_nr_actions(plan, nr - 1) == 20);
	OK(plan_check(plan, NULL, &err));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_every_row_own),
		TEST(test_every_row_trace),
		TEST(test_slots_that_come_out),
		TEST(test_descriptors_of_a_message),
		TEST(test_completions),
		TEST(test_what_is_left_out),
		TEST(test_refs),
		TEST(test_which_rows_have_refs),
		TEST(test_own_data),
		TEST(test_data_of_the_trace),
		TEST(test_changed_trace),
		TEST(test_trace_beside_the_plan),
		TEST(test_bytes_of_others),
		TEST(test_partial_data),
		TEST(test_totals),
		TEST(test_empty_plan),
		TEST(test_trace_is_no_plan),
		TEST(test_abandoned_plan),
		TEST(test_time_is_cut),
		TEST(test_writer_refuses),
		TEST(test_too_large),
		TEST(test_wrong_totals),
		TEST(test_circle),
		TEST(test_long_circle),
		TEST(test_no_circle),
		TEST(test_action_is_small),
		TEST(test_many_lanes),
		TEST(test_crowd_of_lanes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
