/* SPDX-License-Identifier: MIT */
#include "cli/open_trace.h"

#include "base/banned.h"
#include "plan/plan.h"

int open_trace(const struct cli *cli, const char *path, struct trace **ret)
{
	struct err err = { "" };

	if (trace_open(path, 0, ret, &err) < 0)
		return cli_fail(cli, &err);
	if (!plan_is_plan(*ret))
		return CLI_DONE;
	trace_close(*ret);
	*ret = NULL;
	return cli_fail_with(cli, "%s is a plan, not a trace", path);
}

int close_trace(const struct cli *cli, struct trace *t, int r, const struct err *err)
{
	struct err tail = { "" };
	int status = CLI_DONE;

	if (r < 0) {
		status = cli_fail(cli, err);
	} else {
		r = trace_tail(t, &tail);
		if (r < 0)
			status = cli_fail(cli, &tail);
		else if (r > 0)
			cli_warn(cli, "%s", tail.text);
	}
	trace_close(t);
	return status;
}
