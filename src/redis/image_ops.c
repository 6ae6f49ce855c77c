/* Images of queues, and loading them (store/image.h). */
#include "claimd/base/invariant.h"
#include "redis/queue_index.h"
#include "redis/subscription_ops.h"
#include "redis/waiting.h"

/* ---------------------------------------------------------------------- showing */

enum { NOW = 1, TAG, NEXT, METADATA, MESSAGES = METADATA + METADATA_WORDS };

/* Words of a message: number, head, body, claim. */
enum { WORDS = 4, HEAD = 1, BODY, CLAIM };

/* A claim as the script packs it: started, ends, id. */
enum { STARTED_AT = 0, ENDS_AT = 8, ID_AT = 16, ID_SIZE = SHAPE_CLAIM_SIZE - ID_AT };

/* What a piece of ours holds. */
struct shown_piece {
    redisReply *answer;
    struct store_image_claim *claims;
    struct store_image_message messages[];
};

static void
read_claim(struct bytes text, struct store_image_claim *out)
{
    *out = (struct store_image_claim){.started_ms = 0};
    ENSURE(message_time_read(text, STARTED_AT, &out->started_ms) &&
           message_time_read(text, ENDS_AT, &out->ends_ms)); /* as shape_check() has */
    memcpy(out->id.text, text.data + ID_AT, ID_SIZE);
}

/* The place of a claim among those of the piece, entered if need be. */
static size_t
enter_claim(struct store_image *image, struct bytes text)
{
    size_t i = 0;

    if (text.len == 0)
        return 0;
    while (i < image->claim_count &&
           memcmp(image->claims[i].id.text, text.data + ID_AT, ID_SIZE) != 0)
        i++;
    if (i == image->claim_count)
        read_claim(text, &image->claims[image->claim_count++]);
    return i + 1;
}

static void
show_message(const struct call *c, size_t at, struct store_image *image)
{
    struct store_image_message *out = &image->messages[image->message_count++];
    const struct message_head head = call_head(c, at + HEAD);

    *out = (struct store_image_message){.body = call_item(c, at + BODY),
                                        .checksum = head.checksum,
                                        .client = head.client,
                                        .posted_ms = head.posted_ms,
                                        .expires_ms = head.expires_ms,
                                        .delayed_until_ms = head.ready_ms,
                                        .claim_count = head.claim_count,
                                        .claim =
                                            enter_claim(image, call_item(c, at + CLAIM))};
    write_message_id(call_item(c, TAG), (uint64_t)call_integer(c, at), head.id, &out->id);
}

static enum status
show_piece(struct call *c, struct store_image *image)
{
    struct mem *mem = c->store->config.mem;
    const size_t count =
        call_count(c) > MESSAGES ? (call_count(c) - MESSAGES) / WORDS : 0;
    struct shown_piece *piece =
        mem_alloc(mem, sizeof(*piece) + count * (sizeof(struct store_image_message) +
                                                 sizeof(struct store_image_claim)));

    if (piece == NULL)
        return ST_NO_MEMORY;
    piece->claims = (struct store_image_claim *)(piece->messages + count);
    image->store = &c->store->store;
    image->pin = piece;
    image->messages = piece->messages;
    image->claims = piece->claims;
    if (image->first)
        call_read_metadata(c, METADATA, &image->metadata);
    for (size_t i = 0; i < count; i++)
        show_message(c, MESSAGES + i * WORDS, image);
    piece->answer = call_take_response(c);
    return ST_OK;
}

/* What was shown of the queue before: its tag, and behind which of its messages, or subscriptions, to
 * go on. */
enum { AT, SHOWN_TAG, STAGE, MESSAGES_STAGE = 0, SUBSCRIPTIONS_STAGE };

static enum status
image_messages(struct store *store, struct store_visit *visit,
               const struct store_queue *where, struct store_image *image)
{
    const bool first = image->resume[SHOWN_TAG] == 0;
    char tag[TAG_DIGITS + 1] = "";
    struct store_image out = {.first = first};
    struct call c;
    enum status st;

    if (!first)
        hex_write_eight(tag, (uint32_t)image->resume[SHOWN_TAG]);
    call_begin(&c, redis_of(store), visit, where);
    call_number(&c, (int64_t)image->resume[AT]);
    call_text(&c, tag);
    st = call_run(&c, SCRIPT_queue_image, CALL_LOOKS);
    if (st == ST_OK) {
        uint64_t number = 0;

        (void)hex_read(call_item(&c, TAG), &number);
        out.resume[AT] = (uint64_t)call_integer(&c, NEXT);
        out.resume[SHOWN_TAG] = number;
        out.resume[STAGE] = out.resume[AT] != 0 ? MESSAGES_STAGE : SUBSCRIPTIONS_STAGE;
        out.more = true;
        st = show_piece(&c, &out);
    }
    if (st == ST_OK)
        *image = out;
    call_end(&c);
    return st;
}

static void
show_subscription(const struct call *c, size_t at, struct store_image_subscription *out)
{
    *out = (struct store_image_subscription){
        .subscriber = call_item(c, at + SHOWN_SUBSCRIBER),
        .options = call_item(c, at + SHOWN_OPTIONS),
        .started_ms = call_integer(c, at + SHOWN_STARTED),
        .ttl_s = call_integer(c, at + SHOWN_TTL),
        .confirmed = call_integer(c, at + SHOWN_CONFIRMED) != 0,
        .asked = call_integer(c, at + SHOWN_ASKED) != 0,
        .delivered = (uint64_t)call_integer(c, at + SHOWN_DELIVERED),
        .given_up = (uint64_t)call_integer(c, at + SHOWN_GIVEN_UP),
        .fallen_out = (uint64_t)(call_integer(c, at + SHOWN_FALLEN_OUT) +
                                 call_integer(c, at + SHOWN_MISSED))};
    show_subscription_id(call_item(c, at + SHOWN_ID), &out->id);
}

static enum status
image_subscriptions(struct store *store, struct store_visit *visit,
                    const struct store_queue *where, struct store_image *image)
{
    enum { PAGE = 128 };
    struct redis_store *s = redis_of(store);
    struct store_image out = {.first = false};
    struct shown_piece *piece;
    char tag[TAG_DIGITS + 1] = "";
    size_t count;
    struct call c;
    enum status st;

    hex_write_eight(tag, (uint32_t)image->resume[SHOWN_TAG]);
    call_begin(&c, s, visit, where);
    call_number(&c, (int64_t)image->resume[AT]);
    call_limit(&c, PAGE);
    call_text(&c, tag);
    st = call_run(&c, SCRIPT_subscription_list, CALL_LOOKS);
    count = st == ST_OK ? show_subscription_count(&c) : 0;
    piece =
        st != ST_OK
            ? NULL
            : mem_alloc(s->config.mem,
                        sizeof(*piece) + count * sizeof(struct store_image_subscription));
    if (st == ST_OK && piece == NULL)
        st = ST_NO_MEMORY;
    if (st == ST_OK) {
        out.store = store;
        out.pin = piece;
        out.subscriptions = (struct store_image_subscription *)piece->messages;
        out.subscription_count = count;
        for (size_t i = 0; i < count; i++)
            show_subscription(&c, SHOWN_FIRST + i * SHOWN_WORDS, &out.subscriptions[i]);
        memcpy(out.resume, image->resume, sizeof(out.resume));
        if (count > 0)
            out.resume[AT] =
                (uint64_t)call_integer(&c, SHOWN_FIRST + (count - 1) * SHOWN_WORDS);
        out.more = count == PAGE;
        piece->answer = call_take_response(&c);
        *image = out;
    }
    call_end(&c);
    return st;
}

enum status
redis_queue_image(struct store *store, struct store_visit *visit,
                  const struct store_queue *where, struct store_image *image)
{
    return image->resume[STAGE] == MESSAGES_STAGE
               ? image_messages(store, visit, where, image)
               : image_subscriptions(store, visit, where, image);
}

void
redis_image_release(const struct store *store, struct store_image *image)
{
    struct redis_store *s = redis_of((struct store *)(uintptr_t)store);
    struct shown_piece *piece = image->pin;

    redis_response_free(s, piece->answer);
    mem_free(s->config.mem, piece);
}

/* ---------------------------------------------------------------------- loading */

/* Messages that a script takes at once: while it runs nobody else is served. */
enum { LOAD_MOST = 4096, LOAD_TRIES = 4 };

static enum status
add_claims(struct call *c, const struct store_image *image)
{
    char secret[SECRET_DIGITS];
    enum status st = ST_OK;

    call_number(c, (int64_t)image->claim_count);
    for (size_t i = 0; st == ST_OK && i < image->claim_count; i++) {
        const struct store_image_claim *claim = &image->claims[i];

        st = redis_digits(c->store, secret, sizeof(secret));
        call_text(c, claim->id.text);
        call_word(c, bytes_of(secret, sizeof(secret)));
        call_number(c, claim->started_ms);
        call_number(c, claim->ends_ms);
    }
    return st;
}

static enum status
add_subscriptions(struct call *c, const struct store_image *image)
{
    char secret[SECRET_DIGITS];
    enum status st = ST_OK;

    call_number(c, c->store->config.require_confirmation);
    call_number(c, (int64_t)image->subscription_count);
    for (size_t i = 0; st == ST_OK && i < image->subscription_count; i++) {
        const struct store_image_subscription *one = &image->subscriptions[i];

        st = redis_digits(c->store, secret, sizeof(secret));
        call_text(c, one->id.text);
        call_word(c, bytes_of(secret, sizeof(secret)));
        call_word(c, one->subscriber);
        call_word(c, one->options);
        call_number(c, one->started_ms);
        call_number(c, one->ttl_s);
        call_number(c, one->confirmed);
        call_number(c, one->asked);
        call_number(c, (int64_t)one->delivered);
        call_number(c, (int64_t)one->given_up);
        call_number(c, (int64_t)one->fallen_out);
    }
    return st;
}

static void
add_message(struct call *c, const struct store_image_message *m)
{
    char client[sizeof(m->client)];

    memcpy(client, &m->client, sizeof(client));
    call_text(c, m->id.text);
    call_number(c, (int64_t)m->claim);
    call_word(c, m->body);
    call_word(c, m->checksum == NULL ? BYTES_NONE
                                     : bytes_of((const char *)m->checksum->digest,
                                                sizeof(m->checksum->digest)));
    call_word(c, bytes_of(client, sizeof(client)));
    call_number(c, m->posted_ms);
    call_number(c, m->expires_ms);
    call_number(c, m->delayed_until_ms);
    call_number(c, m->claim_count);
}

static enum status
load(struct redis_store *s, struct store_visit *visit, const struct store_queue *where,
     const struct store_image *image)
{
    char tag[TAG_DIGITS];
    struct call c;
    enum status st = redis_digits(s, tag, sizeof(tag));

    if (st != ST_OK)
        return st;
    call_begin(&c, s, visit, where);
    call_word(&c, bytes_of(tag, image->first ? sizeof(tag) : 0));
    call_metadata(&c, image->first ? &image->metadata : NULL);
    st = add_claims(&c, image);
    if (st == ST_OK)
        st = add_subscriptions(&c, image);
    for (size_t i = 0; i < image->message_count; i++)
        add_message(&c, &image->messages[i]);
    if (st == ST_OK)
        st = call_run(&c, SCRIPT_queue_load, CALL_CHANGES);
    if (st == ST_OK && image->first)
        st = queue_index_add(s, visit, where, call_item(&c, 1));
    call_end(&c);
    if (st == ST_OK && image->subscription_count > 0)
        delivery_is_due(s, visit, where, 0);
    return st;
}

enum status
redis_queue_load(struct store *store, struct store_visit *visit,
                 const struct store_queue *where, const struct store_image *image)
{
    struct redis_store *s = redis_of(store);
    struct store_flaw flaw;
    enum status st = store_image_check(s->config.mem, image, &flaw);

    if (st != ST_OK)
        return st;
    if (image->message_count > LOAD_MOST)
        return ST_TOO_LARGE;
    st = ST_AGAIN; /* a message has the tag that the queue was to get */
    for (int i = 0; st == ST_AGAIN && i < LOAD_TRIES; i++)
        st = load(s, visit, where, image);
    waiting_wake(s, visit, where);
    return st;
}
