#include "http/refused.h"

void
refused_init(struct refused *r)
{
    lock_init(&r->lock);
    memset(r->reasons, 0, sizeof(r->reasons));
    atomic_init(&r->over_ms, INT64_MAX);
}

void
refused_fini(struct refused *r)
{
    lock_fini(&r->lock);
}

bool
refused_note(struct refused *r, enum status why, int64_t now_ms, uint64_t *suppressed)
{
    struct refused_reason *reason = &r->reasons[why];
    bool shown;

    lock_acquire(&r->lock);
    shown = reason->requests == 0 || now_ms - reason->line_ms >= REFUSED_LINE_MS;
    if (reason->requests++ == 0 || reason->last_ms < now_ms)
        reason->last_ms = now_ms;
    if (shown) {
        *suppressed = reason->suppressed;
        reason->suppressed = 0;
        reason->line_ms = now_ms;
    } else {
        reason->suppressed++;
    }
    if (atomic_load(&r->over_ms) > now_ms + REFUSED_OVER_MS)
        atomic_store(&r->over_ms, now_ms + REFUSED_OVER_MS);
    lock_release(&r->lock);
    return shown;
}

/* Moves what is over into over[ST_COUNT], and finds out when the next may be. */
static void
take_over(struct refused *r, struct refused_reason *over, int64_t now_ms)
{
    int64_t next_ms = INT64_MAX;

    lock_acquire(&r->lock);
    for (int why = 0; why < ST_COUNT; why++) {
        struct refused_reason *reason = &r->reasons[why];

        over[why].requests = 0;
        if (reason->requests == 0)
            continue;
        if (now_ms - reason->last_ms >= REFUSED_OVER_MS) {
            over[why] = *reason;
            *reason = (struct refused_reason){.requests = 0};
        } else if (reason->last_ms + REFUSED_OVER_MS < next_ms) {
            next_ms = reason->last_ms + REFUSED_OVER_MS;
        }
    }
    atomic_store(&r->over_ms, next_ms);
    lock_release(&r->lock);
}

int64_t
refused_settle(struct refused *r, const struct log *log, int64_t now_ms)
{
    struct refused_reason over[ST_COUNT];

    if (now_ms < atomic_load_explicit(&r->over_ms, memory_order_relaxed))
        return atomic_load_explicit(&r->over_ms, memory_order_relaxed);
    take_over(r, over, now_ms);
    for (int why = 0; why < ST_COUNT; why++)
        if (over[why].requests > 0)
            log_event(log, LOG_WARN, "refused_requests",
                      LOG_S("reason", status_name((enum status)why)),
                      LOG_I("requests", over[why].requests),
                      LOG_I("suppressed", over[why].suppressed));
    return atomic_load(&r->over_ms);
}

void
refused_end(struct refused *r, const struct log *log)
{
    (void)refused_settle(r, log, INT64_MAX);
}
