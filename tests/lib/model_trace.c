/* SPDX-License-Identifier: MIT */
/*
 * usage: model_trace [-i] [-n] [-t] TRACE
 *
 * Steps through a trace by effect order with the file-system model and prints
 * every contradiction; then the counts, one `name value` a line. An event that
 * does not fit gives way to those that overlapped it in time, as far as they
 * fit. -i ignores the initial tree of the trace, -n keeps effect order whatever
 * fits, -t tells how long a step took.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/banned.h"
#include "base/clock.h"
#include "base/strings.h"
#include "fsmodel/fsmodel.h"
#include "model/print.h"
#include "model/vocab.h"
#include "trace/reader.h"

#define PATH_BYTES_MAX 4096
#define WINDOW 256 /* how many events may come before one that does not fit */

/* An event that waits for its turn, with all that it points to. */
struct waiting {
	struct event ev;
	struct arena arena;
	struct waiting *next;
};

struct run {
	struct trace *t;
	struct fsmodel *m;
	bool ignore_tree, timed, keep_order;
	struct waiting *first, *last, *spare;
	size_t nr_waiting;
	uint64_t nr_moved;
	uint64_t nr_events, nr_touches, spent_ns;
	struct buf line;
};

static void die(const char *what, const struct err *err)
{
	fprintf(stderr, "model_trace: %s: %s\n", what, err->text);
	exit(2);
}

static uint32_t meta_number(struct run *r, const char *key)
{
	struct buf b = { 0 };
	const char *text = trace_meta(r->t, key, &b);
	uint64_t n = 0;

	if (text && strings_parse_u64(text, &n) < 0)
		n = 0;
	buf_release(&b);
	return (uint32_t)n;
}

static void step(struct run *r, struct event *ev)
{
	uint64_t before = r->timed ? clock_monotonic_ns() : 0;
	const struct facts *f = fsmodel_step(r->m, ev);

	if (r->timed)
		r->spent_ns += clock_monotonic_ns() - before;
	r->nr_events++;
	r->nr_touches += f->touches.len;
	if (!f->contradiction)
		return;
	buf_clear(&r->line);
	buf_puts(&r->line, print_row_name(ev->row, PRINT_EXACT));
	buf_putc(&r->line, '(');
	print_args(&r->line, ev->row, ev->args, &print_human);
	buf_putc(&r->line, ')');
	print_outcome(&r->line, ev, &print_human);
	printf("%u/%u %llu %s%s: %s\n    %s\n", ev->pid, ev->tid, (unsigned long long)ev->enter_ns,
	       contradiction_names[f->contradiction], f->repaired ? " (repaired)" : "",
	       fsmodel_why(r->m), buf_str(&r->line));
}

/* The first process begins where the command was started. */
static void tell_start(struct run *r, const struct event *first)
{
	struct event ev = { .row = row_by_id(EV_found_state),
			    .pid = first->pid,
			    .tid = first->tid };
	struct buf cwd = { 0 };
	const char *path = trace_meta(r->t, "cwd", &cwd);
	struct arena a;

	arena_init(&a);
	if (path) {
		ev.args[0] = value_bytes(&a, path, strlen(path));
		step(r, &ev);
	}
	arena_release(&a);
	buf_release(&cwd);
}

/* Copies, with the bytes of names: those of more than a few letters stand apart in the trace. */

static void copy_value(struct run *r, struct arena *a, const struct arg *arg, struct value *v);

static void copy_data(struct run *r, struct arena *a, const struct arg *arg, struct value *v)
{
	struct data *d = arena_alloc(a, sizeof(*d));
	const uint8_t *bytes;
	size_t len;

	*d = *v->data;
	v->data = d;
	/* Contents are nothing to the model; the text of a symlink is short. */
	if (arg->kind != KIND_PATH && arg->kind != KIND_STR && d->kept_bytes > PATH_BYTES_MAX) {
		d->refs = NULL;
		d->bytes = NULL;
		d->kept_bytes = 0;
		return;
	}
	if (d->bytes)
		d->bytes = (uint8_t *)arena_memdup0(a, d->bytes, d->kept_bytes);
	else if (d->refs && trace_load_piece(r->t, d, 0, &bytes, &len, NULL) == 1)
		d->bytes = (uint8_t *)arena_memdup0(a, bytes, len);
	d->refs = NULL;
}

static void copy_struct(struct run *r, struct arena *a, unsigned int id, struct value *v)
{
	const struct struct_desc *desc = &struct_descs[id];
	size_t size = sizeof(struct fields) + v->count * sizeof(struct value);
	struct fields *f = arena_alloc(a, size);
	unsigned int n;

	memcpy(f, v->fields, size);
	v->fields = f;
	for (n = 0; n < desc->nr_fields; n++) {
		struct value *field = value_field(v, n);

		if (field)
			copy_value(r, a, &desc->fields[n], field);
	}
}

static void copy_value(struct run *r, struct arena *a, const struct arg *arg, struct value *v)
{
	struct value *items;
	struct arg item = *arg;
	uint32_t n;

	switch (v->type) {
	case VALUE_DATA:
		copy_data(r, a, arg, v);
		break;
	case VALUE_STRUCT:
		copy_struct(r, a, arg->struct_id, v);
		break;
	case VALUE_LIST:
		items = arena_alloc(a, (v->count + 1) * sizeof(*items));
		memcpy(items, v->items, v->count * sizeof(*items));
		v->items = items;
		item.kind = arg->struct_id ? KIND_STRUCT : arg->elem;
		for (n = 0; n < v->count; n++)
			copy_value(r, a, &item, &items[n]);
		break;
	default:
		break;
	}
}

static void copy_args(struct run *r, struct arena *a, const struct row *row, struct value *args)
{
	unsigned int n;

	for (n = 0; n < row->nr_args; n++)
		copy_value(r, a, &row->args[n], &args[n]);
}

/* Returns whether there is an initial tree. */
static bool each_tree_item(struct run *r, bool add)
{
	struct trace_items *it;
	struct err err = { "" };
	struct item *item;
	bool any = false;
	struct arena a;
	int ret;

	arena_init(&a);
	if (trace_items_open(r->t, BLOCK_TREE, &it, &err) < 0)
		die("trees", &err);
	while ((ret = trace_items_next(it, &item, &err)) == 1) {
		if (item->row->id == REC_tree_entry)
			any = true;
		if (add) {
			arena_reset(&a);
			copy_args(r, &a, item->row, item->args);
			fsmodel_add_tree(r->m, item);
		}
	}
	arena_release(&a);
	if (ret < 0)
		die("trees", &err);
	trace_items_close(it);
	return any;
}

/* The queue. */

static void enqueue(struct run *r, const struct event *ev)
{
	struct waiting *w = r->spare;

	if (w) {
		r->spare = w->next;
		arena_reset(&w->arena);
	} else {
		w = xcalloc(1, sizeof(*w));
		arena_init(&w->arena);
	}
	w->ev = *ev;
	w->next = NULL;
	copy_args(r, &w->arena, w->ev.row, w->ev.args);
	if (r->last)
		r->last->next = w;
	else
		r->first = w;
	r->last = w;
	r->nr_waiting++;
}

/* Steps over what comes after `before`, NULL: the first. */
static void step_waiting(struct run *r, struct waiting *before)
{
	struct waiting *w = before ? before->next : r->first;

	if (before)
		before->next = w->next;
	else
		r->first = w->next;
	if (r->last == w)
		r->last = before;
	r->nr_waiting--;
	step(r, &w->ev);
	w->next = r->spare;
	r->spare = w;
}

/* Whether all that its thread did before has been seen. */
static bool is_next_of_thread(const struct run *r, const struct waiting *w)
{
	const struct waiting *other;

	for (other = r->first; other != w; other = other->next) {
		if (other->ev.tid == w->ev.tid)
			return false;
	}
	return true;
}

/* Lets those go first that overlapped the first event and may be why it does not fit. */
static void give_way(struct run *r)
{
	struct event *head = &r->first->ev;
	struct waiting *w, *before = r->first;

	while ((w = before->next) && !fsmodel_fits(r->m, head)) {
		if (w->ev.enter_ns <= event_effect_ns(head) &&
		    fsmodel_may_affect(r->m, &w->ev, head) && is_next_of_thread(r, w) &&
		    fsmodel_fits(r->m, &w->ev)) {
			r->nr_moved++;
			step_waiting(r, before);
			/* What waited for this one in its own thread may come now. */
			before = r->first;
		} else {
			before = w;
		}
	}
}

static void drain(struct run *r, size_t leave)
{
	while (r->nr_waiting > leave) {
		if (!r->keep_order)
			give_way(r);
		step_waiting(r, NULL);
	}
}

static void release_spares(struct run *r)
{
	struct waiting *w;

	while ((w = r->spare)) {
		r->spare = w->next;
		arena_release(&w->arena);
		free(w);
	}
}

static void run_events(struct run *r)
{
	struct trace_query q = { .order = TRACE_BY_EFFECT };
	struct trace_iter *it;
	struct err err = { "" };
	struct event *ev;
	int ret;

	if (trace_iter_open(r->t, &q, &it, &err) < 0)
		die("events", &err);
	while ((ret = trace_iter_next(it, &ev, &err)) == 1) {
		bool first = !r->nr_events;

		enqueue(r, ev);
		/* Before all else, for what it does may be looked up from there. */
		if (first) {
			drain(r, 0);
			tell_start(r, ev);
		}
		drain(r, WINDOW);
	}
	drain(r, 0);
	if (ret < 0)
		die("events", &err);
	trace_iter_close(it);
}

static void print_totals(struct run *r)
{
	struct fsmodel_totals totals = fsmodel_totals(r->m);
	uint64_t all = 0, left = 0;
	int n;

	for (n = 1; n < CONTRADICTION_MAX; n++) {
		all += totals.contradictions[n];
		left += totals.contradictions[n] - totals.repaired[n];
		if (totals.contradictions[n])
			printf("%s %llu\n", contradiction_names[n],
			       (unsigned long long)totals.contradictions[n]);
	}
	printf("events %llu\ntouches %llu\nfiles %llu\nnames %llu\nabsent %llu\nfds %llu\n",
	       (unsigned long long)r->nr_events, (unsigned long long)r->nr_touches,
	       (unsigned long long)totals.nr_files, (unsigned long long)totals.nr_names,
	       (unsigned long long)totals.nr_absent, (unsigned long long)totals.nr_fds);
	if (r->timed && r->nr_events)
		printf("ns_per_event %llu\n", (unsigned long long)(r->spent_ns / r->nr_events));
	printf("moved %llu\n", (unsigned long long)r->nr_moved);
	printf("contradictions %llu\nunrepaired %llu\n", (unsigned long long)all,
	       (unsigned long long)left);
}

int main(int argc, char **argv)
{
	struct run r = { 0 };
	struct fsmodel_options options = { 0 };
	struct err err = { "" };
	int n = 1;

	for (; n < argc && argv[n][0] == '-'; n++) {
		if (!strcmp(argv[n], "-i"))
			r.ignore_tree = true;
		else if (!strcmp(argv[n], "-n"))
			r.keep_order = true;
		else if (!strcmp(argv[n], "-t"))
			r.timed = true;
	}
	if (n != argc - 1) {
		fprintf(stderr, "usage: model_trace [-i] [-n] [-t] TRACE\n");
		return 2;
	}
	if (trace_open(argv[n], 0, &r.t, &err) < 0)
		die(argv[n], &err);
	options.uid = meta_number(&r, "uid");
	options.gid = meta_number(&r, "gid");
	options.tree_known = !r.ignore_tree && each_tree_item(&r, false);
	r.m = fsmodel_new(&options);
	if (options.tree_known)
		(void)each_tree_item(&r, true);
	run_events(&r);
	print_totals(&r);
	fsmodel_free(r.m);
	buf_release(&r.line);
	release_spares(&r);
	trace_close(r.t);
	return 0;
}
