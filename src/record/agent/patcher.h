/* SPDX-License-Identifier: MIT */
/*
 * What is being written into a stopped process. Stubs are gathered, since they stand side by
 * side, and so are the jumps to them. The text that they go to is read in one go; then the
 * stubs are written, and after them the text, a stretch of it for each page.
 */
#ifndef RECORD_AGENT_PATCHER_H
#define RECORD_AGENT_PATCHER_H

#include "record/agent/inside.h"

#define PATCHER_CHANGES_MAX 64u
#define PATCHER_TEXT_BYTES 16384u

struct patch_change {
	const struct site *site; /* its list stays */
	uint64_t window; /* its address */
	uint8_t jump[SITE_JUMP_BYTES];
};

/* Of one page, or a little beyond its end: what lies between its first window and its last syscall. */
struct patch_stretch {
	uint64_t at;
	size_t len, in_text; /* in_text: where it begins in the bytes that were read */
	size_t nr_changes; /* those of the stretch before it end where these begin */
	bool is_changed;
};

struct patcher {
	struct tracer *tr;
	struct tracee *t;
	int mem; /* of the process; -1: not opened yet */
	uint64_t ip; /* where its thread is, if that is not in a call */
	struct stub_area *area;
	uint64_t stubs_at; /* where those that are gathered begin */
	uint32_t stubs_len;
	struct patch_change changes[PATCHER_CHANGES_MAX];
	struct patch_stretch stretches[PATCHER_CHANGES_MAX];
	size_t nr_changes, nr_stretches, text_len;
	bool is_refused; /* something could not be written: then nothing more is */
	bool is_broken; /* it was in part */
	uint8_t stubs[8192];
	uint8_t text[PATCHER_TEXT_BYTES];
};

/* ip: where the thread is; 0: in a call. */
void patcher_open(struct patcher *p, struct tracer *tr, struct tracee *t, uint64_t ip);
/* Writes what is left. False: not all changes were made; from places without one the tracer sees calls. */
bool patcher_close(struct patcher *p);
/* The site becomes a jump, unless it is not what stands there. False: this process gets no more of them. */
bool patcher_change(struct patcher *p, const struct site *s, uint64_t syscall);

/*
 * Room for stubs near an address; NULL: none. may_map: the thread is where it can
 * make a call for us, which is not within one.
 */
struct stub_area *patcher_area_near(const struct agent *a, struct tracee *t, uint64_t near,
				    bool may_map);

#endif
