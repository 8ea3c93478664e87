/* SPDX-License-Identifier: MIT */
/*
 * Is a trace whole? Every byte of the file is read and every checksum, hash,
 * reference and count in it is verified, without trust in the index.
 */
#ifndef TRACE_CHECK_H
#define TRACE_CHECK_H

#include <stdbool.h>
#include <stdint.h>

#include "base/err.h"
#include "base/progress.h"

struct check_result {
	bool closed; /* footer and index are there and agree with the file */
	uint64_t nr_blocks, nr_unknown_blocks; /* unknown: of a later version, left alone */
	uint64_t nr_bad_blocks, nr_bad_bytes;
	uint64_t nr_events, nr_streams, nr_records;
	uint64_t nr_missing_events; /* that the streams had before and behind a gap */
	uint64_t nr_blobs, nr_bad_blobs, blob_bytes;
	uint64_t nr_dangling; /* references to data that is not in the file */
	uint64_t nr_losses; /* ledger entries */
	uint64_t nr_grave_losses; /* those that mean events or data of events are missing */
	uint64_t nr_left_out; /* and those that were asked for */
	uint64_t nr_lost_events; /* that the ledger states, and nr_missing_events */
	struct err first_fault; /* empty when there is none */
};

/* Every block and reference is good and the file was closed. */
bool check_intact(const struct check_result *c);
/* Intact, and the ledger does not say that events are missing. */
bool check_ok(const struct check_result *c);
/* And nothing else is missing that was not left out on request. */
bool check_complete(const struct check_result *c);

/* -errno only when the check could not be made: damage is a result. */
MUST_CHECK int trace_check(const char *path, struct progress *progress, struct check_result *ret,
			   struct err *err);

#endif
