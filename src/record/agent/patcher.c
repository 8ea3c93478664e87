/* SPDX-License-Identifier: MIT */
#include "record/agent/patcher.h"

#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
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
	struct remote r = { t, outlive_remote(a) };
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

/* Jumps. */

bool patcher_open(struct patcher *p, struct tracer *tr, struct tracee *t, uint64_t ip)
{
	char name[64];

	p->tr = tr;
	p->t = t;
	p->ip = ip;
	p->area = NULL;
	p->stubs_len = 0;
	p->text_len = p->changed_from = p->changed_to = 0;
	p->is_broken = false;
	(void)snprintf(name, sizeof(name), "/proc/%d/mem", (int)t->tid);
	p->mem = open(name, O_RDWR | O_CLOEXEC);
	return p->mem >= 0;
}

static bool write_at(const struct patcher *p, uint64_t addr, const void *bytes, size_t len)
{
	return pwrite(p->mem, bytes, len, (off_t)addr) == (ssize_t)len;
}

static bool flush_stubs(struct patcher *p)
{
	if (p->stubs_len && !p->is_broken)
		p->is_broken = !write_at(p, p->stubs_at, p->stubs, p->stubs_len);
	p->stubs_len = 0;
	return !p->is_broken;
}

static bool flush_text(struct patcher *p)
{
	size_t from = p->changed_from, len = p->changed_to - from;

	if (len && flush_stubs(p))
		p->is_broken = !write_at(p, p->text_at + from, p->text + from, len);
	p->changed_from = p->changed_to = 0;
	return !p->is_broken;
}

/* Bytes of the text, which stay until others are looked at; NULL: they cannot be read. */
static uint8_t *look_at_text(struct patcher *p, uint64_t addr, size_t len)
{
	ssize_t n;

	if (p->text_len && addr >= p->text_at && addr + len <= p->text_at + p->text_len)
		return p->text + (addr - p->text_at);
	p->text_len = 0;
	if (!flush_text(p))
		return NULL;
	p->text_at = addr & ~UINT64_C(4095);
	n = pread(p->mem, p->text, sizeof(p->text), (off_t)p->text_at);
	if (n < 0 || addr + len > p->text_at + (uint64_t)n)
		return NULL;
	p->text_len = (size_t)n;
	return p->text + (addr - p->text_at);
}

static void change_text(struct patcher *p, uint64_t addr, const uint8_t *bytes, size_t len)
{
	size_t at = (size_t)(addr - p->text_at);

	memcpy(p->text + at, bytes, len);
	if (!p->changed_to || at < p->changed_from)
		p->changed_from = at;
	if (at + len > p->changed_to)
		p->changed_to = at + len;
}

void patcher_close(struct patcher *p)
{
	/* With half of a change it cannot go on; it is as good as gone then anyway. */
	if (!flush_text(p) || !flush_stubs(p))
		(void)kill(p->t->pid, SIGKILL);
	(void)close(p->mem); /* what was written is written */
}

/* Room for a stub near the address; gathered ones of another area are written. */
static bool find_room(struct patcher *p, uint64_t near)
{
	struct stub_area *area = patcher_area_near(p->tr->agent, p->t, near, false);

	if (!area)
		return false;
	if ((area != p->area || p->stubs_len + SITE_STUB_MAX_BYTES > sizeof(p->stubs)) &&
	    !flush_stubs(p))
		return false;
	p->area = area;
	if (!p->stubs_len)
		p->stubs_at = area->start + area->used_bytes;
	return true;
}

bool patcher_change(struct patcher *p, const struct site *s, uint64_t syscall)
{
	uint64_t window = syscall - s->window_bytes, at;
	size_t len = s->window_bytes + 2u;
	uint8_t jump[SITE_JUMP_BYTES];
	const uint8_t *now = look_at_text(p, window, len);

	if (!now || memcmp(now, s->bytes, s->window_bytes) ||
	    memcmp(now + s->window_bytes, "\x0f\x05", 2))
		return true; /* another file, or changed already */
	if (!find_room(p, window))
		return false;
	at = p->stubs_at + p->stubs_len;
	memset(p->stubs + p->stubs_len, 0, SITE_STUB_MAX_BYTES);
	len = site_put_stub(s, syscall, at, (uint32_t)outlive_entry(p->tr->agent),
			    p->stubs + p->stubs_len);
	if (!len || !site_put_jump(window, at, jump))
		return false;
	len = (len + 15) / 16 * 16;
	p->stubs_len += (uint32_t)len;
	p->area->used_bytes += (uint32_t)len;
	change_text(p, window, jump, sizeof(jump));
	if (s->pad_bytes) {
		site_put_hop(jump);
		change_text(p, window + s->pad_bytes, jump, SITE_HOP_BYTES);
	}
	return true;
}
