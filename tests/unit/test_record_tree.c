/* SPDX-License-Identifier: MIT */
/* The trees of a recording, of paths that this process itself touches: what is noted of each. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "tree_rig.h"

static void test_file(void **state)
{
	char parent[PATH_MAX];
	char *slash;

	(void)state;
	write_file("f", "content");
	touch(below("f"));
	touch(below("f"));
	touch("f");
	touch("./../../tmp/../f"); /* leads elsewhere, or nowhere */
	finish();
	/* What it is, and what it holds. */
	assert_int_equal(count_entries(INITIAL, below("f")), 2);
	assert_int_equal(stat_of(INITIAL, below("f"), TYPE), 1);
	assert_int_equal(stat_of(INITIAL, below("f"), MODE), S_IFREG | 0644);
	assert_int_equal(stat_of(INITIAL, below("f"), SIZE), 7);
	assert_int_equal(flags_of(INITIAL, below("f")), CONTENT_KEPT);
	assert_true(is_text(&entry(INITIAL, below("f"))->args[CONTENT], "content"));
	assert_true(has_hash(entry(INITIAL, below("f")), "content"));
	/* All that leads there. */
	memcpy(parent, top, sizeof(parent));
	while ((slash = strrchr(parent, '/')) && slash != parent) {
		assert_int_equal(stat_of(INITIAL, parent, TYPE), 2);
		assert_int_equal(count_entries(INITIAL, parent), 1);
		*slash = 0;
	}
	assert_int_equal(count_entries(INITIAL, "/"), 1);
	assert_true(has_hash(entry(FINAL, below("f")), "content"));
}

static void test_sizes(void **state)
{
	char big[1002], fits[1001];

	(void)state;
	memset(big, 'b', sizeof(big) - 1);
	big[sizeof(big) - 1] = 0;
	memset(fits, 'f', sizeof(fits) - 1);
	fits[sizeof(fits) - 1] = 0;
	write_file("big", big);
	write_file("fits", fits);
	write_file("empty", "");
	touch("big");
	touch("fits");
	touch("empty");
	finish();
	assert_int_equal(flags_of(INITIAL, below("big")), 0);
	assert_int_equal(entry(INITIAL, below("big"))->args[CONTENT].type, VALUE_NONE);
	assert_int_equal(entry(INITIAL, below("big"))->args[HASH].type, VALUE_NONE);
	assert_true(has_hash(entry(FINAL, below("big")), big));
	assert_true(is_text(&entry(INITIAL, below("fits"))->args[CONTENT], fits));
	assert_true(has_hash(entry(INITIAL, below("empty")), ""));
	assert_int_equal(flags_of(INITIAL, below("empty")), CONTENT_KEPT);
}

static void test_missing(void **state)
{
	(void)state;
	touch("new");
	write_file("new", "made");
	touch("new");
	touch("no/such/file");
	write_file("gone", "old");
	touch_call(SC_unlink, "gone", NULL);
	(void)unlink("gone");
	touch("gone");
	finish();
	assert_int_equal(flags_of(INITIAL, below("new")), MISSING);
	assert_int_equal(count_entries(INITIAL, below("new")), 1);
	assert_true(has_hash(entry(FINAL, below("new")), "made"));
	assert_int_equal(flags_of(INITIAL, below("no")), MISSING);
	assert_int_equal(flags_of(FINAL, below("no")), MISSING);
	/* Removed unread: what it held does not matter. */
	assert_int_equal(stat_of(INITIAL, below("gone"), SIZE), 3);
	assert_int_equal(flags_of(INITIAL, below("gone")), 0);
	assert_int_equal(flags_of(FINAL, below("gone")), MISSING);
}

/* What a file holds is kept when it may be read, not when it is only looked at; and once. */
static void test_content_when_opened(void **state)
{
	(void)state;
	write_file("looked", "at");
	write_file("later", "opened");
	OK(link("later", "alias"));
	write_file("moved", "away");
	touch_call(SC_stat, "looked", NULL);
	touch_call(SC_stat, "later", NULL);
	touch("later");
	touch("later");
	touch("alias");
	touch_call(SC_rename, "moved", "there");
	finish();
	assert_int_equal(flags_of(INITIAL, below("looked")), 0);
	assert_int_equal(count_entries(INITIAL, below("later")), 2);
	assert_int_equal(count_entries(INITIAL, below("alias")), 1);
	assert_int_equal(flags_of(INITIAL, below("alias")), 0);
	assert_true(is_text(&entry(INITIAL, below("moved"))->args[CONTENT], "away"));
}

static void test_symlinks(void **state)
{
	(void)state;
	assert_int_equal(mkdir("d", 0755), 0);
	write_file("d/f", "x");
	write_file("d/g", "y");
	assert_int_equal(symlink("d", "relative"), 0);
	assert_int_equal(symlink(below("d/g"), "absolute"), 0);
	assert_int_equal(symlink("nowhere", "dangling"), 0);
	assert_int_equal(symlink("loop2", "loop1"), 0);
	assert_int_equal(symlink("loop1", "loop2"), 0);
	touch("relative/f");
	touch("absolute");
	touch("dangling");
	touch("loop1/x");
	finish();
	assert_true(is_text(&entry(INITIAL, below("relative"))->args[TARGET], "d"));
	assert_int_equal(stat_of(INITIAL, below("relative"), TYPE), 3);
	assert_int_equal(stat_of(INITIAL, below("d/f"), TYPE), 1);
	assert_int_equal(stat_of(INITIAL, below("d/g"), TYPE), 1);
	assert_int_equal(flags_of(INITIAL, below("nowhere")), MISSING);
	assert_int_equal(count_entries(INITIAL, below("relative/f")), 0);
	assert_int_equal(stat_of(INITIAL, below("loop2"), TYPE), 3);
	assert_true(is_text(&entry(FINAL, below("dangling"))->args[TARGET], "nowhere"));
}

static void test_symlinks_not_followed(void **state)
{
	(void)state;
	write_file("a", "");
	write_file("b", "");
	write_file("c", "");
	assert_int_equal(symlink("a", "la"), 0);
	assert_int_equal(symlink("b", "lb"), 0);
	assert_int_equal(symlink("c", "lc"), 0);
	touch_call(SC_lstat, "la", NULL);
	touch_at(AT_FDCWD, "lb", O_NOFOLLOW);
	touch_call(SC_symlink, "c", "new"); /* a text, not a path */
	settle();
	finish();
	assert_int_equal(count_entries(INITIAL, below("la")), 1);
	assert_int_equal(count_entries(INITIAL, below("lb")), 1);
	assert_int_equal(count_entries(INITIAL, below("a")), 0);
	assert_int_equal(count_entries(INITIAL, below("b")), 0);
	assert_int_equal(count_entries(INITIAL, below("c")), 0);
	assert_int_equal(flags_of(INITIAL, below("new")), MISSING);
}

static void test_symlink_changes(void **state)
{
	(void)state;
	write_file("one", "1");
	write_file("two", "2");
	assert_int_equal(symlink("one", "now"), 0);
	touch("now");
	assert_int_equal(symlink("two", "next"), 0);
	touch_call(SC_rename, "next", "now");
	assert_int_equal(rename("next", "now"), 0);
	/* The same text as before means another file. */
	touch("now");
	settle();
	touch("now");
	finish();
	assert_int_equal(count_entries(INITIAL, below("one")), 2);
	assert_int_equal(count_entries(INITIAL, below("two")), 2);
	assert_int_equal(count_entries(INITIAL, below("now")), 1);
}

/* What was open before the first call. */
static void test_found_descriptors(void **state)
{
	int closed, kept;

	(void)state;
	write_file("closed", "c");
	write_file("kept", "k");
	closed = open("closed", O_RDONLY | O_CLOEXEC);
	kept = open("kept", O_RDONLY);
	OK(tree_touch_descriptors(tree, getpid(), true, 5));
	write_file("kept", "changed");
	finish();
	(void)close(closed);
	(void)close(kept);
	assert_int_equal(count_entries(INITIAL, below("closed")), 0);
	assert_int_equal(flags_of(INITIAL, below("kept")), CONTENT_KEPT);
	assert_int_equal(stat_of(INITIAL, below("kept"), SIZE), 1);
	assert_int_equal(stat_of(FINAL, below("kept"), SIZE), 7);
}

static void test_hard_links(void **state)
{
	(void)state;
	write_file("a", "same");
	assert_int_equal(link("a", "b"), 0);
	touch("a");
	touch("b");
	finish();
	assert_int_equal(stat_of(INITIAL, below("a"), NLINK), 2);
	assert_int_equal(stat_of(INITIAL, below("a"), 6), stat_of(INITIAL, below("b"), 6));
}

/* None of them is opened: that could block for ever, or do something. */
static void test_special_files(void **state)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX, .sun_path = "socket" };
	int s = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	char self[64];

	(void)state;
	assert_int_equal(mkfifo("fifo", 0644), 0);
	assert_int_equal(bind(s, (struct sockaddr *)&un, sizeof(un)), 0);
	touch("fifo");
	touch("socket");
	touch("/dev/null");
	touch("/proc/self/status");
	touch("/proc/self/fd/0");
	finish();
	(void)close(s);
	assert_int_equal(stat_of(INITIAL, below("fifo"), TYPE), 4);
	assert_int_equal(stat_of(INITIAL, below("socket"), TYPE), 5);
	assert_int_equal(flags_of(INITIAL, "/dev/null"), SPECIAL);
	assert_int_equal(flags_of(INITIAL, "/proc/self"), SPECIAL);
	(void)snprintf(self, sizeof(self), "/proc/%d/status", getpid());
	assert_int_equal(flags_of(INITIAL, self), SPECIAL);
	assert_int_equal(entry(INITIAL, self)->args[CONTENT].type, VALUE_NONE);
	assert_int_equal(count_entries(FINAL, self), 0);
}

static void test_xattrs(void **state)
{
	(void)state;
	write_file("f", "");
	if (setxattr("f", "user.reprise", "value", 5, 0)) {
		print_message("# no extended attributes in /tmp: %s\n", strerror(errno));
		skip();
	}
	touch("f");
	finish();
	assert_int_equal(entry(INITIAL, below("f"))->args[XATTRS].type, VALUE_LIST);
	assert_int_equal(entry(INITIAL, below("f"))->args[XATTRS].count, 1);
}

static void test_mounts(void **state)
{
	unsigned int nr = 0;
	size_t i;

	(void)state;
	touch("x");
	touch("/proc/version");
	finish();
	for (i = 0; i < items.len; i++)
		nr += items.items[i].row->id == REC_tree_mount &&
		      is_text(&items.items[i].args[1], "/proc");
	assert_int_equal(nr, 1);
}

static void test_long_paths(void **state)
{
	char *p = arena_alloc(&arena, 5000);

	(void)state;
	memset(p, 'n', 300);
	p[300] = 0;
	touch(p);
	memset(p, '/', 4000);
	p[4000] = 'x';
	p[4001] = 0;
	touch(p);
	touch("");
	finish();
	assert_int_equal(flags_of(INITIAL, "/x"), MISSING);
}

static void test_gone_process(void **state)
{
	struct value args[ROW_ARGS_MAX] = { value_int(AT_FDCWD), value_str(&arena, "/etc") };

	(void)state;
	OK(tree_touch(tree, INT32_MAX, row_by_id(SC_openat), args, 5));
	OK(tree_touch(tree, INT32_MAX, row_by_id(SC_getdents64), args, 5));
	finish();
	assert_int_equal(items.len, 0);
}

/* What a name stands for is known when its file's content is, or when there is none. */
static void test_plain_names(void **state)
{
	struct value args[ROW_ARGS_MAX] = { value_str(&arena, "file") };

	(void)state;
	write_file("file", "content");
	assert_int_equal(tree_is_plain(tree, getpid(), row_by_id(SC_unlink), args), TREE_NOT_PLAIN);
	args[1] = value_uint(O_RDWR);
	assert_int_equal(tree_is_plain(tree, getpid(), row_by_id(SC_open), args),
			 TREE_PLAIN_IF_KEPT);
	touch_at(AT_FDCWD, "file", O_RDWR);
	assert_int_equal(tree_is_plain(tree, getpid(), row_by_id(SC_open), args), TREE_PLAIN);
	assert_int_equal(unlink("file"), 0);
	assert_int_equal(tree_is_plain(tree, getpid(), row_by_id(SC_unlink), args), TREE_PLAIN);
	finish();
}

/* What a call was refused is not kept, nor what it would have cut; the next one may get it. */
static void test_refused(void **state)
{
	struct value args[ROW_ARGS_MAX] = { value_str(&arena, "cut"),
					    value_uint(O_RDWR | O_TRUNC) };

	(void)state;
	write_file("read", "secret");
	write_file("cut", "secret");
	write_file("again", "known");
	OK(tree_touch(tree, getpid(), row_by_id(SC_open), args, 5));
	leave(EACCES);
	args[0] = value_str(&arena, "read");
	args[1] = value_uint(O_RDONLY);
	OK(tree_touch(tree, getpid(), row_by_id(SC_open), args, 5));
	leave(EPERM);
	args[0] = value_str(&arena, "again");
	OK(tree_touch(tree, getpid(), row_by_id(SC_open), args, 5));
	leave(EMFILE);
	touch("again");
	finish();
	assert_int_equal(flags_of(INITIAL, below("cut")), UNREADABLE);
	assert_int_equal(flags_of(INITIAL, below("read")), UNREADABLE);
	assert_int_equal(flags_of(INITIAL, below("again")), CONTENT_KEPT);
	assert_int_equal(entry(INITIAL, below("cut"))->args[CONTENT].type, VALUE_NONE);
	assert_int_equal(entry(FINAL, below("cut"))->args[HASH].type, VALUE_NONE);
	assert_int_equal(entry(INITIAL, below("read"))->args[CONTENT].type, VALUE_NONE);
	assert_int_equal(entry(FINAL, below("read"))->args[HASH].type, VALUE_NONE);
	assert_true(is_text(&entry(INITIAL, below("again"))->args[CONTENT], "known"));
}

/* What a call cuts off was there before it. */
static void test_cut(void **state)
{
	struct value args[ROW_ARGS_MAX] = { value_str(&arena, "f"), value_uint(O_RDWR | O_TRUNC) };

	(void)state;
	write_file("f", "before");
	OK(tree_touch(tree, getpid(), row_by_id(SC_open), args, 5));
	write_file("f", "after");
	leave(0);
	finish();
	assert_int_equal(flags_of(INITIAL, below("f")), CONTENT_KEPT);
	assert_true(is_text(&entry(INITIAL, below("f"))->args[CONTENT], "before"));
	assert_true(has_hash(entry(FINAL, below("f")), "after"));
}

/* A thread of another user names files of ours. */
static void test_rights(void **state)
{
	static const struct tree_options options = { .content_max_bytes = 1000 };
	struct value args[ROW_ARGS_MAX] = { value_int(AT_FDCWD), value_int(0), value_uint(0) };
	pid_t child;
	int go[2];
	char c;

	(void)state;
	if (geteuid())
		skip(); /* only root may do so */
	OK(chmod(top, 0755));
	write_file("closed", "secret");
	OK(chmod("closed", 0600));
	write_file("open", "public");
	OK(mkdir("private", 0700));
	write_file("private/f", "secret");
	OK(mkdir("private/in", 0755));
	write_file("private/in/f", "public");
	/* They were there before. */
	tree_free(tree);
	tree = tree_new(feed, &options);
	OK(pipe(go));
	child = fork();
	if (!child) {
		if (chdir("private/in") || setgid(65534) || setuid(65534) ||
		    write(go[1], "", 1) != 1)
			_exit(1);
		(void)pause();
		_exit(0);
	}
	assert_int_equal(read(go[0], &c, 1), 1);
	tree_begin_thread(tree, child, 0, false);
	/* Where it is it could not come to any more. */
	args[1] = value_str(&arena, "f");
	OK(tree_touch(tree, child, row_by_id(SC_openat), args, 5));
	tree_leave(tree, child, 0);
	args[1] = value_str(&arena, below("closed"));
	OK(tree_touch(tree, child, row_by_id(SC_openat), args, 5));
	tree_leave(tree, child, EACCES);
	args[1] = value_str(&arena, below("private/f"));
	OK(tree_touch(tree, child, row_by_id(SC_openat), args, 5));
	tree_leave(tree, child, EACCES);
	args[1] = value_str(&arena, below("open"));
	OK(tree_touch(tree, child, row_by_id(SC_openat), args, 5));
	tree_leave(tree, child, 0);
	/* It is forged: the kernel would not have let it succeed. */
	args[1] = value_str(&arena, below("closed"));
	OK(tree_touch(tree, child, row_by_id(SC_openat), args, 5));
	tree_leave(tree, child, 0);
	(void)kill(child, SIGKILL);
	(void)waitpid(child, NULL, 0);
	(void)close(go[0]);
	(void)close(go[1]);
	finish();
	assert_int_equal(flags_of(INITIAL, below("closed")), UNREADABLE);
	assert_int_equal(entry(INITIAL, below("closed"))->args[CONTENT].type, VALUE_NONE);
	assert_int_equal(entry(FINAL, below("closed"))->args[HASH].type, VALUE_NONE);
	assert_int_equal(stat_of(INITIAL, below("private"), TYPE), 2);
	assert_int_equal(flags_of(INITIAL, below("private/f")), UNREADABLE);
	assert_int_equal(entry(INITIAL, below("private/f"))->args[STAT].type, VALUE_NONE);
	assert_int_equal(entry(FINAL, below("private/f"))->args[STAT].type, VALUE_NONE);
	assert_int_equal(stat_of(INITIAL, below("private/in"), MODE), S_IFDIR | 0755);
	assert_true(is_text(&entry(INITIAL, below("private/in/f"))->args[CONTENT], "public"));
	assert_true(is_text(&entry(INITIAL, below("open"))->args[CONTENT], "public"));
	assert_true(has_hash(entry(FINAL, below("open")), "public"));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TREE_TEST(test_file),
		TREE_TEST(test_sizes),
		TREE_TEST(test_missing),
		TREE_TEST(test_content_when_opened),
		TREE_TEST(test_symlinks),
		TREE_TEST(test_symlinks_not_followed),
		TREE_TEST(test_symlink_changes),
		TREE_TEST(test_found_descriptors),
		TREE_TEST(test_hard_links),
		TREE_TEST(test_special_files),
		TREE_TEST(test_xattrs),
		TREE_TEST(test_mounts),
		TREE_TEST(test_long_paths),
		TREE_TEST(test_gone_process),
		TREE_TEST(test_plain_names),
		TREE_TEST(test_refused),
		TREE_TEST(test_cut),
		TREE_TEST(test_rights),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
