/* SPDX-License-Identifier: MIT */
/*
 * The queue of a block device in sysfs. A faithful run wants requests to reach
 * the device as they were submitted: no scheduler, no merging, and room for all
 * that is in flight (hfplayer, section 2.1): where the queue is full, io_uring
 * hands requests to other threads, and they change places.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/banned.h"
#include "replay/blk_target.h"

/* A request or two of the kernel's own must find room too. */
#define SPARE 8

static int read_text(const struct blk_queue *q, const char *name, char *out, size_t size)
{
	char path[128];
	ssize_t n;
	int fd;

	(void)snprintf(path, sizeof(path), "%s/%s", q->dir, name);
	fd = open(path, O_RDONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = read(fd, out, size - 1);
	(void)close(fd); /* only read from */
	if (n < 0)
		return -errno;
	while (n && out[n - 1] == '\n')
		n--;
	out[n] = '\0';
	return 0;
}

static int write_text(const struct blk_queue *q, const char *name, const char *text)
{
	char path[128];
	ssize_t n;
	int fd, r = 0;

	(void)snprintf(path, sizeof(path), "%s/%s", q->dir, name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	n = write(fd, text, strlen(text));
	if (n < 0)
		r = -errno;
	(void)close(fd); /* the write was answered */
	return r;
}

static uint64_t read_number(const struct blk_queue *q, const char *name)
{
	char text[32];

	return read_text(q, name, text, sizeof(text)) < 0 ? 0 : strtoull(text, NULL, 10);
}

/* "mq-deadline [none]": the one in brackets. */
static void read_scheduler(struct blk_queue *q)
{
	char text[256], *open, *close;

	if (read_text(q, "scheduler", text, sizeof(text)) < 0)
		return;
	open = strchr(text, '[');
	close = open ? strchr(open, ']') : NULL;
	if (!close)
		return;
	*close = '\0';
	(void)snprintf(q->scheduler, sizeof(q->scheduler), "%.*s", BLK_QUEUE_WORD - 1, open + 1);
}

void blk_queue_read(int fd, struct blk_queue *q)
{
	struct stat st;

	*q = (struct blk_queue){ 0 };
	if (fstat(fd, &st) < 0 || !S_ISBLK(st.st_mode))
		return;
	(void)snprintf(q->dir, sizeof(q->dir), "/sys/dev/block/%u:%u/queue", major(st.st_rdev),
		       minor(st.st_rdev));
	if (access(q->dir, F_OK) < 0) /* a partition has its disk's */
		(void)snprintf(q->dir, sizeof(q->dir), "/sys/dev/block/%u:%u/../queue",
			       major(st.st_rdev), minor(st.st_rdev));
	if (access(q->dir, F_OK) < 0)
		return;
	q->known = true;
	read_scheduler(q);
	q->nomerges = read_number(q, "nomerges");
	q->nr_requests = read_number(q, "nr_requests");
	q->rotational = read_number(q, "rotational");
}

void blk_queue_advise(struct blk_queue *q, uint64_t depth)
{
	q->want_nr_requests = q->nr_requests && depth + SPARE > q->nr_requests ? depth + SPARE : 0;
}

/* Nothing can be done about what fails here. */
static void restore(const struct blk_queue *q)
{
	char text[32];

	/* The scheduler first: it brings a length of its own. */
	if (q->scheduler[0])
		(void)write_text(q, "scheduler", q->scheduler);
	(void)snprintf(text, sizeof(text), "%llu", (unsigned long long)q->nomerges);
	(void)write_text(q, "nomerges", text);
	(void)snprintf(text, sizeof(text), "%llu", (unsigned long long)q->nr_requests);
	(void)write_text(q, "nr_requests", text);
}

/*
 * The guard: nothing else than the end of whoever tuned, by whatever means, ends
 * its wait. What it inherited it gives up, so that nobody else waits for it.
 */
static void __attribute__((noreturn)) guard_main(const struct blk_queue *q, int pipe_fd)
{
	char none;

	(void)setsid(); /* signals of a terminal are not for it */
	(void)signal(SIGINT, SIG_IGN);
	(void)signal(SIGTERM, SIG_IGN);
	(void)signal(SIGHUP, SIG_IGN);
	(void)dup2(pipe_fd, 0);
	(void)close_range(1, ~0U, 0);
	while (read(0, &none, 1) < 0 && errno == EINTR)
		;
	restore(q);
	_exit(0);
}

static int start_guard(struct blk_queue *q, struct err *err)
{
	int fds[2], r;
	pid_t pid;

	if (pipe2(fds, O_CLOEXEC) < 0)
		return err_set(err, -errno, "cannot make a pipe");
	pid = fork();
	if (pid < 0) {
		r = -errno;
		(void)close(fds[0]);
		(void)close(fds[1]);
		return err_set(err, r, "cannot start a process");
	}
	if (!pid) {
		(void)close(fds[1]); /* or it would wait for itself */
		guard_main(q, fds[0]);
	}
	(void)close(fds[0]);
	q->guard_pid = pid;
	q->guard_fd = fds[1];
	return 0;
}

int blk_queue_tune(struct blk_queue *q, struct err *err)
{
	char text[32];
	int r;

	if (!q->known)
		return err_set(err, -EOPNOTSUPP, "there is no queue to tune");
	r = start_guard(q, err);
	if (r < 0)
		return r;
	if (q->scheduler[0] && strcmp(q->scheduler, "none") != 0)
		r = write_text(q, "scheduler", "none");
	if (!r)
		r = write_text(q, "nomerges", "2");
	if (r < 0)
		return err_set(err, r, "cannot set the queue in %s", q->dir);
	/* A driver may have no room for more; then the limit in flight has to do. */
	(void)snprintf(text, sizeof(text), "%llu", (unsigned long long)q->want_nr_requests);
	if (q->want_nr_requests)
		(void)write_text(q, "nr_requests", text);
	return 0;
}

void blk_queue_restore(struct blk_queue *q)
{
	if (!q->guard_pid)
		return;
	(void)close(q->guard_fd);
	while (waitpid(q->guard_pid, NULL, 0) < 0 && errno == EINTR)
		;
	q->guard_pid = 0;
}
