/* SPDX-License-Identifier: MIT */
#include "record/ptrace/witness.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "record/ptrace/kernel_calls.h"
#include "record/ptrace/tracer.h"

/* What the kernel counts a call as. */
enum { COUNTS_READ = 1, COUNTS_WRITE = 2 };

static unsigned int counts_as(const struct row *row)
{
	switch ((int)row->id) {
	case SC_read:
	case SC_pread64:
	case SC_readv:
	case SC_preadv:
	case SC_preadv2:
		return COUNTS_READ;
	case SC_write:
	case SC_pwrite64:
	case SC_writev:
	case SC_pwritev:
	case SC_pwritev2:
		return COUNTS_WRITE;
	case SC_sendfile:
	case SC_copy_file_range:
		return COUNTS_READ | COUNTS_WRITE;
	}
	return 0;
}

/* The agent makes calls, and all of them are recorded. */
static bool is_asked(const struct tracer *tr)
{
	return tr->agent && !agent_is_netless(tr) && !tr->o->wanted && !tr->o->paths.wants;
}

/* The file of the thread's counts; it stays the same when the thread runs another program. */
static int open_counts(const struct tracee *t)
{
	char name[64];

	(void)snprintf(name, sizeof(name), "/proc/%d/task/%d/io", (int)t->pid, (int)t->tid);
	return open(name, O_RDONLY | O_CLOEXEC);
}

static bool ask_kernel(const struct tracee *t, uint64_t *ret_reads, uint64_t *ret_writes)
{
	const struct witness *w = &t->witness;
	AUTO_CLOSE int opened = w->keeps_counts ? -1 : open_counts(t);
	unsigned long long reads, writes;
	char text[512];
	const char *at;
	ssize_t n = pread(w->keeps_counts ? w->counts_fd : opened, text, sizeof(text) - 1, 0);

	if (n < 0)
		return false;
	text[n] = 0;
	at = strstr(text, "syscr:");
	if (!at || sscanf(at, "syscr: %llu syscw: %llu", &reads, &writes) != 2)
		return false;
	*ret_reads = reads;
	*ret_writes = writes;
	return true;
}

void witness_init(struct tracer *tr, struct err *err)
{
	int r = is_asked(tr) && tr->o->net == RECORD_NET_AUDIT ? kernel_calls_find(err) : 0;

	tr->audit.tracepoint = r < 0 ? 0 : r;
}

/* Begins to count its calls anew. */
static void begin_calls(struct tracer *tr, struct tracee *t)
{
	struct witness *w = &t->witness;
	int fd = tr->audit.tracepoint ? kernel_calls_open(tr->audit.tracepoint, t->tid) : -1;

	w->calls = (struct witness_count){ 0 };
	w->calls_fd = fd;
	w->counts_calls = fd >= 0;
	tr->audit.nr_not += tr->audit.tracepoint && fd < 0;
}

void witness_begin_files(const struct tracer *tr, struct tracee *t)
{
	struct witness *w = &t->witness;

	w->reads = w->writes = (struct witness_count){ 0 };
	w->is_counting =
		t->agent && is_asked(tr) && ask_kernel(t, &w->reads.before, &w->writes.before);
}

void witness_begin_again(const struct tracer *tr, struct tracee *t)
{
	struct witness *w = &t->witness;

	if (!w->is_counting)
		return;
	if (!w->keeps_counts) {
		w->counts_fd = open_counts(t);
		w->keeps_counts = w->counts_fd >= 0;
	}
	witness_begin_files(tr, t);
}

void witness_begin_program(struct tracer *tr, struct tracee *t)
{
	witness_end(tr, t);
	t->witness.is_counting = false;
	begin_calls(tr, t);
}

void witness_begin_new(struct tracer *tr, struct tracee *t)
{
	t->witness = (struct witness){ .is_counting = is_asked(tr) };
	begin_calls(tr, t);
}

void witness_release(struct witness *w)
{
	if (w->counts_calls)
		(void)close(w->calls_fd);
	if (w->keeps_counts)
		(void)close(w->counts_fd);
	w->counts_calls = w->keeps_counts = false;
}

void witness_pause(const struct tracee *t, bool on)
{
	if (t->witness.counts_calls)
		kernel_calls_turn(t->witness.calls_fd, !on);
}

static void add(struct witness_count *c, bool surely)
{
	c->least += surely;
	c->most++;
}

/* An execve of a file that is not there: the agent may have said so without making the call. */
static bool may_be_answered(const struct event *ev)
{
	return ev->row->id == SC_execve && ev->outcome.err == ENOENT;
}

/* A program's own filter may have refused the call: then the kernel has not counted it. */
static void add_call(struct tracer *tr, struct tracee *t, const struct event *ev)
{
	struct witness *w = &t->witness;

	if (ev->flags & EVENT_COMPAT) { /* whose numbers mean other calls */
		(void)close(w->calls_fd);
		w->counts_calls = false;
		tr->audit.nr_not++;
	} else if (kernel_calls_counts(ev->row)) {
		add(&w->calls,
		    !t->own_filter && !(ev->flags & EVENT_UNFINISHED) && !may_be_answered(ev));
	}
}

void witness_add(struct tracer *tr, struct tracee *t, const struct event *ev)
{
	unsigned int as = t->witness.is_counting ? counts_as(ev->row) : 0;
	bool surely = !ev->outcome.err && !(ev->flags & EVENT_UNFINISHED) &&
		      (ev->outcome.ret || as != (COUNTS_READ | COUNTS_WRITE));

	if (t->witness.counts_calls)
		add_call(tr, t, ev);
	if (as & COUNTS_READ)
		add(&t->witness.reads, surely);
	if (as & COUNTS_WRITE)
		add(&t->witness.writes, surely);
}

void witness_note_break(struct tracee *t)
{
	t->witness.reads.most++;
	t->witness.writes.most++;
	t->witness.calls.most++;
}

static void tell(struct tracer *tr, const struct tracee *t, uint64_t count, const char *note)
{
	struct loss loss = { .kind = LOSS_CALL_UNSEEN,
			     .pid = (uint32_t)t->pid,
			     .tid = (uint32_t)t->tid,
			     .count = count,
			     .to_ns = tracer_now(tr),
			     .note = note };

	tracer_put_loss(tr, &loss);
}

struct notes {
	const char *unseen, *made_up;
};

static const struct notes notes_of_files = {
	"reads or writes that the kernel has counted, and that were not recorded",
	"reads or writes that were recorded, and that the kernel has not counted",
};

static const struct notes notes_of_calls = {
	"calls that the kernel has counted, and that were not recorded",
	"calls that were recorded, and that the kernel has not counted",
};

/* True: they differ, and that is told. */
static bool differ(struct tracer *tr, const struct tracee *t, const struct witness_count *c,
		   uint64_t now, bool runs, const struct notes *notes)
{
	uint64_t made = now - c->before;

	if (made > c->most + runs)
		tell(tr, t, made - c->most, notes->unseen);
	else if (made < c->least && !runs)
		tell(tr, t, c->least - made, notes->made_up);
	else
		return false;
	return true;
}

void witness_compare(struct tracer *tr, struct tracee *t, bool runs)
{
	struct witness *w = &t->witness;
	uint64_t reads, writes;

	if (!w->is_counting || !t->agent || tr->session->is_over || !ask_kernel(t, &reads, &writes))
		return;
	agent_drain(tr, t);
	if (differ(tr, t, &w->reads, reads, runs, &notes_of_files) ||
	    differ(tr, t, &w->writes, writes, runs, &notes_of_files))
		w->is_counting = false; /* once is enough */
}

void witness_end(struct tracer *tr, struct tracee *t)
{
	struct witness *w = &t->witness;
	uint64_t now;

	if (w->counts_calls && !tr->session->is_over && kernel_calls_read(w->calls_fd, &now)) {
		tr->audit.nr_compared++;
		(void)differ(tr, t, &w->calls, now, false, &notes_of_calls);
	}
	witness_release(w);
}

/* The thread may end, and with it all of its process, or (pid 0) all others. */
static void compare_all(struct tracer *tr, const struct tracee *t, pid_t pid)
{
	MAP_EACH (&tr->all.by_tid, e) {
		struct tracee *other = e->value;

		if (!pid || other->pid == pid)
			witness_compare(tr, other, other != t);
	}
}

void witness_before_call(struct tracer *tr, struct tracee *t)
{
	switch ((int)t->row->id) {
	case SC_exit:
		witness_compare(tr, t, false);
		break;
	case SC_exit_group:
	case SC_execve:
	case SC_execveat:
		compare_all(tr, t, t->pid);
		break;
	case SC_kill:
	case SC_tkill:
	case SC_pidfd_send_signal:
		if (t->regs[1] == SIGKILL)
			compare_all(tr, t, 0);
		break;
	case SC_tgkill:
		if (t->regs[2] == SIGKILL)
			compare_all(tr, t, 0);
		break;
	}
}

void witness_before_signal(struct tracer *tr, struct tracee *t)
{
	if (t->delivered != SIGCHLD && !interrupts_catches(t, t->delivered))
		compare_all(tr, t, t->pid);
}
