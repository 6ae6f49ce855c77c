/* The observer of a store that tests are run against: what it sees becomes history. */
#include "claimd/base/buf.h"
#include "claimd/store/store.h"
#include "testapi/testapi_private.h"

static struct testapi *
testapi_of(struct store_log *observer)
{
    return container_of(observer, struct testapi, observer);
}

/* ------------------------------------------------------------------ history */

/* What a change is in the history; HISTORY_EVENTS: nothing. */
static enum history_event
event_of(const struct store_change *change)
{
    const struct store_actor *actor = change->actor;

    switch (change->kind) {
    case STORE_CHANGE_QUEUE:
        return HISTORY_QUEUE_MADE;
    case STORE_CHANGE_META:
        return HISTORY_QUEUE_CHANGED;
    case STORE_CHANGE_QUEUE_GONE:
        return HISTORY_QUEUE_DELETED;
    case STORE_CHANGE_PURGE:
        return HISTORY_PURGED;
    case STORE_CHANGE_POST:
        return HISTORY_POSTED;
    case STORE_CHANGE_DELETE:
        return actor != NULL && bytes_present(actor->claim) ? HISTORY_FINISHED
                                                            : HISTORY_DELETED;
    case STORE_CHANGE_CLAIM:
        return HISTORY_CLAIMED;
    case STORE_CHANGE_RENEW:
        return HISTORY_RENEWED;
    case STORE_CHANGE_RELEASE:
        return HISTORY_RELEASED;
    case STORE_CHANGE_MOVE:
        return HISTORY_DEAD_LETTER;
    case STORE_CHANGE_SUBSCRIPTION:
        return HISTORY_SUBSCRIBED;
    case STORE_CHANGE_SUBSCRIPTION_GONE:
    case STORE_CHANGE_UNSUBSCRIBED:
        return HISTORY_UNSUBSCRIBED;
    case STORE_CHANGE_EXPIRED:
        return HISTORY_EXPIRED;
    case STORE_CHANGE_DELAY_OVER:
        return HISTORY_DELAY_ENDED;
    case STORE_CHANGE_CLAIM_OVER:
        return HISTORY_CLAIM_ENDED;
    default:
        return HISTORY_EVENTS;
    }
}

/* Of a change that nobody has asked for, but time has brought. */
static bool
is_times(enum store_change_kind kind)
{
    return kind == STORE_CHANGE_EXPIRED || kind == STORE_CHANGE_DELAY_OVER ||
           kind == STORE_CHANGE_CLAIM_OVER || kind == STORE_CHANGE_MOVE;
}

/* Writes the ids of a change's messages, which its log is still to see. */
static void
write_ids(const struct store_change *change, struct buf *out, size_t *count)
{
    struct store_change copy = *change;
    struct store_message_record m;

    *count = 0;
    while (copy.next(&copy, &m)) {
        if ((*count)++ >= HISTORY_IDS)
            continue;
        if (*count > 1)
            buf_byte(out, ' ');
        buf_str(out, m.id.text);
    }
}

static void
note(struct testapi *testapi, const struct store_change *change)
{
    const struct store_actor *actor = is_times(change->kind) ? NULL : change->actor;
    struct history_entry e = {.at_ms = change->now_ms, .queue = change->queue};
    struct buf ids;

    e.event = event_of(change);
    if (change->checkpoint || e.event == HISTORY_EVENTS)
        return;
    buf_init(&ids, testapi->mem);
    write_ids(change, &ids, &e.count);
    if (actor != NULL) {
        e.client = actor->client;
        e.action = actor->action;
        e.claim = actor->claim;
    }
    if (change->claim.id.text[0] != '\0')
        e.claim = store_id_bytes(&change->claim.id);
    if (e.event == HISTORY_CLAIMED || e.event == HISTORY_RENEWED)
        e.ends_ms = change->claim.ends_ms;
    if (e.event == HISTORY_DEAD_LETTER)
        e.target = change->target;
    e.ids = buf_view(&ids); /* without memory: as far as it went */
    history_add(testapi->history, &e);
    buf_fini(&ids);
}

/* ------------------------------------------------------------------ passing on */

static enum status
reserve(struct store_log *observer, enum store_change_kind kind, bool checkpoint,
        size_t count, size_t bytes, size_t *room)
{
    struct store_log *log = testapi_of(observer)->log;

    return log == NULL ? ST_OK : log->reserve(log, kind, checkpoint, count, bytes, room);
}

static uint64_t
commit(struct store_log *observer, struct store_change *change, size_t *room)
{
    struct testapi *testapi = testapi_of(observer);

    note(testapi, change);
    return testapi->log == NULL ? 0 : testapi->log->append(testapi->log, change, room);
}

static void
give_back(struct store_log *observer, size_t room)
{
    struct store_log *log = testapi_of(observer)->log;

    if (log != NULL)
        log->give_back(log, room);
}

static void
flush(struct store_log *observer)
{
    struct store_log *log = testapi_of(observer)->log;

    store_log_flush(log);
}

void
witness_init(struct testapi *testapi)
{
    testapi->observer = (struct store_log){
        .reserve = reserve, .append = commit, .give_back = give_back, .flush = flush};
}
