/* SPDX-License-Identifier: MIT */
/*
 * Whether one call could change the answer to another, without looking either
 * up: who only makes, moves and removes names changes what is found under the
 * last components of its paths. Another meets them if it has such a component
 * too, or goes through a symlink that has.
 */
#include <fcntl.h>
#include <string.h>

#include "base/banned.h"
#include "fsmodel/names.h"
#include "fsmodel/tables.h"

/* Their apply() only learns. */
static bool changes_nothing(const struct row *row)
{
	switch (row->id) {
	case SC_stat:
	case SC_lstat:
	case SC_fstat:
	case SC_newfstatat:
	case SC_statx:
	case SC_readlink:
	case SC_readlinkat:
		return true;
	}
	return false;
}

static bool removes_dir(const struct event *ev)
{
	switch (ev->row->id) {
	case SC_rmdir:
	case SC_rename:
	case SC_renameat:
	case SC_renameat2:
		return true;
	case SC_unlinkat:
		return value_int_or(&ev->args[2], 0) & AT_REMOVEDIR;
	}
	return false;
}

static bool is_path(const struct row *row, unsigned int n)
{
	return row->args[n].kind == KIND_PATH && row->args[n].look != LOOK_TEXT;
}

static bool whole_text(const struct value *v, struct path_text *ret)
{
	if (v->type != VALUE_DATA || v->data->kept_bytes < v->data->len_bytes || !v->data->bytes)
		return false;
	ret->s = (const char *)v->data->bytes;
	ret->len = (size_t)v->data->len_bytes;
	return true;
}

static struct path_text last_of(struct path_text path)
{
	size_t at;

	while (path.len && path.s[path.len - 1] == '/')
		path.len--;
	for (at = path.len; at && path.s[at - 1] != '/'; at--)
		;
	return (struct path_text){ path.s + at, path.len - at };
}

static bool has_component(struct path_text path, struct path_text name)
{
	const char *s = path.s, *end = path.s + path.len;

	while (s < end) {
		const char *slash = memchr(s, '/', (size_t)(end - s));
		size_t len = (size_t)((slash ? slash : end) - s);

		if (len == name.len && !memcmp(s, name.s, len))
			return true;
		s += len + 1;
	}
	return false;
}

/* Whether a path of the event may lead through an entry of this name. */
static bool may_use(const struct fsmodel *m, const struct event *ev, struct path_text name)
{
	unsigned int n;
	bool has_path = false;

	for (n = 0; n < ev->row->nr_args; n++) {
		struct path_text path;

		if (!is_path(ev->row, n) || ev->args[n].type == VALUE_NULL)
			continue;
		has_path = true;
		if (!whole_text(&ev->args[n], &path) || has_component(path, name))
			return true;
	}
	return has_path && words_have(m->names, name.s, name.len);
}

static bool names_meet(const struct fsmodel *m, const struct event *first, const struct event *then)
{
	bool makes = row_class(then->row) == C_NAME || row_class(then->row) == C_DESC;
	unsigned int n;

	/* Emptiness, listings, and removed directories that somebody still stands in. */
	if (row_class(then->row) == C_DIR || removes_dir(then) || (removes_dir(first) && makes))
		return true;
	for (n = 0; n < first->row->nr_args; n++) {
		struct path_text name;

		if (!is_path(first->row, n))
			continue;
		if (!whole_text(&first->args[n], &name))
			return true;
		name = last_of(name);
		if (!name.len || name.s[0] == '.' || may_use(m, then, name))
			return true;
	}
	return false;
}

bool fsmodel_may_affect(struct fsmodel *m, const struct event *first, const struct event *then)
{
	const struct row_info *rows = m->tables->rows;

	if (first->row->id >= ROW_ID_MAX || then->row->id >= ROW_ID_MAX ||
	    !rows[first->row->id].calls || !rows[then->row->id].calls)
		return false;
	/* What failed changed nothing; what has no apply() never does. */
	if (first->outcome.err || !rows[first->row->id].calls->apply ||
	    changes_nothing(first->row) || first->tid == then->tid)
		return false;
	if (row_class(first->row) == C_NAME && first->row->id != SC_exchangedata)
		return names_meet(m, first, then);
	return true;
}
