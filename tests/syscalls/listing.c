/* SPDX-License-Identifier: MIT */
/* Listings of directories, in both layouts. */
#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#include "lib.h"

struct dirent64_record {
	uint64_t ino;
	int64_t off;
	uint16_t reclen;
	uint8_t type;
	char name[];
};

struct dirent_record {
	uint64_t ino, off;
	uint16_t reclen;
	char name[]; /* behind its NUL, as the last byte of the record, the type */
};

static const char *type_name(unsigned int type)
{
	static const char *const names[] = {
		[DT_UNKNOWN] = "DT_UNKNOWN", [DT_FIFO] = "DT_FIFO", [DT_CHR] = "DT_CHR",
		[DT_DIR] = "DT_DIR",	     [DT_BLK] = "DT_BLK",   [DT_REG] = "DT_REG",
		[DT_LNK] = "DT_LNK",	     [DT_SOCK] = "DT_SOCK",
	};

	return type < ARRAY_LEN(names) && names[type] ? names[type] : "*";
}

static char *record_text(uint64_t ino, int64_t off, unsigned int reclen, unsigned int type,
			 const char *name)
{
	return text("{d_ino=%lu, d_off=%ld, d_reclen=%u, d_type=%s, d_name=%s}", ino, off, reclen,
		    type_name(type), quote_str(name));
}

static char *list64(const char *buf, long len)
{
	const struct dirent64_record *d;
	char *s = text("%s", "");
	long at;

	for (at = 0; at < len; at += d->reclen) {
		d = (const void *)(buf + at);
		s = text("%s%s%s", s, at ? ", " : "",
			 record_text(d->ino, d->off, d->reclen, d->type, d->name));
	}
	return text("[%s]", s);
}

static char *list_old(const char *buf, long len)
{
	const struct dirent_record *d;
	char *s = text("%s", "");
	long at;

	for (at = 0; at < len; at += d->reclen) {
		d = (const void *)(buf + at);
		s = text("%s%s%s", s, at ? ", " : "",
			 record_text(d->ino, (int64_t)d->off, d->reclen,
				     (unsigned char)buf[at + d->reclen - 1], d->name));
	}
	return text("[%s]", s);
}

static char buf[65536] __attribute__((aligned(8)));

/* All of a directory, in portions of the given size. */
static void list_all(int fd, bool old, unsigned int size)
{
	const char *name = old ? "getdents" : "getdents64";
	long n;

	do {
		n = t_ok(old ? sys(getdents, fd, buf, size) : sys(getdents64, fd, buf, size));
		expect("%s(fd=%d, dirp=%s, count=%u) = %ld", name, fd,
		       old ? list_old(buf, n) : list64(buf, n), size, n);
	} while (n > 0);
	expect("lseek(fd=%d, offset=0, whence=SEEK_SET) = 0", fd);
	t_is(sys(lseek, fd, 0, SEEK_SET), 0);
}

static void failures(int fd, int file)
{
	expect("getdents64(fd=%d, dirp=%s, count=8) = -1 EINVAL", fd, pointer(buf));
	t_fails(sys(getdents64, fd, buf, 8), EINVAL);
	expect("getdents64(fd=%d, dirp=%s, count=65536) = -1 ENOTDIR", file, pointer(buf));
	t_fails(sys(getdents64, file, buf, sizeof(buf)), ENOTDIR);
	expect("getdents(fd=-1, dirp=%s, count=65536) = -1 EBADF", pointer(buf));
	t_fails(sys(getdents, -1, buf, sizeof(buf)), EBADF);
	expect("getdents64(fd=%d, dirp=&0x10, count=65536) = -1 EFAULT", fd);
	t_fails(sys(getdents64, fd, 0x10, sizeof(buf)), EFAULT);
}

static void fill(void)
{
	char name[256];
	int i;

	t_ok(mkdir("d", 0700));
	t_ok(mkdir("d/sub", 0700));
	t_ok(symlink("x", "d/link"));
	t_ok(mkfifo("d/fifo", 0600));
	t_ok(mkdir("d/\x01\xff \"odd\\\n", 0700));
	memset(name, 'n', sizeof(name));
	memcpy(name, "d/", 2);
	name[255] = 0;
	t_ok(mkdir(name, 0700));
	for (i = 0; i < 300; i++)
		t_ok(close((int)t_ok(open(text("d/f%d", i), O_CREAT | O_WRONLY, 0600))));
}

int main(void)
{
	int fd, file, empty;

	t_init();
	fill();
	t_ok(mkdir("empty", 0700));
	empty = (int)t_ok(open("empty", O_RDONLY | O_DIRECTORY));
	fd = (int)t_ok(open("d", O_RDONLY | O_DIRECTORY));
	file = (int)t_ok(open("d/f0", O_RDONLY));
	t_begin();
	list_all(empty, false, 1000);
	list_all(empty, true, 1000);
	list_all(fd, false, sizeof(buf));
	list_all(fd, false, 1000);
	list_all(fd, true, sizeof(buf));
	list_all(fd, true, 1000);
	failures(fd, file);
	t_end();
	return 0;
}
