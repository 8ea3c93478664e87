/* SPDX-License-Identifier: MIT */
#include "replay/build.h"

#include <errno.h>
#include <string.h>

#include "base/banned.h"
#include "base/privileged.h"
#include "plan/refs.h"
#include "replay/calls.h"

static void build_edges(struct builder *b)
{
	const struct action *act = b->act;
	struct run_edge *edges = build_alloc(b, act->nr_edges * sizeof(*edges), 8);
	uint32_t i;

	for (i = 0; edges && i < act->nr_edges; i++)
		edges[i] = (struct run_edge){ .lane = b->l->plan->lane_base + act->edges[i].lane,
					      .nr = act->edges[i].nr,
					      .rule = act->edges[i].rule,
					      .started = act->edges[i].started };
	b->a->edges = edges;
	b->a->nr_edges = act->nr_edges;
}

static bool names_privileged_xattr(const struct action *act)
{
	const struct value *name;

	if (row_class(act->row) != C_XATTR)
		return false;
	name = args_find(act->row, (struct value *)(uintptr_t)act->args, "name");
	return name && name->type == VALUE_DATA && name->data->bytes &&
	       privileged_xattr(name->data->bytes, (size_t)name->data->kept_bytes);
}

/* Sets attributes that are like rights: only where they were asked for. */
static bool is_privileged(const struct action *act)
{
	switch (act->row->id) {
	case SC_chown:
	case SC_lchown:
	case SC_fchown:
	case SC_fchownat:
		return true;
	default:
		break;
	}
	return act->row->result == RESULT_ZERO && names_privileged_xattr(act);
}

bool build_skips_reads(const struct run *run, const struct action *act)
{
	return !(act->flags & ACTION_SETUP) &&
	       (run->o->reads == RUN_READS_NONE ||
		(run->o->reads == RUN_READS_CACHE_MISSES && !(act->flags & ACTION_CACHE_MISS)));
}

static bool moves_offset(const struct action *act)
{
	const struct value *offset =
		args_find(act->row, (struct value *)(uintptr_t)act->args, "offset");

	return !offset || (act->row->id == SC_preadv2 && offset->i == -1);
}

static bool is_made(const struct run *run, const struct action *act)
{
	if (act->flags & (ACTION_SIMULATED | ACTION_ENFORCED))
		return false;
	if ((act->flags & ACTION_SHARED_FD) && act->row->id != SC_dup2 && act->row->id != SC_dup3)
		return false;
	if (row_class(act->row) == C_MAP && run->o->mmap == RUN_MMAP_SKIP)
		return call_follows_maps(act->row);
	return run->o->privileged_metadata || !is_privileged(act);
}

static uint64_t scaled(uint64_t ns, double factor)
{
	double f = (double)ns * factor;

	return f < 1e18 ? (uint64_t)f : (uint64_t)1e18;
}

/* A variant goes by the number of the call that it is one of. */
static int kernel_nr(const struct row *row)
{
	const struct row_variant *variant = row_variant_of(row);

	return row_nr(calls_arch(), variant ? row_by_id(variant->base) : row);
}

/* Of names, or of all that was written. */
static bool looks_at_names(const struct row *row)
{
	unsigned int i;

	for (i = 0; i < row->nr_args; i++)
		if (row->args[i].kind == KIND_PATH)
			return true;
	return row_class(row) == C_SYNC;
}

static void build_head(struct builder *b)
{
	const struct run *run = b->run;
	const struct action *act = b->act;
	struct ready *a = b->a;

	*a = (struct ready){
		.row_id = act->row->id,
		.nr = kernel_nr(act->row),
		.slots = { READY_NO_SLOT, READY_NO_SLOT },
		.pid = act->pid,
		.tid = act->tid,
		.seq = act->seq,
		.origin = act->origin,
		.original_ns = clock_sub_ns(act->exit_ns, act->enter_ns),
		.expected = act->outcome,
		.result = act->result,
	};
	a->enter_ns = scaled(clock_sub_ns(act->enter_ns, b->l->plan->first_ns), run->scale);
	a->before_ns = scaled(act->compute_before_ns, run->scale * run->scale_compute);
	a->after_ns = scaled(act->compute_after_ns, run->scale * run->scale_compute);
	if (act->flags & ACTION_SHARED_FD)
		a->flags |= READY_SHARED_FD;
	if (looks_at_names(act->row))
		a->flags |= READY_NAMES;
	if (!row_is_performed(act->row))
		a->flags |= READY_SEEN;
	if (act->flags & ACTION_SETUP)
		a->flags |= READY_SEEN | READY_SETUP;
	if (act->flags & ACTION_ENFORCED)
		a->flags |= READY_ENFORCED;
	if (is_made(run, act))
		a->fn = run->engine->find(act->row);
	if (act->flags & ACTION_STREAM) {
		a->flags |= READY_STREAM;
		if (a->fn && run->engine->gives_back && call_moves_through_stream(act->row))
			a->fn = call_stream;
	} else if (a->fn && act->row->result == RESULT_BYTES_READ && build_skips_reads(run, act)) {
		a->flags |= READY_SKIPPED;
		a->fn = run->engine->gives_back && moves_offset(act) ? call_seek_over : NULL;
	}
	if (plan_ret_is_slot(act->row) && !act->outcome.err)
		a->slots[0] = build_slot(b, act->outcome.ret);
}

static void set_checks(struct builder *b)
{
	const struct action *act = b->act;
	struct ready *a = b->a;

	if (!a->fn || (a->flags & READY_SKIPPED) || (act->flags & ACTION_ANY_OUTCOME) ||
	    b->run->o->verify == RUN_VERIFY_OFF)
		return;
	/* What this run does not set it does not find either. */
	if (!b->run->o->privileged_metadata && names_privileged_xattr(act))
		return;
	a->flags |= READY_VERIFY;
	if ((act->flags & ACTION_HAS_RESULT) && !(act->flags & ACTION_SETUP) &&
	    b->run->engine->gives_back && b->run->o->verify == RUN_VERIFY_DATA && a->out &&
	    !(a->flags & READY_SINK))
		a->flags |= READY_RESULT;
}

/* They were gathered apart, for nobody knew how many there would be. */
static void keep_patches(struct builder *b)
{
	struct ready *a = b->a;
	struct patch *kept = build_alloc(b, a->nr_patches * sizeof(*kept), 8);

	if (b->unbuilt) {
		a->fn = NULL;
		a->nr_patches = 0;
		a->flags = (uint16_t)((a->flags | READY_UNBUILT) & ~READY_FROM_FDS);
		return;
	}
	if (a->nr_patches)
		memcpy(kept, b->patches, a->nr_patches * sizeof(*kept));
	a->patches = kept;
}

int build_action(struct run *run, struct lane *l, const struct action *act, struct ready *a,
		 uint8_t *parts, uint64_t parts_bytes, uint64_t *ret_used, struct err *err)
{
	struct builder b = { .run = run,
			     .l = l,
			     .act = act,
			     .a = a,
			     .pos = parts,
			     .end = parts + parts_bytes,
			     .err = err };

	build_head(&b);
	build_edges(&b);
	if (a->fn) {
		b.patches = run->patch_room;
		b.max_patches = RUN_PATCHES_MAX;
		build_args(&b);
		build_more(&b);
		if (a->nr < 0 && a->fn == call_generic)
			b.unbuilt = true;
		keep_patches(&b);
	}
	set_checks(&b);
	*ret_used = (uint64_t)(b.pos - parts);
	return b.r;
}
