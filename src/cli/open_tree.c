/* SPDX-License-Identifier: MIT */
#include "cli/open_tree.h"

#include "base/banned.h"

int tree_file_open(const char *path, struct tree_file *ret, struct err *err)
{
	struct tree_file f = { 0 };
	int r = trace_open(path, 0, &f.source.records, err);

	if (r < 0)
		return r;
	if (plan_is_plan(f.source.records)) {
		trace_close(f.source.records);
		r = plan_open(path, &f.plan, err);
		if (r < 0)
			return r;
		f.source.records = plan_container(f.plan);
		f.source.data = plan_data_source(f.plan);
	}
	*ret = f;
	return 0;
}

int tree_file_close(const struct cli *cli, struct tree_file *f, int status)
{
	struct err tail = { "" };
	int r;

	if (status != CLI_FAILED) {
		r = trace_tail(f->source.records, &tail);
		if (r < 0)
			status = cli_fail(cli, &tail);
		else if (r > 0)
			cli_warn(cli, "%s", tail.text);
	}
	if (f->plan)
		plan_close(f->plan);
	else
		trace_close(f->source.records);
	return status;
}
