#include "notify/herald.h"

#include <string.h>

/* A line of this kind every so often. */
enum { EVERY_NS = 1000000000 };

static const char *const events[VERDICT_KINDS] = {
    [VERDICT_DELIVERED] = "notification_delivered",
    [VERDICT_FAILED] = "notification_failed",
    [VERDICT_REFUSED] = "notification_refused",
    [VERDICT_GIVEN_UP] = "notification_given_up",
    [VERDICT_GONE] = "subscriber_gone",
};

static const enum log_level levels[VERDICT_KINDS] = {
    [VERDICT_DELIVERED] = LOG_DEBUG, [VERDICT_FAILED] = LOG_DEBUG,
    [VERDICT_REFUSED] = LOG_WARN,    [VERDICT_GIVEN_UP] = LOG_WARN,
    [VERDICT_GONE] = LOG_INFO,
};

/* Whether it is to be told now; *untold: how many were not since. */
static bool
may_tell(struct herald *h, enum log_level level, uint64_t *untold)
{
    int64_t now_ns = clock_stopwatch_ns();

    *untold = 0;
    if (level == LOG_DEBUG)
        return true;
    if (h->told_ns != 0 && now_ns - h->told_ns < EVERY_NS) {
        h->untold++;
        return false;
    }
    *untold = h->untold;
    h->told_ns = now_ns;
    h->untold = 0;
    return true;
}

void
herald_tell(struct herald *h, const struct parcel *p, const struct verdict *v,
            const struct ending *how, const struct reason *why)
{
    enum log_level level = levels[v->kind];
    const struct store_delivery *d = &p->lent;
    uint64_t untold;

    if (!log_wants(h->log, level) || !may_tell(h, level, &untold))
        return;
    log_event(h->log, level, events[v->kind], LOG_B("project", d->queue.project),
              LOG_B("queue", d->queue.name), LOG_S("subscription", d->subscription.text),
              LOG_S("to", p->target.place),
              LOG_I("status", how->kind == ENDING_ANSWER ? how->status : 0),
              LOG_S("why", why->text), LOG_I("failed_before", d->failed),
              LOG_I("not_told", untold));
}

void
herald_tell_missing(struct herald *h, const struct reason *why)
{
    if (strcmp(h->missing.text, why->text) == 0)
        return;
    h->missing = *why;
    log_event(h->log, LOG_ERROR, "notifications_put_off", LOG_S("error", why->text));
}
