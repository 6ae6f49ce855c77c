#include "fuzz/response.h"

#include "claimd/base/hash.h"
#include "fuzz/fuzz.h"

static const int codes[] = {200, 201, 204, 300, 400, 401, 403,
                            404, 405, 406, 409, 413, 415, 422};

static bool
known_code(int code)
{
    for (size_t i = 0; i < sizeof(codes) / sizeof(codes[0]); i++)
        if (codes[i] == code)
            return true;
    return false;
}

/* Nothing in it may end the line early. */
static void
check_header(const struct response_header *h)
{
    fuzz_check(h->value != NULL, "%s is absent", h->name);
    for (const char *at = h->value; *at != '\0'; at++)
        fuzz_check(*at >= 0x20 && *at < 0x7f, "%s has the byte %02x", h->name,
                   (unsigned char)*at);
    if (strcmp(h->name, "Location") == 0)
        fuzz_check(h->value[0] == '/', "Location: %s", h->value);
}

static void
check_code(const struct response *res, unsigned trouble)
{
    bool excused = (res->code == 503 && (trouble & TROUBLE_MEMORY) != 0) ||
                   res->status == ST_KEYS_FULL ||
                   (res->status == ST_UNAVAILABLE && (trouble & TROUBLE_REMOTE) != 0) ||
                   (res->code == 429 && (trouble & TROUBLE_LIMITS) != 0);

    fuzz_check(known_code(res->code) || excused, "responded %d (%s)", res->code,
               status_name(res->status));
}

static bool
is_text(const struct response *res)
{
    return res->code == 200 && res->route != NULL &&
           (strcmp(res->route, "/metrics") == 0 || strcmp(res->route, "/livez") == 0 ||
            strcmp(res->route, "/readyz") == 0 ||
            strcmp(res->route, "/claimd/dump") == 0 ||
            strcmp(res->route, "/claimd/state") == 0);
}

void
response_check(const struct response *res, unsigned trouble)
{
    bool starved = (trouble & TROUBLE_MEMORY) != 0;
    bool typed = false;

    check_code(res, trouble);
    fuzz_check(res->header_count <= RESPONSE_HEADERS_MAX, "%zu headers",
               res->header_count);
    fuzz_check(response_head_size(res) <= RESPONSE_HEAD_MAX, "a head of %zu bytes",
               response_head_size(res));
    for (size_t i = 0; i < res->header_count; i++) {
        check_header(&res->headers[i]);
        typed = typed || strcmp(res->headers[i].name, "Content-Type") == 0;
    }
    fuzz_check(!res->body.failed || starved, "a lost response");
    if (res->body.failed)
        return;
    fuzz_check(typed == (res->body.len > 0), "%d with %zu bytes %s type", res->code,
               res->body.len, typed ? "and a" : "without a");
    if (res->body.len > 0 && !is_text(res))
        fuzz_expect_json(buf_view(&res->body));
}

/* ---------------------------------------------------------------------- the store */

static void
digest_bytes(uint64_t *digest, struct bytes text)
{
    for (size_t i = 0; i < text.len; i++)
        *digest = hash_mix(*digest + (unsigned char)text.data[i] + 1);
    *digest = hash_mix(*digest);
}

static void
digest_number(uint64_t *digest, uint64_t number)
{
    *digest = hash_mix(hash_mix(*digest) + number);
}

static void
digest_messages(uint64_t *digest, struct store *store, int64_t now_ms,
                const struct store_queue *queue)
{
    const struct store_filter all = {
        .limit = 1000, .include_claimed = true, .include_delayed = true};
    struct store_batch batch = STORE_BATCH_INIT;

    fuzz_check(store_message_list(store, STORE_AT(now_ms), queue, &all, &batch) == ST_OK,
               "a listing failed");
    for (size_t i = 0; i < batch.count; i++) {
        const struct store_message *m = &batch.messages[i];

        digest_bytes(digest, store_id_bytes(&m->id));
        digest_bytes(digest, store_id_bytes(&m->claim_id));
        digest_bytes(digest, m->body);
        digest_number(digest, (uint64_t)m->ttl_s);
        digest_number(digest, m->claim_count);
    }
    store_batch_release(&batch);
}

static void
digest_subscriptions(uint64_t *digest, struct store *store, int64_t now_ms,
                     const struct store_queue *queue)
{
    struct store_subscriptions page = STORE_SUBSCRIPTIONS_INIT;

    fuzz_check(store_subscription_list(store, STORE_AT(now_ms), queue, BYTES_NONE, 1000,
                                       &page) == ST_OK,
               "a listing failed");
    for (size_t i = 0; i < page.count; i++) {
        const struct store_subscription *s = &page.views[i];

        digest_bytes(digest, store_id_bytes(&s->id));
        digest_bytes(digest, s->subscriber);
        digest_bytes(digest, s->options);
        digest_number(digest, (uint64_t)s->ttl_s);
        digest_number(digest, (uint64_t)s->age_s);
        digest_number(digest, s->confirmed);
        digest_number(digest, s->progress.behind);
    }
    store_subscriptions_release(&page);
}

static void
digest_queue(struct state *state, struct store *store, int64_t now_ms,
             const struct store_page *page, const struct store_queue_view *view)
{
    const struct store_queue queue = {
        .project = page->project, .name = view->name, .kind = page->kind};

    digest_bytes(&state->digest, view->name);
    digest_bytes(&state->digest, view->metadata.json);
    digest_messages(&state->digest, store, now_ms, &queue);
    digest_subscriptions(&state->digest, store, now_ms, &queue);
    if (bytes_present(view->metadata.settings.dead_letter))
        state->dead_letters = true;
}

static void
digest_kind(struct state *state, struct store *store, int64_t now_ms,
            struct bytes project, enum store_kind kind)
{
    const struct store_page page = {.project = project,
                                    .kind = kind,
                                    .marker = BYTES_NONE,
                                    .limit = 100,
                                    .with_metadata = true};
    struct store_queues queues = STORE_QUEUES_INIT;

    fuzz_check(store_queue_list(store, STORE_AT(now_ms), &page, &queues) == ST_OK,
               "a listing failed");
    for (size_t i = 0; i < queues.count; i++)
        digest_queue(state, store, now_ms, &page, &queues.queues[i]);
    store_queues_release(&queues);
}

struct state
state_of(struct store *store, int64_t now_ms, struct bytes project)
{
    struct state state = {0, false};

    if (!bytes_present(project))
        project = bytes_str("");
    digest_kind(&state, store, now_ms, project, STORE_QUEUE);
    digest_kind(&state, store, now_ms, project, STORE_TOPIC);
    return state;
}
