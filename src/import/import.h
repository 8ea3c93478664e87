/* SPDX-License-Identifier: MIT */
/*
 * Turning files of other formats into a trace.
 *
 *   source: bytes, unpacked  -->  input: peek, lines  -->  importer  -->  sink
 *
 * An importer is a `const struct importer importer_<name>` at the foot of its
 * file and one line in importers.def (doc/howto-add-importer.md). It gets
 * inputs, gives events (by import/sink.h, or to the feed itself), and counts
 * what it did not understand; it neither prints nor exits. All of this belongs
 * to one thread.
 */
#ifndef IMPORT_IMPORT_H
#define IMPORT_IMPORT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attrs.h"
#include "base/buf.h"
#include "base/err.h"
#include "base/progress.h"
#include "import/source.h"
#include "trace/writer.h"

/* A longer line is an error: what a reader may have to hold in memory. */
#define IMPORT_LINE_MAX_BYTES ((size_t)64 << 20)
/* How much of an input a probe gets to see, if the input has that much. */
#define IMPORT_PROBE_BYTES ((size_t)64 << 10)

/* Beyond so many empty lines in a row, or lines without meaning at the beginning, it is no log. */
#define IMPORT_BLANK_MAX 1000000u
#define IMPORT_BAD_MAX 100000u

/* One file to import. */
struct import_input {
	const char *name; /* for messages */
	struct import_source *source; /* NULL: not yet opened, or closed again */
	struct buf ahead; /* read but not yet handed out, from `pos` on */
	size_t pos;
	bool ended; /* the source has no more */
	size_t read_bytes; /* how much is read at a time */
	uint64_t line_no; /* of the line handed out last, from 1 */
	uint32_t nr_blank; /* of the lines handed out last, in a row */
	struct progress *progress; /* counts bytes as they are in the file; may be NULL */
};

MUST_CHECK int import_input_open(struct import_input *in, struct err *err);
void import_input_close(struct import_input *in);
/* The next bytes without taking them: at least `want`, unless the input has fewer. */
MUST_CHECK int import_input_peek(struct import_input *in, size_t want, const uint8_t **ret,
				 size_t *ret_len, struct err *err);
/*
 * The next line without its newline: 1, or 0 at the end, or -errno. Valid until
 * the next call. The last line needs no newline.
 */
MUST_CHECK int import_input_line(struct import_input *in, const char **ret, size_t *ret_len,
				 struct err *err);
/*
 * The beginning of the line after the current one: at least `want` bytes, unless
 * the input has fewer. The current line stays valid, but may move: *text is then
 * another.
 */
MUST_CHECK int import_input_ahead(struct import_input *in, size_t want, const char **text,
				  const char **ret, size_t *ret_len, struct err *err);
/* Takes bytes that a peek has shown. */
void import_input_skip(struct import_input *in, size_t len);

struct import_counts {
	uint64_t nr_lines; /* or records, of a format that has no lines */
	uint64_t nr_events;
	uint64_t nr_not_understood;
	uint64_t nr_values_lost; /* values of events that were not understood, and left out */
};

/* A part of the input that was not understood. */
struct import_complaint {
	const char *input;
	uint64_t line_no;
	const char *why;
};

/* Which of the block layer's events begin a request. */
enum import_events {
	IMPORT_EVENTS_AUTO, /* issues where there are any */
	IMPORT_EVENTS_ISSUE,
	IMPORT_EVENTS_QUEUE,
};

/* Of block traces. */
struct import_block {
	const char
		*device; /* only this one; the name of it, where the format tells none; NULL: all */
	uint64_t time_unit_ns; /* of the times in the input; 0: as the format says */
	enum import_events events;
	const char *columns; /* of the format csv */
};

/* What an importer works on. */
struct import {
	struct import_input *inputs; /* opened and closed by the importer, one or all at a time */
	size_t nr_inputs;
	struct import_input *init; /* a listing of the initial tree; NULL: none was given */
	struct import_block block;
	struct trace_feed *feed;
	struct import_counts counts; /* the importer counts */
	bool strict;
	void (*complain)(void *ctx, const struct import_complaint *c); /* may be NULL */
	void *complain_ctx;
};

/*
 * The current line of an input was not understood; why has the words. 0: it is
 * counted, go on. When that shall be an error, why gets the place too and its
 * status is returned.
 */
MUST_CHECK int import_reject_line(struct import *im, const struct import_input *in,
				  struct err *why);

/*
 * A value in the current line was not understood; its event is made without it.
 * 0: it is counted, go on. When that shall be an error: as import_reject_line().
 */
MUST_CHECK int import_reject_value(struct import *im, const struct import_input *in,
				   struct err *why);

struct importer {
	const char *name;
	const char *summary; /* one line, for help */
	/* How sure it is, 0 to 100, that a file which begins like this is of its format. Pure. */
	int (*probe)(const uint8_t *first, size_t len);
	bool reads_init; /* a listing of the initial tree may be given beside the inputs */
	/* Reads all inputs and feeds the events. 0 or -errno. */
	int (*run)(struct import *im, struct err *err);
};

extern const struct importer *const importers[];
extern const size_t nr_importers;

/* NULL when there is none of that name. */
const struct importer *importer_find(const char *name);
/* The one that is surest, NULL when none knows the format. */
const struct importer *importer_probe(const uint8_t *first, size_t len);

struct import_request {
	const char *format; /* NULL: to be found out from the first input */
	const char *const *paths; /* "-": standard input */
	size_t nr_paths;
	const char *init; /* a listing of the initial tree, or NULL */
	struct import_block block;
	const char *output;
	bool replace; /* an existing output is replaced; else it is an error (-EEXIST) */
	unsigned int file_mode; /* of the output; 0: IO_FILE_MODE */
	bool strict; /* stop at the first thing that is not understood */
	struct progress *progress; /* counts bytes read; may be NULL */
	void (*complain)(void *ctx, const struct import_complaint *c); /* may be NULL */
	void *complain_ctx;
};

/*
 * Makes one trace of all inputs. After a failure there is no output, or still
 * the one that was there before. Things that were not understood are no failure
 * unless it was asked to be strict.
 */
MUST_CHECK int import_files(const struct import_request *rq, struct import_counts *ret,
			    struct err *err);

#endif
