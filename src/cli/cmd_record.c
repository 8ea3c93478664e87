/* SPDX-License-Identifier: MIT */
/* reprise record: run a command, or attach to a process, and write what it asks of its storage. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/io.h"
#include "base/mem.h"
#include "base/strings.h"
#include "cli/cli.h"
#include "cli/record_summary.h"
#include "record/recorder.h"
#include "report/filter.h"

struct options {
	const char *output;
	bool force, quiet;
	unsigned int file_mode;
	enum data_policy data;
	uint64_t contents;
	uint64_t attach_pid;
	struct option_strings calls, exclude;
	struct option_strings paths, exclude_paths;
	uint64_t max_bytes, max_ns;
	enum record_on_full on_full;
	enum record_net net;
	enum record_clock clock;
	enum record_agent_for agent_for;
	unsigned int stores; /* of store_words */
	bool untrusted;
	bool strict;
	const char *summary;
	unsigned int on_death; /* of death_words, or DEATH_UNSET */
	unsigned int recorder;
	const char *cache;
};

static const char *const data_words[] = { "all", "writes", "hash", "none", NULL };
static const char *const recorder_words[] = {
#define RECORDER(name, source, agent, summary) #name,
#include "record/recorders.def"
#undef RECORDER
	NULL
};
static const char *const full_words[] = { "continue", "stop", NULL };
static const char *const net_words[] = { "on", "audit", "off", NULL };
static const char *const clock_words[] = { "auto", "vdso", "kernel", NULL };
static const char *const for_words[] = { "own", "all", NULL };
static const char *const store_words[] = { "on", "off", NULL };
static const char *const death_words[] = { "stop", "continue", NULL };

#define CONTENTS_DEFAULT ((uint64_t)64 << 20)
#define CONTENTS_UNSET UINT64_MAX
#define DEATH_UNSET UINT32_MAX
#define RECORDER_UNSET UINT32_MAX

static const struct option_spec specs[] = {
	OPT_STRING('o', "output", "FILE", struct options, output, "where to write the trace",
		   .default_text = "COMMAND.trace"),
	OPT_FLAG('f', "force", struct options, force, "replace FILE when it exists"),
	OPT_FILE_MODE(struct options, file_mode),
	OPT_CHOICE(0, "data", "WHAT", struct options, data, data_words,
		   "what is kept of the data that is moved", .default_text = "all"),
	OPT_SIZE(0, "contents", "SIZE", struct options, contents,
		 "keep the contents of files that exist before, up to this size each; 0 for none",
		 .default_text = "64M with --data=all, else 0"),
	OPT_U64(0, "attach", "PID", struct options, attach_pid,
		"record a running process until it ends or Ctrl-C is pressed", .once = true),
	OPT_STRINGS(0, "calls", "NAMES", struct options, calls,
		    "record only these calls or %classes (comma lists, patterns)"),
	OPT_STRINGS(0, "exclude", "NAMES", struct options, exclude,
		    "do not record these calls or %classes"),
	OPT_STRINGS('P', "path", "PATH", struct options, paths,
		    "record only what touches this path (or glob) or what is below it, by name or "
		    "by descriptor"),
	OPT_STRINGS(0, "exclude-path", "PATH", struct options, exclude_paths,
		    "do not record what touches only this path (or glob) or what is below it"),
	OPT_SIZE(0, "max-size", "SIZE", struct options, max_bytes,
		 "stop recording when the trace has this size"),
	OPT_DURATION(0, "max-time", "TIME", struct options, max_ns,
		     "stop recording after this time"),
	OPT_CHOICE(0, "on-full", "WHAT", struct options, on_full, full_words,
		   "when the trace cannot be written: let the program go on, or stop it",
		   .default_text = "continue"),
	OPT_CHOICE(0, "on-death", "WHAT", struct options, on_death, death_words,
		   "when the recorder is killed: stop the program too, or let it go on",
		   .default_text = "stop; with --attach continue"),
	OPT_CHOICE(0, "recorder", "WAY", struct options, recorder, recorder_words,
		   "how calls are seen: by ptrace, and by an agent in the program where that is "
		   "possible and pays; by ptrace alone; by the agent from the beginning",
		   .default_text = "auto"),
	OPT_CHOICE(
		0, "net", "WHAT", struct options, net, net_words,
		"the filter that stops calls which are not the agent's: on; on with an audit of where "
		"they come from; or off, and some calls are not seen",
		.default_text = "on"),
	OPT_CHOICE(0, "clock", "WHICH", struct options, clock, clock_words,
		   "what the agent takes the time from: the processor's counter if it is steady, "
		   "else the vDSO; the vDSO; or the kernel, by calls",
		   .default_text = "auto"),
	OPT_CHOICE(0, "agent-for", "WHOM", struct options, agent_for, for_words,
		   "which processes may get the agent: those of the user who records, or those of "
		   "other users too",
		   .default_text = "own"),
	OPT_CHOICE(0, "stores", "WHAT", struct options, stores, store_words,
		   "look for what programs store through shared maps of files, or leave it out",
		   .default_text = "on"),
	OPT_FLAG(
		0, "untrusted", struct options, untrusted,
		"the program may be hostile: record every call by ptrace, share no memory with it"),
	OPT_STRING(0, "cache", "DIR", struct options, cache,
		   "where it is kept what the agent has found in programs and libraries, so that "
		   "it need not be looked for again; \"\" for nowhere",
		   .default_text = "reprise in $XDG_CACHE_HOME or ~/.cache"),
	OPT_FLAG(0, "strict", struct options, strict,
		 "exit with 2 if the trace is incomplete, whatever the program did"),
	OPT_STRING(0, "summary", "FILE", struct options, summary,
		   "write a summary of the recording to this file, as JSON"),
	OPT_FLAG('q', "quiet", struct options, quiet, "print no summary"),
};

/* COMMAND.trace in the current directory. */
static char *default_output(const struct options *o, const char *command)
{
	struct buf b = { 0 };
	const char *slash = command ? strrchr(command, '/') : NULL;

	if (command)
		buf_printf(&b, "%s.trace", slash ? slash + 1 : command);
	else
		buf_printf(&b, "%llu.trace", (unsigned long long)o->attach_pid);
	(void)buf_str(&b);
	return (char *)b.data;
}

/* Marks the rows that one word means: a call, a pattern, or a %class. */
static int mark_rows(const char *word, bool *rows, struct err *err)
{
	/* %file and %desc are filters of their own; any other class has no mark there. */
	bool derived = !strcmp(word, "%file") || !strcmp(word, "%desc");
	const char *name = *word == '%' && !derived ? word + 1 : word;
	struct option_strings one = { .items = &name, .len = 1 };
	struct filter_options o = { 0 };
	struct filter *f;
	unsigned int id;
	int r;

	if (*word == '%')
		o.classes = one;
	else
		o.calls = one;
	r = filter_new(&o, &f, err);
	if (r < 0)
		return r;
	for (id = 0; id < ROW_ID_MAX; id++) {
		const struct row *row = row_by_id(id);

		rows[id] |= row && filter_wants_row(f, row);
	}
	filter_free(f);
	return 0;
}

static int mark_words(const struct option_strings *words, bool *rows, struct err *err)
{
	size_t i;
	int r = 0;

	for (i = 0; i < words->len && !r; i++) {
		AUTO_FREE char *copy = xstrdup(words->items[i]);
		char *rest = copy, *part;

		while (!r && (part = strsep(&rest, ",")))
			r = *part ? mark_rows(part, rows, err) : 0;
	}
	return r;
}

/* Which rows --calls and --exclude leave; NULL when all. */
static int choose_rows(const struct options *o, bool **ret, struct err *err)
{
	AUTO_FREE bool *unwanted = xcalloc(ROW_ID_MAX, sizeof(*unwanted));
	bool *rows;
	unsigned int id, nr = 0;
	int r;

	*ret = NULL;
	if (!o->calls.len && !o->exclude.len)
		return 0;
	*ret = rows = xcalloc(ROW_ID_MAX, sizeof(*rows));
	r = mark_words(&o->calls, rows, err);
	if (!r)
		r = mark_words(&o->exclude, unwanted, err);
	for (id = 0; id < ROW_ID_MAX; id++) {
		rows[id] = (rows[id] || !o->calls.len) && !unwanted[id];
		nr += rows[id];
	}
	return r || nr ? r : err_set(err, -EINVAL, "--calls and --exclude leave no call");
}

/* --path and --exclude-path. */
struct chosen_paths {
	struct filter_options want_options, exclude_options;
	struct filter *want, *exclude; /* of paths alone */
};

static bool wants_path(void *of, const char *path)
{
	const struct chosen_paths *c = of;

	if (filter_needs_paths(c->exclude) && filter_matches_path(c->exclude, path))
		return false;
	return !filter_needs_paths(c->want) || filter_matches_path(c->want, path);
}

static int choose_paths(const struct options *o, struct chosen_paths *c, struct record_options *ro,
			struct err *err)
{
	int r;

	c->want_options.paths = o->paths;
	c->exclude_options.paths = o->exclude_paths;
	r = filter_new(&c->want_options, &c->want, err);
	if (!r)
		r = filter_new(&c->exclude_options, &c->exclude, err);
	if (!r && (o->paths.len || o->exclude_paths.len))
		ro->paths = (struct path_choice){ .wants = wants_path,
						  .of = c,
						  .only = o->paths.len > 0 };
	return r;
}

static void chosen_paths_release(struct chosen_paths *c)
{
	filter_free(c->want);
	filter_free(c->exclude);
}

/* So many places are named; the trace has all. */
#define PLACES_SHOWN 10

static void print_audit(const struct record_result *res)
{
	const char *line = res->caught;
	unsigned int nr = 0;

	fprintf(stderr, "reprise: record: the net has caught %llu call%s%s\n",
		(unsigned long long)res->nr_caught, res->nr_caught == 1 ? "" : "s",
		*line ? ":" : "");
	for (; *line; nr++) {
		int len = (int)strcspn(line, "\n");

		if (nr < PLACES_SHOWN)
			fprintf(stderr, "  %.*s\n", len, line);
		line += len + (line[len] != 0);
	}
	if (nr > PLACES_SHOWN)
		fprintf(stderr, "  and from %u more places, which the metadata net_places has\n",
			nr - PLACES_SHOWN);
	if (res->why_not_compared.text[0])
		fprintf(stderr,
			"reprise: record: the kernel's count of calls is not available: %s\n",
			res->why_not_compared.text);
	else
		fprintf(stderr,
			"reprise: record: compared the kernel's count of calls: %llu threads; "
			"not compared: %llu\n",
			(unsigned long long)res->nr_compared,
			(unsigned long long)res->nr_not_compared);
}

static void print_summary(const struct record_options *ro, const struct record_result *res)
{
	struct buf b = { 0 };

	buf_printf(&b, "reprise: record: %s: ", ro->output);
	strings_put_count(&b, res->nr_events);
	buf_puts(&b, " events of ");
	strings_put_count(&b, res->nr_threads);
	buf_puts(&b, res->nr_threads == 1 ? " thread, " : " threads, ");
	strings_put_bytes(&b, res->file_bytes);
	buf_puts(&b, ", ");
	strings_put_duration(&b, res->elapsed_ns);
	if (res->slowdown_percent)
		buf_printf(&b, ", slowed down about %.1fx", (double)res->slowdown_percent / 100);
	if (*res->by_ptrace.text)
		buf_printf(&b, "; no agent: %s", res->by_ptrace.text);
	if (res->nr_losses)
		buf_printf(&b, "; %llu ledger entr%s", (unsigned long long)res->nr_losses,
			   res->nr_losses == 1 ? "y" : "ies");
	fprintf(stderr, "%s\n", buf_str(&b));
	buf_release(&b);
	if (res->caught)
		print_audit(res);
}

/* The command died by a signal: so do we, that our parent sees the same. */
static NORETURN void die_alike(int signo)
{
	struct rlimit no_core = { 0, 0 };
	sigset_t set;

	(void)setrlimit(RLIMIT_CORE, &no_core); /* the core that matters is the command's */
	(void)signal(signo, SIG_DFL);
	sigemptyset(&set);
	sigaddset(&set, signo);
	(void)sigprocmask(SIG_UNBLOCK, &set, NULL);
	(void)raise(signo);
	exit(128 + signo);
}

#define AGENT_AFTER "REPRISE_AGENT_AFTER"

/* For tests, which want to know what happens when the agent enters at every possible moment. */
static int read_agent_after(uint64_t *ret, struct err *err)
{
	const char *text = getenv(AGENT_AFTER);
	char *end;

	*ret = RECORD_AGENT_AFTER_CALLS;
	if (!text)
		return 0;
	errno = 0;
	*ret = strtoull(text, &end, 10);
	if (errno || end == text || *end || *text == '-')
		return err_set(err, -EINVAL, AGENT_AFTER " is no number of calls: %s", text);
	return 0;
}

/* Where the sites of files are kept. */
static void choose_cache(const struct options *o, struct record_options *ro)
{
	const char *cache = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");

	/* With what is known already the agent would enter at once. */
	if (o->cache ? !*o->cache : getenv(AGENT_AFTER) != NULL)
		return;
	if (o->cache) {
		ro->cache.dir = o->cache;
		ro->cache.below = "sites";
	} else if (cache && *cache == '/') {
		ro->cache.dir = cache;
		ro->cache.below = "reprise/sites";
	} else if (home && *home == '/') {
		ro->cache.dir = home;
		ro->cache.below = ".cache/reprise/sites";
	}
	/* What was named for that is made, but not the user's home. */
	if (ro->cache.dir && ro->cache.dir != home)
		(void)mkdir(ro->cache.dir, 0700); /* or there is none */
}

static const char *choose_recorder(const struct options *o)
{
	if (o->recorder == RECORDER_UNSET)
		return o->untrusted ? "ptrace" : "auto";
	return recorder_words[o->recorder];
}

/* What a user should know of a recording that is over. */
static void warn(const struct cli *cli, const struct record_options *ro,
		 const struct record_result *res)
{
	if (res->cut_short)
		cli_warn(cli, "%s: the trace ends before the program: %s", ro->output,
			 res->why_cut.text);
	if (res->nr_without_rights)
		cli_warn(
			cli,
			"%llu program%s without the rights of %s own (set-user-id or capabilities), "
			"which the kernel does not give to what is traced",
			(unsigned long long)res->nr_without_rights,
			res->nr_without_rights == 1 ? " ran" : "s ran",
			res->nr_without_rights == 1 ? "its" : "their");
	if (res->is_read)
		cli_warn(cli,
			 "%s: the program has read it while it was written; "
			 "with --output it can be where the program does not look",
			 ro->output);
	if (res->is_gone)
		cli_warn(cli, "%s has been removed, replaced or cut while it was written",
			 ro->output);
}

/* Created before the program runs, so that a failure costs no run. NULL: none is wanted, or it failed. */
static int open_summary(const struct cli *cli, const struct options *o, FILE **ret)
{
	struct err err = { "" };
	int fd;

	*ret = NULL;
	if (!o->summary)
		return CLI_DONE;
	fd = io_create_file(o->summary, o->force, o->file_mode, &err);
	if (fd == -EEXIST)
		return cli_fail_with(cli,
				     o->force ? "%s is not a regular file"
					      : "%s is there already; -f replaces it",
				     o->summary);
	if (fd < 0)
		return cli_fail(cli, &err);
	*ret = fdopen(fd, "w");
	if (!*ret)
		return cli_fail_with(cli, "cannot open %s: %s", o->summary, strerror(errno));
	return CLI_DONE;
}

static int close_summary(const struct cli *cli, const struct options *o, FILE *summary)
{
	int failed = summary ? ferror(summary) : 0;

	if (summary && (fclose(summary) || failed))
		return cli_fail_with(cli, "cannot write %s: %s", o->summary, strerror(errno));
	return CLI_DONE;
}

static int record_into(const struct cli *cli, const struct options *o, struct record_options *ro,
		       FILE *summary)
{
	struct record_result res;
	struct err err = { "" };
	int status;

	if (read_agent_after(&ro->agent_after_calls, &err) < 0 ||
	    recorder_run(choose_recorder(o), ro, &res, &err) < 0) {
		if (summary) {
			(void)fclose(summary); /* nothing was written */
			(void)unlink(o->summary); /* it would be empty */
		}
		return cli_fail(cli, &err);
	}
	warn(cli, ro, &res);
	if (!o->quiet)
		print_summary(ro, &res);
	free(res.caught);
	if (summary)
		record_summary_json(summary, ro, &res);
	status = close_summary(cli, o, summary);
	if (status != CLI_DONE)
		return status;
	if (o->strict && !record_is_complete(&res))
		return cli_fail_with(cli, "%s is incomplete", ro->output);
	if (WIFSIGNALED(res.wait_status))
		die_alike(WTERMSIG(res.wait_status));
	return WEXITSTATUS(res.wait_status);
}

static int record(const struct cli *cli, const struct options *o, struct record_options *ro)
{
	FILE *summary;
	int status = open_summary(cli, o, &summary);

	return status == CLI_DONE ? record_into(cli, o, ro, summary) : status;
}

static int record_run(const struct cli *cli, void *options, int nr_operands, char **operands)
{
	const struct options *o = options;
	struct record_options ro = {
		.attach_pid = (pid_t)o->attach_pid,
		.output = o->output,
		.replace = o->force,
		.file_mode = o->file_mode,
		.data = o->data,
		.content_max_bytes = o->contents,
		.max_bytes = o->max_bytes,
		.max_ns = o->max_ns,
		.on_full = o->on_full,
		.net = o->net,
		.clock = o->clock,
		.agent_for = o->agent_for,
		.no_stores = o->stores,
		.untrusted = o->untrusted,
	};
	AUTO_FREE char **argv = xcalloc((size_t)nr_operands + 1, sizeof(*argv));
	AUTO_FREE char *name = NULL;
	AUTO_FREE bool *wanted = NULL;
	struct chosen_paths paths = { 0 };
	struct err err = { "" };
	int status;

	if (!nr_operands == !o->attach_pid)
		return cli_fail_with(cli, nr_operands ? "a command and --attach exclude each other"
						      : "give a command to run, or --attach PID");
	memcpy(argv, operands, (size_t)nr_operands * sizeof(*argv));
	ro.argv = nr_operands ? argv : NULL;
	if (o->untrusted && (strcmp(choose_recorder(o), "ptrace") != 0 || o->net != RECORD_NET_ON))
		return cli_fail_with(cli, "--untrusted leaves no choice of a recorder or a net: "
					  "every call is recorded by ptrace");
	if (o->attach_pid > INT32_MAX)
		return cli_fail_with(cli, "there is no process %llu",
				     (unsigned long long)o->attach_pid);
	ro.on_death = o->attach_pid ? RECORD_OUTLIVE : RECORD_DIE_TOO;
	if (o->on_death != DEATH_UNSET)
		ro.on_death = o->on_death;
	if (o->contents == CONTENTS_UNSET)
		ro.content_max_bytes = o->data == DATA_ALL ? CONTENTS_DEFAULT : 0;
	if (!o->output)
		ro.output = name = default_output(o, ro.argv ? ro.argv[0] : NULL);
	if (choose_rows(o, &wanted, &err) < 0)
		return cli_fail(cli, &err);
	ro.wanted = wanted;
	choose_cache(o, &ro);
	status = choose_paths(o, &paths, &ro, &err) < 0 ? cli_fail(cli, &err) : record(cli, o, &ro);
	chosen_paths_release(&paths);
	return status;
}

const struct command command_record = {
	.name = "record",
	.summary = "run a program and write down what it asks of its storage",
	.operands = "[COMMAND...]",
	.options = specs,
	.nr_options = ARRAY_LEN(specs),
	.options_size = sizeof(struct options),
	.defaults = &(const struct options){ .contents = CONTENTS_UNSET,
					     .on_death = DEATH_UNSET,
					     .recorder = RECORDER_UNSET },
	.options_first = true,
	.run = record_run,
};
