/*
 * feed_store: a store that only leases deliveries: those that a test puts in, in their
 * order, as soon as they are due, and as durable as the test says.
 *
 *   Threads  any
 */
#ifndef TESTS_SUPPORT_FEED_STORE_H
#define TESTS_SUPPORT_FEED_STORE_H

#include "claimd/base/clock.h"
#include "claimd/store/log.h"
#include "claimd/store/store.h"

enum { FEED_MOST = 4096 };

/* What became of a delivery when it was given back the last time. */
struct feed_result {
    size_t times; /* it was given back */
    enum store_outcome outcome;
    int64_t again_ms;
    uint32_t failed;
};

/* Time is that of the clock. Owned: store_close() it. */
struct store *feed_store_open(const struct clock *clock);

/* Its log, to be given to whatever waits for it. */
struct store_log *feed_store_log(struct store *s);

/* Puts one in, and tells the listener; texts are borrowed. Returns which it is. */
size_t feed_store_add(struct store *s, const struct store_delivery *delivery);

/* The clock was moved: tells the listener. */
void feed_store_notify(struct store *s);

/* Waits until it was given back so often. */
struct feed_result feed_store_await(struct store *s, size_t which, size_t times);

/* The same as it is now. */
struct feed_result feed_store_result(struct store *s, size_t which);

/* Waits until so many have been leased, of which some may be back. */
void feed_store_await_leased(struct store *s, size_t count);

/* LSNs up to here are durable (all, at first), those behind `lost` lost; tells. */
void feed_store_settle(struct store *s, uint64_t durable, bool rest_lost);

/* How many are leased now. */
size_t feed_store_leased(struct store *s);

/* From now on it fails so often before it leases. */
void feed_store_fail(struct store *s, size_t times, enum status st);

#endif
