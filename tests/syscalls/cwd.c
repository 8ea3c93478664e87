/* SPDX-License-Identifier: MIT */
/* Working directory, root, umask. */
#include <fcntl.h>
#include <limits.h>
#include <sched.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib.h"

static char top[PATH_MAX];

/* The kernel counts the NUL at the end. */
static void expect_cwd(const char *path)
{
	static char buf[PATH_MAX];
	long len = (long)strlen(path) + 1;

	expect("getcwd(buf=%s, size=4096) = %ld", quote(path, (size_t)len), len);
	t_is(sys(getcwd, buf, PATH_MAX), len);
}

static void changes(int sub)
{
	char small[2];

	expect_cwd(top);
	expect("chdir(path=\"sub\") = 0");
	t_ok(sys(chdir, "sub"));
	expect_cwd(text("%s/sub", top));
	expect("chdir(path=\"..\") = 0");
	t_ok(sys(chdir, ".."));
	expect("chdir(path=\"none\") = -1 ENOENT");
	t_fails(sys(chdir, "none"), ENOENT);
	expect("chdir(path=\"file\") = -1 ENOTDIR");
	t_fails(sys(chdir, "file"), ENOTDIR);
	expect("fchdir(fd=%d) = 0", sub);
	t_ok(sys(fchdir, sub));
	expect("fchdir(fd=-1) = -1 EBADF");
	t_fails(sys(fchdir, -1), EBADF);
	expect("getcwd(buf=%s, size=2) = -1 ERANGE", pointer(small));
	t_fails(sys(getcwd, small, 2), ERANGE);
	/* What a relative path means follows. */
	expect("mkdir(path=\"here\", mode=0700) = 0");
	t_ok(sys(mkdir, "here", 0700));
	expect("chdir(path=%s) = 0", quote_str(top));
	t_ok(sys(chdir, top));
	expect("rmdir(path=\"sub/here\") = 0");
	t_ok(sys(rmdir, "sub/here"));
}

static void masks(void)
{
	long fd;

	expect("umask(mask=027) = 022");
	t_is(sys(umask, 027), 022);
	fd = t_ok(sys(open, "masked", O_CREAT | O_WRONLY, 0777));
	expect("open(path=\"masked\", flags=O_WRONLY|O_CREAT, mode=0777, file={mode=S_IFREG|0750}) = %ld",
	       fd);
	expect("close(fd=%ld) = 0", fd);
	t_ok(sys(close, fd));
	expect("umask(mask=0) = 027");
	t_is(sys(umask, 0), 027);
	expect("umask(mask=022) = 0");
	t_is(sys(umask, 022), 0);
}

static void new_root(void)
{
	struct stat st;
	long fd;

	t_begin();
	expect("chroot(path=\"none\") = -1 ENOENT");
	t_fails(sys(chroot, "none"), ENOENT);
	expect("chroot(path=\"sub\") = 0");
	t_ok(sys(chroot, "sub"));
	/* The cwd is outside of the new root. */
	expect_cwd(text("(unreachable)%s", top));
	expect("chdir(path=\"/\") = 0");
	t_ok(sys(chdir, "/"));
	expect_cwd("/");
	fd = t_ok(sys(open, "/inside", O_CREAT | O_WRONLY, 0600));
	expect("open(path=\"/inside\", flags=O_WRONLY|O_CREAT, mode=0600, file=%s) = %ld",
	       file_text((int)fd), fd);
	t_ok(sys(stat, "/../../inside", &st));
	expect("stat(path=\"/../../inside\", statbuf=%s) = 0", stat_text(&st));
	t_end();
	_exit(0);
}

static void roots(void)
{
	int status = -1;
	pid_t pid;

	t_begin();
	if (sys(chroot, "none") < 0)
		expect("chroot(path=\"none\") = %s", outcome(-1));
	t_end();
	pid = (pid_t)t_ok(fork());
	if (!pid) {
		t_thread();
		if (geteuid() && unshare(CLONE_NEWUSER) < 0) {
			t_skip("chroot: a user namespace cannot be had: %s", strerror(errno));
			_exit(0);
		}
		new_root();
	}
	t_is(waitpid(pid, &status, 0), pid);
	t_is(status, 0);
}

int main(void)
{
	int sub;

	t_init();
	t_ok(mkdir("sub", 0755));
	t_ok(close((int)t_ok(open("file", O_CREAT | O_WRONLY, 0600))));
	sub = (int)t_ok(open("sub", O_RDONLY | O_DIRECTORY));
	t_true(getcwd(top, sizeof(top)) != NULL);
	umask(022);
	t_begin();
	changes(sub);
	masks();
	t_end();
	roots();
	return 0;
}
