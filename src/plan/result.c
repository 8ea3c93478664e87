/* SPDX-License-Identifier: MIT */
#include "plan/result.h"

#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "base/banned.h"
#include "base/varint.h"
#include "model/fields.h"
#include "model/kernel_structs.h"

#define HASH_BYTES 16

/* Pieces of data, one after the other: no memory is needed, so that a lane may do it. */
struct pieces {
	struct hash128 hash; /* of all so far */
	bool any;
};

static void put_hash(uint8_t *p, struct hash128 hash)
{
	put_le64(p, hash.low);
	put_le64(p + 8, hash.high);
}

static void add_piece(struct pieces *s, struct hash128 hash)
{
	uint8_t both[2 * HASH_BYTES];

	if (s->any) {
		put_hash(both, s->hash);
		put_hash(both + HASH_BYTES, hash);
		hash = hash_bytes(both, sizeof(both));
	}
	s->hash = hash;
	s->any = true;
}

static void add_bytes(struct pieces *s, const uint8_t *bytes, uint64_t len)
{
	while (len) {
		uint64_t n = len < BLOB_MAX_BYTES ? len : BLOB_MAX_BYTES;

		add_piece(s, hash_bytes(bytes, n));
		bytes += n;
		len -= n;
	}
}

static void add_data(struct pieces *s, const struct data *d)
{
	uint64_t i, nr = d->refs ? data_nr_pieces(d) : 0;

	if (d->bytes)
		add_bytes(s, d->bytes, d->kept_bytes);
	else
		for (i = 0; i < nr; i++)
			add_piece(s, d->refs[i].hash);
}

static struct hash128 finish(const struct pieces *s)
{
	return s->any ? s->hash : hash_bytes(NULL, 0);
}

struct hash128 result_hash_data(const void *bytes, uint64_t len)
{
	struct pieces s = { 0 };

	add_bytes(&s, bytes, len);
	return finish(&s);
}

struct hash128 result_hash_vec(const struct iovec *iov, uint64_t nr_iov, uint64_t len)
{
	struct pieces s = { 0 };

	for (; nr_iov && len; nr_iov--, iov++) {
		uint64_t n = iov->iov_len < len ? iov->iov_len : len;

		add_bytes(&s, iov->iov_base, n);
		len -= n;
	}
	return finish(&s);
}

/* Attributes. */

struct attributes {
	uint64_t mode, size, rdev;
};

static struct hash128 hash_attributes(const struct attributes *a)
{
	mode_t mode = (mode_t)a->mode;
	uint8_t bytes[24];

	put_le64(bytes, a->mode & (S_IFMT | 07777));
	put_le64(bytes + 8, S_ISREG(mode) || S_ISLNK(mode) ? a->size : 0);
	put_le64(bytes + 16, S_ISCHR(mode) || S_ISBLK(mode) ? a->rdev : 0);
	return hash_bytes(bytes, sizeof(bytes));
}

struct hash128 result_hash_stat(const struct stat *st)
{
	const struct attributes a = { .mode = st->st_mode,
				      .size = (uint64_t)st->st_size,
				      .rdev = st->st_rdev };

	return hash_attributes(&a);
}

#define STATX_WANTED (STATX_TYPE | STATX_MODE | STATX_SIZE)

bool result_hash_statx(const struct statx *stx, struct hash128 *ret)
{
	const struct attributes a = { .mode = stx->stx_mode,
				      .size = stx->stx_size,
				      .rdev = makedev(stx->stx_rdev_major, stx->stx_rdev_minor) };

	if ((stx->stx_mask & STATX_WANTED) != STATX_WANTED)
		return false;
	*ret = hash_attributes(&a);
	return true;
}

/* Listings. */

/* A device that a run does not make is an empty file there, and listed as one. */
static struct hash128 hash_entry(struct hash128 name, uint64_t type)
{
	uint8_t bytes[HASH_BYTES + 8];

	if (type == DT_CHR || type == DT_BLK)
		type = DT_REG;
	put_hash(bytes, name);
	put_le64(bytes + HASH_BYTES, type);
	return hash_bytes(bytes, sizeof(bytes));
}

/* `old`: without a field for the type, which is the record's last byte. */
/* The next record: its name and hash, and what follows it. False at the end, or where none can be. */
static bool next_dirent(const uint8_t **p, size_t *len, bool old, const char **ret_name,
			size_t *ret_name_len, unsigned int *ret_type)
{
	size_t head = old ? offsetof(struct k_dirent, d_name) : offsetof(struct k_dirent64, d_name);
	uint16_t reclen;

	if (*len <= head)
		return false;
	memcpy(&reclen, *p + offsetof(struct k_dirent64, d_reclen), sizeof(reclen));
	if (reclen <= head || reclen > *len)
		return false;
	*ret_name = (const char *)*p + head;
	*ret_name_len = strnlen(*ret_name, reclen - head);
	*ret_type = old ? (*p)[reclen - 1] : (*p)[offsetof(struct k_dirent64, d_type)];
	*p += reclen;
	*len -= reclen;
	return true;
}

static struct hash128 hash_dirents(const uint8_t *p, size_t len, bool old)
{
	struct hash128 sum = { 0 };
	unsigned int type;
	const char *name;
	size_t name_len;

	while (next_dirent(&p, &len, old, &name, &name_len, &type))
		result_add(&sum, hash_entry(result_hash_data(name, name_len), type));
	return sum;
}

bool result_find_dirent(const void *records, size_t len, bool old, const char *wanted,
			struct hash128 *ret)
{
	const uint8_t *p = records;
	unsigned int type;
	const char *name;
	size_t name_len;

	while (next_dirent(&p, &len, old, &name, &name_len, &type)) {
		if (name_len == strlen(wanted) && !memcmp(name, wanted, name_len)) {
			*ret = hash_entry(result_hash_data(name, name_len), type);
			return true;
		}
	}
	return false;
}

_Static_assert(offsetof(struct k_dirent, d_reclen) == offsetof(struct k_dirent64, d_reclen),
	       "both kinds of records are walked alike");

struct hash128 result_hash_dirents64(const void *records, size_t len)
{
	return hash_dirents(records, len, false);
}

struct hash128 result_hash_dirents(const void *records, size_t len)
{
	return hash_dirents(records, len, true);
}

struct hash128 result_hash_names(const void *names, size_t len)
{
	const char *p = names;
	struct hash128 sum = { 0 };

	while (len) {
		size_t n = strnlen(p, len);

		result_add(&sum, result_hash_data(p, n));
		n += n < len;
		p += n;
		len -= n;
	}
	return sum;
}

/* Locks. */

static struct hash128 hash_lock(uint64_t type, uint64_t start, uint64_t len)
{
	uint8_t bytes[24];

	put_le64(bytes, type);
	put_le64(bytes + 8, type == F_UNLCK ? 0 : start);
	put_le64(bytes + 16, type == F_UNLCK ? 0 : len);
	return hash_bytes(bytes, sizeof(bytes));
}

struct hash128 result_hash_lock(const struct k_flock *lock)
{
	return hash_lock((uint16_t)lock->l_type, (uint64_t)lock->l_start, (uint64_t)lock->l_len);
}

struct hash128 result_hash_no_lock(void)
{
	return hash_lock(F_UNLCK, 0, 0);
}

/* No lock ends before it begins. */
struct hash128 result_hash_some_lock(void)
{
	return hash_lock(F_RDLCK, 0, UINT64_MAX);
}

/* Values. */

static const struct value *find_field(uint16_t struct_id, const struct value *v, const char *name)
{
	const struct struct_desc *desc = &struct_descs[struct_id];
	unsigned int i;

	for (i = 0; i < desc->nr_fields; i++) {
		if (!strcmp(desc->fields[i].name, name))
			return value_field(v, i);
	}
	return NULL;
}

static bool get_number(uint16_t struct_id, const struct value *v, const char *name, uint64_t *ret)
{
	const struct value *field = find_field(struct_id, v, name);

	if (!field || field->type != VALUE_INT)
		return false;
	*ret = field->u;
	return true;
}

/* Whether all of it is known, at least by its hashes. */
static bool is_whole(const struct value *v)
{
	return v->type == VALUE_DATA && v->data->kept_bytes == v->data->len_bytes;
}

bool result_hash_value(const struct value *v, uint64_t len, struct hash128 *ret)
{
	struct pieces s = { 0 };

	if (!is_whole(v) || v->data->len_bytes != len)
		return false;
	add_data(&s, v->data);
	*ret = finish(&s);
	return true;
}

/* What a vector read: the bytes behind its items, as many as the call returned. */
static bool hash_vector(const struct value *v, uint64_t len, struct hash128 *ret)
{
	struct pieces s = { 0 };
	uint64_t done = 0;
	uint32_t i;

	for (i = 0; v->type == VALUE_LIST && i < v->count && done < len; i++) {
		const struct value *base = value_field(&v->items[i], FIELD_OF(iovec, iov_base));

		if (!base || !is_whole(base))
			break;
		add_data(&s, base->data);
		done += base->data->len_bytes;
	}
	*ret = finish(&s);
	return done == len;
}

static bool hash_stat_value(const struct value *v, struct hash128 *ret)
{
	struct attributes a;

	if (!get_number(STRUCT_stat, v, "st_mode", &a.mode) ||
	    !get_number(STRUCT_stat, v, "st_size", &a.size) ||
	    !get_number(STRUCT_stat, v, "st_rdev", &a.rdev))
		return false;
	*ret = hash_attributes(&a);
	return true;
}

static bool hash_statx_value(const struct value *v, struct hash128 *ret)
{
	struct attributes a;
	uint64_t mask, major, minor;

	if (!get_number(STRUCT_statx, v, "stx_mask", &mask) ||
	    (mask & STATX_WANTED) != STATX_WANTED ||
	    !get_number(STRUCT_statx, v, "stx_mode", &a.mode) ||
	    !get_number(STRUCT_statx, v, "stx_size", &a.size) ||
	    !get_number(STRUCT_statx, v, "stx_rdev_major", &major) ||
	    !get_number(STRUCT_statx, v, "stx_rdev_minor", &minor))
		return false;
	a.rdev = makedev((unsigned int)major, (unsigned int)minor);
	*ret = hash_attributes(&a);
	return true;
}

static bool hash_dirents_value(uint16_t struct_id, const struct value *v, struct hash128 *ret)
{
	struct hash128 sum = { 0 };
	uint32_t i;

	if (v->type != VALUE_LIST)
		return false;
	for (i = 0; i < v->count; i++) {
		const struct value *entry = &v->items[i];
		const struct value *name = find_field(struct_id, entry, "d_name");
		struct hash128 hash;
		uint64_t type;

		if (!name || !is_whole(name) || !get_number(struct_id, entry, "d_type", &type) ||
		    !result_hash_value(name, name->data->len_bytes, &hash))
			return false;
		result_add(&sum, hash_entry(hash, type));
	}
	*ret = sum;
	return true;
}

static bool hash_names_value(const struct value *v, uint64_t len, struct hash128 *ret)
{
	if (!is_whole(v) || v->data->len_bytes != len || !v->data->bytes)
		return false;
	*ret = result_hash_names(v->data->bytes, v->data->kept_bytes);
	return true;
}

/* The buffer that the call filled, also as a field of a struct; NULL: there is none. */
static const struct value *find_out_buf(const struct row *row, const struct value *args)
{
	unsigned int i, n;

	for (i = 0; i < row->nr_args; i++) {
		const struct arg *arg = &row->args[i];
		const struct struct_desc *desc = &struct_descs[arg->struct_id];

		if (arg->kind == KIND_BUF && arg->dir == ARG_OUT)
			return &args[i];
		for (n = 0; arg->kind == KIND_STRUCT && n < desc->nr_fields; n++) {
			if (desc->fields[n].kind == KIND_BUF && desc->fields[n].dir == ARG_OUT)
				return value_field(&args[i], n);
		}
	}
	return NULL;
}

/* The struct or list that the call filled; NULL: none. */
static const struct value *find_out(const struct row *row, const struct value *args,
				    uint16_t *ret_struct_id)
{
	unsigned int i;

	for (i = 0; i < row->nr_args; i++) {
		if (row->args[i].dir != ARG_OUT || !row->args[i].struct_id)
			continue;
		*ret_struct_id = row->args[i].struct_id;
		return &args[i];
	}
	return NULL;
}

static bool hash_read(const struct row *row, uint64_t len, const struct value *args,
		      struct hash128 *ret)
{
	const struct value *buf = find_out_buf(row, args);
	uint16_t struct_id;

	/* A null pointer is fine where nothing was read. */
	if (!len) {
		*ret = result_hash_data(NULL, 0);
		return true;
	}
	if (buf)
		return result_hash_value(buf, len, ret);
	buf = find_out(row, args, &struct_id);
	return buf && struct_id == STRUCT_iovec && hash_vector(buf, len, ret);
}

static bool hash_lock_value(const struct value *v, struct hash128 *ret)
{
	uint64_t type, start, len;

	if (!get_number(STRUCT_flock, v, "l_type", &type) ||
	    !get_number(STRUCT_flock, v, "l_start", &start) ||
	    !get_number(STRUCT_flock, v, "l_len", &len))
		return false;
	*ret = hash_lock(type, start, len);
	return true;
}

static bool hash_out_struct(const struct row *row, const struct value *args, struct hash128 *ret)
{
	uint16_t struct_id;
	const struct value *v = find_out(row, args, &struct_id);

	if (!v)
		return false;
	switch (struct_id) {
	case STRUCT_stat:
		return hash_stat_value(v, ret);
	case STRUCT_statx:
		return hash_statx_value(v, ret);
	case STRUCT_dirent64:
	case STRUCT_dirent_old:
		return hash_dirents_value(struct_id, v, ret);
	case STRUCT_flock:
		return hash_lock_value(v, ret);
	}
	return false;
}

bool result_hash(const struct row *row, const struct outcome *outcome, const struct value *args,
		 struct hash128 *ret)
{
	const struct value *buf;
	uint64_t len = (uint64_t)outcome->ret;

	if (outcome->err || outcome->ret < 0)
		return false;
	switch ((int)row_class(row)) {
	case C_DATA:
		return row->result == RESULT_BYTES_READ && hash_read(row, len, args, ret);
	case C_META:
	case C_DIR:
	case C_LOCK:
		return hash_out_struct(row, args, ret);
	case C_NAME: /* readlink */
	case C_XATTR:
		buf = find_out_buf(row, args);
		if (!buf)
			return false;
		return row_lists_xattrs(row) ? hash_names_value(buf, len, ret)
					     : result_hash_value(buf, len, ret);
	}
	return false;
}
