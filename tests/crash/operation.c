/* What clients do. */
#include "crash/world.h"
#include "support/delete.h"

#include <inttypes.h>
#include <stdlib.h>

enum { BATCH = 12, LARGE = 4096 };

static const char *const names[WORLD_QUEUES] = {"q0", "q1", "q2", "q3", "q4", "memory"};

enum { TRANSIENT = WORLD_QUEUES - 1 };

const char *
world_queue_name(int queue)
{
    return names[queue];
}

static struct store_queue
where(int queue)
{
    return (struct store_queue){.project = bytes_str("p"),
                                .name = bytes_str(names[queue])};
}

/* Most of the work is in a few queues. */
static int
some_queue(struct world *w)
{
    return (int)random_below(&w->r, random_chance(&w->r, 50) ? 2 : WORLD_QUEUES);
}

static size_t
up_to(struct world *w, size_t most)
{
    return 1 + (size_t)random_below(&w->r, most);
}

static int64_t
some_ttl(struct world *w)
{
    if (random_chance(&w->r, 10))
        return STORE_UNSET;
    return random_chance(&w->r, 30) ? random_between(&w->r, 1, 20)
                                    : random_between(&w->r, 60, 100000);
}

/* ---------------------------------------------------------------------- ids */

static void
learn(struct world *w, struct known *all, size_t *count, int queue,
      const struct store_id *id)
{
    (void)w;
    all[(*count)++ % WORLD_KNOWN] = (struct known){*id, queue};
}

static struct known
recall(struct world *w, const struct known *all, size_t count)
{
    size_t there = count < WORLD_KNOWN ? count : WORLD_KNOWN;
    size_t recent = there < 8 ? there : 8;

    if (there == 0)
        return (struct known){{"nothing"}, some_queue(w)};
    return random_chance(&w->r, 50)
               ? all[(count - 1 - (size_t)random_below(&w->r, recent)) % WORLD_KNOWN]
               : all[random_below(&w->r, there)];
}

/* ---------------------------------------------------------------------- messages */

struct batch {
    struct store_draft drafts[BATCH];
    struct store_checksum checksums[BATCH];
    struct store_id ids[BATCH];
    char bodies[BATCH][LARGE];
};

static void
draft(struct world *w, struct batch *b, size_t i)
{
    size_t len = up_to(w, random_once_in(&w->r, w->large_once_in) ? LARGE : 60);

    for (size_t at = 0; at < len; at++)
        b->bodies[i][at] = (char)('a' + random_below(&w->r, 26));
    b->drafts[i] = (struct store_draft){
        .body = bytes_of(b->bodies[i], len),
        .ttl_s = some_ttl(w),
        .delay_s = random_chance(&w->r, 80) ? 0 : random_between(&w->r, -1, 30)};
    memset(&b->checksums[i], (int)random_below(&w->r, 256), sizeof(b->checksums[i]));
}

static void
post(struct world *w)
{
    struct store_op op = {.now_ms = w->now_ms};
    int queue = some_queue(w);
    struct store_queue q = where(queue);
    struct store_post request = {.count = up_to(w, random_chance(&w->r, 80) ? 4 : BATCH),
                                 .client = 1 + random_below(&w->r, 2),
                                 .create_queue = random_chance(&w->r, 90)};
    struct batch b;
    enum status st;

    for (size_t i = 0; i < request.count; i++)
        draft(w, &b, i);
    request.drafts = b.drafts;
    request.checksums = random_chance(&w->r, 30) ? b.checksums : NULL;
    world_note(w, "post %zu to %s", request.count, names[queue]);
    st = store_message_post(w->store, &op, &q, &request, b.ids);
    world_end_operation(w, st, &op);
    for (size_t i = 0; st == ST_OK && i < request.count; i++) {
        world_promise(w, op.lsn, queue, &b.ids[i], 0);
        learn(w, w->messages, &w->message_count, queue, &b.ids[i]);
    }
}

static void
delete_one(struct world *w)
{
    struct store_op op = {.now_ms = w->now_ms};
    struct known m = recall(w, w->messages, w->message_count);
    struct known c = recall(w, w->claims, w->claim_count);
    struct bytes claim = random_chance(&w->r, 60) ? store_id_bytes(&c.id) : BYTES_NONE;
    struct store_queue q = where(m.queue);

    world_note(w, "delete %s of %s with '%.*s'", m.id.text, names[m.queue],
               (int)claim.len, claim.data == NULL ? "" : claim.data);
    world_end_operation(
        w, delete_message(w->store, &op, &q, store_id_bytes(&m.id), claim), &op);
}

static void
delete_many(struct world *w)
{
    struct store_op op = {.now_ms = w->now_ms};
    struct known m = recall(w, w->messages, w->message_count), kept[BATCH];
    struct store_queue q = where(m.queue);
    struct bytes ids[BATCH];
    size_t count = up_to(w, BATCH);

    for (size_t i = 0; i < count; i++) {
        kept[i] = recall(w, w->messages, w->message_count);
        ids[i] = store_id_bytes(&kept[i].id);
    }
    world_note(w, "delete %zu of %s", count, names[m.queue]);
    world_end_operation(w, delete_messages(w->store, &op, &q, ids, count, NULL, 0), &op);
}

static void
pop(struct world *w)
{
    struct store_op op = {.now_ms = w->now_ms};
    struct store_batch out = STORE_BATCH_INIT;
    int queue = some_queue(w);
    struct store_queue q = where(queue);
    size_t limit = up_to(w, BATCH);
    enum status st;

    world_note(w, "pop %zu from %s", limit, names[queue]);
    st = store_message_pop(w->store, &op, &q, limit, &out);
    world_end_operation(w, st, &op);
    if (st == ST_OK)
        store_batch_release(&out);
}

/* ---------------------------------------------------------------------- claims */

static struct store_terms
some_terms(struct world *w)
{
    return (struct store_terms){.ttl_s = random_chance(&w->r, 50)
                                             ? random_between(&w->r, 1, 10)
                                             : random_between(&w->r, 60, 3600),
                                .grace_s = random_between(&w->r, 0, 120)};
}

static void
claim(struct world *w)
{
    struct store_op op = {.now_ms = w->now_ms};
    struct store_terms terms = some_terms(w);
    struct store_batch out = STORE_BATCH_INIT;
    int queue = some_queue(w);
    struct store_queue q = where(queue);
    size_t limit = up_to(w, BATCH);
    enum status st;

    world_note(w, "claim %zu of %s for %" PRId64 " s", limit, names[queue], terms.ttl_s);
    st = store_claim_create(w->store, &op, &q, &terms, limit, &out);
    world_end_operation(w, st, &op);
    if (st != ST_OK)
        return;
    if (out.count > 0) {
        world_promise(w, op.lsn, queue, &out.claim_id, out.claim_number);
        learn(w, w->claims, &w->claim_count, queue, &out.claim_id);
    }
    for (size_t i = 0; i < out.count; i++)
        if (random_chance(&w->r, 50)) /* so that it is deleted with this claim */
            learn(w, w->messages, &w->message_count, queue, &out.messages[i].id);
    store_batch_release(&out);
}

static void
renew(struct world *w)
{
    struct store_op op = {.now_ms = w->now_ms};
    struct known c = recall(w, w->claims, w->claim_count);
    struct store_terms terms = some_terms(w);
    struct store_queue q = where(c.queue);
    uint64_t number;

    world_note(w, "renew %s of %s for %" PRId64 " s", c.id.text, names[c.queue],
               terms.ttl_s);
    world_end_operation(
        w, store_claim_renew(w->store, &op, &q, store_id_bytes(&c.id), &terms, &number),
        &op);
}

static void
release(struct world *w)
{
    struct store_op op = {.now_ms = w->now_ms};
    struct known c = recall(w, w->claims, w->claim_count);
    struct store_queue q = where(c.queue);
    bool back = random_chance(&w->r, 50);

    world_note(w, "%s %s of %s", back ? "give back" : "release", c.id.text,
               names[c.queue]);
    world_end_operation(
        w,
        back ? store_claim_release(w->store, &op, &q, store_id_bytes(&c.id),
                                   random_chance(&w->r, 50) ? STORE_NOT_SEEN
                                                            : STORE_NOT_SENT)
             : store_claim_release(w->store, &op, &q, store_id_bytes(&c.id),
                                   STORE_RELEASED),
        &op);
}

/* Some of what a claim holds, with that claim. */
static void
finish(struct world *w)
{
    struct store_op op = {.now_ms = w->now_ms};
    struct known c = recall(w, w->claims, w->claim_count);
    struct store_queue q = where(c.queue);
    struct bytes with = store_id_bytes(&c.id), ids[BATCH];
    struct store_batch held = STORE_BATCH_INIT;
    size_t count = 0;

    if (store_claim_get(w->store, &op, &q, with, &held) != ST_OK)
        return;
    for (size_t i = 0; i < held.count && count < BATCH; i++)
        if (random_chance(&w->r, 70))
            ids[count++] = store_id_bytes(&held.messages[i].id);
    world_note(w, "finish %zu of %s in %s", count, c.id.text, names[c.queue]);
    if (count > 0)
        world_end_operation(w, delete_messages(w->store, &op, &q, ids, count, &with, 1),
                            &op);
    store_batch_release(&held);
}

/* ---------------------------------------------------------------------- queues */

/* Made up anew; json[] is theirs. */
static struct store_metadata
some_metadata(struct world *w, int queue, char json[TOLD_JSON_CAP])
{
    struct store_metadata m = {.settings = STORE_SETTINGS_INIT};

    (void)snprintf(json, TOLD_JSON_CAP, "{\"n\":%" PRIu64 "}",
                   random_below(&w->r, 1000000));
    m.json = bytes_str(json);
    m.settings.transient = queue == TRANSIENT;
    if (random_chance(&w->r, 30))
        m.settings.message_ttl_s = random_between(&w->r, 1, 1000);
    if (random_chance(&w->r, 20))
        m.settings.message_delay_s = random_between(&w->r, 0, 20);
    if (random_chance(&w->r, 70)) {
        m.settings.max_claim_count = random_between(&w->r, 1, 3);
        m.settings.dead_letter = bytes_str(names[random_below(&w->r, WORLD_QUEUES)]);
        if (random_chance(&w->r, 50))
            m.settings.dead_letter_ttl_s = random_between(&w->r, 1, 10000);
    }
    return m;
}

static void
create(struct world *w)
{
    struct store_op op = {.now_ms = w->now_ms};
    int queue = random_chance(&w->r, 30) ? TRANSIENT : some_queue(w);
    struct store_queue q = where(queue);
    char json[TOLD_JSON_CAP];
    struct store_metadata metadata = some_metadata(w, queue, json);
    bool created;

    world_note(w, "create %s", names[queue]);
    world_end_operation(w, store_queue_create(w->store, &op, &q, &metadata, &created),
                        &op);
}

static void
update(struct world *w)
{
    struct store_op op = {.now_ms = w->now_ms};
    int queue = some_queue(w);
    struct store_queue q = where(queue);
    struct store_queues seen = STORE_QUEUES_INIT;
    char json[TOLD_JSON_CAP];
    struct store_metadata metadata = some_metadata(w, queue, json);

    if (store_queue_get(w->store, &op, &q, &seen) != ST_OK)
        return;
    metadata.settings.transient = seen.queues[0].metadata.settings.transient;
    world_note(w, "update %s", names[queue]);
    world_end_operation(
        w, store_queue_update(w->store, &op, &q, seen.queues[0].version, &metadata), &op);
    store_queues_release(&seen);
}

static void
remove_queue(struct world *w)
{
    struct store_op op = {.now_ms = w->now_ms};
    int queue = some_queue(w);
    struct store_queue q = where(queue);

    world_note(w, "delete %s", names[queue]);
    world_end_operation(w, store_queue_delete(w->store, &op, &q), &op);
}

static void
purge(struct world *w)
{
    struct store_op op = {.now_ms = w->now_ms};
    int queue = some_queue(w);
    struct store_queue q = where(queue);

    world_note(w, "purge %s", names[queue]);
    world_end_operation(w, store_queue_purge(w->store, &op, &q, STORE_PURGE_MESSAGES),
                        &op);
}

static void
housekeep(struct world *w)
{
    int64_t next_ms;

    world_note(w, "housekeeping");
    store_housekeep(w->store, w->now_ms, &next_ms);
}

/* ---------------------------------------------------------------------- which one */

struct row {
    void (*operate)(struct world *w);
    enum store_change_kind kind; /* what it may change messages with, all at once */
    unsigned weight;
};

static const struct row rows[] = {
    {post, STORE_CHANGE_POST, 30},         {claim, STORE_CHANGE_CLAIM, 20},
    {finish, STORE_CHANGE_DELETE, 10},     {renew, STORE_CHANGE_RENEW, 6},
    {release, STORE_CHANGE_RELEASE, 6},    {delete_one, STORE_CHANGE_DELETE, 6},
    {delete_many, STORE_CHANGE_DELETE, 2}, {pop, STORE_CHANGE_DELETE, 5},
    {housekeep, STORE_CHANGE_EXPIRED, 5},  {create, STORE_CHANGE_QUEUE, 3},
    {update, STORE_CHANGE_META, 2},        {remove_queue, STORE_CHANGE_QUEUE_GONE, 1},
    {purge, STORE_CHANGE_PURGE, 1},
};

void
world_operate(struct world *w)
{
    unsigned all = 0, dice;
    size_t i = 0;

    for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++)
        all += rows[n].weight;
    dice = (unsigned)random_below(&w->r, all);
    while (dice >= rows[i].weight)
        dice -= rows[i++].weight;
    world_begin_operation(w);
    rows[i].operate(w);
    world_judge_operation(w, rows[i].kind);
}
