/* SPDX-License-Identifier: MIT */
/* Results: the same for what was recorded and for what a call gives now, whatever may differ. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/mem.h"
#include "model/kernel_structs.h"
#include "plan/result.h"
#include "sample.h"
#include "scratch.h"

static struct arena arena;

static int setup(void **state)
{
	(void)state;
	arena_init(&arena);
	return 0;
}

static int teardown(void **state)
{
	(void)state;
	arena_release(&arena);
	return 0;
}

static bool hash_of(unsigned int row, int64_t ret, const struct value *args, struct hash128 *hash)
{
	return result_hash(row_by_id(row), &(struct outcome){ .ret = ret }, args, hash);
}

/* The same data, known by the hashes of its pieces. */
static struct value by_refs(const struct value *v)
{
	struct data *d = arena_alloc(&arena, sizeof(*d));
	uint64_t i, nr = data_nr_pieces(v->data);
	struct blob_ref *refs = arena_alloc(&arena, nr * sizeof(*refs));

	*d = *v->data;
	for (i = 0; i < nr; i++) {
		uint64_t left = d->kept_bytes - i * BLOB_MAX_BYTES;

		refs[i] = (struct blob_ref){ 0 };
		refs[i].hash = hash_bytes(d->bytes + i * BLOB_MAX_BYTES,
					  left < BLOB_MAX_BYTES ? left : BLOB_MAX_BYTES);
	}
	d->bytes = NULL;
	d->refs = refs;
	return (struct value){ .type = VALUE_DATA, .data = d };
}

static const uint8_t *bytes_of(size_t len)
{
	struct rng rng = { len + 1 };
	uint8_t *p = arena_alloc(&arena, len);

	rng_fill(&rng, p, len);
	return p;
}

static void test_read(void **state)
{
	static const size_t lengths[] = { 0, 1, 64, 65, 4096, 1 << 20, (1 << 20) + 1, 3 << 20 };
	struct value args[ROW_ARGS_MAX] = { { 0 } };
	struct hash128 a, b;
	size_t i;

	(void)state;
	for (i = 0; i < ARRAY_LEN(lengths); i++) {
		size_t len = lengths[i];

		args[1] = value_bytes(&arena, bytes_of(len), len);
		assert_true(hash_of(SC_pread64, (int64_t)len, args, &a));
		b = result_hash_data(bytes_of(len), len);
		assert_true(hash_equal(a, b));
		args[1] = by_refs(&args[1]);
		assert_true(hash_of(SC_read, (int64_t)len, args, &b));
		assert_true(hash_equal(a, b));
		if (!len)
			continue;
		/* Another length than was returned, or not all of it. */
		assert_false(hash_of(SC_read, (int64_t)len - 1, args, &b) && len > 1);
		args[1].data->len_bytes++;
		assert_false(hash_of(SC_read, (int64_t)len, args, &b));
		assert_false(hash_of(SC_read, (int64_t)len + 1, args, &b));
	}
	args[1] = (struct value){ .type = VALUE_ADDR, .u = 1 };
	assert_false(hash_of(SC_read, 5, args, &a));
	assert_false(result_hash(row_by_id(SC_read), &(struct outcome){ .ret = -1, .err = 5 }, args,
				 &a));
}

static void test_pieces_matter(void **state)
{
	size_t len = (2 << 20) + 1;
	uint8_t *bytes = arena_alloc(&arena, len);
	struct hash128 before;
	size_t i;

	(void)state;
	memcpy(bytes, bytes_of(len), len);
	before = result_hash_data(bytes, len);
	for (i = 0; i < 3; i++) {
		bytes[i << 20] ^= 1;
		assert_false(hash_equal(before, result_hash_data(bytes, len)));
		bytes[i << 20] ^= 1;
	}
}

static struct value vector_of(const struct iovec *iov, uint32_t nr, bool refs)
{
	struct value v = value_list(&arena, nr);
	uint32_t i;

	for (i = 0; i < nr; i++) {
		struct value base = value_bytes(&arena, iov[i].iov_base, iov[i].iov_len);

		v.items[i] = value_struct(&arena, 3);
		v.items[i].fields->items[0] = refs ? by_refs(&base) : base;
		v.items[i].fields->items[1] = value_uint(iov[i].iov_len);
	}
	return v;
}

static void test_readv(void **state)
{
	struct iovec iov[] = {
		{ (void *)(uintptr_t)bytes_of(100), 100 },
		{ (void *)(uintptr_t)bytes_of((1 << 20) + 7), (1 << 20) + 7 },
		{ (void *)(uintptr_t)bytes_of(3), 3 },
	};
	int64_t len = 110 + (1 << 20);
	struct value args[ROW_ARGS_MAX] = { { 0 } };
	struct hash128 a, b;

	(void)state;
	args[1] = vector_of(iov, 3, false);
	assert_true(hash_of(SC_readv, len, args, &a));
	args[1] = vector_of(iov, 3, true);
	assert_true(hash_of(SC_preadv2, len, args, &b));
	assert_true(hash_equal(a, b));
	assert_true(hash_equal(a, result_hash_vec(iov, 3, (uint64_t)len)));
	assert_false(hash_of(SC_readv, len + 1, args, &b));
	/* A short read: of the second only a part was filled, and recorded. */
	iov[1].iov_len = 50;
	args[1] = vector_of(iov, 2, false);
	assert_true(hash_of(SC_readv, 150, args, &a));
	iov[1].iov_len = 90;
	assert_true(hash_equal(a, result_hash_vec(iov, 3, 150)));
}

#define STAT_FIELDS 16

static struct value stat_value(const struct stat *st)
{
	struct value v = value_struct(&arena, (1 << STAT_FIELDS) - 1);
	const uint64_t fields[STAT_FIELDS] = { st->st_dev,   st->st_ino,	   st->st_mode,
					       st->st_nlink, st->st_uid,	   st->st_gid,
					       st->st_rdev,  (uint64_t)st->st_size };
	unsigned int i;

	for (i = 0; i < STAT_FIELDS; i++)
		v.fields->items[i] = value_uint(fields[i]);
	return v;
}

static struct hash128 hash_stat_args(const struct stat *st)
{
	struct value args[ROW_ARGS_MAX] = { { 0 } };
	struct hash128 hash;

	args[1] = stat_value(st);
	assert_true(hash_of(SC_fstat, 0, args, &hash));
	assert_true(hash_equal(hash, result_hash_stat(st)));
	return hash;
}

static void test_stat(void **state)
{
	struct stat st = { .st_mode = S_IFREG | 0644, .st_nlink = 2, .st_size = 1234 };
	struct hash128 before = hash_stat_args(&st);

	(void)state;
#define CHANGES(field, value, does)                                                                \
	do {                                                                                       \
		struct stat other = st;                                                            \
                                                                                                   \
		other.field = (value);                                                             \
		assert_int_equal(!hash_equal(before, hash_stat_args(&other)), does);               \
	} while (0)
	CHANGES(st_mode, S_IFREG | 0600, true);
	CHANGES(st_mode, S_IFIFO | 0644, true);
	CHANGES(st_nlink, 1, false);
	CHANGES(st_size, 1235, true);
	CHANGES(st_rdev, 5, false);
	CHANGES(st_ino, 5, false);
	CHANGES(st_dev, 5, false);
	CHANGES(st_uid, 5, false);
	CHANGES(st_blocks, 5, false);
	CHANGES(st_mtime, 5, false);
	st.st_mode = S_IFDIR | 0755;
	before = hash_stat_args(&st);
	CHANGES(st_nlink, 99, false);
	CHANGES(st_size, 99, false);
	st.st_mode = S_IFCHR | 0666;
	before = hash_stat_args(&st);
	CHANGES(st_rdev, 0x103, true);
	CHANGES(st_size, 99, false);
#undef CHANGES
}

static void test_statx(void **state)
{
	struct statx stx;
	struct stat st;
	struct hash128 hash;

	(void)state;
	assert_int_equal(statx(AT_FDCWD, "/dev/null", 0, STATX_BASIC_STATS, &stx), 0);
	assert_int_equal(stat("/dev/null", &st), 0);
	assert_true(result_hash_statx(&stx, &hash));
	assert_true(hash_equal(hash, result_hash_stat(&st)));
	stx.stx_mask &= ~STATX_SIZE;
	assert_false(result_hash_statx(&stx, &hash));
}

/* Which field of dirent64 is which; the table says the same. */
enum {
	D_TYPE = 3,
	D_NAME = 4,
};

static struct value dirent_value(const char *name, uint64_t type, bool refs)
{
	struct value v = value_struct(&arena, 0x1f), text = value_str(&arena, name);
	unsigned int i;

	for (i = 0; i < D_TYPE; i++)
		v.fields->items[i] = value_uint((uint64_t)rand());
	v.fields->items[D_TYPE] = value_uint(type);
	v.fields->items[D_NAME] = refs ? by_refs(&text) : text;
	return v;
}

static void test_dirents_are_a_set(void **state)
{
	static const char *const names[] = { ".", "..", "a", "some name", "zz" };
	struct value args[ROW_ARGS_MAX] = { { 0 } };
	struct hash128 whole, part, sum = { 0 };
	unsigned int i, nr = ARRAY_LEN(names);

	(void)state;
	assert_string_equal(struct_descs[STRUCT_dirent64].fields[D_TYPE].name, "d_type");
	assert_string_equal(struct_descs[STRUCT_dirent64].fields[D_NAME].name, "d_name");
	args[1] = value_list(&arena, nr);
	for (i = 0; i < nr; i++)
		args[1].items[i] = dirent_value(names[i], i, false);
	assert_true(hash_of(SC_getdents64, 100, args, &whole));
	/* The other way round, and by two calls. */
	args[1] = value_list(&arena, 2);
	for (i = 0; i < 2; i++)
		args[1].items[i] = dirent_value(names[nr - 1 - i], nr - 1 - i, true);
	assert_true(hash_of(SC_getdents64, 40, args, &part));
	result_add(&sum, part);
	args[1] = value_list(&arena, nr - 2);
	for (i = 2; i < nr; i++)
		args[1].items[i - 2] = dirent_value(names[nr - 1 - i], nr - 1 - i, true);
	assert_true(hash_of(SC_getdents64, 60, args, &part));
	result_add(&sum, part);
	args[1] = value_list(&arena, 0);
	assert_true(hash_of(SC_getdents64, 0, args, &part));
	result_add(&sum, part);
	assert_true(hash_equal(whole, sum));
	/* Another type, another name. */
	for (i = 0; i < 2; i++) {
		args[1] = value_list(&arena, 1);
		args[1].items[0] = dirent_value(i ? "b" : "a", i ? 2 : 3, false);
		assert_true(hash_of(SC_getdents64, 24, args, &part));
		args[1].items[0] = dirent_value("a", 2, false);
		assert_true(hash_of(SC_getdents64, 24, args, &sum));
		assert_false(hash_equal(part, sum));
	}
	/* A run has an empty file for a device. */
	args[1].items[0] = dirent_value("a", DT_BLK, false);
	assert_true(hash_of(SC_getdents64, 24, args, &part));
	args[1].items[0] = dirent_value("a", DT_REG, false);
	assert_true(hash_of(SC_getdents64, 24, args, &sum));
	assert_true(hash_equal(part, sum));
}

/* What the kernel gives, against the values that a recorder makes of it. */
static void test_real_dirents(void **state)
{
	struct value args[ROW_ARGS_MAX] = { { 0 } };
	struct hash128 hash;
	char dir[4096], records[4096], long_name[101];
	uint32_t nr = 0;
	long len, at;
	int fd;

	(void)state;
	memset(long_name, 'l', 100);
	long_name[100] = 0;
	scratch_write(scratch_path("one"), "", 0);
	scratch_write(scratch_path(long_name), "", 0);
	(void)snprintf(dir, sizeof(dir), "%s", scratch_path("one"));
	*strrchr(dir, '/') = 0;
	fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	assert_true(fd >= 0);
	len = syscall(SYS_getdents64, fd, records, sizeof(records));
	assert_true(len > 0);
	args[1] = value_list(&arena, 100);
	for (at = 0; at < len; nr++) {
		const struct k_dirent64 *d = (const void *)(records + at);

		args[1].items[nr] = dirent_value(d->d_name, d->d_type, strlen(d->d_name) > 64);
		at += d->d_reclen;
	}
	assert_true(nr >= 4);
	args[1].count = nr;
	assert_true(hash_of(SC_getdents64, len, args, &hash));
	assert_true(hash_equal(hash, result_hash_dirents64(records, (size_t)len)));
	assert_int_equal(lseek(fd, 0, SEEK_SET), 0);
#ifdef SYS_getdents
	len = syscall(SYS_getdents, fd, records, sizeof(records));
	assert_true(len > 0);
	assert_true(hash_equal(hash, result_hash_dirents(records, (size_t)len)));
#endif
	(void)close(fd);
}

static void test_readlink_and_xattrs(void **state)
{
	static const char list[] = "user.a\0user.b", other[] = "user.b\0user.a";
	struct value args[ROW_ARGS_MAX] = { { 0 } };
	struct hash128 a, b;

	(void)state;
	args[1] = value_str(&arena, "target");
	assert_true(hash_of(SC_readlink, 6, args, &a));
	assert_true(hash_equal(a, result_hash_data("target", 6)));
	args[2] = value_bytes(&arena, bytes_of(300), 300);
	assert_true(hash_of(SC_getxattr, 300, args, &a));
	args[2] = by_refs(&args[2]);
	assert_true(hash_of(SC_lgetxattr, 300, args, &b));
	assert_true(hash_equal(a, b));
	/* Only its size was asked for. */
	args[2] = (struct value){ .type = VALUE_NULL };
	assert_false(hash_of(SC_getxattr, 300, args, &a));
	args[1] = value_bytes(&arena, list, sizeof(list));
	assert_true(hash_of(SC_listxattr, sizeof(list), args, &a));
	args[1] = value_bytes(&arena, other, sizeof(other));
	assert_true(hash_of(SC_flistxattr, sizeof(list), args, &b));
	assert_true(hash_equal(a, b));
	args[1] = value_str(&arena, "user.a");
	assert_true(hash_of(SC_listxattr, 6, args, &b));
	assert_false(hash_equal(a, b));
	args[1] = by_refs(&args[1]);
	assert_false(hash_of(SC_listxattr, 6, args, &b));

	args[4] = value_struct(&arena, 7);
	args[4].fields->items[0] = value_bytes(&arena, bytes_of(300), 300);
	args[4].fields->items[1] = value_uint(300);
	args[4].fields->items[2] = value_uint(0);
	assert_true(hash_of(SC_getxattrat, 300, args, &a));
	assert_true(hash_equal(a, result_hash_data(bytes_of(300), 300)));
}

static void test_nothing_to_compare(void **state)
{
	struct value args[ROW_ARGS_MAX] = { { 0 } };
	struct hash128 hash;
	unsigned int id;

	(void)state;
	args[0] = value_str(&arena, "x");
	args[1] = value_str(&arena, "data");
	for (id = 0; id < ROW_ID_MAX; id++) {
		const struct row *row = row_by_id(id);

		if (!row || (row_class(row) != C_NET && row_class(row) != C_OTHER &&
			     row_class(row) != C_CWD && row_class(row) != C_MAP))
			continue;
		assert_false(hash_of(id, 4, args, &hash));
	}
	assert_false(hash_of(SC_write, 4, args, &hash));
	assert_false(hash_of(SC_statfs, 0, args, &hash));
}

int main(void)
{
#define T(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		T(test_read),
		T(test_pieces_matter),
		T(test_readv),
		T(test_stat),
		T(test_statx),
		T(test_dirents_are_a_set),
		T(test_real_dirents),
		T(test_readlink_and_xattrs),
		T(test_nothing_to_compare),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
