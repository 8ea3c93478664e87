/* SPDX-License-Identifier: MIT */
/* Included only by the files that expand a .def file: its short names would get in the way elsewhere. */
#ifndef MODEL_WORDS_H
#define MODEL_WORDS_H

#include "model/row.h"

/*
 * The words of the .def files.
 *
 * A direction says when memory is read: IN before the call, OUT after it,
 * INOUT both times where fields say which. *_AFTER reads the target of an
 * earlier argument's pointer again, after the call, as an argument of its own.
 */
#define N(n) (LEN_CONST | (n)) /* a constant length */

#define ARGS(...)                                                                                  \
	{                                                                                          \
		__VA_ARGS__                                                                        \
	}

#define ARG_(nm, kd, ...)                                                                          \
	{                                                                                          \
		.name = #nm, .kind = KIND_##kd, ##__VA_ARGS__                                      \
	}

#define HOLE(nm) ARG_(nm, HOLE)
#define HOLE_OF(nm, st)                                                                            \
	ARG_(nm, HOLE, .set = SET_##st) /* printed by name: the variant's selector */
#define INT(nm) ARG_(nm, INT)
#define UINT(nm) ARG_(nm, UINT)
#define LONG(nm) ARG_(nm, LONG)
#define ULONG(nm) ARG_(nm, ULONG)
#define HEX(nm) ARG_(nm, HEX)
#define HEX32(nm) ARG_(nm, HEX, .width_bytes = 4)
#define SIZE(nm) ARG_(nm, SIZE)
#define OFF(nm) ARG_(nm, OFF)
#define ADDR(nm) ARG_(nm, ADDR)
#define FD(nm) ARG_(nm, FD)
#define DIRFD(nm) ARG_(nm, DIRFD)
#define MODE(nm) ARG_(nm, MODE)
#define DEV(nm) ARG_(nm, DEV)
#define DEV32(nm) ARG_(nm, DEV, .width_bytes = 4)
#define PID(nm) ARG_(nm, PID)
#define UID(nm) ARG_(nm, UID)
#define GID(nm) ARG_(nm, GID)
#define SIGNO(nm) ARG_(nm, SIGNO)
#define ERRNO(nm) ARG_(nm, ERRNO)
#define NSEC(nm) ARG_(nm, NSEC)
#define FLAGS(nm, st) ARG_(nm, FLAGS, .set = SET_##st)
#define FLAGS64(nm, st) ARG_(nm, FLAGS, .set = SET_##st, .width_bytes = 8)
#define ENUM(nm, st) ARG_(nm, ENUM, .set = SET_##st)
#define ENUM64(nm, st) ARG_(nm, ENUM, .set = SET_##st, .width_bytes = 8)
#define SIGMASK(nm) ARG_(nm, SIGMASK)

#define PATH(nm) ARG_(nm, PATH, .dir = ARG_IN)
#define PATH_NOFOLLOW(nm) ARG_(nm, PATH, .dir = ARG_IN, .look = LOOK_NOFOLLOW)
#define PATH_TEXT(nm) ARG_(nm, PATH, .dir = ARG_IN, .look = LOOK_TEXT)
#define STR(nm) ARG_(nm, STR, .dir = ARG_IN)
#define STRV(nm) ARG_(nm, STRV, .dir = ARG_IN, .elem = KIND_STR)
#define BUF_IN(nm, ln) ARG_(nm, BUF, .dir = ARG_IN, .len = (ln))
#define BUF_OUT(nm, ln) ARG_(nm, BUF, .dir = ARG_OUT, .len = (ln))
/* cp names the argument that holds the room: a result may say more than was written (MSG_TRUNC, xattrs). */
#define BUF_OUT_CAP(nm, ln, cp) ARG_(nm, BUF, .dir = ARG_OUT, .len = (ln), .cap = (cp))
#define BUF_INOUT(nm, ln) ARG_(nm, BUF, .dir = ARG_IN | ARG_OUT, .len = (ln))
#define HASH(nm) ARG_(nm, HASH)

#define PTR_IN(nm, kd, by)                                                                         \
	ARG_(nm, PTR, .dir = ARG_IN, .elem = KIND_##kd, .width_bytes = (by), .len = N(1))
#define PTR_OUT(nm, kd, by)                                                                        \
	ARG_(nm, PTR, .dir = ARG_OUT, .elem = KIND_##kd, .width_bytes = (by), .len = N(1))
#define PTR_AFTER(nm, kd, by, rg)                                                                  \
	ARG_(nm, PTR, .dir = ARG_OUT, .elem = KIND_##kd, .width_bytes = (by), .len = N(1),         \
	     .reg = (rg))
/* A pointer to a number that a vocabulary names. */
#define PTR_IN_OF(nm, kd, by, st)                                                                  \
	ARG_(nm, PTR, .dir = ARG_IN, .elem = KIND_##kd, .width_bytes = (by), .len = N(1),          \
	     .set = SET_##st)
#define PTR_OUT_OF(nm, kd, by, st)                                                                 \
	ARG_(nm, PTR, .dir = ARG_OUT, .elem = KIND_##kd, .width_bytes = (by), .len = N(1),         \
	     .set = SET_##st)
#define VEC_IN(nm, kd, by, ln)                                                                     \
	ARG_(nm, VEC, .dir = ARG_IN, .elem = KIND_##kd, .width_bytes = (by), .len = (ln))
#define VEC_OUT(nm, kd, by, ln)                                                                    \
	ARG_(nm, VEC, .dir = ARG_OUT, .elem = KIND_##kd, .width_bytes = (by), .len = (ln))
#define VEC_OUT_CAP(nm, kd, by, ln, cp)                                                            \
	ARG_(nm, VEC, .dir = ARG_OUT, .elem = KIND_##kd, .width_bytes = (by), .len = (ln),         \
	     .cap = (cp))
#define FDSET_IN(nm, ln) ARG_(nm, FDSET, .dir = ARG_IN, .elem = KIND_FD, .len = (ln))
#define FDSET_AFTER(nm, ln, rg)                                                                    \
	ARG_(nm, FDSET, .dir = ARG_OUT, .elem = KIND_FD, .len = (ln), .reg = (rg))

#define STRUCT_IN(nm, st) ARG_(nm, STRUCT, .dir = ARG_IN, .struct_id = STRUCT_##st)
#define STRUCT_OUT(nm, st) ARG_(nm, STRUCT, .dir = ARG_OUT, .struct_id = STRUCT_##st)
#define STRUCT_INOUT(nm, st) ARG_(nm, STRUCT, .dir = ARG_IN | ARG_OUT, .struct_id = STRUCT_##st)
#define STRUCT_AFTER(nm, st, rg)                                                                   \
	ARG_(nm, STRUCT, .dir = ARG_OUT, .struct_id = STRUCT_##st, .reg = (rg))
/* A struct whose size the caller states; fields beyond it are absent. */
#define STRUCT_SIZED(nm, st, ln)                                                                   \
	ARG_(nm, STRUCT, .dir = ARG_IN, .struct_id = STRUCT_##st, .len = (ln))
#define STRUCT_OUT_SIZED(nm, st, ln)                                                               \
	ARG_(nm, STRUCT, .dir = ARG_OUT, .struct_id = STRUCT_##st, .len = (ln))
#define ARRAY_IN(nm, st, ln) ARG_(nm, ARRAY, .dir = ARG_IN, .struct_id = STRUCT_##st, .len = (ln))
#define ARRAY_OUT(nm, st, ln) ARG_(nm, ARRAY, .dir = ARG_OUT, .struct_id = STRUCT_##st, .len = (ln))
#define ARRAY_INOUT(nm, st, ln)                                                                    \
	ARG_(nm, ARRAY, .dir = ARG_IN | ARG_OUT, .struct_id = STRUCT_##st, .len = (ln))
#define PTRS_IN(nm, st, ln) ARG_(nm, PTRS, .dir = ARG_IN, .struct_id = STRUCT_##st, .len = (ln))
#define SOCKADDR_IN(nm, ln)                                                                        \
	ARG_(nm, SOCKADDR, .dir = ARG_IN, .struct_id = STRUCT_sockaddr, .len = (ln))
/* ln names the argument that points to the length. */
#define SOCKADDR_OUT(nm, ln)                                                                       \
	ARG_(nm, SOCKADDR, .dir = ARG_OUT, .struct_id = STRUCT_sockaddr, .len = (ln))
#define SOCKADDR_OUT_CAP(nm, ln, cp)                                                               \
	ARG_(nm, SOCKADDR, .dir = ARG_OUT, .struct_id = STRUCT_sockaddr, .len = (ln), .cap = (cp))
#define DIRENTS(nm, st, ln) ARG_(nm, DIRENTS, .dir = ARG_OUT, .struct_id = STRUCT_##st, .len = (ln))

/*
 * For fields. What a field points to is read when the argument that holds the
 * struct is read; *_OUT fields of an INOUT struct are read after the call, its
 * other fields before it. *_HERE stand in the struct itself: LEN_NONE is then
 * the whole member.
 */
#define INT_OUT(nm) ARG_(nm, INT, .dir = ARG_OUT)
#define UINT_OUT(nm) ARG_(nm, UINT, .dir = ARG_OUT)
#define SIZE_OUT(nm) ARG_(nm, SIZE, .dir = ARG_OUT)
#define ULONG_OUT(nm) ARG_(nm, ULONG, .dir = ARG_OUT)
#define FLAGS_OUT(nm, st) ARG_(nm, FLAGS, .set = SET_##st, .dir = ARG_OUT)
#define STR_HERE(nm) ARG_(nm, STR, .here = true)
#define BUF_HERE(nm, ln) ARG_(nm, BUF, .len = (ln), .here = true)
#define VEC_HERE(nm, kd, by, ln)                                                                   \
	ARG_(nm, VEC, .elem = KIND_##kd, .width_bytes = (by), .len = (ln), .here = true)
#define STRUCT_HERE(nm, st) ARG_(nm, STRUCT, .struct_id = STRUCT_##st, .here = true)
#define STRUCT_HERE_OUT(nm, st)                                                                    \
	ARG_(nm, STRUCT, .struct_id = STRUCT_##st, .here = true, .dir = ARG_OUT)
#define ARRAY_HERE(nm, st, ln) ARG_(nm, ARRAY, .struct_id = STRUCT_##st, .len = (ln), .here = true)
#define ARRAY_HERE_OUT(nm, st, ln, cp)                                                             \
	ARG_(nm, ARRAY, .struct_id = STRUCT_##st, .len = (ln), .cap = (cp), .here = true,          \
	     .dir = ARG_OUT)

/* In no register: found by the recorder at entry or exit, or known to an importer. */
#define FOUND_FD(nm) ARG_(nm, FD, .reg = REG_NONE)
#define FOUND_STRUCT(nm, st) ARG_(nm, STRUCT, .struct_id = STRUCT_##st, .reg = REG_NONE)
#define FOUND_ARRAY(nm, st) ARG_(nm, ARRAY, .struct_id = STRUCT_##st, .reg = REG_NONE)
#define FOUND_SQES(nm) ARG_(nm, SQES, .struct_id = STRUCT_io_uring_sqe, .reg = REG_NONE)
#define FOUND_CQES(nm) ARG_(nm, CQES, .struct_id = STRUCT_io_uring_cqe, .reg = REG_NONE)

#endif
