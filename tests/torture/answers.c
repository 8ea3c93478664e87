/* SPDX-License-Identifier: MIT */
/*
 * Programs that answer for the kernel: a file system, whether a file may be opened, what memory
 * holds. Whoever has to do with these waits for an answer; a recorder that holds who answers must not.
 */
#include "torture.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <linux/userfaultfd.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fanotify.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#define FILE_TEXT "hello"
#define FILE_NODE 2u

/* A call that every recorder stops at. */
static void stop_for_recorder(void)
{
	must(kill(getpid(), 0), "kill");
}

static struct fuse_attr attr_of(uint64_t node)
{
	return (struct fuse_attr){ .ino = node,
				   .mode = node == FILE_NODE ? S_IFREG | 0644 : S_IFDIR | 0755,
				   .size = node == FILE_NODE ? strlen(FILE_TEXT) : 0,
				   .nlink = 1 };
}

union answer {
	struct fuse_init_out init;
	struct fuse_entry_out entry;
	struct fuse_attr_out attr;
	struct fuse_open_out open;
	struct fuse_statfs_out statfs;
	char text[512];
};

/* The length of the answer, or -errno; nothing in it may be kept, so that the next one asks again. */
static int find_answer(const struct fuse_in_header *in, const void *arg, union answer *ret)
{
	const struct fuse_read_in *read_in = arg;
	struct fuse_dirent *e = (struct fuse_dirent *)ret->text;

	memset(ret, 0, sizeof(*ret));
	switch (in->opcode) {
	case FUSE_INIT:
		ret->init = (struct fuse_init_out){ .major = FUSE_KERNEL_VERSION,
						    .minor = 31,
						    .max_write = 4096 };
		return sizeof(ret->init);
	case FUSE_LOOKUP:
		if (in->nodeid != FUSE_ROOT_ID || strcmp(arg, "f") != 0)
			return -ENOENT;
		ret->entry =
			(struct fuse_entry_out){ .nodeid = FILE_NODE, .attr = attr_of(FILE_NODE) };
		return sizeof(ret->entry);
	case FUSE_GETATTR:
		ret->attr.attr = attr_of(in->nodeid);
		return sizeof(ret->attr);
	case FUSE_OPEN:
	case FUSE_OPENDIR:
		return sizeof(ret->open);
	case FUSE_READ:
		if (read_in->offset)
			return 0;
		memcpy(ret->text, FILE_TEXT, strlen(FILE_TEXT));
		return (int)strlen(FILE_TEXT);
	case FUSE_READDIR:
		if (read_in->offset)
			return 0;
		*e = (struct fuse_dirent){ .ino = FILE_NODE, .off = 1, .namelen = 1 };
		e->name[0] = 'f';
		return (int)FUSE_DIRENT_SIZE(e);
	case FUSE_STATFS:
		return sizeof(ret->statfs);
	case FUSE_FLUSH:
	case FUSE_RELEASE:
	case FUSE_RELEASEDIR:
		return 0;
	}
	return -ENOSYS;
}

static int serve(int fd)
{
	static char request[1 << 17] __attribute__((aligned(8)));
	const struct fuse_in_header *in = (const struct fuse_in_header *)request;
	struct {
		struct fuse_out_header head;
		union answer answer;
	} out;
	int len;

	while (read(fd, request, sizeof(request)) > 0) {
		stop_for_recorder();
		if (in->opcode == FUSE_FORGET || in->opcode == FUSE_BATCH_FORGET ||
		    in->opcode == FUSE_INTERRUPT)
			continue;
		len = find_answer(in, in + 1, &out.answer);
		out.head = (struct fuse_out_header){ .unique = in->unique,
						     .error = len < 0 ? len : 0,
						     .len = (uint32_t)sizeof(out.head) };
		out.head.len += len > 0 ? (uint32_t)len : 0;
		if (write(fd, &out, out.head.len) < 0 && errno != ENOENT)
			give_up("write");
	}
	return 0;
}

static void expect_text(const char *path)
{
	int fd = (int)must(open(path, O_RDONLY | O_CLOEXEC), path);
	char text[sizeof(FILE_TEXT)] = "";

	if (read(fd, text, sizeof(text)) != (ssize_t)strlen(FILE_TEXT) ||
	    strcmp(text, FILE_TEXT) != 0)
		give_up("another text");
	must(close(fd), "close");
}

static unsigned int nr_entries(const char *path)
{
	DIR *d = opendir(path);
	unsigned int nr = 0;

	if (!d)
		give_up("%s", path);
	while (readdir(d))
		nr++;
	closedir(d);
	return nr;
}

/* In a namespace of its own, so that nobody else comes to wait for it, and it ends with us. */
static bool mount_served(const char *dir, int fd)
{
	char options[128];

	(void)snprintf(options, sizeof(options), "fd=%d,rootmode=40000,user_id=%d,group_id=%d", fd,
		       (int)getuid(), (int)getgid());
	return fd >= 0 && !unshare(CLONE_NEWNS) &&
	       !mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) &&
	       !mount("torture", dir, "fuse", 0, options);
}

/* served: a child serves a file system, we use it. */
int mode_served(int argc, char **argv)
{
	int fd = open("/dev/fuse", O_RDWR | O_CLOEXEC);
	struct stat st;
	pid_t server;

	(void)argc;
	(void)argv;
	must(mkdir("m", 0755) && errno != EEXIST ? -1 : 0, "m");
	must(mkdir("m/sub", 0755) && errno != EEXIST ? -1 : 0, "m/sub");
	must(stat("m/sub/none", &st) && errno == ENOENT ? 0 : -1, "m/sub/none");
	if (!mount_served("m", fd))
		return NOT_HERE;
	server = (pid_t)must(fork(), "fork");
	if (!server)
		_exit(serve(fd));
	must(close(fd), "close");
	must(stat("m/f", &st), "m/f");
	must(stat("m/sub/none", &st) && errno == ENOENT ? 0 : -1, "m/sub/none");
	expect_text("m/f");
	if (nr_entries("m") != 1)
		give_up("entries");
	must(chdir("m"), "m");
	expect_text("f");
	must(unlink("f") && errno == ENOSYS ? 0 : -1, "unlink");
	must(chdir(".."), "..");
	must(umount2("m", MNT_DETACH), "umount2");
	must(kill(server, SIGKILL), "kill");
	must(waitpid(server, NULL, 0), "waitpid");
	expect_text("f");
	return 0;
}

static void answer_all(int fd)
{
	static char events[4096] __attribute__((aligned(8)));
	const struct fanotify_event_metadata *e = (const void *)events;
	ssize_t len = read(fd, events, sizeof(events));

	for (; FAN_EVENT_OK(e, len); e = FAN_EVENT_NEXT(e, len)) {
		struct fanotify_response answer = { .fd = e->fd, .response = FAN_ALLOW };

		stop_for_recorder();
		must(write(fd, &answer, sizeof(answer)), "write");
		must(close(e->fd), "close");
	}
}

/* guarded: a child opens files, which we have to allow. */
int mode_guarded(int argc, char **argv)
{
	int fd = fanotify_init(FAN_CLASS_CONTENT | FAN_CLOEXEC, O_RDONLY);
	struct pollfd asked = { .fd = fd, .events = POLLIN };
	int status = 0;
	pid_t child;

	(void)argc;
	(void)argv;
	if (fd < 0 ||
	    fanotify_mark(fd, FAN_MARK_ADD,
			  FAN_OPEN_PERM | FAN_ACCESS_PERM | FAN_ONDIR | FAN_EVENT_ON_CHILD,
			  AT_FDCWD, "guarded"))
		return NOT_HERE;
	child = (pid_t)must(fork(), "fork");
	if (!child) {
		if (nr_entries("guarded") != 3)
			give_up("entries");
		expect_text("guarded/f");
		_exit(0);
	}
	while (!must(waitpid(child, &status, WNOHANG), "waitpid")) {
		if (poll(&asked, 1, 10) > 0)
			answer_all(fd);
	}
	return status != 0;
}

#define PAGE_BYTES ((size_t)4096)

static void *fill_pages(void *of)
{
	static char page[4096];
	int fd = *(int *)of;
	struct uffd_msg m;

	memset(page, 'U', sizeof(page));
	while (read(fd, &m, sizeof(m)) == (ssize_t)sizeof(m)) {
		struct uffdio_copy c = { .dst = m.arg.pagefault.address & ~(PAGE_BYTES - 1),
					 .src = (uintptr_t)page,
					 .len = PAGE_BYTES };

		stop_for_recorder();
		must(ioctl(fd, UFFDIO_COPY, &c), "UFFDIO_COPY");
	}
	return NULL;
}

#ifndef USERFAULTFD_IOC_NEW
#define USERFAULTFD_IOC_NEW _IO(0xaa, 0) /* since Linux 6.1 */
#endif

/* Of this process; by the device it needs rights. -1: not here. */
static int open_faults(bool by_device, int flags)
{
	int device, fd;

	if (!by_device)
		return (int)syscall(SYS_userfaultfd, flags);
	device = open("/dev/userfaultfd", O_RDWR | O_CLOEXEC);
	fd = device < 0 ? -1 : ioctl(device, USERFAULTFD_IOC_NEW, flags);
	if (device >= 0)
		close(device);
	return fd;
}

/* unfilled call|device: nobody fills pages, and only who touches them as a user waits for that. */
int mode_unfilled(int argc, char **argv)
{
	int fd = open_faults(argc > 0 && !strcmp(argv[0], "device"),
			     O_CLOEXEC | UFFD_USER_MODE_ONLY);
	int null = (int)must(open("/dev/null", O_WRONLY | O_CLOEXEC), "null");
	int file = (int)must(open("unfilled", O_RDWR | O_CREAT | O_CLOEXEC, 0600), "unfilled");
	char *p =
		mmap(NULL, PAGE_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register range = { .mode = UFFDIO_REGISTER_MODE_MISSING };

	if (fd < 0 || p == MAP_FAILED || ioctl(fd, UFFDIO_API, &api))
		return NOT_HERE;
	range.range = (struct uffdio_range){ (uintptr_t)p, PAGE_BYTES };
	must(ioctl(fd, UFFDIO_REGISTER, &range), "UFFDIO_REGISTER");
	/* Of what goes nowhere nothing is read. */
	return write(null, p, 100) != 100 || write(file, p, 100) != -1 || errno != EFAULT ||
	       access(p, F_OK) != -1 || errno != EFAULT;
}

/* filled NR: a thread fills NR pages when they are used, by calls. */
int mode_filled(int argc, char **argv)
{
	size_t len = (argc > 0 ? strtoul(argv[0], NULL, 10) : 1) * PAGE_BYTES;
	static int fd;
	struct uffdio_api api = { .api = UFFD_API };
	struct uffdio_register range = { .mode = UFFDIO_REGISTER_MODE_MISSING };
	int file = (int)must(open("filled", O_RDWR | O_CREAT | O_CLOEXEC, 0600), "filled");
	char *p = mmap(NULL, 2 * len, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	pthread_t t;

	fd = (int)syscall(SYS_userfaultfd, O_CLOEXEC);
	if (fd < 0 || p == MAP_FAILED || ioctl(fd, UFFDIO_API, &api))
		return NOT_HERE;
	range.range = (struct uffdio_range){ (uintptr_t)p, 2 * len };
	must(ioctl(fd, UFFDIO_REGISTER, &range), "UFFDIO_REGISTER");
	if (pthread_create(&t, NULL, fill_pages, &fd))
		give_up("pthread_create");
	if (pwrite(file, p, len, 0) != (ssize_t)len || pread(file, p + len, len, 0) != (ssize_t)len)
		give_up("filled");
	return p[len] != 'U' || p[2 * len - 1] != 'U';
}
