/* SPDX-License-Identifier: MIT */
#include "replay/flight_inside.h"

#include <errno.h>
#include <liburing.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/banned.h"
#include "replay/calls.h"
#include "replay/ring_files.h"

#define ENTRIES_MIN 256
#define ENTRIES_MAX 65536
#define RING_MAX 4096

/* Entries. */

static void entries_init(struct flight *f, uint64_t wanted)
{
	uint32_t i;

	f->nr_entries = ENTRIES_MIN;
	while (f->nr_entries < ENTRIES_MAX && f->nr_entries < wanted)
		f->nr_entries *= 2;
	f->heads = xcalloc(f->nr_entries, sizeof(*f->heads));
	f->entries = xcalloc(f->nr_entries, sizeof(*f->entries));
	for (i = 0; i + 1 < f->nr_entries; i++)
		f->entries[i].next = i + 2;
	f->first_free = 1;
}

static uint32_t *head_of(struct flight *f, uint64_t number)
{
	return &f->heads[number & (f->nr_entries - 1)];
}

static struct entry *entry_find(struct flight *f, uint64_t number)
{
	uint32_t i;

	for (i = f->heads ? *head_of(f, number) : 0; i; i = f->entries[i - 1].next)
		if (f->entries[i - 1].number == number)
			return &f->entries[i - 1];
	return NULL;
}

void flight_entry_free(struct flight *f, struct entry *e)
{
	uint32_t self = (uint32_t)(e - f->entries) + 1, *p = head_of(f, e->number);

	while (*p != self)
		p = &f->entries[*p - 1].next;
	*p = e->next;
	/* Nobody took it: the descriptor is nobody's. */
	if ((e->flags & REQUEST_OPENS) && e->got.res >= 0)
		(void)close((int)e->got.res);
	if (e->held_fd >= 0)
		(void)close(e->held_fd);
	*e = (struct entry){ .next = f->first_free };
	f->first_free = self;
}

/* One that has landed makes room, the longest untaken first. False: all are flying. */
static bool evict(struct flight *f)
{
	uint32_t i;

	for (i = 0; i < f->nr_entries; i++) {
		struct entry *e = &f->entries[f->hand++ & (f->nr_entries - 1)];

		if (e->used && !e->flying) {
			flight_entry_free(f, e);
			return true;
		}
	}
	return false;
}

void flight_land(struct flight *f, struct entry *e, int64_t res)
{
	e->got = request_result_of(e->q, res);
	e->flying = false;
	f->nr_flying--;
	/* Pairs with flight_release(): from here on the memory may be used again. */
	atomic_fetch_sub_explicit(&e->of->nr_flying, 1, memory_order_release);
	e->q = NULL;
	e->of = NULL;
}

static void land_number(struct flight *f, uint64_t i, int64_t res)
{
	if (i < f->nr_entries && f->entries[i].flying)
		flight_land(f, &f->entries[i], res);
}

static void land_events(struct flight *f, long nr)
{
	long i;

	for (i = 0; i < nr; i++)
		land_number(f, f->events[i].data - 1, f->events[i].res);
}

/* What has come, without waiting; by the leader, or when there is none. */
static void land_all(struct flight *f)
{
	struct timespec no_time = { 0 };
	struct io_uring_cqe *c;

	if (f->is_aio) {
		long r;

		do {
			r = syscall(SYS_io_getevents, f->context, 0L, (long)EVENTS_AT_ONCE,
				    f->events, &no_time);
			land_events(f, r);
		} while (r == EVENTS_AT_ONCE);
		return;
	}
	while (f->has_ring && !io_uring_peek_cqe(&f->ring, &c)) {
		land_number(f, c->user_data, c->res);
		io_uring_cqe_seen(&f->ring, c);
	}
}

/* Until something has come, or a signal. */
static void wait_in_kernel(struct flight *f)
{
	struct io_uring_cqe *c;

	if (f->is_aio) {
		long r = syscall(SYS_io_getevents, f->context, 1L, (long)EVENTS_AT_ONCE, f->events,
				 NULL);

		pthread_mutex_lock(&f->mutex);
		land_events(f, r);
		pthread_mutex_unlock(&f->mutex);
	} else {
		(void)io_uring_wait_cqe(&f->ring, &c); /* it stays for land_all() */
	}
}

/* Something is in flight, and the mutex is held. False: the run was stopped. */
bool flight_wait_some(const struct run *run, struct flight *f)
{
	if (f->has_leader) {
		(void)pthread_cond_wait(&f->landed, &f->mutex);
	} else {
		f->has_leader = true;
		pthread_mutex_unlock(&f->mutex);
		wait_in_kernel(f);
		pthread_mutex_lock(&f->mutex);
		land_all(f);
		f->has_leader = false;
		pthread_cond_broadcast(&f->landed);
	}
	return !run_is_stopped(run);
}

/* With the mutex held; NULL: the run was stopped, or the flight closed meanwhile. */
struct entry *flight_entry_new(const struct run *run, struct flight *f, const struct request *q,
			       struct requests *of)
{
	uint32_t *head, self;
	struct entry *e;

	while ((e = entry_find(f, q->number)) && e->flying)
		if (!flight_wait_some(run, f))
			return NULL;
	if (e)
		flight_entry_free(f, e);
	while (f->is_open && !f->first_free && !evict(f))
		if (!flight_wait_some(run, f))
			return NULL;
	if (!f->is_open)
		return NULL;
	head = head_of(f, q->number);
	self = f->first_free;
	e = &f->entries[self - 1];
	f->first_free = e->next;
	*e = (struct entry){ .number = q->number,
			     .next = *head,
			     .slot = q->slot,
			     .used = true,
			     .flying = true,
			     .flags = q->flags,
			     .held_fd = -1,
			     .q = q,
			     .of = of };
	*head = self;
	f->nr_requests++;
	f->nr_flying++;
	if (f->nr_flying > f->most_flying)
		f->most_flying = f->nr_flying;
	atomic_fetch_add_explicit(&of->nr_flying, 1, memory_order_relaxed);
	return e;
}

/* Opening and closing. */

struct flight *flight_new(struct run *run)
{
	struct flight *f = xcalloc(1, sizeof(*f));

	pthread_mutex_init(&f->mutex, NULL);
	pthread_cond_init(&f->landed, NULL);
	f->next = run->flights;
	run->flights = f;
	return f;
}

/* The context waits for what is in flight; requests of a ring end with the thread that submitted them. */
static int end(struct flight *f)
{
	uint32_t i;
	int r = f->is_aio && f->is_open ? (int)syscall(SYS_io_destroy, f->context) : 0;

	for (i = 0; i < f->nr_entries; i++)
		if (f->entries[i].used && !f->entries[i].flying)
			flight_entry_free(f, &f->entries[i]);
	free(f->heads);
	free(f->entries);
	f->heads = NULL;
	f->entries = NULL;
	f->nr_entries = 0;
	if (f->has_ring)
		io_uring_queue_exit(&f->ring);
	f->has_ring = f->is_open = false;
	return r;
}

void flight_free_all(struct run *run)
{
	struct flight *f;

	while ((f = run->flights)) {
		run->flights = f->next;
		(void)end(f);
		pthread_cond_destroy(&f->landed);
		pthread_mutex_destroy(&f->mutex);
		free(f);
	}
}

void flight_sum_up(const struct run *run, struct run_result *res)
{
	const struct flight *f;

	for (f = run->flights; f; f = f->next) {
		res->nr_requests += f->nr_requests;
		res->nr_requests_by_calls += f->nr_by_calls;
		if (f->most_flying > res->most_in_flight)
			res->most_in_flight = f->most_flying;
	}
}

static uint64_t probe_ops(struct io_uring *ring)
{
	struct io_uring_probe *p = io_uring_get_probe_ring(ring);
	uint64_t ops = 0;
	int i;

	for (i = 0; p && i < PROBED_OPS; i++)
		if (io_uring_opcode_supported(p, i))
			ops |= UINT64_C(1) << i;
	io_uring_free_probe(p);
	return ops;
}

void flight_open_uring(struct flight *f, uint64_t entries)
{
	struct io_uring_params p = { .flags = IORING_SETUP_CLAMP };

	if (!entries || entries > RING_MAX)
		entries = RING_MAX;
	entries_init(f, entries * 4);
	f->has_ring = !io_uring_queue_init_params((unsigned int)entries, &f->ring, &p);
	if (f->has_ring)
		f->ops = probe_ops(&f->ring);
	f->is_open = true;
}

int flight_open_aio(struct flight *f, unsigned int nr_events)
{
	uint64_t context = 0;

	if (syscall(SYS_io_setup, nr_events, &context) < 0)
		return -1;
	entries_init(f, (uint64_t)nr_events * 2);
	f->context = context;
	f->is_aio = f->is_open = true;
	return 0;
}

int flight_close(const struct run *run, struct flight *f)
{
	int r = 0;

	if (!f)
		return 0;
	pthread_mutex_lock(&f->mutex);
	while (f->is_open && f->nr_flying && flight_wait_some(run, f))
		;
	if (f->is_open && !f->nr_flying)
		r = end(f);
	pthread_mutex_unlock(&f->mutex);
	return r;
}

/* Taking. */

/* What has landed becomes what the trace says that it was. */
void flight_conclude(struct lane *l, const struct completion *want, uint8_t flags, uint32_t slot,
		     struct request_result *got)
{
	if ((flags & REQUEST_CLOSES) && slot != READY_NO_SLOT) {
		struct outcome closed;

		call_drop(l, &l->run->slots[slot], &closed);
		got->res = closed.err ? -closed.err : 0;
	} else if ((flags & REQUEST_OPENS) && got->res >= 0) {
		int old = want->slot == READY_NO_SLOT
				  ? (int)got->res
				  : slot_swap_fd(l->run, &l->run->slots[want->slot], (int)got->res);

		if (old >= 0)
			(void)close(old);
	}
	/* If it succeeded there it was about something that is simulated. */
	if (!(flags & REQUEST_ABSENT) || want->res < 0)
		request_compare(l, want, got);
	else
		l->sums.nr_requests_left_out++;
}

static void take(struct lane *l, struct flight *f, const struct completion *want)
{
	struct request_result got;
	struct entry *e;
	uint8_t flags;
	uint32_t slot;

	pthread_mutex_lock(&f->mutex);
	/* Another lane may take it meanwhile, so it is looked for again. */
	while ((e = entry_find(f, want->number)) && e->flying && flight_wait_some(l->run, f))
		;
	if (!e || e->flying) {
		pthread_mutex_unlock(&f->mutex);
		return;
	}
	got = e->got;
	flags = e->flags;
	slot = e->slot;
	if (e->files && (flags & REQUEST_OPENS) && got.res >= 0) {
		/* The kernel chose the place, there and here alike. */
		(void)ring_files_put(e->files, (uint64_t)want->res, READY_NO_SLOT, (int)got.res);
		flags &= (uint8_t)~REQUEST_OPENS;
	}
	e->flags = 0; /* the descriptor is taken, too */
	flight_entry_free(f, e);
	pthread_mutex_unlock(&f->mutex);
	flight_conclude(l, want, flags, slot, &got);
}

void flight_take(struct lane *l, struct flight *f, const struct completions *done)
{
	uint32_t i;

	for (i = 0; f && i < done->nr && !run_is_stopped(l->run); i++)
		take(l, f, &done->items[i]);
}

/* What a lane has in flight. */

static bool is_flying(const struct requests *all)
{
	return atomic_load_explicit(&((struct requests *)(uintptr_t)all)->nr_flying,
				    memory_order_acquire);
}

static void wait_for(struct lane *l, struct requests *all)
{
	struct flight *f = all->flight;

	pthread_mutex_lock(&f->mutex);
	while (is_flying(all) && flight_wait_some(l->run, f))
		;
	pthread_mutex_unlock(&f->mutex);
}

static struct aloft *aloft_at(struct lane *l, uint64_t i)
{
	return &l->aloft[i % FLIGHT_ALOFT_MAX];
}

void flight_add_aloft(struct lane *l, const struct ready *a, struct requests *all)
{
	if (!is_flying(all))
		return;
	if (a->flags & READY_AT_ONCE) {
		wait_for(l, all);
		return;
	}
	if (l->last_aloft - l->first_aloft == FLIGHT_ALOFT_MAX) {
		wait_for(l, aloft_at(l, l->first_aloft)->requests);
		l->first_aloft++;
	}
	*aloft_at(l, l->last_aloft++) = (struct aloft){ .pos = l->pos, .requests = all };
}

uint64_t flight_release(struct lane *l)
{
	while (l->first_aloft != l->last_aloft && !is_flying(aloft_at(l, l->first_aloft)->requests))
		l->first_aloft++;
	return l->first_aloft != l->last_aloft ? aloft_at(l, l->first_aloft)->pos : l->pos;
}

void flight_poll(struct lane *l)
{
	struct flight *f = aloft_at(l, l->first_aloft)->requests->flight;

	pthread_mutex_lock(&f->mutex);
	if (!f->has_leader)
		land_all(f);
	pthread_mutex_unlock(&f->mutex);
}

void flight_drain(struct lane *l)
{
	for (; l->first_aloft != l->last_aloft && !run_is_stopped(l->run); l->first_aloft++)
		wait_for(l, aloft_at(l, l->first_aloft)->requests);
}

/* Does the action use the file of the request, or look at names that the request changes? */
static bool meets(const struct ready *a, const struct request *q)
{
	uint32_t i;

	if (q->flags & REQUEST_CHANGES && (a->flags & READY_NAMES))
		return true;
	for (i = 0; i < a->nr_patches && q->slot != READY_NO_SLOT; i++)
		if (a->patches[i].slot == q->slot && a->patches[i].kind != PATCH_ADDR &&
		    a->patches[i].kind != PATCH_CONTEXT)
			return true;
	return false;
}

void flight_settle(struct lane *l, const struct ready *a)
{
	uint64_t n;
	uint32_t i;

	for (n = l->first_aloft; n != l->last_aloft; n++) {
		struct requests *all = aloft_at(l, n)->requests;

		for (i = 0; i < all->nr && is_flying(all); i++) {
			if (meets(a, &all->items[i])) {
				wait_for(l, all);
				break;
			}
		}
	}
}
