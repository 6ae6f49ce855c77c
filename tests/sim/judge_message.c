/* The rules for messages: docs/api.md 8. */
#include "sim/judge.h"

/* ---------------------------------------------------------------------- post */

static int64_t
first_set(int64_t a, int64_t b, int64_t c)
{
    if (a != STORE_UNSET)
        return a;
    return b != STORE_UNSET ? b : c;
}

static int64_t
ttl_of(const struct judging *j, int place, const struct draft *d)
{
    return first_set(d->ttl_s, j->ledger->queues[place].settings[SETTING_TTL],
                     j->rules->message_ttl_s);
}

static int64_t
delay_of(const struct judging *j, int place, const struct draft *d)
{
    return first_set(d->delay_s, j->ledger->queues[place].settings[SETTING_DELAY], 0);
}

bool
judging_expires_delayed(const struct judging *j, int place, const struct draft *d)
{
    return delay_of(j, place, d) > 0 && delay_of(j, place, d) >= ttl_of(j, place, d);
}

void
judging_enter_draft(struct judging *j, const struct draft *d, const char *id,
                    struct buf *body)
{
    const int64_t ttl_s = ttl_of(j, j->op->place, d);
    const int64_t delay_s = delay_of(j, j->op->place, d);
    struct known_message *m;

    buf_reset(body, SIZE_MAX);
    draft_body(body, d->number, d->len);
    m = ledger_add(j->ledger, j->op->place, id, buf_view(body), j->now_ms + ttl_s * 1000);
    m->number = d->number;
    m->drafted = d->len;
    m->posted_ms = j->now_ms;
    m->ready_ms = j->now_ms + delay_s * 1000;
    m->client = j->op->client;
    m->unique = j->op->unique;
    ledger_feed(j->ledger, j->op->place,
                &(struct known_post){.number = d->number,
                                     .len = d->len,
                                     .bytes = body->len,
                                     .expires_ms = m->expires_ms,
                                     .ttl_s = ttl_s,
                                     .delay_s = delay_s});
}

bool
judge_unique(struct judging *j, const struct known_message *holder, bool said,
             const struct store_id *id)
{
    if (holder == NULL)
        return !said || verdict_break(j->verdict, PROMISE_UNIQUE,
                                      "message %s is said to hold the key, which is free",
                                      id->text);
    if (!said)
        return verdict_break(j->verdict, PROMISE_UNIQUE,
                             "message %s is added, but message %s holds its key",
                             id->text, holder->id.text);
    return strcmp(id->text, holder->id.text) == 0 ||
           verdict_break(j->verdict, PROMISE_UNIQUE,
                         "message %s is said to hold the key, but message %s does",
                         id->text, holder->id.text);
}

/* An id that there is or was already, here or among those before it. */
static bool
is_used(const struct judging *j, size_t at)
{
    const struct store_id *ids = j->response->posted;

    for (size_t i = 0; i < at; i++)
        if (strcmp(ids[i].text, ids[at].text) == 0)
            return true;
    return ledger_message(j->ledger, j->op->place, ids[at].text) != NULL ||
           ledger_ending(j->ledger, j->op->place, ids[at].text) != ENDING_UNKNOWN;
}

bool
judge_new_ids(struct judging *j, size_t first, size_t count)
{
    for (size_t i = first; i < first + count; i++)
        if (is_used(j, i))
            return verdict_break(j->verdict, PROMISE_CONTRACT, "id %s is not new",
                                 j->response->posted[i].text);
    return true;
}

static bool
judge_post(struct judging *j)
{
    struct known_queue *q = judging_queue(j);
    const struct known_message *holder;
    int64_t most = first_set(q->settings[SETTING_POST_BYTES], j->rules->post_bytes, 0);
    struct mem *mem;
    struct buf body;

    if ((int64_t)j->body_bytes > most)
        return judge_code(j, 400, PROMISE_CONTRACT);
    for (size_t i = 0; i < j->op->draft_count; i++)
        if (judging_expires_delayed(j, j->op->place, &j->op->drafts[i]))
            return judge_code(j, 400, PROMISE_CONTRACT);
    if ((q->paused & STORE_PAUSE_POSTS) != 0)
        return judge_code(j, 503, PROMISE_PAUSED);
    if (!judge_code(j, 201, PROMISE_CONTRACT))
        return false;
    if (j->tight)
        return verdict_break(j->verdict, PROMISE_SAYS_SO,
                             "accepted although the memory budget is used up");
    if (j->response->posted_count != j->op->draft_count)
        return verdict_break(j->verdict, PROMISE_ALL_OR_NOTHING,
                             "%zu of %zu messages were posted", j->response->posted_count,
                             j->op->draft_count);
    holder = ledger_key_holder(j->ledger, j->op->place, j->op->unique.number);
    if (!judge_unique(j, holder, j->response->existing[0], &j->response->posted[0]))
        return false;
    if (holder != NULL)
        return true;
    if (!judge_new_ids(j, 0, j->response->posted_count))
        return false;
    if (!q->exists)
        ledger_make_queue(j->ledger, j->op->place);
    mem = mem_new(0);
    buf_init(&body, mem);
    for (size_t i = 0; i < j->op->draft_count; i++)
        judging_enter_draft(j, &j->op->drafts[i], j->response->posted[i].text, &body);
    buf_fini(&body);
    mem_destroy(mem);
    return true;
}

/* ---------------------------------------------------------------------- read */

static bool
is_listed(const struct judging *j, const struct known_message *m)
{
    const struct operation *op = j->op;

    return (op->include_claimed || m->claim == NULL) &&
           (op->include_delayed || j->now_ms >= m->ready_ms) &&
           (op->echo || m->client != op->client);
}

/* A marker of an earlier queue at this place stands for no position in this one. */
static bool
judge_any_page(struct judging *j)
{
    uint64_t last = 0;

    for (size_t i = 0; i < j->response->count; i++) {
        const struct seen_message *seen = &j->response->messages[i];
        const struct known_message *m =
            ledger_message(j->ledger, j->op->place, seen->id.text);
        enum ending ending = ledger_ending(j->ledger, j->op->place, seen->id.text);

        if (m == NULL)
            return verdict_break(j->verdict, promise_of_gone(ending),
                                 "message %s is listed, but %s", seen->id.text,
                                 ending_text(ending));
        if (m->order <= last)
            return verdict_break(j->verdict, PROMISE_OLDEST_FIRST,
                                 "message %s is listed out of order", m->id.text);
        if (!is_listed(j, m))
            return verdict_break(j->verdict, PROMISE_CONTRACT,
                                 "message %s was not requested", m->id.text);
        last = m->order;
        if (!judge_document(j, m, seen))
            return false;
    }
    return true;
}

/* A page may end when very many messages were looked at in front of the next to show. */
enum { PAGE_LOOKS = 1024 };

static bool
may_end_early(const struct known_queue *q, uint64_t behind,
              const struct known_message *next)
{
    size_t looks = 0;

    for (size_t i = 0; i < q->count; i++)
        looks += q->messages[i]->order > behind && q->messages[i]->order <= next->order;
    return looks > PAGE_LOOKS;
}

static bool
judge_page(struct judging *j)
{
    const struct known_queue *q = judging_queue(j);
    size_t limit = (size_t)(j->op->limit == 0 ? j->rules->page : j->op->limit);
    struct known_message *expected[IDS_MAX];
    uint64_t behind = j->op->from.incarnation == 0 ? 0 : j->op->from.order;
    size_t count = 0;

    if (!judge_code(j, 200, PROMISE_CONTRACT))
        return false;
    if ((j->response->count > 0) != (j->response->marker.text[0] != '\0'))
        return verdict_break(j->verdict, PROMISE_CONTRACT,
                             "%zu messages and the marker \"%s\"", j->response->count,
                             j->response->marker.text);
    if (behind != 0 && j->op->from.incarnation != q->incarnation)
        return judge_any_page(j);
    for (size_t i = 0; i < q->count && count < limit; i++)
        if (q->messages[i]->order > behind && is_listed(j, q->messages[i]))
            expected[count++] = q->messages[i];
    if (j->response->count > 0 && j->response->count < count &&
        may_end_early(q, behind, expected[j->response->count]))
        count = j->response->count;
    return judge_sequence(j, expected, judging_shown(j, count));
}

static bool
judge_get_one(struct judging *j)
{
    const struct known_message *m =
        ledger_message(j->ledger, j->op->place, j->op->id.text);
    enum ending ending = ledger_ending(j->ledger, j->op->place, j->op->id.text);

    if (m == NULL)
        return judge_code(j, 404, promise_of_gone(ending));
    if (j->response->code != 200)
        return judge_code(j, 200, judge_missing(j, m));
    if (strcmp(m->id.text, j->response->messages[0].id.text) != 0)
        return verdict_break(j->verdict, PROMISE_CONTRACT, "message %s is shown for %s",
                             j->response->messages[0].id.text, m->id.text);
    return judge_document(j, m, &j->response->messages[0]);
}

/* The messages that the request names and that exist, in the order of the request. */
static size_t
find_named(const struct judging *j, struct known_message **out)
{
    size_t count = 0;

    for (size_t i = 0; i < j->op->id_count; i++) {
        out[count] = ledger_message(j->ledger, j->op->place, j->op->ids[i].text);
        count += out[count] != NULL;
    }
    return count;
}

static bool
judge_get_many(struct judging *j)
{
    struct known_message *expected[IDS_MAX];
    size_t count = find_named(j, expected);

    if (count == 0)
        return judge_code(j, 404, PROMISE_ON_TIME);
    if (j->response->code != 200)
        return judge_code(j, 200, judge_missing(j, expected[0]));
    for (size_t i = 0; i < count; i++) {
        const struct seen_message *seen = &j->response->messages[i];

        if (i >= j->response->count || strcmp(seen->id.text, expected[i]->id.text) != 0)
            return verdict_break(j->verdict, judge_missing(j, expected[i]),
                                 "message %s is not shown", expected[i]->id.text);
        if (!judge_document(j, expected[i], seen))
            return false;
    }
    return j->response->count == count ||
           verdict_break(j->verdict, PROMISE_ON_TIME, "%zu messages instead of %zu",
                         j->response->count, count);
}

/* ---------------------------------------------------------------------- remove */

/* The table of docs/api.md 8.6. */
static int
code_of_delete(const struct judging *j, const struct known_message *m)
{
    const char *id = j->op->claim.text;
    const struct known_claim *c;

    if (m == NULL)
        return 204;
    if (id[0] == '\0')
        return m->claim == NULL ? 204 : 403;
    c = ledger_claim(j->ledger, j->op->place, id);
    if (c == NULL || m->claim == NULL)
        return 400;
    return m->claim == c ? 204 : 403;
}

static bool
judge_delete_one(struct judging *j)
{
    struct known_message *m = ledger_message(j->ledger, j->op->place, j->op->id.text);
    int expected = code_of_delete(j, m);
    enum promise p = PROMISE_ONLY_HOLDER;

    if (m == NULL)
        p = promise_of_gone(ledger_ending(j->ledger, j->op->place, j->op->id.text));
    else if (expected == 204 && j->op->claim.text[0] == '\0')
        p = PROMISE_ON_TIME; /* it is free, but the ledger has a holder */
    if (!judge_code(j, expected, p))
        return false;
    if (m != NULL && expected == 204)
        ledger_remove(j->ledger, j->op->place, m, ENDING_DELETED);
    return true;
}

static bool
judge_delete_many(struct judging *j)
{
    struct known_message *named[IDS_MAX];
    size_t count = find_named(j, named);
    const struct known_claim *c =
        ledger_claim(j->ledger, j->op->place, j->op->claim.text);
    bool checked = j->rules->strict_delete || j->op->claim.text[0] != '\0';

    for (size_t i = 0; checked && i < count; i++)
        if (c == NULL || named[i]->claim != c)
            return judge_code(j, j->rules->strict_delete ? 403 : 400,
                              PROMISE_ONLY_HOLDER);
    if (!judge_code(j, 204, PROMISE_ONLY_HOLDER))
        return false;
    for (size_t i = 0; i < count; i++)
        ledger_remove(j->ledger, j->op->place, named[i], ENDING_DELETED);
    return true;
}

bool
judge_pop_from(struct judging *j, bool *took)
{
    const struct known_queue *q = judging_queue(j);
    size_t limit = (size_t)j->op->limit, reserved = judging_reserved(j), count = 0;
    struct known_message *expected[IDS_MAX];

    if ((q->paused & STORE_PAUSE_CLAIMS) != 0)
        limit = 0;
    for (size_t i = 0; i < q->count && count < limit; i++) {
        if (q->messages[i]->claim != NULL || j->now_ms < q->messages[i]->ready_ms)
            continue;
        if (reserved > 0)
            reserved--;
        else
            expected[count++] = q->messages[i];
    }
    *took = count > 0;
    if (!*took || j->waits)
        return true;
    if (!judge_code(j, 200, PROMISE_CONTRACT))
        return false;
    count = judging_shown(j, count);
    if (!judge_sequence(j, expected, count))
        return false;
    for (size_t i = 0; i < count; i++)
        ledger_remove(j->ledger, j->op->place, expected[i], ENDING_POPPED);
    return true;
}

bool
judge_message(struct judging *j)
{
    switch (j->op->kind) {
    case OP_POST:
        return judge_post(j);
    case OP_LIST:
        return judge_page(j);
    case OP_GET_ONE:
        return judge_get_one(j);
    case OP_GET_MANY:
        return judge_get_many(j);
    case OP_DELETE_ONE:
        return judge_delete_one(j);
    default:
        return judge_delete_many(j);
    }
}
