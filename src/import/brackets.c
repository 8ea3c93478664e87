/* SPDX-License-Identifier: MIT */
#include "import/brackets.h"

#include <errno.h>
#include <string.h>

#include "base/banned.h"

static const char between[] = "]; [";
#define BETWEEN_LEN (sizeof(between) - 1)

/* What remains of a line without the end that every line should have. */
static size_t trim_end(const char *line, size_t len)
{
	while (len && (line[len - 1] == ' ' || line[len - 1] == '\r' || line[len - 1] == ';'))
		len--;
	return len;
}

int brackets_split(const char *line, size_t len, struct scan_word *ret, unsigned int max,
		   struct err *err)
{
	const char *pos = line + 1, *end;
	unsigned int nr = 0;

	len = trim_end(line, len);
	if (len < 2 || line[0] != '[' || line[len - 1] != ']')
		return err_set(err, -EBADMSG, "not a list of fields in brackets");
	end = line + len - 1;
	for (;;) {
		const char *stop = memmem(pos, (size_t)(end - pos), between, BETWEEN_LEN);

		if (nr == max)
			return err_set(err, -EBADMSG, "more than %u fields", max);
		ret[nr++] = (struct scan_word){ pos, (size_t)((stop ? stop : end) - pos) };
		if (!stop)
			return (int)nr;
		pos = stop + BETWEEN_LEN;
	}
}
