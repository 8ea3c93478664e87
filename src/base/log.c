/* SPDX-License-Identifier: MIT */
#include "base/log.h"

#include <errno.h>
#include <stdarg.h>
#include <unistd.h>

#include "base/banned.h"
#include "base/io.h"
#include "base/strings.h"

#define LINE_BYTES 1024

unsigned int log_mask;

static const char *const area_names[LOG_AREA_MAX] = {
#define AREA(id, name) [LOG_##id] = (name),
	LOG_AREAS(AREA)
#undef AREA
};

void log_print(enum log_area area, const char *fmt, ...)
{
	char line[LINE_BYTES];
	va_list ap;
	int head, body;
	size_t len;

	head = snprintf(line, sizeof(line), "reprise: debug: %s: ", area_names[area]);
	va_start(ap, fmt);
	body = vsnprintf(line + head, sizeof(line) - (size_t)head, fmt, ap);
	va_end(ap);
	len = (size_t)head + (body > 0 ? (size_t)body : 0);
	if (len > sizeof(line) - 1)
		len = sizeof(line) - 1;
	line[len++] = '\n';
	/*
	 * One write, so that lines of several threads do not mix; there is
	 * nowhere left to report its failure.
	 */
	(void)!write_full(STDERR_FILENO, line, len);
}

static int find_area(const char *name, size_t len)
{
	int area;

	for (area = 0; area < LOG_AREA_MAX; area++) {
		if (strlen(area_names[area]) == len && !memcmp(area_names[area], name, len))
			return area;
	}
	return -1;
}

static int unknown_area(const char *name, size_t len, struct err *err)
{
	char word[64];
	struct nearest near = { .typed = word };
	int area;

	(void)snprintf(word, sizeof(word), "%.*s", (int)len, name);
	for (area = 0; area < LOG_AREA_MAX; area++)
		nearest_offer(&near, area_names[area]);
	if (near.word)
		return err_set(err, -EINVAL, "unknown area '%s'; did you mean '%s'?", word,
			       near.word);
	return err_set(err, -EINVAL, "unknown area '%s'", word);
}

int log_set_areas(const char *names, struct err *err)
{
	unsigned int mask = 0;
	const char *p = names ? names : "";

	while (*p) {
		size_t len = strcspn(p, ",");
		int area = find_area(p, len);

		if (len == 3 && !memcmp(p, "all", 3))
			mask = (1u << LOG_AREA_MAX) - 1;
		else if (area >= 0)
			mask |= 1u << area;
		else if (len)
			return unknown_area(p, len, err);
		p += len;
		p += *p == ',';
	}
	log_mask = mask;
	return 0;
}
