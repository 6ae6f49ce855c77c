#include "redis/show.h"

#include <stdio.h>

/* The head of a message, as the scripts pack it: little-endian, no gaps. */
enum {
    POSTED_AT = 0,
    EXPIRES_AT = 8,
    CLAIM_AT = 24,
    COUNT_AT = 32,
    FLAGS_AT = 36,
    HEAD_SIZE = 45,
    ID_SIZE = 24
};

enum { FLAG_SUM = 1, FLAG_FOREIGN = 2 };

/* What a batch of ours holds. */
struct shown {
    redisReply *answer;
    struct store_message messages[];
};

static int64_t
read_ms(struct bytes head, size_t at)
{
    double value;

    memcpy(&value, head.data + at, sizeof(value)); /* both are little-endian */
    return (int64_t)value;
}

static uint32_t
read_count(struct bytes head)
{
    uint32_t value;

    memcpy(&value, head.data + COUNT_AT, sizeof(value));
    return value;
}

int64_t
show_posted_ms(struct bytes head)
{
    return head.len >= HEAD_SIZE ? read_ms(head, POSTED_AT) : 0;
}

void
show_id(struct bytes tag, uint64_t number, struct bytes head, struct store_id *out)
{
    if (head.len >= HEAD_SIZE + ID_SIZE && (head.data[FLAGS_AT] & FLAG_FOREIGN) != 0) {
        memcpy(out->text, head.data + head.len - ID_SIZE, ID_SIZE);
        out->text[ID_SIZE] = '\0';
        return;
    }
    (void)snprintf(out->text, sizeof(out->text), "%.*s%016llx", (int)tag.len,
                   tag.len == 0 ? "" : tag.data, (unsigned long long)number);
}

void
show_claim_id(struct bytes secret, uint64_t number, struct store_id *out)
{
    (void)snprintf(out->text, sizeof(out->text), "%.*s%012llx", (int)secret.len,
                   secret.data, (unsigned long long)number);
}

static void
show(const struct call *c, size_t at, int64_t now_ms, struct bytes tag,
     struct store_message *out)
{
    const struct bytes head = call_item(c, at + 1), claim = call_item(c, at + 3);
    int64_t posted_ms = show_posted_ms(head);

    *out = (struct store_message){.body = call_item(c, at + 2)};
    show_id(tag, (uint64_t)call_integer(c, at), head, &out->id);
    if (claim.len < sizeof(out->claim_id.text) && bytes_present(claim))
        memcpy(out->claim_id.text, claim.data, claim.len);
    if (head.len < HEAD_SIZE)
        return;
    if ((head.data[FLAGS_AT] & FLAG_SUM) != 0)
        out->checksum = (const struct store_checksum *)(head.data + HEAD_SIZE);
    out->ttl_s = (read_ms(head, EXPIRES_AT) - posted_ms) / 1000;
    out->age_s = (now_ms - posted_ms) / 1000;
    out->claim_count = read_count(head);
}

enum status
show_messages(struct call *c, size_t from, int64_t now_ms, struct bytes tag,
              struct store_batch *out, size_t *end)
{
    const size_t words = call_count(c);
    struct shown *shown;
    size_t count = 0, at = from;

    while (at + 3 < words && (call_integer(c, at) > 0)) {
        count++;
        at += 4;
    }
    if (end != NULL)
        *end = at;
    out->count = 0;
    if (count == 0)
        return ST_OK;
    shown = mem_alloc(c->store->config.mem,
                      sizeof(*shown) + count * sizeof(struct store_message));
    if (shown == NULL)
        return ST_NO_MEMORY;
    for (size_t i = 0; i < count; i++)
        show(c, from + 4 * i, now_ms, tag, &shown->messages[i]);
    shown->answer = call_take_answer(c);
    out->store = &c->store->store;
    out->messages = shown->messages;
    out->count = count;
    return ST_OK;
}

void
redis_batch_release(const struct store *s, struct store_batch *batch)
{
    struct redis_store *store = redis_of((struct store *)(uintptr_t)s);
    struct shown *shown = container_of(batch->messages, struct shown, messages[0]);

    redis_answer_free(store, shown->answer);
    mem_free(store->config.mem, shown);
}
