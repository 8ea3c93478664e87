/* SPDX-License-Identifier: MIT */
#include "cli/replay_put.h"

#include "base/banned.h"
#include "base/mem.h"
#include "base/strings.h"

void replay_put_time(struct buf *b, const char *label, uint64_t ns)
{
	buf_printf(b, "%-22s", label);
	strings_put_duration(b, ns);
	buf_putc(b, '\n');
}

void replay_put_lateness(struct buf *b, const struct spread *s)
{
	static const unsigned int percents[] = { 50, 90, 99 };

	if (!s->count)
		return;
	buf_printf(b, "%-22s", "lateness");
	for (size_t i = 0; i < ARRAY_LEN(percents); i++) {
		strings_put_duration(b, spread_percentile(s, percents[i]));
		buf_printf(b, " p%u, ", percents[i]);
	}
	strings_put_duration(b, s->max);
	buf_puts(b, " max\n");
}

double replay_mean(const struct spread *s)
{
	return s->count ? (double)s->sum / (double)s->count : 0;
}

void replay_json_spread(struct json *w, const char *name, const struct spread *s)
{
	json_key(w, name);
	json_object_begin(w);
	json_kv_u64(w, "count", s->count);
	json_kv_double(w, "mean", replay_mean(s));
	json_kv_u64(w, "p50", spread_percentile(s, 50));
	json_kv_u64(w, "p90", spread_percentile(s, 90));
	json_kv_u64(w, "p99", spread_percentile(s, 99));
	json_kv_u64(w, "max", s->max);
	json_object_end(w);
}
