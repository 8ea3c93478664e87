/* SPDX-License-Identifier: MIT */
/* Threads alone keep their order: what goes wrong without any rule, and how fast. */
#include "order/order.h"

const struct order_policy order_none = {
	.name = "none",
	.summary = "each thread by itself",
};
