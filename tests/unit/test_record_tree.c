/* SPDX-License-Identifier: MIT */
/* The trees of a recording, of paths that this process itself touches. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <limits.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/varint.h"
#include "model/print.h"
#include "record/tree.h"
#include "trace_rig.h"

enum {
	INITIAL,
	FINAL,

	LISTED = 1,
	SPECIAL = 2,
	MISSING = 4,
	CONTENT_KEPT = 16,
};

/* Arguments of tree_entry, fields of tree_stat. */
enum {
	TREE,
	PATH,
	STAT,
	TARGET,
	XATTRS,
	CONTENT,
	HASH,
	FLAGS,

	TYPE = 0,
	MODE = 1,
	SIZE = 4,
	NLINK = 7,
};

static struct tree *tree;
static char top[PATH_MAX]; /* of the test's files */
static VEC(struct item) items;

static int remove_one(const char *p, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(p);
}

static int tree_setup(void **state)
{
	static const struct tree_options options = { .content_max_bytes = 1000 };
	char name[] = "/tmp/reprise-tree-XXXXXX";

	(void)rig_setup(state);
	assert_non_null(mkdtemp(name));
	assert_non_null(realpath(name, top));
	assert_int_equal(chdir(top), 0);
	begin();
	tree = tree_new(feed, &options);
	return 0;
}

static int tree_teardown(void **state)
{
	tree_free(tree);
	VEC_RELEASE(&items);
	assert_int_equal(chdir("/"), 0);
	(void)nftw(top, remove_one, 16, FTW_DEPTH | FTW_PHYS);
	return rig_teardown(state);
}

#define TREE_TEST(name) cmocka_unit_test_setup_teardown(name, tree_setup, tree_teardown)

/* Doing. */

static void write_file(const char *name, const char *content)
{
	int fd = open(name, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, content, strlen(content)), strlen(content));
	(void)close(fd);
}

static const char *below(const char *name)
{
	static char paths[8][2 * PATH_MAX];
	static unsigned int next_path;
	char *p = paths[next_path++ % 8];

	(void)snprintf(p, sizeof(paths[0]), "%s/%s", top, name);
	return p;
}

/* openat(dirfd, path, flags) */
static void touch_at(int dirfd, const char *name, int flags)
{
	const struct row *row = row_by_id(SC_openat);
	struct value args[ROW_ARGS_MAX] = { value_int(dirfd), value_str(&arena, name),
					    value_uint((uint64_t)flags), value_uint(0) };

	OK(tree_touch(tree, getpid(), row, args, 5));
}

static void touch(const char *name)
{
	touch_at(AT_FDCWD, name, 0);
}

/* Calls with one or two paths in front. */
static void touch_call(enum row_id id, const char *a, const char *b)
{
	struct value args[ROW_ARGS_MAX] = { value_str(&arena, a),
					    b ? value_str(&arena, b) : value_int(0) };

	OK(tree_touch(tree, getpid(), row_by_id((unsigned int)id), args, 5));
}

static void touch_listing(const char *name)
{
	struct value args[ROW_ARGS_MAX] = { value_int(
		open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC)) };

	touch(name);
	OK(tree_touch(tree, getpid(), row_by_id(SC_getdents64), args, 5));
	(void)close((int)args[0].i);
}

/* Any call of the thread: the one before is over. */
static void settle(void)
{
	struct value args[ROW_ARGS_MAX] = { value_int(0) };

	OK(tree_touch(tree, getpid(), row_by_id(SC_close), args, 5));
}

/* Reading back. */

static struct data *copy_data(const struct data *given)
{
	struct data *d = arena_alloc(&arena, sizeof(*d));
	size_t len = data_nr_pieces(given) * sizeof(*d->refs);

	*d = *given;
	if (d->bytes)
		d->bytes = (uint8_t *)arena_memdup0(&arena, d->bytes, d->kept_bytes);
	if (d->refs)
		d->refs = memcpy(arena_alloc(&arena, len), d->refs, len);
	return d;
}

/* Values are valid only until the next record: what the tests ask for is kept. */
static void keep(const struct item *item)
{
	struct item copy = *item;
	unsigned int i;

	for (i = 0; i < ROW_ARGS_MAX; i++) {
		struct value *v = &copy.args[i];

		if (v->type == VALUE_DATA) {
			v->data = copy_data(v->data);
		} else if (v->type == VALUE_STRUCT) {
			size_t len = sizeof(struct fields) + v->count * sizeof(*v);

			v->fields = memcpy(arena_alloc(&arena, len), v->fields, len);
		} else if (v->type == VALUE_LIST) {
			v->items = NULL; /* only counted */
		}
	}
	VEC_PUSH(&items, copy);
}

static void finish(void)
{
	struct trace_items *it;
	struct item *item;

	OK(tree_finish(tree, 9));
	end();
	assert_whole();
	reopen();
	OK(trace_items_open(trace, BLOCK_TREE, &it, &err));
	while (trace_items_next(it, &item, &err) > 0)
		keep(item);
	trace_items_close(it);
}

static bool is_text(const struct value *v, const char *s)
{
	return v->type == VALUE_DATA && v->data->len_bytes == strlen(s) &&
	       ((v->data->bytes && !memcmp(v->data->bytes, s, strlen(s))) ||
		(!v->data->bytes && hash_equal(v->data->refs[0].hash, hash_bytes(s, strlen(s)))));
}

static unsigned int count_entries(int which, const char *name)
{
	unsigned int nr = 0;
	size_t i;

	for (i = 0; i < items.len; i++)
		nr += items.items[i].row->id == REC_tree_entry &&
		      items.items[i].args[TREE].i == which &&
		      is_text(&items.items[i].args[PATH], name);
	return nr;
}

/* The last one of the path: what is said later counts. */
static const struct item *entry(int which, const char *name)
{
	size_t i;

	for (i = items.len; i-- > 0;) {
		const struct item *item = &items.items[i];

		if (item->row->id == REC_tree_entry && item->args[TREE].i == which &&
		    is_text(&item->args[PATH], name))
			return item;
	}
	fail_msg("no entry for %s", name);
	return NULL;
}

static uint64_t flags_of(int which, const char *name)
{
	return entry(which, name)->args[FLAGS].u;
}

static int64_t stat_of(int which, const char *name, unsigned int field)
{
	const struct value *v = value_field(&entry(which, name)->args[STAT], field);

	assert_non_null(v);
	return v->i;
}

static bool has_hash(const struct item *item, const char *content)
{
	XXH128_hash_t h = XXH3_128bits(content, strlen(content));
	uint8_t expected[16];

	put_le64(expected, h.low64);
	put_le64(expected + 8, h.high64);
	return item->args[HASH].type == VALUE_DATA &&
	       !memcmp(item->args[HASH].data->bytes, expected, 16);
}

/* Tests. */

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
	assert_int_equal(count_entries(INITIAL, below("f")), 1);
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
	assert_int_equal(count_entries(INITIAL, below("one")), 1);
	assert_int_equal(count_entries(INITIAL, below("two")), 1);
	assert_int_equal(count_entries(INITIAL, below("now")), 1);
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
	assert_int_equal(count_entries(INITIAL, below("d/f")), 1);
	assert_int_equal(count_entries(INITIAL, below("d/e/g")), 1);
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
	assert_int_equal(count_entries(INITIAL, below("d/touched")), 1);
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
	touch_call(SC_exit, "", NULL); /* of what keeps a file system busy nothing stays open */
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

static void test_gone_process(void **state)
{
	struct value args[ROW_ARGS_MAX] = { value_int(AT_FDCWD), value_str(&arena, "/etc") };

	(void)state;
	OK(tree_touch(tree, INT32_MAX, row_by_id(SC_openat), args, 5));
	OK(tree_touch(tree, INT32_MAX, row_by_id(SC_getdents64), args, 5));
	finish();
	assert_int_equal(items.len, 0);
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
		TREE_TEST(test_bases),
		TREE_TEST(test_root_has_no_parent),
		TREE_TEST(test_cwd_that_is_gone),
		TREE_TEST(test_cwd_that_moves),
		TREE_TEST(test_cwd_of_threads),
		TREE_TEST(test_known_directories),
		TREE_TEST(test_found_descriptors),
		TREE_TEST(test_hard_links),
		TREE_TEST(test_special_files),
		TREE_TEST(test_xattrs),
		TREE_TEST(test_listing),
		TREE_TEST(test_made_directory),
		TREE_TEST(test_made_directory_as_cwd),
		TREE_TEST(test_renamed_directory),
		TREE_TEST(test_replaced_directory),
		TREE_TEST(test_mounts),
		TREE_TEST(test_long_paths),
		TREE_TEST(test_races),
		TREE_TEST(test_changed_root),
		TREE_TEST(test_gone_process),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
