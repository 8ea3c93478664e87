// SPDX-License-Identifier: MIT
#include "model.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/strings.h"

#define NO_REQUEST UINT32_MAX

/* The text file. */

enum key_type { KEY_COUNT, KEY_SIZE, KEY_TIME };

struct key {
	const char *name;
	enum key_type type;
	size_t at;
};

#define KEY(name, type, field)                                                                     \
	{                                                                                          \
		name, type, offsetof(struct model_params, field)                                   \
	}

static const struct key keys[] = {
	KEY("size", KEY_SIZE, size_bytes),
	KEY("servers", KEY_COUNT, nr_servers),
	KEY("stripe", KEY_SIZE, stripe_bytes),
	KEY("depth", KEY_COUNT, queue_depth),
	KEY("seek_min", KEY_TIME, seek_min_ns),
	KEY("seek_max", KEY_TIME, seek_max_ns),
	KEY("rotation", KEY_TIME, rotation_ns),
	KEY("track", KEY_SIZE, track_bytes),
	KEY("read", KEY_TIME, read_ns),
	KEY("write", KEY_TIME, write_ns),
	KEY("flush", KEY_TIME, flush_ns),
	KEY("bytes_per_s", KEY_SIZE, bytes_per_s),
	KEY("limit_iops", KEY_COUNT, limit_iops),
	KEY("limit_bytes_per_s", KEY_SIZE, limit_bytes_per_s),
};

static int take_scale(const char *value, double *ret)
{
	char *end;
	double d = strtod(value, &end);

	if (end == value || *end || !(d >= 0) || d > 1e6)
		return -EINVAL;
	*ret = d;
	return 0;
}

static int take_queue(const char *value, enum model_queue *ret)
{
	if (!strcmp(value, "fifo"))
		*ret = MODEL_QUEUE_FIFO;
	else if (!strcmp(value, "nearest"))
		*ret = MODEL_QUEUE_NEAREST;
	else
		return -EINVAL;
	return 0;
}

static int take_key(struct model_params *p, const char *name, const char *value)
{
	uint64_t *to;
	size_t i;

	if (!strcmp(name, "scale"))
		return take_scale(value, &p->scale);
	if (!strcmp(name, "queue"))
		return take_queue(value, &p->queue);
	for (i = 0; i < ARRAY_LEN(keys); i++) {
		if (strcmp(keys[i].name, name) != 0)
			continue;
		to = (uint64_t *)((char *)p + keys[i].at);
		if (keys[i].type == KEY_COUNT)
			return strings_parse_u64(value, to);
		if (keys[i].type == KEY_SIZE)
			return strings_parse_size(value, to);
		return strings_parse_duration(value, to);
	}
	return -ENOENT;
}

static int take_line(struct model_params *p, char *line, const char *path, unsigned int nr,
		     struct err *err)
{
	char *save = NULL, *name, *value;
	int r;

	line[strcspn(line, "#\n")] = 0;
	name = strtok_r(line, " \t", &save);
	if (!name)
		return 0;
	value = strtok_r(NULL, " \t", &save);
	if (!value || strtok_r(NULL, " \t", &save))
		return err_set(err, -EINVAL, "%s:%u: expected 'KEY VALUE'", path, nr);
	r = take_key(p, name, value);
	if (r == -ENOENT)
		return err_set(err, -EINVAL, "%s:%u: no key '%s'", path, nr, name);
	if (r < 0)
		return err_set(err, r, "%s:%u: '%s' is no value for %s", path, nr, value, name);
	return 0;
}

/* So that no time overflows, whatever is asked for. */
#define MAX_TIME_NS (1000 * NS_PER_S)

static int check_params(const struct model_params *p, const char *path, struct err *err)
{
	const char *wrong = NULL;

	if (!p->size_bytes || p->size_bytes % 4096 || p->size_bytes > UINT64_C(1) << 44)
		wrong = "size must be a multiple of 4096, up to 16 TiB";
	else if (!p->nr_servers || p->nr_servers > MODEL_MAX_SERVERS)
		wrong = "servers must be 1 to 64";
	else if (!p->stripe_bytes || p->stripe_bytes % 512)
		wrong = "stripe must be a multiple of 512";
	else if (!p->queue_depth)
		wrong = "depth must not be 0";
	else if (p->rotation_ns && !p->track_bytes)
		wrong = "rotation needs track";
	else if (p->seek_min_ns > p->seek_max_ns)
		wrong = "seek_min is above seek_max";
	else if (p->seek_max_ns > MAX_TIME_NS || p->rotation_ns > MAX_TIME_NS ||
		 p->read_ns > MAX_TIME_NS || p->write_ns > MAX_TIME_NS || p->flush_ns > MAX_TIME_NS)
		wrong = "no time may be above 1000 s";
	return wrong ? err_set(err, -EINVAL, "%s: %s", path, wrong) : 0;
}

int model_params_read(const char *path, struct model_params *ret, struct err *err)
{
	struct model_params p = {
		.nr_servers = 1, .stripe_bytes = 65536, .queue_depth = 1, .scale = 1
	};
	FILE *f = fopen(path, "re");
	unsigned int nr = 0;
	char line[256];
	int r = 0;

	if (!f)
		return err_set(err, -errno, "cannot open %s", path);
	while (!r && fgets(line, sizeof(line), f))
		r = take_line(&p, line, path, ++nr, err);
	if (!r && ferror(f))
		r = err_set(err, -EIO, "cannot read %s", path);
	fclose(f);
	if (!r)
		r = check_params(&p, path, err);
	if (!r)
		*ret = p;
	return r;
}

/* Time of service. */

static uint64_t server_bytes(const struct model_params *p)
{
	return p->size_bytes / p->nr_servers;
}

/*
 * Of the head, from where it is. A function of the two places alone: the same
 * requests in the same order take the same time in every run.
 */
static double position_ns(const struct model_params *p, uint64_t from, uint64_t to)
{
	uint64_t way = from > to ? from - to : to - from;
	double ns = 0;

	if (!way)
		return 0;
	ns += (double)p->seek_min_ns + (double)(p->seek_max_ns - p->seek_min_ns) *
					       sqrt((double)way / (double)server_bytes(p));
	if (p->rotation_ns)
		ns += (double)p->rotation_ns * (double)((to - from) % p->track_bytes) /
		      (double)p->track_bytes;
	return ns;
}

static uint64_t service_ns(const struct model_params *p, const struct model_server *s,
			   const struct model_piece *piece)
{
	double ns;

	if (piece->op == MODEL_FLUSH)
		return (uint64_t)((double)p->flush_ns * p->scale);
	ns = position_ns(p, s->head, piece->offset);
	ns += (double)(piece->op == MODEL_READ ? p->read_ns : p->write_ns);
	if (p->bytes_per_s)
		ns += (double)piece->bytes * (double)NS_PER_S / (double)p->bytes_per_s;
	return (uint64_t)(ns * p->scale);
}

/* Servers. */

/*
 * Which of the waiting is served next by a server that is free at start_ns. A
 * flush is passed by nobody.
 */
static size_t choose(const struct model *m, const struct model_server *s, uint64_t start_ns)
{
	size_t i, best = 0;
	double ns, best_ns = INFINITY;

	if (m->params.queue == MODEL_QUEUE_FIFO)
		return 0;
	for (i = 0; i < s->waiting.len && i < m->params.queue_depth; i++) {
		const struct model_piece *piece = &s->waiting.items[i];

		if (piece->arrival_ns > start_ns || (piece->op == MODEL_FLUSH && i))
			break;
		ns = position_ns(&m->params, s->head, piece->offset);
		if (ns < best_ns) {
			best_ns = ns;
			best = i;
		}
		if (piece->op == MODEL_FLUSH)
			break;
	}
	return best;
}

/* When the server can begin with something; UINT64_MAX: nothing waits. */
static uint64_t next_start_ns(const struct model_server *s)
{
	if (!s->waiting.len)
		return UINT64_MAX;
	return s->waiting.items[0].arrival_ns > s->done_ns ? s->waiting.items[0].arrival_ns
							   : s->done_ns;
}

static void start_next(struct model *m, struct model_server *s)
{
	uint64_t start_ns = next_start_ns(s), ns;
	size_t at = choose(m, s, start_ns);

	s->current = s->waiting.items[at];
	memmove(&s->waiting.items[at], &s->waiting.items[at + 1],
		(s->waiting.len - at - 1) * sizeof(s->current));
	s->waiting.len--;
	ns = service_ns(&m->params, s, &s->current);
	s->busy_ns += ns;
	s->done_ns = start_ns + ns;
	s->busy = true;
	if (s->current.op != MODEL_FLUSH)
		s->head = s->current.offset + s->current.bytes;
}

static void give_back(struct model *m, uint32_t nr)
{
	m->requests.items[nr].next_free = m->free_request;
	m->free_request = nr;
	m->nr_pending--;
}

/* Requests. */

static uint32_t take_request(struct model *m, uint64_t tag)
{
	struct model_request fresh = { .tag = tag };
	uint32_t nr = m->free_request;

	m->nr_pending++;
	if (nr == NO_REQUEST) {
		VEC_PUSH(&m->requests, fresh);
		return (uint32_t)m->requests.len - 1;
	}
	m->free_request = m->requests.items[nr].next_free;
	m->requests.items[nr] = fresh;
	return nr;
}

static void add_piece(struct model *m, uint64_t server, struct model_piece piece)
{
	m->requests.items[piece.request].nr_pieces++;
	VEC_PUSH(&m->servers[server].waiting, piece);
}

/*
 * Neighbouring stripes of a server lie side by side on it, so a long request is
 * one piece for each server, not one for each stripe.
 */
static void split(struct model *m, struct model_piece whole)
{
	const struct model_params *p = &m->params;
	struct model_piece pieces[MODEL_MAX_SERVERS];
	uint64_t at = whole.offset, end = whole.offset + whole.bytes, stripe, n, i;

	for (i = 0; i < p->nr_servers; i++) {
		pieces[i] = whole;
		pieces[i].bytes = 0;
	}
	for (; at < end; at += n) {
		stripe = at / p->stripe_bytes;
		n = p->stripe_bytes - at % p->stripe_bytes;
		if (n > end - at)
			n = end - at;
		i = stripe % p->nr_servers;
		if (!pieces[i].bytes)
			pieces[i].offset =
				stripe / p->nr_servers * p->stripe_bytes + at % p->stripe_bytes;
		pieces[i].bytes += n;
	}
	for (i = 0; i < p->nr_servers; i++) {
		if (pieces[i].bytes)
			add_piece(m, i, pieces[i]);
	}
}

void model_submit(struct model *m, enum model_op op, uint64_t offset, uint64_t bytes,
		  uint64_t arrival_ns, uint64_t tag)
{
	struct model_piece whole = { .arrival_ns = arrival_ns,
				     .offset = offset,
				     .bytes = bytes,
				     .request = take_request(m, tag),
				     .op = op };
	uint64_t i;

	if (op != MODEL_FLUSH && bytes) {
		split(m, whole);
		return;
	}
	/* One that moves nothing is as a flush: it passes nobody, and takes a flush's time. */
	whole.op = MODEL_FLUSH;
	for (i = 0; i < m->params.nr_servers; i++)
		add_piece(m, i, whole);
}

/* The server that does something next, be it to end or to begin; its time. */
static struct model_server *next_server(const struct model *m, uint64_t *ret_ns)
{
	struct model_server *next = NULL;
	uint64_t i, ns;

	*ret_ns = UINT64_MAX;
	for (i = 0; i < m->params.nr_servers; i++) {
		const struct model_server *s = &m->servers[i];

		ns = s->busy ? s->done_ns : next_start_ns(s);
		if (ns < *ret_ns) {
			*ret_ns = ns;
			next = (struct model_server *)s;
		}
	}
	return next;
}

bool model_take_done(struct model *m, uint64_t now_ns, uint64_t *ret_tag, uint64_t *ret_done_ns)
{
	struct model_request *request;
	struct model_server *s;
	uint64_t ns;

	while ((s = next_server(m, &ns)) && ns <= now_ns) {
		if (!s->busy) {
			start_next(m, s);
			continue;
		}
		s->busy = false;
		request = &m->requests.items[s->current.request];
		request->done_ns = s->done_ns;
		if (--request->nr_pieces)
			continue;
		*ret_tag = request->tag;
		*ret_done_ns = request->done_ns;
		give_back(m, s->current.request);
		return true;
	}
	return false;
}

uint64_t model_next_ns(const struct model *m)
{
	uint64_t ns;

	next_server(m, &ns);
	return ns;
}

void model_init(struct model *m, const struct model_params *params)
{
	*m = (struct model){ .params = *params, .free_request = NO_REQUEST };
}

void model_release(struct model *m)
{
	uint64_t i;

	for (i = 0; i < m->params.nr_servers; i++)
		VEC_RELEASE(&m->servers[i].waiting);
	VEC_RELEASE(&m->requests);
}
