/* SPDX-License-Identifier: MIT */
/*
 * A file that is looked through may be cut or written meanwhile: a mapping of it would change, or
 * end in a SIGBUS. So it is read, once, into memory of our own, each part at its place. Parts that
 * no loader maps are left empty: a file may have much more of debug information than of text.
 */
#include <elf.h>
#include <string.h>
#include <sys/mman.h>

#include "base/io.h"
#include "record/agent/sites.h"

#define PAGE_BYTES UINT64_C(4096)

struct file_copy {
	int fd;
	uint8_t *bytes;
	size_t len;
};

/* With what else is on its pages, as far as there is any. False: less of it could be read. */
static bool read_part(const struct file_copy *f, uint64_t from, uint64_t len)
{
	uint64_t to;

	if (from > f->len || len > f->len - from)
		return true; /* which no loader maps */
	to = (from + len + PAGE_BYTES - 1) / PAGE_BYTES * PAGE_BYTES;
	from = from / PAGE_BYTES * PAGE_BYTES;
	to = to < f->len ? to : f->len;
	return pread_full(f->fd, f->bytes + from, to - from, from) == (ssize_t)(to - from);
}

static bool read_parts(const struct file_copy *f)
{
	Elf64_Ehdr e;
	Elf64_Phdr ph;
	unsigned int i;

	if (f->len < sizeof(e) || !read_part(f, 0, sizeof(e)))
		return false;
	memcpy(&e, f->bytes, sizeof(e));
	if (memcmp(e.e_ident, ELFMAG, SELFMAG) || e.e_ident[EI_CLASS] != ELFCLASS64 ||
	    e.e_phentsize != sizeof(ph) || e.e_phoff > f->len ||
	    (f->len - e.e_phoff) / sizeof(ph) < e.e_phnum)
		return read_part(f, 0, f->len);
	if (!read_part(f, e.e_phoff, e.e_phnum * sizeof(ph)))
		return false;
	for (i = 0; i < e.e_phnum; i++) {
		memcpy(&ph, f->bytes + e.e_phoff + i * sizeof(ph), sizeof(ph));
		if (ph.p_type == PT_LOAD && !read_part(f, ph.p_offset, ph.p_filesz))
			return false;
	}
	return true;
}

bool sites_find_in_file(int fd, size_t len, struct sites *ret)
{
	struct file_copy f = { .fd = fd, .len = len };
	bool done;
	void *p = mmap(NULL, len, PROT_READ | PROT_WRITE,
		       MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);

	if (p == MAP_FAILED)
		return false;
	f.bytes = p;
	done = read_parts(&f);
	if (done)
		sites_find(f.bytes, len, ret);
	(void)munmap(p, len);
	return done;
}
