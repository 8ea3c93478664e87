/* SPDX-License-Identifier: MIT */
#include "base/options.h"

#include <assert.h>
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/banned.h"
#include "base/mem.h"
#include "base/strings.h"

#define PAGE_COLUMNS 80
#define HELP_COLUMN_MAX 30

static const struct option_spec help_spec = {
	.short_name = 'h',
	.long_name = "help",
	.type = OPTION_FLAG,
	.help = "print this help",
};

struct parser {
	const struct command *cmd;
	int argc;
	char **argv;
	int next; /* the word to look at */
	int nr_operands; /* gathered in front of argv; never overtakes next */
	uint8_t *options;
	struct err *err;
};

const struct option_spec *options_get_spec(const struct command *cmd, unsigned int nr)
{
	if (nr < cmd->nr_options)
		return &cmd->options[nr];
	return nr == cmd->nr_options ? &help_spec : NULL;
}

#define SPEC_EACH(cmd, spec, nr) for (nr = 0; (spec = options_get_spec(cmd, nr)) != NULL; nr++)

static const struct option_spec *find_short(const struct command *cmd, char name)
{
	const struct option_spec *spec;
	unsigned int nr;

	SPEC_EACH(cmd, spec, nr)
	{
		if (spec->short_name == name)
			return spec;
	}
	return NULL;
}

static const struct option_spec *find_long(const struct command *cmd, const char *name, size_t len)
{
	const struct option_spec *spec;
	unsigned int nr;

	SPEC_EACH(cmd, spec, nr)
	{
		if (strlen(spec->long_name) == len && !memcmp(spec->long_name, name, len))
			return spec;
	}
	return NULL;
}

/*
 * A wrong table is a mistake of ours and must not wait for the one input that
 * shows it.
 */
static void check_table(const struct command *cmd)
{
	const struct option_spec *spec;
	unsigned int nr;

	SPEC_EACH(cmd, spec, nr)
	{
		assert(find_long(cmd, spec->long_name, strlen(spec->long_name)) == spec);
		assert(!spec->short_name || find_short(cmd, spec->short_name) == spec);
		assert((spec->type == OPTION_FLAG) == !spec->arg_name);
		assert((spec->type == OPTION_CHOICE) == !!spec->choices);
		assert(spec == &help_spec || spec->offset < cmd->options_size);
		assert(spec->help);
	}
}

void *options_new(const struct command *cmd)
{
	void *options = xcalloc(1, cmd->options_size);

	if (cmd->defaults)
		memcpy(options, cmd->defaults, cmd->options_size);
	return options;
}

void options_free(const struct command *cmd, void *options)
{
	unsigned int nr;

	if (!options)
		return;
	for (nr = 0; nr < cmd->nr_options; nr++) {
		void *at = (uint8_t *)options + cmd->options[nr].offset;

		if (cmd->options[nr].type == OPTION_STRINGS)
			VEC_RELEASE((struct option_strings *)at);
		else if (cmd->options[nr].type == OPTION_U64S)
			VEC_RELEASE((struct option_u64s *)at);
	}
	free(options);
}

/* An option as the user wrote it, for messages. */
struct given {
	char dashes_name[80]; /* "--limit", "-n" */
	const char *joint; /* between name and value: "=" or " " */
};

static int bad_value(const struct parser *p, const struct given *given, const char *value,
		     const char *why)
{
	return err_set(p->err, -EINVAL, "'%s%s%s': %s", given->dashes_name, given->joint, value,
		       why);
}

static int set_choice(const struct parser *p, const struct option_spec *spec,
		      const struct given *given, const char *value)
{
	unsigned int nr;
	struct buf words = { 0 };
	int r;

	for (nr = 0; spec->choices[nr]; nr++) {
		if (!strcmp(spec->choices[nr], value)) {
			memcpy(p->options + spec->offset, &nr, sizeof(nr));
			return 0;
		}
	}
	buf_puts(&words, spec->choices[1] ? "must be one of " : "must be ");
	for (nr = 0; spec->choices[nr]; nr++)
		buf_printf(&words, "%s%s", nr ? ", " : "", spec->choices[nr]);
	r = bad_value(p, given, value, buf_str(&words));
	buf_release(&words);
	return r;
}

static const char *number_problem(int r, enum option_type type)
{
	if (r == -ERANGE)
		return "too large";
	if (type == OPTION_SIZE)
		return "not a size, such as 4096, 64K or 1.5G";
	if (type == OPTION_DURATION)
		return "not a duration, such as 10us, 5ms, 1.5s or 2m";
	return "not a number";
}

static int set_number(const struct parser *p, const struct option_spec *spec,
		      const struct given *given, const char *value)
{
	uint64_t number;
	int r;

	if (spec->type == OPTION_SIZE)
		r = strings_parse_size(value, &number);
	else if (spec->type == OPTION_DURATION)
		r = strings_parse_duration(value, &number);
	else
		r = strings_parse_u64(value, &number);
	if (r < 0)
		return bad_value(p, given, value, number_problem(r, spec->type));
	memcpy(p->options + spec->offset, &number, sizeof(number));
	return 0;
}

/* Of no rights at all a file would be no use. */
static int set_mode(const struct parser *p, const struct option_spec *spec,
		    const struct given *given, const char *value)
{
	size_t len = strlen(value);
	unsigned int mode;

	mode = len <= 4 ? (unsigned int)strtoul(value, NULL, 8) : 0;
	if (!mode || mode > 0777 || strspn(value, "01234567") < len)
		return bad_value(p, given, value, "not a mode in octal, such as 640");
	memcpy(p->options + spec->offset, &mode, sizeof(mode));
	return 0;
}

static int add_numbers(const struct parser *p, const struct option_spec *spec,
		       const struct given *given, const char *value)
{
	struct option_u64s *list = (struct option_u64s *)(void *)(p->options + spec->offset);
	const char *start = value;

	for (;;) {
		char word[32];
		size_t len = strcspn(start, ",");
		uint64_t number;
		int r;

		/*
		 * Too long for the word is too long for a number; leading zeros
		 * aside.
		 */
		(void)snprintf(word, sizeof(word), "%.*s", (int)(len < INT_MAX ? len : INT_MAX),
			       start);
		r = strings_parse_u64(word, &number);
		if (r == 0 && len >= sizeof(word))
			r = -ERANGE;
		if (r < 0)
			return bad_value(p, given, value, number_problem(r, spec->type));
		VEC_PUSH(list, number);
		if (!start[len])
			return 0;
		start += len + 1;
	}
}

static int set_value(const struct parser *p, const struct option_spec *spec,
		     const struct given *given, const char *value)
{
	switch (spec->type) {
	case OPTION_FLAG:
		break;
	case OPTION_STRING:
		memcpy(p->options + spec->offset, &value, sizeof(value));
		return 0;
	case OPTION_U64:
	case OPTION_SIZE:
	case OPTION_DURATION:
		if (spec->once && *(uint64_t *)(void *)(p->options + spec->offset))
			return err_set(p->err, -EINVAL, "%s may be given once only",
				       given->dashes_name);
		return set_number(p, spec, given, value);
	case OPTION_MODE:
		return set_mode(p, spec, given, value);
	case OPTION_CHOICE:
		return set_choice(p, spec, given, value);
	case OPTION_STRINGS:
		VEC_PUSH((struct option_strings *)(void *)(p->options + spec->offset), value);
		return 0;
	case OPTION_U64S:
		return add_numbers(p, spec, given, value);
	}
	/* Not a type, or a switch, which has no value to set. */
	assert(false);
	return -EINVAL;
}

static int set_switch(const struct parser *p, const struct option_spec *spec)
{
	if (spec == &help_spec)
		return -ECANCELED;
	*(bool *)(p->options + spec->offset) = true;
	return 0;
}

/* The value is what follows in the same word, or else the next word. */
static int take_value(struct parser *p, const struct option_spec *spec, const struct given *given,
		      const char *attached)
{
	if (!attached) {
		if (p->next >= p->argc)
			return err_set(p->err, -EINVAL, "option '%s' needs a value",
				       given->dashes_name);
		attached = p->argv[p->next++];
	}
	return set_value(p, spec, given, attached);
}

static int unknown_long(const struct parser *p, const char *name, size_t len)
{
	char typed[64];
	struct nearest near = { .typed = typed };
	const struct option_spec *spec;
	unsigned int nr;

	(void)snprintf(typed, sizeof(typed), "%.*s", (int)(len < 64 ? len : 64), name);
	SPEC_EACH(p->cmd, spec, nr)
	nearest_offer(&near, spec->long_name);
	if (near.word)
		return err_set(p->err, -EINVAL, "unknown option '--%s'; did you mean '--%s'?",
			       typed, near.word);
	return err_set(p->err, -EINVAL, "unknown option '--%s'", typed);
}

static int parse_long(struct parser *p, const char *word)
{
	const char *name = word + 2;
	size_t len = strcspn(name, "=");
	const char *value = name[len] ? name + len + 1 : NULL;
	const struct option_spec *spec = find_long(p->cmd, name, len);
	struct given given = { .joint = value ? "=" : " " };

	if (!spec)
		return unknown_long(p, name, len);
	(void)snprintf(given.dashes_name, sizeof(given.dashes_name), "--%s", spec->long_name);
	if (spec->type != OPTION_FLAG)
		return take_value(p, spec, &given, value);
	if (value)
		return err_set(p->err, -EINVAL, "option '%s' takes no value", given.dashes_name);
	return set_switch(p, spec);
}

/* The letter may be one of several bytes. */
static int unknown_short(const struct parser *p, const char *c)
{
	size_t len = strings_utf8_sequence((const uint8_t *)c, strlen(c));

	return err_set(p->err, -EINVAL, "unknown option '-%.*s'", (int)(len ? len : 1), c);
}

/* "-xyz": switches, the last of which may be an option with its value. */
static int parse_short(struct parser *p, const char *word)
{
	const char *c;
	int r;

	for (c = word + 1; *c; c++) {
		const struct option_spec *spec = find_short(p->cmd, *c);
		struct given given = { .dashes_name = { '-', *c }, .joint = " " };

		if (!spec)
			return unknown_short(p, c);
		if (spec->type != OPTION_FLAG)
			return take_value(p, spec, &given, c[1] ? c + 1 : NULL);
		r = set_switch(p, spec);
		if (r < 0)
			return r;
	}
	return 0;
}

/*
 * Goes through the words of `operands`; each is [optional], REPEATED..., or
 * plain.
 */
static int check_operands(const struct parser *p)
{
	const char *word = p->cmd->operands ? p->cmd->operands : "";
	unsigned int nr = (unsigned int)p->nr_operands, nr_needed = 0, nr_words = 0;
	bool is_endless = false;

	while (*word) {
		size_t len = strcspn(word, " "), name_len = strcspn(word, " .");

		is_endless |= name_len < len;
		nr_words++;
		if (*word != '[' && ++nr_needed > nr)
			return err_set(p->err, -EINVAL, "missing operand %.*s", (int)name_len,
				       word);
		word += len;
		word += strspn(word, " ");
	}
	if (nr > nr_words && !is_endless)
		return err_set(p->err, -EINVAL, "too many operands: '%s'", p->argv[nr_words]);
	return 0;
}

int options_parse(const struct command *cmd, int argc, char **argv, void *options, struct err *err)
{
	struct parser p = {
		.cmd = cmd, .argc = argc, .argv = argv, .options = options, .err = err
	};
	bool only_operands = false;
	int r;

	check_table(cmd);
	while (p.next < argc) {
		char *word = argv[p.next++];

		r = 0;
		if (only_operands || word[0] != '-' || !word[1]) {
			argv[p.nr_operands++] = word;
			only_operands |= cmd->options_first;
		} else if (!strcmp(word, "--")) {
			only_operands = true;
		} else if (word[1] == '-') {
			r = parse_long(&p, word);
		} else {
			r = parse_short(&p, word);
		}
		if (r < 0)
			return r;
	}
	r = check_operands(&p);
	return r < 0 ? r : p.nr_operands;
}

bool options_put_usage(const struct command *cmd, unsigned int nr, struct buf *b)
{
	if (nr > 0 && (!cmd->usage || !cmd->usage[nr]))
		return false;
	/* The program itself is a command without a name. */
	buf_printf(b, "%s%s", cmd->name, *cmd->name ? " " : "");
	buf_puts(b, cmd->usage ? cmd->usage[nr] : "[OPTION]...");
	if (!cmd->usage && cmd->operands)
		buf_printf(b, " %s", cmd->operands);
	return true;
}

static const char *default_text(const struct command *cmd, const struct option_spec *spec)
{
	unsigned int choice = 0;

	if (spec->default_text || spec->type != OPTION_CHOICE)
		return spec->default_text;
	if (cmd->defaults)
		memcpy(&choice, (const uint8_t *)cmd->defaults + spec->offset, sizeof(choice));
	return choice == OPTION_NO_CHOICE ? NULL : spec->choices[choice];
}

void options_put_help(const struct command *cmd, const struct option_spec *spec, struct buf *b)
{
	const char *standard = default_text(cmd, spec);
	unsigned int nr;

	buf_puts(b, spec->help);
	if (spec->choices) {
		buf_puts(b, ": ");
		for (nr = 0; spec->choices[nr]; nr++)
			buf_printf(b, "%s%s", nr ? ", " : "", spec->choices[nr]);
	}
	if (spec->type == OPTION_STRINGS || spec->type == OPTION_U64S)
		buf_puts(b, "; may be repeated");
	if (standard && *standard)
		buf_printf(b, " (default: %s)", standard);
}

static void put_left(const struct option_spec *spec, struct buf *b)
{
	if (spec->short_name)
		buf_printf(b, "  -%c, ", spec->short_name);
	else
		buf_puts(b, "      ");
	buf_printf(b, "--%s", spec->long_name);
	if (spec->arg_name)
		buf_printf(b, "=%s", spec->arg_name);
}

/* Words from the given column on, in as many lines as they need. */
static void put_wrapped(struct buf *b, const char *text, size_t column)
{
	size_t at = column;

	while (*text) {
		size_t len = strcspn(text, " ");

		if (at > column && at + 1 + len >= PAGE_COLUMNS) {
			buf_printf(b, "\n%*s", (int)column, "");
			at = column;
		} else if (at > column) {
			buf_putc(b, ' ');
			at++;
		}
		buf_put(b, text, len);
		at += len;
		text += len;
		text += strspn(text, " ");
	}
	buf_putc(b, '\n');
}

static void put_option(const struct command *cmd, const struct option_spec *spec, size_t column,
		       struct buf *b)
{
	struct buf help = { 0 };
	size_t start = b->len;

	put_left(spec, b);
	if (b->len - start + 2 > column) {
		buf_putc(b, '\n');
		start = b->len;
	}
	while (b->len - start < column)
		buf_putc(b, ' ');
	options_put_help(cmd, spec, &help);
	put_wrapped(b, buf_str(&help), column);
	buf_release(&help);
}

static size_t help_column(const struct command *cmd)
{
	const struct option_spec *spec;
	struct buf left = { 0 };
	size_t column = 0;
	unsigned int nr;

	SPEC_EACH(cmd, spec, nr)
	{
		buf_clear(&left);
		put_left(spec, &left);
		if (left.len + 2 > column && left.len + 2 <= HELP_COLUMN_MAX)
			column = left.len + 2;
	}
	buf_release(&left);
	return column;
}

void options_put_synopsis(const struct command *cmd, const char *program, struct buf *b)
{
	struct buf usage = { 0 };
	unsigned int nr;

	for (nr = 0; options_put_usage(cmd, nr, &usage); nr++) {
		buf_printf(b, "%s %s %s\n", nr ? "      " : "usage:", program, buf_str(&usage));
		buf_clear(&usage);
	}
	buf_release(&usage);
}

void options_put_page(const struct command *cmd, const char *program, struct buf *b)
{
	const struct option_spec *spec;
	size_t column = help_column(cmd);
	unsigned int nr;

	options_put_synopsis(cmd, program, b);
	buf_printf(b, "\n%c%s.\n\noptions:\n", toupper((unsigned char)cmd->summary[0]),
		   cmd->summary + 1);
	SPEC_EACH(cmd, spec, nr)
	put_option(cmd, spec, column, b);
}
