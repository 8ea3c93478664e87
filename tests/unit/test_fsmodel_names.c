/* SPDX-License-Identifier: MIT */
/* What the model says of names: which are touched and how, what was there before, what is mended. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "base/buf.h"
#include "event_text.h"
#include "fsmodel/fsmodel.h"

static struct fsmodel *m;
static const struct facts *facts;
static unsigned int nr_forgotten, nr_inherited;

static void count_forgotten(void *arg, struct res *res, struct res *heir)
{
	(void)arg;
	if (res->kind != RES_NAME)
		return;
	nr_forgotten++;
	nr_inherited += heir && heir->kind == RES_FILE;
}

static void start_with(struct fsmodel_options options)
{
	options.forget = count_forgotten;
	nr_forgotten = nr_inherited = 0;
	m = fsmodel_new(&options);
}

/* A tree that is known and holds nothing but /a. */
static int start_known(void **state)
{
	struct line line;

	(void)event_text_setup(state);
	start_with((struct fsmodel_options){ .tree_known = true });
	line = event_text_line("tree_entry(tree=initial, path=\"/a\", stat={type=dir, mode=0755, "
			       "uid=0, gid=0, size=0}, flags=LISTED)");
	assert_int_equal(line.type, LINE_ITEM);
	fsmodel_add_tree(m, &line.item);
	return 0;
}

static int start_unknown(void **state)
{
	(void)event_text_setup(state);
	start_with((struct fsmodel_options){ 0 });
	return 0;
}

static int stop(void **state)
{
	fsmodel_free(m);
	return event_text_teardown(state);
}

static void item(const char *text)
{
	struct line line = event_text_line(text);

	assert_int_equal(line.type, LINE_ITEM);
	fsmodel_add_tree(m, &line.item);
}

/* An event that the model must find right, unless a kind of contradiction is given. */
static void step(const char *text, enum contradiction kind)
{
	static struct event ev;

	ev = event_from_text(text);
	if (!ev.tid)
		ev.tid = ev.pid = 1;
	facts = fsmodel_step(m, &ev);
	if (facts->contradiction != kind)
		fail_msg("%s: %s: %s", text, contradiction_names[facts->contradiction],
			 fsmodel_why(m));
}

static void ok(const char *text)
{
	step(text, CONTRADICTION_NONE);
}

static const char *name_of(const struct res *res)
{
	static struct buf name;

	buf_clear(&name);
	fsmodel_res_name(m, res, &name);
	return buf_str(&name);
}

/* How the last event touched a resource: all touches of it together. */
static uint32_t touched(const char *name)
{
	uint32_t how = 0;
	size_t n;

	for (n = 0; n < facts->touches.len; n++) {
		if (!strcmp(name_of(facts->touches.items[n].res), name))
			how |= facts->touches.items[n].how;
	}
	return how;
}

/* Series of actions, as Figure 2(b) of the ROOT paper has them. */

struct series {
	char name[64];
	char numbers[64];
	uint64_t last;
};

static struct series series[32];
static unsigned int nr_series;

static void add_to_series(const char *name, uint64_t nr)
{
	struct series *s = NULL;
	unsigned int n;
	size_t len;

	for (n = 0; n < nr_series; n++) {
		if (!strcmp(series[n].name, name))
			s = &series[n];
	}
	if (!s) {
		assert_true(nr_series < 32);
		s = &series[nr_series++];
		*s = (struct series){ 0 };
		(void)snprintf(s->name, sizeof(s->name), "%s", name);
	}
	if (s->last == nr)
		return;
	s->last = nr;
	len = strlen(s->numbers);
	(void)snprintf(s->numbers + len, sizeof(s->numbers) - len, "%s%d", len ? "," : "", (int)nr);
}

/* Files keep the name that they had first: so does the figure. */
static struct {
	const struct res *res;
	char name[64];
} files[16];

static void name_file(unsigned int n, const char *path, const char *name)
{
	size_t at;

	for (at = 0; at < facts->touches.len; at++) {
		const struct res *res = facts->touches.items[at].res;

		if (res->kind == RES_FILE && !strcmp(name_of(res), path)) {
			files[n].res = res;
			(void)snprintf(files[n].name, sizeof(files[n].name), "%s", name);
		}
	}
	assert_non_null(files[n].res);
}

static uint64_t current;

/* What is below a directory that was renamed: by its new name, and by that of before. */
static void add_below(void *arg, const struct res *name)
{
	const char *const *names = arg; /* path(/old)@1, path(/new)@1 */
	char text[64];

	add_to_series(name_of(name), current);
	if (names[0]) {
		size_t old = strcspn(names[0], ")"), new = strcspn(names[1], ")");

		(void)snprintf(text, sizeof(text), "%.*s%s", (int)old, names[0],
			       name_of(name) + new);
		add_to_series(text, current);
	}
}

static void note_touches(uint64_t nr)
{
	char old[64] = "", new[64];
	const char *names[2] = { NULL, new };
	size_t n, at;

	current = nr;
	for (n = 0; n < facts->touches.len; n++) {
		const struct touch *t = &facts->touches.items[n];

		if (t->res->kind == RES_NAME && !(t->how & TOUCH_WALK)) {
			add_to_series(name_of(t->res), nr);
			if (t->how & TOUCH_DELETE) {
				(void)snprintf(old, sizeof(old), "%s", name_of(t->res));
				names[0] = old;
			}
			(void)snprintf(new, sizeof(new), "%s", name_of(t->res));
			if (t->how & TOUCH_CREATE)
				fsmodel_names_below(m, t->res, add_below, names);
		}
		for (at = 0; at < 16 && t->res->kind == RES_FILE; at++) {
			if (files[at].res == t->res)
				add_to_series(files[at].name, nr);
		}
	}
}

static void expect_series(const char *name, const char *numbers)
{
	unsigned int n;

	for (n = 0; n < nr_series; n++) {
		if (!strcmp(series[n].name, name)) {
			if (strcmp(series[n].numbers, numbers) != 0)
				fail_msg("%s: %s, not %s", name, series[n].numbers, numbers);
			return;
		}
	}
	fail_msg("no series of %s", name);
}

static void test_figure_2(void **state)
{
	(void)state;
	nr_series = 0;
	memset(files, 0, sizeof(files));
	item("tree_entry(tree=initial, path=\"/x/y/z\", stat={type=file, mode=0644, uid=0, gid=0, "
	     "size=10})");
	ok("mkdir(path=\"/a/b\", mode=0755) = 0");
	name_file(0, "file(/a)", "dirA");
	name_file(1, "file(/a/b)", "dirB");
	note_touches(1);
	ok("open(path=\"/a/b/c\", flags=O_WRONLY|O_CREAT, mode=0644) = 3");
	name_file(2, "file(/a/b/c)", "file1");
	note_touches(2);
	ok("write(fd=3, buf=\"12345678\", count=8) = 8");
	note_touches(3);
	ok("close(fd=3) = 0");
	note_touches(4);
	ok("rename(oldpath=\"/a/b\", newpath=\"/a/old\") = 0");
	note_touches(5);
	ok("open(path=\"/x/y/z\", flags=O_RDONLY) = 3");
	name_file(3, "file(/x/y)", "dirY");
	name_file(4, "file(/x/y/z)", "file2");
	note_touches(6);
	/* Nobody in the figure makes it: the model takes it to have come from elsewhere. */
	step("open(path=\"/a/b\", flags=O_RDONLY) = 4", CONTRADICTION_MISSING);
	assert_true(facts->repaired);
	name_file(5, "file(/a/b)", "file3");
	note_touches(7);

	expect_series("dirA", "1,5,7");
	expect_series("dirB", "1,2,5");
	expect_series("dirY", "6");
	expect_series("file1", "2,3,4");
	expect_series("file2", "6");
	expect_series("file3", "7");
	expect_series("path(/a/b)@1", "1,5");
	expect_series("path(/a/b)@2", "7");
	expect_series("path(/a/b/c)@1", "2,5");
	expect_series("path(/a/old)@1", "5");
	expect_series("path(/a/old/c)@1", "5");
	expect_series("path(/x/y/z)@1", "6");
}

/* Touches. */

static void test_touches_of_makers(void **state)
{
	(void)state;
	ok("stat(path=\"/a/x\") = -1 ENOENT");
	assert_int_equal(touched("path(/a/x)@0"), TOUCH_USE | TOUCH_FAILED);
	assert_int_equal(touched("path(/a)@1"), TOUCH_USE | TOUCH_WALK);
	assert_int_equal(touched("file(/a)"), TOUCH_USE);
	ok("mkdir(path=\"/a/x\", mode=0700) = 0");
	assert_int_equal(touched("path(/a/x)@1"), TOUCH_USE | TOUCH_FAILED | TOUCH_CREATE);
	assert_int_equal(touched("file(/a)"), TOUCH_USE | TOUCH_ENTRY);
	assert_int_equal(touched("file(/a/x)"), TOUCH_USE | TOUCH_CREATE);
	ok("mkdir(path=\"/a/x/\", mode=0700) = -1 EEXIST");
	assert_int_equal(touched("path(/a/x)@1"), TOUCH_USE);
	ok("chmod(path=\"/a/x\", mode=0755) = 0");
	assert_int_equal(touched("path(/a/x)@1"), TOUCH_USE | TOUCH_CHANGE);
	assert_int_equal(touched("file(/a/x)"), TOUCH_USE | TOUCH_META_WRITE);
	/* The same again changes nothing for those who look. */
	ok("chmod(path=\"/a/x\", mode=0755) = 0");
	assert_int_equal(touched("path(/a/x)@1"), TOUCH_USE);
	ok("lstat(path=\"/a/x\") = 0");
	assert_int_equal(touched("file(/a/x)"), TOUCH_USE | TOUCH_META_READ | TOUCH_SIZE_READ);
	ok("rmdir(path=\"/a/x\") = 0");
	assert_int_equal(touched("path(/a/x)@1"), TOUCH_USE | TOUCH_DELETE);
	assert_int_equal(touched("file(/a)"), TOUCH_USE | TOUCH_ENTRY);
	ok("mkdir(path=\"/a/x\", mode=0700) = 0");
	assert_int_equal(touched("path(/a/x)@2"), TOUCH_USE | TOUCH_FAILED | TOUCH_CREATE);
}

static uint32_t touched_files(void)
{
	uint32_t how = 0;
	size_t n;

	for (n = 0; n < facts->touches.len; n++) {
		if (facts->touches.items[n].res->kind == RES_FILE)
			how |= facts->touches.items[n].how;
	}
	return how;
}

static void test_deletion_waits_for_close(void **state)
{
	(void)state;
	ok("open(path=\"/a/f\", flags=O_RDWR|O_CREAT, mode=0644) = 3");
	ok("link(oldpath=\"/a/f\", newpath=\"/a/g\") = 0");
	ok("unlink(path=\"/a/f\") = 0");
	assert_false(touched_files() & TOUCH_DELETE);
	ok("unlink(path=\"/a/g\") = 0");
	assert_false(touched_files() & TOUCH_DELETE);
	ok("linkat(olddirfd=3, oldpath=\"\", newdirfd=AT_FDCWD, newpath=\"/a/h\", "
	   "flags=AT_EMPTY_PATH) = -1 ENOENT");
	ok("close(fd=3) = 0");
	assert_true(touched_files() & TOUCH_DELETE);
	ok("open(path=\"/a/f\", flags=O_RDWR|O_CREAT, mode=0644) = 3");
	ok("close(fd=3) = 0");
	assert_false(touched_files() & TOUCH_DELETE);
	ok("unlink(path=\"/a/f\") = 0");
	assert_true(touched_files() & TOUCH_DELETE);
}

/* Who looks through a symlink touches its name and that of what it leads to, there or not. */
static void test_dangling_symlink(void **state)
{
	(void)state;
	ok("symlink(target=\"b/c\", linkpath=\"/a/l\") = 0");
	ok("stat(path=\"/a/l\") = -1 ENOENT");
	assert_int_equal(touched("path(/a/l)@1"), TOUCH_USE);
	assert_int_equal(touched("path(/a/b)@0"), TOUCH_USE | TOUCH_FAILED | TOUCH_WALK);
	ok("mkdir(path=\"/a/b\", mode=0755) = 0");
	assert_true(touched("path(/a/b)@1") & TOUCH_CREATE);
	ok("open(path=\"/a/l\", flags=O_WRONLY|O_CREAT, mode=0644) = 3");
	assert_true(touched("path(/a/b/c)@1") & TOUCH_CREATE);
	assert_int_equal(touched("path(/a/l)@1"), TOUCH_USE);
	ok("open(path=\"/a/l\", flags=O_WRONLY|O_CREAT|O_EXCL, mode=0644) = -1 EEXIST");
	ok("rename(oldpath=\"/a/b\", newpath=\"/a/d\") = 0");
	ok("open(path=\"/a/l\", flags=O_RDONLY) = -1 ENOENT");
	assert_true(touched("path(/a/b)@1") & TOUCH_FAILED);
	ok("unlink(path=\"/a/l/\") = -1 ENOTDIR");
	ok("readlink(path=\"/a/l\", buf=\"b/c\", bufsiz=100) = 3");
	ok("readlink(path=\"/a/l\", buf=\"b\", bufsiz=1) = 1");
	ok("readlink(path=\"/a\", bufsiz=100) = -1 EINVAL");
}

static void test_rename(void **state)
{
	(void)state;
	ok("mkdir(path=\"/a/d\", mode=0755) = 0");
	ok("mkdir(path=\"/a/e\", mode=0755) = 0");
	ok("open(path=\"/a/e/f\", flags=O_RDWR|O_CREAT, mode=0644) = 3");
	ok("rename(oldpath=\"/a/d\", newpath=\"/a/e\") = -1 ENOTEMPTY");
	assert_true(touched("file(/a/e)") & TOUCH_LIST);
	ok("rename(oldpath=\"/a/e\", newpath=\"/a/d\") = 0");
	assert_true(touched("path(/a/e)@1") & TOUCH_DELETE);
	assert_int_equal(touched("path(/a/d)@2"), TOUCH_USE | TOUCH_DELETE | TOUCH_CREATE);
	ok("fstat(fd=3) = 0");
	assert_true(touched("file(/a/d/f)") & TOUCH_META_READ);
	ok("mkdir(path=\"/a/e\", mode=0755) = 0");
	ok("renameat2(olddirfd=AT_FDCWD, oldpath=\"/a/e\", newdirfd=AT_FDCWD, newpath=\"/a/d\", "
	   "flags=RENAME_EXCHANGE) = 0");
	ok("stat(path=\"/a/e/f\") = 0");
	ok("stat(path=\"/a/d/f\") = -1 ENOENT");
	ok("rename(oldpath=\"/a/e\", newpath=\"/a/e/f/g\") = -1 ENOTDIR");
	ok("rename(oldpath=\"/a/e\", newpath=\"/a/e/g\") = -1 EINVAL");
	ok("rename(oldpath=\"/a/e/f\", newpath=\"/a/e\") = -1 ENOTEMPTY");
	ok("rename(oldpath=\"/a/e/f\", newpath=\"/a/d\") = -1 EISDIR");
	ok("rename(oldpath=\"/a/d\", newpath=\"/a/e/f\") = -1 ENOTDIR");
	ok("link(oldpath=\"/a/e/f\", newpath=\"/a/f\") = 0");
	ok("rename(oldpath=\"/a/f\", newpath=\"/a/e/f\") = 0");
	assert_int_equal(touched("path(/a/f)@1"), TOUCH_USE);
	ok("stat(path=\"/a/f\") = 0");
}

static void test_removed_directory(void **state)
{
	(void)state;
	ok("mkdir(path=\"/a/d\", mode=0755) = 0");
	ok("open(path=\"/a/d\", flags=O_RDONLY|O_DIRECTORY) = 3");
	ok("chdir(path=\"/a/d\") = 0");
	ok("rmdir(path=\"/a/d\") = 0");
	ok("mkdirat(dirfd=3, path=\"x\", mode=0755) = -1 ENOENT");
	ok("open(path=\"x\", flags=O_WRONLY|O_CREAT, mode=0644) = -1 ENOENT");
	ok("stat(path=\".\") = 0");
	ok("stat(path=\"../d\") = -1 ENOENT");
	ok("stat(path=\"..\") = 0");
	assert_true(touched("file(/a)") & TOUCH_META_READ);
	ok("mkdir(path=\"/a/d\", mode=0755) = 0");
	ok("stat(path=\"/a/d/x\") = -1 ENOENT");
	ok("open(path=\"x\", flags=O_WRONLY|O_CREAT, mode=0644) = -1 ENOENT");
}

static void test_mounts(void **state)
{
	(void)state;
	ok("mkdir(path=\"/a/d\", mode=0755) = 0");
	ok("mkdir(path=\"/a/d/e\", mode=0755) = 0");
	ok("mkdir(path=\"/a/m\", mode=0755) = 0");
	ok("mount(source=\"/a/d\", target=\"/a/m\", filesystemtype=NULL, mountflags=MS_BIND, data=NULL) = 0");
	ok("stat(path=\"/a/m/e\") = 0");
	ok("umount2(target=\"/a/m\", flags=0) = 0");
	ok("stat(path=\"/a/m/e\") = -1 ENOENT");
	ok("mount(source=\"x\", target=\"/a/m\", filesystemtype=\"tmpfs\", mountflags=0, data=NULL) = 0");
	ok("stat(path=\"/a/m/e\") = -1 ENOENT");
	ok("mkdir(path=\"/a/m/f\", mode=0755) = 0");
	ok("umount2(target=\"/a/m\", flags=0) = 0");
	ok("stat(path=\"/a/m/f\") = -1 ENOENT");
}

/* Of two processes: 2 has a root of its own. */
static void test_pivot_root(void **state)
{
	(void)state;
	ok("mkdir(path=\"/a/r\", mode=0755) = 0");
	ok("mkdir(path=\"/a/r/old\", mode=0755) = 0");
	ok("mkdir(path=\"/a/r/x\", mode=0755) = 0");
	ok("mkdir(path=\"/a/q\", mode=0755) = 0");
	ok("1/1 #1 0+1 fork() = 2");
	ok("2/2 #1 1+1 chroot(path=\"/a/q\") = 0");
	ok("1/1 #1 2+1 fork() = 3");
	ok("pivot_root(new_root=\"/a/r\", put_old=\"/a/r/old\") = 0");
	ok("stat(path=\"/x\") = 0");
	assert_true(touched("file(/a/r/x)") & TOUCH_META_READ);
	ok("stat(path=\"/a\") = -1 ENOENT");
	ok("3/3 #1 3+1 stat(path=\"/x\") = 0");
	ok("3/3 #1 4+1 stat(path=\"x\") = 0"); /* its cwd was the old root */
	ok("3/3 #1 5+1 stat(path=\"../../x\") = 0");
	ok("2/2 #1 6+1 stat(path=\"/x\") = -1 ENOENT");
	/* What the old root shows there is not known, until it goes. */
	ok("stat(path=\"/old/a/q\") = 0");
	ok("umount2(target=\"/old\", flags=MNT_DETACH) = 0");
	ok("stat(path=\"/old/a\") = -1 ENOENT");
	ok("mkdir(path=\"/y\", mode=0755) = 0");
	/* In place, as those do who have no name for the old one. */
	ok("chdir(path=\"/x\") = 0");
	ok("pivot_root(new_root=\".\", put_old=\".\") = 0");
	ok("umount2(target=\".\", flags=MNT_DETACH) = 0");
	ok("stat(path=\"/y\") = -1 ENOENT");
	ok("chdir(path=\"/\") = 0");
	assert_true(touched("file(/a/r/x)") || touched("dir(/a/r/x)"));
}

static void test_sync(void **state)
{
	(void)state;
	ok("open(path=\"/a/f\", flags=O_WRONLY|O_CREAT, mode=0644) = 3");
	ok("sync() = 0");
	assert_int_equal(touched("storage") & TOUCH_READ, TOUCH_READ);
	ok("syncfs(fd=3) = 0");
	assert_int_equal(touched("storage") & TOUCH_READ, TOUCH_READ);
	ok("fsync(fd=3) = 0");
	assert_int_equal(touched("storage"), 0);
	ok("syncfs(fd=7) = -1 EBADF");
	assert_int_equal(touched("storage"), 0);
}

/* Groups, capabilities, space: what the model cannot know is no contradiction, and is counted. */
static void test_outside(void **state)
{
	(void)state;
	ok("mkdir(path=\"/a/d\", mode=0755) = -1 EACCES");
	ok("mkdir(path=\"/a/d\", mode=0755) = -1 ENOSPC");
	ok("mkdir(path=\"/b/d\", mode=0755) = -1 ENOENT");
	assert_int_equal(fsmodel_totals(m).nr_outside, 2);
	ok("mkdir(path=\"/a/d\", mode=0755) = 0");
}

static void test_paths_through_descriptors(void **state)
{
	(void)state;
	item("tree_mount(path=\"/proc\", type=\"proc\")");
	ok("mkdir(path=\"/a/d\", mode=0755) = 0");
	ok("open(path=\"/a/d\", flags=O_RDONLY|O_DIRECTORY) = 3");
	ok("mkdir(path=\"/proc/self/fd/3/e\", mode=0755) = 0");
	assert_int_equal(facts->fd_paths.len, 1);
	assert_int_equal(facts->fd_paths.items[0].rest, 15);
	assert_true(touched("path(/a/d/e)@1") & TOUCH_CREATE);
	ok("stat(path=\"/a/d/e\") = 0");
	ok("stat(path=\"/dev/fd/3\") = 0");
	assert_true(touched("file(/a/d)") & TOUCH_META_READ);
	ok("stat(path=\"/proc/self/fd/7\") = -1 ENOENT");
	ok("chdir(path=\"/a/d\") = 0");
	ok("stat(path=\"/proc/self/cwd/e\") = 0");
	/* What the kernel makes up follows no rules. */
	ok("open(path=\"/proc/77/stat\", flags=O_RDONLY) = 4");
	ok("open(path=\"/proc/77/stat\", flags=O_RDONLY) = -1 ENOENT");
	ok("open(path=\"/proc/77/stat\", flags=O_RDONLY) = 5");
}

/* The initial tree. */

static struct buf initial;

static int put_initial(void *arg, const struct item *it)
{
	const struct value *path = &it->args[1], *stat = &it->args[2];

	(void)arg;
	buf_printf(&initial, "%.*s:%d:%o:%llu ", (int)path->data->len_bytes,
		   (const char *)path->data->bytes, (int)value_field(stat, 0)->i,
		   (unsigned int)value_field(stat, 1)->u & 07777,
		   (unsigned long long)value_field(stat, 4)->u);
	return 0;
}

static void expect_initial(const char *text)
{
	buf_clear(&initial);
	assert_int_equal(fsmodel_initial_tree(m, put_initial, NULL), 0);
	assert_string_equal(buf_str(&initial), text);
	buf_release(&initial);
	initial = (struct buf){ 0 };
}

static void test_inference(void **state)
{
	(void)state;
	ok("stat(path=\"/u/none\") = -1 ENOENT");
	expect_initial("");
	ok("open(path=\"/u/f\", flags=O_RDONLY) = 3");
	ok("pread64(fd=3, buf=\"abcd\", count=4, offset=100) = 4");
	ok("unlink(path=\"/u/f\") = 0");
	ok("mkdir(path=\"/u/new\", mode=0755) = 0");
	ok("rename(oldpath=\"/u/dir\", newpath=\"/u/moved\") = 0");
	ok("lstat(path=\"/u/moved/x\", statbuf={st_mode=S_IFREG|0640, st_size=77, st_uid=5, st_gid=6}) = 0");
	ok("open(path=\"/u/out\", flags=O_WRONLY|O_CREAT|O_TRUNC, mode=0644) = 4");
	ok("readlink(path=\"/u/plain\", bufsiz=10) = -1 EINVAL");
	ok("mkdir(path=\"/u/there\", mode=0755) = -1 EEXIST");
	ok("access(path=\"/u/gone\", mode=F_OK) = -1 ENOENT");
	ok("readlink(path=\"/u/link\", buf=\"plain\", bufsiz=10) = 5");
	ok("stat(path=\"/u/link\") = 0");
	expect_initial("/u:2:755:0 /u/f:1:644:104 /u/dir:2:755:0 /u/dir/x:1:640:77 "
		       "/u/plain:1:644:0 /u/there:1:644:0 /u/link:3:777:0 ");
	/* Now it is known. */
	step("stat(path=\"/u/gone\") = 0", CONTRADICTION_MISSING);
	assert_true(facts->repaired);
	step("mkdir(path=\"/u/moved\", mode=0755) = 0", CONTRADICTION_EXISTS);
	step("stat(path=\"/u/there\") = -1 ENOENT", CONTRADICTION_ERROR);
	step("unlink(path=\"/u/f\") = 0", CONTRADICTION_MISSING);
}

/* What a name leads to is seen before it is seen that the name is a symlink. */
static void test_inferred_symlink(void **state)
{
	(void)state;
	ok("open(path=\"/lib/sub/f\", flags=O_RDONLY) = 3");
	ok("readlink(path=\"/lib\", buf=\"usr/lib\", bufsiz=100) = 7");
	ok("fstat(fd=3) = 0");
	assert_true(touched("file(/usr/lib/sub/f)"));
	ok("stat(path=\"/usr/lib/sub/f\") = 0");
	ok("open(path=\"/lib/sub/g\", flags=O_RDONLY) = 4");
	assert_true(touched("path(/usr/lib/sub/g)@1"));
	expect_initial("/usr:2:755:0 /usr/lib:2:755:0 /usr/lib/sub:2:755:0 /usr/lib/sub/f:1:644:0 "
		       "/lib:3:777:0 /usr/lib/sub/g:1:644:0 ");
	/* Where both names are known they stay two. */
	ok("stat(path=\"/x\") = 0");
	ok("stat(path=\"/y\") = 0");
	ok("readlink(path=\"/x\", buf=\"y\", bufsiz=100) = 1");
	ok("lstat(path=\"/x\", statbuf={st_mode=S_IFLNK|0777, st_size=1}) = 0");
}

static void test_tree_items(void **state)
{
	(void)state;
	item("tree_entry(tree=initial, path=\"/t/one\", stat={type=file, mode=0644, uid=1, gid=1, "
	     "size=5, dev=9, ino=44, nlink=2})");
	item("tree_entry(tree=initial, path=\"/t/two\", stat={type=file, mode=0644, uid=1, gid=1, "
	     "size=5, dev=9, ino=44, nlink=2})");
	item("tree_entry(tree=initial, path=\"/t/no\", flags=MISSING)");
	item("tree_entry(tree=initial, path=\"/t/l\", stat={type=symlink, mode=0777, uid=1, gid=1}, "
	     "target=\"one\")");
	item("tree_entry(tree=final, path=\"/t/later\", stat={type=file})");
	/* A name of a listing, then its state. */
	item("tree_entry(tree=initial, path=\"/t/d/n\", stat={type=file})");
	item("tree_entry(tree=initial, path=\"/t/d\", flags=LISTED)");
	item("tree_entry(tree=initial, path=\"/t/d/n\", stat={type=file, mode=0600, uid=1, gid=1, "
	     "size=12})");
	ok("chmod(path=\"/t/l\", mode=0600) = 0");
	assert_true(touched("path(/t/one)@1") & TOUCH_CHANGE);
	assert_true(touched("path(/t/two)@1") & TOUCH_CHANGE);
	ok("stat(path=\"/t/later\") = -1 ENOENT");
	ok("stat(path=\"/t/no\") = -1 ENOENT");
	ok("rmdir(path=\"/t/d\") = -1 ENOTEMPTY");
	ok("unlink(path=\"/t/d/n\") = 0");
	ok("rmdir(path=\"/t/d\") = 0");
	/* Of /t only what was touched is known: whether it is empty is not. */
	ok("unlink(path=\"/t/one\") = 0");
	ok("unlink(path=\"/t/two\") = 0");
	ok("unlink(path=\"/t/l\") = 0");
	ok("rmdir(path=\"/t\") = -1 ENOTEMPTY");
	/* What the recorder did not see must have been there all the same. */
	step("stat(path=\"/t/unseen\") = 0", CONTRADICTION_MISSING);
	expect_initial("/t/unseen:1:644:0 ");
}

/* Absent names. */

static void test_forgetting(void **state)
{
	char text[100];
	int n;

	(void)state;
	fsmodel_free(m);
	start_with((struct fsmodel_options){ .tree_known = true, .max_absent = 100 });
	ok("mkdir(path=\"/a\", mode=0755) = 0");
	for (n = 0; n < 5000; n++) {
		(void)snprintf(text, sizeof(text), "stat(path=\"/a/%d\") = -1 ENOENT", n);
		ok(text);
	}
	assert_true(fsmodel_totals(m).nr_absent <= 101);
	assert_true(nr_forgotten >= 4890);
	assert_int_equal(nr_forgotten, nr_inherited);
	/* One that is asked for again and again stays. */
	ok("stat(path=\"/a/4999\") = -1 ENOENT");
	n = (int)nr_forgotten;
	ok("stat(path=\"/a/4999\") = -1 ENOENT");
	assert_int_equal(nr_forgotten, n);
}

/* Bad input: nothing hangs, nothing crashes, whatever is wrong is counted. */

static void test_bad_input(void **state)
{
	static char text[70000];
	int n;

	(void)state;
	ok("symlink(target=\"loop\", linkpath=\"/a/loop\") = 0");
	ok("stat(path=\"/a/loop\") = -1 ELOOP");
	ok("stat(path=\"/a/loop/x\") = -1 ELOOP");
	ok("lstat(path=\"/a/loop\") = 0");
	n = snprintf(text, sizeof(text), "stat(path=\"/a/");
	memset(text + n, 'x', 65536);
	(void)snprintf(text + n + 65536, 100, "\") = -1 ENAMETOOLONG");
	ok(text);
	(void)snprintf(text + n + 65536, 100, "\") = 0");
	step(text, CONTRADICTION_ERROR);
	(void)snprintf(text + n + 300, 100, "\", mode=0755) = 0");
	memcpy(text, "mkdi", 4); /* stat( -> mkdir( needs a letter more */
	memmove(text + 6, text + 5, strlen(text + 5) + 1);
	memcpy(text, "mkdir(", 6);
	step(text, CONTRADICTION_ERROR);
	/* One that may have been open before the trace, and one that cannot. */
	ok("mkdirat(dirfd=2147483647, path=\"x\", mode=0755) = 0");
	ok("open(path=\"/a\", flags=O_RDONLY|O_DIRECTORY) = 3");
	ok("close(fd=3) = 0");
	step("mkdirat(dirfd=3, path=\"x\", mode=0755) = 0", CONTRADICTION_FD);
	ok("mkdirat(dirfd=-2147483648, path=\"x\", mode=0755) = -1 EBADF");
	ok("stat(path=\"\") = -1 ENOENT");
	ok("stat(path=NULL) = -1 EFAULT");
	step("mkdir(path=\"/\", mode=0755) = 0", CONTRADICTION_EXISTS);
	step("rmdir(path=\"/\") = 0", CONTRADICTION_ERROR);
	step("rename(oldpath=\"/a\", newpath=\"/a/b/c\") = 0", CONTRADICTION_MISSING);
	step("unlink(path=\"/a/.\") = 0", CONTRADICTION_TYPE);
	ok("renameat2(olddirfd=-1, oldpath=\"x\", newdirfd=-1, newpath=\"y\", flags=0xffffffff) = -1 "
	   "EINVAL");
}

static void test_mended_non_empty_directory(void **state)
{
	char text[100];
	int n;

	(void)state;
	ok("mkdir(path=\"/a/d\", mode=0755) = 0");
	for (n = 0; n < 1000; n++) {
		(void)snprintf(text, sizeof(text), "mkdir(path=\"/a/d/%d\", mode=0755) = 0", n);
		ok(text);
		(void)snprintf(text, sizeof(text),
			       "mknod(path=\"/a/d/%d/f\", mode=S_IFREG|0644) = 0", n);
		ok(text);
	}
	step("rmdir(path=\"/a/d\") = 0", CONTRADICTION_EXISTS);
	assert_true(facts->repaired);
	ok("stat(path=\"/a/d\") = -1 ENOENT");
	ok("mkdir(path=\"/a/d\", mode=0755) = 0");
	ok("stat(path=\"/a/d/5\") = -1 ENOENT");
}

#define DEPTH 1000000

static void test_deep_tree(void **state)
{
	struct event make = event_from_text("mkdir(path=\"d\", mode=0755) = 0");
	struct event enter = event_from_text("chdir(path=\"d\") = 0");
	int n;

	(void)state;
	make.pid = make.tid = enter.pid = enter.tid = 1;
	ok("chdir(path=\"/a\") = 0");
	for (n = 0; n < DEPTH; n++) {
		facts = fsmodel_step(m, &make);
		assert_int_equal(facts->contradiction, CONTRADICTION_NONE);
		facts = fsmodel_step(m, &enter);
		assert_int_equal(facts->contradiction, CONTRADICTION_NONE);
	}
	ok("stat(path=\"../d\") = 0");
	assert_true(strlen(name_of(facts->touches.items[0].res)) < 20000);
	ok("rename(oldpath=\"/a\", newpath=\"/b\") = 0");
	ok("stat(path=\"/b/d/d\") = 0");
	ok("rename(oldpath=\"/b\", newpath=\"x\") = -1 EINVAL");
	ok("chdir(path=\"/\") = 0");
	step("rmdir(path=\"/b\") = 0", CONTRADICTION_EXISTS);
	assert_true(facts->repaired);
	assert_true(fsmodel_totals(m).nr_files < 10);
}

static unsigned int nr_below;

static void count_below(void *arg, const struct res *name)
{
	(void)arg;
	(void)name;
	nr_below++;
}

/* However much is below: a rename touches a handful of things. */
static void test_rename_of_many(void **state)
{
	char text[100];
	struct event ev;
	int n;

	(void)state;
	ok("mkdir(path=\"/a/d\", mode=0755) = 0");
	for (n = 0; n < 100000; n++) {
		(void)snprintf(text, sizeof(text), "mknod(path=\"/a/d/%d\", mode=S_IFREG|0644) = 0",
			       n);
		ev = event_from_text(text);
		ev.pid = ev.tid = 1;
		facts = fsmodel_step(m, &ev);
		assert_int_equal(facts->contradiction, CONTRADICTION_NONE);
	}
	ok("rename(oldpath=\"/a/d\", newpath=\"/a/e\") = 0");
	assert_true(facts->touches.len < 20);
	nr_below = 0;
	for (n = 0; n < (int)facts->touches.len; n++) {
		if (facts->touches.items[n].how & TOUCH_CREATE)
			fsmodel_names_below(m, facts->touches.items[n].res, count_below, NULL);
	}
	assert_int_equal(nr_below, 100000);
	ok("stat(path=\"/a/e/99999\") = 0");
	ok("stat(path=\"/a/d/99999\") = -1 ENOENT");
}

static void test_fits(void **state)
{
	struct event there, gone;
	uint64_t nr_names;

	(void)state;
	ok("mkdir(path=\"/a/d\", mode=0755) = 0");
	nr_names = fsmodel_totals(m).nr_names;
	there = event_from_text("stat(path=\"/a/x/y\") = 0");
	gone = event_from_text("stat(path=\"/a/x/y\") = -1 ENOENT");
	there.pid = there.tid = gone.pid = gone.tid = 1;
	assert_false(fsmodel_fits(m, &there));
	assert_true(fsmodel_fits(m, &gone));
	/* Asking leaves nothing behind. */
	assert_int_equal(fsmodel_totals(m).nr_names, nr_names);
	ok("mkdir(path=\"/a/x\", mode=0755) = 0");
	ok("mkdir(path=\"/a/x/y\", mode=0755) = 0");
	assert_true(fsmodel_fits(m, &there));
	assert_false(fsmodel_fits(m, &gone));
}

static void test_may_affect(void **state)
{
	static const struct {
		const char *first, *then;
		bool may;
	} pairs[] = {
		{ "mkdir(path=\"/a/x\") = 0", "stat(path=\"/a/x\") = 0", true },
		{ "mkdir(path=\"/a/x\") = 0", "open(path=\"/a/x/f\", flags=O_RDONLY) = 3", true },
		{ "mkdir(path=\"/a/x\") = 0", "stat(path=\"/a/y\") = 0", false },
		{ "mkdir(path=\"/a/x\") = -1 EEXIST", "stat(path=\"/a/x\") = 0", false },
		{ "stat(path=\"/a/x\") = 0", "stat(path=\"/a/x\") = 0", false },
		{ "unlink(path=\"/a/x\") = 0", "rmdir(path=\"/a\") = 0", true },
		{ "rmdir(path=\"/a/x\") = 0", "mkdir(path=\"y\") = -1 ENOENT", true },
		{ "rename(oldpath=\"/a/x\", newpath=\"/a/y\") = 0", "stat(path=\"/b/y\") = 0",
		  true },
		/* Through a symlink that the model knows. */
		{ "unlink(path=\"/q/deep\") = 0", "stat(path=\"/a/l\") = 0", true },
		{ "chmod(path=\"/a\", mode=0) = 0", "stat(path=\"/a/z\") = -1 EACCES", true },
	};
	size_t n;

	(void)state;
	ok("symlink(target=\"../q/deep\", linkpath=\"/a/l\") = 0");
	for (n = 0; n < sizeof(pairs) / sizeof(pairs[0]); n++) {
		struct event first = event_from_text(pairs[n].first);
		struct event then = event_from_text(pairs[n].then);

		first.pid = then.pid = 1;
		first.tid = 1;
		then.tid = 2;
		if (fsmodel_may_affect(m, &first, &then) != pairs[n].may)
			fail_msg("%s, then %s", pairs[n].first, pairs[n].then);
	}
}

#define KNOWN(test) cmocka_unit_test_setup_teardown(test, start_known, stop)
#define UNKNOWN(test) cmocka_unit_test_setup_teardown(test, start_unknown, stop)

int main(void)
{
	const struct CMUnitTest tests[] = {
		KNOWN(test_figure_2),
		KNOWN(test_touches_of_makers),
		KNOWN(test_deletion_waits_for_close),
		KNOWN(test_dangling_symlink),
		KNOWN(test_rename),
		KNOWN(test_removed_directory),
		KNOWN(test_paths_through_descriptors),
		KNOWN(test_mounts),
		KNOWN(test_pivot_root),
		KNOWN(test_sync),
		KNOWN(test_outside),
		UNKNOWN(test_inference),
		UNKNOWN(test_inferred_symlink),
		KNOWN(test_tree_items),
		KNOWN(test_forgetting),
		KNOWN(test_bad_input),
		KNOWN(test_mended_non_empty_directory),
		KNOWN(test_deep_tree),
		KNOWN(test_rename_of_many),
		KNOWN(test_fits),
		KNOWN(test_may_affect),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
