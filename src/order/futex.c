/* SPDX-License-Identifier: MIT */
#include "order/futex.h"

#include <errno.h>
#include <stdlib.h>

#define WAKES_KEPT 8

struct member {
	uint32_t tid;
	struct users before;
};

/* Those whom one wake of all has brought together so far. */
struct meeting {
	VEC(struct member) members;
};

struct wake {
	struct users before; /* what the waker had done */
	uint64_t enter_ns, exit_ns;
	uint32_t tid, bitset;
	uint32_t left, left_to_move; /* whom it woke or moved and who is not known yet */
	bool woke; /* anybody */
	bool all;
	bool by_kernel; /* at the end of a thread */
	bool in_turn; /* its event has come; else it was only shown ahead */
	struct futex_key moved_to; /* kind FUTEX_KEY_NONE: nowhere */
	struct meeting *meeting; /* of a wake of all; NULL: nobody is known yet */
};

struct word {
	struct futex_key key;
	struct word *newer, *older;
	struct wake *wakes; /* a ring of WAKES_KEPT; NULL: none yet */
	uint32_t nr_wakes, next_wake;
	struct thread *waiting; /* by waiting.enter_ns */
};

/* words */

void futexes_init(struct futexes *f, struct threads *threads)
{
	*f = (struct futexes){ .threads = threads };
}

static void free_meeting(struct meeting *m)
{
	size_t i;

	if (!m)
		return;
	for (i = 0; i < m->members.len; i++)
		users_release(&m->members.items[i].before);
	VEC_RELEASE(&m->members);
	free(m);
}

static void wake_release(struct wake *k)
{
	users_release(&k->before);
	free_meeting(k->meeting);
	k->meeting = NULL;
}

static void free_word(struct word *w)
{
	uint32_t i;

	for (i = 0; i < w->nr_wakes; i++)
		wake_release(&w->wakes[i]);
	free(w->wakes);
	free(w);
}

void futexes_release(struct futexes *f)
{
	MAP_EACH (&f->words, e)
		free_word(e->value);
	map_release(&f->words);
}

static void unlist_word(struct futexes *f, struct word *w)
{
	*(w->newer ? &w->newer->older : &f->newest) = w->older;
	*(w->older ? &w->older->newer : &f->oldest) = w->newer;
}

static void list_word(struct futexes *f, struct word *w)
{
	w->newer = NULL;
	w->older = f->newest;
	*(f->newest ? &f->newest->newer : &f->oldest) = w;
	f->newest = w;
}

static struct word *find_word(const struct futexes *f, const struct futex_key *key)
{
	return key->kind == FUTEX_KEY_NONE ? NULL : map_get(&f->words, key, sizeof(*key));
}

static struct word *get_word(struct futexes *f, const struct futex_key *key)
{
	struct word *w = find_word(f, key);

	if (w) {
		unlist_word(f, w);
		list_word(f, w);
		return w;
	}
	if (f->nr_words >= FUTEX_WORDS_MAX && !f->oldest->waiting) {
		w = f->oldest;
		unlist_word(f, w);
		map_remove(&f->words, &w->key, sizeof(w->key));
		free_word(w);
		f->nr_words--;
	}
	w = xcalloc(1, sizeof(*w));
	w->key = *key;
	*map_slot(&f->words, key, sizeof(*key)) = w;
	list_word(f, w);
	f->nr_words++;
	return w;
}

/* waiting threads */

static void stop_waiting(struct waiting *w)
{
	if (w->word) {
		*(w->prev ? &w->prev->waiting.next : &w->word->waiting) = w->next;
		if (w->next)
			w->next->waiting.prev = w->prev;
	}
	w->word = NULL;
	w->next = w->prev = NULL;
}

static void start_waiting(struct word *word, struct waiting *w)
{
	struct thread **place = &word->waiting, *prev = NULL;

	while (*place && (*place)->waiting.enter_ns <= w->enter_ns) {
		prev = *place;
		place = &prev->waiting.next;
	}
	w->word = word;
	w->prev = prev;
	w->next = *place;
	if (w->next)
		w->next->waiting.prev = w->thread;
	*place = w->thread;
}

void futexes_act(struct thread *th)
{
	if (th->waiting.state != WAITING_CHANGED)
		return;
	stop_waiting(&th->waiting);
	th->waiting.state = WAITING_NOT;
}

void futexes_forget(struct futexes *f, struct thread *th)
{
	(void)f;
	stop_waiting(&th->waiting);
	th->waiting.state = WAITING_NOT;
}

/* wakes and whom they woke */

static void join_meeting(struct futexes *f, struct wake *k, struct thread *th)
{
	struct member self = { .tid = th->tid };
	size_t i;

	if (!k->meeting) {
		struct member waker = { .tid = k->tid };

		k->meeting = xcalloc(1, sizeof(*k->meeting));
		users_copy(&waker.before, &k->before);
		VEC_PUSH(&k->meeting->members, waker);
		f->nr_meetings++;
	}
	for (i = 0; i < k->meeting->members.len; i++) {
		if (k->meeting->members.items[i].tid == th->tid)
			return;
	}
	thread_done(th, &self.before);
	for (i = 0; i < k->meeting->members.len; i++) {
		const struct member *m = &k->meeting->members.items[i];
		struct thread *other = threads_find(f->threads, m->tid);

		users_add_all(&th->pending, &m->before);
		if (other)
			users_add_all(&other->pending, &self.before);
	}
	VEC_PUSH(&k->meeting->members, self);
}

static void let_go(struct futexes *f, struct wake *k, struct thread *th)
{
	if (k->all)
		join_meeting(f, k, th);
	else
		users_add_all(&th->pending, &k->before);
}

static bool overlap(const struct wake *k, const struct waiting *w)
{
	return k->bitset & w->bitset && k->enter_ns <= w->exit_ns && k->exit_ns >= w->enter_ns;
}

static uint64_t last_exit_ns(const struct thread *th)
{
	return user_is(&th->last) ? user_exit_ns(&th->last) : 0;
}

/* One who waits where the wake looked for somebody. */
static void offer(struct futexes *f, struct wake *k, struct thread *th, struct word *to)
{
	struct waiting *w = &th->waiting;

	if (w->state == WAITING_CHANGED) {
		let_go(f, k, th);
		stop_waiting(w);
		w->state = WAITING_NOT;
	} else if (w->state == WAITING_AHEAD_CHANGED) {
		/* At a barrier, one that came when the last had come already: it is of the meeting. */
		if (!k->all || k->enter_ns > w->exit_ns || k->exit_ns < last_exit_ns(th))
			return;
		join_meeting(f, k, th);
		stop_waiting(w);
		w->state = WAITING_MATCHED;
	} else if (!overlap(k, w)) {
		/* Too late for this one: for all that come. */
		if (w->state == WAITING_LATE && k->enter_ns > w->exit_ns)
			stop_waiting(w);
	} else if (k->left) {
		k->left--;
		let_go(f, k, th);
		stop_waiting(w);
		f->nr_unknown -= w->state == WAITING_LATE;
		w->state = w->state == WAITING_AHEAD ? WAITING_MATCHED : WAITING_NOT;
	} else if (k->left_to_move && to) {
		k->left_to_move--;
		if (k->all)
			join_meeting(f, k, th);
		stop_waiting(w);
		start_waiting(to, w);
	}
}

static void match(struct futexes *f, struct word *word, struct wake *k)
{
	bool moves = k->left_to_move && k->moved_to.kind != FUTEX_KEY_NONE;
	struct word *to = moves ? get_word(f, &k->moved_to) : NULL;
	struct thread *th, *next;

	for (th = word->waiting; th; th = next) {
		next = th->waiting.next;
		if (th->tid != k->tid)
			offer(f, k, th, to == word ? NULL : to);
	}
}

static struct wake *add_wake(struct futexes *f, struct word *word, const struct thread *th,
			     const struct event *ev, const struct futex_call *call)
{
	struct wake *k;

	(void)f;
	if (!word->wakes)
		word->wakes = xcalloc(WAKES_KEPT, sizeof(*word->wakes));
	k = &word->wakes[word->next_wake];
	word->next_wake = (word->next_wake + 1) % WAKES_KEPT;
	if (word->nr_wakes < WAKES_KEPT)
		word->nr_wakes++;
	else
		wake_release(k);
	*k = (struct wake){
		.enter_ns = ev->enter_ns,
		.exit_ns = ev->exit_ns,
		.tid = th->tid,
		.bitset = call->bitset,
		.left = call->nr_woken,
		.left_to_move = call->nr_moved,
		.woke = call->nr_woken || call->nr_moved,
		.all = call->all,
	};
	if (call->what == FUTEX_REQUEUES)
		k->moved_to = call->key2;
	return k;
}

/* One that was shown ahead. */
static struct wake *find_wake(struct word *word, const struct thread *th, const struct event *ev)
{
	uint32_t i;

	for (i = 0; i < word->nr_wakes; i++) {
		struct wake *k = &word->wakes[i];

		if (!k->in_turn && k->tid == th->tid && k->enter_ns == ev->enter_ns)
			return k;
	}
	return NULL;
}

static struct wake *wake_in_turn(struct futexes *f, struct thread *th, const struct order_input *in,
				 const struct futex_call *call, const struct futex_key *key,
				 uint32_t nr_woken)
{
	struct word *word = get_word(f, key);
	struct wake *k = find_wake(word, th, in->ev);
	struct users before;

	if (!k)
		k = add_wake(f, word, th, in->ev, call);
	k->in_turn = true;
	if (k->left > nr_woken)
		k->left = nr_woken;
	thread_before(th, in, &before);
	users_add_all(&k->before, &before);
	users_release(&before);
	match(f, word, k);
	return k;
}

/* The recorder saw who was woken. */
static void wake_named(struct futexes *f, struct thread *th, const struct order_input *in,
		       const struct futex_call *call)
{
	struct wake k = { .tid = th->tid, .all = call->all };
	uint32_t i;

	thread_before(th, in, &k.before);
	for (i = 0; i < call->woken->count; i++) {
		struct thread *other = threads_find(f->threads, (uint32_t)call->woken->items[i].u);

		if (!other || other == th || call->woken->items[i].type != VALUE_INT)
			continue;
		let_go(f, &k, other);
		stop_waiting(&other->waiting);
		other->waiting.state = WAITING_MATCHED;
	}
	wake_release(&k);
}

void futexes_thread_exit(struct futexes *f, struct thread *th, const struct order_input *in)
{
	struct futex_call call = { .what = FUTEX_WAKES, .bitset = UINT32_MAX, .nr_woken = 1 };
	struct word *word;
	struct wake *k;

	if (!th->process || !th->clear_tid)
		return;
	call.key = futex_key_local(th->process->pid, th->clear_tid);
	if (th->process->space)
		call.key = (struct futex_key){ FUTEX_KEY_PRIVATE, th->process->space, th->clear_tid,
					       0 };
	word = get_word(f, &call.key);
	k = add_wake(f, word, th, in->ev, &call);
	k->by_kernel = k->in_turn = true;
	/* The call does not return; what waits for it does after it began. */
	k->exit_ns = UINT64_MAX;
	thread_before(th, in, &k->before);
	match(f, word, k);
}

/* waits that have ended */

static struct wake *better(struct wake *a, struct wake *b)
{
	if (!a || !b)
		return a ? a : b;
	if (!a->left != !b->left)
		return a->left ? a : b;
	return b->enter_ns >= a->enter_ns ? b : a;
}

/* The best wake of the word for a wait, not before since_ns; waits that were moved on are followed once. */
static struct wake *find_waker(struct futexes *f, struct word *word, const struct waiting *w,
			       uint64_t since_ns, bool follow)
{
	struct wake *best = NULL;
	uint32_t i;

	for (i = 0; word && i < word->nr_wakes; i++) {
		struct wake *k = &word->wakes[i];

		if (!k->woke || !overlap(k, w) || k->enter_ns < since_ns)
			continue;
		if (follow && k->moved_to.kind != FUTEX_KEY_NONE) {
			struct wake *then =
				find_waker(f, find_word(f, &k->moved_to), w, k->enter_ns, false);

			if (then && k->all)
				join_meeting(f, k, w->thread);
			if (then) {
				best = better(best, then);
				continue;
			}
		}
		best = better(best, k);
	}
	return best;
}

/* The latest wake of the word since the thread's previous action; or one that is under way. */
static struct wake *find_changer(struct word *word, const struct thread *th,
				 const struct waiting *w)
{
	uint64_t since_ns = last_exit_ns(th);
	struct wake *best = NULL, *coming = NULL;
	uint32_t i;

	for (i = 0; word && i < word->nr_wakes; i++) {
		struct wake *k = &word->wakes[i];

		if (k->tid == th->tid)
			continue;
		if (k->enter_ns > w->exit_ns) {
			if (!k->in_turn && (!coming || k->enter_ns < coming->enter_ns))
				coming = k;
		} else if (k->by_kernel || k->exit_ns >= since_ns) {
			if (!best || k->enter_ns >= best->enter_ns)
				best = k;
		}
	}
	return best ? best : coming;
}

static void found_changed(struct futexes *f, struct thread *th, const struct futex_call *call,
			  bool remember)
{
	struct waiting *w = &th->waiting;
	struct word *word = find_word(f, &call->key);
	struct wake *k = find_changer(word, th, w);

	if (!k && call->key.kind != FUTEX_KEY_LOCAL)
		k = find_changer(find_word(f, &call->local), th, w);
	if (k) {
		let_go(f, k, th);
		/* Who else is known to have been woken by it is so before this one goes on. */
		if (!k->in_turn)
			match(f, word, k);
	} else if (remember) {
		w->state = WAITING_CHANGED;
		start_waiting(get_word(f, &call->key), w);
	}
}

/* Wakes that were shown ahead and have not had their turn yet may be what ended this wait. */
static void match_ahead(struct futexes *f, struct word *word)
{
	uint32_t i;

	for (i = 0; i < word->nr_wakes; i++) {
		if (!word->wakes[i].in_turn)
			match(f, word, &word->wakes[i]);
	}
}

static void was_woken(struct futexes *f, struct thread *th, const struct futex_call *call)
{
	struct waiting *w = &th->waiting;
	struct wake *k = find_waker(f, find_word(f, &call->key), w, 0, true);

	if (!k && call->key.kind != FUTEX_KEY_LOCAL)
		k = find_waker(f, find_word(f, &call->local), w, 0, false);
	/* wait_requeue_pi ends by an unlock of its second word when that came after the requeue. */
	if (!k && call->key2.kind != FUTEX_KEY_NONE)
		k = find_waker(f, find_word(f, &call->key2), w, 0, false);
	if (k) {
		k->left -= k->left > 0;
		let_go(f, k, th);
	} else if (call->what == FUTEX_LOCKS) {
		/* It was free: whoever freed it did so before. */
		found_changed(f, th, call, false);
	} else {
		f->nr_unknown++;
		w->state = WAITING_LATE;
		start_waiting(get_word(f, &call->key), w);
	}
}

static void wait_ended(struct futexes *f, struct thread *th, const struct order_input *in,
		       const struct futex_call *call)
{
	struct waiting *w = &th->waiting;
	enum waiting_state state;

	if (w->state == WAITING_AHEAD && w->word)
		match_ahead(f, w->word);
	state = w->state;
	stop_waiting(w);
	w->state = WAITING_NOT;
	if (state == WAITING_MATCHED && (!in->ev->outcome.err || in->ev->outcome.err == EAGAIN))
		return;
	w->enter_ns = in->ev->enter_ns;
	w->exit_ns = in->ev->exit_ns;
	w->bitset = call->bitset;
	if (!in->ev->outcome.err)
		was_woken(f, th, call);
	else if (in->ev->outcome.err == EAGAIN)
		found_changed(f, th, call, true);
}

void futexes_event(struct futexes *f, struct thread *th, const struct order_input *in,
		   const struct futex_call *call)
{
	struct wake *k;

	if (th->process && call->key.kind == FUTEX_KEY_PRIVATE)
		th->process->space = call->key.a;
	switch (call->what) {
	case FUTEX_WAITS:
	case FUTEX_LOCKS:
		wait_ended(f, th, in, call);
		return;
	case FUTEX_WAKES_TWO:
		if (call->woken || in->ev->outcome.err)
			break;
		/* Whom it found at the first word it did not find at the second. */
		k = wake_in_turn(f, th, in, call, &call->key, call->nr_woken);
		if (call->key2.kind != FUTEX_KEY_NONE)
			(void)wake_in_turn(f, th, in, call, &call->key2, k->left);
		return;
	default:
		break;
	}
	if (in->ev->outcome.err)
		return;
	if (call->woken)
		wake_named(f, th, in, call);
	else
		(void)wake_in_turn(f, th, in, call, &call->key, call->nr_woken);
}

static void wake_ahead(struct futexes *f, const struct thread *th, const struct event *ev,
		       const struct futex_call *call, const struct futex_key *key)
{
	struct wake *k = add_wake(f, get_word(f, key), th, ev, call);

	thread_done(th, &k->before);
}

void futexes_ahead(struct futexes *f, struct thread *th, const struct event *ev,
		   const struct futex_call *call)
{
	bool waits = call->what == FUTEX_WAITS || call->what == FUTEX_LOCKS;
	struct waiting *w = &th->waiting;

	if (ev->outcome.err && !(waits && ev->outcome.err == EAGAIN))
		return;
	if (th->process && call->key.kind == FUTEX_KEY_PRIVATE)
		th->process->space = call->key.a;
	if (waits) {
		/* A wait that ended and whose waker did not show up gives way. */
		if (w->state == WAITING_MATCHED)
			return;
		stop_waiting(w);
		*w = (struct waiting){
			.state = ev->outcome.err ? WAITING_AHEAD_CHANGED : WAITING_AHEAD,
			.thread = th,
			.enter_ns = ev->enter_ns,
			.exit_ns = ev->exit_ns,
			.bitset = call->bitset,
		};
		start_waiting(get_word(f, &call->key), w);
	} else if (!call->woken) {
		wake_ahead(f, th, ev, call, &call->key);
		if (call->what == FUTEX_WAKES_TWO && call->key2.kind != FUTEX_KEY_NONE)
			wake_ahead(f, th, ev, call, &call->key2);
	}
}
