/* SPDX-License-Identifier: MIT */
/* Extended attributes. */
#include <fcntl.h>
#include <string.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "lib.h"

struct xattr_args_v0 {
	uint64_t value;
	uint32_t size, flags;
};

static void set(int fd)
{
	char long_value[200];

	expect("setxattr(path=\"f\", name=\"user.a\", value=\"va\\x00l\", size=4, flags=0) = 0");
	t_ok(sys(setxattr, "f", "user.a", "va\0l", 4, 0));
	expect("setxattr(path=\"f\", name=\"user.a\", value=\"x\", size=1, flags=XATTR_CREATE) = -1 EEXIST");
	t_fails(sys(setxattr, "f", "user.a", "x", 1, XATTR_CREATE), EEXIST);
	expect("setxattr(path=\"f\", name=\"user.b\", value=\"x\", size=1, flags=XATTR_REPLACE) = -1 ENODATA");
	t_fails(sys(setxattr, "f", "user.b", "x", 1, XATTR_REPLACE), ENODATA);
	expect("setxattr(path=\"f\", name=\"user.empty\", value=NULL, size=0, flags=0) = 0");
	t_ok(sys(setxattr, "f", "user.empty", NULL, 0, 0));
	t_fill(long_value, sizeof(long_value), 3);
	expect("fsetxattr(fd=%d, name=\"user.long\", value=%s, size=200, flags=XATTR_CREATE) = 0",
	       fd, quote(long_value, 200));
	t_ok(sys(fsetxattr, fd, "user.long", long_value, 200, XATTR_CREATE));
	expect("fsetxattr(fd=-1, name=\"user.a\", value=\"x\", size=1, flags=0) = -1 EBADF");
	t_fails(sys(fsetxattr, -1, "user.a", "x", 1, 0), EBADF);
	/* A link itself has no attributes of users. */
	expect("lsetxattr(path=\"l\", name=\"user.a\", value=\"x\", size=1, flags=0) = -1 EPERM");
	t_fails(sys(lsetxattr, "l", "user.a", "x", 1, 0), EPERM);
	expect("lsetxattr(path=\"f\", name=\"user.c\", value=\"x\", size=1, flags=0) = 0");
	t_ok(sys(lsetxattr, "f", "user.c", "x", 1, 0));
}

static void get(int fd)
{
	char buf[300];

	expect("getxattr(path=\"l\", name=\"user.a\", value=\"va\\x00l\", size=300) = 4");
	t_is(sys(getxattr, "l", "user.a", buf, sizeof(buf)), 4);
	/* Only its size: nothing is written. */
	expect("getxattr(path=\"f\", name=\"user.a\", value=NULL, size=0) = 4");
	t_is(sys(getxattr, "f", "user.a", NULL, 0), 4);
	expect("getxattr(path=\"f\", name=\"user.a\", value=%s, size=2) = -1 ERANGE", pointer(buf));
	t_fails(sys(getxattr, "f", "user.a", buf, 2), ERANGE);
	expect("lgetxattr(path=\"f\", name=\"user.c\", value=\"x\", size=300) = 1");
	t_is(sys(lgetxattr, "f", "user.c", buf, sizeof(buf)), 1);
	expect("lgetxattr(path=\"none\", name=\"user.c\", value=%s, size=300) = -1 ENOENT",
	       pointer(buf));
	t_fails(sys(lgetxattr, "none", "user.c", buf, sizeof(buf)), ENOENT);
	t_is(sys(fgetxattr, fd, "user.long", buf, sizeof(buf)), 200);
	expect("fgetxattr(fd=%d, name=\"user.long\", value=%s, size=300) = 200", fd,
	       quote(buf, 200));
	expect("fgetxattr(fd=%d, name=\"user.none\", value=%s, size=300) = -1 ENODATA", fd,
	       pointer(buf));
	t_fails(sys(fgetxattr, fd, "user.none", buf, sizeof(buf)), ENODATA);
}

static void list(int fd)
{
	char buf[1000];
	long r;

	r = t_ok(sys(listxattr, "f", buf, sizeof(buf)));
	expect("listxattr(path=\"f\", list=%s, size=1000) = %ld", quote(buf, (size_t)r), r);
	expect("listxattr(path=\"f\", list=%s, size=3) = -1 ERANGE", pointer(buf));
	t_fails(sys(listxattr, "f", buf, 3), ERANGE);
	r = t_ok(sys(listxattr, "f", NULL, 0));
	expect("listxattr(path=\"f\", list=NULL, size=0) = %ld", r);
	r = t_ok(sys(llistxattr, "f", buf, sizeof(buf)));
	expect("llistxattr(path=\"f\", list=%s, size=1000) = %ld", quote(buf, (size_t)r), r);
	expect("llistxattr(path=\"none\", list=%s, size=1000) = -1 ENOENT", pointer(buf));
	t_fails(sys(llistxattr, "none", buf, sizeof(buf)), ENOENT);
	r = t_ok(sys(flistxattr, fd, buf, sizeof(buf)));
	expect("flistxattr(fd=%d, list=%s, size=1000) = %ld", fd, quote(buf, (size_t)r), r);
	expect("flistxattr(fd=-1, list=%s, size=1000) = -1 EBADF", pointer(buf));
	t_fails(sys(flistxattr, -1, buf, sizeof(buf)), EBADF);
}

static void remove_them(int fd)
{
	expect("removexattr(path=\"f\", name=\"user.a\") = 0");
	t_ok(sys(removexattr, "f", "user.a"));
	expect("removexattr(path=\"f\", name=\"user.a\") = -1 ENODATA");
	t_fails(sys(removexattr, "f", "user.a"), ENODATA);
	expect("lremovexattr(path=\"f\", name=\"user.c\") = 0");
	t_ok(sys(lremovexattr, "f", "user.c"));
	expect("lremovexattr(path=\"none\", name=\"user.c\") = -1 ENOENT");
	t_fails(sys(lremovexattr, "none", "user.c"), ENOENT);
	expect("fremovexattr(fd=%d, name=\"user.long\") = 0", fd);
	t_ok(sys(fremovexattr, fd, "user.long"));
	expect("fremovexattr(fd=%d, name=\"nothing\") = -1 EOPNOTSUPP", fd);
	t_fails(sys(fremovexattr, fd, "nothing"), EOPNOTSUPP);
}

/* The forms with a directory, of Linux 6.13. */
static void at(int fd, int dir)
{
	char buf[100];
	struct xattr_args_v0 in = { (uintptr_t) "hello", 5, XATTR_CREATE };
	struct xattr_args_v0 out = { (uintptr_t)buf, sizeof(buf), 0 };
	long r;

	r = sys(setxattrat, dir, "f", 0, "user.at", &in, sizeof(in));
	expect("setxattrat(dirfd=%d, path=\"f\", at_flags=0, name=\"user.at\", uargs={value=\"hello\", size=5, flags=XATTR_CREATE}, usize=16) = %s",
	       dir, outcome(r));
	if (r < 0)
		t_skip("setxattrat: %s", error_name(errno));
	r = sys(getxattrat, fd, "", AT_EMPTY_PATH, "user.at", &out, sizeof(out));
	if (r >= 0)
		expect("getxattrat(dirfd=%d, path=\"\", at_flags=AT_EMPTY_PATH, name=\"user.at\", uargs={value=\"hello\", size=100, flags=0}, usize=16) = 5",
		       fd);
	else
		expect("getxattrat(dirfd=%d, path=\"\", at_flags=AT_EMPTY_PATH, name=\"user.at\", usize=16) = %s",
		       fd, outcome(r));
	r = sys(getxattrat, dir, "f", 0, "user.none", &out, sizeof(out));
	expect("getxattrat(dirfd=%d, path=\"f\", at_flags=0, name=\"user.none\", uargs={size=100, flags=0}, usize=16) = %s",
	       dir, outcome(r));
	r = sys(listxattrat, dir, "f", AT_SYMLINK_NOFOLLOW, buf, sizeof(buf));
	expect("listxattrat(dirfd=%d, path=\"f\", at_flags=AT_SYMLINK_NOFOLLOW, list=%s, size=100) = %s",
	       dir, r < 0 ? pointer(buf) : quote(buf, (size_t)r), outcome(r));
	r = sys(listxattrat, dir, "none", 0, buf, sizeof(buf));
	expect("listxattrat(dirfd=%d, path=\"none\", at_flags=0, list=%s, size=100) = %s", dir,
	       pointer(buf), outcome(r));
	r = sys(removexattrat, dir, "f", 0, "user.at");
	expect("removexattrat(dirfd=%d, path=\"f\", at_flags=0, name=\"user.at\") = %s", dir,
	       outcome(r));
	r = sys(removexattrat, AT_FDCWD, "f", AT_EMPTY_PATH, "user.at");
	expect("removexattrat(dirfd=AT_FDCWD, path=\"f\", at_flags=AT_EMPTY_PATH, name=\"user.at\") = %s",
	       outcome(r));
	in.size = 1 << 20;
	r = sys(setxattrat, -1, "f", 0, "user.at", &in, 8);
	expect("setxattrat(dirfd=-1, path=\"f\", at_flags=0, name=\"user.at\", uargs={size=?, flags=?}, usize=8) = %s",
	       outcome(r));
}

int main(void)
{
	int fd, dir;

	t_init();
	fd = (int)t_ok(open("f", O_RDWR | O_CREAT, 0600));
	dir = (int)t_ok(open(".", O_RDONLY | O_DIRECTORY));
	t_ok(symlink("f", "l"));
	if (fsetxattr(fd, "user.probe", "x", 1, 0) < 0) {
		t_skip("the file system has no attributes of users: %s", strerror(errno));
		return 0;
	}
	t_ok(fremovexattr(fd, "user.probe"));
	t_begin();
	set(fd);
	get(fd);
	list(fd);
	remove_them(fd);
	at(fd, dir);
	t_end();
	return 0;
}
