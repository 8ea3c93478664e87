/* SPDX-License-Identifier: MIT */
/*
 * What a recorder finds when it comes to a program that runs already: threads,
 * some of them in a call, descriptors, cwd and umask.
 */
#include <fcntl.h>
#include <limits.h>
#include <linux/kcmp.h>
#include <pthread.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "lib.h"

static int pipes[2];
static pid_t waiter;

static void *wait_in_call(void *unused)
{
	char buf[10];

	(void)unused;
	__atomic_store_n(&waiter, (pid_t)sys(gettid), __ATOMIC_RELEASE);
	(void)sys(read, pipes[0], buf, sizeof(buf));
	(void)sys(getppid);
	return NULL;
}

static bool is_shared(int a, int b)
{
	return !syscall(SYS_kcmp, getpid(), getpid(), KCMP_FILE, a, b);
}

/* They are counted in the order of the descriptors, each once. */
static unsigned int open_file_of(int fd)
{
	unsigned int nr = 0;
	int i, j;

	for (i = 0; i <= fd; i++) {
		for (j = 0; j < i && !is_shared(i, j); j++)
			;
		nr += j == i && fcntl(i, F_GETFD) >= 0;
	}
	return nr;
}

static void expect_fd(int fd, const char *path, const char *flags, long offset, bool cloexec)
{
	struct stat st;

	t_ok(fstat(fd, &st));
	expect("found_fd(fd=%d, path=%s, flags=%s, offset=%ld, mode=%s, dev=%u:%u, ino=%lu, cloexec=%d, open_file=%u)",
	       fd, quote_str(path), flags, offset, mode_text(st.st_mode), major(st.st_dev),
	       minor(st.st_dev), st.st_ino, cloexec, open_file_of(fd));
}

int main(void)
{
	char cwd[PATH_MAX];
	pthread_t thread;
	struct stat st;
	int file, dir;

	if (!getenv("T_WAIT")) {
		t_init();
		t_skip("only for recorders that attach");
		return 0;
	}
	t_true(getcwd(cwd, sizeof(cwd)) != NULL);
	umask(027);
	file = (int)t_ok(open("f", O_RDWR | O_CREAT | O_APPEND, 0600));
	t_is(write(file, "12345", 5), 5);
	dir = (int)t_ok(open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	t_ok(pipe(pipes));
	t_is(pthread_create(&thread, NULL, wait_in_call, NULL), 0);
	while (!__atomic_load_n(&waiter, __ATOMIC_ACQUIRE))
		(void)sys(sched_yield);
	t_await_state(waiter, 'S');
	t_init(); /* waits until the recorder is there */

	t_ok(fstat(pipes[0], &st));
	expect("thread_start(how=attach, comm=\"attached\")");
	expect("found_state(cwd=%s, root=\"/\", umask=027)", quote_str(cwd));
	expect_fd(file, text("%s/f", cwd), "O_RDWR|O_APPEND|O_LARGEFILE", 5, false);
	expect_fd(dir, cwd, "O_RDONLY|O_LARGEFILE|O_DIRECTORY", 0, true);
	expect_fd(pipes[0], text("pipe:[%lu]", st.st_ino), "O_RDONLY", 0, false);
	expect_fd(pipes[1], text("pipe:[%lu]", st.st_ino), "O_WRONLY", 0, false);
	expect_of(waiter, "thread_start(how=attach, comm=\"attached\")");
	/* It goes on in the call that it was in. */
	expect_of(waiter, "read(fd=%d, buf=\"abc\", count=10) = 3", pipes[0]);
	expect_of(waiter, "getppid() = %d", getppid());
	expect_of(waiter, "exit(status=0) = ?");
	t_begin();
	expect("write(fd=%d, buf=\"abc\", count=3) = 3", pipes[1]);
	t_is(sys(write, pipes[1], "abc", 3), 3);
	t_end();
	t_is(pthread_join(thread, NULL), 0);
	return 0;
}
