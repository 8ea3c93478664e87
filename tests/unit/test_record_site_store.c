/* SPDX-License-Identifier: MIT */
/* What is found in files is the same in the next recording, or it is looked for again. */
#include <fcntl.h>
#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/io.h"
#include "record/agent/site_store.h"

static char dir[64], cache[96];

static int setup(void **state)
{
	(void)state;
	(void)snprintf(dir, sizeof(dir), "/tmp/reprise-sites-XXXXXX");
	assert_non_null(mkdtemp(dir));
	(void)snprintf(cache, sizeof(cache), "%s/a/b", dir);
	return 0;
}

static int teardown(void **state)
{
	char command[128];

	(void)state;
	(void)snprintf(command, sizeof(command), "rm -rf %s", dir);
	assert_int_equal(system(command), 0);
	return 0;
}

#define STORE_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

static int find_libc(struct dl_phdr_info *info, size_t size, void *ret)
{
	(void)size;
	if (strstr(info->dlpi_name, "libc.so"))
		(void)snprintf(ret, 4096, "%s", info->dlpi_name);
	return 0;
}

/* Sites and key of the C library that we run with. */
static void look_through_libc(struct sites *ret, struct site_key *ret_key)
{
	char path[4096] = "";
	struct stat st;
	void *p;
	int fd;

	(void)dl_iterate_phdr(find_libc, path);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0 && !fstat(fd, &st));
	site_store_key(fd, &st, ret_key);
	p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	assert_true(p != MAP_FAILED);
	sites_find(p, (size_t)st.st_size, ret);
	(void)munmap(p, (size_t)st.st_size);
	(void)close(fd);
	assert_true(ret->list.len > 100);
}

static void assert_equal(const struct sites *a, const struct sites *b)
{
	size_t i;

	assert_int_equal(a->list.len, b->list.len);
	assert_int_equal(a->nr_left, b->nr_left);
	for (i = 0; i < a->list.len; i++) {
		const struct site *x = &a->list.items[i], *y = &b->list.items[i];
		unsigned int k;

		assert_int_equal(x->window, y->window);
		assert_int_equal(x->syscall, y->syscall);
		assert_int_equal(x->nr, y->nr);
		assert_int_equal(x->pad_bytes, y->pad_bytes);
		assert_int_equal(x->used, y->used);
		assert_int_equal(x->window_bytes, y->window_bytes);
		assert_memory_equal(x->bytes, y->bytes, x->window_bytes);
		assert_int_equal(x->nr_insns, y->nr_insns);
		for (k = 0; k < x->nr_insns; k++) {
			assert_int_equal(x->insns[k].len_bytes, y->insns[k].len_bytes);
			assert_int_equal(x->insns[k].kind, y->insns[k].kind);
			assert_int_equal(x->insns[k].disp, y->insns[k].disp);
			assert_int_equal(x->insns[k].disp_at, y->insns[k].disp_at);
			assert_int_equal(x->insns[k].condition, y->insns[k].condition);
		}
	}
}

static void test_found_and_stored(void **state)
{
	struct site_store *s = site_store_open(dir, "a/b");
	struct sites found, loaded;
	struct site_key key;

	(void)state;
	assert_non_null(s);
	assert_true(site_store_is_empty(s));
	look_through_libc(&found, &key);
	if (!key.text[0]) {
		print_message("# the C library has no build-id\n");
		skip();
	}
	found.list.items[7].used = true;
	assert_false(site_store_load(s, &key, &loaded));
	site_store_save(s, &key, &found);
	site_store_close(s);

	s = site_store_open(dir, "a/b");
	assert_false(site_store_is_empty(s));
	assert_true(site_store_load(s, &key, &loaded));
	assert_equal(&found, &loaded);
	assert_true(loaded.list.items[7].used && !loaded.list.items[8].used);
	sites_release(&loaded);
	site_store_close(s);
	sites_release(&found);
}

/* A copy of the C library by that name in our directory, with its times. */
static int copy_libc(const char *name, char ret_path[512])
{
	char from[4096] = "", command[8192];

	(void)dl_iterate_phdr(find_libc, from);
	(void)snprintf(ret_path, 512, "%s/%s", dir, name);
	(void)snprintf(command, sizeof(command), "cp -pL %s %s", from, ret_path);
	assert_int_equal(system(command), 0);
	return open(ret_path, O_RDONLY | O_CLOEXEC);
}

/* A program can copy a file with its build-id, size and times, and change what it holds: that is another one. */
static void test_tells_copies_apart(void **state)
{
	struct site_key keys[2];
	struct timespec times[2];
	struct stat st[2];
	char path[512];
	int fds[2];
	unsigned int i;

	(void)state;
	for (i = 0; i < 2; i++) {
		fds[i] = copy_libc(i ? "second" : "first", path);
		assert_true(fds[i] >= 0 && !fstat(fds[i], &st[i]));
		site_store_key(fds[i], &st[i], &keys[i]);
	}
	assert_int_equal(st[0].st_mtim.tv_nsec, st[1].st_mtim.tv_nsec);
	if (!keys[0].text[0]) {
		print_message("# the C library has no build-id\n");
		skip();
	}
	assert_string_not_equal(keys[0].text, keys[1].text);
	/* Also when it is the same file later on. */
	times[0] = st[1].st_atim;
	times[1] = st[1].st_mtim;
	do
		assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
	while (!stat(path, &st[0]) && !memcmp(&st[0].st_ctim, &st[1].st_ctim, sizeof(*times)));
	site_store_key(fds[1], &st[0], &keys[0]);
	assert_string_not_equal(keys[0].text, keys[1].text);
	(void)close(fds[0]);
	(void)close(fds[1]);
}

/* A file is read, not mapped: so it may be cut while it is looked through. */
static void test_cut_file(void **state)
{
	struct sites found, again;
	struct site_key key;
	struct stat st;
	char path[512];
	int fd = copy_libc("cut", path);

	(void)state;
	look_through_libc(&found, &key);
	assert_true(fd >= 0 && !fstat(fd, &st));
	assert_true(sites_find_in_file(fd, (size_t)st.st_size, &again));
	assert_equal(&found, &again);
	sites_release(&again);
	assert_int_equal(truncate(path, 100000), 0);
	assert_false(sites_find_in_file(fd, (size_t)st.st_size, &again));
	assert_int_equal(truncate(path, 0), 0);
	assert_false(sites_find_in_file(fd, (size_t)st.st_size, &again));
	sites_release(&found);
	(void)close(fd);
}

/* A small file of the store. */
static void store_one(struct site_store *s, const struct site_key *key)
{
	struct site one = { .window = 100, .nr_insns = 1, .window_bytes = 5 };
	struct sites sites = { .list = { .items = &one, .len = 1, .cap = 1 }, .nr_left = 3 };

	memcpy(one.bytes, "\xb8\x27\x00\x00\x00", 5); /* mov $39, %eax */
	one.syscall = 105;
	site_store_save(s, key, &sites);
}

static void open_stored(const struct site_key *key, uint8_t *ret, size_t *ret_len)
{
	char path[512];
	int fd;
	ssize_t n;

	(void)snprintf(path, sizeof(path), "%s/%s", cache, key->text);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(fd >= 0);
	n = read_full(fd, ret, 256);
	assert_true(n > 0);
	*ret_len = (size_t)n;
	(void)close(fd);
}

/* Whatever byte of it is another one, or missing, it is not believed. */
static void test_damaged(void **state)
{
	struct site_store *s = site_store_open(dir, "a/b");
	struct site_key key = { "ab12-3-4" };
	uint8_t bytes[256];
	struct sites loaded;
	size_t len, i;

	(void)state;
	store_one(s, &key);
	open_stored(&key, bytes, &len);
	assert_true(site_store_parse(&key, bytes, len, &loaded));
	assert_int_equal(loaded.list.items[0].nr, 39);
	assert_int_equal(loaded.nr_left, 3);
	sites_release(&loaded);
	/* Nor is it by another name. */
	assert_false(site_store_parse(&(struct site_key){ "ab12-3-5" }, bytes, len, &loaded));
	for (i = 0; i < len; i++) {
		bytes[i] ^= 0x40;
		assert_false(site_store_parse(&key, bytes, len, &loaded));
		bytes[i] ^= 0x40;
		assert_false(site_store_parse(&key, bytes, i, &loaded));
	}
	site_store_close(s);
}

/* What others could have written is not read, and nothing of theirs is written to. */
static void test_others(void **state)
{
	struct site_store *s = site_store_open(dir, "a/b");
	struct site_key key = { "cd-1-2" };
	struct sites loaded;
	char path[512];

	(void)state;
	store_one(s, &key);
	(void)snprintf(path, sizeof(path), "%s/%s", cache, key.text);
	assert_int_equal(chmod(path, 0666), 0);
	assert_false(site_store_load(s, &key, &loaded));
	assert_int_equal(chmod(path, 0600), 0);
	assert_true(site_store_load(s, &key, &loaded));
	sites_release(&loaded);
	assert_int_equal(unlink(path), 0);
	assert_int_equal(symlink("/etc/passwd", path), 0);
	assert_false(site_store_load(s, &key, &loaded));
	site_store_close(s);
	(void)snprintf(path, sizeof(path), "%s/moved", dir);
	assert_int_equal(chmod(cache, 0777), 0);
	assert_null(site_store_open(dir, "a/b"));
	assert_int_equal(chmod(cache, 0700), 0);
	assert_int_equal(rename(cache, path), 0);
	assert_int_equal(symlink(path, cache), 0);
	assert_null(site_store_open(dir, "a/b"));
	assert_null(site_store_open("/proc", "none"));
	(void)snprintf(path, sizeof(path), "%s/none", dir);
	assert_null(site_store_open(path, "a"));
	assert_int_equal(access(path, F_OK), -1);
	if (geteuid() == 0) {
		assert_int_equal(mkdir(path, 0755), 0);
		assert_int_equal(chown(path, 12345, 12345), 0);
		assert_null(site_store_open(path, "a"));
	}
}

/* It does not grow for ever, and of files that are not its own it removes none. */
static void test_many(void **state)
{
	struct site_store *s = site_store_open(dir, "a/b");
	struct site_key key;
	struct sites loaded;
	char path[512];
	unsigned int i;

	(void)state;
	(void)snprintf(path, sizeof(path), "%s/precious", cache);
	assert_true(close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600)) == 0);
	for (i = 0; i < 1030; i++) {
		(void)snprintf(key.text, sizeof(key.text), "%x-1-2", i);
		store_one(s, &key);
	}
	assert_true(site_store_load(s, &key, &loaded));
	sites_release(&loaded);
	assert_false(site_store_load(s, &(struct site_key){ "5-1-2" }, &loaded));
	assert_int_equal(access(path, F_OK), 0);
	site_store_close(s);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		STORE_TEST(test_found_and_stored), STORE_TEST(test_tells_copies_apart),
		STORE_TEST(test_cut_file),	   STORE_TEST(test_damaged),
		STORE_TEST(test_others),	   STORE_TEST(test_many),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
