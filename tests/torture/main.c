/* SPDX-License-Identifier: MIT */
#include "torture.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

struct count *counts;

static const struct {
	const char *name;
	long nr;
} calls[COUNT_MAX] = {
	[COUNT_pwrite64] = { "pwrite64", SYS_pwrite64 },
	[COUNT_preadv] = { "preadv", SYS_preadv },
	[COUNT_ftruncate] = { "ftruncate", SYS_ftruncate },
	[COUNT_fchmod] = { "fchmod", SYS_fchmod },
	[COUNT_mkdirat] = { "mkdirat", SYS_mkdirat },
	[COUNT_unlinkat] = { "unlinkat", SYS_unlinkat },
	[COUNT_SIGNALS] = { "signal", -1 },
};

void give_up(const char *fmt, ...)
{
	int error = errno;
	va_list ap;

	va_start(ap, fmt);
	fprintf(stderr, "torture: ");
	vfprintf(stderr, fmt, ap);
	fprintf(stderr, ": %s\n", strerror(error));
	va_end(ap);
	_exit(99);
}

long must(long r, const char *what)
{
	if (r < 0)
		give_up("%s", what);
	return r;
}

void counts_open(void)
{
	const char *path = getenv("TORTURE_COUNTS");
	size_t len = COUNT_MAX * sizeof(*counts);
	unsigned int i;
	int fd;

	if (!path)
		give_up("TORTURE_COUNTS is not set");
	fd = (int)must(open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0666), path);
	must(posix_fallocate(fd, 0, (off_t)len) ? -1 : 0, "posix_fallocate");
	counts = mmap(NULL, len, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (counts == MAP_FAILED)
		give_up("mmap");
	(void)close(fd);
	for (i = 0; i < COUNT_MAX; i++)
		memcpy(counts[i].name, calls[i].name, strlen(calls[i].name));
}

long (*make_call)(long nr, ...) = syscall;

long counted_call(enum counted what, long a, long b, long c, long d)
{
	long r;

	atomic_fetch_add_explicit(&counts[what].begun, 1, memory_order_relaxed);
	r = make_call(calls[what].nr, a, b, c, d);
	atomic_fetch_add_explicit(&counts[what].done, 1, memory_order_relaxed);
	return r;
}

/* Bytes that depend on all three, so that a mixed-up recording shows. */
static void fill(unsigned char *p, size_t len, unsigned int seed)
{
	size_t i;

	for (i = 0; i < len; i++)
		p[i] = (unsigned char)((seed * 2654435761u + i * 40503u) >> 11);
}

void some_calls(const char *file, unsigned int nr_rounds, unsigned int seed)
{
	int fd = (int)must(open(file, O_RDWR | O_CREAT | O_CLOEXEC, 0600), file);
	unsigned char out[400], in[2][100];
	char dir[64];
	unsigned int i;

	snprintf(dir, sizeof(dir), "%.40s.dir", file);
	for (i = 0; i < nr_rounds; i++) {
		size_t len = 1 + (seed + i * 37) % sizeof(out);
		struct iovec iov[2] = { { in[0], sizeof(in[0]) }, { in[1], sizeof(in[1]) } };

		fill(out, len, seed + i);
		must(counted_call(COUNT_pwrite64, fd, (long)out, (long)len, (long)i * 256),
		     "pwrite64");
		must(counted_call(COUNT_preadv, fd, (long)iov, 2, (long)i * 256), "preadv");
		if (i % 4 == 0)
			must(counted_call(COUNT_fchmod, fd, 0600 | (i & 8), 0, 0), "fchmod");
		if (i % 16 == 0) {
			must(counted_call(COUNT_ftruncate, fd, (long)i * 256 + (long)len, 0, 0),
			     "ftruncate");
			/* These may fail, and are recorded all the same. */
			(void)counted_call(COUNT_mkdirat, AT_FDCWD, (long)dir, 0700, 0);
			(void)counted_call(COUNT_unlinkat, AT_FDCWD, (long)dir, AT_REMOVEDIR, 0);
		}
	}
	(void)close(fd);
}

void exec_again(const char *mode, const char *arg)
{
	char name[] = "torture", mode_copy[32], arg_copy[32];
	char *argv[] = { name, mode_copy, arg_copy, NULL };

	snprintf(mode_copy, sizeof(mode_copy), "%s", mode);
	snprintf(arg_copy, sizeof(arg_copy), "%s", arg);
	execv("/proc/self/exe", argv);
	give_up("execv");
}

uint64_t now_ms(void)
{
	struct timespec ts;

	clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

static int mode_calls(int argc, char **argv)
{
	some_calls("calls", argc > 0 ? (unsigned int)strtoul(argv[0], NULL, 10) : 100, 1);
	return argc > 1 ? (int)strtol(argv[1], NULL, 10) : 0;
}

/* sizes N: writes of 1 KiB up to 1 MiB and down again, N times. */
static int mode_sizes(int argc, char **argv)
{
	static unsigned char out[1 << 20];
	unsigned int nr = argc > 0 ? (unsigned int)strtoul(argv[0], NULL, 10) : 3, i, at = 0;
	int fd = (int)must(open("sizes", O_RDWR | O_CREAT | O_CLOEXEC, 0600), "sizes");

	for (i = 0; i < nr * 21; i++) {
		size_t len = (size_t)1024 << (i % 21 < 11 ? i % 21 : 21 - i % 21);

		memset(out, (int)('a' + i % 26), len);
		memcpy(out, &"0123456789abcdef"[i % 8], 8);
		must(counted_call(COUNT_pwrite64, fd, (long)out, (long)len, (long)at), "pwrite64");
		at += (unsigned int)len;
	}
	return 0;
}

/* many N: so many writes, all over a small file. */
static int mode_many(int argc, char **argv)
{
	unsigned long nr = argc > 0 ? strtoul(argv[0], NULL, 10) : 1000000, i;
	int fd = (int)must(open("many", O_RDWR | O_CREAT | O_CLOEXEC, 0600), "many");

	for (i = 0; i < nr; i++)
		must(counted_call(COUNT_pwrite64, fd, (long)&i, sizeof(i), (long)(i % 4096) * 8),
		     "pwrite64");
	return 0;
}

static const struct {
	const char *name;
	mode_fn run;
} modes[] = {
	{ "calls", mode_calls },
	{ "many", mode_many },
	{ "sizes", mode_sizes },
	{ "threads", mode_threads },
	{ "exec-other", mode_exec_other },
	{ "exec-wakers", mode_exec_wakers },
	{ "exec-race", mode_exec_race },
	{ "leader-exits", mode_leader_exits },
	{ "serve", mode_serve },
	{ "patient", mode_patient },
	{ "moving", mode_moving },
	{ "moving-die", mode_moving_die },
#ifdef __x86_64__
	{ "own-gs", mode_own_gs },
	{ "little-stack", mode_little_stack },
	{ "dispatch", mode_dispatch },
	{ "interrupted", mode_interrupted },
	{ "step", mode_step },
#endif
	{ "masked-waits", mode_masked_waits },
	{ "ignored", mode_ignored },
#ifndef TORTURE_STATIC
	{ "reused-text", mode_reused_text },
#endif
	{ "limit-later", mode_limit_later },
	{ "growing-stack", mode_growing_stack },
	{ "served", mode_served },
	{ "guarded", mode_guarded },
	{ "filled", mode_filled },
	{ "crowd", mode_crowd },
	{ "shared-files", mode_shared_files },
	{ "unfilled", mode_unfilled },
	{ "processes", mode_processes },
	{ "bomb", mode_bomb },
	{ "vfork", mode_vfork },
	{ "daemon", mode_daemon },
	{ "family", mode_family },
	{ "cpus", mode_cpus },
	{ "cpus-exec", mode_cpus_exec },
	{ "close-all", mode_close_all },
	{ "chroot", mode_chroot },
	{ "drop-rights", mode_drop_rights },
	{ "no-dump", mode_no_dump },
	{ "limit-memory", mode_limit_memory },
	{ "seccomp", mode_seccomp },
	{ "seccomp-all", mode_seccomp_all },
	{ "int80", mode_int80 },
	{ "made-code", mode_made_code },
	{ "no-counter", mode_no_counter },
	{ "trace-me", mode_trace_me },
	{ "huge", mode_huge },
	{ "block-signals", mode_block_signals },
	{ "timer", mode_timer },
	{ "search", mode_search },
	{ "searches", mode_searches },
	{ "die", mode_die },
	{ "loop", mode_loop },
	{ "handle", mode_handle },
};

int main(int argc, char **argv)
{
	unsigned int i;

	if (argc < 2) {
		fprintf(stderr, "usage: torture MODE [ARGUMENT...]\n");
		return 99;
	}
	for (i = 0; i < sizeof(modes) / sizeof(modes[0]); i++) {
		if (!strcmp(argv[1], modes[i].name)) {
			counts_open();
			return modes[i].run(argc - 2, argv + 2);
		}
	}
	errno = EINVAL;
	give_up("mode %s", argv[1]);
}
