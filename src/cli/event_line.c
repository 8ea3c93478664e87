/* SPDX-License-Identifier: MIT */
#include "cli/event_line.h"

#include "base/banned.h"
#include "model/print.h"

static size_t load_start(void *ctx, const struct data *d, size_t max, const uint8_t **ret)
{
	size_t len;

	if (trace_load_piece(ctx, d, 0, ret, &len, NULL) != 1)
		return 0;
	return len < max ? len : max;
}

void event_line_put(struct trace *t, const struct event *ev, struct buf *b)
{
	struct print_style style = print_human;

	style.extras = true;
	style.ctx = t;
	style.load = load_start;
	buf_printf(b, "%u/%u #%llu ", ev->pid, ev->tid, (unsigned long long)ev->seq);
	print_call(b, ev, &style);
}
