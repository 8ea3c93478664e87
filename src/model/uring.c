/* SPDX-License-Identifier: MIT */
#include "model/uring.h"

#include <string.h>

#include "base/banned.h"
#include "model/row.h"

#define SQE_FIXED_FILE 1
#define SPLICE_FD_IN_FIXED ((int64_t)1 << 31)

static struct value *field(const struct value *v, enum struct_id id, const char *name)
{
	const struct struct_desc *desc = &struct_descs[id];
	unsigned int i;

	if (!v || v->type != VALUE_STRUCT)
		return NULL;
	for (i = 0; i < desc->nr_fields; i++) {
		struct value *f = value_field(v, i);

		if (!strcmp(desc->fields[i].name, name))
			return f && f->type == VALUE_INT ? f : NULL;
	}
	return NULL;
}

int64_t uring_sqe_int(const struct value *sqe, const char *name)
{
	const struct value *f = field(sqe, STRUCT_io_uring_sqe, name);

	return f ? f->i : 0;
}

int64_t uring_cqe_int(const struct value *cqe, const char *name)
{
	const struct value *f = field(cqe, STRUCT_io_uring_cqe, name);

	return f ? f->i : 0;
}

bool uring_fd_counts(const struct value *sqe)
{
	return !(uring_sqe_int(sqe, "flags") & SQE_FIXED_FILE) &&
	       uring_sqe_int(sqe, "opcode") != URING_SOCKET;
}

struct value *uring_second_fd(const struct value *sqe)
{
	struct value *f = NULL;

	switch (uring_sqe_int(sqe, "opcode")) {
	case URING_RENAMEAT:
	case URING_LINKAT:
		f = field(sqe, STRUCT_io_uring_sqe, "len");
		break;
	case URING_SPLICE:
	case URING_TEE:
		if (!(uring_sqe_int(sqe, "op_flags") & SPLICE_FD_IN_FIXED))
			f = field(sqe, STRUCT_io_uring_sqe, "splice_fd_in");
		break;
	}
	return f;
}

bool uring_op_opens(int64_t opcode)
{
	switch (opcode) {
	case URING_OPENAT:
	case URING_OPENAT2:
	case URING_ACCEPT:
	case URING_SOCKET:
	case URING_FIXED_FD_INSTALL:
		return true;
	default:
		return false;
	}
}

uint32_t uring_file_index(const struct value *sqe)
{
	int64_t opcode = uring_sqe_int(sqe, "opcode");

	if (opcode != URING_CLOSE && (!uring_op_opens(opcode) || opcode == URING_FIXED_FD_INSTALL))
		return 0;
	return (uint32_t)uring_sqe_int(sqe, "splice_fd_in");
}

struct value *uring_new_fd(const struct value *cqe)
{
	struct value *res = field(cqe, STRUCT_io_uring_cqe, "res");

	return res && res->i >= 0 && uring_op_opens(uring_cqe_int(cqe, "opcode")) &&
			       !uring_cqe_int(cqe, "direct")
		       ? res
		       : NULL;
}

bool uring_is_early(const struct value *cqe, int64_t min_complete, const struct value *sqes)
{
	uint32_t i;

	if (uring_cqe_int(cqe, "early"))
		return true;
	if (min_complete)
		return false;
	for (i = 0; sqes->type == VALUE_LIST && i < sqes->count; i++)
		if (uring_sqe_int(&sqes->items[i], "request") == uring_cqe_int(cqe, "request"))
			return false;
	return true;
}

bool uring_is_unsupported(const struct value *sqe)
{
	switch (uring_sqe_int(sqe, "opcode")) {
	case URING_FILES_UPDATE: /* places that the kernel chose are not in the completion */
		return (uint32_t)uring_sqe_int(sqe, "off") == URING_INDEX_ALLOC;
	case URING_SPLICE:
	case URING_TEE:
	case URING_FSETXATTR:
	case URING_SETXATTR:
	case URING_CMD:
	case URING_READ_MULTISHOT:
		return true;
	default:
		return false;
	}
}
