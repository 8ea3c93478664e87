/* SPDX-License-Identifier: MIT */
#include "record/ptrace/kernel_calls.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <linux/mount.h>
#include <linux/perf_event.h>
#include <stdlib.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/mem.h"
#include "model/row.h"

static const uint16_t left_out[] = { SC_fstat, SC_clock_gettime, SC_sched_yield,
				     SC_fcntl, SC_faccessat2,	 SC_restart_syscall };

#ifdef __aarch64__
#define NATIVE_ARCH ARCH_AARCH64
#else
#define NATIVE_ARCH ARCH_X86_64
#endif

/* Nobody may have mounted tracefs: a mount of our own, which is nowhere in the tree of mounts. */
static int mount_tracefs(void)
{
	AUTO_CLOSE int fs = (int)syscall(SYS_fsopen, "tracefs", FSOPEN_CLOEXEC);

	if (fs < 0 || syscall(SYS_fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0) < 0)
		return -1;
	return (int)syscall(SYS_fsmount, fs, FSMOUNT_CLOEXEC, 0);
}

int kernel_calls_find(struct err *err)
{
	AUTO_CLOSE int mount = mount_tracefs();
	AUTO_CLOSE int fd = -1;
	unsigned long found = 0;
	char text[32] = "";

	if (mount < 0)
		return err_set(err, -errno, "cannot mount tracefs");
	fd = openat(mount, "events/raw_syscalls/sys_enter/id", O_RDONLY | O_CLOEXEC);
	if (fd < 0 || read(fd, text, sizeof(text) - 1) < 0)
		return err_set(err, -errno, "cannot read the number of the tracepoint of calls");
	found = strtoul(text, NULL, 10);
	if (!found || found > INT_MAX)
		return err_set(err, -EOPNOTSUPP, "the tracepoint of calls has no number");
	return (int)found;
}

static int set_filter(int fd)
{
	struct buf filter = { 0 };
	size_t i;
	int r;

	for (i = 0; i < ARRAY_LEN(left_out); i++)
		buf_printf(&filter, "%sid != %d", i ? " && " : "",
			   row_nr(NATIVE_ARCH, row_by_id(left_out[i])));
	r = ioctl(fd, PERF_EVENT_IOC_SET_FILTER, buf_str(&filter)) < 0 ? -errno : 0;
	buf_release(&filter);
	return r;
}

int kernel_calls_open(int tracepoint, pid_t tid)
{
	struct perf_event_attr attr = { .type = PERF_TYPE_TRACEPOINT,
					.size = sizeof(attr),
					.config = (uint64_t)tracepoint };
	int fd = (int)syscall(SYS_perf_event_open, &attr, tid, -1, -1, PERF_FLAG_FD_CLOEXEC);
	int r = fd < 0 ? -errno : set_filter(fd);

	if (r < 0 && fd >= 0)
		(void)close(fd);
	return r < 0 ? r : fd;
}

bool kernel_calls_read(int fd, uint64_t *ret)
{
	uint64_t now;

	if (read(fd, &now, sizeof(now)) != sizeof(now))
		return false;
	*ret = now;
	return true;
}

void kernel_calls_turn(int fd, bool on)
{
	/* Cannot fail: the descriptor is one of ours. */
	(void)ioctl(fd, on ? PERF_EVENT_IOC_ENABLE : PERF_EVENT_IOC_DISABLE, 0);
}

bool kernel_calls_counts(const struct row *row)
{
	const struct row_variant *v = row_variant_of(row);
	unsigned int id = v ? v->base : row->id;
	size_t i;

	for (i = 0; i < ARRAY_LEN(left_out) && left_out[i] != id; i++)
		;
	return row->sort == ROW_CALL && i == ARRAY_LEN(left_out);
}
