/* SPDX-License-Identifier: MIT */
/* For machines that the agent is not written for. */
#include <errno.h>

#include "record/agent/agent.h"

int agent_new(const struct tracer *tr, struct agent **ret, struct err *err)
{
	(void)tr;
	(void)ret;
	return err_set(err, -EOPNOTSUPP, "there is no agent for this machine");
}

void agent_free(struct agent *a)
{
	(void)a;
}

uint64_t agent_call_address(const struct agent *a)
{
	(void)a;
	return 0;
}

uint64_t agent_ask_address(const struct agent *a)
{
	(void)a;
	return 0;
}

void agent_watch_files(struct tracer *tr, bool on)
{
	(void)tr;
	(void)on;
}

bool agent_would_be_in(const struct tracer *tr, uint64_t start, uint64_t len)
{
	(void)tr;
	(void)start;
	(void)len;
	return false;
}

int64_t agent_call_at(struct tracee *t, uint64_t ip, long nr, const uint64_t args[6])
{
	(void)t;
	(void)ip;
	(void)nr;
	(void)args;
	return -EOPNOTSUPP;
}

bool agent_takes(const struct agent *a, unsigned int nr)
{
	(void)a;
	(void)nr;
	return false;
}

void agent_note_choice(struct tracer *tr, struct tracee *t, bool at_entry)
{
	(void)tr;
	(void)t;
	(void)at_entry;
}

bool agent_at_stop(struct tracer *tr, struct tracee *t)
{
	(void)tr;
	(void)t;
	return false;
}

void agent_new_thread(struct tracer *tr, struct tracee *parent, struct tracee *t)
{
	(void)tr;
	(void)parent;
	(void)t;
}

void agent_first_stop(struct tracee *t)
{
	(void)t;
}

void agent_end_thread(struct tracer *tr, struct tracee *t)
{
	(void)tr;
	(void)t;
}

void agent_leave_image(struct tracer *tr, struct tracee *t)
{
	(void)tr;
	(void)t;
}

void agent_enter_image(struct tracer *tr, struct tracee *t, uint64_t ip)
{
	(void)tr;
	(void)t;
	(void)ip;
}

void agent_after_call(struct tracer *tr, struct tracee *t, const struct outcome *o, uint64_t ip)
{
	(void)tr;
	(void)t;
	(void)o;
	(void)ip;
}

bool agent_before_first_thread(struct tracer *tr, struct tracee *t, uint64_t ip)
{
	(void)tr;
	(void)t;
	(void)ip;
	return false;
}

bool agent_is_in(const struct tracer *tr, const struct tracee *t)
{
	(void)tr;
	(void)t;
	return false;
}

void agent_after_map(struct tracer *tr, struct tracee *t, const struct outcome *o, uint64_t ip)
{
	(void)tr;
	(void)t;
	(void)o;
	(void)ip;
}

bool agent_at_call(struct tracer *tr, struct tracee *t, uint64_t ip, bool may_hand_over)
{
	(void)tr;
	(void)t;
	(void)ip;
	(void)may_hand_over;
	return false;
}

bool agent_make_room(struct tracer *tr, struct tracee *t, uint64_t ip)
{
	(void)tr;
	(void)t;
	(void)ip;
	return false;
}

void agent_before_thread(struct tracer *tr, struct tracee *t)
{
	(void)tr;
	(void)t;
}

void agent_before_signal(struct tracer *tr, struct tracee *t)
{
	(void)tr;
	(void)t;
}

void agent_lose_gs(struct tracer *tr, struct tracee *t)
{
	(void)tr;
	(void)t;
}

void agent_note_rights(const struct tracee *t)
{
	(void)t;
}

void agent_turn_off(struct tracer *tr, struct tracee *t)
{
	(void)tr;
	(void)t;
}

void agent_lose_counter(struct tracer *tr, struct tracee *t)
{
	(void)tr;
	(void)t;
}

void agent_lose_clock(struct tracer *tr, struct tracee *t)
{
	(void)tr;
	(void)t;
}

const char *agent_clock(const struct agent *a)
{
	(void)a;
	return "none";
}

void agent_begin_names(struct tracer *tr, struct tracee *t)
{
	(void)tr;
	(void)t;
}

void agent_end_names(struct tracer *tr, struct tracee *t, bool succeeded)
{
	(void)tr;
	(void)t;
	(void)succeeded;
}

void agent_settle(struct tracer *tr, bool moving)
{
	(void)tr;
	(void)moving;
}

void agent_close_files(struct tracer *tr)
{
	(void)tr;
}

uint64_t agent_drain_all(struct tracer *tr)
{
	(void)tr;
	return 0;
}

bool agent_is_at_work(const struct tracer *tr)
{
	(void)tr;
	return false;
}

uint64_t agent_nr_events(const struct agent *a)
{
	(void)a;
	return 0;
}

void agent_audit(const struct agent *a, struct agent_caught *ret)
{
	(void)a;
	*ret = (struct agent_caught){ 0 };
}

uint64_t agent_nr_missed(const struct agent *a)
{
	(void)a;
	return 0;
}

bool agent_is_netless(const struct tracer *tr)
{
	(void)tr;
	return false;
}

uint64_t agent_told_address(const struct agent *a)
{
	(void)a;
	return 0;
}

bool agent_runs_free(const struct tracer *tr, const struct tracee *t)
{
	(void)tr;
	(void)t;
	return true;
}

void agent_expect_call(struct tracer *tr, struct tracee *t, uint64_t ip, uint64_t sp)
{
	(void)tr;
	(void)t;
	(void)ip;
	(void)sp;
}

void agent_follow_call(struct tracer *tr, struct tracee *t, const struct outcome *o, uint64_t ip,
		       uint64_t sp)
{
	(void)tr;
	(void)t;
	(void)o;
	(void)ip;
	(void)sp;
}

uint64_t agent_nr_unseen_places(const struct agent *a)
{
	(void)a;
	return 0;
}

bool agent_is_forestalled(const struct tracer *tr, struct tracee *t, uint64_t stack)
{
	(void)tr;
	(void)t;
	(void)stack;
	return false;
}

void agent_drain(struct tracer *tr, struct tracee *t)
{
	(void)tr;
	(void)t;
}
