/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <errno.h>
#include <linux/aio_abi.h>
#include <linux/io_uring.h>
#include <string.h>

#include "model/event.h"
#include "model/vocab.h"

static struct arena arena;

static int setup(void **state)
{
	(void)state;
	arena_init(&arena);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	arena_release(&arena);
	return 0;
}

static void expect_bytes(const struct event *ev, uint64_t read, uint64_t written)
{
	struct event_bytes b = event_count_bytes(ev);

	assert_true(b.read == read);
	assert_true(b.written == written);
}

static void test_find(void **state)
{
	struct value args[ROW_ARGS_MAX];
	const struct row *row = row_by_id(EV_block_request);

	(void)state;
	assert_ptr_equal(args_find(row, args, "dev"), &args[0]);
	assert_null(args_find(row, args, "nothing"));
}

static void test_bytes_by_result(void **state)
{
	struct row row = { .sort = ROW_CALL, .class = C_DATA, .result = RESULT_BYTES_READ };
	struct event ev = { .row = &row, .outcome = { 10, 0 } };

	(void)state;
	expect_bytes(&ev, 10, 0);
	row.result = RESULT_BYTES_WRITTEN;
	expect_bytes(&ev, 0, 10);
	row.result = RESULT_BYTES_COPIED;
	expect_bytes(&ev, 10, 10);
	row.result = RESULT_COUNT;
	expect_bytes(&ev, 0, 0);
	row.result = RESULT_BYTES_READ;
	ev.outcome = (struct outcome){ -1, EIO };
	expect_bytes(&ev, 0, 0);
	ev.outcome = (struct outcome){ 5, EIO };
	expect_bytes(&ev, 0, 0);
}

/* event.c knows the arguments of a block request by their position. */
static void test_bytes_of_block_requests(void **state)
{
	struct event ev = { .row = row_by_id(EV_block_request) };
	struct value *op = args_find(ev.row, ev.args, "op");
	struct value *length = args_find(ev.row, ev.args, "length");

	(void)state;
	assert_string_equal(vocab_name(SET_block_ops, 0), "READ");
	assert_string_equal(vocab_name(SET_block_ops, 1), "WRITE");
	assert_string_equal(vocab_name(SET_block_ops, 6), "ZONE_APPEND");
	expect_bytes(&ev, 0, 0);
	*op = value_int(0);
	*length = value_uint(4096);
	expect_bytes(&ev, 4096, 0);
	*op = value_int(1);
	expect_bytes(&ev, 0, 4096);
	ev.outcome.ret = 512;
	expect_bytes(&ev, 0, 512);
	*op = value_int(6);
	expect_bytes(&ev, 0, 512);
	*op = value_int(3);
	expect_bytes(&ev, 0, 0);
	*op = value_int(1);
	ev.outcome.err = EIO;
	expect_bytes(&ev, 0, 0);
	ev = (struct event){ .row = ev.row, .flags = EVENT_UNFINISHED };
	*op = value_int(1);
	*length = value_uint(4096);
	expect_bytes(&ev, 0, 0);
}

static unsigned int field_no(const struct arg *a, const char *name)
{
	const struct struct_desc *d = &struct_descs[a->struct_id];
	unsigned int i;

	for (i = 0; i < d->nr_fields; i++) {
		if (!strcmp(d->fields[i].name, name))
			return i;
	}
	fail_msg("%s has no field %s", d->name, name);
	return 0;
}

static struct value completion(const struct arg *a, int opcode, int64_t res)
{
	unsigned int opcode_at = field_no(a, "opcode"), res_at = field_no(a, "res");
	struct value v = value_struct(&arena, UINT64_C(1) << res_at |
						      (opcode < 0 ? 0 : UINT64_C(1) << opcode_at));

	*value_field(&v, res_at) = value_int(res);
	if (opcode >= 0)
		*value_field(&v, opcode_at) = value_int(opcode);
	return v;
}

static void expect_completions(const char *call, const char *list, const int opcodes[3])
{
	struct event ev = { .row = row_by_name(call), .outcome = { 4, 0 } };
	struct value *v;
	const struct arg *a;

	assert_non_null(ev.row);
	v = args_find(ev.row, ev.args, list);
	assert_non_null(v);
	a = &ev.row->args[v - ev.args];
	expect_bytes(&ev, 0, 0);
	*v = value_list(&arena, 4);
	v->items[0] = completion(a, opcodes[0], 100);
	v->items[1] = completion(a, opcodes[1], 10);
	v->items[2] = completion(a, opcodes[2], -EIO);
	v->items[3] = completion(a, -1, 5); /* of a request that nobody saw */
	expect_bytes(&ev, 100, 10);
}

static void test_bytes_of_completions(void **state)
{
	static const int aio[] = { IOCB_CMD_PREAD, IOCB_CMD_PWRITEV, IOCB_CMD_PWRITE };
	static const int uring[] = { IORING_OP_READ_FIXED, IORING_OP_WRITE, IORING_OP_READ };

	(void)state;
	expect_completions("io_getevents", "events", aio);
	expect_completions("io_uring_enter", "cqes", uring);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(test_find, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bytes_by_result, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bytes_of_block_requests, setup, teardown),
		cmocka_unit_test_setup_teardown(test_bytes_of_completions, setup, teardown),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
