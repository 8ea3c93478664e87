/* SPDX-License-Identifier: MIT */
/* What the program and who judges its plan agree on. */
#ifndef TESTS_APPS_MEETINGS_H
#define TESTS_APPS_MEETINGS_H

#define NR_THREADS 4
#define NR_MEETINGS 100
#define NR_TURNS 400
#define TURNS_AT 10000

#endif
