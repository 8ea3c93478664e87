/* SPDX-License-Identifier: MIT */
/*
 * Texts: the sites of their files are looked for once, and those whose calls
 * the agent may record are patched in each process. A text is patched when the
 * kernel has mapped it at an execve, or when the process's own loader maps
 * it: in both cases nobody runs in it yet. What others map (an emulator, or a
 * tool that translates code) is not: they may read their texts as data.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "record/agent/inside.h"
#include "record/inproc/agent.h"

/* No text is larger; a file that claims to be is left alone. */
#define FILE_MAX_BYTES ((off_t)1 << 30)
/* How far a jump may go, with room for the text itself. */
#define REACH_BYTES (UINT64_C(0x7f000000))
#define LOWEST_ADDRESS UINT64_C(0x100000)

struct file_key {
	uint64_t dev, ino, size, mtime_s, mtime_ns;
};

static struct sites *sites_of(struct agent *a, int fd)
{
	struct file_key key = { 0 };
	struct sites *s;
	struct stat st;
	void **slot, *p;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size <= 0 ||
	    st.st_size > FILE_MAX_BYTES)
		return NULL;
	key = (struct file_key){ st.st_dev, st.st_ino, (uint64_t)st.st_size,
				 (uint64_t)st.st_mtim.tv_sec, (uint64_t)st.st_mtim.tv_nsec };
	slot = map_slot(&a->files, &key, sizeof(key));
	if (*slot)
		return *slot;
	*slot = s = xcalloc(1, sizeof(*s));
	p = mmap(NULL, (size_t)st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
	if (p == MAP_FAILED)
		return s;
	sites_find(p, (size_t)st.st_size, s);
	(void)munmap(p, (size_t)st.st_size);
	return s;
}

void agent_texts_release(struct agent *a)
{
	MAP_EACH (&a->files, e) {
		sites_release(e->value);
		free(e->value);
	}
	map_release(&a->files);
}

/* Stubs. */

static bool is_near(uint64_t a, uint64_t b)
{
	return a < b ? b - a < REACH_BYTES : a - b < REACH_BYTES;
}

struct map_line {
	uint64_t start, end, offset, ino;
	char perms[5];
	char path[PATH_MAX]; /* as the process sees it; or another word, or empty */
};

static bool parse_line(const char *line, struct map_line *ret)
{
	unsigned long long start, end, offset, ino;
	int at = 0;

	if (sscanf(line, "%llx-%llx %4s %llx %*x:%*x %llu %n", &start, &end, ret->perms, &offset,
		   &ino, &at) != 5)
		return false;
	(void)snprintf(ret->path, sizeof(ret->path), "%.*s", (int)strcspn(line + at, "\n"),
		       line + at);
	ret->start = start;
	ret->end = end;
	ret->offset = offset;
	ret->ino = ino;
	return true;
}

/* Calls back for each line; ends early when that returns false. */
static void each_map(const struct tracee *t, bool (*line)(void *of, const struct map_line *m),
		     void *of)
{
	char name[64], text[PATH_MAX + 128];
	struct map_line m;
	bool whole = true, go_on = true;
	FILE *f;

	(void)snprintf(name, sizeof(name), "/proc/%d/maps", (int)t->tid);
	f = fopen(name, "re");
	if (!f)
		return;
	while (go_on && fgets(text, sizeof(text), f)) {
		/* The rest of a long line is a part of a file's name. */
		if (whole && parse_line(text, &m))
			go_on = line(of, &m);
		whole = strchr(text, '\n') != NULL;
	}
	(void)fclose(f); /* only read from */
}

/* A gap near a text, right below what is mapped above it: nothing grows down into there. */
struct gap_search {
	uint64_t near, last_end, best;
};

static bool try_gap(void *of, const struct map_line *m)
{
	struct gap_search *g = of;
	uint64_t at = m->start - AREA_BYTES_OF_STUBS;

	if (m->start >= g->last_end + 2 * AREA_BYTES_OF_STUBS && strncmp(m->path, "[stack", 6) &&
	    at >= LOWEST_ADDRESS && is_near(at, g->near) &&
	    (!g->best || llabs((int64_t)(at - g->near)) < llabs((int64_t)(g->best - g->near))))
		g->best = at;
	g->last_end = m->end;
	return true;
}

static struct stub_area *new_area(struct tracee *t, uint64_t near)
{
	struct agent_space *space = t->agent->space;
	struct gap_search g = { .near = near };
	struct remote r = { t, AGENT_ADDRESS(agent_syscall) };
	struct stub_area *area;

	if (space->nr_areas == AREAS_MAX_OF_STUBS)
		return NULL;
	each_map(t, try_gap, &g);
	if (!g.best || remote_call(&r, SYS_mmap,
				   (uint64_t[]){ g.best, AREA_BYTES_OF_STUBS, PROT_READ | PROT_EXEC,
						 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE,
						 UINT64_MAX, 0 }) != (int64_t)g.best)
		return NULL;
	area = &space->areas[space->nr_areas++];
	*area = (struct stub_area){ .start = g.best };
	return area;
}

static struct stub_area *area_near(struct tracee *t, uint64_t near)
{
	struct agent_space *space = t->agent->space;
	unsigned int i;

	for (i = 0; i < space->nr_areas; i++) {
		struct stub_area *a = &space->areas[i];

		if (is_near(a->start, near) &&
		    a->used_bytes + SITE_STUB_MAX_BYTES <= AREA_BYTES_OF_STUBS)
			return a;
	}
	return new_area(t, near);
}

/* Patching. */

static bool is_for_agent(const struct agent *a, const struct site *s)
{
	const struct wire_rule *r;

	if (s->nr == SITE_NR_UNKNOWN)
		return true;
	if (s->nr >= WIRE_NR_CALLS)
		return false;
	for (r = &a->rules[s->nr]; !(r->flags & WIRE_RULE_USED); r = &a->rules[r->next]) {
		if (!r->next)
			return false;
	}
	return true;
}

static bool patch_site(struct tracee *t, const struct site *s, uint64_t syscall)
{
	uint8_t stub[SITE_STUB_MAX_BYTES], jump[SITE_JUMP_BYTES], now[SITE_WINDOW_MAX_BYTES + 2];
	uint64_t window = syscall - s->window_bytes, at;
	struct stub_area *area;
	size_t len;

	if (!remote_read(t, window, now, s->window_bytes + 2u) ||
	    memcmp(now, s->bytes, s->window_bytes) || memcmp(now + s->window_bytes, "\x0f\x05", 2))
		return true; /* another file, or changed already */
	area = area_near(t, window);
	if (!area)
		return false;
	at = area->start + area->used_bytes;
	len = site_put_stub(s, syscall, at, (uint32_t)AGENT_ADDRESS(agent_entry), stub);
	if (!len || !site_put_jump(window, at, jump) || !remote_write(t, at, stub, len))
		return false;
	area->used_bytes += (uint32_t)(len + 15) / 16 * 16;
	return remote_write(t, window, jump, sizeof(jump));
}

void agent_texts_patch(struct tracer *tr, struct tracee *t, int fd, uint64_t start, uint64_t len,
		       uint64_t offset)
{
	const struct sites *s = sites_of(tr->agent, fd);
	size_t i;

	for (i = 0; s && i < s->list.len; i++) {
		const struct site *site = &s->list.items[i];

		if (site->window < offset || site->syscall + 2 > offset + len)
			continue;
		if (is_for_agent(tr->agent, site) &&
		    !patch_site(t, site, start + (site->syscall - offset)))
			return; /* what is not patched, the tracer sees */
	}
}

/* What the kernel has mapped: the program, and its loader. */
struct image_search {
	struct map_line texts[8];
	unsigned int nr;
};

static bool note_text(void *of, const struct map_line *m)
{
	struct image_search *s = of;

	if (m->perms[2] == 'x' && m->ino && s->nr < ARRAY_LEN(s->texts))
		s->texts[s->nr++] = *m;
	return true;
}

static int open_text(const struct tracee *t, const struct map_line *m)
{
	char name[PATH_MAX + 64];

	if (m->path[0] != '/')
		return -1;
	(void)snprintf(name, sizeof(name), "/proc/%d/root%s", (int)t->pid, m->path);
	return open(name, O_RDONLY | O_CLOEXEC);
}

void agent_texts_patch_image(struct tracer *tr, struct tracee *t)
{
	struct image_search s = { .nr = 0 };
	char name[64];
	struct stat exe = { 0 }, st;
	unsigned int i;

	(void)snprintf(name, sizeof(name), "/proc/%d/exe", (int)t->pid);
	(void)stat(name, &exe); /* or no text is the program's */
	each_map(t, note_text, &s);
	for (i = 0; i < s.nr; i++) {
		const struct map_line *m = &s.texts[i];
		int fd = open_text(t, m);

		if (fd < 0)
			continue;
		if (!fstat(fd, &st) && st.st_ino == m->ino) {
			if (st.st_ino != exe.st_ino || st.st_dev != exe.st_dev) {
				t->agent->space->loader_start = m->start;
				t->agent->space->loader_end = m->end;
			}
			agent_texts_patch(tr, t, fd, m->start, m->end - m->start, m->offset);
		}
		(void)close(fd);
	}
}
