/* SPDX-License-Identifier: MIT */
#include "replay/pipe_wait.h"

#include <poll.h>

#include "base/banned.h"

/* How often who waits looks whether the others get on. */
#define LOOK_MS 20
/* No lane has got on for so long: half of it after each pipe that broke, so that many do not take long. */
#define STILL_NS (5 * NS_PER_S)
#define STILL_HALVES_MAX 12
/* So often may a pipe be ready for something and then not be. */
#define VAIN_MAX 64

static bool is_at_work(const struct run_lane_state *s)
{
	switch (atomic_load_explicit(&s->phase, memory_order_relaxed)) {
	case RUN_LANE_EDGE:
	case RUN_LANE_PIPE:
	case RUN_LANE_IDLE:
	case RUN_LANE_ENDED:
		return false;
	default:
		return true;
	}
}

static uint64_t still_ns(const struct run *run)
{
	uint32_t nr_broken = atomic_load_explicit(&run->pipes.nr_broken, memory_order_relaxed);
	uint64_t ns = STILL_NS;

	if (run->o->stall_ns && run->o->stall_ns / 2 < ns)
		ns = run->o->stall_ns / 2;
	return ns >> (nr_broken < STILL_HALVES_MAX ? nr_broken : STILL_HALVES_MAX);
}

static bool is_still(struct pipe_wait *w)
{
	const struct run *run = w->l->run;
	uint64_t sum = 1, now = ticker_now_ns(&run->ticker);
	bool works = false;
	uint32_t i;

	for (i = 0; i < run->nr_lanes; i++) {
		const struct lane *other = &run->lanes[i];

		sum += atomic_load_explicit(&other->state->nr_done, memory_order_relaxed);
		works |= other != w->l && is_at_work(other->state);
	}
	if (works || sum != w->seen) {
		w->seen = sum;
		w->seen_ns = now;
		return false;
	}
	return now - w->seen_ns >= still_ns(run);
}

/* Nobody else is there who could move it. */
static bool is_alone(const struct pipe_wait *w)
{
	const struct run *run = w->l->run;

	return w->a->flags & READY_SETUP || run->nr_lanes - run->nr_prologues <= 1;
}

bool pipe_wait_ready(struct pipe_wait *w, int fd, short events)
{
	struct pollfd p = { .fd = fd, .events = events };
	struct run *run = w->l->run;
	/* What is said to be ready and is not is looked at now and then only. */
	bool pause = fd < 0 || w->nr_vain++ > VAIN_MAX, hope = !is_alone(w), ready = false;

	lane_set_phase(w->l, RUN_LANE_PIPE);
	sync_sleep_begin(&run->hub);
	while (hope && !ready) {
		ready = poll(&p, pause ? 0 : 1, pause ? 1 : LOOK_MS) > 0 || pause;
		hope = !run_is_stopped(run) && !pipe_is_broken(w->in) && !pipe_is_broken(w->out) &&
		       ((ready && !pause) || !is_still(w));
	}
	sync_sleep_end(&run->hub);
	lane_set_phase(w->l, RUN_LANE_CALL);
	return hope;
}
