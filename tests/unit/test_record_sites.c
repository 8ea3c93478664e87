/* SPDX-License-Identifier: MIT */
/* Sites: in files that are made for it, where whatever stands anywhere is found, and in real ones. */
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "record/agent/inside.h"
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

/* The C library that we run with, and what else files may hold. */

static const struct {
	const char *bytes;
	uint8_t len;
	enum insn_kind kind;
} insns[] = {
	{ "\x0f\x05", 2, INSN_SYSCALL },
	{ "\xb8\x01\x00\x00\x00", 5, INSN_PLAIN },
	{ "\x48\xb8\x01\x02\x03\x04\x05\x06\x07\x08", 10, INSN_PLAIN },
	{ "\x66\xb8\x01\x02", 4, INSN_PLAIN },
	{ "\x31\xc0", 2, INSN_PLAIN },
	{ "\x48\x8b\x44\x24\x08", 5, INSN_PLAIN }, /* mov 8(%rsp), %rax */
	{ "\x8b\x04\x25\x00\x00\x00\x00", 7, INSN_PLAIN }, /* mov 0, %eax */
	{ "\x80\x3d\x31\x33\x0e\x00\x00", 7, INSN_RELATIVE }, /* cmpb $0, x(%rip) */
	{ "\x48\x8d\x0d\x00\x00\x00\x00", 7, INSN_RELATIVE },
	{ "\x74\x17", 2, INSN_BRANCH },
	{ "\x0f\x84\x00\x01\x00\x00", 6, INSN_BRANCH },
	{ "\xeb\xfe", 2, INSN_FIXED },
	{ "\xe8\x00\x00\x00\x00", 5, INSN_FIXED },
	{ "\xc3", 1, INSN_FIXED },
	{ "\xff\xe0", 2, INSN_JUMP_ANYWHERE },
	{ "\x3e\xff\xe0", 3, INSN_JUMP_ANYWHERE },
	{ "\xff\xd0", 2, INSN_FIXED },
	{ "\xf6\xc1\x01", 3, INSN_PLAIN }, /* test $1, %cl */
	{ "\xf7\xd8", 2, INSN_PLAIN }, /* neg %eax */
	{ "\xf7\xc1\x01\x00\x00\x00", 6, INSN_PLAIN },
	{ "\x64\x48\x8b\x04\x25\x28\x00\x00\x00", 9, INSN_PLAIN },
	{ "\xf3\x0f\x1e\xfa", 4, INSN_PLAIN }, /* endbr64 */
	{ "\x66\x0f\x1f\x44\x00\x00", 6, INSN_PLAIN },
	{ "\xc5\xf8\x77", 3, INSN_PLAIN }, /* vzeroupper */
	{ "\xc5\xfa\x6f\x06", 4, INSN_PLAIN },
	{ "\xc4\xe3\x7d\x39\xc1\x01", 6, INSN_PLAIN }, /* vextracti128 */
	{ "\x62\xf1\x7c\x48\x10\x06", 6, INSN_PLAIN }, /* vmovups (%rsi), %zmm0 */
	{ "\x66\x0f\x3a\x0f\xc1\x08", 6, INSN_PLAIN }, /* palignr */
	{ "\x0f\xc7\x0f", 3, INSN_PLAIN }, /* cmpxchg8b */
	{ "\x48\x0f\xba\xe0\x05", 5, INSN_PLAIN }, /* bt $5, %rax */
};

static void decodes(void **state)
{
	size_t i, n;

	(void)state;
	for (i = 0; i < sizeof(insns) / sizeof(insns[0]); i++) {
		const uint8_t *bytes = (const uint8_t *)insns[i].bytes;
		struct insn insn;

		if (!decode_insn(bytes, insns[i].len, &insn) || insn.kind != insns[i].kind ||
		    insn.len_bytes != insns[i].len)
			fail_msg("instruction %zu", i);
		for (n = 0; n < insns[i].len; n++) {
			if (decode_insn(bytes, n, &insn) && insn.len_bytes > n)
				fail_msg("instruction %zu goes on behind %zu bytes", i, n);
		}
	}
}

static void knows_what_is_in_eax(void **state)
{
	struct insn insn;

	(void)state;
	assert_true(decode_insn((const uint8_t *)"\xb8\x11\x00\x00\x00", 5, &insn));
	assert_true(insn.sets_eax);
	assert_int_equal(insn.imm, 0x11);
	assert_true(decode_insn((const uint8_t *)"\x31\xc0", 2, &insn));
	assert_true(insn.sets_eax);
	assert_int_equal(insn.imm, 0);
	assert_true(decode_insn((const uint8_t *)"\x45\x31\xc0", 3, &insn)); /* r8d */
	assert_false(insn.sets_eax);
	assert_true(decode_insn((const uint8_t *)"\x41\xb8\x11\x00\x00\x00", 6, &insn));
	assert_false(insn.sets_eax);
}

struct file {
	uint8_t *bytes;
	size_t len;
};

static int open_libc(struct dl_phdr_info *info, size_t size, void *of)
{
	struct file *f = of;
	struct stat st;
	int fd;

	(void)size;
	if (!strstr(info->dlpi_name, "libc.so") && !strstr(info->dlpi_name, "ld-musl"))
		return 0;
	fd = open(info->dlpi_name, O_RDONLY | O_CLOEXEC);
	if (fd < 0 || fstat(fd, &st) < 0)
		return 0;
	f->len = (size_t)st.st_size;
	f->bytes = mmap(NULL, f->len, PROT_READ | PROT_WRITE, MAP_PRIVATE, fd, 0);
	(void)close(fd);
	if (f->bytes == MAP_FAILED)
		f->bytes = NULL;
	return 1;
}

/* Where the moved window leads is where it led before. */
static void check_stub(const struct site *s)
{
	uint8_t stub[SITE_STUB_MAX_BYTES];
	uint64_t syscall = 0x7f0000000000 + s->syscall, at = 0x7f0040000000;
	uint64_t from = syscall - s->window_bytes + s->pad_bytes, to = at;
	size_t len = site_put_stub(s, syscall, at, 0x70000000, stub), n = 0;
	unsigned int i;

	assert_true(len && len <= sizeof(stub));
	for (i = 0; i < s->nr_insns; i++) {
		struct insn moved;

		assert_true(decode_insn(stub + n, len - n, &moved));
		from += s->insns[i].len_bytes;
		to += moved.len_bytes;
		n += moved.len_bytes;
		assert_int_equal(moved.kind, s->insns[i].kind);
		if (moved.kind != INSN_PLAIN)
			assert_int_equal(to + (uint64_t)(int64_t)moved.disp,
					 from + (uint64_t)(int64_t)s->insns[i].disp);
	}
	assert_int_equal(len - n, 16);
}

/* From the first instruction behind the padding back to where the jump is. */
static void check_hop(const struct site *s)
{
	uint8_t hop[SITE_HOP_BYTES];
	struct insn insn;

	assert_int_equal(s->pad_bytes, SITE_JUMP_BYTES);
	assert_true(s->window_bytes - s->pad_bytes >= SITE_HOP_BYTES);
	site_put_hop(hop);
	assert_true(decode_insn(hop, sizeof(hop), &insn));
	assert_int_equal(insn.len_bytes, sizeof(hop));
	assert_true(insn.is_near_jump);
	assert_int_equal(insn.disp + (int)sizeof(hop) + s->pad_bytes, 0);
}

static void finds_sites(void **state)
{
	struct file f = { 0 };
	struct sites s;
	bool has_read = false;
	size_t i;

	(void)state;
	(void)dl_iterate_phdr(open_libc, &f);
	if (!f.bytes)
		skip();
	sites_find(f.bytes, f.len, &s);
	assert_true(s.list.len > 100);
	for (i = 0; i < s.list.len; i++) {
		const struct site *site = &s.list.items[i];

		assert_memory_equal(f.bytes + site->syscall, "\x0f\x05", 2);
		assert_memory_equal(f.bytes + site->window, site->bytes, site->window_bytes);
		assert_int_equal(site->window + site->window_bytes, site->syscall);
		assert_true(site->window_bytes >= SITE_JUMP_BYTES);
		if (site->pad_bytes)
			check_hop(site);
		assert_true(site->nr != 15); /* rt_sigreturn */
		if (i)
			assert_true(site->window >= s.list.items[i - 1].syscall + 2);
		has_read |= site->nr == 0;
		check_stub(site);
	}
	assert_true(has_read);
	sites_release(&s);
	(void)munmap(f.bytes, f.len);
}

static void takes_no_jump_too_far(void **state)
{
	struct site s = { .nr_insns = 1, .window_bytes = 5, .bytes = "\xb8\x01" };
	uint8_t stub[SITE_STUB_MAX_BYTES], jump[SITE_JUMP_BYTES];

	(void)state;
	assert_true(decode_insn(s.bytes, 5, &s.insns[0]));
	assert_int_equal(site_put_stub(&s, 0x400000, 0x500000, 0x70000000, stub), 21);
	assert_int_equal(site_put_stub(&s, 0x400000, 0x7f0000500000, 0x70000000, stub), 0);
	assert_true(site_put_jump(0x400000, 0x500000, jump));
	assert_false(site_put_jump(0x400000, 0x7f0000500000, jump));
}

/* Any file may be mapped as a text. */
static void survives_any_file(void **state)
{
	struct file f = { 0 };
	unsigned int i, seed = 1;
	struct sites s;

	(void)state;
	(void)dl_iterate_phdr(open_libc, &f);
	if (!f.bytes)
		skip();
	for (i = 0; i < 64; i++) {
		sites_find(f.bytes, i * 97, &s);
		sites_release(&s);
	}
	for (i = 0; i < 16; i++) {
		unsigned int k;

		for (k = 0; k < 64; k++) {
			seed = seed * 1103515245 + 12345;
			f.bytes[(seed >> 8) % (k < 8 ? 0x400 : f.len)] = (uint8_t)(seed >> 3);
		}
		sites_find(f.bytes, f.len - i * 4096, &s);
		sites_release(&s);
	}
	(void)munmap(f.bytes, f.len);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(finds_it_anywhere),
		cmocka_unit_test(minds_jumps_from_anywhere),
		cmocka_unit_test(says_when_it_is_blind),
		cmocka_unit_test(decodes),
		cmocka_unit_test(knows_what_is_in_eax),
		cmocka_unit_test(finds_sites),
		cmocka_unit_test(takes_no_jump_too_far),
		cmocka_unit_test(survives_any_file),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
