/* SPDX-License-Identifier: MIT */
/*
 * Expectations go to a file that is mapped, so that writing one is no call, and
 * those of a process that is killed are there too:
 *
 *   8 bytes, how many follow | TID line\n | TID line\n | ...
 *
 * Threads and processes take their places in it by an atomic addition.
 */
#include "lib.h"

#include <fcntl.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#define ARENA_BYTES ((size_t)64 << 20)
/* A bit of statx's mask that means nothing to the kernel: the harness passes such a call over. */
#define OWN_STATX_MASK (STATX_BASIC_STATS | 0x40000000u)

struct log {
	atomic_size_t used;
	char lines[];
};

static struct log *log_map;
static size_t log_room;
static _Thread_local pid_t own_tid;

static char arena[ARENA_BYTES];
static atomic_size_t arena_used;

static _Noreturn void die(const char *file, int line, const char *what, const char *why)
{
	fprintf(stderr, "%s:%d: %s: %s\n", file, line, what, why);
	_exit(1);
}

/* Calls. */

long t_call(long nr, const long args[6])
{
	return syscall(nr, args[0], args[1], args[2], args[3], args[4], args[5]);
}

long t_check_ok(long r, const char *what, const char *file, int line)
{
	if (r == -1)
		die(file, line, what, strerror(errno));
	return r;
}

long t_check_is(long r, long value, const char *what, const char *file, int line)
{
	if (r == -1 && value != -1)
		die(file, line, what, strerror(errno));
	if (r != value)
		die(file, line, what, text("gave %ld, not %ld", r, value));
	return r;
}

long t_check_fails(long r, int err, const char *what, const char *file, int line)
{
	if (r != -1)
		die(file, line, what, text("gave %ld and did not fail", r));
	if (errno != err)
		die(file, line, what,
		    text("failed with %s, not %s", error_name(errno), error_name(err)));
	return r;
}

/* Memory for text. */

static char *arena_take(size_t len)
{
	size_t at = atomic_fetch_add(&arena_used, len);

	if (at + len > sizeof(arena))
		die(__FILE__, __LINE__, "text", "too much of it");
	return arena + at;
}

char *text(const char *fmt, ...)
{
	va_list ap;
	size_t len;
	char *p;

	va_start(ap, fmt);
	len = (size_t)vsnprintf(NULL, 0, fmt, ap) + 1;
	va_end(ap);
	p = arena_take(len);
	va_start(ap, fmt);
	(void)vsnprintf(p, len, fmt, ap);
	va_end(ap);
	return p;
}

/* Expectations. */

void t_init(void)
{
	const char *path = getenv("T_EXPECT");
	struct stat st;
	int fd;

	/* To be attached to; whoever closes the other end has done so. */
	if (getenv("T_WAIT"))
		(void)read(STDIN_FILENO, &(char){ 0 }, 1);
	own_tid = (pid_t)sys(gettid);
	if (!path)
		die(__FILE__, __LINE__, "T_EXPECT", "is not set: run.py starts these programs");
	fd = open(path, O_RDWR | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		die(__FILE__, __LINE__, path, strerror(errno));
	log_room = (size_t)st.st_size - sizeof(struct log);
	log_map = mmap(NULL, (size_t)st.st_size, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
	if (log_map == MAP_FAILED)
		die(__FILE__, __LINE__, path, strerror(errno));
	(void)close(fd);
}

void t_thread(void)
{
	own_tid = (pid_t)sys(gettid);
}

static PRINTF_LIKE(2, 0) void put_line(pid_t tid, const char *fmt, va_list ap)
{
	size_t head = (size_t)snprintf(NULL, 0, "%d ", (int)tid), len, at;
	va_list again;
	char *p;

	va_copy(again, ap);
	len = head + (size_t)vsnprintf(NULL, 0, fmt, again) + 1;
	va_end(again);
	at = atomic_fetch_add(&log_map->used, len);
	if (at + len > log_room)
		die(__FILE__, __LINE__, "expect", "too many expectations");
	p = log_map->lines + at;
	(void)snprintf(p, head + 1, "%d ", (int)tid);
	/* The NUL has the place of the newline: what is behind may be another's already. */
	(void)vsnprintf(p + head, len - head, fmt, ap);
	p[len - 1] = '\n';
}

static PRINTF_LIKE(1, 2) void put_directive(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	put_line(0, fmt, ap);
	va_end(ap);
}

void expect(const char *fmt, ...)
{
	int err = errno; /* of the call that this is about */
	va_list ap;

	va_start(ap, fmt);
	put_line(own_tid, fmt, ap);
	va_end(ap);
	errno = err;
}

void expect_of(pid_t tid, const char *fmt, ...)
{
	int err = errno;
	va_list ap;

	va_start(ap, fmt);
	put_line(tid, fmt, ap);
	va_end(ap);
	errno = err;
}

static void mark(const char *path)
{
	int err = errno;

	expect("faccessat(dirfd=AT_FDCWD, path=\"%s\", mode=F_OK) = -1 ENOENT", path);
	(void)sys(faccessat, AT_FDCWD, path, F_OK);
	errno = err;
}

void t_begin(void)
{
	mark("/t-begin");
}

void t_end(void)
{
	mark("/t-end");
}

void t_strict(pid_t tid)
{
	put_directive("strict %d", (int)tid);
}

void t_loses(const char *kind)
{
	put_directive("loses %s", kind);
}

void t_skip(const char *fmt, ...)
{
	va_list ap;
	char reason[256];

	va_start(ap, fmt);
	(void)vsnprintf(reason, sizeof(reason), fmt, ap);
	va_end(ap);
	put_directive("skip %s", reason);
}

/* Text. */

/* The text of one byte, at most four and a NUL. */
static size_t put_byte(char *p, unsigned char c)
{
	switch (c) {
	case '\n':
		return (size_t)snprintf(p, 5, "\\n");
	case '\t':
		return (size_t)snprintf(p, 5, "\\t");
	case '\r':
		return (size_t)snprintf(p, 5, "\\r");
	case '"':
	case '\\':
		return (size_t)snprintf(p, 5, "\\%c", c);
	}
	if (c < 0x20 || c >= 0x7f)
		return (size_t)snprintf(p, 5, "\\x%02x", c);
	p[0] = (char)c;
	return 1;
}

char *quote(const void *bytes, size_t len)
{
	const unsigned char *in = bytes;
	size_t room = 3, i;
	char one[8], *start, *p;

	for (i = 0; i < len; i++)
		room += put_byte(one, in[i]);
	p = start = arena_take(room + 4);
	*p++ = '"';
	for (i = 0; i < len; i++)
		p += put_byte(p, in[i]);
	p[0] = '"';
	p[1] = 0;
	return start;
}

char *quote_str(const char *s)
{
	return quote(s, strlen(s));
}

const char *error_name(int err)
{
	const char *name = strerrorname_np(err);

	return name ? name : text("%d", err);
}

char *outcome(long r)
{
	return r == -1 ? text("-1 %s", error_name(errno)) : text("%ld", r);
}

char *hex(unsigned long v)
{
	return text(v ? "0x%lx" : "%lx", v);
}

char *addr(const void *p)
{
	return hex((unsigned long)p);
}

char *pointer(const void *p)
{
	return p ? text("&0x%lx", (unsigned long)p) : text("NULL");
}

char *mode_text(unsigned int mode)
{
	static const char *const types[16] = {
		[001] = "S_IFIFO", [002] = "S_IFCHR", [004] = "S_IFDIR",  [006] = "S_IFBLK",
		[010] = "S_IFREG", [012] = "S_IFLNK", [014] = "S_IFSOCK",
	};
	const char *type = types[mode >> 12 & 15];
	unsigned int rest = type ? mode & 07777 : mode;

	return text(rest ? "%s%s0%o" : "%s%s%o", type ? type : "", type ? "|" : "", rest);
}

char *dev_text(unsigned int major, unsigned int minor)
{
	return text("%u:%u", major, minor);
}

char *out_number(long r, const void *p, long value)
{
	return r == -1 ? pointer(p) : text("[%ld]", value);
}

char *bits_text(unsigned long v, const struct t_bit *table, size_t nr)
{
	char *s = text("%s", "");
	size_t i;

	for (i = 0; i < nr; i++) {
		if (!table[i].value || (v & table[i].value) != table[i].value)
			continue;
		s = text("%s%s%s", s, *s ? "|" : "", table[i].name);
		v &= ~table[i].value;
	}
	if (v)
		s = text("%s%s%s", s, *s ? "|" : "", hex(v));
	return *s ? s : text("0");
}

char *stat_text(const struct stat *st)
{
	return text("{st_dev=%u:%u, st_ino=%lu, st_mode=%s, st_nlink=%lu, st_uid=%u, st_gid=%u, "
		    "st_rdev=%u:%u, st_size=%ld, st_blksize=%ld, st_blocks=%ld, st_atime=%ld, "
		    "st_atime_nsec=%ld, st_mtime=%ld, st_mtime_nsec=%ld, st_ctime=%ld, "
		    "st_ctime_nsec=%ld}",
		    major(st->st_dev), minor(st->st_dev), st->st_ino, mode_text(st->st_mode),
		    st->st_nlink, st->st_uid, st->st_gid, major(st->st_rdev), minor(st->st_rdev),
		    st->st_size, st->st_blksize, st->st_blocks, st->st_atim.tv_sec,
		    st->st_atim.tv_nsec, st->st_mtim.tv_sec, st->st_mtim.tv_nsec,
		    st->st_ctim.tv_sec, st->st_ctim.tv_nsec);
}

char *timespec_text(const struct timespec *ts)
{
	return text("{tv_sec=%ld, tv_nsec=%ld}", ts->tv_sec, ts->tv_nsec);
}

char *file_text(int fd)
{
	int err = errno;
	struct statx stx;

	t_ok(sys(statx, fd, "", AT_EMPTY_PATH, OWN_STATX_MASK, &stx));
	errno = err;
	return text("{dev=%u:%u, ino=%llu, mode=%s, size=%llu}", stx.stx_dev_major,
		    stx.stx_dev_minor, stx.stx_ino, mode_text(stx.stx_mode), stx.stx_size);
}

/* Helpers that make calls. */

void t_block_sigchld(void)
{
	sigset_t set;

	sigemptyset(&set);
	sigaddset(&set, SIGCHLD);
	t_ok(sigprocmask(SIG_BLOCK, &set, NULL));
}

size_t t_read_file(const char *path, char *buf, size_t size)
{
	int fd = (int)t_ok(open(path, O_RDONLY | O_CLOEXEC));
	size_t len = 0;
	ssize_t n;

	while (len < size - 1 && (n = t_ok(read(fd, buf + len, size - 1 - len))) > 0)
		len += (size_t)n;
	buf[len] = 0;
	(void)close(fd);
	return len;
}

void t_await_state(pid_t tid, char state)
{
	char *path = text("/proc/%d/stat", (int)tid);
	const struct timespec ms = { .tv_nsec = 1000000 };
	char line[1024];
	const char *p;
	int i;

	for (i = 0; i < 20000; i++) {
		t_read_file(path, line, sizeof(line));
		p = strrchr(line, ')');
		if (p && p[2] == state)
			return;
		(void)nanosleep(&ms, NULL);
	}
	die(__FILE__, __LINE__, path, text("not in state %c within 20 s: %s", state, line));
}

void t_fill(void *buf, size_t len, unsigned int seed)
{
	static const char digits[] =
		"0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ+-";
	unsigned char *p = buf;
	size_t i;

	for (i = 0; i < len; i++) {
		seed = seed * 1664525u + 1013904223u;
		p[i] = (unsigned char)digits[seed >> 26];
	}
}
