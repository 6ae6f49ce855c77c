#include "redis/show.h"

#include "claimd/base/invariant.h"

#include <stdio.h>

/* What a batch of ours holds. */
struct shown {
    redisReply *answer;
    int64_t now_ms;
    struct store_message messages[];
};

struct message_head
show_head(const struct call *c, size_t i)
{
    struct message_head head;

    ENSURE(
        message_head_read(call_item(c, i), &head)); /* shape_check() has read it, too */
    return head;
}

void
show_id(struct bytes tag, uint64_t number, struct bytes original, struct store_id *out)
{
    if (bytes_present(original))
        (void)snprintf(out->text, sizeof(out->text), "%.*s", (int)original.len,
                       original.data);
    else
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
    const struct message_head head = show_head(c, at + 1);
    const struct bytes claim = call_item(c, at + 3);

    *out =
        (struct store_message){.body = call_item(c, at + 2), .checksum = head.checksum};
    show_id(tag, (uint64_t)call_integer(c, at), head.id, &out->id);
    memcpy(out->claim_id.text, claim.data, claim.len);
    out->ttl_s = (head.expires_ms - head.posted_ms) / 1000;
    out->age_s = (now_ms - head.posted_ms) / 1000;
    out->claim_count = head.claim_count;
    out->pin = (void *)(uintptr_t)head.posted_ms;
}

/* How many messages there are, from that word on. */
static size_t
count_messages(const struct call *c, size_t from)
{
    size_t count = 0;

    while (call_integer(c, from + 4 * count) > 0)
        count++;
    return count;
}

struct shown *
show_room(struct redis_store *s, size_t count)
{
    return mem_alloc(s->config.mem,
                     sizeof(struct shown) + count * sizeof(struct store_message));
}

void
show_free(struct redis_store *s, struct shown *room)
{
    mem_free(s->config.mem, room);
}

void
show_in(struct shown *room, struct call *c, size_t from, int64_t now_ms, struct bytes tag,
        struct store_batch *out)
{
    const size_t count = count_messages(c, from);

    out->count = 0;
    out->room = 0;
    out->opened = NULL;
    if (count == 0) {
        show_free(c->store, room);
        return;
    }
    for (size_t i = 0; i < count; i++)
        show(c, from + 4 * i, now_ms, tag, &room->messages[i]);
    room->now_ms = now_ms;
    room->answer = call_take_answer(c);
    out->store = &c->store->store;
    out->messages = room->messages;
    out->count = count;
}

enum status
show_messages(struct call *c, size_t from, int64_t now_ms, struct bytes tag,
              struct store_batch *out)
{
    struct shown *room;
    const size_t count = count_messages(c, from);

    out->count = 0;
    if (count == 0)
        return ST_OK;
    room = show_room(c->store, count);
    if (room == NULL)
        return ST_NO_MEMORY;
    show_in(room, c, from, now_ms, tag, out);
    return ST_OK;
}

void
show_waited(struct redis_store *s, const struct store_batch *taken)
{
    const struct shown *shown = container_of(taken->messages, struct shown, messages[0]);

    for (size_t i = 0; i < taken->count; i++)
        if (taken->messages[i].claim_count <= 1)
            done_span(&s->done, STORE_SPAN_WAITED,
                      shown->now_ms - (int64_t)(uintptr_t)taken->messages[i].pin);
}

void
redis_batch_release(const struct store *s, struct store_batch *batch)
{
    struct redis_store *store = redis_of((struct store *)(uintptr_t)s);
    struct shown *shown = container_of(batch->messages, struct shown, messages[0]);

    redis_answer_free(store, shown->answer);
    mem_free(store->config.mem, shown);
}
