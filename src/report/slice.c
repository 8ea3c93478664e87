/* SPDX-License-Identifier: MIT */
#include "report/slice.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/banned.h"
#include "base/map.h"
#include "base/mem.h"
#include "trace/copy.h"
#include "trace/writer.h"

/* Beyond this the trees are kept whole. */
#define TOUCHED_MAX 1000000
/* As many as the kernel follows. */
#define LINKS_MAX 40
/* How often streams that have ended are looked for. */
#define SWEEP_EVENTS 65536

/* The paths that the kept events touch, and all directories above them. */
struct touched {
	bool wanted; /* else trees are kept whole */
	bool all; /* it cannot be told, or there are too many */
	struct map paths;
	struct map links; /* of the initial tree: path -> target, owned */
	struct buf scratch;
};

struct slicer {
	struct trace *from;
	const struct slice_options *o;
	struct fdpaths *paths; /* NULL: not needed */
	struct trace_writer *writer;
	struct trace_feed *feed;
	struct trace_stream **streams; /* of the new trace, by stream of the old */
	uint64_t *lost; /* by row id */
	const char *lost_names[ROW_ID_MAX];
	struct touched touched;
	struct arena arena;
	struct slice_result result;
	struct err *err;
};

/* What is touched. */

static void touched_release(struct touched *t)
{
	MAP_EACH (&t->links, e)
		free(e->value);
	map_release(&t->links);
	map_release(&t->paths);
	buf_release(&t->scratch);
}

/* Notes the names along path until one is a link; then `scratch` is where it leads, and more follows. */
static bool touch_until_link(struct touched *t, const char *path, size_t len)
{
	size_t end;

	for (end = 1; end <= len; end++) {
		const char *target;

		if (end < len && path[end] != '/')
			continue;
		*map_slot(&t->paths, path, end) = t;
		target = map_get(&t->links, path, end);
		if (!target)
			continue;
		buf_clear(&t->scratch);
		buf_put(&t->scratch, path, end);
		fdpaths_join(&t->scratch, "..", 2);
		fdpaths_join(&t->scratch, target, strlen(target));
		if (end < len)
			fdpaths_join(&t->scratch, path + end + 1, len - end - 1);
		return true;
	}
	return false;
}

static void touch(struct touched *t, const char *path, size_t len)
{
	unsigned int links;
	char *at;

	if (t->all || map_get(&t->paths, path, len))
		return;
	/* Things without a name are in no tree; a relative path may be any. */
	if (!len || *path != '/') {
		t->all |= !memchr(path, ':', len);
		return;
	}
	*map_slot(&t->paths, "/", 1) = t;
	at = xmemdup0(path, len);
	for (links = 0; links < LINKS_MAX; links++) {
		if (!touch_until_link(t, at, strlen(at)))
			break;
		free(at);
		at = xstrdup(buf_str(&t->scratch));
	}
	free(at);
	t->all = t->paths.nr_live > TOUCHED_MAX;
}

static void touch_fd(struct slicer *s, const struct event *ev, const struct value *v)
{
	const struct fd_file *f = v->type == VALUE_INT ? fdpaths_find(s->paths, ev, v->i) : NULL;

	if (f)
		touch(&s->touched, f->path, f->path_len);
}

static void touch_event(struct slicer *s, const struct event *ev)
{
	struct buf path = { 0 };
	unsigned int i;

	for (i = 0; i < ev->row->nr_args; i++) {
		const struct arg *arg = &ev->row->args[i];

		if (arg->kind == KIND_FD || arg->kind == KIND_DIRFD)
			touch_fd(s, ev, &ev->args[i]);
		else if (fdpaths_resolve(s->paths, ev, i, &path))
			touch(&s->touched, buf_str(&path), path.len);
	}
	buf_release(&path);
}

static bool load_text(struct slicer *s, const struct value *v, struct buf *out)
{
	const uint8_t *bytes;
	size_t len;

	buf_clear(out);
	if (!v || v->type != VALUE_DATA ||
	    trace_load_piece(s->from, v->data, 0, &bytes, &len, NULL) != 1)
		return false;
	buf_put(out, bytes, len);
	return out->len > 0;
}

static void note_link(struct slicer *s, struct item *item)
{
	struct map *links = &s->touched.links;
	struct buf path = { 0 }, target = { 0 };
	void **slot;

	if (item->row->id == REC_tree_entry && links->nr_live < TOUCHED_MAX &&
	    load_text(s, args_find(item->row, item->args, "path"), &path) &&
	    load_text(s, args_find(item->row, item->args, "target"), &target)) {
		slot = map_slot(links, path.data, path.len);
		if (!*slot)
			*slot = xmemdup0(target.data, target.len);
	}
	buf_release(&path);
	buf_release(&target);
}

static bool tree_entry_is_kept(struct slicer *s, struct item *item)
{
	struct touched *t = &s->touched;
	struct buf path = { 0 };
	bool kept = true;

	if (!t->wanted || t->all || item->row->id != REC_tree_entry)
		return true;
	if (load_text(s, args_find(item->row, item->args, "path"), &path))
		kept = map_get(&t->paths, path.data, path.len) ||
		       filter_matches_path(s->o->filter, buf_str(&path));
	buf_release(&path);
	return kept;
}

/* Records. */

static int each_item(struct slicer *s, enum block_type section,
		     int (*act)(struct slicer *s, struct item *item))
{
	struct trace_items *it;
	struct item *item;
	int r = trace_items_open(s->from, section, &it, s->err);

	if (r < 0)
		return r;
	while ((r = trace_items_next(it, &item, s->err)) == 1) {
		r = act(s, item);
		arena_reset(&s->arena);
		if (r < 0)
			break;
	}
	trace_items_close(it);
	return r;
}

static int gather_link(struct slicer *s, struct item *item)
{
	note_link(s, item);
	return 0;
}

static int copy_item(struct slicer *s, struct item *item)
{
	int r;

	if (!tree_entry_is_kept(s, item))
		return 0;
	r = trace_copy_item(s->from, s->feed, item, &s->arena, s->err);
	/* A record that we do not know is none that our readers could use. */
	if (r == -EOPNOTSUPP)
		return 0;
	if (r < 0)
		return r;
	s->result.nr_missing_data += (uint64_t)r;
	s->result.nr_tree_entries += item->row->id == REC_tree_entry;
	return 0;
}

/* Events. */

static struct trace_stream *stream_for(struct slicer *s, const struct event *ev)
{
	if (!s->streams[ev->stream])
		s->streams[ev->stream] = trace_feed_open_stream(s->feed, ev->pid, ev->tid);
	return s->streams[ev->stream];
}

static int close_ended_streams(struct slicer *s, uint64_t now_ns)
{
	const struct trace_stream_info *infos;
	size_t i, nr;
	int r = 0;

	infos = trace_streams(s->from, &nr);
	for (i = 0; i < nr && !r; i++) {
		if (!s->streams[i] || infos[i].last_ns >= now_ns)
			continue;
		r = trace_feed_close_stream(s->feed, s->streams[i]);
		s->streams[i] = NULL;
	}
	return r < 0 ? err_set(s->err, r, "cannot write %s", s->o->output) : 0;
}

static int keep_event(struct slicer *s, struct event *ev)
{
	int r = trace_copy_event(s->from, s->feed, stream_for(s, ev), ev, &s->arena, s->err);

	arena_reset(&s->arena);
	if (r == -EOPNOTSUPP) {
		s->lost[ev->row->id]++;
		s->lost_names[ev->row->id] = ev->row->name;
		s->result.nr_lost++;
		return 0;
	}
	if (r == -E2BIG) { /* the writer has put it into the ledger */
		s->result.nr_lost++;
		return 0;
	}
	if (r < 0)
		return r;
	s->result.nr_missing_data += (uint64_t)r;
	s->result.nr_kept++;
	return 0;
}

static int slice_event(struct slicer *s, struct event *ev)
{
	bool kept = filter_matches(s->o->filter, ev, s->paths) ||
		    filter_matches_context(s->o->filter, ev);

	if (kept && s->touched.wanted)
		touch_event(s, ev);
	/* Copying changes the event's data, so what follows paths goes first. */
	if (s->paths)
		fdpaths_apply(s->paths, ev);
	return kept ? keep_event(s, ev) : 0;
}

static int slice_events(struct slicer *s)
{
	struct trace_query q = { .progress = s->o->progress };
	struct trace_iter *it;
	struct event *ev;
	uint64_t nr = 0;
	int r;

	filter_narrow_query(s->o->filter, s->paths != NULL, &q);
	progress_set_total(s->o->progress, trace_nr_events(s->from));
	r = trace_iter_open(s->from, &q, &it, s->err);
	if (r < 0)
		return r;
	while ((r = trace_iter_next(it, &ev, s->err)) == 1) {
		r = slice_event(s, ev);
		if (!r && ++nr % SWEEP_EVENTS == 0)
			r = close_ended_streams(s, ev->enter_ns);
		if (r < 0)
			break;
	}
	trace_iter_close(it);
	return r;
}

/* The ledger. */

static int feed_loss(struct slicer *s, const struct loss *loss)
{
	int r = trace_feed_loss(s->feed, loss);

	return r < 0 ? err_set(s->err, r, "cannot write %s", s->o->output) : 0;
}

static int feed_lost_rows(struct slicer *s)
{
	char note[128];
	unsigned int id;
	int r = 0;

	for (id = 0; id < ROW_ID_MAX && !r; id++) {
		struct loss loss = { .kind = LOSS_EVENTS_LOST, .count = s->lost[id], .note = note };

		if (!s->lost[id])
			continue;
		(void)snprintf(note, sizeof(note),
			       "%s: not in the table of calls of who wrote this",
			       s->lost_names[id]); /* cut short at worst */
		r = feed_loss(s, &loss);
	}
	return r;
}

static int feed_ledger(struct slicer *s)
{
	struct slice_result *res = &s->result;
	struct loss left_out = { .kind = LOSS_FILTERED, .count = res->nr_left_out };
	struct loss no_data = { .kind = LOSS_BLOB_MISSING,
				.count = res->nr_missing_data,
				.note = "gone from the trace that this one was cut from" };
	struct loss not_closed = { .kind = LOSS_NOT_CLOSED,
				   .note = "the trace that this one was cut from" };
	struct buf note = { 0 };
	int r = each_item(s, BLOCK_LEDGER, copy_item);

	buf_printf(&note, "cut from %s", trace_path(s->from));
	left_out.note = buf_str(&note);
	if (!r && res->nr_left_out)
		r = feed_loss(s, &left_out);
	if (!r && res->nr_missing_data)
		r = feed_loss(s, &no_data);
	if (!r && trace_tail(s->from, NULL) != 0)
		r = feed_loss(s, &not_closed);
	if (!r)
		r = feed_lost_rows(s);
	buf_release(&note);
	return r;
}

/* All of it. */

static int slice_all(struct slicer *s)
{
	int r = each_item(s, BLOCK_META, copy_item);

	if (!r && s->touched.wanted)
		r = each_item(s, BLOCK_TREE, gather_link);
	if (!r)
		r = slice_events(s);
	if (!r)
		r = each_item(s, BLOCK_TREE, copy_item);
	s->result.nr_left_out = trace_nr_events(s->from) - s->result.nr_kept - s->result.nr_lost;
	return r < 0 ? r : feed_ledger(s);
}

/* Writing over the trace that is being read would destroy both. */
static int check_output(const struct trace *t, const char *output, struct err *err)
{
	struct stat from, to;

	if (stat(trace_path(t), &from) == 0 && stat(output, &to) == 0 && from.st_dev == to.st_dev &&
	    from.st_ino == to.st_ino)
		return err_set(err, -EINVAL, "%s is the trace itself", output);
	return 0;
}

/* Half a trace would look like a whole one. What is no file was not made by us. */
static void remove_output(const char *output)
{
	struct stat st;

	if (lstat(output, &st) == 0 && S_ISREG(st.st_mode))
		(void)unlink(output); /* the failure that led here is the one to tell */
}

static void slicer_release(struct slicer *s)
{
	fdpaths_free(s->paths);
	touched_release(&s->touched);
	arena_release(&s->arena);
	free(s->streams);
	free(s->lost);
	free(s);
}

static struct slicer *slicer_new(struct trace *t, const struct slice_options *o, struct err *err)
{
	struct slicer *s = xcalloc(1, sizeof(*s));
	size_t nr;

	(void)trace_streams(t, &nr); /* only how many */
	s->from = t;
	s->o = o;
	s->err = err;
	s->streams = xcalloc(nr + 1, sizeof(*s->streams));
	s->lost = xcalloc(ROW_ID_MAX, sizeof(*s->lost));
	s->touched.wanted = filter_needs_paths(o->filter);
	s->paths = s->touched.wanted ? fdpaths_new(t) : NULL;
	arena_init(&s->arena);
	return s;
}

int slice_trace(struct trace *t, const struct slice_options *o, struct slice_result *ret,
		struct err *err)
{
	struct trace_writer_options options = { .replace = o->replace,
						.file_mode = o->file_mode,
						.eager = true };
	struct slicer *s;
	int r = check_output(t, o->output, err);

	if (r < 0)
		return r;
	s = slicer_new(t, o, err);
	r = trace_writer_open(o->output, &options, &s->writer, err);
	if (r < 0) {
		slicer_release(s);
		return r;
	}
	s->feed = trace_writer_add_feed(s->writer);
	r = slice_all(s);
	if (r < 0)
		trace_writer_abandon(s->writer);
	else
		r = trace_writer_close(s->writer, err);
	if (r < 0)
		remove_output(o->output);
	else
		*ret = s->result;
	slicer_release(s);
	return r;
}
