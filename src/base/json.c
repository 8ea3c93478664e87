/* SPDX-License-Identifier: MIT */
#include "base/json.h"

#include <assert.h>
#include <inttypes.h>
#include <math.h>

#include "base/banned.h"
#include "base/strings.h"

/* A stream gets its bytes in pieces of about this size. */
#define FLUSH_BYTES ((size_t)32 << 10)

void json_init_buf(struct json *w, struct buf *b, enum json_layout layout)
{
	*w = (struct json){ .to = b, .layout = layout };
}

/*
 * A writer to a stream has no `to`: its own buffer moves along when the struct
 * does.
 */
void json_init_file(struct json *w, FILE *f, enum json_layout layout)
{
	*w = (struct json){ .file = f, .layout = layout };
}

static struct buf *out(struct json *w)
{
	return w->to ? w->to : &w->own;
}

static void flush(struct json *w)
{
	if (!w->file || !w->own.len)
		return;
	/* A stream remembers that it failed; its owner asks it at the end. */
	(void)!fwrite(w->own.data, 1, w->own.len, w->file);
	buf_clear(&w->own);
}

void json_release(struct json *w)
{
	assert(w->depth == 0 && !w->after_key);
	flush(w);
	buf_release(&w->own);
	*w = (struct json){ 0 };
}

static uint64_t top_bit(const struct json *w)
{
	assert(w->depth > 0);
	return UINT64_C(1) << (w->depth - 1);
}

static void newline(struct json *w)
{
	unsigned int i;

	if (w->layout != JSON_PRETTY)
		return;
	buf_putc(out(w), '\n');
	for (i = 0; i < w->depth; i++)
		buf_put(out(w), "  ", 2);
}

/*
 * What stands between the item before and the next one of the same container.
 */
static void separate(struct json *w)
{
	if (w->has_items & top_bit(w))
		buf_putc(out(w), ',');
	w->has_items |= top_bit(w);
	newline(w);
}

static void before_value(struct json *w)
{
	if (w->depth == 0)
		return;
	if (w->is_object & top_bit(w)) {
		assert(w->after_key);
		w->after_key = false;
	} else {
		separate(w);
	}
}

static void after_value(struct json *w)
{
	if (w->depth == 0)
		buf_putc(out(w), '\n');
	if (w->file && (w->depth == 0 || w->own.len >= FLUSH_BYTES))
		flush(w);
}

static void begin(struct json *w, bool is_object)
{
	before_value(w);
	assert(w->depth < JSON_DEPTH_MAX);
	w->depth++;
	w->has_items &= ~top_bit(w);
	if (is_object)
		w->is_object |= top_bit(w);
	else
		w->is_object &= ~top_bit(w);
	buf_putc(out(w), is_object ? '{' : '[');
}

static void end(struct json *w, bool is_object)
{
	bool had_items;

	assert(w->depth > 0 && !w->after_key);
	assert(!!(w->is_object & top_bit(w)) == is_object);
	had_items = w->has_items & top_bit(w);
	w->depth--;
	if (had_items)
		newline(w);
	buf_putc(out(w), is_object ? '}' : ']');
	after_value(w);
}

void json_object_begin(struct json *w)
{
	begin(w, true);
}

void json_object_end(struct json *w)
{
	end(w, true);
}

void json_array_begin(struct json *w)
{
	begin(w, false);
}

void json_array_end(struct json *w)
{
	end(w, false);
}

/*
 * Quote, backslash and the control characters cannot stand for themselves; DEL
 * and C1 could, but would command a terminal.
 */
static bool needs_escape(uint8_t c)
{
	return c < 0x20 || c == 0x7f || c == '"' || c == '\\';
}

static void put_escaped(struct buf *b, uint8_t c)
{
	static const char letters[] = { ['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f',
					['\r'] = 'r', ['"'] = '"',  ['\\'] = '\\' };

	if (c < sizeof(letters) && letters[c])
		buf_printf(b, "\\%c", letters[c]);
	else
		buf_printf(b, "\\u%04x", c);
}

enum bad_byte {
	BAD_IS_REPLACED, /* by U+FFFD */
	ALL_ARE_LATIN1,
};

static void put_beyond_ascii(struct buf *b, const uint8_t **pos, const uint8_t *limit,
			     enum bad_byte bad)
{
	size_t n = 0;

	if (bad == ALL_ARE_LATIN1) {
		uint8_t c = *(*pos)++;

		if (c < 0xa0) {
			put_escaped(b, c);
			return;
		}
		buf_putc(b, (char)(0xc0 | c >> 6));
		buf_putc(b, (char)(0x80 | (c & 0x3f)));
		return;
	}
	n = strings_utf8_sequence(*pos, (size_t)(limit - *pos));
	if (n == 2 && (*pos)[0] == 0xc2 && (*pos)[1] < 0xa0)
		put_escaped(b, (*pos)[1]);
	else if (n)
		buf_put(b, *pos, n);
	else
		buf_put(b, "\xef\xbf\xbd", 3);
	*pos += n ? n : 1;
}

static void put_quoted(struct json *w, const void *p, size_t len, enum bad_byte bad)
{
	struct buf *b = out(w);
	const uint8_t *pos = p, *limit = pos + len;

	buf_putc(b, '"');
	while (pos < limit) {
		const uint8_t *plain = pos;

		while (pos < limit && *pos < 0x80 && !needs_escape(*pos))
			pos++;
		buf_put(b, plain, (size_t)(pos - plain));
		if (pos == limit)
			break;
		if (*pos < 0x80)
			put_escaped(b, *pos++);
		else
			put_beyond_ascii(b, &pos, limit, bad);
	}
	buf_putc(b, '"');
}

static void put_colon(struct json *w)
{
	buf_putc(out(w), ':');
	if (w->layout == JSON_PRETTY)
		buf_putc(out(w), ' ');
	w->after_key = true;
}

void json_key(struct json *w, const char *key)
{
	assert(w->depth > 0 && (w->is_object & top_bit(w)) && !w->after_key);
	separate(w);
	put_quoted(w, key, strlen(key), BAD_IS_REPLACED);
	put_colon(w);
}

void json_u64(struct json *w, uint64_t v)
{
	before_value(w);
	buf_printf(out(w), "%" PRIu64, v);
	after_value(w);
}

void json_i64(struct json *w, int64_t v)
{
	before_value(w);
	buf_printf(out(w), "%" PRId64, v);
	after_value(w);
}

void json_double(struct json *w, double v)
{
	char text[32];
	int digits;

	before_value(w);
	if (!isfinite(v)) {
		buf_puts(out(w), "null");
	} else {
		/*
		 * The shortest that reads back as the same number; 17 digits
		 * always do.
		 */
		for (digits = 15; digits <= 17; digits++) {
			(void)snprintf(text, sizeof(text), "%.*g", digits, v);
			if (strtod(text, NULL) == v)
				break;
		}
		buf_puts(out(w), text);
	}
	after_value(w);
}

void json_bool(struct json *w, bool v)
{
	before_value(w);
	buf_puts(out(w), v ? "true" : "false");
	after_value(w);
}

void json_null(struct json *w)
{
	before_value(w);
	buf_puts(out(w), "null");
	after_value(w);
}

void json_str(struct json *w, const void *p, size_t len)
{
	before_value(w);
	put_quoted(w, p, len, BAD_IS_REPLACED);
	after_value(w);
}

bool json_bytes(struct json *w, const void *p, size_t len)
{
	bool is_utf8 = strings_is_utf8(p, len);

	before_value(w);
	put_quoted(w, p, len, is_utf8 ? BAD_IS_REPLACED : ALL_ARE_LATIN1);
	after_value(w);
	return is_utf8;
}

void json_kv_u64(struct json *w, const char *key, uint64_t v)
{
	json_key(w, key);
	json_u64(w, v);
}

void json_kv_i64(struct json *w, const char *key, int64_t v)
{
	json_key(w, key);
	json_i64(w, v);
}

void json_kv_double(struct json *w, const char *key, double v)
{
	json_key(w, key);
	json_double(w, v);
}

void json_kv_bool(struct json *w, const char *key, bool v)
{
	json_key(w, key);
	json_bool(w, v);
}

void json_kv_str(struct json *w, const char *key, const char *s)
{
	json_key(w, key);
	if (s)
		json_str(w, s, strlen(s));
	else
		json_null(w);
}

void json_kv_bytes(struct json *w, const char *key, const void *p, size_t len)
{
	json_key(w, key);
	if (json_bytes(w, p, len))
		return;
	separate(w);
	put_quoted(w, key, strlen(key), BAD_IS_REPLACED);
	out(w)->len--; /* the key's closing quote: the name goes on */
	buf_puts(out(w), "_encoding\"");
	put_colon(w);
	json_str(w, "latin-1", strlen("latin-1"));
}
