/* SPDX-License-Identifier: MIT */
#include "report/filter.h"

#include <errno.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

#include "base/banned.h"
#include "base/clock.h"
#include "base/mem.h"
#include "base/strings.h"
#include "model/vocab.h"

enum verdict {
	VERDICT_UNKNOWN,
	VERDICT_YES,
	VERDICT_NO,
};

enum class_bit {
	CLASS_FILE = 1u << 30, /* has the name of a file among its arguments */
	CLASS_DESC = 1u << 31, /* has a descriptor among its arguments */
};

struct path_pattern {
	char *text;
	bool glob;
	bool absolute; /* else it may match below any directory */
};

struct filter {
	const struct filter_options *o;
	VEC(char *) calls, not_calls;
	uint32_t classes; /* bits by enum row_class, and enum class_bit */
	VEC(int32_t) errnos;
	VEC(struct path_pattern) paths;
	uint32_t *pids, *tids; /* as a query wants them */
	bool empty, any_row;
	struct buf path; /* scratch */
	uint8_t rows[ROW_ID_MAX]; /* enum verdict, found when a row first appears */
};

static bool is_glob(const char *s)
{
	return strpbrk(s, "*?[") != NULL;
}

/* Calls `add` with each part of the comma-separated words. */
static int each_part(const struct option_strings *words, struct filter *f,
		     int (*add)(struct filter *f, const char *part, struct err *err),
		     struct err *err)
{
	size_t i;

	for (i = 0; i < words->len; i++) {
		const char *at = words->items[i];

		for (;;) {
			size_t len = strcspn(at, ",");
			AUTO_FREE char *part = xmemdup0(at, len);
			int r = add(f, part, err);

			if (r < 0)
				return r;
			if (!at[len])
				break;
			at += len + 1;
		}
	}
	return 0;
}

/* Text, and the kernel's name of a variant, which may be no row of its own in the text. */
static bool name_matches(const char *pattern, const struct row *row)
{
	const struct row_variant *v = row_variant_of(row);

	if (!fnmatch(pattern, row->name, 0))
		return true;
	return v && row_by_id(v->base) && !fnmatch(pattern, row_by_id(v->base)->name, 0);
}

static int check_call_name(const char *name, struct err *err)
{
	struct nearest near = { .typed = name };
	unsigned int id;

	/* A glob may be meant for rows that only the trace knows. */
	if (is_glob(name))
		return 0;
	for (id = 0; id < ROW_ID_MAX; id++) {
		const struct row *row = row_by_id(id);

		if (!row || row->sort == ROW_RECORD)
			continue;
		if (!strcmp(row->name, name))
			return 0;
		nearest_offer(&near, row->name);
	}
	if (near.word)
		return err_set(err, -EINVAL, "unknown call '%s'; did you mean '%s'?", name,
			       near.word);
	return err_set(err, -EINVAL, "unknown call '%s'", name);
}

static int add_call(struct filter *f, const char *part, struct err *err)
{
	bool negated = *part == '!';
	int r;

	part += negated;
	r = check_call_name(part, err);
	if (r < 0)
		return r;
	if (negated)
		VEC_PUSH(&f->not_calls, xstrdup(part));
	else
		VEC_PUSH(&f->calls, xstrdup(part));
	return 0;
}

static int add_class(struct filter *f, const char *part, struct err *err)
{
	struct nearest near = { .typed = part };
	unsigned int i;

	if (!strcmp(part, "%file")) {
		f->classes |= CLASS_FILE;
		return 0;
	}
	if (!strcmp(part, "%desc")) {
		f->classes |= CLASS_DESC;
		return 0;
	}
	for (i = 1; i < C_RECORD; i++) {
		if (!class_names[i])
			continue;
		if (!strcmp(class_names[i], part)) {
			f->classes |= 1u << i;
			return 0;
		}
		nearest_offer(&near, class_names[i]);
	}
	if (near.word)
		return err_set(err, -EINVAL, "unknown class '%s'; did you mean '%s'?", part,
			       near.word);
	return err_set(err, -EINVAL, "unknown class '%s'", part);
}

static int add_errno(struct filter *f, const char *part, struct err *err)
{
	int32_t number;

	if (!errno_parse(part, strlen(part), &number))
		return err_set(err, -EINVAL, "unknown error '%s'", part);
	VEC_PUSH(&f->errnos, number);
	return 0;
}

static int add_path(struct filter *f, const char *word, struct err *err)
{
	struct path_pattern pattern = { .glob = is_glob(word), .absolute = *word == '/' };
	struct buf clean = { 0 };

	fdpaths_join(&clean, word, strlen(word));
	if (!clean.len)
		return err_set(err, -EINVAL, "an empty path");
	pattern.text = xstrdup(buf_str(&clean));
	buf_release(&clean);
	VEC_PUSH(&f->paths, pattern);
	return 0;
}

/* Pids and tids of a trace have 32 bits; larger ones match nothing. */
static int check_numbers(const struct option_u64s *numbers, const char *what, struct err *err)
{
	size_t i;

	for (i = 0; i < numbers->len; i++) {
		if (numbers->items[i] > INT32_MAX)
			return err_set(err, -EINVAL, "%s %llu is out of range", what,
				       (unsigned long long)numbers->items[i]);
	}
	return 0;
}

static uint32_t *narrow_numbers(const struct option_u64s *numbers)
{
	uint32_t *copy = xmalloc(numbers->len * sizeof(*copy));
	size_t i;

	for (i = 0; i < numbers->len; i++)
		copy[i] = (uint32_t)numbers->items[i];
	return copy;
}

static int take_options(struct filter *f, const struct filter_options *o, struct err *err)
{
	size_t i;
	int r = check_numbers(&o->pids, "process", err);

	if (!r)
		r = check_numbers(&o->tids, "thread", err);
	if (!r)
		r = check_numbers(&o->fds, "descriptor", err);
	if (!r)
		r = each_part(&o->calls, f, add_call, err);
	if (!r)
		r = each_part(&o->classes, f, add_class, err);
	if (!r)
		r = each_part(&o->errnos, f, add_errno, err);
	/* A path may have commas in it. */
	for (i = 0; !r && i < o->paths.len; i++)
		r = add_path(f, o->paths.items[i], err);
	if (r < 0)
		return r;
	if (o->failed && o->ok)
		return err_set(err, -EINVAL, "no event both failed and succeeded");
	if (o->max_duration_ns && o->max_duration_ns < o->min_duration_ns)
		return err_set(err, -EINVAL, "the longest duration is below the shortest");
	if (o->to_ns && o->to_ns <= o->from_ns)
		return err_set(err, -EINVAL, "the time range ends before it begins");
	return 0;
}

int filter_new(const struct filter_options *o, struct filter **ret, struct err *err)
{
	struct filter *f = xcalloc(1, sizeof(*f));
	int r;

	f->o = o;
	f->pids = narrow_numbers(&o->pids);
	f->tids = narrow_numbers(&o->tids);
	r = take_options(f, o, err);
	if (r < 0) {
		filter_free(f);
		return r;
	}
	f->any_row = !f->calls.len && !f->not_calls.len && !f->classes;
	f->empty = f->any_row && !o->pids.len && !o->tids.len && !o->fds.len && !f->errnos.len &&
		   !f->paths.len && !o->failed && !o->ok && !o->min_duration_ns &&
		   !o->max_duration_ns && !o->from_ns && !o->to_ns;
	*ret = f;
	return 0;
}

void filter_free(struct filter *f)
{
	size_t i;

	if (!f)
		return;
	for (i = 0; i < f->calls.len; i++)
		free(f->calls.items[i]);
	for (i = 0; i < f->not_calls.len; i++)
		free(f->not_calls.items[i]);
	for (i = 0; i < f->paths.len; i++)
		free(f->paths.items[i].text);
	VEC_RELEASE(&f->calls);
	VEC_RELEASE(&f->not_calls);
	VEC_RELEASE(&f->errnos);
	VEC_RELEASE(&f->paths);
	free(f->pids);
	free(f->tids);
	buf_release(&f->path);
	free(f);
}

bool filter_is_empty(const struct filter *f)
{
	return f->empty;
}

bool filter_needs_paths(const struct filter *f)
{
	return f->paths.len > 0;
}

void filter_narrow_query(const struct filter *f, bool whole, struct trace_query *q)
{
	q->to_ns = f->o->to_ns;
	if (whole)
		return;
	q->from_ns = f->o->from_ns;
	q->pids = f->pids;
	q->nr_pids = f->o->pids.len;
	q->tids = f->tids;
	q->nr_tids = f->o->tids.len;
}

static bool pattern_matches(const struct path_pattern *p, const char *path)
{
	size_t len = strlen(p->text);

	if (p->glob)
		return !fnmatch(p->text, path, FNM_LEADING_DIR);
	if (strncmp(p->text, path, len) != 0)
		return false;
	/* Only "/" itself ends with a slash. */
	return !path[len] || path[len] == '/' || p->text[len - 1] == '/';
}

bool filter_matches_path(const struct filter *f, const char *path)
{
	size_t i;

	for (i = 0; i < f->paths.len; i++) {
		const struct path_pattern *p = &f->paths.items[i];
		const char *at = path;

		if (pattern_matches(p, path))
			return true;
		while (!p->absolute && (at = strchr(at, '/'))) {
			if (pattern_matches(p, ++at))
				return true;
		}
	}
	return false;
}

static bool fd_matches_path(const struct filter *f, const struct event *ev, struct fdpaths *paths,
			    const struct value *v)
{
	const struct fd_file *file = v->type == VALUE_INT ? fdpaths_find(paths, ev, v->i) : NULL;

	return file && filter_matches_path(f, file->path);
}

static bool arg_matches_path(struct filter *f, const struct event *ev, struct fdpaths *paths,
			     unsigned int nr)
{
	const struct arg *arg = &ev->row->args[nr];
	const struct value *v = &ev->args[nr];
	uint32_t i;

	if (arg->kind == KIND_PATH || arg->kind == KIND_SOCKADDR)
		return fdpaths_resolve(paths, ev, nr, &f->path) &&
		       filter_matches_path(f, buf_str(&f->path));
	if (arg->kind == KIND_FD)
		return fd_matches_path(f, ev, paths, v);
	if (v->type != VALUE_LIST || arg->elem != KIND_FD)
		return false;
	for (i = 0; i < v->count; i++) {
		if (fd_matches_path(f, ev, paths, &v->items[i]))
			return true;
	}
	return false;
}

static bool touches_path(struct filter *f, const struct event *ev, struct fdpaths *paths)
{
	unsigned int i;

	for (i = 0; i < ev->row->nr_args; i++) {
		if (arg_matches_path(f, ev, paths, i))
			return true;
	}
	return false;
}

static bool is_wanted_fd(const struct filter *f, int64_t fd)
{
	size_t i;

	for (i = 0; i < f->o->fds.len; i++) {
		if (fd >= 0 && f->o->fds.items[i] == (uint64_t)fd)
			return true;
	}
	return false;
}

static bool value_has_fd(const struct filter *f, const struct arg *arg, const struct value *v)
{
	uint32_t i;

	if (v->type == VALUE_INT && (arg->kind == KIND_FD || arg->kind == KIND_DIRFD))
		return is_wanted_fd(f, v->i);
	if (v->type != VALUE_LIST || arg->elem != KIND_FD)
		return false;
	for (i = 0; i < v->count; i++) {
		if (is_wanted_fd(f, v->items[i].i))
			return true;
	}
	return false;
}

static bool has_fd(const struct filter *f, const struct event *ev)
{
	unsigned int i;

	if (ev->row->result == RESULT_NEW_FD && is_wanted_fd(f, ev->outcome.ret))
		return true;
	for (i = 0; i < ev->row->nr_args; i++) {
		if (value_has_fd(f, &ev->row->args[i], &ev->args[i]))
			return true;
	}
	return false;
}

static uint32_t class_bits(const struct row *row)
{
	uint32_t bits = 1u << row_class(row);
	unsigned int i;

	for (i = 0; i < row->nr_args; i++) {
		const struct arg *arg = &row->args[i];

		if (arg->kind == KIND_PATH)
			bits |= CLASS_FILE;
		if (arg->kind == KIND_FD || arg->kind == KIND_DIRFD || arg->elem == KIND_FD)
			bits |= CLASS_DESC;
	}
	return bits;
}

static bool row_matches(const struct filter *f, const struct row *row)
{
	bool found = !f->calls.len;
	size_t i;

	if (f->classes && !(f->classes & class_bits(row)))
		return false;
	for (i = 0; i < f->not_calls.len; i++) {
		if (name_matches(f->not_calls.items[i], row))
			return false;
	}
	for (i = 0; i < f->calls.len && !found; i++)
		found = name_matches(f->calls.items[i], row);
	return found;
}

bool filter_wants_row(struct filter *f, const struct row *row)
{
	uint8_t *verdict = &f->rows[row->id];

	if (*verdict == VERDICT_UNKNOWN)
		*verdict = row_matches(f, row) ? VERDICT_YES : VERDICT_NO;
	return *verdict == VERDICT_YES;
}

static bool has_number(const uint32_t *numbers, size_t nr, uint32_t v)
{
	size_t i;

	for (i = 0; i < nr; i++) {
		if (numbers[i] == v)
			return true;
	}
	return !nr;
}

static bool outcome_matches(const struct filter *f, const struct event *ev)
{
	size_t i;

	if (f->o->failed && !ev->outcome.err)
		return false;
	if (f->o->ok && (ev->outcome.err || (ev->flags & EVENT_UNFINISHED)))
		return false;
	for (i = 0; i < f->errnos.len; i++) {
		if (f->errnos.items[i] == ev->outcome.err)
			return true;
	}
	return !f->errnos.len;
}

static bool time_matches(const struct filter *f, const struct event *ev)
{
	const struct filter_options *o = f->o;
	uint64_t duration_ns = clock_sub_ns(ev->exit_ns, ev->enter_ns);

	return duration_ns >= o->min_duration_ns &&
	       (!o->max_duration_ns || duration_ns <= o->max_duration_ns) &&
	       ev->exit_ns >= o->from_ns && (!o->to_ns || ev->enter_ns < o->to_ns);
}

/* All but the paths; the cheap questions first. */
static bool rest_matches(struct filter *f, const struct event *ev)
{
	return (f->any_row || filter_wants_row(f, ev->row)) &&
	       has_number(f->pids, f->o->pids.len, ev->pid) &&
	       has_number(f->tids, f->o->tids.len, ev->tid) && outcome_matches(f, ev) &&
	       time_matches(f, ev) && (!f->o->fds.len || has_fd(f, ev));
}

bool filter_matches(struct filter *f, const struct event *ev, struct fdpaths *paths)
{
	return f->empty || (rest_matches(f, ev) && (!f->paths.len || touches_path(f, ev, paths)));
}

bool filter_matches_context(struct filter *f, const struct event *ev)
{
	return f->paths.len && row_is_context(ev->row) && rest_matches(f, ev);
}
