/*
 * notices: finds the queues that need attention, and sums them up. Declared in notices.h.
 */
#include "api/notices.h"

#include <string.h>

const char *const notice_names[NOTICES] = {[NOTICE_NO_WORKER] = "no_worker",
                                           [NOTICE_READY_TOO_OLD] = "ready_too_old",
                                           [NOTICE_CLAIM_TOO_OLD] = "claim_too_old",
                                           [NOTICE_RETURNED] = "returned",
                                           [NOTICE_PAUSED] = "paused",
                                           [NOTICE_DEAD_LETTERS] = "dead_letters"};

/* RETURNED_SHARE: messages that come back, of those that claims deliver. */
enum { READY_TOO_OLD_S = 300, CLAIM_TOO_OLD_S = 3600, RETURNED_SHARE = 20 };

bool
notices_is_empty(const struct store_population *here)
{
    return here->ready + here->claimed + here->delayed == 0;
}

/* A dead-letter queue has no workers. */
static bool
waits_for_workers(const struct notice_facts *f)
{
    return f->here->ready > 0 && (f->paused & STORE_PAUSE_CLAIMS) == 0 &&
           f->here->dead_letters < f->here->ready;
}

static bool
has_no_worker(const struct notice_facts *f)
{
    return waits_for_workers(f) && f->waiters == 0 && f->here->claims == 0 &&
           (f->rates == NULL || (f->rates->counts[STORE_QUEUE_DELIVERED] == 0 &&
                                 f->rates->counts[STORE_QUEUE_DELETED] == 0));
}

/* The age includes the delay of a message. So workers must also need that long for all
 * ready messages. */
static bool
ready_is_too_old(const struct notice_facts *f)
{
    const uint64_t delivered =
        f->rates == NULL ? 0 : f->rates->counts[STORE_QUEUE_DELIVERED];

    return waits_for_workers(f) && f->ready_age_ms > READY_TOO_OLD_S * (int64_t)1000 &&
           f->here->ready * 1000 > READY_TOO_OLD_S * delivered;
}

static bool
comes_back(const struct notice_facts *f)
{
    return f->rates != NULL && !notices_is_empty(f->here) &&
           f->rates->counts[STORE_QUEUE_REQUEUED] * RETURNED_SHARE >
               f->rates->counts[STORE_QUEUE_DELIVERED];
}

/* Messages that came back within the last minute. */
static uint64_t
returned_count(const struct notice_facts *f)
{
    return (f->rates->counts[STORE_QUEUE_REQUEUED] * 60 + 500) / 1000;
}

unsigned
notices_find(const struct notice_facts *f, uint64_t messages[NOTICES])
{
    unsigned found = 0;

    if (has_no_worker(f)) {
        found |= 1U << NOTICE_NO_WORKER;
        messages[NOTICE_NO_WORKER] = f->here->ready;
    }
    if (ready_is_too_old(f)) {
        found |= 1U << NOTICE_READY_TOO_OLD;
        messages[NOTICE_READY_TOO_OLD] = f->here->ready;
    }
    if (f->claim_age_ms > CLAIM_TOO_OLD_S * (int64_t)1000) {
        found |= 1U << NOTICE_CLAIM_TOO_OLD;
        messages[NOTICE_CLAIM_TOO_OLD] = f->here->claimed;
    }
    if (comes_back(f)) {
        found |= 1U << NOTICE_RETURNED;
        messages[NOTICE_RETURNED] = returned_count(f);
    }
    if (f->paused != 0) {
        found |= 1U << NOTICE_PAUSED;
        messages[NOTICE_PAUSED] = f->here->ready;
    }
    if (f->here->dead_letters > 0) {
        found |= 1U << NOTICE_DEAD_LETTERS;
        messages[NOTICE_DEAD_LETTERS] = f->here->dead_letters;
    }
    return found;
}

/* ------------------------------------------------------------------ sums */

/* Old messages and claims come first where age matters, else many messages. */
static uint64_t
weight_of(enum notice n, const struct notice_facts *f, uint64_t messages)
{
    if (n == NOTICE_READY_TOO_OLD)
        return (uint64_t)f->ready_age_ms;
    return n == NOTICE_CLAIM_TOO_OLD ? (uint64_t)f->claim_age_ms : messages;
}

static void
summary_add(struct notice_summary *s, uint32_t row, uint64_t messages, uint64_t weight)
{
    const size_t count = s->queues < NOTICE_ROWS ? s->queues : NOTICE_ROWS;
    size_t at = count;

    while (at > 0 && s->first[at - 1].weight < weight)
        at--;
    s->queues++;
    s->messages += messages;
    if (at == NOTICE_ROWS)
        return;
    memmove(&s->first[at + 1], &s->first[at],
            ((count < NOTICE_ROWS ? count : NOTICE_ROWS - 1) - at) * sizeof(s->first[0]));
    s->first[at].row = row;
    s->first[at].messages = messages;
    s->first[at].weight = weight;
}

void
notices_add(struct notice_summary summaries[NOTICES], const struct notice_facts *facts,
            uint32_t row)
{
    uint64_t messages[NOTICES] = {0};
    const unsigned found = notices_find(facts, messages);

    for (unsigned n = 0; n < NOTICES; n++)
        if ((found & 1U << n) != 0)
            summary_add(&summaries[n], row, messages[n],
                        weight_of((enum notice)n, facts, messages[n]));
}
