/* SPDX-License-Identifier: MIT */
#include "report/fdpaths.h"

#include <sched.h>
#include <stdlib.h>
#include <string.h>

#include "base/banned.h"
#include "base/mem.h"
#include "report/fdpaths_inside.h"

#define TRACE_AT_FDCWD (-100)

struct process *process_find(const struct fdpaths *p, uint32_t pid)
{
	return map_get(&p->processes, &pid, sizeof(pid));
}

void process_empty(struct fdpaths *p, struct process *proc)
{
	table_put(p, proc->table);
	cwd_put(p, proc->cwd);
	proc->table = NULL;
	proc->cwd = NULL;
	proc->dead = true;
}

void process_begin(struct fdpaths *p, struct process *proc, struct process *parent,
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

struct process *process_make(struct fdpaths *p, uint32_t pid)
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

struct process *live_process_of(struct fdpaths *p, const struct event *ev)
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

bool load_name(struct fdpaths *p, const struct value *v, const char **ret, size_t *ret_len)
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

/* The argument itself, or the path in the address of a socket; NULL: it has none. */
static const struct value *path_value(const struct event *ev, unsigned int nr)
{
	const struct struct_desc *desc = &struct_descs[STRUCT_sockaddr];
	const struct arg *arg = &ev->row->args[nr];
	const struct value *v = &ev->args[nr];
	unsigned int i;

	if (arg->kind == KIND_PATH)
		return arg->look == LOOK_TEXT ? NULL : v;
	if (arg->kind != KIND_SOCKADDR || !(arg->dir & ARG_IN) || v->type != VALUE_STRUCT)
		return NULL;
	for (i = 0; i < desc->nr_fields && desc->fields[i].kind != KIND_PATH; i++)
		;
	return i < desc->nr_fields ? value_field(v, i) : NULL;
}

bool fdpaths_resolve(struct fdpaths *p, const struct event *ev, unsigned int nr, struct buf *out)
{
	const struct value *v = path_value(ev, nr);
	const char *name;
	size_t len;

	buf_clear(out);
	if (!v || !load_name(p, v, &name, &len))
		return false;
	if (!len || *name != '/')
		put_base(p, ev, nr, out);
	fdpaths_join(out, name, len);
	return out->len > 0;
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
