/* SPDX-License-Identifier: MIT */
/*
 * Numbers of the fields of structs.def: FIELD_OF(iovec, iov_len) is the n of
 * value_field(v, n). A field or struct that the table lacks does not compile.
 */
#ifndef MODEL_FIELDS_H
#define MODEL_FIELDS_H

#include <stddef.h>
#include <stdint.h>

/*
 * A member of one byte per field, so that the offset of a member is the number
 * of the field. The prefix keeps the macros of system headers (st_atime, si_pid)
 * from being expanded.
 */
#define STRUCT(name, ctype) struct fields_of_##name {
#define FIELD(member, name, ...) char f_##name;
#define EXTRA(name, ...) char f_##name;
#define END_STRUCT                                                                                 \
	}                                                                                          \
	;
#include "model/structs.def"
#undef STRUCT
#undef FIELD
#undef EXTRA
#undef END_STRUCT

#define FIELD_OF(struct_, field) offsetof(struct fields_of_##struct_, f_##field)
/* The field's bit in a set of fields, as value_struct() takes it. */
#define FIELD_BIT(struct_, field) (UINT64_C(1) << offsetof(struct fields_of_##struct_, f_##field))

#endif
