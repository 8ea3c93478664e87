/* SPDX-License-Identifier: MIT */
#include "forge.h"

#include <stdlib.h>
#include <string.h>

#include "base/banned.h"
#include "base/varint.h"
#include "model/schema.h"
#include "scratch.h"

void forge_init(struct forge *f)
{
	uint8_t payload[FILE_PAYLOAD_BYTES] = "reprise trace\n";

	*f = (struct forge){ .packer = block_packer_new() };
	put_le32(payload + 16, TRACE_FORMAT_VERSION);
	forge_block(f, BLOCK_FILE, 0, payload, sizeof(payload), 0);
}

void forge_init_with_schema(struct forge *f)
{
	struct schema *s = schema_new();
	struct buf text = { 0 };

	forge_init(f);
	schema_print(s, &text);
	forge_block(f, BLOCK_SCHEMA, 0, text.data, text.len, 1);
	buf_release(&text);
	schema_free(s);
}

static void mark_structs(const struct schema *s, const struct wire_list *l, bool *needed)
{
	unsigned int i;

	for (i = 0; i < l->nr_wires; i++) {
		const struct wire *w = &l->wires[i];

		if (w->type != 's' && w->elem != 's')
			continue;
		needed[w->struct_no] = true;
		mark_structs(s, &s->structs[w->struct_no].fields, needed);
	}
}

void forge_schema(struct forge *f, const uint16_t *rows, size_t nr_rows)
{
	bool needed[STRUCT_MAX] = { false };
	struct schema *s = schema_new();
	struct buf text = { 0 };
	unsigned int id, i;

	for (id = 0; id < ROW_ID_MAX; id++) {
		for (i = 0; i < nr_rows && rows[i] != id; i++)
			;
		if (i < nr_rows)
			mark_structs(s, &s->rows[id].args, needed);
		else
			s->rows[id].row = NULL;
	}
	for (i = 0; i < STRUCT_MAX; i++) {
		if (!needed[i])
			s->structs[i].name[0] = 0; /* not printed: nothing we know by name */
	}
	schema_print(s, &text);
	schema_free(s);
	forge_block(f, BLOCK_SCHEMA, 0, text.data, text.len, 1);
	buf_release(&text);
}

void forge_release(struct forge *f)
{
	block_packer_free(f->packer);
	buf_release(&f->file);
	VEC_RELEASE(&f->entries);
}

static struct block_entry *add_block(struct forge *f, uint8_t type, uint64_t number,
				     const void *payload, size_t len, int level)
{
	struct block_header h = { .type = type, .version = 1, .number = number };
	struct block_entry e = { .type = type, .number = number, .offset = f->file.len };

	block_pack(f->packer, h, payload, len, level, &f->file);
	e.stored_bytes = (uint32_t)(f->file.len - e.offset - BLOCK_HEADER_BYTES);
	VEC_PUSH(&f->entries, e);
	return &f->entries.items[f->entries.len - 1];
}

void forge_block(struct forge *f, uint8_t type, uint64_t number, const void *payload, size_t len,
		 int level)
{
	(void)add_block(f, type, number, payload, len, level);
}

void forge_events(struct forge *f, uint64_t stream, const struct events_prefix *prefix,
		  const struct buf *events)
{
	struct buf payload = { 0 };
	struct block_entry *e;

	events_prefix_put(buf_reserve(&payload, EVENTS_PREFIX_BYTES), prefix);
	payload.len = EVENTS_PREFIX_BYTES;
	buf_put(&payload, events->data, events->len);
	e = add_block(f, BLOCK_EVENTS, stream, payload.data, payload.len, 0);
	e->pid = prefix->pid;
	e->tid = prefix->tid;
	e->nr_events = prefix->nr_events;
	e->first_index = prefix->first_index;
	e->first_ns = prefix->first_ns;
	e->last_ns = prefix->last_ns;
	buf_release(&payload);
}

void forge_copy(struct forge *f, const struct block_entry *e, const uint8_t *file)
{
	struct block_entry moved = *e;

	moved.offset = f->file.len;
	buf_put(&f->file, file + e->offset, BLOCK_HEADER_BYTES + e->stored_bytes);
	VEC_PUSH(&f->entries, moved);
}

static uint64_t count_events(const struct forge *f)
{
	uint64_t sum = 0;
	size_t i;

	for (i = 0; i < f->entries.len; i++) {
		if (f->entries.items[i].type == BLOCK_EVENTS)
			sum += f->entries.items[i].nr_events;
	}
	return sum;
}

void forge_close(struct forge *f)
{
	struct footer footer = f->counts;
	size_t i, len = INDEX_PREFIX_BYTES + f->entries.len * INDEX_ENTRY_BYTES;
	uint8_t payload[FOOTER_PAYLOAD_BYTES];
	uint8_t *index = xcalloc(1, len);

	footer.nr_blocks = f->entries.len;
	footer.nr_events = count_events(f);
	put_le64(index, f->last_index_offset);
	put_le64(index + 8, f->entries.len);
	for (i = 0; i < f->entries.len; i++)
		block_entry_put(index + INDEX_PREFIX_BYTES + i * INDEX_ENTRY_BYTES,
				&f->entries.items[i]);
	footer.index_offset = f->last_index_offset = f->file.len;
	forge_block(f, BLOCK_INDEX, 0, index, len, 1);
	footer.own_offset = f->file.len;
	footer_put(payload, &footer);
	forge_block(f, BLOCK_FOOTER, 0, payload, sizeof(payload), 0);
	f->entries.len -= 2;
	free(index);
}

void forge_save(const struct forge *f, const char *path)
{
	scratch_write(path, f->file.data, f->file.len);
}

void forge_put_u(struct buf *b, uint64_t u)
{
	uint8_t *p = buf_reserve(b, VARINT_MAX);

	b->len += (size_t)(put_uvarint(p, u) - p);
}

void forge_put_i(struct buf *b, int64_t i)
{
	forge_put_u(b, zigzag(i));
}

void forge_put_inline(struct buf *b, const char *s)
{
	forge_put_u(b, 2);
	forge_put_u(b, strlen(s));
	buf_puts(b, s);
}

void forge_put_body(struct buf *b, const struct buf *body)
{
	forge_put_u(b, body->len);
	buf_put(b, body->data, body->len);
}

void forge_put_head(struct buf *body, unsigned int row_id, int64_t ret)
{
	forge_put_u(body, 0); /* parts */
	forge_put_u(body, row_id);
	forge_put_i(body, 10);
	forge_put_i(body, 1);
	forge_put_i(body, ret);
	forge_put_u(body, 0); /* missing */
}
