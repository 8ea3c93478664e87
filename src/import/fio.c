/* SPDX-License-Identifier: MIT */
/*
 * fio's iologs, versions 2 and 3. A file of the log is a device. Ends of requests
 * are not known. Version 2 has no times but for `wait`, which (whatever the manual
 * says) is the time since the start of the job in milliseconds; what lies between
 * is put a microsecond apart.
 */
#include <errno.h>
#include <string.h>

#include "base/banned.h"
#include "base/clock.h"
#include "import/block.h"

#define HEADER "fio version "
#define FIELDS_MAX 6

struct entry {
	struct block_found found;
	unsigned int version; /* 0: the first line has not come */
	uint64_t now_ns;
};

struct fio {
	struct import *im;
	struct block_feed *feed;
};

struct field {
	const char *text;
	size_t len;
};

static size_t split(const char *text, size_t len, struct field f[FIELDS_MAX])
{
	const char *p = text, *end = text + len;
	size_t nr = 0;

	while (nr < FIELDS_MAX) {
		while (p < end && (*p == ' ' || *p == '\t' || *p == '\r'))
			p++;
		if (p == end)
			break;
		f[nr].text = p;
		while (p < end && *p != ' ' && *p != '\t' && *p != '\r')
			p++;
		f[nr].len = (size_t)(p - f[nr].text);
		nr++;
	}
	return nr;
}

static bool is(const struct field *f, const char *word)
{
	return f->len == strlen(word) && !memcmp(f->text, word, f->len);
}

static unsigned int version_of(const char *text, size_t len)
{
	size_t at = strlen(HEADER);

	if (len <= at || memcmp(text, HEADER, at) != 0)
		return 0;
	return text[at] == '2' || text[at] == '3' ? (unsigned int)(text[at] - '0') : 0;
}

/* What is not sent to the device. */
static bool is_file_action(const struct field *f)
{
	return is(f, "add") || is(f, "open") || is(f, "close");
}

static bool find_op(const struct field *f, enum blk_op *ret)
{
	static const struct {
		const char *word;
		enum blk_op op;
	} words[] = { { "read", BLK_READ },
		      { "write", BLK_WRITE },
		      { "trim", BLK_DISCARD },
		      { "sync", BLK_FLUSH },
		      { "datasync", BLK_FLUSH } };

	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		if (is(f, words[i].word)) {
			*ret = words[i].op;
			return true;
		}
	}
	return false;
}

static bool take_wait(struct entry *e, const struct field *f)
{
	uint64_t until_ns;

	if (!block_get_scaled(f[2].text, f[2].len, NS_PER_MS, &until_ns))
		return false;
	if (until_ns > e->now_ns)
		e->now_ns = until_ns;
	return true;
}

/* 1: a request; 0: something else; -EBADMSG with words. */
static int parse_fields(struct entry *e, const struct field *f, size_t nr, struct err *err)
{
	struct block_found *b = &e->found;

	if (e->version == 3) {
		if (!nr || !block_get_scaled(f[0].text, f[0].len, NS_PER_US, &e->now_ns))
			return err_set(err, -EBADMSG, "no time at the beginning of the line");
		f++;
		nr--;
	}
	if (nr == 2 && is_file_action(&f[1]))
		return 0;
	if (nr != 4)
		return err_set(err, -EBADMSG, "neither an action on a file nor a request");
	if (e->version == 2 && is(&f[1], "wait"))
		return take_wait(e, f) ? 0 : err_set(err, -EBADMSG, "wait for no time");
	*b = (struct block_found){ .device = f[0].text,
				   .device_len = f[0].len,
				   .no_time = e->version == 2 };
	b->rq.cpu = -1;
	if (!find_op(&f[1], &b->rq.op))
		return err_set(err, -EBADMSG, "unknown action '%.*s'", (int)f[1].len, f[1].text);
	if (!block_get_scaled(f[2].text, f[2].len, 1, &b->rq.offset_bytes) ||
	    !block_get_scaled(f[3].text, f[3].len, 1, &b->rq.length_bytes))
		return err_set(err, -EBADMSG, "offset and length are no numbers");
	if (b->rq.op == BLK_FLUSH) /* fio writes what it did last */
		b->rq.offset_bytes = b->rq.length_bytes = 0;
	if (e->version == 2)
		e->now_ns = clock_add_ns(e->now_ns, NS_PER_US);
	b->issue_ns = e->now_ns;
	return 1;
}

static int next_entry(void *ctx, struct import_input *in, void *head, uint64_t *ret_ns,
		      struct err *err)
{
	struct fio *x = ctx;
	struct entry *e = head;
	struct field f[FIELDS_MAX];
	const char *text;
	size_t len, nr;
	int r;

	while ((r = import_input_line(in, &text, &len, err)) > 0) {
		if (!e->version) {
			e->version = version_of(text, len);
			if (!e->version)
				return err_set(err, -EBADMSG, "%s: no iolog of version 2 or 3",
					       in->name);
			continue;
		}
		nr = split(text, len, f);
		x->im->counts.nr_lines++;
		if (!nr)
			continue;
		r = parse_fields(e, f, nr, err);
		if (r > 0) {
			e->found.origin = in->line_no;
			*ret_ns = e->now_ns;
			return 1;
		}
		if (r < 0)
			r = import_reject_line(x->im, in, err);
		if (r < 0)
			return r;
	}
	return r;
}

static int take_entry(void *ctx, struct import_input *in, void *head, struct err *err)
{
	struct fio *x = ctx;
	struct entry *e = head;
	int r = block_feed_add(x->feed, &e->found, NULL, err);

	return r == -EBADMSG ? import_reject_line(x->im, in, err) : r;
}

static int fio_run(struct import *im, struct err *err)
{
	struct fio x = { .im = im };
	struct block_merge m = {
		.head_size = sizeof(struct entry), .next = next_entry, .take = take_entry, .ctx = &x
	};
	int r;

	x.feed = block_feed_new(im);
	r = block_merge_run(im, &m, err);
	return block_feed_close(x.feed, r, err);
}

static int fio_probe(const uint8_t *first, size_t len)
{
	return version_of((const char *)first, len) ? 100 : 0;
}

const struct importer importer_fio = {
	.name = "fio",
	.summary = "fio's iologs, versions 2 and 3",
	.probe = fio_probe,
	.run = fio_run,
};
