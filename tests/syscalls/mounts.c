/* SPDX-License-Identifier: MIT */
/*
 * Mounts, in a namespace of a child's own; quotas, swap, accounting, whose calls
 * fail here as they must. Nothing reaches the machine's own mounts.
 */
#include <fcntl.h>
#include <linux/mount.h>
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <sys/quota.h>
#include <sys/wait.h>
#include <unistd.h>

#include "lib.h"

/* <sys/mount.h> and <linux/mount.h> do not go together. */
#ifndef MNT_DETACH
#define MNT_DETACH 2
#endif

struct mnt_id_req_v1 {
	uint32_t size, spare;
	uint64_t mnt_id, param, mnt_ns_id;
};

static void close_it(long fd)
{
	if (fd < 0)
		return;
	expect("close(fd=%ld) = 0", fd);
	t_ok(sys(close, fd));
}

static void old_calls(void)
{
	long r;

	expect("mount(source=NULL, target=\"/\", filesystemtype=NULL, mountflags=MS_REC|MS_PRIVATE, data=NULL) = 0");
	t_ok(sys(mount, NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL));
	expect("mount(source=\"none\", target=\"m\", filesystemtype=\"tmpfs\", mountflags=MS_NOSUID|MS_NODEV, data=\"size=64k\") = 0");
	t_ok(sys(mount, "none", "m", "tmpfs", MS_NOSUID | MS_NODEV, "size=64k"));
	r = t_ok(sys(open, "m/f", O_CREAT | O_WRONLY, 0600));
	expect("open(path=\"m/f\", flags=O_WRONLY|O_CREAT, mode=0600, file=%s) = %ld",
	       file_text((int)r), r);
	close_it(r);
	expect("mount(source=\"m\", target=\"n\", filesystemtype=NULL, mountflags=MS_BIND, data=NULL) = 0");
	t_ok(sys(mount, "m", "n", NULL, MS_BIND, NULL));
	expect("mount(source=\"none\", target=\"gone\", filesystemtype=\"tmpfs\", mountflags=MS_RDONLY, data=NULL) = -1 ENOENT");
	t_fails(sys(mount, "none", "gone", "tmpfs", MS_RDONLY, NULL), ENOENT);
	expect("mount(source=\"x\", target=\"m\", filesystemtype=\"no such type\", mountflags=0, data=NULL) = -1 ENODEV");
	t_fails(sys(mount, "x", "m", "no such type", 0, NULL), ENODEV);
	expect("umount2(target=\"n\", flags=MNT_DETACH) = 0");
	t_ok(sys(umount2, "n", MNT_DETACH));
	expect("umount2(target=\"n\", flags=0) = -1 EINVAL");
	t_fails(sys(umount2, "n", 0), EINVAL);
}

static void young_calls(void)
{
	struct mount_attr attr = { .attr_set = MOUNT_ATTR_RDONLY | MOUNT_ATTR_NOEXEC };
	long fs, mnt, tree, r;

	fs = sys(fsopen, "tmpfs", FSOPEN_CLOEXEC);
	expect("fsopen(fsname=\"tmpfs\", flags=FSOPEN_CLOEXEC) = %s", outcome(fs));
	r = sys(fsconfig, fs, FSCONFIG_SET_STRING, "size", "64k", 0);
	expect("fsconfig(fd=%ld, cmd=FSCONFIG_SET_STRING, key=\"size\", aux=0) = %s", fs,
	       outcome(r));
	r = sys(fsconfig, fs, FSCONFIG_CMD_CREATE, NULL, NULL, 0);
	expect("fsconfig(fd=%ld, cmd=FSCONFIG_CMD_CREATE, key=NULL, value=0, aux=0) = %s", fs,
	       outcome(r));
	mnt = sys(fsmount, fs, FSMOUNT_CLOEXEC, MOUNT_ATTR_NODEV);
	expect("fsmount(fsfd=%ld, flags=FSMOUNT_CLOEXEC, attr_flags=MOUNT_ATTR_NODEV) = %s", fs,
	       outcome(mnt));
	r = sys(move_mount, mnt, "", AT_FDCWD, "n", MOVE_MOUNT_F_EMPTY_PATH);
	expect("move_mount(from_dirfd=%ld, from_path=\"\", to_dirfd=AT_FDCWD, to_path=\"n\", flags=MOVE_MOUNT_F_EMPTY_PATH) = %s",
	       mnt, outcome(r));
	close_it(mnt);
	close_it(fs);
	fs = sys(fspick, AT_FDCWD, "n", FSPICK_CLOEXEC);
	expect("fspick(dirfd=AT_FDCWD, path=\"n\", flags=FSPICK_CLOEXEC) = %s", outcome(fs));
	close_it(fs);
	tree = sys(open_tree, AT_FDCWD, "n", OPEN_TREE_CLONE | OPEN_TREE_CLOEXEC);
	expect("open_tree(dirfd=AT_FDCWD, path=\"n\", flags=OPEN_TREE_CLONE|OPEN_TREE_CLOEXEC) = %s",
	       outcome(tree));
	close_it(tree);
	r = sys(mount_setattr, AT_FDCWD, "n", AT_SYMLINK_NOFOLLOW, &attr, sizeof(attr));
	expect("mount_setattr(dirfd=AT_FDCWD, path=\"n\", flags=AT_SYMLINK_NOFOLLOW, attr={attr_set=MOUNT_ATTR_RDONLY|MOUNT_ATTR_NOEXEC, attr_clr=0, propagation=0, userns_fd=0}, size=32) = %s",
	       outcome(r));
	tree = sys(open_tree_attr, AT_FDCWD, "n", OPEN_TREE_CLONE, &attr, sizeof(attr));
	expect("open_tree_attr(dirfd=AT_FDCWD, path=\"n\", flags=OPEN_TREE_CLONE, attr={attr_set=MOUNT_ATTR_RDONLY|MOUNT_ATTR_NOEXEC}, size=32) = %s",
	       outcome(tree));
	close_it(tree);
}

static void new_root(void)
{
	expect("mkdir(path=\"m/old\", mode=0700) = 0");
	t_ok(sys(mkdir, "m/old", 0700));
	expect("pivot_root(new_root=\"m\", put_old=\"m/old\") = 0");
	t_ok(sys(pivot_root, "m", "m/old"));
	expect("chdir(path=\"/\") = 0");
	t_ok(sys(chdir, "/"));
	expect("access(path=\"/f\", mode=F_OK) = 0");
	t_ok(sys(access, "/f", F_OK));
	expect("umount2(target=\"/old\", flags=MNT_DETACH) = 0");
	t_ok(sys(umount2, "/old", MNT_DETACH));
}

static void write_file(const char *path, const char *s)
{
	int fd = (int)t_ok(open(path, O_WRONLY));

	t_is(write(fd, s, strlen(s)), (long)strlen(s));
	t_ok(close(fd));
}

static bool enter_namespace(void)
{
	uid_t uid = geteuid();
	gid_t gid = getegid();

	if (unshare(uid ? CLONE_NEWUSER | CLONE_NEWNS : CLONE_NEWNS) < 0) {
		t_skip("mounts: a namespace cannot be had: %s", strerror(errno));
		return false;
	}
	if (uid) {
		write_file("/proc/self/setgroups", "deny");
		write_file("/proc/self/uid_map", text("0 %u 1", uid));
		write_file("/proc/self/gid_map", text("0 %u 1", gid));
	}
	return true;
}

static void in_namespace(void)
{
	int status = -1;
	pid_t pid = (pid_t)t_ok(fork());

	if (!pid) {
		t_thread();
		if (enter_namespace()) {
			t_begin();
			old_calls();
			young_calls();
			new_root();
			t_end();
		}
		_exit(0);
	}
	t_is(waitpid(pid, &status, 0), pid);
	t_is(status, 0);
}

/* Without a namespace: calls that fail whoever makes them. */
static void failing(int fd)
{
	long r;

	r = sys(pivot_root, "none", "none");
	expect("pivot_root(new_root=\"none\", put_old=\"none\") = %s", outcome(r));
	r = sys(mount, "x", "none", "tmpfs", 0, NULL);
	expect("mount(source=\"x\", target=\"none\", filesystemtype=\"tmpfs\", mountflags=0, data=NULL) = %s",
	       outcome(r));
	r = sys(umount2, "none", MNT_DETACH);
	expect("umount2(target=\"none\", flags=MNT_DETACH) = %s", outcome(r));
	r = sys(fsopen, "no such type", 0);
	expect("fsopen(fsname=\"no such type\", flags=0) = %s", outcome(r));
	r = sys(fsconfig, -1, FSCONFIG_SET_FLAG, "ro", NULL, 0);
	expect("fsconfig(fd=-1, cmd=FSCONFIG_SET_FLAG, key=\"ro\", value=0, aux=0) = %s",
	       outcome(r));
	r = sys(fsmount, -1, 0, 0);
	expect("fsmount(fsfd=-1, flags=0, attr_flags=0) = %s", outcome(r));
	r = sys(fspick, AT_FDCWD, "none", FSPICK_NO_AUTOMOUNT);
	expect("fspick(dirfd=AT_FDCWD, path=\"none\", flags=FSPICK_NO_AUTOMOUNT) = %s", outcome(r));
	r = sys(open_tree, AT_FDCWD, "none", 0);
	expect("open_tree(dirfd=AT_FDCWD, path=\"none\", flags=0) = %s", outcome(r));
	r = sys(move_mount, -1, "a", -1, "b", 0);
	expect("move_mount(from_dirfd=-1, from_path=\"a\", to_dirfd=-1, to_path=\"b\", flags=0) = %s",
	       outcome(r));
	r = sys(swapon, "none", 0x8000);
	expect("swapon(path=\"none\", swapflags=SWAP_FLAG_PREFER) = %s", outcome(r));
	r = sys(swapoff, "none");
	expect("swapoff(path=\"none\") = %s", outcome(r));
	r = sys(acct, "none/none");
	expect("acct(path=\"none/none\") = %s", outcome(r));
	r = sys(quotactl, QCMD(Q_GETQUOTA, USRQUOTA), "none", 0, NULL);
	expect("quotactl(cmd=%u, special=\"none\", id=0, addr=0) = %s",
	       (unsigned int)QCMD(Q_GETQUOTA, USRQUOTA), outcome(r));
	r = sys(quotactl_fd, fd, QCMD(Q_GETQUOTA, USRQUOTA), 0, NULL);
	expect("quotactl_fd(fd=%d, cmd=%u, id=0, addr=0) = %s", fd,
	       (unsigned int)QCMD(Q_GETQUOTA, USRQUOTA), outcome(r));
}

static void told(void)
{
	static char buf[4096];
	uint64_t ids[4] = { 0 };
	struct mnt_id_req_v1 req = { .size = 32, .mnt_id = ~0ULL };
	char *list = text("%s", "");
	long r, i;

	r = sys(listmount, &req, ids, 4, 0);
	for (i = 0; i < r; i++)
		list = text("%s%s%lu", list, i ? ", " : "", ids[i]);
	expect("listmount(req={size=32, mnt_id=18446744073709551615, param=0, mnt_ns_id=0}, mnt_ids=%s, nr_mnt_ids=4, flags=0) = %s",
	       r < 0 ? pointer(ids) : text("[%s]", list), outcome(r));
	req.mnt_id = ids[0];
	req.param = 1;
	r = sys(statmount, &req, buf, sizeof(buf), 0);
	expect("statmount(req={size=32, mnt_id=%lu, param=0x1}, buf=%s, bufsize=4096, flags=0) = %s",
	       ids[0], addr(buf), outcome(r));
	r = sys(sysfs, 3);
	expect("sysfs(option=3, arg1=0, arg2=0) = %s", outcome(r));
	r = sys(listns, NULL, ids, 4, 0);
	expect("listns(req=0, ns_ids=%s, nr_ns_ids=4, flags=0) = %s", pointer(ids), outcome(r));
}

int main(void)
{
	int fd;

	t_init();
	t_ok(mkdir("m", 0755));
	t_ok(mkdir("n", 0755));
	fd = (int)t_ok(open("f", O_CREAT | O_RDWR, 0600));
	t_begin();
	failing(fd);
	told();
	t_end();
	in_namespace();
	return 0;
}
