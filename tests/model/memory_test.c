/*
 * Running out of memory is a response: every allocation of every operation fails once,
 * and nothing has changed; over the budget posts are refused and everything else goes on.
 */
#include "support/delete.h"
#include "support/finishing.h"
#include "support/store_fixture.h"
#include "support/subscriptions.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

enum { ENGINE = 1, MAX_CLAIMS = 128 };

/* A fixture, and the claims made in it. */
struct scene {
    struct fixture f;
    struct store_id claims[MAX_CLAIMS];
    size_t claim_count;
    struct store_id subscription;  /* the last one that was made */
    struct store_id spare_ids[64]; /* for posts that are not looked at again */
};

/* One operation in a prepared situation; `size` grows from 0 to max_size. */
struct situation {
    const char *name;
    void (*prepare)(struct scene *s, int size);
    enum status (*act)(struct scene *s);
    int max_size, step;
    bool may_do_less; /* succeeds with part of its work if the rest has no memory */
};

/* ---------------------------------------------------------------------- the dump */

static void
dump_batch(FILE *out, const struct store_batch *batch)
{
    for (size_t i = 0; i < batch->count; i++) {
        const struct store_message *m = &batch->messages[i];

        fprintf(out, " %s[%s] '%.*s' %" PRId64 " %" PRId64 " %u", m->id.text,
                m->claim_id.text, (int)m->body.len, m->body.data, m->ttl_s, m->age_s,
                m->claim_count);
        if (m->details != NULL)
            fprintf(out, " '%.*s' of %.*s key '%.*s'", (int)m->details->reason.len,
                    m->details->reason.data, (int)m->details->origin.len,
                    m->details->origin.data, (int)m->details->unique.key.len,
                    m->details->unique.key.data);
        fprintf(out, " delayed %" PRId64 "\n", m->delayed_until_ms);
    }
}

static void
dump_subscriptions(FILE *out, struct fixture *f)
{
    struct store_id next;
    size_t count = list_subscriptions(f, "", 200, &next);

    for (size_t i = 0; i < count; i++) {
        const struct store_subscription *s = &f->subscriptions.views[i];

        fprintf(out, " %s %.*s %.*s ttl %" PRId64 " behind %" PRIu64 "\n", s->id.text,
                (int)s->subscriber.len, s->subscriber.data, (int)s->options.len,
                s->options.data, s->ttl_s, s->progress.behind);
    }
}

static void
dump_queue(FILE *out, struct scene *s, const struct store_queue_view *view)
{
    struct fixture *f = &s->f;
    struct store_stats now;

    f->queue.name = view->name;
    now = stats(f);
    fprintf(out,
            "%.*s version %" PRIu64 " '%.*s' count %" PRId64 ": %" PRIu64 " of %" PRIu64
            "\n",
            (int)view->name.len, view->name.data, view->version,
            (int)view->metadata.json.len, view->metadata.json.data,
            view->metadata.settings.max_claim_count, now.claimed, now.total);
    list_all(f);
    dump_batch(out, &f->seen);
    for (size_t i = 0; i < s->claim_count; i++) {
        if (query(f, s->claims[i]) != ST_OK)
            continue;
        fprintf(out, " claim %s %" PRId64 " %" PRId64 "\n", f->seen.claim_id.text,
                f->seen.claim_ttl_s, f->seen.claim_age_s);
        dump_batch(out, &f->seen);
    }
    dump_subscriptions(out, f);
}

/* Everything there is to see, as text; owned (free()). */
static char *
dump(struct scene *s)
{
    struct store_queues queues = STORE_QUEUES_INIT;
    struct store_queue back = s->f.queue;
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);

    ck_assert_ptr_nonnull(out);
    ck_assert_status(store_queue_list(s->f.store, STORE_AT(s->f.now_ms),
                                      &(struct store_page){.project = back.project,
                                                           .marker = BYTES_NONE,
                                                           .limit = 1000,
                                                           .with_metadata = true},
                                      &queues),
                     ST_OK);
    for (size_t i = 0; i < queues.count; i++)
        dump_queue(out, s, &queues.queues[i]);
    fprintf(out, "%" PRIu64 " queues\n", queues.total);
    store_queues_release(&queues);
    s->f.queue = back;
    fclose(out);
    return text;
}

/* ---------------------------------------------------------------------- preparing */

static void
keep(struct scene *s, struct store_id claim)
{
    ck_assert_uint_lt(s->claim_count, MAX_CLAIMS);
    s->claims[s->claim_count++] = claim;
}

static void
nothing(struct scene *s, int size)
{
    (void)s; /* a fresh store */
    (void)size;
}

/* `size` subscribers of the queue, who have two messages to get. */
static void
subscribers(struct scene *s, int size)
{
    char subscriber[24];

    for (int i = 0; i < size; i++) {
        snprintf(subscriber, sizeof(subscriber), "http://%d", i);
        s->subscription = subscribe(&s->f, subscriber, 600);
    }
    post(&s->f, 2);
}

static void
one_subscriber(struct scene *s, int size)
{
    subscribers(s, size + 1);
}

/* `size` queues beside the one of the fixture. */
static void
queues(struct scene *s, int size)
{
    struct store_queue back = s->f.queue;
    char name[24];

    for (int i = 0; i < size; i++) {
        snprintf(name, sizeof(name), "queue%d", i);
        use(&s->f, name);
        make_queue(&s->f, NULL);
    }
    s->f.queue = back;
}

/* The queue with `size` messages. */
static void
messages(struct scene *s, int size)
{
    make_queue(&s->f, NULL);
    if (size > 0)
        post(&s->f, size);
}

/* `size` claims of one message each, and 20 messages more. */
static void
claims(struct scene *s, int size)
{
    messages(s, size + 20);
    for (int i = 0; i < size; i++)
        keep(s, take(&s->f, 1));
}

/* Posts a message with this key. *existing: a message held it. */
static enum status
try_unique(struct scene *s, const char *key, bool until_claimed, bool *existing)
{
    const struct store_draft draft = {bytes_str("\"body\""), 300, 0};
    const struct store_unique unique = {.key = bytes_str(key),
                                        .until_claimed = until_claimed};
    const struct store_post request = {
        .drafts = &draft, .count = 1, .create_queue = true, .unique = &unique};
    struct store_op op = {.now_ms = s->f.now_ms};
    enum status st =
        store_message_post(s->f.store, &op, &s->f.queue, &request, s->spare_ids);

    *existing = op.existing;
    return st;
}

/* The queue with `size` + 1 unique messages. Every other one holds its key until it is
 * claimed. */
static void
unique_messages(struct scene *s, int size)
{
    bool existing;
    char key[24];

    for (int i = 0; i <= size; i++) {
        snprintf(key, sizeof(key), "key%d", i);
        ck_assert_status(try_unique(s, key, i % 2 == 0, &existing), ST_OK);
        ck_assert(!existing);
    }
}

/* A claim of ten messages, some of them deleted, and free ones around it. */
static void
worn_claim(struct scene *s, int size)
{
    (void)size; /* one size is enough */
    messages(s, 30);
    keep(s, take(&s->f, 10));
    ck_assert_status(delete_claimed(&s->f, 3, s->claims[0]), ST_OK);
    ck_assert_status(delete_unclaimed(&s->f, 15), ST_OK);
}

/* `size` dead letters in front of five fresh messages; no dead letter queue yet. */
static void
dead_letters(struct scene *s, int size)
{
    struct store_settings settings = STORE_SETTINGS_INIT;

    settings.max_claim_count = 1;
    settings.dead_letter = bytes_str("failed");
    make_queue(&s->f, &settings);
    post(&s->f, size + 1);
    release(&s->f, take(&s->f, (size_t)size + 1));
    post(&s->f, 5);
}

/* The same with a dead letter queue that holds some already. */
static void
more_dead_letters(struct scene *s, int size)
{
    dead_letters(s, size);
    release(&s->f, take(&s->f, 2)); /* moves all, and wears two of the five out */
    post(&s->f, size + 1);
    release(&s->f, take(&s->f, (size_t)size + 4));
}

/* A claim of the messages 1 to 6, of which one has a reason, and `size` dead letters of
 * them or others in their queue, which does not exist if there is none. */
static void
failing(struct scene *s, int size)
{
    struct finishing g;

    make_dead_lettering(&s->f, "q", 3, "failed", STORE_UNSET);
    post(&s->f, 6);
    g = finishing_of(&s->f, take(&s->f, 1));
    then_release(&g, 1, 0, "an older reason");
    ck_assert_status(finish(&s->f, &g), ST_OK);
    while (size-- > 0) {
        post_with(&s->f, 3600, 0);
        g = finishing_of(&s->f, take(&s->f, 7));
        then_dead_letter(&g, s->f.posted, "another");
        for (int i = 1; i <= 6; i++) {
            then_release(&g, i, 0, NULL);
            g.items[i].uncounted = true;
        }
        ck_assert_status(finish(&s->f, &g), ST_OK);
    }
    keep(s, take(&s->f, 6));
}

/* The same, and `size` + 1 unique messages are dead letters in "failed", which is the
 * queue now. A message of their origin holds the key of the last one. */
static void
fallen_unique(struct scene *s, int size)
{
    struct store_settings settings = STORE_SETTINGS_INIT;
    bool existing;
    char key[24];

    settings.max_claim_count = 1;
    settings.dead_letter = bytes_str("failed");
    make_queue(&s->f, &settings);
    for (int i = 0; i <= size; i++) {
        snprintf(key, sizeof(key), "key%d", i);
        ck_assert_status(try_unique(s, key, false, &existing), ST_OK);
    }
    release(&s->f, take(&s->f, (size_t)size + 1));
    post(&s->f, 1);
    ck_assert_uint_eq((keep(s, take(&s->f, 1)), s->f.seen.count), 1); /* moves them */
    if (size > 0)
        ck_assert_status(try_unique(s, key, false, &existing), ST_OK);
    use(&s->f, "failed");
}

/* Dead letters in "failed", which is the queue now. */
static void
fallen(struct scene *s, int size)
{
    failing(s, size + 1);
    use(&s->f, "failed");
}

static void
fallen_to_a_queue_in_use(struct scene *s, int size)
{
    failing(s, 30);
    use(&s->f, "other");
    messages(s, size);
    use(&s->f, "failed");
}

/* ---------------------------------------------------------------------- acting */

static enum status
post_some(struct scene *s, size_t count)
{
    struct store_draft drafts[64];
    const struct store_post request = {
        .drafts = drafts, .count = count, .client = 1, .create_queue = true};

    for (size_t i = 0; i < count; i++)
        drafts[i] = (struct store_draft){bytes_str("\"body\""), 300, 5};
    return store_message_post(s->f.store, STORE_AT(s->f.now_ms), &s->f.queue, &request,
                              s->spare_ids);
}

static enum status
act_post_one(struct scene *s)
{
    return post_some(s, 1);
}

static enum status
act_post_unique(struct scene *s)
{
    bool existing = false;
    enum status st = try_unique(s, "another key", true, &existing);

    ck_assert(!existing);
    return st;
}

static enum status
act_post_existing(struct scene *s)
{
    bool existing = false;
    enum status st = try_unique(s, "key0", false, &existing);

    ck_assert_int_eq(existing, st == ST_OK);
    return st;
}

static enum status
act_post_many(struct scene *s)
{
    return post_some(s, 64);
}

static enum status
act_create(struct scene *s)
{
    struct store_metadata metadata = {bytes_str("{\"a\":1}"), STORE_SETTINGS_INIT};
    bool created;

    metadata.settings.dead_letter = bytes_str("failed");
    return store_queue_create(s->f.store, STORE_AT(s->f.now_ms), &s->f.queue, &metadata,
                              &created);
}

static enum status
act_show(struct scene *s)
{
    struct store_queues shown = STORE_QUEUES_INIT;
    enum status st =
        store_queue_get(s->f.store, STORE_AT(s->f.now_ms), &s->f.queue, &shown);

    store_queues_release(&shown);
    return st;
}

static enum status
act_list_queues(struct scene *s)
{
    struct store_queues shown = STORE_QUEUES_INIT;
    enum status st = store_queue_list(s->f.store, STORE_AT(s->f.now_ms),
                                      &(struct store_page){.project = s->f.queue.project,
                                                           .marker = BYTES_NONE,
                                                           .limit = 20,
                                                           .with_metadata = true},
                                      &shown);

    store_queues_release(&shown);
    return st;
}

static enum status
act_update(struct scene *s)
{
    struct store_metadata metadata = {bytes_str("{\"a\":2}"), STORE_SETTINGS_INIT};
    struct store_queues shown = STORE_QUEUES_INIT;
    uint64_t version;
    enum status st =
        store_queue_get(s->f.store, STORE_AT(s->f.now_ms), &s->f.queue, &shown);

    if (st != ST_OK)
        return st;
    version = shown.queues[0].version;
    store_queues_release(&shown);
    return store_queue_update(s->f.store, STORE_AT(s->f.now_ms), &s->f.queue, version,
                              &metadata);
}

static enum status
act_purge(struct scene *s)
{
    return store_queue_purge(s->f.store, STORE_AT(s->f.now_ms), &s->f.queue,
                             STORE_PURGE_MESSAGES);
}

static enum status
act_list(struct scene *s)
{
    const struct store_filter filter = {.limit = 10, .include_claimed = true};
    struct store_batch shown = STORE_BATCH_INIT;
    enum status st = store_message_list(s->f.store, STORE_AT(s->f.now_ms), &s->f.queue,
                                        &filter, &shown);

    store_batch_release(&shown);
    return st;
}

static enum status
act_get(struct scene *s)
{
    struct bytes ids[2] = {id_of(&s->f, 1), id_of(&s->f, 2)};
    struct store_batch shown = STORE_BATCH_INIT;
    enum status st =
        store_message_get(s->f.store, STORE_AT(s->f.now_ms), &s->f.queue, ids, 2, &shown);

    store_batch_release(&shown);
    return st;
}

static enum status
act_pop(struct scene *s)
{
    struct store_batch shown = STORE_BATCH_INIT;
    enum status st =
        store_message_pop(s->f.store, STORE_AT(s->f.now_ms), &s->f.queue, 10, &shown);

    store_batch_release(&shown);
    return st;
}

static enum status
act_claim(struct scene *s)
{
    const struct store_terms terms = {300, 60};
    struct store_batch shown = STORE_BATCH_INIT;
    enum status st = store_claim_create(s->f.store, STORE_AT(s->f.now_ms), &s->f.queue,
                                        &terms, 10, &shown);

    store_batch_release(&shown);
    return st;
}

static enum status
act_query(struct scene *s)
{
    struct store_batch shown = STORE_BATCH_INIT;
    enum status st = store_claim_get(s->f.store, STORE_AT(s->f.now_ms), &s->f.queue,
                                     store_id_bytes(&s->claims[0]), &shown);

    store_batch_release(&shown);
    return st;
}

static struct store_wakeup *
not_received(struct store_listener *listener, enum store_notification notification)
{
    (void)listener, (void)notification;
    return NULL;
}

/* A claim, or a pop, by a waiter if there is nothing; then leaves. */
static enum status
act_as_waiter(struct scene *s, bool pops)
{
    const struct store_terms terms = {300, 60};
    struct store_listener listener = {.notify = not_received};
    struct store_waiter place = {.listener = &listener};
    struct store_op op = {.now_ms = s->f.now_ms, .waiter = &place};
    struct store_batch shown = STORE_BATCH_INIT;
    enum status st =
        pops ? store_message_pop(s->f.store, &op, &s->f.queue, 3, &shown)
             : store_claim_create(s->f.store, &op, &s->f.queue, &terms, 3, &shown);

    ck_assert(store_audit(s->f.store));
    ck_assert(st == ST_OK || !op.waits);
    ck_assert_int_eq(op.waits, place.waitqueue != NULL);
    store_waiter_leave(s->f.store, &place);
    store_batch_release(&shown);
    return st;
}

static enum status
act_wait(struct scene *s)
{
    return act_as_waiter(s, false);
}

static enum status
act_wait_to_pop(struct scene *s)
{
    return act_as_waiter(s, true);
}

static enum status
act_read(struct scene *s)
{
    struct store_records records = STORE_RECORDS_INIT;
    enum status st = store_read(s->f.store, STORE_AT(s->f.now_ms), &s->f.queue, &records);

    store_records_release(&records);
    return st;
}

/* Two claims of which one gets a second message, and two who are subscribed. */
static enum status
act_load(struct scene *s)
{
    const int64_t now_ms = s->f.now_ms;
    struct store_claim_record claims[2] = {{.id = text_id("abcdefabcdef0000000000f0")},
                                           {.id = {""}}};
    struct store_record records[11] = {
        {.kind = STORE_RECORD_QUEUE,
         .metadata = {bytes_str("{\"a\":1}"), STORE_SETTINGS_INIT}}};
    const struct store_details keyed = {
        .unique = {.key = bytes_str("key"), .until_claimed = true}};
    struct store_queue where = s->f.queue;

    for (size_t i = 0; i < 2; i++) {
        claims[i].started_ms = now_ms;
        claims[i].ends_ms = now_ms + 60000;
        records[9 + i] = (struct store_record){
            .kind = STORE_RECORD_SUBSCRIPTION,
            .subscription = {.subscriber = bytes_str(i == 0 ? "http://a" : "http://b"),
                             .started_ms = now_ms,
                             .ttl_s = 600}};
    }
    for (size_t i = 0; i < 8; i++)
        records[1 + i] = (struct store_record){
            .kind = STORE_RECORD_MESSAGE,
            .message = {.body = bytes_str("{}"),
                        .posted_ms = now_ms,
                        .expires_ms = now_ms + 600000,
                        .claim = i % 3 == 0 ? NULL : &claims[i % 3 - 1]}};
    records[1].message.id = text_id("abcdefab0000000000000001");
    records[1].message.details = &keyed;
    where.name = bytes_str("loaded");
    return store_apply(s->f.store, STORE_AT(now_ms), &where, records, 11);
}

/* The claim that act_load() has made gets more. */
static enum status
act_load_more(struct scene *s)
{
    const struct store_claim_record claim = {.id = text_id("abcdefabcdef0000000000f0"),
                                             .started_ms = s->f.now_ms,
                                             .ends_ms = s->f.now_ms + 60000};
    const struct store_record record = {.kind = STORE_RECORD_MESSAGE,
                                        .message = {.body = bytes_str("{}"),
                                                    .posted_ms = s->f.now_ms,
                                                    .expires_ms = s->f.now_ms + 600000,
                                                    .claim = &claim}};
    struct store_queue where = s->f.queue;

    where.name = bytes_str("loaded");
    return store_apply(s->f.store, STORE_AT(s->f.now_ms), &where, &record, 1);
}

static enum status
act_subscribe(struct scene *s)
{
    const struct store_subscription_draft draft = {bytes_str("http://fresh"),
                                                   bytes_str("{}"), 600};
    struct store_subscribed out;

    return store_subscription_create(s->f.store, STORE_AT(s->f.now_ms), &s->f.queue,
                                     &draft, &out);
}

static enum status
act_change_subscription(struct scene *s)
{
    const struct store_subscription_draft draft = {bytes_str("http://moved"), BYTES_NONE,
                                                   STORE_UNSET};

    return store_subscription_update(s->f.store, STORE_AT(s->f.now_ms), &s->f.queue,
                                     store_id_bytes(&s->subscription), &draft);
}

static enum status
act_list_subscriptions(struct scene *s)
{
    struct store_subscriptions page = STORE_SUBSCRIPTIONS_INIT;
    enum status st = store_subscription_list(s->f.store, STORE_AT(s->f.now_ms),
                                             &s->f.queue, BYTES_NONE, 20, &page);

    store_subscriptions_release(&page);
    return st;
}

/* A finish of everything, with a post to these queues, of which the first may be of one
 * unique message. */
static enum status
finish_all(struct scene *s, const char *first, const char *second,
           const struct store_unique *unique)
{
    const int posted = s->f.posted;
    struct finishing g = finishing_of(&s->f, s->claims[s->claim_count - 1]);
    enum status st;

    then_delete(&g, 1);
    then_release(&g, 2, 10, "busy");
    then_release(&g, 3, 0, NULL);
    then_dead_letter(&g, 4, NULL);
    then_dead_letter(&g, 5, "bad");
    then_post(&g, first, unique == NULL ? 2 : 1);
    g.posts[0].post.unique = unique;
    then_post(&g, second, 4);
    then_renew(&g, 600, 60);
    st = finish(&s->f, &g);
    s->f.posted = posted;
    return st;
}

static enum status
act_finish(struct scene *s)
{
    return finish_all(s, "next", "q", NULL);
}

static enum status
act_finish_unique(struct scene *s)
{
    const struct store_unique unique = {.key = bytes_str("next key"),
                                        .until_claimed = true};

    return finish_all(s, "next", "q", &unique);
}

static enum status
act_finish_to_dead_letters(struct scene *s)
{
    return finish_all(s, "another", "failed", NULL);
}

static enum status
redrive_to(struct scene *s, const char *to)
{
    struct store_redrive which = {.limit = 60,
                                  .to = to == NULL ? BYTES_NONE : bytes_str(to)};
    struct store_redriven out;

    return store_redrive(s->f.store, STORE_AT(s->f.now_ms), &s->f.queue, &which, &out);
}

static enum status
act_redrive(struct scene *s)
{
    return redrive_to(s, NULL);
}

static void
fallen_to_a_queue_that_encrypts(struct scene *s, int size)
{
    struct store_settings settings = STORE_SETTINGS_INIT;

    settings.encrypt = true;
    use(&s->f, "other");
    make_queue(&s->f, &settings);
    fallen(s, size);
}

static enum status
act_redrive_to_a_new_queue(struct scene *s)
{
    return redrive_to(s, "fresh");
}

static enum status
act_redrive_to_other(struct scene *s)
{
    return redrive_to(s, "other");
}

static void
loaded(struct scene *s, int size)
{
    (void)size;
    ck_assert_status(act_load(s), ST_OK);
    ck_assert_status(
        store_queue_purge(
            s->f.store, STORE_AT(s->f.now_ms),
            &(struct store_queue){s->f.queue.project, bytes_str("loaded"), STORE_QUEUE},
            STORE_PURGE_SUBSCRIPTIONS),
        ST_OK);
}

static const struct situation situations[] = {
    {"waiting for a queue that does not exist", queues, act_wait, 40, 8, false},
    {"waiting in an empty queue", messages, act_wait, 0, 1, false},
    {"waiting to pop", messages, act_wait_to_pop, 0, 1, false},
    {"a claim by a request that would wait", messages, act_wait, 70, 7, false},
    {"dead-lettering by a request that would wait", dead_letters, act_wait, 100, 9, true},
    {"the first message of the store", nothing, act_post_one, 0, 1, false},
    {"the first message of a queue", messages, act_post_one, 0, 1, false},
    {"a post that makes its queue among others", queues, act_post_one, 40, 1, false},
    {"a message behind others", messages, act_post_one, 130, 1, false},
    {"many messages behind others", messages, act_post_many, 130, 13, false},
    {"many messages that make their queue", queues, act_post_many, 40, 8, false},
    {"a unique message", unique_messages, act_post_unique, 40, 20, false},
    {"a unique message that makes its queue", queues, act_post_unique, 10, 5, false},
    {"a message whose key is held", unique_messages, act_post_existing, 10, 5, false},
    {"a queue among others", queues, act_create, 70, 1, false},
    {"showing a queue", messages, act_show, 0, 1, false},
    {"listing queues", queues, act_list_queues, 30, 10, false},
    {"changing metadata", messages, act_update, 0, 1, false},
    {"a purge", messages, act_purge, 100, 50, false},
    {"a purge under claims", claims, act_purge, 10, 5, false},
    {"listing messages", worn_claim, act_list, 0, 1, false},
    {"getting messages", worn_claim, act_get, 0, 1, false},
    {"popping messages", worn_claim, act_pop, 0, 1, false},
    {"a claim beside others", claims, act_claim, 70, 1, false},
    {"a claim that frees keys", unique_messages, act_claim, 20, 5, false},
    {"querying a claim", worn_claim, act_query, 0, 1, false},
    {"a claim that moves dead letters", dead_letters, act_claim, 100, 3, true},
    {"a claim that moves dead letters beside others", more_dead_letters, act_claim, 100,
     3, true},
    {"a slice of records", worn_claim, act_read, 0, 1, false},
    {"loading a queue", queues, act_load, 40, 8, false},
    {"loading more of a claim", loaded, act_load_more, 0, 1, false},
    {"the first subscription of the store", nothing, act_subscribe, 0, 1, false},
    {"a subscription beside others", subscribers, act_subscribe, 70, 1, false},
    {"a post with subscribers", subscribers, act_post_one, 5, 1, false},
    {"many posts with subscribers", subscribers, act_post_many, 5, 1, false},
    {"changing a subscription", one_subscriber, act_change_subscription, 0, 1, false},
    {"a finish", failing, act_finish, 60, 6, false},
    {"a finish that posts to the dead-letter queue", failing, act_finish_to_dead_letters,
     60, 6, false},
    {"a finish that posts a unique message", failing, act_finish_unique, 60, 30, false},
    {"putting unique dead letters back", fallen_unique, act_redrive, 50, 25, false},
    {"putting dead letters back", fallen, act_redrive, 50, 7, false},
    {"putting dead letters into a queue that is made", fallen, act_redrive_to_a_new_queue,
     50, 10, false},
    {"putting dead letters behind others", fallen_to_a_queue_in_use, act_redrive_to_other,
     130, 13, false},
    {"putting dead letters into a queue that encrypts", fallen_to_a_queue_that_encrypts,
     act_redrive_to_other, 50, 25, false},
    {"listing subscriptions", subscribers, act_list_subscriptions, 20, 5, false},
};

/* -------------------------------------------------------------------- the checkpoint */

TEST_CASE("sweep");

/* All live messages of the project. */
static uint64_t
count_messages(struct scene *s)
{
    static const char *const names[] = {"q", "failed"};
    struct store_queue back = s->f.queue;
    uint64_t total = 0;

    for (size_t i = 0; i < 2; i++) {
        struct store_stats now;

        use(&s->f, names[i]);
        if (store_queue_stats(s->f.store, STORE_AT(s->f.now_ms), &s->f.queue, &now) ==
            ST_OK)
            total += now.total;
    }
    s->f.queue = back;
    return total;
}

/* Lets the nth allocation of the act fail; false if it makes fewer. */
static bool
fail_at(const struct situation *situation, int size, uint64_t nth)
{
    struct scene s = {.claim_count = 0};
    uint64_t attempts, total;
    char *before, *after;
    enum status st;
    bool hit;

    fixture_open(&s.f, ENGINE);
    situation->prepare(&s, size);
    before = dump(&s);
    total = count_messages(&s);
    attempts = mem_attempts(s.f.mem);
    mem_fail_nth(s.f.mem, nth);
    st = situation->act(&s);
    mem_fail_nth(s.f.mem, 0);
    hit = mem_attempts(s.f.mem) - attempts >= nth;
    ck_assert(store_audit(s.f.store));
    if (hit && st != ST_OK) {
        ck_assert_msg(st == ST_NO_MEMORY, "%s: %s", situation->name, status_name(st));
        after = dump(&s);
        ck_assert_msg(strcmp(before, after) == 0,
                      "%s, size %d, allocation %" PRIu64 " changed\n%s\ninto\n%s",
                      situation->name, size, nth, before, after);
        free(after);
        ck_assert_status(situation->act(&s), ST_OK); /* later it works */
    } else {
        ck_assert_status(st, ST_OK);
        ck_assert_msg(!hit || situation->may_do_less, "%s, size %d, allocation %" PRIu64,
                      situation->name, size, nth);
        if (situation->may_do_less)
            ck_assert_uint_eq(count_messages(&s), total);
    }
    free(before);
    fixture_close(&s.f);
    return hit;
}

LOOP_TEST(every_allocation_may_fail_and_nothing_has_changed,
          sizeof(situations) / sizeof(situations[0]))
{
    const struct situation *situation = &situations[_i];
    uint64_t failures = 0;

    for (int size = 0; size <= situation->max_size; size += situation->step)
        for (uint64_t nth = 1; fail_at(situation, size, nth); nth++)
            failures++;
    ck_assert_msg(failures > 0, "%s allocates nothing", situation->name);
}

START_TEST(opening_a_store_may_fail_at_every_allocation)
{
    struct mem *mem = mem_new(0);
    struct engine_config config = fixture_config(mem);
    struct store *store = NULL;
    uint64_t nth = 1;

    for (;; nth++) {
        mem_fail_nth(mem, nth);
        if (engine_open(&config, &store) == ST_OK)
            break;
        ck_assert_uint_eq(mem_used(mem), 0);
    }
    ck_assert_uint_gt(nth, 1);
    mem_fail_nth(mem, 0);
    store_close(store);
    ck_assert_uint_eq(mem_used(mem), 0);
    mem_destroy(mem);
}

/* ---------------------------------------------------------------------- without any */

START_TEST(accepted_messages_can_be_claimed_and_deleted_without_memory)
{
    struct scene s = {.claim_count = 0};
    struct fixture *f = &s.f;
    struct bytes ids[2];
    int64_t next_ms;

    fixture_open(f, ENGINE);
    post(f, 200);
    keep(&s, take(f, 5)); /* 1 .. 5 */
    keep(&s, take(f, 5)); /* 6 .. 10 */
    mem_fail_from(f->mem, 1);
    ck_assert_status(post_some(&s, 1), ST_NO_MEMORY);
    ck_assert_status(act_claim(&s), ST_NO_MEMORY);
    ck_assert_status(renew(f, s.claims[0], 600, 60), ST_OK);
    ck_assert_status(delete_claimed(f, 1, s.claims[0]), ST_OK);
    ck_assert_status(delete_unclaimed(f, 100), ST_OK);
    ids[0] = id_of(f, 2);
    ids[1] = id_of(f, 101);
    ck_assert_status(
        delete_messages(f->store, STORE_AT(f->now_ms), &f->queue, ids, 2, NULL, 0),
        ST_OK);
    ck_assert_status(store_claim_release(f->store, STORE_AT(f->now_ms), &f->queue,
                                         store_id_bytes(&s.claims[1]), STORE_NOT_SEEN),
                     ST_OK);
    expect_stats(f, 3, 193);
    wait_s(f, 600); /* the other claim expires */
    expect_stats(f, 0, 196);
    wait_s(f, 3600); /* and so do the messages */
    expect_stats(f, 0, 0);
    do {
        store_housekeep(f->store, f->now_ms, &next_ms);
        ck_assert(store_audit(f->store));
    } while (next_ms <= f->now_ms);
    delete_queue(f);
    mem_fail_from(f->mem, 0);
    fixture_close(f);
}

/* ---------------------------------------------------------------------- the budget */

TEST_CASE("budget");

START_TEST(over_the_budget_a_paused_queue_can_resume)
{
    struct scene s = {.claim_count = 0};
    struct fixture *f = &s.f;

    fixture_open(f, ENGINE);
    post(f, 2);
    ck_assert_status(act_update(&s), ST_OK);
    pause_queue(f, STORE_PAUSE_CLAIMS);
    mem_set_budget(f->mem, 1);
    take(f, 1);
    expect_nothing(f);
    pause_queue(f, 0);
    take(f, 1);
    expect(f, 1);
    mem_set_budget(f->mem, 0);
    fixture_close(f);
}

START_TEST(over_the_budget_only_what_adds_data_is_refused)
{
    struct scene s = {.claim_count = 0};
    struct fixture *f = &s.f;

    fixture_open(f, ENGINE);
    post(f, 100);
    mem_set_budget(f->mem, 1);
    ck_assert_status(post_some(&s, 1), ST_OVER_BUDGET);
    ck_assert_status(act_update(&s), ST_OVER_BUDGET);
    use(f, "new");
    ck_assert_status(act_create(&s), ST_OVER_BUDGET);
    ck_assert_status(post_some(&s, 1), ST_OVER_BUDGET);
    ck_assert_status(act_show(&s), ST_NOT_FOUND);
    use(f, "q");
    keep(&s, take(f, 2));
    expect(f, 1, 2);
    ck_assert_status(query(f, s.claims[0]), ST_OK);
    ck_assert_status(renew(f, s.claims[0], 600, 60), ST_OK);
    ck_assert_status(delete_claimed(f, 1, s.claims[0]), ST_OK);
    release(f, s.claims[0]);
    get(f, 1, 2);
    expect(f, 2);
    pop(f, 2);
    expect(f, 2, 3);
    ck_assert_status(act_show(&s), ST_OK);
    ck_assert_status(act_list_queues(&s), ST_OK);
    purge(f);
    fixture_close(f);
}

START_TEST(dead_letters_move_over_the_budget)
{
    struct scene s = {.claim_count = 0};

    fixture_open(&s.f, ENGINE);
    dead_letters(&s, 80);
    mem_set_budget(s.f.mem, 1);
    take(&s.f, 3);
    expect(&s.f, 82, 83, 84);
    use(&s.f, "failed");
    expect_stats(&s.f, 0, 81);
    fixture_close(&s.f);
}

START_TEST(jobs_are_finished_and_put_back_over_the_budget)
{
    struct scene s = {.claim_count = 0};
    struct finishing g;

    fixture_open(&s.f, ENGINE);
    failing(&s, 3);
    mem_set_budget(s.f.mem, 1);
    ck_assert_status(act_finish(&s), ST_OVER_BUDGET);
    g = finishing_of(&s.f, s.claims[0]);
    then_delete(&g, 1);
    then_release(&g, 2, 10, "busy");
    then_dead_letter(&g, 3, "bad");
    then_renew(&g, 60, 60);
    ck_assert_status(finish(&s.f, &g), ST_OK);
    use(&s.f, "failed");
    ck_assert_uint_eq(redrive_all(&s.f).moved, 4);
    fixture_close(&s.f);
}

START_TEST(bodies_count_against_the_budget)
{
    enum { LARGE = 200 * 1024 };
    static char body[LARGE];
    struct store_draft draft = {bytes_of(body, LARGE), 3600, 0};
    struct store_post one = {.drafts = &draft, .count = 1, .create_queue = true};
    struct fixture f;
    struct store_id id;
    enum status st;
    int posts = 0;

    memset(body, '1', LARGE);
    fixture_open(&f, ENGINE);
    mem_set_budget(f.mem, mem_used(f.mem) + (uint64_t)6 * LARGE);
    while ((st = store_message_post(f.store, STORE_AT(f.now_ms), &f.queue, &one, &id)) ==
           ST_OK)
        posts++;
    ck_assert_status(st, ST_OVER_BUDGET);
    ck_assert_int_gt(posts, 0);
    ck_assert_uint_le(mem_used(f.mem), mem_budget(f.mem));
    fixture_close(&f);
}

START_TEST(posting_works_again_when_the_queue_was_emptied)
{
    struct scene s = {.claim_count = 0};
    struct fixture *f = &s.f;
    int64_t next_ms;
    int posts = 0;

    fixture_open(f, ENGINE);
    make_queue(f, NULL);
    mem_set_budget(f->mem, mem_used(f->mem) + 256 * 1024);
    for (int round = 0; round < 3; round++) {
        int before = posts;

        while (post_some(&s, 64) == ST_OK)
            posts++;
        ck_assert_int_gt(posts, before + 5);
        ck_assert_uint_le(mem_used(f->mem), mem_budget(f->mem));
        ck_assert_status(post_some(&s, 64), ST_OVER_BUDGET);
        if (round == 0)
            purge(f);
        else if (round == 1)
            delete_queue(f);
        else
            wait_s(f, 300);
        do
            store_housekeep(f->store, f->now_ms, &next_ms);
        while (next_ms <= f->now_ms);
    }
    ck_assert_status(post_some(&s, 64), ST_OK);
    fixture_close(f);
}
