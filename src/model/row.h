/* SPDX-License-Identifier: MIT */
/*
 * The table of all that can be in a trace. A row says what one call, event or
 * record is made of; `struct arg` says what one argument (or one field of a
 * struct) is. Everything else (what to copy, how to store, print, parse) follows
 * from these. Rows are constant and shared by all threads.
 *
 * The .def files are written with the words of model/words.h; see
 * doc/howto-add-syscall.md.
 */
#ifndef MODEL_ROW_H
#define MODEL_ROW_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum kind {
#define KIND(name, wire, width) KIND_##name,
#include "model/kinds.def"
#undef KIND
	KIND_MAX,
};

struct kind_info {
	const char *name;
	char wire;
	uint8_t width_bytes;
};

extern const struct kind_info kind_infos[KIND_MAX];

/* Vocabularies: names for bits and numbers (flags.def). */
enum set_id {
	SET_none,
#define SET(name) SET_##name,
#define F(name, value)
#define M(name, value, mask)
#define END_SET
#include "model/flags.def"
#undef SET
#undef F
#undef M
#undef END_SET
	SET_MAX,
};

enum struct_id {
	STRUCT_none,
#define STRUCT(name, ctype) STRUCT_##name,
#define FIELD(...)
#define EXTRA(...)
#define END_STRUCT
#include "model/structs.def"
#undef STRUCT
#undef FIELD
#undef EXTRA
#undef END_STRUCT
	STRUCT_MAX,
};

enum arg_dir {
	ARG_IN = 1, /* read before the call */
	ARG_OUT = 2, /* read after it */
};

/* Where a length or a count comes from: an argument (A0...), the result, or a constant. */
enum arg_len {
	LEN_NONE,
	A0,
	A1,
	A2,
	A3,
	A4,
	A5,
	A6,
	A7,
	A8,
	A9,
	A10,
	A11,
	RET = 0x20,
	LEN_CONST = 0x40, /* N(n): exactly n */
};

/* Which register holds an argument: that of its position, another one (A0...), or none. */
enum arg_reg {
	REG_OWN = 0,
	REG_NONE = 0x3f, /* the recorder finds it elsewhere, or an import has it */
};

/* How far a PATH is looked up. Flags of the call (AT_SYMLINK_NOFOLLOW, O_NOFOLLOW ...) come on top. */
enum arg_look {
	LOOK_FOLLOW,
	LOOK_NOFOLLOW, /* a symlink at its end is meant itself; also a name that the call makes or removes */
	LOOK_TEXT, /* not looked up: the target of a symlink */
};

struct arg {
	const char *name; /* stable: on disk and in JSON */
	uint8_t kind; /* enum kind */
	uint8_t elem; /* enum kind of the elements of a list of scalars */
	uint8_t width_bytes; /* of a scalar or element in memory; 0: as its kind says */
	uint8_t dir; /* enum arg_dir, what a pointer's target is read for */
	uint8_t len; /* enum arg_len */
	uint8_t cap; /* enum arg_len: never more than this argument says, whatever len does */
	uint8_t reg; /* enum arg_reg or A0... */
	uint8_t look; /* enum arg_look */
	bool here; /* of a field: stands in the struct itself, not behind a pointer in it */
	uint16_t set; /* enum set_id, for FLAGS, ENUM and lists of them */
	uint16_t struct_id; /* enum struct_id */
};

/* Where a field is in its C struct. */
struct field_place {
	uint16_t offset_bytes; /* OFFSET_NONE: not in memory, found by the recorder elsewhere */
	uint16_t width_bytes;
};
#define OFFSET_NONE 0xffff

struct struct_desc {
	const char *name;
	uint16_t size_bytes; /* of the C struct; 0: there is none */
	uint16_t nr_fields; /* at most STRUCT_FIELDS_MAX */
	const struct arg *fields;
	const struct field_place *(*places)(void); /* one for each field */
};
#define STRUCT_FIELDS_MAX 64

extern const struct struct_desc struct_descs[STRUCT_MAX];

/* What a row is about: for filters and for sums. */
enum row_class {
	C_DESC = 1, /* descriptors: open, close, dup, fcntl */
	C_DATA, /* reads, writes, seeks, truncation, allocation, advice */
	C_NAME, /* names made, moved and removed */
	C_META, /* stat, chmod, chown, times, access, statfs */
	C_XATTR,
	C_DIR, /* listings */
	C_SYNC,
	C_MAP, /* memory maps */
	C_PIPE,
	C_NET,
	C_AIO,
	C_URING,
	C_PROC, /* processes and threads */
	C_CWD, /* cwd, root, umask, mounts */
	C_WAIT,
	C_LOCK,
	C_SIGNAL,
	C_OTHER,
	C_EVENT, /* what is not a call */
	C_BLOCK, /* block requests */
	C_RECORD, /* trees, metadata, ledger: not events */
	C_MAX,
	C_MASK = 0x1f,

	A_ENTRY =
		0x20, /* gives something up: takes effect when it is entered (DESIGN: effect order) */
	A_WAITS = 0x40, /* the time in the call is waiting, not I/O */
	A_MAC = 0x80, /* a call of macOS, from imported traces */
};

extern const char *const class_names[C_MAX];

enum row_result {
	RESULT_ZERO, /* 0, or an error */
	RESULT_NEW_FD,
	RESULT_BYTES_READ,
	RESULT_BYTES_WRITTEN,
	RESULT_BYTES_COPIED, /* read from one descriptor and written to another */
	RESULT_COUNT,
	RESULT_OFFSET,
	RESULT_ADDRESS,
	RESULT_PID,
	RESULT_ID, /* uid, gid, session ... */
	RESULT_MODE,
	RESULT_OPEN_FLAGS,
	RESULT_FD_FLAGS,
	RESULT_VALUE, /* any other number */
	RESULT_NEVER, /* does not return when it succeeds */
	RESULT_NOTHING, /* not a call */
};

/* How the model and the replayer treat a row. Each layer expands the table for itself. */
enum row_support {
	SUPPORT_GENERIC, /* by the kinds of the arguments alone */
	SUPPORT_SPECIAL, /* by a function of its own */
	SUPPORT_NOTHING, /* nothing to do: the call neither changes nor reads the storage */
	SUPPORT_SIMULATED, /* not made again; its recorded outcome stands */
	SUPPORT_WAITING, /* not made again: edges and think time stand for it */
	SUPPORT_UNSUPPORTED, /* a stated fact */
};

enum row_sort {
	ROW_CALL,
	ROW_EVENT,
	ROW_RECORD,
};

struct row {
	uint16_t id; /* on disk, never reused; 0: no row */
	uint8_t sort; /* enum row_sort */
	uint8_t class; /* enum row_class with its attributes */
	uint8_t result; /* enum row_result */
	uint8_t model, replay; /* enum row_support */
	uint8_t nr_args;
	const char *name;
	const struct arg *args;
};

#define ROW_ARGS_MAX 16
#define ROW_ID_MAX 4096

enum row_id {
#define SYSCALL(id, name, class, args, result, model, replay) SC_##name = (id),
#include "model/syscalls.def"
#undef SYSCALL
#define EVENT(id, name, class, args) EV_##name = (id),
#include "model/events.def"
#undef EVENT
#define RECORD(id, name, args) REC_##name = (id),
#include "model/records.def"
#undef RECORD
};

static inline enum row_class row_class(const struct row *row)
{
	return (enum row_class)(row->class & C_MASK);
}

/*
 * Without which calls on chosen paths cannot be understood: processes, cwd, root and
 * umask, waiting, requests that may be about any descriptor. Kept with any choice of paths.
 */
bool row_is_context(const struct row *row);

/* Of what a trace has: that a replay performs, or might. */
static inline bool row_is_performed(const struct row *row)
{
	return row->sort == ROW_CALL || row->id == EV_map_store;
}

/* It gives back names of xattrs, a zero after each. */
bool row_lists_xattrs(const struct row *row);
/* NULL when there is no such row. */
const struct row *row_by_id(unsigned int id);
/* Searches the table; a parser with many look-ups keeps a map of its own. */
const struct row *row_by_name(const char *name);

/*
 * Multiplexed calls (fcntl, ioctl, futex, prctl ...) have a row per variant
 * and a row for what no variant covers (variants.def).
 */
struct row_variant {
	uint16_t base; /* the id of the kernel's call */
	uint16_t id; /* the variant's row */
	uint8_t reg; /* the argument that selects */
	uint64_t mask, value; /* (argument & mask) == value */
};

/* The row for a call with these register values; base is the row of the kernel's call. */
const struct row *row_select_variant(const struct row *base, const uint64_t regs[6]);
/* All of them, in the order in which they are tried; NULL behind the last. */
const struct row_variant *row_variant_at(size_t i);
/* How this row is selected, or NULL when it is no variant. */
const struct row_variant *row_variant_of(const struct row *row);

/* The row of a kernel's call number, NULL for numbers without one. */
enum arch {
	ARCH_X86_64,
	ARCH_I386,
	ARCH_AARCH64,
	ARCH_MAX,
};

const struct row *row_by_nr(enum arch arch, unsigned int nr);
/* Bit n: argument n takes two registers, the lower half first. 0 on 64-bit machines. */
unsigned int row_wide_args(enum arch arch, unsigned int nr);
/* The kernel's number of a call, -1 when the architecture has none. */
int row_nr(enum arch arch, const struct row *row);

#endif
