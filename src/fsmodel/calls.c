/* SPDX-License-Identifier: MIT */
/*
 * Which functions stand for which row, from the column `model` of the table; and
 * the functions for rows that need none of their own.
 */
#include <errno.h>
#include <fcntl.h>

#include "base/banned.h"
#include "fsmodel/tables.h"

/* What every row that is handled by its arguments alone does. */

static unsigned int look_flags(const struct call *c, const struct arg *arg)
{
	unsigned int look = arg->look == LOOK_NOFOLLOW ? 0 : LOOK_AT_FOLLOW;
	const struct row *row = c->ev->row;
	unsigned int n;

	for (n = 0; n < row->nr_args; n++) {
		int64_t flags;

		if (row->args[n].set != SET_at_flags && row->args[n].set != SET_statx_flags &&
		    row->args[n].set != SET_access_flags && row->args[n].set != SET_handle_flags)
			continue;
		if (!value_get_int(arg_at(c, n), &flags))
			continue;
		if (flags & AT_SYMLINK_NOFOLLOW)
			look &= ~(unsigned int)LOOK_AT_FOLLOW;
		if (flags & AT_SYMLINK_FOLLOW)
			look |= LOOK_AT_FOLLOW;
		if (flags & AT_EMPTY_PATH)
			look |= LOOK_AT_EMPTY;
	}
	return look;
}

static void touch_meta(struct call *c, struct inode *i)
{
	const struct row_info *info = &c->m->tables->rows[c->ev->row->id];

	if (i && info->meta)
		touch_use(c, &i->res, info->meta);
}

/* The first errno that an argument gives; 0: none. */
static int ask_arg(struct call *c, unsigned int n, int64_t *dirfd)
{
	const struct arg *arg = &c->ev->row->args[n];
	const struct value *v = arg_at(c, n);
	struct found f = { 0 };

	switch (arg->kind) {
	case KIND_FD:
		if (c->m->tables->rows[c->ev->row->id].after & (1u << n))
			return 0;
		c->fd = fd_get(c, value_int_or(v, -1));
		if (!c->fd)
			return EBADF;
		touch_meta(c, c->fd->open->inode);
		return 0;
	case KIND_DIRFD:
		*dirfd = value_int_or(v, AT_FDCWD);
		return 0;
	case KIND_PATH:
		if (arg->look == LOOK_TEXT || v->type != VALUE_DATA)
			return 0;
		look_up(c, *dirfd, v, look_flags(c, arg), 0, &f);
		*dirfd = AT_FDCWD;
		if (!f.err)
			touch_meta(c, f.inode);
		return f.err;
	default:
		return 0;
	}
}

static struct outcome ask_generic(struct call *c)
{
	const struct row *row = c->ev->row;
	int64_t dirfd = AT_FDCWD;
	unsigned int n;

	for (n = 0; n < row->nr_args; n++) {
		int err = ask_arg(c, n, &dirfd);

		if (err)
			return fails(err);
	}
	if (row->result != RESULT_ZERO)
		c->any_ret = true;
	/* Its arguments lead to something; more is not known of it. */
	if (!c->want_ok)
		c->unsure = true;
	return succeeds(0);
}

static bool mend_generic(struct call *c)
{
	const struct row *row = c->ev->row;
	int64_t dirfd = AT_FDCWD;
	bool mended = false;
	unsigned int n;

	if (!c->want_ok)
		return false;
	for (n = 0; n < row->nr_args; n++) {
		const struct arg *arg = &row->args[n];

		if (arg->kind == KIND_DIRFD)
			dirfd = value_int_or(arg_at(c, n), AT_FDCWD);
		if (arg->kind == KIND_PATH && arg->look != LOOK_TEXT)
			mended |= mend_exists(c, dirfd, arg_at(c, n), look_flags(c, arg), 0);
	}
	return mended;
}

const struct call_row model_generic = { ask_generic, NULL, mend_generic };

/* Calls that make a descriptor of which no more is known. */

static struct outcome ask_new_object(struct call *c)
{
	c->any_ret = c->unsure = true;
	return succeeds(0);
}

static bool wants_cloexec(const struct call *c)
{
	const struct row *row = c->ev->row;
	unsigned int n;

	/* The flags of all these calls have O_CLOEXEC in the same place, where they have it. */
	for (n = 0; n < row->nr_args; n++) {
		if (row->args[n].kind == KIND_FLAGS && value_int_or(arg_at(c, n), 0) & O_CLOEXEC)
			return true;
	}
	return false;
}

static void apply_new_object(struct call *c)
{
	enum object_kind object = OBJECT_OTHER;
	bool cloexec = wants_cloexec(c);

	if (c->ev->row->id == SC_epoll_create || c->ev->row->id == SC_epoll_create1)
		object = OBJECT_EPOLL;
	if (c->ev->row->id == SC_inotify_init || c->ev->row->id == SC_inotify_init1)
		object = OBJECT_INOTIFY;
	if (c->ev->row->id == SC_perf_event_open)
		cloexec = value_int_or(arg_at(c, 4), 0) & 8; /* PERF_FLAG_FD_CLOEXEC */
	if (c->ev->row->id == SC_mq_open || c->ev->row->id == SC_landlock_create_ruleset)
		cloexec = true;
	fd_make_object(c, object, 0, cloexec);
}

const struct call_row call_new_object = { ask_new_object, apply_new_object, NULL };

#define NEW_OBJECT(name)                                                                           \
	const struct call_row model_##name = { ask_new_object, apply_new_object, NULL }

NEW_OBJECT(userfaultfd);
NEW_OBJECT(epoll_create);
NEW_OBJECT(epoll_create1);
NEW_OBJECT(timerfd_create);
NEW_OBJECT(inotify_init);
NEW_OBJECT(inotify_init1);
NEW_OBJECT(landlock_create_ruleset);
NEW_OBJECT(mq_open);
NEW_OBJECT(perf_event_open);
NEW_OBJECT(ioctl_tiocgptpeer);
NEW_OBJECT(ioctl_userfaultfd_new);
NEW_OBJECT(kqueue);
NEW_OBJECT(shm_open);

/* signalfd makes one, or changes the one that it is given. */
static struct outcome ask_signalfd(struct call *c)
{
	int64_t number = value_int_or(arg_at(c, 0), -1);

	if (number == -1)
		return ask_new_object(c);
	c->fd = fd_get(c, number);
	return c->fd ? succeeds(number) : fails(EBADF);
}

static void apply_signalfd(struct call *c)
{
	if (!c->fd)
		apply_new_object(c);
}

const struct call_row model_signalfd = { ask_signalfd, apply_signalfd, NULL };
const struct call_row model_signalfd4 = { ask_signalfd, apply_signalfd, NULL };

/* Calls about words in memory: what they order, order/ reads from the event itself. */
static struct outcome ask_word(struct call *c)
{
	c->any_ret = c->unsure = true;
	return succeeds(0);
}

#define WORD(name) const struct call_row model_##name = { ask_word, NULL, NULL }

WORD(futex);
WORD(futex_op_wait);
WORD(futex_op_wake);
WORD(futex_op_requeue);
WORD(futex_op_cmp_requeue);
WORD(futex_op_wake_op);
WORD(futex_op_lock_pi);
WORD(futex_op_unlock_pi);
WORD(futex_op_trylock_pi);
WORD(futex_op_wait_bitset);
WORD(futex_op_wake_bitset);
WORD(futex_op_wait_requeue_pi);
WORD(futex_op_cmp_requeue_pi);
WORD(futex_op_lock_pi2);
WORD(futex_waitv);
WORD(futex_wake);
WORD(futex_wait);
WORD(futex_requeue);
WORD(posix_spawn);

/* The table. */

#define DECLARE_GENERIC(name)
#define DECLARE_NOTHING(name)
#define DECLARE_UNSUPPORTED(name)
#define DECLARE_SPECIAL(name) extern const struct call_row model_##name;
#define SYSCALL(id, name, class, args, result, model, replay) DECLARE_##model(name)
#include "model/syscalls.def"
#undef SYSCALL

#define ROW_GENERIC(name) &model_generic
#define ROW_NOTHING(name) NULL
#define ROW_UNSUPPORTED(name) NULL
#define ROW_SPECIAL(name) &model_##name

static const struct call_row *const by_table[ROW_ID_MAX] = {
#define SYSCALL(id, name, class, args, result, model, replay) [id] = ROW_##model(name),
#include "model/syscalls.def"
#undef SYSCALL
};

static const struct call_row call_data = { ask_data, apply_data, NULL };
static const struct call_row call_sync = { ask_sync, NULL, NULL };

static const struct call_row *choose(const struct row *row)
{
	const struct call_row *calls = by_table[row->id];

	if (calls == &model_generic &&
	    (row->result == RESULT_BYTES_READ || row->result == RESULT_BYTES_WRITTEN))
		return &call_data;
	if (calls == &model_generic && row_class(row) == C_SYNC)
		return &call_sync;
	/* Its number is taken, whatever it is. */
	if (!calls && row->result == RESULT_NEW_FD)
		return &call_new_object;
	return calls;
}

static bool is_fd(enum kind kind)
{
	return kind == KIND_FD || kind == KIND_DIRFD;
}

/* Structs whose descriptors mean something only with a flag that the walk does not know. */
static bool ignored_struct(unsigned int id)
{
	return id == STRUCT_siginfo || id == STRUCT_clone_args || id == STRUCT_mount_attr;
}

bool arg_has_fds(const struct arg *arg)
{
	const struct struct_desc *desc = &struct_descs[arg->struct_id];
	unsigned int n;

	if (is_fd(arg->kind) || is_fd(arg->elem))
		return true;
	if (ignored_struct(arg->struct_id))
		return false;
	for (n = 0; n < desc->nr_fields; n++) {
		if (arg_has_fds(&desc->fields[n]))
			return true;
	}
	return false;
}

static int8_t position(const struct row *row, enum kind kind)
{
	int n;

	for (n = 0; n < row->nr_args; n++) {
		if (row->args[n].kind == kind)
			return (int8_t)n;
	}
	return -1;
}

static int8_t position_of_set(const struct row *row, enum set_id set)
{
	int n;

	for (n = 0; n < row->nr_args; n++) {
		if (row->args[n].set == set)
			return (int8_t)n;
	}
	return -1;
}

static void scan_args(struct row_info *info, const struct row *row)
{
	unsigned int n;

	for (n = 0; n < row->nr_args; n++) {
		const struct arg *arg = &row->args[n];
		uint16_t bit = (uint16_t)(1u << n);

		/* One after another: what one opens the next may use. */
		if (arg->kind == KIND_SQES || arg->kind == KIND_CQES)
			continue;
		if (is_fd(arg->kind))
			info->fd_args |= bit;
		else if (arg_has_fds(arg))
			info->nested |= bit;
		else
			continue;
		if (arg->dir == ARG_OUT || (is_fd(arg->kind) && arg->reg == REG_NONE))
			info->after |= bit;
	}
	/* The second of these is no argument but where the result goes. */
	if (row->id == SC_dup2 || row->id == SC_dup3)
		info->after |= 2;
}

static uint32_t meta_touch(const struct row *row)
{
	bool writes = strstr(row->name, "set") || strstr(row->name, "chflags");

	switch (row_class(row)) {
	case C_META:
	case C_XATTR:
		return writes ? TOUCH_META_WRITE : TOUCH_META_READ | TOUCH_SIZE_READ;
	default:
		return 0;
	}
}

void rows_init(struct row_info *rows)
{
	unsigned int id;

	for (id = 1; id < ROW_ID_MAX; id++) {
		const struct row *row = row_by_id(id);
		struct row_info *info = &rows[id];

		if (!row || row->sort != ROW_CALL)
			continue;
		info->calls = choose(row);
		info->makes_fd = row->result == RESULT_NEW_FD;
		info->fd = position(row, KIND_FD);
		info->offset = position(row, KIND_OFF);
		info->count = position(row, KIND_SIZE);
		info->vec = position(row, KIND_ARRAY);
		info->flags = position_of_set(row, SET_rwf_flags);
		if (info->flags < 0)
			info->flags = position_of_set(row, SET_msg_flags);
		info->meta = meta_touch(row);
		scan_args(info, row);
	}
}
