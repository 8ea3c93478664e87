/* SPDX-License-Identifier: MIT */
#include "report/details.h"

#include <stdlib.h>
#include <string.h>

#include "base/banned.h"
#include "model/print.h"
#include "model/vocab.h"

struct walk {
	struct details *d;
	const struct detail_side *side[2];
	const struct detail_options *o;
	bool came_back;
	bool has_file_offset;
	uint64_t file_offset; /* of the data that is met next */
};

void details_init(struct details *d, struct arena *arena)
{
	*d = (struct details){ .arena = arena };
}

void details_release(struct details *d)
{
	VEC_RELEASE(&d->list);
}

static const char *keep_text(struct details *d, const struct buf *b)
{
	char *copy = arena_alloc(d->arena, b->len + 1);

	if (b->len)
		memcpy(copy, b->data, b->len);
	copy[b->len] = 0;
	return copy;
}

PRINTF_LIKE(2, 3)
static const char *keep_format(struct details *d, const char *fmt, ...)
{
	struct buf b = { 0 };
	const char *copy;
	va_list ap;

	va_start(ap, fmt);
	buf_vprintf(&b, fmt, ap);
	va_end(ap);
	copy = keep_text(d, &b);
	buf_release(&b);
	return copy;
}

/* Values as they are printed. */

static size_t load_start(void *ctx, const struct data *d, size_t max, const uint8_t **ret)
{
	struct err err;
	size_t len;

	if (!ctx || trace_load_piece(ctx, d, 0, ret, &len, &err) != 1)
		return 0;
	return len < max ? len : max;
}

static void add_values(struct walk *w, const char *where, const struct arg *arg,
		       const struct value *a, const struct value *b)
{
	struct detail detail = { .kind = DETAIL_VALUE, .where = where };
	const struct value *v[2] = { a, b };
	struct buf text = { 0 };
	unsigned int i;

	for (i = 0; i < 2; i++) {
		struct print_style style = print_human;

		style.ctx = w->side[i]->t;
		style.load = load_start;
		style.full = true;
		buf_clear(&text);
		print_value(&text, arg, v[i], &style);
		detail.value[i] = keep_text(w->d, &text);
	}
	buf_release(&text);
	VEC_PUSH(&w->d->list, detail);
}

static void add_results(struct walk *w)
{
	struct detail detail = { .kind = DETAIL_VALUE, .where = "result" };
	struct buf text = { 0 };
	unsigned int i;

	for (i = 0; i < 2; i++) {
		buf_clear(&text);
		print_outcome(&text, w->side[i]->ev, &print_human);
		detail.value[i] = keep_text(w->d, &text);
		if (!strncmp(detail.value[i], " = ", 3))
			detail.value[i] += 3;
	}
	buf_release(&text);
	VEC_PUSH(&w->d->list, detail);
}

/* Data. */

static bool load_piece(struct trace *t, const struct data *d, uint64_t piece, const uint8_t **ret,
		       size_t *ret_len)
{
	struct err err;

	/* Bytes that stand in the event need no trace. */
	return (t || d->bytes) && trace_load_piece(t, d, piece, ret, ret_len, &err) == 1;
}

static size_t first_difference(const uint8_t *a, const uint8_t *b, size_t len)
{
	size_t i;

	for (i = 0; i < len && a[i] == b[i]; i++)
		;
	return i;
}

static uint64_t least(uint64_t a, uint64_t b)
{
	return a < b ? a : b;
}

/* True: they differ at *ret, where one of them may have ended. False: not as far as both were kept. */
static bool find_difference(const struct walk *w, const struct data *const d[2], uint64_t *ret)
{
	uint64_t common = least(d[0]->kept_bytes, d[1]->kept_bytes), piece, done = 0;
	const uint8_t *bytes[2];
	size_t len[2];
	unsigned int i;

	for (piece = 0; done < common; piece++) {
		uint64_t n = least(common - done, BLOB_MAX_BYTES), at;

		for (i = 0; i < 2; i++)
			if (!load_piece(w->side[i]->t, d[i], piece, &bytes[i], &len[i]))
				return false;
		at = first_difference(bytes[0], bytes[1], (size_t)n);
		if (at < n) {
			*ret = done + at;
			return true;
		}
		done += n;
	}
	*ret = common;
	return d[0]->len_bytes != d[1]->len_bytes &&
	       common == least(d[0]->len_bytes, d[1]->len_bytes);
}

static void take_bytes(const struct walk *w, unsigned int side, const struct data *d,
		       uint64_t offset, struct detail_bytes *ret)
{
	const uint8_t *bytes;
	uint64_t at = offset % BLOB_MAX_BYTES;
	size_t len;

	*ret = (struct detail_bytes){ 0 };
	if (!d)
		return;
	ret->len_bytes = d->len_bytes;
	ret->is_known = offset >= d->len_bytes;
	if (ret->is_known ||
	    !load_piece(w->side[side]->t, d, offset / BLOB_MAX_BYTES, &bytes, &len) || at >= len)
		return;
	ret->is_known = true;
	ret->nr = (size_t)least(DETAIL_BYTES, len - at);
	memcpy(ret->bytes, bytes + at, ret->nr);
}

static const struct data *data_of(const struct value *v)
{
	return v->type == VALUE_DATA ? v->data : NULL;
}

static void add_data(struct walk *w, const char *where, const struct value *a,
		     const struct value *b)
{
	const struct data *const d[2] = { data_of(a), data_of(b) };
	struct detail detail = { .kind = DETAIL_DATA, .where = where };
	unsigned int i;

	detail.has_offset = d[0] && d[1] && find_difference(w, d, &detail.offset);
	if (!detail.has_offset)
		detail.offset = 0;
	detail.has_file_offset = detail.has_offset && w->has_file_offset;
	detail.file_offset = w->file_offset + detail.offset;
	for (i = 0; i < 2; i++)
		take_bytes(w, i, d[i], detail.offset, &detail.data[i]);
	VEC_PUSH(&w->d->list, detail);
}

/* Names. */

static int compare_names(const void *a, const void *b)
{
	const struct detail_name *x = a, *y = b;
	int r = memcmp(x->name, y->name, x->len < y->len ? x->len : y->len);

	if (r)
		return r;
	if (x->len != y->len)
		return x->len < y->len ? -1 : 1;
	return strcmp(x->type ? x->type : "", y->type ? y->type : "");
}

static void sort_names(struct detail_names *names)
{
	if (names->nr)
		qsort(names->items, names->nr, sizeof(*names->items), compare_names);
}

/* Those of x that y lacks. */
static struct detail_names only_in(struct details *d, const struct detail_names *x,
				   const struct detail_names *y)
{
	struct detail_names only = { .items = arena_alloc(d->arena,
							  (x->nr + 1) * sizeof(*only.items)) };
	size_t i, n = 0;

	for (i = 0; i < x->nr; i++) {
		int r = 1;

		while (n < y->nr && (r = compare_names(&y->items[n], &x->items[i])) < 0)
			n++;
		if (n < y->nr && !r)
			n++;
		else if (!x->items[i].is_own)
			only.items[only.nr++] = x->items[i];
	}
	return only;
}

void details_compare_names(struct details *d, const char *where, struct detail_names *a,
			   struct detail_names *b)
{
	struct detail detail = { .kind = DETAIL_NAMES_OF_LIST, .where = where };

	sort_names(a);
	sort_names(b);
	detail.missing = only_in(d, a, b);
	detail.added = only_in(d, b, a);
	if (detail.missing.nr || detail.added.nr)
		VEC_PUSH(&d->list, detail);
}

static const struct arg *find_field(const struct arg *arg, const struct value *v, const char *name,
				    const struct value **ret)
{
	const struct struct_desc *desc = &struct_descs[arg->struct_id];
	unsigned int i;

	for (i = 0; i < desc->nr_fields; i++) {
		*ret = strcmp(desc->fields[i].name, name) ? NULL : value_field(v, i);
		if (*ret)
			return &desc->fields[i];
	}
	return NULL;
}

/* A copy of data that was kept as a whole and is one piece; NULL: it is not. */
static const uint8_t *load_whole(struct details *d, struct trace *t, const struct value *v)
{
	const uint8_t *bytes;
	uint8_t *copy;
	size_t len;

	if (v->type != VALUE_DATA || v->data->kept_bytes != v->data->len_bytes ||
	    v->data->len_bytes > BLOB_MAX_BYTES)
		return NULL;
	if (!v->data->len_bytes)
		return (const uint8_t *)"";
	if (!load_piece(t, v->data, 0, &bytes, &len))
		return NULL;
	copy = arena_alloc(d->arena, len);
	memcpy(copy, bytes, len);
	return copy;
}

struct detail_names details_names_of(struct details *d, struct trace *t, const struct arg *arg,
				     const struct value *v)
{
	struct detail_names names = { .items = arena_alloc(d->arena,
							   (v->count + 1) * sizeof(*names.items)) };
	uint32_t i;

	for (i = 0; v->type == VALUE_LIST && i < v->count; i++) {
		struct detail_name *n = &names.items[names.nr];
		const struct value *name, *type;
		const struct arg *type_arg;
		struct buf text = { 0 };

		*n = (struct detail_name){ 0 };
		if (find_field(arg, &v->items[i], "d_name", &name))
			n->name = load_whole(d, t, name);
		if (!n->name)
			continue;
		n->len = (size_t)name->data->len_bytes;
		type_arg = find_field(arg, &v->items[i], "d_type", &type);
		if (type_arg) {
			print_value(&text, type_arg, type, &print_human);
			n->type = keep_text(d, &text);
			buf_release(&text);
		}
		names.nr++;
	}
	return names;
}

static struct detail_names split_names(struct details *d, const uint8_t *p, uint64_t len)
{
	const uint8_t *end = p + len;
	struct detail_names names = { .items = arena_alloc(
					      d->arena, (size_t)(len + 1) * sizeof(*names.items)) };

	while (p < end) {
		size_t n = strnlen((const char *)p, (size_t)(end - p));

		names.items[names.nr++] = (struct detail_name){ .name = p, .len = n };
		p += n + 1;
	}
	return names;
}

static bool is_listing(const struct arg *arg)
{
	return arg->struct_id == STRUCT_dirent64 || arg->struct_id == STRUCT_dirent_old;
}

/* Lists of names of xattrs, whose order is the file system's own. */
static bool split_xattrs(struct walk *w, const char *where, const struct value *a,
			 const struct value *b)
{
	const struct value *v[2] = { a, b };
	struct detail_names names[2];
	unsigned int i;

	for (i = 0; i < 2; i++) {
		const uint8_t *bytes = row_lists_xattrs(w->side[0]->ev->row)
					       ? load_whole(w->d, w->side[i]->t, v[i])
					       : NULL;

		if (!bytes)
			return false;
		names[i] = split_names(w->d, bytes, v[i]->data->len_bytes);
	}
	details_compare_names(w->d, where, &names[0], &names[1]);
	return true;
}

/* The walk. */

static bool is_different(const struct walk *w, const struct arg *arg, const struct value *a,
			 const struct value *b)
{
	uint64_t at;

	if (w->o->tell_unknown && a->type == VALUE_NONE && b->type != VALUE_NONE)
		return true;
	if (compare_values(arg, a, b, w->o->ignore, w->came_back))
		return true;
	/* By hash, what was not kept as a whole cannot be told apart. */
	return a->type == VALUE_DATA && b->type == VALUE_DATA && arg->kind == KIND_BUF &&
	       !(w->o->ignore & IGNORE_DATA) && a->data->kept_bytes != b->data->kept_bytes &&
	       find_difference(w, (const struct data *const[]){ a->data, b->data }, &at);
}

/* Of the buffers in a value: what follows them is so much further in the file. */
static uint64_t data_bytes(const struct arg *arg, const struct value *v)
{
	const struct struct_desc *desc = &struct_descs[arg->struct_id];
	uint64_t sum = 0;
	unsigned int i;

	if (v->type == VALUE_DATA && arg->kind == KIND_BUF)
		return v->data->len_bytes;
	for (i = 0; v->type == VALUE_STRUCT && i < desc->nr_fields; i++) {
		const struct value *field = value_field(v, i);

		sum += field ? data_bytes(&desc->fields[i], field) : 0;
	}
	return sum;
}

static void walk_values(struct walk *w, const char *where, const struct arg *arg,
			const struct value *a, const struct value *b);

static void walk_struct(struct walk *w, const char *where, const struct arg *arg,
			const struct value *a, const struct value *b)
{
	const struct struct_desc *desc = &struct_descs[arg->struct_id];
	static const struct value none = { .type = VALUE_NONE };
	unsigned int i;

	for (i = 0; i < desc->nr_fields; i++) {
		const struct value *x = value_field(a, i), *y = value_field(b, i);

		if (x || y)
			walk_values(w, keep_format(w->d, "%s.%s", where, desc->fields[i].name),
				    &desc->fields[i], x ? x : &none, y ? y : &none);
	}
}

static void walk_list(struct walk *w, const char *where, const struct arg *arg,
		      const struct value *a, const struct value *b)
{
	struct arg item = *arg;
	uint32_t i;

	item.kind = arg->elem ? arg->elem : KIND_STRUCT;
	for (i = 0; i < a->count; i++)
		walk_values(w, keep_format(w->d, "%s[%u]", where, (unsigned int)i), &item,
			    &a->items[i], &b->items[i]);
}

static void add_listings(struct walk *w, const char *where, const struct arg *arg,
			 const struct value *a, const struct value *b)
{
	struct detail_names names[2] = { details_names_of(w->d, w->side[0]->t, arg, a),
					 details_names_of(w->d, w->side[1]->t, arg, b) };

	details_compare_names(w->d, where, &names[0], &names[1]);
}

static void walk_values(struct walk *w, const char *where, const struct arg *arg,
			const struct value *a, const struct value *b)
{
	bool lists = a->type == VALUE_LIST && b->type == VALUE_LIST;

	if (!is_different(w, arg, a, b))
		w->file_offset += data_bytes(arg, a);
	else if (b->type == VALUE_STRUCT && (a->type == VALUE_STRUCT || a->type == VALUE_NONE))
		walk_struct(w, where, arg, a, b);
	else if (lists && is_listing(arg))
		add_listings(w, where, arg, a, b);
	else if (lists && a->count == b->count)
		walk_list(w, where, arg, a, b);
	else if (arg->kind == KIND_BUF && b->type == VALUE_DATA &&
		 (a->type == VALUE_DATA || a->type == VALUE_NONE)) {
		if (!split_xattrs(w, where, a, b))
			add_data(w, where, a, b);
		w->file_offset += data_bytes(arg, a);
	} else {
		add_values(w, where, arg, a, b);
	}
}

static void find_file_offset(struct walk *w)
{
	const struct event *ev = w->side[0]->ev;
	unsigned int i;

	w->has_file_offset = w->o->has_file_offset;
	w->file_offset = w->o->file_offset;
	for (i = 0; i < ev->row->nr_args && row_class(ev->row) == C_DATA; i++) {
		if (ev->row->args[i].kind == KIND_OFF && !strcmp(ev->row->args[i].name, "offset") &&
		    ev->args[i].type == VALUE_INT && ev->args[i].i >= 0) {
			w->has_file_offset = true;
			w->file_offset = ev->args[i].u;
		}
	}
}

void details_compare(struct details *d, const struct detail_side *a, const struct detail_side *b,
		     const struct detail_options *o)
{
	struct walk w = { .d = d, .side = { a, b }, .o = o };
	const struct row *row = a->ev->row;
	unsigned int i;

	find_file_offset(&w);
	if (compare_results(a->ev, b->ev, o->ignore))
		add_results(&w);
	for (i = 0; i < row->nr_args && i < b->ev->row->nr_args; i++) {
		w.came_back = compare_came_back(&row->args[i]);
		walk_values(&w, row->args[i].name, &row->args[i], &a->ev->args[i], &b->ev->args[i]);
	}
}

/* Text. */

static void put_bytes(const struct detail_bytes *d, struct buf *b)
{
	size_t i;

	if (!d->is_known) {
		buf_putc(b, '?');
		return;
	}
	if (!d->nr) {
		buf_puts(b, "its end");
		return;
	}
	for (i = 0; i < d->nr; i++)
		buf_printf(b, "%02x ", d->bytes[i]);
	print_quoted(b, d->bytes, d->nr);
}

static void put_names(const struct detail_names *n, struct buf *b)
{
	size_t i;

	for (i = 0; i < n->nr && i < DETAIL_NAMES; i++) {
		buf_puts(b, i ? ", " : "");
		print_quoted(b, n->items[i].name, n->items[i].len);
		if (n->items[i].type)
			buf_printf(b, " %s", n->items[i].type);
	}
	if (n->nr > DETAIL_NAMES)
		buf_printf(b, " and %zu more", n->nr - DETAIL_NAMES);
}

static void put_data(const struct detail *d, const char *const words[2], struct buf *b)
{
	unsigned int i;

	if (d->has_offset) {
		buf_printf(b, "byte %llu", (unsigned long long)d->offset);
		if (d->has_file_offset)
			buf_printf(b, " (%llu of the file)", (unsigned long long)d->file_offset);
		buf_puts(b, ": ");
	} else if (d->data[0].is_known && d->data[1].is_known) {
		buf_puts(b, "differs after what was kept of it: ");
	}
	for (i = 0; i < 2; i++) {
		buf_puts(b, words[i]);
		put_bytes(&d->data[i], b);
	}
}

void detail_put(const struct detail *d, const char *const words[2], struct buf *b)
{
	buf_printf(b, "%s: ", d->where);
	switch (d->kind) {
	case DETAIL_VALUE:
		buf_printf(b, "%s%s%s%s", words[0], d->value[0], words[1], d->value[1]);
		break;
	case DETAIL_DATA:
		put_data(d, words, b);
		break;
	case DETAIL_NAMES_OF_LIST:
		if (d->missing.nr) {
			buf_puts(b, "missing ");
			put_names(&d->missing, b);
		}
		if (d->added.nr) {
			buf_puts(b, d->missing.nr ? "; added " : "added ");
			put_names(&d->added, b);
		}
		break;
	}
}

/* JSON. */

static const char *const side_keys[2] = { "expected", "got" };

static void json_bytes_of(struct json *w, const char *key, const struct detail_bytes *d)
{
	char hex[2 * DETAIL_BYTES + 1] = "";
	size_t i;

	json_key(w, key);
	if (!d->is_known) {
		json_null(w);
		return;
	}
	for (i = 0; i < d->nr; i++)
		(void)snprintf(hex + 2 * i, 3, "%02x", d->bytes[i]);
	json_object_begin(w);
	json_kv_u64(w, "length", d->len_bytes);
	json_kv_str(w, "hex", hex);
	json_kv_bytes(w, "text", d->bytes, d->nr);
	json_object_end(w);
}

static void json_names(struct json *w, const char *key, const struct detail_names *n)
{
	size_t i;

	json_key(w, key);
	json_array_begin(w);
	for (i = 0; i < n->nr; i++) {
		json_object_begin(w);
		json_kv_bytes(w, "name", n->items[i].name, n->items[i].len);
		json_kv_str(w, "type", n->items[i].type);
		json_object_end(w);
	}
	json_array_end(w);
}

static void json_offset(struct json *w, const char *key, bool is_known, uint64_t offset)
{
	json_key(w, key);
	if (is_known)
		json_u64(w, offset);
	else
		json_null(w);
}

static void json_detail(struct json *w, const struct detail *d)
{
	unsigned int i;

	json_object_begin(w);
	json_kv_str(w, "where", d->where);
	switch (d->kind) {
	case DETAIL_VALUE:
		for (i = 0; i < 2; i++)
			json_kv_str(w, side_keys[i], d->value[i]);
		break;
	case DETAIL_DATA:
		json_offset(w, "offset", d->has_offset, d->offset);
		json_offset(w, "file_offset", d->has_file_offset, d->file_offset);
		for (i = 0; i < 2; i++)
			json_bytes_of(w, side_keys[i], &d->data[i]);
		break;
	case DETAIL_NAMES_OF_LIST:
		json_names(w, "missing", &d->missing);
		json_names(w, "added", &d->added);
		break;
	}
	json_object_end(w);
}

void details_put_json(const struct details *d, struct json *w)
{
	size_t i;

	json_array_begin(w);
	for (i = 0; i < d->list.len; i++)
		json_detail(w, &d->list.items[i]);
	json_array_end(w);
}
