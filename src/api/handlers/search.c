/*
 * search: finds messages of a queue by text, age, state and other filters
 * (docs/api.md 26.5). Declared in handlers.h. A search reads many messages for a page,
 * so it does that in slices.
 */
#include "api/handlers/deliver.h"
#include "api/handlers/handlers.h"
#include "api/response.h"
#include "api/wire/message.h"
#include "api/wire/query.h"
#include "claimd/json/string.h"

enum {
    LIMIT_DEFAULT = 50, /* messages of a page */
    LIMIT_MOST = 200,
    PAGE_BYTES = 128 * 1024, /* a page that has more ends */
    EXAMINED_MOST = 20000,   /* messages of a request */
    EXAMINED_OF_NETWORK =
        2000, /* the same if the claim of each one is a request to Redis */
    BODIES_MOST =
        64 * 1024 * 1024, /* bytes of bodies that a request compares or decrypts */
    A_SLICE = 512,        /* messages */
    BODIES_A_SLICE = 1024 * 1024, /* the same of a slice, about */
    A_CALL = 32,                  /* messages of a call of the store */
    GROUPS_MOST = 100,
    START = 200 /* characters of a body that are shown */
};

/* The parameters. An absent text matches all, an empty one only messages without it. */
struct search {
    size_t limit;
    bool group;
    struct bytes state, id, claim, client, text, reason, origin, marker;
    struct store_claim_info last; /* the last claim that was read */
};

/* Messages with the same reason and origin. */
struct group {
    struct bytes reason, origin, client; /* in `text`; empty: none */
    bool several_clients;
    uint64_t count;
    int64_t oldest_ms;
    struct store_id example;
    char text[STORE_REASON_MAX + STORE_METRICS_NAME + STORE_CLIENT_MAX];
};

/* The progress of a search, which its slices share. */
struct search_progress {
    uint64_t total, searched, found;
    uint64_t bodies;      /* bytes compared or decrypted, about */
    struct store_id next; /* marker behind the last examined message; empty: the head, */
    bool ended;           /* or there is no message behind it */
    uint64_t resume[2];   /* of struct store_batch */
    uint64_t lsn;         /* of all that the page shows */
    struct group *groups; /* space for GROUPS_MOST */
    size_t group_count;
    uint64_t other; /* matches in no group */
    char *text;     /* the response so far, while the request is suspended */
    size_t text_len;
};

/* A message that matches. */
struct match {
    const struct store_message *message;
    struct store_claim_info claim; /* valid if held */
    bool held;
};

/* ------------------------------------------------------------------ parameters */

/* A parameter that may be empty. A query has no empty values (query.h). */
static struct bytes
read_text(const struct context *ctx, const char *name)
{
    struct bytes rest = ctx->req->query, value = query_get(&ctx->query, name);

    while (!bytes_present(value) && bytes_present(rest)) {
        struct bytes pair = bytes_cut(&rest, '&');

        if (bytes_equal_str(bytes_cut(&pair, '='), name))
            value = bytes_str("");
    }
    return value;
}

static enum status
read_search(struct context *ctx, struct search *s)
{
    const struct bytes group = query_get(&ctx->query, "group");

    *s = (struct search){
        .limit = LIMIT_DEFAULT,
        .group = bytes_present(group),
        .state = query_get(&ctx->query, "state"),
        .id = query_get(&ctx->query, "id"),
        .claim = query_get(&ctx->query, "claim"),
        .client = query_get(&ctx->query, "client"),
        .text = query_get(&ctx->query, "text"),
        .reason = read_text(ctx, "reason"),
        .origin = read_text(ctx, "origin"),
        .marker = query_get(&ctx->query, "marker"),
    };
    if (s->group && !bytes_equal_str(group, "reason"))
        return context_refuse(ctx, ST_BAD_PARAMETER,
                              "the parameter group is \"%s\". It must be reason",
                              received(group).text);
    if (bytes_present(s->state) && !bytes_equal_str(s->state, "ready") &&
        !bytes_equal_str(s->state, "delayed") && !bytes_equal_str(s->state, "claimed"))
        return context_refuse(
            ctx, ST_BAD_PARAMETER,
            "the parameter state is \"%s\". It must be ready, delayed or claimed",
            received(s->state).text);
    return context_read_limit(ctx, "limit", LIMIT_MOST, NULL, &s->limit);
}

/* ------------------------------------------------------------------ slices */

static enum status
search_begin(struct context *ctx, const struct search *s, struct search_progress **out)
{
    struct search_progress *p = ctx->progress->kept;
    struct store_stats stats;
    enum status st;

    *out = p;
    if (p != NULL) {
        buf_add(&ctx->res->body, p->text, p->text_len);
        return ST_OK;
    }
    st = store_queue_stats(ctx->store, &ctx->op, &ctx->queue, &stats);
    if (st == ST_NOT_FOUND)
        return context_refuse_queue(ctx);
    if (st != ST_OK)
        return st;
    p = arena_alloc(ctx->req->arena, sizeof(*p));
    if (p == NULL)
        return ST_NO_MEMORY;
    *p = (struct search_progress){.total = stats.total};
    if (s->group) {
        p->groups = arena_array(ctx->req->arena, GROUPS_MOST, sizeof(*p->groups));
        if (p->groups == NULL)
            return ST_NO_MEMORY;
    }
    if (s->marker.len > 0 && s->marker.len < sizeof(p->next.text))
        memcpy(p->next.text, s->marker.data, s->marker.len); /* the rest is 0 */
    ctx->progress->kept = *out = p;
    buf_str(&ctx->res->body, s->group ? "{\"groups\":[" : "{\"messages\":[");
    return ST_OK;
}

/*
 * Ends a slice. The response so far moves to the arena. The space is allocated in the
 * first slice, because only that slice leaves its memory to the next one. An incomplete
 * page is shorter.
 */
static enum status
search_suspend(struct context *ctx, struct search_progress *p)
{
    const struct buf *body = &ctx->res->body;

    if (p->text == NULL)
        p->text = arena_alloc(ctx->req->arena, PAGE_BYTES);
    if (p->text == NULL || body->failed)
        return ST_NO_MEMORY;
    ENSURE(body->len <= PAGE_BYTES);
    memcpy(p->text, body->data, body->len);
    p->text_len = body->len;
    return ST_AGAIN;
}

/* True if the request examines no more messages. */
static bool
search_is_complete(const struct context *ctx, const struct search *s,
                   const struct search_progress *p)
{
    const uint64_t most = ctx->store->blocks && bytes_present(s->client)
                              ? EXAMINED_OF_NETWORK
                              : EXAMINED_MOST;

    return p->ended || p->searched >= most || p->bodies >= BODIES_MOST ||
           ctx->res->body.len >= PAGE_BYTES || (!s->group && p->found >= s->limit);
}

/* ------------------------------------------------------------------ matching */

/*
 * The body, decrypted. Absent: that is not possible. A search must not fail for one
 * damaged message. The caller rewinds the arena.
 */
static enum status
open_body(struct context *ctx, const struct store_message *m, struct bytes *out)
{
    struct store_message copy = *m;
    struct store_batch batch = {.messages = &copy, .count = 1};
    enum status st = decrypt_batch(ctx, &batch, 1);

    *out = st == ST_OK ? copy.body : BYTES_NONE;
    if (st != ST_NO_KEY && st != ST_DAMAGED)
        return st;
    ctx->detail = BYTES_NONE;
    return ST_OK;
}

static enum status
body_contains(struct context *ctx, const struct store_message *m, struct bytes text,
              bool *out)
{
    const struct arena_mark mark = arena_mark(ctx->req->arena);
    struct bytes body;
    enum status st = open_body(ctx, m, &body);

    *out = st == ST_OK && bytes_present(body) && bytes_contain(body, text);
    arena_rewind(ctx->req->arena, mark);
    return st;
}

static bool
is_wanted(struct bytes wanted, struct bytes text)
{
    return !bytes_present(wanted) || bytes_equal(wanted, text);
}

/* Reads the claim of a message, if the search needs it. */
static enum status
match_read_claim(struct context *ctx, struct search *s, struct match *match)
{
    const struct store_message *m = match->message;
    enum status st = ST_OK;

    match->held = false;
    if (m->claim_id.text[0] == '\0' || (s->group && !bytes_present(s->client)))
        return ST_OK;
    match->held = strcmp(s->last.id.text, m->claim_id.text) == 0;
    if (!match->held)
        st = holder_read(ctx, m, &s->last, &match->held);
    if (match->held)
        match->claim = s->last;
    return st;
}

static enum status
match_check(struct context *ctx, struct search *s, struct match *match, bool *matches)
{
    static const struct store_details none;
    const struct store_message *m = match->message;
    const struct store_details *d = m->details == NULL ? &none : m->details;
    enum status st = ST_OK;

    *matches = is_wanted(s->state, bytes_str(message_state(m))) &&
               is_wanted(s->reason, d->reason) && is_wanted(s->origin, d->origin) &&
               is_wanted(s->claim, store_id_bytes(&m->claim_id));
    if (*matches && bytes_present(s->text))
        st = body_contains(ctx, m, s->text, matches);
    if (st == ST_OK && *matches)
        st = match_read_claim(ctx, s, match);
    if (st != ST_OK || !*matches || !bytes_present(s->client))
        return st;
    *matches =
        holder_has(d->client, s->client) ||
        (match->held &&
         holder_has(bytes_of(match->claim.client, match->claim.client_len), s->client));
    return ST_OK;
}

/* Finds up to `most` matches. Returns in *count the messages up to the last of these, or
 * all. */
static enum status
find_matches(struct context *ctx, struct search *s, const struct store_message *messages,
             size_t *count, size_t most, struct match *matches, size_t *found)
{
    enum status st = ST_OK;

    *found = 0;
    for (size_t i = 0; st == ST_OK && i < *count; i++) {
        bool is_match;

        matches[*found].message = &messages[i];
        st = match_check(ctx, s, &matches[*found], &is_match);
        *found += st == ST_OK && is_match;
        if (*found == most)
            *count = i + 1;
    }
    return st;
}

/* ------------------------------------------------------------------ results */

static struct bytes
text_start(struct bytes text)
{
    const unsigned char *const first = (const unsigned char *)text.data;
    const unsigned char *const end = first + text.len, *at = first;

    for (int i = 0; i < START && at != NULL && at < end; i++)
        at = utf8_pass(at, end);
    return at == NULL ? text : bytes_of(text.data, (size_t)(at - first));
}

static enum status
match_write(struct context *ctx, const struct match *match)
{
    const struct arena_mark mark = arena_mark(ctx->req->arena);
    const struct store_message *m = match->message;
    struct buf *out = &ctx->res->body;
    struct bytes body;
    enum status st = open_body(ctx, m, &body);

    if (st == ST_OK) {
        json_write_comma(out);
        buf_byte(out, '{');
        explanation_write_facts(out, m, match->held ? &match->claim : NULL,
                                ctx->op.now_ms, ctx->config->time_base);
        if (!match->held)
            json_write_raw(out, "claim", bytes_str("null"));
        json_write_u64(out, "size",
                       bytes_present(body) ? body.len : seal_open_len(m->body));
        if (bytes_present(body))
            json_write_text(out, "body_start", text_start(body));
        else
            json_write_raw(out, "body_start", bytes_str("null"));
        buf_byte(out, '}');
    }
    arena_rewind(ctx->req->arena, mark);
    return st;
}

static void
group_add(struct search_progress *p, const struct store_message *m)
{
    static const struct store_details none;
    const struct store_details *d = m->details == NULL ? &none : m->details;
    const int64_t ms = d->dead_lettered_ms != 0 ? d->dead_lettered_ms : m->posted_ms;
    struct group *g = p->groups, *const end = p->groups + p->group_count;

    while (g < end &&
           !(bytes_equal(g->reason, d->reason) && bytes_equal(g->origin, d->origin)))
        g++;
    if (g == end) {
        char *at = g->text;

        if (p->group_count == GROUPS_MOST || d->reason.len > STORE_REASON_MAX ||
            d->origin.len > STORE_METRICS_NAME || d->client.len > STORE_CLIENT_MAX) {
            p->other++;
            return;
        }
        p->group_count++;
        g->reason = bytes_copy_to(&at, d->reason);
        g->origin = bytes_copy_to(&at, d->origin);
        g->client = bytes_copy_to(&at, d->client);
        g->several_clients = false;
        g->count = 0;
        g->oldest_ms = ms;
        g->example = m->id;
    }
    g->count++;
    if (!bytes_equal(g->client, d->client))
        g->several_clients = true;
    if (ms < g->oldest_ms)
        g->oldest_ms = ms;
}

static void
write_groups(struct buf *out, const struct search_progress *p,
             const struct clock *time_base)
{
    for (const struct group *g = p->groups; g < p->groups + p->group_count; g++) {
        json_write_comma(out);
        buf_byte(out, '{');
        json_write_text_or_null(out, "reason", g->reason);
        json_write_text_or_null(out, "origin", g->origin);
        json_write_u64(out, "count", g->count);
        holder_write(out, "", g->several_clients ? BYTES_NONE : g->client);
        json_write_flag(out, "several_clients", g->several_clients);
        time_write(out, "oldest_at", g->oldest_ms, time_base);
        json_write_text(out, "example", store_id_bytes(&g->example));
        buf_byte(out, '}');
    }
}

static enum status
add_matches(struct context *ctx, const struct search *s, struct search_progress *p,
            const struct match *matches, size_t found)
{
    enum status st = ST_OK;

    for (size_t i = 0; st == ST_OK && i < found; i++)
        if (s->group)
            group_add(p, matches[i].message);
        else
            st = match_write(ctx, &matches[i]);
    p->found += found;
    return st;
}

/* ------------------------------------------------------------------ reading */

/* Counts examined messages. */
static void
count_examined(const struct search *s, struct search_progress *p,
               const struct store_message *messages, size_t count)
{
    p->searched += count;
    for (size_t i = 0; i < count; i++)
        if (bytes_present(s->text) || store_is_sealed(messages[i].body))
            p->bodies += messages[i].body.len;
}

static size_t
matches_left(const struct search *s, const struct search_progress *p)
{
    return s->group ? SIZE_MAX : s->limit - (size_t)p->found;
}

/* Reads messages behind p->next. */
static enum status
list_messages(struct context *ctx, const struct search *s, struct search_progress *p,
              size_t limit, struct store_batch *batch)
{
    const bool only_ready = bytes_equal_str(s->state, "ready");
    const struct store_filter filter = {
        .marker = p->next.text[0] == '\0' ? BYTES_NONE : store_id_bytes(&p->next),
        .limit = limit,
        .include_claimed = !only_ready,
        .include_delayed = !only_ready};
    enum status st;

    *batch = STORE_BATCH_INIT;
    memcpy(batch->resume, p->resume, sizeof(batch->resume));
    st = store_message_list(ctx->store, &ctx->op, &ctx->queue, &filter, batch);
    if (st == ST_AGAIN)
        memcpy(p->resume, batch->resume, sizeof(p->resume));
    else
        memset(p->resume, 0, sizeof(p->resume));
    return st;
}

/*
 * Examines up to A_CALL messages. If the last match of the page is in the middle, it
 * reads again up to that one, because only the store can make a marker that outlives its
 * message.
 */
static enum status
examine(struct context *ctx, struct search *s, struct search_progress *p,
        struct match *matches)
{
    size_t limit = A_CALL, count, found;
    struct store_batch batch;
    enum status st;

    for (;;) {
        st = list_messages(ctx, s, p, limit, &batch);
        if (st != ST_OK)
            return st;
        count = batch.count;
        st = find_matches(ctx, s, batch.messages, &count, matches_left(s, p), matches,
                          &found);
        if (st != ST_OK || count == batch.count)
            break;
        limit = count;
        store_batch_release(&batch);
    }
    if (st == ST_OK)
        st = add_matches(ctx, s, p, matches, found);
    if (st == ST_OK && count > 0)
        p->next = batch.next;
    p->ended = count == 0;
    count_examined(s, p, batch.messages, count);
    store_batch_release(&batch);
    return st;
}

/* Examines all messages, from the marker on. */
static enum status
search_all(struct context *ctx, struct search *s, struct search_progress *p,
           struct match *matches)
{
    const uint64_t searched = p->searched, bodies = p->bodies;
    struct store_batch batch;
    enum status st = ST_OK;

    while (!search_is_complete(ctx, s, p)) {
        if (p->searched - searched >= A_SLICE || p->bodies - bodies >= BODIES_A_SLICE)
            return ST_AGAIN;
        st = examine(ctx, s, p, matches);
        if (st != ST_OK)
            return st;
    }
    if (p->ended)
        return ST_OK;
    /* A marker at the very end would promise more. */
    st = list_messages(ctx, s, p, 1, &batch);
    p->ended = st == ST_OK && batch.count == 0;
    store_batch_release(&batch);
    return st == ST_AGAIN ? ST_OK : st;
}

/* The place behind the marker, a message of the claim. If it is gone, the first place. */
static size_t
place_behind(const struct store_batch *batch, struct bytes marker)
{
    for (size_t i = 0; i < batch->count; i++)
        if (bytes_equal(store_id_bytes(&batch->messages[i].id), marker))
            return i + 1;
    return 0;
}

/* Examines the message with the id, or the messages of the claim. */
static enum status
search_some(struct context *ctx, struct search *s, struct search_progress *p,
            struct match *matches)
{
    struct store_batch batch = STORE_BATCH_INIT;
    size_t at;
    enum status st =
        bytes_present(s->id)
            ? store_message_get(ctx->store, &ctx->op, &ctx->queue, &s->id, 1, &batch)
            : store_claim_get(ctx->store, &ctx->op, &ctx->queue, s->claim, &batch);

    for (at = place_behind(&batch, s->marker);
         st == ST_OK && at < batch.count && !search_is_complete(ctx, s, p);) {
        size_t count = batch.count - at < A_CALL ? batch.count - at : A_CALL, found;

        st = find_matches(ctx, s, &batch.messages[at], &count, matches_left(s, p),
                          matches, &found);
        if (st == ST_OK)
            st = add_matches(ctx, s, p, matches, found);
        count_examined(s, p, &batch.messages[at], count);
        at += count;
        p->next = batch.messages[at - 1].id;
    }
    p->ended = at >= batch.count;
    store_batch_release(&batch);
    return st == ST_NOT_FOUND ? ST_OK : st;
}

static enum status
search_run(struct context *ctx, struct search *s, struct search_progress *p)
{
    struct match *matches = arena_array(ctx->req->arena, A_CALL, sizeof(*matches));
    enum status st;

    if (matches == NULL)
        return ST_NO_MEMORY;
    if (bytes_present(s->id) || bytes_present(s->claim))
        st = search_some(ctx, s, p, matches);
    else
        st = search_all(ctx, s, p, matches);
    if (ctx->op.lsn > p->lsn)
        p->lsn = ctx->op.lsn;
    return st == ST_AGAIN ? search_suspend(ctx, p) : st;
}

/* GET /claimd/queues/{queue}/messages */
enum status
handle_message_search(struct context *ctx)
{
    struct buf *out = &ctx->res->body;
    struct search_progress *p;
    struct search s;
    enum status st = read_search(ctx, &s);

    if (st == ST_OK)
        st = search_begin(ctx, &s, &p);
    if (st == ST_OK)
        st = search_run(ctx, &s, p);
    if (st != ST_OK)
        return st;
    if (s.group)
        write_groups(out, p, ctx->config->time_base);
    buf_byte(out, ']');
    if (s.group)
        json_write_u64(out, "other", p->other);
    json_write_u64(out, "searched", p->searched);
    json_write_u64(out, "total", p->total);
    json_write_text_or_null(out, "marker",
                            p->ended ? BYTES_NONE : store_id_bytes(&p->next));
    buf_byte(out, '}');
    ctx->op.lsn = p->lsn;
    return response_json(ctx, 200);
}
