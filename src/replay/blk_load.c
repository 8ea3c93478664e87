/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <linux/falloc.h>
#include <stdlib.h>
#include <string.h>

#include "base/banned.h"
#include "base/heap.h"
#include "base/mem.h"
#include "replay/blk_inside.h"

/* What was in flight "at this point" is the most of between one and two such stretches of requests. */
#define STRETCH 512
/* So many requests are loaded before somebody else has a turn. */
#define TURN 256

struct blk_lane {
	struct plan_lane *reader;
	const struct action *next;
	uint64_t nr_done; /* loaded */
	/* Indices of its requests that are still in the window, oldest first: a queue. */
	VEC(uint64_t) in_window;
	size_t from;
	uint64_t first_nr; /* of the action at `from` */
	uint64_t last_end_ns; /* in the trace, of the last one that was loaded */
};

int blk_slot_fallocate_mode(const struct blk_slot *s)
{
	return FALLOC_FL_KEEP_SIZE |
	       (s->op == BLK_WRITE_ZEROES ? FALLOC_FL_ZERO_RANGE : FALLOC_FL_PUNCH_HOLE);
}

/* Lanes by the number of their next request. */

static bool lane_is_before(const struct blk_loader *l, uint32_t a, uint32_t b)
{
	const struct action *x = l->lanes[a].next, *y = l->lanes[b].next;

	return x->seq != y->seq ? x->seq < y->seq : a < b;
}

static void sink_lane(struct blk_loader *l, uint32_t at)
{
	uint32_t lane = l->heap[at], child;

	while ((child = 2 * at + 1) < l->nr_heap) {
		if (child + 1 < l->nr_heap && lane_is_before(l, l->heap[child + 1], l->heap[child]))
			child++;
		if (!lane_is_before(l, l->heap[child], lane))
			break;
		l->heap[at] = l->heap[child];
		at = child;
	}
	l->heap[at] = lane;
}

/* As many as there are for each target; where targets are more, each has one, several the same. */
static void share_out(struct blk_run *run)
{
	struct blk_loader *l = &run->loader;
	uint32_t nr = run->nr_submitters, each = nr / run->nr_targets;

	l->shares = xcalloc(run->nr_targets, sizeof(*l->shares));
	for (uint32_t i = 0; i < run->nr_targets; i++)
		l->shares[i] = each ? (struct blk_share){ .first = i * each, .nr = each }
				    : (struct blk_share){ .first = i % nr, .nr = 1 };
	if (each)
		l->shares[run->nr_targets - 1].nr += nr % run->nr_targets;
}

int blk_loader_open(struct blk_run *run, struct err *err)
{
	struct blk_loader *l = &run->loader;
	uint32_t i;
	int r;

	share_out(run);
	blk_needs_init(&l->needs, run->nr_devices * BLK_OP_MAX);
	blk_needs_init(&l->follows, run->nr_devices * BLK_OP_MAX);
	l->plan = run->plan;
	l->nr_lanes = plan_totals(l->plan)->nr_lanes;
	l->lanes = xcalloc((size_t)l->nr_lanes + 1, sizeof(*l->lanes));
	l->heap = xcalloc((size_t)l->nr_lanes + 1, sizeof(*l->heap));
	for (i = 0; i < l->nr_lanes; i++) {
		r = plan_lane_open(l->plan, i, &l->lanes[i].reader, err);
		if (r < 0)
			return r;
		r = plan_lane_next(l->lanes[i].reader, &l->lanes[i].next, err);
		if (r < 0)
			return r;
		if (r > 0)
			l->heap[l->nr_heap++] = i;
	}
	for (i = l->nr_heap / 2; i-- > 0;)
		sink_lane(l, i);
	return 0;
}

void blk_loader_close(struct blk_run *run)
{
	struct blk_loader *l = &run->loader;

	for (uint32_t i = 0; l->lanes && i < l->nr_lanes; i++) {
		plan_lane_close(l->lanes[i].reader);
		VEC_RELEASE(&l->lanes[i].in_window);
	}
	free(l->lanes);
	free(l->heap);
	free(l->shares);
	VEC_RELEASE(&l->ends);
	blk_needs_release(&l->needs);
	blk_needs_release(&l->follows);
	blk_claims_release(&l->claims);
}

/* How many were in flight in the trace when a request was issued, with itself. */

static uint32_t count_in_flight(struct blk_loader *l, struct blk_slot *s)
{
	while (l->ends.len && l->ends.items[0] <= s->issue_ns)
		HEAP_POP(&l->ends, HEAP_LESS);
	HEAP_PUSH(&l->ends, s->issue_ns + s->duration_ns, HEAP_LESS);
	if (l->nr_loaded % STRETCH == 0) {
		l->former_peak = l->peak;
		l->peak = 0;
	}
	if (l->ends.len > l->peak)
		l->peak = (uint32_t)l->ends.len;
	s->traced_peak = l->peak > l->former_peak ? l->peak : l->former_peak;
	return (uint32_t)l->ends.len;
}

/* Where it goes. */

static bool changes(const struct blk_slot *s)
{
	return s->op != BLK_READ && s->op != BLK_FLUSH;
}

/* Shrinks a place of the trace to the size of the target. */
static uint64_t fit(uint64_t offset, uint64_t end, uint64_t size)
{
	return end > size ? (uint64_t)((unsigned __int128)offset * size / end) : offset;
}

/*
 * Whole sectors, and within the target; false: it lies beyond. What is wrapped or
 * fitted never does: where it is longer than all of the target, it is cut.
 */
static bool place(const struct blk_run *run, struct blk_slot *s, const struct blk_target *t)
{
	uint64_t align = t->align_bytes, size = t->size_bytes / align * align, end;
	uint64_t offset = s->offset_bytes, length = s->length_bytes;

	if (!length)
		return true;
	if (run->o->place == BLK_PLACE_FIT)
		offset = fit(offset, run->end_of[s->device_no], size);
	offset += run->o->offset_bytes;
	if (offset % align || length % align) {
		end = (offset + length + align - 1) / align * align;
		offset -= offset % align;
		length = end - offset;
		s->aligned = true;
	}
	if (run->o->place != BLK_PLACE_SAME && length > size) {
		length = size;
		s->cut = true;
	}
	if (run->o->place != BLK_PLACE_SAME && offset + length > size) {
		offset %= size;
		if (offset + length > size)
			offset = size - length;
	}
	s->offset_bytes = offset;
	s->length_bytes = length;
	return length <= size && offset <= size - length;
}

static enum blk_fate choose_fate(const struct blk_run *run, struct blk_slot *s)
{
	const struct blk_target *t = &run->targets[s->target];
	bool moves = blk_ops[s->op].moves != BLK_MOVES_NONE;

	if (s->op == BLK_OTHER || (s->op != BLK_FLUSH && !s->length_bytes))
		return BLK_NOT_MADE;
	/* A ring that is polled takes nothing but reads and writes. */
	if (run->o->poll && !moves)
		return BLK_NOT_MADE;
	if (moves && s->length_bytes > run->max_length) {
		s->length_bytes = run->max_length;
		s->cut = true;
	}
	if (s->op != BLK_FLUSH && !place(run, s, t))
		return BLK_BEYOND;
	return changes(s) && !t->writable ? BLK_UNWANTED : BLK_MAKE;
}

/* Recorded data. */

static int load_data(struct blk_run *run, struct blk_slot *s, const struct data *d, struct err *err)
{
	uint64_t i, nr, at = 0;
	void *p;

	if (!d || d->kept_bytes < s->length_bytes || !s->length_bytes || s->aligned)
		return 0;
	if (posix_memalign(&p, 4096, s->length_bytes))
		return err_set(err, -ENOMEM, "no memory for the data of a request");
	s->data = p;
	run->loader.data_bytes += s->length_bytes;
	if (!d->refs) {
		memcpy(p, d->bytes, s->length_bytes);
		return 0;
	}
	for (i = 0, nr = data_nr_pieces(d); i < nr && at < s->length_bytes; i++) {
		const uint8_t *bytes;
		size_t len;
		int r = trace_load_piece(plan_data_source(run->plan), d, i, &bytes, &len, err);

		if (r < 0)
			return r;
		if (!r) { /* only the hash was kept: filler stands in */
			run->loader.data_bytes -= s->length_bytes;
			free(s->data);
			s->data = NULL;
			return 0;
		}
		len = len < s->length_bytes - at ? len : s->length_bytes - at;
		memcpy(s->data + at, bytes, len);
		at += len;
	}
	return 0;
}

/* Parents. */

static void trim_lane(struct blk_lane *lane, uint64_t oldest)
{
	while (lane->from < lane->in_window.len && lane->in_window.items[lane->from] < oldest) {
		lane->from++;
		lane->first_nr++;
	}
	if (lane->from > 64 && lane->from * 2 > lane->in_window.len) {
		lane->in_window.len -= lane->from;
		memmove(lane->in_window.items, lane->in_window.items + lane->from,
			lane->in_window.len * sizeof(uint64_t));
		lane->from = 0;
	}
}

/* False: it has left the window long ago. */
static bool find_index(struct blk_lane *lane, uint64_t nr, uint64_t oldest, uint64_t *ret)
{
	trim_lane(lane, oldest);
	if (nr < lane->first_nr || nr - lane->first_nr >= lane->in_window.len - lane->from)
		return false;
	*ret = lane->in_window.items[lane->from + (nr - lane->first_nr)];
	return true;
}

static void add_parent(struct blk_run *run, struct blk_slot *s, uint64_t index, uint64_t parent,
		       uint64_t think_ns)
{
	struct blk_loader *l = &run->loader;

	run->window.edges[l->edges_used++ & (BLK_EDGES - 1)] =
		(struct blk_edge){ .parent = parent, .think_ns = think_ns, .child = index };
	s->nr_edges++;
}

static void add_parents(struct blk_run *run, struct blk_slot *s, uint64_t index, uint32_t lane_nr,
			const struct action *a)
{
	struct blk_loader *l = &run->loader;
	struct blk_lane *lane = &l->lanes[lane_nr];
	/* Until the child is done so many before it stay. */
	uint64_t oldest = index > BLK_KEPT ? index - BLK_KEPT : 0, parent;

	if (lane->nr_done) {
		if (find_index(lane, lane->nr_done - 1, oldest, &parent))
			add_parent(run, s, index, parent, a->compute_before_ns);
		else
			l->nr_parents_lost++;
	}
	for (uint32_t i = 0; i < a->nr_edges; i++) {
		const struct action_edge *e = &a->edges[i];

		/* A plan that was checked has no edge to what is still to come. */
		if (e->nr >= l->lanes[e->lane].nr_done)
			continue;
		if (find_index(&l->lanes[e->lane], e->nr, oldest, &parent))
			add_parent(run, s, index, parent, e->think_ns);
		else
			l->nr_parents_lost++;
	}
}

/* Since the last of its parents was complete. The one before it in its lane may be none, but is no later then. */
static uint64_t last_think_ns(const struct blk_lane *lane, const struct blk_slot *s,
			      const struct action *a)
{
	uint64_t think_ns = BLK_NO_THINK;

	if (lane->nr_done && lane->last_end_ns <= s->issue_ns)
		think_ns = s->issue_ns - lane->last_end_ns;
	for (uint32_t i = 0; i < a->nr_edges; i++) {
		if (a->edges[i].think_ns < think_ns)
			think_ns = a->edges[i].think_ns;
	}
	return think_ns;
}

/* Up to end_ns; returns how many edges these are. */
static uint32_t add_up_to(struct blk_run *run, struct blk_needs *needs, uint64_t end_ns)
{
	struct blk_loader *l = &run->loader;

	blk_needs_up_to(needs, end_ns, ACTION_EDGES_MAX);
	for (size_t i = 0; i < needs->list.len; i++)
		run->window.edges[l->edges_used++ & (BLK_EDGES - 1)] =
			(struct blk_edge){ .need = needs->list.items[i] };
	return (uint32_t)needs->list.len;
}

static void add_needs(struct blk_run *run, struct blk_slot *s)
{
	struct blk_loader *l = &run->loader;
	uint64_t end_ns = clock_add_ns(s->issue_ns, s->duration_ns),
		 last_ns = s->issue_ns - s->think_ns;

	s->think_ns = blk_claims_issue(&l->claims, s->issue_ns, s->think_ns);
	if (s->think_ns != BLK_NO_THINK) {
		s->nr_edges = add_up_to(run, &l->needs, last_ns);
		s->nr_follows = add_up_to(run, &l->follows, s->issue_ns - s->think_ns);
	}
	blk_claims_add(&l->claims, end_ns);
	blk_needs_add(&l->needs, blk_slot_kind(s), end_ns);
	blk_needs_add(&l->follows, blk_slot_kind(s), end_ns);
}

/* What it waits for. */
static void add_edges(struct blk_run *run, struct blk_slot *s, uint64_t index, uint32_t lane_nr,
		      const struct action *a)
{
	struct blk_lane *lane = &run->loader.lanes[lane_nr];

	s->first_edge = run->loader.edges_used;
	s->nr_edges = 0;
	if (run->o->mode != BLK_MODE_THINK)
		return;
	if (run->o->wait == BLK_WAIT_PARENTS) {
		add_parents(run, s, index, lane_nr, a);
		VEC_PUSH(&lane->in_window, index);
		return;
	}
	s->think_ns = last_think_ns(lane, s, a);
	add_needs(run, s);
	lane->last_end_ns = clock_add_ns(s->issue_ns, s->duration_ns);
}

/* Who issues it. */

/* What is issued within the time of a bundle stays together, with one submitter. */
static uint32_t choose_submitter(const struct blk_run *run, const struct blk_slot *s)
{
	struct blk_share *share = &run->loader.shares[s->target];
	bool timed = run->o->mode == BLK_MODE_TIMED || run->o->mode == BLK_MODE_THINK;
	bool apart = timed && s->issue_ns > share->last_issue_ns + run->o->bundle_ns;

	share->last_issue_ns = s->issue_ns;
	if (apart || share->nr_in_bundle >= run->o->bundle_max) {
		share->at = (share->at + 1) % share->nr;
		share->nr_in_bundle = 0;
	}
	share->nr_in_bundle++;
	return share->first + share->at;
}

static void hand_over(struct blk_run *run, const struct blk_slot *s, uint64_t index)
{
	struct blk_submitter *sub = &run->submitters[s->submitter];
	uint64_t nr = atomic_load_explicit(&sub->nr_mine, memory_order_relaxed);

	sub->mine[nr & (BLK_SLOTS - 1)] = index;
	/* Pairs with the submitter's. */
	atomic_store_explicit(&sub->nr_mine, nr + 1, memory_order_release);
}

/*
 * Mode timed: when it is due. While something was in flight the time was the
 * storage's, else the server's; both have factors of their own.
 */
static uint64_t scale_time(struct blk_run *run, const struct blk_slot *s)
{
	const struct blk_run_options *o = run->o;
	struct blk_loader *l = &run->loader;
	uint64_t to = s->issue_ns, busy = l->busy_until_ns, end_ns, expected;

	if (to > l->scaled_to_ns) {
		uint64_t busy_to = busy < l->scaled_to_ns ? l->scaled_to_ns : busy < to ? busy : to;

		l->scaled_ns += o->scale * (o->scale_storage * (double)(busy_to - l->scaled_to_ns) +
					    o->scale_server * (double)(to - busy_to));
		l->scaled_to_ns = to;
	}
	end_ns = clock_add_ns(to, s->duration_ns);
	if (end_ns > busy)
		l->busy_until_ns = end_ns;
	expected = blk_ns(l->scaled_ns + o->scale * o->scale_storage * (double)s->duration_ns);
	if (expected > l->expected_ns)
		l->expected_ns = expected;
	return blk_ns(l->scaled_ns);
}

/* One request. */

static int fill_slot(struct blk_run *run, struct blk_slot *s, const struct action *a,
		     struct err *err)
{
	struct blk_request rq;

	if (!blk_request_get(a->row, a->args, &rq))
		return err_set(err, -EBADMSG, "an action that is no block request");
	if (rq.device_no >= run->nr_devices)
		return err_set(err, -EBADMSG, "a request to device %u of %u", rq.device_no,
			       run->nr_devices);
	*s = (struct blk_slot){ .seq = a->seq,
				.origin = a->origin,
				.issue_ns = a->enter_ns > run->first_ns
						    ? a->enter_ns - run->first_ns
						    : 0,
				.duration_ns = a->exit_ns - a->enter_ns,
				.offset_bytes = rq.offset_bytes,
				.length_bytes = rq.length_bytes,
				.target = run->target_of[rq.device_no],
				.flags = (uint32_t)rq.flags,
				.device_no = rq.device_no,
				.op = (uint8_t)rq.op,
				.known_end = !(a->flags & ACTION_ANY_OUTCOME),
				.expected_err = a->outcome.err };
	s->fate = (uint8_t)choose_fate(run, s);
	s->traced_in_flight = count_in_flight(&run->loader, s);
	s->submitter = choose_submitter(run, s);
	s->due_ns = scale_time(run, s);
	if (s->fate == BLK_MAKE && blk_ops[s->op].moves == BLK_MOVES_TO)
		return load_data(run, s, rq.data, err);
	return 0;
}

static int load_one(struct blk_run *run, struct err *err)
{
	struct blk_loader *l = &run->loader;
	uint32_t lane_nr = l->heap[0];
	struct blk_lane *lane = &l->lanes[lane_nr];
	struct blk_slot *s = blk_slot(&run->window, l->nr_loaded);
	int r = fill_slot(run, s, lane->next, err);

	if (r < 0)
		return r;
	add_edges(run, s, l->nr_loaded, lane_nr, lane->next);
	hand_over(run, s, l->nr_loaded);
	lane->nr_done++;
	l->nr_loaded++;
	r = plan_lane_next(lane->reader, &lane->next, err);
	if (r < 0)
		return r;
	if (!r)
		l->heap[0] = l->heap[--l->nr_heap];
	if (l->nr_heap)
		sink_lane(l, 0);
	/* Pairs with the submitters': the slot is filled in before it is seen. */
	atomic_store_explicit(&run->window.loaded, l->nr_loaded, memory_order_release);
	return 0;
}

/* What lies before the first that is not done is over. */
void blk_loader_move_tail(struct blk_run *run)
{
	struct blk_window *w = &run->window;

	while (w->tail < run->loader.nr_loaded) {
		const struct blk_slot *s = blk_slot(w, w->tail);

		/* Pairs with the submitter's: all that it has to say is there. */
		if (!atomic_load_explicit(&s->done, memory_order_acquire))
			return;
		w->edges_free = s->first_edge + s->nr_edges + s->nr_follows;
		w->tail++;
	}
}

static bool has_room(const struct blk_run *run)
{
	const struct blk_loader *l = &run->loader;
	const struct blk_window *w = &run->window;

	/* What the keeper has not taken yet must not be lost, what is kept stays. */
	return l->nr_loaded - w->tail < BLK_SLOTS - BLK_KEPT &&
	       l->nr_loaded - run->nr_kept < BLK_SLOTS &&
	       l->edges_used - w->edges_free < BLK_EDGES - 2 * (uint64_t)ACTION_EDGES_MAX - 1 &&
	       l->data_bytes < BLK_DATA_MAX;
}

int blk_loader_work(struct blk_run *run, bool *ret_any, struct err *err)
{
	struct blk_loader *l = &run->loader;
	unsigned int i;
	int r;

	for (i = 0; i < TURN && l->nr_heap && has_room(run); i++) {
		r = load_one(run, err);
		if (r < 0)
			return r;
	}
	*ret_any = i > 0;
	if (!i && l->nr_heap)
		atomic_store_explicit(&run->window.full, true, memory_order_release);
	return l->nr_heap > 0;
}
