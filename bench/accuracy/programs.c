// SPDX-License-Identifier: MIT
/*
 * programs NAME prepare|run DIR
 *
 * Small programs, each with one way in which threads depend on one another or on
 * their storage, to see whether a replay elsewhere keeps it. `prepare` makes the
 * files in DIR, `run` does the work, the same in every run. The table at the end
 * tells what each is for.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define FILE_BYTES (32u << 20)
#define BLOCK_BYTES 4096u
#define MAX_THREADS 8
#define MAX_IO_BYTES (256u << 10)

static const char *dir;

static void die(const char *what)
{
	fprintf(stderr, "programs: %s: %s\n", what, strerror(errno));
	exit(1);
}

static int open_in_dir(const char *name, int flags)
{
	char path[512];
	int fd;

	snprintf(path, sizeof(path), "%s/%s", dir, name);
	fd = open(path, flags | O_CLOEXEC, 0644);
	if (fd < 0)
		die(path);
	return fd;
}

static int open_file(unsigned int nr, int flags)
{
	char name[16];

	snprintf(name, sizeof(name), "f%u", nr);
	return open_in_dir(name, flags);
}

/* The same numbers in every run, others for each thread. */
static uint32_t next_random(uint64_t *state)
{
	*state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
	return (uint32_t)(*state >> 33);
}

static off_t random_block(uint64_t *state, size_t len)
{
	return (off_t)(next_random(state) % ((FILE_BYTES - (uint32_t)len) / BLOCK_BYTES)) *
	       BLOCK_BYTES;
}

static void *make_buffer(void)
{
	void *p = aligned_alloc(BLOCK_BYTES, MAX_IO_BYTES);

	if (!p)
		die("memory");
	memset(p, 'x', MAX_IO_BYTES);
	return p;
}

static void read_at(int fd, void *buffer, size_t len, off_t at)
{
	if (pread(fd, buffer, len, at) != (ssize_t)len)
		die("pread");
}

static void make_files(unsigned int nr_files)
{
	uint8_t *buffer = make_buffer();
	unsigned int i;
	uint32_t at;

	for (i = 0; i < nr_files; i++) {
		int fd = open_file(i, O_CREAT | O_TRUNC | O_WRONLY);

		for (at = 0; at < FILE_BYTES; at += MAX_IO_BYTES) {
			memset(buffer, (int)(i + at / MAX_IO_BYTES) | 1, MAX_IO_BYTES);
			if (write(fd, buffer, MAX_IO_BYTES) != MAX_IO_BYTES)
				die("write");
		}
		if (fsync(fd))
			die("fsync");
		close(fd);
	}
	free(buffer);
}

static void prepare_1(void)
{
	make_files(1);
}

static void prepare_2(void)
{
	make_files(2);
}

static void prepare_4(void)
{
	make_files(4);
}

static void prepare_8(void)
{
	make_files(8);
}

static void prepare_none(void)
{
}

/* Runs fn(0) to fn(nr - 1), each in a thread of its own, and waits for all. */
static void run_threads(unsigned int nr, void *(*fn)(void *))
{
	pthread_t threads[MAX_THREADS];
	uintptr_t i;

	for (i = 0; i < nr; i++) {
		errno = pthread_create(&threads[i], NULL, fn, (void *)i);
		if (errno)
			die("pthread_create");
	}
	for (i = 0; i < nr; i++)
		pthread_join(threads[i], NULL);
}

/* own1, own2, own8 */

static unsigned int reads_each;

static void *read_own(void *arg)
{
	unsigned int nr = (unsigned int)(uintptr_t)arg, i;
	uint64_t random = nr + 1;
	void *buffer = make_buffer();
	int fd = open_file(nr, O_RDONLY | O_DIRECT);

	for (i = 0; i < reads_each; i++)
		read_at(fd, buffer, BLOCK_BYTES, random_block(&random, BLOCK_BYTES));
	close(fd);
	free(buffer);
	return NULL;
}

static void run_own1(void)
{
	reads_each = 800;
	run_threads(1, read_own);
}

static void run_own2(void)
{
	reads_each = 400;
	run_threads(2, read_own);
}

static void run_own8(void)
{
	reads_each = 200;
	run_threads(8, read_own);
}

/* cache */

static void *read_cached(void *arg)
{
	unsigned int nr = (unsigned int)(uintptr_t)arg, i;
	uint64_t random = nr + 1;
	void *buffer = make_buffer();
	int fd = open_file(nr, O_RDONLY);
	uint32_t at;

	if (nr) {
		for (i = 0; i < 400; i++)
			read_at(fd, buffer, BLOCK_BYTES, random_block(&random, BLOCK_BYTES));
	} else {
		for (at = 0; at < FILE_BYTES; at += 65536)
			read_at(fd, buffer, 65536, at);
		for (i = 0; i < 2000; i++)
			read_at(fd, buffer, BLOCK_BYTES, random_block(&random, BLOCK_BYTES));
	}
	close(fd);
	free(buffer);
	return NULL;
}

static void run_cache(void)
{
	run_threads(2, read_cached);
}

/* queue */

enum { NR_ITEMS = 700 };

static struct {
	pthread_mutex_t lock;
	pthread_cond_t more;
	int fds[4];
	unsigned int items[2 * NR_ITEMS];
	unsigned int first, end, nr_done;
} queue = { .lock = PTHREAD_MUTEX_INITIALIZER, .more = PTHREAD_COND_INITIALIZER };

/* The item, or UINT_MAX when all are done. */
static unsigned int take_item(void)
{
	unsigned int item = UINT32_MAX;

	pthread_mutex_lock(&queue.lock);
	while (queue.first == queue.end && queue.nr_done < 2 * NR_ITEMS)
		pthread_cond_wait(&queue.more, &queue.lock);
	if (queue.first < queue.end)
		item = queue.items[queue.first++];
	pthread_mutex_unlock(&queue.lock);
	return item;
}

/* An item of the first stage becomes one of the second. */
static void item_done(unsigned int item)
{
	pthread_mutex_lock(&queue.lock);
	if (item < NR_ITEMS)
		queue.items[queue.end++] = item + NR_ITEMS;
	queue.nr_done++;
	if (queue.nr_done == 2 * NR_ITEMS)
		pthread_cond_broadcast(&queue.more);
	else
		pthread_cond_signal(&queue.more);
	pthread_mutex_unlock(&queue.lock);
}

static void *work(void *arg)
{
	void *buffer = make_buffer();
	unsigned int item;
	uint64_t random;

	(void)arg;
	while ((item = take_item()) != UINT32_MAX) {
		random = item + 1;
		read_at(queue.fds[item % 4], buffer, BLOCK_BYTES,
			random_block(&random, BLOCK_BYTES));
		item_done(item);
	}
	free(buffer);
	return NULL;
}

static void run_queue(void)
{
	unsigned int i;

	for (i = 0; i < 4; i++)
		queue.fds[i] = open_file(i, O_RDONLY | O_DIRECT);
	for (i = 0; i < NR_ITEMS; i++)
		queue.items[i] = i;
	queue.end = NR_ITEMS;
	run_threads(4, work);
	for (i = 0; i < 4; i++)
		close(queue.fds[i]);
}

/* mutex */

static pthread_mutex_t the_lock = PTHREAD_MUTEX_INITIALIZER;

static void *read_locked(void *arg)
{
	unsigned int nr = (unsigned int)(uintptr_t)arg, i;
	uint64_t random = nr + 1;
	void *buffer = make_buffer();
	int fd = open_file(nr, O_RDONLY | O_DIRECT);

	for (i = 0; i < 200; i++) {
		pthread_mutex_lock(&the_lock);
		read_at(fd, buffer, BLOCK_BYTES, random_block(&random, BLOCK_BYTES));
		pthread_mutex_unlock(&the_lock);
	}
	close(fd);
	free(buffer);
	return NULL;
}

static void run_mutex(void)
{
	run_threads(4, read_locked);
}

/* barrier */

static pthread_barrier_t round_end;

static void *read_rounds(void *arg)
{
	unsigned int nr = (unsigned int)(uintptr_t)arg, i;
	uint64_t random = nr + 1;
	void *buffer = make_buffer();
	int fd = open_file(nr, O_RDONLY | O_DIRECT);
	size_t len;

	for (i = 0; i < 150; i++) {
		len = (size_t)BLOCK_BYTES << (nr + i) % 4 * 2;
		read_at(fd, buffer, len, random_block(&random, len));
		pthread_barrier_wait(&round_end);
	}
	close(fd);
	free(buffer);
	return NULL;
}

static void run_barrier(void)
{
	pthread_barrier_init(&round_end, NULL, 4);
	run_threads(4, read_rounds);
}

/* compute */

static void compute(uint64_t ns)
{
	struct timespec start, now;

	clock_gettime(CLOCK_MONOTONIC, &start);
	do {
		clock_gettime(CLOCK_MONOTONIC, &now);
	} while ((uint64_t)(now.tv_sec - start.tv_sec) * 1000000000 + (uint64_t)now.tv_nsec -
			 (uint64_t)start.tv_nsec <
		 ns);
}

static void *read_and_compute(void *arg)
{
	unsigned int nr = (unsigned int)(uintptr_t)arg, i;
	uint64_t random = nr + 1;
	void *buffer = make_buffer();
	int fd = open_file(nr, O_RDONLY | O_DIRECT);

	for (i = 0; i < 300; i++) {
		read_at(fd, buffer, BLOCK_BYTES, random_block(&random, BLOCK_BYTES));
		compute(500000);
	}
	close(fd);
	free(buffer);
	return NULL;
}

static void run_compute(void)
{
	run_threads(2, read_and_compute);
}

/* pipe, socket: a process reads, another writes what it gets. */

static void send_blocks(int to)
{
	int fd = open_file(0, O_RDONLY | O_DIRECT);
	void *buffer = make_buffer();
	uint64_t random = 1;
	unsigned int i;

	for (i = 0; i < 300; i++) {
		read_at(fd, buffer, BLOCK_BYTES, random_block(&random, BLOCK_BYTES));
		if (write(to, buffer, BLOCK_BYTES) != BLOCK_BYTES)
			die("write");
	}
	close(fd);
	free(buffer);
}

static void receive_blocks(int from)
{
	int fd = open_in_dir("out", O_CREAT | O_TRUNC | O_WRONLY | O_DIRECT);
	void *buffer = make_buffer();
	size_t have = 0;
	ssize_t n;

	while ((n = read(from, (char *)buffer + have, BLOCK_BYTES - have)) > 0) {
		have += (size_t)n;
		if (have < BLOCK_BYTES)
			continue;
		have = 0;
		if (write(fd, buffer, BLOCK_BYTES) != BLOCK_BYTES || fdatasync(fd))
			die("write");
	}
	close(fd);
	free(buffer);
}

static void run_pair(const int fds[2])
{
	pid_t pid = fork();

	if (pid < 0)
		die("fork");
	if (!pid) {
		close(fds[1]);
		receive_blocks(fds[0]);
		_exit(0);
	}
	close(fds[0]);
	send_blocks(fds[1]);
	close(fds[1]);
	waitpid(pid, NULL, 0);
}

static void run_pipe(void)
{
	int fds[2];

	if (pipe(fds))
		die("pipe");
	run_pair(fds);
}

static void run_socket(void)
{
	int fds[2];

	if (socketpair(AF_UNIX, SOCK_STREAM, 0, fds))
		die("socketpair");
	run_pair(fds);
}

/* rename: one makes files and renames them, the other takes those that have their name. */

enum { NR_PASSED = 100 };

static void *make_and_rename(void *arg)
{
	char from[512], to[512];
	void *buffer = make_buffer();
	unsigned int i;
	int fd;

	(void)arg;
	for (i = 0; i < NR_PASSED; i++) {
		snprintf(from, sizeof(from), "%s/new", dir);
		snprintf(to, sizeof(to), "%s/item%u", dir, i);
		fd = open_in_dir("new", O_CREAT | O_TRUNC | O_WRONLY);
		if (write(fd, buffer, 16384) != 16384 || fsync(fd))
			die("write");
		close(fd);
		if (rename(from, to))
			die("rename");
	}
	free(buffer);
	return NULL;
}

static void *take_renamed(void *arg)
{
	const struct timespec moment = { .tv_nsec = 1000000 };
	void *buffer = make_buffer();
	char path[512];
	unsigned int i;
	int fd;

	(void)arg;
	for (i = 0; i < NR_PASSED; i++) {
		snprintf(path, sizeof(path), "%s/item%u", dir, i);
		while ((fd = open(path, O_RDONLY | O_CLOEXEC)) < 0)
			nanosleep(&moment, NULL);
		read_at(fd, buffer, 16384, 0);
		close(fd);
		if (unlink(path))
			die("unlink");
	}
	free(buffer);
	return NULL;
}

static void *pass(void *arg)
{
	return arg ? take_renamed(arg) : make_and_rename(arg);
}

static void run_rename(void)
{
	run_threads(2, pass);
}

/* fsync */

static void *append_and_sync(void *arg)
{
	unsigned int nr = (unsigned int)(uintptr_t)arg, i;
	void *buffer = make_buffer();
	int fd = open_file(nr, O_CREAT | O_TRUNC | O_WRONLY);

	for (i = 0; i < 40; i++) {
		if (write(fd, buffer, 2 * BLOCK_BYTES) != 2 * BLOCK_BYTES || fsync(fd))
			die("write");
	}
	close(fd);
	free(buffer);
	return NULL;
}

static void run_fsync(void)
{
	run_threads(4, append_and_sync);
}

/* sequential */

/*
 * bfq joins threads that begin at the same time and have the same priority, and
 * then takes their requests in turn; and it does not wait for the next request of
 * one among equals. Either way there would be no slices to see.
 */
static void set_own_priority(unsigned int nr)
{
	int best_effort = 2 << 13; /* IOPRIO_PRIO_VALUE() is in no header of libc */

	if (syscall(SYS_ioprio_set, 1 /* IOPRIO_WHO_PROCESS */, 0, best_effort | (4 + (int)nr)))
		die("ioprio_set");
}

static void *read_in_sequence(void *arg)
{
	unsigned int nr = (unsigned int)(uintptr_t)arg;
	void *buffer = make_buffer();
	int fd = open_file(nr, O_RDONLY | O_DIRECT);
	uint32_t at;

	set_own_priority(nr);
	for (at = 0; at < FILE_BYTES / 4; at += 16 * BLOCK_BYTES)
		read_at(fd, buffer, 16 * BLOCK_BYTES, at);
	close(fd);
	free(buffer);
	return NULL;
}

static void run_sequential(void)
{
	run_threads(2, read_in_sequence);
}

/* commit: writers append to one log; who comes first syncs for all that are there. */

static struct {
	pthread_mutex_t lock;
	pthread_cond_t synced;
	int fd;
	uint64_t nr_written, nr_synced;
	bool is_syncing;
} log_file = { .lock = PTHREAD_MUTEX_INITIALIZER, .synced = PTHREAD_COND_INITIALIZER };

static void sync_log(void)
{
	uint64_t nr = log_file.nr_written;

	log_file.is_syncing = true;
	pthread_mutex_unlock(&log_file.lock);
	if (fdatasync(log_file.fd))
		die("fdatasync");
	pthread_mutex_lock(&log_file.lock);
	log_file.is_syncing = false;
	log_file.nr_synced = nr;
	pthread_cond_broadcast(&log_file.synced);
}

static void *commit_some(void *arg)
{
	char line[512];
	unsigned int i;
	uint64_t mine;

	memset(line, 'a' + (int)(uintptr_t)arg, sizeof(line));
	for (i = 0; i < 60; i++) {
		pthread_mutex_lock(&log_file.lock);
		if (write(log_file.fd, line, sizeof(line)) != sizeof(line))
			die("write");
		mine = ++log_file.nr_written;
		while (log_file.nr_synced < mine) {
			if (log_file.is_syncing)
				pthread_cond_wait(&log_file.synced, &log_file.lock);
			else
				sync_log();
		}
		pthread_mutex_unlock(&log_file.lock);
	}
	return NULL;
}

static void run_commit(void)
{
	log_file.fd = open_in_dir("log", O_CREAT | O_TRUNC | O_WRONLY | O_APPEND);
	run_threads(8, commit_some);
	close(log_file.fd);
}

static const struct program {
	const char *name;
	void (*prepare)(void);
	void (*run)(void);
	const char *purpose;
} programs[] = {
	{ "own1", prepare_1, run_own1, "one thread, random direct reads: device time alone" },
	{ "own2", prepare_2, run_own2, "two threads with own files: parallel, independent" },
	{ "own8", prepare_8, run_own8,
	  "eight threads with own files: as deep as the device allows" },
	{ "cache", prepare_2, run_cache, "buffered: sequential, then cached, beside random reads" },
	{ "queue", prepare_4, run_queue, "four workers take items of two stages from a queue" },
	{ "mutex", prepare_4, run_mutex, "four threads read, one at a time" },
	{ "barrier", prepare_4, run_barrier, "rounds of unequal reads that all wait for" },
	{ "compute", prepare_2, run_compute, "half a millisecond of computing after each read" },
	{ "pipe", prepare_1, run_pipe, "a process reads and sends, another receives and writes" },
	{ "socket", prepare_1, run_socket, "the same through a socket" },
	{ "rename", prepare_none, run_rename, "files handed over by their names" },
	{ "fsync", prepare_none, run_fsync, "four writers with own files, each sync by itself" },
	{ "sequential", prepare_2, run_sequential,
	  "two threads that read in sequence: what a scheduler makes of it" },
	{ "commit", prepare_none, run_commit, "eight writers of a log that share syncs" },
};

int main(int argc, char **argv)
{
	size_t i;

	for (i = 0; i < sizeof(programs) / sizeof(programs[0]); i++) {
		if (argc != 4) {
			printf("%s\t%s\n", programs[i].name, programs[i].purpose);
			continue;
		}
		if (strcmp(programs[i].name, argv[1]) != 0)
			continue;
		dir = argv[3];
		if (!strcmp(argv[2], "prepare"))
			programs[i].prepare();
		else
			programs[i].run();
		return 0;
	}
	return argc == 4 ? (fprintf(stderr, "programs: no program '%s'\n", argv[1]), 2) : 0;
}
