/* SPDX-License-Identifier: MIT */
/* usage: random_script SEED THREADS CALLS: a random program for real_program, on standard output */
#include <stdlib.h>

#include "program.h"

int main(int argc, char **argv)
{
	struct program_options o = { 0 };

	if (argc != 4)
		return 2;
	o.seed = strtoull(argv[1], NULL, 10);
	o.nr_threads = (unsigned int)strtoul(argv[2], NULL, 10);
	o.nr_calls = (unsigned int)strtoul(argv[3], NULL, 10);
	program_write_script(&o, stdout);
	return 0;
}
