/* SPDX-License-Identifier: MIT */
/*
 * XXH3, with the vector instructions that the running machine has: the library
 * offers that choice on x86 under names of its own (half the time for 4 KiB).
 */
#ifndef BASE_HASH_H
#define BASE_HASH_H

#include <xxhash.h>

#ifdef HAVE_XXH_DISPATCH
#include <stddef.h>
#include <stdint.h>
#include <xxh_x86dispatch.h>

/*
 * Version 0.8.1 returns with the upper halves of the vector registers in use. Then the next
 * instruction that knows only of the lower ones waits for them, for as long as it
 * takes to hash 4 KiB.
 */
static inline void hash_leave_vectors(size_t len)
{
	/* What is shorter is hashed without them. */
	if (len > 240 && __builtin_cpu_supports("avx2"))
		__asm__ volatile("vzeroupper"
				 :
				 :
				 : "xmm0", "xmm1", "xmm2", "xmm3", "xmm4", "xmm5", "xmm6", "xmm7",
				   "xmm8", "xmm9", "xmm10", "xmm11", "xmm12", "xmm13", "xmm14",
				   "xmm15");
}

static inline XXH64_hash_t hash_xxh3_64(const void *p, size_t len)
{
	XXH64_hash_t h = XXH3_64bits_dispatch(p, len);

	hash_leave_vectors(len);
	return h;
}

static inline XXH128_hash_t hash_xxh3_128(const void *p, size_t len)
{
	XXH128_hash_t h = XXH3_128bits_dispatch(p, len);

	hash_leave_vectors(len);
	return h;
}

static inline XXH_errorcode hash_xxh3_128_update(XXH3_state_t *state, const void *p, size_t len)
{
	XXH_errorcode r = XXH3_128bits_update_dispatch(state, p, len);

	/* Of what was gathered before, there may be more. */
	hash_leave_vectors(SIZE_MAX);
	return r;
}

#undef XXH3_64bits
#undef XXH3_128bits
#undef XXH3_128bits_update
#define XXH3_64bits hash_xxh3_64
#define XXH3_128bits hash_xxh3_128
#define XXH3_128bits_update hash_xxh3_128_update
#endif

#endif
