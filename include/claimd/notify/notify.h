/*
 * notify: delivers messages to subscribers, by web hook or by mail.
 *
 *   store_delivery_next() --> delivery --> log durable? --> capacity at the host?
 *                                              |               | no         | yes
 *                                              | lost          |            v
 *                                              |               |        transfer
 *                                              v               v            v
 *                                              +-------> store_delivery_done()
 *
 * One thread leases due deliveries, sends them with the multi interface of libcurl, and
 * reports the outcomes to the store, which knows when to retry. The thread holds no lock
 * while it sends, and sleeps while no delivery is due. The first delivery loads libcurl.
 *
 *   Slow hosts     there are at most `workers` transfers at a time, and at most half of
 *                  them to one host. All slow hosts together get at most half of the
 *                  transfers (hosts.h). If a host has no capacity, the notifier backs off
 *                  the delivery and continues with others
 *   Durability     the notifier sends a delivery after its log record is durable. If the
 *                  log loses the record, the notifier does not send the delivery
 *   Addresses      the guard checks each address (guard.h). libcurl uses no proxy,
 *                  follows no redirect and speaks only HTTP, HTTPS, SMTP and SMTPS
 *   Responses      the notifier reads a response completely and drops it. A response that
 *                  is too long or too slow is a failure
 *   Time           retries use the clock of the store, time limits of transfers use real
 *                  time
 *   Threads        the notifier has its own thread. Any thread may call the functions
 *                  below
 *   Memory         that of at most `workers` transfers, and of 512 waiting deliveries
 *
 * For the view of subscribers, read docs/api.md 20.
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

/* The mail server. */
struct notify_mail {
    const char *url; /* smtp://HOST[:PORT] or smtps://...; NULL: none, no mail is sent */
    const char *user, *password;  /* NULL: none */
    const char *from;             /* default sender */
    const char *confirmation_url; /* page of the links in confirmations; or NULL */
};

/* All pointers are borrowed for the life of the notifier. */
struct notify_config {
    struct mem *mem;
    struct store *store;
    /* Makes deliveries durable; NULL: the store has no log. */
    struct store_log *store_log;
    const struct clock *clock;     /* of the store */
    const struct clock *real;      /* gives the wall clock, for signatures */
    const struct clock *time_base; /* as in struct api_config */
    struct log *log;
    struct signer *signer;   /* signs confirmations */
    struct signer *webhooks; /* signs web hooks, if it has keys */
    struct guard guard;
    size_t workers;         /* maximum number of transfers at a time, at least 1 */
    int64_t connect_ms;     /* time limit for connecting */
    int64_t timeout_ms;     /* time limit for a transfer */
    const char *ca;         /* file of trusted authorities; NULL: those of the system */
    const char *agent;      /* "claimd/1.2" */
    const char *public_url; /* URL at which subscribers reach this server; or NULL */
    int64_t subscription_ttl_s; /* time to subscribe again after an unsubscription */
    /*
     * Decrypts the body of a message of this queue; NULL: bodies are not encrypted.
     * ST_DAMAGED: permanent failure. ST_NO_MEMORY. Any other status: the notifier backs
     * off the delivery.
     */
    enum status (*open_body)(void *ctx, const struct store_queue *queue,
                             struct bytes body, struct buf *out);
    void *open_ctx;
    struct notify_mail mail;
};

/* Starts the thread. ST_NO_MEMORY, ST_UNAVAILABLE (no thread, or no descriptor). The
 * caller owns *out. */
enum status notify_open(const struct notify_config *config, struct notify **out);

/* Adds the metrics of the notifier. Call it before any thread reads metrics. */
void notify_measure(struct notify *n, struct metrics *metrics);

/*
 * Aborts all transfers, and returns all deliveries to the store, which retries them. Call
 * it after all other users of the store have ended, and before the store and the log
 * close. NULL is fine.
 */
void notify_close(struct notify *n);

#endif
