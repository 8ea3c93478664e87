/* SPDX-License-Identifier: MIT */
/*
 * The agent's text as it stands in our own program, to be copied into others,
 * and the places in it that the recorder has to know.
 */
#ifndef RECORD_INPROC_AGENT_H
#define RECORD_INPROC_AGENT_H

#include <stdint.h>

extern const uint8_t __start_agent_text[], __stop_agent_text[]; /* by the linker */
/* Where patched places jump to. */
extern const uint8_t agent_entry[];
/* From there to here the program's registers are as they were, and rcx holds the site. */
extern const uint8_t agent_registers_saved[];
/* The syscall instruction whose calls no filter stops, and what comes behind it. */
extern const uint8_t agent_syscall[], agent_syscall_done[];
/* The instruction by which it asks for files ends here; agent_ask is also the end of all entries. */
extern const uint8_t agent_ask[], agent_asked[];
/* That by which the recorder is told of a call, where there is no net. */
extern const uint8_t agent_told[];
/* agent_entry, for programs that may outlive the recorder. */
extern const uint8_t agent_watchful_entry[];
/* From here on the result is in the block. */
extern const uint8_t agent_result_saved[];

/* A call for the recorder, and what is put back behind it when that has died meanwhile. */
#define AGENT_REMOTE_STATE_NR 9
extern const uint8_t agent_remote[], agent_remote_state[];
/* Makes a list of calls (model/wire.h), and traps: where that is seen. */
extern const uint8_t agent_begin[], agent_begun[];

/* Where that is in programs of a recording. */
#define AGENT_ADDRESS(agent, label) ((agent)->base + (uint64_t)((label)-__start_agent_text))

#endif
