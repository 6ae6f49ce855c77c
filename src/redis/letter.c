#include "redis/letter.h"

#include "claimd/base/clock.h"
#include "redis/message_head.h"
#include "redis/names.h"

/* A letter as the script packs it. */
enum {
    POSTED_AT = 0,
    EXPIRES_AT = 8,
    CLIENT_AT = 16,
    NAME_LEN_AT = 24,
    SUM_LEN_AT = 25,
    ID_AT = 26,
    ID_LEN = 24,
    TEXTS_AT = ID_AT + ID_LEN
};

/* Letters are brought so long after they were lent. */
static const int64_t BRINGING_MS = 60000;

struct letter {
    struct bytes trip, id, client, name, sum, body;
    int64_t posted_ms, expires_ms;
};

static bool
read_letter(struct bytes trip, struct bytes text, struct letter *out)
{
    size_t name_len, sum_len;

    if (!bytes_present(trip) || text.len < TEXTS_AT)
        return false;
    name_len = (uint8_t)text.data[NAME_LEN_AT];
    sum_len = (uint8_t)text.data[SUM_LEN_AT];
    if (text.len < TEXTS_AT + name_len + sum_len)
        return false;
    *out = (struct letter){.trip = trip,
                           .id = bytes_of(text.data + ID_AT, ID_LEN),
                           .client = bytes_of(text.data + CLIENT_AT, 8)};
    if (!message_time_read(text, POSTED_AT, &out->posted_ms) ||
        !message_time_read(text, EXPIRES_AT, &out->expires_ms))
        return false;
    out->name = bytes_of(text.data + TEXTS_AT, name_len);
    out->sum = bytes_of(out->name.data + name_len, sum_len);
    out->body =
        bytes_of(out->sum.data + sum_len, text.len - TEXTS_AT - name_len - sum_len);
    return true;
}

static enum status
post_body(struct redis_store *s, const struct store_visit *visit,
          const struct store_queue *to, const struct letter *l, struct bytes body)
{
    char tag[TAG_DIGITS];
    struct call c;
    enum status st = redis_digits(s, tag, sizeof(tag));

    if (st != ST_OK)
        return st;
    call_begin(&c, s, visit, to);
    call_word(&c, bytes_of(tag, sizeof(tag)));
    call_word(&c, l->trip);
    call_word(&c, l->id);
    call_number(&c, l->posted_ms);
    call_number(&c, l->expires_ms);
    call_word(&c, l->client);
    call_word(&c, l->sum);
    call_word(&c, body);
    st = call_run(&c, SCRIPT_letter_post, CALL_CHANGES);
    if (st == ST_OK && call_integer(&c, 1) != 0)
        st = names_enter(s, visit, to, call_item(&c, 2));
    call_end(&c);
    return st;
}

/* A letter does not lie in clear in a queue whose messages are encrypted. */
static enum status
post_sealed(struct redis_store *s, const struct store_visit *visit,
            const struct store_queue *to, const struct letter *l)
{
    const struct store_sealer *sealer = s->config.sealer;
    size_t size;
    char *sealed;
    enum status st;

    if (sealer == NULL)
        return ST_NO_KEY;
    size = l->body.len + sealer->overhead;
    sealed = mem_alloc(s->config.mem, size);
    if (sealed == NULL)
        return ST_NO_MEMORY;
    st = sealer->seal(sealer->arg, to, l->body, sealed);
    if (st == ST_OK)
        st = post_body(s, visit, to, l, bytes_of(sealed, size));
    mem_free(s->config.mem, sealed);
    return st;
}

static enum status
post(struct redis_store *s, const struct store_visit *visit,
     const struct store_queue *from, const struct letter *l)
{
    const struct store_queue to = {from->project, l->name, from->kind};
    enum status st = post_body(s, visit, &to, l, l->body);

    if (st == ST_NOT_SEALED)
        st = post_sealed(s, visit, &to, l);
    waiting_stir(s, visit, &to);
    return st;
}

/* How long somebody may still be about to bring letters that others have brought: twice as long as it
 * takes to lend them, and the last of them to arrive. */
static int64_t
remembered_ms(const struct redis_store *s)
{
    const struct cluster_config *config = &s->cluster.config;
    const int64_t ask_ms = config->patience_ms + 2 * config->link.answer_ms;

    return 2 * (BRINGING_MS + 2 * ask_ms);
}

/* Is it too late to bring what the call was lent? */
static bool
is_over(const struct call *c)
{
    return clock_stopwatch_ns() - c->begun_ns > BRINGING_MS * 1000000;
}

/* So many letters have arrived, and are lent to nobody again. If that cannot be said, it goes without
 * saying in a week. */
static void
forget(const struct call *c, size_t from, size_t count, const struct store_visit *visit,
       const struct store_queue *where)
{
    struct letter l;
    size_t at = from;

    while (count > 0 && call_has(c, at + 1)) {
        struct store_queue to = {.project = where->project, .kind = where->kind};
        struct call told;

        if (!read_letter(call_item(c, at), call_item(c, at + 1), &l)) {
            at += 2;
            continue;
        }
        to.name = l.name;
        call_begin(&told, c->store, visit, &to);
        call_number(&told, remembered_ms(c->store));
        for (; count > 0 && call_has(c, at + 1); at += 2) {
            if (!read_letter(call_item(c, at), call_item(c, at + 1), &l))
                continue;
            if (!bytes_equal(l.name, to.name))
                break;
            call_word(&told, l.trip);
            count--;
        }
        (void)call_run(&told, SCRIPT_letter_forget, CALL_NOTES);
        call_end(&told);
    }
}

enum status
letters_drive(const struct call *c, size_t from, const struct store_visit *visit,
              const struct store_queue *where)
{
    struct redis_store *s = c->store;
    enum status st = ST_OK;
    size_t arrived = 0;
    struct call done;

    if (!call_has(c, from))
        return ST_OK;
    call_begin(&done, s, visit, where);
    for (size_t i = from; call_has(c, i + 1) && !is_over(c); i += 2) {
        struct letter l;

        if (!read_letter(call_item(c, i), call_item(c, i + 1), &l))
            continue; /* what keeps the key there */
        st = post(s, visit, where, &l);
        if (st != ST_OK)
            break;
        call_word(&done, l.trip);
        done_count(&s->done, STORE_COUNT_DEAD_LETTERS, 1);
        arrived++;
    }
    if (arrived > 0) {
        enum status told = call_run(&done, SCRIPT_letter_done, CALL_CHANGES);

        if (told == ST_OK)
            forget(c, from, arrived, visit, where);
        st = st == ST_OK ? told : st;
    }
    call_end(&done);
    return st;
}
