/* SPDX-License-Identifier: MIT */
#include "model/schema.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "base/map.h"
#include "base/mem.h"

/* Far above what the table needs; a hostile schema cannot make us allocate more. */
#define STRUCTS_MAX 4096
#define NAME_MAX_BYTES 64

static const char *const sort_names[] = {
	[ROW_CALL] = "call",
	[ROW_EVENT] = "event",
	[ROW_RECORD] = "record",
};

static char elem_wire(const struct arg *a)
{
	if (kind_infos[a->kind].wire != 'l')
		return 0;
	return a->elem ? kind_infos[a->elem].wire : 's';
}

static struct wire wire_of_arg(const struct arg *a, unsigned int position)
{
	return (struct wire){
		.type = kind_infos[a->kind].wire,
		.elem = elem_wire(a),
		.position = (uint8_t)position,
		.struct_no = a->struct_id,
	};
}

static struct wire_list wires_of_args(const struct arg *args, unsigned int nr)
{
	struct wire_list l = { .wires = xcalloc(nr, sizeof(struct wire)) };
	unsigned int i;

	for (i = 0; i < nr; i++) {
		if (args[i].kind != KIND_HOLE)
			l.wires[l.nr_wires++] = wire_of_arg(&args[i], i);
	}
	return l;
}

static struct schema *schema_alloc(void)
{
	struct schema *s = xcalloc(1, sizeof(*s));

	s->rows = xcalloc(ROW_ID_MAX, sizeof(*s->rows));
	return s;
}

struct schema *schema_new(void)
{
	struct schema *s = schema_alloc();
	unsigned int i;

	s->nr_structs = STRUCT_MAX;
	s->structs = xcalloc(STRUCT_MAX, sizeof(*s->structs));
	for (i = 0; i < STRUCT_MAX; i++) {
		const struct struct_desc *d = &struct_descs[i];

		s->structs[i].name = xstrdup(d->name);
		s->structs[i].fields = wires_of_args(d->fields, d->nr_fields);
	}
	for (i = 0; i < ROW_ID_MAX; i++) {
		const struct row *row = row_by_id(i);

		if (row) {
			s->rows[i].row = row;
			s->rows[i].args = wires_of_args(row->args, row->nr_args);
		}
	}
	return s;
}

static void row_release(struct schema_row *r)
{
	unsigned int i;

	free(r->args.wires);
	if (!r->made)
		return;
	for (i = 0; i < r->made->nr_args; i++)
		free((char *)r->made_args[i].name);
	free((char *)r->made->name);
	free(r->made_args);
	free(r->made);
}

void schema_free(struct schema *s)
{
	size_t i;

	if (!s)
		return;
	for (i = 0; i < ROW_ID_MAX; i++)
		row_release(&s->rows[i]);
	for (i = 0; i < s->nr_structs; i++) {
		free(s->structs[i].name);
		free(s->structs[i].fields.wires);
	}
	free(s->structs);
	free(s->rows);
	free(s);
}

/* Printing. */

/* There are thousands, and every recording starts with them: no printf. */
static void put_number(struct buf *out, unsigned int n)
{
	if (n >= 10)
		put_number(out, n / 10);
	buf_putc(out, (char)('0' + n % 10));
}

static void print_slot(const struct schema *s, const struct wire *w, const struct arg *a,
		       struct buf *out)
{
	bool of_structs = w->type == 's' || (w->type == 'l' && w->elem == 's');

	buf_putc(out, ' ');
	buf_putc(out, w->type);
	if (of_structs || w->type == 'l') {
		buf_putc(out, '(');
		if (of_structs)
			buf_puts(out, s->structs[w->struct_no].name);
		else
			buf_putc(out, w->elem);
		buf_putc(out, ')');
	}
	buf_putc(out, ':');
	buf_puts(out, a->name);
	buf_putc(out, ':');
	buf_puts(out, kind_infos[a->kind].name);
}

static void print_slots(const struct schema *s, const struct wire_list *l, const struct arg *args,
			struct buf *out)
{
	unsigned int i;

	for (i = 0; i < l->nr_wires; i++) {
		if (l->wires[i].position != WIRE_UNKNOWN)
			print_slot(s, &l->wires[i], &args[l->wires[i].position], out);
	}
	buf_putc(out, '\n');
}

static const struct struct_desc *known_struct(const char *name)
{
	unsigned int i;

	for (i = 1; i < STRUCT_MAX; i++) {
		if (!strcmp(struct_descs[i].name, name))
			return &struct_descs[i];
	}
	return NULL;
}

void schema_print(const struct schema *s, struct buf *out)
{
	size_t i;

	for (i = 0; i < s->nr_structs; i++) {
		const struct struct_desc *d = known_struct(s->structs[i].name);

		if (!d)
			continue;
		buf_puts(out, "struct ");
		buf_puts(out, d->name);
		print_slots(s, &s->structs[i].fields, d->fields, out);
	}
	for (i = 0; i < ROW_ID_MAX; i++) {
		const struct row *row = s->rows[i].row;

		if (!row)
			continue;
		buf_puts(out, sort_names[row->sort]);
		buf_putc(out, ' ');
		put_number(out, row->id);
		buf_putc(out, ' ');
		buf_puts(out, row->name);
		print_slots(s, &s->rows[i].args, row->args, out);
	}
}

/* Parsing. */

struct word {
	const char *text;
	size_t len;
};

struct parser {
	struct schema *schema;
	struct map struct_nos; /* by name: the number of a struct in the schema, plus one */
	const char *line, *line_end; /* the rest of the current line */
	unsigned int line_no;
	struct err *err;
};

static bool next_word(struct parser *p, struct word *ret)
{
	const char *s = p->line;

	while (s < p->line_end && *s == ' ')
		s++;
	ret->text = s;
	while (s < p->line_end && *s != ' ')
		s++;
	ret->len = (size_t)(s - ret->text);
	p->line = s;
	return ret->len > 0;
}

static int malformed(struct parser *p, const char *what)
{
	return err_set(p->err, -EBADMSG, "schema line %u: %s", p->line_no, what);
}

static bool word_is(const struct word *w, const char *s)
{
	return strlen(s) == w->len && !memcmp(w->text, s, w->len);
}

static bool good_name(const struct word *w)
{
	size_t i;

	if (!w->len || w->len > NAME_MAX_BYTES)
		return false;
	for (i = 0; i < w->len; i++) {
		char c = w->text[i];

		if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		      c == '_'))
			return false;
	}
	return true;
}

/* The text may hold any byte, also the NUL that strchr() finds at the end of every set. */
static bool is_one_of(char c, const char *set)
{
	return c && strchr(set, c);
}

/* Cuts a word in front of a separator. */
static bool split(struct word *w, char sep, struct word *ret)
{
	const char *at = memchr(w->text, sep, w->len);

	if (!at)
		return false;
	*ret = (struct word){ w->text, (size_t)(at - w->text) };
	w->len -= (size_t)(at + 1 - w->text);
	w->text = at + 1;
	return true;
}

struct slot {
	struct wire wire;
	struct word name, kind;
};

static bool find_struct(const struct parser *p, const struct word *name, uint16_t *ret)
{
	uintptr_t found = (uintptr_t)map_get(&p->struct_nos, name->text, name->len);

	if (!found)
		return false;
	*ret = (uint16_t)(found - 1);
	return true;
}

static int parse_inner(struct parser *p, struct word inner, struct slot *slot)
{
	if (inner.len < 3 || inner.text[0] != '(' || inner.text[inner.len - 1] != ')')
		return malformed(p, "bad type");
	inner.text++;
	inner.len -= 2;
	if (slot->wire.type == 'l' && inner.len == 1 && is_one_of(inner.text[0], "uid")) {
		slot->wire.elem = inner.text[0];
		return 0;
	}
	if (slot->wire.type == 'l')
		slot->wire.elem = 's';
	/* Only earlier structs: so no struct can contain itself. */
	if (!find_struct(p, &inner, &slot->wire.struct_no))
		return malformed(p, "struct used before it is described");
	return 0;
}

/* A slot is TYPE:NAME:KIND, TYPE is u, i, d, s(STRUCT) or l(STRUCT or u, i, d). */
static int parse_slot(struct parser *p, struct word w, struct slot *ret)
{
	struct word type;

	*ret = (struct slot){ 0 };
	if (!split(&w, ':', &type) || !split(&w, ':', &ret->name))
		return malformed(p, "bad argument");
	ret->kind = w;
	if (!good_name(&ret->name) || !good_name(&ret->kind) || !type.len)
		return malformed(p, "bad name");
	ret->wire.type = type.text[0];
	if (type.len == 1 && is_one_of(type.text[0], "uid"))
		return 0;
	if (!is_one_of(type.text[0], "sl"))
		return malformed(p, "unknown type");
	return parse_inner(p, (struct word){ type.text + 1, type.len - 1 }, ret);
}

static bool same_type(const struct schema *s, const struct wire *w, const struct arg *a)
{
	const struct wire ours = wire_of_arg(a, 0);

	if (w->type != ours.type || w->elem != ours.elem)
		return false;
	if (w->type != 's' && w->elem != 's')
		return true;
	return !strcmp(s->structs[w->struct_no].name, struct_descs[a->struct_id].name);
}

/* Which of our arguments the n-th stored one is: ours in order, holes left out. */
static const struct arg *stored_arg(const struct arg *args, unsigned int nr, unsigned int n,
				    uint8_t *position)
{
	unsigned int i;

	for (i = 0; i < nr; i++) {
		if (args[i].kind == KIND_HOLE)
			continue;
		if (!n--) {
			*position = (uint8_t)i;
			return &args[i];
		}
	}
	return NULL;
}

static int parse_known_slots(struct parser *p, const struct arg *args, unsigned int nr,
			     unsigned int max, struct wire_list *ret)
{
	struct wire_list l = { .wires = xcalloc(max, sizeof(struct wire)) };
	struct word w;
	int r = 0;

	while (next_word(p, &w)) {
		const struct arg *a;
		struct slot slot;

		r = parse_slot(p, w, &slot);
		if (!r && l.nr_wires == max)
			r = malformed(p, "too many arguments");
		if (r)
			break;
		a = stored_arg(args, nr, l.nr_wires, &slot.wire.position);
		if (!a) {
			slot.wire.position = WIRE_UNKNOWN;
		} else if (!word_is(&slot.name, a->name) || !same_type(p->schema, &slot.wire, a)) {
			r = err_set(p->err, -EOPNOTSUPP,
				    "schema line %u: '%.*s' is not what this version knows as '%s'",
				    p->line_no, (int)slot.name.len, slot.name.text, a->name);
			break;
		}
		l.wires[l.nr_wires++] = slot.wire;
	}
	if (r) {
		free(l.wires);
		return r;
	}
	*ret = l;
	return 0;
}

static int parse_struct(struct parser *p)
{
	static const struct struct_desc unknown = { .name = "" };
	const struct struct_desc *d;
	struct schema_struct st = { 0 };
	struct schema *s = p->schema;
	struct word name;
	uint16_t no;
	int r;

	if (!next_word(p, &name) || !good_name(&name))
		return malformed(p, "bad struct name");
	if (find_struct(p, &name, &no))
		return malformed(p, "struct described twice");
	if (s->nr_structs == STRUCTS_MAX)
		return malformed(p, "too many structs");
	st.name = xmemdup0(name.text, name.len);
	d = known_struct(st.name);
	if (!d)
		d = &unknown;
	r = parse_known_slots(p, d->fields, d->nr_fields, STRUCT_FIELDS_MAX, &st.fields);
	if (r) {
		free(st.name);
		return r;
	}
	s->structs = xrealloc(s->structs, (s->nr_structs + 1) * sizeof(*s->structs));
	s->structs[s->nr_structs++] = st;
	*map_slot(&p->struct_nos, name.text, name.len) = (void *)(uintptr_t)s->nr_structs;
	return 0;
}

/* The kind for a slot of a row that we do not know: the one named, if it fits what we know of it. */
static void make_arg(const struct schema *s, const struct slot *slot, struct arg *a)
{
	unsigned int kind;

	*a = (struct arg){ .name = xmemdup0(slot->name.text, slot->name.len) };
	switch (slot->wire.type) {
	case 'u':
		a->kind = KIND_ULONG;
		break;
	case 'i':
		a->kind = KIND_LONG;
		break;
	case 'd':
		a->kind = KIND_BUF;
		break;
	case 's':
		a->kind = KIND_STRUCT;
		break;
	default:
		a->kind = slot->wire.elem == 's' ? KIND_ARRAY : KIND_VEC;
	}
	for (kind = 0; kind < KIND_MAX; kind++) {
		if (word_is(&slot->kind, kind_infos[kind].name) &&
		    kind_infos[kind].wire == slot->wire.type && strchr("uid", slot->wire.type))
			a->kind = (uint8_t)kind;
	}
	if (slot->wire.elem)
		a->elem = slot->wire.elem == 'u'   ? KIND_ULONG
			  : slot->wire.elem == 'i' ? KIND_LONG
			  : slot->wire.elem == 'd' ? KIND_BUF
						   : 0;
	if (slot->wire.type == 's' || slot->wire.elem == 's') {
		const struct struct_desc *d = known_struct(s->structs[slot->wire.struct_no].name);

		a->struct_id = d ? (uint16_t)(d - struct_descs) : STRUCT_none;
	}
}

static int make_row(struct parser *p, struct schema_row *sr, enum row_sort sort, unsigned int id,
		    const struct word *name)
{
	struct row *row = xcalloc(1, sizeof(*row));
	struct word w;

	sr->made = row;
	sr->made_args = xcalloc(ROW_ARGS_MAX, sizeof(struct arg));
	sr->args.wires = xcalloc(ROW_ARGS_MAX, sizeof(struct wire));
	row->name = xmemdup0(name->text, name->len);
	row->id = (uint16_t)id;
	row->sort = (uint8_t)sort;
	row->class = sort == ROW_CALL ? C_OTHER : sort == ROW_EVENT ? C_EVENT : C_RECORD;
	row->result = sort == ROW_CALL ? RESULT_VALUE : RESULT_NOTHING;
	row->model = row->replay = SUPPORT_UNSUPPORTED;
	row->args = sr->made_args;
	while (next_word(p, &w)) {
		struct slot slot;
		int r = parse_slot(p, w, &slot);

		if (!r && row->nr_args == ROW_ARGS_MAX)
			r = malformed(p, "too many arguments");
		if (r)
			return r;
		make_arg(p->schema, &slot, &sr->made_args[row->nr_args]);
		slot.wire.position = row->nr_args++;
		sr->args.wires[sr->args.nr_wires++] = slot.wire;
	}
	sr->row = row;
	return 0;
}

static int parse_row(struct parser *p, enum row_sort sort)
{
	struct word id_word, name;
	const struct row *row;
	struct schema_row *sr;
	unsigned int id = 0;
	size_t i;
	int r;

	if (!next_word(p, &id_word) || !next_word(p, &name) || !good_name(&name))
		return malformed(p, "bad row");
	for (i = 0; i < id_word.len; i++) {
		if (id_word.text[i] < '0' || id_word.text[i] > '9' || id >= ROW_ID_MAX)
			return malformed(p, "bad row number");
		id = id * 10 + (unsigned int)(id_word.text[i] - '0');
	}
	if (!id || id >= ROW_ID_MAX)
		return malformed(p, "bad row number");
	sr = &p->schema->rows[id];
	if (sr->row)
		return malformed(p, "row described twice");
	row = row_by_id(id);
	if (!row || row->sort != sort || !word_is(&name, row->name))
		return make_row(p, sr, sort, id, &name);
	r = parse_known_slots(p, row->args, row->nr_args, ROW_ARGS_MAX, &sr->args);
	if (!r)
		sr->row = row;
	return r;
}

static int parse_line(struct parser *p)
{
	struct word w;
	unsigned int sort;

	if (!next_word(p, &w))
		return 0;
	if (word_is(&w, "struct"))
		return parse_struct(p);
	for (sort = 0; sort < ARRAY_LEN(sort_names); sort++) {
		if (word_is(&w, sort_names[sort]))
			return parse_row(p, (enum row_sort)sort);
	}
	return 0; /* a later version's addition */
}

int schema_parse(const char *text, size_t len, struct schema **ret, struct err *err)
{
	struct parser p = { .schema = schema_alloc(), .err = err };
	const char *end = text + len;
	int r = 0;

	while (text < end && !r) {
		const char *eol = memchr(text, '\n', (size_t)(end - text));

		p.line = text;
		p.line_end = eol ? eol : end;
		p.line_no++;
		r = parse_line(&p);
		text = eol ? eol + 1 : end;
	}
	map_release(&p.struct_nos);
	if (r) {
		schema_free(p.schema);
		return r;
	}
	*ret = p.schema;
	return 0;
}
