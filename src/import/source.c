/* SPDX-License-Identifier: MIT */
#include "import/source.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/banned.h"
#include "base/mem.h"

struct file_source {
	struct import_source source;
	int fd;
	bool owned; /* standard input is not */
	struct progress *progress;
	/* The first bytes, read to see what they are and not yet handed out. */
	uint8_t held[IMPORT_MAGIC_BYTES];
	size_t nr_held;
};

static ssize_t read_fd(struct file_source *f, void *p, size_t len, struct err *err)
{
	ssize_t n;

	do {
		n = read(f->fd, p, len);
	} while (n < 0 && errno == EINTR);
	if (n < 0)
		return err_set(err, -errno, "cannot read");
	progress_add(f->progress, (uint64_t)n);
	return n;
}

static ssize_t file_read(struct import_source *s, void *p, size_t len, struct err *err)
{
	struct file_source *f = (struct file_source *)s;
	size_t n = f->nr_held < len ? f->nr_held : len;

	if (!n)
		return read_fd(f, p, len, err);
	memcpy(p, f->held, n);
	memmove(f->held, f->held + n, f->nr_held - n);
	f->nr_held -= n;
	return (ssize_t)n;
}

static void file_close(struct import_source *s)
{
	struct file_source *f = (struct file_source *)s;

	if (f->owned)
		(void)close(f->fd); /* only read from */
	free(f);
}

/* The packed source, when the file is packed, takes over the first bytes. */
static int look_inside(struct file_source *f, struct import_source **ret, struct err *err)
{
	struct import_source *unpacked = NULL;
	ssize_t n = 1;
	int r;

	while (f->nr_held < sizeof(f->held) && n > 0) {
		n = read_fd(f, f->held + f->nr_held, sizeof(f->held) - f->nr_held, err);
		if (n < 0)
			return (int)n;
		f->nr_held += (size_t)n;
	}
	r = import_source_unpack(&f->source, f->held, f->nr_held, &unpacked, err);
	if (r < 0)
		return r;
	if (unpacked)
		f->nr_held = 0;
	*ret = unpacked ? unpacked : &f->source;
	return 0;
}

int import_source_open(const char *path, struct progress *progress, struct import_source **ret,
		       struct err *err)
{
	bool owned = strcmp(path, "-") != 0;
	int fd = owned ? open(path, O_RDONLY | O_CLOEXEC) : STDIN_FILENO;
	struct file_source *f;
	int r;

	if (fd < 0)
		return err_set(err, -errno, "cannot open");
	f = xcalloc(1, sizeof(*f));
	f->source = (struct import_source){ .read = file_read, .close = file_close };
	f->fd = fd;
	f->owned = owned;
	f->progress = progress;
	r = look_inside(f, ret, err);
	if (r < 0)
		file_close(&f->source);
	return r;
}
