/* SPDX-License-Identifier: MIT */
#include "record/agent/rules.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "record/capture_inside.h"

/* asm/prctl.h */
#define ARCH_SET_FS 0x1002
/* FUTEX_PRIVATE_FLAG and FUTEX2_PRIVATE. */
#define FUTEX_PRIVATE_BIT 0x80u

/* Whom the tracer has to see, or what the agent cannot make in the program's stead. */
static bool is_left_to_tracer(const struct row *row)
{
	switch ((int)row->id) {
	case SC_unknown_call:
	case SC_rt_sigreturn: /* goes on elsewhere */
	case SC_restart_syscall: /* means the call that was broken off */
	case SC_kill: /* may be the end: while the thread is there, its records can be taken in */
	case SC_tkill:
	case SC_tgkill:
	case SC_pidfd_send_signal:
	case SC_wait4: /* shall not return before the end that it tells of is recorded */
	case SC_waitid:
	case SC_open_by_handle_at: /* what it opens is noted at its end */
	case SC_bind: /* may make a name, which is not there before */
	case SC_vmsplice: /* its direction is found elsewhere */
	case SC_sched_getaffinity: /* may be bound to a CPU for a moment: see beside.h */
	case SC_sched_setaffinity:
	case SC_fanotify_mark: /* after it, files may not be opened: see tree_may_open() */
	case SC_userfaultfd: /* after it, to look at memory may be to wait for ever */
	case SC_ioctl_userfaultfd_new:
	case SC_setsid:
	case SC_fork:
	case SC_vfork:
	case SC_seccomp:
		return true;
	}
	return row->result == RESULT_NEVER;
}

/*
 * Calls that name paths, and change nothing: what they touch may be noted
 * when their records are taken in, which is before the tracer lets any call go
 * on that changes names or makes a file writable.
 */
static bool only_looks(const struct row *row)
{
	switch ((int)row->id) {
	case SC_open:
	case SC_openat:
	case SC_stat:
	case SC_lstat:
	case SC_newfstatat:
	case SC_statx:
	case SC_access:
	case SC_faccessat:
	case SC_faccessat2:
	case SC_readlink:
	case SC_readlinkat:
	case SC_statfs:
	case SC_getxattr:
	case SC_lgetxattr:
	case SC_listxattr:
	case SC_llistxattr:
		return true;
	}
	return false;
}

/* Calls that concern the process alone, and nothing that the tracer keeps of it. */
static bool is_its_own_affair(const struct row *row)
{
	switch ((int)row->id) {
	case SC_set_tid_address:
	case SC_set_robust_list:
	case SC_get_robust_list:
	case SC_rseq:
	case SC_arch_prctl:
	case SC_getrlimit:
	case SC_setrlimit:
	case SC_prlimit64:
	case SC_getrusage:
	case SC_times:
	case SC_getpriority:
	case SC_setpriority:
	case SC_sched_setscheduler:
	case SC_sched_getscheduler:
	case SC_sched_setparam:
	case SC_sched_getparam:
	case SC_sched_get_priority_max:
	case SC_sched_get_priority_min:
	case SC_getcpu:
	case SC_getpgid:
	case SC_getsid:
	case SC_getresuid:
	case SC_getresgid:
	case SC_getgroups:
	case SC_time:
	case SC_gettimeofday:
	case SC_clock_gettime:
	case SC_clock_getres:
	case SC_uname:
	case SC_sysinfo:
	case SC_getrandom:
	case SC_getcwd:
		return true;
	}
	return row_class(row) == C_PROC && !row->nr_args;
}

/* Calls that make, remove or move names of files, or what they hold: when these are known. */
static bool changes_names(const struct row *row)
{
	switch ((int)row->id) {
	case SC_open:
	case SC_openat:
	case SC_creat:
	case SC_unlink:
	case SC_unlinkat:
	case SC_rename:
		return true;
	}
	return false;
}

/* Calls that read a directory: when its names are noted. */
static bool reads_directory(const struct row *row)
{
	return row->id == SC_getdents || row->id == SC_getdents64;
}

/*
 * Calls that change what a file is, and for which a descriptor for reading is enough: they tell the
 * program nothing, so they change something. What was opened for reading alone may not be noted yet.
 */
static bool changes_file(const struct row *row)
{
	unsigned int i;

	if (row->id == SC_ioctl) /* of one that we do not know anything is possible */
		return true;
	if ((row_class(row) != C_META && row_class(row) != C_XATTR) || !row->nr_args ||
	    row->args[0].kind != KIND_FD)
		return false;
	for (i = 0; i < row->nr_args; i++) {
		if (row->args[i].dir & ARG_OUT)
			return false;
	}
	return true;
}

/* Calls that the agent answers if there is nothing by their name, as those of a search along PATH. */
static bool may_be_answered(const struct row *row)
{
	return row->id == SC_execve;
}

static bool fits_class(const struct row *row)
{
	if (only_looks(row) || changes_names(row) || reads_directory(row) ||
	    is_its_own_affair(row) || may_be_answered(row))
		return true;
	switch (row_class(row)) {
	case C_MAP:
	case C_DESC:
	case C_DATA:
	case C_META:
	case C_XATTR:
	case C_SYNC:
	case C_PIPE:
	case C_NET:
	case C_WAIT:
	case C_LOCK:
	case C_SIGNAL:
		return true;
	default:
		return false; /* names, rings: the tracer follows them */
	}
}

/* Whether all of the struct is in one place. */
static bool is_flat(unsigned int struct_id)
{
	const struct struct_desc *d = &struct_descs[struct_id];
	unsigned int i;

	if (!d->size_bytes)
		return false;
	for (i = 0; i < d->nr_fields; i++) {
		const struct arg *f = &d->fields[i];

		if (d->places()[i].offset_bytes == OFFSET_NONE)
			return false;
		if (capture_is_scalar(f) || f->kind == KIND_HOLE)
			continue;
		/* What has no width of its own goes on behind the struct. */
		if (!f->here || !d->places()[i].width_bytes)
			return false;
		if (f->struct_id && !is_flat(f->struct_id))
			return false;
	}
	return true;
}

/* The agent's code for a length of the table; false when the agent cannot know it. */
static bool number_of(const struct row *row, unsigned int code, struct wire_piece *p, uint8_t *ret)
{
	const struct arg *a;
	unsigned int width;
	int reg;

	if (code & LEN_CONST) {
		p->most = code & ~(unsigned int)LEN_CONST;
		*ret = WIRE_FROM_NOTHING;
		return p->most != 0;
	}
	if (code == RET) {
		*ret = WIRE_FROM_RET | WIRE_NUMBER_SIGNED;
		return true;
	}
	if (code < A0 || code > A11 || code - A0 >= row->nr_args)
		return false;
	a = &row->args[code - A0];
	reg = capture_register(row, code - A0);
	if (!capture_is_scalar(a) || reg < 0)
		return false;
	width = a->width_bytes ? a->width_bytes : kind_infos[a->kind].width_bytes;
	*ret = (uint8_t)reg;
	if (width == 4)
		*ret |= WIRE_NUMBER_32;
	if (capture_is_signed(a))
		*ret |= WIRE_NUMBER_SIGNED;
	return width == 4 || width == 8;
}

/* A result that counts bytes or items is at most the size that the call was given. */
static bool bound_of(const struct row *row, struct wire_piece *p, uint8_t *ret)
{
	unsigned int i, found = 0;

	if ((p->cap & WIRE_NUMBER_FROM) != WIRE_FROM_NOTHING) {
		*ret = p->cap;
		return true;
	}
	for (i = 0; i < row->nr_args; i++) {
		const struct arg *a = &row->args[i];

		if (a->kind == KIND_SIZE && number_of(row, A0 + i, p, ret))
			found++;
	}
	if (found == 1)
		return true;
	/* How many events or bytes there is room for. */
	if (row->id != SC_epoll_wait && row->id != SC_epoll_pwait && row->id != SC_epoll_pwait2 &&
	    !reads_directory(row))
		return false;
	return number_of(row, A2, p, ret);
}

static bool find_length(const struct row *row, const struct arg *a, struct wire_piece *p)
{
	if (!number_of(row, a->len, p, &p->number))
		return false;
	if (a->cap && !number_of(row, a->cap, p, &p->cap))
		return false;
	if ((p->number & WIRE_NUMBER_FROM) != WIRE_FROM_RET) {
		p->bound = p->number;
		return true;
	}
	return p->when == WIRE_OUT && bound_of(row, p, &p->bound);
}

static unsigned int item_bytes(const struct arg *a)
{
	return a->width_bytes ? a->width_bytes : kind_infos[a->elem].width_bytes;
}

/* A piece for one argument at one moment; false when it cannot be had that way. */
static bool make_piece(const struct row *row, const struct arg *a, struct wire_piece *p)
{
	p->unit = 1;
	p->number = p->cap = p->bound = WIRE_FROM_NOTHING;
	switch ((enum kind)a->kind) {
	case KIND_BUF:
	case KIND_DIRENTS:
		return find_length(row, a, p);
	case KIND_STRUCT:
		if (!is_flat(a->struct_id))
			return false;
		if (a->len != LEN_NONE && !find_length(row, a, p))
			return false;
		p->most = struct_descs[a->struct_id].size_bytes;
		return true;
	case KIND_PTR:
	case KIND_VEC:
		p->unit = item_bytes(a);
		return p->unit && find_length(row, a, p);
	case KIND_FDSET:
		p->kind = WIRE_BITS;
		return find_length(row, a, p);
	case KIND_ARRAY:
		if (a->struct_id == STRUCT_iovec) {
			/* Elsewhere they may mean the memory of another process. */
			p->kind = WIRE_IOVECS;
			return row_class(row) == C_DATA && find_length(row, a, p);
		}
		p->unit = struct_descs[a->struct_id].size_bytes;
		return is_flat(a->struct_id) && find_length(row, a, p);
	case KIND_PATH:
		p->kind = WIRE_STRING;
		p->most = CAPTURE_PATH_MAX;
		return only_looks(row) || changes_names(row) || may_be_answered(row);
	case KIND_STRV:
		p->kind = WIRE_STRINGS;
		p->most = CAPTURE_ARG_MAX;
		return true;
	case KIND_STR:
		p->kind = WIRE_STRING;
		p->most = CAPTURE_STR_MAX;
		return true;
	case KIND_SOCKADDR:
		p->most = CAPTURE_SOCKADDR_MAX;
		return a->len != LEN_NONE && find_length(row, a, p);
	default:
		return false;
	}
}

/* What is in no register. */
static bool add_found(const struct row *row, const struct arg *a, struct wire_rule *r)
{
	unsigned int i;

	if (a->struct_id == STRUCT_futex_key)
		return a->kind == KIND_STRUCT && r->also_mask; /* a private one needs no look-up */
	if (a->struct_id != STRUCT_file_id)
		return false;
	r->flags |= WIRE_RULE_FILE;
	if (row->result == RESULT_NEW_FD) {
		r->file_from = WIRE_FROM_RET;
		return true;
	}
	for (i = 0; i < row->nr_args && row->args[i].kind != KIND_FD; i++)
		;
	if (i == row->nr_args || capture_register(row, i) < 0)
		return false;
	r->file_from = (uint8_t)capture_register(row, i);
	return true;
}

/* Only calls with this in their flags are for the agent. */
static void add_condition(const struct row *row, struct wire_rule *r)
{
	unsigned int i;

	if (changes_names(row))
		r->flags |= WIRE_RULE_NAMES;
	if (reads_directory(row))
		r->flags |= WIRE_RULE_LISTED;
	if (may_be_answered(row))
		r->flags |= WIRE_RULE_FAILS;
	if (changes_file(row))
		r->flags |= WIRE_RULE_WRITABLE;
	for (i = 0; i < row->nr_args; i++) {
		const struct arg *a = &row->args[i];
		int reg = capture_register(row, i);

		if (reg < 0)
			continue;
		if (a->kind == KIND_DIRFD && (only_looks(row) || changes_names(row)))
			r->flags |= WIRE_RULE_AT;
		if (a->set == SET_open_flags && row->result == RESULT_NEW_FD) {
			r->flags |= WIRE_RULE_NOT_PROC;
			r->also_reg = (uint8_t)reg; /* reading alone, or known names */
			r->also_mask = O_ACCMODE | O_CREAT | O_TRUNC | (O_TMPFILE & ~O_DIRECTORY);
		} else if (row->id == SC_mmap && a->set == SET_mmap_prot) {
			r->also_reg = (uint8_t)reg; /* a text may be patched */
			r->also_mask = PROT_EXEC;
			r->flags |= WIRE_RULE_TEXT | WIRE_RULE_PRIVATE;
		} else if (row->id == SC_arch_prctl && a->set == SET_arch_prctl_ops) {
			r->also_reg = (uint8_t)reg; /* whoever sets gs takes it from the agent */
			r->also_mask = UINT32_MAX;
			r->also_value = ARCH_SET_FS;
		} else if (a->set == SET_futex_ops || a->set == SET_futex2_flags) {
			r->also_reg = (uint8_t)reg;
			r->also_mask = r->also_value = FUTEX_PRIVATE_BIT;
		}
	}
}

static bool add_pieces(const struct row *row, unsigned int i, enum data_policy policy,
		       struct wire_rule *r)
{
	static const uint8_t moments[] = { WIRE_IN, WIRE_OUT };
	const struct capture capture = { .policy = policy };
	const struct arg *a = &row->args[i];
	unsigned int m;

	if (a->reg == REG_NONE)
		return add_found(row, a, r);
	if (a->kind == KIND_HOLE || capture_is_scalar(a))
		return true;
	if (a->kind == KIND_BUF && capture_keep(&capture, row, 0) == CAPTURE_KEEP_NOTHING)
		return true;
	for (m = 0; m < ARRAY_LEN(moments); m++) {
		struct wire_piece p = { .when = moments[m] };

		if (!(a->dir & (moments[m] == WIRE_IN ? ARG_IN : ARG_OUT)))
			continue;
		p.reg = (uint8_t)capture_register(row, i);
		if (r->nr_pieces == WIRE_PIECES_MAX || !make_piece(row, a, &p))
			return false;
		r->pieces[r->nr_pieces++] = p;
	}
	return true;
}

bool rules_for_row(const struct row *row, enum data_policy policy, struct wire_rule *ret)
{
	struct wire_rule r = { .flags = WIRE_RULE_USED };
	unsigned int i;

	if (is_left_to_tracer(row) || !fits_class(row))
		return false;
	add_condition(row, &r);
	for (i = 0; i < row->nr_args; i++) {
		if (!add_pieces(row, i, policy, &r))
			return false;
	}
	memcpy(ret->pieces, r.pieces, sizeof(r.pieces));
	ret->nr_pieces = r.nr_pieces;
	ret->flags = r.flags;
	ret->also_reg = r.also_reg;
	ret->also_mask = r.also_mask;
	ret->also_value = r.also_value;
	ret->file_from = r.file_from;
	return true;
}

/* What is to be recorded, and what of it. */
struct choice {
	enum data_policy policy;
	const bool *wanted; /* by row id; NULL: all */
	const struct path_choice *paths;
	bool watches; /* files are mapped that programs can store to */
};

static bool names_path(const struct row *row)
{
	unsigned int i;

	for (i = 0; i < row->nr_args; i++) {
		if (row->args[i].kind == KIND_PATH || row->args[i].kind == KIND_DIRFD)
			return true;
	}
	return false;
}

static unsigned int nr_descriptors(const struct row *row)
{
	unsigned int i, nr = 0;

	for (i = 0; i < row->nr_args; i++)
		nr += row->args[i].kind == KIND_FD;
	return nr;
}

int rules_chosen_by(const struct row *row)
{
	unsigned int i = 0;

	if (row_is_context(row) || names_path(row) || nr_descriptors(row) != 1)
		return -1;
	while (row->args[i].kind != KIND_FD)
		i++;
	return capture_register(row, i);
}

static bool ends_descriptors(const struct row *row)
{
	return row->id == SC_close || row->id == SC_close_range || row->id == SC_dup2 ||
	       row->id == SC_dup3;
}

/* With chosen paths the tracer has to see who makes or ends descriptors, and names. */
static bool may_choose(const struct row *row)
{
	return !names_path(row) && nr_descriptors(row) <= 1 && row->result != RESULT_NEW_FD &&
	       (!nr_descriptors(row) || rules_chosen_by(row) >= 0);
}

static void add_choice(const struct row *row, const struct path_choice *paths, struct wire_rule *r)
{
	int reg = rules_chosen_by(row);

	if (!(r->flags & WIRE_RULE_USED) || (row_is_context(row) && !ends_descriptors(row)))
		return;
	if (!may_choose(row) || ends_descriptors(row)) {
		r->flags = 0;
		return;
	}
	r->flags |= WIRE_RULE_CHOSEN | (paths->only ? WIRE_RULE_PATHLESS : 0);
	r->file_from = reg < 0 ? WIRE_FROM_NOTHING : (uint8_t)reg;
}

static bool moves_map(const struct row *row)
{
	return row->id == SC_munmap || row->id == SC_mremap || row->id == SC_mprotect ||
	       row->id == SC_pkey_mprotect;
}

/*
 * While files are mapped that programs can store to, the tracer has to see what is done with these, and with maps: of
 * calls with one descriptor, the table of descriptors says whether it is of such a file, as with chosen paths.
 */
static void add_watch(const struct row *row, struct wire_rule *r)
{
	enum row_class class = row_class(row);
	bool moves_data = class == C_DATA || class == C_SYNC || class == C_PIPE;
	int reg = rules_chosen_by(row);

	if (row->id == SC_mmap && r->flags & WIRE_RULE_USED) {
		r->flags |= WIRE_RULE_NOT_FIXED;
	} else if (moves_map(row) || ends_descriptors(row) || (moves_data && reg < 0)) {
		r->flags = 0;
	} else if (moves_data && r->flags & WIRE_RULE_USED) {
		r->flags |= WIRE_RULE_CHOSEN;
		r->file_from = (uint8_t)reg;
	}
}

static void fill_rule(const struct row *row, const struct choice *c, struct wire_rule *r)
{
	if (c->wanted && !c->wanted[row->id])
		return;
	/* What a name leads to is noted when the record is taken in: a call that is not seen may change it before that. */
	if (c->wanted && (names_path(row) || reads_directory(row)))
		return;
	(void)rules_for_row(row, c->policy, r);
	if (c->paths->wants)
		add_choice(row, c->paths, r);
	if (c->watches)
		add_watch(row, r);
}

static void build(const struct choice *c, struct wire_rule *ret)
{
	unsigned int nr, i, next = WIRE_NR_CALLS;
	bool has_variants[ROW_ID_MAX] = { false };
	const struct row_variant *v;

	for (i = 0; (v = row_variant_at(i)); i++)
		has_variants[v->base] = true;
	memset(ret, 0, WIRE_NR_RULES * sizeof(*ret));
	for (nr = 0; nr < WIRE_NR_CALLS; nr++) {
		const struct row *base = row_by_nr(ARCH_X86_64, nr);
		struct wire_rule *last = &ret[nr];

		if (!base)
			continue;
		/* Variants first, each at the place of the one before it; what is left is the base's. */
		for (i = 0; has_variants[base->id] && (v = row_variant_at(i)); i++) {
			if (next == WIRE_EMPTY_RULE)
				break;
			if (v->base != base->id)
				continue;
			last->select_reg = v->reg;
			last->select_mask = v->mask;
			last->select_value = v->value;
			fill_rule(row_by_id(v->id), c, last);
			last->next = (uint16_t)next;
			last = &ret[next++];
		}
		fill_rule(base, c, last);
	}
}

void rules_build(enum data_policy policy, const bool *wanted, const struct path_choice *paths,
		 struct wire_rule *ret)
{
	build(&(struct choice){ policy, wanted, paths, false }, ret);
}

void rules_build_watchful(enum data_policy policy, const bool *wanted,
			  const struct path_choice *paths, struct wire_rule *ret)
{
	build(&(struct choice){ policy, wanted, paths, true }, ret);
}

bool rules_take(const struct wire_rule *rules, unsigned int nr)
{
	const struct wire_rule *r = &rules[nr];

	while (!(r->flags & WIRE_RULE_USED) && r->next)
		r = &rules[r->next];
	return r->flags & WIRE_RULE_USED;
}

const struct wire_rule *rules_find(const struct wire_rule *rules, uint64_t nr,
				   const uint64_t regs[6])
{
	const struct wire_rule *r = &rules[nr < WIRE_NR_CALLS ? nr : WIRE_EMPTY_RULE];

	while ((regs[r->select_reg] & r->select_mask) != r->select_value) {
		if (!r->next)
			return NULL;
		r = &rules[r->next];
	}
	return r->flags & WIRE_RULE_USED ? r : NULL;
}

unsigned int rules_most_copies(const struct wire_rule *r)
{
	unsigned int nr = r->flags & WIRE_RULE_FILE ? 1 : 0, i;

	for (i = 0; i < r->nr_pieces; i++) {
		nr++;
		if (r->pieces[i].kind == WIRE_IOVECS)
			nr += WIRE_IOVECS_MAX;
		if (r->pieces[i].kind == WIRE_STRINGS)
			nr += WIRE_STRINGS_MAX;
	}
	return nr;
}

bool rules_allow_result(const struct wire_rule *r, int64_t ret)
{
	return !(r->flags & WIRE_RULE_FAILS) || ret == WIRE_ANSWER;
}
