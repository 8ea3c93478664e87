/* SPDX-License-Identifier: MIT */
/* reprise calls: the table of calls, and what this program does with each. */
#include <fnmatch.h>
#include <string.h>

#include "base/banned.h"
#include "base/json.h"
#include "base/strings.h"
#include "cli/cli.h"
#include "model/row.h"
#include "record/source.h"

#if defined(__x86_64__)
#define OWN_ARCH ARCH_X86_64
#elif defined(__i386__)
#define OWN_ARCH ARCH_I386
#elif defined(__aarch64__)
#define OWN_ARCH ARCH_AARCH64
#endif

struct calls_options {
	struct option_strings classes;
	bool events, json;
};

/* As in enum row_support and enum row_result. */
static const char *const support_names[] = { "generic",	  "special", "nothing",
					     "simulated", "waiting", "unsupported" };
static const char *const result_names[] = {
	[RESULT_ZERO] = "zero",
	[RESULT_NEW_FD] = "new_fd",
	[RESULT_BYTES_READ] = "bytes_read",
	[RESULT_BYTES_WRITTEN] = "bytes_written",
	[RESULT_BYTES_COPIED] = "bytes_copied",
	[RESULT_COUNT] = "count",
	[RESULT_OFFSET] = "offset",
	[RESULT_ADDRESS] = "address",
	[RESULT_PID] = "pid",
	[RESULT_ID] = "id",
	[RESULT_MODE] = "mode",
	[RESULT_OPEN_FLAGS] = "open_flags",
	[RESULT_FD_FLAGS] = "fd_flags",
	[RESULT_VALUE] = "value",
	[RESULT_NEVER] = "never",
	[RESULT_NOTHING] = "nothing",
};

/* Does the kernel of this machine have the call, itself or as what it is a variant of? */
static bool is_native(const struct row *row)
{
#ifdef OWN_ARCH
	const struct row_variant *v = row_variant_of(row);
	const struct row *base = v ? row_by_id(v->base) : row;

	return base && row_nr(OWN_ARCH, base) >= 0;
#else
	(void)row;
	return false;
#endif
}

/* Some source writes it. */
static bool is_recorded(const struct row *row)
{
	const struct source *const *s;
	const uint16_t *id;

	if (row->sort != ROW_EVENT)
		return is_native(row) || row->id == SC_unknown_call;
	for (s = sources; *s; s++) {
		for (id = (*s)->events; *id; id++) {
			if (*id == row->id)
				return true;
		}
	}
	return false;
}

static const char *record_word(const struct row *row)
{
	if (is_recorded(row))
		return "recorded";
	return row->sort == ROW_CALL ? "imported" : "unsupported";
}

static const char *direction_word(const struct arg *arg)
{
	if (arg->reg == REG_NONE)
		return "found";
	switch (arg->dir) {
	case ARG_OUT:
		return "out";
	case ARG_IN | ARG_OUT:
		return "inout";
	}
	return "in";
}

/* Output. */

static void put_args(struct buf *b, const struct row *row)
{
	unsigned int i;

	for (i = 0; i < row->nr_args; i++)
		buf_printf(b, "%s%s", i ? ", " : "", row->args[i].name);
}

static void print_text(const struct cli *cli, const struct row *row)
{
	struct buf args = { 0 };

	put_args(&args, row);
	fprintf(cli->out, "%4u %-24s %-7s %-11s %-11s %-11s (%s)\n", row->id, row->name,
		class_names[row_class(row)], record_word(row), support_names[row->model],
		support_names[row->replay], buf_str(&args));
	buf_release(&args);
}

static void print_json(struct json *w, const struct row *row)
{
	unsigned int i;

	json_object_begin(w);
	json_kv_u64(w, "id", row->id);
	json_kv_str(w, "name", row->name);
	json_kv_str(w, "class", class_names[row_class(row)]);
	json_kv_bool(w, "waits", row->class & A_WAITS);
	json_key(w, "args");
	json_array_begin(w);
	for (i = 0; i < row->nr_args; i++) {
		json_object_begin(w);
		json_kv_str(w, "name", row->args[i].name);
		json_kv_str(w, "kind", kind_infos[row->args[i].kind].name);
		json_kv_str(w, "direction", direction_word(&row->args[i]));
		json_object_end(w);
	}
	json_array_end(w);
	json_kv_str(w, "result", result_names[row->result]);
	json_kv_str(w, "record", record_word(row));
	json_kv_str(w, "model", support_names[row->model]);
	json_kv_str(w, "replay", support_names[row->replay]);
	json_object_end(w);
}

/* Which rows. */

static bool name_is_wanted(const struct row *row, int nr_names, char **names)
{
	const struct row_variant *v = row_variant_of(row);
	const struct row *base = v ? row_by_id(v->base) : NULL;
	int i;

	for (i = 0; i < nr_names; i++) {
		if (!fnmatch(names[i], row->name, 0) || (base && !fnmatch(names[i], base->name, 0)))
			return true;
	}
	return !nr_names;
}

static bool class_is_wanted(const struct row *row, const struct option_strings *classes)
{
	size_t i;

	for (i = 0; i < classes->len; i++) {
		if (!strcmp(classes->items[i], class_names[row_class(row)]))
			return true;
	}
	return !classes->len;
}

static bool row_is_wanted(const struct row *row, const struct calls_options *o, int nr_names,
			  char **names)
{
	return row->sort == (o->events ? ROW_EVENT : ROW_CALL) &&
	       class_is_wanted(row, &o->classes) && name_is_wanted(row, nr_names, names);
}

static const char *unknown_class(const struct option_strings *classes, const char **ret_near)
{
	size_t i;
	unsigned int class;

	for (i = 0; i < classes->len; i++) {
		struct nearest near = { .typed = classes->items[i] };

		for (class = 1; class < C_RECORD; class ++) {
			if (!strcmp(class_names[class], classes->items[i]))
				break;
			nearest_offer(&near, class_names[class]);
		}
		if (class == C_RECORD) {
			*ret_near = near.word;
			return classes->items[i];
		}
	}
	return NULL;
}

static int unknown_call(const struct cli *cli, const struct calls_options *o, const char *name)
{
	struct nearest near = { .typed = name };
	const char *what = o->events ? "event" : "call";
	unsigned int id;

	for (id = 0; id < ROW_ID_MAX; id++) {
		const struct row *row = row_by_id(id);

		if (row && row->sort == (o->events ? ROW_EVENT : ROW_CALL))
			nearest_offer(&near, row->name);
	}
	if (near.word)
		return cli_fail_with(cli, "unknown %s '%s'; did you mean '%s'?", what, name,
				     near.word);
	return cli_fail_with(cli, "unknown %s '%s'", what, name);
}

/* A word that names nothing is a mistake, also when another one names something. */
static int check_names(const struct cli *cli, const struct calls_options *o, int nr_names,
		       char **names)
{
	unsigned int id;
	int i;

	for (i = 0; i < nr_names; i++) {
		bool found = false;

		for (id = 0; id < ROW_ID_MAX && !found; id++) {
			const struct row *row = row_by_id(id);

			found = row && row_is_wanted(row, o, 1, &names[i]);
		}
		if (!found)
			return unknown_call(cli, o, names[i]);
	}
	return CLI_DONE;
}

static void print_rows(const struct cli *cli, const struct calls_options *o, int nr_names,
		       char **names)
{
	struct json w = { 0 };
	unsigned int id;

	if (o->json) {
		json_init_file(&w, cli->out, JSON_PRETTY);
		json_array_begin(&w);
	} else {
		fprintf(cli->out, "%4s %-24s %-7s %-11s %-11s %-11s %s\n", "id", "name", "class",
			"record", "model", "replay", "arguments");
	}
	for (id = 0; id < ROW_ID_MAX; id++) {
		const struct row *row = row_by_id(id);

		if (!row || !row_is_wanted(row, o, nr_names, names))
			continue;
		if (o->json)
			print_json(&w, row);
		else
			print_text(cli, row);
	}
	if (o->json) {
		json_array_end(&w);
		json_release(&w);
	} else {
	}
}

static int calls_run(const struct cli *cli, void *options, int nr_operands, char **operands)
{
	const struct calls_options *o = options;
	const char *near = NULL;
	const char *class = unknown_class(&o->classes, &near);
	int status;

	if (class && near)
		return cli_fail_with(cli, "unknown class '%s'; did you mean '%s'?", class, near);
	if (class)
		return cli_fail_with(cli, "unknown class '%s'", class);
	status = check_names(cli, o, nr_operands, operands);
	if (status == CLI_DONE)
		print_rows(cli, o, nr_operands, operands);
	return status;
}

static const struct option_spec calls_specs[] = {
	OPT_STRINGS('C', "class", "CLASS", struct calls_options, classes,
		    "only those of this class"),
	OPT_FLAG('e', "events", struct calls_options, events,
		 "the events that are not calls, instead"),
	OPT_FLAG('j', "json", struct calls_options, json, "print JSON"),
};

const struct command command_calls = {
	.name = "calls",
	.summary = "list the calls and events that are known",
	.operands = "[NAME...]",
	.options = calls_specs,
	.nr_options = ARRAY_LEN(calls_specs),
	.options_size = sizeof(struct calls_options),
	.run = calls_run,
};
