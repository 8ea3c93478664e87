/* SPDX-License-Identifier: MIT */
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/uio.h>
#include <unistd.h>
#include <x86intrin.h>

#include "fuzz_inside.h"

#define LONG_BYTES 60000u

static const char *const names[] = { "f", "none", "", "/", "../..", "d/e", "/proc/self/fd/0", "." };

/* The stack on which a thread goes on that its recorder has put elsewhere. */
#define STACK_BYTES 262144u
static __thread uint64_t state;
static __thread struct wire_block *own;
static __thread uint64_t stack_end;
static bool ends_when_put;

/* Where our block says that the call is: behind a syscall instruction's two bytes is the same. */
extern const uint8_t fuzz_site[];
__asm__(".text\nfuzz_site:\n\t.byte 0x66, 0x90\n\tand $-16, %rsp\n\tcall fuzz_go_on\n");
void fuzz_go_on(void) __attribute__((noreturn, used));

/* What a copy is of: text, vectors, a file, or anything. */
static void fill_copy(uint8_t *at, uint64_t len, const uint64_t regs[6], uint64_t *x)
{
	const char *name = names[draw(x) % (sizeof(names) / sizeof(names[0]))];
	uint64_t i;

	switch (draw(x) % 4) {
	case 0:
		memset(at, 0, len);
		memcpy(at, name, strlen(name) < len ? strlen(name) : len);
		break;
	case 1:
		for (i = 0; i + 16 <= len; i += 16) {
			struct iovec v = { (void *)regs[draw(x) % 6], draw(x) % 512 };

			memcpy(at + i, &v, sizeof(v));
		}
		break;
	case 2:
		for (i = 0; i + 8 <= len; i += 8)
			memcpy(at + i, &(uint64_t){ draw_value(x) }, 8);
		break;
	case 3:
		memset(at, (int)draw(x), len);
		break;
	}
}

static uint64_t put_copy(uint8_t *at, uint64_t addr, const uint64_t regs[6], uint64_t *x)
{
	struct wire_copy c = { addr, 1 + (draw(x) % 4 ? draw(x) % 300 : draw(x) % 1500) };

	memcpy(at, &c, sizeof(c));
	fill_copy(at + sizeof(c), c.len_bytes, regs, x);
	return sizeof(c) + (c.len_bytes + 7) / 8 * 8;
}

/* Of the pieces of a rule for that moment; how long they are. */
static uint64_t put_pieces(uint8_t *at, const struct wire_rule *r, enum wire_when when,
			   const uint64_t regs[6], uint32_t *ret_nr, uint64_t *x)
{
	uint64_t len = 0;
	unsigned int i;

	for (i = 0; i < r->nr_pieces; i++) {
		if (r->pieces[i].when != when || draw(x) % 16 == 0)
			continue;
		len += put_copy(at + len, regs[r->pieces[i].reg], regs, x);
		++*ret_nr;
	}
	/* Vectors and strings have more of them. */
	while (*ret_nr && draw(x) % 4 == 0 && r->pieces[0].kind >= WIRE_IOVECS &&
	       len < FORGED_MAX_BYTES / 4) {
		len += put_copy(at + len, regs[draw(x) % 6], regs, x);
		++*ret_nr;
	}
	if (when == WIRE_OUT && r->flags & WIRE_RULE_FILE && draw(x) % 2) {
		len += put_copy(at + len, WIRE_FILE_ADDRESS, regs, x);
		++*ret_nr;
	}
	return len;
}

/* Much data, of which the trace has a hash. */
static uint64_t forge_write(uint8_t *at, uint64_t *x)
{
	uint64_t len = LONG_BYTES - draw(x) % 1024 * 8;
	struct wire_record rec = { .size_bytes = (uint32_t)(sizeof(rec) + 16 + len),
				   .nr = SYS_pwrite64,
				   .nr_in = 1,
				   .ret = (int64_t)len,
				   .regs = { 5, 4096, len, 0 },
				   .in_bytes = 16 + len };
	struct wire_copy c = { 4096, len };

	rec.enter_tsc = rec.exit_tsc = __rdtsc();
	memcpy(at, &rec, sizeof(rec));
	memcpy(at + sizeof(rec), &c, sizeof(c));
	return rec.size_bytes;
}

/* One of those by which the agent records, and registers that it fits. */
static const struct wire_rule *choose_rule(const struct wire_rule *rules, struct wire_record *rec,
					   uint64_t *x)
{
	const struct wire_rule *r;

	do {
		rec->nr = (uint32_t)(draw(x) % WIRE_NR_CALLS);
		r = &rules[rec->nr];
		while (r->next && draw(x) % 2)
			r = &rules[r->next];
	} while (!(r->flags & WIRE_RULE_USED));
	rec->regs[r->select_reg] = (rec->regs[r->select_reg] & ~r->select_mask) | r->select_value;
	return r;
}

uint64_t forge_record(const struct wire_rule *rules, uint8_t *at, uint64_t *x)
{
	struct wire_record rec = {
		.ret = draw(x) % 4 ? (int64_t)(draw(x) % 300) : (int64_t)draw_value(x),
	};
	const struct wire_rule *r;
	unsigned int i;

	for (i = 0; i < 6; i++)
		rec.regs[i] = draw(x) % 4 ? draw(x) % 600 : draw_value(x);
	r = choose_rule(rules, &rec, x);
	rec.exit_tsc = draw(x) % 16 ? __rdtsc() : draw_value(x);
	rec.enter_tsc = rec.exit_tsc - draw(x) % 4096;
	rec.cpu_ns = draw(x) % 16 ? 0 : draw_value(x);
	rec.waited_ticks = draw(x) % 16 ? 0 : draw_value(x);
	rec.in_bytes = put_pieces(at + sizeof(rec), r, WIRE_IN, rec.regs, &rec.nr_in, x);
	rec.size_bytes = (uint32_t)(sizeof(rec) + rec.in_bytes);
	rec.size_bytes +=
		(uint32_t)put_pieces(at + rec.size_bytes, r, WIRE_OUT, rec.regs, &rec.nr_out, x);
	memcpy(at, &rec, sizeof(rec));
	return rec.size_bytes;
}

/* What the recorder may put into our registers leads back to us. */
static void make_safe(struct wire_block *b)
{
	b->site = (uint64_t)fuzz_site;
	b->rsp = stack_end;
}

/* Numbers of a block that no instruction of ours follows from, as long as we make no calls. */
static const uint8_t loose_words[] = {
	offsetof(struct wire_block, head),	   offsetof(struct wire_block, call_head),
	offsetof(struct wire_block, needed_bytes), offsetof(struct wire_block, ring_bytes),
	offsetof(struct wire_block, limit),	   offsetof(struct wire_block, rule),
	offsetof(struct wire_block, nr),	   offsetof(struct wire_block, ret),
	offsetof(struct wire_block, regs),	   offsetof(struct wire_block, wait_ticks),
};

static void change_own_block(struct wire_block *b, uint64_t *x)
{
	uint64_t *word = (uint64_t *)((uint8_t *)b + loose_words[draw(x) % sizeof(loose_words)]);

	make_safe(b);
	switch (draw(x) % 4) {
	case 0:
		b->phase = (uint32_t)(draw(x) % 5);
		break;
	case 1:
		b->call_head = b->head;
		b->phase = WIRE_CALLING + draw(x) % 2;
		break;
	default:
		*word = draw(x) % 2 ? draw_value(x) : *word + draw(x) % 512 - 256;
	}
}

/* To and fro, until it was taken, or is not: words of the data, sometimes one of the head. */
static void change_while_taken(struct wire_block *b, uint64_t *words, uint64_t nr, uint64_t *x)
{
	uint64_t tail = __atomic_load_n(&b->tail, __ATOMIC_RELAXED);
	uint64_t from = nr > LONG_BYTES / 16 && draw(x) % 64 ? 16 : 0, i;
	uint64_t value = from ? 1 : draw_value(x);
	uint64_t *word = words + from + draw(x) % ((from ? nr : 16) - from);

	for (i = 0; i < 20000 && __atomic_load_n(&b->tail, __ATOMIC_RELAXED) == tail; i++) {
		__atomic_fetch_xor(word, value, __ATOMIC_RELAXED);
		if (from)
			word = words + from + draw(x) % (nr - from);
	}
	if (i % 2 && !from)
		__atomic_fetch_xor(word, value, __ATOMIC_RELAXED);
}

/* One more, if there is room. */
static void publish(struct wire_block *b, uint64_t *x)
{
	uint64_t size = WIRE_RING_FIRST_BYTES, head = b->head, at = head & (size - 1), len;
	uint64_t tail = __atomic_load_n(&b->tail, __ATOMIC_ACQUIRE);
	uint8_t *ring = shared_ring_of(b);

	if (head - tail + 2 * FORGED_MAX_BYTES > size)
		return;
	if (size - at < FORGED_MAX_BYTES) {
		struct wire_record skip = { .size_bytes = (uint32_t)(size - at), .nr = WIRE_SKIP };

		memcpy(ring + at, &skip, 8);
		head += size - at;
		at = 0;
	}
	len = draw(x) % 16 ? forge_record((const struct wire_rule *)b->rules, ring + at, x)
			   : forge_write(ring + at, x);
	if (draw(x) % 500 == 0)
		((uint64_t *)(ring + at))[draw(x) % (len / 8)] = draw_value(x);
	__atomic_store_n(&b->head, head + len, __ATOMIC_RELEASE);
	if (len > LONG_BYTES / 2 || draw(x) % 256 == 0)
		change_while_taken(b, (uint64_t *)(ring + at), len / 8, x);
}

void fuzz_go_on(void)
{
	if (ends_when_put)
		_exit(0);
	for (;;) {
		if (atomic_load(&round_is_over) || own->off) {
			/* Nothing is taken from us any more. */
			atomic_store(&round_is_over, true);
			_mm_pause();
			continue;
		}
		publish(own, &state);
		if (draw(&state) % 400 == 0)
			change_own_block(own, &state);
	}
}

static bool begin_forging(uint64_t seed)
{
	uint8_t *stack =
		mmap(NULL, STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	stack_end = (uint64_t)stack + STACK_BYTES - 64;
	state = seed;
	own = shared_own_block();
	if (!own || stack == MAP_FAILED)
		return false;
	make_safe(own);
	return true;
}

void forge_records(uint64_t seed)
{
	if (!begin_forging(seed)) {
		for (;;)
			(void)pause();
	}
	fuzz_go_on();
}

/* A getppid, with one word of another value. */
static void forge_word(struct wire_block *b, size_t at, uint64_t value, size_t len)
{
	struct wire_record rec = { .size_bytes = sizeof(rec), .nr = SYS_getppid };
	uint8_t *to = shared_ring_of(b) + (b->head & (b->ring_bytes - 1));

	rec.enter_tsc = rec.exit_tsc = __rdtsc();
	memcpy((uint8_t *)&rec + at, &value, len);
	memcpy(to, &rec, sizeof(rec));
	__atomic_store_n(&b->head, b->head + sizeof(rec), __ATOMIC_RELEASE);
}

static void do_nothing(int signo)
{
	(void)signo;
}

int forge_once(const char *kind)
{
	struct itimerval every = { { 0, 20000 }, { 0, 20000 } };

	ends_when_put = true;
	signal(SIGALRM, do_nothing);
	setitimer(ITIMER_REAL, &every, NULL); /* it stops us */
	if (!shared_find() || !begin_forging(1))
		return 77;
	if (!strcmp(kind, "size"))
		forge_word(own, offsetof(struct wire_record, size_bytes), 8, 4);
	else if (!strcmp(kind, "long"))
		forge_word(own, offsetof(struct wire_record, size_bytes), 0xfffffff8, 4);
	else if (!strcmp(kind, "call"))
		forge_word(own, offsetof(struct wire_record, nr), SYS_clone, 4);
	else if (!strcmp(kind, "left-out"))
		forge_word(own, offsetof(struct wire_record, nr), WIRE_LEFT_OUT | SYS_getppid, 4);
	else if (!strcmp(kind, "skip"))
		forge_word(own, offsetof(struct wire_record, nr), WIRE_SKIP, 4);
	else if (!strcmp(kind, "copies"))
		forge_word(own, offsetof(struct wire_record, nr_in), 1, 4);
	else if (!strcmp(kind, "bytes"))
		forge_word(own, offsetof(struct wire_record, in_bytes), 16, 8);
	else if (!strcmp(kind, "far"))
		__atomic_store_n(&own->head, own->head + (UINT64_C(1) << 40), __ATOMIC_RELEASE);
	else if (!strcmp(kind, "back"))
		__atomic_store_n(&own->head, own->head - 8, __ATOMIC_RELEASE);
	else if (!strcmp(kind, "phase"))
		own->phase = 77;
	else if (!strcmp(kind, "begun")) {
		own->call_head = own->head + 4096;
		own->phase = WIRE_CALLING;
	} else
		return 2;
	while (!__atomic_load_n(&own->off, __ATOMIC_RELAXED))
		_mm_pause();
	_exit(0);
}
