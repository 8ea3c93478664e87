/* SPDX-License-Identifier: MIT */
#include "record/ptrace/jobs.h"

#include <unistd.h>

#include "record/ptrace/tracer.h"

/* The shell continues the whole group at once; later than this, it has meant us alone. */
#define CONTINUE_NS UINT64_C(200000000)

static const int job_signals[JOBS_NR_SIGNALS] = { SIGTSTP, SIGTTIN, SIGTTOU };

static volatile sig_atomic_t came; /* to us: which; 0: none since the last stop */
static volatile sig_atomic_t came_from; /* who sent it; 0: the terminal, or it was dealt with */

static void take_note(int signo, siginfo_t *info, void *context)
{
	(void)context;
	came = signo;
	came_from = info->si_code <= 0 ? info->si_pid : 0;
}

void jobs_take_signals(struct jobs_signals *s)
{
	struct sigaction sa = { .sa_sigaction = take_note, .sa_flags = SA_SIGINFO };
	unsigned int i;

	came = came_from = 0;
	sigemptyset(&sa.sa_mask);
	for (i = 0; i < JOBS_NR_SIGNALS; i++)
		(void)sigaction(job_signals[i], &sa, &s->old[i]); /* cannot fail for these */
}

void jobs_restore_signals(const struct jobs_signals *s)
{
	unsigned int i;

	for (i = 0; i < JOBS_NR_SIGNALS; i++)
		(void)sigaction(job_signals[i], &s->old[i], NULL);
}

static bool is_job_signal(int signo)
{
	return signo == SIGTSTP || signo == SIGTTIN || signo == SIGTTOU;
}

void jobs_note(struct tracer *tr, const struct tracee *t, int signo)
{
	if (!tr->child || t->pid != tr->child)
		return;
	tr->jobs.is_stopped = is_job_signal(signo);
	if (!signo)
		tr->jobs.continued_ns = 0;
}

/* Not what one of the program sent to its own group: that has reached all of it. */
static void pass_on(struct tracer *tr)
{
	pid_t from = came_from;

	came_from = 0;
	if (from && tr->child && !tracees_find(&tr->all, from))
		(void)kill(tr->child, came); /* it may have ended */
}

bool jobs_must_stop(struct tracer *tr)
{
	struct jobs *j = &tr->jobs;

	if (came_from)
		pass_on(tr);
	if (j->continued_ns && tracer_now(tr) - j->continued_ns > CONTINUE_NS) {
		j->continued_ns = 0;
		if (j->is_stopped)
			(void)kill(tr->child, SIGCONT); /* it may have ended */
	}
	return came && j->is_stopped && !j->continued_ns;
}

void jobs_stop(struct tracer *tr)
{
	came = 0;
	(void)kill(getpid(), SIGSTOP);
	tr->jobs.continued_ns = tracer_now(tr);
}
