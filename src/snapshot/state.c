/* SPDX-License-Identifier: MIT */
#include "snapshot/state.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "base/banned.h"
#include "base/buf.h"
#include "base/clock.h"
#include "base/io.h"
#include "base/strings.h"
#include "base/varint.h"
#include "snapshot/create.h"
#include "snapshot/tree.h"

#define FIRST_LINE "reprise init 1"
#define STATE_MAX_BYTES ((size_t)16 << 20)
#define STAMP_BYTES 16

void snapshot_state_release(struct snapshot_state *st)
{
	size_t i;

	for (i = 0; i < st->traces.len; i++)
		free(st->traces.items[i]);
	VEC_RELEASE(&st->traces);
}

uint64_t snapshot_ctime_ns(const struct stat *st)
{
	uint64_t ns;

	/* Before 1970 or after 2554: no stamp is that, so it is compared. */
	return clock_ns_from_timespec(&st->st_ctim, &ns) < 0 ? UINT64_MAX : ns;
}

static int lock_state(int fd, struct err *err)
{
	if (!flock(fd, LOCK_EX | LOCK_NB))
		return 0;
	if (errno == EWOULDBLOCK)
		return err_set(err, -EBUSY, "another init or replay is at work there");
	return err_set(err, -errno, "cannot lock it");
}

int snapshot_state_open(int dir_fd, bool make, bool lock, int *ret_fd, struct err *err)
{
	AUTO_CLOSE int fd = -1;

	if (make && mkdirat(dir_fd, SNAPSHOT_RESERVED, 0700) && errno != EEXIST)
		return err_set(err, -errno, "cannot make " SNAPSHOT_RESERVED);
	fd = openat(dir_fd, SNAPSHOT_RESERVED, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (fd < 0)
		return err_set(err, -errno, "cannot open " SNAPSHOT_RESERVED);
	if (lock) {
		int r = lock_state(fd, err);

		if (r < 0)
			return r;
	}
	*ret_fd = fd_take(&fd);
	return 0;
}

int snapshot_lock(const char *dir, int *ret_fd, struct err *err)
{
	AUTO_CLOSE int fd = open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	int r;

	if (fd < 0)
		return err_set(err, -errno, "cannot open %s", dir);
	r = snapshot_state_open(fd, false, true, ret_fd, err);
	if (r == -ENOENT) {
		r = lock_state(fd, err);
		if (!r)
			*ret_fd = fd_take(&fd);
	}
	return r < 0 ? err_wrap(err, r, "%s", dir) : 0;
}

/* Text. */

static void put_escaped(struct buf *b, const char *s)
{
	for (; *s; s++) {
		if ((uint8_t)*s < ' ' || *s == '\\')
			buf_printf(b, "\\x%02x", (unsigned int)(uint8_t)*s);
		else
			buf_putc(b, *s);
	}
}

static int digit(char c)
{
	return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* In place. */
static void unescape(char *s)
{
	char *to = s;

	while (*s) {
		if (s[0] == '\\' && s[1] == 'x' && digit(s[2]) >= 0 && digit(s[3]) >= 0) {
			*to++ = (char)(digit(s[2]) << 4 | digit(s[3]));
			s += 4;
		} else {
			*to++ = *s++;
		}
	}
	*to = 0;
}

static void put_hash(struct buf *b, const char *key, struct hash128 h)
{
	buf_printf(b, "%s %016" PRIx64 "%016" PRIx64 "\n", key, h.high, h.low);
}

static bool get_hash(const char *s, struct hash128 *ret)
{
	uint64_t half[2] = { 0, 0 };
	unsigned int i;

	for (i = 0; i < 32; i++) {
		if (digit(s[i]) < 0)
			return false;
		half[i / 16] = half[i / 16] << 4 | (uint64_t)digit(s[i]);
	}
	*ret = (struct hash128){ .high = half[0], .low = half[1] };
	return !s[32];
}

/* False: a line that a state of ours does not have. */
static bool take_line(struct snapshot_state *st, char *line)
{
	char *value = strchr(line, ' ');

	if (!value)
		return false;
	*value++ = 0;
	if (!strcmp(line, "complete"))
		st->complete = !strcmp(value, "yes");
	else if (!strcmp(line, "exclusive"))
		st->exclusive = !strcmp(value, "yes");
	else if (!strcmp(line, "privileged"))
		st->privileged = !strcmp(value, "yes");
	else if (!strcmp(line, "sparse_over"))
		return !strings_parse_u64(value, &st->sparse_over_bytes);
	else if (!strcmp(line, "entries"))
		return !strings_parse_u64(value, &st->nr_entries);
	else if (!strcmp(line, "tree"))
		return get_hash(value, &st->tree);
	else if (!strcmp(line, "inodes"))
		return get_hash(value, &st->stamps);
	else if (!strcmp(line, "trace")) {
		unescape(value);
		VEC_PUSH(&st->traces, xstrdup(value));
	}
	return true;
}

static bool parse(struct snapshot_state *st, char *text)
{
	char *line = strsep(&text, "\n");

	if (strcmp(line, FIRST_LINE) != 0)
		return false;
	while (text && *text) {
		if (!take_line(st, strsep(&text, "\n")))
			return false;
	}
	return true;
}

static int read_file(int fd, size_t max_bytes, struct buf *ret)
{
	struct stat st;
	ssize_t n;

	if (fstat(fd, &st))
		return -errno;
	if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size > max_bytes)
		return -EBADMSG;
	n = read_full(fd, buf_reserve(ret, (size_t)st.st_size + 1), (size_t)st.st_size);
	if (n < 0)
		return (int)n;
	ret->len += (size_t)n;
	return 0;
}

static int open_note(int state_fd, const char *name)
{
	return openat(state_fd, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
}

int snapshot_state_read(int dir_fd, struct snapshot_state *ret, struct err *err)
{
	AUTO_CLOSE int state_fd = -1, fd = -1;
	struct buf text = { 0 };
	int r;

	*ret = (struct snapshot_state){ 0 };
	state_fd = openat(dir_fd, SNAPSHOT_RESERVED, O_PATH | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	if (state_fd < 0 && (errno == ENOENT || errno == ENOTDIR || errno == ELOOP))
		return 0;
	if (state_fd >= 0)
		fd = open_note(state_fd, "state");
	if (fd < 0 && state_fd >= 0 && errno == ENOENT)
		return 0;
	if (fd < 0)
		return err_set(err, -errno, "cannot open " SNAPSHOT_RESERVED "/state");
	r = read_file(fd, STATE_MAX_BYTES, &text);
	(void)buf_str(&text);
	if (!r && !parse(ret, (char *)text.data))
		r = -EBADMSG;
	buf_release(&text);
	if (r == -EBADMSG) {
		/* Somebody wrote into it. It is no proof that all here is ours. */
		snapshot_state_release(ret);
		*ret = (struct snapshot_state){ 0 };
		return 0;
	}
	return r < 0 ? err_set(err, r, "cannot read " SNAPSHOT_RESERVED "/state") : 1;
}

/* A file in a whole; durable: also when the machine ends right now. */
static int replace(int state_fd, const char *name, const struct buf *text, bool durable,
		   struct err *err)
{
	AUTO_CLOSE int fd = -1;
	char new_name[32];
	int r;

	(void)snprintf(new_name, sizeof(new_name), "%s.new", name);
	(void)unlinkat(state_fd, new_name, 0); /* what a killed one left; else the open says why */
	fd = openat(state_fd, new_name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
	if (fd < 0)
		return err_set(err, -errno, "cannot make " SNAPSHOT_RESERVED "/%s", new_name);
	r = write_full(fd, text->data, text->len);
	if (!r && durable && fsync(fd))
		r = -errno;
	if (!r && renameat(state_fd, new_name, state_fd, name))
		r = -errno;
	return r < 0 ? err_set(err, r, "cannot write " SNAPSHOT_RESERVED "/%s", name) : 0;
}

int snapshot_state_write(int state_fd, const struct snapshot_state *st, struct err *err)
{
	struct buf b = { 0 };
	size_t i;
	int r;

	buf_puts(&b, FIRST_LINE "\n");
	buf_printf(&b, "complete %s\n", st->complete ? "yes" : "no");
	buf_printf(&b, "exclusive %s\n", st->exclusive ? "yes" : "no");
	buf_printf(&b, "privileged %s\n", st->privileged ? "yes" : "no");
	buf_printf(&b, "sparse_over %" PRIu64 "\n", st->sparse_over_bytes);
	buf_printf(&b, "entries %" PRIu64 "\n", st->nr_entries);
	put_hash(&b, "tree", st->tree);
	put_hash(&b, "inodes", st->stamps);
	for (i = 0; i < st->traces.len; i++) {
		buf_puts(&b, "trace ");
		put_escaped(&b, st->traces.items[i]);
		buf_putc(&b, '\n');
	}
	r = replace(state_fd, "state", &b, st->complete, err);
	buf_release(&b);
	return r;
}

/* Stamps. */

struct snapshot_stamp *snapshot_stamps_read(int state_fd, const struct snapshot_state *st)
{
	AUTO_CLOSE int fd = open_note(state_fd, "inodes");
	struct snapshot_stamp *stamps = NULL;
	struct buf b = { 0 };
	uint64_t i;

	if (fd >= 0 && st->nr_entries <= SIZE_MAX / STAMP_BYTES / 2 &&
	    !read_file(fd, (size_t)st->nr_entries * STAMP_BYTES, &b) &&
	    b.len == st->nr_entries * STAMP_BYTES &&
	    hash_equal(hash_bytes(b.data, b.len), st->stamps)) {
		stamps = xcalloc((size_t)st->nr_entries, sizeof(*stamps));
		for (i = 0; i < st->nr_entries; i++) {
			stamps[i].ino = get_le64(b.data + i * STAMP_BYTES);
			stamps[i].ctime_ns = get_le64(b.data + i * STAMP_BYTES + 8);
		}
	}
	buf_release(&b);
	return stamps;
}

/* What time it is for the file system, by a file that is made now. */
static int ask_time(int state_fd, uint64_t *ret_ns, struct err *err)
{
	const struct buf nothing = { 0 };
	struct stat st;
	int r = replace(state_fd, "inodes", &nothing, false, err);

	if (r < 0)
		return r;
	if (fstatat(state_fd, "inodes", &st, AT_SYMLINK_NOFOLLOW))
		return err_set(err, -errno, "cannot stat " SNAPSHOT_RESERVED "/inodes");
	*ret_ns = snapshot_ctime_ns(&st);
	return 0;
}

/*
 * A time at which nothing of ours changes any more, so that every stamp can be
 * trusted: one tick of the kernel's clock later where the last change was just
 * now. On file systems with coarser times the youngest stamps stay too young.
 */
static int ask_later_time(int state_fd, uint64_t youngest_ns, uint64_t *ret_ns, struct err *err)
{
	const struct timespec tick = clock_timespec_from_ns(10 * NS_PER_MS);
	int r = ask_time(state_fd, ret_ns, err);

	if (r < 0 || *ret_ns > youngest_ns)
		return r;
	nanosleep(&tick, NULL);
	return ask_time(state_fd, ret_ns, err);
}

int snapshot_stamps_write(int state_fd, struct snapshot_state *st, struct snapshot_stamp *stamps,
			  struct err *err)
{
	struct buf b = { 0 };
	uint64_t i, now_ns = 0, youngest_ns = 0;
	uint8_t *p;
	int r;

	for (i = 0; i < st->nr_entries; i++) {
		if (stamps[i].ctime_ns > youngest_ns)
			youngest_ns = stamps[i].ctime_ns;
	}
	r = ask_later_time(state_fd, youngest_ns, &now_ns, err);
	if (r < 0)
		return r;
	for (i = 0; i < st->nr_entries; i++) {
		if (stamps[i].ctime_ns >= now_ns)
			stamps[i] = (struct snapshot_stamp){ 0 };
		p = buf_reserve(&b, STAMP_BYTES);
		put_le64(p, stamps[i].ino);
		put_le64(p + 8, stamps[i].ctime_ns);
		b.len += STAMP_BYTES;
	}
	r = replace(state_fd, "inodes", &b, true, err);
	if (!r)
		st->stamps = hash_bytes(b.data, b.len);
	buf_release(&b);
	return r;
}
