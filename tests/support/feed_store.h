/*
 * feed_store: a fake store for tests of the notifier. It has only deliveries, which a
 * test adds. It leases them in order when they are due (store_delivery_next()), and
 * records their outcomes (store_delivery_done()). The test decides which LSNs are
 * durable.
 *
 *   Threads  any
 */
#ifndef TESTS_SUPPORT_FEED_STORE_H
#define TESTS_SUPPORT_FEED_STORE_H

#include "claimd/base/clock.h"
#include "claimd/store/log.h"
#include "claimd/store/store.h"

enum { FEED_MOST = 4096 };

/* The last outcome of a delivery. */
struct feed_result {
    size_t times; /* number of outcomes */
    enum store_outcome outcome;
    int64_t again_ms;
    uint32_t failed;
};

/* Makes a store with the time of the clock, which is borrowed. The caller closes it with
 * store_close(). */
struct store *feed_store_open(const struct clock *clock);

/* The log of the store, for the notifier. */
struct store_log *feed_store_log(struct store *s);

/* Adds a delivery, and notifies the listener. Texts are borrowed. Returns its number. */
size_t feed_store_add(struct store *s, const struct store_delivery *delivery);

/* Notifies the listener. Call it after a move of the clock. */
void feed_store_notify(struct store *s);

/* Waits until a delivery has so many outcomes. */
struct feed_result feed_store_await(struct store *s, size_t which, size_t times);

/* The same without waiting. */
struct feed_result feed_store_result(struct store *s, size_t which);

/* Waits until there have been so many leases, of which some may have ended. */
void feed_store_await_leased(struct store *s, size_t count);

/* Makes LSNs up to `durable` durable, and those behind it pending, or lost if rest_lost.
 * Notifies the listener. At first, all are durable. */
void feed_store_settle(struct store *s, uint64_t durable, bool rest_lost);

/* The number of leased deliveries. */
size_t feed_store_leased(struct store *s);

/* Makes the next `times` calls of store_delivery_next() return `st`. */
void feed_store_fail(struct store *s, size_t times, enum status st);

#endif
