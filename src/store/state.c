#include "claimd/store/state.h"

#include "claimd/store/subscription.h"

#include <stdlib.h>

enum { ID_DIGITS = 24, NUMBER_DIGITS = 12 };

/* Leaves numbers enough behind the largest one. */
#define NUMBER_MOST (UINT64_C(1) << 47)

bool
store_id_good(struct bytes text)
{
    if (text.len != ID_DIGITS || text.data[0] < 'a')
        return false;
    for (size_t i = 0; i < ID_DIGITS; i++)
        if (!(text.data[i] >= '0' && text.data[i] <= '9') &&
            !(text.data[i] >= 'a' && text.data[i] <= 'f'))
            return false;
    return true;
}

static struct bytes
number_text(const struct store_id *id)
{
    return bytes_of(id->text + ID_DIGITS - NUMBER_DIGITS, NUMBER_DIGITS);
}

uint64_t
store_id_number(const struct store_id *id)
{
    uint64_t number = 0;

    (void)hex_read(number_text(id), &number); /* 0: no id */
    return number;
}

static enum status
note_flaw(struct store_flaw *flaw, size_t index, const char *member, const char *what)
{
    *flaw = (struct store_flaw){index, member, what};
    return ST_BAD_VALUE;
}

static bool
is_time(int64_t ms)
{
    return ms >= -STORE_MS_MOST && ms <= STORE_MS_MOST;
}

/* Claims and subscriptions are found by the numbers in their ids, which must not be 0. */
static bool
is_numbered(const struct store_id *id)
{
    uint64_t number;

    if (id->text[0] == '\0')
        return true;
    number = store_id_good(store_id_bytes(id)) ? store_id_number(id) : 0;
    return number > 0 && number < NUMBER_MOST;
}

static enum status
check_message(const struct store_message_record *m, size_t i, struct store_flaw *flaw)
{
    const struct store_claim_record *c = m->claim;

    if (m->id.text[0] != '\0' && !store_id_good(store_id_bytes(&m->id)))
        return note_flaw(flaw, i, "id", "it is malformed");
    if (m->claim != NULL && m->delayed_until_ms != 0)
        return note_flaw(flaw, i, "claim", "a claim cannot hold a delayed message");
    if (!is_time(m->posted_ms))
        return note_flaw(flaw, i, "age", "it is out of range");
    if (!is_time(m->expires_ms) || m->expires_ms <= m->posted_ms)
        return note_flaw(flaw, i, "ttl", "it is out of range");
    if (m->delayed_until_ms != 0 &&
        (!is_time(m->delayed_until_ms) || m->delayed_until_ms > m->expires_ms))
        return note_flaw(flaw, i, "delay",
                         "it is out of range, or longer than the TTL of the message");
    if (m->body.len == 0 || m->body.len > UINT32_MAX / 2)
        return note_flaw(flaw, i, "body", "it is missing or too long");
    if (m->details != NULL && m->details->unique.key.len > STORE_UNIQUE_MAX)
        return note_flaw(flaw, i, "details.unique", "it is too long");
    if (c == NULL)
        return ST_OK;
    if (!is_numbered(&c->id))
        return note_flaw(flaw, i, "claim.id", "it is not a valid id of a claim");
    if (!is_time(c->started_ms))
        return note_flaw(flaw, i, "claim.age", "it is out of range");
    if (!is_time(c->ends_ms) || c->ends_ms <= c->started_ms)
        return note_flaw(flaw, i, "claim.ttl", "it is out of range");
    return ST_OK;
}

static enum status
check_subscription(const struct store_subscription_record *s, size_t i,
                   struct store_flaw *flaw)
{
    if (!is_numbered(&s->id))
        return note_flaw(flaw, i, "id", "it is not a valid id of a subscription");
    if (!is_time(s->started_ms))
        return note_flaw(flaw, i, "age", "it is out of range");
    if (s->ttl_s <= 0 || s->ttl_s > STORE_MS_MOST / 1000)
        return note_flaw(flaw, i, "ttl", "it is out of range");
    if (s->subscriber.len == 0 || s->subscriber.len > STORE_SUBSCRIBER_MOST)
        return note_flaw(flaw, i, "subscriber", "it is missing or too long");
    if (s->options.len > STORE_SUBSCRIBER_MOST)
        return note_flaw(flaw, i, "options", "it is too long");
    return ST_OK;
}

static enum status
check_record(const struct store_record *r, size_t i, struct store_flaw *flaw)
{
    switch (r->kind) {
    case STORE_RECORD_MESSAGE:
        return check_message(&r->message, i, flaw);
    case STORE_RECORD_SUBSCRIPTION:
        return check_subscription(&r->subscription, i, flaw);
    default:
        return i == 0
                   ? ST_OK
                   : note_flaw(flaw, i, "metadata", "the queue must be the first record");
    }
}

/* A text that must be unique, its kind, and its record. */
struct record_key {
    struct bytes text;
    enum { MESSAGE_ID, CLAIM_NUMBER, UNIQUE_KEY, SUBSCRIPTION_NUMBER, SUBSCRIBER } what;
    size_t index;
    const struct store_claim_record *claim;
};

static int
compare(const void *a, const void *b)
{
    const struct record_key *x = a, *y = b;
    int order = x->what != y->what ? (int)x->what - (int)y->what
                                   : bytes_compare(x->text, y->text);

    return order != 0 ? order : (x->index > y->index) - (x->index < y->index);
}

/* Adds the keys of a record. Returns their number. */
static size_t
add_keys(struct record_key *keys, size_t count, const struct store_record *r, size_t i)
{
    if (r->kind == STORE_RECORD_MESSAGE && r->message.id.text[0] != '\0')
        keys[count++] =
            (struct record_key){store_id_bytes(&r->message.id), MESSAGE_ID, i, NULL};
    if (r->kind == STORE_RECORD_MESSAGE && r->message.claim != NULL &&
        r->message.claim->id.text[0] != '\0')
        keys[count++] = (struct record_key){number_text(&r->message.claim->id),
                                            CLAIM_NUMBER, i, r->message.claim};
    if (r->kind == STORE_RECORD_MESSAGE && r->message.details != NULL &&
        store_holds_key(r->message.details))
        keys[count++] =
            (struct record_key){r->message.details->unique.key, UNIQUE_KEY, i, NULL};
    if (r->kind == STORE_RECORD_SUBSCRIPTION) {
        if (r->subscription.id.text[0] != '\0')
            keys[count++] = (struct record_key){number_text(&r->subscription.id),
                                                SUBSCRIPTION_NUMBER, i, NULL};
        keys[count++] =
            (struct record_key){r->subscription.subscriber, SUBSCRIBER, i, NULL};
    }
    return count;
}

static enum status
check_twice(struct record_key *keys, size_t count, struct store_flaw *flaw)
{
    static const struct {
        const char *member, *what;
    } said[] = {
        [MESSAGE_ID] = {"id", "another message has the same id"},
        [CLAIM_NUMBER] = {"claim.id", "its last 12 digits are those of another claim"},
        [UNIQUE_KEY] = {"details.unique", "another message holds the same key"},
        [SUBSCRIPTION_NUMBER] = {"id",
                                 "its last 12 digits are those of another subscription"},
        [SUBSCRIBER] = {"subscriber", "it has two subscriptions to the queue"},
    };
    enum status st = ST_OK;

    qsort(keys, count, sizeof(*keys), compare);
    for (size_t i = 1; i < count; i++)
        if (keys[i - 1].what == keys[i].what &&
            bytes_equal(keys[i - 1].text, keys[i].text) &&
            (keys[i].what != CLAIM_NUMBER || /* a claim may hold several messages */
             strcmp(keys[i - 1].claim->id.text, keys[i].claim->id.text) != 0) &&
            (st == ST_OK || keys[i].index < flaw->index))
            st = note_flaw(flaw, keys[i].index, said[keys[i].what].member,
                           said[keys[i].what].what);
    return st;
}

enum status
store_records_check(struct mem *mem, const struct store_record *records, size_t count,
                    struct store_flaw *flaw)
{
    enum status st = ST_OK;
    struct record_key *keys;
    size_t keyed = 0;

    if (count > STORE_APPLY_MOST)
        return note_flaw(flaw, STORE_APPLY_MOST, "id",
                         "the queue has too many messages to load at once");
    keys = mem_calloc(mem, 3 * count + 1, sizeof(*keys));
    if (keys == NULL)
        return ST_NO_MEMORY;
    for (size_t i = 0; st == ST_OK && i < count; i++) {
        st = check_record(&records[i], i, flaw);
        keyed = add_keys(keys, keyed, &records[i], i);
    }
    if (st == ST_OK)
        st = check_twice(keys, keyed, flaw);
    mem_free(mem, keys);
    return st;
}
