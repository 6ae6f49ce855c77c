#include "redis/pipeline.h"

#include "claimd/base/clock.h"

enum { PIECES = 16 }; /* read before others get their turn */

/* Maximum batching delay. */
static const int64_t BATCH_DELAY_NS = 2000000;

void
pipeline_init(struct pipeline *p)
{
    *p = (struct pipeline){.count = 0};
    list_init(&p->waiting);
    list_init(&p->sent);
}

void
pipeline_add(struct pipeline *p, struct request *request)
{
    list_add_before(&p->waiting, &request->link);
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
        struct request *request = request_of(list_pop(&p->waiting));

        list_add_before(&p->sent, &request->link);
        if (request->replicas > p->replicas)
            p->replicas = request->replicas;
        bytes += request->words->words.len;
        count++;
    }
    p->count -= count;
}

enum status
pipeline_begin(struct pipeline *p, size_t most, int64_t confirm_ms)
{
    static const struct bytes asking[] = {BYTES_LIT("ASKING")};
    char replicas[DECIMAL_CAP], limit[DECIMAL_CAP], number[DECIMAL_CAP];
    enum status st = ST_OK;

    gather(p, most);
    p->at = p->sent.next;
    p->asked = false;
    p->begun_ns = clock_stopwatch_ns();
    for (struct list *at = p->at; st == ST_OK && at != &p->sent; at = at->next) {
        struct request *request = request_of(at);
        const struct bytes words[] = {BYTES_LIT("FCALL"), request->function};

        request->number = ++p->number;
        if (request->asking)
            st = link_add(&p->link, asking, 1, NULL, BYTES_NONE);
        if (st == ST_OK)
            st = link_add(&p->link, words, 2, request->words,
                          bytes_of(number, decimal_write(number, request->number)));
    }
    if (st == ST_OK && p->replicas > 0) {
        const struct bytes words[] = {
            BYTES_LIT("WAIT"),
            {replicas, decimal_write(replicas, p->replicas)},
            {limit, decimal_write(limit, (uint64_t)confirm_ms)}};

        st = link_add(&p->link, words, 3, NULL, BYTES_NONE);
    }
    return st;
}

/* ------------------------------------------------------------------ coming back */

/* The response of a script, owned, without the number in front of it; errors have none. NULL: it is the
 * response of another request, or not one of our scripts'. Takes the answer. */
static redisReply *
strip_number(const struct pipeline *p, redisReply *answer, uint64_t number)
{
    redisReply *response = NULL;

    if (answer->type == REDIS_REPLY_ERROR)
        return answer;
    if (answer->type == REDIS_REPLY_ARRAY && answer->elements == 2 &&
        answer->element[0]->type == REDIS_REPLY_INTEGER &&
        answer->element[0]->integer == (long long)number) {
        response = answer->element[1];
        answer->elements = 1; /* the other one is freed here */
    }
    link_free(&p->link, answer);
    return response;
}

/* Takes an answer in. ARRIVED: it was the last one; *confirmed is what WAIT has said, unless that is an
 * error. FAILED: it belongs to another request. */
static enum pipeline_news
take_answer(struct pipeline *p, redisReply *answer, long long *confirmed)
{
    struct request *request = request_of(p->at);
    const int type = answer->type;

    if (p->at == &p->sent) { /* of WAIT */
        if (type == REDIS_REPLY_INTEGER)
            *confirmed = answer->integer;
        link_free(&p->link, answer);
        return type == REDIS_REPLY_INTEGER || type == REDIS_REPLY_ERROR ? PIPELINE_ARRIVED
                                                                        : PIPELINE_FAILED;
    }
    if (request->asking && !p->asked) {
        link_free(&p->link, answer);
        p->asked = true;
        return PIPELINE_GOES_ON;
    }
    request->answer = strip_number(p, answer, request->number);
    if (request->answer == NULL)
        return PIPELINE_FAILED;
    request->answered_ns = p->heard_ns;
    p->asked = false;
    p->at = p->at->next;
    return p->at == &p->sent && p->replicas == 0 ? PIPELINE_ARRIVED : PIPELINE_GOES_ON;
}

/* Takes the responses that were read whole. */
static enum pipeline_news
take_answers(struct pipeline *p, long long *confirmed)
{
    enum pipeline_news news = PIPELINE_GOES_ON;
    redisReply *answer;

    while (news == PIPELINE_GOES_ON && (answer = link_parsed(&p->link)) != NULL)
        news = take_answer(p, answer, confirmed);
    if (news == PIPELINE_FAILED) {
        link_fail(&p->link, "Redis sent the response to a different request");
    } else if (news == PIPELINE_ARRIVED && !link_is_drained(&p->link)) {
        link_fail(&p->link, LINK_SURPLUS);
        news = PIPELINE_FAILED;
    }
    return p->link.context->err != 0 ? PIPELINE_FAILED : news;
}

enum pipeline_news
pipeline_read(struct pipeline *p)
{
    long long confirmed = -1;
    bool more = true;
    enum pipeline_news news = PIPELINE_GOES_ON;

    for (int i = 0; i < PIECES && more && news == PIPELINE_GOES_ON; i++) {
        if (!link_fill(&p->link, &more))
            return PIPELINE_FAILED;
        p->heard_ns = clock_stopwatch_ns();
        news = take_answers(p, &confirmed);
    }
    for (struct list *at = p->sent.next; news == PIPELINE_ARRIVED && at != &p->sent;
         at = at->next) {
        struct request *request = request_of(at);

        request->end = REQUEST_ANSWERED;
        request->whole = true;
        request->confirmed = confirmed;
        request->confirmed_ns = p->heard_ns;
    }
    return news;
}

void
pipeline_break_off(struct pipeline *p, const struct reason *why)
{
    for (struct list *at = p->sent.next; at != &p->sent; at = at->next) {
        struct request *request = request_of(at);

        request->end = request->answer != NULL ? REQUEST_ANSWERED : REQUEST_LOST;
        request->whole = false;
        request->confirmed = -1;
        request->confirmed_ns = clock_stopwatch_ns();
        request->why = *why;
    }
}

void
pipeline_end(struct pipeline *p, struct list *ended)
{
    const int64_t now_ns = clock_stopwatch_ns(), half_ns = (now_ns - p->begun_ns) / 2;
    struct list *link;

    p->expected = p->count;
    p->due_ns = p->replicas > 0
                    ? now_ns + (half_ns < BATCH_DELAY_NS ? half_ns : BATCH_DELAY_NS)
                    : 0;
    while ((link = list_pop(&p->sent)) != NULL) {
        list_add_before(ended, link);
        p->expected++;
    }
}

void
pipeline_turn_away(struct pipeline *p, enum request_end how, const struct reason *why,
                   struct list *ended)
{
    struct list *link;

    while ((link = list_pop(&p->waiting)) != NULL) {
        request_of(link)->end = how;
        if (why != NULL)
            request_of(link)->why = *why;
        list_add_before(ended, link);
    }
    p->count = 0;
}
