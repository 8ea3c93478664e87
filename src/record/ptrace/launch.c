/* SPDX-License-Identifier: MIT */
/* Starting the command under the tracer, and attaching to one that runs. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/filter.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ptrace.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/io.h"
#include "base/mem.h"
#include "record/ptrace/map_stores.h"
#include "record/ptrace/tracer.h"

#define TRACE_OPTIONS                                                                              \
	(PTRACE_O_TRACESYSGOOD | PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |  \
	 PTRACE_O_TRACEEXEC)

/* As execvp() would find it, so that the child makes one execve and no search is recorded. */
static int find_program(const char *name, char path[PATH_MAX], struct err *err)
{
	const char *dirs = getenv("PATH"), *end;
	int r = -ENOENT;

	if (strchr(name, '/')) {
		if (snprintf(path, PATH_MAX, "%s", name) >= PATH_MAX)
			return err_set(err, -ENAMETOOLONG, "cannot run %s", name);
		return access(path, X_OK) < 0 ? err_set(err, -errno, "cannot run %s", name) : 0;
	}
	for (dirs = dirs ? dirs : "/usr/bin:/bin"; *dirs || r == -ENOENT; dirs = end + 1) {
		struct stat st;

		end = strchrnul(dirs, ':');
		if (snprintf(path, PATH_MAX, "%.*s%s%s", (int)(end - dirs), dirs,
			     end > dirs ? "/" : "", name) < PATH_MAX &&
		    !stat(path, &st) && S_ISREG(st.st_mode)) {
			if (!access(path, X_OK))
				return 0;
			r = -errno;
		}
		if (!*end)
			break;
	}
	return err_set(err, r, "cannot run %s", name);
}

struct launch {
	const char *path;
	char **argv;
	const struct signals *signals; /* as the command shall have them */
	const struct sigaction *file_size; /* likewise */
	/* A byte from the child when it may be traced, and one back when it is: its end is the second. */
	int go[2];
	struct sock_fprog filter; /* len 0: none */
	unsigned int nr_trials; /* calls that do nothing, by which is seen what a stop costs */
};

static bool wait_for_byte(int fd)
{
	ssize_t n;
	char c;

	while ((n = read(fd, &c, 1)) < 0 && errno == EINTR)
		;
	return n == 1;
}

/* In the child. What is done here is not recorded; the execve is. */
static NORETURN void child_main(struct launch *l)
{
	unsigned int i;

	(void)close(l->go[0]);
	/* While nobody traces us, as every call that is seen takes its time; signals are blocked. */
	signals_restore(l->signals);
	(void)sigaction(SIGXFSZ, l->file_size, NULL);
	if (write(l->go[1], "", 1) != 1 || !wait_for_byte(l->go[1]))
		_exit(127); /* the recorder has died: nobody would see what the command does */
	(void)sigprocmask(SIG_SETMASK, &l->signals->mask, NULL);
	if (l->filter.len && !filter_install(&l->filter))
		goto failed;
	for (i = 0; i < l->nr_trials; i++)
		(void)syscall(SYS_getppid);
	execv(l->path, l->argv);
failed:
	_exit(127); /* the tracer has seen the execve's error, or none, for want of the filter */
}

unsigned long tracer_options(const struct tracer *tr)
{
	unsigned long options = TRACE_OPTIONS;

	if (tr->filtered)
		options |= PTRACE_O_TRACESECCOMP;
	if (tr->o->on_death == RECORD_DIE_TOO)
		options |= PTRACE_O_EXITKILL;
	if (tr->stops_at_exits)
		options |= PTRACE_O_TRACEEXIT;
	return options;
}

static int seize(pid_t tid, unsigned long options)
{
	return ptrace(PTRACE_SEIZE, tid, NULL, options) < 0 ? -errno : 0;
}

/* Attaches to the child and leaves it stopped. */
static int take_child(const struct tracer *tr, pid_t pid, struct err *err)
{
	int status, r = seize(pid, tracer_options(tr));

	if (r < 0)
		return err_set(err, r, "cannot trace the command");
	if (ptrace(PTRACE_INTERRUPT, pid, NULL, NULL) < 0)
		return err_set(err, -errno, "cannot stop the command");
	while (waitpid(pid, &status, __WALL) < 0) {
		if (errno != EINTR)
			return err_set(err, -errno, "cannot wait for the command");
	}
	if (!WIFSTOPPED(status))
		return err_set(err, -ECHILD, "the command ended before it began");
	return 0;
}

/* The terminal has sent these to us when the child was not yet there to get them, too. */
static void pass_on_keys(const sigset_t *pending, pid_t child)
{
	static const int keys[] = { SIGINT, SIGQUIT };
	unsigned int i;

	for (i = 0; i < ARRAY_LEN(keys); i++) {
		if (sigismember(pending, keys[i]) == 1)
			(void)kill(child, keys[i]); /* our own child is there */
	}
}

static int start_child(struct tracer *tr, struct launch *l, struct err *err)
{
	sigset_t all, old, pending;
	pid_t pid;
	int r;

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, l->go) < 0)
		return err_set(err, -errno, "cannot make a pair of sockets");
	sigfillset(&all);
	/* No signal may reach the child before its handlers are those of the command. */
	(void)sigprocmask(SIG_BLOCK, &all, &old);
	(void)sigpending(&pending);
	pid = fork();
	if (!pid)
		child_main(l);
	r = pid < 0 ? -errno : 0;
	if (!r)
		pass_on_keys(&pending, pid);
	(void)sigprocmask(SIG_SETMASK, &old, NULL);
	if (r)
		return err_set(err, r, "cannot start a process");
	(void)close(fd_take(&l->go[1]));
	if (wait_for_byte(l->go[0]))
		r = take_child(tr, pid, err);
	else
		r = err_set(err, -ECHILD, "the command ended before it began");
	if (r < 0) {
		(void)kill(pid, SIGKILL);
		(void)waitpid(pid, NULL, __WALL);
		return r;
	}
	tr->child = pid;
	return 0;
}

int tracer_find_program(struct tracer *tr, struct err *err)
{
	return find_program(tr->o->argv[0], tr->path, err);
}

int tracer_launch(struct tracer *tr, struct err *err)
{
	struct launch l = { .path = tr->path,
			    .argv = tr->o->argv,
			    .signals = &tr->signals,
			    .file_size = &tr->session->file_size,
			    .go = { -1, -1 } };
	struct tracee *t;
	unsigned int i;
	int r;

	/* Without a tracer the calls of a filtered program fail: if it may outlive us it gets none. */
	if (tr->agent ||
	    (tr->o->wanted && tr->o->on_death == RECORD_DIE_TOO && !filter_refusal())) {
		/* Programs choose small numbers; another one each time, that none can count on it. */
		tr->filter_mark = (uint16_t)(0x8000 | tr->session->start_ns);
		if (agent_is_netless(tr))
			filter_build_tell(tr->filter_mark, tr->agent, &l.filter);
		else
			filter_build(tr->o->wanted, tr->filter_mark, tr->agent, &l.filter);
		tr->filtered = true;
	}
	/* Nothing is said of a program that hardly stops. */
	l.nr_trials = agent_will_enter(tr) ? 0 : COST_NR_TRIALS;
	tr->all.are_movable = tr->o->on_death == RECORD_DIE_TOO && !tr->o->wanted;
	r = start_child(tr, &l, err);
	if (!r) {
		t = tracees_get(&tr->all, tr->child);
		t->pid = tr->child;
		t->state = TRACEE_RUNNING;
		/* Each stop of its own preparations is passed over until the execve comes. */
		tracer_resume(tr, t, 0);
		if (write(l.go[0], "", 1) != 1)
			r = err_set(err, -errno, "cannot start the command");
	}
	for (i = 0; i < 2; i++) {
		if (l.go[i] >= 0)
			(void)close(l.go[i]); /* what was written is read all the same */
	}
	free(l.filter.filter);
	return r;
}

/* Attaching. */

/* By it, a program sees to faults of its memory. */
static bool is_userfaultfd(const char *target, ssize_t len)
{
	static const char name[] = "anon_inode:[userfaultfd]";

	return len == (ssize_t)strlen(name) && !memcmp(target, name, strlen(name));
}

/* Whether a ring has a thread of the kernel that takes its requests without a call of the program. */
static bool is_polled_ring(const char *target, ssize_t len, struct buf *info)
{
	static const char name[] = "anon_inode:[io_uring]", key[] = "SqThread:";
	const char *line;

	if (len != (ssize_t)strlen(name) || memcmp(target, name, strlen(name)))
		return false;
	line = strstr(buf_str(info), key);
	return !line || strtol(line + strlen(key), NULL, 10) > 0;
}

static int note_descriptor(struct tracer *tr, struct tracee *t, int fd, bool before_exec)
{
	struct event ev = { .row = row_by_id(EV_found_fd) };
	unsigned long long offset = 0;
	unsigned int flags = 0;
	char name[64], target[PATH_MAX];
	struct buf info = { 0 };
	struct arena a;
	struct stat st;
	ssize_t len;
	int r;

	snprintf(name, sizeof(name), "/proc/%d/fd/%d", (int)t->tid, fd);
	len = readlink(name, target, sizeof(target));
	if (len < 0 || stat(name, &st) < 0)
		return 0; /* closed meanwhile */
	tr->memory.may_wait |= is_userfaultfd(target, len);
	snprintf(name, sizeof(name), "/proc/%d/fdinfo/%d", (int)t->tid, fd);
	if (!io_read_file(name, 65536, &info, NULL))
		(void)sscanf(buf_str(&info), "pos: %llu flags: %o", &offset, &flags);
	tr->has_polled_ring |= is_polled_ring(target, len, &info);
	if (before_exec && (flags & O_CLOEXEC)) {
		buf_release(&info);
		return 0; /* ours: the command will not have it */
	}
	arena_init(&a);
	ev.args[0] = value_int(fd);
	ev.args[1] = value_bytes(&a, target, (size_t)len);
	ev.args[2] = value_uint(flags & ~(unsigned int)O_CLOEXEC);
	ev.args[3] = value_int((int64_t)offset);
	ev.args[4] = value_uint(st.st_mode);
	ev.args[5] = value_uint(st.st_dev);
	ev.args[6] = value_uint(st.st_ino);
	ev.args[7] = value_int(!!(flags & O_CLOEXEC));
	ev.args[8] =
		value_uint(open_ids_get(&tr->open_ids,
					(struct open_id){ .pid = t->tid,
							  .fd = fd,
							  .offset = offset,
							  .flags = flags & ~(uint32_t)O_CLOEXEC,
							  .is_own = before_exec },
					&st));
	ev.enter_ns = ev.exit_ns = tracer_now(tr);
	r = tracer_emit(tr, t, &ev);
	arena_release(&a);
	buf_release(&info);
	return r;
}

static bool read_link(pid_t tid, const char *what, struct arena *a, struct value *ret)
{
	char name[64], target[PATH_MAX];
	ssize_t len;

	snprintf(name, sizeof(name), "/proc/%d/%s", (int)tid, what);
	len = readlink(name, target, sizeof(target));
	if (len < 0)
		return false;
	*ret = value_bytes(a, arena_memdup0(a, target, (size_t)len), (size_t)len);
	return true;
}

static int note_state(struct tracer *tr, struct tracee *t)
{
	struct event ev = { .row = row_by_id(EV_found_state) };
	struct buf status = { 0 };
	const char *line;
	char name[64];
	struct arena a;
	int r;

	arena_init(&a);
	(void)read_link(t->tid, "cwd", &a, &ev.args[0]);
	(void)read_link(t->tid, "root", &a, &ev.args[1]);
	snprintf(name, sizeof(name), "/proc/%d/status", (int)t->tid);
	if (!io_read_file(name, 65536, &status, NULL)) {
		line = strstr(buf_str(&status), "\nUmask:");
		if (line)
			ev.args[2] = value_uint(strtoul(line + 7, NULL, 8));
	}
	ev.enter_ns = ev.exit_ns = tracer_now(tr);
	r = tracer_emit(tr, t, &ev);
	arena_release(&a);
	buf_release(&status);
	return r;
}

/* Without kcmp, of a program that runs already. */
static void lose_sharing(struct tracer *tr, const struct tracee *t)
{
	struct loss loss = { .kind = LOSS_CALL_UNSEEN,
			     .pid = (uint32_t)t->pid,
			     .tid = (uint32_t)t->tid,
			     .count = tr->open_ids.nr_unknown,
			     .to_ns = tracer_now(tr),
			     .note = "kcmp is denied: descriptors that may share an open file" };

	if (loss.count)
		tracer_put_loss(tr, &loss);
	tr->open_ids.nr_unknown = 0;
}

int tracer_note_process(struct tracer *tr, struct tracee *t, bool before_exec)
{
	struct dirent *de;
	char name[64];
	DIR *d;
	int r = note_state(tr, t);

	snprintf(name, sizeof(name), "/proc/%d/fd", (int)t->tid);
	d = opendir(name);
	while (!r && d && (de = readdir(d))) {
		if (de->d_name[0] != '.')
			r = note_descriptor(tr, t, (int)strtol(de->d_name, NULL, 10), before_exec);
	}
	if (d)
		(void)closedir(d);
	lose_sharing(tr, t);
	return r ? r
		 : tree_touch_descriptors(tr->session->tree, t->tid, before_exec, tracer_now(tr));
}

/* It has ended, and is there for its parent alone, or for the other threads of its process. */
static bool has_ended(pid_t pid, pid_t tid)
{
	struct buf text = { 0 };
	const char *state = NULL;
	char name[64];
	bool ended;

	snprintf(name, sizeof(name), "/proc/%d/task/%d/stat", (int)pid, (int)tid);
	if (!io_read_file(name, 4096, &text, NULL))
		state = strrchr(buf_str(&text), ')');
	ended = !state || state[1] != ' ' || strchr("ZX", state[2]);
	buf_release(&text);
	return ended;
}

static pid_t tracer_of(pid_t tid)
{
	struct buf text = { 0 };
	const char *line = NULL;
	char name[64];
	pid_t pid;

	snprintf(name, sizeof(name), "/proc/%d/status", (int)tid);
	if (!io_read_file(name, 65536, &text, NULL))
		line = strstr(buf_str(&text), "\nTracerPid:");
	pid = line ? (pid_t)strtol(line + 11, NULL, 10) : 0;
	buf_release(&text);
	return pid;
}

static int say_why(struct err *err, int r, pid_t pid, pid_t tid)
{
	pid_t other = tracer_of(tid);

	if (other)
		return err_set(err, r, "process %d is traced already, by process %d", (int)pid,
			       (int)other);
	return err_set(err, r, "cannot attach to thread %d of process %d", (int)tid, (int)pid);
}

/* Attaches to the threads that are there now. Returns how many were new. */
static int seize_threads(struct tracer *tr, pid_t pid, struct err *err)
{
	struct dirent *de;
	char name[64];
	int fresh = 0;
	DIR *d;

	snprintf(name, sizeof(name), "/proc/%d/task", (int)pid);
	d = opendir(name);
	if (!d)
		return err_set(err, errno == ENOENT ? -ESRCH : -errno, "cannot look at process %d",
			       (int)pid);
	while ((de = readdir(d))) {
		pid_t tid = (pid_t)strtol(de->d_name, NULL, 10);
		struct tracee *t;
		int r;

		if (tid <= 0 || tracees_find(&tr->all, tid))
			continue;
		r = seize(tid, tracer_options(tr));
		if (r < 0 && has_ended(pid, tid))
			continue;
		if (r < 0) {
			(void)closedir(d);
			return say_why(err, r, pid, tid);
		}
		t = tracees_get(&tr->all, tid);
		t->pid = pid;
		t->state = TRACEE_RUNNING;
		t->cpu.has_company = true; /* or had, before we came */
		interrupts_break_off(t); /* its stop begins the recording */
		fresh++;
	}
	(void)closedir(d);
	return fresh;
}

int tracer_attach(struct tracer *tr, struct err *err)
{
	pid_t pid = tr->o->attach_pid;
	struct tracee *first;
	int r;

	/* A thread may make another while we look: until a round finds none. */
	do
		r = seize_threads(tr, pid, err);
	while (r > 0);
	if (r < 0)
		return r;
	first = tracees_find(&tr->all, pid);
	MAP_EACH (&tr->all.by_tid, e) {
		struct tracee *t = e->value;

		first = first ? first : t; /* the others outlive the first thread of a process */
		r = tracer_begin_thread(tr, t, 0, 0, START_ATTACH);
		if (r < 0)
			return err_set(err, r, "cannot write %s", tr->o->output);
	}
	if (!first)
		return err_set(err, -ESRCH, "process %d has ended", (int)pid);
	r = tracer_note_process(tr, first, false);
	map_stores_found(tr, first);
	return r < 0 ? err_set(err, r, "cannot write %s", tr->o->output) : 0;
}
