/* SPDX-License-Identifier: MIT */
#include "compile/texts.h"

#include <stdlib.h>

#include "base/banned.h"
#include "base/mem.h"

/* Longer ones are no names; and so much is remembered before all may be forgotten. */
#define TEXT_MAX_BYTES ((uint64_t)64 << 10)
#define TEXTS_MAX_BYTES ((uint64_t)4 << 20)

static void forget_all(struct texts *t)
{
	MAP_EACH (&t->by_hash, e)
		free(e->value);
	map_release(&t->by_hash);
	t->nr_bytes = 0;
}

void texts_release(struct texts *t)
{
	forget_all(t);
}

static const uint8_t *load(struct texts *t, struct trace *trace, const struct data *d)
{
	void **slot = map_slot(&t->by_hash, &d->refs[0].hash, sizeof(d->refs[0].hash));
	const uint8_t *bytes;
	size_t len;

	if (!*slot && trace_load_piece(trace, d, 0, &bytes, &len, NULL) > 0 &&
	    len == d->kept_bytes) {
		*slot = xmemdup0(bytes, len);
		t->nr_bytes += len;
	}
	return *slot;
}

static void load_value(struct texts *t, struct trace *trace, struct value *v)
{
	struct data *d = v->data;

	if (d->refs && !d->bytes && d->kept_bytes <= TEXT_MAX_BYTES)
		d->bytes = load(t, trace, d);
}

static void walk(struct texts *t, struct trace *trace, const struct arg *arg, struct value *v);

static void walk_struct(struct texts *t, struct trace *trace, unsigned int id, struct value *v)
{
	const struct struct_desc *desc = &struct_descs[id];

	if (v->type != VALUE_STRUCT)
		return;
	for (unsigned int i = 0; i < desc->nr_fields; i++) {
		struct value *field = value_field(v, i);

		if (field)
			walk(t, trace, &desc->fields[i], field);
	}
}

static void walk(struct texts *t, struct trace *trace, const struct arg *arg, struct value *v)
{
	switch (v->type) {
	case VALUE_DATA:
		if (arg->kind != KIND_BUF && arg->kind != KIND_HASH)
			load_value(t, trace, v);
		break;
	case VALUE_STRUCT:
		walk_struct(t, trace, arg->struct_id, v);
		break;
	case VALUE_LIST:
		for (uint32_t i = 0; arg->struct_id && i < v->count; i++)
			walk_struct(t, trace, arg->struct_id, &v->items[i]);
		break;
	default:
		break;
	}
}

/* Names of attributes come as bytes; what was read from files does too, and is not wanted. */
static bool is_list_of_names(const struct row *row)
{
	return row_class(row) == C_XATTR && row->result == RESULT_VALUE;
}

void texts_trim(struct texts *t)
{
	if (t->nr_bytes > TEXTS_MAX_BYTES)
		forget_all(t);
}

void texts_load(struct texts *t, struct trace *trace, const struct row *row, struct value *args)
{
	for (unsigned int i = 0; i < row->nr_args; i++) {
		if (args[i].type != VALUE_DATA && args[i].type != VALUE_STRUCT &&
		    args[i].type != VALUE_LIST)
			continue; /* most are numbers */
		if (args[i].type == VALUE_DATA && is_list_of_names(row))
			load_value(t, trace, &args[i]);
		else
			walk(t, trace, &row->args[i], &args[i]);
	}
}
