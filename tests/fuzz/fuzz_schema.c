/* SPDX-License-Identifier: MIT */
/*
 * A schema of foreign origin and, behind the first NUL, the arguments of an event
 * as each of its rows would read them.
 */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "model/codec.h"
#include "model/schema.h"
#include "sample.h"

/* The encoder is only ever given rows of which it has all arguments. */
static bool knows_all(const struct schema_row *row)
{
	unsigned int i;

	for (i = 0; i < row->args.nr_wires; i++) {
		if (row->args.wires[i].position == WIRE_UNKNOWN)
			return false;
	}
	return true;
}

static void decode_all(const struct schema *s, const uint8_t *p, size_t len)
{
	struct value args[ROW_ARGS_MAX];
	struct buf again = { 0 };
	struct arena a;
	unsigned int id;

	arena_init(&a);
	for (id = 0; id < ROW_ID_MAX; id++) {
		struct cursor in = { p, p + len };

		if (!s->rows[id].row)
			continue;
		arena_reset(&a);
		if (!codec_get_args(&s->rows[id], s, &in, &a, args))
			continue;
		buf_clear(&again);
		/* What was read can be written. */
		if (knows_all(&s->rows[id]) &&
		    codec_put_args(&s->rows[id], s, args, &sample_sink, &again) < 0)
			abort();
	}
	arena_release(&a);
	buf_release(&again);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	const uint8_t *nul = size ? memchr(data, 0, size) : NULL;
	size_t len = nul ? (size_t)(nul - data) : size;
	struct buf text = { 0 };
	struct schema *s;
	struct err err;

	if (schema_parse((const char *)data, len, &s, &err) < 0)
		return 0;
	schema_print(s, &text);
	if (nul)
		decode_all(s, nul + 1, size - len - 1);
	schema_free(s);
	buf_release(&text);
	return 0;
}
