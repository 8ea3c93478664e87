/* SPDX-License-Identifier: MIT */
#include "report/stats.h"

#include <stdlib.h>
#include <string.h>

#include "base/banned.h"
#include "base/clock.h"
#include "model/vocab.h"

#define NO_ARG 0xff
#define NOTE_MAX_BYTES 1024

/* What is worth knowing of a row, found out when it first appears. */
struct stats_row {
	bool known, is_call, waits;
	bool opens; /* its result is a file with a name */
	uint8_t fd_arg; /* the descriptor that is read, written or asked */
	uint8_t to_arg; /* where data is copied to */
};

struct stats *stats_new(void)
{
	struct stats *s = xcalloc(1, sizeof(*s));

	s->first_ns = UINT64_MAX;
	s->rows = xcalloc(ROW_ID_MAX, sizeof(*s->rows));
	return s;
}

void stats_free(struct stats *s)
{
	size_t i;

	if (!s)
		return;
	for (i = 0; i < ROW_ID_MAX; i++) {
		if (s->calls[i])
			histogram_release(&s->calls[i]->latency_ns);
		free(s->calls[i]);
	}
	for (i = 0; i < s->nr_threads; i++)
		free(s->threads[i]);
	MAP_EACH (&s->files.by_path, e)
		free(e->value);
	for (i = 0; i < s->sections.ledger.len; i++)
		free(s->sections.ledger.items[i].note);
	histogram_release(&s->read_sizes);
	histogram_release(&s->write_sizes);
	histogram_release(&s->gaps_ns);
	VEC_RELEASE(&s->sections.ledger);
	map_release(&s->files.by_path);
	map_release(&s->pids);
	free(s->threads);
	free(s->by_stream);
	free(s->rows);
	free(s);
}

bool stats_is_complete(const struct stats *s)
{
	return s->sections.closed && !s->sections.has_losses;
}

static void find_row(const struct row *row, struct stats_row *r)
{
	bool has_path = false;
	unsigned int i;

	*r = (struct stats_row){ .known = true, .fd_arg = NO_ARG, .to_arg = NO_ARG };
	r->is_call = row->sort == ROW_CALL;
	r->waits = row->class & A_WAITS;
	for (i = 0; i < row->nr_args; i++) {
		const struct arg *arg = &row->args[i];

		has_path |= arg->kind == KIND_PATH;
		if (arg->kind != KIND_FD || arg->reg == REG_NONE)
			continue;
		/* fd_in, in_fd; fd_out, out_fd */
		if (row->result == RESULT_BYTES_COPIED && strstr(arg->name, "out"))
			r->to_arg = (uint8_t)i;
		else if (r->fd_arg == NO_ARG)
			r->fd_arg = (uint8_t)i;
	}
	r->opens = row->result == RESULT_NEW_FD && has_path;
}

static const struct stats_row *row_of(struct stats *s, const struct row *row)
{
	struct stats_row *r = &s->rows[row->id];

	if (UNLIKELY(!r->known))
		find_row(row, r);
	return r;
}

static struct stats_call *call_of(struct stats *s, const struct row *row)
{
	struct stats_call *c = s->calls[row->id];

	if (UNLIKELY(!c)) {
		c = s->calls[row->id] = xcalloc(1, sizeof(*c));
		c->row = row;
	}
	return c;
}

static struct stats_thread *thread_new(struct stats *s, const struct event *ev)
{
	struct stats_thread *t = xcalloc(1, sizeof(*t));
	void **seen = map_slot(&s->pids, &ev->pid, sizeof(ev->pid));

	if (!*seen)
		s->nr_processes++;
	*seen = t;
	t->pid = ev->pid;
	t->tid = ev->tid;
	t->first_ns = ev->enter_ns;
	if (s->nr_threads == s->cap_threads)
		s->threads = vec_grow(s->threads, &s->cap_threads, sizeof(*s->threads));
	s->threads[s->nr_threads++] = t;
	return t;
}

static void streams_grow(struct stats *s, size_t at_least)
{
	size_t nr = s->nr_streams ? s->nr_streams : 64;

	while (nr < at_least)
		nr *= 2;
	s->by_stream = xrealloc(s->by_stream, nr * sizeof(*s->by_stream));
	memset(s->by_stream + s->nr_streams, 0, (nr - s->nr_streams) * sizeof(*s->by_stream));
	s->nr_streams = nr;
}

static struct stats_thread *thread_of(struct stats *s, const struct event *ev)
{
	if (LIKELY(ev->stream < s->nr_streams && s->by_stream[ev->stream]))
		return s->by_stream[ev->stream];
	if (ev->stream >= s->nr_streams)
		streams_grow(s, (size_t)ev->stream + 1);
	s->by_stream[ev->stream] = thread_new(s, ev);
	return s->by_stream[ev->stream];
}

static void add_to_thread(struct stats *s, const struct event *ev, const struct stats_row *r,
			  uint64_t duration_ns)
{
	struct stats_thread *t = thread_of(s, ev);

	t->nr_events++;
	t->last_ns = ev->exit_ns > t->last_ns ? ev->exit_ns : t->last_ns;
	/* Page faults, wake-ups and the like happen within the thread's own time. */
	if (!r->is_call)
		return;
	if (t->has_call)
		t->compute_ns +=
			clock_sub_ns(clock_sub_ns(ev->enter_ns, t->last_exit_ns), ev->held_ns);
	t->has_call = true;
	t->last_exit_ns = ev->exit_ns;
	t->held_ns += ev->held_ns;
	if (ev->cpu_ns)
		t->cpu_ns = ev->cpu_ns;
	if (r->waits)
		t->wait_ns += duration_ns;
	else
		t->io_ns += duration_ns;
}

/* Files. */

static struct stats_file *file_by_path(struct stats *s, const struct fd_file *f)
{
	struct stats_files *files = &s->files;
	struct stats_file *file = map_get(&files->by_path, f->path, f->path_len);
	void **slot;

	if (file)
		return file;
	if (files->by_path.nr_live >= STATS_FILES_MAX) {
		files->nr_others++;
		return &files->others;
	}
	file = xcalloc(1, sizeof(*file) + f->path_len + 1);
	memcpy(file + 1, f->path, f->path_len);
	file->path = (const char *)(file + 1);
	slot = map_slot(&files->by_path, f->path, f->path_len);
	*slot = file;
	return file;
}

/* A path is looked up once per opened file; from then on its descriptors lead to the sums. */
static struct stats_file *file_of(struct stats *s, struct fd_file *f)
{
	if (UNLIKELY(!f->user))
		f->user = file_by_path(s, f);
	return f->user;
}

static struct stats_file *file_of_arg(struct stats *s, const struct event *ev,
				      struct fdpaths *paths, uint8_t nr)
{
	const struct value *v;
	struct fd_file *f;

	if (nr == NO_ARG)
		return NULL;
	v = &ev->args[nr];
	f = v->type == VALUE_INT ? fdpaths_find(paths, ev, v->i) : NULL;
	return f ? file_of(s, f) : NULL;
}

static void add_to_files(struct stats *s, const struct event *ev, struct fdpaths *paths,
			 const struct stats_row *r, struct event_bytes bytes, uint64_t duration_ns)
{
	struct stats_file *file = file_of_arg(s, ev, paths, r->fd_arg);
	struct stats_file *to = r->to_arg == NO_ARG ? file : file_of_arg(s, ev, paths, r->to_arg);
	bool reads = ev->row->result == RESULT_BYTES_READ || ev->row->result == RESULT_BYTES_COPIED;
	bool writes =
		ev->row->result == RESULT_BYTES_WRITTEN || ev->row->result == RESULT_BYTES_COPIED;

	if (file) {
		file->time_ns += r->waits ? 0 : duration_ns;
		file->reads += reads;
		file->bytes_read += reads ? bytes.read : 0;
	}
	if (to) {
		if (to != file)
			to->time_ns += r->waits ? 0 : duration_ns;
		to->writes += writes;
		to->bytes_written += writes ? bytes.written : 0;
	}
}

static void add_open(struct stats *s, const struct event *ev, struct fdpaths *paths,
		     uint64_t duration_ns)
{
	struct stats_file *file;
	struct fd_file *f;

	if (ev->outcome.err || ev->flags & EVENT_UNFINISHED)
		return;
	f = fdpaths_find_after(paths, ev, ev->outcome.ret);
	if (!f)
		return;
	file = file_of(s, f);
	file->opens++;
	file->time_ns += duration_ns;
}

/* Sums. */

static void add_error(struct stats *s, int32_t err)
{
	s->errors[err > 0 && err < STATS_ERRNO_MAX ? err : 0]++;
}

static void add_sizes(struct stats *s, const struct event *ev, struct event_bytes bytes)
{
	s->bytes_read += bytes.read;
	s->bytes_written += bytes.written;
	if (ev->outcome.err || ev->flags & EVENT_UNFINISHED)
		return;
	if (ev->row->result == RESULT_BYTES_READ)
		histogram_add(&s->read_sizes, bytes.read);
	else if (ev->row->result == RESULT_BYTES_WRITTEN)
		histogram_add(&s->write_sizes, bytes.written);
}

static bool duration_is_known(const struct event *ev)
{
	return !(ev->flags & (EVENT_UNFINISHED | EVENT_NO_TIME | EVENT_NO_DURATION));
}

static void add_to_call(struct stats *s, const struct event *ev, struct event_bytes bytes,
			uint64_t duration_ns)
{
	struct stats_class *class = &s->classes[row_class(ev->row)];
	struct stats_call *call = call_of(s, ev->row);
	uint64_t moved = bytes.read > bytes.written ? bytes.read : bytes.written;

	call->count++;
	call->bytes += moved;
	call->time_ns += duration_ns;
	class->count++;
	class->bytes += moved;
	class->time_ns += duration_ns;
	if (duration_is_known(ev))
		histogram_add(&call->latency_ns, duration_ns);
	if (UNLIKELY(ev->outcome.err)) {
		call->errors++;
		class->errors++;
		add_error(s, ev->outcome.err);
	}
}

static void add_times(struct stats *s, const struct event *ev)
{
	if (s->nr_events)
		histogram_add(&s->gaps_ns, clock_sub_ns(ev->enter_ns, s->last_enter_ns));
	s->last_enter_ns = ev->enter_ns;
	if (ev->enter_ns < s->first_ns)
		s->first_ns = ev->enter_ns;
	if (ev->exit_ns > s->last_ns)
		s->last_ns = ev->exit_ns;
	s->nr_events++;
}

void stats_add(struct stats *s, const struct event *ev, struct fdpaths *paths)
{
	const struct stats_row *r = row_of(s, ev->row);
	struct event_bytes bytes = event_count_bytes(ev);
	uint64_t duration_ns = duration_is_known(ev) ? clock_sub_ns(ev->exit_ns, ev->enter_ns) : 0;

	add_times(s, ev);
	add_sizes(s, ev, bytes);
	add_to_call(s, ev, bytes, duration_ns);
	add_to_thread(s, ev, r, duration_ns);
	if (!paths)
		return;
	if (r->fd_arg != NO_ARG || r->to_arg != NO_ARG)
		add_to_files(s, ev, paths, r, bytes, duration_ns);
	fdpaths_apply(paths, ev);
	if (r->opens)
		add_open(s, ev, paths, duration_ns);
}

/* The other sections. */

static uint64_t item_number(struct item *item, const char *name)
{
	const struct value *v = args_find(item->row, item->args, name);

	return v && v->type == VALUE_INT ? v->u : 0;
}

static char *item_text(struct trace *t, struct item *item, const char *name)
{
	const struct value *v = args_find(item->row, item->args, name);
	const uint8_t *bytes;
	size_t len;

	if (!v || v->type != VALUE_DATA ||
	    trace_load_piece(t, v->data, 0, &bytes, &len, NULL) != 1 || !len)
		return NULL;
	return xmemdup0(bytes, len < NOTE_MAX_BYTES ? len : NOTE_MAX_BYTES);
}

static void add_loss(struct stats *s, struct trace *t, struct item *item)
{
	struct stats_sections *sections = &s->sections;
	struct stats_loss loss = {
		.kind = (int)item_number(item, "kind"),
		.pid = (uint32_t)item_number(item, "pid"),
		.tid = (uint32_t)item_number(item, "tid"),
		.count = item_number(item, "count"),
		.bytes = item_number(item, "bytes"),
		.from_ns = item_number(item, "from_ns"),
		.to_ns = item_number(item, "to_ns"),
	};

	sections->nr_ledger++;
	if (loss.kind == LOSS_EVENTS_LOST || loss.kind == LOSS_EVENT_TOO_LARGE)
		sections->lost += loss.count;
	if (loss.kind == LOSS_FILTERED)
		sections->filtered += loss.count;
	else
		sections->has_losses = true;
	if (sections->ledger.len == STATS_LEDGER_MAX)
		return;
	loss.note = item_text(t, item, "note");
	VEC_PUSH(&sections->ledger, loss);
}

static void add_tree_entry(struct stats *s, struct item *item)
{
	const struct value *flags = args_find(item->row, item->args, "flags");
	uint64_t inferred = 0;

	(void)vocab_parse(SET_tree_flags, "INFERRED", 8, &inferred); /* our own word */
	if (item_number(item, "tree"))
		s->sections.nr_final++;
	else
		s->sections.nr_initial++;
	if (!flags || flags->type != VALUE_INT || !(flags->u & inferred))
		return;
	s->sections.nr_inferred++;
	if (!item_number(item, "tree"))
		tree_count_add(&s->sections.inferred, args_find(item->row, item->args, "stat"));
}

bool stats_lacks_tree(const struct stats *s, struct trace *t)
{
	return !s->sections.nr_initial || trace_tree_is_partial(t);
}

void stats_set_inferred(struct stats *s, const struct tree_count *inferred)
{
	s->sections.inferred = *inferred;
}

static int collect_section(struct stats *s, struct trace *t, enum block_type section,
			   struct err *err)
{
	struct trace_items *it;
	struct item *item;
	int r = trace_items_open(t, section, &it, err);

	if (r < 0)
		return r;
	while ((r = trace_items_next(it, &item, err)) == 1) {
		if (item->row->id == REC_loss)
			add_loss(s, t, item);
		else if (item->row->id == REC_tree_entry)
			add_tree_entry(s, item);
	}
	trace_items_close(it);
	return r;
}

/* Events. */

static int collect_events(struct stats *s, struct trace *t, const struct stats_options *o,
			  struct fdpaths *paths, struct err *err)
{
	struct trace_query q = { .progress = o->progress };
	struct trace_iter *it;
	struct event *ev;
	int r;

	filter_narrow_query(o->filter, paths != NULL, &q);
	progress_set_total(o->progress, trace_nr_events(t));
	r = trace_iter_open(t, &q, &it, err);
	if (r < 0)
		return r;
	while ((r = trace_iter_next(it, &ev, err)) == 1) {
		if (filter_matches(o->filter, ev, paths))
			stats_add(s, ev, paths);
		else if (paths)
			fdpaths_apply(paths, ev);
	}
	trace_iter_close(it);
	return r;
}

int stats_collect(struct stats *s, struct trace *t, const struct stats_options *o, struct err *err)
{
	bool follow = !o->no_files || filter_needs_paths(o->filter);
	struct fdpaths *paths = follow ? fdpaths_new(t) : NULL;
	int r;

	s->files.followed = follow;
	s->sections.closed = trace_tail(t, NULL) == 0;
	r = collect_events(s, t, o, paths, err);
	if (!r)
		r = collect_section(s, t, BLOCK_LEDGER, err);
	if (!r)
		r = collect_section(s, t, BLOCK_TREE, err);
	s->files.nr_forgotten = paths ? fdpaths_nr_forgotten(paths) : 0;
	fdpaths_free(paths);
	return r;
}
