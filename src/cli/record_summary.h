/* SPDX-License-Identifier: MIT */
/* What `reprise record` says of a recording, for programs: --summary. */
#ifndef CLI_RECORD_SUMMARY_H
#define CLI_RECORD_SUMMARY_H

#include <stdio.h>

#include "record/recorder.h"

/* Nothing is missing that was not left out on request, and the trace is where it was written. */
bool record_is_complete(const struct record_result *res);
/* One object; whether it could be written is for the caller to ask `out`. */
void record_summary_json(FILE *out, const struct record_options *o,
			 const struct record_result *res);

#endif
