/* SPDX-License-Identifier: MIT */
/* Inside of the agent's host side. */
#ifndef RECORD_AGENT_INSIDE_H
#define RECORD_AGENT_INSIDE_H

#include <linux/futex.h>

#include "base/map.h"
#include "model/wire.h"
#include "record/agent/agent.h"
#include "record/agent/clocks.h"
#include "record/agent/copies.h"
#include "record/agent/maps.h"
#include "record/agent/net.h"
#include "record/agent/site_store.h"
#include "record/agent/sites.h"
#include "record/agent/ticks.h"
#include "record/memory.h"
#include "record/ptrace/tracer.h"

struct agent {
	uint64_t base; /* of its text, in all programs */
	struct wire_rule rules[WIRE_NR_RULES];
	struct wire_rule *watchful; /* the same while is_watching; NULL: not built yet */
	bool is_watching; /* files are mapped that programs can store to */
	bool has_variants[WIRE_NR_CALLS]; /* the row depends on the registers */
	bool is_taken[WIRE_NR_CALLS]; /* the agent records such calls, or some of them */
	struct copy copies[WIRE_COPIES_MAX]; /* of the record that is taken */
	struct clocks clocks;
	struct ticks ticks;
	bool serves_all; /* processes of several users */
	bool stays_out; /* of all processes from now on (agent_lose_counter) */
	bool runs_beside; /* there is more than one processor: a ring can be emptied while its thread waits */
	struct map programs; /* struct program_key -> struct agent_program: of auto (late.c) */
	struct map files; /* struct file_key -> struct text_file */
	unsigned int nr_open_files; /* of these: see agent_close_files() */
	struct site_store *store; /* of what is known of files; NULL: none */
	struct agent_image *images; /* all of them */
	uint64_t nr_images; /* that there were */
	uint64_t after_calls; /* of a process: then it gets the agent; 0: at its execve */
	struct tree_changes changes; /* that the agents know of */
	int common_fd;
	uint8_t *
		common; /* what all programs share (model/wire.h); NULL: no program has an agent yet */
	unsigned int nr_names, nr_dirs; /* in the sets there */
	struct agent_image *spare; /* memory of ended images, for the next ones */
	unsigned int nr_spare;
	struct net *net; /* NULL: no audit */
	uint64_t nr_events; /* that the agent recorded */
	uint64_t nr_missed; /* reads of memory that the agent should have copied */
	bool netless; /* threads run free, and the agent tells of calls (netless.c) */
	bool outlives; /* programs go on without us (outlive.c), for which there is this list */
	struct robust_list_head robust, *former;
	size_t former_bytes;
	unsigned int nr_entries;
};

/* An execve, and what was forked from it: they share the memory. */
struct agent_image {
	struct agent_image *next;
	unsigned int nr_spaces;
	int fd; /* of its memory */
	uint8_t *shared; /* here */
	uint64_t remote,
		common; /* there: its own memory, from its first slot on, and what all share */
	bool off;
	bool has_own_rules; /* the program has a copy of them */
	bool is_large; /* more of it was used than is worth clearing */
	bool slots[WIRE_NR_SLOTS]; /* taken; the first is for threads that find none free */
};

#define AREA_BYTES_OF_STUBS MAPS_GAP_BYTES
#define AREAS_MAX_OF_STUBS 16

struct stub_area {
	uint64_t start;
	uint32_t used_bytes;
};

/* A text that is mapped: sites [first, first + nr) of its file are in it. */
struct agent_text {
	struct text_file *file; /* the agent's */
	uint64_t start, end; /* there */
	uint64_t offset; /* of start, in the file */
	size_t first, nr; /* 0 as long as the file was not looked through */
	bool *patched; /* of each of these; ours */
};

/* Slots that are mapped side by side. */
struct slot_view {
	uint64_t remote; /* of the first */
	unsigned int first, end;
};

#define VIEWS_MAX 8

struct agent_space {
	unsigned int nr_threads;
	struct slot_view views[VIEWS_MAX];
	unsigned int nr_views;
	bool is_full; /* there will be no more of them */
	bool signalled; /* a handler may run, above a thread that was anywhere */
	bool lost_gs; /* the program uses it: all calls are made at their own places */
	struct agent_image *image;
	struct agent_program *program; /* whose calls are counted; the agent's; NULL: nobody's */
	uint64_t nr_calls;
	VEC(struct agent_text) texts;
	uint64_t loader_start, loader_end; /* text of the dynamic loader; 0: none */
	struct stub_area areas[AREAS_MAX_OF_STUBS];
	unsigned int nr_areas;
};

/* A call that a thread will make at its own place: by the instruction before ip, on this stack. */
struct awaited_call {
	uint64_t ip, sp;
};

/* Each but the last is that of a thread whose handler was interrupted in a call in turn. */
#define AWAITED_MAX 8

struct agent_thread {
	struct agent_space *space;
	unsigned int slot; /* 0: none */
	bool needs_gs;
	bool is_damaged; /* its ring: nothing more is taken from there */
	unsigned int nr_views; /* of its space, when it began to make a child */
	struct wire_block *block; /* here; NULL without a slot */
	const uint8_t *ring;
	uint64_t ring_bytes;
	uint64_t wait_ticks; /* of the block, when its ring cannot grow */
	uint64_t tail; /* bytes ever taken; the thread is told of them at times */
	uint64_t given_back;
	uint64_t stop_ns; /* of its last stop: what it records is later */
	struct awaited_call awaited[AWAITED_MAX]; /* the innermost last */
	unsigned int nr_awaited; /* as long as there are any, it does not run free (netless.c) */
	enum tree_plain plain; /* the names of the call that it is in, when it began: */
	struct tree_changes plain_at;
};

/* A process that has no agent yet, and may get one (late.c). */
#define HOPE_MAPS_MAX 64

struct hope_map {
	uint64_t start, len;
	uint64_t ip; /* from where it was made */
};

/* What is executed, and what it did so far. */
struct agent_program {
	bool is_known; /* a process of it has ended, or execs something else */
	uint64_t nr_calls; /* that its processes made, the last ones above all */
};

struct agent_hope {
	struct agent_program *program; /* the agent's; NULL for what was forked */
	uint64_t nr_calls; /* so far */
	uint64_t first_ip; /* where the image began: in its loader, if it has one */
	bool signalled; /* as of a space */
	unsigned int nr_maps;
	struct hope_map maps[HOPE_MAPS_MAX]; /* of text, since then */
};

/* A child with memory of its own may hope for what its parent could. */
void agent_hope_copy(struct tracee *parent, struct tracee *t);
/* A file was mapped as text. The thread has hope. */
void agent_hope_map(struct tracee *t, uint64_t start, uint64_t len, uint64_t ip);
void agent_hope_end(struct tracee *t);
/* An image of the program has ended that made so many calls. */
void agent_program_note(struct agent_program *p, uint64_t nr_calls);
void agent_programs_release(struct agent *a);

/* enter.c */

/*
 * The thread is stopped at the end of its execve, or (with the address of a syscall instruction
 * that it has) anywhere outside of calls. False: it is as it was.
 */
bool agent_enter_process(struct tracer *tr, struct tracee *t, uint64_t syscall);

/* image.c: memory. */

/* Memory for a program; NULL: none. */
struct agent_image *agent_new_image(struct agent *a);
/* New memory that another process has made gets this size for good; false: it is something else. */
MUST_CHECK bool agent_seal_memory(int fd, uid_t owner, uint64_t bytes);
/* It gets another one, of at least WIRE_IMAGE_BYTES, which is not used again; false: it has what it had. */
bool agent_image_adopt(struct agent *a, struct agent_image *im, int fd);
/* Its thread is gone. */
void agent_clear_slot(const struct agent_thread *at);
void agent_free_image(struct agent *a, struct agent_image *im);
void agent_images_release(struct agent *a);

/* slots.c */

struct wire_block *agent_block_of(const struct agent_image *im, unsigned int slot);
/* What a program maps of its image at first; when it has. */
uint64_t slots_first_bytes(const struct agent *a);
void slots_begin(const struct agent *a, struct agent_space *space);
/* In the program. */
uint64_t slots_address(const struct agent_space *space, unsigned int slot);
uint64_t slots_view_bytes(const struct slot_view *v);
/* 0: none. */
unsigned int slots_find_free(const struct agent_space *space);

/* agent.c */

/* All calls of the thread's image are the tracer's from now on. */
void agent_leave_calls(struct tracer *tr, const struct tracee *t);
/* Until that is so of all other threads of its image, or does not come to be. */
void agent_wait_for_others(struct tracer *tr, const struct tracee *t,
			   bool (*is_done)(const struct tracee *other));
/* The thread becomes one of this space, with a slot if one is free. */
void agent_join(struct tracer *tr, struct tracee *t, struct agent_space *space);

struct user_regs_struct;

/* edges.c: the thread is stopped to get a signal, and shall be where it would be without an agent. */
void edges_leave(struct tracer *tr, struct tracee *t);

/* remote.c: calls made by a stopped thread in its stead. Its registers are as before then. */

struct remote {
	const struct agent *a; /* NULL: without it */
	struct tracee *t;
	uint64_t at; /* of a syscall instruction */
};

/* What the call returned, or -errno when the thread could not be made to. */
int64_t remote_call(const struct remote *r, long nr, const uint64_t args[6]);
/*
 * A list of calls that the agent makes in one go: it stands there. -errno when
 * it could not be made to; what they returned is not looked at.
 */
#define REMOTE_LIST_MAX 16
int remote_make_list(const struct agent *a, struct tracee *t, uint64_t list, unsigned int nr,
		     int64_t *ret);
/* Whether that instruction stands there. */
bool remote_is_syscall(const struct tracee *t, uint64_t addr);
/*
 * The thread is stopped at the entry of a call, made by the instruction there: the call is
 * not made, and the thread stopped at that instruction, as it came to it. False: it is gone.
 */
bool remote_put_back(struct tracee *t, uint64_t syscall);
/* Writes where the program may not. */
bool remote_write(const struct tracee *t, uint64_t addr, const void *p, size_t len);
/* The same of a few bytes, by ptrace(2): for what must not fail. */
void remote_poke(const struct tracee *t, uint64_t addr, const void *p, size_t len);
bool remote_read(const struct tracee *t, uint64_t addr, void *p, size_t len);

/* texts.c: patching. */

/* A regular file by a name that may lead elsewhere at any moment; -1: it is none, or must not be opened. */
int agent_texts_open(struct tracer *tr, const struct tracee *t, const char *name);
/* A text of the file that the descriptor is of, which stands there from an offset on. */
void agent_texts_patch(struct tracer *tr, struct tracee *t, int fd, uint64_t start, uint64_t len,
		       uint64_t offset);
/* The loader has mapped a known one, without a stop; t->regs: that call's. It is patched later. */
struct stat;
void agent_texts_note(struct tracer *tr, struct tracee *t, const struct stat *st, uint64_t start);
/* Whether it may do that; the thread is stopped. */
void agent_texts_watch_loader(struct tracer *tr, struct tracee *t);
/* The site of a call that the thread is stopped in, if it can be; true when it is now, and was not before. */
bool agent_texts_patch_at(struct tracer *tr, struct tracee *t, uint64_t syscall);
/* All sites, while it can be done. ip: where the thread is; 0: in a call. */
void agent_texts_patch_all(struct tracer *tr, struct tracee *t, uint64_t ip);
/* What is known of a place from where the thread makes a call. */
enum text_state agent_texts_state(struct tracer *tr, struct tracee *t, uint64_t syscall);
#define AGENT_PLACE_MAX_BYTES 4200
/* FILE+0xOFFSET of an address; of what is no file its address. */
void agent_texts_name(const struct tracee *t, uint64_t addr, char ret[AGENT_PLACE_MAX_BYTES]);
/* For a space that was forked. */
void agent_texts_copy(const struct agent_space *from, struct agent_space *to);
void agent_texts_forget(struct agent_space *space);
/* All that the kernel has mapped at the execve; with hope, also what the loader has since then. */
void agent_texts_patch_image(struct tracer *tr, struct tracee *t, const struct agent_hope *hope,
			     const struct maps *m);
/* Room for stubs: the call that maps it there; when it has been made. */
struct wire_call agent_area_call(uint64_t at);
void agent_add_area(struct agent_space *space, uint64_t start);
void agent_texts_release(struct agent *a);

/* Of a site of a text. */
uint32_t agent_texts_site_nr(const struct agent_text *x, size_t i);
/* Whether all files that are mapped as text are looked after. */
bool agent_texts_are_known(const struct tracee *t);
/* Places of all files from which calls are not told of, as far as they are known. */
uint64_t agent_texts_nr_left(const struct agent *a);

/* dump.c */

/* The thread, which has an agent, is stopped to get a signal: if that ends it with a core dump, ours is not in it. */
void dump_leave_out(struct tracer *tr, struct tracee *t);

/* netless.c */

/* The thread is stopped in telling of a call: from there it goes on as in that call. */
void netless_begin_call(struct tracee *t, struct user_regs_struct *regs);
/* The thread's image is about to be turned off: its other threads are stopped, as far as they may be. */
void netless_stop_others(struct tracer *tr, const struct tracee *t);
/* The agent has entered: it leaves again where it could not be told of texts. */
void netless_check_image(struct tracer *tr, struct tracee *t);
/* Calls that are not wanted are not told of. */
void netless_free_calls(struct agent *a, const bool *wanted);

/* outlive.c */

void outlive_init(struct agent *a);
void outlive_release(struct agent *a);
/* The memory behind the descriptor, for a new image; NULL: it cannot be had. */
uint8_t *outlive_map(struct agent *a, int fd);
void outlive_unmap(struct agent *a, uint8_t *shared);
/* The word that says whether we live; where the program finds it, 0: it does not look. */
uint32_t outlive_word(const struct agent *a);
uint64_t outlive_master(const struct agent *a, const struct agent_image *im);
/* From begin to end the thread's process cannot go on without us. */
void outlive_guard(struct tracer *tr, const struct tracee *t, bool begin);
/* The instruction by which stopped threads make calls for us. */
uint64_t outlive_remote(const struct agent *a);
/* Where stubs jump to. */
uint64_t outlive_entry(const struct agent *a);

/* names.c: the sets of names and directories. */

/* What names mean to a thread now; for its block. */
struct wire_where names_where(const struct agent *a, const struct tracee *t);
/* The loader may map the file without a stop. */
void names_add_text(struct agent *a, uint64_t dev, uint64_t ino);

/* choice.c: chosen paths. */

/* The thread has a block: nothing is known of its descriptors. */
void choice_begin(const struct tracer *tr, const struct tracee *t);

/* drain.c: records. */

/* Takes records until so many bytes are, of a thread that runs or is stopped. How many they were. */
#define DRAIN_ALL UINT64_MAX
uint64_t drain_thread(struct tracer *tr, struct tracee *t, uint64_t most);
/* The thread is stopped outside of the agent, and its ring is empty: if it had no room, it gets more. */
void drain_grow_ring(struct agent_thread *at);
/* The program has written into its ring or its block: what is there is lost, and it gets no more. */
void drain_give_up(struct tracer *tr, struct tracee *t);
/*
 * The call whose record begins at call_head, and is not published, becomes the
 * one that the tracer follows. False: it is damaged, left out, or another call has begun.
 * result: 0 if the call is being made.
 */
MUST_CHECK bool drain_begin_call(struct tracer *tr, struct tracee *t, uint64_t call_head,
				 int64_t result);

#endif
