/* SPDX-License-Identifier: MIT */
/* Messages with vectors, control data and passed descriptors; several at once. */
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "lib.h"

#ifndef SCM_CREDENTIALS
#define SCM_CREDENTIALS 2
#endif

static char *bytes(const char *s)
{
	return (char *)(uintptr_t)s;
}

static void plain(const int sv[2])
{
	char a[2], b[10];
	struct iovec out[2] = { { bytes("ab"), 2 }, { bytes("cde"), 3 } };
	struct iovec in[2] = { { a, sizeof(a) }, { b, sizeof(b) } };
	struct msghdr send = { .msg_iov = out, .msg_iovlen = 2 };
	struct msghdr recv = { .msg_iov = in, .msg_iovlen = 2 };

	expect("sendmsg(sockfd=%d, msg={msg_name=NULL, msg_namelen=0, msg_iov=[{iov_base=\"ab\", iov_len=2}, {iov_base=\"cde\", iov_len=3}], msg_iovlen=2, msg_control=NULL, msg_controllen=0, msg_flags=0}, flags=MSG_EOR) = 5",
	       sv[0]);
	t_is(sys(sendmsg, sv[0], &send, MSG_EOR), 5);
	expect("recvmsg(sockfd=%d, msg={msg_name=NULL, msg_namelen=0, msg_iov=[{iov_base=\"ab\", iov_len=2}, {iov_base=\"cde\", iov_len=10}], msg_iovlen=2, msg_control=NULL, msg_controllen=0}, flags=0) = 5",
	       sv[1]);
	t_is(sys(recvmsg, sv[1], &recv, 0), 5);
	expect("recvmsg(sockfd=%d, msg=*, flags=MSG_DONTWAIT) = -1 EAGAIN", sv[1]);
	t_fails(sys(recvmsg, sv[1], &recv, MSG_DONTWAIT), EAGAIN);
	expect("sendmsg(sockfd=-1, msg={msg_iov=[{iov_base=\"ab\", iov_len=2}, {iov_base=\"cde\", iov_len=3}]}, flags=0) = -1 EBADF");
	t_fails(sys(sendmsg, -1, &send, 0), EBADF);
	expect("sendmsg(sockfd=%d, msg=NULL, flags=0) = -1 EFAULT", sv[0]);
	t_fails(sys(sendmsg, sv[0], NULL, 0), EFAULT);
}

union control {
	struct cmsghdr align;
	char bytes[200];
};

static void put_cmsg(struct msghdr *m, struct cmsghdr **c, int type, const void *data, size_t len)
{
	*c = *c ? CMSG_NXTHDR(m, *c) : CMSG_FIRSTHDR(m);
	(*c)->cmsg_level = SOL_SOCKET;
	(*c)->cmsg_type = type;
	(*c)->cmsg_len = CMSG_LEN(len);
	memcpy(CMSG_DATA(*c), data, len);
}

/* Descriptors as such, and the other end's new numbers for them. */
static void passed(const int sv[2], int fd)
{
	union control out = { 0 }, in = { 0 };
	struct iovec one = { bytes("x"), 1 }, into = { (char[4]){ 0 }, 4 };
	struct msghdr send = { .msg_iov = &one, .msg_iovlen = 1, .msg_control = out.bytes };
	struct msghdr recv = { .msg_iov = &into, .msg_iovlen = 1, .msg_control = in.bytes };
	struct cmsghdr *c = NULL;
	int fds[2] = { fd, sv[0] }, got[2];

	send.msg_controllen = CMSG_SPACE(sizeof(fds));
	put_cmsg(&send, &c, SCM_RIGHTS, fds, sizeof(fds));
	expect("sendmsg(sockfd=%d, msg={msg_iov=[{iov_base=\"x\", iov_len=1}], msg_control=[{cmsg_len=24, cmsg_level=SOL_SOCKET, cmsg_type=1, fds=[%d, %d], cmsg_data=?}], msg_controllen=24}, flags=0) = 1",
	       sv[0], fd, sv[0]);
	t_is(sys(sendmsg, sv[0], &send, 0), 1);
	recv.msg_controllen = sizeof(in);
	t_is(sys(recvmsg, sv[1], &recv, MSG_CMSG_CLOEXEC), 1);
	memcpy(got, CMSG_DATA(CMSG_FIRSTHDR(&recv)), sizeof(got));
	expect("recvmsg(sockfd=%d, msg={msg_iov=[{iov_base=\"x\", iov_len=4}], msg_control=[{cmsg_len=24, cmsg_level=SOL_SOCKET, cmsg_type=1, fds=[%d, %d]}], msg_controllen=24, msg_flags=%s}, flags=MSG_CMSG_CLOEXEC) = 1",
	       sv[1], got[0], got[1], "MSG_CMSG_CLOEXEC");
	expect("close(fd=%d) = 0", got[0]);
	t_ok(sys(close, got[0]));
	expect("close(fd=%d) = 0", got[1]);
	t_ok(sys(close, got[1]));
}

/* Two kinds of control data in one message. */
static void credentials(const int sv[2], int fd, const struct ucred *own)
{
	union control out = { 0 }, in = { 0 };
	struct iovec one = { bytes("y"), 1 }, into = { (char[4]){ 0 }, 4 };
	struct msghdr send = { .msg_iov = &one, .msg_iovlen = 1, .msg_control = out.bytes };
	struct msghdr recv = { .msg_iov = &into, .msg_iovlen = 1, .msg_control = in.bytes };
	struct cmsghdr *c = NULL;
	int got;

	send.msg_controllen = CMSG_SPACE(sizeof(*own)) + CMSG_SPACE(sizeof(fd));
	put_cmsg(&send, &c, SCM_CREDENTIALS, own, sizeof(*own));
	put_cmsg(&send, &c, SCM_RIGHTS, &fd, sizeof(fd));
	expect("sendmsg(sockfd=%d, msg={msg_control=[{cmsg_len=28, cmsg_level=SOL_SOCKET, cmsg_type=2, fds=?, cmsg_data=%s}, {cmsg_len=20, cmsg_level=SOL_SOCKET, cmsg_type=1, fds=[%d]}], msg_controllen=56}, flags=0) = 1",
	       sv[0], quote(own, sizeof(*own)), fd);
	t_is(sys(sendmsg, sv[0], &send, 0), 1);
	recv.msg_controllen = sizeof(in);
	t_is(sys(recvmsg, sv[1], &recv, 0), 1);
	c = CMSG_FIRSTHDR(&recv);
	c = CMSG_NXTHDR(&recv, c);
	memcpy(&got, CMSG_DATA(c), sizeof(got));
	expect("recvmsg(sockfd=%d, msg={msg_control=[{cmsg_len=28, cmsg_type=2, cmsg_data=%s}, {cmsg_len=20, cmsg_type=1, fds=[%d]}], msg_controllen=%zu}, flags=0) = 1",
	       sv[1], quote(own, sizeof(*own)), got, recv.msg_controllen);
	expect("close(fd=%d) = 0", got);
	t_ok(sys(close, got));
}

/* Where it came from, and less room than it needs. */
static void named(int from, int to)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX, .sun_path = "to" }, got;
	struct iovec out = { bytes("longer"), 6 }, in = { (char[3]){ 0 }, 3 };
	struct msghdr send = {
		.msg_name = &un, .msg_namelen = 5, .msg_iov = &out, .msg_iovlen = 1
	};
	struct msghdr recv = {
		.msg_name = &got, .msg_namelen = 110, .msg_iov = &in, .msg_iovlen = 1
	};

	expect("sendmsg(sockfd=%d, msg={msg_name={family=AF_UNIX, path=\"to\"}, msg_namelen=5, msg_iov=[{iov_base=\"longer\", iov_len=6}], msg_iovlen=1}, flags=0) = 6",
	       from);
	t_is(sys(sendmsg, from, &send, 0), 6);
	expect("recvmsg(sockfd=%d, msg={msg_name={family=AF_UNIX, path=\"from\"}, msg_namelen=7, msg_iov=[{iov_base=\"lon\", iov_len=3}], msg_iovlen=1, msg_flags=MSG_TRUNC}, flags=0) = 3",
	       to);
	t_is(sys(recvmsg, to, &recv, 0), 3);
	/* With this flag the result is the length of the message, of which less is there. */
	expect("sendmsg(sockfd=%d, msg={msg_iov=[{iov_base=\"longer\", iov_len=6}]}, flags=0) = 6",
	       from);
	t_is(sys(sendmsg, from, &send, 0), 6);
	expect("recvmsg(sockfd=%d, msg={msg_iov=[{iov_base=\"lon\", iov_len=3}], msg_flags=MSG_TRUNC}, flags=MSG_TRUNC) = 6",
	       to);
	t_is(sys(recvmsg, to, &recv, MSG_TRUNC), 6);
}

static void several(const int sv[2])
{
	char a[10], b[10], c[10];
	struct iovec out[3] = { { bytes("one"), 3 }, { bytes("two!"), 4 }, { bytes("3"), 1 } };
	struct iovec in[3] = { { a, 10 }, { b, 10 }, { c, 10 } };
	struct mmsghdr m[3] = { 0 };
	struct timespec t = { 100, 0 };
	size_t i;

	for (i = 0; i < 3; i++)
		m[i].msg_hdr = (struct msghdr){ .msg_iov = &out[i], .msg_iovlen = 1 };
	expect("sendmmsg(sockfd=%d, msgvec=[{msg_hdr={msg_iov=[{iov_base=\"one\", iov_len=3}]}, msg_len=3}, {msg_hdr={msg_iov=[{iov_base=\"two!\", iov_len=4}]}, msg_len=4}, {msg_hdr={msg_iov=[{iov_base=\"3\", iov_len=1}]}, msg_len=1}], vlen=3, flags=0) = 3",
	       sv[0]);
	t_is(sys(sendmmsg, sv[0], m, 3, 0), 3);
	for (i = 0; i < 3; i++)
		m[i].msg_hdr = (struct msghdr){ .msg_iov = &in[i], .msg_iovlen = 1 };
	t_is(sys(recvmmsg, sv[1], m, 2, MSG_WAITFORONE, &t), 2);
	expect("recvmmsg(sockfd=%d, msgvec=[{msg_hdr={msg_iov=[{iov_base=\"one\", iov_len=10}]}, msg_len=3}, {msg_hdr={msg_iov=[{iov_base=\"two!\", iov_len=10}]}, msg_len=4}], vlen=2, flags=MSG_WAITFORONE, timeout={tv_sec=100, tv_nsec=0}, timeout_after=%s) = 2",
	       sv[1], timespec_text(&t));
	/* Room for three, and one is there. */
	expect("recvmmsg(sockfd=%d, msgvec=[{msg_hdr={msg_iov=[{iov_base=\"3\", iov_len=10}]}, msg_len=1}], vlen=3, flags=MSG_DONTWAIT, timeout=NULL, timeout_after=NULL) = 1",
	       sv[1]);
	t_is(sys(recvmmsg, sv[1], m, 3, MSG_DONTWAIT, NULL), 1);
	expect("recvmmsg(sockfd=%d, msgvec=*, vlen=3, flags=MSG_DONTWAIT, timeout=NULL) = -1 EAGAIN",
	       sv[1]);
	t_fails(sys(recvmmsg, sv[1], m, 3, MSG_DONTWAIT, NULL), EAGAIN);
	expect("sendmmsg(sockfd=-1, msgvec=*, vlen=1, flags=0) = -1 EBADF");
	t_fails(sys(sendmmsg, -1, m, 1, 0), EBADF);
}

static int named_socket(const char *name)
{
	struct sockaddr_un un = { .sun_family = AF_UNIX };
	int fd = (int)t_ok(socket(AF_UNIX, SOCK_DGRAM, 0));

	strcpy(un.sun_path, name);
	t_ok(bind(fd, (struct sockaddr *)&un, (socklen_t)(3 + strlen(name))));
	return fd;
}

int main(void)
{
	int sv[2], cred[2], fd, from, to, one = 1;
	struct ucred own;

	t_init();
	t_ok(socketpair(AF_UNIX, SOCK_DGRAM, 0, sv));
	t_ok(socketpair(AF_UNIX, SOCK_DGRAM, 0, cred));
	t_ok(setsockopt(cred[1], SOL_SOCKET, SO_PASSCRED, &one, sizeof(one)));
	fd = (int)t_ok(open("f", O_RDWR | O_CREAT, 0600));
	from = named_socket("from");
	to = named_socket("to");
	own = (struct ucred){ getpid(), getuid(), getgid() };
	t_begin();
	plain(sv);
	passed(sv, fd);
	credentials(cred, fd, &own);
	named(from, to);
	several(sv);
	t_end();
	return 0;
}
