/* SPDX-License-Identifier: MIT */
#include <errno.h>
#include <string.h>

#include "base/strings.h"
#include "order/order.h"

const struct rule_info rule_infos[RULE_MAX] = {
#define RULE(name, summary) [RULE_##name] = { #name, summary },
#include "order/rules.def"
#undef RULE
};

#define BIT(name) (UINT32_C(1) << RULE_##name)

const rule_set rules_default = BIT(thread) | BIT(file_range) | BIT(path_stage) | BIT(fd_stage) |
			       BIT(offset_seq) | BIT(aio_stage) | BIT(sync_wake);
/* All that ARTC supports but program_seq. */
const rule_set rules_artc = BIT(thread) | BIT(file_seq) | BIT(path_stage) | BIT(fd_stage) |
			    BIT(fd_seq) | BIT(aio_stage);

/* Rules of other policies: to name them for `root` is a mistake. */
#define RULES_OF_OTHERS (BIT(temporal) | BIT(overlap) | BIT(think))

static int find_rule(const char *name, size_t len, rule_set *ret, struct err *err)
{
	struct nearest nearest = { 0 };
	char typed[32];
	unsigned int i;

	for (i = 0; i < RULE_MAX; i++) {
		if (strlen(rule_infos[i].name) == len && !memcmp(rule_infos[i].name, name, len)) {
			if (RULES_OF_OTHERS >> i & 1)
				return err_set(err, -EINVAL,
					       "%s is a policy of its own: --order=%s",
					       rule_infos[i].name, rule_infos[i].name);
			*ret = UINT32_C(1) << i;
			return 0;
		}
	}
	if (len == 0)
		return err_set(err, -EINVAL, "a rule is missing between commas");
	if (len >= sizeof(typed))
		return err_set(err, -EINVAL, "there is no rule %.*s", (int)sizeof(typed), name);
	memcpy(typed, name, len);
	typed[len] = '\0';
	nearest.typed = typed;
	for (i = 0; i < RULE_MAX; i++) {
		if (!(RULES_OF_OTHERS >> i & 1))
			nearest_offer(&nearest, rule_infos[i].name);
	}
	if (nearest.word)
		return err_set(err, -EINVAL, "there is no rule %s; did you mean %s?", typed,
			       nearest.word);
	return err_set(err, -EINVAL, "there is no rule %s", typed);
}

static bool named_set(const char *name, size_t len, rule_set *ret)
{
	static const struct {
		const char *name;
		const rule_set *rules;
	} sets[] = { { "default", &rules_default }, { "artc", &rules_artc } };
	static const char none[] = "none";
	size_t i;

	for (i = 0; i < ARRAY_LEN(sets); i++) {
		if (strlen(sets[i].name) == len && !memcmp(sets[i].name, name, len)) {
			*ret = *sets[i].rules;
			return true;
		}
	}
	if (len != strlen(none) || memcmp(none, name, len) != 0)
		return false;
	*ret = 0;
	return true;
}

int rules_parse(const char *text, rule_set *ret, struct err *err)
{
	rule_set rules = rules_default, one = 0;
	const char *at = text;
	bool first = true;
	int r;

	for (;; at++, first = false) {
		size_t len = strcspn(at, ",");
		char sign = *at == '+' || *at == '-' ? *at : '\0';

		if (!sign && named_set(at, len, &one)) {
			/* A set in the middle would silently undo what stands before it. */
			if (!first)
				return err_set(err, -EINVAL, "%.*s can only stand first", (int)len,
					       at);
			rules = one;
		} else {
			r = find_rule(at + !!sign, len - !!sign, &one, err);
			if (r < 0)
				return r;
			if (first && !sign)
				rules = 0;
			/* Without it a lane could begin before what made it. */
			if (sign == '-' && one == BIT(thread))
				return err_set(err, -EINVAL, "rule thread is always on");
			if (sign == '-')
				rules &= ~one;
			else
				rules |= one;
		}
		at += len;
		if (!*at)
			break;
	}
	*ret = rules | BIT(thread);
	return 0;
}

void rules_print(rule_set rules, struct buf *out)
{
	bool first = true;
	unsigned int i;

	for (i = 0; i < RULE_MAX; i++) {
		if (!(rules >> i & 1))
			continue;
		if (!first)
			buf_putc(out, ',');
		buf_puts(out, rule_infos[i].name);
		first = false;
	}
}
