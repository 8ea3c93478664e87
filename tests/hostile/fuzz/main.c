/* SPDX-License-Identifier: MIT */
/*
 * usage: fuzz_inside SEED MILLISECONDS LIBRARY
 *        fuzz_inside forge KIND
 *
 * Starts rounds, each a program of its own with a seed of its own, until the time is over. A round
 * ends when its recorder takes nothing from it any more, and is killed if it does not end.
 */
#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "fuzz_inside.h"

#define ROUND_MS 250u
#define ROUND_MOST_MS 3000u
#define NOBODY 65534u

atomic_bool round_is_over;

uint64_t draw(uint64_t *x)
{
	*x ^= *x << 13;
	*x ^= *x >> 7;
	*x ^= *x << 17;
	return *x;
}

uint64_t draw_value(uint64_t *x)
{
	switch (draw(x) % 8) {
	case 0:
		return 0;
	case 1:
		return UINT64_C(1) << draw(x) % 64;
	case 2:
		return draw(x) % 4096;
	case 3:
		return sizeof(struct wire_record) + draw(x) % 8 * 8;
	case 4:
		return 0 - draw(x) % 65536;
	case 5:
		return UINT32_MAX - draw(x) % 16;
	case 6:
		return draw(x) << 32 | draw(x) % 256;
	}
	return draw(x);
}

static uint64_t now_ms(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_MONOTONIC, &ts);
	return (uint64_t)ts.tv_sec * 1000 + (uint64_t)ts.tv_nsec / 1000000;
}

static void do_nothing(int signo)
{
	(void)signo;
}

/* Rounds. */

struct job {
	uint64_t seed;
	unsigned int kind;
	const char *library;
};

/* Words of others' rings and blocks, but for those from which instructions follow. */
static void change_others(uint64_t seed, bool rings_alone)
{
	static const uint16_t words[] = { offsetof(struct wire_block, head),
					  offsetof(struct wire_block, call_head),
					  offsetof(struct wire_block, needed_bytes),
					  offsetof(struct wire_block, tail) };

	while (!atomic_load(&round_is_over)) {
		struct wire_block *b = shared_any_block(&seed);
		uint64_t *word;

		if (draw(&seed) % 64 == 0)
			(void)sched_yield();
		if (!b)
			continue;
		word = (uint64_t *)shared_ring_of(b) + draw(&seed) % 2048;
		if (!rings_alone && draw(&seed) % 64 == 0)
			word = (uint64_t *)((uint8_t *)b + words[draw(&seed) % 4]);
		if (draw(&seed) % 2)
			*(volatile uint32_t *)word = (uint32_t)draw_value(&seed);
		else
			*(volatile uint64_t *)word = draw_value(&seed);
		if (!rings_alone && draw(&seed) % 256 == 0)
			__atomic_store_n(&b->phase, (uint32_t)(draw(&seed) % 5), __ATOMIC_RELEASE);
	}
}

static void *do_job(void *p)
{
	const struct job *j = p;

	switch (j->kind) {
	case 0:
		make_calls(j->seed);
		break;
	case 1:
		make_processes(j->seed);
		break;
	case 2:
		forge_records(j->seed);
	case 3:
		change_others(j->seed, true);
		break;
	case 4:
		change_others(j->seed, false);
		break;
	case 5:
		use_uring(j->seed);
		break;
	case 6:
		use_aio(j->seed);
		break;
	case 7:
		use_library(j->seed, j->library);
		break;
	}
	return NULL;
}

/* Of do_job(); records that are forged lead farthest. */
static const uint8_t hostile[] = { 2, 2, 2, 3, 4, 5, 6, 7 };

/* Signals come to whoever is hit, also to those who forge. */
static void send_signals(uint64_t end_ms)
{
	struct timespec a_little = { 0, 5000000 };

	while (now_ms() < end_ms && !atomic_load(&round_is_over)) {
		(void)nanosleep(&a_little, NULL);
		(void)kill(getpid(), SIGUSR1);
	}
}

/* What chance makes of its registers must hit nobody else. */
static void give_up_rights(void)
{
	if (!geteuid() && (setgroups(0, NULL) || setresgid(NOBODY, NOBODY, NOBODY) ||
			   setresuid(NOBODY, NOBODY, NOBODY)))
		_exit(77);
}

static int run_round(uint64_t seed, const char *library)
{
	struct job jobs[] = { { seed * 7 + 1, 0, library },
			      { seed * 11 + 1, draw(&seed) % 2, library },
			      { seed * 13 + 1, hostile[draw(&seed) % sizeof(hostile)], library } };
	struct sigaction sa = { .sa_handler = do_nothing, .sa_flags = SA_RESTART };
	struct timespec a_little = { 0, 1000000 };
	unsigned int i;
	pthread_t t;

	(void)sigaction(SIGUSR1, &sa, NULL);
	for (i = 0; i < sizeof(jobs) / sizeof(jobs[0]) - 1; i++)
		(void)pthread_create(&t, NULL, do_job, &jobs[i]);
	/* With --recorder=auto the agent comes later. */
	for (i = 0; i < 50 && !shared_find(); i++)
		(void)nanosleep(&a_little, NULL);
	give_up_rights();
	if (!shared_find() && jobs[2].kind < 5)
		jobs[2].kind += 3;
	(void)pthread_create(&t, NULL, do_job, &jobs[2]);
	send_signals(now_ms() + ROUND_MS);
	atomic_store(&round_is_over, true);
	_exit(0);
}

/* All that it has started is in a group of its own. */
static void start_round(const char *seed, const char *library)
{
	struct timespec a_little = { 0, 2000000 };
	uint64_t end_ms = now_ms() + ROUND_MOST_MS;
	pid_t pid = fork();

	if (!pid) {
		struct rlimit none = { 0, 0 };

		(void)setpgid(0, 0);
		(void)dup2(open("/dev/null", O_WRONLY), STDERR_FILENO); /* it has much to say */
		(void)setrlimit(RLIMIT_CORE, &none);
		if (atoi(seed) % 2)
			give_up_rights();
		(void)execl("/proc/self/exe", "fuzz_inside", "round", seed, library, NULL);
		_exit(1);
	}
	while (pid > 0 && now_ms() < end_ms && waitpid(pid, NULL, WNOHANG) == 0)
		(void)nanosleep(&a_little, NULL);
	if (pid > 0 && !kill(-pid, SIGKILL))
		(void)waitpid(pid, NULL, 0);
}

int main(int argc, char **argv)
{
	uint64_t seed, end_ms;
	char text[32];

	if (argc == 2 && !strcmp(argv[1], "nothing"))
		return 0;
	if (argc == 3 && !strcmp(argv[1], "forge"))
		return forge_once(argv[2]);
	if (argc == 4 && !strcmp(argv[1], "round"))
		return run_round(strtoull(argv[2], NULL, 0) * UINT64_C(0x9e3779b97f4a7c15) + 1,
				 argv[3]);
	if (argc != 4)
		return 2;
	seed = strtoull(argv[1], NULL, 0);
	for (end_ms = now_ms() + strtoull(argv[2], NULL, 0); now_ms() < end_ms; seed++) {
		(void)snprintf(text, sizeof(text), "%llu", (unsigned long long)seed);
		start_round(text, argv[3]);
	}
	return 0;
}
