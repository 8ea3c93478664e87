/* SPDX-License-Identifier: MIT */
/*
 * The source that runs the program: needs no rights, sees every call of every
 * process and thread. How it is opened, run and closed.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/mem.h"
#include "record/creds.h"
#include "record/ptrace/tracer.h"
#include "record/source.h"
#include "record/stores.h"

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

void signals_restore(const struct signals *s)
{
	(void)setitimer(ITIMER_REAL, &s->timer, NULL);
	if (s->has_jobs)
		jobs_restore_signals(&s->jobs);
	(void)sigaction(SIGCHLD, &s->child, NULL);
	(void)sigaction(SIGALRM, &s->alarm, NULL);
	(void)sigaction(SIGINT, &s->interrupt, NULL);
	(void)sigaction(SIGQUIT, &s->quit, NULL);
	(void)sigaction(SIGTERM, &s->terminate, NULL);
	(void)sigaction(SIGHUP, &s->hangup, NULL);
}

static int tracer_describe(void *of)
{
	static const char *const nets[] = { "on", "audit", "off" };
	const struct tracer *tr = of;
	int r = session_put_meta(tr->session, "recorder", "%s",
				 !tr->agent		    ? "ptrace"
				 : tr->o->agent_after_calls ? "auto"
							    : "inproc");

	if (!r && tr->agent)
		r = session_put_meta(tr->session, "net", "%s", nets[tr->o->net]);
	if (!r && tr->agent)
		r = session_put_meta(tr->session, "agent_clock", "%s", agent_clock(tr->agent));
	return r;
}

static int put_audit(struct tracer *tr)
{
	struct agent_caught c;
	int r;

	if (!tr->agent || tr->o->net != RECORD_NET_AUDIT)
		return 0;
	agent_audit(tr->agent, &c);
	tr->session->res->nr_caught = c.nr_calls;
	tr->session->res->caught = xstrdup(buf_str(&c.places));
	buf_release(&c.places);
	tr->session->res->nr_compared = tr->audit.nr_compared;
	tr->session->res->nr_not_compared = tr->audit.nr_not;
	r = session_put_meta(tr->session, "net_caught", "%llu", (unsigned long long)c.nr_calls);
	if (!r)
		r = session_put_meta(tr->session, "net_compared", "%llu",
				     (unsigned long long)tr->audit.nr_compared);
	if (!r)
		r = session_put_meta(tr->session, "net_left", "%llu",
				     (unsigned long long)c.nr_left);
	if (!r)
		r = session_put_meta(tr->session, "net_outside", "%llu",
				     (unsigned long long)c.nr_outside);
	return r ? r : trace_feed_meta(tr->session->feed, "net_places", tr->session->res->caught);
}

static int tracer_account(void *of)
{
	struct tracer *tr = of;
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
	struct loss left_out = {
		.kind = LOSS_FILTERED,
		.count = tr->nr_left_out,
		.note = "calls that touch only paths that were not asked for, or none"
	};
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
	int r = 0;

	if (tr->agent)
		r = session_put_meta(tr->session, "agent_events", "%llu",
				     (unsigned long long)agent_nr_events(tr->agent));
	if (!r)
		r = put_audit(tr);
	if (!r && agent_is_netless(tr))
		r = trace_feed_loss(tr->session->feed, &unseen);
	if (!r && (polled.count || aio_may_be_more(tr->aio)))
		r = trace_feed_loss(tr->session->feed, &polled);
	if (!r && (strange.count || tr->has_polled_ring))
		r = trace_feed_loss(tr->session->feed, &strange);
	if (!r && not_copied.count)
		r = trace_feed_loss(tr->session->feed, &not_copied);
	if (!r && own.count)
		r = trace_feed_loss(tr->session->feed, &own);
	if (!r && no_data.from_ns)
		r = trace_feed_loss(tr->session->feed, &no_data);
	if (!r && tr->o->paths.wants)
		r = trace_feed_loss(tr->session->feed, &left_out);
	return r;
}

/* The recording. */

static int tracer_run(void *of, struct err *err)
{
	struct tracer *tr = of;
	int r;

	tr->capture = (struct capture){ .memory = &tr->memory.memory,
					.feed = tr->session->feed,
					.policy = tr->o->data,
					.own_dev = tr->session->own_dev,
					.own_ino = tr->session->own_ino };

	take_signals(&tr->signals, tr->o->attach_pid != 0);
	witness_init(tr, &tr->session->res->why_not_compared);
	r = tr->o->attach_pid ? tracer_attach(tr, err) : tracer_launch(tr, err);
	if (!r && tr->o->attach_pid)
		session_drop_old(tr->session);
	/* The program has been started with what it shall have. */
	creds_give_up();
	if (tr->o->untrusted)
		(void)prctl(PR_SET_DUMPABLE, 0, 0, 0, 0); /* it shall not look at us */
	command_pid = tr->child;
	(void)sigprocmask(SIG_SETMASK, &tr->signals.mask, NULL);
	if (!r)
		tracer_loop(tr);
	/* Of calls that make no stops nothing is measured. */
	tr->session->res->slowdown_percent =
		agent_nr_events(tr->agent) ? 0 : cost_slowdown_percent(&tr->cost);
	if (!r && tr->child && !tr->started && tr->exec_err)
		r = err_set(err, -tr->exec_err, "cannot run %s", tr->path);
	/* A recording may have ended before the command began. */
	else if (!r && tr->child && !tr->started && !tr->session->is_over &&
		 WIFEXITED(tr->session->res->wait_status))
		r = err_set(err, -EPERM, "cannot run %s with a seccomp filter", tr->path);
	command_pid = 0;
	signals_restore(&tr->signals);
	tr->session->is_launched = tr->child != 0;
	tr->session->res->is_read = tr->nr_own_reads;
	return r;
}

static int make_agent(struct tracer *tr, struct err *err)
{
	int r = tr->o->agent == RECORD_AGENT_NEVER ? 0 : agent_new(tr, &tr->agent, err);

	if (r != -EOPNOTSUPP || tr->o->agent != RECORD_AGENT_IF_POSSIBLE)
		return r;
	tr->session->res->by_ptrace = *err;
	*err = (struct err){ "" };
	return 0;
}

static void tracer_close(void *of)
{
	struct tracer *tr = of;

	found_free(tr->found);
	open_ids_release(&tr->open_ids);
	aio_free(tr->aio);
	stores_free(tr->stores);
	capture_release(&tr->capture);
	tracees_release(&tr->all);
	agent_free(tr->agent);
	free(tr);
}

static int tracer_open(struct session *s, void **ret, struct err *err)
{
	struct tracer *tr = xcalloc(1, sizeof(*tr));
	int r = 0;

	tr->session = s;
	tr->o = s->o;
	tr->data = s->o->data;
	tr->memory.memory = (struct memory){ .read = read_process, .is_whole = true };
	if (!s->o->attach_pid)
		r = tracer_find_program(tr, err);
	if (!r)
		r = make_agent(tr, err);
	if (r < 0) {
		tracer_close(tr);
		return r;
	}
	s->misses_changes = agent_is_netless(tr);
	tr->found = found_new();
	tr->aio = aio_new();
	tr->stores = stores_new();
	*ret = tr;
	return 0;
}

static const uint16_t events[] = { EV_thread_start, EV_thread_exit, EV_exec,   EV_signal,
				   EV_stopped,	    EV_continued,   EV_marker, EV_found_fd,
				   EV_found_state,  EV_map_store,   0 };

const struct source source_ptrace = {
	.name = "ptrace",
	.events = events,
	.open = tracer_open,
	.describe = tracer_describe,
	.run = tracer_run,
	.account = tracer_account,
	.close = tracer_close,
};
