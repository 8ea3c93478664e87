/* SPDX-License-Identifier: MIT */
#include "report/fdpaths.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/banned.h"
#include "base/map.h"
#include "base/mem.h"
#include "model/vocab.h"

/* The kernel's own limit, fs.nr_open, unless somebody raised it. */
#define FD_MAX (1 << 20)
#define PAGE_SLOTS 64
#define TRACE_AT_FDCWD (-100)
#define TRACE_FD_CLOEXEC 1
#define TRACE_CLOSE_RANGE_CLOEXEC 4

struct slot {
	struct fd_file *now, *before;
	uint64_t since_ns; /* now counts from here on, before until then */
	bool cloexec;
};

struct page {
	struct slot slots[PAGE_SLOTS];
};

struct table {
	uint32_t refs;
	uint32_t nr_pages;
	struct page **pages; /* NULL where nothing was ever open */
};

struct cwd {
	uint32_t refs;
	struct fd_file *dir; /* NULL: not known */
};

/* Lives as long as the tracker, also when the process is gone: streams point here. */
struct process {
	uint32_t pid;
	bool dead, inherited;
	uint32_t nr_streams;
	uint64_t born_ns;
	struct table *table;
	struct cwd *cwd;
};

enum effect {
	EFFECT_UNKNOWN,
	EFFECT_NONE,
	EFFECT_OPEN, /* the result is a new descriptor */
	EFFECT_OPEN_LIST, /* new descriptors stand in a list */
	EFFECT_DUP,
	EFFECT_CLOSE,
	EFFECT_CLOSE_RANGE,
	EFFECT_SET_CLOEXEC, /* as the flags say */
	EFFECT_FIOCLEX,
	EFFECT_FIONCLEX,
	EFFECT_CHDIR,
	EFFECT_FCHDIR,
	EFFECT_GETCWD,
	EFFECT_FORK,
	EFFECT_UNSHARE,
	EFFECT_EXEC,
	EFFECT_EXIT,
	EFFECT_THREAD_START,
	EFFECT_THREAD_EXIT,
	EFFECT_FOUND_FD,
	EFFECT_FOUND_STATE,
};

#define NO_ARG 0xff

/* What is worth knowing of a row, found out when it first appears. */
struct row_facts {
	uint8_t effect;
	uint8_t path_arg; /* the last name of a file */
	uint8_t list_arg; /* the list of new descriptors */
	uint8_t flags_arg;
	uint64_t cloexec_bit; /* in flags */
};

struct fdpaths {
	struct trace *trace;
	struct map processes; /* by pid */
	struct process **by_stream;
	size_t nr_streams;
	uint64_t used_bytes, nr_forgotten;
	struct fd_file
		*first_cwd; /* of processes that nobody is known to have started; may be NULL */
	struct buf path; /* scratch */
	struct row_facts facts[ROW_ID_MAX];
};

static bool take_memory(struct fdpaths *p, size_t bytes)
{
	if (bytes > FDPATHS_MAX_BYTES - p->used_bytes) {
		p->nr_forgotten++;
		return false;
	}
	p->used_bytes += bytes;
	return true;
}

static struct fd_file *file_new(struct fdpaths *p, const void *path, size_t len)
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

static struct fd_file *file_get(struct fd_file *f)
{
	if (f)
		f->refs++;
	return f;
}

static void file_put(struct fdpaths *p, struct fd_file *f)
{
	if (!f || --f->refs)
		return;
	p->used_bytes -= sizeof(*f) + f->path_len + 1;
	free(f);
}

static struct slot *slot_find(const struct table *t, int64_t fd)
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

/* Takes over the reference to f. What happened before the slot's last change is history. */
static void slot_set(struct fdpaths *p, struct table *t, int64_t fd, struct fd_file *f,
		     uint64_t when_ns)
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

static void set_cloexec(struct table *t, int64_t fd, bool cloexec)
{
	struct slot *slot = slot_find(t, fd);

	if (slot)
		slot->cloexec = cloexec;
}

static struct table *table_new(void)
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

static void table_put(struct fdpaths *p, struct table *t)
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

/* Calls body for every slot of a table, with its descriptor. */
#define TABLE_EACH(t, slot, fd)                                                                    \
	for (int64_t fd = 0; fd < (int64_t)(t)->nr_pages * PAGE_SLOTS; fd++)                       \
		for (struct slot *slot = slot_find((t), fd); slot; slot = NULL)

/* What `to` has already is newer, and stays. */
static void table_copy(struct fdpaths *p, struct table *to, const struct table *from)
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

/* These take over the reference to dir. */
static struct cwd *cwd_new(struct fd_file *dir)
{
	struct cwd *c = xmalloc(sizeof(*c));

	*c = (struct cwd){ .refs = 1, .dir = dir };
	return c;
}

static void cwd_set(struct fdpaths *p, struct cwd *c, struct fd_file *dir)
{
	file_put(p, c->dir);
	c->dir = dir;
}

static void cwd_put(struct fdpaths *p, struct cwd *c)
{
	if (!c || --c->refs)
		return;
	file_put(p, c->dir);
	free(c);
}

static struct process *process_find(const struct fdpaths *p, uint32_t pid)
{
	return map_get(&p->processes, &pid, sizeof(pid));
}

static void process_empty(struct fdpaths *p, struct process *proc)
{
	table_put(p, proc->table);
	cwd_put(p, proc->cwd);
	proc->table = NULL;
	proc->cwd = NULL;
	proc->dead = true;
}

/* The process as it begins: with what it has from its parent, if that is known. */
static void process_begin(struct fdpaths *p, struct process *proc, struct process *parent,
			  uint64_t clone_flags, uint64_t now_ns)
{
	process_empty(p, proc);
	*proc = (struct process){ .pid = proc->pid, .born_ns = now_ns };
	if (!parent || parent == proc || parent->dead) {
		proc->table = table_new();
		proc->cwd = cwd_new(file_get(p->first_cwd));
		return;
	}
	proc->inherited = true;
	if (clone_flags & CLONE_FILES) {
		proc->table = parent->table;
		proc->table->refs++;
	} else {
		proc->table = table_new();
		table_copy(p, proc->table, parent->table);
	}
	if (clone_flags & CLONE_FS) {
		proc->cwd = parent->cwd;
		proc->cwd->refs++;
	} else {
		proc->cwd = cwd_new(file_get(parent->cwd->dir));
	}
}

static struct process *process_make(struct fdpaths *p, uint32_t pid)
{
	struct process *proc;

	if (!take_memory(p, sizeof(*proc) + sizeof(struct table) + sizeof(struct cwd) +
				    sizeof(struct map_entry)))
		return NULL;
	proc = xcalloc(1, sizeof(*proc));
	proc->pid = pid;
	proc->dead = true;
	*map_slot(&p->processes, &pid, sizeof(pid)) = proc;
	return proc;
}

/* A stream that was not seen before: its process is new, known, or a later bearer of a known pid. */
static struct process *process_of_new_stream(struct fdpaths *p, const struct event *ev)
{
	struct process *proc = process_find(p, ev->pid);

	if (!proc)
		proc = process_make(p, ev->pid);
	if (proc && proc->dead)
		process_begin(p, proc, ev->ppid ? process_find(p, ev->ppid) : NULL, 0,
			      ev->enter_ns);
	if (proc)
		proc->nr_streams++;
	return proc;
}

static void streams_grow(struct fdpaths *p, size_t at_least)
{
	size_t nr = p->nr_streams ? p->nr_streams : 64;

	while (nr < at_least)
		nr *= 2;
	p->by_stream = xrealloc(p->by_stream, nr * sizeof(*p->by_stream));
	memset(p->by_stream + p->nr_streams, 0, (nr - p->nr_streams) * sizeof(*p->by_stream));
	p->nr_streams = nr;
}

static struct process *process_of(struct fdpaths *p, const struct event *ev)
{
	struct process *proc;

	if (LIKELY(ev->stream < p->nr_streams)) {
		proc = p->by_stream[ev->stream];
		if (LIKELY(proc && proc->pid == ev->pid))
			return proc;
	}
	if (ev->stream >= p->nr_streams)
		streams_grow(p, (size_t)ev->stream + 1);
	proc = process_of_new_stream(p, ev);
	p->by_stream[ev->stream] = proc;
	return proc;
}

/* The processes whose descriptors can be looked up. */
static struct process *live_process_of(struct fdpaths *p, const struct event *ev)
{
	struct process *proc = process_of(p, ev);

	return proc && !proc->dead ? proc : NULL;
}

static struct fd_file *find_at(struct fdpaths *p, const struct event *ev, int64_t fd,
			       uint64_t when_ns)
{
	struct process *proc = live_process_of(p, ev);
	struct slot *slot = proc ? slot_find(proc->table, fd) : NULL;

	if (!slot)
		return NULL;
	return when_ns < slot->since_ns ? slot->before : slot->now;
}

struct fd_file *fdpaths_find(struct fdpaths *p, const struct event *ev, int64_t fd)
{
	return find_at(p, ev, fd, ev->enter_ns);
}

struct fd_file *fdpaths_find_after(struct fdpaths *p, const struct event *ev, int64_t fd)
{
	return find_at(p, ev, fd, ev->exit_ns);
}

uint64_t fdpaths_nr_forgotten(const struct fdpaths *p)
{
	return p->nr_forgotten;
}

/* Back to the slash before the last name; names that are themselves ".." cannot be taken back. */
static void drop_last_name(struct buf *out)
{
	size_t len = out->len;

	while (len && out->data[len - 1] != '/')
		len--;
	if (out->len - len == 2 && !memcmp(out->data + len, "..", 2))
		buf_puts(out, "/..");
	else if (!out->len)
		buf_puts(out, "..");
	else
		out->len = len > 1 ? len - 1 : len;
}

void fdpaths_join(struct buf *out, const char *name, size_t len)
{
	const char *end = name + len;

	if (len && *name == '/') {
		buf_clear(out);
		buf_putc(out, '/');
	}
	while (name < end) {
		const char *slash = memchr(name, '/', (size_t)(end - name));
		size_t part = (size_t)((slash ? slash : end) - name);

		if (part == 2 && !memcmp(name, "..", 2)) {
			if (out->len != 1 || out->data[0] != '/')
				drop_last_name(out);
		} else if (part && !(part == 1 && *name == '.')) {
			if (out->len && out->data[out->len - 1] != '/')
				buf_putc(out, '/');
			buf_put(out, name, part);
		}
		name += part + (slash != NULL);
	}
}

/* The bytes of a name, as far as they were kept. */
static bool load_name(struct fdpaths *p, const struct value *v, const char **ret, size_t *ret_len)
{
	const uint8_t *bytes;
	size_t len;

	if (v->type != VALUE_DATA)
		return false;
	if (v->data->bytes || !v->data->len_bytes) {
		bytes = v->data->bytes;
		len = (size_t)v->data->kept_bytes;
	} else if (!v->data->refs || !p->trace ||
		   trace_load_piece(p->trace, v->data, 0, &bytes, &len, NULL) != 1) {
		return false;
	}
	*ret = bytes ? (const char *)bytes : "";
	*ret_len = strnlen(*ret, len < FDPATHS_PATH_MAX ? len : FDPATHS_PATH_MAX);
	return true;
}

/* Puts the directory that argument nr is relative to into out; nothing when it is not known. */
static void put_base(struct fdpaths *p, const struct event *ev, unsigned int nr, struct buf *out)
{
	struct process *proc = live_process_of(p, ev);
	const struct fd_file *f;

	/* Calls with two names have a dirfd in front of each. */
	while (nr-- > 0 && ev->row->args[nr].kind != KIND_PATH) {
		const struct value *v = &ev->args[nr];

		if (ev->row->args[nr].kind != KIND_DIRFD)
			continue;
		if (v->type == VALUE_INT && v->i == TRACE_AT_FDCWD)
			break;
		f = v->type == VALUE_INT ? fdpaths_find(p, ev, v->i) : NULL;
		if (f)
			buf_put(out, f->path, f->path_len);
		return;
	}
	if (proc && proc->cwd->dir)
		buf_put(out, proc->cwd->dir->path, proc->cwd->dir->path_len);
}

bool fdpaths_resolve(struct fdpaths *p, const struct event *ev, unsigned int nr, struct buf *out)
{
	const struct arg *arg = &ev->row->args[nr];
	const char *name;
	size_t len;

	buf_clear(out);
	if (arg->kind != KIND_PATH || arg->look == LOOK_TEXT ||
	    !load_name(p, &ev->args[nr], &name, &len))
		return false;
	if (!len || *name != '/')
		put_base(p, ev, nr, out);
	fdpaths_join(out, name, len);
	return out->len > 0;
}

/* What a descriptor is called that does not come from a name: the first word of the call's. */
static void put_nameless(const struct row *row, struct buf *out)
{
	const char *name = row->name;
	size_t len = strcspn(name, "_0123456789");

	buf_clear(out);
	if (row_class(row) == C_NET)
		buf_puts(out, row->result == RESULT_NEW_FD || !strncmp(name, "socket", 6)
				      ? "socket:"
				      : "received:");
	else if (row_class(row) == C_URING)
		buf_puts(out, "io_uring:");
	else if (row->id == SC_open_by_handle_at)
		buf_puts(out, "handle:");
	else {
		buf_put(out, name, len);
		buf_putc(out, ':');
	}
}

static struct fd_file *file_of_open(struct fdpaths *p, const struct event *ev,
				    const struct row_facts *facts)
{
	const struct row *row = ev->row;
	const char *name;
	size_t len;

	if (facts->path_arg != NO_ARG) {
		if (!fdpaths_resolve(p, ev, facts->path_arg, &p->path))
			return NULL;
		return file_new(p, p->path.data, p->path.len);
	}
	put_nameless(row, &p->path);
	/* memfd_create and its like have a name that is not one of a file. */
	if (row->nr_args && row->args[0].kind == KIND_STR &&
	    load_name(p, &ev->args[0], &name, &len))
		buf_put(&p->path, name, len);
	return file_new(p, p->path.data, p->path.len);
}

static bool ends_with(const char *s, const char *tail)
{
	size_t len = strlen(s), tail_len = strlen(tail);

	return len >= tail_len && !strcmp(s + len - tail_len, tail);
}

/* The number in argument nr, or in the field `flags` of the struct that it is. */
static uint64_t flags_of(const struct event *ev, unsigned int nr)
{
	const struct arg *arg = nr == NO_ARG ? NULL : &ev->row->args[nr];
	const struct value *v = arg ? &ev->args[nr] : NULL;
	const struct struct_desc *desc;
	unsigned int i;

	if (v && v->type == VALUE_STRUCT && arg->kind == KIND_STRUCT) {
		desc = &struct_descs[arg->struct_id];
		for (i = 0; i < desc->nr_fields && strcmp(desc->fields[i].name, "flags"); i++)
			;
		v = i < desc->nr_fields ? value_field(v, i) : NULL;
	}
	return v && v->type == VALUE_INT ? v->u : 0;
}

static bool opened_cloexec(const struct event *ev, const struct row_facts *facts)
{
	/* Some descriptors have it without being asked for it. */
	if (ends_with(ev->row->name, "_cloexec") || row_class(ev->row) == C_URING ||
	    !strncmp(ev->row->name, "pidfd_", 6))
		return true;
	return flags_of(ev, facts->flags_arg) & facts->cloexec_bit;
}

static bool succeeded(const struct event *ev)
{
	return !ev->outcome.err && ev->outcome.ret >= 0 && !(ev->flags & EVENT_UNFINISHED);
}

static void apply_open(struct fdpaths *p, struct process *proc, const struct event *ev,
		       const struct row_facts *facts)
{
	if (!succeeded(ev))
		return;
	slot_set(p, proc->table, ev->outcome.ret, file_of_open(p, ev, facts), ev->exit_ns);
	set_cloexec(proc->table, ev->outcome.ret, opened_cloexec(ev, facts));
}

static void apply_open_list(struct fdpaths *p, struct process *proc, const struct event *ev,
			    const struct row_facts *facts)
{
	const struct value *list = &ev->args[facts->list_arg];
	bool cloexec = opened_cloexec(ev, facts);
	struct fd_file *f;
	uint32_t i;

	if (!succeeded(ev) || list->type != VALUE_LIST || !list->count)
		return;
	put_nameless(ev->row, &p->path);
	f = file_new(p, p->path.data, p->path.len);
	for (i = 0; i < list->count; i++) {
		slot_set(p, proc->table, list->items[i].i, file_get(f), ev->exit_ns);
		set_cloexec(proc->table, list->items[i].i, cloexec);
	}
	file_put(p, f);
}

static void apply_dup(struct fdpaths *p, struct process *proc, const struct event *ev,
		      const struct row_facts *facts)
{
	const struct value *from = &ev->args[0];

	/* dup2(3, 3) leaves all as it is. */
	if (!succeeded(ev) || from->type != VALUE_INT || from->i == ev->outcome.ret)
		return;
	slot_set(p, proc->table, ev->outcome.ret, file_get(fdpaths_find(p, ev, from->i)),
		 ev->exit_ns);
	set_cloexec(proc->table, ev->outcome.ret, opened_cloexec(ev, facts));
}

/* A close that fails has closed all the same, unless there was nothing to close. */
static void apply_close(struct fdpaths *p, struct process *proc, const struct event *ev)
{
	if (ev->outcome.err != EBADF && ev->args[0].type == VALUE_INT)
		slot_set(p, proc->table, ev->args[0].i, NULL, ev->enter_ns);
}

static void unshare_table(struct fdpaths *p, struct process *proc)
{
	struct table *own;

	if (proc->table->refs == 1)
		return;
	own = table_new();
	table_copy(p, own, proc->table);
	table_put(p, proc->table);
	proc->table = own;
}

static void apply_unshare(struct fdpaths *p, struct process *proc, const struct event *ev,
			  const struct row_facts *facts)
{
	uint64_t flags = flags_of(ev, facts->flags_arg);

	if (!succeeded(ev))
		return;
	if (flags & CLONE_FILES)
		unshare_table(p, proc);
	if (flags & CLONE_FS && proc->cwd->refs > 1) {
		struct cwd *own = cwd_new(file_get(proc->cwd->dir));

		cwd_put(p, proc->cwd);
		proc->cwd = own;
	}
}

static void apply_close_range(struct fdpaths *p, struct process *proc, const struct event *ev,
			      const struct row_facts *facts)
{
	uint64_t flags = flags_of(ev, facts->flags_arg);
	uint64_t first = ev->args[0].u, last = ev->args[1].u;

	if (!succeeded(ev) || ev->args[0].type != VALUE_INT || ev->args[1].type != VALUE_INT)
		return;
	if (flags & ~(uint64_t)TRACE_CLOSE_RANGE_CLOEXEC) /* CLOSE_RANGE_UNSHARE is the other */
		unshare_table(p, proc);
	/* Both are unsigned 32-bit numbers, whatever the row says. */
	first = (uint32_t)first;
	last = (uint32_t)last;
	TABLE_EACH(proc->table, slot, fd)
	{
		if ((uint64_t)fd < first || (uint64_t)fd > last || !slot->now)
			continue;
		if (flags & TRACE_CLOSE_RANGE_CLOEXEC)
			slot->cloexec = true;
		else
			slot_set(p, proc->table, fd, NULL, ev->enter_ns);
	}
}

static void apply_exec(struct fdpaths *p, struct process *proc, const struct event *ev)
{
	if (ev->outcome.err || (ev->row->sort == ROW_CALL && (ev->flags & EVENT_UNFINISHED)))
		return;
	unshare_table(p, proc);
	TABLE_EACH(proc->table, slot, fd)
	{
		if (slot->cloexec)
			slot_set(p, proc->table, fd, NULL, ev->exit_ns);
	}
}

static void apply_chdir(struct fdpaths *p, struct process *proc, const struct event *ev,
			const struct row_facts *facts)
{
	if (succeeded(ev) && facts->path_arg != NO_ARG &&
	    fdpaths_resolve(p, ev, facts->path_arg, &p->path))
		cwd_set(p, proc->cwd, file_new(p, p->path.data, p->path.len));
}

static void apply_fchdir(struct fdpaths *p, struct process *proc, const struct event *ev)
{
	if (succeeded(ev) && ev->args[0].type == VALUE_INT)
		cwd_set(p, proc->cwd, file_get(fdpaths_find(p, ev, ev->args[0].i)));
}

static void apply_getcwd(struct fdpaths *p, struct process *proc, const struct event *ev)
{
	const char *name;
	size_t len;

	if (succeeded(ev) && load_name(p, &ev->args[0], &name, &len) && len && *name == '/')
		cwd_set(p, proc->cwd, file_new(p, name, len));
}

/* The parent's side. In an order other than by entry the child may have been seen already. */
static void apply_fork(struct fdpaths *p, struct process *parent, const struct event *ev,
		       const struct row_facts *facts)
{
	uint64_t flags = flags_of(ev, facts->flags_arg);
	uint32_t pid = (uint32_t)ev->outcome.ret;
	struct process *child;

	if (!succeeded(ev) || !pid || (flags & CLONE_THREAD))
		return;
	child = process_find(p, pid);
	if (!child)
		child = process_make(p, pid);
	if (!child || child == parent)
		return;
	if (child->dead || child->born_ns < ev->enter_ns) {
		process_begin(p, child, parent, flags, ev->enter_ns);
	} else if (!child->inherited) {
		table_copy(p, child->table, parent->table);
		if (!child->cwd->dir)
			cwd_set(p, child->cwd, file_get(parent->cwd->dir));
		child->inherited = true;
	}
}

/* The child's side: needed when the parent's call was not recorded, or comes later. */
static void apply_thread_start(struct fdpaths *p, struct process *proc, const struct event *ev,
			       const struct row_facts *facts)
{
	uint64_t flags = flags_of(ev, facts->flags_arg);
	uint32_t parent_pid = ev->ppid;
	struct process *parent;

	if (!parent_pid && ev->args[0].type == VALUE_INT)
		parent_pid = (uint32_t)ev->args[0].u;
	parent = parent_pid ? process_find(p, parent_pid) : NULL;
	if (ev->tid != ev->pid || (flags & CLONE_THREAD) || !parent || parent == proc)
		return;
	/*
	 * Begun already by the parent's call, with this as its first thread? Else
	 * this is a second life of the pid, or the first that is heard of it.
	 */
	if (proc->inherited && proc->nr_streams == 1 && !(flags & (CLONE_FILES | CLONE_FS)))
		return;
	process_begin(p, proc, parent, flags, ev->enter_ns);
	proc->nr_streams = 1;
}

static void apply_found_fd(struct fdpaths *p, struct process *proc, const struct event *ev)
{
	const char *name;
	size_t len;

	if (ev->args[0].type != VALUE_INT || !load_name(p, &ev->args[1], &name, &len))
		return;
	slot_set(p, proc->table, ev->args[0].i, file_new(p, name, len), ev->enter_ns);
	set_cloexec(proc->table, ev->args[0].i, ev->args[7].type == VALUE_INT && ev->args[7].u);
}

static void apply_found_state(struct fdpaths *p, struct process *proc, const struct event *ev)
{
	const char *name;
	size_t len;

	if (load_name(p, &ev->args[0], &name, &len) && len)
		cwd_set(p, proc->cwd, file_new(p, name, len));
}

/* With all its threads gone the process gives up what it held. */
static void apply_thread_exit(struct fdpaths *p, struct process *proc)
{
	if (proc->nr_streams && --proc->nr_streams == 0)
		process_empty(p, proc);
}

static void apply_effect(struct fdpaths *p, struct process *proc, const struct event *ev,
			 const struct row_facts *facts)
{
	switch ((enum effect)facts->effect) {
	case EFFECT_OPEN:
		apply_open(p, proc, ev, facts);
		break;
	case EFFECT_OPEN_LIST:
		apply_open_list(p, proc, ev, facts);
		break;
	case EFFECT_DUP:
		apply_dup(p, proc, ev, facts);
		break;
	case EFFECT_CLOSE:
		apply_close(p, proc, ev);
		break;
	case EFFECT_CLOSE_RANGE:
		apply_close_range(p, proc, ev, facts);
		break;
	case EFFECT_SET_CLOEXEC:
		if (succeeded(ev) && ev->args[0].type == VALUE_INT)
			set_cloexec(proc->table, ev->args[0].i,
				    flags_of(ev, facts->flags_arg) & TRACE_FD_CLOEXEC);
		break;
	case EFFECT_FIOCLEX:
	case EFFECT_FIONCLEX:
		if (succeeded(ev) && ev->args[0].type == VALUE_INT)
			set_cloexec(proc->table, ev->args[0].i, facts->effect == EFFECT_FIOCLEX);
		break;
	case EFFECT_CHDIR:
		apply_chdir(p, proc, ev, facts);
		break;
	case EFFECT_FCHDIR:
		apply_fchdir(p, proc, ev);
		break;
	case EFFECT_GETCWD:
		apply_getcwd(p, proc, ev);
		break;
	case EFFECT_FORK:
		apply_fork(p, proc, ev, facts);
		break;
	case EFFECT_UNSHARE:
		apply_unshare(p, proc, ev, facts);
		break;
	case EFFECT_EXEC:
		apply_exec(p, proc, ev);
		break;
	case EFFECT_EXIT:
		process_empty(p, proc);
		break;
	case EFFECT_THREAD_START:
		apply_thread_start(p, proc, ev, facts);
		break;
	case EFFECT_THREAD_EXIT:
		apply_thread_exit(p, proc);
		break;
	case EFFECT_FOUND_FD:
		apply_found_fd(p, proc, ev);
		break;
	case EFFECT_FOUND_STATE:
		apply_found_state(p, proc, ev);
		break;
	case EFFECT_UNKNOWN:
	case EFFECT_NONE:
		break;
	}
}

/* The few rows that are not what their kinds say. */
static enum effect special_effect(unsigned int id)
{
	switch (id) {
	case SC_dup:
	case SC_dup2:
	case SC_dup3:
	case SC_fcntl_dupfd:
	case SC_fcntl_dupfd_cloexec:
		return EFFECT_DUP;
	case SC_close:
		return EFFECT_CLOSE;
	case SC_close_range:
		return EFFECT_CLOSE_RANGE;
	case SC_fcntl_setfd:
		return EFFECT_SET_CLOEXEC;
	case SC_ioctl_fioclex:
		return EFFECT_FIOCLEX;
	case SC_ioctl_fionclex:
		return EFFECT_FIONCLEX;
	case SC_chdir:
		return EFFECT_CHDIR;
	case SC_fchdir:
		return EFFECT_FCHDIR;
	case SC_getcwd:
		return EFFECT_GETCWD;
	case SC_fork:
	case SC_vfork:
	case SC_clone:
	case SC_clone_backwards:
	case SC_clone3:
		return EFFECT_FORK;
	case SC_unshare:
		return EFFECT_UNSHARE;
	case SC_execve:
	case SC_execveat:
	case EV_exec:
		return EFFECT_EXEC;
	case SC_exit_group:
		return EFFECT_EXIT;
	case EV_thread_start:
		return EFFECT_THREAD_START;
	case EV_thread_exit:
		return EFFECT_THREAD_EXIT;
	case EV_found_fd:
		return EFFECT_FOUND_FD;
	case EV_found_state:
		return EFFECT_FOUND_STATE;
	}
	return EFFECT_UNKNOWN;
}

static uint64_t find_cloexec_bit(enum set_id set)
{
	const struct set_desc *d = &set_descs[set];
	size_t i;

	for (i = 0; i < d->nr_entries; i++) {
		if (ends_with(d->entries[i].name, "_CLOEXEC"))
			return d->entries[i].value;
	}
	return 0;
}

/* The set of the field `flags` of a struct: of open_how, of clone_args. */
static enum set_id flags_set_of(const struct arg *arg)
{
	const struct struct_desc *desc = &struct_descs[arg->struct_id];
	unsigned int i;

	if (arg->kind == KIND_FLAGS)
		return (enum set_id)arg->set;
	for (i = 0; i < desc->nr_fields; i++) {
		if (!strcmp(desc->fields[i].name, "flags"))
			return (enum set_id)desc->fields[i].set;
	}
	return SET_none;
}

/* A list of descriptors that the call makes. A set of them (select) is only looked at. */
static bool is_list_of_new(const struct arg *arg)
{
	return arg->kind == KIND_VEC && arg->elem == KIND_FD &&
	       (arg->dir == ARG_OUT || arg->reg == REG_NONE);
}

static void find_facts(const struct row *row, struct row_facts *facts)
{
	unsigned int i;

	*facts = (struct row_facts){ .path_arg = NO_ARG, .list_arg = NO_ARG, .flags_arg = NO_ARG };
	for (i = 0; i < row->nr_args; i++) {
		const struct arg *arg = &row->args[i];

		if (arg->kind == KIND_PATH)
			facts->path_arg = (uint8_t)i;
		if (is_list_of_new(arg))
			facts->list_arg = (uint8_t)i;
		if (facts->flags_arg == NO_ARG &&
		    (arg->kind == KIND_FLAGS || (arg->kind == KIND_STRUCT && flags_set_of(arg)))) {
			facts->flags_arg = (uint8_t)i;
			facts->cloexec_bit = find_cloexec_bit(flags_set_of(arg));
		}
	}
	facts->effect = (uint8_t)special_effect(row->id);
	if (facts->effect == EFFECT_UNKNOWN && facts->list_arg != NO_ARG)
		facts->effect = EFFECT_OPEN_LIST;
	else if (facts->effect == EFFECT_UNKNOWN && row->result == RESULT_NEW_FD)
		facts->effect = EFFECT_OPEN;
	else if (facts->effect == EFFECT_UNKNOWN)
		facts->effect = EFFECT_NONE;
}

static const struct row_facts *facts_of(struct fdpaths *p, const struct row *row)
{
	struct row_facts *facts = &p->facts[row->id];

	if (UNLIKELY(facts->effect == EFFECT_UNKNOWN))
		find_facts(row, facts);
	return facts;
}

bool fdpaths_opens(struct fdpaths *p, const struct event *ev)
{
	switch (facts_of(p, ev->row)->effect) {
	case EFFECT_OPEN:
	case EFFECT_OPEN_LIST:
	case EFFECT_DUP:
		return true;
	}
	return false;
}

void fdpaths_apply(struct fdpaths *p, const struct event *ev)
{
	const struct row_facts *facts = facts_of(p, ev->row);
	/* Also where nothing changes: a new process gets its descriptors now. */
	struct process *proc = live_process_of(p, ev);

	if (facts->effect != EFFECT_NONE && proc)
		apply_effect(p, proc, ev, facts);
}

struct fdpaths *fdpaths_new(struct trace *t)
{
	struct fdpaths *p = xcalloc(1, sizeof(*p));
	const char *cwd;

	p->trace = t;
	cwd = t ? trace_meta(t, "cwd", &p->path) : NULL;
	if (cwd)
		p->first_cwd = file_new(p, cwd, strlen(cwd));
	return p;
}

void fdpaths_free(struct fdpaths *p)
{
	if (!p)
		return;
	MAP_EACH (&p->processes, e) {
		process_empty(p, e->value);
		free(e->value);
	}
	map_release(&p->processes);
	file_put(p, p->first_cwd);
	free(p->by_stream);
	buf_release(&p->path);
	free(p);
}
