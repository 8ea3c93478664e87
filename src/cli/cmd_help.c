/* SPDX-License-Identifier: MIT */
/*
 * `reprise help`, and the other forms in which the tables of commands and
 * options are published: parts of the man pages and the shell completion, which
 * the build asks for.
 */
#include <ctype.h>
#include <errno.h>

#include "base/banned.h"
#include "cli/cli.h"

struct help_options {
	bool man_synopsis, man_options;
	unsigned int shell; /* which completion to print; OPTION_NO_CHOICE: none */
};

static const char *const shells[] = { "bash", NULL };

static void put_entry(const struct cli_entry *entry, struct buf *b)
{
	if (entry->group)
		buf_printf(b, "\n%s:\n", entry->group);
	else if (!entry->command->hidden)
		buf_printf(b, "  %-10s %s\n", entry->command->name, entry->command->summary);
}

void help_put_overview(struct buf *b)
{
	unsigned int nr;

	options_put_synopsis(&command_program, CLI_PROGRAM, b);
	for (nr = 0; nr < cli_nr_entries; nr++)
		put_entry(&cli_entries[nr], b);
	buf_puts(b,
		 "\nExample: what did the program do to its storage, and where did the time go?\n"
		 "  " CLI_PROGRAM " show app.trace | less\n"
		 "  " CLI_PROGRAM " stat app.trace\n"
		 "\n`" CLI_PROGRAM " COMMAND -h` lists a command's options.\n");
}

void help_put_command(const struct command *cmd, struct buf *b)
{
	options_put_page(cmd, CLI_PROGRAM, b);
}

/*
 * For roff: what is special to it, and what typesetters would turn into other
 * characters.
 */
static void put_roff_char(struct buf *b, char c)
{
	switch (c) {
	case '\\':
		buf_puts(b, "\\e");
		break;
	case '-':
		buf_puts(b, "\\-");
		break;
	case '\'':
		buf_puts(b, "\\(aq");
		break;
	case '`':
		buf_puts(b, "\\(ga");
		break;
	case '^':
		buf_puts(b, "\\(ha");
		break;
	case '~':
		buf_puts(b, "\\(ti");
		break;
	default:
		buf_putc(b, c);
	}
}

static void put_roff(struct buf *b, const char *text)
{
	if (*text == '.')
		buf_puts(b, "\\&"); /* else the line would be a request */
	while (*text)
		put_roff_char(b, *text++);
}

static bool is_name_char(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c == '-';
}

/*
 * Options are bold and operands, all in capitals, italic; brackets and dots
 * stay as they are.
 */
static void put_roff_usage(struct buf *b, const char *usage)
{
	while (*usage) {
		size_t len = 0;
		char font = 'R';

		while (is_name_char(usage[len]))
			len++;
		if (!len) {
			put_roff_char(b, *usage++);
			continue;
		}
		if (*usage == '-' || islower((unsigned char)*usage))
			font = 'B';
		else if (isupper((unsigned char)*usage))
			font = 'I';
		buf_printf(b, "\\f%c", font);
		while (len--)
			put_roff_char(b, *usage++);
		buf_puts(b, "\\fR");
	}
}

static void put_man_synopsis(const struct command *cmd, struct buf *b)
{
	struct buf usage = { 0 };
	unsigned int nr;

	for (nr = 0; options_put_usage(cmd, nr, &usage); nr++) {
		if (nr)
			buf_puts(b, ".br\n");
		buf_puts(b, "\\fB" CLI_PROGRAM "\\fR ");
		put_roff_usage(b, buf_str(&usage));
		buf_putc(b, '\n');
		buf_clear(&usage);
	}
	buf_release(&usage);
}

static void put_man_options(const struct command *cmd, struct buf *b)
{
	const struct option_spec *spec;
	struct buf help = { 0 };
	unsigned int nr;

	for (nr = 0; (spec = options_get_spec(cmd, nr)) != NULL; nr++) {
		buf_puts(b, ".TP\n");
		if (spec->short_name) {
			buf_puts(b, "\\fB\\-");
			put_roff_char(b, spec->short_name);
			buf_puts(b, "\\fR, ");
		}
		buf_puts(b, "\\fB\\-\\-");
		put_roff(b, spec->long_name);
		buf_puts(b, "\\fR");
		if (spec->arg_name) {
			buf_puts(b, "=\\fI");
			put_roff(b, spec->arg_name);
			buf_puts(b, "\\fR");
		}
		buf_clear(&help);
		options_put_help(cmd, spec, &help);
		buf_putc(b, '\n');
		put_roff(b, buf_str(&help));
		buf_putc(b, '\n');
	}
	buf_release(&help);
}

static void put_option_words(const struct command *cmd, struct buf *b)
{
	const struct option_spec *spec;
	unsigned int nr;

	for (nr = 0; (spec = options_get_spec(cmd, nr)) != NULL; nr++) {
		if (spec->short_name)
			buf_printf(b, "%s-%c", nr ? " " : "", spec->short_name);
		buf_printf(b, "%s--%s", nr || spec->short_name ? " " : "", spec->long_name);
	}
}

static void put_command_words(struct buf *b)
{
	const char *separator = "";
	unsigned int nr;

	for (nr = 0; nr < cli_nr_entries; nr++) {
		const struct command *cmd = cli_entries[nr].command;

		if (!cmd || cmd->hidden)
			continue;
		buf_printf(b, "%s%s", separator, cmd->name);
		separator = " ";
	}
}

/*
 * One branch of `case $command,$prev`: what may follow an option that takes a
 * value.
 */
static void put_bash_values(const struct command *cmd, const struct option_spec *spec,
			    struct buf *b)
{
	unsigned int nr;

	buf_printf(b, "\t%s,--%s", cmd->name, spec->long_name);
	if (spec->short_name)
		buf_printf(b, " | %s,-%c", cmd->name, spec->short_name);
	buf_puts(b, ")\n\t\twords='");
	for (nr = 0; spec->choices && spec->choices[nr]; nr++)
		buf_printf(b, "%s%s", nr ? " " : "", spec->choices[nr]);
	buf_puts(b, "'\n\t\t;;\n");
}

static void put_bash_command(const struct command *cmd, struct buf *b)
{
	const struct option_spec *spec;
	unsigned int nr;

	for (nr = 0; (spec = options_get_spec(cmd, nr)) != NULL; nr++) {
		if (spec->arg_name)
			put_bash_values(cmd, spec, b);
	}
	buf_printf(b, "\t%s,*)\n\t\twords='", cmd->name);
	put_option_words(cmd, b);
	buf_puts(b, "'\n");
	if (cmd == &command_help) {
		buf_puts(b, "\t\t[[ $cur == -* ]] || words='");
		put_command_words(b);
		buf_puts(b, "'\n");
	} else {
		/*
		 * Operands are files, and so are values without a list of their
		 * own.
		 */
		buf_puts(b, "\t\t[[ $cur == -* ]] || words=\n");
	}
	buf_puts(b, "\t\t;;\n");
}

/* In bash's eyes "--name=value" is three words. */
static void put_bash(struct buf *b)
{
	unsigned int nr;

	buf_puts(b, "# bash completion for " CLI_PROGRAM "\n"
		    "_" CLI_PROGRAM "()\n"
		    "{\n"
		    "\tlocal cur=${COMP_WORDS[COMP_CWORD]} prev=${COMP_WORDS[COMP_CWORD - 1]}\n"
		    "\tlocal command=${COMP_WORDS[1]} words=\n"
		    "\n"
		    "\tif [[ $cur == = ]]; then\n"
		    "\t\tcur=\n"
		    "\telif [[ $prev == = ]] && ((COMP_CWORD > 2)); then\n"
		    "\t\tprev=${COMP_WORDS[COMP_CWORD - 2]}\n"
		    "\tfi\n"
		    "\t((COMP_CWORD > 1)) || command=\n"
		    "\tcase $command,$prev in\n"
		    "\t,*)\n"
		    "\t\twords='");
	put_command_words(b);
	buf_puts(b, "'\n\t\t[[ $cur != -* ]] || words='");
	put_option_words(&command_program, b);
	buf_puts(b, "'\n\t\t;;\n");
	for (nr = 0; nr < cli_nr_entries; nr++) {
		if (cli_entries[nr].command && !cli_entries[nr].command->hidden)
			put_bash_command(cli_entries[nr].command, b);
	}
	buf_puts(b, "\tesac\n"
		    "\tmapfile -t COMPREPLY < <(compgen -W \"$words\" -- \"$cur\")\n"
		    "}\n"
		    "complete -o default -F _" CLI_PROGRAM " " CLI_PROGRAM "\n");
}

static int help_run(const struct cli *cli, void *options, int nr_operands, char **operands)
{
	const struct help_options *o = options;
	const struct command *cmd = &command_program;
	struct buf page = { 0 };
	struct err err = { 0 };

	if (nr_operands && cli_find_command(operands[0], &cmd, &err) < 0)
		return cli_fail(cli, &err);
	if (o->shell != OPTION_NO_CHOICE)
		put_bash(&page);
	else if (o->man_synopsis)
		put_man_synopsis(cmd, &page);
	else if (o->man_options)
		put_man_options(cmd, &page);
	else if (nr_operands)
		help_put_command(cmd, &page);
	else
		help_put_overview(&page);
	(void)!fwrite(page.data, 1, page.len, cli->out); /* checked when the program ends */
	buf_release(&page);
	return CLI_DONE;
}

static const struct option_spec help_specs[] = {
	OPT_FLAG(0, "man-synopsis", struct help_options, man_synopsis,
		 "print the synopsis for a man page, as roff"),
	OPT_FLAG(0, "man-options", struct help_options, man_options,
		 "print the list of options for a man page, as roff"),
	OPT_CHOICE(0, "completion", "SHELL", struct help_options, shell, shells,
		   "print the completion script for a shell"),
};

const struct command command_help = {
	.name = "help",
	.summary = "explain the program or a command",
	.operands = "[COMMAND]",
	.options = help_specs,
	.nr_options = ARRAY_LEN(help_specs),
	.options_size = sizeof(struct help_options),
	.defaults = &(const struct help_options){ .shell = OPTION_NO_CHOICE },
	.run = help_run,
};
