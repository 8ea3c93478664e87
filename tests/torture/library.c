/* SPDX-License-Identifier: MIT */
/* A library that makes a call by itself: what a recorder may change in its text. */
#include <sys/syscall.h>

long library_call(void);

long library_call(void)
{
	long ret;

	__asm__ volatile("movl %1, %%eax\n\tsyscall"
			 : "=&a"(ret)
			 : "i"(SYS_getppid)
			 : "rcx", "r11", "memory");
	return ret;
}
