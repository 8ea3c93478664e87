/* SPDX-License-Identifier: MIT */
#include "import/ibench_calls.h"

#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/banned.h"
#include "base/buf.h"
#include "base/mem.h"
#include "import/mac_path.h"
#include "model/vocab.h"

/* Numbers and names. */

bool ibench_number(struct scan_word w, int64_t *ret)
{
	bool minus = w.len && *w.text == '-';
	uint64_t base = 10, n;

	if (minus) {
		w.text++;
		w.len--;
	}
	if (w.len > 2 && w.text[0] == '0' && (w.text[1] == 'x' || w.text[1] == 'X')) {
		w.text += 2;
		w.len -= 2;
		base = 16;
	}
	if (!w.len || !scan_convert(w, base, &n) || (minus && n > INT64_MAX))
		return false;
	*ret = minus ? -(int64_t)n : (int64_t)n;
	return true;
}

static bool name_value(enum set_id set, struct scan_word w, uint64_t *ret)
{
	const struct set_desc *d = &set_descs[set];
	size_t i;

	for (i = 0; i < d->nr_entries; i++) {
		if (scan_word_is(w, d->entries[i].name)) {
			*ret = d->entries[i].value;
			return true;
		}
	}
	return false;
}

/* "O_RDWR O_CREAT ": every name is needed, or the number would be another one. */
static int read_names(enum set_id set, struct scan_word w, uint64_t *ret, struct err *err)
{
	const char *pos = w.text, *end = w.text + w.len;
	uint64_t sum = 0, bits;

	while (pos < end) {
		const char *blank = memchr(pos, ' ', (size_t)(end - pos));
		struct scan_word name = { pos, (size_t)((blank ? blank : end) - pos) };

		pos = blank ? blank + 1 : end;
		if (!name.len)
			continue;
		if (!name_value(set, name, &bits))
			return err_set(err, -EBADMSG, "unknown flag '%.*s'", (int)name.len,
				       name.text);
		sum |= bits;
	}
	*ret = sum;
	return 0;
}

/* A number that the argument could have held. */
static int read_number(const struct arg *arg, struct scan_word w, struct value *ret,
		       struct err *err)
{
	unsigned int width =
		arg->width_bytes ? arg->width_bytes : kind_infos[arg->kind].width_bytes;
	bool is_signed = kind_infos[arg->kind].wire == 'i';
	int64_t n;

	if (!ibench_number(w, &n))
		return err_set(err, -EBADMSG, "%s: '%.*s' is no number", arg->name,
			       w.len < 64 ? (int)w.len : 64, w.text);
	if (width == 4 && (n < INT32_MIN || n > (int64_t)UINT32_MAX))
		return err_set(err, -EBADMSG, "%s: %lld is too large", arg->name, (long long)n);
	if (width == 4)
		n = is_signed ? (int64_t)(int32_t)n : (int64_t)(uint32_t)n;
	*ret = value_int(n);
	return 0;
}

static const char *path_of_inode(const void *places, uint64_t inode)
{
	return map_get(&((const struct listing *)places)->by_inode, &inode, sizeof(inode));
}

static struct value read_path(const struct ibench_line *l, struct scan_word w)
{
	struct buf path = { 0 };
	struct value v;

	mac_path_put(&path, w.text, w.len, path_of_inode, l->places);
	v = value_bytes(l->arena, arena_memdup0(l->arena, buf_str(&path), path.len), path.len);
	buf_release(&path);
	return v;
}

static int read_attr(const struct ibench_line *l, unsigned int n, struct event *ev, struct err *err)
{
	const char *attr = l->call->attrs[n];
	struct scan_word w = l->attrs[n];
	struct value *to = args_find(ev->row, ev->args, attr + 1);
	const struct arg *arg = &ev->row->args[to - ev->args];
	uint64_t flags = 0;
	int r;

	switch (*attr) {
	case 'P':
		*to = read_path(l, w);
		return 0;
	case 'T':
		*to = value_bytes(l->arena, w.text, w.len);
		return 0;
	case 'N':
		r = read_names((enum set_id)arg->set, w, &flags, err);
		if (!r)
			*to = value_uint(flags);
		return r;
	default:
		return read_number(arg, w, to, err);
	}
}

/* Buffers. */

/* How long the data of an argument was: all that these traces say of it. */
static uint64_t data_length(const struct event *ev, const struct arg *arg)
{
	const struct value *v;

	if (arg->len == RET)
		return ev->outcome.err || ev->outcome.ret < 0 ? 0 : (uint64_t)ev->outcome.ret;
	if (arg->len < A0 || arg->len > A11)
		return 0;
	v = &ev->args[arg->len - A0];
	return v->type == VALUE_INT && v->i > 0 ? v->u : 0;
}

static void add_lengths(const struct ibench_line *l, struct event *ev)
{
	unsigned int i;

	for (i = 0; i < ev->row->nr_args; i++) {
		const struct arg *arg = &ev->row->args[i];
		struct value *v = &ev->args[i];

		if (arg->kind != KIND_BUF || v->type != VALUE_NONE || !data_length(ev, arg))
			continue;
		*v = (struct value){ .type = VALUE_DATA };
		v->data = arena_alloc(l->arena, sizeof(*v->data));
		*v->data = (struct data){ .len_bytes = data_length(ev, arg) };
	}
}

int ibench_call_read(const struct ibench_line *l, struct event *ev, struct err *err)
{
	unsigned int n;
	int r = 0;

	ev->row = row_by_id(l->call->row_id);
	for (n = 0; n < l->call->nr_attrs && !r; n++)
		if (*l->call->attrs[n] != 'X')
			r = read_attr(l, n, ev, err);
	if (r < 0)
		return r;
	add_lengths(l, ev);
	return l->call->adjust ? l->call->adjust(l, ev, err) : 0;
}

/* Calls that need more. */

static struct value *arg_of(struct event *ev, const char *name)
{
	return args_find(ev->row, ev->args, name);
}

/* The fifth attribute of open() is the inode: /.vol names files by it. */
static int note_inode(const struct ibench_line *l, struct event *ev, struct err *err)
{
	const struct value *path = arg_of(ev, "path");
	int64_t inode;
	void **slot;

	(void)err;
	if (ev->outcome.err || !ibench_number(l->attrs[4], &inode) || inode <= 0 ||
	    !path->data->len_bytes || path->data->bytes[0] != '/')
		return 0;
	slot = map_slot(&l->places->by_inode, &inode, sizeof(inode));
	if (!*slot || strlen(*slot) != path->data->len_bytes ||
	    memcmp(*slot, path->data->bytes, (size_t)path->data->len_bytes) != 0)
		*slot = arena_memdup0(&l->places->arena, path->data->bytes,
				      (size_t)path->data->len_bytes);
	return 0;
}

/* What `path` is called when `from` has become `to`; NULL: it has nothing to do with it. */
static char *moved_path(struct arena *arena, const char *path, const struct data *from,
			const struct data *to)
{
	size_t len = (size_t)from->len_bytes, rest;
	char *moved;

	/* Foreign names may have a NUL in them. */
	if (strlen(path) < len || memcmp(path, from->bytes, len) != 0 ||
	    (path[len] && path[len] != '/'))
		return NULL;
	rest = strlen(path + len) + 1;
	moved = arena_alloc(arena, (size_t)to->len_bytes + rest);
	memcpy(moved, to->bytes, (size_t)to->len_bytes);
	memcpy(moved + to->len_bytes, path + len, rest);
	return moved;
}

/* Files keep their number when they, or a directory above them, are renamed: for /.vol. */
static int note_rename(const struct ibench_line *l, struct event *ev, struct err *err)
{
	const struct data *from = arg_of(ev, "oldpath")->data, *to = arg_of(ev, "newpath")->data;

	(void)err;
	if (ev->outcome.err || ev->flags & EVENT_UNFINISHED || !from->len_bytes || !to->len_bytes ||
	    from->bytes[0] != '/' || to->bytes[0] != '/')
		return 0;
	MAP_EACH (&l->places->by_inode, e) {
		char *moved = moved_path(&l->places->arena, e->value, from, to);

		if (moved)
			e->value = moved;
	}
	return 0;
}

/* The same flags by the numbers of another vocabulary; what it lacks is dropped. */
static uint64_t translate_flags(enum set_id from, enum set_id to, uint64_t v)
{
	const struct set_desc *d = &set_descs[from];
	uint64_t sum = 0, bits;
	size_t i;

	for (i = 0; i < d->nr_entries; i++) {
		const struct set_entry *e = &d->entries[i];
		struct scan_word name = { e->name, strlen(e->name) };

		if ((v & e->mask) == e->value && name_value(to, name, &bits))
			sum |= bits;
	}
	return sum;
}

static const struct {
	const char *command;
	uint16_t row_id;
} commands[] = {
	{ "F_DUPFD", SC_fcntl_dupfd },
	{ "F_DUPFD_CLOEXEC", SC_fcntl_dupfd_cloexec },
	{ "F_GETFD", SC_fcntl_getfd },
	{ "F_SETFD", SC_fcntl_setfd },
	{ "F_GETFL", SC_fcntl_getfl },
	{ "F_SETFL", SC_fcntl_setfl },
	{ "F_FULLFSYNC", SC_mac_fcntl_fullfsync },
	{ "F_BARRIERFSYNC", SC_mac_fcntl_barrierfsync },
	{ "F_NOCACHE", SC_mac_fcntl_nocache },
	{ "F_GLOBAL_NOCACHE", SC_mac_fcntl_nocache },
	{ "F_PREALLOCATE", SC_mac_fcntl_preallocate },
	{ "F_RDADVISE", SC_mac_fcntl_rdadvise },
	{ "F_RDAHEAD", SC_mac_fcntl_rdahead },
	{ "F_GETPATH", SC_mac_fcntl_getpath },
};

/* Commands with a row of their own; a pointer that was passed tells nothing. */
static int choose_command(const struct ibench_line *l, struct event *ev, struct err *err)
{
	struct value fd = *arg_of(ev, "fd"), arg = *arg_of(ev, "arg"), *to;
	size_t i;

	(void)err;
	for (i = 0; i < ARRAY_LEN(commands); i++)
		if (scan_word_is(l->attrs[3], commands[i].command))
			break;
	if (i == ARRAY_LEN(commands))
		return 0;
	ev->row = row_by_id(commands[i].row_id);
	memset(ev->args, 0, sizeof(ev->args));
	*arg_of(ev, "fd") = fd;
	to = arg_of(ev, "arg");
	if (to && kind_infos[ev->row->args[to - ev->args].kind].width_bytes)
		*to = value_int((int32_t)arg.i);
	if (ev->row->id == SC_fcntl_setfl)
		to->u = translate_flags(SET_mac_open_flags, SET_open_flags, arg.u);
	if (ev->row->id == SC_fcntl_getfl && !ev->outcome.err)
		ev->outcome.ret = (int64_t)translate_flags(SET_mac_open_flags, SET_open_flags,
							   (uint64_t)ev->outcome.ret);
	return 0;
}

#define MAC_MAP_FIXED 0x10
#define MAC_MAP_ANON 0x1000

/* The tracer had no register for the offset, so that it may be anything. */
static int mend_map(const struct ibench_line *l, struct event *ev, struct err *err)
{
	struct value *flags = arg_of(ev, "flags"), *offset = arg_of(ev, "offset");
	uint64_t mac = flags->u;

	(void)l;
	(void)err;
	flags->u = (mac & (MAP_SHARED | MAP_PRIVATE)) | (mac & MAC_MAP_FIXED ? MAP_FIXED : 0) |
		   (mac & MAC_MAP_ANON ? MAP_ANONYMOUS : 0);
	if (offset->i < 0 || offset->i % 4096)
		offset->i = 0;
	return 0;
}

/* Families of other numbers; what only macOS has is of no family. */
static int mend_socket(const struct ibench_line *l, struct event *ev, struct err *err)
{
	struct value *domain = arg_of(ev, "domain");

	(void)l;
	(void)err;
	switch (domain->i) {
	case AF_UNIX:
	case AF_INET:
		break;
	case 30:
		domain->i = AF_INET6;
		break;
	default:
		domain->i = AF_UNSPEC;
	}
	return 0;
}

static int mend_pair(const struct ibench_line *l, struct event *ev, struct err *err)
{
	struct value *sv = arg_of(ev, "sv");
	int64_t fds[2];

	if (!ibench_number(l->attrs[3], &fds[0]) || !ibench_number(l->attrs[4], &fds[1]) ||
	    fds[0] < INT32_MIN || fds[0] > INT32_MAX || fds[1] < INT32_MIN || fds[1] > INT32_MAX)
		return err_set(err, -EBADMSG, "sv: no descriptors");
	if (!ev->outcome.err) {
		*sv = value_list(l->arena, 2);
		sv->items[0] = value_int(fds[0]);
		sv->items[1] = value_int(fds[1]);
	}
	return mend_socket(l, ev, err);
}

/* Signals that have another number on macOS. */
static int mend_signal(const struct ibench_line *l, struct event *ev, struct err *err)
{
	static const uint8_t ours[] = { [10] = 7,  [12] = 31, [16] = 23, [17] = 19, [18] = 20,
					[19] = 18, [20] = 17, [23] = 29, [30] = 10, [31] = 12 };
	struct value *sig = arg_of(ev, "sig");

	(void)l;
	(void)err;
	if (sig->i >= 0 && sig->i < (int64_t)ARRAY_LEN(ours) && ours[sig->i])
		sig->i = ours[sig->i];
	return 0;
}

/* The table. */

#define P(arg) "P" #arg
#define T(arg) "T" #arg
#define D(arg) "D" #arg
#define N(arg) "N" #arg
#define X "X"
#define NR(...) (sizeof((const char *const[]){ __VA_ARGS__ }) / sizeof(const char *))

static const struct ibench_call calls_of_ibench[] = {
#define IBENCH(name, row, ...) { #name, SC_##row, NR(__VA_ARGS__), { __VA_ARGS__ }, NULL },
#define IBENCH_WITH(name, row, fn, ...) { #name, SC_##row, NR(__VA_ARGS__), { __VA_ARGS__ }, fn },
#include "import/ibench.def"
#undef IBENCH
#undef IBENCH_WITH
};

void ibench_calls_fill(struct map *calls)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(calls_of_ibench); i++) {
		const struct ibench_call *c = &calls_of_ibench[i];

		*map_slot(calls, c->name, strlen(c->name)) = (void *)c;
	}
}

const struct ibench_call *ibench_call_find(const struct map *calls, struct scan_word name)
{
	static const char form[] = "_nocancel";
	size_t len = sizeof(form) - 1;

	if (name.len > len && !memcmp(name.text + name.len - len, form, len))
		name.len -= len;
	return map_get(calls, name.text, name.len);
}
