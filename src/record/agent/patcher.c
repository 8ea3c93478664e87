/* SPDX-License-Identifier: MIT */
#include "record/agent/patcher.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

/* Stubs. */

struct wire_call agent_area_call(uint64_t at)
{
	return (struct wire_call){ .nr = SYS_mmap,
				   .args = { at, AREA_BYTES_OF_STUBS, PROT_READ | PROT_EXEC,
					     MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
					     UINT64_MAX, 0 } };
}

void agent_add_area(struct agent_space *space, uint64_t start)
{
	if (space->nr_areas < AREAS_MAX_OF_STUBS)
		space->areas[space->nr_areas++] = (struct stub_area){ .start = start };
}

static struct stub_area *new_area(const struct agent *a, struct tracee *t, uint64_t near)
{
	struct agent_space *space = t->agent->space;
	struct remote r = { a, t, outlive_remote(a) };
	struct maps m = { 0 };
	struct wire_call call;
	uint64_t at;

	if (space->nr_areas == AREAS_MAX_OF_STUBS)
		return NULL;
	maps_read(t, &m);
	at = maps_find_gap(&m, near);
	maps_release(&m);
	call = agent_area_call(at);
	if (!at || remote_call(&r, (long)call.nr, call.args) != (int64_t)at)
		return NULL;
	agent_add_area(space, at);
	return &space->areas[space->nr_areas - 1];
}

struct stub_area *patcher_area_near(const struct agent *a, struct tracee *t, uint64_t near,
				    bool may_map)
{
	struct agent_space *space = t->agent->space;
	unsigned int i;

	for (i = 0; i < space->nr_areas; i++) {
		struct stub_area *area = &space->areas[i];

		if (maps_are_near(area->start, near) &&
		    area->used_bytes + SITE_STUB_MAX_BYTES <= AREA_BYTES_OF_STUBS)
			return area;
	}
	return may_map ? new_area(a, t, near) : NULL;
}

/* Writing. */

void patcher_open(struct patcher *p, struct tracer *tr, struct tracee *t, uint64_t ip)
{
	p->tr = tr;
	p->t = t;
	p->mem = -1;
	p->ip = ip;
	p->area = NULL;
	p->stubs_len = 0;
	p->nr_changes = p->nr_stretches = p->text_len = 0;
	p->is_refused = p->is_broken = false;
}

static bool open_memory(struct patcher *p)
{
	char name[64];

	if (p->mem >= 0)
		return true;
	(void)snprintf(name, sizeof(name), "/proc/%d/mem", (int)p->t->tid);
	p->mem = open(name, O_RDWR | O_CLOEXEC);
	return p->mem >= 0;
}

/* How many bytes were written: all, or none, as of a program that protects its memory, or part of them. */
static size_t write_at(struct patcher *p, uint64_t addr, const void *bytes, size_t len)
{
	ssize_t n = open_memory(p) ? pwrite(p->mem, bytes, len, (off_t)addr) : -1;

	p->is_refused |= n != (ssize_t)len;
	return n > 0 ? (size_t)n : 0;
}

/* One by one, also where the program may not read; what is not there is left empty. */
static void read_each(struct patcher *p)
{
	size_t i;

	for (i = 0; i < p->nr_stretches; i++) {
		struct patch_stretch *s = &p->stretches[i];

		if (!open_memory(p) ||
		    pread(p->mem, p->text + s->in_text, s->len, (off_t)s->at) != (ssize_t)s->len)
			s->len = 0;
	}
}

static void read_stretches(struct patcher *p)
{
	struct iovec local = { p->text, p->text_len }, remote[PATCHER_CHANGES_MAX];
	size_t i;

	for (i = 0; i < p->nr_stretches; i++)
		remote[i] = (struct iovec){ (void *)(uintptr_t)p->stretches[i].at,
					    p->stretches[i].len };
	if (process_vm_readv(p->t->tid, &local, 1, remote, p->nr_stretches, 0) !=
	    (ssize_t)p->text_len)
		read_each(p);
}

/* In what was read, unless it is another file's, or changed already. */
static void apply(struct patcher *p, struct patch_stretch *s, const struct patch_change *c)
{
	const struct site *site = c->site;
	uint8_t *now = p->text + s->in_text + (c->window - s->at);

	if (!s->len || memcmp(now, site->bytes, site->window_bytes) ||
	    memcmp(now + site->window_bytes, "\x0f\x05", 2))
		return;
	memcpy(now, c->jump, sizeof(c->jump));
	if (site->pad_bytes)
		site_put_hop(now + site->pad_bytes);
	s->is_changed = true;
}

static bool flush(struct patcher *p)
{
	size_t i, k = 0, end;

	if (p->nr_changes)
		read_stretches(p);
	for (i = end = 0; i < p->nr_stretches; i++) {
		end += p->stretches[i].nr_changes;
		for (; k < end; k++)
			apply(p, &p->stretches[i], &p->changes[k]);
	}
	if (p->stubs_len)
		(void)write_at(p, p->stubs_at, p->stubs,
			       p->stubs_len); /* nothing leads there yet */
	for (i = 0; i < p->nr_stretches && !p->is_refused; i++) {
		const struct patch_stretch *s = &p->stretches[i];

		if (s->is_changed)
			p->is_broken |=
				write_at(p, s->at, p->text + s->in_text, s->len) && p->is_refused;
	}
	p->stubs_len = 0;
	p->nr_changes = p->nr_stretches = p->text_len = 0;
	return !p->is_refused;
}

bool patcher_close(struct patcher *p)
{
	bool is_done = flush(p);

	/* With half of a change it cannot go on; it is as good as gone then anyway. */
	if (p->is_broken)
		(void)kill(p->t->pid, SIGKILL);
	if (p->mem >= 0)
		(void)close(p->mem); /* what was written is written */
	return is_done;
}

/* Gathering. */

/* Room for a stub near the address; gathered ones of another area are written. */
static bool find_room(struct patcher *p, uint64_t near)
{
	struct stub_area *area = patcher_area_near(p->tr->agent, p->t, near, false);

	if (!area)
		return false;
	if ((area != p->area || p->stubs_len + SITE_STUB_MAX_BYTES > sizeof(p->stubs)) && !flush(p))
		return false;
	p->area = area;
	if (!p->stubs_len)
		p->stubs_at = area->start + area->used_bytes;
	return true;
}

static bool is_in_page(const struct patch_stretch *s, uint64_t at)
{
	return at >= s->at + s->len && at / 4096 == s->at / 4096;
}

/* The stretch of a change of so many bytes; those that have no room any more are written. */
static bool gather(struct patcher *p, const struct patch_change *c, size_t len)
{
	struct patch_stretch *s = p->nr_stretches ? &p->stretches[p->nr_stretches - 1] : NULL;
	size_t more = s && is_in_page(s, c->window) ? c->window + len - (s->at + s->len) : len;

	if (p->nr_changes == PATCHER_CHANGES_MAX || p->text_len + more > sizeof(p->text)) {
		if (!flush(p))
			return false;
		more = len;
	}
	s = p->nr_stretches ? &p->stretches[p->nr_stretches - 1] : NULL;
	if (!s || !is_in_page(s, c->window)) {
		s = &p->stretches[p->nr_stretches++];
		*s = (struct patch_stretch){ .at = c->window, .in_text = p->text_len };
	}
	s->len += more;
	s->nr_changes++;
	p->text_len += more;
	p->changes[p->nr_changes++] = *c;
	return true;
}

bool patcher_change(struct patcher *p, const struct site *s, uint64_t syscall)
{
	struct patch_change c = { .site = s, .window = syscall - s->window_bytes };
	uint8_t stub[SITE_STUB_MAX_BYTES] = { 0 };
	uint64_t at;
	size_t len;

	if (!find_room(p, c.window))
		return false;
	at = p->stubs_at + p->stubs_len;
	len = site_put_stub(s, syscall, at, (uint32_t)outlive_entry(p->tr->agent), stub);
	if (!len || !site_put_jump(c.window, at, c.jump))
		return false;
	len = (len + 15) / 16 * 16;
	memcpy(p->stubs + p->stubs_len, stub, len);
	p->stubs_len += (uint32_t)len;
	p->area->used_bytes += (uint32_t)len;
	return gather(p, &c, s->window_bytes + 2u);
}
