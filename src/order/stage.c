/* SPDX-License-Identifier: MIT */
/*
 * Stage and sequence. A name's resource lives through all its generations, also
 * those in which nothing is there; so "create before use, use before delete, one
 * generation before the next" is: what changes it comes after all that came
 * before and before all that comes after.
 */
#include "order/touches.h"

struct stage_rules {
	uint8_t stage, seq; /* RULE_MAX: none */
};

static const struct stage_rules rules_of[RES_KIND_MAX] = {
	[RES_NAME] = { RULE_path_stage, RULE_path_seq }, [RES_FD] = { RULE_fd_stage, RULE_fd_seq },
	[RES_HANDLE] = { RULE_fd_stage, RULE_MAX },	 [RES_MAP] = { RULE_fd_stage, RULE_MAX },
	[RES_AIO] = { RULE_aio_stage, RULE_aio_seq },	 [RES_LOCKER] = { RULE_fd_stage, RULE_MAX },
};

void stage_touch(struct touches *t, const struct touch *touch, const struct users *self,
		 const struct sink *sink)
{
	struct stage_rules rules = rules_of[touch->res->kind];
	bool seq = rules.seq != RULE_MAX && has_rule(t, rules.seq);
	struct stage_state *s;

	if (!seq && !has_rule(t, rules.stage))
		return;
	s = state_of(t, touch->res, sizeof(*s));
	if (seq)
		rw_next(&s->rw, &self->one, sink, rules.seq);
	else if (touch->how & TOUCH_STAGE)
		rw_write(&s->rw, &self->one, sink, rules.stage);
	else
		rw_read(&s->rw, &self->one, sink, rules.stage);
}
