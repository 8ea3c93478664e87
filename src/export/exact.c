/* SPDX-License-Identifier: MIT */
/* The exact text form (doc/trace-text.md): loses nothing, and is read back. */
#include "report/exact.h"
#include "base/banned.h"
#include "export/export.h"

static int exact_run(struct export *ex, struct err *err)
{
	struct trace_query q = { .progress = ex->progress };

	ex->counts.nr_written = trace_nr_events(ex->t);
	return exact_print_trace(ex->t, &q, NULL, ex->out, err);
}

const struct exporter exporter_exact = {
	.summary = "the text that `reprise show --exact` prints",
	.run = exact_run,
};
