/* SPDX-License-Identifier: MIT */
/*
 * Words for a human beside a status for the program. A `struct err` lives with
 * the caller (usually on main's stack) and gathers one line on the way up:
 * err_set() writes the innermost part, err_wrap() puts where it happened in
 * front. Every function accepts NULL for err. Not shared between threads.
 */
#ifndef BASE_ERR_H
#define BASE_ERR_H

#include "base/attrs.h"

#define ERR_TEXT_SIZE 1024

struct err {
	char text[ERR_TEXT_SIZE];
};

/*
 * Replaces the text and returns r, so that `return err_set(...)` reads well.
 * When r is -errno of a failed system call its description is appended; the
 * codes that we raise ourselves (-EBADMSG corrupt, -EOPNOTSUPP unknown,
 * -EINVAL misuse, -E2BIG beyond a limit) are explained by the words alone.
 */
PRINTF_LIKE(3, 4) int err_set(struct err *err, int r, const char *fmt, ...);

/* Puts "words: " in front of what is there and returns r. */
PRINTF_LIKE(3, 4) int err_wrap(struct err *err, int r, const char *fmt, ...);

#endif
