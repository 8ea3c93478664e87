/* SPDX-License-Identifier: MIT */
#include "replay/blk_target.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/fs.h>
#include <linux/loop.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/banned.h"
#include "base/io.h"
#include "base/mem.h"

/* What stands where on a device that holds something. */
static const struct {
	uint64_t offset;
	const char *bytes;
	uint32_t len;
	const char *what;
} signatures[] = {
	{ 0x438, "\x53\xef", 2, "an ext2, ext3 or ext4 file system" },
	{ 0, "XFSB", 4, "an XFS file system" },
	{ 0x10040, "_BHRfS_M", 8, "a btrfs file system" },
	{ 0x400, "\x10\x20\xf5\xf2", 4, "an f2fs file system" },
	{ 0x1018, "\xc6\x85\x73\xf6\x4e\x1a\x45\xca", 8, "a bcachefs or bcache device" },
	{ 3, "NTFS    ", 8, "an NTFS file system" },
	{ 3, "EXFAT   ", 8, "an exFAT file system" },
	{ 0, "hsqs", 4, "a squashfs file system" },
	{ 0x400, "\xe2\xe1\xf5\xe0", 4, "an EROFS file system" },
	{ 0x8001, "CD001", 5, "an ISO 9660 file system" },
	{ 0x10000, "ReIsErFs", 8, "a ReiserFS file system" },
	{ 0x10034, "ReIsEr2Fs", 9, "a ReiserFS file system" },
	{ 0x8000, "JFS1", 4, "a JFS file system" },
	{ 0xff6, "SWAPSPACE2", 10, "swap space" },
	{ 0xff6, "SWAP-SPACE", 10, "swap space" },
	{ 0, "LUKS\xba\xbe", 6, "a LUKS volume" },
	{ 0x218, "LVM2 001", 8, "an LVM physical volume" },
	{ 0x18, "LVM2 001", 8, "an LVM physical volume" },
	{ 0, "\xfc\x4e\x2b\xa9", 4, "a member of an MD array" },
	{ 0x1000, "\xfc\x4e\x2b\xa9", 4, "a member of an MD array" },
	{ 0x200, "EFI PART", 8, "a partition table (GPT)" },
	{ 0x1000, "EFI PART", 8, "a partition table (GPT)" },
	{ 0x1fe, "\x55\xaa", 2, "a partition table or a boot sector" },
	{ 0x20008, "\x0c\xb1\xba\0\0\0\0\0", 8, "a member of a ZFS pool" },
	{ 0x21000, "\x0c\xb1\xba\0\0\0\0\0", 8, "a member of a ZFS pool" },
};

const char *blk_signature(int fd, int *ret)
{
	char buf[16];

	*ret = 0;
	for (size_t i = 0; i < ARRAY_LEN(signatures); i++) {
		ssize_t n = pread(fd, buf, signatures[i].len, (off_t)signatures[i].offset);

		if (n < 0) {
			*ret = -errno;
			return NULL;
		}
		if ((size_t)n == signatures[i].len &&
		    !memcmp(buf, signatures[i].bytes, signatures[i].len))
			return signatures[i].what;
	}
	return NULL;
}

/* Looks at what is there before anything is opened for writing. */
static int refuse_held(const char *path, struct err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	const char *what;
	int r;

	if (fd < 0)
		return err_set(err, -errno, "cannot open %s", path);
	what = blk_signature(fd, &r);
	(void)close(fd); /* only read from */
	if (r < 0)
		return err_set(err, r, "cannot read %s", path);
	if (what)
		return err_set(err, -EBUSY,
			       "%s holds %s; --destroy-data overwrites it all the same", path,
			       what);
	return 0;
}

/* Whether a loop device is attached to the file: by its number, or where we may not ask, its name. */
static bool is_loop_file(const char *loop, const struct stat *file)
{
	char path[PATH_MAX];
	struct loop_info64 info;
	struct buf name = { 0 };
	struct stat st;
	bool is = false;
	int fd;

	(void)snprintf(path, sizeof(path), "/sys/block/%s/loop/backing_file", loop);
	if (io_read_file(path, PATH_MAX, &name, NULL) < 0)
		return false; /* not attached */
	if (name.len && name.data[name.len - 1] == '\n')
		name.len--;
	is = !stat(buf_str(&name), &st) && st.st_dev == file->st_dev && st.st_ino == file->st_ino;
	buf_release(&name);
	(void)snprintf(path, sizeof(path), "/dev/%s", loop);
	fd = is ? -1 : open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	if (fd >= 0) {
		is = !ioctl(fd, LOOP_GET_STATUS64, &info) && info.lo_device == file->st_dev &&
		     info.lo_inode == file->st_ino;
		(void)close(fd); /* only asked */
	}
	return is;
}

/* What is written to such a file is written to the device, which may be mounted. */
static int refuse_attached(const char *path, const struct stat *file, struct err *err)
{
	DIR *d = opendir("/sys/block");
	struct dirent *e;
	int r = 0;

	while (d && !r && (e = readdir(d))) {
		if (!strncmp(e->d_name, "loop", 4) && is_loop_file(e->d_name, file))
			r = err_set(
				err, -EBUSY,
				"%s is attached to the device %s; --destroy-data writes to it all the same",
				path, e->d_name);
	}
	if (d)
		(void)closedir(d); /* only read from */
	return r;
}

/* False: every request of io_uring would go to a thread of the kernel. */
static bool can_nowait(const struct blk_target *t)
{
	struct iovec iov = { .iov_len = t->align_bytes };
	bool can;

	if (posix_memalign(&iov.iov_base, BLK_SECTOR_MAX, t->align_bytes))
		return true;
	can = preadv2(t->fd, &iov, 1, 0, RWF_NOWAIT) >= 0 || errno != EOPNOTSUPP;
	free(iov.iov_base);
	return can;
}

static int measure_device(struct blk_target *t, struct err *err)
{
	int sector = 512;

	if (ioctl(t->fd, BLKGETSIZE64, &t->size_bytes) < 0)
		return err_set(err, -errno, "cannot find out the size of %s", t->path);
	if (ioctl(t->fd, BLKSSZGET, &sector) < 0 || sector < 512 || sector > BLK_SECTOR_MAX)
		sector = 4096;
	t->align_bytes = t->direct ? (uint32_t)sector : 1;
	t->nowait = can_nowait(t);
	blk_queue_read(t->fd, &t->queue);
	return 0;
}

/* What a file needs shows when it is read: sectors of 512 bytes, or more. */
static uint32_t file_alignment(const struct blk_target *t)
{
	uint32_t align = 512;
	void *buf;

	if (!t->direct)
		return 1;
	if (t->size_bytes < 8192 || posix_memalign(&buf, 4096, 4096))
		return 4096;
	while (align < 4096 && pread(t->fd, buf, align, align) != (ssize_t)align)
		align *= 2;
	free(buf);
	return align;
}

static int measure_file(struct blk_target *t, uint64_t need_bytes, bool grow, struct err *err)
{
	struct stat st;

	if (fstat(t->fd, &st) < 0)
		return err_set(err, -errno, "cannot stat %s", t->path);
	t->size_bytes = (uint64_t)st.st_size;
	if (grow && t->size_bytes < need_bytes) {
		if (ftruncate(t->fd, (off_t)need_bytes) < 0)
			return err_set(err, -errno, "cannot make %s %llu bytes long", t->path,
				       (unsigned long long)need_bytes);
		t->size_bytes = need_bytes;
	}
	t->align_bytes = file_alignment(t);
	return 0;
}

/* Not every file system knows O_DIRECT. */
static int open_either(struct blk_target *t, int flags, struct err *err)
{
	t->direct = flags & O_DIRECT;
	t->fd = open(t->path, flags, IO_FILE_MODE);
	if (t->fd < 0 && errno == EINVAL && t->direct) {
		t->direct = false;
		/* The file may have been made before that was found out. */
		flags &= t->device ? ~O_DIRECT : ~(O_DIRECT | O_EXCL);
		t->fd = open(t->path, flags, IO_FILE_MODE);
	}
	if (t->fd < 0 && errno == EBUSY && t->device && flags & O_EXCL)
		return err_set(err, -EBUSY,
			       "%s is mounted or in use; --destroy-data writes to it all the same",
			       t->path);
	if (t->fd < 0)
		return err_set(err, -errno, "cannot open %s", t->path);
	return 0;
}

int blk_target_open(struct blk_target *t, const char *path, uint64_t need_bytes,
		    const struct blk_run_options *o, struct err *err)
{
	int flags = O_CLOEXEC | (o->buffered ? 0 : O_DIRECT);
	bool exists;
	struct stat st;
	int r = 0;

	*t = (struct blk_target){ .path = xstrdup(path), .fd = -1 };
	exists = !stat(path, &st);
	if (!exists && (errno != ENOENT || !o->create))
		return err_set(err, -errno, "cannot open %s%s", path,
			       errno == ENOENT ? " (--create makes a file)" : "");
	if (exists && !S_ISBLK(st.st_mode) && !S_ISREG(st.st_mode))
		return err_set(err, -ENOTBLK, "%s is neither a block device nor a file", path);
	t->device = exists && S_ISBLK(st.st_mode);
	t->writable = !t->device || o->writes;
	flags |= t->writable ? O_RDWR : O_RDONLY;
	if (exists && t->writable && !o->destroy_data) {
		r = t->device ? 0 : refuse_attached(path, &st, err);
		if (!r)
			r = refuse_held(path, err);
		flags |= t->device ? O_EXCL : 0;
	}
	if (!exists)
		flags |= O_CREAT | O_EXCL;
	if (!r)
		r = open_either(t, flags, err);
	if (r < 0)
		return r;
	return t->device ? measure_device(t, err) : measure_file(t, need_bytes, o->create, err);
}

void blk_target_close(struct blk_target *t)
{
	blk_queue_restore(&t->queue);
	if (t->fd >= 0)
		(void)close(t->fd); /* what was written was answered for by the requests */
	free(t->path);
	*t = (struct blk_target){ .fd = -1 };
}
