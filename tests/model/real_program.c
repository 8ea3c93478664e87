/* SPDX-License-Identifier: MIT */
/*
 * usage: real_program [--racing] SCRIPT DIR
 *
 * Performs a random program (random_script writes them) for real, with DIR as root
 * directory: one line, one system call of one actor. An actor is a thread or a
 * process; each performs its own lines in their order.
 *
 *   ACTOR call NR ARG...     iN number, sTEXT string, bLEN:BYTE bytes that go in, oLEN room
 *   ACTOR thread CHILD       ACTOR fork CHILD
 *
 * Calls of different actors do not overlap, so that what happened is beyond doubt;
 * who goes first is left to chance, and nothing tells a recorder who waited for
 * whom: the lock is spun on. With --racing there is no lock.
 *
 * Exit status 77: DIR cannot be made the root directory here.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define ACTORS_MAX 64
#define WORDS_MAX 10

enum { EXIT_CANNOT = 77 };

struct line {
	struct line *next; /* of the same actor */
	char *words[WORDS_MAX];
	unsigned int nr_words;
};

struct actor {
	struct line *first, **end;
	pthread_t thread;
	bool is_thread;
};

static struct actor actors[ACTORS_MAX];
static bool racing;
static _Atomic unsigned int *lock; /* shared by all processes */

static void take(void)
{
	unsigned int free_word = 0;

	while (!racing && !atomic_compare_exchange_weak(lock, &free_word, 1)) {
		free_word = 0;
		sched_yield();
	}
}

/* Somebody else shall have a turn. */
static void give(void)
{
	if (!racing)
		atomic_store(lock, 0);
	sched_yield();
}

static long argument(const char *word)
{
	unsigned long len;
	char *end;
	void *p;

	switch (word[0]) {
	case 'i':
		return strtol(word + 1, NULL, 10);
	case 's':
		return (long)(word + 1);
	case 'b':
		len = strtoul(word + 1, &end, 10);
		p = malloc(len + 1);
		if (!p)
			abort();
		return (long)memset(p, (int)strtol(end + 1, NULL, 10), len + 1);
	case 'o':
		p = calloc(1, strtoul(word + 1, NULL, 10) + 1);
		if (!p)
			abort();
		return (long)p;
	default:
		abort();
	}
}

/* What it comes to is the recorder's affair. Memory is left: programs are short. */
static void call(const struct line *l)
{
	long args[6] = { 0 };
	unsigned int i;

	for (i = 3; i < l->nr_words && i - 3 < 6; i++)
		args[i - 3] = argument(l->words[i]);
	take();
	(void)syscall(strtol(l->words[2], NULL, 10), args[0], args[1], args[2], args[3], args[4],
		      args[5]);
	give();
}

static void perform(struct actor *a);

static void *perform_thread(void *arg)
{
	perform(arg);
	return NULL;
}

static void start_thread(struct actor *child)
{
	take();
	if (pthread_create(&child->thread, NULL, perform_thread, child))
		abort();
	child->is_thread = true;
	give();
}

static void start_process(struct actor *child)
{
	pid_t pid;

	take();
	pid = fork();
	if (pid < 0)
		abort();
	if (!pid) {
		/* The threads that it does not have are not its to wait for. */
		for (int i = 0; i < ACTORS_MAX; i++)
			actors[i].is_thread = false;
		perform(child);
		_exit(0);
	}
	give();
}

static void perform(struct actor *a)
{
	const struct line *l;
	struct actor *started[ACTORS_MAX];
	unsigned int i, nr = 0;

	for (l = a->first; l; l = l->next) {
		struct actor *child = &actors[strtoul(l->words[2], NULL, 10) % ACTORS_MAX];

		if (!strcmp(l->words[1], "call")) {
			call(l);
			continue;
		}
		if (!strcmp(l->words[1], "fork")) {
			start_process(child);
			continue;
		}
		start_thread(child);
		started[nr++] = child;
	}
	for (i = 0; i < nr; i++)
		(void)pthread_join(started[i]->thread, NULL);
}

static void add_line(char *text)
{
	struct line *l = calloc(1, sizeof(*l));
	char *word, *rest;
	struct actor *a;

	if (!l)
		abort();
	for (word = strtok_r(text, " ", &rest); word && l->nr_words < WORDS_MAX;
	     word = strtok_r(NULL, " ", &rest))
		l->words[l->nr_words++] = word;
	if (l->nr_words < 3)
		abort();
	a = &actors[strtoul(l->words[0], NULL, 10) % ACTORS_MAX];
	if (!a->end)
		a->end = &a->first;
	*a->end = l;
	a->end = &l->next;
}

static void load(const char *path)
{
	size_t len = 0, cap = 1 << 20;
	char *text = malloc(cap), *line, *rest;
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n;

	if (!text || fd < 0)
		abort();
	while ((n = read(fd, text + len, cap - 1 - len)) > 0)
		len += (size_t)n;
	(void)close(fd);
	text[len] = '\0';
	for (line = strtok_r(text, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		add_line(line);
}

static bool enter(const char *dir)
{
	if (chroot(dir) < 0 && (unshare(CLONE_NEWUSER) < 0 || chroot(dir) < 0))
		return false;
	return !chdir("/t");
}

int main(int argc, char **argv)
{
	if (argc > 1 && !strcmp(argv[1], "--racing")) {
		racing = true;
		argc--;
		argv++;
	}
	if (argc != 3)
		return 2;
	load(argv[1]);
	lock = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (lock == MAP_FAILED)
		return 2;
	if (!enter(argv[2]))
		return EXIT_CANNOT;
	/* Random programs use low numbers, and begin with none of them open. */
	for (int fd = 0; fd < 3; fd++)
		(void)close(fd);
	umask(022);
	perform(&actors[0]);
	while (wait(NULL) > 0 || errno == EINTR)
		;
	return 0;
}
