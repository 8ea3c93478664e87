/* SPDX-License-Identifier: MIT */
#include "import/import.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/banned.h"
#include "base/mem.h"

/* How much is read at a time from one input, and at most ahead from all that are read at once. */
#define READ_BYTES ((size_t)256 << 10)
#define READ_MIN_BYTES ((size_t)8 << 10)
#define READ_ALL_BYTES ((size_t)64 << 20)

#define IMPORTER(name) extern const struct importer importer_##name;
#include "import/importers.def"
#undef IMPORTER

const struct importer *const importers[] = {
#define IMPORTER(name) &importer_##name,
#include "import/importers.def"
#undef IMPORTER
};
const size_t nr_importers = ARRAY_LEN(importers);

const struct importer *importer_find(const char *name)
{
	size_t i;

	for (i = 0; i < nr_importers; i++) {
		if (!strcmp(importers[i]->name, name))
			return importers[i];
	}
	return NULL;
}

const struct importer *importer_probe(const uint8_t *first, size_t len)
{
	const struct importer *best = NULL;
	int best_score = 0;
	size_t i;

	for (i = 0; i < nr_importers; i++) {
		int score = importers[i]->probe(first, len);

		if (score > best_score) {
			best = importers[i];
			best_score = score;
		}
	}
	return best;
}

/* Inputs. */

int import_input_open(struct import_input *in, struct err *err)
{
	int r;

	if (in->source)
		return 0; /* by the probe */
	in->ended = false;
	in->line_no = 0;
	r = import_source_open(in->name, in->progress, &in->source, err);
	if (r < 0)
		return err_wrap(err, r, "%s", in->name);
	if (!in->read_bytes)
		in->read_bytes = READ_BYTES;
	(void)buf_reserve(&in->ahead, in->read_bytes); /* so that there are bytes to point to */
	return 0;
}

void import_input_close(struct import_input *in)
{
	if (in->source)
		in->source->close(in->source);
	in->source = NULL;
	buf_release(&in->ahead);
	in->pos = 0;
	in->ended = true;
}

/* Reads more behind what is there. What was handed out is given up. */
static int read_more(struct import_input *in, struct err *err)
{
	ssize_t n;

	if (in->pos) {
		memmove(in->ahead.data, in->ahead.data + in->pos, in->ahead.len - in->pos);
		in->ahead.len -= in->pos;
		in->pos = 0;
	}
	n = in->source->read(in->source, buf_reserve(&in->ahead, in->read_bytes), in->read_bytes,
			     err);
	if (n < 0)
		return err_wrap(err, (int)n, "%s", in->name);
	in->ended = n == 0;
	in->ahead.len += (size_t)n;
	return 0;
}

int import_input_peek(struct import_input *in, size_t want, const uint8_t **ret, size_t *ret_len,
		      struct err *err)
{
	while (in->ahead.len - in->pos < want && !in->ended) {
		int r = read_more(in, err);

		if (r < 0)
			return r;
	}
	*ret = in->ahead.data + in->pos;
	*ret_len = in->ahead.len - in->pos;
	return 0;
}

int import_input_ahead(struct import_input *in, size_t want, const char **text, const char **ret,
		       size_t *ret_len, struct err *err)
{
	size_t back = (size_t)(in->ahead.data + in->pos - (const uint8_t *)*text);
	int r = 0;

	while (in->ahead.len - in->pos < want && !in->ended && !r) {
		in->pos -= back;
		r = read_more(in, err);
		in->pos += back;
	}
	*text = (const char *)in->ahead.data + in->pos - back;
	*ret = (const char *)in->ahead.data + in->pos;
	*ret_len = in->ahead.len - in->pos;
	return r;
}

void import_input_skip(struct import_input *in, size_t len)
{
	in->pos += len;
}

/* 1; a log has no such gaps, and to go through one takes long. */
static int count_blank(struct import_input *in, const char *text, size_t len, struct err *err)
{
	in->nr_blank = len && (len > 1 || *text != '\r') ? 0 : in->nr_blank + 1;
	if (in->nr_blank <= IMPORT_BLANK_MAX)
		return 1;
	return err_set(err, -E2BIG, "%s:%llu: more than %u empty lines in a row: this is no log",
		       in->name, (unsigned long long)in->line_no, IMPORT_BLANK_MAX);
}

int import_input_line(struct import_input *in, const char **ret, size_t *ret_len, struct err *err)
{
	size_t searched = 0, len;

	if (!in->source)
		return 0;
	for (;;) {
		size_t there = in->ahead.len - in->pos;
		const uint8_t *from = in->ahead.data + in->pos;
		const uint8_t *eol = NULL;
		int r;

		/* What was searched in vain is not searched again. */
		if (there > searched)
			eol = memchr(from + searched, '\n', there - searched);
		len = eol ? (size_t)(eol - from) : there;
		if (len > IMPORT_LINE_MAX_BYTES)
			return err_set(err, -E2BIG, "%s:%llu: the line is longer than %zu MiB",
				       in->name, (unsigned long long)in->line_no + 1,
				       IMPORT_LINE_MAX_BYTES >> 20);
		if (eol || in->ended) {
			if (!eol && !there)
				return 0;
			*ret = (const char *)from;
			*ret_len = len;
			in->pos += len + (eol != NULL);
			in->line_no++;
			return count_blank(in, *ret, len, err);
		}
		searched = there;
		r = read_more(in, err);
		if (r < 0)
			return r;
	}
}

/* Running. */

static int reject(struct import *im, const struct import_input *in, struct err *why)
{
	struct import_complaint c = { .input = in->name, .line_no = in->line_no, .why = why->text };

	if (im->strict)
		return err_wrap(why, -EBADMSG, "%s:%llu", in->name,
				(unsigned long long)in->line_no);
	if (im->complain)
		im->complain(im->complain_ctx, &c);
	return 0;
}

int import_reject_line(struct import *im, const struct import_input *in, struct err *why)
{
	im->counts.nr_not_understood++;
	if (im->counts.nr_not_understood >= IMPORT_BAD_MAX && !im->counts.nr_events &&
	    im->counts.nr_not_understood + IMPORT_BAD_MAX / 100 >= im->counts.nr_lines)
		return err_wrap(why, -EBADMSG,
				"%s: hardly any of its first %u lines means anything", in->name,
				IMPORT_BAD_MAX);
	return reject(im, in, why);
}

int import_reject_value(struct import *im, const struct import_input *in, struct err *why)
{
	im->counts.nr_values_lost++;
	return reject(im, in, why);
}

static int choose_importer(const struct import_request *rq, struct import *im,
			   const struct importer **ret, struct err *err)
{
	const uint8_t *first = NULL;
	size_t len = 0;
	int r;

	if (rq->format) {
		*ret = importer_find(rq->format);
		return *ret ? 0 : err_set(err, -EINVAL, "unknown format '%s'", rq->format);
	}
	r = import_input_open(&im->inputs[0], err);
	if (!r)
		r = import_input_peek(&im->inputs[0], IMPORT_PROBE_BYTES, &first, &len, err);
	if (r < 0)
		return r;
	*ret = importer_probe(first, len);
	if (!*ret)
		return err_set(err, -EOPNOTSUPP, "%s: no known format; name it with --format",
			       im->inputs[0].name);
	return 0;
}

static bool is_plain_file(const char *path)
{
	struct stat st;

	return !lstat(path, &st) && S_ISREG(st.st_mode);
}

/* What an importer feeds becomes a trace at path; on failure there is nothing. */
static int write_trace(const struct importer *importer, const char *path,
		       const struct import_request *rq, struct import *im, struct err *err)
{
	struct trace_writer_options options = { .replace = rq->replace,
						.file_mode = rq->file_mode,
						.eager = true };
	struct trace_writer *writer;
	int r = trace_writer_open(path, &options, &writer, err);

	if (r < 0)
		return r;
	im->feed = trace_writer_add_feed(writer);
	r = importer->run(im, err);
	if (r < 0)
		trace_writer_abandon(writer);
	else
		r = trace_writer_close(writer, err);
	if (r < 0 && is_plain_file(path))
		(void)unlink(path); /* the failure that led here is the one to tell */
	return r;
}

/*
 * A file that is to be replaced stays until the new one is whole: it may be all
 * that the user has, or even one of the inputs.
 */
static int replace_trace(const struct importer *importer, const struct import_request *rq,
			 struct import *im, struct err *err)
{
	struct buf name = { 0 };
	const char *part;
	int r;

	buf_printf(&name, "%s.part", rq->output);
	part = buf_str(&name);
	r = write_trace(importer, part, rq, im, err);
	if (!r && rename(part, rq->output) < 0)
		r = err_set(err, -errno, "cannot rename %s to %s", part, rq->output);
	buf_release(&name);
	return r;
}

static int run_importer(const struct importer *importer, const struct import_request *rq,
			struct import *im, struct err *err)
{
	if (im->init && !importer->reads_init)
		return err_set(err, -EINVAL, "the format %s takes no listing of the initial tree",
			       importer->name);
	if (rq->replace && is_plain_file(rq->output))
		return replace_trace(importer, rq, im, err);
	return write_trace(importer, rq->output, rq, im, err);
}

static size_t share_of_reading(size_t nr_inputs)
{
	size_t share = READ_ALL_BYTES / nr_inputs;

	if (share < READ_MIN_BYTES)
		return READ_MIN_BYTES;
	return share < READ_BYTES ? share : READ_BYTES;
}

/* How much there is to read, where that can be known. */
static void set_total(const struct import_request *rq)
{
	uint64_t total = 0;
	struct stat st;
	size_t i;

	for (i = 0; i < rq->nr_paths; i++) {
		if (stat(rq->paths[i], &st) < 0 || !S_ISREG(st.st_mode))
			return;
		total += (uint64_t)st.st_size;
	}
	progress_set_total(rq->progress, total);
}

int import_files(const struct import_request *rq, struct import_counts *ret, struct err *err)
{
	struct import im = { .nr_inputs = rq->nr_paths,
			     .block = rq->block,
			     .strict = rq->strict,
			     .complain = rq->complain,
			     .complain_ctx = rq->complain_ctx };
	struct import_input init = { .name = rq->init };
	const struct importer *importer = NULL;
	size_t i;
	int r;

	if (!rq->nr_paths)
		return err_set(err, -EINVAL, "nothing to import");
	im.inputs = xcalloc(rq->nr_paths, sizeof(*im.inputs));
	for (i = 0; i < rq->nr_paths; i++) {
		im.inputs[i].name = rq->paths[i];
		im.inputs[i].progress = rq->progress;
		im.inputs[i].read_bytes = share_of_reading(rq->nr_paths);
	}
	im.init = rq->init ? &init : NULL;
	set_total(rq);
	r = choose_importer(rq, &im, &importer, err);
	if (!r)
		r = import_input_open(&im.inputs[0], err);
	if (!r)
		r = run_importer(importer, rq, &im, err);
	for (i = 0; i < rq->nr_paths; i++)
		import_input_close(&im.inputs[i]);
	import_input_close(&init);
	free(im.inputs);
	if (!r)
		*ret = im.counts;
	return r;
}
