/* SPDX-License-Identifier: MIT */
/*
 * What the trace container costs: appending (as the calling thread sees it),
 * reading in global order, `reprise stat`, and peak memory for a short and a
 * long trace. Prints one JSON object. Each phase runs in a process of its own,
 * so that its peak memory is its own, several times; figures are the median
 * and the best round (a virtual machine pays for each page of memory that it
 * touches for the first time since it was started, which is not our cost).
 *
 *   bench_trace [--events N] [--rounds N] [--dir DIR] [--reprise PROGRAM]
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "base/err.h"
#include "base/mem.h"
#include "model/event.h"
#include "trace/reader.h"
#include "trace/writer.h"

#define NR_THREADS 16
#define DATA_BYTES 4096
#define UNIQUE_BYTES ((size_t)4 << 20)

struct result {
	uint64_t nr_events;
	uint64_t wall_ns; /* of the whole phase */
	uint64_t append_wall_ns, append_cpu_ns; /* in the calling thread, until the last append */
	uint64_t file_bytes;
	uint64_t peak_bytes;
};

struct setup {
	uint64_t nr_events;
	unsigned int nr_streams;
	enum { DATA_NO, DATA_UNIQUE, DATA_REPEATED } data;
	const char *path;
	int level;
};

static NORETURN void die(const char *what, const struct err *err)
{
	fprintf(stderr, "bench_trace: %s: %s\n", what, err ? err->text : strerror(errno));
	exit(2);
}

static uint64_t now_ns(clockid_t clock)
{
	struct timespec ts;

	clock_gettime(clock, &ts);
	return (uint64_t)ts.tv_sec * 1000000000u + (uint64_t)ts.tv_nsec;
}

/* A cached 4 KiB read in the trace of a busy program: some 64 bytes in memory as a plain struct. */
static void fill_event(struct event *ev, uint64_t i, struct data *data)
{
	static const struct row *row;

	if (!row)
		row = row_by_name("pread64");
	ev->row = row;
	ev->ppid = 1;
	ev->pgid = 1000;
	ev->enter_ns = i * 1500;
	ev->exit_ns = ev->enter_ns + 700 + (i & 255);
	ev->outcome.ret = DATA_BYTES;
	ev->args[0] = value_int((int)(3 + i % 5));
	ev->args[1].type = VALUE_DATA;
	ev->args[1].data = data;
	ev->args[2] = value_uint(DATA_BYTES);
	ev->args[3] = value_int((int64_t)((i * 7919) % 100000 * DATA_BYTES));
}

static void append_all(const struct setup *s, struct result *res)
{
	struct trace_writer_options options = { .replace = true, .level = s->level };
	struct trace_stream *streams[NR_THREADS];
	struct data data = { .len_bytes = DATA_BYTES };
	struct event ev = { 0 };
	struct trace_writer *w;
	struct trace_feed *f;
	struct err err = { "" };
	uint8_t *pool;
	uint64_t i, start, cpu;
	unsigned int n;

	pool = xmalloc(UNIQUE_BYTES);
	for (i = 0; i < UNIQUE_BYTES; i += 8)
		memcpy(pool + i, &(uint64_t){ i * 0x9e3779b97f4a7c15u }, 8);
	if (trace_writer_open(s->path, &options, &w, &err) < 0)
		die(s->path, &err);
	f = trace_writer_add_feed(w);
	for (n = 0; n < s->nr_streams; n++)
		streams[n] = trace_feed_open_stream(f, 1000, 1000 + n);
	start = now_ns(CLOCK_MONOTONIC);
	cpu = now_ns(CLOCK_THREAD_CPUTIME_ID);
	for (i = 0; i < s->nr_events; i++) {
		if (s->data != DATA_NO) {
			uint8_t *p = pool + i * DATA_BYTES % UNIQUE_BYTES;

			if (s->data == DATA_REPEATED)
				p = pool + i % 1024 * DATA_BYTES;
			else
				memcpy(p, &i, sizeof(i));
			data.bytes = p;
			data.kept_bytes = DATA_BYTES;
		}
		fill_event(&ev, i, &data);
		if (trace_feed_event(f, streams[i * 31 % s->nr_streams], &ev) < 0)
			die("append", NULL);
	}
	res->append_wall_ns = now_ns(CLOCK_MONOTONIC) - start;
	res->append_cpu_ns = now_ns(CLOCK_THREAD_CPUTIME_ID) - cpu;
	if (trace_writer_close(w, &err) < 0)
		die(s->path, &err);
	res->nr_events = s->nr_events;
	free(pool);
}

static void read_all(const struct setup *s, struct result *res)
{
	struct trace_query q = { 0 };
	struct trace_iter *it;
	struct trace *t;
	struct err err = { "" };
	struct event *ev;
	int r;

	if (trace_open(s->path, 0, &t, &err) < 0 || trace_iter_open(t, &q, &it, &err) < 0)
		die(s->path, &err);
	while ((r = trace_iter_next(it, &ev, &err)) == 1)
		res->nr_events++;
	if (r < 0)
		die(s->path, &err);
	trace_iter_close(it);
	trace_close(t);
}

static const char *program = "reprise";

static void stat_all(const struct setup *s, struct result *res)
{
	int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

	(void)res;
	if (null < 0 || dup2(null, 1) < 0)
		die("/dev/null", NULL);
	execlp(program, program, "stat", "--json", s->path, (char *)NULL);
	die(program, NULL);
}

/* Runs a phase in a child and returns what it measured, with its peak memory. */
static struct result run(void (*phase)(const struct setup *, struct result *), struct setup s)
{
	struct result *shared = mmap(NULL, sizeof(*shared), PROT_READ | PROT_WRITE,
				     MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	struct result res;
	struct rusage ru;
	struct stat st;
	uint64_t start = now_ns(CLOCK_MONOTONIC);
	int status;
	pid_t pid;

	if (shared == MAP_FAILED)
		die("mmap", NULL);
	pid = fork();
	if (!pid) {
		phase(&s, shared);
		_exit(0);
	}
	if (pid < 0 || wait4(pid, &status, 0, &ru) < 0 || status)
		die("a phase failed", NULL);
	res = *shared;
	res.wall_ns = now_ns(CLOCK_MONOTONIC) - start;
	res.peak_bytes = (uint64_t)ru.ru_maxrss * 1024;
	if (!stat(s.path, &st))
		res.file_bytes = (uint64_t)st.st_size;
	munmap(shared, sizeof(*shared));
	return res;
}

static double per(uint64_t ns, uint64_t nr)
{
	return nr ? (double)ns / (double)nr : 0;
}

static unsigned int nr_rounds = 5;

/* By what the phase is about: the time until the last append, or that of the whole phase. */
static int by_time(const void *a, const void *b)
{
	const struct result *x = a, *y = b;
	uint64_t s = x->append_wall_ns ? x->append_wall_ns : x->wall_ns;
	uint64_t t = y->append_wall_ns ? y->append_wall_ns : y->wall_ns;

	return s < t ? -1 : s > t;
}

static struct result *run_rounds(void (*phase)(const struct setup *, struct result *),
				 const struct setup *s)
{
	struct result *rounds = xcalloc(nr_rounds, sizeof(*rounds));
	unsigned int i;

	for (i = 0; i < nr_rounds; i++)
		rounds[i] = run(phase, *s);
	qsort(rounds, nr_rounds, sizeof(*rounds), by_time);
	return rounds;
}

static void print_append(const char *name, struct setup s)
{
	struct result *rounds = run_rounds(append_all, &s), r = rounds[nr_rounds / 2];

	printf("  \"%s\": {\"events\": %llu, \"ns_per_event\": %.1f, \"ns_per_event_best\": %.1f, "
	       "\"cpu_ns_per_event\": %.1f, \"file_bytes_per_event\": %.1f, "
	       "\"peak_memory_bytes\": %llu},\n",
	       name, (unsigned long long)r.nr_events, per(r.append_wall_ns, r.nr_events),
	       per(rounds[0].append_wall_ns, r.nr_events), per(r.append_cpu_ns, r.nr_events),
	       per(r.file_bytes, r.nr_events), (unsigned long long)r.peak_bytes);
	fflush(stdout);
	free(rounds);
}

/* How long hashing alone and copying alone take for the same data: what bounds the figures above. */
static void print_floor(void)
{
	uint8_t *pool = xmalloc(UNIQUE_BYTES), *to = xmalloc((size_t)8 << 20);
	uint64_t i, start, sum = 0, nr = 200000;
	double hash, copy;

	memset(pool, 7, UNIQUE_BYTES);
	memset(to, 1, (size_t)8 << 20);
	start = now_ns(CLOCK_MONOTONIC);
	for (i = 0; i < nr; i++)
		sum += hash_bytes(pool + i * DATA_BYTES % UNIQUE_BYTES, DATA_BYTES).low;
	hash = per(now_ns(CLOCK_MONOTONIC) - start, nr);
	start = now_ns(CLOCK_MONOTONIC);
	for (i = 0; i < nr; i++)
		memcpy(to + i * DATA_BYTES % ((size_t)8 << 20),
		       pool + i * DATA_BYTES % UNIQUE_BYTES, DATA_BYTES);
	copy = per(now_ns(CLOCK_MONOTONIC) - start, nr);
	printf("  \"floor\": {\"hash_4k_ns\": %.1f, \"copy_4k_ns\": %.1f, \"check\": %u},\n", hash,
	       copy, (unsigned int)(sum + to[5]) & 1);
	free(pool);
	free(to);
}

static void print_read(const char *name, struct setup s,
		       void (*phase)(const struct setup *, struct result *), const char *end)
{
	struct result *rounds = run_rounds(phase, &s), r = rounds[nr_rounds / 2];

	printf("  \"%s\": {\"events\": %llu, \"events_per_second\": %.0f, "
	       "\"events_per_second_best\": %.0f, \"peak_memory_bytes\": %llu}%s\n",
	       name, (unsigned long long)s.nr_events, (double)s.nr_events * 1e9 / (double)r.wall_ns,
	       (double)s.nr_events * 1e9 / (double)rounds[0].wall_ns,
	       (unsigned long long)r.peak_bytes, end);
	fflush(stdout);
	free(rounds);
}

static unsigned int atoi_rounds(const char *s)
{
	unsigned long n = strtoul(s, NULL, 10);

	return n < 1000 ? (unsigned int)n : 0;
}

int main(int argc, char **argv)
{
	static const struct option longs[] = { { "events", required_argument, NULL, 'n' },
					       { "rounds", required_argument, NULL, 'r' },
					       { "dir", required_argument, NULL, 'd' },
					       { "reprise", required_argument, NULL, 'p' },
					       { 0 } };
	const char *dir = "/tmp";
	struct setup s = { .nr_events = 1000000 };
	char path[4096];
	uint64_t n;
	int c;

	while ((c = getopt_long(argc, argv, "", longs, NULL)) >= 0) {
		if (c == 'n')
			s.nr_events = strtoull(optarg, NULL, 0);
		else if (c == 'r' && atoi_rounds(optarg))
			nr_rounds = atoi_rounds(optarg);
		else if (c == 'd')
			dir = optarg;
		else if (c == 'p')
			program = optarg;
		else
			return 2;
	}
	snprintf(path, sizeof(path), "%s/bench_trace.%d.trace", dir, (int)getpid());
	s.path = path;
	n = s.nr_events;
	printf("{\n");
	print_floor();
	s.nr_streams = 1;
	print_append("append_no_data", s);
	s.data = DATA_REPEATED;
	print_append("append_4k_repeated", s);
	s.data = DATA_UNIQUE;
	s.nr_events = n / 4;
	print_append("append_4k_unique", s);
	/* Short enough for the writer's batches: what a burst costs that the disk need not follow. */
	s.nr_events = 1200;
	print_append("append_4k_unique_burst", s);
	s.data = DATA_NO;
	s.nr_streams = NR_THREADS;
	s.nr_events = n;
	print_append("append_16_threads", s);
	print_read("read_16_threads", s, read_all, ",");
	print_read("stat_16_threads", s, stat_all, ",");
	s.nr_events = n * 10;
	print_append("append_16_threads_10x", s);
	print_read("read_16_threads_10x", s, read_all, ",");
	print_read("stat_16_threads_10x", s, stat_all, "");
	printf("}\n");
	unlink(path);
	return 0;
}
