/* SPDX-License-Identifier: MIT */
/* One lane does it all, one after the other, in effect order. */
#include "order/order.h"

const struct order_policy order_single = {
	.name = "single",
	.summary = "one lane, one action after the other",
	.one_lane = true,
};
