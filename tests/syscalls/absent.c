/* SPDX-License-Identifier: MIT */
/* Numbers that no kernel answers any more, and numbers that nobody knows. */
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib.h"

/* All registers, and each another number. */
static const long registers[6] = { 0x11, 0x22, 0x33, 0x44, 0x55, 0x66 };

static void removed(void)
{
	long r;

	r = sys(_sysctl, 0x11);
	expect("_sysctl(args=0x11) = %s", outcome(r));
	r = sys(create_module, "m", 5);
	expect("create_module(name=\"m\", size=5) = %s", outcome(r));
	r = sys(get_kernel_syms, 0x11);
	expect("get_kernel_syms(table=0x11) = %s", outcome(r));
	r = sys(query_module, "m", 1, 0x33, 4, 0x55);
	expect("query_module(name=\"m\", which=1, buf=0x33, bufsize=4, ret=0x55) = %s", outcome(r));
	r = sys(nfsservctl, 0x11, 0x22, 0x33);
	expect("nfsservctl(cmd=17, argp=0x22, resp=0x33) = %s", outcome(r));
	r = t_call(SYS_getpmsg, registers);
	expect("getpmsg(a0=0x11, a1=0x22, a2=0x33, a3=0x44, a4=0x55) = %s", outcome(r));
	r = t_call(SYS_putpmsg, registers);
	expect("putpmsg(a0=0x11, a1=0x22, a2=0x33, a3=0x44, a4=0x55) = %s", outcome(r));
	r = t_call(SYS_afs_syscall, registers);
	expect("afs_syscall(a0=0x11, a1=0x22, a2=0x33, a3=0x44, a4=0x55) = %s", outcome(r));
	r = t_call(SYS_tuxcall, registers);
	expect("tuxcall(a0=0x11, a1=0x22, a2=0x33) = %s", outcome(r));
	r = t_call(SYS_security, registers);
	expect("security(a0=0x11, a1=0x22, a2=0x33) = %s", outcome(r));
	r = t_call(SYS_vserver, registers);
	expect("vserver(a0=0x11, a1=0x22, a2=0x33, a3=0x44, a4=0x55) = %s", outcome(r));
	r = t_call(SYS_epoll_ctl_old, registers);
	expect("epoll_ctl_old(a0=0x11, a1=0x22, a2=0x33, a3=0x44) = %s", outcome(r));
	r = t_call(SYS_epoll_wait_old, registers);
	expect("epoll_wait_old(a0=0x11, a1=0x22, a2=0x33, a3=0x44) = %s", outcome(r));
	r = sys(lookup_dcookie, 5, NULL, 0);
	expect("lookup_dcookie(cookie=5, buffer=NULL, len=0) = %s", outcome(r));
	r = sys(set_thread_area, 0x11);
	expect("set_thread_area(u_info=0x11) = %s", outcome(r));
	r = sys(uselib, "none");
	expect("uselib(library=\"none\") = %s", outcome(r));
	r = sys(get_thread_area, 0x11);
	expect("get_thread_area(u_info=0x11) = %s", outcome(r));
}

static void unknown(void)
{
	long r;

	expect("unknown_call(nr=9999, a0=0x11, a1=0x22, a2=0x33, a3=0x44, a4=0x55, a5=0x66) = -1 ENOSYS");
	t_fails(t_call(9999, registers), ENOSYS);
	expect("unknown_call(nr=1023, a0=0xffffffffffffffff, a1=0) = -1 ENOSYS");
	t_fails(t_call(1023, (const long[]){ -1, 0, 0, 0, 0, 0 }), ENOSYS);
	expect("unknown_call(nr=-1, a0=0x11, a1=0x22, a2=0x33, a3=0x44, a4=0x55, a5=0x66) = -1 ENOSYS");
	t_fails(t_call(-1, registers), ENOSYS);
	/* The number of getpid as the interface for 32-bit pointers has it. */
	r = t_call(0x40000000 | SYS_getpid, registers);
	expect("unknown_call(nr=1073741863, a0=0x11) = %s", outcome(r));
	/* Beyond what any filter of a recorder may count to. */
	expect("unknown_call(nr=100000) = -1 ENOSYS");
	t_fails(t_call(100000, registers), ENOSYS);
}

/* Of the kernel's own return from a probe: whoever else makes them is ended, or refused. */
static void probes(long nr, const char *name)
{
	int status = -1;
	pid_t pid = (pid_t)t_ok(fork());

	if (!pid) {
		(void)t_call(nr, (const long[6]){ 0 });
		_exit(0);
	}
	t_is(waitpid(pid, &status, 0), pid);
	expect_of(pid, "%s() = *", name);
	if (WIFSIGNALED(status))
		expect_of(pid, "thread_exit(signal=SIG%s, core_dumped=0)",
			  sigabbrev_np(WTERMSIG(status)));
	else
		expect_of(pid, "thread_exit(status=0)");
}

int main(void)
{
	const struct rlimit none = { 0, 0 };

	t_init();
	t_ok(setrlimit(RLIMIT_CORE, &none));
	t_begin();
	removed();
	unknown();
	t_end();
	/* The kernel lets these pass any filter, so that no recorder that uses one can see them. */
	if (prctl(PR_GET_SECCOMP) == 0) {
		probes(335, "uretprobe");
		probes(336, "uprobe");
	} else {
		t_skip("uretprobe, uprobe: a seccomp filter is in place");
	}
	return 0;
}
