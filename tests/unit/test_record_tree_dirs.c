/* SPDX-License-Identifier: MIT */
/* The trees of a recording: where names begin, and directories that are made, moved, replaced and listed. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tree_rig.h"

static void touch_listing(const char *name)
{
	struct value args[ROW_ARGS_MAX] = { value_int(
		open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) };

	touch(name);
	OK(tree_touch(tree, getpid(), row_by_id(SC_getdents64), args, 5));
	(void)close((int)args[0].i);
}

/* Of each call that reads a directory it is told which, whether its names are new or not. */
static void test_which_was_listed(void **state)
{
	uint64_t dev = 0, ino = 0;
	struct stat st;

	(void)state;
	assert_int_equal(mkdir("d", 0755), 0);
	assert_int_equal(stat("d", &st), 0);
	touch("d");
	assert_false(tree_was_listed(tree, &dev, &ino));
	touch_listing("d");
	assert_true(tree_was_listed(tree, &dev, &ino));
	assert_int_equal(dev, st.st_dev);
	assert_int_equal(ino, st.st_ino);
	touch_listing("d");
	assert_true(tree_was_listed(tree, &dev, &ino));
	touch("d");
	assert_false(tree_was_listed(tree, &dev, &ino));
	finish();
}

static void test_bases(void **state)
{
	int fd;

	(void)state;
	assert_int_equal(mkdir("d", 0755), 0);
	assert_int_equal(mkdir("d/e", 0755), 0);
	write_file("d/f", "f");
	write_file("d/e/g", "g");
	fd = open("d", O_PATH | O_CLOEXEC);
	touch_at(fd, "f", 0);
	touch_at(fd, "e/../e/g", 0);
	(void)close(fd);
	touch_at(fd, "x", 0); /* EBADF */
	touch_call(SC_chdir, "d/e", NULL);
	assert_int_equal(chdir("d/e"), 0);
	touch("../y");
	touch("..//../z/");
	finish();
	assert_int_equal(count_entries(INITIAL, below("d/f")), 2);
	assert_int_equal(count_entries(INITIAL, below("d/e/g")), 2);
	assert_int_equal(count_entries(INITIAL, below("d/e")), 1);
	assert_int_equal(flags_of(INITIAL, below("d/y")), MISSING);
	assert_int_equal(flags_of(INITIAL, below("z")), MISSING);
	assert_int_equal(count_entries(INITIAL, below("x")), 0);
}

static void test_root_has_no_parent(void **state)
{
	(void)state;
	touch("/../../..");
	touch("/..//../etc/..");
	finish();
	assert_int_equal(count_entries(INITIAL, "/"), 1);
	assert_int_equal(count_entries(INITIAL, "/etc"), 1);
}

static void test_cwd_that_is_gone(void **state)
{
	(void)state;
	assert_int_equal(mkdir("d", 0755), 0);
	assert_int_equal(chdir("d"), 0);
	assert_int_equal(rmdir(below("d")), 0);
	touch("f");
	touch(".");
	finish();
	assert_int_equal(chdir(top), 0);
	assert_int_equal(count_entries(INITIAL, below("d")), 0);
}

/* What was known of a working directory holds no longer than it is true. */
static void test_cwd_that_moves(void **state)
{
	(void)state;
	assert_int_equal(mkdir("a", 0755), 0);
	assert_int_equal(mkdir("a/b", 0755), 0);
	assert_int_equal(mkdir("c", 0755), 0);
	touch("x");
	touch_call(SC_chdir, "a/b", NULL);
	assert_int_equal(chdir("a/b"), 0);
	settle();
	touch("x");
	touch_call(SC_rename, below("a"), below("c/d"));
	assert_int_equal(rename(below("a"), below("c/d")), 0);
	settle();
	touch("y"); /* noted under the name that its directory had */
	touch("../z");
	touch_call(SC_mkdir, "/tmp", NULL);
	touch("../../w");
	finish();
	assert_int_equal(chdir(top), 0);
	assert_int_equal(flags_of(INITIAL, below("x")), MISSING);
	assert_int_equal(flags_of(INITIAL, below("a/b/x")), MISSING);
	assert_int_equal(flags_of(INITIAL, below("a/b/y")), MISSING);
	assert_int_equal(flags_of(INITIAL, below("a/z")), MISSING);
	assert_int_equal(flags_of(INITIAL, below("c/w")), MISSING);
	assert_int_equal(flags_of(FINAL, below("c/d/b/y")), MISSING);
	assert_int_equal(count_entries(INITIAL, below("c/d/b/y")), 0);
}

/* Threads that share a working directory, or have one of their own. */
static int other_thread(void *arg)
{
	int *pipes = arg;
	char c;

	/* Where the others are not: so it shares nothing. */
	c = unshare(CLONE_FS) || chdir("own") ? 'n' : 'y';
	if (write(pipes[1], &c, 1) == 1)
		(void)!read(pipes[2], &c, 1); /* until we are done */
	return 0;
}

static void test_cwd_of_threads(void **state)
{
	struct value args[ROW_ARGS_MAX] = { value_int(AT_FDCWD), value_str(&arena, "f") };
	char *stack = xmalloc(65536), c;
	int pipes[4];
	pid_t child;

	(void)state;
	assert_int_equal(mkdir("own", 0755), 0);
	assert_true(!pipe(pipes) && !pipe(pipes + 2));
	touch("f");
	/* Shares files with us so that it can be told, but no number. */
	child = clone(other_thread, stack + 65536, CLONE_FS | CLONE_FILES | CLONE_VM | SIGCHLD,
		      (int[]){ pipes[0], pipes[1], pipes[2] });
	assert_true(child > 0);
	assert_int_equal(read(pipes[0], &c, 1), 1);
	assert_int_equal(c, 'y');
	OK(tree_touch(tree, child, row_by_id(SC_openat), args, 5));
	assert_int_equal(write(pipes[3], "x", 1), 1);
	assert_int_equal(waitpid(child, NULL, 0), child);
	touch("g");
	finish();
	free(stack);
	assert_int_equal(flags_of(INITIAL, below("f")), MISSING);
	assert_int_equal(flags_of(INITIAL, below("g")), MISSING);
	assert_int_equal(flags_of(INITIAL, below("own/f")), MISSING);
	for (c = 0; c < 4; c++)
		(void)close(pipes[(unsigned char)c]);
}

/* Known directories are gone through at once, but only while they are what they were. */
static void test_known_directories(void **state)
{
	(void)state;
	assert_int_equal(mkdir("a", 0755), 0);
	assert_int_equal(mkdir("a/b", 0755), 0);
	assert_int_equal(mkdir("a/b/c", 0755), 0);
	assert_int_equal(mkdir("other", 0755), 0);
	assert_int_equal(mkdir("other/c", 0755), 0);
	write_file("other/c/f", "other");
	touch("a/b/c/1");
	touch("./a//b/./c/2");
	touch(below("a/b/c/3"));
	touch("a/b/c/../4");
	/* Others do this, so nobody tells us. */
	assert_int_equal(rename("a/b", "kept"), 0);
	assert_int_equal(symlink("../other", "a/b"), 0);
	touch("a/b/c/f");
	assert_int_equal(unlink("a/b"), 0);
	assert_int_equal(rename("other", "a/b"), 0);
	touch("a/b/c/g");
	finish();
	assert_int_equal(flags_of(INITIAL, below("a/b/c/1")), MISSING);
	assert_int_equal(flags_of(INITIAL, below("a/b/c/2")), MISSING);
	assert_int_equal(flags_of(INITIAL, below("a/b/c/3")), MISSING);
	assert_int_equal(flags_of(INITIAL, below("a/b/4")), MISSING);
	assert_int_equal(flags_of(INITIAL, below("other/c/f")), CONTENT_KEPT);
	assert_int_equal(count_entries(INITIAL, below("a/b/c/f")), 0);
	assert_int_equal(flags_of(INITIAL, below("other/c/g")), MISSING);
	assert_int_equal(count_entries(INITIAL, below("a/b")), 1);
}

static void test_listing(void **state)
{
	(void)state;
	assert_int_equal(mkdir("d", 0755), 0);
	write_file("d/touched", "t");
	write_file("d/only listed", "l");
	write_file("d/later", "later");
	assert_int_equal(symlink("x", "d/link"), 0);
	touch("d/touched");
	touch("d/made");
	write_file("d/made", "");
	touch_listing("d");
	touch_listing("d");
	touch("d/later");
	finish();
	assert_int_equal(flags_of(INITIAL, below("d")), LISTED);
	assert_int_equal(count_entries(INITIAL, below("d")), 2);
	assert_int_equal(count_entries(INITIAL, below("d/touched")), 2);
	assert_int_equal(flags_of(INITIAL, below("d/made")), MISSING);
	assert_int_equal(stat_of(INITIAL, below("d/only listed"), SIZE), 1);
	assert_int_equal(flags_of(INITIAL, below("d/only listed")), 0);
	assert_true(is_text(&entry(INITIAL, below("d/link"))->args[TARGET], "x"));
	assert_true(is_text(&entry(INITIAL, below("d/later"))->args[CONTENT], "later"));
	assert_int_equal(count_entries(FINAL, below("d/only listed")), 0);
	assert_int_equal(count_entries(FINAL, below("d/later")), 1);
}

/* What is below a directory that the program made was not there at the start. */
static void test_made_directory(void **state)
{
	(void)state;
	touch_call(SC_mkdir, "new", NULL);
	assert_int_equal(mkdir("new", 0755), 0);
	write_file("new/f", "f");
	touch("new/f");
	touch_listing("new");
	finish();
	assert_int_equal(flags_of(INITIAL, below("new")), MISSING);
	assert_int_equal(count_entries(INITIAL, below("new/f")), 0);
	assert_true(has_hash(entry(FINAL, below("new/f")), "f"));
}

/* What was there is noted under the name that it had. */
static void test_renamed_directory(void **state)
{
	(void)state;
	assert_int_equal(mkdir("old", 0755), 0);
	assert_int_equal(mkdir("old/sub", 0755), 0);
	write_file("old/sub/f", "f");
	touch_call(SC_rename, "old", "new");
	assert_int_equal(rename("old", "new"), 0);
	touch("new/sub/f");
	finish();
	assert_int_equal(flags_of(INITIAL, below("new")), MISSING);
	assert_true(is_text(&entry(INITIAL, below("old/sub/f"))->args[CONTENT], "f"));
	assert_int_equal(count_entries(INITIAL, below("new/sub/f")), 0);
	assert_true(has_hash(entry(FINAL, below("new/sub/f")), "f"));
	assert_int_equal(flags_of(FINAL, below("old")), MISSING);
}

/* Not reached from its parent, and under a name that nobody has used before. */
static void test_made_directory_as_cwd(void **state)
{
	(void)state;
	touch_call(SC_mkdir, "new", NULL);
	assert_int_equal(mkdir("new", 0755), 0);
	touch_call(SC_mkdir, "new/sub", NULL);
	assert_int_equal(mkdir("new/sub", 0755), 0);
	write_file("new/sub/f", "f");
	touch_call(SC_chdir, "new/sub", NULL);
	assert_int_equal(chdir("new/sub"), 0);
	touch_call(SC_rename, "../../new", "../../moved");
	assert_int_equal(rename("../../new", "../../moved"), 0);
	touch("f");
	assert_int_equal(chdir("../.."), 0);
	finish();
	assert_int_equal(flags_of(INITIAL, below("moved")), MISSING);
	assert_int_equal(count_entries(INITIAL, below("moved/sub/f")), 0);
	assert_true(has_hash(entry(FINAL, below("moved/sub/f")), "f"));
}

static void test_replaced_directory(void **state)
{
	(void)state;
	assert_int_equal(mkdir("d", 0755), 0);
	touch_call(SC_rmdir, "d", NULL);
	assert_int_equal(rmdir("d"), 0);
	touch_call(SC_mkdir, "d", NULL);
	assert_int_equal(mkdir("d", 0755), 0);
	write_file("d/f", "");
	touch("d/f");
	finish();
	assert_int_equal(count_entries(INITIAL, below("d")), 1);
	assert_int_equal(stat_of(INITIAL, below("d"), TYPE), 2);
	assert_int_equal(count_entries(INITIAL, below("d/f")), 0);
}

/* Others change what we look at; nothing fails, blocks or leads outside. */
static atomic_bool stop;

static void *disturb(void *arg)
{
	(void)arg;
	while (!atomic_load(&stop)) {
		(void)symlink("/etc", "swing");
		(void)unlink("swing");
		(void)mkdir("swing", 0755);
		(void)mkdir("swing/in", 0755);
		(void)rename("swing/in", "in");
		(void)rmdir("in");
		(void)rmdir("swing");
		(void)mkfifo("swing", 0644);
		(void)unlink("swing");
		(void)symlink("swing", "swing");
		(void)unlink("swing");
		(void)close(open("swing", O_CREAT | O_WRONLY | O_CLOEXEC, 0644));
		(void)truncate("swing", 900);
		(void)unlink("swing");
	}
	return NULL;
}

static unsigned int count_descriptors(void)
{
	unsigned int nr = 0;
	int fd;

	for (fd = 0; fd < 1024; fd++)
		nr += fcntl(fd, F_GETFD) >= 0;
	return nr;
}

static void test_races(void **state)
{
	unsigned int i, nr_fds = count_descriptors();
	pthread_t thread;

	(void)state;
	atomic_store(&stop, false);
	assert_int_equal(pthread_create(&thread, NULL, disturb, NULL), 0);
	for (i = 0; i < 2000; i++) {
		touch_call(SC_rename, "swing/in/deep", "swing");
		settle();
		arena_reset(&arena);
	}
	atomic_store(&stop, true);
	(void)pthread_join(thread, NULL);
	tree_end_thread(tree, getpid()); /* of what keeps a file system busy nothing stays open */
	assert_int_equal(count_descriptors(), nr_fds);
	finish();
}

/* A program with another root is told of with the names that we see. */
static void test_changed_root(void **state)
{
	struct value args[ROW_ARGS_MAX] = { value_int(AT_FDCWD),
					    value_str(&arena, "/../link/../etc") };
	pid_t child;
	int pipes[2][2];
	char c;

	(void)state;
	assert_int_equal(mkdir("jail", 0755), 0);
	assert_int_equal(mkdir("jail/d", 0755), 0);
	write_file("jail/d/f", "");
	assert_int_equal(symlink("/d", "jail/link"), 0);
	assert_true(!pipe(pipes[0]) && !pipe(pipes[1]));
	child = fork();
	if (!child) {
		(void)close(pipes[1][1]);
		c = chroot("jail") ? 'n' : 'y';
		if (write(pipes[0][1], &c, 1) == 1)
			(void)!read(pipes[1][0], &c, 1); /* until we are done */
		_exit(0);
	}
	assert_int_equal(read(pipes[0][0], &c, 1), 1);
	if (c == 'y') {
		OK(tree_touch(tree, child, row_by_id(SC_openat), args, 5));
		args[1] = value_str(&arena, "/link/f");
		OK(tree_touch(tree, child, row_by_id(SC_openat), args, 5));
		/* Its working directory is outside still. */
		args[1] = value_str(&arena, "jail/new");
		OK(tree_touch(tree, child, row_by_id(SC_openat), args, 5));
	}
	(void)close(pipes[1][1]);
	assert_int_equal(waitpid(child, NULL, 0), child);
	if (c != 'y') {
		print_message("# may not change the root directory\n");
		skip();
	}
	finish();
	assert_int_equal(flags_of(INITIAL, below("jail/etc")), MISSING);
	assert_int_equal(stat_of(INITIAL, below("jail/link"), TYPE), 3);
	assert_int_equal(stat_of(INITIAL, below("jail/d/f"), TYPE), 1);
	assert_int_equal(flags_of(INITIAL, below("jail/new")), MISSING);
	assert_int_equal(count_entries(INITIAL, "/etc"), 0);
}

/* It begins, and is gone at once. */
static pid_t thread_that_is_gone(bool is_told)
{
	pid_t child = fork();

	if (!child) {
		(void)pause();
		_exit(0);
	}
	assert_true(child > 0);
	if (is_told)
		tree_begin_thread(tree, child, 0, false);
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	return child;
}

static void touch_by(pid_t tid, const char *name)
{
	struct value args[ROW_ARGS_MAX] = { value_int(AT_FDCWD), value_str(&arena, name),
					    value_uint(0), value_uint(0) };

	OK(tree_touch_made(tree, tid, row_by_id(SC_openat), args, 5));
}

/* What it did is learned later than its end, and than that of others. */
static void test_thread_that_is_gone(void **state)
{
	pid_t first, second;

	(void)state;
	write_file("first", "1");
	write_file("second", "2");
	write_file("third", "3");
	first = thread_that_is_gone(true);
	second = thread_that_is_gone(true);
	touch_by(first, below("first"));
	tree_end_thread(tree, first);
	touch_by(second, below("second"));
	tree_end_thread(tree, second);
	second = thread_that_is_gone(true);
	touch_by(second, "third");
	finish();
	assert_int_equal(stat_of(INITIAL, below("first"), TYPE), 1);
	assert_int_equal(stat_of(INITIAL, below("second"), TYPE), 1);
	assert_int_equal(stat_of(INITIAL, below("third"), TYPE), 1);
	assert_int_equal(trace_footer(trace)->nr_losses, 0);
}

/* A thread that shares our working directory, until the pipe is shut. */
struct companion {
	pthread_t thread;
	int pipe[2], told[2];
};

static void *keep_company(void *arg)
{
	const struct companion *c = arg;
	pid_t tid = gettid();
	char end;

	if (write(c->told[1], &tid, sizeof(tid)) == sizeof(tid))
		(void)!read(c->pipe[0], &end, 1);
	return NULL;
}

static pid_t begin_companion(struct companion *c)
{
	pid_t tid;

	assert_int_equal(pipe(c->pipe), 0);
	assert_int_equal(pipe(c->told), 0);
	assert_int_equal(pthread_create(&c->thread, NULL, keep_company, c), 0);
	assert_int_equal(read(c->told[0], &tid, sizeof(tid)), sizeof(tid));
	tree_begin_thread(tree, tid, 0, true);
	return tid;
}

static void end_companion(struct companion *c)
{
	(void)close(c->pipe[1]);
	assert_int_equal(pthread_join(c->thread, NULL), 0);
	(void)close(c->pipe[0]);
	(void)close(c->told[0]);
	(void)close(c->told[1]);
}

static void begin_chdir(pid_t tid, const char *name)
{
	struct value args[ROW_ARGS_MAX] = { value_str(&arena, name) };

	OK(tree_touch(tree, tid, row_by_id(SC_chdir), args, 5));
}

/* Names of others mean the old or the new directory, until the call is over. */
static void test_chdir_of_another_thread(void **state)
{
	struct value args[ROW_ARGS_MAX] = { value_int(AT_FDCWD), value_str(&arena, "early"),
					    value_uint(O_CREAT | O_WRONLY), value_uint(0) };
	struct companion c;
	pid_t other, child;

	(void)state;
	OK(mkdir("d", 0777));
	OK(mkdir("d/e", 0777));
	write_file("d/file", "d");
	write_file("d/e/file", "e");
	other = begin_companion(&c);
	child = fork();
	if (!child) {
		(void)pause();
		_exit(0);
	}
	begin_chdir(other, "d");
	assert_true(tree_is_moving(tree, other));
	assert_false(tree_is_moving(tree, getpid()));
	OK(tree_touch_again(tree, getpid(), row_by_id(SC_openat), args));
	touch_by(child, "childs");
	/* Each of us: so it may lead to d/e, by d. */
	begin_chdir(getpid(), "d/../d/e");
	tree_leave(tree, other, 0);
	touch_by(other, "file");
	tree_leave(tree, getpid(), 0);
	assert_false(tree_is_moving(tree, other));
	touch_by(other, "late");
	assert_int_equal(kill(child, SIGKILL), 0);
	assert_int_equal(waitpid(child, NULL, 0), child);
	finish();
	end_companion(&c);
	assert_int_equal(flags_of(INITIAL, below("early")), MISSING);
	assert_int_equal(flags_of(INITIAL, below("d/early")), MISSING);
	assert_int_equal(flags_of(INITIAL, below("file")), MISSING);
	assert_int_equal(stat_of(INITIAL, below("d/file"), TYPE), 1);
	assert_int_equal(stat_of(INITIAL, below("d/e/file"), TYPE), 1);
	assert_int_equal(count_entries(INITIAL, below("childs")), 1);
	assert_int_equal(count_entries(INITIAL, below("d/childs")), 0);
	assert_int_equal(count_entries(INITIAL, below("late")), 1);
	assert_int_equal(count_entries(INITIAL, below("d/late")), 0);
	assert_int_equal(trace_footer(trace)->nr_losses, 0);
}

/* Without other threads nothing is kept open, and nothing looked up twice. */
static void test_chdir_alone(void **state)
{
	(void)state;
	OK(mkdir("d", 0777));
	begin_chdir(getpid(), "d");
	assert_false(tree_is_moving(tree, getpid()));
	finish();
	assert_int_equal(count_entries(INITIAL, below("d")), 1);
}

/* Nobody can tell where it was: nor where another one is that has its number. */
static void test_thread_that_nobody_knew(void **state)
{
	pid_t gone, known;

	(void)state;
	write_file("file", "");
	gone = thread_that_is_gone(false);
	touch_by(gone, below("file"));
	known = thread_that_is_gone(true);
	tree_end_thread(tree, known);
	touch_by(known, below("file"));
	finish();
	assert_int_equal(count_entries(INITIAL, below("file")), 0);
	assert_int_equal(trace_footer(trace)->nr_losses, 1);
}

/* It was killed before its call, which is not made then: nothing is missing. */
static void test_thread_that_was_killed(void **state)
{
	struct value args[ROW_ARGS_MAX] = { value_int(AT_FDCWD), value_str(&arena, "file"),
					    value_uint(0), value_uint(0) };

	(void)state;
	OK(tree_touch(tree, thread_that_is_gone(false), row_by_id(SC_openat), args, 5));
	finish();
	assert_int_equal(trace_footer(trace)->nr_losses, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TREE_TEST(test_which_was_listed),
		TREE_TEST(test_bases),
		TREE_TEST(test_root_has_no_parent),
		TREE_TEST(test_cwd_that_is_gone),
		TREE_TEST(test_cwd_that_moves),
		TREE_TEST(test_cwd_of_threads),
		TREE_TEST(test_known_directories),
		TREE_TEST(test_listing),
		TREE_TEST(test_made_directory),
		TREE_TEST(test_made_directory_as_cwd),
		TREE_TEST(test_renamed_directory),
		TREE_TEST(test_replaced_directory),
		TREE_TEST(test_races),
		TREE_TEST(test_changed_root),
		TREE_TEST(test_thread_that_is_gone),
		TREE_TEST(test_chdir_of_another_thread),
		TREE_TEST(test_chdir_alone),
		TREE_TEST(test_thread_that_nobody_knew),
		TREE_TEST(test_thread_that_was_killed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
