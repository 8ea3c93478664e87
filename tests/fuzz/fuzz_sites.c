/* SPDX-License-Identifier: MIT */
/*
 * Places of calls: in an ELF file of foreign origin, what is found there can be stored and read
 * again; or, behind the letter 'S', in a stored file, whose checksum is put right.
 */
#include "fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "base/varint.h"
#include "record/agent/site_store.h"

static bool are_equal(const struct sites *a, const struct sites *b)
{
	size_t i;

	if (a->list.len != b->list.len || a->nr_left != b->nr_left)
		return false;
	for (i = 0; i < a->list.len; i++) {
		const struct site *x = &a->list.items[i], *y = &b->list.items[i];

		if (x->window != y->window || x->syscall != y->syscall || x->nr != y->nr ||
		    x->nr_insns != y->nr_insns || x->pad_bytes != y->pad_bytes ||
		    x->used != y->used || memcmp(x->bytes, y->bytes, x->window_bytes) != 0 ||
		    memcmp(x->insns, y->insns, x->nr_insns * sizeof(*x->insns)) != 0)
			return false;
	}
	return true;
}

static const struct site_key key = { "ab-1-2" };

static void store_and_load(const struct sites *s)
{
	struct sites again;
	struct buf b = { 0 };

	site_store_print(&key, s, &b);
	if (!site_store_parse(&key, b.data, b.len, &again) || !are_equal(s, &again))
		abort();
	sites_release(&again);
	buf_release(&b);
}

static void make_stubs(const struct sites *s)
{
	uint8_t stub[SITE_STUB_MAX_BYTES];
	size_t i;

	for (i = 0; i < s->list.len; i++)
		(void)site_put_stub(&s->list.items[i],
				    UINT64_C(0x400000) + s->list.items[i].syscall, 0x10000,
				    0x70000000, stub);
}

static void parse_stored(const uint8_t *data, size_t size)
{
	uint8_t *p = malloc(size + 8);
	struct sites s;

	if (!p)
		return;
	memcpy(p, data, size);
	put_le64(p + size, XXH3_64bits(p, size) ^ XXH3_64bits(key.text, strlen(key.text)));
	if (site_store_parse(&key, p, size + 8, &s)) {
		make_stubs(&s);
		store_and_load(&s);
		sites_release(&s);
	}
	free(p);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	struct sites s;

	if (size && data[0] == 'S') {
		parse_stored(data + 1, size - 1);
		return 0;
	}
	sites_find(data, size, &s);
	make_stubs(&s);
	store_and_load(&s);
	sites_release(&s);
	return 0;
}
