/* SPDX-License-Identifier: MIT */
/*
 * Unix sockets as far as files are concerned: the names that bind() makes, and the
 * open files that messages carry. Works in the cwd; fails loudly.
 * usage: sockets CASE
 */
#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
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

int main(int argc, char **argv)
{
	const char *name = argc == 2 ? argv[1] : "";

	if (!strcmp(name, "names"))
		case_names();
	else
		CHECK(!"a case");
	return 0;
}
