/* SPDX-License-Identifier: MIT */
/* Who a process is. What it sets, it sets to what it has; sessions are begun by a child. */
#include <linux/capability.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib.h"

#define NOBODY 4294967294u

static void processes(void)
{
	long pid, ppid, pgid, sid;

	pid = t_ok(sys(getpid));
	expect("getpid() = %ld", pid);
	ppid = t_ok(sys(getppid));
	expect("getppid() = %ld", ppid);
	expect("gettid() = %ld", pid);
	t_is(sys(gettid), pid);
	pgid = t_ok(sys(getpgrp));
	expect("getpgrp() = %ld", pgid);
	expect("getpgid(pid=%ld) = %ld", pid, pgid);
	t_is(sys(getpgid, pid), pgid);
	expect("getpgid(pid=-1) = -1 ESRCH");
	t_fails(sys(getpgid, -1), ESRCH);
	sid = t_ok(sys(getsid, 0));
	expect("getsid(pid=0) = %ld", sid);
	expect("getsid(pid=-1) = -1 ESRCH");
	t_fails(sys(getsid, -1), ESRCH);
	expect("setpgid(pid=-1, pgid=0) = -1 EINVAL");
	t_fails(sys(setpgid, -1, 0), EINVAL);
}

static void users(void)
{
	unsigned int r, e, s;
	char room[12];
	long uid, gid;

	uid = t_ok(sys(getuid));
	expect("getuid() = %ld", uid);
	expect("geteuid() = %ld", uid);
	t_is(sys(geteuid), uid);
	gid = t_ok(sys(getgid));
	expect("getgid() = %ld", gid);
	expect("getegid() = %ld", gid);
	t_is(sys(getegid), gid);
	t_ok(sys(getresuid, &r, &e, &s));
	expect("getresuid(ruid=[%u], euid=[%u], suid=[%u]) = 0", r, e, s);
	t_ok(sys(getresgid, &r, &e, &s));
	expect("getresgid(rgid=[%u], egid=[%u], sgid=[%u]) = 0", r, e, s);
	t_ok(sys(getresuid, room, room + 2, room + 8)); /* over each other */
	memcpy(&r, room, sizeof(r));
	memcpy(&e, room + 2, sizeof(e));
	memcpy(&s, room + 8, sizeof(s));
	expect("getresuid(ruid=[%u], euid=[%u], suid=[%u]) = 0", r, e, s);
	expect("getresuid(ruid=NULL, euid=NULL, suid=NULL) = -1 EFAULT");
	t_fails(sys(getresuid, NULL, NULL, NULL), EFAULT);
	expect("getresgid(rgid=NULL, egid=NULL, sgid=NULL) = -1 EFAULT");
	t_fails(sys(getresgid, NULL, NULL, NULL), EFAULT);
	expect("setuid(uid=%ld) = 0", uid);
	t_ok(sys(setuid, uid));
	expect("setgid(gid=%ld) = 0", gid);
	t_ok(sys(setgid, gid));
	expect("setreuid(ruid=-1, euid=%ld) = 0", uid);
	t_ok(sys(setreuid, -1, uid));
	expect("setregid(rgid=%ld, egid=-1) = 0", gid);
	t_ok(sys(setregid, gid, -1));
	expect("setresuid(ruid=-1, euid=-1, suid=%ld) = 0", uid);
	t_ok(sys(setresuid, -1, -1, uid));
	expect("setresgid(rgid=-1, egid=-1, sgid=-1) = 0");
	t_ok(sys(setresgid, -1, -1, -1));
	expect("setuid(uid=-1) = -1 EINVAL");
	t_fails(sys(setuid, -1), EINVAL);
	expect("setfsuid(fsuid=%ld) = %ld", uid, uid);
	t_is(sys(setfsuid, uid), uid);
	expect("setfsgid(fsgid=%ld) = %ld", gid, gid);
	t_is(sys(setfsgid, gid), gid);
}

/* Those of another: allowed to root only, so in a child. */
static void another(void)
{
	int status;
	pid_t pid = (pid_t)t_ok(fork());

	if (!pid) {
		long r;

		t_thread();
		t_begin();
		r = sys(setresgid, NOBODY, NOBODY, NOBODY);
		expect("setresgid(rgid=4294967294, egid=4294967294, sgid=4294967294) = %s",
		       outcome(r));
		r = sys(setresuid, NOBODY, NOBODY, NOBODY);
		expect("setresuid(ruid=4294967294, euid=4294967294, suid=4294967294) = %s",
		       outcome(r));
		r = sys(getuid);
		expect("getuid() = %ld", r);
		t_end();
		_exit(0);
	}
	t_is(waitpid(pid, &status, 0), pid);
	t_is(status, 0);
}

static void groups(void)
{
	unsigned int list[1024], out[2] = { 5, NOBODY };
	char *s = text("%s", "");
	long n, i, r;

	n = t_ok(sys(getgroups, 0, NULL));
	expect("getgroups(size=0, list=NULL) = %ld", n);
	t_is(sys(getgroups, 1024, list), n);
	for (i = 0; i < n; i++)
		s = text("%s%s%u", s, i ? ", " : "", list[i]);
	expect("getgroups(size=1024, list=[%s]) = %ld", s, n);
	expect("getgroups(size=-1, list=%s) = -1 EINVAL", pointer(list));
	t_fails(sys(getgroups, -1, list), EINVAL);
	r = sys(setgroups, 100000, out);
	expect("setgroups(size=100000, list=*) = %s", outcome(r));
	t_true(r == -1);
}

/* A process that leaves its group and its session. */
static void session(void)
{
	pid_t pid = (pid_t)t_ok(fork());

	if (!pid) {
		unsigned int out[2] = { 5, NOBODY };
		long self, r;

		t_thread();
		t_begin();
		self = t_ok(sys(getpid));
		expect("getpid() = %ld", self);
		expect("setpgid(pid=0, pgid=0) = 0");
		t_ok(sys(setpgid, 0, 0));
		expect("setsid() = -1 EPERM {pgid=%ld}", self);
		t_fails(sys(setsid), EPERM);
		r = sys(setgroups, 2, out);
		expect("setgroups(size=2, list=[5, 4294967294]) = %s", outcome(r));
		t_end();
		_exit(0);
	}
	t_is(waitpid(pid, &(int){ 0 }, 0), pid);
	pid = (pid_t)t_ok(fork());
	if (!pid) {
		long self, r;

		t_thread();
		self = getpid();
		t_begin();
		expect("setsid() = %ld", self);
		t_is(sys(setsid), self);
		/* A session of its own is a process group of its own. */
		expect("getsid(pid=0) = %ld {pgid=%ld}", self, self);
		t_is(sys(getsid, 0), self);
		/* Without a terminal this hangs up nothing. */
		r = sys(vhangup);
		expect("vhangup() = %s", outcome(r));
		t_end();
		_exit(0);
	}
	t_is(waitpid(pid, &(int){ 0 }, 0), pid);
}

static void capabilities(void)
{
	struct __user_cap_header_struct h = { _LINUX_CAPABILITY_VERSION_3, 0 }, bad = { 0x1234, 0 };
	struct __user_cap_data_struct d[2];
	char *s;

	t_ok(sys(capget, &h, d));
	s = text(
		"[{effective=%s, permitted=%s, inheritable=%s}, {effective=%s, permitted=%s, inheritable=%s}]",
		hex(d[0].effective), hex(d[0].permitted), hex(d[0].inheritable),
		hex(d[1].effective), hex(d[1].permitted), hex(d[1].inheritable));
	expect("capget(hdrp={version=0x20080522, pid=0}, datap=%s) = 0", s);
	expect("capset(hdrp={version=0x20080522, pid=0}, datap=%s) = 0", s);
	t_ok(sys(capset, &h, d));
	expect("capget(hdrp={version=0x1234, pid=0}, datap=%s) = -1 EINVAL", pointer(d));
	t_fails(sys(capget, &bad, d), EINVAL);
	bad.version = 0x1234;
	expect("capset(hdrp={version=0x1234, pid=0}, datap=%s) = -1 EINVAL", s);
	t_fails(sys(capset, &bad, d), EINVAL);
}

int main(void)
{
	t_init();
	t_begin();
	processes();
	users();
	groups();
	capabilities();
	t_end();
	another();
	session();
	return 0;
}
