/* SPDX-License-Identifier: MIT */
/* reprise init: make the tree that a trace started from, or repair it. */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/banned.h"
#include "base/json.h"
#include "base/mem.h"
#include "base/strings.h"
#include "cli/cli.h"
#include "cli/open_tree.h"
#include "snapshot/create.h"
#include "snapshot/state.h"

struct init_options {
	bool force, overlay, delta, whole, privileged, json, quiet;
	unsigned int cache, on_conflict, many_devices;
	uint64_t jobs, sparse_over_bytes;
};

/* In the order of enum snapshot_cache and enum snapshot_on_conflict. */
static const char *const cache_words[] = { "keep", "drop", "warm", NULL };
static const char *const conflict_words[] = { "fail", "first", NULL };

static const struct option_spec init_specs[] = {
	OPT_FLAG('f', "force", struct init_options, force,
		 "take a directory that is neither empty nor made by a former init; replace what "
		 "is in the way, leave all other names"),
	OPT_FLAG(0, "overlay", struct init_options, overlay,
		 "add to the traces that DIR was made for, instead of replacing them"),
	OPT_FLAG(0, "delta", struct init_options, delta,
		 "only repair what differs from a former init, which is what happens anyway where "
		 "there is one; fail where there is none"),
	OPT_FLAG(0, "whole", struct init_options, whole,
		 "when repairing, compare all contents, also of files that seem unchanged"),
	OPT_CHOICE(0, "on-conflict", "WHAT", struct init_options, on_conflict, conflict_words,
		   "when two traces say different things of a path: fail, or the first is right"),
	OPT_FLAG(0, "privileged-metadata", struct init_options, privileged,
		 "apply owners, set-id bits, capabilities and trusted attributes too"),
	OPT_ONE_DEVICE(struct init_options, many_devices),
	OPT_SIZE(0, "sparse-over", "SIZE", struct init_options, sparse_over_bytes,
		 "files without kept content that are larger are made as holes",
		 .default_text = "1G, less when space is short"),
	OPT_CHOICE(0, "cache", "WHAT", struct init_options, cache, cache_words,
		   "what of the tree is in memory afterwards: as it comes, nothing, or all"),
	OPT_U64('J', "jobs", "N", struct init_options, jobs, "work with N threads",
		.default_text = "one for each core"),
	OPT_FLAG('j', "json", struct init_options, json, "print the result as JSON"),
	OPT_QUIET(struct init_options, quiet),
};

static volatile sig_atomic_t stopped;

static void on_signal(int signo)
{
	stopped = signo;
}

static void catch_signals(void)
{
	struct sigaction sa = { .sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND };

	(void)sigemptyset(&sa.sa_mask);
	(void)sigaction(SIGINT, &sa, NULL); /* with these words they cannot fail */
	(void)sigaction(SIGTERM, &sa, NULL);
	(void)sigaction(SIGHUP, &sa, NULL);
}

/* The traces and plans of the command. */
struct traces {
	VEC(struct tree_file) items;
};

static int add_trace(struct traces *t, const char *path, struct err *err)
{
	struct tree_file f;
	int r = tree_file_open(path, &f, err);

	if (!r)
		VEC_PUSH(&t->items, f);
	return r;
}

static bool has_trace(const struct traces *t, const char *path)
{
	bool found = false;
	size_t i;

	for (i = 0; i < t->items.len && !found; i++) {
		AUTO_FREE char *absolute =
			realpath(trace_path(t->items.items[i].source.records), NULL);

		found = absolute && !strcmp(absolute, path);
	}
	return found;
}

/* Those that DIR was made for come first: what they say is right. */
static int add_former(struct traces *t, const char *dir, struct err *err)
{
	AUTO_CLOSE int fd = open(dir, O_PATH | O_DIRECTORY | O_CLOEXEC);
	struct snapshot_state state = { 0 };
	struct traces all = { 0 };
	size_t i;
	int r = fd < 0 ? 0 : snapshot_state_read(fd, &state, err);

	for (i = 0; i < state.traces.len && r >= 0; i++) {
		if (has_trace(t, state.traces.items[i]))
			continue;
		r = add_trace(&all, state.traces.items[i], err);
		if (r < 0)
			(void)err_wrap(err, r, "a trace that %s was made for", dir);
	}
	for (i = 0; i < t->items.len; i++)
		VEC_PUSH(&all.items, t->items.items[i]);
	VEC_RELEASE(&t->items);
	*t = all;
	snapshot_state_release(&state);
	return r < 0 ? r : 0;
}

static int close_traces(const struct cli *cli, struct traces *t, int status)
{
	size_t i;

	for (i = 0; i < t->items.len; i++)
		status = tree_file_close(cli, &t->items.items[i], status);
	VEC_RELEASE(&t->items);
	return status;
}

struct count {
	const char *key;
	uint64_t n;
};

static void print_json(const struct cli *cli, const char *dir, const struct snapshot_result *c)
{
	const struct count counts[] = {
		{ "entries", c->nr_entries },
		{ "made", c->nr_made },
		{ "repaired", c->nr_repaired },
		{ "unchanged", c->nr_same },
		{ "trusted", c->nr_trusted },
		{ "removed", c->nr_removed },
		{ "foreign", c->nr_foreign },
		{ "left_out", c->nr_left_out },
		{ "files", c->nr_files },
		{ "file_bytes", c->file_bytes },
		{ "bytes_written", c->bytes_written },
		{ "filler_files", c->nr_filler },
		{ "filler_bytes", c->filler_bytes },
		{ "sparse_files", c->nr_sparse },
		{ "sparse_bytes", c->sparse_bytes },
		{ "sparse_over", c->sparse_over_bytes },
		{ "lost_pieces", c->nr_lost },
		{ "too_large", c->nr_too_large },
		{ "device_stand_ins", c->nr_stand_ins },
		{ "owners_not_applied", c->nr_owners },
		{ "setid_not_applied", c->nr_setid },
		{ "xattrs_not_applied", c->nr_xattrs },
		{ "elapsed_ns", c->elapsed_ns },
	};
	struct json w;
	size_t i;

	json_init_file(&w, cli->out, JSON_PRETTY);
	json_object_begin(&w);
	json_kv_bytes(&w, "dir", dir, strlen(dir));
	json_kv_bool(&w, "delta", c->was_ours);
	for (i = 0; i < ARRAY_LEN(counts); i++)
		json_kv_u64(&w, counts[i].key, counts[i].n);
	json_kv_bool(&w, "cache_partly", c->cache_partly);
	json_object_end(&w);
	json_release(&w);
}

static void put_count(struct buf *b, uint64_t n, const char *words)
{
	if (!n)
		return;
	buf_puts(b, "; ");
	strings_put_count(b, n);
	buf_printf(b, " %s", words);
}

static void print_text(const struct cli *cli, const char *dir, const struct snapshot_result *c)
{
	struct buf b = { 0 };

	buf_printf(&b, "%s: ", dir);
	strings_put_count(&b, c->nr_entries);
	buf_printf(&b, " paths: ");
	strings_put_count(&b, c->nr_made);
	buf_puts(&b, " made, ");
	strings_put_count(&b, c->nr_repaired);
	buf_puts(&b, " repaired, ");
	strings_put_count(&b, c->nr_same);
	buf_puts(&b, " unchanged, ");
	strings_put_count(&b, c->nr_removed);
	buf_puts(&b, " removed; ");
	strings_put_bytes(&b, c->bytes_written);
	buf_puts(&b, " written in ");
	strings_put_duration(&b, c->elapsed_ns);
	if (c->nr_filler) {
		put_count(&b, c->nr_filler, "files with filler, ");
		strings_put_bytes(&b, c->filler_bytes);
	}
	put_count(&b, c->nr_stand_ins, "devices replaced by empty files");
	put_count(&b, c->nr_foreign, "other names left there");
	fprintf(cli->out, "%s\n", buf_str(&b));
	buf_release(&b);
}

/* What is not as it was recorded, a line for each reason. */
static void tell_shortcomings(const struct cli *cli, const struct snapshot *s,
			      const struct init_options *o, const struct snapshot_result *c)
{
	struct buf b = { 0 };
	unsigned long long n;

	if (snapshot_nr_left_out(s))
		cli_warn(
			cli,
			"%llu paths are left out: the trace does not say what they were, or contradicts itself (the first: /%s)",
			(unsigned long long)snapshot_nr_left_out(s), snapshot_first_left_out(s));
	if (c->nr_sparse) {
		buf_printf(&b, "%llu files without kept content are made as holes, ",
			   (unsigned long long)c->nr_sparse);
		strings_put_bytes(&b, c->sparse_bytes);
		buf_puts(&b, ": they are larger than ");
		strings_put_bytes(&b, c->sparse_over_bytes);
		cli_warn(cli, "%s", buf_str(&b));
	}
	buf_release(&b);
	n = c->nr_too_large;
	if (n)
		cli_warn(
			cli,
			"%llu files are smaller than recorded: the file system has no room for their size",
			n);
	n = c->nr_lost;
	if (n)
		cli_warn(cli, "%llu pieces of contents are lost in the trace: filler stands in", n);
	if (o->privileged && (c->nr_owners || c->nr_xattrs))
		cli_warn(cli, "%llu owners and %llu attributes could not be applied",
			 (unsigned long long)c->nr_owners, (unsigned long long)c->nr_xattrs);
	else if (c->nr_owners || c->nr_setid || c->nr_xattrs)
		cli_warn(
			cli,
			"not applied: %llu owners, %llu set-id bits, %llu attributes (see --privileged-metadata)",
			(unsigned long long)c->nr_owners, (unsigned long long)c->nr_setid,
			(unsigned long long)c->nr_xattrs);
	if (c->cache_partly)
		cli_warn(
			cli,
			"only the contents of files were dropped from memory: all else needs root");
}

static int create(const struct cli *cli, const struct init_options *o, const struct traces *traces,
		  const char *dir)
{
	struct snapshot_options so = {
		.force = o->force,
		.only_repair = o->delta,
		.whole = o->whole,
		.privileged_metadata = o->privileged,
		.cross_mounts = o->many_devices,
		.jobs = (unsigned int)(o->jobs < SNAPSHOT_JOBS_MAX ? o->jobs : SNAPSHOT_JOBS_MAX),
		.sparse_over_bytes = o->sparse_over_bytes,
		.cache = (enum snapshot_cache)o->cache,
		.stop = &stopped,
	};
	AUTO_FREE struct snapshot_source *sources = xcalloc(traces->items.len, sizeof(*sources));
	struct snapshot_result res;
	struct snapshot *s;
	struct err err = { "" };
	size_t i, nr;
	int r;

	for (i = 0; i < traces->items.len; i++)
		sources[i] = traces->items.items[i].source;
	r = snapshot_load(SNAPSHOT_INITIAL, sources, traces->items.len,
			  (enum snapshot_on_conflict)o->on_conflict, &s, &err);

	if (r < 0)
		return cli_fail(cli, &err);
	(void)snapshot_entries(s, &nr);
	if (nr == 1)
		cli_warn(cli, "there is no initial tree in the trace");
	catch_signals();
	so.progress = cli_progress_begin(cli, "init", "paths", o->quiet);
	r = snapshot_create(s, dir, &so, &res, &err);
	progress_end(so.progress);
	if (r < 0 && stopped)
		(void)err_set(
			&err, -EINVAL,
			"stopped by a signal: %s is unfinished, and the next init finishes it",
			dir);
	if (!r) {
		tell_shortcomings(cli, s, o, &res);
		if (o->json)
			print_json(cli, dir, &res);
		else
			print_text(cli, dir, &res);
	}
	snapshot_free(s);
	return r < 0 ? cli_fail(cli, &err) : CLI_DONE;
}

static int init_run(const struct cli *cli, void *options, int nr_operands, char **operands)
{
	const struct init_options *o = options;
	const char *dir = operands[nr_operands - 1];
	struct traces traces = { 0 };
	struct err err = { "" };
	int i, r = 0, status;

	for (i = 0; i < nr_operands - 1 && r >= 0; i++)
		r = add_trace(&traces, operands[i], &err);
	if (r >= 0 && o->overlay)
		r = add_former(&traces, dir, &err);
	status = r < 0 ? cli_fail(cli, &err) : create(cli, o, &traces, dir);
	return close_traces(cli, &traces, status);
}

const struct command command_init = {
	.name = "init",
	.summary = "make the tree that a trace started from, or repair it",
	.operands = "TRACE|PLAN... DIR",
	.options = init_specs,
	.nr_options = ARRAY_LEN(init_specs),
	.options_size = sizeof(struct init_options),
	.run = init_run,
};
