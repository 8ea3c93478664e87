/* SPDX-License-Identifier: MIT */
/*
 * New images: this program starts itself again, with a word that says what to
 * do. Each start is made by a child, which writes its expectations up to the new
 * image; the image itself goes on from there.
 */
#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib.h"

static char own_path[PATH_MAX];
static pid_t self;
static char *env_expect; /* where the expectations are: an image needs it */

/* In the new image. */
static int image(int status)
{
	t_begin();
	expect("getppid() = *");
	(void)sys(getppid);
	t_end();
	expect("exit_group(status=%d) = ?", status);
	expect("thread_exit(status=%d)", status);
	return status;
}

/* In the child: what is recorded of it, up to the image. */
static void expect_start(const char *call)
{
	t_thread();
	expect("thread_start(parent=%d, clone_flags=SIGCHLD, comm=\"exec\", how=clone)", self);
	expect("%s", call);
	expect("exec(path=%s, former_tid=?)", quote_str(own_path));
}

static void expect_end(pid_t pid, int status)
{
	t_ok(pid);
	expect("fork() = %d", pid);
	expect("wait4(pid=%d, wstatus=[%d], options=0, rusage=NULL) = %d", pid, status << 8, pid);
	t_is(sys(wait4, pid, &(int){ 0 }, 0, NULL), pid);
}

static void by_path(void)
{
	char *argv[] = { (char *)(uintptr_t) "a name", (char *)(uintptr_t) "image", NULL };
	char *env[] = { env_expect, (char *)(uintptr_t) "EMPTY=", NULL };
	pid_t pid = (pid_t)sys(fork);

	if (!pid) {
		expect_start(text(
			"execve(path=%s, argv=[\"a name\", \"image\"], envp=[%s, \"EMPTY=\"]) = 0",
			quote_str(own_path), quote_str(env_expect)));
		_exit((int)sys(execve, own_path, argv, env));
	}
	expect_end(pid, 3);
}

/* A vector that is NULL is empty; the kernel puts an empty string into it. */
static void without_arguments(void)
{
	char *env[] = { env_expect, (char *)(uintptr_t) "BARE=1", NULL };
	pid_t pid = (pid_t)sys(fork);

	if (!pid) {
		expect_start(text("execve(path=%s, argv=NULL, envp=[%s, \"BARE=1\"]) = 0",
				  quote_str(own_path), quote_str(env_expect)));
		_exit((int)sys(execve, own_path, NULL, env));
	}
	expect_end(pid, 4);
}

static void many_arguments(void)
{
	static char *argv[3002], word[100000];
	char *env[] = { env_expect, NULL }, *want;
	size_t i;
	pid_t pid;

	t_fill(word, sizeof(word) - 1, 5);
	argv[0] = (char *)(uintptr_t) "x";
	argv[1] = (char *)(uintptr_t) "image";
	argv[2] = word;
	for (i = 3; i < 3001; i++)
		argv[i] = (char *)(uintptr_t) "y";
	want = text("%s", "\"y\"");
	for (i = 1; i < 2998; i *= 2)
		want = text("%s, %s", want, want);
	want[3 + 5 * 2997] = 0;
	pid = (pid_t)sys(fork);
	if (!pid) {
		expect_start(text("execve(argv=[\"x\", \"image\", %s, %s], envp=[%s]) = 0",
				  quote_str(word), want, quote_str(env_expect)));
		_exit((int)sys(execve, own_path, argv, env));
	}
	expect_end(pid, 3);
}

static void by_descriptor(void)
{
	char *argv[] = { (char *)(uintptr_t) "x", (char *)(uintptr_t) "image", NULL };
	char *env[] = { env_expect, NULL };
	long fd = t_ok(sys(open, own_path, O_PATH | O_CLOEXEC));
	pid_t pid;

	expect("open(path=%s, flags=O_RDONLY|O_PATH|O_CLOEXEC, file=%s) = %ld", quote_str(own_path),
	       file_text((int)fd), fd);
	pid = (pid_t)sys(fork);
	if (!pid) {
		expect_start(text(
			"execveat(dirfd=%ld, path=\"\", argv=[\"x\", \"image\"], envp=[%s], flags=AT_EMPTY_PATH) = 0",
			fd, quote_str(env_expect)));
		_exit((int)sys(execveat, fd, "", argv, env, AT_EMPTY_PATH));
	}
	expect_end(pid, 3);
	expect("close(fd=%ld) = 0", fd);
	t_ok(sys(close, fd));
}

static void failures(void)
{
	char *argv[] = { (char *)(uintptr_t) "x", NULL };

	expect("execve(path=\"none\", argv=[\"x\"], envp=NULL) = -1 ENOENT");
	t_fails(sys(execve, "none", argv, NULL), ENOENT);
	expect("execve(path=\"text\", argv=[\"x\"], envp=[]) = -1 ENOEXEC");
	t_fails(sys(execve, "text", argv, argv + 1), ENOEXEC);
	expect("execve(path=\"plain\", argv=[\"x\"], envp=NULL) = -1 EACCES");
	t_fails(sys(execve, "plain", argv, NULL), EACCES);
	expect("execve(path=\"text\", argv=&0x10, envp=NULL) = -1 EFAULT");
	t_fails(sys(execve, "text", 0x10, NULL), EFAULT);
	expect("execveat(dirfd=AT_FDCWD, path=\"plain\", argv=[\"x\"], envp=NULL, flags=AT_SYMLINK_NOFOLLOW) = -1 EACCES");
	t_fails(sys(execveat, AT_FDCWD, "plain", argv, NULL, AT_SYMLINK_NOFOLLOW), EACCES);
	expect("execveat(dirfd=-1, path=\"x\", argv=NULL, envp=NULL, flags=0) = -1 EBADF");
	t_fails(sys(execveat, -1, "x", NULL, NULL, 0), EBADF);
}

/* Names that lead nowhere, as in a search along PATH: what they are given is recorded all the same. */
static void searches(void)
{
	static char word[5001], list[] = "a list";
	char *argv[] = {
		(char *)(uintptr_t) "x", (char *)(uintptr_t) "", word, list, list + 2, list, NULL
	};
	char *env[] = { (char *)(uintptr_t) "A=1", (char *)(uintptr_t) "EMPTY=", NULL };
	char *many[1501] = { NULL };
	unsigned int i;
	long r;

	memset(word, 'w', sizeof(word) - 1);
	for (i = 0; i < 3; i++) {
		expect("execve(path=\"none/x\", argv=[\"x\", \"\", \"w\"*5000, \"a list\", \"list\", \"a list\"], envp=[\"A=1\", \"EMPTY=\"]) = -1 ENOENT");
		t_fails(sys(execve, "none/x", argv, env), ENOENT);
		expect("execve(path=\"/none\", argv=NULL, envp=[]) = -1 ENOENT");
		t_fails(sys(execve, "/none", NULL, env + 2), ENOENT);
		expect("execve(path=\"\", argv=[\"list\", \"a list\"], envp=NULL) = -1 ENOENT");
		t_fails(sys(execve, "", argv + 4, NULL), ENOENT);
	}
	/* More than an agent copies. */
	for (i = 0; i < 1500; i++)
		many[i] = list;
	expect("execve(path=\"none\", argv=[\"a list\", \"a list\", ...], envp=NULL) = -1 ENOENT");
	t_fails(sys(execve, "none", many, NULL), ENOENT);
	/* What it cannot read. Kernels look for the file before it or after. */
	r = sys(execve, "none", 0x10, NULL);
	t_true(r == -1 && (errno == ENOENT || errno == EFAULT));
	expect("execve(path=\"none\", argv=&0x10, envp=NULL) = -1 %s",
	       errno == EFAULT ? "EFAULT" : "ENOENT");
	argv[2] = (char *)(uintptr_t)0x10;
	r = sys(execve, "none", argv + 1, NULL);
	t_true(r == -1 && (errno == ENOENT || errno == EFAULT));
	expect("execve(path=\"none\", argv=[\"\", &0x10, ...], envp=NULL) = -1 %s",
	       errno == EFAULT ? "EFAULT" : "ENOENT");
}

/* A script: the image is its interpreter. */
static void scripts(void)
{
	char *argv[] = { (char *)(uintptr_t) "script", NULL };
	char *env[] = { env_expect, NULL };
	int fd = (int)t_ok(open("script", O_CREAT | O_WRONLY, 0755));
	pid_t pid;

	t_true(dprintf(fd, "#!%s image\n", own_path) > 0);
	t_ok(close(fd));
	t_begin();
	pid = (pid_t)sys(fork);
	if (!pid) {
		expect_start(text("execve(path=\"./script\", argv=[\"script\"], envp=[%s]) = 0",
				  quote_str(env_expect)));
		_exit((int)sys(execve, "./script", argv, env));
	}
	expect_end(pid, 3);
	t_end();
}

static pthread_barrier_t ready;

static pid_t waiter;

/* A thread that is not the leader: it goes on under the leader's id, and all others end. */
static void *start_from_thread(void *unused)
{
	char *argv[] = { (char *)(uintptr_t) "x", (char *)(uintptr_t) "thread", NULL, NULL };
	char *env[] = { env_expect, NULL };

	(void)unused;
	t_thread();
	argv[2] = text("%ld", (long)sys(gettid));
	pthread_barrier_wait(&ready);
	t_await_state(getpid(), 'S');
	t_await_state(waiter, 'S');
	t_begin();
	expect("execve(path=%s, argv=[\"x\", \"thread\", \"%s\"], envp=[%s]) = 0",
	       quote_str(own_path), argv[2], quote_str(env_expect));
	(void)sys(execve, own_path, argv, env);
	return NULL;
}

static void *wait_in_thread(void *unused)
{
	(void)unused;
	t_thread();
	waiter = (pid_t)sys(gettid);
	expect("pause() = ?");
	expect("thread_exit()");
	pthread_barrier_wait(&ready);
	(void)sys(pause);
	return NULL;
}

static void from_thread(void)
{
	pthread_t a, b;
	pid_t pid = (pid_t)t_ok(fork());

	if (pid) {
		t_is(waitpid(pid, &(int){ 0 }, 0), pid);
		return;
	}
	t_thread();
	pthread_barrier_init(&ready, NULL, 3);
	t_is(pthread_create(&a, NULL, start_from_thread, NULL), 0);
	t_is(pthread_create(&b, NULL, wait_in_thread, NULL), 0);
	pthread_barrier_wait(&ready);
	expect("pause() = ?");
	(void)sys(pause);
}

/* The image of that thread: it is the leader now. */
static int image_of_thread(pid_t former)
{
	expect("exec(path=%s, former_tid=%d)", quote_str(own_path), former);
	return image(5);
}

/* The same, when the leader has ended before. */
static void *start_when_alone(void *leader)
{
	char *argv[] = { (char *)(uintptr_t) "x", (char *)(uintptr_t) "thread", NULL, NULL };
	char *env[] = { env_expect, NULL };

	t_thread();
	argv[2] = text("%ld", (long)sys(gettid));
	t_await_state(*(pid_t *)leader, 'Z');
	t_begin();
	expect("execve(path=%s, argv=[\"x\", \"thread\", \"%s\"], envp=[%s]) = 0",
	       quote_str(own_path), argv[2], quote_str(env_expect));
	(void)sys(execve, own_path, argv, env);
	return NULL;
}

static void from_last_thread(void)
{
	static pid_t leader;
	pthread_t thread;
	int status = -1;
	pid_t pid = (pid_t)t_ok(fork());

	if (pid) {
		t_is(waitpid(pid, &status, 0), pid);
		t_is(status, 5 << 8);
		return;
	}
	t_thread();
	leader = getpid();
	t_is(pthread_create(&thread, NULL, start_when_alone, &leader), 0);
	expect("exit(status=0) = ?");
	expect("thread_exit()");
	(void)sys(exit, 0);
}

/* A program that the kernel cannot start any more when it notices: the old image is gone by then. */
static void broken(void)
{
	struct {
		Elf64_Ehdr head;
		Elf64_Phdr load;
	} elf = { .head = { .e_ident = { ELFMAG0, ELFMAG1, ELFMAG2, ELFMAG3, ELFCLASS64,
					 ELFDATA2LSB, EV_CURRENT },
			    .e_type = ET_EXEC,
			    .e_machine = EM_X86_64,
			    .e_version = EV_CURRENT,
			    .e_phoff = sizeof(Elf64_Ehdr),
			    .e_ehsize = sizeof(Elf64_Ehdr),
			    .e_phentsize = sizeof(Elf64_Phdr),
			    .e_phnum = 1 },
		  .load = { .p_type = PT_LOAD,
			    .p_flags = PF_R | PF_X,
			    .p_vaddr = 0xffff800000000000, /* the kernel's own */
			    .p_filesz = 4096,
			    .p_memsz = 4096,
			    .p_align = 4096 } };
	char *argv[] = { (char *)(uintptr_t) "broken", NULL };
	int fd = (int)t_ok(open("broken", O_CREAT | O_WRONLY, 0755)), status = -1;
	pid_t pid;

	t_is(write(fd, &elf, sizeof(elf)), sizeof(elf));
	t_ok(ftruncate(fd, 4096));
	t_ok(close(fd));
	pid = (pid_t)t_ok(fork());
	if (!pid)
		_exit((int)sys(execve, "./broken", argv, argv + 1));
	t_is(waitpid(pid, &status, 0), pid);
	t_true(WIFSIGNALED(status));
	/* What it returned, nobody is there to see. */
	expect_of(pid, "execve(path=\"./broken\", argv=[\"broken\"], envp=[]) = *");
	expect_of(pid, "thread_exit(signal=SIG%s, core_dumped=0)", sigabbrev_np(WTERMSIG(status)));
}

static void find_ourselves(void)
{
	ssize_t len = readlink("/proc/self/exe", own_path, sizeof(own_path) - 1);

	t_true(len > 0);
	env_expect = text("T_EXPECT=%s", getenv("T_EXPECT"));
	self = getpid();
}

int main(int argc, char **argv)
{
	const struct rlimit none = { 0, 0 };

	t_init();
	find_ourselves();
	if (getenv("BARE"))
		return image(4);
	if (argc > 1 && !strcmp(argv[1], "thread"))
		return image_of_thread((pid_t)atoi(argv[2]));
	if (argc > 1)
		return image(3);
	t_ok(setrlimit(RLIMIT_CORE, &none));
	t_block_sigchld();
	t_ok(close((int)t_ok(open("plain", O_CREAT | O_WRONLY, 0644))));
	t_is(truncate("plain", 10), 0);
	t_ok(close((int)t_ok(open("text", O_CREAT | O_WRONLY, 0755))));
	t_is(truncate("text", 10), 0);
	t_begin();
	by_path();
	without_arguments();
	many_arguments();
	by_descriptor();
	failures();
	searches();
	t_end();
	scripts();
	from_thread();
	from_last_thread();
	broken();
	return 0;
}
