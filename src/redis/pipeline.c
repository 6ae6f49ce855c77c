#include "redis/pipeline.h"

#include "claimd/base/clock.h"

enum { PIECES = 16 }; /* read before others get their turn */

/* The next one waits no longer than that for company, however long the last one took. */
static const int64_t COMPANY_NS = 2000000;

void
pipeline_init(struct pipeline *p)
{
    *p = (struct pipeline){.count = 0};
    list_init(&p->waiting);
    list_init(&p->riders);
}

void
pipeline_note_progress(struct pipeline *p)
{
    p->heard_ns = clock_stopwatch_ns();
}

void
pipeline_add(struct pipeline *p, struct ride *ride)
{
    list_add_before(&p->waiting, &ride->link);
    p->count++;
}

int64_t
pipeline_due_ns(const struct pipeline *p)
{
    return p->count >= p->expected ? 0 : p->due_ns;
}

/* ------------------------------------------------------------------ going */

static void
gather(struct pipeline *p, size_t most)
{
    size_t count = 0, bytes = 0;

    p->replicas = 0;
    while (!list_empty(&p->waiting) && count < most && bytes < PIPELINE_BYTES) {
        struct ride *ride = ride_of(list_pop(&p->waiting));

        list_add_before(&p->riders, &ride->link);
        if (ride->replicas > p->replicas)
            p->replicas = ride->replicas;
        bytes += ride->words->words.len;
        count++;
    }
    p->count -= count;
}

static enum status
add_one(struct link *l, const struct ride *ride)
{
    static const struct bytes asking[] = {BYTES_LIT("ASKING")};
    const struct bytes words[2] = {BYTES_LIT("FCALL"), ride->function};
    enum status st = ride->asking ? link_add(l, asking, 1, NULL) : ST_OK;

    return st == ST_OK ? link_add(l, words, 2, ride->words) : st;
}

static enum status
add_wait(struct link *l, unsigned replicas, int64_t confirm_ms)
{
    char count[DECIMAL_CAP], limit[DECIMAL_CAP];
    const struct bytes words[3] = {BYTES_LIT("WAIT"),
                                   {count, decimal_write(count, replicas)},
                                   {limit, decimal_write(limit, (uint64_t)confirm_ms)}};

    return link_add(l, words, 3, NULL);
}

enum status
pipeline_begin(struct pipeline *p, size_t most, int64_t confirm_ms)
{
    enum status st = ST_OK;

    gather(p, most);
    p->at = p->riders.next;
    p->asked = false;
    p->begun_ns = clock_stopwatch_ns();
    for (struct list *at = p->at; st == ST_OK && at != &p->riders; at = at->next)
        st = add_one(&p->link, ride_of(at));
    return st == ST_OK && p->replicas > 0 ? add_wait(&p->link, p->replicas, confirm_ms)
                                          : st;
}

/* ------------------------------------------------------------------ coming back */

/* Takes an answer in. True: it was the last one; *confirmed is what WAIT has said. */
static bool
take_answer(struct pipeline *p, redisReply *answer, long long *confirmed)
{
    struct ride *ride = p->at == &p->riders ? NULL : ride_of(p->at);

    if (ride == NULL) {
        if (answer->type == REDIS_REPLY_INTEGER)
            *confirmed = answer->integer;
        link_free(&p->link, answer);
        return true;
    }
    if (ride->asking && !p->asked) {
        link_free(&p->link, answer);
        p->asked = true;
        return false;
    }
    ride->answer = answer;
    ride->answered_ns = p->heard_ns;
    p->asked = false;
    p->at = p->at->next;
    return p->at == &p->riders && p->replicas == 0;
}

static void
arrive(struct pipeline *p, long long confirmed)
{
    for (struct list *at = p->riders.next; at != &p->riders; at = at->next) {
        struct ride *ride = ride_of(at);

        ride->end = RIDE_ANSWERED;
        ride->whole = true;
        ride->confirmed = confirmed;
        ride->confirmed_ns = p->heard_ns;
    }
}

enum pipeline_news
pipeline_read(struct pipeline *p)
{
    long long confirmed = -1;
    bool more = true;

    for (int i = 0; i < PIECES && more; i++) {
        redisReply *answer;

        if (!link_fill(&p->link, &more))
            return PIPELINE_FAILED;
        pipeline_note_progress(p);
        while ((answer = link_parsed(&p->link)) != NULL)
            if (take_answer(p, answer, &confirmed)) {
                arrive(p, confirmed);
                return PIPELINE_ARRIVED;
            }
        if (p->link.context->err != 0)
            return PIPELINE_FAILED;
    }
    return PIPELINE_GOES_ON;
}

void
pipeline_break_off(struct pipeline *p, const struct reason *why)
{
    for (struct list *at = p->riders.next; at != &p->riders; at = at->next) {
        struct ride *ride = ride_of(at);

        ride->end = ride->answer != NULL ? RIDE_ANSWERED : RIDE_LOST;
        ride->whole = false;
        ride->confirmed = -1;
        ride->confirmed_ns = clock_stopwatch_ns();
        ride->why = *why;
    }
}

void
pipeline_end(struct pipeline *p, struct list *ended)
{
    const int64_t now_ns = clock_stopwatch_ns(), half_ns = (now_ns - p->begun_ns) / 2;
    struct list *link;

    p->expected = p->count;
    p->due_ns =
        p->replicas > 0 ? now_ns + (half_ns < COMPANY_NS ? half_ns : COMPANY_NS) : 0;
    while ((link = list_pop(&p->riders)) != NULL) {
        list_add_before(ended, link);
        p->expected++;
    }
}

void
pipeline_turn_away(struct pipeline *p, enum ride_end how, const struct reason *why,
                   struct list *ended)
{
    struct list *link;

    while ((link = list_pop(&p->waiting)) != NULL) {
        ride_of(link)->end = how;
        if (why != NULL)
            ride_of(link)->why = *why;
        list_add_before(ended, link);
    }
    p->count = 0;
}
