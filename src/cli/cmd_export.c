/* SPDX-License-Identifier: MIT */
/* reprise export: a trace in the format of another tool. */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/banned.h"
#include "base/io.h"
#include "cli/cli.h"
#include "cli/open_trace.h"
#include "export/export.h"

struct export_options {
	unsigned int format;
	const char *output;
	bool force;
	unsigned int file_mode;
	bool quiet;
};

static const char *const formats[] = {
#define EXPORTER(id, name) name,
#include "export/exporters.def"
#undef EXPORTER
	NULL,
};

static bool is_file(const struct export_options *o)
{
	return o->output && strcmp(o->output, "-") != 0;
}

/* What is not a regular file, or is named by a symlink, is written to as it is. */
static int open_existing(const char *path, struct err *err)
{
	int fd = open(path, O_WRONLY | O_TRUNC | O_CLOEXEC);

	return fd < 0 ? err_set(err, -errno, "cannot open %s", path) : fd;
}

/* The result goes to standard output or, whole, to a file. */
static int open_output(const struct cli *cli, const struct export_options *o, FILE **ret)
{
	struct err err = { "" };
	int fd;

	if (!is_file(o)) {
		if (cli->out_is_terminal && export_formats[o->format].exporter->raw)
			return cli_fail_with(
				cli,
				"%s is not for a terminal: use -o FILE, or redirect the output",
				export_formats[o->format].name);
		*ret = cli->out;
		return CLI_DONE;
	}
	fd = io_create_file(o->output, o->force, o->file_mode, &err);
	if (fd == -EEXIST && !o->force)
		return cli_fail_with(cli, "%s is there already; -f replaces it", o->output);
	if (fd == -EEXIST)
		fd = open_existing(o->output, &err);
	if (fd < 0)
		return cli_fail(cli, &err);
	*ret = fdopen(fd, "w");
	if (!*ret)
		return cli_fail_with(cli, "cannot open %s: %s", o->output, strerror(errno));
	return CLI_DONE;
}

static int close_output(const struct cli *cli, const struct export_options *o, FILE *out)
{
	int failed;

	if (!is_file(o))
		return CLI_DONE; /* the program asks standard output at its end */
	failed = ferror(out);
	if (fclose(out) || failed)
		return cli_fail_with(cli, "cannot write %s: %s", o->output, strerror(errno));
	return CLI_DONE;
}

static int export_to(const struct cli *cli, const struct export_options *o, struct export *ex)
{
	const struct exporter *exporter = export_formats[o->format].exporter;
	struct err err = { "" };
	int status, r;

	ex->progress = cli_progress_begin(cli, "export", "events", o->quiet);
	progress_set_total(ex->progress, trace_nr_events(ex->t));
	r = exporter->run(ex, &err);
	progress_end(ex->progress);
	status = close_output(cli, o, ex->out);
	if (status == CLI_DONE && !r && ex->counts.nr_left_out)
		cli_warn(cli, "%llu things that the format cannot say were left out, %llu written",
			 (unsigned long long)ex->counts.nr_left_out,
			 (unsigned long long)ex->counts.nr_written);
	r = close_trace(cli, ex->t, r, &err);
	return status == CLI_DONE ? r : status;
}

static int export_run(const struct cli *cli, void *options, int nr_operands, char **operands)
{
	const struct export_options *o = options;
	struct export ex = { 0 };
	int status;

	(void)nr_operands;
	if (o->format == OPTION_NO_CHOICE)
		return cli_fail_with(cli, "name the format with --format");
	status = open_trace(cli, operands[0], &ex.t);
	if (status != CLI_DONE)
		return status;
	status = open_output(cli, o, &ex.out);
	if (status != CLI_DONE) {
		trace_close(ex.t);
		return status;
	}
	return export_to(cli, o, &ex);
}

static const struct option_spec export_specs[] = {
	OPT_CHOICE(0, "format", "FORMAT", struct export_options, format, formats,
		   "the format to write"),
	OPT_STRING('o', "output", "FILE", struct export_options, output,
		   "where to write it, -: standard output", .default_text = "-"),
	OPT_FLAG('f', "force", struct export_options, force, "replace an existing file"),
	OPT_FILE_MODE(struct export_options, file_mode),
	OPT_QUIET(struct export_options, quiet),
};

const struct command command_export = {
	.name = "export",
	.summary = "write a trace in the format of another tool",
	.operands = "TRACE",
	.options = export_specs,
	.nr_options = ARRAY_LEN(export_specs),
	.options_size = sizeof(struct export_options),
	.defaults = &(const struct export_options){ .format = OPTION_NO_CHOICE },
	.run = export_run,
};
