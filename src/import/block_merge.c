/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/banned.h"
#include "base/mem.h"
#include "import/block.h"

struct head {
	struct import_input *in;
	uint64_t time_ns;
	void *entry;
};

static bool is_before(const struct head *a, const struct head *b)
{
	return a->time_ns != b->time_ns ? a->time_ns < b->time_ns : a->in < b->in;
}

/* The first of a heap has a new time. */
static void sink_first(struct head *h, size_t nr)
{
	struct head first = h[0];
	size_t at = 0, child;

	while ((child = 2 * at + 1) < nr) {
		if (child + 1 < nr && is_before(&h[child + 1], &h[child]))
			child++;
		if (!is_before(&h[child], &first))
			break;
		h[at] = h[child];
		at = child;
	}
	h[at] = first;
}

static int by_time(const void *a, const void *b)
{
	return is_before(a, b) ? -1 : 1;
}

static int merge(const struct block_merge *m, struct head *h, size_t nr, struct err *err)
{
	while (nr) {
		int r = m->take(m->ctx, h[0].in, h[0].entry, err);

		if (!r)
			r = m->next(m->ctx, h[0].in, h[0].entry, &h[0].time_ns, err);
		if (r < 0)
			return r;
		if (!r) {
			struct head ended = h[0];

			import_input_close(ended.in);
			h[0] = h[--nr];
			h[nr] = ended; /* its entry is freed with the others */
		}
		sink_first(h, nr);
	}
	return 0;
}

int block_merge_run(struct import *im, const struct block_merge *m, struct err *err)
{
	struct head *heads = xcalloc(im->nr_inputs, sizeof(*heads));
	size_t i, nr = 0;
	int r = 0;

	for (i = 0; i < im->nr_inputs; i++)
		heads[i].entry = xcalloc(1, m->head_size);
	for (i = 0; i < im->nr_inputs && r >= 0; i++) {
		heads[nr].in = &im->inputs[i];
		r = import_input_open(heads[nr].in, err);
		if (!r)
			r = m->next(m->ctx, heads[nr].in, heads[nr].entry, &heads[nr].time_ns, err);
		nr += r > 0;
	}
	if (r >= 0) {
		qsort(heads, nr, sizeof(*heads), by_time); /* sorted is a heap too */
		r = merge(m, heads, nr, err);
	}
	for (i = 0; i < im->nr_inputs; i++) {
		if (m->release)
			m->release(heads[i].entry);
		free(heads[i].entry);
	}
	free(heads);
	return r < 0 ? r : 0;
}

bool block_get_scaled(const char *text, size_t len, uint64_t unit, uint64_t *ret)
{
	unsigned __int128 whole = 0, part = 0, scale = 1;
	size_t i, digits = 0;
	bool point = false;

	while (len && (*text == ' ' || *text == '\t'))
		text++, len--;
	while (len && (text[len - 1] == ' ' || text[len - 1] == '\t'))
		len--;
	for (i = 0; i < len; i++) {
		if (text[i] == '.' && !point) {
			point = true;
			continue;
		}
		if (text[i] < '0' || text[i] > '9')
			return false;
		digits++;
		if (!point) {
			whole = whole * 10 + (unsigned int)(text[i] - '0');
			if (whole > UINT64_MAX)
				return false;
		} else if (scale <
			   1000000000000) { /* what lies below is not told apart by anybody */
			part = part * 10 + (unsigned int)(text[i] - '0');
			scale *= 10;
		}
	}
	whole = whole * unit + (part * unit + scale / 2) / scale;
	if (!digits || whole > UINT64_MAX)
		return false;
	*ret = (uint64_t)whole;
	return true;
}
