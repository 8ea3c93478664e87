/* SPDX-License-Identifier: MIT */
/*
 * Texts: the sites of their files are looked for once, when a call comes from there,
 * and those whose calls the agent may record are patched in each process.
 *
 * When the kernel has mapped a text at an execve, or the process's own loader maps
 * it, nobody runs in it yet: those sites are patched that any process of the
 * recording has used. A call from another one stops, once, and then its site is
 * patched too: most processes use few, and live shortly. That is possible while
 * the process has one thread, which is behind the window of its own call; before
 * it makes a second one, and before its first signal handler runs, all the others are
 * patched. What others than the loader map (an emulator, or a tool that translates
 * code) is not: they may read their texts as data.
 */
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
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
/* Well below the usual limit of 1024 descriptors. */
#define FILES_MAX 256u
#define TEXTS_MAX 256u

struct file_key {
	uint64_t dev, ino, size, mtime_s, mtime_ns;
};

/* Of a file that is mapped as text. It is looked through when a call comes from it: few do. */
struct text_file {
	struct sites sites;
	int fd; /* -1: it has been, or cannot be */
	off_t size_bytes;
};

static struct text_file *file_of(struct agent *a, int fd)
{
	struct file_key key = { 0 };
	struct text_file *f;
	struct stat st;
	void **slot;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size <= 0 ||
	    st.st_size > FILE_MAX_BYTES)
		return NULL;
	key = (struct file_key){ st.st_dev, st.st_ino, (uint64_t)st.st_size,
				 (uint64_t)st.st_mtim.tv_sec, (uint64_t)st.st_mtim.tv_nsec };
	slot = map_slot(&a->files, &key, sizeof(key));
	if (*slot)
		return *slot;
	*slot = f = xcalloc(1, sizeof(*f));
	f->size_bytes = st.st_size;
	/* Beyond so many files calls are seen by the tracer. */
	f->fd = a->files.nr_live <= FILES_MAX ? fcntl(fd, F_DUPFD_CLOEXEC, 0) : -1;
	f->sites.is_blind = f->fd < 0;
	return f;
}

static void search(struct text_file *f)
{
	void *p;

	if (f->fd < 0)
		return;
	f->sites.is_blind = true;
	p = mmap(NULL, (size_t)f->size_bytes, PROT_READ, MAP_PRIVATE, f->fd, 0);
	if (p != MAP_FAILED) {
		sites_find(p, (size_t)f->size_bytes, &f->sites);
		(void)munmap(p, (size_t)f->size_bytes);
	}
	(void)close(f->fd); /* only read from */
	f->fd = -1;
}

void agent_texts_release(struct agent *a)
{
	MAP_EACH (&a->files, e) {
		struct text_file *f = e->value;

		if (f->fd >= 0)
			(void)close(f->fd); /* only read from */
		sites_release(&f->sites);
		free(f);
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

static struct stub_area *new_area(const struct agent *a, struct tracee *t, uint64_t near)
{
	struct agent_space *space = t->agent->space;
	struct gap_search g = { .near = near };
	struct remote r = { t, outlive_remote(a) };
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

/* may_map: the thread is where it can make a call for us, which is not within one. */
static struct stub_area *area_near(const struct agent *a, struct tracee *t, uint64_t near,
				   bool may_map)
{
	struct agent_space *space = t->agent->space;
	unsigned int i;

	for (i = 0; i < space->nr_areas; i++) {
		struct stub_area *area = &space->areas[i];

		if (is_near(area->start, near) &&
		    area->used_bytes + SITE_STUB_MAX_BYTES <= AREA_BYTES_OF_STUBS)
			return area;
	}
	return may_map ? new_area(a, t, near) : NULL;
}

/* Patching. */

static bool is_for_agent(const struct agent *a, const struct site *s)
{
	return a->netless || s->nr == SITE_NR_UNKNOWN ||
	       (s->nr < WIRE_NR_CALLS && a->is_taken[s->nr]);
}

/* What is being written into a stopped process: stubs are gathered, since they stand side by side. */
struct patcher {
	struct tracer *tr;
	struct tracee *t;
	int mem; /* of the process */
	uint64_t ip; /* where its thread is, if that is not in a call */
	struct stub_area *area;
	uint64_t stubs_at; /* where those that are gathered begin */
	uint32_t stubs_len;
	uint8_t stubs[8192];
};

static bool open_patcher(struct patcher *p, struct tracer *tr, struct tracee *t, uint64_t ip)
{
	char name[64];

	p->tr = tr;
	p->t = t;
	p->ip = ip;
	p->area = NULL;
	p->stubs_len = 0;
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
	bool done = !p->stubs_len || write_at(p, p->stubs_at, p->stubs, p->stubs_len);

	p->stubs_len = 0;
	return done;
}

static void close_patcher(struct patcher *p)
{
	/* With jumps to stubs that are not there it cannot go on; it is as good as gone then anyway. */
	if (!flush_stubs(p))
		(void)kill(p->t->pid, SIGKILL);
	(void)close(p->mem); /* what was written is written */
}

/* Room for a stub near the address; gathered ones of another area are written. */
static bool find_room(struct patcher *p, uint64_t near)
{
	struct stub_area *area = area_near(p->tr->agent, p->t, near, false);

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

/* The jump goes in only when its stub is there: false, and this process gets no more of them. */
static bool patch_site(struct patcher *p, const struct site *s, uint64_t syscall)
{
	uint8_t jump[SITE_JUMP_BYTES], now[SITE_WINDOW_MAX_BYTES + 2];
	uint64_t window = syscall - s->window_bytes, at;
	size_t len = s->window_bytes + 2u;

	if (pread(p->mem, now, len, (off_t)window) != (ssize_t)len ||
	    memcmp(now, s->bytes, s->window_bytes) || memcmp(now + s->window_bytes, "\x0f\x05", 2))
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
	/* Without us nobody would write the stub any more. */
	if (p->tr->agent->outlives && !flush_stubs(p))
		return false;
	return write_at(p, window, jump, sizeof(jump));
}

/*
 * Whether the window can be replaced although the program may have run in it:
 * of one instruction always, for it has been executed or not. In a longer one a
 * signal may have stopped the thread, whose handler makes calls now.
 */
static bool may_patch(const struct patcher *p, const struct site *s, uint64_t syscall)
{
	if (p->ip > syscall - s->window_bytes && p->ip < syscall)
		return false;
	/* Without a net only texts are changed that nobody has run in, or no handler above. */
	return s->nr_insns == 1 || p->tr->agent->netless || !p->t->agent->space->signalled;
}

/* Those sites of a text that are not patched yet, and of which anything is known to use them. */
static bool patch_text(struct patcher *p, struct agent_text *x, bool all)
{
	size_t i;

	for (i = x->first; i < x->first + x->nr; i++) {
		const struct site *s = &x->file->sites.list.items[i];
		uint64_t syscall = x->start + (s->syscall - x->offset);

		if ((!all && !s->used) || x->patched[i - x->first] || !may_patch(p, s, syscall) ||
		    !is_for_agent(p->tr->agent, s))
			continue;
		if (!patch_site(p, s, syscall))
			return false; /* what is not patched, the tracer sees */
		x->patched[i - x->first] = true;
	}
	return true;
}

/* The sites whose windows and syscalls are in the text, once they are known. */
static void find_range(struct agent_text *x)
{
	const struct sites *s = &x->file->sites;
	uint64_t end = x->offset + (x->end - x->start);
	size_t i = 0;

	if (x->patched)
		return;
	while (i < s->list.len && s->list.items[i].window < x->offset)
		i++;
	x->first = i;
	while (i < s->list.len && s->list.items[i].syscall + 2 <= end)
		i++;
	x->nr = i - x->first;
	if (x->nr)
		x->patched = xcalloc(x->nr, sizeof(*x->patched));
}

static void patch_texts(struct tracer *tr, struct tracee *t, uint64_t ip, bool all)
{
	struct agent_space *space = t->agent->space;
	struct patcher p;
	size_t i;

	if (!space->texts.len || !open_patcher(&p, tr, t, ip))
		return;
	for (i = 0; i < space->texts.len; i++) {
		struct agent_text *x = &space->texts.items[i];

		search(x->file);
		find_range(x);
		if (!patch_text(&p, x, all))
			break;
	}
	close_patcher(&p);
}

/* The last one. False: not all of it that should be could be changed. */
static bool patch_new_text(struct tracer *tr, struct tracee *t, bool all)
{
	struct agent_space *space = t->agent->space;
	struct agent_text *x = &space->texts.items[space->texts.len - 1];
	struct patcher p;
	bool done;

	if (tr->agent->netless && !x->nr)
		return true;
	/* Later the thread may be within a call, and cannot make another one. */
	if (!area_near(tr->agent, t, x->start, true) || !open_patcher(&p, tr, t, 0))
		return false;
	done = patch_text(&p, x, all);
	close_patcher(&p);
	return done;
}

void agent_texts_patch(struct tracer *tr, struct tracee *t, int fd, uint64_t start, uint64_t len,
		       uint64_t offset)
{
	struct agent_text x = {
		.file = file_of(tr->agent, fd), .start = start, .end = start + len, .offset = offset
	};
	struct agent_space *space = t->agent->space;
	/* Nobody runs in it yet; later only a single thread can be kept out of the windows. */
	bool all = space->nr_threads > 1 || tr->agent->netless;

	if (x.file) {
		if (all)
			search(x.file);
		find_range(&x);
		VEC_PUSH(&space->texts, x);
	}
	if ((!x.file || x.file->sites.is_blind || !patch_new_text(tr, t, all)) &&
	    tr->agent->netless)
		agent_leave_calls(tr, t);
}

void agent_texts_patch_all(struct tracer *tr, struct tracee *t, uint64_t ip)
{
	if (t->agent->space->nr_threads == 1)
		patch_texts(tr, t, ip, true);
}

/* The text that an address is in, and (*ret) which of its sites that is, or its nr; NULL: none. */
static struct agent_text *find_site(struct agent_space *space, uint64_t syscall, size_t *ret)
{
	struct agent_text *x = space->texts.items;
	const struct site *list;
	size_t from, to, mid;
	uint64_t at;

	while (x < space->texts.items + space->texts.len &&
	       (syscall < x->start || syscall >= x->end))
		x++;
	if (x == space->texts.items + space->texts.len)
		return NULL;
	search(x->file);
	find_range(x);
	list = x->file->sites.list.items;
	at = syscall - x->start + x->offset;
	from = x->first;
	to = from + x->nr;
	while (from < to) {
		mid = from + (to - from) / 2;
		if (list[mid].syscall < at)
			from = mid + 1;
		else
			to = mid;
	}
	*ret = x->nr;
	if (from < x->first + x->nr && list[from].syscall == at)
		*ret = from - x->first;
	return x;
}

void agent_texts_patch_at(struct tracer *tr, struct tracee *t, uint64_t syscall)
{
	struct agent_space *space = t->agent->space;
	size_t i = 0;
	struct agent_text *x = find_site(space, syscall, &i);
	struct patcher p;

	if (!x || i == x->nr || x->patched[i])
		return;
	x->file->sites.list.items[x->first + i].used = true;
	if (space->nr_threads != 1 || !open_patcher(&p, tr, t, 0))
		return;
	(void)patch_text(&p, x, false);
	close_patcher(&p);
}

enum text_state agent_texts_state(struct tracer *tr, struct tracee *t, uint64_t syscall)
{
	size_t i = 0;
	const struct agent_text *x = find_site(t->agent->space, syscall, &i);

	if (!x)
		return TEXT_FOREIGN;
	if (i == x->nr)
		return TEXT_NO_SITE;
	if (x->patched[i])
		return TEXT_CHANGED;
	return is_for_agent(tr->agent, &x->file->sites.list.items[x->first + i]) ? TEXT_UNCHANGED
										 : TEXT_NOT_TAKEN;
}

struct name_search {
	uint64_t addr;
	char *ret;
};

static bool try_name(void *of, const struct map_line *m)
{
	struct name_search *s = of;

	if (s->addr < m->start || s->addr >= m->end)
		return true;
	if (m->ino)
		(void)snprintf(s->ret, AGENT_PLACE_MAX_BYTES, "%s+0x%llx", m->path,
			       (unsigned long long)(s->addr - m->start + m->offset));
	else
		(void)snprintf(s->ret, AGENT_PLACE_MAX_BYTES, "%s+0x%llx",
			       *m->path ? m->path : "[anonymous]", (unsigned long long)s->addr);
	return false;
}

void agent_texts_name(const struct tracee *t, uint64_t addr, char ret[AGENT_PLACE_MAX_BYTES])
{
	struct name_search s = { addr, ret };

	(void)snprintf(ret, AGENT_PLACE_MAX_BYTES, "[unknown]+0x%llx", (unsigned long long)addr);
	each_map(t, try_name, &s);
}

void agent_texts_copy(const struct agent_space *from, struct agent_space *to)
{
	size_t i;

	memset(&to->texts, 0, sizeof(to->texts));
	for (i = 0; i < from->texts.len; i++) {
		struct agent_text x = from->texts.items[i];

		if (x.nr) {
			x.patched = xmalloc(x.nr * sizeof(*x.patched));
			memcpy(x.patched, from->texts.items[i].patched, x.nr * sizeof(*x.patched));
		}
		VEC_PUSH(&to->texts, x);
	}
}

void agent_texts_forget(struct agent_space *space)
{
	size_t i;

	for (i = 0; i < space->texts.len; i++)
		free(space->texts.items[i].patched);
	VEC_RELEASE(&space->texts);
}

/* Texts that are mapped when the agent enters. */
struct image_search {
	VEC(struct map_line) texts;
};

static bool note_text(void *of, const struct map_line *m)
{
	struct image_search *s = of;

	if (m->perms[2] == 'x' && m->ino)
		VEC_PUSH(&s->texts, *m);
	return s->texts.len < TEXTS_MAX;
}

static int open_text(const struct tracee *t, const struct map_line *m)
{
	char name[PATH_MAX + 64];

	if (m->path[0] != '/')
		return -1;
	(void)snprintf(name, sizeof(name), "/proc/%d/root%s", (int)t->pid, m->path);
	return open(name, O_RDONLY | O_CLOEXEC);
}

/* At the execve what is not the program's is the loader's; later it is where the image began. */
static bool is_loader(const struct map_line *m, bool of_program, const struct agent_hope *hope)
{
	return !of_program && (!hope || (hope->first_ip >= m->start && hope->first_ip < m->end));
}

static bool was_loaded(const struct agent_space *space, const struct map_line *m,
		       const struct agent_hope *hope)
{
	unsigned int i;

	for (i = 0; i < hope->nr_maps; i++) {
		const struct hope_map *h = &hope->maps[i];

		if (m->start >= h->start && m->end <= h->start + h->len)
			return h->ip >= space->loader_start && h->ip < space->loader_end;
	}
	return false;
}

/* Those of the program and of its loader first: they say what the others are. */
static void patch_mapped(struct tracer *tr, struct tracee *t, const struct map_line *m,
			 const struct agent_hope *hope, bool loaded)
{
	struct agent_space *space = t->agent->space;
	int fd = loaded && !was_loaded(space, m, hope) ? -1 : open_text(t, m);
	struct stat exe = { 0 }, st;
	bool of_program;
	char name[64];

	if (fd < 0)
		return;
	(void)snprintf(name, sizeof(name), "/proc/%d/exe", (int)t->pid);
	(void)stat(name, &exe); /* or no text is the program's */
	if (!fstat(fd, &st) && st.st_ino == m->ino) {
		of_program = st.st_ino == exe.st_ino && st.st_dev == exe.st_dev;
		if (is_loader(m, of_program, hope) && !loaded) {
			space->loader_start = m->start;
			space->loader_end = m->end;
		}
		if (loaded || of_program || m->start == space->loader_start)
			agent_texts_patch(tr, t, fd, m->start, m->end - m->start, m->offset);
	}
	(void)close(fd);
}

void agent_texts_patch_image(struct tracer *tr, struct tracee *t, const struct agent_hope *hope)
{
	struct image_search s = { 0 };
	size_t i;

	each_map(t, note_text, &s);
	for (i = 0; i < s.texts.len; i++)
		patch_mapped(tr, t, &s.texts.items[i], hope, false);
	for (i = 0; hope && i < s.texts.len; i++)
		patch_mapped(tr, t, &s.texts.items[i], hope, true);
	VEC_RELEASE(&s.texts);
}

uint32_t agent_texts_site_nr(const struct agent_text *x, size_t i)
{
	return x->file->sites.list.items[x->first + i].nr;
}

uint64_t agent_texts_nr_left(const struct agent *a)
{
	uint64_t nr = 0;

	MAP_EACH (&a->files, e) {
		const struct text_file *f = e->value;

		nr += f->sites.nr_left;
	}
	return nr;
}

struct known_search {
	const struct agent_space *space;
	bool is_known;
};

static bool try_known(void *of, const struct map_line *m)
{
	struct known_search *s = of;
	size_t i;

	if (m->perms[2] != 'x' || !m->ino)
		return true;
	s->is_known = false;
	for (i = 0; i < s->space->texts.len && !s->is_known; i++) {
		const struct agent_text *x = &s->space->texts.items[i];

		s->is_known = m->start >= x->start && m->end <= x->end;
	}
	return s->is_known;
}

bool agent_texts_are_known(const struct tracee *t)
{
	struct known_search s = { .space = t->agent->space, .is_known = true };

	each_map(t, try_known, &s);
	return s.is_known;
}
