/* SPDX-License-Identifier: MIT */
/*
 * The driver of a fuzz target in ordinary builds: runs every file of one corpus
 * directory through it, in the order of their names, and reports as TAP. The
 * name is printed before the run, so that a crash shows which file did it.
 */
#include "fuzz.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int is_visible(const struct dirent *entry)
{
	return entry->d_name[0] != '.';
}

/*
 * The target gets an allocation of exactly the file's size, so that ASan sees a
 * read past its end.
 */
static int run_file(const char *path)
{
	FILE *f = fopen(path, "rb");
	uint8_t *data = NULL;
	long size_bytes;
	int r = -1;

	if (!f || fseek(f, 0, SEEK_END) < 0)
		goto out;
	size_bytes = ftell(f);
	if (size_bytes < 0 || fseek(f, 0, SEEK_SET) < 0)
		goto out;
	data = malloc(size_bytes ? (size_t)size_bytes : 1);
	if (!data || fread(data, 1, (size_t)size_bytes, f) != (size_t)size_bytes)
		goto out;
	r = LLVMFuzzerTestOneInput(data, (size_t)size_bytes);
out:
	free(data);
	if (f)
		(void)fclose(f); /* only read from */
	return r;
}

int main(int argc, char **argv)
{
	struct dirent **entries;
	int nr_entries;
	int nr_failed = 0;

	if (argc != 2) {
		fprintf(stderr, "usage: %s CORPUS_DIR\n", argv[0]);
		return 2;
	}
	nr_entries = scandir(argv[1], &entries, is_visible, alphasort);
	if (nr_entries <= 0) {
		printf("Bail out! no corpus in %s: %s\n", argv[1],
		       nr_entries < 0 ? strerror(errno) : "empty");
		return 2;
	}

	printf("1..%d\n", nr_entries);
	for (int i = 0; i < nr_entries; i++) {
		char path[4096];
		int len = snprintf(path, sizeof(path), "%s/%s", argv[1], entries[i]->d_name);
		int r;

		printf("# %s\n", entries[i]->d_name);
		(void)fflush(stdout); /* for the reader of a crash; a loss shows in the plan */
		r = len < (int)sizeof(path) ? run_file(path) : -1;
		printf("%s %d - %s\n", r == 0 ? "ok" : "not ok", i + 1, entries[i]->d_name);
		nr_failed += r != 0;
		free(entries[i]);
	}
	free(entries);
	return nr_failed ? 1 : 0;
}
