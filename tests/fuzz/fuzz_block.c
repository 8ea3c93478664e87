/* SPDX-License-Identifier: MIT */
/*
 * The importers of block traces: whatever the bytes are, an import ends, and what
 * it wrote is a sound trace that compiles. The first byte chooses the format: 0 is
 * to be found out.
 */
#include "fuzz.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "base/banned.h"
#include "compile/compile.h"
#include "import/import.h"
#include "order/order.h"
#include "trace/reader.h"

static void compile(const char *path)
{
	struct compile_options options = { .policy = order_find("think"), .think_ns = 10000 };
	struct compile_totals totals;
	struct err err = { "" };
	struct trace *t;

	if (trace_open(path, 0, &t, &err) < 0)
		abort();
	if (compile_is_block(t) && compile_trace(t, &options, NULL, NULL, &totals, &err) < 0)
		abort();
	trace_close(t);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char in[64], out[64];
	const char *paths[] = { in };
	struct import_request rq = {
		.paths = paths, .nr_paths = 1, .output = out, .replace = true
	};
	struct import_counts counts;
	struct err err = { "" };
	int fd;

	if (!size)
		return 0;
	if (data[0])
		rq.format = importers[data[0] % nr_importers]->name;
	rq.block.events = (enum import_events)(data[0] >> 6 & 1);
	rq.block.columns = "time:us,op,offset:sectors,length,latency:us,device,pid,comm";
	fd = memfd_create("fuzz", MFD_CLOEXEC);
	if (fd < 0 || write(fd, data + 1, size - 1) != (ssize_t)(size - 1))
		abort();
	(void)snprintf(in, sizeof(in), "/proc/self/fd/%d", fd);
	(void)snprintf(out, sizeof(out), "/tmp/fuzz-block-%d.trace", (int)getpid());
	if (import_files(&rq, &counts, &err) == 0)
		compile(out);
	(void)unlink(out);
	(void)close(fd);
	return 0;
}
