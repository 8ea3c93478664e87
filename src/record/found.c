/* SPDX-License-Identifier: MIT */
#include "record/found.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/banned.h"
#include "base/map.h"
#include "base/mem.h"
#include "model/fields.h"
#include "record/capture_inside.h"

/* FUTEX_PRIVATE_FLAG and FUTEX2_PRIVATE: the word is in this address space alone. */
#define FUTEX_PRIVATE_BIT 0x80u
/* What is remembered of an address space: programs have few shared maps with futexes. */
#define AREAS_MAX 32

/* A stretch of memory that a futex was in. */
struct area {
	uint64_t start, end;
	bool shared;
	uint64_t dev, ino, offset;
};

struct areas {
	struct area items[AREAS_MAX];
	unsigned int nr, next; /* the oldest is replaced */
};

struct found {
	struct map spaces; /* space -> struct areas */
};

struct found *found_new(void)
{
	return xcalloc(1, sizeof(struct found));
}

void found_free(struct found *f)
{
	if (!f)
		return;
	MAP_EACH (&f->spaces, e)
		free(e->value);
	map_release(&f->spaces);
	free(f);
}

void found_forget(struct found *f, uint64_t space)
{
	if (f->spaces.nr_live)
		free(map_remove(&f->spaces, &space, sizeof(space)));
}

/* Files. */

bool found_stat(pid_t tid, int fd, struct stat *ret)
{
	char path[64];

	if (fd < 0)
		return false;
	(void)snprintf(path, sizeof(path), "/proc/%d/fd/%d", tid, fd);
	/* Of a server nothing is asked that the kernel has at hand: it may be recorded too. */
	return !fstatat(AT_FDCWD, path, ret, AT_STATX_DONT_SYNC);
}

int found_take(pid_t pid, int fd)
{
	AUTO_CLOSE int pidfd = (int)syscall(SYS_pidfd_open, pid, 0);
	int taken = pidfd < 0 ? -1 : (int)syscall(SYS_pidfd_getfd, pidfd, fd, 0);

	return taken < 0 ? -errno : taken;
}

bool found_is_read_end(pid_t tid, int fd)
{
	char path[64], text[128];
	unsigned int flags;
	bool hit = false;
	FILE *f;

	(void)snprintf(path, sizeof(path), "/proc/%d/fdinfo/%d", tid, fd);
	f = fopen(path, "re");
	if (!f)
		return false;
	while (!hit && fgets(text, sizeof(text), f))
		hit = sscanf(text, "flags: %o", &flags) == 1;
	(void)fclose(f); /* only read from */
	return hit && (flags & O_ACCMODE) == O_RDONLY;
}

struct value found_file_id(struct capture *c, const struct stat *st)
{
	struct value v =
		value_struct(c->arena, FIELD_BIT(file_id, dev) | FIELD_BIT(file_id, ino) |
					       FIELD_BIT(file_id, mode) | FIELD_BIT(file_id, size));

	c->is_own_open |= st->st_ino == c->own_ino && st->st_dev == c->own_dev;
	v.fields->items[FIELD_OF(file_id, dev)] = value_uint(st->st_dev);
	v.fields->items[FIELD_OF(file_id, ino)] = value_uint(st->st_ino);
	v.fields->items[FIELD_OF(file_id, mode)] = value_uint(st->st_mode);
	v.fields->items[FIELD_OF(file_id, size)] = value_uint((uint64_t)st->st_size);
	return v;
}

/*
 * The descriptor that the file is about: the new one, or the one that was given
 * (and is ignored for a map of no file).
 */
static int file_fd(const struct row *row, const struct outcome *outcome, const struct value *args)
{
	unsigned int i;
	int fd = -1;

	if (row->result == RESULT_NEW_FD)
		return (int)outcome->ret;
	for (i = 0; i < row->nr_args; i++) {
		const struct arg *a = &row->args[i];

		if (args[i].type != VALUE_INT)
			continue;
		if (a->set == SET_mmap_flags && args[i].u & MAP_ANONYMOUS)
			return -1;
		if (a->kind == KIND_FD && a->reg != REG_NONE && fd < 0)
			fd = (int)args[i].i;
	}
	return fd;
}

/* Futexes. */

/* One line of /proc/PID/maps; false when it is malformed. */
static bool parse_area(const char *line, struct area *ret)
{
	unsigned long long start, end, offset, ino;
	unsigned int major, minor;
	char perms[5];

	if (sscanf(line, "%llx-%llx %4s %llx %x:%x %llu", &start, &end, perms, &offset, &major,
		   &minor, &ino) != 7)
		return false;
	*ret = (struct area){
		.start = start,
		.end = end,
		.shared = perms[3] == 's',
		.dev = makedev(major, minor),
		.ino = ino,
		.offset = offset,
	};
	return true;
}

static bool look_up_area(pid_t tid, uint64_t addr, struct area *ret)
{
	char path[64], line[512];
	bool hit = false, whole = true;
	FILE *f;

	(void)snprintf(path, sizeof(path), "/proc/%d/maps", tid);
	f = fopen(path, "re");
	if (!f)
		return false;
	while (!hit && fgets(line, sizeof(line), f)) {
		/* The rest of a long line is a part of a file's name. */
		if (whole && parse_area(line, ret)) {
			hit = addr >= ret->start && addr < ret->end;
			if (!hit && ret->start > addr)
				break;
		}
		whole = strchr(line, '\n') != NULL;
	}
	(void)fclose(f); /* only read from */
	return hit;
}

static bool find_area(struct found *f, pid_t tid, uint64_t space, uint64_t addr, struct area *ret)
{
	void **slot = map_slot(&f->spaces, &space, sizeof(space));
	struct areas *known = *slot;
	unsigned int i;

	if (!known)
		*slot = known = xcalloc(1, sizeof(*known));
	for (i = 0; i < known->nr; i++) {
		if (addr >= known->items[i].start && addr < known->items[i].end) {
			*ret = known->items[i];
			return true;
		}
	}
	if (!look_up_area(tid, addr, ret))
		return false;
	known->items[known->next] = *ret;
	known->next = (known->next + 1) % AREAS_MAX;
	known->nr += known->nr < AREAS_MAX;
	return true;
}

struct futex_word {
	uint64_t addr;
	bool is_private;
};

static struct value futex_key(struct found *f, struct capture *c, pid_t tid, uint64_t space,
			      struct futex_word word)
{
	struct area area;
	struct value v;

	if (!word.is_private && !find_area(f, tid, space, word.addr, &area))
		return (struct value){ .type = VALUE_NONE };
	/* In a map that is not shared a futex is private, whatever the call says. */
	if (word.is_private || !area.shared) {
		v = value_struct(c->arena,
				 FIELD_BIT(futex_key, space) | FIELD_BIT(futex_key, addr));
		v.fields->items[0] = value_uint(space);
		v.fields->items[1] = value_uint(word.addr);
		return v;
	}
	v = value_struct(c->arena, FIELD_BIT(futex_key, dev) | FIELD_BIT(futex_key, ino) |
					   FIELD_BIT(futex_key, offset));
	v.fields->items[0] = value_uint(area.dev);
	v.fields->items[1] = value_uint(area.ino);
	v.fields->items[2] = value_uint(area.offset + (word.addr - area.start));
	return v;
}

static bool futex_is_private(const struct row *row, const struct value *args)
{
	unsigned int i;

	for (i = 0; i < row->nr_args; i++) {
		if ((row->args[i].set == SET_futex_ops || row->args[i].set == SET_futex2_flags) &&
		    args[i].type == VALUE_INT)
			return args[i].u & FUTEX_PRIVATE_BIT;
	}
	return false;
}

/* The n-th word of a call: of its list of waiters, or its n-th address. */
static bool find_word(const struct row *row, const struct value *args, unsigned int n,
		      struct futex_word *ret)
{
	unsigned int i;

	for (i = 0; i < row->nr_args; i++) {
		const struct value *v = &args[i];

		if (row->args[i].struct_id == STRUCT_futex_waitv) {
			const struct value *addr, *flags;

			if (v->type != VALUE_LIST || n >= v->count)
				return false;
			addr = value_field(&v->items[n], FIELD_OF(futex_waitv, uaddr));
			flags = value_field(&v->items[n], FIELD_OF(futex_waitv, flags));
			if (!addr || !flags)
				return false;
			*ret = (struct futex_word){ addr->u, flags->u & FUTEX_PRIVATE_BIT };
			return true;
		}
		if (row->args[i].kind == KIND_ADDR && v->type == VALUE_INT && n-- == 0) {
			*ret = (struct futex_word){ v->u, futex_is_private(row, args) };
			return true;
		}
	}
	return false;
}

/* The kernel waits for at most 128 words at once. */
#define FUTEX_WAITV_MAX 128

static struct value futex_keys(struct found *f, struct capture *c, pid_t tid, uint64_t space,
			       const struct row *row, const struct value *args)
{
	struct value list = value_list(c->arena, FUTEX_WAITV_MAX);
	struct futex_word word;
	uint32_t n;

	for (n = 0; n < FUTEX_WAITV_MAX && find_word(row, args, n, &word); n++)
		list.items[n] = futex_key(f, c, tid, space, word);
	list.count = n;
	return list;
}

/* clone3 stores the new pidfd where its arguments say. */
static struct value cloned_pidfd(struct capture *c, const struct row *row, const struct value *args)
{
	unsigned int i;
	int32_t fd;

	for (i = 0; i < row->nr_args; i++) {
		const struct value *flags, *at;

		if (row->args[i].struct_id != STRUCT_clone_args)
			continue;
		flags = value_field(&args[i], FIELD_OF(clone_args, flags));
		at = value_field(&args[i], FIELD_OF(clone_args, pidfd));
		if (flags && at && flags->u & CLONE_PIDFD &&
		    capture_read(c, at->u, &fd, sizeof(fd)) == sizeof(fd))
			return value_int(fd);
	}
	return (struct value){ .type = VALUE_NONE };
}

static bool changes_map(const struct row *row)
{
	return row_class(row) == C_MAP && row->result != RESULT_NEW_FD;
}

int found_fill(struct found *f, struct capture *c, pid_t pid, pid_t tid, uint64_t space,
	       const struct row *row, const uint64_t regs[6], const struct outcome *outcome,
	       struct value *args)
{
	unsigned int i, nr_keys = 0;
	struct futex_word word;
	struct stat st;

	(void)pid;
	(void)regs; /* what was in them, the arguments say */
	if (changes_map(row))
		found_forget(f, space);
	for (i = 0; i < row->nr_args; i++) {
		const struct arg *a = &row->args[i];

		if (a->reg != REG_NONE || args[i].type != VALUE_NONE)
			continue;
		if (a->struct_id == STRUCT_file_id) {
			if (!outcome->err && found_stat(tid, file_fd(row, outcome, args), &st))
				args[i] = found_file_id(c, &st);
		} else if (a->struct_id == STRUCT_futex_key && a->kind == KIND_ARRAY) {
			args[i] = futex_keys(f, c, tid, space, row, args);
		} else if (a->struct_id == STRUCT_futex_key) {
			if (find_word(row, args, nr_keys++, &word))
				args[i] = futex_key(f, c, tid, space, word);
		} else if (a->kind == KIND_FD && !outcome->err) {
			args[i] = cloned_pidfd(c, row, args);
		}
	}
	return 0;
}
