/* SPDX-License-Identifier: MIT */
/*
 * Where an importer's events go: it keeps the streams, one for each thread's
 * life, opened with the first event and closed when the thread ends; it numbers
 * the events in the order in which they come, and counts them. Only what a
 * stream must have is checked: an event comes after those of its thread.
 *
 * A zeroed sink with `im` set is ready. Belongs to one thread.
 */
#ifndef IMPORT_SINK_H
#define IMPORT_SINK_H

#include "base/map.h"
#include "import/import.h"

struct import_sink {
	struct import *im;
	struct map threads; /* tid -> struct sink_thread */
	struct sink_thread *last; /* the one that was asked for last */
	uint64_t last_seq;
};

/*
 * Appends the event to the stream of ev->tid in process ev->pid (a tid that is
 * seen in another process than before is another thread). seq 0 becomes the next
 * number. The arguments are borrowed. An event that is too large for a trace is
 * refused with -EBADMSG, so that import_reject_line() can be asked what to do.
 */
MUST_CHECK int import_sink_event(struct import_sink *sink, struct event *ev, struct err *err);
/* The thread has ended: a later event with its tid begins another life. */
MUST_CHECK int import_sink_end_thread(struct import_sink *sink, uint32_t tid, struct err *err);
/* Ends all threads and frees what the sink holds, also when it fails. */
MUST_CHECK int import_sink_close(struct import_sink *sink, struct err *err);

/* Records beside the events. */
MUST_CHECK int import_sink_item(struct import_sink *sink, const struct item *item, struct err *err);
MUST_CHECK int import_sink_meta(struct import_sink *sink, const char *key, const char *value,
				struct err *err);
MUST_CHECK int import_sink_loss(struct import_sink *sink, const struct loss *loss, struct err *err);
/* What every import says of itself: import.format, and import.source for each input. */
MUST_CHECK int import_sink_describe(struct import_sink *sink, const char *format, struct err *err);

#endif
