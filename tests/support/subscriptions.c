#include "support/subscriptions.h"

#include <stdio.h>

/* The views seen last, of whichever fixture: a test is done with them before the next
 * word. */
#define OPTIONS "{\"x\":1}"

static void
forget(struct fixture *f)
{
    store_subscriptions_release(&f->subscriptions);
}

static struct store_subscribed
create(struct fixture *f, const char *subscriber, int64_t ttl_s)
{
    const struct store_subscription_draft draft = {bytes_str(subscriber),
                                                   bytes_str(OPTIONS), ttl_s};
    struct store_subscribed out;

    ck_assert_status(
        store_subscription_create(f->store, STORE_AT(f->now_ms), &f->queue, &draft, &out),
        ST_OK);
    fixture_audit(f);
    return out;
}

struct store_id
subscribe(struct fixture *f, const char *subscriber, int64_t ttl_s)
{
    struct store_subscribed out = create(f, subscriber, ttl_s);

    ck_assert(out.created && !out.confirmed);
    return out.id;
}

struct store_id
resubscribe(struct fixture *f, const char *subscriber, bool confirmed)
{
    struct store_subscribed out = create(f, subscriber, 999);

    ck_assert(!out.created);
    ck_assert_int_eq(out.confirmed, confirmed);
    return out.id;
}

enum status
find_subscription(struct fixture *f, struct store_id id)
{
    enum status st;

    forget(f);
    st = store_subscription_get(f->store, STORE_AT(f->now_ms), &f->queue,
                                store_id_bytes(&id), &f->subscriptions);
    fixture_audit(f);
    return st;
}

struct store_subscription *
see_subscription(struct fixture *f, struct store_id id)
{
    ck_assert_status(find_subscription(f, id), ST_OK);
    ck_assert_uint_eq(f->subscriptions.count, 1);
    return &f->subscriptions.views[0];
}

size_t
list_subscriptions(struct fixture *f, const char *marker, size_t limit,
                   struct store_id *next)
{
    char behind[STORE_ID_CAP];

    (void)snprintf(behind, sizeof(behind), "%s", marker);
    forget(f);
    ck_assert_status(store_subscription_list(f->store, STORE_AT(f->now_ms), &f->queue,
                                             bytes_str(behind), limit, &f->subscriptions),
                     ST_OK);
    *next = f->subscriptions.next;
    fixture_audit(f);
    return f->subscriptions.count;
}

void
expect_listed(struct fixture *f, size_t i, struct store_id id)
{
    ck_assert_uint_lt(i, f->subscriptions.count);
    ck_assert_str_eq(f->subscriptions.views[i].id.text, id.text);
}

enum status
change(struct fixture *f, struct store_id id, const char *subscriber, const char *options,
       int64_t ttl_s)
{
    struct store_subscription_draft draft = {BYTES_NONE, BYTES_NONE, ttl_s};
    enum status st;

    if (subscriber != NULL)
        draft.subscriber = bytes_str(subscriber);
    if (options != NULL)
        draft.options = bytes_str(options);
    forget(f);
    st = store_subscription_update(f->store, STORE_AT(f->now_ms), &f->queue,
                                   store_id_bytes(&id), &draft);
    fixture_audit(f);
    return st;
}

enum status
confirm_status(struct fixture *f, struct store_id id, bool confirmed)
{
    enum status st;

    forget(f);
    st = store_subscription_confirm(f->store, STORE_AT(f->now_ms), &f->queue,
                                    store_id_bytes(&id), confirmed);
    fixture_audit(f);
    return st;
}

void
confirm(struct fixture *f, struct store_id id, bool confirmed)
{
    ck_assert_status(confirm_status(f, id, confirmed), ST_OK);
}

void
unsubscribe(struct fixture *f, struct store_id id)
{
    forget(f);
    ck_assert_status(store_subscription_delete(f->store, STORE_AT(f->now_ms), &f->queue,
                                               store_id_bytes(&id)),
                     ST_OK);
    fixture_audit(f);
}

void
purge_what(struct fixture *f, enum store_purge what)
{
    ck_assert_status(store_queue_purge(f->store, STORE_AT(f->now_ms), &f->queue, what),
                     ST_OK);
    fixture_audit(f);
}

/* ------------------------------------------------------------------ delivery */

bool
next(struct fixture *f, struct store_delivery *out)
{
    enum status st;

    forget(f);
    housekeep(f);
    st = store_delivery_next(f->store, STORE_AT(f->now_ms), out);
    ck_assert(st == ST_OK || st == ST_NOT_FOUND);
    ck_assert(store_audit(f->store));
    return st == ST_OK;
}

void
expect_next(struct fixture *f, struct store_delivery *out, struct store_id id, int number)
{
    char body[16];

    ck_assert(next(f, out));
    (void)snprintf(body, sizeof(body), "%d", number);
    ck_assert_int_eq(out->notice, STORE_NOTICE_MESSAGE);
    ck_assert_str_eq(out->subscription.text, id.text);
    ck_assert(bytes_equal(out->body, bytes_str(body)));
    ck_assert(store_queue_equal(&out->queue, &f->queue));
}

void
expect_notice(struct fixture *f, struct store_delivery *out, struct store_id id,
              enum store_notice notice)
{
    ck_assert(next(f, out));
    ck_assert_int_eq(out->notice, notice);
    ck_assert_str_eq(out->subscription.text, id.text);
    ck_assert(!bytes_present(out->body));
}

void
expect_nothing_due(struct fixture *f)
{
    struct store_delivery out;

    ck_assert(!next(f, &out));
}

void
done(struct fixture *f, struct store_delivery *delivery, enum store_outcome outcome,
     int64_t again_in_ms)
{
    store_delivery_done(f->store, STORE_AT(f->now_ms), delivery, outcome,
                        f->now_ms + again_in_ms);
    ck_assert_ptr_null(delivery->store);
    fixture_audit(f);
}

void
delivered(struct fixture *f, struct store_delivery *delivery)
{
    done(f, delivery, STORE_OUTCOME_DELIVERED, 0);
}

void
failed(struct fixture *f, struct store_delivery *delivery, int64_t again_in_ms)
{
    done(f, delivery, STORE_OUTCOME_FAILED, again_in_ms);
}
