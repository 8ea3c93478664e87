/* SPDX-License-Identifier: MIT */
#include "replay/requests.h"

#include <errno.h>

#include "base/banned.h"
#include "plan/result.h"

struct request_result request_result_of(const struct request *q, int64_t res)
{
	struct request_result got = { .res = res };

	got.has_hash = q->data && res > 0;
	if (got.has_hash)
		got.hash = result_hash_data(q->data, (uint64_t)res);
	return got;
}

/* Ends that were a matter of time, there as here. */
static bool is_free(int64_t res)
{
	return res == -ECANCELED || res == -EAGAIN || res == -EINTR || res == -ETIME;
}

static struct outcome outcome_of(int64_t res)
{
	return (struct outcome){ .ret = res < 0 ? -1 : res, .err = res < 0 ? (int32_t)-res : 0 };
}

static enum run_mismatch_kind kind_of(const struct completion *want,
				      const struct request_result *got)
{
	if (is_free(want->res))
		return RUN_MISMATCH_MAX;
	if (got->res < 0 || want->res < 0)
		return check_kind_of_error(outcome_of(want->res).err, outcome_of(got->res).err);
	if (want->counts_bytes && got->res != want->res)
		return got->res < want->res ? RUN_MISMATCH_SHORT : RUN_MISMATCH_LONG;
	if (want->has_hash && got->has_hash && !hash_equal(want->hash, got->hash))
		return RUN_MISMATCH_OTHER_RESULT;
	return RUN_MISMATCH_MAX;
}

void request_compare(struct lane *l, const struct completion *want,
		     const struct request_result *got)
{
	enum run_mismatch_kind kind = kind_of(want, got);

	if (!want->is_verified)
		return;
	l->sums.nr_verified++;
	l->sums.nr_results += want->has_hash && got->has_hash;
	if (kind == RUN_MISMATCH_MAX || l->odd.is_set)
		return;
	l->odd = (struct lane_odd){ .is_set = true,
				    .kind = kind,
				    .expected = outcome_of(want->res),
				    .got = outcome_of(got->res) };
}
