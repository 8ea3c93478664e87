/* SPDX-License-Identifier: MIT */
#include "replay/found.h"

#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/banned.h"
#include "model/fields.h"
#include "model/kernel_structs.h"
#include "plan/result.h"
#include "replay/inside.h"

/* A mismatch takes a part of what is left, so that later ones get some too; a little in any case. */
#define SHARE_OF_REST 16
#define SMALL_BYTES 4096
#define LISTING_BUF_BYTES 4096
#define ENTRY_HEAD_BYTES 2 /* type, is_own; the name and a zero follow */

/* Lanes. */

static uint8_t *take_room(struct run_result *res, uint64_t len, struct run_found *f)
{
	uint64_t used = atomic_load(&res->found_bytes), left, n;

	do {
		left = RUN_FOUND_ROOM - used;
		n = left / SHARE_OF_REST > SMALL_BYTES ? left / SHARE_OF_REST : SMALL_BYTES;
		n = n < left ? n : left;
		n = n < len ? n : len;
	} while (!atomic_compare_exchange_weak(&res->found_bytes, &used, used + n));
	f->at = used;
	f->kept_bytes = n;
	f->len_bytes = len;
	return res->found + used;
}

static void keep_bytes(struct lane *l, enum run_found_kind kind, const void *bytes, uint64_t len,
		       struct run_found *f)
{
	uint8_t *to = take_room(l->run->res, len, f);

	if (f->kept_bytes)
		memcpy(to, bytes, f->kept_bytes);
	f->kind = kind;
}

static void keep_vector(struct lane *l, const struct iovec *iov, uint64_t nr_iov, uint64_t len,
			struct run_found *f)
{
	uint8_t *to = take_room(l->run->res, len, f);
	uint64_t left = f->kept_bytes;

	for (; nr_iov && left; nr_iov--, iov++) {
		uint64_t n = iov->iov_len < left ? iov->iov_len : left;

		if (n)
			memcpy(to, iov->iov_base, n);
		to += n;
		left -= n;
	}
	f->kept_bytes -= left;
	f->kind = RUN_FOUND_BYTES;
}

/* Where the bytes are in the file, unless another lane has moved the offset meanwhile. */
static void keep_offset(const struct ready *a, const struct outcome *got, struct run_found *f)
{
	off_t now;

	if (a->row_id != SC_read && a->row_id != SC_readv)
		return;
	now = lseek((int)a->regs[0], 0, SEEK_CUR);
	f->has_offset = now >= got->ret;
	f->offset = (uint64_t)(now - got->ret);
}

static bool is_stranger(const struct lane *l, const char *name)
{
	unsigned int i;

	for (i = 0; i < RUN_STRANGERS; i++) {
		if (l->listing.has_stranger[i] && !strcmp(name, run_strangers[i]))
			return true;
	}
	return false;
}

/* Goes through the directory once. to: where entries go, NULL: they are only measured. */
static bool walk_directory(const struct lane *l, int fd, uint8_t *to, uint64_t *ret_len)
{
	_Alignas(8) uint8_t records[LISTING_BUF_BYTES];
	uint64_t room = *ret_len, len = 0;
	struct hash128 sum = { 0 };
	long got, at;

	while ((got = syscall(SYS_getdents64, fd, records, sizeof(records))) > 0) {
		result_add(&sum, result_hash_dirents64(records, (size_t)got));
		for (at = 0; at < got;) {
			const struct k_dirent64 *d = (const void *)(records + at);
			size_t name_len = strlen(d->d_name) + 1;

			if (to) {
				if (room - len < ENTRY_HEAD_BYTES + name_len)
					return false;
				to[len] = d->d_type;
				to[len + 1] = is_stranger(l, d->d_name);
				memcpy(to + len + ENTRY_HEAD_BYTES, d->d_name, name_len);
			}
			len += ENTRY_HEAD_BYTES + name_len;
			at += d->d_reclen;
		}
	}
	*ret_len = len;
	/* The others were told of the last call: they may have changed the directory since. */
	return !got && hash_equal(sum, l->listing.found);
}

/* Read again through a description of its own: the program's has its place in the listing. */
static void keep_listing(struct lane *l, int dir_fd, struct run_found *f)
{
	int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	uint64_t len = 0;
	uint8_t *to;

	f->recorded_low = l->listing.recorded.low;
	f->recorded_high = l->listing.recorded.high;
	f->first_seq = l->listing.first_seq;
	if (fd < 0)
		return;
	if (walk_directory(l, fd, NULL, &len) && lseek(fd, 0, SEEK_SET) == 0) {
		to = take_room(l->run->res, len, f);
		if (f->kept_bytes == len && walk_directory(l, fd, to, &len))
			f->kind = RUN_FOUND_LISTING;
	}
	(void)close(fd);
}

void found_keep(struct lane *l, const struct ready *a, const struct outcome *got,
		struct run_found *ret)
{
	uint64_t len = got->ret > 0 ? (uint64_t)got->ret : 0;

	*ret = (struct run_found){ 0 };
	switch (a->row_id) {
	case SC_stat:
	case SC_lstat:
	case SC_fstat:
	case SC_newfstatat:
		keep_bytes(l, RUN_FOUND_STAT, a->out, sizeof(struct k_stat), ret);
		break;
	case SC_statx:
		keep_bytes(l, RUN_FOUND_STATX, a->out, sizeof(struct k_statx), ret);
		break;
	case SC_getdents:
	case SC_getdents64:
		keep_listing(l, (int)a->regs[0], ret);
		break;
	case SC_readv:
	case SC_preadv:
	case SC_preadv2:
		keep_vector(l, (const struct iovec *)a->regs[1], a->regs[2], len, ret);
		keep_offset(a, got, ret);
		break;
	default:
		if (len <= a->out_bytes)
			keep_bytes(l, RUN_FOUND_BYTES, a->out, len, ret);
		keep_offset(a, got, ret);
	}
}

/* The caller. */

/* The argument that the call filled; nr_args: none. */
static unsigned int find_out(const struct row *row, unsigned int kind, uint16_t struct_id)
{
	unsigned int i;

	for (i = 0; i < row->nr_args; i++) {
		const struct arg *arg = &row->args[i];

		if (arg->dir == ARG_OUT &&
		    (struct_id ? arg->struct_id == struct_id : arg->kind == kind))
			break;
	}
	return i;
}

static uint64_t field_bit(uint16_t struct_id, const char *name)
{
	const struct struct_desc *desc = &struct_descs[struct_id];
	unsigned int i;

	for (i = 0; i < desc->nr_fields; i++) {
		if (!strcmp(desc->fields[i].name, name))
			return UINT64_C(1) << i;
	}
	return 0;
}

struct named_number {
	const char *name;
	uint64_t u;
};

/* Numbers whose names are NULL are left out. */
static struct value make_struct(struct arena *arena, uint16_t struct_id,
				const struct named_number *numbers, size_t nr)
{
	uint64_t present = 0;
	struct value v;
	size_t i;

	for (i = 0; i < nr; i++)
		present |= numbers[i].name ? field_bit(struct_id, numbers[i].name) : 0;
	v = value_struct(arena, present);
	for (i = 0; i < nr; i++) {
		uint64_t bit = numbers[i].name ? field_bit(struct_id, numbers[i].name) : 0;

		if (bit)
			*value_field(&v, (unsigned int)__builtin_ctzll(bit)) =
				value_uint(numbers[i].u);
	}
	return v;
}

/* Fields that plan/result.c compares: the size of files and symlinks, the number of devices. */

static bool has_size(uint64_t mode)
{
	return S_ISREG(mode) || S_ISLNK(mode);
}

static bool has_rdev(uint64_t mode)
{
	return S_ISCHR(mode) || S_ISBLK(mode);
}

static struct value put_stat(struct arena *arena, const uint8_t *bytes)
{
	struct k_stat st;

	memcpy(&st, bytes, sizeof(st));
	return make_struct(arena, STRUCT_stat,
			   (struct named_number[]){
				   { "st_mode", st.mode },
				   { has_size(st.mode) ? "st_size" : NULL, (uint64_t)st.size },
				   { has_rdev(st.mode) ? "st_rdev" : NULL, st.rdev } },
			   3);
}

static struct value put_statx(struct arena *arena, const uint8_t *bytes)
{
	struct k_statx st;
	bool dev;

	memcpy(&st, bytes, sizeof(st));
	dev = has_rdev(st.stx_mode);
	return make_struct(
		arena, STRUCT_statx,
		(struct named_number[]){ { "stx_mode", st.stx_mode },
					 { has_size(st.stx_mode) ? "stx_size" : NULL, st.stx_size },
					 { dev ? "stx_rdev_major" : NULL, st.stx_rdev_major },
					 { dev ? "stx_rdev_minor" : NULL, st.stx_rdev_minor } },
		4);
}

static struct value put_data(struct arena *arena, const uint8_t *bytes, uint64_t kept, uint64_t len)
{
	struct data *d = arena_alloc(arena, sizeof(*d));

	*d = (struct data){ .len_bytes = len, .kept_bytes = kept, .bytes = kept ? bytes : NULL };
	return (struct value){ .type = VALUE_DATA, .data = d };
}

/* Over the buffers of the original, as far as their lengths are known. */
static bool put_vector(struct arena *arena, const struct run_found *f, const uint8_t *bytes,
		       struct value *v)
{
	uint64_t done = 0;
	uint32_t i;
	struct value list;

	if (v->type != VALUE_LIST)
		return false;
	list = value_list(arena, v->count);
	for (i = 0; i < v->count; i++) {
		const struct value *room = value_field(&v->items[i], FIELD_OF(iovec, iov_len));
		uint64_t len, kept = f->kept_bytes > done ? f->kept_bytes - done : 0;

		if (!room || room->type != VALUE_INT)
			return false;
		len = f->len_bytes - done < room->u ? f->len_bytes - done : room->u;
		list.items[i] =
			value_struct(arena, FIELD_BIT(iovec, iov_base) | FIELD_BIT(iovec, iov_len));
		*value_field(&list.items[i], FIELD_OF(iovec, iov_base)) =
			put_data(arena, bytes + done, kept < len ? kept : len, len);
		*value_field(&list.items[i], FIELD_OF(iovec, iov_len)) = *room;
		done += len;
	}
	*v = list;
	return true;
}

bool found_put(const struct run_result *res, const struct run_found *f, struct event *ev,
	       struct arena *arena)
{
	const uint8_t *bytes = res->found + f->at;
	unsigned int buf = find_out(ev->row, KIND_BUF, 0);
	unsigned int vector = find_out(ev->row, 0, STRUCT_iovec);
	unsigned int stat = find_out(ev->row, 0, STRUCT_stat);
	unsigned int statx = find_out(ev->row, 0, STRUCT_statx);

	switch (f->kind) {
	case RUN_FOUND_BYTES:
		if (buf < ev->row->nr_args)
			ev->args[buf] = put_data(arena, bytes, f->kept_bytes, f->len_bytes);
		else
			return vector < ev->row->nr_args &&
			       put_vector(arena, f, bytes, &ev->args[vector]);
		return true;
	case RUN_FOUND_STAT:
		if (stat == ev->row->nr_args || f->kept_bytes < sizeof(struct k_stat))
			return false;
		ev->args[stat] = put_stat(arena, bytes);
		return true;
	case RUN_FOUND_STATX:
		if (statx == ev->row->nr_args || f->kept_bytes < sizeof(struct k_statx))
			return false;
		ev->args[statx] = put_statx(arena, bytes);
		return true;
	default:
		return false;
	}
}

bool found_has_listing(const struct run_found *f)
{
	return f->kind == RUN_FOUND_LISTING;
}

bool found_next_entry(const struct run_result *res, const struct run_found *f, uint64_t *pos,
		      struct found_entry *ret)
{
	const uint8_t *p = res->found + f->at + *pos;

	if (*pos >= f->kept_bytes)
		return false;
	*ret = (struct found_entry){ .type = p[0], .is_own = p[1] };
	ret->name = (const char *)p + ENTRY_HEAD_BYTES;
	ret->name_len = strlen(ret->name);
	*pos += ENTRY_HEAD_BYTES + ret->name_len + 1;
	return true;
}
