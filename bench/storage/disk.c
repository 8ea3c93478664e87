// SPDX-License-Identifier: MIT
#include "disk.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/fuse.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdlib.h>
#include <stdnoreturn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/histogram.h"
#include "base/io.h"
#include "base/json.h"
#include "base/mem.h"

#define PAGE_BYTES 4096u
#define MAX_IO_BYTES (1u << 20)
#define MAX_IN_FLIGHT 1024
/* The kernel wants room for the largest write and its headers. */
#define BUFFER_BYTES (MAX_IO_BYTES + 2 * PAGE_BYTES)

/* A request that the model has. */
struct pending {
	uint64_t unique;
	uint64_t offset;
	uint32_t bytes;
	bool is_read, is_write;
	uint32_t next_free;
};

struct server {
	int fd;
	uint8_t *bytes;
	const struct disk_shared *shared;
	struct model model;
	VEC(struct pending) pending;
	uint32_t free_pending;
	uint64_t nr_reads, nr_writes, nr_flushes, bytes_read, bytes_written;
	struct histogram late_ns;
};

static const uint8_t zeros[PAGE_BYTES];

/* Replies. A request whose caller was killed is gone: nothing to be done about that. */

static void reply(const struct server *s, uint64_t unique, int error, const void *p, size_t len)
{
	struct fuse_out_header header = { .len = (uint32_t)(sizeof(header) + len),
					  .error = error,
					  .unique = unique };
	struct iovec iov[] = { { &header, sizeof(header) }, { (void *)p, len } };
	ssize_t n = writev(s->fd, iov, len ? 2 : 1);

	(void)n;
}

static void reply_io(const struct server *s, const struct pending *p)
{
	struct fuse_write_out written = { .size = p->bytes };

	if (p->is_read)
		reply(s, p->unique, 0, s->bytes + p->offset, p->bytes);
	else if (p->is_write)
		reply(s, p->unique, 0, &written, sizeof(written));
	else
		reply(s, p->unique, 0, NULL, 0);
}

/* Memory. */

static void store(struct server *s, uint64_t offset, const uint8_t *p, size_t len)
{
	size_t n;

	for (; len; offset += n, p += n, len -= n) {
		n = PAGE_BYTES - offset % PAGE_BYTES;
		if (n > len)
			n = len;
		if (n == PAGE_BYTES && !memcmp(p, zeros, PAGE_BYTES))
			madvise(s->bytes + offset, PAGE_BYTES, MADV_DONTNEED);
		else
			memcpy(s->bytes + offset, p, n);
	}
}

/* Requests. */

static void submit(struct server *s, enum model_op op, struct pending p, uint64_t now_ns)
{
	uint32_t nr = s->free_pending;

	if (!atomic_load_explicit(&s->shared->timed, memory_order_relaxed)) {
		reply_io(s, &p);
		return;
	}
	if (nr == UINT32_MAX) {
		nr = (uint32_t)s->pending.len;
		VEC_PUSH(&s->pending, p);
	} else {
		s->free_pending = s->pending.items[nr].next_free;
		s->pending.items[nr] = p;
	}
	model_submit(&s->model, op, p.offset, p.bytes, now_ns, nr);
}

/* How much of a request lies on the disk. */
static uint32_t clip(const struct server *s, uint64_t offset, uint32_t bytes)
{
	uint64_t size = s->model.params.size_bytes;

	if (offset >= size)
		return 0;
	return bytes > size - offset ? (uint32_t)(size - offset) : bytes;
}

static void take_read(struct server *s, const struct fuse_in_header *in, uint64_t now_ns)
{
	const struct fuse_read_in *arg = (const void *)(in + 1);
	struct pending p = { .unique = in->unique,
			     .offset = arg->offset,
			     .bytes = clip(s, arg->offset, arg->size),
			     .is_read = true };

	if (!p.bytes) {
		reply(s, in->unique, 0, NULL, 0);
		return;
	}
	s->nr_reads++;
	s->bytes_read += p.bytes;
	submit(s, MODEL_READ, p, now_ns);
}

static void take_write(struct server *s, const struct fuse_in_header *in, uint64_t now_ns)
{
	const struct fuse_write_in *arg = (const void *)(in + 1);
	struct pending p = { .unique = in->unique,
			     .offset = arg->offset,
			     .bytes = clip(s, arg->offset, arg->size),
			     .is_write = true };

	if (!p.bytes) {
		reply(s, in->unique, -ENOSPC, NULL, 0);
		return;
	}
	store(s, p.offset, (const uint8_t *)(arg + 1), p.bytes);
	s->nr_writes++;
	s->bytes_written += p.bytes;
	submit(s, MODEL_WRITE, p, now_ns);
}

static void take_flush(struct server *s, const struct fuse_in_header *in, uint64_t now_ns)
{
	s->nr_flushes++;
	submit(s, MODEL_FLUSH, (struct pending){ .unique = in->unique }, now_ns);
}

static void take_init(const struct server *s, const struct fuse_in_header *in)
{
	const struct fuse_init_in *arg = (const void *)(in + 1);
	struct fuse_init_out out = {
		.major = FUSE_KERNEL_VERSION,
		.minor = FUSE_KERNEL_MINOR_VERSION,
		.max_readahead = arg->max_readahead,
		.flags = arg->flags &
			 (FUSE_ASYNC_READ | FUSE_BIG_WRITES | FUSE_ASYNC_DIO | FUSE_MAX_PAGES),
		.max_background = MAX_IN_FLIGHT,
		.congestion_threshold = MAX_IN_FLIGHT,
		.max_write = MAX_IO_BYTES,
		.max_pages = MAX_IO_BYTES / PAGE_BYTES,
	};

	reply(s, in->unique, 0, &out, sizeof(out));
}

static void take_getattr(const struct server *s, const struct fuse_in_header *in)
{
	struct fuse_attr_out out = { .attr_valid = 3600,
				     .attr = { .ino = FUSE_ROOT_ID,
					       .size = s->model.params.size_bytes,
					       .blocks = s->model.params.size_bytes / 512,
					       .mode = S_IFREG | 0600,
					       .nlink = 1,
					       .blksize = PAGE_BYTES } };

	reply(s, in->unique, 0, &out, sizeof(out));
}

static void take_open(const struct server *s, const struct fuse_in_header *in)
{
	struct fuse_open_out out = { .open_flags = FOPEN_DIRECT_IO };

#ifdef FOPEN_PARALLEL_DIRECT_WRITES
	out.open_flags |= FOPEN_PARALLEL_DIRECT_WRITES;
#else
	out.open_flags |= 1 << 6; /* the same, for older headers */
#endif
	reply(s, in->unique, 0, &out, sizeof(out));
}

static void take_request(struct server *s, const struct fuse_in_header *in, uint64_t now_ns)
{
	const struct fuse_statfs_out statfs = { .st = { .bsize = PAGE_BYTES, .namelen = 255 } };

	switch (in->opcode) {
	case FUSE_INIT:
		take_init(s, in);
		break;
	case FUSE_GETATTR:
		take_getattr(s, in);
		break;
	case FUSE_OPEN:
		take_open(s, in);
		break;
	case FUSE_READ:
		take_read(s, in, now_ns);
		break;
	case FUSE_WRITE:
		take_write(s, in, now_ns);
		break;
	case FUSE_FSYNC:
		take_flush(s, in, now_ns);
		break;
	case FUSE_STATFS:
		reply(s, in->unique, 0, &statfs, sizeof(statfs));
		break;
	case FUSE_FLUSH:
	case FUSE_RELEASE:
	case FUSE_DESTROY:
	case FUSE_ACCESS:
		reply(s, in->unique, 0, NULL, 0);
		break;
	case FUSE_FORGET:
	case FUSE_BATCH_FORGET:
	case FUSE_INTERRUPT: /* what was asked for comes soon enough */
		break;
	default:
		reply(s, in->unique, -ENOSYS, NULL, 0);
	}
}

/* All that has come. False: the mount is gone. */
static bool take_requests(struct server *s, uint8_t *buffer)
{
	ssize_t n;

	for (;;) {
		n = read(s->fd, buffer, BUFFER_BYTES);
		if (n >= (ssize_t)sizeof(struct fuse_in_header))
			take_request(s, (const void *)buffer, clock_monotonic_ns());
		else if (n < 0 && errno == EAGAIN)
			return true;
		else if (n >= 0 || (errno != EINTR && errno != ENOENT))
			return false;
	}
}

static void answer_done(struct server *s)
{
	uint64_t now_ns, nr, done_ns;

	for (;;) {
		now_ns = clock_monotonic_ns();
		if (!model_take_done(&s->model, now_ns, &nr, &done_ns))
			return;
		reply_io(s, &s->pending.items[nr]);
		histogram_add(&s->late_ns, clock_sub_ns(clock_monotonic_ns(), done_ns));
		s->pending.items[nr].next_free = s->free_pending;
		s->free_pending = (uint32_t)nr;
	}
}

/* False: the mount is gone. */
static bool wait_for_work(const struct server *s)
{
	struct pollfd pfd = { .fd = s->fd, .events = POLLIN };
	uint64_t next_ns = model_next_ns(&s->model);
	struct timespec wait = clock_timespec_from_ns(clock_sub_ns(next_ns, clock_monotonic_ns()));

	ppoll(&pfd, 1, next_ns == UINT64_MAX ? NULL : &wait, NULL);
	return !(pfd.revents & POLLERR);
}

/* The end. */

static void put_back_settings(const struct disk_shared *shared)
{
	unsigned int i = atomic_load(&shared->nr_settings);

	while (i--) {
		int fd = open(shared->settings[i].path, O_WRONLY | O_CLOEXEC);

		if (fd >= 0) {
			(void)!write_full(fd, shared->settings[i].value,
					  strlen(shared->settings[i].value));
			close(fd);
		}
	}
}

static void put_report(const struct server *s, int fd)
{
	struct buf b = { 0 };
	struct json w;
	uint64_t i, busy_ns = 0;

	for (i = 0; i < s->model.params.nr_servers; i++)
		busy_ns += s->model.servers[i].busy_ns;
	json_init_buf(&w, &b, JSON_COMPACT);
	json_object_begin(&w);
	json_kv_u64(&w, "reads", s->nr_reads);
	json_kv_u64(&w, "writes", s->nr_writes);
	json_kv_u64(&w, "flushes", s->nr_flushes);
	json_kv_u64(&w, "bytes_read", s->bytes_read);
	json_kv_u64(&w, "bytes_written", s->bytes_written);
	json_kv_u64(&w, "timed_requests", s->late_ns.count);
	json_kv_u64(&w, "busy_ns", busy_ns);
	json_key(&w, "late_ns");
	json_object_begin(&w);
	json_kv_double(&w, "mean", histogram_mean(&s->late_ns));
	json_kv_u64(&w, "p50", histogram_percentile(&s->late_ns, 50));
	json_kv_u64(&w, "p99", histogram_percentile(&s->late_ns, 99));
	json_kv_u64(&w, "max", s->late_ns.max);
	json_object_end(&w);
	json_object_end(&w);
	json_release(&w);
	(void)!write_full(fd, b.data, b.len);
	buf_release(&b);
}

/* Until the mount is gone. */
static void serve(int fuse_fd, int report_fd, const struct model_params *params,
		  const struct disk_shared *shared)
{
	struct server s = { .fd = fuse_fd, .shared = shared, .free_pending = UINT32_MAX };
	uint8_t *buffer = xmalloc(BUFFER_BYTES);

	model_init(&s.model, params);
	s.bytes = mmap(NULL, params->size_bytes, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
	if (s.bytes != MAP_FAILED) {
		while (take_requests(&s, buffer) && wait_for_work(&s))
			answer_done(&s);
	}
	put_back_settings(shared);
	put_report(&s, report_fd);
	model_release(&s.model);
	histogram_release(&s.late_ns);
	VEC_RELEASE(&s.pending);
	free(buffer);
}

/* Answers in time need the processor when they are due; where that is not allowed, lateness shows. */
static void ask_for_precision(void)
{
	const struct sched_param first = { .sched_priority = 50 };
	const uint32_t no_latency = 0;
	int fd = open("/dev/cpu_dma_latency", O_WRONLY);

	prctl(PR_SET_TIMERSLACK, 1);
	(void)!sched_setscheduler(0, SCHED_FIFO, &first);
	/* Holds as long as it is open. */
	if (fd >= 0)
		(void)!write_full(fd, &no_latency, sizeof(no_latency));
}

/* Nothing of the caller's is kept, lest somebody wait for its end. */
static void leave_caller(const int keep[3])
{
	int null_fd = open("/dev/null", O_RDWR), fd;

	setsid();
	if (chdir("/"))
		_exit(1);
	signal(SIGPIPE, SIG_IGN);
	for (fd = 0; fd < 3; fd++)
		dup2(null_fd, fd);
	for (fd = 3; fd < 1024; fd++) {
		if (fd != keep[0] && fd != keep[1] && fd != keep[2])
			close(fd);
	}
}

static noreturn void run_daemon(const struct disk *d, int go_fd, int report_fd,
				const struct model_params *params)
{
	char c;

	leave_caller((const int[]){ d->fuse_fd, go_fd, report_fd });
	ask_for_precision();
	(void)!read(go_fd, &c, 1);
	serve(d->fuse_fd, report_fd, params, d->shared);
	_exit(0);
}

int disk_start(const struct model_params *params, struct disk *ret, struct err *err)
{
	int report[2], go[2];

	*ret = (struct disk){ .fuse_fd = -1, .report_fd = -1, .go_fd = -1 };
	ret->shared = mmap(NULL, sizeof(*ret->shared), PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_ANONYMOUS, -1, 0);
	if (ret->shared == MAP_FAILED)
		return err_set(err, -errno, "cannot share memory");
	ret->fuse_fd = open("/dev/fuse", O_RDWR | O_NONBLOCK | O_CLOEXEC);
	if (ret->fuse_fd < 0)
		return err_set(err, -errno, "cannot open /dev/fuse");
	if (pipe2(report, O_CLOEXEC) || pipe2(go, O_CLOEXEC))
		return err_set(err, -errno, "cannot make a pipe");
	ret->report_fd = report[0];
	ret->go_fd = go[1];
	ret->pid = fork();
	if (!ret->pid)
		run_daemon(ret, go[0], report[1], params);
	close(report[1]);
	close(go[0]);
	return ret->pid < 0 ? err_set(err, -errno, "cannot fork") : 0;
}
