/* SPDX-License-Identifier: MIT */
/*
 * When the actions of each lane began and ended, for the policies that go by
 * time. A lane's history is bounded: of its older part every second action is
 * dropped, again and again, so that the past becomes coarser the longer ago it
 * is. An action that asks for so long ago waits for one a little earlier.
 */
#ifndef ORDER_HISTORY_H
#define ORDER_HISTORY_H

#include "order/users.h"

#define HISTORY_MAX 1024

struct past {
	uint64_t nr, enter_ns, exit_ns; /* neither time decreases in a lane */
};

struct history {
	struct lane_history {
		VEC(struct past) past;
	} * lanes;
	size_t nr_lanes;
};

void history_release(struct history *h);
/* Of each other lane the last action that had ended when this one began. */
void history_ask_ended(struct history *h, const struct order_input *in, const struct sink *sink,
		       enum rule rule);
/* The last to begin of those that had begun when this one began, and gone on; false: none. */
bool history_last_begun(struct history *h, const struct order_input *in, struct action_ref *ret);
void history_add(struct history *h, const struct order_input *in);

#endif
