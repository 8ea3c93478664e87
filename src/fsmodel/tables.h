/* SPDX-License-Identifier: MIT */
/*
 * What the files of the tables half share (see inside.h): threads, processes,
 * descriptor tables, streams, address spaces, asynchronous requests, locks.
 *
 *   thread -> fd_table -> slot -> descriptor -> open_file -> inode | stream | socket
 *     |  \--> fs_state (cwd, root, umask)
 *     +--> process -> space -> regions -> file_map -> inode
 *                          \-> aio contexts -> requests
 *
 * Everything that several can hold has a count of holders (`refs`) and goes with
 * the last of them. What facts may point to is buried, not freed.
 */
#ifndef FSMODEL_TABLES_H
#define FSMODEL_TABLES_H

#include "fsmodel/ids.h"
#include "fsmodel/inside.h"

/* Descriptor tables (fd.c). */

#define FD_DENSE 1024 /* numbers below stand in an array, the others in a map */

enum fd_slot_flag {
	SLOT_CLOEXEC = 1,
	SLOT_SEEN = 2, /* the trace has shown whether it is open: nothing is inferred any more */
};

struct fd_slot {
	struct descriptor *d; /* NULL: closed */
	uint8_t flags; /* enum fd_slot_flag */
};

struct fd_table {
	uint32_t refs; /* threads */
	uint32_t nr_slots;
	uint32_t lowest; /* no number below is free */
	bool open_world; /* of a process from before the trace: numbers that were not seen may be open */
	struct fd_slot *slots;
	struct ids beyond; /* number -> descriptor, lowest bit: SLOT_CLOEXEC */
	uint64_t nr_copies; /* descriptors that came from the table it was copied from */
	bool has_locks; /* POSIX locks, which belong to tables: a close may drop some */
};

struct fd_table *fd_table_new(bool open_world);
/* For another process; an empty one when the trace has asked for too many copies. */
struct fd_table *fd_table_copy(struct call *c, struct fd_table *t);
/* Gives up a thread's part; the last closes all. c may be NULL when the model is freed. */
void fd_table_drop(struct call *c, struct fsmodel *m, struct fd_table *t);
struct descriptor *fd_table_get(const struct fd_table *t, int64_t number);
/* Whether one of the table's descriptors is of this open file. */
bool fd_table_has(const struct fd_table *t, const struct open_file *o);
/* Closes every descriptor in [first, last] for which the mask of slot flags is set. */
void fd_table_close_range(struct call *c, struct fd_table *t, uint32_t first, uint32_t last,
			  uint8_t flags);

struct open_file *open_file_new(struct fsmodel *m, enum object_kind object, uint32_t flags);
/* Takes over a reference to the inode that is made here. */
struct open_file *open_file_on(struct fsmodel *m, struct inode *i, uint32_t flags);
void open_file_unref(struct call *c, struct fsmodel *m, struct open_file *o);

/* In no table yet, without a holder. */
struct descriptor *descriptor_new(struct call *c, struct open_file *o, int64_t number);
void descriptor_unref(struct call *c, struct fsmodel *m, struct descriptor *d);
/* A copy, see fsmodel.h. */
static inline void fd_note_copy(struct call *c, struct descriptor *from, struct descriptor *to)
{
	VEC_PUSH(&c->facts->fd_copies, ((struct fd_copy){ .from = &from->res, .to = &to->res }));
}

/* A new descriptor with the number that the outcome says (or the lowest free); takes the open file over. */
int32_t fd_make(struct call *c, struct open_file *o, int64_t wish, int64_t min, bool cloexec);
/* The same as the call's result. */
void fd_make_result(struct call *c, struct open_file *o, bool cloexec);
/* Under this very number, closing what is there. */
struct descriptor *fd_put(struct call *c, int64_t number, struct open_file *o, bool cloexec);
/* One that must have been open before the trace began, on something unknown. */
struct descriptor *fd_put_found(struct call *c, int64_t number);
bool fd_close(struct call *c, int64_t number);
/* Whether the number is one that the call can have given out. */
bool fd_may_be_given(const struct call *c, int64_t number);
/* Not for those that are open with O_PATH: EBADF. */
struct descriptor *fd_usable(struct call *c, int64_t number);
/* Something from before the trace, or that nothing is known of. */
struct open_file *open_file_unknown(struct fsmodel *m);
/* An open file without inode: with its object's kind. */
void fd_make_object(struct call *c, enum object_kind object, uint32_t flags, bool cloexec);

/* Processes (process.c). */

struct thread {
	uint32_t tid;
	bool cloned; /* its maker's call was seen */
	bool started; /* its own first event was seen */
	bool ended; /* kept only until its maker's call is seen */
	struct process *proc;
	struct thread *next; /* of the process */
	struct fd_table *files;
	struct fs_state *fs;
	struct credentials cred;
};

struct process {
	uint32_t pid;
	uint32_t nr_threads;
	struct thread *threads;
	struct space *space;
	bool exiting; /* exit_group was called: its threads end one by one */
	bool exec_seen; /* an execve that succeeded: the event `exec` only confirms it */
};

/* The thread of the event, made when it is not known. */
struct thread *thread_of(struct call *c);
struct process *process_by_pid(const struct fsmodel *m, uint32_t pid);
/* A cwd or root becomes another: a new handle, touched. */
void set_directory(struct call *c, struct handle **place, struct inode *dir);
/* Whoever has the one as cwd or root gets the other. */
void move_directories(struct call *c, struct inode *from, struct inode *to);
/* Events that are not calls. */
void process_event(struct call *c);
void tables_init(struct fsmodel *m);
void tables_release(struct fsmodel *m);

/* Streams (stream.c). */

/* A descriptor in a message. */
struct passed {
	struct descriptor *d;
	uint64_t at; /* stream_place() of the message */
};

struct stream {
	struct res res; /* RES_STREAM */
	uint64_t written, read; /* bytes since its beginning */
	uint64_t nr_writes, nr_reads; /* of packets: messages */
	uint32_t refs;
	uint32_t writers, readers; /* open files */
	bool foreign; /* somebody outside the trace may have the other end */
	bool counter; /* an eventfd: a read takes all */
	bool packets; /* a read may drop bytes */
	bool named; /* a FIFO: its ends come and go */
	uint64_t no_readers_ns, no_writers_ns; /* when the last of them went */
	struct held_bytes held; /* of a pipe whose bytes a replay has too */
	VEC(struct passed) passed; /* by SCM_RIGHTS, not yet received */
	struct stream *next, *prev; /* of those in which something was passed */
};

struct stream *stream_new(struct fsmodel *m);
/* Notes it as one that descriptors are passed in, until it goes. */
void stream_list_passing(struct fsmodel *m, struct stream *s);
/* Sockets that are passed through themselves would never go. */
void streams_drop_passed(struct fsmodel *m);
void stream_unref(struct call *c, struct fsmodel *m, struct stream *s);
/* The open file is of a FIFO. */
void stream_attach_fifo(struct call *c, struct open_file *o, struct inode *i);
/* Gives the open file its ends; either may be NULL. */
void stream_attach(struct open_file *o, struct stream *in, struct stream *out);
void stream_detach(struct call *c, struct fsmodel *m, struct open_file *o);
/* Two descriptors that the call tells in an argument. */
void make_pair(struct call *c, struct value *list, struct open_file *const ends[2], bool cloexec);

/* Sockets (socket.c). */

struct connection {
	struct stream *to_server, *to_client;
};

struct connections {
	struct connection *items;
	size_t len, cap;
};

struct socket {
	int domain, type;
	uint32_t mode; /* of the file that bind() makes, before the umask */
	char *key; /* of its address, NULL: none */
	size_t key_len;
	bool listening;
	struct connections waiting; /* connected, not accepted */
	struct connections early; /* accepted before the connect returned */
};

void socket_free(struct fsmodel *m, struct open_file *o);

/* Transfers of bytes (data.c). */

#define COUNT_MAX ((uint64_t)0x7ffff000) /* the kernel moves no more in one call */

/* Pipes, sockets, and all that has no positions. */
bool is_stream(const struct open_file *o);
/* Files whose contents and sizes follow no rules that the model knows. */
bool is_odd(const struct inode *i);
/* from + count, at most TOUCH_TO_END. */
uint64_t range_end(uint64_t from, uint64_t count);
/* The sum of the lengths of a vector. -EINVAL as the kernel says it; 1 when it is not known. */
int sum_vector(const struct value *v, uint64_t *ret);
/* The same for requests, whose vectors have been accepted: 0 when it is not known. */
uint64_t vector_bytes(const struct value *iov);
/* What the call returned, at most count: a trace may claim anything. */
uint64_t bytes_done(const struct call *c, uint64_t count);
/* By how it was opened. */
bool can_read(const struct open_file *o);
bool can_write(const struct open_file *o);
struct outcome transfer_ask(struct call *c, struct transfer *t);
void transfer_apply(struct call *c, const struct transfer *t, uint64_t done);
/* For requests that go on in the background: the touches alone. */
void transfer_touch(struct call *c, const struct transfer *t);
/* The size of the file becomes another: touches, and the new size. */
void set_size(struct call *c, struct inode *i, uint64_t size);
void grow_to(struct call *c, struct inode *i, uint64_t end);
struct outcome ask_data(struct call *c);
void apply_data(struct call *c);
struct outcome ask_sync(struct call *c);

/* Address spaces (map.c). */

struct space;

struct space *space_new(void);
struct space *space_fork(struct space *s);
struct space *space_ref(struct space *s);
void space_drop(struct call *c, struct fsmodel *m, struct space *s);
/* All maps and contexts go: exec. */
void space_clear(struct call *c, struct fsmodel *m, struct space *s);
struct ids *space_aio(struct space *s);
bool space_shared(const struct space *s);
/* The event map_store. */
void store_in_map(struct call *c);

/* Asynchronous requests (aio.c, uring.c). */

void aio_clear(struct call *c, struct fsmodel *m, struct ids *contexts);
struct uring;
void uring_free(struct call *c, struct fsmodel *m, struct uring *u);
/* A request that the present event submits, as the number-th. */
struct request_end request_begin(const struct call *c, uint32_t number);
/*
 * Whether a replay's request would not end so, whatever it does: buffers are its own,
 * and what cancelled the request (another one, its user) does not cancel it again.
 */
bool request_fails_alone(int64_t res);
/* A replay must not make the request as it was submitted. */
void request_push_end(struct call *c, const struct request_end *end, struct value *completion,
		      int64_t res);
/* The descriptors in requests and completions of a call that is not applied. */
void uring_collect(struct call *c);

/* Locks (lock.c). */

/* A descriptor of the file is closed: the POSIX locks of the table go. */
void locks_drop_table(struct call *c, const struct fd_table *t, struct inode *i);
void locks_drop_open(struct call *c, struct open_file *o);
void locks_free(struct fsmodel *m, struct lock_table *t);
/* A call about POSIX locks has been asked: who holds those of its table is made, touched and told. */
void locks_collect(struct call *c);
/* Two calls about locks: whether the first, if it succeeds, could change what is foretold for the other. */
bool locks_overlap(const struct call *first, const struct call *then, struct outcome foretold);
/* The same for events (model.c). */
bool fsmodel_locks_meet(struct fsmodel *m, const struct event *first, const struct event *then);
/* Whether a lock that is in the way of the call's is one of the table, or of an open file in it. */
bool locks_are_of(const struct call *c, const struct fd_table *t);
/* Whether the call found the locks that it must have found, given that its outcome is possible. */
bool locks_fit(const struct call *c, struct outcome foretold);

/* Rows (calls.c). */

struct row_info {
	const struct call_row *calls; /* NULL: touches nothing */
	uint16_t fd_args; /* bit n: argument n is a descriptor */
	uint16_t nested; /* bit n: argument n has descriptors inside */
	uint16_t after; /* of these: looked at when the call has been applied */
	int8_t fd, offset, count, vec, flags; /* positions of what data calls have; -1: none */
	bool makes_fd; /* the result is a descriptor */
	uint32_t meta; /* how a row without functions of its own touches its files */
};

struct grave {
	struct res *res, *heir;
};

struct tables {
	bool tells_starts; /* threads begin with an event */
	struct row_info rows[ROW_ID_MAX];
	struct ids threads; /* by tid */
	struct ids processes; /* by pid */
	struct thread *last; /* of the last event */
	struct stream *passing; /* streams that have had descriptors passed in them */
	struct ids found_opens; /* found_fd.open_file -> struct open_file, borrowed */
	struct map listeners; /* address -> struct open_file, borrowed */
	uint64_t step; /* counts events */
	uint64_t nr_copies, nr_copied; /* of descriptors in other tables: alive, and so far */
	uint32_t next_pid; /* for execute */
	struct handle *root; /* of processes that come from nowhere */
	struct facts quiet; /* of fsmodel_fits(): thrown away */
	struct buf held_room;
	/*
	 * Why the last event did not fit: it read other bytes than this holds, so only another
	 * reader can help; or it opened this FIFO, and only who opens its other end can.
	 */
	const struct stream *contended;
	const struct inode *lonely;
	VEC(struct grave) graves;
	struct outcome result; /* of the call in progress, as apply() knows it */
};

void rows_init(struct row_info *rows);
/* Whether there are descriptors in what the argument describes. */
bool arg_has_fds(const struct arg *arg);

/* Which descriptors stand in the event (refs.c). `after`: those that the call made. */
void refs_collect(struct call *c, const struct row_info *info, bool after);
/* Those of a request and of a completion of io_uring, each in its turn. */
void refs_of_request(struct call *c, struct value *sqe);
void refs_of_completion(struct call *c, struct value *cqe);
/* Whether the descriptors that the call gave out are numbers that it could give. */
bool refs_fit(const struct call *c, const struct row_info *info);

/* Helpers for arguments that may be of any type. */
static inline bool value_get_int(const struct value *v, int64_t *ret)
{
	if (!v || v->type != VALUE_INT)
		return false;
	*ret = v->i;
	return true;
}

static inline int64_t value_int_or(const struct value *v, int64_t otherwise)
{
	return v && v->type == VALUE_INT ? v->i : otherwise;
}

/* Addresses may be stored as numbers or as pointers. */
static inline uint64_t value_addr_or0(const struct value *v)
{
	return v && (v->type == VALUE_INT || v->type == VALUE_ADDR) ? v->u : 0;
}

/* The n-th item of a list (a PTR has one). */
static inline struct value *value_item(const struct value *v, uint32_t n)
{
	return v && v->type == VALUE_LIST && n < v->count ? &v->items[n] : NULL;
}

struct value *arg_at(const struct call *c, unsigned int n);
/* The field of a struct by the name it has in structs.def. */
struct value *field_of(const struct value *v, enum struct_id id, const char *name);

/* Counts a contradiction of the event; the first one's words are kept. */
PRINTF_LIKE(4, 5)
void contradict(struct call *c, enum contradiction kind, bool repaired, const char *fmt, ...);

/* The part of generic calls that other handlers use too. */
extern const struct call_row model_generic, call_new_object;

#endif
