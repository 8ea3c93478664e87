/* SPDX-License-Identifier: MIT */
/*
 * usage: uring_polled HOW NR
 * Makes NR requests through an io_uring whose submission queue a kernel thread polls.
 *
 *   follow   writes to the file out; wakes the thread when the ring says so
 *   queue    likewise, several at once, and says 0 where it wakes the thread
 *   ignore   likewise, but wakes the thread, which sleeps at first, only once; signals arrive
 *   yield    likewise, and calls the kernel all the time
 *   device   of no effect, in a ring for polled devices, in which the thread polls these too
 *
 * Checks what the calls return. Exits with 77 if there is no such ring.
 */
#include <err.h>
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

#define BYTES 512
#define ENTRIES 8

static struct io_uring ring;
static char blocks[ENTRIES][BYTES];
static volatile sig_atomic_t nr_signals;

static void note_signal(int signo)
{
	(void)signo;
	nr_signals = nr_signals + 1;
}

static void prepare(struct io_uring_sqe *s, int fd, unsigned int i)
{
	char *block = blocks[i % ENTRIES];

	if (!s)
		errx(1, "no room in the ring");
	if (fd < 0) {
		io_uring_prep_nop(s);
		return;
	}
	memset(block, 'a' + (int)(i % 26), BYTES);
	io_uring_prep_write(s, fd, block, BYTES, (uint64_t)i * BYTES);
}

static void take(int want, bool yields)
{
	struct io_uring_cqe *c;

	/* Without a call, which the library would make for polled devices. */
	while (io_uring_smp_load_acquire(ring.cq.ktail) == *ring.cq.khead)
		if (yields)
			(void)sched_yield();
	c = &ring.cq.cqes[*ring.cq.khead & *ring.cq.kring_mask];
	if (c->res != want)
		errx(1, "a request gave %d", c->res);
	io_uring_cqe_seen(&ring, c);
}

/* The tail is moved, and nothing else is done. */
static void push_without_a_call(void)
{
	io_uring_smp_store_release(ring.sq.ktail, ring.sq.sqe_tail);
	ring.sq.sqe_head = ring.sq.sqe_tail;
}

static void push(const char *how, unsigned int nr, bool first)
{
	int r;

	if (strcmp(how, "follow") && strcmp(how, "queue") && !first) {
		push_without_a_call();
		return;
	}
	if (strcmp(how, "queue")) {
		r = io_uring_submit(&ring);
		if (r < (int)nr) /* or more: what the thread is about to take */
			errx(1, "submitted %u, got %d", nr, r);
		return;
	}
	push_without_a_call();
	if (IO_URING_READ_ONCE(*ring.sq.kflags) & IORING_SQ_NEED_WAKEUP &&
	    io_uring_enter((unsigned int)ring.ring_fd, 0, 0, IORING_ENTER_SQ_WAKEUP, NULL) != 0)
		errx(1, "waking the thread returns something");
}

static void fill_array(void)
{
	unsigned int i;

	for (i = 0; i < *ring.sq.kring_entries; i++)
		ring.sq.array[i] = i;
}

int main(int argc, char **argv)
{
	const char *how = argc == 3 ? argv[1] : "";
	unsigned int i, k, nr = argc == 3 ? (unsigned int)strtoul(argv[2], NULL, 10) : 0, at_once;
	bool device = !strcmp(how, "device");
	struct io_uring_params p = { .flags = IORING_SETUP_SQPOLL |
					      (device ? IORING_SETUP_IOPOLL : 0),
				     .sq_thread_idle = 2000 };
	struct itimerval often = { { 0, 2000 }, { 0, 2000 } }, never = { 0 };
	int fd = -1, r = io_uring_queue_init_params(ENTRIES, &ring, &p);

	if (r < 0) {
		warnx("no io_uring with a polling thread: %s", strerror(-r));
		return 77;
	}
	if (!(p.flags & IORING_SETUP_SQPOLL) || p.sq_thread_idle != 2000)
		errx(1, "the parameters came back changed: flags 0x%x", p.flags);
	if (!device)
		fd = open("out", O_RDWR | O_CREAT | O_TRUNC, 0644);
	fill_array();
	at_once = strcmp(how, "queue") ? 1 : ENTRIES;
	if (!strcmp(how, "ignore")) {
		(void)signal(SIGALRM, note_signal);
		(void)setitimer(ITIMER_REAL, &often, NULL);
	}
	for (i = 0; i < nr; i += at_once) {
		for (k = 0; k < at_once; k++)
			prepare(io_uring_get_sqe(&ring), fd, i + k);
		push(how, at_once, !i);
		for (k = 0; k < at_once; k++)
			take(device ? 0 : BYTES, !strcmp(how, "yield"));
	}
	(void)setitimer(ITIMER_REAL, &never, NULL);
	io_uring_queue_exit(&ring);
	return 0;
}
