/* SPDX-License-Identifier: MIT */
/*
 * Events and records as JSON: one object each, with keys that stay. Values
 * follow from the kinds of the arguments:
 *
 *   numbers            1, also addresses, modes, descriptors
 *   FLAGS, ENUM ...    "O_RDWR|O_CREAT", "SEEK_SET"; numbers that have no name stay numbers
 *   PATH, STR          "text"; "name_encoding": "latin-1" beside it when it is not UTF-8
 *   BUF                {"length", "kept", "data", "hash"}: data when it stands in the event or
 *                      was asked for; hash (of each MiB, joined by "+") when it does not
 *   HASH               32 hex digits
 *   structs, lists     {"field": ...}, [...]
 *   null               a null pointer; {"address"}: a pointer whose target was not read
 *
 * What is not known is left out.
 */
#ifndef REPORT_EVENT_JSON_H
#define REPORT_EVENT_JSON_H

#include <stdbool.h>

#include "base/json.h"
#include "model/event.h"
#include "report/fdpaths.h"
#include "trace/reader.h"

/* More of one buffer is not printed. */
#define EVENT_JSON_DATA_MAX ((size_t)16 << 20)

struct event_json {
	struct trace *trace; /* for data that is not in the event; may be NULL */
	struct fdpaths *paths; /* for the paths of descriptors; may be NULL */
	bool data; /* all of the data, not only what stands in the event */
	struct buf scratch;
};

void event_json_release(struct event_json *e);

/* paths: as show has it: applied already when the event opens something, else not yet. */
void event_json_put(struct event_json *e, struct json *w, const struct event *ev);
void event_json_put_item(struct event_json *e, struct json *w, const struct item *item);

#endif
