/* SPDX-License-Identifier: MIT */
/*
 * Events, records and their values as text, in two forms:
 *
 *   PRINT_HUMAN   openat(AT_FDCWD, "/x", O_RDONLY|O_CLOEXEC) = 3</x>
 *   PRINT_EXACT   openat(dirfd=AT_FDCWD, path="/x", flags=O_RDONLY|O_CLOEXEC) = 3
 *
 * The human form is to be read, shortened where that helps. The exact form
 * loses nothing: model/parse.h reads it back into the same values
 * (doc/trace-text.md). Both follow from the kinds of the arguments; no call is
 * known here by its name.
 *
 * Everything appends to a buffer and keeps no state; any thread may call it.
 */
#ifndef MODEL_PRINT_H
#define MODEL_PRINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "model/event.h"

enum print_form {
	PRINT_HUMAN,
	PRINT_EXACT,
};

struct print_style {
	enum print_form form;
	/* What follows is for PRINT_HUMAN. */
	unsigned int
		string_max; /* how many bytes of a string or buffer are shown; paths are whole */
	unsigned int items_max; /* how many items of a list are shown */
	bool full; /* all fields of long structs, not only the telling ones */
	bool extras; /* after the outcome, in braces: what is in no register of the call */
	void *ctx; /* of the functions below, each of which may be NULL */
	/* The path behind a descriptor at this moment, NULL when it is not known. */
	const char *(*fd_path)(void *ctx, int fd);
	/*
	 * The first bytes, at most max, of data that is kept by refs: how many were
	 * found, and where. Valid until the next call.
	 */
	size_t (*load)(void *ctx, const struct data *d, size_t max, const uint8_t **ret);
	/* An argument of a call in a form of its own; false: nothing was printed, it has none. */
	bool (*arg)(void *ctx, struct buf *out, const struct row *row, const struct value *args,
		    unsigned int i);
};

extern const struct print_style print_human; /* strings up to 32 bytes, no functions */
extern const struct print_style print_exact;

void print_value(struct buf *out, const struct arg *a, const struct value *v,
		 const struct print_style *style);
/* What stands between the parentheses. */
void print_args(struct buf *out, const struct row *row, const struct value *args,
		const struct print_style *style);
/* " = 3", " = -1 ENOENT (No such file or directory)", " = ?"; nothing where there is no outcome. */
void print_outcome(struct buf *out, const struct event *ev, const struct print_style *style);

/* The name to print a row under: in the human form a variant bears that of its kernel's call. */
const char *print_row_name(const struct row *row, enum print_form form);
/* name(arguments) = outcome, and the extras. */
void print_call(struct buf *out, const struct event *ev, const struct print_style *style);

/* Lines of the exact form, without the newline. */
void print_event_line(struct buf *out, const struct event *ev, uint32_t generation);
void print_item_line(struct buf *out, const struct item *item);
void print_blob_line(struct buf *out, struct hash128 hash, const void *bytes, size_t len);
/* A thread's life: how many events of it follow. */
void print_stream_line(struct buf *out, uint32_t pid, uint32_t tid, uint32_t generation,
		       uint64_t nr_events);

/* In double quotes, everything but printable ASCII escaped. */
void print_quoted(struct buf *out, const void *bytes, size_t len);
/* 32 hex digits, high half first. */
void print_hash(struct buf *out, struct hash128 hash);

/* The type bits of a mode. */
struct mode_type {
	const char *name;
	uint32_t mode;
};

#define MODE_TYPE_MASK 0170000u
#define NR_MODE_TYPES 7
extern const struct mode_type mode_types[NR_MODE_TYPES];

/* A DIRFD that means the current directory. */
#define DIRFD_CWD (-100)
/* A UID or GID that means none, "-1" in text. */
#define ID_NONE UINT32_MAX

#endif
