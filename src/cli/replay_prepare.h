/* SPDX-License-Identifier: MIT */
/* What a replay needs before it starts: plans of the traces that it was given, and the tree in its directory. */
#ifndef CLI_REPLAY_PREPARE_H
#define CLI_REPLAY_PREPARE_H

#include "cli/cli.h"
#include "cli/order_options.h"
#include "snapshot/create.h"

struct prepare_options {
	struct order_choice order;
	struct part_choice part;
	enum snapshot_cache cache;
	bool privileged_metadata, cross_mounts, quiet;
	bool locked; /* the caller holds the lock of DIR */
};

/*
 * While plans are made and checked nothing has to be tidied up, and a signal ends the program. From
 * here on SIGINT and SIGTERM ask it to end by itself.
 */
void replay_catch_signals(void);
/* A signal came: nonzero. */
extern volatile sig_atomic_t replay_interrupted;

/* Plans, one for each operand. Those that were compiled here are temporary files. */
struct prepared {
	char **plans;
	int *fds; /* of plans that were made here, which have no other name; else -1 */
	int nr;
};

/* Operands are traces or plans. CLI_DONE; or CLI_FAILED, having said why. Released in either case. */
MUST_CHECK int prepare_plans(const struct cli *cli, const struct prepare_options *o,
			     char **operands, int nr, struct prepared *ret);
/* Makes or repairs the tree that the plans start from; nothing when they have none. */
MUST_CHECK int prepare_tree(const struct cli *cli, const struct prepare_options *o,
			    const struct prepared *p, const char *dir);
void prepared_release(struct prepared *p);

struct plan_checks {
	bool block; /* it has to be one of block requests; else none of them */
	bool skip; /* its actions are taken for sound */
	bool quiet;
};

/* A plan is foreign: it must be sound as a whole, and of the right kind, before any of it is performed. */
MUST_CHECK int prepared_check(const struct cli *cli, const char *path, const struct plan_checks *c,
			      struct err *err);

#endif
