/* SPDX-License-Identifier: MIT */
/* Opening, closing, duplicating; handles. */
#include <fcntl.h>
#include <linux/close_range.h>
#include <linux/openat2.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "lib.h"

static void opening(void)
{
	long fd;

	fd = t_ok(sys(open, "f", O_RDWR | O_CREAT | O_EXCL, 0640));
	expect("open(path=\"f\", flags=O_RDWR|O_CREAT|O_EXCL, mode=0640, file=%s) = %ld",
	       file_text((int)fd), fd);
	expect("open(path=\"f\", flags=O_RDWR|O_CREAT|O_EXCL, mode=0640, file=?) = -1 EEXIST");
	t_fails(sys(open, "f", O_RDWR | O_CREAT | O_EXCL, 0640), EEXIST);
	expect("close(fd=%ld) = 0", fd);
	t_ok(sys(close, fd));
	expect("close(fd=%ld) = -1 EBADF", fd);
	t_fails(sys(close, fd), EBADF);
	expect("open(path=\"\", flags=O_RDONLY, mode=0, file=?) = -1 ENOENT");
	t_fails(sys(open, "", O_RDONLY), ENOENT);
	expect("open(path=NULL, flags=O_RDONLY, mode=0, file=?) = -1 EFAULT");
	t_fails(sys(open, NULL, O_RDONLY), EFAULT);
	expect("open(path=&0x1000, flags=O_RDONLY, mode=0) = -1 EFAULT");
	t_fails(sys(open, 0x1000, O_RDONLY), EFAULT);

	fd = t_ok(sys(creat, "g", 0600));
	expect("creat(path=\"g\", mode=0600, file=%s) = %ld", file_text((int)fd), fd);
	t_ok(sys(close, fd));
	expect("close(fd=%ld) = 0", fd);
	expect("creat(path=\"none/g\", mode=0600) = -1 ENOENT");
	t_fails(sys(creat, "none/g", 0600), ENOENT);
}

/* Flags are a set: each must be there, also those that no header names. */
static void opening_flags(void)
{
	static const struct {
		long flags;
		const char *text;
	} cases[] = {
		{ O_RDONLY, "O_RDONLY" },
		{ O_WRONLY, "O_WRONLY" },
		{ O_RDWR | O_APPEND, "O_RDWR|O_APPEND" },
		{ O_RDWR | O_SYNC, "O_RDWR|O_SYNC" },
		{ O_RDWR | O_DSYNC, "O_RDWR|O_DSYNC" },
		{ O_WRONLY | O_TRUNC | O_NOCTTY, "O_WRONLY|O_NOCTTY|O_TRUNC" },
		{ O_RDONLY | O_NONBLOCK | O_CLOEXEC, "O_RDONLY|O_NONBLOCK|O_CLOEXEC" },
		{ O_RDONLY | O_NOFOLLOW, "O_RDONLY|O_NOFOLLOW" },
		{ O_RDONLY | 0100000, "O_RDONLY|O_LARGEFILE" },
		{ O_PATH, "O_RDONLY|O_PATH" },
		{ O_PATH | O_NOFOLLOW | O_CLOEXEC, "O_RDONLY|O_PATH|O_NOFOLLOW|O_CLOEXEC" },
		{ O_RDONLY | O_NOATIME, "O_RDONLY|O_NOATIME" },
		{ O_RDONLY | O_ASYNC, "O_RDONLY|O_ASYNC" },
		{ O_RDONLY | 0x40000000, "O_RDONLY|0x40000000" },
	};
	size_t i;
	long fd;

	for (i = 0; i < ARRAY_LEN(cases); i++) {
		fd = t_ok(sys(openat, AT_FDCWD, "f", cases[i].flags));
		expect("openat(dirfd=AT_FDCWD, path=\"f\", flags=%s, mode=0, file=%s) = %ld",
		       cases[i].text, file_text((int)fd), fd);
		expect("close(fd=%ld) = 0", fd);
		t_ok(sys(close, fd));
	}
	fd = sys(openat, AT_FDCWD, "f", O_RDONLY | O_DIRECT);
	expect("openat(dirfd=AT_FDCWD, path=\"f\", flags=O_RDONLY|O_DIRECT, mode=0) = %s",
	       outcome(fd));
	if (fd >= 0) {
		expect("close(fd=%ld) = 0", fd);
		t_ok(sys(close, fd));
	}
}

static void opening_at(void)
{
	long dir, fd;

	dir = t_ok(sys(openat, AT_FDCWD, ".", O_RDONLY | O_DIRECTORY));
	expect("openat(dirfd=AT_FDCWD, path=\".\", flags=O_RDONLY|O_DIRECTORY, mode=0, file=%s) = %ld",
	       file_text((int)dir), dir);
	fd = t_ok(sys(openat, dir, "f", O_RDONLY));
	expect("openat(dirfd=%ld, path=\"f\", flags=O_RDONLY, mode=0) = %ld", dir, fd);
	expect("openat(dirfd=%ld, path=\"f\", flags=O_RDONLY, mode=0) = -1 ENOTDIR", fd);
	t_fails(sys(openat, fd, "f", O_RDONLY), ENOTDIR);
	expect("openat(dirfd=-1, path=\"f\", flags=O_RDONLY, mode=0) = -1 EBADF");
	t_fails(sys(openat, -1, "f", O_RDONLY), EBADF);
	expect("openat(dirfd=AT_FDCWD, path=\".\", flags=O_WRONLY, mode=0) = -1 EISDIR");
	t_fails(sys(openat, AT_FDCWD, ".", O_WRONLY), EISDIR);
	expect("openat(dirfd=AT_FDCWD, path=\"f\", flags=O_RDONLY|O_DIRECTORY, mode=0) = -1 ENOTDIR");
	t_fails(sys(openat, AT_FDCWD, "f", O_RDONLY | O_DIRECTORY), ENOTDIR);
	/* The upper half of a register is not a part of a 32-bit argument. */
	expect("close(fd=%ld) = 0", fd);
	t_ok(sys(close, fd | 0x100000000));
	fd = t_ok(sys(openat, 0x12345678ffffff9c, "f", O_RDONLY));
	expect("openat(dirfd=AT_FDCWD, path=\"f\", flags=O_RDONLY, mode=0) = %ld", fd);
	expect("close(fd=%ld) = 0", fd);
	t_ok(sys(close, fd));
	expect("close(fd=%ld) = 0", dir);
	t_ok(sys(close, dir));
}

/* Names of every length that the kernel takes, and one that is too long. */
static void long_names(void)
{
	static const size_t lens[] = { 1, 63, 64, 65, 200, 255, 256, 4000, 4095, 4096, 5000 };
	char *path = malloc(6000);
	size_t i;
	long r;

	t_true(path != NULL);
	t_begin();
	for (i = 0; i < ARRAY_LEN(lens); i++) {
		memset(path, '/', lens[i]);
		path[lens[i]] = 0;
		path[lens[i] - 1] = 'z';
		r = sys(openat, AT_FDCWD, path, O_RDONLY);
		if (lens[i] < 4096)
			expect("openat(dirfd=AT_FDCWD, path=%s, flags=O_RDONLY) = -1 ENOENT",
			       quote_str(path));
		else
			expect("openat(dirfd=AT_FDCWD, path=\"%.4096s\"/4097, flags=O_RDONLY) = -1 ENAMETOOLONG",
			       path);
		t_true(r == -1);
	}
	t_end();
	free(path);
}

/* A name that ends with the last byte of the last page that is there. */
static void name_at_edge(void)
{
	char *page = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	long fd;

	t_true(page != MAP_FAILED);
	t_ok(munmap(page + 4096, 4096));
	memset(page, 'x', 4096);
	page[4094] = 'f';
	page[4095] = 0;
	t_begin();
	fd = t_ok(sys(open, page + 4094, O_RDONLY));
	expect("open(path=\"f\", flags=O_RDONLY, mode=0) = %ld", fd);
	expect("close(fd=%ld) = 0", fd);
	t_ok(sys(close, fd));
	page[4095] = 'g';
	expect("open(path=*, flags=O_RDONLY, mode=0) = -1 EFAULT");
	t_fails(sys(open, page + 4094, O_RDONLY), EFAULT);
	t_end();
}

static void opening_with_how(void)
{
	struct open_how how = { .flags = O_RDWR | O_CREAT,
				.mode = 0600,
				.resolve = RESOLVE_BENEATH };
	struct {
		struct open_how how;
		uint64_t more;
	} larger = { { .flags = O_RDONLY }, 7 };
	long fd;

	fd = t_ok(sys(openat2, AT_FDCWD, "h", &how, sizeof(how)));
	expect("openat2(dirfd=AT_FDCWD, path=\"h\", how={flags=O_RDWR|O_CREAT, mode=0600, resolve=RESOLVE_BENEATH}, size=24, file=%s) = %ld",
	       file_text((int)fd), fd);
	expect("close(fd=%ld) = 0", fd);
	t_ok(sys(close, fd));
	how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_MAGICLINKS;
	how.flags = O_RDONLY;
	how.mode = 0;
	expect("openat2(dirfd=AT_FDCWD, path=\"../h\", how={flags=O_RDONLY, mode=0, resolve=RESOLVE_NO_MAGICLINKS|RESOLVE_NO_SYMLINKS|RESOLVE_BENEATH}, size=24) = -1 EXDEV");
	t_fails(sys(openat2, AT_FDCWD, "../h", &how, sizeof(how)), EXDEV);
	how.flags = O_RDONLY | 1ULL << 40;
	expect("openat2(dirfd=AT_FDCWD, path=\"h\", how={flags=O_RDONLY|0x10000000000, mode=0}, size=24) = -1 EINVAL");
	t_fails(sys(openat2, AT_FDCWD, "h", &how, sizeof(how)), EINVAL);
	expect("openat2(dirfd=AT_FDCWD, path=\"h\", how={flags=O_RDONLY, mode=0, resolve=0}, size=32) = -1 E2BIG");
	t_fails(sys(openat2, AT_FDCWD, "h", &larger, sizeof(larger)), E2BIG);
	/* Smaller than its first version: fields that are not there are not known. */
	expect("openat2(dirfd=AT_FDCWD, path=\"h\", how={flags=O_RDONLY, mode=?, resolve=?}, size=8) = -1 EINVAL");
	t_fails(sys(openat2, AT_FDCWD, "h", &larger, 8), EINVAL);
	expect("openat2(dirfd=AT_FDCWD, path=\"h\", how=NULL, size=24) = -1 EFAULT");
	t_fails(sys(openat2, AT_FDCWD, "h", NULL, sizeof(how)), EFAULT);
}

static void temporary(void)
{
	long fd;

	fd = sys(openat, AT_FDCWD, ".", O_TMPFILE | O_RDWR, 0600);
	expect("openat(dirfd=AT_FDCWD, path=\".\", flags=O_RDWR|O_TMPFILE, mode=0600) = %s",
	       outcome(fd));
	if (fd < 0) {
		t_skip("O_TMPFILE: %s", error_name(errno));
		return;
	}
	expect("linkat(olddirfd=AT_FDCWD, oldpath=\"/proc/self/fd/%ld\", newdirfd=AT_FDCWD, newpath=\"linked\", flags=AT_SYMLINK_FOLLOW) = 0",
	       fd);
	t_ok(sys(linkat, AT_FDCWD, text("/proc/self/fd/%ld", fd), AT_FDCWD, "linked",
		 AT_SYMLINK_FOLLOW));
	expect("close(fd=%ld) = 0", fd);
	t_ok(sys(close, fd));
	fd = t_ok(sys(openat, AT_FDCWD, ".", O_TMPFILE | O_EXCL | O_WRONLY, 0600));
	expect("openat(dirfd=AT_FDCWD, path=\".\", flags=O_WRONLY|O_EXCL|O_TMPFILE, mode=0600, file=%s) = %ld",
	       file_text((int)fd), fd);
	expect("linkat(olddirfd=AT_FDCWD, oldpath=\"/proc/self/fd/%ld\", newdirfd=AT_FDCWD, newpath=\"no\", flags=AT_SYMLINK_FOLLOW) = -1 ENOENT",
	       fd);
	t_fails(sys(linkat, AT_FDCWD, text("/proc/self/fd/%ld", fd), AT_FDCWD, "no",
		    AT_SYMLINK_FOLLOW),
		ENOENT);
	expect("close(fd=%ld) = 0", fd);
	t_ok(sys(close, fd));
}

static void duplicating(void)
{
	long fd, copy;

	fd = t_ok(sys(open, "f", O_RDWR));
	expect("open(path=\"f\", flags=O_RDWR) = %ld", fd);
	copy = t_ok(sys(dup, fd));
	expect("dup(oldfd=%ld) = %ld", fd, copy);
	expect("dup(oldfd=1000) = -1 EBADF");
	t_fails(sys(dup, 1000), EBADF);
	expect("dup2(oldfd=%ld, newfd=100) = 100", fd);
	t_is(sys(dup2, fd, 100), 100);
	expect("dup2(oldfd=100, newfd=100) = 100");
	t_is(sys(dup2, 100, 100), 100);
	expect("dup2(oldfd=%ld, newfd=-1) = -1 EBADF", fd);
	t_fails(sys(dup2, fd, -1), EBADF);
	expect("dup3(oldfd=%ld, newfd=101, flags=O_CLOEXEC) = 101", fd);
	t_is(sys(dup3, fd, 101, O_CLOEXEC), 101);
	expect("dup3(oldfd=101, newfd=101, flags=0) = -1 EINVAL");
	t_fails(sys(dup3, 101, 101, 0), EINVAL);
	expect("dup3(oldfd=101, newfd=102, flags=O_APPEND) = -1 EINVAL");
	t_fails(sys(dup3, 101, 102, O_APPEND), EINVAL);

	expect("close_range(first=100, last=200, flags=CLOSE_RANGE_CLOEXEC) = 0");
	t_ok(sys(close_range, 100, 200, CLOSE_RANGE_CLOEXEC));
	expect("close_range(first=100, last=4294967295, flags=0) = 0");
	t_ok(sys(close_range, 100, ~0u, 0));
	expect("close_range(first=200, last=300, flags=CLOSE_RANGE_UNSHARE) = 0");
	t_ok(sys(close_range, 200, 300, CLOSE_RANGE_UNSHARE));
	expect("close_range(first=10, last=5, flags=0) = -1 EINVAL");
	t_fails(sys(close_range, 10, 5, 0), EINVAL);
	expect("close_range(first=1, last=2, flags=0x80000000) = -1 EINVAL");
	t_fails(sys(close_range, 1, 2, 0x80000000u), EINVAL);
	expect("close(fd=%ld) = 0", copy);
	t_ok(sys(close, copy));
	expect("close(fd=%ld) = 0", fd);
	t_ok(sys(close, fd));
}

static void memory_files(void)
{
	char name[300];
	long fd;

	fd = t_ok(sys(memfd_create, "a name", MFD_CLOEXEC | MFD_ALLOW_SEALING));
	expect("memfd_create(name=\"a name\", flags=MFD_CLOEXEC|MFD_ALLOW_SEALING, file=%s) = %ld",
	       file_text((int)fd), fd);
	expect("close(fd=%ld) = 0", fd);
	t_ok(sys(close, fd));
	memset(name, 'n', sizeof(name) - 1);
	name[sizeof(name) - 1] = 0;
	expect("memfd_create(name=%s, flags=0) = -1 EINVAL", quote_str(name));
	t_fails(sys(memfd_create, name, 0), EINVAL);
	expect("memfd_create(name=\"x\", flags=0x80000000) = -1 EINVAL");
	t_fails(sys(memfd_create, "x", 0x80000000u), EINVAL);

	fd = sys(memfd_secret, O_CLOEXEC);
	expect("memfd_secret(flags=O_CLOEXEC) = %s", outcome(fd));
	if (fd < 0)
		return;
	expect("close(fd=%ld) = 0", fd);
	t_ok(sys(close, fd));
}

struct handle {
	struct file_handle h;
	unsigned char bytes[MAX_HANDLE_SZ];
};

static void handles(void)
{
	struct handle h = { .h = { .handle_bytes = MAX_HANDLE_SZ } };
	struct handle small = { .h = { .handle_bytes = 0 } };
	int mount_id = -1;
	long r, dir;

	r = sys(name_to_handle_at, AT_FDCWD, "f", &h, &mount_id, 0);
	if (r < 0) {
		expect("name_to_handle_at(dirfd=AT_FDCWD, path=\"f\", handle=%s, mount_id=%s, flags=0) = %s",
		       pointer(&h), pointer(&mount_id), outcome(r));
		t_skip("handles: %s", error_name(errno));
		return;
	}
	expect("name_to_handle_at(dirfd=AT_FDCWD, path=\"f\", handle={handle_bytes=%u, handle_type=%d, f_handle=%s}, mount_id=[%d], flags=0) = 0",
	       h.h.handle_bytes, h.h.handle_type, quote(h.bytes, h.h.handle_bytes), mount_id);
	expect("name_to_handle_at(dirfd=AT_FDCWD, path=\"f\", handle=%s, mount_id=%s, flags=AT_SYMLINK_FOLLOW) = -1 EOVERFLOW",
	       pointer(&small), pointer(&mount_id));
	t_fails(sys(name_to_handle_at, AT_FDCWD, "f", &small, &mount_id, AT_SYMLINK_FOLLOW),
		EOVERFLOW);

	dir = t_ok(sys(open, ".", O_RDONLY));
	expect("open(path=\".\", flags=O_RDONLY) = %ld", dir);
	r = sys(open_by_handle_at, dir, &h, O_RDONLY);
	expect("open_by_handle_at(mount_fd=%ld, handle={handle_bytes=%u, handle_type=%d, f_handle=%s}, flags=O_RDONLY) = %s",
	       dir, h.h.handle_bytes, h.h.handle_type, quote(h.bytes, h.h.handle_bytes),
	       outcome(r));
	if (r >= 0) {
		expect("close(fd=%ld) = 0", r);
		t_ok(sys(close, r));
	}
	expect("close(fd=%ld) = 0", dir);
	t_ok(sys(close, dir));
}

int main(void)
{
	t_init();
	t_begin();
	opening();
	opening_flags();
	opening_at();
	opening_with_how();
	temporary();
	duplicating();
	memory_files();
	handles();
	t_end();
	long_names();
	name_at_edge();
	return 0;
}
