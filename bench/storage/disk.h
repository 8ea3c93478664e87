/* SPDX-License-Identifier: MIT */
/*
 * A file that answers as slowly as the model says: a FUSE mount whose root is the
 * file itself, its bytes in memory, where pages of zeros take none.
 *
 * The daemon is a process of its own outside of the mount's namespace, and ends
 * when the mount does, which happens by itself when everybody who uses it is
 * gone, killed or not. So it is also the one that can put back settings of the
 * machine at the end.
 */
#ifndef STORAGE_DISK_H
#define STORAGE_DISK_H

#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "base/err.h"
#include "model.h"

#define DISK_MAX_SETTINGS 16

/* A file of the kernel's, and what is to be written to it at the end. */
struct disk_setting {
	char path[256];
	char value[64];
};

/* Shared with the daemon. */
struct disk_shared {
	_Atomic bool timed; /* before, requests are answered at once */
	_Atomic unsigned int nr_settings;
	struct disk_setting settings[DISK_MAX_SETTINGS];
};

struct disk {
	pid_t pid;
	int fuse_fd; /* to be mounted by the caller */
	int go_fd; /* closed by the caller when it is mounted; the daemon waits for that */
	int report_fd; /* a line of JSON comes at the end */
	struct disk_shared *shared;
};

MUST_CHECK int disk_start(const struct model_params *params, struct disk *ret, struct err *err);

#endif
