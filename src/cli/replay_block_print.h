/* SPDX-License-Identifier: MIT */
/* The report of a run of block requests, as text and as JSON. */
#ifndef CLI_REPLAY_BLOCK_PRINT_H
#define CLI_REPLAY_BLOCK_PRINT_H

#include <stdio.h>

#include "replay/blk_run.h"

void replay_block_print_text(const struct blk_run_result *res, FILE *out);
void replay_block_print_json(const struct blk_run_result *res, FILE *out);

#endif
