#include "redis/letter.h"

#include "redis/names.h"

/* A letter as the script packs it. */
enum { EXPIRES_AT = 8, CLIENT_AT = 16, NAME_LEN_AT = 24, SUM_LEN_AT = 25, TEXTS_AT = 26 };

struct letter {
    struct bytes id, client, name, sum, body;
    double posted_ms, expires_ms;
};

static bool
read_letter(struct bytes id, struct bytes text, struct letter *out)
{
    size_t name_len, sum_len;

    if (!bytes_present(id) || text.len < TEXTS_AT)
        return false;
    name_len = (uint8_t)text.data[NAME_LEN_AT];
    sum_len = (uint8_t)text.data[SUM_LEN_AT];
    if (text.len < TEXTS_AT + name_len + sum_len)
        return false;
    *out = (struct letter){.id = id, .client = bytes_of(text.data + CLIENT_AT, 8)};
    memcpy(&out->posted_ms, text.data, sizeof(double));
    memcpy(&out->expires_ms, text.data + EXPIRES_AT, sizeof(double));
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
    call_word(&c, l->id);
    call_number(&c, (int64_t)l->posted_ms);
    call_number(&c, (int64_t)l->expires_ms);
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
    for (size_t i = from; call_has(c, i + 1); i += 2) {
        struct letter l;

        if (!read_letter(call_item(c, i), call_item(c, i + 1), &l))
            continue; /* what keeps the key there */
        st = post(s, visit, where, &l);
        if (st != ST_OK)
            break;
        call_word(&done, l.id);
        arrived++;
    }
    if (arrived > 0) {
        enum status told = call_run(&done, SCRIPT_letter_done, CALL_CHANGES);

        st = st == ST_OK ? told : st;
    }
    call_end(&done);
    return st;
}
