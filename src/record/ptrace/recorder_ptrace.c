/* SPDX-License-Identifier: MIT */
/*
 * The reference recorder: needs no rights, sees every call of every process
 * and thread. A recording from its beginning to its end.
 */
#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/mem.h"
#include "record/creds.h"
#include "record/ptrace/tracer.h"
#include "record/stores.h"

/* Who records a program that ends sooner would wait for the packing of its files. */
#define PACK_AFTER_NS NS_PER_S

/*
 * By its file, where the kernel waits for nobody: by process_vm_readv() we would wait for a thread of
 * the program to see to the fault, which may wait for us.
 */
static ssize_t read_present(pid_t tid, const struct iovec *local, const struct iovec *remote,
			    unsigned int nr)
{
	AUTO_CLOSE int fd = -1;
	ssize_t done = 0, n = 0;
	char name[64];
	unsigned int i;

	(void)snprintf(name, sizeof(name), "/proc/%d/mem", (int)tid);
	fd = open(name, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	for (i = 0; i < nr; i++) {
		n = pread(fd, local[i].iov_base, remote[i].iov_len,
			  (off_t)(uintptr_t)remote[i].iov_base);
		done += n > 0 ? n : 0;
		if (n < (ssize_t)remote[i].iov_len)
			break;
	}
	return done || i == nr ? done : -EFAULT;
}

static ssize_t read_process(struct memory *m, const struct iovec *local, const struct iovec *remote,
			    unsigned int nr)
{
	struct process_memory *pm = (struct process_memory *)m;
	ssize_t n;

	if (pm->may_wait)
		return read_present(pm->tid, local, remote, nr);
	n = process_vm_readv(pm->tid, local, nr, remote, nr, 0);
	if (n >= 0)
		return n;
	pm->denied |= errno == EPERM;
	return -errno;
}

/* Signals to the recorder: a stop is noted, the tick wakes the wait; others go to the command. */

static volatile sig_atomic_t command_pid;

static void note_stop(int signo)
{
	(void)signo;
	tracer_stop = 1;
}

static void pass_on(int signo)
{
	if (command_pid)
		(void)kill(command_pid, signo);
}

static void wake_up(int signo)
{
	(void)signo;
}

static void set_handler(int signo, void (*handler)(int), struct sigaction *old)
{
	struct sigaction sa = { .sa_handler = handler };

	sigemptyset(&sa.sa_mask);
	(void)sigaction(signo, &sa, old); /* cannot fail for these */
}

/* What comes before there is a command waits for it, see start_child(). */
static void hold_signals(struct signals *s, bool attached)
{
	sigset_t held;

	sigemptyset(&held);
	if (!attached) {
		(void)sigaddset(&held, SIGINT);
		(void)sigaddset(&held, SIGQUIT);
		(void)sigaddset(&held, SIGTERM);
		(void)sigaddset(&held, SIGHUP);
	}
	(void)sigprocmask(SIG_BLOCK, &held, &s->mask);
}

/* Ctrl-C is for the command, which gets it from the terminal itself; it is ours when attached. */
static void take_signals(struct signals *s, bool attached)
{
	struct sigaction quiet = { .sa_handler = SIG_DFL, .sa_flags = SA_NOCLDSTOP };

	hold_signals(s, attached);
	set_handler(SIGINT, attached ? note_stop : SIG_IGN, &s->interrupt);
	set_handler(SIGQUIT, attached ? note_stop : SIG_IGN, &s->quit);
	set_handler(SIGTERM, attached ? note_stop : pass_on, &s->terminate);
	set_handler(SIGHUP, attached ? note_stop : pass_on, &s->hangup);
	set_handler(SIGALRM, wake_up, &s->alarm);
	/* We wait for stops; a signal for each would cost as much again as to wait. */
	(void)sigaction(SIGCHLD, &quiet, &s->child);
	s->has_jobs = !attached;
	if (s->has_jobs)
		jobs_take_signals(&s->jobs);
	waiting_set_timer(WAITING_TICK_NS, &s->timer);
}

/* A file that may not grow is like a full disk: told, not deadly; as long as we write. */
static void outgrow_files(struct signals *s)
{
	set_handler(SIGXFSZ, SIG_IGN, &s->file_size);
}

void signals_restore(const struct signals *s)
{
	(void)setitimer(ITIMER_REAL, &s->timer, NULL);
	if (s->has_jobs)
		jobs_restore_signals(&s->jobs);
	(void)sigaction(SIGCHLD, &s->child, NULL);
	(void)sigaction(SIGXFSZ, &s->file_size, NULL);
	(void)sigaction(SIGALRM, &s->alarm, NULL);
	(void)sigaction(SIGINT, &s->interrupt, NULL);
	(void)sigaction(SIGQUIT, &s->quit, NULL);
	(void)sigaction(SIGTERM, &s->terminate, NULL);
	(void)sigaction(SIGHUP, &s->hangup, NULL);
}

/* Metadata. */

PRINTF_LIKE(3, 4)
static int put_meta(struct tracer *tr, const char *key, const char *fmt, ...)
{
	char value[4096];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(value, sizeof(value), fmt, ap); /* long ones are cut */
	va_end(ap);
	return trace_feed_meta(tr->feed, key, value);
}

/* The words of the command, separated by NUL. */
static int put_command(struct tracer *tr)
{
	struct item item = { .row = row_by_id(REC_meta) };
	struct buf words = { 0 };
	struct arena a;
	char **arg;
	int r;

	if (!tr->o->argv)
		return put_meta(tr, "attached_pid", "%d", (int)tr->o->attach_pid);
	for (arg = tr->o->argv; *arg; arg++)
		buf_put(&words, *arg, strlen(*arg) + 1);
	arena_init(&a);
	item.args[0] = value_str(&a, "command");
	item.args[1] = value_bytes(&a, words.data, words.len - 1);
	r = trace_feed_item(tr->feed, &item);
	arena_release(&a);
	buf_release(&words);
	return r;
}

static int put_source(struct tracer *tr)
{
	static const char *const policies[] = { "all", "writes", "hash", "none" };
	static const char *const nets[] = { "on", "audit", "off" };
	char cwd[4096];
	struct utsname u;
	int r = put_command(tr);

	if (!r && getcwd(cwd, sizeof(cwd)))
		r = put_meta(tr, "cwd", "%s", cwd);
	if (!r && !uname(&u)) {
		r = put_meta(tr, "kernel", "%s %s", u.release, u.version);
		if (!r)
			r = put_meta(tr, "arch", "%s", u.machine);
		if (!r)
			r = put_meta(tr, "hostname", "%s", u.nodename);
	}
	if (!r)
		r = put_meta(tr, "uid", "%u", (unsigned int)getuid());
	if (!r)
		r = put_meta(tr, "gid", "%u", (unsigned int)getgid());
	if (!r)
		r = put_meta(tr, "clock", "monotonic");
	if (!r)
		r = put_meta(tr, "recorder", "%s",
			     !tr->agent			? "ptrace"
			     : tr->o->agent_after_calls ? "auto"
							: "inproc");
	if (!r && tr->agent)
		r = put_meta(tr, "net", "%s", nets[tr->o->net]);
	if (!r && tr->agent)
		r = put_meta(tr, "agent_clock", "%s", agent_clock(tr->agent));
	if (!r)
		r = put_meta(tr, "recorder_options", "data=%s contents=%llu calls=%s paths=%s",
			     policies[tr->o->data], (unsigned long long)tr->o->content_max_bytes,
			     tr->o->wanted ? "some" : "all", tr->o->paths.wants ? "some" : "all");
	if (!r)
		r = put_meta(tr, "start_realtime_ns", "%llu",
			     (unsigned long long)clock_realtime_ns());
	return r;
}

static int put_audit(struct tracer *tr)
{
	struct agent_caught c;
	int r;

	if (!tr->agent || tr->o->net != RECORD_NET_AUDIT)
		return 0;
	agent_audit(tr->agent, &c);
	tr->res->nr_caught = c.nr_calls;
	tr->res->caught = xstrdup(buf_str(&c.places));
	buf_release(&c.places);
	tr->res->nr_compared = tr->audit.nr_compared;
	tr->res->nr_not_compared = tr->audit.nr_not;
	r = put_meta(tr, "net_caught", "%llu", (unsigned long long)c.nr_calls);
	if (!r)
		r = put_meta(tr, "net_compared", "%llu", (unsigned long long)tr->audit.nr_compared);
	if (!r)
		r = put_meta(tr, "net_left", "%llu", (unsigned long long)c.nr_left);
	if (!r)
		r = put_meta(tr, "net_outside", "%llu", (unsigned long long)c.nr_outside);
	return r ? r : trace_feed_meta(tr->feed, "net_places", tr->res->caught);
}

static int put_end(struct tracer *tr)
{
	int status = tr->res->wait_status;
	struct loss cut = { .kind = LOSS_NOT_CLOSED,
			    .from_ns = tr->cut_ns,
			    .note = tr->res->why_cut.text };
	struct loss own = { .kind = LOSS_DATA_TRUNCATED,
			    .count = tr->nr_own_reads,
			    .bytes = tr->own_bytes,
			    .note = "what the program has read of this trace is not in it" };
	struct loss no_data = { .kind = LOSS_DATA_TRUNCATED,
				.from_ns = tr->no_data_ns,
				.note = "no more data: the program copies this trace while it "
					"grows by that" };
	struct loss not_copied = { .kind = LOSS_DATA_TRUNCATED,
				   .count = agent_nr_missed(tr->agent),
				   .note = "memory that the agent has not copied" };
	struct loss left_out = { .kind = LOSS_FILTERED, .note = "only some calls were asked for" };
	struct loss unseen = { .kind = LOSS_CALL_UNSEEN,
			       .count = agent_nr_unseen_places(tr->agent),
			       .note = "the net was off: calls from places that could not be "
				       "changed were not seen" };
	struct loss polled = {
		.kind = LOSS_CALL_UNSEEN,
		.count = aio_nr_unseen(tr->aio),
		.note = aio_may_be_more(tr->aio)
				? "requests of an io_uring that a kernel thread polls "
				  "were not seen, and perhaps more than these"
				: "requests of an io_uring that a kernel thread polls "
				  "were not seen"
	};
	struct loss strange = {
		.kind = LOSS_CALL_UNSEEN,
		.count = aio_nr_strange(tr->aio),
		.note = tr->has_polled_ring
				? "a kernel thread polls an io_uring from before the recording: its "
				  "requests were not seen"
				: "requests of an io_uring that the recorder has not seen being set up"
	};
	int r = put_meta(tr, "end_realtime_ns", "%llu", (unsigned long long)clock_realtime_ns());

	if (!r && tr->agent)
		r = put_meta(tr, "agent_events", "%llu",
			     (unsigned long long)agent_nr_events(tr->agent));
	if (!r)
		r = put_audit(tr);
	if (!r && tr->child && WIFEXITED(status))
		r = put_meta(tr, "exit_status", "%d", WEXITSTATUS(status));
	if (!r && tr->child && WIFSIGNALED(status))
		r = put_meta(tr, "exit_signal", "%d", WTERMSIG(status));
	if (!r && tr->res->cut_short)
		r = trace_feed_loss(tr->feed, &cut);
	if (!r && tr->o->wanted)
		r = trace_feed_loss(tr->feed, &left_out);
	if (!r && agent_is_netless(tr))
		r = trace_feed_loss(tr->feed, &unseen);
	if (!r && (polled.count || aio_may_be_more(tr->aio)))
		r = trace_feed_loss(tr->feed, &polled);
	if (!r && (strange.count || tr->has_polled_ring))
		r = trace_feed_loss(tr->feed, &strange);
	if (!r && not_copied.count)
		r = trace_feed_loss(tr->feed, &not_copied);
	if (!r && own.count)
		r = trace_feed_loss(tr->feed, &own);
	if (!r && no_data.from_ns)
		r = trace_feed_loss(tr->feed, &no_data);
	left_out.count = tr->nr_left_out;
	left_out.note = "calls that touch only paths that were not asked for, or none";
	if (!r && tr->o->paths.wants)
		r = trace_feed_loss(tr->feed, &left_out);
	return r;
}

/* The trace that was there before: it is replaced when there is something to record, and not sooner. */

static int set_aside(struct tracer *tr, struct err *err)
{
	struct buf name = { 0 };
	struct stat st;
	int r;

	if (!tr->o->replace || lstat(tr->o->output, &st) < 0 || !S_ISREG(st.st_mode))
		return 0;
	buf_printf(&name, "%s.%d.old", tr->o->output, (int)getpid());
	r = rename(tr->o->output, buf_str(&name)) < 0 ? -errno : 0;
	if (!r)
		tr->aside = xstrdup(buf_str(&name));
	buf_release(&name);
	return r ? err_set(err, r, "cannot replace %s", tr->o->output) : 0;
}

static void put_back(struct tracer *tr)
{
	if (tr->aside)
		(void)rename(tr->aside, tr->o->output); /* else it keeps its other name */
	free(tr->aside);
	tr->aside = NULL;
}

void tracer_drop_old(struct tracer *tr)
{
	if (tr->aside)
		(void)unlink(tr->aside); /* it may be gone */
	free(tr->aside);
	tr->aside = NULL;
}

/* The recording. */

static int run_tracer(struct tracer *tr, struct err *err)
{
	int r;

	take_signals(&tr->signals, tr->o->attach_pid != 0);
	witness_init(tr, &tr->res->why_not_compared);
	r = tr->o->attach_pid ? tracer_attach(tr, err) : tracer_launch(tr, err);
	if (!r && tr->o->attach_pid)
		tracer_drop_old(tr);
	/* The program has been started with what it shall have. */
	creds_give_up();
	if (tr->o->untrusted)
		(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); /* it shall not look at us */
	command_pid = tr->child;
	(void)sigprocmask(SIG_SETMASK, &tr->signals.mask, NULL);
	if (!r)
		tracer_loop(tr);
	/* Of calls that make no stops nothing is measured. */
	tr->res->slowdown_percent =
		agent_nr_events(tr->agent) ? 0 : cost_slowdown_percent(&tr->cost);
	if (!r && tr->child && !tr->started && tr->exec_err)
		r = err_set(err, -tr->exec_err, "cannot run %s", tr->path);
	/* A recording may have ended before the command began. */
	else if (!r && tr->child && !tr->started && !tr->silent && WIFEXITED(tr->res->wait_status))
		r = err_set(err, -EPERM, "cannot run %s with a seccomp filter", tr->path);
	command_pid = 0;
	signals_restore(&tr->signals);
	outgrow_files(&tr->signals);
	return r;
}

static void take_totals(struct tracer *tr)
{
	struct trace_writer_totals totals;

	trace_writer_hurry(tr->writer);
	(void)!trace_writer_sync(tr->writer, NULL); /* closing reports a failure */
	totals = trace_writer_totals(tr->writer);
	tr->res->nr_events = totals.nr_events;
	tr->res->file_bytes = totals.file_bytes;
	tr->res->nr_losses = totals.nr_losses;
	memcpy(tr->res->nr_losses_by_kind, totals.nr_losses_by_kind,
	       sizeof(tr->res->nr_losses_by_kind));
}

/* The program, or somebody else, may have removed what was written, or cut it, or put another in its place. */
static void look_at_trace(struct tracer *tr)
{
	struct record_result *res = tr->res;
	struct stat st;

	res->is_gone = stat(tr->o->output, &st) < 0 || st.st_ino != tr->capture.own_ino ||
		       st.st_dev != tr->capture.own_dev || (uint64_t)st.st_size < res->file_bytes;
	if (!res->is_gone)
		res->file_bytes = (uint64_t)st.st_size; /* closing added to it */
}

static void finish(struct tracer *tr)
{
	struct err why = { "" };
	int r;

	/* Closing returns the first failure, and with its words; what is said of the end may fit. */
	(void)!tree_finish(tr->tree, tracer_now(tr), !tr->res->cut_short);
	tr->res->elapsed_ns = tracer_now(tr);
	(void)!put_end(tr); /* likewise */
	(void)!trace_feed_flush(tr->feed); /* likewise */
	take_totals(tr);
	r = trace_writer_close(tr->writer, &why);
	tr->writer = NULL;
	look_at_trace(tr);
	tr->res->is_read = tr->nr_own_reads;
	/* The program did what it did; that its trace is not whole is told beside that. */
	if (r == -EXFULL)
		tracer_cut_short(tr, r, "");
	else if (r < 0 && !tr->res->cut_short) {
		tr->res->cut_short = true;
		tr->res->why_cut = why;
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

enum agent_use { AGENT_NEVER, AGENT_IF_POSSIBLE, AGENT_ALWAYS };

static int make_agent(struct tracer *tr, enum agent_use use, struct err *err)
{
	int r = use == AGENT_NEVER ? 0 : agent_new(tr, &tr->agent, err);

	if (r != -EOPNOTSUPP || use != AGENT_IF_POSSIBLE)
		return r;
	tr->res->by_ptrace = *err;
	*err = (struct err){ "" };
	return 0;
}

static int record_run(const struct record_options *o, enum agent_use use, struct record_result *ret,
		      struct err *err)
{
	struct tree_options tree_options = { .content_max_bytes = o->content_max_bytes,
					     .misses_calls = o->wanted || o->paths.wants };
	struct trace_writer_options options = { .replace = o->replace,
						.file_mode = o->file_mode,
						.reserve = true,
						.pack_after_ns = PACK_AFTER_NS,
						.begin_thread = creds_give_up_all,
						.max_bytes = o->max_bytes };
	struct tracer tr = {
		.o = o, .res = ret, .start_ns = clock_monotonic_ns(), .data = o->data
	};
	AUTO_FREE char *output = xstrdup(o->output); /* which dirname() changes */
	struct stat own;
	int r;

	*ret = (struct record_result){ 0 };
	r = check_proc(err);
	if (!r && !o->attach_pid)
		r = tracer_find_program(&tr, err);
	if (!r)
		r = make_agent(&tr, use, err);
	if (r < 0)
		return r;
	outgrow_files(&tr.signals);
	r = set_aside(&tr, err);
	if (!r)
		r = trace_writer_open(o->output, &options, &tr.writer, err);
	if (r < 0) {
		put_back(&tr);
		(void)sigaction(SIGXFSZ, &tr.signals.file_size, NULL);
		agent_free(tr.agent);
		return r;
	}
	tr.feed = trace_writer_add_feed(tr.writer);
	tr.memory.memory = (struct memory){ .read = read_process, .is_whole = true };
	if (!stat(o->output, &own)) {
		tree_options.own_dev = own.st_dev;
		tree_options.own_ino = own.st_ino;
	}
	tr.capture = (struct capture){ .memory = &tr.memory.memory,
				       .feed = tr.feed,
				       .policy = o->data,
				       .own_dev = tree_options.own_dev,
				       .own_ino = tree_options.own_ino };
	tr.found = found_new();
	tr.aio = aio_new();
	tr.stores = stores_new();
	/* Where some calls are not seen, or what went before, a file may be changed by somebody unseen. */
	if (!tree_options.misses_calls && !o->attach_pid && !agent_is_netless(&tr))
		tree_options.later = tr.writer;
	tree_options.scratch_dir = dirname(output);
	tr.tree = tree_new(tr.feed, &tree_options);
	r = put_source(&tr);
	if (r < 0)
		err_set(err, r, "cannot write %s", o->output);
	if (!r)
		r = run_tracer(&tr, err);
	if (!r)
		finish(&tr);
	if (!tr.writer)
		tracer_drop_old(&tr);
	tree_free(tr.tree); /* before what it writes to */
	if (tr.writer) {
		trace_writer_abandon(tr.writer);
		(void)unlink(o->output); /* nothing was recorded */
		put_back(&tr);
	}
	found_free(tr.found);
	open_ids_release(&tr.open_ids);
	aio_free(tr.aio);
	stores_free(tr.stores);
	capture_release(&tr.capture);
	tracees_release(&tr.all);
	agent_free(tr.agent);
	(void)sigaction(SIGXFSZ, &tr.signals.file_size, NULL);
	return r;
}

static int ptrace_run(const struct record_options *o, struct record_result *ret, struct err *err)
{
	return record_run(o, AGENT_NEVER, ret, err);
}

static int inproc_run(const struct record_options *o, struct record_result *ret, struct err *err)
{
	struct record_options at_once = *o;

	at_once.agent_after_calls = 0;
	return record_run(&at_once, AGENT_ALWAYS, ret, err);
}

static int auto_run(const struct record_options *o, struct record_result *ret, struct err *err)
{
	return record_run(o, AGENT_IF_POSSIBLE, ret, err);
}

static const uint16_t events[] = { EV_thread_start, EV_thread_exit, EV_exec,   EV_signal,
				   EV_stopped,	    EV_continued,   EV_marker, EV_found_fd,
				   EV_found_state,  EV_map_store,   0 };

const struct recorder recorder_ptrace = {
	.name = "ptrace",
	.summary = "by ptrace: needs no rights, sees every call",
	.events = events,
	.run = ptrace_run,
};

const struct recorder recorder_inproc = {
	.name = "inproc",
	.summary = "by an agent in the program, and by ptrace what that cannot see",
	.events = events,
	.run = inproc_run,
};

const struct recorder recorder_auto = {
	.name = "auto",
	.summary = "by ptrace, and by an agent in programs that make many calls",
	.events = events,
	.run = auto_run,
};
