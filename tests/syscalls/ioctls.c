/* SPDX-License-Identifier: MIT */
/* ioctl on files, pipes and sockets; commands that nobody knows. */
#include <fcntl.h>
#include <linux/fiemap.h>
#include <linux/fs.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "lib.h"

#ifndef FIOQSIZE
#define FIOQSIZE 0x5460
#endif
/* By their numbers, of the kernel's fs.h. */
#define RESVSP 0x40305828
#define UNRESVSP 0x40305829
#define RESVSP64 0x4030582a
#define UNRESVSP64 0x4030582b
#define ZERO_RANGE 0x40305839

static const struct t_bit inode_flags[] = {
	BIT(FS_SECRM_FL),     BIT(FS_UNRM_FL),	      BIT(FS_COMPR_FL),	       BIT(FS_SYNC_FL),
	BIT(FS_IMMUTABLE_FL), BIT(FS_APPEND_FL),      BIT(FS_NODUMP_FL),       BIT(FS_NOATIME_FL),
	BIT(FS_DIRTY_FL),     BIT(FS_COMPRBLK_FL),    BIT(FS_NOCOMP_FL),       BIT(FS_ENCRYPT_FL),
	BIT(FS_INDEX_FL),     BIT(FS_IMAGIC_FL),      BIT(FS_JOURNAL_DATA_FL), BIT(FS_NOTAIL_FL),
	BIT(FS_DIRSYNC_FL),   BIT(FS_TOPDIR_FL),      BIT(FS_HUGE_FILE_FL),    BIT(FS_EXTENT_FL),
	BIT(FS_VERITY_FL),    BIT(FS_EA_INODE_FL),    BIT(FS_EOFBLOCKS_FL),    BIT(FS_NOCOW_FL),
	BIT(FS_DAX_FL),	      BIT(FS_INLINE_DATA_FL), BIT(FS_PROJINHERIT_FL),  BIT(FS_CASEFOLD_FL),
};

static const struct t_bit xflags[] = {
	BIT(FS_XFLAG_REALTIME), BIT(FS_XFLAG_PREALLOC),	   BIT(FS_XFLAG_IMMUTABLE),
	BIT(FS_XFLAG_APPEND),	BIT(FS_XFLAG_SYNC),	   BIT(FS_XFLAG_NOATIME),
	BIT(FS_XFLAG_NODUMP),	BIT(FS_XFLAG_PROJINHERIT), BIT(FS_XFLAG_DAX),
	BIT(FS_XFLAG_HASATTR),
};

static const struct t_bit extent_flags[] = {
	BIT(FIEMAP_EXTENT_LAST),	BIT(FIEMAP_EXTENT_UNKNOWN),
	BIT(FIEMAP_EXTENT_DELALLOC),	BIT(FIEMAP_EXTENT_ENCODED),
	BIT(FIEMAP_EXTENT_NOT_ALIGNED), BIT(FIEMAP_EXTENT_DATA_INLINE),
	BIT(FIEMAP_EXTENT_DATA_TAIL),	BIT(FIEMAP_EXTENT_UNWRITTEN),
	BIT(FIEMAP_EXTENT_MERGED),	BIT(FIEMAP_EXTENT_SHARED),
};

static void descriptors(int fd, const int pipes[2], int sock)
{
	int n = 1;

	expect("ioctl_fioclex(fd=%d) = 0", fd);
	t_ok(sys(ioctl, fd, FIOCLEX));
	expect("ioctl_fionclex(fd=%d) = 0", fd);
	t_ok(sys(ioctl, fd, FIONCLEX));
	expect("ioctl_fioclex(fd=-1) = -1 EBADF");
	t_fails(sys(ioctl, -1, FIOCLEX), EBADF);
	expect("ioctl_fionbio(fd=%d, arg=[1]) = 0", pipes[0]);
	t_ok(sys(ioctl, pipes[0], FIONBIO, &n));
	expect("ioctl_fioasync(fd=%d, arg=[1]) = 0", pipes[0]);
	t_ok(sys(ioctl, pipes[0], FIOASYNC, &n));
	n = 0;
	expect("ioctl_fioasync(fd=%d, arg=[0]) = 0", pipes[0]);
	t_ok(sys(ioctl, pipes[0], FIOASYNC, &n));
	expect("ioctl_fionbio(fd=%d, arg=&0x8) = -1 EFAULT", pipes[0]);
	t_fails(sys(ioctl, pipes[0], FIONBIO, 8), EFAULT);
	expect("ioctl_fionread(fd=%d, arg=[3]) = 0", pipes[0]);
	t_ok(sys(ioctl, pipes[0], FIONREAD, &n));
	expect("ioctl_fionread(fd=%d, arg=[9000]) = 0", fd);
	t_ok(sys(ioctl, fd, FIONREAD, &n));
	expect("ioctl_fionread(fd=-1, arg=%s) = -1 EBADF", pointer(&n));
	t_fails(sys(ioctl, -1, FIONREAD, &n), EBADF);
	expect("ioctl_tiocoutq(fd=%d, arg=[0]) = 0", sock);
	t_ok(sys(ioctl, sock, TIOCOUTQ, &n));
	expect("ioctl_tiocoutq(fd=%d, arg=%s) = -1 ENOTTY", fd, pointer(&n));
	t_fails(sys(ioctl, fd, TIOCOUTQ, &n), ENOTTY);
	expect("ioctl(fd=%d, cmd=0x12345678, arg=0x9abc) = -1 ENOTTY", fd);
	t_fails(sys(ioctl, fd, 0x12345678, 0x9abc), ENOTTY);
}

static void flags(int fd)
{
	struct fsxattr x = { 0 };
	int v = 0;
	char *s;
	long r;

	r = sys(ioctl, fd, FS_IOC_GETFLAGS, &v);
	s = text("[%s]", bits((unsigned int)v, inode_flags));
	expect("ioctl_fs_ioc_getflags(fd=%d, arg=%s) = %s", fd, r < 0 ? pointer(&v) : s,
	       outcome(r));
	v |= FS_NODUMP_FL | FS_NOATIME_FL;
	r = sys(ioctl, fd, FS_IOC_SETFLAGS, &v);
	expect("ioctl_fs_ioc_setflags(fd=%d, arg=[%s]) = %s", fd,
	       bits((unsigned int)v, inode_flags), outcome(r));
	r = sys(ioctl, fd, FS_IOC_FSGETXATTR, &x);
	s = text(
		"{fsx_xflags=%s, fsx_extsize=%u, fsx_nextents=%u, fsx_projid=%u, fsx_cowextsize=%u}",
		bits(x.fsx_xflags, xflags), x.fsx_extsize, x.fsx_nextents, x.fsx_projid,
		x.fsx_cowextsize);
	expect("ioctl_fs_ioc_fsgetxattr(fd=%d, arg=%s) = %s", fd, r < 0 ? pointer(&x) : s,
	       outcome(r));
	r = sys(ioctl, fd, FS_IOC_FSSETXATTR, &x);
	expect("ioctl_fs_ioc_fssetxattr(fd=%d, arg=%s) = %s", fd, s, outcome(r));
	r = sys(ioctl, fd, FS_IOC_GETVERSION, &v);
	expect("ioctl_fs_ioc_getversion(fd=%d, arg=%s) = %s", fd, out_number(r, &v, v), outcome(r));
	v = 5;
	r = sys(ioctl, fd, FS_IOC_SETVERSION, &v);
	expect("ioctl_fs_ioc_setversion(fd=%d, arg=[5]) = %s", fd, outcome(r));
	expect("ioctl_fs_ioc_setflags(fd=-1, arg=NULL) = -1 EBADF");
	t_fails(sys(ioctl, -1, FS_IOC_SETFLAGS, NULL), EBADF);
}

static void places(int fd, int dir)
{
	union {
		struct fiemap map;
		char room[sizeof(struct fiemap) + 2 * sizeof(struct fiemap_extent)];
	} u = { .room = { 0 } };
	struct fiemap *f = &u.map;
	long size = 0;
	int block = 0;
	char *s = text("%s", "");
	unsigned int i;
	long r;

	f->fm_length = ~0ULL;
	f->fm_flags = FIEMAP_FLAG_SYNC;
	f->fm_extent_count = 2;
	r = sys(ioctl, fd, FS_IOC_FIEMAP, f);
	for (i = 0; r == 0 && i < f->fm_mapped_extents; i++)
		s = text("%s%s{fe_logical=%llu, fe_physical=%llu, fe_length=%llu, fe_flags=%s}", s,
			 i ? ", " : "", f->fm_extents[i].fe_logical, f->fm_extents[i].fe_physical,
			 f->fm_extents[i].fe_length, bits(f->fm_extents[i].fe_flags, extent_flags));
	if (r == 0)
		expect("ioctl_fs_ioc_fiemap(fd=%d, arg={fm_start=0, fm_length=18446744073709551615, fm_flags=FIEMAP_FLAG_SYNC, fm_extent_count=2, fm_mapped_extents=%u, fm_extents=[%s]}) = 0",
		       fd, f->fm_mapped_extents, s);
	else
		expect("ioctl_fs_ioc_fiemap(fd=%d, arg={fm_start=0, fm_extent_count=2}) = %s", fd,
		       outcome(r));
	r = sys(ioctl, fd, FIBMAP, &block);
	if (r == 0)
		expect("ioctl_fibmap(fd=%d, arg=[0], arg_after=[%d]) = 0", fd, block);
	else
		expect("ioctl_fibmap(fd=%d, arg=[0]) = %s", fd, outcome(r));
	r = sys(ioctl, fd, FIGETBSZ, &block);
	expect("ioctl_figetbsz(fd=%d, arg=%s) = %s", fd, out_number(r, &block, block), outcome(r));
	r = sys(ioctl, fd, FIOQSIZE, &size);
	expect("ioctl_fioqsize(fd=%d, arg=%s) = %s", fd, out_number(r, &size, size), outcome(r));
	expect("ioctl_fs_ioc_fiemap(fd=%d, arg=NULL) = %s", dir,
	       outcome(sys(ioctl, dir, FS_IOC_FIEMAP, NULL)));
}

/* Most file systems of today share no blocks: then these fail, and are recorded so. */
static void clones(int fd, int src)
{
	struct file_clone_range range = { src, 0, 4096, 0 };
	union {
		struct file_dedupe_range range;
		char room[sizeof(struct file_dedupe_range) + sizeof(struct file_dedupe_range_info)];
	} u = { .room = { 0 } };
	struct file_dedupe_range *d = &u.range;
	long r;

	r = sys(ioctl, fd, FICLONE, src);
	expect("ioctl_ficlone(fd=%d, src_fd=%d) = %s", fd, src, outcome(r));
	r = sys(ioctl, fd, FICLONERANGE, &range);
	expect("ioctl_ficlonerange(fd=%d, arg={src_fd=%d, src_offset=0, src_length=4096, dest_offset=0}) = %s",
	       fd, src, outcome(r));
	d->src_length = 4096;
	d->dest_count = 1;
	d->info[0].dest_fd = fd;
	r = sys(ioctl, src, FIDEDUPERANGE, d);
	if (r == 0)
		expect("ioctl_fideduperange(fd=%d, arg={src_offset=0, src_length=4096, dest_count=1, info=[{dest_fd=%d, dest_offset=0, bytes_deduped=%llu, status=%d}]}) = 0",
		       src, fd, d->info[0].bytes_deduped, d->info[0].status);
	else
		expect("ioctl_fideduperange(fd=%d, arg={src_length=4096, dest_count=1, info=[{dest_fd=%d}]}) = %s",
		       src, fd, outcome(r));
	expect("ioctl_ficlone(fd=%d, src_fd=-1) = -1 EBADF", fd);
	t_fails(sys(ioctl, fd, FICLONE, -1), EBADF);
}

static void space(int fd)
{
	static const struct {
		unsigned long cmd;
		const char *name;
	} cmds[] = {
		{ RESVSP, "resvsp" },	      { RESVSP64, "resvsp64" },
		{ UNRESVSP, "unresvsp" },     { UNRESVSP64, "unresvsp64" },
		{ ZERO_RANGE, "zero_range" },
	};
	struct {
		int16_t type, whence;
		int64_t start, len;
		int32_t sysid;
		uint32_t pid;
		int32_t pad[4];
	} sr = { 0, SEEK_SET, 4096, 4096, 0, 0, { 0 } };
	size_t i;
	long r;

	for (i = 0; i < ARRAY_LEN(cmds); i++) {
		r = sys(ioctl, fd, cmds[i].cmd, &sr);
		expect("ioctl_fs_ioc_%s(fd=%d, arg={l_type=0, l_whence=SEEK_SET, l_start=4096, l_len=4096}) = %s",
		       cmds[i].name, fd, outcome(r));
	}
}

/* Of the file system as a whole: on a pipe, which has none. */
static void whole(int fd)
{
	struct fstrim_range range = { 1, 2, 3 };

	expect("ioctl_fitrim(fd=%d, arg={start=1, len=2, minlen=3}, arg_after=*) = -1 ENOTTY", fd);
	t_fails(sys(ioctl, fd, FITRIM, &range), ENOTTY);
	expect("ioctl_fifreeze(fd=-1) = -1 EBADF");
	t_fails(sys(ioctl, -1, FIFREEZE, 0), EBADF);
	expect("ioctl_fithaw(fd=-1) = -1 EBADF");
	t_fails(sys(ioctl, -1, FITHAW, 0), EBADF);
}

int main(void)
{
	char block[9000];
	int fd, src, dir, pipes[2], sv[2];

	t_init();
	fd = (int)t_ok(open("f", O_RDWR | O_CREAT, 0600));
	src = (int)t_ok(open("src", O_RDWR | O_CREAT, 0600));
	dir = (int)t_ok(open(".", O_RDONLY | O_DIRECTORY));
	t_ok(pipe(pipes));
	t_ok(socketpair(AF_UNIX, SOCK_STREAM, 0, sv));
	memset(block, 'b', sizeof(block));
	t_is(write(fd, block, sizeof(block)), sizeof(block));
	t_is(write(src, block, sizeof(block)), sizeof(block));
	t_is(write(pipes[1], "abc", 3), 3);
	t_ok(lseek(fd, 0, SEEK_SET));
	t_begin();
	descriptors(fd, pipes, sv[0]);
	flags(fd);
	places(fd, dir);
	clones(fd, src);
	space(fd);
	whole(pipes[0]);
	t_end();
	return 0;
}
