/* SPDX-License-Identifier: MIT */
/* The layouts come from the headers of the machine that we are built on: a recorder runs there. */
#include <stddef.h>

#include "base/attrs.h"
#include "model/kernel_structs.h"
#include "model/words.h"

/* Names of ours that the system headers have as macros. */
#undef st_atime
#undef st_mtime
#undef st_ctime

#define STRUCT(name, ctype) static const struct arg fields_##name[] = {
#define FIELD(member, name, word, ...) word(name, ##__VA_ARGS__),
#define EXTRA(name, word, ...) word(name, ##__VA_ARGS__),
#define END_STRUCT                                                                                 \
	}                                                                                          \
	;
#include "model/structs.def"
#undef STRUCT
#undef FIELD
#undef EXTRA
#undef END_STRUCT

/* A function and not an array, because only a function can give each C type the same name. */
#define STRUCT(name, ctype)                                                                        \
	static const struct field_place *places_##name(void)                                       \
	{                                                                                          \
		typedef ctype this_type UNUSED;                                                    \
		static const struct field_place places[] = {
#define FIELD(member, ...) { offsetof(this_type, member), sizeof(((this_type *)NULL)->member) },
#define EXTRA(...) { OFFSET_NONE, 0 },
#define END_STRUCT                                                                                 \
	}                                                                                          \
	;                                                                                          \
	return places;                                                                             \
	}
#include "model/structs.def"
#undef STRUCT
#undef FIELD
#undef EXTRA
#undef END_STRUCT

#define STRUCT(name, ctype)                                                                        \
	_Static_assert(sizeof(fields_##name) <= STRUCT_FIELDS_MAX * sizeof(struct arg), #name);
#define FIELD(...)
#define EXTRA(...)
#define END_STRUCT
#include "model/structs.def"
#undef STRUCT

const struct struct_desc struct_descs[STRUCT_MAX] = {
	[STRUCT_none] = { .name = "none" },
#define STRUCT(name_, ctype)                                                                       \
	[STRUCT_##name_] = { .name = #name_,                                                       \
			     .size_bytes = sizeof(ctype),                                          \
			     .nr_fields = sizeof(fields_##name_) / sizeof(struct arg),             \
			     .fields = fields_##name_,                                             \
			     .places = places_##name_ },
#include "model/structs.def"
#undef STRUCT
#undef FIELD
#undef EXTRA
#undef END_STRUCT
};
