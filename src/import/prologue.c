/* SPDX-License-Identifier: MIT */
#include "import/prologue.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/banned.h"
#include "base/buf.h"

/* More descriptors than a process can have by default are none. */
#define FDS_MAX (1u << 20)

void prologue_init(struct prologue *p)
{
	memset(p, 0, sizeof(*p));
	arena_init(&p->arena);
}

void prologue_release(struct prologue *p)
{
	VEC_RELEASE(&p->fds);
	arena_release(&p->arena);
}

void prologue_clear(struct prologue *p)
{
	p->cwd = NULL;
	p->fds.len = 0;
	arena_reset(&p->arena);
}

/* Arguments. */

static const struct value *arg_of(const struct event *ev, const char *name)
{
	return args_find(ev->row, (struct value *)ev->args, name);
}

/* A number, or -1. */
static int64_t number_of(const struct event *ev, const char *name)
{
	const struct value *v = arg_of(ev, name);

	return v && v->type == VALUE_INT ? v->i : -1;
}

/* The path as an absolute one, in the arena; NULL: there is none. */
static const char *path_of(struct prologue *p, const struct event *ev)
{
	const struct value *v = arg_of(ev, "path");
	struct buf path = { 0 };
	const char *ret;

	if (!v || v->type != VALUE_DATA || !v->data->bytes || !v->data->len_bytes ||
	    v->data->kept_bytes != v->data->len_bytes)
		return NULL;
	if (v->data->bytes[0] != '/' && p->cwd)
		buf_printf(&path, "%s/", p->cwd);
	buf_put(&path, v->data->bytes, (size_t)v->data->len_bytes);
	ret = arena_memdup0(&p->arena, path.data, path.len);
	buf_release(&path);
	return ret;
}

static struct prologue_fd *find_fd(struct prologue *p, int64_t fd)
{
	size_t i;

	for (i = p->fds.len; i-- > 0;)
		if (p->fds.items[i].fd == fd)
			return &p->fds.items[i];
	return NULL;
}

/* Calls. */

static int add_fd(struct prologue *p, const struct event *ev, struct prologue_fd new,
		  struct err *err)
{
	struct prologue_fd *old = find_fd(p, ev->outcome.ret);

	new.fd = ev->outcome.ret;
	if (new.fd < 0 || new.fd > INT32_MAX || p->fds.len == FDS_MAX)
		return err_set(err, -EBADMSG, "no descriptor that a process can have");
	if (old)
		*old = new;
	else
		VEC_PUSH(&p->fds, new);
	return 0;
}

static int take_open(struct prologue *p, const struct event *ev, struct err *err)
{
	struct prologue_fd new = { .path = path_of(p, ev),
				   .flags = (uint64_t)number_of(ev, "flags") };
	const struct value *dirfd = arg_of(ev, "dirfd");

	if (!new.path || (dirfd && number_of(ev, "dirfd") != AT_FDCWD))
		return err_set(err, -EBADMSG, "the prologue opens no path");
	new.flags &= ~(uint64_t)(O_CREAT | O_EXCL | O_TRUNC);
	return add_fd(p, ev, new, err);
}

static int take_seek(struct prologue *p, const struct event *ev, struct err *err)
{
	struct prologue_fd *fd = find_fd(p, number_of(ev, "fd"));

	if (!fd || number_of(ev, "whence") != SEEK_SET)
		return err_set(err, -EBADMSG, "the prologue seeks where nothing is open");
	fd->offset = ev->outcome.ret;
	return 0;
}

static int take_unlink(struct prologue *p, const struct event *ev, struct err *err)
{
	const char *path = path_of(p, ev);
	bool any = false;
	size_t i;

	for (i = 0; path && i < p->fds.len; i++) {
		struct prologue_fd *fd = &p->fds.items[i];

		if (fd->path && !strcmp(fd->path, path))
			any = fd->removed = true;
	}
	return any ? 0 : err_set(err, -EBADMSG, "the prologue removes what is not open");
}

int prologue_take(struct prologue *p, const struct event *ev, struct err *err)
{
	const struct prologue_fd nameless = { .flags = O_RDWR };

	if (ev->outcome.err || ev->flags & EVENT_UNFINISHED)
		return err_set(err, -EBADMSG, "a call of the prologue that failed");
	switch (ev->row->id) {
	case SC_chdir:
		p->cwd = path_of(p, ev);
		return p->cwd ? 0 : err_set(err, -EBADMSG, "chdir to nowhere");
	case SC_open:
	case SC_openat:
		return take_open(p, ev, err);
	case SC_lseek:
		return take_seek(p, ev, err);
	case SC_unlink:
		return take_unlink(p, ev, err);
	case SC_socket:
		return add_fd(p, ev, nameless, err);
	default:
		return err_set(err, -EBADMSG, "%s in a prologue", ev->row->name);
	}
}

/* Events. */

size_t prologue_nr_events(const struct prologue *p)
{
	return (p->cwd ? 1 : 0) + p->fds.len;
}

static struct value *arg_for(struct event *ev, const char *name)
{
	return args_find(ev->row, ev->args, name);
}

/* As /proc shows them. */
static const char *shown_path(const struct prologue_fd *fd, struct arena *a)
{
	static const char removed[] = " (deleted)";
	size_t len = strlen(fd->path);
	char *s;

	if (!fd->removed)
		return fd->path;
	s = arena_alloc(a, len + sizeof(removed));
	memcpy(s, fd->path, len);
	memcpy(s + len, removed, sizeof(removed));
	return s;
}

static void fd_event(const struct prologue_fd *fd, struct arena *a, struct event *ev)
{
	ev->row = row_by_id(EV_found_fd);
	*arg_for(ev, "fd") = value_int(fd->fd);
	*arg_for(ev, "flags") = value_uint(fd->flags);
	*arg_for(ev, "offset") = value_int(fd->offset);
	if (fd->path)
		*arg_for(ev, "path") = value_str(a, shown_path(fd, a));
	else
		*arg_for(ev, "mode") = value_uint(S_IFSOCK | 0777);
}

void prologue_event(const struct prologue *p, size_t n, struct arena *a, struct event *ret)
{
	memset(ret, 0, sizeof(*ret));
	if (p->cwd && !n) {
		ret->row = row_by_id(EV_found_state);
		*arg_for(ret, "cwd") = value_str(a, p->cwd);
		return;
	}
	fd_event(&p->fds.items[n - (p->cwd ? 1 : 0)], a, ret);
}
