/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "base/banned.h"
#include "base/clock.h"
#include "base/heap.h"
#include "base/map.h"
#include "base/mem.h"
#include "import/block.h"

#define DEVICES_TOLD 8

struct block_device {
	uint32_t number;
	bool wanted;
	struct trace_stream *stream;
};

struct block_held {
	struct block_found found;
	struct block_device *device;
	char *comm; /* owned */
	uint64_t order; /* of arrival */
	bool ended; /* nothing more is to come */
	bool written; /* before its end came: only who awaits that still knows it */
};

struct block_feed {
	struct import *im;
	struct map devices; /* name or number -> struct block_device */
	uint32_t nr_devices;
	VEC(struct block_held *) heap; /* by issue, then arrival */
	struct arena arena;
	uint64_t nr_arrived;
	uint64_t zero_ns; /* of the inputs' clock: when the trace begins */
	bool begun;
	uint64_t wall_clock_ns, wall_ns; /* one moment on both clocks */
	bool has_wall;
};

struct block_feed *block_feed_new(struct import *im)
{
	struct block_feed *f = xcalloc(1, sizeof(*f));

	f->im = im;
	arena_init(&f->arena);
	return f;
}

void block_feed_set_wall(struct block_feed *f, uint64_t clock_ns, uint64_t wall_ns)
{
	if (f->has_wall)
		return;
	f->wall_clock_ns = clock_ns;
	f->wall_ns = wall_ns;
	f->has_wall = true;
}

/* Devices. */

/* "8,16", "8:16", a name, or the last part of a path are all what somebody may call a device. */
static bool is_called(const char *asked, const char *name, size_t len, uint64_t dev)
{
	char number[32];
	const char *slash = memrchr(name, '/', len);

	if (strlen(asked) == len && !memcmp(asked, name, len))
		return true;
	if (slash && strlen(asked) == (size_t)(name + len - slash - 1) &&
	    !memcmp(asked, slash + 1, strlen(asked)))
		return true;
	if (!dev)
		return false;
	(void)snprintf(number, sizeof(number), "%u:%u", major(dev), minor(dev));
	if (!strcmp(asked, number))
		return true;
	*strchr(number, ':') = ',';
	return !strcmp(asked, number);
}

static int note_device(struct block_feed *f, uint32_t number, const char *name, size_t len)
{
	char key[32];
	char *text = xmemdup0(name, len);
	int r;

	(void)snprintf(key, sizeof(key), "block.device.%u", number);
	r = trace_feed_meta(f->im->feed, key, text);
	free(text);
	return r;
}

static int find_device(struct block_feed *f, const struct block_found *found,
		       struct block_device **ret, struct err *err)
{
	const char *asked = f->im->block.device;
	char number[32];
	const char *name = found->device;
	size_t len = found->device_len;
	struct block_device *d;
	void **slot;
	int r = 0;

	if (!name) {
		(void)snprintf(number, sizeof(number), "%u,%u", major(found->rq.dev),
			       minor(found->rq.dev));
		name = number;
		len = strlen(number);
	}
	slot = map_slot(&f->devices, name, len);
	*ret = d = *slot;
	if (d)
		return 0;
	*ret = *slot = d = xcalloc(1, sizeof(*d));
	/* What tells no device is called as the user likes; else one is chosen. */
	d->wanted = !asked || !len || is_called(asked, name, len, found->rq.dev);
	if (!d->wanted)
		return 0;
	if (f->nr_devices >= BLK_DEVICES_MAX)
		return err_set(err, -E2BIG, "more than %u devices", BLK_DEVICES_MAX);
	d->number = f->nr_devices++;
	d->stream = trace_feed_open_stream(f->im->feed, d->number + 1, d->number + 1);
	if (!len && asked)
		r = note_device(f, d->number, asked, strlen(asked));
	else if (len)
		r = note_device(f, d->number, name, len);
	return r < 0 ? err_set(err, r, "cannot write") : 0;
}

/* The heap. */

static bool is_before(struct block_held *const *a, struct block_held *const *b)
{
	uint64_t a_ns = (*a)->found.issue_ns, b_ns = (*b)->found.issue_ns;

	return a_ns != b_ns ? a_ns < b_ns : (*a)->order < (*b)->order;
}

static struct block_held *pop(struct block_feed *f)
{
	struct block_held *first = f->heap.items[0];

	HEAP_POP(&f->heap, is_before);
	return first;
}

/* Writing. */

static int write_request(struct block_feed *f, struct block_held *h, struct err *err)
{
	struct block_found *b = &h->found;
	struct event ev = { .origin = b->origin };
	int r;

	if (!f->begun)
		f->zero_ns = b->issue_ns;
	f->begun = true;
	arena_reset(&f->arena);
	b->rq.device_no = h->device->number;
	blk_request_put(&b->rq, &f->arena, &ev);
	/* What comes before the beginning even after sorting is put there. */
	ev.enter_ns = clock_sub_ns(b->issue_ns, f->zero_ns);
	ev.exit_ns = ev.enter_ns;
	if (b->known_end && b->complete_ns > b->issue_ns)
		ev.exit_ns = clock_add_ns(ev.enter_ns, b->complete_ns - b->issue_ns);
	if (!b->known_end)
		ev.flags |= b->await_end ? EVENT_UNFINISHED : EVENT_NO_DURATION;
	if (b->no_time)
		ev.flags |= EVENT_NO_TIME;
	ev.outcome = (struct outcome){ b->err ? -1 : (int64_t)b->rq.length_bytes, b->err };
	r = trace_feed_event(f->im->feed, h->device->stream, &ev);
	if (r < 0)
		return err_set(err, r, "cannot write");
	f->im->counts.nr_events++;
	return 0;
}

static void free_held(struct block_held *h)
{
	free(h->comm);
	free(h);
}

/* Writes from the front while more than `keep` are held and the first is ended, or there are too many. */
static int drain(struct block_feed *f, size_t keep, struct err *err)
{
	int r = 0;

	while (!r && f->heap.len > keep &&
	       (f->heap.items[0]->ended || f->heap.len > BLOCK_HELD_MAX)) {
		struct block_held *h = pop(f);

		r = write_request(f, h, err);
		h->written = true;
		if (h->ended)
			free_held(h);
	}
	return r;
}

int block_feed_add(struct block_feed *f, const struct block_found *found, struct block_held **ret,
		   struct err *err)
{
	struct block_device *device = NULL;
	struct block_held *h;
	int r = find_device(f, found, &device, err);

	if (ret)
		*ret = NULL;
	if (r < 0 || !device->wanted)
		return r;
	if (found->rq.offset_bytes > INT64_MAX ||
	    found->rq.length_bytes > INT64_MAX - found->rq.offset_bytes)
		return err_set(err, -EBADMSG, "a request beyond the largest offset");
	h = xcalloc(1, sizeof(*h));
	h->found = *found;
	h->device = device;
	h->order = f->nr_arrived++;
	h->ended = !found->await_end;
	if (found->rq.comm) {
		h->comm = xmemdup0(found->rq.comm, found->rq.comm_len);
		h->found.rq.comm = h->comm;
	}
	HEAP_PUSH(&f->heap, h, is_before);
	if (ret && found->await_end)
		*ret = h;
	return drain(f, BLOCK_SORT_MAX, err);
}

void block_feed_end(struct block_held *h, uint64_t complete_ns, int32_t error)
{
	if (h->written) {
		free_held(h);
		return;
	}
	h->ended = true;
	h->found.known_end = true;
	h->found.complete_ns = complete_ns;
	h->found.err = error;
}

void block_feed_give_up(struct block_held *h)
{
	if (h->written)
		free_held(h);
	else
		h->ended = true;
}

static int write_meta(struct block_feed *f)
{
	char text[32];
	int r = trace_feed_meta(f->im->feed, "level", BLK_LEVEL);

	if (!r && f->has_wall && f->begun) {
		/* Unsigned differences: the moment may be before or after the beginning. */
		(void)snprintf(text, sizeof(text), "%llu",
			       (unsigned long long)(f->wall_ns + (f->zero_ns - f->wall_clock_ns)));
		r = trace_feed_meta(f->im->feed, "start_realtime_ns", text);
	}
	return r;
}

/* Whoever asked for a device that nobody knows wants to hear which there are. */
static int refuse_unknown(const struct block_feed *f, struct err *err)
{
	struct buf names = { 0 };
	unsigned int nr = 0;
	int r;

	MAP_EACH (&f->devices, e) {
		if (nr++ < DEVICES_TOLD)
			buf_printf(&names, "%s%.*s", nr > 1 ? ", " : "", (int)e->key_len, e->key);
	}
	r = err_set(err, -ENODEV, "no request is to device '%s'; they are to %s%s",
		    f->im->block.device, buf_str(&names), nr > DEVICES_TOLD ? " and others" : "");
	buf_release(&names);
	return r;
}

int block_feed_close(struct block_feed *f, int r, struct err *err)
{
	int s;

	if (!r)
		r = drain(f, 0, err);
	while (f->heap.len)
		free_held(pop(f));
	if (!r && f->im->block.device && !f->nr_devices && f->devices.nr_live)
		r = refuse_unknown(f, err);
	if (!r && write_meta(f) < 0)
		r = err_set(err, -EIO, "cannot write");
	MAP_EACH (&f->devices, e) {
		struct block_device *d = e->value;

		s = d->stream ? trace_feed_close_stream(f->im->feed, d->stream) : 0;
		if (s < 0 && !r)
			r = err_set(err, s, "cannot write");
		free(d);
	}
	map_release(&f->devices);
	VEC_RELEASE(&f->heap);
	arena_release(&f->arena);
	free(f);
	return r;
}
