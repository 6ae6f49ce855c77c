/*
 * notifier: what the thread of notify has, for notifier.c, which starts and ends it, and
 * rounds.c, which is what it does.
 */
#ifndef NOTIFY_NOTIFIER_H
#define NOTIFY_NOTIFIER_H

#include "claimd/notify/notify.h"
#include "notify/courier.h"
#include "notify/figures.h"
#include "notify/herald.h"
#include "notify/hosts.h"

#include <pthread.h>

struct notify {
    struct notify_config config;
    struct metrics_source source;
    struct figures figures;
    pthread_t thread;
    int event_fd; /* rung by the wakeup, and to end it */
    struct store_wakeup wakeup;
    struct store_listener due,
        durable;       /* of store_delivery_watch() and store_log_listen() */
    _Atomic bool told; /* something may be due, or durable */
    _Atomic bool closing;
    /* The rest is the thread's. */
    struct hosts hosts;
    struct courier courier;
    struct herald herald;
    struct list unsettled; /* parcels that are not durable yet, oldest first */
    size_t unsettled_count;
    bool hungry;    /* there may be more that is due */
    bool hindered;  /* the store, or memory, has failed: again in a moment */
    bool gave_back; /* something, since the last flush */
    /*
     * When what was given back comes to be due: what is next, and the last; INT64_MAX, 0: nothing.
     * Workers only wake for deadlines that they know of, so this thread looks after its own.
     */
    int64_t next_again_ms, last_again_ms;
};

/* Does its work until it is closing, and gives back everything. */
void notify_work(struct notify *n);

#endif
