/* SPDX-License-Identifier: MIT */
/* Waiting for descriptors: poll, select, epoll; with something there, and until the time is up. */
#include <poll.h>
#include <sys/epoll.h>
#include <sys/select.h>
#include <sys/time.h>
#include <unistd.h>

#include "lib.h"

#define MS 1000000L

static int ready, idle; /* read ends of pipes, with a byte and without */
static int writable;

static void polls(void)
{
	struct pollfd p[3] = { { ready, POLLIN | POLLPRI, 0 },
			       { writable, POLLOUT, 0 },
			       { -1, POLLIN, 0 } };
	struct pollfd none = { idle, POLLIN | POLLRDHUP, 0 }, bad = { 999, POLLIN, 0 };

	expect("poll(fds=[{fd=%d, events=POLLIN|POLLPRI, revents=POLLIN}, {fd=%d, events=POLLOUT, revents=POLLOUT}, {fd=-1, events=POLLIN, revents=0}], nfds=3, timeout=-1) = 2",
	       ready, writable);
	t_is(sys(poll, p, 3, -1), 2);
	expect("poll(fds=[{fd=%d, events=POLLIN|POLLRDHUP, revents=0}], nfds=1, timeout=0) = 0",
	       idle);
	t_is(sys(poll, &none, 1, 0), 0);
	expect("poll(fds=[{fd=%d, events=POLLIN|POLLRDHUP, revents=0}], nfds=1, timeout=20) = 0 {least_ns=20000000}",
	       idle);
	t_is(sys(poll, &none, 1, 20), 0);
	expect("poll(fds=[{fd=999, events=POLLIN, revents=POLLNVAL}], nfds=1, timeout=0) = 1");
	t_is(sys(poll, &bad, 1, 0), 1);
	expect("poll(fds=NULL, nfds=0, timeout=5) = 0");
	t_is(sys(poll, NULL, 0, 5), 0);
	expect("poll(fds=&0x10, nfds=1, timeout=0) = -1 EFAULT");
	t_fails(sys(poll, 0x10, 1, 0), EFAULT);
}

static void ppolls(void)
{
	struct pollfd p = { idle, POLLIN, 0 }, q = { ready, POLLIN, 0 };
	struct timespec t = { 0, 10 * MS };
	uint64_t mask = 1ULL << (SIGINT - 1);

	/* The kernel writes the rest of the time back, which is none. */
	expect("ppoll(fds=[{fd=%d, events=POLLIN, revents=0}], nfds=1, tmo_p={tv_sec=0, tv_nsec=10000000}, sigmask=[[INT]], sigsetsize=8, tmo_p_after={tv_sec=0, tv_nsec=0}) = 0",
	       idle);
	t_is(sys(ppoll, &p, 1, &t, &mask, 8), 0);
	t = (struct timespec){ 500, 0 };
	t_is(sys(ppoll, &q, 1, &t, NULL, 0), 1);
	expect("ppoll(fds=[{fd=%d, events=POLLIN, revents=POLLIN}], nfds=1, tmo_p={tv_sec=500, tv_nsec=0}, sigmask=NULL, sigsetsize=0, tmo_p_after=%s) = 1",
	       ready, timespec_text(&t));
	expect("ppoll(fds=[{fd=%d, events=POLLIN, revents=POLLIN}], nfds=1, tmo_p=NULL, sigmask=NULL, sigsetsize=0, tmo_p_after=NULL) = 1",
	       ready);
	t_is(sys(ppoll, &q, 1, NULL, NULL, 0), 1);
	t = (struct timespec){ -1, 0 };
	expect("ppoll(fds=[{fd=%d, events=POLLIN, revents=*}], nfds=1, tmo_p={tv_sec=-1, tv_nsec=0}, sigmask=NULL) = -1 EINVAL",
	       ready);
	t_fails(sys(ppoll, &q, 1, &t, NULL, 0), EINVAL);
}

static void selects(void)
{
	fd_set r, w;
	struct timeval t = { 0, 20000 };

	FD_ZERO(&r);
	FD_ZERO(&w);
	FD_SET(ready, &r);
	FD_SET(idle, &r);
	FD_SET(writable, &w);
	expect("select(nfds=%d, readfds=[%d, %d], writefds=[%d], exceptfds=NULL, timeout=NULL, readfds_after=[%d], writefds_after=[%d], exceptfds_after=NULL, timeout_after=NULL) = 2",
	       64, ready, idle, writable, ready, writable);
	t_is(sys(select, 64, &r, &w, NULL, NULL), 2);
	FD_ZERO(&r);
	FD_SET(idle, &r);
	expect("select(nfds=%d, readfds=[%d], writefds=NULL, exceptfds=NULL, timeout={tv_sec=0, tv_usec=20000}, readfds_after=[], timeout_after={tv_sec=0, tv_usec=0}) = 0 {least_ns=20000000}",
	       idle + 1, idle);
	t_is(sys(select, idle + 1, &r, NULL, NULL, &t), 0);
	FD_ZERO(&r);
	FD_SET(50, &r);
	expect("select(nfds=51, readfds=[50], writefds=NULL, exceptfds=NULL, timeout=NULL) = -1 EBADF");
	t_fails(sys(select, 51, &r, NULL, NULL, NULL), EBADF);
	/* Bits behind nfds do not count. */
	FD_SET(3, &r);
	t = (struct timeval){ 0, 0 };
	expect("select(nfds=0, readfds=[], writefds=NULL, exceptfds=NULL, timeout={tv_sec=0, tv_usec=0}, readfds_after=[], timeout_after={tv_sec=0, tv_usec=0}) = 0");
	t_is(sys(select, 0, &r, NULL, NULL, &t), 0);
	expect("select(nfds=-1, readfds=*, writefds=NULL, exceptfds=NULL, timeout=NULL) = -1 EINVAL");
	t_fails(sys(select, -1, &r, NULL, NULL, NULL), EINVAL);
}

static void pselects(void)
{
	uint64_t mask = 1ULL << (SIGTERM - 1);
	struct {
		const uint64_t *ss;
		size_t len;
	} arg = { &mask, 8 };
	struct timespec t = { 0, 10 * MS };
	fd_set x;

	FD_ZERO(&x);
	FD_SET(idle, &x);
	expect("pselect6(nfds=%d, readfds=NULL, writefds=NULL, exceptfds=[%d], timeout={tv_sec=0, tv_nsec=10000000}, sigmask={ss=[[TERM]], ss_len=8}, readfds_after=NULL, writefds_after=NULL, exceptfds_after=[], timeout_after={tv_sec=0, tv_nsec=0}) = 0",
	       idle + 1, idle);
	t_is(sys(pselect6, idle + 1, NULL, NULL, &x, &t, &arg), 0);
	FD_ZERO(&x);
	FD_SET(ready, &x);
	expect("pselect6(nfds=%d, readfds=[%d], timeout=NULL, sigmask=NULL, readfds_after=[%d]) = 1",
	       ready + 1, ready, ready);
	t_is(sys(pselect6, ready + 1, &x, NULL, NULL, NULL, NULL), 1);
	expect("pselect6(nfds=-1, readfds=NULL, timeout=NULL, sigmask=NULL) = -1 EINVAL");
	t_fails(sys(pselect6, -1, NULL, NULL, NULL, NULL, NULL), EINVAL);
}

static void epolls(void)
{
	struct epoll_event ev = { EPOLLIN | EPOLLET, { .u64 = 0x1122334455667788 } }, got[4];
	uint64_t mask = 1ULL << (SIGHUP - 1);
	struct timespec t = { 0, 10 * MS };
	long ep;

	ep = t_ok(sys(epoll_create, 10));
	expect("epoll_create(size=10) = %ld", ep);
	expect("close(fd=%ld) = 0", ep);
	t_ok(sys(close, ep));
	expect("epoll_create(size=0) = -1 EINVAL");
	t_fails(sys(epoll_create, 0), EINVAL);
	ep = t_ok(sys(epoll_create1, EPOLL_CLOEXEC));
	expect("epoll_create1(flags=EPOLL_CLOEXEC) = %ld", ep);
	expect("epoll_create1(flags=0x1) = -1 EINVAL");
	t_fails(sys(epoll_create1, 1), EINVAL);
	expect("epoll_ctl(epfd=%ld, op=EPOLL_CTL_ADD, fd=%d, event={events=EPOLLIN|EPOLLET, data={u32=1432778632, u64=1234605616436508552}}) = 0",
	       ep, ready);
	t_ok(sys(epoll_ctl, ep, EPOLL_CTL_ADD, ready, &ev));
	expect("epoll_wait(epfd=%ld, events=[{events=EPOLLIN, data={u32=1432778632, u64=1234605616436508552}}], maxevents=4, timeout=-1) = 1",
	       ep);
	t_is(sys(epoll_wait, ep, got, 4, -1), 1);
	/* Edges: nothing has come since. */
	expect("epoll_wait(epfd=%ld, events=[], maxevents=4, timeout=10) = 0 {least_ns=10000000}",
	       ep);
	t_is(sys(epoll_wait, ep, got, 4, 10), 0);
	expect("epoll_pwait(epfd=%ld, events=[], maxevents=4, timeout=0, sigmask=[[HUP]], sigsetsize=8) = 0",
	       ep);
	t_is(sys(epoll_pwait, ep, got, 4, 0, &mask, 8), 0);
	expect("epoll_pwait2(epfd=%ld, events=[], maxevents=4, timeout={tv_sec=0, tv_nsec=10000000}, sigmask=NULL, sigsetsize=0) = 0",
	       ep);
	t_is(sys(epoll_pwait2, ep, got, 4, &t, NULL, 0), 0);
	ev.events = EPOLLOUT | EPOLLONESHOT;
	ev.data.u64 = 5;
	expect("epoll_ctl(epfd=%ld, op=EPOLL_CTL_MOD, fd=%d, event={events=EPOLLOUT|EPOLLONESHOT, data={u64=5}}) = 0",
	       ep, ready);
	t_ok(sys(epoll_ctl, ep, EPOLL_CTL_MOD, ready, &ev));
	expect("epoll_ctl(epfd=%ld, op=EPOLL_CTL_DEL, fd=%d, event=NULL) = 0", ep, ready);
	t_ok(sys(epoll_ctl, ep, EPOLL_CTL_DEL, ready, NULL));
	expect("epoll_ctl(epfd=%ld, op=EPOLL_CTL_DEL, fd=%d, event=NULL) = -1 ENOENT", ep, ready);
	t_fails(sys(epoll_ctl, ep, EPOLL_CTL_DEL, ready, NULL), ENOENT);
	expect("epoll_wait(epfd=%ld, events=%s, maxevents=0, timeout=0) = -1 EINVAL", ep,
	       pointer(got));
	t_fails(sys(epoll_wait, ep, got, 0, 0), EINVAL);
	expect("epoll_pwait(epfd=-1, events=%s, maxevents=1, timeout=0, sigmask=NULL) = -1 EBADF",
	       pointer(got));
	t_fails(sys(epoll_pwait, -1, got, 1, 0, NULL, 0), EBADF);
	expect("epoll_pwait2(epfd=-1, events=%s, maxevents=1, timeout=NULL, sigmask=NULL) = -1 EBADF",
	       pointer(got));
	t_fails(sys(epoll_pwait2, -1, got, 1, NULL, NULL, 0), EBADF);
	expect("close(fd=%ld) = 0", ep);
	t_ok(sys(close, ep));
}

int main(void)
{
	int a[2], b[2];

	t_init();
	t_ok(pipe(a));
	t_ok(pipe(b));
	t_is(write(a[1], "x", 1), 1);
	ready = a[0];
	idle = b[0];
	writable = b[1];
	t_begin();
	polls();
	ppolls();
	selects();
	pselects();
	epolls();
	t_end();
	return 0;
}
