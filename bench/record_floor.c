/* SPDX-License-Identifier: MIT */
/*
 * What a recorder costs that does nothing, for bench/record: runs a command with a net (a
 * filter that asks from where each call comes, and lets all of them be made)
 * and a tracer, which goes along with all processes and lets each go on at once.
 *
 *   record_floor COMMAND [ARGUMENT]...
 */
#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/ptrace.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static void die(const char *what)
{
	perror(what);
	exit(2);
}

/* No call comes from there. */
#define NOWHERE 0x12345

static void put_net(void)
{
	const unsigned int at = offsetof(struct seccomp_data, instruction_pointer);
	struct sock_filter code[] = {
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, at),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, NOWHERE, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_LD | BPF_W | BPF_ABS, at + 4),
		BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, 0, 1, 0),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
		BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_TRACE),
	};
	struct sock_fprog net = { .len = sizeof(code) / sizeof(code[0]), .filter = code };

	if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) < 0 ||
	    syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_SPEC_ALLOW, &net) < 0)
		die("seccomp");
}

/* It begins when it is traced, and is gone when its tracer is. */
static pid_t start(char **argv)
{
	const long options = PTRACE_O_TRACECLONE | PTRACE_O_TRACEFORK | PTRACE_O_TRACEVFORK |
			     PTRACE_O_TRACEEXEC | PTRACE_O_TRACESECCOMP | PTRACE_O_EXITKILL;
	int go[2];
	pid_t pid;

	if (pipe(go) < 0)
		die("pipe");
	pid = fork();
	if (pid < 0)
		die("fork");
	if (!pid) {
		char c;

		close(go[1]);
		if (read(go[0], &c, 1) != 1)
			exit(2);
		close(go[0]);
		put_net();
		execvp(argv[0], argv);
		die(argv[0]);
	}
	close(go[0]);
	if (ptrace(PTRACE_SEIZE, pid, 0, options) < 0)
		die("ptrace");
	if (write(go[1], "", 1) != 1)
		die("write");
	close(go[1]);
	return pid;
}

static void go_on(pid_t tid, int status)
{
	int sig = WSTOPSIG(status), event = status >> 16;

	if (event == PTRACE_EVENT_STOP && sig != SIGTRAP)
		(void)ptrace(PTRACE_LISTEN, tid, 0, 0); /* or it is gone */
	else
		(void)ptrace(PTRACE_CONT, tid, 0, event ? 0 : sig); /* likewise */
}

int main(int argc, char **argv)
{
	int status, result = 2;
	pid_t pid, tid;

	if (argc < 2) {
		fprintf(stderr, "usage: record_floor COMMAND [ARGUMENT]...\n");
		return 2;
	}
	pid = start(argv + 1);
	while ((tid = waitpid(-1, &status, __WALL)) > 0) {
		if (WIFSTOPPED(status))
			go_on(tid, status);
		else if (tid == pid)
			result = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
	}
	return result;
}
