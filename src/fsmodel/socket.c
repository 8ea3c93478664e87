/* SPDX-License-Identifier: MIT */
/*
 * Sockets, and the descriptors that go through them. A socket has a stream each
 * way. A connection inside the trace is found by the address: who connects to it
 * meets who listens on it, in the order of both.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/socket.h>

#include "base/banned.h"
#include "fsmodel/tables.h"

#define PASSED_MAX 4096 /* descriptors in flight in one stream */
#define WAITING_MAX 4096 /* connections in one queue, as SOMAXCONN */

static struct socket *socket_new(int domain, int type)
{
	struct socket *s = xcalloc(1, sizeof(*s));

	s->domain = domain;
	s->type = type;
	s->mode = 0777;
	return s;
}

static struct socket *socket_asked_for(const struct call *c)
{
	return socket_new((int)value_int_or(arg_at(c, 0), 0),
			  (int)value_int_or(arg_at(c, 1), 0) & 0xf);
}

void socket_set_mode(struct open_file *o, uint32_t mode)
{
	if (o->socket)
		o->socket->mode = mode;
}

static void drop_connection(struct fsmodel *m, struct connection *k)
{
	stream_unref(NULL, m, k->to_server);
	stream_unref(NULL, m, k->to_client);
}

void socket_free(struct fsmodel *m, struct open_file *o)
{
	struct socket *s = o->socket;
	size_t n;

	for (n = 0; n < s->waiting.len; n++)
		drop_connection(m, &s->waiting.items[n]);
	for (n = 0; n < s->early.len; n++)
		drop_connection(m, &s->early.items[n]);
	VEC_RELEASE(&s->waiting);
	VEC_RELEASE(&s->early);
	if (s->key && map_get(&m->tables->listeners, s->key, s->key_len) == o)
		map_remove(&m->tables->listeners, s->key, s->key_len);
	free(s->key);
	free(s);
	o->socket = NULL;
}

static struct outcome ask_socket(struct call *c)
{
	c->any_ret = true;
	return succeeds(0);
}

static void apply_socket(struct call *c)
{
	uint32_t type = (uint32_t)value_int_or(arg_at(c, 1), 0);
	struct open_file *o = open_file_new(c->m, OBJECT_SOCKET, O_RDWR | (type & O_NONBLOCK));

	o->socket = socket_asked_for(c);
	fd_make_result(c, o, type & O_CLOEXEC);
}

const struct call_row model_socket = { ask_socket, apply_socket, NULL };

static struct stream *socket_stream(struct call *c, int type)
{
	struct stream *s = stream_new(c->m);

	s->packets = type != SOCK_STREAM;
	touch_use(c, &s->res, TOUCH_CREATE);
	return s;
}

static struct outcome ask_socketpair(struct call *c)
{
	(void)c;
	return succeeds(0);
}

static void apply_socketpair(struct call *c)
{
	uint32_t type = (uint32_t)value_int_or(arg_at(c, 1), 0);
	struct stream *there = socket_stream(c, (int)type & 0xf);
	struct stream *back = socket_stream(c, (int)type & 0xf);
	struct open_file *ends[2];
	int n;

	for (n = 0; n < 2; n++) {
		ends[n] = open_file_new(c->m, OBJECT_SOCKET, O_RDWR | (type & O_NONBLOCK));
		ends[n]->socket = socket_asked_for(c);
	}
	stream_attach(ends[0], back, there);
	stream_attach(ends[1], there, back);
	make_pair(c, arg_at(c, 3), ends, type & O_CLOEXEC);
}

const struct call_row model_socketpair = { ask_socketpair, apply_socketpair, NULL };

/* Addresses. */

/*
 * What two sockets must have in common to meet: the file, whatever path leads to
 * it; the abstract name; the port, where the address is one of this machine for
 * certain. `file` may be NULL: a path that the kernel itself told.
 */
static bool address_key(const struct value *addr, const struct inode *file, struct buf *out)
{
	int64_t family = value_int_or(field_of(addr, STRUCT_sockaddr, "family"), -1);
	const struct value *path = field_of(addr, STRUCT_sockaddr, "path");
	const struct value *host = field_of(addr, STRUCT_sockaddr, "address");
	int64_t port = value_int_or(field_of(addr, STRUCT_sockaddr, "port"), 0);

	buf_clear(out);
	if (file) {
		buf_printf(out, "f%llu", (unsigned long long)file->res.id);
		return true;
	}
	if (family == AF_UNIX) {
		const struct value *name = path ? path : host;

		if (!name || name->type != VALUE_DATA || !name->data->bytes ||
		    !name->data->kept_bytes)
			return false;
		buf_putc(out, path ? 'u' : 'a');
		buf_put(out, name->data->bytes, name->data->kept_bytes);
		return true;
	}
	if ((family != AF_INET && family != AF_INET6) || !port || !host ||
	    host->type != VALUE_DATA || !host->data->bytes || !host->data->kept_bytes)
		return false;
	if (memcmp(host->data->bytes, "127.", host->data->kept_bytes < 4 ? 1 : 4) &&
	    memcmp(host->data->bytes, ":", 1) && memcmp(host->data->bytes, "0", 1))
		return false;
	buf_printf(out, "i%lld", (long long)port);
	return true;
}

static void set_key(struct call *c, struct open_file *o, const struct value *addr,
		    const struct inode *file)
{
	struct socket *s = o->socket;
	struct buf key = { 0 };

	if (!s || s->key || !address_key(addr, file, &key)) {
		buf_release(&key);
		return;
	}
	s->key_len = key.len;
	s->key = xmemdup0(key.data, key.len);
	*map_slot(&c->m->tables->listeners, key.data, key.len) = o;
	buf_release(&key);
	/* What is sent to it arrives here. */
	if (s->type != SOCK_STREAM && !o->in) {
		struct stream *in = socket_stream(c, s->type);

		in->foreign = true;
		stream_attach(o, in, NULL);
	}
}

static struct open_file *find_listener(struct call *c, const struct value *addr,
				       const struct inode *file)
{
	struct buf key = { 0 };
	struct open_file *o = NULL;

	if (address_key(addr, file, &key))
		o = map_get(&c->m->tables->listeners, key.data, key.len);
	/* Bound before the trace: only its own path is known. */
	if (!o && file && address_key(addr, NULL, &key))
		o = map_get(&c->m->tables->listeners, key.data, key.len);
	buf_release(&key);
	return o;
}

struct value *fsmodel_socket_path(const struct value *addr)
{
	struct value *path = field_of(addr, STRUCT_sockaddr, "path");

	if (value_int_or(field_of(addr, STRUCT_sockaddr, "family"), -1) != AF_UNIX || !path ||
	    path->type != VALUE_DATA || !path->data->bytes || !path->data->kept_bytes ||
	    !path->data->bytes[0])
		return NULL;
	return path;
}

static struct outcome ask_socket_fd(struct call *c)
{
	c->fd = fd_usable(c, value_int_or(arg_at(c, 0), -1));
	if (!c->fd)
		return fails(EBADF);
	if (c->fd->open->object != OBJECT_SOCKET && !c->fd->open->unknown)
		return fails(ENOTSOCK);
	return succeeds(0);
}

static struct outcome ask_bind(struct call *c)
{
	const struct value *path = fsmodel_socket_path(arg_at(c, 1));
	struct outcome o = ask_socket_fd(c);
	int err;

	if (o.err || !path)
		return o;
	err = ask_make(c, AT_FDCWD, path, false, &c->at);
	return err ? fails(err == EEXIST ? EADDRINUSE : err) : succeeds(0);
}

static void apply_bind(struct call *c)
{
	const struct inode *file = NULL;

	if (c->at.entry && !c->at.inode)
		file = make_in(c, &c->at, S_IFSOCK,
			       c->fd->open->socket ? c->fd->open->socket->mode : 0777);
	set_key(c, c->fd->open, arg_at(c, 1), file);
}

const struct call_row model_bind = { ask_bind, apply_bind, NULL };

static void apply_listen(struct call *c)
{
	if (c->fd->open->socket)
		c->fd->open->socket->listening = true;
}

const struct call_row model_listen = { ask_socket_fd, apply_listen, NULL };

/* A port that the system chose shows here. */
static void apply_getsockname(struct call *c)
{
	if (c->fd->open->socket && !c->fd->open->in && !c->fd->open->out)
		set_key(c, c->fd->open, arg_at(c, 1), NULL);
}

const struct call_row model_getsockname = { ask_socket_fd, apply_getsockname, NULL };

static struct connection new_connection(struct call *c, int type)
{
	struct connection k = { socket_stream(c, type), socket_stream(c, type) };

	k.to_server->refs++;
	k.to_client->refs++;
	return k;
}

static void queue_connection(struct call *c, struct connections *q, struct connection k)
{
	if (q->len < WAITING_MAX)
		VEC_PUSH(q, k);
	else
		drop_connection(c->m, &k);
}

/* The end takes over what the queue held. */
static void take_end(struct call *c, struct open_file *o, struct stream *in, struct stream *out)
{
	stream_detach(c, c->m, o);
	stream_attach(o, in, out);
}

static struct outcome ask_connect(struct call *c)
{
	const struct value *path = fsmodel_socket_path(arg_at(c, 1));
	struct outcome o = ask_socket_fd(c);

	if (o.err || !path)
		return o;
	look_up(c, AT_FDCWD, path, LOOK_AT_FOLLOW, 0, &c->at);
	return c->at.err ? fails(c->at.err) : succeeds(0);
}

static void apply_connect(struct call *c)
{
	struct open_file *o = c->fd->open, *server = find_listener(c, arg_at(c, 1), c->at.inode);
	struct connection k;

	if (!o->socket || o->socket->type != SOCK_STREAM || !server || !server->socket) {
		struct stream *out = server && server != o ? server->in : NULL;

		/* Datagrams from anywhere arrive in the one stream of whom they are sent to. */
		if (o->socket && out)
			take_end(c, o, o->in, out);
		return;
	}
	if (server->socket->early.len) {
		k = server->socket->early.items[0];
		memmove(server->socket->early.items, server->socket->early.items + 1,
			--server->socket->early.len * sizeof(k));
		take_end(c, o, k.to_client, k.to_server);
		drop_connection(c->m, &k);
		return;
	}
	k = new_connection(c, o->socket->type);
	take_end(c, o, k.to_client, k.to_server);
	queue_connection(c, &server->socket->waiting, k);
}

const struct call_row model_connect = { ask_connect, apply_connect, NULL };

static struct outcome ask_accept(struct call *c)
{
	c->any_ret = true;
	return ask_socket_fd(c);
}

static void apply_accept(struct call *c)
{
	uint32_t flags = c->ev->row->id == SC_accept4 ? (uint32_t)value_int_or(arg_at(c, 3), 0) : 0;
	struct open_file *o = open_file_new(c->m, OBJECT_SOCKET, O_RDWR | (flags & O_NONBLOCK));
	struct socket *server = c->fd->open->socket;
	struct connection k;

	if (!server || !server->key) {
		fd_make_result(c, o, flags & O_CLOEXEC);
		return;
	}
	o->socket = socket_new(server->domain, server->type);
	if (server->waiting.len) {
		k = server->waiting.items[0];
		memmove(server->waiting.items, server->waiting.items + 1,
			--server->waiting.len * sizeof(k));
		stream_attach(o, k.to_server, k.to_client);
		drop_connection(c->m, &k);
	} else {
		/* Its connect has not returned yet, or comes from outside. */
		k = new_connection(c, server->type);
		k.to_server->foreign = k.to_client->foreign = true;
		stream_attach(o, k.to_server, k.to_client);
		queue_connection(c, &server->early, k);
	}
	fd_make_result(c, o, flags & O_CLOEXEC);
}

const struct call_row model_accept = { ask_accept, apply_accept, NULL };
const struct call_row model_accept4 = { ask_accept, apply_accept, NULL };

/* Messages, with descriptors in them. */

static const struct value *message_of(const struct call *c)
{
	return arg_at(c, 1);
}

static struct value *passed_list(const struct value *msg, uint32_t n, bool *ret_more)
{
	struct value *cmsg = value_item(field_of(msg, STRUCT_msghdr, "msg_control"), n);

	*ret_more = cmsg;
	return field_of(cmsg, STRUCT_cmsghdr, "fds");
}

/* Somebody in the trace can have sent the descriptors that came, and has not yet. */
static bool lacks_passed(const struct call *c)
{
	const struct stream *s = c->fd->open->in;
	bool more = s && s->writers && !s->passed.len;
	uint32_t n;

	for (n = 0; more; n++) {
		if (value_item(passed_list(message_of(c), n, &more), 0))
			return true;
	}
	return false;
}

static struct outcome ask_msg(struct call *c)
{
	struct transfer *t = &c->t1;
	struct outcome o = ask_socket_fd(c);

	if (o.err)
		return o;
	t->d = c->fd;
	t->write = c->ev->row->id == SC_sendmsg;
	t->peek = value_int_or(arg_at(c, 2), 0) & MSG_PEEK;
	t->count = vector_bytes(field_of(message_of(c), STRUCT_msghdr, "msg_iov"));
	/* Of a received one only what came is told. */
	if (!t->write && c->ev->outcome.ret > 0 && t->count < (uint64_t)c->ev->outcome.ret)
		t->count = (uint64_t)c->ev->outcome.ret;
	o = transfer_ask(c, t);
	/* What it received may yet be sent, by a call that overlaps this one. */
	if (!t->write && !c->m->options.execute && lacks_passed(c))
		c->any_ret = false;
	return o;
}

/* Messages on their way, as one call sends or receives them. */
struct post {
	struct stream *s; /* NULL: not known */
	uint64_t at; /* of a message that is sent */
	size_t next; /* of s->passed: what is received next */
	bool peek, cloexec;
};

/* Each descriptor in the messages of a call. */
static void each_passed(struct call *c, struct post *p, const struct value *msg,
			void (*each)(struct call *c, struct post *p, struct value *item))
{
	bool more = true;
	uint32_t n, k;

	for (n = 0; more; n++) {
		const struct value *list = passed_list(msg, n, &more);
		struct value *item;

		for (k = 0; (item = value_item(list, k)); k++)
			each(c, p, item);
	}
}

/* Where in the stream the next message begins: bytes do not tell packets apart, which may be empty. */
static uint64_t write_place(const struct stream *s)
{
	return s->packets ? s->nr_writes : s->written;
}

static uint64_t read_place(const struct stream *s)
{
	return s->packets ? s->nr_reads : s->read;
}

static void pass_descriptor(struct call *c, struct post *p, struct value *item)
{
	struct descriptor *d = fd_table_get(c->thread->files, value_int_or(item, -1));
	struct passed passed = { .at = p->at };

	if (!d)
		return;
	touch_use(c, &d->open->res, TOUCH_USE);
	if (!p->s || p->s->passed.len >= PASSED_MAX)
		return;
	passed.d = descriptor_new(c, d->open, -1);
	passed.d->refs++;
	fd_note_copy(c, d, passed.d);
	VEC_PUSH(&p->s->passed, passed);
	stream_list_passing(c->m, p->s);
}

/* No receiver takes descriptors from more than one message. */
static struct descriptor *next_passed(struct post *p)
{
	struct stream *s = p->s;

	if (!s || p->next >= s->passed.len || s->passed.items[p->next].at != s->passed.items[0].at)
		return NULL;
	return s->passed.items[p->next++].d;
}

static void receive_descriptor(struct call *c, struct post *p, struct value *item)
{
	struct descriptor *d = next_passed(p);
	int64_t wish = value_int_or(item, -1);

	if (wish < 0 && !c->m->options.execute)
		return;
	wish = fd_make(c, d ? d->open : open_file_unknown(c->m), wish, 0, p->cloexec);
	*item = value_int(wish);
	if (!d)
		return;
	touch_use(c, &d->res, TOUCH_USE);
	fd_note_copy(c, d, fd_table_get(c->thread->files, wish));
}

/* The first `nr` go: they were received, or the message that had them is gone. */
static void drop_first_passed(struct call *c, struct stream *s, size_t nr)
{
	size_t i;

	if (!nr)
		return;
	for (i = 0; i < nr; i++)
		descriptor_unref(c, c->m, s->passed.items[i].d);
	s->passed.len -= nr;
	memmove(s->passed.items, s->passed.items + nr, s->passed.len * sizeof(*s->passed.items));
}

/*
 * Drops what was in messages before the place. Where others may write to the
 * stream, no places are known: messages come in their order, and that is all.
 */
static void drop_passed_before(struct call *c, struct stream *s, uint64_t place)
{
	size_t nr = 0;

	while (!s->foreign && nr < s->passed.len && s->passed.items[nr].at < place)
		nr++;
	drop_first_passed(c, s, nr);
}

/* One message has been received; `before`: read_place() then. */
static void receive_descriptors(struct call *c, const struct value *msg, struct post *p,
				uint64_t before)
{
	uint64_t first;
	size_t nr = 0;

	if (p->s)
		drop_passed_before(c, p->s, before);
	each_passed(c, p, msg, receive_descriptor);
	if (!p->s || p->peek)
		return;
	/* What had no room goes with the message. */
	first = p->s->passed.len ? p->s->passed.items[0].at : 0;
	while (p->next && nr < p->s->passed.len && p->s->passed.items[nr].at == first)
		nr++;
	drop_first_passed(c, p->s, nr);
	drop_passed_before(c, p->s, read_place(p->s));
}

/* Where the message goes: to the peer, or to whom it is addressed. */
static struct stream *receiver_of(struct call *c, const struct value *msg)
{
	const struct value *name = field_of(msg, STRUCT_msghdr, "msg_name");
	const struct value *path = name ? fsmodel_socket_path(name) : NULL;
	const struct open_file *o;
	struct found at = { 0 };

	if (c->fd->open->out || !name)
		return c->fd->open->out;
	if (path)
		look_up(c, AT_FDCWD, path, LOOK_AT_FOLLOW, 0, &at);
	o = find_listener(c, name, at.inode);
	return o ? o->in : NULL;
}

static void apply_msg(struct call *c)
{
	int64_t flags = value_int_or(arg_at(c, 2), 0);
	struct post p = { .peek = c->t1.peek, .cloexec = flags & MSG_CMSG_CLOEXEC };
	uint64_t before;

	if (!c->t1.d)
		return;
	p.s = c->t1.write ? receiver_of(c, message_of(c)) : c->fd->open->in;
	p.at = p.s ? write_place(p.s) : 0;
	before = p.s ? read_place(p.s) : 0;
	apply_data(c);
	if (c->t1.write)
		each_passed(c, &p, message_of(c), pass_descriptor);
	else
		receive_descriptors(c, message_of(c), &p, before);
}

const struct call_row model_sendmsg = { ask_msg, apply_msg, NULL };
const struct call_row model_recvmsg = { ask_msg, apply_msg, NULL };

static struct outcome ask_mmsg(struct call *c)
{
	c->any_ret = true;
	return ask_socket_fd(c);
}

/* Each message as its own call would; msg_len says how much of it went. */
static void apply_mmsg(struct call *c)
{
	bool write = c->ev->row->id == SC_sendmmsg;
	int64_t flags = value_int_or(arg_at(c, 3), 0);
	struct value *item;
	uint32_t n;

	for (n = 0; (item = value_item(arg_at(c, 1), n)); n++) {
		const struct value *msg = field_of(item, STRUCT_mmsghdr, "msg_hdr");
		int64_t len = value_int_or(field_of(item, STRUCT_mmsghdr, "msg_len"), 0);
		struct transfer t = {
			.d = c->fd, .write = write, .count = (uint64_t)len, .peek = flags & MSG_PEEK
		};
		struct post p = { .peek = t.peek, .cloexec = flags & MSG_CMSG_CLOEXEC };
		uint64_t before;

		if (n >= (uint64_t)c->m->tables->result.ret || len < 0)
			break;
		p.s = write ? receiver_of(c, msg) : c->fd->open->in;
		p.at = p.s ? write_place(p.s) : 0;
		before = p.s ? read_place(p.s) : 0;
		if (!c->fd->open->unknown)
			transfer_apply(c, &t, (uint64_t)len);
		if (write)
			each_passed(c, &p, msg, pass_descriptor);
		else
			receive_descriptors(c, msg, &p, before);
	}
}

const struct call_row model_sendmmsg = { ask_mmsg, apply_mmsg, NULL };
const struct call_row model_recvmmsg = { ask_mmsg, apply_mmsg, NULL };
