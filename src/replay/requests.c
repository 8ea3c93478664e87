/* SPDX-License-Identifier: MIT */
#include "replay/requests.h"

#include <errno.h>

#include "base/banned.h"

/* Ends that were a matter of time, there as here. */
static bool is_free(int64_t res)
{
	return res == -ECANCELED || res == -EAGAIN || res == -EINTR || res == -ETIME;
}

static enum run_mismatch_kind kind_of(const struct completion *want,
				      const struct request_result *got)
{
	if (is_free(want->res))
		return RUN_MISMATCH_MAX;
	if (got->res < 0 && want->res >= 0)
		return RUN_MISMATCH_FAILED;
	if (got->res >= 0 && want->res < 0)
		return RUN_MISMATCH_SUCCEEDED;
	if (got->res < 0)
		return got->res != want->res ? RUN_MISMATCH_OTHER_ERROR : RUN_MISMATCH_MAX;
	if (want->counts_bytes && got->res != want->res)
		return got->res < want->res ? RUN_MISMATCH_SHORT : RUN_MISMATCH_LONG;
	if (want->has_hash && got->has_hash && !hash_equal(want->hash, got->hash))
		return RUN_MISMATCH_OTHER_RESULT;
	return RUN_MISMATCH_MAX;
}

static struct outcome outcome_of(int64_t res)
{
	return (struct outcome){ .ret = res < 0 ? -1 : res, .err = res < 0 ? (int32_t)-res : 0 };
}

void requests_compare(struct lane *l, const struct completion *want,
		      const struct request_result *got)
{
	enum run_mismatch_kind kind = kind_of(want, got);

	l->sums.nr_verified++;
	l->sums.nr_results += want->has_hash && got->has_hash;
	if (kind == RUN_MISMATCH_MAX || l->odd.is_set)
		return;
	l->odd = (struct lane_odd){ .is_set = true,
				    .kind = kind,
				    .expected = outcome_of(want->res),
				    .got = outcome_of(got->res) };
}

void requests_complete(struct lane *l, struct slot *ring, const struct completions *all)
{
	struct ring_results *results = ring ? atomic_load(&ring->results) : NULL;
	uint32_t i;

	for (i = 0; results && i < all->nr; i++) {
		const struct completion *want = &all->items[i];
		struct request_result *got = &results->items[want->number % RING_RESULTS];

		if (got->number == want->number + 1) {
			requests_compare(l, want, got);
			got->number = 0;
		}
	}
}

void requests_complete_aio(struct lane *l, const struct completions *all)
{
	uint32_t i;

	for (i = 0; i < all->nr; i++) {
		struct slot *s = &l->run->slots[all->items[i].number];
		struct request_result got = { .res = atomic_load(&s->aio_res) };

		if (atomic_exchange(&s->has_aio_res, 0))
			requests_compare(l, &all->items[i], &got);
	}
}
