/* SPDX-License-Identifier: MIT */
/*
 * The arguments of a call. Before it: numbers from the registers, and what IN
 * arguments point to. After it: what OUT arguments point to.
 *
 * What the registers lead to is read together. Only an argument whose length
 * stands behind another pointer (the address of accept(2)) has to wait for
 * that, and is read in a second round.
 */
#include "record/capture_inside.h"

#include <errno.h>
#include <sched.h>

#include "base/banned.h"
#include "model/fields.h"

/* The kernel's own, seen by who looks at a call before it is made again. */
#define ERESTART_FIRST 512
#define ERESTART_LAST 516

int capture_register(const struct row *row, unsigned int i)
{
	unsigned int reg = row->args[i].reg;

	if (reg == REG_NONE)
		return -1;
	reg = reg == REG_OWN ? i : reg - A0;
	return reg < 6 ? (int)reg : -1;
}

static struct capture_scalar scalar_for(const struct arg *a, unsigned int i, unsigned int reg)
{
	unsigned int width = a->width_bytes ? a->width_bytes : kind_infos[a->kind].width_bytes;

	return (struct capture_scalar){ .arg = (uint8_t)i,
					.reg = (uint8_t)reg,
					.shift = (uint8_t)(width < 8 ? 64 - 8 * width : 0),
					.is_signed = width < 8 && capture_is_signed(a) };
}

static uint64_t as_count(struct value v, bool is_signed)
{
	return is_signed && v.i < 0 ? 0 : v.u;
}

uint64_t capture_arg_number(const struct capture_job *j, unsigned int i)
{
	struct capture_scalar scalar;
	const struct arg *a;
	int reg;

	if (i >= j->row->nr_args)
		return 0;
	a = &j->row->args[i];
	if (a->kind == KIND_PTR) {
		if (j->args[i].type != VALUE_LIST || !j->args[i].count)
			return 0;
		return as_count(j->args[i].items[0], kind_infos[a->elem].wire == 'i');
	}
	reg = capture_register(j->row, i);
	if (reg < 0)
		return 0;
	scalar = scalar_for(a, i, (unsigned int)reg);
	return as_count(capture_scalar(&scalar, j->regs), capture_is_signed(a));
}

uint64_t capture_len(const struct capture_job *j, unsigned int code)
{
	if (code & LEN_CONST)
		return code & ~(unsigned int)LEN_CONST;
	if (code == RET)
		return j->outcome && j->outcome->ret > 0 ? (uint64_t)j->outcome->ret : 0;
	return code >= A0 && code <= A11 && j->row ? capture_arg_number(j, code - A0) : 0;
}

static bool is_pointer_arg(const struct row *row, unsigned int code)
{
	return code >= A0 && code <= A11 && code - A0 < row->nr_args &&
	       row->args[code - A0].kind == KIND_PTR;
}

/* Whether how much is to be read is known only when another argument has been. */
static bool is_second(const struct row *row, const struct arg *a)
{
	return is_pointer_arg(row, a->len) || is_pointer_arg(row, a->cap);
}

static void push_arg(struct capture_job *j, unsigned int i, struct value *args, uint8_t flags)
{
	const struct arg *a = &j->row->args[i];
	struct capture_target t = {
		.a = a,
		.dest = &args[i],
		.addr = j->regs[capture_register(j->row, i)],
		.len = capture_len(j, a->len),
		.moved_bytes = capture_len(j, RET),
		.flags = flags,
		.arg_no = (uint8_t)i,
	};

	if (!capture_can_read(j->c, a)) {
		args[i] = value_addr(t.addr);
		j->c->nr_unread_structs += t.addr != 0;
		return;
	}
	if (a->cap && capture_len(j, a->cap) < t.len)
		t.len = capture_len(j, a->cap);
	capture_push(j, &t);
}

/* Whether memory is read for the argument in this pass. */
static bool wants_arg(const struct row *row, unsigned int i, enum arg_dir dir)
{
	const struct arg *a = &row->args[i];

	return !capture_is_scalar(a) && a->dir & dir && capture_register(row, i) >= 0;
}

/* Of a pass: what is read in the first round, then what is in the second. */
static void list_pass(const struct row *row, enum arg_dir dir, struct capture_pass *ret)
{
	unsigned int i, round;

	for (round = 0; round < 2; round++) {
		for (i = 0; i < row->nr_args; i++) {
			if (wants_arg(row, i, dir) && is_second(row, &row->args[i]) == (round == 1))
				ret->args[ret->nr++] = (uint8_t)i;
		}
		if (!round)
			ret->nr_first = ret->nr;
	}
}

static void learn_shape(const struct row *row, struct capture_shape *s)
{
	unsigned int i;

	*s = (struct capture_shape){ .row = row };
	for (i = 0; i < row->nr_args; i++) {
		int reg = capture_register(row, i);

		if (capture_is_scalar(&row->args[i]) && reg >= 0)
			s->scalars[s->nr_scalars++] =
				scalar_for(&row->args[i], i, (unsigned int)reg);
	}
	list_pass(row, ARG_IN, &s->in);
	list_pass(row, ARG_OUT, &s->out);
	s->is_plain = capture_shape_is_plain(s);
}

const struct capture_shape *capture_shape_of(struct capture_scratch *scratch, const struct row *row)
{
	struct capture_shape *s = &scratch->shapes[row->id];

	if (UNLIKELY(s->row != row))
		learn_shape(row, s);
	return s;
}

static struct capture_job job_for(struct capture *c, const struct row *row, const uint64_t regs[6],
				  const struct value *args)
{
	struct capture_job j;

	capture_begin(&j, c);
	j.row = row;
	j.regs = regs;
	j.args = args;
	return j;
}

/* What was asked for is read when all of its round has been. */
static bool ends_round(const struct capture_pass *p, unsigned int n)
{
	return n + 1 == p->nr_first || n + 1 == p->nr;
}

int capture_entry(struct capture *c, const struct row *row, const uint64_t regs[6],
		  struct value *args)
{
	struct capture_job j = job_for(c, row, regs, args);
	const struct capture_shape *s = capture_shape_of(j.s, row);
	unsigned int i, n;
	int r = 0;

	for (i = 0; i < row->nr_args; i++)
		args[i] = (struct value){ .type = VALUE_NONE };
	for (n = 0; n < s->nr_scalars; n++)
		args[s->scalars[n].arg] = capture_scalar(&s->scalars[n], regs);
	for (n = 0; n < s->in.nr && !r; n++) {
		i = s->in.args[n];
		push_arg(&j, i, args, row->args[i].dir & ARG_OUT ? CAPTURE_NOT_OUT : 0);
		if (ends_round(&s->in, n))
			r = capture_run(&j);
	}
	return r;
}

/* What a register holds that the kernel was not asked to look at is no address. */
static bool is_asked_for(const struct row *row, const uint64_t regs[6])
{
	if (row->id != SC_clone && row->id != SC_clone_backwards)
		return true;
	return regs[0] & (CLONE_PARENT_SETTID | CLONE_PIDFD);
}

/*
 * A call that failed has written nothing, but for one: a sleep that a signal
 * ended says what is left of it.
 */
static bool has_written(const struct row *row, const struct arg *a, const struct outcome *o)
{
	if (!o->err)
		return true;
	if (!(row->class & A_WAITS) ||
	    (a->struct_id != STRUCT_timespec && a->struct_id != STRUCT_timeval))
		return false;
	return o->err == EINTR || (o->err >= ERESTART_FIRST && o->err <= ERESTART_LAST);
}

/* Adds the bytes that are known of data or vectors. False: that is all, there is a gap. */
static bool add_known(const struct value *v, uint64_t *sum)
{
	uint32_t i;

	if (v->type == VALUE_DATA) {
		*sum += v->data->kept_bytes;
		return v->data->kept_bytes == v->data->len_bytes;
	}
	for (i = 0; v->type == VALUE_LIST && i < v->count; i++) {
		const struct value *base = value_field(&v->items[i], FIELD_OF(iovec, iov_base));

		if (!base || (base->type != VALUE_NULL && !add_known(base, sum)))
			return false;
	}
	return v->type == VALUE_LIST;
}

static uint64_t known_bytes(const struct row *row, const struct value *args)
{
	const struct value *iov;
	uint64_t sum = 0;
	unsigned int i;

	for (i = 0; i < row->nr_args; i++) {
		const struct arg *a = &row->args[i];

		if (a->kind == KIND_BUF || a->struct_id == STRUCT_iovec) {
			(void)add_known(&args[i], &sum);
		} else if (a->struct_id == STRUCT_msghdr) {
			iov = value_field(&args[i], FIELD_OF(msghdr, msg_iov));
			if (iov)
				(void)add_known(iov, &sum);
		}
	}
	return sum;
}

/*
 * What was cut at the entry, and the call did not use, is no loss: a call that
 * failed took nothing, a short write ended where memory does.
 */
static void forgive_unused(struct capture *c, const struct row *row, const struct outcome *outcome,
			   const struct value *args)
{
	if (!c->truncated_bytes)
		return;
	if (outcome->err ||
	    ((row->result == RESULT_BYTES_WRITTEN || row->result == RESULT_BYTES_COPIED) &&
	     known_bytes(row, args) >= (uint64_t)outcome->ret))
		c->truncated_bytes = 0;
}

int capture_exit(struct capture *c, const struct row *row, const uint64_t regs[6],
		 const struct outcome *outcome, struct value *args)
{
	struct capture_job j = job_for(c, row, regs, args);
	const struct capture_shape *s = capture_shape_of(j.s, row);
	unsigned int n;
	int r = 0;

	j.outcome = outcome;
	forgive_unused(c, row, outcome, args);
	for (n = 0; n < s->out.nr && !r; n++) {
		unsigned int i = s->out.args[n];
		const struct arg *a = &row->args[i];
		bool both = a->dir & ARG_IN && a->struct_id;

		if (has_written(row, a, outcome) && is_asked_for(row, regs))
			push_arg(&j, i, args, CAPTURE_AFTER | (both ? CAPTURE_MERGE : 0));
		else if (!(a->dir & ARG_IN))
			args[i] = value_addr(regs[capture_register(row, i)]);
		if (ends_round(&s->out, n))
			r = capture_run(&j);
	}
	return r;
}

int capture_turned(struct capture *c, const struct row *row, const uint64_t regs[6],
		   const struct outcome *outcome, struct value *args, unsigned int i)
{
	struct capture_job j = job_for(c, row, regs, args);

	j.outcome = outcome;
	push_arg(&j, i, args, CAPTURE_AFTER);
	return capture_run(&j);
}
