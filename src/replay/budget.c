/* SPDX-License-Identifier: MIT */
#include "replay/budget.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/banned.h"
#include "base/io.h"

/* Files of /proc and cgroupfs that are looked at are far smaller. */
#define TEXT_MAX_BYTES (1u << 20)

/* The number behind a word at the beginning of a line; false if there is none. */
static bool find_number(const char *text, const char *word, uint64_t *ret)
{
	size_t len = strlen(word);

	for (; text; text = strchr(text, '\n')) {
		text += *text == '\n';
		if (!strncmp(text, word, len) && strspn(text + len, " \t") + len < strlen(text)) {
			*ret = strtoull(text + len, NULL, 10);
			return true;
		}
	}
	return false;
}

static bool read_number(const char *path, const char *word, uint64_t *ret)
{
	struct buf text = { 0 };
	bool found = io_read_file(path, TEXT_MAX_BYTES, &text, NULL) >= 0 &&
		     find_number(buf_str(&text), word, ret);

	buf_release(&text);
	return found;
}

/* How the two versions of control groups name things. */
static const struct group_names {
	const char *line; /* of /proc/self/cgroup: what stands before the path */
	const char *root, *limit, *used, *inactive, *active;
} versions[] = {
	{ "0::", "/sys/fs/cgroup", "memory.max", "memory.current", "inactive_file ",
	  "active_file " },
	{ ":memory:", "/sys/fs/cgroup/memory", "memory.limit_in_bytes", "memory.usage_in_bytes",
	  "total_inactive_file ", "total_active_file " },
};

/* What one group leaves; UINT64_MAX: it has no limit ("max" is no number: 0). */
static uint64_t left_in_group(const char *group, const struct group_names *names)
{
	char path[PATH_MAX + 64];
	uint64_t max = 0, used = 0, inactive = 0, active = 0;

	(void)snprintf(path, sizeof(path), "%s/%s", group, names->limit);
	if (!read_number(path, "", &max) || !max)
		return UINT64_MAX;
	(void)snprintf(path, sizeof(path), "%s/%s", group, names->used);
	(void)read_number(path, "", &used); /* 0: all of it is left */
	(void)snprintf(path, sizeof(path), "%s/memory.stat", group);
	(void)read_number(path, names->inactive, &inactive);
	(void)read_number(path, names->active, &active);
	used = used > inactive + active ? used - inactive - active : 0;
	return max > used ? max - used : 0;
}

/* Our group and all above it; inside of a container the own one is the root. */
static uint64_t left_in_groups(const struct group_names *names)
{
	struct buf text = { 0 };
	uint64_t least, left;
	char group[PATH_MAX], *line;
	size_t root_len = strlen(names->root);

	least = left_in_group(names->root, names);
	if (io_read_file("/proc/self/cgroup", TEXT_MAX_BYTES, &text, NULL) >= 0 &&
	    (line = strstr(buf_str(&text), names->line)) != NULL) {
		line += strlen(names->line);
		line[strcspn(line, "\n")] = 0;
		(void)snprintf(group, sizeof(group), "%s%s", names->root, line);
		while (strlen(group) > root_len) {
			left = left_in_group(group, names);
			least = left < least ? left : least;
			*strrchr(group, '/') = 0;
		}
	}
	buf_release(&text);
	return least;
}

uint64_t budget_default_bytes(void)
{
	uint64_t available = 0, left = UINT64_MAX, in_group;
	size_t i;

	for (i = 0; i < ARRAY_LEN(versions); i++) {
		in_group = left_in_groups(&versions[i]);
		left = in_group < left ? in_group : left;
	}
	if (read_number("/proc/meminfo", "MemAvailable:", &available))
		available <<= 10;
	else
		available = UINT64_MAX; /* a group's limit is all that is known */
	return (available < left ? available : left) / 4;
}

bool budget_take(struct budget *b, uint64_t bytes)
{
	uint64_t taken = atomic_load(&b->taken_bytes);

	do {
		if (bytes > b->limit_bytes || taken > b->limit_bytes - bytes) {
			atomic_fetch_add(&b->nr_refused, 1);
			return false;
		}
	} while (!atomic_compare_exchange_weak(&b->taken_bytes, &taken, taken + bytes));
	return true;
}

void budget_give(struct budget *b, uint64_t bytes)
{
	atomic_fetch_sub(&b->taken_bytes, bytes);
}
