/*
 * read: reads schedules from their messages, and corrects their delays. Declared in
 * scheduler_private.h.
 */
#include "scheduler/scheduler_private.h"

#include "claimd/base/clock.h"

#include <inttypes.h>

enum {
    PAGE = 100,        /* schedules that one call reads */
    TOLERATED_MS = 900 /* difference of a delay that needs no correction */
};

/* ------------------------------------------------------------------ one schedule */

int64_t
store_time(const struct moment *at, int64_t wall_ms)
{
    return wall_ms == RECURRENCE_NEVER ? STORE_MS_MOST : wall_ms - at->ahead_ms;
}

enum status
loaded_read(const struct watched *w, const struct store_message *m,
            const struct moment *at, struct loaded *out, struct reason *why)
{
    const struct scheduler_config *config = &w->scheduler->config;
    const struct bytes progress = m->details == NULL ? BYTES_NONE : m->details->reason;
    struct bytes key = m->details == NULL ? BYTES_NONE : m->details->unique.key;
    enum status st;

    *out = (struct loaded){.zone = NULL};
    out->schedule.queue =
        bytes_cut(&key, '/'); /* for the log, if the body is unreadable */
    out->schedule.name = key;
    buf_init(&out->text, config->mem);
    st = schedule_progress_read(progress, &out->progress);
    if (st == ST_OK)
        st = config->open_body(config->open_ctx, &w->queue, m->body, &out->text);
    if (st == ST_OK)
        st = schedule_read(buf_view(&out->text), &out->schedule);
    if (st != ST_OK)
        return reason_give(why, st, "the schedule cannot be read: %s", status_text(st));
    if (out->schedule.recurrence.every_s != 0)
        return ST_OK;
    st = zones_get(config->zones, bytes_str(out->schedule.recurrence.zone), at->now_ms,
                   &out->zone, why);
    return st == ST_BAD_VALUE ? ST_IO : st; /* the zone may come back */
}

void
loaded_free(struct loaded *l)
{
    zone_unref(l->zone);
    buf_fini(&l->text);
}

/* ------------------------------------------------------------------ all schedules */

/* Delays the schedule until another time. If it was changed meanwhile, the change
 * counts. */
static enum status
correct_delay(const struct watched *w, const struct store_message *m, int64_t ready_ms)
{
    struct store_draft draft = {m->body, SCHEDULE_TTL_S, STORE_UNSET};
    const struct store_post post = {.drafts = &draft,
                                    .count = 1,
                                    .unique = &m->details->unique,
                                    .replaces = store_id_bytes(&m->id),
                                    .ready_ms = ready_ms};
    struct store_op op = {.now_ms = scheduler_now(w->scheduler).now_ms};
    struct store_id id;
    enum status st;

    do
        st = store_message_post(w->scheduler->config.store, &op, &w->queue, &post, &id);
    while (st == ST_AGAIN);
    return st == ST_CHANGED ? ST_OK : st;
}

/* A due time was refused, and the schedule waits for the next try. A longer wait is for a
 * due time, because the schedule was replaced or resumed since. */
static bool
waits_for_try(const struct store_message *m, const struct schedule_progress *p,
              int64_t now_ms)
{
    return p->failing_ms != 0 && m->delayed_until_ms <= now_ms + TRY_MOST_MS;
}

/* run.c reports schedules that cannot be read. ST_NO_MEMORY, statuses of the store. */
static enum status
check_delay(const struct watched *w, const struct store_message *m)
{
    const struct moment at = scheduler_now(w->scheduler);
    const int64_t now_ms = at.now_ms + at.ahead_ms;
    struct loaded l;
    struct reason why;
    int64_t next_ms;
    enum status st;

    if (m->delayed_until_ms == 0 || m->details == NULL)
        return ST_OK;
    reason_init(&why);
    st = loaded_read(w, m, &at, &l, &why);
    if (st == ST_OK && !l.schedule.paused && !waits_for_try(m, &l.progress, at.now_ms)) {
        next_ms =
            store_time(&at, schedule_next_ms(&l.schedule, &l.progress, l.zone, now_ms));
        if (next_ms < m->delayed_until_ms - TOLERATED_MS ||
            next_ms > m->delayed_until_ms + TOLERATED_MS)
            st = correct_delay(w, m, next_ms);
    } else if (st != ST_NO_MEMORY) {
        st = ST_OK;
    }
    loaded_free(&l);
    return st;
}

enum status
schedules_read(struct watched *w)
{
    struct store *store = w->scheduler->config.store;
    struct store_filter filter = {.limit = PAGE, .include_delayed = true};
    struct store_id next = {""};
    enum status worst = ST_OK;
    bool more = true;

    while (more && !atomic_load(&w->scheduler->closing)) {
        struct store_op op = {.now_ms = scheduler_now(w->scheduler).now_ms};
        struct store_batch page = STORE_BATCH_INIT;
        enum status st;

        filter.marker = next.text[0] == '\0' ? BYTES_NONE : store_id_bytes(&next);
        do
            st = store_message_list(store, &op, &w->queue, &filter, &page);
        while (st == ST_AGAIN);
        if (st != ST_OK)
            return st;
        for (size_t i = 0; i < page.count; i++) {
            st = check_delay(w, &page.messages[i]);
            worst = st != ST_OK ? st : worst;
        }
        more = page.next.text[0] != '\0' && page.count > 0;
        next = page.next;
        store_batch_release(&page);
    }
    return worst;
}
