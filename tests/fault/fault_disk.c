/* SPDX-License-Identifier: MIT */
/*
 * A disk that is full. The writer must say so, and leave a file that ends with a
 * whole block and holds the first events of every thread; when it reserves room,
 * all that it took, closed and with a ledger. Speaks TAP itself: a test that
 * needs a mount may have to be skipped.
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/attrs.h"
#include "base/banned.h"
#include "base/buf.h"
#include "sample.h"
#include "scratch.h"
#include "trace/check.h"
#include "trace/reader.h"
#include "trace/writer.h"

#define NR_STREAMS 3

static unsigned int nr_cases, nr_failed;
static struct buf fault; /* why the case at hand fails; empty: it does not */

PRINTF_LIKE(1, 2) static void fail(const char *fmt, ...)
{
	va_list ap;

	if (fault.len)
		return;
	va_start(ap, fmt);
	buf_vprintf(&fault, fmt, ap);
	va_end(ap);
}

#define REQUIRE(x)                                                                                 \
	do {                                                                                       \
		if (!(x))                                                                          \
			fail("line %d: %s", __LINE__, #x);                                         \
	} while (0)

static void report(const char *name, const char *skip)
{
	nr_cases++;
	if (skip) {
		printf("ok %u - %s # SKIP %s\n", nr_cases, name, skip);
	} else if (fault.len) {
		printf("not ok %u - %s\n# %s\n", nr_cases, name, buf_str(&fault));
		nr_failed++;
	} else {
		printf("ok %u - %s\n", nr_cases, name);
	}
	buf_clear(&fault);
}

/* How to write a trace. */
struct load {
	bool reserve;
	const char *path;
	uint64_t nr_events; /* of each stream */
	unsigned int flush_every;
	size_t extra_bytes; /* of new data with each event */
};

static void make_event(const struct load *l, struct arena *a, uint32_t tid, uint64_t n,
		       struct event *ret)
{
	struct rng r = { tid * 100000 + n };
	uint8_t *p;

	sample_event(a, tid, n, ret);
	if (!l->extra_bytes || ret->row->id != SC_write)
		return;
	p = arena_alloc(a, l->extra_bytes);
	rng_fill(&r, p, l->extra_bytes);
	ret->args[1] = value_bytes(a, p, l->extra_bytes);
}

static uint64_t nr_taken[NR_STREAMS]; /* events that the writer took, of each stream */

static int append_all(const struct load *l, struct trace_feed *f)
{
	struct trace_stream *s[NR_STREAMS];
	struct arena a;
	uint64_t n;
	uint32_t i;
	int r = 0;

	arena_init(&a);
	for (i = 0; i < NR_STREAMS; i++) {
		s[i] = trace_feed_open_stream(f, 100, i + 1);
		nr_taken[i] = 0;
	}
	for (n = 0; n < l->nr_events && !r; n++) {
		for (i = 0; i < NR_STREAMS && !r; i++) {
			struct event ev;

			arena_reset(&a);
			make_event(l, &a, i + 1, n, &ev);
			r = trace_feed_event(f, s[i], &ev);
			nr_taken[i] += !r;
		}
		if (!r && n % l->flush_every == 0)
			r = trace_feed_flush(f);
	}
	arena_release(&a);
	return r;
}

/* The failure that the writer reports, after a look at how it reports it; 0 when there is none. */
static int write_trace(const struct load *l)
{
	const struct trace_writer_options options = { .replace = true, .reserve = l->reserve };
	struct trace_writer *w;
	struct trace_feed *f;
	struct err err = { "" };
	int first, r = trace_writer_open(l->path, &options, &w, &err);

	if (r < 0) {
		REQUIRE(strstr(err.text, l->path) && strstr(err.text, strerror(-r)));
		return r;
	}
	f = trace_writer_add_feed(w);
	first = append_all(l, f);
	if (first) {
		struct event ev = { .row = row_by_id(SC_close) };

		/* From then on, everything fails in the same way. */
		REQUIRE(trace_feed_event(f, trace_feed_open_stream(f, 1, 9), &ev) == first);
		r = trace_feed_meta(f, "key", "value");
		REQUIRE(r == first || (l->reserve && !r));
		REQUIRE(trace_feed_flush(f) == first);
		REQUIRE(trace_writer_sync(w, &err) == first);
		REQUIRE(strstr(err.text, l->path) && strstr(err.text, strerror(-first)));
		err.text[0] = 0;
	}
	r = trace_writer_close(w, &err);
	if (first)
		REQUIRE(r == first);
	if (r)
		REQUIRE(strstr(err.text, l->path) && strstr(err.text, strerror(-r)));
	return r;
}

static void read_back(const struct load *l, struct trace *t, uint64_t at_least)
{
	uint64_t n[NR_STREAMS] = { 0 };
	struct trace_iter *it;
	struct event *ev;
	struct arena a;
	struct err err = { "" };
	int r = trace_iter_open(t, &(struct trace_query){ 0 }, &it, &err);

	arena_init(&a);
	while (!r && (r = trace_iter_next(it, &ev, &err)) == 1) {
		struct hash128 got, wanted_hash;
		struct event wanted;

		arena_reset(&a);
		make_event(l, &a, ev->tid, n[(ev->tid - 1) % NR_STREAMS]++, &wanted);
		r = sample_digest_event(t, ev, &got, &err);
		if (!r)
			r = sample_digest_event(t, &wanted, &wanted_hash, &err);
		REQUIRE(!r && hash_equal(got, wanted_hash));
	}
	if (r < 0)
		fail("%s", err.text);
	REQUIRE(n[0] >= at_least);
	trace_iter_close(it);
	arena_release(&a);
}

/* Readable up to the last finished block, and nothing behind that. */
static void read_partial(const struct load *l)
{
	struct check_result c;
	struct err err = { "" };
	struct stat st;
	struct trace *t;
	int r;

	if (stat(l->path, &st) < 0 && errno == ENOENT)
		return; /* there was no room for the first blocks */
	r = trace_open(l->path, 0, &t, &err);
	if (r < 0) {
		fail("%s", err.text);
		return;
	}
	read_back(l, t, 0);
	REQUIRE(trace_tail(t, &err) == 1);
	trace_close(t);
	REQUIRE(!trace_check(l->path, NULL, &c, &err));
	REQUIRE(!c.nr_bad_blocks && !c.nr_dangling && !c.nr_bad_blobs);
}

static void read_whole(const struct load *l)
{
	struct check_result c;
	struct err err = { "" };
	struct trace *t;

	REQUIRE(!trace_check(l->path, NULL, &c, &err) && check_ok(&c));
	REQUIRE(!trace_open(l->path, 0, &t, &err));
	if (fault.len)
		return;
	read_back(l, t, l->nr_events);
	trace_close(t);
}

/* All that was taken, closed, and with a ledger when there was more. */
static void read_taken(const struct load *l, bool more)
{
	uint64_t n[NR_STREAMS] = { 0 };
	struct check_result c;
	struct trace_iter *it = NULL;
	struct err err = { "" };
	struct event *ev;
	struct trace *t;
	unsigned int i;
	int r;

	REQUIRE(!trace_check(l->path, NULL, &c, &err));
	REQUIRE(!c.nr_bad_blocks && !c.nr_dangling && !c.nr_bad_blobs);
	REQUIRE(check_intact(&c) && check_ok(&c) == !more);
	if (trace_open(l->path, 0, &t, &err) < 0) {
		fail("%s", err.text);
		return;
	}
	REQUIRE(trace_tail(t, &err) == 0);
	read_back(l, t, 0);
	r = trace_iter_open(t, &(struct trace_query){ 0 }, &it, &err);
	while (!r && (r = trace_iter_next(it, &ev, &err)) == 1) {
		n[(ev->tid - 1) % NR_STREAMS]++;
		r = 0;
	}
	for (i = 0; i < NR_STREAMS; i++) {
		if (n[i] != nr_taken[i])
			fail("stream %u: %llu events of %llu", i, (unsigned long long)n[i],
			     (unsigned long long)nr_taken[i]);
	}
	trace_iter_close(it);
	trace_close(t);
}

static void limit_file_size(rlim_t bytes)
{
	struct rlimit limit;

	REQUIRE(!getrlimit(RLIMIT_FSIZE, &limit));
	limit.rlim_cur = bytes;
	REQUIRE(!setrlimit(RLIMIT_FSIZE, &limit));
}

/* The limit is that of the process, so that other files of the test obey it too. */
static int write_limited(const struct load *l, rlim_t bytes)
{
	int r;

	limit_file_size(bytes);
	r = write_trace(l);
	limit_file_size(RLIM_INFINITY);
	return r;
}

static void test_limits(const struct load *l, uint64_t step_bytes)
{
	unsigned int nr_refused = 0;
	struct stat st;
	rlim_t limit;
	int r = -EFBIG;

	for (limit = 0; r && !fault.len; limit += step_bytes) {
		r = write_limited(l, limit);
		if (r) {
			REQUIRE(r == -EFBIG);
			REQUIRE(stat(l->path, &st) < 0 || (rlim_t)st.st_size <= limit);
			REQUIRE(limit > 1000 || access(l->path, F_OK) < 0);
			read_partial(l);
			nr_refused++;
		}
	}
	if (fault.len)
		return;
	read_whole(l);
	REQUIRE(nr_refused > 20);
}

static void test_reserved_limits(const struct load *l, uint64_t step_bytes)
{
	unsigned int nr_refused = 0;
	struct stat st;
	rlim_t limit;
	int r = -EFBIG;

	for (limit = 0; r && !fault.len; limit += step_bytes) {
		r = write_limited(l, limit);
		if (!r || access(l->path, F_OK) < 0)
			continue; /* there was no room for the first blocks */
		REQUIRE(r == -EFBIG);
		REQUIRE(!stat(l->path, &st) && (rlim_t)st.st_size <= limit);
		read_taken(l, true);
		/* What it does not need it has given back, but for a part of a page. */
		REQUIRE((uint64_t)st.st_blocks * 512 < (uint64_t)st.st_size + 2 * 65536);
		nr_refused += nr_taken[0] > 0;
	}
	if (fault.len)
		return;
	read_taken(l, false);
	REQUIRE(nr_refused > 20);
}

/* One feed that runs far ahead of the failure must not wait for ever. */
static void test_much_data(void)
{
	const struct load l = { .path = scratch_path("much.trace"),
				.nr_events = 3000,
				.flush_every = 100000,
				.extra_bytes = 40000 };

	REQUIRE(write_limited(&l, 3 << 20) == -EFBIG);
	read_partial(&l);
}

static void test_abandon_after_failure(void)
{
	const struct trace_writer_options options = { .replace = true };
	const struct load l = { .path = scratch_path("abandoned.trace"),
				.nr_events = 1000,
				.flush_every = 1 };
	struct trace_writer *w;
	struct err err = { "" };

	REQUIRE(!trace_writer_open(l.path, &options, &w, &err));
	limit_file_size(64 << 10);
	REQUIRE(append_all(&l, trace_writer_add_feed(w)) == -EFBIG);
	limit_file_size(RLIM_INFINITY);
	trace_writer_abandon(w);
	read_partial(&l);
}

/* In a mount namespace of its own, so that nothing stays mounted. */
static const char *mount_small(const char *dir)
{
	if (mkdir(dir, 0700) < 0 && errno != EEXIST)
		return "cannot make a directory";
	if (unshare(CLONE_NEWNS) < 0 && unshare(CLONE_NEWUSER | CLONE_NEWNS) < 0)
		return "no mount namespaces here";
	if (mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
	    mount("none", dir, "tmpfs", 0, "size=200k") < 0)
		return "mount is not allowed";
	return NULL;
}

static const char *fill_disk(void)
{
	const char *skip = mount_small(scratch_path("disk"));
	struct load l = { .path = scratch_path("disk/full.trace"),
			  .nr_events = 20000,
			  .flush_every = 5,
			  .extra_bytes = 3000 };

	if (skip)
		return skip;
	for (l.extra_bytes = 0; l.extra_bytes <= 3000; l.extra_bytes += 100) {
		l.reserve = true;
		REQUIRE(write_trace(&l) == -ENOSPC);
		read_taken(&l, true);
	}
	l.extra_bytes = 3000;
	l.reserve = false;
	REQUIRE(write_trace(&l) == -ENOSPC);
	read_partial(&l);
	/* No more room at all: not even for the first blocks. */
	REQUIRE(!rename(l.path, scratch_path("disk/rest")));
	l.extra_bytes = 0;
	while (!fault.len && write_trace(&l) != -ENOSPC)
		;
	read_partial(&l);
	return NULL;
}

/* Some file systems cannot reserve: then it is as if nobody had asked for it. */
static const char *reserve_nothing(void)
{
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_fallocate, 0, 1),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EOPNOTSUPP),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
	};
	struct sock_fprog program = { .len = 4, .filter = code };
	struct load l = { .path = scratch_path("disk/limited.trace"),
			  .nr_events = 300,
			  .flush_every = 5,
			  .extra_bytes = 3000 };

	if ((mkdir(scratch_path("disk"), 0700) < 0 && errno != EEXIST) ||
	    prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) < 0)
		return "no seccomp filters here";
	l.reserve = true;
	REQUIRE(!write_trace(&l));
	read_taken(&l, false);
	limit_file_size(200 << 10);
	REQUIRE(write_trace(&l) == -EFBIG);
	limit_file_size(RLIM_INFINITY);
	read_partial(&l);
	(void)unlink(l.path);
	return NULL;
}

/* In a child, which tells by its status and a pipe how it went; a namespace ends with it. */
static void test_in_child(const char *name, const char *(*run)(void))
{
	char words[512];
	ssize_t len;
	int fds[2], status;
	pid_t pid;

	(void)scratch_path("disk"); /* the directory is the parent's to remove */
	(void)fflush(stdout);
	if (pipe(fds) < 0 || (pid = fork()) < 0) {
		fail("fork: %s", strerror(errno));
		report(name, NULL);
		return;
	}
	if (!pid) {
		const char *skip = run();
		const char *text = skip ? skip : buf_str(&fault);

		(void)!write(fds[1], text, strlen(text)); /* the status tells the rest */
		_exit(skip ? 2 : fault.len ? 1 : 0);
	}
	(void)close(fds[1]);
	len = read(fds[0], words, sizeof(words) - 1);
	words[len > 0 ? len : 0] = 0;
	(void)close(fds[0]);
	if (waitpid(pid, &status, 0) < 0 || !WIFEXITED(status))
		fail("the child died: status %d", status);
	else if (WEXITSTATUS(status) == 1)
		fail("%s", words);
	report(name, WIFEXITED(status) && WEXITSTATUS(status) == 2 ? words : NULL);
}

int main(void)
{
	const struct load blocks = { .path = scratch_path("blocks.trace"),
				     .nr_events = 60,
				     .flush_every = 2 };
	const struct load batches = { .path = scratch_path("batches.trace"),
				      .nr_events = 400,
				      .flush_every = 50,
				      .extra_bytes = 5000 };

	struct load reserved_blocks = blocks, reserved_batches = batches;

	reserved_blocks.reserve = reserved_batches.reserve = true;
	reserved_blocks.nr_events = 400;
	printf("1..8\n");
	(void)signal(SIGXFSZ, SIG_IGN); /* so that the limit shows as EFBIG */
	test_limits(&blocks, 509);
	report("any room, many small blocks", NULL);
	test_limits(&batches, 30011);
	report("any room, few large batches", NULL);
	test_much_data();
	report("much data", NULL);
	test_abandon_after_failure();
	report("abandoned after a failure", NULL);
	test_reserved_limits(&reserved_blocks, 1021);
	report("any room, reserved, many small blocks", NULL);
	test_reserved_limits(&reserved_batches, 30011);
	report("any room, reserved, few large batches", NULL);
	test_in_child("no room can be reserved", reserve_nothing);
	test_in_child("full disk", fill_disk);
	buf_release(&fault);
	return nr_failed ? 1 : 0;
}
