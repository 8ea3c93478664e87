/* SPDX-License-Identifier: MIT */
/*
 * A command and its options as constant tables. The parser, `-h`, the man
 * page's synopsis and options, and shell completion all come from them, so
 * they cannot disagree.
 *
 *     struct show_options {
 *     	bool json;
 *     	uint64_t limit;
 *     	struct option_u64s pids;
 *     };
 *
 *     static const struct option_spec show_specs[] = {
 *     	OPT_FLAG('j', "json", struct show_options, json, "print JSON Lines"),
 *     	OPT_U64('n', "limit", "N", struct show_options, limit, "stop after N events"),
 *     	OPT_U64S('p', "pid", "PID", struct show_options, pids, "only this process"),
 *     };
 *
 *     const struct command command_show = {
 *     	.name = "show",
 *     	.summary = "print events, one line each",
 *     	.operands = "TRACE",
 *     	.options = show_specs,
 *     	.nr_options = ARRAY_LEN(show_specs),
 *     	.options_size = sizeof(struct show_options),
 *     	.defaults = &(const struct show_options){ .limit = UINT64_MAX },
 *     	.run = show_run,
 *     };
 *
 * The destination's type is checked by the compiler. Accepted are
 * `--name=value`, `--name value`, `-xvalue`, `-x value`, switches bundled as
 * `-xyz`, and `--`, after which all words are operands; options and operands
 * may be mixed. Long names are not abbreviated. Of an option given twice the
 * last counts, except that lists grow. Every command has -h and --help.
 *
 * Nothing here prints. Tables are constant and may be used by any thread.
 */
#ifndef BASE_OPTIONS_H
#define BASE_OPTIONS_H

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attrs.h"
#include "base/buf.h"
#include "base/err.h"

enum option_type {
	OPTION_FLAG, /* bool; takes no value */
	OPTION_STRING, /* const char *, of argv */
	OPTION_U64, /* uint64_t; decimal or 0x */
	OPTION_SIZE, /* uint64_t bytes: 4096, 64K, 2M, 1G */
	OPTION_DURATION, /* uint64_t ns: 10us, 5ms, 1.5s, 2m, or seconds */
	OPTION_MODE, /* unsigned int: permissions of a file in octal, as 640 */
	OPTION_CHOICE, /* unsigned int, or an enum: which of the choices */
	OPTION_STRINGS, /* struct option_strings; may be repeated */
	OPTION_U64S, /* struct option_u64s; may be repeated, or given as 1,2,3 */
};

/* In a command's defaults: none of the choices, unless one is given. */
#define OPTION_NO_CHOICE UINT_MAX

/*
 * Filled by options_parse(), released by options_free(). The strings are
 * argv's.
 */
struct option_strings {
	const char **items;
	size_t len, cap;
};

struct option_u64s {
	uint64_t *items;
	size_t len, cap;
};

struct option_spec {
	char short_name; /* 0: has none */
	const char *long_name; /* without the dashes */
	enum option_type type;
	const char *arg_name; /* upper case; NULL for switches */
	size_t offset; /* of the destination, in the command's options */
	const char *const *choices; /* for OPTION_CHOICE, up to NULL */
	const char *help; /* begins in lower case, ends without a full stop */
	/*
	 * What holds when it is not given, for -h; a choice's is found in the
	 * command's defaults.
	 */
	const char *default_text;
	bool once; /* a number other than 0; a second one would replace the first unnoticed */
};

/* sizeof is what fails to compile when the field has another type. */
#define OPTION_OFFSET(ctype, struct_type, field)                                                   \
	(offsetof(struct_type, field) + 0 * sizeof(_Generic(((struct_type *)0)->field, ctype : 0)))

#define OPTION_INIT(short_, long_, type_, arg_, ctype, struct_type, field, ...)                    \
	{                                                                                          \
		.short_name = (short_), .long_name = (long_), .type = (type_), .arg_name = (arg_), \
		.offset = OPTION_OFFSET(ctype, struct_type, field), __VA_ARGS__                    \
	}

/*
 * The rows of a table: short and long name, the value's name, the options
 * struct and the field, for a choice the words, the help text. After the text,
 * further fields may be set: OPT_U64(..., "the text", .default_text = "8").
 */
#define OPT_FLAG(s, l, struct_type, field, ...)                                                    \
	OPTION_INIT(s, l, OPTION_FLAG, NULL, bool, struct_type, field, .help = __VA_ARGS__)
#define OPT_STRING(s, l, arg, struct_type, field, ...)                                             \
	OPTION_INIT(s, l, OPTION_STRING, arg, const char *, struct_type, field, .help = __VA_ARGS__)
#define OPT_U64(s, l, arg, struct_type, field, ...)                                                \
	OPTION_INIT(s, l, OPTION_U64, arg, uint64_t, struct_type, field, .help = __VA_ARGS__)
#define OPT_SIZE(s, l, arg, struct_type, field, ...)                                               \
	OPTION_INIT(s, l, OPTION_SIZE, arg, uint64_t, struct_type, field, .help = __VA_ARGS__)
#define OPT_DURATION(s, l, arg, struct_type, field, ...)                                           \
	OPTION_INIT(s, l, OPTION_DURATION, arg, uint64_t, struct_type, field, .help = __VA_ARGS__)
#define OPT_MODE(s, l, arg, struct_type, field, ...)                                               \
	OPTION_INIT(s, l, OPTION_MODE, arg, unsigned int, struct_type, field, .help = __VA_ARGS__)
#define OPT_CHOICE(s, l, arg, struct_type, field, words, ...)                                      \
	OPTION_INIT(s, l, OPTION_CHOICE, arg, unsigned int, struct_type, field,                    \
		    .choices = (words), .help = __VA_ARGS__)
#define OPT_STRINGS(s, l, arg, struct_type, field, ...)                                            \
	OPTION_INIT(s, l, OPTION_STRINGS, arg, struct option_strings, struct_type, field,          \
		    .help = __VA_ARGS__)
#define OPT_U64S(s, l, arg, struct_type, field, ...)                                               \
	OPTION_INIT(s, l, OPTION_U64S, arg, struct option_u64s, struct_type, field,                \
		    .help = __VA_ARGS__)

struct cli; /* what the program hands to its commands; unknown here */

struct command {
	const char *name;
	const char *summary; /* one line: a verb in lower case first, no full stop */
	/*
	 * Words in upper case, separated by spaces: "A B" both needed, "[X]" may
	 * be left out, "X..." one or more, "[X...]" any number. How many operands
	 * are allowed follows from it. NULL: none.
	 */
	const char *operands;
	/*
	 * Instead of "[OPTION]... OPERANDS", when there are several forms; up
	 * to NULL.
	 */
	const char *const *usage;
	const struct option_spec *options;
	unsigned int nr_options;
	size_t options_size; /* of the struct that the options are parsed into */
	const void *defaults; /* such a struct, to start from; NULL: all zero */
	bool options_first; /* options end at the first operand: the rest is another program's */
	bool hidden; /* not in overviews */
	/* Gets the parsed options and the operands; returns the exit status. */
	int (*run)(const struct cli *cli, void *options, int nr_operands, char **operands);
};

/* The command's options, as they are before parsing. */
void *options_new(const struct command *cmd);
/* Frees the lists in options and options itself. Accepts NULL. */
void options_free(const struct command *cmd, void *options);

/*
 * Parses argc words that follow the command's name. On success the operands
 * stand first in argv and their number is returned. -ECANCELED when help was
 * asked for, in which case nothing more was looked at; -EINVAL with words for
 * every misuse.
 */
MUST_CHECK int options_parse(const struct command *cmd, int argc, char **argv, void *options,
			     struct err *err);

/*
 * The nr-th form in which the command is used, without the program's name;
 * false: no more.
 */
bool options_put_usage(const struct command *cmd, unsigned int nr, struct buf *b);

/* The table with -h at its end: nr counts from 0; NULL: no more. */
const struct option_spec *options_get_spec(const struct command *cmd, unsigned int nr);
/* The help text with the choices and the default. */
void options_put_help(const struct command *cmd, const struct option_spec *spec, struct buf *b);
/* All forms, as lines that begin with "usage:". */
void options_put_synopsis(const struct command *cmd, const char *program, struct buf *b);
/* What `-h` prints, for a terminal of 80 columns. */
void options_put_page(const struct command *cmd, const char *program, struct buf *b);

#endif
