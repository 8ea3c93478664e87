/* SPDX-License-Identifier: MIT */
/*
 * XXH3, with the vector instructions that the running machine has: the library
 * offers that choice on x86 under names of its own (half the time for 4 KiB).
 */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <xxhash.h>

#ifdef HAVE_XXH_DISPATCH
#include <xxh_x86dispatch.h>
#endif

#endif
