/* SPDX-License-Identifier: MIT */
/*
 * What compiling costs: events a second and peak memory for short and long
 * traces of eight threads, and the rename of a directory with many names below
 * it. Prints one JSON object. Each compilation runs in a process of its own, so
 * that its peak memory is its own. events_per_cpu_s counts the time of all its
 * threads, so it says something on a busy machine too.
 *
 *   bench_compile [--events N] [--rounds N] [--dir DIR]
 *
 * Each thread works in a directory of its own and on one shared file: open,
 * a few positional reads and writes, stat, close; now and then a rename and an
 * unlink; every 16 rounds all of them meet at a futex.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "compile/compile.h"
#include "model/event.h"
#include "plan/plan.h"
#include "trace/writer.h"

#define NR_THREADS 8
#define NR_FILES 200 /* of each thread */

static NORETURN void die(const char *what, const struct err *err)
{
	fprintf(stderr, "bench_compile: %s: %s\n", what, err ? err->text : strerror(errno));
	exit(2);
}

static void must(int r, const char *what, const struct err *err)
{
	if (r < 0)
		die(what, err);
}

static uint64_t now_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* Making a trace. */

struct maker {
	struct trace_writer *writer;
	struct trace_feed *feed;
	struct trace_stream *streams[NR_THREADS];
	struct arena arena;
	uint64_t now_ns, nr_events;
	unsigned int thread;
};

static void put_until(struct maker *m, struct event *ev, uint64_t exit_ns)
{
	ev->pid = 100;
	ev->tid = 100 + m->thread;
	ev->enter_ns = m->now_ns;
	ev->exit_ns = exit_ns;
	m->now_ns += 1000;
	m->nr_events++;
	must(trace_feed_event(m->feed, m->streams[m->thread], ev), "event", NULL);
}

static void put(struct maker *m, struct event *ev)
{
	put_until(m, ev, m->now_ns + 900);
}

static void put_call(struct maker *m, unsigned int row, int64_t ret, const struct value *args)
{
	struct event ev = { .row = row_by_id(row), .outcome.ret = ret };

	memcpy(ev.args, args, ev.row->nr_args * sizeof(*args));
	put(m, &ev);
}

#define CALL(m, row, ret, ...)                                                                     \
	put_call(m, row, ret, (const struct value[ROW_ARGS_MAX]){ __VA_ARGS__ })

/* /b/t<thread>/<letter><n> */
static struct value path_of(struct maker *m, char letter, unsigned int n)
{
	char text[64];
	int len = snprintf(text, sizeof(text), "/b/t%u/%c%u", m->thread, letter, n);

	return value_bytes(&m->arena, arena_memdup0(&m->arena, text, (size_t)len), (size_t)len);
}

static void put_tree(struct maker *m, const char *path, unsigned int type, uint64_t size)
{
	struct item item = { .row = row_by_id(REC_tree_entry) };
	struct value *f;

	item.args[0] = value_int(0);
	item.args[1] = value_str(&m->arena, path);
	item.args[2] = value_struct(&m->arena, 0x1f); /* type, mode, uid, gid, size */
	f = item.args[2].fields->items;
	f[0] = value_uint(type);
	f[1] = value_uint(type == 2 ? 040755 : 0100644);
	f[2] = value_uint(0);
	f[3] = value_uint(0);
	f[4] = value_uint(size);
	must(trace_feed_item(m->feed, &item), "tree", NULL);
}

static void begin_thread(struct maker *m, unsigned int thread)
{
	struct event ev = { .row = row_by_id(EV_thread_start) };

	m->thread = thread;
	m->streams[thread] = trace_feed_open_stream(m->feed, 100, 100 + thread);
	ev.args[0] = value_int(thread ? 100 : 0);
	ev.args[1] = value_uint(thread ? 0x50f00 : 0); /* a thread of the same process */
	ev.args[2] = value_str(&m->arena, "bench");
	ev.args[3] = value_int(thread ? START_CLONE : START_LAUNCH);
	put(m, &ev);
}

/* Some ten events on a file of the thread's own and on the shared one. */
static void put_round(struct maker *m, uint64_t round)
{
	unsigned int n = (unsigned int)(round % NR_FILES);
	int64_t fd = 20 + m->thread;
	struct value cwd = value_int(AT_FDCWD), size = value_uint(4096);

	CALL(m, SC_openat, fd, cwd, path_of(m, 'f', n), value_uint(O_RDWR | O_CREAT),
	     value_uint(0644));
	for (unsigned int i = 0; i < 3; i++)
		CALL(m, SC_pwrite64, 4096, value_int(fd), { 0 }, size, value_int(4096 * i));
	for (unsigned int i = 0; i < 3; i++)
		CALL(m, SC_pread64, 4096, value_int(3), { 0 }, size,
		     value_int((int64_t)((round * 7 + i * 13 + m->thread) % 1000 * 4096)));
	CALL(m, SC_fstat, 0, value_int(fd));
	CALL(m, SC_close, 0, value_int(fd));
	if (round % 4 == 0) {
		CALL(m, SC_rename, 0, path_of(m, 'f', n), path_of(m, 'g', n));
		CALL(m, SC_unlink, 0, path_of(m, 'g', n));
	}
}

/* All but the last wait, the last one wakes them. */
static void put_meeting(struct maker *m)
{
	uint64_t over_ns = m->now_ns + NR_THREADS * 1000;

	for (m->thread = 0; m->thread < NR_THREADS - 1; m->thread++) {
		struct event ev = { .row = row_by_id(SC_futex_op_wait) };

		ev.args[0] = value_uint(0x1000);
		ev.args[1] = value_uint(0);
		ev.args[2] = value_uint(1);
		put_until(m, &ev, over_ns + m->thread);
	}
	CALL(m, SC_futex_op_wake, NR_THREADS - 1, value_uint(0x1000), value_uint(1),
	     value_uint(INT_MAX));
}

static void begin_trace(struct maker *m, const char *path)
{
	struct trace_writer_options o = { .replace = true };
	struct err err = { "" };
	char name[32];

	memset(m, 0, sizeof(*m));
	arena_init(&m->arena);
	must(trace_writer_open(path, &o, &m->writer, &err), path, &err);
	m->feed = trace_writer_add_feed(m->writer);
	put_tree(m, "/", 2, 0);
	put_tree(m, "/b", 2, 0);
	put_tree(m, "/b/shared", 1, 1000 * 4096);
	for (unsigned int i = 0; i < NR_THREADS; i++) {
		snprintf(name, sizeof(name), "/b/t%u", i);
		put_tree(m, name, 2, 0);
	}
}

static void end_trace(struct maker *m)
{
	struct err err = { "" };

	must(trace_writer_close(m->writer, &err), "close", &err);
	arena_release(&m->arena);
}

static void make_trace(const char *path, uint64_t nr_events)
{
	struct maker m;

	begin_trace(&m, path);
	for (unsigned int i = 0; i < NR_THREADS; i++)
		begin_thread(&m, i);
	m.thread = 0;
	CALL(&m, SC_openat, 3, value_int(AT_FDCWD), value_str(&m.arena, "/b/shared"),
	     value_uint(O_RDONLY), value_uint(0));
	for (uint64_t round = 0; m.nr_events < nr_events; round++) {
		arena_reset(&m.arena);
		m.thread = (unsigned int)(round % NR_THREADS);
		put_round(&m, round / NR_THREADS);
		if (round % (16 * NR_THREADS) == 16 * NR_THREADS - 1)
			put_meeting(&m);
	}
	end_trace(&m);
}

/* A directory with many names below it is renamed again and again. */
static void make_deep_trace(const char *path, unsigned int nr_names, unsigned int nr_renames)
{
	struct maker m;

	begin_trace(&m, path);
	begin_thread(&m, 0);
	for (unsigned int i = 0; i < nr_names; i++) {
		arena_reset(&m.arena);
		CALL(&m, SC_mkdir, 0, path_of(&m, 'n', i), value_uint(0755));
	}
	for (unsigned int i = 0; i < nr_renames; i++) {
		arena_reset(&m.arena);
		CALL(&m, SC_rename, 0, value_str(&m.arena, i & 1 ? "/b/u" : "/b/t0"),
		     value_str(&m.arena, i & 1 ? "/b/t0" : "/b/u"));
	}
	end_trace(&m);
}

/* Measuring. */

struct result {
	uint64_t wall_ns, cpu_ns, peak_bytes, plan_bytes;
	struct compile_totals totals;
};

static void compile_here(const char *trace, const char *plan, struct result *res)
{
	struct compile_options o = { .policy = order_find("root"), .rules = rules_default };
	struct plan_writer_options writer = { .replace = true, .data = PLAN_DATA_TRACE };
	struct plan_writer *w;
	struct trace *t;
	struct rusage usage;
	struct err err = { "" };
	uint64_t start_ns = now_ns(CLOCK_MONOTONIC), cpu_ns = now_ns(CLOCK_PROCESS_CPUTIME_ID);

	must(trace_open(trace, 0, &t, &err), trace, &err);
	must(plan_writer_open(plan, t, &writer, &w, &err), plan, &err);
	must(compile_trace(t, &o, w, NULL, &res->totals, &err), "compile", &err);
	must(plan_writer_close(w, &res->totals.plan, &err), plan, &err);
	trace_close(t);
	res->wall_ns = now_ns(CLOCK_MONOTONIC) - start_ns;
	res->cpu_ns = now_ns(CLOCK_PROCESS_CPUTIME_ID) - cpu_ns;
	getrusage(RUSAGE_SELF, &usage);
	res->peak_bytes = (uint64_t)usage.ru_maxrss * 1024;
	must(trace_open(plan, 0, &t, &err), plan, &err);
	res->plan_bytes = trace_file_bytes(t);
	trace_close(t);
}

static struct result compile_in_child(const char *trace, const char *plan)
{
	struct result res;
	int fds[2], status;
	pid_t pid;

	if (pipe(fds) < 0)
		die("pipe", NULL);
	pid = fork();
	if (!pid) {
		compile_here(trace, plan, &res);
		_exit(write(fds[1], &res, sizeof(res)) != sizeof(res));
	}
	close(fds[1]);
	if (read(fds[0], &res, sizeof(res)) != sizeof(res))
		die("the compilation failed", NULL);
	close(fds[0]);
	waitpid(pid, &status, 0);
	return res;
}

static int by_wall(const void *a, const void *b)
{
	const struct result *x = a, *y = b;

	return x->wall_ns < y->wall_ns ? -1 : x->wall_ns > y->wall_ns;
}

static void print_result(const char *name, struct result *res, unsigned int rounds, bool last)
{
	const struct result *mid, *best = res;
	uint64_t wrong = 0;

	qsort(res, rounds, sizeof(*res), by_wall);
	mid = &res[rounds / 2];
	for (unsigned int i = 0; i < CONTRADICTION_MAX; i++)
		wrong += mid->totals.model.contradictions[i];
	printf("  \"%s\": {\"events\": %llu, \"actions\": %llu, \"edges\": %llu, \"contradictions\": %llu,\n"
	       "    \"events_per_s\": %.0f, \"best_events_per_s\": %.0f, \"events_per_cpu_s\": %.0f, \"peak_mib\": %.1f, "
	       "\"plan_bytes_per_action\": %.1f}%s\n",
	       name, (unsigned long long)mid->totals.nr_events,
	       (unsigned long long)mid->totals.plan.nr_actions,
	       (unsigned long long)mid->totals.plan.nr_edges, (unsigned long long)wrong,
	       (double)mid->totals.nr_events * 1e9 / (double)mid->wall_ns,
	       (double)best->totals.nr_events * 1e9 / (double)best->wall_ns,
	       (double)mid->totals.nr_events * 1e9 / (double)mid->cpu_ns,
	       (double)mid->peak_bytes / (1 << 20),
	       (double)mid->plan_bytes / (double)mid->totals.plan.nr_actions, last ? "" : ",");
	fflush(stdout);
}

static void measure(const char *name, const char *trace, const char *plan, unsigned int rounds,
		    bool last)
{
	struct result *res = calloc(rounds, sizeof(*res));

	for (unsigned int i = 0; i < rounds; i++)
		res[i] = compile_in_child(trace, plan);
	print_result(name, res, rounds, last);
	free(res);
}

int main(int argc, char **argv)
{
	static const struct option options[] = { { "events", required_argument, NULL, 'e' },
						 { "rounds", required_argument, NULL, 'r' },
						 { "dir", required_argument, NULL, 'd' },
						 { 0 } };
	uint64_t most = 1000000;
	unsigned int rounds = 3;
	const char *dir = "/tmp";
	char trace[PATH_MAX], plan[PATH_MAX], name[32];
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) >= 0) {
		if (c == 'e')
			most = strtoull(optarg, NULL, 10);
		else if (c == 'r')
			rounds = (unsigned int)strtoul(optarg, NULL, 10);
		else if (c == 'd')
			dir = optarg;
		else
			return 2;
	}
	if (!rounds || most < 1000)
		return 2;
	snprintf(trace, sizeof(trace), "%s/bench_compile.%d.trace", dir, (int)getpid());
	snprintf(plan, sizeof(plan), "%s/bench_compile.%d.plan", dir, (int)getpid());
	printf("{\n");
	for (uint64_t n = most / 100; n <= most; n *= 10) {
		make_trace(trace, n);
		snprintf(name, sizeof(name), "events_%llu", (unsigned long long)n);
		measure(name, trace, plan, rounds, false);
	}
	make_deep_trace(trace, 100000, 10000);
	measure("rename_100000_below", trace, plan, rounds, true);
	printf("}\n");
	unlink(trace);
	unlink(plan);
	return 0;
}
