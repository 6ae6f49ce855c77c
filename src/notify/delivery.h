/*
 * delivery: one delivery in progress: as the store has leased it, its target, and the transfer that it becomes.
 */
#ifndef NOTIFY_DELIVERY_H
#define NOTIFY_DELIVERY_H

#include "claimd/base/buf.h"
#include "claimd/base/bytes.h"
#include "claimd/ds/list.h"
#include "claimd/store/subscription.h"
#include "claimd/web/curl_library.h"
#include "notify/hosts.h"

/*
 * The protocol and the host of a subscriber's URI, and the part of it that may stand in a log. libcurl reads
 * the URI for itself.
 *
 *     https://user:secret@Example.org:8443/hooks/T0/B0?key=secret
 *     `place`: https://example.org:8443
 *
 * Users, passwords, paths (many hooks have a secret there) and queries are never shown.
 */
enum target_kind {
    TARGET_WEB,   /* http, https */
    TARGET_MAIL,  /* mailto */
    TARGET_TRUST, /* trust+http, trust+https: with credentials of Keystone */
    TARGET_OTHER  /* an unknown protocol */
};

enum { TARGET_PLACE_CAP = 272 };

struct target {
    enum target_kind kind;
    struct bytes rest; /* of the URI, behind "mailto:" */
    char place
        [TARGET_PLACE_CAP]; /* scheme and host, lower-case; may be cut; NUL-terminated */
};

/* Reads any text; *out borrows it. */
void target_read(struct bytes uri, struct target *out);

struct guard;

struct delivery {
    struct list link; /* in one list at a time: waits for the log, for room, or is sent */
    struct store_delivery lent;
    struct target target;
    struct host *host; /* NULL: not looked up yet */
    /* While it is sent: */
    const struct guard *guard; /* NULL: the place was named by the operator */
    CURL *handle;
    struct curl_slist *headers, *recipients;
    struct buf url, text;
    struct curl_transfer transfer;
    size_t read;   /* of the text, of a mail */
    size_t answer; /* bytes heard of the body */
    bool kept_out; /* by the guard */
    int64_t began_ns;
};

/* One that holds what the store has leased; NULL without memory. Owned. */
struct delivery *delivery_new(struct mem *mem, const struct store_delivery *lent);

/* The store has it back, and nothing is being sent. */
void delivery_free(struct mem *mem, struct delivery *p);

#endif
