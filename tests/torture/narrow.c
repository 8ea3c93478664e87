/* SPDX-License-Identifier: MIT */
/*
 * A 32-bit program: calls with all that its memory can be asked for, made by
 * number where the C library would choose another one. It prints what the trace
 * must say of its own file.
 */
#include <fcntl.h>
#include <poll.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/un.h>
#include <unistd.h>

#ifdef __i386__
static char far_away[2][4096], one[] = "one", three[] = "three";
static char word[] = "a word", none[] = "", name[] = "NAME=value";

static void moves_data(int fd)
{
	struct iovec v[3] = { { one, 3 }, { one, 0 }, { three, 5 } };
	struct iovec in[2] = { { far_away[0], 5 }, { far_away[1], 100 } };

	syscall(SYS_writev, fd, v, 3);
	syscall(SYS_pwritev, fd, v, 3, 5, 1); /* at 2^32 + 5 */
	syscall(SYS_preadv, fd, in, 2, 0, 0);
	syscall(SYS_pwrite64, fd, "tail", 4, 16, 0);
}

static void asks(int fd, const char *path)
{
	uint32_t old_time[2] = { 0, 1000 };
	uint64_t new_time[2] = { 0, 2000 };
	struct stat st; /* with 64-bit offsets: as fstat64 has it */
	struct pollfd p = { .fd = fd, .events = POLLIN };
	char names[1024];
	int dir = open(".", O_RDONLY | O_DIRECTORY);

	syscall(SYS_fstat64, fd, &st);
	printf("%llu %llu %lld\n", (unsigned long long)st.st_dev, (unsigned long long)st.st_ino,
	       (long long)st.st_size);
	fflush(stdout);
	syscall(SYS_nanosleep, old_time, NULL);
	syscall(407 /* clock_nanosleep_time64 */, 1, 0, new_time, NULL);
	syscall(SYS_poll, &p, 1, 0);
	syscall(SYS_getdents64, dir, names, sizeof(names));
	syscall(SYS_readlink, path, names, sizeof(names));
}

static void opens_sockets(void)
{
	struct sockaddr_un to = { .sun_family = AF_UNIX, .sun_path = "no-such-socket" };
	int pair[2] = { -1, -1 };

	syscall(SYS_pipe2, pair, 0);
	syscall(SYS_connect, pair[0], &to, sizeof(to));
}

int main(int argc, char **argv)
{
	char *const words[] = { argv[0], word, none, NULL };
	char *const environment[] = { name, NULL };
	int fd;

	if (argc > 1)
		return argc == 3 && !strcmp(argv[1], word) ? 7 : 1;
	fd = open("file", O_RDWR | O_CREAT | O_TRUNC, 0644);
	moves_data(fd);
	asks(fd, argv[0]);
	opens_sockets();
	execve(argv[0], words, environment);
	return 2;
}
#else
int main(void)
{
	return 77;
}
#endif
