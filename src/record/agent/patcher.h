/* SPDX-License-Identifier: MIT */
/*
 * What is being written into a stopped process. Stubs are gathered, since they stand side by
 * side; and so are the jumps to them within a stretch of text, which is written after them.
 */
#ifndef RECORD_AGENT_PATCHER_H
#define RECORD_AGENT_PATCHER_H

#include "record/agent/inside.h"

#define STRETCH_BYTES 8192u

struct patcher {
	struct tracer *tr;
	struct tracee *t;
	int mem; /* of the process */
	uint64_t ip; /* where its thread is, if that is not in a call */
	struct stub_area *area;
	uint64_t stubs_at; /* where those that are gathered begin */
	uint32_t stubs_len;
	uint64_t text_at; /* of the stretch */
	size_t text_len; /* of what could be read of it; 0: there is none */
	size_t changed_from, changed_to; /* in it; 0, 0: nothing */
	bool is_broken; /* something could not be written */
	uint8_t stubs[8192];
	uint8_t text[STRETCH_BYTES];
};

/* ip: where the thread is; 0: in a call. False: it is gone. */
bool patcher_open(struct patcher *p, struct tracer *tr, struct tracee *t, uint64_t ip);
/* Writes what is left. */
void patcher_close(struct patcher *p);
/* The site becomes a jump, unless it is not what stands there. False: this process gets no more of them. */
bool patcher_change(struct patcher *p, const struct site *s, uint64_t syscall);

/*
 * Room for stubs near an address; NULL: none. may_map: the thread is where it can
 * make a call for us, which is not within one.
 */
struct stub_area *patcher_area_near(const struct agent *a, struct tracee *t, uint64_t near,
				    bool may_map);

#endif
