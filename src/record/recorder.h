/* SPDX-License-Identifier: MIT */
/*
 * Recording a command, or a process that runs: what can be asked for, and what
 * came of it. The recorders are the rows of recorders.def; each names the
 * source that runs the program (source.h), and how that uses the agent.
 */
#ifndef RECORD_RECORDER_H
#define RECORD_RECORDER_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "record/capture.h"
#include "record/paths.h"

enum record_on_full {
	RECORD_GO_ON, /* the program runs on, unrecorded */
	RECORD_STOP, /* the program is killed */
};

/* When the recorder is killed, so that it can do nothing more. */
enum record_on_death {
	RECORD_DIE_TOO, /* the program is killed as well, all of it */
	RECORD_OUTLIVE, /* the program runs on, as if it had never been recorded */
};

/* The net: a filter that stops calls which do not come from the agent. */
enum record_net {
	RECORD_NET_ON,
	RECORD_NET_AUDIT, /* and those are counted, by where they come from */
	RECORD_NET_OFF, /* there is none: from places that could not be changed they are not seen */
};

/* In whose processes the agent may be. */
enum record_agent_for {
	RECORD_AGENT_FOR_OWN, /* those of the recorder's user */
	RECORD_AGENT_FOR_ALL,
};

/* Whether the agent is put into programs. */
enum record_agent {
	RECORD_AGENT_NEVER,
	RECORD_AGENT_IF_POSSIBLE,
	RECORD_AGENT_ALWAYS, /* else the recording fails */
};

/* What the agent takes the time from. */
enum record_clock {
	RECORD_CLOCK_BEST, /* the processor's counter if it is steady, else as the next */
	RECORD_CLOCK_VDSO, /* the kernel's, read without a call where that is possible */
	RECORD_CLOCK_KERNEL, /* the same by calls */
};

struct record_options {
	char **argv; /* the command and its arguments; NULL when attaching */
	pid_t attach_pid; /* 0: run argv */
	const char *output;
	bool replace;
	unsigned int file_mode; /* of the output; 0: IO_FILE_MODE */
	enum data_policy data;
	uint64_t content_max_bytes; /* of files that exist before; 0: no contents */
	const bool *wanted; /* by row id; NULL: all calls */
	struct path_choice paths;
	uint64_t max_bytes, max_ns; /* 0: no limit */
	enum record_on_full on_full;
	uint64_t agent_after_calls; /* auto: a process gets the agent after so many calls */
	enum record_on_death on_death;
	enum record_net net; /* of the agent */
	enum record_clock clock; /* likewise */
	enum record_agent_for agent_for;
	enum record_agent agent; /* set by the recorder */
	bool no_stores; /* what is stored through maps is not looked for */
	bool untrusted; /* the program may be hostile: no agent, and every call stops */
	/* Where what it finds in files is kept for later: in a directory that is there; NULL: nowhere. */
	struct {
		const char *dir, *below;
	} cache;
};

/*
 * To enter the first process costs the agent about as much as so many calls cost by ptrace: then
 * nobody pays more than twice what he would have had to, had he known how many he makes.
 */
#define RECORD_AGENT_AFTER_CALLS 60

struct record_result {
	int wait_status; /* of the command, as waitpid() gives it; attached: 0 */
	uint64_t nr_events, nr_threads, nr_losses;
	uint64_t nr_losses_by_kind[LOSS_KIND_MAX]; /* [0]: of no known kind */
	uint64_t file_bytes;
	uint64_t elapsed_ns;
	uint64_t held_ns; /* sum over all threads */
	uint64_t slowdown_percent; /* 310: about 3.1 times slower; 0: not known */
	struct err by_ptrace; /* auto: why no agent could be used; empty: one could */
	bool cut_short; /* a limit was reached, or the disk was full: the program ran on unrecorded */
	struct err why_cut; /* words for that */
	bool is_gone; /* the trace is not where it was written */
	bool is_read; /* by the program */
	uint64_t nr_without_rights; /* programs that ran without those that their files give */
	/* By an audit of the net; the text is the caller's to free. */
	uint64_t nr_compared, nr_not_compared; /* threads, with the kernel's count of their calls */
	struct err why_not_compared; /* none of them */
	uint64_t nr_caught;
	char *caught; /* "CALLS from FILE+0xOFFSET: why", a line each; NULL: no audit */
};

/*
 * Records by the recorder of that name, see recorders.def. -errno: the recording failed, and err says
 * why. What the program did is in ret.
 */
MUST_CHECK int recorder_run(const char *name, const struct record_options *options,
			    struct record_result *ret, struct err *err);

#endif
