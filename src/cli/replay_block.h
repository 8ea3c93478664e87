/* SPDX-License-Identifier: MIT */
/* reprise replay --device: plans of block requests on devices and files. */
#ifndef CLI_REPLAY_BLOCK_H
#define CLI_REPLAY_BLOCK_H

#include <signal.h>

#include "cli/cli.h"
#include "cli/order_options.h"
#include "replay/blk_run.h"

struct block_options {
	struct option_strings devices;
	enum blk_mode mode;
	enum blk_wait wait;
	enum blk_engine_choice engine;
	const char *scale_server, *scale_storage;
	uint64_t depth, submitters, bundle_ns, bundle_size, offset_bytes, compress, dedup;
	bool wrap, fit, writes, destroy_data, create, buffered, poll, tune, observe, realtime;
};

extern const char *const replay_block_modes[];
extern const char *const replay_block_waits[];
extern const char *const replay_block_engines[];

#define OPT_BLOCK(struct_type, field)                                                                        \
	OPT_STRINGS(0, "device", "[NAME=]TARGET", struct_type, field.devices,                                \
		    "block requests: perform them on this device or file; several devices of a "             \
		    "trace each need one, '*=TARGET' is for all that have none"),                            \
		OPT_CHOICE(                                                                                  \
			0, "mode", "HOW", struct_type, field.mode, replay_block_modes,                       \
			"block requests: at their times; a think time after those that they "                \
			"depend on; as fast as possible; with as many in flight as there were"),             \
		OPT_CHOICE(                                                                                  \
			0, "wait-for", "WHAT", struct_type, field.wait, replay_block_waits,                  \
			"mode think: wait for as many requests of a kind as were complete in the "           \
			"trace, or for the very same, each with its think time"),                            \
		OPT_STRING(0, "scale-server", "F", struct_type, field.scale_server,                          \
			   "modes timed and think: multiply what is not the storage's time by F",            \
			   .default_text = "1"),                                                             \
		OPT_STRING(                                                                                  \
			0, "scale-storage", "F", struct_type, field.scale_storage,                           \
			"modes timed and think: act as if requests took F times as long as they did, or do", \
			.default_text = "1"),                                                                \
		OPT_U64(0, "depth", "N", struct_type, field.depth, "at most N requests in flight",           \
			.default_text = "by trace and queue"),                                               \
		OPT_U64(0, "submitters", "N", struct_type, field.submitters,                                 \
			"submit by N threads, where one core cannot keep up",                                \
			.default_text = "1"),                                                                \
		OPT_FLAG(0, "realtime", struct_type, field.realtime,                                         \
			 "let submitters go before all other threads of the machine; needs the "             \
			 "right to"),                                                                        \
		OPT_CHOICE(                                                                                  \
			0, "block-engine", "NAME", struct_type, field.engine,                                \
			replay_block_engines,                                                                \
			"how requests are submitted; auto: by io_uring, unless it is not there, "            \
			"or a device would be served by threads of the kernel"),                             \
		OPT_DURATION(0, "bundle", "TIME", struct_type, field.bundle_ns,                              \
			     "submit requests together that are due within TIME",                            \
			     .default_text = "0: those that are due"),                                       \
		OPT_U64(0, "bundle-size", "N", struct_type, field.bundle_size,                               \
			"at most N requests in one bundle", .default_text = "64"),                           \
		OPT_SIZE(0, "offset", "SIZE", struct_type, field.offset_bytes,                               \
			 "add SIZE to the place of every request"),                                          \
		OPT_FLAG(                                                                                    \
			0, "wrap", struct_type, field.wrap,                                                  \
			"requests beyond the end of the target begin again at its beginning; what is "       \
			"longer than the target is cut"),                                                    \
		OPT_FLAG(                                                                                    \
			0, "fit", struct_type, field.fit,                                                    \
			"shrink the places of requests to the size of the target; what is longer is cut"),   \
		OPT_FLAG(0, "writes", struct_type, field.writes,                                             \
			 "also make requests that change a device"),                                         \
		OPT_FLAG(0, "destroy-data", struct_type, field.destroy_data,                                 \
			 "write to a device that is in use, or to a target that holds a file "               \
			 "system or partitions"),                                                            \
		OPT_FLAG(0, "create", struct_type, field.create,                                             \
			 "make the target a file, or let it grow, as large as needed"),                      \
		OPT_FLAG(0, "buffered", struct_type, field.buffered, "go through the page cache"),           \
		OPT_FLAG(0, "poll", struct_type, field.poll,                                                 \
			 "poll for completions, where the device can"),                                      \
		OPT_FLAG(0, "observe", struct_type, field.observe,                                           \
			 "watch by the block tracepoints in which order devices get the "                    \
			 "requests; needs root"),                                                            \
		OPT_FLAG(0, "tune", struct_type, field.tune,                                                 \
			 "set the device's queue for the run (no scheduler, no merging, room for "           \
			 "the trace), and restore it"),                                                      \
		OPT_U64(0, "compress", "PERCENT", struct_type, field.compress,                               \
			"how much of the data that is written is zeroes"),                                   \
		OPT_U64(0, "dedup", "PERCENT", struct_type, field.dedup,                                     \
			"how much of the data that is written is there already")

/* What the replay was asked for besides. */
struct block_replay {
	double scale;
	const char *output;
	struct order_choice order;
	bool force, json, quiet, no_check;
	unsigned int file_mode;
};

/* The exit status, having said what there is to say. */
int replay_block(const struct cli *cli, const struct block_options *b, const struct block_replay *o,
		 char *trace);

#endif
