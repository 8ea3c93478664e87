/* SPDX-License-Identifier: MIT */
#include "plan/source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/banned.h"
#include "base/io.h"
#include "base/mem.h"

/* Of each end of the file; its index is at the very end and tells most files apart. */
#define SAMPLE_BYTES ((size_t)64 << 10)

int source_path(const char *path, struct buf *ret, struct err *err)
{
	AUTO_FREE char *real = realpath(path, NULL);

	if (!real)
		return err_set(err, -errno, "cannot find out where %s is", path);
	buf_clear(ret);
	buf_puts(ret, real);
	(void)buf_str(ret);
	return 0;
}

/* Appends bytes of the file. All or a failure. */
static int sample(int fd, uint64_t from, size_t len, struct buf *ret)
{
	ssize_t n = pread_full(fd, buf_reserve(ret, len), len, from);

	if (n < 0)
		return (int)n;
	ret->len += (size_t)n;
	return (size_t)n == len ? 0 : -EIO;
}

int source_id(const char *path, struct buf *ret, struct err *err)
{
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
	struct buf bytes = { 0 };
	struct hash128 hash;
	struct stat st;
	uint64_t size;
	int r;

	if (fd < 0)
		return err_set(err, -errno, "cannot open %s", path);
	if (fstat(fd, &st) < 0)
		return err_set(err, -errno, "cannot look at %s", path);
	if (!S_ISREG(st.st_mode))
		return err_set(err, -EINVAL, "%s: not a regular file", path);
	size = (uint64_t)st.st_size;
	if (size < 2 * SAMPLE_BYTES) {
		r = sample(fd, 0, (size_t)size, &bytes);
	} else {
		r = sample(fd, 0, SAMPLE_BYTES, &bytes);
		if (!r)
			r = sample(fd, size - SAMPLE_BYTES, SAMPLE_BYTES, &bytes);
	}
	hash = hash_bytes(bytes.data, bytes.len);
	buf_release(&bytes);
	if (r < 0)
		return err_set(err, r, "cannot read %s", path);
	buf_clear(ret);
	buf_printf(ret, "%llu-%016llx%016llx", (unsigned long long)size,
		   (unsigned long long)hash.high, (unsigned long long)hash.low);
	(void)buf_str(ret);
	return 0;
}

/* 1: it is there, and the one; 0: it is another; -errno. */
static int is_it(const char *path, const char *id, struct err *err)
{
	struct buf found = { 0 };
	int r = source_id(path, &found, err);

	if (!r)
		r = !strcmp(buf_str(&found), id);
	buf_release(&found);
	return r;
}

static void put_beside(const char *plan_path, const char *path, struct buf *ret)
{
	const char *slash = strrchr(plan_path, '/'), *name = strrchr(path, '/');

	if (slash)
		buf_put(ret, plan_path, (size_t)(slash - plan_path) + 1);
	buf_puts(ret, name ? name + 1 : path);
	(void)buf_str(ret);
}

int source_open(const char *plan_path, const char *path, const char *id, struct trace **ret,
		struct err *err)
{
	struct buf beside = { 0 };
	struct err first = { "" };
	int r = is_it(path, id, &first), other;

	if (r == 1) {
		r = trace_open(path, 0, ret, err);
		goto out;
	}
	put_beside(plan_path, path, &beside);
	other = is_it(buf_str(&beside), id, NULL);
	if (other == 1) {
		r = trace_open(buf_str(&beside), 0, ret, err);
		goto out;
	}
	if (!r)
		r = err_set(err, -EBADMSG,
			    "%s: its data is in %s, but that is another trace now, or has changed",
			    plan_path, path);
	else
		r = err_wrap(err, err_set(err, -ENODATA, "%s", first.text),
			     "%s: its data is in another trace", plan_path);
out:
	buf_release(&beside);
	return r;
}
