/* SPDX-License-Identifier: MIT */
/*
 * Credentials of recorded threads. What the recorder reads on behalf of a
 * thread it reads with that thread's rights: file-system user and group,
 * supplementary groups, effective capabilities. So a trace holds nothing that
 * the program could not have read, whoever runs the recorder.
 *
 * Distinct credentials are numbered. Belongs to the tracer's thread, whose own
 * credentials (those of the calling thread alone) creds_assume() changes.
 */
#ifndef RECORD_CREDS_H
#define RECORD_CREDS_H

#include <stdbool.h>
#include <sys/types.h>

#include "base/attrs.h"

struct creds;

/* The recorder's own, and those of threads with the same rights. */
#define CREDS_OWN 0u
/* Not known, or more distinct ones than are kept: they cannot be assumed. */
#define CREDS_UNKNOWN 1u
#define CREDS_MAX 64u /* a bit of a word for each */

struct creds *creds_new(void);
/* Assumes the recorder's own again. NULL is fine. */
void creds_free(struct creds *c);

/* Those of a thread that is there, as they are now. */
unsigned int creds_of_thread(struct creds *c, pid_t tid);
/* Its users: real, effective, saved, and that of files. False: it is gone. */
#define CREDS_NR_UIDS 4
#define CREDS_FILES_UID 3
MUST_CHECK bool creds_read_uids(pid_t tid, uid_t ret[CREDS_NR_UIDS]);
/* Whether any of them is another than the recorder's. */
bool creds_is_other_user(pid_t tid);

/*
 * The calling thread acts with these from now on. False: it may not assume
 * them, and keeps those that it has.
 */
MUST_CHECK bool creds_assume(struct creds *c, unsigned int id);
/* Those in force; to be assumed again, which cannot fail for what was in force before. */
unsigned int creds_current(const struct creds *c);
void creds_return(struct creds *c, unsigned int id);

/* Gives up the capabilities that no recording needs; a child keeps those that it was started with. */
void creds_give_up(void);
/* Likewise all of them, for a thread that uses descriptors that are open. */
void creds_give_up_all(void);

#endif
