/*
 * notify: delivers messages to subscribers, by web hook or by mail.
 *
 *   store_delivery_next() --> delivery --> log durable? --> capacity at its host? --> transfer
 *                                              |                  | no                 |
 *                                              | lost             v                    v
 *                                              +----------> store_delivery_done() <----+
 *
 * One thread takes due deliveries, sends them by libcurl's multi interface, and reports the outcomes to the
 * store, which remembers when to retry. It holds no lock while it sends, and sleeps while nothing is due. The
 * first delivery loads libcurl.
 *
 *   Slow hosts     there are `workers` transfers at a time, half of them to one host. Hosts whose last transfer
 *                  timed out share half of all. A delivery without capacity is put off, and others go on
 *   Durability     a delivery waits until it is durable; one that is lost is never sent
 *   Addresses      the guard checks each address (guard.h). Redirects, proxies and other protocols are not
 *                  followed
 *   Responses      are read to their ends and dropped. One that is too long or too slow is a failure
 *   Time           retries go by the store's clock, the time limits of a transfer by real time
 *
 * docs/api.md 20 says what subscribers see.
 */
#ifndef CLAIMD_NOTIFY_NOTIFY_H
#define CLAIMD_NOTIFY_NOTIFY_H

#include "claimd/auth/signer.h"
#include "claimd/base/buf.h"
#include "claimd/base/log.h"
#include "claimd/metrics/exposition.h"
#include "claimd/notify/guard.h"
#include "claimd/store/log.h"
#include "claimd/store/store.h"

struct notify; /* opaque */

/* The mail server; no URL: none, and mail is given up. */
struct notify_mail {
    const char *url;             /* smtp://HOST[:PORT] or smtps://...; NULL: none */
    const char *user, *password; /* NULL: it needs none */
    const char *from;            /* of mail if the subscription has no from */
    const char
        *confirmation_url; /* page that the links of confirmations lead to; or NULL */
};

/* All pointers are borrowed for the life of what is opened. */
struct notify_config {
    struct mem *mem;
    struct store *store;
    struct store_log *store_log; /* deliveries wait for it; NULL: the store has none */
    const struct clock *clock;   /* the store's */
    const struct clock *real;    /* for signatures: receivers hold it against theirs */
    struct log *log;
    struct signer *signer;   /* signs confirmations */
    struct signer *webhooks; /* signs web hooks, if it has keys */
    struct guard guard;
    size_t workers;                 /* transfers at a time, at least 1 */
    int64_t connect_ms, timeout_ms; /* to be connected; all in all */
    const char *ca;                 /* file of authorities to trust; NULL: the system's */
    const char *agent;              /* "claimd/1.2" */
    const char *public_url;     /* where subscribers reach this server; NULL: not known */
    int64_t subscription_ttl_s; /* how long an unsubscribed one may subscribe again */
    /*
     * Writes the body of a message of this queue as it was posted; NULL: bodies are what they are.
     * ST_DAMAGED: it never will be, the message is given up. ST_NO_MEMORY; any other status: not
     * now, it is put off.
     */
    enum status (*open_body)(void *ctx, const struct store_queue *queue,
                             struct bytes body, struct buf *out);
    void *open_ctx;
    struct notify_mail mail;
};

/* Starts the thread. ST_NO_MEMORY, ST_UNAVAILABLE (no thread, or no descriptor). Owned. */
enum status notify_open(const struct notify_config *config, struct notify **out);

/* Adds its metrics, before they are read. */
void notify_measure(struct notify *n, struct metrics *metrics);

/*
 * Breaks off all transfers, and gives all deliveries back to the store, as put off. To be called after all other
 * users of the store, and before it and the log close. NULL is fine.
 */
void notify_close(struct notify *n);

#endif
