/* SPDX-License-Identifier: MIT */
/*
 * Requests in flight: those of one io_uring, or of one context of the kernel's
 * first aio, performed through a ring or a context of our own.
 *
 *   submitted    by the action that submitted it in the trace; the lane goes on
 *   landed       it has ended, and what came of it is kept
 *   taken        by the action that has its completion in the trace: that one
 *                waits until the request has landed
 *
 * 1. A request works in the memory of its action, so a lane gives the memory of
 *    its actions back only up to the oldest one with requests in flight (aloft).
 * 2. Only storage is waited for: a request that could wait for another lane is
 *    not made. So every request lands by itself, and nobody waits for ever.
 * 3. Who waits lands whatever has come; of several lanes one waits in the kernel,
 *    the others for that one.
 * 4. Before a lane looks at a file or a name by a call, what it has in flight
 *    there lands: the program may have seen an end that no call tells of.
 *
 * Where the kernel gives no io_uring, requests are made one after another by the
 * calls that do the same, and have landed when they are submitted.
 */
#ifndef REPLAY_FLIGHT_H
#define REPLAY_FLIGHT_H

#include "replay/requests.h"

/* Actions of a lane that may have requests in flight; a later one waits. */
#define FLIGHT_ALOFT_MAX 4096

/* By the loader; the run has them all, and flight_free_all() ends them. */
struct flight *flight_new(struct run *run);
void flight_free_all(struct run *run);
/* Sums of all. After the lanes have ended. */
void flight_sum_up(const struct run *run, struct run_result *res);

/* The rest is for lanes. entries: how many the program asked for. */
void flight_open_uring(struct flight *f, uint64_t entries);
/* As io_setup(2). */
int flight_open_aio(struct flight *f, unsigned int nr_events);
/* Everything lands; what nobody took is forgotten. NULL: nothing. As io_destroy(2) of aio, else 0. */
int flight_close(const struct run *run, struct flight *f);

/* Submits them. ring: NULL, or without a flight, when it is not known: then all is done at once. */
void flight_submit(struct lane *l, struct slot *ring, struct requests *all);
/* Likewise of aio, at most `most` of them. As io_submit(2). */
int64_t flight_submit_aio(struct lane *l, struct flight *f, struct requests *all, uint64_t most);
/* Waits for those that have completed, compares, fills and empties slots. */
void flight_take(struct lane *l, struct flight *f, const struct completions *done);

/* What the lane has in flight and the action could see lands first. */
void flight_settle(struct lane *l, const struct ready *a);
/* The action at l->pos has requests in flight. */
void flight_add_aloft(struct lane *l, const struct ready *a, struct requests *all);
/* How far the lane's memory is free. */
uint64_t flight_release(struct lane *l);
/* Lands what has come by now, of the lane's oldest action aloft. */
void flight_poll(struct lane *l);
/* Everything that the lane has in flight lands. */
void flight_drain(struct lane *l);

#endif
