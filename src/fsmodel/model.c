/* SPDX-License-Identifier: MIT */
/*
 * The step: asks what the kernel would have answered, holds that against what
 * it did answer, mends the state where they differ, and applies the call.
 */
#include "fsmodel/fsmodel.h"

#include <errno.h>
#include <stdlib.h>

#include "base/banned.h"
#include "fsmodel/names.h"
#include "fsmodel/tables.h"
#include "model/vocab.h"

const char *const contradiction_names[CONTRADICTION_MAX] = {
	[CONTRADICTION_NONE] = "none",
	[CONTRADICTION_MISSING] = "missing",
	[CONTRADICTION_EXISTS] = "exists",
	[CONTRADICTION_TYPE] = "type",
	[CONTRADICTION_FD] = "fd",
	[CONTRADICTION_SIZE] = "size",
	[CONTRADICTION_ERROR] = "error",
	[CONTRADICTION_PROCESS] = "process",
	[CONTRADICTION_ARGUMENT] = "argument",
};

/* Resources. */

void res_init(struct fsmodel *m, struct res *res, enum res_kind kind)
{
	*res = (struct res){
		.id = m->next_id++, .kind = (uint8_t)kind, .generation = 1, .slot = -1
	};
}

void res_forget(struct fsmodel *m, struct res *res, struct res *heir)
{
	if (m->options.forget)
		m->options.forget(m->options.forget_arg, res, heir);
}

void res_bury(struct fsmodel *m, struct res *res, struct res *heir)
{
	VEC_PUSH(&m->tables->graves, ((struct grave){ res, heir }));
}

static void empty_graves(struct fsmodel *m)
{
	struct tables *t = m->tables;
	size_t i;

	for (i = 0; i < t->graves.len; i++)
		res_forget(m, t->graves.items[i].res, t->graves.items[i].heir);
	for (i = 0; i < t->graves.len; i++)
		free(t->graves.items[i].res);
	t->graves.len = 0;
}

void touch_add(struct call *c, struct res *res, uint32_t how, uint64_t from, uint64_t to)
{
	if (c->quiet)
		return;
	VEC_PUSH(&c->facts->touches, ((struct touch){ res, how | TOUCH_USE, from, to }));
}

/* Arguments. */

struct value *arg_at(const struct call *c, unsigned int n)
{
	return &c->ev->args[n];
}

const struct value *arg_of(const struct call *c, const char *name)
{
	static const struct value none;
	const struct value *v = args_find(c->ev->row, c->ev->args, name);

	return v ? v : &none;
}

struct value *field_of(const struct value *v, enum struct_id id, const char *name)
{
	const struct struct_desc *desc = &struct_descs[id];
	unsigned int i;

	if (!v || v->type != VALUE_STRUCT)
		return NULL;
	for (i = 0; i < desc->nr_fields; i++) {
		if (!strcmp(desc->fields[i].name, name))
			return value_field(v, i);
	}
	return NULL;
}

/* Contradictions. */

void contradict(struct call *c, enum contradiction kind, bool repaired, const char *fmt, ...)
{
	struct fsmodel *m = c->m;
	va_list ap;

	if (c->quiet || c->facts->contradiction)
		return;
	c->facts->contradiction = kind;
	c->facts->repaired = repaired;
	m->totals.contradictions[kind]++;
	if (repaired)
		m->totals.repaired[kind]++;
	buf_clear(&m->why);
	buf_printf(&m->why, "%s: ", c->ev->row->name);
	va_start(ap, fmt);
	buf_vprintf(&m->why, fmt, ap);
	va_end(ap);
}

/*
 * Errors whose cause is not in the state that is modelled: supplementary groups,
 * capabilities and security modules, space and quotas, how much a pipe holds, what
 * a device or a peer says. They contradict nothing and change nothing.
 */
static bool is_outside(int err)
{
	switch (err) {
	case EPERM:
	case EACCES:
	case EXDEV:
	case EINTR:
	case EIO:
	case ENXIO:
	case E2BIG:
	case ENOEXEC:
	case ESRCH:
	case ECHILD:
	case EAGAIN:
	case ENOMEM:
	case EFAULT:
	case EBUSY:
	case ENODEV:
	case EINVAL:
	case ENFILE:
	case EMFILE:
	case ENOTTY:
	case ETXTBSY:
	case EFBIG:
	case ENOSPC:
	case EROFS:
	case EMLINK:
	case EPIPE:
	case EDEADLK:
	case ENOLCK:
	case ENOSYS:
	case ETIME:
	case EOVERFLOW:
	case EOPNOTSUPP:
	case EPROTO:
	case EDESTADDRREQ:
	case EMSGSIZE:
	case EPROTOTYPE:
	case ENOPROTOOPT:
	case EPROTONOSUPPORT:
	case ESOCKTNOSUPPORT:
	case EPFNOSUPPORT:
	case EAFNOSUPPORT:
	case EADDRINUSE:
	case EADDRNOTAVAIL:
	case ENETDOWN:
	case ENETUNREACH:
	case ECONNABORTED:
	case ECONNRESET:
	case ENOBUFS:
	case EISCONN:
	case ENOTCONN:
	case ETIMEDOUT:
	case ECONNREFUSED:
	case EHOSTUNREACH:
	case EALREADY:
	case EINPROGRESS:
	case ESTALE:
	case EDQUOT:
	case ECANCELED:
		return true;
	default:
		return err >= 512; /* the kernel's own: the call was made again */
	}
}

static enum contradiction kind_of_foretold(int err)
{
	switch (err) {
	case ENOENT:
	case ENODATA:
		return CONTRADICTION_MISSING;
	case EEXIST:
	case ENOTEMPTY:
		return CONTRADICTION_EXISTS;
	case EISDIR:
	case ENOTDIR:
	case ELOOP:
	case ESPIPE:
	case ENOTSOCK:
		return CONTRADICTION_TYPE;
	case EBADF:
		return CONTRADICTION_FD;
	default:
		return CONTRADICTION_ERROR;
	}
}

static enum contradiction kind_of_failure(int err)
{
	switch (err) {
	case EEXIST:
	case ENOTEMPTY:
		return CONTRADICTION_EXISTS;
	case EBADF:
		return CONTRADICTION_FD;
	default:
		return CONTRADICTION_ERROR;
	}
}

/* The outcome was another error, or an error where none was foretold. */
static bool error_fits(struct call *c, struct outcome foretold)
{
	int err = c->ev->outcome.err;

	return c->unsure || foretold.err == err || is_outside(err) ||
	       (!foretold.err && type_explains(c));
}

static const char *name_of_error(int err)
{
	const char *name = err ? errno_name(err) : "success";

	return name ? name : "another error";
}

/* Calls. */

static void begin_call(struct call *c, struct fsmodel *m, struct event *ev, bool quiet)
{
	memset(c, 0, sizeof(*c));
	c->m = m;
	c->ev = ev;
	c->quiet = quiet;
	c->want_ok = m->options.execute || !ev->outcome.err;
}

static void set_thread(struct call *c, struct thread *t)
{
	c->thread = t;
	c->proc = t->proc;
	c->fs = t->fs;
	c->cred = t->cred;
}

static void clear_facts(struct facts *f)
{
	f->predicted = (struct outcome){ 0 };
	f->contradiction = CONTRADICTION_NONE;
	f->repaired = f->unexplained = f->by_environment = false;
	f->touches.len = f->fds.len = f->fd_copies.len = f->fd_paths.len = f->maps.len = 0;
	f->request_ends.len = 0;
	f->cwd = f->root = f->new_handle = NULL;
	f->umask = 0;
	f->child_tid = 0;
	f->offset = 0;
	f->end = UINT64_MAX;
	f->stream = NULL;
	f->local_peer = f->mixed = false;
	f->locker = NULL;
	f->nr_lock_owners = 0;
	f->lock_foretold = false;
}

static void release_facts(struct facts *f)
{
	VEC_RELEASE(&f->touches);
	VEC_RELEASE(&f->fds);
	VEC_RELEASE(&f->fd_copies);
	VEC_RELEASE(&f->fd_paths);
	VEC_RELEASE(&f->maps);
	VEC_RELEASE(&f->request_ends);
}

static const struct row_info *info_of(const struct fsmodel *m, const struct event *ev)
{
	const struct row_info *info;

	if (ev->row->id >= ROW_ID_MAX)
		return NULL;
	info = &m->tables->rows[ev->row->id];
	return info->calls ? info : NULL;
}

/* What ask() left in the call and in the facts, before it is asked again. */
static void forget_answer(struct call *c)
{
	struct call again;

	begin_call(&again, c->m, c->ev, c->quiet);
	again.facts = c->facts;
	set_thread(&again, c->thread);
	*c = again;
	c->facts->touches.len = c->facts->fds.len = c->facts->fd_paths.len = 0;
	c->facts->maps.len = 0;
}

/* A descriptor that should not be open was used with success: it is open, on something unknown. */
static bool mend_descriptors(struct call *c, const struct row_info *info)
{
	bool mended = false;
	unsigned int n;

	for (n = 0; n < c->ev->row->nr_args; n++) {
		int64_t number;

		if (!(info->fd_args & ~info->after & (1u << n)) ||
		    !value_get_int(arg_at(c, n), &number) || number < 0 || number > INT32_MAX ||
		    fd_table_get(c->thread->files, number))
			continue;
		(void)fd_put_found(c, number);
		mended = true;
	}
	return mended;
}

/* Whose mend() knows what to do when the call failed where it should not. */
static bool mends_failures(const struct row *row)
{
	return row_class(row) == C_NAME || row_class(row) == C_META;
}

/* The call succeeded where it should have failed. */
static struct outcome mend(struct call *c, const struct row_info *info, struct outcome foretold)
{
	struct outcome again = foretold;
	bool mended = false;

	if (!c->unsure) {
		mended = foretold.err == EBADF && mend_descriptors(c, info);
		if (!mended && info->calls->mend)
			mended = info->calls->mend(c);
		if (mended) {
			forget_answer(c);
			again = info->calls->ask(c);
		}
		contradict(c, kind_of_foretold(foretold.err), !again.err,
			   "%s foretold, but it succeeded with %lld", name_of_error(foretold.err),
			   (long long)c->ev->outcome.ret);
	}
	return again;
}

static void apply(struct call *c, const struct row_info *info)
{
	struct tables *t = c->m->tables;

	refs_collect(c, info, false);
	if (row_class(c->ev->row) == C_LOCK)
		locks_collect(c);
	if (info->calls->apply)
		info->calls->apply(c);
	if (c->thread)
		refs_collect(c, info, true);
	if (t->result.ret < 0 && !c->m->options.execute)
		t->result.ret = c->ev->outcome.ret;
}

/* The call changed nothing, or nobody knows what. */
static void collect_unapplied(struct call *c, const struct row_info *info)
{
	refs_collect(c, info, false);
	if (row_class(c->ev->row) == C_LOCK)
		locks_collect(c);
	if (c->ev->row->id == SC_io_uring_enter && c->thread)
		uring_collect(c);
}

static void execute(struct call *c, const struct row_info *info, struct outcome foretold)
{
	struct tables *t = c->m->tables;
	struct event *ev = c->ev;

	t->result = foretold;
	if (foretold.err) {
		collect_unapplied(c, info);
	} else {
		if (c->any_ret)
			t->result.ret = ev->outcome.err ? -1 : ev->outcome.ret;
		apply(c, info);
		if (t->result.ret < 0 && !t->result.err)
			t->result.ret = 0;
	}
	ev->outcome = c->facts->predicted = t->result;
}

/*
 * Whether names, files and descriptors account for the error, so that it comes again
 * wherever these are made. They do for one that was predicted from them, and for one
 * from which the initial tree has just been inferred.
 */
static bool is_explained(const struct call *c, struct outcome foretold, bool fits, bool mended)
{
	int err = c->ev->outcome.err;

	if (foretold.err == err)
		return !c->facts->by_environment;
	if (foretold.err)
		return !is_outside(err);
	if (mended)
		return !c->m->options.tree_known;
	return fits && !c->unsure && !is_outside(err); /* type_explains() */
}

static void observe_failure(struct call *c, const struct row_info *info, struct outcome foretold)
{
	const struct event *ev = c->ev;
	bool fits, mended = false;

	collect_unapplied(c, info);
	if (!c->unsure && foretold.err != ev->outcome.err && is_outside(ev->outcome.err))
		c->m->totals.nr_outside++;
	fits = error_fits(c, foretold);
	if (!fits) {
		mended = mends_failures(ev->row) && info->calls->mend && info->calls->mend(c);
		contradict(c, foretold.err ? CONTRADICTION_ERROR : kind_of_failure(ev->outcome.err),
			   mended, "%s foretold, but it was %s", name_of_error(foretold.err),
			   name_of_error(ev->outcome.err));
	}
	c->facts->unexplained = !is_explained(c, foretold, fits, mended);
}

static void observe(struct call *c, const struct row_info *info, struct outcome foretold)
{
	const struct event *ev = c->ev;
	bool unfinished = ev->flags & EVENT_UNFINISHED && !(ev->row->class & A_ENTRY);

	c->facts->predicted = foretold;
	c->m->tables->result = ev->outcome;
	if (unfinished) {
		collect_unapplied(c, info);
		return;
	}
	if (ev->outcome.err) {
		/* Linux has closed it, and completions have come, whatever else went wrong. */
		if ((ev->row->id == SC_close || ev->row->id == SC_io_uring_enter) &&
		    ev->outcome.err != EBADF && !foretold.err) {
			apply(c, info);
			return;
		}
		observe_failure(c, info, foretold);
		return;
	}
	if (foretold.err)
		foretold = mend(c, info, foretold);
	if (!foretold.err) {
		apply(c, info);
		if (!c->any_ret)
			c->facts->predicted = foretold;
		else
			c->facts->predicted = c->m->tables->result;
		return;
	}
	collect_unapplied(c, info);
	if (info->makes_fd && ev->outcome.ret >= 0) {
		fd_make_result(c, open_file_unknown(c->m), false);
		refs_collect(c, info, true);
	}
}

/* Whether the event's outcome is the one that was foretold. */
static bool answer_fits(struct call *c, const struct row_info *info, struct outcome foretold)
{
	const struct event *ev = c->ev;

	if (c->unsure || (ev->flags & EVENT_UNFINISHED && !(ev->row->class & A_ENTRY)))
		return true;
	if (row_class(ev->row) == C_LOCK && !locks_fit(c, foretold))
		return false;
	if (ev->outcome.err)
		return error_fits(c, foretold);
	if (foretold.err || c->differs || !refs_fit(c, info))
		return false;
	if (c->held == HELD_OTHER || c->alone)
		return false;
	return c->any_ret || foretold.ret == ev->outcome.ret;
}

/* Of one that does not fit: who alone can help. That of the event which others were tried for stays. */
static void note_misfit(const struct call *c)
{
	struct tables *t = c->m->tables;

	if (c->held == HELD_OTHER)
		t->contended = c->t1.d->open->in;
	if (c->alone)
		t->lonely = c->alone;
}

/*
 * The error that a call probably had which a trace only says to have failed.
 * Whatever is foretold fits it; it decides what is inferred of unknown names.
 */
static int likely_error(const struct row *row)
{
	unsigned int n;

	if (row->id == SC_mkdir || row->id == SC_symlink)
		return EEXIST;
	for (n = 0; n < row->nr_args && row_class(row) != C_XATTR; n++)
		if (row->args[n].kind == KIND_PATH)
			return ENOENT;
	return EIO; /* says nothing of names and descriptors */
}

/* NULL: the event does not fit, and only what fits was wanted. */
static const struct facts *step_told(struct fsmodel *m, struct event *ev, bool only_if_fits,
				     bool any_error)
{
	struct facts *f = &m->facts;
	const struct row_info *info;
	struct outcome foretold;
	struct call c;

	if (m->tables->graves.len)
		empty_graves(m);
	clear_facts(f);
	buf_clear(&m->why);
	m->tables->step++;
	if (!only_if_fits)
		m->tables->lonely = NULL; /* nobody could help */
	begin_call(&c, m, ev, false);
	c.facts = f;
	if (ev->row->sort == ROW_EVENT) {
		process_event(&c);
		return f;
	}
	set_thread(&c, thread_of(&c));
	f->cwd = &c.fs->cwd->res;
	f->root = &c.fs->root->res;
	f->umask = c.fs->umask;
	info = info_of(m, ev);
	if (!info) {
		if (m->options.execute)
			ev->outcome.err = 0;
		return f;
	}
	foretold = info->calls->ask(&c);
	c.unsure |= any_error;
	if (only_if_fits && !m->options.execute && !answer_fits(&c, info, foretold)) {
		note_misfit(&c);
		return NULL;
	}
	m->tables->contended = NULL;
	m->tables->lonely = NULL;
	if (m->options.execute)
		execute(&c, info, foretold);
	else
		observe(&c, info, foretold);
	return f;
}

static const struct facts *step(struct fsmodel *m, struct event *ev, bool only_if_fits)
{
	const struct facts *f;

	if (ev->outcome.err != ERRNO_UNKNOWN || m->options.execute)
		return step_told(m, ev, only_if_fits, false);
	ev->outcome.err = likely_error(ev->row);
	f = step_told(m, ev, only_if_fits, true);
	/* Any error will do; only success must not be. */
	m->facts.unexplained &= !m->facts.predicted.err;
	ev->outcome.err = ERRNO_UNKNOWN;
	return f;
}

const struct facts *fsmodel_step(struct fsmodel *m, struct event *ev)
{
	return step(m, ev, false);
}

const struct facts *fsmodel_try(struct fsmodel *m, struct event *ev)
{
	return step(m, ev, true);
}

bool ask_quietly(struct fsmodel *m, struct event *ev, struct call *c, struct outcome *ret)
{
	const struct row_info *info = info_of(m, ev);
	struct thread *t = ids_get(&m->tables->threads, ev->tid);

	if (!info || !t || t->ended || ev->row->sort == ROW_EVENT ||
	    ev->outcome.err == ERRNO_UNKNOWN)
		return false;
	clear_facts(&m->tables->quiet);
	begin_call(c, m, ev, true);
	c->facts = &m->tables->quiet;
	set_thread(c, t);
	*ret = info->calls->ask(c);
	return true;
}

bool fsmodel_fits(struct fsmodel *m, struct event *ev)
{
	struct outcome foretold;
	struct call c;

	return !ask_quietly(m, ev, &c, &foretold) || answer_fits(&c, info_of(m, ev), foretold);
}

bool fsmodel_locks_meet(struct fsmodel *m, const struct event *first, const struct event *then)
{
	struct outcome foretold;
	struct call one, other;

	/* Events are only looked at by a quiet call. */
	return ask_quietly(m, (struct event *)(uintptr_t)first, &one, &foretold) &&
	       ask_quietly(m, (struct event *)(uintptr_t)then, &other, &foretold) &&
	       locks_overlap(&one, &other, foretold);
}

bool fsmodel_locks_out(struct fsmodel *m, uint32_t tid, struct event *ev)
{
	const struct thread *t = ids_get(&m->tables->threads, tid);
	struct outcome foretold;
	struct call c;

	return t && !t->ended && row_class(ev->row) == C_LOCK &&
	       ask_quietly(m, ev, &c, &foretold) && foretold.err == EAGAIN &&
	       locks_are_of(&c, t->files);
}

struct fsmodel_totals fsmodel_totals(const struct fsmodel *m)
{
	return m->totals;
}

const char *fsmodel_why(const struct fsmodel *m)
{
	/* Only the terminating NUL is added: the words stay as they are. */
	return buf_str((struct buf *)&m->why);
}

struct fsmodel *fsmodel_new(const struct fsmodel_options *options)
{
	struct fsmodel *m = xcalloc(1, sizeof(*m));

	m->options = *options;
	m->next_id = 1;
	m->tables = xcalloc(1, sizeof(*m->tables));
	tree_init(m);
	tables_init(m);
	res_init(m, &m->storage, RES_STORAGE);
	return m;
}

void fsmodel_free(struct fsmodel *m)
{
	if (!m)
		return;
	/* Nobody is told of what goes with the model itself. */
	m->options.forget = NULL;
	tables_release(m);
	empty_graves(m);
	tree_release(m);
	empty_graves(m);
	release_facts(&m->facts);
	release_facts(&m->tables->quiet);
	VEC_RELEASE(&m->tables->graves);
	buf_release(&m->tables->held_room);
	free(m->tables);
	buf_release(&m->why);
	free(m);
}

/* For whoever compiles. */

static enum fd_object object_of(const struct open_file *o)
{
	switch (o->object) {
	case OBJECT_FILE:
		if (!o->inode)
			return FD_OBJECT_OTHER;
		if (o->in || o->out)
			return FD_OBJECT_FIFO;
		return o->inode->special || S_ISCHR(o->inode->type) || S_ISBLK(o->inode->type)
			       ? FD_OBJECT_SPECIAL
			       : FD_OBJECT_FILE;
	case OBJECT_PIPE:
		return FD_OBJECT_PIPE;
	case OBJECT_SOCKET:
		return FD_OBJECT_SOCKET;
	case OBJECT_EVENTFD:
		return FD_OBJECT_EVENTFD;
	case OBJECT_INOTIFY:
		return FD_OBJECT_INOTIFY;
	case OBJECT_URING:
		return FD_OBJECT_URING;
	default:
		return FD_OBJECT_OTHER;
	}
}

static bool is_real(const struct open_file *o)
{
	switch (o->object) {
	case OBJECT_FILE:
	case OBJECT_PIPE:
	case OBJECT_EVENTFD:
		return (!o->in || o->in->res.real) && (!o->out || o->out->res.real) &&
		       (o->in || o->out);
	case OBJECT_INOTIFY:
		return true;
	default:
		return false;
	}
}

void fsmodel_lose(struct res *stream)
{
	stream->real = false;
}

void fsmodel_lose_ends(const struct fsmodel *m, struct res *fd)
{
	const struct open_file *o = ((struct descriptor *)fd)->open;

	(void)m;
	if (o->object != OBJECT_PIPE && o->object != OBJECT_FILE)
		return;
	if (o->in)
		fsmodel_lose(&o->in->res);
	if (o->out)
		fsmodel_lose(&o->out->res);
}

void fsmodel_fd_info(const struct fsmodel *m, const struct res *fd, struct fd_info *ret)
{
	const struct descriptor *d = (const struct descriptor *)fd;
	const struct open_file *o = d->open;

	*ret = (struct fd_info){
		.object = object_of(o), .flags = o->flags, .offset = o->offset, .real = is_real(o)
	};
	if (o->found && o->found != d)
		ret->shared = &o->found->res;
	if (o->socket)
		ret->mode = S_IFSOCK | o->socket->mode;
	if (o->inode) {
		ret->mode = o->inode->type | o->inode->mode;
		ret->rdev = o->inode->rdev;
		ret->lost = o->inode->unseen;
		ret->lost |= d->found && !o->inode->names && !o->inode->own && fd->slot < 0 &&
			     !fd_may_be_named(m, d);
	}
}

uint64_t fsmodel_held_bytes(const struct res *file)
{
	const struct inode *i = (const struct inode *)file;

	return i->type && i->type != S_IFREG ? UINT64_MAX : i->held_bytes;
}

bool fsmodel_is_special(const struct res *file)
{
	return ((const struct inode *)file)->special;
}
