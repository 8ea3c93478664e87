/* SPDX-License-Identifier: MIT */
#include "record/agent/clocks.h"

#include <dlfcn.h>
#include <string.h>
#include <sys/auxv.h>

#include "base/io.h"
#include "record/agent/maps.h"

static bool has_steady_counter(void)
{
	struct buf b = { 0 };
	bool steady = false;

	if (!io_read_file("/proc/cpuinfo", 1 << 20, &b, NULL))
		steady =
			strstr(buf_str(&b), " constant_tsc") && strstr(buf_str(&b), " nonstop_tsc");
	buf_release(&b);
	return steady;
}

/* With another source of time the function makes a call itself, from a place that is not the agent's. */
static bool vdso_needs_no_call(void)
{
	static const char *const sources[] = { "tsc\n", "kvm-clock\n",
					       "hyperv_clocksource_tsc_page\n" };
	struct buf b = { 0 };
	bool found = false;
	size_t i;

	if (!io_read_file("/sys/devices/system/clocksource/clocksource0/current_clocksource", 4096,
			  &b, NULL)) {
		for (i = 0; i < ARRAY_LEN(sources); i++)
			found |= !strcmp(buf_str(&b), sources[i]);
	}
	buf_release(&b);
	return found;
}

/* It is the same in all processes, but for where it is. */
static uint64_t vdso_offset(void)
{
	uint64_t base = getauxval(AT_SYSINFO_EHDR), at = 0;
	void *vdso = dlopen("linux-vdso.so.1", RTLD_LAZY | RTLD_LOCAL | RTLD_NOLOAD);

	if (vdso) {
		at = (uint64_t)(uintptr_t)dlsym(vdso, "__vdso_clock_gettime");
		(void)dlclose(vdso); /* it stays */
	}
	return base && at > base ? at - base : 0;
}

void clocks_choose(struct clocks *c, enum record_clock wish)
{
	*c = (struct clocks){ .by_kernel = wish != RECORD_CLOCK_BEST || !has_steady_counter() };
	if (c->by_kernel && wish != RECORD_CLOCK_KERNEL && vdso_needs_no_call())
		c->vdso_offset = vdso_offset();
}

const char *clocks_name(const struct clocks *c)
{
	if (!c->by_kernel)
		return "counter";
	return c->vdso_offset ? "vdso" : "kernel";
}

uint64_t clocks_function_of(const struct clocks *c, const struct tracee *t)
{
	const struct map_line *vdso;
	uint64_t found = 0;
	struct maps m;

	if (!c->vdso_offset)
		return 0;
	maps_read(t, &m);
	vdso = maps_find_vdso(&m);
	if (vdso && c->vdso_offset < vdso->end - vdso->start)
		found = vdso->start + c->vdso_offset;
	maps_release(&m);
	return found;
}
