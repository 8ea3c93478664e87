/* SPDX-License-Identifier: MIT */
/* Trees of traces: how records add up, and making them by several threads. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <setjmp.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <sys/stat.h>
#include <unistd.h>

#include "event_text.h"
#include "sample.h"
#include "scratch.h"
#include "snapshot/contain.h"
#include "snapshot/create.h"
#include "snapshot/inside.h"
#include "snapshot/verify.h"

static struct err err;
static struct trace *traces[2];
static struct snapshot *snapshot;
static const struct snapshot_entry *entries;
static size_t nr_entries;

static int setup(void **state)
{
	err.text[0] = 0;
	return event_text_setup(state);
}

static int teardown(void **state)
{
	snapshot_free(snapshot);
	snapshot = NULL;
	trace_close(traces[0]);
	trace_close(traces[1]);
	traces[0] = traces[1] = NULL;
	return event_text_teardown(state);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static int try_load(const char *const *lines, const char *const *more_lines,
		    enum snapshot_on_conflict on_conflict)
{
	struct snapshot_source sources[2] = { 0 };
	size_t nr = 1;

	trace_from_text(scratch_path("a.trace"), lines);
	assert_int_equal(trace_open(scratch_path("a.trace"), 0, &traces[0], &err), 0);
	sources[0].records = traces[0];
	if (more_lines) {
		trace_from_text(scratch_path("b.trace"), more_lines);
		assert_int_equal(trace_open(scratch_path("b.trace"), 0, &traces[1], &err), 0);
		sources[nr++].records = traces[1];
	}
	return snapshot_load(SNAPSHOT_INITIAL, sources, nr, on_conflict, &snapshot, &err);
}

static void load(const char *const *lines)
{
	if (try_load(lines, NULL, SNAPSHOT_CONFLICT_FAIL) < 0)
		fail_msg("%s", err.text);
	entries = snapshot_entries(snapshot, &nr_entries);
}

static const struct snapshot_entry *find(const char *path)
{
	const struct snapshot_entry *e = snapshot_find(snapshot, path, strlen(path));

	assert_non_null(e);
	return e;
}

#define ENTRY(path, rest) "tree_entry(tree=initial, path=\"" path "\", " rest ")"
#define LINES(...) ((const char *const[]){ __VA_ARGS__, NULL })

/* Tests. */

static void test_order(void **state)
{
	static const char *const wanted[] = { "",    "a",   "a/b", "a/b/c", "a/b!",
					      "a/z", "a b", "a.b", "ab",    "b" };
	size_t i;

	(void)state;
	load(LINES(ENTRY("/ab", "stat={type=dir}"), ENTRY("/a.b", "stat={type=file}"),
		   ENTRY("/a/b/c", "stat={type=file}"), ENTRY("/a b", "stat={type=file}"),
		   ENTRY("/a/z", "stat={type=file}"), ENTRY("/b", "stat={type=file}"),
		   ENTRY("/a/b!", "stat={type=file}"), ENTRY("/a", "stat={type=dir}")));
	assert_int_equal(nr_entries, ARRAY_LEN(wanted));
	for (i = 0; i < nr_entries; i++) {
		assert_string_equal(entries[i].path, wanted[i]);
		assert_ptr_equal(find(wanted[i]), &entries[i]);
	}
	assert_null(snapshot_find(snapshot, "a/", 2));
	assert_int_equal(find("a")->end - (find("a") - entries), 5);
	assert_int_equal(find("a/b")->flags, SNAPSHOT_IMPLIED);
	assert_int_equal(find("a/b/c")->parent, find("a/b") - entries);
	assert_int_equal(entries[0].end, nr_entries);
}

static void test_adds_up(void **state)
{
	const struct snapshot_entry *e;

	(void)state;
	load(LINES(ENTRY("/f", "stat={type=file, mode=0600, size=7, uid=3}"),
		   ENTRY("/f", "content=\"12345\", flags=CONTENT_KEPT"),
		   ENTRY("/f", "stat={mode=0644}"), ENTRY("/gone", "flags=MISSING"),
		   ENTRY("/gone", "stat={type=file}"), ENTRY("/there", "stat={type=file, size=3}"),
		   ENTRY("/there", "flags=MISSING"),
		   ENTRY("/other", "stat={type=file, mode=0600, size=7}"),
		   ENTRY("/other", "stat={type=dir, mode=0700}, flags=LISTED"),
		   ENTRY("/what", "flags=UNREADABLE")));
	e = find("f");
	assert_int_equal(e->mode, 0644);
	assert_int_equal(e->uid, 3);
	assert_int_equal(e->size_bytes, 5);
	assert_int_equal(e->flags, SNAPSHOT_CONTENT_KEPT);
	assert_false(snapshot_exists(find("gone")));
	assert_true(snapshot_is_made(find("there")));
	assert_int_equal(find("other")->type, SNAPSHOT_DIR);
	assert_int_equal(find("other")->mode, 0700);
	assert_false(snapshot_is_made(find("what")));
	assert_int_equal(snapshot_nr_left_out(snapshot), 1);
	assert_string_equal(snapshot_first_left_out(snapshot), "what");
}

/* A name that was noted later shows what had been done by way of another. */
static void test_links(void **state)
{
	(void)state;
	load(LINES(ENTRY("/z", "stat={type=file, size=1, mode=0600, dev=1:1, ino=5, nlink=3}"),
		   ENTRY("/z", "content=\"z\""),
		   ENTRY("/a", "stat={type=file, size=9, mode=0777, dev=1:1, ino=5, nlink=3}"),
		   ENTRY("/m", "stat={type=fifo, size=9, mode=0777, dev=1:1, ino=5, nlink=3}"),
		   ENTRY("/b", "stat={type=file, size=1, dev=1:1, ino=6, nlink=1}"),
		   ENTRY("/c", "stat={type=file, size=1, dev=1:1, ino=6, nlink=1}")));
	assert_int_equal(find("z")->first_link, find("a") - entries);
	assert_int_equal(find("a")->first_link, find("a") - entries);
	assert_int_equal(find("a")->nr_links, 2);
	assert_int_equal(find("a")->mode, 0600);
	assert_int_equal(find("a")->size_bytes, 1);
	assert_non_null(find("a")->content);
	assert_int_equal(find("m")->first_link, find("m") - entries);
	assert_int_equal(find("c")->first_link, find("c") - entries);
}

static void test_identity(void **state)
{
	struct hash128 id;

	(void)state;
	load(LINES(ENTRY("/f", "stat={type=file, size=7}"), ENTRY("/d/e", "stat={type=dir}")));
	id = snapshot_identity(snapshot);
	teardown(state);
	setup(state);
	load(LINES(ENTRY("/d/e", "stat={type=dir}"), ENTRY("/f", "stat={size=7}"),
		   ENTRY("/f", "stat={type=file}")));
	assert_true(hash_equal(id, snapshot_identity(snapshot)));
	teardown(state);
	setup(state);
	load(LINES(ENTRY("/d/e", "stat={type=dir}"), ENTRY("/f", "stat={type=file, size=8}")));
	assert_false(hash_equal(id, snapshot_identity(snapshot)));
}

static void test_conflicts(void **state)
{
	static const char *const pairs[][2] = {
		{ ENTRY("/f", "stat={type=file}"), ENTRY("/f", "stat={type=dir}") },
		{ ENTRY("/f", "stat={type=file}"), ENTRY("/f", "flags=MISSING") },
		{ ENTRY("/f", "stat={type=file, size=1}"),
		  ENTRY("/f", "stat={type=file, size=2}") },
		{ ENTRY("/f", "stat={type=symlink}, target=\"a\""),
		  ENTRY("/f", "stat={type=symlink}, target=\"b\"") },
		{ ENTRY("/f", "stat={type=file}, hash=00000000000000000000000000000001"),
		  ENTRY("/f", "stat={type=file}, hash=00000000000000000000000000000002") },
	};
	size_t i;

	for (i = 0; i < ARRAY_LEN(pairs); i++) {
		assert_int_equal(
			try_load(LINES(pairs[i][0]), LINES(pairs[i][1]), SNAPSHOT_CONFLICT_FAIL),
			-EINVAL);
		assert_non_null(strstr(err.text, "a.trace and "));
		assert_non_null(strstr(err.text, "b.trace cannot share a tree: /f differs"));
		teardown(state);
		setup(state);
		assert_int_equal(
			try_load(LINES(pairs[i][0]), LINES(pairs[i][1]), SNAPSHOT_CONFLICT_FIRST),
			0);
		assert_int_equal(find("f")->source, 0);
		teardown(state);
		setup(state);
	}
	assert_int_equal(
		try_load(LINES(ENTRY("/f", "stat={type=file, size=1, mode=0600}"),
			       ENTRY("/a", "stat={type=dir}")),
			 LINES(ENTRY("/f", "stat={type=file, size=1, mode=0644}"),
			       ENTRY("/f", "content=\"x\""), ENTRY("/b", "stat={type=dir}")),
			 SNAPSHOT_CONFLICT_FAIL),
		0);
	assert_int_equal(find("f")->mode, 0600);
	assert_non_null(find("f")->content);
	assert_int_equal(find("a")->type, SNAPSHOT_DIR);
	assert_int_equal(find("b")->type, SNAPSHOT_DIR);
}

/* Filler of any offset is what it is in one go, and another for another path. */
static void test_filler(void **state)
{
	const struct snapshot_entry a = { .path = "a", .path_len = 1 };
	const struct snapshot_entry b = { .path = "b", .path_len = 1 };
	uint8_t whole[4096], part[1000], other[4096];

	(void)state;
	content_fill(&a, 0, whole, sizeof(whole));
	content_fill(&a, 2048, part, sizeof(part));
	assert_memory_equal(whole + 2048, part, sizeof(part));
	content_fill(&b, 0, other, sizeof(other));
	assert_memory_not_equal(whole, other, sizeof(whole));
}

#define NR_FILES 500

static void make_many_lines(const char **lines)
{
	static char text[NR_FILES][200];
	unsigned int i;

	for (i = 0; i < NR_FILES; i++) {
		(void)snprintf(
			text[i], sizeof(text[i]),
			ENTRY("/d%u/%u",
			      "stat={type=file, size=%u, mtime_ns=5, dev=1:1, ino=%u, nlink=2}"),
			i % 7, i, i * 10, 1 + i / 2);
		lines[i] = text[i];
	}
	lines[NR_FILES] = NULL;
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *ftw)
{
	(void)st;
	(void)type;
	(void)ftw;
	return remove(path);
}

/* What a thread does for one entry must not be in the way of another's; ThreadSanitizer looks on. */
static void test_threads(void **state)
{
	const struct snapshot_options options = { .jobs = 8 };
	struct snapshot_source source = { 0 };
	const char *lines[NR_FILES + 1], *dir = scratch_path("tree");
	struct snapshot_verdict verdict;
	struct snapshot_result res;
	int round;

	(void)state;
	make_many_lines(lines);
	load(lines);
	for (round = 0; round < 2; round++) {
		if (snapshot_create(snapshot, dir, &options, &res, &err) < 0)
			fail_msg("%s", err.text);
		assert_int_equal(res.nr_entries, NR_FILES + 7);
		assert_int_equal(res.nr_made, round ? 0 : NR_FILES + 7);
		assert_int_equal(res.nr_made + res.nr_same + res.nr_repaired, NR_FILES + 7);
	}
	source.records = traces[0];
	if (snapshot_verify(&source, dir, &(struct snapshot_verify_options){ .jobs = 8 }, &verdict,
			    &err) < 0)
		fail_msg("%s", err.text);
	assert_int_equal(verdict.nr_differences, 0);
	assert_int_equal(verdict.nr_paths, NR_FILES + 7);
	snapshot_verdict_release(&verdict);
	assert_int_equal(nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}

/* The notes of a directory can be anything. */
static void test_state(void **state)
{
	static const char *const bad[] = {
		"",
		"reprise init 2\n",
		"reprise init 1\nword\n",
		"reprise init 1\ntree 12\n",
		"reprise init 1\nentries x\n",
		"reprise init 1\nsparse_over 99999999999999999999999\n"
	};
	struct snapshot_state st = { .exclusive = true, .nr_entries = 2 }, back;
	struct snapshot_stamp stamps[2] = { { 7, 8 }, { 9, UINT64_MAX } }, *read;
	const char *dir = scratch_path("notes"), *path = scratch_path("notes/.reprise/state");
	int dir_fd, fd;
	size_t i;

	(void)state;
	assert_int_equal(mkdir(dir, 0700), 0);
	dir_fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_int_equal(snapshot_state_read(dir_fd, &back, &err), 0);
	assert_int_equal(snapshot_state_open(dir_fd, true, true, &fd, &err), 0);
	assert_int_equal(snapshot_state_open(dir_fd, true, true, &fd, &err), -EBUSY);
	VEC_PUSH(&st.traces, xstrdup("/a\nb\\x41"));
	assert_int_equal(snapshot_stamps_write(fd, &st, stamps, &err), 0);
	assert_int_equal(snapshot_state_write(fd, &st, &err), 0);
	assert_int_equal(snapshot_state_read(dir_fd, &back, &err), 1);
	assert_true(back.exclusive && !back.complete && back.nr_entries == 2);
	assert_string_equal(back.traces.items[0], "/a\nb\\x41");
	read = snapshot_stamps_read(fd, &back);
	assert_non_null(read);
	assert_int_equal(read[0].ctime_ns, 8);
	assert_int_equal(read[1].ctime_ns, 0); /* younger than the notes */
	free(read);
	back.nr_entries = UINT64_MAX;
	assert_null(snapshot_stamps_read(fd, &back));
	snapshot_state_release(&back);
	snapshot_state_release(&st);
	for (i = 0; i < ARRAY_LEN(bad); i++) {
		scratch_write(path, bad[i], strlen(bad[i]));
		assert_int_equal(snapshot_state_read(dir_fd, &back, &err), 0);
	}
	assert_int_equal(close(fd), 0);
	assert_int_equal(close(dir_fd), 0);
	assert_int_equal(nftw(dir, remove_one, 16, FTW_DEPTH | FTW_PHYS), 0);
}

/* /proc is a mount on every Linux. */
static void test_mounts(void **state)
{
	int root = open("/", O_PATH | O_DIRECTORY | O_CLOEXEC), fd;
	struct stat st, same;

	(void)state;
	assert_int_equal(contain_open(root, "proc", O_PATH, false), -EXDEV);
	assert_int_equal(contain_open(root, "proc/self", O_PATH, false), -EXDEV);
	assert_int_equal(contain_open_dir(root, "proc", false), -EXDEV);
	assert_int_equal(contain_stat(root, "proc", false, &st), -EXDEV);
	assert_int_equal(contain_chmod(root, "proc", 0555, false), -EXDEV);
	assert_int_equal(contain_check_mounts(root, &err), -EINVAL);
	fd = contain_open(root, "proc", O_PATH, true);
	assert_true(fd >= 0);
	assert_int_equal(contain_stat(root, "proc", true, &st), 0);
	assert_int_equal(fstat(fd, &same), 0);
	assert_true(st.st_dev == same.st_dev && st.st_ino == same.st_ino &&
		    st.st_mode == same.st_mode && st.st_nlink == same.st_nlink);
	assert_int_equal(close(fd), 0);
	assert_int_equal(close(root), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(test_order),    TEST(test_adds_up),   TEST(test_links),
		TEST(test_identity), TEST(test_conflicts), TEST(test_filler),
		TEST(test_threads),  TEST(test_state),	   TEST(test_mounts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
