/*
 * slow_store: an engine as it would be behind a disk or a network, at the pace of a test.
 *
 *   Gate    operations of one that blocks wait at a gate while it is shut; in a fiber
 *           they park there, if it is of that kind, too
 *   Slices  while the gate of one that slices is shut, operations are not finished:
 *           ST_AGAIN
 *   Log     every change of one that has a log gets a LSN, from 1; it is durable when
 *           the test says so, or lost
 *
 *   Threads  any
 */
#ifndef TESTS_SUPPORT_SLOW_STORE_H
#define TESTS_SUPPORT_SLOW_STORE_H

#include "claimd/engine/engine.h"
#include "claimd/store/log.h"

enum slow_store_kind {
    SLOW_STORE_BLOCKS = 1,
    SLOW_STORE_LOGS = 2,
    SLOW_STORE_SLICES = 8
};

/* Opens an engine behind a gate that is open, with a log in which nothing is durable. */
struct store *slow_store_open(const struct engine_config *config, unsigned kinds);

/* ------------------------------------------------------------------ the gate */

/* From now on operations wait / go on. */
void slow_store_shut(struct store *s);
void slow_store_unshut(struct store *s);

/* Waits until so many operations stand at the gate, besides those that may go on. */
void slow_store_await(struct store *s, size_t count);

/* Lets one of them go on, or the next one that comes. */
void slow_store_let_one(struct store *s);

/* Lets store_queue_stats() through the shut gate, until the gate moves again. */
void slow_store_let_stats(struct store *s);

/* ------------------------------------------------------------------ the log */

/* To be given to whatever waits for it. */
struct store_log *slow_store_log(struct store *s);

/* The LSN of the latest change. */
uint64_t slow_store_lsn(struct store *s);

/* The LSN of the latest change at the last flush of the log. */
uint64_t slow_store_flushed(struct store *s);

/* All up to a LSN is durable. Tells the listeners. */
void slow_store_make_durable(struct store *s, uint64_t lsn);

/* Changes that are not durable are lost, and so are later ones. Tells the listeners. */
void slow_store_lose(struct store *s);

/* Tells the listeners; returns how many of them have to be woken for it. */
size_t slow_store_notify(struct store *s);

#endif
