/* SPDX-License-Identifier: MIT */
#include "report/event_json.h"

#include <string.h>

#include "base/banned.h"
#include "base/clock.h"
#include "model/print.h"
#include "model/vocab.h"

static void put_value(struct event_json *e, struct json *w, const struct arg *arg,
		      const struct value *v);

void event_json_release(struct event_json *e)
{
	buf_release(&e->scratch);
}

static void put_named(struct json *w, const char *name, int64_t number)
{
	if (name)
		json_str(w, name, strlen(name));
	else
		json_i64(w, number);
}

static const char *name_of_small(const char *(*name_of)(int), int64_t number)
{
	return number > 0 && number <= INT32_MAX ? name_of((int)number) : NULL;
}

static void put_number(struct event_json *e, struct json *w, const struct arg *arg,
		       const struct value *v)
{
	switch ((enum kind)arg->kind) {
	case KIND_FLAGS:
		buf_clear(&e->scratch);
		vocab_print_flags(&e->scratch, (enum set_id)arg->set, v->u);
		json_str(w, e->scratch.data, e->scratch.len);
		break;
	case KIND_ENUM:
		put_named(w, vocab_name((enum set_id)arg->set, v->u), v->i);
		break;
	case KIND_SIGNO:
		put_named(w, name_of_small(signal_name, v->i), v->i);
		break;
	case KIND_ERRNO:
		put_named(w, name_of_small(errno_name, v->i), v->i);
		break;
	default:
		if (kind_infos[arg->kind].wire == 'i')
			json_i64(w, v->i);
		else
			json_u64(w, v->u);
	}
}

/* Gathers what of the data can be had, at most max bytes; false when that is nothing. */
static bool load_data(struct event_json *e, const struct data *d, size_t max)
{
	uint64_t piece, nr = data_nr_pieces(d);
	const uint8_t *bytes;
	size_t len;

	buf_clear(&e->scratch);
	if (!d->len_bytes)
		return true;
	for (piece = 0; piece < nr && e->scratch.len < max; piece++) {
		if (d->bytes) {
			bytes = d->bytes;
			len = (size_t)d->kept_bytes;
			nr = 1;
		} else if (!e->trace ||
			   trace_load_piece(e->trace, d, piece, &bytes, &len, NULL) != 1) {
			break;
		}
		if (len > max - e->scratch.len)
			len = max - e->scratch.len;
		buf_put(&e->scratch, bytes, len);
	}
	return e->scratch.len > 0;
}

static void put_hashes(struct event_json *e, struct json *w, const struct data *d)
{
	uint64_t i, nr = data_nr_pieces(d);

	if (!d->refs || !nr)
		return;
	buf_clear(&e->scratch);
	for (i = 0; i < nr; i++) {
		if (i)
			buf_putc(&e->scratch, '+');
		print_hash(&e->scratch, d->refs[i].hash);
	}
	json_key(w, "hash");
	json_str(w, e->scratch.data, e->scratch.len);
}

static void put_buffer(struct event_json *e, struct json *w, const struct data *d)
{
	json_object_begin(w);
	json_kv_u64(w, "length", d->len_bytes);
	if (d->kept_bytes != d->len_bytes)
		json_kv_u64(w, "kept", d->kept_bytes);
	if ((d->bytes || e->data) && load_data(e, d, EVENT_JSON_DATA_MAX))
		json_kv_bytes(w, "data", e->scratch.data, e->scratch.len);
	put_hashes(e, w, d);
	json_object_end(w);
}

static void put_hex(struct event_json *e, struct json *w, const struct data *d)
{
	uint64_t i;

	buf_clear(&e->scratch);
	for (i = 0; d->bytes && i < d->kept_bytes; i++)
		buf_printf(&e->scratch, "%02x", d->bytes[i]);
	json_str(w, e->scratch.data, e->scratch.len);
}

static void put_data(struct event_json *e, struct json *w, const struct arg *arg,
		     const struct data *d)
{
	if (arg->kind == KIND_HASH)
		put_hex(e, w, d);
	else if (arg->kind == KIND_PATH || arg->kind == KIND_STR) {
		if (load_data(e, d, EVENT_JSON_DATA_MAX))
			(void)json_bytes(w, e->scratch.data,
					 e->scratch.len); /* in a list: no place to say it */
		else
			json_null(w);
	} else {
		put_buffer(e, w, d);
	}
}

/* A member of an object; text that is not UTF-8 gets its second member here. */
static void put_member(struct event_json *e, struct json *w, const struct arg *arg,
		       const struct value *v)
{
	if (arg->kind == KIND_HOLE || v->type == VALUE_NONE)
		return;
	if (v->type == VALUE_DATA && (arg->kind == KIND_PATH || arg->kind == KIND_STR) &&
	    load_data(e, v->data, EVENT_JSON_DATA_MAX)) {
		json_kv_bytes(w, arg->name, e->scratch.data, e->scratch.len);
		return;
	}
	json_key(w, arg->name);
	put_value(e, w, arg, v);
}

static void put_struct(struct event_json *e, struct json *w, const struct arg *arg,
		       const struct value *v)
{
	const struct struct_desc *desc = &struct_descs[arg->struct_id];
	unsigned int i;

	json_object_begin(w);
	for (i = 0; i < desc->nr_fields; i++) {
		const struct value *field = value_field(v, i);

		if (field)
			put_member(e, w, &desc->fields[i], field);
	}
	json_object_end(w);
}

static void put_list(struct event_json *e, struct json *w, const struct arg *arg,
		     const struct value *v)
{
	struct arg item = *arg;
	uint32_t i;

	item.kind = arg->elem ? arg->elem : KIND_STRUCT;
	json_array_begin(w);
	for (i = 0; i < v->count; i++)
		put_value(e, w, &item, &v->items[i]);
	json_array_end(w);
}

static void put_value(struct event_json *e, struct json *w, const struct arg *arg,
		      const struct value *v)
{
	switch ((enum value_type)v->type) {
	case VALUE_NONE:
	case VALUE_NULL:
		json_null(w);
		break;
	case VALUE_ADDR:
		json_object_begin(w);
		json_kv_u64(w, "address", v->u);
		json_object_end(w);
		break;
	case VALUE_INT:
		put_number(e, w, arg, v);
		break;
	case VALUE_DATA:
		put_data(e, w, arg, v->data);
		break;
	case VALUE_STRUCT:
		put_struct(e, w, arg, v);
		break;
	case VALUE_LIST:
		put_list(e, w, arg, v);
		break;
	}
}

static void put_args(struct event_json *e, struct json *w, const struct row *row,
		     const struct value *args)
{
	unsigned int i;

	json_key(w, "args");
	json_object_begin(w);
	for (i = 0; i < row->nr_args; i++)
		put_member(e, w, &row->args[i], &args[i]);
	json_object_end(w);
}

static void put_path(struct json *w, const char *name, const struct fd_file *f)
{
	if (f)
		json_kv_bytes(w, name, f->path, f->path_len);
}

static void put_paths(struct event_json *e, struct json *w, const struct event *ev)
{
	const struct row *row = ev->row;
	unsigned int i;

	if (!e->paths)
		return;
	json_key(w, "paths");
	json_object_begin(w);
	for (i = 0; i < row->nr_args; i++) {
		if ((row->args[i].kind == KIND_FD || row->args[i].kind == KIND_DIRFD) &&
		    ev->args[i].type == VALUE_INT)
			put_path(w, row->args[i].name, fdpaths_find(e->paths, ev, ev->args[i].i));
	}
	if (row->result == RESULT_NEW_FD && !ev->outcome.err && !(ev->flags & EVENT_UNFINISHED))
		put_path(w, "ret", fdpaths_find_after(e->paths, ev, ev->outcome.ret));
	json_object_end(w);
}

static void put_outcome(struct json *w, const struct event *ev)
{
	const char *name = name_of_small(errno_name, ev->outcome.err);

	json_key(w, "ret");
	if (ev->row->sort == ROW_EVENT && !ev->outcome.ret && !ev->outcome.err)
		json_null(w);
	else if (ev->flags & EVENT_UNFINISHED && !ev->outcome.ret)
		json_null(w);
	else
		json_i64(w, ev->outcome.ret);
	json_key(w, "errno");
	if (ev->outcome.err)
		put_named(w, name, ev->outcome.err);
	else
		json_null(w);
}

static void put_flags(struct json *w, const struct event *ev)
{
	const struct set_desc *d = &set_descs[SET_event_flags];
	size_t i;

	json_key(w, "flags");
	json_array_begin(w);
	for (i = 0; i < d->nr_entries; i++) {
		if (ev->flags & d->entries[i].value)
			json_str(w, d->entries[i].name, strlen(d->entries[i].name));
	}
	json_array_end(w);
}

void event_json_put(struct event_json *e, struct json *w, const struct event *ev)
{
	json_object_begin(w);
	json_kv_u64(w, "seq", ev->seq);
	json_kv_u64(w, "pid", ev->pid);
	json_kv_u64(w, "tid", ev->tid);
	json_kv_u64(w, "ppid", ev->ppid);
	json_kv_u64(w, "pgid", ev->pgid);
	json_kv_u64(w, "enter_ns", ev->enter_ns);
	json_kv_u64(w, "exit_ns", ev->exit_ns);
	json_kv_u64(w, "duration_ns", clock_sub_ns(ev->exit_ns, ev->enter_ns));
	json_kv_str(w, "call", ev->row->name);
	json_kv_str(w, "class", class_names[row_class(ev->row)]);
	put_args(e, w, ev->row, ev->args);
	put_outcome(w, ev);
	put_flags(w, ev);
	json_kv_u64(w, "cpu_ns", ev->cpu_ns);
	json_kv_u64(w, "held_ns", ev->held_ns);
	json_kv_u64(w, "held_before_ns", ev->held_before_ns);
	json_kv_u64(w, "held_inside_ns", ev->held_inside_ns);
	json_kv_u64(w, "gap_cpu_ns", ev->gap_cpu_ns);
	json_kv_u64(w, "origin", ev->origin);
	put_paths(e, w, ev);
	json_object_end(w);
}

void event_json_put_item(struct event_json *e, struct json *w, const struct item *item)
{
	const struct row *row = item->row;
	unsigned int i;

	json_object_begin(w);
	json_kv_str(w, "record", row->name);
	for (i = 0; i < row->nr_args; i++)
		put_member(e, w, &row->args[i], &item->args[i]);
	json_object_end(w);
}
