/* SPDX-License-Identifier: MIT */
#include "cli/replay_mismatch.h"

#include <stdlib.h>
#include <string.h>

#include "base/banned.h"
#include "base/map.h"
#include "cli/event_line.h"
#include "model/vocab.h"
#include "plan/plan.h"
#include "plan/result.h"
#include "replay/found.h"
#include "replay/run_args.h"
#include "report/fdpaths.h"

/* Of all listings of a trace that have begun and not ended. */
#define LISTINGS_MAX_BYTES ((uint64_t)64 << 20)

struct mismatch_views {
	const struct run_result *res;
	struct arena arena;
	struct run_args args;
	uint64_t nr;
	struct mismatch_view *items; /* of res->mismatches[...] */
};

/* What an open directory gave so far, since its beginning. */
struct listing {
	struct arena arena;
	struct hash128 sum;
	uint64_t len_bytes;
	VEC(struct detail_name) names;
};

/*
 * What hangs on an open file: nothing, a listing, or its offset, which is 0
 * without anything. Listings are aligned: the lowest bit tells an offset.
 */
static bool is_offset(const void *user)
{
	return (uintptr_t)user & 1;
}

static uint64_t get_offset(const void *user)
{
	return is_offset(user) ? (uintptr_t)user >> 1 : 0;
}

static void *put_offset(uint64_t offset)
{
	return (void *)((uintptr_t)offset << 1 | 1);
}

/* One trace, while it is gone through. */
struct pass {
	struct mismatch_views *v;
	struct trace *t;
	struct fdpaths *paths;
	struct map wanted; /* seq: mismatch + 1; of several the first */
	uint64_t nr_left;
	bool follows_listings, follows_offsets;
	uint64_t listing_bytes;
	VEC(struct listing *) listings;
};

static const char *keep(struct mismatch_views *v, const char *text)
{
	return arena_memdup0(&v->arena, text, strlen(text));
}

/* Listings. */

static void clear_listing(struct pass *p, struct listing *l)
{
	p->listing_bytes -= l->len_bytes;
	l->len_bytes = 0;
	arena_reset(&l->arena);
	l->sum = (struct hash128){ 0 };
	l->names.len = 0;
}

static struct fd_file *file_of(struct pass *p, const struct event *ev)
{
	return ev->args[0].type == VALUE_INT ? fdpaths_find(p->paths, ev, ev->args[0].i) : NULL;
}

static struct listing *listing_of(struct pass *p, const struct event *ev)
{
	struct fd_file *file = file_of(p, ev);
	struct listing *l;

	if (!file)
		return NULL;
	if (!file->user || is_offset(file->user)) {
		l = xcalloc(1, sizeof(*l));
		arena_init(&l->arena);
		VEC_PUSH(&p->listings, l);
		file->user = l;
	}
	return file->user;
}

static unsigned int dirents_arg(const struct row *row)
{
	unsigned int i;

	for (i = 0; i < row->nr_args; i++) {
		if (row->args[i].struct_id == STRUCT_dirent64 ||
		    row->args[i].struct_id == STRUCT_dirent_old)
			break;
	}
	return i;
}

static void add_part(struct pass *p, struct listing *l, const struct event *ev)
{
	unsigned int i, arg = dirents_arg(ev->row);
	struct details d = { .arena = &l->arena };
	struct detail_names names;
	struct hash128 h;

	if (arg == ev->row->nr_args || p->listing_bytes > LISTINGS_MAX_BYTES ||
	    !result_hash(ev->row, &ev->outcome, ev->args, &h))
		return;
	result_add(&l->sum, h);
	names = details_names_of(&d, p->t, &ev->row->args[arg], &ev->args[arg]);
	for (i = 0; i < names.nr; i++) {
		VEC_PUSH(&l->names, names.items[i]);
		l->len_bytes += names.items[i].len + sizeof(names.items[i]);
		p->listing_bytes += names.items[i].len + sizeof(names.items[i]);
	}
}

static void follow_offset(struct pass *p, const struct event *ev)
{
	struct fd_file *file = NULL;

	if (!p->follows_offsets || ev->outcome.err || ev->outcome.ret < 0)
		return;
	switch (ev->row->id) {
	case SC_read:
	case SC_readv:
	case SC_write:
	case SC_writev:
	case SC_lseek:
		file = file_of(p, ev);
	}
	if (!file || (file->user && !is_offset(file->user)))
		return;
	file->user = put_offset((uint64_t)ev->outcome.ret +
				(ev->row->id == SC_lseek ? 0 : get_offset(file->user)));
}

/* The listing whose end the event is, as it was recorded; NULL: it is none. */
static struct listing *follow_listing(struct pass *p, const struct event *ev)
{
	struct listing *l;

	if (!p->follows_listings || (row_class(ev->row) != C_DIR && ev->row->id != SC_lseek))
		return NULL;
	if (ev->outcome.err)
		return NULL;
	if (row_class(ev->row) != C_DIR) {
		const struct fd_file *file = file_of(p, ev);

		if (file && file->user && !is_offset(file->user))
			clear_listing(p, file->user);
		return NULL;
	}
	l = listing_of(p, ev);
	if (!l)
		return NULL;
	add_part(p, l, ev);
	return ev->outcome.ret ? NULL : l;
}

static const char *type_name(struct mismatch_views *v, unsigned int type)
{
	struct buf b = { 0 };
	const char *name;

	vocab_print_enum(&b, SET_dirent_types, type);
	name = keep(v, buf_str(&b));
	buf_release(&b);
	return name;
}

static struct detail_names found_names(struct mismatch_views *v, const struct run_found *f)
{
	struct detail_names names = { 0 };
	struct found_entry e;
	uint64_t pos = 0;

	while (found_next_entry(v->res, f, &pos, &e))
		names.nr++;
	names.items = arena_alloc(&v->arena, (names.nr + 1) * sizeof(*names.items));
	for (names.nr = pos = 0; found_next_entry(v->res, f, &pos, &e); names.nr++)
		names.items[names.nr] = (struct detail_name){ .name = (const uint8_t *)e.name,
							      .len = e.name_len,
							      .type = type_name(v, e.type),
							      .is_own = e.is_own };
	return names;
}

static void view_listing(struct mismatch_views *v, struct mismatch_view *view,
			 const struct run_mismatch *m, const struct listing *l,
			 const struct row *row)
{
	const struct run_found *f = &m->found;
	struct detail_names found, recorded = { 0 };
	size_t i;

	if (!found_has_listing(f)) {
		view->note = "the names that were found are not known";
		return;
	}
	if (!l || l->sum.low != f->recorded_low || l->sum.high != f->recorded_high) {
		view->note = "the names that were recorded are not known";
		return;
	}
	found = found_names(v, f);
	recorded.items = arena_alloc(&v->arena, (l->names.len + 1) * sizeof(*recorded.items));
	for (i = 0; i < l->names.len; i++) {
		const struct detail_name *n = &l->names.items[i];

		recorded.items[recorded.nr++] =
			(struct detail_name){ .name = (uint8_t *)arena_memdup0(&v->arena, n->name,
									       n->len),
					      .len = n->len,
					      .type = n->type ? keep(v, n->type) : NULL };
	}
	details_compare_names(&view->details, row->args[dirents_arg(row)].name, &recorded, &found);
}

/* One event. */

struct line_ctx {
	struct pass *p;
	const struct event *ev;
};

static const char *path_of_fd(void *arg, int fd)
{
	struct line_ctx *c = arg;
	const struct fd_file *f;

	if (c->ev->row->result == RESULT_NEW_FD && c->ev->outcome.ret == fd)
		return NULL; /* not known before the call took effect */
	f = fdpaths_find(c->p->paths, c->ev, fd);
	return f ? f->path : NULL;
}

static const char *path_of_event(struct pass *p, const struct event *ev, struct buf *b)
{
	unsigned int i;

	for (i = 0; i < ev->row->nr_args; i++) {
		const struct fd_file *f = NULL;

		if (ev->row->args[i].kind == KIND_FD && ev->args[i].type == VALUE_INT)
			f = fdpaths_find(p->paths, ev, ev->args[i].i);
		if (f)
			return f->path;
		if (ev->row->args[i].kind == KIND_PATH && fdpaths_resolve(p->paths, ev, i, b))
			return buf_str(b);
	}
	return NULL;
}

/* Of a call that failed: it wrote nothing there. */
static void forget_addresses(struct event *ev)
{
	unsigned int i;

	for (i = 0; i < ev->row->nr_args; i++) {
		if (ev->row->args[i].dir == ARG_OUT)
			ev->args[i] = (struct value){ .type = VALUE_NONE };
	}
}

/* ev: the original's, or with nothing but its row. */
static void view_result(struct mismatch_views *v, struct mismatch_view *view, struct trace *t,
			const struct run_mismatch *m, const struct event *ev,
			const uint64_t *offset)
{
	const struct run_found *f = &m->found;
	struct detail_options o = { .ignore = IGNORE_UNKNOWN,
				    .tell_unknown = !t || m->kind == RUN_MISMATCH_SUCCEEDED,
				    /* Each can be wrong, but not the same way. */
				    .has_file_offset =
					    f->has_offset && offset && *offset == f->offset,
				    .file_offset = f->offset };
	struct event expected = *ev, got = *ev;
	struct detail_side a = { &expected, t }, b = { &got, NULL };

	if (m->kind == RUN_MISMATCH_SUCCEEDED)
		forget_addresses(&expected);
	run_args_keep_compared(&v->args, &expected);
	if (found_put(v->res, f, &got, &v->arena))
		details_compare(&view->details, &a, &b, &o);
	if (m->kind == RUN_MISMATCH_OTHER_RESULT && !view->details.list.len)
		view->note = f->kept_bytes < f->len_bytes
				     ? "what differs comes after what was kept of the data"
				     : "what came back is not known";
}

static void view_event(struct pass *p, uint64_t i, const struct event *ev,
		       const struct listing *listing)
{
	struct mismatch_views *v = p->v;
	struct mismatch_view *view = &v->items[i];
	const struct run_mismatch *m = &v->res->mismatches[i];
	struct line_ctx ctx = { .p = p, .ev = ev };
	const struct fd_file *file = p->follows_offsets ? file_of(p, ev) : NULL;
	uint64_t offset = file ? get_offset(file->user) : 0;
	struct buf b = { 0 };
	const char *path;

	view->has_event = true;
	view->enter_ns = ev->enter_ns;
	event_line_put_paths(p->t, ev, path_of_fd, &ctx, &b);
	view->line = keep(v, buf_str(&b));
	buf_clear(&b);
	path = path_of_event(p, ev, &b);
	view->path = path ? keep(v, path) : NULL;
	buf_release(&b);
	if (row_class(ev->row) == C_DIR && m->kind == RUN_MISMATCH_OTHER_RESULT)
		view_listing(v, view, m, listing, ev->row);
	else
		view_result(v, view, p->t, m, ev, file ? &offset : NULL);
}

/* One trace. */

static void pass_event(struct pass *p, const struct event *ev)
{
	const void *found = map_get(&p->wanted, &ev->seq, sizeof(ev->seq));
	struct listing *ended = follow_listing(p, ev);

	if (found) {
		view_event(p, (uintptr_t)found - 1, ev, ended);
		p->nr_left--;
	}
	if (ended)
		clear_listing(p, ended);
	follow_offset(p, ev);
	fdpaths_apply(p->paths, ev);
}

static void pass_trace(struct pass *p)
{
	struct trace_query q = { 0 };
	struct trace_iter *it;
	struct event *ev;
	struct err err;
	size_t i;

	if (trace_iter_open(p->t, &q, &it, &err) < 0)
		return;
	p->paths = fdpaths_new(p->t);
	while (p->nr_left && trace_iter_next(it, &ev, &err) > 0)
		pass_event(p, ev);
	trace_iter_close(it);
	fdpaths_free(p->paths);
	for (i = 0; i < p->listings.len; i++) {
		arena_release(&p->listings.items[i]->arena);
		VEC_RELEASE(&p->listings.items[i]->names);
		free(p->listings.items[i]);
	}
	VEC_RELEASE(&p->listings);
}

/* Without the trace there is what came back. */
static void view_alone(struct mismatch_views *v, uint64_t i)
{
	const struct run_mismatch *m = &v->res->mismatches[i];
	struct event ev = { .row = row_by_id(m->row_id), .outcome = m->expected };

	if (ev.row)
		view_result(v, &v->items[i], NULL, m, &ev, NULL);
}

static void view_plan(struct mismatch_views *v, uint32_t nr, const char *path)
{
	struct pass p = { .v = v };
	struct plan *plan;
	struct err err;
	uint64_t i;

	if (plan_open(path, &plan, &err) < 0)
		return;
	p.t = plan_data_source(plan);
	for (i = 0; i < v->nr; i++) {
		const struct run_mismatch *m = &v->res->mismatches[i];
		void **slot;

		if (!atomic_load(&m->whole) || m->plan != nr)
			continue;
		if (p.t == plan_container(plan) || !m->seq) {
			view_alone(v, i);
			continue;
		}
		slot = map_slot(&p.wanted, &m->seq, sizeof(m->seq));
		if (*slot)
			continue;
		*slot = (void *)(uintptr_t)(i + 1);
		p.nr_left++;
		p.follows_offsets |= m->found.has_offset;
		p.follows_listings |= m->row_id == SC_getdents || m->row_id == SC_getdents64;
	}
	if (p.nr_left)
		pass_trace(&p);
	map_release(&p.wanted);
	plan_close(plan);
}

struct mismatch_views *mismatch_views_new(const char *const *plans, unsigned int nr_plans,
					  const struct run_result *res, uint64_t top)
{
	struct mismatch_views *v = xcalloc(1, sizeof(*v));
	uint64_t i, nr = atomic_load(&res->nr_mismatches);

	v->res = res;
	v->nr = nr < top ? nr : top;
	if (v->nr > RUN_MISMATCHES_KEPT)
		v->nr = RUN_MISMATCHES_KEPT;
	v->items = xcalloc(v->nr + 1, sizeof(*v->items));
	arena_init(&v->arena);
	run_args_init(&v->args, &v->arena);
	for (i = 0; i < v->nr; i++)
		details_init(&v->items[i].details, &v->arena);
	for (i = 0; i < nr_plans && v->nr; i++)
		view_plan(v, (uint32_t)i, plans[i]);
	return v;
}

void mismatch_views_free(struct mismatch_views *v)
{
	uint64_t i;

	if (!v)
		return;
	for (i = 0; i < v->nr; i++)
		details_release(&v->items[i].details);
	free(v->items);
	arena_release(&v->arena);
	free(v);
}

const struct mismatch_view *mismatch_view(const struct mismatch_views *v, uint64_t i)
{
	return v && i < v->nr ? &v->items[i] : NULL;
}
