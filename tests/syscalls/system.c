/* SPDX-License-Identifier: MIT */
/* What is asked of the system as a whole; what would change it fails. */
#include <linux/perf_event.h>
#include <string.h>
#include <sys/sysinfo.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "lib.h"

#define SYSLOG_SIZE_BUFFER 10

static void asked(void)
{
	char random[100];
	struct utsname u;
	struct sysinfo s;
	long r;

	t_ok(sys(uname, &u));
	expect("uname(buf={sysname=\"Linux\", nodename=%s, release=%s, version=%s, machine=%s, domainname=%s}) = 0",
	       quote_str(u.nodename), quote_str(u.release), quote_str(u.version),
	       quote_str(u.machine), quote_str(u.domainname));
	expect("uname(buf=NULL) = -1 EFAULT");
	t_fails(sys(uname, NULL), EFAULT);
	t_ok(sys(sysinfo, &s));
	expect("sysinfo(info={uptime=%ld, loads=[%lu, %lu, %lu], totalram=%lu, freeram=%lu, sharedram=%lu, bufferram=%lu, totalswap=%lu, freeswap=%lu, procs=%u, totalhigh=%lu, freehigh=%lu, mem_unit=%u}) = 0",
	       s.uptime, s.loads[0], s.loads[1], s.loads[2], s.totalram, s.freeram, s.sharedram,
	       s.bufferram, s.totalswap, s.freeswap, s.procs, s.totalhigh, s.freehigh, s.mem_unit);
	expect("sysinfo(info=NULL) = -1 EFAULT");
	t_fails(sys(sysinfo, NULL), EFAULT);
	t_is(sys(getrandom, random, 100, 0), 100);
	expect("getrandom(buf=%s, size=100, flags=0) = 100", quote(random, 100));
	t_is(sys(getrandom, random, 3, 1), 3);
	expect("getrandom(buf=%s, size=3, flags=GRND_NONBLOCK) = 3", quote(random, 3));
	expect("getrandom(buf=%s, size=3, flags=0x100) = -1 EINVAL", pointer(random));
	t_fails(sys(getrandom, random, 3, 0x100), EINVAL);
	r = sys(syslog, SYSLOG_SIZE_BUFFER, NULL, 0);
	expect("syslog(type=SYSLOG_ACTION_SIZE_BUFFER, bufp=NULL, len=0) = %s", outcome(r));
}

/* Each of these is wrong in itself, whoever makes it. */
static void refused(void)
{
	long r;

	r = sys(sethostname, "name", -1);
	expect("sethostname(name=*, len=-1) = %s", outcome(r));
	r = sys(setdomainname, "name", 1000);
	expect("setdomainname(name=*, len=1000) = %s", outcome(r));
	r = sys(reboot, 0x11111111, 0x22222222, 3, NULL);
	expect("reboot(magic=0x11111111, magic2=0x22222222, op=0x3, arg=0) = %s", outcome(r));
	r = sys(init_module, NULL, 0, "");
	expect("init_module(module_image=0, size=0, param_values=\"\") = %s", outcome(r));
	r = sys(finit_module, -1, "a=b", 4);
	expect("finit_module(fd=-1, param_values=\"a=b\", flags=MODULE_INIT_COMPRESSED_FILE) = %s",
	       outcome(r));
	r = sys(delete_module, "no_such_module", 04000);
	expect("delete_module(name=\"no_such_module\", flags=O_NONBLOCK) = %s", outcome(r));
	r = sys(kexec_load, 0, 1000, NULL, 0);
	expect("kexec_load(entry=0, nr_segments=1000, segments=0, flags=0) = %s", outcome(r));
	r = sys(kexec_file_load, -1, -1, 3, "ab", 0xff00);
	expect("kexec_file_load(kernel_fd=-1, initrd_fd=-1, cmdline_len=3, cmdline=\"ab\\x00\", flags=0xff00) = %s",
	       outcome(r));
	r = sys(iopl, 9);
	expect("iopl(level=9) = %s", outcome(r));
	r = sys(ioperm, 100000, 1, 1);
	expect("ioperm(from=100000, num=1, turn_on=1) = %s", outcome(r));
	/* The kernel cuts this result to 32 bits, which makes a number of the error. */
	r = sys(modify_ldt, 99, NULL, 0);
	expect("modify_ldt(func=99, ptr=0, bytecount=0) = %s", outcome(r));
}

static void watched(void)
{
	struct perf_event_attr attr = { .size = 1 };
	char buf[8] = "";
	long r;

	r = sys(perf_event_open, &attr, 0, -1, -1, PERF_FLAG_FD_CLOEXEC);
	expect("perf_event_open(attr=%s, pid=0, cpu=-1, group_fd=-1, flags=PERF_FLAG_FD_CLOEXEC) = %s",
	       addr(&attr), outcome(r));
	t_true(r == -1);
	r = sys(bpf, 9999, buf, sizeof(buf));
	expect("bpf(cmd=9999, attr=%s, size=8) = %s", addr(buf), outcome(r));
	t_loses("CALL_UNSEEN"); /* what a tracer would see of its tracees, and we do not */
	r = sys(ptrace, 0, 0, 0, 0);
	expect("ptrace(op=PTRACE_TRACEME, pid=0, addr=0, data=0) = %s", outcome(r));
	t_true(r == -1); /* we are traced already */
	r = sys(ptrace, 0x4206, -1, 0x10, 0x20);
	expect("ptrace(op=PTRACE_SEIZE, pid=-1, addr=0x10, data=0x20) = %s", outcome(r));
}

int main(void)
{
	t_init();
	t_begin();
	asked();
	refused();
	watched();
	t_end();
	return 0;
}
