/* SPDX-License-Identifier: MIT */
/*
 * The model's names against the kernel's: random calls in a small name space,
 * made for real and in the model, must have the same outcome. A child has a
 * scratch directory as its root, so that nothing else can be reached; it makes
 * the calls as root and as nobody. Two more models are only shown what the
 * kernel did, one of them without the initial tree: nothing may contradict them.
 */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/fs.h>
#include <linux/openat2.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/mem.h"
#include "fsmodel/fsmodel.h"
#include "model/print.h"
#include "model/vocab.h"

#define NR_CALLS_DEFAULT 20000
#define NR_FDS 6
#define NOBODY 65534

struct rig {
	struct fsmodel *m; /* makes the calls */
	struct fsmodel *watching, *guessing; /* see their outcomes; the latter without the tree */
	struct arena a;
	uint64_t random;
	int fds[NR_FDS]; /* -1: closed */
	struct event ev;
	unsigned int nr_args;
	unsigned int nr_calls;
	uint64_t seed;
	unsigned int nr_ok[ROW_ID_MAX], nr_failed[ROW_ID_MAX]; /* by row */
};

static struct rig rig;

static uint32_t pick(uint32_t below)
{
	rig.random ^= rig.random << 13;
	rig.random ^= rig.random >> 7;
	rig.random ^= rig.random << 17;
	return (uint32_t)(rig.random >> 24) % below;
}

/* The initial tree: things of root's, which nobody meets with and without rights. */

struct given {
	const char *path;
	mode_t mode;
	uid_t uid;
};

static const struct given given[] = {
	{ "/", S_IFDIR | 0777, NOBODY },	 { "/c", S_IFDIR | S_ISVTX | 0777, 0 },
	{ "/c/a", S_IFREG | 0644, 0 },		 { "/c/b", S_IFREG | S_ISUID | 0666, 0 },
	{ "/c/d", S_IFDIR | 0777, 0 },		 { "/d", S_IFDIR | 0755, 0 },
	{ "/d/a", S_IFREG | 0666, 0 },		 { "/d/b", S_IFREG | 0600, 0 },
	{ "/d/c", S_IFDIR | S_ISGID | 0777, 0 }, { "/d/d", S_IFDIR | 0700, 0 },
	{ "/d/d/a", S_IFREG | 0666, 0 },
};

/* In the root that is to be. */
static void make_given(const char *root)
{
	char path[256];
	size_t n;

	for (n = 0; n < sizeof(given) / sizeof(given[0]); n++) {
		(void)snprintf(path, sizeof(path), "%s%s", root, given[n].path);
		if (n)
			assert_int_equal(S_ISDIR(given[n].mode) ? mkdir(path, 0700)
								: mknod(path, S_IFREG | 0600, 0),
					 0);
		assert_int_equal(chown(path, given[n].uid, given[n].uid), 0);
		assert_int_equal(chmod(path, given[n].mode & 07777), 0);
	}
}

static void give(const struct given *g)
{
	struct item item = { .row = row_by_id(REC_tree_entry) };
	struct value stat_value = value_struct(&rig.a, 0x1f);

	stat_value.fields->items[0] = value_int(S_ISDIR(g->mode) ? 2 : 1);
	stat_value.fields->items[1] = value_uint(g->mode);
	stat_value.fields->items[2] = value_uint(g->uid);
	stat_value.fields->items[3] = value_uint(g->uid);
	stat_value.fields->items[4] = value_uint(0);
	item.args[0] = value_int(0);
	item.args[1] = value_str(&rig.a, g->path);
	item.args[2] = stat_value;
	item.args[7] = value_uint(S_ISDIR(g->mode) ? 1 : 0); /* listed */
	fsmodel_add_tree(rig.m, &item);
	fsmodel_add_tree(rig.watching, &item);
}

/* Calls. */

static void begin(enum row_id id)
{
	memset(&rig.ev, 0, sizeof(rig.ev));
	rig.ev.row = row_by_id(id);
	rig.ev.pid = rig.ev.tid = 1;
	rig.nr_args = 0;
}

static void put_int(int64_t i)
{
	rig.ev.args[rig.nr_args++] = value_int(i);
}

static void put_text(const char *s)
{
	rig.ev.args[rig.nr_args++] = value_str(&rig.a, s);
}

static void put_none(void)
{
	rig.nr_args++;
}

static const char *name_of(int err)
{
	return err ? errno_name(err) : "success";
}

static bool watch(struct fsmodel *m, const char *who, struct outcome real)
{
	const struct facts *facts;
	struct buf text = { 0 };

	rig.ev.outcome = real;
	facts = fsmodel_step(m, &rig.ev);
	if (facts->contradiction == CONTRADICTION_NONE)
		return true;
	print_event_line(&text, &rig.ev, 0);
	print_message("%s: %s: %s\n", buf_str(&text), who, fsmodel_why(m));
	buf_release(&text);
	return false;
}

/* Makes the call in the model, then holds the two outcomes against each other. ret: the kernel's. */
static bool same(long ret, int err)
{
	struct outcome real = { ret, err }, model;
	struct buf text = { 0 };
	bool ok;

	rig.ev.outcome = (struct outcome){ .ret = ret };
	(void)fsmodel_step(rig.m, &rig.ev);
	model = rig.ev.outcome;
	ok = real.err == model.err && (real.err || real.ret == model.ret);
	*(err ? &rig.nr_failed[rig.ev.row->id] : &rig.nr_ok[rig.ev.row->id]) += 1;
	if (!ok) {
		rig.ev.outcome = real;
		print_event_line(&text, &rig.ev, 0);
		print_message("%s, but the model says %lld %s\n", buf_str(&text),
			      (long long)model.ret, name_of(model.err));
		buf_release(&text);
	}
	ok = watch(rig.watching, "watching", real) && ok;
	return watch(rig.guessing, "guessing", real) && ok;
}

/* Random arguments. */

static const char *random_path(void)
{
	static const char *const names[] = { "a", "b", "c", "d",  "a", "b", "c",
					     "a", "b", ".", "..", "l", "m" };
	static char room[8][8192];
	static unsigned int at;
	char *path = room[at++ & 7];
	unsigned int nr = 1 + pick(2) + (pick(3) ? 0 : pick(3)), n;
	size_t len = 0;

	if (pick(200) == 0)
		return "";
	if (pick(6) == 0)
		path[len++] = '/';
	for (n = 0; n < nr; n++) {
		const char *name = names[pick(sizeof(names) / sizeof(names[0]))];

		if (pick(400) == 0) {
			unsigned int long_len = 250 + pick(10);

			memset(path + len, 'x', long_len);
			len += long_len;
		} else {
			len += (size_t)sprintf(path + len, "%s", name);
		}
		if (n + 1 < nr || pick(12) == 0)
			len += (size_t)sprintf(path + len, "%s", pick(10) ? "/" : "//");
	}
	path[len] = 0;
	if (pick(2000) == 0) {
		memset(path + len, '/', 4094 - len + pick(4));
		path[4094 + pick(4)] = 0;
	}
	return path;
}

static int random_dirfd(void)
{
	return pick(3) ? AT_FDCWD : rig.fds[pick(NR_FDS)];
}

static long done(long ret)
{
	return ret;
}

#define MAKE(...) (errno = 0, done(syscall(__VA_ARGS__)))
#define SAME(ret) same(ret, (ret) < 0 ? errno : 0)

static bool call_make(void)
{
	const char *path = random_path();
	int dirfd = random_dirfd();
	mode_t mode = pick(3) ? 0755 : (mode_t)pick(010000);
	long ret;

	switch (pick(3)) {
	case 0:
		begin(SC_mkdirat);
		put_int(dirfd);
		put_text(path);
		put_int(mode);
		ret = MAKE(SYS_mkdirat, dirfd, path, mode);
		return SAME(ret);
	case 1:
		mode |= pick(3) ? S_IFREG : pick(2) ? S_IFIFO : pick(16) << 12;
		begin(SC_mknodat);
		put_int(dirfd);
		put_text(path);
		put_int(mode);
		put_int(0);
		ret = MAKE(SYS_mknodat, dirfd, path, mode, 0);
		return SAME(ret);
	default:
		begin(SC_mkdir);
		put_text(path);
		put_int(mode);
		ret = MAKE(SYS_mkdir, path, mode);
		return SAME(ret);
	}
}

static bool call_symlink(void)
{
	const char *target = random_path(), *path = random_path();
	int dirfd = random_dirfd();
	long ret;

	begin(SC_symlinkat);
	put_text(target);
	put_int(dirfd);
	put_text(path);
	ret = MAKE(SYS_symlinkat, target, dirfd, path);
	return SAME(ret);
}

static bool call_link(void)
{
	static const int flags_list[] = { 0, 0, AT_SYMLINK_FOLLOW, AT_EMPTY_PATH, 1 };
	const char *from = random_path(), *to = random_path();
	int dirfd = random_dirfd(), dirfd2 = random_dirfd(), flags = flags_list[pick(5)];
	long ret;

	begin(SC_linkat);
	put_int(dirfd);
	put_text(from);
	put_int(dirfd2);
	put_text(to);
	put_int(flags);
	ret = MAKE(SYS_linkat, dirfd, from, dirfd2, to, flags);
	return SAME(ret);
}

static bool call_remove(void)
{
	const char *path = random_path();
	int dirfd = random_dirfd(), flags = pick(2) ? AT_REMOVEDIR : pick(30) ? 0 : 0x100;
	long ret;

	begin(SC_unlinkat);
	put_int(dirfd);
	put_text(path);
	put_int(flags);
	ret = MAKE(SYS_unlinkat, dirfd, path, flags);
	return SAME(ret);
}

static bool call_rename(void)
{
	static const unsigned int flags_list[] = { 0,
						   0,
						   0,
						   RENAME_NOREPLACE,
						   RENAME_EXCHANGE,
						   RENAME_EXCHANGE,
						   RENAME_EXCHANGE | RENAME_NOREPLACE,
						   RENAME_WHITEOUT,
						   8 };
	const char *from = random_path(), *to = random_path();
	int dirfd = random_dirfd(), dirfd2 = random_dirfd();
	unsigned int flags = flags_list[pick(9)];
	long ret;

	begin(SC_renameat2);
	put_int(dirfd);
	put_text(from);
	put_int(dirfd2);
	put_text(to);
	put_int(flags);
	ret = MAKE(SYS_renameat2, dirfd, from, dirfd2, to, flags);
	return SAME(ret);
}

static bool call_stat(void)
{
	const char *path = random_path();
	int dirfd = random_dirfd();
	int flags = (pick(2) ? AT_SYMLINK_NOFOLLOW : 0) | (pick(3) ? 0 : AT_EMPTY_PATH);
	struct stat st;
	long ret;

	begin(SC_newfstatat);
	put_int(dirfd);
	put_text(path);
	put_none();
	put_int(flags);
	ret = MAKE(SYS_newfstatat, dirfd, path, &st, flags);
	return SAME(ret);
}

static bool call_access(void)
{
	const char *path = random_path();
	int dirfd = random_dirfd(), mode = (int)pick(9);
	int flags = (pick(2) ? AT_SYMLINK_NOFOLLOW : 0) | (pick(2) ? 0 : AT_EACCESS);
	long ret;

	begin(SC_faccessat2);
	put_int(dirfd);
	put_text(path);
	put_int(mode);
	put_int(flags);
	ret = MAKE(SYS_faccessat2, dirfd, path, mode, flags);
	return SAME(ret);
}

static bool call_chmod(void)
{
	const char *path = random_path();
	int dirfd = random_dirfd(), fd = rig.fds[pick(NR_FDS)];
	/* Mostly such that things go on. */
	mode_t mode = pick(3) ? 0755 : (mode_t)pick(010000);
	long ret;

	if (pick(3) == 0) {
		begin(SC_fchmod);
		put_int(fd);
		put_int(mode);
		ret = MAKE(SYS_fchmod, fd, mode);
	} else {
		begin(SC_fchmodat);
		put_int(dirfd);
		put_text(path);
		put_int(mode);
		ret = MAKE(SYS_fchmodat, dirfd, path, mode);
	}
	return SAME(ret);
}

static bool call_chown(void)
{
	const char *path = random_path();
	uid_t uid = pick(3) ? (uid_t)-1 : pick(2) ? NOBODY : geteuid();
	gid_t gid = pick(3) ? (gid_t)-1 : pick(2) ? NOBODY : getegid();
	int dirfd = random_dirfd(), flags = pick(2) ? AT_SYMLINK_NOFOLLOW : 0;
	long ret;

	begin(SC_fchownat);
	put_int(dirfd);
	put_text(path);
	put_int(uid);
	put_int(gid);
	put_int(flags);
	ret = MAKE(SYS_fchownat, dirfd, path, uid, gid, flags);
	return SAME(ret);
}

static bool call_times(void)
{
	const char *path = random_path();
	int dirfd = random_dirfd(), flags = pick(2) ? AT_SYMLINK_NOFOLLOW : 0;
	long ret;

	begin(SC_utimensat);
	put_int(dirfd);
	put_text(path);
	rig.ev.args[rig.nr_args++] = value_addr(0);
	put_int(flags);
	ret = MAKE(SYS_utimensat, dirfd, path, NULL, flags);
	return SAME(ret);
}

static bool call_truncate(void)
{
	const char *path = random_path();
	long length = (long)pick(1000) - 10, ret;

	begin(SC_truncate);
	put_text(path);
	put_int(length);
	ret = MAKE(SYS_truncate, path, length);
	return SAME(ret);
}

static bool call_readlink(void)
{
	const char *path = random_path();
	int dirfd = random_dirfd(), room = pick(5) ? 200 : (int)pick(5) - 1;
	char buf[200];
	long ret;

	begin(SC_readlinkat);
	put_int(dirfd);
	put_text(path);
	put_none();
	put_int(room);
	ret = MAKE(SYS_readlinkat, dirfd, path, buf, room);
	return SAME(ret);
}

static bool call_xattr(void)
{
	static const char *const names[] = { "user.a", "user.b", "" };
	const char *path = random_path(), *name = names[pick(40) ? pick(2) : 2];
	int flags = (int)pick(4);
	size_t size = pick(20);
	char buf[20] = "";
	long ret;

	switch (pick(3)) {
	case 0:
		begin(SC_lsetxattr);
		put_text(path);
		put_text(name);
		put_none();
		put_int((int64_t)size);
		put_int(flags);
		ret = MAKE(SYS_lsetxattr, path, name, buf, size, flags);
		break;
	case 1:
		begin(SC_getxattr);
		put_text(path);
		put_text(name);
		put_none();
		put_int((int64_t)size);
		ret = MAKE(SYS_getxattr, path, name, buf, size);
		break;
	default:
		begin(SC_lremovexattr);
		put_text(path);
		put_text(name);
		ret = MAKE(SYS_lremovexattr, path, name);
	}
	return SAME(ret);
}

static int free_slot(void)
{
	int slot = 0;

	while (slot < NR_FDS && rig.fds[slot] >= 0)
		slot++;
	return slot < NR_FDS ? slot : -1;
}

static bool call_open(void)
{
	static const int flags_list[] = { O_RDONLY,
					  O_RDONLY | O_DIRECTORY,
					  O_RDWR | O_CREAT,
					  O_WRONLY | O_CREAT | O_EXCL,
					  O_RDWR | O_TRUNC,
					  O_PATH,
					  O_PATH | O_NOFOLLOW,
					  O_RDONLY | O_NOFOLLOW,
					  O_RDONLY | O_CREAT | O_NOFOLLOW,
					  O_PATH | O_DIRECTORY };
	const char *path = random_path();
	int dirfd = random_dirfd(), flags = flags_list[pick(10)] | O_NONBLOCK | O_CLOEXEC;
	unsigned int slot = pick(NR_FDS);
	mode_t mode = pick(3) ? 0755 : (mode_t)pick(010000);
	long ret;

	if (rig.fds[slot] >= 0 && pick(2) == 0) {
		begin(SC_close);
		put_int(rig.fds[slot]);
		ret = MAKE(SYS_close, rig.fds[slot]);
		rig.fds[slot] = -1;
		return SAME(ret);
	}
	if (free_slot() < 0)
		return true;
	slot = (unsigned int)free_slot();
	begin(SC_openat);
	put_int(dirfd);
	put_text(path);
	put_int(flags);
	put_int(mode);
	ret = MAKE(SYS_openat, dirfd, path, flags, mode);
	if (ret >= 0)
		rig.fds[slot] = (int)ret;
	return SAME(ret);
}

static bool call_open_how(void)
{
	const char *path = random_path();
	int dirfd = random_dirfd(), slot = free_slot();
	struct open_how how = {
		.flags = O_NONBLOCK | (pick(2) ? (uint64_t)O_RDONLY : (uint64_t)(O_RDWR | O_CREAT)),
		.resolve = pick(3) ? 1u << pick(5) : pick(64),
	};
	struct value v = value_struct(&rig.a, 7);
	long ret;

	if (slot < 0)
		return true;
	how.resolve &=
		~(uint64_t)RESOLVE_CACHED; /* what the kernel has at hand is its own affair */
	how.mode = how.flags & O_CREAT ? 0755 : 0;
	v.fields->items[0] = value_uint(how.flags);
	v.fields->items[1] = value_uint(how.mode);
	v.fields->items[2] = value_uint(how.resolve);
	begin(SC_openat2);
	put_int(dirfd);
	put_text(path);
	rig.ev.args[rig.nr_args++] = v;
	put_int(sizeof(how));
	ret = MAKE(SYS_openat2, dirfd, path, &how, sizeof(how));
	if (ret >= 0)
		rig.fds[slot] = (int)ret;
	return SAME(ret);
}

static bool call_tmpfile(void)
{
	const char *path = random_path();
	int dirfd = random_dirfd(), slot = free_slot();
	int flags = O_TMPFILE | O_RDWR | (pick(4) ? 0 : O_EXCL);
	long ret;

	if (slot < 0)
		return true;
	begin(SC_openat);
	put_int(dirfd);
	put_text(path);
	put_int(flags);
	put_int(0644);
	ret = MAKE(SYS_openat, dirfd, path, flags, 0644);
	if (ret >= 0)
		rig.fds[slot] = (int)ret;
	if (!SAME(ret))
		return false;
	if (ret < 0)
		return true;
	/* Its first name. */
	path = random_path();
	begin(SC_linkat);
	put_int(rig.fds[slot]);
	put_text("");
	put_int(AT_FDCWD);
	put_text(path);
	put_int(AT_EMPTY_PATH);
	ret = MAKE(SYS_linkat, rig.fds[slot], "", AT_FDCWD, path, AT_EMPTY_PATH);
	return SAME(ret);
}

static bool call_chdir(void)
{
	const char *path = random_path();
	int fd = rig.fds[pick(NR_FDS)];
	long ret;

	if (pick(3) == 0) {
		path = "/"; /* home again: else removed directories would be the end */
	} else if (pick(2) == 0) {
		begin(SC_fchdir);
		put_int(fd);
		ret = MAKE(SYS_fchdir, fd);
		return SAME(ret);
	}
	begin(SC_chdir);
	put_text(path);
	ret = MAKE(SYS_chdir, path);
	return SAME(ret);
}

static bool one_call(void)
{
	static bool (*const calls[])(void) = {
		call_make,   call_make,	  call_make,   call_symlink,  call_link,     call_remove,
		call_remove, call_rename, call_rename, call_stat,     call_stat,     call_access,
		call_chmod,  call_chown,  call_times,  call_truncate, call_readlink, call_xattr,
		call_open,   call_open,	  call_open,   call_chdir,    call_open_how, call_tmpfile,
	};

	return calls[pick(sizeof(calls) / sizeof(calls[0]))]();
}

/* Else the tree would end up with nobody having any rights in it. */
static bool restore(void)
{
	static const char *const paths[] = { "/", "/a", "/b", "/c", "/d", "/a/b", "/b/a" };
	unsigned int n;
	bool ok = true;
	long ret;

	for (n = 0; n < sizeof(paths) / sizeof(paths[0]) && ok; n++) {
		begin(SC_chmod);
		put_text(paths[n]);
		put_int(n ? 0755 : 0777);
		ret = MAKE(SYS_chmod, paths[n], n ? 0755 : 0777);
		ok = SAME(ret);
	}
	begin(SC_chdir);
	put_text("/");
	ret = MAKE(SYS_chdir, "/");
	return ok && SAME(ret);
}

/* A run in which a call never works, or never fails, says little. */
static unsigned int check_mix(unsigned int nr)
{
	unsigned int id, nr_poor = 0;

	for (id = 0; id < ROW_ID_MAX; id++) {
		unsigned int ok = rig.nr_ok[id], failed = rig.nr_failed[id];

		if (nr >= NR_CALLS_DEFAULT && ok + failed > 200 && id != SC_close &&
		    (ok < 5 || failed < 5)) {
			print_message("%s: %u of %u succeeded\n", row_by_id(id)->name, ok,
				      ok + failed);
			nr_poor++;
		}
	}
	return nr_poor;
}

static int run(uid_t uid)
{
	struct fsmodel_options options = {
		.tree_known = true, .execute = true, .uid = uid, .gid = uid
	};
	unsigned int n, nr_wrong = 0, nr = rig.nr_calls;

	rig.random = rig.seed * 0x9e3779b97f4a7c15u + uid + 1;
	arena_init(&rig.a);
	rig.m = fsmodel_new(&options);
	options.execute = false;
	rig.watching = fsmodel_new(&options);
	options.tree_known = false;
	rig.guessing = fsmodel_new(&options);
	for (n = 0; n < NR_FDS; n++)
		rig.fds[n] = -1;
	for (n = 0; n < sizeof(given) / sizeof(given[0]); n++)
		give(&given[n]);
	begin(SC_umask);
	put_int(022);
	(void)same(umask(022), 0);
	for (n = 0; n < nr && nr_wrong < 10; n++) {
		arena_reset(&rig.a);
		nr_wrong += n % 128 == 127 ? !restore() : !one_call();
	}
	for (n = 0; n < NR_FDS; n++) {
		if (rig.fds[n] >= 0)
			(void)close(rig.fds[n]);
	}
	fsmodel_free(rig.m);
	fsmodel_free(rig.watching);
	fsmodel_free(rig.guessing);
	arena_release(&rig.a);
	nr_wrong += check_mix(nr);
	return nr_wrong ? 1 : 0;
}

static void remove_scratch(const char *path)
{
	char command[256];

	(void)snprintf(command, sizeof(command), "rm -rf '%s'", path);
	assert_int_equal(system(command), 0);
}

static void run_as(uid_t uid)
{
	char path[] = "/tmp/reprise-names-XXXXXX";
	pid_t pid;
	int status;

	if (geteuid()) {
		print_message("# not root: the calls need a root directory of their own\n");
		skip();
	}
	assert_non_null(mkdtemp(path));
	make_given(path);
	pid = fork();
	assert_true(pid >= 0);
	if (!pid) {
		if (chroot(path) || chdir("/"))
			_exit(2);
		if (uid && (syscall(SYS_setgroups, 0, NULL) || setresgid(uid, uid, uid) ||
			    setresuid(uid, uid, uid)))
			_exit(2);
		_exit(run(uid));
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	remove_scratch(path);
	assert_int_equal(status, 0);
}

static void test_as_root(void **state)
{
	(void)state;
	run_as(0);
}

static void test_as_nobody(void **state)
{
	(void)state;
	run_as(NOBODY);
}

/* usage: test_fsmodel_kernel [CALLS [SEED]] */
int main(int argc, char **argv)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_as_root),
		cmocka_unit_test(test_as_nobody),
	};

	rig.nr_calls = argc > 1 ? (unsigned int)strtoul(argv[1], NULL, 10) : NR_CALLS_DEFAULT;
	rig.seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
