/* SPDX-License-Identifier: MIT */
/*
 * What becomes of an event: the table's column `replay` says what can be done
 * with such a call; what it was made on says what is done with this one. Calls on
 * sockets, terminals and the like are not made again: what they carry is order and
 * time, which edges and think time stand for; of a bind() the file is made. Pipes, eventfds and inotify that a
 * call of the trace made are made again, as long as all that goes through a pipe
 * is; what is left out loses it (streams_lose()).
 */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include "base/banned.h"
#include "base/privileged.h"
#include "compile/inside.h"

/* Kernel-internal results: the call was interrupted and is made again, or ended with EINTR. */
#define ERESTARTSYS_FIRST 512
#define ERESTARTSYS_LAST 516

static bool was_interrupted(const struct event *ev)
{
	int err = ev->outcome.err;

	return (ev->flags & EVENT_RESTARTED) || err == EINTR ||
	       (err >= ERESTARTSYS_FIRST && err <= ERESTARTSYS_LAST);
}

/* Devices that every replay has; others hold what is no file's. */
static bool is_common_device(const struct fd_info *info)
{
	unsigned int minor_nr = minor(info->rdev);

	if ((info->mode & S_IFMT) != S_IFCHR)
		return (info->mode & S_IFMT) !=
		       S_IFBLK; /* a file of /proc or /sys is replayed as a file */
	return major(info->rdev) == 1 &&
	       (minor_nr == 3 || minor_nr == 5 || minor_nr == 7 || minor_nr == 8 || minor_nr == 9);
}

static bool is_stream(const struct fd_info *info)
{
	return info->object == FD_OBJECT_PIPE || info->object == FD_OBJECT_FIFO ||
	       info->object == FD_OBJECT_EVENTFD || info->object == FD_OBJECT_INOTIFY;
}

static bool is_storage(const struct fsmodel *m, const struct fd_ref *ref)
{
	struct fd_info info;

	fsmodel_fd_info(m, ref->fd, &info);
	/* One that came in a message has nothing to be made from. */
	if (is_stream(&info))
		return info.real && (ref->made || ref->fd->slot >= 0);
	switch (info.object) {
	case FD_OBJECT_FILE:
		return !info.lost;
	case FD_OBJECT_URING:
		return true;
	case FD_OBJECT_SPECIAL:
		return is_common_device(&info);
	default:
		return false;
	}
}

/*
 * Of what is no file, calls are made that move bytes, make descriptors or give
 * them up. A replay's own ends never block, so their flags are its own affair;
 * whether something was there in time, or anybody still there to read it, is luck.
 */
static bool may_be_on_stream(const struct event *ev)
{
	switch (ev->row->id) {
	case SC_fcntl_setfl:
	case SC_ioctl_fionbio:
	case SC_ioctl_fioasync:
		return false;
	default:
		break;
	}
	switch (row_class(ev->row)) {
	case C_DATA:
	case C_PIPE:
	case C_DESC:
	case C_WAIT: /* eventfd, inotify_init and their kin */
		return ev->outcome.err != EAGAIN && ev->outcome.err != EPIPE;
	default:
		return false;
	}
}

/* A FIFO is a file like others to whom its bytes do not matter. */
static bool is_about_file(const struct event *ev, const struct fd_info *info)
{
	switch (row_class(ev->row)) {
	case C_META:
	case C_XATTR:
	case C_LOCK:
		return info->object == FD_OBJECT_FIFO;
	default:
		return false;
	}
}

bool event_is_on_stream(const struct fsmodel *m, const struct event *ev, const struct facts *facts)
{
	for (size_t i = 0; i < facts->fds.len; i++) {
		struct fd_info info;

		if (!facts->fds.items[i].fd)
			continue;
		fsmodel_fd_info(m, facts->fds.items[i].fd, &info);
		if (is_stream(&info) && !is_about_file(ev, &info))
			return true;
	}
	return false;
}

/* Requests have their own way to the kernel, which does not know streams. */
bool row_is_async(const struct row *row)
{
	return row_class(row) == C_URING || row_class(row) == C_AIO;
}

void streams_lose(const struct fsmodel *m, const struct event *ev, const struct facts *facts,
		  enum fate fate)
{
	if (fate == FATE_ACTION && !row_is_async(ev->row))
		return;
	for (size_t i = 0; i < facts->touches.len; i++) {
		const struct touch *t = &facts->touches.items[i];

		if (t->res->kind == RES_STREAM && (t->how & (TOUCH_READ | TOUCH_WRITE)) &&
		    t->from < t->to && t->to != TOUCH_TO_END)
			fsmodel_lose(t->res);
	}
	for (size_t i = 0; row_is_async(ev->row) && i < facts->fds.len; i++) {
		if (facts->fds.items[i].fd)
			fsmodel_lose_ends(m, facts->fds.items[i].fd);
	}
}

/*
 * Copying between a file and something else is half a storage call: the other side is
 * swallowed. copy_file_range() takes nothing but files, so that nothing can stand for one.
 */
static bool may_be_half(const struct row *row)
{
	return row->result == RESULT_BYTES_COPIED && row->id != SC_copy_file_range;
}

/*
 * A name that leads to a descriptor of what is no storage: /dev/stdout, where that is a
 * socket, or a pipe from outside. An open of it has its own ways.
 */
static bool names_no_storage(const struct fsmodel *m, const struct event *ev,
			     const struct facts *facts)
{
	for (size_t i = 0; ev->row->result != RESULT_NEW_FD && i < facts->fd_paths.len; i++) {
		const struct fd_ref ref = { .fd = facts->fd_paths.items[i].fd };

		if (!is_storage(m, &ref))
			return true;
	}
	return false;
}

static bool is_on_storage(const struct fsmodel *m, const struct event *ev,
			  const struct facts *facts)
{
	bool any = false, all = !names_no_storage(m, ev, facts);

	/* Each of its requests is for itself: a replay leaves out those about something else. */
	if (ev->row->id == SC_io_uring_enter || ev->row->id == SC_io_submit)
		return true;
	for (size_t i = 0; i < facts->fds.len; i++) {
		const struct fd_ref *ref = &facts->fds.items[i];

		if (!ref->fd)
			continue;
		if (is_storage(m, ref))
			any = true;
		else
			all = false;
	}
	return all || (any && may_be_half(ev->row));
}

/* A pointer that could not be read: the call failed for it, and would not with ours. */
static bool has_bad_pointer(const struct event *ev)
{
	for (unsigned int i = 0; i < ev->row->nr_args; i++) {
		const struct arg *arg = &ev->row->args[i];

		if (ev->args[i].type == VALUE_ADDR && (arg->dir & ARG_IN) && arg->kind != KIND_ADDR)
			return true;
	}
	return ev->outcome.err == EFAULT;
}

/*
 * Mode, owner, times of a device or of a file of /proc. A replay has its own of
 * these, or something that stands for them, and must not change it.
 */
static bool changes_what_is_no_storage(const struct facts *facts)
{
	for (size_t i = 0; i < facts->touches.len; i++) {
		const struct touch *t = &facts->touches.items[i];

		if (t->res->kind == RES_FILE && (t->how & TOUCH_META_WRITE) &&
		    fsmodel_is_special(t->res))
			return true;
	}
	return false;
}

/* Errors that a device gave, which a replay does not have. */
static bool is_of_device(const struct event *ev)
{
	return ev->outcome.err == ENXIO || ev->outcome.err == ENODEV || ev->outcome.err == ENOTTY;
}

static bool is_close(const struct row *row)
{
	return row->id == SC_close;
}

/* The last of those who have the descriptor closes it; before that nothing happens to the file. */
static bool closes_for_good(const struct facts *facts)
{
	for (size_t i = 0; i < facts->touches.len; i++) {
		const struct touch *t = &facts->touches.items[i];

		if (t->res->kind == RES_FD && (t->how & TOUCH_DELETE))
			return true;
	}
	return false;
}

/* Memory that is no file's. */
static bool is_plain_memory(const struct event *ev, const struct facts *facts)
{
	return row_class(ev->row) == C_MAP && !facts->maps.len;
}

static enum fate fate_of_made(const struct fsmodel *m, const struct event *ev,
			      const struct facts *facts)
{
	if (ev->flags & EVENT_UNFINISHED)
		return FATE_SIMULATED; /* nobody knows how far it came */
	/* Of a ring, requests may have gone in and completions come out all the same. */
	if (was_interrupted(ev) && ev->row->id != SC_io_uring_enter)
		return FATE_WAITING;
	if (has_bad_pointer(ev) || is_of_device(ev))
		return FATE_SIMULATED;
	if (ev->row->result == RESULT_NEVER || ev->row->id == SC_umask ||
	    ev->row->id == SC_close_range || is_plain_memory(ev, facts))
		return FATE_NOTHING; /* what they leave behind is dropped, or applied where it counts */
	if (!is_on_storage(m, ev, facts) || changes_what_is_no_storage(facts) ||
	    (!row_is_async(ev->row) && event_is_on_stream(m, ev, facts) && !may_be_on_stream(ev)))
		return FATE_SIMULATED;
	if (is_close(ev->row) && !ev->outcome.err && !closes_for_good(facts))
		return FATE_NOTHING;
	return FATE_ACTION;
}

/* Of the errors of bind() those that come from the path, not from the socket. */
static enum fate fate_of_bind(const struct event *ev)
{
	if (!fsmodel_socket_path(&ev->args[1]) || (ev->flags & EVENT_UNFINISHED))
		return FATE_SIMULATED;
	switch (ev->outcome.err) {
	case 0:
	case EADDRINUSE:
	case ENOENT:
	case ENOTDIR:
	case ELOOP:
	case ENAMETOOLONG:
	case EACCES:
	case EPERM:
	case EROFS:
	case ENOSPC:
	case EDQUOT:
		return FATE_ACTION;
	default:
		return FATE_SIMULATED;
	}
}

enum fate event_fate(const struct fsmodel *m, const struct event *ev, const struct facts *facts)
{
	if (ev->row->id == SC_bind)
		return fate_of_bind(ev);
	if (ev->row->id == EV_map_store)
		return facts->maps.len ? FATE_ACTION : FATE_UNSUPPORTED;
	if (ev->row->sort != ROW_CALL)
		return FATE_NOTHING;
	switch (ev->row->replay) {
	case SUPPORT_GENERIC:
	case SUPPORT_SPECIAL:
		return fate_of_made(m, ev, facts);
	case SUPPORT_SIMULATED:
		return FATE_SIMULATED;
	case SUPPORT_WAITING:
		return FATE_WAITING;
	case SUPPORT_UNSUPPORTED:
		return is_on_storage(m, ev, facts) && facts->touches.len && !ev->outcome.err
			       ? FATE_UNSUPPORTED
			       : FATE_SIMULATED;
	default:
		return FATE_NOTHING;
	}
}

/*
 * Who replays has other rights than the recorded program had, in a tree of his own:
 * what was denied may be given, or not be there.
 */
static bool was_denied(const struct event *ev)
{
	return ev->outcome.err == EACCES || ev->outcome.err == EPERM;
}

/*
 * The failure depends on where the program had its memory, or on what was locked or
 * mapped around it; the memory of a replay is its own, aligned as O_DIRECT wants it.
 */
static bool is_of_memory(const struct event *ev, const struct facts *facts)
{
	if (row_class(ev->row) == C_MAP || ev->row->id == SC_msync)
		return ev->outcome.err && ev->row->id != SC_mmap && ev->row->id != SC_mmap2;
	return facts->unexplained && row_class(ev->row) == C_DATA && ev->outcome.err == EINVAL;
}

bool event_is_enforced(const struct fsmodel *m, const struct event *ev, const struct facts *facts)
{
	return (facts->unexplained && (was_denied(ev) || fsmodel_is_change(m, ev))) ||
	       is_of_memory(ev, facts);
}

/* A list of attributes among which are ones that a replay sets only if that was asked for. */
static bool lists_privileged(const struct event *ev)
{
	const struct value *list = args_find(ev->row, (struct value *)(uintptr_t)ev->args, "list");
	const uint8_t *p, *end;

	if (row_class(ev->row) != C_XATTR || !list || list->type != VALUE_DATA ||
	    !list->data->bytes)
		return false;
	end = list->data->bytes + list->data->kept_bytes;
	for (p = list->data->bytes; p < end; p += strnlen((const char *)p, (size_t)(end - p)) + 1) {
		if (privileged_xattr(p, (size_t)(end - p)))
			return true;
	}
	return false;
}

bool outcome_is_free(const struct fsmodel *m, const struct event *ev, const struct facts *facts)
{
	struct fd_info info;

	for (size_t i = 0; i < facts->fds.len; i++) {
		if (!facts->fds.items[i].fd)
			continue;
		fsmodel_fd_info(m, facts->fds.items[i].fd, &info);
		if (info.object == FD_OBJECT_PIPE && info.real &&
		    (row_class(ev->row) == C_DATA || row_class(ev->row) == C_PIPE))
			continue;
		if (ev->row->id == SC_inotify_add_watch && info.real)
			continue;
		if (info.object == FD_OBJECT_FIFO && info.real)
			continue;
		if (info.object != FD_OBJECT_FILE)
			return true;
	}
	for (size_t i = 0; i < facts->touches.len; i++) {
		if (facts->touches.items[i].res->kind == RES_FILE &&
		    fsmodel_is_special(facts->touches.items[i].res))
			return true;
	}
	return ev->row->id == SC_execve || ev->row->id == SC_execveat || lists_privileged(ev);
}

bool row_looks_up(const struct row *row)
{
	for (unsigned int i = 0; i < row->nr_args; i++) {
		if (row->args[i].kind == KIND_PATH && row->args[i].look != LOOK_TEXT)
			return true;
	}
	return row->id == SC_getcwd || row->id == SC_bind;
}

bool row_makes_names(const struct row *row)
{
	if (!row_looks_up(row) || row_class(row) == C_META)
		return false;
	for (unsigned int i = 0; i < row->nr_args; i++) {
		if (row->args[i].kind == KIND_MODE || row->args[i].struct_id == STRUCT_open_how)
			return true;
	}
	return row->id == SC_bind;
}
