/* SPDX-License-Identifier: MIT */
/*
 * Who has used something, as far as order can still ask: of each lane only the
 * last action counts, because a lane is sequential. Most things are used by one
 * lane; then all of this is a few words and no allocation.
 *
 *   user    one action of a lane
 *   users   the last action of each of several lanes
 *   rw      the last action that changed the thing, and all who used it since
 */
#ifndef ORDER_USERS_H
#define ORDER_USERS_H

#include "order/order.h"

#define NO_LANE UINT32_MAX

struct user {
	uint64_t nr, enter_ns;
	uint32_t lane; /* NO_LANE: nobody */
	uint32_t took; /* from entry to exit: see user_took_ns() */
};

/* Sorted by lane. Zeroed: nobody. */
struct users {
	uint32_t nr, cap; /* cap 0: it stands here */
	union {
		struct user one;
		struct user *many;
	};
};

struct rw {
	struct user writer;
	struct users readers;
};

struct thread;

/*
 * Where what is asked for goes: to the edges of the action at hand, or, when the
 * event is no action, to what the thread's next action must wait for.
 */
struct sink {
	struct edges *out; /* NULL: to thread */
	struct thread *thread;
	uint32_t lane; /* whose it is */
	/* Not 0: of those that were not over by then only the start is asked for. */
	uint64_t started_since_ns;
	/* Those that were not over by then are not asked for, but what their lanes had done before. */
	bool only_over;
	uint64_t over_by_ns;
};

static inline struct user user_nobody(void)
{
	return (struct user){ .lane = NO_LANE };
}

static inline bool user_is(const struct user *u)
{
	return u->lane != NO_LANE;
}

/* Exact below 2.1 s, then to 1 us, up to 36 minutes: only lengths of edges depend on it. */
#define USER_TOOK_COARSE (UINT32_C(1) << 31)

static inline uint64_t user_took_ns(const struct user *u)
{
	return u->took & USER_TOOK_COARSE ? (uint64_t)(u->took & ~USER_TOOK_COARSE) << 10 : u->took;
}

static inline uint64_t user_exit_ns(const struct user *u)
{
	return u->enter_ns + user_took_ns(u);
}

struct user user_from_ref(const struct action_ref *ref);
struct action_ref user_to_ref(const struct user *u);

/* A user of nobody is ignored, as is an action that its lane has left behind. */
void users_add(struct users *s, const struct user *u);
void users_add_all(struct users *s, const struct users *from);
void users_clear(struct users *s);
void users_release(struct users *s);
void users_copy(struct users *to, const struct users *from);
bool users_equal(const struct users *a, const struct users *b);

static inline const struct user *users_items(const struct users *s)
{
	return s->cap ? s->many : &s->one;
}

void sink_ask(const struct sink *sink, const struct user *u, enum rule rule);
void sink_ask_all(const struct sink *sink, const struct users *s, enum rule rule);

static inline void rw_init(struct rw *rw)
{
	*rw = (struct rw){ .writer = { .lane = NO_LANE } };
}

void rw_release(struct rw *rw);
/* After the last writer. */
void rw_read(struct rw *rw, const struct user *self, const struct sink *sink, enum rule rule);
/* After the last writer and all readers since. */
void rw_write(struct rw *rw, const struct user *self, const struct sink *sink, enum rule rule);
/* After the last, whatever it did: all are writers. */
void rw_next(struct rw *rw, const struct user *self, const struct sink *sink, enum rule rule);

#endif
