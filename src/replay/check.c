/* SPDX-License-Identifier: MIT */
/*
 * Outcomes against the recorded ones. Runs on a lane, after the others were told
 * that the action is done. The first mismatches of a run are kept whole.
 */
#include <errno.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/banned.h"
#include "base/privileged.h"
#include "plan/result.h"
#include "replay/calls.h"
#include "replay/found.h"

const char *const run_mismatch_keys[RUN_MISMATCH_MAX] = {
#define MISMATCH(name, key, words) [RUN_MISMATCH_##name] = (key),
#include "replay/mismatches.def"
#undef MISMATCH
};

const char *const run_mismatch_words[RUN_MISMATCH_MAX] = {
#define MISMATCH(name, key, words) [RUN_MISMATCH_##name] = (words),
#include "replay/mismatches.def"
#undef MISMATCH
};

/* Whether it gave back something that can be looked at, also where a failure was recorded. */
static bool has_result(const struct lane *l, const struct ready *a, const struct outcome *got,
		       enum run_mismatch_kind kind)
{
	const struct row *row = row_by_id(a->row_id);

	if (got->err || (a->flags & READY_RESULT))
		return !got->err;
	if (kind != RUN_MISMATCH_SUCCEEDED || !a->out || (a->flags & READY_SINK) ||
	    l->run->o->verify != RUN_VERIFY_DATA || !l->run->engine->gives_back)
		return false;
	return row_class(row) == C_META || row_class(row) == C_NAME || row_class(row) == C_XATTR ||
	       row->result == RESULT_BYTES_READ;
}

static void keep(struct lane *l, const struct ready *a, const struct outcome *got, uint64_t nr,
		 enum run_mismatch_kind kind)
{
	struct run_result *res = l->run->res;
	uint64_t i, n = atomic_fetch_add(&res->nr_mismatches, 1);
	struct run_mismatch *m = &res->mismatches[n < RUN_MISMATCHES_KEPT ? n : 0];

	atomic_fetch_add(&res->mismatches_by_kind[kind], 1);
	if (got->err == EMFILE)
		atomic_fetch_add(&res->nr_over_files, 1);
	if (n >= RUN_MISMATCHES_KEPT)
		return;
	m->kind = kind;
	m->plan = (uint32_t)(l->plan - l->run->plans);
	m->lane = l->number;
	m->pid = a->pid;
	m->tid = a->tid;
	m->nr = nr;
	m->seq = a->seq;
	m->origin = a->origin;
	m->row_id = a->row_id;
	m->expected = a->expected;
	m->got = *got;
	if (has_result(l, a, got, kind))
		found_keep(l, a, got, &m->found);
	m->nr_edges = a->nr_edges;
	for (i = 0; i < a->nr_edges && i < RUN_MISMATCH_EDGES; i++)
		m->edges[i] = a->edges[i];
	atomic_store_explicit(&m->whole, 1, memory_order_release);
}

static void mismatch(struct lane *l, const struct ready *a, const struct outcome *got, uint64_t nr,
		     enum run_mismatch_kind kind, struct note *note)
{
	note->flags |= NOTE_MISMATCH;
	keep(l, a, got, nr, kind);
	if (l->run->o->on_mismatch == RUN_MISMATCH_STOP)
		run_stop(l->run, RUN_MISMATCHED);
}

bool check_value_matters(const struct row *row)
{
	switch ((enum row_result)row->result) {
	case RESULT_BYTES_READ:
	case RESULT_BYTES_WRITTEN:
	case RESULT_BYTES_COPIED:
	case RESULT_OFFSET:
	case RESULT_MODE:
	case RESULT_VALUE:
		return true;
	case RESULT_COUNT:
		return row_class(row) != C_DIR; /* bytes of a listing are the file system's own */
	default:
		return false;
	}
}

enum run_mismatch_kind check_kind_of_error(int32_t want_err, int32_t got_err)
{
	if (want_err == got_err)
		return RUN_MISMATCH_MAX;
	if (want_err && got_err)
		return RUN_MISMATCH_OTHER_ERROR;
	switch (want_err ? want_err : got_err) {
	case EOPNOTSUPP:
	case ENOSYS:
	case ENOTTY:
		return RUN_MISMATCH_UNSUPPORTED;
	}
	return got_err ? RUN_MISMATCH_FAILED : RUN_MISMATCH_SUCCEEDED;
}

const char *const run_strangers[RUN_STRANGERS] = { ".reprise", "lost+found" };

/* Offsets in a directory are cookies of the file system. */
static void forget_listing(struct lane *l, const struct ready *a)
{
	struct slot *s = call_slot(l, a, 0);

	if (s)
		slot_forget_listing(s);
}

/* Where the entries of a directory and the holes of a file are is the target's own affair. */
static bool is_targets_affair(const struct ready *a, const struct outcome *got)
{
	const struct outcome *want = &a->expected;
	struct stat st;

	if (a->row_id != SC_lseek)
		return false;
	if (call_asks_for_holes(a))
		return (!want->err || want->err == ENXIO) && (!got->err || got->err == ENXIO);
	return !want->err && !got->err && want->ret && !fstat((int)a->regs[0], &st) &&
	       S_ISDIR(st.st_mode);
}

void check_outcome(struct lane *l, const struct ready *a, const struct outcome *got, uint64_t nr,
		   struct note *note)
{
	const struct row *row = row_by_id(a->row_id);
	const struct outcome *want = &a->expected;
	enum run_mismatch_kind kind;

	l->sums.nr_verified++;
	if (UNLIKELY(a->row_id == SC_lseek))
		forget_listing(l, a);
	if (LIKELY(want->err == got->err && want->ret == got->ret))
		return;
	if (is_targets_affair(a, got))
		return;
	kind = check_kind_of_error(want->err, got->err);
	if (kind != RUN_MISMATCH_MAX && !(got->err && want->err == ERRNO_UNKNOWN))
		mismatch(l, a, got, nr, kind, note);
	else if (!got->err && check_value_matters(row)) {
		bool bytes = row->result <= RESULT_BYTES_COPIED;

		mismatch(l, a, got, nr,
			 !bytes			? RUN_MISMATCH_OTHER_VALUE
			 : got->ret < want->ret ? RUN_MISMATCH_SHORT
						: RUN_MISMATCH_LONG,
			 note);
	}
}

static bool lists_root(struct lane *l, const struct ready *a)
{
	const struct stat *root = &l->run->root_stat;
	struct stat st;

	return !fstat((int)a->regs[0], &st) && st.st_dev == root->st_dev &&
	       st.st_ino == root->st_ino;
}

static void note_strangers(struct lane *l, const struct ready *a, struct slot *s, size_t len)
{
	struct hash128 h;
	unsigned int i;

	if (!lists_root(l, a))
		return;
	for (i = 0; i < RUN_STRANGERS; i++) {
		if (result_find_dirent(a->out, len, a->row_id == SC_getdents, run_strangers[i],
				       &h)) {
			s->strange[2 * i] = h.low;
			s->strange[2 * i + 1] = h.high;
		}
	}
}

/* With or without each of the strangers: the program may have met one that is called the same. */
static bool sums_equal(const struct slot *s)
{
	unsigned int set, i;

	for (set = 0; set < 1U << RUN_STRANGERS; set++) {
		uint64_t low = s->listed[2], high = s->listed[3];

		for (i = 0; i < RUN_STRANGERS; i++) {
			if (set & (1U << i)) {
				low -= s->strange[2 * i];
				high -= s->strange[2 * i + 1];
			}
		}
		if (low == s->listed[0] && high == s->listed[1])
			return true;
	}
	return false;
}

void check_odd(struct lane *l, const struct ready *a, uint64_t nr, struct note *note)
{
	struct ready shown = *a;

	shown.expected = l->odd.expected;
	shown.flags &= (uint16_t)~READY_RESULT; /* what it gave back is not the request's */
	shown.out = NULL;
	mismatch(l, &shown, &l->odd.got, nr, l->odd.kind, note);
	l->odd.is_set = false;
}

/* The call is one of the listing's. */
static void add_recorded(struct slot *s, const struct ready *a)
{
	s->listed[0] += a->result.low;
	s->listed[1] += a->result.high;
	if (!s->listed_by) {
		s->listed_seq = a->seq;
		s->listed_by = (uint64_t)a->tid + 1;
	} else if (s->listed_by != (uint64_t)a->tid + 1) {
		s->listed_seq = 0;
	}
}

static void keep_listing(struct lane *l, const struct slot *s)
{
	unsigned int i;

	l->listing.recorded = (struct hash128){ .low = s->listed[0], .high = s->listed[1] };
	l->listing.found = (struct hash128){ .low = s->listed[2], .high = s->listed[3] };
	l->listing.first_seq = s->listed_seq;
	for (i = 0; i < RUN_STRANGERS; i++)
		l->listing.has_stranger[i] = s->strange[2 * i] || s->strange[2 * i + 1];
}

/*
 * A listing comes in as many parts as the file system likes, so only the whole
 * of it can be compared: at the recorded end, for which the rest is read here
 * when this file system needs more calls.
 */
static bool listing_equals(struct lane *l, const struct ready *a, const struct outcome *got)
{
	struct slot *s = call_slot(l, a, 0);
	bool old = a->row_id == SC_getdents;
	int64_t len = got->ret;
	bool equal;

	if (!s)
		return true;
	add_recorded(s, a);
	while (len > 0) {
		struct hash128 h = old ? result_hash_dirents(a->out, (size_t)len)
				       : result_hash_dirents64(a->out, (size_t)len);

		s->listed[2] += h.low;
		s->listed[3] += h.high;
		note_strangers(l, a, s, (size_t)len);
		if (a->expected.ret > 0)
			return true;
		len = syscall(a->nr, a->regs[0], a->regs[1], a->regs[2]);
	}
	if (a->expected.ret > 0)
		return true;
	equal = sums_equal(s);
	if (!equal)
		keep_listing(l, s);
	slot_forget_listing(s);
	return equal;
}

static bool data_equals(const struct ready *a, const struct outcome *got)
{
	uint64_t len = got->ret > 0 ? (uint64_t)got->ret : 0;

	if (!len && a->out_bytes == 0)
		return true; /* only the length was asked for */
	if (len > a->out_bytes)
		return true;
	return hash_equal(a->result, result_hash_data(a->out, len));
}

static bool lock_equals(const struct ready *a)
{
	struct hash128 h = result_hash_lock(a->out);

	return hash_equal(a->result, h) || (hash_equal(a->result, result_hash_some_lock()) &&
					    !hash_equal(h, result_hash_no_lock()));
}

/* Where bits that give rights are not applied, any of them may have been there. */
static bool stat_equals(const struct lane *l, const struct ready *a, const struct stat *got)
{
	static const mode_t any[] = { 0, S_ISUID, S_ISGID, PRIVILEGED_MODE_BITS };
	struct stat st = *got;
	unsigned int i;

	if (hash_equal(a->result, result_hash_stat(&st)))
		return true;
	for (i = 0; !l->run->o->privileged_metadata && i < ARRAY_LEN(any); i++) {
		st.st_mode = (got->st_mode & ~PRIVILEGED_MODE_BITS) | any[i];
		if (hash_equal(a->result, result_hash_stat(&st)))
			return true;
	}
	return false;
}

/* Of statx() the same is compared. */
static bool statx_equals(const struct lane *l, const struct ready *a, const struct statx *got)
{
	const struct stat st = { .st_mode = got->stx_mode,
				 .st_size = (off_t)got->stx_size,
				 .st_rdev = makedev(got->stx_rdev_major, got->stx_rdev_minor) };
	struct hash128 h;

	return !result_hash_statx(got, &h) || stat_equals(l, a, &st);
}

static bool result_equals(struct lane *l, const struct ready *a, const struct outcome *got)
{
	switch (a->row_id) {
	case SC_stat:
	case SC_lstat:
	case SC_fstat:
	case SC_newfstatat:
		return stat_equals(l, a, a->out);
	case SC_statx:
		return statx_equals(l, a, a->out);
	case SC_getdents:
	case SC_getdents64:
		return listing_equals(l, a, got);
	case SC_listxattr:
	case SC_llistxattr:
	case SC_flistxattr:
	case SC_listxattrat:
		return (uint64_t)got->ret > a->out_bytes ||
		       hash_equal(a->result, result_hash_names(a->out, (size_t)got->ret));
	case SC_fcntl_getlk:
	case SC_fcntl_ofd_getlk:
		return lock_equals(a);
	case SC_readv:
	case SC_preadv:
	case SC_preadv2:
		return hash_equal(a->result, result_hash_vec((const struct iovec *)a->regs[1],
							     a->regs[2], (uint64_t)got->ret));
	default:
		return data_equals(a, got);
	}
}

void check_result(struct lane *l, const struct ready *a, const struct outcome *got, uint64_t nr,
		  struct note *note)
{
	if (got->err)
		return;
	l->sums.nr_results++;
	if (result_equals(l, a, got))
		note->flags |= NOTE_RESULT;
	else
		mismatch(l, a, got, nr, RUN_MISMATCH_OTHER_RESULT, note);
}
