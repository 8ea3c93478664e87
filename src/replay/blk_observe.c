/* SPDX-License-Identifier: MIT */
/*
 * What the devices saw: the kernel's tracepoint block_rq_issue, in an instance of
 * its own, read while the run goes on. Of the keeper.
 *
 * The order of issue against that of the trace (RFC 4737, Type-P-Reordered): a
 * request is reordered when one that comes later in the trace was issued before
 * it. Requests are gone through in the order of the trace; `highest` holds the
 * places in the order of issue of those that nobody later was before, ascending:
 * whoever comes with a lower place has overtaken all that are higher.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/banned.h"
#include "base/map.h"
#include "base/mem.h"
#include "replay/blk_inside.h"

#define TRACING "/sys/kernel/tracing/instances"
#define EVENT_DIR "events/block/block_rq_issue"
#define BUFFER_KB "16384"
#define READ_BYTES ((size_t)64 << 10)
/* Whoever is overtaken by more than so many is not noticed. */
#define HIGHEST_MAX 65536

struct key {
	uint64_t dev, sector, sectors;
};

struct arrival {
	uint64_t place; /* in the order of issue */
	struct arrival *next;
};

struct blk_observer {
	char dir[96];
	int fd;
	struct buf text;
	struct map seen; /* struct key -> struct arrival, the latest; a ring */
	uint64_t nr_seen;
	VEC(uint64_t) highest;
};

static int put(const struct blk_observer *ob, const char *name, const char *text)
{
	char path[192];
	int fd, r = 0;

	(void)snprintf(path, sizeof(path), "%s/%s", ob->dir, name);
	fd = open(path, O_WRONLY | O_CLOEXEC);
	if (fd < 0)
		return -errno;
	if (write(fd, text, strlen(text)) < 0)
		r = -errno;
	(void)close(fd); /* the write was answered */
	return r;
}

/* "dev == 8388608 || dev == ...", in the kernel's own numbers; false: no target is a device. */
static bool put_filter(const struct blk_run *run, struct buf *filter)
{
	struct stat st;

	for (uint32_t i = 0; i < run->nr_targets; i++) {
		if (!run->targets[i].device || fstat(run->targets[i].fd, &st) < 0)
			continue;
		buf_printf(filter, "%sdev == %u", filter->len ? " || " : "",
			   major(st.st_rdev) << 20 | minor(st.st_rdev));
	}
	return filter->len > 0;
}

static int set_up(struct blk_observer *ob, const char *filter)
{
	char path[192];
	int r = put(ob, "buffer_size_kb", BUFFER_KB);

	if (!r)
		r = put(ob, EVENT_DIR "/filter", filter);
	if (!r)
		r = put(ob, EVENT_DIR "/enable", "1");
	if (r < 0)
		return r;
	(void)snprintf(path, sizeof(path), "%s/trace_pipe", ob->dir);
	ob->fd = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
	return ob->fd < 0 ? -errno : 0;
}

int blk_observer_open(struct blk_run *run, struct err *err)
{
	struct blk_observer *ob;
	struct buf filter = { 0 };
	int r = 0;

	if (!run->o->observe)
		return 0;
	if (!put_filter(run, &filter)) {
		buf_release(&filter);
		return err_set(err, -ENOTBLK, "--observe: no target is a device");
	}
	run->observer = ob = xcalloc(1, sizeof(*ob));
	ob->fd = -1;
	(void)snprintf(ob->dir, sizeof(ob->dir), "%s/reprise-%d", TRACING, (int)getpid());
	if (mkdir(ob->dir, 0700) < 0) {
		r = -errno;
		ob->dir[0] = '\0';
	}
	if (!r)
		r = set_up(ob, buf_str(&filter));
	buf_release(&filter);
	return r < 0 ? err_set(err, r, "--observe: cannot use the block tracepoints in %s", TRACING)
		     : 0;
}

/* Arrivals. */

static void arrive(struct blk_observer *ob, const struct key *key)
{
	void **slot = map_slot(&ob->seen, key, sizeof(*key));
	struct arrival *a = xcalloc(1, sizeof(*a)), *latest = *slot;

	a->place = ob->nr_seen++;
	a->next = latest ? latest->next : a;
	if (latest)
		latest->next = a;
	*slot = a;
}

/* The oldest of its key; false: it was not seen, or as a part of another. */
static bool take_arrival(struct blk_observer *ob, const struct key *key, uint64_t *ret)
{
	struct arrival *latest = map_get(&ob->seen, key, sizeof(*key)), *oldest;

	if (!latest)
		return false;
	oldest = latest->next;
	if (oldest == latest)
		(void)map_remove(&ob->seen, key, sizeof(*key));
	else
		latest->next = oldest->next;
	*ret = oldest->place;
	free(oldest);
	return true;
}

/* "... block_rq_issue: 7,0 WS 4096 () 1288 + 8 none,0,0 [name]" */
static void take_line(struct blk_observer *ob, const char *line)
{
	static const char word[] = "block_rq_issue: ";
	const char *p = strstr(line, word), *plus;
	unsigned int high, low;
	struct key key;

	if (!p || sscanf(p + strlen(word), "%u,%u", &high, &low) != 2)
		return;
	plus = strstr(p, " + ");
	while (plus && plus > p && plus[-1] >= '0' && plus[-1] <= '9')
		plus--;
	if (!plus || sscanf(plus, "%" SCNu64 " + %" SCNu64, &key.sector, &key.sectors) != 2)
		return;
	key.dev = makedev(high, low);
	if (key.sectors)
		arrive(ob, &key);
}

static void read_all(struct blk_observer *ob)
{
	ssize_t n;

	while ((n = read(ob->fd, buf_reserve(&ob->text, READ_BYTES + 1), READ_BYTES)) > 0) {
		char *line, *eol;

		ob->text.len += (size_t)n;
		ob->text.data[ob->text.len] = '\0';
		line = (char *)ob->text.data;
		while ((eol = strchr(line, '\n'))) {
			*eol = '\0';
			take_line(ob, line);
			line = eol + 1;
		}
		ob->text.len -= (size_t)(line - (char *)ob->text.data);
		memmove(ob->text.data, line, ob->text.len);
	}
}

static void note_place(struct blk_observer *ob, uint64_t place, uint64_t *nr_reordered)
{
	while (ob->highest.len && ob->highest.items[ob->highest.len - 1] > place) {
		ob->highest.len--;
		++*nr_reordered;
	}
	if (ob->highest.len == HIGHEST_MAX) {
		ob->highest.len /= 2;
		memmove(ob->highest.items, ob->highest.items + HIGHEST_MAX / 2,
			ob->highest.len * sizeof(uint64_t));
	}
	VEC_PUSH(&ob->highest, place);
}

void blk_observer_work(struct blk_run *run)
{
	if (run->observer && run->observer->fd >= 0)
		read_all(run->observer);
}

void blk_observer_take(struct blk_run *run, const struct blk_slot *s)
{
	struct blk_observer *ob = run->observer;
	const struct blk_target *t = &run->targets[s->target];
	uint64_t place;
	struct stat st;
	struct key key;

	if (!ob || s->fate != BLK_MAKE || !t->device || blk_ops[s->op].moves == BLK_MOVES_NONE ||
	    fstat(t->fd, &st) < 0)
		return;
	key = (struct key){ .dev = st.st_rdev,
			    .sector = s->offset_bytes / BLK_SECTOR_BYTES,
			    .sectors = s->length_bytes / BLK_SECTOR_BYTES };
	if (!take_arrival(ob, &key, &place)) {
		run->res->nr_unobserved++;
		return;
	}
	run->res->nr_observed++;
	note_place(ob, place, &run->res->nr_reordered_device);
}

void blk_observer_close(struct blk_run *run)
{
	struct blk_observer *ob = run->observer;

	if (!ob)
		return;
	if (ob->fd >= 0)
		(void)close(ob->fd);
	if (ob->dir[0]) {
		(void)put(ob, EVENT_DIR "/enable", "0");
		(void)rmdir(ob->dir); /* nothing can be done if it stays */
	}
	MAP_EACH (&ob->seen, e) {
		struct arrival *latest = e->value, *a = latest->next, *next;

		for (; a != latest; a = next) {
			next = a->next;
			free(a);
		}
		free(latest);
	}
	map_release(&ob->seen);
	buf_release(&ob->text);
	VEC_RELEASE(&ob->highest);
	free(ob);
	run->observer = NULL;
}
