/* SPDX-License-Identifier: MIT */
#include "import/strace_fds.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>

#include "base/banned.h"

static bool is_known(const struct strace_process *p, uint64_t fd)
{
	return fd >= STRACE_FDS_MAX || p->fds[fd / 64] >> fd % 64 & 1;
}

static void set_known(struct strace_process *p, uint64_t fd)
{
	if (fd < STRACE_FDS_MAX)
		p->fds[fd / 64] |= (uint64_t)1 << fd % 64;
}

/* What a decoration says: `/tmp/x`, `/dev/null<char 1:3>`, `pipe:[123]`, `TCP:[...]`. */
struct shown {
	const uint8_t *path;
	size_t len;
	uint32_t type; /* S_IF...; 0: it does not say */
};

static bool starts(const struct shown *s, const char *text)
{
	return s->len >= strlen(text) && !memcmp(s->path, text, strlen(text));
}

static void cut_device(struct shown *s)
{
	const uint8_t *mark = memmem(s->path, s->len, "<char ", 6);

	s->type = mark ? S_IFCHR : 0;
	if (!mark) {
		mark = memmem(s->path, s->len, "<block ", 7);
		s->type = mark ? S_IFBLK : 0;
	}
	if (mark)
		s->len = (size_t)(mark - s->path);
}

/* False: nothing that could be opened, or nothing that tells more than the calls do. */
static bool look_at(const struct strace_fd *fd, struct arena *arena, struct shown *ret)
{
	ret->path = strace_unescape(arena, fd->path, fd->path + fd->path_len, &ret->len);
	ret->type = 0;
	if (!ret->len)
		return false;
	if (ret->path[0] == '/') {
		cut_device(ret);
		if (fd->is_directory && !ret->type)
			ret->type = S_IFDIR;
		return true;
	}
	if (starts(ret, "pipe:["))
		ret->type = S_IFIFO;
	else if (!starts(ret, "anon_inode:") && memmem(ret->path, ret->len, ":[", 2))
		ret->type = S_IFSOCK;
	return ret->type != 0;
}

static int put_found(struct strace_threads *ts, struct strace_thread *t, const struct strace_fd *fd,
		     const struct shown *s, uint64_t now_ns, struct arena *arena, struct err *err)
{
	const struct row *row = row_by_id(EV_found_fd);
	struct value args[ROW_ARGS_MAX] = { { 0 } };

	*args_find(row, args, "fd") = value_uint(fd->fd);
	*args_find(row, args, "path") = value_bytes(arena, s->path, s->len);
	/* How it was opened is not told: a directory cannot have been for writing. */
	if (s->type == S_IFDIR)
		*args_find(row, args, "flags") = value_uint(O_RDONLY | O_DIRECTORY);
	/* Nor where it stood: only from some place on can its reads and writes be told apart. */
	if (!s->type)
		*args_find(row, args, "offset") = value_int(0);
	if (s->type)
		*args_find(row, args, "mode") =
			value_uint(s->type | (s->type == S_IFDIR ? 0755 : 0666));
	return strace_threads_put_now(ts, t, EV_found_fd, args, row->nr_args, now_ns, err);
}

int strace_fds_find(struct strace_threads *ts, struct strace_thread *t, const struct strace_call *c,
		    struct arena *arena, struct err *err)
{
	unsigned int i;
	int r = 0;

	for (i = 0; i < c->nr_fds && !r; i++) {
		struct shown shown;

		if (is_known(t->proc, c->fds[i].fd))
			continue;
		set_known(t->proc, c->fds[i].fd);
		if (look_at(&c->fds[i], arena, &shown))
			r = put_found(ts, t, &c->fds[i], &shown, c->ev.enter_ns, arena, err);
	}
	return r;
}

/* Descriptors in what a call gave back, wherever they stand. */
static void mark_made(struct strace_process *p, const struct arg *a, const struct value *v)
{
	const struct struct_desc *d = &struct_descs[a->struct_id];
	struct arg item = *a;
	uint32_t i;

	switch ((enum value_type)v->type) {
	case VALUE_INT:
		if (a->kind == KIND_FD)
			set_known(p, v->u);
		return;
	case VALUE_STRUCT:
		for (i = 0; i < d->nr_fields; i++) {
			const struct value *f = value_field(v, i);

			if (f)
				mark_made(p, &d->fields[i], f);
		}
		return;
	case VALUE_LIST:
		item.kind = a->elem ? a->elem : KIND_STRUCT;
		for (i = 0; i < v->count; i++)
			mark_made(p, &item, &v->items[i]);
		return;
	default:
		return;
	}
}

void strace_fds_made(struct strace_process *p, const struct event *ev)
{
	unsigned int i;

	if (ev->outcome.err || ev->outcome.ret < 0)
		return;
	if (ev->row->result == RESULT_NEW_FD)
		set_known(p, (uint64_t)ev->outcome.ret);
	switch (ev->row->id) {
	case SC_pipe:
	case SC_pipe2:
	case SC_socketpair:
	case SC_recvmsg:
	case SC_recvmmsg:
		for (i = 0; i < ev->row->nr_args; i++)
			mark_made(p, &ev->row->args[i], &ev->args[i]);
		return;
	default:
		return;
	}
}
