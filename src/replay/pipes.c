/* SPDX-License-Identifier: MIT */
#include "replay/pipes.h"

#include <stdlib.h>

#include "base/banned.h"
#include "replay/inside.h"

void pipes_prepare(struct run *run)
{
	struct pipes *p = &run->pipes;

	pthread_mutex_init(&p->mutex, NULL);
	/* Zeroed pages are not there until they are used: most plans have few pipes. */
	p->items = xcalloc(run->nr_slots ? run->nr_slots : 1, sizeof(*p->items));
}

void pipes_release(struct run *run)
{
	if (!run->pipes.items)
		return;
	pthread_mutex_destroy(&run->pipes.mutex);
	free(run->pipes.items);
	run->pipes.items = NULL;
}

struct pipe *pipes_new(struct run *run)
{
	struct pipes *p = &run->pipes;
	struct pipe *made = NULL;

	pthread_mutex_lock(&p->mutex);
	if (p->first_free) {
		made = p->first_free;
		p->first_free = made->next_free;
	} else if (p->nr_used < run->nr_slots) {
		made = &p->items[p->nr_used++];
	}
	pthread_mutex_unlock(&p->mutex);
	if (made)
		atomic_store(&made->broken, false);
	return made;
}

void pipes_hold(struct slot *s, struct pipe *p)
{
	if (!p)
		return;
	atomic_fetch_add(&p->nr_slots, 1);
	atomic_store(&s->pipe, p);
}

void pipes_drop(struct run *run, struct slot *s)
{
	struct pipe *p = atomic_exchange(&s->pipe, NULL);

	/* A plan without order may have others look at it still: the memory stays. */
	if (!p || atomic_fetch_sub(&p->nr_slots, 1) != 1)
		return;
	budget_give(&run->budget, atomic_exchange(&p->taken_bytes, 0));
	pthread_mutex_lock(&run->pipes.mutex);
	p->next_free = run->pipes.first_free;
	run->pipes.first_free = p;
	pthread_mutex_unlock(&run->pipes.mutex);
}

void pipes_break(struct run *run, struct pipe *p)
{
	if (p && !atomic_exchange(&p->broken, true))
		atomic_fetch_add(&run->pipes.nr_broken, 1);
}
