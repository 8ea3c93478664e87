/* SPDX-License-Identifier: MIT */
/*
 * Address spaces, as far as they hold maps of files. A region is a run of
 * addresses; several may come from one mmap. Regions are sorted by address in an
 * array that spaces share after a fork until one of them changes it.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>

#include "base/banned.h"
#include "fsmodel/tables.h"

#define PAGE_BYTES 4096u
#define REGIONS_MAX 65536u /* vm.max_map_count has about the same default */

struct file_map {
	struct res res; /* RES_MAP */
	struct inode *inode;
	uint32_t refs; /* regions */
	uint64_t offset; /* in the file, of its beginning */
	bool shared;
	bool writable; /* was so at some time */
};

struct region {
	uint64_t start, end;
	uint64_t offset; /* in the file */
	struct file_map *map;
};

struct regions {
	uint32_t refs, nr, cap;
	struct region items[];
};

struct space {
	uint32_t refs; /* processes */
	struct regions *regions; /* NULL: none */
	struct ids aio; /* context id -> struct aio_context */
};

struct space *space_new(void)
{
	struct space *s = xcalloc(1, sizeof(*s));

	s->refs = 1;
	return s;
}

struct space *space_ref(struct space *s)
{
	s->refs++;
	return s;
}

/* Contexts of asynchronous requests are not inherited. */
struct space *space_fork(struct space *from)
{
	struct space *s = space_new();

	s->regions = from->regions;
	if (s->regions)
		s->regions->refs++;
	return s;
}

struct ids *space_aio(struct space *s)
{
	return &s->aio;
}

static void map_unref(struct call *c, struct fsmodel *m, struct file_map *map)
{
	if (--map->refs)
		return;
	if (c)
		touch_use(c, &map->res, TOUCH_DELETE);
	inode_unref(m, map->inode);
	res_bury(m, &map->res, NULL);
}

/* What a map that goes, or is written back, means for its file. */
static void touch_written(struct call *c, const struct file_map *map, uint64_t from, uint64_t to)
{
	if (map->shared && map->writable)
		touch_add(c, &map->inode->res, TOUCH_WRITE, from, to);
}

static void regions_drop(struct call *c, struct fsmodel *m, struct regions *r)
{
	uint32_t n;

	if (!r || --r->refs)
		return;
	for (n = 0; n < r->nr; n++) {
		const struct region *g = &r->items[n];

		if (c)
			touch_written(c, g->map, g->offset, g->offset + (g->end - g->start));
		map_unref(c, m, g->map);
	}
	free(r);
}

void space_clear(struct call *c, struct fsmodel *m, struct space *s)
{
	regions_drop(c, m, s->regions);
	s->regions = NULL;
	aio_clear(c, m, &s->aio);
}

void space_drop(struct call *c, struct fsmodel *m, struct space *s)
{
	if (--s->refs)
		return;
	space_clear(c, m, s);
	ids_release(&s->aio);
	free(s);
}

/* An array of one's own, with room for two more. */
static struct regions *regions_own(struct space *s)
{
	struct regions *r = s->regions;
	uint32_t nr = r ? r->nr : 0, cap = r ? r->cap : 0, n;
	bool shared = r && r->refs > 1;

	if (r && !shared && nr + 2 <= cap)
		return r;
	cap = nr + 2 > cap ? (nr + 2) * 2 : cap;
	if (!shared) {
		r = xrealloc(r, sizeof(*r) + cap * sizeof(r->items[0]));
		r->nr = nr;
	} else {
		struct regions *from = r;

		r = xmalloc(sizeof(*r) + cap * sizeof(r->items[0]));
		r->nr = nr;
		memcpy(r->items, from->items, nr * sizeof(r->items[0]));
		for (n = 0; n < nr; n++)
			r->items[n].map->refs++;
		from->refs--;
	}
	r->refs = 1;
	r->cap = cap;
	s->regions = r;
	return r;
}

/* The first region that ends behind the address. */
static uint32_t find_region(const struct regions *r, uint64_t addr)
{
	uint32_t low = 0, high = r ? r->nr : 0;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (r->items[middle].end > addr)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

static bool overlaps(const struct regions *r, uint64_t start, uint64_t end)
{
	uint32_t n = find_region(r, start);

	return r && n < r->nr && r->items[n].start < end;
}

static void insert_region(struct regions *r, uint32_t at, const struct region *g)
{
	memmove(&r->items[at + 1], &r->items[at], (r->nr - at) * sizeof(*g));
	r->items[at] = *g;
	r->nr++;
}

/* What lies in [start, end) goes. */
static void unmap(struct call *c, struct space *s, uint64_t start, uint64_t end)
{
	struct regions *r;
	uint32_t at, last;

	if (!overlaps(s->regions, start, end))
		return;
	r = regions_own(s);
	at = find_region(r, start);
	if (r->items[at].start < start) {
		struct region rest = r->items[at];

		if (rest.end > end) {
			/* A hole in its middle. */
			touch_use(c, &rest.map->res, TOUCH_USE);
			touch_written(c, rest.map, rest.offset + (start - rest.start),
				      rest.offset + (end - rest.start));
			rest.offset += end - rest.start;
			rest.start = end;
			rest.map->refs++;
			r->items[at].end = start;
			insert_region(r, at + 1, &rest);
			return;
		}
		touch_use(c, &rest.map->res, TOUCH_USE);
		touch_written(c, rest.map, rest.offset + (start - rest.start),
			      rest.offset + (rest.end - rest.start));
		r->items[at].end = start;
		at++;
	}
	for (last = at; last < r->nr && r->items[last].end <= end; last++) {
		const struct region *g = &r->items[last];

		touch_use(c, &g->map->res, TOUCH_USE);
		touch_written(c, g->map, g->offset, g->offset + (g->end - g->start));
		map_unref(c, c->m, g->map);
	}
	if (last < r->nr && r->items[last].start < end) {
		struct region *g = &r->items[last];

		touch_use(c, &g->map->res, TOUCH_USE);
		touch_written(c, g->map, g->offset, g->offset + (end - g->start));
		g->offset += end - g->start;
		g->start = end;
	}
	memmove(&r->items[at], &r->items[last], (r->nr - last) * sizeof(r->items[0]));
	r->nr -= last - at;
}

static uint64_t page_up(uint64_t n)
{
	return n > UINT64_MAX - (PAGE_BYTES - 1)
		       ? UINT64_MAX & ~(uint64_t)(PAGE_BYTES - 1)
		       : (n + PAGE_BYTES - 1) & ~(uint64_t)(PAGE_BYTES - 1);
}

/* [start, end) of a call; false when it is empty or wraps. */
static bool range_of(uint64_t addr, uint64_t length, uint64_t *ret_end)
{
	length = page_up(length);
	if (!length || addr > UINT64_MAX - length)
		return false;
	*ret_end = addr + length;
	return true;
}

static void add_ref(struct call *c, struct value *where, const struct region *g, uint64_t addr,
		    bool made)
{
	uint64_t offset = g->offset - g->map->offset + (addr > g->start ? addr - g->start : 0);

	VEC_PUSH(&c->facts->maps, ((struct map_ref){ .where = where,
						     .map = &g->map->res,
						     .offset_bytes = offset,
						     .made = made }));
}

/* The first map in the range is what the address means. */
static void refer(struct call *c, struct value *where, uint64_t addr, uint64_t end)
{
	const struct regions *r = c->proc->space->regions;
	uint32_t n = find_region(r, addr);

	if (!c->quiet && r && n < r->nr && r->items[n].start < end)
		add_ref(c, where, &r->items[n], addr, false);
}

/* mmap. */

static uint64_t map_offset(const struct call *c)
{
	uint64_t offset = (uint64_t)value_int_or(arg_at(c, 5), 0);

	return c->ev->row->id == SC_mmap2 ? offset * PAGE_BYTES : offset;
}

static struct outcome ask_mmap(struct call *c)
{
	uint64_t length = (uint64_t)value_int_or(arg_at(c, 1), 0);
	uint64_t prot = (uint64_t)value_int_or(arg_at(c, 2), 0);
	uint64_t flags = (uint64_t)value_int_or(arg_at(c, 3), 0);
	unsigned int access;
	struct inode *i;

	c->any_ret = true;
	if (flags & MAP_FIXED_NOREPLACE)
		c->unsure = true; /* memory of no file may lie there */
	if (flags & MAP_ANONYMOUS)
		return length ? succeeds(0) : fails(EINVAL);
	if (map_offset(c) % PAGE_BYTES)
		return fails(EINVAL);
	c->fd = fd_usable(c, value_int_or(arg_at(c, 4), -1));
	if (!c->fd)
		return fails(EBADF);
	if (!length)
		return fails(EINVAL);
	i = fd_inode(c, c->fd, S_IFREG);
	if (!i) {
		/* Rings and other objects can be mapped too; nothing of that is storage. */
		c->unsure = true;
		return succeeds(0);
	}
	access = c->fd->open->flags & O_ACCMODE;
	if ((flags & MAP_TYPE) == 0)
		return fails(EINVAL);
	if (access == O_WRONLY || access == 3 ||
	    ((flags & MAP_TYPE) != MAP_PRIVATE && prot & PROT_WRITE && access != O_RDWR))
		return fails(EACCES);
	if (i->type == S_IFDIR)
		return fails(ENODEV);
	return succeeds(0);
}

static bool has_room(struct call *c, const struct regions *r)
{
	if (r->nr < REGIONS_MAX)
		return true;
	contradict(c, CONTRADICTION_ARGUMENT, false, "no process can map more than %u times",
		   REGIONS_MAX);
	return false;
}

static void add_map(struct call *c, uint64_t start, uint64_t end)
{
	uint64_t flags = (uint64_t)value_int_or(arg_at(c, 3), 0);
	struct inode *i = c->fd->open->inode;
	struct space *s = c->proc->space;
	struct region g = { .start = start, .end = end, .offset = map_offset(c) };
	struct regions *r = regions_own(s);
	struct file_map *map;
	uint64_t to =
		g.offset > UINT64_MAX - (end - start) ? TOUCH_TO_END : g.offset + (end - start);

	if (!has_room(c, r))
		return;
	map = xcalloc(1, sizeof(*map));
	res_init(c->m, &map->res, RES_MAP);
	map->inode = i;
	inode_ref(i);
	map->refs = 1;
	map->offset = g.offset;
	map->shared = (flags & MAP_TYPE) != MAP_PRIVATE;
	map->writable = value_int_or(arg_at(c, 2), 0) & PROT_WRITE;
	g.map = map;
	insert_region(r, find_region(r, start), &g);
	touch_use(c, &map->res, TOUCH_CREATE);
	if (!i->special)
		touch_add(c, &i->res, TOUCH_READ | (map->shared && map->writable ? TOUCH_WRITE : 0),
			  g.offset, to);
	add_ref(c, NULL, &g, start, true);
}

static void apply_mmap(struct call *c)
{
	uint64_t start = (uint64_t)c->m->tables->result.ret;
	uint64_t length = (uint64_t)value_int_or(arg_at(c, 1), 0), end;

	if (c->m->options.execute || !range_of(start, length, &end))
		return;
	/* A fixed address replaces what is there; any other is free. */
	unmap(c, c->proc->space, start, end);
	if (c->fd && c->fd->open->inode)
		add_map(c, start, end);
}

const struct call_row model_mmap = { ask_mmap, apply_mmap, NULL };
const struct call_row model_mmap2 = { ask_mmap, apply_mmap, NULL };

/* Calls on a range of addresses: n1 and n2 are its ends. */

static struct outcome ask_range(struct call *c)
{
	c->n1 = value_addr_or0(arg_at(c, 0));
	c->unsure = true;
	if (!range_of(c->n1, (uint64_t)value_int_or(arg_at(c, 1), 0), &c->n2)) {
		c->n2 = c->n1;
		return succeeds(0);
	}
	refer(c, arg_at(c, 0), c->n1, c->n2);
	return succeeds(0);
}

static void apply_munmap(struct call *c)
{
	if (c->n2 > c->n1)
		unmap(c, c->proc->space, c->n1, c->n2);
}

const struct call_row model_munmap = { ask_range, apply_munmap, NULL };

/* Each map in the range, and which bytes of its file. */
static void each_in_range(struct call *c, uint32_t how)
{
	const struct regions *r = c->proc->space->regions;
	uint32_t n;

	for (n = find_region(r, c->n1); r && n < r->nr && r->items[n].start < c->n2; n++) {
		const struct region *g = &r->items[n];
		uint64_t from = c->n1 > g->start ? c->n1 : g->start;
		uint64_t to = c->n2 < g->end ? c->n2 : g->end;

		touch_use(c, &g->map->res, TOUCH_USE);
		if (how & TOUCH_WRITE)
			touch_written(c, g->map, g->offset + (from - g->start),
				      g->offset + (to - g->start));
		if (how & TOUCH_READ)
			touch_add(c, &g->map->inode->res, TOUCH_READ, g->offset + (from - g->start),
				  g->offset + (to - g->start));
	}
}

static void apply_msync(struct call *c)
{
	each_in_range(c, TOUCH_WRITE);
}

static void apply_advice(struct call *c)
{
	int64_t advice = value_int_or(arg_at(c, 2), 0);

	/* MADV_WILLNEED, and what populates */
	each_in_range(c, advice == 3 || advice == 22 || advice == 23 ? TOUCH_READ : 0);
	if (advice == 9) /* MADV_REMOVE punches a hole */
		each_in_range(c, TOUCH_WRITE);
}

static void apply_mlock(struct call *c)
{
	each_in_range(c, TOUCH_READ);
}

static void apply_mprotect(struct call *c)
{
	const struct regions *r = c->proc->space->regions;
	uint32_t n;

	if (value_int_or(arg_at(c, 2), 0) & PROT_WRITE) {
		for (n = find_region(r, c->n1); r && n < r->nr && r->items[n].start < c->n2; n++)
			r->items[n].map->writable = true;
	}
	each_in_range(c, TOUCH_WRITE);
}

const struct call_row model_msync = { ask_range, apply_msync, NULL };
const struct call_row model_madvise = { ask_range, apply_advice, NULL };
const struct call_row model_mlock = { ask_range, apply_mlock, NULL };
const struct call_row model_mlock2 = { ask_range, apply_mlock, NULL };
const struct call_row model_mprotect = { ask_range, apply_mprotect, NULL };
const struct call_row model_pkey_mprotect = { ask_range, apply_mprotect, NULL };

/* mremap. */

static struct outcome ask_mremap(struct call *c)
{
	c->any_ret = true;
	return ask_range(c);
}

static void apply_mremap(struct call *c)
{
	uint64_t new_size = (uint64_t)value_int_or(arg_at(c, 2), 0), end, copied;
	uint64_t to = (uint64_t)c->m->tables->result.ret;
	struct space *s = c->proc->space;
	struct regions *r = s->regions;
	uint32_t n = find_region(r, c->n1);
	struct region g;

	if (c->m->options.execute || !range_of(to, new_size, &end))
		return;
	if (!r || n >= r->nr || r->items[n].start > c->n1) {
		if (to != c->n1)
			unmap(c, s, to, end); /* memory of no file moves over it */
		return;
	}
	g = r->items[n];
	/* It may be the last region of its map while it is on the way. */
	g.map->refs++;
	g.offset += c->n1 - g.start;
	copied = value_int_or(arg_at(c, 1), 0) ? c->n2 - c->n1 : 0;
	if (copied && !(value_int_or(arg_at(c, 3), 0) & 4)) /* MREMAP_DONTUNMAP */
		unmap(c, s, c->n1, c->n2);
	unmap(c, s, to, end);
	g.start = to;
	g.end = end;
	r = regions_own(s);
	if (has_room(c, r))
		insert_region(r, find_region(r, to), &g);
	else
		map_unref(c, c->m, g.map);
	touch_use(c, &g.map->res, TOUCH_USE);
	add_ref(c, NULL, &g, to, false);
}

const struct call_row model_mremap = { ask_mremap, apply_mremap, NULL };

/* A write of what is behind the addresses: part of one map of a process, which need not be the thread's. */
void store_in_map(struct call *c)
{
	const struct process *p = process_by_pid(c->m, (uint32_t)value_int_or(arg_at(c, 3), 0));
	uint64_t addr = value_addr_or0(arg_at(c, 0));
	uint64_t length = (uint64_t)value_int_or(arg_at(c, 1), 0), from;
	const struct regions *r = p ? p->space->regions : NULL;
	uint32_t n = find_region(r, addr);
	const struct region *g = r && n < r->nr ? &r->items[n] : NULL;

	if (!g || addr < g->start || length > g->end - addr || !g->map->shared) {
		contradict(c, CONTRADICTION_ARGUMENT, false,
			   "no shared map is there that could be stored to");
		return;
	}
	from = g->offset + (addr - g->start);
	g->map->writable = true;
	touch_use(c, &g->map->res, TOUCH_USE);
	touch_add(c, &g->map->inode->res, TOUCH_WRITE, from, from + length);
	add_ref(c, arg_at(c, 0), g, addr, false);
}
