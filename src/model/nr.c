/* SPDX-License-Identifier: MIT */
/*
 * Call numbers and rows: an array per machine for each direction. At the foot:
 * what makes a second row with the same id, a second row for a number, or a
 * second number for a row (NR_ALSO apart) an error of compilation.
 */
#include <stddef.h>

#include "base/attrs.h"
#include "model/row.h"

struct nr_entry {
	uint16_t id; /* 0: no such call */
	uint8_t wide; /* bit n: argument n takes two registers */
};

/* From number to row. */
#define NR_ALSO_WIDE(nr, row, args) [nr] = { SC_##row, args },
#define NR_ALSO(nr, row) NR_ALSO_WIDE(nr, row, 0)
#define NR_WIDE(nr, row, args) NR_ALSO_WIDE(nr, row, args)
#define NR(nr, row) NR_ALSO_WIDE(nr, row, 0)
static const struct nr_entry entries_x86_64[] = {
#include "model/nr_x86_64.def"
};
static const struct nr_entry entries_i386[] = {
#include "model/nr_i386.def"
};
static const struct nr_entry entries_aarch64[] = {
#include "model/nr_aarch64.def"
};
#undef NR_ALSO_WIDE
#undef NR_ALSO
#undef NR_WIDE
#undef NR

/* From the id of a row to its number, plus one. */
#define NR_ALSO_WIDE(nr, row, args)
#define NR_ALSO(nr, row)
#define NR_WIDE(nr, row, args) NR(nr, row)
#define NR(nr, row) [SC_##row] = (nr) + 1,
static const uint16_t numbers_x86_64[] = {
#include "model/nr_x86_64.def"
};
static const uint16_t numbers_i386[] = {
#include "model/nr_i386.def"
};
static const uint16_t numbers_aarch64[] = {
#include "model/nr_aarch64.def"
};
#undef NR_ALSO_WIDE
#undef NR_ALSO
#undef NR_WIDE
#undef NR

#define MACHINE(name)                                                                              \
	{                                                                                          \
		.entries = entries_##name, .nr_entries = ARRAY_LEN(entries_##name),                \
		.numbers = numbers_##name, .nr_numbers = ARRAY_LEN(numbers_##name),                \
	}
static const struct {
	const struct nr_entry *entries;
	size_t nr_entries;
	const uint16_t *numbers;
	size_t nr_numbers;
} machines[ARCH_MAX] = {
	[ARCH_X86_64] = MACHINE(x86_64),
	[ARCH_I386] = MACHINE(i386),
	[ARCH_AARCH64] = MACHINE(aarch64),
};

const struct row *row_by_nr(enum arch arch, unsigned int nr)
{
	if (nr >= machines[arch].nr_entries || !machines[arch].entries[nr].id)
		return NULL;
	return row_by_id(machines[arch].entries[nr].id);
}

unsigned int row_wide_args(enum arch arch, unsigned int nr)
{
	return nr < machines[arch].nr_entries ? machines[arch].entries[nr].wide : 0;
}

int row_nr(enum arch arch, const struct row *row)
{
	if (row->id >= machines[arch].nr_numbers)
		return -1;
	return machines[arch].numbers[row->id] - 1;
}

static void UNUSED ids_are_unique(unsigned int id)
{
	switch (id) {
#define SYSCALL(id_, ...) case id_:
#include "model/syscalls.def"
#undef SYSCALL
#define EVENT(id_, ...) case id_:
#include "model/events.def"
#undef EVENT
#define RECORD(id_, ...) case id_:
#include "model/records.def"
#undef RECORD
		break;
	}
}

#define NR_ALSO_WIDE(nr, row, args) case nr:
#define NR_ALSO(nr, row) case nr:
#define NR_WIDE(nr, row, args) case nr:
#define NR(nr, row) case nr:
static void UNUSED numbers_are_unique(enum arch arch, unsigned int nr)
{
	if (arch == ARCH_X86_64)
		switch (nr) {
#include "model/nr_x86_64.def"
			break;
		}
	else if (arch == ARCH_I386)
		switch (nr) {
#include "model/nr_i386.def"
			break;
		}
	else
		switch (nr) {
#include "model/nr_aarch64.def"
			break;
		}
}
#undef NR_ALSO_WIDE
#undef NR_ALSO
#undef NR_WIDE
#undef NR

#define NR_ALSO_WIDE(nr, row, args)
#define NR_ALSO(nr, row)
#define NR_WIDE(nr, row, args) case SC_##row:
#define NR(nr, row) case SC_##row:
static void UNUSED rows_are_unique(enum arch arch, unsigned int id)
{
	if (arch == ARCH_X86_64)
		switch (id) {
#include "model/nr_x86_64.def"
			break;
		}
	else if (arch == ARCH_I386)
		switch (id) {
#include "model/nr_i386.def"
			break;
		}
	else
		switch (id) {
#include "model/nr_aarch64.def"
			break;
		}
}
