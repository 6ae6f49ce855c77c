/*
 * Queue metadata and patches of it. metadata_decode() must accept each accepted document
 * again, with the same meaning. A patch must not make a document larger than the limit. A
 * refused patch must change nothing.
 *
 * Input: sections old metadata, patch.
 */
#include "fuzz/fuzz.h"

#include "api/wire/patch.h"
#include "api/wire/query.h"

/* A small limit, so that inputs of ordinary size reach it. */
enum { METADATA_MAX = 600 };

static void
expect_same_settings(const struct store_settings *a, const struct store_settings *b)
{
    fuzz_check(
        a->max_post_bytes == b->max_post_bytes && a->message_ttl_s == b->message_ttl_s &&
            a->message_delay_s == b->message_delay_s &&
            a->claim_ttl_s == b->claim_ttl_s && a->claim_grace_s == b->claim_grace_s &&
            a->max_claim_count == b->max_claim_count &&
            a->dead_letter_ttl_s == b->dead_letter_ttl_s &&
            bytes_equal(a->dead_letter, b->dead_letter),
        "the document means something else when it is read again");
}

/* Checks that stored metadata can be written as JSON, and decodes to the same
 * settings. */
static void
check_stored(const struct store_metadata *stored, struct fuzz_memory *m)
{
    struct api_limits wide = api_limits_default;
    struct store_metadata again;
    struct reason why;

    wide.max_queue_metadata = INT32_MAX;
    if (stored->json.len > 0) {
        fuzz_expect_json(stored->json);
        fuzz_check(metadata_decode(stored->json, &wide, &m->arena, &again, &why) == ST_OK,
                   "stored, but refused the second time: %.*s", (int)stored->json.len,
                   stored->json.data);
        fuzz_check(bytes_equal(stored->json, again.json), "%.*s became %.*s",
                   (int)stored->json.len, stored->json.data, (int)again.json.len,
                   again.json.data);
        expect_same_settings(&stored->settings, &again.settings);
    }
    buf_reset(&m->out, SIZE_MAX);
    fuzz_check(metadata_show(stored, STORE_QUEUE, &wide, &m->out) == ST_OK,
               "cannot be shown");
    fuzz_expect_json(buf_view(&m->out));
}

static void
apply(const struct store_metadata *old, const struct patch *patch,
      const struct api_limits *limits, struct fuzz_memory *m)
{
    struct store_metadata made = {BYTES_NONE, STORE_SETTINGS_INIT};
    struct reason why = {""};
    enum status st = patch_apply(patch, old, limits, &m->arena, &made, &why);

    if (st != ST_OK) {
        fuzz_check(st == ST_CONFLICT || st == ST_BAD_BODY, "%s", status_name(st));
        fuzz_check(!bytes_present(made.json), "refused, but written");
        fuzz_check(why.text[0] != '\0', "refused without a reason");
        return;
    }
    check_stored(&made, m);
    fuzz_check(made.json.len <= METADATA_MAX || made.json.len <= old->json.len,
               "grown to %zu bytes", made.json.len);
    if (patch->count == 0)
        expect_same_settings(&made.settings, &old->settings);
}

static bool
any_name(struct bytes name)
{
    (void)name;
    return true;
}

/* Matches stored metadata against the filters of a listing, which must not crash. */
static void
check_filters(const struct store_metadata *metadata, struct fuzz_memory *m)
{
    struct query query;
    struct filters filters;

    fuzz_check(query_parse(bytes_str("color=red&%22=1"), &m->arena, &query) == ST_OK &&
                   filters_make(&query, any_name, &m->arena, &filters) == ST_OK,
               "no memory");
    (void)filters_match(&filters, metadata->json);
}

static void
run(struct bytes old_text, struct bytes patch_text, struct fuzz_memory *m)
{
    struct api_limits limits = api_limits_default;
    struct store_metadata old;
    struct patch patch = {.document = NULL};
    struct reason why;

    limits.max_queue_metadata = METADATA_MAX;
    if (metadata_decode(old_text, &limits, &m->arena, &old, &why) != ST_OK)
        old = (struct store_metadata){BYTES_NONE, STORE_SETTINGS_INIT};
    check_stored(&old, m);
    check_filters(&old, m);
    if (patch_read(patch_text, &limits, &m->arena, &patch, &why) == ST_OK)
        apply(&old, &patch, &limits, m);
    patch_fini(&patch);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct bytes rest = fuzz_input(data, size);
    struct bytes old = fuzz_copy(fuzz_section(&rest)), patch = fuzz_copy(rest);
    struct fuzz_memory m;

    fuzz_memory_open(&m);
    run(old, patch, &m);
    fuzz_memory_close(&m);
    fuzz_free(old);
    fuzz_free(patch);
    return 0;
}
