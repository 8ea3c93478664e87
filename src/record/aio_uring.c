/* SPDX-License-Identifier: MIT */
/*
 * io_uring: the rings that there are. A ring is known from io_uring_setup on;
 * where its parts are mapped is learnt from the mmap calls on its descriptor.
 */
#include <linux/io_uring.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/banned.h"
#include "model/kernel_structs.h"
#include "record/aio_inside.h"
#include "record/found.h"

/* Those that older headers lack. */
#define SETUP_NO_MMAP (1u << 14)
#define SETUP_REGISTERED_FD_ONLY (1u << 15)
#define SETUP_CQE_MIXED (1u << 18)
#define SETUP_SQE_MIXED (1u << 19)
#define ENTER_REGISTERED_RING (1u << 4)

/* Also of ours: more cannot be asked of the kernel today. */
#define SQ_ENTRIES_MAX 32768u
#define CQ_ENTRIES_MAX 65536u
#define RINGS_MAX 4096u
#define NAMES_MAX 65536u
#define RING_NAMES_OF_THREAD 16u
#define FILES_MAX 65536u
/* No address of an aio context, which takes the same place in a key. */
#define RING_NUMBER_BASE (UINT64_C(1) << 63)

static void free_ring(struct aio *x, size_t i)
{
	struct ring *ring = x->rings.items[i];
	size_t k = 0;

	while (k < x->names.len) {
		if (x->names.items[k].ring == ring)
			x->names.items[k] = x->names.items[--x->names.len];
		else
			k++;
	}
	requests_remove_all(&x->requests, (uint64_t)ring->pid, &ring->number);
	free(ring->files);
	x->nr_hidden -= ring->is_hidden;
	free(ring);
	x->rings.items[i] = x->rings.items[--x->rings.len];
}

void uring_forget(struct aio *x, pid_t pid)
{
	size_t i = 0;

	while (i < x->rings.len) {
		const struct ring *ring = x->rings.items[i];

		if (ring->pid != pid) {
			i++;
			continue;
		}
		x->may_be_more |= ring->p.flags & IORING_SETUP_SQPOLL && !ring->is_settled;
		free_ring(x, i);
	}
}

void uring_release(struct aio *x)
{
	while (x->rings.len)
		free_ring(x, 0);
	VEC_RELEASE(&x->rings);
	VEC_RELEASE(&x->names);
}

static struct ring *ring_by_fd(const struct aio *x, pid_t pid, int fd)
{
	size_t i;

	for (i = 0; i < x->rings.len; i++) {
		if (x->rings.items[i]->pid == pid && x->rings.items[i]->fd == fd && fd >= 0)
			return x->rings.items[i];
	}
	return NULL;
}

static struct ring_name *find_name(const struct aio *x, pid_t tid, uint32_t index)
{
	size_t i;

	for (i = 0; i < x->names.len; i++) {
		if (x->names.items[i].tid == tid && x->names.items[i].index == index)
			return &x->names.items[i];
	}
	return NULL;
}

static void add_name(struct aio *x, pid_t tid, uint32_t index, struct ring *ring)
{
	struct ring_name *old = find_name(x, tid, index);

	if (old)
		old->ring = ring;
	else if (x->names.len < NAMES_MAX)
		VEC_PUSH(&x->names, ((struct ring_name){ tid, index, ring }));
}

static struct ring *ring_of_call(const struct aio *x, const struct aio_call *call)
{
	struct ring_name *name;

	if (call->row->id != SC_io_uring_enter || !(call->regs[3] & ENTER_REGISTERED_RING))
		return ring_by_fd(x, call->pid, (int)call->regs[0]);
	name = find_name(x, call->tid, (uint32_t)call->regs[0]);
	return name ? name->ring : NULL;
}

/* Rings that are polled. */

static void find_queue(struct ring *ring)
{
	const struct k_io_sqring_offsets *off = &ring->p.sq_off;
	uint64_t at = ring->sq_addr;

	if (!ring->is_hidden || ring->polled.flags_at == (at ? at + off->flags : 0))
		return;
	ring->polled.head_at = at ? at + off->head : 0;
	ring->polled.tail_at = at ? at + off->tail : 0;
	ring->polled.flags_at = at ? at + off->flags : 0;
	ring->polled.is_flagged = false;
}

void aio_hide_polling(struct aio *x, pid_t pid, int fd, uint64_t ip)
{
	struct ring *ring = ring_by_fd(x, pid, fd);

	if (!ring || ring->is_hidden)
		return;
	ring->p.flags &= ~(uint32_t)IORING_SETUP_SQPOLL;
	ring->is_hidden = true;
	ring->polled = (struct aio_polled){ .pid = pid, .fd = fd, .ip = ip };
	x->nr_hidden++;
	find_queue(ring);
}

struct aio_polled *aio_polled_of(struct aio *x, const struct aio_call *call)
{
	struct ring *ring =
		x->nr_hidden && call->row->id == SC_io_uring_enter ? ring_of_call(x, call) : NULL;

	return ring && ring->is_hidden ? &ring->polled : NULL;
}

struct aio_polled *aio_polled_at(struct aio *x, size_t i)
{
	size_t k;

	for (k = 0; x->nr_hidden && k < x->rings.len; k++) {
		if (x->rings.items[k]->is_hidden && !i--)
			return &x->rings.items[k]->polled;
	}
	return NULL;
}

uint64_t aio_nr_unseen(const struct aio *x)
{
	return x->nr_unseen;
}

uint64_t aio_nr_strange(const struct aio *x)
{
	return x->nr_strange;
}

bool aio_may_be_more(const struct aio *x)
{
	return x->may_be_more;
}

/* Calls after which the process may have no more of its rings. */
static bool may_end_rings(const struct row *row)
{
	switch ((int)row->id) {
	case SC_munmap:
	case SC_close:
	case SC_exit:
	case SC_exit_group:
	case SC_execve:
	case SC_execveat:
		return true;
	}
	return false;
}

static bool ends_ring(const struct aio_call *call, const struct ring *ring)
{
	if (call->row->id == SC_munmap)
		return ring->sq_addr - call->regs[0] < call->regs[1];
	return call->row->id != SC_close;
}

static void settle(struct aio *x, struct capture *c, const struct aio_call *call, struct ring *ring)
{
	uint64_t nr;
	bool is_read = ring_skip_taken(c, ring, &nr);

	x->nr_unseen += nr;
	if (ends_ring(call, ring))
		ring->is_settled = is_read;
}

void uring_count_unseen(struct aio *x, struct capture *c, const struct aio_call *call)
{
	size_t i;

	if (!may_end_rings(call->row))
		return;
	for (i = 0; i < x->rings.len; i++) {
		struct ring *ring = x->rings.items[i];

		if (ring->pid == call->pid && (ring->p.flags & IORING_SETUP_SQPOLL))
			settle(x, c, call, ring);
	}
}

/* Rings come and go. */

/* The descriptor is no longer this ring's; a ring with a name lives on. */
static void close_ring(struct aio *x, pid_t pid, int fd)
{
	struct ring *ring = ring_by_fd(x, pid, fd);
	size_t i;

	if (!ring)
		return;
	ring->fd = ring->polled.fd = -1;
	for (i = 0; i < x->names.len; i++) {
		if (x->names.items[i].ring == ring)
			return;
	}
	for (i = 0; i < x->rings.len; i++) {
		if (x->rings.items[i] == ring) {
			free_ring(x, i);
			return;
		}
	}
}

static bool is_power_of_two(uint32_t n, uint32_t max)
{
	return n && n <= max && !(n & (n - 1));
}

/* The program may have written there since the kernel has. */
static bool is_known_shape(const struct k_io_uring_params *p)
{
	return is_power_of_two(p->sq_entries, SQ_ENTRIES_MAX) &&
	       is_power_of_two(p->cq_entries, CQ_ENTRIES_MAX) &&
	       !(p->flags & (SETUP_CQE_MIXED | SETUP_SQE_MIXED));
}

static void note_setup(struct aio *x, struct capture *c, const struct aio_call *call)
{
	struct k_io_uring_params p;
	struct ring *ring;

	if (capture_read(c, call->regs[1], &p, sizeof(p)) < sizeof(p) || !is_known_shape(&p) ||
	    x->rings.len >= RINGS_MAX)
		return;
	close_ring(x, call->pid, (int)call->outcome->ret);
	ring = xcalloc(1, sizeof(*ring));
	ring->pid = call->pid;
	ring->number = RING_NUMBER_BASE + x->next_ring++;
	ring->p = p;
	ring->fd = (int)call->outcome->ret;
	if (p.flags & SETUP_NO_MMAP) {
		ring->sq_addr = ring->cq_addr = p.cq_off.user_addr;
		ring->sqes_addr = p.sq_off.user_addr;
	}
	VEC_PUSH(&x->rings, ring);
	if (p.flags & SETUP_REGISTERED_FD_ONLY) {
		ring->fd = -1;
		add_name(x, call->tid, (uint32_t)call->outcome->ret, ring);
	}
}

static void note_map(struct aio *x, const struct aio_call *call)
{
	struct ring *ring = ring_by_fd(x, call->pid, (int)call->regs[4]);
	uint64_t addr = (uint64_t)call->outcome->ret;

	if (!ring)
		return;
	switch (call->regs[5]) {
	case IORING_OFF_SQ_RING:
		ring->sq_addr = addr;
		if (ring->p.features & IORING_FEAT_SINGLE_MMAP)
			ring->cq_addr = addr;
		break;
	case IORING_OFF_CQ_RING:
		ring->cq_addr = addr;
		break;
	case IORING_OFF_SQES:
		ring->sqes_addr = addr;
		break;
	}
	find_queue(ring);
}

/* Of each entry `offset` is (after the call) the index that `data`, a descriptor, has or had. */
static void note_names(struct aio *x, struct capture *c, const struct aio_call *call, bool removed)
{
	struct k_io_uring_rsrc_update u;
	struct ring_name *name;
	struct ring *ring;
	uint64_t i;

	for (i = 0; i < (uint64_t)call->outcome->ret && i < RING_NAMES_OF_THREAD; i++) {
		if (capture_read(c, call->regs[2] + i * sizeof(u), &u, sizeof(u)) < sizeof(u))
			return;
		ring = ring_by_fd(x, call->pid, (int)u.data);
		name = find_name(x, call->tid, u.offset);
		if (removed && name)
			*name = x->names.items[--x->names.len];
		else if (!removed && ring)
			add_name(x, call->tid, u.offset, ring);
	}
}

/* Fixed files. */

static void set_file(struct ring *ring, uint64_t slot, pid_t tid, int fd)
{
	struct stat st;

	if (slot >= ring->nr_files)
		return;
	ring->files[slot] = (struct ring_file){ .known = false };
	if (fd >= 0 && found_stat(tid, fd, &st))
		ring->files[slot] = (struct ring_file){
			.known = true, .dev = st.st_dev, .ino = st.st_ino, .mode = st.st_mode
		};
}

static const struct value *find_fds(const struct aio_call *call, unsigned int i,
				    uint64_t *ret_offset)
{
	const struct value *v = &call->args[i];
	const struct struct_desc *desc = &struct_descs[call->row->args[i].struct_id];
	unsigned int n;

	*ret_offset = 0;
	if (v->type != VALUE_STRUCT)
		return v;
	for (n = 0; n < desc->nr_fields; n++) {
		const struct value *f = value_field(v, n);

		if (f && f->type == VALUE_INT && !strcmp(desc->fields[n].name, "offset"))
			*ret_offset = f->u;
	}
	for (n = 0; n < desc->nr_fields; n++) {
		if (desc->fields[n].kind == KIND_VEC && desc->fields[n].elem == KIND_FD)
			return value_field(v, n);
	}
	return NULL;
}

static void note_files(struct ring *ring, const struct aio_call *call, bool anew)
{
	uint64_t offset, i;
	const struct value *fds = find_fds(call, 2, &offset);

	if (!fds || fds->type != VALUE_LIST)
		return;
	if (anew) {
		free(ring->files);
		ring->nr_files = fds->count < FILES_MAX ? fds->count : FILES_MAX;
		ring->files = xcalloc(ring->nr_files + 1, sizeof(*ring->files));
	}
	for (i = 0; i < fds->count; i++)
		set_file(ring, offset + i, call->tid, (int)fds->items[i].i);
}

/* Calls. */

static int arg_of_kind(const struct row *row, enum kind kind)
{
	unsigned int i;

	for (i = 0; i < row->nr_args; i++) {
		if (row->args[i].kind == kind)
			return (int)i;
	}
	return -1;
}

int uring_entry(struct aio *x, struct capture *c, const struct aio_call *call)
{
	int sqes = arg_of_kind(call->row, KIND_SQES), cqes = arg_of_kind(call->row, KIND_CQES);
	struct ring *ring = sqes < 0 || cqes < 0 ? NULL : ring_of_call(x, call);
	int r;

	if (!ring)
		return 0;
	/* First: their buffers may be those of the requests that are made now. */
	r = ring_take_completions(x, c, call, ring, true, &call->args[cqes]);
	if (r < 0)
		return r;
	return ring_take_requests(x, c, call, ring, (unsigned int)sqes);
}

static void note_registration(struct aio *x, struct capture *c, const struct aio_call *call)
{
	struct ring *ring = ring_of_call(x, call);
	struct k_io_uring_params p;

	if (call->row->id == SC_io_uring_register_ring_fds ||
	    call->row->id == SC_io_uring_unregister_ring_fds) {
		note_names(x, c, call, call->row->id == SC_io_uring_unregister_ring_fds);
		return;
	}
	if (!ring)
		return;
	switch ((int)call->row->id) {
	case SC_io_uring_register_files:
	case SC_io_uring_register_files2:
		note_files(ring, call, true);
		break;
	case SC_io_uring_register_files_update:
	case SC_io_uring_register_files_update2:
		note_files(ring, call, false);
		break;
	case SC_io_uring_unregister_files:
		ring->nr_files = 0;
		break;
	case SC_io_uring_register_resize_rings:
		ring->sq_addr = ring->cq_addr = ring->sqes_addr = 0; /* to be mapped again */
		if (capture_read(c, call->regs[2], &p, sizeof(p)) < sizeof(p) ||
		    !is_known_shape(&p))
			close_ring(x, call->pid, (int)call->regs[0]);
		else
			ring->p = p;
		if (ring->is_hidden) {
			ring->p.flags &= ~(uint32_t)IORING_SETUP_SQPOLL;
			find_queue(ring);
		}
		break;
	}
}

static int leave_enter(struct aio *x, struct capture *c, const struct aio_call *call)
{
	int sqes = arg_of_kind(call->row, KIND_SQES), cqes = arg_of_kind(call->row, KIND_CQES);
	struct ring *ring = ring_of_call(x, call);

	if (!ring && !call->outcome->err && call->outcome->ret > 0)
		x->nr_strange += (uint64_t)call->outcome->ret;
	if (!ring || sqes < 0 || cqes < 0)
		return 0;
	ring_give_back_requests(x, call, ring, (unsigned int)sqes);
	return ring_take_completions(x, c, call, ring, false, &call->args[cqes]);
}

int uring_exit(struct aio *x, struct capture *c, const struct aio_call *call)
{
	bool failed = call->outcome->err;

	if (call->row->id == SC_io_uring_enter)
		return leave_enter(x, c, call);
	if (failed)
		return 0;
	switch ((int)call->row->id) {
	case SC_io_uring_setup:
		note_setup(x, c, call);
		break;
	case SC_mmap:
		note_map(x, call);
		break;
	case SC_close:
		close_ring(x, call->pid, (int)call->regs[0]);
		break;
	default:
		if (row_class(call->row) == C_URING)
			note_registration(x, c, call);
	}
	return 0;
}
