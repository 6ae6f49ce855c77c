#include "engine/changelog.h"
#include "engine/subscription.h"

enum status
changelog_reserve(struct shard *sh, enum store_change_kind kind, size_t count,
                  size_t bytes)
{
    struct store_log *log = sh->core->log;
    size_t *space = sh->group == NULL ? &sh->log_reserved : sh->group->space;

    lock_assert_held(&sh->lock);
    return log == NULL ? ST_OK
                       : log->reserve(log, kind, sh->checkpointing, count, bytes, space);
}

typedef bool next_fn(struct store_change *change, struct store_message_record *out);

/* A change of `count` messages. `next` iterates over them, starting with `from`. */
static struct store_change
change_of(const struct queue *q, enum store_change_kind kind, int64_t now_ms,
          next_fn *next, size_t count, const void *from)
{
    bool transient = queue_transient(q);

    return (struct store_change){.kind = kind,
                                 .checkpoint = q->shard->checkpointing,
                                 .now_ms = now_ms,
                                 .actor = q->shard->actor,
                                 .queue = q->where,
                                 .tag = q->tag,
                                 .transient = transient,
                                 .fence_base = q->fence_base,
                                 .last_number = transient ? q->reserved_seq : q->last_seq,
                                 .last_claim =
                                     transient ? q->reserved_claim : q->last_claim,
                                 .metadata = &q->metadata->document,
                                 .count = count,
                                 .next = next,
                                 .from = {from}};
}

void
changelog_message(const struct message *m, uint32_t tag, struct store_message_record *out)
{
    *out = (struct store_message_record){
        .number = m->seq,
        .old_number = m->seq,
        .original_id = message_has_original(m),
        .body = message_body(m),
        .checksum = message_checksum(m),
        .client = m->client,
        .posted_ms = m->posted_ms,
        .expires_ms = m->expires_ms,
        .delayed_until_ms = m->delayed ? m->due.due_ms : 0,
        .claim_count = m->claim_count,
    };
    if (message_details(m) != NULL)
        out->details = &message_details(m)->view;
    ident_write(&out->id, message_ident(m, tag));
}

static void
claim_record(const struct claim *c, struct store_claim_record *out)
{
    ident_write(&out->id, claim_ident(c));
    out->started_ms = c->started_ms;
    out->ends_ms = c->due.due_ms;
}

static void
set_lsn(struct queue *q, uint64_t lsn)
{
    if (q != NULL && lsn != 0)
        q->lsn = q->shard->lsn = lsn;
}

/* Appends a change of a queue and, if it is a MOVE, of its target (else NULL). */
static void
append_move(struct queue *q, struct queue *target, struct store_change *change)
{
    struct store_log *log = q->shard->core->log;
    struct change_group *group = q->shard->group;
    uint64_t lsn;

    lock_assert_held(&q->shard->lock);
    if (group != NULL) {
        ENSURE(group->count < group->capacity);
        group->all[group->count++] = (struct grouped_change){*change, q, target};
        return;
    }
    lsn = log->append(log, change, &q->shard->log_reserved);
    set_lsn(q, lsn);
    set_lsn(target, lsn);
}

static void
append_change(struct queue *q, struct store_change *change)
{
    append_move(q, NULL, change);
}

bool
changelog_group_fits(const struct change_group *group, const struct core *core)
{
    return core->log == NULL || core->log->largest == 0 ||
           *group->space <= core->log->largest;
}

void
changelog_end_group(struct change_group *group, const struct core *core)
{
    const bool whole = changelog_group_fits(group, core);
    struct store_log *log = core->log;
    uint64_t lsn = 0;

    for (size_t i = 0; whole && i + 1 < group->count; i++)
        group->all[i].change.then = &group->all[i + 1].change;
    for (size_t i = 0; i < group->count && (i == 0 || !whole); i++)
        lsn = log->append(log, &group->all[i].change, group->space);
    for (size_t i = 0; i < group->count; i++) {
        set_lsn(group->all[i].queue, lsn);
        set_lsn(group->all[i].target, lsn);
    }
    group->count = 0;
}

static bool
next_none(struct store_change *change, struct store_message_record *out)
{
    (void)change, (void)out;
    return false;
}

void
changelog_queue(struct queue *q, enum store_change_kind kind, int64_t now_ms)
{
    struct store_change change;

    if (!has_log(q->shard->core))
        return;
    change = change_of(q, kind, now_ms, next_none, 0, NULL);
    core_marks(q->shard->core, &change.marks);
    append_change(q, &change);
}

static bool
next_in_row(struct store_change *change, struct store_message_record *out)
{
    const struct queue *q = change->from[0];
    const struct message *m;

    if (change->count == 0)
        return false;
    m = seqmap_next_live(&q->backlog->messages, &change->at);
    while (change->kind != STORE_CHANGE_POST && backlog_is_stored(q->backlog, m->seq)) {
        change->at++;
        m = seqmap_next_live(&q->backlog->messages, &change->at);
    }
    change->at++;
    change->count--;
    changelog_message(m, q->tag, out);
    if (change->kind == STORE_CHANGE_STATE && m->claim != NULL) {
        claim_record(m->claim, &change->claim);
        out->claim = &change->claim;
    }
    return true;
}

void
changelog_row(struct queue *q, enum store_change_kind kind, uint64_t first, size_t count,
              int64_t now_ms)
{
    struct store_change change = change_of(q, kind, now_ms, next_in_row, count, q);

    change.at = first;
    append_change(q, &change);
}

static bool
next_listed(struct store_change *change, struct store_message_record *out)
{
    const struct list *head = change->from[0], *link = change->from[1];

    if (link == head)
        return false;
    change->from[1] = link->next;
    changelog_message(container_of(link, const struct message, due.link), change->tag,
                      out);
    return true;
}

void
changelog_delete(struct queue *q, const struct list *messages, size_t count,
                 int64_t now_ms)
{
    struct store_change change =
        change_of(q, STORE_CHANGE_DELETE, now_ms, next_listed, count, messages);

    change.from[1] = messages->next;
    append_change(q, &change);
}

static bool
next_held(struct store_change *change, struct store_message_record *out)
{
    const struct message *m = claim_next(change->from[0], &change->at);

    if (m != NULL)
        changelog_message(m, change->tag, out);
    return m != NULL;
}

void
changelog_claim(struct queue *q, enum store_change_kind kind, const struct claim *c,
                int64_t now_ms)
{
    struct store_change change = change_of(q, kind, now_ms, next_held, c->held, c);

    claim_record(c, &change.claim);
    append_change(q, &change);
}

/* The messages of an array, and (of a MOVE) their numbers in the source. */
static bool
next_in_array(struct store_change *change, struct store_message_record *out)
{
    struct message *const *messages = change->from[0];
    const uint64_t *old_numbers = change->from[1];

    if (change->at == change->count)
        return false;
    changelog_message(messages[change->at],
                      old_numbers == NULL ? change->tag : change->target_tag, out);
    if (old_numbers != NULL)
        out->old_number = old_numbers[change->at];
    change->at++;
    return true;
}

void
changelog_run(struct queue *q, const struct run *r, int64_t now_ms)
{
    struct store_change change =
        change_of(q, STORE_CHANGE_RUN, now_ms, next_none, 0, NULL);
    struct store_outline packed[RUN_MESSAGES];
    struct store_run_record record;

    if (!has_log(q->shard->core))
        return;
    run_record(r, packed, &record);
    change.run = &record;
    append_change(q, &change);
}

void
changelog_run_expired(struct queue *q, int64_t now_ms)
{
    struct store_change change =
        change_of(q, STORE_CHANGE_EXPIRED, now_ms, next_none, 0, NULL);

    append_change(q, &change);
}

void
changelog_single(struct queue *q, enum store_change_kind kind, struct message *m,
                 int64_t now_ms)
{
    struct store_change change = change_of(q, kind, now_ms, next_in_array, 1, &m);

    append_change(q, &change);
}

void
changelog_key(struct queue *q, const struct store_key_record *record,
              struct message *const *messages, size_t count, int64_t now_ms)
{
    struct store_change change =
        change_of(q, STORE_CHANGE_KEY, now_ms, next_in_array, count, messages);

    change.key = record;
    append_change(q, &change);
}

void
changelog_key_read(struct shard *sh, uint32_t tag, const struct store_key_record *record,
                   struct message *const *messages, size_t count)
{
    static const struct store_metadata none = {.settings = STORE_SETTINGS_INIT};
    struct store_change change = {.kind = STORE_CHANGE_KEY,
                                  .checkpoint = true,
                                  .now_ms = sh->now_ms,
                                  .tag = tag,
                                  .metadata = &none,
                                  .key = record,
                                  .count = count,
                                  .next = next_in_array,
                                  .from = {messages}};

    (void)sh->core->log->append(sh->core->log, &change, &sh->log_reserved);
}

void
changelog_move(struct queue *source, struct queue *target,
               struct message *const *messages, const uint64_t *old_numbers, size_t count,
               int64_t now_ms)
{
    struct store_change change =
        change_of(source, STORE_CHANGE_MOVE, now_ms, next_in_array, count, messages);

    change.from[1] = old_numbers;
    change.target = target->where;
    change.target_tag = target->tag;
    change.target_transient = queue_transient(target);
    append_move(source, target, &change);
}

/* The messages of an array that have details. */
static bool
next_detailed(struct store_change *change, struct store_message_record *out)
{
    struct message *const *messages = change->from[0];

    while (change->at < change->count && message_details(messages[change->at]) == NULL)
        change->at++;
    return next_in_array(change, out);
}

void
changelog_array(struct queue *q, enum store_change_kind kind,
                struct message *const *messages, size_t count, int64_t now_ms)
{
    struct store_change change = change_of(
        q, kind, now_ms, kind == STORE_CHANGE_DETAILS ? next_detailed : next_in_array,
        count, messages);

    append_change(q, &change);
}

static bool
next_detailed_in_row(struct store_change *change, struct store_message_record *out)
{
    while (next_in_row(change, out))
        if (out->details != NULL)
            return true;
    return false;
}

size_t
details_bytes(const struct message *m)
{
    const struct details *d = message_details(m);

    return d == NULL ? 0 : store_details_bytes(&d->view);
}

void
changelog_row_details(struct queue *q, uint64_t first, size_t count, int64_t now_ms)
{
    struct store_change change =
        change_of(q, STORE_CHANGE_DETAILS, now_ms, next_detailed_in_row, count, q);

    change.at = first;
    append_change(q, &change);
}

void
changelog_subscription(struct queue *q, enum store_change_kind kind,
                       const struct subscription *s, int64_t now_ms)
{
    struct store_subscription_record record;
    struct store_change change;

    if (!has_log(q->shard->core))
        return;
    subscription_record(s, &record);
    change = change_of(q, kind, now_ms, next_none, 0, NULL);
    change.subscription = &record;
    append_change(q, &change);
}

static bool
next_entry(struct store_change *change, struct store_message_record *out)
{
    const struct queue *q = change->from[0];
    const struct feed_entry *entry;

    if (change->count == 0)
        return false;
    entry = seqmap_next_live(&q->feed->entries, &change->at);
    *out = (struct store_message_record){
        .number = change->at,
        .old_number = change->at,
        .body = message_body(entry->message),
        .posted_ms = entry->expires_ms - entry->ttl_s * 1000,
        .expires_ms = entry->expires_ms,
    };
    if (entry->delay_s > 0)
        out->delayed_until_ms = out->posted_ms + entry->delay_s * 1000;
    change->at++;
    change->count--;
    return true;
}

void
changelog_feed(struct queue *q, uint64_t first, size_t count, int64_t now_ms)
{
    struct store_change change =
        change_of(q, STORE_CHANGE_FEED, now_ms, next_entry, count, q);

    change.at = first;
    append_change(q, &change);
}

bool
changelog_has_numbers(const struct queue *q, uint64_t messages, uint64_t claims)
{
    /* A queue that a post makes in the same step has no shard yet, and is not
     * transient. */
    return !queue_transient(q) || !has_log(q->shard->core) ||
           (q->last_seq + messages <= q->reserved_seq &&
            q->last_claim + claims <= q->reserved_claim);
}

enum status
changelog_reserve_numbers(struct queue *q, uint64_t messages, uint64_t claims)
{
    if (changelog_has_numbers(q, messages, claims))
        return ST_OK;
    return changelog_reserve(q->shard, STORE_CHANGE_QUEUE, 0,
                             queue_bytes(&q->where, &q->metadata->document));
}

void
changelog_numbers(struct queue *q, int64_t now_ms)
{
    if (changelog_has_numbers(q, 0, 0))
        return;
    queue_reserve_numbers(q);
    changelog_queue(q, STORE_CHANGE_QUEUE, now_ms);
}
