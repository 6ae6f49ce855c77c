/*
 * notify: tells subscribers, by web hook or by mail.
 *
 *   store_delivery_next() --> parcel --> log durable? --> room at its host? --> transfer
 *                                            |                  | no               |
 *                                            | lost             v                  v
 *                                            +----------> store_delivery_done() <--+
 *
 * A thread of its own takes what is due, sends it by libcurl's multi interface, and tells the
 * store what came of it; when to try again is the store's to remember. It holds no lock while it
 * sends, and sleeps for ever when nothing is due. libcurl is loaded by the first delivery.
 *
 *   Nobody slow holds up others   there are `workers` transfers at a time, half of them to one
 *                                 host; hosts whose last transfer timed out have half of all
 *                                 together. What finds no room is put off, and others go on
 *   Nobody is told too early      what is not durable yet waits; what is lost is never sent
 *   Nobody is reached who should  the guard looks at each address (guard.h); redirects, proxies
 *   not be                        and other protocols do not exist
 *   Answers                       are read, to see that they end, and thrown away; one that is
 *                                 too long or too slow is a failure
 *   Time                          when to try again is the time of the store's clock; how long a
 *                                 transfer may take is real
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

/* The server that takes mail; no URL: there is none, and mail is given up. */
struct notify_mail {
    const char *url;             /* smtp://HOST[:PORT] or smtps://...; NULL: none */
    const char *user, *password; /* NULL: it asks for none */
    const char *from;            /* of mail whose subscription names nobody */
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
    struct signer *webhooks; /* vouches for web hooks; without keys: nobody does */
    struct guard guard;
    size_t workers;                 /* transfers at a time, at least 1 */
    int64_t connect_ms, timeout_ms; /* to be connected; all in all */
    const char *ca;                 /* file of authorities to trust; NULL: the system's */
    const char *agent;              /* "claimd/1.2" */
    const char *public_url;     /* where subscribers reach this server; NULL: not known */
    int64_t subscription_ttl_s; /* how long who was unsubscribed may come back */
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

/* Adds its figures. Before anybody asks for them. */
void notify_measure(struct notify *n, struct metrics *metrics);

/*
 * Breaks off what is being sent, and gives back to the store whatever was lent, as put off.
 * To be called when nobody else uses the store any more, and before it and the log close. NULL is
 * fine.
 */
void notify_close(struct notify *n);

#endif
