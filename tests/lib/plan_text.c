/* SPDX-License-Identifier: MIT */
#include "plan_text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/mem.h"
#include "model/parse.h"
#include "plan/plan.h"
#include "plan/result.h"

#define EDGES_MAX 1024

struct plan_text {
	struct trace *source; /* an empty trace: all data stands in the actions */
	char *source_path;
	struct plan_writer *writer;
	struct parser *parser;
	struct arena arena;
	uint32_t nr_lanes, nr_slots;
	uint64_t seq, now_ns, first_ns;
	bool has_started;
};

static void die(const char *what, const char *why)
{
	fprintf(stderr, "plan_text: %.100s: %s\n", what, why);
	abort();
}

static void make_source(struct plan_text *p, const char *path)
{
	const struct trace_writer_options options = { .replace = true };
	size_t len = strlen(path) + sizeof(".source");
	struct err err = { "" };
	struct trace_writer *w;

	p->source_path = xmalloc(len);
	snprintf(p->source_path, len, "%s.source", path);
	if (trace_writer_open(p->source_path, &options, &w, &err) < 0 ||
	    trace_writer_close(w, &err) < 0 || trace_open(p->source_path, 0, &p->source, &err) < 0)
		die(path, err.text);
}

struct plan_text *plan_text_new(const char *path, uint32_t nr_slots)
{
	const struct plan_writer_options options = { .data = PLAN_DATA_OWN, .replace = true };
	struct plan_text *p = xcalloc(1, sizeof(*p));
	struct err err = { "" };

	make_source(p, path);
	p->nr_slots = nr_slots;
	p->parser = parser_new();
	arena_init(&p->arena);
	if (plan_writer_open(path, p->source, &options, &p->writer, &err) < 0)
		die(path, err.text);
	return p;
}

/* A number and what follows it, or death. */
static uint64_t number(const char **s, const char *line)
{
	char *end;
	uint64_t n;

	errno = 0;
	n = strtoull(*s, &end, 10);
	if (end == *s || errno)
		die(line, "a number is missing");
	*s = end;
	return n;
}

static void expect(const char **s, char c, const char *line)
{
	if (*(*s)++ != c)
		die(line, "not understood");
}

static void parse_event(struct plan_text *p, const char *text, const char *line, struct action *a)
{
	struct err err = { "" };
	struct line parsed;

	if (parse_line(p->parser, text, strlen(text), &p->arena, &parsed, &err) < 0)
		die(line, err.text);
	a->row = parsed.event.row;
	a->outcome = parsed.event.outcome;
	if (parsed.has_seq)
		a->seq = p->seq = parsed.event.seq;
	a->pid = parsed.event.pid ? parsed.event.pid : 1;
	a->tid = parsed.event.tid ? parsed.event.tid : 1;
	memcpy(a->args, parsed.event.args, sizeof(a->args));
	a->enter_ns = parsed.event.enter_ns ? parsed.event.enter_ns : p->now_ns;
	a->exit_ns = parsed.event.exit_ns ? parsed.event.exit_ns : a->enter_ns + 1000;
	if (result_hash(a->row, &a->outcome, a->args, &a->result))
		a->flags |= ACTION_HAS_RESULT;
}

static void add_lanes(struct plan_text *p, uint32_t lane)
{
	while (p->nr_lanes <= lane)
		p->nr_lanes = plan_writer_add_lane(p->writer) + 1;
}

void plan_text_add(struct plan_text *p, const char *line)
{
	static struct action_edge edges[EDGES_MAX];
	struct action a = { .edges = edges };
	const char *s = line;
	struct err err = { "" };
	uint32_t lane;

	if (!*line || *line == '#')
		return;
	lane = (uint32_t)number(&s, line);
	add_lanes(p, lane);
	for (; expect(&s, ' ', line), true;) {
		if (*s == '<' || *s == '!') {
			struct action_edge *e = &edges[a.nr_edges++];

			if (a.nr_edges == EDGES_MAX)
				die(line, "too many edges");
			e->started = *s++ == '!';
			p->has_started |= e->started;
			e->lane = (uint32_t)number(&s, line);
			expect(&s, ':', line);
			e->nr = number(&s, line);
			e->rule = 0;
			add_lanes(p, e->lane);
		} else if (!strncmp(s, "think=", 6)) {
			s += 6;
			a.compute_before_ns = number(&s, line);
			expect(&s, ',', line);
			a.compute_after_ns = number(&s, line);
		} else if (!strncmp(s, "flags=", 6)) {
			s += 6;
			a.flags = (uint16_t)number(&s, line);
		} else {
			break;
		}
	}
	a.seq = ++p->seq;
	p->now_ns += 2000;
	parse_event(p, s, line, &a);
	if (a.row->sort == ROW_EVENT)
		a.seq = 0;
	if (plan_writer_action(p->writer, lane, &a, &err) < 0)
		die(line, err.text);
	arena_reset(&p->arena);
}

void plan_text_close(struct plan_text *p)
{
	struct plan_totals totals = { .nr_slots = p->nr_slots,
				      .elapsed_ns = p->now_ns,
				      .has_started_edges = p->has_started };
	struct err err = { "" };

	if (plan_writer_close(p->writer, &totals, &err) < 0)
		die("close", err.text);
	trace_close(p->source);
	(void)unlink(p->source_path);
	free(p->source_path);
	parser_free(p->parser);
	arena_release(&p->arena);
	free(p);
}

void plan_from_text(const char *path, uint32_t nr_slots, const char *text)
{
	struct plan_text *p = plan_text_new(path, nr_slots);
	char *copy = xstrdup(text), *rest = copy, *line;

	while ((line = strsep(&rest, "\n")))
		plan_text_add(p, line);
	free(copy);
	plan_text_close(p);
}
