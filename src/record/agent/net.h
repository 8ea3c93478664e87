/* SPDX-License-Identifier: MIT */
/* What the net has caught, for an audit of it. Belongs to the tracer's thread. */
#ifndef RECORD_AGENT_NET_H
#define RECORD_AGENT_NET_H

#include <stdint.h>

#include "base/buf.h"
#include "base/map.h"

struct tracee;

/* What is known of a place from where a thread makes a call. */
enum text_state {
	TEXT_FOREIGN, /* in no text that the agent has to do with */
	TEXT_NO_SITE, /* in one, but it cannot be changed */
	TEXT_NOT_TAKEN, /* it could be, but is not: such calls are the tracer's */
	TEXT_UNCHANGED, /* it is not changed, or not yet */
	TEXT_CHANGED,
};

struct net {
	uint64_t nr_caught; /* calls from places that were not changed */
	uint64_t nr_left; /* calls that the agent has seen and left to the tracer */
	uint64_t nr_outside; /* calls of processes without an agent */
	struct map places; /* text -> struct net_place */
	struct map known; /* struct known_key -> the same, borrowed */
};

struct net *net_new(void);
void net_free(struct net *n);
/* The thread, which has an agent, is stopped at the entry of a call, made there, which the tracer follows. */
void net_note_call(struct net *n, const struct tracee *t, uint64_t syscall, enum text_state state);
/* "CALLS from FILE+0xOFFSET: why", a line each, without the last newline. */
void net_put_places(const struct net *n, struct buf *ret);

#endif
