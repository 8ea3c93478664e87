// SPDX-License-Identifier: MIT
/*
 * storage [OPTION]... MODEL COMMAND [ARG]...
 *
 * Runs COMMAND with a modelled device at hand: the disk of disk.h behind a loop
 * device, with a file system on it. All of it lives in a mount namespace and a
 * process namespace of this one run; when the run ends, or is killed, the kernel
 * takes both down, the loop device frees itself with its last user, and the
 * daemon puts the settings back. README.md tells how to use it.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/loop.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/io.h"
#include "base/options.h"
#include "disk.h"

#define ROOT_VARIABLE "REPRISE_STORAGE_ROOT"
#define BLKIO "/sys/fs/cgroup/blkio/blkio.throttle."
#define EXIT_OF_OURS 125

struct storage_options {
	const char *fs, *name, *scheduler, *report;
	uint64_t read_ahead_kib, nr_requests, size_bytes;
	const char *scale;
	bool quiet;
};

static const struct option_spec specs[] = {
	OPT_STRING('t', "fs", "TYPE", struct storage_options, fs,
		   "the file system to make on it; 'none': none", .default_text = "ext4"),
	OPT_STRING('n', "name", "NAME", struct storage_options, name,
		   "COMMAND finds the mount point in $NAME_DIR, the device in $NAME_DEV",
		   .default_text = "STORAGE"),
	OPT_STRING('s', "scheduler", "NAME", struct storage_options, scheduler,
		   "the device's scheduler", .default_text = "none"),
	OPT_U64('r', "read-ahead", "KIB", struct storage_options, read_ahead_kib,
		"how far the kernel reads ahead", .default_text = "the kernel's"),
	OPT_U64('q', "nr-requests", "N", struct storage_options, nr_requests,
		"how many requests the device's queue holds", .default_text = "the kernel's"),
	OPT_SIZE(0, "size", "BYTES", struct storage_options, size_bytes,
		 "the device's size, instead of the model's"),
	OPT_STRING(0, "scale", "F", struct storage_options, scale,
		   "multiply all times of the model by F, instead of its own factor"),
	OPT_STRING('o', "report", "FILE", struct storage_options, report,
		   "write the device's own report to FILE, as JSON; else one line goes to "
		   "standard error"),
	OPT_FLAG(0, "quiet", struct storage_options, quiet, "no line on standard error"),
};

struct storage {
	const struct storage_options *o;
	struct disk disk;
	char dir[256]; /* where the mount points are */
	char disk_path[300], fs_path[300];
	char dev[32];
	char queue[64]; /* of the device, in /sys */
	int loop_fd;
	bool disk_is_mounted, fs_is_mounted;
};

/* Settings of the machine. */

static int write_setting(const char *path, const char *value, struct err *err)
{
	int fd = open(path, O_WRONLY | O_CLOEXEC), r;

	if (fd < 0)
		return err_set(err, -errno, "cannot open %s", path);
	r = write_full(fd, value, strlen(value));
	close(fd);
	return r < 0 ? err_set(err, r, "cannot write '%s' to %s", value, path) : 0;
}

static int remember_setting(struct disk_shared *shared, const char *path, const char *value,
			    struct err *err)
{
	unsigned int nr = atomic_load(&shared->nr_settings);
	struct disk_setting *s = &shared->settings[nr];

	if (nr == DISK_MAX_SETTINGS)
		return err_set(err, -E2BIG, "too many settings");
	snprintf(s->path, sizeof(s->path), "%s", path);
	snprintf(s->value, sizeof(s->value), "%s", value);
	atomic_store(&shared->nr_settings, nr + 1);
	return 0;
}

/* What the file says now; of a list of words the one in brackets. */
static int read_setting(const char *path, char value[64], struct err *err)
{
	int fd = open(path, O_RDONLY | O_CLOEXEC);
	ssize_t n = fd < 0 ? -errno : read_full(fd, value, 63);
	char *open_bracket, *close_bracket;

	if (fd >= 0)
		close(fd);
	if (n < 0)
		return err_set(err, (int)n, "cannot read %s", path);
	value[n] = 0;
	value[strcspn(value, "\n")] = 0;
	open_bracket = strchr(value, '[');
	close_bracket = strchr(value, ']');
	if (open_bracket && close_bracket && open_bracket < close_bracket) {
		*close_bracket = 0;
		memmove(value, open_bracket + 1, strlen(open_bracket + 1) + 1);
	}
	return 0;
}

static int change_queue(struct storage *s, const char *name, const char *value, struct err *err)
{
	char path[128], old[64];
	int r;

	snprintf(path, sizeof(path), "%s/%s", s->queue, name);
	r = read_setting(path, old, err);
	if (!r)
		r = remember_setting(s->disk.shared, path, old, err);
	return r ? r : write_setting(path, value, err);
}

static int change_queue_u64(struct storage *s, const char *name, uint64_t v, struct err *err)
{
	char value[32];

	snprintf(value, sizeof(value), "%ju", (uintmax_t)v);
	return v == UINT64_MAX ? 0 : change_queue(s, name, value, err);
}

/* A limit of 0 lifts it. */
static int limit(struct storage *s, dev_t dev, const char *name, uint64_t v, struct err *err)
{
	char path[128], value[64];
	int r;

	if (!v)
		return 0;
	snprintf(path, sizeof(path), BLKIO "%s", name);
	if (access(path, W_OK))
		return err_set(err, -EOPNOTSUPP,
			       "limits need the blkio controller of cgroup v1 at %s", path);
	snprintf(value, sizeof(value), "%u:%u 0", major(dev), minor(dev));
	r = remember_setting(s->disk.shared, path, value, err);
	snprintf(value, sizeof(value), "%u:%u %ju", major(dev), minor(dev), (uintmax_t)v);
	return r ? r : write_setting(path, value, err);
}

static int apply_settings(struct storage *s, const struct model_params *p, struct err *err)
{
	struct stat st;
	int r = change_queue(s, "scheduler", s->o->scheduler, err);

	if (!r)
		r = change_queue_u64(s, "read_ahead_kb", s->o->read_ahead_kib, err);
	if (!r)
		r = change_queue_u64(s, "nr_requests", s->o->nr_requests, err);
	if (r)
		return r;
	if (fstat(s->loop_fd, &st))
		return err_set(err, -errno, "cannot stat %s", s->dev);
	r = limit(s, st.st_rdev, "read_iops_device", p->limit_iops, err);
	if (!r)
		r = limit(s, st.st_rdev, "write_iops_device", p->limit_iops, err);
	if (!r)
		r = limit(s, st.st_rdev, "read_bps_device", p->limit_bytes_per_s, err);
	return r ? r : limit(s, st.st_rdev, "write_bps_device", p->limit_bytes_per_s, err);
}

/* Mounts. */

static int make_root(struct storage *s, struct err *err)
{
	const char *root = getenv(ROOT_VARIABLE);

	if (unshare(CLONE_NEWNS) || mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL))
		return err_set(err, -errno, "cannot make a mount namespace");
	/* Within another storage its root is used, so that both can be seen. */
	if (!root) {
		root = "/mnt";
		if (mount("reprise-storage", root, "tmpfs", 0, "mode=755"))
			return err_set(err, -errno, "cannot mount a tmpfs at %s", root);
		setenv(ROOT_VARIABLE, root, 1);
	}
	snprintf(s->dir, sizeof(s->dir), "%s/%s", root, s->o->name);
	snprintf(s->disk_path, sizeof(s->disk_path), "%s/disk", s->dir);
	snprintf(s->fs_path, sizeof(s->fs_path), "%s/fs", s->dir);
	if (mkdir(s->dir, 0755) || mkdir(s->fs_path, 0755))
		return err_set(err, -errno, "cannot make %s", s->dir);
	return 0;
}

static int mount_disk(struct storage *s, struct err *err)
{
	char options[128];
	int fd = open(s->disk_path, O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);

	if (fd < 0)
		return err_set(err, -errno, "cannot make %s", s->disk_path);
	close(fd);
	snprintf(options, sizeof(options), "fd=%d,rootmode=100600,user_id=0,group_id=0",
		 s->disk.fuse_fd);
	if (mount("reprise-disk", s->disk_path, "fuse", MS_NOSUID | MS_NODEV, options))
		return err_set(err, -errno, "cannot mount the disk");
	s->disk_is_mounted = true;
	close(s->disk.fuse_fd);
	close(s->disk.go_fd);
	return 0;
}

/* Configured in one step, and so that it frees itself with its last user. */
static int attach_loop(struct storage *s, struct err *err)
{
	struct loop_config config = { .info = { .lo_flags =
							LO_FLAGS_AUTOCLEAR | LO_FLAGS_DIRECT_IO } };
	int control = open("/dev/loop-control", O_RDWR | O_CLOEXEC), nr, tries;
	int disk_fd = open(s->disk_path, O_RDWR | O_CLOEXEC), r = -EBUSY;

	if (control < 0 || disk_fd < 0)
		return err_set(err, -errno, "cannot open %s",
			       control < 0 ? "/dev/loop-control" : s->disk_path);
	config.fd = (uint32_t)disk_fd;
	/* Somebody else may be faster. */
	for (tries = 0; r == -EBUSY && tries < 100; tries++) {
		nr = ioctl(control, LOOP_CTL_GET_FREE);
		if (nr < 0) {
			r = -errno;
			break;
		}
		snprintf(s->dev, sizeof(s->dev), "/dev/loop%d", nr);
		snprintf(s->queue, sizeof(s->queue), "/sys/block/loop%d/queue", nr);
		s->loop_fd = open(s->dev, O_RDWR | O_CLOEXEC);
		if (s->loop_fd < 0) {
			r = -errno;
			break;
		}
		r = ioctl(s->loop_fd, LOOP_CONFIGURE, &config) ? -errno : 0;
		if (r) {
			close(s->loop_fd);
			s->loop_fd = -1;
		}
	}
	close(control);
	close(disk_fd);
	return r < 0 ? err_set(err, r, "cannot attach a loop device") : 0;
}

static int wait_for(pid_t pid)
{
	int status;

	while (waitpid(pid, &status, 0) < 0) {
		if (errno != EINTR)
			return EXIT_OF_OURS;
	}
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

/* What is to be given to mkfs.TYPE so that it is silent, and nothing is left to be done later. */
static const char *const mkfs_flags[][6] = {
	{ "ext4", "-q", "-F", "-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=0" },
	{ "ext3", "-q", "-F", "-E", "nodiscard,lazy_itable_init=0,lazy_journal_init=0" },
	{ "ext2", "-q", "-F", "-E", "nodiscard,lazy_itable_init=0" },
	{ "xfs", "-q", "-f", "-K" },
	{ "btrfs", "-q", "-f", "-K" },
};

static int make_fs(struct storage *s, struct err *err)
{
	char program[64];
	const char *argv[9] = { program };
	unsigned int n = 1;
	size_t i, k;
	pid_t pid;

	snprintf(program, sizeof(program), "mkfs.%s", s->o->fs);
	for (i = 0; i < ARRAY_LEN(mkfs_flags); i++) {
		for (k = 1; !strcmp(mkfs_flags[i][0], s->o->fs) && mkfs_flags[i][k]; k++)
			argv[n++] = mkfs_flags[i][k];
	}
	argv[n] = s->dev;
	pid = fork();
	if (!pid) {
		execvp(program, (char **)argv);
		_exit(127);
	}
	if (pid < 0 || wait_for(pid))
		return err_set(err, -EIO, "%s failed on %s", program, s->dev);
	if (mount(s->dev, s->fs_path, s->o->fs, MS_NOATIME, NULL))
		return err_set(err, -errno, "cannot mount %s", s->dev);
	s->fs_is_mounted = true;
	return 0;
}

static int set_up(struct storage *s, const struct model_params *p, struct err *err)
{
	int r = disk_start(p, &s->disk, err);

	if (!r)
		r = make_root(s, err);
	if (!r)
		r = mount_disk(s, err);
	if (!r)
		r = attach_loop(s, err);
	if (!r && strcmp(s->o->fs, "none") != 0)
		r = make_fs(s, err);
	if (!r)
		r = apply_settings(s, p, err);
	if (!r)
		sync();
	atomic_store(&s->disk.shared->timed, !r);
	return r;
}

static void unmount(const char *path)
{
	const struct timespec moment = clock_timespec_from_ns(10 * NS_PER_MS);
	unsigned int tries;

	/* The loop device lets go of its file a moment after its last user. */
	for (tries = 0; tries < 500; tries++) {
		if (!umount2(path, 0) || errno != EBUSY)
			return;
		nanosleep(&moment, NULL);
	}
	umount2(path, MNT_DETACH);
}

/* Ends the daemon, too, which then tells how it went. */
static void take_down(struct storage *s, struct buf *ret_report)
{
	ssize_t n = 1;

	if (s->fs_is_mounted)
		unmount(s->fs_path);
	if (s->loop_fd >= 0)
		close(s->loop_fd);
	if (s->disk_is_mounted)
		unmount(s->disk_path);
	else if (s->disk.pid > 0)
		kill(s->disk.pid, SIGKILL);
	if (s->disk.pid <= 0)
		return;
	while (n > 0) {
		n = read(s->disk.report_fd, buf_reserve(ret_report, 1024), 1024);
		if (n > 0)
			ret_report->len += (size_t)n;
	}
	wait_for(s->disk.pid);
}

/* The command. */

/* The first process of its namespace: with it, all the others end. */
static int run_first(char **argv, struct storage *s)
{
	int status;
	pid_t pid, ended;

	prctl(PR_SET_PDEATHSIG, SIGKILL);
	if (mount("proc", "/proc", "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL))
		return EXIT_OF_OURS;
	pid = fork();
	if (!pid) {
		close(s->loop_fd);
		execvp(argv[0], argv);
		fprintf(stderr, "storage: cannot run %s: %s\n", argv[0], strerror(errno));
		_exit(127);
	}
	do {
		ended = waitpid(-1, &status, 0);
	} while (pid > 0 && ended != pid && (ended > 0 || errno == EINTR));
	if (ended != pid)
		return EXIT_OF_OURS;
	return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

static void set_variable(const char *name, const char *end, const char *value)
{
	char variable[128];

	snprintf(variable, sizeof(variable), "%s%s", name, end);
	setenv(variable, value, 1);
}

static volatile sig_atomic_t first_pid;

static void on_signal(int signal)
{
	(void)signal;
	if (first_pid > 0)
		kill((pid_t)first_pid, SIGKILL);
}

static int run_command(char **argv, struct storage *s, struct err *err)
{
	const struct sigaction end = { .sa_handler = on_signal };
	pid_t pid;

	set_variable(s->o->name, "_DIR", s->fs_path);
	set_variable(s->o->name, "_DEV", s->dev);
	if (unshare(CLONE_NEWPID))
		return err_set(err, -errno, "cannot make a process namespace");
	pid = fork();
	if (pid < 0)
		return err_set(err, -errno, "cannot fork");
	if (!pid)
		_exit(run_first(argv, s));
	first_pid = pid;
	/* The terminal sends these to the command as well. */
	sigaction(SIGINT, &end, NULL);
	sigaction(SIGTERM, &end, NULL);
	sigaction(SIGHUP, &end, NULL);
	return wait_for(pid);
}

static int put_report(const struct storage_options *o, const struct buf *report, struct err *err)
{
	FILE *f;

	if (!o->report) {
		if (!o->quiet)
			fprintf(stderr, "storage: %s: %.*s", o->name, (int)report->len,
				(const char *)report->data);
		return 0;
	}
	f = fopen(o->report, "we");
	if (!f || fwrite(report->data, 1, report->len, f) != report->len || fclose(f))
		return err_set(err, -errno, "cannot write %s", o->report);
	return 0;
}

static int read_model(const struct storage_options *o, const char *path, struct model_params *ret,
		      struct err *err)
{
	char *end;
	int r = model_params_read(path, ret, err);

	if (r)
		return r;
	if (o->size_bytes)
		ret->size_bytes = o->size_bytes;
	if (ret->size_bytes % 4096)
		return err_set(err, -EINVAL, "--size must be a multiple of 4096");
	if (o->scale) {
		ret->scale = strtod(o->scale, &end);
		if (end == o->scale || *end || !(ret->scale >= 0) || ret->scale > 1e6)
			return err_set(err, -EINVAL, "--scale: '%s' is no factor", o->scale);
	}
	return 0;
}

static int fail(const struct err *err)
{
	fprintf(stderr, "storage: %s\n", err->text);
	return EXIT_OF_OURS;
}

static int storage_run(const struct cli *cli, void *options, int nr_operands, char **operands)
{
	const struct storage_options *o = options;
	struct storage s = { .o = o, .loop_fd = -1 };
	struct buf report = { 0 };
	struct model_params params;
	struct err err = { 0 }, report_err = { 0 };
	int r;

	(void)cli;
	operands[nr_operands] = NULL; /* behind them stand words that were moved */
	if (geteuid())
		return fail(
			(err_set(&err, -EPERM, "needs root: it mounts, and attaches a loop device"),
			 &err));
	if (strlen(o->name) > 64 || strchr(o->name, '/') || !*o->name || *o->name == '.')
		return fail((err_set(&err, -EINVAL, "--name: '%s' is no name", o->name), &err));
	r = read_model(o, operands[0], &params, &err);
	if (r)
		return fail(&err);
	r = set_up(&s, &params, &err);
	if (!r)
		r = run_command(operands + 1, &s, &err);
	take_down(&s, &report);
	if (r >= 0 && put_report(o, &report, &report_err))
		r = fail(&report_err);
	buf_release(&report);
	return r < 0 ? fail(&err) : r;
}

static const struct command command_storage = {
	.name = "storage",
	.summary = "run a command with a modelled device",
	.operands = "MODEL COMMAND...",
	.options = specs,
	.nr_options = ARRAY_LEN(specs),
	.options_size = sizeof(struct storage_options),
	.defaults = &(const struct storage_options){ .fs = "ext4",
						     .name = "STORAGE",
						     .scheduler = "none",
						     .read_ahead_kib = UINT64_MAX,
						     .nr_requests = UINT64_MAX },
	.options_first = true,
	.run = storage_run,
};

int main(int argc, char **argv)
{
	void *options = options_new(&command_storage);
	struct err err = { 0 };
	struct buf page = { 0 };
	int r = options_parse(&command_storage, argc - 1, argv + 1, options, &err);

	if (r == -ECANCELED) {
		options_put_page(&command_storage, "", &page);
		printf("%.*s", (int)page.len, (const char *)page.data);
		buf_release(&page);
		r = 0;
	} else {
		r = r < 0 ? fail(&err) : storage_run(NULL, options, r, argv + 1);
	}
	options_free(&command_storage, options);
	return r;
}
