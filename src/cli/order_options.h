/* SPDX-License-Identifier: MIT */
/* What the commands that compile a trace have in common: --order, --rules, --from and --to. */
#ifndef CLI_ORDER_OPTIONS_H
#define CLI_ORDER_OPTIONS_H

#include "cli/cli.h"
#include "compile/compile.h"

struct order_choice {
	const char *order, *rules, *think;
};

#define OPT_ORDER(struct_type, field)                                                              \
	OPT_STRING(0, "order", "POLICY", struct_type, field.order,                                 \
		   "which calls keep their order: root, temporal, overlap, single, none; "         \
		   "of block requests: think, none",                                               \
		   .default_text = "root, or think"),                                              \
		OPT_STRING(0, "rules", "RULES", struct_type, field.rules,                          \
			   "rules of root: artc, default, or changes to the default such as "      \
			   "+file_seq,-path_stage"),                                               \
		OPT_STRING(0, "think-threshold", "TIME", struct_type, field.think,                 \
			   "block requests: one that was issued sooner after the completion of "   \
			   "another does not depend on it",                                        \
			   .default_text = "10us")

struct part_choice {
	const char *from, *to;
};

#define OPT_PART(struct_type, field)                                                               \
	OPT_STRING(0, "from", "WHERE", struct_type, field.from,                                    \
		   "begin at this time after the start (2.5s, 300ms), or at the event of this "    \
		   "number (#120); what came before is only made ready"),                          \
		OPT_STRING(0, "to", "WHERE", struct_type, field.to,                                \
			   "end before this time, or before the event of this number")

/* Likewise. */
MUST_CHECK int part_choose(const struct cli *cli, const struct part_choice *choice,
			   struct compile_options *ret);

/* CLI_DONE; or CLI_FAILED, having said what is wrong with the choice for this trace. */
MUST_CHECK int order_choose(const struct cli *cli, const struct order_choice *choice,
			    struct trace *t, struct compile_options *ret);

/* Contradictions between trace and model by kind, as text lines or as a JSON member. */
void contradictions_print(const struct fsmodel_totals *t, FILE *out);
struct json;
void contradictions_json(const struct fsmodel_totals *t, struct json *w);

#endif
