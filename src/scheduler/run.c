/*
 * run: posts the message of a schedule that is due. Declared in scheduler_private.h.
 *
 * The step is a finish of the claim that holds the schedule: it posts the message and
 * releases the schedule until its next due time, with the new progress as its reason. If
 * the store refuses the post, the schedule is released for a moment without it. If the
 * schedule was changed or deleted meanwhile, the claim does not hold it any more, and
 * nothing happens.
 */
#include "scheduler/scheduler_private.h"

#include "claimd/base/clock.h"
#include "claimd/base/invariant.h"
#include "claimd/testapi/history.h"
#include "claimd/testapi/testapi.h"

#include <inttypes.h>
#include <stdio.h>

enum {
    TRY_MS = 1000,         /* time to the second try for a due time; it doubles */
    UNREADABLE_MS = 600000 /* time to the next look at a schedule that cannot be read */
};

/* A schedule in work. */
struct due_run {
    struct watched *w;
    const struct store_message *message;
    struct bytes claim_id;
    struct moment at;
    struct loaded l;
    struct schedule_plan plan;
    struct buf reason, sealed;
};

static void
count(struct due_run *r, enum scheduler_counter which, uint64_t by)
{
    counter_add(&r->w->scheduler->counts[which], by);
}

/* Keeps an error in the progress, without characters that JSON escapes. */
static void
note_error(struct schedule_progress *p, struct bytes text)
{
    size_t len = text.len < SCHEDULE_ERROR_MOST ? text.len : SCHEDULE_ERROR_MOST;

    for (size_t i = 0; i < len; i++) {
        const char c = text.data[i];

        p->error[i] = (char)(c < ' ' || c > '~' || c == '"' || c == '\\' ? '\'' : c);
    }
    p->error[len] = '\0';
}

/* ------------------------------------------------------------------ the step */

/* Releases the schedule until ready_ms with the progress, and posts if `post` is not
 * NULL. */
static enum status
finish_run(struct due_run *r, int64_t ready_ms, struct store_finish_post *post)
{
    struct store_op op = {.now_ms = r->at.now_ms, .flush_later = true};
    struct store_finish_item item = {.action = STORE_FINISH_RELEASE,
                                     .id = store_id_bytes(&r->message->id),
                                     .ready_ms = ready_ms,
                                     .uncounted = true};
    struct store_finish request = {.claim_id = r->claim_id,
                                   .client = BYTES_LIT("scheduler"),
                                   .items = &item,
                                   .count = 1,
                                   .posts = post,
                                   .post_count = post != NULL,
                                   .atomic = true};
    enum status st;

    r->reason.len = 0;
    st = schedule_progress_write(&r->reason, &r->l.progress);
    item.reason = buf_view(&r->reason);
    if (st != ST_OK)
        return st;
    do
        st = store_claim_finish(r->w->scheduler->config.store, &op, &r->w->queue,
                                &request);
    while (st == ST_AGAIN);
    return st;
}

/* Encrypts the body of the message for its queue. */
static enum status
seal_draft(struct due_run *r, struct store_draft *draft)
{
    const struct store_sealer *sealer = r->w->scheduler->config.sealer;
    const struct store_queue target = {.project = r->w->queue.project,
                                       .name = r->l.schedule.queue};
    enum status st;

    if (sealer == NULL)
        return ST_NO_KEY;
    if (!buf_reserve(&r->sealed, draft->body.len + sealer->overhead))
        return ST_NO_MEMORY;
    st = sealer->seal(sealer->arg, &target, draft->body, r->sealed.data);
    draft->body = bytes_of(r->sealed.data, draft->body.len + sealer->overhead);
    return st;
}

/* A move of the test clock to the next event ends here. */
static void
note_post(const struct due_run *r, const struct store_id *id)
{
    struct testapi *testapi = r->w->scheduler->config.testapi;
    const struct history_entry e = {
        .at_ms = r->at.now_ms,
        .event = HISTORY_SCHEDULE,
        .queue = {.project = r->w->queue.project, .name = r->l.schedule.queue},
        .count = 1,
        .ids = store_id_bytes(id)};

    if (testapi != NULL)
        history_add(testapi_history(testapi), &e);
}

/* Posts for plan.due_ms. *target: the status is about its queue. */
static enum status
post_message(struct due_run *r, bool *target)
{
    const struct schedule *s = &r->l.schedule;
    char text[SCHEDULE_KEY_CAP];
    const struct store_unique unique = {
        .key = schedule_message_key(text, s, r->plan.due_ms), .due_ms = r->plan.due_ms};
    struct store_draft draft = {s->body, s->ttl_s, s->delay_s};
    struct store_id id;
    struct store_finish_post post = {
        .queue = s->queue,
        .post = {.drafts = &draft, .count = 1, .unique = &unique},
        .ids = &id};
    const int64_t ready_ms = store_time(&r->at, r->plan.next_ms);
    const _Atomic bool *closed = r->w->scheduler->config.closed;
    enum status st = closed != NULL && atomic_load(closed)
                         ? ST_UNAVAILABLE
                         : finish_run(r, ready_ms, &post);

    if (st == ST_NOT_SEALED) {
        st = seal_draft(r, &draft);
        if (st == ST_OK)
            st = finish_run(r, ready_ms, &post);
    }
    *target = st != ST_NOT_CLAIMED;
    if (st == ST_OK)
        note_post(r, &id);
    return st;
}

/* ------------------------------------------------------------------ results */

/* Why the queue refuses the message. */
static void
explain(const struct due_run *r, enum status st, struct reason *why)
{
    const struct bytes queue = r->l.schedule.queue;

    if (st == ST_NOT_FOUND)
        (void)reason_give(why, st, "queue %.*s does not exist", (int)queue.len,
                          queue.data);
    else if (st == ST_PAUSED)
        (void)reason_give(why, st, "posts to queue %.*s are paused", (int)queue.len,
                          queue.data);
    else
        (void)reason_give(why, st, "%s", status_text(st));
}

/* The due time cannot be posted now: tries again soon. */
static void
refuse_run(struct due_run *r, const struct schedule_progress *before, int64_t due_ms,
           const struct reason *why)
{
    struct schedule_progress *p = &r->l.progress;
    const struct schedule *s = &r->l.schedule;
    int64_t wait_ms = TRY_MS;

    *p = *before;
    p->tries = p->failing_ms == due_ms ? p->tries + 1 : 1;
    p->failing_ms = due_ms;
    p->refused++;
    note_error(p, bytes_str(why->text));
    for (uint64_t i = 1; i < p->tries && wait_ms < TRY_MOST_MS; i++)
        wait_ms *= 2;
    count(r, SCHEDULER_REFUSED, 1);
    if (p->tries == 1)
        log_event(r->w->scheduler->config.log, LOG_WARN, "schedule_refused",
                  LOG_B("project", r->w->queue.project), LOG_B("queue", s->queue),
                  LOG_B("schedule", s->name), LOG_S("reason", why->text));
    (void)finish_run(r, r->at.now_ms + (wait_ms < TRY_MOST_MS ? wait_ms : TRY_MOST_MS),
                     NULL); /* else the claim expires */
}

/* *there: a message of the schedule is still in its queue. */
static enum status
find_overlap(const struct due_run *r, bool *there)
{
    const struct schedule *s = &r->l.schedule;
    const struct store_queue target = {.project = r->w->queue.project, .name = s->queue};
    struct store_op op = {.now_ms = r->at.now_ms};
    struct store_batch found = STORE_BATCH_INIT;
    char text[SCHEDULE_KEY_CAP];
    enum status st;

    *there = false;
    if (r->plan.due_ms == 0 || s->overlap != SCHEDULE_OVERLAP_SKIP)
        return ST_OK;
    do
        st = store_message_find(r->w->scheduler->config.store, &op, &target,
                                schedule_message_key(text, s, 0), &found);
    while (st == ST_AGAIN);
    if (st != ST_OK)
        return st == ST_NOT_FOUND ? ST_OK : st; /* the post says that better */
    *there = found.count > 0;
    store_batch_release(&found);
    return ST_OK;
}

/* Does what is planned. */
static void
run_plan(struct due_run *r)
{
    const struct schedule_plan *plan = &r->plan;
    const struct schedule_progress before = r->l.progress;
    struct schedule_progress *p = &r->l.progress;
    bool target = true, skips;
    struct reason why;
    enum status st = find_overlap(r, &skips);

    reason_init(&why);
    if (st != ST_OK) {
        explain(r, st, &why);
        refuse_run(r, &before, plan->due_ms, &why);
        return;
    }
    p->last_ms = plan->last_ms;
    p->missed += plan->missed;
    p->failing_ms = 0;
    p->tries = 0;
    p->error[0] = '\0';
    p->skipped += skips;
    if (plan->due_ms == 0 || skips) {
        st = finish_run(r, store_time(&r->at, plan->next_ms), NULL);
    } else {
        p->posted++;
        p->posted_ms = r->at.now_ms + r->at.ahead_ms;
        p->message_ms = plan->due_ms;
        st = post_message(r, &target);
        if (st != ST_OK && target) {
            explain(r, st, &why);
            refuse_run(r, &before, plan->due_ms, &why);
        }
        if (st == ST_OK)
            count(r, SCHEDULER_POSTED, 1);
    }
    if (st != ST_OK)
        return;
    count(r, SCHEDULER_MISSED, plan->missed);
    count(r, SCHEDULER_SKIPPED, skips);
}

/* A schedule that cannot be read is looked at again later. */
static void
report_unreadable(struct due_run *r, enum status st, const struct reason *why)
{
    const struct schedule_progress before = r->l.progress;

    if (st != ST_BAD_VALUE && st != ST_DAMAGED) { /* no memory, or no zone now */
        const int64_t now_ms = r->at.now_ms + r->at.ahead_ms;

        /* The due time is not known. All tries are for one, so that they back off. */
        refuse_run(r, &before, before.failing_ms != 0 ? before.failing_ms : now_ms, why);
        return;
    }
    count(r, SCHEDULER_REFUSED, 1);
    log_event(r->w->scheduler->config.log, LOG_ERROR, "schedule_unreadable",
              LOG_B("project", r->w->queue.project),
              LOG_S("message", r->message->id.text), LOG_S("reason", why->text));
    note_error(&r->l.progress, bytes_str(why->text));
    (void)finish_run(r, r->at.now_ms + UNREADABLE_MS, NULL);
}

void
schedule_run(struct watched *w, const struct store_message *m, struct bytes claim_id)
{
    const struct scheduler_config *config = &w->scheduler->config;
    struct due_run r = {.w = w, .message = m, .claim_id = claim_id};
    const struct schedule *s = &r.l.schedule;
    int64_t next_ms, now_ms;
    struct reason why;
    enum status st;

    r.at = scheduler_now(w->scheduler);
    buf_init(&r.reason, config->mem);
    buf_init(&r.sealed, config->mem);
    reason_init(&why);
    st = loaded_read(w, m, &r.at, &r.l, &why);
    now_ms = r.at.now_ms + r.at.ahead_ms;
    if (st != ST_OK) {
        report_unreadable(&r, st, &why);
    } else if (s->paused) {
        (void)finish_run(&r, STORE_MS_MOST, NULL);
    } else {
        /* A store with a clock of its own may be a little ahead. */
        next_ms = schedule_next_ms(s, &r.l.progress, r.l.zone, now_ms);
        if (config->store->blocks && next_ms > now_ms &&
            next_ms - now_ms < SCHEDULE_LATE_MS)
            now_ms = next_ms;
        schedule_plan(s, &r.l.progress, r.l.zone, now_ms, &r.plan);
        run_plan(&r);
    }
    loaded_free(&r.l);
    buf_fini(&r.reason);
    buf_fini(&r.sealed);
}
