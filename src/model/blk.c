/* SPDX-License-Identifier: MIT */
#include "model/blk.h"

#include "base/banned.h"

const struct blk_op_info blk_ops[BLK_OP_MAX] = {
#define BLOCK_OP(name, id, letters, moves) [id] = { #name, letters, BLK_MOVES_##moves },
#include "model/blockops.def"
};

/* Where block_request has its arguments; a unit test compares this with the table. */
enum {
	ARG_DEV,
	ARG_OP,
	ARG_FLAGS,
	ARG_SECTOR,
	ARG_LENGTH,
	ARG_DATA,
	ARG_QUEUED,
	ARG_CPU,
	ARG_PRIORITY,
	ARG_DEVICE_NO,
	ARG_PID,
	ARG_COMM,
	ARG_WITHIN,
};

static uint64_t number_or(const struct value *v, uint64_t otherwise)
{
	return v->type == VALUE_INT ? v->u : otherwise;
}

bool blk_request_get(const struct row *row, const struct value *args, struct blk_request *ret)
{
	const struct data *comm;
	uint64_t offset;

	if (row->id != EV_block_request || args[ARG_OP].type != VALUE_INT ||
	    args[ARG_OP].u >= BLK_OP_MAX)
		return false;
	if (number_or(&args[ARG_DEVICE_NO], 0) >= BLK_DEVICES_MAX ||
	    number_or(&args[ARG_SECTOR], 0) >= INT64_MAX / BLK_SECTOR_BYTES ||
	    number_or(&args[ARG_WITHIN], 0) >= BLK_SECTOR_BYTES)
		return false;
	offset = number_or(&args[ARG_SECTOR], 0) * BLK_SECTOR_BYTES +
		 number_or(&args[ARG_WITHIN], 0);
	if (number_or(&args[ARG_LENGTH], 0) > INT64_MAX - offset)
		return false;
	*ret = (struct blk_request){
		.dev = number_or(&args[ARG_DEV], 0),
		.device_no = (uint32_t)number_or(&args[ARG_DEVICE_NO], 0),
		.op = (enum blk_op)args[ARG_OP].u,
		.flags = number_or(&args[ARG_FLAGS], 0),
		.offset_bytes = offset,
		.length_bytes = number_or(&args[ARG_LENGTH], 0),
		.pid = (uint32_t)number_or(&args[ARG_PID], 0),
		.cpu = args[ARG_CPU].type == VALUE_INT ? (int32_t)args[ARG_CPU].u : -1,
		.data = args[ARG_DATA].type == VALUE_DATA ? args[ARG_DATA].data : NULL,
	};
	comm = args[ARG_COMM].type == VALUE_DATA ? args[ARG_COMM].data : NULL;
	if (comm && comm->bytes) {
		ret->comm = (const char *)comm->bytes;
		ret->comm_len = (size_t)comm->kept_bytes;
	}
	return true;
}

void blk_request_put(const struct blk_request *rq, struct arena *a, struct event *ev)
{
	ev->row = row_by_id(EV_block_request);
	if (rq->dev)
		ev->args[ARG_DEV] = value_uint(rq->dev);
	ev->args[ARG_OP] = value_int((int64_t)rq->op);
	ev->args[ARG_FLAGS] = value_uint(rq->flags);
	ev->args[ARG_SECTOR] = value_uint(rq->offset_bytes / BLK_SECTOR_BYTES);
	if (rq->offset_bytes % BLK_SECTOR_BYTES)
		ev->args[ARG_WITHIN] = value_uint(rq->offset_bytes % BLK_SECTOR_BYTES);
	ev->args[ARG_LENGTH] = value_uint(rq->length_bytes);
	if (rq->data) {
		struct value *v = &ev->args[ARG_DATA];

		v->type = VALUE_DATA;
		v->data = arena_alloc(a, sizeof(*v->data));
		*v->data = *rq->data;
	}
	if (rq->cpu >= 0)
		ev->args[ARG_CPU] = value_uint((uint32_t)rq->cpu);
	ev->args[ARG_DEVICE_NO] = value_uint(rq->device_no);
	if (rq->pid)
		ev->args[ARG_PID] = value_int(rq->pid);
	if (rq->comm)
		ev->args[ARG_COMM] = value_bytes(a, rq->comm, rq->comm_len);
}

/* As the kernel writes it: F for the flush, the operation, F for FUA, then the others. */
void blk_put_rwbs(enum blk_op op, uint64_t flags, char out[BLK_RWBS_MAX])
{
	const char *letter;
	char *p = out;

	if (flags & BLK_FLAG_FLUSH || op == BLK_FLUSH)
		*p++ = 'F';
	for (letter = blk_ops[op].letters; *letter; letter++)
		*p++ = *letter;
	if (flags & BLK_FLAG_FUA)
		*p++ = 'F';
	if (flags & BLK_FLAG_RAHEAD)
		*p++ = 'A';
	if (flags & BLK_FLAG_SYNC)
		*p++ = 'S';
	if (flags & BLK_FLAG_META)
		*p++ = 'M';
	*p = '\0';
}

static bool get_op_letter(char c, enum blk_op *ret)
{
	switch (c) {
	case 'R':
		*ret = BLK_READ;
		return true;
	case 'W':
		*ret = BLK_WRITE;
		return true;
	case 'D':
		*ret = BLK_DISCARD;
		return true;
	case 'Z': /* of zones; ZA is the one that writes */
	case 'N':
		*ret = BLK_OTHER;
		return true;
	}
	return false;
}

static bool get_flag_letter(char c, enum blk_op *op, uint64_t *flags)
{
	if (c == 'F')
		*flags |= BLK_FLAG_FUA;
	else if (c == 'A')
		*flags |= BLK_FLAG_RAHEAD;
	else if (c == 'S')
		*flags |= BLK_FLAG_SYNC;
	else if (c == 'M')
		*flags |= BLK_FLAG_META;
	else if (c == 'E' && *op == BLK_DISCARD)
		*op = BLK_SECURE_ERASE;
	else if (c == 'Z' && *op == BLK_WRITE)
		*op = BLK_WRITE_ZEROES;
	else if (c != 'B' && c != 'U') /* the barrier of old kernels; an atomic write */
		return false;
	return true;
}

bool blk_get_rwbs(const char *text, size_t len, enum blk_op *ret_op, uint64_t *ret_flags)
{
	enum blk_op op = BLK_OTHER;
	uint64_t flags = 0;
	size_t i = 0;

	if (i < len && text[i] == 'F') {
		flags |= BLK_FLAG_FLUSH;
		i++;
	}
	if (len - i >= 2 && text[i] == 'Z') {
		*ret_op = text[i + 1] == 'A' ? BLK_ZONE_APPEND : BLK_OTHER;
		*ret_flags = flags;
		return true;
	}
	/* A flush that is nothing else may have no letter of its own, or others right behind. */
	if (i < len && get_op_letter(text[i], &op))
		i++;
	else if (!flags)
		return false;
	for (; i < len; i++) {
		if (!get_flag_letter(text[i], &op, &flags))
			return false;
	}
	if (op == BLK_OTHER && flags & BLK_FLAG_FLUSH) {
		op = BLK_FLUSH;
		flags &= ~(uint64_t)BLK_FLAG_FLUSH;
	}
	*ret_op = op;
	*ret_flags = flags;
	return true;
}
