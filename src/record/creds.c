/* SPDX-License-Identifier: MIT */
#include "record/creds.h"

#include <linux/capability.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/fsuid.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/io.h"
#include "base/mem.h"

#define STATUS_MAX_BYTES ((size_t)2 << 20) /* with 65,536 groups */

#define BIT(cap) (UINT64_C(1) << (cap))
/* Capabilities by which the kernel decides what of a file may be read. */
#define READING_CAPS                                                                               \
	(BIT(CAP_DAC_OVERRIDE) | BIT(CAP_DAC_READ_SEARCH) | BIT(CAP_FOWNER) | BIT(CAP_SYS_ADMIN) | \
	 BIT(CAP_SYS_PTRACE))
/* What the recorder needs besides: to assume credentials, to follow threads and bind them to a CPU. */
#define KEPT_CAPS                                                                                  \
	(READING_CAPS | BIT(CAP_SETUID) | BIT(CAP_SETGID) | BIT(CAP_KILL) | BIT(CAP_SYS_NICE))

struct identity {
	uid_t uid;
	gid_t gid;
	uint64_t caps; /* of READING_CAPS, effective */
	size_t nr_groups;
	gid_t *groups;
};

struct creds {
	VEC(struct identity)
	items; /* items[CREDS_OWN], items[CREDS_UNKNOWN] (nothing in it), ... */
	unsigned int current;
	uint64_t working_caps; /* effective with our own */
	struct stat user_ns; /* ours */
	bool has_user_ns;
};

/* Capabilities of the calling thread. */

struct caps {
	uint64_t effective, permitted, inheritable;
};

static bool get_caps(struct caps *ret)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2];

	if (syscall(SYS_capget, &head, data) < 0)
		return false;
	ret->effective = data[0].effective | (uint64_t)data[1].effective << 32;
	ret->permitted = data[0].permitted | (uint64_t)data[1].permitted << 32;
	ret->inheritable = data[0].inheritable | (uint64_t)data[1].inheritable << 32;
	return true;
}

static bool set_caps(const struct caps *c)
{
	struct __user_cap_header_struct head = { .version = _LINUX_CAPABILITY_VERSION_3 };
	struct __user_cap_data_struct data[2] = {
		{ (uint32_t)c->effective, (uint32_t)c->permitted, (uint32_t)c->inheritable },
		{ (uint32_t)(c->effective >> 32), (uint32_t)(c->permitted >> 32),
		  (uint32_t)(c->inheritable >> 32) },
	};

	return syscall(SYS_capset, &head, data) == 0;
}

static bool set_effective(uint64_t effective)
{
	struct caps c;

	if (!get_caps(&c))
		return false;
	c.effective = effective & c.permitted;
	return set_caps(&c);
}

void creds_give_up(void)
{
	struct caps c;

	if (!get_caps(&c))
		return;
	c.permitted &= KEPT_CAPS;
	c.effective &= KEPT_CAPS;
	(void)set_caps(&c); /* to have less is always allowed */
}

void creds_give_up_all(void)
{
	(void)set_caps(&(struct caps){ 0 }); /* likewise */
}

/* Reading those of threads. */

static bool same_groups(const struct identity *a, const struct identity *b)
{
	return a->nr_groups == b->nr_groups &&
	       (!a->nr_groups || !memcmp(a->groups, b->groups, a->nr_groups * sizeof(*a->groups)));
}

static bool same_identity(const struct identity *a, const struct identity *b)
{
	return a->uid == b->uid && a->gid == b->gid && a->caps == b->caps && same_groups(a, b);
}

/* The rest of a line of /proc/TID/status; NULL when there is none. A name in it has its newlines escaped. */
static const char *line_of(const char *text, const char *key)
{
	const char *at = strstr(text, key);

	return at ? at + strlen(key) : NULL;
}

static void read_groups(const char *at, struct identity *ret)
{
	size_t room = 0;
	char *end;

	for (;;) {
		unsigned long group;

		at += strspn(at, " \t");
		group = strtoul(at, &end, 10);
		if (end == at || *at == '\n')
			return;
		if (ret->nr_groups == room) {
			room = room ? 2 * room : 16;
			ret->groups = xrealloc(ret->groups, room * sizeof(*ret->groups));
		}
		ret->groups[ret->nr_groups++] = (gid_t)group;
		at = end;
	}
}

/* The text of its status; false when it is gone. */
static bool read_status(pid_t tid, struct buf *ret)
{
	char name[64];

	(void)snprintf(name, sizeof(name), "/proc/%d/status", (int)tid);
	return io_read_file(name, STATUS_MAX_BYTES, ret, NULL) >= 0;
}

/* Its groups are the caller's to free, also when it returns false. */
static bool read_identity(const struct creds *c, pid_t tid, struct identity *ret)
{
	struct buf text = { 0 };
	const char *uid, *gid, *groups, *caps, *status;
	unsigned long long effective = 0;
	struct stat user_ns;
	char name[64];
	bool is_known = false;

	*ret = (struct identity){ 0 };
	if (read_status(tid, &text)) {
		status = buf_str(&text);
		uid = line_of(status, "\nUid:");
		gid = line_of(status, "\nGid:");
		groups = line_of(status, "\nGroups:");
		caps = line_of(status, "\nCapEff:");
		is_known = uid && gid && groups && caps &&
			   sscanf(uid, "%*u %*u %*u %u", &ret->uid) == 1 &&
			   sscanf(gid, "%*u %*u %*u %u", &ret->gid) == 1 &&
			   sscanf(caps, "%llx", &effective) == 1;
		if (is_known)
			read_groups(groups, ret);
	}
	buf_release(&text);
	/* Capabilities in another user namespace say nothing of files here. */
	(void)snprintf(name, sizeof(name), "/proc/%d/ns/user", (int)tid);
	if (c->has_user_ns && !stat(name, &user_ns) && user_ns.st_ino == c->user_ns.st_ino &&
	    user_ns.st_dev == c->user_ns.st_dev)
		ret->caps = effective & READING_CAPS;
	return is_known;
}

struct creds *creds_new(void)
{
	struct creds *c = xcalloc(1, sizeof(*c));
	struct identity own, unknown = { 0 };
	struct caps caps = { 0 };

	c->has_user_ns = !stat("/proc/self/ns/user", &c->user_ns);
	(void)get_caps(&caps);
	c->working_caps = caps.effective & KEPT_CAPS;
	if (!read_identity(c, (pid_t)syscall(SYS_gettid), &own)) {
		/* Without /proc nothing is noted. */
		own.uid = geteuid();
		own.gid = getegid();
	}
	own.caps = caps.effective & READING_CAPS;
	VEC_PUSH(&c->items, own);
	VEC_PUSH(&c->items, unknown);
	return c;
}

void creds_free(struct creds *c)
{
	size_t i;

	if (!c)
		return;
	creds_return(c, CREDS_OWN);
	for (i = 0; i < c->items.len; i++)
		free(c->items.items[i].groups);
	VEC_RELEASE(&c->items);
	free(c);
}

unsigned int creds_of_thread(struct creds *c, pid_t tid)
{
	struct identity id;
	size_t i;

	if (!read_identity(c, tid, &id)) {
		free(id.groups);
		return CREDS_UNKNOWN;
	}
	for (i = 0; i < c->items.len; i++) {
		if (i != CREDS_UNKNOWN && same_identity(&c->items.items[i], &id)) {
			free(id.groups);
			return (unsigned int)i;
		}
	}
	if (i == CREDS_MAX) {
		free(id.groups);
		return CREDS_UNKNOWN;
	}
	VEC_PUSH(&c->items, id);
	return (unsigned int)i;
}

bool creds_read_uids(pid_t tid, uid_t ret[CREDS_NR_UIDS])
{
	struct buf text = { 0 };
	const char *line;
	bool is_read;

	line = read_status(tid, &text) ? line_of(buf_str(&text), "\nUid:") : NULL;
	is_read = line && sscanf(line, "%u %u %u %u", &ret[0], &ret[1], &ret[2], &ret[3]) == 4;
	buf_release(&text);
	return is_read;
}

bool creds_is_other_user(pid_t tid)
{
	uid_t uids[CREDS_NR_UIDS], own = geteuid();
	unsigned int i;

	if (!creds_read_uids(tid, uids))
		return true;
	for (i = 0; i < CREDS_NR_UIDS && uids[i] == own; i++)
		;
	return i < CREDS_NR_UIDS;
}

/* Assuming them. */

/* By system calls of one thread: glibc's setgroups() changes all threads of the process. */
static bool set_ids(const struct identity *from, const struct identity *to)
{
	if (!same_groups(from, to) && syscall(SYS_setgroups, to->nr_groups, to->groups) < 0)
		return false;
	(void)setfsgid(to->gid);
	(void)setfsuid(to->uid);
	/* They tell of no failure, but what is in force. */
	return (gid_t)setfsgid((gid_t)-1) == to->gid && (uid_t)setfsuid((uid_t)-1) == to->uid;
}

unsigned int creds_current(const struct creds *c)
{
	return c->current;
}

bool creds_assume(struct creds *c, unsigned int id)
{
	const struct identity *items = c->items.items;
	bool done;

	if (id == c->current || id == CREDS_UNKNOWN)
		return id == c->current;
	if (c->current != CREDS_OWN && !set_effective(c->working_caps))
		return false;
	done = set_ids(&items[c->current], &items[id]);
	if (!done)
		(void)set_ids(&items[id], &items[c->current]); /* as it was */
	else
		c->current = id;
	/* A change of the user has changed the capabilities too. */
	return set_effective(c->current == CREDS_OWN ? c->working_caps : items[c->current].caps) &&
	       done;
}

void creds_return(struct creds *c, unsigned int id)
{
	(void)!creds_assume(c, id); /* it was in force */
}
