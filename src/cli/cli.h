/* SPDX-License-Identifier: MIT */
/*
 * What a command gets from the program around it. A command is one file
 * cmd_<name>.c with a `const struct command command_<name>` at its foot (see
 * base/options.h) and one line in commands.def. Its run function
 *
 * - writes its result to cli->out, and to nothing else;
 * - returns CLI_DONE, CLI_DIFFERS or, having said why, CLI_FAILED:
 *
 *     r = trace_open(operands[0], &t, &err);
 *     if (r < 0)
 *     	return cli_fail(cli, &err);
 *
 * - need not check cli->out: the program does at the end, and says so when the
 *   result could not be written. A reader that goes away (`show | head`) ends
 *   the program by SIGPIPE.
 *
 * Owned by the main thread, which alone may call these functions.
 */
#ifndef CLI_CLI_H
#define CLI_CLI_H

#include <stdbool.h>
#include <stdio.h>

#include "base/attrs.h"
#include "base/err.h"
#include "base/options.h"
#include "base/progress.h"

#define CLI_PROGRAM "reprise"

enum cli_status {
	CLI_DONE = 0,
	CLI_DIFFERS = 1, /* what was compared or checked is not as it should be */
	CLI_FAILED = 2, /* also wrong usage */
};

struct cli_output;

struct cli {
	const struct command *command; /* the one that runs; &command_program before */
	FILE *out; /* standard output, with a large buffer; do not use stdout beside it */
	bool out_is_terminal;
	struct cli_output *output; /* cli.c's own */
};

/*
 * Prints "reprise: <command>: <words>" and returns CLI_FAILED. One line for one
 * failure.
 */
int cli_fail(const struct cli *cli, const struct err *err);
/* The same with words from here. */
PRINTF_LIKE(2, 3) int cli_fail_with(const struct cli *cli, const char *fmt, ...);
/* Prints "reprise: <command>: warning: <words>"; the command goes on. */
PRINTF_LIKE(2, 3) void cli_warn(const struct cli *cli, const char *fmt, ...);

/*
 * The progress line of this command, or NULL when there shall be none: quiet,
 * REPRISE_PROGRESS=0, or stderr is no terminal (but REPRISE_PROGRESS=1 wants it
 * all the same). Pass it on to library code; label and unit (NULL: bytes) are
 * borrowed. A second begin replaces the first line, as for the next phase of a
 * task. The line is ended by progress_end(), by a failure or a warning, by
 * output on a terminal, or with the command.
 */
struct progress *cli_progress_begin(const struct cli *cli, const char *label, const char *unit,
				    bool quiet);

/* The same option in every command that shows progress. */
#define OPT_QUIET(struct_type, field)                                                              \
	OPT_FLAG('q', "quiet", struct_type, field, "show no progress line")

/* Likewise in every command that writes a file; 0 when it is not given. */
#define OPT_FILE_MODE(struct_type, field)                                                          \
	OPT_MODE(0, "file-mode", "MODE", struct_type, field,                                       \
		 "permissions of the file that is written, in octal", .default_text = "600")

/* In every command that writes below DIR; 1: no. */
extern const char *const cli_one_device_words[];
#define OPT_ONE_DEVICE(struct_type, field)                                                         \
	OPT_CHOICE(0, "one-device", "WHICH", struct_type, field, cli_one_device_words,             \
		   "yes: fail if something is mounted below DIR; no: use what is mounted there "   \
		   "too")

/* For main(). */
void cli_open(struct cli *cli);
/*
 * Finishes the output and returns the exit status: the given one, or CLI_FAILED
 * when the result could not be written.
 */
int cli_close(struct cli *cli, int status);

/* The program itself: the options before the command's name. */
struct program_options {
	bool version;
};
extern const struct command command_program;

#define GROUP(title)
#define COMMAND(name) extern const struct command command_##name;
#include "cli/commands.def"
#undef GROUP
#undef COMMAND

/* A heading, or a command below the last heading. */
struct cli_entry {
	const char *group; /* NULL: a command */
	const struct command *command;
};
extern const struct cli_entry cli_entries[];
extern const unsigned int cli_nr_entries;

/* -EINVAL when there is no such command. */
MUST_CHECK int cli_find_command(const char *name, const struct command **ret, struct err *err);

/* What `reprise help` prints, and `reprise help NAME` or `reprise NAME -h`. */
void help_put_overview(struct buf *b);
void help_put_command(const struct command *cmd, struct buf *b);

#endif
