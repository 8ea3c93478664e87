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

/* Of FIFOs one remembers who has had them open, as long as there is room. */
static struct pipe *take_unused_fifo(struct pipes *p)
{
	struct pipe **place = &p->fifos, *f;

	while (*place && atomic_load(&(*place)->nr_slots))
		place = &(*place)->next_fifo;
	f = *place;
	if (f)
		*place = f->next_fifo;
	return f;
}

static struct pipe *take_unused(struct run *run)
{
	struct pipes *p = &run->pipes;
	struct pipe *made = NULL;

	if (p->first_free) {
		made = p->first_free;
		p->first_free = made->next_free;
	} else if (p->nr_used < run->nr_slots) {
		made = &p->items[p->nr_used++];
	} else {
		made = take_unused_fifo(p);
	}
	if (made)
		atomic_store(&made->broken, false);
	return made;
}

struct pipe *pipes_new(struct run *run)
{
	struct pipe *made;

	pthread_mutex_lock(&run->pipes.mutex);
	made = take_unused(run);
	if (made)
		made->is_fifo = false;
	pthread_mutex_unlock(&run->pipes.mutex);
	return made;
}

void pipes_hold(struct slot *s, struct pipe *p, unsigned int ends)
{
	if (!p)
		return;
	atomic_fetch_add(&p->nr_slots, 1);
	for (unsigned int end = PIPE_READS; end <= PIPE_WRITES; end++)
		if (ends & end)
			atomic_fetch_add(pipe_nr_ends(p, end), 1);
	atomic_store(&s->pipe_ends, ends);
	atomic_store(&s->pipe, p);
}

void pipes_drop(struct run *run, struct slot *s)
{
	struct pipe *p = atomic_exchange(&s->pipe, NULL);

	if (!p)
		return;
	if (p->is_fifo) {
		pipes_go(p, atomic_exchange(&s->pipe_ends, 0));
		pipes_release_fifo(run, p);
		return;
	}
	/* A plan without order may have others look at it still: the memory stays. */
	if (atomic_fetch_sub(&p->nr_slots, 1) != 1)
		return;
	budget_give(&run->budget, atomic_exchange(&p->taken_bytes, 0));
	pthread_mutex_lock(&run->pipes.mutex);
	p->next_free = run->pipes.first_free;
	run->pipes.first_free = p;
	pthread_mutex_unlock(&run->pipes.mutex);
}

/* FIFOs. */

static struct pipe *find_fifo(struct pipes *p, dev_t dev, ino_t ino)
{
	struct pipe *f = p->fifos;

	while (f && (f->dev != dev || f->ino != ino))
		f = f->next_fifo;
	return f;
}

struct pipe *pipes_take_fifo(struct run *run, dev_t dev, ino_t ino)
{
	struct pipe *f;

	pthread_mutex_lock(&run->pipes.mutex);
	f = find_fifo(&run->pipes, dev, ino);
	if (!f && (f = take_unused(run))) {
		f->is_fifo = true;
		f->dev = dev;
		f->ino = ino;
		for (int i = 0; i < 2; i++) {
			atomic_store(&f->nr_ends[i], 0);
			atomic_store(&f->nr_came[i], 0);
		}
		f->next_fifo = run->pipes.fifos;
		run->pipes.fifos = f;
	}
	if (f)
		atomic_fetch_add(&f->nr_slots, 1);
	pthread_mutex_unlock(&run->pipes.mutex);
	return f;
}

void pipes_release_fifo(struct run *run, struct pipe *p)
{
	pthread_mutex_lock(&run->pipes.mutex);
	if (atomic_fetch_sub(&p->nr_slots, 1) == 1)
		budget_give(&run->budget, atomic_exchange(&p->taken_bytes, 0));
	pthread_mutex_unlock(&run->pipes.mutex);
}

void pipes_come(struct pipe *p, unsigned int ends)
{
	for (unsigned int end = PIPE_READS; end <= PIPE_WRITES; end++) {
		if (!(ends & end))
			continue;
		atomic_fetch_add(pipe_nr_ends(p, end), 1);
		atomic_fetch_add(pipe_nr_came(p, end), 1);
	}
}

void pipes_go(struct pipe *p, unsigned int ends)
{
	for (unsigned int end = PIPE_READS; end <= PIPE_WRITES; end++)
		if (ends & end)
			atomic_fetch_sub(pipe_nr_ends(p, end), 1);
}

void pipes_break(struct run *run, struct pipe *p)
{
	if (p && !atomic_exchange(&p->broken, true))
		atomic_fetch_add(&run->pipes.nr_broken, 1);
}
