/* SPDX-License-Identifier: MIT */
#include "record/agent/sites.h"

#include <elf.h>
#include <emmintrin.h>
#include <stdlib.h>
#include <string.h>

#include "base/mem.h"

#define SEGMENTS_MAX 16
#define FUNCTION_MAX_BYTES ((uint64_t)1 << 20)

struct segment {
	uint64_t vaddr, offset, len;
	bool is_text;
};

struct image {
	const uint8_t *file;
	size_t len;
	struct segment segments[SEGMENTS_MAX];
	unsigned int nr_segments;
	const uint8_t *table; /* of the unwind header: pairs of function and entry, by function */
	uint64_t nr_functions;
	uint64_t table_vaddr; /* what its numbers are relative to */
	struct sites *found;
};

/* The bytes at an address of the image, at least want of them; NULL when there are none. */
static const uint8_t *at_vaddr(const struct image *im, uint64_t vaddr, uint64_t want,
			       const struct segment **ret_segment)
{
	unsigned int i;

	for (i = 0; i < im->nr_segments; i++) {
		const struct segment *s = &im->segments[i];

		if (vaddr < s->vaddr || vaddr - s->vaddr > s->len ||
		    s->len - (vaddr - s->vaddr) < want)
			continue;
		if (ret_segment)
			*ret_segment = s;
		return im->file + s->offset + (vaddr - s->vaddr);
	}
	return NULL;
}

static int32_t number(const uint8_t *p)
{
	int32_t v;

	memcpy(&v, p, sizeof(v));
	return v;
}

/* The header of the unwind table, with the encodings that all linkers use. */
static bool read_unwind_header(struct image *im, uint64_t vaddr)
{
	static const uint8_t usual[] = { 1, 0x1b, 0x03, 0x3b };
	const uint8_t *p = at_vaddr(im, vaddr, 12, NULL);

	if (!p || memcmp(p, usual, sizeof(usual)))
		return false;
	im->nr_functions = (uint32_t)number(p + 8);
	im->table_vaddr = vaddr;
	im->table = at_vaddr(im, vaddr + 12, im->nr_functions * 8, NULL);
	return im->table != NULL;
}

static bool read_headers(struct image *im)
{
	Elf64_Ehdr e;
	Elf64_Phdr ph;
	uint64_t unwind = 0;
	unsigned int i;

	if (im->len < sizeof(e))
		return false;
	memcpy(&e, im->file, sizeof(e));
	if (memcmp(e.e_ident, ELFMAG, SELFMAG) || e.e_ident[EI_CLASS] != ELFCLASS64 ||
	    e.e_machine != EM_X86_64 || e.e_phentsize != sizeof(ph) || e.e_phoff > im->len ||
	    (im->len - e.e_phoff) / sizeof(ph) < e.e_phnum)
		return false;
	for (i = 0; i < e.e_phnum; i++) {
		memcpy(&ph, im->file + e.e_phoff + i * sizeof(ph), sizeof(ph));
		if (ph.p_type == PT_GNU_EH_FRAME)
			unwind = ph.p_vaddr;
		if (ph.p_type != PT_LOAD || im->nr_segments == SEGMENTS_MAX ||
		    ph.p_offset > im->len || im->len - ph.p_offset < ph.p_filesz)
			continue;
		im->segments[im->nr_segments++] = (struct segment){
			.vaddr = ph.p_vaddr,
			.offset = ph.p_offset,
			.len = ph.p_filesz,
			.is_text = ph.p_flags & PF_X,
		};
	}
	return unwind && read_unwind_header(im, unwind);
}

static uint64_t function_at(const struct image *im, uint64_t i)
{
	return im->table_vaddr + (uint64_t)(int64_t)number(im->table + i * 8);
}

/*
 * Code that signal handlers return to: its entry begins before it, and unwinders
 * know it by its bytes.
 */
static bool is_signal_return(const struct image *im, const uint8_t *entry)
{
	uint64_t at = (uint64_t)(entry - im->file), back;
	const uint8_t *common;

	back = (uint32_t)number(entry + 4);
	if (back > at + 4)
		return true;
	common = im->file + (at + 4 - back);
	if ((size_t)(im->file + im->len - common) < 16)
		return true;
	return memchr(common + 9, 'S', strnlen((const char *)common + 9, 7)) != NULL;
}

/* The function that holds the address: the last that does not begin behind it. */
static bool find_function(const struct image *im, uint64_t vaddr, uint64_t *ret_start,
			  uint64_t *ret_end)
{
	uint64_t low = 0, high = im->nr_functions;
	const uint8_t *entry;
	uint32_t entry_len, range;

	while (low < high) {
		uint64_t middle = low + (high - low) / 2;

		if (function_at(im, middle) <= vaddr)
			low = middle + 1;
		else
			high = middle;
	}
	if (!low)
		return false;
	*ret_start = function_at(im, low - 1);
	/* Its entry has its length behind the relative address of its begin. */
	entry = at_vaddr(im, im->table_vaddr + (uint64_t)(int64_t)number(im->table + low * 8 - 4),
			 16, NULL);
	if (!entry)
		return false;
	if (is_signal_return(im, entry))
		return false;
	memcpy(&entry_len, entry, sizeof(entry_len));
	memcpy(&range, entry + 12, sizeof(range));
	if (entry_len == UINT32_MAX || entry_len < 12 || range > FUNCTION_MAX_BYTES)
		return false;
	*ret_end = *ret_start + range;
	return vaddr < *ret_end;
}

/*
 * Calls that make threads stand right behind what the table has of their function: in the
 * child no unwinder may find its way back from there.
 */
#define TAIL_BYTES 32

static bool find_function_with_tail(const struct image *im, uint64_t vaddr, uint64_t *ret_start,
				    uint64_t *ret_end, bool *ret_is_tail)
{
	uint64_t start, end = 0, next_start, next_end;

	*ret_is_tail = false;
	if (find_function(im, vaddr, ret_start, ret_end))
		return true;
	if (vaddr < TAIL_BYTES || !find_function(im, vaddr - TAIL_BYTES, &start, &end))
		return false;
	while (end < vaddr && find_function(im, end, &next_start, &next_end)) {
		start = next_start;
		end = next_end;
	}
	if (end > vaddr || find_function(im, vaddr + 1, &next_start, &next_end))
		return false;
	*ret_start = start;
	*ret_end = vaddr + 2;
	*ret_is_tail = true;
	return true;
}

/* The last instructions before the one that is looked at. */
struct history {
	struct insn insns[SITE_INSNS_MAX];
	unsigned int nr;
};

static void remember(struct history *h, const struct insn *insn)
{
	if (h->nr == SITE_INSNS_MAX) {
		memmove(h->insns, h->insns + 1, (SITE_INSNS_MAX - 1) * sizeof(*h->insns));
		h->nr--;
	}
	h->insns[h->nr++] = *insn;
}

static bool may_move(const struct insn *insn)
{
	return insn->kind == INSN_PLAIN || insn->kind == INSN_RELATIVE || insn->kind == INSN_BRANCH;
}

/* A number that was set right before the call; further up another way may lead here. */
static void set_nr(struct site *s)
{
	const struct insn *last = &s->insns[s->nr_insns - 1];

	s->nr = last->sets_eax ? last->imm : SITE_NR_UNKNOWN;
}

static void set_window(const struct history *h, unsigned int n, struct site *s)
{
	unsigned int i;

	s->nr_insns = (uint8_t)n;
	for (i = 0; i < n; i++)
		s->insns[i] = h->insns[h->nr - n + i];
	set_nr(s);
}

/* The fewest of the last instructions that a jump fits over. */
static bool choose_window(const struct history *h, struct site *s)
{
	unsigned int bytes = 0, n = 0;

	while (bytes < SITE_JUMP_BYTES && n < h->nr) {
		const struct insn *insn = &h->insns[h->nr - 1 - n];

		if (!may_move(insn))
			return false;
		bytes += insn->len_bytes;
		n++;
	}
	if (bytes < SITE_JUMP_BYTES || bytes > SITE_WINDOW_MAX_BYTES)
		return false;
	s->window_bytes = (uint8_t)bytes;
	set_window(h, n, s);
	return true;
}

static bool is_nop(const uint8_t *p, uint64_t len)
{
	uint64_t i = 0;

	while (i + 2 < len && (p[i] == 0x66 || p[i] == 0x2e))
		i++;
	return p[i] == 0x90 || (i + 2 < len && p[i] == 0x0f && p[i + 1] == 0x1f);
}

#define PADDING_MAX_BYTES 15u

/* Whether what ends there, behind no function, is padding that a jump fits over. */
static bool has_padding(const struct image *im, uint64_t vaddr)
{
	uint64_t len, at, start, end;
	struct insn insn;

	for (at = 1; at <= SITE_JUMP_BYTES; at++) {
		if (vaddr < at || find_function(im, vaddr - at, &start, &end))
			return false;
	}
	for (len = SITE_JUMP_BYTES; len <= PADDING_MAX_BYTES && len <= vaddr; len++) {
		const uint8_t *code = at_vaddr(im, vaddr - len, len, NULL);

		for (at = 0; code && at < len && is_nop(code + at, len - at) &&
			     decode_insn(code + at, len - at, &insn);)
			at += insn.len_bytes;
		if (code && at == len)
			return true;
	}
	return false;
}

/* All of a function that begins with few bytes before the call, and the padding before it. */
static bool choose_padded(const struct image *im, uint64_t start, uint64_t vaddr,
			  const struct history *h, struct site *s)
{
	uint64_t bytes = vaddr - start;
	unsigned int i;

	if (bytes < SITE_HOP_BYTES || bytes >= SITE_JUMP_BYTES || !has_padding(im, start))
		return false;
	for (i = 0; i < h->nr; i++) {
		if (!may_move(&h->insns[i]))
			return false;
	}
	s->pad_bytes = SITE_JUMP_BYTES;
	s->window_bytes = (uint8_t)(SITE_JUMP_BYTES + bytes);
	set_window(h, h->nr, s);
	return true;
}

/* Decodes a function up to the address; false when that is at no instruction's begin. */
static bool decode_up_to(const uint8_t *code, uint64_t len, uint64_t upto, struct history *h)
{
	uint64_t at = 0;
	struct insn insn;

	while (at < upto) {
		if (!decode_insn(code + at, len - at, &insn))
			return false;
		remember(h, &insn);
		at += insn.len_bytes;
	}
	return at == upto && decode_insn(code + at, len - at, &insn) && insn.kind == INSN_SYSCALL;
}

static bool is_inside(const struct site *s, uint64_t offset)
{
	uint64_t at = s->window + s->pad_bytes;
	unsigned int i;

	for (i = 0; i + 1 < s->nr_insns; i++) {
		at += s->insns[i].len_bytes;
		if (at == offset)
			return true;
	}
	return false;
}

/* Whether a function has a jump into the midst of the window, or to nobody knows where. */
static bool may_lead_inside(const uint8_t *code, uint64_t len, uint64_t offset,
			    const struct site *s)
{
	struct insn insn;
	uint64_t at = 0;

	while (at < len) {
		if (!decode_insn(code + at, len - at, &insn) || insn.kind == INSN_JUMP_ANYWHERE)
			return true; /* or so we must assume */
		at += insn.len_bytes;
		if (insn.is_near_jump && is_inside(s, offset + at + (uint64_t)(int64_t)insn.disp))
			return true;
	}
	return false;
}

#define NEAR_BYTES 160

/* All functions from which a short jump could reach the window. */
static bool is_free_of_near_jumps(const struct image *im, const struct segment *seg, uint64_t vaddr,
				  const struct site *s)
{
	uint64_t i, start, end;

	for (i = 0; i < 2 * NEAR_BYTES; i++) {
		const uint8_t *code;

		if (!find_function(im, vaddr - NEAR_BYTES + i, &start, &end))
			continue; /* padding */
		code = at_vaddr(im, start, end - start, NULL);
		if (!code ||
		    may_lead_inside(code, end - start, seg->offset + (start - seg->vaddr), s))
			return false;
		if (end > vaddr - NEAR_BYTES + i)
			i = end - (vaddr - NEAR_BYTES) - 1;
	}
	return true;
}

/* False: calls are made there, but it is no site. */
static bool look_at(struct image *im, uint64_t vaddr)
{
	struct history h = { .nr = 0 };
	const struct segment *seg;
	const uint8_t *code;
	uint64_t start, end;
	struct site s = { 0 }, *last;
	bool is_tail;

	if (!find_function_with_tail(im, vaddr, &start, &end, &is_tail))
		return true; /* nobody knows */
	code = at_vaddr(im, start, end - start, &seg);
	if (!code || !seg->is_text || !decode_up_to(code, end - start, vaddr - start, &h))
		return true; /* a part of something else */
	/* Behind a function only the instruction is certain that sets the number. */
	if (!choose_window(&h, &s) && (is_tail || !choose_padded(im, start, vaddr, &h, &s)))
		return false;
	if (is_tail && (s.nr_insns > 1 || s.nr == SITE_NR_UNKNOWN))
		return false;
	s.syscall = seg->offset + (vaddr - seg->vaddr);
	s.window = s.syscall - s.window_bytes;
	if (s.nr_insns > 1 && !is_free_of_near_jumps(im, seg, vaddr, &s))
		return false;
	last = im->found->list.len ? &im->found->list.items[im->found->list.len - 1] : NULL;
	if (last && s.window < last->syscall + 2)
		return false; /* between two calls there is no room */
	memcpy(s.bytes, im->file + s.window, s.window_bytes);
	VEC_PUSH(&im->found->list, s);
	return true;
}

static int compare_window(const void *key, const void *item)
{
	const uint64_t *at = key;
	const struct site *s = item;

	if (*at <= s->window)
		return -1;
	return *at < s->syscall ? 0 : 1;
}

/* A jump to there leads into the midst of a window: then that cannot be moved. */
static void forbid(struct image *im, uint64_t target)
{
	struct site *s = bsearch(&target, im->found->list.items, im->found->list.len, sizeof(*s),
				 compare_window);

	if (s && is_inside(s, target))
		s->nr_insns = 0; /* dropped below */
}

/* A bit for each stretch of 16 bytes that has a part of a long window, modulo the size of the set. */
struct window_set {
	uint64_t bits[1024];
};

static bool may_be_in(const struct window_set *set, uint64_t at)
{
	return set->bits[at / 1024 % 1024] >> at / 16 % 64 & 1;
}

static void note_windows(const struct sites *s, struct window_set *ret)
{
	size_t i;
	uint64_t at;

	*ret = (struct window_set){ { 0 } };
	for (i = 0; i < s->list.len; i++) {
		for (at = s->list.items[i].window; at < s->list.items[i].syscall; at++) {
			if (s->list.items[i].nr_insns > 1)
				ret->bits[at / 1024 % 1024] |= UINT64_C(1) << at / 16 % 64;
		}
	}
}

/* Texts are large: they are looked at so many bytes at a time. */
#define AT_ONCE_BYTES 16u

static __m128i load(const uint8_t *p)
{
	return _mm_loadu_si128((const __m128i *)(const void *)p);
}

static __m128i are(__m128i bytes, uint8_t mask, uint8_t value)
{
	return _mm_cmpeq_epi8(_mm_and_si128(bytes, _mm_set1_epi8((char)mask)),
			      _mm_set1_epi8((char)value));
}

/* A bit for each of the bytes that can be the opcode of a long jump: e8, e9, and 80 to 8f behind 0f. */
static uint32_t long_jumps(const uint8_t *p)
{
	__m128i now = load(p), before = load(p - 1);
	__m128i found = _mm_or_si128(are(now, 0xfe, 0xe8),
				     _mm_and_si128(are(now, 0xf0, 0x80), are(before, 0xff, 0x0f)));

	return (uint32_t)_mm_movemask_epi8(found);
}

static void forbid_target(struct image *im, const struct segment *seg, uint64_t opcode,
			  const struct window_set *set)
{
	uint64_t target = seg->offset + opcode + 5 +
			  (uint64_t)(int64_t)number(im->file + seg->offset + opcode + 1);

	if (may_be_in(set, target))
		forbid(im, target);
}

/* Whatever can be read as a long jump, at any byte of the text, counts as one. */
static void forbid_targets(struct image *im, const struct segment *seg)
{
	const uint8_t *p = im->file + seg->offset;
	struct window_set set;
	uint64_t i = 1;
	uint32_t jumps;

	note_windows(im->found, &set);
	/* The first byte has none before it that it could belong to. */
	if (seg->len >= 5 && (p[0] & 0xfe) == 0xe8)
		forbid_target(im, seg, 0, &set);
	for (; i + AT_ONCE_BYTES + 4 <= seg->len; i += AT_ONCE_BYTES) {
		for (jumps = long_jumps(p + i); jumps; jumps &= jumps - 1)
			forbid_target(im, seg, i + (uint64_t)__builtin_ctz(jumps), &set);
	}
	for (; i + 5 <= seg->len; i++) {
		if ((p[i] & 0xfe) == 0xe8 || (p[i] >> 4 == 8 && p[i - 1] == 0x0f))
			forbid_target(im, seg, i, &set);
	}
}

static void drop_forbidden(struct sites *s)
{
	size_t i, n = 0;

	for (i = 0; i < s->list.len; i++) {
		if (s->list.items[i].nr_insns)
			s->list.items[n++] = s->list.items[i];
	}
	s->nr_left += s->list.len - n;
	s->list.len = n;
}

static bool has_long_windows(const struct sites *s)
{
	size_t i;

	for (i = 0; i < s->list.len; i++) {
		if (s->list.items[i].nr_insns > 1)
			return true;
	}
	return false;
}

/* The next bytes of a syscall instruction; NULL: there are none. */
static const uint8_t *next_syscall(const uint8_t *p, const uint8_t *end)
{
	for (; end - p > (ptrdiff_t)AT_ONCE_BYTES; p += AT_ONCE_BYTES) {
		__m128i both =
			_mm_and_si128(are(load(p), 0xff, 0x0f), are(load(p + 1), 0xff, 0x05));
		int found = _mm_movemask_epi8(both);

		if (found)
			return p + __builtin_ctz((unsigned int)found);
	}
	for (; end - p > 1; p++) {
		if (p[0] == 0x0f && p[1] == 0x05)
			return p;
	}
	return NULL;
}

void sites_find(const uint8_t *file, size_t len, struct sites *ret)
{
	struct image im = { .file = file, .len = len, .found = ret };
	unsigned int i;

	*ret = (struct sites){ 0 };
	if (!read_headers(&im)) {
		ret->is_blind = next_syscall(file, file + len) != NULL;
		return;
	}
	for (i = 0; i < im.nr_segments; i++) {
		const struct segment *s = &im.segments[i];
		const uint8_t *p = file + s->offset, *end = p + s->len;

		if (!s->is_text)
			continue;
		while ((p = next_syscall(p, end))) {
			if (!look_at(&im, s->vaddr + (uint64_t)(p - (file + s->offset))))
				ret->nr_left++;
			p += 2;
		}
	}
	for (i = 0; i < im.nr_segments && has_long_windows(ret); i++) {
		if (im.segments[i].is_text)
			forbid_targets(&im, &im.segments[i]);
	}
	drop_forbidden(ret);
}

void sites_release(struct sites *s)
{
	VEC_RELEASE(&s->list);
}

bool site_decode(struct site *s)
{
	size_t at = s->pad_bytes;
	unsigned int i;

	for (i = 0; i < s->nr_insns; i++) {
		struct insn *insn = &s->insns[i];

		if (!decode_insn(s->bytes + at, s->window_bytes - at, insn) || !may_move(insn))
			return false;
		at += insn->len_bytes;
	}
	set_nr(s);
	return at == s->window_bytes;
}

/* Stubs. */

static bool relative(uint64_t from_end, uint64_t to, uint8_t ret[4])
{
	int64_t d = (int64_t)(to - from_end);
	int32_t v = (int32_t)d;

	memcpy(ret, &v, sizeof(v));
	return v == d;
}

/* One instruction of the window, for another place. Returns its length, 0 when that is too far. */
static size_t move_insn(const struct insn *insn, const uint8_t *bytes, uint64_t from, uint64_t to,
			uint8_t *ret)
{
	uint64_t target = from + insn->len_bytes + (uint64_t)(int64_t)insn->disp;

	if (insn->kind == INSN_BRANCH) {
		ret[0] = 0x0f;
		ret[1] = 0x80 | insn->condition;
		return relative(to + 6, target, ret + 2) ? 6 : 0;
	}
	memcpy(ret, bytes, insn->len_bytes);
	if (insn->kind == INSN_RELATIVE &&
	    !relative(to + insn->len_bytes, target, ret + insn->disp_at))
		return 0;
	return insn->len_bytes;
}

/* The end of a stub: lea syscall(%rip), %rcx; mov $agent, %r11d; jmp *%r11 */
static const uint8_t stub_lea[] = { 0x48, 0x8d, 0x0d }, stub_mov[] = { 0x41, 0xbb },
		     stub_jmp[] = { 0x41, 0xff, 0xe3 };

size_t site_put_stub(const struct site *s, uint64_t syscall, uint64_t stub, uint32_t agent,
		     uint8_t ret[SITE_STUB_MAX_BYTES])
{
	uint64_t from = syscall - s->window_bytes + s->pad_bytes;
	const uint8_t *bytes = s->bytes + s->pad_bytes;
	size_t n = 0;
	unsigned int i;

	for (i = 0; i < s->nr_insns; i++) {
		size_t len = move_insn(&s->insns[i], bytes, from, stub + n, ret + n);

		if (!len)
			return 0;
		n += len;
		from += s->insns[i].len_bytes;
		bytes += s->insns[i].len_bytes;
	}
	if (!relative(stub + n + 7, syscall, ret + n + 3))
		return 0;
	memcpy(ret + n, stub_lea, sizeof(stub_lea));
	memcpy(ret + n + 7, stub_mov, sizeof(stub_mov));
	memcpy(ret + n + 9, &agent, sizeof(agent));
	memcpy(ret + n + 13, stub_jmp, sizeof(stub_jmp));
	return n + SITE_STUB_END_BYTES;
}

static bool is_stub_mov(const uint8_t *bytes, uint32_t agent)
{
	return !memcmp(bytes, stub_mov, sizeof(stub_mov)) &&
	       !memcmp(bytes + 2, &agent, sizeof(agent)) &&
	       !memcmp(bytes + 6, stub_jmp, sizeof(stub_jmp));
}

bool site_read_stub_end(const uint8_t bytes[SITE_STUB_END_BYTES], uint64_t at, uint32_t agent,
			uint64_t *ret_syscall)
{
	int32_t far;

	*ret_syscall = 0;
	if (memcmp(bytes, stub_lea, sizeof(stub_lea)) != 0 || !is_stub_mov(bytes + 7, agent))
		return is_stub_mov(bytes, agent) || !memcmp(bytes, stub_jmp, sizeof(stub_jmp));
	memcpy(&far, bytes + 3, sizeof(far));
	*ret_syscall = at + 7 + (uint64_t)(int64_t)far;
	return true;
}

void site_put_hop(uint8_t ret[SITE_HOP_BYTES])
{
	ret[0] = 0xeb;
	ret[1] = (uint8_t) - (SITE_JUMP_BYTES + SITE_HOP_BYTES);
}

bool site_put_jump(uint64_t window, uint64_t stub, uint8_t ret[SITE_JUMP_BYTES])
{
	ret[0] = SITE_JUMP;
	return relative(window + SITE_JUMP_BYTES, stub, ret + 1);
}
