/* SPDX-License-Identifier: MIT */
#include "order/futex_call.h"

#include <limits.h>

#include "model/fields.h"
#include "order/args.h"

/* How a row says it; names of arguments, NULL: it has none. */
struct form {
	uint16_t row;
	uint8_t what; /* enum futex_what */
	const char *count, *count2, *bitset;
};

static const struct form forms[] = {
	{ SC_futex_op_wait, FUTEX_WAITS, NULL, NULL, NULL },
	{ SC_futex_op_wait_bitset, FUTEX_WAITS, NULL, NULL, "val3" },
	{ SC_futex_wait, FUTEX_WAITS, NULL, NULL, "mask" },
	{ SC_futex_waitv, FUTEX_WAITS, NULL, NULL, NULL },
	{ SC_futex_op_wait_requeue_pi, FUTEX_WAITS, NULL, NULL, NULL },
	{ SC_futex_op_lock_pi, FUTEX_LOCKS, NULL, NULL, NULL },
	{ SC_futex_op_lock_pi2, FUTEX_LOCKS, NULL, NULL, NULL },
	{ SC_futex_op_trylock_pi, FUTEX_LOCKS, NULL, NULL, NULL },
	{ SC_futex_op_unlock_pi, FUTEX_UNLOCKS, NULL, NULL, NULL },
	{ SC_futex_op_wake, FUTEX_WAKES, "val", NULL, NULL },
	{ SC_futex_op_wake_bitset, FUTEX_WAKES, "val", NULL, "val3" },
	{ SC_futex_wake, FUTEX_WAKES, "nr", NULL, "mask" },
	{ SC_futex_op_requeue, FUTEX_REQUEUES, "val", "val2", NULL },
	{ SC_futex_op_cmp_requeue, FUTEX_REQUEUES, "val", "val2", NULL },
	{ SC_futex_op_cmp_requeue_pi, FUTEX_REQUEUES, "val", "val2", NULL },
	{ SC_futex_requeue, FUTEX_REQUEUES, "nr_wake", "nr_requeue", NULL },
	{ SC_futex_op_wake_op, FUTEX_WAKES_TWO, "val", "val2", NULL },
};

struct futex_key futex_key_local(uint32_t pid, uint64_t addr)
{
	return (struct futex_key){ .kind = addr ? FUTEX_KEY_LOCAL : FUTEX_KEY_NONE, pid, addr, 0 };
}

static bool has_number(const struct value *v, unsigned int n)
{
	return value_is_number(value_field(v, n));
}

static struct futex_key read_key(const struct value *v, struct futex_key otherwise)
{
	if (v && has_number(v, FIELD_OF(futex_key, space)) &&
	    has_number(v, FIELD_OF(futex_key, addr)))
		return (struct futex_key){ FUTEX_KEY_PRIVATE,
					   field_number(v, FIELD_OF(futex_key, space)),
					   field_number(v, FIELD_OF(futex_key, addr)), 0 };
	if (v && has_number(v, FIELD_OF(futex_key, ino)) &&
	    has_number(v, FIELD_OF(futex_key, offset)))
		return (struct futex_key){ FUTEX_KEY_SHARED,
					   field_number(v, FIELD_OF(futex_key, dev)),
					   field_number(v, FIELD_OF(futex_key, ino)),
					   field_number(v, FIELD_OF(futex_key, offset)) };
	return otherwise;
}

static const struct value *item(const struct value *list, uint64_t n)
{
	return list && list->type == VALUE_LIST && n < list->count ? &list->items[n] : NULL;
}

static void read_keys(const struct event *ev, struct futex_call *c)
{
	const struct value *waiters = event_arg(ev, "waiters"), *key = event_arg(ev, "key");
	uint64_t addr = event_number(ev, "uaddr"), addr2 = event_number(ev, "uaddr2");

	if (ev->row->id == SC_futex_waitv) {
		/* The result says which word it was. */
		uint64_t n = ev->outcome.err || ev->outcome.ret < 0 ? 0 : (uint64_t)ev->outcome.ret;

		addr = field_number(item(waiters, n), FIELD_OF(futex_waitv, uaddr));
		key = item(event_arg(ev, "keys"), n);
	} else if (waiters) {
		addr = field_number(item(waiters, 0), FIELD_OF(futex_waitv, uaddr));
		addr2 = field_number(item(waiters, 1), FIELD_OF(futex_waitv, uaddr));
	}
	c->local = futex_key_local(ev->pid, addr);
	c->key = read_key(key, c->local);
	c->key2 = read_key(event_arg(ev, "key2"), futex_key_local(ev->pid, addr2));
}

static uint32_t read_count(const struct event *ev, const char *name)
{
	uint64_t nr = name ? event_number(ev, name) : 0;

	/* The kernel takes them as int, and something below one as one. */
	return (int32_t)nr < 1 ? 1 : (uint32_t)nr;
}

static void read_counts(const struct event *ev, const struct form *form, struct futex_call *c)
{
	uint64_t ret = ev->outcome.err || ev->outcome.ret < 0 ? 0 : (uint64_t)ev->outcome.ret;
	uint32_t count = read_count(ev, form->count), count2 = 0;

	if (form->count2)
		count2 = (int32_t)event_number(ev, form->count2) > 0
				 ? (uint32_t)event_number(ev, form->count2)
				 : 0;
	if (ret > INT_MAX)
		ret = INT_MAX;
	switch (c->what) {
	case FUTEX_WAKES:
		c->nr_woken = (uint32_t)ret;
		c->all = count == INT_MAX || (ret >= 2 && ret < count);
		break;
	case FUTEX_REQUEUES:
		/* The result counts both. */
		c->nr_woken = ret < count ? (uint32_t)ret : count;
		c->nr_moved = (uint32_t)ret - c->nr_woken;
		c->all = count == INT_MAX || count2 == INT_MAX;
		break;
	case FUTEX_WAKES_TWO:
		c->nr_woken = (uint32_t)ret;
		break;
	case FUTEX_UNLOCKS:
		c->nr_woken = !ev->outcome.err;
		break;
	default:
		break;
	}
}

bool futex_call_read(const struct event *ev, struct futex_call *ret)
{
	const struct form *form = NULL;
	size_t i;

	if (row_class(ev->row) != C_WAIT)
		return false;
	for (i = 0; i < sizeof(forms) / sizeof(forms[0]) && !form; i++) {
		if (forms[i].row == ev->row->id)
			form = &forms[i];
	}
	if (!form)
		return false;
	*ret = (struct futex_call){ .what = form->what, .bitset = UINT32_MAX };
	read_keys(ev, ret);
	if (ret->key.kind == FUTEX_KEY_NONE)
		return false;
	if (form->bitset && event_arg(ev, form->bitset))
		ret->bitset = (uint32_t)event_number(ev, form->bitset);
	read_counts(ev, form, ret);
	ret->woken = event_arg(ev, "woken");
	if (ret->woken && ret->woken->type != VALUE_LIST)
		ret->woken = NULL;
	return true;
}
