/* SPDX-License-Identifier: MIT */
#include "scratch.h"

#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/banned.h"
#include "base/io.h"
#include "base/map.h"
#include "base/mem.h"

static char *dir;
static pid_t owner;
static struct map paths;

static void give_up(const char *what)
{
	perror(what);
	abort();
}

static int remove_one(const char *path, const struct stat *st, int type, struct FTW *at)
{
	(void)st;
	(void)type;
	(void)at;
	return remove(path);
}

static void remove_all(void)
{
	if (getpid() == owner)
		(void)nftw(dir, remove_one, 8, FTW_DEPTH | FTW_PHYS); /* left-overs do no harm */
	MAP_EACH (&paths, e)
		free(e->value);
	map_release(&paths);
	free(dir);
	dir = NULL;
}

static void make_dir(void)
{
	const char *tmp = getenv("TMPDIR");
	struct buf b = { 0 };

	buf_printf(&b, "%s/reprise-test-XXXXXX", tmp ? tmp : "/tmp");
	dir = xstrdup(buf_str(&b));
	buf_release(&b);
	if (!mkdtemp(dir))
		give_up("mkdtemp");
	owner = getpid();
	if (atexit(remove_all))
		give_up("atexit");
}

const char *scratch_path(const char *name)
{
	void **slot;

	if (!dir)
		make_dir();
	slot = map_slot(&paths, name, strlen(name));
	if (!*slot) {
		struct buf b = { 0 };

		buf_printf(&b, "%s/%s", dir, name);
		*slot = xstrdup(buf_str(&b));
		buf_release(&b);
	}
	return *slot;
}

void scratch_write(const char *path, const void *p, size_t len)
{
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);

	if (fd < 0 || write_full(fd, p, len) < 0 || close(fd) < 0)
		give_up(path);
}

void scratch_read(const char *path, struct buf *ret)
{
	struct err err;

	buf_clear(ret);
	if (io_read_file(path, SIZE_MAX, ret, &err) < 0)
		give_up(err.text);
}

uint64_t scratch_size(const char *path)
{
	struct stat st;

	if (stat(path, &st) < 0)
		give_up(path);
	return (uint64_t)st.st_size;
}
