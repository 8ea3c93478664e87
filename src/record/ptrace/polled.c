/* SPDX-License-Identifier: MIT */
#include "record/ptrace/polled.h"

#include <linux/io_uring.h>
#include <stddef.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/banned.h"
#include "base/clock.h"
#include "model/kernel_structs.h"
#include "record/ptrace/registers.h"
#include "record/ptrace/tracer.h"

/* Those that older headers lack. */
#define SETUP_SUBMIT_ALL (1u << 7)
#define SETUP_COOP_TASKRUN (1u << 8)
#define SETUP_TASKRUN_FLAG (1u << 9)
#define SETUP_SINGLE_ISSUER (1u << 12)
#define SETUP_DEFER_TASKRUN (1u << 13)
#define SETUP_REGISTERED_FD_ONLY (1u << 15)

/* Without the kernel's thread who submits is any thread of the program. */
#define HIDDEN (IORING_SETUP_SQPOLL | IORING_SETUP_SQ_AFF | SETUP_SINGLE_ISSUER)
/*
 * Completions of polled devices are found by the kernel's thread alone; the kernel
 * refuses the next three together with it; a ring without a descriptor can be used
 * by one thread only.
 */
#define LEFT_ALONE                                                                                 \
	(IORING_SETUP_IOPOLL | SETUP_COOP_TASKRUN | SETUP_TASKRUN_FLAG | SETUP_DEFER_TASKRUN |     \
	 SETUP_REGISTERED_FD_ONLY)

static bool read_at(pid_t tid, uint64_t at, void *ret, size_t len)
{
	struct iovec local = { ret, len }, remote = { (void *)(uintptr_t)at, len };

	return process_vm_readv(tid, &local, 1, &remote, 1, 0) == (ssize_t)len;
}

static bool write_at(pid_t tid, uint64_t at, const void *p, size_t len)
{
	struct iovec local = { (void *)(uintptr_t)p, len }, remote = { (void *)(uintptr_t)at, len };

	return process_vm_writev(tid, &local, 1, &remote, 1, 0) == (ssize_t)len;
}

/* A request that is refused at once must not hold up those behind it, as it does not with the thread. */
static uint32_t submit_all(void)
{
	struct io_uring_params p = { .flags = SETUP_SUBMIT_ALL };
	static int knows = -1; /* the kernel is the same for all recordings */
	int fd;

	if (knows < 0) {
		fd = (int)syscall(SYS_io_uring_setup, 1, &p);
		knows = fd >= 0;
		if (fd >= 0)
			(void)close(fd);
	}
	return knows ? SETUP_SUBMIT_ALL : 0;
}

void polled_enter_setup(const struct tracer *tr, struct tracee *t)
{
	uint64_t at = t->regs[1] + offsetof(struct k_io_uring_params, flags);
	uint32_t flags, used;

	/* Where its submissions make no stops it is better left as it is. */
	if (t->row->id != SC_io_uring_setup ||
	    (tr->o->wanted && !tr->o->wanted[SC_io_uring_enter]) || !registers_can_inject(t->tid) ||
	    !read_at(t->tid, at, &flags, sizeof(flags)) || !(flags & IORING_SETUP_SQPOLL) ||
	    (flags & LEFT_ALONE))
		return;
	used = (flags & ~(uint32_t)HIDDEN) | submit_all();
	t->polled.hidden = (struct hidden_flag){ .at = at, .value = flags };
	t->polled.hidden.is_hidden = write_at(t->tid, at, &used, sizeof(used));
}

void polled_put_back(struct tracee *t)
{
	uint32_t flags = (uint32_t)t->polled.hidden.value, used;

	if (!t->polled.hidden.is_hidden)
		return;
	t->polled.hidden.is_hidden = false;
	/* The kernel writes what it has used: another thread may have put the flag back meanwhile. */
	if (read_at(t->tid, t->polled.hidden.at, &used, sizeof(used)) &&
	    !(used & IORING_SETUP_SQPOLL))
		(void)write_at(t->tid, t->polled.hidden.at, &flags, sizeof(flags)); /* or gone */
	else
		t->polled.hidden.at = 0;
}

void polled_enter_submit(struct tracer *tr, struct tracee *t)
{
	struct aio_call call = { .pid = t->pid, .tid = t->tid, .row = t->row, .regs = t->regs };
	const struct aio_polled *p = aio_polled_of(tr->aio, &call);
	uint32_t head, tail;

	t->polled.is_enter = false;
	if (!p || !p->head_at || !read_at(t->tid, p->head_at, &head, sizeof(head)) ||
	    !read_at(t->tid, p->tail_at, &tail, sizeof(tail)))
		return;
	t->polled.to_submit = t->regs[1];
	t->polled.is_enter =
		!registers_set_second(t->tid, t->flags & EVENT_COMPAT, (uint32_t)(tail - head));
	if (t->polled.is_enter)
		t->regs[1] = (uint32_t)(tail - head);
}

static void set_wakeup(struct tracee *t, struct aio_polled *p)
{
	uint32_t flags;

	if (p->is_flagged || !p->flags_at || p->pid != t->pid ||
	    !read_at(t->tid, p->flags_at, &flags, sizeof(flags)))
		return;
	flags |= IORING_SQ_NEED_WAKEUP;
	p->is_flagged = write_at(t->tid, p->flags_at, &flags, sizeof(flags));
}

void polled_after_call(struct tracer *tr, struct tracee *t, bool was_hidden, int64_t ret,
		       uint64_t ip)
{
	struct aio_polled *p;
	size_t i;

	if (was_hidden && ret >= 0 && t->polled.hidden.at)
		aio_hide_polling(tr->aio, t->pid, (int)ret, ip);
	for (i = 0; (p = aio_polled_at(tr->aio, i)); i++)
		set_wakeup(t, p);
}

void polled_leave(struct tracee *t, int64_t ret)
{
	if (t->polled.is_enter) {
		t->polled.is_enter = false;
		/* Each fails only when the thread is gone. */
		(void)!registers_set_second(t->tid, t->flags & EVENT_COMPAT, t->polled.to_submit);
		if (ret >= 0)
			(void)!registers_set_result(t->tid, (int64_t)t->polled.to_submit);
	}
	if (t->polled.is_working)
		registers_put_back(t->tid, &t->polled.kept);
	t->polled.is_working = false;
}

void polled_leave_alone(struct tracee *t)
{
	struct __ptrace_syscall_info info;
	bool at_end = ptrace(PTRACE_GET_SYSCALL_INFO, t->tid, sizeof(info), &info) > 0 &&
		      info.op == PTRACE_SYSCALL_INFO_EXIT;

	t->polled.is_enter &= at_end; /* else it returns what it has submitted */
	polled_leave(t, at_end ? info.exit.rval : -1);
}

bool polled_needs_us(const struct tracer *tr, const struct tracee *t)
{
	const struct aio_polled *p;
	size_t i;

	if (tr->child && t->polled.hidden.is_hidden)
		return true;
	for (i = 0; tr->child && (p = aio_polled_at(tr->aio, i)); i++) {
		if (p->pid == t->pid)
			return true;
	}
	return false;
}

/* Watching. */

#define WATCH_LEAST_NS UINT64_C(1000000)
#define WATCH_MOST_NS UINT64_C(16000000)

static struct tracee *find_running(const struct tracer *tr, pid_t pid)
{
	MAP_EACH (&tr->all.by_tid, e) {
		struct tracee *t = e->value;

		if (t->pid == pid && t->state == TRACEE_RUNNING && t->recorded &&
		    !t->group_stopped && !t->is_again && !t->polled.is_working &&
		    tr->waker.tracee != t)
			return t;
	}
	return NULL;
}

/* True: there is something that waits, and did so at the last look. */
static bool is_waiting(struct aio_polled *p)
{
	uint32_t head, tail;
	bool waits;

	if (!p->head_at || p->fd < 0 || !read_at(p->pid, p->head_at, &head, sizeof(head)) ||
	    !read_at(p->pid, p->tail_at, &tail, sizeof(tail)))
		return false;
	waits = head != tail && p->has_waited && p->head == head;
	p->has_waited = head != tail;
	p->head = head;
	return waits;
}

void polled_watch(struct tracer *tr)
{
	uint64_t now_ns = clock_monotonic_ns();
	struct aio_polled *p;
	struct tracee *t;
	bool waits = false;
	size_t i;

	if (!aio_polled_at(tr->aio, 0)) {
		tr->waiting.most_ns = 0;
		return;
	}
	if (tr->waiting.most_ns && now_ns - tr->watched_ns < tr->waiting.most_ns)
		return;
	tr->watched_ns = now_ns;
	for (i = 0; (p = aio_polled_at(tr->aio, i)); i++) {
		waits |= p->has_waited;
		if (!is_waiting(p))
			continue;
		t = find_running(tr, p->pid);
		if (!t)
			continue;
		t->polled.wanted_fd = p->fd + 1;
		interrupts_break_off(t);
	}
	/* Who has waited once will wait again. */
	if (waits || !tr->waiting.most_ns)
		tr->waiting.most_ns = WATCH_LEAST_NS;
	else if (tr->waiting.most_ns < WATCH_MOST_NS)
		tr->waiting.most_ns *= 2;
}

void polled_begin_work(struct tracer *tr, struct tracee *t)
{
	int fd = t->polled.wanted_fd - 1;
	struct aio_polled *p;
	size_t i;

	t->polled.wanted_fd = 0;
	if (fd < 0 || t->state != TRACEE_RUNNING || t->is_again)
		return;
	for (i = 0; (p = aio_polled_at(tr->aio, i)); i++) {
		if (p->pid == t->pid && p->fd == fd)
			break;
	}
	if (!p)
		return;
	agent_before_signal(tr, t); /* it is at an instruction of its own then */
	t->polled.is_working =
		!registers_inject(t->tid, p->ip, SYS_io_uring_enter, (uint64_t)fd, &t->polled.kept);
}
