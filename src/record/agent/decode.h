/* SPDX-License-Identifier: MIT */
/* x86-64 instructions: how long they are, and whether they may be moved. */
#ifndef RECORD_AGENT_DECODE_H
#define RECORD_AGENT_DECODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DECODE_MAX_BYTES 15

enum insn_kind {
	INSN_PLAIN, /* means the same at any place */
	INSN_RELATIVE, /* addresses memory relative to its own place */
	INSN_BRANCH, /* a conditional jump to a place relative to its own */
	INSN_SYSCALL,
	INSN_JUMP_ANYWHERE, /* to a place that memory or a register holds */
	INSN_FIXED, /* any other that goes elsewhere */
};

struct insn {
	uint8_t len_bytes;
	uint8_t kind; /* enum insn_kind */
	uint8_t condition; /* of a branch: the lower four bits of its opcode */
	uint8_t disp_at; /* RELATIVE: where its displacement of 4 bytes is */
	bool is_near_jump; /* with a displacement of one byte, in disp */
	int32_t disp; /* RELATIVE, BRANCH too: counted from its end */
	bool sets_eax; /* to imm, as a constant */
	uint32_t imm;
};

/* False when it is none that we know, or goes on behind the bytes. */
bool decode_insn(const uint8_t *bytes, size_t len, struct insn *ret);

#endif
