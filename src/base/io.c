/* SPDX-License-Identifier: MIT */
#include "base/io.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdbool.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/banned.h"

/* Whether a failed transfer is to be tried again. A shared terminal or pipe may
 * be in non-blocking mode because another program wants it so. */
static bool may_retry(int fd, short events)
{
	struct pollfd p = { .fd = fd, .events = events };

	if (errno == EINTR)
		return true;
	if (errno != EAGAIN)
		return false;
	return poll(&p, 1, -1) >= 0 || errno == EINTR;
}

ssize_t read_full(int fd, void *p, size_t len)
{
	size_t done = 0;

	while (done < len) {
		ssize_t n = read(fd, (uint8_t *)p + done, len - done);

		if (n == 0)
			break;
		if (n > 0)
			done += (size_t)n;
		else if (!may_retry(fd, POLLIN))
			return -errno;
	}
	return (ssize_t)done;
}

ssize_t pread_full(int fd, void *p, size_t len, uint64_t offset)
{
	size_t done = 0;

	if (offset > INT64_MAX - len)
		return -EOVERFLOW;
	while (done < len) {
		ssize_t n = pread(fd, (uint8_t *)p + done, len - done, (off_t)(offset + done));

		if (n == 0)
			break;
		if (n > 0)
			done += (size_t)n;
		else if (!may_retry(fd, POLLIN))
			return -errno;
	}
	return (ssize_t)done;
}

int write_full(int fd, const void *p, size_t len)
{
	size_t done = 0;

	while (done < len) {
		ssize_t n = write(fd, (const uint8_t *)p + done, len - done);

		if (n >= 0)
			done += (size_t)n;
		else if (!may_retry(fd, POLLOUT))
			return -errno;
	}
	return 0;
}

int pwrite_full(int fd, const void *p, size_t len, uint64_t offset)
{
	size_t done = 0;

	if (offset > INT64_MAX - len)
		return -EFBIG;
	while (done < len) {
		ssize_t n =
			pwrite(fd, (const uint8_t *)p + done, len - done, (off_t)(offset + done));

		if (n >= 0)
			done += (size_t)n;
		else if (!may_retry(fd, POLLOUT))
			return -errno;
	}
	return 0;
}

int io_read_file(const char *path, size_t max_bytes, struct buf *ret, struct err *err)
{
	AUTO_CLOSE int fd = open(path, O_RDONLY | O_CLOEXEC);
	size_t before = ret->len;
	size_t step = 4096;

	if (fd < 0)
		return err_set(err, -errno, "cannot open %s", path);
	for (;; step = step < ((size_t)1 << 20) ? step * 2 : step) {
		ssize_t n = read_full(fd, buf_reserve(ret, step), step);

		if (n < 0) {
			ret->len = before;
			return err_set(err, (int)n, "cannot read %s", path);
		}
		ret->len += (size_t)n;
		if (ret->len - before > max_bytes) {
			ret->len = before;
			return err_set(err, -E2BIG, "%s: larger than %zu bytes", path, max_bytes);
		}
		if ((size_t)n < step)
			return 0;
	}
}

int io_create_file(const char *path, bool replace, unsigned int mode, struct err *err)
{
	struct stat st;
	int fd, r;

	if (replace && !lstat(path, &st) && S_ISREG(st.st_mode) && unlink(path) < 0)
		return err_set(err, -errno, "cannot replace %s", path);
	fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, IO_FILE_MODE);
	if (fd < 0)
		return errno == EEXIST ? -EEXIST : err_set(err, -errno, "cannot create %s", path);
	if (!mode || !fchmod(fd, mode))
		return fd;
	r = err_set(err, -errno, "cannot set the mode of %s", path);
	(void)close(fd); /* nothing is in it */
	(void)unlink(path);
	return r;
}
