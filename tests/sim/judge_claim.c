/* The rules for claims and dead letters: docs/api.md 9 and 10. */
#include "sim/judge.h"

#include <stdlib.h>

/* ---------------------------------------------------------------------- plan */

static void *
array(size_t count, size_t size)
{
    void *items = calloc(count + 1, size);

    if (items == NULL)
        abort();
    return items;
}

/* Letters that lie one behind another go together, so many at a time. */
enum { LETTERS_AT_A_TIME = 64 };

bool
judging_letter(const struct judging *j, const struct known_message *m)
{
    return ledger_exhausted(j->ledger, j->op->place, m);
}

void
claim_plan_make(const struct judging *j, struct claim_plan *out)
{
    const struct known_queue *q = judging_queue(j);
    size_t limit = judging_limit(j), reserved = judging_reserved(j);
    size_t run = 0; /* letters that go with the one before */

    *out =
        (struct claim_plan){.letters = array(q->count, sizeof(*out->letters)),
                            .taken_before = array(q->count, sizeof(*out->taken_before))};
    if ((q->paused & STORE_PAUSE_CLAIMS) != 0)
        return;
    for (size_t i = 0; i < q->count; i++) {
        struct known_message *m = q->messages[i];
        bool letter = judging_letter(j, m);

        if (m->claim != NULL || j->now_ms < m->ready_ms)
            continue;
        if (reserved > 0) {
            reserved--;
            continue;
        }
        if ((!letter || run == 0) && out->taken_count >= limit)
            break;
        if (!letter) {
            out->taken[out->taken_count++] = m;
            run = 0;
            continue;
        }
        run = run == 0 ? LETTERS_AT_A_TIME - 1 : run - 1;
        out->taken_before[out->letter_count] = out->taken_count;
        out->letters[out->letter_count++] = m;
    }
}

void
claim_plan_fini(struct claim_plan *plan)
{
    free(plan->letters);
    free(plan->taken_before);
}

/* ---------------------------------------------------------------------- create */

int64_t
judging_claim_ttl(const struct judging *j)
{
    return j->op->ttl_s == STORE_UNSET ? j->rules->claim_ttl_s : j->op->ttl_s;
}

int64_t
judging_claimed_life(const struct judging *j)
{
    int64_t grace_s =
        j->op->grace_s == STORE_UNSET ? j->rules->claim_grace_s : j->op->grace_s;
    int64_t life_s = judging_claim_ttl(j) + grace_s;

    return life_s < j->rules->max_message_ttl_s ? life_s : j->rules->max_message_ttl_s;
}

static void
move_letters(struct judging *j, const struct claim_plan *plan)
{
    int to = ledger_dead_letters(j->ledger, j->op->place);

    for (size_t i = 0; i < plan->letter_count; i++)
        ledger_dead_letter(j->ledger, j->op->place, to, plan->letters[i], j->now_ms);
}

static bool
judge_new_number(struct judging *j)
{
    struct known_queue *q = judging_queue(j);
    uint64_t last = q->last_number;

    q->last_number = j->response->claim_number;
    return q->last_number > last ||
           verdict_break(j->verdict, PROMISE_NUMBERS_GROW,
                         "the claim has number %llu, but there was one with %llu",
                         (unsigned long long)q->last_number, (unsigned long long)last);
}

bool
judge_claim_number(struct judging *j, const struct known_claim *c)
{
    return j->response->claim_number == c->number ||
           verdict_break(j->verdict, PROMISE_NUMBERS_GROW,
                         "the claim has number %llu, but was made with %llu",
                         (unsigned long long)j->response->claim_number,
                         (unsigned long long)c->number);
}

static bool
judge_taken(struct judging *j, const struct claim_plan *plan)
{
    const char *id = j->response->location.text;
    struct known_claim *c;

    if (j->response->code != 201)
        return judge_code(j, 201, judge_missing(j, plan->taken[0]));
    if (id[0] == '\0' || ledger_claim(j->ledger, j->op->place, id) != NULL)
        return verdict_break(j->verdict, PROMISE_CONTRACT,
                             "the claim id \"%s\" is not new", id);
    if (!judge_new_number(j))
        return false;
    c = ledger_add_claim(j->ledger, j->op->place, id, j->now_ms, judging_claim_ttl(j));
    c->number = j->response->claim_number;
    for (size_t i = 0; i < plan->taken_count; i++) {
        struct known_message *m = plan->taken[i];

        m->claim = c;
        m->claim_count++;
        if (m->unique.until_claimed)
            m->unique = (struct known_unique){0, false};
        message_lengthen(m, j->now_ms, judging_claimed_life(j));
    }
    return judge_sequence(j, plan->taken, plan->taken_count);
}

bool
judge_claim_from(struct judging *j, bool *took)
{
    struct claim_plan plan;
    bool kept = true;

    claim_plan_make(j, &plan);
    if (j->starved && j->moved_count < plan.letter_count) {
        /* A letter stays where it is and is not handed out: the claim ends before it. */
        plan.taken_count = plan.taken_before[j->moved_count];
        plan.letter_count = j->moved_count;
    }
    move_letters(j, &plan);
    /* 503: letters that had gone before stay gone, see docs/adr/0003-dead-letters.md. */
    *took = plan.taken_count > 0 || j->response->code == 503;
    plan.taken_count = judging_shown(j, plan.taken_count);
    if (plan.taken_count > 0 && j->response->code != 503 && !j->waits)
        kept = judge_taken(j, &plan);
    claim_plan_fini(&plan);
    return kept;
}

/* ---------------------------------------------------------------------- the rest */

/* The claim of the request is not there. */
static bool
judge_unknown(struct judging *j)
{
    enum ending ending = ledger_ending(j->ledger, j->op->place, j->op->id.text);

    if (j->response->code == 404)
        return true;
    return verdict_break(j->verdict, promise_of_gone(ending),
                         "the response is %d for a claim that %s", j->response->code,
                         ending_text(ending));
}

static bool
judge_show(struct judging *j, const struct known_claim *c)
{
    const struct known_queue *q = judging_queue(j);
    struct known_message *held[IDS_MAX];
    size_t count = 0;

    if (!judge_code(j, 200, PROMISE_ON_TIME) || !judge_claim_number(j, c))
        return false;
    if (j->response->claim_ttl_s != c->ttl_ms / 1000 ||
        j->response->claim_age_s != (j->now_ms - c->started_ms) / 1000 ||
        strcmp(j->response->location.text, c->id.text) != 0)
        return verdict_break(
            j->verdict, PROMISE_ON_TIME,
            "claim %s has ttl %lld and age %lld, must have %lld and %lld",
            j->response->location.text, (long long)j->response->claim_ttl_s,
            (long long)j->response->claim_age_s, (long long)(c->ttl_ms / 1000),
            (long long)((j->now_ms - c->started_ms) / 1000));
    for (size_t i = 0; i < q->count && count < IDS_MAX; i++)
        if (q->messages[i]->claim == c)
            held[count++] = q->messages[i];
    return judge_sequence(j, held, count);
}

void
judging_renew(struct judging *j, struct known_claim *c)
{
    const struct known_queue *q = judging_queue(j);

    claim_begin(j->ledger, c, j->now_ms, judging_claim_ttl(j));
    for (size_t i = 0; i < q->count; i++)
        if (q->messages[i]->claim == c)
            message_lengthen(q->messages[i], j->now_ms, judging_claimed_life(j));
}

static bool
judge_renew(struct judging *j, struct known_claim *c)
{
    if (!judge_code(j, 204, PROMISE_ON_TIME) || !judge_claim_number(j, c))
        return false;
    judging_renew(j, c);
    return true;
}

bool
judge_claim(struct judging *j)
{
    struct known_claim *c;

    c = ledger_claim(j->ledger, j->op->place, j->op->id.text);
    if (j->op->kind == OP_CLAIM_RELEASE) {
        if (c != NULL && j->response->code == 204)
            ledger_end_claim(j->ledger, c, ENDING_RELEASED);
        return judge_code(j, 204, PROMISE_CONTRACT);
    }
    if (c == NULL)
        return judge_unknown(j);
    return j->op->kind == OP_CLAIM_SHOW ? judge_show(j, c) : judge_renew(j, c);
}
