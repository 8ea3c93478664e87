/* SPDX-License-Identifier: MIT */
#include "program.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/arena.h"
#include "base/err.h"
#include "fsmodel/fsmodel.h"
#include "trace/writer.h"

#define THREADS_MAX 12
#define FDS_MAX 10
#define SCRIPT_ACTORS_MAX 60 /* below what real_program can take */

uint64_t rng_next(struct rng *r)
{
	r->state ^= r->state << 13;
	r->state ^= r->state >> 7;
	r->state ^= r->state << 17;
	return r->state;
}

unsigned int rng_below(struct rng *r, unsigned int n)
{
	return (unsigned int)(rng_next(r) % n);
}

struct actor {
	uint32_t pid, tid;
	struct trace_stream *stream;
};

struct run {
	struct rng rng;
	struct fsmodel *model;
	struct trace_writer *writer;
	struct trace_feed *feed;
	struct arena arena;
	struct actor actors[THREADS_MAX];
	unsigned int nr_actors;
	uint32_t next_tid;
	uint64_t now_ns;
};

static void must(int r, const struct err *err)
{
	if (r < 0) {
		fprintf(stderr, "%s\n", err ? err->text : strerror(-r));
		abort();
	}
}

/* Calls take 1 us and follow each other: the order in the trace is that of their effects. */
static void stamp(struct run *run, struct event *ev, const struct actor *a)
{
	ev->pid = a->pid;
	ev->tid = a->tid;
	ev->ppid = 1;
	ev->enter_ns = run->now_ns;
	ev->exit_ns = run->now_ns + 1000;
	run->now_ns += 1000 + rng_below(&run->rng, 3) * 500;
}

static void put(struct run *run, const struct actor *a, struct event *ev)
{
	stamp(run, ev, a);
	(void)fsmodel_step(run->model, ev);
	must(trace_feed_event(run->feed, a->stream, ev), NULL);
}

static const char *draw_path(struct run *run)
{
	static const char *const names[] = { "a", "b", "c" };
	unsigned int depth = 1 + rng_below(&run->rng, 3);
	char text[64] = "";
	size_t len = 0;

	if (rng_below(&run->rng, 3))
		len += (size_t)snprintf(text, sizeof(text), "/t/");
	for (unsigned int i = 0; i < depth; i++)
		len += (size_t)snprintf(text + len, sizeof(text) - len, "%s%s", i ? "/" : "",
					rng_below(&run->rng, 20) ? names[rng_below(&run->rng, 3)]
								 : "..");
	return arena_memdup0(&run->arena, text, len);
}

static struct value path(struct run *run)
{
	return value_str(&run->arena, draw_path(run));
}

static struct value fd(struct run *run)
{
	return value_int((int64_t)rng_below(&run->rng, FDS_MAX));
}

static struct value dirfd(struct run *run)
{
	return rng_below(&run->rng, 3) ? value_int(AT_FDCWD) : fd(run);
}

static struct value pick(struct run *run, const uint64_t *of, unsigned int n)
{
	return value_uint(of[rng_below(&run->rng, n)]);
}

#define PICK(run, ...)                                                                             \
	pick(run, (const uint64_t[]){ __VA_ARGS__ },                                               \
	     sizeof((const uint64_t[]){ __VA_ARGS__ }) / sizeof(uint64_t))

/*
 * What a call is drawn with, a letter for each argument:
 *
 *   p path   f descriptor   d descriptor of a directory or AT_FDCWD   . nothing
 *   n count  b bytes, and their count in the next   o offset   w whence   m mode
 *   others: one of a few sets of flags
 */
static const struct drawn {
	uint16_t row;
	uint8_t weight;
	const char *args;
} drawn[] = {
	{ SC_openat, 3, "dpEm" },   { SC_open, 1, "pOm" },  { SC_close, 2, "f" },
	{ SC_dup, 1, "f" },	    { SC_dup2, 1, "ff" },   { SC_read, 1, "f.n" },
	{ SC_write, 1, "fb." },	    { SC_mkdir, 1, "pm" },  { SC_pread64, 1, "f.no" },
	{ SC_pwrite64, 1, "fb.o" }, { SC_rmdir, 1, "p" },   { SC_unlink, 2, "p" },
	{ SC_rename, 2, "pp" },	    { SC_link, 1, "pp" },   { SC_renameat2, 1, "dpdpR" },
	{ SC_symlink, 1, "pp" },    { SC_stat, 1, "p" },    { SC_lstat, 1, "p" },
	{ SC_fstat, 1, "f" },	    { SC_chdir, 1, "p" },   { SC_ftruncate, 1, "fo" },
	{ SC_lseek, 1, "fow" },	    { SC_fchdir, 1, "f" },  { SC_linkat, 1, "dpdpL" },
	{ SC_chmod, 1, "pm" },	    { SC_access, 1, "pA" }, { SC_truncate, 1, "po" },
	{ SC_unlinkat, 1, "dpU" },  { SC_umask, 1, "K" },   { SC_fsync, 1, "f" },
	{ SC_sync, 1, "" },	    { SC_syncfs, 1, "f" },
};

static struct value draw_flags(struct run *run, char letter)
{
	switch (letter) {
	case 'O':
		return PICK(run, O_RDONLY, O_RDWR, O_RDWR | O_CREAT, O_WRONLY | O_CREAT | O_TRUNC);
	case 'E':
		return PICK(run, O_RDONLY, O_RDWR | O_CREAT, O_RDWR | O_CREAT | O_EXCL,
			    O_RDWR | O_CREAT | O_APPEND, O_RDONLY | O_DIRECTORY);
	case 'R':
		return PICK(run, RENAME_EXCHANGE, RENAME_NOREPLACE, 0);
	case 'L':
		return PICK(run, 0, AT_SYMLINK_FOLLOW);
	case 'U':
		return PICK(run, 0, AT_REMOVEDIR);
	case 'K':
		return PICK(run, 022, 077, 0);
	case 'A':
		return value_uint(R_OK);
	case 'w':
		return PICK(run, SEEK_SET, SEEK_CUR, SEEK_END);
	default:
		abort();
	}
}

static struct value draw_value(struct run *run, char letter)
{
	switch (letter) {
	case 'p':
		return path(run);
	case 'f':
		return fd(run);
	case 'd':
		return dirfd(run);
	case 'n':
		return value_uint(rng_below(&run->rng, 64));
	case 'o':
		return value_int((int64_t)rng_below(&run->rng, 200));
	case 'm':
		return PICK(run, 0755, 0644, 0644, 0700, 0);
	default:
		return draw_flags(run, letter);
	}
}

static const struct drawn *draw_row(struct run *run)
{
	unsigned int all = 0, at, i;

	for (i = 0; i < sizeof(drawn) / sizeof(*drawn); i++)
		all += drawn[i].weight;
	at = rng_below(&run->rng, all);
	for (i = 0; at >= drawn[i].weight; i++)
		at -= drawn[i].weight;
	return &drawn[i];
}

static void draw_call(struct run *run, struct event *ev)
{
	static const uint8_t bytes[64];
	const struct drawn *d = draw_row(run);
	unsigned int i;

	ev->row = row_by_id(d->row);
	for (i = 0; d->args[i]; i++) {
		if (d->args[i] == 'b') {
			ev->args[i + 1] = draw_value(run, 'n');
			ev->args[i] = value_bytes(&run->arena, bytes, ev->args[i + 1].u);
		} else if (d->args[i] != '.') {
			ev->args[i] = draw_value(run, d->args[i]);
		}
	}
}

/* Threads and processes. */

static struct actor *add_actor(struct run *run, uint32_t pid, uint32_t tid)
{
	struct actor *a = &run->actors[run->nr_actors++];

	*a = (struct actor){ .pid = pid, .tid = tid };
	a->stream = trace_feed_open_stream(run->feed, pid, tid);
	return a;
}

static void put_start(struct run *run, const struct actor *a, uint32_t parent, uint64_t flags)
{
	struct event ev = { .row = row_by_id(EV_thread_start) };

	ev.args[0] = value_int(parent);
	ev.args[1] = value_uint(flags);
	ev.args[2] = value_str(&run->arena, "random");
	ev.args[3] = value_int(parent ? START_CLONE : START_LAUNCH);
	put(run, a, &ev);
}

/* A new thread of the same process, or a new process. */
static void put_clone(struct run *run, unsigned int by)
{
	bool fork = rng_below(&run->rng, 2);
	uint64_t flags =
		fork ? 17 : CLONE_VM | CLONE_FS | CLONE_FILES | CLONE_SIGHAND | CLONE_THREAD;
	uint32_t tid = run->next_tid++, pid = fork ? tid : run->actors[by].pid;
	struct event ev = { .row = row_by_id(SC_clone), .outcome.ret = tid };
	struct actor *child;

	if (run->nr_actors == THREADS_MAX)
		return;
	ev.args[0] = value_uint(flags);
	ev.args[1] = (struct value){ .type = VALUE_NULL };
	ev.args[3] = (struct value){ .type = VALUE_NULL };
	ev.args[4] = (struct value){ .type = VALUE_NULL };
	put(run, &run->actors[by], &ev);
	child = add_actor(run, pid, tid);
	put_start(run, child, run->actors[by].tid, flags);
}

static void put_exit(struct run *run, unsigned int who)
{
	struct actor *a = &run->actors[who];
	struct event ev = { .row = row_by_id(EV_thread_exit) };

	ev.args[0] = value_int(0);
	ev.args[1] = value_int(0);
	ev.args[2] = value_int(0);
	put(run, a, &ev);
	must(trace_feed_close_stream(run->feed, a->stream), NULL);
	*a = run->actors[--run->nr_actors];
}

static void put_tree(struct run *run, const char *name, unsigned int type)
{
	struct item item = { .row = row_by_id(REC_tree_entry) };
	struct value *f;

	item.args[0] = value_int(0);
	item.args[1] = value_str(&run->arena, name);
	item.args[2] = value_struct(&run->arena, 0x1f); /* type, mode, uid, gid, size */
	f = item.args[2].fields->items;
	f[0] = value_int(type);
	f[1] = value_uint(type == 2 ? S_IFDIR | 0755 : S_IFREG | 0644);
	f[2] = value_uint(0);
	f[3] = value_uint(0);
	f[4] = value_uint(type == 2 ? 0 : 100);
	fsmodel_add_tree(run->model, &item);
	must(trace_feed_item(run->feed, &item), NULL);
}

static void begin(struct run *run)
{
	struct event state = { .row = row_by_id(EV_found_state) };
	struct actor *first;

	put_tree(run, "/", 2);
	put_tree(run, "/t", 2);
	put_tree(run, "/t/a", 2);
	put_tree(run, "/t/b", 1);
	must(trace_feed_meta(run->feed, "cwd", "/t"), NULL);
	first = add_actor(run, run->next_tid, run->next_tid);
	run->next_tid++;
	put_start(run, first, 0, 0);
	state.args[0] = value_str(&run->arena, "/t");
	state.args[1] = value_str(&run->arena, "/");
	state.args[2] = value_uint(022);
	put(run, first, &state);
}

void program_write_trace(const struct program_options *o, const char *path_of_trace)
{
	struct fsmodel_options model = { .execute = true, .tree_known = true };
	struct trace_writer_options writer = { .replace = true };
	struct run run = { .rng.state = o->seed * 2654435761u + 88172645463325252ull,
			   .next_tid = 100 };
	struct err err = { "" };

	run.model = fsmodel_new(&model);
	arena_init(&run.arena);
	must(trace_writer_open(path_of_trace, &writer, &run.writer, &err), &err);
	run.feed = trace_writer_add_feed(run.writer);
	begin(&run);
	for (unsigned int i = 0; i < o->nr_calls; i++) {
		unsigned int who = rng_below(&run.rng, run.nr_actors);
		struct event ev = { .outcome.ret = -1 };

		arena_reset(&run.arena);
		if (run.nr_actors < o->nr_threads || !rng_below(&run.rng, 40)) {
			put_clone(&run, who);
		} else if (run.nr_actors > 1 && !rng_below(&run.rng, 50)) {
			put_exit(&run, who);
		} else {
			draw_call(&run, &ev);
			put(&run, &run.actors[who], &ev);
		}
	}
	while (run.nr_actors)
		put_exit(&run, 0);
	must(trace_writer_close(run.writer, &err), &err);
	fsmodel_free(run.model);
	arena_release(&run.arena);
}

/* As a script. */

static enum arch script_arch(void)
{
#if defined(__aarch64__)
	return ARCH_AARCH64;
#else
	return ARCH_X86_64;
#endif
}

static void write_argument(const struct arg *arg, const struct value *v, unsigned int fill,
			   FILE *out)
{
	if (v->type == VALUE_INT)
		fprintf(out, " i%lld", (long long)v->i);
	else if (v->type == VALUE_DATA && arg->kind == KIND_PATH)
		fprintf(out, " s%.*s", (int)v->data->kept_bytes, (const char *)v->data->bytes);
	else if (v->type == VALUE_DATA)
		fprintf(out, " b%llu:%u", (unsigned long long)v->data->len_bytes, fill);
	else
		fprintf(out, " o%u", 4096u);
}

static void write_call(unsigned int who, const struct event *ev, unsigned int fill, FILE *out)
{
	fprintf(out, "%u call %d", who, row_nr(script_arch(), ev->row));
	for (unsigned int i = 0; i < ev->row->nr_args; i++) {
		if (ev->row->args[i].reg != REG_NONE)
			write_argument(&ev->row->args[i], &ev->args[i], fill, out);
	}
	fputc('\n', out);
}

/* Nobody knows here what calls will come to; so actors are all that is kept track of. */
void program_write_script(const struct program_options *o, FILE *out)
{
	struct run run = { .rng.state = o->seed * 2654435761u + 88172645463325252ull };
	unsigned int alive[THREADS_MAX] = { 0 }, nr_alive = 1, nr = 1;

	arena_init(&run.arena);
	for (unsigned int i = 0; i < o->nr_calls; i++) {
		unsigned int who = rng_below(&run.rng, nr_alive);
		struct event ev = { 0 };

		arena_reset(&run.arena);
		if ((nr_alive < o->nr_threads || !rng_below(&run.rng, 40)) &&
		    nr_alive < THREADS_MAX && nr < SCRIPT_ACTORS_MAX) {
			fprintf(out, "%u %s %u\n", alive[who],
				rng_below(&run.rng, 3) ? "thread" : "fork", nr);
			alive[nr_alive++] = nr++;
		} else if (nr_alive > 1 && !rng_below(&run.rng, 50)) {
			alive[who] = alive[--nr_alive];
		} else {
			draw_call(&run, &ev);
			if (ev.row->id == SC_sync)
				continue; /* of all that the machine has */
			write_call(alive[who], &ev, i % 255 + 1, out);
		}
	}
	arena_release(&run.arena);
}
