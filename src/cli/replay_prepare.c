/* SPDX-License-Identifier: MIT */
#include "cli/replay_prepare.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/banned.h"
#include "base/io.h"
#include "base/mem.h"
#include "cli/open_trace.h"
#include "model/blk.h"
#include "plan/plan.h"

/*
 * A file without a name: nothing is left of it, whatever ends us. It is opened
 * by the name that its descriptor has in /proc.
 */
static int temporary_file(int *ret_fd, char **ret_path, struct err *err)
{
	const char *dir = getenv("TMPDIR");
	struct buf name = { 0 };
	int fd, r = 0;

	dir = dir && *dir ? dir : "/tmp";
	fd = open(dir, O_TMPFILE | O_RDWR | O_CLOEXEC, IO_FILE_MODE);
	buf_printf(&name, "%s/reprise-XXXXXX", dir);
	(void)buf_str(&name);
	if (fd < 0) { /* not every file system can */
		fd = mkostemp((char *)name.data, O_CLOEXEC);
		if (fd >= 0)
			(void)unlink((char *)name.data);
	}
	if (fd < 0)
		r = err_set(err, -errno, "cannot make a temporary file in %s", dir);
	buf_clear(&name);
	/* Not /proc/self: the process of the run has other descriptors. */
	buf_printf(&name, "/proc/%d/fd/%d", (int)getpid(), fd);
	*ret_path = xstrdup(buf_str(&name));
	*ret_fd = fd;
	buf_release(&name);
	return r;
}

/* Entries of the ledger about stores through maps; -errno when it cannot be read. */
static int64_t count_unseen_stores(struct trace *t, struct err *err)
{
	struct trace_items *it = NULL;
	struct item *item;
	int64_t nr = 0;
	int r = trace_items_open(t, BLOCK_LEDGER, &it, err);

	while (r >= 0 && (r = trace_items_next(it, &item, err)) > 0) {
		const struct value *kind = args_find(item->row, item->args, "kind");

		nr += kind && kind->type == VALUE_INT && kind->i == LOSS_STORES_UNSEEN;
	}
	trace_items_close(it);
	return r < 0 ? r : nr;
}

static int warn_of_stores(const struct cli *cli, struct trace *t, struct err *err)
{
	int64_t nr = count_unseen_stores(t, err);

	if (nr > 0)
		cli_warn(cli,
			 "%s: some stores through shared maps are missing or late in the trace "
			 "(%lld ledger entries): files may have other contents",
			 trace_path(t), (long long)nr);
	return nr < 0 ? (int)nr : 0;
}

volatile sig_atomic_t replay_interrupted;

static void on_interrupt(int signo)
{
	(void)signo;
	replay_interrupted = 1;
}

void replay_catch_signals(void)
{
	struct sigaction sa = { .sa_handler = on_interrupt };

	(void)sigaction(SIGINT, &sa, NULL); /* with these words they cannot fail */
	(void)sigaction(SIGTERM, &sa, NULL);
}

static int compile_to(const struct cli *cli, const struct prepare_options *o, struct trace *t,
		      const char *path, struct err *err)
{
	struct plan_writer_options writer = { .existing = true, .data = PLAN_DATA_TRACE };
	struct compile_options compile = { 0 };
	struct compile_totals totals;
	struct plan_writer *w;
	int r;

	/* Told by them themselves. */
	if (order_choose(cli, &o->order, t, &compile) != CLI_DONE ||
	    part_choose(cli, &o->part, &compile) != CLI_DONE)
		return -ECANCELED;
	r = warn_of_stores(cli, t, err);
	if (r >= 0)
		r = plan_writer_open(path, t, &writer, &w, err);
	if (r < 0)
		return r;
	compile.progress = cli_progress_begin(cli, "compile", "events", o->quiet);
	r = compile_trace(t, &compile, w, NULL, &totals, err);
	progress_end(compile.progress);
	if (r < 0) {
		plan_writer_abandon(w);
		return r;
	}
	if (totals.nr_unsupported)
		cli_warn(cli, "%s: %llu calls cannot be replayed: 'reprise compile -v' tells more",
			 trace_path(t), (unsigned long long)totals.nr_unsupported);
	if (totals.nr_unknown_copies)
		cli_warn(cli,
			 "%s: %llu calls copy bytes that the trace does not hold: files that they "
			 "write have other contents, which 'reprise verify' reports",
			 trace_path(t), (unsigned long long)totals.nr_unknown_copies);
	return plan_writer_close(w, &totals.plan, err);
}

static int prepare_plan(const struct cli *cli, const struct prepare_options *o, const char *path,
			char **ret, int *ret_fd)
{
	struct err err = { "" };
	struct trace *t;
	int r = trace_open(path, 0, &t, &err);

	if (r < 0)
		return cli_fail(cli, &err);
	if (plan_is_plan(t) && (o->part.from || o->part.to)) {
		trace_close(t);
		return cli_fail_with(cli,
				     "%s: a plan is performed as a whole: give --from and --to to "
				     "'reprise compile'",
				     path);
	}
	if (plan_is_plan(t)) {
		*ret = xstrdup(path);
		trace_close(t);
		return CLI_DONE;
	}
	/* A plan that was cut off before its first action looks the same. */
	if (!trace_footer(t) && !trace_nr_events(t)) {
		trace_close(t);
		return cli_fail_with(cli, "%s was not finished, and has nothing to perform", path);
	}
	r = temporary_file(ret_fd, ret, &err);
	if (!r)
		r = compile_to(cli, o, t, *ret, &err);
	if (r == -ECANCELED) {
		trace_close(t);
		return CLI_FAILED;
	}
	return close_trace(cli, t, r, &err);
}

int prepare_plans(const struct cli *cli, const struct prepare_options *o, char **operands, int nr,
		  struct prepared *ret)
{
	int i, r = CLI_DONE;

	*ret = (struct prepared){ .nr = nr };
	ret->plans = xcalloc((size_t)nr, sizeof(*ret->plans));
	ret->fds = xcalloc((size_t)nr, sizeof(*ret->fds));
	for (i = 0; i < nr; i++)
		ret->fds[i] = -1;
	for (i = 0; i < nr && r == CLI_DONE; i++)
		r = prepare_plan(cli, o, operands[i], &ret->plans[i], &ret->fds[i]);
	return r;
}

void prepared_release(struct prepared *p)
{
	for (int i = 0; i < p->nr; i++) {
		attrs_close_fd(&p->fds[i]);
		free(p->plans[i]);
	}
	free(p->plans);
	free(p->fds);
	*p = (struct prepared){ 0 };
}

/* The tree. */

static bool has_tree(const struct trace *t)
{
	size_t nr, i;
	const struct block_entry *blocks = trace_blocks(t, &nr);

	for (i = 0; i < nr; i++) {
		if (blocks[i].type == BLOCK_TREE)
			return true;
	}
	return false;
}

/* The trace is named in DIR, not a temporary plan of it; but what was inferred is in the plan. */
static struct trace *tree_source(struct plan *p)
{
	struct trace *t = plan_data_source(p);

	return has_tree(t) && !trace_tree_is_partial(t) ? t : plan_container(p);
}

static int make_tree(const struct cli *cli, const struct prepare_options *o,
		     const struct snapshot_source *sources, size_t nr, const char *dir)
{
	struct snapshot_options so = { .cache = o->cache,
				       .privileged_metadata = o->privileged_metadata,
				       .cross_mounts = o->cross_mounts,
				       .locked = o->locked,
				       .stop = &replay_interrupted };
	struct snapshot_result res;
	struct snapshot *s;
	struct err err = { "" };
	size_t nr_entries;
	int r = snapshot_load(SNAPSHOT_INITIAL, sources, nr, SNAPSHOT_CONFLICT_FAIL, &s, &err);

	if (r < 0)
		return cli_fail(cli, &err);
	(void)snapshot_entries(s, &nr_entries);
	if (nr_entries > 1) {
		so.progress = cli_progress_begin(cli, "init", "paths", o->quiet);
		r = snapshot_create(s, dir, &so, &res, &err);
		progress_end(so.progress);
	}
	snapshot_free(s);
	return r < 0 ? cli_fail(cli, &err) : CLI_DONE;
}

int prepare_tree(const struct cli *cli, const struct prepare_options *o, const struct prepared *p,
		 const char *dir)
{
	struct snapshot_source *sources = xcalloc((size_t)p->nr, sizeof(*sources));
	struct plan **plans = xcalloc((size_t)p->nr, sizeof(*plans));
	struct err err = { "" };
	int i, r = 0, status;

	for (i = 0; i < p->nr && r >= 0; i++) {
		r = plan_open(p->plans[i], &plans[i], &err);
		if (r >= 0)
			sources[i] = (struct snapshot_source){ .records = tree_source(plans[i]),
							       .data = plan_data_source(plans[i]) };
	}
	status = r < 0 ? cli_fail(cli, &err) : make_tree(cli, o, sources, (size_t)p->nr, dir);
	for (i = 0; i < p->nr; i++)
		plan_close(plans[i]);
	free(plans);
	free(sources);
	return status;
}

static int check_level(struct plan *p, bool want_block, struct err *err)
{
	struct buf text = { 0 };
	const char *level = trace_meta(plan_container(p), "level", &text);
	bool block = level && !strcmp(level, BLK_LEVEL);

	buf_release(&text);
	if (block == want_block)
		return 0;
	return err_set(err, -EINVAL,
		       block ? "there are block requests: give a --device, not a directory"
			     : "there are no block requests: give a directory, not --device");
}

int prepared_check(const struct cli *cli, const char *path, const struct plan_checks *c,
		   struct err *err)
{
	struct progress *progress;
	struct plan *p;
	int r;

	r = plan_open(path, &p, err);
	if (r < 0)
		return r;
	r = check_level(p, c->block, err);
	if (!r && !c->skip) {
		progress = cli_progress_begin(cli, "check", "actions", c->quiet);
		r = plan_check(p, progress, err);
		progress_end(progress);
		if (r < 0)
			r = err_wrap(err, r, "%s", path);
	}
	plan_close(p);
	return r;
}
