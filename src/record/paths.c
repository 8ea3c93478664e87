/* SPDX-License-Identifier: MIT */
#include "record/paths.h"

#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/banned.h"
#include "record/capture_inside.h"

/* One call that is looked at. */
struct look {
	const struct path_choice *choice;
	struct capture *c;
	pid_t tid;
	const struct row *row;
	const uint64_t *regs;
	bool touches; /* some path, wanted or not */
};

static bool wants(struct look *l, const char *path)
{
	l->touches = true;
	return l->choice->wants(l->choice->of, path);
}

static int64_t register_value(const struct look *l, unsigned int i, uint64_t *ret)
{
	int reg = capture_register(l->row, i);

	if (reg < 0)
		return -1;
	*ret = l->regs[reg];
	return reg;
}

/* Where a link of /proc/T leads, NUL-terminated; false when it cannot be said. */
static bool read_proc_link(pid_t tid, const char *name, char ret[PATH_MAX])
{
	static const char deleted[] = " (deleted)";
	size_t tail = sizeof(deleted) - 1;
	char link[64];
	ssize_t len;

	(void)snprintf(link, sizeof(link), "/proc/%d/%s", (int)tid, name);
	len = readlink(link, ret, PATH_MAX - 1);
	if (len <= 0)
		return false;
	ret[len] = 0;
	if ((size_t)len > tail && !strcmp(ret + len - tail, deleted))
		ret[(size_t)len - tail] = 0;
	return true;
}

static bool fd_path(pid_t tid, int fd, char ret[PATH_MAX])
{
	char name[32];

	(void)snprintf(name, sizeof(name), "fd/%d", fd);
	return fd >= 0 && read_proc_link(tid, name, ret);
}

/* Names. */

static size_t read_name(struct look *l, uint64_t addr, char ret[PATH_MAX])
{
	size_t len = 0;

	while (addr && len < PATH_MAX - 1) {
		size_t page = 4096 - (addr + len) % 4096;
		size_t want = page < PATH_MAX - 1 - len ? page : PATH_MAX - 1 - len;
		size_t got = capture_read(l->c, addr + len, ret + len, want);
		const char *nul = memchr(ret + len, 0, got);

		if (nul)
			return (size_t)(nul - ret);
		len += got;
		if (got < want)
			break;
	}
	ret[len] = 0;
	return len;
}

/* The directory that the name in argument i is relative to: an argument before it, or the cwd. */
static bool base_of(struct look *l, unsigned int i, char ret[PATH_MAX])
{
	uint64_t fd;

	while (i-- > 0 && l->row->args[i].kind != KIND_PATH) {
		if (l->row->args[i].kind != KIND_DIRFD || register_value(l, i, &fd) < 0)
			continue;
		if ((int)fd == AT_FDCWD)
			break;
		return fd_path(l->tid, (int)fd, ret);
	}
	return read_proc_link(l->tid, "cwd", ret);
}

/* Appends the parts of a name to a path without "." and ".."; false when it gets too long. */
static bool append(char path[PATH_MAX], const char *name)
{
	size_t len = strlen(path);

	while (*name) {
		size_t part = strcspn(name, "/");

		if (part == 2 && name[0] == '.' && name[1] == '.') {
			char *slash = strrchr(path, '/');

			len = slash ? (size_t)(slash - path) : len;
			path[len] = 0;
		} else if (part && !(part == 1 && name[0] == '.')) {
			if (len + part + 2 > PATH_MAX)
				return false;
			path[len++] = '/';
			memcpy(path + len, name, part);
			len += part;
			path[len] = 0;
		}
		name += part;
		name += strspn(name, "/");
	}
	return true;
}

/* What is the program's own there is the recorder's own when we look. */
static const char *skip_self(pid_t tid, const char *name, char path[PATH_MAX])
{
	static const char *const own[][2] = { { "/proc/self/", "" },
					      { "/proc/thread-self/", "" },
					      { "/dev/fd/", "/fd" } };
	unsigned int i;

	for (i = 0; i < ARRAY_LEN(own); i++) {
		size_t len = strlen(own[i][0]);

		if (strncmp(name, own[i][0], len) != 0)
			continue;
		(void)snprintf(path, PATH_MAX, "/proc/%d%s", (int)tid, own[i][1]);
		return name + len;
	}
	return name;
}

/* The name made absolute; "" is the root. */
static bool absolute(struct look *l, unsigned int i, const char *name, char ret[PATH_MAX])
{
	if (*name != '/')
		return base_of(l, i, ret) && append(ret, name);
	if (!read_proc_link(l->tid, "root", ret) || !strcmp(ret, "/"))
		ret[0] = 0;
	if (!ret[0])
		name = skip_self(l->tid, name, ret);
	return append(ret, name);
}

/* As the kernel resolves it: of a name that does not exist, its directory. */
static bool resolved(const char *path, char ret[PATH_MAX])
{
	char parent[PATH_MAX], link[32];
	const char *last = strrchr(path, '/');
	AUTO_CLOSE int fd = open(path, O_PATH | O_CLOEXEC);

	if (fd < 0 && last) {
		memcpy(parent, path, (size_t)(last - path));
		memcpy(parent + (last - path), "/", 2);
		fd = open(parent, O_PATH | O_CLOEXEC | O_DIRECTORY);
	} else {
		last = "";
	}
	if (fd < 0)
		return false;
	(void)snprintf(link, sizeof(link), "fd/%d", fd);
	return read_proc_link(getpid(), link, ret) && append(ret, last);
}

/* One that is not followed, being the last part, may be meant itself. */
static bool wants_name(struct look *l, unsigned int i, uint64_t addr)
{
	char name[PATH_MAX], path[PATH_MAX], real[PATH_MAX];

	if (!read_name(l, addr, name) && base_of(l, i, path))
		return wants(l, path); /* AT_EMPTY_PATH, or none: the descriptor itself */
	if (!absolute(l, i, name, path))
		return false;
	if (!path[0])
		memcpy(path, "/", 2);
	return wants(l, path) || (resolved(path, real) && wants(l, real));
}

static bool wants_arg(struct look *l, unsigned int i)
{
	const struct arg *a = &l->row->args[i];
	char path[PATH_MAX];
	uint64_t value;

	if (register_value(l, i, &value) < 0)
		return false;
	if (a->kind == KIND_PATH)
		return a->look != LOOK_TEXT && a->dir & ARG_IN && wants_name(l, i, value);
	return a->kind == KIND_FD && fd_path(l->tid, (int)value, path) && wants(l, path);
}

bool paths_look_up(const struct path_choice *choice, pid_t tid, int fd, bool *ret)
{
	char path[PATH_MAX];

	if (!fd_path(tid, fd, path))
		return false;
	*ret = choice->wants(choice->of, path);
	return true;
}

bool paths_want_call(const struct path_choice *choice, struct capture *c, pid_t tid,
		     const struct row *row, const uint64_t regs[6])
{
	struct look l = { .choice = choice, .c = c, .tid = tid, .row = row, .regs = regs };
	unsigned int i;

	if (!choice->wants || row_is_context(row))
		return true;
	for (i = 0; i < row->nr_args; i++) {
		if (wants_arg(&l, i))
			return true;
	}
	return !l.touches && !choice->only;
}
