/*
 * parcel: one delivery on its way: as the store has lent it, and the transfer it becomes.
 */
#ifndef NOTIFY_PARCEL_H
#define NOTIFY_PARCEL_H

#include "claimd/base/buf.h"
#include "claimd/ds/list.h"
#include "claimd/store/subscription.h"
#include "claimd/web/curl_library.h"
#include "notify/hosts.h"
#include "notify/target.h"

struct guard;

struct parcel {
    struct list link; /* in one list at a time: waits for the log, for room, or is sent */
    struct store_delivery lent;
    struct target target;
    struct host *host; /* NULL: not looked up yet */
    /* While it is sent: */
    const struct guard *guard; /* NULL: the place was named by the operator */
    CURL *handle;
    struct curl_slist *headers, *recipients;
    struct buf url, text;
    size_t read;         /* of the text, of a mail */
    size_t head, answer; /* bytes heard */
    bool kept_out;       /* by the guard */
    int64_t began_ns;
};

/* One that holds what was lent; NULL without memory. Owned. */
struct parcel *parcel_new(struct mem *mem, const struct store_delivery *lent);

/* What was lent has been given back, and nothing is being sent. */
void parcel_free(struct mem *mem, struct parcel *p);

#endif
