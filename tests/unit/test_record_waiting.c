/* SPDX-License-Identifier: MIT */
/* How long the recorder leaves rings alone, at invented times. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <signal.h>

#include "base/clock.h"
#include "record/ptrace/waiting.h"

#define US NS_PER_US
#define KIB UINT64_C(1024)

/* After a look with so much, in us; beyond all reason: for ever. */
static uint64_t pause_us(const struct waiting *w)
{
	uint64_t us;

	for (us = 0; us < 1000000 && !waiting_must_look(w, w->looked_ns + us * US); us += 50)
		;
	return us;
}

static void pauses_grow_while_nothing_comes(void **state)
{
	struct waiting w = { 0 };
	uint64_t now_ns = NS_PER_S, before_us = 0, i;

	(void)state;
	for (i = 0; i < 6; i++) {
		waiting_note_rings(&w, 0, now_ns);
		assert_true(pause_us(&w) > before_us);
		before_us = pause_us(&w);
		now_ns += before_us * US;
	}
	waiting_note_rings(&w, 512 * KIB, now_ns);
	assert_true(pause_us(&w) < before_us);
}

/* Looks that follow each other at once find little each, and yet much comes. */
static void a_rush_makes_no_pause_longer(void **state)
{
	struct waiting w = { 0 };
	uint64_t now_ns = NS_PER_S, before_us, i;

	(void)state;
	waiting_note_rings(&w, 0, now_ns);
	before_us = pause_us(&w);
	for (i = 0; i < 20; i++) {
		now_ns += 20 * US;
		waiting_note_rings(&w, 20 * KIB, now_ns);
		assert_true(waiting_is_rushed(&w, 20 * KIB));
	}
	assert_int_equal(pause_us(&w), before_us);
}

/* In a flood we stay awake, however little a look finds, and no longer than it lasts. */
static void a_flood_keeps_us_awake(void **state)
{
	struct waiting w = { 0 };
	uint64_t now_ns = NS_PER_S, i;

	(void)state;
	waiting_note_rings(&w, 0, now_ns);
	for (i = 0; i < 50; i++) {
		now_ns += 10 * US;
		waiting_note_rings(&w, 40 * KIB, now_ns);
	}
	assert_true(waiting_is_rushed(&w, 0));
	for (i = 0; i < 50; i++) {
		now_ns += 10 * US;
		waiting_note_rings(&w, KIB, now_ns);
	}
	assert_false(waiting_is_rushed(&w, 0));
	/* As much, but in a long time. */
	waiting_note_rings(&w, 400 * KIB, now_ns + NS_PER_S);
	assert_false(waiting_is_rushed(&w, 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(pauses_grow_while_nothing_comes),
		cmocka_unit_test(a_rush_makes_no_pause_longer),
		cmocka_unit_test(a_flood_keeps_us_awake),
	};

	/* Who stays awake sets a timer that is seldom; it may come here. */
	(void)signal(SIGALRM, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
