/* SPDX-License-Identifier: MIT */
#include "model/event.h"

#include <linux/aio_abi.h>
#include <linux/io_uring.h>
#include <string.h>

#include "base/banned.h"
#include "model/blk.h"

struct value *args_find(const struct row *row, struct value *args, const char *name)
{
	unsigned int i;

	for (i = 0; i < row->nr_args; i++) {
		if (!strcmp(row->args[i].name, name))
			return &args[i];
	}
	return NULL;
}

static struct event_bytes count_block_request(const struct event *ev)
{
	struct event_bytes sum = { 0 };
	struct blk_request rq;
	uint64_t bytes;

	if (ev->outcome.err || ev->flags & EVENT_UNFINISHED ||
	    !blk_request_get(ev->row, ev->args, &rq))
		return sum;
	/* Many a format tells no outcome: then the request was done as it was made. */
	bytes = ev->outcome.ret > 0 ? (uint64_t)ev->outcome.ret : rq.length_bytes;
	if (blk_ops[rq.op].moves == BLK_MOVES_FROM)
		sum.read = bytes;
	else if (blk_ops[rq.op].moves == BLK_MOVES_TO)
		sum.written = bytes;
	return sum;
}

enum moves {
	MOVES_NOTHING = 0,
	MOVES_READ = 1,
	MOVES_WRITTEN = 2,
};

static unsigned int uring_moves(uint64_t opcode)
{
	switch (opcode) {
	case IORING_OP_READV:
	case IORING_OP_READ_FIXED:
	case IORING_OP_READ:
	case IORING_OP_RECVMSG:
	case IORING_OP_RECV:
		return MOVES_READ;
	case IORING_OP_WRITEV:
	case IORING_OP_WRITE_FIXED:
	case IORING_OP_WRITE:
	case IORING_OP_SENDMSG:
	case IORING_OP_SEND:
		return MOVES_WRITTEN;
	case IORING_OP_SPLICE:
	case IORING_OP_TEE:
		return MOVES_READ | MOVES_WRITTEN;
	}
	return MOVES_NOTHING;
}

static unsigned int aio_moves(uint64_t opcode)
{
	switch (opcode) {
	case IOCB_CMD_PREAD:
	case IOCB_CMD_PREADV:
		return MOVES_READ;
	case IOCB_CMD_PWRITE:
	case IOCB_CMD_PWRITEV:
		return MOVES_WRITTEN;
	}
	return MOVES_NOTHING;
}

static int find_field(const struct struct_desc *desc, const char *name)
{
	unsigned int i;

	for (i = 0; i < desc->nr_fields; i++) {
		if (!strcmp(desc->fields[i].name, name))
			return (int)i;
	}
	return -1;
}

static bool field_is_number(const struct value *v, int n, int64_t *ret)
{
	const struct value *field = n < 0 ? NULL : value_field(v, (unsigned int)n);

	if (!field || field->type != VALUE_INT)
		return false;
	*ret = field->i;
	return true;
}

static void count_completion(unsigned int moves, int64_t res, struct event_bytes *sum)
{
	if (res <= 0)
		return;
	if (moves & MOVES_READ)
		sum->read += (uint64_t)res;
	if (moves & MOVES_WRITTEN)
		sum->written += (uint64_t)res;
}

/*
 * A list of completions is a list of structs with the fields `res` and, where
 * the recorder could match it to its request, `opcode`.
 */
static void count_completions(const struct arg *a, const struct value *list,
			      unsigned int (*moves_of)(uint64_t), struct event_bytes *sum)
{
	const struct struct_desc *desc = &struct_descs[a->struct_id];
	int res_at = find_field(desc, "res"), opcode_at = find_field(desc, "opcode");
	int64_t res, opcode;
	uint32_t i;

	if (res_at < 0 || opcode_at < 0)
		return;
	for (i = 0; i < list->count; i++) {
		if (field_is_number(&list->items[i], res_at, &res) &&
		    field_is_number(&list->items[i], opcode_at, &opcode))
			count_completion(moves_of((uint64_t)opcode), res, sum);
	}
}

static struct event_bytes count_all_completions(const struct event *ev,
						unsigned int (*moves_of)(uint64_t))
{
	struct event_bytes sum = { 0 };
	unsigned int i;

	for (i = 0; i < ev->row->nr_args; i++) {
		const struct arg *a = &ev->row->args[i];

		if (ev->args[i].type == VALUE_LIST && a->struct_id)
			count_completions(a, &ev->args[i], moves_of, &sum);
	}
	return sum;
}

static struct event_bytes count_by_class(const struct event *ev)
{
	switch (row_class(ev->row)) {
	case C_BLOCK:
		return count_block_request(ev);
	case C_AIO:
		return count_all_completions(ev, aio_moves);
	case C_URING:
		return count_all_completions(ev, uring_moves);
	default:
		return (struct event_bytes){ 0 };
	}
}

struct event_bytes event_count_bytes(const struct event *ev)
{
	bool moved = ev->outcome.ret > 0 && !ev->outcome.err;
	uint64_t bytes = moved ? (uint64_t)ev->outcome.ret : 0;

	switch ((enum row_result)ev->row->result) {
	case RESULT_BYTES_READ:
		return (struct event_bytes){ .read = bytes };
	case RESULT_BYTES_WRITTEN:
		return (struct event_bytes){ .written = bytes };
	case RESULT_BYTES_COPIED:
		return (struct event_bytes){ .read = bytes, .written = bytes };
	default:
		return count_by_class(ev);
	}
}

void event_copy(const struct event *ev, struct arena *a, struct event *ret)
{
	*ret = *ev;
	for (unsigned int i = 0; i < ev->row->nr_args; i++)
		ret->args[i] = value_copy(a, &ev->args[i]);
}
