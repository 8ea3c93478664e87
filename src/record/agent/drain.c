/* SPDX-License-Identifier: MIT */
/*
 * Records become events, by the same code that reads a stopped program's memory:
 * it reads the copies that the agent made. The program can write into the ring and the
 * block at any moment, also while they are read here. So each number is read once, into memory of our own,
 * and checked and used there; what no agent can have written ends the taking, and is in the ledger.
 */
#include <errno.h>
#include <sched.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "record/agent/inside.h"
#include "record/agent/rules.h"

/* All that a record says of memory. */
struct record_memory {
	struct copies before, after;
	uint64_t now_ns; /* when it is taken */
};

/* The time of a moment in the record of a thread: after its last stop, and not in the future. */
static uint64_t to_ns(struct tracer *tr, const struct agent_thread *at, uint64_t tsc,
		      uint64_t now_ns)
{
	uint64_t ns = ticks_to_ns(&tr->agent->ticks, tsc);

	ns = ns < now_ns ? ns : now_ns;
	return ns > at->stop_ns ? ns : at->stop_ns;
}

/* An empty path, or a listing: what the descriptor is of was noted before. */
static bool is_of_descriptor(const struct tracee *t)
{
	if (row_class(t->row) == C_DIR)
		return true;
	return t->row->nr_args > 1 && t->row->args[0].kind == KIND_DIRFD &&
	       t->row->args[1].kind == KIND_PATH && t->args[1].type == VALUE_DATA &&
	       !t->args[1].data->len_bytes;
}

/*
 * Whether the agent can have made it: by a rule, with as many copies as that allows, of which
 * the heads are here then. len: of the copies, those after the call among them.
 */
static bool check_record(struct agent *a, const struct wire_record *rec, const uint8_t *bytes,
			 uint64_t len)
{
	const struct wire_rule *rule = rules_find(a->rules, rec->nr, rec->regs);

	return rule && rules_allow_result(rule, rec->ret) &&
	       (uint64_t)rec->nr_in + rec->nr_out <= rules_most_copies(rule) &&
	       rec->in_bytes <= len && copies_read(bytes, rec->in_bytes, rec->nr_in, a->copies) &&
	       copies_read(bytes + rec->in_bytes, len - rec->in_bytes, rec->nr_out,
			   a->copies + rec->nr_in);
}

/* What the record is of, which was checked. */
static void take_head(struct tracer *tr, struct tracee *t, const struct wire_record *rec)
{
	const struct row *row = row_by_nr(ARCH_X86_64, rec->nr);

	memcpy(t->regs, rec->regs, sizeof(t->regs));
	t->row = tr->agent->has_variants[rec->nr] ? row_select_variant(row, t->regs) : row;
	t->nr = rec->nr;
	t->flags = 0;
	t->unwanted = false;
	t->held_ns = t->carried_ns;
	t->carried_ns = 0;
}

/* The call of a record, up to its result. */
static void begin_call(struct tracer *tr, struct tracee *t, struct copies *c)
{
	int r;

	arena_reset(&t->arena);
	tr->capture.arena = &t->arena;
	tr->capture.memory = &c->memory;
	tr->capture.narrow = false;
	tr->capture.truncated_bytes = tr->capture.nr_unread_structs = 0;
	r = capture_entry(&tr->capture, t->row, t->regs, t->args);
	tr->capture.memory = &tr->memory.memory;
	t->entry_denied = false;
	t->entry_cut_bytes = tr->capture.truncated_bytes;
	t->entry_unread = 0;
	if (r < 0)
		tracer_cut_short(tr, r, "cannot write the trace");
}

static void touch_paths(struct tracer *tr, struct tracee *t, uint64_t now_ns)
{
	int r = 0;

	if (!is_of_descriptor(t))
		r = tree_touch_made(tr->session->tree, t->tid, t->row, t->args, now_ns);
	if (r < 0)
		tracer_cut_short(tr, r, "cannot write the trace");
}

/* The file that the agent has asked for. True when the row has one, known or not. */
static bool fill_file(struct tracer *tr, struct tracee *t, const struct outcome *o,
		      struct copies *c)
{
	unsigned int i;
	struct stat st;

	for (i = 0; i < t->row->nr_args; i++) {
		const uint8_t *bytes = NULL;

		if (t->row->args[i].struct_id != STRUCT_file_id || t->row->args[i].reg != REG_NONE)
			continue;
		if (t->row->id == SC_mmap && t->regs[3] & MAP_ANONYMOUS)
			return true;
		if (copies_find(c, WIRE_FILE_ADDRESS, &bytes) >= sizeof(st)) {
			copy_once(&st, bytes, sizeof(st));
			t->args[i] = found_file_id(&tr->capture, &st);
			if (t->row->id == SC_mmap && t->regs[2] & PROT_EXEC &&
			    (t->regs[3] & MAP_TYPE) == MAP_PRIVATE)
				agent_texts_note(tr, t, &st, (uint64_t)o->ret);
		}
		return true;
	}
	return false;
}

/* What follows from the outcome, as when the tracer has seen the exit. */
static int read_exit(struct tracer *tr, struct tracee *t, const struct outcome *o, struct copies *c)
{
	struct aio_call call = { .pid = t->pid,
				 .tid = t->tid,
				 .row = t->row,
				 .regs = t->regs,
				 .outcome = o,
				 .args = t->args };
	int r;

	tr->capture.memory = &c->memory;
	tr->capture.truncated_bytes = t->entry_cut_bytes;
	r = capture_exit(&tr->capture, t->row, t->regs, o, t->args);
	tr->capture.memory = &tr->memory.memory;
	if (r >= 0 && aio_follows(t->row))
		r = aio_exit(tr->aio, &tr->capture, &call);
	/* Of calls that change the memory map, not all may have come by. */
	if (row_class(t->row) == C_MAP || tr->o->paths.wants)
		found_forget(tr->found, t->space);
	if (r >= 0 && (o->err || !fill_file(tr, t, o, c)))
		r = found_fill(tr->found, &tr->capture, t->pid, t->tid, t->space, t->row, t->regs,
			       o, t->args);
	if (tr->capture.truncated_bytes && !o->err) {
		t->nr_cut_calls++;
		t->cut_bytes += tr->capture.truncated_bytes;
	}
	return r;
}

/* How long the thread waited for room in its ring before the call, which is our doing. */
static uint64_t waited_ns(struct tracer *tr, const struct agent_thread *at,
			  const struct wire_record *rec, uint64_t enter_ns)
{
	uint64_t from;

	if (!rec->waited_ticks || rec->waited_ticks > rec->enter_tsc)
		return 0;
	from = to_ns(tr, at, rec->enter_tsc - rec->waited_ticks, enter_ns);
	return enter_ns - from;
}

/* All that is told of calls in general; the arguments come later. */
static void fill_head(struct tracer *tr, struct tracee *t, const struct wire_record *rec,
		      uint64_t now_ns, struct event *ev)
{
	bool failed = rec->ret < 0 && rec->ret > -4096;

	ev->row = t->row;
	ev->stream = 0;
	ev->seq = ev->origin = ev->gap_cpu_ns = ev->held_inside_ns = 0;
	ev->enter_ns = to_ns(tr, t->agent, rec->enter_tsc, now_ns);
	ev->exit_ns = to_ns(tr, t->agent, rec->exit_tsc, now_ns);
	ev->held_ns = t->held_ns + waited_ns(tr, t->agent, rec, ev->enter_ns);
	ev->held_before_ns = ev->held_ns;
	/* Asked for at times. It began with the trace, so more than that it cannot be. */
	ev->cpu_ns = rec->cpu_ns <= ev->exit_ns ? rec->cpu_ns : 0;
	t->event_cpu_ns = ev->cpu_ns;
	ev->outcome.ret = failed ? -1 : rec->ret;
	ev->outcome.err = failed ? (int32_t)-rec->ret : 0;
	ev->flags = ev->outcome.err == EINTR ? EVENT_INTERRUPTED : 0;
}

/* Calls of which nothing follows but the event: 1 when this was one, and its arguments are known. */
static int fill_plain(struct tracer *tr, struct tracee *t, struct capture_seen *seen,
		      struct event *ev)
{
	if (row_class(t->row) == C_MAP || tr->o->paths.wants || aio_follows(t->row))
		return 0;
	tr->capture.narrow = false;
	return capture_plain(&tr->capture, t->row, seen, ev->args);
}

static int fill_any(struct tracer *tr, struct tracee *t, struct record_memory *m, struct event *ev)
{
	int r;

	begin_call(tr, t, &m->before);
	touch_paths(tr, t, m->now_ns);
	r = read_exit(tr, t, &ev->outcome, &m->after);
	memcpy(ev->args, t->args, t->row->nr_args * sizeof(*t->args));
	return r;
}

static bool put_record(struct tracer *tr, struct tracee *t, const struct wire_record *rec,
		       const uint8_t *bytes, uint64_t now_ns)
{
	const struct copy *copies = tr->agent->copies;
	struct record_memory m;
	struct capture_seen seen;
	struct event ev;
	int r;

	if (!check_record(tr->agent, rec, bytes, rec->size_bytes - sizeof(*rec)))
		return false;
	take_head(tr, t, rec);
	m.before = copies_of(copies, rec->nr_in);
	m.after = copies_of(copies + rec->nr_in, rec->nr_out);
	m.now_ns = now_ns;
	fill_head(tr, t, rec, now_ns, &ev);
	seen.regs = t->regs;
	seen.outcome = &ev.outcome;
	seen.before = &m.before.memory;
	seen.after = &m.after.memory;
	tr->capture.policy = tracer_data_policy(tr, t, &ev.outcome);
	r = fill_plain(tr, t, &seen, &ev);
	if (r > 0)
		touch_paths(tr, t, now_ns);
	else if (!r)
		r = fill_any(tr, t, &m, &ev);
	tr->capture.policy = tr->data;
	tree_leave(tr->session->tree, t->tid, ev.outcome.err);
	tr->agent->nr_events++;
	t->agent->space->nr_calls++;
	tr->agent->nr_missed += m.before.nr_missed + m.after.nr_missed;
	t->row = NULL;
	if (r < 0)
		tracer_cut_short(tr, r, "cannot write the trace");
	else
		tracer_put_event(tr, t, &ev);
	return true;
}

/* Of a call whose path is not wanted: whether the agent can have made it. */
static bool may_leave_out(const struct tracer *tr, const struct wire_record *rec)
{
	uint32_t nr = rec->nr & ~WIRE_LEFT_OUT;

	return tr->o->paths.wants && nr < WIRE_NR_CALLS && tr->agent->is_taken[nr] &&
	       !rec->in_bytes;
}

static void leave_out(struct tracer *tr, const struct tracee *t)
{
	tr->nr_left_out++;
	t->agent->space->nr_calls++;
}

/* bytes: what stands behind the head, all of it in the ring. False: the agent has made no such record. */
static bool take_record(struct tracer *tr, struct tracee *t, const struct wire_record *rec,
			const uint8_t *bytes, uint64_t now_ns)
{
	if (rec->size_bytes < sizeof(*rec))
		return false;
	if (!(rec->nr & WIRE_LEFT_OUT))
		return put_record(tr, t, rec, bytes, now_ns);
	if (rec->size_bytes != sizeof(*rec) || !may_leave_out(tr, rec))
		return false;
	leave_out(tr, t);
	return true;
}

void drain_give_up(struct tracer *tr, struct tracee *t)
{
	struct loss damaged = { .kind = LOSS_EVENTS_LOST,
				.pid = (uint32_t)t->pid,
				.tid = (uint32_t)t->tid,
				.from_ns = t->agent->stop_ns,
				.to_ns = tracer_now(tr),
				.note = "the program has overwritten records of its calls" };

	if (t->agent->is_damaged || tr->session->is_over || !t->stream)
		return;
	t->agent->is_damaged = true;
	agent_turn_off(tr, t);
	tracer_put_loss(tr, &damaged);
}

/* So much room is given back to the thread at a time, while it runs. */
#define GIVE_BACK_SHARE 16

static void give_back(struct agent_thread *at, uint64_t tail)
{
	at->given_back = tail;
	__atomic_store_n(&at->block->tail, tail, __ATOMIC_RELEASE); /* pairs with the agent's */
}

/* The head of the record that stands there, with so many bytes behind it; of one that is skipped only its beginning. */
static bool read_head(const uint8_t *at, uint64_t len, struct wire_record *ret)
{
	const size_t first = offsetof(struct wire_record, nr_in);

	if (len < first)
		return false;
	copy_once(ret, at, first);
	if (ret->nr == WIRE_SKIP)
		return true;
	if (len < sizeof(*ret))
		return false;
	copy_once((uint8_t *)ret + first, at + first, sizeof(*ret) - first);
	return true;
}

/* Up to the head or, when it has taken so much, a record before it. False where nothing makes sense. */
static bool take_records(struct tracer *tr, struct tracee *t, uint64_t head, uint64_t most)
{
	uint64_t size = t->agent->ring_bytes, tail = t->agent->tail, now_ns = tracer_now(tr);
	uint64_t start = tail;
	struct wire_record rec;

	if (head - tail > size)
		return false;
	while (tail != head && tail - start < most) {
		const uint8_t *at = t->agent->ring + tail % size;
		uint64_t to_end = size - tail % size;
		uint64_t left = to_end < head - tail ? to_end : head - tail;

		if (!read_head(at, left, &rec) || rec.size_bytes > left || rec.size_bytes % 8)
			return false;
		if (rec.nr == WIRE_SKIP ? rec.size_bytes != to_end
					: !take_record(tr, t, &rec, at + sizeof(rec), now_ns))
			return false;
		tail += rec.size_bytes;
		if (tail - t->agent->given_back >= size / GIVE_BACK_SHARE)
			give_back(t->agent, tail);
	}
	t->agent->tail = tail;
	return true;
}

uint64_t drain_thread(struct tracer *tr, struct tracee *t, uint64_t most)
{
	struct wire_block *b = t->agent ? t->agent->block : NULL;
	uint64_t head, from;

	/* In a call that the tracer follows it makes no records. */
	if (!b || t->state == TRACEE_IN_CALL || t->agent->is_damaged)
		return 0;
	head = __atomic_load_n(&b->head, __ATOMIC_ACQUIRE); /* pairs with the agent's */
	from = t->agent->tail;
	if (head == from)
		return 0;
	if (tr->session->is_over || !t->stream) {
		t->agent->tail = head;
		b->loader_end = 0; /* texts that it maps now must be seen */
	} else if (!take_records(tr, t, head, most)) {
		t->agent->tail = head;
		drain_give_up(tr, t);
	}
	give_back(t->agent, t->agent->tail);
	return t->agent->tail - from;
}

/*
 * A ring through which so much went is worth more memory, also for small records: what was taken from it
 * long ago is not in the cache of our processor any more, from where the thread would have to get it.
 */
#define LONG_USE_BYTES (UINT64_C(64) << 20)

/* For so large a record; it may be no number that the agent has left. */
static uint64_t larger_ring(const struct agent_thread *at, uint64_t need)
{
	bool is_small = need < WIRE_RECORD_LARGE_BYTES && at->tail < LONG_USE_BYTES;
	uint64_t most = is_small ? WIRE_RING_CACHED_BYTES : WIRE_RING_MOST_BYTES;
	uint64_t bytes = at->ring_bytes;

	do
		bytes *= 2;
	while (bytes < most && need > WIRE_RECORD_MOST_OF(bytes));
	return bytes <= most ? bytes : 0;
}

/* Only who cannot have more room waits for it. */
void drain_grow_ring(struct agent_thread *at)
{
	struct wire_block *b = at->block;
	uint64_t need = __atomic_load_n(&b->needed_bytes, __ATOMIC_RELAXED);
	uint64_t bytes = need ? larger_ring(at, need) : 0;

	if (need && !bytes)
		b->wait_ticks = at->wait_ticks;
	b->needed_bytes = 0;
	if (!bytes || at->is_damaged || __atomic_load_n(&b->head, __ATOMIC_RELAXED) != at->tail)
		return;
	at->ring_bytes = b->ring_bytes = bytes;
	b->head = b->call_head = 0;
	at->tail = 0;
	give_back(at, 0);
}

/* Of a thread that runs: it may be in another call by now, whose record was half made. */
static bool is_same_call(const struct agent_thread *at, uint64_t call_head)
{
	__atomic_thread_fence(__ATOMIC_ACQUIRE); /* what was read of the record was read before */
	return __atomic_load_n(&at->block->call_head, __ATOMIC_RELAXED) == call_head;
}

/* The record of a call that is being made: nothing stands behind its copies from before the call. */
static bool read_begun(struct tracer *tr, const struct tracee *t, uint64_t call_head,
		       int64_t result, struct wire_record *ret)
{
	uint64_t at = call_head % t->agent->ring_bytes, left = t->agent->ring_bytes - at;
	const uint8_t *bytes = t->agent->ring + at;

	if (!read_head(bytes, left, ret) || ret->nr == WIRE_SKIP)
		return false;
	if (ret->nr & WIRE_LEFT_OUT)
		return may_leave_out(tr, ret);
	ret->nr_out = 0;
	ret->ret = result;
	return ret->in_bytes <= left - sizeof(*ret) &&
	       check_record(tr->agent, ret, bytes + sizeof(*ret), ret->in_bytes);
}

bool drain_begin_call(struct tracer *tr, struct tracee *t, uint64_t call_head, int64_t result)
{
	uint64_t now_ns = tracer_now(tr);
	struct wire_record rec;
	struct copies in;
	bool is_good;

	if (tr->session->is_over || t->agent->is_damaged)
		return false;
	is_good = read_begun(tr, t, call_head, result, &rec);
	if (!is_same_call(t->agent, call_head))
		return false;
	if (!is_good) {
		drain_give_up(tr, t);
		return false;
	}
	if (rec.nr & WIRE_LEFT_OUT) {
		leave_out(tr, t);
		return false;
	}
	take_head(tr, t, &rec);
	in = copies_of(tr->agent->copies, rec.nr_in);
	begin_call(tr, t, &in);
	if (!is_same_call(t->agent, call_head)) {
		t->row = NULL;
		return false;
	}
	touch_paths(tr, t, now_ns);
	t->enter_ns = to_ns(tr, t->agent, rec.enter_tsc, now_ns);
	return true;
}

static bool names_path(uint64_t nr)
{
	const struct row *row =
		nr < WIRE_NR_CALLS ? row_by_nr(ARCH_X86_64, (unsigned int)nr) : NULL;
	unsigned int i;

	for (i = 0; row && i < row->nr_args; i++) {
		if (row->args[i].kind == KIND_PATH)
			return true;
	}
	return false;
}

/* A call that is being made, and may have been: what it touches is noted now or never. */
static void touch_early(struct tracer *tr, struct tracee *t)
{
	const struct wire_block *b = t->agent->block;
	uint64_t held_ns = t->held_ns, carried_ns = t->carried_ns;
	/* Before the phase: so the record that is read is whole, if the call is still the same then. */
	uint64_t call_head = __atomic_load_n(&b->call_head, __ATOMIC_ACQUIRE);
	uint32_t phase = __atomic_load_n(&b->phase, __ATOMIC_ACQUIRE);
	int64_t result = phase == WIRE_AFTER ? __atomic_load_n(&b->ret, __ATOMIC_RELAXED) : 0;

	if (phase != WIRE_CALLING && phase != WIRE_AFTER)
		return;
	if (t->state == TRACEE_RUNNING && !t->kept.call &&
	    names_path(__atomic_load_n(&b->nr, __ATOMIC_RELAXED)) &&
	    drain_begin_call(tr, t, call_head, result))
		t->row = NULL;
	t->held_ns = held_ns;
	t->carried_ns = carried_ns;
}

/* So many times for all threads, in case one does not come to run, or its block does not say the truth. */
#define LOOKS_AT_BEGUN 1000

/*
 * A thread may have found a name in the set just before its meaning changed: it comes to its call, which is touched
 * then, before that goes on by which the meaning changes.
 */
static void wait_for_begun(const struct tracee *t, unsigned int *looks)
{
	const struct wire_block *b = t->agent->block;

	while (*looks && __atomic_load_n(&b->head, __ATOMIC_RELAXED) == t->agent->tail &&
	       __atomic_load_n(&b->phase, __ATOMIC_ACQUIRE) == WIRE_BEFORE) {
		(void)sched_yield();
		--*looks;
	}
}

void agent_settle(struct tracer *tr, bool moving)
{
	unsigned int looks = moving ? LOOKS_AT_BEGUN : 0;
	struct agent_thread *at;

	if (!tr->agent || tr->session->is_over)
		return;
	MAP_EACH (&tr->all.by_tid, e) {
		struct tracee *t = e->value;

		at = t->agent;
		if (!at || !at->block)
			continue;
		(void)drain_thread(tr, t, DRAIN_ALL);
		wait_for_begun(t, &looks);
		touch_early(tr, t);
		(void)drain_thread(tr, t, DRAIN_ALL); /* a call that came to its end in between */
	}
}
