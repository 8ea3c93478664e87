/* SPDX-License-Identifier: MIT */
/* reprise replay: perform plans in a directory and say how faithfully. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#include "base/banned.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/mem.h"
#include "base/strings.h"
#include "cli/cli.h"
#include "cli/replay_block.h"
#include "cli/replay_prepare.h"
#include "cli/replay_print.h"
#include "plan/plan.h"
#include "replay/run.h"
#include "replay/run_trace.h"
#include "snapshot/contain.h"

#define LANES_SHOWN 100

struct options {
	enum run_speed speed;
	enum run_verify verify;
	enum run_on_mismatch on_mismatch;
	enum run_mmap mmap;
	enum run_reads reads;
	enum run_mac_fsync mac_fsync;
	const char *scale, *scale_compute, *engine, *output;
	bool force, json, quiet, batch_reads, no_copy_reads, pin, no_contain, privileged_metadata,
		no_check;
	unsigned int file_mode;
	struct order_choice order;
	struct block_options block;
	struct part_choice part;
	unsigned int cache, many_devices;
	bool no_init;
	uint64_t loops, stall_ns, min_free_bytes, max_file_bytes, max_memory_bytes, perturb, top;
};

static const char *const speed_words[] = { "natural", "afap", "timed", NULL };
static const char *const verify_words[] = { "data", "outcome", "off", NULL };
static const char *const mismatch_words[] = { "count", "warn", "stop", NULL };
static const char *const mmap_words[] = { "touch", "map", "populate", "skip", NULL };
static const char *const mac_fsync_words[] = { "durable", "device", NULL };
static const char *const reads_words[] = { "all", "none", "original-cache-misses", NULL };

static const char *const cache_words[] = { "keep", "drop", "warm", NULL };

static const struct option_spec specs[] = {
	OPT_ORDER(struct options, order),
	OPT_PART(struct options, part),
	OPT_CHOICE(0, "speed", "HOW", struct options, speed, speed_words,
		   "natural: with the computing of the program between its calls; afap: as fast as "
		   "possible; timed: at the original times"),
	OPT_STRING(0, "scale", "F", struct options, scale, "multiply all times by F",
		   .default_text = "1"),
	OPT_STRING(0, "scale-compute", "F", struct options, scale_compute,
		   "multiply computing times by F", .default_text = "1"),
	OPT_CHOICE(0, "reads", "WHICH", struct options, reads, reads_words,
		   "which reads are made; of the others only the offset is moved"),
	OPT_CHOICE(0, "mac-fsync", "HOW", struct options, mac_fsync, mac_fsync_words,
		   "what fsync of a trace of macOS does: make data durable, or only hand it to the "
		   "device, as there"),
	OPT_CHOICE(
		0, "mmap", "HOW", struct options, mmap, mmap_words,
		"map files and read each page once; map them only; let the kernel load all pages, "
		"for writing where they may be written; or do not map them"),
	OPT_U64(0, "loops", "N", struct options, loops, "perform it N times", .default_text = "1"),
	OPT_CHOICE(0, "verify", "WHAT", struct options, verify, verify_words,
		   "what is compared with the original: outcomes and what was read; outcomes; "
		   "nothing"),
	OPT_CHOICE(0, "on-mismatch", "WHAT", struct options, on_mismatch, mismatch_words,
		   "count mismatches, also print them as they happen, or stop at the first"),
	OPT_U64(0, "show-mismatches", "N", struct options, top,
		"how many mismatches the report shows, at most 1024", .default_text = "10"),
	OPT_FLAG(0, "batch-reads", struct options, batch_reads,
		 "make reads with an offset that follow each other in a lane and wait for nothing "
		 "at once, through an io_uring"),
	OPT_FLAG(0, "no-copy-reads", struct options, no_copy_reads,
		 "make reads of 32 KiB and more that need no verification without copying to user "
		 "space"),
	OPT_FLAG(0, "pin", struct options, pin, "bind each lane to a core, in turn"),
	OPT_STRING('o', "output", "RUN", struct options, output, "write a trace of the run"),
	OPT_FLAG('f', "force", struct options, force, "replace RUN when it exists"),
	OPT_FILE_MODE(struct options, file_mode),
	OPT_STRING(0, "engine", "NAME", struct options, engine,
		   "what performs actions: sys, or null, which makes no call",
		   .default_text = "sys"),
	OPT_FLAG(0, "no-init", struct options, no_init,
		 "take DIR as it is; else the initial tree is made in it, or repaired"),
	OPT_CHOICE(0, "cache", "HOW", struct options, cache, cache_words,
		   "before the run: leave the page cache alone, drop the tree from it, or load it"),
	OPT_FLAG(0, "no-contain", struct options, no_contain,
		 "run with DIR as root directory only, where the system allows no namespaces"),
	OPT_FLAG(0, "privileged-metadata", struct options, privileged_metadata,
		 "apply owners, set-id bits and security attributes"),
	OPT_ONE_DEVICE(struct options, many_devices),
	OPT_SIZE(0, "min-free", "SIZE", struct options, min_free_bytes,
		 "end the run when the target has less left, 0: use all of it",
		 .default_text = "a 64th, 64M at most"),
	OPT_SIZE(0, "max-file-size", "SIZE", struct options, max_file_bytes,
		 "let no file grow beyond this, RUN included"),
	OPT_SIZE(0, "max-memory", "SIZE", struct options, max_memory_bytes,
		 "let lanes, private maps and pipes use no more memory than this, and memfds too",
		 .default_text = "a quarter of what is available"),
	OPT_DURATION(
		0, "stall-timeout", "TIME", struct options, stall_ns,
		"end the run when all lanes have waited for each other for this long, 0: never",
		.default_text = "60s"),
	OPT_FLAG(0, "no-check", struct options, no_check,
		 "do not go through the plan first to prove that it can come to an end"),
	OPT_U64(0, "perturb", "SEED", struct options, perturb,
		"hold up actions at random, to try the order"),
	OPT_BLOCK(struct options, block),
	OPT_FLAG('j', "json", struct options, json, "print the report as JSON"),
	OPT_QUIET(struct options, quiet),
};

struct watching {
	const struct cli *cli;
	struct progress *progress;
	uint64_t shown;
};

static bool want_stop(void *arg)
{
	(void)arg;
	return replay_interrupted;
}

static void show_progress(void *arg, const struct run_result *res)
{
	struct watching *w = arg;
	uint64_t done = 0;
	uint32_t i;

	for (i = 0; i < res->nr_lanes; i++)
		done += atomic_load_explicit(&res->lanes[i].nr_done, memory_order_relaxed);
	progress_set_total(w->progress, res->nr_actions);
	if (done > w->shown)
		progress_add(w->progress, done - w->shown);
	w->shown = done;
}

static void show_stall(void *arg, const struct run_result *res, uint64_t since_ns)
{
	struct watching *w = arg;
	struct buf b = { 0 };

	strings_put_duration(&b, since_ns);
	buf_puts(&b, ":\n");
	replay_put_lanes(res, LANES_SHOWN, &b);
	if (b.len)
		b.len--; /* the last newline */
	cli_warn(w->cli, "nothing has moved for %s", buf_str(&b));
	buf_release(&b);
}

static void show_mismatch(void *arg, const struct run_mismatch *m)
{
	struct watching *w = arg;
	struct buf b = { 0 };

	replay_put_mismatch(m, NULL, &b);
	cli_warn(w->cli, "%s", buf_str(&b));
	buf_release(&b);
}

static int parse_factor(const char *text, const char *name, double *ret, struct err *err)
{
	char *end;
	double f;

	*ret = 1;
	if (!text)
		return 0;
	f = strtod(text, &end);
	if (end == text || *end || !(f >= 0) || f > 1e9)
		return err_set(err, -EINVAL, "--%s: '%s' is no factor", name, text);
	/* Nothing of it is a speed of its own. */
	*ret = f > 1e-12 ? f : 1e-12;
	return 0;
}

static int status_of(const struct cli *cli, const struct run_result *res)
{
	if (res->status < 0)
		return cli_fail(cli, &res->err);
	switch ((enum run_end)res->end) {
	case RUN_COMPLETE:
	case RUN_MISMATCHED:
		return atomic_load(&res->nr_mismatches) ? CLI_DIFFERS : CLI_DONE;
	case RUN_INTERRUPTED:
		return cli_fail_with(cli, "interrupted");
	case RUN_FULL:
		return cli_fail_with(cli,
				     "the target is nearly full (--min-free): the run was ended");
	case RUN_STALLED:
		return cli_fail_with(cli, "nothing moved any more: the run was ended");
	default:
		return cli_fail_with(cli, "the run failed");
	}
}

/* Now that it disturbs no lane, the trace of the run gets the arguments of its calls. */
static int complete_run_trace(const struct cli *cli, const struct options *o,
			      const struct prepared *p, const struct run_result *res,
			      struct err *err)
{
	struct run_trace_options ro = { .plans = (const char *const *)p->plans,
					.nr_plans = (unsigned int)p->nr,
					.complete = res->end == RUN_COMPLETE && res->status >= 0,
					.res = res,
					.speed = speed_words[o->speed],
					.file_mode = o->file_mode };
	int r;

	ro.progress = cli_progress_begin(cli, "run", "events", o->quiet);
	r = run_trace_complete(o->output, &ro, err);
	progress_end(ro.progress);
	return r;
}

static int run_once(const struct cli *cli, const struct options *o, const struct run_options *ro,
		    const struct prepared *p, const char *dir)
{
	struct watching watching = { .cli = cli };
	struct run_watcher w = { .arg = &watching,
				 .want_stop = want_stop,
				 .progress = show_progress,
				 .stalled = show_stall,
				 .mismatch = show_mismatch };
	struct replay_print_options print = { .no_copy_reads = o->no_copy_reads, .top = o->top };
	struct run_result *res;
	struct history *history;
	struct mismatch_views *views;
	struct err err = { "" };
	struct json json;
	int r;

	(void)fflush(cli->out); /* what is buffered belongs to one process */
	watching.progress = cli_progress_begin(cli, "replay", "actions", o->quiet);
	r = run_perform((const char *const *)p->plans, (unsigned int)p->nr, dir, ro, &w, &res,
			&err);
	progress_end(watching.progress);
	if (r < 0)
		return cli_fail(cli, &err);
	if (o->output && complete_run_trace(cli, o, p, res, &err) < 0)
		cli_warn(cli, "%s has times and outcomes only: %s", o->output, err.text);
	print.history = history =
		history_new((const char *const *)p->plans, (unsigned int)p->nr, res, o->top);
	print.views = views =
		mismatch_views_new((const char *const *)p->plans, (unsigned int)p->nr, res, o->top);
	if (o->json) {
		json_init_file(&json, cli->out, o->loops > 1 ? JSON_COMPACT : JSON_PRETTY);
		replay_print_json(res, &print, &json);
		json_release(&json);
	} else {
		replay_print_text(res, &print, cli->out);
	}
	mismatch_views_free(views);
	history_free(history);
	r = status_of(cli, res);
	run_result_free(res);
	return r;
}

/* Also where no tree was made. */
static int check_mounts(const char *dir, struct err *err)
{
	AUTO_CLOSE int fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return err_set(err, -errno, "cannot open %s", dir);
	return contain_check_mounts(fd, err);
}

/* Nobody else makes, repairs or runs in DIR meanwhile. */
static int take_turn(const struct cli *cli, const struct options *o, struct prepare_options *po,
		     const struct prepared *p, const char *dir, int *lock_fd)
{
	struct err err = { "" };
	int r = CLI_DONE;

	po->locked = *lock_fd >= 0;
	if (!o->no_init)
		r = prepare_tree(cli, po, p, dir);
	if (r == CLI_DONE && *lock_fd < 0 && snapshot_lock(dir, lock_fd, &err) < 0)
		r = cli_fail(cli, &err);
	if (r == CLI_DONE && !o->many_devices && check_mounts(dir, &err) < 0)
		r = cli_fail(cli, &err);
	return r;
}

static int run_loops(const struct cli *cli, const struct options *o, struct run_options *ro,
		     struct prepare_options *po, const struct prepared *p, const char *dir)
{
	struct plan_checks checks = { .skip = o->no_check, .quiet = o->quiet };
	AUTO_CLOSE int lock_fd = -1;
	struct err err = { "" };
	int i, r, worst = CLI_DONE;
	uint64_t n;

	for (i = 0; i < p->nr; i++) {
		if (prepared_check(cli, p->plans[i], &checks, &err) < 0)
			return cli_fail(cli, &err);
	}
	replay_catch_signals();
	for (n = 0; n < o->loops && !replay_interrupted; n++) {
		r = take_turn(cli, o, po, p, dir, &lock_fd);
		if (r == CLI_DONE)
			r = run_once(cli, o, ro, p, dir);
		if (r > worst)
			worst = r;
		if (r == CLI_FAILED)
			break;
		ro->replace = true; /* the output of the loop before */
	}
	if (n < o->loops && worst != CLI_FAILED)
		return cli_fail_with(cli, "interrupted");
	return worst;
}

static int run_block(const struct cli *cli, const struct options *o, double scale, int nr_operands,
		     char **operands)
{
	struct block_replay b = { .scale = scale,
				  .output = o->output,
				  .order = o->order,
				  .force = o->force,
				  .file_mode = o->file_mode,
				  .json = o->json,
				  .quiet = o->quiet,
				  .no_check = o->no_check };

	if (nr_operands != 1)
		return cli_fail_with(cli,
				     "with --device there is one trace or plan and no directory");
	return replay_block(cli, &o->block, &b, operands[0]);
}

static int replay_run(const struct cli *cli, void *options, int nr_operands, char **operands)
{
	const struct options *o = options;
	struct run_options ro = {
		.engine = o->engine,
		.speed = o->speed,
		.verify = o->verify,
		.on_mismatch = o->on_mismatch,
		.mmap = o->mmap,
		.reads = o->reads,
		.mac_fsync = o->mac_fsync,
		.batch_reads = o->batch_reads,
		.no_copy_reads = o->no_copy_reads,
		.pin = o->pin,
		.no_contain = o->no_contain,
		.privileged_metadata = o->privileged_metadata,
		.cross_mounts = o->many_devices,
		.output = o->output,
		.replace = o->force,
		.file_mode = o->file_mode,
		.stall_ns = o->stall_ns,
		.max_file_bytes = o->max_file_bytes,
		.max_memory_bytes = o->max_memory_bytes,
		.min_free_bytes = o->min_free_bytes,
		.perturb_seed = o->perturb,
		.drop_cache = o->cache == SNAPSHOT_CACHE_DROP,
	};
	struct prepare_options po = {
		.order = o->order,
		.part = o->part,
		.cache = (enum snapshot_cache)o->cache,
		.privileged_metadata = o->privileged_metadata,
		.cross_mounts = o->many_devices,
		.quiet = o->quiet,
	};
	struct prepared prepared;
	struct err err = { "" };
	int r;

	if (parse_factor(o->scale, "scale", &ro.scale, &err) < 0 ||
	    parse_factor(o->scale_compute, "scale-compute", &ro.scale_compute, &err) < 0)
		return cli_fail(cli, &err);
	if (o->output && !strcmp(o->output, "-"))
		return cli_fail_with(cli, "a trace cannot be written to standard output: name a "
					  "file (./- for one named -)");
	if (o->block.devices.len)
		return run_block(cli, o, ro.scale, nr_operands, operands);
	if (nr_operands < 2)
		return cli_fail_with(cli, "missing operand DIR; block requests go to a --device");
	r = prepare_plans(cli, &po, operands, nr_operands - 1, &prepared);
	if (r == CLI_DONE)
		r = run_loops(cli, o, &ro, &po, &prepared, operands[nr_operands - 1]);
	prepared_release(&prepared);
	return r;
}

const struct command command_replay = {
	.name = "replay",
	.summary = "perform traces in a directory or on a device and report how faithfully",
	.operands = "TRACE|PLAN... [DIR]",
	.options = specs,
	.nr_options = ARRAY_LEN(specs),
	.options_size = sizeof(struct options),
	.defaults = &(const struct options){ .loops = 1,
					     .top = 10,
					     .min_free_bytes = RUN_FREE_DEFAULT,
					     .stall_ns = 60 * NS_PER_S },
	.run = replay_run,
};
