/* SPDX-License-Identifier: MIT */
/*
 * Resources: what events touch, as the model tells them apart. The model makes
 * and frees them; an order policy keeps what it remembers of one in `order`.
 */
#ifndef FSMODEL_RES_H
#define FSMODEL_RES_H

#include <stdbool.h>
#include <stdint.h>

enum res_kind {
	RES_FILE = 1, /* an inode: file, directory, symlink, device ... */
	RES_NAME, /* an entry of a directory, whether there is something under the name or not */
	RES_FD, /* a descriptor as open, dup ... made it; forked tables share it until all have closed it */
	RES_OPEN, /* an open file description: offset and flags, shared by dup and fork */
	RES_HANDLE, /* a directory that processes have as their cwd or root */
	RES_MAP, /* what one mmap of a file made */
	RES_AIO, /* a context of asynchronous requests, or one request in it */
	RES_STREAM, /* what goes one way through a pipe, socket or eventfd */
	RES_LOCKS, /* the locks of a file */
	RES_STORAGE, /* all that is stored: what sync() writes out */
	RES_LOCKER, /* who holds the POSIX locks that a descriptor table has on a file */
	RES_KIND_MAX,
};

struct res {
	uint64_t id; /* never used again */
	uint8_t kind; /* enum res_kind */
	bool directory; /* of RES_FILE, as far as it is known what it is */
	bool real; /* of RES_STREAM: a replay has it too, and all that went through it (fsmodel_lose()) */
	uint32_t generation; /* of its name, from 1; a name that was never there has 0 */
	int32_t slot; /* of a plan, -1: none; kept here for whoever compiles */
	void *order; /* a policy's; NULL until it puts something there */
};

/*
 * How an event touches a resource. Bits; what they mean for order:
 *
 *   stage      CREATE, DELETE and CHANGE come after every touch before them and
 *              before every touch after them
 *   conflicts  of RES_FILE, RES_STREAM, RES_LOCKS: WRITE against READ and WRITE of
 *              overlapping bytes; SIZE_WRITE against SIZE_READ and SIZE_WRITE;
 *              META_WRITE against META_READ and META_WRITE; LIST against ENTRY;
 *              READ of RES_STORAGE against all of TOUCH_STORED of any file
 *   sequence   of RES_OPEN: OFFSET against OFFSET
 */
enum touch_how {
	TOUCH_USE = 0x1, /* set in every touch */
	TOUCH_CREATE = 0x2, /* a generation begins with this event */
	TOUCH_DELETE = 0x4, /* it ends with it */
	/*
	 * Of RES_NAME: what look-ups through it see is another (mode, owner). Of RES_STREAM: of a
	 * FIFO only an end is opened (with CREATE) or closed (with DELETE).
	 */
	TOUCH_CHANGE = 0x8,
	TOUCH_READ = 0x10, /* bytes [from, to), as asked for, not as got */
	TOUCH_WRITE = 0x20, /* bytes [from, to), also those that a truncation takes away */
	TOUCH_SIZE_READ = 0x40, /* the outcome depends on the size: stat, SEEK_END, append */
	TOUCH_SIZE_WRITE = 0x80, /* the size became another */
	TOUCH_META_READ = 0x100, /* mode, owner, times, xattrs */
	TOUCH_META_WRITE = 0x200,
	TOUCH_LIST = 0x400, /* of a directory: its entries were listed, or counted (rmdir) */
	TOUCH_ENTRY = 0x800, /* of a directory: an entry was made, removed or replaced */
	TOUCH_OFFSET =
		0x1000, /* of RES_OPEN: the shared offset, or the flags, were used or moved */
	TOUCH_FAILED = 0x2000, /* of RES_NAME: nothing was found there */
	TOUCH_WALK = 0x4000, /* of RES_NAME: on the way to what the call is about */
	/*
	 * Of RES_FILE: what is in it becomes durable, which is no one's outcome. Against
	 * changes as READ, but only those that did not overlap it in time.
	 */
	TOUCH_SYNC = 0x8000,
};

#define TOUCH_STAGE (TOUCH_CREATE | TOUCH_DELETE | TOUCH_CHANGE)
/* What changes a file, and so what there is to be written out. */
#define TOUCH_STORED (TOUCH_WRITE | TOUCH_SIZE_WRITE | TOUCH_META_WRITE | TOUCH_ENTRY)
#define TOUCH_TO_END UINT64_MAX

struct touch {
	struct res *res;
	uint32_t how; /* set of enum touch_how */
	uint64_t from, to; /* bytes, of READ and WRITE; to is exclusive, TOUCH_TO_END: no end */
};

#endif
