/* SPDX-License-Identifier: MIT */
#include "record/ptrace/map_stores.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>

#include "base/clock.h"
#include "record/capture_inside.h"
#include "record/page_marks.h"
#include "record/ptrace/tracer.h"
#include "record/stores.h"

#define PAGE UINT64_C(4096)
#define MREMAP_KEEPS 4 /* MREMAP_DONTUNMAP */

static uint64_t page_up(uint64_t n)
{
	return (n + PAGE - 1) & ~(PAGE - 1);
}

static struct stores_range range_of(const struct tracee *t, uint64_t addr, uint64_t len)
{
	uint64_t end = addr + page_up(len);

	return (struct stores_range){ t->space, addr, end < addr ? UINT64_MAX : end };
}

/* What was found goes to the stream of a thread. */
struct finding {
	struct tracer *tr;
	struct tracee *t;
	uint64_t at_ns;
	bool in_call; /* that has begun: how long the thread was held is known for it already */
};

static int put_found(void *of, const struct stored *found)
{
	const struct finding *f = of;
	struct event ev = { .row = row_by_id(EV_map_store),
			    .enter_ns = f->at_ns,
			    .exit_ns = f->at_ns };
	enum capture_keep keep = capture_keep(&f->tr->capture, ev.row, 0);
	struct data d = { .len_bytes = found->len_bytes };
	struct blob_ref ref;
	int r = 0;

	if (f->tr->session->is_over)
		return -ECANCELED;
	if (keep != CAPTURE_KEEP_NOTHING) {
		r = capture_piece(&f->tr->capture, keep, found->bytes, found->len_bytes, &ref);
		d.kept_bytes = found->len_bytes;
		d.refs = &ref;
	}
	if (r < 0) {
		tracer_cut_short(f->tr, r, "cannot write the trace");
		return r;
	}
	ev.args[0] = value_uint(found->addr);
	ev.args[1] = value_uint(found->len_bytes);
	ev.args[2] = (struct value){ .type = VALUE_DATA, .data = &d };
	ev.args[3] = value_int(found->pid);
	ev.args[4] = value_uint(found->offset);
	ev.args[5] = value_uint(found->dev);
	ev.args[6] = value_uint(found->ino);
	if (!f->in_call)
		tracer_take_held(f->t, &ev);
	tracer_put_event(f->tr, f->t, &ev);
	return 0;
}

static void put_loss(struct tracer *tr, const struct tracee *t, uint64_t count, uint64_t bytes,
		     const char *note)
{
	struct loss loss = { .kind = tr->o->no_stores ? LOSS_FILTERED : LOSS_STORES_UNSEEN,
			     .pid = (uint32_t)t->pid,
			     .tid = (uint32_t)t->tid,
			     .count = count,
			     .bytes = bytes,
			     .from_ns = tracer_now(tr),
			     .to_ns = tracer_now(tr),
			     .note = note };

	tracer_put_loss(tr, &loss);
}

static void put_lost(struct tracer *tr, const struct tracee *t, uint64_t bytes)
{
	put_loss(tr, t, !tr->o->no_stores, bytes,
		 "what is stored through a shared map of a file is not seen");
}

/* A look has ended, in which files may have got lost. */
static void end_look(struct tracer *tr, const struct tracee *t)
{
	uint64_t bytes;

	while (stores_take_lost(tr->stores, &bytes))
		put_lost(tr, t, bytes);
	if (stores_take_doubt(tr->stores))
		put_loss(
			tr, t, 1, 0,
			"stores through a very large map are missing if the kernel reclaimed their "
			"pages before the recorder looked");
}

/* Maps have gone, and with them files that had not been looked at each time. */
static void end_maps(struct tracer *tr, const struct tracee *t)
{
	uint64_t nr = stores_take_late(tr->stores);

	if (nr)
		put_loss(tr, t, nr, 0,
			 "stores through maps of large files are later in the trace than they "
			 "were made: the files were not looked at before so many calls");
}

static bool has_path(const struct row *row)
{
	unsigned int i;

	for (i = 0; i < row->nr_args; i++) {
		if (row->args[i].kind == KIND_PATH)
			return true;
	}
	return false;
}

/* A name, or nothing at all: any file may be meant. */
static bool is_about_all(const struct row *row)
{
	return has_path(row) || row->id == SC_sync || row->id == SC_syncfs || row->id == SC_msync;
}

/* At the files that the call's descriptors are of. */
static int look_at_files(struct tracer *tr, const struct tracee *t, const struct stores_sink *sink)
{
	struct stat st;
	unsigned int i;
	int r = 0, reg;

	if (is_about_all(t->row))
		return stores_look_all(tr->stores, sink);
	for (i = 0; i < t->row->nr_args && !r; i++) {
		if (t->row->args[i].kind != KIND_FD)
			continue;
		reg = capture_register(t->row, i);
		if (reg >= 0 && found_stat(t->tid, (int)t->regs[reg], &st))
			r = stores_look_file(tr->stores, st.st_dev, st.st_ino, sink);
	}
	return r;
}

static int look_at_maps(struct tracer *tr, const struct tracee *t, const struct stores_sink *sink)
{
	struct stores_range at = range_of(t, t->regs[0], t->regs[1]);

	switch ((int)t->row->id) {
	case SC_mprotect:
	case SC_pkey_mprotect:
		/* Before the call: another thread may store as soon as it has taken effect. */
		if (t->regs[2] & PROT_WRITE)
			stores_allow(tr->stores, &at);
		break;
	case SC_munmap:
		break;
	case SC_mremap: /* where it may go to, too */
		at = (struct stores_range){ t->space, 0, UINT64_MAX };
		break;
	case SC_mmap:
	case SC_mmap2:
		if (!(t->regs[3] & MAP_FIXED))
			return 0;
		break;
	default:
		return 0;
	}
	return stores_look_at(tr->stores, &at, sink);
}

/* Whether other threads have the address space, or only those of other processes count. */
static bool is_shared(const struct tracer *tr, const struct tracee *t, bool by_others)
{
	MAP_EACH (&tr->all.by_tid, e) {
		const struct tracee *other = e->value;

		if (other != t && other->space == t->space && (!by_others || other->pid != t->pid))
			return true;
	}
	return false;
}

void map_stores_before_call(struct tracer *tr, struct tracee *t)
{
	struct finding f = { tr, t, tracer_now(tr), false };
	struct stores_sink sink = { put_found, &f };

	if (!stores_has_maps(tr->stores))
		return;
	switch ((int)row_class(t->row)) {
	case C_DATA:
	case C_PIPE:
	case C_SYNC:
		(void)look_at_files(tr, t,
				    &sink); /* what fails ends the recording, and is told of */
		break;
	case C_AIO:
	case C_URING:
		(void)stores_look_all(tr->stores, &sink); /* likewise */
		break;
	case C_MAP:
		(void)look_at_maps(tr, t, &sink); /* likewise */
		break;
	}
	switch ((int)t->row->id) {
	case SC_execve:
	case SC_execveat:
		if (!is_shared(tr, t, true))
			(void)stores_look_last(tr->stores, t->space, &sink); /* likewise */
		break;
	case SC_exit_group:
		/* Later a look of another process would find it, and the maps are gone by then. */
		(void)stores_look_at(tr->stores, &(struct stores_range){ t->space, 0, UINT64_MAX },
				     &sink); /* likewise */
		if (!is_shared(tr, t, false))
			stores_note_end(tr->stores, t->space);
		break;
	case SC_userfaultfd:
		(void)stores_refuse_marks(tr->stores, t->space, &sink); /* likewise */
		break;
	}
	end_look(tr, t);
}

/* A new map: whether it must be followed. */
static void add_map(struct tracer *tr, struct tracee *t, uint64_t start)
{
	struct stores_range at = range_of(t, start, t->regs[1]);
	bool is_writable = t->regs[2] & PROT_WRITE, is_known;
	struct stat st;
	int r;

	if (t->regs[3] & MAP_ANONYMOUS || !(t->regs[3] & MAP_SHARED))
		return;
	is_known = found_stat(t->tid, (int)t->regs[4], &st);
	if ((is_known && !S_ISREG(st.st_mode)) || (tr->o->no_stores && !is_writable))
		return;
	r = is_known && !tr->o->no_stores && tree_may_open(tr->session->tree, t->tid, st.st_dev)
		    ? stores_map(tr->stores, &at, t->pid, (int)t->regs[4],
				 t->row->id == SC_mmap2 ? t->regs[5] * PAGE : t->regs[5],
				 is_writable)
		    : -EPERM;
	/* Another thread may have closed the descriptor meanwhile, or opened something else by its number. */
	if (r < 0 || (!r && is_writable))
		put_lost(tr, t, at.end - at.start);
	if (r > 0)
		agent_watch_files(tr, true);
	end_look(tr, t);
}

static void move_map(struct tracer *tr, const struct tracee *t, uint64_t to)
{
	struct stores_range from = range_of(t, t->regs[0], t->regs[1]),
			    now = range_of(t, to, t->regs[2]);

	stores_move(tr->stores, &from, &now, !t->regs[1] || t->regs[3] & MREMAP_KEEPS);
}

void map_stores_after_call(struct tracer *tr, struct tracee *t, const struct outcome *o)
{
	bool had_maps = stores_has_maps(tr->stores);
	struct stores_range at = range_of(t, t->regs[0], t->regs[1]);

	if (o->err && (t->row->id == SC_execve || t->row->id == SC_execveat))
		stores_goes_on(tr->stores, t->space);
	if (o->err || (!had_maps && t->row->id != SC_mmap && t->row->id != SC_mmap2))
		return;
	switch ((int)t->row->id) {
	case SC_mmap:
	case SC_mmap2:
		at = range_of(t, (uint64_t)o->ret, t->regs[1]);
		if (had_maps)
			stores_unmap(tr->stores, &at);
		add_map(tr, t, (uint64_t)o->ret);
		break;
	case SC_munmap:
		stores_unmap(tr->stores, &at);
		break;
	case SC_mremap:
		move_map(tr, t, (uint64_t)o->ret);
		end_look(tr, t);
		break;
	default:
		return;
	}
	end_maps(tr, t);
	if (had_maps && !stores_has_maps(tr->stores))
		agent_watch_files(tr, false);
}

void map_stores_fork(struct tracer *tr, const struct tracee *parent, const struct tracee *child)
{
	/* Its first thread: nothing else is known of it yet. */
	stores_fork(tr->stores, parent->space, child->space, child->tid);
}

/* Marks. */

/* Has the thread, which is stopped behind a syscall instruction, make the descriptor, and takes it. */
static int make_marks(struct tracee *t, uint64_t ip)
{
	int64_t there = -EPERM;
	int taken;

	/* A filter of the program's own may kill it for the call. */
	if (!t->own_filter)
		there = agent_call_at(t, ip, SYS_userfaultfd, (uint64_t[6]){ PAGE_MARKS_FLAGS });
	if (there < 0)
		return (int)there;
	taken = found_take(t->pid, (int)there);
	(void)agent_call_at(t, ip, SYS_close, (uint64_t[6]){ (uint64_t)there });
	return taken;
}

void map_stores_at_instruction(struct tracer *tr, struct tracee *t, uint64_t ip)
{
	if (!stores_awaits_marks(tr->stores, t->space) || tr->session->is_over)
		return;
	if (stores_give_marks(tr->stores, t->space, t->pid, make_marks(t, ip)))
		tracer_stop_at_exits(tr, t);
	end_look(tr, t);
}

void map_stores_first_stop(struct tracer *tr, struct tracee *t)
{
	struct __ptrace_syscall_info info;

	if (stores_awaits_marks(tr->stores, t->space) &&
	    ptrace(PTRACE_GET_SYSCALL_INFO, t->tid, sizeof(info), &info) >= 0)
		map_stores_at_instruction(tr, t, info.instruction_pointer);
}

/* What a thread stored comes before the call that it is in, and before the recorder held it for that. */
static struct finding find_before_end(struct tracer *tr, struct tracee *t)
{
	bool in_call = t->state == TRACEE_IN_CALL && t->row;

	return (struct finding){ tr, t,
				 in_call ? clock_sub_ns(t->enter_ns, t->held_ns) : tracer_now(tr),
				 in_call };
}

void map_stores_before_end(struct tracer *tr, struct tracee *t)
{
	bool is_alone = t->row && t->row->id == SC_exit; /* else all threads of its process end */
	struct stores_sink sink = { .put = put_found };
	struct finding f;

	if (!stores_has_marks(tr->stores, t->space) || is_shared(tr, t, !is_alone))
		return;
	agent_end_thread(tr, t); /* what it has recorded comes first, and nothing will follow */
	f = find_before_end(tr, t);
	sink.of = &f;
	(void)stores_look_last(tr->stores, t->space, &sink); /* likewise */
	end_look(tr, t);
}

void map_stores_end(struct tracer *tr, struct tracee *t)
{
	struct finding f = find_before_end(tr, t);
	struct stores_sink sink = { put_found, &f };

	if (!stores_has_maps(tr->stores) || is_shared(tr, t, false))
		return;
	(void)stores_look_ended(tr->stores, t->space, &sink); /* likewise */
	end_look(tr, t);
	stores_drop(tr->stores, t->space);
	end_maps(tr, t);
	if (!stores_has_maps(tr->stores))
		agent_watch_files(tr, false);
}

/* Of a process that was running: what it has mapped is in no event, so stores could not be made again. */
void map_stores_found(struct tracer *tr, const struct tracee *t)
{
	unsigned long long start, end;
	unsigned long ino;
	char name[64], line[256], mode[5];
	FILE *f;

	(void)snprintf(name, sizeof(name), "/proc/%d/maps", (int)t->pid);
	f = fopen(name, "re");
	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%llx-%llx %4s %*x %*x:%*x %lu", &start, &end, mode, &ino) == 4 &&
		    mode[1] == 'w' && mode[3] == 's' && ino && !strstr(line, " /dev/"))
			put_lost(tr, t, end - start);
	}
	if (f)
		(void)fclose(f);
}
