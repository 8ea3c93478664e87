/* SPDX-License-Identifier: MIT */
#include "cli/event_line.h"

#include "base/banned.h"
#include "model/print.h"

struct line {
	struct trace *t;
	const char *(*fd_path)(void *ctx, int fd);
	void *ctx;
};

static size_t load_start(void *ctx, const struct data *d, size_t max, const uint8_t **ret)
{
	struct line *l = ctx;
	size_t len;

	if (trace_load_piece(l->t, d, 0, ret, &len, NULL) != 1)
		return 0;
	return len < max ? len : max;
}

static const char *path_of_fd(void *ctx, int fd)
{
	struct line *l = ctx;

	return l->fd_path ? l->fd_path(l->ctx, fd) : NULL;
}

void event_line_put(struct trace *t, const struct event *ev, struct buf *b)
{
	event_line_put_paths(t, ev, NULL, NULL, b);
}

void event_line_put_paths(struct trace *t, const struct event *ev,
			  const char *(*fd_path)(void *ctx, int fd), void *ctx, struct buf *b)
{
	struct print_style style = print_human;
	struct line line = { .t = t, .fd_path = fd_path, .ctx = ctx };

	style.extras = true;
	style.ctx = &line;
	style.load = load_start;
	style.fd_path = path_of_fd;
	buf_printf(b, "%u/%u #%llu ", ev->pid, ev->tid, (unsigned long long)ev->seq);
	print_call(b, ev, &style);
}
