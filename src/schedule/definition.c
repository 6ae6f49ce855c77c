#include "claimd/schedule/definition.h"

#include "claimd/base/invariant.h"
#include "claimd/json/scan.h"
#include "claimd/json/string.h"

#include <inttypes.h>
#include <stdio.h>

const char *const schedule_missed_names[] = {[SCHEDULE_MISSED_LAST] = "last",
                                             [SCHEDULE_MISSED_ALL] = "all",
                                             [SCHEDULE_MISSED_NONE] = "none"};
const char *const schedule_overlap_names[] = {
    [SCHEDULE_OVERLAP_POST] = "post", [SCHEDULE_OVERLAP_SKIP] = "skip"};

/* ------------------------------------------------------------------ the definition */

enum {
    QUEUE,
    NAME,
    CRON,
    ZONE,
    EVERY,
    START,
    MISSED,
    OVERLAP,
    PAUSED,
    FROM,
    TTL,
    DELAY,
    BODY,
    MEMBERS
};

static const char *const member_names[MEMBERS] = {
    [QUEUE] = "queue",   [NAME] = "name",   [CRON] = "cron",     [ZONE] = "zone",
    [EVERY] = "every",   [START] = "start", [MISSED] = "missed", [OVERLAP] = "overlap",
    [PAUSED] = "paused", [FROM] = "from",   [TTL] = "ttl",       [DELAY] = "delay",
    [BODY] = "body"};

void
schedule_write(struct buf *out, const struct schedule *s)
{
    buf_byte(out, '{');
    json_write_text(out, member_names[QUEUE], s->queue);
    json_write_text(out, member_names[NAME], s->name);
    if (s->recurrence.every_s == 0) {
        json_write_text(out, member_names[CRON], s->cron);
        json_write_text(out, member_names[ZONE], bytes_str(s->recurrence.zone));
    } else {
        json_write_i64(out, member_names[EVERY], s->recurrence.every_s);
        json_write_i64(out, member_names[START], s->recurrence.start_s);
    }
    json_write_u64(out, member_names[MISSED], s->missed);
    json_write_u64(out, member_names[OVERLAP], s->overlap);
    json_write_flag(out, member_names[PAUSED], s->paused);
    json_write_i64(out, member_names[FROM], s->from_ms);
    json_write_i64(out, member_names[TTL], s->ttl_s);
    json_write_i64(out, member_names[DELAY], s->delay_s);
    json_write_raw(out, member_names[BODY], s->body);
    buf_byte(out, '}');
}

/* An integer from `least` to `most`. Without the member: 0. */
static bool
read_integer(const struct json_scan_value *value, int64_t least, int64_t most,
             int64_t *out)
{
    *out = 0;
    if (json_left_out(value))
        return true;
    if (value->kind != SCAN_INTEGER)
        return false;
    *out = json_scan_to_i64(value);
    return *out >= least && *out <= most;
}

/* A text without escapes. Without the member: absent. */
static bool
read_text(const struct json_scan_value *value, struct bytes *out)
{
    *out = BYTES_NONE;
    if (json_left_out(value))
        return true;
    *out = json_scan_inside(value);
    return value->kind == SCAN_STRING && memchr(out->data, '\\', out->len) == NULL;
}

static enum status
read_recurrence(const struct json_scan_value *m, struct schedule *out)
{
    int64_t every_s, start_s;
    struct reason why;
    struct bytes zone;

    if (!read_integer(&m[EVERY], 1, RECURRENCE_EVERY_MOST, &every_s) ||
        !read_integer(&m[START], 0, CALENDAR_LAST, &start_s) ||
        !read_text(&m[CRON], &out->cron) || !read_text(&m[ZONE], &zone))
        return ST_BAD_VALUE;
    return every_s != 0 ? recurrence_of_interval(every_s, start_s, &out->recurrence, &why)
                        : recurrence_of_cron(out->cron, zone, &out->recurrence, &why);
}

enum status
schedule_read(struct bytes text, struct schedule *out)
{
    struct json_scan_value m[MEMBERS];
    int64_t missed, overlap;

    *out = (struct schedule){.paused = false};
    if (json_members_read(text, member_names, MEMBERS, m, NULL) != ST_OK ||
        !read_text(&m[QUEUE], &out->queue) || !read_text(&m[NAME], &out->name) ||
        !read_integer(&m[MISSED], 0, SCHEDULE_MISSED_NONE, &missed) ||
        !read_integer(&m[OVERLAP], 0, SCHEDULE_OVERLAP_SKIP, &overlap) ||
        !read_integer(&m[FROM], 0, INT64_MAX, &out->from_ms) ||
        !read_integer(&m[TTL], STORE_UNSET, INT32_MAX, &out->ttl_s) ||
        !read_integer(&m[DELAY], STORE_UNSET, INT32_MAX, &out->delay_s) ||
        m[BODY].kind == SCAN_NONE)
        return ST_BAD_VALUE;
    out->missed = (enum schedule_missed)missed;
    out->overlap = (enum schedule_overlap)overlap;
    out->paused = m[PAUSED].kind == SCAN_TRUE;
    out->body = m[BODY].text;
    if (out->queue.len == 0 || out->queue.len > SCHEDULE_QUEUE_MOST ||
        out->name.len == 0 || out->name.len > SCHEDULE_NAME_MOST)
        return ST_BAD_VALUE;
    return read_recurrence(m, out);
}

/* ------------------------------------------------------------------ the progress */

/* The counters and times, in their order. */
enum {
    LAST,
    POSTED_AT,
    MESSAGE,
    POSTED,
    MISSES,
    SKIPPED,
    REFUSED,
    FAILING,
    TRIES,
    NUMBERS
};

static const char *const number_names[NUMBERS + 1] = {
    [LAST] = "last",       [POSTED_AT] = "posted_at", [MESSAGE] = "message",
    [POSTED] = "posted",   [MISSES] = "missed",       [SKIPPED] = "skipped",
    [REFUSED] = "refused", [FAILING] = "failing",     [TRIES] = "tries",
    [NUMBERS] = "error"};

enum status
schedule_progress_write(struct buf *out, const struct schedule_progress *p)
{
    const int64_t numbers[NUMBERS] = {[LAST] = p->last_ms,
                                      [POSTED_AT] = p->posted_ms,
                                      [MESSAGE] = p->message_ms,
                                      [POSTED] = (int64_t)p->posted,
                                      [MISSES] = (int64_t)p->missed,
                                      [SKIPPED] = (int64_t)p->skipped,
                                      [REFUSED] = (int64_t)p->refused,
                                      [FAILING] = p->failing_ms,
                                      [TRIES] = (int64_t)p->tries};

    buf_byte(out, '{');
    for (size_t i = 0; i < NUMBERS; i++)
        if (numbers[i] != 0)
            json_write_i64(out, number_names[i], numbers[i]);
    if (p->error[0] != '\0')
        json_write_text(out, number_names[NUMBERS], bytes_str(p->error));
    buf_byte(out, '}');
    ENSURE(out->failed || out->len <= STORE_REASON_MAX);
    return out->failed ? ST_NO_MEMORY : ST_OK;
}

enum status
schedule_progress_read(struct bytes text, struct schedule_progress *out)
{
    struct json_scan_value m[NUMBERS + 1];
    int64_t numbers[NUMBERS];
    struct bytes error;

    *out = (struct schedule_progress){.last_ms = 0};
    if (text.len == 0)
        return ST_OK;
    if (json_members_read(text, number_names, NUMBERS + 1, m, NULL) != ST_OK)
        return ST_BAD_VALUE;
    for (size_t i = 0; i < NUMBERS; i++)
        if (!read_integer(&m[i], 0, INT64_MAX, &numbers[i]))
            return ST_BAD_VALUE;
    if (!read_text(&m[NUMBERS], &error) || error.len > SCHEDULE_ERROR_MOST)
        return ST_BAD_VALUE;
    *out = (struct schedule_progress){.last_ms = numbers[LAST],
                                      .posted_ms = numbers[POSTED_AT],
                                      .message_ms = numbers[MESSAGE],
                                      .posted = (uint64_t)numbers[POSTED],
                                      .missed = (uint64_t)numbers[MISSES],
                                      .skipped = (uint64_t)numbers[SKIPPED],
                                      .refused = (uint64_t)numbers[REFUSED],
                                      .failing_ms = numbers[FAILING],
                                      .tries = (uint64_t)numbers[TRIES]};
    if (error.len > 0)
        memcpy(out->error, error.data, error.len);
    return ST_OK;
}

/* ------------------------------------------------------------------ keys */

struct bytes
schedule_key(char to[SCHEDULE_KEY_CAP], struct bytes queue, struct bytes name)
{
    const int len = snprintf(to, SCHEDULE_KEY_CAP, "%.*s/%.*s", (int)queue.len,
                             queue.data, (int)name.len, name.data);

    ENSURE(len > 0 && len < SCHEDULE_KEY_CAP);
    return bytes_of(to, (size_t)len);
}

struct bytes
schedule_message_key(char to[SCHEDULE_KEY_CAP], const struct schedule *s, int64_t due_ms)
{
    char due[24] = "";
    int len;

    if (s->overlap == SCHEDULE_OVERLAP_POST)
        (void)snprintf(due, sizeof(due), "/%" PRId64, due_ms / 1000);
    len = snprintf(to, SCHEDULE_KEY_CAP, SCHEDULE_KEYS "%.*s/%.*s%s", (int)s->queue.len,
                   s->queue.data, (int)s->name.len, s->name.data, due);
    ENSURE(len > 0 && len < SCHEDULE_KEY_CAP);
    return bytes_of(to, (size_t)len);
}

/* ------------------------------------------------------------------ plans */

/* Due times up to this one are done. */
static int64_t
done_until(const struct schedule *s, const struct schedule_progress *p, int64_t now_ms)
{
    const int64_t done_ms = p->last_ms > s->from_ms ? p->last_ms : s->from_ms;

    return done_ms > now_ms + SCHEDULE_AHEAD_MS ? now_ms : done_ms;
}

int64_t
schedule_next_ms(const struct schedule *s, const struct schedule_progress *p,
                 const struct zone *zone, int64_t now_ms)
{
    return recurrence_next(&s->recurrence, zone, done_until(s, p, now_ms));
}

void
schedule_plan(const struct schedule *s, const struct schedule_progress *p,
              const struct zone *zone, int64_t now_ms, struct schedule_plan *out)
{
    const int64_t done_ms = done_until(s, p, now_ms);
    uint64_t count;
    const int64_t latest_ms = recurrence_latest(&s->recurrence, zone, done_ms, now_ms,
                                                SCHEDULE_MISSED_MOST, &count);

    *out = (struct schedule_plan){.last_ms = done_ms};
    if (count > 0) {
        const bool each =
            s->missed == SCHEDULE_MISSED_ALL && count < SCHEDULE_MISSED_MOST;

        out->due_ms = each ? recurrence_next(&s->recurrence, zone, done_ms) : latest_ms;
        out->missed = each ? 0 : count - 1;
        out->last_ms = out->due_ms;
        if (s->missed == SCHEDULE_MISSED_NONE && now_ms - latest_ms > SCHEDULE_LATE_MS) {
            out->due_ms = 0;
            out->missed = count;
        }
    }
    out->next_ms = recurrence_next(&s->recurrence, zone, out->last_ms);
}
