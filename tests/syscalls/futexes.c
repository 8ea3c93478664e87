/* SPDX-License-Identifier: MIT */
/*
 * Futexes: each operation, the word that it is about, and a wait that another
 * thread ends. Which number an address space has is the recorder's choice.
 */
#include <linux/futex.h>
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib.h"

#ifndef FUTEX_LOCK_PI2
#define FUTEX_LOCK_PI2 13
#endif
#define SIZE_U32 2 /* FUTEX2_SIZE_U32 */
#define PRIVATE 128 /* FUTEX2_PRIVATE */

struct waiter_v {
	uint64_t val, uaddr;
	uint32_t flags, reserved;
};

static unsigned int word, other; /* in private memory */
static unsigned int *shared; /* the first word of a file */
static char *shared_key;

static char *key_of(const void *p)
{
	return text("{space=$own, addr=%s, dev=?}", addr(p));
}

static void waits(void)
{
	struct timespec t = { 0, 10000000 }, past = { 1, 0 };

	word = 5;
	expect("futex_op_wait(uaddr=%s, futex_op=FUTEX_WAIT_PRIVATE, val=4, timeout=NULL, key=%s) = -1 EAGAIN",
	       addr(&word), key_of(&word));
	t_fails(sys(futex, &word, FUTEX_WAIT_PRIVATE, 4, NULL), EAGAIN);
	expect("futex_op_wait(uaddr=%s, futex_op=FUTEX_WAIT_PRIVATE, val=5, timeout={tv_sec=0, tv_nsec=10000000}, key=%s) = -1 ETIMEDOUT {least_ns=10000000}",
	       addr(&word), key_of(&word));
	t_fails(sys(futex, &word, FUTEX_WAIT_PRIVATE, 5, &t), ETIMEDOUT);
	/* Not said to be private, but in memory that is: the same word. */
	expect("futex_op_wait(uaddr=%s, futex_op=FUTEX_WAIT, val=4, timeout=NULL, key=%s) = -1 EAGAIN",
	       addr(&word), key_of(&word));
	t_fails(sys(futex, &word, FUTEX_WAIT, 4, NULL), EAGAIN);
	expect("futex_op_wait(uaddr=%s, futex_op=FUTEX_WAIT, val=1, timeout=NULL, key=%s) = -1 EAGAIN",
	       addr(shared), shared_key);
	t_fails(sys(futex, shared, FUTEX_WAIT, 1, NULL), EAGAIN);
	expect("futex_op_wait(uaddr=0x10, futex_op=FUTEX_WAIT, val=1, timeout=NULL) = -1 EFAULT");
	t_fails(sys(futex, 0x10, FUTEX_WAIT, 1, NULL), EFAULT);
	expect("futex_op_wait_bitset(uaddr=%s, futex_op=FUTEX_WAIT_BITSET_PRIVATE|FUTEX_CLOCK_REALTIME, val=5, timeout={tv_sec=1, tv_nsec=0}, val3=FUTEX_BITSET_MATCH_ANY, key=%s) = -1 ETIMEDOUT",
	       addr(&word), key_of(&word));
	t_fails(sys(futex, &word, FUTEX_WAIT_BITSET_PRIVATE | FUTEX_CLOCK_REALTIME, 5, &past, NULL,
		    ~0u),
		ETIMEDOUT);
	expect("futex_op_wait_bitset(uaddr=%s, futex_op=FUTEX_WAIT_BITSET_PRIVATE, val=5, timeout=NULL, val3=0) = -1 EINVAL",
	       addr(&word));
	t_fails(sys(futex, &word, FUTEX_WAIT_BITSET_PRIVATE, 5, NULL, NULL, 0), EINVAL);
	expect("futex_op_wait_requeue_pi(uaddr=%s, futex_op=FUTEX_WAIT_REQUEUE_PI_PRIVATE, val=5, timeout={tv_sec=1, tv_nsec=0}, uaddr2=%s, key=%s, key2=%s) = -1 ETIMEDOUT",
	       addr(&word), addr(&other), key_of(&word), key_of(&other));
	t_fails(sys(futex, &word, FUTEX_WAIT_REQUEUE_PI_PRIVATE, 5, &past, &other), ETIMEDOUT);
}

static void wakes(void)
{
	expect("futex_op_wake(uaddr=%s, futex_op=FUTEX_WAKE_PRIVATE, val=1, key=%s) = 0",
	       addr(&word), key_of(&word));
	t_is(sys(futex, &word, FUTEX_WAKE_PRIVATE, 1), 0);
	expect("futex_op_wake(uaddr=%s, futex_op=FUTEX_WAKE, val=2147483647, key=%s) = 0",
	       addr(shared), shared_key);
	t_is(sys(futex, shared, FUTEX_WAKE, 0x7fffffff), 0);
	expect("futex_op_wake(uaddr=0x1, futex_op=FUTEX_WAKE_PRIVATE, val=1) = -1 EINVAL");
	t_fails(sys(futex, 1, FUTEX_WAKE_PRIVATE, 1), EINVAL);
	expect("futex_op_wake_bitset(uaddr=%s, futex_op=FUTEX_WAKE_BITSET_PRIVATE, val=1, val3=0x2, key=%s) = 0",
	       addr(&word), key_of(&word));
	t_is(sys(futex, &word, FUTEX_WAKE_BITSET_PRIVATE, 1, NULL, NULL, 2), 0);
	expect("futex_op_requeue(uaddr=%s, futex_op=FUTEX_REQUEUE_PRIVATE, val=1, val2=2, uaddr2=%s, key=%s, key2=%s) = 0",
	       addr(&word), addr(&other), key_of(&word), key_of(&other));
	t_is(sys(futex, &word, FUTEX_REQUEUE_PRIVATE, 1, 2, &other), 0);
	expect("futex_op_cmp_requeue(uaddr=%s, futex_op=FUTEX_CMP_REQUEUE_PRIVATE, val=1, val2=2, uaddr2=%s, val3=99, key=%s, key2=%s) = -1 EAGAIN",
	       addr(&word), addr(&other), key_of(&word), key_of(&other));
	t_fails(sys(futex, &word, FUTEX_CMP_REQUEUE_PRIVATE, 1, 2, &other, 99), EAGAIN);
	expect("futex_op_wake_op(uaddr=%s, futex_op=FUTEX_WAKE_OP_PRIVATE, val=1, val2=1, uaddr2=%s, val3=0x1000, key=%s, key2=%s) = 0",
	       addr(&word), addr(&other), key_of(&word), key_of(&other));
	t_is(sys(futex, &word, FUTEX_WAKE_OP_PRIVATE, 1, 1, &other,
		 FUTEX_OP(FUTEX_OP_SET, 1, FUTEX_OP_CMP_EQ, 0)),
	     0);
	expect("futex_op_cmp_requeue_pi(uaddr=%s, futex_op=FUTEX_CMP_REQUEUE_PI_PRIVATE, val=1, val2=0, uaddr2=%s, val3=99, key=%s, key2=%s) = -1 EAGAIN",
	       addr(&word), addr(&other), key_of(&word), key_of(&other));
	t_fails(sys(futex, &word, FUTEX_CMP_REQUEUE_PI_PRIVATE, 1, 0, &other, 99), EAGAIN);
	expect("futex_op_fd(uaddr=%s) = -1 ENOSYS", addr(&word));
	t_fails(sys(futex, &word, FUTEX_FD, SIGIO), ENOSYS);
	expect("futex(uaddr=%s, futex_op=0x7f, val=1, val2=0x2, uaddr2=0x3, val3=4) = -1 ENOSYS",
	       addr(&word));
	t_fails(sys(futex, &word, 0x7f, 1, 2, 3, 4), ENOSYS);
}

static void priorities(void)
{
	word = 0;
	expect("futex_op_lock_pi(uaddr=%s, futex_op=FUTEX_LOCK_PI_PRIVATE, timeout=NULL, key=%s) = 0",
	       addr(&word), key_of(&word));
	t_ok(sys(futex, &word, FUTEX_LOCK_PI_PRIVATE, 0, NULL));
	expect("futex_op_lock_pi(uaddr=%s, futex_op=FUTEX_LOCK_PI_PRIVATE, timeout=NULL, key=%s) = -1 EDEADLK",
	       addr(&word), key_of(&word));
	t_fails(sys(futex, &word, FUTEX_LOCK_PI_PRIVATE, 0, NULL), EDEADLK);
	expect("futex_op_unlock_pi(uaddr=%s, futex_op=FUTEX_UNLOCK_PI_PRIVATE, key=%s) = 0",
	       addr(&word), key_of(&word));
	t_ok(sys(futex, &word, FUTEX_UNLOCK_PI_PRIVATE));
	expect("futex_op_trylock_pi(uaddr=%s, futex_op=FUTEX_TRYLOCK_PI_PRIVATE, key=%s) = 0",
	       addr(&word), key_of(&word));
	t_ok(sys(futex, &word, FUTEX_TRYLOCK_PI_PRIVATE));
	expect("futex_op_unlock_pi(uaddr=%s, futex_op=FUTEX_UNLOCK_PI_PRIVATE, key=%s) = 0",
	       addr(&word), key_of(&word));
	t_ok(sys(futex, &word, FUTEX_UNLOCK_PI_PRIVATE));
	expect("futex_op_unlock_pi(uaddr=%s, futex_op=FUTEX_UNLOCK_PI_PRIVATE, key=%s) = -1 EPERM",
	       addr(&word), key_of(&word));
	t_fails(sys(futex, &word, FUTEX_UNLOCK_PI_PRIVATE), EPERM);
	expect("futex_op_lock_pi2(uaddr=%s, futex_op=FUTEX_LOCK_PI2_PRIVATE, timeout=NULL, key=%s) = 0",
	       addr(&word), key_of(&word));
	t_ok(sys(futex, &word, FUTEX_LOCK_PI2 | FUTEX_PRIVATE_FLAG, 0, NULL));
	expect("futex_op_unlock_pi(uaddr=%s, futex_op=FUTEX_UNLOCK_PI_PRIVATE) = 0", addr(&word));
	t_ok(sys(futex, &word, FUTEX_UNLOCK_PI_PRIVATE));
}

static void younger(void)
{
	struct waiter_v v[2] = { { 99, (uintptr_t)&word, SIZE_U32 | PRIVATE, 0 },
				 { 0, (uintptr_t)shared, SIZE_U32, 0 } };
	struct timespec past = { 1, 0 };
	char *list = text(
		"[{val=99, uaddr=%s, flags=FUTEX2_SIZE_U32|FUTEX2_PRIVATE}, {val=0, uaddr=%s, flags=FUTEX2_SIZE_U32}]",
		addr(&word), addr(shared));
	long r;

	word = 5;
	r = sys(futex_waitv, v, 2, 0, &past, CLOCK_MONOTONIC);
	expect("futex_waitv(waiters=%s, nr_futexes=2, flags=0, timeout={tv_sec=1, tv_nsec=0}, clockid=CLOCK_MONOTONIC, keys=[%s, %s]) = %s",
	       list, key_of(&word), shared_key, outcome(r));
	r = sys(futex_wake, &word, 0xff, 1, SIZE_U32 | PRIVATE);
	expect("futex_wake(uaddr=%s, mask=0xff, nr=1, flags=FUTEX2_SIZE_U32|FUTEX2_PRIVATE, key=%s) = %s",
	       addr(&word), key_of(&word), outcome(r));
	r = sys(futex_wait, &word, 6, 0xff, SIZE_U32 | PRIVATE, &past, CLOCK_REALTIME);
	expect("futex_wait(uaddr=%s, val=6, mask=0xff, flags=FUTEX2_SIZE_U32|FUTEX2_PRIVATE, timeout={tv_sec=1, tv_nsec=0}, clockid=CLOCK_REALTIME, key=%s) = %s",
	       addr(&word), key_of(&word), outcome(r));
	v[0].val = 5;
	r = sys(futex_requeue, v, 0, 1, 2);
	expect("futex_requeue(waiters=[{val=5}, {val=0}], flags=0, nr_wake=1, nr_requeue=2, key=%s, key2=%s) = %s",
	       key_of(&word), shared_key, outcome(r));
}

static void *wait_for_word(void *tid)
{
	t_thread();
	__atomic_store_n((pid_t *)tid, (pid_t)sys(gettid), __ATOMIC_RELEASE);
	t_begin();
	expect("futex_op_wait(uaddr=%s, futex_op=FUTEX_WAIT_PRIVATE, val=1, timeout=NULL, key=%s) = 0 {after=private}",
	       addr(&word), key_of(&word));
	t_ok(sys(futex, &word, FUTEX_WAIT_PRIVATE, 1, NULL));
	expect("futex_op_wait(uaddr=%s, futex_op=FUTEX_WAIT, val=7, timeout=NULL, key=%s) = 0 {after=shared}",
	       addr(shared), shared_key);
	t_ok(sys(futex, shared, FUTEX_WAIT, 7, NULL));
	t_end();
	return NULL;
}

static void woken(void)
{
	pid_t tid = 0;
	pthread_t thread;

	word = 1;
	*shared = 7;
	t_is(pthread_create(&thread, NULL, wait_for_word, &tid), 0);
	while (!__atomic_load_n(&tid, __ATOMIC_ACQUIRE))
		(void)sys(sched_yield);
	t_await_state(tid, 'S');
	word = 2;
	t_begin();
	expect("futex_op_wake(uaddr=%s, futex_op=FUTEX_WAKE_PRIVATE, val=10, key=%s) = 1 {label=private}",
	       addr(&word), key_of(&word));
	t_is(sys(futex, &word, FUTEX_WAKE_PRIVATE, 10), 1);
	t_end();
	t_await_state(tid, 'S');
	t_begin();
	expect("futex_op_wake(uaddr=%s, futex_op=FUTEX_WAKE, val=1, key=%s) = 1 {label=shared}",
	       addr(shared), shared_key);
	t_is(sys(futex, shared, FUTEX_WAKE, 1), 1);
	t_end();
	t_is(pthread_join(thread, NULL), 0);
}

/* A child that has our memory, and one that has its own. */
static void other_spaces(void)
{
	pid_t pid;

	pid = vfork();
	if (!pid) {
		(void)sys(futex, &word, FUTEX_WAKE_PRIVATE, 3);
		(void)sys(exit, 0);
	}
	t_ok(pid);
	expect_of(pid, "futex_op_wake(uaddr=%s, futex_op=FUTEX_WAKE_PRIVATE, val=3, key=%s) = 0",
		  addr(&word), key_of(&word));
	t_is(waitpid(pid, NULL, 0), pid);
	pid = (pid_t)t_ok(fork());
	if (!pid) {
		t_thread();
		t_begin();
		expect("futex_op_wake(uaddr=%s, futex_op=FUTEX_WAKE, val=3, key={space=$copy, addr=%s, dev=?}) = 0",
		       addr(&word), addr(&word));
		t_is(sys(futex, &word, FUTEX_WAKE, 3), 0);
		expect("futex_op_wake(uaddr=%s, futex_op=FUTEX_WAKE, val=3, key=%s) = 0",
		       addr(shared), shared_key);
		t_is(sys(futex, shared, FUTEX_WAKE, 3), 0);
		t_end();
		_exit(0);
	}
	t_is(waitpid(pid, NULL, 0), pid);
}

/* What an address means when something else is mapped there. */
static void mapped_anew(void)
{
	int fd = (int)t_ok(memfd_create("other words", 0));
	struct stat st;
	char *page = (char *)shared - (uintptr_t)shared % 4096;

	t_ok(ftruncate(fd, 4096));
	t_ok(fstat(fd, &st));
	expect("futex_op_wake(uaddr=%s, futex_op=FUTEX_WAKE, val=4, key=%s) = 0", addr(shared),
	       shared_key);
	t_is(sys(futex, shared, FUTEX_WAKE, 4), 0);
	t_true(mmap(page, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == page);
	expect("futex_op_wake(uaddr=%s, futex_op=FUTEX_WAKE, val=4, key={space=?, addr=?, dev=%u:%u, ino=%lu, offset=16}) = 0",
	       addr(shared), major(st.st_dev), minor(st.st_dev), st.st_ino);
	t_is(sys(futex, shared, FUTEX_WAKE, 4), 0);
	t_true(mmap(page, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_FIXED, fd, 0) == page);
	expect("futex_op_wake(uaddr=%s, futex_op=FUTEX_WAKE, val=4, key=%s) = 0", addr(shared),
	       key_of(shared));
	t_is(sys(futex, shared, FUTEX_WAKE, 4), 0);
}

static void map_shared(void)
{
	int fd = (int)t_ok(memfd_create("words", 0));
	struct stat st;
	char *p;

	t_ok(ftruncate(fd, 8192));
	t_ok(fstat(fd, &st));
	p = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 4096);
	t_true(p != MAP_FAILED);
	shared = (unsigned int *)(p + 16);
	shared_key = text("{space=?, addr=?, dev=%u:%u, ino=%lu, offset=4112}", major(st.st_dev),
			  minor(st.st_dev), st.st_ino);
}

int main(void)
{
	t_init();
	map_shared();
	t_begin();
	waits();
	wakes();
	priorities();
	younger();
	t_end();
	woken();
	other_spaces();
	mapped_anew();
	return 0;
}
