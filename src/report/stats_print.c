/* SPDX-License-Identifier: MIT */
#include "report/stats.h"

#include <stdlib.h>
#include <string.h>

#include "base/banned.h"
#include "base/clock.h"
#include "base/strings.h"
#include "model/vocab.h"

static const struct {
	const char *name;
	double percent;
} percentiles[] = { { "p50", 50 }, { "p90", 90 }, { "p99", 99 } };

/* Choosing what comes first. */

static int descending(uint64_t a, uint64_t b)
{
	return a > b ? -1 : a < b;
}

static int by_time_then_count(const void *a, const void *b)
{
	const struct stats_call *x = *(const struct stats_call *const *)a;
	const struct stats_call *y = *(const struct stats_call *const *)b;
	int order = descending(x->time_ns, y->time_ns);

	if (!order)
		order = descending(x->count, y->count);
	return order ? order : strcmp(x->row->name, y->row->name);
}

static int file_by_bytes(const void *a, const void *b)
{
	const struct stats_file *x = *(const struct stats_file *const *)a;
	const struct stats_file *y = *(const struct stats_file *const *)b;
	int order = descending(x->bytes_read + x->bytes_written, y->bytes_read + y->bytes_written);

	return order ? order : strcmp(x->path, y->path);
}

static int file_by_time(const void *a, const void *b)
{
	const struct stats_file *x = *(const struct stats_file *const *)a;
	const struct stats_file *y = *(const struct stats_file *const *)b;
	int order = descending(x->time_ns, y->time_ns);

	return order ? order : strcmp(x->path, y->path);
}

/* The rows that appeared, of one sort; the caller frees the array. */
static const struct stats_call **sorted_calls(const struct stats *s, enum row_sort sort,
					      size_t *ret_nr)
{
	const struct stats_call **calls = xcalloc(ROW_ID_MAX, sizeof(*calls));
	size_t i, nr = 0;

	for (i = 0; i < ROW_ID_MAX; i++) {
		if (s->calls[i] && s->calls[i]->row->sort == sort)
			calls[nr++] = s->calls[i];
	}
	qsort(calls, nr, sizeof(*calls), by_time_then_count);
	*ret_nr = nr;
	return calls;
}

static const struct stats_file **
sorted_files(const struct stats *s, int (*order)(const void *, const void *), size_t *ret_nr)
{
	const struct map *m = &s->files.by_path;
	const struct stats_file **files = xcalloc(m->nr_live + 1, sizeof(*files));
	size_t nr = 0;

	MAP_EACH (m, e)
		files[nr++] = e->value;
	qsort(files, nr, sizeof(*files), order);
	*ret_nr = nr;
	return files;
}

static uint64_t duration_of(const struct stats *s)
{
	return s->nr_events ? clock_sub_ns(s->last_ns, s->first_ns) : 0;
}

/* JSON. */

static void json_percentiles(struct json *w, const struct histogram *h)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(percentiles); i++)
		json_kv_u64(w, percentiles[i].name,
			    histogram_percentile(h, percentiles[i].percent));
	json_kv_u64(w, "max", h->max);
}

static void json_calls(struct json *w, const struct stats *s, const char *key, enum row_sort sort)
{
	size_t i, nr;
	const struct stats_call **calls = sorted_calls(s, sort, &nr);

	json_key(w, key);
	json_object_begin(w);
	for (i = 0; i < nr; i++) {
		json_key(w, calls[i]->row->name);
		json_object_begin(w);
		json_kv_u64(w, "count", calls[i]->count);
		json_kv_u64(w, "errors", calls[i]->errors);
		json_kv_u64(w, "bytes", calls[i]->bytes);
		json_kv_u64(w, "time_ns", calls[i]->time_ns);
		json_key(w, "latency_ns");
		json_object_begin(w);
		json_percentiles(w, &calls[i]->latency_ns);
		json_object_end(w);
		json_object_end(w);
	}
	json_object_end(w);
	free(calls);
}

static void json_classes(struct json *w, const struct stats *s)
{
	size_t i;

	json_key(w, "classes");
	json_object_begin(w);
	for (i = 1; i < C_MAX; i++) {
		const struct stats_class *c = &s->classes[i];

		if (!c->count)
			continue;
		json_key(w, class_names[i]);
		json_object_begin(w);
		json_kv_u64(w, "count", c->count);
		json_kv_u64(w, "errors", c->errors);
		json_kv_u64(w, "bytes", c->bytes);
		json_kv_u64(w, "time_ns", c->time_ns);
		json_object_end(w);
	}
	json_object_end(w);
}

static const char *error_label(size_t number, char *buf, size_t size)
{
	const char *name = number ? errno_name((int)number) : "other";

	if (name)
		return name;
	(void)snprintf(buf, size, "%zu", number); /* four digits fit */
	return buf;
}

static void json_errors(struct json *w, const struct stats *s)
{
	char number[16];
	size_t i;

	json_key(w, "errors");
	json_object_begin(w);
	for (i = 0; i < STATS_ERRNO_MAX; i++) {
		if (s->errors[i])
			json_kv_u64(w, error_label(i, number, sizeof(number)), s->errors[i]);
	}
	json_object_end(w);
}

static void json_threads(struct json *w, const struct stats *s)
{
	size_t i;

	json_key(w, "per_thread");
	json_array_begin(w);
	for (i = 0; i < s->nr_threads; i++) {
		const struct stats_thread *t = s->threads[i];

		json_object_begin(w);
		json_kv_u64(w, "pid", t->pid);
		json_kv_u64(w, "tid", t->tid);
		json_kv_u64(w, "events", t->nr_events);
		json_kv_u64(w, "compute_ns", t->compute_ns);
		json_kv_u64(w, "wait_ns", t->wait_ns);
		json_kv_u64(w, "io_ns", t->io_ns);
		json_kv_u64(w, "held_ns", t->held_ns);
		json_kv_u64(w, "cpu_ns", t->cpu_ns);
		json_kv_u64(w, "first_ns", t->first_ns);
		json_kv_u64(w, "last_ns", t->last_ns);
		json_object_end(w);
	}
	json_array_end(w);
}

static void json_file(struct json *w, const struct stats_file *f)
{
	json_object_begin(w);
	if (f->path)
		json_kv_bytes(w, "path", f->path, strlen(f->path));
	json_kv_u64(w, "opens", f->opens);
	json_kv_u64(w, "reads", f->reads);
	json_kv_u64(w, "writes", f->writes);
	json_kv_u64(w, "bytes_read", f->bytes_read);
	json_kv_u64(w, "bytes_written", f->bytes_written);
	json_kv_u64(w, "time_ns", f->time_ns);
	json_object_end(w);
}

static void json_top_files(struct json *w, const struct stats *s, const char *key,
			   int (*order)(const void *, const void *), size_t top)
{
	size_t i, nr;
	const struct stats_file **files = sorted_files(s, order, &nr);

	json_key(w, key);
	json_array_begin(w);
	for (i = 0; i < nr && i < top; i++)
		json_file(w, files[i]);
	json_array_end(w);
	free(files);
}

static void json_files(struct json *w, const struct stats *s, size_t top)
{
	json_key(w, "files");
	if (!s->files.followed) {
		json_null(w);
		return;
	}
	json_object_begin(w);
	json_kv_u64(w, "distinct", s->files.by_path.nr_live);
	json_top_files(w, s, "by_bytes", file_by_bytes, top);
	json_top_files(w, s, "by_time", file_by_time, top);
	json_key(w, "others");
	json_file(w, &s->files.others);
	json_kv_u64(w, "others_opened", s->files.nr_others);
	json_kv_u64(w, "descriptors_not_followed", s->files.nr_forgotten);
	json_object_end(w);
}

static void json_sizes(struct json *w, const char *key, const struct histogram *h)
{
	unsigned int power;

	json_key(w, key);
	json_object_begin(w);
	json_kv_u64(w, "count", h->count);
	json_percentiles(w, h);
	json_key(w, "powers_of_two");
	json_array_begin(w);
	for (power = 0; power <= 64; power++) {
		/* Zero first: it is in no power of two. */
		uint64_t count = power ? histogram_power(h, power - 1) : histogram_zeros(h);

		if (!count)
			continue;
		json_object_begin(w);
		json_kv_u64(w, "from", power ? UINT64_C(1) << (power - 1) : 0);
		json_kv_u64(w, "count", count);
		json_object_end(w);
	}
	json_array_end(w);
	json_object_end(w);
}

static void json_loss(struct json *w, const struct stats_loss *loss)
{
	json_object_begin(w);
	json_kv_str(w, "kind", vocab_name(SET_loss_kinds, (uint64_t)loss->kind));
	json_kv_u64(w, "pid", loss->pid);
	json_kv_u64(w, "tid", loss->tid);
	json_kv_u64(w, "count", loss->count);
	json_kv_u64(w, "bytes", loss->bytes);
	json_kv_u64(w, "from_ns", loss->from_ns);
	json_kv_u64(w, "to_ns", loss->to_ns);
	json_kv_str(w, "note", loss->note);
	json_object_end(w);
}

static void json_sections(struct json *w, const struct stats_sections *sections)
{
	size_t i;

	json_kv_u64(w, "ledger_entries", sections->nr_ledger);
	json_key(w, "ledger");
	json_array_begin(w);
	for (i = 0; i < sections->ledger.len; i++)
		json_loss(w, &sections->ledger.items[i]);
	json_array_end(w);
	json_key(w, "trees");
	json_object_begin(w);
	json_kv_u64(w, "initial", sections->nr_initial);
	json_kv_u64(w, "final", sections->nr_final);
	json_kv_u64(w, "inferred", sections->nr_inferred);
	json_object_end(w);
	json_key(w, "inferred_tree");
	json_object_begin(w);
	json_kv_u64(w, "files", sections->inferred.nr_files);
	json_kv_u64(w, "directories", sections->inferred.nr_dirs);
	json_kv_u64(w, "symlinks", sections->inferred.nr_symlinks);
	json_kv_u64(w, "others", sections->inferred.nr_others);
	json_kv_u64(w, "file_bytes", sections->inferred.file_bytes);
	json_object_end(w);
}

void stats_print_json(const struct stats *s, const struct stats_print_options *o, struct json *w)
{
	json_object_begin(w);
	json_kv_bytes(w, "trace", o->trace_path, strlen(o->trace_path));
	json_kv_bool(w, "complete", stats_is_complete(s));
	json_kv_u64(w, "events", s->nr_events);
	json_kv_u64(w, "threads", s->nr_threads);
	json_kv_u64(w, "processes", s->nr_processes);
	json_kv_u64(w, "lost", s->sections.lost);
	json_kv_u64(w, "left_out", s->sections.filtered);
	json_kv_u64(w, "bytes_read", s->bytes_read);
	json_kv_u64(w, "bytes_written", s->bytes_written);
	json_kv_u64(w, "first_ns", s->nr_events ? s->first_ns : 0);
	json_kv_u64(w, "last_ns", s->last_ns);
	json_kv_u64(w, "duration_ns", duration_of(s));
	json_calls(w, s, "calls", ROW_CALL);
	json_calls(w, s, "other_events", ROW_EVENT);
	json_classes(w, s);
	json_errors(w, s);
	json_sizes(w, "read_sizes", &s->read_sizes);
	json_sizes(w, "write_sizes", &s->write_sizes);
	json_key(w, "interarrival_ns");
	json_object_begin(w);
	json_percentiles(w, &s->gaps_ns);
	json_object_end(w);
	json_threads(w, s);
	json_files(w, s, o->top);
	json_sections(w, &s->sections);
	json_object_end(w);
}

/* Text. */

/* What a user reads in a column of the given width, to the right. */
static void put_column(struct buf *b, unsigned int width, void (*put)(struct buf *b, uint64_t v),
		       uint64_t v)
{
	struct buf text = { 0 };

	put(&text, v);
	buf_printf(b, " %*s", (int)width, buf_str(&text));
	buf_release(&text);
}

static void put_exact(struct buf *b, uint64_t v)
{
	buf_printf(b, "%llu", (unsigned long long)v);
}

static void text_label(struct buf *b, const char *label)
{
	buf_printf(b, "%-15s", label);
}

static void text_head(struct buf *b, const struct stats *s, const char *trace_path)
{
	text_label(b, "trace");
	buf_printf(b, "%s\n", trace_path);
	text_label(b, "events");
	buf_printf(b, "%llu of %zu thread%s in %llu process%s\n", (unsigned long long)s->nr_events,
		   s->nr_threads, s->nr_threads == 1 ? "" : "s",
		   (unsigned long long)s->nr_processes, s->nr_processes == 1 ? "" : "es");
	text_label(b, "duration");
	strings_put_duration(b, duration_of(s));
	buf_puts(b, ", from ");
	strings_put_duration(b, s->nr_events ? s->first_ns : 0);
	buf_puts(b, " to ");
	strings_put_duration(b, s->last_ns);
	buf_puts(b, " after the start\n");
	text_label(b, "read");
	strings_put_bytes(b, s->bytes_read);
	buf_putc(b, '\n');
	text_label(b, "written");
	strings_put_bytes(b, s->bytes_written);
	buf_putc(b, '\n');
}

static void text_inferred(struct buf *b, const struct tree_count *n)
{
	if (!tree_count_all(n))
		return;
	text_label(b, "inferred tree");
	buf_printf(b, "%llu files of at least ", (unsigned long long)n->nr_files);
	strings_put_bytes(b, n->file_bytes);
	buf_printf(b, ", %llu directories, %llu symlinks, %llu others\n",
		   (unsigned long long)n->nr_dirs, (unsigned long long)n->nr_symlinks,
		   (unsigned long long)n->nr_others);
}

static void text_completeness(struct buf *b, const struct stats_sections *sections)
{
	size_t i;

	text_label(b, "complete");
	if (!sections->closed)
		buf_puts(b, "no: the trace was not closed\n");
	else if (sections->has_losses)
		buf_puts(b, "no: the ledger has losses\n");
	else
		buf_puts(b, "yes\n");
	text_label(b, "lost");
	buf_printf(b, "%llu events\n", (unsigned long long)sections->lost);
	if (sections->filtered) {
		text_label(b, "left out");
		buf_printf(b, "%llu events, on request\n", (unsigned long long)sections->filtered);
	}
	text_label(b, "trees");
	buf_printf(b, "%llu initial, %llu final, %llu of them inferred\n",
		   (unsigned long long)sections->nr_initial, (unsigned long long)sections->nr_final,
		   (unsigned long long)sections->nr_inferred);
	text_inferred(b, &sections->inferred);
	for (i = 0; i < sections->ledger.len; i++) {
		const struct stats_loss *loss = &sections->ledger.items[i];
		const char *kind = vocab_name(SET_loss_kinds, (uint64_t)loss->kind);

		text_label(b, i ? "" : "ledger");
		buf_printf(b, "%s: %llu events, %llu bytes%s", kind ? kind : "unknown",
			   (unsigned long long)loss->count, (unsigned long long)loss->bytes,
			   loss->note ? ": " : "");
		if (loss->note)
			strings_put_foreign(b, loss->note, strlen(loss->note));
		buf_putc(b, '\n');
	}
	if (sections->nr_ledger > sections->ledger.len)
		buf_printf(b, "%-15sand %llu more\n", "",
			   (unsigned long long)(sections->nr_ledger - sections->ledger.len));
}

static void text_latencies(struct buf *b, const struct histogram *h)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(percentiles); i++)
		put_column(b, 8, strings_put_duration,
			   histogram_percentile(h, percentiles[i].percent));
	put_column(b, 8, strings_put_duration, h->max);
}

static void text_calls(struct buf *b, const struct stats *s, const char *title, enum row_sort sort)
{
	size_t i, nr;
	const struct stats_call **calls = sorted_calls(s, sort, &nr);

	if (nr)
		buf_printf(b, "\n%-24s %10s %8s %9s %8s %8s %8s %8s %8s\n", title, "count",
			   "errors", "bytes", "time", "p50", "p90", "p99", "max");
	for (i = 0; i < nr; i++) {
		buf_printf(b, "  %-22s", calls[i]->row->name);
		put_column(b, 10, put_exact, calls[i]->count);
		put_column(b, 8, put_exact, calls[i]->errors);
		put_column(b, 9, strings_put_bytes, calls[i]->bytes);
		put_column(b, 8, strings_put_duration, calls[i]->time_ns);
		text_latencies(b, &calls[i]->latency_ns);
		buf_putc(b, '\n');
	}
	free(calls);
}

static void text_classes(struct buf *b, const struct stats *s)
{
	size_t i;

	buf_printf(b, "\n%-24s %10s %8s %9s %8s\n", "classes", "count", "errors", "bytes", "time");
	for (i = 1; i < C_MAX; i++) {
		const struct stats_class *c = &s->classes[i];

		if (!c->count)
			continue;
		buf_printf(b, "  %-22s", class_names[i]);
		put_column(b, 10, put_exact, c->count);
		put_column(b, 8, put_exact, c->errors);
		put_column(b, 9, strings_put_bytes, c->bytes);
		put_column(b, 8, strings_put_duration, c->time_ns);
		buf_putc(b, '\n');
	}
}

static void text_errors(struct buf *b, const struct stats *s)
{
	char number[16];
	bool any = false;
	size_t i;

	for (i = 0; i < STATS_ERRNO_MAX; i++) {
		if (!s->errors[i])
			continue;
		if (!any)
			buf_printf(b, "\n%-24s %10s\n", "errors", "count");
		any = true;
		buf_printf(b, "  %-22s", error_label(i, number, sizeof(number)));
		put_column(b, 10, put_exact, s->errors[i]);
		buf_putc(b, '\n');
	}
}

static void text_threads(struct buf *b, const struct stats *s, size_t top)
{
	size_t i;

	buf_printf(b, "\n%-24s %10s %9s %9s %9s %9s %9s\n", "threads", "events", "computing",
		   "waiting", "i/o", "held", "cpu");
	for (i = 0; i < s->nr_threads && i < top; i++) {
		const struct stats_thread *t = s->threads[i];
		char name[32];

		(void)snprintf(name, sizeof(name), "%u/%u", t->pid, t->tid); /* always fits */
		buf_printf(b, "  %-22s", name);
		put_column(b, 10, put_exact, t->nr_events);
		put_column(b, 9, strings_put_duration, t->compute_ns);
		put_column(b, 9, strings_put_duration, t->wait_ns);
		put_column(b, 9, strings_put_duration, t->io_ns);
		put_column(b, 9, strings_put_duration, t->held_ns);
		put_column(b, 9, strings_put_duration, t->cpu_ns);
		buf_putc(b, '\n');
	}
	if (s->nr_threads > top)
		buf_printf(b, "  and %zu more\n", s->nr_threads - top);
}

static void text_sizes(struct buf *b, const char *title, const struct histogram *h)
{
	unsigned int power;

	if (!h->count)
		return;
	buf_printf(b, "\n%-24s %10s  (p50 ", title, "count");
	strings_put_bytes(b, histogram_percentile(h, 50));
	buf_puts(b, ", p90 ");
	strings_put_bytes(b, histogram_percentile(h, 90));
	buf_puts(b, ", p99 ");
	strings_put_bytes(b, histogram_percentile(h, 99));
	buf_puts(b, ", max ");
	strings_put_bytes(b, h->max);
	buf_puts(b, ")\n");
	for (power = 0; power <= 64; power++) {
		uint64_t count = power ? histogram_power(h, power - 1) : histogram_zeros(h);
		struct buf from = { 0 };

		if (!count)
			continue;
		if (power > 1)
			buf_puts(&from, "from ");
		strings_put_bytes(&from, power ? UINT64_C(1) << (power - 1) : 0);
		buf_printf(b, "  %-22s", buf_str(&from));
		put_column(b, 10, put_exact, count);
		buf_putc(b, '\n');
		buf_release(&from);
	}
}

static void text_file(struct buf *b, const struct stats_file *f, const char *name)
{
	put_column(b, 9, put_exact, f->opens);
	put_column(b, 9, put_exact, f->reads);
	put_column(b, 9, put_exact, f->writes);
	put_column(b, 9, strings_put_bytes, f->bytes_read);
	put_column(b, 9, strings_put_bytes, f->bytes_written);
	put_column(b, 9, strings_put_duration, f->time_ns);
	buf_puts(b, "  ");
	strings_put_foreign(b, name, strlen(name));
	buf_putc(b, '\n');
}

static void text_files(struct buf *b, const struct stats *s, const char *title,
		       int (*order)(const void *, const void *), size_t top)
{
	size_t i, nr;
	const struct stats_file **files = sorted_files(s, order, &nr);

	if (nr)
		buf_printf(b, "\n %9s %9s %9s %9s %9s %9s  %s\n", "opens", "reads", "writes",
			   "read", "written", "time", title);
	for (i = 0; i < nr && i < top; i++)
		text_file(b, files[i], files[i]->path);
	if (nr > top)
		buf_printf(b, "  and %zu more\n", nr - top);
	free(files);
}

static void text_all_files(struct buf *b, const struct stats *s, size_t top)
{
	text_files(b, s, "files by bytes", file_by_bytes, top);
	text_files(b, s, "files by time", file_by_time, top);
	if (s->files.nr_others) {
		buf_printf(b, "\nOnly %d files were counted apart; the others together:\n",
			   STATS_FILES_MAX);
		text_file(b, &s->files.others, "(others)");
	}
	if (s->files.nr_forgotten)
		buf_printf(b, "\n%llu descriptors were not followed, for want of memory\n",
			   (unsigned long long)s->files.nr_forgotten);
}

void stats_print_text(const struct stats *s, const struct stats_print_options *o, FILE *out)
{
	struct buf b = { 0 };

	text_head(&b, s, o->trace_path);
	text_completeness(&b, &s->sections);
	text_calls(&b, s, "calls", ROW_CALL);
	text_calls(&b, s, "other events", ROW_EVENT);
	text_classes(&b, s);
	text_errors(&b, s);
	text_sizes(&b, "sizes of reads", &s->read_sizes);
	text_sizes(&b, "sizes of writes", &s->write_sizes);
	buf_puts(&b, "\ntime between events\n                        ");
	text_latencies(&b, &s->gaps_ns);
	buf_puts(&b, "  (p50, p90, p99, max)\n");
	text_threads(&b, s, o->top);
	if (s->files.followed)
		text_all_files(&b, s, o->top);
	(void)!fwrite(b.data, 1, b.len, out); /* the owner of the stream checks */
	buf_release(&b);
}
