/* SPDX-License-Identifier: MIT */
/*
 * Every row that a replay makes, with arguments of any kind that a plan can hold:
 * lengths that lie, descriptors of the wrong type, structs with holes. Whatever
 * the kernel thinks of them, the run comes to its end.
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
#include <sys/stat.h>

#include "base/banned.h"
#include "base/clock.h"
#include "plan/plan.h"
#include "plan/refs.h"
#include "replay/run.h"
#include "sample.h"
#include "scratch.h"
#include "trace/writer.h"

#define NR_SLOTS 12
#define NR_TRIES 40
#define DEPTH_MAX 4
#define AT_ONCE 10 /* rows in one plan */

static struct arena arena;
static struct rng rng;

static const char *const paths[] = { "/f", "f", "/d", "d/x", "/l", ".", "..", "/", "", "/d/../f" };

/* They wait for each other, or for the whole machine. */
static bool is_left_out(const struct row *row)
{
	switch (row->id) {
	case SC_fcntl_setlkw:
	case SC_fcntl_ofd_setlkw:
	case SC_flock:
	case SC_sync:
	case SC_syncfs:
		return true;
	default:
		return row->replay != SUPPORT_GENERIC && row->replay != SUPPORT_SPECIAL;
	}
}

static uint64_t any_number(void)
{
	switch (rng_below(&rng, 8)) {
	case 0:
		return 0;
	case 1:
		return 1;
	case 2:
		return UINT64_MAX;
	case 3:
		return rng_next(&rng);
	case 4:
		return rng_next(&rng) >> 33;
	case 5:
		return UINT64_C(1) << rng_below(&rng, 64);
	default:
		return rng_below(&rng, 5000);
	}
}

static struct value any_data(void)
{
	uint64_t len = rng_below(&rng, 4) ? rng_below(&rng, 60) : rng_below(&rng, 9000);
	uint8_t *p = arena_alloc(&arena, len + 1);
	struct value v;

	rng_fill(&rng, p, len);
	v = value_bytes(&arena, p, len);
	if (!rng_below(&rng, 3)) /* not all of it was kept */
		v.data->len_bytes += rng_below(&rng, 100000);
	return v;
}

static struct value any_value(const struct arg *arg, const struct row *row, int depth);

static struct value any_list(const struct arg *arg, const struct row *row, int depth)
{
	bool of_structs = arg->struct_id != STRUCT_none;
	struct arg item = { .kind = of_structs ? KIND_STRUCT : arg->elem,
			    .struct_id = arg->struct_id };
	uint32_t i, n = (uint32_t)rng_below(&rng, 5);
	struct value v;

	if (arg->kind == KIND_PTR)
		n = 1;
	v = value_list(&arena, n);
	for (i = 0; i < n; i++)
		v.items[i] = any_value(&item, row, depth + 1);
	return v;
}

static struct value any_struct(const struct arg *arg, const struct row *row, int depth)
{
	const struct struct_desc *d = &struct_descs[arg->struct_id];
	uint64_t present = 0;
	struct value v;
	unsigned int i;

	for (i = 0; i < d->nr_fields; i++)
		if (rng_below(&rng, 6) && depth < DEPTH_MAX)
			present |= UINT64_C(1) << i;
	v = value_struct(&arena, present);
	for (i = 0; i < d->nr_fields; i++)
		if (value_field(&v, i))
			*value_field(&v, i) = any_value(&d->fields[i], row, depth + 1);
	return v;
}

static struct value any_value(const struct arg *arg, const struct row *row, int depth)
{
	struct value v = { .type = VALUE_NONE };

	if (!depth && !rng_below(&rng, 12))
		return v;
	switch ((enum kind)arg->kind) {
	case KIND_FD:
		return value_int((int64_t)rng_below(&rng, NR_SLOTS + 1) - 1);
	case KIND_DIRFD:
		return rng_below(&rng, 2) ? value_int(AT_FDCWD)
					  : value_int((int64_t)rng_below(&rng, NR_SLOTS));
	case KIND_ADDR:
		if (plan_addr_is_ref(row) && !plan_put_map_ref((uint32_t)rng_below(&rng, NR_SLOTS),
							       rng_below(&rng, 9000), &v))
			abort();
		return v;
	case KIND_PATH:
		return value_str(&arena, paths[rng_below(&rng, ARRAY_LEN(paths))]);
	case KIND_STR:
		return value_str(&arena, rng_below(&rng, 2) ? "user.a" : "user.b");
	case KIND_BUF:
		return any_data();
	case KIND_STRUCT:
		return any_struct(arg, row, depth);
	case KIND_PTR:
	case KIND_VEC:
	case KIND_ARRAY:
	case KIND_PTRS:
	case KIND_SQES:
	case KIND_CQES:
		return any_list(arg, row, depth);
	default:
		/* ... but files stay small, and devices are no subject here. */
		if (kind_infos[arg->kind].width_bytes)
			return value_uint(kind_infos[arg->kind].width_bytes == 4
						  ? (kind_infos[arg->kind].wire == 'i'
							     ? (uint64_t)(int32_t)any_number()
							     : (uint32_t)any_number())
						  : any_number());
		return v;
	}
}

static void append(struct plan_writer *w, struct action *a, uint64_t *nr, uint64_t *refused)
{
	struct err err = { "" };

	if (plan_writer_action(w, 0, a, &err) < 0)
		(*refused)++;
	else
		(*nr)++;
}

static void append_open(struct plan_writer *w, int slot, const char *path, uint64_t flags,
			uint64_t *nr)
{
	struct action a = { .row = row_by_id(SC_openat), .pid = 1, .tid = 1 };
	uint64_t refused = 0;

	a.flags = ACTION_ANY_OUTCOME;
	a.args[0] = value_int(AT_FDCWD);
	a.args[1] = value_str(&arena, path);
	a.args[2] = value_uint(flags);
	a.args[3] = value_uint(0644);
	a.outcome.ret = slot;
	append(w, &a, nr, &refused);
	assert_int_equal(refused, 0);
}

static void append_row(struct plan_writer *w, const struct row *row, uint64_t *nr,
		       uint64_t *refused)
{
	struct action a = { .row = row, .pid = 1, .tid = 1, .flags = ACTION_ANY_OUTCOME };
	unsigned int i;

	for (i = 0; i < row->nr_args; i++)
		a.args[i] = any_value(&row->args[i], row, 0);
	if (plan_ret_is_slot(row))
		a.outcome.ret = (int64_t)rng_below(&rng, NR_SLOTS);
	append(w, &a, nr, refused);
	arena_reset(&arena);
}

static void write_plan(const char *path, const struct row *const *rows, unsigned int nr_rows,
		       uint64_t *nr)
{
	const struct trace_writer_options trace_options = { .replace = true };
	const struct plan_writer_options options = { .data = PLAN_DATA_OWN, .replace = true };
	struct plan_totals totals = { .nr_slots = NR_SLOTS };
	const char *source_path = scratch_path("source.trace");
	struct trace_writer *t;
	struct plan_writer *w;
	struct trace *source;
	struct err err = { "" };
	unsigned int i, n;

	assert_int_equal(trace_writer_open(source_path, &trace_options, &t, &err), 0);
	assert_int_equal(trace_writer_close(t, &err), 0);
	assert_int_equal(trace_open(source_path, 0, &source, &err), 0);
	assert_int_equal(plan_writer_open(path, source, &options, &w, &err), 0);
	(void)plan_writer_add_lane(w);
	append_open(w, 0, "/", O_RDONLY | O_DIRECTORY, nr);
	append_open(w, 1, "/f", O_RDWR | O_CREAT, nr);
	append_open(w, 2, "/g", O_RDWR | O_CREAT, nr);
	append_open(w, 3, "/d", O_RDONLY | O_DIRECTORY, nr);
	append_open(w, 4, "/l", O_PATH | O_NOFOLLOW, nr);
	for (n = 0; n < nr_rows; n++) {
		uint64_t refused = 0;

		rng = (struct rng){ rows[n]->id };
		for (i = 0; i < NR_TRIES; i++)
			append_row(w, rows[n], nr, &refused);
		/* A test of nothing would pass too. */
		if (refused == NR_TRIES)
			fail_msg("%s: no plan takes it", rows[n]->name);
	}
	if (plan_writer_close(w, &totals, &err) < 0)
		fail_msg("%s", err.text);
	trace_close(source);
}

static void perform_rows(const struct row *const *rows, unsigned int nr_rows)
{
	const char *plan = scratch_path("rows.plan"), *dir = scratch_path("rows");
	struct run_options o = { .speed = RUN_AFAP,
				 .max_file_bytes = 1 << 20,
				 .stall_ns = 30 * NS_PER_S };
	struct run_result *res;
	struct err err = { "" };
	char command[8192];
	uint64_t nr = 0;

	snprintf(command, sizeof(command),
		 "rm -rf '%s' && mkdir -p '%s/d' && ln -s f '%s/l' && echo x >'%s/f'", dir, dir,
		 dir, dir);
	assert_int_equal(system(command), 0);
	write_plan(plan, rows, nr_rows, &nr);
	if (run_perform(&plan, 1, dir, &o, NULL, &res, &err) < 0)
		fail_msg("%s...: %s", rows[0]->name, err.text);
	if (res->end != RUN_COMPLETE)
		fail_msg("%s: ended as %u: %s", row_by_id(res->lanes[0].row_id)->name, res->end,
			 res->err.text);
	assert_int_equal(res->nr_done, nr);
	assert_true(res->nr_made > NR_TRIES);
	run_result_free(res);
}

static void test_rows(void **state)
{
	const struct row *rows[AT_ONCE];
	unsigned int id, nr = 0, nr_rows = 0;
	char command[8192];

	(void)state;
	arena_init(&arena);
	for (id = 0; id < ROW_ID_MAX; id++) {
		const struct row *row = row_by_id(id);

		if (row && row->sort == ROW_CALL && !is_left_out(row)) {
			rows[nr++] = row;
			nr_rows++;
		}
		if (nr == AT_ONCE || (nr && id == ROW_ID_MAX - 1)) {
			perform_rows(rows, nr);
			nr = 0;
		}
	}
	assert_true(nr_rows >= 130);
	snprintf(command, sizeof(command), "rm -rf '%s'", scratch_path("rows"));
	assert_int_equal(system(command), 0);
	arena_release(&arena);
}

int main(void)
{
	const struct CMUnitTest tests[] = { cmocka_unit_test(test_rows) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
