/* SPDX-License-Identifier: MIT */
/* Signals: blocked, handled in the middle of calls, and deadly. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

#include "torture.h"

/* block-signals MS: works for so long with all signals blocked. */
int mode_block_signals(int argc, char **argv)
{
	uint64_t end_ms = now_ms() + (argc > 0 ? strtoul(argv[0], NULL, 10) : 500);
	sigset_t all;

	sigfillset(&all);
	must(sigprocmask(SIG_BLOCK, &all, NULL), "sigprocmask");
	while (now_ms() < end_ms)
		some_calls("calls", 16, 1);
	_exit(9);
}

static int handler_fd;

static void on_alarm(int signo)
{
	char c = '!';
	int saved = errno;

	(void)signo;
	atomic_fetch_add(&counts[COUNT_SIGNALS].begun, 1);
	(void)counted_call(COUNT_pwrite64, handler_fd, (long)&c, 1, 0);
	(void)counted_call(COUNT_fchmod, handler_fd, 0600, 0, 0);
	atomic_fetch_add(&counts[COUNT_SIGNALS].done, 1);
	errno = saved;
}

/* timer MS: I/O in a handler, every millisecond, while the program does I/O and sleeps. */
int mode_timer(int argc, char **argv)
{
	uint64_t end_ms = now_ms() + (argc > 0 ? strtoul(argv[0], NULL, 10) : 500);
	struct itimerval timer = { { 0, 1000 }, { 0, 1000 } }, none = { { 0, 0 }, { 0, 0 } };
	struct sigaction sa = { .sa_handler = on_alarm };
	struct timespec nap = { 0, 3000000 };
	int fds[2];
	char c;

	handler_fd = (int)must(open("handler", O_RDWR | O_CREAT | O_CLOEXEC, 0600), "handler");
	must(pipe2(fds, O_NONBLOCK), "pipe2");
	must(sigaction(SIGALRM, &sa, NULL), "sigaction");
	must(setitimer(ITIMER_REAL, &timer, NULL), "setitimer");
	while (now_ms() < end_ms) {
		some_calls("calls", 16, 1);
		(void)nanosleep(&nap, NULL); /* ends early: EINTR */
		(void)!read(fds[0], &c, 1);
	}
	must(setitimer(ITIMER_REAL, &none, NULL), "setitimer");
	return 0;
}

static volatile sig_atomic_t nr_alarms;

static void on_short_alarm(int signo)
{
	(void)signo;
	nr_alarms++;
}

/* searches N [US]: programs that are not there, N times, with a signal each US us. Prints how many execves that were. */
int mode_searches(int argc, char **argv)
{
	static char too_long[4200];
	static const struct {
		const char *path;
		int error;
	} sought[] = {
		{ "none", ENOENT },	      { "none/program", ENOENT }, { "", ENOENT },
		{ "dangling", ENOENT },	      { "/none/at/all", ENOENT }, { "plain", EACCES },
		{ "plain/program", ENOTDIR }, { too_long, ENAMETOOLONG },
	};
	const unsigned int nr = sizeof(sought) / sizeof(sought[0]);
	unsigned int nr_rounds = argc > 0 ? (unsigned int)strtoul(argv[0], NULL, 10) : 100, i;
	suseconds_t every_us = argc > 1 ? (suseconds_t)strtoul(argv[1], NULL, 10) : 200;
	struct itimerval timer = { { 0, every_us }, { 0, every_us } },
			 none = { { 0, 0 }, { 0, 0 } };
	struct sigaction sa = { .sa_handler = on_short_alarm };
	char word[] = "a word", empty[] = "", name[] = "NAME=value";
	char *words[] = { word, empty, NULL }, *environment[] = { name, NULL };

	memset(too_long, 'x', sizeof(too_long) - 1);
	must(symlink("nowhere", "dangling"), "symlink");
	must(open("plain", O_CREAT | O_CLOEXEC, 0600), "plain");
	some_calls("calls", 100, 1); /* an agent may come in */
	must(sigaction(SIGALRM, &sa, NULL), "sigaction");
	must(setitimer(ITIMER_REAL, &timer, NULL), "setitimer");
	for (i = 0; i < nr_rounds * nr; i++) {
		(void)execve(sought[i % nr].path, words, environment);
		if (errno != sought[i % nr].error)
			give_up("execve of '%.20s'", sought[i % nr].path);
	}
	must(setitimer(ITIMER_REAL, &none, NULL), "setitimer");
	printf("%u\n", i);
	return nr_alarms || !every_us ? 0 : 1;
}

/* search PATH: prints by which error its execve fails. */
int mode_search(int argc, char **argv)
{
	unsigned int i;

	for (i = 0; i < 200; i++)
		(void)getppid(); /* an agent may come in */
	(void)execv(argc > 0 ? argv[0] : "none", argv);
	printf("%d\n", errno);
	return 0;
}

/* die SIGNO: after some calls, by this signal. */
int mode_die(int argc, char **argv)
{
	int signo = argc > 0 ? (int)strtol(argv[0], NULL, 10) : SIGKILL;
	struct rlimit no_core = { 0, 0 };

	(void)setrlimit(RLIMIT_CORE, &no_core);
	some_calls("calls", 20, 1);
	if (signo == SIGSEGV)
		*(volatile char *)mmap(NULL, 4096, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0) =
			1;
	(void)kill(getpid(), signo);
	return 0;
}

/* loop: calls, until it is killed. Says when it has begun. */
int mode_loop(int argc, char **argv)
{
	useconds_t nap_us = argc > 0 ? (useconds_t)strtoul(argv[0], NULL, 10) : 1000;

	printf("%d\n", (int)getpid());
	fflush(stdout);
	for (;;) {
		some_calls("calls", 16, 1);
		if (nap_us)
			usleep(nap_us);
	}
}

static volatile sig_atomic_t got;

static void on_signal(int signo)
{
	got = signo;
}

/* handle SIGNO: waits for the signal, then ends well with status 5. */
int mode_handle(int argc, char **argv)
{
	int signo = argc > 0 ? (int)strtol(argv[0], NULL, 10) : SIGTERM;
	struct sigaction sa = { .sa_handler = on_signal };

	must(sigaction(signo, &sa, NULL), "sigaction");
	printf("%d\n", (int)getpid());
	fflush(stdout);
	while (!got) {
		some_calls("calls", 16, 1);
		usleep(1000);
	}
	some_calls("calls", 100, 1);
	return 5;
}

#ifdef __x86_64__
#define TEXTS_MAX 64

/* Where code of files is, and of the kernel's own. */
static struct text {
	uint64_t start, end;
} texts[TEXTS_MAX];
static unsigned int nr_texts;
static volatile sig_atomic_t nr_seen, nr_elsewhere;

static void find_texts(void)
{
	FILE *f = fopen("/proc/self/maps", "re");
	char line[4352], rights[8];
	struct text t;

	while (f && nr_texts < TEXTS_MAX && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s", &t.start, &t.end, rights) == 3 &&
		    rights[2] == 'x' && (strchr(line, '/') || strchr(line, '[')))
			texts[nr_texts++] = t;
	}
	if (!f || fclose(f))
		give_up("/proc/self/maps");
}

static void on_tick(int signo, siginfo_t *si, void *context)
{
	uint64_t at = (uint64_t)((ucontext_t *)context)->uc_mcontext.gregs[REG_RIP];
	unsigned int i;

	(void)signo;
	(void)si;
	for (i = 0; i < nr_texts && (at < texts[i].start || at >= texts[i].end); i++)
		;
	nr_seen++;
	nr_elsewhere += i == nr_texts;
}

/* interrupted NR: as many signals, each of which finds the program in code of its own. */
int mode_interrupted(int argc, char **argv)
{
	int nr = argc > 0 ? (int)strtol(argv[0], NULL, 10) : 1000;
	struct itimerval timer = { { 0, 100 }, { 0, 100 } }, none = { { 0, 0 }, { 0, 0 } };
	struct sigaction sa = { .sa_sigaction = on_tick, .sa_flags = SA_SIGINFO | SA_RESTART };
	char *words[] = { NULL };
	unsigned int i;

	for (i = 0; i < 200; i++)
		(void)getppid(); /* an agent may come in */
	find_texts();
	must(sigaction(SIGALRM, &sa, NULL), "sigaction");
	must(setitimer(ITIMER_REAL, &timer, NULL), "setitimer");
	while (nr_seen < nr) {
		(void)getppid();
		(void)lseek(0, 0, SEEK_CUR); /* fails or not */
		(void)syscall(SYS_getuid);
		(void)execve("none", words, words);
	}
	must(setitimer(ITIMER_REAL, &none, NULL), "setitimer");
	if (nr_elsewhere)
		give_up("a signal has found us elsewhere");
	return 0;
}

static void on_step(int signo)
{
	(void)signo;
	nr_seen++;
}

/* step: goes through its own calls by single steps. */
int mode_step(int argc, char **argv)
{
	struct sigaction sa = { .sa_handler = on_step };
	unsigned int i, nr = 0;

	(void)argc;
	(void)argv;
	for (i = 0; i < 200; i++)
		(void)getppid(); /* an agent may come in */
	must(sigaction(SIGTRAP, &sa, NULL), "sigaction");
	__asm__ volatile(
		"lea -128(%%rsp), %%rsp\n\tpushfq\n\torq $0x100, (%%rsp)\n\tpopfq\n\tlea 128(%%rsp), %%rsp"
		:
		:
		: "memory", "cc");
	for (i = 0; i < 3; i++) {
		nr += getppid() > 0;
		nr += syscall(SYS_getuid) == (long)getuid();
		nr += lseek(-1, 0, SEEK_CUR) == -1;
	}
	__asm__ volatile(
		"lea -128(%%rsp), %%rsp\n\tpushfq\n\tandq $~0x100, (%%rsp)\n\tpopfq\n\tlea 128(%%rsp), %%rsp"
		:
		:
		: "memory", "cc");
	return nr == 9 && nr_seen > 30 ? 0 : 1;
}
#endif
