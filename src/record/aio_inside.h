/* SPDX-License-Identifier: MIT */
/* The inside of aio: what its files share. */
#ifndef RECORD_AIO_INSIDE_H
#define RECORD_AIO_INSIDE_H

#include "model/kernel_structs.h"
#include "record/aio.h"
#include "record/aio_requests.h"
#include "record/capture_inside.h"

#define FILE_INDEX_ALLOC UINT32_MAX

struct ring_file { /* in a slot of the ring's own table */
	bool known;
	uint64_t dev, ino, mode;
};

struct ring {
	pid_t pid;
	int fd; /* -1: closed, or never had one; then it goes by a name */
	uint64_t number;
	struct k_io_uring_params p;
	uint64_t sq_addr, cq_addr, sqes_addr; /* 0: not mapped yet */
	uint32_t sq_seen, cq_seen; /* up to where we have looked */
	uint64_t next_request;
	struct ring_file *files;
	uint32_t nr_files;
	bool is_settled; /* polled by the kernel, and nothing unseen in it at the end */
	bool is_hidden; /* from the program, that no thread polls it */
	struct aio_polled polled; /* then */
};

struct ring_name { /* a registered ring: an index of one thread */
	pid_t tid;
	uint32_t index;
	struct ring *ring;
};

struct aio {
	struct requests requests;
	uint64_t next_request;
	VEC(struct ring *) rings;
	VEC(struct ring_name) names;
	uint64_t next_ring;
	uint64_t nr_hidden; /* of rings */
	uint64_t nr_unseen; /* requests */
	bool may_be_more; /* of these */
	uint64_t nr_strange; /* requests of rings that were not seen to be set up */
};

/* Data that a request has read: the first len_bytes of its buffers. */
void aio_push_read(struct capture_job *j, const struct request *req, uint64_t len_bytes,
		   const struct capture_target *t);
/* A copy of what vectors say, for when the call is over; NULL: no vectors. */
struct iovec *aio_copy_iov(const struct value *list, uint32_t *ret_nr);

/* What a ring holds (aio_ring.c). */
MUST_CHECK int ring_take_requests(struct aio *x, struct capture *c, const struct aio_call *call,
				  struct ring *ring, unsigned int arg_no);
/*
 * Requests that a kernel thread has taken and nobody has seen: their number. They
 * count as seen then. False: it could not be read.
 */
bool ring_skip_taken(struct capture *c, struct ring *ring, uint64_t *ret_nr);
/* What the kernel left in the ring will be seen again. */
void ring_give_back_requests(struct aio *x, const struct aio_call *call, struct ring *ring,
			     unsigned int arg_no);
/* Adds to the list; early: the call has not begun. */
MUST_CHECK int ring_take_completions(struct aio *x, struct capture *c, const struct aio_call *call,
				     struct ring *ring, bool early, struct value *list);

/* Calls (aio_uring.c). */
MUST_CHECK int uring_entry(struct aio *x, struct capture *c, const struct aio_call *call);
MUST_CHECK int uring_exit(struct aio *x, struct capture *c, const struct aio_call *call);
/* At the entry of any call. */
void uring_count_unseen(struct aio *x, struct capture *c, const struct aio_call *call);
void uring_forget(struct aio *x, pid_t pid);
void uring_release(struct aio *x);

#endif
