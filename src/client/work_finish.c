#include "client/work_finish.h"

#include "claimd/json/scan.h"
#include "claimd/json/string.h"

/* Pauses between retries, and the part of the lease that is left at the last one. */
enum { PAUSE_MS = 100, PAUSE_MOST_MS = 5000, LAST_RETRY_PART = 12 };

enum { GATHER_MS = 5 };

bool
finish_is_due(const struct work_claim *c, int64_t now_ms, int64_t *next_ms)
{
    bool ended = false;

    for (size_t i = 0; i < c->count && !ended; i++)
        ended = c->jobs[i].state == JOB_ENDED;
    if (!ended || c->finish.handle != NULL)
        return false;
    if (now_ms < c->finish_ms)
        *next_ms = earlier(*next_ms, c->finish_ms);
    return now_ms >= c->finish_ms;
}

void
finish_gather(struct work_claim *c, int64_t now_ms)
{
    size_t ended = 0, running = 0;

    for (size_t i = 0; i < c->count; i++) {
        ended += c->jobs[i].state == JOB_ENDED;
        running += c->jobs[i].state == JOB_RUNNING;
    }
    if (c->pause_ms > 0)
        return; /* a retry is planned */
    if (running == 0)
        c->finish_ms = 0;
    else if (ended == 1)
        c->finish_ms = now_ms + GATHER_MS;
}

static const char *
list_of(enum outcome_kind kind)
{
    return kind == OUTCOME_DELETE        ? "delete"
           : kind == OUTCOME_DEAD_LETTER ? "dead_letter"
                                         : "release";
}

static void
job_write(struct buf *out, const struct work_job *j)
{
    const struct job_outcome *o = &j->outcome;

    json_write_comma(out);
    if (o->kind != OUTCOME_DELETE)
        buf_byte(out, '{');
    if (o->kind != OUTCOME_DELETE)
        json_write_name(out, "id");
    buf_byte(out, '"'); /* the id is written as it came */
    buf_bytes(out, j->id);
    buf_byte(out, '"');
    if (o->kind == OUTCOME_DELETE)
        return;
    if (o->delay_s > 0)
        json_write_i64(out, "delay", o->delay_s);
    if (o->reason[0] != '\0')
        json_write_text(out, "reason", bytes_str(o->reason));
    if (o->kind != OUTCOME_RETRY && o->kind != OUTCOME_DEAD_LETTER)
        json_write_flag(out, "counted", false);
    buf_byte(out, '}');
}

void
finish_write(struct work_claim *c, struct buf *out)
{
    static const char *const lists[] = {"delete", "release", "dead_letter"};

    buf_byte(out, '{');
    json_write_flag(out, "atomic", false);
    for (size_t k = 0; k < sizeof(lists) / sizeof(lists[0]); k++) {
        bool any = false;

        for (size_t i = 0; i < c->count; i++) {
            struct work_job *j = &c->jobs[i];

            if (j->state != JOB_ENDED || strcmp(list_of(j->outcome.kind), lists[k]) != 0)
                continue;
            if (!any) {
                json_write_name(out, lists[k]);
                buf_byte(out, '[');
            }
            any = true;
            job_write(out, j);
            j->state = JOB_FINISHING;
        }
        if (any)
            buf_byte(out, ']');
    }
    buf_byte(out, '}');
}

static struct work_job *
job_find(struct work_claim *c, struct bytes id)
{
    for (size_t i = 0; i < c->count; i++)
        if (c->jobs[i].state == JOB_FINISHING && bytes_equal(c->jobs[i].id, id))
            return &c->jobs[i];
    return NULL;
}

static void
job_done(struct work_job *j, enum finish_result result, finish_fn *done, void *ctx)
{
    j->state = JOB_DONE;
    j->claim->open--;
    done(ctx, j, result);
}

/*
 * A job that the claim does not hold. If an earlier request for it had no response, that
 * request has finished it, unless the lease has ended meanwhile.
 */
static enum finish_result
not_held(const struct work_job *j, int64_t now_ms)
{
    return j->uncertain && !lease_ended(&j->claim->lease, now_ms) ? FINISH_DONE
                                                                  : FINISH_NOT_HELD;
}

void
finish_not_held(struct work_claim *c, int64_t now_ms, finish_fn *done, void *ctx)
{
    for (size_t i = 0; i < c->count; i++)
        if (c->jobs[i].state == JOB_FINISHING)
            job_done(&c->jobs[i], not_held(&c->jobs[i], now_ms), done, ctx);
}

/* Reads one result. *j: its job. False: it is none. */
static bool
result_read(struct work_claim *c, struct bytes text, struct work_job **j,
            enum finish_result *result)
{
    static const char *const names[] = {"id", "result"};
    static const struct {
        const char *name;
        enum finish_result result;
    } results[] = {{"deleted", FINISH_DELETED},
                   {"released", FINISH_RELEASED},
                   {"dead_lettered", FINISH_DEAD_LETTERED},
                   {"not_held", FINISH_NOT_HELD}};
    struct json_scan_value values[2];

    if (json_members_read(text, names, 2, values, NULL) != ST_OK ||
        values[0].kind != SCAN_STRING || values[1].kind != SCAN_STRING)
        return false;
    *j = job_find(c, json_scan_inside(&values[0]));
    for (size_t i = 0; i < sizeof(results) / sizeof(results[0]); i++) {
        if (!bytes_equal_str(json_scan_inside(&values[1]), results[i].name))
            continue;
        *result = results[i].result;
        return *j != NULL;
    }
    return false;
}

bool
finish_read(struct work_claim *c, struct bytes document, int64_t now_ms, finish_fn *done,
            void *ctx)
{
    struct json_scan_value list = json_member(document, "results"), item;
    struct json_scan s;

    json_scan_begin(&s, list.text);
    if (list.kind != SCAN_ARRAY || !json_scan_enter(&s, SCAN_ARRAY))
        return false;
    while (json_scan_item(&s) && json_scan_value(&s, &item)) {
        enum finish_result result;
        struct work_job *j;

        if (!result_read(c, item.text, &j, &result))
            return false;
        job_done(j, result == FINISH_NOT_HELD ? not_held(j, now_ms) : result, done, ctx);
    }
    c->pause_ms = c->finish_ms = 0;
    for (size_t i = 0; i < c->count; i++)
        if (c->jobs[i].state == JOB_FINISHING)
            return false;
    return json_scan_end(&s) == ST_OK;
}

void
finish_retry(struct work_claim *c, int64_t now_ms, int64_t retry_after_ms, bool unknown)
{
    const int64_t latest_ms = lease_end_ms(&c->lease) - c->lease.ttl_ms / LAST_RETRY_PART;
    int64_t due_ms;

    c->pause_ms = c->pause_ms == 0 ? PAUSE_MS : earlier(2 * c->pause_ms, PAUSE_MOST_MS);
    due_ms = now_ms + c->pause_ms;
    if (due_ms < now_ms + retry_after_ms && due_ms < latest_ms)
        due_ms = earlier(now_ms + retry_after_ms, latest_ms);
    c->finish_ms = due_ms;
    for (size_t i = 0; i < c->count; i++) {
        if (c->jobs[i].state != JOB_FINISHING)
            continue;
        c->jobs[i].state = JOB_ENDED;
        c->jobs[i].uncertain |= unknown;
    }
}

size_t
finish_without_dead_letters(struct work_claim *c, const struct work_backoff *backoff,
                            uint32_t random)
{
    size_t count = 0;

    for (size_t i = 0; i < c->count; i++) {
        struct work_job *j = &c->jobs[i];

        if (j->state != JOB_FINISHING || j->outcome.kind != OUTCOME_DEAD_LETTER)
            continue;
        j->outcome.kind = OUTCOME_RETRY;
        j->outcome.delay_s = backoff_s(backoff, j->attempt, random);
        count++;
    }
    return count;
}

void
finish_give_up(struct work_claim *c, finish_fn *done, void *ctx)
{
    for (size_t i = 0; i < c->count; i++)
        if (c->jobs[i].state == JOB_ENDED || c->jobs[i].state == JOB_FINISHING)
            job_done(&c->jobs[i], FINISH_UNKNOWN, done, ctx);
}
