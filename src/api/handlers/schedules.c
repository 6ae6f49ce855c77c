/*
 * schedules: the requests on recurring jobs (docs/api.md 31). Declared in handlers.h.
 *
 * A schedule is a message in the queue of schedules of the project
 * (claimd/schedule/definition.h). The scheduler posts for it when it is due
 * (claimd/scheduler/scheduler.h).
 *
 *     1. find_schedule() finds the message by the key "QUEUE/NAME".
 *     2. handle_schedule_set() reads the definition, and store_schedule() posts it in
 *        the place of the one before. If that one changed meanwhile, it begins again.
 *     3. write_schedule() writes the document, with the next due times. It needs memory,
 *        so it comes before the post.
 */
#include "api/caller.h"
#include "api/handlers/handlers.h"
#include "api/response.h"
#include "api/wire/decode.h"
#include "api/wire/message.h"
#include "claimd/base/clock.h"
#include "claimd/json/string.h"
#include "claimd/schedule/definition.h"
#include "claimd/schedule/zones.h"
#include "claimd/seal/seal.h"

/* PAGES_MOST: of other queues, which a list skips before its page ends early. */
enum { NEXT_MOST = 100, TRIES = 8, PAGES_MOST = 32 };

/* A schedule that was found, from the arena. */
struct found {
    struct store_id id; /* of its message */
    bool sealed;
    struct schedule schedule;
    struct schedule_progress progress;
};

static struct store_queue
schedules_of(const struct context *ctx)
{
    return (struct store_queue){ctx->queue.project, bytes_str(SCHEDULES_NAME),
                                STORE_SCHEDULES};
}

static int64_t
wall_now_ms(const struct context *ctx)
{
    return context_shown_ms(ctx, ctx->op.now_ms);
}

/* ------------------------------------------------------------------ finding */

/* The definition in clear. */
static enum status
open_definition(const struct context *ctx, struct bytes body, struct bytes *out)
{
    const struct seal_scope scope = {ctx->queue.project, STORE_SCHEDULES};
    char *to;

    *out = body;
    if (!store_is_sealed(body))
        return ST_OK;
    if (ctx->config->seal == NULL)
        return ST_NO_KEY;
    to = arena_alloc(ctx->req->arena, seal_open_len(body) + 1);
    if (to == NULL)
        return ST_NO_MEMORY;
    *out = bytes_of(to, seal_open_len(body));
    return seal_open(ctx->config->seal, &scope, body, to);
}

static enum status
read_found(const struct context *ctx, const struct store_message *m, struct found *out)
{
    const struct bytes body = arena_copy(ctx->req->arena, m->body);
    struct bytes text = BYTES_NONE;
    enum status st =
        bytes_present(body) ? open_definition(ctx, body, &text) : ST_NO_MEMORY;

    out->id = m->id;
    out->sealed = store_is_sealed(m->body);
    if (st == ST_OK)
        st = schedule_read(text, &out->schedule);
    if (st == ST_OK)
        st = schedule_progress_read(m->details == NULL ? BYTES_NONE : m->details->reason,
                                    &out->progress);
    return st == ST_BAD_VALUE ? ST_DAMAGED : st;
}

/* ST_NOT_FOUND, without an explanation. */
static enum status
find_schedule(struct context *ctx, struct found *out)
{
    const struct store_queue where = schedules_of(ctx);
    struct store_batch batch = STORE_BATCH_INIT;
    char key[SCHEDULE_KEY_CAP];
    enum status st =
        store_message_find(ctx->store, &ctx->op, &where,
                           schedule_key(key, ctx->queue.name, ctx->id), &batch);

    if (st != ST_OK)
        return st;
    st = batch.count == 0 ? ST_NOT_FOUND : read_found(ctx, &batch.messages[0], out);
    store_batch_release(&batch);
    return st;
}

static enum status
refuse_missing(struct context *ctx)
{
    return context_refuse(ctx, ST_NOT_FOUND, "queue %.*s has no schedule \"%s\"",
                          (int)ctx->queue.name.len, ctx->queue.name.data,
                          received(ctx->id).text);
}

/* Checks the name in the path. */
static enum status
check_name(struct context *ctx)
{
    if (ctx->id.len <= SCHEDULE_NAME_MOST && caller_queue_name(ctx->id) == ST_OK)
        return ST_OK;
    return context_refuse(ctx, ST_BAD_VALUE,
                          "the name of the schedule is \"%s\". It must be 1 to %d "
                          "characters from A-Z a-z 0-9 _ - .",
                          received(ctx->id).text, SCHEDULE_NAME_MOST);
}

/* ------------------------------------------------------------------ writing */

/* The zone of a schedule; *out NULL: UTC. */
static enum status
find_zone(const struct context *ctx, const struct schedule *s, struct zone **out,
          struct reason *why)
{
    *out = NULL;
    return s->recurrence.every_s != 0
               ? ST_OK
               : zones_get(ctx->config->zones, bytes_str(s->recurrence.zone),
                           ctx->op.now_ms, out, why);
}

/* Writes up to `count` due times. None if the schedule is paused, or its zone cannot be
 * read now. */
static void
write_next(const struct context *ctx, const struct found *f, size_t count)
{
    struct buf *out = &ctx->res->body;
    const struct schedule *s = &f->schedule;
    const int64_t now_ms = wall_now_ms(ctx);
    struct zone *zone = NULL;
    struct reason why;
    int64_t at_ms = RECURRENCE_NEVER;

    json_write_raw(out, "next", bytes_str("["));
    if (!s->paused && find_zone(ctx, s, &zone, &why) == ST_OK)
        at_ms = schedule_next_ms(s, &f->progress, zone, now_ms);
    for (size_t i = 0; i < count && at_ms != RECURRENCE_NEVER; i++) {
        char text[CLOCK_TEXT_CAP];

        clock_text(at_ms, text);
        buf_printf(out, "%s\"%s\"", i == 0 ? "" : ",", text);
        at_ms = recurrence_next(&s->recurrence, zone, at_ms);
    }
    buf_byte(out, ']');
    zone_unref(zone);
}

/* Writes the latest message, with its id and state if it is still in its queue. */
static enum status
write_last(struct context *ctx, const struct found *f)
{
    const struct store_queue where = {ctx->queue.project, f->schedule.queue, STORE_QUEUE};
    struct store_batch batch = STORE_BATCH_INIT;
    struct buf *out = &ctx->res->body;
    char key[SCHEDULE_KEY_CAP];
    enum status st;

    if (f->progress.posted_ms == 0) {
        json_write_raw(out, "last", bytes_str("null"));
        return ST_OK;
    }
    st = store_message_find(
        ctx->store, &ctx->op, &where,
        schedule_message_key(key, &f->schedule, f->progress.message_ms), &batch);
    if (st != ST_OK)
        return st;
    json_write_raw(out, "last", bytes_str("{"));
    json_write_time(out, "due", f->progress.message_ms);
    json_write_time(out, "posted_at", f->progress.posted_ms);
    if (batch.count > 0) {
        json_write_text(out, "message_id", store_id_bytes(&batch.messages[0].id));
        json_write_text(out, "message_state",
                        bytes_str(message_state(&batch.messages[0])));
    }
    buf_byte(out, '}');
    store_batch_release(&batch);
    return ST_OK;
}

static void
write_message(struct buf *out, const struct schedule *s)
{
    json_write_raw(out, "message", bytes_str("{"));
    json_write_raw(out, "body", s->body);
    if (s->ttl_s != STORE_UNSET)
        json_write_i64(out, "ttl", s->ttl_s);
    if (s->delay_s != STORE_UNSET)
        json_write_i64(out, "delay", s->delay_s);
    buf_byte(out, '}');
}

/* Writes the document of a schedule, with `count` due times. */
static enum status
write_schedule(struct context *ctx, const struct found *f, size_t count)
{
    struct buf *out = &ctx->res->body;
    const struct schedule *s = &f->schedule;
    const struct schedule_progress *p = &f->progress;
    enum status st;
    bool fails;

    buf_byte(out, '{');
    json_write_text(out, "name", s->name);
    json_write_text(out, "queue", s->queue);
    if (s->recurrence.every_s != 0) {
        json_write_i64(out, "every", s->recurrence.every_s);
    } else {
        json_write_text(out, "cron", s->cron);
        json_write_text(out, "timezone", bytes_str(s->recurrence.zone));
    }
    write_message(out, s);
    json_write_text(out, "missed", bytes_str(schedule_missed_names[s->missed]));
    json_write_text(out, "overlap", bytes_str(schedule_overlap_names[s->overlap]));
    json_write_flag(out, "paused", s->paused);
    write_next(ctx, f, count);
    st = write_last(ctx, f);
    json_write_u64(out, "posted", p->posted);
    json_write_u64(out, "missed_count", p->missed);
    json_write_u64(out, "skipped_count", p->skipped);
    json_write_u64(out, "refused_count", p->refused);
    /* A pause, or other due times, end the tries for a due time before. */
    fails = p->error[0] != '\0' && p->failing_ms > s->from_ms && !s->paused;
    json_write_text_or_null(out, "error", fails ? bytes_str(p->error) : BYTES_NONE);
    buf_byte(out, '}');
    return st;
}

/* ------------------------------------------------------------------ reading */

enum { CRON, ZONE, EVERY, MESSAGE, MISSED, OVERLAP, PAUSED, MEMBERS };

static const char *const member_names[MEMBERS] = {
    "cron", "timezone", "every", "message", "missed", "overlap", "paused"};

/* Reads a member that is a string, or left out. */
static enum status
read_text(struct context *ctx, const struct json_scan_value *m, size_t which,
          struct bytes *out)
{
    if (json_left_out(&m[which]))
        return ST_OK;
    if (m[which].kind != SCAN_STRING)
        return context_refuse(ctx, ST_BAD_BODY, "%s is %s. It must be a string",
                              member_names[which], json_received(&m[which]).text);
    return decode_string(&m[which], ctx->req->arena, out);
}

/* Reads one of some words. */
static enum status
read_word(struct context *ctx, const struct json_scan_value *m, size_t which,
          const char *const *words, size_t count, unsigned *out)
{
    struct bytes text = BYTES_NONE;
    struct bytes list = BYTES_NONE;
    enum status st = read_text(ctx, m, which, &text);

    if (st != ST_OK || !bytes_present(text))
        return st;
    for (size_t i = 0; i < count; i++) {
        if (bytes_equal_str(text, words[i])) {
            *out = (unsigned)i;
            return ST_OK;
        }
        list = arena_printf(ctx->req->arena, "%.*s%s\"%s\"", (int)list.len,
                            list.len == 0 ? "" : list.data,
                            i == 0           ? ""
                            : i + 1 == count ? " or "
                                             : ", ",
                            words[i]);
        if (!bytes_present(list))
            return ST_NO_MEMORY;
    }
    return context_refuse(ctx, ST_BAD_VALUE, "%s is \"%s\". It must be %.*s",
                          member_names[which], received(text).text, (int)list.len,
                          list.data);
}

/* Reads cron and timezone, or every. */
static enum status
read_recurrence(struct context *ctx, const struct json_scan_value *m,
                struct schedule *out)
{
    static const struct integer_range range = {1, RECURRENCE_EVERY_MOST, NULL};
    struct bytes zone = BYTES_NONE;
    struct zone *found;
    int64_t every_s = 0;
    enum status st = read_text(ctx, m, CRON, &out->cron);

    if (st == ST_OK)
        st = read_text(ctx, m, ZONE, &zone);
    if (st != ST_OK)
        return st;
    if (json_left_out(&m[EVERY]) == !bytes_present(out->cron))
        return context_refuse(ctx, ST_BAD_VALUE,
                              "the body must have one of the members cron and every");
    if (bytes_present(out->cron)) {
        st = recurrence_of_cron(out->cron, zone, &out->recurrence, ctx->why);
        if (st == ST_OK)
            st = find_zone(ctx, out, &found, ctx->why);
        if (st == ST_OK)
            zone_unref(found);
        return st;
    }
    if (bytes_present(zone))
        return context_refuse(ctx, ST_BAD_VALUE,
                              "timezone has no meaning with every. An interval is the "
                              "same in all time zones");
    st = decode_integer(&m[EVERY], &range, &every_s);
    if (st != ST_OK)
        return integer_refuse(ctx->why, st, "every", &m[EVERY], &range);
    return recurrence_of_interval(every_s, 0, &out->recurrence, ctx->why);
}

/* Names the message in the explanation as the body does, not as the item of a list. */
static enum status
rename_message(struct context *ctx, enum status st, struct bytes explanation)
{
    static const struct bytes item = BYTES_LIT("messages[0]");

    if (!bytes_begin_with(explanation, item))
        return st;
    return context_refuse(ctx, st, "message%.*s", (int)(explanation.len - item.len),
                          explanation.data + item.len);
}

/* Reads the message as a post with one message. */
static enum status
read_message(struct context *ctx, const struct json_scan_value *value,
             struct schedule *out)
{
    struct decoded_post decoded;
    struct bytes post;
    enum status st;

    if (value->kind != SCAN_OBJECT)
        return context_refuse(ctx, ST_BAD_BODY,
                              "message is %s. It must be an object with the member body",
                              json_received(value).text);
    post = arena_printf(ctx->req->arena, "{\"messages\":[%.*s]}", (int)value->text.len,
                        value->text.data);
    if (!bytes_present(post))
        return ST_NO_MEMORY;
    st = decode_post(post, POST_V2, ctx->limits, ctx->req->arena, &decoded, ctx->why);
    if (st != ST_OK)
        return rename_message(ctx, st, bytes_str(ctx->why->text));
    post_warn(ctx, POST_V2, &decoded.unknown);
    out->body = decoded.drafts[0].body;
    out->ttl_s = decoded.drafts[0].ttl_s;
    out->delay_s = decoded.drafts[0].delay_s;
    return ST_OK;
}

static enum status
read_definition(struct context *ctx, struct schedule *out)
{
    struct json_scan_value m[MEMBERS];
    unsigned missed = SCHEDULE_MISSED_LAST, overlap = SCHEDULE_OVERLAP_POST;
    enum status st = context_body_within(ctx, ctx->limits->max_messages_post_size,
                                         "max_messages_post_size");

    *out = (struct schedule){
        .queue = ctx->queue.name, .name = ctx->id, .from_ms = wall_now_ms(ctx)};
    if (st == ST_OK)
        st = context_read_members(ctx, member_names, MEMBERS, m);
    if (st == ST_OK)
        st = read_recurrence(ctx, m, out);
    if (st == ST_OK)
        st = read_message(ctx, &m[MESSAGE], out);
    if (st == ST_OK)
        st = read_word(ctx, m, MISSED, schedule_missed_names,
                       sizeof(schedule_missed_names) / sizeof(*schedule_missed_names),
                       &missed);
    if (st == ST_OK)
        st = read_word(ctx, m, OVERLAP, schedule_overlap_names,
                       sizeof(schedule_overlap_names) / sizeof(*schedule_overlap_names),
                       &overlap);
    if (st == ST_OK)
        st = context_read_flag(ctx, &m[PAUSED], "paused", &out->paused);
    out->missed = (enum schedule_missed)missed;
    out->overlap = (enum schedule_overlap)overlap;
    return st;
}

/* ------------------------------------------------------------------ storing */

static const struct store_metadata no_metadata = {.settings = STORE_SETTINGS_INIT};

/* The settings of the schedule's queue, which may not exist. */
static enum status
read_settings(struct context *ctx, struct store_settings *out)
{
    struct store_queues found = STORE_QUEUES_INIT;
    enum status st = store_queue_get(ctx->store, &ctx->op, &ctx->queue, &found);

    *out = no_metadata.settings;
    if (st == ST_OK)
        *out = found.queues[0].metadata.settings;
    out->dead_letter = BYTES_NONE; /* its text is that of the view */
    store_queues_release(&found);
    return st == ST_NOT_FOUND ? ST_OK : st;
}

/* The queue's settings may change later. Then the post of a due time is refused. */
static enum status
check_delay(struct context *ctx, const struct schedule *s,
            const struct store_settings *set)
{
    const struct store_lifetime server = {ctx->limits->default_message_ttl,
                                          ctx->limits->default_message_delay};
    const struct store_draft draft = {s->body, s->ttl_s, s->delay_s};
    const struct store_post post = {.drafts = &draft, .count = 1};

    if (store_lifetime_is_useful(store_draft_lifetime(&draft, set, server)))
        return ST_OK;
    (void)post_refuse_delay(ctx, &ctx->queue, &post); /* ctx has its explanation */
    return rename_message(ctx, ST_NEVER_READY, ctx->detail);
}

/* Encrypts the definition. */
static enum status
seal_definition(const struct context *ctx, struct bytes *body)
{
    const struct seal_scope scope = {ctx->queue.project, STORE_SCHEDULES};
    const size_t len = body->len + SEAL_OVERHEAD;
    char *to = arena_alloc(ctx->req->arena, len);
    enum status st = to == NULL ? ST_NO_MEMORY
                     : ctx->config->seal == NULL
                         ? ST_NO_KEY
                         : seal_close(ctx->config->seal, &scope, *body, to);

    *body = bytes_of(to, len);
    return st;
}

/* The time of the store at which the schedule is due next. */
static enum status
due_time(struct context *ctx, const struct found *f, int64_t *out)
{
    const int64_t now_ms = wall_now_ms(ctx);
    struct zone *zone;
    enum status st = find_zone(ctx, &f->schedule, &zone, ctx->why);
    int64_t due_ms;

    if (st != ST_OK)
        return st;
    due_ms = schedule_next_ms(&f->schedule, &f->progress, zone, now_ms);
    zone_unref(zone);
    *out = STORE_MS_MOST;
    if (!f->schedule.paused && due_ms != RECURRENCE_NEVER)
        /* A store that blocks uses the wall clock. */
        *out = ctx->store->blocks ? due_ms : due_ms - (now_ms - ctx->op.now_ms);
    return ST_OK;
}

/* Writes the response, which needs memory, before anything changes. */
static enum status
write_response(struct context *ctx, const struct found *f)
{
    enum status st;

    buf_reset(&ctx->res->body, SIZE_MAX);
    st = write_schedule(ctx, f, 1);
    return st == ST_OK && ctx->res->body.failed ? ST_NO_MEMORY : st;
}

/* Writes the response, and posts a schedule in the place of `before` (NULL: there was
 * none). ST_CHANGED: another one is there now. */
static enum status
store_schedule(struct context *ctx, const struct found *f, const struct found *before,
               bool encrypt)
{
    const struct store_queue where = schedules_of(ctx);
    char key[SCHEDULE_KEY_CAP];
    const struct store_unique unique = {.key =
                                            schedule_key(key, ctx->queue.name, ctx->id)};
    struct store_draft draft = {.ttl_s = SCHEDULE_TTL_S, .delay_s = STORE_UNSET};
    struct store_post post = {
        .drafts = &draft, .count = 1, .create_queue = true, .unique = &unique};
    struct store_id id;
    struct buf text;
    enum status st;

    buf_init(&text, ctx->config->mem);
    schedule_write(&text, &f->schedule);
    draft.body = arena_copy(ctx->req->arena, buf_view(&text));
    st = text.failed || !bytes_present(draft.body) ? ST_NO_MEMORY : ST_OK;
    buf_fini(&text);
    if (st == ST_OK && encrypt)
        st = seal_definition(ctx, &draft.body);
    if (st == ST_OK)
        st = due_time(ctx, f, &post.ready_ms);
    if (st == ST_OK)
        st = write_response(ctx, f);
    if (st != ST_OK)
        return st;
    if (before != NULL)
        post.replaces = store_id_bytes(&before->id);
    st = store_message_post(ctx->store, &ctx->op, &where, &post, &id);
    return st == ST_OK && ctx->op.existing ? ST_CHANGED : st;
}

/* A schedule that goes on keeps its progress, and from when its due times count. */
static void
take_over(struct found *f, const struct found *before)
{
    f->progress = before->progress;
    if (recurrence_equal(&f->schedule.recurrence, &before->schedule.recurrence) &&
        before->schedule.paused == f->schedule.paused)
        f->schedule.from_ms = before->schedule.from_ms;
}

static enum status
check_quota(struct context *ctx)
{
    const struct store_queue where = schedules_of(ctx);
    struct store_stats stats;
    enum status st = store_queue_stats(ctx->store, &ctx->op, &where, &stats);

    if (st == ST_NOT_FOUND)
        return ST_OK;
    if (st == ST_OK && stats.total >= (uint64_t)ctx->limits->max_schedules)
        return ST_TOO_MANY_SCHEDULES;
    return st;
}

static enum status
watch(const struct context *ctx)
{
    const struct api_scheduler *s = ctx->config->scheduler;

    return s == NULL ? ST_OK : s->watch(s->arg, ctx->queue.project);
}

/* ------------------------------------------------------------------ requests */

/* Stores a schedule, in the place of the one that is there, if any. ST_CHANGED: that one
 * changed meanwhile. */
static enum status
set_schedule(struct context *ctx, struct found *f, bool encrypt, bool *exists)
{
    struct found before = {.id = {""}};
    bool created;
    enum status st = find_schedule(ctx, &before);

    *exists = st != ST_NOT_FOUND;
    if (st == ST_NOT_FOUND)
        st = check_quota(ctx);
    else if (st == ST_OK)
        take_over(f, &before);
    else if (st == ST_NO_KEY || st == ST_DAMAGED) /* which cannot be read any more */
        st = ST_OK;
    if (st == ST_OK)
        st =
            store_queue_create(ctx->store, &ctx->op, &ctx->queue, &no_metadata, &created);
    return st == ST_OK ? store_schedule(ctx, f, *exists ? &before : NULL, encrypt) : st;
}

/* PUT /claimd/queues/{queue}/schedules/{name} */
enum status
handle_schedule_set(struct context *ctx)
{
    struct found f = {.id = {""}};
    struct store_settings set;
    bool exists = false;
    enum status st = check_name(ctx);

    if (st == ST_OK)
        st = read_definition(ctx, &f.schedule);
    if (st == ST_OK)
        st = read_settings(ctx, &set);
    if (st == ST_OK)
        st = check_delay(ctx, &f.schedule, &set);
    if (st == ST_OK)
        st = watch(ctx);
    if (st != ST_OK)
        return st;
    st = ST_CHANGED;
    for (int i = 0; st == ST_CHANGED && i < TRIES; i++)
        st = set_schedule(ctx, &f, set.encrypt, &exists);
    return st == ST_OK ? response_json(ctx, exists ? 200 : 201) : st;
}

/* GET /claimd/queues/{queue}/schedules/{name} */
enum status
handle_schedule_show(struct context *ctx)
{
    struct found f;
    size_t count = 1;
    enum status st = check_name(ctx);

    if (st == ST_OK)
        st = context_read_limit(ctx, "next", NEXT_MOST, NULL, &count);
    if (st == ST_OK)
        st = find_schedule(ctx, &f);
    if (st == ST_NOT_FOUND)
        return refuse_missing(ctx);
    if (st == ST_OK)
        st = write_schedule(ctx, &f, count);
    return st == ST_OK ? response_json(ctx, 200) : st;
}

/* PATCH /claimd/queues/{queue}/schedules/{name} */
enum status
handle_schedule_pause(struct context *ctx)
{
    static const char *const names[] = {"paused"};
    struct json_scan_value value;
    struct found f, before;
    bool paused = false;
    enum status st = check_name(ctx);

    if (st == ST_OK)
        st = context_read_body(ctx);
    if (st == ST_OK)
        st = context_read_members(ctx, names, 1, &value);
    if (st == ST_OK && json_left_out(&value))
        return context_refuse(ctx, ST_BAD_BODY, "the body must have the member paused");
    if (st == ST_OK)
        st = context_read_flag(ctx, &value, names[0], &paused);
    for (int i = 0; st == ST_OK || (st == ST_CHANGED && i < TRIES); i++) {
        st = find_schedule(ctx, &before);
        if (st == ST_NOT_FOUND)
            return refuse_missing(ctx);
        if (st != ST_OK)
            return st;
        f = before;
        if (paused == before.schedule.paused) {
            st = write_response(ctx, &f);
            break;
        }
        f.schedule.paused = paused;
        f.schedule.from_ms = wall_now_ms(ctx);
        st = store_schedule(ctx, &f, &before, before.sealed);
        if (st == ST_OK)
            break;
    }
    return st == ST_OK ? response_json(ctx, 200) : st;
}

/* DELETE /claimd/queues/{queue}/schedules/{name} */
enum status
handle_schedule_delete(struct context *ctx)
{
    const struct store_queue where = schedules_of(ctx);
    struct store_batch batch = STORE_BATCH_INIT;
    char key[SCHEDULE_KEY_CAP];
    struct bytes id;
    const struct store_delete which = {.rule = STORE_DELETE_ANY, .ids = &id, .count = 1};
    enum status st = check_name(ctx);

    if (st == ST_OK)
        st = store_message_find(ctx->store, &ctx->op, &where,
                                schedule_key(key, ctx->queue.name, ctx->id), &batch);
    if (st != ST_OK)
        return st;
    if (batch.count > 0) {
        id = store_id_bytes(&batch.messages[0].id);
        st = store_message_delete(ctx->store, &ctx->op, &where, &which);
    }
    store_batch_release(&batch);
    return st == ST_OK ? response_empty(ctx, 204) : st;
}

/* Writes the schedules of a page, of the queue in the path if there is one. *shown counts
 * them. */
static enum status
write_page(struct context *ctx, const struct store_batch *page, size_t *shown)
{
    enum status st = ST_OK;

    for (size_t i = 0; st == ST_OK && i < page->count; i++) {
        struct found f;

        st = read_found(ctx, &page->messages[i], &f);
        if (st != ST_OK || (bytes_present(ctx->queue.name) &&
                            !bytes_equal(f.schedule.queue, ctx->queue.name)))
            continue;
        json_write_comma(&ctx->res->body);
        st = write_schedule(ctx, &f, 1);
        ++*shown;
    }
    return st;
}

/* GET /claimd/schedules, /claimd/queues/{queue}/schedules */
enum status
handle_schedule_list(struct context *ctx)
{
    const struct store_queue where = schedules_of(ctx);
    const struct api_limits *l = ctx->limits;
    struct buf *out = &ctx->res->body;
    struct store_filter filter = {.marker = query_get(&ctx->query, "marker"),
                                  .limit = (size_t)l->max_queues_per_page,
                                  .include_claimed = true,
                                  .include_delayed = true};
    struct listing parameters = {
        .parameters = {{"limit", .limit = &filter.limit, .most = l->max_queues_per_page,
                        .option = "max_queues_per_page"}}};
    struct store_batch page = STORE_BATCH_INIT;
    struct store_id next = {""};
    struct bytes path;
    size_t shown = 0, pages = 0;
    enum status st = context_read_listing(ctx, &parameters);

    if (st != ST_OK)
        return st;
    buf_str(out, "{\"schedules\":[");
    do {
        st = store_message_list(ctx->store, &ctx->op, &where, &filter, &page);
        if (st != ST_OK)
            break;
        st = write_page(ctx, &page, &shown);
        next = page.next;
        filter.marker = arena_copy(ctx->req->arena, store_id_bytes(&next));
        store_batch_release(&page);
        page = STORE_BATCH_INIT;
    } while (st == ST_OK && next.text[0] != '\0' && shown == 0 && ++pages < PAGES_MOST);
    if (st != ST_OK)
        return st;
    path = bytes_present(ctx->queue.name)
               ? arena_printf(ctx->req->arena, "%s/queues/%.*s/schedules", ctx->base.data,
                              (int)ctx->queue.name.len, ctx->queue.name.data)
               : arena_printf(ctx->req->arena, "%s/schedules", ctx->base.data);
    if (!bytes_present(path))
        return ST_NO_MEMORY;
    buf_byte(out, ']');
    next_page_write(out, path, &ctx->query, &parameters,
                    next.text[0] == '\0' ? BYTES_NONE : store_id_bytes(&next));
    buf_byte(out, '}');
    return response_json(ctx, 200);
}
