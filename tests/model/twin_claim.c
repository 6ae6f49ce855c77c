/* The twin's operations on claims: docs/api.md 9 and 10, without a thought of cost. */
#include "model/twin.h"
#include "model/twin_state.h"

#include <inttypes.h>
#include <stdio.h>

#include <check.h>
#include <stdlib.h>

bool
twin_exhausted(const struct twin_queue *q, const struct twin_message *m)
{
    return q->settings.max_claim_count != STORE_UNSET &&
           bytes_present(q->settings.dead_letter) &&
           m->claim_count >= q->settings.max_claim_count;
}

void
twin_seal_letter(const struct twin *t, const struct store_queue *where,
                 struct twin_message *m)
{
    const struct store_sealer *sealer = t->config.sealer;
    struct bytes body = bytes_of(m->body, m->body_len);
    char *sealed = twin_alloc(m->body_len + sealer->overhead);

    ck_assert_int_eq(sealer->seal(sealer->arg, where, body, sealed), ST_OK);
    free(m->body);
    m->body = sealed;
    m->body_len += sealer->overhead;
}

void
twin_move_dead_letter(struct twin *t, struct twin_queue *q, size_t i,
                      enum store_cause cause, struct bytes reason, struct bytes client,
                      int64_t now_ms)
{
    struct store_queue where = {.project = bytes_of(q->project, q->project_len),
                                .name = q->settings.dead_letter,
                                .kind = q->kind};
    struct twin_queue *target = twin_find_queue(t, &where);
    struct twin_message *m = twin_take_out(q, i);

    if (target == NULL)
        target = twin_add_queue(t, &where, NULL);
    if (target->settings.encrypt && !store_is_sealed(bytes_of(m->body, m->body_len)))
        twin_seal_letter(t, &where, m);
    twin_note_reason(m, reason, client, now_ms);
    if (m->details.released_ms == 0)
        twin_set_text(&m->details.client, BYTES_NONE);
    for (size_t k = 0; k < q->claim_count && m->details.released_ms == 0; k++)
        if (q->claims[k].number == m->claim)
            twin_set_text(&m->details.client,
                          bytes_of(q->claims[k].client, q->claims[k].client_len));
    m->details.cause = cause;
    m->details.attempts = m->claim_count;
    m->claim_count = 0;
    m->claim = 0;
    if (!bytes_present(m->details.origin))
        twin_set_text(&m->details.origin, bytes_of(q->name, q->name_len));
    m->details.dead_lettered_ms = now_ms;
    m->dead_letter = true;
    if (q->settings.dead_letter_ttl_s != STORE_UNSET) {
        m->posted_ms = now_ms;
        m->expires_ms = twin_deadline_ms(t, now_ms, q->settings.dead_letter_ttl_s);
        m->ready_ms = now_ms;
    } else if (m->expires_ms < twin_deadline_ms(t, now_ms, t->config.dead_letter_ttl_s)) {
        m->expires_ms = twin_deadline_ms(t, now_ms, t->config.dead_letter_ttl_s);
    }
    m->delay_s = 0;
    twin_append(target, m);
    twin_feed(t, target, m);
}

static int64_t
claim_end_ms(const struct twin_claim *c)
{
    return c->started_ms + c->ttl_ms;
}

/* Does m become a dead letter when this claim expires? */
static bool
dies_with(const struct twin_queue *q, const struct twin_claim *c,
          const struct twin_message *m)
{
    return m->claim == c->number && twin_message_live(m, claim_end_ms(c)) &&
           twin_exhausted(q, m);
}

struct twin_message *
twin_find_key(const struct twin_queue *q, struct bytes key, int64_t now_ms)
{
    for (size_t i = 0; i < q->message_count; i++) {
        struct twin_message *m = q->messages[i];
        bool dead = !twin_message_live(m, now_ms) || !store_holds_key(&m->details) ||
                    !bytes_equal(m->details.unique.key, key);

        for (size_t k = 0; !dead && k < q->claim_count; k++)
            dead =
                claim_end_ms(&q->claims[k]) <= now_ms && dies_with(q, &q->claims[k], m);
        if (!dead)
            return m;
    }
    return NULL;
}

void
twin_free_key(struct twin_message *m)
{
    if (!m->details.unique.until_claimed)
        return;
    twin_set_text(&m->details.unique.key, BYTES_NONE);
    m->details.unique.until_claimed = false;
    m->details.unique.due_ms = 0;
}

int64_t
twin_next_letter(const struct store *s, int64_t now_ms, struct store_queue *where)
{
    const struct twin *t = (const struct twin *)s;
    int64_t next_ms = INT64_MAX;

    for (size_t i = 0; i < t->queue_count; i++) {
        const struct twin_queue *q = t->queues[i];

        for (size_t k = 0; k < q->claim_count * q->message_count; k++) {
            const struct twin_claim *c = &q->claims[k / q->message_count];

            if (claim_end_ms(c) <= now_ms || claim_end_ms(c) >= next_ms ||
                !dies_with(q, c, q->messages[k % q->message_count]))
                continue;
            next_ms = claim_end_ms(c);
            *where = (struct store_queue){.project = bytes_of(q->project, q->project_len),
                                          .name = bytes_of(q->name, q->name_len)};
        }
    }
    return next_ms;
}

void
twin_expire_letters(struct store *s, const struct store_queue *where, int64_t now_ms)
{
    struct twin *t = twin_of(s);
    struct twin_queue *q = twin_find_queue(t, where);

    for (size_t k = 0; k < q->claim_count; k++)
        for (size_t i = 0; claim_end_ms(&q->claims[k]) == now_ms && i < q->message_count;)
            if (dies_with(q, &q->claims[k], q->messages[i]))
                twin_move_dead_letter(t, q, i, STORE_CAUSE_EXPIRED, BYTES_NONE,
                                      BYTES_NONE, now_ms);
            else
                i++;
}

static int64_t
first_set(int64_t own, int64_t of_queue, int64_t of_server)
{
    return own != STORE_UNSET ? own : of_queue != STORE_UNSET ? of_queue : of_server;
}

static struct store_terms
twin_terms(const struct twin *t, const struct twin_queue *q,
           const struct store_terms *terms)
{
    const struct store_settings unset = STORE_SETTINGS_INIT;
    const struct store_settings *set = q == NULL ? &unset : &q->settings;

    return (struct store_terms){
        first_set(terms->ttl_s, set->claim_ttl_s, t->config.claim_ttl_s),
        first_set(terms->grace_s, set->claim_grace_s, t->config.claim_grace_s)};
}

bool
twin_claims_tie(const struct store *s, int64_t now_ms, const struct store_queue *where,
                const struct store_terms *terms)
{
    const struct twin *t = (const struct twin *)s;
    const struct store_terms own = twin_terms(t, twin_find_queue(t, where), terms);
    const int64_t ms = twin_deadline_ms(t, now_ms, own.ttl_s);

    for (size_t i = 0; i < t->queue_count; i++)
        for (size_t k = 0; k < t->queues[i]->claim_count; k++)
            if (claim_end_ms(&t->queues[i]->claims[k]) == ms)
                return true;
    return false;
}

void
twin_lengthen(const struct twin *t, struct twin_message *m,
              const struct store_terms *terms, int64_t now_ms)
{
    int64_t life_s = terms->ttl_s + terms->grace_s;

    if (life_s > t->config.max_message_ttl_s)
        life_s = t->config.max_message_ttl_s;
    if (m->expires_ms < twin_deadline_ms(t, now_ms, life_s))
        m->expires_ms = twin_deadline_ms(t, now_ms, life_s);
}

static size_t
least(size_t a, size_t b)
{
    return a < b ? a : b;
}

static void
note_client(struct twin_claim *c, struct bytes client)
{
    if (!bytes_present(client))
        return;
    c->client_len = least(client.len, sizeof(c->client));
    memcpy(c->client, client.data, c->client_len);
}

/* So many in a row are moved before the claim looks at its share again. */
enum { ROW_MAX = 64 };

/*
 * Moves the first row of dead letters that a claim of up to `limit` messages from `i` on
 * comes upon; how many. The messages behind it may be beyond the limit of the claim.
 */
static size_t
move_dead_letters(struct twin *t, struct twin_queue *q, size_t i, size_t limit,
                  int64_t now_ms)
{
    size_t moved = 0;

    for (size_t found = 0; i < q->message_count && found < limit && moved < ROW_MAX;) {
        if (!twin_ready(q, q->messages[i], now_ms)) {
            i++;
        } else if (twin_exhausted(q, q->messages[i])) {
            twin_move_dead_letter(t, q, i, STORE_CAUSE_ATTEMPTS, BYTES_NONE, BYTES_NONE,
                                  now_ms);
            moved++;
        } else if (moved > 0) {
            break;
        } else {
            i++;
            found++;
        }
    }
    return moved;
}

enum status
twin_claim_create(struct store *s, struct store_op *op, const struct store_queue *where,
                  const struct store_terms *terms, size_t limit, struct store_batch *out)
{
    const int64_t now_ms = op->now_ms;
    struct twin *t = twin_of(s);
    struct twin_queue *q = twin_find_queue(t, where);
    struct twin_claim *c = NULL;
    const size_t wants = limit;
    struct store_terms own;
    size_t from;

    own = twin_terms(t, q, terms);
    op->paused = q != NULL && twin_claims_paused(q);
    if (q != NULL)
        twin_forget(t, q, now_ms);
    limit = least(limit, twin_share(t, op, where, &from));
    /* A claim that comes upon dead letters finds less than its share, and looks again. */
    while (q != NULL && move_dead_letters(t, q, from, limit, now_ms) > 0)
        limit = least(limit, twin_share(t, op, where, &from));
    if (q != NULL && !twin_fits(q, from, limit, now_ms, out))
        return ST_OVER_CAPACITY;
    if (q != NULL && !twin_opened(s, q, from, limit, now_ms, out))
        return ST_SEALED;
    *out = twin_open_batch(s, limit);
    for (size_t i = from; q != NULL && i < q->message_count && out->count < limit; i++) {
        struct twin_message *m = q->messages[i];

        if (!twin_ready(q, m, now_ms))
            continue;
        if (c == NULL)
            c = twin_add_claim(t, q, &own, now_ms);
        m->claim = c->number;
        m->claim_count++;
        twin_free_key(m);
        twin_lengthen(t, m, &own, now_ms);
        twin_show(out, q, m, now_ms);
    }
    if (c == NULL) {
        twin_wait(t, op, where, wants);
        return ST_OK;
    }
    note_client(c, op->client);
    out->claim_id = c->id;
    out->claim_number = c->number;
    twin_served(t, op);
    return ST_OK;
}

enum status
twin_claim_get(struct store *s, struct store_op *op, const struct store_queue *where,
               struct bytes claim_id, struct store_batch *out)
{
    const int64_t now_ms = op->now_ms;
    const struct twin_queue *q = twin_find_queue(twin_of(s), where);
    const struct twin_claim *c = q == NULL ? NULL : twin_find_claim(q, claim_id, now_ms);

    if (c == NULL)
        return ST_NOT_FOUND;
    *out = twin_open_batch(s, q->message_count);
    for (size_t i = 0; i < q->message_count; i++)
        if (twin_message_live(q->messages[i], now_ms) &&
            twin_holder(q, q->messages[i], now_ms) == c)
            twin_show(out, q, q->messages[i], now_ms);
    out->claim_id = c->id;
    out->claim_number = c->number;
    out->claim_ttl_s = c->ttl_ms / 1000;
    out->claim_age_s = (now_ms - c->started_ms) / 1000;
    return ST_OK;
}

/* The live claim with the least number behind this one that holds something; NULL:
 * none. */
static const struct twin_claim *
claim_after(const struct twin_queue *q, uint64_t number, int64_t now_ms, uint64_t *held)
{
    const struct twin_claim *least = NULL;

    for (size_t i = 0; i < q->claim_count; i++) {
        const struct twin_claim *c = &q->claims[i];
        uint64_t holds = 0;

        if (c->number <= number || (least != NULL && c->number > least->number))
            continue;
        for (size_t k = 0; k < q->message_count; k++)
            holds += twin_message_live(q->messages[k], now_ms) &&
                     twin_holder(q, q->messages[k], now_ms) == c;
        if (holds == 0)
            continue;
        least = c;
        *held = holds;
    }
    return least;
}

enum status
twin_claim_list(struct store *s, struct store_op *op, const struct store_queue *where,
                struct store_claim_page *page)
{
    struct twin_queue *q = twin_find_queue(twin_of(s), where);
    const struct twin_claim *c;
    uint64_t number = 0, held;

    page->count = 0;
    page->next.text[0] = '\0';
    if (q == NULL)
        return ST_NOT_FOUND;
    twin_forget(twin_of(s), q, op->now_ms);
    (void)bytes_to_u64(page->marker, &number);
    for (; (c = claim_after(q, number, op->now_ms, &held)) != NULL; number = c->number) {
        struct store_claim_info *out = &page->claims[page->count];

        if (bytes_present(page->id) && !bytes_equal(page->id, store_id_bytes(&c->id)))
            continue;
        if (page->count == page->limit) {
            (void)snprintf(page->next.text, sizeof(page->next.text), "%" PRIu64, number);
            break;
        }
        *out =
            (struct store_claim_info){.id = c->id,
                                      .client_len = c->client_len,
                                      .number = c->number,
                                      .age_ms = op->now_ms - c->created_ms,
                                      .left_ms = c->started_ms + c->ttl_ms - op->now_ms,
                                      .messages = held};
        memcpy(out->client, c->client, c->client_len);
        page->count++;
    }
    return ST_OK;
}

enum status
twin_claim_renew(struct store *s, struct store_op *op, const struct store_queue *where,
                 struct bytes claim_id, const struct store_terms *terms, uint64_t *number)
{
    const int64_t now_ms = op->now_ms;
    struct twin *t = twin_of(s);
    struct twin_queue *q = twin_find_queue(t, where);
    struct twin_claim *c = q == NULL ? NULL : twin_find_claim(q, claim_id, now_ms);
    const struct store_terms own = twin_terms(t, q, terms);

    if (c == NULL)
        return ST_NOT_FOUND;
    for (size_t i = 0; i < q->message_count; i++)
        if (twin_message_live(q->messages[i], now_ms) &&
            twin_holder(q, q->messages[i], now_ms) == c)
            twin_lengthen(t, q->messages[i], &own, now_ms);
    c->started_ms = now_ms;
    c->ttl_ms = twin_deadline_ms(t, 0, own.ttl_s);
    note_client(c, op->client);
    *number = c->number;
    return ST_OK;
}

enum status
twin_claim_release(struct store *s, struct store_op *op, const struct store_queue *where,
                   struct bytes claim_id, enum store_release why)
{
    const int64_t now_ms = op->now_ms;
    struct twin_queue *q = twin_find_queue(twin_of(s), where);
    struct twin_claim *c = q == NULL ? NULL : twin_find_claim(q, claim_id, now_ms);

    if (c == NULL)
        return ST_OK;
    for (size_t i = 0; why == STORE_NOT_SEEN && i < q->message_count; i++)
        if (twin_holder(q, q->messages[i], now_ms) == c)
            q->messages[i]->claim_count--;
    twin_remove_claim(q, c);
    return ST_OK;
}
