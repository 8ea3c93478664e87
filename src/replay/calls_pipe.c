/* SPDX-License-Identifier: MIT */
/*
 * Bytes through pipes. A call moves exactly as many as the recorded one did, in
 * as many steps as it takes: what edges order has started, not always ended, and
 * a write that does not fit goes on while another lane reads.
 *
 * A pipe that comes to a standstill (pipe_wait.h) is broken (pipes.h), and the
 * report says so.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/inotify.h>
#include <sys/ioctl.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <time.h>
#include <unistd.h>

#include "base/banned.h"
#include "replay/build.h"
#include "replay/calls.h"
#include "replay/pipe_wait.h"

/* How much a pipe is made to hold once something does not fit: what any user may have. */
#define GROWN_BYTES (1 << 20)
#define PIPE_BYTES ((uint64_t)64 << 10) /* what the kernel gives a pipe to hold */

struct move {
	struct lane *l;
	struct ready *a;
	int from, to; /* -1: what is read or written is memory */
	struct pipe *in, *out; /* of these; NULL: no pipe */
	struct pipe_wait wait; /* while that is so */
	int64_t (*step)(struct move *m, uint64_t left);
	uint64_t want, done;
	struct iovec *iov; /* what is left of the memory */
	int nr_iov;
	bool grown;
};

enum moved {
	MOVED,
	MOVED_FAILED, /* errno says why */
	MOVED_UNREAD, /* nobody is left who could read it */
	MOVED_STILL, /* nothing comes, or goes, any more */
	MOVED_STOPPED, /* with the run */
};

static bool can_read_now(int fd)
{
	struct pollfd p = { .fd = fd, .events = POLLIN };

	return poll(&p, 1, 0) > 0;
}

/* A wish: a user may have only so much in all pipes. What a FIFO takes is not given back. */
static bool grow(struct run *run, struct pipe *p, int fd, int bytes)
{
	int size = fcntl(fd, F_GETPIPE_SZ);
	uint64_t more = size >= 0 && bytes > size ? (uint64_t)(bytes - size) : 0;

	if (!more || !budget_take(&run->budget, more))
		return false;
	if (fcntl(fd, F_SETPIPE_SZ, bytes) < 0) {
		budget_give(&run->budget, more);
		return false;
	}
	if (p)
		atomic_fetch_add(&p->taken_bytes, more);
	return true;
}

static bool wait_ready(struct move *m, int fd, short events)
{
	m->wait.l = m->l;
	m->wait.a = m->a;
	m->wait.in = m->in;
	m->wait.out = m->out;
	return pipe_wait_ready(&m->wait, fd, events);
}

/* What holds it up: nothing to read, or no room. */
static bool wait_to_move(struct move *m)
{
	if (m->out && !m->grown) {
		m->grown = true;
		if (grow(m->l->run, m->out, m->to, GROWN_BYTES))
			return true;
	}
	if (m->in && (!m->out || !can_read_now(m->from)))
		return wait_ready(m, m->from, POLLIN);
	return wait_ready(m, m->to, POLLOUT);
}

/* Moving. */

static enum moved move_all(struct move *m)
{
	while (m->done < m->want) {
		int64_t n;

		if (pipe_is_broken(m->in) || pipe_is_broken(m->out))
			return MOVED_STILL;
		n = m->step(m, m->want - m->done);
		if (n > 0) {
			m->done += (uint64_t)n;
			m->wait.nr_vain = 0;
			continue;
		}
		if (run_is_stopped(m->l->run))
			return MOVED_STOPPED;
		if (!n) /* the end of what should hold more */
			return MOVED_STILL;
		if (errno == EPIPE)
			return MOVED_UNREAD;
		if (errno != EAGAIN && errno != EINTR)
			return MOVED_FAILED;
		if (errno == EAGAIN && !wait_to_move(m))
			return run_is_stopped(m->l->run) ? MOVED_STOPPED : MOVED_STILL;
	}
	return MOVED;
}

void call_simulate(struct ready *a, struct outcome *out)
{
	call_stands(a, out);
	a->fn = NULL;
	a->flags &= (uint16_t) ~(READY_VERIFY | READY_RESULT);
}

static void conclude(struct move *m, enum moved how, struct outcome *out)
{
	switch (how) {
	case MOVED:
		*out = (struct outcome){ .ret = (int64_t)m->done };
		break;
	case MOVED_FAILED:
		call_set(out, -1);
		break;
	case MOVED_UNREAD: /* by nobody: whether its reader had gone already was luck */
		call_stands(m->a, out);
		break;
	case MOVED_STILL:
		pipes_break(m->l->run, m->in);
		pipes_break(m->l->run, m->out);
		call_simulate(m->a, out);
		break;
	case MOVED_STOPPED:
		*out = (struct outcome){ .ret = -1, .err = EINTR };
		break;
	}
}

/* Memory. */

/* The vector is left with what follows its first bytes. */
static void skip(struct move *m, uint64_t bytes)
{
	while (m->nr_iov && bytes >= m->iov->iov_len) {
		bytes -= m->iov->iov_len;
		m->iov++;
		m->nr_iov--;
	}
	if (m->nr_iov) {
		m->iov->iov_base = (uint8_t *)m->iov->iov_base + bytes;
		m->iov->iov_len -= bytes;
	}
}

/* The vector is cut to so many bytes; false: it has fewer. */
static bool cut(struct move *m, uint64_t bytes)
{
	int i;

	for (i = 0; i < m->nr_iov && bytes; i++) {
		if (m->iov[i].iov_len > bytes)
			m->iov[i].iov_len = bytes;
		bytes -= m->iov[i].iov_len;
	}
	m->nr_iov = i;
	return !bytes;
}

static int64_t step_read(struct move *m, uint64_t left)
{
	ssize_t n = readv(m->from, m->iov, m->nr_iov);

	(void)left;
	if (n > 0)
		skip(m, (uint64_t)n);
	return n;
}

static int64_t step_write(struct move *m, uint64_t left)
{
	ssize_t n = writev(m->to, m->iov, m->nr_iov);

	(void)left;
	if (n > 0)
		skip(m, (uint64_t)n);
	return n;
}

/* The other side is not there: bytes come from nowhere, or go there. */
static int64_t step_filler(struct move *m, uint64_t left)
{
	const struct run *run = m->l->run;

	return write(m->to, run->filler, left < run->filler_bytes ? left : run->filler_bytes);
}

static int64_t step_drain(struct move *m, uint64_t left)
{
	const struct lane_memory *mem = &m->l->memory;

	return read(m->from, mem->out, left < mem->out_bytes ? left : mem->out_bytes);
}

/* The end of a stream was seen: the read is made as it was until it sees it too. */
static void read_end(struct move *m, struct outcome *out)
{
	for (;;) {
		call_set(out, syscall(m->a->nr, m->a->regs[0], m->a->regs[1], m->a->regs[2],
				      m->a->regs[3], m->a->regs[4], m->a->regs[5]));
		if (out->err != EAGAIN || pipe_is_broken(m->in))
			break;
		if (!wait_to_move(m))
			break;
	}
	if (run_is_stopped(m->l->run))
		conclude(m, MOVED_STOPPED, out);
	else if (out->err == EAGAIN)
		conclude(m, MOVED_STILL, out);
}

static bool is_write(const struct ready *a, int fd)
{
	switch (a->row_id) {
	case SC_write:
	case SC_writev:
	case SC_pwritev2:
		return true;
	case SC_vmsplice:
		return (fcntl(fd, F_GETFL) & O_ACCMODE) != O_RDONLY;
	default:
		return false;
	}
}

static bool has_vector(const struct ready *a)
{
	return a->row_id != SC_read && a->row_id != SC_write;
}

static void move_memory(struct move *m, struct outcome *out)
{
	struct iovec vec[IOVECS_MAX] = { { .iov_base = (void *)m->a->regs[1],
					   .iov_len = m->a->regs[2] } };
	bool write = m->step == step_write;

	if (has_vector(m->a) && m->a->regs[2] > IOVECS_MAX) {
		call_generic(m->l, m->a, out); /* is refused before it is looked at */
		return;
	}
	m->nr_iov = 1;
	if (has_vector(m->a)) {
		m->nr_iov = (int)m->a->regs[2];
		memcpy(vec, (const void *)m->a->regs[1], (size_t)m->nr_iov * sizeof(*vec));
	}
	m->iov = vec;
	/* More than the plan has bytes for: not even the beginning would be right. */
	if (!cut(m, m->want))
		conclude(m, MOVED_STILL, out);
	else if (!m->want && !write)
		read_end(m, out);
	else if (!m->want)
		call_generic(m->l, m->a, out);
	else
		conclude(m, move_all(m), out);
}

/* Read into nowhere: what vmsplice gave a reader is not in the trace. */
static void move_to_nowhere(struct move *m, struct outcome *out)
{
	m->step = step_drain;
	conclude(m, move_all(m), out);
}

/* An eventfd or inotify: what is there now is taken; whether that is what it was is luck. */
static void try_once(struct lane *l, struct ready *a, struct outcome *out)
{
	call_generic(l, a, out);
	call_stands(a, out);
}

static void call_memory(struct lane *l, struct ready *a, struct outcome *out)
{
	const struct slot *s = call_slot(l, a, 0);
	struct pipe *pipe = s ? atomic_load(&((struct slot *)(uintptr_t)s)->pipe) : NULL;
	int fd = (int)a->regs[0];
	struct move m = { .l = l, .a = a, .from = -1, .to = -1 };

	if (fd < 0 || pipe_is_broken(pipe)) {
		call_simulate(a, out);
		return;
	}
	if (!pipe) {
		try_once(l, a, out);
		return;
	}
	m.want = (uint64_t)(a->expected.ret > 0 ? a->expected.ret : 0);
	if (is_write(a, fd)) {
		m.to = fd;
		m.out = pipe;
		m.step = step_write;
	} else {
		m.from = fd;
		m.in = pipe;
		m.step = step_read;
	}
	if (a->row_id == SC_vmsplice && m.in)
		move_to_nowhere(&m, out);
	else
		move_memory(&m, out);
}

/* Two descriptors. */

static int64_t step_splice(struct move *m, uint64_t left)
{
	const struct ready *a = m->a;

	return splice(m->from, (off_t *)a->regs[1], m->to, (off_t *)a->regs[3], left,
		      (unsigned int)a->regs[5] | SPLICE_F_NONBLOCK);
}

static int64_t step_sendfile(struct move *m, uint64_t left)
{
	off_t *offset = (off_t *)m->a->regs[2];
	int64_t n = sendfile(m->to, m->from, offset, left);

	/* Older kernels do not know pipes there. */
	if (n < 0 && errno == EINVAL)
		n = splice(m->from, offset, m->to, NULL, left, SPLICE_F_NONBLOCK);
	return n;
}

/* It takes nothing, so it must have all at once: the beginning would come again. */
static int64_t step_tee(struct move *m, uint64_t left)
{
	int available = 0;
	ssize_t n;

	while (ioctl(m->from, FIONREAD, &available) == 0 && (uint64_t)available < left) {
		if (!wait_ready(m, -1, 0))
			return 0;
	}
	if (!m->grown) {
		m->grown = true;
		(void)grow(m->l->run, m->out, m->to, GROWN_BYTES); /* a wish */
	}
	n = tee(m->from, m->to, left, SPLICE_F_NONBLOCK);
	return n > 0 && (uint64_t)n < left ? 0 : n;
}

struct ends {
	int from, to;
	struct pipe *in, *out;
	off_t *off_in, *off_out;
};

static void get_end(struct lane *l, const struct ready *a, unsigned int reg, int *ret_fd,
		    struct pipe **ret_pipe)
{
	struct slot *s = call_slot(l, a, reg);

	*ret_fd = (int)a->regs[reg];
	*ret_pipe = s ? atomic_load(&s->pipe) : NULL;
	if (pipe_is_broken(*ret_pipe) || *ret_fd < 0) {
		*ret_fd = -1;
		*ret_pipe = NULL;
	}
}

static void get_ends(struct lane *l, const struct ready *a, struct ends *e)
{
	*e = (struct ends){ 0 };
	switch (a->row_id) {
	case SC_sendfile:
		get_end(l, a, 1, &e->from, &e->in);
		get_end(l, a, 0, &e->to, &e->out);
		e->off_in = (off_t *)a->regs[2];
		break;
	case SC_tee:
		get_end(l, a, 0, &e->from, &e->in);
		get_end(l, a, 1, &e->to, &e->out);
		break;
	default:
		get_end(l, a, 0, &e->from, &e->in);
		get_end(l, a, 2, &e->to, &e->out);
		e->off_in = (off_t *)a->regs[1];
		e->off_out = (off_t *)a->regs[3];
		break;
	}
}

/* What the file has of it is made, be the pipe as it may. */
static void make_half(struct move *m, const struct ends *e, struct outcome *out)
{
	uint64_t left = m->want - m->done;
	struct outcome half;

	call_copy_half(m->l, left, e->in ? -1 : e->from, e->off_in, e->out ? -1 : e->to, e->off_out,
		       &half);
	if (half.err || half.ret != (int64_t)left)
		*out = half;
	else
		call_stands(m->a, out);
}

static void move_between(struct move *m, const struct ends *e, struct outcome *out)
{
	bool has_file = (e->from >= 0 && !e->in) || (e->to >= 0 && !e->out);
	enum moved how;

	how = move_all(m);
	if (how != MOVED_STILL || !has_file) {
		conclude(m, how, out);
		return;
	}
	pipes_break(m->l->run, m->in);
	pipes_break(m->l->run, m->out);
	make_half(m, e, out);
}

static void call_between(struct lane *l, struct ready *a, struct outcome *out)
{
	struct move m = { .l = l, .a = a };
	struct ends e;

	get_ends(l, a, &e);
	m.from = e.from;
	m.to = e.to;
	m.in = e.in;
	m.out = e.out;
	m.want = (uint64_t)(a->expected.ret > 0 ? a->expected.ret : 0);
	m.step = a->row_id == SC_tee	    ? step_tee
		 : a->row_id == SC_sendfile ? step_sendfile
					    : step_splice;
	if (!e.in && !e.out) { /* no pipe, or none that works */
		make_half(&m, &e, out);
		return;
	}
	if (e.from < 0)
		m.step = step_filler;
	else if (e.to < 0)
		m.step = step_drain;
	if (!m.want && e.in && e.to >= 0 && a->row_id != SC_sendfile)
		read_end(&m, out);
	else if (!m.want || (a->row_id == SC_tee && e.to < 0))
		call_stands(a, out);
	else
		move_between(&m, &e, out);
}

/* Reads of a pipe by splice do not ask its descriptor whether they may wait. */
static void never_wait(struct ready *a)
{
	if (a->row_id == SC_splice)
		a->regs[5] |= SPLICE_F_NONBLOCK;
	else if (a->row_id == SC_tee)
		a->regs[3] |= SPLICE_F_NONBLOCK;
}

void call_stream(struct lane *l, struct ready *a, struct outcome *out)
{
	never_wait(a);
	/* What failed by its arguments fails again. */
	if (a->expected.err && a->row_id == SC_vmsplice) {
		replay_vmsplice(l, a, out);
		return;
	}
	if (a->expected.err) {
		call_generic(l, a, out);
		return;
	}
	switch (a->row_id) {
	case SC_splice:
	case SC_tee:
	case SC_sendfile:
		call_between(l, a, out);
		break;
	default:
		call_memory(l, a, out);
		break;
	}
}

bool call_moves_through_stream(const struct row *row)
{
	switch (row->id) {
	case SC_read:
	case SC_readv:
	case SC_preadv2:
	case SC_write:
	case SC_writev:
	case SC_pwritev2:
	case SC_vmsplice:
	case SC_splice:
	case SC_tee:
	case SC_sendfile:
		return true;
	default:
		return false;
	}
}

/* Making them. */

/* Without a descriptor for it the pipe is simulated from its beginning. */
static void make_pipe(struct lane *l, struct ready *a, uint64_t flags, struct outcome *out)
{
	struct run *run = l->run;
	struct pipe *pipe = NULL;
	int fds[2], i;

	if (a->expected.err) {
		call_set(out, pipe2(fds, (int)flags));
		if (out->err)
			return;
	} else if (!budget_take(&run->budget, PIPE_BYTES)) {
		atomic_fetch_add(&run->pipes.nr_broken, 1);
		call_simulate(a, out);
		return;
	} else if (pipe2(fds, (int)(flags & O_DIRECT) | O_NONBLOCK | O_CLOEXEC) < 0) {
		budget_give(&run->budget, PIPE_BYTES);
		atomic_fetch_add(&run->pipes.nr_broken, 1);
		call_simulate(a, out);
		return;
	} else {
		l->sums.nr_pipes++;
		pipe = pipes_new(run);
		if (pipe)
			atomic_store(&pipe->taken_bytes, PIPE_BYTES);
		else
			budget_give(&run->budget, PIPE_BYTES); /* closed at once */
		*out = (struct outcome){ 0 };
	}
	for (i = 0; i < 2; i++) {
		struct slot *s =
			pipe && a->slots[i] != READY_NO_SLOT ? &run->slots[a->slots[i]] : NULL;
		int old = s ? slot_swap_fd(run, s, fds[i]) : fds[i];

		if (s)
			pipes_hold(s, pipe, 0);
		if (old >= 0)
			(void)close(old);
	}
}

void replay_pipe(struct lane *l, struct ready *a, struct outcome *out)
{
	make_pipe(l, a, 0, out);
}

void replay_pipe2(struct lane *l, struct ready *a, struct outcome *out)
{
	make_pipe(l, a, a->regs[1], out);
}

void replay_tee(struct lane *l, struct ready *a, struct outcome *out)
{
	never_wait(a);
	call_generic(l, a, out);
}

/* Pages of ours must not stay in a pipe: they are copied instead. What is no pipe is no file to write to. */
void replay_vmsplice(struct lane *l, struct ready *a, struct outcome *out)
{
	struct stat st;

	(void)l;
	if (a->expected.err == EBADF && !fstat((int)a->regs[0], &st) && !S_ISFIFO(st.st_mode)) {
		call_stands(a, out);
		return;
	}
	call_set(out, writev((int)a->regs[0], (const struct iovec *)a->regs[1],
			     a->regs[2] <= IOVECS_MAX ? (int)a->regs[2] : -1));
}

/* Never smaller than it is: nobody would notice, but what is in it might not fit. */
void replay_fcntl_setpipe_sz(struct lane *l, struct ready *a, struct outcome *out)
{
	struct slot *s = call_slot(l, a, 0);

	if (a->regs[2] <= GROWN_BYTES)
		(void)grow(l->run, s ? atomic_load(&s->pipe) : NULL, (int)a->regs[0],
			   (int)a->regs[2]); /* a wish */
	call_stands(a, out);
}

/* Eventfds and inotify. */

/* A user may have only so many: what there is none for is simulated. */
static void put_object(struct lane *l, struct ready *a, int fd, struct outcome *out)
{
	if (fd < 0 && !a->expected.err)
		call_simulate(a, out);
	else
		call_set_fd(l, a, 0, fd, out);
}

void replay_eventfd(struct lane *l, struct ready *a, struct outcome *out)
{
	put_object(l, a, eventfd((unsigned int)a->regs[0], EFD_NONBLOCK | EFD_CLOEXEC), out);
}

void replay_eventfd2(struct lane *l, struct ready *a, struct outcome *out)
{
	put_object(l, a,
		   eventfd((unsigned int)a->regs[0], (int)a->regs[1] | EFD_NONBLOCK | EFD_CLOEXEC),
		   out);
}

void replay_inotify_init(struct lane *l, struct ready *a, struct outcome *out)
{
	put_object(l, a, inotify_init1(IN_NONBLOCK | IN_CLOEXEC), out);
}

void replay_inotify_init1(struct lane *l, struct ready *a, struct outcome *out)
{
	put_object(l, a, inotify_init1((int)a->regs[0] | IN_NONBLOCK | IN_CLOEXEC), out);
}

/* Watches have numbers of their own here. */
void replay_inotify_add_watch(struct lane *l, struct ready *a, struct outcome *out)
{
	int wd;

	(void)l;
	if ((int)a->regs[0] < 0) {
		call_simulate(a, out);
		return;
	}
	wd = inotify_add_watch((int)a->regs[0], (const char *)a->regs[1], (uint32_t)a->regs[2]);
	if (wd >= 0 && !a->expected.err)
		call_stands(a, out);
	else if (wd < 0 && (errno == ENOSPC || errno == ENOMEM))
		call_simulate(a, out);
	else
		call_set(out, wd);
}
