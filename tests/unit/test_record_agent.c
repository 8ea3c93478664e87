/* SPDX-License-Identifier: MIT */
/* The agent's host side: decoding, sites, stubs, rules, rings and time. What is taken from rings: test_record_rings.c. */
#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <x86intrin.h>

#include <cmocka.h>

#include "base/clock.h"
#include "record/agent/inside.h"
#include "record/agent/rules.h"
#include "record/agent/sites.h"
#include "record/agent/ticks.h"
#include "record/capture_inside.h"

static const struct wire_rule *rule_for(const struct wire_rule *rules, unsigned int nr,
					const uint64_t regs[6])
{
	const struct wire_rule *r = &rules[nr];

	while ((regs[r->select_reg] & r->select_mask) != r->select_value) {
		if (!r->next)
			return NULL;
		r = &rules[r->next];
	}
	return r;
}

static bool wants_none(void *of, const char *path)
{
	(void)of;
	(void)path;
	return false;
}

/* With chosen paths: by the descriptor, without one, in any case, or by the tracer. */
static void rules_choose_paths(void **state)
{
	static const uint16_t by_fd[] = { SC_pread64, SC_write, SC_fsync, SC_lseek, SC_mmap };
	static const uint16_t pathless[] = { SC_brk, SC_munmap, SC_getrandom };
	static const uint16_t kept[] = { SC_futex, SC_getpid };
	static const uint16_t left[] = { SC_openat, SC_close,  SC_dup,	   SC_newfstatat,
					 SC_unlink, SC_socket, SC_sendfile };
	struct path_choice paths = { .wants = wants_none, .only = true };
	struct wire_rule *rules = calloc(WIRE_NR_RULES, sizeof(*rules));
	const struct wire_rule *r;
	size_t i;

	(void)state;
	rules_build(DATA_ALL, NULL, &paths, rules);
	for (i = 0; i < sizeof(by_fd) / sizeof(by_fd[0]); i++) {
		r = &rules[row_nr(ARCH_X86_64, row_by_id(by_fd[i]))];
		assert_true(r->flags & WIRE_RULE_CHOSEN && r->flags & WIRE_RULE_USED);
		assert_int_equal(r->file_from, by_fd[i] == SC_mmap ? 4 : 0);
	}
	for (i = 0; i < sizeof(pathless) / sizeof(pathless[0]); i++) {
		r = &rules[row_nr(ARCH_X86_64, row_by_id(pathless[i]))];
		assert_true(r->flags & WIRE_RULE_CHOSEN && r->flags & WIRE_RULE_PATHLESS);
		assert_int_equal(r->file_from, WIRE_FROM_NOTHING);
	}
	for (i = 0; i < sizeof(kept) / sizeof(kept[0]); i++)
		assert_false(rules[row_nr(ARCH_X86_64, row_by_id(kept[i]))].flags &
			     WIRE_RULE_CHOSEN);
	for (i = 0; i < sizeof(left) / sizeof(left[0]); i++)
		assert_false(
			rules_take(rules, (unsigned int)row_nr(ARCH_X86_64, row_by_id(left[i]))));
	assert_int_equal(rules[WIRE_EMPTY_RULE].flags, 0);
	assert_int_equal(rules[WIRE_EMPTY_RULE].nr_pieces, 0);
	/* Who may end descriptors is seen, since others may get their numbers. */
	assert_false(rules_take(rules, 3)); /* close */
	assert_false(rules_take(rules, 436)); /* close_range */
	free(rules);
}

/* For every call and variant the rule is that of the row that the recorder will find. */
static void rules_fit_rows(void **state)
{
	struct wire_rule *rules = calloc(WIRE_NR_RULES, sizeof(*rules));
	const struct path_choice all_paths = { 0 };
	unsigned int nr, id, nr_used = 0;

	(void)state;
	rules_build(DATA_ALL, NULL, &all_paths, rules);
	for (nr = 0; nr < WIRE_NR_CALLS; nr++) {
		const struct row *base = row_by_nr(ARCH_X86_64, nr);

		for (id = 1; base && id < ROW_ID_MAX; id++) {
			const struct row *row = row_by_id(id);
			const struct row_variant *v = row ? row_variant_of(row) : NULL;
			uint64_t regs[6] = { ~UINT64_C(0), ~UINT64_C(0), ~UINT64_C(0) };
			struct wire_rule want = { 0 };
			const struct wire_rule *r;

			if (!row || (row != base && (!v || v->base != base->id)))
				continue;
			if (v)
				regs[v->reg] = v->value;
			r = rule_for(rules, nr, regs);
			assert_non_null(r);
			(void)rules_for_row(row_select_variant(base, regs), DATA_ALL, &want);
			assert_int_equal(r->flags, want.flags);
			assert_true(rules_most_copies(r) <= WIRE_COPIES_MAX);
			assert_int_equal(r->nr_pieces, want.nr_pieces);
			assert_memory_equal(r->pieces, want.pieces, sizeof(want.pieces));
			nr_used += r->flags & WIRE_RULE_USED;
		}
	}
	assert_true(nr_used > 100);
	free(rules);
}

static void leaves_calls_to_the_tracer(void **state)
{
	static const uint16_t left[] = {
		SC_mkdir,
		SC_rmdir,
		SC_chmod,
		SC_execveat,
		SC_clone,
		SC_vfork,
		SC_wait4,
		SC_rt_sigreturn,
		SC_io_uring_enter,
		SC_seccomp,
		SC_prctl,
		SC_ptrace,
		SC_prctl_set_name,
		SC_exit_group,
		SC_chdir,
		SC_bind,
		SC_open_by_handle_at,
	};
	static const uint16_t taken[] = {
		SC_openat, SC_mmap,  SC_newfstatat, SC_read,	SC_pwrite64, SC_writev,
		SC_fsync,  SC_close, SC_lseek,	    SC_getppid, SC_getcwd,
	};
	static const uint16_t changing[] = {
		SC_fchmod,
		SC_fchown,
		SC_fsetxattr,
		SC_fremovexattr,
		SC_ioctl_fs_ioc_setflags,
		SC_ioctl_fs_ioc_fssetxattr,
		SC_ioctl,
	};
	static const uint16_t asking[] = {
		SC_fstat,     SC_fstatfs, SC_fgetxattr, SC_flistxattr, SC_ioctl_fs_ioc_getflags,
		SC_ftruncate,
	};
	static const uint16_t naming[] = { SC_open, SC_creat, SC_unlink, SC_unlinkat, SC_rename };
	struct wire_rule r = { 0 };
	size_t i;

	(void)state;
	for (i = 0; i < sizeof(left) / sizeof(left[0]); i++)
		assert_false(rules_for_row(row_by_id(left[i]), DATA_ALL, &r));
	for (i = 0; i < sizeof(taken) / sizeof(taken[0]); i++)
		assert_true(rules_for_row(row_by_id(taken[i]), DATA_ALL, &r));
	/* Only when their names are known. */
	for (i = 0; i < sizeof(naming) / sizeof(naming[0]); i++) {
		assert_true(rules_for_row(row_by_id(naming[i]), DATA_ALL, &r));
		assert_true(r.flags & WIRE_RULE_NAMES);
	}
	/* Only of directories that are known. */
	assert_true(rules_for_row(row_by_id(SC_getdents64), DATA_ALL, &r));
	assert_true(r.flags & WIRE_RULE_LISTED);
	/* Only by descriptors that show that the file is known. */
	for (i = 0; i < sizeof(changing) / sizeof(changing[0]); i++) {
		assert_true(rules_for_row(row_by_id(changing[i]), DATA_ALL, &r));
		assert_true(r.flags & WIRE_RULE_WRITABLE);
	}
	for (i = 0; i < sizeof(asking) / sizeof(asking[0]); i++) {
		assert_true(rules_for_row(row_by_id(asking[i]), DATA_ALL, &r));
		assert_false(r.flags & WIRE_RULE_WRITABLE);
	}
	/* Only if it is not made. */
	assert_true(rules_for_row(row_by_id(SC_execve), DATA_ALL, &r));
	assert_true(r.flags & WIRE_RULE_FAILS);
	/* Texts only from the loader, and by a descriptor. */
	assert_true(rules_for_row(row_by_id(SC_mmap), DATA_ALL, &r));
	assert_true(r.flags & WIRE_RULE_TEXT && r.flags & WIRE_RULE_FILE);
	assert_int_equal(r.file_from, 4);
}

/* What we have mapped ourselves, and where there is room. */
static void reads_maps(void **state)
{
	struct tracee self = { .tid = getpid() };
	uint64_t text = (uint64_t)(uintptr_t)reads_maps, gap;
	bool is_found = false;
	struct maps m;
	size_t i;

	(void)state;
	maps_read(&self, &m);
	assert_true(m.lines.len > 3);
	gap = maps_find_gap(&m, text);
	assert_true(gap && maps_are_near(gap, text));
	for (i = 0; i < m.lines.len; i++) {
		const struct map_line *l = &m.lines.items[i];

		assert_true(l->start < l->end && (!i || l[-1].end <= l->start));
		assert_true(gap + MAPS_GAP_BYTES <= l->start || gap >= l->end);
		if (text < l->start || text >= l->end)
			continue;
		is_found = true;
		assert_true(maps_is_text(l));
		assert_non_null(strstr(l->path, "test_record_agent"));
	}
	assert_true(is_found);
	maps_release(&m);
}

static void has_no_maps_of_nobody(void **state)
{
	struct tracee nobody = { .tid = INT32_MAX };
	struct maps m;

	(void)state;
	maps_read(&nobody, &m);
	assert_int_equal(m.lines.len, 0);
	assert_int_equal(maps_find_gap(&m, 0x400000), 0);
	maps_release(&m);
}

static int64_t nr_blocks_of(const struct agent_image *im)
{
	struct stat st;

	assert_int_equal(fstat(im->fd, &st), 0);
	return st.st_blocks;
}

/* Of records that were taken, and behind them of one that was begun. */
static const size_t used_places[] = { 4999, 5000 + 98000 };

/*
 * A program's memory is another one's later, without what was in it; but not if that was much.
 * To clear it takes no more of it.
 */
static void uses_memory_again(void **state)
{
	struct agent *a = calloc(1, sizeof(*a));
	struct agent_space space = { 0 };
	struct agent_thread at = { .space = &space, .slot = 1, .tail = 5000 };
	struct agent_image *im;
	uint8_t *memory;
	unsigned int turn, i;
	int64_t nr_blocks;

	(void)state;
	im = agent_new_image(a);
	assert_non_null(im);
	memory = im->shared;
	for (turn = 0; turn < 2; turn++) {
		space.image = im;
		at.block = agent_block_of(im, 1);
		at.ring_bytes = WIRE_RING_FIRST_BYTES * (1 + turn);
		for (i = 0; i < ARRAY_LEN(used_places); i++) {
			uint8_t *place = (uint8_t *)at.block + WIRE_BLOCK_BYTES + used_places[i];

			assert_int_equal(*place, 0);
			*place = 1;
		}
		at.block->nr = 1; /* it is always in use */
		nr_blocks = nr_blocks_of(im);
		agent_clear_slot(&at);
		assert_int_equal(nr_blocks_of(im), nr_blocks);
		agent_free_image(a, im);
		assert_int_equal(a->nr_spare, 1 - turn);
		im = agent_new_image(a);
		assert_non_null(im);
		assert_true(turn || im->shared == memory);
	}
	agent_free_image(a, im);
	agent_images_release(a);
	free(a);
}

/* A ring gets larger for what had no room in it, up to what suits such records, and is empty then. */
static void ring_grows(void **state)
{
	static const struct {
		uint64_t from, need, to;
		uint64_t taken; /* from it so far */
	} cases[] = {
		{ WIRE_RING_FIRST_BYTES, 0, WIRE_RING_FIRST_BYTES, 40 },
		{ WIRE_RING_FIRST_BYTES, 4096, 2 * WIRE_RING_FIRST_BYTES, 40 },
		{ WIRE_RING_FIRST_BYTES, WIRE_RECORD_MAX_BYTES, WIRE_RING_MOST_BYTES, 40 },
		{ WIRE_RING_CACHED_BYTES, 4096, WIRE_RING_CACHED_BYTES, 40 },
		{ WIRE_RING_CACHED_BYTES, WIRE_RECORD_LARGE_BYTES, 2 * WIRE_RING_CACHED_BYTES, 40 },
		{ WIRE_RING_MOST_BYTES, WIRE_RECORD_LARGE_BYTES, WIRE_RING_MOST_BYTES, 40 },
		{ WIRE_RING_MOST_BYTES, UINT64_MAX, WIRE_RING_MOST_BYTES, 40 },
		{ WIRE_RING_FIRST_BYTES, UINT64_MAX, WIRE_RING_MOST_BYTES, 40 },
		{ WIRE_RING_CACHED_BYTES, 4096, 2 * WIRE_RING_CACHED_BYTES, UINT64_C(1) << 30 },
		{ WIRE_RING_MOST_BYTES, 4096, WIRE_RING_MOST_BYTES, UINT64_C(1) << 30 },
	};
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(cases); i++) {
		struct wire_block b = { .ring_bytes = cases[i].from,
					.needed_bytes = cases[i].need };
		struct agent_thread at = { .block = &b,
					   .ring_bytes = cases[i].from,
					   .tail = cases[i].taken };

		b.head = b.call_head = b.tail = cases[i].taken;
		drain_grow_ring(&at);
		assert_int_equal(at.ring_bytes, cases[i].to);
		assert_int_equal(b.ring_bytes, cases[i].to);
		assert_int_equal(b.needed_bytes, 0);
		assert_int_equal(b.head, at.tail);
		assert_int_equal(b.tail, at.tail);
		/* What is not taken yet stays where it is. */
		b = (struct wire_block){ .ring_bytes = 4096, .needed_bytes = 9, .head = 48 };
		at = (struct agent_thread){ .block = &b, .ring_bytes = 4096, .tail = 40 };
		drain_grow_ring(&at);
		assert_int_equal(at.ring_bytes, 4096);
		assert_int_equal(b.head, 48);
	}
}

/* Only a ring that cannot grow is worth to wait for. */
static void waits_if_it_must(void **state)
{
	struct wire_block b = { .ring_bytes = WIRE_RING_FIRST_BYTES, .needed_bytes = 4096 };
	struct agent_thread at = { .block = &b, .ring_bytes = b.ring_bytes, .wait_ticks = 7 };

	(void)state;
	while (at.ring_bytes < WIRE_RING_CACHED_BYTES) {
		b.needed_bytes = 4096;
		drain_grow_ring(&at);
		assert_int_equal(b.wait_ticks, 0);
	}
	b.needed_bytes = 4096;
	drain_grow_ring(&at);
	assert_int_equal(b.wait_ticks, 7);
}

/* Of the agent itself, which runs here as it would there. */
int agent_enter(struct wire_block *b);
void agent_leave(struct wire_block *b);

#define NR_WAITING_CALLS 20000u

struct taker {
	struct wire_block *b;
	atomic_bool done;
};

/* Takes what is in the ring, again and again. */
static void *take_all(void *p)
{
	struct taker *t = p;

	while (!atomic_load(&t->done)) {
		__atomic_store_n(&t->b->tail, __atomic_load_n(&t->b->head, __ATOMIC_ACQUIRE),
				 __ATOMIC_RELEASE);
		(void)sched_yield();
	}
	return NULL;
}

static unsigned int make_calls(struct wire_block *b, unsigned int most)
{
	unsigned int nr;

	for (nr = 0; nr < most && agent_enter(b); nr++)
		agent_leave(b);
	return nr;
}

/* The agent makes its record when somebody makes room, and leaves the call alone if nobody does. */
static void waits_for_room(void **state)
{
	static uint8_t ring[8192] __attribute__((aligned(64)));
	static struct wire_rule rules[WIRE_NR_RULES] = { { .flags = WIRE_RULE_USED } };
	struct wire_block b = { .ring = (uint64_t)ring,
				.ring_bytes = sizeof(ring),
				.rules = (uint64_t)rules,
				.cpu_ticks = UINT64_MAX };
	struct taker t = { .b = &b };
	pthread_t taker;

	(void)state;
	assert_in_range(make_calls(&b, NR_WAITING_CALLS), 1, sizeof(ring) / 8);
	assert_int_not_equal(b.needed_bytes, 0);
	b.wait_ticks = 1000;
	assert_int_equal(make_calls(&b, NR_WAITING_CALLS), 0);
	b.wait_ticks = UINT64_MAX / 2;
	assert_int_equal(pthread_create(&taker, NULL, take_all, &t), 0);
	assert_int_equal(make_calls(&b, NR_WAITING_CALLS), NR_WAITING_CALLS);
	atomic_store(&t.done, true);
	assert_int_equal(pthread_join(taker, NULL), 0);
}

/* What the agent has copied from an address; NULL: nothing. */
static const void *find_copy(const uint8_t *ring, uint64_t addr, uint64_t *ret_len)
{
	struct wire_record rec;
	const uint8_t *at = ring + sizeof(rec);
	uint32_t i;

	memcpy(&rec, ring, sizeof(rec));
	for (i = 0; i < rec.nr_in; i++) {
		struct wire_copy c;

		memcpy(&c, at, sizeof(c));
		if (c.addr == addr) {
			*ret_len = c.len_bytes;
			return at + sizeof(c);
		}
		at += sizeof(c) + (c.len_bytes + 7) / 8 * 8;
	}
	return NULL;
}

static void expect_copy(const uint8_t *ring, const void *of, uint64_t len)
{
	uint64_t got = 0;
	const void *p = find_copy(ring, (uint64_t)(uintptr_t)of, &got);

	assert_non_null(p);
	assert_int_equal(got, len);
	assert_memory_equal(p, of, len);
}

#define NR_ACCESS 21
#define PAGE_BYTES 4096u

/* A string is as long as it is, wherever it stands, and nothing behind it is looked at. */
static void finds_ends_of_strings(void **state)
{
	static uint8_t ring[WIRE_RING_FIRST_BYTES] __attribute__((aligned(64)));
	struct wire_rule *rules = xcalloc(WIRE_NR_RULES, sizeof(*rules));
	struct wire_block b = { .ring = (uint64_t)ring,
				.ring_bytes = sizeof(ring),
				.rules = (uint64_t)rules,
				.cpu_ticks = UINT64_MAX,
				.nr = NR_ACCESS };
	char *memory = mmap(NULL, (size_t)4 * PAGE_BYTES, PROT_READ | PROT_WRITE,
			    MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct path_choice all = { 0 };
	unsigned int len, behind;

	(void)state;
	assert_ptr_not_equal(memory, MAP_FAILED);
	rules_build(DATA_ALL, NULL, &all, rules);
	assert_int_equal(mprotect(memory + (size_t)3 * PAGE_BYTES, PAGE_BYTES, PROT_NONE), 0);
	for (len = 0; len < 40; len++) {
		for (behind = 0; behind < 9; behind++) {
			char *s = memory + (size_t)3 * PAGE_BYTES - behind - len - 1;

			memset(memory, 0, (size_t)3 * PAGE_BYTES);
			memset(s, 0x80 + (int)len, len);
			memset(s + len + 1, 1, behind);
			b.regs[0] = (uint64_t)s;
			assert_int_equal(agent_enter(&b), 1);
			expect_copy(ring, s, len + 1);
		}
	}
	/* Of one that is too long, more than there may be. */
	memset(memory, 'x', (size_t)3 * PAGE_BYTES);
	for (len = 0; len < 9; len++) {
		b.regs[0] = (uint64_t)memory + len;
		assert_int_equal(agent_enter(&b), 1);
		expect_copy(ring, memory + len, CAPTURE_PATH_MAX + 1);
	}
	assert_int_equal(munmap(memory, (size_t)4 * PAGE_BYTES), 0);
	free(rules);
}

#define NR_EXECVE 59
enum { NOT_OURS, TO_BE_MADE, ANSWERED };

/* An execve of a file that is not there is answered, with all that it was given; all else is not for the agent. */
static void answers_searches(void **state)
{
	static uint8_t ring[WIRE_RING_FIRST_BYTES] __attribute__((aligned(64)));
	static char long_string[WIRE_STRINGS_MAX_BYTES];
	static const char *many[WIRE_STRINGS_MAX + 2];
	static const char name[] = "/no/such/program";
	const char *argv[] = { "a", "", "longer than the others", NULL }, *envp[] = { "E=1", NULL };
	const char *too_long[] = { long_string, NULL };
	struct wire_rule *rules = xcalloc(WIRE_NR_RULES, sizeof(*rules));
	struct path_choice all = { 0 };
	struct wire_block b = { .ring = (uint64_t)ring,
				.ring_bytes = sizeof(ring),
				.rules = (uint64_t)rules,
				.cpu_ticks = UINT64_MAX,
				.nr = NR_EXECVE,
				.regs = { (uint64_t)name, (uint64_t)argv, (uint64_t)envp } };
	unsigned int i;

	(void)state;
	rules_build(DATA_ALL, NULL, &all, rules);
	assert_int_equal(agent_enter(&b), ANSWERED);
	expect_copy(ring, name, sizeof(name));
	expect_copy(ring, argv, sizeof(argv));
	expect_copy(ring, envp, sizeof(envp));
	for (i = 0; argv[i]; i++)
		expect_copy(ring, argv[i], strlen(argv[i]) + 1);
	expect_copy(ring, envp[0], sizeof("E=1"));
	b.asks_kernel = 1;
	assert_int_equal(agent_enter(&b), NOT_OURS);
	b.asks_kernel = 0;
	b.off = 1;
	assert_int_equal(agent_enter(&b), NOT_OURS);
	b.off = 0;
	b.regs[0] = (uint64_t) "/proc/self/exe";
	assert_int_equal(agent_enter(&b), NOT_OURS);
	b.regs[0] = (uint64_t) "/proc/self/exe/none"; /* ENOTDIR */
	assert_int_equal(agent_enter(&b), NOT_OURS);
	b.regs[0] = (uint64_t) "";
	b.regs[1] = b.regs[2] = 0;
	assert_int_equal(agent_enter(&b), ANSWERED);
	/* What the kernel may find to be too much before it looks for the file. */
	memset(long_string, 'x', sizeof(long_string) - 1);
	b.regs[1] = (uint64_t)too_long;
	assert_int_equal(agent_enter(&b), NOT_OURS);
	for (i = 0; i < WIRE_STRINGS_MAX; i++)
		many[i] = "x";
	b.regs[1] = b.regs[2] = (uint64_t)many;
	assert_int_equal(agent_enter(&b), ANSWERED);
	many[i] = "x";
	assert_int_equal(agent_enter(&b), NOT_OURS);
	free(rules);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(reads_maps),
		cmocka_unit_test(has_no_maps_of_nobody),
		cmocka_unit_test(uses_memory_again),
		cmocka_unit_test(ring_grows),
		cmocka_unit_test(waits_if_it_must),
		cmocka_unit_test(waits_for_room),
		cmocka_unit_test(rules_choose_paths),
		cmocka_unit_test(rules_fit_rows),
		cmocka_unit_test(leaves_calls_to_the_tracer),
		cmocka_unit_test(finds_ends_of_strings),
		cmocka_unit_test(answers_searches),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
