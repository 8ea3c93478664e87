/* SPDX-License-Identifier: MIT */
/*
 * Structs, as their descriptions say, and lists of them.
 *
 * A struct that a call both reads and writes is captured twice: before the
 * call without its OUT fields, after it by adding these to what is there. In
 * between it is whole, so that a call which never returns can be written as
 * it is.
 */
#include "record/capture_inside.h"

#include <arpa/inet.h>
#include <linux/aio_abi.h>
#include <net/if.h>
#include <netinet/in.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "base/banned.h"
#include "model/fields.h"
#include "model/kernel_structs.h"

/* The bytes of a struct that were read. */
struct view {
	const struct struct_desc *desc;
	const struct field_place *places;
	const uint8_t *bytes;
	size_t len;
	uint64_t addr;
	uint8_t flags, arg_no; /* of the target that it is a part of */
	uint64_t moved_bytes; /* for the vectors below; counts down */
};

static struct value struct_value(struct capture_job *j, struct view *v, const struct value *old,
				 uint64_t extra);

/* Of a struct whose bytes are here; those that only newer calls have are the same for all. */
static struct capture_layout layout_of(const struct capture_job *j, unsigned int id)
{
	struct capture_layout layout = capture_layout(j->c, id);

	if (!layout.places)
		layout = (struct capture_layout){ struct_descs[id].size_bytes,
						  struct_descs[id].places() };
	return layout;
}

static unsigned int id_of(const struct view *v)
{
	return (unsigned int)(v->desc - struct_descs);
}

static bool has_field(const struct view *v, unsigned int n)
{
	const struct field_place *p = &v->places[n];

	return p->offset_bytes != OFFSET_NONE && (size_t)p->offset_bytes + p->width_bytes <= v->len;
}

/* Names of small numbers (opcodes, types) are for unsigned ones: 250 is not -6. */
static bool is_narrow_enum(const struct view *v, unsigned int n)
{
	return v->desc->fields[n].kind == KIND_ENUM && v->places[n].width_bytes < 4;
}

static uint64_t field_number(const struct view *v, unsigned int n)
{
	const struct field_place *p = &v->places[n];

	if (n >= v->desc->nr_fields || !has_field(v, n))
		return 0;
	return capture_number(v->bytes + p->offset_bytes, p->width_bytes,
			      capture_is_signed(&v->desc->fields[n]) && !is_narrow_enum(v, n));
}

/* A number that is used as a length. */
static uint64_t field_count(const struct view *v, unsigned int n)
{
	uint64_t u = field_number(v, n);

	if (n < v->desc->nr_fields && capture_is_signed(&v->desc->fields[n]) && (int64_t)u < 0)
		return 0;
	return u;
}

static uint64_t len_by_code(const struct capture_job *j, const struct view *v, unsigned int code)
{
	if (code >= A0 && code <= A11)
		return field_count(v, code - A0);
	return capture_len(j, code);
}

/*
 * Without a length of its own: as the argument behind the struct says, or, of
 * what the call has written, its result.
 */
static uint64_t len_outside(const struct capture_job *j, const struct view *v)
{
	if (!j->row)
		return 0;
	if (v->flags & CAPTURE_AFTER)
		return capture_len(j, RET);
	return capture_arg_number(j, v->arg_no + 1u);
}

static uint64_t field_len(const struct capture_job *j, const struct view *v, unsigned int n)
{
	const struct arg *f = &v->desc->fields[n];
	uint64_t len = f->len ? len_by_code(j, v, f->len) : 0, cap;

	if (!f->len && (f->kind == KIND_BUF || f->kind == KIND_VEC))
		len = len_outside(j, v);
	if (!f->len && f->struct_id == STRUCT_cmsghdr)
		len = field_count(v, n + 1);
	if (f->cap) {
		cap = len_by_code(j, v, f->cap);
		len = len < cap ? len : cap;
	}
	return len;
}

/* Of a vector that was read into: what it got of the bytes that were moved. */
static uint64_t vector_share(struct view *v)
{
	uint64_t len = field_count(v, FIELD_OF(iovec, iov_len));

	if (len > v->moved_bytes)
		len = v->moved_bytes;
	v->moved_bytes -= len;
	return len;
}

/* A field that is OUT as a whole has no parts that were captured before. */
static uint8_t flags_below(const struct view *v, const struct arg *f)
{
	if (f->here && f->dir != ARG_OUT)
		return v->flags;
	return v->flags & (uint8_t) ~(CAPTURE_MERGE | CAPTURE_NOT_OUT);
}

/* What a field points to, or what stands behind the struct. */
static void push_field(struct capture_job *j, struct view *v, unsigned int n, struct value *dest)
{
	const struct arg *f = &v->desc->fields[n];
	struct capture_target t = {
		.a = f,
		.dest = dest,
		.moved_bytes = v->moved_bytes,
		.flags = flags_below(v, f),
		.arg_no = v->arg_no,
	};

	if (f->here) {
		t.addr = v->addr + v->places[n].offset_bytes;
		t.flags |= CAPTURE_KEEP;
	} else {
		t.addr = field_number(v, n);
	}
	if (id_of(v) == STRUCT_iovec) {
		if (v->flags & CAPTURE_NO_DATA) {
			*dest = value_addr(t.addr);
			return;
		}
		t.len = v->flags & CAPTURE_AFTER ? vector_share(v)
						 : field_count(v, FIELD_OF(iovec, iov_len));
	} else {
		t.len = field_len(j, v, n);
	}
	capture_push(j, &t);
}

static struct value here_string(struct capture_job *j, const uint8_t *p, size_t room)
{
	size_t len = strnlen((const char *)p, room);

	return value_bytes(j->c->arena, arena_memdup0(j->c->arena, p, len), len);
}

static struct value here_vec(struct capture_job *j, const struct view *v, unsigned int n)
{
	const struct arg *f = &v->desc->fields[n];
	const uint8_t *p = v->bytes + v->places[n].offset_bytes;
	unsigned int width = f->width_bytes ? f->width_bytes : kind_infos[f->elem].width_bytes;
	uint64_t i, nr = v->places[n].width_bytes / width;
	bool is_signed = kind_infos[f->elem].wire == 'i';
	struct value list;

	if (f->len && len_by_code(j, v, f->len) < nr)
		nr = len_by_code(j, v, f->len);
	list = value_list(j->c->arena, (uint32_t)nr);
	for (i = 0; i < nr; i++)
		list.items[i] = value_uint(capture_number(p + i * width, width, is_signed));
	return list;
}

static struct value here_bytes(struct capture_job *j, const struct view *v, unsigned int n)
{
	const struct arg *f = &v->desc->fields[n];
	size_t len = v->places[n].width_bytes;

	if (f->len && len_by_code(j, v, f->len) < len)
		len = (size_t)len_by_code(j, v, f->len);
	return value_bytes(j->c->arena,
			   arena_memdup0(j->c->arena, v->bytes + v->places[n].offset_bytes, len),
			   len);
}

/* A struct within a struct. */
static struct value here_struct(struct capture_job *j, const struct view *v, unsigned int n,
				const struct value *old)
{
	const struct struct_desc *desc = &struct_descs[v->desc->fields[n].struct_id];
	struct capture_layout layout = layout_of(j, v->desc->fields[n].struct_id);
	size_t offset = v->places[n].offset_bytes;
	struct view inner = {
		.desc = desc,
		.places = layout.places,
		.bytes = v->bytes + offset,
		.len = v->len - offset < layout.size_bytes ? v->len - offset : layout.size_bytes,
		.addr = v->addr + offset,
		.flags = flags_below(v, &v->desc->fields[n]),
		.arg_no = v->arg_no,
		.moved_bytes = v->moved_bytes,
	};

	if (id_of(v) == STRUCT_mmsghdr && v->flags & CAPTURE_AFTER)
		inner.moved_bytes = field_count(v, FIELD_OF(mmsghdr, msg_len));
	return struct_value(j, &inner, old, 0);
}

static bool is_tail(const struct view *v, unsigned int n)
{
	return v->desc->fields[n].here &&
	       (!v->places[n].width_bytes || v->desc->fields[n].kind == KIND_ARRAY);
}

static void fill_field(struct capture_job *j, struct view *v, unsigned int n,
		       const struct value *old, struct value *dest)
{
	const struct arg *f = &v->desc->fields[n];

	*dest = old ? *old : (struct value){ .type = VALUE_NONE };
	if (capture_is_scalar(f)) {
		*dest = value_uint(field_number(v, n));
		return;
	}
	if (!f->here || is_tail(v, n)) {
		push_field(j, v, n, dest);
		return;
	}
	switch ((enum kind)f->kind) {
	case KIND_STR:
		*dest = here_string(j, v->bytes + v->places[n].offset_bytes,
				    v->places[n].width_bytes);
		break;
	case KIND_VEC:
		*dest = here_vec(j, v, n);
		break;
	case KIND_STRUCT:
		*dest = here_struct(j, v, n, old);
		break;
	default:
		*dest = here_bytes(j, v, n);
	}
}

/* Fields that are at no fixed place. */

static uint64_t iocb_extras(const struct view *v)
{
	uint64_t present = FIELD_BIT(iocb, obj);
	uint16_t opcode;

	if (v->len < sizeof(struct k_iocb))
		return present;
	memcpy(&opcode, v->bytes + offsetof(struct k_iocb, aio_lio_opcode), sizeof(opcode));
	if (opcode == IOCB_CMD_PWRITE)
		present |= FIELD_BIT(iocb, buf);
	else if (opcode == IOCB_CMD_PREADV || opcode == IOCB_CMD_PWRITEV)
		present |= FIELD_BIT(iocb, iov);
	return present;
}

static void fill_iocb_extra(struct capture_job *j, struct view *v, unsigned int n,
			    struct value *dest)
{
	struct capture_target t = {
		.a = &v->desc->fields[n],
		.dest = dest,
		.flags = v->flags,
		.arg_no = v->arg_no,
	};
	struct k_iocb cb;

	if (n == FIELD_OF(iocb, obj)) {
		*dest = value_uint(v->addr);
		return;
	}
	memcpy(&cb, v->bytes, sizeof(cb));
	t.addr = cb.aio_buf;
	t.len = cb.aio_nbytes;
	if (cb.aio_lio_opcode == IOCB_CMD_PREADV)
		t.flags |= CAPTURE_NO_DATA;
	capture_push(j, &t);
}

/* Of the fields behind si_code those that the signal's source has set. */
static uint64_t siginfo_fields(const struct capture_job *j, const struct view *v)
{
	uint64_t sender = FIELD_BIT(siginfo, si_pid) | FIELD_BIT(siginfo, si_uid);
	uint64_t present = FIELD_BIT(siginfo, si_signo) | FIELD_BIT(siginfo, si_code) |
			   FIELD_BIT(siginfo, si_errno);
	int64_t signo = (int64_t)field_number(v, FIELD_OF(siginfo, si_signo));
	int64_t code = (int64_t)field_number(v, FIELD_OF(siginfo, si_code));

	if (code == SI_TIMER)
		return present | FIELD_BIT(siginfo, si_value);
	if (code == SI_USER || code == SI_TKILL)
		return present | sender;
	if (code < 0)
		return present | sender | FIELD_BIT(siginfo, si_value);
	switch (signo) {
	case SIGCHLD:
		present |= sender | FIELD_BIT(siginfo, si_status);
		/* waitid leaves them as they were. */
		if (!j->row || row_class(j->row) != C_WAIT)
			present |= FIELD_BIT(siginfo, si_utime) | FIELD_BIT(siginfo, si_stime);
		break;
	case SIGILL:
	case SIGFPE:
	case SIGSEGV:
	case SIGBUS:
	case SIGTRAP:
		present |= FIELD_BIT(siginfo, si_addr);
		break;
	case SIGIO:
		present |= FIELD_BIT(siginfo, si_band) | FIELD_BIT(siginfo, si_fd);
		break;
	}
	return present;
}

/* Whether the field gets its value in this pass over the struct. */
static bool wants_field(const struct view *v, unsigned int n)
{
	const struct arg *f = &v->desc->fields[n];

	if (!has_field(v, n))
		return false;
	if (v->flags & CAPTURE_MERGE)
		return f->dir == ARG_OUT || (f->here && f->struct_id);
	if (v->flags & CAPTURE_NOT_OUT)
		return f->dir != ARG_OUT;
	return true;
}

static uint64_t wanted_fields(const struct capture_job *j, const struct view *v)
{
	uint64_t wanted = 0;
	unsigned int n;

	for (n = 0; n < v->desc->nr_fields; n++) {
		if (wants_field(v, n))
			wanted |= (UINT64_C(1) << n);
	}
	if (id_of(v) == STRUCT_iocb)
		wanted |= iocb_extras(v);
	else if (id_of(v) == STRUCT_siginfo)
		wanted &= siginfo_fields(j, v);
	return wanted;
}

/* extra: left to the caller, as VALUE_NONE. */
static struct value struct_value(struct capture_job *j, struct view *v, const struct value *old,
				 uint64_t extra)
{
	uint64_t wanted = wanted_fields(j, v) & ~extra, left;
	bool merge = old && old->type == VALUE_STRUCT;
	struct value new =
		value_struct(j->c->arena, wanted | extra | (merge ? old->fields->present : 0));
	struct value *dest = new.fields->items;

	for (left = new.fields->present; left; left &= left - 1, dest++) {
		unsigned int n = (unsigned int)__builtin_ctzll(left);
		const struct value *was = merge ? value_field(old, n) : NULL;

		if (!(wanted >> n & 1))
			*dest = was ? *was : (struct value){ .type = VALUE_NONE };
		else if (v->places[n].offset_bytes == OFFSET_NONE)
			fill_iocb_extra(j, v, n, dest);
		else
			fill_field(j, v, n, was, dest);
	}
	return new;
}

struct value capture_struct_from(struct capture_job *j, const struct capture_target *t,
				 const uint8_t *bytes, size_t len, uint64_t extra)
{
	const struct struct_desc *desc = &struct_descs[t->a->struct_id];
	struct view v = {
		.desc = desc,
		.places = layout_of(j, t->a->struct_id).places,
		.bytes = bytes,
		.len = len,
		.addr = t->addr,
		.flags = t->flags,
		.arg_no = t->arg_no,
		.moved_bytes = t->moved_bytes,
	};

	return struct_value(j, &v, t->flags & CAPTURE_MERGE ? t->dest : NULL, extra);
}

void capture_finish_struct(struct capture_job *j, struct capture_target *t)
{
	if (!t->got && t->want)
		return;
	/* Not even known before the call: it stays an address. */
	if (t->flags & CAPTURE_MERGE && t->dest->type != VALUE_STRUCT)
		return;
	*t->dest = capture_struct_from(j, t, t->local, t->got, 0);
}

/* Lists of structs. */

static void array_item(struct capture_job *j, struct capture_target *t, const struct value *list,
		       size_t i)
{
	const struct struct_desc *desc = &struct_descs[t->a->struct_id];
	struct capture_layout layout = layout_of(j, t->a->struct_id);
	struct view v = {
		.desc = desc,
		.places = layout.places,
		.bytes = t->local + i * layout.size_bytes,
		.len = layout.size_bytes,
		.addr = t->addr + i * layout.size_bytes,
		.flags = t->flags,
		.arg_no = t->arg_no,
		.moved_bytes = t->moved_bytes,
	};
	struct value *dest = &list->items[t->done + i];

	*dest = struct_value(j, &v, t->flags & CAPTURE_MERGE ? dest : NULL, 0);
	/* Vectors share what was moved, in their order. */
	if (t->a->struct_id == STRUCT_iovec)
		t->moved_bytes = v.moved_bytes;
}

/* A list that takes several turns is as long as it is to be from the first on. */
void capture_finish_array(struct capture_job *j, struct capture_target *t)
{
	size_t size = layout_of(j, t->a->struct_id).size_bytes, i, nr = t->got / size;
	bool merge = t->flags & CAPTURE_MERGE;
	bool ends = nr * size < t->want || t->done + nr == t->len;

	if (merge && (t->dest->type != VALUE_LIST || t->dest->count < t->done + nr))
		return;
	if (!merge)
		j->c->truncated_bytes += ends ? (t->len - t->done - nr) * size : 0;
	if (!merge && !t->done) {
		if (!nr)
			return;
		*t->dest = value_list(j->c->arena, (uint32_t)(ends ? nr : t->len));
	}
	for (i = 0; i < nr; i++)
		array_item(j, t, t->dest, i);
	t->done += nr;
	if (ends) {
		if (!merge)
			t->dest->count = (uint32_t)t->done;
		return;
	}
	t->addr += nr * size;
	t->want = (size_t)(t->len - t->done) * size;
	capture_again(j, t);
}

void capture_finish_ptrs(struct capture_job *j, struct capture_target *t)
{
	uint32_t i, nr = (uint32_t)(t->got / sizeof(uint64_t));
	struct capture_target item = *t;
	struct arg *a;

	j->c->truncated_bytes += (t->len - nr) * sizeof(uint64_t);
	if (!nr)
		return;
	a = arena_alloc(j->c->arena, sizeof(*a));
	*a = (struct arg){
		.name = "", .kind = KIND_STRUCT, .dir = t->a->dir, .struct_id = t->a->struct_id
	};
	*t->dest = value_list(j->c->arena, nr);
	for (i = 0; i < nr; i++) {
		item.a = a;
		item.dest = &t->dest->items[i];
		item.addr =
			capture_number(t->local + i * sizeof(uint64_t), sizeof(uint64_t), false);
		capture_push(j, &item);
	}
}

/* An entry of either kind is filled in by the numbers of dirent64. */
_Static_assert(FIELD_OF(dirent64, d_type) == FIELD_OF(dirent_old, d_type), "dirent_old");
_Static_assert(FIELD_OF(dirent64, d_name) == FIELD_OF(dirent_old, d_name), "dirent_old");

/* Packed records. */

static struct value dirent_from(struct capture_job *j, const struct struct_desc *desc,
				const uint8_t *rec, size_t reclen)
{
	const struct field_place *places = desc->places();
	size_t name_at = places[FIELD_OF(dirent64, d_name)].offset_bytes,
	       type_at = places[FIELD_OF(dirent64, d_type)].offset_bytes;
	struct value v = value_struct(j->c->arena, (UINT64_C(1) << desc->nr_fields) - 1);
	struct value *items = v.fields->items;

	/* In the old layout the type is the last byte of the record. */
	if (type_at == OFFSET_NONE)
		type_at = reclen - 1;
	items[FIELD_OF(dirent64, d_ino)] = value_uint(capture_number(rec, 8, false));
	items[FIELD_OF(dirent64, d_off)] = value_uint(capture_number(rec + 8, 8, true));
	items[FIELD_OF(dirent64, d_reclen)] = value_uint(reclen);
	items[FIELD_OF(dirent64, d_type)] = value_uint(rec[type_at]);
	items[FIELD_OF(dirent64, d_name)] = here_string(j, rec + name_at, reclen - name_at);
	return v;
}

/* Room in a list that grows: its items are not known before. */
static struct value *list_room(struct capture_job *j, struct value *list)
{
	struct value bigger;

	/* Full whenever the count is a power of two. */
	if (list->count < 16 ? list->count : list->count & (list->count - 1))
		return &list->items[list->count++];
	bigger = value_list(j->c->arena, list->count ? list->count * 2 : 16);
	if (list->count)
		memcpy(bigger.items, list->items, list->count * sizeof(*list->items));
	list->items = bigger.items;
	return &list->items[list->count++];
}

void capture_finish_dirents(struct capture_job *j, struct capture_target *t)
{
	const struct struct_desc *desc = &struct_descs[t->a->struct_id];
	size_t least = desc->places()[FIELD_OF(dirent64, d_name)].offset_bytes + 1u, at = 0;
	uint64_t left = t->len - t->done;

	if (!t->done && t->got)
		*t->dest = value_list(j->c->arena, 0);
	while (t->got - at >= least) {
		size_t reclen = (size_t)capture_number(t->local + at + 16, 2, false);

		if (reclen < least || reclen > t->got - at)
			break;
		*list_room(j, t->dest) = dirent_from(j, desc, t->local + at, reclen);
		at += reclen;
	}
	t->done += at;
	t->addr += at;
	/* On with the record that was cut, unless memory or the limit ends here, or it is none. */
	if (at && at < left && t->got == t->want && t->done < CAPTURE_DIRENTS_MAX_BYTES) {
		t->want = (size_t)(t->len - t->done);
		capture_again(j, t);
		return;
	}
	j->c->truncated_bytes += t->len - t->done;
}

static void cmsg_from(struct capture_job *j, const struct k_cmsghdr *h, const uint8_t *data,
		      struct value *dest)
{
	size_t len = (size_t)h->cmsg_len - sizeof(*h), i;
	bool fds = h->cmsg_level == SOL_SOCKET && h->cmsg_type == SCM_RIGHTS;
	unsigned int last = fds ? FIELD_OF(cmsghdr, fds) : FIELD_OF(cmsghdr, cmsg_data);
	struct value *items, list;

	*dest = value_struct(j->c->arena,
			     FIELD_BIT(cmsghdr, cmsg_len) | FIELD_BIT(cmsghdr, cmsg_level) |
				     FIELD_BIT(cmsghdr, cmsg_type) | (UINT64_C(1) << last));
	items = dest->fields->items;
	items[0] = value_uint(h->cmsg_len);
	items[1] = value_int(h->cmsg_level);
	items[2] = value_int(h->cmsg_type);
	if (!fds) {
		items[3] = value_bytes(j->c->arena, arena_memdup0(j->c->arena, data, len), len);
		return;
	}
	list = value_list(j->c->arena, (uint32_t)(len / sizeof(int32_t)));
	for (i = 0; i < list.count; i++)
		list.items[i] = value_uint(capture_number(data + i * 4, 4, true));
	items[3] = list;
}

void capture_finish_cmsgs(struct capture_job *j, struct capture_target *t)
{
	struct k_cmsghdr h;
	size_t at = 0, step;

	j->c->truncated_bytes += t->len - t->got;
	if (!t->got)
		return;
	*t->dest = value_list(j->c->arena, 0);
	while (t->got - at >= sizeof(h)) {
		memcpy(&h, t->local + at, sizeof(h));
		if (h.cmsg_len < sizeof(h) || h.cmsg_len > t->got - at)
			break;
		cmsg_from(j, &h, t->local + at + sizeof(h), list_room(j, t->dest));
		step = ((size_t)h.cmsg_len + 7) & ~(size_t)7;
		if (step > t->got - at)
			break;
		at += step;
	}
}

/* Addresses of sockets. */

static struct value *sockaddr_fields(struct capture_job *j, struct value *dest, uint16_t family,
				     uint64_t present)
{
	*dest = value_struct(j->c->arena, present | FIELD_BIT(sockaddr, family));
	dest->fields->items[0] = value_int(family);
	return dest->fields->items + 1;
}

/* An abstract name begins with a NUL; it is no path, and is written with '@' instead. */
static void put_unix(struct capture_job *j, struct capture_target *t, uint16_t family)
{
	const char *path = (const char *)t->local + sizeof(family);
	size_t len = t->got - sizeof(family);
	struct value *items;
	char *name;

	if (!len) {
		(void)sockaddr_fields(j, t->dest, family, 0);
	} else if (path[0]) {
		len = strnlen(path, len);
		items = sockaddr_fields(j, t->dest, family, FIELD_BIT(sockaddr, path));
		items[0] = value_bytes(j->c->arena, arena_memdup0(j->c->arena, path, len), len);
	} else {
		items = sockaddr_fields(j, t->dest, family, FIELD_BIT(sockaddr, address));
		name = arena_memdup0(j->c->arena, path, len);
		name[0] = '@';
		items[0] = value_bytes(j->c->arena, name, len);
	}
}

static void put_inet(struct capture_job *j, struct capture_target *t, uint16_t family)
{
	char text[INET6_ADDRSTRLEN + 16];
	struct value *items;
	struct sockaddr_in6 in6;
	struct sockaddr_in in;
	uint16_t port;

	if (family == AF_INET) {
		memcpy(&in, t->local, sizeof(in));
		port = in.sin_port;
		(void)inet_ntop(AF_INET, &in.sin_addr, text, sizeof(text)); /* there is room */
	} else {
		memcpy(&in6, t->local, sizeof(in6));
		port = in6.sin6_port;
		(void)inet_ntop(AF_INET6, &in6.sin6_addr, text, sizeof(text)); /* likewise */
		if (in6.sin6_scope_id)
			(void)snprintf(text + strlen(text), sizeof(text) - strlen(text), "%%%u",
				       in6.sin6_scope_id);
	}
	items = sockaddr_fields(j, t->dest, family,
				FIELD_BIT(sockaddr, port) | FIELD_BIT(sockaddr, address));
	items[0] = value_uint(ntohs(port));
	items[1] = value_bytes(j->c->arena, arena_memdup0(j->c->arena, text, strlen(text)),
			       strlen(text));
}

void capture_finish_sockaddr(struct capture_job *j, struct capture_target *t)
{
	struct value *items;
	uint16_t family;
	size_t len;

	j->c->truncated_bytes += t->want - t->got;
	if (t->got < sizeof(family))
		return;
	memcpy(&family, t->local, sizeof(family));
	if (family == AF_UNIX) {
		put_unix(j, t, family);
	} else if ((family == AF_INET && t->got >= sizeof(struct sockaddr_in)) ||
		   (family == AF_INET6 && t->got >= sizeof(struct sockaddr_in6))) {
		put_inet(j, t, family);
	} else {
		len = t->got - sizeof(family);
		items = sockaddr_fields(j, t->dest, family, FIELD_BIT(sockaddr, raw));
		items[0] = value_bytes(j->c->arena,
				       arena_memdup0(j->c->arena, t->local + sizeof(family), len),
				       len);
	}
}
