/* SPDX-License-Identifier: MIT */
#include "cli/order_options.h"

#include "base/banned.h"
#include "base/json.h"
#include "base/strings.h"
#include "order/think.h"

static int no_such_policy(const struct cli *cli, const char *name)
{
	struct buf all = { 0 };
	int r;

	for (size_t i = 0; order_policies[i]; i++)
		buf_printf(&all, "%s%s", i ? ", " : "", order_policies[i]->name);
	r = cli_fail_with(cli, "--order=%s: there are %s", name, buf_str(&all));
	buf_release(&all);
	return r;
}

int order_choose(const struct cli *cli, const struct order_choice *choice, struct trace *t,
		 struct compile_options *ret)
{
	const char *usual = compile_is_block(t) ? "think" : "root";
	const char *name = choice->order ? choice->order : usual;
	struct err err = { "" };

	ret->policy = order_find(name);
	if (!ret->policy)
		return no_such_policy(cli, name);
	ret->think_ns = THINK_DEFAULT_NS;
	if (choice->think && strings_parse_duration(choice->think, &ret->think_ns) < 0)
		return cli_fail_with(cli, "--think-threshold: '%s' is no duration", choice->think);
	ret->rules = rules_default;
	if (choice->rules && rules_parse(choice->rules, &ret->rules, &err) < 0)
		return cli_fail(cli, &err);
	return CLI_DONE;
}

static int parse_bound(const struct cli *cli, const char *option, const char *text,
		       struct compile_bound *ret)
{
	*ret = (struct compile_bound){ 0 };
	if (!text)
		return CLI_DONE;
	ret->is_event = text[0] == '#';
	if (ret->is_event ? strings_parse_u64(text + 1, &ret->at) < 0
			  : strings_parse_duration(text, &ret->at) < 0)
		return cli_fail_with(
			cli, "--%s=%s: neither a time such as 2.5s nor an event such as #120",
			option, text);
	return CLI_DONE;
}

int part_choose(const struct cli *cli, const struct part_choice *choice,
		struct compile_options *ret)
{
	int r = parse_bound(cli, "from", choice->from, &ret->from);

	if (r == CLI_DONE)
		r = parse_bound(cli, "to", choice->to, &ret->to);
	if (r != CLI_DONE)
		return r;
	if (choice->to &&
	    (!ret->to.at || (ret->from.is_event == ret->to.is_event && ret->to.at <= ret->from.at)))
		return cli_fail_with(cli, "--to=%s: nothing comes before it", choice->to);
	return CLI_DONE;
}

void contradictions_print(const struct fsmodel_totals *t, FILE *out)
{
	for (unsigned int i = CONTRADICTION_NONE + 1; i < CONTRADICTION_MAX; i++) {
		if (!t->contradictions[i])
			continue;
		fprintf(out, "  contradiction %s: %llu, of which repaired %llu\n",
			contradiction_names[i], (unsigned long long)t->contradictions[i],
			(unsigned long long)t->repaired[i]);
	}
	if (t->nr_outside)
		fprintf(out, "  %llu calls failed for reasons outside the model\n",
			(unsigned long long)t->nr_outside);
}

void contradictions_json(const struct fsmodel_totals *t, struct json *w)
{
	json_key(w, "contradictions");
	json_object_begin(w);
	for (unsigned int i = CONTRADICTION_NONE + 1; i < CONTRADICTION_MAX; i++) {
		if (t->contradictions[i])
			json_kv_u64(w, contradiction_names[i], t->contradictions[i]);
	}
	json_object_end(w);
	json_kv_u64(w, "failures_outside", t->nr_outside);
}
