/*
 * run_unload: moves ready messages from memory to body files. Declared in run_unload.h.
 *
 *     1. shard_consider_unload() lists a backlog that has enough messages, when it gets
 *        more.
 *     2. unload_blocks() runs with each post and with housekeeping. While more memory
 *        than backlog_memory is in use, unload_next() finds the next block of 64 numbers
 *        behind the window at the head, in ascending order.
 *     3. free_stored() frees the messages that a run has already. start_write()
 *        hands the others to the writer, and pins them. They stay in
 *        memory, and clients may claim or delete them meanwhile.
 *     4. finish_writes() asks whether the body file has them (journal/bodies.c).
 *        commit_write() logs a RUN with those that nothing has changed, and frees them.
 *
 * A queue with unloaded messages unloads later ones even if there is memory. Otherwise
 * each checkpoint would log those again.
 *
 * Read run_load.c next.
 */
#include "engine/run_unload.h"
#include "claimd/base/invariant.h"
#include "claimd/base/sometimes.h"
#include "engine/changelog.h"
#include "engine/run_read.h"

/* WRITE_BYTES: bodies of a run. POLL_MS: between two looks at the writer. RETRY_MS: after
 * it could take no run. AGAIN_MS: between two searches of a whole backlog. */
enum { WRITE_BYTES = 15 << 20, POLL_MS = 5, RETRY_MS = 100, AGAIN_MS = 10000 };

/* Messages that are being written. */
struct run_write {
    struct list link;        /* in the shard's writes */
    struct backlog *backlog; /* NULL: it was purged or deleted meanwhile */
    struct run *run;         /* owned */
    uint64_t ticket;
    struct message *messages[RUN_MESSAGES]; /* pinned, by bit; NULL: not part of it */
    uint32_t claim_counts[RUN_MESSAGES];
};

/* ------------------------------------------------------------------ writing */

static bool
next_to_write(struct store_change *change, struct store_message_record *out)
{
    const struct run_write *w = change->from[0];

    while (change->at < RUN_MESSAGES && w->messages[change->at] == NULL)
        change->at++;
    if (change->at == RUN_MESSAGES)
        return false;
    changelog_message(w->messages[change->at++], change->tag, out);
    return true;
}

static void
free_write(struct shard *sh, struct run_write *w)
{
    for (size_t i = 0; i < RUN_MESSAGES; i++)
        if (w->messages[i] != NULL)
            message_unpin(sh->core->mem, w->messages[i]);
    mem_free(sh->core->mem, w->run);
    mem_free(sh->core->mem, w);
}

/* True if nothing keeps a ready message from being unloaded. */
static bool
is_plain(struct message *m, uint32_t pins)
{
    return m->extra == NULL &&
           atomic_load_explicit(&m->pins, memory_order_relaxed) == pins;
}

/* Adds a message to a write. False: its life is too long for its outline. */
static bool
add_to_write(struct run_write *w, struct message *m)
{
    const unsigned bit = (unsigned)(m->seq % RUN_MESSAGES);
    struct run *r = w->run;

    if (r->stored == 0)
        r->posted_ms = m->posted_ms;
    if (m->expires_ms - r->expires_ms > UINT32_MAX)
        return false;
    r->outlines[bit] = (struct store_outline){
        .length = m->body_len, .life = (uint32_t)(m->expires_ms - r->expires_ms)};
    r->stored |= run_bit(m->seq);
    r->unread |= m->claim_count == 0 ? run_bit(m->seq) : 0;
    r->sealed |= store_is_sealed(message_body(m)) ? run_bit(m->seq) : 0;
    w->messages[bit] = m;
    w->claim_counts[bit] = m->claim_count;
    message_pin(m);
    return true;
}

/* Sets the bits of messages that can be written, and makes the life of the shortest one
 * the base of the others. Returns the bytes of their bodies. */
static size_t
collect_write(struct backlog *b, struct run_write *w, uint64_t ready)
{
    int64_t least_ms = INT64_MAX;
    size_t bytes = 0;

    for (uint64_t rest = ready; rest != 0; rest &= rest - 1) {
        const struct message *m =
            seqmap_find(&b->messages, w->run->first + run_lowest(rest));

        least_ms = m->expires_ms < least_ms ? m->expires_ms : least_ms;
    }
    w->run->expires_ms = least_ms;
    for (uint64_t rest = ready; rest != 0; rest &= rest - 1) {
        struct message *m = seqmap_find(&b->messages, w->run->first + run_lowest(rest));

        if (is_plain(m, 1) && bytes + m->body_len <= WRITE_BYTES && add_to_write(w, m))
            bytes += m->body_len;
    }
    return bytes;
}

/* Hands ready messages of a block to the writer. ST_AGAIN: it has too much to write. */
static enum status
start_write(struct shard *sh, struct backlog *b, uint64_t first, uint64_t ready)
{
    const struct run *old = backlog_run(b, first);
    struct store_runs *runs = sh->core->config.runs;
    struct mem *mem = sh->core->mem;
    struct run_write *w = mem_calloc(mem, 1, sizeof(*w));
    struct store_change change = {.kind = STORE_CHANGE_STATE,
                                  .tag = b->queue->tag,
                                  .now_ms = sh->now_ms,
                                  .next = next_to_write};
    enum status st;
    size_t bytes;

    if (w == NULL)
        return ST_NO_MEMORY;
    w->backlog = b;
    w->run = mem_calloc(mem, 1, sizeof(*w->run));
    if (w->run == NULL) {
        mem_free(mem, w);
        return ST_NO_MEMORY;
    }
    w->run->first = first;
    bytes = collect_write(b, w, ready);
    change.from[0] = w;
    change.count = run_count(w->run->stored);
    st = change.count < sh->core->unload.run_least ||
                 (old != NULL && (old->stored & ~w->run->stored) != 0)
             ? ST_CONFLICT
             : runs->write(runs, &change, bytes, &w->run->place, &w->ticket);
    if (st != ST_OK) {
        free_write(sh, w);
        return st;
    }
    list_add_before(&sh->writes, &w->link);
    return ST_OK;
}

/* ------------------------------------------------------------------ freeing */

/* Frees these messages of a run, which are in memory. */
static void
free_messages(struct shard *sh, struct run *r, uint64_t bits)
{
    struct backlog *b = r->backlog;

    for (uint64_t rest = bits; rest != 0; rest &= rest - 1) {
        struct message *m = seqmap_find(&b->messages, r->first + run_lowest(rest));

        wheel_disarm(sh->message_wheel, &m->due);
        backlog_unload(b, &sh->pool, m);
        message_unpin(sh->core->mem, m);
    }
    seqmap_pool_trim(&sh->pool);
    backlog_count_unloaded(r, bits);
    run_arm(sh, r);
}

/* True if an operation may need messages of the run that were loaded a moment ago. */
static bool
is_kept(const struct shard *sh, const struct run *r)
{
    return r->loading || (r->loaded_at != 0 && sh->now_ms - r->loaded_ms < RUN_KEEP_MS &&
                          sh->loaded_bytes - r->loaded_at < sh->core->unload.keep_bytes);
}

/* Frees the messages that a run has as they are, unless they were loaded a moment ago.
 * Returns the others of `ready`. */
static uint64_t
free_stored(struct shard *sh, struct backlog *b, uint64_t first, uint64_t ready)
{
    struct run *r = backlog_run(b, first);
    uint64_t bits = 0;

    if (r == NULL)
        return ready;
    if (is_kept(sh, r)) {
        b->unload_passed = true;
        return 0;
    }
    for (uint64_t rest = ready & r->stored & ~r->changed; rest != 0; rest &= rest - 1)
        if (is_plain(seqmap_find(&b->messages, first + run_lowest(rest)), 1))
            bits |= rest & -rest;
    if (bits != 0) {
        SOMETIMES(RUN_FREED_AGAIN);
        free_messages(sh, r, bits);
    }
    return ready & ~bits;
}

/* The messages of a write that are as they were written. */
static uint64_t
unchanged_bits(const struct run_write *w)
{
    const struct seqmap *messages = &w->backlog->messages;
    uint64_t bits = 0;

    for (unsigned i = 0; i < RUN_MESSAGES; i++) {
        struct message *m = w->messages[i];

        if (m != NULL && seqmap_find(messages, w->run->first + i) == m &&
            seqmap_is_ready(messages, w->run->first + i) && is_plain(m, 2) &&
            m->claim_count == w->claim_counts[i] &&
            m->expires_ms == run_expires_ms(w->run, i))
            bits |= UINT64_C(1) << i;
    }
    return bits;
}

/* Logs the run, and frees its messages. False: not all of the older run of the block are
 * part of it, or something is missing, and all stays as it is. */
static bool
commit_write(struct shard *sh, struct run_write *w)
{
    struct backlog *b = w->backlog;
    struct run *r = w->run;
    const struct run *old = backlog_run(b, r->first);
    const uint64_t bits = unchanged_bits(w);
    const size_t bytes = run_count(bits) * sizeof(r->outlines[0]);

    if (bits == 0 || (old != NULL && (old->loading || (old->stored & ~bits) != 0)))
        return false;
    if (seqmap_pool_stock(&sh->pool, run_nodes(b, r->first)) != ST_OK ||
        runs_prepare(sh) != ST_OK ||
        changelog_reserve(sh, STORE_CHANGE_RUN, 0, bytes) != ST_OK)
        return false;
    for (size_t i = 0; i < RUN_MESSAGES; i++)
        if (w->messages[i] != NULL)
            message_unpin(sh->core->mem, w->messages[i]);
    memset(w->messages, 0, sizeof(w->messages));
    r->stored = bits;
    r->adopted = true;
    run_link(sh, b, r);
    w->run = NULL;
    free_messages(sh, r, bits);
    changelog_run(b->queue, r, sh->now_ms);
    return true;
}

/* Ends the writes that the writer has ended. False: there is none. */
static bool
finish_writes(struct shard *sh)
{
    struct store_runs *runs = sh->core->config.runs;
    bool any = false;

    while (!list_empty(&sh->writes)) {
        struct run_write *w = container_of(sh->writes.next, struct run_write, link);
        const enum store_durability durability = runs->written(runs, w->ticket);

        if (durability == STORE_PENDING)
            break;
        any = true;
        list_remove(&w->link);
        SOMETIMES_IF(durability == STORE_LOST, RUN_NOT_WRITTEN);
        SOMETIMES_IF(w->backlog == NULL, RUN_WRITTEN_LATE);
        if (durability == STORE_LOST || w->backlog == NULL || !commit_write(sh, w))
            runs->release(runs, w->run->place.file);
        free_write(sh, w);
    }
    return any;
}

/* ------------------------------------------------------------------ choosing */

static bool
is_memory_needed(const struct core *core)
{
    return mem_used(core->mem) > core->config.backlog_memory;
}

/* The number of the block behind the messages that stay in memory. If twice as much
 * memory as it should be is in use, nearly none stay. */
static uint64_t
window_end(const struct shard *sh, const struct backlog *b)
{
    const struct unload_limits *limits = &sh->core->unload;
    const uint64_t bytes = b->bytes - b->unloaded_bytes;
    uint64_t first = 0, messages = limits->window_messages;

    if (bytes > 0 && b->messages.live * limits->window_bytes / bytes < messages)
        messages = b->messages.live * limits->window_bytes / bytes;
    if (mem_used(sh->core->mem) / 2 > sh->core->config.backlog_memory)
        messages = limits->pressed_messages;
    if (limits->newest)
        return 0;
    (void)seqmap_next_ready(&b->messages, &first);
    if (first > backlog_next_unloaded(b, 0))
        first = backlog_next_unloaded(b, 0);
    return (first + messages) / RUN_MESSAGES + 1;
}

/* Unloads the next block of a backlog. ST_NOT_FOUND: there is none. ST_AGAIN: the writer
 * has too much to write. */
static enum status
unload_next(struct shard *sh, struct backlog *b)
{
    const uint64_t end = window_end(sh, b);
    uint64_t seq = (b->unload_at > end ? b->unload_at : end) * RUN_MESSAGES;
    uint64_t first, live, ready;
    enum status st = ST_OK;
    struct run *r;

    if (b->queue == NULL || queue_transient(b->queue) ||
        seqmap_next_ready(&b->messages, &seq) == NULL)
        return ST_NOT_FOUND;
    first = seq - seq % RUN_MESSAGES;
    if (first + RUN_MESSAGES > b->queue->last_seq && !sh->core->unload.newest)
        return ST_NOT_FOUND; /* the newest block is not full yet */
    seqmap_bits(&b->messages, first, &live, &ready);
    ready = free_stored(sh, b, first, ready);
    if (run_count(ready) >= sh->core->unload.run_least)
        st = start_write(sh, b, first, ready);
    /* Some of a run were claimed and released. All of them are written again. */
    if (st == ST_CONFLICT && (r = backlog_run(b, first)) != NULL)
        run_move(sh, r);
    if (st != ST_AGAIN)
        b->unload_at = first / RUN_MESSAGES + 1;
    return st == ST_AGAIN ? ST_AGAIN : ST_OK;
}

/* A search reached the end. A later one begins again, because some messages may have been
 * claimed or delayed, and sooner if some had just been loaded. */
static void
end_search(struct shard *sh, struct backlog *b)
{
    if (b->unload_passed) {
        b->unload_passed = false;
        b->unload_at = 0;
        b->unload_after_ms = sh->now_ms + RUN_KEEP_MS;
        if (b->queue != NULL)
            shard_consider_unload(sh, b);
    } else if (b->unload_ms <= sh->now_ms) {
        b->unload_at = 0;
        b->unload_ms = sh->now_ms + AGAIN_MS;
    }
}

void
unload_blocks(struct shard *sh, size_t blocks)
{
    const bool needed = is_memory_needed(sh->core);

    lock_assert_held(&sh->lock);
    if (finish_writes(sh))
        sh->writer_busy_ms = 0;
    for (; blocks > 0 && sh->writer_busy_ms <= sh->now_ms &&
           !list_empty(&sh->long_backlogs);
         blocks--) {
        struct backlog *b =
            container_of(sh->long_backlogs.next, struct backlog, unload_link);
        const bool look = (needed || b->unloaded > 0) && b->unload_after_ms <= sh->now_ms;
        enum status st = look ? unload_next(sh, b) : ST_CHANGED;

        if (st == ST_AGAIN) {
            sh->writer_busy_ms = sh->now_ms + POLL_MS;
            break;
        }
        if (st == ST_OK)
            continue;
        list_remove(&b->unload_link);
        if (st == ST_CHANGED) { /* not now: look at the next one */
            list_add_before(&sh->long_backlogs, &b->unload_link);
            continue;
        }
        end_search(sh, b);
    }
    sh->unload_ms = !list_empty(&sh->writes) ? sh->now_ms + POLL_MS
                    : needed && !list_empty(&sh->long_backlogs)
                        ? sh->now_ms + RETRY_MS /* the writer could take none */
                        : WHEEL_NEVER;
    shard_wake_at(sh, sh->unload_ms);
}

bool
unload_chore(struct shard *sh, int64_t now_ms, size_t *budget)
{
    (void)now_ms;
    if (sh->unload_ms <= sh->now_ms)
        unload_blocks(sh, 1 + *budget / RUN_MESSAGES);
    return true;
}

void
unload_forget(struct shard *sh, const struct backlog *b)
{
    for (struct list *at = sh->writes.next; at != &sh->writes; at = at->next) {
        struct run_write *w = container_of(at, struct run_write, link);

        if (w->backlog == b)
            w->backlog = NULL;
    }
}

void
unload_drop_all(struct shard *sh)
{
    struct list *link;

    while ((link = list_pop(&sh->writes)) != NULL) {
        struct run_write *w = container_of(link, struct run_write, link);

        free_write(sh, w);
    }
}
