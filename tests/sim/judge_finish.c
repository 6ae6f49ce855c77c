/* The rules for finish and redrive: docs/api.md, "Finish" and "Redrive". */
#include "sim/judge.h"

#include <stdlib.h>

/* ---------------------------------------------------------------------- finish */

/* The messages of a finish, according to the ledger. */
struct named {
    struct known_claim *claim;           /* NULL: it is over */
    struct known_message *held[IDS_MAX]; /* NULL: the claim does not hold it */
    bool all;
};

static void
find_named(const struct judging *j, struct named *out)
{
    *out = (struct named){.claim = ledger_claim(j->ledger, j->op->place, j->op->id.text),
                          .all = true};
    for (size_t i = 0; i < j->op->id_count; i++) {
        struct known_message *m =
            ledger_message(j->ledger, j->op->place, j->op->ids[i].text);

        if (m != NULL && out->claim != NULL && m->claim == out->claim)
            out->held[i] = m;
        out->all = out->all && out->held[i] != NULL;
    }
}

/* The place of the queue's dead letters for a worker; NOWHERE: it has none. */
static int
letters_of(const struct judging *j)
{
    const int64_t name = judging_queue(j)->settings[SETTING_DEAD_LETTER];

    return name == STORE_UNSET ? NOWHERE : place_of(j->op->place / NAMES, (int)name);
}

static bool
has_dead_letter(const struct operation *op)
{
    for (size_t i = 0; i < op->id_count; i++)
        if (op->items[i].action == STORE_FINISH_DEAD_LETTER)
            return true;
    return false;
}

/* The status that the first refused post of a finish gives it; 200: none is refused. */
static int
code_of_posts(const struct judging *j)
{
    struct mem *mem = mem_new(0);
    size_t first = 0;
    int code = 200;
    struct buf text;

    buf_init(&text, mem);
    for (size_t i = 0; i < j->op->post_count && code == 200; i++) {
        const struct known_queue *q = &j->ledger->queues[j->op->posts[i].place];
        const int64_t most = q->settings[SETTING_POST_BYTES];

        buf_reset(&text, SIZE_MAX);
        operation_write_post(j->op, i, first, &text);
        for (size_t k = first; k < first + j->op->posts[i].count; k++)
            if (judging_expires_delayed(j, j->op->posts[i].place, &j->op->drafts[k]))
                code = 400;
        if (code == 200 && (q->paused & STORE_PAUSE_POSTS) != 0)
            code = 503;
        else if (most != STORE_UNSET && (int64_t)text.len > most)
            code = 400;
        first += j->op->posts[i].count;
    }
    buf_fini(&text);
    mem_destroy(mem);
    return code;
}

/* The status that a finish has to get. */
static int
code_of_finish(const struct judging *j, const struct named *named)
{
    const struct operation *op = j->op;
    int posts;

    if ((int64_t)j->body_bytes > j->rules->post_bytes)
        return 400;
    if (op->id_count == 0 && op->post_count == 0 && !op->renews)
        return 400;
    if (op->atomic && !named->all)
        return 409;
    if (named->claim == NULL)
        return 404;
    posts = code_of_posts(j);
    return posts == 200 && has_dead_letter(op) && letters_of(j) == NOWHERE ? 409 : posts;
}

bool
judging_finish_paused(const struct judging *j)
{
    struct named named;

    find_named(j, &named);
    return code_of_finish(j, &named) == 503;
}

/* The expected result of the i-th message. One without an attempt left becomes a dead
 * letter. */
static char
result_of(const struct judging *j, const struct named *named, size_t i)
{
    static const char letters[] = {[STORE_FINISH_DELETE] = 'x',
                                   [STORE_FINISH_RELEASE] = 'r',
                                   [STORE_FINISH_DEAD_LETTER] = 'd'};
    const enum store_finish_action action = j->op->items[i].action;

    if (named->held[i] == NULL)
        return 'n';
    return action == STORE_FINISH_RELEASE && judging_letter(j, named->held[i])
               ? 'd'
               : letters[action];
}

static bool
judge_results(struct judging *j, const struct named *named)
{
    const struct sim_response *a = j->response;

    if (a->result_count != j->op->id_count)
        return verdict_break(j->verdict, PROMISE_CONTRACT, "%zu results of %zu messages",
                             a->result_count, j->op->id_count);
    for (size_t i = 0; i < a->result_count; i++) {
        char expected = result_of(j, named, i);

        if (expected == 'd' && a->results[i] == 'r' && (j->starved || j->impaired))
            expected = 'r'; /* the next claim moves it */
        if (strcmp(a->finished[i].text, j->op->ids[i].text) != 0)
            return verdict_break(j->verdict, PROMISE_CONTRACT,
                                 "the result of %s stands where that of %s has to",
                                 a->finished[i].text, j->op->ids[i].text);
        if (a->results[i] != expected)
            return verdict_break(j->verdict,
                                 expected == 'n' ? PROMISE_ONLY_HOLDER : PROMISE_ONE_STEP,
                                 "the result of %s is %c, but must be %c",
                                 a->finished[i].text, a->results[i], expected);
    }
    return true;
}

/* The message with the key of the i-th post that stays in its queue; NULL: none. */
static const struct known_message *
find_holder(const struct judging *j, const struct named *named, size_t i)
{
    const struct known_message *m = ledger_key_holder(j->ledger, j->op->posts[i].place,
                                                      j->op->posts[i].unique.number);

    for (size_t k = 0; m != NULL && k < j->op->id_count; k++)
        if (named->held[k] == m && j->response->results[k] != 'r')
            return NULL;
    return m;
}

/* Enters the messages that were posted, each to the end of its queue. */
static bool
enter_posts(struct judging *j, const struct named *named)
{
    struct operation op = *j->op;
    struct judging there = *j;
    struct mem *mem = mem_new(0);
    struct buf body;
    size_t at = 0;

    there.op = &op;
    buf_init(&body, mem);
    for (size_t i = 0; i < j->op->post_count; i++) {
        const struct known_message *holder = find_holder(j, named, i);

        op.place = j->op->posts[i].place;
        op.unique = j->op->posts[i].unique;
        if (!judge_unique(&there, holder, j->response->existing[i],
                          &j->response->posted[at]))
            break;
        if (holder != NULL) {
            at++;
            continue;
        }
        if (!judge_new_ids(&there, at, j->op->posts[i].count))
            break;
        if (!judging_queue(&there)->exists)
            ledger_make_queue(j->ledger, op.place);
        for (size_t k = 0; k < j->op->posts[i].count; k++, at++)
            judging_enter_draft(&there, &j->op->drafts[at], j->response->posted[at].text,
                                &body);
    }
    buf_fini(&body);
    mem_destroy(mem);
    return j->verdict->broken == PROMISE_NONE;
}

/* Delayed, then ready at its old place; the rest of its life does not run meanwhile. */
static void
release(struct judging *j, struct known_message *m, int64_t delay_s)
{
    const int64_t most_ms = j->now_ms + j->rules->max_message_ttl_s * 1000;

    ledger_release(j->ledger, m);
    m->retried = true;
    if (delay_s == 0)
        return;
    m->ready_ms = j->now_ms + delay_s * 1000;
    if (m->expires_ms < most_ms) {
        m->expires_ms += delay_s * 1000;
        if (m->expires_ms > most_ms)
            m->expires_ms = most_ms;
    }
    if (m->own_expires_ms < m->expires_ms)
        m->own_expires_ms = m->expires_ms;
    ledger_watch(j->ledger, m);
}

static void
enter_items(struct judging *j, const struct named *named)
{
    for (size_t i = 0; i < j->op->id_count; i++) {
        const struct finish_item *item = &j->op->items[i];
        struct known_message *m = named->held[i];

        if (m == NULL)
            continue;
        if (item->action == STORE_FINISH_DELETE)
            ledger_remove(j->ledger, j->op->place, m, ENDING_DELETED);
        else if (j->response->results[i] == 'r')
            release(j, m, item->delay_s);
        else
            ledger_dead_letter(j->ledger, j->op->place, letters_of(j), m, j->now_ms);
    }
}

/* A claim that holds something still begins again. */
static bool
judge_renewal(struct judging *j)
{
    struct known_claim *c = ledger_claim(j->ledger, j->op->place, j->op->id.text);
    const bool renewed = j->op->renews && c != NULL;
    const struct sim_response *a = j->response;

    if (a->says_renewed != j->op->renews || a->renewed != renewed)
        return verdict_break(j->verdict, PROMISE_ONE_STEP,
                             "the claim is said to be renewed: %d, but must be: %d",
                             a->renewed, renewed);
    if (a->claim_number != (renewed ? c->number : 0))
        return verdict_break(j->verdict, PROMISE_NUMBERS_GROW,
                             "the finish has the claim number %llu",
                             (unsigned long long)a->claim_number);
    if (!renewed)
        return true;
    judging_renew(j, c);
    return true;
}

bool
judge_finish(struct judging *j)
{
    struct named named;
    int code;

    find_named(j, &named);
    code = code_of_finish(j, &named);
    if (!judge_code(j, code,
                    code == 409   ? PROMISE_ONLY_HOLDER
                    : code == 503 ? PROMISE_PAUSED
                                  : PROMISE_ON_TIME))
        return false;
    if (code != 200)
        return true;
    if (j->tight && j->op->post_count > 0)
        return verdict_break(j->verdict, PROMISE_SAYS_SO,
                             "accepted although the memory budget is used up");
    if (j->response->posted_count != j->op->draft_count)
        return verdict_break(j->verdict, PROMISE_ONE_STEP,
                             "%zu of %zu messages were posted", j->response->posted_count,
                             j->op->draft_count);
    if (!judge_results(j, &named) || !enter_posts(j, &named))
        return false;
    enter_items(j, &named);
    return judge_renewal(j);
}

/* ---------------------------------------------------------------------- redrive */

/* The place to which a dead letter goes back; NOWHERE: that is not known. */
static int
target_of(const struct judging *j, const struct known_message *m)
{
    if (j->op->to != NOWHERE)
        return j->op->to;
    return m->origin == j->op->place ? NOWHERE : m->origin;
}

static void
put_back(struct judging *j, struct known_message *m, int to)
{
    const int64_t set_s = j->ledger->queues[to].settings[SETTING_TTL];
    const int64_t ttl_s = set_s == STORE_UNSET ? j->rules->message_ttl_s : set_s;

    if (!j->ledger->queues[to].exists)
        ledger_make_queue(j->ledger, to);
    ledger_move(j->ledger, j->op->place, to, m);
    m->posted_ms = m->ready_ms = j->now_ms;
    if (m->expires_ms < j->now_ms + ttl_s * 1000)
        m->expires_ms = j->now_ms + ttl_s * 1000;
    m->own_expires_ms = m->expires_ms;
    if (!j->op->keeps_count)
        m->claim_count = 0;
    m->letter = m->retried = false;
    m->returned = true;
    m->origin = NOWHERE;
    m->freed_by_time = m->given_back = false;
    ledger_feed_moved(j->ledger, to, m);
}

/* Does a message of the target hold the key of the letter, or will one of these so many
 * that go? A dry run moves none. */
static bool
is_key_held(const struct judging *j, const struct known_message *m,
            struct known_message *const *going, size_t count)
{
    if (m->unique.number == 0)
        return false;
    for (size_t i = 0; !j->op->dry_run && i < count; i++)
        if (going[i]->unique.number == m->unique.number &&
            target_of(j, going[i]) == target_of(j, m))
            return true;
    return ledger_key_holder(j->ledger, target_of(j, m), m->unique.number) != NULL;
}

/* The dead letters that go back, and why those in front of them do not. */
struct returning {
    struct known_message **letters; /* owned */
    size_t count;
    int64_t unknown, key_held;
};

/* Finds those that have to go, at most `limit`. */
static void
find_letters(const struct judging *j, size_t limit, struct returning *out)
{
    const struct known_queue *q = judging_queue(j);

    *out = (struct returning){.letters = calloc(q->count + 1, sizeof(*out->letters))};
    if (out->letters == NULL)
        abort();
    for (size_t i = 0; i < q->count && out->count < limit; i++) {
        struct known_message *m = q->messages[i];

        if (!m->letter || m->claim != NULL || j->now_ms < m->ready_ms)
            continue;
        if (target_of(j, m) == NOWHERE)
            out->unknown++;
        else if (is_key_held(j, m, out->letters, out->count))
            out->key_held++;
        else
            out->letters[out->count++] = m;
    }
}

static int64_t
count_letters(const struct known_queue *q)
{
    int64_t count = 0;

    for (size_t i = 0; i < q->count; i++)
        count += q->messages[i]->letter;
    return count;
}

static bool
judge_moved(struct judging *j, const struct returning *returning)
{
    const struct sim_response *a = j->response;
    size_t count = returning->count;
    int64_t remaining = count_letters(judging_queue(j));

    /* Without memory it goes as far as it comes. */
    if (j->starved && a->moved < (int64_t)count)
        count = (size_t)a->moved;
    else if (a->without_origin != returning->unknown)
        return verdict_break(j->verdict, PROMISE_CONTRACT,
                             "%lld letters are said to have no origin, must be %lld",
                             (long long)a->without_origin, (long long)returning->unknown);
    else if (a->key_held != returning->key_held)
        return verdict_break(j->verdict, PROMISE_UNIQUE,
                             "the keys of %lld letters are said to be held, must be %lld",
                             (long long)a->key_held, (long long)returning->key_held);
    if (a->moved != (int64_t)count)
        return verdict_break(j->verdict, PROMISE_ONE_QUEUE,
                             "%lld dead letters went back, must be %zu",
                             (long long)a->moved, count);
    if (a->remaining != remaining - (int64_t)count)
        return verdict_break(
            j->verdict, PROMISE_ONE_QUEUE, "%lld dead letters remain, must be %lld",
            (long long)a->remaining, (long long)(remaining - (int64_t)count));
    for (size_t i = 0; !j->op->dry_run && i < count; i++)
        put_back(j, returning->letters[i], target_of(j, returning->letters[i]));
    return true;
}

bool
judge_redrive(struct judging *j)
{
    struct returning returning;
    bool kept;

    if (!judging_queue(j)->exists)
        return judge_code(j, 404, PROMISE_CONTRACT);
    if (j->op->to == j->op->place)
        return judge_code(j, 409, PROMISE_CONTRACT);
    if (!judge_code(j, 200, PROMISE_CONTRACT))
        return false;
    find_letters(j, (size_t)j->op->limit, &returning);
    kept = judge_moved(j, &returning);
    free(returning.letters);
    return kept;
}
