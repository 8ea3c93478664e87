/* SPDX-License-Identifier: MIT */
/* make_plan FILE SLOTS < TEXT: a plan for scripts, see plan_text.h. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "plan_text.h"

int main(int argc, char **argv)
{
	struct plan_text *p;
	char *line = NULL;
	size_t cap = 0;

	if (argc != 3) {
		fprintf(stderr, "usage: make_plan FILE SLOTS < TEXT\n");
		return 2;
	}
	p = plan_text_new(argv[1], (uint32_t)strtoul(argv[2], NULL, 10));
	while (getline(&line, &cap, stdin) > 0) {
		line[strcspn(line, "\n")] = 0;
		plan_text_add(p, line);
	}
	free(line);
	plan_text_close(p);
	return 0;
}
