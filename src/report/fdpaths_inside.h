/* SPDX-License-Identifier: MIT */
/* What the files of the tracker share: fdpaths.h says what it is. */
#ifndef REPORT_FDPATHS_INSIDE_H
#define REPORT_FDPATHS_INSIDE_H

#include "base/map.h"
#include "report/fdpaths.h"

/* fdpaths_table.c: descriptors and the directories of processes. */

#define PAGE_SLOTS 64

struct slot {
	struct fd_file *now, *before;
	uint64_t since_ns; /* now counts from here on, before until then */
	bool cloexec;
};

struct page {
	struct slot slots[PAGE_SLOTS];
};

struct table {
	uint32_t refs;
	uint32_t nr_pages;
	struct page **pages; /* NULL where nothing was ever open */
};

struct cwd {
	uint32_t refs;
	struct fd_file *dir; /* NULL: not known */
};

/* Lives as long as the tracker, also when the process is gone: streams point here. */
struct process {
	uint32_t pid;
	bool dead, inherited;
	uint32_t nr_streams;
	uint64_t born_ns;
	struct table *table;
	struct cwd *cwd;
};

#define NO_ARG 0xff

/* What is worth knowing of a row, found out when it first appears. */
struct row_facts {
	uint8_t effect;
	uint8_t path_arg; /* the last name of a file */
	uint8_t list_arg; /* the list of new descriptors */
	uint8_t flags_arg;
	uint64_t cloexec_bit; /* in flags */
};

struct fdpaths {
	struct trace *trace;
	struct map processes; /* by pid */
	struct process **by_stream;
	size_t nr_streams;
	uint64_t used_bytes, nr_forgotten;
	struct fd_file
		*first_cwd; /* of processes that nobody is known to have started; may be NULL */
	struct buf path; /* scratch */
	struct row_facts facts[ROW_ID_MAX];
};

/* False: there is none to be had; what it was for is forgotten. */
bool take_memory(struct fdpaths *p, size_t bytes);
struct fd_file *file_new(struct fdpaths *p, const void *path, size_t len);
struct fd_file *file_get(struct fd_file *f);
void file_put(struct fdpaths *p, struct fd_file *f);
struct slot *slot_find(const struct table *t, int64_t fd);
/* Takes over the reference to f. What happened before the slot's last change is history. */
void slot_set(struct fdpaths *p, struct table *t, int64_t fd, struct fd_file *f, uint64_t when_ns);
void set_cloexec(struct table *t, int64_t fd, bool cloexec);
struct table *table_new(void);
void table_put(struct fdpaths *p, struct table *t);
/* What `to` has already is newer, and stays. */
void table_copy(struct fdpaths *p, struct table *to, const struct table *from);
/* These take over the reference to dir. */
struct cwd *cwd_new(struct fd_file *dir);
void cwd_set(struct fdpaths *p, struct cwd *c, struct fd_file *dir);
void cwd_put(struct fdpaths *p, struct cwd *c);

/* Calls body for every slot of a table, with its descriptor. */
#define TABLE_EACH(t, slot, fd)                                                                    \
	for (int64_t fd = 0; fd < (int64_t)(t)->nr_pages * PAGE_SLOTS; fd++)                       \
		for (struct slot *slot = slot_find((t), fd); slot; slot = NULL)

/* fdpaths.c: processes and names. */

struct process *process_find(const struct fdpaths *p, uint32_t pid);
struct process *process_make(struct fdpaths *p, uint32_t pid);
/* The process as it begins: with what it has from its parent, if that is known. */
void process_begin(struct fdpaths *p, struct process *proc, struct process *parent,
		   uint64_t clone_flags, uint64_t now_ns);
void process_empty(struct fdpaths *p, struct process *proc);
/* The processes whose descriptors can be looked up. */
struct process *live_process_of(struct fdpaths *p, const struct event *ev);
/* The bytes of a name, as far as they were kept. */
bool load_name(struct fdpaths *p, const struct value *v, const char **ret, size_t *ret_len);

#endif
