/* SPDX-License-Identifier: MIT */
/* What is registered with an io_uring, and requests that use it. */
#include <fcntl.h>
#include <linux/io_uring.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <unistd.h>

#include "lib.h"

#define PAGE 4096

/* Younger than the headers of some systems. */
struct buf_reg {
	uint64_t ring_addr;
	uint32_t ring_entries;
	uint16_t bgid, flags;
	uint64_t resv[3];
};

struct clone_buffers {
	uint32_t src_fd, flags, src_off, dst_off, nr, pad[3];
};

struct file_index_range {
	uint32_t off, len;
	uint64_t resv;
};

#define OP_PBUF_RING 22
#define OP_UNREG_PBUF_RING 23
#define OP_FILE_ALLOC_RANGE 25
#define OP_CLONE_BUFFERS 30
#define OP_RESIZE_RINGS 33

static int ring;
static char memory[4 * PAGE] __attribute__((aligned(PAGE)));

static void buffers(void)
{
	struct iovec iov[2] = { { memory, PAGE }, { memory + PAGE, 100 } };
	struct io_uring_rsrc_register reg = { .nr = 1, .data = (uintptr_t)iov };
	struct io_uring_rsrc_update2 up = { .offset = 0, .nr = 1, .data = (uintptr_t)(iov + 1) };
	uint64_t tags[1] = { 0 };
	long r;

	expect("io_uring_register_buffers(fd=%d, opcode=IORING_REGISTER_BUFFERS, arg=[{iov_base=%s, iov_len=4096}, {iov_base=%s, iov_len=100}], nr_args=2) = 0",
	       ring, addr(memory), addr(memory + PAGE));
	t_ok(sys(io_uring_register, ring, IORING_REGISTER_BUFFERS, iov, 2));
	expect("io_uring_register_buffers(fd=%d, arg=*, nr_args=2) = -1 EBUSY", ring);
	t_fails(sys(io_uring_register, ring, IORING_REGISTER_BUFFERS, iov, 2), EBUSY);
	expect("io_uring_unregister_buffers(fd=%d, opcode=IORING_UNREGISTER_BUFFERS) = 0", ring);
	t_ok(sys(io_uring_register, ring, IORING_UNREGISTER_BUFFERS, NULL, 0));
	expect("io_uring_unregister_buffers(fd=%d) = -1 ENXIO", ring);
	t_fails(sys(io_uring_register, ring, IORING_UNREGISTER_BUFFERS, NULL, 0), ENXIO);
	reg.tags = (uintptr_t)tags;
	r = sys(io_uring_register, ring, IORING_REGISTER_BUFFERS2, &reg, sizeof(reg));
	expect("io_uring_register_buffers2(fd=%d, opcode=IORING_REGISTER_BUFFERS2, arg={nr=1, flags=0, data=[{iov_base=%s, iov_len=4096}], tags=[0]}, nr_args=32) = %s",
	       ring, addr(memory), outcome(r));
	r = sys(io_uring_register, ring, IORING_REGISTER_BUFFERS_UPDATE, &up, sizeof(up));
	expect("io_uring_register_buffers_update(fd=%d, opcode=IORING_REGISTER_BUFFERS_UPDATE, arg={nr=1, offset=0, data=[{iov_base=%s, iov_len=100}], tags=NULL}, nr_args=32) = %s",
	       ring, addr(memory + PAGE), outcome(r));
}

static void files(int a, int b)
{
	int list[3] = { a, -1, b }, one[1] = { b };
	struct io_uring_files_update up = { .offset = 1, .fds = (uintptr_t)one };
	struct io_uring_rsrc_register reg = { .nr = 2, .data = (uintptr_t)list };
	struct io_uring_rsrc_update2 up2 = { .offset = 1, .nr = 1, .data = (uintptr_t)one };
	struct file_index_range range = { 0, 2, 0 };
	long r;

	expect("io_uring_register_files(fd=%d, opcode=IORING_REGISTER_FILES, arg=[%d, -1, %d], nr_args=3) = 0",
	       ring, a, b);
	t_ok(sys(io_uring_register, ring, IORING_REGISTER_FILES, list, 3));
	expect("io_uring_register_files_update(fd=%d, opcode=IORING_REGISTER_FILES_UPDATE, arg={offset=1, fds=[%d]}, nr_args=1) = 1",
	       ring, b);
	t_is(sys(io_uring_register, ring, IORING_REGISTER_FILES_UPDATE, &up, 1), 1);
	expect("io_uring_unregister_files(fd=%d, opcode=IORING_UNREGISTER_FILES) = 0", ring);
	t_ok(sys(io_uring_register, ring, IORING_UNREGISTER_FILES, NULL, 0));
	r = sys(io_uring_register, 999, IORING_REGISTER_FILES, list, 1);
	expect("io_uring_register_files(fd=999, arg=[%d], nr_args=1) = %s", a, outcome(r));
	r = sys(io_uring_register, ring, IORING_REGISTER_FILES2, &reg, sizeof(reg));
	expect("io_uring_register_files2(fd=%d, opcode=IORING_REGISTER_FILES2, arg={nr=2, flags=0, data=[%d, -1], tags=NULL}, nr_args=32) = %s",
	       ring, a, outcome(r));
	r = sys(io_uring_register, ring, IORING_REGISTER_FILES_UPDATE2, &up2, sizeof(up2));
	expect("io_uring_register_files_update2(fd=%d, opcode=IORING_REGISTER_FILES_UPDATE2, arg={nr=1, offset=1, data=[%d], tags=NULL}, nr_args=32) = %s",
	       ring, b, outcome(r));
	r = sys(io_uring_register, ring, OP_FILE_ALLOC_RANGE, &range, 0);
	expect("io_uring_register_file_alloc_range(fd=%d, opcode=IORING_REGISTER_FILE_ALLOC_RANGE, arg={off=0, len=2}, nr_args=0) = %s",
	       ring, outcome(r));
}

static void events(int event_fd)
{
	expect("io_uring_register_eventfd(fd=%d, opcode=IORING_REGISTER_EVENTFD, arg=[%d], nr_args=1) = 0",
	       ring, event_fd);
	t_ok(sys(io_uring_register, ring, IORING_REGISTER_EVENTFD, &event_fd, 1));
	expect("io_uring_unregister_eventfd(fd=%d, opcode=IORING_UNREGISTER_EVENTFD) = 0", ring);
	t_ok(sys(io_uring_register, ring, IORING_UNREGISTER_EVENTFD, NULL, 0));
	expect("io_uring_unregister_eventfd(fd=%d) = -1 ENXIO", ring);
	t_fails(sys(io_uring_register, ring, IORING_UNREGISTER_EVENTFD, NULL, 0), ENXIO);
	expect("io_uring_register_eventfd_async(fd=%d, opcode=IORING_REGISTER_EVENTFD_ASYNC, arg=[%d], nr_args=1) = 0",
	       ring, event_fd);
	t_ok(sys(io_uring_register, ring, IORING_REGISTER_EVENTFD_ASYNC, &event_fd, 1));
}

static void itself(void)
{
	static char probe[sizeof(struct io_uring_probe) + 64 * sizeof(struct io_uring_probe_op)];
	unsigned int workers[2] = { 5, 6 };
	struct io_uring_rsrc_update up = { .offset = ~0u, .data = (uint64_t)ring };
	long id, r;

	expect("io_uring_register_probe(fd=%d, opcode=IORING_REGISTER_PROBE, arg=%s, nr_args=64) = 0",
	       ring, addr(probe));
	t_ok(sys(io_uring_register, ring, IORING_REGISTER_PROBE, probe, 64));
	id = t_ok(sys(io_uring_register, ring, IORING_REGISTER_PERSONALITY, NULL, 0));
	expect("io_uring_register_personality(fd=%d, opcode=IORING_REGISTER_PERSONALITY) = %ld",
	       ring, id);
	expect("io_uring_unregister_personality(fd=%d, opcode=IORING_UNREGISTER_PERSONALITY, nr_args=%ld) = 0",
	       ring, id);
	t_ok(sys(io_uring_register, ring, IORING_UNREGISTER_PERSONALITY, NULL, id));
	expect("io_uring_register_enable_rings(fd=%d, opcode=IORING_REGISTER_ENABLE_RINGS) = -1 EBADFD",
	       ring);
	t_fails(sys(io_uring_register, ring, IORING_REGISTER_ENABLE_RINGS, NULL, 0), EBADFD);
	expect("io_uring_register_iowq_max_workers(fd=%d, opcode=IORING_REGISTER_IOWQ_MAX_WORKERS, arg=[5, 6], nr_args=2) = 0",
	       ring);
	t_ok(sys(io_uring_register, ring, IORING_REGISTER_IOWQ_MAX_WORKERS, workers, 2));
	r = t_is(sys(io_uring_register, ring, IORING_REGISTER_RING_FDS, &up, 1), 1);
	expect("io_uring_register_ring_fds(fd=%d, opcode=IORING_REGISTER_RING_FDS, arg=[{offset=%u, data=%d}], nr_args=1) = %ld",
	       ring, up.offset, ring, r);
	expect("io_uring_enter(fd=%u, to_submit=0, min_complete=0, flags=IORING_ENTER_REGISTERED_RING) = 0",
	       up.offset);
	t_is(sys(io_uring_enter, up.offset, 0, 0, 1u << 4, NULL, 0), 0);
	up.data = 0;
	expect("io_uring_unregister_ring_fds(fd=%d, opcode=IORING_UNREGISTER_RING_FDS, arg=[{offset=%u, data=0}], nr_args=1) = 1",
	       ring, up.offset);
	t_is(sys(io_uring_register, ring, IORING_UNREGISTER_RING_FDS, &up, 1), 1);
	r = sys(io_uring_register, ring, IORING_REGISTER_IOWQ_AFF, NULL, 0);
	expect("io_uring_register(fd=%d, opcode=IORING_REGISTER_IOWQ_AFF, arg=0, nr_args=0) = %s",
	       ring, outcome(r));
}

static void younger(int second)
{
	struct buf_reg reg = { (uintptr_t)(memory + 2 * PAGE), 16, 7, 0, { 0 } };
	struct clone_buffers clone = { .src_fd = (uint32_t)ring };
	struct io_uring_params resize = { .sq_entries = 16, .cq_entries = 64 };
	long r;

	r = sys(io_uring_register, ring, OP_PBUF_RING, &reg, 1);
	expect("io_uring_register_pbuf_ring(fd=%d, opcode=IORING_REGISTER_PBUF_RING, arg={ring_addr=%s, ring_entries=16, bgid=7, flags=0}, nr_args=1) = %s",
	       ring, addr(memory + 2 * PAGE), outcome(r));
	r = sys(io_uring_register, ring, OP_UNREG_PBUF_RING, &reg, 1);
	expect("io_uring_unregister_pbuf_ring(fd=%d, opcode=IORING_UNREGISTER_PBUF_RING, arg={bgid=7}, nr_args=1) = %s",
	       ring, outcome(r));
	r = sys(io_uring_register, second, OP_CLONE_BUFFERS, &clone, 1);
	expect("io_uring_register_clone_buffers(fd=%d, opcode=IORING_REGISTER_CLONE_BUFFERS, arg={src_fd=%d, flags=0, src_off=0, dst_off=0, nr=0}, nr_args=1) = %s",
	       second, ring, outcome(r));
	r = sys(io_uring_register, second, OP_RESIZE_RINGS, &resize, 1);
	expect("io_uring_register_resize_rings(fd=%d, opcode=IORING_REGISTER_RESIZE_RINGS, arg={flags=0}, nr_args=1) = %s",
	       second, outcome(r));
}

int main(void)
{
	struct io_uring_params p = { 0 }, q = { 0 };
	int a, b, event_fd, second;
	long r;

	t_init();
	r = syscall(SYS_io_uring_setup, 8, &p);
	if (r < 0) {
		t_skip("io_uring: %s", strerror(errno));
		return 0;
	}
	ring = (int)r;
	second = (int)t_ok(syscall(SYS_io_uring_setup, 8, &q));
	a = (int)t_ok(open("a", O_RDWR | O_CREAT, 0600));
	b = (int)t_ok(open("b", O_RDWR | O_CREAT, 0600));
	event_fd = (int)t_ok(eventfd(0, 0));
	t_begin();
	buffers();
	files(a, b);
	events(event_fd);
	itself();
	younger(second);
	t_end();
	return 0;
}
