/* SPDX-License-Identifier: MIT */
/* The queue of targets; data, strings and lists of numbers. */
#include "record/capture_inside.h"

#include <assert.h>
#include <stdlib.h>
#include <string.h>

#include "base/banned.h"

#define AREA_BYTES ((size_t)BLOB_MAX_BYTES)
#define SPANS_MAX 128
/* Memory comes and goes by pages of at least this size. */
#define PAGE_BYTES UINT64_C(4096)
/* Most strings are shorter; what follows the NUL is copied for nothing. */
#define STRING_FIRST_BYTES 256
#define TURN_BYTES ((size_t)256 << 10)
/* What a call with many targets left behind is not kept for ever. */
#define QUEUE_KEPT 4096

static const struct arg strv_elem = { .name = "", .kind = KIND_STR };

struct capture_scratch *capture_scratch_of(struct capture *c)
{
	struct capture_scratch *s = c->scratch;

	if (!s) {
		s = xcalloc(1, sizeof(*s));
		s->area = xmalloc(AREA_BYTES);
		s->text = xmalloc(CAPTURE_ARG_MAX);
		s->shapes = xcalloc(ROW_ID_MAX, sizeof(*s->shapes));
		c->scratch = s;
	}
	return s;
}

void capture_release(struct capture *c)
{
	struct capture_scratch *s = c->scratch;

	if (!s)
		return;
	free(s->area);
	free(s->text);
	free(s->shapes);
	VEC_RELEASE(&s->queue);
	VEC_RELEASE(&s->pointers);
	free(s);
	c->scratch = NULL;
}

void capture_begin(struct capture_job *j, struct capture *c)
{
	*j = (struct capture_job){
		.c = c,
		.s = capture_scratch_of(c),
		.data_left_bytes = CAPTURE_DATA_MAX_BYTES,
		.text_left_bytes = CAPTURE_STRV_MAX_BYTES,
		.targets_left = CAPTURE_TARGETS_MAX,
		.items_left = CAPTURE_ITEMS_MAX,
	};
	j->s->queue.len = j->s->head = 0;
}

/* Numbers. */

uint64_t capture_number(const uint8_t *p, unsigned int width_bytes, bool is_signed)
{
	uint16_t half;
	uint32_t word;
	uint64_t v;

	switch (width_bytes) {
	case 1:
		return is_signed ? (uint64_t)(int8_t)*p : *p;
	case 2:
		memcpy(&half, p, sizeof(half));
		return is_signed ? (uint64_t)(int16_t)half : half;
	case 4:
		memcpy(&word, p, sizeof(word));
		return is_signed ? (uint64_t)(int32_t)word : word;
	case 8:
		memcpy(&v, p, sizeof(v));
		return v;
	}
	return 0;
}

bool capture_is_scalar(const struct arg *a)
{
	char wire = kind_infos[a->kind].wire;

	return wire == 'u' || wire == 'i';
}

bool capture_is_signed(const struct arg *a)
{
	return kind_infos[a->kind].wire == 'i';
}

unsigned int capture_elem_width(const struct arg *a)
{
	return a->width_bytes ? a->width_bytes : kind_infos[a->elem].width_bytes;
}

/* Reading. */

size_t capture_read(struct capture *c, uint64_t addr, void *p, size_t len)
{
	struct iovec local = { .iov_base = p, .iov_len = len };
	struct iovec remote = { .iov_base = (void *)(uintptr_t)addr, .iov_len = len };
	ssize_t n;

	if (!len)
		return 0;
	n = c->memory->read(c->memory, &local, &remote, 1);
	return n < 0 ? 0 : (size_t)n;
}

/* Reads all spans, also those behind one that is not there, and says how far each was read. */
static void read_spans(struct capture *c, const struct iovec *local, const struct iovec *remote,
		       unsigned int nr, size_t *ret_got)
{
	unsigned int i = 0;

	while (i < nr) {
		ssize_t n = c->memory->read(c->memory, local + i, remote + i, nr - i);
		size_t left = n < 0 ? 0 : (size_t)n;

		while (i < nr && left >= local[i].iov_len) {
			ret_got[i] = local[i].iov_len;
			left -= local[i].iov_len;
			i++;
		}
		if (i < nr)
			ret_got[i++] = left;
	}
}

/* Data. */

enum capture_keep capture_keep(const struct capture *c, const struct row *row, uint8_t flags)
{
	enum row_class class = row ? row_class(row) : C_OTHER;

	if (flags & CAPTURE_KEEP || class == C_NAME || class == C_CWD)
		return CAPTURE_KEEP_BYTES;
	switch (c->policy) {
	case DATA_ALL:
		return CAPTURE_KEEP_BYTES;
	case DATA_WRITES:
		return flags & CAPTURE_AFTER ? CAPTURE_KEEP_HASH : CAPTURE_KEEP_BYTES;
	case DATA_HASH:
		return CAPTURE_KEEP_HASH;
	case DATA_NONE:
		break;
	}
	return CAPTURE_KEEP_NOTHING;
}

static enum capture_keep keep_of(const struct capture_job *j, const struct capture_target *t)
{
	return capture_keep(j->c, j->row, t->flags);
}

static struct data *new_data(struct capture_job *j, struct value *dest, uint64_t len_bytes)
{
	struct data *d = arena_alloc(j->c->arena, sizeof(*d));

	*d = (struct data){ .len_bytes = len_bytes };
	*dest = (struct value){ .type = VALUE_DATA, .data = d };
	return d;
}

int capture_piece(struct capture *c, enum capture_keep keep, const uint8_t *bytes, size_t len,
		  struct blob_ref *ret)
{
	*ret = (struct blob_ref){ .blob = 0 };
	if (keep == CAPTURE_KEEP_BYTES)
		return trace_feed_lent_blob(c->feed, bytes, len, ret);
	ret->hash = hash_bytes(bytes, len);
	return 0;
}

static void keep_piece(struct capture_job *j, enum capture_keep keep, const uint8_t *bytes,
		       size_t len, struct blob_ref *ret)
{
	if (j->r)
		*ret = (struct blob_ref){ .blob = 0 };
	else
		j->r = capture_piece(j->c, keep, bytes, len, ret);
}

/* What was read is one piece, in the area. */
static void finish_data(struct capture_job *j, struct capture_target *t)
{
	enum capture_keep keep = keep_of(j, t);
	struct blob_ref *ref;
	struct data *d;

	j->c->truncated_bytes += t->want - t->got;
	if (!t->got)
		return;
	d = new_data(j, t->dest, t->len);
	d->kept_bytes = t->got;
	if (keep == CAPTURE_KEEP_BYTES && t->got <= DATA_INLINE_MAX) {
		d->bytes = (uint8_t *)arena_memdup0(j->c->arena, t->local, t->got);
		return;
	}
	ref = arena_alloc(j->c->arena, sizeof(*ref));
	keep_piece(j, keep, t->local, t->got, ref);
	d->refs = ref;
}

struct span_cursor {
	const struct iovec *spans;
	size_t nr;
	size_t at; /* the span that is being read */
	size_t offset; /* how much of it has been */
};

/* Reads on from the cursor; less than len at the end of the spans or where memory ends. */
static size_t fill_piece(struct capture_job *j, struct span_cursor *cur, size_t len)
{
	struct iovec local[SPANS_MAX], remote[SPANS_MAX];
	size_t done = 0;

	while (done < len && cur->at < cur->nr) {
		unsigned int nr = 0;
		size_t asked = 0;
		ssize_t n;

		while (nr < SPANS_MAX && cur->at < cur->nr && done + asked < len) {
			const struct iovec *span = &cur->spans[cur->at];
			size_t part = span->iov_len - cur->offset;

			if (part > len - done - asked)
				part = len - done - asked;
			remote[nr].iov_base = (uint8_t *)span->iov_base + cur->offset;
			local[nr].iov_base = j->s->area + done + asked;
			remote[nr].iov_len = local[nr].iov_len = part;
			nr += part != 0;
			asked += part;
			cur->offset += part;
			if (cur->offset == span->iov_len) {
				cur->offset = 0;
				cur->at++;
			}
		}
		n = nr ? j->c->memory->read(j->c->memory, local, remote, nr) : 0;
		done += n < 0 ? 0 : (size_t)n;
		if (n < 0 || (size_t)n < asked)
			break;
	}
	return done;
}

int capture_gather(struct capture_job *j, const struct iovec *spans, size_t nr,
		   const struct capture_target *t)
{
	struct span_cursor cur = { .spans = spans, .nr = nr };
	enum capture_keep keep = keep_of(j, t);
	struct blob_ref *refs;
	uint64_t nr_pieces = 0;
	uint64_t left = t->len;
	struct data *d;

	if (left > j->data_left_bytes)
		left = j->data_left_bytes;
	j->data_left_bytes -= left;
	d = new_data(j, t->dest, t->len);
	if (keep == CAPTURE_KEEP_NOTHING)
		return 0;
	refs = arena_alloc(j->c->arena, (size_t)(left / BLOB_MAX_BYTES + 1) * sizeof(*refs));
	while (left && !j->r) {
		size_t want = left < AREA_BYTES ? (size_t)left : AREA_BYTES;
		size_t got = fill_piece(j, &cur, want);

		if (got)
			keep_piece(j, keep, j->s->area, got, &refs[nr_pieces++]);
		d->kept_bytes += got;
		left -= got;
		if (got < want)
			break;
	}
	j->c->truncated_bytes += left;
	d->refs = refs;
	if (!d->kept_bytes && d->len_bytes)
		*t->dest = value_addr(t->addr);
	return j->r;
}

/* Larger than the area: read piece by piece. */
static void finish_large(struct capture_job *j, struct capture_target *t)
{
	struct iovec span = { .iov_base = (void *)(uintptr_t)t->addr, .iov_len = t->want };

	j->data_left_bytes += t->want; /* which is taken off again */
	(void)!capture_gather(j, &span, 1, t); /* stays in j->r */
}

/* Strings. */

static struct data *put_string(struct capture_job *j, struct value *dest, const uint8_t *bytes,
			       size_t len)
{
	struct data *d = new_data(j, dest, len);

	if (len > j->text_left_bytes) {
		j->c->truncated_bytes += len - j->text_left_bytes;
		len = (size_t)j->text_left_bytes;
	}
	j->text_left_bytes -= len;
	d->bytes = (uint8_t *)arena_memdup0(j->c->arena, bytes, len);
	d->kept_bytes = len;
	return d;
}

/* A string that goes on behind the part that was read with others: page by page. */
static void finish_long_string(struct capture_job *j, struct capture_target *t)
{
	size_t len = t->got;
	bool readable = true;

	memcpy(j->s->text, t->local, len);
	while (len < t->len && readable) {
		uint64_t addr = t->addr + len;
		size_t want = (size_t)(PAGE_BYTES - addr % PAGE_BYTES);
		const uint8_t *nul;
		size_t got;

		if (want > t->len - len)
			want = (size_t)t->len - len;
		got = capture_read(j->c, addr, j->s->text + len, want);
		nul = memchr(j->s->text + len, 0, got);
		if (nul) {
			(void)put_string(j, t->dest, j->s->text, (size_t)(nul - j->s->text));
			return;
		}
		readable = got == want;
		len += got;
	}
	/* The kernel reads no path beyond its limit; of everything else something is missing. */
	if (!readable || t->a->kind != KIND_PATH)
		j->c->truncated_bytes++;
	/* Its end was not seen: there is more, nobody knows how much. */
	put_string(j, t->dest, j->s->text, len)->len_bytes++;
}

static void finish_string(struct capture_job *j, struct capture_target *t)
{
	const uint8_t *nul;

	if (!t->got)
		return;
	nul = memchr(t->local, 0, t->got);
	if (nul)
		(void)put_string(j, t->dest, t->local, (size_t)(nul - t->local));
	else
		finish_long_string(j, t);
}

static void prepare_string(struct capture_target *t)
{
	if (!t->len)
		t->len = t->a->kind == KIND_PATH ? CAPTURE_PATH_MAX : CAPTURE_STR_MAX;
	if (t->len > CAPTURE_ARG_MAX)
		t->len = CAPTURE_ARG_MAX;
	t->want = (size_t)(PAGE_BYTES - t->addr % PAGE_BYTES);
	if (t->want > STRING_FIRST_BYTES)
		t->want = STRING_FIRST_BYTES;
	if (t->want > t->len)
		t->want = (size_t)t->len;
}

/* The pointers of a vector of strings, each of `width` bytes. False: its end is not among them. */
static bool read_string_pointers(struct capture_job *j, uint64_t addr, unsigned int width)
{
	uint8_t page[PAGE_BYTES];
	size_t nr = 0, got, i;

	j->s->pointers.len = 0;
	while (nr <= CAPTURE_STRV_MAX) {
		uint64_t from = addr + nr * width;
		/* A pointer across two pages is read by itself: a whole one is there or not. */
		size_t room = (size_t)(PAGE_BYTES - from % PAGE_BYTES) / width;
		size_t want = room ? room : 1;

		got = capture_read(j->c, from, page, want * width) / width;
		for (i = 0; i < got; i++) {
			uint64_t pointer = capture_number(page + i * width, width, false);

			if (!pointer)
				return true;
			VEC_PUSH(&j->s->pointers, pointer);
		}
		if (got < want)
			break;
		nr += got;
	}
	return false;
}

/* Read at once: these are arguments of execve, where a few reads more do not matter. */
static void push_strv(struct capture_job *j, const struct capture_target *t)
{
	unsigned int width = j->c->narrow ? sizeof(uint32_t) : sizeof(uint64_t);
	bool ended = read_string_pointers(j, t->addr, width);
	size_t nr = j->s->pointers.len, i;

	if (!nr && !ended)
		return;
	if (!ended)
		j->c->truncated_bytes += width;
	*t->dest = value_list(j->c->arena, (uint32_t)nr);
	for (i = 0; i < nr; i++) {
		struct capture_target elem = *t;

		elem.a = &strv_elem;
		elem.dest = &t->dest->items[i];
		elem.addr = j->s->pointers.items[i];
		elem.len = CAPTURE_ARG_MAX;
		capture_push(j, &elem);
	}
}

/* Lists of numbers. */

static void finish_vec(struct capture_job *j, struct capture_target *t)
{
	unsigned int width = capture_elem_width(t->a);
	bool is_signed = kind_infos[t->a->elem].wire == 'i';
	uint32_t i, nr = (uint32_t)(t->got / width);

	j->c->truncated_bytes += (t->len - nr) * width;
	if (!nr)
		return;
	*t->dest = value_list(j->c->arena, nr);
	for (i = 0; i < nr; i++)
		t->dest->items[i] =
			value_uint(capture_number(t->local + i * width, width, is_signed));
}

static void finish_fdset(struct capture_job *j, struct capture_target *t)
{
	uint64_t bits = t->got * 8 < t->len ? t->got * 8 : t->len, i;
	uint32_t nr = 0;

	if (!t->got)
		return;
	for (i = 0; i < t->got; i++)
		nr += (uint32_t)__builtin_popcount(t->local[i]);
	*t->dest = value_list(j->c->arena, nr);
	nr = 0;
	for (i = 0; i < bits; i++) {
		if (t->local[i / 8] >> i % 8 & 1)
			t->dest->items[nr++] = value_uint(i);
	}
	t->dest->count = nr;
}

/* The queue. */

/* Bounds a count and says how many bytes that is. */
static void prepare_list(struct capture_job *j, struct capture_target *t, size_t item_bytes)
{
	uint64_t most = j->items_left < CAPTURE_LIST_MAX ? j->items_left : CAPTURE_LIST_MAX;

	if (t->len > most) {
		uint64_t beyond = t->len - most;

		/* A hostile count must not overflow the sum. */
		if (!(t->flags & CAPTURE_MERGE))
			j->c->truncated_bytes +=
				beyond < UINT32_MAX ? beyond * item_bytes : UINT32_MAX;
		t->len = most;
	}
	j->items_left -= t->len;
	t->want = (size_t)t->len * item_bytes;
}

/* How much is to be read; false when there is nothing. */
static bool prepare(struct capture_job *j, struct capture_target *t)
{
	size_t struct_bytes = capture_layout(j->c, t->a->struct_id).size_bytes;

	switch ((enum kind)t->a->kind) {
	case KIND_PATH:
	case KIND_STR:
		prepare_string(t);
		return true;
	case KIND_BUF:
		t->want = (size_t)(t->len < j->data_left_bytes ? t->len : j->data_left_bytes);
		if (!t->len || keep_of(j, t) == CAPTURE_KEEP_NOTHING) {
			(void)new_data(j, t->dest, t->len);
			return false;
		}
		j->data_left_bytes -= t->want;
		break;
	case KIND_STRUCT:
		t->want = struct_bytes;
		if (t->a->len != LEN_NONE && t->len < t->want)
			t->want = (size_t)t->len;
		return struct_bytes != 0;
	case KIND_SOCKADDR:
		t->want = t->len < CAPTURE_SOCKADDR_MAX ? (size_t)t->len : CAPTURE_SOCKADDR_MAX;
		if (!t->want)
			*t->dest = value_struct(j->c->arena, 0);
		break;
	case KIND_PTR:
	case KIND_VEC:
		prepare_list(j, t, capture_elem_width(t->a));
		break;
	case KIND_PTRS:
		prepare_list(j, t, sizeof(uint64_t));
		break;
	case KIND_FDSET:
		if (t->len > CAPTURE_FDSET_MAX_BITS)
			t->len = CAPTURE_FDSET_MAX_BITS;
		t->want = (size_t)(j->c->narrow ? (t->len + 31) / 32 * 4 : (t->len + 63) / 64 * 8);
		break;
	case KIND_ARRAY:
		if (t->a->struct_id == STRUCT_cmsghdr)
			t->want = (size_t)(t->len < CAPTURE_CONTROL_MAX_BYTES
						   ? t->len
						   : CAPTURE_CONTROL_MAX_BYTES);
		else if (struct_bytes)
			prepare_list(j, t, struct_bytes);
		else
			return false;
		break;
	case KIND_DIRENTS:
		t->want = (size_t)(t->len < CAPTURE_DIRENTS_MAX_BYTES ? t->len
								      : CAPTURE_DIRENTS_MAX_BYTES);
		break;
	default:
		return false;
	}
	if (t->want)
		return true;
	if (kind_infos[t->a->kind].wire == 'l')
		*t->dest = value_list(j->c->arena, 0);
	return false;
}

/* Data is kept as it is: it need not be copied for that, nor wait for its turn. */
static bool finish_borrowed(struct capture_job *j, struct capture_target *t)
{
	struct memory *m = j->c->memory;

	if (!m->borrow || t->a->kind != KIND_BUF || t->want > AREA_BYTES)
		return false;
	t->local = m->borrow(m, t->addr, t->want);
	if (!t->local)
		return false;
	t->got = t->want;
	finish_data(j, t);
	return true;
}

void capture_push(struct capture_job *j, const struct capture_target *given)
{
	struct capture_target t = *given;

	t.done = 0;
	if (!(t.flags & CAPTURE_MERGE) || !t.addr)
		*t.dest = value_addr(t.addr);
	if (!t.addr)
		return;
	if (t.a->kind == KIND_STRV) {
		push_strv(j, &t);
		return;
	}
	if (!j->targets_left) {
		j->c->truncated_bytes++;
		return;
	}
	if (!prepare(j, &t) || finish_borrowed(j, &t))
		return;
	j->targets_left--;
	VEC_PUSH(&j->s->queue, t);
}

void capture_again(struct capture_job *j, const struct capture_target *t)
{
	VEC_PUSH(&j->s->queue, *t);
}

static void finish(struct capture_job *j, struct capture_target *t)
{
	switch ((enum kind)t->a->kind) {
	case KIND_PATH:
	case KIND_STR:
		finish_string(j, t);
		break;
	case KIND_BUF:
		finish_data(j, t);
		break;
	case KIND_STRUCT:
		capture_finish_struct(j, t);
		break;
	case KIND_SOCKADDR:
		capture_finish_sockaddr(j, t);
		break;
	case KIND_PTR:
	case KIND_VEC:
		finish_vec(j, t);
		break;
	case KIND_FDSET:
		finish_fdset(j, t);
		break;
	case KIND_PTRS:
		capture_finish_ptrs(j, t);
		break;
	case KIND_ARRAY:
		if (t->a->struct_id == STRUCT_cmsghdr)
			capture_finish_cmsgs(j, t);
		else
			capture_finish_array(j, t);
		break;
	case KIND_DIRENTS:
		capture_finish_dirents(j, t);
		break;
	default:
		assert(false);
	}
}

/* Long lists of structs and names take several turns, all else is read whole. */
static void limit_turn(const struct capture *c, struct capture_target *t)
{
	size_t item_bytes = 1;

	if (t->a->kind == KIND_ARRAY && t->a->struct_id != STRUCT_cmsghdr)
		item_bytes = capture_layout(c, t->a->struct_id).size_bytes;
	else if (t->a->kind != KIND_DIRENTS)
		return;
	if (t->want > TURN_BYTES)
		t->want = TURN_BYTES / item_bytes * item_bytes;
}

/* What is read by one call. */
struct turn {
	unsigned int nr; /* of the spans */
	struct iovec local[SPANS_MAX], remote[SPANS_MAX];
	unsigned int span_of[SPANS_MAX]; /* of each target */
	size_t got[SPANS_MAX];
};

static bool is_string(const struct capture_target *t)
{
	return t->a->kind == KIND_STR || t->a->kind == KIND_PATH;
}

/*
 * Where a string begins that stands in the last span, or right behind it: each span costs the
 * kernel as much as a hundred of them are long, and an environment has a hundred. All of a page is there, or nothing.
 */
static bool is_in_last(const struct turn *turn, const struct capture_target *t, size_t *ret)
{
	uint64_t start = turn->nr ? (uintptr_t)turn->remote[turn->nr - 1].iov_base : 0;

	if (!turn->nr || t->addr < start || t->addr / PAGE_BYTES != start / PAGE_BYTES ||
	    t->addr - start > turn->remote[turn->nr - 1].iov_len)
		return false;
	*ret = (size_t)(t->addr - start);
	return true;
}

/* follows: the target may be in the same span as the one before it. */
static void add_span(struct turn *turn, const struct capture_scratch *s, struct capture_target *t,
		     bool follows)
{
	size_t at;

	if (follows && is_in_last(turn, t, &at)) {
		struct iovec *local = &turn->local[turn->nr - 1];

		/* Before its own place in the area, which begins behind all that the span has of it. */
		t->local = (uint8_t *)local->iov_base + at;
		if (local->iov_len < at + t->want)
			local->iov_len = at + t->want;
		turn->remote[turn->nr - 1].iov_len = local->iov_len;
		return;
	}
	turn->local[turn->nr] =
		(struct iovec){ .iov_base = s->area + (t->local - s->area), .iov_len = t->want };
	turn->remote[turn->nr] =
		(struct iovec){ .iov_base = (void *)(uintptr_t)t->addr, .iov_len = t->want };
	turn->nr++;
}

static size_t got_of(const struct turn *turn, unsigned int span, const struct capture_target *t)
{
	size_t at = (size_t)(t->local - (const uint8_t *)turn->local[span].iov_base);
	size_t got = turn->got[span] > at ? turn->got[span] - at : 0;

	return got < t->want ? got : t->want;
}

/* Reads targets [from, to) of the queue by one call and finishes them. */
static void finish_turn(struct capture_job *j, size_t from, size_t to)
{
	struct turn turn;
	bool follows = false;
	size_t i;

	turn.nr = 0;
	for (i = from; i < to; i++) {
		struct capture_target *t = &j->s->queue.items[i];

		add_span(&turn, j->s, t, follows && is_string(t));
		turn.span_of[i - from] = turn.nr - 1;
		follows = j->c->memory->is_whole && is_string(t);
	}
	read_spans(j->c, turn.local, turn.remote, turn.nr, turn.got);
	for (i = from; i < to; i++) {
		/* A copy: the queue may move while what it points to is added. */
		struct capture_target t = j->s->queue.items[i];

		t.got = got_of(&turn, turn.span_of[i - from], &t);
		finish(j, &t);
	}
}

int capture_run(struct capture_job *j)
{
	struct capture_scratch *s = j->s;

	while (s->head < s->queue.len && !j->r) {
		size_t from = s->head, used = 0;

		while (s->head < s->queue.len && s->head - from < SPANS_MAX) {
			struct capture_target *t = &s->queue.items[s->head];

			limit_turn(j->c, t);
			if (t->want > AREA_BYTES - used)
				break;
			t->local = s->area + used;
			used += (t->want + 7) & ~(size_t)7;
			if (used > AREA_BYTES)
				used = AREA_BYTES;
			s->head++;
		}
		if (s->head == from) {
			struct capture_target t = s->queue.items[s->head++];

			finish_large(j, &t);
		} else {
			finish_turn(j, from, s->head);
		}
	}
	s->queue.len = s->head = 0;
	if (s->queue.cap > QUEUE_KEPT)
		VEC_RELEASE(&s->queue);
	return j->r;
}
