/* SPDX-License-Identifier: MIT */
/*
 * A read position in a line of foreign text: words, numbers, and complaints
 * that name the column. Nothing reads past the end, and a failed read says why
 * through err. Functions that return int give 0 or -EBADMSG. Owned by one
 * thread.
 */
#ifndef MODEL_SCAN_H
#define MODEL_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attrs.h"
#include "base/err.h"

struct scan {
	const char *start, *pos, *end;
	struct err *err;
};

/* Letters, digits and '_'. */
struct scan_word {
	const char *text;
	size_t len;
};

struct scan_number {
	uint64_t magnitude;
	bool minus;
};

/* "column N: <words>", with the column of `at`. */
PRINTF_LIKE(3, 4) int scan_bad(struct scan *s, const char *at, const char *fmt, ...);
/* "column N: unknown <what> '<word>'" */
int scan_bad_word(struct scan *s, const char *what, struct scan_word w);
/* "column N: expected <what>, found ..." at the position. */
int scan_bad_expected(struct scan *s, const char *what);
/* A number that does not fit; moves back to it. */
int scan_bad_range(struct scan *s, const char *at);

void scan_skip_space(struct scan *s);
bool scan_is_word_char(char c);
bool scan_next_is(const struct scan *s, char c);
bool scan_next_is_digit(const struct scan *s);
/* Moves over the character if it stands right here. */
bool scan_accept_here(struct scan *s, char c);
/* The same, with space allowed before it. */
bool scan_accept(struct scan *s, char c);
MUST_CHECK int scan_expect(struct scan *s, char c, const char *what);

/* What stands here up to the next character that no word has; may be empty. */
struct scan_word scan_peek_word(const struct scan *s);
bool scan_word_is(struct scan_word w, const char *text);
/* A word that does not begin with a digit, with space allowed before it. */
MUST_CHECK int scan_take_word(struct scan *s, const char *what, struct scan_word *ret);

/* Numbers: 10, 0x1f, 0644; the first may have a minus. */
MUST_CHECK int scan_take_number(struct scan *s, struct scan_number *ret);
MUST_CHECK int scan_take_unsigned(struct scan *s, uint64_t max, uint64_t *ret);
MUST_CHECK int scan_take_u32(struct scan *s, uint32_t *ret);
/* Whether it fits a signed number whose largest value is max. */
bool scan_signed_fits(const struct scan_number *n, uint64_t max);
/* As 64 bits, negative ones in two's complement. */
uint64_t scan_with_sign(const struct scan_number *n);

/* All of the word as digits of a base up to 16; false: it is no such number. */
MUST_CHECK bool scan_convert(struct scan_word w, uint64_t base, uint64_t *ret);
/* -1 when it is none. */
int scan_hex_digit(char c);
MUST_CHECK bool scan_take_hex_byte(struct scan *s, uint8_t *ret);

#endif
