/* SPDX-License-Identifier: MIT */
/*
 * What the tests of capture share: memory of our own, read as a recorder reads
 * that of another process, and calls that are captured and printed. Included
 * behind cmocka.h, once in a program.
 */
#ifndef UNIT_CAPTURE_RIG_H
#define UNIT_CAPTURE_RIG_H

#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "model/print.h"
#include "record/capture.h"
#include "trace_rig.h"

#define PAGE 4096u
#define ROOM (512 * PAGE)
#define U(p) ((uint64_t)(uintptr_t)(p))

static struct capture capture;
static struct memory memory;
static unsigned int nr_reads, nr_spans;
static uint8_t *room; /* ROOM bytes; what lies before and behind is not there */
static struct value args[ROW_ARGS_MAX];
static uint64_t regs[6];
static const struct row *row;
static struct buf text;

static ssize_t read_own(struct memory *m, const struct iovec *local, const struct iovec *remote,
			unsigned int nr)
{
	ssize_t n = process_vm_readv(getpid(), local, nr, remote, nr, 0);

	(void)m;
	nr_reads++;
	nr_spans += nr;
	return n < 0 ? -errno : n;
}

static int capture_setup(void **state)
{
	uint8_t *p = mmap(NULL, ROOM + 2 * PAGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	(void)rig_setup(state);
	room = p + PAGE;
	(void)mprotect(room, ROOM, PROT_READ | PROT_WRITE);
	begin();
	memory = (struct memory){ .read = read_own, .is_whole = true };
	capture = (struct capture){ .memory = &memory, .feed = feed, .arena = &arena };
	nr_reads = nr_spans = 0;
	return 0;
}

static int capture_teardown(void **state)
{
	capture_release(&capture);
	buf_release(&text);
	(void)munmap(room - PAGE, ROOM + 2 * PAGE);
	return rig_teardown(state);
}

#define CAPTURE_TEST(name) cmocka_unit_test_setup_teardown(name, capture_setup, capture_teardown)

/* Room that ends exactly where memory does. */
static inline void *at_end(const void *p, size_t len)
{
	return memcpy(room + ROOM - len, p, len);
}

static inline void *put(size_t at, const void *p, size_t len)
{
	return memcpy(room + at, p, len);
}

static inline void set_regs(enum row_id id, const uint64_t *values, size_t nr)
{
	row = row_by_id((unsigned int)id);
	memset(regs, 0, sizeof(regs));
	memcpy(regs, values, nr * sizeof(*values));
	memset(args, 0xee, sizeof(args));
}

/* The entry of a call: CALL(SC_read, 3, U(buf), 100). */
#define CALL(id, ...)                                                                              \
	do {                                                                                       \
		const uint64_t values_[] = { __VA_ARGS__ };                                        \
		set_regs(id, values_, ARRAY_LEN(values_));                                         \
		OK(capture_entry(&capture, row, regs, args));                                      \
	} while (0)

static inline void returns(int64_t ret, int err_no)
{
	struct outcome o = { .ret = ret, .err = err_no };

	OK(capture_exit(&capture, row, regs, &o, args));
}

static inline const char *printed(void)
{
	struct print_style style = { .form = PRINT_EXACT, .full = true };

	buf_clear(&text);
	print_args(&text, row, args, &style);
	return buf_str(&text);
}

#define SAYS(expected) assert_string_equal(printed(), expected)

#define HAS(part)                                                                                  \
	do {                                                                                       \
		if (!strstr(printed(), part))                                                      \
			fail_msg("%s lacks %s", printed(), part);                                  \
	} while (0)

#define HAS_NOT(part)                                                                              \
	do {                                                                                       \
		if (strstr(printed(), part))                                                       \
			fail_msg("%s has %s", printed(), part);                                    \
	} while (0)

/* Expected text with an address in it. */
#define SAYS_AT(...)                                                                               \
	do {                                                                                       \
		char expected_[4096];                                                              \
		(void)snprintf(expected_, sizeof(expected_), __VA_ARGS__);                         \
		SAYS(expected_);                                                                   \
	} while (0)

#endif
