/* SPDX-License-Identifier: MIT */
#include "report/run_info.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/banned.h"
#include "base/mem.h"

/* More cannot be told apart by origins. */
#define SOURCES_MAX (1u << (64 - EVENT_SOURCE_SHIFT))

bool run_info_is_run(struct trace *t)
{
	struct buf buf = { 0 };
	const char *recorder = trace_meta(t, "recorder", &buf);
	bool is = recorder && !strcmp(recorder, "replay");

	buf_release(&buf);
	return is;
}

static bool get_number(struct trace *t, const char *key, uint64_t *ret)
{
	struct buf buf = { 0 };
	const char *text = trace_meta(t, key, &buf);
	char *end = NULL;

	if (text)
		*ret = strtoull(text, &end, 10);
	buf_release(&buf);
	return end != NULL;
}

static bool get_source_number(struct trace *t, unsigned int source, const char *what, uint64_t *ret)
{
	char key[64];

	(void)snprintf(key, sizeof(key), "run.source.%u.%s", source, what);
	return get_number(t, key, ret);
}

static bool has_name(struct trace *t, unsigned int source, const char *path)
{
	struct buf buf = { 0 };
	const char *file;
	char key[64];
	bool is;

	(void)snprintf(key, sizeof(key), "run.source.%u.file", source);
	file = trace_meta(t, key, &buf);
	is = file && !strcmp(file, path);
	buf_release(&buf);
	return is;
}

bool run_info_find_source(struct trace *t, struct trace *original, struct run_source *ret)
{
	AUTO_FREE char *path = realpath(trace_path(original), NULL);
	uint64_t nr = 0, nr_events, nr_streams, first = 0;
	bool found = false;
	unsigned int i;

	if (!run_info_is_run(t) || !get_number(t, "run.sources", &nr))
		return false;
	for (i = 0; i < nr && i < SOURCES_MAX; i++, first += nr_streams) {
		bool named = path && has_name(t, i, path);

		if (!get_source_number(t, i, "streams", &nr_streams) ||
		    !get_source_number(t, i, "events", &nr_events))
			break;
		if (!named && (found || nr_events != trace_nr_events(original)))
			continue;
		*ret = (struct run_source){ i, first, nr_streams };
		found = true;
		if (named)
			break;
	}
	return found;
}
