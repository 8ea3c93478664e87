/* SPDX-License-Identifier: MIT */
/* Many threads, threads that vanish, and execve in the middle of them. */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/epoll.h>
#include <sys/ipc.h>
#include <sys/mman.h>
#include <sys/sem.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <unistd.h>

#include "torture.h"

#define THREADS_MAX 128

static _Atomic int stop;

static int try_start(void *(*run)(void *), uintptr_t arg, pthread_t *ret)
{
	pthread_attr_t attr;
	int error;

	pthread_attr_init(&attr);
	pthread_attr_setstacksize(&attr, 128 << 10);
	error = pthread_create(ret, &attr, run, (void *)arg);
	pthread_attr_destroy(&attr);
	return error;
}

static pthread_t start(void *(*run)(void *), uintptr_t arg)
{
	pthread_t t;

	errno = try_start(run, arg, &t);
	if (errno)
		give_up("pthread_create");
	return t;
}

static void *io_until_stop(void *arg)
{
	unsigned int number = (unsigned int)(uintptr_t)arg, seed = number * 1000;
	char file[32];

	snprintf(file, sizeof(file), "t%u", number);
	do
		some_calls(file, 16, seed += 16);
	while (!stop);
	return NULL;
}

/* As no loader would. */
static void map_code(const char *file)
{
	int fd = (int)must(open(file, O_RDONLY | O_CLOEXEC), file);

	if (mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE, fd, 0) == MAP_FAILED)
		give_up("mmap");
	must(close(fd), "close");
}

/* One call after another. */
static void *write_until_stop(void *arg)
{
	int fd = (int)must(open("writes", O_RDWR | O_CREAT | O_CLOEXEC, 0600), "writes");

	while (!stop)
		must(counted_call(COUNT_pwrite64, fd, (long)&arg, sizeof(arg), 0), "pwrite64");
	must(close(fd), "close");
	return NULL;
}

/* threads N MS [FILE]: N threads do I/O for so long; the file is mapped as code meanwhile. */
int mode_threads(int argc, char **argv)
{
	unsigned int nr = argc > 0 ? (unsigned int)strtoul(argv[0], NULL, 10) : 64, i;
	uint64_t end_ms = now_ms() + (argc > 1 ? strtoul(argv[1], NULL, 10) : 1000);
	pthread_t t[THREADS_MAX];

	if (nr > THREADS_MAX)
		nr = THREADS_MAX;
	for (i = 0; i < nr; i++)
		t[i] = start(argc > 2 ? write_until_stop : io_until_stop, i);
	usleep(10000);
	if (argc > 2)
		map_code(argv[2]);
	while (now_ms() < end_ms)
		usleep(10000);
	stop = 1;
	for (i = 0; i < nr; i++)
		pthread_join(t[i], NULL);
	return 0;
}

static void *read_for_ever(void *arg)
{
	char c;
	int fds[2];

	(void)arg;
	must(pipe(fds), "pipe");
	for (;;)
		(void)!read(fds[0], &c, 1); /* nobody writes */
	return NULL;
}

static void *pause_for_ever(void *arg)
{
	(void)arg;
	for (;;)
		pause();
	return NULL;
}

struct exec_target {
	const char *mode, *arg;
};

static void *exec_soon(void *arg)
{
	const struct exec_target *target = arg;

	usleep(20000);
	exec_again(target->mode, target->arg);
	return NULL;
}

/* exec-other N: another thread than the first makes execve, the others are busy or asleep in calls. */
int mode_exec_other(int argc, char **argv)
{
	unsigned int nr = argc > 0 ? (unsigned int)strtoul(argv[0], NULL, 10) : 12, i;
	static const struct exec_target target = { "calls", "100" };

	for (i = 0; i < nr; i++)
		start(i % 3 == 0 ? io_until_stop : i % 3 == 1 ? read_for_ever : pause_for_ever, i);
	start(exec_soon, (uintptr_t)&target);
	for (;;)
		pause();
}

static pthread_mutex_t handed_over = PTHREAD_MUTEX_INITIALIZER;

static void *hand_over(void *arg)
{
	for (;;) {
		pthread_mutex_lock(&handed_over);
		some_calls("lock", 1, (unsigned int)(uintptr_t)arg);
		pthread_mutex_unlock(&handed_over);
	}
	return NULL;
}

/* exec-wakers N: N threads and the first hand over a lock, and so wake each other, until another makes execve. */
int mode_exec_wakers(int argc, char **argv)
{
	unsigned int nr = argc > 0 ? (unsigned int)strtoul(argv[0], NULL, 10) : 4, i;
	static const struct exec_target target = { "calls", "100" };

	for (i = 0; i < nr; i++)
		start(hand_over, i);
	start(exec_soon, (uintptr_t)&target);
	(void)hand_over(NULL); /* never returns */
	return 1;
}

static void *exit_at_once(void *arg)
{
	some_calls("short", (unsigned int)(uintptr_t)arg & 1, 1);
	return NULL;
}

static void *breed(void *arg)
{
	pthread_t t;

	(void)arg;
	for (;;) {
		/* Refused while another thread is in execve. */
		if (!try_start(exit_at_once, 0, &t))
			pthread_join(t, NULL);
	}
	return NULL;
}

/* exec-race N: execve N times over, while threads begin and end. */
int mode_exec_race(int argc, char **argv)
{
	unsigned long nr = argc > 0 ? strtoul(argv[0], NULL, 10) : 10;
	struct exec_target target = { "exec-race", NULL };
	char less[32];
	int i;

	if (!nr) {
		some_calls("calls", 100, 1);
		return 0;
	}
	snprintf(less, sizeof(less), "%lu", nr - 1);
	target.arg = less;
	for (i = 0; i < 3; i++)
		start(breed, 0);
	if (nr % 2) {
		start(exec_soon, (uintptr_t)&target);
		breed(NULL);
	}
	usleep(1000 * (nr % 7));
	exec_again(target.mode, target.arg);
}

static void *end_all(void *arg)
{
	(void)arg;
	usleep(50000);
	some_calls("calls", 100, 1);
	exit(7);
}

/* leader-exits: the first thread ends long before the process, which ends with 7. */
int mode_leader_exits(int argc, char **argv)
{
	(void)argc;
	(void)argv;
	start(end_all, 0);
	pthread_exit(NULL);
}

static void *serve(void *arg)
{
	unsigned int nr = (unsigned int)(uintptr_t)arg, i;
	pthread_t t[THREADS_MAX];

	if (nr > THREADS_MAX)
		nr = THREADS_MAX;
	for (i = 0; i < nr; i++)
		t[i] = start(io_until_stop, i);
	while (access("stop", F_OK) < 0)
		usleep(20000);
	stop = 1;
	for (i = 0; i < nr; i++)
		pthread_join(t[i], NULL);
	exit(0);
}

/* serve N [headless]: threads that do I/O until there is a file `stop`; headless: the first one ends. */
int mode_serve(int argc, char **argv)
{
	unsigned int nr = argc > 0 ? (unsigned int)strtoul(argv[0], NULL, 10) : 8;

	if (argc < 2)
		(void)serve((void *)(uintptr_t)nr);
	start(serve, nr);
	pthread_exit(NULL);
}

/* Waits that fail with EINTR for any break: none is to be seen, where no signal comes. */

static int wake_fds[2];

static void must_wait(long r, const char *what)
{
	if (r < 0)
		give_up("%s has ended early", what);
}

static void *wait_for_events(void *arg)
{
	struct epoll_event want = { .events = EPOLLIN }, got;
	int fd = (int)must(epoll_create1(0), "epoll_create1");

	must(epoll_ctl(fd, EPOLL_CTL_ADD, wake_fds[0], &want), "epoll_ctl");
	must_wait(epoll_wait(fd, &got, 1, arg ? 600000 : -1), "epoll_wait");
	return NULL;
}

static void *wait_for_data(void *arg)
{
	struct timeval long_time = { .tv_sec = 600 };
	char c;

	(void)arg;
	must(setsockopt(wake_fds[0], SOL_SOCKET, SO_RCVTIMEO, &long_time, sizeof(long_time)),
	     "SO_RCVTIMEO");
	must_wait(recv(wake_fds[0], &c, 1, MSG_PEEK), "recv");
	return NULL;
}

static void *wait_for_signal(void *arg)
{
	struct timespec long_time = { .tv_sec = 600 };
	sigset_t set;

	(void)arg;
	sigemptyset(&set);
	sigaddset(&set, SIGUSR1);
	must(pthread_sigmask(SIG_BLOCK, &set, NULL), "pthread_sigmask");
	must_wait(sigtimedwait(&set, NULL, &long_time), "sigtimedwait");
	return NULL;
}

static void *wait_for_semaphore(void *arg)
{
	struct timespec long_time = { .tv_sec = 600 };
	struct sembuf down = { .sem_op = -1 };

	must_wait(semtimedop((int)(uintptr_t)arg, &down, 1, &long_time), "semtimedop");
	return NULL;
}

/* patient: waits until there is a file "stop". */
int mode_patient(int argc, char **argv)
{
	struct sembuf up = { .sem_op = 1 };
	int sem = (int)must(semget(IPC_PRIVATE, 1, 0600), "semget");
	pthread_t t[5];
	unsigned int i;

	(void)argc;
	(void)argv;
	must(socketpair(AF_UNIX, SOCK_STREAM, 0, wake_fds), "socketpair");
	t[0] = start(wait_for_events, 0);
	t[1] = start(wait_for_events, 1);
	t[2] = start(wait_for_data, 0);
	t[3] = start(wait_for_signal, 0);
	t[4] = start(wait_for_semaphore, (uintptr_t)sem);
	while (access("stop", F_OK) < 0) {
		some_calls("calls", 1, 1);
		usleep(20000);
	}
	must(write(wake_fds[1], "!", 1), "write");
	must(pthread_kill(t[3], SIGUSR1), "pthread_kill");
	must(semop(sem, &up, 1), "semop");
	for (i = 0; i < 5; i++)
		pthread_join(t[i], NULL);
	must(semctl(sem, 0, IPC_RMID), "semctl");
	return 0;
}

/* Working directories that change while names are used in them. */

static void *change_by_name(void *arg)
{
	unsigned int i = 0;

	(void)arg;
	while (!stop)
		must(chdir(i++ % 2 ? "../a" : "../b"), "chdir");
	return NULL;
}

static void *change_by_descriptor(void *arg)
{
	int fds[] = { (int)must(open("../a", O_PATH | O_DIRECTORY), "a"),
		      (int)must(open("../b", O_PATH | O_DIRECTORY), "b") };
	unsigned int i = 0;

	(void)arg;
	while (!stop)
		must(fchdir(fds[i++ % 2]), "fchdir");
	return NULL;
}

/*
 * moving N: threads change the working directory from a to b and back, while N files that are there are
 * opened by relative names and N others made. Prints the names by which the kernel knows them.
 */
int mode_moving(int argc, char **argv)
{
	unsigned int nr = argc > 0 ? (unsigned int)strtoul(argv[0], NULL, 10) : 100, i;
	char name[32], link[64], path[4096];
	pthread_t t[2];

	must(chdir("a"), "a");
	t[0] = start(change_by_name, 0);
	t[1] = start(change_by_descriptor, 0);
	for (i = 0; i < 2 * nr; i++) {
		ssize_t len;
		int fd;

		snprintf(name, sizeof(name), "%s%u", i % 2 ? "new" : "old", i / 2);
		fd = (int)must(open(name,
				    i % 2 ? O_WRONLY | O_CREAT | O_CLOEXEC : O_RDONLY | O_CLOEXEC,
				    0666),
			       name);
		snprintf(link, sizeof(link), "/proc/self/fd/%d", fd);
		len = must(readlink(link, path, sizeof(path)), link);
		printf("%.*s\n", (int)len, path);
		close(fd);
	}
	stop = 1;
	pthread_join(t[0], NULL);
	pthread_join(t[1], NULL);
	return 0;
}

static struct {
	_Atomic unsigned int next;
	unsigned int nr;
	uint64_t *inodes; /* by number of the name; 0: not used */
} names;

static void *use_names(void *arg)
{
	struct stat st;
	unsigned int i;
	char name[32];

	while ((i = names.next++) < names.nr) {
		int fd;

		snprintf(name, sizeof(name), "old%u", i);
		fd = (int)must(open(name, O_RDONLY | O_CLOEXEC), name);
		must(fstat(fd, &st), name);
		names.inodes[i] = st.st_ino;
		close(fd);
		if (i == names.nr / 4)
			must(kill(getpid(), SIGKILL), "kill");
	}
	for (;;)
		pause();
	return arg;
}

/* moving-die N: is killed while two threads use N files and another one moves. Which were used is left in `used`. */
int mode_moving_die(int argc, char **argv)
{
	int fd = (int)must(open("used", O_RDWR | O_CLOEXEC), "used");

	names.nr = argc > 0 ? (unsigned int)strtoul(argv[0], NULL, 10) : 100;
	names.inodes = mmap(NULL, names.nr * sizeof(*names.inodes), PROT_READ | PROT_WRITE,
			    MAP_SHARED, fd, 0);
	if (names.inodes == MAP_FAILED)
		give_up("used");
	must(chdir("a"), "a");
	start(change_by_name, 0);
	start(use_names, 0);
	use_names(NULL);
	return 1;
}
