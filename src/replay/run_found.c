/* SPDX-License-Identifier: MIT */
#include "replay/run_found.h"

#include <stdlib.h>
#include <string.h>

#include "base/banned.h"
#include "base/map.h"
#include "base/mem.h"
#include "replay/found.h"
#include "replay/run_trace.h"

struct entry {
	struct found_entry found;
	bool taken; /* an entry of the original was the same */
};

/* A listing that mismatched. */
struct listing {
	const struct run_mismatch *m;
	int64_t fd; /* in the original */
	bool has_fd;
	VEC(struct entry) entries; /* sorted */
};

struct run_founds {
	const struct run_result *res;
	struct map by_origin; /* struct run_mismatch */
	VEC(struct listing) listings;
};

static int compare_entries(const void *a, const void *b)
{
	const struct entry *x = a, *y = b;
	size_t x_len = x->found.name_len, y_len = y->found.name_len;
	int r = memcmp(x->found.name, y->found.name, x_len < y_len ? x_len : y_len);

	if (r)
		return r;
	if (x_len != y_len)
		return x_len < y_len ? -1 : 1;
	return x->found.type < y->found.type ? -1 : x->found.type > y->found.type;
}

static void add_listing(struct run_founds *f, const struct run_mismatch *m)
{
	struct listing l = { .m = m };
	struct entry e = { 0 };
	uint64_t pos = 0;

	while (found_next_entry(f->res, &m->found, &pos, &e.found))
		VEC_PUSH(&l.entries, e);
	if (l.entries.len)
		qsort(l.entries.items, l.entries.len, sizeof(l.entries.items[0]), compare_entries);
	VEC_PUSH(&f->listings, l);
}

struct run_founds *run_founds_new(const struct run_result *res)
{
	struct run_founds *f = xcalloc(1, sizeof(*f));
	uint64_t i, nr = res ? atomic_load(&res->nr_mismatches) : 0;

	f->res = res;
	for (i = 0; i < nr && i < RUN_MISMATCHES_KEPT; i++) {
		const struct run_mismatch *m = &res->mismatches[i];
		uint64_t origin = run_trace_origin(m->plan, m->seq);

		if (!atomic_load(&m->whole) || !m->seq || m->found.kind == RUN_FOUND_NOTHING)
			continue;
		*map_slot(&f->by_origin, &origin, sizeof(origin)) = (void *)m;
		if (found_has_listing(&m->found) && m->found.first_seq)
			add_listing(f, m);
	}
	return f;
}

void run_founds_free(struct run_founds *f)
{
	size_t i;

	if (!f)
		return;
	for (i = 0; i < f->listings.len; i++)
		VEC_RELEASE(&f->listings.items[i].entries);
	VEC_RELEASE(&f->listings);
	map_release(&f->by_origin);
	free(f);
}

/* The next that this thread made and whose descriptor is not known; NULL: none. */
static struct listing *find_unknown(struct run_founds *f, uint32_t plan, uint32_t pid, uint32_t tid,
				    uint64_t seq)
{
	size_t i;

	for (i = 0; i < f->listings.len; i++) {
		struct listing *l = &f->listings.items[i];

		if (!l->has_fd && l->m->plan == plan && l->m->pid == pid && l->m->tid == tid &&
		    (!seq || l->m->seq == seq))
			return l;
	}
	return NULL;
}

int run_founds_begin_thread(struct run_founds *f, struct trace *t, uint32_t stream, uint32_t plan,
			    struct err *err)
{
	struct trace_query q = { .streams = &stream, .nr_streams = 1 };
	struct trace_iter *it;
	struct event *ev;
	size_t nr;
	const struct trace_stream_info *info = &trace_streams(t, &nr)[stream];
	int r;

	if (!find_unknown(f, plan, info->pid, info->tid, 0))
		return 0;
	r = trace_iter_open(t, &q, &it, err);
	if (r < 0)
		return r;
	while ((r = trace_iter_next(it, &ev, err)) > 0) {
		struct listing *l = row_class(ev->row) == C_DIR
					    ? find_unknown(f, plan, ev->pid, ev->tid, ev->seq)
					    : NULL;

		if (!l || ev->args[0].type != VALUE_INT)
			continue;
		l->has_fd = true;
		l->fd = ev->args[0].i;
		if (!find_unknown(f, plan, ev->pid, ev->tid, 0))
			break;
	}
	trace_iter_close(it);
	return r < 0 ? r : 0;
}

static struct listing *find_listing(struct run_founds *f, uint32_t plan, const struct event *ev)
{
	size_t i;

	for (i = 0; i < f->listings.len; i++) {
		struct listing *l = &f->listings.items[i];

		if (l->has_fd && l->m->plan == plan && l->m->pid == ev->pid &&
		    l->m->tid == ev->tid && ev->seq >= l->m->found.first_seq &&
		    ev->seq <= l->m->seq && ev->args[0].type == VALUE_INT && ev->args[0].i == l->fd)
			return l;
	}
	return NULL;
}

static int field_number(const struct struct_desc *desc, const char *name)
{
	unsigned int i;

	for (i = 0; i < desc->nr_fields; i++) {
		if (!strcmp(desc->fields[i].name, name))
			return (int)i;
	}
	return -1;
}

/* The entry of the original among those that were found, and not met before. */
static struct entry *take_entry(struct listing *l, struct trace *t, const struct value *name,
				const struct value *type)
{
	struct entry *e, key = { 0 };
	const uint8_t *bytes;
	struct err err;
	size_t len;

	if (!name || name->type != VALUE_DATA || !type || !l->entries.len ||
	    trace_load_piece(t, name->data, 0, &bytes, &len, &err) != 1)
		return NULL;
	key.found = (struct found_entry){ .name = (const char *)bytes,
					  .name_len = len,
					  .type = (unsigned int)type->u };
	e = bsearch(&key, l->entries.items, l->entries.len, sizeof(key), compare_entries);
	if (!e || e->taken)
		return NULL;
	e->taken = true;
	return e;
}

static struct value make_entry(struct arena *arena, const struct struct_desc *desc,
			       const struct found_entry *e)
{
	int name = field_number(desc, "d_name"), type = field_number(desc, "d_type");
	struct value v = value_struct(arena, UINT64_C(1) << name | UINT64_C(1) << type);

	*value_field(&v, (unsigned int)name) = value_bytes(arena, e->name, e->name_len);
	*value_field(&v, (unsigned int)type) = value_uint(e->type);
	return v;
}

/* The entries of a part as they were found; at the end of the listing those that are left too. */
static struct value make_part(struct listing *l, struct trace *t, const struct arg *arg,
			      const struct value *v, bool is_end, struct arena *arena)
{
	const struct struct_desc *desc = &struct_descs[arg->struct_id];
	int name = field_number(desc, "d_name"), type = field_number(desc, "d_type");
	uint32_t i, nr = v->type == VALUE_LIST ? v->count : 0;
	struct value list = value_list(arena, nr + (is_end ? (uint32_t)l->entries.len : 0));

	list.count = 0;
	for (i = 0; i < nr; i++) {
		const struct entry *e =
			take_entry(l, t, value_field(&v->items[i], (unsigned int)name),
				   value_field(&v->items[i], (unsigned int)type));

		if (e)
			list.items[list.count++] = make_entry(arena, desc, &e->found);
	}
	for (i = 0; is_end && i < l->entries.len; i++) {
		const struct entry *e = &l->entries.items[i];

		if (!e->taken && !e->found.is_own)
			list.items[list.count++] = make_entry(arena, desc, &e->found);
	}
	return list;
}

void run_founds_look(struct run_founds *f, struct trace *t, uint32_t plan, struct event *ev,
		     struct arena *arena, struct run_found_arg *ret)
{
	uint64_t origin = run_trace_origin(plan, ev->seq);
	struct listing *l;

	*ret = (struct run_found_arg){ 0 };
	if (ev->flags & EVENT_MISMATCHED)
		ret->m = map_get(&f->by_origin, &origin, sizeof(origin));
	l = row_class(ev->row) == C_DIR ? find_listing(f, plan, ev) : NULL;
	if (!l)
		return;
	for (ret->arg = 0; ret->arg < ev->row->nr_args; ret->arg++) {
		const struct arg *arg = &ev->row->args[ret->arg];

		if (arg->struct_id != STRUCT_dirent64 && arg->struct_id != STRUCT_dirent_old)
			continue;
		ret->is_listing = true;
		ret->entries =
			make_part(l, t, arg, &ev->args[ret->arg], ev->seq == l->m->seq, arena);
		ev->flags &= (uint16_t)~EVENT_VERIFIED;
		break;
	}
}

void run_founds_put(struct run_founds *f, const struct run_found_arg *a, struct event *ev,
		    struct arena *arena)
{
	if (a->is_listing)
		ev->args[a->arg] = a->entries;
	else if (a->m)
		(void)found_put(f->res, &a->m->found, ev, arena); /* else it stays unknown */
}
