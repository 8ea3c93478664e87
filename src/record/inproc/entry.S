/* SPDX-License-Identifier: MIT */
/*
 * Where patched places of the program come to instead of making their calls:
 * all registers as for the call, rcx the address of the program's own syscall
 * instruction (rcx and r11 are lost in any call). We go on behind that
 * instruction with the call made and recorded, or at it when the recorder
 * has to see the call. A call that would do nothing but fail is not made: we
 * go on as if it had.
 *
 * At our own syscall instruction every other register, the stack pointer
 * included, is as the program had it: so the recorder can put a stopped thread
 * back to the program's instruction by changing rip alone. Else, in the
 * phases BEFORE and AFTER, it takes the registers from the block. Signal
 * handlers so never run on top of the agent, and it needs no nesting.
 *
 * Without a net the recorder would not see a call at the program's instruction:
 * then it is told of it, in phase BEFORE with the program's registers but for rax, and makes
 * what it is told by into that call. Only without a recorder do we go on behind it.
 */
#include "model/wire.h"

	.section agent_text, "ax", @progbits
	.globl agent_entry, agent_registers_saved, agent_syscall, agent_syscall_done
	.globl agent_result_saved, agent_ask, agent_asked, agent_told, agent_watchful_entry
	.globl agent_remote, agent_remote_state
	.globl agent_begin, agent_begun
	.type agent_entry, @function

	.macro restore_arguments
	movq %gs:WIRE_AT_REGS, %rdi
	movq %gs:WIRE_AT_REGS + 8, %rsi
	movq %gs:WIRE_AT_REGS + 16, %rdx
	movq %gs:WIRE_AT_REGS + 24, %r10
	movq %gs:WIRE_AT_REGS + 32, %r8
	movq %gs:WIRE_AT_REGS + 40, %r9
	movq %gs:WIRE_AT_RSP, %rsp
	.endm

	.balign 64
agent_entry:
	cmpl $0, %gs:WIRE_AT_OFF
	jne 1f
	cld
	movl $WIRE_BEFORE, %gs:WIRE_AT_PHASE
	movq %rcx, %gs:WIRE_AT_SITE
	movq %rax, %gs:WIRE_AT_NR
	movq %rdi, %gs:WIRE_AT_REGS
	movq %rsi, %gs:WIRE_AT_REGS + 8
	movq %rdx, %gs:WIRE_AT_REGS + 16
	movq %r10, %gs:WIRE_AT_REGS + 24
	movq %r8, %gs:WIRE_AT_REGS + 32
	movq %r9, %gs:WIRE_AT_REGS + 40
	movq %rbx, %gs:WIRE_AT_SAVED
	movq %rbp, %gs:WIRE_AT_SAVED + 8
	movq %r12, %gs:WIRE_AT_SAVED + 16
	movq %r13, %gs:WIRE_AT_SAVED + 24
	movq %r14, %gs:WIRE_AT_SAVED + 32
	movq %r15, %gs:WIRE_AT_SAVED + 40
	movq %rsp, %gs:WIRE_AT_RSP
agent_registers_saved:
	movq %gs:WIRE_AT_SELF, %rdi
	leaq WIRE_BLOCK_BYTES(%rdi), %rsp
	call agent_enter
	restore_arguments
	cmpl $1, %eax
	movq %gs:WIRE_AT_NR, %rax
	jne 2f
	movl $WIRE_CALLING, %gs:WIRE_AT_PHASE
agent_syscall:
	syscall
agent_syscall_done:
	movq %rax, %gs:WIRE_AT_RET
	movl $WIRE_AFTER, %gs:WIRE_AT_PHASE
agent_result_saved:
	movq %gs:WIRE_AT_SELF, %rdi
	leaq WIRE_BLOCK_BYTES(%rdi), %rsp
	call agent_leave
	restore_arguments
	movq %gs:WIRE_AT_RET, %rax
	movq %gs:WIRE_AT_SITE, %rcx
	leaq 2(%rcx), %rcx
	movl $WIRE_OUTSIDE, %gs:WIRE_AT_PHASE
1:	jmp *%rcx
2:	ja 5f
	cmpw $0, %gs:WIRE_AT_TELLS
	jne 4f
3:	movq %gs:WIRE_AT_SITE, %rcx
	movl $WIRE_OUTSIDE, %gs:WIRE_AT_PHASE
	jmp *%rcx
4:	movq %gs:WIRE_AT_SELF, %rdi
	leaq WIRE_BLOCK_BYTES(%rdi), %rsp
	call agent_must_tell
	restore_arguments
	testl %eax, %eax
	movq %gs:WIRE_AT_NR, %rax
	jz 3b
	movl $WIRE_NR_TELL, %eax
	syscall
agent_told:
	movl $1, %gs:WIRE_AT_OFF
	movq %gs:WIRE_AT_NR, %rax
	jmp 3b
5:	movq $WIRE_ANSWER, %gs:WIRE_AT_RET
	movl $WIRE_AFTER, %gs:WIRE_AT_PHASE
	jmp agent_result_saved

/* The same for programs that may outlive the recorder: the agent does nothing any more then. */
agent_watchful_entry:
	movq %gs:WIRE_AT_MASTER, %r11
	testl $WIRE_DIED, (%r11)
	jz agent_entry
	jmp *%rcx

/*
 * A call of our own, edx(rdi, rsi), before or after the program's: the recorder can take us out of it as well.
 * One has two arguments more: faccessat2(rdi, rsi, F_OK, AT_EACCESS).
 */
agent_ask:
	movl %edx, %eax
	xorl %edx, %edx
	movl $WIRE_EFFECTIVE_ACCESS, %r10d
ask:	syscall
agent_asked:
	ret

/*
 * A call that the recorder makes the program do for it, and after which it puts all
 * registers back itself. When it has died within that, we do: signals are what they were, by
 * rt_sigprocmask, and the registers but for rcx and r11.
 */
	.balign 16
agent_remote:
	syscall
	movl $14, %eax
	movl $2, %edi
	leaq agent_remote_state(%rip), %rsi
	movl $0, %edx
	movl $8, %r10d
	syscall
	movq agent_remote_state + 8(%rip), %rax
	movq agent_remote_state + 16(%rip), %rdi
	movq agent_remote_state + 24(%rip), %rsi
	movq agent_remote_state + 32(%rip), %rdx
	movq agent_remote_state + 40(%rip), %r10
	movq agent_remote_state + 48(%rip), %r8
	movq agent_remote_state + 56(%rip), %r9
	jmp *agent_remote_state + 64(%rip)
	.balign 8
agent_remote_state: /* signal mask, rax, rdi, rsi, rdx, r10, r8, r9, rip */
	.skip 72

/*
 * The recorder lets a thread begin here when it enters: makes the calls of the
 * list at r12 and pushes their results. All registers are put back by the recorder.
 */
agent_begin:
	movq (%r12), %rax
	cmpq $-1, %rax
	je 1f
	movq 8(%r12), %rdi
	movq 16(%r12), %rsi
	movq 24(%r12), %rdx
	movq 32(%r12), %r10
	movq 40(%r12), %r8
	movq 48(%r12), %r9
	movq 56(%r12), %rbx
	testl $WIRE_CALL_FD_FIRST, %ebx
	cmovnzq %rbp, %rdi
	testl $WIRE_CALL_FD_FIFTH, %ebx
	cmovnzq %rbp, %r8
	call ask
	testl $WIRE_CALL_KEEP, %ebx
	cmovnzq %rax, %rbp
	pushq %rax
	addq $WIRE_CALL_BYTES, %r12
	jmp agent_begin
1:	int3
agent_begun:
	hlt

	.section .note.GNU-stack, "", @progbits
