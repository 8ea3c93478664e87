/* SPDX-License-Identifier: MIT */
/*
 * Unix sockets as far as files are concerned: the names that bind() makes, and the
 * open files that messages carry. Works in the cwd; fails loudly.
 * usage: sockets CASE
 */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(what)                                                                                \
	do {                                                                                       \
		if (!(what)) {                                                                     \
			fprintf(stderr, "sockets: line %d: %s: %s\n", __LINE__, #what,             \
				strerror(errno));                                                  \
			exit(1);                                                                   \
		}                                                                                  \
	} while (0)

/* Names. */

static int new_socket(int type)
{
	int s = socket(AF_UNIX, type | SOCK_CLOEXEC, 0);

	CHECK(s >= 0);
	return s;
}

/* Without NUL at the end, as the kernel allows. */
static int bind_to(int s, const char *name, size_t len)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };

	memcpy(a.sun_path, name, len);
	return bind(s, (struct sockaddr *)&a,
		    (socklen_t)(offsetof(struct sockaddr_un, sun_path) + len));
}

static void connect_to(int s, const char *name)
{
	struct sockaddr_un a = { .sun_family = AF_UNIX };

	memcpy(a.sun_path, name, strlen(name));
	CHECK(connect(s, (struct sockaddr *)&a, sizeof(a)) == 0);
}

static void bind_new(const char *name)
{
	CHECK(bind_to(new_socket(SOCK_STREAM), name, strlen(name)) == 0);
}

static void bind_fails(const char *name, int err)
{
	int s = new_socket(SOCK_STREAM);

	CHECK(bind_to(s, name, strlen(name)) < 0 && errno == err);
	CHECK(close(s) == 0);
}

static void expect_mode(const char *name, mode_t mode)
{
	struct stat st;

	CHECK(lstat(name, &st) == 0 && st.st_mode == (S_IFSOCK | mode));
}

static void case_names(void)
{
	int s = new_socket(SOCK_STREAM), client = new_socket(SOCK_STREAM);
	char long_name[108], cwd[4096], path[4200];
	int dir;

	umask(027);
	CHECK(mkdir("d", 0755) == 0);
	CHECK(bind_to(s, "d/a", 3) == 0 && listen(s, 1) == 0);
	expect_mode("d/a", 0750);
	CHECK(bind_to(s, "d/again", 7) < 0 && errno == EINVAL);
	bind_fails("d/a", EADDRINUSE);
	bind_fails("d", EADDRINUSE);
	bind_fails("d/none/a", ENOENT);
	bind_fails("d/a/b", ENOTDIR);
	CHECK(chmod("d/a", 0700) == 0);
	CHECK(chown("d/a", geteuid(), getegid()) == 0);
	/* The mode of the socket, cut by the umask. */
	dir = new_socket(SOCK_DGRAM);
	CHECK(fchmod(dir, 0642) == 0 && bind_to(dir, "d/m", 3) == 0);
	expect_mode("d/m", 0640);
	CHECK(bind_to(new_socket(SOCK_DGRAM), "\0d/abstract", 11) == 0);
	CHECK(getcwd(cwd, sizeof(cwd)));
	CHECK(chdir("d") == 0);
	memset(long_name, 'x', sizeof(long_name));
	CHECK(bind_to(new_socket(SOCK_STREAM), long_name, sizeof(long_name)) == 0);
	CHECK(symlink("none", "l") == 0);
	bind_fails("l", EADDRINUSE);
	dir = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	CHECK(dir >= 0);
	(void)snprintf(path, sizeof(path), "/proc/self/fd/%d/through", dir);
	bind_new(path);
	expect_mode("through", 0750);
	CHECK(symlink("a", "to-a") == 0);
	connect_to(client, "to-a");
	CHECK(rename("m", "moved") == 0 && link("moved", "second") == 0 && unlink("moved") == 0);
	CHECK(unlink("a") == 0);
	bind_new("a");
	CHECK(open("a", O_RDONLY) < 0 && errno == ENXIO);
	(void)snprintf(path, sizeof(path), "%.100s/d/whole", cwd);
	if (strlen(cwd) < 90)
		bind_new(path);
}

/* Messages. */

#define FDS_MAX 8

union control {
	char bytes[CMSG_SPACE(FDS_MAX * sizeof(int))];
	struct cmsghdr align;
};

static void send_to(int s, const char *name, const char *data, const int *fds, unsigned int nr)
{
	struct iovec iov = { .iov_base = (char *)(uintptr_t)data, .iov_len = strlen(data) };
	struct sockaddr_un to = { .sun_family = AF_UNIX };
	union control c = { 0 };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = c.bytes };
	struct cmsghdr *h;

	m.msg_controllen = CMSG_SPACE(nr * sizeof(int));
	h = CMSG_FIRSTHDR(&m);
	h->cmsg_level = SOL_SOCKET;
	h->cmsg_type = SCM_RIGHTS;
	h->cmsg_len = CMSG_LEN(nr * sizeof(int));
	memcpy(CMSG_DATA(h), fds, nr * sizeof(int));
	if (name) {
		memcpy(to.sun_path, name, strlen(name));
		m.msg_name = &to;
		m.msg_namelen = sizeof(to);
	}
	CHECK(sendmsg(s, &m, 0) == (ssize_t)strlen(data));
}

static void send_one(int s, int fd)
{
	send_to(s, NULL, "x", &fd, 1);
}

/* As many as there is room for, in fds; the number that came. */
static unsigned int receive(int s, int flags, int *fds, unsigned int room)
{
	char data[16];
	struct iovec iov = { .iov_base = data, .iov_len = sizeof(data) };
	union control c = { 0 };
	struct msghdr m = { .msg_iov = &iov, .msg_iovlen = 1, .msg_control = c.bytes };
	struct cmsghdr *h;
	unsigned int nr;

	m.msg_controllen = CMSG_LEN(room * sizeof(int));
	CHECK(recvmsg(s, &m, flags) >= 0);
	h = CMSG_FIRSTHDR(&m);
	if (!h)
		return 0;
	nr = (unsigned int)((h->cmsg_len - CMSG_LEN(0)) / sizeof(int));
	memcpy(fds, CMSG_DATA(h), nr * sizeof(int));
	return nr;
}

static int receive_one(int s)
{
	int fd;

	CHECK(receive(s, MSG_CMSG_CLOEXEC, &fd, 1) == 1);
	return fd;
}

static int new_file(const char *name)
{
	int fd = open(name, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0644);

	CHECK(fd >= 0);
	return fd;
}

static void put(int fd, const char *text)
{
	CHECK(write(fd, text, strlen(text)) == (ssize_t)strlen(text));
}

static void end_child(pid_t pid)
{
	int status;

	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}

/* Offset and flags are one for both, also when the sender has closed its descriptor. */
static void pass_to_child(int type, const char *name)
{
	int pair[2], fd = new_file(name), got;
	pid_t pid;

	CHECK(socketpair(AF_UNIX, type, 0, pair) == 0);
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		CHECK(close(fd) == 0 && close(pair[0]) == 0);
		got = receive_one(pair[1]);
		put(got, "child ");
		CHECK(lseek(got, 0, SEEK_CUR) == 13);
		send_one(pair[1], got);
		got = receive_one(pair[1]);
		put(got, "child");
		_exit(0);
	}
	put(fd, "parent ");
	send_one(pair[0], fd);
	got = receive_one(pair[0]);
	put(fd, "again ");
	CHECK(lseek(got, 0, SEEK_CUR) == 19);
	CHECK(fcntl(got, F_SETFL, O_APPEND) == 0 && lseek(fd, 0, SEEK_SET) == 0);
	send_one(pair[0], fd);
	CHECK(close(fd) == 0 && close(got) == 0 && unlink(name) == 0);
	fd = new_file(name);
	end_child(pid);
	put(fd, "another file");
}

static void pass_several(void)
{
	int pair[2], fds[3], got[FDS_MAX], i;
	char byte;

	CHECK(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
	for (i = 0; i < 3; i++) {
		char name[] = { 's', (char)('0' + i), 0 };

		fds[i] = new_file(name);
	}
	send_to(pair[0], NULL, "abc", fds, 3);
	CHECK(receive(pair[1], MSG_PEEK, got, FDS_MAX) == 3);
	put(got[2], "peek ");
	CHECK(receive(pair[1], 0, got, FDS_MAX) == 3);
	for (i = 0; i < 3; i++)
		put(got[i], "several ");
	/* What has no room is closed, and so is what nobody asks for. */
	send_to(pair[0], NULL, "d", fds, 2);
	CHECK(receive(pair[1], 0, got, 1) == 1);
	put(got[0], "cut ");
	send_one(pair[0], fds[1]);
	CHECK(read(pair[1], &byte, 1) == 1);
	send_one(pair[0], fds[2]);
	CHECK(receive(pair[1], 0, got, 1) == 1);
	put(got[0], "after a read ");
	CHECK(close(got[0]) == 0);
	/* Never received: closed with the sockets. */
	send_one(pair[0], fds[0]);
	CHECK(close(pair[0]) == 0 && close(pair[1]) == 0);
	put(fds[0], "end");
}

/* Messages without bytes, and ones that are addressed. */
static void pass_packets(void)
{
	int pair[2], at = new_socket(SOCK_DGRAM), from = new_socket(SOCK_DGRAM), fd[2], got;
	char byte;

	CHECK(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, pair) == 0);
	fd[0] = new_file("p0");
	fd[1] = new_file("p1");
	send_to(pair[0], NULL, "", &fd[0], 1);
	CHECK(recv(pair[1], &byte, 1, 0) == 0);
	send_to(pair[0], NULL, "", &fd[1], 1);
	CHECK(receive(pair[1], 0, &got, 1) == 1);
	put(got, "empty ");
	CHECK(bind_to(at, "addressed", 9) == 0);
	send_to(from, "addressed", "x", &fd[0], 1);
	CHECK(close(fd[0]) == 0);
	put(receive_one(at), "addressed");
	put(fd[1], "end");
}

/* A connection by name; what is passed has no name any more, or never had. */
static void pass_nameless(void)
{
	int listener = new_socket(SOCK_STREAM), fd = new_file("gone"), pipefd[2], got, s;
	char text[8] = "";
	pid_t pid;

	CHECK(bind_to(listener, "server", 6) == 0 && listen(listener, 1) == 0);
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		s = new_socket(SOCK_STREAM);
		connect_to(s, "server");
		got = receive_one(s);
		CHECK(pwrite(got, "late", 4, 2) == 4);
		put(receive_one(s), "piped");
		_exit(0);
	}
	s = accept(listener, NULL, NULL);
	CHECK(s >= 0 && pipe(pipefd) == 0);
	CHECK(unlink("gone") == 0);
	send_one(s, fd);
	send_one(s, pipefd[1]);
	end_child(pid);
	CHECK(pread(fd, text, 6, 0) == 6 && !memcmp(text, "\0\0late", 6));
	memset(text, 0, sizeof(text));
	CHECK(read(pipefd[0], text, 5) == 5);
	put(new_file("kept"), text);
}

static void case_messages(void)
{
	pass_to_child(SOCK_STREAM, "stream");
	pass_to_child(SOCK_SEQPACKET, "seqpacket");
	pass_to_child(SOCK_DGRAM, "dgram");
	pass_several();
	pass_packets();
	pass_nameless();
}

/* The descriptor of another process, without a message. */
static void case_pidfd(void)
{
	int fd = new_file("f"), done[2], pidfd, got;
	pid_t pid;
	char byte;

	CHECK(pipe(done) == 0);
	pid = fork();
	CHECK(pid >= 0);
	if (!pid) {
		CHECK(close(done[1]) == 0);
		put(fd, "child ");
		CHECK(read(done[0], &byte, 1) == 0);
		CHECK(lseek(fd, 0, SEEK_CUR) == 12);
		_exit(0);
	}
	CHECK(close(fd) == 0);
	pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	CHECK(pidfd >= 0);
	got = (int)syscall(SYS_pidfd_getfd, pidfd, fd, 0);
	CHECK(got >= 0);
	while (lseek(got, 0, SEEK_CUR) < 6)
		CHECK(usleep(1000) == 0);
	put(got, "parent");
	CHECK(close(done[1]) == 0);
	end_child(pid);
}

int main(int argc, char **argv)
{
	const char *name = argc == 2 ? argv[1] : "";

	if (!strcmp(name, "names"))
		case_names();
	else if (!strcmp(name, "messages"))
		case_messages();
	else if (!strcmp(name, "pidfd"))
		case_pidfd();
	else
		CHECK(!"a case");
	return 0;
}
