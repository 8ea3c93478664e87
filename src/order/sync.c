/* SPDX-License-Identifier: MIT */
#include "order/sync.h"

#include <sched.h>
#include <sys/wait.h>

#include "model/fields.h"
#include "order/args.h"

/* wakeup.why: not told; may be a timer or a disk. */
#define WHY_UNKNOWN 0

void sync_init(struct sync *s, struct threads *threads)
{
	*s = (struct sync){ .threads = threads };
	futexes_init(&s->futexes, threads);
}

void sync_release(struct sync *s)
{
	futexes_release(&s->futexes);
}

/* All that the process has done, or the one thread of a process that is still there. */
static bool add_process(struct sync *s, uint32_t pid, struct users *to)
{
	struct process *p = threads_find_process(s->threads, pid);
	const struct thread *th;
	struct users done;

	if (!p)
		return false;
	users_add_all(to, &p->ended);
	for (th = p->threads; th; th = th->next_sibling) {
		thread_done(th, &done);
		users_add_all(to, &done);
		users_release(&done);
	}
	return true;
}

uint32_t event_ended_pid(const struct event *ev)
{
	const struct value *v;
	uint64_t status, code;

	if (ev->outcome.err)
		return 0;
	if (ev->row->id == SC_waitid) {
		v = event_arg(ev, "infop");
		code = field_number(v, FIELD_OF(siginfo, si_code));
		return code == CLD_EXITED || code == CLD_KILLED || code == CLD_DUMPED
			       ? (uint32_t)field_number(v, FIELD_OF(siginfo, si_pid))
			       : 0;
	}
	v = event_arg(ev, "wstatus");
	if (v && v->type == VALUE_LIST && v->count && v->items[0].type == VALUE_INT) {
		status = v->items[0].u;
		if (WIFSTOPPED((int)status) || WIFCONTINUED((int)status))
			return 0;
	}
	return ev->outcome.ret > 0 && ev->outcome.ret <= INT32_MAX ? (uint32_t)ev->outcome.ret : 0;
}

static void process_waited_for(struct sync *s, struct thread *th, const struct order_input *in)
{
	uint32_t pid = event_ended_pid(in->ev);

	if (pid && !add_process(s, pid, &th->pending))
		s->nr_unknown++;
}

static void child_made(struct sync *s, struct thread *th, const struct order_input *in)
{
	const struct value *cl_args = event_arg(in->ev, "cl_args");
	struct thread *child = threads_find(s->threads, in->facts->child_tid);
	uint64_t flags, child_tid;
	struct users done;

	if (in->ev->row->id == SC_vfork) {
		flags = CLONE_VFORK;
		child_tid = 0;
	} else if (cl_args) {
		flags = field_number(cl_args, FIELD_OF(clone_args, flags));
		child_tid = field_number(cl_args, FIELD_OF(clone_args, child_tid));
	} else {
		flags = event_number(in->ev, "flags");
		child_tid = event_number(in->ev, "child_tid");
	}
	if (child && flags & CLONE_CHILD_CLEARTID)
		child->clear_tid = child_tid;
	if (!(flags & CLONE_VFORK))
		return;
	/* The call has returned because the child exec'ed or ended. */
	if (!child) {
		(void)add_process(s, in->facts->child_tid,
				  &th->pending); /* none: nothing to wait for */
	} else if (child->let_go) {
		users_add_all(&th->pending, &child->at_let_go);
	} else {
		thread_done(child, &done);
		users_add_all(&th->pending, &done);
		users_release(&done);
	}
}

static void thread_lets_go(struct thread *th, const struct order_input *in)
{
	if (th->let_go)
		return;
	th->let_go = true;
	thread_before(th, in, &th->at_let_go);
}

static void thread_ends(struct sync *s, struct thread *th, const struct order_input *in)
{
	thread_lets_go(th, in);
	if (th->exiting)
		return;
	th->exiting = true;
	futexes_thread_exit(&s->futexes, th, in);
}

/* A recorder saw this thread make another runnable. */
static void thread_woke(struct sync *s, struct thread *th, const struct order_input *in)
{
	struct thread *other = threads_find(s->threads, (uint32_t)event_number(in->ev, "tid"));
	struct users before;

	if (!other || other == th || event_number(in->ev, "why") == WHY_UNKNOWN)
		return;
	thread_before(th, in, &before);
	users_add_all(&other->pending, &before);
	users_release(&before);
}

/* This thread went on because another had done what came before an event of that number. */
static void thread_waited(struct sync *s, struct thread *th, const struct order_input *in)
{
	struct thread *other = threads_find(s->threads, (uint32_t)event_number(in->ev, "tid"));
	struct user done;

	if (!other || other == th) {
		s->nr_unknown++;
		return;
	}
	done = other->last;
	if (user_is(&done) && other->last_seq >= event_number(in->ev, "seq")) {
		/* It has gone on since. The action before may be later than what is meant, never earlier. */
		if (!done.nr)
			return;
		done.nr--;
	}
	users_add(&th->pending, &done);
}

void sync_event(struct sync *s, struct thread *th, const struct order_input *in)
{
	struct futex_call call;

	switch (in->ev->row->id) {
	case SC_wait4:
	case SC_waitpid:
	case SC_waitid:
		process_waited_for(s, th, in);
		break;
	case SC_vfork:
	case SC_clone:
	case SC_clone_backwards:
	case SC_clone3:
		if (!in->ev->outcome.err && in->facts->child_tid)
			child_made(s, th, in);
		break;
	case SC_set_tid_address:
		th->clear_tid = event_number(in->ev, "tidptr");
		break;
	case SC_execve:
	case SC_execveat:
		if (in->ev->outcome.err)
			break;
		thread_lets_go(th, in);
		th->clear_tid = 0;
		break;
	case EV_exec:
		thread_lets_go(th, in);
		break;
	case SC_exit:
	case SC_exit_group:
	case EV_thread_exit:
		thread_ends(s, th, in);
		break;
	case EV_wakeup:
		thread_woke(s, th, in);
		break;
	case EV_causal_wait:
		thread_waited(s, th, in);
		break;
	default:
		if (futex_call_read(in->ev, &call))
			futexes_event(&s->futexes, th, in, &call);
		break;
	}
}

void sync_ahead(struct sync *s, const struct event *ev)
{
	struct thread *th = threads_find(s->threads, ev->tid);
	struct futex_call call;

	if (th && futex_call_read(ev, &call))
		futexes_ahead(&s->futexes, th, ev, &call);
}

void sync_thread_end(struct sync *s, struct thread *th)
{
	futexes_forget(&s->futexes, th);
}
