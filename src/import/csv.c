/* SPDX-License-Identifier: MIT */
/*
 * Block traces as text: a line for each request, columns as csv_layouts.def or
 * the user (--columns) says.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/sysmacros.h>

#include "base/banned.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/strings.h"
#include "import/block.h"
#include "model/vocab.h"

#define CSV_COLUMNS_MAX 64
#define PROBE_LINES 16
/* From 1601 to 1970. */
#define FILETIME_EPOCH_S UINT64_C(11644473600)

enum csv_field {
	CSV_TIME,
	CSV_OP,
	CSV_OFFSET,
	CSV_LENGTH,
	CSV_NEEDED, /* the fields before it must be there */
	CSV_LATENCY = CSV_NEEDED,
	CSV_DEVICE,
	CSV_DEVICE2, /* a second part of its name */
	CSV_FLAGS,
	CSV_PID,
	CSV_COMM,
	CSV_FIELD_MAX,
};

enum csv_ops {
	CSV_OPS_WORDS,
	CSV_OPS_WRITE_1, /* 0 read, 1 write */
	CSV_OPS_WRITE_1_REPLIES, /* the same, and others are no requests */
	CSV_OPS_READ_1, /* bit 0: read */
};

enum csv_epoch { CSV_EPOCH_NONE, CSV_EPOCH_1970, CSV_EPOCH_1601 };

struct csv_layout {
	const char *name, *summary;
	char separator; /* 0: a comma; ' ': any number of blanks */
	char join; /* between the two parts of a device's name */
	uint8_t min_columns, max_columns; /* of lines; max 0: there is a header line */
	int8_t at[CSV_FIELD_MAX]; /* the column, from 1, or negative from the last; 0: none */
	const char *named[CSV_FIELD_MAX]; /* in the header */
	int8_t comm_to; /* the last column of COMM, when it may be several */
	enum csv_ops ops;
	enum csv_epoch epoch;
	uint64_t time_unit_ns, latency_unit_ns, offset_unit, length_unit;
	uint64_t whole_unit_ns; /* of times without a fraction; 0: the same */
	uint64_t
		time_plausible_s; /* no time is before it: for layouts that look like any numbers */
	bool time_is_end; /* of the request, not its begin */
	bool op_may_lack;
	bool skip_others; /* lines that do not fit are none of ours */
	bool suffixes; /* names in the header end with a type, numbers may with a multiplier */
};

#define COLUMN(field, n) .at[CSV_##field] = (n)
#define NAMED(field, text) .named[CSV_##field] = (text)
#define LAYOUT(id, words, ...)                                                                     \
	static const struct csv_layout layout_##id = { .name = #id,                                \
						       .summary = (words),                         \
						       __VA_ARGS__ };
#include "import/csv_layouts.def"
#undef LAYOUT

struct column {
	const char *text;
	size_t len;
};

/* One input at work. */
struct csv_state {
	struct csv_layout layout; /* its own: a header fills in columns */
	bool ready; /* the header, if any, has come */
	bool unit_known;
	struct column columns[CSV_COLUMNS_MAX];
	size_t nr_columns;
	struct buf device;
	struct block_found found;
};

struct csv {
	struct import *im;
	const struct csv_layout *layout;
	struct block_feed *feed;
};

static uint64_t unit_or(uint64_t unit, uint64_t usual)
{
	return unit ? unit : usual;
}

/* Columns. */

static void trim(struct column *c)
{
	while (c->len && (c->text[0] == ' ' || c->text[0] == '\t'))
		c->text++, c->len--;
	while (c->len && (c->text[c->len - 1] == ' ' || c->text[c->len - 1] == '\t'))
		c->len--;
}

/* False: more columns than there can be. */
static bool split(struct csv_state *s, const char *text, size_t len)
{
	const char *p = text, *end = text + len;
	char separator = s->layout.separator ? s->layout.separator : ',';

	s->nr_columns = 0;
	while (p <= end) {
		const char *stop = p;
		struct column c;

		while (separator == ' ' && p < end && (*p == ' ' || *p == '\t'))
			p++;
		if (separator == ' ' && p == end)
			break;
		for (stop = p; stop < end; stop++) {
			if (*stop == separator || (separator == ' ' && *stop == '\t'))
				break;
		}
		c = (struct column){ p, (size_t)(stop - p) };
		trim(&c);
		if (s->nr_columns == CSV_COLUMNS_MAX)
			return false;
		s->columns[s->nr_columns++] = c;
		p = stop + 1;
	}
	return true;
}

/* NULL: the layout has none, or the line is too short for it. */
static const struct column *column_at(const struct csv_state *s, int at)
{
	size_t n = at < 0 ? s->nr_columns - (size_t)-at : (size_t)at - 1;

	return at && n < s->nr_columns ? &s->columns[n] : NULL;
}

static const struct column *column_of(const struct csv_state *s, enum csv_field field)
{
	return column_at(s, s->layout.at[field]);
}

static bool name_is(const struct csv_state *s, const struct column *c, const char *name)
{
	size_t len = strlen(name);

	if (c->len < len || strncasecmp(c->text, name, len) != 0)
		return false;
	return c->len == len || (s->layout.suffixes && c->len == len + 2 && c->text[len] == '.');
}

/* Whether the line is the header: then columns are where it says. */
static bool take_header(struct csv_state *s, const char *text, size_t len)
{
	struct csv_layout *l = &s->layout;

	if (len && *text == '#')
		text++, len--;
	if (!split(s, text, len))
		return false;
	memset(l->at, 0, sizeof(l->at));
	for (size_t i = 0; i < s->nr_columns; i++) {
		for (unsigned int f = 0; f < CSV_FIELD_MAX; f++) {
			if (l->named[f] && name_is(s, &s->columns[i], l->named[f]))
				l->at[f] = (int8_t)(i + 1);
		}
	}
	for (unsigned int f = 0; f < CSV_NEEDED; f++) {
		if (!l->at[f])
			return false;
	}
	l->min_columns = 1;
	l->max_columns = CSV_COLUMNS_MAX;
	return true;
}

/* Fields. */

static bool is_hex(const struct column *c)
{
	return c->len > 2 && c->text[0] == '0' && (c->text[1] == 'x' || c->text[1] == 'X');
}

static bool get_hex(const struct column *c, uint64_t unit, uint64_t *ret)
{
	uint64_t v = 0;

	for (size_t i = 2; i < c->len; i++) {
		char ch = (char)(c->text[i] | 0x20);
		int digit = ch >= '0' && ch <= '9' ? ch - '0' : ch - 'a' + 10;

		if (digit < 0 || digit > 15 || v >> 60)
			return false;
		v = v << 4 | (unsigned int)digit;
	}
	return !__builtin_mul_overflow(v, unit, ret);
}

/* hfplayer's: 64k, 1.5s. */
static uint64_t multiplier(char c)
{
	switch (c) {
	case 'k':
		return UINT64_C(1) << 10;
	case 'm':
		return UINT64_C(1) << 20;
	case 'g':
		return UINT64_C(1) << 30;
	case 's':
		return 1000000;
	case 'h':
		return UINT64_C(3600000000);
	}
	return 0;
}

static bool get_number(const struct csv_state *s, const struct column *c, uint64_t unit,
		       uint64_t *ret)
{
	uint64_t factor = s->layout.suffixes && c->len ? multiplier(c->text[c->len - 1]) : 0;

	if (is_hex(c))
		return get_hex(c, unit, ret);
	if (factor && __builtin_mul_overflow(unit, factor, &unit))
		return false;
	return block_get_scaled(c->text, c->len - (factor != 0), unit, ret);
}

static bool find_word(const struct column *c, enum blk_op *ret)
{
	static const struct {
		const char *word;
		enum blk_op op;
	} words[] = {
		{ "R", BLK_READ },	    { "W", BLK_WRITE },	      { "Read", BLK_READ },
		{ "Write", BLK_WRITE },	    { "RD", BLK_READ },	      { "WR", BLK_WRITE },
		{ "RS", BLK_READ },	    { "WS", BLK_WRITE },      { "DiskRead", BLK_READ },
		{ "DiskWrite", BLK_WRITE }, { "D", BLK_DISCARD },     { "discard", BLK_DISCARD },
		{ "trim", BLK_DISCARD },    { "unmap", BLK_DISCARD }, { "F", BLK_FLUSH },
		{ "flush", BLK_FLUSH },	    { "sync", BLK_FLUSH },
	};
	uint64_t v;

	for (size_t i = 0; i < ARRAY_LEN(words); i++) {
		if (strlen(words[i].word) == c->len &&
		    !strncasecmp(words[i].word, c->text, c->len)) {
			*ret = words[i].op;
			return true;
		}
	}
	if (!c->len || (c->text[0] >= '0' && c->text[0] <= '9') ||
	    !vocab_parse(SET_block_ops, c->text, c->len, &v) || v >= BLK_OP_MAX)
		return false;
	*ret = (enum blk_op)v;
	return true;
}

/* 1; 0: this line is no request; -EBADMSG. */
static int get_op(const struct csv_state *s, const struct column *c, enum blk_op *ret)
{
	uint64_t v;

	if (!c->len && s->layout.op_may_lack) {
		*ret = BLK_OTHER;
		return 1;
	}
	if (s->layout.ops == CSV_OPS_WORDS)
		return find_word(c, ret) ? 1 : -EBADMSG;
	if (!block_get_scaled(c->text, c->len, 1, &v) || memchr(c->text, '.', c->len))
		return -EBADMSG;
	if (s->layout.ops == CSV_OPS_READ_1) {
		*ret = v & 1 ? BLK_READ : BLK_WRITE;
		return v <= 0xff ? 1 : -EBADMSG;
	}
	*ret = v ? BLK_WRITE : BLK_READ;
	if (v > 1)
		return s->layout.ops == CSV_OPS_WRITE_1_REPLIES ? 0 : -EBADMSG;
	return 1;
}

static bool get_time(struct csv_state *s, uint64_t *ret_ns)
{
	const struct column *c = column_of(s, CSV_TIME);
	struct csv_layout *l = &s->layout;
	uint64_t unit = unit_or(l->time_unit_ns, NS_PER_S);

	if (!s->unit_known && l->whole_unit_ns && !memchr(c->text, '.', c->len))
		unit = l->time_unit_ns = l->whole_unit_ns;
	if (!get_number(s, c, unit, ret_ns))
		return false;
	if (l->time_plausible_s && *ret_ns / NS_PER_S < l->time_plausible_s)
		return false;
	s->unit_known = true;
	return true;
}

static void get_device(struct csv_state *s)
{
	const struct column *a = column_of(s, CSV_DEVICE), *b = column_of(s, CSV_DEVICE2);
	uint64_t high, low;

	buf_clear(&s->device);
	if (a)
		buf_put(&s->device, a->text, a->len);
	if (b) {
		buf_putc(&s->device, s->layout.join);
		buf_put(&s->device, b->text, b->len);
	}
	if (b && s->layout.join == ',' && block_get_scaled(a->text, a->len, 1, &high) &&
	    block_get_scaled(b->text, b->len, 1, &low) && high < 1 << 12 && low < 1 << 20)
		s->found.rq.dev = makedev((unsigned int)high, (unsigned int)low);
	s->found.device = (const char *)buf_reserve(&s->device, 1);
	s->found.device = (const char *)s->device.data;
	s->found.device_len = s->device.len;
}

/* What only some layouts have; none of it can make a line worthless. */
static void get_extras(struct csv_state *s)
{
	const struct column *c = column_of(s, CSV_PID), *to;
	uint64_t v;

	s->found.rq.cpu = -1;
	if (c && block_get_scaled(c->text, c->len, 1, &v) && v <= INT32_MAX)
		s->found.rq.pid = (uint32_t)v;
	c = column_of(s, CSV_COMM);
	to = s->layout.comm_to ? column_at(s, s->layout.comm_to) : c;
	if (c && to && to >= c && c->len) {
		s->found.rq.comm = c->text;
		s->found.rq.comm_len = (size_t)(to->text + to->len - c->text);
	}
	c = column_of(s, CSV_FLAGS);
	if (c && c->len && vocab_parse(SET_block_flags, c->text, c->len, &v))
		s->found.rq.flags = v;
}

static bool get_latency(struct csv_state *s)
{
	const struct column *c = column_of(s, CSV_LATENCY);
	struct block_found *b = &s->found;
	uint64_t ns;

	if (!c || !c->len)
		return true;
	if (!get_number(s, c, unit_or(s->layout.latency_unit_ns, NS_PER_S), &ns))
		return false;
	b->known_end = true;
	if (s->layout.time_is_end) {
		b->complete_ns = b->issue_ns;
		b->issue_ns = clock_sub_ns(b->issue_ns, ns);
	} else {
		b->complete_ns = clock_add_ns(b->issue_ns, ns);
	}
	return true;
}

/* 1: a request in s->found; 0: none; -EBADMSG with words. */
static int parse_line(struct csv_state *s, const char *text, size_t len, struct err *err)
{
	const struct csv_layout *l = &s->layout;
	struct block_found *b = &s->found;
	int r;

	if (!split(s, text, len) || s->nr_columns < l->min_columns ||
	    s->nr_columns > l->max_columns)
		return err_set(err, -EBADMSG, "%zu columns", s->nr_columns);
	for (unsigned int f = 0; f < CSV_NEEDED; f++) {
		if (!column_of(s, f))
			return err_set(err, -EBADMSG, "only %zu columns", s->nr_columns);
	}
	*b = (struct block_found){ 0 };
	r = get_op(s, column_of(s, CSV_OP), &b->rq.op);
	if (r < 0)
		return err_set(err, r, "'%.*s' is no operation", (int)column_of(s, CSV_OP)->len,
			       column_of(s, CSV_OP)->text);
	if (!r)
		return 0;
	if (!get_time(s, &b->issue_ns))
		return err_set(err, -EBADMSG, "'%.*s' is no time", (int)column_of(s, CSV_TIME)->len,
			       column_of(s, CSV_TIME)->text);
	if (!get_number(s, column_of(s, CSV_OFFSET), unit_or(l->offset_unit, 1),
			&b->rq.offset_bytes) ||
	    !get_number(s, column_of(s, CSV_LENGTH), unit_or(l->length_unit, 1),
			&b->rq.length_bytes))
		return err_set(err, -EBADMSG, "offset or length is no number, or too large");
	if (!get_latency(s))
		return err_set(err, -EBADMSG, "the response time is no number");
	get_device(s);
	get_extras(s);
	return 1;
}

/* A line of the file: header, comment or request. As parse_line(). */
static int take_text(struct csv_state *s, const char *text, size_t len, struct err *err)
{
	int r;

	if (len && text[len - 1] == '\r')
		len--;
	if (!s->ready && !s->layout.max_columns) {
		s->ready = take_header(s, text, len);
		return 0;
	}
	s->ready = true;
	if (!len || *text == '#')
		return 0;
	r = parse_line(s, text, len, err);
	return r < 0 && s->layout.skip_others ? 0 : r;
}

/* Running. */

static int next_line(void *ctx, struct import_input *in, void *head, uint64_t *ret_ns,
		     struct err *err)
{
	struct csv *x = ctx;
	struct csv_state *s = head;
	const char *text;
	size_t len;
	int r;

	if (!s->layout.name) {
		s->layout = *x->layout;
		if (x->im->block.time_unit_ns) {
			s->layout.time_unit_ns = x->im->block.time_unit_ns;
			s->layout.whole_unit_ns = 0;
			s->layout.time_plausible_s = 0;
		}
	}
	while ((r = import_input_line(in, &text, &len, err)) > 0) {
		x->im->counts.nr_lines++;
		r = take_text(s, text, len, err);
		if (r > 0) {
			s->found.origin = in->line_no;
			*ret_ns = s->found.issue_ns;
			return 1;
		}
		if (r < 0)
			r = import_reject_line(x->im, in, err);
		if (r < 0)
			return r;
	}
	if (!r && !s->ready)
		return err_set(err, -EBADMSG, "%s: no header of the layout %s", in->name,
			       x->layout->name);
	return r;
}

static void note_wall(struct csv *x, const struct block_found *b)
{
	uint64_t before_ns = FILETIME_EPOCH_S * NS_PER_S;

	if (x->layout->epoch == CSV_EPOCH_1970)
		block_feed_set_wall(x->feed, b->issue_ns, b->issue_ns);
	else if (x->layout->epoch == CSV_EPOCH_1601 && b->issue_ns > before_ns)
		block_feed_set_wall(x->feed, b->issue_ns, b->issue_ns - before_ns);
}

static int take_request(void *ctx, struct import_input *in, void *head, struct err *err)
{
	struct csv *x = ctx;
	struct csv_state *s = head;
	int r;

	/* Where no column tells the volume, each file is one. */
	if (!s->found.device_len && x->im->nr_inputs > 1) {
		s->found.device = in->name;
		s->found.device_len = strlen(in->name);
	}
	note_wall(x, &s->found);
	r = block_feed_add(x->feed, &s->found, NULL, err);
	return r == -EBADMSG ? import_reject_line(x->im, in, err) : r;
}

static void release_state(void *head)
{
	struct csv_state *s = head;

	buf_release(&s->device);
}

static int csv_run(struct import *im, const struct csv_layout *layout, struct err *err)
{
	struct csv x = { .im = im, .layout = layout };
	struct block_merge m = { .head_size = sizeof(struct csv_state),
				 .next = next_line,
				 .take = take_request,
				 .release = release_state,
				 .ctx = &x };
	int r;

	x.feed = block_feed_new(im);
	r = block_merge_run(im, &m, err);
	return block_feed_close(x.feed, r, err);
}

/* The first lines decide: all that are whole must fit. */
static int csv_probe(const struct csv_layout *layout, const uint8_t *first, size_t len)
{
	struct csv_state *s = xcalloc(1, sizeof(*s));
	const char *text = (const char *)first, *end = text + len, *eol;
	unsigned int nr_found = 0, nr_lines = 0, limit = layout->skip_others ? 1000 : PROBE_LINES;
	int r = 0;

	s->layout = *layout;
	for (; text < end && nr_lines < limit && r >= 0; text = eol + 1, nr_lines++) {
		eol = memchr(text, '\n', (size_t)(end - text));
		if (!eol && nr_lines)
			break; /* it may be cut */
		if (!eol)
			eol = end;
		r = take_text(s, text, (size_t)(eol - text), NULL);
		nr_found += r > 0;
	}
	buf_release(&s->device);
	/* A header says more than a line that happens to fit. */
	if (r >= 0 && !layout->max_columns && s->ready)
		r = 90;
	else if (r < 0 || !nr_found)
		r = 0;
	else
		r = layout->ops == CSV_OPS_WORDS ? 55 : 40;
	free(s);
	return r;
}

#define LAYOUT(id, words, ...)                                                                     \
	static int probe_##id(const uint8_t *first, size_t len)                                    \
	{                                                                                          \
		return csv_probe(&layout_##id, first, len);                                        \
	}                                                                                          \
	static int run_##id(struct import *im, struct err *err)                                    \
	{                                                                                          \
		return csv_run(im, &layout_##id, err);                                             \
	}                                                                                          \
	const struct importer importer_##id = {                                                    \
		.name = #id, .summary = (words), .probe = probe_##id, .run = run_##id              \
	};
#include "import/csv_layouts.def"
#undef LAYOUT

/* The user's own. */

static int parse_unit(const char *text, size_t len, uint64_t *ret)
{
	static const struct {
		const char *word;
		uint64_t unit;
	} units[] = { { "ns", 1 },
		      { "us", NS_PER_US },
		      { "ms", NS_PER_MS },
		      { "s", NS_PER_S },
		      { "sectors", BLK_SECTOR_BYTES },
		      { "bytes", 1 } };

	for (size_t i = 0; i < ARRAY_LEN(units); i++) {
		if (strlen(units[i].word) == len && !memcmp(units[i].word, text, len)) {
			*ret = units[i].unit;
			return 0;
		}
	}
	return block_get_scaled(text, len, 1, ret) && *ret ? 0 : -EINVAL;
}

static int parse_column(struct csv_layout *l, const char *text, size_t len, int8_t at,
			struct err *err)
{
	static const char *const words[CSV_FIELD_MAX] = {
		[CSV_TIME] = "time",	   [CSV_OP] = "op",	      [CSV_OFFSET] = "offset",
		[CSV_LENGTH] = "length",   [CSV_LATENCY] = "latency", [CSV_DEVICE] = "device",
		[CSV_DEVICE2] = "device2", [CSV_FLAGS] = "flags",     [CSV_PID] = "pid",
		[CSV_COMM] = "comm",
	};
	uint64_t *const units[CSV_FIELD_MAX] = { [CSV_TIME] = &l->time_unit_ns,
						 [CSV_OFFSET] = &l->offset_unit,
						 [CSV_LENGTH] = &l->length_unit,
						 [CSV_LATENCY] = &l->latency_unit_ns };
	const char *colon = memchr(text, ':', len);
	size_t word_len = colon ? (size_t)(colon - text) : len;

	if (!len || (len == 1 && *text == '-'))
		return 0;
	for (unsigned int f = 0; f < CSV_FIELD_MAX; f++) {
		if (strlen(words[f]) != word_len || memcmp(words[f], text, word_len) != 0)
			continue;
		l->at[f] = at;
		if (colon && (!units[f] || parse_unit(colon + 1, len - word_len - 1, units[f]) < 0))
			break;
		return 0;
	}
	return err_set(err, -EINVAL, "--columns: '%.*s' is no column", (int)len, text);
}

static int parse_columns(struct csv_layout *l, const char *spec, struct err *err)
{
	int8_t at = 1;
	int r = 0;

	while (!r && at < CSV_COLUMNS_MAX) {
		size_t len = strcspn(spec, ",");

		r = parse_column(l, spec, len, at++, err);
		if (!spec[len])
			break;
		spec += len + 1;
	}
	for (unsigned int f = 0; f < CSV_NEEDED && !r; f++) {
		if (!l->at[f])
			r = err_set(err, -EINVAL,
				    "--columns: time, op, offset and length are needed");
	}
	return r;
}

static int run_columns(struct import *im, struct err *err)
{
	struct csv_layout l = {
		.name = "csv", .join = '/', .min_columns = 4, .max_columns = CSV_COLUMNS_MAX
	};
	const uint8_t *first;
	const char *eol;
	size_t len;
	int r;

	if (!im->block.columns)
		return err_set(err, -EINVAL, "say what the columns are: --columns");
	r = parse_columns(&l, im->block.columns, err);
	if (!r)
		r = import_input_open(&im->inputs[0], err);
	if (!r)
		r = import_input_peek(&im->inputs[0], 4096, &first, &len, err);
	if (r < 0)
		return r;
	eol = memchr(first, '\n', len);
	if (!memchr(first, ',', eol ? (size_t)(eol - (const char *)first) : len))
		l.separator = ' ';
	return csv_run(im, &l, err);
}

static int probe_columns(const uint8_t *first, size_t len)
{
	(void)first;
	(void)len;
	return 0; /* only when asked for */
}

const struct importer importer_csv = {
	.name = "csv",
	.summary = "lines of columns that --columns names, for block traces of any other layout",
	.probe = probe_columns,
	.run = run_columns,
};
