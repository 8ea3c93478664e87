/* SPDX-License-Identifier: MIT */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "model.h"

#define MIB (1u << 20)

/* A server whose times are easy to add up: 10 ns a request, and 1 ns for each MiB of way. */
static const struct model_params plain = { .size_bytes = 1024 * MIB,
					   .nr_servers = 1,
					   .stripe_bytes = MIB,
					   .queue_depth = 4,
					   .read_ns = 10,
					   .write_ns = 20,
					   .flush_ns = 5,
					   .scale = 1 };

static void expect_done(struct model *m, uint64_t now_ns, uint64_t tag, uint64_t done_ns)
{
	uint64_t got_tag = 0, got_ns = 0;

	assert_true(model_take_done(m, now_ns, &got_tag, &got_ns));
	assert_int_equal(got_tag, tag);
	assert_int_equal(got_ns, done_ns);
}

static void expect_none(struct model *m, uint64_t now_ns, uint64_t next_ns)
{
	uint64_t tag, ns;

	assert_false(model_take_done(m, now_ns, &tag, &ns));
	assert_int_equal(model_next_ns(m), next_ns);
}

static void test_clock(void **state)
{
	struct model m;

	(void)state;
	model_init(&m, &plain);
	expect_none(&m, 1000, UINT64_MAX);
	model_submit(&m, MODEL_READ, 0, 4096, 100, 1);
	model_submit(&m, MODEL_WRITE, 8 * MIB, 4096, 105, 2);
	expect_none(&m, 105, 110);
	/* Looked at late: the second began when the first was done, not now. */
	expect_done(&m, 500, 1, 110);
	expect_done(&m, 500, 2, 130);
	model_submit(&m, MODEL_READ, 0, 4096, 500, 3);
	expect_done(&m, 510, 3, 510);
	expect_none(&m, 600, UINT64_MAX);
	assert_int_equal(m.nr_pending, 0);
	model_release(&m);
}

static void test_nearest(void **state)
{
	struct model_params p = plain;
	struct model m;

	(void)state;
	p.queue = MODEL_QUEUE_NEAREST;
	p.seek_max_ns = 1000;
	p.read_ns = 0;
	model_init(&m, &p);
	model_submit(&m, MODEL_READ, 0, 4096, 0, 1);
	model_submit(&m, MODEL_READ, 900 * MIB, 4096, 0, 2);
	model_submit(&m, MODEL_READ, 4096, 4096, 0, 3); /* right behind the first */
	model_submit(&m, MODEL_FLUSH, 0, 0, 0, 4);
	model_submit(&m, MODEL_READ, 8192, 4096, 0, 5); /* nearer than 2, but behind the flush */
	expect_done(&m, 0, 1, 0);
	expect_done(&m, 0, 3, 0);
	expect_done(&m, 2000, 2, 937); /* 1000 * sqrt((900 MiB - 8 KiB) / 1 GiB) */
	expect_done(&m, 2000, 4, 942);
	expect_done(&m, 3000, 5, 942 + 937);
	model_release(&m);
}

static void test_nearest_knows_no_future(void **state)
{
	struct model_params p = plain;
	struct model m;

	(void)state;
	p.queue = MODEL_QUEUE_NEAREST;
	p.seek_max_ns = 1000;
	model_init(&m, &p);
	model_submit(&m, MODEL_READ, 0, 4096, 0, 1); /* until 10 */
	model_submit(&m, MODEL_READ, 512 * MIB, 4096, 5, 2);
	model_submit(&m, MODEL_READ, 4096, 4096, 11, 3); /* nearer, but came too late */
	expect_done(&m, 5000, 1, 10);
	expect_done(&m, 5000, 2, 10 + 10 + 707);
	model_release(&m);
}

static void test_stripes(void **state)
{
	struct model_params p = plain;
	struct model m;

	(void)state;
	p.nr_servers = 2;
	p.bytes_per_s = UINT64_C(1000000000) * MIB; /* 1 ns each MiB */
	model_init(&m, &p);
	model_submit(&m, MODEL_READ, 0, 4 * MIB, 0, 1); /* two MiB of each */
	model_submit(&m, MODEL_READ, MIB, MIB, 0, 2); /* of the second */
	model_submit(&m, MODEL_FLUSH, 0, 0, 0, 3);
	expect_done(&m, 1000, 1, 12);
	expect_done(&m, 1000, 2, 23);
	expect_done(&m, 1000, 3, 28);
	assert_int_equal(m.servers[0].busy_ns, 12 + 5);
	model_release(&m);
}

/* Whatever comes: all is answered once, never before it came, and not all at once. */
static void test_random(void **state)
{
	enum { NR = 20000 };
	struct model_params p = plain;
	bool *seen = calloc(NR, sizeof(*seen));
	uint64_t now_ns = 0, tag, ns, last_ns = 0, i, nr_done = 0;
	uint64_t *arrival_ns = calloc(NR, sizeof(*arrival_ns));
	struct model m;

	(void)state;
	srandom(1);
	p.nr_servers = 3;
	p.queue = MODEL_QUEUE_NEAREST;
	p.seek_max_ns = 100;
	p.rotation_ns = 50;
	p.track_bytes = MIB;
	model_init(&m, &p);
	for (i = 0; i < NR || m.nr_pending;) {
		now_ns += (uint64_t)random() % 40;
		if (i < NR) {
			arrival_ns[i] = now_ns;
			model_submit(&m, (enum model_op)(random() % 3),
				     (uint64_t)random() % (1000 * MIB),
				     (uint64_t)random() % (8 * MIB), now_ns, i);
			i++;
		}
		while (model_take_done(&m, now_ns, &tag, &ns)) {
			assert_true(tag < i && !seen[tag]);
			assert_true(ns >= arrival_ns[tag] && ns <= now_ns && ns >= last_ns);
			seen[tag] = true;
			last_ns = ns;
			nr_done++;
		}
	}
	assert_int_equal(nr_done, NR);
	assert_true(m.requests.len < NR);
	model_release(&m);
	free(seen);
	free(arrival_ns);
}

static int read_text(const char *text, struct model_params *ret, struct err *err)
{
	char path[] = "/tmp/model.XXXXXX";
	int fd = mkstemp(path), r;

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), strlen(text));
	close(fd);
	r = model_params_read(path, ret, err);
	unlink(path);
	return r;
}

static void test_params(void **state)
{
	static const char *const wrong[] = {
		"",
		"size 5",
		"size 1G\nservers 0",
		"size 1G\nservers 65",
		"size 1G\nqueue lifo",
		"size 1G\nwhat 1",
		"size 1G\nscale -1",
		"size 1G\nseek_min 2ms",
		"size 1G 2G",
		"size",
		"size 1G\nrotation 1ms",
		"size 1G\ndepth 0",
		"size 1G\nread 10000000s",
	};
	struct model_params p;
	struct err err;
	size_t i;

	(void)state;
	assert_int_equal(
		read_text("# nothing\n\n size 1G # bytes\nservers\t2\nscale 0.5\nread 3us\n"
			  "queue nearest\n",
			  &p, &err),
		0);
	assert_int_equal(p.size_bytes, 1024 * MIB);
	assert_int_equal(p.nr_servers, 2);
	assert_int_equal(p.read_ns, 3000);
	assert_int_equal(p.queue, MODEL_QUEUE_NEAREST);
	for (i = 0; i < ARRAY_LEN(wrong); i++)
		assert_int_not_equal(read_text(wrong[i], &p, &err), 0);
	assert_int_equal(model_params_read("/nowhere", &p, &err), -ENOENT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_clock),
		cmocka_unit_test(test_nearest),
		cmocka_unit_test(test_nearest_knows_no_future),
		cmocka_unit_test(test_stripes),
		cmocka_unit_test(test_random),
		cmocka_unit_test(test_params),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
