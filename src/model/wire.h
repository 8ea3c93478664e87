/* SPDX-License-Identifier: MIT */
/*
 * What the agent inside a recorded program and the recorder outside of it
 * agree on. It stays on one machine and lives as long as one recording.
 *
 *   memory that all programs of a recording share, and can only read:
 *
 *     rules | names | directories
 *
 *   shared memory of one program image (and of what it forks):
 *
 *     slot | slot | ...  slot: block, ring, files; the first: a block alone
 *
 *   block: one thread's state, found by the agent through its gs register
 *   ring:  records of calls, written by the thread, taken by the recorder
 *   files: when only some paths are wanted, what is known of descriptors; the recorder's
 *
 * A rule says what of a call's memory the agent copies; the recorder makes the
 * rules from the table of calls, so that the agent knows no call by itself. A
 * call without a rule, and one whose record does not fit, is made at its own
 * place in the program, where the recorder sees it by ptrace.
 *
 * Calls that change names, or what they lead to, must not be made before the
 * recorder has noted what is there. It puts each name that it has noted, and
 * that leads to a file or nowhere, into the set of names: as a hash of the text and of where it begins
 * (block.where), which changes when names may have come to mean something else.
 *
 * Likewise a directory must not be read before its names are noted. Those of which that is
 * done are in the set of directories, by device and inode, for good. There are also files
 * that are known to be texts: when the loader maps one, the recorder need not see it at once.
 */
#ifndef MODEL_WIRE_H
#define MODEL_WIRE_H

/*
 * The agent's text is at the same place in every program of a recording: the filter knows it. Where
 * that is between these is chosen anew for each recording, so that no program can count on it.
 */
#define WIRE_AGENT_LOWEST 0x70000000
#define WIRE_AGENT_END 0x7f000000

#define WIRE_BLOCK_BYTES 4096
/*
 * Rings are small at first, and made larger when they were found without room: both are
 * powers of 2. Small records get no more than WIRE_RING_CACHED_BYTES, which a cache can hold,
 * but where very many of them came.
 */
#define WIRE_RING_FIRST_BYTES 0x40000
#define WIRE_RING_CACHED_BYTES 0x100000
#define WIRE_RING_MOST_BYTES 0x400000
#define WIRE_RECORD_LARGE_BYTES 0x18000
/* A call that could need more is left to the recorder; a ring has room for two of them. */
#define WIRE_RECORD_MOST_OF(ring_bytes) ((ring_bytes) / 8 * 3)
#define WIRE_RECORD_MAX_BYTES WIRE_RECORD_MOST_OF(WIRE_RING_MOST_BYTES)
#define WIRE_NR_SLOTS 128

#define WIRE_NR_CALLS 512
#define WIRE_NR_RULES 1024
#define WIRE_PIECES_MAX 6
#define WIRE_IOVECS_MAX 256
/*
 * Of an array of strings. With two such arrays a kernel takes an execve whatever its limits are, so it
 * looks for the file: more could be too much (E2BIG), which it may find out before that.
 */
#define WIRE_STRINGS_MAX 1024
#define WIRE_STRINGS_MAX_BYTES 0xc000

/* What the thread is doing in the agent (block.phase). */
#define WIRE_OUTSIDE 0
#define WIRE_BEFORE 1 /* the record is being made, the call is not yet */
#define WIRE_CALLING 2 /* the record is whole up to the call's result */
#define WIRE_AFTER 3 /* the call has been made, or answered; published when head has moved on */

/* Places of a block's members, for the agent's assembly; the struct below is checked against them. */
#define WIRE_AT_SELF 0
#define WIRE_AT_OFF 8
#define WIRE_AT_PHASE 12
#define WIRE_AT_NR 16
#define WIRE_AT_SITE 24
#define WIRE_AT_RET 32
#define WIRE_AT_RSP 40
#define WIRE_AT_REGS 48
#define WIRE_AT_SAVED 96
#define WIRE_AT_TELLS 232
#define WIRE_AT_MASTER 240

/*
 * Without a net, the agent tells the recorder of calls that it does not take by one of its own, which
 * a filter hands to the tracer. It does nothing, so that nothing happens when nobody is there, and
 * is one that sandboxes allow: getpgrp.
 */
#define WIRE_NR_TELL 111
/* What the agent asks the kernel for by itself: the filter lets no other call pass where it does so. */
#define WIRE_NR_FSTAT 5
#define WIRE_NR_SCHED_YIELD 24
#define WIRE_NR_FCNTL 72
#define WIRE_FCNTL_GET_FLAGS 3 /* its only command */
#define WIRE_NR_CLOCK_GETTIME 228
#define WIRE_NR_FACCESSAT2 439 /* with the rights by which files are opened: AT_EACCESS */
#define WIRE_EFFECTIVE_ACCESS 0x200
/* And, when it enters, for the memory that it shares with the recorder. */
#define WIRE_NR_CLOSE 3
#define WIRE_NR_MMAP 9
#define WIRE_NR_OPENAT 257
/* What the agent answers calls with that would fail: ENOENT. */
#define WIRE_ANSWER (-2)
/* What the kernel makes of the master's word when the recorder has died (a robust futex). */
#define WIRE_DIED 0x40000000

/* What a call of a list (below) has of the one whose result was kept. */
#define WIRE_CALL_FD_FIRST 1 /* as its first argument */
#define WIRE_CALL_FD_FIFTH 2
#define WIRE_CALL_KEEP 4 /* its own result is kept */
#define WIRE_CALL_BYTES 64

#ifndef __ASSEMBLER__
#include <assert.h>
#include <stddef.h>
#include <stdint.h>

/* What names mean to a thread that begin at its root, and in its working directory. */
struct wire_where {
	uint64_t from_root, from_cwd;
};

/*
 * Written by its thread, but for `off` and `tail`, and but for times when the
 * recorder holds the thread stopped. Behind it in its page is the agent's stack.
 */
struct wire_block {
	uint64_t self; /* address in the program */
	uint32_t off; /* not 0: all calls are made at their own places */
	uint32_t phase;
	uint64_t nr, site; /* of the call; site: the address of its syscall instruction */
	int64_t ret;
	uint64_t rsp, regs[6]; /* as the program had them, and below */
	uint64_t saved[6]; /* rbx rbp r12 r13 r14 r15 */
	uint64_t ring,
		rules; /* addresses in the program; the rules begin what all programs share */
	uint64_t head; /* bytes ever published */
	uint64_t call_head; /* head when the call began: its record is there */
	uint64_t rule; /* number of its rule */
	uint64_t limit; /* address behind the room of its record */
	uint64_t wait_ticks; /* so long it waits for room that does not come; the recorder's */
	uint64_t cpu_ticks; /* after so many it asks for its processor time again; the recorder's */
	uint64_t cpu_tsc; /* when it has done so last */
	uint64_t ring_bytes; /* the recorder's */
	uint64_t needed_bytes; /* by a record for which there was no room; 0: none */
	uint16_t tells; /* not 0: calls that are not for the agent are told of */
	uint16_t kernel_clock; /* not 0: time is the kernel's, in ns, not the counter's */
	uint32_t alive; /* of the first slot: the recorder's number, or WIRE_DIED */
	uint64_t
		master; /* address of `alive` in the program; of images that outlive the recorder */
	uint64_t clock_at; /* the vDSO's clock_gettime in the program; 0: it makes a call */
	uint64_t tail; /* bytes ever taken; the recorder's */
	uint32_t asks_kernel; /* not 0: calls that would fail are made; the recorder's */
	uint32_t pad32;
	uint64_t pad[6];
	struct wire_where where; /* the recorder's */
	uint64_t loader_start,
		loader_end; /* calls from there may map known texts; the recorder's */
};

static_assert(offsetof(struct wire_block, off) == WIRE_AT_OFF, "layout");
static_assert(offsetof(struct wire_block, phase) == WIRE_AT_PHASE, "layout");
static_assert(offsetof(struct wire_block, nr) == WIRE_AT_NR, "layout");
static_assert(offsetof(struct wire_block, site) == WIRE_AT_SITE, "layout");
static_assert(offsetof(struct wire_block, ret) == WIRE_AT_RET, "layout");
static_assert(offsetof(struct wire_block, rsp) == WIRE_AT_RSP, "layout");
static_assert(offsetof(struct wire_block, regs) == WIRE_AT_REGS, "layout");
static_assert(offsetof(struct wire_block, saved) == WIRE_AT_SAVED, "layout");
static_assert(offsetof(struct wire_block, tells) == WIRE_AT_TELLS, "layout");
static_assert(offsetof(struct wire_block, master) == WIRE_AT_MASTER, "layout");
static_assert(offsetof(struct wire_block, tail) == 256, "tail has a cache line of its own");

enum wire_when {
	WIRE_IN = 1,
	WIRE_OUT = 2,
};

enum wire_piece_kind {
	WIRE_BYTES,
	WIRE_BITS, /* the length counts bits, of which 64 are copied at a time */
	WIRE_IOVECS, /* an array of struct iovec, and what they point to */
	WIRE_STRING, /* with its NUL; at most `most` bytes */
	WIRE_STRINGS, /* an array of pointers that ends with NULL, and such strings */
};

/* Where a number comes from: a register 0..5, the result, or nowhere. */
#define WIRE_FROM_RET 6
#define WIRE_FROM_NOTHING 7
#define WIRE_NUMBER_32 0x10 /* the lower half of the register */
#define WIRE_NUMBER_SIGNED 0x20 /* and what is below 0 counts as 0 */
#define WIRE_NUMBER_FROM 0x0f

/* One stretch of memory: min(number, cap, most) * unit bytes; without a number, most of them. */
struct wire_piece {
	uint8_t kind, when;
	uint8_t reg; /* holds the address */
	uint8_t number, cap;
	uint8_t bound; /* what a result can be at most, known before the call */
	uint16_t pad;
	uint32_t unit;
	uint32_t most; /* 0: any number */
};

#define WIRE_RULE_USED 1 /* calls that it fits are recorded by the agent */
#define WIRE_RULE_AT                                                                               \
	2 /* only with a path that does not begin at the descriptor in its first register */
#define WIRE_RULE_NAMES                                                                            \
	8 /* when also_* does not hold, or is not there: if all its paths are in the set */
#define WIRE_RULE_LISTED 16 /* only if its first register is of a directory in the set */
#define WIRE_RULE_CHOSEN                                                                           \
	32 /* the descriptor in file_from decides: left out, recorded, or left to the recorder */
#define WIRE_RULE_PATHLESS 64 /* chosen calls without a descriptor are left out */
#define WIRE_RULE_FREE 128 /* of a number: nobody wants to be told of such calls */
#define WIRE_RULE_TEXT                                                                             \
	256 /* when also_* does not hold: from the loader, if file_from is of a known text */
#define WIRE_RULE_FAILS                                                                            \
	512 /* only if there is nothing by the name in its first register: then it is not made, but fails */
#define WIRE_RULE_NOT_PROC                                                                         \
	1024 /* not with a path below /proc: what is there may tell what the recorder does */
#define WIRE_RULE_WRITABLE 2048 /* only if its first register is of a file opened for writing */
#define WIRE_RULE_PRIVATE 4096 /* not if the map, by its flags in the fourth register, is shared */
#define WIRE_RULE_NOT_FIXED 8192 /* nor if its address is fixed */
#define WIRE_RULE_FILE 4 /* the file behind file_from is asked for when the call has succeeded */

/* The first is at the number of its call; variants of the call follow by `next`. */
struct wire_rule {
	uint16_t flags;
	uint16_t next; /* tried when this one does not fit; 0: none */
	uint8_t nr_pieces;
	uint8_t select_reg, also_reg;
	uint8_t file_from; /* a number */
	uint64_t select_mask, select_value; /* fits when (register & mask) == value */
	uint64_t also_mask, also_value; /* and is used when the same holds of these */
	struct wire_piece pieces[WIRE_PIECES_MAX];
};

/* For calls that are left out: nothing is copied. */
#define WIRE_EMPTY_RULE (WIRE_NR_RULES - 1)

/* What is known of a descriptor. */
#define WIRE_NR_FILES 4096
#define WIRE_FILE_UNKNOWN 0
#define WIRE_FILE_WANTED 1
#define WIRE_FILE_UNWANTED 2

/*
 * When the agent enters it makes a list of calls, all in one go; it ends with WIRE_CALLS_END for a
 * number. The results are left on the thread's stack, one below the other.
 */
#define WIRE_CALLS_END UINT64_MAX
struct wire_call {
	uint64_t nr, args[6], flags;
};

static_assert(sizeof(struct wire_call) == WIRE_CALL_BYTES, "layout");

#define WIRE_SKIP UINT32_MAX /* record.nr: nothing up to the end of the ring */
#define WIRE_LEFT_OUT 0x40000000u /* and with this: of a call whose path is not wanted */

/* Followed by pieces, each with its bytes, all of them at multiples of 8. */
struct wire_record {
	uint32_t size_bytes; /* with all that follows */
	uint32_t nr;
	uint32_t nr_in, nr_out; /* pieces before and after the call */
	uint64_t enter_tsc, exit_tsc;
	int64_t ret;
	uint64_t regs[6];
	uint64_t cpu_ns; /* processor time of the thread after the call; 0: not asked */
	uint64_t in_bytes; /* of the pieces before the call, with their heads */
	uint64_t waited_ticks; /* for room in the ring, before the call */
};

struct wire_copy {
	uint64_t addr, len_bytes;
};

/* The address of a copy that is what the kernel says of the call's file: a struct stat. */
#define WIRE_FILE_ADDRESS 1
#define WIRE_FILE_BYTES 144

/* In one record: arrays of strings have most, and there may be that of the file. */
#define WIRE_COPIES_MAX (WIRE_PIECES_MAX * (1 + WIRE_STRINGS_MAX) + 1)

static_assert(WIRE_IOVECS_MAX <= WIRE_STRINGS_MAX, "copies");
static_assert(sizeof(struct wire_record) % 8 == 0, "alignment");
static_assert(sizeof(struct wire_rule) == 40 + 16 * WIRE_PIECES_MAX, "layout");

/* The set of names: hashes, 0 where there is none, looked for from the hash's own place on. */
#define WIRE_NR_NAMES 4096
#define WIRE_NAME_PROBES 8

/* len: with the NUL. Both sides have to come to the same. */
static inline __attribute__((always_inline)) uint64_t
wire_name(const struct wire_where *where, uint64_t nr, const char *path, uint64_t len)
{
	uint64_t from = path[0] == '/' ? where->from_root : where->from_cwd;
	uint64_t h = from * UINT64_C(0x9e3779b97f4a7c15) ^ nr, i;

	for (i = 0; i < len; i++)
		h = (h ^ (uint8_t)path[i]) * UINT64_C(0x100000001b3);
	h ^= h >> 32;
	h *= UINT64_C(0xd6e8feb86659fd93);
	h ^= h >> 32;
	return h ? h : 1;
}

#define WIRE_NR_DIRS 1024
#define WIRE_TEXT_SALT UINT64_C(0x5851f42d4c957f2d) /* for the device of a text */

static inline __attribute__((always_inline)) uint64_t wire_dir(uint64_t dev, uint64_t ino)
{
	uint64_t h = (ino * UINT64_C(0x9e3779b97f4a7c15)) ^ dev;

	h = (h ^ h >> 32) * UINT64_C(0xd6e8feb86659fd93);
	h = (h ^ h >> 29) * UINT64_C(0xff51afd7ed558ccd);
	h ^= h >> 32;
	return h ? h : 1;
}

#define WIRE_RULES_BYTES ((WIRE_NR_RULES * sizeof(struct wire_rule) + 4095) / 4096 * 4096)
#define WIRE_FILES_AT (WIRE_BLOCK_BYTES + WIRE_RING_MOST_BYTES) /* from the block on */
#define WIRE_SLOT_BYTES (WIRE_FILES_AT + WIRE_NR_FILES)
#define WIRE_NAMES_BYTES (WIRE_NR_NAMES * sizeof(uint64_t))
#define WIRE_DIRS_BYTES (WIRE_NR_DIRS * sizeof(uint64_t))
#define WIRE_COMMON_BYTES (WIRE_RULES_BYTES + WIRE_NAMES_BYTES + WIRE_DIRS_BYTES)
#define WIRE_IMAGE_BYTES (WIRE_BLOCK_BYTES + (uint64_t)(WIRE_NR_SLOTS - 1) * WIRE_SLOT_BYTES)
#endif

#endif
