/* SPDX-License-Identifier: MIT */
/* Sockets: their making, addresses, options, and bytes that go through them. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib.h"

static void close_it(long fd)
{
	expect("close(fd=%ld) = 0", fd);
	t_ok(sys(close, fd));
}

static void making(void)
{
	int sv[2];
	long fd;

	fd = t_ok(sys(socket, AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
	expect("socket(domain=AF_UNIX, type=SOCK_STREAM|SOCK_CLOEXEC|SOCK_NONBLOCK, protocol=IPPROTO_IP) = %ld",
	       fd);
	close_it(fd);
	fd = t_ok(sys(socket, AF_INET6, SOCK_DGRAM, IPPROTO_UDP));
	expect("socket(domain=AF_INET6, type=SOCK_DGRAM, protocol=IPPROTO_UDP) = %ld", fd);
	close_it(fd);
	expect("socket(domain=AF_UNIX, type=SOCK_DCCP, protocol=IPPROTO_IP) = -1 ESOCKTNOSUPPORT");
	t_fails(sys(socket, AF_UNIX, SOCK_DCCP, 0), ESOCKTNOSUPPORT);
	expect("socket(domain=200, type=SOCK_STREAM, protocol=IPPROTO_IP) = -1 EAFNOSUPPORT");
	t_fails(sys(socket, 200, SOCK_STREAM, 0), EAFNOSUPPORT);
	t_ok(sys(socketpair, AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, sv));
	expect("socketpair(domain=AF_UNIX, type=SOCK_SEQPACKET|SOCK_CLOEXEC, protocol=IPPROTO_IP, sv=[%d, %d]) = 0",
	       sv[0], sv[1]);
	close_it(sv[0]);
	close_it(sv[1]);
	expect("socketpair(domain=AF_INET, type=SOCK_STREAM, protocol=IPPROTO_IP, sv=%s) = -1 EOPNOTSUPP",
	       pointer(sv));
	t_fails(sys(socketpair, AF_INET, SOCK_STREAM, 0, sv), EOPNOTSUPP);
}

/* A name in the file system, one that is in none, and none at all. */
static void unix_names(void)
{
	struct sockaddr_un path = { .sun_family = AF_UNIX, .sun_path = "sock" };
	struct sockaddr_un abstract = { .sun_family = AF_UNIX };
	struct sockaddr_un got;
	socklen_t len = sizeof(got);
	long fd, other;
	char *name = text("reprise-test-%d", getpid());

	memcpy(abstract.sun_path + 1, name, strlen(name));
	t_begin();
	fd = t_ok(sys(socket, AF_UNIX, SOCK_STREAM, 0));
	expect("socket(domain=AF_UNIX, type=SOCK_STREAM, protocol=IPPROTO_IP) = %ld", fd);
	expect("bind(sockfd=%ld, addr={family=AF_UNIX, path=\"sock\"}, addrlen=110) = 0", fd);
	t_ok(sys(bind, fd, &path, sizeof(path)));
	expect("bind(sockfd=%ld, addr={family=AF_UNIX, path=\"sock\"}, addrlen=110) = -1 EADDRINUSE",
	       fd);
	t_fails(sys(bind, fd, &path, sizeof(path)), EADDRINUSE);
	expect("getsockname(sockfd=%ld, addr={family=AF_UNIX, path=\"sock\"}, addrlen=[110], addrlen_after=[7]) = 0",
	       fd);
	t_ok(sys(getsockname, fd, &got, &len));
	expect("getpeername(sockfd=%ld, addr=%s, addrlen=[7], addrlen_after=*) = -1 ENOTCONN", fd,
	       pointer(&got));
	t_fails(sys(getpeername, fd, &got, &len), ENOTCONN);
	close_it(fd);
	fd = t_ok(sys(socket, AF_UNIX, SOCK_DGRAM, 0));
	expect("socket(domain=AF_UNIX, type=SOCK_DGRAM, protocol=IPPROTO_IP) = %ld", fd);
	expect("bind(sockfd=%ld, addr={family=AF_UNIX, address=\"@%s\"}, addrlen=%zu) = 0", fd,
	       name, 3 + strlen(name));
	t_ok(sys(bind, fd, &abstract, 3 + strlen(name)));
	other = t_ok(sys(socket, AF_UNIX, SOCK_DGRAM, 0));
	expect("socket(domain=AF_UNIX, type=SOCK_DGRAM, protocol=IPPROTO_IP) = %ld", other);
	expect("connect(sockfd=%ld, addr={family=AF_UNIX, address=\"@%s\"}, addrlen=%zu) = 0",
	       other, name, 3 + strlen(name));
	t_ok(sys(connect, other, &abstract, 3 + strlen(name)));
	/* Less room than the name needs: the length says what there is. */
	len = 5;
	expect("getpeername(sockfd=%ld, addr={family=AF_UNIX, address=\"@%.2s\"}, addrlen=[5], addrlen_after=[%zu]) = 0",
	       other, name, 3 + strlen(name));
	t_ok(sys(getpeername, other, &got, &len));
	len = sizeof(got);
	expect("getsockname(sockfd=%ld, addr={family=AF_UNIX, path=?, address=?}, addrlen=[110], addrlen_after=[2]) = 0",
	       other);
	t_ok(sys(getsockname, other, &got, &len));
	expect("connect(sockfd=%ld, addr={family=AF_UNIX, path=\"none\"}, addrlen=110) = -1 ENOENT",
	       other);
	strcpy(path.sun_path, "none");
	t_fails(sys(connect, other, &path, sizeof(path)), ENOENT);
	close_it(other);
	close_it(fd);
	t_end();
}

/* A server and its client in one process: the connection is made before it is accepted. */
static void connections(void)
{
	struct sockaddr_in in = { .sin_family = AF_INET }, got;
	socklen_t len = sizeof(got);
	long server, client, conn;
	unsigned int port, client_port;

	in.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
	server = t_ok(sys(socket, AF_INET, SOCK_STREAM, 0));
	expect("socket(domain=AF_INET, type=SOCK_STREAM, protocol=IPPROTO_IP) = %ld", server);
	expect("bind(sockfd=%ld, addr={family=AF_INET, port=0, address=\"127.0.0.1\"}, addrlen=16) = 0",
	       server);
	t_ok(sys(bind, server, &in, sizeof(in)));
	expect("listen(sockfd=%ld, backlog=5) = 0", server);
	t_ok(sys(listen, server, 5));
	t_ok(sys(getsockname, server, &got, &len));
	port = ntohs(got.sin_port);
	expect("getsockname(sockfd=%ld, addr={family=AF_INET, port=%u, address=\"127.0.0.1\"}, addrlen=[16], addrlen_after=[16]) = 0",
	       server, port);
	client = t_ok(sys(socket, AF_INET, SOCK_STREAM, IPPROTO_TCP));
	expect("socket(domain=AF_INET, type=SOCK_STREAM, protocol=IPPROTO_TCP) = %ld", client);
	expect("connect(sockfd=%ld, addr={family=AF_INET, port=%u, address=\"127.0.0.1\"}, addrlen=16) = 0",
	       client, port);
	t_ok(sys(connect, client, &got, sizeof(got)));
	conn = t_ok(sys(accept, server, &got, &len));
	client_port = ntohs(got.sin_port);
	expect("accept(sockfd=%ld, addr={family=AF_INET, port=%u, address=\"127.0.0.1\"}, addrlen=[16], addrlen_after=[16]) = %ld",
	       server, client_port, conn);
	expect("getpeername(sockfd=%ld, addr={family=AF_INET, port=%u, address=\"127.0.0.1\"}, addrlen=[16], addrlen_after=[16]) = 0",
	       client, port);
	t_ok(sys(getpeername, client, &got, &len));
	expect("sendto(sockfd=%ld, buf=\"hello\", len=5, flags=MSG_NOSIGNAL, dest_addr=NULL, addrlen=0) = 5",
	       client);
	t_is(sys(sendto, client, "hello", 5, MSG_NOSIGNAL, NULL, 0), 5);
	expect("recvfrom(sockfd=%ld, buf=\"hello\", len=5, flags=MSG_WAITALL, src_addr=NULL, addrlen=NULL) = 5",
	       conn);
	t_is(sys(recvfrom, conn, (char[5]){ 0 }, 5, MSG_WAITALL, NULL, NULL), 5);
	expect("shutdown(sockfd=%ld, how=SHUT_WR) = 0", client);
	t_ok(sys(shutdown, client, SHUT_WR));
	expect("recvfrom(sockfd=%ld, buf=\"\", len=5, flags=0, src_addr=NULL, addrlen=NULL) = 0",
	       conn);
	t_is(sys(recvfrom, conn, (char[5]){ 0 }, 5, 0, NULL, NULL), 0);
	expect("shutdown(sockfd=%ld, how=7) = -1 EINVAL", conn);
	t_fails(sys(shutdown, conn, 7), EINVAL);
	close_it(conn);
	close_it(client);
	close_it(server);
}

static void accepting(void)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX, .sun_path = "listening" }, got;
	socklen_t len = sizeof(got);
	long server, client, conn;

	server = t_ok(sys(socket, AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK, 0));
	expect("socket(domain=AF_UNIX, type=SOCK_STREAM|SOCK_NONBLOCK) = %ld", server);
	expect("bind(sockfd=%ld, addr={family=AF_UNIX, path=\"listening\"}, addrlen=110) = 0",
	       server);
	t_ok(sys(bind, server, &un, sizeof(un)));
	expect("listen(sockfd=%ld, backlog=-1) = 0", server);
	t_ok(sys(listen, server, -1));
	expect("accept4(sockfd=%ld, addr=%s, addrlen=[110], flags=SOCK_CLOEXEC, addrlen_after=*) = -1 EAGAIN",
	       server, pointer(&got));
	t_fails(sys(accept4, server, &got, &len, SOCK_CLOEXEC), EAGAIN);
	client = t_ok(sys(socket, AF_UNIX, SOCK_STREAM, 0));
	expect("socket(domain=AF_UNIX, type=SOCK_STREAM) = %ld", client);
	expect("connect(sockfd=%ld, addr={family=AF_UNIX, path=\"listening\"}, addrlen=110) = 0",
	       client);
	t_ok(sys(connect, client, &un, sizeof(un)));
	conn = t_ok(sys(accept4, server, &got, &len, SOCK_CLOEXEC | SOCK_NONBLOCK));
	expect("accept4(sockfd=%ld, addr={family=AF_UNIX, path=?}, addrlen=[110], flags=SOCK_CLOEXEC|SOCK_NONBLOCK, addrlen_after=[2]) = %ld",
	       server, conn);
	expect("accept(sockfd=%ld, addr=NULL, addrlen=NULL, addrlen_after=NULL) = -1 EAGAIN",
	       server);
	t_fails(sys(accept, server, NULL, NULL), EAGAIN);
	expect("listen(sockfd=-1, backlog=0) = -1 EBADF");
	t_fails(sys(listen, -1, 0), EBADF);
	close_it(conn);
	close_it(client);
	close_it(server);
}

static void datagrams(void)
{
	struct sockaddr_in6 in = { .sin6_family = AF_INET6, .sin6_addr = IN6ADDR_LOOPBACK_INIT },
			    got;
	socklen_t len = sizeof(got);
	unsigned int port;
	char buf[3];
	long fd;

	fd = t_ok(sys(socket, AF_INET6, SOCK_DGRAM, 0));
	expect("socket(domain=AF_INET6, type=SOCK_DGRAM) = %ld", fd);
	if (sys(bind, fd, &in, sizeof(in)) < 0) {
		expect("bind(sockfd=%ld, addr={family=AF_INET6, port=0, address=\"::1\"}, addrlen=28) = %s",
		       fd, outcome(-1));
		t_skip("IPv6 datagrams: %s", error_name(errno));
		close_it(fd);
		return;
	}
	expect("bind(sockfd=%ld, addr={family=AF_INET6, port=0, address=\"::1\"}, addrlen=28) = 0",
	       fd);
	t_ok(sys(getsockname, fd, &got, &len));
	port = ntohs(got.sin6_port);
	expect("getsockname(sockfd=%ld, addr={family=AF_INET6, port=%u, address=\"::1\"}, addrlen=[28], addrlen_after=[28]) = 0",
	       fd, port);
	expect("sendto(sockfd=%ld, buf=\"abcdef\", len=6, flags=0, dest_addr={family=AF_INET6, port=%u, address=\"::1\"}, addrlen=28) = 6",
	       fd, port);
	t_is(sys(sendto, fd, "abcdef", 6, 0, &got, sizeof(got)), 6);
	/* What did not fit was not written: the result says more than the buffer has. */
	expect("recvfrom(sockfd=%ld, buf=\"abc\", len=3, flags=MSG_PEEK|MSG_TRUNC, src_addr={family=AF_INET6, port=%u, address=\"::1\"}, addrlen=[28], addrlen_after=[28]) = 6",
	       fd, port);
	t_is(sys(recvfrom, fd, buf, 3, MSG_PEEK | MSG_TRUNC, &got, &len), 6);
	expect("recvfrom(sockfd=%ld, buf=\"abc\", len=3, flags=0, src_addr=NULL, addrlen=NULL) = 3",
	       fd);
	t_is(sys(recvfrom, fd, buf, 3, 0, NULL, NULL), 3);
	expect("recvfrom(sockfd=%ld, buf=%s, len=3, flags=MSG_DONTWAIT, src_addr=NULL, addrlen=NULL) = -1 EAGAIN",
	       fd, pointer(buf));
	t_fails(sys(recvfrom, fd, buf, 3, MSG_DONTWAIT, NULL, NULL), EAGAIN);
	expect("sendto(sockfd=-1, buf=\"abc\", len=3, flags=0, dest_addr={family=AF_INET6}, addrlen=28) = -1 EBADF");
	t_fails(sys(sendto, -1, "abc", 3, 0, &got, sizeof(got)), EBADF);
	close_it(fd);
}

static void options(void)
{
	int one = 1, value = 0;
	socklen_t len = sizeof(value);
	long fd;

	fd = t_ok(sys(socket, AF_INET, SOCK_STREAM, 0));
	expect("socket(domain=AF_INET, type=SOCK_STREAM) = %ld", fd);
	expect("setsockopt(sockfd=%ld, level=SOL_SOCKET, optname=2, optval=\"\\x01\\x00\\x00\\x00\", optlen=4) = 0",
	       fd);
	t_ok(sys(setsockopt, fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof(one)));
	expect("getsockopt(sockfd=%ld, level=SOL_SOCKET, optname=2, optval=\"\\x01\\x00\\x00\\x00\", optlen=[4], optlen_after=[4]) = 0",
	       fd);
	t_ok(sys(getsockopt, fd, SOL_SOCKET, SO_REUSEADDR, &value, &len));
	expect("setsockopt(sockfd=%ld, level=SOL_TCP, optname=1, optval=\"\\x01\\x00\\x00\\x00\", optlen=4) = 0",
	       fd);
	t_ok(sys(setsockopt, fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one)));
	expect("setsockopt(sockfd=%ld, level=SOL_SOCKET, optname=2, optval=\"\\x01\", optlen=1) = -1 EINVAL",
	       fd);
	t_fails(sys(setsockopt, fd, SOL_SOCKET, SO_REUSEADDR, &one, 1), EINVAL);
	len = 4;
	expect("getsockopt(sockfd=%ld, level=SOL_SOCKET, optname=999, optval=%s, optlen=[4], optlen_after=*) = -1 ENOPROTOOPT",
	       fd, pointer(&value));
	t_fails(sys(getsockopt, fd, SOL_SOCKET, 999, &value, &len), ENOPROTOOPT);
	close_it(fd);
}

int main(void)
{
	t_init();
	t_begin();
	making();
	t_end();
	unix_names();
	t_begin();
	connections();
	accepting();
	datagrams();
	options();
	t_end();
	return 0;
}
