/* SPDX-License-Identifier: MIT */
/* Locks of files, and who waits for whom. */
#include <fcntl.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib.h"

static int to_parent[2], to_child[2];

static void tell(int fd)
{
	t_is(write(fd, "x", 1), 1);
}

static void await_word(int fd)
{
	t_is(read(fd, &(char){ 0 }, 1), 1);
}

static char *lock_text(const struct flock *fl)
{
	static const char *const types[] = { "F_RDLCK", "F_WRLCK", "F_UNLCK" };
	static const char *const whences[] = { "SEEK_SET", "SEEK_CUR", "SEEK_END" };

	return text("{l_type=%s, l_whence=%s, l_start=%ld, l_len=%ld, l_pid=%d}", types[fl->l_type],
		    whences[fl->l_whence], fl->l_start, fl->l_len, fl->l_pid);
}

/* Holds locks until the parent has met them. */
static _Noreturn void holder(void)
{
	struct flock fl = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 10, .l_len = 20 };
	int fd;

	t_thread();
	fd = (int)t_ok(open("f", O_RDWR));
	t_begin();
	expect("fcntl_setlk(fd=%d, arg=%s) = 0", fd, lock_text(&fl));
	t_ok(sys(fcntl, fd, F_SETLK, &fl));
	expect("flock(fd=%d, op=LOCK_EX) = 0", fd);
	t_ok(sys(flock, fd, LOCK_EX));
	t_end();
	tell(to_parent[1]);
	await_word(to_child[0]);
	t_await_state(getppid(), 'S');
	t_begin();
	fl.l_type = F_UNLCK;
	expect("fcntl_setlk(fd=%d, arg=%s) = 0 {label=record}", fd, lock_text(&fl));
	t_ok(sys(fcntl, fd, F_SETLK, &fl));
	t_end();
	await_word(to_child[0]);
	t_await_state(getppid(), 'S');
	t_begin();
	expect("flock(fd=%d, op=LOCK_UN) = 0 {label=whole}", fd);
	t_ok(sys(flock, fd, LOCK_UN));
	t_end();
	_exit(0);
}

static void against_holder(int fd, pid_t child)
{
	struct flock fl = { .l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 100 };
	struct flock found = {
		.l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 10, .l_len = 20
	};

	found.l_pid = child;
	expect("fcntl_getlk(fd=%d, arg=%s, arg_after=%s) = 0", fd, lock_text(&fl),
	       lock_text(&found));
	t_ok(sys(fcntl, fd, F_GETLK, &fl));
	fl = (struct flock){ .l_type = F_RDLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 11 };
	expect("fcntl_setlk(fd=%d, arg=%s) = -1 EAGAIN", fd, lock_text(&fl));
	t_fails(sys(fcntl, fd, F_SETLK, &fl), EAGAIN);
	expect("fcntl_ofd_setlk(fd=%d, arg=%s) = -1 EAGAIN", fd, lock_text(&fl));
	t_fails(sys(fcntl, fd, F_OFD_SETLK, &fl), EAGAIN);
	found.l_pid = child;
	expect("fcntl_ofd_getlk(fd=%d, arg=%s, arg_after=%s) = 0", fd, lock_text(&fl),
	       lock_text(&found));
	t_ok(sys(fcntl, fd, F_OFD_GETLK, &fl));
	expect("flock(fd=%d, op=LOCK_SH|LOCK_NB) = -1 EAGAIN", fd);
	t_fails(sys(flock, fd, LOCK_SH | LOCK_NB), EAGAIN);
}

/* Waits that the other process ends. */
static void waiting(int fd)
{
	struct flock fl = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = 0, .l_len = 0 };

	tell(to_child[1]);
	t_begin();
	expect("fcntl_setlkw(fd=%d, arg=%s) = 0 {after=record}", fd, lock_text(&fl));
	t_ok(sys(fcntl, fd, F_SETLKW, &fl));
	fl.l_type = F_UNLCK;
	expect("fcntl_setlkw(fd=%d, arg=%s) = 0", fd, lock_text(&fl));
	t_ok(sys(fcntl, fd, F_SETLKW, &fl));
	t_end();
	tell(to_child[1]);
	t_begin();
	expect("flock(fd=%d, op=LOCK_EX) = 0 {after=whole}", fd);
	t_ok(sys(flock, fd, LOCK_EX));
	expect("flock(fd=%d, op=LOCK_SH) = 0", fd);
	t_ok(sys(flock, fd, LOCK_SH));
	expect("flock(fd=%d, op=LOCK_UN) = 0", fd);
	t_ok(sys(flock, fd, LOCK_UN));
	t_end();
}

static void alone(int fd)
{
	struct flock fl = { .l_type = F_WRLCK, .l_whence = SEEK_END, .l_start = -5, .l_len = 5 };
	struct flock bad = { .l_type = F_WRLCK, .l_whence = SEEK_SET, .l_start = -5, .l_len = 5 };
	struct flock after = fl;
	long r;

	expect("fcntl_setlk(fd=%d, arg=%s) = 0", fd, lock_text(&fl));
	t_ok(sys(fcntl, fd, F_SETLK, &fl));
	after.l_type = F_UNLCK;
	expect("fcntl_getlk(fd=%d, arg=%s, arg_after=%s) = 0", fd, lock_text(&fl),
	       lock_text(&after));
	t_ok(sys(fcntl, fd, F_GETLK, &fl));
	fl.l_type = F_RDLCK;
	expect("fcntl_ofd_setlkw(fd=-1, arg=%s) = -1 EBADF", lock_text(&fl));
	t_fails(sys(fcntl, -1, F_OFD_SETLKW, &fl), EBADF);
	fl.l_start = -100;
	expect("fcntl_setlk(fd=%d, arg=%s) = -1 EINVAL", fd, lock_text(&fl));
	t_fails(sys(fcntl, fd, F_SETLK, &fl), EINVAL);
	expect("fcntl_getlk(fd=%d, arg=%s, arg_after=*) = -1 EINVAL", fd, lock_text(&bad));
	t_fails(sys(fcntl, fd, F_GETLK, &bad), EINVAL);
	expect("fcntl_setlkw(fd=%d, arg=&0x8) = -1 EFAULT", fd);
	t_fails(sys(fcntl, fd, F_SETLKW, 8), EFAULT);
	fl = (struct flock){ .l_type = F_UNLCK, .l_whence = SEEK_SET };
	expect("fcntl_setlk(fd=%d, arg=%s) = 0", fd, lock_text(&fl));
	t_ok(sys(fcntl, fd, F_SETLK, &fl));
	fl = (struct flock){ .l_type = F_WRLCK, .l_whence = SEEK_CUR, .l_len = 1L << 40 };
	expect("fcntl_ofd_setlkw(fd=%d, arg=%s) = 0", fd, lock_text(&fl));
	t_ok(sys(fcntl, fd, F_OFD_SETLKW, &fl));
	fl.l_type = F_UNLCK;
	expect("fcntl_ofd_setlk(fd=%d, arg=%s) = 0", fd, lock_text(&fl));
	t_ok(sys(fcntl, fd, F_OFD_SETLK, &fl));
	expect("flock(fd=-1, op=LOCK_SH) = -1 EBADF");
	t_fails(sys(flock, -1, LOCK_SH), EBADF);
	r = sys(flock, fd, 0x55);
	expect("flock(fd=%d) = %s", fd, outcome(r));
}

int main(void)
{
	pid_t child;
	int fd;

	t_init();
	t_block_sigchld();
	fd = (int)t_ok(open("f", O_RDWR | O_CREAT, 0600));
	t_ok(ftruncate(fd, 50));
	t_ok(pipe(to_parent));
	t_ok(pipe(to_child));
	t_begin();
	alone(fd);
	t_end();
	child = (pid_t)t_ok(fork());
	if (!child)
		holder();
	await_word(to_parent[0]);
	t_begin();
	against_holder(fd, child);
	t_end();
	waiting(fd);
	t_is(waitpid(child, &(int){ 0 }, 0), child);
	return 0;
}
