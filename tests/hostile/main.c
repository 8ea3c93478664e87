/* SPDX-License-Identifier: MIT */
/* The table of attacks, and functions that they share. */
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "hostile.h"

#define HWCAP2_FSGSBASE 2
/* More than $REPRISE_AGENT_AFTER. */
#define WARM_CALLS 200

void give_up(const char *fmt, ...)
{
	int why = errno;
	va_list ap;

	va_start(ap, fmt);
	(void)vfprintf(stderr, fmt, ap);
	va_end(ap);
	(void)fprintf(stderr, ": %s\n", strerror(why));
	exit(BROKEN);
}

long must(long r, const char *what)
{
	if (r < 0)
		give_up("%s", what);
	return r;
}

void nap_us(long us)
{
	struct timespec t = { .tv_nsec = us * 1000 };

	(void)nanosleep(&t, NULL);
}

void mark(const char *name)
{
	int fd = open(name, O_CREAT | O_WRONLY, 0644);

	if (fd < 0)
		return;
	(void)!write(fd, name, strlen(name));
	(void)close(fd);
}

static const uint8_t *find_bytes(const uint8_t *start, size_t len, const char *bytes, size_t nr)
{
	return memmem(start, len, bytes, nr);
}

/* The agent is an executable anonymous mapping in its range. */
struct agent_text agent_find(void)
{
	struct agent_text ret = { 0 };
	unsigned long start, end;
	char line[512], mode[8];
	unsigned int i;
	FILE *f;

	for (i = 0; i < WARM_CALLS; i++)
		(void)syscall(SYS_getppid);
	f = fopen("/proc/self/maps", "re");
	while (f && fgets(line, sizeof(line), f)) {
		if (sscanf(line, "%lx-%lx %7s", &start, &end, mode) != 3 || mode[2] != 'x' ||
		    strchr(line, '/') || start < AGENT_LOW || start >= AGENT_HIGH)
			continue;
		ret.start = (const uint8_t *)start;
		ret.ask = find_bytes(ret.start, end - start, "\x0f\x05\xc3", 3);
		ret.call = find_bytes(ret.start, end - start, "\x0f\x05", 2);
		break;
	}
	if (f)
		(void)fclose(f);
	return ret.ask && ret.call ? ret : (struct agent_text){ 0 };
}

struct wire_block *agent_block(void)
{
	return (struct wire_block *)gs_base();
}

void agent_forge_block(struct wire_block *fake, void *ring, uint64_t ring_bytes)
{
	*fake = *agent_block();
	fake->self = (uint64_t)fake;
	fake->ring = (uint64_t)ring;
	fake->ring_bytes = ring_bytes;
	fake->head = fake->call_head = fake->tail = 0;
	fake->rule = WIRE_EMPTY_RULE;
}

/* mark WHAT: creates a file; run by other attacks. */
static int mode_mark(int argc, char **argv)
{
	char name[64];

	(void)snprintf(name, sizeof(name), "by-%s", argc > 0 ? argv[0] : "?");
	mark(name);
	return 0;
}

static const struct {
	const char *name;
	mode_fn run;
} modes[] = {
	{ "probe", mode_probe },   { "children", mode_children }, { "guarded", mode_guarded },
	{ "evade", mode_evade },   { "forge", mode_forge },	  { "poison", mode_poison },
	{ "sizes", mode_sizes },   { "truncate", mode_truncate }, { "fifo", mode_fifo },
	{ "odd", mode_odd },	   { "open", mode_open },	  { "move", mode_move },
	{ "swap", mode_swap },	   { "confined", mode_confined }, { "mark", mode_mark },
	{ "answer", mode_answer },
};

int main(int argc, char **argv)
{
	unsigned int i;

	if (!(getauxval(AT_HWCAP2) & HWCAP2_FSGSBASE))
		return NOT_HERE;
	for (i = 0; argc > 1 && i < sizeof(modes) / sizeof(modes[0]); i++) {
		if (!strcmp(argv[1], modes[i].name))
			return modes[i].run(argc - 2, argv + 2);
	}
	errno = EINVAL;
	give_up("mode %s", argc > 1 ? argv[1] : "");
}
