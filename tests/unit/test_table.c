/* SPDX-License-Identifier: MIT */
/* The tables of src/model agree with themselves, and their layouts with the system's headers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <fcntl.h>
#include <linux/aio_abi.h>
#include <linux/fiemap.h>
#include <linux/io_uring.h>
#include <linux/openat2.h>
#include <mqueue.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysinfo.h>
#include <sys/time.h>
#include <sys/times.h>
#include <sys/timex.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <utime.h>

#include "base/buf.h"
#include "model/kernel_structs.h"
#include "model/row.h"
#include "model/vocab.h"

#define NR_REGS 6

static const struct row *next_row(unsigned int *id)
{
	while (*id < ROW_ID_MAX) {
		const struct row *row = row_by_id((*id)++);

		if (row)
			return row;
	}
	return NULL;
}

#define EACH_ROW(row, id)                                                                          \
	(id) = 0;                                                                                  \
	((row) = next_row(&(id)));

static bool is_word(const char *s)
{
	return *s && strspn(s, "abcdefghijklmnopqrstuvwxyz0123456789_") == strlen(s);
}

static char wire(const struct arg *a)
{
	return kind_infos[a->kind].wire;
}

static bool is_scalar(const struct arg *a)
{
	return wire(a) == 'u' || wire(a) == 'i';
}

/* What a register can only hold by pointing to it. */
static bool is_pointed_to(const struct arg *a)
{
	return wire(a) == 'd' || wire(a) == 's' || wire(a) == 'l';
}

static bool has_length(const struct arg *a)
{
	switch (a->kind) {
	case KIND_BUF:
	case KIND_SOCKADDR:
	case KIND_PTR:
	case KIND_VEC:
	case KIND_FDSET:
	case KIND_ARRAY:
	case KIND_PTRS:
	case KIND_DIRENTS:
		return true;
	default:
		return false;
	}
}

static bool is_variant(const struct row *row)
{
	return row_variant_of(row);
}

/* Arguments of rows and fields of structs. */

static void check_length(const char *where, const struct arg *args, unsigned int nr,
			 const struct arg *a, unsigned int len)
{
	const struct arg *target;

	if (len == LEN_NONE || len == RET)
		return;
	if (len & LEN_CONST) {
		assert_int_not_equal(len & ~LEN_CONST, 0);
		return;
	}
	if (len - A0 >= nr)
		fail_msg("%s: %s has its length in argument %u of %u", where, a->name, len - A0,
			 nr);
	target = &args[len - A0];
	if (target == a || !(is_scalar(target) || (target->kind == KIND_PTR && target->elem)))
		fail_msg("%s: %s has its length in %s", where, a->name, target->name);
}

static void check_args(const char *where, const struct arg *args, unsigned int nr)
{
	unsigned int i, j;

	for (i = 0; i < nr; i++) {
		const struct arg *a = &args[i];

		if (!is_word(a->name))
			fail_msg("%s: name %s", where, a->name);
		for (j = 0; j < i; j++) {
			if (!strcmp(args[j].name, a->name))
				fail_msg("%s: %s twice", where, a->name);
		}
		check_length(where, args, nr, a, a->len);
		check_length(where, args, nr, a, a->cap);
		if ((a->kind == KIND_FLAGS || a->kind == KIND_ENUM || a->elem == KIND_FLAGS ||
		     a->elem == KIND_ENUM) != (a->set != SET_none && a->kind != KIND_HOLE))
			fail_msg("%s: %s and its vocabulary", where, a->name);
		if (a->set >= SET_MAX || a->struct_id >= STRUCT_MAX)
			fail_msg("%s: %s", where, a->name);
		if (wire(a) == 's' && !a->struct_id)
			fail_msg("%s: %s has no struct", where, a->name);
		if (wire(a) == 'l' && !a->elem == !a->struct_id)
			fail_msg("%s: elements of %s", where, a->name);
		if (a->look && a->kind != KIND_PATH)
			fail_msg("%s: %s is no path", where, a->name);
	}
}

static void test_args(void **state)
{
	const struct row *row;
	unsigned int id, i;

	(void)state;
	for (EACH_ROW(row, id)) {
		assert_true(row->nr_args <= ROW_ARGS_MAX);
		check_args(row->name, row->args, row->nr_args);
		for (i = 0; i < row->nr_args; i++)
			assert_false(row->args[i].here);
	}
	for (i = 1; i < STRUCT_MAX; i++) {
		const struct struct_desc *d = &struct_descs[i];

		assert_true(d->nr_fields && d->nr_fields <= STRUCT_FIELDS_MAX);
		check_args(d->name, d->fields, d->nr_fields);
	}
}

static void test_names(void **state)
{
	const struct row *row;
	unsigned int id;

	(void)state;
	for (EACH_ROW(row, id)) {
		assert_true(is_word(row->name));
		/* A record may be called like a call: nothing looks for both. */
		if (row->sort != ROW_RECORD)
			assert_ptr_equal(row_by_name(row->name), row);
		if (row->sort == ROW_CALL)
			assert_true(!!(row->class & A_MAC) == (row->id >= 1000) && row->id < 2000);
		assert_in_range(row_class(row), 1, C_MAX - 1);
		assert_non_null(class_names[row_class(row)]);
	}
	assert_int_equal(SC_unknown_call, 1);
}

/* An argument's register is its place: nothing may stand between, and *_AFTER must point to a pointer. */
static void check_registers(const struct row *row)
{
	bool tail = false;
	unsigned int i;

	for (i = 0; i < row->nr_args; i++) {
		const struct arg *a = &row->args[i];

		if (a->reg == REG_OWN) {
			if (tail || (i >= NR_REGS && row->id != SC_unknown_call))
				fail_msg("%s: %s has no register", row->name, a->name);
			if (is_pointed_to(a) && !a->dir)
				fail_msg("%s: %s is never read", row->name, a->name);
			if (has_length(a) && !a->len)
				fail_msg("%s: %s has no length", row->name, a->name);
			continue;
		}
		tail = true;
		if (a->reg == REG_NONE)
			continue;
		assert_in_range(a->reg, A0, A5);
		if (!is_pointed_to(&row->args[a->reg - A0]) ||
		    row->args[a->reg - A0].kind != a->kind ||
		    row->args[a->reg - A0].struct_id != a->struct_id || a->dir != ARG_OUT)
			fail_msg("%s: %s", row->name, a->name);
	}
}

static void check_result_lengths(const struct row *row)
{
	unsigned int i;

	for (i = 0; i < row->nr_args; i++) {
		const struct arg *a = &row->args[i];

		if (a->len != RET)
			continue;
		if (a->dir != ARG_OUT ||
		    (row->result != RESULT_BYTES_READ && row->result != RESULT_COUNT &&
		     row->result != RESULT_VALUE))
			fail_msg("%s: %s", row->name, a->name);
	}
}

static void test_registers(void **state)
{
	const struct row *row;
	unsigned int id;

	(void)state;
	for (EACH_ROW(row, id)) {
		if (row->sort != ROW_CALL)
			continue;
		check_registers(row);
		check_result_lengths(row);
	}
}

static bool has_kind(const struct row *row, enum kind kind)
{
	unsigned int i;

	for (i = 0; i < row->nr_args; i++) {
		if (row->args[i].kind == kind)
			return true;
	}
	return false;
}

#define CHECK_ROW(row, condition)                                                                  \
	do {                                                                                       \
		if (!(condition))                                                                  \
			fail_msg("%s: %s", (row)->name, #condition);                               \
	} while (0)

static void test_support(void **state)
{
	const struct row *row;
	unsigned int id;

	(void)state;
	for (EACH_ROW(row, id)) {
		if (row->sort != ROW_CALL)
			continue;
		CHECK_ROW(row, row->model != SUPPORT_SIMULATED && row->model != SUPPORT_WAITING);
		if (row->model == SUPPORT_UNSUPPORTED)
			CHECK_ROW(row, row->replay == SUPPORT_UNSUPPORTED);
		if (row->model == SUPPORT_NOTHING) {
			CHECK_ROW(row, row->replay != SUPPORT_GENERIC);
			CHECK_ROW(row, !has_kind(row, KIND_PATH));
		}
		if (row->result == RESULT_NEW_FD)
			CHECK_ROW(row, row->model == SUPPORT_SPECIAL ||
					       row->model == SUPPORT_UNSUPPORTED);
		/* An address means nothing in another process. */
		if (row->replay == SUPPORT_GENERIC)
			CHECK_ROW(row, !has_kind(row, KIND_ADDR) && row->result != RESULT_ADDRESS);
		if (row->class & A_WAITS)
			CHECK_ROW(row, row->replay == SUPPORT_WAITING ||
					       row->replay == SUPPORT_SIMULATED ||
					       row->replay == SUPPORT_SPECIAL);
		if (row->replay == SUPPORT_WAITING)
			CHECK_ROW(row, row_class(row) == C_WAIT || row_class(row) == C_LOCK ||
					       row_class(row) == C_SIGNAL);
		if (row->result == RESULT_NEVER)
			CHECK_ROW(row, row->class & A_ENTRY);
		CHECK_ROW(row, !(row->class & A_ENTRY) || !(row->class & A_WAITS));
		CHECK_ROW(row, row->result != RESULT_NOTHING);
	}
}

static void test_effect_at_entry(void **state)
{
	static const uint16_t early[] = { SC_close,	 SC_close_range, SC_exit,
					  SC_exit_group, SC_munmap,	 SC_io_submit };
	const struct row *row;
	unsigned int id, i, found = 0;

	(void)state;
	for (EACH_ROW(row, id))
		found += row->class & A_ENTRY ? 1 : 0;
	assert_int_equal(found, ARRAY_LEN(early));
	for (i = 0; i < ARRAY_LEN(early); i++)
		assert_true(row_by_id(early[i])->class & A_ENTRY);
}

/* Variants. */

static void check_variant(const struct row *row, const struct row_variant *v)
{
	const struct row *base = row_by_id(v->base);
	const struct arg *own = &row->args[v->reg], *general = &base->args[v->reg];
	uint64_t regs[NR_REGS] = { 0 };
	struct buf text = { 0 };
	uint64_t parsed = 0;
	size_t len = strlen(base->name);

	assert_true(v->reg < row->nr_args && v->reg < NR_REGS);
	assert_int_equal(v->value & ~v->mask, 0);
	CHECK_ROW(row, !is_variant(base) && row_nr(ARCH_X86_64, row) == -1);
	/* The family of a call has its name; the registers of its operations stand on their own. */
	CHECK_ROW(row, !strncmp(row->name, base->name, len) || base->id == SC_io_uring_register);
	CHECK_ROW(row, !strcmp(own->name, general->name) && own->set == general->set);
	/* Bits that do not select are kept. */
	CHECK_ROW(row, (own->kind == KIND_HOLE) == (v->mask == UINT32_MAX));

	regs[v->reg] = v->value;
	assert_ptr_equal(row_select_variant(base, regs), row);
	regs[v->reg] |= (uint64_t)1 << 40; /* a 32-bit argument with anything above it */
	assert_ptr_equal(row_select_variant(base, regs), row);

	CHECK_ROW(row, vocab_name((enum set_id)own->set, v->value));
	vocab_print_flags(&text, (enum set_id)own->set, v->value);
	assert_true(vocab_parse((enum set_id)own->set, (const char *)text.data, text.len, &parsed));
	assert_int_equal(parsed, v->value);
	buf_release(&text);
}

static void test_variants(void **state)
{
	const uint64_t unheard_of[NR_REGS] = { 0x7fffffff, 0x7fffff7f };
	const struct row *row;
	unsigned int id, nr = 0;

	(void)state;
	for (EACH_ROW(row, id)) {
		const struct row_variant *v = row_variant_of(row);

		if (v) {
			check_variant(row, v);
			nr++;
		}
		assert_ptr_equal(row_select_variant(row, unheard_of), row);
	}
	assert_true(nr > 100);
}

static void test_some_variants(void **state)
{
	uint64_t regs[NR_REGS] = { 3 };

	(void)state;
	regs[1] = F_DUPFD_CLOEXEC;
	assert_int_equal(row_select_variant(row_by_id(SC_fcntl), regs)->id, SC_fcntl_dupfd_cloexec);
	regs[1] = F_OFD_SETLKW;
	assert_int_equal(row_select_variant(row_by_id(SC_fcntl), regs)->id, SC_fcntl_ofd_setlkw);
	regs[1] = 128; /* FUTEX_WAIT_PRIVATE */
	assert_int_equal(row_select_variant(row_by_id(SC_futex), regs)->id, SC_futex_op_wait);
	regs[1] = 9 | 128 | 256; /* FUTEX_WAIT_BITSET_PRIVATE|FUTEX_CLOCK_REALTIME */
	assert_int_equal(row_select_variant(row_by_id(SC_futex), regs)->id,
			 SC_futex_op_wait_bitset);
	regs[1] = 2 | 1U << 31; /* IORING_REGISTER_FILES by a registered ring */
	assert_int_equal(row_select_variant(row_by_id(SC_io_uring_register), regs)->id,
			 SC_io_uring_register_files);
	regs[0] = 1;
	assert_int_equal(row_select_variant(row_by_id(SC_read), regs)->id, SC_read);
}

/* Numbers. tests/unit/check_numbers.py compares all of them with the headers. */

static void test_numbers(void **state)
{
	unsigned int arch, nr, id, i;
	const struct row *row;

	(void)state;
	for (arch = 0; arch < ARCH_MAX; arch++) {
		for (nr = 0; nr < 1000; nr++) {
			row = row_by_nr((enum arch)arch, nr);
			if (!row)
				continue;
			CHECK_ROW(row, row->sort == ROW_CALL && !is_variant(row));
			if (arch != ARCH_I386)
				CHECK_ROW(row, row_nr((enum arch)arch, row) == (int)nr);
			else
				CHECK_ROW(row, row_nr((enum arch)arch, row) >= 0);
			for (i = 0; i < 8; i++) {
				if (!(row_wide_args((enum arch)arch, nr) & 1U << i))
					continue;
				assert_true(i < row->nr_args);
				CHECK_ROW(row, row->args[i].kind == KIND_OFF ||
						       row->args[i].width_bytes == 8 ||
						       row->args[i].kind == KIND_ULONG);
			}
		}
		assert_null(row_by_nr((enum arch)arch, 100000));
		assert_null(row_by_nr((enum arch)arch, UINT32_MAX));
		assert_int_equal(row_wide_args((enum arch)arch, UINT32_MAX), 0);
	}
	for (EACH_ROW(row, id)) {
		bool numbered = false;

		for (arch = 0; arch < ARCH_MAX; arch++) {
			int n = row_nr((enum arch)arch, row);

			if (n < 0)
				continue;
			numbered = true;
			assert_ptr_equal(row_by_nr((enum arch)arch, (unsigned int)n), row);
		}
		CHECK_ROW(row, numbered == (row->sort == ROW_CALL && !(row->class & A_MAC) &&
					    !is_variant(row) && row->id != SC_unknown_call));
	}
}

static void test_some_numbers(void **state)
{
	(void)state;
	assert_int_equal(row_by_nr(ARCH_X86_64, 0)->id, SC_read);
	assert_int_equal(row_by_nr(ARCH_X86_64, 257)->id, SC_openat);
	assert_int_equal(row_by_nr(ARCH_X86_64, 56)->id, SC_clone);
	assert_int_equal(row_by_nr(ARCH_X86_64, 469)->id, SC_file_setattr);
	assert_null(row_by_nr(ARCH_X86_64, 400));
	assert_int_equal(row_by_nr(ARCH_AARCH64, 56)->id, SC_openat);
	assert_int_equal(row_by_nr(ARCH_AARCH64, 79)->id, SC_newfstatat);
	assert_int_equal(row_by_nr(ARCH_AARCH64, 220)->id, SC_clone_backwards);
	assert_int_equal(row_nr(ARCH_AARCH64, row_by_id(SC_open)), -1);
	assert_int_equal(row_by_nr(ARCH_I386, 192)->id, SC_mmap2);
	assert_int_equal(row_by_nr(ARCH_I386, 195)->id, SC_stat);
	assert_int_equal(row_by_nr(ARCH_I386, 106)->id, SC_stat);
	assert_int_equal(row_nr(ARCH_I386, row_by_id(SC_stat)), 195);
	assert_int_equal(row_wide_args(ARCH_I386, 180), 1 << 3); /* the offset of pread64 */
	assert_int_equal(row_wide_args(ARCH_X86_64, 17), 0);
#ifdef __x86_64__
	assert_int_equal(row_by_nr(ARCH_X86_64, SYS_statx)->id, SC_statx);
#endif
}

/* Vocabularies. tests/unit/check_flags.py compares the values with the headers. */

static uint64_t random_bits(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

static void check_round_trip(enum set_id set, uint64_t v)
{
	struct buf text = { 0 };
	uint64_t back = ~v;

	vocab_print_flags(&text, set, v);
	if (!vocab_parse(set, (const char *)text.data, text.len, &back) || back != v)
		fail_msg("%s: 0x%llx is printed as %s", set_descs[set].name, (unsigned long long)v,
			 buf_str(&text));
	buf_clear(&text);
	vocab_print_enum(&text, set, (int64_t)v);
	back = ~v;
	if (!vocab_parse(set, (const char *)text.data, text.len, &back) || back != v)
		fail_msg("%s: %lld is printed as %s", set_descs[set].name, (long long)v,
			 buf_str(&text));
	buf_release(&text);
}

static void test_vocabularies_round_trip(void **state)
{
	uint64_t seed = 0x9e3779b97f4a7c15, v;
	unsigned int set, i;

	(void)state;
	for (set = 1; set < SET_MAX; set++) {
		const struct set_desc *d = &set_descs[set];

		check_round_trip((enum set_id)set, 0);
		check_round_trip((enum set_id)set, UINT64_MAX);
		for (i = 0; i < d->nr_entries; i++)
			check_round_trip((enum set_id)set, d->entries[i].value);
		for (i = 0; i < 500; i++) {
			v = random_bits(&seed);
			check_round_trip((enum set_id)set, v);
			check_round_trip((enum set_id)set, v & UINT32_MAX);
			check_round_trip((enum set_id)set,
					 v & random_bits(&seed) & random_bits(&seed));
			check_round_trip((enum set_id)set, v % 256);
		}
	}
}

static void note_use(bool used[SET_MAX], bool bits[SET_MAX], const struct arg *args,
		     unsigned int nr)
{
	unsigned int i;

	for (i = 0; i < nr; i++) {
		used[args[i].set] = true;
		bits[args[i].set] |= args[i].kind == KIND_FLAGS || args[i].elem == KIND_FLAGS;
	}
}

/* A name whose bits are all named before it would never be printed, but for a second name of the same bits. */
static void check_order(const struct set_desc *d)
{
	size_t i, j;

	for (i = 0; i < d->nr_entries; i++) {
		const struct set_entry *late = &d->entries[i];

		for (j = 0; j < i && d->entries[j].value != late->value; j++) {
			const struct set_entry *early = &d->entries[j];

			if (early->value && early->mask == early->value &&
			    (early->value & late->value) == early->value)
				fail_msg("%s: %s comes too late", d->name, late->name);
		}
	}
}

static void test_vocabularies(void **state)
{
	bool used[SET_MAX] = { false }, bits[SET_MAX] = { false };
	const struct row *row;
	unsigned int id, set;
	size_t i, j;

	(void)state;
	used[SET_errno_names] = used[SET_signal_names] = used[SET_event_flags] = true;
	for (EACH_ROW(row, id))
		note_use(used, bits, row->args, row->nr_args);
	for (id = 1; id < STRUCT_MAX; id++)
		note_use(used, bits, struct_descs[id].fields, struct_descs[id].nr_fields);
	for (set = 1; set < SET_MAX; set++) {
		const struct set_desc *d = &set_descs[set];

		if (!used[set])
			fail_msg("nothing uses %s", d->name);
		assert_true(is_word(d->name) && d->nr_entries);
		for (i = 0; i < d->nr_entries; i++) {
			assert_int_equal(d->entries[i].value & ~d->entries[i].mask, 0);
			for (j = 0; j < i; j++) {
				if (!strcmp(d->entries[i].name, d->entries[j].name))
					fail_msg("%s: %s twice", d->name, d->entries[i].name);
			}
		}
		if (bits[set])
			check_order(d);
	}
}

static void check_text(enum set_id set, uint64_t v, const char *expected)
{
	struct buf text = { 0 };

	vocab_print_flags(&text, set, v);
	assert_string_equal(buf_str(&text), expected);
	buf_release(&text);
}

static void test_some_flags(void **state)
{
	int32_t n;

	(void)state;
	check_text(SET_open_flags, 0102101, "O_WRONLY|O_CREAT|O_APPEND|O_LARGEFILE");
	check_text(SET_open_flags, 020200002, "O_RDWR|O_TMPFILE");
	check_text(SET_open_flags, 04010000, "O_RDONLY|O_SYNC");
	check_text(SET_open_flags, 010000, "O_RDONLY|O_DSYNC");
	check_text(SET_clone_flags, 0x1200011, "CLONE_CHILD_CLEARTID|CLONE_CHILD_SETTID|SIGCHLD");
	check_text(SET_mmap_flags, 0x22, "MAP_PRIVATE|MAP_ANONYMOUS");
	check_text(SET_mmap_flags, 0x54040022,
		   "MAP_PRIVATE|MAP_ANONYMOUS|MAP_HUGETLB|MAP_HUGE_2MB");
	check_text(SET_mmap_prot, 0, "PROT_NONE");
	check_text(SET_futex_ops, 0x81, "FUTEX_WAKE_PRIVATE");
	check_text(SET_futex_ops, 0x189, "FUTEX_WAIT_BITSET_PRIVATE|FUTEX_CLOCK_REALTIME");
	check_text(SET_futex_ops, 0, "FUTEX_WAIT");
	check_text(SET_ioctl_cmds, 0x5401, "TCGETS");
	check_text(SET_ioctl_cmds, 0x80081272, "BLKGETSIZE64");
	check_text(SET_socket_types, 02000001, "SOCK_STREAM|SOCK_CLOEXEC");
	check_text(SET_statx_flags, 0x100, "AT_STATX_SYNC_AS_STAT|AT_SYMLINK_NOFOLLOW");
	assert_string_equal(errno_name(2), "ENOENT");
	assert_string_equal(errno_name(11), "EAGAIN");
	assert_string_equal(errno_name(133), "EHWPOISON");
	assert_string_equal(errno_name(512), "ERESTARTSYS");
	assert_string_equal(signal_name(6), "SIGABRT");
	assert_string_equal(signal_name(33), "SIGRT_1");
	assert_string_equal(signal_name(64), "SIGRT_32");
	assert_true(signal_parse("SIGPOLL", 7, &n) && n == 29);
	assert_true(errno_parse("EWOULDBLOCK", 11, &n) && n == 11);
	for (n = 1; n <= 64; n++)
		assert_non_null(signal_name(n));
	for (n = 1; n <= 133; n++)
		assert_true(errno_name(n) || n == 41 || n == 58); /* never given out */
}

/* Layouts. */

static void test_places(void **state)
{
	unsigned int i, f;

	(void)state;
	for (i = 1; i < STRUCT_MAX; i++) {
		const struct struct_desc *d = &struct_descs[i];
		const struct field_place *places = d->places();

		for (f = 0; f < d->nr_fields; f++) {
			const struct arg *a = &d->fields[f];
			unsigned int width = places[f].width_bytes;

			if (places[f].offset_bytes == OFFSET_NONE) {
				assert_false(a->here);
				continue;
			}
			assert_true(places[f].offset_bytes + width <= d->size_bytes);
			if (is_scalar(a) && !(width == 1 || width == 2 || width == 4 || width == 8))
				fail_msg("%s.%s is %u bytes wide", d->name, a->name, width);
			if (is_pointed_to(a) && !a->here && width != 8)
				fail_msg("%s.%s is no pointer", d->name, a->name);
			if (a->here && a->kind == KIND_STRUCT)
				assert_int_equal(width, struct_descs[a->struct_id].size_bytes);
			if (a->here && a->kind == KIND_ARRAY)
				assert_int_equal(width, 0);
		}
	}
}

/* A struct of ours, the system's, and a member near the end of both. */
#define SAME_AS(ours, our_member, theirs, member)                                                  \
	assert_int_equal(sizeof(ours), sizeof(theirs));                                            \
	assert_int_equal(offsetof(ours, our_member), offsetof(theirs, member))
#define SAME(ours, theirs, member) SAME_AS(ours, member, theirs, member)

static void test_layouts(void **state)
{
	(void)state;
	SAME(struct k_timeval, struct timeval, tv_usec);
	SAME(struct k_itimerspec, struct itimerspec, it_value);
	SAME(struct k_itimerval, struct itimerval, it_value);
	SAME(struct k_utimbuf, struct utimbuf, modtime);
	SAME_AS(struct k_stat, rdev, struct stat, st_rdev);
	SAME_AS(struct k_stat, nlink, struct stat, st_nlink);
	SAME_AS(struct k_stat, blocks, struct stat, st_blocks);
	SAME_AS(struct k_stat, ctime, struct stat, st_ctim);
	SAME(struct k_statx, struct statx, stx_mnt_id);
	SAME(struct k_statfs, struct statfs, f_flags);
	SAME(struct k_open_how, struct open_how, resolve);
	SAME(struct k_flock, struct flock, l_pid);
	SAME(struct k_f_owner_ex, struct f_owner_ex, pid);
	SAME(struct k_msghdr, struct msghdr, msg_flags);
	SAME(struct k_mmsghdr, struct mmsghdr, msg_len);
	SAME(struct k_cmsghdr, struct cmsghdr, cmsg_type);
	SAME(struct k_pollfd, struct pollfd, revents);
	SAME(struct k_epoll_event, struct epoll_event, data);
	SAME(struct k_iocb, struct iocb, aio_resfd);
	SAME(struct k_io_event, struct io_event, res2);
	SAME(struct k_io_uring_sqe, struct io_uring_sqe, addr3);
	SAME(struct k_io_uring_params, struct io_uring_params, cq_off);
	SAME(struct k_io_uring_rsrc_register, struct io_uring_rsrc_register, tags);
	SAME(struct k_io_uring_rsrc_update2, struct io_uring_rsrc_update2, nr);
	SAME(struct k_rlimit, struct rlimit, rlim_max);
	SAME(struct k_rusage, struct rusage, ru_nivcsw);
	SAME(struct k_tms, struct tms, tms_cstime);
	SAME(struct k_stack, stack_t, ss_size);
	SAME_AS(struct k_siginfo, status, siginfo_t, si_status);
	SAME_AS(struct k_siginfo, stime, siginfo_t, si_stime);
	SAME_AS(struct k_siginfo, fd, siginfo_t, si_fd);
	SAME_AS(struct k_siginfo, value, siginfo_t, si_value);
	SAME_AS(struct k_sigevent, notify, struct sigevent, sigev_notify);
	SAME(struct k_sembuf, struct sembuf, sem_flg);
	SAME(struct k_mq_attr, struct mq_attr, mq_curmsgs);
	SAME(struct k_timex, struct timex, tai);
	SAME(struct k_sysinfo, struct sysinfo, mem_unit);
	SAME(struct k_fiemap, struct fiemap, fm_extents);
	SAME(struct k_fiemap_extent, struct fiemap_extent, fe_flags);
	SAME(struct k_file_clone_range, struct file_clone_range, dest_offset);
	SAME(struct k_file_dedupe_range, struct file_dedupe_range, info);
	SAME(struct k_fsxattr, struct fsxattr, fsx_cowextsize);
	assert_int_equal(sizeof(struct k_io_uring_cqe), 16);
	assert_int_equal(sizeof(struct k_clone_args), 88);
	assert_int_equal(sizeof(struct k_sigaction), 32);
	assert_int_equal(sizeof(struct k_utsname), 6 * 65);
	assert_int_equal(offsetof(struct k_dirent64, d_name), 19);
	assert_int_equal(offsetof(struct k_dirent, d_name), 18);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_names),
		cmocka_unit_test(test_args),
		cmocka_unit_test(test_registers),
		cmocka_unit_test(test_support),
		cmocka_unit_test(test_effect_at_entry),
		cmocka_unit_test(test_variants),
		cmocka_unit_test(test_some_variants),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_some_numbers),
		cmocka_unit_test(test_vocabularies),
		cmocka_unit_test(test_vocabularies_round_trip),
		cmocka_unit_test(test_some_flags),
		cmocka_unit_test(test_places),
		cmocka_unit_test(test_layouts),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
