/* SPDX-License-Identifier: MIT */
/* Attacks on memory and descriptors that the recorder uses while the program runs. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "hostile.h"

static atomic_bool stop;

static uint64_t read_tsc(void)
{
	return __builtin_ia32_rdtsc();
}

static void pause_for(unsigned int rounds)
{
	while (rounds--)
		__asm__ volatile("pause");
}

static struct wire_block *must_have_block(void)
{
	(void)agent_find();
	if (!agent_block())
		exit(NO_AGENT);
	return agent_block();
}

/* A call through the agent's "syscall; ret", which leaves no record in the ring. */
static long ask(const struct agent_text *text, long nr, long a, long b)
{
	const long args[6] = { a, b };

	return call_at(text->ask, nr, args);
}

static void publish(struct wire_block *b, uint64_t bytes)
{
	__atomic_store_n(&b->head, b->head + bytes, __ATOMIC_RELEASE);
}

static struct wire_record *record_at(const struct wire_block *b, uint64_t at)
{
	return (struct wire_record *)(b->ring + (at & (b->ring_bytes - 1)));
}

/* forge DIR NAME: publishes a record of an open of DIR/NAME that was never made. */
int mode_forge(int argc, char **argv)
{
	struct wire_block *b = must_have_block();
	struct wire_record *rec = record_at(b, b->head);
	struct wire_copy *copy = (struct wire_copy *)(rec + 1);
	static char path[4096];
	size_t len;

	if (argc < 2 || b->ring_bytes - (b->head & (b->ring_bytes - 1)) < 2 * sizeof(path))
		return BROKEN;
	len = (size_t)snprintf(path, sizeof(path), "%s/%s", argv[0], argv[1]) + 1;
	*rec = (struct wire_record){ .nr = SYS_openat,
				     .nr_in = 1,
				     .enter_tsc = read_tsc(),
				     .exit_tsc = read_tsc(),
				     .ret = 3,
				     .regs = { (uint64_t)AT_FDCWD, (uint64_t)path, O_RDONLY },
				     .in_bytes = sizeof(*copy) + (len + 7) / 8 * 8 };
	rec->size_bytes = (uint32_t)(sizeof(*rec) + rec->in_bytes);
	*copy = (struct wire_copy){ (uint64_t)path, len };
	memcpy(copy + 1, path, len);
	publish(b, rec->size_bytes);
	nap_us(20000);
	mark("forged");
	return 0;
}

#define POISON_BYTES 60000
static _Atomic(volatile uint8_t *) poisoned;

static void *poison_loop(void *arg)
{
	while (!atomic_load(&stop)) {
		volatile uint8_t *p = atomic_load(&poisoned);

		if (!p)
			continue;
		p[POISON_BYTES - 8] = 'B';
		pause_for(1);
		p[POISON_BYTES - 8] = 'A';
		pause_for(1);
	}
	return arg;
}

/* poison: changes the data of a write in the ring while the recorder hashes and stores it. */
int mode_poison(int argc, char **argv)
{
	struct wire_block *b = must_have_block();
	struct agent_text text = agent_find();
	const struct timespec nap = { 0, 300000 };
	static char data[POISON_BYTES];
	pthread_t thread;
	uint64_t i;
	int fd;

	(void)argc;
	(void)argv;
	fd = (int)must(open("poisoned", O_CREAT | O_RDWR, 0600), "open");
	memset(data, 'A', sizeof(data));
	must(-pthread_create(&thread, NULL, poison_loop, NULL), "pthread_create");
	for (i = 0; i < 400; i++) {
		memcpy(data, &i, sizeof(i));
		must(pwrite(fd, data, sizeof(data), 0), "pwrite");
		atomic_store(&poisoned, (volatile uint8_t *)(record_at(b, b->call_head) + 1) +
						sizeof(struct wire_copy));
		(void)ask(&text, SYS_nanosleep, (long)&nap, 0);
		atomic_store(&poisoned, NULL);
		pause_for(20);
	}
	atomic_store(&stop, true);
	(void)pthread_join(thread, NULL);
	return 0;
}

static void *size_loop(void *arg)
{
	volatile uint32_t *size = arg;

	while (!atomic_load(&stop)) {
		*size = 8;
		pause_for(2);
		*size = sizeof(struct wire_record);
		pause_for(2);
	}
	return arg;
}

/*
 * Publishes a record whose size another thread changes continuously. The record
 * spans two pages that the recorder has not touched: the page fault between them
 * widens the race window.
 */
static int change_size(unsigned int nr)
{
	struct agent_text text = agent_find();
	struct wire_block *b = must_have_block();
	uint64_t at = b->head & (b->ring_bytes - 1), far = 4096 * (17 + nr % 16) - 8;
	struct wire_record *first = record_at(b, at), *rec = record_at(b, far);
	struct wire_copy *copy = (struct wire_copy *)(rec + 1);
	const struct timespec nap = { 0, 300000 };
	pthread_t thread;
	unsigned int i;

	if (at > 60000)
		return BROKEN;
	*first = (struct wire_record){ .size_bytes = (uint32_t)(far - at),
				       .nr = SYS_write,
				       .ret = -EBADF,
				       .enter_tsc = read_tsc(),
				       .exit_tsc = read_tsc() };
	*rec = (struct wire_record){ .size_bytes = sizeof(*rec),
				     .nr = SYS_write,
				     .ret = 64,
				     .regs = { 1, 0x1000, 64 },
				     .in_bytes = UINT64_C(0x7fff00000000),
				     .enter_tsc = first->enter_tsc,
				     .exit_tsc = first->exit_tsc };
	*copy = (struct wire_copy){ 0x900000, UINT64_C(1) << 40 };
	must(-pthread_create(&thread, NULL, size_loop, &rec->size_bytes), "pthread_create");
	pause_for(500);
	publish(b, far - at + sizeof(*rec));
	for (i = 0; i < 30 && !__atomic_load_n(&b->off, __ATOMIC_ACQUIRE); i++)
		(void)ask(&text, SYS_nanosleep, (long)&nap, 0);
	_exit(0);
}

static void run_again(const char *number)
{
	pid_t pid = vfork();

	if (!pid) {
		execl("/proc/self/exe", "hostile", "sizes", "0", number, NULL);
		_exit(BROKEN);
	}
	(void)waitpid(pid, NULL, 0);
}

/* sizes MS: repeats this in new processes for MS milliseconds. */
int mode_sizes(int argc, char **argv)
{
	uint64_t end = now_ms() + (argc > 0 ? strtoul(argv[0], NULL, 10) : 0);
	char number[16];
	unsigned int i;

	if (argc > 1)
		return change_size((unsigned int)strtoul(argv[1], NULL, 10));
	(void)must_have_block();
	for (i = 0; now_ms() < end; i++) {
		(void)snprintf(number, sizeof(number), "%u", i);
		run_again(number);
	}
	return 0;
}

/* Truncates all memory of the recorder in a directory of descriptors or mappings. */
static unsigned int cut_all(const char *dir)
{
	unsigned int nr_cut = 0;
	char name[512], leads_to[512];
	struct dirent *d;
	DIR *dp = opendir(dir);
	ssize_t len;
	int fd;

	while (dp && (d = readdir(dp))) {
		(void)snprintf(name, sizeof(name), "%s/%s", dir, d->d_name);
		len = readlink(name, leads_to, sizeof(leads_to) - 1);
		if (len <= 0)
			continue;
		leads_to[len] = '\0';
		if (!strstr(leads_to, "memfd:reprise"))
			continue;
		fd = open(name, O_RDWR | O_CLOEXEC);
		if (fd >= 0)
			nr_cut += !ftruncate(fd, 0);
		if (fd >= 0)
			(void)close(fd);
	}
	if (dp)
		(void)closedir(dp);
	return nr_cut;
}

/* truncate: truncates the recorder's memory through its descriptors and our mappings. */
int mode_truncate(int argc, char **argv)
{
	unsigned int nr_cut, i;
	char dir[64];

	(void)argc;
	(void)argv;
	(void)must_have_block();
	(void)snprintf(dir, sizeof(dir), "/proc/%d/fd", (int)getppid());
	nr_cut = cut_all("/proc/self/map_files") + cut_all("/proc/self/fd") + cut_all(dir);
	for (i = 0; i < 1000; i++)
		(void)syscall(SYS_getppid);
	mark("cut");
	fprintf(stderr, "%u cut\n", nr_cut);
	return nr_cut ? 1 : 0;
}

/* Refers to a text while it is mapped, and to a FIFO when the recorder opens it. */
#define SWAPPED_FD 50

struct swapped {
	struct agent_text text;
	long text_fd, fifo_fd;
	atomic_uint turn; /* odd: the text is being mapped */
	atomic_uint swapped; /* the last odd turn that is over */
};

/* Puts the FIFO in place after a varying delay, and the text back after the call. */
static void *swap_loop(void *arg)
{
	struct swapped *s = arg;
	unsigned int turn;

	for (turn = 1; !atomic_load(&stop); turn += 2) {
		while (atomic_load(&s->turn) < turn) {
			if (atomic_load(&stop))
				return arg;
		}
		pause_for(turn / 2 % 100 * 40);
		(void)ask(&s->text, SYS_dup2, s->fifo_fd, SWAPPED_FD);
		while (atomic_load(&s->turn) == turn)
			;
		(void)ask(&s->text, SYS_dup2, s->text_fd, SWAPPED_FD);
		atomic_store(&s->swapped, turn);
	}
	return arg;
}

/*
 * Finds "mov $9, %eax; syscall" in the loader. Searches its file, because the
 * agent may have patched the text in memory.
 */
static const uint8_t *find_loader_map(void)
{
	static const uint8_t wanted[] = { 0xb8, 9, 0, 0, 0, 0x0f, 0x05 };
	unsigned long start, end, offset;
	const uint8_t *found = NULL;
	char line[512], mode[8], path[256];
	FILE *f = fopen("/proc/self/maps", "re");

	while (!found && f && fgets(line, sizeof(line), f)) {
		const uint8_t *p, *at;
		int fd;

		if (sscanf(line, "%lx-%lx %7s %lx %*s %*s %255s", &start, &end, mode, &offset,
			   path) != 5 ||
		    mode[2] != 'x' || !strstr(path, "/ld-"))
			continue;
		fd = open(path, O_RDONLY | O_CLOEXEC);
		p = mmap(NULL, end - start, PROT_READ, MAP_PRIVATE, fd, (off_t)offset);
		at = p == MAP_FAILED ? NULL : memmem(p, end - start, wanted, sizeof(wanted));
		if (at)
			found = (const uint8_t *)start + (at - p);
		(void)close(fd);
	}
	if (f)
		(void)fclose(f);
	return found;
}

/* fifo MS: has the loader map a text, and exchanges its descriptor before the recorder opens it. */
int mode_fifo(int argc, char **argv)
{
	uint64_t end = now_ms() + (argc > 0 ? strtoul(argv[0], NULL, 10) : 0);
	const long args[6] = { 0, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, SWAPPED_FD, 0 };
	struct swapped s = { .text = agent_find() };
	const uint8_t *map = find_loader_map();
	pthread_t thread;
	unsigned int turn;
	long at;

	if (!map)
		return NOT_HERE;
	if (!s.text.start)
		return NO_AGENT;
	/* The recorder does not know this text, so it opens it each time. */
	s.text_fd = must(open("text", O_CREAT | O_RDWR | O_CLOEXEC, 0700), "open");
	must(ftruncate((int)s.text_fd, 4096), "ftruncate");
	must(mkfifo("fifo", 0600), "mkfifo");
	s.fifo_fd = must(open("fifo", O_PATH | O_CLOEXEC), "open");
	must(-pthread_create(&thread, NULL, swap_loop, &s), "pthread_create");
	(void)dup2((int)s.text_fd, SWAPPED_FD);
	for (turn = 1; now_ms() < end; turn += 2) {
		atomic_store(&s.turn, turn);
		at = call_at(map, SYS_mmap, args);
		atomic_store(&s.turn, turn + 1);
		if (at > 0)
			(void)munmap((void *)at, 4096);
		while (atomic_load(&s.swapped) != turn)
			;
	}
	atomic_store(&stop, true);
	(void)pthread_join(thread, NULL);
	return 0;
}
