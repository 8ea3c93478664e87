/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"
#include "model/codec.h"
#include "model/schema.h"
#include "sample.h"

/* From a copy of exactly this length, so that a read past its end is seen. */
static int parse_len(const char *text, size_t len, struct schema **ret, struct err *err)
{
	char *copy = xmalloc(len);
	int r;

	if (len)
		memcpy(copy, text, len);
	r = schema_parse(copy, len, ret, err);
	free(copy);
	return r;
}

static int parse(const char *text, struct schema **ret, struct err *err)
{
	return parse_len(text, strlen(text), ret, err);
}

static void assert_refused(const char *text, int wanted, const char *words)
{
	struct err err = { "" };
	struct schema *s = NULL;

	assert_int_equal(parse(text, &s, &err), wanted);
	assert_null(s);
	if (!strstr(err.text, words))
		fail_msg("'%s' does not say '%s'", err.text, words);
}

static struct schema *parse_ok(const char *text)
{
	struct err err = { "" };
	struct schema *s = NULL;

	if (parse(text, &s, &err) < 0)
		fail_msg("%s", err.text);
	return s;
}

static void assert_same_wires(const struct wire_list *a, const struct wire_list *b)
{
	unsigned int i;

	assert_int_equal(a->nr_wires, b->nr_wires);
	for (i = 0; i < a->nr_wires; i++) {
		assert_int_equal(a->wires[i].type, b->wires[i].type);
		assert_int_equal(a->wires[i].elem, b->wires[i].elem);
		assert_int_equal(a->wires[i].position, b->wires[i].position);
	}
}

static void test_own_schema_comes_back(void **state)
{
	struct schema *ours = schema_new(), *back;
	struct buf text = { 0 }, again = { 0 };
	unsigned int i;

	(void)state;
	schema_print(ours, &text);
	back = parse_ok(buf_str(&text));
	for (i = 0; i < ROW_ID_MAX; i++) {
		assert_ptr_equal(back->rows[i].row, row_by_id(i));
		assert_null(back->rows[i].made);
		assert_same_wires(&ours->rows[i].args, &back->rows[i].args);
	}
	schema_print(back, &again);
	assert_string_equal(buf_str(&text), buf_str(&again));
	buf_release(&text);
	buf_release(&again);
	schema_free(ours);
	schema_free(back);
}

/* What one schema encodes, the parsed one decodes, for every row. */
static void test_parsed_schema_decodes(void **state)
{
	struct schema *ours = schema_new(), *back;
	struct buf text = { 0 }, bytes = { 0 };
	struct arena a, decoded;
	struct rng rng = { 4 };
	unsigned int i, n;

	(void)state;
	schema_print(ours, &text);
	back = parse_ok(buf_str(&text));
	arena_init(&a);
	arena_init(&decoded);
	for (i = 0; i < ROW_ID_MAX; i++) {
		struct value args[ROW_ARGS_MAX], got[ROW_ARGS_MAX];
		struct cursor in;

		if (!row_by_id(i))
			continue;
		arena_reset(&a);
		arena_reset(&decoded);
		buf_clear(&bytes);
		sample_args(ours, i, &rng, &a, args);
		assert_int_equal(codec_put_args(&ours->rows[i], ours, args, &sample_sink, &bytes),
				 0);
		in = (struct cursor){ bytes.data, bytes.data + bytes.len };
		assert_true(codec_get_args(&back->rows[i], back, &in, &decoded, got));
		for (n = 0; n < row_by_id(i)->nr_args; n++)
			assert_true(value_equal(&args[n], &got[n]));
	}
	arena_release(&a);
	arena_release(&decoded);
	buf_release(&text);
	buf_release(&bytes);
	schema_free(ours);
	schema_free(back);
}

static void test_empty_and_unknown_lines(void **state)
{
	struct schema *s;

	(void)state;
	schema_free(parse_ok(""));
	s = parse_ok("\n\n   \ncolour 7 blue\nstructure x\n# call 81\n");
	assert_int_equal(s->nr_structs, 0);
	assert_null(s->rows[SC_write].row);
	schema_free(s);
}

static void test_last_line_without_newline(void **state)
{
	struct schema *s = parse_ok("call 17 close i:fd:FD");

	(void)state;
	assert_ptr_equal(s->rows[SC_close].row, row_by_id(SC_close));
	schema_free(s);
}

static void test_malformed(void **state)
{
	(void)state;
	assert_refused("struct", -EBADMSG, "line 1");
	assert_refused("\nstruct a-b", -EBADMSG, "line 2");
	assert_refused("struct zz u:a:INT\nstruct zz u:a:INT", -EBADMSG, "twice");
	assert_refused("call", -EBADMSG, "bad row");
	assert_refused("call 5", -EBADMSG, "bad row");
	assert_refused("call 0 zero", -EBADMSG, "number");
	assert_refused("call -1 minus", -EBADMSG, "number");
	assert_refused("call 4096 high", -EBADMSG, "number");
	assert_refused("call 18446744073709551616 higher", -EBADMSG, "number");
	assert_refused("call 1x odd", -EBADMSG, "number");
	assert_refused("call 4000 aa\ncall 4000 bb", -EBADMSG, "twice");
	assert_refused("call 4000 aa u", -EBADMSG, "argument");
	assert_refused("call 4000 aa u:", -EBADMSG, "argument");
	assert_refused("call 4000 aa u:a", -EBADMSG, "argument");
	assert_refused("call 4000 aa u:a:", -EBADMSG, "name");
	assert_refused("call 4000 aa u::INT", -EBADMSG, "name");
	assert_refused("call 4000 aa :a:INT", -EBADMSG, "name");
	assert_refused("call 4000 aa q:a:INT", -EBADMSG, "type");
	assert_refused("call 4000 aa uu:a:INT", -EBADMSG, "type");
	assert_refused("call 4000 aa s:a:INT", -EBADMSG, "type");
	assert_refused("call 4000 aa s():a:INT", -EBADMSG, "type");
	assert_refused("call 4000 aa s(zz:a:INT", -EBADMSG, "type");
	assert_refused("call 4000 aa s(zz):a:INT", -EBADMSG, "before");
	assert_refused("call 4000 aa s(u):a:INT", -EBADMSG, "before");
	assert_refused("struct zz s(zz):a:STRUCT", -EBADMSG, "before");
	assert_refused("call 4000 aa s(y):a:STRUCT\nstruct y u:a:INT", -EBADMSG, "before");
	assert_refused("struct zz \xff:a:INT", -EBADMSG, "type");
}

/* strchr() finds the NUL at the end of a set, so a NUL must not pass for a type. */
static void test_nul_is_no_type(void **state)
{
	static const char plain[] = "call 4000 aa \0:a:INT";
	static const char list[] = "call 4000 aa l(\0):a:INT";
	static const char typed[] = "call 4000 aa \0(u):a:INT";
	struct schema *s = NULL;

	(void)state;
	assert_int_equal(parse_len(plain, sizeof(plain) - 1, &s, NULL), -EBADMSG);
	assert_int_equal(parse_len(list, sizeof(list) - 1, &s, NULL), -EBADMSG);
	assert_int_equal(parse_len(typed, sizeof(typed) - 1, &s, NULL), -EBADMSG);
	assert_null(s);
}

static void put_many(struct buf *b, const char *word, unsigned int nr)
{
	unsigned int i;

	for (i = 0; i < nr; i++)
		buf_printf(b, " u:%s%u:INT", word, i);
}

static void test_limits(void **state)
{
	struct buf text = { 0 };
	unsigned int i;

	(void)state;
	buf_puts(&text, "call 4000 aa");
	put_many(&text, "a", ROW_ARGS_MAX);
	schema_free(parse_ok(buf_str(&text)));
	buf_puts(&text, " u:b:INT");
	assert_refused(buf_str(&text), -EBADMSG, "too many");

	buf_clear(&text);
	buf_puts(&text, "struct zz");
	put_many(&text, "a", STRUCT_FIELDS_MAX);
	schema_free(parse_ok(buf_str(&text)));
	buf_puts(&text, " u:b:INT");
	assert_refused(buf_str(&text), -EBADMSG, "too many");

	buf_clear(&text);
	for (i = 0; i < 5000; i++)
		buf_printf(&text, "struct z%u\n", i);
	assert_refused(buf_str(&text), -EBADMSG, "too many structs");

	buf_clear(&text);
	buf_puts(&text, "call 4000 ");
	for (i = 0; i < 1000; i++)
		buf_putc(&text, 'a');
	assert_refused(buf_str(&text), -EBADMSG, "bad row");
	buf_release(&text);
}

/* What contradicts our table cannot be read by us. */
static void test_contradictions(void **state)
{
	(void)state;
	assert_refused("call 17 close u:fd:FD", -EOPNOTSUPP, "line 1");
	assert_refused("call 17 close i:df:FD", -EOPNOTSUPP, "'df'");
	assert_refused("call 81 write i:fd:FD u:count:SIZE", -EOPNOTSUPP, "count");
	assert_refused("struct iovec u:iov_base:BUF", -EOPNOTSUPP, "iov_base");
	assert_refused("struct xx u:a:INT\ncall 83 writev i:fd:FD l(xx):iov:ARRAY", -EOPNOTSUPP,
		       "line 2");
	assert_refused("call 83 writev i:fd:FD l(u):iov:ARRAY", -EOPNOTSUPP, "iov");
}

static void test_later_version(void **state)
{
	const struct schema_row *r;
	struct schema *s;

	(void)state;
	s = parse_ok("struct iovec d:iov_base:BUF u:iov_len:SIZE u:iov_new:SIZE\n"
		     "struct brand_new u:a:COLOUR\n"
		     "call 17 close i:fd:FD u:more:COLOUR s(brand_new):extra:STRUCT\n"
		     "call 4000 frobnicate i:fd:FD l(brand_new):list:ARRAY d:p:PATH l(d):v:STRV\n"
		     "event 4001 hiccup\n"
		     "record 4002 note d:text:STR\n");
	r = &s->rows[SC_close];
	assert_ptr_equal(r->row, row_by_id(SC_close));
	assert_int_equal(r->args.nr_wires, 3);
	assert_int_equal(r->args.wires[0].position, 0);
	assert_int_equal(r->args.wires[1].position, WIRE_UNKNOWN);
	r = &s->rows[4000];
	assert_string_equal(r->row->name, "frobnicate");
	assert_int_equal(r->row->id, 4000);
	assert_int_equal(r->row->sort, ROW_CALL);
	assert_int_equal(r->row->nr_args, 4);
	assert_int_equal(r->row->args[0].kind, KIND_FD);
	assert_int_equal(r->row->args[2].kind, KIND_PATH);
	assert_string_equal(r->row->args[3].name, "v");
	assert_int_equal(s->rows[4001].row->sort, ROW_EVENT);
	assert_int_equal(s->rows[4001].row->nr_args, 0);
	assert_int_equal(s->rows[4002].row->sort, ROW_RECORD);
	schema_free(s);
}

/* A known id under another name is another row: made from the file. */
static void test_same_id_other_name(void **state)
{
	struct schema *s = parse_ok("call 17 shut u:x:HEX");

	(void)state;
	assert_string_equal(s->rows[17].row->name, "shut");
	assert_non_null(s->rows[17].made);
	schema_free(s);
}

static void test_earlier_version(void **state)
{
	struct schema *s = parse_ok("call 81 write i:fd:FD d:buf:BUF");
	struct value args[ROW_ARGS_MAX];
	const uint8_t bytes[] = { 0, 6, 0 };
	struct cursor in = { bytes, bytes + sizeof(bytes) };
	struct arena a;

	(void)state;
	arena_init(&a);
	assert_true(codec_get_args(&s->rows[SC_write], s, &in, &a, args));
	assert_int_equal(args[0].i, 3);
	assert_int_equal(args[1].type, VALUE_NULL);
	assert_int_equal(args[2].type, VALUE_NONE);
	arena_release(&a);
	schema_free(s);
}

/* Half of every line, and the whole cut at every byte of its beginning. */
static void test_cut_text(void **state)
{
	struct schema *ours = schema_new(), *s;
	struct buf text = { 0 };
	size_t len;

	(void)state;
	schema_print(ours, &text);
	for (len = 0; len < text.len; len += len < 3000 ? 1 : 997) {
		int r = parse_len((const char *)text.data, len, &s, NULL);

		if (!r)
			schema_free(s);
		else
			assert_true(r == -EBADMSG || r == -EOPNOTSUPP);
	}
	buf_release(&text);
	schema_free(ours);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_own_schema_comes_back),
		cmocka_unit_test(test_parsed_schema_decodes),
		cmocka_unit_test(test_empty_and_unknown_lines),
		cmocka_unit_test(test_last_line_without_newline),
		cmocka_unit_test(test_malformed),
		cmocka_unit_test(test_nul_is_no_type),
		cmocka_unit_test(test_limits),
		cmocka_unit_test(test_contradictions),
		cmocka_unit_test(test_later_version),
		cmocka_unit_test(test_same_id_other_name),
		cmocka_unit_test(test_earlier_version),
		cmocka_unit_test(test_cut_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
