/* SPDX-License-Identifier: MIT */
#include "record/agent/maps.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sysmacros.h>

#include "base/buf.h"
#include "base/io.h"

#define MAPS_MAX_BYTES (8u << 20)
#define LOWEST_ADDRESS UINT64_C(0x100000)
/* How far a jump may go, with room for the text itself. */
#define REACH_BYTES (UINT64_C(0x7f000000))
/*
 * Right below the lowest address of a position-independent program (2/3 of the address space).
 * The kernel's own choices begin tens of TiB away, at the main stack or at 1/3, and brk grows upwards. ASan, MSan
 * and TSan take these addresses for the program's; most others are their shadow, or forbidden.
 */
#define APART_START UINT64_C(0x551000000000)
#define APART_END UINT64_C(0x555000000000)
#define APART_DISTANCE_BYTES (UINT64_C(4) << 30)

static bool parse_line(const char *line, const char *end, struct map_line *ret)
{
	unsigned long long major;
	char *at;

	ret->start = strtoull(line, &at, 16);
	if (*at != '-')
		return false;
	ret->end = strtoull(at + 1, &at, 16);
	if (at + 6 > end || ret->end <= ret->start)
		return false;
	ret->is_executable = at[3] == 'x';
	ret->is_private = at[4] == 'p';
	ret->offset = strtoull(at + 5, &at, 16);
	major = strtoull(at, &at, 16);
	if (*at != ':')
		return false;
	ret->dev = makedev((unsigned int)major, (unsigned int)strtoull(at + 1, &at, 16));
	ret->ino = strtoull(at, &at, 10);
	while (at < end && *at == ' ')
		at++;
	ret->path = at;
	return at <= end;
}

void maps_read(const struct tracee *t, struct maps *ret)
{
	char name[64], *line, *end;
	struct map_line l;

	*ret = (struct maps){ 0 };
	(void)snprintf(name, sizeof(name), "/proc/%d/maps", (int)t->tid);
	if (io_read_file(name, MAPS_MAX_BYTES, &ret->text, NULL) < 0)
		return;
	buf_put(&ret->text, "", 1);
	for (line = (char *)ret->text.data; (end = strchr(line, '\n')); line = end + 1) {
		*end = 0;
		if (parse_line(line, end, &l))
			VEC_PUSH(&ret->lines, l);
	}
}

void maps_release(struct maps *m)
{
	VEC_RELEASE(&m->lines);
	buf_release(&m->text);
}

const struct map_line *maps_find_vdso(const struct maps *m)
{
	size_t i;

	for (i = 0; i < m->lines.len; i++) {
		const struct map_line *l = &m->lines.items[i];

		if (l->is_executable && !strcmp(l->path, "[vdso]"))
			return l;
	}
	return NULL;
}

bool maps_is_text(const struct map_line *l)
{
	return l->is_executable && l->ino;
}

bool maps_are_near(uint64_t a, uint64_t b)
{
	return a < b ? b - a < REACH_BYTES : a - b < REACH_BYTES;
}

uint64_t maps_find_gap(const struct maps *m, uint64_t near)
{
	uint64_t lowest = near > REACH_BYTES ? near - REACH_BYTES + 1 : 0;
	uint64_t from = LOWEST_ADDRESS, best = 0, best_room = MAPS_GAP_BYTES;
	size_t i;

	for (i = 0; i < m->lines.len; i++) {
		const struct map_line *l = &m->lines.items[i];
		uint64_t room, at;

		from = from < lowest ? lowest : from;
		room = l->start > from ? (l->start - from) / 2 : 0;
		/* What is mapped above it may be a stack, of which only the main one has a name. */
		at = (l->start - room) & -MAPS_GAP_BYTES;
		if (room > best_room && strncmp(l->path, "[stack", 6) &&
		    maps_are_near(l->start, near)) {
			best = at;
			best_room = room;
		}
		from = l->end;
	}
	return best;
}

uint64_t maps_find_apart(const struct maps *m, uint64_t bytes)
{
	uint64_t at = APART_START;
	size_t i;

	for (i = 0; i < m->lines.len; i++) {
		const struct map_line *l = &m->lines.items[i];

		if (l->start < at + bytes + APART_DISTANCE_BYTES &&
		    l->end + APART_DISTANCE_BYTES > at)
			at = l->end + APART_DISTANCE_BYTES;
	}
	return at + bytes <= APART_END ? at : 0;
}
