/* state_ops: reads queues as records, and applies records (store/state.h). */
#include "claimd/base/invariant.h"
#include "redis/call.h"
#include "redis/delivery_ops.h"
#include "redis/subscription_ops.h"
#include "redis/waiting.h"

/* ---------------------------------------------------------------------- reading */

/* Words of the response of queue_read, and of each message (number, head, body,
 * claim). */
enum { NOW = 1, TAG, NEXT, METADATA, MESSAGES = METADATA + METADATA_WORDS };
enum { WORDS = 4, HEAD = 1, BODY, CLAIM };

/* Offsets in a claim, as the script packs it. */
enum { STARTED_AT = 0, ENDS_AT = 8, ID_AT = 16, ID_SIZE = SHAPE_CLAIM_SIZE - ID_AT };

/* The memory of the records of one read, and the response that they point into. */
struct records_pin {
    redisReply *response;
    struct store_claim_record *claims; /* after the records */
    struct store_details *details;     /* after the claims, as many as records */
    size_t claim_count;
    struct store_record records[];
};

/* Makes the memory of `records` records and `claims` claims. NULL: no memory. */
static struct records_pin *
records_pin_new(const struct call *c, size_t records, size_t claims,
                struct store_records *out)
{
    struct records_pin *s =
        mem_alloc(c->store->config.mem,
                  sizeof(*s) + records * (sizeof(s->records[0]) + sizeof(s->details[0])) +
                      claims * sizeof(s->claims[0]));

    if (s == NULL)
        return NULL;
    s->claims = (struct store_claim_record *)(s->records + records);
    s->details = (struct store_details *)(s->claims + claims);
    s->claim_count = 0;
    out->store = &c->store->store;
    out->pin = s;
    out->all = s->records;
    return s;
}

/* The record of a claim; NULL: the message is not claimed. Successive messages of one
 * claim share a record. */
static const struct store_claim_record *
claim_record_read(struct records_pin *s, struct bytes text)
{
    struct store_claim_record *last = &s->claims[s->claim_count];

    if (text.len == 0)
        return NULL;
    if (s->claim_count > 0 && memcmp(last[-1].id.text, text.data + ID_AT, ID_SIZE) == 0)
        return last - 1;
    *last = (struct store_claim_record){.started_ms = 0};
    ENSURE(
        message_time_read(text, STARTED_AT, &last->started_ms) &&
        message_time_read(text, ENDS_AT, &last->ends_ms)); /* shape_check() has checked */
    memcpy(last->id.text, text.data + ID_AT, ID_SIZE);
    s->claim_count++;
    return last;
}

static void
message_record_read(const struct call *c, size_t at, struct records_pin *s,
                    struct store_record *out)
{
    const struct message_head head = call_head(c, at + HEAD);
    struct store_message_record *m = &out->message;

    *out = (struct store_record){.kind = STORE_RECORD_MESSAGE};
    m->number = (uint64_t)call_integer(c, at);
    m->body = call_item(c, at + BODY);
    m->checksum = head.checksum;
    m->client = head.client;
    m->posted_ms = head.posted_ms;
    m->expires_ms = head.expires_ms;
    m->delayed_until_ms = head.ready_ms;
    m->claim_count = head.claim_count;
    m->claim = claim_record_read(s, call_item(c, at + CLAIM));
    if (message_head_details(&head, &s->details[out - s->records]))
        m->details = &s->details[out - s->records];
    message_id_write(call_item(c, TAG), m->number, head.original_id, &m->id);
}

/* How a read goes on (store_records.resume): the number of the last message or
 * subscription, the tag of the queue, and the stage. */
enum { AT, READ_TAG, STAGE, MESSAGES_STAGE = 0, SUBSCRIPTIONS_STAGE };

static enum status
records_read_messages(struct call *c, bool first, struct store_records *out)
{
    const size_t messages =
        call_count(c) > MESSAGES ? (call_count(c) - MESSAGES) / WORDS : 0;
    struct records_pin *s = records_pin_new(c, messages + 1, messages, out);
    uint64_t tag = 0;

    if (s == NULL)
        return ST_NO_MEMORY;
    if (first) {
        s->records[0] = (struct store_record){.kind = STORE_RECORD_QUEUE};
        call_read_metadata(c, METADATA, &s->records[out->count++].metadata);
    }
    for (size_t i = 0; i < messages; i++)
        message_record_read(c, MESSAGES + i * WORDS, s, &s->records[out->count++]);
    (void)hex_read(call_item(c, TAG), &tag);
    out->resume[AT] = (uint64_t)call_integer(c, NEXT);
    out->resume[READ_TAG] = tag;
    out->resume[STAGE] = out->resume[AT] != 0 ? MESSAGES_STAGE : SUBSCRIPTIONS_STAGE;
    out->more = true;
    s->response = call_take_response(c);
    return ST_OK;
}

static void
subscription_record_read(const struct call *c, size_t at, struct store_record *out)
{
    *out = (struct store_record){
        .kind = STORE_RECORD_SUBSCRIPTION,
        .subscription = {.subscriber = call_item(c, at + SUB_SUBSCRIBER),
                         .options = call_item(c, at + SUB_OPTIONS),
                         .started_ms = call_integer(c, at + SUB_STARTED),
                         .ttl_s = call_integer(c, at + SUB_TTL),
                         .confirmed = call_integer(c, at + SUB_CONFIRMED) != 0,
                         .pending = call_integer(c, at + SUB_CONFIRM_PENDING) != 0
                                        ? STORE_PENDING_CONFIRM
                                        : 0,
                         .delivered = (uint64_t)call_integer(c, at + SUB_DELIVERED),
                         .permanent_failures =
                             (uint64_t)call_integer(c, at + SUB_PERMANENT_FAILURES),
                         .dropped = (uint64_t)(call_integer(c, at + SUB_DROPPED) +
                                               call_integer(c, at + SUB_MISSED))}};
    call_copy_id(call_item(c, at + SUB_ID), &out->subscription.id);
}

enum { PAGE = 128 };

static enum status
records_read_subscriptions(struct call *c, const uint64_t resume[3],
                           struct store_records *out)
{
    const size_t count = subscription_response_count(c);
    struct records_pin *s = records_pin_new(c, count, 0, out);

    if (s == NULL)
        return ST_NO_MEMORY;
    for (size_t i = 0; i < count; i++)
        subscription_record_read(c, SUB_FIRST + i * SUB_WORDS, &s->records[out->count++]);
    memcpy(out->resume, resume, sizeof(out->resume));
    if (count > 0)
        out->resume[AT] = (uint64_t)call_integer(c, SUB_FIRST + (count - 1) * SUB_WORDS);
    out->more = count == PAGE;
    s->response = call_take_response(c);
    return ST_OK;
}

enum status
redis_read(struct store *store, struct store_op *op, const struct store_queue *where,
           struct store_records *records)
{
    const bool messages = records->resume[STAGE] == MESSAGES_STAGE;
    const bool first = records->resume[READ_TAG] == 0;
    struct store_records out = STORE_RECORDS_INIT;
    char tag[TAG_DIGITS + 1] = "";
    struct call c = call_begin(redis_of(store), op, where);
    enum status st;

    if (!first)
        hex_write_eight(tag, (uint32_t)records->resume[READ_TAG]);
    call_number(&c, (int64_t)records->resume[AT]);
    if (!messages)
        call_limit(&c, PAGE);
    call_text(&c, tag);
    st = call_run(&c, messages ? SCRIPT_queue_read : SCRIPT_subscription_list, CALL_READ);
    if (st == ST_OK)
        st = messages ? records_read_messages(&c, first, &out)
                      : records_read_subscriptions(&c, records->resume, &out);
    if (st == ST_OK)
        *records = out;
    call_end(&c);
    return st;
}

void
redis_records_release(const struct store *store, struct store_records *records)
{
    struct redis_store *s = redis_of((struct store *)(uintptr_t)store);
    struct records_pin *pin = records->pin;

    wire_free_response(&s->cluster.wire, pin->response);
    mem_free(s->config.mem, pin);
}

/* ---------------------------------------------------------------------- applying */

/* Messages of one script. Redis executes nothing else while a script runs. */
enum { APPLY_MOST = 4096, APPLY_TRIES = 4 };

/* The records to apply, and their claims without duplicates. */
struct apply_input {
    const struct store_record *records;
    size_t count, messages, subscriptions;
    const struct store_claim_record **claims; /* owned */
    size_t claim_count;
};

/* 1 + the index of a claim in l->claims. Adds the claim if it is new. 0: `claim` is
 * NULL. */
static size_t
apply_claim_no(struct apply_input *l, const struct store_claim_record *claim)
{
    size_t i = l->claim_count;

    if (claim == NULL)
        return 0;
    while (i > 0 && l->claims[i - 1] != claim &&
           (claim->id.text[0] == '\0' ||
            strcmp(l->claims[i - 1]->id.text, claim->id.text) != 0))
        i--;
    if (i == 0) {
        ENSURE(l->claim_count < l->messages);
        l->claims[l->claim_count++] = claim;
        i = l->claim_count;
    }
    return i;
}

static void
call_add_subscription(struct call *c, const struct store_subscription_record *s)
{
    call_text(c, s->id.text);
    call_random_digits(c, SECRET_DIGITS);
    call_word(c, s->subscriber);
    call_word(c, s->options);
    call_number(c, s->started_ms);
    call_number(c, s->ttl_s);
    call_number(c, s->confirmed);
    call_number(c, s->pending == STORE_PENDING_CONFIRM);
    call_number(c, (int64_t)s->delivered);
    call_number(c, (int64_t)s->permanent_failures);
    call_number(c, (int64_t)s->dropped);
}

static void
call_add_message(struct call *c, struct apply_input *l,
                 const struct store_message_record *m)
{
    struct buf details;

    call_text(c, m->id.text);
    call_number(c, (int64_t)apply_claim_no(l, m->claim));
    call_word(c, m->body);
    call_checksum(c, m->checksum);
    call_raw(c, &m->client, sizeof(m->client));
    call_number(c, m->posted_ms);
    call_number(c, m->expires_ms);
    call_number(c, m->delayed_until_ms);
    call_number(c, m->claim_count);
    buf_init(&details, c->store->config.mem);
    if (m->details != NULL)
        message_details_write(&details, m->details);
    call_buf(c, &details);
}

static enum status
apply_once(struct redis_store *s, struct store_op *op, const struct store_queue *where,
           struct apply_input *l)
{
    const bool makes = l->count > 0 && l->records[0].kind == STORE_RECORD_QUEUE;
    struct call c = call_begin(s, op, where);
    enum status st;

    if (makes)
        call_random_digits(&c, TAG_DIGITS);
    else
        call_text(&c, "");
    call_metadata(&c, makes ? &l->records[0].metadata : NULL);
    call_number(&c, (int64_t)l->claim_count);
    for (size_t i = 0; i < l->claim_count; i++) {
        call_text(&c, l->claims[i]->id.text);
        call_random_digits(&c, SECRET_DIGITS);
        call_number(&c, l->claims[i]->started_ms);
        call_number(&c, l->claims[i]->ends_ms);
    }
    call_number(&c, s->config.require_confirmation);
    call_number(&c, (int64_t)l->subscriptions);
    for (size_t i = 0; i < l->count; i++)
        if (l->records[i].kind == STORE_RECORD_SUBSCRIPTION)
            call_add_subscription(&c, &l->records[i].subscription);
    for (size_t i = 0; i < l->count; i++)
        if (l->records[i].kind == STORE_RECORD_MESSAGE)
            call_add_message(&c, l, &l->records[i].message);
    st = call_run(&c, SCRIPT_queue_apply, CALL_CHANGE);
    if (st == ST_OK && makes)
        st = queue_index_add(s, op, where, call_item(&c, 1));
    call_end(&c);
    if (st == ST_OK && l->subscriptions > 0)
        delivery_mark_due(s, op, where, 0);
    return st;
}

/* Counts the records, and collects their claims. */
static enum status
load_count_records(struct apply_input *l, struct mem *mem)
{
    for (size_t i = 0; i < l->count; i++) {
        l->messages += l->records[i].kind == STORE_RECORD_MESSAGE;
        l->subscriptions += l->records[i].kind == STORE_RECORD_SUBSCRIPTION;
    }
    if (l->messages > APPLY_MOST)
        return ST_TOO_LARGE;
    l->claims =
        mem_calloc(mem, l->messages + 1, sizeof(const struct store_claim_record *));
    if (l->claims == NULL)
        return ST_NO_MEMORY;
    for (size_t i = 0; i < l->count; i++)
        if (l->records[i].kind == STORE_RECORD_MESSAGE)
            (void)apply_claim_no(l, l->records[i].message.claim);
    return ST_OK;
}

enum status
redis_apply(struct store *store, struct store_op *op, const struct store_queue *where,
            const struct store_record *records, size_t count)
{
    struct redis_store *s = redis_of(store);
    struct apply_input l = {.records = records, .count = count};
    struct store_flaw flaw;
    enum status st = store_records_check(s->config.mem, records, count, &flaw);

    if (st == ST_OK)
        st = load_count_records(&l, s->config.mem);
    if (st == ST_OK)
        st = ST_AGAIN;
    /* AGAIN: the id of a message contains the random tag of the new queue. */
    for (int i = 0; st == ST_AGAIN && i < APPLY_TRIES; i++)
        st = apply_once(s, op, where, &l);
    mem_free(s->config.mem, l.claims);
    waiting_wake(s, op, where);
    return st;
}
