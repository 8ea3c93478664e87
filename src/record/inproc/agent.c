/* SPDX-License-Identifier: MIT */
/*
 * The agent: makes the record of one call, before and after it. Runs in the
 * recorded program, on a stack of its own, with the program's memory and
 * nothing else: no library, no calls of its own, no data but the block and
 * what it points to, and no registers that a system call would leave alone (so
 * no vector registers). Memory of the program that is not there makes a fault;
 * the recorder, which sees it, puts the thread back to where its call is made
 * without us.
 */
#include "model/wire.h"

#define AGENT __attribute__((section("agent_text"), used, noinline))
#define INSIDE static inline __attribute__((always_inline))
/* What few calls need stands apart, so that the others push less of the program out of caches. */
#define APART static __attribute__((section("agent_text"), noinline))
#define SELDOM(condition) __builtin_expect(!!(condition), 0)
#define NR_ERRORS 4095
#define FROM_CWD (-100)

struct agent_iovec {
	uint64_t base, len;
};

/* What is to become of a call; entry.S knows the numbers. */
enum { NOT_OURS, TO_BE_MADE, ANSWERED };

int agent_enter(struct wire_block *b);
void agent_leave(struct wire_block *b);
int64_t agent_ask(int64_t what, void *ret, uint32_t nr); /* entry.S: a call of our own */

#define ACCESS_MODE 3
#define MAP_IS_SHARED 1
#define MAP_IS_FIXED 16
#define CLOCK_OF_TRACE 1
#define CLOCK_OF_THREAD 3

#define NOT_ASKED (-38)

struct agent_timespec {
	int64_t s, ns;
};

/*
 * When the agent has been turned off while we are in it, there may be a filter of the program's
 * by now, which knows nothing of our calls: none is made any more.
 */
INSIDE int64_t ask(const struct wire_block *b, int64_t what, void *ret, uint32_t nr)
{
	return __atomic_load_n(&b->off, __ATOMIC_RELAXED) ? NOT_ASKED : agent_ask(what, ret, nr);
}

APART uint64_t thread_ns(const struct wire_block *b)
{
	struct agent_timespec ts;

	if (ask(b, CLOCK_OF_THREAD, &ts, WIRE_NR_CLOCK_GETTIME))
		return 0;
	return (uint64_t)ts.s * 1000000000 + (uint64_t)ts.ns;
}

APART uint64_t kernel_ns(const struct wire_block *b)
{
	int (*read)(int32_t clock, struct agent_timespec * ret) =
		(int (*)(int32_t, struct agent_timespec *))b->clock_at;
	struct agent_timespec ts = { 0, 0 };

	if (read)
		(void)read(CLOCK_OF_TRACE, &ts); /* cannot fail */
	else
		(void)ask(b, CLOCK_OF_TRACE, &ts, WIRE_NR_CLOCK_GETTIME); /* or it is not told */
	return (uint64_t)ts.s * 1000000000 + (uint64_t)ts.ns;
}

INSIDE uint64_t read_clock(const struct wire_block *b)
{
	uint32_t low, high;

	if (SELDOM(b->kernel_clock))
		return kernel_ns(b);
	__asm__ volatile("rdtsc" : "=a"(low), "=d"(high));
	return (uint64_t)high << 32 | low;
}

INSIDE void copy(void *to, uint64_t from, uint64_t len)
{
	__asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(len) : : "memory");
}

INSIDE uint64_t number(const struct wire_block *b, uint8_t code)
{
	unsigned int from = code & WIRE_NUMBER_FROM;
	uint64_t v = from == WIRE_FROM_RET ? (uint64_t)b->ret : b->regs[from < 6 ? from : 0];

	if (code & WIRE_NUMBER_32)
		v = code & WIRE_NUMBER_SIGNED ? (uint64_t)(int64_t)(int32_t)v : (uint32_t)v;
	return code & WIRE_NUMBER_SIGNED && (int64_t)v < 0 ? 0 : v;
}

/* Is it one stretch, whose length registers tell? */
INSIDE int has_length(const struct wire_piece *p)
{
	return p->kind == WIRE_BYTES || p->kind == WIRE_BITS;
}

/* How much of a piece there is; with bound: at most, before the call. */
INSIDE uint64_t piece_len(const struct wire_block *b, const struct wire_piece *p, int bound)
{
	uint8_t from = bound ? p->bound : p->number;
	uint64_t n = p->most;

	if ((from & WIRE_NUMBER_FROM) != WIRE_FROM_NOTHING) {
		n = number(b, from);
		if (p->most && n > p->most)
			n = p->most;
	}
	if (!bound && (p->cap & WIRE_NUMBER_FROM) != WIRE_FROM_NOTHING && n > number(b, p->cap))
		n = number(b, p->cap);
	if (n > WIRE_RECORD_MAX_BYTES)
		return WIRE_RECORD_MAX_BYTES;
	return p->kind == WIRE_BITS ? (n + 63) / 64 * 8 : n * p->unit;
}

typedef uint64_t __attribute__((may_alias)) agent_word;

/* The lowest of these bits is the highest of the first byte that is 0. */
INSIDE uint64_t zero_bytes(uint64_t word)
{
	return (word - UINT64_C(0x0101010101010101)) & ~word & UINT64_C(0x8080808080808080);
}

/*
 * With its NUL; more than there may be when it has none. By whole words, which are in one page: so
 * no page is looked at where nothing of the string is.
 */
INSIDE uint64_t string_len(uint64_t addr, uint64_t most)
{
	uint64_t at = addr & ~UINT64_C(7), n;
	/* What stands before the string is no end of it. */
	uint64_t zero = zero_bytes(*(const agent_word *)at | ((UINT64_C(1) << (addr & 7) * 8) - 1));

	while (!zero && at + 8 - addr < most) {
		at += 8;
		zero = zero_bytes(*(const agent_word *)at);
	}
	if (!zero)
		return most + 1;
	n = at + (uint64_t)__builtin_ctzll(zero) / 8 - addr;
	return (n < most ? n : most) + 1;
}

INSIDE uint64_t padded(uint64_t len)
{
	return sizeof(struct wire_copy) + (len + 7) / 8 * 8;
}

/* What an array of vectors can need at most; too much when it is too long. */
INSIDE uint64_t iovecs_len(uint64_t addr, uint64_t nr)
{
	const struct agent_iovec *v = (const struct agent_iovec *)addr;
	uint64_t i, sum = padded(nr * sizeof(*v));

	if (nr > WIRE_IOVECS_MAX)
		return WIRE_RECORD_MAX_BYTES;
	for (i = 0; i < nr; i++) {
		if (v[i].len >= WIRE_RECORD_MAX_BYTES)
			return WIRE_RECORD_MAX_BYTES;
		sum += padded(v[i].len);
	}
	return sum;
}

/* Likewise of an array of strings. */
INSIDE uint64_t strings_len(uint64_t addr, uint64_t most)
{
	const uint64_t *s = (const uint64_t *)addr;
	uint64_t i, sum = 0;

	for (i = 0; s[i]; i++) {
		sum += padded(string_len(s[i], most));
		if (i == WIRE_STRINGS_MAX || sum > WIRE_STRINGS_MAX_BYTES)
			return WIRE_RECORD_MAX_BYTES;
	}
	return sum + padded((i + 1) * sizeof(*s));
}

/*
 * What is copied was measured before the call, but vectors may have changed
 * since then: what has no room is left out, and the recorder will miss it.
 */
INSIDE uint8_t *put(const struct wire_block *b, uint8_t *at, uint64_t addr, uint64_t len,
		    uint32_t *nr)
{
	struct wire_copy *c = (struct wire_copy *)at;

	if (!len || len > WIRE_RECORD_MAX_BYTES || (uint64_t)at + padded(len) > b->limit)
		return at;
	*nr += 1;
	c->addr = addr;
	c->len_bytes = len;
	copy(c + 1, addr, len);
	return at + padded(len);
}

INSIDE uint8_t *put_iovecs(const struct wire_block *b, uint8_t *at, uint64_t addr, uint64_t nr,
			   uint64_t moved, uint32_t *ret_nr)
{
	const struct agent_iovec *v = (const struct agent_iovec *)addr;
	uint64_t i;

	at = put(b, at, addr, nr * sizeof(*v), ret_nr);
	for (i = 0; i < nr && moved; i++) {
		uint64_t len = v[i].len < moved ? v[i].len : moved;

		at = put(b, at, v[i].base, len, ret_nr);
		moved -= len;
	}
	return at;
}

INSIDE uint8_t *put_strings(const struct wire_block *b, uint8_t *at, uint64_t addr, uint64_t most,
			    uint32_t *ret_nr)
{
	const uint64_t *s = (const uint64_t *)addr;
	uint64_t nr = 0, i;

	while (nr < WIRE_STRINGS_MAX && s[nr])
		nr++;
	at = put(b, at, addr, (nr + 1) * sizeof(*s), ret_nr);
	for (i = 0; i < nr; i++)
		at = put(b, at, s[i], string_len(s[i], most), ret_nr);
	return at;
}

INSIDE const struct wire_rule *find_rule(const struct wire_block *b)
{
	const struct wire_rule *rules = (const struct wire_rule *)b->rules, *r;

	if (b->nr >= WIRE_NR_CALLS)
		return 0;
	for (r = &rules[b->nr]; (b->regs[r->select_reg] & r->select_mask) != r->select_value;
	     r = &rules[r->next]) {
		if (!r->next)
			return 0;
	}
	return r->flags & WIRE_RULE_USED ? r : 0;
}

INSIDE int is_in(const uint64_t *set, uint64_t size, uint64_t hash)
{
	unsigned int i;

	for (i = 0; i < WIRE_NAME_PROBES; i++) {
		if (__atomic_load_n(&set[(hash + i) % size], __ATOMIC_RELAXED) == hash)
			return 1;
	}
	return 0;
}

/* Is the name in the set? */
INSIDE int is_known(const struct wire_block *b, const char *path, uint64_t len)
{
	return is_in((const uint64_t *)(b->rules + WIRE_RULES_BYTES), WIRE_NR_NAMES,
		     wire_name(&b->where, b->nr, path, len));
}

/* Is the file in the set that the register is a descriptor of? */
INSIDE int is_file_known(const struct wire_block *b, uint64_t reg, uint64_t salt)
{
	uint64_t st[WIRE_FILE_BYTES / 8]; /* device and inode come first */

	return !ask(b, (int32_t)reg, st, WIRE_NR_FSTAT) &&
	       is_in((const uint64_t *)(b->rules + WIRE_RULES_BYTES + WIRE_NAMES_BYTES),
		     WIRE_NR_DIRS, wire_dir(st[0] ^ salt, st[1]));
}

/* Then it was noted, as the recorder sees who opens such, or knows the name. */
INSIDE int is_for_writing(const struct wire_block *b, uint64_t reg)
{
	int64_t flags = ask(b, (int32_t)reg, (void *)WIRE_FCNTL_GET_FLAGS, WIRE_NR_FCNTL);

	return flags >= 0 && flags & ACCESS_MODE;
}

INSIDE int knows_names(const struct wire_block *b, const struct wire_rule *r)
{
	unsigned int i;

	for (i = 0; i < r->nr_pieces; i++) {
		const struct wire_piece *p = &r->pieces[i];
		const char *path = (const char *)b->regs[p->reg];

		if (p->kind == WIRE_STRING &&
		    (!path || !is_known(b, path, string_len((uint64_t)path, p->most))))
			return 0;
	}
	return 1;
}

/* By itself: the agent has no place for strings. */
INSIDE int begins_with_proc(const char *path)
{
	return path[0] == '/' && path[1] == 'p' && path[2] == 'r' && path[3] == 'o' &&
	       path[4] == 'c' && path[5] == '/';
}

INSIDE int leads_to_proc(const struct wire_block *b, const struct wire_rule *r)
{
	unsigned int i;

	for (i = 0; i < r->nr_pieces; i++) {
		const char *path = (const char *)b->regs[r->pieces[i].reg];

		if (r->pieces[i].kind == WIRE_STRING && path && begins_with_proc(path))
			return 1;
	}
	return 0;
}

/* What the registers say beyond the variant. */
INSIDE int is_ours(const struct wire_block *b, const struct wire_rule *r)
{
	int also = (b->regs[r->also_reg] & r->also_mask) == r->also_value;

	if (r->flags & WIRE_RULE_NOT_PROC && leads_to_proc(b, r))
		return 0;
	if ((r->flags & WIRE_RULE_PRIVATE && b->regs[3] & MAP_IS_SHARED) ||
	    (r->flags & WIRE_RULE_NOT_FIXED && b->regs[3] & MAP_IS_FIXED))
		return 0;
	if (r->flags & WIRE_RULE_NAMES && (!also || !r->also_mask))
		return knows_names(b, r);
	if (r->flags & WIRE_RULE_LISTED)
		return is_file_known(b, b->regs[0], 0);
	if (r->flags & WIRE_RULE_WRITABLE)
		return is_for_writing(b, b->regs[0]);
	if (r->flags & WIRE_RULE_TEXT && !also)
		return b->site >= b->loader_start && b->site < b->loader_end &&
		       is_file_known(b, b->regs[r->file_from & 7], WIRE_TEXT_SALT);
	return also;
}

/* Where a descriptor leads is known only as long as it is open: then the recorder must see it. */
INSIDE int begins_at_descriptor(const struct wire_block *b)
{
	const char *path = (const char *)b->regs[1];

	return (int32_t)b->regs[0] != FROM_CWD && path && *path && *path != '/';
}

/* What a piece can need at most that is found by looking. */
APART uint64_t found_len(const struct wire_block *b, const struct wire_piece *p)
{
	uint64_t addr = b->regs[p->reg];

	if (p->kind == WIRE_IOVECS)
		return iovecs_len(addr, number(b, p->number));
	if (p->kind == WIRE_STRINGS)
		return strings_len(addr, p->most);
	return padded(string_len(addr, p->most));
}

/* The most that the record of this call can need. */
INSIDE uint64_t record_len(const struct wire_block *b, const struct wire_rule *r)
{
	uint64_t sum = sizeof(struct wire_record) + padded(WIRE_FILE_BYTES);
	unsigned int i;

	for (i = 0; i < r->nr_pieces; i++) {
		const struct wire_piece *p = &r->pieces[i];

		if (!b->regs[p->reg])
			continue;
		if (has_length(p))
			sum += padded(piece_len(b, p, p->when == WIRE_OUT));
		else
			sum += found_len(b, p);
	}
	return sum;
}

/* Room for that in one piece, or NULL. What remains behind the head may be skipped. */
INSIDE struct wire_record *make_room(struct wire_block *b, uint64_t need)
{
	uint64_t tail = __atomic_load_n(&b->tail, __ATOMIC_ACQUIRE); /* pairs with the drain's */
	uint64_t left = b->ring_bytes - (b->head - tail);
	uint64_t at = b->head & (b->ring_bytes - 1), to_end = b->ring_bytes - at;
	struct wire_record *rec = (struct wire_record *)(b->ring + at);

	if (to_end >= need)
		return left >= need ? rec : 0;
	if (left < to_end + need)
		return 0;
	rec->size_bytes = (uint32_t)to_end;
	rec->nr = WIRE_SKIP;
	__atomic_store_n(&b->head, b->head + to_end, __ATOMIC_RELEASE); /* pairs with the drain's */
	return (struct wire_record *)b->ring;
}

INSIDE void pause_a_little(void)
{
	unsigned int i;

	for (i = 0; i < 8; i++)
		__asm__ volatile("pause");
}

/* Of the time that we wait at most. */
#define SPIN_SHARE 16

/*
 * The recorder makes room while we look, if it runs beside us: that is cheaper than to stop for
 * it. NULL when it does not come on.
 */
APART struct wire_record *wait_for_room(struct wire_block *b, uint64_t need, uint64_t *ret_ticks)
{
	struct wire_record *rec = 0;
	uint64_t start, moved, tail, now;
	int off = 0;

	if (!b->wait_ticks)
		return 0;
	start = moved = read_clock(b);
	tail = __atomic_load_n(&b->tail, __ATOMIC_RELAXED);
	while (!rec && !off && read_clock(b) - moved < b->wait_ticks) {
		/* It may be that it waits for our processor. */
		if (read_clock(b) - moved < b->wait_ticks / SPIN_SHARE)
			pause_a_little();
		else
			off = ask(b, 0, 0, WIRE_NR_SCHED_YIELD) == NOT_ASKED;
		rec = make_room(b, need);
		now = __atomic_load_n(&b->tail, __ATOMIC_RELAXED);
		if (now != tail)
			moved = read_clock(b);
		tail = now;
	}
	*ret_ticks = read_clock(b) - start;
	return rec;
}

/* A piece that is found by looking; returns where it ends. */
APART uint8_t *put_found(const struct wire_block *b, const struct wire_piece *p, uint8_t *at,
			 uint32_t *nr)
{
	uint64_t addr = b->regs[p->reg];

	if (p->kind == WIRE_IOVECS)
		return put_iovecs(b, at, addr, number(b, p->number),
				  p->when == WIRE_OUT ? (uint64_t)b->ret : UINT64_MAX, nr);
	if (p->kind == WIRE_STRINGS)
		return put_strings(b, at, addr, p->most, nr);
	return put(b, at, addr, string_len(addr, p->most), nr);
}

/* Copies what the rule says for this moment; returns where that ends. */
INSIDE uint8_t *put_pieces(const struct wire_block *b, const struct wire_rule *r,
			   enum wire_when when, uint8_t *at, uint32_t *ret_nr)
{
	uint32_t nr = 0;
	unsigned int i;

	for (i = 0; i < r->nr_pieces; i++) {
		const struct wire_piece *p = &r->pieces[i];

		if (p->when != when || !b->regs[p->reg])
			continue;
		if (has_length(p))
			at = put(b, at, b->regs[p->reg], piece_len(b, p, 0), &nr);
		else
			at = put_found(b, p, at, &nr);
	}
	*ret_nr = nr;
	return at;
}

/* The rule by which the call is recorded, an empty one when it is left out; NULL: not for us. */
INSIDE const struct wire_rule *choose(const struct wire_block *b, const struct wire_rule *r)
{
	const struct wire_rule *empty = (const struct wire_rule *)b->rules + WIRE_EMPTY_RULE;
	const uint8_t *files = (const uint8_t *)b->self + WIRE_FILES_AT;
	unsigned int from = r->file_from & WIRE_NUMBER_FROM;
	int32_t fd = from < 6 ? (int32_t)b->regs[from] : -1;

	if (fd < 0)
		return r->flags & WIRE_RULE_PATHLESS ? empty : r;
	switch (fd < WIRE_NR_FILES ? __atomic_load_n(&files[fd], __ATOMIC_RELAXED)
				   : WIRE_FILE_UNKNOWN) {
	case WIRE_FILE_WANTED:
		return r;
	case WIRE_FILE_UNWANTED:
		return empty;
	}
	return 0;
}

/* Of a rule with these alone nothing more has to be known. */
#define PLAIN_FLAGS (WIRE_RULE_USED | WIRE_RULE_FILE | WIRE_RULE_FREE)

/* The rule by which the call is recorded, after all that it asks for; NULL: not for us. */
APART const struct wire_rule *look_closer(const struct wire_block *b, const struct wire_rule *r)
{
	if ((r->flags & WIRE_RULE_AT && begins_at_descriptor(b)) || !is_ours(b, r))
		return 0;
	return r->flags & WIRE_RULE_CHOSEN ? choose(b, r) : r;
}

INSIDE struct wire_record *find_room(struct wire_block *b, uint64_t need, uint64_t *ret_ticks)
{
	struct wire_record *rec = 0;

	*ret_ticks = 0;
	if (need <= WIRE_RECORD_MOST_OF(b->ring_bytes)) {
		rec = make_room(b, need);
		if (SELDOM(!rec))
			rec = wait_for_room(b, need, ret_ticks);
	}
	return rec;
}

/*
 * A call that does nothing if there is nothing by the name in its first register: that is asked for
 * after the time of its beginning was taken, so that it happens within the call.
 */
APART int answer(const struct wire_block *b)
{
	if (__atomic_load_n(&b->asks_kernel, __ATOMIC_RELAXED))
		return NOT_OURS;
	return ask(b, FROM_CWD, (void *)b->regs[0], WIRE_NR_FACCESSAT2) == WIRE_ANSWER ? ANSWERED
										       : NOT_OURS;
}

AGENT int agent_enter(struct wire_block *b)
{
	const struct wire_rule *r = find_rule(b);
	struct wire_record *rec;
	uint64_t need, waited_ticks;
	unsigned int i;
	uint8_t *end;

	if (r && (r->flags & ~PLAIN_FLAGS || r->also_mask))
		r = look_closer(b, r);
	if (SELDOM(!r))
		return NOT_OURS;
	need = record_len(b, r);
	if (SELDOM(need > WIRE_RECORD_MAX_BYTES))
		return NOT_OURS;
	rec = find_room(b, need, &waited_ticks);
	if (SELDOM(!rec)) {
		b->needed_bytes = need;
		return NOT_OURS;
	}
	b->call_head = b->head;
	b->limit = (uint64_t)rec + need;
	b->rule = (uint64_t)(r - (const struct wire_rule *)b->rules);
	rec->nr = (uint32_t)b->nr | (r->flags & WIRE_RULE_USED ? 0 : WIRE_LEFT_OUT);
	rec->waited_ticks = waited_ticks;
	for (i = 0; i < 6; i++)
		rec->regs[i] = b->regs[i];
	end = put_pieces(b, r, WIRE_IN, (uint8_t *)(rec + 1), &rec->nr_in);
	rec->in_bytes = (uint64_t)(end - (uint8_t *)(rec + 1));
	rec->nr_out = 0;
	rec->enter_tsc = read_clock(b);
	return SELDOM(r->flags & WIRE_RULE_FAILS) ? answer(b) : TO_BE_MADE;
}

APART uint8_t *put_file(const struct wire_block *b, const struct wire_rule *r, uint8_t *at,
			uint32_t *nr)
{
	struct wire_copy *c = (struct wire_copy *)at;
	int32_t fd = (int32_t)((r->file_from & WIRE_NUMBER_FROM) == WIRE_FROM_RET
				       ? (uint64_t)b->ret
				       : b->regs[r->file_from & 7]);

	if (fd < 0 || (uint64_t)at + padded(WIRE_FILE_BYTES) > b->limit ||
	    ask(b, fd, c + 1, WIRE_NR_FSTAT))
		return at;
	c->addr = WIRE_FILE_ADDRESS;
	c->len_bytes = WIRE_FILE_BYTES;
	*nr += 1;
	return at + padded(WIRE_FILE_BYTES);
}

/* Seldom enough to cost nothing that counts; a long time in the call or before it is never missed. */
INSIDE uint64_t processor_ns(struct wire_block *b, uint64_t tsc)
{
	if (!SELDOM(tsc - b->cpu_tsc >= b->cpu_ticks))
		return 0;
	b->cpu_tsc = tsc;
	return thread_ns(b);
}

AGENT void agent_leave(struct wire_block *b)
{
	const struct wire_rule *r = (const struct wire_rule *)b->rules + b->rule;
	struct wire_record *rec =
		(struct wire_record *)(b->ring + (b->call_head & (b->ring_bytes - 1)));
	uint8_t *end = (uint8_t *)(rec + 1) + rec->in_bytes;

	rec->exit_tsc = read_clock(b);
	if (SELDOM(rec->exit_tsc < rec->enter_tsc)) /* it is not told any more */
		rec->exit_tsc = rec->enter_tsc;
	rec->ret = b->ret;
	rec->cpu_ns = processor_ns(b, rec->exit_tsc);
	if ((uint64_t)b->ret < (uint64_t)-NR_ERRORS) {
		end = put_pieces(b, r, WIRE_OUT, end, &rec->nr_out);
		if (r->flags & WIRE_RULE_FILE)
			end = put_file(b, r, end, &rec->nr_out);
	}
	rec->size_bytes = (uint32_t)(end - (uint8_t *)rec);
	/* Pairs with the drain's: what is published is whole. */
	__atomic_store_n(&b->head, b->call_head + rec->size_bytes, __ATOMIC_RELEASE);
}
