/* SPDX-License-Identifier: MIT */
/*
 * The model's descriptors, offsets and sizes against the kernel's: random calls
 * on a few files, pipes and eventfds, made for real by a child and in the
 * model, must have the same outcome, the numbers of descriptors included.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "fsmodel/fsmodel.h"
#include "model/print.h"
#include "model/vocab.h"
#include "sample.h"
#include "scratch.h"

#define NR_CALLS_DEFAULT 20000
#define FDS_FROM 3 /* the first are the test's own */
#define FDS_TO 12
#define WRONG_MAX 10
#define CLEAR_EVERY 1000
#define NOBODY 65534

struct rig {
	struct fsmodel *m;
	struct arena a;
	struct rng rng;
	struct event ev;
	unsigned int nr_args;
};

static struct rig rig;

static uint32_t pick(uint32_t below)
{
	return (uint32_t)rng_below(&rig.rng, below);
}

static void begin(enum row_id id)
{
	memset(&rig.ev, 0, sizeof(rig.ev));
	rig.ev.row = row_by_id(id);
	rig.ev.pid = rig.ev.tid = 1;
	rig.ev.outcome.ret = -1;
	rig.nr_args = 0;
}

static struct value *put(struct value v)
{
	rig.ev.args[rig.nr_args] = v;
	return &rig.ev.args[rig.nr_args++];
}

static void put_int(int64_t i)
{
	(void)put(value_int(i));
}

static void put_none(void)
{
	rig.nr_args++;
}

static void put_pointer(const int64_t *to)
{
	struct value v = { .type = VALUE_NULL };

	if (to) {
		v = value_list(&rig.a, 1);
		v.items[0] = value_int(*to);
	}
	(void)put(v);
}

static void put_vector(const struct iovec *iov, uint32_t nr)
{
	struct value list = value_list(&rig.a, nr);
	uint32_t n;

	for (n = 0; n < nr; n++) {
		list.items[n] = value_struct(&rig.a, 2);
		*value_field(&list.items[n], 1) = value_uint(iov[n].iov_len);
	}
	(void)put(list);
}

static const char *name_of(int err)
{
	return err ? errno_name(err) : "success";
}

/* The call in the model, held against the kernel's outcome: the result of a call, before errno changes. */
static bool same(long ret)
{
	int err = errno;
	struct outcome real = ret < 0 ? (struct outcome){ .ret = -1, .err = err }
				      : (struct outcome){ .ret = ret };
	struct buf text = { 0 };
	bool ok;

	(void)fsmodel_step(rig.m, &rig.ev);
	if (getenv("FSMODEL_SHOW")) {
		struct outcome model = rig.ev.outcome;

		rig.ev.outcome = real;
		print_event_line(&text, &rig.ev, 0);
		print_message("%s\n", buf_str(&text));
		buf_clear(&text);
		rig.ev.outcome = model;
	}
	ok = real.err == rig.ev.outcome.err && (real.err || real.ret == rig.ev.outcome.ret);
	if (!ok) {
		struct outcome model = rig.ev.outcome;

		rig.ev.outcome = real;
		print_event_line(&text, &rig.ev, 0);
		print_message("%s, but the model says %lld %s\n", buf_str(&text),
			      (long long)model.ret, name_of(model.err));
		buf_release(&text);
	}
	return ok;
}

/* Random arguments. */

static int random_fd(void)
{
	if (!pick(40))
		return pick(2) ? -1 : 1000;
	return FDS_FROM + (int)pick(FDS_TO - FDS_FROM);
}

static int64_t random_offset(void)
{
	switch (pick(12)) {
	case 0:
		return -(int64_t)pick(100) - 1;
	case 1:
		return INT64_MAX;
	default:
		return pick(300);
	}
}

static size_t random_count(void)
{
	size_t count = pick(8) ? pick(120) : 0;

	return count == 8 ? 9 : count; /* what an eventfd takes of it is in the data */
}

static char bytes[4096];

/* Calls. */

static bool call_open(void)
{
	static const char *const names[] = { "a", "b", "c", "dir", "fifo", "a", "b" };
	static const int flags_list[] = { O_RDONLY,
					  O_WRONLY,
					  O_RDWR,
					  O_RDWR | O_CREAT,
					  O_RDWR | O_APPEND | O_CREAT,
					  O_WRONLY | O_TRUNC,
					  O_RDONLY | O_DIRECTORY,
					  O_PATH,
					  O_RDWR | O_CREAT | O_EXCL,
					  3 };
	const char *name = names[pick(7)];
	int flags = flags_list[pick(10)] | O_NONBLOCK | (pick(2) ? O_CLOEXEC : 0);

	begin(SC_openat);
	put_int(AT_FDCWD);
	(void)put(value_str(&rig.a, name));
	put_int(flags);
	put_int(0644);
	return same(syscall(SYS_openat, AT_FDCWD, name, flags, 0644));
}

static bool call_close(void)
{
	int fd = random_fd();

	if (!pick(20)) {
		unsigned int from = FDS_FROM + pick(8), to = FDS_FROM + pick(8),
			     flags = pick(3) * 2;

		begin(SC_close_range);
		put_int(from);
		put_int(to);
		put_int(flags);
		return same(syscall(SYS_close_range, from, to, flags));
	}
	begin(SC_close);
	put_int(fd);
	return same(syscall(SYS_close, fd));
}

static bool call_dup(void)
{
	int fd = random_fd(), to = pick(4) ? FDS_FROM + (int)pick(8) : fd, min = (int)pick(14) - 1;
	int flags = pick(8) ? (pick(2) ? O_CLOEXEC : 0) : 1;

	switch (pick(4)) {
	case 0:
		begin(SC_dup);
		put_int(fd);
		return same(syscall(SYS_dup, fd));
	case 1:
		begin(SC_dup2);
		put_int(fd);
		put_int(to);
		return same(syscall(SYS_dup2, fd, to));
	case 2:
		begin(SC_dup3);
		put_int(fd);
		put_int(to);
		put_int(flags);
		return same(syscall(SYS_dup3, fd, to, flags));
	default:
		begin(flags & O_CLOEXEC ? SC_fcntl_dupfd_cloexec : SC_fcntl_dupfd);
		put_int(fd);
		put_none();
		put_int(min);
		return same(
			syscall(SYS_fcntl, fd, flags & O_CLOEXEC ? F_DUPFD_CLOEXEC : F_DUPFD, min));
	}
}

static bool call_flags(void)
{
	int fd = random_fd(), on = (int)pick(2), flags = pick(2) ? O_APPEND : 0;

	switch (pick(3)) {
	case 0:
		begin(SC_fcntl_getfd);
		put_int(fd);
		return same(syscall(SYS_fcntl, fd, F_GETFD));
	case 1:
		begin(SC_fcntl_setfd);
		put_int(fd);
		put_none();
		put_int(on);
		return same(syscall(SYS_fcntl, fd, F_SETFD, on));
	default:
		begin(SC_fcntl_setfl);
		put_int(fd);
		put_none();
		put_int(flags | O_NONBLOCK);
		return same(syscall(SYS_fcntl, fd, F_SETFL, flags | O_NONBLOCK));
	}
}

static bool call_read(void)
{
	int fd = random_fd();
	size_t count = random_count();
	int64_t offset = random_offset();

	if (pick(2)) {
		begin(SC_read);
		put_int(fd);
		put_none();
		put_int((int64_t)count);
		return same(syscall(SYS_read, fd, bytes, count));
	}
	begin(SC_pread64);
	put_int(fd);
	put_none();
	put_int((int64_t)count);
	put_int(offset);
	return same(syscall(SYS_pread64, fd, bytes, count, offset));
}

/* What the size of a pipe or the kind of a file system decides is not modelled. */
static bool is_full(long ret)
{
	return ret < 0 &&
	       (errno == EAGAIN || errno == EFBIG || errno == ENOSPC || errno == EOPNOTSUPP);
}

static bool call_write(void)
{
	int fd = random_fd();
	size_t count = random_count();
	int64_t offset = random_offset();
	long ret;

	if (pick(2)) {
		begin(SC_write);
		put_int(fd);
		put_none();
		put_int((int64_t)count);
		ret = syscall(SYS_write, fd, bytes, count);
		return is_full(ret) || same(ret);
	}
	begin(SC_pwrite64);
	put_int(fd);
	put_none();
	put_int((int64_t)count);
	put_int(offset);
	ret = syscall(SYS_pwrite64, fd, bytes, count, offset);
	return is_full(ret) || same(ret);
}

static bool call_vector(void)
{
	int fd = random_fd(), flags = pick(4) ? 0 : RWF_APPEND;
	int64_t offset = pick(3) ? random_offset() : -1;
	struct iovec iov[3];
	uint32_t nr = pick(4), n;
	bool write = pick(2);
	long ret;

	for (n = 0; n < nr; n++)
		iov[n] = (struct iovec){ bytes + 512 * (size_t)n, random_count() };
	switch (pick(3)) {
	case 0:
		begin(write ? SC_writev : SC_readv);
		put_int(fd);
		put_vector(iov, nr);
		put_int(nr);
		ret = syscall(write ? SYS_writev : SYS_readv, fd, iov, nr);
		break;
	case 1:
		begin(write ? SC_pwritev : SC_preadv);
		put_int(fd);
		put_vector(iov, nr);
		put_int(nr);
		put_int(offset);
		ret = syscall(write ? SYS_pwritev : SYS_preadv, fd, iov, nr, offset, 0);
		break;
	default:
		begin(write ? SC_pwritev2 : SC_preadv2);
		put_int(fd);
		put_vector(iov, nr);
		put_int(nr);
		put_int(offset);
		put_none();
		put_int(write ? flags : 0);
		ret = syscall(write ? SYS_pwritev2 : SYS_preadv2, fd, iov, nr, offset, 0,
			      write ? flags : 0);
		break;
	}
	return is_full(ret) || same(ret);
}

static bool call_seek(void)
{
	static const int list[] = { SEEK_SET, SEEK_CUR, SEEK_END, SEEK_HOLE, 9 };
	int fd = random_fd(), whence = list[pick(5)];
	int64_t offset = pick(2) ? (int64_t)pick(200) : -(int64_t)pick(200);
	long ret = syscall(SYS_lseek, fd, offset, whence);
	int err = errno;
	struct stat st;

	/* Positions of directories are the file system's. */
	if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode) && ret >= 0) {
		(void)syscall(SYS_lseek, fd, 0, SEEK_SET);
		return true;
	}
	begin(SC_lseek);
	put_int(fd);
	put_int(offset);
	put_int(whence);
	if (whence == SEEK_HOLE)
		rig.ev.outcome.ret = ret;
	if (fstat(fd, &st) == 0 && S_ISDIR(st.st_mode))
		return true;
	errno = err;
	return same(ret);
}

static bool call_size(void)
{
	static const int modes[] = { 0, FALLOC_FL_KEEP_SIZE, FALLOC_FL_PUNCH_HOLE,
				     FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
				     FALLOC_FL_ZERO_RANGE };
	int fd = random_fd(), mode = modes[pick(5)];
	int64_t offset = pick(10) ? (int64_t)pick(300) : -1, len = (int64_t)pick(200) - 5;
	long ret;

	if (pick(2)) {
		begin(SC_ftruncate);
		put_int(fd);
		put_int(offset);
		return same(syscall(SYS_ftruncate, fd, offset));
	}
	begin(SC_fallocate);
	put_int(fd);
	put_int(mode);
	put_int(offset);
	put_int(len);
	ret = syscall(SYS_fallocate, fd, mode, offset, len);
	/* A file in memory cannot do that. */
	return (ret < 0 && errno == EOPNOTSUPP && mode == FALLOC_FL_ZERO_RANGE) || same(ret);
}

static bool call_copy(void)
{
	int in = random_fd(), out = random_fd();
	int64_t from = pick(300), to = pick(300);
	bool has_from = pick(2), has_to = pick(2);
	size_t len = random_count();
	int64_t kernel_from = from, kernel_to = to;
	long ret;

	begin(SC_copy_file_range);
	put_int(in);
	put_pointer(has_from ? &from : NULL);
	put_int(out);
	put_pointer(has_to ? &to : NULL);
	put_int((int64_t)len);
	put_int(0);
	ret = syscall(SYS_copy_file_range, in, has_from ? &kernel_from : NULL, out,
		      has_to ? &kernel_to : NULL, len, 0);
	return same(ret);
}

static bool call_sendfile(void)
{
	int in = random_fd(), out = random_fd();
	int64_t from = pick(300), kernel_from = from;
	bool has_from = pick(2);
	size_t len = random_count() + 1;
	struct stat si, so;

	/* Pipes on either side have rules of their own for how much goes at a time. */
	if (fstat(in, &si) < 0 || fstat(out, &so) < 0 || !S_ISREG(si.st_mode) ||
	    !S_ISREG(so.st_mode) || si.st_ino == so.st_ino)
		return true;
	begin(SC_sendfile);
	put_int(out);
	put_int(in);
	put_pointer(has_from ? &from : NULL);
	put_int((int64_t)len);
	return same(syscall(SYS_sendfile, out, in, has_from ? &kernel_from : NULL, len));
}

static bool call_pipe(void)
{
	int fds[2], flags = O_NONBLOCK | (pick(2) ? O_CLOEXEC : 0);
	struct value *list;
	long ret;

	begin(SC_pipe2);
	list = put(value_list(&rig.a, 2));
	list->items[0] = list->items[1] = value_int(-1);
	put_int(flags);
	ret = syscall(SYS_pipe2, fds, flags);
	if (!same(ret))
		return false;
	if (ret == 0 && (list->items[0].i != fds[0] || list->items[1].i != fds[1])) {
		print_message("pipe2 gave %d %d, the model %d %d\n", fds[0], fds[1],
			      (int)list->items[0].i, (int)list->items[1].i);
		return false;
	}
	return true;
}

static bool call_object(void)
{
	if (pick(2)) {
		begin(SC_memfd_create);
		(void)put(value_str(&rig.a, "m"));
		put_int(1);
		return same(syscall(SYS_memfd_create, "m", 1));
	}
	begin(SC_eventfd2);
	put_int(pick(2));
	put_int(O_NONBLOCK);
	return same(syscall(SYS_eventfd2, rig.ev.args[0].i, O_NONBLOCK));
}

static bool call_lock(void)
{
	static const int ops[] = { LOCK_SH, LOCK_EX, LOCK_UN };
	static const int types[] = { F_RDLCK, F_WRLCK, F_UNLCK };
	int fd = random_fd(), op = ops[pick(3)] | LOCK_NB;
	struct flock lock = { .l_type = (short)types[pick(3)],
			      .l_whence = SEEK_SET,
			      .l_start = pick(50),
			      .l_len = pick(20) };
	struct value v = value_struct(&rig.a, 31);
	struct stat st;

	/* Only of files: what else can be locked depends on the object. */
	if (fstat(fd, &st) == 0 && !S_ISREG(st.st_mode))
		return true;
	if (pick(2)) {
		begin(SC_flock);
		put_int(fd);
		put_int(op);
		return same(syscall(SYS_flock, fd, op));
	}
	*value_field(&v, 0) = value_int(lock.l_type);
	*value_field(&v, 1) = value_int(lock.l_whence);
	*value_field(&v, 2) = value_int(lock.l_start);
	*value_field(&v, 3) = value_int(lock.l_len);
	*value_field(&v, 4) = value_int(0);
	begin(SC_fcntl_ofd_setlk);
	put_int(fd);
	put_none();
	(void)put(v);
	return same(syscall(SYS_fcntl, fd, F_OFD_SETLK, &lock));
}

static bool call_sync(void)
{
	int fd = random_fd();
	enum row_id id = pick(2) ? SC_fdatasync : SC_fsync;

	if (pick(20)) /* it is slow */
		return true;
	begin(id);
	put_int(fd);
	return same(syscall(id == SC_fsync ? SYS_fsync : SYS_fdatasync, fd));
}

static bool one_call(void)
{
	static bool (*const calls[])(void) = {
		call_open, call_open,  call_open,     call_close, call_close,  call_dup,
		call_dup,  call_read,  call_read,     call_write, call_write,  call_vector,
		call_seek, call_size,  call_copy,     call_pipe,  call_object, call_lock,
		call_sync, call_flags, call_sendfile,
	};

	return calls[pick(sizeof(calls) / sizeof(calls[0]))]();
}

/* The child. */

static void give_tree(void)
{
	struct item item = { .row = row_by_id(REC_tree_entry) };
	struct value stat_value = value_struct(&rig.a, 0xff);

	stat_value.fields->items[0] = value_int(2);
	stat_value.fields->items[1] = value_uint(S_IFDIR | 0755);
	stat_value.fields->items[2] = value_uint(geteuid());
	stat_value.fields->items[3] = value_uint(getegid());
	stat_value.fields->items[4] = value_uint(4096);
	stat_value.fields->items[5] = value_uint(1);
	stat_value.fields->items[6] = value_uint(2);
	stat_value.fields->items[7] = value_uint(2);
	item.args[0] = value_int(0);
	item.args[1] = value_str(&rig.a, "/");
	item.args[2] = stat_value;
	item.args[7] = value_uint(1); /* listed */
	fsmodel_add_tree(rig.m, &item);
}

static bool prepare(void)
{
	int n;

	for (n = 0; n < FDS_FROM; n++) {
		begin(EV_found_fd);
		put_int(n);
		(void)fsmodel_step(rig.m, &rig.ev);
	}
	begin(SC_umask);
	put_int(022);
	(void)umask(022);
	(void)fsmodel_step(rig.m, &rig.ev);
	begin(SC_mkdir);
	(void)put(value_str(&rig.a, "dir"));
	put_int(0755);
	if (!same(mkdir("dir", 0755)))
		return false;
	begin(SC_mknod);
	(void)put(value_str(&rig.a, "fifo"));
	put_int(S_IFIFO | 0644);
	put_int(0);
	return same(mkfifo("fifo", 0644));
}

/* Or the system's limit would be met. */
static bool clear(void)
{
	begin(SC_close_range);
	put_int(FDS_FROM);
	put_int(UINT32_MAX);
	put_int(0);
	return same(syscall(SYS_close_range, FDS_FROM, UINT32_MAX, 0));
}

static int run(uint64_t seed, unsigned int nr)
{
	struct fsmodel_options options = { .tree_known = true, .execute = true };
	unsigned int n, nr_wrong = 0;

	options.uid = geteuid();
	options.gid = getegid();
	rig.rng.state = seed;
	arena_init(&rig.a);
	rig.m = fsmodel_new(&options);
	(void)signal(SIGPIPE, SIG_IGN);
	(void)syscall(SYS_close_range, FDS_FROM, ~0u, 0);
	give_tree();
	if (!prepare())
		nr_wrong++;
	for (n = 0; n < nr && nr_wrong < WRONG_MAX; n++) {
		arena_reset(&rig.a);
		nr_wrong += n % CLEAR_EVERY ? !one_call() : !clear();
	}
	fsmodel_free(rig.m);
	arena_release(&rig.a);
	return nr_wrong ? 1 : 0;
}

static void run_as(uid_t uid)
{
	const char *calls = getenv("FSMODEL_CALLS"), *seed = getenv("FSMODEL_SEED");
	unsigned int nr = calls ? (unsigned int)strtoul(calls, NULL, 10) : NR_CALLS_DEFAULT;
	const char *dir = scratch_path("work");
	char command[4096];
	pid_t pid;
	int status;

	assert_int_equal(mkdir(dir, 0755), 0);
	assert_int_equal(chown(dir, uid, uid == geteuid() ? getegid() : uid), 0);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		if (chdir(dir))
			_exit(2);
		if (uid != geteuid() && (syscall(SYS_setgroups, 0, NULL) ||
					 setresgid(uid, uid, uid) || setresuid(uid, uid, uid)))
			_exit(2);
		_exit(run(seed ? strtoull(seed, NULL, 10) : 1, nr));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	(void)snprintf(command, sizeof(command), "rm -rf '%s'", dir);
	assert_int_equal(system(command), 0);
	assert_int_equal(status, 0);
}

static void test_as_caller(void **state)
{
	(void)state;
	run_as(geteuid());
}

static void test_as_nobody(void **state)
{
	(void)state;
	if (geteuid()) {
		print_message("# not root: cannot become another\n");
		skip();
	}
	run_as(NOBODY);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_as_caller),
		cmocka_unit_test(test_as_nobody),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
