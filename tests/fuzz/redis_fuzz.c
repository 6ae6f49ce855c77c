/*
 * Responses of a hostile Redis: whatever it sends to a script, each operation of the
 * store has a status, shows no more than was requested, and shows only texts that are
 * there.
 *
 * Input: a byte that chooses the operation, then what Redis sends to each script behind
 * the number of its request, before it hangs up. An input that begins with '!' behind the
 * first byte is sent without that number.
 */
#include "claimd/store/state.h"
#include "fuzz/fuzz.h"
#include "support/delete.h"
#include "support/store_on_fake.h"

enum { LIMIT = 3, RESPONSES = 16 };

static const struct bytes id = BYTES_LIT("a00000000000000000000001");

/* Reads each byte, for AddressSanitizer. */
static void
read_text(struct bytes text)
{
    volatile char last = 0;

    for (size_t i = 0; i < text.len; i++)
        last = text.data[i];
    (void)last;
}

static void
read_id(const struct store_id *shown)
{
    fuzz_check(memchr(shown->text, '\0', sizeof(shown->text)) != NULL,
               "an id without end");
}

static void
read_batch(struct store_batch *batch, enum status st, size_t most)
{
    fuzz_check(batch->count <= most, "%zu messages instead of %zu", batch->count, most);
    read_id(&batch->claim_id);
    for (size_t i = 0; i < batch->count; i++) {
        const struct store_message *m = &batch->messages[i];

        fuzz_check(st == ST_OK || st == ST_SEALED, "shown with %s", status_name(st));
        read_id(&m->id);
        read_id(&m->claim_id);
        read_text(m->body);
        if (m->checksum != NULL)
            read_text(bytes_of((const char *)m->checksum, sizeof(*m->checksum)));
        if (m->details != NULL) {
            read_text(m->details->reason);
            read_text(m->details->client);
            read_text(m->details->origin);
            read_text(m->details->unique.key);
        }
    }
    store_batch_release(batch);
}

/* Operations that show messages. */
static void
run_batch(struct store_on_fake *f, struct store_op *op, int which)
{
    const struct store_filter filter = {.limit = LIMIT};
    const struct store_terms terms = {.ttl_s = 60, .grace_s = 60};
    struct store_batch batch = STORE_BATCH_INIT;
    enum status st = ST_OK;
    size_t most = LIMIT;

    switch (which) {
    case 0:
        st = store_message_list(f->store, op, &f->queue, &filter, &batch);
        break;
    case 1:
        most = 1;
        st = store_message_get(f->store, op, &f->queue, &id, 1, &batch);
        break;
    case 2:
        st = store_message_pop(f->store, op, &f->queue, LIMIT, &batch);
        break;
    case 3:
        st = store_claim_create(f->store, op, &f->queue, &terms, LIMIT, &batch);
        break;
    default:
        most = SIZE_MAX; /* a claim has as many as it was made with */
        st = store_claim_get(f->store, op, &f->queue, id, &batch);
        break;
    }
    read_batch(&batch, st, most);
}

static void
read_queues(struct store_queues *queues, size_t most)
{
    fuzz_check(queues->count <= most, "%zu queues instead of %zu", queues->count, most);
    for (size_t i = 0; i < queues->count; i++) {
        read_text(queues->queues[i].name);
        read_text(queues->queues[i].metadata.json);
        read_text(queues->queues[i].metadata.settings.dead_letter);
        read_text(queues->queues[i].metadata.settings.paused_by);
    }
    store_queues_release(queues);
}

static void
run_queues(struct store_on_fake *f, struct store_op *op, int which)
{
    const struct store_page page = {
        .project = f->queue.project, .limit = LIMIT, .with_metadata = which == 1};
    struct store_queues queues = STORE_QUEUES_INIT;
    enum status st = which == 0   ? store_queue_get(f->store, op, &f->queue, &queues)
                     : which == 3 ? store_project_list(f->store, op, &page, &queues)
                                  : store_queue_list(f->store, op, &page, &queues);

    if (st == ST_OK)
        read_queues(&queues, LIMIT);
}

static void
run_subscriptions(struct store_on_fake *f, struct store_op *op, int which)
{
    struct store_subscriptions seen = STORE_SUBSCRIPTIONS_INIT;
    enum status st =
        which == 0 ? store_subscription_get(f->store, op, &f->queue, id, &seen)
                   : store_subscription_list(f->store, op, &f->queue, id, LIMIT, &seen);

    if (st != ST_OK)
        return;
    fuzz_check(seen.count <= LIMIT, "%zu subscriptions", seen.count);
    read_id(&seen.next);
    for (size_t i = 0; i < seen.count; i++) {
        read_id(&seen.views[i].id);
        read_text(seen.views[i].subscriber);
        read_text(seen.views[i].options);
    }
    store_subscriptions_release(&seen);
}

static void
run_read(struct store_on_fake *f, struct store_op *op, bool subscriptions)
{
    struct store_records records = {
        .resume = {0, subscriptions ? 0xa0000000 : 0, subscriptions ? 1 : 0}};

    if (store_read(f->store, op, &f->queue, &records) != ST_OK)
        return;
    for (size_t i = 0; i < records.count; i++) {
        const struct store_record *r = &records.all[i];

        if (r->kind == STORE_RECORD_MESSAGE) {
            read_id(&r->message.id);
            read_text(r->message.body);
            if (r->message.claim != NULL)
                read_id(&r->message.claim->id);
        } else if (r->kind == STORE_RECORD_SUBSCRIPTION) {
            read_id(&r->subscription.id);
            read_text(r->subscription.subscriber);
            read_text(r->subscription.options);
        }
    }
    store_records_release(&records);
}

static void
run_delivery(struct store_on_fake *f, struct store_op *op)
{
    struct store_delivery delivery;

    if (store_delivery_next(f->store, op, &delivery) != ST_OK)
        return;
    read_id(&delivery.subscription);
    read_text(delivery.queue.project);
    read_text(delivery.queue.name);
    read_text(delivery.subscriber);
    read_text(delivery.options);
    read_text(delivery.body);
    fuzz_check(delivery.notice <= STORE_NOTICE_UNSUBSCRIBED, "no such notice");
    store_delivery_done(f->store, op, &delivery, STORE_OUTCOME_DELIVERED, 0);
}

/* Operations that show numbers, or nothing. */
static void
run_other(struct store_on_fake *f, struct store_op *op, int which)
{
    const struct store_draft draft = {bytes_str("1"), 300, 0};
    const struct store_post post = {.drafts = &draft, .count = 1, .create_queue = true};
    struct store_stats stats;
    struct store_metrics metrics;
    struct store_id posted = {""};
    enum status st = ST_OK;

    switch (which) {
    case 0:
        st = store_queue_stats(f->store, op, &f->queue, &stats);
        if (st == ST_OK)
            read_id(&stats.oldest.id);
        break;
    case 1:
        st = store_message_post(f->store, op, &f->queue, &post, &posted);
        read_id(&posted);
        break;
    case 2:
        st = delete_message(f->store, op, &f->queue, id, id);
        break;
    case 3:
        st = delete_messages(f->store, op, &f->queue, &id, 1, NULL, 0);
        break;
    case 4:
        st = store_queue_delete(f->store, op, &f->queue);
        break;
    default:
        st = store_metrics(f->store, op, &metrics);
        break;
    }
    (void)st; /* any will do */
}

/* One of the messages is deleted, the other one dead-lettered. */
static void
run_finish(struct store_on_fake *f, struct store_op *op)
{
    struct store_finish_item items[] = {{.action = STORE_FINISH_DELETE, .id = id},
                                        {.action = STORE_FINISH_DEAD_LETTER,
                                         .id = bytes_str("a00000000000000000000002")}};
    struct store_finish finish = {
        .claim_id = id, .items = items, .count = 2, .atomic = true};
    const enum status st = store_claim_finish(f->store, op, &f->queue, &finish);

    for (size_t i = 0; i < finish.count; i++)
        fuzz_check(st != ST_OK || items[i].held, "finished, and not held");
}

static void
run_redrive(struct store_on_fake *f, struct store_op *op)
{
    struct store_redrive which = {.limit = LIMIT};
    struct store_redriven out;

    if (store_redrive(f->store, op, &f->queue, &which, &out) == ST_OK)
        read_text(out.target);
}

static void
run(struct store_on_fake *f, unsigned which)
{
    struct store_op op = {.now_ms = 1790000000000};

    switch (which % 22) {
    case 0:
    case 1:
    case 2:
    case 3:
    case 4:
        run_batch(f, &op, (int)(which % 22));
        break;
    case 5:
    case 6:
    case 7:
    case 8:
        run_queues(f, &op, (int)(which % 22) - 5);
        break;
    case 9:
    case 10:
        run_subscriptions(f, &op, (int)(which % 22) - 9);
        break;
    case 11:
    case 12:
        run_read(f, &op, which % 22 == 12);
        break;
    case 13:
        run_delivery(f, &op);
        break;
    case 20:
        run_finish(f, &op);
        break;
    case 21:
        run_redrive(f, &op);
        break;
    default:
        run_other(f, &op, (int)(which % 22) - 14);
        break;
    }
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const struct fake_response script[RESPONSES + 1] = {
        {"FCALL", "@"}, {"FCALL", "@"}, {"FCALL", "@"}, {"FCALL", "@"},
        {"FCALL", "@"}, {"FCALL", "@"}, {"FCALL", "@"}, {"FCALL", "@"},
        {"FCALL", "@"}, {"FCALL", "@"}, {"FCALL", "@"}, {"FCALL", "@"},
        {"FCALL", "@"}, {"FCALL", "@"}, {"FCALL", "@"}, {"FCALL", "@"}};
    struct store_on_fake f;

    if (size == 0)
        return 0;
    store_on_fake_open(&f, 0);
    fake_redis_respond(&f.redis, fuzz_input(data + 1, size - 1), true);
    fake_redis_play(&f.redis, script);
    run(&f, data[0]);
    store_on_fake_close(&f);
    return 0;
}
