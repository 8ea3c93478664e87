/* SPDX-License-Identifier: MIT */
/*
 * Locks of files in every way that programs use them. Whoever gets one writes into
 * the file, so that the tree shows who was last. Works in the cwd; fails loudly.
 * usage: locks [NAME]...: these cases, all without.
 */
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(what)                                                                                \
	do {                                                                                       \
		if (!(what)) {                                                                     \
			fprintf(stderr, "locks: line %d: %s: %s\n", __LINE__, #what,               \
				strerror(errno));                                                  \
			_exit(1);                                                                  \
		}                                                                                  \
	} while (0)

#define FAILS(what, error) CHECK((what) < 0 && errno == (error))

static int to_parent[2], to_child[2];

static void tell(int fd)
{
	CHECK(write(fd, "x", 1) == 1);
}

static void await_word(int fd)
{
	CHECK(read(fd, &(char){ 0 }, 1) == 1);
}

static void end_child(void)
{
	int status;

	CHECK(wait(&status) > 0 && status == 0);
}

static int make_file(const char *name)
{
	int fd = open(name, O_RDWR | O_CREAT | O_TRUNC, 0644);

	CHECK(fd >= 0);
	CHECK(write(fd, "0123456789", 10) == 10);
	return fd;
}

static int lock(int fd, int cmd, int type, off_t start, off_t len)
{
	struct flock l = { .l_type = (short)type, .l_start = start, .l_len = len };

	return fcntl(fd, cmd, &l);
}

/* What is in the way of an exclusive lock of [start, start + len). */
static struct flock found(int fd, int cmd, off_t start, off_t len)
{
	struct flock l = { .l_type = F_WRLCK, .l_start = start, .l_len = len };

	CHECK(!fcntl(fd, cmd, &l));
	return l;
}

/* Locks of one process do not exclude each other, whatever they were made by. */
static void one_process(void)
{
	int a = make_file("one"), b = open("one", O_RDWR);

	CHECK(!lock(a, F_SETLK, F_WRLCK, 0, 10));
	CHECK(!lock(b, F_SETLKW, F_WRLCK, 5, 10));
	CHECK(found(b, F_GETLK, 0, 0).l_type == F_UNLCK);
	CHECK(!lock(b, F_SETLK, F_UNLCK, 0, 5));
	close(a);
	close(b);
}

/* A child shares the open file, but not the locks. */
static void inherited(void)
{
	int fd = make_file("inherited");
	struct flock l;

	CHECK(!lock(fd, F_SETLK, F_WRLCK, 0, 10));
	if (!fork()) {
		FAILS(lock(fd, F_SETLK, F_RDLCK, 5, 1), EAGAIN);
		l = found(fd, F_GETLK, 0, 0);
		CHECK(l.l_type == F_WRLCK && l.l_len == 10 && l.l_pid == getppid());
		CHECK(!lock(fd, F_SETLK, F_WRLCK, 10, 5));
		tell(to_parent[1]);
		await_word(to_child[0]);
		_exit(0);
	}
	await_word(to_parent[0]);
	FAILS(lock(fd, F_SETLK, F_RDLCK, 14, 1), EAGAIN);
	CHECK(found(fd, F_GETLK, 0, 0).l_start == 10);
	tell(to_child[1]);
	end_child();
	CHECK(!lock(fd, F_SETLK, F_WRLCK, 0, 0));
	close(fd);
}

/* Any close of the file ends the locks of the process: by close, dup2, close_range; not of an O_PATH descriptor. */
static void given_up(void)
{
	int fd = make_file("closed"), p[2], k;

	CHECK(!pipe(p));
	for (k = 0; k < 4; k++) {
		int other = open("closed", k < 3 ? O_RDONLY : O_PATH);

		CHECK(other >= 0 && !lock(fd, F_SETLK, F_WRLCK, 0, 10));
		if (k == 0)
			close(other);
		else if (k == 1)
			CHECK(dup2(p[0], other) == other);
		else if (k == 2)
			CHECK(!close_range((unsigned int)other, (unsigned int)other, 0));
		else
			close(other);
		if (!fork()) {
			if (k < 3)
				CHECK(!lock(fd, F_SETLK, F_WRLCK, 0, 10));
			else
				FAILS(lock(fd, F_SETLK, F_WRLCK, 0, 10), EAGAIN);
			_exit(0);
		}
		end_child();
	}
	close(fd);
}

/* Whoever waits gets it when the holder lets go: by unlocking, closing, ending, being killed. */
static void handed_over(int kind, int way)
{
	int fd = make_file("handed"), other;
	pid_t holder = fork();

	if (!holder) {
		other = open("handed", O_RDWR);
		CHECK(!(kind ? flock(other, LOCK_EX) : lock(other, F_SETLK, F_WRLCK, 0, 10)));
		tell(to_parent[1]);
		await_word(to_child[0]);
		if (way == 3)
			pause();
		CHECK(pwrite(other, "h", 1, 0) == 1);
		if (way == 0)
			CHECK(!(kind ? flock(other, LOCK_UN)
				     : lock(other, F_SETLK, F_UNLCK, 0, 10)));
		else if (way == 1)
			close(other);
		_exit(0);
	}
	await_word(to_parent[0]);
	if (kind)
		FAILS(flock(fd, LOCK_EX | LOCK_NB), EAGAIN);
	else
		FAILS(lock(fd, F_SETLK, F_WRLCK, 0, 10), EAGAIN);
	tell(to_child[1]);
	if (way == 3 && !fork()) {
		CHECK(!usleep(20000) && !kill(holder, SIGKILL));
		_exit(0);
	}
	CHECK(!(kind ? flock(fd, LOCK_EX) : lock(fd, F_SETLKW, F_WRLCK, 0, 10)));
	CHECK(pwrite(fd, "w", 1, 0) == 1);
	while (wait(NULL) > 0)
		;
	close(fd);
}

static void hand_overs(void)
{
	int kind, way;

	for (kind = 0; kind < 2; kind++)
		for (way = 0; way < 4; way++)
			handed_over(kind, way);
}

/* Two that wait for each other: the kernel refuses whoever comes second, which is the parent as a rule. */
static void deadlock(void)
{
	int fd = make_file("deadlock");

	CHECK(!lock(fd, F_SETLK, F_WRLCK, 0, 1));
	if (!fork()) {
		CHECK(!lock(fd, F_SETLK, F_WRLCK, 1, 1));
		tell(to_parent[1]);
		CHECK(!lock(fd, F_SETLKW, F_WRLCK, 0, 1) || errno == EDEADLK);
		_exit(0);
	}
	await_word(to_parent[0]);
	CHECK(!usleep(20000));
	CHECK(!lock(fd, F_SETLKW, F_WRLCK, 1, 1) || errno == EDEADLK);
	CHECK(!lock(fd, F_SETLK, F_UNLCK, 0, 2));
	end_child();
	close(fd);
}

/* Locks live through execve, unless that closes a descriptor of the file. */
static void after_exec(int fd, bool gone)
{
	if (!fork()) {
		if (gone)
			CHECK(!lock(fd, F_SETLK, F_WRLCK, 0, 10));
		else
			FAILS(lock(fd, F_SETLK, F_WRLCK, 0, 10), EAGAIN);
		_exit(0);
	}
	end_child();
	exit(0);
}

static void exec_keeps(void)
{
	int fd = make_file("exec"), gone;
	char number[16];

	(void)snprintf(number, sizeof(number), "%d", fd);
	for (gone = 0; gone < 2; gone++) {
		if (!fork()) {
			CHECK(!lock(fd, F_SETLK, F_WRLCK, 0, 10));
			if (gone)
				CHECK(open("exec", O_RDONLY | O_CLOEXEC) >= 0);
			execl("/proc/self/exe", "locks", gone ? "--gone" : "--kept", number, NULL);
			CHECK(false);
		}
		end_child();
	}
	close(fd);
}

/* Ranges that are split, joined, raised and lowered; of descriptors that can only read or write. */
static void ranges(void)
{
	int fd = make_file("ranges"), r = open("ranges", O_RDONLY), w = open("ranges", O_WRONLY);
	struct flock l = { .l_type = F_WRLCK, .l_whence = SEEK_CUR, .l_start = -1, .l_len = 2 };

	CHECK(!lock(w, F_SETLK, F_WRLCK, 0, 100));
	CHECK(!lock(fd, F_SETLK, F_UNLCK, 40, 20));
	CHECK(!lock(r, F_SETLK, F_RDLCK, 0, 10));
	CHECK(!lock(w, F_SETLK, F_WRLCK, 5, 2));
	CHECK(!lock(r, F_SETLK, F_RDLCK, 60, 0));
	FAILS(lock(r, F_SETLK, F_WRLCK, 0, 1), EBADF);
	FAILS(lock(w, F_SETLKW, F_RDLCK, 0, 1), EBADF);
	CHECK(lseek(fd, 50, SEEK_SET) == 50 && !fcntl(fd, F_SETLK, &l));
	l = (struct flock){ .l_type = F_WRLCK, .l_whence = SEEK_END, .l_start = 45, .l_len = 1 };
	CHECK(!fcntl(w, F_SETLK, &l));
	if (!fork()) {
		CHECK(!lock(fd, F_SETLK, F_WRLCK, 40, 9));
		FAILS(lock(fd, F_SETLK, F_RDLCK, 50, 1), EAGAIN);
		CHECK(!lock(fd, F_SETLK, F_RDLCK, 51, 4));
		FAILS(lock(fd, F_SETLK, F_RDLCK, 55, 1), EAGAIN);
		CHECK(!lock(fd, F_SETLK, F_RDLCK, 0, 5));
		FAILS(lock(fd, F_SETLK, F_RDLCK, 4, 2), EAGAIN);
		FAILS(lock(fd, F_SETLK, F_WRLCK, 1000, 1), EAGAIN);
		l = found(fd, F_GETLK, 3, 0);
		CHECK(l.l_type == F_RDLCK && l.l_start == 0 && l.l_len == 5);
		_exit(0);
	}
	end_child();
	close(r);
	close(w);
	close(fd);
}

static void *lock_in_thread(void *arg)
{
	CHECK(!lock(*(int *)arg, F_SETLK, F_WRLCK, 2, 4));
	CHECK(!lock(*(int *)arg, F_SETLK, F_UNLCK, 3, 1));
	return NULL;
}

static int lock_in_clone(void *arg)
{
	CHECK(!lock(*(int *)arg, F_SETLKW, F_WRLCK, 0, 10));
	return 0;
}

/* Whoever shares the descriptors shares the locks: threads, and processes that were cloned so. */
static void shared(void)
{
	static char stack[1 << 16] __attribute__((aligned(16)));
	int fd = make_file("shared"), k;
	pthread_t t;

	CHECK(!lock(fd, F_SETLK, F_WRLCK, 0, 5));
	CHECK(!pthread_create(&t, NULL, lock_in_thread, &fd) && !pthread_join(t, NULL));
	for (k = 0; k < 2; k++) {
		if (k)
			CHECK(clone(lock_in_clone, stack + sizeof(stack), CLONE_FILES | SIGCHLD,
				    &fd) > 0);
		if (k)
			end_child();
		if (!fork()) {
			CHECK(lock(fd, F_SETLK, F_WRLCK, 3, 1) == (k ? -1 : 0));
			FAILS(lock(fd, F_SETLK, F_WRLCK, 4, 1), EAGAIN);
			_exit(0);
		}
		end_child();
	}
	close(fd);
}

/* Locks of an open file and of the process that has it exclude each other. */
static void open_files(void)
{
	int fd = make_file("ofd"), other = open("ofd", O_RDWR);

	CHECK(!lock(fd, F_OFD_SETLK, F_WRLCK, 0, 10));
	FAILS(lock(fd, F_SETLK, F_WRLCK, 0, 10), EAGAIN);
	FAILS(lock(other, F_OFD_SETLK, F_RDLCK, 0, 1), EAGAIN);
	CHECK(found(fd, F_GETLK, 0, 0).l_pid == -1);
	CHECK(found(other, F_OFD_GETLK, 0, 0).l_len == 10);
	if (!fork()) {
		CHECK(!lock(fd, F_OFD_SETLKW, F_WRLCK, 3, 1));
		CHECK(!lock(fd, F_OFD_SETLK, F_UNLCK, 0, 0));
		_exit(0);
	}
	end_child();
	CHECK(!lock(fd, F_SETLK, F_WRLCK, 0, 10));
	FAILS(lock(fd, F_OFD_SETLK, F_WRLCK, 0, 10), EAGAIN);
	close(other);
	CHECK(!lock(fd, F_OFD_SETLK, F_WRLCK, 0, 10));
	close(fd);
}

/* Many who try, wait and ask at the same time: what they get is luck, and shows who was first. */
static void storm(void)
{
	int i, k;

	close(make_file("storm"));
	for (i = 0; i < 4; i++) {
		unsigned int seed = (unsigned int)i;
		int fd;

		if (fork())
			continue;
		fd = open("storm", O_RDWR);
		for (k = 0; k < 250; k++) {
			off_t start = rand_r(&seed) % 4, len = 1 + rand_r(&seed) % 3;
			int type = rand_r(&seed) % 3 ? F_WRLCK : F_RDLCK;

			/* Two who wait for each other are told: they go on without. */
			(void)lock(fd, rand_r(&seed) % 4 ? F_SETLK : F_SETLKW, type, start, len);
			if (rand_r(&seed) % 3 == 0)
				(void)found(fd, F_GETLK, start, len);
			if (rand_r(&seed) % 2)
				CHECK(!lock(fd, F_SETLK, F_UNLCK, 0, 0));
			if (rand_r(&seed) % 16 == 0)
				close(open("storm", O_RDONLY));
			/* One at a time, so that nobody waits while he has one. */
			(void)flock(fd, rand_r(&seed) % 4 ? LOCK_EX | LOCK_NB : LOCK_SH | LOCK_NB);
			CHECK(!flock(fd, LOCK_UN));
		}
		_exit(0);
	}
	for (i = 0; i < 4; i++)
		end_child();
}

static const struct {
	const char *name;
	void (*run)(void);
} cases[] = {
	{ "one_process", one_process }, { "inherited", inherited },
	{ "given_up", given_up },	{ "hand_overs", hand_overs },
	{ "deadlock", deadlock },	{ "exec_keeps", exec_keeps },
	{ "ranges", ranges },		{ "shared", shared },
	{ "open_files", open_files },	{ "storm", storm },
};

int main(int argc, char **argv)
{
	size_t i;
	int k;

	if (argc == 3 && argv[1][0] == '-')
		after_exec(atoi(argv[2]), !strcmp(argv[1], "--gone"));
	CHECK(!pipe(to_parent) && !pipe(to_child));
	for (i = 0; i < sizeof(cases) / sizeof(*cases); i++)
		for (k = argc > 1 ? 1 : 0; k < argc; k++)
			if (argc == 1 || !strcmp(cases[i].name, argv[k]))
				cases[i].run();
	return 0;
}
