/*
 * views: the views of queues and claims for operators (docs/api.md 26.1 to 26.3).
 * Declared in handlers.h. With an offset, handle_queue_survey() shows a snapshot
 * (snapshot.h). Otherwise it reads the queues in slices, and keeps the best ones for the
 * page. The history comes from the samples in claimd/store/sampler.h. Read snapshot.c
 * next.
 */
#include "api/handlers/handlers.h"
#include "api/response.h"
#include "api/snapshot.h"
#include "api/wire/query.h"
#include "claimd/json/string.h"

#include <inttypes.h>

/* Rows of a page. */
enum { PAGE_DEFAULT = 100, PAGE_MOST = 1000 };

/* ----------------------------------------------------------- the order of the queues */

static const char *const sort_names[QUEUE_SORTS] = {"oldest_ready", "ready", "claimed",
                                                    "name"};

/* The place of a queue in an order: by key, then by project and name. */
struct ranked_place {
    uint64_t key;
    struct bytes project, name;
};

static struct ranked_place
place_of(enum queue_sort sort, const struct store_queue_metrics *row)
{
    const struct store_queue where = store_queue_metrics_address(row);

    return (struct ranked_place){
        queue_sort_key(sort, row->has_oldest, row->posted_ms, &row->here), where.project,
        where.name};
}

static int
compare_places(const struct ranked_place *a, const struct ranked_place *b)
{
    int order = (a->key > b->key) - (a->key < b->key);

    if (order == 0)
        order = bytes_compare(a->project, b->project);
    return order != 0 ? order : bytes_compare(a->name, b->name);
}

enum { KEY_DIGITS = 16 };

/* KEY.PROJECT.NAME, in hexadecimal digits. Absent without memory. */
static struct bytes
marker_write(struct arena *arena, const struct ranked_place *place)
{
    char *text =
        arena_alloc(arena, KEY_DIGITS + 2 * (place->project.len + place->name.len) + 2);
    const struct bytes parts[] = {place->project, place->name};
    char *to = text;

    if (text == NULL)
        return BYTES_NONE;
    hex_write(to, place->key, KEY_DIGITS);
    to += KEY_DIGITS;
    for (size_t i = 0; i < 2; i++) {
        *to++ = '.';
        to = hex_write_bytes(to, parts[i]);
    }
    return bytes_of(text, (size_t)(to - text));
}

/* Decodes digits into the arena. */
static enum status
marker_read_text(struct arena *arena, struct bytes digits, struct bytes *out)
{
    char *text = arena_alloc(arena, digits.len / 2 + 1);

    if (text == NULL)
        return ST_NO_MEMORY;
    if (!bytes_present(digits) || digits.len % 2 != 0 ||
        !hex_read_bytes(digits, text, digits.len / 2))
        return ST_BAD_PARAMETER;
    *out = bytes_of(text, digits.len / 2);
    return ST_OK;
}

static enum status
marker_read(struct arena *arena, struct bytes text, struct ranked_place *out)
{
    const struct bytes key = bytes_cut(&text, '.'), project = bytes_cut(&text, '.');
    enum status st;

    if (key.len != KEY_DIGITS || !hex_read(key, &out->key))
        return ST_BAD_PARAMETER;
    st = marker_read_text(arena, project, &out->project);
    return st == ST_OK ? marker_read_text(arena, text, &out->name) : st;
}

/* ---------------------------------------------------------------- reading the queues */

enum {
    ROWS_A_CALL = 64, /* of the store */
    ROWS_A_SLICE = 512,
    ROWS_MOST_OF_NETWORK = 1000 /* if each row is a request to Redis */
};

/* The parameters of a survey. */
struct survey_parameters {
    struct listing listing;
    size_t limit;
    enum queue_sort sort;
    struct bytes sort_name, project, part; /* part: of the names; absent: any */
    struct bytes offset_text;              /* absent: no offset */
    size_t offset;                         /* rows of the snapshot in front of the page */
    bool has_marker;
    struct ranked_place marker; /* the page begins behind it */
};

/*
 * The progress of a survey, which its slices share. It has the best `limit` rows so far,
 * and reads the queues by project and name.
 */
struct survey_progress {
    struct store_queue_metrics *rows;  /* space for `limit` rows */
    struct store_queue_metrics **best; /* the rows in their order */
    size_t count;
    bool more;  /* there are rows behind the page */
    bool early; /* by name: the page ends where the reading did */
    bool begun; /* after_... is set */
    char after_project[STORE_METRICS_PROJECT], after_name[STORE_METRICS_NAME];
    size_t after_project_len, after_name_len;
    size_t read; /* rows */
    uint64_t total;
};

static enum status
survey_begin(struct context *ctx, const struct survey_parameters *p,
             struct survey_progress **out)
{
    struct survey_progress *s = ctx->progress->kept;

    *out = s;
    if (s != NULL)
        return ST_OK;
    s = arena_alloc(ctx->req->arena, sizeof(*s));
    if (s == NULL)
        return ST_NO_MEMORY;
    *s = (struct survey_progress){
        .rows = arena_array(ctx->req->arena, p->limit, sizeof(*s->rows)),
        .best =
            arena_array(ctx->req->arena, p->limit, sizeof(struct store_queue_metrics *))};
    if (s->rows == NULL || s->best == NULL)
        return ST_NO_MEMORY;
    ctx->progress->kept = *out = s;
    return ST_OK;
}

/* The number of rows in front of this place. */
static size_t
survey_rank(const struct survey_parameters *p, const struct survey_progress *s,
            const struct ranked_place *place)
{
    size_t low = 0, high = s->count;

    while (low < high) {
        const size_t middle = low + (high - low) / 2;
        const struct ranked_place other = place_of(p->sort, s->best[middle]);

        if (compare_places(&other, place) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

/* Adds a row if it belongs to the page, as far as is known. The last one makes space for
 * it. */
static void
survey_add(const struct survey_parameters *p, struct survey_progress *s,
           const struct store_queue_metrics *row)
{
    const struct ranked_place place = place_of(p->sort, row);
    struct store_queue_metrics *space;
    size_t rank;

    if (bytes_present(p->part) && !bytes_contain(place.name, p->part))
        return;
    if (p->has_marker && compare_places(&place, &p->marker) <= 0)
        return;
    rank = survey_rank(p, s, &place);
    if (s->count == p->limit)
        s->more = true;
    if (rank == p->limit)
        return;
    space = s->count == p->limit ? s->best[--s->count] : &s->rows[s->count];
    memmove(&s->best[rank + 1], &s->best[rank],
            (s->count - rank) * sizeof(struct store_queue_metrics *));
    *space = *row;
    s->best[rank] = space;
    s->count++;
}

static void
survey_note_place(struct survey_progress *s, const struct store_queue_metrics *last)
{
    s->begun = true;
    memcpy(s->after_project, last->project, last->project_len);
    memcpy(s->after_name, last->name, last->name_len);
    s->after_project_len = last->project_len;
    s->after_name_len = last->name_len;
}

static struct ranked_place
survey_place(const struct survey_progress *s)
{
    return (struct ranked_place){0, bytes_of(s->after_project, s->after_project_len),
                                 bytes_of(s->after_name, s->after_name_len)};
}

/* Reads queues until the page is known. ST_AGAIN: this slice is used up. */
static enum status
survey_read(struct context *ctx, const struct survey_parameters *p,
            struct survey_progress *s)
{
    const bool by_name = p->sort == SORT_NAME;
    struct store_survey survey = {.project = p->project, .whole = !by_name};
    size_t slice = 0;
    enum status st = ST_OK;

    /* One more than a page tells whether there is another page. */
    survey.limit = by_name && p->limit < ROWS_A_CALL ? p->limit + 1 : ROWS_A_CALL;
    survey.rows = arena_array(ctx->req->arena, survey.limit, sizeof(*survey.rows));
    if (survey.rows == NULL)
        return ST_NO_MEMORY;
    do {
        if (slice >= ROWS_A_SLICE)
            return ST_AGAIN;
        if (s->begun) {
            survey.after_project = survey_place(s).project;
            survey.after_name = survey_place(s).name;
        } else if (by_name && p->has_marker) {
            survey.after_project = p->marker.project;
            survey.after_name = p->marker.name;
        }
        st = store_queue_survey(ctx->store, &ctx->op, &survey);
        for (size_t i = 0; st == ST_OK && i < survey.count; i++)
            if (!survey.rows[i].gone)
                survey_add(p, s, &survey.rows[i]);
        if (st == ST_OK && survey.count > 0)
            survey_note_place(s, &survey.rows[survey.count - 1]);
        slice += survey.count;
        s->read += survey.count;
        s->total = survey.total;
        if (ctx->store->blocks && s->read >= ROWS_MOST_OF_NETWORK) {
            s->early = by_name && survey.more && !s->more;
            break;
        }
    } while (st == ST_OK && survey.more && survey.count > 0 && !(by_name && s->more));
    return st;
}

/* ---------------------------------------------------------------- GET /claimd/queues */

static enum status
read_project(struct context *ctx, struct survey_parameters *p)
{
    if (!bytes_present(ctx->queue.project))
        return ST_OK;
    if (bytes_present(p->project) && !bytes_equal(p->project, ctx->queue.project))
        return context_refuse(ctx, ST_FORBIDDEN,
                              "the request is for the project \"%s\" only",
                              received(ctx->queue.project).text);
    p->project = ctx->queue.project;
    return ST_OK;
}

static enum status
read_offset(struct context *ctx, struct survey_parameters *p)
{
    uint64_t offset;

    if (p->has_marker)
        return context_refuse(ctx, ST_BAD_PARAMETER,
                              "the parameters marker and offset cannot be used together");
    if (!bytes_to_u64(p->offset_text, &offset) || offset > SNAPSHOT_ROWS)
        return context_refuse(ctx, ST_BAD_PARAMETER,
                              "the parameter offset is \"%s\". It must be 0 to %d",
                              received(p->offset_text).text, SNAPSHOT_ROWS);
    p->offset = (size_t)offset;
    return ST_OK;
}

static enum status
read_survey(struct context *ctx, struct survey_parameters *p)
{
    const struct bytes marker = query_get(&ctx->query, "marker");
    enum status st;

    *p = (struct survey_parameters){
        .listing.parameters = {{"limit", .limit = &p->limit, .most = PAGE_MOST},
                               {"sort", .text = &p->sort_name},
                               {"project", .text = &p->project},
                               {"q", .text = &p->part}},
        .limit = PAGE_DEFAULT};
    p->offset_text = query_get(&ctx->query, "offset");
    st = context_read_listing(ctx, &p->listing);
    if (st != ST_OK)
        return st;
    while (bytes_present(p->sort_name) && p->sort < QUEUE_SORTS &&
           !bytes_equal_str(p->sort_name, sort_names[p->sort]))
        p->sort++;
    if (p->sort == QUEUE_SORTS)
        return context_refuse(
            ctx, ST_BAD_PARAMETER,
            "the parameter sort is \"%s\". It must be oldest_ready, ready, "
            "claimed or name",
            received(p->sort_name).text);
    p->has_marker = bytes_present(marker);
    if (p->has_marker)
        st = marker_read(ctx->req->arena, marker, &p->marker);
    if (st == ST_BAD_PARAMETER)
        return context_refuse(
            ctx, st, "the parameter marker must be from a response of this server");
    if (st == ST_OK && bytes_present(p->offset_text))
        st = read_offset(ctx, p);
    return st == ST_OK ? read_project(ctx, p) : st;
}

static void
write_age(struct buf *out, const char *name, bool present, int64_t age_ms)
{
    if (present)
        json_write_i64(out, name, age_ms / 1000);
    else
        json_write_raw(out, name, bytes_str("null"));
}

/* The names of the counters in rates and samples. */
static const char *const counter_names[STORE_QUEUE_COUNTERS] = {
    [STORE_QUEUE_POSTED] = "posted",
    [STORE_QUEUE_DELIVERED] = "delivered",
    [STORE_QUEUE_DELETED] = "deleted",
    [STORE_QUEUE_REQUEUED] = "requeued",
    [STORE_QUEUE_DEAD_LETTERED] = "dead_lettered"};

static void
write_rate(struct buf *out, const char *name, uint64_t thousandths)
{
    json_write_name(out, name);
    buf_printf(out, "%" PRIu64 ".%03u", thousandths / 1000,
               (unsigned)(thousandths % 1000));
}

/* rates: NULL if the queue has no history. */
static void
write_rates(struct buf *out, const struct store_rates *rates)
{
    if (rates == NULL) {
        json_write_raw(out, "rates", bytes_str("null"));
        return;
    }
    json_write_name(out, "rates");
    buf_byte(out, '{');
    for (size_t i = 0; i < STORE_QUEUE_COUNTERS; i++)
        write_rate(out, counter_names[i], rates->counts[i]);
    write_rate(out, "expired", rates->expired);
    buf_byte(out, '}');
}

/* The names of the notices of a queue. */
static void
write_notices(struct buf *out, const struct store_queue_metrics *row,
              const struct store_rates *rates)
{
    const struct notice_facts facts = {.here = &row->here,
                                       .ready_age_ms = row->age_ms,
                                       .claim_age_ms = row->claimed_age_ms,
                                       .waiters = row->waiters,
                                       .paused = row->paused,
                                       .rates = rates};
    uint64_t messages[NOTICES];
    const unsigned found = notices_find(&facts, messages);

    json_write_name(out, "notices");
    buf_byte(out, '[');
    for (unsigned n = 0; n < NOTICES; n++)
        if ((found & 1U << n) != 0) {
            json_write_comma(out);
            buf_printf(out, "\"%s\"", notice_names[n]);
        }
    buf_byte(out, ']');
}

static void
write_row(struct buf *out, const struct store_queue_metrics *row, struct sampler *sampler)
{
    const struct store_queue where = store_queue_metrics_address(row);
    struct store_rates rates;
    const bool rated = sampler != NULL && sampler_rates(sampler, &where, &rates);

    json_write_comma(out);
    buf_byte(out, '{');
    json_write_text(out, "project", where.project);
    json_write_text(out, "name", where.name);
    json_write_u64(out, "ready", row->here.ready);
    json_write_u64(out, "delayed", row->here.delayed);
    json_write_u64(out, "claimed", row->here.claimed);
    write_age(out, "oldest_ready_age", row->has_oldest, row->age_ms);
    write_age(out, "oldest_claim_age", row->here.claims > 0, row->claimed_age_ms);
    json_write_u64(out, "waiters", row->waiters);
    json_write_u64(out, "dead_letters", row->here.dead_letters);
    json_write_u64(out, "unloaded", row->here.unloaded);
    json_write_u64(out, "unloaded_bytes", row->here.unloaded_bytes);
    json_write_text_or_null(out, "dead_letter_queue",
                            bytes_of(row->dead_letter, row->dead_letter_len));
    json_write_name(out, "paused");
    buf_byte(out, '{');
    pause_write(out, row->paused);
    buf_byte(out, '}');
    write_notices(out, row, rated ? &rates : NULL);
    write_rates(out, rated ? &rates : NULL);
    buf_byte(out, '}');
}

static void
write_sums(struct buf *out, const struct store_population *sum)
{
    json_write_name(out, "totals");
    buf_byte(out, '{');
    json_write_u64(out, "ready", sum->ready);
    json_write_u64(out, "delayed", sum->delayed);
    json_write_u64(out, "claimed", sum->claimed);
    json_write_u64(out, "dead_letters", sum->dead_letters);
    buf_byte(out, '}');
}

/* A queue that a notice names, with the ages that its view shows. */
static void
write_noticed(struct buf *out, const struct store_queue_metrics *row, uint64_t messages)
{
    const struct store_queue where = store_queue_metrics_address(row);

    json_write_comma(out);
    buf_byte(out, '{');
    json_write_text(out, "project", where.project);
    json_write_text(out, "name", where.name);
    json_write_u64(out, "messages", messages);
    write_age(out, "oldest_ready_age", row->has_oldest, row->age_ms);
    write_age(out, "oldest_claim_age", row->here.claims > 0, row->claimed_age_ms);
    buf_byte(out, '}');
}

/* The notices of all queues of a selection. row: space for one. */
static void
write_summaries(struct buf *out, const struct snapshot *s,
                const struct notice_summary summaries[NOTICES],
                struct store_queue_metrics *row)
{
    json_write_name(out, "notices");
    buf_byte(out, '[');
    for (size_t n = 0; n < NOTICES; n++) {
        if (summaries[n].queues == 0)
            continue;
        json_write_comma(out);
        buf_printf(out, "{\"notice\":\"%s\"", notice_names[n]);
        json_write_u64(out, "count", summaries[n].queues);
        json_write_u64(out, "messages", summaries[n].messages);
        json_write_name(out, "queues");
        buf_byte(out, '[');
        for (size_t i = 0; i < NOTICE_ROWS && i < summaries[n].queues; i++) {
            snapshot_read(s, summaries[n].first[i].row, row);
            write_noticed(out, row, summaries[n].first[i].messages);
        }
        buf_str(out, "]}");
    }
    buf_byte(out, ']');
}

/*
 * Counts the queues of the request's project, or of all. Over Redis the snapshot has
 * those of all projects. A request for one project must not learn of the others.
 */
static enum status
count_queues(struct context *ctx, const struct survey_parameters *p, struct snapshot *s,
             uint64_t *total, bool *complete)
{
    struct store_survey survey = {.project = p->project}; /* without rows */
    struct snapshot_selection all;
    enum status st;

    *total = snapshot_total(s, complete);
    if (!ctx->store->blocks || !bytes_present(p->project))
        return ST_OK;
    st = store_queue_survey(ctx->store, &ctx->op, &survey);
    if (st == ST_OK)
        st = snapshot_select(s, SORT_NAME, p->project, BYTES_NONE, &all);
    if (st != ST_OK)
        return st;
    *total = survey.total;
    *complete = all.count >= survey.total;
    snapshot_selection_end(s, &all);
    return ST_OK;
}

/* Writes a page of the snapshot that all viewers share. */
static enum status
write_snapshot(struct context *ctx, const struct survey_parameters *p, struct snapshot *s)
{
    struct store_queue_metrics *row = arena_alloc(ctx->req->arena, sizeof(*row));
    struct buf *out = &ctx->res->body;
    struct snapshot_selection rows, all;
    uint64_t total;
    bool complete;
    enum status st = count_queues(ctx, p, s, &total, &complete);

    if (st == ST_OK)
        st = row == NULL ? ST_NO_MEMORY
                         : snapshot_select(s, p->sort, p->project, p->part, &rows);
    if (st != ST_OK)
        return st;
    /* Notices are about all queues, whatever part of the names is wanted. */
    st = snapshot_select(s, p->sort, p->project, BYTES_NONE, &all);
    if (st != ST_OK) {
        snapshot_selection_end(s, &rows);
        return st;
    }
    buf_str(out, "{\"queues\":[");
    for (size_t i = p->offset; i < rows.count && i - p->offset < p->limit; i++) {
        snapshot_read(s, rows.rows[i], row);
        write_row(out, row, ctx->config->sampler);
    }
    buf_str(out, "],\"links\":[]");
    json_write_u64(out, "total", total);
    json_write_u64(out, "matching", rows.count);
    write_sums(out, &rows.sum);
    write_summaries(out, s, all.notices, row);
    json_write_time(out, "as_of", context_shown_ms(ctx, snapshot_ms(s)));
    json_write_flag(out, "complete", complete);
    buf_byte(out, '}');
    snapshot_selection_end(s, &rows);
    snapshot_selection_end(s, &all);
    return response_json(ctx, 200);
}

static enum status
show_snapshot(struct context *ctx, const struct survey_parameters *p)
{
    /* Over Redis each queue of a project takes a request, but all projects have a table
     * in memory. */
    const struct bytes project = ctx->store->blocks ? BYTES_NONE : p->project;
    struct snapshot *s;
    enum status st =
        snapshot_use(ctx->api->snapshots, ctx->store, &ctx->op, context_real_ms(ctx),
                     project, ctx->progress, ctx->req->waiting, &s);

    if (st != ST_OK)
        return st;
    st = write_snapshot(ctx, p, s);
    snapshot_release(s);
    return st;
}

/* GET /claimd/queues */
enum status
handle_queue_survey(struct context *ctx)
{
    struct buf *out = &ctx->res->body;
    const struct bytes path = arena_printf(ctx->req->arena, "%s/queues", ctx->base.data);
    struct bytes marker = BYTES_NONE;
    struct survey_parameters p;
    struct survey_progress *s;
    enum status st = read_survey(ctx, &p);

    if (st == ST_OK && bytes_present(p.offset_text))
        return show_snapshot(ctx, &p);
    if (st == ST_OK)
        st = survey_begin(ctx, &p, &s);
    if (st == ST_OK)
        st = survey_read(ctx, &p, s);
    if (st == ST_OK && !bytes_present(path))
        st = ST_NO_MEMORY;
    if (st != ST_OK)
        return st;
    buf_str(out, "{\"queues\":[");
    for (size_t i = 0; i < s->count; i++)
        write_row(out, s->best[i], ctx->config->sampler);
    buf_byte(out, ']');
    if (s->more || s->early) {
        const struct ranked_place last =
            s->early ? survey_place(s) : place_of(p.sort, s->best[s->count - 1]);

        marker = marker_write(ctx->req->arena, &last);
        if (!bytes_present(marker))
            return ST_NO_MEMORY;
    }
    next_page_write(out, path, &ctx->query, &p.listing, marker);
    json_write_u64(out, "total", s->total);
    buf_byte(out, '}');
    return response_json(ctx, 200);
}

/* ------------------------------------------------------------------ GET .../history */

static void
write_seconds(struct buf *out, const char *name, uint32_t age_s)
{
    write_age(out, name, age_s != UINT32_MAX, (int64_t)age_s * 1000);
}

static void
write_sample(struct context *ctx, const struct store_sample *s)
{
    struct buf *out = &ctx->res->body;

    json_write_comma(out);
    buf_byte(out, '{');
    json_write_time(out, "at", context_shown_ms(ctx, s->at_ms));
    json_write_u64(out, "ready", s->ready);
    json_write_u64(out, "delayed", s->delayed);
    json_write_u64(out, "claimed", s->claimed);
    write_seconds(out, "oldest_ready_age", s->oldest_ready_s);
    write_seconds(out, "oldest_claim_age", s->oldest_claim_s);
    for (size_t i = 0; i < STORE_QUEUE_COUNTERS; i++)
        json_write_u64(out, counter_names[i], s->counts[i]);
    json_write_u64(out, "expired", s->expired);
    buf_byte(out, '}');
}

/* GET /claimd/queues/{queue}/history */
enum status
handle_queue_history(struct context *ctx)
{
    struct buf *out = &ctx->res->body;
    struct store_sample *samples =
        arena_array(ctx->req->arena, SAMPLER_SAMPLES, sizeof(*samples));
    enum status st = ST_NOT_FOUND;
    char now[CLOCK_TEXT_CAP];
    size_t count;

    if (samples == NULL)
        return ST_NO_MEMORY;
    if (ctx->config->sampler != NULL)
        st = sampler_read(ctx->config->sampler, &ctx->queue, samples, &count);
    if (st != ST_OK)
        return context_refuse(
            ctx, st,
            "there is no history of a queue %.*s. The server keeps that of "
            "the queues that /metrics shows (metrics_queues), from 5 "
            "seconds after their creation",
            (int)ctx->queue.name.len, ctx->queue.name.data);
    clock_text(context_shown_ms(ctx, ctx->op.now_ms), now);
    buf_printf(out, "{\"interval\":%d,\"now\":\"%s\",\"samples\":[",
               SAMPLER_INTERVAL_MS / 1000, now);
    for (size_t i = 0; i < count; i++)
        write_sample(ctx, &samples[i]);
    buf_str(out, "]}");
    return response_json(ctx, 200);
}

/* ------------------------------------------------------------------ GET .../claims */

static void
write_claim(struct buf *out, const struct store_claim_info *claim)
{
    json_write_comma(out);
    buf_byte(out, '{');
    json_write_text(out, "id", store_id_bytes(&claim->id));
    holder_write(out, "", bytes_of(claim->client, claim->client_len));
    json_write_u64(out, "number", claim->number);
    json_write_i64(out, "age", claim->age_ms / 1000);
    json_write_i64(out, "ttl_left", claim->left_ms / 1000);
    json_write_u64(out, "messages", claim->messages);
    buf_byte(out, '}');
}

/* GET /claimd/queues/{queue}/claims */
enum status
handle_claim_list(struct context *ctx)
{
    struct store_claim_page page = {.marker = query_get(&ctx->query, "marker"),
                                    .limit = PAGE_DEFAULT};
    const struct listing listing = {
        .parameters = {{"limit", .limit = &page.limit, .most = PAGE_MOST}}};
    const char *path = context_path(ctx, "/claims", BYTES_NONE);
    struct buf *out = &ctx->res->body;
    enum status st = context_read_listing(ctx, &listing);

    if (st != ST_OK)
        return st;
    page.claims = arena_array(ctx->req->arena, page.limit, sizeof(*page.claims));
    if (page.claims == NULL || path == NULL)
        return ST_NO_MEMORY;
    st = store_claim_list(ctx->store, &ctx->op, &ctx->queue, &page);
    if (st == ST_NOT_FOUND)
        return context_refuse_queue(ctx);
    if (st != ST_OK)
        return st;
    buf_str(out, "{\"claims\":[");
    for (size_t i = 0; i < page.count; i++)
        write_claim(out, &page.claims[i]);
    buf_byte(out, ']');
    next_page_write(out, bytes_str(path), &ctx->query, &listing,
                    page.next.text[0] == '\0' ? BYTES_NONE : store_id_bytes(&page.next));
    buf_byte(out, '}');
    return response_json(ctx, 200);
}
