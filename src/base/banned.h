/* SPDX-License-Identifier: MIT */
/*
 * Makes the use of some C library functions a compile error: those that do not
 * know the size of what they write to, hide state shared by all threads, or
 * cannot report a failure. Include it beside our other headers. A system header
 * that names a poisoned word must come before it; those that declare them are
 * included here, so in practice any order works.
 *
 * Instead: memcpy, buf_put, snprintf, buf_printf, strchr, gmtime_r,
 * strings_parse_u64.
 */
#ifndef BASE_BANNED_H
#define BASE_BANNED_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* Hardened C libraries make macros of some. */
#undef strcpy
#undef strcat
#undef sprintf
#undef strncpy
#undef strtok
#undef gmtime
#undef localtime
#undef atoi

#pragma GCC poison strcpy strcat sprintf strncpy strtok gmtime localtime atoi

#endif
