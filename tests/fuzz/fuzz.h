/* SPDX-License-Identifier: MIT */
/*
 * What every fuzz target defines. It returns 0 for any input; a crash, a
 * sanitizer report or a time-out is the finding. Called from one thread.
 */
#ifndef FUZZ_FUZZ_H
#define FUZZ_FUZZ_H

#include <stddef.h>
#include <stdint.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

#endif
