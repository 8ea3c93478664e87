/* SPDX-License-Identifier: MIT */
/* Maps of files and of memory. */
#include <fcntl.h>
#include <linux/membarrier.h>
#include <linux/mempolicy.h>
#include <linux/userfaultfd.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "lib.h"

#define PAGE 4096

/* Addresses are results: the text is made behind the call. */
static char *map(int fd, long length, int prot, int flags, long offset)
{
	return (char *)t_ok(sys(mmap, NULL, length, prot, flags, fd, offset));
}

static void maps(int fd, int read_only)
{
	char *p, *q;

	p = map(fd, 2 * PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, 0);
	expect("mmap(addr=0, length=8192, prot=PROT_READ|PROT_WRITE, flags=MAP_SHARED, fd=%d, offset=0, file=%s) = %s",
	       fd, file_text(fd), addr(p));
	q = map(fd, PAGE, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_POPULATE, PAGE);
	expect("mmap(addr=0, length=4096, prot=PROT_READ|PROT_EXEC, flags=MAP_PRIVATE|MAP_POPULATE, fd=%d, offset=4096, file=%s) = %s",
	       fd, file_text(fd), addr(q));
	expect("mmap(addr=%s, length=4096, prot=PROT_READ, flags=MAP_PRIVATE|MAP_FIXED, fd=%d, offset=0) = %s",
	       addr(q), read_only, addr(q));
	t_is(sys(mmap, q, PAGE, PROT_READ, MAP_PRIVATE | MAP_FIXED, read_only, 0), (long)q);
	expect("mmap(addr=%s, length=4096, prot=PROT_READ, flags=MAP_PRIVATE|MAP_FIXED_NOREPLACE, fd=%d, offset=0, file=?) = -1 EEXIST",
	       addr(q), read_only);
	t_fails(sys(mmap, q, PAGE, PROT_READ, MAP_PRIVATE | MAP_FIXED_NOREPLACE, read_only, 0),
		EEXIST);
	expect("mmap(addr=0, length=4096, prot=PROT_READ|PROT_WRITE, flags=MAP_SHARED, fd=%d, offset=0, file=?) = -1 EACCES",
	       read_only);
	t_fails(sys(mmap, NULL, PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, read_only, 0), EACCES);
	expect("mmap(addr=0, length=4096, prot=PROT_NONE, flags=MAP_SHARED_VALIDATE|MAP_SYNC, fd=%d, offset=0) = -1 EOPNOTSUPP",
	       fd);
	t_fails(sys(mmap, NULL, PAGE, PROT_NONE, MAP_SHARED_VALIDATE | MAP_SYNC, fd, 0),
		EOPNOTSUPP);
	expect("mmap(addr=0, length=0, prot=PROT_READ, flags=MAP_PRIVATE, fd=%d, offset=0) = -1 EINVAL",
	       fd);
	t_fails(sys(mmap, NULL, 0, PROT_READ, MAP_PRIVATE, fd, 0), EINVAL);
	expect("munmap(addr=%s, length=8192) = 0", addr(p));
	t_ok(sys(munmap, p, 2 * PAGE));
	expect("munmap(addr=%s, length=4096) = 0", addr(q));
	t_ok(sys(munmap, q, PAGE));
	expect("munmap(addr=0x1, length=4096) = -1 EINVAL");
	t_fails(sys(munmap, 1, PAGE), EINVAL);
}

/* What fd says is of no meaning for memory without a file. */
static char *anonymous(int fd)
{
	char *p = map(fd, 16 * PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, 0);

	expect("mmap(addr=0, length=65536, prot=PROT_READ|PROT_WRITE, flags=MAP_PRIVATE|MAP_ANONYMOUS, fd=%d, offset=0, file=?) = %s",
	       fd, addr(p));
	memset(p, 'm', 16 * PAGE);
	return p;
}

static void moves(int fd, char *to)
{
	char *p, *q;

	p = map(fd, PAGE, PROT_READ, MAP_SHARED, 0);
	expect("mmap(addr=0, length=4096, prot=PROT_READ, flags=MAP_SHARED, fd=%d) = %s", fd,
	       addr(p));
	q = (char *)t_ok(sys(mremap, p, PAGE, 2 * PAGE, MREMAP_MAYMOVE, 0));
	expect("mremap(old_address=%s, old_size=4096, new_size=8192, flags=MREMAP_MAYMOVE, new_address=0) = %s",
	       addr(p), addr(q));
	expect("mremap(old_address=%s, old_size=8192, new_size=4096, flags=MREMAP_MAYMOVE|MREMAP_FIXED, new_address=%s) = %s",
	       addr(q), addr(to), addr(to));
	t_is(sys(mremap, q, 2 * PAGE, PAGE, MREMAP_MAYMOVE | MREMAP_FIXED, to), (long)to);
	expect("mremap(old_address=0x1, old_size=4096, new_size=4096, flags=0, new_address=0) = -1 EINVAL");
	t_fails(sys(mremap, 1, PAGE, PAGE, 0, 0), EINVAL);
	expect("munmap(addr=%s, length=4096) = 0", addr(to));
	t_ok(sys(munmap, to, PAGE));
	p = map(fd, 2 * PAGE, PROT_READ, MAP_SHARED, 0);
	expect("mmap(addr=0, length=8192, prot=PROT_READ, flags=MAP_SHARED, fd=%d) = %s", fd,
	       addr(p));
	expect("remap_file_pages(addr=%s, size=4096, prot=PROT_NONE, pgoff=1, flags=MAP_FILE) = 0",
	       addr(p));
	t_ok(sys(remap_file_pages, p, PAGE, 0, 1, 0));
	expect("remap_file_pages(addr=%s, size=4096, prot=PROT_READ, pgoff=0, flags=MAP_FILE) = -1 EINVAL",
	       addr(p));
	t_fails(sys(remap_file_pages, p, PAGE, PROT_READ, 0, 0), EINVAL);
	expect("munmap(addr=%s, length=8192) = 0", addr(p));
	t_ok(sys(munmap, p, 2 * PAGE));
}

static void protections(char *p)
{
	long key, r;

	expect("mprotect(addr=%s, len=4096, prot=PROT_READ) = 0", addr(p));
	t_ok(sys(mprotect, p, PAGE, PROT_READ));
	expect("mprotect(addr=%s, len=4096, prot=PROT_READ|PROT_WRITE) = 0", addr(p));
	t_ok(sys(mprotect, p, PAGE, PROT_READ | PROT_WRITE));
	expect("mprotect(addr=0x1, len=4096, prot=PROT_NONE) = -1 EINVAL");
	t_fails(sys(mprotect, 1, PAGE, 0), EINVAL);
	expect("mprotect(addr=%s, len=4096, prot=PROT_READ|0x1000) = -1 EINVAL", addr(p));
	t_fails(sys(mprotect, p, PAGE, PROT_READ | 0x1000), EINVAL);
	key = sys(pkey_alloc, 0, PKEY_DISABLE_WRITE);
	expect("pkey_alloc(flags=0, access_rights=PKEY_DISABLE_WRITE) = %s", outcome(key));
	r = sys(pkey_mprotect, p, PAGE, PROT_READ | PROT_WRITE, -1);
	expect("pkey_mprotect(addr=%s, len=4096, prot=PROT_READ|PROT_WRITE, pkey=-1) = %s", addr(p),
	       outcome(r));
	r = sys(pkey_free, key < 0 ? 100 : key);
	expect("pkey_free(pkey=%ld) = %s", key < 0 ? 100 : key, outcome(r));
}

static void advice(char *p, int pidfd)
{
	struct iovec iov = { p, PAGE };
	long r;

	expect("madvise(addr=%s, length=4096, advice=MADV_SEQUENTIAL) = 0", addr(p));
	t_ok(sys(madvise, p, PAGE, MADV_SEQUENTIAL));
	expect("madvise(addr=%s, length=4096, advice=MADV_DONTNEED) = 0", addr(p));
	t_ok(sys(madvise, p, PAGE, MADV_DONTNEED));
	expect("madvise(addr=%s, length=4096, advice=MADV_FREE) = 0", addr(p));
	t_ok(sys(madvise, p, PAGE, MADV_FREE));
	expect("madvise(addr=%s, length=4096, advice=999) = -1 EINVAL", addr(p));
	t_fails(sys(madvise, p, PAGE, 999), EINVAL);
	r = sys(process_madvise, pidfd, &iov, 1, MADV_COLD, 0);
	expect("process_madvise(pidfd=%d, iovec=[{iov_base=%s, iov_len=4096}], n=1, advice=MADV_COLD, flags=0) = %s",
	       pidfd, addr(p), outcome(r));
	r = sys(process_mrelease, pidfd, 0);
	expect("process_mrelease(pidfd=%d, flags=0) = %s", pidfd, outcome(r));
	expect("process_madvise(pidfd=-1, iovec=[{iov_base=%s, iov_len=4096}], n=1, advice=MADV_PAGEOUT, flags=0) = -1 EBADF",
	       addr(p));
	t_fails(sys(process_madvise, -1, &iov, 1, MADV_PAGEOUT, 0), EBADF);
}

static void residence(char *p)
{
	unsigned char vec[2];
	long r;

	expect("mincore(addr=%s, length=8192, vec=%s) = 0", addr(p), addr(vec));
	t_ok(sys(mincore, p, 2 * PAGE, vec));
	expect("mincore(addr=0x1, length=1, vec=%s) = -1 EINVAL", addr(vec));
	t_fails(sys(mincore, 1, 1, vec), EINVAL);
	expect("mlock(addr=%s, len=4096) = 0", addr(p));
	t_ok(sys(mlock, p, PAGE));
	expect("mlock2(addr=%s, len=4096, flags=MLOCK_ONFAULT) = 0", addr(p));
	t_ok(sys(mlock2, p, PAGE, MLOCK_ONFAULT));
	expect("munlock(addr=%s, len=4096) = 0", addr(p));
	t_ok(sys(munlock, p, PAGE));
	expect("mlock2(addr=%s, len=4096, flags=0x80) = -1 EINVAL", addr(p));
	t_fails(sys(mlock2, p, PAGE, 0x80), EINVAL);
	expect("mlock(addr=0, len=4096) = -1 ENOMEM");
	t_fails(sys(mlock, NULL, PAGE), ENOMEM);
	r = sys(mlockall, MCL_CURRENT | MCL_ONFAULT);
	expect("mlockall(flags=MCL_CURRENT|MCL_ONFAULT) = %s", outcome(r));
	expect("mlockall(flags=0x100) = -1 EINVAL");
	t_fails(sys(mlockall, 0x100), EINVAL);
	expect("munlockall() = 0");
	t_ok(sys(munlockall));
}

/* Which node of the machine memory is of. */
static void policies(char *p, pid_t self)
{
	unsigned long nodes = 1, none = 0;
	void *pages[1] = { p };
	int status[1] = { -1 }, mode = -1;
	long r;

	r = sys(mbind, p, PAGE, MPOL_DEFAULT, NULL, 0, 0);
	expect("mbind(addr=%s, len=4096, mode=MPOL_DEFAULT, nodemask=0, maxnode=0, flags=0) = %s",
	       addr(p), outcome(r));
	r = sys(mbind, p, PAGE, MPOL_PREFERRED | MPOL_F_STATIC_NODES, &nodes, 64, MPOL_MF_MOVE);
	expect("mbind(addr=%s, len=4096, mode=MPOL_PREFERRED|MPOL_F_STATIC_NODES, nodemask=%s, maxnode=64, flags=MPOL_MF_MOVE) = %s",
	       addr(p), addr(&nodes), outcome(r));
	r = sys(set_mempolicy, MPOL_DEFAULT, NULL, 0);
	expect("set_mempolicy(mode=MPOL_DEFAULT, nodemask=0, maxnode=0) = %s", outcome(r));
	r = sys(get_mempolicy, &mode, NULL, 0, NULL, 0);
	expect("get_mempolicy(mode=%s, nodemask=0, maxnode=0, addr=0, flags=0) = %s",
	       r < 0 ? pointer(&mode) : "[MPOL_DEFAULT]", outcome(r));
	r = sys(set_mempolicy_home_node, p, PAGE, 0, 0);
	expect("set_mempolicy_home_node(start=%s, len=4096, home_node=0, flags=0) = %s", addr(p),
	       outcome(r));
	r = sys(migrate_pages, self, 64, &none, &none);
	expect("migrate_pages(pid=%d, maxnode=64, old_nodes=%s, new_nodes=%s) = %s", self,
	       addr(&none), addr(&none), outcome(r));
	r = sys(move_pages, 0, 1, pages, NULL, status, 0);
	expect("move_pages(pid=0, count=1, pages=%s, nodes=0, status=%s, flags=0) = %s",
	       addr(pages), addr(status), outcome(r));
}

static void others(char *p)
{
	long r, fd;

	r = t_ok(sys(brk, 0));
	expect("brk(addr=0) = %s", hex((unsigned long)r));
	expect("brk(addr=%s) = %s", hex((unsigned long)r), hex((unsigned long)r));
	t_is(sys(brk, r), r);
	r = sys(map_shadow_stack, 0, 4096, 1);
	expect("map_shadow_stack(addr=0, size=4096, flags=SHADOW_STACK_SET_TOKEN) = %s",
	       r == -1 ? outcome(r) : hex((unsigned long)r));
	fd = sys(userfaultfd, O_CLOEXEC | UFFD_USER_MODE_ONLY);
	expect("userfaultfd(flags=O_CLOEXEC|UFFD_USER_MODE_ONLY) = %s", outcome(fd));
	if (fd >= 0) {
		expect("close(fd=%ld) = 0", fd);
		t_ok(sys(close, fd));
	}
	expect("ioctl_userfaultfd_new(fd=-1, flags=O_CLOEXEC) = -1 EBADF");
	t_fails(sys(ioctl, -1, 0xaa00, O_CLOEXEC), EBADF);
	r = sys(userfaultfd, 0x10);
	expect("userfaultfd(flags=0x10) = %s", outcome(r));
	r = sys(membarrier, MEMBARRIER_CMD_QUERY, 0, 0);
	expect("membarrier(cmd=MEMBARRIER_CMD_QUERY, flags=0, cpu_id=0) = %s", outcome(r));
	r = sys(membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0);
	expect("membarrier(cmd=MEMBARRIER_CMD_GLOBAL, flags=0, cpu_id=0) = %s", outcome(r));
	/* The last: what is sealed stays as it is. */
	r = sys(mseal, p + 8 * PAGE, PAGE, 0);
	expect("mseal(addr=%s, len=4096, flags=0) = %s", addr(p + 8 * PAGE), outcome(r));
}

int main(void)
{
	int fd, read_only, pidfd;
	char *p;
	pid_t self;

	t_init();
	fd = (int)t_ok(open("f", O_RDWR | O_CREAT, 0600));
	t_ok(ftruncate(fd, 4 * PAGE));
	read_only = (int)t_ok(open("f", O_RDONLY));
	self = getpid();
	pidfd = (int)t_ok(sys(pidfd_open, self, 0));
	t_begin();
	maps(fd, read_only);
	p = anonymous(fd);
	moves(fd, p + 12 * PAGE);
	protections(p);
	advice(p, pidfd);
	residence(p);
	policies(p, self);
	others(p);
	t_end();
	return 0;
}
