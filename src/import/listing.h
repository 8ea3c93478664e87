/* SPDX-License-Identifier: MIT */
/*
 * Init listings: the initial tree as the tools of ARTC and iBench write it, in
 * two layouts.
 *
 *   dir#PATH                      [dir]; [PATH];
 *   file#PATH#SIZE                [file]; [PATH]; [SIZE];
 *   file#INODE#PATH#SIZE          [file]; [INODE]; [PATH]; [SIZE];
 *   symlink#PATH#TARGET           [symlink]; [PATH]; [TARGET];
 *
 * An INODE that ends in "rsrc" is a resource fork's; it becomes a file beside
 * its own (import/mac_path.h). What a listing does not say (modes, owners,
 * whether a directory has more) stays unknown.
 */
#ifndef IMPORT_LISTING_H
#define IMPORT_LISTING_H

#include <stdint.h>

#include "base/arena.h"
#include "base/map.h"
#include "import/import.h"

/* What a listing says beyond the tree: which file an inode number was. */
struct listing {
	struct map by_inode; /* uint64_t -> path, in the arena */
	struct arena arena;
};

void listing_init(struct listing *l);
void listing_release(struct listing *l);

/*
 * Feeds an entry of the initial tree for each line of the input, which is
 * opened and closed. Lines are counted and rejected as an importer does it.
 */
MUST_CHECK int listing_read(struct listing *l, struct import *im, struct import_input *in,
			    struct err *err);

#endif
