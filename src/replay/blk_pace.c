/* SPDX-License-Identifier: MIT */
/*
 * A submitter: what is due goes to its port, together with what is due soon after
 * it, and completions come back. Nothing here prints or waits for anybody but the
 * clock, the port, its turn and, if it is behind, the loader.
 */
#include <errno.h>
#include <sched.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <time.h>
#include <unistd.h>

#include "base/banned.h"
#include "base/mem.h"
#include "replay/blk_inside.h"

#define NONE UINT64_MAX
/* So few in flight trouble no device. */
#define LIMIT_MIN 8
/* Where so many parts are in flight that one is more than a request, the limit is given up by parts. */
#define LIMIT_PARTS 8
#define LIMIT_WAIT_NS (200 * NS_PER_US)
#define LOADER_WAIT_NS (100 * NS_PER_US)
/* What another submitter did is looked for so often: a wake-up would not come sooner. */
#define OTHERS_WAIT_NS (50 * NS_PER_US)
#define TURN_SPIN_NS (10 * NS_PER_US)
#define OTHERS_START_NS (5 * NS_PER_MS)
#define DONE_MAX 256
#define CALL_MAX_NS (50 * NS_PER_US)

static bool is_think(const struct blk_submitter *sub)
{
	return sub->run->o->mode == BLK_MODE_THINK;
}

static bool is_alone(const struct blk_submitter *sub)
{
	return sub->run->nr_submitters == 1;
}

static uint64_t now(const struct blk_submitter *sub)
{
	return ticker_now_ns(&sub->run->ticker);
}

static bool look(struct blk_submitter *sub)
{
	return sub->port.engine->look(&sub->port);
}

/* Completions. */

/*
 * The program's think time began when the device was done, and ended when the device had the next
 * request. So what it takes until a completion is seen, and from the start of a request to the
 * device, is part of it: the wake-up, if somebody slept, and about half of the call.
 */
static uint32_t way_ns(const struct blk_submitter *sub)
{
	return (uint32_t)((sub->woken ? sub->run->ticker.wakeup_ns : 0) + sub->call_ns / 2);
}

/* In mode think under the graph's lock. */
static void finish(struct blk_submitter *sub, struct blk_slot *s, uint64_t now_ns, int32_t result)
{
	s->result = result;
	s->seen_late_ns = s->fate == BLK_MAKE ? way_ns(sub) : 0;
	s->end_ns = now_ns > s->start_ns ? now_ns : s->start_ns;
	if (is_think(sub))
		blk_graph_complete(sub->run, s);
	/* Pairs with the loader's, which takes the slot back. */
	atomic_store_explicit(&s->done, true, memory_order_release);
}

static void count_done(struct blk_submitter *sub, uint64_t nr)
{
	/* Pairs with is_over(): what became ready before is seen. */
	(void)atomic_fetch_add_explicit(&sub->run->shared.nr_done, nr, memory_order_release);
}

static void take_completions(struct blk_submitter *sub)
{
	struct blk_done done[DONE_MAX];
	unsigned int nr;

	while ((nr = sub->port.engine->take(&sub->port, done, DONE_MAX)) > 0) {
		uint64_t now_ns = now(sub);

		if (is_think(sub))
			blk_graph_lock(sub->run);
		for (unsigned int i = 0; i < nr; i++)
			finish(sub, blk_slot(&sub->run->window, done[i].index), now_ns,
			       done[i].result);
		if (is_think(sub))
			blk_graph_unlock(sub->run);
		count_done(sub, nr);
		sub->in_flight -= nr;
		(void)atomic_fetch_sub_explicit(&sub->run->shared.in_flight, nr,
						memory_order_relaxed);
	}
	sub->woken = false;
}

/* Starting. */

static void note_order(struct blk_submitter *sub, uint64_t index)
{
	_Atomic uint64_t *latest = &sub->run->shared.latest;
	uint64_t seen = atomic_load_explicit(latest, memory_order_relaxed);

	while (index + 1 > seen) {
		if (atomic_compare_exchange_weak_explicit(
			    latest, &seen, index + 1, memory_order_relaxed, memory_order_relaxed))
			return;
	}
	sub->counts.nr_reordered++;
}

static void start(struct blk_submitter *sub, uint64_t index, uint64_t now_ns)
{
	struct blk_slot *s = blk_slot(&sub->run->window, index);
	uint64_t in_flight;

	s->start_ns = now_ns;
	note_order(sub, index);
	if (s->fate != BLK_MAKE) {
		if (is_think(sub))
			blk_graph_lock(sub->run);
		finish(sub, s, now_ns, 0);
		if (is_think(sub))
			blk_graph_unlock(sub->run);
		count_done(sub, 1);
		return;
	}
	sub->in_flight++;
	in_flight =
		1 + atomic_fetch_add_explicit(&sub->run->shared.in_flight, 1, memory_order_relaxed);
	if (in_flight > sub->counts.in_flight_max)
		sub->counts.in_flight_max = in_flight;
	sub->port.engine->put(&sub->port, s, index);
}

/* What is next. */

static bool next_ready(struct blk_submitter *sub, struct blk_ready *ret)
{
	bool any;

	blk_graph_lock(sub->run);
	any = sub->heap.len > 0;
	if (any)
		*ret = sub->heap.items[0];
	blk_graph_unlock(sub->run);
	return any;
}

static uint64_t next_index(struct blk_submitter *sub)
{
	struct blk_ready ready;

	if (is_think(sub))
		return next_ready(sub, &ready) ? ready.index : NONE;
	/* Pairs with the loader's. */
	return sub->nr_started < atomic_load_explicit(&sub->nr_mine, memory_order_acquire)
		       ? sub->mine[sub->nr_started & (BLK_SLOTS - 1)]
		       : NONE;
}

/*
 * False: it is not the next any more, for another submitter has made one ready since that is due
 * before it. What is ready stays until its own submitter takes it.
 */
static bool take_next(struct blk_submitter *sub, uint64_t index)
{
	bool is_next;

	if (!is_think(sub)) {
		sub->nr_started++;
		return true;
	}
	blk_graph_lock(sub->run);
	is_next = sub->heap.items[0].index == index;
	if (is_next)
		blk_graph_pop(sub);
	blk_graph_unlock(sub->run);
	return is_next;
}

static uint64_t due_of(const struct blk_submitter *sub, struct blk_slot *s, uint64_t now_ns)
{
	switch (sub->run->o->mode) {
	case BLK_MODE_TIMED:
		return s->ready_ns = sub->run->start_ns + s->due_ns;
	case BLK_MODE_THINK:
		return s->ready_ns;
	default:
		return s->ready_ns = now_ns;
	}
}

static uint64_t power_of_two(uint64_t v)
{
	return v > 1 ? (uint64_t)1 << (64 - __builtin_clzll(v - 1)) : 1;
}

/* How many may be in flight when this one is started, without it. */
static uint64_t limit_of(const struct blk_run *run, const struct blk_slot *s)
{
	uint64_t limit = run->depth, traced = s->traced_in_flight;

	if (!s->known_end)
		return limit - 1;
	/*
	 * Rounded up: what was late may catch up a little, and not all at once. By
	 * the peak of what came before, for a moment in which little was in flight is
	 * no reason to wait.
	 */
	if (run->o->mode == BLK_MODE_TIMED && !run->o->depth)
		traced = power_of_two(s->traced_peak > LIMIT_MIN ? s->traced_peak : LIMIT_MIN);
	else if (run->o->mode != BLK_MODE_LOAD)
		return limit - 1;
	return (traced < limit ? traced : limit) - 1;
}

enum why { WHY_DUE, WHY_TIME, WHY_LIMIT, WHY_TURN, WHY_LOADER, WHY_FLIGHT, WHY_ENDED };

/* Why this one cannot be started now; WHY_DUE: it can. */
static enum why hindrance(struct blk_submitter *sub, const struct blk_slot *s, uint64_t index,
			  uint64_t turn)
{
	struct blk_run *run = sub->run;
	uint64_t limit;

	if (!is_alone(sub) && !is_think(sub) && index != turn)
		return WHY_TURN;
	if (s->fate != BLK_MAKE)
		return WHY_DUE;
	limit = limit_of(run, s);
	if (atomic_load_explicit(&run->shared.in_flight, memory_order_relaxed) > limit)
		return WHY_LIMIT;
	if (limit + 1 > sub->counts.limit_max)
		sub->counts.limit_max = limit + 1;
	return WHY_DUE;
}

static bool is_stopping(const struct blk_submitter *sub)
{
	return atomic_load_explicit(&sub->run->shared.stopping, memory_order_relaxed);
}

/*
 * Starts what is due, at most a bundle; *turn goes on with it. Tells what the next has
 * to wait for, and for a time until when. A bundle is for one device: of several the kernel would
 * issue all to the one before any to the other (blk_mq_flush_plug_list()).
 */
static enum why start_due(struct blk_submitter *sub, uint64_t *turn, uint64_t *ret_due_ns)
{
	const struct blk_run_options *o = sub->run->o;
	uint64_t now_ns = now(sub), horizon_ns = now_ns;
	uint32_t nr = 0, target = 0;

	while (!is_stopping(sub) && nr < o->bundle_max) {
		uint64_t index = next_index(sub);
		struct blk_slot *s;
		enum why why;

		if (index == NONE)
			break;
		s = blk_slot(&sub->run->window, index);
		*ret_due_ns = due_of(sub, s, now_ns);
		if (*ret_due_ns > horizon_ns)
			return nr ? WHY_DUE : WHY_TIME;
		if (nr && s->target != target)
			return WHY_DUE;
		why = hindrance(sub, s, index, *turn);
		if (why != WHY_DUE)
			return nr ? WHY_DUE : why;
		if (!take_next(sub, index))
			continue;
		target = s->target;
		if (!nr && *ret_due_ns + o->bundle_ns > horizon_ns)
			horizon_ns = *ret_due_ns + o->bundle_ns;
		start(sub, index, now_ns);
		*turn = index + 1;
		nr++;
	}
	if (nr)
		return WHY_DUE;
	if (sub->in_flight)
		return is_stopping(sub) || is_think(sub) ? WHY_FLIGHT : WHY_LOADER;
	return is_stopping(sub) ? WHY_ENDED : WHY_LOADER;
}

/* A call that was interrupted, or had to wait, says nothing of the others. */
static void note_call(struct blk_submitter *sub, uint64_t ns)
{
	if (ns < CALL_MAX_NS)
		sub->call_ns = sub->call_ns ? (7 * sub->call_ns + ns) / 8 : ns;
}

static int submit(struct blk_submitter *sub, struct err *err)
{
	uint64_t before_ns = now(sub), nr_before = sub->port.nr_submits;
	int r;

	while ((r = sub->port.engine->submit(&sub->port, err)) > 0) {
		(void)look(sub);
		take_completions(sub);
	}
	if (sub->port.nr_submits == nr_before + 1)
		note_call(sub, now(sub) - before_ns);
	return r;
}

/*
 * Whoever has started a bundle passes the turn on. Requests to several devices must
 * not overtake each other, so the next submitter waits until these have been handed
 * over; with a single device it begins at once, for otherwise there would be no gain
 * in several submitters.
 */
static enum why start_and_submit(struct blk_submitter *sub, uint64_t *ret_due_ns, int *ret_status,
				 struct err *err)
{
	_Atomic uint64_t *shared_turn = &sub->run->shared.turn;
	/* Pairs with the stores below: what came before was started. */
	uint64_t before = atomic_load_explicit(shared_turn, memory_order_acquire), turn = before;
	bool early = sub->run->nr_targets == 1;
	enum why why = start_due(sub, &turn, ret_due_ns);

	if (turn != before && early && !is_think(sub))
		atomic_store_explicit(shared_turn, turn, memory_order_release);
	*ret_status = submit(sub, err);
	if (turn != before && !early && !is_think(sub))
		atomic_store_explicit(shared_turn, turn, memory_order_release);
	return why;
}

/* Waiting. */

static void sleep_until(struct blk_submitter *sub, uint64_t ns, uint64_t nr)
{
	sub->port.engine->wait(&sub->port, ns, (unsigned int)nr, sub->in_flight > 0);
	sub->woken = true;
}

static void sleep_until_event(struct blk_submitter *sub, uint64_t ns)
{
	sleep_until(sub, ns, 1);
}

/* Others can make something ready, or give room, and nobody wakes it. */
static void sleep_for_others(struct blk_submitter *sub, uint64_t ns)
{
	sleep_until_event(sub, is_alone(sub) || ns < OTHERS_WAIT_NS ? ns : OTHERS_WAIT_NS);
}

static void spin_until(struct blk_submitter *sub, uint64_t deadline_ns)
{
	while (now(sub) < deadline_ns && !look(sub))
		ticker_relax();
}

/* Not for long: who has the turn may be waiting for this very processor. */
static void wait_for_turn(struct blk_submitter *sub, uint64_t now_ns)
{
	const _Atomic uint64_t *turn = &sub->run->shared.turn;
	uint64_t index = next_index(sub);

	while (now(sub) < now_ns + TURN_SPIN_NS) {
		if (atomic_load_explicit(turn, memory_order_relaxed) == index || look(sub))
			return;
		ticker_relax();
	}
	sleep_for_others(sub, OTHERS_WAIT_NS);
}

/*
 * At the limit the device has work enough, and who looks after every completion takes away the
 * processor by which others come, and submits one request a call. So a part of what is in
 * flight is waited for, but not for long: a slow device gets the next as soon as one is done. Mode
 * load has its exact number in flight.
 */
static uint64_t nr_to_wait_for(const struct blk_submitter *sub)
{
	uint64_t nr = sub->run->o->mode == BLK_MODE_LOAD ? 0 : sub->in_flight / LIMIT_PARTS;

	return nr < DONE_MAX ? nr : DONE_MAX;
}

static void wait_at_limit(struct blk_submitter *sub, uint64_t now_ns)
{
	enum blk_mode mode = sub->run->o->mode;
	uint64_t nr = nr_to_wait_for(sub);

	if (nr > 1) {
		sleep_until(sub, LIMIT_WAIT_NS, nr);
		if (look(sub))
			return;
	} else if (mode == BLK_MODE_THINK || mode == BLK_MODE_TIMED) {
		/* What comes soon is met awake: a wake-up takes longer than many a request. */
		spin_until(sub, now_ns + sub->run->ticker.spin_ns);
	}
	if (!look(sub))
		sleep_for_others(sub, BLK_WAIT_MAX_NS);
}

static void wait_for(struct blk_submitter *sub, enum why why, uint64_t due_ns)
{
	enum blk_mode mode = sub->run->o->mode;
	uint64_t now_ns = now(sub), spin_ns = sub->run->ticker.spin_ns;

	switch (why) {
	case WHY_TIME:
		if (due_ns <= now_ns + spin_ns)
			spin_until(sub, due_ns);
		else if (mode == BLK_MODE_THINK)
			sleep_for_others(sub, due_ns - now_ns - spin_ns);
		else
			sleep_until_event(sub, due_ns - now_ns - spin_ns);
		return;
	case WHY_TURN:
		wait_for_turn(sub, now_ns);
		return;
	case WHY_LIMIT:
		wait_at_limit(sub, now_ns);
		break;
	case WHY_FLIGHT:
		/* As above. */
		if (mode == BLK_MODE_THINK || mode == BLK_MODE_TIMED)
			spin_until(sub, now_ns + spin_ns);
		if (!look(sub))
			sleep_for_others(sub, BLK_WAIT_MAX_NS);
		break;
	default:
		sleep_until_event(sub, LOADER_WAIT_NS);
		break;
	}
	/* Of several, one may just have nothing to do. */
	if (why == WHY_LIMIT)
		sub->counts.limit_wait_ns += now(sub) - now_ns;
	else if (why == WHY_LOADER && is_alone(sub))
		sub->counts.load_wait_ns += now(sub) - now_ns;
}

/* Whether there is nothing left for it to do. */
static bool is_over(const struct blk_submitter *sub)
{
	const struct blk_run *run = sub->run;

	/* Pairs with the loader's: what it has handed over is final when it has ended. */
	if (sub->in_flight || !atomic_load_explicit(&run->window.ended, memory_order_acquire))
		return false;
	/* The first stays until all are done, for it listens to the world. */
	if (!is_think(sub) && sub->number)
		return sub->nr_started == atomic_load_explicit(&sub->nr_mine, memory_order_acquire);
	/* Whatever is still under way may make something of its own ready. */
	return atomic_load_explicit(&run->shared.nr_done, memory_order_acquire) ==
	       atomic_load_explicit(&run->window.loaded, memory_order_acquire);
}

/* The first of them listens to the world. */
static void look_whether_to_stop(struct blk_submitter *sub)
{
	struct blk_run *run = sub->run;

	if (sub->number)
		return;
	/* Pairs with the loader's; the caller has its words. */
	if (atomic_load_explicit(&run->window.status, memory_order_acquire) < 0)
		atomic_store_explicit(&run->shared.stopping, true, memory_order_relaxed);
	if (run->watcher->want_stop(run->watcher->arg)) {
		run->res->interrupted = true;
		atomic_store_explicit(&run->shared.stopping, true, memory_order_relaxed);
	}
}

static int loop(struct blk_submitter *sub, struct err *err)
{
	uint64_t due_ns = 0;
	enum why why;
	int r;

	for (;;) {
		(void)look(sub);
		take_completions(sub);
		if (is_think(sub)) {
			blk_graph_lock(sub->run);
			blk_graph_admit(sub->run);
			blk_graph_unlock(sub->run);
		}
		why = start_and_submit(sub, &due_ns, &r, err);
		if (r < 0)
			return r;
		if (why == WHY_DUE)
			continue;
		look_whether_to_stop(sub);
		if (why == WHY_ENDED || is_over(sub))
			return 0;
		wait_for(sub, why, due_ns);
	}
}

/* The whole. */

static uint64_t thread_cpu_ns(void)
{
	struct timespec ts;

	(void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &ts);
	return (uint64_t)ts.tv_sec * NS_PER_S + (uint64_t)ts.tv_nsec;
}

static void nap(void)
{
	struct timespec ts = { .tv_nsec = (long)NS_PER_MS };

	(void)nanosleep(&ts, NULL);
}

static bool is_loaded(const struct blk_run *run)
{
	return atomic_load_explicit(&run->window.ended, memory_order_acquire) ||
	       atomic_load_explicit(&run->window.status, memory_order_acquire) ||
	       atomic_load_explicit(&run->window.full, memory_order_acquire);
}

/* The first waits for all and says when it begins, late enough for the others to hear of it. */
static void wait_for_start(struct blk_submitter *sub)
{
	struct blk_run *run = sub->run;

	if (sub->number) {
		/* Pairs with the store below. */
		while (!atomic_load_explicit(&run->shared.go, memory_order_acquire))
			nap();
		return;
	}
	while (atomic_load(&run->shared.nr_open) < run->nr_submitters || !is_loaded(run))
		nap();
	run->start_ns = now(sub) + (is_alone(sub) ? 0 : OTHERS_START_NS);
	atomic_store_explicit(&run->shared.go, true, memory_order_release);
}

/* Of the lowest urgency: threads of the kernel that have some go before. */
static int hurry(struct err *err)
{
	struct sched_param param = { .sched_priority = sched_get_priority_min(SCHED_FIFO) };
	int r = pthread_setschedparam(pthread_self(), SCHED_FIFO, &param);

	return r ? err_set(err, -r, "--realtime: cannot go before other threads") : 0;
}

int blk_pace(struct blk_submitter *sub, struct err *err)
{
	struct sched_param usual = { 0 };
	struct blk_run *run = sub->run;
	uint64_t cpu_ns;
	int r = sub->port.engine->open(&sub->port, err);

	if (!r && run->o->realtime)
		r = hurry(err);
	if (r < 0)
		atomic_store(&run->shared.stopping, true);
	atomic_fetch_add(&run->shared.nr_open, 1);
	(void)prctl(PR_SET_TIMERSLACK, 1UL); /* where it is not heard, lateness will show it */
	wait_for_start(sub);
	cpu_ns = thread_cpu_ns();
	if (!r)
		r = loop(sub, err);
	if (r < 0)
		atomic_store(&run->shared.stopping, true);
	sub->counts.cpu_ns = thread_cpu_ns() - cpu_ns;
	/* The first is the caller's thread, which has other work to do. */
	if (run->o->realtime)
		(void)pthread_setschedparam(pthread_self(), SCHED_OTHER, &usual);
	sub->port.engine->close(&sub->port);
	return r;
}
