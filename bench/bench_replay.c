/* SPDX-License-Identifier: MIT */
/*
 * What replay itself costs: cached reads against a loop written by hand, the
 * machinery without calls, satisfied edges, hand-overs against a bare futex, how
 * late actions are that have a time, and memory.
 * Prints one JSON object. Rounds take turns; figures are medians and the best
 * round.
 *
 *   bench_replay [--rounds N] [--actions N] [--memory ACTIONS] [--dir DIR]
 *
 * --memory: up to so many actions, from a hundredth of it on; 0: not at all.
 */
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <linux/futex.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/json.h"
#include "base/mem.h"
#include "plan_text.h"
#include "replay/run.h"

#define ROUNDS_MAX 100
#define FILE_BYTES ((uint64_t)16 << 20)
#define NR_HANDOVERS 4000

static uint64_t nr_rounds = 7, nr_actions = 40000, max_memory_actions = 1000000;
static const char *dir = "/tmp";
static char tree[PATH_MAX - 64], plan[PATH_MAX];

static NORETURN void die(const char *what, const char *why)
{
	fprintf(stderr, "bench_replay: %s: %s\n", what, why);
	exit(2);
}

struct figure {
	double values[ROUNDS_MAX];
};

static int compare_double(const void *a, const void *b)
{
	double x = *(const double *)a, y = *(const double *)b;

	return x < y ? -1 : x > y;
}

static void put_figure(struct json *w, const char *key, struct figure *f)
{
	qsort(f->values, nr_rounds, sizeof(double), compare_double);
	json_key(w, key);
	json_object_begin(w);
	json_kv_double(w, "median", f->values[nr_rounds / 2]);
	json_kv_double(w, "best", f->values[0]);
	json_object_end(w);
}

static double median(struct figure *f)
{
	qsort(f->values, nr_rounds, sizeof(double), compare_double);
	return f->values[nr_rounds / 2];
}

/* Elapsed and CPU of the lanes, in ns for each of so many actions. */
static struct run_result *run_plan(const struct run_options *o)
{
	const char *plans[] = { plan };
	struct run_result *res;
	struct err err = { "" };

	if (run_perform(plans, 1, tree, o, NULL, &res, &err) < 0)
		die("replay", err.text);
	if (res->end != RUN_COMPLETE || res->nr_mismatches)
		die("replay", "it was not faithful");
	return res;
}

/* How reads are made, besides the usual. */
enum how { PLAIN, BATCHED, NO_COPY, NR_HOWS };

static void replay_how(const char *engine, enum how how, uint64_t nr, double *ret_wall,
		       double *ret_cpu)
{
	struct run_options o = { .engine = engine,
				 .speed = RUN_AFAP,
				 .verify = RUN_VERIFY_OUTCOME,
				 .batch_reads = how == BATCHED,
				 .no_copy_reads = how == NO_COPY };
	struct run_result *res = run_plan(&o);

	*ret_wall = (double)res->elapsed_ns / (double)nr;
	*ret_cpu = (double)res->lane_cpu_ns / (double)nr;
	run_result_free(res);
}

static void replay(const char *engine, uint64_t nr, double *ret_wall, double *ret_cpu)
{
	replay_how(engine, PLAIN, nr, ret_wall, ret_cpu);
}

static uint64_t offset_of(uint64_t thread, uint64_t i, uint64_t size)
{
	return (thread * 104729 + i * 7919) % (FILE_BYTES / size) * size;
}

/* (b) */

static void write_null_plan(bool edges)
{
	struct plan_text *p = plan_text_new(plan, 4);
	char line[256];
	uint64_t i;

	plan_text_add(p, "0 close(fd=3) = 0");
	for (i = 0; i < nr_actions; i++) {
		snprintf(line, sizeof(line), "1 %spread64(fd=1, count=4096, offset=%llu) = 4096",
			 edges ? "<0:0 " : "", (unsigned long long)offset_of(0, i, 4096));
		plan_text_add(p, line);
	}
	plan_text_close(p);
}

static void bench_machinery(struct json *w)
{
	struct figure none, edge;
	double wall;
	uint64_t i;

	for (i = 0; i < nr_rounds; i++) {
		write_null_plan(false);
		replay("null", nr_actions, &wall, &none.values[i]);
		write_null_plan(true);
		replay("null", nr_actions, &wall, &edge.values[i]);
	}
	json_key(w, "machinery");
	json_object_begin(w);
	put_figure(w, "cpu_ns_per_action", &none);
	put_figure(w, "cpu_ns_per_action_with_edge", &edge);
	json_kv_double(w, "cpu_ns_per_satisfied_edge", median(&edge) - median(&none));
	json_object_end(w);
}

/* (c) */

static void write_handover_plan(unsigned int nr_lanes)
{
	struct plan_text *p = plan_text_new(plan, 4);
	char line[256];
	unsigned int i;

	for (i = 0; i < NR_HANDOVERS; i++) {
		unsigned int lane = i % nr_lanes, before = (i + nr_lanes - 1) % nr_lanes;

		if (i)
			snprintf(line, sizeof(line), "%u <%u:%u close(fd=1) = 0", lane, before,
				 (i - 1) / nr_lanes);
		else
			snprintf(line, sizeof(line), "0 close(fd=1) = 0");
		plan_text_add(p, line);
	}
	plan_text_close(p);
}

struct player {
	_Alignas(64) _Atomic uint32_t go;
	struct player *next;
	unsigned int rounds;
};

static void *play(void *arg)
{
	struct player *p = arg;
	unsigned int i;

	for (i = 0; i < p->rounds; i++) {
		while (atomic_load(&p->go) != i + 1)
			(void)syscall(SYS_futex, &p->go, FUTEX_WAIT_PRIVATE, i, NULL, NULL, 0);
		/* The first player is a round ahead. */
		atomic_fetch_add(&p->next->go, 1);
		(void)syscall(SYS_futex, &p->next->go, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	}
	return NULL;
}

/* A token goes round through bare futexes: ns for each hand-over. */
static double bare_futex(unsigned int nr)
{
	struct player *players = aligned_alloc(64, nr * sizeof(*players));
	pthread_t *threads = xcalloc(nr, sizeof(*threads));
	unsigned int i, rounds = NR_HANDOVERS / nr;
	uint64_t begin_ns, ns;

	memset((void *)players, 0, nr * sizeof(*players));
	for (i = 0; i < nr; i++) {
		players[i].next = &players[(i + 1) % nr];
		players[i].rounds = rounds;
		if (pthread_create(&threads[i], NULL, play, &players[i]))
			die("thread", strerror(errno));
	}
	(void)usleep(20000); /* until all sleep */
	begin_ns = clock_monotonic_ns();
	atomic_store(&players[0].go, 1);
	(void)syscall(SYS_futex, &players[0].go, FUTEX_WAKE_PRIVATE, 1, NULL, NULL, 0);
	for (i = 0; i < nr; i++)
		(void)pthread_join(threads[i], NULL);
	ns = clock_monotonic_ns() - begin_ns;
	free(players);
	free(threads);
	return (double)ns / (rounds * nr);
}

static void bench_handover(struct json *w)
{
	static const unsigned int lanes[] = { 2, 4, 16, 64 };
	size_t k;

	json_key(w, "handover");
	json_array_begin(w);
	for (k = 0; k < ARRAY_LEN(lanes); k++) {
		struct figure ours, bare;
		double cpu;
		uint64_t i;

		write_handover_plan(lanes[k]);
		for (i = 0; i < nr_rounds; i++) {
			replay("null", NR_HANDOVERS, &ours.values[i], &cpu);
			bare.values[i] = bare_futex(lanes[k]);
		}
		json_object_begin(w);
		json_kv_u64(w, "lanes", lanes[k]);
		put_figure(w, "ns", &ours);
		put_figure(w, "bare_futex_ns", &bare);
		json_kv_double(w, "ratio", median(&ours) / median(&bare));
		json_object_end(w);
	}
	json_array_end(w);
}

/* (a) */

struct reader {
	pthread_t thread;
	uint64_t number, nr, size;
	int fd;
	void *buf;
	pthread_barrier_t *start;
	uint64_t cpu_ns;
};

static uint64_t cpu_now_ns(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

static void *read_loop(void *arg)
{
	struct reader *r = arg;
	uint64_t i, cpu_ns;

	(void)pthread_barrier_wait(r->start);
	cpu_ns = cpu_now_ns();
	for (i = 0; i < r->nr; i++)
		if (pread(r->fd, r->buf, r->size, (off_t)offset_of(r->number, i, r->size)) !=
		    (ssize_t)r->size)
			die("pread", strerror(errno));
	r->cpu_ns = cpu_now_ns() - cpu_ns;
	return NULL;
}

static void read_by_hand(unsigned int nr_threads, uint64_t nr, uint64_t size, double *ret_wall,
			 double *ret_cpu)
{
	struct reader *readers = xcalloc(nr_threads, sizeof(*readers));
	pthread_barrier_t start;
	char path[PATH_MAX];
	uint64_t begin_ns, cpu_ns = 0;
	unsigned int i;

	snprintf(path, sizeof(path), "%s/data", tree);
	(void)pthread_barrier_init(&start, NULL, nr_threads + 1);
	for (i = 0; i < nr_threads; i++) {
		readers[i] =
			(struct reader){ .number = i, .nr = nr, .size = size, .start = &start };
		readers[i].fd = open(path, O_RDONLY | O_CLOEXEC);
		readers[i].buf = aligned_alloc(4096, size < 4096 ? 4096 : size);
		memset(readers[i].buf, 0, size);
		if (readers[i].fd < 0 ||
		    pthread_create(&readers[i].thread, NULL, read_loop, &readers[i]))
			die(path, strerror(errno));
	}
	(void)pthread_barrier_wait(&start);
	begin_ns = clock_monotonic_ns();
	for (i = 0; i < nr_threads; i++) {
		(void)pthread_join(readers[i].thread, NULL);
		(void)close(readers[i].fd);
		free(readers[i].buf);
		cpu_ns += readers[i].cpu_ns;
	}
	*ret_wall = (double)(clock_monotonic_ns() - begin_ns) / (double)(nr * nr_threads);
	*ret_cpu = (double)cpu_ns / (double)(nr * nr_threads);
	(void)pthread_barrier_destroy(&start);
	free(readers);
}

static void write_read_plan(unsigned int nr_lanes, uint64_t nr, uint64_t size)
{
	struct plan_text *p = plan_text_new(plan, nr_lanes + 1);
	char line[256];
	unsigned int lane;
	uint64_t i;

	for (lane = 0; lane < nr_lanes; lane++) {
		snprintf(line, sizeof(line),
			 "%u openat(dirfd=AT_FDCWD, path=\"/data\", flags=O_RDONLY, mode=0) = %u",
			 lane, lane);
		plan_text_add(p, line);
		for (i = 0; i < nr; i++) {
			snprintf(line, sizeof(line),
				 "%u pread64(fd=%u, count=%llu, offset=%llu) = %llu", lane, lane,
				 (unsigned long long)size,
				 (unsigned long long)offset_of(lane, i, size),
				 (unsigned long long)size);
			plan_text_add(p, line);
		}
	}
	plan_text_close(p);
}

static void bench_read(struct json *w, uint64_t size, unsigned int nr_threads)
{
	static const char *const names[NR_HOWS] = { "plain", "batched", "no_copy" };
	struct figure ours[NR_HOWS], hand, ours_cpu[NR_HOWS], hand_cpu;
	uint64_t i, nr = nr_actions / nr_threads;
	enum how how;

	write_read_plan(nr_threads, nr, size);
	for (i = 0; i < nr_rounds; i++) {
		read_by_hand(nr_threads, nr, size, &hand.values[i], &hand_cpu.values[i]);
		for (how = PLAIN; how < NR_HOWS; how++)
			replay_how("sys", how, nr * nr_threads, &ours[how].values[i],
				   &ours_cpu[how].values[i]);
	}
	json_object_begin(w);
	json_kv_u64(w, "bytes", size);
	json_kv_u64(w, "threads", nr_threads);
	put_figure(w, "by_hand_ns", &hand);
	put_figure(w, "by_hand_cpu_ns", &hand_cpu);
	for (how = PLAIN; how < NR_HOWS; how++) {
		json_key(w, names[how]);
		json_object_begin(w);
		put_figure(w, "ns", &ours[how]);
		put_figure(w, "cpu_ns", &ours_cpu[how]);
		json_kv_double(w, "ratio", median(&ours[how]) / median(&hand));
		json_kv_double(w, "cpu_ratio", median(&ours_cpu[how]) / median(&hand_cpu));
		json_kv_double(w, "best_cpu_ratio", ours_cpu[how].values[0] / hand_cpu.values[0]);
		json_object_end(w);
	}
	json_object_end(w);
}

static void bench_reads(struct json *w)
{
	static const uint64_t sizes[] = { 1024, 4096, 65536 };
	static const unsigned int threads[] = { 1, 2, 4, 8 };
	size_t s, t;

	json_key(w, "reads");
	json_array_begin(w);
	for (s = 0; s < ARRAY_LEN(sizes); s++) {
		for (t = 0; t < ARRAY_LEN(threads); t++) {
			bench_read(w, sizes[s], threads[t]);
		}
	}
	json_array_end(w);
}

/* (d) */

static void write_timed_plan(uint64_t per_second, uint64_t nr)
{
	struct plan_text *p = plan_text_new(plan, 4);
	char line[256];
	uint64_t i;

	for (i = 0; i < nr; i++) {
		snprintf(line, sizeof(line), "0 1/1 #%llu %llu+100 close(fd=1) = 0",
			 (unsigned long long)i + 1,
			 (unsigned long long)(i * NS_PER_S / per_second));
		plan_text_add(p, line);
	}
	plan_text_close(p);
}

static void bench_lateness(struct json *w)
{
	static const uint64_t rates[] = { 1000, 10000, 50000 };
	size_t k;

	json_key(w, "lateness");
	json_array_begin(w);
	for (k = 0; k < ARRAY_LEN(rates); k++) {
		struct run_options o = { .engine = "null", .speed = RUN_TIMED };
		struct figure p50, p99, cpu;
		uint64_t i;

		write_timed_plan(rates[k], rates[k] / 2);
		for (i = 0; i < nr_rounds; i++) {
			struct run_result *res = run_plan(&o);

			p50.values[i] = (double)spread_percentile(&res->lateness, 50);
			p99.values[i] = (double)spread_percentile(&res->lateness, 99);
			cpu.values[i] = (double)res->lane_cpu_ns / (double)res->elapsed_ns;
			run_result_free(res);
		}
		json_object_begin(w);
		json_kv_u64(w, "per_second", rates[k]);
		put_figure(w, "p50_ns", &p50);
		put_figure(w, "p99_ns", &p99);
		put_figure(w, "cores", &cpu);
		json_object_end(w);
	}
	json_array_end(w);
}

/* (e) */

static void bench_memory(struct json *w)
{
	uint64_t nr;

	json_key(w, "memory");
	json_array_begin(w);
	for (nr = max_memory_actions / 100; nr <= max_memory_actions; nr *= 10) {
		struct run_options o = { .speed = RUN_AFAP, .verify = RUN_VERIFY_OUTCOME };
		struct run_result *res;

		write_read_plan(2, nr / 2, 4096);
		res = run_plan(&o);
		json_object_begin(w);
		json_kv_u64(w, "actions", nr);
		json_kv_u64(w, "peak_memory_bytes", res->peak_memory_bytes);
		json_kv_u64(w, "load_wait_ns", res->load_wait_ns);
		json_kv_double(w, "cpu_ns_per_action", (double)res->cpu_ns / (double)nr);
		json_object_end(w);
		run_result_free(res);
	}
	json_array_end(w);
}

static void make_tree(void)
{
	char path[PATH_MAX], block[4096];
	uint64_t i;
	int fd;

	snprintf(tree, sizeof(tree), "%s/bench_replay.XXXXXX", dir);
	if (!mkdtemp(tree))
		die(tree, strerror(errno));
	snprintf(plan, sizeof(plan), "%s.plan", tree);
	snprintf(path, sizeof(path), "%s/data", tree);
	fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0644);
	memset(block, 'b', sizeof(block));
	for (i = 0; fd >= 0 && i < FILE_BYTES / sizeof(block); i++)
		if (write(fd, block, sizeof(block)) != (ssize_t)sizeof(block))
			die(path, strerror(errno));
	if (fd < 0 || close(fd) < 0)
		die(path, strerror(errno));
}

static void remove_tree(void)
{
	char path[PATH_MAX];

	snprintf(path, sizeof(path), "%s/data", tree);
	(void)unlink(path);
	(void)rmdir(tree);
	(void)unlink(plan);
}

int main(int argc, char **argv)
{
	static const struct option options[] = { { "rounds", required_argument, NULL, 'r' },
						 { "actions", required_argument, NULL, 'n' },
						 { "memory", required_argument, NULL, 'm' },
						 { "dir", required_argument, NULL, 'd' },
						 { NULL, 0, NULL, 0 } };
	struct json w;
	int c;

	while ((c = getopt_long(argc, argv, "", options, NULL)) >= 0) {
		if (c == 'r')
			nr_rounds = strtoull(optarg, NULL, 10);
		else if (c == 'n')
			nr_actions = strtoull(optarg, NULL, 10);
		else if (c == 'm')
			max_memory_actions = strtoull(optarg, NULL, 10);
		else if (c == 'd')
			dir = optarg;
		else
			return 2;
	}
	if (!nr_rounds || nr_rounds > ROUNDS_MAX || nr_actions < 8)
		die("usage", "[--rounds N] [--actions N] [--memory ACTIONS] [--dir DIR]");
	make_tree();
	json_init_file(&w, stdout, JSON_PRETTY);
	json_object_begin(&w);
	bench_machinery(&w);
	bench_handover(&w);
	bench_reads(&w);
	bench_lateness(&w);
	if (max_memory_actions)
		bench_memory(&w);
	json_object_end(&w);
	json_release(&w);
	remove_tree();
	return 0;
}
