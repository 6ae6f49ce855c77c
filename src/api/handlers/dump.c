/* Dumps: all that the store has, as lines of JSON, out and in (docs/api.md 24). */
#include "claimd/api/dump.h"
#include "api/handlers/handlers.h"
#include "api/state.h"

#include <inttypes.h>

/* Bytes of a page, and a little more. */
enum { DUMP_PAGE = 256 * 1024 };

/* GET /claimd/dump */
enum status
handle_dump(struct context *ctx)
{
    struct bytes marker = query_get(&ctx->query, "marker");
    struct buf *out = &ctx->res->body;
    struct dump dump = {.begun = false};
    enum status st;

    if (bytes_present(marker) && !dump_read_marker(marker, &dump))
        return context_refuse(
            ctx, ST_BAD_PARAMETER,
            "the parameter marker must be from a response of this server");
    st = dump_lines(ctx->store, &ctx->visit, query_get(&ctx->query, "project"), DUMP_PAGE,
                    &dump, out);
    if (st != ST_OK)
        return st;
    if (dump.done) {
        buf_str(out, "{\"end\":true}\n");
    } else {
        buf_str(out, "{\"next\":\"");
        dump_write_marker(&dump, out);
        buf_str(out, "\"}\n");
    }
    answer_header(ctx, "Content-Type", "application/jsonl");
    ctx->res->code = 200;
    return ST_OK;
}

/* ------------------------------------------------------------------ load */

/* The lines of a body, and what they have. */
struct loading {
    struct context *ctx;
    struct state_line *lines; /* from the arena */
    size_t *numbers;          /* in the body, from 1 on */
    size_t count;
    struct store_image image; /* of the piece that is being collected */
    struct store_queue where;
    bool replace;
    uint64_t queues, messages, subscriptions;
};

static size_t
count_lines(struct bytes text)
{
    size_t count = 1;

    for (size_t i = 0; i < text.len; i++)
        count += text.data[i] == '\n';
    return count;
}

static enum status
check_record(struct dump_check *check, const struct state_line *line, struct reason *why)
{
    return dump_check_record(check,
                             line->what == STATE_HEAD  ? DUMP_HEAD
                             : line->what == STATE_END ? DUMP_END
                                                       : DUMP_CONTENT,
                             line->announced, why);
}

/* Reads all lines: whatever is wrong with any is reported before anything is loaded. */
static enum status
read_lines(struct loading *l)
{
    struct context *ctx = l->ctx;
    struct bytes rest = ctx->req->body;
    struct dump_check check = {0};
    struct reason why;
    struct state_decoder decoder = {ctx->limits, ctx->mem, ctx->req->arena,
                                    ctx->visit.now_ms, &why};

    for (size_t number = 1; bytes_present(rest); number++) {
        struct bytes line = bytes_trim(bytes_cut(&rest, '\n'));
        enum status st;

        if (line.len == 0)
            continue;
        reason_init(&why);
        st = decode_state_line(&decoder, line, &l->lines[l->count]);
        if (st == ST_OK)
            st = check_record(&check, &l->lines[l->count], &why);
        if (st == ST_BAD_BODY || st == ST_BAD_VALUE)
            return context_refuse(ctx, st, "line %zu: %s", number, why.text);
        if (st != ST_OK)
            return st;
        l->numbers[l->count++] = number;
    }
    if (dump_check_complete(&check, &why) != ST_OK)
        return context_explain(ctx, ST_BAD_VALUE, &why);
    return ST_OK;
}

/* The place of a line's claim in the piece. */
static size_t
find_claim(struct store_image *image, const struct store_image_claim *claim)
{
    for (size_t i = image->claim_count; i > 0; i--)
        if (strcmp(image->claims[i - 1].id.text, claim->id.text) == 0)
            return i;
    image->claims[image->claim_count++] = *claim;
    return image->claim_count;
}

static void
collect(struct loading *l, const struct state_line *line)
{
    struct store_image *image = &l->image;

    l->where = line->where;
    if (line->what == STATE_QUEUE) {
        image->first = true;
        image->metadata = line->metadata;
    } else if (line->what == STATE_MESSAGE) {
        struct store_image_message *m = &image->messages[image->message_count++];

        *m = line->message;
        if (m->claim > 0)
            m->claim = find_claim(image, &line->claim);
    } else {
        image->subscriptions[image->subscription_count++] = line->subscription;
    }
}

/* May the line join the piece? */
static bool
joins(const struct loading *l, const struct state_line *line)
{
    const struct store_image *image = &l->image;

    if (!image->first && image->message_count + image->subscription_count == 0)
        return true;
    if (!store_queue_equal(&l->where, &line->where) || line->what == STATE_QUEUE)
        return false;
    return line->what == STATE_SUBSCRIPTION || image->subscription_count == 0;
}

/* Loads the piece, and begins another one. */
static enum status
load_piece(struct loading *l)
{
    struct store_image *image = &l->image;
    struct context *ctx = l->ctx;
    enum status st = ST_OK;

    if (!image->first && image->message_count + image->subscription_count == 0)
        return ST_OK;
    if (image->first && l->replace)
        st = store_queue_delete(ctx->store, &ctx->visit, &l->where);
    if (st == ST_OK)
        st = store_queue_load(ctx->store, &ctx->visit, &l->where, image);
    if (st != ST_OK)
        return st;
    l->queues += image->first;
    l->messages += image->message_count;
    l->subscriptions += image->subscription_count;
    image->first = false;
    image->claim_count = image->message_count = image->subscription_count = 0;
    return ST_OK;
}

static enum status
refuse_piece(struct loading *l, enum status st, size_t first, size_t last)
{
    const char *what = status_text(st);

    if (st == ST_CONFLICT)
        what = l->image.first
                   ? "it already exists. To overwrite it, send replace=true"
                   : "it already has an item with one of these ids or subscribers";
    if (st == ST_NOT_FOUND)
        what = "it does not exist, and no earlier line creates it";
    return context_refuse(
        l->ctx, st == ST_NOT_FOUND ? ST_CONFLICT : state_refusal(st),
        "lines %zu to %zu, of %s \"%.*s\": %s. The lines before are loaded", first, last,
        l->where.kind == STORE_TOPIC ? "topic" : "queue", (int)l->where.name.len,
        l->where.name.data, what);
}

static enum status
load_lines(struct loading *l)
{
    enum status st = ST_OK;
    size_t first = 0;

    for (size_t i = 0; st == ST_OK && i <= l->count; i++) {
        const struct state_line *line = &l->lines[i];
        const bool end = i == l->count;

        if (!end && (line->what == STATE_HEAD || line->what == STATE_END))
            continue;
        if (end || !joins(l, line)) {
            st = load_piece(l);
            if (st != ST_OK)
                return refuse_piece(l, st, l->numbers[first], l->numbers[i - 1]);
            first = i;
        }
        if (!end)
            collect(l, line);
    }
    return st;
}

static enum status
make_room(struct loading *l)
{
    struct arena *arena = l->ctx->req->arena;
    size_t most = count_lines(l->ctx->req->body);

    l->lines = arena_array(arena, most + 1, sizeof(*l->lines));
    l->numbers = arena_array(arena, most + 1, sizeof(*l->numbers));
    l->image.claims = arena_array(arena, most, sizeof(*l->image.claims));
    l->image.messages = arena_array(arena, most, sizeof(*l->image.messages));
    l->image.subscriptions = arena_array(arena, most, sizeof(*l->image.subscriptions));
    return l->lines == NULL || l->numbers == NULL || l->image.claims == NULL ||
                   l->image.messages == NULL || l->image.subscriptions == NULL
               ? ST_NO_MEMORY
               : ST_OK;
}

/* POST /claimd/load */
enum status
handle_load(struct context *ctx)
{
    struct loading l = {.ctx = ctx};
    enum status st = context_read_bool(ctx, "replace", &l.replace);

    if (ctx->req->body_too_large)
        return context_refuse(ctx, ST_TOO_LONG,
                              "the body is too large. Send fewer lines at a time");
    if (ctx->req->body.len == 0)
        return context_refuse(ctx, ST_BAD_BODY, "a body is required");
    if (st == ST_OK)
        st = make_room(&l);
    if (st == ST_OK)
        st = read_lines(&l);
    if (st == ST_OK)
        st = load_lines(&l);
    if (st != ST_OK)
        return st;
    buf_printf(&ctx->res->body,
               "{\"queues\":%" PRIu64 ",\"messages\":%" PRIu64
               ",\"subscriptions\":%" PRIu64 "}",
               l.queues, l.messages, l.subscriptions);
    return answer_json(ctx, 200);
}
