/* SPDX-License-Identifier: MIT */
/* What calls do to descriptors and directories: mostly told by the kinds of their arguments. */
#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <string.h>

#include "base/banned.h"
#include "base/mem.h"
#include "model/vocab.h"
#include "report/fdpaths_inside.h"

#define TRACE_FD_CLOEXEC 1
#define TRACE_CLOSE_RANGE_CLOEXEC 4

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
