#include "kit/kit_private.h"

#include "claimd/base/invariant.h"

#include <string.h>

enum status
kit_new(struct mem *mem, struct kit **out)
{
    struct kit *kit = mem_calloc(mem, 1, sizeof(*kit));
    enum status st;

    if (kit == NULL)
        return ST_NO_MEMORY;
    kit->mem = mem;
    clock_init_system(&kit->clock);
    clock_init_system(&kit->real);
    lock_init(&kit->lock);
    list_init(&kit->calls);
    witness_init(kit);
    st = history_new(mem, &kit->history);
    if (st == ST_OK)
        st = faults_new(mem, &kit->faults);
    if (st == ST_OK)
        *out = kit;
    else
        kit_free(kit);
    return st;
}

void
kit_free(struct kit *kit)
{
    if (kit == NULL)
        return;
    ENSURE(list_empty(&kit->calls));
    faults_free(kit->faults);
    history_free(kit->history);
    lock_fini(&kit->lock);
    mem_free(kit->mem, kit);
}

struct clock *
kit_clock(struct kit *kit)
{
    return &kit->clock;
}

struct history *
kit_history(struct kit *kit)
{
    return kit->history;
}

struct faults *
kit_faults(struct kit *kit)
{
    return kit->faults;
}

struct store_log *
kit_log(struct kit *kit, struct store_log *log)
{
    kit->log = log;
    kit->observer.largest = log == NULL ? 0 : log->largest;
    return &kit->observer;
}

void
kit_attach(struct kit *kit, struct store *store, void (*moved)(void *ctx), void *ctx)
{
    kit->store = store;
    kit->moved = moved;
    kit->moved_ctx = ctx;
}

/* ------------------------------------------------------------------ states */

bool
kit_begin_exchange(struct kit *kit)
{
    return !atomic_exchange(&kit->exchanging, true);
}

void
kit_end_exchange(struct kit *kit)
{
    atomic_store(&kit->exchanging, false);
}

/* ------------------------------------------------------------------ time */

void
kit_time(const struct kit *kit, struct kit_time *out)
{
    out->now_ms = clock_now_ms(&kit->clock);
    out->ahead_ms = out->now_ms - clock_now_ms(&kit->real);
    out->stands = clock_stands(&kit->clock);
}

void
kit_stop(struct kit *kit, bool stop)
{
    (stop ? clock_stop : clock_start)(&kit->clock);
    kit->moved(kit->moved_ctx);
}

static bool
has_happened(struct kit *kit, uint64_t since)
{
    return since != UINT64_MAX && history_last_of(kit->history, HISTORY_CLAIM_ENDED,
                                                  HISTORY_DEAD_LETTER) > since;
}

bool
kit_move(struct kit *kit, int64_t until_ms, uint64_t since)
{
    int64_t now_ms, next_ms;

    if (!kit_is_quiet(kit))
        return false; /* they come first, at the time at which they were called */
    now_ms = clock_now_ms(&kit->clock);
    next_ms = store_next_ms(kit->store);
    if (next_ms <= now_ms) { /* in slices, like others' work */
        store_housekeep(kit->store, now_ms, &next_ms);
        return false;
    }
    if (has_happened(kit, since) || now_ms >= until_ms ||
        (since != UINT64_MAX && next_ms == INT64_MAX)) {
        kit->moved(kit->moved_ctx);
        return true;
    }
    clock_reach(&kit->clock, next_ms < until_ms ? next_ms : until_ms);
    return false;
}

/* ------------------------------------------------------------------ waiters */

struct kit_call {
    struct store_listener listener; /* what the store knows */
    struct store_listener *inner;   /* borrowed */
    struct kit *kit;                /* borrowed */
    struct list link;               /* among the kit's */
    _Atomic bool told;
    struct bytes project; /* stands behind this structure */
    char text[];
};

static struct store_wakeup *
tell(struct store_listener *listener, enum store_news news)
{
    struct kit_call *call = container_of(listener, struct kit_call, listener);

    if (!atomic_exchange(&call->told, true))
        atomic_fetch_add(&call->kit->called, 1);
    return call->inner->notify(call->inner, news);
}

struct kit_call *
kit_call_new(struct kit *kit, struct bytes project, struct store_listener *inner)
{
    struct kit_call *call = mem_calloc(kit->mem, 1, sizeof(*call) + project.len);

    if (call == NULL)
        return NULL;
    call->listener.notify = tell;
    call->inner = inner;
    call->kit = kit;
    if (project.len > 0)
        memcpy(call->text, project.data, project.len);
    call->project = bytes_of(call->text, project.len);
    lock_acquire(&kit->lock);
    list_add_before(&kit->calls, &call->link);
    lock_release(&kit->lock);
    return call;
}

struct store_listener *
kit_call_listener(struct kit_call *call)
{
    return &call->listener;
}

void
kit_call_free(struct kit_call *call)
{
    if (call == NULL)
        return;
    lock_acquire(&call->kit->lock);
    list_remove(&call->link);
    lock_release(&call->kit->lock);
    if (kit_call_take(call))
        kit_call_served(call->kit);
    mem_free(call->kit->mem, call);
}

bool
kit_call_take(struct kit_call *call)
{
    return call != NULL && atomic_exchange(&call->told, false);
}

void
kit_call_served(struct kit *kit)
{
    atomic_fetch_sub(&kit->called, 1);
}

void
kit_dismiss(struct kit *kit, struct bytes project)
{
    lock_acquire(&kit->lock);
    for (struct list *at = kit->calls.next; at != &kit->calls; at = at->next) {
        struct kit_call *call = container_of(at, struct kit_call, link);
        struct store_wakeup *wakeup = NULL;

        if (!bytes_present(project) || bytes_equal(project, call->project))
            wakeup = tell(&call->listener, STORE_GONE);
        if (wakeup != NULL)
            wakeup->fire(wakeup);
    }
    lock_release(&kit->lock);
}

bool
kit_is_quiet(const struct kit *kit)
{
    return atomic_load(&kit->called) <= 0;
}
