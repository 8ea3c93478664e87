/* SPDX-License-Identifier: MIT */
/*
 * Events and records from one trace into another. Data that stands in the
 * source's blob store is loaded and stored again, a piece at a time; what is
 * known by its hash alone stays so.
 */
#ifndef TRACE_COPY_H
#define TRACE_COPY_H

#include "base/arena.h"
#include "base/err.h"
#include "model/event.h"
#include "trace/reader.h"
#include "trace/writer.h"

/*
 * Moves the data of values, nested ones too, in place: references then lead into
 * the store of `to`. New parts are put into the arena. 0; 1 when some of it is
 * gone from the source, its hash was kept; -errno.
 */
MUST_CHECK int trace_copy_values(struct trace *from, struct trace_feed *to, struct value *values,
				 uint32_t nr, struct arena *a, struct err *err);

/*
 * Both change the values in place: references then lead into the new store. New
 * parts are put into the arena, which must live until the call returns only.
 *
 * 0 when all went over. 1 when data is gone from the source (its block is
 * missing or damaged): its hash was kept. -EOPNOTSUPP: a row that the table does
 * not know was not written, and it is for the caller to say so in the ledger.
 * -E2BIG: too large an event for a block; the ledger of the new trace says so.
 * Other errors end the writing.
 */
MUST_CHECK int trace_copy_event(struct trace *from, struct trace_feed *to, struct trace_stream *s,
				struct event *ev, struct arena *a, struct err *err);
MUST_CHECK int trace_copy_item(struct trace *from, struct trace_feed *to, struct item *item,
			       struct arena *a, struct err *err);

#endif
