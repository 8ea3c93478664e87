/* SPDX-License-Identifier: MIT */
/* From the tracer to the trace: the first failure to write ends the recording, not the program. */
#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "record/ptrace/tracer.h"

/* More than what it could want to see of it. */
#define OWN_MAX_BYTES (UINT64_C(64) << 20)

enum data_policy tracer_data_policy(struct tracer *tr, const struct tracee *t,
				    const struct outcome *o)
{
	const struct capture *c = &tr->capture;
	struct stat st;

	if (!c->is_own_open || o->err || row_class(t->row) != C_DATA ||
	    !found_stat(t->tid, (int)t->regs[0], &st) || st.st_ino != c->own_ino ||
	    st.st_dev != c->own_dev)
		return tr->data;
	tr->nr_own_reads++;
	tr->own_bytes += (uint64_t)o->ret;
	if (tr->own_bytes > OWN_MAX_BYTES && !tr->no_data_ns) {
		tr->no_data_ns = tracer_now(tr);
		tr->data = DATA_NONE;
	}
	return DATA_NONE;
}

static void end_activity(struct tracer *tr)
{
	MAP_EACH (&tr->all.by_tid, e)
		tracer_set_active(tr, e->value, false, tracer_now(tr));
}

void tracer_end_recording(struct tracer *tr)
{
	session_end(tr->session);
	end_activity(tr);
}

void tracer_set_active(struct tracer *tr, struct tracee *t, bool active, uint64_t now_ns)
{
	if (t->is_active == active || (active && tr->session->is_over))
		return;
	if (active)
		cost_enter_active(&tr->cost, now_ns);
	else
		cost_leave_active(&tr->cost, t->active_since_ns, now_ns);
	t->is_active = active;
	t->active_since_ns = now_ns;
}

void tracer_cut_short(struct tracer *tr, int r, const char *why)
{
	if (tr->session->is_over)
		return;
	session_cut_short(tr->session, r, why);
	end_activity(tr);
	if (r != -EXFULL && tr->o->on_full == RECORD_STOP && r < 0 && tr->child)
		(void)kill(tr->child, SIGKILL);
}

int tracer_emit(struct tracer *tr, struct tracee *t, struct event *ev)
{
	ev->pid = (uint32_t)t->pid;
	ev->tid = (uint32_t)t->tid;
	ev->ppid = (uint32_t)t->ppid;
	ev->pgid = (uint32_t)t->pgid;
	tr->session->res->held_ns += ev->held_ns;
	return trace_feed_event(tr->session->feed, t->stream, ev);
}

void tracer_put_event(struct tracer *tr, struct tracee *t, struct event *ev)
{
	int r;

	if (tr->session->is_over || !t->stream)
		return;
	witness_add(tr, t, ev);
	r = tracer_emit(tr, t, ev);
	if (r < 0 && r != -E2BIG)
		tracer_cut_short(tr, r, "cannot write the trace");
}

void tracer_put_now(struct tracer *tr, struct tracee *t, enum row_id id, const struct value *args,
		    unsigned int nr)
{
	struct event ev = { .row = row_by_id(id) };

	memcpy(ev.args, args, nr * sizeof(*args));
	ev.enter_ns = ev.exit_ns = tracer_now(tr);
	tracer_put_event(tr, t, &ev);
}

void tracer_take_held(struct tracee *t, struct event *ev)
{
	ev->held_ns = ev->held_before_ns = t->carried_ns + clock_sub_ns(ev->enter_ns, t->noted_ns);
	t->carried_ns = 0;
	t->noted_ns = ev->enter_ns;
}

void tracer_make_call(struct tracer *tr, struct tracee *t, struct outcome outcome, uint64_t seen_ns,
		      struct event *ret)
{
	*ret = (struct event){ .row = t->row,
			       .flags = t->flags,
			       .enter_ns = t->enter_ns,
			       .exit_ns = seen_ns,
			       .outcome = outcome };
	if (!(t->flags & EVENT_UNFINISHED))
		ret->cpu_ns = cpu_read_ns(&tr->cpus, &t->cpu, t->pid, t->tid);
	ret->gap_cpu_ns = t->gap_cpu_ns;
	t->event_cpu_ns = ret->cpu_ns;
	t->gap_cpu_ns = 0;
	memcpy(ret->args, t->args, t->row->nr_args * sizeof(*t->args));
	t->noted_ns = tracer_now(tr);
	ret->held_ns = t->held_ns + t->noted_ns - seen_ns;
	ret->held_before_ns = t->held_ns;
	ret->held_inside_ns = t->inside_ns;
	t->inside_ns = 0;
}

void tracer_put_call(struct tracer *tr, struct tracee *t, struct outcome outcome, uint64_t seen_ns)
{
	struct event ev;

	tracer_make_call(tr, t, outcome, seen_ns, &ev);
	tracer_put_event(tr, t, &ev);
}

void tracer_close_stream(struct tracer *tr, struct tracee *t)
{
	int r = t->stream ? trace_feed_close_stream(tr->session->feed, t->stream) : 0;

	tracer_set_active(tr, t, false, tracer_now(tr));
	cpu_close(&tr->cpus, &t->cpu);
	t->stream = NULL;
	if (r < 0)
		tracer_cut_short(tr, r, "cannot write the trace");
}

void tracer_put_loss(struct tracer *tr, const struct loss *loss)
{
	int r = tr->session->is_over ? 0 : trace_feed_loss(tr->session->feed, loss);

	if (r < 0)
		tracer_cut_short(tr, r, "cannot write the trace");
}
