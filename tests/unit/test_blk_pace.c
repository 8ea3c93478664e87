/* SPDX-License-Identifier: MIT */
/*
 * A submitter at a device that completes requests only when it is waited for, as many as it is
 * waited for: what it waits for, and how much it has in flight.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <stdlib.h>

#include "base/mem.h"
#include "replay/blk_inside.h"

#define NR 1000

struct device {
	uint64_t flying[NR]; /* indices, a queue */
	uint64_t nr_put, nr_taken, nr_complete;
	uint64_t in_flight_max;
	unsigned int asked_most; /* what wait() was asked for */
	uint64_t nr_submits;
	uint64_t nr_unsubmitted;
	uint32_t target; /* of those */
	bool mixed; /* two of them were to different targets */
};

static int device_open(struct blk_port *p, struct err *err)
{
	(void)p;
	(void)err;
	return 0;
}

static void device_close(struct blk_port *p)
{
	(void)p;
}

static void device_put(struct blk_port *p, const struct blk_slot *s, uint64_t index)
{
	struct device *d = p->state;

	assert_true(d->nr_put < NR);
	d->mixed |= d->nr_unsubmitted && d->target != s->target;
	d->target = s->target;
	d->flying[d->nr_put++] = index;
	d->nr_unsubmitted++;
	if (d->nr_put - d->nr_complete > d->in_flight_max)
		d->in_flight_max = d->nr_put - d->nr_complete;
}

static int device_submit(struct blk_port *p, struct err *err)
{
	struct device *d = p->state;

	(void)err;
	d->nr_submits += d->nr_unsubmitted > 0;
	d->nr_unsubmitted = 0;
	return 0;
}

static unsigned int device_take(struct blk_port *p, struct blk_done *out, unsigned int max)
{
	struct device *d = p->state;
	unsigned int nr = 0;

	while (nr < max && d->nr_taken < d->nr_complete)
		out[nr++] = (struct blk_done){ d->flying[d->nr_taken++], 4096 };
	return nr;
}

static bool device_look(struct blk_port *p)
{
	const struct device *d = p->state;

	return d->nr_taken < d->nr_complete;
}

static void device_wait(struct blk_port *p, uint64_t ns, unsigned int nr, bool in_flight)
{
	struct device *d = p->state;

	(void)ns;
	(void)in_flight;
	assert_true(nr >= 1);
	if (nr > d->asked_most)
		d->asked_most = nr;
	assert_int_equal(d->nr_unsubmitted, 0);
	while (nr-- && d->nr_complete < d->nr_put)
		d->nr_complete++;
}

static const struct blk_engine device_engine = {
	.name = "device of a test",
	.open = device_open,
	.close = device_close,
	.put = device_put,
	.submit = device_submit,
	.take = device_take,
	.look = device_look,
	.wait = device_wait,
};

static bool never(void *arg)
{
	(void)arg;
	return false;
}

static void fill(struct blk_run *run, uint32_t traced, uint32_t nr_targets)
{
	struct blk_window *w = &run->window;
	struct blk_submitter *sub = run->submitters;

	w->slots = xcalloc(BLK_SLOTS, sizeof(*w->slots));
	sub->mine = xcalloc(BLK_SLOTS, sizeof(*sub->mine));
	for (uint64_t i = 0; i < NR; i++) {
		w->slots[i] = (struct blk_slot){ .op = BLK_READ,
						 .fate = BLK_MAKE,
						 .known_end = true,
						 .target = (uint32_t)(i / 5 % nr_targets),
						 .length_bytes = 4096,
						 .traced_in_flight = traced,
						 .traced_peak = traced };
		sub->mine[i] = i;
	}
	atomic_store(&w->loaded, NR);
	atomic_store(&sub->nr_mine, NR);
	atomic_store(&w->ended, true);
}

/* NR requests that are due at once, of which so many were in flight at a time. */
static void run_all(enum blk_mode mode, uint32_t traced, uint32_t nr_targets, struct device *d)
{
	struct blk_run_options o = { .mode = mode, .submitters = 1, .bundle_max = 64 };
	struct blk_run_watcher watcher = { .want_stop = never };
	struct blk_run_result res = { 0 };
	struct blk_submitter sub = { .port = { .engine = &device_engine, .state = d } };
	struct blk_run *run = xcalloc(1, sizeof(*run));
	struct err err = { 0 };

	*d = (struct device){ 0 };
	run->o = &o;
	run->watcher = &watcher;
	run->res = &res;
	run->depth = 128;
	run->nr_targets = nr_targets;
	run->nr_submitters = 1;
	run->submitters = &sub;
	run->ticker.base_ns = clock_monotonic_ns();
	sub.run = run;
	fill(run, traced, nr_targets);
	assert_int_equal(blk_pace(&sub, &err), 0);
	assert_int_equal(d->nr_taken, NR);
	assert_int_equal(atomic_load(&run->shared.nr_done), NR);
	assert_int_equal(sub.counts.in_flight_max, d->in_flight_max);
	free(sub.mine);
	free(run->window.slots);
	free(run);
}

/* Where many are in flight, room is made for several before the next are submitted, together. */
static void test_many_at_the_limit(void **state)
{
	struct device *d = xcalloc(1, sizeof(*d));

	(void)state;
	run_all(BLK_MODE_TIMED, 100, 1, d);
	assert_int_equal(d->in_flight_max, 128);
	assert_int_equal(d->asked_most, 16);
	assert_true(d->nr_submits <= 2 + NR / 16 + 1);
	run_all(BLK_MODE_AFAP, 100, 1, d);
	assert_int_equal(d->in_flight_max, 128);
	assert_int_equal(d->asked_most, 16);
	free(d);
}

/* Where few are, or the number matters, each is followed by the next at once. */
static void test_few_at_the_limit(void **state)
{
	struct device *d = xcalloc(1, sizeof(*d));

	(void)state;
	run_all(BLK_MODE_TIMED, 3, 1, d);
	assert_int_equal(d->in_flight_max, 8);
	assert_int_equal(d->asked_most, 1);
	run_all(BLK_MODE_LOAD, 100, 1, d);
	assert_int_equal(d->in_flight_max, 100);
	assert_int_equal(d->asked_most, 1);
	free(d);
}

/* What goes to several devices is submitted in pieces, each for one of them, in order. */
static void test_several_devices(void **state)
{
	struct device *d = xcalloc(1, sizeof(*d));

	(void)state;
	run_all(BLK_MODE_AFAP, 100, 3, d);
	assert_false(d->mixed);
	assert_true(d->nr_submits >= NR / 5);
	for (uint64_t i = 0; i < NR; i++)
		assert_int_equal(d->flying[i], i);
	free(d);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_many_at_the_limit),
		cmocka_unit_test(test_few_at_the_limit),
		cmocka_unit_test(test_several_devices),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
