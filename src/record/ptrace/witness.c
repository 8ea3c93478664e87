/* SPDX-License-Identifier: MIT */
#include "record/ptrace/witness.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "base/buf.h"
#include "base/io.h"
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

static bool ask_kernel(const struct tracee *t, uint64_t *ret_reads, uint64_t *ret_writes)
{
	unsigned long long reads, writes;
	struct buf text = { 0 };
	const char *at;
	char name[64];
	bool is_told;

	(void)snprintf(name, sizeof(name), "/proc/%d/task/%d/io", (int)t->pid, (int)t->tid);
	is_told = io_read_file(name, 4096, &text, NULL) >= 0 &&
		  (at = strstr(buf_str(&text), "syscr:")) &&
		  sscanf(at, "syscr: %llu syscw: %llu", &reads, &writes) == 2;
	buf_release(&text);
	if (!is_told)
		return false;
	*ret_reads = reads;
	*ret_writes = writes;
	return true;
}

void witness_begin(const struct tracer *tr, struct tracee *t)
{
	struct witness *w = &t->witness;

	*w = (struct witness){ .is_counting = false };
	w->is_counting = is_asked(tr) && ask_kernel(t, &w->reads.before, &w->writes.before);
}

void witness_begin_new(const struct tracer *tr, struct tracee *t)
{
	t->witness = (struct witness){ .is_counting = is_asked(tr) };
}

static void add(struct witness_count *c, bool surely)
{
	c->least += surely;
	c->most++;
}

void witness_add(struct tracee *t, const struct event *ev)
{
	unsigned int as = t->witness.is_counting ? counts_as(ev->row) : 0;
	bool surely = !ev->outcome.err && !(ev->flags & EVENT_UNFINISHED) &&
		      (ev->outcome.ret || as != (COUNTS_READ | COUNTS_WRITE));

	if (as & COUNTS_READ)
		add(&t->witness.reads, surely);
	if (as & COUNTS_WRITE)
		add(&t->witness.writes, surely);
}

void witness_note_break(struct tracee *t)
{
	t->witness.reads.most++;
	t->witness.writes.most++;
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

/* True: they differ, and that is told. */
static bool differ(struct tracer *tr, const struct tracee *t, const struct witness_count *c,
		   uint64_t now, bool runs)
{
	uint64_t made = now - c->before;

	if (made > c->most + runs)
		tell(tr, t, made - c->most,
		     "reads or writes that the kernel has counted, and that were not recorded");
	else if (made < c->least && !runs)
		tell(tr, t, c->least - made,
		     "reads or writes that were recorded, and that the kernel has not counted");
	else
		return false;
	return true;
}

void witness_compare(struct tracer *tr, struct tracee *t, bool runs)
{
	struct witness *w = &t->witness;
	uint64_t reads, writes;

	if (!w->is_counting || tr->silent || !ask_kernel(t, &reads, &writes))
		return;
	agent_drain(tr, t);
	if (differ(tr, t, &w->reads, reads, runs) || differ(tr, t, &w->writes, writes, runs))
		w->is_counting = false; /* once is enough */
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
