/* SPDX-License-Identifier: MIT */
#include "export/export.h"

#include <string.h>

#include "base/banned.h"
#include "base/mem.h"

#define EXPORTER(id, name) extern const struct exporter exporter_##id;
#include "export/exporters.def"
#undef EXPORTER

const struct export_format export_formats[] = {
#define EXPORTER(id, name) { name, &exporter_##id },
#include "export/exporters.def"
#undef EXPORTER
};
const size_t nr_export_formats = ARRAY_LEN(export_formats);

const struct exporter *exporter_find(const char *name)
{
	size_t i;

	for (i = 0; i < nr_export_formats; i++) {
		if (!strcmp(export_formats[i].name, name))
			return export_formats[i].exporter;
	}
	return NULL;
}
