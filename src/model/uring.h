/* SPDX-License-Identifier: MIT */
/*
 * How the fields of a request of io_uring are to be read: what they mean depends
 * on the opcode, which the kinds of the table cannot say.
 */
#ifndef MODEL_URING_H
#define MODEL_URING_H

#include "model/value.h"

/* As the kernel numbers them; the system's header may lack the newer ones. */
enum uring_op {
	URING_READV = 1,
	URING_WRITEV = 2,
	URING_FSYNC = 3,
	URING_READ_FIXED = 4,
	URING_WRITE_FIXED = 5,
	URING_SYNC_FILE_RANGE = 8,
	URING_ACCEPT = 13,
	URING_FALLOCATE = 17,
	URING_OPENAT = 18,
	URING_CLOSE = 19,
	URING_FILES_UPDATE = 20,
	URING_STATX = 21,
	URING_READ = 22,
	URING_WRITE = 23,
	URING_FADVISE = 24,
	URING_SEND = 26,
	URING_RECV = 27,
	URING_OPENAT2 = 28,
	URING_SPLICE = 30,
	URING_TEE = 33,
	URING_RENAMEAT = 35,
	URING_UNLINKAT = 36,
	URING_MKDIRAT = 37,
	URING_SYMLINKAT = 38,
	URING_LINKAT = 39,
	URING_FSETXATTR = 41,
	URING_SETXATTR = 42,
	URING_SOCKET = 45,
	URING_CMD = 46,
	URING_READ_MULTISHOT = 49,
	URING_FIXED_FD_INSTALL = 54,
	URING_FTRUNCATE = 55,
	URING_READV_FIXED = 60,
	URING_WRITEV_FIXED = 61,
};

/* In the field splice_fd_in: the kernel chooses the place, and the completion's res is its index. */
#define URING_INDEX_ALLOC UINT32_MAX

/* A field by its name, if it is there and a number; else 0. */
int64_t uring_sqe_int(const struct value *sqe, const char *name);
int64_t uring_cqe_int(const struct value *cqe, const char *name);

/* Whether the field fd is a descriptor, not an index of registered files or a number. */
bool uring_fd_counts(const struct value *sqe);
/* The field that holds a second descriptor (a directory, the source of a splice); NULL: none. */
struct value *uring_second_fd(const struct value *sqe);
/* Whether requests of the opcode, when they succeed, give a descriptor. */
bool uring_op_opens(int64_t opcode);
/* Where the request puts what it opens in the ring's own table: 1 + the index; 0: nowhere. */
uint32_t uring_file_index(const struct value *sqe);
/* The field res, if it is a new descriptor; else NULL. */
struct value *uring_new_fd(const struct value *cqe);
/*
 * Whether a completion had come before the call submitted others. Older traces
 * do not say: then a call that did not wait found what was there.
 */
bool uring_is_early(const struct value *cqe, int64_t min_complete, const struct value *sqes);
/* Whether the request changes or reads files in a way that a replay cannot perform. */
bool uring_is_unsupported(const struct value *sqe);

#endif
