/* SPDX-License-Identifier: MIT */
/* Arguments of events by name, read without trust in what they are. */
#ifndef ORDER_ARGS_H
#define ORDER_ARGS_H

#include "model/event.h"

/* NULL when the row has no argument of that name or the event lacks it. */
static inline const struct value *event_arg(const struct event *ev, const char *name)
{
	/* args_find() gives a place that may be written; here it is only read. */
	const struct value *v = args_find(ev->row, (struct value *)ev->args, name);

	return v && v->type != VALUE_NONE ? v : NULL;
}

static inline bool value_is_number(const struct value *v)
{
	return v && (v->type == VALUE_INT || v->type == VALUE_ADDR);
}

/* Its number; 0 when it is none. */
static inline uint64_t event_number(const struct event *ev, const char *name)
{
	const struct value *v = event_arg(ev, name);

	return value_is_number(v) ? v->u : 0;
}

/* The number in field n of a struct; 0 when there is none. */
static inline uint64_t field_number(const struct value *v, unsigned int n)
{
	const struct value *field = v ? value_field(v, n) : NULL;

	return value_is_number(field) ? field->u : 0;
}

/* The process whose end a wait4, waitpid or waitid has reported; 0: none. */
uint32_t event_ended_pid(const struct event *ev);

#endif
