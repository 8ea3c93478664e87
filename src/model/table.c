/* SPDX-License-Identifier: MIT */
#include "model/row.h"

#include <string.h>

#include "model/words.h"

const struct kind_info kind_infos[KIND_MAX] = {
#define KIND(name, wire, width) [KIND_##name] = { #name, wire, width },
#include "model/kinds.def"
#undef KIND
};

const char *const class_names[C_MAX] = {
	[C_DESC] = "desc",     [C_DATA] = "data",   [C_NAME] = "name",	 [C_META] = "meta",
	[C_XATTR] = "xattr",   [C_DIR] = "dir",	    [C_SYNC] = "sync",	 [C_MAP] = "map",
	[C_PIPE] = "pipe",     [C_NET] = "net",	    [C_AIO] = "aio",	 [C_URING] = "uring",
	[C_PROC] = "proc",     [C_CWD] = "cwd",	    [C_WAIT] = "wait",	 [C_LOCK] = "lock",
	[C_SIGNAL] = "signal", [C_OTHER] = "other", [C_EVENT] = "event", [C_BLOCK] = "block",
	[C_RECORD] = "record",
};

#define SYSCALL(id, name, class, args, result, model, replay)                                      \
	static const struct arg args_##name[] = args;                                              \
	_Static_assert(sizeof(args_##name) <= ROW_ARGS_MAX * sizeof(struct arg), #name);
#include "model/syscalls.def"
#undef SYSCALL
#define EVENT(id, name, class, args)                                                               \
	static const struct arg event_args_##name[] = args;                                        \
	_Static_assert(sizeof(event_args_##name) <= ROW_ARGS_MAX * sizeof(struct arg), #name);
#include "model/events.def"
#undef EVENT
#define RECORD(id, name, args)                                                                     \
	static const struct arg record_args_##name[] = args;                                       \
	_Static_assert(sizeof(record_args_##name) <= ROW_ARGS_MAX * sizeof(struct arg), #name);
#include "model/records.def"
#undef RECORD

#define NR_ARGS(a) (sizeof(a) / sizeof(struct arg))

static const struct row rows[ROW_ID_MAX] = {
#define SYSCALL(id_, name_, class_, arg_list, result_, model_, replay_)                            \
	[id_] = { .id = (id_),                                                                     \
		  .sort = ROW_CALL,                                                                \
		  .class = (class_),                                                               \
		  .result = RESULT_##result_,                                                      \
		  .model = SUPPORT_##model_,                                                       \
		  .replay = SUPPORT_##replay_,                                                     \
		  .nr_args = NR_ARGS(args_##name_),                                                \
		  .name = #name_,                                                                  \
		  .args = args_##name_ },
#include "model/syscalls.def"
#undef SYSCALL
#define EVENT(id_, name_, class_, arg_list)                                                        \
	[id_] = { .id = (id_),                                                                     \
		  .sort = ROW_EVENT,                                                               \
		  .class = (class_),                                                               \
		  .result = RESULT_NOTHING,                                                        \
		  .model = SUPPORT_SPECIAL,                                                        \
		  .replay = SUPPORT_NOTHING,                                                       \
		  .nr_args = NR_ARGS(event_args_##name_),                                          \
		  .name = #name_,                                                                  \
		  .args = event_args_##name_ },
#include "model/events.def"
#undef EVENT
#define RECORD(id_, name_, arg_list)                                                               \
	[id_] = { .id = (id_),                                                                     \
		  .sort = ROW_RECORD,                                                              \
		  .class = C_RECORD,                                                               \
		  .result = RESULT_NOTHING,                                                        \
		  .model = SUPPORT_NOTHING,                                                        \
		  .replay = SUPPORT_NOTHING,                                                       \
		  .nr_args = NR_ARGS(record_args_##name_),                                         \
		  .name = #name_,                                                                  \
		  .args = record_args_##name_ },
#include "model/records.def"
#undef RECORD
};

const struct row *row_by_id(unsigned int id)
{
	return id < ROW_ID_MAX && rows[id].id ? &rows[id] : NULL;
}

bool row_lists_xattrs(const struct row *row)
{
	return row_class(row) == C_XATTR && strstr(row->name, "listxattr");
}

const struct row *row_by_name(const char *name)
{
	unsigned int id;

	for (id = 0; id < ROW_ID_MAX; id++) {
		if (rows[id].id && !strcmp(rows[id].name, name))
			return &rows[id];
	}
	return NULL;
}

static const struct row_variant variants[] = {
#define VARIANT(base_, reg_, mask_, value_, row_)                                                  \
	{ .base = SC_##base_,                                                                      \
	  .id = SC_##row_,                                                                         \
	  .reg = (reg_)-A0,                                                                        \
	  .mask = (mask_),                                                                         \
	  .value = (value_) },
#include "model/variants.def"
#undef VARIANT
};

const struct row *row_select_variant(const struct row *base, const uint64_t regs[6])
{
	size_t i;

	for (i = 0; i < sizeof(variants) / sizeof(variants[0]); i++) {
		const struct row_variant *v = &variants[i];

		if (v->base == base->id && (regs[v->reg] & v->mask) == v->value)
			return &rows[v->id];
	}
	return base;
}

const struct row_variant *row_variant_at(size_t i)
{
	return i < sizeof(variants) / sizeof(variants[0]) ? &variants[i] : NULL;
}

const struct row_variant *row_variant_of(const struct row *row)
{
	size_t i;

	for (i = 0; i < sizeof(variants) / sizeof(variants[0]); i++) {
		if (variants[i].id == row->id)
			return &variants[i];
	}
	return NULL;
}

bool row_is_context(const struct row *row)
{
	switch ((int)row_class(row)) {
	case C_PROC:
	case C_CWD:
	case C_WAIT:
	case C_AIO:
	case C_URING:
		return true;
	}
	return row->id == SC_close_range || row->id == SC_sync || row->id == SC_msync;
}
