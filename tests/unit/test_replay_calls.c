/* SPDX-License-Identifier: MIT */
/*
 * What `reprise calls` says of each row is what a replay does. A child that may
 * make no call without our notice has the engine perform an action of the row:
 * rows that are made again come to the kernel, rows that are not do not.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <ucontext.h>
#include <unistd.h>

#include "base/banned.h"
#include "replay/calls.h"
#include "replay/flight.h"

#define MADE_MIN 130

/* A sanitizer makes calls of its own, which must not fail. */
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) ||                         \
	__has_feature(memory_sanitizer)
#define SANITIZED 1
#endif
#endif
#ifndef SANITIZED
#define SANITIZED 0
#endif

/* Rows that have a function of their own and come to the kernel by other ones, or not at all. */
static const struct {
	uint16_t id;
	const char *why;
} others[] = {
	{ SC_close_range, "what it closes are actions of the plan" },
	{ SC_open_by_handle_at, "compiled to an open by name" },
	{ SC_exit, "its lane goes on" },
	{ SC_exit_group, "its lane goes on" },
	{ SC_io_cancel, "whether it comes in time is luck" },
	{ SC_aio_error, "it is done: aio of macOS is made at once" },
	{ SC_aio_return, "likewise" },
	{ SC_aio_suspend, "likewise" },
	{ SC_io_submit, "needs a context: tests/cli/replay.sh" },
	{ SC_io_destroy, "needs a context: tests/cli/replay.sh" },
	{ SC_io_getevents, "needs a context: tests/cli/replay.sh" },
	{ SC_io_pgetevents, "needs a context: tests/cli/replay.sh" },
	{ SC_io_uring_enter, "needs a ring: tests/cli/replay.sh" },
	{ SC_io_uring_register_files, "the ring of the run has none: slots stand for them" },
	{ SC_io_uring_register_files2, "likewise" },
	{ SC_io_uring_register_files_update, "likewise" },
	{ SC_io_uring_register_files_update2, "likewise" },
	{ SC_io_uring_unregister_files, "likewise" },
	{ SC_io_uring_register_buffers, "buffers are ordinary ones" },
	{ SC_io_uring_register_buffers2, "likewise" },
	{ SC_io_uring_register_buffers_update, "likewise" },
	{ SC_io_uring_unregister_buffers, "likewise" },
	{ SC_io_uring_register_clone_buffers, "likewise" },
	{ SC_io_uring_register_pbuf_ring, "likewise" },
	{ SC_io_uring_unregister_pbuf_ring, "likewise" },
	{ SC_io_uring_register_enable_rings, "the ring of the run is enabled" },
	{ SC_io_uring_register_resize_rings, "the ring of the run has its own size" },
	{ SC_io_uring_register_iowq_max_workers, "the ring of the run has its own workers" },
	{ SC_io_uring_register_ring_fds, "the ring of the run has its own name" },
	{ SC_io_uring_unregister_ring_fds, "likewise" },
	{ SC_io_uring_register_file_alloc_range, "the ring of the run has no files" },
};

/* What the child tells. */
struct report {
	volatile uint32_t nr_calls;
	volatile uint32_t wanted_seen;
	volatile int32_t wanted; /* number of the call that is expected */
	volatile uint32_t came_back;
};

static struct report *report;

static const char *why_other(unsigned int id)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(others); i++)
		if (others[i].id == id)
			return others[i].why;
	return NULL;
}

static void on_call(int signo, siginfo_t *info, void *context)
{
	(void)signo;
	(void)context;
	report->nr_calls++;
	if (info->si_syscall == report->wanted)
		report->wanted_seen = 1;
}

/* From here on only the ends of signal handlers and of the process come through. */
static void shut(void)
{
	struct sock_filter filter[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_rt_sigreturn, 1, 0),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_exit_group, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRAP),
	};
	struct sock_fprog program = { ARRAY_LEN(filter), filter };
	struct sigaction sa = { .sa_sigaction = on_call, .sa_flags = SA_SIGINFO | SA_NODEFER };

	if (sigaction(SIGSYS, &sa, NULL) < 0 || prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
		_exit(77);
}

static void perform(const struct row *row, call_fn fn)
{
	static struct slot slots[8];
	static _Alignas(4096) uint8_t memory[8][4096];
	static struct run_options o;
	static struct run_result res;
	static struct run run = { .o = &o,
				  .res = &res,
				  .slots = slots,
				  .nr_slots = 8,
				  .budget = { .limit_bytes = UINT64_MAX },
				  .memory_fd = -1 };
	static struct lane l = { .run = &run };
	static struct requests requests;
	struct ready a = {
		.row_id = row->id, .slots = { 1, 2 }, .expected = { .ret = 1 }, .extra = &requests
	};
	static struct patch patches[2];
	struct outcome out;
	int i;

	run.null_fd = run.fds_fd = run.drop_fd = 0;
	run.filler = memory[7];
	run.filler_bytes = sizeof(memory[7]);
	for (i = 0; i < 8; i++) {
		slots[i].addr = (uint64_t)(uintptr_t)memory[6];
		slots[i].len_bytes = sizeof(memory[6]);
	}
	for (i = 0; i < 6 && i < row->nr_args; i++)
		if (!kind_infos[row->args[i].kind].width_bytes)
			a.regs[i] = (uint64_t)(uintptr_t)memory[i];
	if (row->id == SC_ioprio_set)
		a.regs[0] = 1; /* of a thread */
	if (row->id == SC_mac_fcntl_rdadvise)
		a.regs[2] = 1; /* a length */
	if (row->id == SC_mac_fcntl_preallocate)
		a.regs[3] = 1; /* likewise */
	if (row->nr_args && row->args[0].kind == KIND_ADDR)
		a.regs[0] = (uint64_t)(uintptr_t)memory[6];
	patches[0] = (struct patch){ .where = &a.regs[0], .slot = 3 };
	patches[1] = (struct patch){ .where = &a.regs[1], .slot = 4 };
	a.patches = patches;
	a.nr_patches = 2;
	a.nr = report->wanted;
	if (row->id == SC_io_setup || row->id == SC_io_uring_setup)
		a.extra = flight_new(&run);
	shut();
	fn(&l, &a, &out);
	report->came_back = 1;
}

/* The kernel's number of the row's call, or of what it is a variant of; -1: none here. */
static int number_of(const struct row *row)
{
	const struct row_variant *v = row_variant_of(row);

	return row_nr(calls_arch(), v ? row_by_id(v->base) : row);
}

static bool run_child(const struct row *row, call_fn fn)
{
	int status;
	pid_t pid;

	*report = (struct report){ .wanted = number_of(row) };
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		perform(row, fn);
		_exit(0);
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFEXITED(status) && WEXITSTATUS(status) == 77)
		return false;
	if (!report->came_back && !report->nr_calls)
		fail_msg("%s: neither a call nor an end (%x)", row->name, (unsigned int)status);
	return true;
}

static unsigned int nr_wrong;

static void wrong(const struct row *row, const char *what)
{
	print_message("%s %s\n", row->name, what);
	nr_wrong++;
}

static bool says_made(const struct row *row)
{
	return row->replay == SUPPORT_GENERIC || row->replay == SUPPORT_SPECIAL;
}

/* Who is to make it, as far as the table has a say. */
static void test_functions(void **state)
{
	(void)state;
	for (unsigned int id = 0; id < ROW_ID_MAX; id++) {
		const struct row *row = row_by_id(id);
		call_fn fn = row && row->sort == ROW_CALL ? engine_sys.find(row) : NULL;

		if (!row || row->sort != ROW_CALL)
			continue;
		if (!fn != !says_made(row))
			fail_msg("%s: the table says %s", row->name,
				 says_made(row) ? "made" : "not made");
		if (fn && row->replay == SUPPORT_GENERIC && fn != call_generic && fn != call_read)
			fail_msg("%s is not generic", row->name);
	}
}

static void test_rows(void **state)
{
	unsigned int id, nr_made = 0;

	(void)state;
	if (SANITIZED) {
		print_message("# a sanitizer needs calls of its own\n");
		skip();
	}
	for (id = 0; id < ROW_ID_MAX; id++) {
		const struct row *row = row_by_id(id);
		call_fn fn;

		if (!row || row->sort != ROW_CALL)
			continue;
		fn = engine_sys.find(row);
		if (!fn)
			continue;
		if (row->replay == SUPPORT_GENERIC && number_of(row) < 0)
			continue; /* of another machine */
		if (!run_child(row, fn)) {
			print_message("# no seccomp here\n");
			skip();
		}
		if (why_other(id)) {
			if (report->nr_calls)
				wrong(row, "is made after all");
			continue;
		}
		if (!report->nr_calls)
			wrong(row, "comes to no call");
		if (row->replay == SUPPORT_GENERIC && !report->wanted_seen)
			fail_msg("%s comes to another call", row->name);
		nr_made += number_of(row) >= 0;
	}
	assert_int_equal(nr_wrong, 0);
	print_message("# %u calls of this kernel are made\n", nr_made);
	assert_true(nr_made >= MADE_MIN);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_functions),
		cmocka_unit_test(test_rows),
	};

	report = mmap(NULL, sizeof(*report), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1,
		      0);
	if (report == MAP_FAILED)
		return 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
