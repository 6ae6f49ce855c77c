#include "notify/verdict.h"

#include "notify/retry.h"

static bool
is_failure(const struct ending *e)
{
    return e->kind == ENDING_NONE ||
           (e->kind == ENDING_ANSWER && (e->status == 429 || e->status >= 500));
}

/* What the subscriber asks for, in seconds. */
static int64_t
asked_wait(const struct ending *e, const struct retry_policy *policy)
{
    if (e->kind != ENDING_ANSWER || (e->status != 429 && e->status != 503))
        return 0;
    if (e->retry_after_s > 0)
        return e->retry_after_s < RETRY_AFTER_MOST_S ? e->retry_after_s
                                                     : RETRY_AFTER_MOST_S;
    /* Whoever has too many is not asked again at once. */
    return e->status == 429 ? policy->minimum_delay : 0;
}

static void
weigh_failure(const struct ending *e, const struct store_delivery *d, struct verdict *out)
{
    struct retry_policy policy;
    int64_t asked_ms;

    retry_policy_read(d->options, d->metadata, &policy);
    *out = (struct verdict){VERDICT_GIVEN_UP, STORE_OUTCOME_GIVEN_UP, 0};
    if (!retry_wait(&policy, d->failed < UINT32_MAX ? d->failed + 1 : d->failed,
                    &out->wait_ms))
        return;
    asked_ms = asked_wait(e, &policy) * 1000;
    if (asked_ms > out->wait_ms)
        out->wait_ms = asked_ms;
    out->kind = VERDICT_FAILED;
    out->outcome = STORE_OUTCOME_FAILED;
}

void
verdict_reach(const struct ending *e, const struct store_delivery *d, struct verdict *out)
{
    if (is_failure(e))
        weigh_failure(e, d, out);
    else if (e->kind == ENDING_IMPOSSIBLE)
        *out = (struct verdict){VERDICT_GIVEN_UP, STORE_OUTCOME_GIVEN_UP, 0};
    else if (e->status >= 200 && e->status < 300)
        *out = (struct verdict){VERDICT_DELIVERED, STORE_OUTCOME_DELIVERED, 0};
    else if (e->status == 410)
        *out = (struct verdict){VERDICT_GONE, STORE_OUTCOME_GONE, 0};
    else
        *out = (struct verdict){VERDICT_REFUSED, STORE_OUTCOME_GIVEN_UP, 0};
}
