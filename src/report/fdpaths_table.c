/* SPDX-License-Identifier: MIT */
#include <stdlib.h>
#include <string.h>

#include "base/banned.h"
#include "base/mem.h"
#include "report/fdpaths_inside.h"

/* The kernel's own limit, fs.nr_open, unless somebody raised it. */
#define FD_MAX (1 << 20)

bool take_memory(struct fdpaths *p, size_t bytes)
{
	if (bytes > FDPATHS_MAX_BYTES - p->used_bytes) {
		p->nr_forgotten++;
		return false;
	}
	p->used_bytes += bytes;
	return true;
}

struct fd_file *file_new(struct fdpaths *p, const void *path, size_t len)
{
	struct fd_file *f;

	if (len > FDPATHS_PATH_MAX)
		len = FDPATHS_PATH_MAX;
	if (!take_memory(p, sizeof(*f) + len + 1))
		return NULL;
	f = xmalloc(sizeof(*f) + len + 1);
	*f = (struct fd_file){ .refs = 1, .path_len = (uint32_t)len };
	memcpy(f->path, path, len);
	f->path[len] = 0;
	return f;
}

struct fd_file *file_get(struct fd_file *f)
{
	if (f)
		f->refs++;
	return f;
}

void file_put(struct fdpaths *p, struct fd_file *f)
{
	if (!f || --f->refs)
		return;
	p->used_bytes -= sizeof(*f) + f->path_len + 1;
	free(f);
}

struct slot *slot_find(const struct table *t, int64_t fd)
{
	size_t page;

	if (!t || fd < 0 || fd >= FD_MAX)
		return NULL;
	page = (size_t)fd / PAGE_SLOTS;
	if (page >= t->nr_pages || !t->pages[page])
		return NULL;
	return &t->pages[page]->slots[fd % PAGE_SLOTS];
}

static bool pages_grow(struct fdpaths *p, struct table *t, size_t nr)
{
	size_t more = nr - t->nr_pages;

	if (!take_memory(p, more * sizeof(*t->pages)))
		return false;
	t->pages = xrealloc(t->pages, nr * sizeof(*t->pages));
	memset(t->pages + t->nr_pages, 0, more * sizeof(*t->pages));
	t->nr_pages = (uint32_t)nr;
	return true;
}

static struct slot *slot_make(struct fdpaths *p, struct table *t, int64_t fd)
{
	size_t page;

	if (fd < 0 || fd >= FD_MAX)
		return NULL;
	page = (size_t)fd / PAGE_SLOTS;
	if (page >= t->nr_pages && !pages_grow(p, t, page + 1))
		return NULL;
	if (!t->pages[page]) {
		if (!take_memory(p, sizeof(struct page)))
			return NULL;
		t->pages[page] = xcalloc(1, sizeof(struct page));
	}
	return &t->pages[page]->slots[fd % PAGE_SLOTS];
}

void slot_set(struct fdpaths *p, struct table *t, int64_t fd, struct fd_file *f, uint64_t when_ns)
{
	struct slot *slot = f ? slot_make(p, t, fd) : slot_find(t, fd);

	if (!slot || when_ns < slot->since_ns) {
		file_put(p, f);
		return;
	}
	file_put(p, slot->before);
	slot->before = slot->now;
	slot->now = f;
	slot->since_ns = when_ns;
	slot->cloexec = false;
}

void set_cloexec(struct table *t, int64_t fd, bool cloexec)
{
	struct slot *slot = slot_find(t, fd);

	if (slot)
		slot->cloexec = cloexec;
}

struct table *table_new(void)
{
	struct table *t = xcalloc(1, sizeof(*t));

	t->refs = 1;
	return t;
}

static void page_free(struct fdpaths *p, struct page *page)
{
	unsigned int i;

	if (!page)
		return;
	for (i = 0; i < PAGE_SLOTS; i++) {
		file_put(p, page->slots[i].now);
		file_put(p, page->slots[i].before);
	}
	p->used_bytes -= sizeof(*page);
	free(page);
}

void table_put(struct fdpaths *p, struct table *t)
{
	uint32_t i;

	if (!t || --t->refs)
		return;
	for (i = 0; i < t->nr_pages; i++)
		page_free(p, t->pages[i]);
	p->used_bytes -= t->nr_pages * sizeof(*t->pages);
	free(t->pages);
	free(t);
}

void table_copy(struct fdpaths *p, struct table *to, const struct table *from)
{
	TABLE_EACH(from, slot, fd)
	{
		struct slot *copy;

		if (!slot->now)
			continue;
		copy = slot_make(p, to, fd);
		if (!copy || copy->since_ns || copy->now)
			continue;
		copy->now = file_get(slot->now);
		copy->since_ns = slot->since_ns;
		copy->cloexec = slot->cloexec;
	}
}

struct cwd *cwd_new(struct fd_file *dir)
{
	struct cwd *c = xmalloc(sizeof(*c));

	*c = (struct cwd){ .refs = 1, .dir = dir };
	return c;
}

void cwd_set(struct fdpaths *p, struct cwd *c, struct fd_file *dir)
{
	file_put(p, c->dir);
	c->dir = dir;
}

void cwd_put(struct fdpaths *p, struct cwd *c)
{
	if (!c || --c->refs)
		return;
	file_put(p, c->dir);
	free(c);
}
