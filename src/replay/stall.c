/* SPDX-License-Identifier: MIT */
#include "replay/stall.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/banned.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/mem.h"
#include "model/row.h"

/* A look goes through all threads of the run: seldom, but often enough within a short limit. */
#define LOOK_NS NS_PER_S
#define LOOKS_MIN 8
#define FILE_MAX_BYTES 4096

static bool read_thread_file(pid_t pid, int32_t tid, const char *name, struct buf *ret)
{
	char path[64];
	struct err err;

	(void)snprintf(path, sizeof(path), "/proc/%d/task/%d/%s", (int)pid, (int)tid, name);
	buf_clear(ret);
	return io_read_file(path, FILE_MAX_BYTES, ret, &err) >= 0;
}

/* R, S, D ...; 0: not known. The name before it may hold anything. */
static char thread_state(pid_t pid, int32_t tid)
{
	struct buf text = { 0 };
	const char *end = NULL;
	char state = 0;

	if (read_thread_file(pid, tid, "stat", &text))
		end = strrchr(buf_str(&text), ')');
	if (end && end[1] == ' ')
		state = end[2];
	buf_release(&text);
	return state;
}

/* Functions of the kernel in which a thread waits for another one, not for a device or a server. */
static bool is_wait_for_others(const char *where)
{
	static const char *const parts[] = {
		"pipe",	 "fifo",  "wait_for_partner", "lock_inode_wait", "lock_file",
		"setlk", "unix_", "skb_wait"
	};

	for (size_t i = 0; i < ARRAY_LEN(parts); i++)
		if (strstr(where, parts[i]))
			return true;
	return false;
}

/* Whether a thread that sleeps in the call waits for somebody else. Who may not know believes that it works. */
static bool call_waits(pid_t pid, const struct run_lane_state *s)
{
	const struct row *row = row_by_id(atomic_load(&s->row_id));
	struct buf text = { 0 };
	bool waits;

	if (read_thread_file(pid, atomic_load(&s->tid), "wchan", &text) &&
	    strcmp(buf_str(&text), "0") != 0)
		waits = is_wait_for_others(buf_str(&text));
	else
		waits = row && row_class(row) == C_LOCK;
	buf_release(&text);
	return waits;
}

static bool lane_works(pid_t pid, const struct run_lane_state *s)
{
	switch ((enum run_lane_phase)atomic_load(&s->phase)) {
	case RUN_LANE_TIME:
		return true;
	case RUN_LANE_CALL:
		return !call_waits(pid, s);
	default:
		return false;
	}
}

/* Looks now and then whether its pipe has moved. */
static bool is_at_pipe(const struct run_result *res, int32_t tid)
{
	for (uint32_t i = 0; i < res->nr_lanes; i++)
		if (atomic_load(&res->lanes[i].tid) == tid)
			return atomic_load(&res->lanes[i].phase) == RUN_LANE_PIPE;
	return false;
}

/* Threads that run, wait for a device, or were stopped by somebody. */
static bool any_thread_works(const struct run_result *res, pid_t pid)
{
	char path[32];
	struct dirent *e;
	bool works = false;
	DIR *d;

	(void)snprintf(path, sizeof(path), "/proc/%d/task", (int)pid);
	d = opendir(path);
	if (!d)
		return false;
	while (!works && (e = readdir(d))) {
		int32_t tid = (int32_t)strtol(e->d_name, NULL, 10);
		char state = tid > 0 ? thread_state(pid, tid) : 0;

		works = state && !strchr("SZX", state) && !is_at_pipe(res, tid);
	}
	(void)closedir(d);
	return works;
}

static bool is_still(const struct run_result *res, pid_t pid)
{
	for (uint32_t i = 0; i < res->nr_lanes; i++)
		if (lane_works(pid, &res->lanes[i]))
			return false;
	return !any_thread_works(res, pid);
}

static void keep_wait(struct run_result *res, uint32_t lane)
{
	const struct run_lane_state *s = &res->lanes[lane];

	if (res->nr_waits++ >= RUN_WAITS_KEPT)
		return;
	res->waits[res->nr_waits - 1] = (struct run_wait){
		.lane = lane,
		.phase = atomic_load(&s->phase),
		.row_id = (uint16_t)atomic_load(&s->row_id),
		.nr = atomic_load(&s->nr_done),
		.seq = atomic_load(&s->seq),
		.edge_lane = atomic_load(&s->edge_lane),
		.edge_nr = atomic_load(&s->edge_nr),
	};
}

/* Those first for whom the others wait. */
static void keep_waits(struct run_result *res)
{
	for (int edges = 0; edges < 2; edges++) {
		for (uint32_t i = 0; i < res->nr_lanes; i++) {
			uint32_t phase = atomic_load(&res->lanes[i].phase);

			if (phase != RUN_LANE_IDLE && phase < RUN_LANE_ENDED &&
			    (phase == RUN_LANE_EDGE) == (edges != 0))
				keep_wait(res, i);
		}
	}
}

static uint64_t count_done(const struct run_result *res)
{
	uint64_t sum = 0;

	for (uint32_t i = 0; i < res->nr_lanes; i++)
		sum += atomic_load_explicit(&res->lanes[i].nr_done, memory_order_relaxed);
	return sum;
}

bool stall_look(struct stall *s, struct run_result *res, pid_t pid, uint64_t limit_ns,
		uint64_t now_ns)
{
	uint64_t each_ns = limit_ns / LOOKS_MIN < LOOK_NS ? limit_ns / LOOKS_MIN : LOOK_NS;
	uint64_t done = count_done(res), passed_ns = clock_sub_ns(now_ns, s->looked_ns);

	if (!atomic_load(&res->began_ns) || done != s->done_seen || !s->looked_ns) {
		*s = (struct stall){ .done_seen = done, .looked_ns = now_ns };
		return false;
	}
	if (passed_ns < each_ns)
		return false;
	s->looked_ns = now_ns;
	/* Who was stopped meanwhile, or a machine that slept, has seen no more than one look's time. */
	if (is_still(res, pid))
		s->still_ns += passed_ns < 2 * each_ns ? passed_ns : 2 * each_ns;
	if (s->still_ns < limit_ns)
		return false;
	keep_waits(res);
	return true;
}
