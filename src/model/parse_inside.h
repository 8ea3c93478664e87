/* SPDX-License-Identifier: MIT */
/*
 * Inside of the parser, private to parse.c (lines) and parse_value.c (values):
 * a descent over one line. Functions return 0 or -EBADMSG with words in
 * scan.err.
 */
#ifndef MODEL_PARSE_INSIDE_H
#define MODEL_PARSE_INSIDE_H

#include "base/map.h"
#include "base/mem.h"
#include "model/parse.h"
#include "model/scan.h"

struct parser {
	/* By name. A call and a record may share one: the thread in front tells them apart. */
	struct map events, records;
	VEC(struct value) stack; /* items of the lists that are being read */
	struct scan scan;
	struct arena *arena;
	unsigned int depth;
};

/* A value of any kind. */
MUST_CHECK int parse_any(struct parser *p, const struct arg *a, struct value *ret);
/* Names and numbers joined by '|', for any kind of number but DEV and SIGMASK. */
MUST_CHECK int parse_names(struct parser *p, const struct arg *a, uint64_t *ret);
/* From quote to quote, which must be next. */
MUST_CHECK int parse_quoted(struct parser *p, const uint8_t **ret, size_t *ret_len);
MUST_CHECK int parse_hash(struct parser *p, struct hash128 *ret);
/* NAME=, which of the arguments or fields it is. `what` is the word for one of them. */
MUST_CHECK int parse_arg_name(struct parser *p, const struct arg *args, unsigned int nr_args,
			      const char *what, unsigned int *ret);

#endif
