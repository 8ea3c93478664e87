/* SPDX-License-Identifier: MIT */
/* The trees of a trace or of a plan, for the commands that take either. */
#ifndef CLI_OPEN_TREE_H
#define CLI_OPEN_TREE_H

#include "cli/cli.h"
#include "plan/plan.h"
#include "snapshot/tree.h"

struct tree_file {
	struct snapshot_source source;
	struct plan *plan; /* NULL: a trace */
};

MUST_CHECK int tree_file_open(const char *path, struct tree_file *ret, struct err *err);
/*
 * Closes it. When the command was done so far (CLI_DONE, CLI_DIFFERS), what is
 * missing at the end of the file is told as close_trace() does.
 */
MUST_CHECK int tree_file_close(const struct cli *cli, struct tree_file *f, int status);

#endif
