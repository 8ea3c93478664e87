/* SPDX-License-Identifier: MIT */
/*
 * Programs that are hard to record, all in one binary: `torture MODE ARGS`.
 * Each knows how often it made certain calls, which nothing else in the process
 * makes, and the recording must have exactly these.
 *
 * The counts are in a file, mapped shared: they are common to all processes and
 * threads, live on over execve, and are still there when the program is killed.
 */
#ifndef TORTURE_H
#define TORTURE_H

#include <stdatomic.h>
#include <stdint.h>

enum counted {
	COUNT_pwrite64,
	COUNT_preadv,
	COUNT_ftruncate,
	COUNT_fchmod,
	COUNT_mkdirat,
	COUNT_unlinkat,
	COUNT_SIGNALS, /* no call: handlers that ran */
	COUNT_MAX
};

/*
 * begun is counted before the call and done after it: of a program that was
 * killed somewhere, the recording has no less than done, no more than begun.
 */
struct count {
	char name[16];
	_Atomic uint64_t begun, done;
};

extern struct count *counts;

/* What $TORTURE_COUNTS names. */
void counts_open(void);
/* How counted calls are made, with the number first; the C library's syscall() unless changed. */
extern long (*make_call)(long nr, ...);
long counted_call(enum counted what, long a, long b, long c, long d);
/* One of each on a file of this name; mixed by `seed`. */
void some_calls(const char *file, unsigned int nr_rounds, unsigned int seed);

/* Prints why and exits 99: the test program itself is at its end. */
__attribute__((noreturn, format(printf, 1, 2))) void give_up(const char *fmt, ...);
/* For what must not fail. */
long must(long r, const char *what);
/* The program again, in another mode; it touches no memory but the stack, as after vfork. */
__attribute__((noreturn)) void exec_again(const char *mode, const char *arg);
uint64_t now_ms(void);

/* The modes: get the arguments behind their name, return the exit status, or this when the kernel or the rights forbid it. */
#define NOT_HERE 77
typedef int (*mode_fn)(int argc, char **argv);

int mode_threads(int argc, char **argv);
int mode_exec_other(int argc, char **argv);
int mode_exec_wakers(int argc, char **argv);
int mode_exec_race(int argc, char **argv);
int mode_leader_exits(int argc, char **argv);
int mode_serve(int argc, char **argv);
int mode_patient(int argc, char **argv);
int mode_moving(int argc, char **argv);
int mode_moving_die(int argc, char **argv);

int mode_processes(int argc, char **argv);
int mode_bomb(int argc, char **argv);
int mode_vfork(int argc, char **argv);
int mode_daemon(int argc, char **argv);
int mode_family(int argc, char **argv);

int mode_cpus(int argc, char **argv);
int mode_cpus_exec(int argc, char **argv);

int mode_close_all(int argc, char **argv);
int mode_chroot(int argc, char **argv);
int mode_drop_rights(int argc, char **argv);
int mode_no_dump(int argc, char **argv);
int mode_limit_memory(int argc, char **argv);
int mode_seccomp(int argc, char **argv);
int mode_seccomp_all(int argc, char **argv);
int mode_made_code(int argc, char **argv);
int mode_no_counter(int argc, char **argv);
int mode_int80(int argc, char **argv);
int mode_trace_me(int argc, char **argv);
int mode_huge(int argc, char **argv);

#ifdef __x86_64__
int mode_own_gs(int argc, char **argv);
int mode_little_stack(int argc, char **argv);
int mode_dispatch(int argc, char **argv);
int mode_interrupted(int argc, char **argv);
int mode_step(int argc, char **argv);
#endif
int mode_masked_waits(int argc, char **argv);
int mode_reused_text(int argc, char **argv);
int mode_ignored(int argc, char **argv);
int mode_limit_later(int argc, char **argv);
int mode_growing_stack(int argc, char **argv);
int mode_served(int argc, char **argv);
int mode_guarded(int argc, char **argv);
int mode_filled(int argc, char **argv);
int mode_crowd(int argc, char **argv);
int mode_shared_files(int argc, char **argv);
int mode_unfilled(int argc, char **argv);

int mode_block_signals(int argc, char **argv);
int mode_timer(int argc, char **argv);
int mode_search(int argc, char **argv);
int mode_searches(int argc, char **argv);
int mode_die(int argc, char **argv);
int mode_loop(int argc, char **argv);
int mode_handle(int argc, char **argv);

#endif
