/* SPDX-License-Identifier: MIT */
/* What the reports of runs have in common, whether of calls or of block requests. */
#ifndef CLI_REPLAY_PUT_H
#define CLI_REPLAY_PUT_H

#include "base/buf.h"
#include "base/json.h"
#include "replay/spread.h"

/* A line: the label, padded, and a duration. */
void replay_put_time(struct buf *b, const char *label, uint64_t ns);
/* A line with percentiles; none if there is nothing. */
void replay_put_lateness(struct buf *b, const struct spread *s);
/* An object with that name: count, mean, percentiles. */
void replay_json_spread(struct json *w, const char *name, const struct spread *s);
double replay_mean(const struct spread *s);

#endif
