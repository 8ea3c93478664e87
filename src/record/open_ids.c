/* SPDX-License-Identifier: MIT */
#include "record/open_ids.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/kcmp.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "base/banned.h"

/* What kcmp says of two descriptors, and that it says nothing. */
enum answer { ANSWER_EQUAL = 0, ANSWER_LESS = 1, ANSWER_GREATER = 2, ANSWER_NONE };

void open_ids_release(struct open_ids *ids)
{
	VEC_RELEASE(&ids->items);
}

static enum answer ask_kernel(const struct open_id *a, const struct open_id *b)
{
	long r = syscall(SYS_kcmp, a->pid, b->pid, KCMP_FILE, a->fd, b->fd);

	if (r == ANSWER_EQUAL || r == ANSWER_LESS || r == ANSWER_GREATER)
		return (enum answer)r;
	/* One of them has been closed meanwhile: they are not the same. */
	return r < 0 && errno == EBADF ? ANSWER_LESS : ANSWER_NONE;
}

static enum answer by_number(uint64_t a, uint64_t b)
{
	return a < b ? ANSWER_LESS : a > b ? ANSWER_GREATER : ANSWER_EQUAL;
}

static enum answer compare(const struct open_id *a, const struct open_id *b)
{
	enum answer r = by_number(a->dev, b->dev);

	r = r ? r : by_number(a->ino, b->ino);
	return r ? r : ask_kernel(a, b);
}

/* A turn of the flag of one that shows in the other. */
static bool shares_flags(int a, int b)
{
	int flags = fcntl(a, F_GETFL);
	bool is_shared;

	if (flags < 0 || fcntl(b, F_GETFL) != flags || fcntl(a, F_SETFL, flags ^ O_NONBLOCK) < 0)
		return false;
	is_shared = fcntl(b, F_GETFL) == (flags ^ O_NONBLOCK);
	(void)fcntl(a, F_SETFL, flags); /* as it could be set, it can be set back */
	return is_shared;
}

/* The recorder's descriptor is the one that the program inherited. */
static bool has_own(const struct open_id *of)
{
	struct stat st;

	return of->is_own && !fstat(of->fd, &st) && st.st_dev == of->dev && st.st_ino == of->ino;
}

/* Without kcmp. Those of other kinds of file have no offset, and flags that matter. */
static uint64_t find_by_flag(struct open_ids *ids, const struct open_id *of)
{
	size_t i;

	for (i = 0; i < ids->items.len; i++) {
		const struct open_id *other = &ids->items.items[i];

		if (other->dev != of->dev || other->ino != of->ino || other->flags != of->flags ||
		    other->offset != of->offset)
			continue;
		if (!has_own(of) || !has_own(other)) {
			ids->nr_unknown++;
			return 0;
		}
		if (shares_flags(of->fd, other->fd))
			return other->id;
	}
	return ids->items.len + 1;
}

static void insert(struct open_ids *ids, size_t at, const struct open_id *of)
{
	VEC_PUSH(&ids->items, *of);
	memmove(&ids->items.items[at + 1], &ids->items.items[at],
		(ids->items.len - 1 - at) * sizeof(*of));
	ids->items.items[at] = *of;
}

uint64_t open_ids_get(struct open_ids *ids, struct open_id of, const struct stat *st)
{
	size_t low = 0, high = ids->items.len;

	of.dev = st->st_dev;
	of.ino = st->st_ino;
	of.id = ids->items.len + 1;
	while (low < high) {
		size_t mid = low + (high - low) / 2;
		enum answer r = compare(&of, &ids->items.items[mid]);

		if (r == ANSWER_EQUAL)
			return ids->items.items[mid].id;
		if (r == ANSWER_NONE) {
			of.id = S_ISREG(st->st_mode) ? find_by_flag(ids, &of) : 0;
			if (of.id != ids->items.len + 1)
				return of.id;
			break;
		}
		if (r == ANSWER_LESS)
			high = mid;
		else
			low = mid + 1;
	}
	insert(ids, low, &of);
	return of.id;
}
