#include "claimd/notify/notify.h"

#include "claimd/base/entropy.h"
#include "claimd/base/thread.h"
#include "notify/notifier.h"

#include <sys/eventfd.h>
#include <unistd.h>

/* A transfer that takes this part of its time is a slow one. */
enum { SLOW_PART = 4 };

/* ------------------------------------------------------------------ the wakeup */

static void
fire(struct store_wakeup *wakeup)
{
    struct notify *n = container_of(wakeup, struct notify, wakeup);

    (void)eventfd_write(n->event_fd, 1); /* full: it has been rung */
}

static struct store_wakeup *
take_note(struct notify *n)
{
    return atomic_exchange(&n->told, true) ? NULL : &n->wakeup;
}

static struct store_wakeup *
tell_due(struct store_listener *listener, enum store_news news)
{
    (void)news;
    return take_note(container_of(listener, struct notify, due));
}

static struct store_wakeup *
tell_durable(struct store_listener *listener, enum store_news news)
{
    (void)news;
    return take_note(container_of(listener, struct notify, durable));
}

/* ------------------------------------------------------------------ figures */

static void
write_figures(struct metrics_source *source, struct exposition *x)
{
    struct notify *n = container_of(source, struct notify, source);

    figures_write(&n->figures, counter_read(&n->hosts.slow), x);
}

void
notify_measure(struct notify *n, struct metrics *metrics)
{
    metrics_add(metrics, &n->source);
}

/* ------------------------------------------------------------------ life */

static void *
thread_main(void *arg)
{
    notify_work(arg);
    return NULL;
}

/* A key that nobody knows who could choose the names of hosts. */
static enum status
make_key(struct hash_key *key)
{
    struct entropy entropy;
    enum status st;

    entropy_init_system(&entropy);
    st = entropy_reserve(&entropy, sizeof(*key));
    if (st == ST_OK)
        entropy_take(&entropy, key, sizeof(*key));
    return st;
}

/* Without what may fail. */
static void
init(struct notify *n, const struct notify_config *config, struct hash_key key)
{
    n->config = *config;
    n->source.write = write_figures;
    n->wakeup.fire = fire;
    n->due.notify = tell_due;
    n->durable.notify = tell_durable;
    n->herald.log = config->log;
    n->next_again_ms = INT64_MAX;
    list_init(&n->unsettled);
    hosts_init(&n->hosts, config->mem, key, config->workers,
               config->timeout_ms / SLOW_PART);
    courier_init(&n->courier, &n->config);
}

static void
fini(struct notify *n)
{
    courier_fini(&n->courier);
    hosts_fini(&n->hosts);
    if (n->event_fd >= 0)
        (void)close(n->event_fd);
    mem_free(n->config.mem, n);
}

/* From now on it is told. */
static enum status
begin(struct notify *n)
{
    enum status st;

    n->event_fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (n->event_fd < 0)
        return ST_UNAVAILABLE;
    st = thread_start(&n->thread, thread_main, n);
    if (st != ST_OK)
        return st;
    store_log_listen(n->config.store_log, &n->durable);
    store_delivery_watch(n->config.store, &n->due);
    /* What happened in between has told nobody. */
    if (take_note(n) != NULL)
        fire(&n->wakeup);
    return ST_OK;
}

enum status
notify_open(const struct notify_config *config, struct notify **out)
{
    struct hash_key key;
    struct notify *n;
    enum status st = make_key(&key);

    ENSURE(config->workers > 0);
    if (st != ST_OK)
        return st;
    n = mem_calloc(config->mem, 1, sizeof(*n));
    if (n == NULL)
        return ST_NO_MEMORY;
    init(n, config, key);
    st = begin(n);
    if (st != ST_OK) {
        fini(n);
        return st;
    }
    *out = n;
    return ST_OK;
}

void
notify_close(struct notify *n)
{
    if (n == NULL)
        return;
    store_delivery_watch(n->config.store, NULL);
    store_log_unlisten(n->config.store_log, &n->durable);
    atomic_store(&n->closing, true);
    fire(&n->wakeup);
    (void)pthread_join(n->thread, NULL);
    fini(n);
}
