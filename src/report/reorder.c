/* SPDX-License-Identifier: MIT */
#include "report/reorder.h"

#include <stdbool.h>
#include <stdlib.h>

#include "base/banned.h"
#include "base/clock.h"
#include "base/mem.h"

struct reorder_record {
	struct reorder_key key;
	uint64_t place, start_ns; /* in the run */
};

static struct reorder_record *record_at(const struct reorder *r, uint64_t position)
{
	return &r->records[position % REORDER_RECORDS];
}

static bool is_later(struct reorder_key a, struct reorder_key b)
{
	return a.enter_ns != b.enter_ns ? a.enter_ns > b.enter_ns : a.seq > b.seq;
}

/* The earliest record that is later in the original; the last one is. */
static const struct reorder_record *find_overtaker(const struct reorder *r, struct reorder_key key)
{
	uint64_t low = r->first, high = r->end - 1;

	while (low < high) {
		uint64_t middle = low + (high - low) / 2;

		if (is_later(record_at(r, middle)->key, key))
			high = middle;
		else
			low = middle + 1;
	}
	return record_at(r, low);
}

static void add_reordered(struct reorder *r, struct reorder_key key, uint64_t start_ns)
{
	const struct reorder_record *by = find_overtaker(r, key);

	r->nr_reordered++;
	r->nr_cut += by == record_at(r, r->first) && r->first;
	histogram_add(&r->extents, r->nr - by->place);
	histogram_add(&r->late_ns, clock_sub_ns(start_ns, by->start_ns));
}

void reorder_add(struct reorder *r, struct reorder_key key, uint64_t start_ns)
{
	if (!r->records)
		r->records = xcalloc(REORDER_RECORDS, sizeof(*r->records));
	if (r->end > r->first && !is_later(key, record_at(r, r->end - 1)->key)) {
		add_reordered(r, key, start_ns);
	} else {
		if (r->end - r->first == REORDER_RECORDS)
			r->first++;
		*record_at(r, r->end++) =
			(struct reorder_record){ .key = key, .place = r->nr, .start_ns = start_ns };
	}
	r->nr++;
}

void reorder_release(struct reorder *r)
{
	histogram_release(&r->extents);
	histogram_release(&r->late_ns);
	free(r->records);
	*r = (struct reorder){ 0 };
}
