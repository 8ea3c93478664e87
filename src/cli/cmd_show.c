/* SPDX-License-Identifier: MIT */
/* reprise show: the events of a trace, one line each, or another section of it. */
#include <ctype.h>
#include <errno.h>
#include <string.h>
#include <time.h>

#include "base/banned.h"
#include "base/clock.h"
#include "base/json.h"
#include "base/strings.h"
#include "cli/cli.h"
#include "cli/open_trace.h"
#include "model/print.h"
#include "model/vocab.h"
#include "report/event_json.h"
#include "report/exact.h"
#include "report/fdpaths.h"

enum show_time {
	SHOW_RELATIVE,
	SHOW_ABSOLUTE,
	SHOW_DELTA,
	SHOW_NO_TIME,
};

static const char *const times[] = { "relative", "absolute", "delta", "none", NULL };
/* In the order of enum trace_order and of the set tree_which. */
static const char *const orders[] = { "enter", "exit", "effect", NULL };
static const char *const trees[] = { "initial", "final", NULL };

struct show_options {
	struct filter_options filter;
	bool json, exact, no_paths, data;
	unsigned int time, order, tree;
	uint64_t string_max, limit;
	bool threads, meta, ledger, quiet;
};

struct show {
	const struct cli *cli;
	const struct show_options *o;
	struct trace *t;
	struct filter *filter;
	struct fdpaths *paths; /* NULL: not followed */
	struct print_style style;
	struct event_json event_json;
	struct json json;
	const struct event *ev; /* the one that is printed */
	bool applied; /* paths knows what ev opened */
	uint64_t start_realtime_ns;
	uint64_t last_enter_ns;
	uint64_t nr_shown;
	struct progress *progress;
	struct buf line;
};

/* What the printer asks for. */

static const char *path_of_fd(void *ctx, int fd)
{
	struct show *s = ctx;
	bool is_result = s->ev->row->result == RESULT_NEW_FD && s->ev->outcome.ret == fd;
	const struct fd_file *f = NULL;

	if (!(s->applied && is_result))
		f = fdpaths_find(s->paths, s->ev, fd);
	if (!f && s->applied)
		f = fdpaths_find_after(s->paths, s->ev, fd);
	return f ? f->path : NULL;
}

static size_t load_start(void *ctx, const struct data *d, size_t max, const uint8_t **ret)
{
	struct show *s = ctx;
	size_t len;

	if (trace_load_piece(s->t, d, 0, ret, &len, NULL) != 1)
		return 0;
	return len < max ? len : max;
}

/* Lines. */

static void put_seconds(struct buf *b, uint64_t ns)
{
	buf_printf(b, "%llu.%09llu", (unsigned long long)(ns / NS_PER_S),
		   (unsigned long long)(ns % NS_PER_S));
}

static void put_date(struct buf *b, uint64_t realtime_ns)
{
	struct timespec ts = clock_timespec_from_ns(realtime_ns);
	struct tm tm;
	char text[32];

	if (!gmtime_r(&ts.tv_sec, &tm) || !strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm))
		put_seconds(b, realtime_ns);
	else
		buf_printf(b, "%s.%09ldZ", text, ts.tv_nsec);
}

static void put_time(struct show *s, const struct event *ev)
{
	switch ((enum show_time)s->o->time) {
	case SHOW_RELATIVE:
		put_seconds(&s->line, ev->enter_ns);
		break;
	case SHOW_ABSOLUTE:
		put_date(&s->line, clock_add_ns(s->start_realtime_ns, ev->enter_ns));
		break;
	case SHOW_DELTA:
		/* By another order than that of entry it may go back. */
		if (ev->enter_ns < s->last_enter_ns)
			buf_putc(&s->line, '-');
		put_seconds(&s->line, ev->enter_ns < s->last_enter_ns
					      ? s->last_enter_ns - ev->enter_ns
					      : ev->enter_ns - s->last_enter_ns);
		break;
	case SHOW_NO_TIME:
		return;
	}
	buf_putc(&s->line, ' ');
}

static void put_flags(struct buf *b, unsigned int flags)
{
	flags &= ~(unsigned int)(EVENT_UNFINISHED | EVENT_NO_TIME | EVENT_NO_DURATION);
	if (!flags)
		return;
	buf_puts(b, " {");
	vocab_print_flags(b, SET_event_flags, flags);
	buf_putc(b, '}');
}

static void put_duration(struct show *s, const struct event *ev)
{
	if (ev->flags & (EVENT_UNFINISHED | EVENT_NO_TIME | EVENT_NO_DURATION) ||
	    (ev->row->sort == ROW_EVENT && ev->exit_ns <= ev->enter_ns) ||
	    s->o->time == SHOW_NO_TIME)
		return;
	buf_puts(&s->line, " <");
	put_seconds(&s->line, clock_sub_ns(ev->exit_ns, ev->enter_ns));
	buf_putc(&s->line, '>');
}

static void put_hex_line(struct buf *b, uint64_t offset, const uint8_t *bytes, size_t len)
{
	size_t i;

	buf_printf(b, "    %08llx ", (unsigned long long)offset);
	for (i = 0; i < 16; i++) {
		if (i % 8 == 0)
			buf_putc(b, ' ');
		if (i < len)
			buf_printf(b, "%02x ", bytes[i]);
		else
			buf_puts(b, "   ");
	}
	buf_puts(b, " |");
	for (i = 0; i < len; i++)
		buf_putc(b, bytes[i] < 0x80 && isprint(bytes[i]) ? (char)bytes[i] : '.');
	buf_puts(b, "|\n");
}

static void flush_line(struct show *s)
{
	(void)!fwrite(s->line.data, 1, s->line.len,
		      s->cli->out); /* checked when the program ends */
	buf_clear(&s->line);
}

static void dump_data(struct show *s, const char *name, const struct data *d)
{
	uint64_t piece, done = 0;
	const uint8_t *bytes;
	size_t len, i;

	buf_printf(&s->line, "  %s: %llu bytes\n", name, (unsigned long long)d->len_bytes);
	for (piece = 0; piece < data_nr_pieces(d); piece++) {
		if (trace_load_piece(s->t, d, piece, &bytes, &len, NULL) != 1)
			break;
		for (i = 0; i < len; i += 16, done += 16) {
			put_hex_line(&s->line, done, bytes + i, len - i < 16 ? len - i : 16);
			if (s->line.len > BLOB_MAX_BYTES)
				flush_line(s);
		}
		done = (piece + 1) * BLOB_MAX_BYTES;
	}
	if (piece < data_nr_pieces(d) || d->kept_bytes < d->len_bytes)
		buf_puts(&s->line, "    (the rest was not kept)\n");
}

/* Buffers stand in arguments, in structs and in lists of those (readv). */
static void dump_value(struct show *s, const struct arg *arg, const struct value *v)
{
	const struct struct_desc *desc = &struct_descs[arg->struct_id];
	struct arg item = *arg;
	uint32_t i;

	if (v->type == VALUE_DATA && arg->kind == KIND_BUF)
		dump_data(s, arg->name, v->data);
	if (v->type == VALUE_STRUCT) {
		for (i = 0; i < desc->nr_fields; i++) {
			const struct value *field = value_field(v, i);

			if (field)
				dump_value(s, &desc->fields[i], field);
		}
	}
	if (v->type == VALUE_LIST) {
		item.kind = arg->elem ? arg->elem : KIND_STRUCT;
		for (i = 0; i < v->count; i++)
			dump_value(s, &item, &v->items[i]);
	}
}

static void show_line(struct show *s, const struct event *ev)
{
	unsigned int i;

	buf_printf(&s->line, "%u/%u ", ev->pid, ev->tid);
	put_time(s, ev);
	print_call(&s->line, ev, &s->style);
	put_flags(&s->line, ev->flags);
	put_duration(s, ev);
	buf_putc(&s->line, '\n');
	for (i = 0; s->o->data && i < ev->row->nr_args; i++)
		dump_value(s, &ev->row->args[i], &ev->args[i]);
	flush_line(s);
}

/* Events. */

static void show_event(struct show *s, const struct event *ev)
{
	bool shown = filter_matches(s->filter, ev, s->paths);

	s->ev = ev;
	/* What a call opened is known after it, what it closed before it. */
	s->applied = s->paths && shown && fdpaths_opens(s->paths, ev);
	if (s->applied)
		fdpaths_apply(s->paths, ev);
	if (shown && s->o->json)
		event_json_put(&s->event_json, &s->json, ev);
	else if (shown)
		show_line(s, ev);
	if (shown) {
		s->nr_shown++;
		s->last_enter_ns = ev->enter_ns;
	}
	if (s->paths && !s->applied)
		fdpaths_apply(s->paths, ev);
}

static int show_events(struct show *s, struct err *err)
{
	struct trace_query q = { .order = (enum trace_order)s->o->order, .progress = s->progress };
	struct trace_iter *it;
	struct event *ev;
	int r;

	filter_narrow_query(s->filter, s->paths != NULL, &q);
	r = trace_iter_open(s->t, &q, &it, err);
	if (r < 0)
		return r;
	while (s->nr_shown < s->o->limit && (r = trace_iter_next(it, &ev, err)) == 1)
		show_event(s, ev);
	trace_iter_close(it);
	return r < 0 ? r : 0;
}

/* The exact form. */

static bool keep_exact(void *ctx, struct event *ev)
{
	struct show *s = ctx;
	bool kept = filter_matches(s->filter, ev, s->paths);

	if (s->paths)
		fdpaths_apply(s->paths, ev);
	return kept;
}

static int show_exact(struct show *s, struct err *err)
{
	struct trace_query q = { .order = (enum trace_order)s->o->order, .progress = s->progress };
	struct exact_filter keep = { .keep = keep_exact, .ctx = s, .nr_events_max = s->o->limit };

	if (s->o->limit == UINT64_MAX)
		keep.nr_events_max = 0;
	filter_narrow_query(s->filter, s->paths != NULL, &q);
	return exact_print_trace(s->t, &q, &keep, s->cli->out, err);
}

/* Other sections. */

static void show_stream(struct show *s, const struct trace_stream_info *info)
{
	if (s->o->json) {
		json_object_begin(&s->json);
		json_kv_u64(&s->json, "pid", info->pid);
		json_kv_u64(&s->json, "tid", info->tid);
		json_kv_u64(&s->json, "generation", info->generation);
		json_kv_u64(&s->json, "events", info->nr_events);
		json_kv_u64(&s->json, "first_ns", info->first_ns);
		json_kv_u64(&s->json, "last_ns", info->last_ns);
		json_object_end(&s->json);
		return;
	}
	buf_printf(&s->line, "%u/%u", info->pid, info->tid);
	if (info->generation)
		buf_printf(&s->line, "@%u", info->generation);
	buf_printf(&s->line, " %llu events from ", (unsigned long long)info->nr_events);
	put_seconds(&s->line, info->first_ns);
	buf_puts(&s->line, " to ");
	put_seconds(&s->line, info->last_ns);
	buf_putc(&s->line, '\n');
	flush_line(s);
}

static void show_threads(struct show *s)
{
	size_t i, nr;
	const struct trace_stream_info *infos = trace_streams(s->t, &nr);

	for (i = 0; i < nr; i++)
		show_stream(s, &infos[i]);
}

static bool item_is_wanted(const struct show *s, const struct item *item)
{
	const struct value *tree = &item->args[0];

	if (item->row->id != REC_tree_entry)
		return true;
	return tree->type == VALUE_INT && tree->u == s->o->tree;
}

/* Keys are words; one that is not must not command the terminal. */
static void put_key(struct show *s, const struct value *key)
{
	const uint8_t *bytes;
	size_t len = 0;

	if (key->type == VALUE_DATA)
		len = load_start(s, key->data, BLOB_MAX_BYTES, &bytes);
	if (len)
		strings_put_foreign(&s->line, bytes, len);
	buf_puts(&s->line, ": ");
}

static void show_item(struct show *s, const struct item *item)
{
	const struct row *row = item->row;

	if (s->o->json) {
		event_json_put_item(&s->event_json, &s->json, item);
		return;
	}
	if (row->id == REC_meta) {
		put_key(s, &item->args[0]);
		print_value(&s->line, &row->args[1], &item->args[1], &s->style);
	} else {
		buf_printf(&s->line, "%s(", row->name);
		print_args(&s->line, row, item->args, &s->style);
		buf_putc(&s->line, ')');
	}
	buf_putc(&s->line, '\n');
	flush_line(s);
}

static int show_section(struct show *s, enum block_type section, struct err *err)
{
	struct trace_items *it;
	struct item *item;
	int r = trace_items_open(s->t, section, &it, err);

	if (r < 0)
		return r;
	s->style.string_max = UINT32_MAX;
	s->style.fd_path = NULL;
	while ((r = trace_items_next(it, &item, err)) == 1) {
		if (item_is_wanted(s, item))
			show_item(s, item);
	}
	trace_items_close(it);
	return r;
}

/* The command. */

static bool shows_events(const struct show_options *o)
{
	return !o->threads && !o->meta && !o->ledger && o->tree == OPTION_NO_CHOICE;
}

static int show_what(struct show *s, struct err *err)
{
	const struct show_options *o = s->o;

	if (o->threads) {
		show_threads(s);
		return 0;
	}
	if (o->meta)
		return show_section(s, BLOCK_META, err);
	if (o->ledger)
		return show_section(s, BLOCK_LEDGER, err);
	if (o->tree != OPTION_NO_CHOICE)
		return show_section(s, BLOCK_TREE, err);
	return o->exact ? show_exact(s, err) : show_events(s, err);
}

static const char *contradiction(const struct show_options *o)
{
	int sections = o->threads + o->meta + o->ledger + (o->tree != OPTION_NO_CHOICE);

	if (sections > 1)
		return "--threads, --meta, --ledger and --tree exclude each other";
	if (o->exact && (o->json || sections))
		return "--exact prints the events in a form of its own";
	if (o->exact && o->data)
		return "--exact prints all data anyway";
	if (!o->limit)
		return "--limit=0 leaves nothing to print";
	return NULL;
}

static void begin_show(struct show *s)
{
	const struct show_options *o = s->o;
	struct buf text = { 0 };
	const char *start;

	s->style = print_human;
	s->style.string_max = o->string_max > UINT32_MAX ? UINT32_MAX : (unsigned int)o->string_max;
	s->style.extras = true;
	s->style.ctx = s;
	s->style.load = load_start;
	if (shows_events(o) && (filter_needs_paths(s->filter) || !(o->no_paths || o->exact)))
		s->paths = fdpaths_new(s->t);
	if (s->paths && !o->no_paths)
		s->style.fd_path = path_of_fd;
	s->event_json = (struct event_json){ .trace = s->t, .data = o->data };
	if (!o->no_paths)
		s->event_json.paths = s->paths;
	json_init_file(&s->json, s->cli->out, JSON_COMPACT);
	if (shows_events(o))
		s->progress = cli_progress_begin(s->cli, "show", "events", o->quiet);
	progress_set_total(s->progress, trace_nr_events(s->t));
	if (o->time == SHOW_ABSOLUTE) {
		start = trace_meta(s->t, "start_realtime_ns", &text);
		if (!start || strings_parse_u64(start, &s->start_realtime_ns) < 0)
			cli_warn(s->cli,
				 "the trace does not say when it began: times are since then");
	}
	buf_release(&text);
}

static void end_show(struct show *s)
{
	progress_end(s->progress);
	json_release(&s->json);
	event_json_release(&s->event_json);
	fdpaths_free(s->paths);
	filter_free(s->filter);
	buf_release(&s->line);
}

static int show_run(const struct cli *cli, void *options, int nr_operands, char **operands)
{
	const struct show_options *o = options;
	struct show s = { .cli = cli, .o = o };
	struct err err = { "" };
	int r;

	(void)nr_operands;
	if (contradiction(o))
		return cli_fail_with(cli, "%s", contradiction(o));
	if (filter_new(&o->filter, &s.filter, &err) < 0)
		return cli_fail(cli, &err);
	r = open_trace(cli, operands[0], &s.t);
	if (r != CLI_DONE) {
		filter_free(s.filter);
		return r;
	}
	begin_show(&s);
	r = show_what(&s, &err);
	end_show(&s);
	return close_trace(cli, s.t, r, &err);
}

static const struct option_spec show_specs[] = {
	OPT_FILTERS(struct show_options, filter),
	OPT_U64('n', "limit", "N", struct show_options, limit, "stop after N events"),
	OPT_CHOICE(0, "order", "ORDER", struct show_options, order, orders,
		   "by which of their times events are ordered"),
	OPT_CHOICE(
		0, "time", "FORM", struct show_options, time, times,
		"how times are printed: since the start, as date and time (UTC), since the event "
		"before"),
	OPT_U64('s', "strings", "N", struct show_options, string_max,
		"how many bytes of a string or buffer are printed", .default_text = "32"),
	OPT_FLAG(
		0, "no-paths", struct show_options, no_paths,
		"do not follow descriptors to paths: faster, and with --pid, --tid and --from only "
		"that part is read"),
	OPT_FLAG('x', "data", struct show_options, data,
		 "dump the data of each event below it, as far as it was kept"),
	OPT_FLAG(0, "exact", struct show_options, exact,
		 "print the whole trace as text that loses nothing"),
	OPT_FLAG('j', "json", struct show_options, json, "print JSON, one object a line"),
	OPT_FLAG(0, "threads", struct show_options, threads, "list the threads instead"),
	OPT_FLAG(0, "meta", struct show_options, meta, "print the metadata instead"),
	OPT_FLAG(0, "ledger", struct show_options, ledger, "print what was lost or cut instead"),
	OPT_CHOICE(0, "tree", "TREE", struct show_options, tree, trees,
		   "print the files before or after the run instead"),
	OPT_QUIET(struct show_options, quiet),
};

const struct command command_show = {
	.name = "show",
	.summary = "print the events of a trace",
	.operands = "TRACE",
	.options = show_specs,
	.nr_options = ARRAY_LEN(show_specs),
	.options_size = sizeof(struct show_options),
	.defaults = &(const struct show_options){ .string_max = 32,
						  .limit = UINT64_MAX,
						  .tree = OPTION_NO_CHOICE },
	.run = show_run,
};
