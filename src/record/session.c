/* SPDX-License-Identifier: MIT */
#include "record/session.h"

#include <errno.h>
#include <libgen.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/mem.h"
#include "record/creds.h"
#include "record/session_sources.h"

/* Who records a program that ends sooner would wait for the packing of its files. */
#define PACK_AFTER_NS NS_PER_S

uint64_t session_now(const struct session *s)
{
	return clock_monotonic_ns() - s->start_ns;
}

/* Metadata. */

int session_put_meta(struct session *s, const char *key, const char *fmt, ...)
{
	char value[4096];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(value, sizeof(value), fmt, ap); /* long ones are cut */
	va_end(ap);
	return trace_feed_meta(s->feed, key, value);
}

/* The words of the command, separated by NUL. */
static int put_command(struct session *s)
{
	struct item item = { .row = row_by_id(REC_meta) };
	struct buf words = { 0 };
	struct arena a;
	char **arg;
	int r;

	if (!s->o->argv)
		return session_put_meta(s, "attached_pid", "%d", (int)s->o->attach_pid);
	for (arg = s->o->argv; *arg; arg++)
		buf_put(&words, *arg, strlen(*arg) + 1);
	arena_init(&a);
	item.args[0] = value_str(&a, "command");
	item.args[1] = value_bytes(&a, words.data, words.len - 1);
	r = trace_feed_item(s->feed, &item);
	arena_release(&a);
	buf_release(&words);
	return r;
}

static int put_beginning(struct session *s)
{
	static const char *const policies[] = { "all", "writes", "hash", "none" };
	char cwd[4096];
	struct utsname u;
	int r = put_command(s);

	if (!r && getcwd(cwd, sizeof(cwd)))
		r = session_put_meta(s, "cwd", "%s", cwd);
	if (!r && !uname(&u)) {
		r = session_put_meta(s, "kernel", "%s %s", u.release, u.version);
		if (!r)
			r = session_put_meta(s, "arch", "%s", u.machine);
		if (!r)
			r = session_put_meta(s, "hostname", "%s", u.nodename);
	}
	if (!r)
		r = session_put_meta(s, "uid", "%u", (unsigned int)getuid());
	if (!r)
		r = session_put_meta(s, "gid", "%u", (unsigned int)getgid());
	if (!r)
		r = session_put_meta(s, "clock", "monotonic");
	if (!r)
		r = session_sources_describe(s);
	if (!r)
		r = session_put_meta(
			s, "recorder_options", "data=%s contents=%llu calls=%s paths=%s",
			policies[s->o->data], (unsigned long long)s->o->content_max_bytes,
			s->o->wanted ? "some" : "all", s->o->paths.wants ? "some" : "all");
	if (!r)
		r = session_put_meta(s, "start_realtime_ns", "%llu",
				     (unsigned long long)clock_realtime_ns());
	return r;
}

static int put_end(struct session *s)
{
	int status = s->res->wait_status;
	struct loss cut = { .kind = LOSS_NOT_CLOSED,
			    .from_ns = s->cut_ns,
			    .note = s->res->why_cut.text };
	struct loss left_out = { .kind = LOSS_FILTERED, .note = "only some calls were asked for" };
	int r = session_put_meta(s, "end_realtime_ns", "%llu",
				 (unsigned long long)clock_realtime_ns());

	if (!r && s->is_launched && WIFEXITED(status))
		r = session_put_meta(s, "exit_status", "%d", WEXITSTATUS(status));
	if (!r && s->is_launched && WIFSIGNALED(status))
		r = session_put_meta(s, "exit_signal", "%d", WTERMSIG(status));
	if (!r && s->res->cut_short)
		r = trace_feed_loss(s->feed, &cut);
	if (!r && s->o->wanted)
		r = trace_feed_loss(s->feed, &left_out);
	return r ? r : session_sources_account(s);
}

/* The trace that was there before: it is replaced when there is something to record, and not sooner. */

static int set_aside(struct session *s, struct err *err)
{
	struct buf name = { 0 };
	struct stat st;
	int r;

	if (!s->o->replace || lstat(s->o->output, &st) < 0 || !S_ISREG(st.st_mode))
		return 0;
	buf_printf(&name, "%s.%d.old", s->o->output, (int)getpid());
	r = rename(s->o->output, buf_str(&name)) < 0 ? -errno : 0;
	if (!r)
		s->aside = xstrdup(buf_str(&name));
	buf_release(&name);
	return r ? err_set(err, r, "cannot replace %s", s->o->output) : 0;
}

static void put_back(struct session *s)
{
	if (s->aside)
		(void)rename(s->aside, s->o->output); /* else it keeps its other name */
	free(s->aside);
	s->aside = NULL;
}

void session_drop_old(struct session *s)
{
	if (s->aside)
		(void)unlink(s->aside); /* it may be gone */
	free(s->aside);
	s->aside = NULL;
}

/* How it ends. */

void session_end(struct session *s)
{
	s->cut_ns = session_now(s);
	tree_read_at_once(s->tree); /* from now on files may change unseen */
	s->is_over = true;
}

void session_cut_short(struct session *s, int r, const char *why)
{
	if (s->is_over)
		return;
	session_end(s);
	s->res->cut_short = true;
	/* The limit that was asked for is no failure. */
	if (r == -EXFULL)
		err_set(&s->res->why_cut, 0, "the trace has reached its largest size");
	else
		err_set(&s->res->why_cut, r, "%s", why);
}

static void take_totals(struct session *s)
{
	struct trace_writer_totals totals;

	trace_writer_hurry(s->writer);
	(void)!trace_writer_sync(s->writer, NULL); /* closing reports a failure */
	totals = trace_writer_totals(s->writer);
	s->res->nr_events = totals.nr_events;
	s->res->file_bytes = totals.file_bytes;
	s->res->nr_losses = totals.nr_losses;
	memcpy(s->res->nr_losses_by_kind, totals.nr_losses_by_kind,
	       sizeof(s->res->nr_losses_by_kind));
}

/* The program, or somebody else, may have removed what was written, or cut it, or put another in its place. */
static void look_at_trace(struct session *s)
{
	struct record_result *res = s->res;
	struct stat st;

	res->is_gone = stat(s->o->output, &st) < 0 || st.st_ino != s->own_ino ||
		       st.st_dev != s->own_dev || (uint64_t)st.st_size < res->file_bytes;
	if (!res->is_gone)
		res->file_bytes = (uint64_t)st.st_size; /* closing added to it */
}

static void finish(struct session *s)
{
	struct err why = { "" };
	int r;

	/* Closing returns the first failure, and with its words; what is said of the end may fit. */
	(void)!tree_finish(s->tree, session_now(s), !s->res->cut_short);
	s->res->elapsed_ns = session_now(s);
	(void)!put_end(s); /* likewise */
	(void)!trace_feed_flush(s->feed); /* likewise */
	take_totals(s);
	r = trace_writer_close(s->writer, &why);
	s->writer = NULL;
	look_at_trace(s);
	/* The program did what it did; that its trace is not whole is told beside that. */
	if (r == -EXFULL)
		session_cut_short(s, r, "");
	else if (r < 0 && !s->res->cut_short) {
		s->res->cut_short = true;
		s->res->why_cut = why;
	}
}

/* Where there is none, files are missing in the trace, and it says so. Another's would lie. */
static int check_proc(struct err *err)
{
	char text[32];
	ssize_t n = readlink("/proc/self", text, sizeof(text) - 1);

	if (n <= 0)
		return 0;
	text[n] = 0;
	if (strtol(text, NULL, 10) == getpid())
		return 0;
	return err_set(err, -EOPNOTSUPP,
		       "/proc is that of other processes (with unshare, say --mount-proc)");
}

/* A file that may not grow is like a full disk: told, not deadly; as long as we write. */
static void outgrow_files(struct session *s)
{
	struct sigaction ignore = { .sa_handler = SIG_IGN };

	sigemptyset(&ignore.sa_mask);
	(void)sigaction(SIGXFSZ, &ignore, &s->file_size); /* cannot fail */
}

static int open_output(struct session *s, struct err *err)
{
	struct trace_writer_options options = { .replace = s->o->replace,
						.file_mode = s->o->file_mode,
						.reserve = true,
						.pack_after_ns = PACK_AFTER_NS,
						.begin_thread = creds_give_up_all,
						.max_bytes = s->o->max_bytes };
	struct stat own;
	int r = set_aside(s, err);

	if (!r)
		r = trace_writer_open(s->o->output, &options, &s->writer, err);
	if (r < 0) {
		put_back(s);
		return r;
	}
	s->feed = trace_writer_add_feed(s->writer);
	if (!stat(s->o->output, &own)) {
		s->own_dev = own.st_dev;
		s->own_ino = own.st_ino;
	}
	return 0;
}

static struct tree *make_tree(struct session *s, const char *scratch_dir)
{
	struct tree_options options = { .content_max_bytes = s->o->content_max_bytes,
					.misses_calls = s->o->wanted || s->o->paths.wants,
					.own_dev = s->own_dev,
					.own_ino = s->own_ino,
					.scratch_dir = scratch_dir };

	/* Where some calls are not seen, or what went before, a file may be changed by somebody unseen. */
	if (!options.misses_calls && !s->o->attach_pid && !s->misses_changes)
		options.later = s->writer;
	return tree_new(s->feed, &options);
}

/* With the output open. */
static int record(struct session *s, struct err *err)
{
	AUTO_FREE char *output = xstrdup(s->o->output); /* which dirname() changes */
	int r;

	s->tree = make_tree(s, dirname(output));
	r = put_beginning(s);
	if (r < 0)
		err_set(err, r, "cannot write %s", s->o->output);
	if (!r)
		r = session_sources_run(s, err);
	if (!r)
		finish(s);
	if (!s->writer)
		session_drop_old(s);
	tree_free(s->tree); /* before what it writes to */
	if (s->writer) {
		trace_writer_abandon(s->writer);
		(void)unlink(s->o->output); /* nothing was recorded */
		put_back(s);
	}
	return r;
}

int session_run(const struct source *runs, const struct record_options *o,
		struct record_result *ret, struct err *err)
{
	struct session s = { .o = o, .res = ret, .start_ns = clock_monotonic_ns() };
	int r;

	*ret = (struct record_result){ 0 };
	r = check_proc(err);
	if (!r)
		r = session_sources_open(&s, runs, err);
	if (!r) {
		outgrow_files(&s);
		r = open_output(&s, err);
		if (!r)
			r = record(&s, err);
		(void)sigaction(SIGXFSZ, &s.file_size, NULL);
	}
	session_sources_close(&s);
	return r;
}
