/* SPDX-License-Identifier: MIT */
/* Limits, usage, priorities, scheduling. */
#include <sched.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/times.h>
#include <unistd.h>

#include "lib.h"

/* As the kernel has it; <linux/sched/types.h> and <sched.h> do not go together. */
struct attr {
	uint32_t size, policy;
	uint64_t flags;
	int32_t nice;
	uint32_t priority;
	uint64_t runtime, deadline, period;
	uint32_t util_min, util_max;
};

static char *rlimit_text(const struct rlimit *r)
{
	return text("{rlim_cur=%lu, rlim_max=%lu}", r->rlim_cur, r->rlim_max);
}

static void limits(void)
{
	struct rlimit r, old;

	t_ok(sys(getrlimit, RLIMIT_NOFILE, &r));
	expect("getrlimit(resource=RLIMIT_NOFILE, rlim=%s) = 0", rlimit_text(&r));
	expect("setrlimit(resource=RLIMIT_NOFILE, rlim=%s) = 0", rlimit_text(&r));
	t_ok(sys(setrlimit, RLIMIT_NOFILE, &r));
	t_ok(sys(prlimit64, 0, RLIMIT_STACK, NULL, &r));
	expect("prlimit64(pid=0, resource=RLIMIT_STACK, new_limit=NULL, old_limit=%s) = 0",
	       rlimit_text(&r));
	t_ok(sys(prlimit64, 0, RLIMIT_STACK, &r, &old));
	expect("prlimit64(pid=0, resource=RLIMIT_STACK, new_limit=%s, old_limit=%s) = 0",
	       rlimit_text(&r), rlimit_text(&old));
	expect("getrlimit(resource=100, rlim=%s) = -1 EINVAL", pointer(&r));
	t_fails(sys(getrlimit, 100, &r), EINVAL);
	r = (struct rlimit){ 5, 4 };
	expect("setrlimit(resource=RLIMIT_CORE, rlim={rlim_cur=5, rlim_max=4}) = -1 EINVAL");
	t_fails(sys(setrlimit, RLIMIT_CORE, &r), EINVAL);
	expect("prlimit64(pid=-5, resource=RLIMIT_AS, new_limit=NULL, old_limit=%s) = -1 ESRCH",
	       pointer(&r));
	t_fails(sys(prlimit64, -5, RLIMIT_AS, NULL, &r), ESRCH);
}

static void usage(void)
{
	struct rusage ru;
	struct tms tms;
	unsigned int cpu = 0, node = 0;
	long r;

	t_ok(sys(getrusage, RUSAGE_SELF, &ru));
	expect("getrusage(who=RUSAGE_SELF, usage={ru_utime={tv_sec=%ld, tv_usec=%ld}, ru_stime={tv_sec=%ld, tv_usec=%ld}, ru_maxrss=%ld, ru_ixrss=0, ru_minflt=%ld, ru_majflt=%ld, ru_inblock=%ld, ru_oublock=%ld, ru_nvcsw=%ld, ru_nivcsw=%ld}) = 0",
	       ru.ru_utime.tv_sec, ru.ru_utime.tv_usec, ru.ru_stime.tv_sec, ru.ru_stime.tv_usec,
	       ru.ru_maxrss, ru.ru_minflt, ru.ru_majflt, ru.ru_inblock, ru.ru_oublock, ru.ru_nvcsw,
	       ru.ru_nivcsw);
	expect("getrusage(who=RUSAGE_CHILDREN, usage={ru_maxrss=0}) = 0");
	t_ok(sys(getrusage, RUSAGE_CHILDREN, &ru));
	expect("getrusage(who=7, usage=%s) = -1 EINVAL", pointer(&ru));
	t_fails(sys(getrusage, 7, &ru), EINVAL);
	r = t_ok(sys(times, &tms));
	expect("times(buf={tms_utime=%ld, tms_stime=%ld, tms_cutime=%ld, tms_cstime=%ld}) = %ld",
	       tms.tms_utime, tms.tms_stime, tms.tms_cutime, tms.tms_cstime, r);
	t_ok(sys(getcpu, &cpu, &node, NULL));
	expect("getcpu(cpu=[%u], node=[%u], tcache=0) = 0", cpu, node);
	expect("getcpu(cpu=NULL, node=&0x8, tcache=0) = -1 EFAULT");
	t_fails(sys(getcpu, NULL, 8, NULL), EFAULT);
}

static void priorities(void)
{
	long r, io;

	r = t_ok(sys(getpriority, PRIO_PROCESS, 0));
	expect("getpriority(which=PRIO_PROCESS, who=0) = %ld", r);
	expect("getpriority(which=9, who=0) = -1 EINVAL");
	t_fails(sys(getpriority, 9, 0), EINVAL);
	expect("setpriority(which=PRIO_PROCESS, who=0, prio=%ld) = 0", 20 - r);
	t_ok(sys(setpriority, PRIO_PROCESS, 0, 20 - r));
	expect("setpriority(which=PRIO_USER, who=-1, prio=-20) = -1 ESRCH");
	t_fails(sys(setpriority, PRIO_USER, -1, -20), ESRCH);
	io = t_ok(sys(ioprio_get, 1, 0));
	expect("ioprio_get(which=IOPRIO_WHO_PROCESS, who=0) = %ld", io);
	expect("ioprio_get(which=9, who=0) = -1 EINVAL");
	t_fails(sys(ioprio_get, 9, 0), EINVAL);
	expect("ioprio_set(which=IOPRIO_WHO_PROCESS, who=0, ioprio=IOPRIO_CLASS_BE|0x5) = 0");
	t_ok(sys(ioprio_set, 1, 0, 2 << 13 | 5));
	expect("ioprio_set(which=IOPRIO_WHO_PROCESS, who=0, ioprio=IOPRIO_CLASS_NONE|0x3) = -1 EINVAL");
	t_fails(sys(ioprio_set, 1, 0, 3), EINVAL);
}

static void policies(void)
{
	struct sched_param p = { .sched_priority = 0 };
	struct timespec t;
	long r;

	expect("sched_yield() = 0");
	t_ok(sys(sched_yield));
	expect("sched_getscheduler(pid=0) = 0");
	t_is(sys(sched_getscheduler, 0), 0);
	expect("sched_getscheduler(pid=-1) = -1 EINVAL");
	t_fails(sys(sched_getscheduler, -1), EINVAL);
	expect("sched_setscheduler(pid=0, policy=SCHED_BATCH|SCHED_RESET_ON_FORK, param=[0]) = 0");
	t_ok(sys(sched_setscheduler, 0, SCHED_BATCH | SCHED_RESET_ON_FORK, &p));
	p.sched_priority = 1000;
	expect("sched_setscheduler(pid=0, policy=SCHED_FIFO, param=[1000]) = -1 EINVAL");
	t_fails(sys(sched_setscheduler, 0, SCHED_FIFO, &p), EINVAL);
	p.sched_priority = 0;
	expect("sched_setparam(pid=0, param=[0]) = 0");
	t_ok(sys(sched_setparam, 0, &p));
	expect("sched_setparam(pid=0, param=NULL) = -1 EINVAL");
	t_fails(sys(sched_setparam, 0, NULL), EINVAL);
	expect("sched_getparam(pid=0, param=[0]) = 0");
	t_ok(sys(sched_getparam, 0, &p));
	expect("sched_getparam(pid=-1, param=%s) = -1 EINVAL", pointer(&p));
	t_fails(sys(sched_getparam, -1, &p), EINVAL);
	r = t_ok(sys(sched_get_priority_max, SCHED_FIFO));
	expect("sched_get_priority_max(policy=SCHED_FIFO) = %ld", r);
	r = t_ok(sys(sched_get_priority_min, SCHED_RR));
	expect("sched_get_priority_min(policy=SCHED_RR) = %ld", r);
	expect("sched_get_priority_max(policy=0x9) = -1 EINVAL");
	t_fails(sys(sched_get_priority_max, 9), EINVAL);
	t_ok(sys(sched_rr_get_interval, 0, &t));
	expect("sched_rr_get_interval(pid=0, tp=%s) = 0", timespec_text(&t));
	expect("sched_rr_get_interval(pid=-1, tp=%s) = -1 EINVAL", pointer(&t));
	t_fails(sys(sched_rr_get_interval, -1, &t), EINVAL);
}

static void attributes(void)
{
	struct attr a = { 0 };

	t_ok(sys(sched_getattr, 0, &a, sizeof(a), 0));
	expect("sched_getattr(pid=0, attr={size=%u, sched_policy=SCHED_BATCH, sched_flags=SCHED_FLAG_RESET_ON_FORK, sched_nice=%d, sched_priority=0, sched_runtime=%lu, sched_deadline=%lu, sched_period=%lu, sched_util_min=%u, sched_util_max=%u}, size=56, flags=0) = 0",
	       a.size, a.nice, a.runtime, a.deadline, a.period, a.util_min, a.util_max);
	a = (struct attr){ .size = 48, .policy = SCHED_OTHER, .nice = 5 };
	expect("sched_setattr(pid=0, attr={size=48, sched_policy=SCHED_OTHER, sched_flags=0, sched_nice=5, sched_priority=0, sched_runtime=0}, flags=0) = %s",
	       outcome(sys(sched_setattr, 0, &a, 0)));
	expect("sched_setattr(pid=-1, attr={sched_nice=5}, flags=0) = -1 EINVAL");
	t_fails(sys(sched_setattr, -1, &a, 0), EINVAL);
	expect("sched_getattr(pid=0, attr=%s, size=1, flags=0) = -1 EINVAL", pointer(&a));
	t_fails(sys(sched_getattr, 0, &a, 1, 0), EINVAL);
}

static void cpus(void)
{
	unsigned long mask[128] = { 0 };
	long n = t_ok(sys(sched_getaffinity, 0, sizeof(mask), mask));

	expect("sched_getaffinity(pid=0, cpusetsize=1024, mask=%s) = %ld", quote(mask, (size_t)n),
	       n);
	expect("sched_getaffinity(pid=0, cpusetsize=1, mask=%s) = -1 EINVAL", pointer(mask));
	t_fails(sys(sched_getaffinity, 0, 1, mask), EINVAL);
	expect("sched_setaffinity(pid=0, cpusetsize=%ld, mask=%s) = 0", n, quote(mask, (size_t)n));
	t_ok(sys(sched_setaffinity, 0, n, mask));
	memset(mask, 0, sizeof(mask));
	expect("sched_setaffinity(pid=0, cpusetsize=8, mask=\"\\x00\"*8) = -1 EINVAL");
	t_fails(sys(sched_setaffinity, 0, 8, mask), EINVAL);
}

int main(void)
{
	t_init();
	t_begin();
	limits();
	usage();
	priorities();
	policies();
	attributes();
	cpus();
	t_end();
	return 0;
}
