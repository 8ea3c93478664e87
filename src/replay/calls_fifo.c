/* SPDX-License-Identifier: MIT */
/*
 * Opening FIFOs. What the run opens never blocks: who had to wait for the other
 * side waits here, until that has opened the FIFO too. Of a plan that has no other
 * side the FIFO is broken, as a pipe is (pipes.h): its calls stand.
 */
#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/banned.h"
#include "base/clock.h"
#include "replay/calls.h"
#include "replay/pipe_wait.h"

static unsigned int ends_of(uint64_t flags)
{
	switch (flags & O_ACCMODE) {
	case O_RDONLY:
		return PIPE_READS;
	case O_WRONLY:
		return PIPE_WRITES;
	default:
		return PIPE_READS | PIPE_WRITES;
	}
}

/* Whom the kernel would wait for; 0: nobody. */
static unsigned int partner_of(const struct ready *a, uint64_t flags)
{
	/* What was open at the beginning of a part is opened in whatever order. */
	if (flags & O_NONBLOCK || a->flags & READY_SETUP)
		return 0;
	switch (ends_of(flags)) {
	case PIPE_READS:
		return PIPE_WRITES;
	case PIPE_WRITES:
		return PIPE_READS;
	default:
		return 0;
	}
}

/*
 * Who comes and goes meanwhile was there: hence the count of all who ever came. The
 * recorded call may also have met one that has gone here already, which is as well:
 * then it takes no longer than it took.
 */
static bool meet(struct lane *l, const struct ready *a, struct pipe *p, uint64_t flags)
{
	const struct ticker *t = &l->run->ticker;
	unsigned int partner = partner_of(a, flags);
	uint32_t nr_came = partner ? atomic_load(pipe_nr_came(p, partner)) : 0;
	bool there = !partner || atomic_load(pipe_nr_ends(p, partner));
	uint64_t until_ns = clock_add_ns(ticker_now_ns(t), a->original_ns);
	struct pipe_wait w = { .l = l, .a = a, .in = p };

	pipes_come(p, ends_of(flags));
	while (!there && atomic_load(pipe_nr_came(p, partner)) == nr_came) {
		if (nr_came && ticker_now_ns(t) >= until_ns)
			break;
		if (!pipe_wait_ready(&w, -1, 0))
			return atomic_load(pipe_nr_came(p, partner)) != nr_came;
	}
	return true;
}

/* The first writer would be refused: there is a reader until it has met one. */
static int open_spare(int dir, const char *path, uint64_t flags)
{
	if (ends_of(flags) != PIPE_WRITES)
		return -1;
	return openat(dir, path, O_RDONLY | O_NONBLOCK | O_CLOEXEC | (int)(flags & O_NOFOLLOW));
}

static void open_end(struct lane *l, struct ready *a, const struct call_opening *o, struct pipe *p,
		     struct outcome *out)
{
	int spare = open_spare(o->dir, o->path, o->flags);
	int fd = openat(o->dir, o->path, (int)(o->flags | O_NONBLOCK), (mode_t)o->mode);
	bool met = fd >= 0 && !pipe_is_broken(p) && meet(l, a, p, o->flags);

	call_set_fd(l, a, 0, fd, out);
	if (fd >= 0 && a->slots[0] != READY_NO_SLOT)
		pipes_hold(&l->run->slots[a->slots[0]], p, ends_of(o->flags));
	if (met) {
		pipes_go(p, ends_of(o->flags));
	} else if (run_is_stopped(l->run)) {
		*out = (struct outcome){ .ret = -1, .err = EINTR };
	} else if (fd >= 0) { /* it can be closed, and that is all */
		pipes_break(l->run, p);
		call_simulate(a, out);
	}
	if (spare >= 0)
		(void)close(spare);
}

bool call_open_fifo(struct lane *l, struct ready *a, const struct call_opening *o,
		    struct outcome *out)
{
	struct pipe *p;
	struct stat st;

	if (fstatat(o->dir, o->path, &st, o->flags & O_NOFOLLOW ? AT_SYMLINK_NOFOLLOW : 0) < 0 ||
	    !S_ISFIFO(st.st_mode))
		return false;
	p = pipes_take_fifo(l->run, st.st_dev, st.st_ino);
	if (!p)
		return false;
	open_end(l, a, o, p, out);
	pipes_release_fifo(l->run, p);
	return true;
}
