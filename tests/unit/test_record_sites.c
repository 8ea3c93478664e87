/* SPDX-License-Identifier: MIT */
/* Sites in files that are made for it: wherever a syscall or a jump stands, it is found. */
#include <elf.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "record/agent/sites.h"

#define TEXT_AT 0x1000u
#define TEXT_BYTES 257u /* no multiple of what is looked at in one go */
#define UNWIND_AT 0x400u
#define COMMON_AT 0x500u
#define ENTRY_AT 0x540u

/* mov %rdi, %rdx; xor %eax, %eax; syscall; ret: the first two make the window. */
static const uint8_t function[] = { 0x48, 0x89, 0xfa, 0x31, 0xc0, 0x0f, 0x05, 0xc3 };
#define WINDOW_BYTES 5u
#define SECOND_INSN 3u /* from its begin */

struct made_file {
	uint8_t bytes[TEXT_AT + TEXT_BYTES];
};

static void put32(struct made_file *f, size_t at, uint32_t v)
{
	memcpy(f->bytes + at, &v, sizeof(v));
}

static void put_headers(struct made_file *f)
{
	Elf64_Ehdr e = { .e_machine = EM_X86_64,
			 .e_phoff = sizeof(e),
			 .e_phentsize = sizeof(Elf64_Phdr),
			 .e_phnum = 3 };
	Elf64_Phdr ph[] = {
		{ .p_type = PT_LOAD, .p_flags = PF_R, .p_filesz = TEXT_AT },
		{ .p_type = PT_LOAD,
		  .p_flags = PF_R | PF_X,
		  .p_offset = TEXT_AT,
		  .p_vaddr = TEXT_AT,
		  .p_filesz = TEXT_BYTES },
		{ .p_type = PT_GNU_EH_FRAME, .p_flags = PF_R, .p_vaddr = UNWIND_AT },
	};

	memcpy(e.e_ident, ELFMAG, SELFMAG);
	e.e_ident[EI_CLASS] = ELFCLASS64;
	memcpy(f->bytes, &e, sizeof(e));
	memcpy(f->bytes + sizeof(e), ph, sizeof(ph));
}

/* A file with that function at an offset of its text, and nothing else but padding. */
static void make_file(struct made_file *f, unsigned int at)
{
	*f = (struct made_file){ .bytes = { 0 } };
	put_headers(f);
	memcpy(f->bytes + UNWIND_AT, "\x01\x1b\x03\x3b", 4);
	put32(f, UNWIND_AT + 8, 1);
	put32(f, UNWIND_AT + 12, TEXT_AT + at - UNWIND_AT);
	put32(f, UNWIND_AT + 16, ENTRY_AT - UNWIND_AT);
	put32(f, COMMON_AT, 20);
	memcpy(f->bytes + COMMON_AT + 8, "\x01zR", 4);
	put32(f, ENTRY_AT, 20);
	put32(f, ENTRY_AT + 4, ENTRY_AT + 4 - COMMON_AT);
	put32(f, ENTRY_AT + 8, TEXT_AT + at - (ENTRY_AT + 8));
	put32(f, ENTRY_AT + 12, sizeof(function));
	memset(f->bytes + TEXT_AT, 0x90, TEXT_BYTES);
	memcpy(f->bytes + TEXT_AT + at, function, sizeof(function));
}

static void expect_sites(const struct made_file *f, size_t nr, uint64_t nr_left)
{
	struct sites s;

	sites_find(f->bytes, sizeof(f->bytes), &s);
	assert_int_equal(s.list.len, nr);
	assert_int_equal(s.nr_left, nr_left);
	sites_release(&s);
}

static void finds_it_anywhere(void **state)
{
	struct made_file *f = malloc(sizeof(*f));
	unsigned int at;

	(void)state;
	assert_non_null(f);
	for (at = 0; at + sizeof(function) <= TEXT_BYTES; at++) {
		struct sites s;

		make_file(f, at);
		sites_find(f->bytes, sizeof(f->bytes), &s);
		assert_int_equal(s.list.len, 1);
		assert_int_equal(s.list.items[0].syscall, TEXT_AT + at + WINDOW_BYTES);
		assert_int_equal(s.list.items[0].nr_insns, 2);
		assert_int_equal(s.list.items[0].nr, 0);
		sites_release(&s);
	}
	free(f);
}

/* The opcode at that offset of the text, leading to an offset. */
static void put_jump(struct made_file *f, unsigned int at, uint8_t opcode, unsigned int to)
{
	f->bytes[TEXT_AT + at] = opcode;
	put32(f, TEXT_AT + at + 1, to - (at + 5));
}

#define FUNCTION_AT 120u

static void check_jump(struct made_file *f, unsigned int at, uint8_t opcode, bool is_long,
		       bool leads_inside)
{
	make_file(f, FUNCTION_AT);
	if (opcode >> 4 == 8 && is_long)
		f->bytes[TEXT_AT + at - 1] = 0x0f;
	put_jump(f, at, opcode, FUNCTION_AT + (leads_inside ? SECOND_INSN : 0));
	expect_sites(f, !(is_long && leads_inside), is_long && leads_inside);
}

static void minds_jumps_from_anywhere(void **state)
{
	static const uint8_t opcodes[] = { 0xe8, 0xe9, 0x80, 0x84, 0x8f };
	struct made_file *f = malloc(sizeof(*f));
	unsigned int at, i;

	(void)state;
	assert_non_null(f);
	for (i = 0; i < sizeof(opcodes); i++) {
		bool is_pair = opcodes[i] >> 4 == 8;

		for (at = is_pair; at + 5 <= TEXT_BYTES; at++) {
			if (at + 5 > FUNCTION_AT && at < FUNCTION_AT + sizeof(function) + 1)
				continue;
			check_jump(f, at, opcodes[i], true, true);
			check_jump(f, at, opcodes[i], true, false);
			if (is_pair)
				check_jump(f, at, opcodes[i], false, true);
		}
	}
	/* Without room for its displacement it is none. */
	make_file(f, FUNCTION_AT);
	f->bytes[TEXT_AT + TEXT_BYTES - 4] = 0xe8;
	expect_sites(f, 1, 0);
	free(f);
}

/* What cannot be read at all may make calls from anywhere, if it has such bytes. */
static void says_when_it_is_blind(void **state)
{
	uint8_t bytes[67] = { 0 };
	struct sites s;
	size_t at, len;

	(void)state;
	for (len = 2; len <= sizeof(bytes); len++) {
		for (at = 0; at + 2 <= len; at++) {
			memset(bytes, 0, sizeof(bytes));
			memcpy(bytes + at, "\x0f\x05", 2);
			sites_find(bytes, len, &s);
			assert_true(s.is_blind);
			bytes[at + 1] = 0x0f;
			sites_find(bytes, len, &s);
			assert_false(s.is_blind);
		}
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_it_anywhere),
		cmocka_unit_test(minds_jumps_from_anywhere),
		cmocka_unit_test(says_when_it_is_blind),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
