/* SPDX-License-Identifier: MIT */
#include "import/mac_path.h"

#include <string.h>

#include "base/banned.h"

static const char fork_end[] = "/..namedfork/rsrc";
static const char by_number[] = "/.vol/";
#define FORK_END_LEN (sizeof(fork_end) - 1)
#define BY_NUMBER_LEN (sizeof(by_number) - 1)
/* The number that the root directory of each volume has. */
#define ROOT_INODE 2

bool mac_path_is_fork(const char *path, size_t len, size_t *ret_len)
{
	if (len <= FORK_END_LEN || memcmp(path + len - FORK_END_LEN, fork_end, FORK_END_LEN) != 0)
		return false;
	*ret_len = len - FORK_END_LEN;
	return true;
}

void mac_path_put_fork(struct buf *out, const char *path, size_t len)
{
	const char *slash = memrchr(path, '/', len);
	size_t dir_len = slash ? (size_t)(slash - path) + 1 : 0;

	buf_put(out, path, dir_len);
	buf_puts(out, "._");
	buf_put(out, path + dir_len, len - dir_len);
}

/* Takes a number and the slash behind it. False: there is none, or it is too large. */
static bool take_number(const char **pos, const char *end, uint64_t *ret)
{
	const char *p = *pos;
	uint64_t n = 0;

	if (p == end || *p < '0' || *p > '9')
		return false;
	for (; p < end && *p >= '0' && *p <= '9'; p++)
		if (__builtin_mul_overflow(n, 10, &n) ||
		    __builtin_add_overflow(n, (uint64_t)(*p - '0'), &n))
			return false;
	if (p < end && *p++ != '/')
		return false;
	*pos = p;
	*ret = n;
	return true;
}

/* A path by number; the root directory stands for files that nobody has named. */
static void put_by_number(struct buf *out, const char *path, size_t len, mac_path_of_inode find,
			  const void *ctx)
{
	const char *pos = path + BY_NUMBER_LEN, *end = path + len, *dir = NULL;
	uint64_t volume, inode = 0;

	if (take_number(&pos, end, &volume) && take_number(&pos, end, &inode))
		dir = inode == ROOT_INODE ? "" : find(ctx, inode);
	if (!dir) {
		buf_putc(out, '/');
		return;
	}
	buf_puts(out, dir);
	if (pos < end || !*dir)
		buf_putc(out, '/');
	buf_put(out, pos, (size_t)(end - pos));
}

static void put_file(struct buf *out, const char *path, size_t len, mac_path_of_inode find,
		     const void *ctx)
{
	if (len >= BY_NUMBER_LEN && !memcmp(path, by_number, BY_NUMBER_LEN))
		put_by_number(out, path, len, find, ctx);
	else
		buf_put(out, path, len);
}

void mac_path_put(struct buf *out, const char *path, size_t len, mac_path_of_inode find,
		  const void *ctx)
{
	struct buf file = { 0 };
	size_t fork_len;

	if (!mac_path_is_fork(path, len, &fork_len)) {
		put_file(out, path, len, find, ctx);
		return;
	}
	put_file(&file, path, fork_len, find, ctx);
	mac_path_put_fork(out, buf_str(&file), file.len);
	buf_release(&file);
}
