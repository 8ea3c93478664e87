/* SPDX-License-Identifier: MIT */
/*
 * The initial tree as the init listing that ARTC takes beside a trace: a line
 * for each directory, file and symlink, sorted, each once, parents too.
 *
 *   dir#PATH   file#PATH#SIZE   symlink#PATH#TARGET
 *
 * There is no way to write a '#' or a newline in a name, and nothing else than
 * these three; /proc, /sys and /dev are the target's own.
 */
#include <string.h>

#include "base/banned.h"
#include "export/export.h"
#include "snapshot/tree.h"

static const char *const words[SNAPSHOT_TYPE_MAX] = {
	[SNAPSHOT_DIR] = "dir",
	[SNAPSHOT_FILE] = "file",
	[SNAPSHOT_SYMLINK] = "symlink",
};

static bool is_of_system(const struct snapshot_entry *e)
{
	static const char *const tops[] = { "proc", "sys", "dev" };
	size_t i, len;

	for (i = 0; i < ARRAY_LEN(tops); i++) {
		len = strlen(tops[i]);
		if (e->path_len >= len && !memcmp(e->path, tops[i], len) &&
		    (e->path_len == len || e->path[len] == '/'))
			return true;
	}
	return false;
}

static bool is_writable(const char *text, size_t len)
{
	return !memchr(text, '#', len) && !memchr(text, '\n', len);
}

static bool can_be_said(const struct snapshot_entry *e)
{
	if (!snapshot_is_made(e) || is_of_system(e) || !is_writable(e->path, e->path_len))
		return false;
	if (e->type == SNAPSHOT_SYMLINK)
		return e->target_len && is_writable(e->target, e->target_len);
	return words[e->type] != NULL;
}

static void write_entry(FILE *out, const struct snapshot_entry *e)
{
	fprintf(out, "%s#/", words[e->type]);
	(void)fwrite(e->path, 1, e->path_len, out); /* who owns the stream asks it at the end */
	if (e->type == SNAPSHOT_FILE)
		fprintf(out, "#%llu", (unsigned long long)e->size_bytes);
	if (e->type == SNAPSHOT_SYMLINK) {
		fputc('#', out);
		(void)fwrite(e->target, 1, e->target_len, out);
	}
	fputc('\n', out);
}

static void write_type(struct export *ex, const struct snapshot *s, enum snapshot_type type)
{
	const struct snapshot_entry *e;
	size_t i, nr;

	e = snapshot_entries(s, &nr);
	for (i = 0; i < nr; i++) {
		if (e[i].type != type || !can_be_said(&e[i]))
			continue;
		write_entry(ex->out, &e[i]);
		ex->counts.nr_written++;
	}
}

static uint64_t count_left_out(const struct snapshot *s)
{
	uint64_t nr_left_out = snapshot_nr_left_out(s);
	const struct snapshot_entry *e;
	size_t i, nr;

	e = snapshot_entries(s, &nr);
	for (i = 0; i < nr; i++)
		nr_left_out += snapshot_is_made(&e[i]) && !can_be_said(&e[i]);
	return nr_left_out;
}

static int artc_init_run(struct export *ex, struct err *err)
{
	const struct snapshot_source source = { .records = ex->t };
	struct snapshot *s;
	int r = snapshot_load(SNAPSHOT_INITIAL, &source, 1, SNAPSHOT_CONFLICT_FAIL, &s, err);

	if (r < 0)
		return r;
	write_type(ex, s, SNAPSHOT_DIR);
	write_type(ex, s, SNAPSHOT_FILE);
	write_type(ex, s, SNAPSHOT_SYMLINK);
	ex->counts.nr_left_out = count_left_out(s);
	snapshot_free(s);
	return 0;
}

const struct exporter exporter_artc_init = {
	.summary = "the initial tree as an init listing of ARTC",
	.run = artc_init_run,
	.raw = true,
};
