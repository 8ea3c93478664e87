/* SPDX-License-Identifier: MIT */
/*
 * What blkparse prints by default:
 *
 *   7,0  0  1  0.000000000 23829  Q  RM 80 + 8 [name]
 *   device cpu sequence time pid action rwbs, and what the action needs
 *
 * The summary at the end, and what stands before the first event, is passed over.
 */
#include <errno.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "base/banned.h"
#include "base/clock.h"
#include "import/block.h"
#include "model/scan.h"

struct line {
	struct block_layer_event ev;
	bool begun; /* events have come */
};

struct blkparse {
	struct import *im;
	struct block_feed *feed;
	struct block_layer *layer;
};

static bool take_number(struct scan *s, uint64_t *ret)
{
	scan_skip_space(s);
	return scan_next_is_digit(s) && !scan_take_unsigned(s, UINT64_MAX, ret);
}

/* Leading zeroes are no octal here. */
static bool take_decimal(struct scan *s, uint64_t *ret)
{
	const char *from;
	uint64_t unit = 1;

	scan_skip_space(s);
	for (from = s->pos; s->pos < s->end && *s->pos >= '0' && *s->pos <= '9';)
		s->pos++;
	return block_get_scaled(from, (size_t)(s->pos - from), unit, ret);
}

static bool take_time(struct scan *s, uint64_t *ret_ns)
{
	const char *from;

	scan_skip_space(s);
	for (from = s->pos;
	     s->pos < s->end && ((*s->pos >= '0' && *s->pos <= '9') || *s->pos == '.');)
		s->pos++;
	return block_get_scaled(from, (size_t)(s->pos - from), NS_PER_S, ret_ns);
}

static bool take_text(struct scan *s, const char **ret, size_t *ret_len)
{
	scan_skip_space(s);
	*ret = s->pos;
	while (s->pos < s->end && *s->pos != ' ' && *s->pos != '\t')
		s->pos++;
	*ret_len = (size_t)(s->pos - *ret);
	return *ret_len > 0;
}

/* "sector + sectors", "[name]" or "[error]"; whatever else there is says nothing to us. */
static bool take_tail(struct scan *s, struct block_layer_event *ev)
{
	uint64_t sectors = 0;
	const char *open, *close;

	scan_skip_space(s);
	if (scan_next_is_digit(s)) {
		if (!take_decimal(s, &ev->sector))
			return false;
		if (scan_accept(s, '+') && !take_decimal(s, &sectors))
			return false;
	}
	if (sectors > UINT64_MAX / BLK_SECTOR_BYTES)
		return false;
	ev->bytes = sectors * BLK_SECTOR_BYTES;
	open = memchr(s->pos, '[', (size_t)(s->end - s->pos));
	close = memrchr(s->pos, ']', (size_t)(s->end - s->pos));
	if (!open || !close || close < open)
		return true;
	open++;
	if (ev->action == 'C' || ev->action == 'R') {
		uint64_t error;

		open += open < close && *open == '-';
		if (block_get_scaled(open, (size_t)(close - open), 1, &error) && error < 4096)
			ev->err = (int32_t)error;
	} else if (close - open != 6 || memcmp(open, "(null)", 6) != 0) {
		ev->comm = open;
		ev->comm_len = (size_t)(close - open);
	}
	return true;
}

/* 1: an event; 0: no line of an event; -EBADMSG: one that is malformed. */
static int parse_event(const char *text, size_t len, struct block_layer_event *ev)
{
	struct scan s = { .start = text, .pos = text, .end = text + len };
	uint64_t major, minor, cpu, sequence, pid;
	const char *action, *rwbs;
	size_t action_len, rwbs_len;

	if (!take_decimal(&s, &major) || !scan_accept_here(&s, ',') || !take_decimal(&s, &minor) ||
	    !take_number(&s, &cpu) || !take_decimal(&s, &sequence) ||
	    !take_time(&s, &ev->time_ns) || !take_decimal(&s, &pid) ||
	    !take_text(&s, &action, &action_len))
		return 0;
	if (major > UINT32_MAX || minor > UINT32_MAX || cpu > INT32_MAX || pid > UINT32_MAX)
		return -EBADMSG;
	ev->dev = makedev((unsigned int)major, (unsigned int)minor);
	ev->cpu = (int32_t)cpu;
	ev->pid = (uint32_t)pid;
	ev->action = action_len == 1 ? *action : '?';
	if (!strchr("QDCR", ev->action))
		return 1; /* a merge, a plug, a message: none of ours */
	if (!take_text(&s, &rwbs, &rwbs_len) ||
	    !blk_get_rwbs(rwbs, rwbs_len, &ev->op, &ev->flags) || !take_tail(&s, ev))
		return -EBADMSG;
	return 1;
}

static int next_line(void *ctx, struct import_input *in, void *head, uint64_t *ret_ns,
		     struct err *err)
{
	struct blkparse *b = ctx;
	struct line *l = head;
	const char *text;
	size_t len;
	int r;

	while ((r = import_input_line(in, &text, &len, err)) > 0) {
		if (len && text[len - 1] == '\r')
			len--;
		l->ev = (struct block_layer_event){ .origin = in->line_no };
		r = parse_event(text, len, &l->ev);
		if (r > 0) {
			b->im->counts.nr_lines++;
			l->begun = true;
			*ret_ns = l->ev.time_ns;
			return 1;
		}
		if (!r && l->begun)
			return 0; /* the summary */
		if (!r)
			continue;
		b->im->counts.nr_lines++;
		(void)err_set(err, -EBADMSG, "this is no line of blkparse");
		r = import_reject_line(b->im, in, err);
		if (r < 0)
			return r;
	}
	return r;
}

static int take_line(void *ctx, struct import_input *in, void *head, struct err *err)
{
	struct blkparse *b = ctx;
	const struct line *l = head;

	(void)in;
	return block_layer_event(b->layer, &l->ev, err);
}

/* Whether the first lines have an event with this action. */
static bool has_action(const uint8_t *first, size_t len, char action)
{
	const char *text = (const char *)first, *end = text + len;

	while (text < end) {
		const char *eol = memchr(text, '\n', (size_t)(end - text));
		struct block_layer_event ev = { 0 };

		if (parse_event(text, (size_t)((eol ? eol : end) - text), &ev) > 0 &&
		    (!action || ev.action == action))
			return true;
		text = eol ? eol + 1 : end;
	}
	return false;
}

static int blkparse_run(struct import *im, struct err *err)
{
	struct blkparse b = { .im = im };
	struct block_merge m = {
		.head_size = sizeof(struct line), .next = next_line, .take = take_line, .ctx = &b
	};
	enum import_events events = im->block.events;
	const uint8_t *p;
	size_t len;
	int r;

	if (events == IMPORT_EVENTS_AUTO) {
		r = import_input_open(&im->inputs[0], err);
		if (!r)
			r = import_input_peek(&im->inputs[0], IMPORT_PROBE_BYTES, &p, &len, err);
		if (r < 0)
			return r;
		events = has_action(p, len, 'D') ? IMPORT_EVENTS_ISSUE : IMPORT_EVENTS_QUEUE;
	}
	b.feed = block_feed_new(im);
	b.layer = block_layer_new(b.feed, events);
	r = block_merge_run(im, &m, err);
	block_layer_free(b.layer);
	return block_feed_close(b.feed, r, err);
}

static int blkparse_probe(const uint8_t *first, size_t len)
{
	return has_action(first, len < 4096 ? len : 4096, '\0') ? 70 : 0;
}

const struct importer importer_blkparse = {
	.name = "blkparse",
	.summary = "what blkparse prints",
	.probe = blkparse_probe,
	.run = blkparse_run,
};
