/* SPDX-License-Identifier: MIT */
/*
 * The opcode maps as rows of 16 letters, a letter per opcode:
 *
 *   .  nothing follows      m  ModRM           b  1 byte
 *   M  ModRM, 1 byte        Z  ModRM, 4 bytes  z  4 bytes
 *   w  2 bytes              x  unknown, or handled by name
 *
 * 4 bytes are 2 with an operand-size prefix; those of branches are always 4.
 */
#include "record/agent/decode.h"

#include <assert.h>
#include <string.h>

static const char one_byte[] = "mmmmbzxxmmmmbzxx" /* 00 */
			       "mmmmbzxxmmmmbzxx"
			       "mmmmbzxxmmmmbzxx"
			       "mmmmbzxxmmmmbzxx"
			       "xxxxxxxxxxxxxxxx" /* 40: REX */
			       "................"
			       "xxxmxxxxzZbM...." /* 60 */
			       "bbbbbbbbbbbbbbbb"
			       "MZxMmmmmmmmmmmmm" /* 80 */
			       "..........x....."
			       "xxxx....bz......" /* a0 */
			       "bbbbbbbbxxxxxxxx"
			       "MMw.xxMZx.w..bx." /* c0 */
			       "mmmmxxx.mmmmmmmm"
			       "bbbbbbbbzzxb...." /* e0 */
			       "x.xx..mm......mm";

static const char two_byte[] = "mmmmx.....x.xm.x" /* 00 */
			       "mmmmmmmmmmmmmmmm"
			       "mmmmxxxxmmmmmmmm"
			       "......x.xxxxxxxx"
			       "mmmmmmmmmmmmmmmm" /* 40 */
			       "mmmmmmmmmmmmmmmm"
			       "mmmmmmmmmmmmmmmm"
			       "MMMMmmm.mmxxmmmm"
			       "zzzzzzzzzzzzzzzz" /* 80 */
			       "mmmmmmmmmmmmmmmm"
			       "...mMmxx...mMmmm"
			       "mmmmmmmmmxMmmmmm"
			       "mmMmMMMm........" /* c0 */
			       "mmmmmmmmmmmmmmmm"
			       "mmmmmmmmmmmmmmmm"
			       "mmmmmmmmmmmmmmmx";

static_assert(sizeof(one_byte) == 257 && sizeof(two_byte) == 257, "a letter for each");

struct cursor {
	const uint8_t *bytes;
	size_t len, at;
	bool short_operand; /* prefix 66 */
	bool short_address; /* prefix 67 */
	uint8_t rex;
};

static bool take(struct cursor *c, uint8_t *ret)
{
	if (c->at >= c->len || c->at >= DECODE_MAX_BYTES)
		return false;
	*ret = c->bytes[c->at++];
	return true;
}

static bool skip(struct cursor *c, size_t n)
{
	if (c->len - c->at < n || c->at + n > DECODE_MAX_BYTES)
		return false;
	c->at += n;
	return true;
}

static int32_t number_at(const struct cursor *c, size_t at, size_t width)
{
	int32_t v;

	if (width == 1)
		return (int8_t)c->bytes[at];
	memcpy(&v, c->bytes + at, sizeof(v));
	return v;
}

static bool is_prefix(uint8_t b)
{
	return b == 0x66 || b == 0x67 || b == 0xf0 || b == 0xf2 || b == 0xf3 || b == 0x2e ||
	       b == 0x36 || b == 0x3e || b == 0x26 || b == 0x64 || b == 0x65;
}

/* The opcode behind all prefixes. */
static bool take_opcode(struct cursor *c, uint8_t *ret)
{
	while (take(c, ret)) {
		c->short_operand |= *ret == 0x66;
		c->short_address |= *ret == 0x67;
		if (is_prefix(*ret))
			continue;
		if (*ret >> 4 != 4)
			return true;
		c->rex = *ret;
		/* Nothing but the opcode follows it. */
		return take(c, ret) && !is_prefix(*ret) && *ret >> 4 != 4;
	}
	return false;
}

static bool take_modrm(struct cursor *c, uint8_t *ret_modrm, struct insn *ret)
{
	uint8_t m, sib = 0;

	if (!take(c, &m))
		return false;
	*ret_modrm = m;
	if (m >> 6 == 3)
		return true;
	if ((m & 7) == 4 && !take(c, &sib))
		return false;
	if (m >> 6 == 1)
		return skip(c, 1);
	if (m >> 6 == 2)
		return skip(c, 4);
	if ((m & 7) == 5) {
		ret->kind = c->short_address ? INSN_FIXED : INSN_RELATIVE;
		ret->disp_at = (uint8_t)c->at;
		return skip(c, 4);
	}
	return (m & 7) != 4 || (sib & 7) != 5 || skip(c, 4);
}

static bool take_by_letter(struct cursor *c, char letter, uint8_t *ret_modrm, struct insn *ret)
{
	size_t word = c->short_operand ? 2 : 4;

	switch (letter) {
	case '.':
		return true;
	case 'm':
		return take_modrm(c, ret_modrm, ret);
	case 'M':
		return take_modrm(c, ret_modrm, ret) && skip(c, 1);
	case 'Z':
		return take_modrm(c, ret_modrm, ret) && skip(c, word);
	case 'b':
		return skip(c, 1);
	case 'w':
		return skip(c, 2);
	case 'z':
		return skip(c, word);
	}
	return false;
}

/* VEX and EVEX: only the map and the opcode tell of what follows. */
static bool take_vector(struct cursor *c, uint8_t first, struct insn *ret)
{
	uint8_t p[3] = { 0 }, opcode, m;
	unsigned int map = 1, i, nr = first == 0xc5 ? 1 : first == 0xc4 ? 2 : 3;
	bool imm;

	for (i = 0; i < nr; i++) {
		if (!take(c, &p[i]))
			return false;
	}
	if (nr > 1)
		map = p[0] & (nr == 2 ? 0x1f : 7);
	if (!map || map > 6 || map == 4 || !take(c, &opcode))
		return false;
	if (map == 1 && opcode == 0x77 && nr < 3)
		return true; /* vzeroupper, vzeroall */
	imm = map == 3 || (map == 1 && ((opcode >= 0x70 && opcode <= 0x73) || opcode == 0xc2 ||
					(opcode >= 0xc4 && opcode <= 0xc6)));
	return take_modrm(c, &m, ret) && (!imm || skip(c, 1));
}

static bool take_branch(struct cursor *c, uint8_t opcode, size_t width, struct insn *ret)
{
	ret->kind = INSN_BRANCH;
	ret->condition = opcode & 15;
	ret->is_near_jump = width == 1;
	if (!skip(c, width))
		return false;
	ret->disp = number_at(c, c->at - width, width);
	return true;
}

static bool take_two_byte(struct cursor *c, struct insn *ret)
{
	uint8_t opcode, m;

	if (!take(c, &opcode))
		return false;
	switch (opcode) {
	case 0x05:
		ret->kind = INSN_SYSCALL;
		return true;
	case 0x07: /* sysret */
	case 0x0b: /* ud2 */
	case 0x34: /* sysenter */
	case 0x35:
		ret->kind = INSN_FIXED;
		return true;
	case 0x38:
		return take(c, &opcode) && take_modrm(c, &m, ret);
	case 0x3a:
		return take(c, &opcode) && take_modrm(c, &m, ret) && skip(c, 1);
	}
	if (opcode >> 4 == 8)
		return take_branch(c, opcode, 4, ret);
	return take_by_letter(c, two_byte[opcode], &m, ret);
}

/* Instructions that go elsewhere, or say what is in eax; those that are known by their opcode. */
static bool take_named(struct cursor *c, uint8_t opcode, bool *ret_done, struct insn *ret)
{
	size_t width = c->rex & 8 ? 8 : c->short_operand ? 2 : 4;

	*ret_done = true;
	if (opcode == 0x0f)
		return take_two_byte(c, ret);
	if (opcode == 0xc4 || opcode == 0xc5 || opcode == 0x62)
		return !c->rex && take_vector(c, opcode, ret);
	if (opcode >> 4 == 7)
		return take_branch(c, opcode, 1, ret);
	if (opcode >= 0xb8 && opcode <= 0xbf) {
		if (!skip(c, width))
			return false;
		ret->sets_eax = opcode == 0xb8 && width == 4 && !(c->rex & 1);
		if (ret->sets_eax)
			ret->imm = (uint32_t)number_at(c, c->at - 4, 4);
		return true;
	}
	if (opcode >= 0xa0 && opcode <= 0xa3)
		return skip(c, c->short_address ? 4 : 8);
	if (opcode == 0xe8 || opcode == 0xe9) {
		ret->kind = INSN_FIXED;
		return !c->short_operand && skip(c, 4);
	}
	if (opcode == 0xc8)
		return skip(c, 3);
	*ret_done = false;
	return true;
}

static bool goes_elsewhere(uint8_t opcode)
{
	return (opcode >= 0xe0 && opcode <= 0xe3) || opcode == 0xeb || opcode == 0xc2 ||
	       opcode == 0xc3 || (opcode >= 0xca && opcode <= 0xcf) || opcode == 0xf1 ||
	       opcode == 0xf4;
}

bool decode_insn(const uint8_t *bytes, size_t len, struct insn *ret)
{
	struct cursor c = { .bytes = bytes, .len = len };
	struct insn insn = { .kind = INSN_PLAIN };
	uint8_t opcode, m = 0;
	bool done;

	if (!take_opcode(&c, &opcode) || !take_named(&c, opcode, &done, &insn))
		return false;
	if (!done && !take_by_letter(&c, one_byte[opcode], &m, &insn))
		return false;
	if (!done && goes_elsewhere(opcode))
		insn.kind = INSN_FIXED;
	if (!done && ((opcode >= 0xe0 && opcode <= 0xe3) || opcode == 0xeb)) {
		insn.is_near_jump = true;
		insn.disp = number_at(&c, c.at - 1, 1);
	}
	/* test has an operand where its neighbours have none. */
	if (opcode == 0xf6 && !(m & 0x30) && !skip(&c, 1))
		return false;
	if (opcode == 0xf7 && !(m & 0x30) && !skip(&c, c.short_operand ? 2 : 4))
		return false;
	if (opcode == 0xff && (m >> 3 & 7) >= 2 && (m >> 3 & 7) <= 5)
		insn.kind = (m >> 3 & 6) == 4 ? INSN_JUMP_ANYWHERE : INSN_FIXED;
	if ((opcode == 0x31 || opcode == 0x33) && m == 0xc0 && !(c.rex & 5) && !c.short_operand) {
		insn.sets_eax = true;
		insn.imm = 0;
	}
	if (insn.kind == INSN_RELATIVE)
		insn.disp = number_at(&c, insn.disp_at, 4);
	insn.len_bytes = (uint8_t)c.at;
	*ret = insn;
	return true;
}
