/* SPDX-License-Identifier: MIT */
/* What the net has caught, for an audit of it. Belongs to the tracer's thread. */
#ifndef RECORD_AGENT_NET_H
#define RECORD_AGENT_NET_H

#include <stdint.h>

#include "base/buf.h"
#include "base/map.h"

struct tracer;
struct tracee;

struct net {
	uint64_t nr_caught; /* calls from places that were not changed */
	uint64_t nr_left; /* calls that the agent has seen and left to the tracer */
	struct map places; /* text -> struct net_place */
	struct map known; /* struct known_key -> the same, borrowed */
};

struct net *net_new(void);
void net_free(struct net *n);
/* The thread, which has an agent, is stopped at the entry of a call, made there. */
void net_note_call(struct net *n, struct tracer *tr, struct tracee *t, uint64_t syscall);
/* "CALLS from FILE+0xOFFSET: why", a line each, without the last newline. */
void net_put_places(const struct net *n, struct buf *ret);

#endif
