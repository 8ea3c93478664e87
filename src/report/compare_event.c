/* SPDX-License-Identifier: MIT */
#include "report/compare_event.h"

#include <errno.h>
#include <string.h>

#include "base/banned.h"
#include "base/mem.h"
#include "base/strings.h"

const char *const difference_names[DIFFERENCE_MAX] = {
	[DIFFERENCE_MISSING] = "missing", [DIFFERENCE_EXTRA] = "extra",
	[DIFFERENCE_CALL] = "call",	  [DIFFERENCE_ARGUMENT] = "argument",
	[DIFFERENCE_OUTCOME] = "outcome", [DIFFERENCE_DATA] = "data",
};

static const struct {
	const char *word;
	unsigned int bit;
} ignore_words[] = {
	{ "pids", IGNORE_PIDS },     { "addrs", IGNORE_ADDRS },	    { "times", IGNORE_TIMES },
	{ "inodes", IGNORE_INODES }, { "fds", IGNORE_FDS },	    { "owners", IGNORE_OWNERS },
	{ "data", IGNORE_DATA },     { "unknown", IGNORE_UNKNOWN },
};

static int parse_ignore_word(const char *word, unsigned int *ret, struct err *err)
{
	struct nearest near = { .typed = word };
	size_t i;

	for (i = 0; i < ARRAY_LEN(ignore_words); i++) {
		if (!strcmp(ignore_words[i].word, word)) {
			*ret |= ignore_words[i].bit;
			return 0;
		}
		nearest_offer(&near, ignore_words[i].word);
	}
	if (near.word)
		return err_set(err, -EINVAL, "cannot ignore '%s'; did you mean '%s'?", word,
			       near.word);
	return err_set(
		err, -EINVAL,
		"cannot ignore '%s': not pids, addrs, times, inodes, fds, owners, data or unknown",
		word);
}

int compare_parse_ignore(const char *words, unsigned int *ret, struct err *err)
{
	unsigned int bits = *ret;

	for (;;) {
		size_t len = strcspn(words, ",");
		AUTO_FREE char *word = xmemdup0(words, len);
		int r = parse_ignore_word(word, &bits, err);

		if (r < 0)
			return r;
		if (!words[len])
			break;
		words += len + 1;
	}
	*ret = bits;
	return 0;
}

/* Which values are left out. */

/* A value in its surroundings: came_back when the call gave it, not the program. */
struct place {
	unsigned int ignore;
	bool came_back;
};

static bool is_time(const struct arg *arg, const struct place *place)
{
	const char *type;

	if (arg->kind == KIND_NSEC)
		return true;
	/* utimensat() asks for times; a difference there is one. */
	if (!place->came_back)
		return false;
	if (strstr(arg->name, "time"))
		return true;
	type = struct_descs[arg->struct_id].name;
	return arg->struct_id && (strstr(type, "time") || !strcmp(type, "rusage"));
}

static bool is_inode(const struct arg *arg)
{
	size_t len = strlen(arg->name);

	return arg->kind == KIND_DEV || (len >= 3 && !strcmp(arg->name + len - 3, "ino"));
}

static bool is_ignored(const struct arg *arg, const struct place *place)
{
	unsigned int ignore = place->ignore;

	switch ((enum kind)arg->kind) {
	case KIND_HOLE:
		return true;
	case KIND_PID:
		return ignore & IGNORE_PIDS;
	case KIND_ADDR:
		return ignore & IGNORE_ADDRS;
	case KIND_FD:
	case KIND_DIRFD:
		return ignore & IGNORE_FDS;
	case KIND_UID:
	case KIND_GID:
		return ignore & IGNORE_OWNERS;
	case KIND_BUF:
	case KIND_HASH:
		return ignore & IGNORE_DATA;
	default:
		return (ignore & IGNORE_TIMES && is_time(arg, place)) ||
		       (ignore & IGNORE_INODES && is_inode(arg));
	}
}

static struct arg arg_of_items(const struct arg *list)
{
	struct arg item = *list;

	item.kind = list->elem ? list->elem : KIND_STRUCT;
	return item;
}

/* Comparing values. */

enum differs {
	DIFFERS_IN_DATA = 1,
	DIFFERS_IN_ELSE = 2,
};

static unsigned int compare_value(const struct arg *arg, const struct value *a,
				  const struct value *b, const struct place *place);

static uint64_t full_pieces(uint64_t kept_bytes)
{
	return kept_bytes / BLOB_MAX_BYTES;
}

/* When one trace kept more than the other, only what both have can differ. */
static bool common_data_equal(const struct data *a, const struct data *b)
{
	uint64_t kept = a->kept_bytes < b->kept_bytes ? a->kept_bytes : b->kept_bytes;
	uint64_t i;

	if (a->len_bytes != b->len_bytes)
		return false;
	if (a->bytes && b->bytes)
		return !kept || !memcmp(a->bytes, b->bytes, kept);
	if (!a->refs || !b->refs)
		return true;
	for (i = 0; i < full_pieces(kept); i++) {
		if (!hash_equal(a->refs[i].hash, b->refs[i].hash))
			return false;
	}
	return true;
}

static bool compare_data(const struct data *a, const struct data *b)
{
	return a->kept_bytes == b->kept_bytes ? data_equal(a, b) : common_data_equal(a, b);
}

static unsigned int compare_structs(const struct arg *arg, const struct value *a,
				    const struct value *b, const struct place *place)
{
	const struct struct_desc *desc = &struct_descs[arg->struct_id];
	unsigned int i, differs = 0;

	for (i = 0; i < desc->nr_fields; i++) {
		static const struct value none = { .type = VALUE_NONE };
		const struct value *x = value_field(a, i), *y = value_field(b, i);

		differs |= compare_value(&desc->fields[i], x ? x : &none, y ? y : &none, place);
	}
	return differs;
}

static unsigned int compare_lists(const struct arg *arg, const struct value *a,
				  const struct value *b, const struct place *place)
{
	struct arg item = arg_of_items(arg);
	unsigned int differs = 0;
	uint32_t i;

	if (a->count != b->count)
		return DIFFERS_IN_ELSE;
	for (i = 0; i < a->count; i++)
		differs |= compare_value(&item, &a->items[i], &b->items[i], place);
	return differs;
}

static unsigned int compare_value(const struct arg *arg, const struct value *a,
				  const struct value *b, const struct place *place)
{
	unsigned int differs = arg->kind == KIND_BUF ? DIFFERS_IN_DATA : DIFFERS_IN_ELSE;

	if (is_ignored(arg, place))
		return 0;
	if (place->ignore & IGNORE_UNKNOWN && (a->type == VALUE_NONE || b->type == VALUE_NONE))
		return 0;
	if (a->type != b->type)
		return differs;
	switch ((enum value_type)a->type) {
	case VALUE_NONE:
	case VALUE_NULL:
		return 0;
	case VALUE_ADDR:
		return a->u == b->u || place->ignore & IGNORE_ADDRS ? 0 : differs;
	case VALUE_INT:
		return a->u == b->u ? 0 : differs;
	case VALUE_DATA:
		return compare_data(a->data, b->data) ? 0 : differs;
	case VALUE_STRUCT:
		return compare_structs(arg, a, b, place);
	case VALUE_LIST:
		return compare_lists(arg, a, b, place);
	}
	return 0;
}

bool compare_values(const struct arg *arg, const struct value *a, const struct value *b,
		    unsigned int ignore, bool came_back)
{
	struct place place = { .ignore = ignore, .came_back = came_back };

	return compare_value(arg, a, b, &place);
}

/* Comparing events. */

static bool result_is_ignored(const struct row *row, unsigned int ignore)
{
	switch ((enum row_result)row->result) {
	case RESULT_PID:
		return ignore & IGNORE_PIDS;
	case RESULT_ADDRESS:
		return ignore & IGNORE_ADDRS;
	case RESULT_NEW_FD:
		return ignore & IGNORE_FDS;
	default:
		/* A register of the program: what the call before the handler gave, often a pid. */
		if (row->id == SC_rt_sigreturn)
			return ignore & IGNORE_PIDS;
		return ignore & IGNORE_TIMES && (row->id == SC_time || row->id == SC_times);
	}
}

static unsigned int telling_flags(const struct event *ev)
{
	return ev->flags & ~(unsigned int)(EVENT_NO_TIME | EVENT_NO_DURATION | EVENT_SIMULATED |
					   EVENT_VERIFIED | EVENT_ENFORCED);
}

bool compare_results(const struct event *a, const struct event *b, unsigned int ignore)
{
	return a->outcome.err != b->outcome.err ||
	       (a->outcome.ret != b->outcome.ret && !result_is_ignored(a->row, ignore));
}

/* Apart from results and arguments. */
static bool heads_differ(const struct event *a, const struct event *b, unsigned int ignore)
{
	return telling_flags(a) != telling_flags(b) ||
	       (!(ignore & IGNORE_PIDS) && (a->ppid != b->ppid || a->pgid != b->pgid));
}

bool compare_came_back(const struct arg *arg)
{
	return arg->reg == REG_NONE || arg->dir == ARG_OUT;
}

static enum difference kind_of(const struct arg *arg, unsigned int differs)
{
	if (differs == DIFFERS_IN_DATA)
		return DIFFERENCE_DATA;
	return compare_came_back(arg) ? DIFFERENCE_OUTCOME : DIFFERENCE_ARGUMENT;
}

static void worsen(enum difference *how, const char **what, enum difference new_how,
		   const char *new_what)
{
	if (new_how < *how) {
		*how = new_how;
		*what = new_what;
	}
}

bool compare_events(const struct event *a, const struct event *b, unsigned int ignore,
		    enum difference *ret_how, const char **ret_what)
{
	enum difference how = DIFFERENCE_MAX;
	const char *what = NULL;
	unsigned int i;

	if (a->row->id != b->row->id || strcmp(a->row->name, b->row->name) != 0) {
		*ret_how = DIFFERENCE_CALL;
		*ret_what = "call";
		return true;
	}
	if (compare_results(a, b, ignore))
		worsen(&how, &what, DIFFERENCE_OUTCOME, "result");
	for (i = 0; i < a->row->nr_args && i < b->row->nr_args; i++) {
		const struct arg *arg = &a->row->args[i];
		struct place place = { .ignore = ignore, .came_back = compare_came_back(arg) };
		unsigned int differs = compare_value(arg, &a->args[i], &b->args[i], &place);

		if (differs)
			worsen(&how, &what, kind_of(arg, differs), arg->name);
	}
	if (how == DIFFERENCE_MAX && heads_differ(a, b, ignore))
		worsen(&how, &what, DIFFERENCE_OUTCOME, "result");
	if (how == DIFFERENCE_MAX)
		return false;
	*ret_how = how;
	*ret_what = what;
	return true;
}

/* Fingerprints. */

static uint64_t mix(uint64_t h, uint64_t v)
{
	h = (h ^ v) * UINT64_C(0x9e3779b97f4a7c15);
	return h ^ h >> 32;
}

static uint64_t mix_data(uint64_t h, const struct data *d)
{
	uint64_t i, nr = data_nr_pieces(d);

	h = mix(h, d->len_bytes);
	for (i = 0; i < nr && d->refs; i++)
		h = mix(h, d->refs[i].hash.low);
	/* As it would be by refs: bytes in one trace may be refs in the other. */
	for (i = 0; i < nr && !d->refs; i++) {
		uint64_t from = i * BLOB_MAX_BYTES, len = d->kept_bytes - from;

		h = mix(h, hash_bytes(d->bytes + from, len < BLOB_MAX_BYTES ? len : BLOB_MAX_BYTES)
				   .low);
	}
	return h;
}

static uint64_t mix_value(uint64_t h, const struct arg *arg, const struct value *v,
			  const struct place *place)
{
	const struct struct_desc *desc = &struct_descs[arg->struct_id];
	struct arg item;
	uint32_t i;

	if (is_ignored(arg, place))
		return h;
	h = mix(h, v->type);
	switch ((enum value_type)v->type) {
	case VALUE_NONE:
	case VALUE_NULL:
		break;
	case VALUE_ADDR:
		return place->ignore & IGNORE_ADDRS ? h : mix(h, v->u);
	case VALUE_INT:
		return mix(h, v->u);
	case VALUE_DATA:
		return mix_data(h, v->data);
	case VALUE_STRUCT:
		for (i = 0; i < desc->nr_fields; i++) {
			const struct value *field = value_field(v, i);

			h = field ? mix_value(h, &desc->fields[i], field, place) : h;
		}
		break;
	case VALUE_LIST:
		item = arg_of_items(arg);
		h = mix(h, v->count);
		for (i = 0; i < v->count; i++)
			h = mix_value(h, &item, &v->items[i], place);
		break;
	}
	return h;
}

uint64_t compare_fingerprint(const struct event *ev, unsigned int ignore)
{
	uint64_t h = mix(ev->row->id, (uint64_t)ev->outcome.err);
	unsigned int i;

	h = mix(h, telling_flags(ev));
	if (!result_is_ignored(ev->row, ignore))
		h = mix(h, (uint64_t)ev->outcome.ret);
	for (i = 0; i < ev->row->nr_args; i++) {
		const struct arg *arg = &ev->row->args[i];
		struct place place = { .ignore = ignore, .came_back = compare_came_back(arg) };

		/* What one trace does not know must not tell them apart. */
		if (!(ignore & IGNORE_UNKNOWN && place.came_back))
			h = mix_value(h, arg, &ev->args[i], &place);
	}
	return h;
}

uint64_t compare_fingerprint_item(const struct item *item, unsigned int ignore)
{
	struct place place = { .ignore = ignore, .came_back = true };
	uint64_t h = item->row->id;
	unsigned int i;

	for (i = 0; i < item->row->nr_args; i++)
		h = mix_value(h, &item->row->args[i], &item->args[i], &place);
	return h;
}
