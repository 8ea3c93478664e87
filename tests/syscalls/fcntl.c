/* SPDX-License-Identifier: MIT */
/* fcntl by its commands, but for locks. */
#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib.h"

#ifndef F_DUPFD_QUERY
#define F_DUPFD_QUERY 1027
#endif
#ifndef F_CREATED_QUERY
#define F_CREATED_QUERY 1028
#endif
#ifndef F_GETOWNER_UIDS
#define F_GETOWNER_UIDS 17
#endif

static void duplicates(int fd)
{
	expect("fcntl_dupfd(fd=%d, arg=200) = 200", fd);
	t_is(sys(fcntl, fd, F_DUPFD, 200), 200);
	expect("fcntl_dupfd_cloexec(fd=%d, arg=200) = 201", fd);
	t_is(sys(fcntl, fd, F_DUPFD_CLOEXEC, 200), 201);
	expect("fcntl_dupfd(fd=%d, arg=-1) = -1 EINVAL", fd);
	t_fails(sys(fcntl, fd, F_DUPFD, -1), EINVAL);
	expect("fcntl_dupfd_cloexec(fd=-1, arg=0) = -1 EBADF");
	t_fails(sys(fcntl, -1, F_DUPFD_CLOEXEC, 0), EBADF);
	expect("fcntl_getfd(fd=201) = 1");
	t_is(sys(fcntl, 201, F_GETFD), FD_CLOEXEC);
	expect("fcntl_setfd(fd=200, arg=FD_CLOEXEC) = 0");
	t_ok(sys(fcntl, 200, F_SETFD, FD_CLOEXEC));
	expect("fcntl_setfd(fd=200, arg=0) = 0");
	t_ok(sys(fcntl, 200, F_SETFD, 0));
	expect("fcntl_setfd(fd=-1, arg=FD_CLOEXEC|0xfe) = -1 EBADF");
	t_fails(sys(fcntl, -1, F_SETFD, 0xff), EBADF);
	expect("fcntl_getfd(fd=-1) = -1 EBADF");
	t_fails(sys(fcntl, -1, F_GETFD), EBADF);
}

static void queries(int fd)
{
	long r;

	r = sys(fcntl, fd, F_DUPFD_QUERY, 200);
	expect("fcntl_dupfd_query(fd=%d, arg=200) = %s", fd, outcome(r));
	r = sys(fcntl, fd, F_CREATED_QUERY);
	expect("fcntl_created_query(fd=%d) = %s", fd, outcome(r));
	r = sys(fcntl, fd, 99, 0x1234);
	expect("fcntl(fd=%d, cmd=99, arg=0x1234) = %s", fd, outcome(r));
}

static void flags(int fd)
{
	expect("fcntl_getfl(fd=%d) = O_RDWR|O_LARGEFILE", fd);
	t_is(sys(fcntl, fd, F_GETFL), O_RDWR | 0100000);
	expect("fcntl_setfl(fd=%d, arg=O_RDONLY|O_APPEND|O_NONBLOCK|O_NOATIME) = 0", fd);
	t_ok(sys(fcntl, fd, F_SETFL, O_APPEND | O_NONBLOCK | O_NOATIME));
	expect("fcntl_getfl(fd=%d) = O_RDWR|O_APPEND|O_NONBLOCK|O_LARGEFILE|O_NOATIME", fd);
	t_is(sys(fcntl, fd, F_GETFL), O_RDWR | O_APPEND | O_NONBLOCK | O_NOATIME | 0100000);
	expect("fcntl_setfl(fd=%d, arg=O_RDONLY) = 0", fd);
	t_ok(sys(fcntl, fd, F_SETFL, 0));
	expect("fcntl_getfl(fd=-1) = -1 EBADF");
	t_fails(sys(fcntl, -1, F_GETFL), EBADF);
	expect("fcntl_setfl(fd=-1, arg=O_RDONLY|O_APPEND) = -1 EBADF");
	t_fails(sys(fcntl, -1, F_SETFL, O_APPEND), EBADF);
}

static void owners(int fd, pid_t self, uid_t uid, uid_t euid)
{
	struct f_owner_ex owner = { .type = F_OWNER_PGRP, .pid = 0 };
	uid_t uids[2] = { 7, 7 };
	long r;

	expect("fcntl_setown(fd=%d, arg=%d) = 0", fd, self);
	t_ok(sys(fcntl, fd, F_SETOWN, self));
	expect("fcntl_getown(fd=%d) = %d", fd, self);
	t_is(sys(fcntl, fd, F_GETOWN), self);
	expect("fcntl_setown(fd=%d, arg=-2147483648) = -1 EINVAL", fd);
	t_fails(sys(fcntl, fd, F_SETOWN, (int)0x80000000), EINVAL);
	expect("fcntl_getown(fd=-1) = -1 EBADF");
	t_fails(sys(fcntl, -1, F_GETOWN), EBADF);
	expect("fcntl_getown_ex(fd=%d, arg={type=F_OWNER_PID, pid=%d}) = 0", fd, self);
	t_ok(sys(fcntl, fd, F_GETOWN_EX, &owner));
	owner.type = F_OWNER_TID;
	expect("fcntl_setown_ex(fd=%d, arg={type=F_OWNER_TID, pid=%d}) = 0", fd, self);
	t_ok(sys(fcntl, fd, F_SETOWN_EX, &owner));
	owner.type = 9;
	expect("fcntl_setown_ex(fd=%d, arg={type=9, pid=%d}) = -1 EINVAL", fd, self);
	t_fails(sys(fcntl, fd, F_SETOWN_EX, &owner), EINVAL);
	expect("fcntl_getown_ex(fd=%d, arg=&0x8) = -1 EFAULT", fd);
	t_fails(sys(fcntl, fd, F_GETOWN_EX, 8), EFAULT);
	r = sys(fcntl, fd, F_GETOWNER_UIDS, uids);
	if (r < 0)
		expect("fcntl_getowner_uids(fd=%d, arg=%s) = %s", fd, pointer(uids), outcome(r));
	else
		expect("fcntl_getowner_uids(fd=%d, arg=[%u, %u]) = 0", fd, uid, euid);
	expect("fcntl_setsig(fd=%d, arg=SIGUSR1) = 0", fd);
	t_ok(sys(fcntl, fd, F_SETSIG, SIGUSR1));
	expect("fcntl_getsig(fd=%d) = 10", fd);
	t_is(sys(fcntl, fd, F_GETSIG), SIGUSR1);
	expect("fcntl_setsig(fd=%d, arg=1000) = -1 EINVAL", fd);
	t_fails(sys(fcntl, fd, F_SETSIG, 1000), EINVAL);
	expect("fcntl_getsig(fd=-1) = -1 EBADF");
	t_fails(sys(fcntl, -1, F_GETSIG), EBADF);
}

static void leases(int fd, int dir)
{
	long r;

	r = sys(fcntl, fd, F_SETLEASE, F_WRLCK);
	expect("fcntl_setlease(fd=%d, arg=F_WRLCK) = %s", fd, outcome(r));
	r = t_ok(sys(fcntl, fd, F_GETLEASE));
	expect("fcntl_getlease(fd=%d) = %ld", fd, r);
	r = sys(fcntl, fd, F_SETLEASE, F_UNLCK);
	expect("fcntl_setlease(fd=%d, arg=F_UNLCK) = %s", fd, outcome(r));
	expect("fcntl_setlease(fd=-1, arg=F_RDLCK) = -1 EBADF");
	t_fails(sys(fcntl, -1, F_SETLEASE, F_RDLCK), EBADF);
	r = sys(fcntl, dir, F_NOTIFY, DN_CREATE | DN_ATTRIB | DN_MULTISHOT);
	expect("fcntl_notify(fd=%d, arg=DN_CREATE|DN_ATTRIB|DN_MULTISHOT) = %s", dir, outcome(r));
	r = sys(fcntl, dir, F_NOTIFY, 0);
	expect("fcntl_notify(fd=%d, arg=0) = %s", dir, outcome(r));
	r = sys(fcntl, fd, F_NOTIFY, DN_ACCESS);
	expect("fcntl_notify(fd=%d, arg=DN_ACCESS) = %s", fd, outcome(r));
}

static void pipe_sizes(int fd, int file)
{
	expect("fcntl_setpipe_sz(fd=%d, arg=10000) = 16384", fd);
	t_is(sys(fcntl, fd, F_SETPIPE_SZ, 10000), 16384);
	expect("fcntl_getpipe_sz(fd=%d) = 16384", fd);
	t_is(sys(fcntl, fd, F_GETPIPE_SZ), 16384);
	expect("fcntl_getpipe_sz(fd=%d) = -1 EBADF", file);
	t_fails(sys(fcntl, file, F_GETPIPE_SZ), EBADF);
	expect("fcntl_setpipe_sz(fd=%d, arg=1) = -1 EBADF", file);
	t_fails(sys(fcntl, file, F_SETPIPE_SZ, 1), EBADF);
}

static void seals(int fd, int pipe_fd)
{
	expect("fcntl_add_seals(fd=%d, arg=F_SEAL_SHRINK|F_SEAL_GROW) = 0", fd);
	t_ok(sys(fcntl, fd, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW));
	expect("ftruncate(fd=%d, length=1) = -1 EPERM", fd);
	t_fails(sys(ftruncate, fd, 1), EPERM);
	expect("fcntl_add_seals(fd=%d, arg=F_SEAL_SEAL|F_SEAL_WRITE|F_SEAL_FUTURE_WRITE) = 0", fd);
	t_ok(sys(fcntl, fd, F_ADD_SEALS, F_SEAL_SEAL | F_SEAL_WRITE | F_SEAL_FUTURE_WRITE));
	expect("fcntl_get_seals(fd=%d) = 31", fd);
	t_is(sys(fcntl, fd, F_GET_SEALS), 31);
	expect("fcntl_add_seals(fd=%d, arg=F_SEAL_WRITE) = -1 EPERM", fd);
	t_fails(sys(fcntl, fd, F_ADD_SEALS, F_SEAL_WRITE), EPERM);
	expect("fcntl_get_seals(fd=%d) = -1 EINVAL", pipe_fd);
	t_fails(sys(fcntl, pipe_fd, F_GET_SEALS), EINVAL);
}

static void hints(int fd)
{
	uint64_t hint = RWH_WRITE_LIFE_LONG, bad = 77;
	long r;

	expect("fcntl_set_rw_hint(fd=%d, arg=[RWH_WRITE_LIFE_LONG]) = 0", fd);
	t_ok(sys(fcntl, fd, F_SET_RW_HINT, &hint));
	hint = 0;
	expect("fcntl_get_rw_hint(fd=%d, arg=[RWH_WRITE_LIFE_LONG]) = 0", fd);
	t_ok(sys(fcntl, fd, F_GET_RW_HINT, &hint));
	r = sys(fcntl, fd, F_SET_RW_HINT, &bad);
	expect("fcntl_set_rw_hint(fd=%d, arg=[77]) = %s", fd, outcome(r));
	expect("fcntl_get_rw_hint(fd=-1, arg=%s) = -1 EBADF", pointer(&hint));
	t_fails(sys(fcntl, -1, F_GET_RW_HINT, &hint), EBADF);
	hint = RWH_WRITE_LIFE_SHORT;
	r = sys(fcntl, fd, F_SET_FILE_RW_HINT, &hint);
	expect("fcntl_set_file_rw_hint(fd=%d, arg=[RWH_WRITE_LIFE_SHORT]) = %s", fd, outcome(r));
	r = sys(fcntl, fd, F_GET_FILE_RW_HINT, &hint);
	if (r < 0)
		expect("fcntl_get_file_rw_hint(fd=%d, arg=%s) = %s", fd, pointer(&hint),
		       outcome(r));
	else
		expect("fcntl_get_file_rw_hint(fd=%d, arg=[RWH_WRITE_LIFE_SHORT]) = 0", fd);
}

int main(void)
{
	int fd, dir, pipes[2], memfd;
	pid_t self;
	uid_t uid, euid;

	t_init();
	fd = (int)t_ok(open("f", O_RDWR | O_CREAT, 0600));
	dir = (int)t_ok(open(".", O_RDONLY | O_DIRECTORY));
	memfd = (int)t_ok(memfd_create("m", MFD_ALLOW_SEALING));
	t_ok(pipe(pipes));
	self = getpid();
	uid = getuid();
	euid = geteuid();
	t_begin();
	duplicates(fd);
	queries(fd);
	flags(fd);
	owners(fd, self, uid, euid);
	leases(fd, dir);
	pipe_sizes(pipes[0], fd);
	seals(memfd, pipes[0]);
	hints(fd);
	t_end();
	return 0;
}
