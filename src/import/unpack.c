/* SPDX-License-Identifier: MIT */
/*
 * Packed inputs. One source serves all ways of packing; each way is a row of
 * `unpackers`: how its streams begin, and a decoder. A file may hold several
 * packed streams one after the other, as `cat a.gz b.gz` makes it, and zeros
 * behind them.
 */
#include <errno.h>
#include <lzma.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <zlib.h>
#include <zstd.h>

#include "base/banned.h"
#include "base/mem.h"
#include "import/source.h"

#define IN_BYTES ((size_t)128 << 10)
/* What a stream may make a decoder hold: xz -9 needs 65 MiB, zstd --long=27 128 MiB. */
#define DECODER_MEMORY_MAX ((uint64_t)256 << 20)
#define ZSTD_WINDOW_LOG_MAX 27

struct unpack_io {
	const uint8_t *in;
	size_t in_len;
	uint8_t *out;
	size_t out_len;
};

struct unpacker {
	const char *name;
	uint8_t magic[IMPORT_MAGIC_BYTES];
	size_t magic_bytes;
	/* A decoder for one packed stream; NULL when there is no memory for it. */
	void *(*begin)(void);
	void (*end)(void *decoder);
	/*
	 * Takes from `in` and gives to `out` what it can: 1 when the packed stream
	 * ended, 0 when it goes on, -EBADMSG when it is damaged.
	 */
	int (*step)(void *decoder, struct unpack_io *io);
};

/* gzip */

static void *gzip_begin(void)
{
	z_stream *z = xcalloc(1, sizeof(*z));

	if (inflateInit2(z, 15 + 16) == Z_OK) /* 16: with the header of gzip, not of zlib */
		return z;
	free(z);
	return NULL;
}

static void gzip_end(void *decoder)
{
	(void)inflateEnd(decoder); /* nothing to be learnt any more */
	free(decoder);
}

static int gzip_step(void *decoder, struct unpack_io *io)
{
	uInt in_len = io->in_len < UINT32_MAX ? (uInt)io->in_len : UINT32_MAX;
	uInt out_len = io->out_len < UINT32_MAX ? (uInt)io->out_len : UINT32_MAX;
	z_stream *z = decoder;
	int r;

	z->next_in = (Bytef *)io->in;
	z->avail_in = in_len;
	z->next_out = io->out;
	z->avail_out = out_len;
	r = inflate(z, Z_NO_FLUSH);
	io->in += in_len - z->avail_in;
	io->in_len -= in_len - z->avail_in;
	io->out += out_len - z->avail_out;
	io->out_len -= out_len - z->avail_out;
	if (r == Z_STREAM_END)
		return 1;
	return r == Z_OK || r == Z_BUF_ERROR ? 0 : -EBADMSG;
}

/* zstd */

static void *zstd_begin(void)
{
	ZSTD_DCtx *d = ZSTD_createDCtx();

	if (d &&
	    ZSTD_isError(ZSTD_DCtx_setParameter(d, ZSTD_d_windowLogMax, ZSTD_WINDOW_LOG_MAX))) {
		(void)ZSTD_freeDCtx(d);
		return NULL;
	}
	return d;
}

static void zstd_end(void *decoder)
{
	(void)ZSTD_freeDCtx(decoder);
}

static int zstd_step(void *decoder, struct unpack_io *io)
{
	ZSTD_inBuffer in = { .src = io->in, .size = io->in_len };
	ZSTD_outBuffer out = { .dst = io->out, .size = io->out_len };
	size_t r = ZSTD_decompressStream(decoder, &out, &in);

	io->in += in.pos;
	io->in_len -= in.pos;
	io->out += out.pos;
	io->out_len -= out.pos;
	if (ZSTD_isError(r))
		return -EBADMSG;
	return r == 0;
}

/* xz */

static void *xz_begin(void)
{
	lzma_stream *x = xcalloc(1, sizeof(*x));

	*x = (lzma_stream)LZMA_STREAM_INIT;
	if (lzma_stream_decoder(x, DECODER_MEMORY_MAX, 0) == LZMA_OK)
		return x;
	free(x);
	return NULL;
}

static void xz_end(void *decoder)
{
	lzma_end(decoder);
	free(decoder);
}

static int xz_step(void *decoder, struct unpack_io *io)
{
	lzma_stream *x = decoder;
	lzma_ret r;

	x->next_in = io->in;
	x->avail_in = io->in_len;
	x->next_out = io->out;
	x->avail_out = io->out_len;
	r = lzma_code(x, LZMA_RUN);
	io->in = x->next_in;
	io->in_len = x->avail_in;
	io->out = x->next_out;
	io->out_len = x->avail_out;
	if (r == LZMA_STREAM_END)
		return 1;
	return r == LZMA_OK || r == LZMA_BUF_ERROR ? 0 : -EBADMSG;
}

static const struct unpacker unpackers[] = {
	{ "gzip", { 0x1f, 0x8b, 0x08 }, 3, gzip_begin, gzip_end, gzip_step },
	{ "zstd", { 0x28, 0xb5, 0x2f, 0xfd }, 4, zstd_begin, zstd_end, zstd_step },
	{ "xz", { 0xfd, '7', 'z', 'X', 'Z', 0 }, 6, xz_begin, xz_end, xz_step },
};

/* The source. */

struct packed_source {
	struct import_source source;
	struct import_source *inner;
	const struct unpacker *way;
	void *decoder; /* NULL: between two packed streams */
	uint8_t *in;
	size_t pos, len; /* of the bytes in `in` that were not taken yet */
	bool ended; /* inner has no more */
};

static int read_packed(struct packed_source *p, struct err *err)
{
	ssize_t n = p->inner->read(p->inner, p->in, IN_BYTES, err);

	if (n < 0)
		return (int)n;
	p->pos = 0;
	p->len = (size_t)n;
	p->ended = !n;
	return 0;
}

/* Whether another packed stream follows: 1, and its decoder is ready, or 0. */
static int begin_next(struct packed_source *p, struct err *err)
{
	while (p->pos == p->len || !p->in[p->pos]) {
		int r = 0;

		if (p->pos < p->len)
			p->pos++;
		else
			r = read_packed(p, err);
		if (r < 0)
			return r;
		if (p->ended)
			return 0;
	}
	p->decoder = p->way->begin();
	return p->decoder ? 1 : err_set(err, -ENOMEM, "cannot unpack %s", p->way->name);
}

static int unpack_step(struct packed_source *p, struct unpack_io *io, struct err *err)
{
	int r = p->way->step(p->decoder, io);

	p->pos = p->len - io->in_len;
	if (r < 0)
		return err_set(err, -EBADMSG, "the %s data is damaged, or needs too much memory",
			       p->way->name);
	if (r) {
		p->way->end(p->decoder);
		p->decoder = NULL;
	}
	return 0;
}

static ssize_t packed_read(struct import_source *s, void *out, size_t len, struct err *err)
{
	struct packed_source *p = (struct packed_source *)s;
	struct unpack_io io = { .out = out, .out_len = len };
	bool starved = false; /* a decoder may hold output when all input is taken */
	int r;

	while (io.out_len == len) {
		if (!p->decoder) {
			r = begin_next(p, err);
			if (r <= 0)
				return r;
		}
		if (starved) {
			r = read_packed(p, err);
			if (r < 0)
				return r;
			if (p->ended)
				return err_set(err, -EBADMSG, "the %s data ends too early",
					       p->way->name);
		}
		io.in = p->in + p->pos;
		io.in_len = p->len - p->pos;
		r = unpack_step(p, &io, err);
		if (r < 0)
			return r;
		starved = p->decoder && io.out_len == len && !io.in_len;
	}
	return (ssize_t)(len - io.out_len);
}

static void packed_close(struct import_source *s)
{
	struct packed_source *p = (struct packed_source *)s;

	if (p->decoder)
		p->way->end(p->decoder);
	p->inner->close(p->inner);
	free(p->in);
	free(p);
}

static const struct unpacker *find_unpacker(const uint8_t *first, size_t len)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(unpackers); i++) {
		if (len >= unpackers[i].magic_bytes &&
		    !memcmp(first, unpackers[i].magic, unpackers[i].magic_bytes))
			return &unpackers[i];
	}
	return NULL;
}

int import_source_unpack(struct import_source *inner, const uint8_t *first, size_t len,
			 struct import_source **ret, struct err *err)
{
	const struct unpacker *way = find_unpacker(first, len);
	struct packed_source *p;
	void *decoder;

	*ret = NULL;
	if (!way)
		return 0;
	decoder = way->begin();
	if (!decoder)
		return err_set(err, -ENOMEM, "cannot unpack %s", way->name);
	p = xcalloc(1, sizeof(*p));
	p->source = (struct import_source){ .read = packed_read, .close = packed_close };
	p->inner = inner;
	p->way = way;
	p->decoder = decoder;
	p->in = xmalloc(IN_BYTES);
	memcpy(p->in, first, len);
	p->len = len;
	*ret = &p->source;
	return 0;
}
