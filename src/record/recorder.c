/* SPDX-License-Identifier: MIT */
#include "record/recorder.h"

#include <string.h>

static const struct recorder *const recorders[] = {
#define RECORDER(name) &recorder_##name,
#include "record/recorders.def"
#undef RECORDER
};

const struct recorder *recorder_find(const char *name)
{
	size_t i;

	for (i = 0; i < ARRAY_LEN(recorders); i++) {
		if (!strcmp(recorders[i]->name, name))
			return recorders[i];
	}
	return NULL;
}
