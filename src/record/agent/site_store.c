/* SPDX-License-Identifier: MIT */
/*
 *   magic, version | nr_left | nr of sites | site ... | XXH3-64 of all before, and of the key
 *   site: window, nr_insns, window_bytes, pad_bytes, used, bytes of the window
 *
 * Little-endian. The version is that of the rules by which sites are chosen, too.
 */
#include "record/agent/site_store.h"

#include <dirent.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/buf.h"
#include "base/hash.h"
#include "base/io.h"
#include "base/varint.h"

#define MAGIC "reprise sites 1"
#define HEAD_BYTES 32u
#define SITE_HEAD_BYTES 12u
#define SUM_BYTES 8u
#define FILE_MAX_BYTES ((off_t)4 << 20)
/* With more files than this, all are forgotten. */
#define ENTRIES_MAX 1024u
/* Where a build-id is looked for: linkers put it behind the program headers. */
#define BEGIN_BYTES 4096u
#define BUILD_ID_MAX_BYTES 32u
#define HEX_DIGITS "0123456789abcdef"
#define NEW_PREFIX "new-"

struct site_store {
	int fd; /* of the directory */
	unsigned int nr_entries;
};

/* Only we may have written it. */
static bool is_ours(int fd, mode_t type, struct stat *ret)
{
	return !fstat(fd, ret) && (ret->st_mode & S_IFMT) == type && ret->st_uid == geteuid() &&
	       !(ret->st_mode & (S_IWGRP | S_IWOTH));
}

/* NULL when there are none. */
static DIR *list(int dir_fd)
{
	int fd = openat(dir_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
	DIR *d = fd < 0 ? NULL : fdopendir(fd);

	if (!d && fd >= 0)
		(void)close(fd); /* only read from */
	return d;
}

/* BUILD-ID "-" SIZE "-" TIME, and what site_store_key() adds; older ones had no more. */
static bool is_key(const char *name)
{
	unsigned int nr_parts = 0;
	size_t n;

	while ((n = strspn(name, HEX_DIGITS))) {
		nr_parts++;
		name += n + (name[n] == '-');
	}
	return !*name && nr_parts >= 3;
}

/* Files of ours, those that were not finished among them. */
static unsigned int count_entries(int dir_fd, bool remove)
{
	unsigned int nr = 0;
	DIR *d = list(dir_fd);
	struct dirent *e;

	while (d && (e = readdir(d))) {
		if (!is_key(e->d_name) && strncmp(e->d_name, NEW_PREFIX, strlen(NEW_PREFIX)) != 0)
			continue;
		nr++;
		if (remove)
			(void)unlinkat(dir_fd, e->d_name, 0); /* or it stays */
	}
	if (d)
		(void)closedir(d); /* only read from */
	return nr;
}

/* -1, and closed, when it is somebody else's. */
static int keep_own(int fd)
{
	struct stat st;

	if (fd < 0 || (!fstat(fd, &st) && st.st_uid == geteuid()))
		return fd;
	(void)close(fd); /* only read from */
	return -1;
}

/* The directory of that name, made if need be; -1: there is none, or it is somebody else's. Takes over dir_fd. */
static int go_down(int dir_fd, const char *name)
{
	int fd;

	(void)mkdirat(dir_fd, name, 0700); /* if it is not there then, it cannot be opened */
	fd = openat(dir_fd, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
	(void)close(dir_fd); /* only read from */
	return keep_own(fd);
}

/* What is given must be ours as well, so that root does not leave things in the homes of others. */
struct site_store *site_store_open(const char *dir, const char *below)
{
	int fd = keep_own(open(dir, O_RDONLY | O_DIRECTORY | O_CLOEXEC));
	AUTO_FREE char *parts = xstrdup(below);
	char *rest = parts, *part;
	struct site_store *s;
	struct stat st;

	while (fd >= 0 && (part = strsep(&rest, "/")))
		fd = go_down(fd, part);
	if (fd < 0)
		return NULL;
	if (!is_ours(fd, S_IFDIR, &st)) {
		(void)close(fd); /* only read from */
		return NULL;
	}
	s = xcalloc(1, sizeof(*s));
	s->fd = fd;
	s->nr_entries = count_entries(fd, false);
	return s;
}

void site_store_close(struct site_store *s)
{
	if (!s)
		return;
	(void)close(s->fd); /* only read from */
	free(s);
}

bool site_store_is_empty(const struct site_store *s)
{
	return !s->nr_entries;
}

/* Keys. */

static void put_hex(char *at, const uint8_t *bytes, size_t len)
{
	size_t i;

	for (i = 0; i < len; i++) {
		at[2 * i] = HEX_DIGITS[bytes[i] >> 4];
		at[2 * i + 1] = HEX_DIGITS[bytes[i] & 15];
	}
	at[2 * len] = 0;
}

/* In a stretch of notes. NULL: there is none. */
static const uint8_t *find_build_id(const uint8_t *p, size_t len, size_t *ret_len)
{
	while (len >= sizeof(Elf64_Nhdr)) {
		size_t name, desc;
		Elf64_Nhdr n;

		memcpy(&n, p, sizeof(n));
		name = ((size_t)n.n_namesz + 3) & ~(size_t)3;
		desc = ((size_t)n.n_descsz + 3) & ~(size_t)3;
		if (name > len - sizeof(n) || desc > len - sizeof(n) - name)
			return NULL;
		if (n.n_type == NT_GNU_BUILD_ID && n.n_namesz == 4 && n.n_descsz &&
		    n.n_descsz <= BUILD_ID_MAX_BYTES && !memcmp(p + sizeof(n), "GNU", 4)) {
			*ret_len = n.n_descsz;
			return p + sizeof(n) + name;
		}
		p += sizeof(n) + name + desc;
		len -= sizeof(n) + name + desc;
	}
	return NULL;
}

static const uint8_t *build_id_of(const uint8_t *file, size_t len, size_t *ret_len)
{
	const uint8_t *found = NULL;
	Elf64_Ehdr head;
	Elf64_Phdr part;
	unsigned int i;

	if (len < sizeof(head))
		return NULL;
	memcpy(&head, file, sizeof(head));
	if (memcmp(head.e_ident, ELFMAG, SELFMAG) || head.e_ident[EI_CLASS] != ELFCLASS64 ||
	    head.e_phentsize != sizeof(part) || head.e_phoff > len ||
	    head.e_phnum > (len - head.e_phoff) / sizeof(part))
		return NULL;
	for (i = 0; i < head.e_phnum && !found; i++) {
		memcpy(&part, file + head.e_phoff + i * sizeof(part), sizeof(part));
		if (part.p_type == PT_NOTE && part.p_offset <= len &&
		    part.p_filesz <= len - part.p_offset)
			found = find_build_id(file + part.p_offset, part.p_filesz, ret_len);
	}
	return found;
}

/*
 * A program can make a file with any build-id, and with times that it chooses, so that sites are found
 * in it that are none in the file that it stands for. It cannot choose when the file was last changed, nor
 * which file it is.
 */
void site_store_key(int fd, const struct stat *st, struct site_key *ret)
{
	uint8_t begin[BEGIN_BYTES];
	ssize_t n = pread_full(fd, begin, sizeof(begin), 0);
	size_t len = 0;
	const uint8_t *id = n > 0 ? build_id_of(begin, (size_t)n, &len) : NULL;

	ret->text[0] = 0;
	if (!id)
		return;
	put_hex(ret->text, id, len);
	(void)snprintf(ret->text + 2 * len, sizeof(ret->text) - 2 * len,
		       "-%llx-%llx%08lx-%llx-%llx", (unsigned long long)st->st_size,
		       (unsigned long long)st->st_ctim.tv_sec, (unsigned long)st->st_ctim.tv_nsec,
		       (unsigned long long)st->st_dev, (unsigned long long)st->st_ino);
}

/* Files. */

/* One site out of so many bytes; how many it has taken, 0: it is none. */
static size_t get_site(const uint8_t *p, size_t len, struct site *ret)
{
	struct site s = { 0 };

	if (len < SITE_HEAD_BYTES)
		return 0;
	s.window = get_le64(p);
	s.nr_insns = p[8];
	s.window_bytes = p[9];
	s.pad_bytes = p[10];
	s.used = p[11] & 1;
	if (s.window_bytes < SITE_JUMP_BYTES || s.window_bytes > SITE_WINDOW_MAX_BYTES ||
	    s.window_bytes > len - SITE_HEAD_BYTES || s.window > INT64_MAX || !s.nr_insns ||
	    s.nr_insns > SITE_INSNS_MAX || (s.pad_bytes && s.pad_bytes != SITE_JUMP_BYTES))
		return 0;
	s.syscall = s.window + s.window_bytes;
	memcpy(s.bytes, p + SITE_HEAD_BYTES, s.window_bytes);
	if (!site_decode(&s))
		return 0;
	*ret = s;
	return SITE_HEAD_BYTES + s.window_bytes;
}

static uint64_t sum_of(const struct site_key *key, const uint8_t *p, size_t len)
{
	return XXH3_64bits(p, len) ^ XXH3_64bits(key->text, strlen(key->text));
}

bool site_store_parse(const struct site_key *key, const uint8_t *p, size_t len, struct sites *ret)
{
	uint64_t nr, i, last = 0;

	*ret = (struct sites){ 0 };
	if (len < HEAD_BYTES + SUM_BYTES || memcmp(p, MAGIC, sizeof(MAGIC)) ||
	    get_le64(p + len - SUM_BYTES) != sum_of(key, p, len - SUM_BYTES))
		return false;
	ret->nr_left = get_le64(p + 16);
	nr = get_le64(p + 24);
	p += HEAD_BYTES;
	len -= HEAD_BYTES + SUM_BYTES;
	for (i = 0; i < nr; i++) {
		struct site s;
		size_t n = get_site(p, len, &s);

		if (!n || s.window < last)
			break;
		last = s.syscall + 2;
		VEC_PUSH(&ret->list, s);
		p += n;
		len -= n;
	}
	if (i == nr && !len)
		return true;
	sites_release(ret);
	return false;
}

bool site_store_load(const struct site_store *s, const struct site_key *key, struct sites *ret)
{
	AUTO_CLOSE int fd = key->text[0] ? openat(s->fd, key->text,
						  O_RDONLY | O_NOFOLLOW | O_CLOEXEC | O_NONBLOCK)
					 : -1;
	struct sites found;
	struct stat st;
	uint8_t *p;
	bool is_good;

	if (fd < 0 || !is_ours(fd, S_IFREG, &st) || st.st_size > FILE_MAX_BYTES)
		return false;
	p = xmalloc((size_t)st.st_size);
	is_good = pread_full(fd, p, (size_t)st.st_size, 0) == st.st_size &&
		  site_store_parse(key, p, (size_t)st.st_size, &found);
	free(p);
	if (is_good)
		*ret = found;
	return is_good;
}

void site_store_print(const struct site_key *key, const struct sites *sites, struct buf *ret)
{
	uint8_t head[HEAD_BYTES] = MAGIC, sum[SUM_BYTES];
	size_t i;

	put_le64(head + 16, sites->nr_left);
	put_le64(head + 24, sites->list.len);
	buf_put(ret, head, sizeof(head));
	for (i = 0; i < sites->list.len; i++) {
		const struct site *s = &sites->list.items[i];
		uint8_t one[SITE_HEAD_BYTES];

		put_le64(one, s->window);
		one[8] = s->nr_insns;
		one[9] = s->window_bytes;
		one[10] = s->pad_bytes;
		one[11] = s->used;
		buf_put(ret, one, sizeof(one));
		buf_put(ret, s->bytes, s->window_bytes);
	}
	put_le64(sum, sum_of(key, ret->data, ret->len));
	buf_put(ret, sum, sizeof(sum));
}

/* Whole or not at all, whoever else saves the same, on whatever machine. */
void site_store_save(struct site_store *s, const struct site_key *key, const struct sites *sites)
{
	char name[sizeof(NEW_PREFIX) + 2 * 8] = NEW_PREFIX;
	struct buf b = { 0 };
	uint8_t some[8];
	bool done;
	int fd;

	if (!key->text[0] || sites->is_blind || getrandom(some, sizeof(some), 0) != sizeof(some))
		return;
	if (s->nr_entries >= ENTRIES_MAX) {
		(void)count_entries(s->fd, true);
		s->nr_entries = 0;
	}
	put_hex(name + strlen(NEW_PREFIX), some, sizeof(some));
	fd = openat(s->fd, name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
	if (fd < 0)
		return;
	s->nr_entries += faccessat(s->fd, key->text, F_OK, AT_SYMLINK_NOFOLLOW) != 0;
	site_store_print(key, sites, &b);
	done = !write_full(fd, b.data, b.len);
	done &= !close(fd);
	if (!done || renameat(s->fd, name, s->fd, key->text))
		(void)unlinkat(s->fd, name, 0); /* it is no use */
	buf_release(&b);
}
