/* SPDX-License-Identifier: MIT */
/* Lines of strace become events: times, threads, unfinished and broken calls, signals, ends. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/banned.h"
#include "base/clock.h"
#include "import/strace_call.h"
#include "import/strace_fds.h"
#include "import/strace_inside.h"

/* How far apart lines without times are put. */
#define STEP_NS NS_PER_US
#define DAY_NS (24 * 3600 * NS_PER_S)
/* A clock that goes back more than this was set. */
#define CLOCK_STEP_NS NS_PER_S
/* Of what is not understood, this much is told. */
#define WORDS_MAX 60

/* Time. */

static uint64_t line_ns(struct strace *s, const struct strace_line *l)
{
	uint64_t ns = l->time_ns + s->shift_ns;

	switch (l->clock) {
	case STRACE_NO_TIME:
		return s->last_ns + STEP_NS;
	case STRACE_DELTA:
		return s->last_ns + l->time_ns;
	case STRACE_DAY_TIME:
		if (ns + DAY_NS / 2 < s->last_ns) {
			s->shift_ns += DAY_NS;
			ns += DAY_NS;
		}
		break;
	case STRACE_UNIX_TIME:
		if (s->begun && ns + CLOCK_STEP_NS < s->last_ns) {
			s->shift_ns += s->last_ns - ns;
			ns = s->last_ns;
		}
		break;
	}
	/* Lines within one second keep their order. */
	if (l->coarse && s->begun && ns <= s->last_ns)
		ns = s->last_ns + STEP_NS;
	return ns;
}

static void note_time(struct strace *s, const struct strace_line *l)
{
	uint64_t ns;

	if (l->sort == STRACE_EMPTY || l->sort == STRACE_REMARK || l->sort == STRACE_UNKNOWN)
		return;
	ns = line_ns(s, l);
	if (!s->begun) {
		s->begun = true;
		s->clock = l->clock;
		s->first_ns = ns;
		s->threads.no_time = l->clock == STRACE_NO_TIME;
	}
	s->has_coarse_times |= l->coarse;
	if (ns > s->last_ns)
		s->last_ns = ns;
	s->now_ns = clock_sub_ns(ns, s->first_ns);
}

/* Complaints. */

static int reject_value(struct strace *s, const char *what)
{
	size_t len = s->text.bad_len < WORDS_MAX ? s->text.bad_len : WORDS_MAX;
	struct err why;

	err_set(&why, -EBADMSG, "%s: not understood: '%.*s'", what, (int)len, s->text.bad);
	s->text.bad = NULL;
	return import_reject_value(s->im, s->in, &why);
}

static int reject_line(struct strace *s, struct err *why)
{
	return import_reject_line(s->im, s->in, why);
}

/* Calls. */

static void begin_text(struct strace *s, const char *from, const char *end)
{
	arena_reset(&s->arena);
	s->text.arena = &s->arena;
	s->text.pos = from;
	s->text.end = end;
	s->text.depth = 0;
	s->text.bad = NULL;
	s->text.path = NULL;
}

static int put_line(struct strace *s, struct import_input *in, uint64_t line_no, const char *text,
		    size_t len, struct err *err);

/* What came from a thread before it was known whose it is. */
static int put_waiting(struct strace *s, struct strace_thread *t, struct err *err)
{
	struct import_input *in = s->in;
	uint64_t line_no = in->line_no;
	size_t i;
	int r = 0;

	for (i = 0; i < t->waiting.len && !r; i++) {
		struct waiting_line *w = &t->waiting.items[i];

		r = put_line(s, w->in, w->line_no, w->text, w->len, err);
	}
	s->in = in;
	in->line_no = line_no;
	return r;
}

static int note_clone(struct strace *s, struct strace_thread *t, const struct event *ev,
		      struct err *err)
{
	uint64_t flags;

	if (ev->outcome.err || ev->outcome.ret <= 0 || ev->outcome.ret > UINT32_MAX ||
	    !strace_call_makes_thread(ev, &flags))
		return 0;
	strace_order_begin_child(&s->order, (uint32_t)ev->outcome.ret);
	return strace_threads_cloned(&s->threads, t, (uint32_t)ev->outcome.ret, flags, ev->exit_ns,
				     err);
}

/* The image was replaced, perhaps by another thread than the leader, which then ends. */
static int note_exec(struct strace *s, struct strace_thread *t, uint32_t leader_tid,
		     struct err *err)
{
	struct value args[3] = { { .type = VALUE_NONE } };
	struct strace_thread *leader;
	uint32_t former = t->tid;
	int r = 0;

	if (leader_tid != t->tid) {
		r = strace_threads_end(&s->threads, t, err);
		leader = r ? NULL : strace_threads_find(&s->threads, leader_tid);
		if (!leader)
			return r;
		r = strace_threads_restart(&s->threads, leader, former, s->now_ns, err);
		args[1] = value_uint(former);
		t = leader;
	}
	strace_process_exec(t->proc);
	return r ? r : strace_threads_put_now(&s->threads, t, EV_exec, args, 3, s->now_ns, err);
}

static void count_cut(struct strace *s, const struct strace_call *c)
{
	s->nr_cut += c->cut_bytes != 0;
	s->cut_bytes += c->cut_bytes;
}

/* Decides about a call that a signal broke off before this one. */
static int settle_broken(struct strace *s, struct strace_thread *t, const struct event *next,
			 struct err *err)
{
	const struct event *broken = t->held.len ? t->held.items[0] : NULL;
	bool again;

	if (!broken)
		return 0;
	again = next->row->id == SC_restart_syscall ||
		(next->row == broken->row && next->row->id != SC_rt_sigreturn);
	return strace_threads_release_held(&s->threads, t, !again, err);
}

static int put_call(struct strace *s, struct strace_thread *t, struct strace_call *c,
		    struct err *err)
{
	struct event *ev = &c->ev;
	int r = settle_broken(s, t, ev, err), waited;

	if (r < 0)
		return r;
	if (strace_call_is_broken(ev)) {
		strace_threads_hold(t, ev);
		return 0;
	}
	if (c->nr_fds) {
		r = strace_fds_find(&s->threads, t, c, &s->arena, err);
		if (r < 0)
			return r;
	}
	strace_fds_made(t->proc, ev);
	/* The child begins before the call ends. */
	waited = note_clone(s, t, ev, err);
	if (waited < 0)
		return waited;
	if (ev->row->id == SC_rt_sigaction && !ev->outcome.err)
		strace_process_set_action(t->proc, ev);
	r = strace_threads_put(&s->threads, t, ev, err);
	if (!r && waited)
		r = put_waiting(s, strace_threads_find(&s->threads, (uint32_t)ev->outcome.ret),
				err);
	return r;
}

/* A call of which all is there that will come; leader: who has the line, t who made the call. */
static int finish_call(struct strace *s, struct strace_thread *t, const struct strace_line *l,
		       bool resumed, struct err *err)
{
	uint64_t enter_ns = resumed ? t->enter_ns : s->now_ns;
	struct strace_call c;
	int r = strace_call_read(&s->text, &c, err);

	if (r < 0)
		return reject_line(s, err);
	if (s->text.bad) {
		r = reject_value(s, c.ev.row->name);
		if (r < 0)
			return r;
	}
	strace_dump_apply(s->dump, &s->arena, &c.ev);
	count_cut(s, &c);
	c.ev.enter_ns = enter_ns;
	c.ev.exit_ns = enter_ns;
	c.ev.origin = resumed ? t->line_no : s->in->line_no;
	if (c.has_duration)
		c.ev.exit_ns = clock_add_ns(enter_ns, c.duration_ns);
	else if (resumed)
		c.ev.exit_ns = s->now_ns;
	else if (!(c.ev.flags & EVENT_UNFINISHED))
		c.ev.flags |= EVENT_NO_DURATION;
	r = put_call(s, t, &c, err);
	if (r < 0)
		return r == -EBADMSG ? reject_line(s, err) : r;
	if ((c.ev.row->id == SC_execve || c.ev.row->id == SC_execveat) && !c.ev.outcome.err &&
	    !(c.ev.flags & EVENT_UNFINISHED))
		r = note_exec(s, t, l->tid, err);
	return r;
}

static bool names_maker(const struct strace_line *l)
{
	static const char *const names[] = { "clone(", "clone3(", "fork(", "vfork(" };
	size_t i;

	for (i = 0; i < ARRAY_LEN(names); i++) {
		size_t len = strlen(names[i]);

		if ((size_t)(l->end - l->body) >= len && !memcmp(l->body, names[i], len))
			return true;
	}
	return false;
}

static void keep_unfinished(struct strace *s, struct strace_thread *t, const struct strace_line *l)
{
	struct strace_call c;
	struct err unheard;

	buf_clear(&t->text);
	buf_put(&t->text, l->body, (size_t)(l->end - l->body));
	t->unfinished = true;
	t->enter_ns = s->now_ns;
	t->line_no = s->in->line_no;
	t->made = 0;
	t->makes_thread = false;
	/* Only what makes threads must be known before its end. */
	if (!names_maker(l))
		return;
	begin_text(s, l->body, l->end);
	if (!strace_call_read(&s->text, &c, &unheard))
		t->makes_thread = strace_call_makes_thread(&c.ev, &t->clone_flags);
}

/* A first part whose second never came: a call that did not return. */
static int finish_dangling(struct strace *s, struct strace_thread *t, struct err *err)
{
	struct strace_line none = { .tid = t->tid };

	if (!t->unfinished)
		return 0;
	t->unfinished = false;
	begin_text(s, (const char *)t->text.data, (const char *)t->text.data + t->text.len);
	return finish_call(s, t, &none, true, err);
}

static int put_unfinished(struct strace *s, struct strace_thread *t, const struct strace_line *l,
			  struct err *err)
{
	int r = finish_dangling(s, t, err);

	if (!r)
		keep_unfinished(s, t, l);
	return r;
}

static int put_resumed(struct strace *s, struct strace_thread *t, const struct strace_line *l,
		       struct err *err)
{
	/* An execve by another thread ends under the leader's number. */
	struct strace_thread *maker = t->unfinished || !s->former_tid
					      ? t
					      : strace_threads_find(&s->threads, s->former_tid);

	s->former_tid = 0;
	if (!maker || !maker->unfinished) {
		struct err why;

		err_set(&why, -EBADMSG, "the first part of this call is missing");
		return reject_line(s, &why);
	}
	buf_clear(&s->joined);
	buf_put(&s->joined, maker->text.data, maker->text.len);
	if (!(l->end - l->body >= 16 && !memcmp(l->body, "<unfinished ...>", 16)))
		buf_put(&s->joined, l->body, (size_t)(l->end - l->body));
	maker->unfinished = false;
	begin_text(s, (const char *)s->joined.data, (const char *)s->joined.data + s->joined.len);
	return finish_call(s, maker, l, true, err);
}

/* Signals. */

static bool signal_of(struct strace *s, const char *from, const char *end, uint64_t *ret)
{
	const char *stop = from;

	while (stop < end && *stop != ' ' && *stop != '+')
		stop++;
	return strace_names_word(s->text.names, SET_signal_names, from, (size_t)(stop - from), ret);
}

static const struct value *siginfo_field(const struct value *info, const char *name)
{
	const struct struct_desc *d = &struct_descs[STRUCT_siginfo];
	unsigned int i;

	for (i = 0; i < d->nr_fields; i++) {
		if (!strcmp(d->fields[i].name, name))
			return value_field(info, i);
	}
	return NULL;
}

static int put_signal(struct strace *s, struct strace_thread *t, const struct strace_line *l,
		      struct err *err)
{
	static const char *const names[] = { "si_code", "si_pid", "si_uid", "si_addr" };
	struct arg arg = { .kind = KIND_STRUCT, .struct_id = STRUCT_siginfo };
	const struct strace_process *p = t->proc;
	const char *brace = memchr(l->body, '{', (size_t)(l->end - l->body));
	struct value args[5] = { { 0 } }, info = { 0 };
	uint64_t signo;
	size_t i;
	int r = 0;

	if (!signal_of(s, l->body, l->end, &signo) || signo < 1 || signo > 64) {
		err_set(err, -EBADMSG, "unknown signal");
		return reject_line(s, err);
	}
	args[0] = value_uint(signo);
	if (brace) {
		begin_text(s, brace, l->end);
		(void)strace_value(&s->text, &arg, &info,
				   NULL); /* what the event has no place for */
		for (i = 0; i < ARRAY_LEN(names); i++) {
			const struct value *f = siginfo_field(&info, names[i]);

			args[i + 1] = f ? *f : (struct value){ 0 };
		}
	}
	if (t->held.len && p->handled >> (signo - 1) & 1) {
		int error = t->held.items[0]->outcome.err;
		bool again = error == 513 || (error == 512 && p->restarts >> (signo - 1) & 1);

		r = strace_threads_release_held(&s->threads, t, !again, err);
	}
	return r ? r : strace_threads_put_now(&s->threads, t, EV_signal, args, 5, s->now_ns, err);
}

static int put_stopped(struct strace *s, struct strace_thread *t, const struct strace_line *l,
		       struct err *err)
{
	struct value arg;
	uint64_t signo;

	if (!signal_of(s, l->body, l->end, &signo)) {
		err_set(err, -EBADMSG, "unknown signal");
		return reject_line(s, err);
	}
	arg = value_uint(signo);
	return strace_threads_put_now(&s->threads, t, EV_stopped, &arg, 1, s->now_ns, err);
}

/* Ends. */

static int put_end(struct strace *s, struct strace_thread *t, const struct strace_line *l,
		   struct err *err)
{
	struct value args[3] = { { 0 } };
	struct strace_text number = s->text;
	uint64_t v = 0;
	bool known;
	int r;

	if (l->sort == STRACE_EXITED) {
		number.pos = l->body;
		number.end = l->end;
		known = strace_number(&number, &v);
		args[0] = value_uint(v);
	} else {
		known = signal_of(s, l->body, l->end, &v);
		args[1] = value_uint(v);
		args[2] = value_int(
			memmem(l->body, (size_t)(l->end - l->body), "core dumped", 11) != NULL);
	}
	if (!known) {
		err_set(err, -EBADMSG, "unknown end of a thread");
		return reject_line(s, err);
	}
	r = finish_dangling(s, t, err);
	if (!r)
		r = strace_threads_release_held(&s->threads, t, false, err);
	if (!r)
		r = strace_threads_put_now(&s->threads, t, EV_thread_exit, args, 3, s->now_ns, err);
	return r ? r : strace_threads_end(&s->threads, t, err);
}

/* The leader ends, with what status is not told, and goes on as the thread that called execve. */
static int put_superseded(struct strace *s, struct strace_thread *t, const struct strace_line *l,
			  struct err *err)
{
	struct value args[3] = { { 0 } };
	struct strace_text number = s->text;
	uint64_t former;
	int r = finish_dangling(s, t, err);

	number.pos = l->body;
	number.end = l->end;
	if (strace_number(&number, &former) && former <= UINT32_MAX)
		s->former_tid = (uint32_t)former;
	return r ? r
		 : strace_threads_put_now(&s->threads, t, EV_thread_exit, args, 3, s->now_ns, err);
}

/* Lines. */

static int put_in_thread(struct strace *s, struct strace_thread *t, const struct strace_line *l,
			 struct err *err)
{
	switch (l->sort) {
	case STRACE_CALL:
		if (l->unfinished)
			return put_unfinished(s, t, l, err);
		if (t->unfinished) {
			int r = finish_dangling(s, t, err);

			if (r < 0)
				return r;
		}
		begin_text(s, l->body, l->end);
		return finish_call(s, t, l, false, err);
	case STRACE_RESUMED:
		return put_resumed(s, t, l, err);
	case STRACE_SIGNAL:
		return put_signal(s, t, l, err);
	case STRACE_STOPPED:
		return put_stopped(s, t, l, err);
	case STRACE_EXITED:
	case STRACE_KILLED:
		return put_end(s, t, l, err);
	case STRACE_SUPERSEDED:
		return put_superseded(s, t, l, err);
	default:
		return 0;
	}
}

static void keep_waiting(struct strace *s, struct strace_thread *t, const char *text, size_t len)
{
	struct waiting_line w = { .in = s->in, .line_no = s->in->line_no, .len = len };

	w.text = xmemdup0(text, len);
	VEC_PUSH(&t->waiting, w);
}

static bool is_execve(const struct strace_line *l)
{
	return l->end - l->body > 7 && !memcmp(l->body, "execve(", 7);
}

/* A thread that comes from nowhere was launched, if it is the first and begins with its execve. */
static enum start_how how_begun(const struct strace *s, const struct strace_line *l)
{
	return !s->threads.by_tid.nr_live && is_execve(l) ? START_LAUNCH : START_ATTACH;
}

/*
 * Without -o only lines of several threads at a time say whose they are: when the
 * first thread has ended, the others are of the only one that is left.
 */
static uint32_t lone_tid(struct strace *s)
{
	if (s->threads.by_tid.nr_live != 1 || strace_threads_find(&s->threads, s->lone_tid))
		return s->lone_tid;
	MAP_EACH (&s->threads.by_tid, e)
		return ((const struct strace_thread *)e->value)->tid;
	return s->lone_tid;
}

/* Where the first process starts, if the text tells. */
static int put_state(struct strace *s, struct strace_thread *t, struct err *err)
{
	struct value cwd;

	if (!s->cwd.len || s->in != &s->im->inputs[0])
		return 0;
	arena_reset(&s->arena);
	cwd = value_bytes(&s->arena, s->cwd.data, s->cwd.len);
	return strace_threads_put_now(&s->threads, t, EV_found_state, &cwd, 1, s->now_ns, err);
}

/* Lines of a thread 0 at time 0, which ARTC's tools put before all others. */
static bool is_prologue(const char *text, size_t len, const char **ret_body)
{
	static const char head[] = "0 0.000000 ";

	if (len < sizeof(head) || memcmp(text, head, sizeof(head) - 1) != 0)
		return false;
	*ret_body = text + sizeof(head) - 1;
	return true;
}

/*
 * Such traces have no calls that make threads, and tell of one process: what all
 * threads use was opened by one of them.
 */
static int put_prologue_call(struct strace *s, const char *body, const char *end, struct err *err)
{
	struct strace_call c;
	int r;

	begin_text(s, body, end);
	r = strace_call_read(&s->text, &c, err);
	if (!r)
		r = prologue_take(&s->prologue, &c.ev, err);
	s->threads.one_process = true;
	return r < 0 ? reject_line(s, err) : 0;
}

/* The first thread had all that the prologue says. */
static int put_prologue(struct strace *s, struct strace_thread *t, struct err *err)
{
	size_t i, nr = prologue_nr_events(&s->prologue);
	int r = 0;

	for (i = 0; i < nr && !r; i++) {
		struct event ev;

		arena_reset(&s->arena);
		prologue_event(&s->prologue, i, &s->arena, &ev);
		r = strace_threads_put_now(&s->threads, t, ev.row->id, ev.args, ev.row->nr_args,
					   s->now_ns, err);
	}
	prologue_clear(&s->prologue);
	return r;
}

static int put_known_line(struct strace *s, struct strace_line *l, const char *text, size_t len,
			  struct err *err)
{
	bool first = !s->threads.by_tid.nr_entries;
	struct strace_thread *t;
	int r;

	if (!l->tid)
		l->tid = lone_tid(s);
	t = strace_threads_get(&s->threads, l->tid, s->now_ns, how_begun(s, l), &r, err);
	if (!r && first)
		r = put_state(s, t, err);
	if (r < 0)
		return r;
	if (!t->proc) {
		keep_waiting(s, t, text, len);
		return 0;
	}
	if (prologue_nr_events(&s->prologue)) {
		r = put_prologue(s, t, err);
		if (r < 0)
			return r;
	}
	s->split_tid = l->split ? l->tid : 0;
	return put_in_thread(s, t, l, err);
}

/* Colours and the like: ESC [ ... m */
static void strip_colours(struct strace *s, const char **text, size_t *len)
{
	const char *p = *text, *end = p + *len;

	buf_clear(&s->plain);
	while (p < end) {
		const char *esc = memchr(p, '\033', (size_t)(end - p));

		buf_put(&s->plain, p, (size_t)((esc ? esc : end) - p));
		if (!esc)
			break;
		for (p = esc + 1;
		     p < end && !(*p >= 'A' && *p <= 'Z') && !(*p >= 'a' && *p <= 'z');)
			p++;
		p += p < end;
	}
	*text = buf_str(&s->plain);
	*len = s->plain.len;
}

/* A line that is the rest of one which a remark of strace's split. */
static int put_rest(struct strace *s, const char *text, size_t len, struct err *err)
{
	struct strace_thread *t = strace_threads_find(&s->threads, s->split_tid);
	struct strace_line rest = {
		.sort = STRACE_RESUMED, .tid = s->split_tid, .body = text, .end = text + len
	};

	s->split_tid = 0;
	if (t)
		return put_resumed(s, t, &rest, err);
	err_set(err, -EBADMSG, "the first part of this line is missing");
	return reject_line(s, err);
}

static int put_line(struct strace *s, struct import_input *in, uint64_t line_no, const char *text,
		    size_t len, struct err *err)
{
	struct strace_line l;
	const char *body;

	s->in = in;
	in->line_no = line_no;
	if (memchr(text, '\033', len))
		strip_colours(s, &text, &len);
	if (is_prologue(text, len, &body))
		return put_prologue_call(s, body, text + len, err);
	strace_split_line(text, len, &l);
	note_time(s, &l);
	switch (l.sort) {
	case STRACE_EMPTY:
	case STRACE_REMARK:
	case STRACE_DUMP: /* of a call that was not understood */
		return 0;
	case STRACE_UNKNOWN:
		if (s->split_tid)
			return put_rest(s, text, len, err);
		err_set(err, -EBADMSG, "not a line of strace: '%.*s'",
			(int)(len < WORDS_MAX ? len : WORDS_MAX), text);
		return reject_line(s, err);
	default:
		return put_known_line(s, &l, text, len, err);
	}
}

/* The end. */

int strace_put_end(struct strace *s, struct err *err)
{
	static const struct strace_dump no_dump;
	size_t i, nr = s->threads.by_tid.nr_entries;
	int r = 0;

	s->dump = &no_dump;
	/* By number: a thread that is settled may bring others. */
	for (i = 0; i < nr && !r; i++) {
		const struct map_entry *e = &s->threads.by_tid.entries[i];
		struct strace_thread *t = e->key ? e->value : NULL;

		if (!t)
			continue;
		if (!t->proc) {
			r = strace_threads_settle(&s->threads, t, s->now_ns, err);
			if (!r)
				r = put_waiting(s, t, err);
		}
		/* It may have ended by what waited. */
		t = e->key ? e->value : NULL;
		if (!r && t)
			r = finish_dangling(s, t, err);
		if (!r && t)
			r = strace_threads_release_held(&s->threads, t, false, err);
		nr = s->threads.by_tid.nr_entries;
	}
	return r;
}

int strace_put_line(struct strace *s, const struct strace_next *next, struct err *err)
{
	s->dump = next->dump;
	s->lone_tid = next->lone_tid;
	s->threads.follows = next->follows;
	return put_line(s, next->in, next->line_no, next->text, next->len, err);
}
