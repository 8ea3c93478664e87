/* SPDX-License-Identifier: MIT */
/* Sleeps, alarms, timers, clocks. Times are short where they are waited for, and long where not. */
#include <linux/time_types.h>
#include <sys/time.h>
#include <sys/timex.h>
#include <unistd.h>

#include "lib.h"

#define MS 1000000L
#define LONG_TIME 100000

static pid_t self;

static void sleeps(void)
{
	struct timespec t = { 0, 10 * MS }, rest = { 7, 7 }, bad = { 0, -1 }, now;

	expect("nanosleep(duration={tv_sec=0, tv_nsec=10000000}, rem=*) = 0 {least_ns=10000000}");
	t_ok(sys(nanosleep, &t, &rest));
	expect("nanosleep(duration={tv_sec=0, tv_nsec=10000000}, rem=NULL) = 0");
	t_ok(sys(nanosleep, &t, NULL));
	expect("nanosleep(duration={tv_sec=0, tv_nsec=-1}, rem=%s) = -1 EINVAL", pointer(&rest));
	t_fails(sys(nanosleep, &bad, &rest), EINVAL);
	expect("nanosleep(duration=NULL, rem=NULL) = -1 EFAULT");
	t_fails(sys(nanosleep, NULL, NULL), EFAULT);
	expect("clock_nanosleep(clockid=CLOCK_BOOTTIME, flags=0, t={tv_sec=0, tv_nsec=10000000}, remain=NULL) = 0 {least_ns=10000000}");
	t_ok(sys(clock_nanosleep, CLOCK_BOOTTIME, 0, &t, NULL));
	t_ok(sys(clock_gettime, CLOCK_MONOTONIC, &now));
	expect("clock_gettime(clockid=CLOCK_MONOTONIC, tp=%s) = 0", timespec_text(&now));
	expect("clock_nanosleep(clockid=CLOCK_MONOTONIC, flags=TIMER_ABSTIME, t=%s, remain=NULL) = 0",
	       timespec_text(&now));
	t_ok(sys(clock_nanosleep, CLOCK_MONOTONIC, TIMER_ABSTIME, &now, NULL));
	expect("clock_nanosleep(clockid=99, flags=0, t=%s, remain=%s) = -1 EINVAL",
	       timespec_text(&t), pointer(&rest));
	t_fails(sys(clock_nanosleep, 99, 0, &t, &rest), EINVAL);
}

static char *itimerval_text(const struct itimerval *t)
{
	return text("{it_interval={tv_sec=%ld, tv_usec=%ld}, it_value={tv_sec=%ld, tv_usec=%ld}}",
		    t->it_interval.tv_sec, t->it_interval.tv_usec, t->it_value.tv_sec,
		    t->it_value.tv_usec);
}

static void alarms(void)
{
	struct itimerval set = { { 1, 2 }, { LONG_TIME, 4 } }, old, none = { 0 };
	long r;

	expect("alarm(seconds=100000) = 0");
	t_is(sys(alarm, LONG_TIME), 0);
	r = t_ok(sys(alarm, 0));
	expect("alarm(seconds=0) = %ld", r);
	t_ok(sys(setitimer, ITIMER_VIRTUAL, &set, &old));
	expect("setitimer(which=ITIMER_VIRTUAL, new_value=%s, old_value=%s) = 0",
	       itimerval_text(&set), itimerval_text(&old));
	t_ok(sys(getitimer, ITIMER_VIRTUAL, &old));
	expect("getitimer(which=ITIMER_VIRTUAL, curr_value=%s) = 0", itimerval_text(&old));
	expect("setitimer(which=ITIMER_VIRTUAL, new_value=%s, old_value=NULL) = 0",
	       itimerval_text(&none));
	t_ok(sys(setitimer, ITIMER_VIRTUAL, &none, NULL));
	expect("setitimer(which=9, new_value=%s, old_value=NULL) = -1 EINVAL",
	       itimerval_text(&none));
	t_fails(sys(setitimer, 9, &none, NULL), EINVAL);
	expect("getitimer(which=ITIMER_PROF, curr_value=NULL) = -1 EFAULT");
	t_fails(sys(getitimer, ITIMER_PROF, NULL), EFAULT);
}

static char *itimerspec_text(const struct itimerspec *t)
{
	return text("{it_interval=%s, it_value=%s}", timespec_text(&t->it_interval),
		    timespec_text(&t->it_value));
}

static void posix_timers(void)
{
	struct sigevent sev = { .sigev_notify = SIGEV_THREAD_ID, .sigev_signo = SIGUSR1 };
	struct itimerspec set = { { 1, 2 }, { LONG_TIME, 4 } }, old;
	int id = -1;

	sev.sigev_value.sival_ptr = (void *)0x1234;
	sev._sigev_un._tid = self;
	t_ok(sys(timer_create, CLOCK_REALTIME, &sev, &id));
	expect("timer_create(clockid=CLOCK_REALTIME, sevp={sigev_value=0x1234, sigev_signo=SIGUSR1, sigev_notify=SIGEV_THREAD_ID, sigev_notify_thread_id=%d}, timerid=[%d]) = 0",
	       self, id);
	expect("timer_settime(timerid=%d, flags=0, new_value=%s, old_value={it_interval={tv_sec=0, tv_nsec=0}, it_value={tv_sec=0, tv_nsec=0}}) = 0",
	       id, itimerspec_text(&set));
	t_ok(sys(timer_settime, id, 0, &set, &old));
	t_ok(sys(timer_gettime, id, &old));
	expect("timer_gettime(timerid=%d, curr_value=%s) = 0", id, itimerspec_text(&old));
	expect("timer_getoverrun(timerid=%d) = 0", id);
	t_is(sys(timer_getoverrun, id), 0);
	expect("timer_delete(timerid=%d) = 0", id);
	t_ok(sys(timer_delete, id));
	expect("timer_delete(timerid=%d) = -1 EINVAL", id);
	t_fails(sys(timer_delete, id), EINVAL);
	expect("timer_settime(timerid=%d, flags=TIMER_ABSTIME, new_value=%s, old_value=%s) = -1 EINVAL",
	       id, itimerspec_text(&set), pointer(&old));
	t_fails(sys(timer_settime, id, TIMER_ABSTIME, &set, &old), EINVAL);
	expect("timer_gettime(timerid=-1, curr_value=%s) = -1 EINVAL", pointer(&old));
	t_fails(sys(timer_gettime, -1, &old), EINVAL);
	expect("timer_getoverrun(timerid=-1) = -1 EINVAL");
	t_fails(sys(timer_getoverrun, -1), EINVAL);
	expect("timer_create(clockid=77, sevp=NULL, timerid=%s) = -1 EINVAL", pointer(&id));
	t_fails(sys(timer_create, 77, NULL, &id), EINVAL);
}

static void clocks(void)
{
	struct timespec ts, bad = { -1, -1 };
	struct timeval tv, bad_tv = { -1, -1 };
	struct timezone tz;
	long t = 0, r;

	t_ok(sys(clock_getres, CLOCK_MONOTONIC_COARSE, &ts));
	expect("clock_getres(clockid=CLOCK_MONOTONIC_COARSE, res=%s) = 0", timespec_text(&ts));
	expect("clock_getres(clockid=50, res=NULL) = -1 EINVAL");
	t_fails(sys(clock_getres, 50, NULL), EINVAL);
	expect("clock_gettime(clockid=-50, tp=%s) = -1 EINVAL", pointer(&ts));
	t_fails(sys(clock_gettime, -50, &ts), EINVAL);
	r = sys(clock_settime, CLOCK_REALTIME, &bad);
	expect("clock_settime(clockid=CLOCK_REALTIME, tp={tv_sec=-1, tv_nsec=-1}) = %s",
	       outcome(r));
	t_true(r == -1);
	t_ok(sys(gettimeofday, &tv, &tz));
	expect("gettimeofday(tv={tv_sec=%ld, tv_usec=%ld}, tz={tz_minuteswest=%d, tz_dsttime=%d}) = 0",
	       tv.tv_sec, tv.tv_usec, tz.tz_minuteswest, tz.tz_dsttime);
	expect("gettimeofday(tv=&0x8, tz=NULL) = -1 EFAULT");
	t_fails(sys(gettimeofday, 8, NULL), EFAULT);
	r = sys(settimeofday, &bad_tv, NULL);
	expect("settimeofday(tv={tv_sec=-1, tv_usec=-1}, tz=NULL) = %s", outcome(r));
	t_true(r == -1);
	r = t_ok(sys(time, &t));
	expect("time(tloc=[%ld]) = %ld", t, r);
	r = t_ok(sys(time, NULL));
	expect("time(tloc=NULL) = %ld", r);
}

static char *timex_text(const struct timex *t)
{
	return text("{modes=0, offset=%ld, freq=%ld, maxerror=%ld, esterror=%ld, status=%s, "
		    "constant=%ld, precision=%ld, tolerance=%ld, time={tv_sec=%ld, tv_usec=%ld}, "
		    "tick=%ld, tai=%d}",
		    t->offset, t->freq, t->maxerror, t->esterror, hex((unsigned int)t->status),
		    t->constant, t->precision, t->tolerance, t->time.tv_sec, t->time.tv_usec,
		    t->tick, t->tai);
}

static void adjustments(void)
{
	struct timex t = { .modes = 0, .offset = 5 };
	long r;

	r = t_ok(sys(adjtimex, &t));
	expect("adjtimex(buf={modes=0, offset=5}, buf_after=%s) = %ld", timex_text(&t), r);
	r = t_ok(sys(clock_adjtime, CLOCK_REALTIME, &t));
	expect("clock_adjtime(clockid=CLOCK_REALTIME, buf={modes=0}, buf_after=%s) = %ld",
	       timex_text(&t), r);
	t.modes = ADJ_TICK;
	t.tick = 1;
	r = sys(adjtimex, &t);
	expect("adjtimex(buf={modes=ADJ_TICK, tick=1}) = %s", outcome(r));
	t_true(r == -1);
	expect("clock_adjtime(clockid=CLOCK_MONOTONIC, buf={modes=ADJ_TICK}) = -1 EOPNOTSUPP");
	t_fails(sys(clock_adjtime, CLOCK_MONOTONIC, &t), EOPNOTSUPP);
}

int main(void)
{
	t_init();
	self = getpid();
	t_begin();
	sleeps();
	alarms();
	posix_timers();
	clocks();
	adjustments();
	t_end();
	return 0;
}
