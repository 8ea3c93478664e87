/* SPDX-License-Identifier: MIT */
/* What fidelity_compare() found, for people and for programs. */
#ifndef REPORT_FIDELITY_PRINT_H
#define REPORT_FIDELITY_PRINT_H

#include "base/buf.h"
#include "base/json.h"
#include "report/fidelity.h"

/* The names are paths of traces. */
void fidelity_put_text(const struct fidelity *f, const char *name_a, const char *name_b,
		       struct buf *b);
/* Of several runs of A side by side: the head and the row of A, and the row of each. */
void fidelity_put_row_of_a(const struct fidelity *f, const char *name_a, struct buf *b);
void fidelity_put_row_of_b(const struct fidelity *f, const char *name_b, struct buf *b);
/* The members of an object that the caller has begun. */
void fidelity_put_json(const struct fidelity *f, struct json *w);

#endif
