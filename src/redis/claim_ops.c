/* The store's operations on claims. */
#include "claimd/store/image.h"
#include "redis/letter.h"
#include "redis/show.h"

/* Words of the answers of claim_create and claim_get. */
enum { NOW = 1, TAG, NUMBER, BASE, CREATED_MESSAGES, STARTED = 5, ENDS, GOT_MESSAGES };

enum { BASE_SHIFT = 12 };

/* How long what a claim holds lives on, at least. */
static int64_t
life_ms(const struct redis_store *s, const struct store_terms *terms)
{
    int64_t life_s = terms->ttl_s + terms->grace_s;

    return 1000 *
           (life_s > s->config.max_message_ttl_s ? s->config.max_message_ttl_s : life_s);
}

static uint64_t
fencing_number(const struct call *c)
{
    return ((uint64_t)call_integer(c, BASE) << BASE_SHIFT) +
           (uint64_t)call_integer(c, NUMBER);
}

/* Shows what was taken, or would have been, in the room that there is for it. */
static enum status
show_taken(struct call *c, struct shown *room, struct bytes secret, enum status st,
           const struct store_visit *visit, const struct store_queue *where,
           struct store_batch *out)
{
    const int64_t now_ms = call_integer(c, NOW);
    const uint64_t number = (uint64_t)call_integer(c, NUMBER);
    const uint64_t fencing = fencing_number(c);
    size_t end = CREATED_MESSAGES;

    while (call_integer(c, end) > 0)
        end += 4;
    (void)letters_drive(c, end + 1, visit, where); /* else somebody else does */
    if (st == ST_NO_ROOM)
        out->room = (size_t)number;
    if (st != ST_OK && st != ST_SEALED) {
        show_free(c->store, room);
        return st;
    }
    show_in(room, c, CREATED_MESSAGES, now_ms, call_item(c, TAG), out);
    if (st != ST_OK || number == 0)
        return st;
    show_claim_id(secret, number, &out->claim_id);
    out->claim_number = fencing;
    for (size_t i = 0; i < out->count; i++)
        out->messages[i].claim_id = out->claim_id;
    return ST_OK;
}

/* It was made, but that is not confirmed: nobody gets it. */
static void
give_up(struct call *c, struct bytes secret, const struct store_visit *visit,
        const struct store_queue *where)
{
    struct store_visit again = {.now_ms = visit->now_ms};
    struct store_id id;

    if (call_integer(c, NUMBER) <= 0)
        return;
    show_claim_id(secret, (uint64_t)call_integer(c, NUMBER), &id);
    (void)redis_claim_release(&c->store->store, &again, where, store_id_bytes(&id),
                              STORE_NOT_SEEN);
}

static enum status
run_create(struct redis_store *s, const struct store_visit *visit,
           const struct store_queue *where, const struct store_terms *terms, size_t limit,
           struct shown *room, struct store_batch *out)
{
    char digits[SECRET_DIGITS];
    struct bytes secret;
    size_t reserved;
    struct call c;
    enum status st = redis_digits(s, digits, sizeof(digits));

    if (st != ST_OK) {
        show_free(s, room);
        return st;
    }
    secret = bytes_of(digits, sizeof(digits));
    call_begin(&c, s, visit, where);
    call_word(&c, secret);
    call_number(&c, terms->ttl_s * 1000);
    call_number(&c, life_ms(s, terms));
    reserved = waiting_reserved(s, visit, where, &limit);
    call_limit(&c, limit);
    call_number(&c, (int64_t)reserved);
    call_number(&c, (int64_t)out->room);
    call_word(&c, where->name);
    call_number(&c, s->config.dead_letter_ttl_s);
    call_opened(&c, out->opened);
    st = call_run(&c, SCRIPT_claim_create, CALL_CHANGES);
    if (st == ST_UNCONFIRMED)
        give_up(&c, secret, visit, where);
    if (st != ST_UNCONFIRMED && call_has(&c, BASE))
        st = show_taken(&c, room, secret, st, visit, where, out);
    else
        show_free(s, room);
    call_end(&c);
    return st;
}

enum status
redis_claim_create(struct store *store, struct store_visit *visit,
                   const struct store_queue *where, const struct store_terms *terms,
                   size_t limit, struct store_batch *out)
{
    struct redis_store *s = redis_of(store);
    struct shown *room = show_room(s, limit);
    enum status st = room == NULL ? ST_NO_MEMORY
                                  : run_create(s, visit, where, terms, limit, room, out);

    if (st != ST_OK)
        return st;
    if (out->count == 0)
        return waiting_found_nothing(s, visit, where, limit);
    done_count(&s->done, STORE_COUNT_CLAIMS, 1);
    done_count(&s->done, STORE_COUNT_CLAIMED, out->count);
    show_waited(s, out);
    waiting_served(s, visit, where);
    return ST_OK;
}

enum status
redis_claim_get(struct store *store, struct store_visit *visit,
                const struct store_queue *where, struct bytes claim_id,
                struct store_batch *out)
{
    struct call c;
    enum status st;

    if (!store_id_good(claim_id))
        return ST_NOT_FOUND; /* the batch has no place for it */
    call_begin(&c, redis_of(store), visit, where);
    call_id(&c, claim_id);
    st = call_run(&c, SCRIPT_claim_get, CALL_LOOKS);
    if (st == ST_OK) {
        const int64_t now_ms = call_integer(&c, NOW), started = call_integer(&c, STARTED);
        const int64_t ends = call_integer(&c, ENDS);
        const uint64_t number = fencing_number(&c);

        st = show_messages(&c, GOT_MESSAGES, now_ms, call_item(&c, TAG), out);
        memcpy(out->claim_id.text, claim_id.data, claim_id.len);
        out->claim_id.text[claim_id.len] = '\0';
        out->claim_number = number;
        out->claim_ttl_s = (ends - started) / 1000;
        out->claim_age_s = (now_ms - started) / 1000;
    }
    call_end(&c);
    return st;
}

enum status
redis_claim_renew(struct store *store, struct store_visit *visit,
                  const struct store_queue *where, struct bytes claim_id,
                  const struct store_terms *terms, uint64_t *number)
{
    enum { RENEWED_NUMBER = 1, RENEWED_BASE };
    struct redis_store *s = redis_of(store);
    struct call c;
    enum status st;

    call_begin(&c, s, visit, where);
    call_id(&c, claim_id);
    call_number(&c, terms->ttl_s * 1000);
    call_number(&c, life_ms(s, terms));
    st = call_run(&c, SCRIPT_claim_renew, CALL_CHANGES);
    if (st == ST_OK)
        *number = ((uint64_t)call_integer(&c, RENEWED_BASE) << BASE_SHIFT) +
                  (uint64_t)call_integer(&c, RENEWED_NUMBER);
    if (st == ST_OK)
        done_count(&s->done, STORE_COUNT_RENEWALS, 1);
    call_end(&c);
    waiting_stir(s, visit, where); /* it may end earlier now */
    return st;
}

enum status
redis_claim_release(struct store *store, struct store_visit *visit,
                    const struct store_queue *where, struct bytes claim_id,
                    enum store_release why)
{
    struct redis_store *s = redis_of(store);
    struct call c;
    enum status st;

    call_begin(&c, s, visit, where);
    call_id(&c, claim_id);
    call_number(&c, why == STORE_NOT_SEEN);
    st = call_run(&c, SCRIPT_claim_release, CALL_CHANGES);
    if (st == ST_OK)
        done_count(&s->done, store_release_counter(why), (uint64_t)call_integer(&c, 1));
    call_end(&c);
    waiting_stir(s, visit, where);
    return st;
}
