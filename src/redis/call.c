#include "redis/call.h"

#include "claimd/base/invariant.h"

#include <stdio.h>

/* ---------------------------------------------------------------------- the store */

void
redis_warn(void *store, const char *text)
{
    static const int64_t EVERY_NS = 1000000000;
    struct redis_store *s = store;
    const int64_t now_ns = clock_stopwatch_ns();
    int64_t warned_ns = atomic_load(&s->warned_ns);

    if (s->config.warn != NULL && (warned_ns == 0 || now_ns - warned_ns >= EVERY_NS) &&
        atomic_compare_exchange_strong(&s->warned_ns, &warned_ns, now_ns))
        s->config.warn(s->config.warn_arg, text);
}

bool
queue_address_copy(const struct store_queue *from, struct buf *text,
                   struct store_queue *to)
{
    *to = *from;
    buf_reset(text, SIZE_MAX);
    buf_bytes(text, from->project);
    buf_bytes(text, from->name);
    if (text->failed)
        return false;
    to->project = bytes_of(buf_view(text).data, from->project.len);
    to->name = bytes_of(buf_view(text).data + from->project.len, from->name.len);
    return true;
}

void
counters_add(struct redis_store *s, const struct store_queue *where,
             enum store_counter which, uint64_t by)
{
    if (where->kind == STORE_SCHEDULES)
        return;
    lock_acquire(&s->lock);
    counter_add(&s->counters.counts[which], by);
    lock_release(&s->lock);
}

void
counters_span(struct redis_store *s, const struct store_queue *where,
              enum store_span which, int64_t value)
{
    if (where->kind == STORE_SCHEDULES)
        return;
    lock_acquire(&s->lock);
    buckets_add(&s->counters.spans[which], &store_span_bounds[which],
                value > 0 ? (uint64_t)value : 0);
    lock_release(&s->lock);
}

/* ---------------------------------------------------------------------- calls */

/* The keys of a queue (lib/queue.lua): five that it always has, two of its subscriptions,
 * and that of a deleted predecessor. */
static const char key_suffixes[] = {'q', 'z', 'm', 't', 'x', 's', 'u', 'f'};
enum { PLAIN_KEYS = 5, FEED_KEYS = 7, ALL_KEYS = 8 };

static void
call_init(struct call *c, struct redis_store *s, struct bytes key)
{
    *c = (struct call){.store = s,
                       .request = {.slot = slot_of(key)},
                       .failure = ST_NO_MEMORY,
                       .begun_ns = clock_stopwatch_ns()};
    command_init(&c->words, s->config.mem);
}

/* Adds the first `count` keys of the queue, and the string of an Idempotency-Key (NULL:
 * none). `key` has their common part. */
static void
call_add_keys(struct command_words *words, struct buf *key, size_t count,
              const struct store_key *own)
{
    ENSURE(count <= sizeof(key_suffixes));
    command_number(words, (int64_t)(count + (own != NULL)));
    for (size_t i = 0; i < count; i++) {
        buf_byte(key, key_suffixes[i]);
        command_word(words, buf_view(key));
        if (!key->failed)
            key->len--;
    }
    if (own != NULL) {
        buf_printf(key, "i%016llx%016llx", (unsigned long long)own->hash[0],
                   (unsigned long long)own->hash[1]);
        command_word(words, buf_view(key));
    }
    words->words.failed = words->words.failed || key->failed;
}

void
call_time(struct call *c, const struct store_op *op)
{
    if (c->store->config.test_clock)
        call_number(c, op->now_ms);
    else
        call_text(c, "");
}

static struct call
call_begin_keys(struct redis_store *s, const struct store_op *op,
                const struct store_queue *where, size_t count)
{
    struct buf key;
    struct call c;

    buf_init(&key, s->config.mem);
    key_of_queue(&key, where);
    call_init(&c, s, buf_view(&key));
    c.op = op;
    c.where = where;
    c.key_count = count;
    call_add_keys(&c.words, &key, count, NULL);
    c.arguments = c.words.words.len;
    c.words_of_keys = c.words.count;
    call_time(&c, op);
    buf_fini(&key);
    return c;
}

struct call
call_begin(struct redis_store *s, const struct store_op *op,
           const struct store_queue *where)
{
    return call_begin_keys(s, op, where, PLAIN_KEYS);
}

struct call
call_begin_all(struct redis_store *s, const struct store_op *op,
               const struct store_queue *where)
{
    return call_begin_keys(s, op, where, ALL_KEYS);
}

/* Replaces the keys by the first `count` keys of the queue and that of the call. The
 * arguments stay. */
static void
call_extend_keys(struct call *c, size_t count)
{
    const struct buf *old = &c->words.words;
    struct command_words words;
    size_t argument_words;
    struct buf key;

    ENSURE(c->where != NULL && count >= c->key_count);
    argument_words = c->words.count - c->words_of_keys;
    buf_init(&key, c->store->config.mem);
    command_init(&words, c->store->config.mem);
    key_of_queue(&key, c->where);
    call_add_keys(&words, &key, count, c->key);
    buf_fini(&key);
    c->key_count = count;
    c->words_of_keys = words.count;
    words.count += argument_words;
    count = words.words.len;
    buf_bytes(&words.words, bytes_of(old->data + c->arguments, old->len - c->arguments));
    c->arguments = count;
    command_fini(&c->words);
    c->words = words;
}

struct call
call_begin_key(struct redis_store *s, struct buf *key)
{
    struct call c;

    call_init(&c, s, buf_view(key));
    call_number(&c, 1);
    call_buf(&c, key);
    return c;
}

void
call_random_digits(struct call *c, size_t count)
{
    struct redis_store *s = c->store;
    uint8_t raw[SECRET_DIGITS];
    enum status st;

    ENSURE(count <= SECRET_DIGITS);
    lock_acquire(&s->lock);
    st = entropy_reserve(&s->entropy, count);
    if (st == ST_OK)
        entropy_take(&s->entropy, raw, count);
    lock_release(&s->lock);
    if (st != ST_OK) {
        c->failure = st;
        c->words.words.failed = true;
        return;
    }
    c->digits[0] = (char)('a' + raw[0] % 6);
    for (size_t i = 1; i < count; i++)
        c->digits[i] = "0123456789abcdef"[raw[i] % 16];
    call_word(c, bytes_of(c->digits, count));
}

void
call_buf(struct call *c, struct buf *word)
{
    call_word(c, buf_view(word));
    c->words.words.failed = c->words.words.failed || word->failed;
    buf_fini(word);
}

void
call_checksum(struct call *c, const struct store_checksum *checksum)
{
    call_raw(c, checksum == NULL ? "" : (const char *)checksum->digest,
             checksum == NULL ? 0 : sizeof(checksum->digest));
}

void
call_unique(struct call *c, const struct store_unique *unique, struct bytes replaces,
            int64_t ready_ms)
{
    struct buf details;

    buf_init(&details, c->store->config.mem);
    if (unique != NULL)
        message_details_write(&details, &(struct store_details){.unique = *unique});
    call_buf(c, &details);
    if (bytes_present(replaces))
        call_id(c, replaces);
    else
        call_text(c, "");
    call_number(c, ready_ms);
}

void
call_key(struct call *c, const struct store_key *key)
{
    if (key == NULL)
        return;
    call_raw(c, key->digest, sizeof(key->digest));
    call_number(c, c->store->config.key_window_ms);
    c->key = key;
    if (!c->words.words.failed)
        call_extend_keys(c, c->key_count);
}

void
call_id(struct call *c, struct bytes id)
{
    call_word(c, store_id_good(id) ? id : bytes_str("-"));
}

void
call_marker(struct call *c, struct bytes marker)
{
    enum { DIGITS = 23 }; /* fewer than an id has */
    uint64_t number;

    if (store_id_good(marker))
        call_word(c, marker);
    else if (marker.len <= DIGITS && bytes_to_u64(marker, &number) && number <= INT64_MAX)
        call_number(c, (int64_t)number);
    else
        call_text(c, "");
}

void
call_metadata(struct call *c, const struct store_metadata *metadata)
{
    const struct store_settings unset = STORE_SETTINGS_INIT;
    const struct store_settings *set = metadata == NULL ? &unset : &metadata->settings;

    call_word(c, metadata == NULL ? BYTES_NONE : metadata->json);
    call_number(c, set->max_post_bytes);
    call_number(c, set->message_ttl_s);
    call_number(c, set->message_delay_s);
    call_number(c, set->max_claim_count);
    call_number(c, set->dead_letter_ttl_s);
    call_word(c, set->dead_letter);
    call_number(c, set->transient);
    call_number(c, set->encrypt);
    call_number(c, set->claim_ttl_s);
    call_number(c, set->claim_grace_s);
    call_number(c, set->paused);
    call_word(c, set->paused_by);
}

/* ---------------------------------------------------------------------- running */

/* The number of keys that the script needs if it lacks some. The script has changed
 * nothing then. 0: it lacks none. */
static size_t
missing_keys(const struct call *c)
{
    const int64_t status = call_integer(c, 0);
    const size_t wanted = status == RESPONSE_NEEDS_FEED    ? FEED_KEYS
                          : status == RESPONSE_NEEDS_FENCE ? ALL_KEYS
                                                           : 0;

    return c->where != NULL && wanted > c->key_count ? wanted : 0;
}

/* Expires what is due, because a script that only reads must not do so, and moves dead
 * letters. ST_AGAIN: done, call the script again. */
static enum status
expire_due(struct call *c)
{
    struct call expire = call_begin(c->store, c->op, c->where);
    enum status st;

    call_word(&expire, c->where->name);
    call_number(&expire, c->store->config.dead_letter_ttl_s);
    call_number(&expire, false);
    st = call_run(&expire, SCRIPT_queue_expire, CALL_CHANGE);
    if (st == ST_OK)
        (void)outbox_deliver(&expire, 2, c->op, c->where); /* or another process, later */
    call_end(&expire);
    return st == ST_OK ? ST_AGAIN : st;
}

/* True for a status that this call cannot have. */
static bool
is_unexpected(const struct call *c, enum script script, int64_t status)
{
    return status == RESPONSE_NEEDS_FEED || status == RESPONSE_NEEDS_FENCE ||
           (status == RESPONSE_EXPIRE_FIRST &&
            (c->where == NULL || script == SCRIPT_queue_expire)) ||
           (status > RESPONSE_EXPIRE_FIRST && c->key == NULL);
}

/* Claims of the queue may end earlier than claimd knows: the script says so, or its
 * response was lost. */
static void
note_claim_end(const struct call *c, enum status st)
{
    if (c->request.due_ms > 0)
        claim_ends_add(c->store, c->where, c->request.due_ms);
    else if (st == ST_UNCONFIRMED && c->request.response == NULL)
        claim_ends_add(c->store, c->where, 0);
}

enum status
call_run(struct call *c, enum script script, enum call_kind kind)
{
    static const enum status statuses[RESPONSE_STATUSES] = {
        ST_OK,          ST_AGAIN,       ST_NOT_FOUND,     ST_CHANGED,
        ST_CLAIMED,     ST_NOT_CLAIMED, ST_OVER_CAPACITY, ST_TOO_LARGE,
        ST_NOT_SEALED,  ST_SEALED,      ST_CONFLICT,      ST_PAUSED,
        ST_NEVER_READY, ST_INTERNAL,    ST_INTERNAL,      ST_INTERNAL,
        ST_OK,          ST_KEY_REUSED,  ST_KEY_ENDED};
    enum status st = c->failure;
    size_t missing;

    c->request.function = script_function(script);
    c->request.words = &c->words;
    c->request.changes = kind == CALL_CHANGE;
    c->request.repeatable = kind == CALL_READ;
    while (!c->words.words.failed) {
        st = cluster_run(&c->store->cluster, &c->request, &c->why);
        missing = missing_keys(c);
        if (missing == 0)
            break;
        cluster_request_end(&c->store->cluster, &c->request);
        call_extend_keys(c, missing);
        st = ST_NO_MEMORY;
    }
    if (st == ST_OK &&
        (!shape_check(c->request.response, script_shape(script), c->most) ||
         is_unexpected(c, script, call_integer(c, 0))))
        st = reason_give(&c->why, c->request.changes ? ST_UNCONFIRMED : ST_UNAVAILABLE,
                         "the response of the script %s has an unexpected form",
                         script_function(script).data);
    if (c->where != NULL)
        note_claim_end(c, st);
    if (st == ST_OK && call_integer(c, 0) == RESPONSE_EXPIRE_FIRST)
        st = expire_due(c);
    if ((st == ST_UNAVAILABLE || st == ST_UNCONFIRMED) && c->why.text[0] != '\0')
        redis_warn(c->store, c->why.text);
    if (st != ST_OK)
        return st;
    ENSURE(!is_unexpected(c, script, call_integer(c, 0)));
    c->repeated = call_integer(c, 0) == RESPONSE_REPEATED;
    return statuses[call_integer(c, 0)];
}

void
call_end(struct call *c)
{
    cluster_request_end(&c->store->cluster, &c->request);
    command_fini(&c->words);
}

enum status
call_finish(struct call *c, enum script script, enum call_kind kind)
{
    const enum status st = call_run(c, script, kind);

    call_end(c);
    return st;
}

/* ---------------------------------------------------------------------- responses */

size_t
call_count(const struct call *c)
{
    const redisReply *response = c->request.response;

    return response != NULL && response->type == REDIS_REPLY_ARRAY ? response->elements
                                                                   : 0;
}

bool
call_has(const struct call *c, size_t i)
{
    return i < call_count(c);
}

struct bytes
call_item(const struct call *c, size_t i)
{
    return reply_text(reply_word(c->request.response, i));
}

int64_t
call_integer(const struct call *c, size_t i)
{
    int64_t number;

    return call_has(c, i) && shape_integer(c->request.response->element[i], &number)
               ? number
               : 0;
}

void
call_read_metadata(const struct call *c, size_t at, struct store_metadata *out)
{
    enum {
        POST = 1,
        TTL,
        DELAY,
        CLAIMS,
        DEAD_TTL,
        DEAD_QUEUE,
        TRANSIENT,
        ENCRYPT,
        CLAIM_TTL,
        CLAIM_GRACE,
        PAUSED,
        PAUSED_BY
    };
    struct store_settings *set = &out->settings;

    ENSURE(call_has(c, at + PAUSED_BY));
    *set = (struct store_settings)STORE_SETTINGS_INIT;
    out->json = call_item(c, at);
    set->max_post_bytes = call_integer(c, at + POST);
    set->message_ttl_s = call_integer(c, at + TTL);
    set->message_delay_s = call_integer(c, at + DELAY);
    set->max_claim_count = call_integer(c, at + CLAIMS);
    set->dead_letter_ttl_s = call_integer(c, at + DEAD_TTL);
    if (call_item(c, at + DEAD_QUEUE).len > 0)
        set->dead_letter = call_item(c, at + DEAD_QUEUE);
    set->transient = call_integer(c, at + TRANSIENT) != 0;
    set->encrypt = call_integer(c, at + ENCRYPT) != 0;
    set->claim_ttl_s = call_integer(c, at + CLAIM_TTL);
    set->claim_grace_s = call_integer(c, at + CLAIM_GRACE);
    set->paused = (unsigned)call_integer(c, at + PAUSED);
    if (call_item(c, at + PAUSED_BY).len > 0)
        set->paused_by = call_item(c, at + PAUSED_BY);
}

struct message_head
call_head(const struct call *c, size_t i)
{
    struct message_head head;

    ENSURE(message_head_read(call_item(c, i), &head)); /* shape_check() has checked it */
    return head;
}

bool
message_head_details(const struct message_head *head, struct store_details *out)
{
    if (head->details.len > 0) {
        ENSURE(
            message_details_read(head->details, out)); /* shape_check() has checked it */
        return true;
    }
    if (head->returned) /* its details say that it is no dead letter */
        *out = (struct store_details){.released_ms = 0};
    return head->returned;
}

void
message_id_write(struct bytes tag, uint64_t number, struct bytes original,
                 struct store_id *out)
{
    if (bytes_present(original))
        (void)snprintf(out->text, sizeof(out->text), "%.*s", (int)original.len,
                       original.data);
    else
        (void)snprintf(out->text, sizeof(out->text), "%.*s%016llx", (int)tag.len,
                       tag.len == 0 ? "" : tag.data, (unsigned long long)number);
}

redisReply *
call_take_response(struct call *c)
{
    redisReply *response = c->request.response;

    c->request.response = NULL;
    return response;
}

void
call_copy_id(struct bytes text, struct store_id *out)
{
    (void)snprintf(out->text, sizeof(out->text), "%.*s", (int)text.len,
                   text.len == 0 ? "" : text.data);
}
