/* SPDX-License-Identifier: MIT */
/*
 * Numbers for people, in both directions, and help with misspelt words.
 * Nothing here keeps state; any thread may call it.
 */
#ifndef BASE_STRINGS_H
#define BASE_STRINGS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/attrs.h"
#include "base/buf.h"

/* Appended with three significant digits, or exactly where that is as short. */
void strings_put_bytes(struct buf *b, uint64_t bytes); /* 512 B, 1.23 MiB */
void strings_put_count(struct buf *b, uint64_t n); /* 9876, 12.3 k, 4.56 M */
void strings_put_duration(struct buf *b, uint64_t ns); /* 45.6 us, 1.23 s, 2m05s, 3h07m */

/*
 * The whole string must be the number, without sign or space. -EINVAL when it
 * is not, -ERANGE when it does not fit.
 *
 * u64       4096, 0x1000
 * size      4096, 64K, 1.5M, 2GiB, 1T: powers of 1024, in bytes
 * duration  10ns, 10us, 5ms, 1.5s, 2m, 1h; without a unit, seconds; in ns
 */
MUST_CHECK int strings_parse_u64(const char *s, uint64_t *ret);
MUST_CHECK int strings_parse_size(const char *s, uint64_t *ret_bytes);
MUST_CHECK int strings_parse_duration(const char *s, uint64_t *ret_ns);

/*
 * How many bytes the UTF-8 sequence at p takes; 0 when there is no valid one.
 * len > 0.
 */
size_t strings_utf8_sequence(const uint8_t *p, size_t len);
bool strings_is_utf8(const void *p, size_t len);

/*
 * Appends text of unknown origin so that it stays one line and cannot command
 * a terminal or deceive its reader: printable ASCII and valid UTF-8 stand for
 * themselves; every byte of a control character (C0, C1, DEL), of a line or
 * paragraph separator, of a mark that changes the direction of text, and of what
 * is no UTF-8 becomes \xHH. So does a backslash, so that what was there is known.
 */
void strings_put_foreign(struct buf *b, const void *text, size_t len);
/* The same for whole messages: a backslash is left as it is, as parts may be quoted already. */
void strings_put_message(struct buf *b, const char *text);

/*
 * How many letters were added, dropped, changed or swapped with their neighbour
 * between a and b. Words too long to be typed count as wholly different.
 */
unsigned int strings_edit_distance(const char *a, const char *b);

/*
 * "Did you mean": offer every known word, then ask for the one that was probably
 * meant. A word is near when about a third of its letters differ, or when the
 * typed word is its beginning.
 */
struct nearest {
	const char *typed;
	const char *word; /* borrowed from the caller; NULL while none is near */
	unsigned int distance;
};

void nearest_offer(struct nearest *n, const char *word);

#endif
