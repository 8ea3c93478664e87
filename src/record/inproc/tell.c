/* SPDX-License-Identifier: MIT */
/* Which calls the recorder is told of, without a net. As agent.c, a guest. */
#include "model/wire.h"

int agent_must_tell(const struct wire_block *b);

__attribute__((section("agent_text"), used, noinline)) int
agent_must_tell(const struct wire_block *b)
{
	const struct wire_rule *rules = (const struct wire_rule *)b->rules;

	return b->nr >= WIRE_NR_CALLS || !(rules[b->nr].flags & WIRE_RULE_FREE);
}
