/* SPDX-License-Identifier: MIT */
/* How calls find the file that they are about: by a path, or by a descriptor. */
#ifndef FSMODEL_CALLS_META_H
#define FSMODEL_CALLS_META_H

#include "fsmodel/inside.h"

struct meta_find {
	const char *flags; /* name of the argument with AT_* flags; NULL: none */
	uint32_t allowed; /* of them; others are EINVAL */
	bool any_open; /* also descriptors that are open with O_PATH */
	bool null_path; /* a null pointer with AT_EMPTY_PATH is an empty path */
	uint32_t touch; /* how the file is touched */
};

/* Into c->at. 0 or errno. */
int meta_find(struct call *c, const struct meta_find *how);

#endif
