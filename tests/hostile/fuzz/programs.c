/* SPDX-License-Identifier: MIT */
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/io_uring.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fuzz_inside.h"

#define BUFFER_BYTES 65536u

void make_calls(uint64_t seed)
{
	static uint8_t zeros[BUFFER_BYTES];
	uint8_t buffer[8192];
	int fd = open("f", O_CREAT | O_RDWR | O_CLOEXEC, 0600), other;
	struct iovec v[4] = { { zeros, 100 }, { zeros, 0 }, { buffer, 5000 }, { zeros, 9 } };
	struct stat st;

	memset(buffer, 0x5a, sizeof(buffer));
	while (!atomic_load(&round_is_over)) {
		(void)!pwrite(fd, zeros, draw(&seed) % BUFFER_BYTES, 0);
		(void)!pread(fd, buffer, draw(&seed) % sizeof(buffer), 0);
		(void)!pwritev(fd, v, 1 + (int)(draw(&seed) % 4), 0);
		(void)!preadv(fd, v + 2, 2, 0);
		(void)!stat("f", &st);
		(void)!readlink("/proc/self/exe", (char *)buffer, 100);
		other = open(draw(&seed) % 2 ? "none" : "f", O_RDONLY | O_CLOEXEC);
		if (other >= 0)
			(void)close(other);
		if (draw(&seed) % 8 == 0) {
			(void)mkdir("d", 0700);
			(void)rename("d", "e");
			(void)!chdir(".");
			(void)rmdir("e");
		}
	}
}

static void run_nothing(void)
{
	pid_t pid = vfork();

	if (!pid) {
		(void)execl("/proc/self/exe", "fuzz_inside", "nothing", NULL);
		_exit(1);
	}
	if (pid > 0)
		(void)waitpid(pid, NULL, 0);
}

void make_processes(uint64_t seed)
{
	unsigned int i;

	while (!atomic_load(&round_is_over)) {
		pid_t pid = fork();

		if (!pid) {
			char buffer[16];

			for (i = 0; i < 50; i++)
				(void)!getcwd(buffer, sizeof(buffer));
			if (draw(&seed) % 2)
				(void)execl("/proc/self/exe", "fuzz_inside", "nothing", NULL);
			_exit(0);
		}
		if (pid > 0)
			(void)waitpid(pid, NULL, 0);
		if (draw(&seed) % 4 == 0)
			run_nothing();
	}
}

/* Rings of the kernel's: words of them change all the time. */

struct memory_part {
	uint64_t *words;
	uint64_t nr;
	uint64_t seed;
};

static void *change_part(void *p)
{
	struct memory_part *m = p;

	while (!atomic_load(&round_is_over)) {
		uint64_t *word = m->words + draw(&m->seed) % m->nr;

		if (draw(&m->seed) % 4)
			*(volatile uint32_t *)word = (uint32_t)draw_value(&m->seed);
		else
			*(volatile uint64_t *)word = draw_value(&m->seed);
		if (draw(&m->seed) % 64 == 0)
			(void)sched_yield();
	}
	return NULL;
}

static void begin_changes(struct memory_part *m)
{
	pthread_t t;

	if (m->words != MAP_FAILED && !pthread_create(&t, NULL, change_part, m))
		(void)pthread_detach(t);
}

void use_uring(uint64_t seed)
{
	struct io_uring_params p = { .flags = 0 };
	static struct memory_part parts[2];
	uint64_t sq_bytes, sqes_bytes;
	uint32_t *ring, i;
	struct io_uring_sqe *sqes;
	static uint8_t buffer[4096];
	int fd = (int)syscall(SYS_io_uring_setup, 8, &p), file = open("f", O_CREAT | O_RDWR, 0600);

	if (fd < 0)
		return; /* it cannot be had here */
	sq_bytes = p.cq_off.cqes + p.cq_entries * sizeof(struct io_uring_cqe);
	sqes_bytes = p.sq_entries * sizeof(*sqes);
	ring = mmap(NULL, sq_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, IORING_OFF_SQ_RING);
	sqes = mmap(NULL, sqes_bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, IORING_OFF_SQES);
	if (ring == MAP_FAILED || sqes == MAP_FAILED)
		return;
	parts[0] = (struct memory_part){ (uint64_t *)ring, sq_bytes / 8, seed * 3 + 1 };
	parts[1] = (struct memory_part){ (uint64_t *)sqes, sqes_bytes / 8, seed * 5 + 1 };
	begin_changes(&parts[0]);
	begin_changes(&parts[1]);
	while (!atomic_load(&round_is_over)) {
		for (i = 0; i < p.sq_entries; i++) {
			sqes[i] =
				(struct io_uring_sqe){ .opcode = draw(&seed) % 2 ? IORING_OP_READ
										 : IORING_OP_WRITE,
						       .fd = file,
						       .addr = (uint64_t)buffer,
						       .len = (uint32_t)(draw(&seed) % 4096),
						       .user_data = draw(&seed) % 4 };
			ring[p.sq_off.array / 4 + i] = i;
		}
		if (draw(&seed) % 2)
			ring[p.sq_off.tail / 4] = ring[p.sq_off.head / 4] + 8;
		(void)syscall(SYS_io_uring_enter, fd, draw(&seed) % 16, 0, 0, NULL, 0);
		ring[p.cq_off.head / 4] = ring[p.cq_off.tail / 4];
	}
}

#define NR_REQUESTS 8u

void use_aio(uint64_t seed)
{
	static struct {
		struct iocb cbs[NR_REQUESTS];
		struct iocb *list[NR_REQUESTS];
		struct iovec iov[16];
		struct io_event events[NR_REQUESTS];
	} m;
	static struct memory_part parts[2];
	static uint8_t buffer[4096];
	int fd = open("f", O_CREAT | O_RDWR, 0600);
	struct timespec none = { 0, 0 };
	aio_context_t ctx = 0;
	unsigned int i;

	if (syscall(SYS_io_setup, 64, &ctx) < 0)
		return;
	parts[0] = (struct memory_part){ (uint64_t *)&m, sizeof(m) / 8, seed * 3 + 1 };
	parts[1] = (struct memory_part){ (uint64_t *)ctx, 512, seed * 5 + 1 };
	begin_changes(&parts[0]);
	begin_changes(&parts[1]);
	while (!atomic_load(&round_is_over)) {
		for (i = 0; i < NR_REQUESTS; i++) {
			m.iov[i] = (struct iovec){ buffer, draw(&seed) % 4096 };
			m.cbs[i] =
				(struct iocb){ .aio_lio_opcode = draw(&seed) % 2 ? IOCB_CMD_PREAD
										 : IOCB_CMD_PREADV,
					       .aio_fildes = (uint32_t)fd };
			m.cbs[i].aio_buf = m.cbs[i].aio_lio_opcode == IOCB_CMD_PREAD
						   ? (uint64_t)buffer
						   : (uint64_t)m.iov;
			m.cbs[i].aio_nbytes = m.cbs[i].aio_lio_opcode == IOCB_CMD_PREAD ? 4096 : 8;
			m.list[i] = &m.cbs[i];
		}
		(void)syscall(SYS_io_submit, ctx, draw(&seed) % (NR_REQUESTS + 1), m.list);
		(void)syscall(SYS_io_getevents, ctx, 0, NR_REQUESTS, m.events, &none);
	}
}

/* Files that are mapped as text. */

#define COPY "library.so"

static bool copy_library(const char *from)
{
	char buffer[65536];
	int in = open(from, O_RDONLY | O_CLOEXEC);
	int out = open(COPY, O_CREAT | O_TRUNC | O_WRONLY | O_CLOEXEC, 0700);
	ssize_t n;

	while ((n = read(in, buffer, sizeof(buffer))) > 0)
		(void)!write(out, buffer, (size_t)n);
	if (in >= 0)
		(void)close(in);
	if (out >= 0)
		(void)close(out);
	return n == 0;
}

static void *change_library(void *p)
{
	uint64_t seed = *(uint64_t *)p, value;
	struct stat st;
	int fd;

	while (!atomic_load(&round_is_over)) {
		if (stat(COPY, &st) || !st.st_size)
			continue;
		fd = open(COPY, O_WRONLY | O_CLOEXEC);
		value = draw_value(&seed);
		if (draw(&seed) % 8)
			(void)!pwrite(fd, &value, 8, (off_t)(draw(&seed) % (uint64_t)st.st_size));
		else if (draw(&seed) % 2)
			(void)!pwrite(fd, &value, 8, (off_t)(draw(&seed) % 4096));
		else
			(void)!ftruncate(fd, (off_t)(draw(&seed) % (uint64_t)st.st_size));
		if (fd >= 0)
			(void)close(fd);
	}
	return NULL;
}

void use_library(uint64_t seed, const char *library)
{
	static uint64_t other_seed;
	pthread_t t;

	other_seed = seed * 3 + 1;
	if (pthread_create(&t, NULL, change_library, &other_seed))
		return;
	while (!atomic_load(&round_is_over)) {
		void *l;
		long (*call)(void);

		(void)unlink(COPY);
		if (draw(&seed) % 16 == 0)
			(void)mkfifo(COPY, 0600);
		else if (!copy_library(library))
			return;
		l = draw(&seed) % 16 ? dlopen("./" COPY, RTLD_NOW) : NULL;
		call = l ? (long (*)(void))dlsym(l, "library_call") : NULL;
		if (call)
			(void)call();
		if (l)
			(void)dlclose(l);
	}
}
