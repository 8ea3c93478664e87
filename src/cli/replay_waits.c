/* SPDX-License-Identifier: MIT */
#include "cli/replay_waits.h"

#include "base/banned.h"
#include "cli/replay_print.h"

static uint32_t nr_kept(const struct run_result *res)
{
	return res->nr_waits < RUN_WAITS_KEPT ? res->nr_waits : RUN_WAITS_KEPT;
}

static const char *line_of(const struct history *h, uint32_t lane, uint64_t nr)
{
	const struct history_action *a = history_find(h, lane, nr);

	return a ? a->line : NULL;
}

static void put_action(const struct history *h, uint32_t lane, uint64_t nr, struct buf *b)
{
	const char *line = line_of(h, lane, nr);

	buf_printf(b, "action %llu of lane %u", (unsigned long long)nr, (unsigned int)lane);
	if (line)
		buf_printf(b, ": %s", line);
	buf_putc(b, '\n');
}

void replay_put_waits(const struct run_result *res, const struct history *h, struct buf *b)
{
	uint32_t i;

	if (!res->nr_waits)
		return;
	buf_printf(b, "%-22s%u lanes\n", "at a standstill", (unsigned int)res->nr_waits);
	for (i = 0; i < nr_kept(res); i++) {
		const struct run_wait *w = &res->waits[i];

		buf_puts(b, "  ");
		put_action(h, w->lane, w->nr, b);
		buf_printf(b, "    %s", replay_phase_words[w->phase]);
		if (w->phase == RUN_LANE_EDGE) {
			buf_putc(b, ' ');
			put_action(h, w->edge_lane, w->edge_nr, b);
		} else {
			buf_putc(b, '\n');
		}
	}
	if (res->nr_waits > nr_kept(res))
		buf_printf(b, "  and %u more\n", (unsigned int)(res->nr_waits - nr_kept(res)));
}

void replay_json_waits(struct json *w, const struct run_result *res, const struct history *h)
{
	uint32_t i;

	json_kv_u64(w, "waiting_lanes", res->nr_waits);
	json_key(w, "waits");
	json_array_begin(w);
	for (i = 0; i < nr_kept(res); i++) {
		const struct run_wait *x = &res->waits[i];
		const struct row *row = row_by_id(x->row_id);

		json_object_begin(w);
		json_kv_u64(w, "lane", x->lane);
		json_kv_u64(w, "nr", x->nr);
		json_kv_u64(w, "seq", x->seq);
		json_kv_str(w, "call", row ? row->name : NULL);
		json_kv_str(w, "event", line_of(h, x->lane, x->nr));
		json_kv_str(w, "state", replay_phase_words[x->phase]);
		if (x->phase == RUN_LANE_EDGE) {
			json_key(w, "for");
			json_object_begin(w);
			json_kv_u64(w, "lane", x->edge_lane);
			json_kv_u64(w, "nr", x->edge_nr);
			json_kv_str(w, "event", line_of(h, x->edge_lane, x->edge_nr));
			json_object_end(w);
		}
		json_object_end(w);
	}
	json_array_end(w);
}
