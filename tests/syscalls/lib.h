/* SPDX-License-Identifier: MIT */
/*
 * For the programs that make calls and say how these must be recorded.
 *
 *   expect("ftruncate(fd=%d, length=4096) = 0", fd);
 *   t_ok(sys(ftruncate, fd, 4096));
 *
 * An expectation is a line of the exact form (doc/trace-text.md). Of the
 * arguments, and of the fields of a struct, those that it names are compared;
 * "*" stands for any value, "?" for one that is not known, "$x" for one that is
 * the same wherever "$x" stands, and another than "$y", "abc"*1000 for
 * repeated bytes, "..." at the end of a list for further items. Flags may come
 * in any order. The expectations of a thread are met by its events in the same
 * order; what one knows only after the call may be written after it. Behind the
 * outcome details may follow, those of the exact form and three more:
 *
 *   {flags=INTERRUPTED}   without this, the event has no flags
 *   {least_ns=10000000}   the call took at least this long
 *   {label=x}             gives the event a name
 *   {after=x}             the event ended when that one had begun, or later
 *
 * Between t_begin() and t_end() a thread makes no call that is not expected:
 * whatever else is recorded of it is an error. Nothing here makes a call, unless
 * it says so, so that it can be used there.
 */
#ifndef TESTS_SYSCALLS_LIB_H
#define TESTS_SYSCALLS_LIB_H

#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/types.h>
#include <time.h>

#include "numbers.h"

#define PRINTF_LIKE(fmt, args) __attribute__((format(printf, fmt, args)))
/* Of a pointer that is printed, not followed. */
#if defined(__GNUC__) && !defined(__clang__)
#define NOT_READ __attribute__((access(none, 1)))
#else
#define NOT_READ
#endif
#define ARRAY_LEN(a) (sizeof(a) / sizeof((a)[0]))

/* First of all; also in an image that execve has started. Makes calls. */
void t_init(void);
/* First of all in a new thread or process. Makes a call. */
void t_thread(void);
/* Both make one call. */
void t_begin(void);
void t_end(void);
/* The thread is recorded from its first to its last event as its expectations say. */
void t_strict(pid_t tid);
/* The ledger must say that something of this kind is missing: DATA_TRUNCATED ... */
void t_loses(const char *kind);
/* Leaves something out, and says why. */
PRINTF_LIKE(1, 2) void t_skip(const char *fmt, ...);

PRINTF_LIKE(1, 2) void expect(const char *fmt, ...);
/* An event of another thread: of a child that shares our memory, or cannot say it. */
PRINTF_LIKE(2, 3) void expect_of(pid_t tid, const char *fmt, ...);

/*
 * The call itself: no wrapper of libc chooses another. Numbers are extended to
 * registers by their own types; registers without an argument are 0.
 */
#define sys(name, ...) SYS_WITH(SYS_##name, ##__VA_ARGS__, 0, 0, 0, 0, 0, 0, 0)
#define SYS_WITH(nr, a, b, c, d, e, f, ...)                                                        \
	t_call((nr),                                                                               \
	       (const long[]){ (long)(a), (long)(b), (long)(c), (long)(d), (long)(e), (long)(f) })
long t_call(long nr, const long args[6]);

/* What the call returns is what the test needs, or the test ends here. */
#define t_ok(call) t_check_ok((call), #call, __FILE__, __LINE__)
#define t_is(call, value) t_check_is((call), (value), #call, __FILE__, __LINE__)
#define t_fails(call, err) t_check_fails((call), (err), #call, __FILE__, __LINE__)
#define t_true(condition) t_check_is(!!(condition), 1, #condition, __FILE__, __LINE__)
long t_check_ok(long r, const char *what, const char *file, int line);
long t_check_is(long r, long value, const char *what, const char *file, int line);
long t_check_fails(long r, int err, const char *what, const char *file, int line);

/*
 * Text for expectations. All of it lives as long as the program: there is
 * enough memory for a test.
 */
PRINTF_LIKE(1, 2) char *text(const char *fmt, ...);
/* Bytes as the exact form writes them. */
char *quote(const void *bytes, size_t len);
char *quote_str(const char *s);
/* The outcome of a call that may fail here and not there: "3" or "-1 ENOSYS", by errno. */
char *outcome(long r);
/* An error by its name. */
const char *error_name(int err);
/* Numbers in the forms of their kinds. */
char *hex(unsigned long v);
NOT_READ char *addr(const void *p); /* of an ADDR */
NOT_READ char *pointer(const void *p); /* of a pointer that was not followed: &0x... or NULL */
char *mode_text(unsigned int mode);
char *dev_text(unsigned int major, unsigned int minor);
/* The first number if the call succeeded, else an address: what an OUT argument is then. */
char *out_number(long r, const void *p, long value);

/* Bits that a file system or the kernel chooses; what is in no table stays a number. */
struct t_bit {
	const char *name;
	unsigned long value;
};
#define BIT(name)                                                                                  \
	{                                                                                          \
#name, (unsigned long)(name)                                                       \
	}
char *bits_text(unsigned long v, const struct t_bit *bits, size_t nr);
#define bits(v, table) bits_text((v), (table), ARRAY_LEN(table))

/* The structs of many calls. */
char *stat_text(const struct stat *st);
char *timespec_text(const struct timespec *ts);
/*
 * What a descriptor refers to, as open and mmap record it. Makes a call that
 * the harness knows and passes over.
 */
char *file_text(int fd);

/* From now on the end of a child is told by no signal, which would come at any time; makes a call. */
void t_block_sigchld(void);
/* Reads a small file whole; makes calls. */
size_t t_read_file(const char *path, char *buf, size_t size);
/* A thread has come to wait in a call of the kernel, or is stopped ('S', 'T'); makes calls. */
void t_await_state(pid_t tid, char state);
/* Letters and digits in an order that looks random and is the same each time. */
void t_fill(void *buf, size_t len, unsigned int seed);

#endif
