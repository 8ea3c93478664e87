/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "base/options.h"

enum colour {
	RED,
	GREEN,
	BLUE,
};

struct paint_options {
	bool json, verbose;
	const char *output;
	uint64_t limit, size_bytes, wait_ns;
	enum colour colour;
	unsigned int shape;
	struct option_strings calls;
	struct option_u64s pids;
};

static const char *const colours[] = { "red", "green", "blue", NULL };
static const char *const shapes[] = { "round", NULL };

static const struct option_spec paint_specs[] = {
	OPT_FLAG('j', "json", struct paint_options, json, "print JSON"),
	OPT_FLAG('v', "verbose", struct paint_options, verbose, "say more"),
	OPT_STRING('o', "output", "FILE", struct paint_options, output, "write to FILE"),
	OPT_U64('n', "limit", "N", struct paint_options, limit, "stop after N",
		.default_text = "9"),
	OPT_SIZE(0, "size", "BYTES", struct paint_options, size_bytes, "how large"),
	OPT_DURATION('w', "wait", "TIME", struct paint_options, wait_ns, "how long"),
	OPT_CHOICE('c', "colour", "COLOUR", struct paint_options, colour, colours, "which colour"),
	OPT_CHOICE(0, "shape", "SHAPE", struct paint_options, shape, shapes, "which shape"),
	OPT_STRINGS('C', "call", "CALL", struct paint_options, calls, "only this call"),
	OPT_U64S('p', "pid", "PID", struct paint_options, pids, "only this process"),
};

static const struct paint_options paint_defaults = {
	.limit = 9,
	.colour = GREEN,
	.shape = OPTION_NO_CHOICE,
};

static const struct command command_paint = {
	.name = "paint",
	.summary = "paint things in a colour",
	.operands = "A [B]",
	.options = paint_specs,
	.nr_options = ARRAY_LEN(paint_specs),
	.options_size = sizeof(struct paint_options),
	.defaults = &paint_defaults,
};

#define WORDS_MAX 16

/*
 * One parse: the words are given as one string, separated by spaces; "_" is an
 * empty word.
 */
struct parse {
	const struct command *cmd;
	char text[256];
	char *argv[WORDS_MAX];
	struct paint_options *o;
	struct err err;
	int r;
};

static void parse_with(struct parse *p, const struct command *cmd, const char *words)
{
	int argc = 0;
	char *save = NULL, *word;

	*p = (struct parse){ .cmd = cmd };
	snprintf(p->text, sizeof(p->text), "%s", words);
	for (word = strtok_r(p->text, " ", &save); word; word = strtok_r(NULL, " ", &save)) {
		assert_true(argc < WORDS_MAX);
		if (!strcmp(word, "_"))
			word[0] = 0;
		p->argv[argc++] = word;
	}
	p->o = options_new(cmd);
	p->r = options_parse(cmd, argc, p->argv, p->o, &p->err);
}

static void parse_end(struct parse *p)
{
	options_free(p->cmd, p->o);
}

static void expect_error_of(const struct command *cmd, const char *words, const char *text)
{
	struct parse p;

	parse_with(&p, cmd, words);
	assert_string_equal(p.err.text, text);
	assert_int_equal(p.r, -EINVAL);
	parse_end(&p);
}

static void expect_error(const char *words, const char *text)
{
	expect_error_of(&command_paint, words, text);
}

static void test_defaults(void **state)
{
	struct parse p;

	(void)state;
	parse_with(&p, &command_paint, "x");
	assert_int_equal(p.r, 1);
	assert_string_equal(p.argv[0], "x");
	assert_int_equal(p.o->limit, 9);
	assert_int_equal(p.o->colour, GREEN);
	assert_int_equal(p.o->shape, OPTION_NO_CHOICE);
	assert_false(p.o->json);
	assert_null(p.o->output);
	assert_int_equal(p.o->calls.len, 0);
	parse_end(&p);
}

static void test_long_forms(void **state)
{
	struct parse p;

	(void)state;
	parse_with(&p, &command_paint,
		   "--json --output=a=b --limit 0x10 --size=64K --wait 1.5ms --colour=blue "
		   "--shape round x");
	assert_int_equal(p.r, 1);
	assert_true(p.o->json);
	assert_false(p.o->verbose);
	assert_string_equal(p.o->output, "a=b");
	assert_int_equal(p.o->limit, 16);
	assert_int_equal(p.o->size_bytes, 65536);
	assert_int_equal(p.o->wait_ns, 1500000);
	assert_int_equal(p.o->colour, BLUE);
	assert_int_equal(p.o->shape, 0);
	parse_end(&p);
}

static void test_short_forms(void **state)
{
	struct parse p;

	(void)state;
	parse_with(&p, &command_paint, "-jvn7 x -ofile -c red -w 2");
	assert_int_equal(p.r, 1);
	assert_true(p.o->json);
	assert_true(p.o->verbose);
	assert_int_equal(p.o->limit, 7);
	assert_string_equal(p.o->output, "file");
	assert_int_equal(p.o->colour, RED);
	assert_int_equal(p.o->wait_ns, 2000000000);
	parse_end(&p);
}

static void test_last_one_counts(void **state)
{
	struct parse p;

	(void)state;
	parse_with(&p, &command_paint, "-n1 --limit=2 -n 3 x");
	assert_int_equal(p.o->limit, 3);
	parse_end(&p);
}

static void test_lists(void **state)
{
	struct parse p;

	(void)state;
	parse_with(&p, &command_paint,
		   "-C read --call=write,x x -p 1 --pid=2,3 -p18446744073709551615");
	assert_int_equal(p.o->calls.len, 2);
	assert_string_equal(p.o->calls.items[0], "read");
	assert_string_equal(p.o->calls.items[1], "write,x");
	assert_int_equal(p.o->pids.len, 4);
	assert_int_equal(p.o->pids.items[0], 1);
	assert_int_equal(p.o->pids.items[1], 2);
	assert_int_equal(p.o->pids.items[2], 3);
	assert_true(p.o->pids.items[3] == UINT64_MAX);
	parse_end(&p);
}

static void test_lists_are_freed_after_errors(void **state)
{
	(void)state;
	/* The leak checker is the judge. */
	expect_error("-C read -p 1,2 --nope", "unknown option '--nope'");
}

static void test_operands(void **state)
{
	struct parse p;

	(void)state;
	parse_with(&p, &command_paint, "x --json -");
	assert_int_equal(p.r, 2);
	assert_string_equal(p.argv[0], "x");
	assert_string_equal(p.argv[1], "-");
	parse_end(&p);

	parse_with(&p, &command_paint, "-j -- --json -n");
	assert_int_equal(p.r, 2);
	assert_string_equal(p.argv[0], "--json");
	assert_string_equal(p.argv[1], "-n");
	parse_end(&p);

	parse_with(&p, &command_paint, "_");
	assert_int_equal(p.r, 1);
	assert_string_equal(p.argv[0], "");
	parse_end(&p);

	/* A value is whatever follows, even if it looks like an option. */
	parse_with(&p, &command_paint, "-o --json x");
	assert_int_equal(p.r, 1);
	assert_string_equal(p.o->output, "--json");
	assert_false(p.o->json);
	parse_end(&p);
}

static int count_for(const char *operands, const char *words)
{
	struct command cmd = command_paint;
	struct parse p;

	cmd.operands = operands;
	parse_with(&p, &cmd, words);
	parse_end(&p);
	return p.r;
}

static void test_operand_counts(void **state)
{
	(void)state;
	assert_int_equal(count_for(NULL, ""), 0);
	assert_int_equal(count_for(NULL, "a"), -EINVAL);
	assert_int_equal(count_for("A B", "a"), -EINVAL);
	assert_int_equal(count_for("A B", "a b"), 2);
	assert_int_equal(count_for("A B", "a b c"), -EINVAL);
	assert_int_equal(count_for("[A]", ""), 0);
	assert_int_equal(count_for("[A]", "a b"), -EINVAL);
	assert_int_equal(count_for("IN...", ""), -EINVAL);
	assert_int_equal(count_for("IN...", "a b c d"), 4);
	assert_int_equal(count_for("[IN...]", ""), 0);
	assert_int_equal(count_for("[IN...]", "a b c"), 3);
	assert_int_equal(count_for("IN... OUT", "a"), -EINVAL);
	assert_int_equal(count_for("IN... OUT", "a b c"), 3);
}

static void test_operand_errors(void **state)
{
	struct command cmd = command_paint;

	(void)state;
	expect_error("", "missing operand A");
	expect_error("--json", "missing operand A");
	expect_error("a b c d", "too many operands: 'c'");
	cmd.operands = "IN... OUT";
	expect_error_of(&cmd, "", "missing operand IN");
	expect_error_of(&cmd, "a", "missing operand OUT");
}

static void test_options_first(void **state)
{
	struct command cmd = command_paint;
	struct parse p;

	(void)state;
	cmd.operands = "PROGRAM [ARG...]";
	cmd.options_first = true;
	parse_with(&p, &cmd, "-j ls -l --help -- x");
	assert_int_equal(p.r, 5);
	assert_true(p.o->json);
	assert_string_equal(p.argv[1], "-l");
	assert_string_equal(p.argv[3], "--");
	parse_end(&p);

	parse_with(&p, &cmd, "-- -j");
	assert_int_equal(p.r, 1);
	assert_string_equal(p.argv[0], "-j");
	assert_false(p.o->json);
	parse_end(&p);
}

static int status_of(const char *words)
{
	struct parse p;

	parse_with(&p, &command_paint, words);
	parse_end(&p);
	return p.r;
}

static void test_help_is_asked_for(void **state)
{
	(void)state;
	assert_int_equal(status_of("-h"), -ECANCELED);
	assert_int_equal(status_of("--help"), -ECANCELED);
	assert_int_equal(status_of("a b c d -jh"), -ECANCELED);
	/* Here it is a value, and there an operand. */
	assert_int_equal(status_of("-o -h x"), 1);
	assert_int_equal(status_of("-- -h"), 1);
}

static void test_unknown_options(void **state)
{
	(void)state;
	expect_error("--jsn x", "unknown option '--jsn'; did you mean '--json'?");
	expect_error("--ouptut=x x", "unknown option '--ouptut'; did you mean '--output'?");
	expect_error("--verb x", "unknown option '--verb'; did you mean '--verbose'?");
	expect_error("--hlep", "unknown option '--hlep'; did you mean '--help'?");
	expect_error("--elephant x", "unknown option '--elephant'");
	expect_error("--=x x", "unknown option '--'");
	expect_error("-x", "unknown option '-x'");
	expect_error("-jx", "unknown option '-x'");
	expect_error("-\xc3\xa9", "unknown option '-\xc3\xa9'");
	expect_error("-j\xff", "unknown option '-\xff'");
}

static void test_wrong_values(void **state)
{
	(void)state;
	expect_error("x --limit", "option '--limit' needs a value");
	expect_error("x -n", "option '-n' needs a value");
	expect_error("x -jn", "option '-n' needs a value");
	expect_error("--json=1 x", "option '--json' takes no value");
	expect_error("--help=1 x", "option '--help' takes no value");
	expect_error("--limit=abc x", "'--limit=abc': not a number");
	expect_error("--limit abc x", "'--limit abc': not a number");
	expect_error("--limit= x", "'--limit=': not a number");
	expect_error("-n _ x", "'-n ': not a number");
	expect_error("-n-5 x", "'-n -5': not a number");
	expect_error("-n 18446744073709551616 x", "'-n 18446744073709551616': too large");
	expect_error("--size=1Q x", "'--size=1Q': not a size, such as 4096, 64K or 1.5G");
	expect_error("-w 5x x", "'-w 5x': not a duration, such as 10us, 5ms, 1.5s or 2m");
	expect_error("-c pink x", "'-c pink': must be one of red, green, blue");
	expect_error("--shape=square x", "'--shape=square': must be round");
	expect_error("-p 1,,2 x", "'-p 1,,2': not a number");
	expect_error("-p 1, x", "'-p 1,': not a number");
	expect_error("-p 99999999999999999999999999999999999 x",
		     "'-p 99999999999999999999999999999999999': too large");
}

static void test_without_err(void **state)
{
	char word[] = "--nope";
	char *argv[] = { word };
	void *options = options_new(&command_paint);

	(void)state;
	assert_int_equal(options_parse(&command_paint, 1, argv, options, NULL), -EINVAL);
	options_free(&command_paint, options);
	options_free(&command_paint, NULL);
}

static void test_page(void **state)
{
	struct buf b = { 0 };

	(void)state;
	options_put_page(&command_paint, "prog", &b);
	assert_string_equal(
		buf_str(&b),
		"usage: prog paint [OPTION]... A [B]\n"
		"\n"
		"Paint things in a colour.\n"
		"\n"
		"options:\n"
		"  -j, --json           print JSON\n"
		"  -v, --verbose        say more\n"
		"  -o, --output=FILE    write to FILE\n"
		"  -n, --limit=N        stop after N (default: 9)\n"
		"      --size=BYTES     how large\n"
		"  -w, --wait=TIME      how long\n"
		"  -c, --colour=COLOUR  which colour: red, green, blue (default: green)\n"
		"      --shape=SHAPE    which shape: round\n"
		"  -C, --call=CALL      only this call; may be repeated\n"
		"  -p, --pid=PID        only this process; may be repeated\n"
		"  -h, --help           print this help\n");
	buf_release(&b);
}

static void test_page_wraps(void **state)
{
	static const char *const usage[] = { "[--long] IN", "--other OUT", NULL };
	static const struct option_spec specs[] = {
		OPT_FLAG(0, "a-name-that-is-longer-than-most", struct paint_options, json,
			 "short text"),
		OPT_FLAG('l', "long", struct paint_options, verbose,
			 "a text that goes on and on until it is wider than a terminal, and "
			 "then some"),
	};
	struct command cmd = command_paint;
	struct buf b = { 0 };

	(void)state;
	cmd.usage = usage;
	cmd.options = specs;
	cmd.nr_options = ARRAY_LEN(specs);
	options_put_page(&cmd, "prog", &b);
	assert_string_equal(
		buf_str(&b),
		"usage: prog paint [--long] IN\n"
		"       prog paint --other OUT\n"
		"\n"
		"Paint things in a colour.\n"
		"\n"
		"options:\n"
		"      --a-name-that-is-longer-than-most\n"
		"              short text\n"
		"  -l, --long  a text that goes on and on until it is wider than a terminal, and\n"
		"              then some\n"
		"  -h, --help  print this help\n");
	buf_release(&b);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_defaults),
		cmocka_unit_test(test_long_forms),
		cmocka_unit_test(test_short_forms),
		cmocka_unit_test(test_last_one_counts),
		cmocka_unit_test(test_lists),
		cmocka_unit_test(test_lists_are_freed_after_errors),
		cmocka_unit_test(test_operands),
		cmocka_unit_test(test_operand_counts),
		cmocka_unit_test(test_operand_errors),
		cmocka_unit_test(test_options_first),
		cmocka_unit_test(test_help_is_asked_for),
		cmocka_unit_test(test_unknown_options),
		cmocka_unit_test(test_wrong_values),
		cmocka_unit_test(test_without_err),
		cmocka_unit_test(test_page),
		cmocka_unit_test(test_page_wraps),
	};

	return cmocka_run_group_tests_name("options", tests, NULL, NULL);
}
