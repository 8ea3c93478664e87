/* SPDX-License-Identifier: MIT */
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "fuzz_inside.h"

#define STRETCHES_MAX 16
#define TRIES 4
/* In front of the slots of each view: the first slot, or where it overlaps the view before. */
#define BEFORE_SLOTS_BYTES WIRE_BLOCK_BYTES

struct stretch {
	uint64_t start, end;
};

static struct stretch stretches[STRETCHES_MAX];
static unsigned int nr_stretches;

bool shared_find(void)
{
	char line[512];
	FILE *f = fopen("/proc/self/maps", "r");

	nr_stretches = 0;
	while (f && nr_stretches < STRETCHES_MAX && fgets(line, sizeof(line), f)) {
		struct stretch *s = &stretches[nr_stretches];
		unsigned long start, end;

		if (!strstr(line, "memfd:reprise") || !strstr(line, "rw-s") ||
		    sscanf(line, "%lx-%lx", &start, &end) != 2)
			continue;
		*s = (struct stretch){ start, end };
		nr_stretches += end - start != WIRE_COMMON_BYTES; /* which is the program's alone */
	}
	if (f)
		fclose(f);
	return nr_stretches;
}

static struct wire_block *block_at(const struct stretch *s, uint64_t slot)
{
	uint64_t at = s->start + BEFORE_SLOTS_BYTES + slot * WIRE_SLOT_BYTES;
	struct wire_block *b = (struct wire_block *)at;

	return at + WIRE_SLOT_BYTES <= s->end && b->self == at ? b : NULL;
}

uint8_t *shared_ring_of(struct wire_block *b)
{
	return (uint8_t *)b + WIRE_BLOCK_BYTES;
}

/* By a call that no other thread makes. */
struct wire_block *shared_own_block(void)
{
	uint64_t mark = (uint64_t)(uint32_t)gettid() | 0x40000000;
	unsigned int i, try;
	uint64_t slot;

	for (try = 0; try < TRIES; try++) {
		(void)!getpgid((pid_t)mark);
		for (i = 0; i < nr_stretches; i++) {
			for (slot = 0; slot < WIRE_NR_SLOTS; slot++) {
				struct wire_block *b = block_at(&stretches[i], slot);

				if (b && (uint32_t)b->regs[0] == mark)
					return b;
			}
		}
	}
	return NULL;
}

struct wire_block *shared_any_block(uint64_t *x)
{
	return nr_stretches ? block_at(&stretches[draw(x) % nr_stretches], draw(x) % 5) : NULL;
}

uint64_t *shared_any_word(uint64_t *x)
{
	const struct stretch *s = &stretches[draw(x) % nr_stretches];

	return (uint64_t *)s->start + draw(x) % ((s->end - s->start) / 8);
}
