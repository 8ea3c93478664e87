/* SPDX-License-Identifier: MIT */
#include "record/recorder.h"

#include <errno.h>
#include <string.h>

#include "record/session.h"
#include "record/source.h"

struct recorder {
	const char *name;
	const struct source *runs;
	enum record_agent agent;
};

static const struct recorder recorders[] = {
#define RECORDER(name, source, agent, summary) { #name, &source_##source, agent },
#include "record/recorders.def"
#undef RECORDER
};

int recorder_run(const char *name, const struct record_options *o, struct record_result *ret,
		 struct err *err)
{
	struct record_options own = *o;
	size_t i;

	for (i = 0; i < ARRAY_LEN(recorders); i++) {
		if (strcmp(recorders[i].name, name) != 0)
			continue;
		own.agent = recorders[i].agent;
		if (own.agent == RECORD_AGENT_ALWAYS)
			own.agent_after_calls = 0;
		return session_run(recorders[i].runs, &own, ret, err);
	}
	return err_set(err, -EINVAL, "there is no recorder '%s'", name);
}
