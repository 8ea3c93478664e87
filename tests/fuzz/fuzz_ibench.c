/* SPDX-License-Identifier: MIT */
/*
 * An iBench trace, or, when the first byte is 'L', behind that byte a listing of
 * the initial tree. Lines that are not understood are counted, and whatever was
 * understood makes a trace that reads. To make a trace is slow, so that many
 * inputs go into one.
 */
#include "fuzz.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/banned.h"
#include "import/import.h"
#include "scratch.h"
#include "trace/reader.h"

#define INPUTS_IN_ONE 200

static struct trace_writer *writer;
static struct trace_feed *feed;
static uint64_t nr_inputs, nr_events;

static void stop(const struct err *err)
{
	fprintf(stderr, "%s\n", err->text);
	abort();
}

static void read_back(void)
{
	const struct trace_query q = { 0 };
	struct err err = { 0 };
	struct trace_iter *it = NULL;
	struct event *ev;
	struct trace *t;
	uint64_t nr = 0;

	if (trace_writer_close(writer, &err) < 0 ||
	    trace_open(scratch_path("output"), 0, &t, &err) < 0 ||
	    trace_iter_open(t, &q, &it, &err) < 0)
		stop(&err);
	while (trace_iter_next(it, &ev, &err) == 1)
		nr++;
	if (nr != nr_events)
		abort();
	trace_iter_close(it);
	trace_close(t);
	writer = NULL;
}

static void end(void)
{
	if (writer)
		read_back();
}

static void begin(void)
{
	static const struct trace_writer_options options = { .replace = true };
	static bool registered;
	struct err err = { 0 };

	if (trace_writer_open(scratch_path("output"), &options, &writer, &err) < 0)
		stop(&err);
	feed = trace_writer_add_feed(writer);
	nr_events = 0;
	if (!registered)
		(void)atexit(end);
	registered = true;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	bool listing = size && data[0] == 'L';
	const struct importer *importer = importer_find(listing ? "listing" : "ibench");
	struct import_input in = { .name = scratch_path("input") };
	struct import im = { .inputs = &in, .nr_inputs = 1 };
	struct err err = { 0 };

	scratch_write(in.name, data + listing, size - listing);
	if (!writer)
		begin();
	im.feed = feed;
	(void)importer->probe(data, size); /* any answer will do */
	/* What looks packed and is damaged may fail; lines that make no sense may not. */
	if (importer->run(&im, &err) < 0 && size > listing &&
	    !memchr("\x1f\x28\xfd", data[listing], 3))
		stop(&err);
	import_input_close(&in);
	nr_events += im.counts.nr_events;
	if (++nr_inputs % INPUTS_IN_ONE == 0)
		read_back();
	return 0;
}
