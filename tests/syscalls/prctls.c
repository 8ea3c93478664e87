/* SPDX-License-Identifier: MIT */
/* prctl by its options, and its kin. */
#include <asm/prctl.h>
#include <linux/capability.h>
#include <linux/prctl.h>
#include <linux/seccomp.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/personality.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib.h"

#ifndef PR_SET_VMA
#define PR_SET_VMA 0x53564d41
#define PR_SET_VMA_ANON_NAME 0
#endif

static void names(void)
{
	char name[16] = "";

	expect("prctl_set_name(arg2=\"a new name\") = 0");
	t_ok(sys(prctl, PR_SET_NAME, "a new name"));
	/* All of it, also what stands behind the NUL. */
	expect("prctl_get_name(arg2=\"a new name\\x00\\x00\\x00\\x00\\x00\\x00\") = 0");
	t_ok(sys(prctl, PR_GET_NAME, name));
	expect("prctl_set_name(arg2=NULL) = -1 EFAULT");
	t_fails(sys(prctl, PR_SET_NAME, NULL), EFAULT);
	expect("prctl_get_name(arg2=&0x8) = -1 EFAULT");
	t_fails(sys(prctl, PR_GET_NAME, 8), EFAULT);
}

static void death_and_dumps(void)
{
	int signo = -1;

	expect("prctl_set_pdeathsig(arg2=SIGTERM) = 0");
	t_ok(sys(prctl, PR_SET_PDEATHSIG, SIGTERM));
	expect("prctl_get_pdeathsig(arg2=[SIGTERM]) = 0");
	t_ok(sys(prctl, PR_GET_PDEATHSIG, &signo));
	expect("prctl_set_pdeathsig(arg2=0) = 0");
	t_ok(sys(prctl, PR_SET_PDEATHSIG, 0));
	expect("prctl_set_pdeathsig(arg2=1000) = -1 EINVAL");
	t_fails(sys(prctl, PR_SET_PDEATHSIG, 1000), EINVAL);
	expect("prctl_get_dumpable() = 1");
	t_is(sys(prctl, PR_GET_DUMPABLE), 1);
	expect("prctl_set_dumpable(arg2=1) = 0");
	t_ok(sys(prctl, PR_SET_DUMPABLE, 1));
	expect("prctl_set_dumpable(arg2=9) = -1 EINVAL");
	t_fails(sys(prctl, PR_SET_DUMPABLE, 9), EINVAL);
	expect("prctl_set_keepcaps(arg2=0) = 0");
	t_ok(sys(prctl, PR_SET_KEEPCAPS, 0));
	expect("prctl_set_keepcaps(arg2=5) = -1 EINVAL");
	t_fails(sys(prctl, PR_SET_KEEPCAPS, 5), EINVAL);
}

static void rights(void)
{
	long r;

	r = t_ok(sys(prctl, PR_CAPBSET_READ, CAP_CHOWN));
	expect("prctl_capbset_read(arg2=CAP_CHOWN) = %ld", r);
	expect("prctl_capbset_read(arg2=1000) = -1 EINVAL");
	t_fails(sys(prctl, PR_CAPBSET_READ, 1000), EINVAL);
	r = sys(prctl, PR_CAPBSET_DROP, 1000);
	expect("prctl_capbset_drop(arg2=1000) = %s", outcome(r));
	r = t_ok(sys(prctl, PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0));
	expect("prctl_get_no_new_privs(arg2=0, arg3=0, arg4=0, arg5=0) = %ld", r);
	expect("prctl_set_no_new_privs(arg2=2, arg3=0, arg4=0, arg5=0) = -1 EINVAL");
	t_fails(sys(prctl, PR_SET_NO_NEW_PRIVS, 2, 0, 0, 0), EINVAL);
	r = sys(prctl, PR_SET_SECCOMP, 77, NULL);
	expect("prctl_set_seccomp(arg2=77, arg3=0) = %s", outcome(r));
	r = sys(prctl, PR_SET_PTRACER, -1);
	expect("prctl_set_ptracer(arg2=-1) = %s", outcome(r));
	r = sys(prctl, PR_GET_SECCOMP);
	expect("prctl(op=PR_GET_SECCOMP, arg2=0, arg3=0, arg4=0, arg5=0) = %s", outcome(r));
}

static void others(void)
{
	char *p = mmap(NULL, 4096, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
	long r;

	t_true(p != MAP_FAILED);
	t_begin();
	expect("prctl_set_timerslack(arg2=50000) = 0");
	t_ok(sys(prctl, PR_SET_TIMERSLACK, 50000));
	expect("prctl_set_child_subreaper(arg2=0) = 0");
	t_ok(sys(prctl, PR_SET_CHILD_SUBREAPER, 0));
	r = sys(prctl, PR_SET_IO_FLUSHER, 0, 0, 0, 0);
	expect("prctl_set_io_flusher(arg2=0, arg3=0, arg4=0, arg5=0) = %s", outcome(r));
	r = sys(prctl, PR_SET_VMA, PR_SET_VMA_ANON_NAME, p, 4096, "a map");
	expect("prctl_set_vma(arg2=PR_SET_VMA_ANON_NAME, arg3=%s, arg4=4096, arg5=\"a map\") = %s",
	       addr(p), outcome(r));
	expect("prctl(op=999999, arg2=0x1, arg3=0x2, arg4=0x3, arg5=0x4) = -1 EINVAL");
	t_fails(sys(prctl, 999999, 1, 2, 3, 4), EINVAL);
	t_end();
}

static void kin(void)
{
	unsigned long fs = 0;
	long r;

	expect("arch_prctl(op=ARCH_GET_FS, addr=%s) = 0", addr(&fs));
	t_ok(sys(arch_prctl, ARCH_GET_FS, &fs));
	expect("arch_prctl(op=1, addr=0) = -1 EINVAL");
	t_fails(sys(arch_prctl, 1, 0), EINVAL);
	/* A recorder may use it: then it must do without from here on. */
	expect("arch_prctl(op=ARCH_SET_GS, addr=%s) = 0", addr(&fs));
	t_ok(sys(arch_prctl, ARCH_SET_GS, &fs));
	expect("getppid() = *");
	(void)sys(getppid);
	expect("getppid() = *");
	(void)getppid();
	r = t_ok(sys(personality, 0xffffffff));
	expect("personality(persona=*) = %ld", r);
	expect("personality(persona=PER_LINUX|ADDR_NO_RANDOMIZE) = %ld", r);
	t_is(sys(personality, PER_LINUX | ADDR_NO_RANDOMIZE), r);
	expect("seccomp(operation=SECCOMP_SET_MODE_FILTER, flags=SECCOMP_FILTER_FLAG_TSYNC, args=0) = -1 EFAULT");
	t_fails(sys(seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, NULL), EFAULT);
	expect("seccomp(operation=99, flags=0, args=0) = -1 EINVAL");
	t_fails(sys(seccomp, 99, 0, NULL), EINVAL);
}

/* What a thread tells the kernel of itself. */
static void of_threads(pid_t self)
{
	static int tid_word;
	unsigned long head = 0, len = 0;
	void *table[4] = { 0 };

	t_ok(sys(get_robust_list, 0, &head, &len));
	expect("get_robust_list(pid=0, head_ptr=[%s], len_ptr=[24]) = 0", hex(head));
	expect("set_robust_list(head=%s, len=24) = 0", hex(head));
	t_ok(sys(set_robust_list, head, 24));
	expect("set_robust_list(head=0, len=1) = -1 EINVAL");
	t_fails(sys(set_robust_list, 0, 1), EINVAL);
	expect("get_robust_list(pid=-1, head_ptr=%s, len_ptr=%s) = -1 ESRCH", pointer(&head),
	       pointer(&len));
	t_fails(sys(get_robust_list, -1, &head, &len), ESRCH);
	expect("rseq(rseq=%s, rseq_len=7, flags=RSEQ_FLAG_UNREGISTER, sig=0x12345678) = -1 EINVAL",
	       addr(table));
	t_fails(sys(rseq, table, 7, 1, 0x12345678), EINVAL);
	expect("set_tid_address(tidptr=%s) = %d", addr(&tid_word), self);
	t_is(sys(set_tid_address, &tid_word), self);
}

/* Set for good: in a child. */
static void for_good(void)
{
	int status;
	pid_t pid = (pid_t)t_ok(fork());

	if (!pid) {
		t_thread();
		t_begin();
		expect("prctl_set_no_new_privs(arg2=1, arg3=0, arg4=0, arg5=0) = 0");
		t_ok(sys(prctl, PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0));
		expect("prctl_get_no_new_privs(arg2=0, arg3=0, arg4=0, arg5=0) = 1");
		t_is(sys(prctl, PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0), 1);
		t_end();
		_exit(0);
	}
	t_is(waitpid(pid, &status, 0), pid);
	t_is(status, 0);
}

int main(void)
{
	pid_t self;

	t_init();
	self = getpid();
	t_begin();
	names();
	death_and_dumps();
	rights();
	kin();
	t_end();
	others();
	for_good();
	t_begin();
	of_threads(self);
	t_end();
	return 0;
}
