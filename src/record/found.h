/* SPDX-License-Identifier: MIT */
/*
 * What is in no register: which file a new descriptor or a map refers to, and
 * which word a futex call is about. The kernel is asked, by /proc, while the
 * thread is stopped after its call; another thread may have closed the
 * descriptor meanwhile, and then nothing is known. Owned by the recorder's
 * thread.
 */
#ifndef RECORD_FOUND_H
#define RECORD_FOUND_H

#include <stdbool.h>
#include <sys/stat.h>

#include "record/capture.h"

struct found;

struct found *found_new(void);
void found_free(struct found *f);

/*
 * After a call: fills in the arguments that stand in no register, by the struct
 * that they are of (file_id, futex_key); also the descriptor that clone3 stores
 * in memory. `space` numbers the address space of the thread. What cannot be
 * found stays VALUE_NONE. Calls that change the memory map are noticed when they
 * pass through here; a recorder that leaves some out calls found_forget().
 */
MUST_CHECK int found_fill(struct found *f, struct capture *c, pid_t pid, pid_t tid, uint64_t space,
			  const struct row *row, const uint64_t regs[6],
			  const struct outcome *outcome, struct value *args);

/* The map of this address space has changed, or it is gone. */
void found_forget(struct found *f, uint64_t space);

/* The file behind a descriptor of a thread; false when there is none. */
bool found_stat(pid_t tid, int fd, struct stat *ret);
/* A descriptor of our own for what descriptor fd of the process refers to, or -errno. */
int found_take(pid_t pid, int fd);
/* A descriptor that is open for reading alone. */
bool found_is_read_end(pid_t tid, int fd);
struct value found_file_id(struct capture *c, const struct stat *st);

#endif
