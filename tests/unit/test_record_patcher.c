/* SPDX-License-Identifier: MIT */
/* What is written into a process: it is our own, in a text that nobody runs in. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "record/agent/patcher.h"

#define TEXT_BYTES (64u * 4096u)
/* mov $7, %eax; syscall */
static const uint8_t code[] = { 0xb8, 7, 0, 0, 0, 0x0f, 0x05 };
#define WINDOW_BYTES 5u

struct rig {
	struct agent agent;
	struct tracer tracer;
	struct tracee tracee;
	struct agent_thread thread;
	struct agent_space space;
	uint8_t *text; /* behind it the stubs */
};

static struct rig *rig_open(void)
{
	struct rig *g = calloc(1, sizeof(*g));

	assert_non_null(g);
	g->text = mmap(NULL, TEXT_BYTES + AREA_BYTES_OF_STUBS, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	assert_true(g->text != MAP_FAILED);
	memset(g->text, 0x90, TEXT_BYTES);
	g->tracer.agent = &g->agent;
	g->tracee.tid = g->tracee.pid = getpid();
	g->tracee.agent = &g->thread;
	g->thread.space = &g->space;
	g->space.nr_threads = 1;
	agent_add_area(&g->space, (uint64_t)(uintptr_t)g->text + TEXT_BYTES);
	return g;
}

static void rig_close(struct rig *g)
{
	assert_int_equal(munmap(g->text, TEXT_BYTES + AREA_BYTES_OF_STUBS), 0);
	free(g);
}

/* Sites every so many bytes from there on, also across the ends of pages. */
static size_t put_sites(struct rig *g, size_t from, size_t step, size_t most, struct site *ret)
{
	size_t at, nr = 0;

	for (at = from; nr < most && at + sizeof(code) <= TEXT_BYTES; at += step) {
		ret[nr] = (struct site){ .window = at,
					 .syscall = at + WINDOW_BYTES,
					 .nr = 7,
					 .nr_insns = 1,
					 .window_bytes = WINDOW_BYTES,
					 .insns = { { .len_bytes = WINDOW_BYTES,
						      .kind = INSN_PLAIN } } };
		memcpy(g->text + at, code, sizeof(code));
		memcpy(ret[nr++].bytes, code, WINDOW_BYTES);
	}
	assert_int_equal(mprotect(g->text, TEXT_BYTES, PROT_READ | PROT_EXEC), 0);
	return nr;
}

static void check_jump(const struct rig *g, const struct site *s)
{
	const uint8_t *window = g->text + s->window, *target;
	uint8_t stub[SITE_STUB_MAX_BYTES];
	int32_t distance;
	size_t len;

	assert_int_equal(window[0], 0xe9);
	memcpy(&distance, window + 1, sizeof(distance));
	target = window + SITE_JUMP_BYTES + distance;
	assert_true(target >= g->text + TEXT_BYTES &&
		    target < g->text + TEXT_BYTES + AREA_BYTES_OF_STUBS);
	len = site_put_stub(s, (uint64_t)(uintptr_t)(g->text + s->syscall),
			    (uint64_t)(uintptr_t)target, (uint32_t)outlive_entry(&g->agent), stub);
	assert_memory_equal(target, stub, len);
	assert_memory_equal(g->text + s->syscall, code + WINDOW_BYTES, 2);
}

static void check_rest(struct rig *g, const struct site *sites, size_t nr)
{
	size_t i;

	assert_int_equal(mprotect(g->text, TEXT_BYTES, PROT_READ | PROT_WRITE), 0);
	for (i = 0; i < nr; i++)
		memset(g->text + sites[i].window, 0x90, sizeof(code));
	for (i = 0; i < TEXT_BYTES; i++)
		assert_int_equal(g->text[i], 0x90);
}

#define SITES_MAX 512u

static void patch(struct rig *g, const struct site *sites, size_t nr)
{
	struct patcher p;
	size_t i;

	patcher_open(&p, &g->tracer, &g->tracee, 0);
	for (i = 0; i < nr; i++)
		assert_true(patcher_change(&p, &sites[i],
					   (uint64_t)(uintptr_t)(g->text + sites[i].syscall)));
	patcher_close(&p);
}

/* Few and many in a page, more than are gathered, and across the ends of pages. */
static void changes_all(void **state)
{
	static const size_t steps[] = { 7, 64, 409, 1001, 4093, 8191 };
	struct site *sites = calloc(SITES_MAX, sizeof(*sites));
	size_t i, k, nr;

	(void)state;
	assert_non_null(sites);
	for (i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
		struct rig *g = rig_open();

		nr = put_sites(g, i, steps[i], SITES_MAX, sites);
		patch(g, sites, nr);
		for (k = 0; k < nr; k++)
			check_jump(g, &sites[k]);
		check_rest(g, sites, nr);
		rig_close(g);
	}
	free(sites);
}

/* What is not what the file had stays, and so does what cannot be read. */
static void changes_only_what_it_knows(void **state)
{
	struct site sites[8];
	struct rig *g = rig_open();
	size_t nr = put_sites(g, 100, 4096, 8, sites), i;

	(void)state;
	sites[2].bytes[1] = 8;
	assert_int_equal(mprotect(g->text + 5 * 4096, 4096, PROT_NONE), 0);
	patch(g, sites, nr);
	assert_int_equal(mprotect(g->text, TEXT_BYTES, PROT_READ), 0);
	assert_memory_equal(g->text + sites[2].window, code, sizeof(code));
	for (i = 0; i < nr; i++) {
		if (i != 2 && g->text[sites[i].window] != code[0])
			check_jump(g, &sites[i]);
		else
			assert_true(i == 2 || i == 5);
	}
	/* Once more: nothing is changed twice. */
	patch(g, sites, 1);
	check_jump(g, &sites[0]);
	rig_close(g);
}

/* Nothing to be done, nothing opened: also of a process that is gone. */
static void needs_no_process_for_nothing(void **state)
{
	struct rig *g = rig_open();
	struct patcher p;

	(void)state;
	g->tracee.tid = g->tracee.pid = INT32_MAX; /* nobody has that number */
	patcher_open(&p, &g->tracer, &g->tracee, 0);
	patcher_close(&p);
	rig_close(g);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(changes_all),
		cmocka_unit_test(changes_only_what_it_knows),
		cmocka_unit_test(needs_no_process_for_nothing),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
