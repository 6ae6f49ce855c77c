#include "redis/call.h"

#include "claimd/store/image.h"
#include "redis/key.h"

/* Keys of a queue: those that it always has, those of its subscriptions, and that of a predecessor. */
static const char parts[] = {'q', 'z', 'm', 't', 'x', 's', 'u', 'f'};
enum { PLAIN_PARTS = 5, FEED_PARTS = 7, ALL_PARTS = 8 };

static void
begin(struct call *c, struct redis_store *s, struct bytes key)
{
    c->store = s;
    c->request = (struct cluster_request){.slot = slot_of(key)};
    c->where = NULL;
    c->begun_ns = clock_stopwatch_ns();
    c->arguments = c->parts = c->asked = 0;
    reason_init(&c->why);
    command_init(&c->words, s->config.mem);
}

/* Adds so many keys of the queue; `key` has what they begin with. */
static void
add_keys(struct command *words, struct buf *key, size_t count)
{
    command_number(words, (int64_t)count);
    for (size_t i = 0; i < count; i++) {
        buf_byte(key, parts[i]);
        command_word(words, buf_view(key));
        if (!key->failed)
            key->len--;
    }
    words->words.failed = words->words.failed || key->failed;
}

void
call_time(struct call *c, const struct store_visit *visit)
{
    if (c->store->config.test_clock)
        command_number(&c->words, visit->now_ms);
    else
        command_text(&c->words, "");
}

static void
begin_queue(struct call *c, struct redis_store *s, const struct store_visit *visit,
            const struct store_queue *where, size_t count)
{
    struct buf key;

    buf_init(&key, s->config.mem);
    key_of_queue(&key, where);
    begin(c, s, buf_view(&key));
    c->where = where;
    c->parts = count;
    add_keys(&c->words, &key, count);
    c->arguments = c->words.words.len;
    call_time(c, visit);
    buf_fini(&key);
}

void
call_begin(struct call *c, struct redis_store *s, const struct store_visit *visit,
           const struct store_queue *where)
{
    begin_queue(c, s, visit, where, PLAIN_PARTS);
}

void
call_begin_all(struct call *c, struct redis_store *s, const struct store_visit *visit,
               const struct store_queue *where)
{
    begin_queue(c, s, visit, where, ALL_PARTS);
}

/* The same words behind more keys of the queue. */
static void
add_parts(struct call *c, size_t count)
{
    struct command words;
    struct buf key;

    buf_init(&key, c->store->config.mem);
    command_init(&words, c->store->config.mem);
    key_of_queue(&key, c->where);
    add_keys(&words, &key, count);
    buf_bytes(&words.words, bytes_of(c->words.words.data + c->arguments,
                                     c->words.words.len - c->arguments));
    c->arguments = words.words.len - (c->words.words.len - c->arguments);
    words.count = c->words.count + count - c->parts;
    command_fini(&c->words);
    c->words = words;
    c->parts = count;
    buf_fini(&key);
}

void
call_begin_key(struct call *c, struct redis_store *s, struct bytes key)
{
    begin(c, s, key);
    command_number(&c->words, 1);
    command_word(&c->words, key);
}

void
call_id(struct call *c, struct bytes id)
{
    call_word(c, store_id_good(id) ? id : bytes_str("-"));
}

void
call_marker(struct call *c, struct bytes marker)
{
    enum { DIGITS = 23 }; /* fewer than those of an id */
    uint64_t number;

    if (store_id_good(marker))
        call_word(c, marker);
    else if (marker.len <= DIGITS && bytes_to_u64(marker, &number) && number <= INT64_MAX)
        call_number(c, (int64_t)number);
    else
        call_text(c, "");
}

void
call_opened(struct call *c, const struct store_batch *opened)
{
    if (opened == NULL)
        call_text(c, "-");
    for (size_t i = 0; opened != NULL && i < opened->count; i++)
        call_text(c, opened->messages[i].id.text);
}

/* What the script said first. */
static enum status
status_of(const struct call *c)
{
    static const enum status statuses[ANSWER_FEED] = {
        ST_OK,      ST_AGAIN,     ST_NOT_FOUND,  ST_CHANGED, ST_CLAIMED, ST_NOT_CLAIMED,
        ST_NO_ROOM, ST_TOO_LARGE, ST_NOT_SEALED, ST_SEALED,  ST_CONFLICT};

    return statuses[call_integer(c, 0)];
}

/* How many keys it needs that has not got them; only said where nothing has happened. 0: none. */
static size_t
wanted_parts(const struct call *c)
{
    const int64_t answer = call_has(c, 0) ? call_integer(c, 0) : ANSWER_OK;
    const size_t wanted = answer == ANSWER_FEED    ? FEED_PARTS
                          : answer == ANSWER_FENCE ? ALL_PARTS
                                                   : 0;

    return c->where != NULL && wanted > c->parts ? wanted : 0;
}

/* Makes some of what is due happen, which a script that changes nothing may not do. ST_AGAIN if it did. */
static enum status
settle(struct call *c)
{
    struct cluster_request settling = c->request;
    enum status st;

    settling.function = script_function(SCRIPT_queue_settle);
    st = cluster_ask(&c->store->cluster, &settling, &c->why);
    cluster_request_end(&c->store->cluster, &settling);
    return st == ST_OK ? ST_AGAIN : st;
}

/* Has the script answered as it may? The seam: readers look at no response that this has not seen. */
static enum status
check_response(struct call *c, enum script script)
{
    if (shape_check(c->request.answer, script_shape(script), c->asked) &&
        (call_integer(c, 0) < ANSWER_FEED || call_integer(c, 0) == ANSWER_SETTLE))
        return ST_OK;
    return reason_give(&c->why, c->request.changes ? ST_UNCONFIRMED : ST_UNAVAILABLE,
                       "the response of the script %s has an unexpected form",
                       script_function(script).data);
}

enum status
call_run(struct call *c, enum script script, enum call_kind kind)
{
    enum status st = ST_NO_MEMORY;
    size_t wanted;

    c->request.function = script_function(script);
    c->request.words = &c->words;
    c->request.changes = kind == CALL_CHANGES;
    c->request.repeatable = kind == CALL_LOOKS;
    while (!c->words.words.failed) {
        st = cluster_ask(&c->store->cluster, &c->request, &c->why);
        wanted = wanted_parts(c);
        if (wanted == 0)
            break;
        cluster_request_end(&c->store->cluster, &c->request);
        add_parts(c, wanted);
        st = ST_NO_MEMORY;
    }
    if (st == ST_OK)
        st = check_response(c, script);
    if (st == ST_OK && call_integer(c, 0) == ANSWER_SETTLE)
        st = settle(c);
    if ((st == ST_UNAVAILABLE || st == ST_UNCONFIRMED) && c->why.text[0] != '\0')
        redis_warn(c->store, c->why.text);
    return st == ST_OK ? status_of(c) : st;
}

void
call_end(struct call *c)
{
    cluster_request_end(&c->store->cluster, &c->request);
    command_fini(&c->words);
}

/* ------------------------------------------------------------------ the answer */

size_t
call_count(const struct call *c)
{
    const redisReply *answer = c->request.answer;

    return answer != NULL && answer->type == REDIS_REPLY_ARRAY ? answer->elements : 0;
}

bool
call_has(const struct call *c, size_t i)
{
    return i < call_count(c);
}

struct bytes
call_item(const struct call *c, size_t i)
{
    const redisReply *item = call_has(c, i) ? c->request.answer->element[i] : NULL;

    return item != NULL && item->type == REDIS_REPLY_STRING
               ? bytes_of(item->str, (size_t)item->len)
               : BYTES_NONE;
}

int64_t
call_integer(const struct call *c, size_t i)
{
    int64_t number;

    return call_has(c, i) && shape_integer(c->request.answer->element[i], &number)
               ? number
               : 0;
}

redisReply *
call_take_answer(struct call *c)
{
    redisReply *answer = c->request.answer;

    c->request.answer = NULL;
    return answer;
}

void
redis_answer_free(struct redis_store *s, redisReply *answer)
{
    wire_give_back(&s->cluster.wire, answer);
}
