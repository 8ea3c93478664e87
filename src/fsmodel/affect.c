/* SPDX-License-Identifier: MIT */
/*
 * Whether one call could change the answer to another, without looking either
 * up: who only makes, moves and removes names changes what is found under the
 * last components of its paths. Another meets them if it has such a component
 * too, or goes through a symlink that has.
 */
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/banned.h"
#include "fsmodel/names.h"
#include "fsmodel/tables.h"

/* Their apply() only learns; the offset of a directory is not modelled. */
static bool changes_nothing(const struct row *row)
{
	switch (row->id) {
	case SC_getdents:
	case SC_getdents64:
	case SC_stat:
	case SC_lstat:
	case SC_fstat:
	case SC_newfstatat:
	case SC_statx:
	case SC_readlink:
	case SC_readlinkat:
		return true;
	}
	return false;
}

static bool removes_dir(const struct event *ev)
{
	switch (ev->row->id) {
	case SC_rmdir:
	case SC_rename:
	case SC_renameat:
	case SC_renameat2:
		return true;
	case SC_unlinkat:
		return value_int_or(&ev->args[2], 0) & AT_REMOVEDIR;
	}
	return false;
}

/* Of addresses of sockets too: see whole_text(). */
static bool is_path(const struct row *row, unsigned int n)
{
	const struct arg *arg = &row->args[n];

	return (arg->kind == KIND_PATH && arg->look != LOOK_TEXT) ||
	       (arg->kind == KIND_SOCKADDR && arg->dir & ARG_IN);
}

static bool whole_text(const struct value *v, struct path_text *ret)
{
	/* An address that names no file has no text, and none is missing. */
	if (v->type == VALUE_STRUCT) {
		v = fsmodel_socket_path(v);
		*ret = (struct path_text){ "", 0 };
		if (!v)
			return true;
	}
	if (v->type != VALUE_DATA || v->data->kept_bytes < v->data->len_bytes || !v->data->bytes)
		return false;
	ret->s = (const char *)v->data->bytes;
	ret->len = (size_t)v->data->len_bytes;
	return true;
}

static struct path_text last_of(struct path_text path)
{
	size_t at;

	while (path.len && path.s[path.len - 1] == '/')
		path.len--;
	for (at = path.len; at && path.s[at - 1] != '/'; at--)
		;
	return (struct path_text){ path.s + at, path.len - at };
}

static bool has_component(struct path_text path, struct path_text name)
{
	const char *s = path.s, *end = path.s + path.len;

	while (s < end) {
		const char *slash = memchr(s, '/', (size_t)(end - s));
		size_t len = (size_t)((slash ? slash : end) - s);

		if (len == name.len && !memcmp(s, name.s, len))
			return true;
		s += len + 1;
	}
	return false;
}

/* Whether a path of the event may lead through an entry of this name. */
static bool may_use(const struct fsmodel *m, const struct event *ev, struct path_text name)
{
	unsigned int n;
	bool has_path = false;

	for (n = 0; n < ev->row->nr_args; n++) {
		struct path_text path;

		if (!is_path(ev->row, n) || ev->args[n].type == VALUE_NULL)
			continue;
		has_path = true;
		if (!whole_text(&ev->args[n], &path) || has_component(path, name))
			return true;
	}
	return has_path && words_have(m->names, name.s, name.len);
}

/* As removes_dir(); a rename removes the directory that it replaces, if there is one. */
static bool takes_dir(struct fsmodel *m, const struct event *ev)
{
	struct outcome o;
	struct call c;

	if (!removes_dir(ev))
		return false;
	/* A quiet question leaves the event as it is. */
	return ev->row->id == SC_rmdir || ev->row->id == SC_unlinkat ||
	       !ask_quietly(m, (struct event *)(uintptr_t)ev, &c, &o) ||
	       (c.at2.inode && c.at2.inode != c.at.inode && c.at2.inode->type != S_IFREG);
}

static bool names_meet(struct fsmodel *m, const struct event *first, const struct event *then)
{
	bool makes = row_class(then->row) == C_NAME || row_class(then->row) == C_DESC;
	unsigned int n;

	/* Emptiness, listings, and removed directories that somebody still stands in. */
	if (row_class(then->row) == C_DIR || removes_dir(then) || (makes && takes_dir(m, first)))
		return true;
	for (n = 0; n < first->row->nr_args; n++) {
		struct path_text name;

		if (!is_path(first->row, n))
			continue;
		if (!whole_text(&first->args[n], &name))
			return true;
		name = last_of(name);
		if (!name.len || name.s[0] == '.' || may_use(m, then, name))
			return true;
	}
	return false;
}

static const struct call_row *calls_of(const struct fsmodel *m, const struct event *ev)
{
	return ev->row->id < ROW_ID_MAX ? m->tables->rows[ev->row->id].calls : NULL;
}

static bool gives_back(const struct row *row)
{
	for (unsigned int n = 0; n < row->nr_args; n++) {
		if (row->args[n].dir & ARG_OUT)
			return true;
	}
	return false;
}

static bool asks_for_access(const struct row *row)
{
	for (unsigned int n = 0; n < row->nr_args; n++) {
		if (row->args[n].set == SET_access_modes)
			return true;
	}
	return false;
}

/* Leaves the offset where it is. */
static bool is_positional_read(const struct fsmodel *m, const struct event *ev)
{
	int8_t offset = m->tables->rows[ev->row->id].offset;

	return ev->row->result == RESULT_BYTES_READ && offset >= 0 &&
	       (ev->row->id != SC_preadv2 || value_int_or(&ev->args[offset], 0) != -1);
}

static bool asks_for_offset(const struct event *ev)
{
	return ev->row->id == SC_lseek && value_int_or(&ev->args[1], -1) == 0 &&
	       value_int_or(&ev->args[2], -1) == SEEK_CUR;
}

bool fsmodel_only_looks(const struct fsmodel *m, const struct event *ev)
{
	const struct call_row *calls = calls_of(m, ev);

	/* What failed changed nothing; what has no apply() never does. */
	return !calls || ev->outcome.err || !calls->apply || changes_nothing(ev->row) ||
	       is_positional_read(m, ev) || asks_for_offset(ev);
}

/* The open file that a call on a descriptor is about; NULL: none that is known. */
static const struct open_file *open_of(const struct fsmodel *m, const struct event *ev)
{
	const struct thread *t = ids_get(&m->tables->threads, ev->tid);
	int8_t fd = m->tables->rows[ev->row->id].fd;
	const struct descriptor *d =
		t && fd >= 0 ? fd_table_get(t->files, value_int_or(&ev->args[fd], -1)) : NULL;

	return d && !d->open->unknown ? d->open : NULL;
}

bool fsmodel_moves_offset(const struct fsmodel *m, const struct event *ev)
{
	const struct open_file *o;

	if (!calls_of(m, ev) || row_class(ev->row) != C_DATA ||
	    (ev->row->result != RESULT_BYTES_READ && ev->row->result != RESULT_OFFSET))
		return false;
	o = open_of(m, ev);
	return o && o->refs == 1 && o->inode && !is_stream(o);
}

static bool grows(const struct fsmodel *m, const struct event *ev)
{
	const struct open_file *o = open_of(m, ev);
	int8_t at = m->tables->rows[ev->row->id].offset;
	uint64_t from;

	if (ev->outcome.ret <= 0 || !o || is_stream(o) || !o->inode || is_odd(o->inode))
		return false;
	if (o->flags & O_APPEND)
		return true;
	from = at >= 0 ? (uint64_t)value_int_or(&ev->args[at], 0) : o->offset;
	return range_end(from, (uint64_t)ev->outcome.ret) > o->inode->size;
}

bool fsmodel_changes_attributes(const struct fsmodel *m, const struct event *ev)
{
	if (fsmodel_only_looks(m, ev))
		return false;
	if (ev->row->result == RESULT_BYTES_WRITTEN)
		return grows(m, ev);
	if (is_open_call(ev))
		return open_flags(ev) & O_TRUNC;
	switch (row_class(ev->row)) {
	case C_DATA:
		return ev->row->result != RESULT_BYTES_READ && ev->row->result != RESULT_OFFSET;
	case C_META:
		return fsmodel_is_change(m, ev);
	default:
		return false;
	}
}

bool fsmodel_is_change(const struct fsmodel *m, const struct event *ev)
{
	const struct call_row *calls = calls_of(m, ev);
	const struct row *row = ev->row;

	switch (row->id) {
	case SC_close: /* has closed it, whatever it returns */
	case SC_io_uring_enter: /* may have moved requests and completions nevertheless */
		return false;
	case SC_bind:
		return fsmodel_socket_path(&ev->args[1]);
	}
	if (!calls || row->result == RESULT_NEW_FD)
		return calls;
	switch (row_class(row)) {
	case C_DATA:
		return calls->apply && !is_positional_read(m, ev);
	case C_META:
	case C_XATTR:
	case C_DESC:
	case C_LOCK:
	case C_CWD:
		/* What returns nothing but success has done something. */
		return row->result == RESULT_ZERO && !gives_back(row) && !asks_for_access(row);
	case C_NAME:
	case C_DIR:
	case C_MAP:
	case C_PIPE:
	case C_AIO:
	case C_URING:
	case C_WAIT:
		return !changes_nothing(row);
	default:
		return false;
	}
}

static bool needs_fd(const struct fsmodel *m, const struct event *ev, int64_t fd)
{
	const struct row_info *info = &m->tables->rows[ev->row->id];

	for (unsigned int n = 0; n < ev->row->nr_args; n++) {
		if (info->fd_args & ~info->after & (1u << n) &&
		    value_int_or(&ev->args[n], -1) == fd)
			return true;
	}
	return false;
}

/* Whether a number that the one gets or gives back means the same to the other. */
static bool share_numbers(const struct fsmodel *m, const struct event *a, const struct event *b)
{
	const struct thread *x = ids_get(&m->tables->threads, a->tid),
			    *y = ids_get(&m->tables->threads, b->tid);

	return !x || !y || x->files == y->files;
}

/* What an open gives: a number, perhaps a new file, perhaps an empty one. */
static bool open_may_affect(struct fsmodel *m, const struct event *first, const struct event *then)
{
	const struct row_info *info = &m->tables->rows[then->row->id];
	uint64_t flags = open_flags(first);

	return flags & O_TRUNC ||
	       (share_numbers(m, first, then) &&
		((info->makes_fd && !then->outcome.err) || info->nested ||
		 needs_fd(m, then, first->outcome.ret))) ||
	       (flags & O_CREAT && names_meet(m, first, then));
}

/* Locks are taken by calls about them, and given up by closing, too. */
static bool locks_meet(struct fsmodel *m, const struct event *first, const struct event *then)
{
	if (row_class(then->row) != C_LOCK)
		return false;
	if (row_class(first->row) == C_LOCK)
		return fsmodel_locks_meet(m, first, then);
	switch (first->row->id) {
	case SC_close:
	case SC_close_range:
	case SC_dup2:
	case SC_dup3:
	case SC_execve:
	case SC_execveat:
	case SC_exit:
	case SC_exit_group:
	case SC_io_uring_enter:
		return true;
	}
	return first->pid == then->pid && row_class(first->row) == C_DESC;
}

/* Whether it takes bytes out of the stream. */
static bool reads_from(const struct fsmodel *m, const struct event *ev, const struct stream *s)
{
	const struct row_info *info = &m->tables->rows[ev->row->id];
	const struct thread *t = ids_get(&m->tables->threads, ev->tid);

	for (unsigned int n = 0; t && n < ev->row->nr_args; n++) {
		const struct descriptor *d;

		if (!(info->fd_args & (1u << n)))
			continue;
		d = fd_table_get(t->files, value_int_or(&ev->args[n], -1));
		if (d && d->open->in == s && ev->outcome.ret > 0)
			return true;
	}
	return false;
}

/*
 * Whether it opened the FIFO. One that was made in the trace is known by its number only
 * after its first open; of a trace that does not tell what was opened, it may be any.
 */
static bool may_open_fifo(struct fsmodel *m, const struct event *ev, const struct inode *i)
{
	const struct value *id = args_find(ev->row, (struct value *)(uintptr_t)ev->args, "file");
	int64_t dev = value_int_or(field_of(id, STRUCT_file_id, "dev"), 0);
	int64_t ino = value_int_or(field_of(id, STRUCT_file_id, "ino"), 0);
	int64_t mode = value_int_or(field_of(id, STRUCT_file_id, "mode"), S_IFIFO);
	const struct inode *opened = ino ? inode_by_id(m, (uint64_t)dev, (uint64_t)ino) : NULL;

	return is_open_call(ev) && (opened ? opened == i : S_ISFIFO((mode_t)mode));
}

/* The files that an event is about, as they are found now. */
struct files {
	const struct inode *list[4];
	bool known; /* there are no others */
};

static void add_file(struct files *f, size_t at, const struct open_file *o)
{
	if (o && (o->unknown || !o->inode))
		f->known = false;
	f->list[at] = o ? o->inode : NULL;
}

static struct files files_of(struct fsmodel *m, const struct event *ev)
{
	struct files f = { .known = false };
	struct outcome o;
	struct call c;

	/* A quiet question leaves the event as it is. */
	if (!ask_quietly(m, (struct event *)(uintptr_t)ev, &c, &o))
		return f;
	f.known = true;
	f.list[0] = c.at.inode;
	add_file(&f, 1, c.fd ? c.fd->open : NULL);
	add_file(&f, 2, c.t1.d ? c.t1.d->open : NULL);
	add_file(&f, 3, c.t2.d ? c.t2.d->open : NULL);
	return f;
}

/* What changes bytes, sizes and modes alone is seen by who looks at the same file. */
static bool files_meet(struct fsmodel *m, const struct event *first, const struct event *then)
{
	struct files a = files_of(m, first), b = files_of(m, then);

	for (size_t i = 0; i < ARRAY_LEN(a.list); i++) {
		for (size_t k = 0; a.list[i] && k < ARRAY_LEN(b.list); k++) {
			if (a.list[i] == b.list[k])
				return true;
		}
	}
	return !a.known || !b.known;
}

/* What it finds depends on names and files alone. */
static bool is_about_names(const struct event *ev)
{
	switch (row_class(ev->row)) {
	case C_NAME:
	case C_META:
	case C_DIR:
		return true;
	default:
		return is_open_call(ev);
	}
}

bool fsmodel_may_affect(struct fsmodel *m, const struct event *first, const struct event *then)
{
	if (!calls_of(m, then) || fsmodel_only_looks(m, first) || first->tid == then->tid)
		return false;
	if (m->tables->contended)
		return reads_from(m, first, m->tables->contended);
	if (m->tables->lonely)
		return may_open_fifo(m, first, m->tables->lonely);
	if (row_class(first->row) == C_NAME && first->row->id != SC_exchangedata)
		return names_meet(m, first, then);
	if (row_class(first->row) == C_LOCK || row_class(then->row) == C_LOCK)
		return locks_meet(m, first, then);
	if (is_open_call(first))
		return open_may_affect(m, first, then);
	switch (row_class(first->row)) {
	case C_DATA:
	case C_META:
		return files_meet(m, first, then);
	case C_DESC:
		return share_numbers(m, first, then) || !is_about_names(then);
	case C_SYNC:
	case C_MAP:
	case C_PIPE:
	case C_PROC:
	case C_WAIT:
	case C_SIGNAL:
		return !is_about_names(then);
	default:
		return true;
	}
}

/* Who removes what others may need. */

bool fsmodel_changes_names(const struct fsmodel *m, const struct event *ev)
{
	if (fsmodel_only_looks(m, ev))
		return false;
	return row_class(ev->row) == C_NAME || row_class(ev->row) == C_LOCK ||
	       ev->row->id == SC_bind || fsmodel_takes_away(ev) || open_flags(ev) & O_CREAT;
}

bool fsmodel_takes_away(const struct event *ev)
{
	switch (ev->row->id) {
	case SC_unlink:
	case SC_unlinkat:
	case SC_close:
		return true;
	}
	return removes_dir(ev);
}

/* The path is one that the call may make: that nothing is there does not hinder it. */
static bool may_make_path(const struct event *ev, unsigned int n)
{
	switch (ev->row->id) {
	case SC_link:
	case SC_rename:
	case SC_bind:
		return n == 1;
	case SC_linkat:
	case SC_renameat:
	case SC_renameat2:
		return n == 3;
	}
	return open_flags(ev) & O_CREAT ||
	       (row_class(ev->row) == C_NAME && !fsmodel_takes_away(ev));
}

static bool needs_name(const struct event *ev, struct path_text name)
{
	for (unsigned int n = 0; n < ev->row->nr_args; n++) {
		struct path_text path;

		if (!is_path(ev->row, n) || !whole_text(&ev->args[n], &path))
			continue;
		if (may_make_path(ev, n))
			path.len = (size_t)(last_of(path).s - path.s);
		if (has_component(path, name))
			return true;
	}
	return false;
}

bool fsmodel_takes_from(const struct fsmodel *m, const struct event *first,
			const struct event *then)
{
	struct path_text name;

	if (!calls_of(m, then) || !fsmodel_takes_away(first))
		return false;
	if (first->row->id == SC_close)
		return first->pid == then->pid &&
		       needs_fd(m, then, value_int_or(&first->args[0], -1));
	for (unsigned int n = 0; n < first->row->nr_args; n++) {
		/* The first path of each is what it removes. */
		if (is_path(first->row, n))
			return whole_text(&first->args[n], &name) &&
			       needs_name(then, last_of(name));
	}
	return false;
}

/* Where the kernel puts what a call moves. */

static bool is_shared(const struct call *c, const struct descriptor *d)
{
	return d->open->refs > 1 || d->refs > 1 || c->thread->files->refs > 1;
}

bool fsmodel_placed(struct fsmodel *m, struct event *ev, struct placed *ret)
{
	const struct transfer *t;
	struct outcome o;
	struct call c;

	if (ev->row->result != RESULT_BYTES_WRITTEN || ev->outcome.ret <= 0 ||
	    !ask_quietly(m, ev, &c, &o) || o.err || !c.t1.d)
		return false;
	t = &c.t1;
	if (!t->write || t->d->open->unknown || is_stream(t->d->open) || is_odd(t->d->open->inode))
		return false;
	if (!t->append && (t->positional || !t->d->open->offset_known || !is_shared(&c, t->d)))
		return false;
	ret->file = &t->d->open->inode->res;
	ret->line = t->append ? ret->file : &t->d->open->res;
	ret->at = t->from;
	return true;
}
