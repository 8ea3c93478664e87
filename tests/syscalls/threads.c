/* SPDX-License-Identifier: MIT */
/* Threads of one process: their beginning, their calls side by side, their end. */
#include <fcntl.h>
#include <linux/futex.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib.h"

#define NR_THREADS 8
#define NR_ROUNDS 200
#define THREAD_FLAGS                                                                               \
	"CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_SIGHAND|CLONE_THREAD|CLONE_SYSVSEM|CLONE_SETTLS|"     \
	"CLONE_PARENT_SETTID|CLONE_CHILD_CLEARTID"

static pid_t self;

struct worker {
	pthread_t thread;
	pid_t tid;
	int fd;
};

/* Each thread writes its own file and takes turns with the others as it comes. */
static void *work(void *arg)
{
	struct worker *w = arg;
	char line[32], back[32];
	int i, len;

	t_thread();
	w->tid = (pid_t)sys(gettid);
	t_begin();
	for (i = 0; i < NR_ROUNDS; i++) {
		len = snprintf(line, sizeof(line), "%d %d\n", (int)w->tid, i);
		expect("write(fd=%d, buf=%s, count=%d) = %d", w->fd, quote_str(line), len, len);
		t_is(sys(write, w->fd, line, len), len);
		expect("pread64(fd=%d, buf=%s, count=2, offset=0) = 2", w->fd, quote(line, 2));
		t_is(sys(pread64, w->fd, back, 2, 0), 2);
		expect("sched_yield() = 0");
		t_ok(sys(sched_yield));
	}
	t_end();
	expect("exit(status=0) = ?");
	expect("thread_exit(status=0, signal=?)");
	return NULL;
}

static void side_by_side(void)
{
	struct worker workers[NR_THREADS] = { 0 };
	int i;

	for (i = 0; i < NR_THREADS; i++) {
		struct worker *w = &workers[i];

		w->fd = (int)t_ok(open(text("f%d", i), O_CREAT | O_RDWR, 0600));
		t_is(pthread_create(&w->thread, NULL, work, w), 0);
	}
	for (i = 0; i < NR_THREADS; i++) {
		t_is(pthread_join(workers[i].thread, NULL), 0);
		t_ok(close(workers[i].fd));
	}
}

/*
 * A thread made by hand: its whole life, its parent's view of it, and the
 * wake-up that the kernel makes of its end.
 */
static char stack[65536] __attribute__((aligned(16)));

static long clone_thread(int *tid, long flags)
{
	register long *child_tid __asm__("r10") = (long *)tid;
	long r;

	/* The child must not return to our caller's frame: its stack is empty. */
	__asm__ volatile("xor %%r8d, %%r8d\n\t"
			 "syscall\n\t"
			 "test %%eax, %%eax\n\t"
			 "jnz 1f\n\t"
			 "mov $39, %%eax\n\t" /* getpid */
			 "syscall\n\t"
			 "mov $3, %%edi\n\t"
			 "mov $60, %%eax\n\t" /* exit */
			 "syscall\n\t"
			 "1:"
			 : "=a"(r), "+r"(child_tid)
			 : "0"((long)SYS_clone), "D"(flags), "S"(stack + sizeof(stack)), "d"(tid)
			 : "rcx", "r8", "r11", "memory");
	return r;
}

static void by_hand(void)
{
	static int tid;
	const char *flags = "CLONE_VM|CLONE_FS|CLONE_FILES|CLONE_SIGHAND|CLONE_THREAD|"
			    "CLONE_PARENT_SETTID|CLONE_CHILD_SETTID|CLONE_CHILD_CLEARTID";
	pid_t pid;

	t_begin();
	tid = -1;
	pid = (pid_t)t_ok(clone_thread(&tid, CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND |
						     CLONE_THREAD | CLONE_PARENT_SETTID |
						     CLONE_CHILD_SETTID | CLONE_CHILD_CLEARTID));
	/* What stands at parent_tid is the tid, or 0 when the thread has ended already. */
	expect("clone(flags=%s, stack=%s, parent_tid=*, child_tid=%s, tls=0) = %d", flags,
	       addr(stack + sizeof(stack)), addr(&tid), pid);
	t_strict(pid);
	expect_of(pid, "thread_start(parent=%d, clone_flags=%s, comm=\"threads\", how=clone)", self,
		  flags);
	expect_of(pid, "getpid() = %d", self);
	expect_of(pid, "exit(status=3) = ?");
	expect_of(pid, "thread_exit(status=3)");
	t_end();
	while (__atomic_load_n(&tid, __ATOMIC_ACQUIRE))
		(void)syscall(SYS_futex, &tid, FUTEX_WAIT, pid, NULL);
}

static void *pause_for_ever(void *tid)
{
	t_thread();
	__atomic_store_n((pid_t *)tid, (pid_t)sys(gettid), __ATOMIC_RELEASE);
	while (*(pid_t *)tid)
		(void)sys(pause);
	return NULL;
}

static pid_t pausing_thread(void)
{
	static pid_t tid;
	pthread_t thread;

	tid = 0;
	t_is(pthread_create(&thread, NULL, pause_for_ever, &tid), 0);
	while (!__atomic_load_n(&tid, __ATOMIC_ACQUIRE))
		(void)sys(sched_yield);
	t_await_state(tid, 'S');
	return tid;
}

/* The process ends while a thread of it waits. */
static void end_of_all(void)
{
	pid_t pid = (pid_t)t_ok(fork()), tid;

	if (pid) {
		t_is(waitpid(pid, &(int){ 0 }, 0), pid);
		return;
	}
	t_thread();
	tid = pausing_thread();
	expect_of(tid, "pause() = ?");
	expect_of(tid, "thread_exit(status=6)");
	t_begin();
	expect("exit_group(status=6) = ?");
	expect("thread_exit(status=6)");
	(void)sys(exit_group, 6);
}

/* The same, by a signal to another process. */
static void killed_together(void)
{
	static int ready[2];
	pid_t pid, tid;

	t_ok(pipe(ready));
	pid = (pid_t)t_ok(fork());
	if (!pid) {
		t_thread();
		tid = pausing_thread();
		expect_of(tid, "pause() = ?");
		expect_of(tid, "thread_exit(signal=SIGKILL, core_dumped=0)");
		t_begin();
		expect("write(fd=%d, buf=\"x\", count=1) = 1", ready[1]);
		expect("pause() = ?");
		expect("thread_exit(signal=SIGKILL, core_dumped=0)");
		(void)sys(write, ready[1], "x", 1);
		(void)sys(pause);
		abort();
	}
	t_is(read(ready[0], &(char){ 0 }, 1), 1);
	t_await_state(pid, 'S');
	t_ok(kill(pid, SIGKILL));
	t_is(waitpid(pid, &(int){ 0 }, 0), pid);
	t_ok(close(ready[0]));
	t_ok(close(ready[1]));
}

static void *go_on_alone(void *leader)
{
	pid_t tid = *(pid_t *)leader;

	t_thread();
	t_await_state(tid, 'Z');
	t_begin();
	expect("getpid() = %d", tid);
	t_is(sys(getpid), tid);
	expect("exit(status=9) = ?");
	expect("thread_exit(status=9)");
	(void)sys(exit, 9);
	return NULL;
}

/* The leader ends first; the process is what its other thread is. */
static void leader_first(void)
{
	static pid_t leader;
	pthread_t thread;
	int status;
	pid_t pid = (pid_t)t_ok(fork());

	if (pid) {
		t_is(waitpid(pid, &status, 0), pid);
		return;
	}
	t_thread();
	leader = getpid();
	t_is(pthread_create(&thread, NULL, go_on_alone, &leader), 0);
	t_begin();
	expect("exit(status=8) = ?");
	expect("thread_exit()");
	(void)sys(exit, 8);
}

/* Stopped and continued as a process: each thread of it. */
static void stopped_together(void)
{
	static int ready[2];
	pid_t pid, tid;
	int status;

	t_ok(pipe(ready));
	pid = (pid_t)t_ok(fork());
	if (!pid) {
		t_thread();
		tid = pausing_thread();
		expect_of(tid, "stopped(signal=SIGSTOP)");
		expect_of(tid, "continued(signal=SIGCONT)");
		expect_of(tid, "thread_exit(signal=SIGKILL)");
		expect("stopped(signal=SIGSTOP)");
		expect("continued(signal=SIGCONT)");
		expect("thread_exit(signal=SIGKILL)");
		(void)sys(write, ready[1], &tid, sizeof(tid));
		for (;;)
			(void)sys(pause);
	}
	t_is(read(ready[0], &tid, sizeof(tid)), sizeof(tid));
	t_await_state(pid, 'S');
	t_ok(kill(pid, SIGSTOP));
	t_is(waitpid(pid, &status, WUNTRACED), pid);
	t_true(WIFSTOPPED(status));
	t_ok(kill(pid, SIGCONT));
	t_is(waitpid(pid, &status, WCONTINUED), pid);
	/* Killed sooner, a thread would not be seen to go on. */
	t_await_state(pid, 'S');
	t_await_state(tid, 'S');
	t_ok(kill(pid, SIGKILL));
	t_is(waitpid(pid, &status, 0), pid);
	t_ok(close(ready[0]));
	t_ok(close(ready[1]));
}

static void *note_tid(void *tid)
{
	*(pid_t *)tid = (pid_t)sys(gettid);
	return NULL;
}

/* As pthread_create makes it. */
static void by_pthread(void)
{
	pthread_t thread;
	pid_t tid = 0;

	t_is(pthread_create(&thread, NULL, note_tid, &tid), 0);
	t_is(pthread_join(thread, NULL), 0);
	expect_of(tid,
		  "thread_start(parent=%d, clone_flags=" THREAD_FLAGS
		  ", comm=\"threads\", how=clone)",
		  self);
	expect_of(tid, "gettid() = %d", tid);
	expect_of(tid, "exit(status=0) = ?");
	expect_of(tid, "thread_exit(status=0)");
}

/* More than a recorder holds at once, each for a moment. */
static void short_lives(void)
{
	pthread_t threads[32];
	pid_t tids[32];
	size_t round, i;

	for (round = 0; round < 4; round++) {
		for (i = 0; i < ARRAY_LEN(threads); i++)
			t_is(pthread_create(&threads[i], NULL, note_tid, &tids[i]), 0);
		for (i = 0; i < ARRAY_LEN(threads); i++)
			t_is(pthread_join(threads[i], NULL), 0);
		for (i = 0; i < ARRAY_LEN(threads); i++) {
			expect_of(tids[i], "thread_start(parent=%d)", self);
			expect_of(tids[i], "gettid() = %d", tids[i]);
			expect_of(tids[i], "exit(status=0) = ?");
			expect_of(tids[i], "thread_exit(status=0)");
		}
	}
}

int main(void)
{
	t_init();
	self = getpid();
	by_pthread();
	by_hand();
	side_by_side();
	short_lives();
	end_of_all();
	killed_together();
	stopped_together();
	leader_first();
	return 0;
}
