/* SPDX-License-Identifier: MIT */
/*
 * Calls that a signal interrupts: those that end, those that are made again, and
 * those that go on by restart_syscall. A child waits; its parent sends the
 * signal when it sees the child sleep.
 */
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib.h"

static pid_t parent;
static uid_t uid;
static int out;

/* In a child, and known to it. */
static int from_parent; /* a pipe */

/* Set: what the call has left is known only behind it, and then all is expected at once. */
static volatile bool expect_later;

static void expect_handler(void)
{
	expect("write(fd=%d, buf=\"h\", count=1) = 1", out);
}

static void handler(int signo)
{
	(void)signo;
	if (!expect_later)
		expect_handler();
	(void)sys(write, out, "h", 1);
}

static void handle(int flags)
{
	struct sigaction sa = { .sa_handler = handler, .sa_flags = flags };

	t_ok(sigaction(SIGUSR1, &sa, NULL));
}

static void expect_signal(const char *name)
{
	expect("signal(signal=%s, code=0, sender=%d, uid=%u)", name, (int)parent, uid);
}

/* What a child does while it is interrupted. */

static void read_ends(void)
{
	char buf[8];

	handle(0);
	t_begin();
	expect("read(fd=%d, buf=%s, count=8) = -1 EINTR {flags=INTERRUPTED}", from_parent,
	       pointer(buf));
	expect_signal("SIGUSR1");
	t_fails(sys(read, from_parent, buf, 8), EINTR);
	expect("rt_sigreturn() = -1 EINTR");
	t_end();
}

static void read_again(void)
{
	char buf[8];

	handle(SA_RESTART);
	t_begin();
	expect("read(fd=%d, buf=%s, count=8) = -1 ERESTARTSYS {flags=RESTARTED}", from_parent,
	       pointer(buf));
	expect_signal("SIGUSR1");
	t_is(sys(read, from_parent, buf, 8), 3);
	/* The register that held the number of the call is restored: it is made again. */
	expect("rt_sigreturn() = 0");
	expect("read(fd=%d, buf=\"abc\", count=8) = 3", from_parent);
	t_end();
}

/* A signal without a handler that does not end the process: the call is made again at once. */
static void read_goes_on(void)
{
	char buf[8];

	t_begin();
	expect("read(fd=%d, buf=%s, count=8) = -1 ERESTARTSYS {flags=RESTARTED}", from_parent,
	       pointer(buf));
	expect_signal("SIGWINCH");
	t_is(sys(read, from_parent, buf, 8), 3);
	expect("read(fd=%d, buf=\"abc\", count=8) = 3", from_parent);
	t_end();
}

static void sleep_ends(void)
{
	const struct timespec long_time = { 1000, 0 };
	struct timespec rest = { 0 };

	handle(SA_RESTART); /* a sleep ends all the same */
	expect_later = true;
	t_begin();
	t_fails(sys(nanosleep, &long_time, &rest), EINTR);
	expect("nanosleep(duration={tv_sec=1000, tv_nsec=0}, rem=%s) = -1 EINTR {flags=INTERRUPTED}",
	       timespec_text(&rest));
	expect_signal("SIGUSR1");
	expect_handler();
	expect("rt_sigreturn() = -1 EINTR");
	t_end();
	t_true(rest.tv_sec >= 990);
}

static void sleep_goes_on(void)
{
	const struct timespec short_time = { 0, 300000000 };
	struct timespec rest = { 0 };

	t_begin();
	expect("nanosleep(duration={tv_sec=0, tv_nsec=300000000}, rem=*) = -1 ERESTART_RESTARTBLOCK {flags=RESTARTED}");
	expect_signal("SIGWINCH");
	t_ok(sys(nanosleep, &short_time, &rest));
	expect("restart_syscall() = 0");
	t_end();
}

static void clock_sleep_ends(void)
{
	const struct timespec long_time = { 1000, 0 };
	struct timespec rest = { 0 };

	handle(0);
	expect_later = true;
	t_begin();
	t_fails(sys(clock_nanosleep, CLOCK_MONOTONIC, 0, &long_time, &rest), EINTR);
	expect("clock_nanosleep(clockid=CLOCK_MONOTONIC, flags=0, t={tv_sec=1000, tv_nsec=0}, remain=%s) = -1 EINTR {flags=INTERRUPTED}",
	       timespec_text(&rest));
	expect_signal("SIGUSR1");
	expect_handler();
	expect("rt_sigreturn() = -1 EINTR");
	t_end();
	t_true(rest.tv_sec >= 990);
}

static void poll_goes_on(void)
{
	struct pollfd p = { .fd = from_parent, .events = POLLIN };

	t_begin();
	expect("poll(fds=[{fd=%d, events=POLLIN, revents=?}], nfds=1, timeout=10000) = -1 ERESTART_RESTARTBLOCK {flags=RESTARTED}",
	       from_parent);
	expect_signal("SIGWINCH");
	t_is(sys(poll, &p, 1, 10000), 1);
	expect("restart_syscall() = 1");
	t_end();
}

static void poll_ends(void)
{
	struct pollfd p = { .fd = from_parent, .events = POLLIN };

	handle(SA_RESTART);
	t_begin();
	expect("poll(fds=[{fd=%d, events=POLLIN}], nfds=1, timeout=-1) = -1 EINTR {flags=INTERRUPTED}",
	       from_parent);
	expect_signal("SIGUSR1");
	t_fails(sys(poll, &p, 1, -1), EINTR);
	expect("rt_sigreturn() = -1 EINTR");
	t_end();
}

static void epoll_ends(void)
{
	struct epoll_event ev;
	int fd = (int)t_ok(epoll_create1(0));

	handle(SA_RESTART);
	t_begin();
	expect("epoll_wait(epfd=%d, events=%s, maxevents=1, timeout=-1) = -1 EINTR {flags=INTERRUPTED}",
	       fd, pointer(&ev));
	expect_signal("SIGUSR1");
	t_fails(sys(epoll_wait, fd, &ev, 1, -1), EINTR);
	expect("rt_sigreturn() = -1 EINTR");
	t_end();
}

static void pause_ends(void)
{
	handle(SA_RESTART);
	t_begin();
	expect("pause() = -1 EINTR {flags=INTERRUPTED}");
	expect_signal("SIGUSR1");
	t_fails(sys(pause), EINTR);
	expect("rt_sigreturn() = -1 EINTR");
	t_end();
}

/* A write that was begun says how far it came; nothing of it is made again. */
static void write_is_cut(void)
{
	static char block[1 << 20];
	int pipes[2];
	long r;

	t_ok(pipe(pipes));
	memset(block, 'b', sizeof(block));
	handle(SA_RESTART);
	expect_later = true;
	t_begin();
	r = t_ok(sys(write, pipes[1], block, sizeof(block)));
	expect("write(fd=%d, buf=\"b\"*1048576, count=1048576) = %ld", pipes[1], r);
	expect_signal("SIGUSR1");
	expect_handler();
	expect("rt_sigreturn() = %ld", r);
	t_end();
	t_true(r > 0 && r < (long)sizeof(block));
}

static void lock_ends(void)
{
	struct flock fl = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1 };
	int fd = (int)t_ok(open("locked", O_RDWR));

	handle(0);
	t_begin();
	expect("fcntl_setlkw(fd=%d, arg={l_type=F_WRLCK, l_whence=SEEK_SET, l_start=0, l_len=1}) = -1 EINTR {flags=INTERRUPTED}",
	       fd);
	expect_signal("SIGUSR1");
	t_fails(sys(fcntl, fd, F_SETLKW, &fl), EINTR);
	expect("rt_sigreturn() = -1 EINTR");
	t_end();
}

/* One of these, interrupted by a signal, and then given something to read. */
static void interrupt(void (*child)(void), int signo)
{
	int pipes[2], status = -1;
	pid_t pid;

	t_ok(pipe(pipes));
	pid = (pid_t)t_ok(fork());
	if (!pid) {
		t_thread();
		t_ok(close(pipes[1]));
		from_parent = pipes[0];
		child();
		_exit(0);
	}
	t_ok(close(pipes[0]));
	t_await_state(pid, 'S');
	t_ok(kill(pid, signo));
	/* The child is at rest again, or has ended. */
	if (signo == SIGWINCH || child == read_again) {
		(void)nanosleep(&(struct timespec){ .tv_nsec = 50000000 }, NULL);
		t_is(write(pipes[1], "abc", 3), 3);
	}
	t_is(waitpid(pid, &status, 0), pid);
	t_is(status, 0);
	t_ok(close(pipes[1]));
}

int main(void)
{
	struct flock fl = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_len = 1 };
	int fd;

	t_init();
	parent = getpid();
	uid = getuid();
	out = (int)t_ok(open("out", O_CREAT | O_WRONLY | O_APPEND, 0600));
	fd = (int)t_ok(open("locked", O_CREAT | O_RDWR, 0600));
	t_ok(fcntl(fd, F_SETLK, &fl));
	interrupt(read_ends, SIGUSR1);
	interrupt(read_again, SIGUSR1);
	interrupt(read_goes_on, SIGWINCH);
	interrupt(sleep_ends, SIGUSR1);
	interrupt(sleep_goes_on, SIGWINCH);
	interrupt(clock_sleep_ends, SIGUSR1);
	interrupt(poll_goes_on, SIGWINCH);
	interrupt(poll_ends, SIGUSR1);
	interrupt(epoll_ends, SIGUSR1);
	interrupt(pause_ends, SIGUSR1);
	interrupt(write_is_cut, SIGUSR1);
	interrupt(lock_ends, SIGUSR1);
	return 0;
}
