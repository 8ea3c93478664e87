/* SPDX-License-Identifier: MIT */
/* Pipes, and descriptors that tell of something: events, timers, signals, changes of files. */
#include <fcntl.h>
#include <sys/eventfd.h>
#include <sys/fanotify.h>
#include <sys/inotify.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "lib.h"

static void close_it(long fd)
{
	expect("close(fd=%ld) = 0", fd);
	t_ok(sys(close, fd));
}

static void pipes(void)
{
	int fds[2];

	t_ok(sys(pipe, fds));
	expect("pipe(pipefd=[%d, %d]) = 0", fds[0], fds[1]);
	close_it(fds[0]);
	close_it(fds[1]);
	t_ok(sys(pipe2, fds, O_CLOEXEC | O_NONBLOCK | O_DIRECT));
	expect("pipe2(pipefd=[%d, %d], flags=O_NONBLOCK|O_DIRECT|O_CLOEXEC) = 0", fds[0], fds[1]);
	close_it(fds[0]);
	close_it(fds[1]);
	expect("pipe(pipefd=NULL) = -1 EFAULT");
	t_fails(sys(pipe, NULL), EFAULT);
	expect("pipe2(pipefd=%s, flags=0x1) = -1 EINVAL", pointer(fds));
	t_fails(sys(pipe2, fds, O_WRONLY), EINVAL);
}

static void events(void)
{
	uint64_t n = 5;
	long fd;

	fd = t_ok(sys(eventfd, 3));
	expect("eventfd(initval=3) = %ld", fd);
	expect("read(fd=%ld, buf=\"\\x03\\x00\\x00\\x00\\x00\\x00\\x00\\x00\", count=8) = 8", fd);
	t_is(sys(read, fd, &n, 8), 8);
	close_it(fd);
	fd = t_ok(sys(eventfd2, 0, EFD_CLOEXEC | EFD_NONBLOCK | EFD_SEMAPHORE));
	expect("eventfd2(initval=0, flags=EFD_SEMAPHORE|EFD_CLOEXEC|EFD_NONBLOCK) = %ld", fd);
	expect("read(fd=%ld, buf=%s, count=8) = -1 EAGAIN", fd, pointer(&n));
	t_fails(sys(read, fd, &n, 8), EAGAIN);
	close_it(fd);
	expect("eventfd2(initval=4294967295, flags=0x40000000) = -1 EINVAL");
	t_fails(sys(eventfd2, ~0u, 0x40000000), EINVAL);
}

static char *itimerspec_text(const struct itimerspec *t)
{
	return text("{it_interval=%s, it_value=%s}", timespec_text(&t->it_interval),
		    timespec_text(&t->it_value));
}

static void timers(void)
{
	struct itimerspec set = { { 10, 5 }, { 1000, 7 } }, old = { 0 };
	long fd;

	fd = t_ok(sys(timerfd_create, CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK));
	expect("timerfd_create(clockid=CLOCK_MONOTONIC, flags=TFD_CLOEXEC|TFD_NONBLOCK) = %ld", fd);
	expect("timerfd_settime(fd=%ld, flags=0, new_value=%s, old_value={it_interval={tv_sec=0, tv_nsec=0}, it_value={tv_sec=0, tv_nsec=0}}) = 0",
	       fd, itimerspec_text(&set));
	t_ok(sys(timerfd_settime, fd, 0, &set, &old));
	t_ok(sys(timerfd_gettime, fd, &old));
	expect("timerfd_gettime(fd=%ld, curr_value=%s) = 0", fd, itimerspec_text(&old));
	expect("timerfd_settime(fd=%ld, flags=TFD_TIMER_ABSTIME, new_value=%s, old_value=NULL) = 0",
	       fd, itimerspec_text(&set));
	t_ok(sys(timerfd_settime, fd, TFD_TIMER_ABSTIME, &set, NULL));
	set.it_value.tv_nsec = -1;
	expect("timerfd_settime(fd=%ld, flags=0, new_value=%s, old_value=%s) = -1 EINVAL", fd,
	       itimerspec_text(&set), pointer(&old));
	t_fails(sys(timerfd_settime, fd, 0, &set, &old), EINVAL);
	close_it(fd);
	expect("timerfd_gettime(fd=-1, curr_value=%s) = -1 EBADF", pointer(&old));
	t_fails(sys(timerfd_gettime, -1, &old), EBADF);
	expect("timerfd_create(clockid=99, flags=0) = -1 EINVAL");
	t_fails(sys(timerfd_create, 99, 0), EINVAL);
}

static void signal_descriptors(void)
{
	uint64_t set = 1ULL << (SIGUSR1 - 1) | 1ULL << (SIGTERM - 1), more = 1ULL << (SIGHUP - 1);
	long fd;

	fd = t_ok(sys(signalfd, -1, &set, 8));
	expect("signalfd(fd=-1, mask=[[USR1 TERM]], sizemask=8) = %ld", fd);
	close_it(fd);
	fd = t_ok(sys(signalfd4, -1, &set, 8, SFD_CLOEXEC | SFD_NONBLOCK));
	expect("signalfd4(fd=-1, mask=[[USR1 TERM]], sizemask=8, flags=SFD_CLOEXEC|SFD_NONBLOCK) = %ld",
	       fd);
	expect("signalfd4(fd=%ld, mask=[[HUP]], sizemask=8, flags=0) = %ld", fd, fd);
	t_is(sys(signalfd4, fd, &more, 8, 0), fd);
	close_it(fd);
	expect("signalfd4(fd=-1, mask=[[HUP]], sizemask=8, flags=0x1) = -1 EINVAL");
	t_fails(sys(signalfd4, -1, &more, 8, 1), EINVAL);
	expect("signalfd(fd=-1, mask=NULL, sizemask=8) = -1 EFAULT");
	t_fails(sys(signalfd, -1, NULL, 8), EFAULT);
}

static void inotify(void)
{
	char buf[500];
	long fd, wd, n;

	fd = t_ok(sys(inotify_init));
	expect("inotify_init() = %ld", fd);
	close_it(fd);
	fd = t_ok(sys(inotify_init1, IN_CLOEXEC | IN_NONBLOCK));
	expect("inotify_init1(flags=IN_CLOEXEC|IN_NONBLOCK) = %ld", fd);
	wd = t_ok(sys(inotify_add_watch, fd, ".", IN_CREATE | IN_ONLYDIR));
	expect("inotify_add_watch(fd=%ld, path=\".\", mask=IN_CREATE|IN_ONLYDIR) = %ld", fd, wd);
	expect("mkdir(path=\"made\", mode=0700) = 0");
	t_ok(sys(mkdir, "made", 0700));
	n = t_ok(sys(read, fd, buf, sizeof(buf)));
	expect("read(fd=%ld, buf=%s, count=500) = %ld", fd, quote(buf, (size_t)n), n);
	expect("inotify_rm_watch(fd=%ld, wd=%ld) = 0", fd, wd);
	t_ok(sys(inotify_rm_watch, fd, wd));
	expect("inotify_rm_watch(fd=%ld, wd=%ld) = -1 EINVAL", fd, wd);
	t_fails(sys(inotify_rm_watch, fd, wd), EINVAL);
	expect("inotify_add_watch(fd=%ld, path=\"none\", mask=IN_ALL_EVENTS) = -1 ENOENT", fd);
	t_fails(sys(inotify_add_watch, fd, "none", IN_ALL_EVENTS), ENOENT);
	close_it(fd);
	expect("inotify_init1(flags=0x1) = -1 EINVAL");
	t_fails(sys(inotify_init1, 1), EINVAL);
}

static void fanotify(void)
{
	long fd, r;

	fd = sys(fanotify_init, FAN_CLASS_NOTIF | FAN_CLOEXEC | FAN_NONBLOCK | FAN_REPORT_FID,
		 O_RDONLY | O_CLOEXEC);
	expect("fanotify_init(flags=FAN_CLASS_NOTIF|FAN_CLOEXEC|FAN_NONBLOCK|FAN_REPORT_FID, event_f_flags=O_RDONLY|O_CLOEXEC) = %s",
	       outcome(fd));
	r = sys(fanotify_mark, fd, FAN_MARK_ADD, FAN_MODIFY | FAN_CREATE | FAN_ONDIR, AT_FDCWD,
		".");
	expect("fanotify_mark(fanotify_fd=%ld, flags=FAN_MARK_ADD, mask=FAN_MODIFY|FAN_CREATE|FAN_ONDIR, dirfd=AT_FDCWD, path=\".\") = %s",
	       fd, outcome(r));
	expect("fanotify_mark(fanotify_fd=-1, flags=FAN_MARK_REMOVE|FAN_MARK_DONT_FOLLOW, mask=FAN_ACCESS, dirfd=3, path=NULL) = -1 EBADF");
	t_fails(sys(fanotify_mark, -1, FAN_MARK_REMOVE | FAN_MARK_DONT_FOLLOW, FAN_ACCESS, 3, NULL),
		EBADF);
	if (fd >= 0)
		close_it(fd);
}

int main(void)
{
	t_init();
	t_begin();
	pipes();
	events();
	timers();
	signal_descriptors();
	inotify();
	fanotify();
	t_end();
	return 0;
}
