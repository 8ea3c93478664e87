/* SPDX-License-Identifier: MIT */
/* Calls through the agent's own syscall instructions, which the seccomp filter exempts. */
#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hostile.h"

extern const uint8_t own_call[];
__asm__(".text\nown_call:\tsyscall\n\tret\n");

/* The instruction that makes the calls: the agent's, or our own if there is no agent. */
struct through {
	const uint8_t *insn, *ask;
	bool inside; /* insn is the one for recorded calls, not `ask` */
	struct wire_block *fake;
};

static struct through choose(const char *which)
{
	static uint8_t block[WIRE_BLOCK_BYTES] __attribute__((aligned(WIRE_BLOCK_BYTES)));
	static uint8_t ring[65536] __attribute__((aligned(4096)));
	struct agent_text text = agent_find();
	struct through t = { .inside = !strcmp(which, "call"), .fake = (struct wire_block *)block };

	if (!text.start || !agent_block())
		return t;
	t.ask = text.ask;
	t.insn = t.inside ? text.call : text.ask;
	agent_forge_block(t.fake, ring, sizeof(ring));
	return t;
}

static inline __attribute__((always_inline)) long make(const struct through *t, long nr, long a,
						       long b, long c, long d, long e)
{
	const long args[6] = { a, b, c, d, e, 0 };

	if (t->insn && t->inside)
		return call_inside(t->insn, t->fake, nr, args);
	return call_at(t->insn ? t->insn : own_call, nr, args);
}

/* probe: prints the address of the agent's text and the offsets of both instructions. */
int mode_probe(int argc, char **argv)
{
	struct agent_text text = agent_find();

	(void)argc;
	(void)argv;
	if (!text.start)
		return NO_AGENT;
	printf("%lx %lx %lx\n", (unsigned long)text.start, (unsigned long)(text.ask - text.start),
	       (unsigned long)(text.call - text.start));
	return 0;
}

static void end_child(long pid, const char *kind)
{
	if (pid < 0)
		fprintf(stderr, "%s: %s\n", kind, strerror((int)-pid));
	else
		(void)waitpid((pid_t)pid, NULL, 0);
}

/* Without a tracer the filter fails plain calls with ENOSYS; the agent's instruction still works. */
static void mark_as_can(const struct through *t, const char *name)
{
	const long args[6] = { AT_FDCWD, (long)name, O_CREAT | O_WRONLY, 0644 };

	mark(name);
	if (t->insn && access(name, F_OK))
		(void)call_at(t->ask, SYS_openat, args);
}

/* Each child creates a file. CLONE_UNTRACED hides a child from the tracer. */
static void make_copies(const struct through *t)
{
	struct clone_args how = { .flags = CLONE_UNTRACED, .exit_signal = SIGCHLD };
	long pid;

	pid = make(t, SYS_fork, 0, 0, 0, 0, 0);
	if (!pid) {
		mark_as_can(t, "by-fork");
		_exit(0);
	}
	end_child(pid, "fork");
	pid = make(t, SYS_vfork, 0, 0, 0, 0, 0);
	if (!pid) {
		mark_as_can(t, "by-vfork");
		_exit(0);
	}
	end_child(pid, "vfork");
	pid = make(t, SYS_clone, CLONE_UNTRACED | SIGCHLD, 0, 0, 0, 0);
	if (!pid) {
		mark_as_can(t, "by-clone");
		_exit(0);
	}
	end_child(pid, "clone");
	pid = make(t, SYS_clone3, (long)&how, sizeof(how), 0, 0, 0);
	if (!pid) {
		mark_as_can(t, "by-clone3");
		_exit(0);
	}
	end_child(pid, "clone3");
}

/* children ask|call */
int mode_children(int argc, char **argv)
{
	struct through t = choose(argc > 0 ? argv[0] : "");
	const char *self = "/proc/self/exe";
	const char *execve_argv[] = { "hostile", "mark", "execve", NULL };
	const char *execveat_argv[] = { "hostile", "mark", "execveat", NULL };
	pid_t pid;

	make_copies(&t);
	pid = fork();
	if (!pid) {
		(void)make(&t, SYS_execve, (long)self, (long)execve_argv, (long)environ, 0, 0);
		_exit(BROKEN);
	}
	end_child(pid, "execve");
	pid = fork();
	if (!pid) {
		(void)make(&t, SYS_execveat, AT_FDCWD, (long)self, (long)execveat_argv,
			   (long)environ, 0);
		_exit(BROKEN);
	}
	end_child(pid, "execveat");
	mark("by-parent");
	return t.insn ? 0 : NO_AGENT;
}

/* guarded ask|call: invalid variants of calls that could remove the tracer. */
int mode_guarded(int argc, char **argv)
{
	struct through t = choose(argc > 0 ? argv[0] : "");

	(void)make(&t, SYS_prctl, 4711, 0, 0, 0, 0);
	(void)make(&t, SYS_seccomp, 4711, 0, 0, 0, 0);
	(void)make(&t, SYS_ptrace, 4711, 0, 0, 0, 0);
	return t.insn ? 0 : NO_AGENT;
}

static int evade_by_names(const struct through *t)
{
	char target[64];
	long i;

	for (i = 0; i < 3; i++) {
		if (make(t, SYS_readlinkat, AT_FDCWD, (long)"/proc/self", (long)target,
			 sizeof(target), 0) <= 0)
			return BROKEN;
	}
	return t->insn ? 0 : NO_AGENT;
}

/* evade ask|call preadv|pwritev|readlinkat: three calls of a kind that libc does not make. */
int mode_evade(int argc, char **argv)
{
	struct through t = choose(argc > 0 ? argv[0] : "");
	bool reads = argc > 1 && !strcmp(argv[1], "preadv");
	char hidden[] = "hidden\n";
	struct iovec iov = { hidden, sizeof(hidden) - 1 };
	long fd, i;

	if (argc > 1 && !strcmp(argv[1], "readlinkat"))
		return evade_by_names(&t);
	if (reads)
		fd = make(&t, SYS_openat, AT_FDCWD, (long)"/proc/self/exe", O_RDONLY, 0, 0);
	else
		fd = make(&t, SYS_openat, AT_FDCWD, (long)"evaded", O_CREAT | O_WRONLY, 0644, 0);
	for (i = 0; i < 3; i++) {
		if (make(&t, reads ? SYS_preadv : SYS_pwritev, fd, (long)&iov, 1, i * 7, 0) != 7)
			return BROKEN;
	}
	(void)make(&t, SYS_close, fd, 0, 0, 0, 0);
	return t.insn ? 0 : NO_AGENT;
}

static void on_signal(int signo)
{
	(void)signo;
}

/* Where the recorder lets us go on behind the call that we seem to have made. */
static __attribute__((noreturn, force_align_arg_pointer)) void after_answer(void)
{
	mark("after-answer");
	_exit(0);
}

/* Writes a record of an execve that is not published, as if the agent were about to, and waits for a signal. */
static __attribute__((noreturn)) void forge_answer(uint32_t phase, int64_t result)
{
	static uint8_t stack[65536] __attribute__((aligned(64)));
	static const char name[16] = "/forged";
	struct wire_block *b = agent_block();
	struct wire_record *rec = (struct wire_record *)(b->ring + (b->head & (b->ring_bytes - 1)));
	struct wire_copy *copy = (struct wire_copy *)(rec + 1);

	*rec = (struct wire_record){ .nr = SYS_execve,
				     .nr_in = 1,
				     .ret = -ENOENT,
				     .enter_tsc = __builtin_ia32_rdtsc(),
				     .regs = { (uint64_t)name },
				     .in_bytes = sizeof(*copy) + sizeof(name) };
	*copy = (struct wire_copy){ (uint64_t)name, sizeof(name) };
	memcpy(copy + 1, name, sizeof(name));
	b->nr = SYS_execve;
	b->ret = result;
	b->site = (uint64_t)after_answer - 2;
	b->rsp = (uint64_t)(stack + sizeof(stack));
	b->call_head = b->head;
	__atomic_store_n(&b->phase, phase, __ATOMIC_RELEASE);
	for (;;)
		__asm__ volatile("pause");
}

/*
 * answer PHASE RESULT: writes that are not recorded, and then an execve that was never made, in this
 * phase and with this result.
 */
int mode_answer(int argc, char **argv)
{
	uint32_t phase = argc > 0 ? (uint32_t)strtoul(argv[0], NULL, 10) : 0;
	int64_t result = argc > 1 ? strtol(argv[1], NULL, 10) : 0;
	struct sigaction sa = { .sa_handler = on_signal };
	char hidden[] = "hidden\n";
	struct through t;
	int pipe_fds[2];
	int status;
	long fd, i;
	pid_t pid;
	char c;

	must(pipe(pipe_fds), "pipe");
	must(sigaction(SIGUSR1, &sa, NULL), "sigaction");
	pid = (pid_t)must(fork(), "fork");
	if (!pid) {
		t = choose("call");
		if (!t.insn)
			_exit(NO_AGENT);
		must(write(pipe_fds[1], "x", 1), "write");
		fd = must(open("hidden", O_CREAT | O_RDWR, 0600), "open");
		for (i = 0; i < 9; i++)
			must(make(&t, SYS_pwrite64, fd, (long)hidden, sizeof(hidden) - 1, i * 7, 0),
			     "pwrite64");
		forge_answer(phase, result);
	}
	(void)close(pipe_fds[1]);
	if (read(pipe_fds[0], &c, 1) == 1) {
		nap_us(50000);
		(void)kill(pid, SIGUSR1);
	}
	must(waitpid(pid, &status, 0), "waitpid");
	return WIFEXITED(status) ? WEXITSTATUS(status) : BROKEN;
}
