/* SPDX-License-Identifier: MIT */
/* The rules of the policy root on resources, one small trace for each. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <errno.h>

#include "order_rig.h"

#define BIT(name) (UINT32_C(1) << RULE_##name)

/* Tables 1 and 2 of the ROOT paper, and what goes beyond them. */
static const struct rig_case cases[] = {
	{ .name = "program, sequential",
	  .rules = "program_seq",
	  .lines = { "1 F1:u", "2 F2:u", "3 F3:u" },
	  .claims = "1<2 2<3" },
	{ .name = "program, not asked for",
	  .rules = "default",
	  .lines = { "1 F1:r[0,9)", "2 F2:r[0,9)", "1 F3:r[0,9)" },
	  .claims = "1|2 1<3" },
	{ .name = "file, stage",
	  .rules = "file_stage",
	  .lines = { "1 F1:c", "2 F1:w[0,9)", "3 F1:w[0,9)", "4 F1:d", "2 F2:u" },
	  .claims = "1<2 1<3 2|3 2<4 3<4 4|5" },
	{ .name = "file, sequential",
	  .rules = "file_seq",
	  .lines = { "1 F1:r[0,9)", "2 F1:r[0,9)", "3 F2:r[0,9)", "3 F1:m" },
	  .claims = "1<2 2<4 2|3" },
	{ .name = "file, sequential: directories are left to their names",
	  .rules = "file_seq",
	  .lines = { "1 G1:u", "2 G1:m", "3 G1:e", "4 G1:e", "5 G1:l", "6 G1:m" },
	  .claims = "1|2 2|3 3|4 4|5 5|6" },
	{ .name = "file, sequential subsumes conflicts",
	  .rules = "file_seq,file_range",
	  .lines = { "1 F1:r[0,9)", "2 F1:r[50,60)", "3 F1:w[0,9)" },
	  .claims = "1<2 2<3" },
	{ .name = "path, stage and name",
	  .rules = "path_stage",
	  .lines = { "1 N1:c", "2 N1:u", "3 N1:u", "4 N1:d", "5 N1:c", "6 N1:u", "1 N2:u" },
	  .claims = "1<2 1<3 2|3 2<4 3<4 4<5 3<5 5<6 7|6 7|4" },
	{ .name = "path, no create and no delete: uses are free",
	  .rules = "path_stage",
	  .lines = { "1 N1:u", "2 N1:u", "3 N1:u" },
	  .claims = "1|2 2|3 1|3" },
	{ .name = "path, look-ups that find nothing",
	  .rules = "path_stage",
	  .lines = { "1 N1:f", "2 N1:f", "3 N1:c", "4 N1:u", "5 N1:d", "6 N1:f" },
	  .claims = "1|2 1<3 2<3 3<4 4<5 5<6" },
	{ .name = "path, mode changed on the way",
	  .rules = "path_stage",
	  .lines = { "1 N1:u", "2 N1:x", "3 N1:u" },
	  .claims = "1<2 2<3" },
	{ .name = "path, sequential",
	  .rules = "path_seq",
	  .lines = { "1 N1:u", "2 N1:u", "3 N1:u" },
	  .claims = "1<2 2<3" },
	{ .name = "path, not asked for",
	  .rules = "fd_stage",
	  .lines = { "1 N1:c", "2 N1:u", "3 N1:d" },
	  .claims = "1|2 2|3" },
	{ .name = "rename takes one name away and makes another",
	  .rules = "path_stage",
	  .lines = { "1 N1:u", "2 N2:f", "3 N1:d N2:c", "4 N2:u", "5 N1:f", "6 N3:u" },
	  .claims = "1<3 2<3 3<4 3<5 1|2 4|5 6|3" },
	{ .name = "descriptor, stage",
	  .rules = "fd_stage",
	  .lines = { "1 D1:c", "2 D1:u", "3 D1:u", "4 D1:d", "5 D2:c" },
	  .claims = "1<2 1<3 2|3 2<4 3<4 4|5" },
	{ .name = "descriptor, sequential",
	  .rules = "fd_seq",
	  .lines = { "1 D1:c", "2 D1:u", "3 D1:u", "4 D2:u" },
	  .claims = "1<2 2<3 3|4" },
	{ .name = "handle and map, stage",
	  .rules = "default",
	  .lines = { "1 H1:c", "2 H1:u", "3 H1:u", "4 H1:d", "5 M1:c", "6 M1:u", "7 M1:d" },
	  .claims = "1<2 1<3 2|3 3<4 2<4 5<6 6<7 4|5" },
	{ .name = "handle and map, no sequence by fd_seq",
	  .rules = "fd_seq",
	  .lines = { "1 H1:u", "2 H1:u", "3 M1:u", "4 M1:u" },
	  .claims = "1|2 3|4" },
	{ .name = "offset, sequential, but not who names his offset",
	  .rules = "default",
	  .lines = { "1 D1:u O1:o", "2 D1:u O1:u", "3 D1:u O1:o", "4 D2:u O1:o" },
	  .claims = "1<3 3<4 1|2 2|3" },
	{ .name = "asynchronous request, stage",
	  .rules = "default",
	  .lines = { "1 A1:c", "2 A1:u", "3 A1:u", "4 A1:d" },
	  .claims = "1<2 1<3 2|3 2<4 3<4" },
	{ .name = "asynchronous request, sequential",
	  .rules = "aio_seq",
	  .lines = { "1 A1:u", "2 A1:u", "3 A1:u" },
	  .claims = "1<2 2<3" },
	{ .name = "artc has no conflicts by range, no offsets, no streams",
	  .rules = "artc",
	  .lines = { "1 G1:l", "2 G1:e", "3 O1:o", "4 O1:o", "5 S1:w[0,9)", "6 S1:r[0,9)",
		     "1 L1:w[0,9)", "2 L1:w[0,9)" },
	  .claims = "1|2 3|4 5|6 7|8" },
	{ .name = "artc: reads of one file wait for each other",
	  .rules = "artc",
	  .lines = { "1 N1:u F1:u D1:c", "2 D1:u F1:r[0,9)", "3 D1:u F1:r[50,99)", "4 N1:d F1:u" },
	  .claims = "1<2 2<3 3<4" },
	{ .name = "default: reads of one file are free",
	  .rules = "default",
	  .lines = { "1 N1:u F1:u D1:c", "2 D1:u F1:r[0,9)", "3 D1:u F1:r[0,9)", "4 N1:d" },
	  .claims = "1<2 1<3 2|3 1<4 2|4" },

	/* Conflicts. */
	{ .name = "bytes: read against read never",
	  .rules = "default",
	  .lines = { "1 F1:r[0,100)", "2 F1:r[50,60)", "3 F1:r[0,*)", "4 F1:r[99,101)" },
	  .claims = "1|2 1|3 1|4 2|3 2|4 3|4" },
	{ .name = "bytes: write against read and write that overlap",
	  .rules = "default",
	  .lines = { "1 F1:w[0,100)", "2 F1:r[50,60)", "3 F1:r[100,200)", "4 F1:w[55,56)",
		     "5 F1:w[60,61)", "6 F1:r[0,10)" },
	  .claims = "1<2 1|3 2<4 1<4 1<5 2|5 1<6 3|4 4|5 4|6" },
	{ .name = "sync: after all that was changed before, before all that is changed after",
	  .rules = "file_range",
	  .lines = { "1 F1:w[0,9)", "2 F2:M", "3 F3:r[0,9)", "4 T0:r", "5 T0:r", "6 F1:r[0,9)",
		     "7 F3:w[0,9)", "8 G4:e" },
	  .claims = "1<4 2<4 3|4 1<5 4|5 4|6 4<7 5<7 4<8 5<8" },
	{ .name = "fsync: after what was written when it began, before what began after it",
	  .rules = "default",
	  .lines = { "1 10-20 F1:wS[0,9)", "2 30-40 F1:wS[9,18)", "3 25-90 F1:rsmy[0,*)",
		     "4 91-95 F1:wS[18,27)", "5 92-96 F2:w[0,9)" },
	  .claims = "1<3 2|3 3<4 2<4 3|5" },
	{ .name = "fsync: what overlapped it began before, and came after something",
	  .rules = "default",
	  .lines = { "1 10-20 F2:w[0,9)", "1 30-60 F1:wS[0,9)", "2 50-80 F1:rsmy[0,*)",
		     "3 70-99 F1:wS[9,18)", "4 100-101 F1:rsmy[0,*)" },
	  .claims = "1<3 2|3 3|4 2<4 2<5 4<5 3|5" },
	{ .name = "fsync of a directory",
	  .rules = "default",
	  .lines = { "1 10-20 F1:e", "2 30-40 F1:e", "3 25-90 F1:lmy", "4 91-92 F1:e",
		     "5 93-94 F1:lmy" },
	  .claims = "1<3 2|3 3<4 1<5 2<5 4<5" },
	{ .name = "sync is no file of the paper's",
	  .rules = "artc",
	  .lines = { "1 F1:w[0,9)", "2 T0:r", "3 F1:w[0,9)" },
	  .claims = "1|2 2|3 1<3" },
	{ .name = "bytes: the end of a range does not belong to it",
	  .rules = "default",
	  .lines = { "1 F1:w[0,100)", "2 F1:w[100,200)", "3 F1:w[199,200)" },
	  .claims = "1|2 2<3 1|3" },
	{ .name = "bytes: an old writer that was overwritten counts through the new one",
	  .rules = "default",
	  .lines = { "1 F1:w[0,100)", "2 F1:w[0,50)", "3 F1:r[0,10)", "4 F1:r[60,70)" },
	  .claims = "1<2 2<3 1<4 2|4" },
	{ .name = "bytes: truncation takes away what lies behind",
	  .rules = "default",
	  .lines = { "1 F1:r[500,600)", "2 F1:wS[400,*)", "3 F1:r[450,460)", "4 F1:r[0,10)",
		     "5 F1:s" },
	  .claims = "1<2 2<3 2|4 2<5 3|5" },
	{ .name = "bytes: an empty range is none",
	  .rules = "default",
	  .lines = { "1 F1:w[10,10)", "2 F1:w[0,100)", "3 F1:r[50,50)", "4 F1:w[70,60)" },
	  .claims = "1|2 2|3 2|4" },
	{ .name = "size",
	  .rules = "default",
	  .lines = { "1 F1:s", "2 F1:s", "3 F1:S", "4 F1:s", "5 F1:S" },
	  .claims = "1|2 1<3 2<3 3<4 4<5" },
	{ .name = "metadata, apart from size",
	  .rules = "default",
	  .lines = { "1 F1:m", "2 F1:M", "3 F1:m", "4 F1:s", "5 F1:S" },
	  .claims = "1<2 2<3 2|4 2|5 4<5" },
	{ .name = "listing against entries, not among themselves",
	  .rules = "default",
	  .lines = { "1 F1:l", "2 F1:l", "3 F1:e", "4 F1:e", "5 F1:l", "6 F2:e" },
	  .claims = "1|2 1<3 2<3 1<4 3|4 3<5 4<5 5|6" },
	{ .name = "other files are no concern",
	  .rules = "default",
	  .lines = { "1 F1:wSM[0,9)", "2 F2:wSM[0,9)" },
	  .claims = "1|2" },
	{ .name = "streams: bytes are taken after they were put",
	  .rules = "default",
	  .lines = { "1 S1:w[0,10)", "2 S1:w[10,20)", "3 S1:r[0,10)", "4 S1:r[10,15)",
		     "5 S1:r[15,20)", "6 S2:r[0,10)" },
	  .claims = "1|2 1<3 2|3 2<4 1|4 2<5 3|4 4|5 6|1" },
	{ .name = "streams: one taker of much",
	  .rules = "default",
	  .lines = { "1 S1:w[0,10)", "2 S1:w[10,20)", "3 S1:w[20,30)", "4 S1:r[5,25)" },
	  .claims = "1<4 2<4 3<4" },
	{ .name = "streams: the end is seen after the close",
	  .rules = "default",
	  .lines = { "1 S1:c", "2 S1:w[0,10)", "3 S1:d", "4 S1:r[0,10)", "5 S1:r[10,10)" },
	  .claims = "3<5 3<4 2<4 2|3" },
	{ .name = "locks: those that exclude each other",
	  .rules = "default",
	  .lines = { "1 L1:w[0,*)", "2 L1:w[0,10)", "3 L1:r[50,60)", "4 L1:r[50,60)",
		     "5 L1:w[55,56)" },
	  .claims = "1<2 1<3 1<4 3|4 2|3 3<5 4<5 2|5" },

	/* Names that are no longer remembered. */
	{ .name = "forgotten name: makers of entries wait for who looked",
	  .rules = "default",
	  .lines = { "1 N1:f", "2 N2:f", "- N1>F1", "3 N3:c F1:e", "4 N4:c F2:e" },
	  .claims = "1<3 2|3 1|4" },
	{ .name = "forgotten name: who removed it",
	  .rules = "default",
	  .lines = { "1 N1:u", "2 N1:d F1:e", "3 N1:f", "- N1>F1", "4 N1:f F1:u", "5 N1:c F1:e" },
	  .claims = "1<2 2<3 2<4 2<5 3<5 4<5 3|4" },
	{ .name = "forgotten for ever",
	  .rules = "default",
	  .lines = { "1 N1:c", "- N1>", "2 N1:u", "3 F1:w[0,9)", "- F1>", "4 F1:r[0,9)" },
	  .claims = "1|2 3|4" },
	{ .name = "a resource that stands twice in a touch list",
	  .rules = "default",
	  .lines = { "1 N1:u N1:d", "2 N1:f N1:c N1:u", "3 N1:u", "3 F1:r[0,9) F1:w[5,9)",
		     "4 F1:r[0,9)" },
	  .claims = "1<2 2<3 4<5" },
};

static void test_cases(void **state)
{
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(cases); i++)
		rig_run(&cases[i]);
}

/*
 * Figure 3: generation A (create, two uses, delete) and generation B of the same
 * name. An order of the actions is allowed when it breaks no edge.
 */
static bool allowed(const char *rules, const int *order)
{
	static const char *const lines[] = { "1 N1:c", "2 N1:u", "3 N1:u", "4 N1:d",
					     "5 N1:c", "6 N1:u", "7 N1:u", "8 N1:d" };
	struct err err = { "" };
	bool ok = true;
	rule_set set;
	int i, j;

	assert_int_equal(rules_parse(rules, &set, &err), 0);
	rig_open("root", set);
	for (i = 0; i < 8; i++)
		(void)rig_line(lines[i]);
	for (i = 0; i < 8; i++) {
		for (j = i + 1; j < 8; j++)
			ok &= !rig.before[order[i]][order[j]];
	}
	rig_close();
	return ok;
}

static void test_figure_3(void **state)
{
	static const int as_traced[] = { 1, 2, 3, 4, 5, 6, 7, 8 };
	static const int middle_swapped[] = { 1, 3, 2, 4, 5, 6, 7, 8 };
	static const int deleted_early[] = { 1, 2, 3, 4, 5, 6, 8, 7 };
	static const int generations_mixed[] = { 1, 2, 3, 5, 4, 6, 7, 8 };
	static const int the_figure[] = { 1, 3, 2, 5, 4, 6, 8, 7 };

	(void)state;
	assert_true(allowed("path_stage", as_traced));
	assert_true(allowed("path_seq", as_traced));
	assert_true(allowed("path_stage", middle_swapped));
	assert_false(allowed("path_seq", middle_swapped));
	assert_false(allowed("path_stage", deleted_early));
	assert_false(allowed("path_seq", deleted_early));
	assert_false(allowed("path_stage", generations_mixed));
	assert_false(allowed("path_stage", the_figure));
	assert_false(allowed("path_seq", the_figure));
	/* No rule, no edge. */
	assert_true(allowed("none", the_figure));
}

static rule_set parsed(const char *text)
{
	struct err err = { "" };
	rule_set set = 0;

	if (rules_parse(text, &set, &err) < 0)
		fail_msg("%s: %s", text, err.text);
	return set;
}

static void test_rules_parse(void **state)
{
	static const char *const wrong[] = {
		"",
		"nonsense",
		"+",
		"-",
		"path_stage,",
		",",
		"-thread",
		"temporal",
		"+overlap",
		"path_stage,artc",
		"path_sta",
		"+path_stage ",
		"a_rule_of_a_name_that_is_longer_than_any_other",
	};
	struct err err = { "" };
	struct buf b = { 0 };
	rule_set set = 12345;
	size_t i;

	(void)state;
	assert_int_equal(parsed("default"), rules_default);
	assert_int_equal(parsed("artc"), rules_artc);
	assert_int_equal(parsed("none"), BIT(thread));
	assert_int_equal(parsed("+file_seq"), rules_default | BIT(file_seq));
	assert_int_equal(parsed("-path_stage,+path_seq"),
			 (rules_default & ~BIT(path_stage)) | BIT(path_seq));
	assert_int_equal(parsed("artc,-fd_seq"), rules_artc & ~BIT(fd_seq));
	assert_int_equal(parsed("fd_stage,path_seq"), BIT(thread) | BIT(fd_stage) | BIT(path_seq));
	assert_int_equal(parsed("none,+sync_wake"), BIT(thread) | BIT(sync_wake));
	assert_int_equal(parsed("thread"), BIT(thread));
	for (i = 0; i < ARRAY_LEN(wrong); i++) {
		assert_int_equal(rules_parse(wrong[i], &set, &err), -EINVAL);
		assert_true(err.text[0]);
		assert_int_equal(set, 12345);
	}
	assert_int_equal(rules_parse("file_sek", &set, &err), -EINVAL);
	assert_string_equal(err.text, "there is no rule file_sek; did you mean file_seq?");
	rules_print(rules_artc, &b);
	assert_string_equal(buf_str(&b), "thread,file_seq,path_stage,fd_stage,fd_seq,aio_stage");
	assert_int_equal(parsed(buf_str(&b)), rules_artc);
	buf_release(&b);
}

static void test_policies(void **state)
{
	const struct order_policy *const *p;
	int nr = 0;

	(void)state;
	for (p = order_policies; *p; p++, nr++) {
		assert_ptr_equal(order_find((*p)->name), *p);
		assert_true((*p)->summary[0]);
	}
	assert_int_equal(nr, 6);
	assert_null(order_find("nonsense"));
	assert_true(order_find("single")->one_lane);
	order_free(NULL);
}

/* Policies that ask for nothing. */
static void test_none(void **state)
{
	(void)state;
	rig_open("none", rules_default);
	(void)rig_line("1 N1:c F1:w[0,9)");
	(void)rig_line("2 N1:d F1:w[0,9)");
	rig_claims("none", "1|2", false);
	rig_close();
}

static void test_totals_and_implied(void **state)
{
	struct order_totals t;

	(void)state;
	rig_open("root", rules_default);
	(void)rig_line("1 N1:c D1:c");
	(void)rig_line("2 N1:u D1:u"); /* one edge of two */
	(void)rig_line("2 N1:u D1:u"); /* implied */
	(void)rig_line("3 N1:d"); /* 2 is enough: 1 comes before it */
	t = order_totals(rig.o);
	assert_int_equal(t.nr_edges, 2);
	assert_int_equal(rig.nr_edges, 2);
	assert_int_equal(t.by_rule[RULE_path_stage] + t.by_rule[RULE_fd_stage], 2);
	assert_true(t.nr_asked > t.nr_edges);
	assert_true(order_implied(rig.o, 3, &(struct action_ref){ .lane = 1, .nr = 0 }));
	assert_true(order_implied(rig.o, 3, &(struct action_ref){ .lane = 2, .nr = 1 }));
	assert_true(order_implied(rig.o, 3, &(struct action_ref){ .lane = 3, .nr = 0 }));
	assert_false(order_implied(rig.o, 1, &(struct action_ref){ .lane = 2, .nr = 0 }));
	assert_false(order_implied(rig.o, 9, &(struct action_ref){ .lane = 2, .nr = 0 }));
	rig_close();
}

/* Lengths of edges come from the times of both ends. */
static void test_times_of_edges(void **state)
{
	static const uint64_t took[] = { 0, 1, 2147483647, UINT64_C(60) * 1000000000 };
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(took); i++) {
		struct event ev = {
			.row = row_by_id(SC_read), .tid = 7, .pid = 7, .enter_ns = 5000
		};
		struct order_input in = { .ev = &ev, .facts = &rig.facts, .action = true };
		const struct edges *edges;
		uint64_t error_ns;

		rig_open("root", rules_default);
		in.self = (struct action_ref){ 1, 0, 5000, 5000 + took[i] };
		VEC_PUSH(&rig.facts.touches,
			 ((struct touch){ &rig.res[RES_NAME][1], TOUCH_CREATE, 0, 0 }));
		(void)order_event(rig.o, &in);
		ev.tid = ev.pid = 8;
		in.self = (struct action_ref){ 2, 0, 0, 0 };
		edges = order_event(rig.o, &in);
		assert_int_equal(edges->list.len, 1);
		assert_int_equal(edges->list.items[0].from.enter_ns, 5000);
		error_ns = 5000 + took[i] - edges->list.items[0].from.exit_ns;
		assert_true(error_ns < 1024 && (took[i] >> 31 || !error_ns));
		rig_close();
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_cases),	       cmocka_unit_test(test_figure_3),
		cmocka_unit_test(test_rules_parse),    cmocka_unit_test(test_policies),
		cmocka_unit_test(test_none),	       cmocka_unit_test(test_totals_and_implied),
		cmocka_unit_test(test_times_of_edges),
	};

	return cmocka_run_group_tests(tests, event_text_setup, event_text_teardown);
}
