/* SPDX-License-Identifier: MIT */
#include "record/agent/copies.h"

#include <errno.h>

#include "model/wire.h"

bool copies_read(const uint8_t *bytes, uint64_t len, size_t nr, struct copy *ret)
{
	const uint8_t *at = bytes, *end = bytes + len;
	struct wire_copy head;
	size_t i;

	for (i = 0; i < nr; i++) {
		uint64_t left = (uint64_t)(end - at);

		if (left < sizeof(head))
			return false;
		copy_once(&head, at, sizeof(head));
		at += sizeof(head);
		left -= sizeof(head);
		if (!head.len_bytes || head.len_bytes > left || (head.len_bytes + 7) / 8 * 8 > left)
			return false;
		ret[i] = (struct copy){ head.addr, head.len_bytes, at };
		at += (head.len_bytes + 7) / 8 * 8;
	}
	return at == end;
}

/* How many bytes of a copy there are from the address on. */
static uint64_t bytes_from(const struct copy *copy, uint64_t addr)
{
	return addr >= copy->addr && addr - copy->addr < copy->len_bytes
		       ? copy->len_bytes - (addr - copy->addr)
		       : 0;
}

static uint64_t find_in(struct copies *c, size_t from, size_t to, uint64_t addr,
			const uint8_t **ret)
{
	size_t i;

	for (i = from; i < to; i++) {
		uint64_t n = bytes_from(&c->list[i], addr);

		if (!n)
			continue;
		c->next = i;
		*ret = c->list[i].bytes + (addr - c->list[i].addr);
		return n;
	}
	return 0;
}

uint64_t copies_find(struct copies *c, uint64_t addr, const uint8_t **ret)
{
	size_t from = c->next;
	uint64_t n = find_in(c, from, c->nr, addr, ret);

	return n ? n : find_in(c, 0, from, addr, ret);
}

/* So many copies are looked at for what is short, and may be a string of which there is no more. */
#define LOOKS_FOR_SHORT 32u
#define SHORT_MOST_BYTES 4096u

/* What they are of may overlap, and be of different lengths: if there is one, a copy that has all of the stretch. */
static uint64_t find_whole(struct copies *c, uint64_t addr, uint64_t len, const uint8_t **ret)
{
	uint64_t best = copies_find(c, addr, ret);
	size_t looks = len > SHORT_MOST_BYTES ? SIZE_MAX : LOOKS_FOR_SHORT, i;

	for (i = 0; best && best < len && i < c->nr && i < looks; i++) {
		uint64_t n = bytes_from(&c->list[i], addr);

		if (n > best) {
			best = n;
			*ret = c->list[i].bytes + (addr - c->list[i].addr);
		}
	}
	return best;
}

static ssize_t read_copies(struct memory *m, const struct iovec *local, const struct iovec *remote,
			   unsigned int nr)
{
	struct copies *c = (struct copies *)m;
	size_t done = 0;
	unsigned int i;

	for (i = 0; i < nr; i++) {
		const uint8_t *bytes = NULL;
		uint64_t addr = (uintptr_t)remote[i].iov_base;
		uint64_t have = find_whole(c, addr, remote[i].iov_len, &bytes);
		size_t n = have < remote[i].iov_len ? (size_t)have : remote[i].iov_len;

		if (n)
			memcpy(local[i].iov_base, bytes, n);
		done += n;
		if (n < remote[i].iov_len) {
			c->nr_missed += !n; /* strings are shorter than what is asked for */
			return done ? (ssize_t)done : -EFAULT;
		}
	}
	return (ssize_t)done;
}

static const uint8_t *borrow_copy(struct memory *m, uint64_t addr, size_t len)
{
	const uint8_t *bytes = NULL;

	return find_whole((struct copies *)m, addr, len, &bytes) >= len ? bytes : NULL;
}

struct copies copies_of(const struct copy *list, size_t nr)
{
	return (struct copies){
		.memory = { .read = read_copies, .borrow = borrow_copy },
		.list = list,
		.nr = nr,
	};
}
