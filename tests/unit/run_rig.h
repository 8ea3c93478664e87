/* SPDX-License-Identifier: MIT */
/*
 * What the tests of runs share: a plan that is written as text and performed in
 * an empty tree, and its result. Included behind cmocka.h, once in a program.
 */
#ifndef UNIT_RUN_RIG_H
#define UNIT_RUN_RIG_H

#include <stdio.h>
#include <stdlib.h>

#include "plan_text.h"
#include "replay/run.h"
#include "scratch.h"

static struct err err;
static struct run_result *res;
static struct run_options o;

static const char *plan_name(void)
{
	return scratch_path("t.plan");
}

static const char *dir_name(void)
{
	return scratch_path("tree");
}

static int setup(void **state)
{
	char command[8192];

	(void)state;
	snprintf(command, sizeof(command), "rm -rf '%s' && mkdir '%s'", dir_name(), dir_name());
	o = (struct run_options){ .speed = RUN_AFAP };
	res = NULL;
	return system(command);
}

static int teardown(void **state)
{
	char command[8192];

	(void)state;
	run_result_free(res);
	snprintf(command, sizeof(command), "rm -rf '%s'", dir_name());
	return system(command);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static void perform_watched(const struct run_watcher *w)
{
	const char *plan = plan_name();

	run_result_free(res);
	res = NULL;
	if (run_perform(&plan, 1, dir_name(), &o, w, &res, &err) < 0)
		fail_msg("%s", err.text);
}

static void perform(void)
{
	perform_watched(NULL);
	if (res->status < 0)
		fail_msg("%s", res->err.text);
}

static void perform_text(const char *text)
{
	plan_from_text(plan_name(), 16, text);
	perform();
}

/* Nothing was other than recorded. */
static void assert_no_mismatch(void)
{
	assert_int_equal(res->end, RUN_COMPLETE);
	if (res->nr_mismatches)
		fail_msg("#%llu: %s", (unsigned long long)res->mismatches[0].seq,
			 run_mismatch_words[res->mismatches[0].kind]);
}

#endif
