/* SPDX-License-Identifier: MIT */
/* One event: when, who, what, with which outcome. */
#ifndef MODEL_EVENT_H
#define MODEL_EVENT_H

#include "model/value.h"

/* Bits of event.flags; names in flags.def (event_flags), on disk. */
enum event_flag {
	EVENT_UNFINISHED = 1, /* never returned: killed in the call, or the call does not return */
	EVENT_RESTARTED =
		2, /* broken off; the program does not see that, it is made again (after a handler) */
	EVENT_INTERRUPTED = 4, /* a signal ended it, the program saw EINTR */
	EVENT_COMPAT = 8, /* made through a 32-bit interface */
	EVENT_INJECTED = 16, /* the outcome was tampered with (fault injection of another tracer) */
	EVENT_NO_TIME = 32, /* the times are invented, only their order means something */
	EVENT_NO_DURATION = 64, /* the exit time is invented */
	/* Of a run: what it repeats is the event of the original that `origin` names. */
	EVENT_SIMULATED = 128, /* not made again: arguments and outcome are the original's */
	EVENT_MISMATCHED = 256, /* outcome or result was not the original's */
	EVENT_VERIFIED = 512, /* what it gave back besides its outcome was as in the original */
	EVENT_ENFORCED = 1024, /* simulated, for it failed and might have succeeded in the run */
};

/* Values of loss.kind; names in flags.def (loss_kinds), on disk. */
enum loss_kind {
	LOSS_EVENTS_LOST = 1, /* events that were never stored */
	LOSS_DATA_TRUNCATED = 2, /* bytes of arguments that were not kept */
	LOSS_BLOCK_DAMAGED = 3, /* a block of the file could not be read back */
	LOSS_BLOB_MISSING = 4, /* data that events refer to is gone */
	LOSS_NOT_CLOSED = 5, /* the recorder ended before the program, or the file was cut */
	LOSS_CALL_UNSEEN = 6, /* a kind of call that the recorder could not see */
	LOSS_TREE_INCOMPLETE = 7, /* paths or contents of the trees that could not be noted */
	LOSS_EVENT_TOO_LARGE = 8,
	LOSS_FILTERED = 9, /* left out on request */
	LOSS_STORES_UNSEEN = 10, /* bytes of files that programs may have stored through maps */
};

/* Kinds are below this; 0 is none of them. */
#define LOSS_KIND_MAX 10

/* Values of thread_start.how; names in flags.def (start_how), on disk. */
enum start_how {
	START_CLONE = 0,
	START_ATTACH = 1,
	START_LAUNCH = 2,
};

/*
 * An outcome's error that an imported trace does not tell, only that there was
 * one. The last number that an error can have, which none has; on disk, named
 * EUNKNOWN.
 */
#define ERRNO_UNKNOWN 4095

/*
 * A run of several traces tells them apart by the upper bits of `origin`; below
 * is the original's seq.
 */
#define EVENT_SOURCE_SHIFT 48

struct event {
	const struct row *row; /* of the table, or made from the trace's own schema */
	uint16_t flags; /* enum event_flag */
	uint32_t stream; /* of a trace that is read: position in trace_streams() */
	uint32_t pid, tid, ppid, pgid; /* 0: not known */
	uint64_t seq; /* orders events whose times are equal */
	uint64_t enter_ns, exit_ns; /* since the trace began */
	uint64_t cpu_ns; /* of the thread, at the exit; 0: not known */
	uint64_t held_ns; /* for how long the recorder itself held the thread around this call */
	uint64_t held_before_ns; /* as much of it was before the call; 0: not known */
	uint64_t held_inside_ns; /* and for how long in the middle of the call; not in held_ns */
	/*
	 * CPU time that the thread used between its call before and this one,
	 * without what stops of the recorder took of it; 0: not known.
	 */
	uint64_t gap_cpu_ns;
	uint64_t
		origin; /* line or record number in an imported file, event of the original in a run; 0: none */
	struct outcome outcome;
	struct value args[ROW_ARGS_MAX];
};

/* A record of another section (metadata, trees, ledger): a row and its values. */
struct item {
	const struct row *row;
	struct value args[ROW_ARGS_MAX];
};

/* The place of an argument by name, NULL when the row has none of that name. */
struct value *args_find(const struct row *row, struct value *args, const char *name);

/* A copy that stands alone: its arguments live in the arena. */
void event_copy(const struct event *ev, struct arena *a, struct event *ret);

/* When the event takes effect: at its entry if it gives something up, else at its exit. */
static inline uint64_t event_effect_ns(const struct event *ev)
{
	return ev->row->class & A_ENTRY ? ev->enter_ns : ev->exit_ns;
}

/* Bytes that the event moved from and to storage, pipes and sockets. */
struct event_bytes {
	uint64_t read, written;
};

struct event_bytes event_count_bytes(const struct event *ev);

#endif
