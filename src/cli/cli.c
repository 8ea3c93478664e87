/* SPDX-License-Identifier: MIT */
/*
 * The program's two outputs. The result goes through a stream of our own over
 * standard output, because it must do what stdio's does not: remember why a
 * write failed, and take the progress line away before the first byte of a
 * result appears below it on the same terminal.
 */
#include "cli/cli.h"

#include <assert.h>
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "base/banned.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/mem.h"
#include "base/strings.h"

const char *const cli_one_device_words[] = { "yes", "no", NULL };

#define OUT_BUFFER_BYTES ((size_t)64 << 10)

struct cli_output {
	int write_error; /* the first -errno, or 0 */
	bool out_is_terminal;
	struct progress progress;
	struct progress_sink sink;
};

const struct cli_entry cli_entries[] = {
#define GROUP(title) { .group = (title) },
#define COMMAND(name) { .command = &command_##name },
#include "cli/commands.def"
#undef GROUP
#undef COMMAND
};
const unsigned int cli_nr_entries = ARRAY_LEN(cli_entries);

static const struct option_spec program_specs[] = {
	OPT_FLAG(0, "version", struct program_options, version, "print the version"),
};

static const char *const program_usage[] = { "COMMAND [OPTION]... [OPERAND]...",
					     "--help | --version", NULL };

const struct command command_program = {
	.name = "",
	.summary = "record what a program asks of its storage, and perform it again",
	.operands = "[COMMAND] [ARG...]",
	.usage = program_usage,
	.options = program_specs,
	.nr_options = ARRAY_LEN(program_specs),
	.options_size = sizeof(struct program_options),
	.options_first = true,
};

int cli_find_command(const char *name, const struct command **ret, struct err *err)
{
	struct nearest near = { .typed = name };
	unsigned int nr;

	for (nr = 0; nr < cli_nr_entries; nr++) {
		const struct command *cmd = cli_entries[nr].command;

		if (!cmd)
			continue;
		if (!strcmp(cmd->name, name)) {
			*ret = cmd;
			return 0;
		}
		if (!cmd->hidden)
			nearest_offer(&near, cmd->name);
	}
	if (near.word)
		return err_set(err, -EINVAL, "unknown command '%s'; did you mean '%s'?", name,
			       near.word);
	return err_set(err, -EINVAL, "unknown command '%s'", name);
}

static void print_line(const struct cli *cli, const char *kind, const char *text)
{
	struct buf line = { 0 };

	progress_end(&cli->output->progress);
	buf_puts(&line, CLI_PROGRAM ": ");
	if (*cli->command->name)
		buf_printf(&line, "%s: ", cli->command->name);
	buf_puts(&line, kind);
	/* What a user or a file gave may hold anything. */
	strings_put_message(&line, text);
	buf_putc(&line, '\n');
	/* When stderr is gone there is nobody to tell. */
	(void)!write_full(STDERR_FILENO, line.data, line.len);
	buf_release(&line);
}

int cli_fail(const struct cli *cli, const struct err *err)
{
	print_line(cli, "", err->text);
	return CLI_FAILED;
}

int cli_fail_with(const struct cli *cli, const char *fmt, ...)
{
	char text[ERR_TEXT_SIZE];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap); /* cut short is better than lost */
	va_end(ap);
	print_line(cli, "", text);
	return CLI_FAILED;
}

void cli_warn(const struct cli *cli, const char *fmt, ...)
{
	char text[ERR_TEXT_SIZE];
	va_list ap;

	va_start(ap, fmt);
	(void)vsnprintf(text, sizeof(text), fmt, ap); /* cut short is better than lost */
	va_end(ap);
	print_line(cli, "warning: ", text);
}

static ssize_t out_write(void *cookie, const char *p, size_t len)
{
	struct cli_output *output = cookie;

	if (output->write_error)
		return 0;
	if (output->out_is_terminal)
		progress_end(&output->progress);
	output->write_error = write_full(STDOUT_FILENO, p, len);
	if (output->write_error == -EPIPE) {
		/* Whoever started us had the signal ignored. End as if not: the
		 * reader has left, and the rest of the work is for nobody. */
		(void)signal(SIGPIPE, SIG_DFL);
		(void)raise(SIGPIPE);
	}
	return output->write_error ? 0 : (ssize_t)len;
}

/* A file system may report a failed write as late as here. */
static int out_close(void *cookie)
{
	struct cli_output *output = cookie;

	if (close(STDOUT_FILENO) < 0 && errno != EINTR && !output->write_error)
		output->write_error = -errno;
	return 0;
}

static uint64_t sink_now_ns(void *arg)
{
	(void)arg;
	return clock_monotonic_ns();
}

static void sink_write(void *arg, const void *p, size_t len)
{
	(void)arg;
	(void)!write_full(STDERR_FILENO, p, len); /* progress is worth no failure */
}

void cli_open(struct cli *cli)
{
	cookie_io_functions_t functions = { .write = out_write, .close = out_close };
	struct winsize size = { 0 };

	*cli = (struct cli){
		.command = &command_program,
		.out_is_terminal = isatty(STDOUT_FILENO),
		.output = xcalloc(1, sizeof(*cli->output)),
	};
	cli->output->out_is_terminal = cli->out_is_terminal;
	cli->out = fopencookie(cli->output, "w", functions);
	/* Fails for want of memory alone, and that ends the program anyway. */
	assert(cli->out);
	(void)setvbuf(cli->out, NULL, cli->out_is_terminal ? _IOLBF : _IOFBF, OUT_BUFFER_BYTES);

	(void)ioctl(STDERR_FILENO, TIOCGWINSZ, &size); /* no terminal, no size: 80 */
	cli->output->sink = (struct progress_sink){
		.now_ns = sink_now_ns,
		.write = sink_write,
		.columns = size.ws_col ? size.ws_col : 80,
	};
}

int cli_close(struct cli *cli, int status)
{
	progress_end(&cli->output->progress);
	(void)fclose(cli->out); /* write_error knows */
	if (cli->output->write_error && status != CLI_FAILED)
		status = cli_fail_with(cli, "cannot write to standard output: %s",
				       strerror(-cli->output->write_error));
	free(cli->output);
	*cli = (struct cli){ 0 };
	return status;
}

static bool progress_is_wanted(void)
{
	const char *setting = getenv("REPRISE_PROGRESS");

	if (setting && !strcmp(setting, "0"))
		return false;
	if (setting && !strcmp(setting, "1"))
		return true;
	return isatty(STDERR_FILENO);
}

struct progress *cli_progress_begin(const struct cli *cli, const char *label, const char *unit,
				    bool quiet)
{
	struct progress *progress = &cli->output->progress;

	progress_end(progress);
	if (quiet || !progress_is_wanted())
		return NULL;
	progress_begin(progress, &cli->output->sink, label, unit);
	return progress;
}
