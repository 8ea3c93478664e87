/* SPDX-License-Identifier: MIT */
/*
 * Texts: the sites of their files are looked for once, when a call comes from there, if they are
 * not known from an earlier recording; and those whose calls the agent may record are
 * patched in each process.
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
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "record/agent/patcher.h"

/* No text is larger; a file that claims to be is left alone. */
#define FILE_MAX_BYTES ((off_t)1 << 30)
#define FILES_MAX 256u
/* Of these so many are kept open at most, and no larger a share of the descriptors that we may have. */
#define OPEN_FILES_MAX 64u
#define OPEN_FILES_SHARE 8
#define TEXTS_MAX 256u
/* A program that writes into its ring could tell of any number. */
#define NOTED_TEXTS_MAX 4096u

/* By the time of its last change, which nobody can choose. */
struct file_key {
	uint64_t dev, ino, size, ctime_s, ctime_ns;
};

/* Of a file that is mapped as text. It is looked through when a call comes from it: few do. */
struct text_file {
	struct sites sites;
	struct file_key id;
	struct site_key key;
	bool is_news; /* more is known than is stored */
	int fd; /* -1: it has been, or cannot be */
};

static struct file_key key_of(const struct stat *st)
{
	return (struct file_key){ st->st_dev, st->st_ino, (uint64_t)st->st_size,
				  (uint64_t)st->st_ctim.tv_sec, (uint64_t)st->st_ctim.tv_nsec };
}

/* Whether it is the file that it was when it was opened. */
static bool is_unchanged(const struct text_file *f)
{
	struct file_key now;
	struct stat st;

	if (fstat(f->fd, &st) < 0)
		return false;
	now = key_of(&st);
	return !memcmp(&now, &f->id, sizeof(now));
}

static void search(struct agent *a, struct text_file *f)
{
	if (f->fd < 0)
		return;
	f->is_news = sites_find_in_file(f->fd, (size_t)f->id.size, &f->sites);
	if (!f->is_news || !is_unchanged(f)) {
		sites_release(&f->sites);
		f->sites = (struct sites){ .is_blind = true };
		f->is_news = false;
	}
	(void)close(f->fd); /* only read from */
	f->fd = -1;
	a->nr_open_files--;
}

/* It can be looked through later, unless too many wait for that. */
static void keep_open(struct agent *a, struct text_file *f, int fd)
{
	struct rlimit limit;

	f->fd = fcntl(fd, F_DUPFD_CLOEXEC, 0);
	f->sites.is_blind = f->fd < 0;
	if (f->fd < 0)
		return;
	a->nr_open_files++;
	if (a->nr_open_files > OPEN_FILES_MAX ||
	    (!getrlimit(RLIMIT_NOFILE, &limit) &&
	     a->nr_open_files > limit.rlim_cur / OPEN_FILES_SHARE))
		search(a, f);
}

void agent_close_files(struct tracer *tr)
{
	if (!tr->agent || !tr->agent->nr_open_files)
		return;
	MAP_EACH (&tr->agent->files, e)
		search(tr->agent, e->value);
}

int agent_texts_open(struct tracer *tr, const struct tracee *t, const char *name)
{
	AUTO_CLOSE int fd = open(name, O_PATH | O_CLOEXEC);
	char self[64];
	struct stat st;

	/* By now it may be a FIFO, or on a file system that waits for us. */
	if (fd < 0 || fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) ||
	    !tree_may_open(tr->session->tree, t->tid, st.st_dev))
		return -1;
	(void)snprintf(self, sizeof(self), "/proc/self/fd/%d", fd);
	return open(self, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
}

static struct text_file *file_of(struct agent *a, int fd)
{
	struct file_key key;
	struct text_file *f;
	struct stat st;
	void **slot;

	if (fstat(fd, &st) < 0 || !S_ISREG(st.st_mode) || st.st_size <= 0 ||
	    st.st_size > FILE_MAX_BYTES)
		return NULL;
	key = key_of(&st);
	slot = map_slot(&a->files, &key, sizeof(key));
	if (*slot)
		return *slot;
	names_add_text(a, st.st_dev, st.st_ino);
	*slot = f = xcalloc(1, sizeof(*f));
	f->id = key;
	f->fd = -1;
	if (a->store) {
		site_store_key(fd, &st, &f->key);
		if (site_store_load(a->store, &f->key, &f->sites))
			return f;
	}
	/* Beyond so many files calls are seen by the tracer. */
	f->sites.is_blind = true;
	if (a->files.nr_live <= FILES_MAX)
		keep_open(a, f, fd);
	return f;
}

void agent_texts_release(struct agent *a)
{
	MAP_EACH (&a->files, e) {
		struct text_file *f = e->value;

		if (f->fd >= 0)
			(void)close(f->fd); /* only read from */
		if (a->store && f->is_news)
			site_store_save(a->store, &f->key, &f->sites);
		sites_release(&f->sites);
		free(f);
	}
	map_release(&a->files);
}

static bool is_for_agent(const struct agent *a, const struct site *s)
{
	return a->netless || s->nr == SITE_NR_UNKNOWN ||
	       (s->nr < WIRE_NR_CALLS && a->is_taken[s->nr]);
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
		if (!patcher_change(p, s, syscall))
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

	patcher_open(&p, tr, t, ip);
	for (i = 0; i < space->texts.len; i++) {
		struct agent_text *x = &space->texts.items[i];

		search(tr->agent, x->file);
		find_range(x);
		if (!patch_text(&p, x, all))
			break;
	}
	if (!patcher_close(&p) && tr->agent->netless)
		agent_leave_calls(tr, t);
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
	if (!patcher_area_near(tr->agent, t, x->start, true))
		return false;
	patcher_open(&p, tr, t, 0);
	done = patch_text(&p, x, all);
	return patcher_close(&p) && done;
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
			search(tr->agent, x.file);
		find_range(&x);
		VEC_PUSH(&space->texts, x);
	}
	if ((!x.file || x.file->sites.is_blind || !patch_new_text(tr, t, all)) &&
	    tr->agent->netless)
		agent_leave_calls(tr, t);
}

/*
 * Known texts need not be seen when they are mapped: calls from there are, once. But with
 * more threads, or above a handler, they can be changed only while nobody runs in them.
 */
void agent_texts_watch_loader(struct tracer *tr, struct tracee *t)
{
	const struct agent_space *space = t->agent->space;
	bool may =
		space->nr_threads == 1 && !space->signalled && !tr->agent->netless &&
		/* Of what is left out, or of a recording that is over, nothing would be known. */
		!tr->o->paths.wants && !tr->session->is_over;

	if (!t->agent->block)
		return;
	t->agent->block->loader_start = may ? space->loader_start : 0;
	t->agent->block->loader_end = may ? space->loader_end : 0;
}

void agent_texts_note(struct tracer *tr, struct tracee *t, const struct stat *st, uint64_t start)
{
	struct file_key key = key_of(st);
	struct agent_text x = { .file = map_get(&tr->agent->files, &key, sizeof(key)),
				.start = start,
				.end = start + t->regs[1],
				.offset = t->regs[5] };
	struct agent_space *space = t->agent->space;

	if (!x.file || x.end < start || space->texts.len >= NOTED_TEXTS_MAX)
		return; /* calls from there are the tracer's */
	find_range(&x);
	VEC_PUSH(&space->texts, x);
}

static const struct map_line *line_of(const struct maps *m, uint64_t addr)
{
	size_t i;

	for (i = 0; i < m->lines.len; i++) {
		if (addr >= m->lines.items[i].start && addr < m->lines.items[i].end)
			return &m->lines.items[i];
	}
	return NULL;
}

/* Whether that place of a file is at this address of the text still, and can be executed. */
static bool is_there(const struct maps *m, const struct agent_text *x, uint64_t addr)
{
	const struct map_line *l = line_of(m, addr);

	/* The file is known by its bytes: on some file systems it has another number here. */
	return l && maps_is_text(l) && l->is_private &&
	       l->offset + (addr - l->start) == x->offset + (addr - x->start);
}

/* Where they were, the program may have its data by now. */
static void forget_unmapped(struct tracee *t)
{
	struct agent_space *space = t->agent->space;
	struct maps m;
	size_t i, nr = 0;

	maps_read(t, &m);
	for (i = 0; i < space->texts.len; i++) {
		struct agent_text *x = &space->texts.items[i];

		if (is_there(&m, x, x->start) && is_there(&m, x, x->end - 1))
			space->texts.items[nr++] = *x;
		else
			free(x->patched);
	}
	space->texts.len = nr;
	maps_release(&m);
}

void agent_texts_patch_all(struct tracer *tr, struct tracee *t, uint64_t ip)
{
	if (t->agent->space->nr_threads != 1)
		return;
	forget_unmapped(t);
	patch_texts(tr, t, ip, true);
}

/* The text that an address is in, and (*ret) which of its sites that is, or its nr; NULL: none. */
static struct agent_text *find_site(struct agent *a, struct agent_space *space, uint64_t syscall,
				    size_t *ret)
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
	search(a, x->file);
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

bool agent_texts_patch_at(struct tracer *tr, struct tracee *t, uint64_t syscall)
{
	struct agent_space *space = t->agent->space;
	size_t i = 0;
	struct agent_text *x = find_site(tr->agent, space, syscall, &i);
	struct patcher p;
	struct site *s;

	if (!x || i == x->nr || x->patched[i])
		return false;
	s = &x->file->sites.list.items[x->first + i];
	x->file->is_news |= !s->used;
	s->used = true;
	if (space->nr_threads != 1)
		return false;
	patcher_open(&p, tr, t, 0);
	(void)patch_text(&p, x, false);
	patcher_close(&p);
	return x->patched[i];
}

enum text_state agent_texts_state(struct tracer *tr, struct tracee *t, uint64_t syscall)
{
	size_t i = 0;
	const struct agent_text *x = find_site(tr->agent, t->agent->space, syscall, &i);

	if (!x)
		return TEXT_FOREIGN;
	if (i == x->nr)
		return TEXT_NO_SITE;
	if (x->patched[i])
		return TEXT_CHANGED;
	return is_for_agent(tr->agent, &x->file->sites.list.items[x->first + i]) ? TEXT_UNCHANGED
										 : TEXT_NOT_TAKEN;
}

void agent_texts_name(const struct tracee *t, uint64_t addr, char ret[AGENT_PLACE_MAX_BYTES])
{
	const struct map_line *l;
	struct maps m = { 0 };

	(void)snprintf(ret, AGENT_PLACE_MAX_BYTES, "[unknown]+0x%llx", (unsigned long long)addr);
	maps_read(t, &m);
	for (l = m.lines.items; l < m.lines.items + m.lines.len; l++) {
		if (addr < l->start || addr >= l->end)
			continue;
		if (l->ino)
			(void)snprintf(ret, AGENT_PLACE_MAX_BYTES, "%s+0x%llx", l->path,
				       (unsigned long long)(addr - l->start + l->offset));
		else
			(void)snprintf(ret, AGENT_PLACE_MAX_BYTES, "%s+0x%llx",
				       *l->path ? l->path : "[anonymous]",
				       (unsigned long long)addr);
	}
	maps_release(&m);
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

static int open_text(struct tracer *tr, const struct tracee *t, const struct map_line *m)
{
	char name[PATH_MAX + 64];

	if (m->path[0] != '/' || !tree_may_open(tr->session->tree, t->tid, m->dev))
		return -1;
	(void)snprintf(name, sizeof(name), "/proc/%d/root%s", (int)t->pid, m->path);
	return agent_texts_open(tr, t, name);
}

/* A loader that was run by its own name, to load the program that it is given: ld-linux-x86-64.so.2, or musl's libc.so. */
static bool is_loader_by_name(const char *path)
{
	const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;

	return !strcmp(name, "libc.so") || (!strncmp(name, "ld", 2) && strstr(name, ".so"));
}

/* At the execve what is not the program's is the loader's; later it is where the image began. */
static bool is_loader(const struct map_line *m, bool of_program, const struct agent_hope *hope)
{
	if (of_program && !is_loader_by_name(m->path))
		return false;
	return !hope || (hope->first_ip >= m->start && hope->first_ip < m->end);
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
	int fd = loaded && !was_loaded(space, m, hope) ? -1 : open_text(tr, t, m);
	struct stat exe = { 0 }, st;
	bool of_program;
	char name[64];

	if (fd < 0)
		return;
	(void)snprintf(name, sizeof(name), "/proc/%d/exe", (int)t->pid);
	(void)fstatat(AT_FDCWD, name, &exe, AT_STATX_DONT_SYNC); /* or no text is the program's */
	if (!fstat(fd, &st) && st.st_ino == m->ino) {
		of_program = st.st_ino == exe.st_ino && st.st_dev == exe.st_dev;
		if (is_loader(m, of_program, hope) && !loaded &&
		    (!of_program || !space->loader_start)) {
			space->loader_start = m->start;
			space->loader_end = m->end;
		}
		if (loaded || of_program || m->start == space->loader_start)
			agent_texts_patch(tr, t, fd, m->start, m->end - m->start, m->offset);
	}
	(void)close(fd);
}

void agent_texts_patch_image(struct tracer *tr, struct tracee *t, const struct agent_hope *hope,
			     const struct maps *m)
{
	unsigned int pass, nr;
	size_t i;

	for (pass = 0; pass < (hope ? 2u : 1u); pass++) {
		for (i = nr = 0; i < m->lines.len && nr < TEXTS_MAX; i++) {
			const struct map_line *l = &m->lines.items[i];

			if (!maps_is_text(l) || !l->is_private)
				continue;
			patch_mapped(tr, t, l, hope, pass == 1);
			nr++;
		}
	}
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

bool agent_texts_are_known(const struct tracee *t)
{
	const struct agent_space *space = t->agent->space;
	const struct map_line *l;
	struct maps m = { 0 };
	bool are = true;
	size_t i;

	maps_read(t, &m);
	for (l = m.lines.items; l < m.lines.items + m.lines.len && are; l++) {
		if (!maps_is_text(l))
			continue;
		for (i = 0, are = false; i < space->texts.len && !are; i++)
			are = l->start >= space->texts.items[i].start &&
			      l->end <= space->texts.items[i].end;
	}
	maps_release(&m);
	return are;
}
