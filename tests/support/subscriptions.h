/*
 * subscriptions: short words of a store_fixture for subscriptions and their delivery.
 *
 * Nothing is due twice: what a test leases it gives back with done(), and next() does
 * what housekeeping would have done by then. Every word audits the store when it is done.
 */
#ifndef TESTS_SUPPORT_SUBSCRIPTIONS_H
#define TESTS_SUPPORT_SUBSCRIPTIONS_H

#include "support/store_fixture.h"

/* Adds a new subscriber to the queue, with options {"x":1}. */
struct store_id subscribe(struct fixture *f, const char *subscriber, int64_t ttl_s);

/* Subscribes a subscriber again, maybe a confirmed one; returns the old id. */
struct store_id resubscribe(struct fixture *f, const char *subscriber, bool confirmed);

enum status find_subscription(struct fixture *f, struct store_id id);

/* The view of one that is there, valid until the next word. */
struct store_subscription *see_subscription(struct fixture *f, struct store_id id);

/* A page; how many, and the next marker. */
size_t list_subscriptions(struct fixture *f, const char *marker, size_t limit,
                          struct store_id *next);

/* The i-th of the page listed last. */
void expect_listed(struct fixture *f, size_t i, struct store_id id);

/* NULL, STORE_UNSET: stays as it is. */
enum status change(struct fixture *f, struct store_id id, const char *subscriber,
                   const char *options, int64_t ttl_s);
void confirm(struct fixture *f, struct store_id id, bool confirmed);
enum status confirm_status(struct fixture *f, struct store_id id, bool confirmed);
void unsubscribe(struct fixture *f, struct store_id id);
void purge_what(struct fixture *f, enum store_purge what);

/* ------------------------------------------------------------------ delivery */

/* Leases what is due; false: nothing is. */
bool next(struct fixture *f, struct store_delivery *out);

/* The due delivery is this message for this subscription. */
void expect_next(struct fixture *f, struct store_delivery *out, struct store_id id,
                 int number);

/* The due delivery is this notice for this subscription. */
void expect_notice(struct fixture *f, struct store_delivery *out, struct store_id id,
                   enum store_notice notice);
void expect_nothing_due(struct fixture *f);

void delivered(struct fixture *f, struct store_delivery *delivery);

/* It failed / was backed off for so long. */
void failed(struct fixture *f, struct store_delivery *delivery, int64_t again_in_ms);
void done(struct fixture *f, struct store_delivery *delivery, enum store_outcome outcome,
          int64_t again_in_ms);

#endif
