/* SPDX-License-Identifier: MIT */
/*
 * Where a program or library makes calls in a way that can be taken over.
 *
 *   ... [ instructions, 5 bytes or more ] syscall ...
 *       ^ window                          ^ site
 *
 * A jump takes the place of the window's first bytes; the instructions
 * themselves go to a stub, which ends in the agent with the site's address. The
 * syscall instruction stays where it is: whoever comes to it by another way
 * makes a call that the tracer sees. Sites are looked for only inside functions
 * whose begin is known from the unwind table, by decoding them from there; a
 * window of several instructions is taken only when nothing in the text can
 * be read as a jump into it. Where a function is too short for that, the jump stands in the
 * padding before it, and a short one to there, the hop, takes the place of what it begins with.
 * What is read is not trusted: it may be any file.
 */
#ifndef RECORD_AGENT_SITES_H
#define RECORD_AGENT_SITES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/mem.h"
#include "record/agent/decode.h"

#define SITE_JUMP 0xe9
#define SITE_JUMP_BYTES 5
#define SITE_HOP_BYTES 2
#define SITE_SYSCALL_BYTES 2u
#define SITE_WINDOW_MAX_BYTES 32
#define SITE_INSNS_MAX 4
#define SITE_NR_UNKNOWN UINT32_MAX

struct site {
	uint64_t window; /* offsets in the file */
	uint64_t syscall;
	uint32_t nr; /* of the call, when it is a constant */
	uint8_t nr_insns, window_bytes;
	uint8_t pad_bytes; /* that the window begins with: the jump stands there, and its insns are behind */
	bool used; /* a process was seen to make a call there; not set here */
	uint8_t bytes[SITE_WINDOW_MAX_BYTES]; /* of the window */
	struct insn insns[SITE_INSNS_MAX];
};

struct sites {
	VEC(struct site) list; /* in the order of the file */
	uint64_t nr_left; /* places that make calls, and are no sites, as far as they were found */
	bool is_blind; /* the file could not be looked through: it may make calls from anywhere */
};

/* Of an ELF file in memory; none when it is not for this machine or has no unwind table. */
void sites_find(const uint8_t *file, size_t len, struct sites *ret);
/* Of an open file of so many bytes. False: it could not be read, or is shorter by now. */
MUST_CHECK bool sites_find_in_file(int fd, size_t len, struct sites *ret);
void sites_release(struct sites *s);
/* Finds insns and nr of a site by what its window holds. False: it is no such window. */
bool site_decode(struct site *s);

/* The most that site_put_stub() needs. */
#define SITE_STUB_MAX_BYTES 96
/*
 * The stub of a site for when it stands at `stub` and the site's syscall
 * instruction at `syscall`, ending in a jump to `agent` (below 4 GiB). Returns its
 * length; 0 when they are too far apart.
 */
size_t site_put_stub(const struct site *s, uint64_t syscall, uint64_t stub, uint32_t agent,
		     uint8_t ret[SITE_STUB_MAX_BYTES]);
/*
 * Whether a stub stands there behind what it has of the program, or behind the first instructions of its end: then rcx holds
 * the syscall's address already, and *ret_syscall is 0.
 */
#define SITE_STUB_END_BYTES 16
bool site_read_stub_end(const uint8_t bytes[SITE_STUB_END_BYTES], uint64_t at, uint32_t agent,
			uint64_t *ret_syscall);
/* The hop back from behind the padding to the jump. */
void site_put_hop(uint8_t ret[SITE_HOP_BYTES]);
/* The jump that replaces the beginning of the window; false when it is too far. */
bool site_put_jump(uint64_t window, uint64_t stub, uint8_t ret[SITE_JUMP_BYTES]);

#endif
