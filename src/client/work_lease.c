#include "client/work_lease.h"

/*
 * Parts of a lease: until SIGTERM by the guard, SIGKILL; the shortest and the longest
 * pause between retries; SIGTERM to SIGKILL after a refusal.
 */
enum {
    TERM_TWELFTHS = 9,
    KILL_TWELFTHS = 11,
    PAUSE_PART = 60,
    PAUSE_MOST_PART = 12,
    REFUSED_PART = 12
};
enum { REFUSED_MOST_MS = 5000 };

static void
lease_confirm(struct work_lease *l, int64_t sent_ms)
{
    l->start_ms = sent_ms;
    l->renew_ms = sent_ms + l->ttl_ms / 3;
    l->pause_ms = l->ttl_ms / PAUSE_PART + 1;
}

void
lease_begin(struct work_lease *l, int64_t ttl_ms, int64_t sent_ms)
{
    *l = (struct work_lease){.ttl_ms = ttl_ms};
    lease_confirm(l, sent_ms);
}

int64_t
lease_term_ms(const struct work_lease *l)
{
    return l->start_ms + l->ttl_ms / 12 * TERM_TWELFTHS;
}

int64_t
lease_kill_ms(const struct work_lease *l)
{
    return l->start_ms + l->ttl_ms / 12 * KILL_TWELFTHS;
}

static enum lease_step
lease_lose(struct work_lease *l, int64_t now_ms, int64_t patience_ms, int64_t *next_ms)
{
    l->lost = true;
    l->kill_ms = earlier(now_ms + patience_ms, lease_kill_ms(l));
    *next_ms = l->kill_ms;
    return LEASE_LOST;
}

enum lease_step
lease_step(struct work_lease *l, int64_t now_ms, int64_t *next_ms)
{
    const int64_t lost_ms = l->start_ms + l->ttl_ms / 3 * 2;

    if (l->refused) {
        l->refused = false;
        return lease_lose(l, now_ms, earlier(l->ttl_ms / REFUSED_PART, REFUSED_MOST_MS),
                          next_ms);
    }
    if (l->lost) {
        *next_ms = now_ms < l->kill_ms ? l->kill_ms : INT64_MAX;
        return now_ms < l->kill_ms ? LEASE_WAIT : LEASE_KILL;
    }
    if (now_ms >= lost_ms)
        return lease_lose(l, now_ms, l->ttl_ms, next_ms);
    *next_ms = l->renewing ? lost_ms : earlier(l->renew_ms, lost_ms);
    return !l->renewing && now_ms >= l->renew_ms ? LEASE_RENEW : LEASE_WAIT;
}

void
lease_renewal_sent(struct work_lease *l, int64_t now_ms)
{
    l->renewing = true;
    l->sent_ms = now_ms;
}

void
lease_renewed(struct work_lease *l)
{
    l->renewing = false;
    if (!l->lost)
        lease_confirm(l, l->sent_ms);
}

void
lease_renewal_failed(struct work_lease *l, int64_t now_ms, int64_t retry_after_ms)
{
    l->renewing = false;
    l->renew_ms = now_ms + (retry_after_ms > l->pause_ms ? retry_after_ms : l->pause_ms);
    l->pause_ms = earlier(2 * l->pause_ms, l->ttl_ms / PAUSE_MOST_PART + 1);
}

void
lease_refused(struct work_lease *l)
{
    l->renewing = false;
    l->refused = true;
}
