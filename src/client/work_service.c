#include "client/work_service.h"

/*
 * Milliseconds: the pauses, doubled from the first to the second; a job that is not
 * refused within TRIAL_MS, which is longer than the time for a connection, was taken.
 */
enum { PAUSE_MS = 250, PAUSE_MOST_MS = 10000, TRIAL_MS = 6000 };

void
service_init(struct work_service *s, bool has_health)
{
    *s = (struct work_service){.state = has_health ? SERVICE_CHECK : SERVICE_UP,
                               .has_health = has_health,
                               .away_ms = -1,
                               .next_ms = INT64_MAX};
}

static void
service_begin_trial(struct work_service *s, int64_t now_ms)
{
    s->state = SERVICE_TRIAL;
    s->trial_ms = now_ms;
    s->next_ms = INT64_MAX;
}

static void
service_return(struct work_service *s)
{
    s->state = SERVICE_UP;
    s->away_ms = -1;
    s->next_ms = INT64_MAX;
}

bool
service_step(struct work_service *s, int64_t now_ms, int64_t *next_ms)
{
    if (s->state == SERVICE_AWAY && now_ms >= s->next_ms && !s->has_health)
        service_begin_trial(s, now_ms);
    else if (s->state == SERVICE_TRIAL && now_ms >= s->next_ms)
        service_return(s);
    if (now_ms < s->next_ms && s->next_ms < *next_ms)
        *next_ms = s->next_ms;
    return s->state == SERVICE_CHECK ||
           (s->state == SERVICE_AWAY && now_ms >= s->next_ms);
}

size_t
service_limit(const struct work_service *s)
{
    if (s->state == SERVICE_TRIAL)
        return s->next_ms == INT64_MAX ? 1 : 0;
    return s->state == SERVICE_UP ? SIZE_MAX : 0;
}

bool
service_takes_jobs(const struct work_service *s)
{
    return s->state == SERVICE_CHECK || service_limit(s) > 0;
}

void
service_job_sent(struct work_service *s, int64_t now_ms)
{
    if (s->state == SERVICE_TRIAL)
        s->next_ms = now_ms + TRIAL_MS;
}

void
service_healthy(struct work_service *s, int64_t now_ms)
{
    s->worked = true;
    if (s->state == SERVICE_CHECK)
        service_return(s);
    else if (s->state == SERVICE_AWAY && now_ms >= s->next_ms)
        service_begin_trial(s, now_ms);
}

void
service_responded(struct work_service *s, int64_t sent_ms)
{
    s->worked = true;
    if (s->state == SERVICE_AWAY || (s->state == SERVICE_TRIAL && sent_ms < s->trial_ms))
        return; /* it was sent before the service went away */
    s->pause_ms = 0;
    if (s->state == SERVICE_TRIAL)
        service_return(s);
}

void
service_doubted(struct work_service *s)
{
    if (s->has_health && s->state == SERVICE_UP)
        s->state = SERVICE_CHECK;
}

void
service_failed(struct work_service *s, int64_t now_ms, int64_t retry_after_ms,
               uint32_t random)
{
    /* Jobs that were sent side by side fail side by side. That is one failure. */
    if (s->state != SERVICE_AWAY || now_ms >= s->next_ms) {
        s->pause_ms = s->pause_ms == 0 ? PAUSE_MS : 2 * s->pause_ms;
        if (s->pause_ms > PAUSE_MOST_MS)
            s->pause_ms = PAUSE_MOST_MS;
        s->next_ms = now_ms + s->pause_ms / 2 + random % (s->pause_ms / 2 + 1);
    }
    s->state = SERVICE_AWAY;
    if (s->away_ms < 0)
        s->away_ms = now_ms;
    if (retry_after_ms > 0 && s->next_ms < now_ms + retry_after_ms)
        s->next_ms = now_ms + retry_after_ms;
}
