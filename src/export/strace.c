/* SPDX-License-Identifier: MIT */
/*
 * What `strace -f --absolute-timestamps=format:unix,precision:ns
 * --syscall-times=ns -v -s 1048576` would have printed: a line for each call, in
 * the order of their entries, each with its whole outcome. Starts of threads and
 * execs need no line of their own there, but for an execve by another thread than
 * the leader; what else is no call and no signal is left out and counted.
 */
#include <errno.h>
#include <string.h>

#include "base/banned.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/strings.h"
#include "export/export.h"
#include "export/strace_args.h"
#include "model/print.h"
#include "model/vocab.h"

/* When a trace does not say when it began: any time that is no span. */
#define START_UNKNOWN_NS (1000000000 * NS_PER_S)

/*
 * An execve by another thread than the leader ends in the leader, which strace
 * tells in three lines: its first part, that the leader is superseded, and the
 * rest under the leader's number.
 */
struct half_exec {
	uint32_t pid, tid;
	struct outcome outcome;
	uint64_t duration_ns;
	bool has_duration;
};

struct strace {
	struct export *ex;
	struct print_style style;
	struct buf line;
	uint64_t start_ns;
	VEC(struct half_exec) execs; /* whose leader has not gone on yet */
	bool lost; /* data that the trace refers to is gone */
};

static size_t load_start(void *ctx, const struct data *d, size_t max, const uint8_t **ret)
{
	struct strace *s = ctx;
	size_t len;
	int r = trace_load_piece(s->ex->t, d, 0, ret, &len, NULL);

	s->lost |= r < 0;
	return r == 1 ? (len < max ? len : max) : 0;
}

static bool put_own_arg(void *ctx, struct buf *out, const struct row *row, const struct value *args,
			unsigned int i)
{
	const struct strace *s = ctx;

	return strace_put_arg(&s->style, out, row, args, i);
}

static void put_time(struct buf *b, uint64_t ns)
{
	buf_printf(b, "%llu.%09llu", (unsigned long long)(ns / NS_PER_S),
		   (unsigned long long)(ns % NS_PER_S));
}

static void put_prefix(struct strace *s, const struct event *ev)
{
	buf_printf(&s->line, "%-5u ", ev->tid);
	put_time(&s->line, clock_add_ns(s->start_ns, ev->enter_ns));
	buf_putc(&s->line, ' ');
}

static const struct value *arg_of(const struct event *ev, const char *name)
{
	return args_find(ev->row, (struct value *)ev->args, name);
}

/* Calls. */

/* clone is the one call whose arguments strace names, and orders otherwise. */
static void put_clone_args(struct strace *s, const struct event *ev)
{
	static const char *const names[][2] = { { "stack", "child_stack" },
						{ "flags", "flags" },
						{ "parent_tid", "parent_tid" },
						{ "tls", "tls" },
						{ "child_tid", "child_tidptr" } };
	const char *between = "";
	size_t i;

	for (i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const struct value *v = arg_of(ev, names[i][0]);

		if (!v || v->type == VALUE_NONE)
			continue;
		buf_printf(&s->line, "%s%s=", between, names[i][1]);
		print_value(&s->line, &ev->row->args[v - ev->args], v, &s->style);
		between = ", ";
	}
}

/* The number first, the words behind it. */
static void put_flags_result(struct strace *s, const struct event *ev)
{
	buf_printf(&s->line, " = 0x%llx (flags ", (unsigned long long)ev->outcome.ret);
	vocab_print_flags(&s->line, SET_open_flags, (uint64_t)ev->outcome.ret);
	buf_putc(&s->line, ')');
}

static void put_duration(struct strace *s, uint64_t ns)
{
	buf_puts(&s->line, " <");
	put_time(&s->line, ns);
	buf_putc(&s->line, '>');
}

static bool has_duration(const struct event *ev)
{
	return !(ev->flags & (EVENT_UNFINISHED | EVENT_NO_TIME | EVENT_NO_DURATION));
}

static void put_result(struct strace *s, const struct event *ev)
{
	if (ev->flags & EVENT_RESTARTED && errno_name(ev->outcome.err))
		buf_printf(&s->line, " = ? %s (To be restarted)", errno_name(ev->outcome.err));
	else if (ev->row->result == RESULT_OPEN_FLAGS && !ev->outcome.err)
		put_flags_result(s, ev);
	else
		print_outcome(&s->line, ev, &s->style);
	strace_put_note(&s->style, &s->line, ev);
	if (ev->flags & EVENT_INJECTED)
		buf_puts(&s->line, " (INJECTED)");
	if (has_duration(ev))
		put_duration(s, clock_sub_ns(ev->exit_ns, ev->enter_ns));
}

/* Whether the call will go on in the leader. */
static bool passes_on(const struct event *ev)
{
	return (ev->row->id == SC_execve || ev->row->id == SC_execveat) && ev->tid != ev->pid &&
	       !ev->outcome.err && !(ev->flags & EVENT_UNFINISHED);
}

static void begin_exec(struct strace *s, const struct event *ev)
{
	struct half_exec half = { .pid = ev->pid,
				  .tid = ev->tid,
				  .outcome = ev->outcome,
				  .duration_ns = clock_sub_ns(ev->exit_ns, ev->enter_ns),
				  .has_duration = has_duration(ev) };

	buf_puts(&s->line, " <unfinished ...>");
	VEC_PUSH(&s->execs, half);
}

static struct half_exec *find_exec(struct strace *s, uint32_t pid)
{
	for (size_t i = 0; i < s->execs.len; i++) {
		if (s->execs.items[i].pid == pid)
			return &s->execs.items[i];
	}
	return NULL;
}

/* The leader goes on. */
static bool put_rest_of_exec(struct strace *s, const struct event *ev)
{
	struct half_exec *half = find_exec(s, ev->pid);

	if (!half || ev->tid != ev->pid)
		return false; /* the call has said it */
	buf_printf(&s->line, "+++ superseded by execve in pid %u +++\n", half->tid);
	put_prefix(s, ev);
	buf_printf(&s->line, "<... execve resumed>) = %lld", (long long)half->outcome.ret);
	if (half->has_duration)
		put_duration(s, half->duration_ns);
	*half = s->execs.items[--s->execs.len];
	return true;
}

static void put_call(struct strace *s, const struct event *ev)
{
	buf_printf(&s->line, "%s(", print_row_name(ev->row, PRINT_HUMAN));
	if (ev->row->id == SC_clone)
		put_clone_args(s, ev);
	else
		print_args(&s->line, ev->row, ev->args, &s->style);
	if (passes_on(ev)) {
		begin_exec(s, ev);
		return;
	}
	buf_putc(&s->line, ')');
	put_result(s, ev);
}

/* What is no call. */

static const char *signal_word(const struct value *v)
{
	const char *name = v && v->type == VALUE_INT ? signal_name((int)v->i) : NULL;

	return name ? name : "SIG_0";
}

static void put_signal(struct strace *s, const struct event *ev)
{
	const char *name = signal_word(arg_of(ev, "signal"));
	const struct value *code = arg_of(ev, "code"), *sender = arg_of(ev, "sender"),
			   *uid = arg_of(ev, "uid");

	buf_printf(&s->line, "--- %s {si_signo=%s", name, name);
	if (code->type == VALUE_INT)
		buf_printf(&s->line, ", si_code=%lld", (long long)code->i);
	if (sender->type == VALUE_INT)
		buf_printf(&s->line, ", si_pid=%lld", (long long)sender->i);
	if (uid->type == VALUE_INT)
		buf_printf(&s->line, ", si_uid=%llu", (unsigned long long)uid->u);
	buf_puts(&s->line, "} ---");
}

static void put_exit(struct strace *s, const struct event *ev)
{
	const struct value *status = arg_of(ev, "status"), *core = arg_of(ev, "core_dumped");

	if (status->type == VALUE_INT)
		buf_printf(&s->line, "+++ exited with %lld +++", (long long)status->i);
	else
		buf_printf(&s->line, "+++ killed by %s %s+++", signal_word(arg_of(ev, "signal")),
			   core->type == VALUE_INT && core->i ? "(core dumped) " : "");
}

/* Whether it has a line. */
static bool put_event(struct strace *s, const struct event *ev)
{
	buf_clear(&s->line);
	put_prefix(s, ev);
	if (ev->row->sort == ROW_CALL && !(ev->row->class & A_MAC)) {
		put_call(s, ev);
		return true;
	}
	switch (ev->row->id) {
	case EV_signal:
		put_signal(s, ev);
		return true;
	case EV_stopped:
		buf_printf(&s->line, "--- stopped by %s ---", signal_word(arg_of(ev, "signal")));
		return true;
	case EV_thread_exit:
		/* The leader's, which "superseded" says. */
		if (ev->tid == ev->pid && find_exec(s, ev->pid))
			return false;
		put_exit(s, ev);
		return true;
	case EV_exec:
		return put_rest_of_exec(s, ev);
	case EV_thread_start:
		return false; /* the calls say it */
	default:
		s->ex->counts.nr_left_out++;
		return false;
	}
}

static int put_events(struct strace *s, struct err *err)
{
	struct trace_query q = { .order = TRACE_BY_ENTER, .progress = s->ex->progress };
	struct trace_iter *it;
	struct event *ev;
	int r = trace_iter_open(s->ex->t, &q, &it, err);

	if (r < 0)
		return r;
	while ((r = trace_iter_next(it, &ev, err)) > 0) {
		if (!put_event(s, ev))
			continue;
		buf_putc(&s->line, '\n');
		s->ex->counts.nr_written++;
		/* Why it cannot be written is for the owner of the stream to tell. */
		if (fwrite(s->line.data, 1, s->line.len, s->ex->out) != s->line.len)
			break;
	}
	trace_iter_close(it);
	return r < 0 ? r : 0;
}

static int strace_run(struct export *ex, struct err *err)
{
	struct strace s = { .ex = ex, .style = print_human, .start_ns = START_UNKNOWN_NS };
	struct buf text = { 0 };
	const char *start = trace_meta(ex->t, "start_realtime_ns", &text);
	int r;

	if (start && strings_parse_u64(start, &s.start_ns) < 0)
		s.start_ns = START_UNKNOWN_NS;
	s.style.string_max = (unsigned int)BLOB_MAX_BYTES;
	s.style.items_max = UINT32_MAX;
	s.style.full = true;
	s.style.ctx = &s;
	s.style.load = load_start;
	s.style.arg = put_own_arg;
	r = put_events(&s, err);
	if (!r && s.lost)
		r = err_set(err, -ENODATA, "%s: some data is lost", trace_path(ex->t));
	buf_release(&s.line);
	VEC_RELEASE(&s.execs);
	buf_release(&text);
	return r;
}

const struct exporter exporter_strace = {
	.summary = "the text that strace prints",
	.run = strace_run,
};
