/* SPDX-License-Identifier: MIT */
/* Who waited for whom when a run came to a standstill, as text and as JSON. */
#ifndef CLI_REPLAY_WAITS_H
#define CLI_REPLAY_WAITS_H

#include "base/buf.h"
#include "base/json.h"
#include "cli/replay_history.h"
#include "replay/run.h"

void replay_put_waits(const struct run_result *res, const struct history *h, struct buf *b);
void replay_json_waits(struct json *w, const struct run_result *res, const struct history *h);

#endif
