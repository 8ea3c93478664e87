/* SPDX-License-Identifier: MIT */
/*
 * Shuts this process into a directory, for good. Afterwards the directory is
 * its root, and nothing else is mounted in its world but these devices, where
 * the directory has an entry of that name: dev/null, zero, full, urandom; random
 * is urandom, tty is null. They are there read-only: to be used, not changed. No
 * other device can be opened, no set-id bit has an effect, what is mounted
 * below the directory is visible only on request, and /proc is what the directory
 * has there.
 *
 * What was open before stays open: the caller closes what shall not be reached.
 */
#ifndef REPLAY_CONTAIN_H
#define REPLAY_CONTAIN_H

#include <stdbool.h>
#include <stdint.h>

#include "base/attrs.h"
#include "base/err.h"

/*
 * In a mount namespace of its own, and a user namespace too when the rights
 * want it: the process must have one thread. On failure it is in no state to go
 * on. *ret_null_fd becomes the null device, read-only like the others.
 * cross_mounts: with what is mounted below the directory.
 */
MUST_CHECK int contain_enter(const char *dir, bool cross_mounts, int *ret_null_fd, struct err *err);

/*
 * A file system in memory that can hold so many bytes, at no path: a directory
 * that files can be made in. -1 where the kernel has none for us (before Linux
 * 5.2, or without the rights that contain_enter() brings).
 */
int contain_memory(uint64_t bytes);

/* Only as root directory: for systems that refuse the above. The null device is the system's own. */
MUST_CHECK int contain_chroot(const char *dir, int *ret_null_fd, struct err *err);

#endif
