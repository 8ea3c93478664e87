/* SPDX-License-Identifier: MIT */
#include "cli/replay_block.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/banned.h"
#include "base/mem.h"
#include "cli/replay_block_print.h"
#include "cli/replay_prepare.h"

#define BUNDLE_DEFAULT 64
#define BUNDLE_MAX 4096

const char *const replay_block_engines[] = { "auto", "io_uring", "aio", NULL };
const char *const replay_block_waits[] = { "number", "parents", NULL };
const char *const replay_block_modes[] = { "timed", "think", "afap", "load", NULL };

/* The run. */

struct watching {
	const struct cli *cli;
	const struct block_replay *o;
	struct progress *progress;
	uint64_t shown;
};

static bool want_stop(void *arg)
{
	(void)arg;
	return replay_interrupted;
}

static void show_progress(void *arg, uint64_t nr_done, uint64_t nr_requests)
{
	struct watching *w = arg;

	progress_set_total(w->progress, nr_requests);
	progress_add(w->progress, nr_done - w->shown);
	w->shown = nr_done;
}

static void show_note(void *arg, const char *text)
{
	struct watching *w = arg;

	if (!w->o->quiet)
		cli_warn(w->cli, "%s", text);
}

static int status_of(const struct cli *cli, const struct blk_run_result *res)
{
	if (res->interrupted)
		return cli_fail_with(cli, "interrupted");
	return res->nr_differ || res->nr_beyond ? CLI_DIFFERS : CLI_DONE;
}

static int run_plan(const struct cli *cli, const struct blk_run_options *ro,
		    const struct block_replay *o, const struct blk_target_request *targets,
		    uint32_t nr, const char *plan)
{
	struct watching watching = { .cli = cli, .o = o };
	struct blk_run_watcher w = { .arg = &watching,
				     .want_stop = want_stop,
				     .progress = show_progress,
				     .note = show_note };
	struct blk_run_result *res;
	struct err err = { "" };
	int r;

	watching.progress = cli_progress_begin(cli, "replay", "requests", o->quiet);
	r = blk_run_perform(plan, targets, nr, ro, &w, &res, &err);
	progress_end(watching.progress);
	if (r < 0)
		return cli_fail(cli, &err);
	if (o->json)
		replay_block_print_json(res, cli->out);
	else
		replay_block_print_text(res, cli->out);
	r = status_of(cli, res);
	blk_run_result_free(res);
	return r;
}

static int parse_factor(const char *text, const char *name, double *ret, struct err *err)
{
	char *end;

	*ret = 1;
	if (!text)
		return 0;
	*ret = strtod(text, &end);
	if (end == text || *end || !(*ret >= 0) || *ret > 1e9)
		return err_set(err, -EINVAL, "--%s: '%s' is no factor", name, text);
	return 0;
}

static int fill_options(const struct block_options *b, struct blk_run_options *ro, struct err *err)
{
	if (parse_factor(b->scale_server, "scale-server", &ro->scale_server, err) < 0 ||
	    parse_factor(b->scale_storage, "scale-storage", &ro->scale_storage, err) < 0)
		return -EINVAL;
	if (b->mode != BLK_MODE_THINK && b->mode != BLK_MODE_TIMED &&
	    (b->scale_server || b->scale_storage))
		return err_set(err, -EINVAL,
			       "--scale-server and --scale-storage are for --mode=timed and think");
	if (b->mode != BLK_MODE_THINK && b->wait != BLK_WAIT_NUMBER)
		return err_set(err, -EINVAL, "--wait-for is for --mode=think");
	if (b->submitters > BLK_SUBMITTERS_MAX)
		return err_set(err, -EINVAL, "--submitters is at most %u", BLK_SUBMITTERS_MAX);
	if (b->poll && b->engine == BLK_ENGINE_AIO)
		return err_set(err, -EINVAL, "--poll needs --block-engine=io_uring");
	if (b->wrap && b->fit)
		return err_set(err, -EINVAL, "--wrap and --fit do not go together");
	if (b->compress > 100 || b->dedup > 100)
		return err_set(err, -EINVAL, "--compress and --dedup are percentages");
	if (b->bundle_size > BUNDLE_MAX || b->depth > 32768)
		return err_set(err, -EINVAL, "--bundle-size is at most %u, --depth at most 32768",
			       BUNDLE_MAX);
	if (b->offset_bytes > INT64_MAX / 2)
		return err_set(err, -EINVAL, "--offset is too large");
	return 0;
}

/* A name can have slashes, too, but it begins otherwise. */
static bool is_path(const char *text)
{
	return text[0] == '/' || !strncmp(text, "./", 2) || !strncmp(text, "../", 3);
}

/* [NAME=]TARGET; a target with an equal sign in it can be written as a path. */
static struct blk_target_request *split_targets(const struct block_options *b, char **copies)
{
	struct blk_target_request *t = xcalloc(b->devices.len, sizeof(*t));

	for (size_t i = 0; i < b->devices.len; i++) {
		char *eq;

		copies[i] = xstrdup(b->devices.items[i]);
		eq = strchr(copies[i], '=');
		if (eq && !is_path(copies[i])) {
			*eq = '\0';
			t[i] = (struct blk_target_request){ .path = eq + 1, .device = copies[i] };
		} else {
			t[i].path = copies[i];
		}
	}
	return t;
}

int replay_block(const struct cli *cli, const struct block_options *b, const struct block_replay *o,
		 char *trace)
{
	struct blk_run_options ro = {
		.mode = b->mode,
		.wait = b->wait,
		.scale = o->scale,
		.depth = (uint32_t)b->depth,
		.submitters = b->submitters ? (uint32_t)b->submitters : 1,
		.engine = b->engine,
		.realtime = b->realtime,
		.bundle_ns = b->bundle_ns,
		.bundle_max = b->bundle_size ? (uint32_t)b->bundle_size : BUNDLE_DEFAULT,
		.place = b->wrap  ? BLK_PLACE_WRAP
			 : b->fit ? BLK_PLACE_FIT
				  : BLK_PLACE_SAME,
		.offset_bytes = b->offset_bytes,
		.writes = b->writes,
		.destroy_data = b->destroy_data,
		.create = b->create,
		.buffered = b->buffered,
		.poll = b->poll,
		.tune = b->tune,
		.observe = b->observe,
		.compress_percent = (uint32_t)b->compress,
		.dedup_percent = (uint32_t)b->dedup,
		.output = o->output,
		.replace = o->force,
		.file_mode = o->file_mode,
	};
	struct prepare_options po = { .order = o->order, .quiet = o->quiet };
	struct plan_checks checks = { .block = true, .skip = o->no_check, .quiet = o->quiet };
	struct blk_target_request *targets;
	struct prepared prepared;
	struct err err = { "" };
	char **copies;
	int r;

	if (fill_options(b, &ro, &err) < 0)
		return cli_fail(cli, &err);
	/* Only one mode asks for edges, and they are many where many were in flight. */
	if (b->mode != BLK_MODE_THINK && !po.order.order)
		po.order.order = "none";
	copies = xcalloc(b->devices.len, sizeof(*copies));
	targets = split_targets(b, copies);
	r = prepare_plans(cli, &po, &trace, 1, &prepared);
	if (r == CLI_DONE && prepared_check(cli, prepared.plans[0], &checks, &err) < 0)
		r = cli_fail(cli, &err);
	replay_catch_signals();
	if (r == CLI_DONE)
		r = run_plan(cli, &ro, o, targets, (uint32_t)b->devices.len, prepared.plans[0]);
	prepared_release(&prepared);
	for (size_t i = 0; i < b->devices.len; i++)
		free(copies[i]);
	free(copies);
	free(targets);
	return r;
}
