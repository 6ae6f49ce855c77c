#include "model/story.h"
#include "support/delete.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

static const char *const names[STORY_QUEUES] = {"a", "b", "c", "d", "a", "b", "c", "d"};

const char *const story_projects[] = {"p", "r", NULL};

const char *const story_keys[STORY_KEYS] = {"x", "y", "z"};

struct store_queue
story_queue(size_t i)
{
    return (struct store_queue){.project = bytes_str(story_projects[i / 4]),
                                .name = bytes_str(names[i])};
}

size_t
story_index(const struct store_queue *queue)
{
    for (size_t i = 0; i < STORY_QUEUES; i++) {
        struct store_queue at = story_queue(i);

        if (bytes_equal(at.project, queue->project) && bytes_equal(at.name, queue->name))
            return i;
    }
    ck_abort_msg("an unknown queue %.*s", (int)queue->name.len, queue->name.data);
}

uint64_t
story_below(struct story *s, uint64_t n)
{
    return random_below(&s->random, n);
}

/* ---------------------------------------------------------------------- ids */

static void
remember(struct story_ids *known, struct store_id id, size_t queue)
{
    size_t at = known->count++ % STORY_KNOWN;

    known->ids[at] = id;
    known->queues[at] = queue;
}

/* Mostly one of this queue's. */
static struct bytes
some_id(struct story *s, const struct story_ids *known, size_t queue)
{
    uint64_t count = known->count < STORY_KNOWN ? known->count : STORY_KNOWN;
    size_t i = 0;

    if (count == 0 || story_below(s, 30) == 0)
        return bytes_str("nonsense");
    for (int tries = 0; tries < 8; tries++) {
        i = story_below(s, count);
        if (known->queues[i] == queue)
            break;
    }
    return store_id_bytes(&known->ids[i]);
}

static struct bytes
some_message(struct story *s, size_t queue)
{
    return some_id(s, &s->messages, queue);
}

static struct bytes
some_claim(struct story *s, size_t queue)
{
    return some_id(s, &s->claims, queue);
}

/* ---------------------------------------------------------------------- queues */

static struct store_metadata
some_metadata(struct story *s)
{
    static const char *const documents[] = {"", "{}", "{\"a\":1}"};
    struct store_metadata md = {bytes_str(documents[story_below(s, 3)]),
                                STORE_SETTINGS_INIT};

    if (story_below(s, 2) == 0)
        return md;
    if (story_below(s, 6) == 0)
        md.settings.paused = 1 + (unsigned)story_below(s, 3);
    if (md.settings.paused == STORE_PAUSE_CLAIMS)
        md.settings.paused_by = bytes_str("7\nweb3");
    md.settings.max_claim_count = 1 + (int64_t)story_below(s, 2);
    md.settings.dead_letter = bytes_str(names[story_below(s, 4)]); /* perhaps itself */
    if (story_below(s, 2) == 0)
        md.settings.dead_letter_ttl_s = 1 + (int64_t)story_below(s, 100);
    if (story_below(s, 4) == 0)
        md.settings.claim_ttl_s = 1 + (int64_t)story_below(s, 100);
    if (story_below(s, 4) == 0)
        md.settings.message_delay_s = (int64_t)story_below(s, 20);
    return md;
}

static enum status
do_create(struct story *s, struct store_op *op, size_t queue)
{
    struct store_metadata md = some_metadata(s);
    struct store_queue where = story_queue(queue);
    bool created;

    md.settings.transient = story_below(s, 2) == 0;
    return store_queue_create(s->f.store, op, &where, &md, &created);
}

static enum status
do_update(struct story *s, struct store_op *op, size_t queue)
{
    struct store_metadata md = some_metadata(s);
    struct store_queues shown = STORE_QUEUES_INIT;
    struct store_queue where = story_queue(queue);
    enum status st = store_queue_get(s->f.store, op, &where, &shown);
    uint64_t version;

    if (st != ST_OK)
        return st;
    version = shown.queues[0].version;
    md.settings.transient = shown.queues[0].metadata.settings.transient;
    store_queues_release(&shown);
    return store_queue_update(s->f.store, op, &where, version, &md);
}

static enum status
do_remove(struct story *s, struct store_op *op, size_t queue)
{
    struct store_queue where = story_queue(queue);

    return story_below(s, 4) == 0
               ? store_queue_delete(s->f.store, op, &where)
               : store_queue_purge(s->f.store, op, &where,
                                   1 + (enum store_purge)story_below(s, 3));
}

/* ---------------------------------------------------------------------- messages */

/* A text that begins with a number of its own, in space for the longest. */
static struct bytes
write_body(struct story *s, char *buffer)
{
    size_t len = (size_t)snprintf(buffer, 24, "%" PRIu64 " ", s->bodies++);
    size_t more = s->big_body == 0 ? 0 : story_below(s, s->big_body);

    if (more <= len)
        return bytes_of(buffer, len);
    memset(buffer + len, 'x', more - len);
    return bytes_of(buffer, more);
}

static struct store_unique
some_unique(struct story *s)
{
    return (struct store_unique){.key = bytes_str(story_keys[story_below(s, STORY_KEYS)]),
                                 .until_claimed = story_below(s, 3) == 0};
}

/* Sometimes the operation has one of few keys. The digest identifies the request. */
static void
some_key(struct story *s, struct store_op *op, uint64_t what)
{
    if (story_below(s, 5) != 0)
        return;
    s->key = (struct store_key){.hash = {story_below(s, 6), 1}, .digest = {what, 2}};
    op->key = &s->key;
}

static enum status
do_post(struct story *s, struct store_op *op, size_t queue)
{
    size_t buffer = 24 + s->big_body;
    char *bodies = malloc(STORY_POST * buffer);
    struct store_queue where = story_queue(queue);
    struct store_draft drafts[STORY_POST];
    struct store_checksum sums[STORY_POST];
    struct store_id ids[STORY_POST];
    struct store_post post = {.drafts = drafts,
                              .count = 1 + story_below(s, STORY_POST),
                              .client = story_below(s, 3),
                              .create_queue = story_below(s, 3) == 0};
    struct store_unique unique;
    enum status st;

    ck_assert_ptr_nonnull(bodies);
    if (post.count == 1) {
        unique = some_unique(s);
        post.unique = &unique;
    }
    for (size_t i = 0; i < post.count; i++) {
        drafts[i].body = write_body(s, bodies + i * buffer);
        drafts[i].ttl_s = 1 + (int64_t)story_below(s, 300);
        drafts[i].delay_s =
            story_below(s, 3) == 0 ? (int64_t)story_below(s, 40) : STORE_UNSET;
    }
    if (story_below(s, 4) == 0) {
        memset(sums, (int)(1 + story_below(s, 255)), sizeof(sums));
        post.checksums = sums;
    }
    if (post.unique == NULL)
        some_key(s, op, post.count);
    st = store_message_post(s->f.store, op, &where, &post, ids);
    for (size_t i = 0; st == ST_OK && !op->repeated && !op->existing && i < post.count;
         i++)
        remember(&s->messages, ids[i], queue);
    free(bodies);
    return st;
}

static enum status
do_delete(struct story *s, struct store_op *op, size_t queue)
{
    struct store_queue where = story_queue(queue);
    struct bytes claim = some_claim(s, queue);

    return delete_message(s->f.store, op, &where, some_message(s, queue),
                          story_below(s, 2) == 0 ? claim : BYTES_NONE);
}

static enum status
do_delete_many(struct story *s, struct store_op *op, size_t queue)
{
    struct store_queue where = story_queue(queue);
    struct bytes ids[6], claim = some_claim(s, queue);
    size_t count = 1 + story_below(s, 6);
    bool strict = story_below(s, 3) == 0;

    for (size_t i = 0; i < count; i++)
        ids[i] = some_message(s, queue); /* some of them perhaps twice */
    return delete_messages(s->f.store, op, &where, ids, strict ? 1 : count,
                           strict ? &claim : NULL, strict);
}

static enum status
do_pop(struct story *s, struct store_op *op, size_t queue)
{
    struct store_batch batch = STORE_BATCH_INIT;
    struct store_queue where = story_queue(queue);
    const size_t limit = 1 + story_below(s, 3);
    enum status st;

    some_key(s, op, 10 + limit);
    st = store_message_pop(s->f.store, op, &where, limit, &batch);

    store_batch_release(&batch);
    return st;
}

/* ---------------------------------------------------------------------- claims */

static enum status
do_claim(struct story *s, struct store_op *op, size_t queue)
{
    const struct store_terms terms = {
        story_below(s, 4) == 0 ? STORE_UNSET : 1 + (int64_t)story_below(s, 100),
        1 + (int64_t)story_below(s, 100)};
    struct store_batch batch = STORE_BATCH_INIT;
    struct store_queue where = story_queue(queue);
    const size_t limit = 1 + story_below(s, 5);
    enum status st;

    some_key(s, op, 20 + limit);
    st = store_claim_create(s->f.store, op, &where, &terms, limit, &batch);
    if (st == ST_OK && batch.count > 0 && op->repeated) {
        ck_assert_uint_le(batch.claim_number, s->fences[queue]);
    } else if (st == ST_OK && batch.count > 0) {
        remember(&s->claims, batch.claim_id, queue);
        ck_assert_uint_gt(batch.claim_number, s->fences[queue]);
        s->fences[queue] = batch.claim_number;
    }
    store_batch_release(&batch);
    return st;
}

static enum status
do_renew(struct story *s, struct store_op *op, size_t queue)
{
    const struct store_terms terms = {1 + (int64_t)story_below(s, 100), 10};
    struct store_queue where = story_queue(queue);
    uint64_t number;

    return store_claim_renew(s->f.store, op, &where, some_claim(s, queue), &terms,
                             &number);
}

static enum status
do_release(struct story *s, struct store_op *op, size_t queue)
{
    struct store_queue where = story_queue(queue);

    return store_claim_release(s->f.store, op, &where, some_claim(s, queue),
                               STORE_RELEASED);
}

static enum status
do_release_unsent(struct story *s, struct store_op *op, size_t queue)
{
    struct store_queue where = story_queue(queue);

    return store_claim_release(s->f.store, op, &where, some_claim(s, queue),
                               story_below(s, 2) == 0 ? STORE_NOT_SEEN : STORE_NOT_SENT);
}

/* ------------------------------------------------------------------- finish, redrive */

enum { ITEMS = 8, POSTS = 2 };

/* A finish, with all that it points to. */
struct finish {
    struct store_finish request;
    struct store_finish_item items[ITEMS];
    struct store_id ids[ITEMS];
    struct store_finish_post posts[POSTS];
    struct store_draft drafts[POSTS];
    struct store_id posted[POSTS];
    struct store_unique uniques[POSTS];
    char bodies[POSTS][24];
    struct store_terms terms;
};

static void
add_item(struct story *s, struct finish *f, struct bytes id)
{
    static const char *const reasons[] = {NULL, "", "timeout", "bad input"};
    const char *reason = reasons[story_below(s, 4)];
    struct store_finish_item *item = &f->items[f->request.count];
    struct store_id *copy = &f->ids[f->request.count];

    if (f->request.count == ITEMS || id.len >= sizeof(copy->text))
        return;
    memset(copy, 0, sizeof(*copy));
    memcpy(copy->text, id.data, id.len);
    for (size_t i = 0; i < f->request.count; i++)
        if (id_same(f->ids[i], *copy))
            return;
    f->request.count++;
    *item =
        (struct store_finish_item){.action = (enum store_finish_action)story_below(s, 3),
                                   .id = store_id_bytes(copy)};
    if (item->action != STORE_FINISH_DELETE && reason != NULL)
        item->reason = bytes_str(reason);
    if (item->action == STORE_FINISH_RELEASE && story_below(s, 2) == 0)
        item->delay_s = (int64_t)story_below(s, 100);
    item->uncounted = story_below(s, 5) == 0;
}

/* Mostly messages that the claim holds. */
static void
choose_items(struct story *s, const struct store_op *op, size_t queue, struct finish *f)
{
    struct store_op look = {.now_ms = op->now_ms};
    struct store_batch batch = STORE_BATCH_INIT;
    struct store_queue where = story_queue(queue);

    if (store_claim_get(s->f.store, &look, &where, f->request.claim_id, &batch) ==
        ST_OK) {
        for (size_t i = 0; i < batch.count; i++)
            if (story_below(s, 4) > 0)
                add_item(s, f, store_id_bytes(&batch.messages[i].id));
        store_batch_release(&batch);
    }
    if (story_below(s, 8) == 0)
        add_item(s, f, some_message(s, queue));
}

/* To other queues of the project, or to this one. */
static void
choose_posts(struct story *s, size_t queue, struct finish *f, size_t *queues)
{
    size_t count = story_below(s, 2) == 0 ? story_below(s, POSTS + 1) : 0;

    queues[0] = story_below(s, 4);
    queues[1] = (queues[0] + 1 + story_below(s, 3)) % 4;
    for (size_t i = 0; i < count; i++) {
        int len = snprintf(f->bodies[i], sizeof(f->bodies[i]), "%" PRIu64, s->bodies++);

        queues[i] += queue / 4 * 4;
        f->drafts[i] =
            (struct store_draft){bytes_of(f->bodies[i], (size_t)len),
                                 1 + (int64_t)story_below(s, 300), STORE_UNSET};
        f->posts[i] =
            (struct store_finish_post){.queue = story_queue(queues[i]).name,
                                       .post = {.drafts = &f->drafts[i],
                                                .count = 1,
                                                .client = story_below(s, 3),
                                                .create_queue = story_below(s, 3) > 0},
                                       .ids = &f->posted[i]};
        if (story_below(s, 3) > 0)
            continue;
        f->uniques[i] = some_unique(s);
        f->posts[i].post.unique = &f->uniques[i];
    }
    f->request.post_count = count;
}

static enum status
do_finish(struct story *s, struct store_op *op, size_t queue)
{
    struct store_queue where = story_queue(queue);
    struct finish f = {.request = {.client = bytes_str("worker"),
                                   .claim_id = some_claim(s, queue),
                                   .items = f.items,
                                   .posts = f.posts,
                                   .atomic = story_below(s, 2) == 0}};
    size_t queues[POSTS];
    enum status st;

    f.terms = (struct store_terms){1 + (int64_t)story_below(s, 100), 10};
    if (story_below(s, 3) == 0)
        f.request.renew = &f.terms;
    choose_items(s, op, queue, &f);
    choose_posts(s, queue, &f, queues);
    st = store_claim_finish(s->f.store, op, &where, &f.request);
    for (size_t i = 0; st == ST_OK && i < f.request.post_count; i++)
        remember(&s->messages, f.posted[i], queues[i]);
    return st;
}

static enum status
do_redrive(struct story *s, struct store_op *op, size_t queue)
{
    struct bytes ids[3] = {some_message(s, queue), some_message(s, queue),
                           some_message(s, queue)};
    struct store_redrive which = {.limit = 1 + story_below(s, 6),
                                  .dry_run = story_below(s, 5) == 0,
                                  .keeps_count = story_below(s, 3) == 0};
    struct store_queue where = story_queue(queue);
    struct store_redriven out;
    enum status st;

    if (story_below(s, 3) == 0)
        which.to = story_queue(queue / 4 * 4 + story_below(s, 4)).name;
    if (story_below(s, 4) == 0) {
        which.ids = ids;
        which.id_count = 3;
    }
    do
        st = store_redrive(s->f.store, op, &where, &which, &out);
    while (st == ST_OK && out.more && out.moved > 0 && !which.dry_run);
    return st;
}

/* ---------------------------------------------------------------------- looking */

static enum status
do_look(struct story *s, struct store_op *op, size_t queue)
{
    const struct store_filter filter = {.limit = 5};
    struct store_batch batch = STORE_BATCH_INIT;
    struct store_queue where = story_queue(queue);
    struct bytes id = some_message(s, queue);
    enum status st;

    switch (story_below(s, 4)) {
    case 0:
        st = store_message_list(s->f.store, op, &where, &filter, &batch);
        break;
    case 1:
        st = store_message_get(s->f.store, op, &where, &id, 1, &batch);
        break;
    case 2:
        st = store_claim_get(s->f.store, op, &where, some_claim(s, queue), &batch);
        break;
    default:
        return store_queue_stats(s->f.store, op, &where, &(struct store_stats){0});
    }
    if (st == ST_OK)
        store_batch_release(&batch);
    return st;
}

/* ---------------------------------------------------------------------- subscriptions */

/* One of few subscribers, so that they meet. */
static struct store_subscription_draft
some_draft(struct story *s)
{
    static const char *const subscribers[] = {"http://a", "http://b/?c=d", "mailto:e"};
    static const char *const options[] = {"{}", "{\"x\":1}"};

    return (struct store_subscription_draft){bytes_str(subscribers[story_below(s, 3)]),
                                             bytes_str(options[story_below(s, 2)]),
                                             1 + (int64_t)story_below(s, 600)};
}

static enum status
do_subscribe(struct story *s, struct store_op *op, size_t queue)
{
    struct store_subscription_draft draft = some_draft(s);
    struct store_queue where = story_queue(queue);
    struct store_subscribed out;
    enum status st = store_subscription_create(s->f.store, op, &where, &draft, &out);

    if (st == ST_OK && out.created)
        remember(&s->subscriptions, out.id, queue);
    return st;
}

static enum status
do_change(struct story *s, struct store_op *op, size_t queue)
{
    struct bytes id = some_id(s, &s->subscriptions, queue);
    struct store_subscription_draft draft = some_draft(s);
    struct store_queue where = story_queue(queue);

    switch (story_below(s, 4)) {
    case 0:
        return store_subscription_delete(s->f.store, op, &where, id);
    case 1:
        draft.subscriber = BYTES_NONE;
        return store_subscription_update(s->f.store, op, &where, id, &draft);
    case 2:
        return store_subscription_update(s->f.store, op, &where, id, &draft);
    default:
        return store_subscription_confirm(s->f.store, op, &where, id,
                                          story_below(s, 3) > 0);
    }
}

/* Several, of whichever queue. */
static enum status
do_deliver(struct story *s, struct store_op *op, size_t queue)
{
    const struct store_op begun = *op;
    struct store_queue where;
    struct store_delivery d;
    uint64_t more = 1 + story_below(s, 30);

    while (more-- > 0 && store_delivery_next(s->f.store, op, &d) == ST_OK) {
        uint64_t dice = story_below(s, 20);
        enum store_outcome outcome =
            dice < 14 ? STORE_OUTCOME_DELIVERED : (enum store_outcome)(dice % 4);

        store_delivery_done(s->f.store, op, &d, dice == 19 ? STORE_OUTCOME_GONE : outcome,
                            s->f.now_ms + (int64_t)story_below(s, 5000));
    }
    *op = begun; /* these were others' */
    where = story_queue(queue);
    (void)store_queue_stats(s->f.store, op, &where, &(struct store_stats){0});
    return ST_OK;
}

/* ---------------------------------------------------------------------- keys */

/* How many messages of a queue hold the key, and the id of one of them; SIZE_MAX: the
 * queue is too large to be looked at. */
static size_t
find_holders(struct store *store, int64_t now_ms, const struct store_queue *where,
             struct bytes key, struct store_id *holder)
{
    enum { MOST = 500 };
    const struct store_filter filter = {
        .limit = MOST, .include_claimed = true, .include_delayed = true};
    struct store_batch batch = STORE_BATCH_INIT;
    size_t count = 0;

    if (store_message_list(store, STORE_AT(now_ms), where, &filter, &batch) != ST_OK)
        return 0;
    for (size_t i = 0; i < batch.count; i++) {
        const struct store_details *d = batch.messages[i].details;

        if (d == NULL || !store_holds_key(d) || !bytes_equal(d->unique.key, key))
            continue;
        *holder = batch.messages[i].id;
        count++;
    }
    if (batch.count == MOST)
        count = SIZE_MAX;
    store_batch_release(&batch);
    return count;
}

static void
check_key(struct store *store, int64_t now_ms, const struct store_queue *where,
          struct bytes key, bool probe)
{
    const struct store_draft draft = {bytes_str("1"), 300, STORE_UNSET};
    const struct store_unique unique = {.key = key};
    const struct store_post post = {.drafts = &draft, .count = 1, .unique = &unique};
    struct store_op op = {.now_ms = now_ms};
    struct store_id holder, id;
    const size_t holders = find_holders(store, now_ms, where, key, &holder);

    if (holders == SIZE_MAX)
        return;
    ck_assert_uint_le(holders, 1);
    if (!probe || store_message_post(store, &op, where, &post, &id) != ST_OK)
        return; /* there is no queue, or it accepts no posts */
    ck_assert_int_eq(op.existing, holders == 1);
    if (op.existing)
        ck_assert(id_same(id, holder));
}

void
story_check_keys(struct store *store, int64_t now_ms, bool probe)
{
    for (size_t i = 0; i < STORY_QUEUES; i++)
        for (size_t k = 0; k < STORY_KEYS; k++) {
            const struct store_queue where = story_queue(i);

            check_key(store, now_ms, &where, bytes_str(story_keys[k]), probe);
        }
}

/* ---------------------------------------------------------------------- operations */

/* The operations, and how often each is done. */
static const struct {
    enum status (*act)(struct story *s, struct store_op *op, size_t queue);
    unsigned share;
} deeds[] = {
    {do_create, 2},         {do_update, 1}, {do_remove, 1},  {do_delete, 2},
    {do_delete_many, 1},    {do_pop, 1},    {do_renew, 1},   {do_release, 2},
    {do_release_unsent, 1}, {do_look, 4},   {do_claim, 7},   {do_post, 10},
    {do_subscribe, 2},      {do_change, 2}, {do_deliver, 3}, {do_finish, 6},
    {do_redrive, 2},
};

enum status
story_operate(struct story *s, struct store_op *op, size_t queue)
{
    unsigned all = 0, dice;
    size_t i = 0;

    for (size_t k = 0; k < sizeof(deeds) / sizeof(deeds[0]); k++)
        all += deeds[k].share;
    for (dice = (unsigned)story_below(s, all); dice >= deeds[i].share; i++)
        dice -= deeds[i].share;
    return deeds[i].act(s, op, queue);
}

void
story_move_time(struct story *s)
{
    int64_t next_ms = store_next_ms(s->f.store);

    switch (story_below(s, 8)) {
    case 0:
        s->f.now_ms += 1 + (int64_t)story_below(s, 20000);
        return;
    case 1:
        if (next_ms != INT64_MAX && next_ms > s->f.now_ms)
            s->f.now_ms = next_ms;
        return;
    case 2:
        store_housekeep(s->f.store, s->f.now_ms, &next_ms);
        return;
    default:
        return;
    }
}
