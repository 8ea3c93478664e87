/* SPDX-License-Identifier: MIT */
/*
 * Invariants:
 * 1. The file is a sequence of whole blocks up to good_bytes; after a failed
 *    write it is cut back to that, so that a full disk leaves a readable trace.
 * 2. Batches are written in the order of submission, so that what an event
 *    refers to (blobs, submitted before it) is never younger in the file.
 * 3. A sink that reserves has so much of the disk set aside behind good_bytes
 *    that all that was claimed can be written, packed or not, and then ledger,
 *    index and footer: so a full disk is met before something is taken in.
 * 4. Only the writer's thread touches the file, the index and the totals while
 *    it runs; the lock guards the queue, the free list and the totals' readers.
 */
#include "trace/writer_thread.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/mem.h"
#include "base/varint.h"

#define LEVEL_DEFAULT 1
#define SPARE_BATCHES 5
#define INDEX_ENTRIES_MAX 1024
/*
 * Memory in huge pages is got in a sixth of the time, if it is used whole, and if it is there: where the
 * host of a virtual machine has to find it first, a single one takes up to 10 ms. So only a recording
 * that has written so much gets it.
 */
#define HUGE_FROM_BYTES ((uint64_t)256 << 20)
/*
 * Packing data costs more than writing it, so it is done only while the program
 * does not wait for us. When it had to, this many blocks go out as they are;
 * twice as many the next time, so that a steady rush is hardly held up.
 */
#define RUSH_BLOCKS_MIN 64u
#define RUSH_BLOCKS_MAX 8192u
/*
 * Data that does not pack (it is packed already, or random) costs the more. After a
 * block that kept 15/16 of its size so many are not tried, twice as many the next time.
 */
#define DENSE_BLOCKS_MIN 4u
#define DENSE_BLOCKS_MAX 64u
/* A block that is not packed is written from where it is; a shorter one is copied to those before it. */
#define DIRECT_MIN_BYTES ((size_t)64 << 10)
/* Set aside for what is said at the end, index and footer apart. */
#define END_BYTES ((uint64_t)8 << 10)
/* Reserved at a time: so much of what there is, as what is not needed was for nothing. */
#define RESERVE_SHARE 16
#define RESERVE_MIN_BYTES ((uint64_t)512 << 10)
#define RESERVE_MAX_BYTES ((uint64_t)16 << 20)

struct sink {
	int fd;
	char *path;
	int level;
	bool eager;
	uint64_t
		pack_from_ns; /* data that is written sooner is not packed, unless eager or tight */

	pthread_mutex_t lock;
	pthread_cond_t submitted, freed, idle, reserved;
	struct batch *queue_head, **queue_tail, *free_list;
	unsigned int nr_allocated, nr_allowed;
	bool busy, stop, running;
	bool waited; /* a feed found no free batch since the last look */
	bool hurried; /* somebody waits for the end: data is no longer packed */
	bool tight; /* there is no more room to reserve, so that packing is worth its time */
	pthread_t thread;
	atomic_int error; /* written by the thread, read by feeds; relaxed: only its value counts */

	/*
	 * Invariant 3. Sums since the start: what was claimed, of that what may be
	 * and what was written. Relaxed: a feed that sees an old limit only asks.
	 */
	_Atomic uint64_t claimed, limit, end_left;
	uint64_t max_bytes; /* of the file; 0: no limit */
	void (*begin_thread)(void); /* the caller's; or NULL */
	bool reserves; /* from here on under the lock */
	bool only_counts; /* the file system cannot reserve, but there is a limit */
	bool reserving; /* the writer's thread does, without the lock */
	uint64_t written, used, reserved_to;

	/* Of the writer's thread. */
	struct block_packer *packer;
	struct buf out;
	unsigned int rush_left, rush_next; /* blocks not to pack now, and after the next wait */
	unsigned int dense_next; /* and after the next one that does not pack */
	uint64_t good_bytes;
	struct block_entry index[INDEX_ENTRIES_MAX];
	unsigned int nr_index;
	uint64_t last_index_offset, nr_blocks;
	struct trace_writer_totals totals;
};

int sink_error(const struct sink *k)
{
	return atomic_load_explicit(&k->error, memory_order_relaxed);
}

static void fail(struct sink *k, int r)
{
	/* Nothing more can be done when even this fails: a reader finds the torn block. */
	(void)!ftruncate(k->fd, (off_t)k->good_bytes);
	atomic_store_explicit(&k->error, r, memory_order_relaxed);
}

/* Room. */

bool sink_has_room(const struct sink *k, uint64_t bytes)
{
	uint64_t limit = atomic_load_explicit(&k->limit, memory_order_relaxed);
	uint64_t claimed = atomic_load_explicit(&k->claimed, memory_order_relaxed);

	return claimed <= limit && bytes <= limit - claimed;
}

bool sink_claim(struct sink *k, uint64_t bytes)
{
	uint64_t before = atomic_fetch_add_explicit(&k->claimed, bytes, memory_order_relaxed);

	if (before + bytes <= atomic_load_explicit(&k->limit, memory_order_relaxed))
		return true;
	atomic_fetch_sub_explicit(&k->claimed, bytes, memory_order_relaxed);
	return false;
}

bool sink_claim_end(struct sink *k, uint64_t bytes)
{
	uint64_t left = atomic_load_explicit(&k->end_left, memory_order_relaxed);

	do {
		if (left < bytes)
			return false;
	} while (!atomic_compare_exchange_weak_explicit(
		&k->end_left, &left, left - bytes, memory_order_relaxed, memory_order_relaxed));
	/* It will be given back like everything else. */
	atomic_fetch_add_explicit(&k->claimed, bytes, memory_order_relaxed);
	return true;
}

/* With the lock held, as the next ones. */
static void set_limit(struct sink *k)
{
	if (k->reserves)
		atomic_store_explicit(
			&k->limit,
			k->written + (k->reserved_to > k->used ? k->reserved_to - k->used : 0),
			memory_order_relaxed);
}

/* By the writer's thread, whose the file is: so much is in it, of so much that was claimed. */
static void note_written(struct sink *k, uint64_t cost)
{
	/* Entries of blocks that are written stand in no index yet. */
	k->used = k->good_bytes + k->nr_index * INDEX_ENTRY_BYTES + END_BYTES +
		  3 * BLOCK_COST_BYTES + FOOTER_PAYLOAD_BYTES + INDEX_PREFIX_BYTES;
	k->written += cost;
	set_limit(k);
}

/* A limit of ours is a full disk too, and is asked for each time: it may be changed. */
static int reserve_to(struct sink *k, uint64_t to)
{
	struct rlimit limit;
	int r;

	/* Whole pages: when tmpfs fails here, it gives up a page that was reserved in part before. */
	to += -to & (uint64_t)(getpagesize() - 1);
	if (!getrlimit(RLIMIT_FSIZE, &limit) && limit.rlim_cur != RLIM_INFINITY &&
	    to > limit.rlim_cur)
		return -EFBIG;
	if (k->max_bytes && to > k->max_bytes)
		return -EXFULL;
	do
		r = !k->only_counts && fallocate(k->fd, FALLOC_FL_KEEP_SIZE, (off_t)k->reserved_to,
						 (off_t)(to - k->reserved_to))
			    ? -errno
			    : 0;
	while (r == -EINTR);
	if (!r)
		k->reserved_to = to;
	return r;
}

static uint64_t reserve_step(const struct sink *k)
{
	uint64_t step = k->reserved_to / RESERVE_SHARE;

	if (step < RESERVE_MIN_BYTES)
		return RESERVE_MIN_BYTES;
	return step < RESERVE_MAX_BYTES ? step : RESERVE_MAX_BYTES;
}

static uint64_t lacking(const struct sink *k, uint64_t bytes)
{
	uint64_t limit = atomic_load_explicit(&k->limit, memory_order_relaxed);
	uint64_t wanted = atomic_load_explicit(&k->claimed, memory_order_relaxed) + bytes;

	return wanted > limit ? wanted - limit : 0;
}

/* Halves what it asks for, down to what is needed. */
static int reserve_more(struct sink *k, uint64_t bytes)
{
	uint64_t step = reserve_step(k) > bytes ? reserve_step(k) : bytes;
	int r;

	for (;;) {
		r = reserve_to(k, k->reserved_to + step);
		if (r == -EOPNOTSUPP && k->max_bytes && !k->only_counts) {
			k->only_counts = true;
			continue;
		}
		if (r != -ENOSPC && r != -EDQUOT && r != -EFBIG && r != -EXFULL)
			break;
		if (step == bytes)
			return r;
		step = step / 2 > bytes ? step / 2 : bytes;
	}
	if (r < 0) {
		/* It cannot be had on this file system; then a full disk shows when it is written. */
		k->reserves = false;
		atomic_store_explicit(&k->limit, UINT64_MAX, memory_order_relaxed);
		return 0;
	}
	return 0;
}

int sink_extend(struct sink *k, uint64_t bytes)
{
	uint64_t need;
	int r;

	pthread_mutex_lock(&k->lock);
	while (k->reserving)
		pthread_cond_wait(&k->reserved, &k->lock);
	r = sink_error(k);
	need = lacking(k, bytes);
	if (!r && k->reserves && need)
		r = reserve_more(k, need);
	k->tight |= r < 0;
	set_limit(k);
	pthread_mutex_unlock(&k->lock);
	return r;
}

/*
 * Before a feed has to: that takes its time, and it would wait for our writing besides.
 * Comes and goes with the lock, which others may have meanwhile. What cannot be had
 * now a feed will ask for again, and for less.
 */
static void reserve_ahead(struct sink *k)
{
	if (!k->reserves || sink_error(k) || sink_has_room(k, reserve_step(k) / 2))
		return;
	k->reserving = true;
	pthread_mutex_unlock(&k->lock);
	(void)!reserve_to(k, k->reserved_to + reserve_step(k)); /* see above */
	pthread_mutex_lock(&k->lock);
	k->reserving = false;
	set_limit(k);
	pthread_cond_broadcast(&k->reserved);
}

static int write_vec(int fd, struct iovec *iov, int nr)
{
	while (nr) {
		ssize_t n = writev(fd, iov, nr);

		if (n < 0 && errno == EINTR)
			continue;
		if (n < 0)
			return -errno;
		if (!n)
			return -ENOSPC;
		while (nr && (size_t)n >= iov->iov_len) {
			n -= (ssize_t)iov->iov_len;
			iov++;
			nr--;
		}
		if (nr) {
			iov->iov_base = (char *)iov->iov_base + n;
			iov->iov_len -= (size_t)n;
		}
	}
	return 0;
}

/* Writes what was packed, then `more` (which may be empty). */
static void write_out(struct sink *k, const void *more, size_t more_len)
{
	struct iovec iov[2] = {
		{ .iov_base = k->out.data, .iov_len = k->out.len },
		{ .iov_base = (void *)more, .iov_len = more_len },
	};
	int r;

	if (!sink_error(k) && k->out.len + more_len) {
		r = write_vec(k->fd, iov, more_len ? 2 : 1);
		if (r < 0)
			fail(k, r);
		else
			k->good_bytes += k->out.len + more_len;
	}
	buf_clear(&k->out);
}

static void put_index(struct sink *k);

static void note_entry(struct sink *k, const struct block_entry *e)
{
	k->index[k->nr_index++] = *e;
	k->nr_blocks++;
	if (k->nr_index == INDEX_ENTRIES_MAX)
		put_index(k);
}

/* Packs a block into `out`, or writes a large one that is not packed from where it is. */
static void put_block(struct sink *k, struct block_entry *e, const void *payload, size_t len,
		      int level)
{
	struct block_header h = { .type = e->type, .version = BLOCK_VERSION, .number = e->number };

	e->offset = k->good_bytes + k->out.len;
	if (level <= 0 && len >= DIRECT_MIN_BYTES) {
		h.stored_bytes = h.plain_bytes = (uint32_t)len;
		h.checksum = block_checksum(payload, len);
		block_header_put(buf_reserve(&k->out, BLOCK_HEADER_BYTES), &h);
		k->out.len += BLOCK_HEADER_BYTES;
		e->stored_bytes = (uint32_t)len;
		write_out(k, payload, len);
	} else {
		size_t before = k->out.len;

		block_pack(k->packer, h, payload, len, level, &k->out);
		e->stored_bytes = (uint32_t)(k->out.len - before - BLOCK_HEADER_BYTES);
		if (k->out.len >= BATCH_BYTES)
			write_out(k, NULL, 0);
	}
}

static void put_index(struct sink *k)
{
	struct block_entry own = { .type = BLOCK_INDEX };
	struct buf b = { 0 };
	unsigned int i;
	uint8_t *p;

	p = buf_reserve(&b, INDEX_PREFIX_BYTES + k->nr_index * INDEX_ENTRY_BYTES);
	put_le64(p, k->last_index_offset);
	put_le64(p + 8, k->nr_index);
	for (i = 0; i < k->nr_index; i++)
		block_entry_put(p + INDEX_PREFIX_BYTES + i * INDEX_ENTRY_BYTES, &k->index[i]);
	b.len = INDEX_PREFIX_BYTES + k->nr_index * INDEX_ENTRY_BYTES;
	k->nr_index = 0;
	put_block(k, &own, b.data, b.len, k->level);
	k->last_index_offset = own.offset;
	buf_release(&b);
}

/* Events and records are small and always packed. */
static int level_for(struct sink *k, const struct block_entry *e, bool pack_data)
{
	if (e->type != BLOCK_BLOBS || k->eager)
		return k->level;
	if (k->rush_left) {
		k->rush_left--;
		return 0;
	}
	return pack_data ? k->level : 0;
}

/* With the lock held. */
static bool must_pack_data(const struct sink *k)
{
	return k->tight || k->max_bytes || (!k->hurried && clock_monotonic_ns() >= k->pack_from_ns);
}

static void note_packed(struct sink *k, const struct batch_block *bb, int level)
{
	if (bb->entry.type != BLOCK_BLOBS || k->eager || level <= 0)
		return;
	if (bb->entry.stored_bytes < bb->len_bytes / 16 * 15) {
		k->dense_next = DENSE_BLOCKS_MIN;
		return;
	}
	if (k->rush_left < k->dense_next)
		k->rush_left = k->dense_next;
	k->dense_next = k->dense_next < DENSE_BLOCKS_MAX ? k->dense_next * 2 : DENSE_BLOCKS_MAX;
}

static void note_rush(struct sink *k, bool waited)
{
	if (waited && !k->rush_left) {
		k->rush_left = k->rush_next;
		k->rush_next = k->rush_next < RUSH_BLOCKS_MAX ? k->rush_next * 2 : RUSH_BLOCKS_MAX;
	}
}

static void write_batch(struct sink *k, struct batch *b, bool pack_data)
{
	unsigned int i;

	for (i = 0; i < b->nr_blocks && !sink_error(k); i++) {
		struct batch_block *bb = &b->blocks[i];
		int level = level_for(k, &bb->entry, pack_data);

		put_block(k, &bb->entry, b->bytes + bb->at, bb->len_bytes, level);
		note_packed(k, bb, level);
		note_entry(k, &bb->entry);
	}
	write_out(k, NULL, 0);
}

static void count_batch(struct sink *k, const struct batch *b)
{
	unsigned int i;

	for (i = 0; i < b->nr_blocks; i++) {
		const struct batch_block *bb = &b->blocks[i];

		if (bb->entry.type == BLOCK_EVENTS)
			k->totals.nr_events += bb->entry.nr_events;
		k->totals.nr_blobs += bb->nr_blobs;
		if (bb->nr_blobs)
			k->totals.blob_bytes += bb->len_bytes - bb->nr_blobs * BLOB_PREFIX_BYTES;
	}
	k->totals.file_bytes = k->good_bytes;
}

/* As its feed has claimed it. */
static uint64_t cost_of(const struct batch *b)
{
	uint64_t cost = 0;
	unsigned int i;

	for (i = 0; i < b->nr_blocks; i++)
		cost += b->blocks[i].len_bytes + BLOCK_COST_BYTES;
	return cost;
}

static void free_room(struct batch *b)
{
	if (b->is_huge)
		huge_free(b->bytes, b->room_bytes);
	else
		free(b->bytes);
}

static void give_room(struct batch *b, size_t room_bytes, bool huge)
{
	if (b->room_bytes == room_bytes && b->is_huge == huge)
		return;
	free_room(b);
	b->bytes = huge ? huge_alloc(room_bytes) : xmalloc(room_bytes);
	b->room_bytes = room_bytes;
	b->ready_bytes = 0;
	b->is_huge = huge;
}

#ifndef MADV_POPULATE_WRITE
#define MADV_POPULATE_WRITE 23 /* since Linux 5.14 */
#endif

void sink_ready_batch(struct batch *b, size_t upto)
{
	uintptr_t page = (uintptr_t)getpagesize(), from, to;

	if (b->is_huge || upto <= b->ready_bytes || upto > b->room_bytes)
		return;
	from = ((uintptr_t)b->bytes + b->ready_bytes) & ~(page - 1);
	to = ((uintptr_t)b->bytes + upto) & ~(page - 1);
	b->ready_bytes = upto;
	if (to > from) /* where it is not known it comes page by page */
		(void)madvise((void *)from, to - from, MADV_POPULATE_WRITE);
}

static void recycle(struct sink *k, struct batch *b)
{
	/* One huge event must not leave a huge batch behind. */
	give_room(b, BATCH_ROOM, b->is_huge);
	b->len_bytes = 0;
	b->nr_blocks = 0;
	b->next = k->free_list;
	k->free_list = b;
	pthread_cond_signal(&k->freed);
}

static void *sink_main(void *arg)
{
	struct sink *k = arg;
	struct batch *b;

	if (k->begin_thread)
		k->begin_thread();
	pthread_mutex_lock(&k->lock);
	for (;;) {
		bool waited, pack_data;

		while (!k->queue_head && !k->stop)
			pthread_cond_wait(&k->submitted, &k->lock);
		b = k->queue_head;
		if (!b)
			break;
		k->queue_head = b->next;
		if (!b->next)
			k->queue_tail = &k->queue_head;
		waited = k->waited;
		k->waited = false;
		pack_data = must_pack_data(k);
		k->busy = true;
		pthread_mutex_unlock(&k->lock);

		note_rush(k, waited);
		write_batch(k, b, pack_data);

		pthread_mutex_lock(&k->lock);
		if (!sink_error(k))
			count_batch(k, b);
		note_written(k, cost_of(b));
		recycle(k, b);
		reserve_ahead(k);
		k->busy = false;
		if (!k->queue_head)
			pthread_cond_broadcast(&k->idle);
	}
	pthread_mutex_unlock(&k->lock);
	return NULL;
}

struct batch *sink_take_batch(struct sink *k, size_t room_bytes)
{
	struct batch *b;
	bool huge;

	pthread_mutex_lock(&k->lock);
	while (!k->free_list && k->nr_allocated >= k->nr_allowed) {
		k->waited = true;
		pthread_cond_wait(&k->freed, &k->lock);
	}
	b = k->free_list;
	if (b)
		k->free_list = b->next;
	else
		k->nr_allocated++;
	huge = (b && b->is_huge) || k->totals.file_bytes >= HUGE_FROM_BYTES;
	pthread_mutex_unlock(&k->lock);
	if (!b) {
		b = xmalloc(sizeof(*b)); /* its blocks are written when they are added */
		memset(b, 0, offsetof(struct batch, blocks));
	}
	give_room(b, room_bytes > BATCH_ROOM ? room_bytes : BATCH_ROOM, huge);
	b->next = NULL;
	return b;
}

void sink_submit(struct sink *k, struct batch *b)
{
	pthread_mutex_lock(&k->lock);
	*k->queue_tail = b;
	k->queue_tail = &b->next;
	pthread_cond_signal(&k->submitted);
	pthread_mutex_unlock(&k->lock);
}

void sink_add_feed(struct sink *k)
{
	pthread_mutex_lock(&k->lock);
	k->nr_allowed += 2;
	pthread_mutex_unlock(&k->lock);
}

void sink_hurry(struct sink *k)
{
	pthread_mutex_lock(&k->lock);
	k->hurried = true;
	pthread_mutex_unlock(&k->lock);
}

int sink_wait_idle(struct sink *k, struct err *err)
{
	pthread_mutex_lock(&k->lock);
	while (k->queue_head || k->busy)
		pthread_cond_wait(&k->idle, &k->lock);
	pthread_mutex_unlock(&k->lock);
	if (sink_error(k))
		return err_set(err, sink_error(k), "cannot write %s", k->path);
	return 0;
}

const char *sink_path(const struct sink *k)
{
	return k->path;
}

void sink_totals(struct sink *k, struct trace_writer_totals *ret)
{
	pthread_mutex_lock(&k->lock);
	*ret = k->totals;
	pthread_mutex_unlock(&k->lock);
}

static void sink_free(struct sink *k)
{
	while (k->free_list) {
		struct batch *b = k->free_list;

		k->free_list = b->next;
		free_room(b);
		free(b);
	}
	if (k->fd >= 0)
		(void)close(k->fd); /* sink_close() has closed it already where it matters */
	block_packer_free(k->packer);
	buf_release(&k->out);
	pthread_mutex_destroy(&k->lock);
	pthread_cond_destroy(&k->submitted);
	pthread_cond_destroy(&k->freed);
	pthread_cond_destroy(&k->idle);
	pthread_cond_destroy(&k->reserved);
	free(k->path);
	free(k);
}

static int open_existing(const char *path, struct err *err)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC);

	return fd < 0 ? err_set(err, -errno, "cannot open %s", path) : fd;
}

int sink_open(const char *path, const struct trace_writer_options *options, struct sink **ret,
	      struct err *err)
{
	struct sink *k;
	int fd;

	if (!strcmp(path, "-"))
		return err_set(
			err, -EINVAL,
			"a trace or plan cannot be written to standard output: name a file (./- for one named -)");
	fd = options->existing ? open_existing(path, err)
			       : io_create_file(path, options->replace, options->file_mode, err);
	if (fd == -EEXIST && options->replace)
		return err_set(err, -EEXIST, "cannot replace %s, which is no plain file", path);
	if (fd == -EEXIST)
		return err_set(err, -EEXIST, "cannot create %s", path);
	if (fd < 0)
		return fd;
	k = xcalloc(1, sizeof(*k));
	k->fd = fd;
	k->path = xstrdup(path);
	k->level = options->level ? options->level : LEVEL_DEFAULT;
	k->eager = options->eager;
	k->pack_from_ns = clock_monotonic_ns() + options->pack_after_ns;
	k->queue_tail = &k->queue_head;
	k->nr_allowed = SPARE_BATCHES;
	k->reserves = options->reserve;
	k->max_bytes = options->max_bytes;
	k->begin_thread = options->begin_thread;
	k->limit = UINT64_MAX;
	k->end_left = END_BYTES;
	k->rush_next = RUSH_BLOCKS_MIN;
	k->dense_next = DENSE_BLOCKS_MIN;
	k->packer = block_packer_new();
	pthread_mutex_init(&k->lock, NULL);
	pthread_cond_init(&k->submitted, NULL);
	pthread_cond_init(&k->freed, NULL);
	pthread_cond_init(&k->idle, NULL);
	pthread_cond_init(&k->reserved, NULL);
	*ret = k;
	return 0;
}

/* Signals are for the thread that made this one: what that holds back waits for it. */
static int start_thread(struct sink *k)
{
	sigset_t all, old;
	int r;

	sigfillset(&all);
	(void)pthread_sigmask(SIG_SETMASK, &all, &old);
	r = pthread_create(&k->thread, NULL, sink_main, k);
	(void)pthread_sigmask(SIG_SETMASK, &old, NULL);
	return r;
}

int sink_start(struct sink *k, const void *schema, size_t schema_len, struct err *err)
{
	struct block_entry file = { .type = BLOCK_FILE }, described = { .type = BLOCK_SCHEMA };
	uint8_t payload[FILE_PAYLOAD_BYTES] = "reprise trace\n";
	int r;

	put_le32(payload + 16, TRACE_FORMAT_VERSION);
	put_block(k, &file, payload, sizeof(payload), 0);
	put_block(k, &described, schema, schema_len, k->level);
	write_out(k, NULL, 0);
	if (sink_error(k))
		return err_set(err, sink_error(k), "cannot write %s", k->path);
	note_entry(k, &file);
	note_entry(k, &described);
	k->reserved_to = k->good_bytes;
	note_written(k, 0);
	r = sink_extend(k, 2 * END_BYTES);
	if (r == -EXFULL)
		return err_set(err, -EFBIG, "%s may have %llu bytes, which is too few", k->path,
			       (unsigned long long)k->max_bytes);
	if (r)
		return err_set(err, r, "cannot write %s", k->path);
	r = start_thread(k);
	if (r)
		return err_set(err, -r, "cannot start the writer's thread");
	k->running = true;
	return 0;
}

static void put_footer(struct sink *k, uint64_t nr_streams, uint64_t nr_losses)
{
	struct block_entry own = { .type = BLOCK_FOOTER };
	uint8_t payload[FOOTER_PAYLOAD_BYTES];
	struct footer f = {
		.nr_blocks = k->nr_blocks,
		.nr_events = k->totals.nr_events,
		.nr_streams = nr_streams,
		.nr_blobs = k->totals.nr_blobs,
		.blob_bytes = k->totals.blob_bytes,
		.nr_losses = nr_losses,
	};

	if (k->nr_index)
		put_index(k);
	f.index_offset = k->last_index_offset;
	f.own_offset = k->good_bytes + k->out.len;
	footer_put(payload, &f);
	put_block(k, &own, payload, sizeof(payload), 0);
	write_out(k, NULL, 0);
}

int sink_close(struct sink *k, bool finish, uint64_t nr_streams, uint64_t nr_losses,
	       struct err *err)
{
	int r;

	if (k->running) {
		pthread_mutex_lock(&k->lock);
		k->stop = true;
		pthread_cond_signal(&k->submitted);
		pthread_mutex_unlock(&k->lock);
		pthread_join(k->thread, NULL);
	}
	if (finish && !sink_error(k))
		put_footer(k, nr_streams, nr_losses);
	r = sink_error(k);
	/* What was reserved and not needed; it is no harm but to the disk when this fails. */
	if (!r && !k->only_counts && k->reserved_to > k->good_bytes)
		(void)!ftruncate(k->fd, (off_t)k->good_bytes);
	/* Some file systems report a full disk only now. */
	if (close(fd_take(&k->fd)) < 0 && !r)
		r = -errno;
	if (r)
		err_set(err, r, "cannot write %s", k->path);
	sink_free(k);
	return r;
}
