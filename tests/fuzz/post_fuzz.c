/*
 * Posts of messages: the scanner's verdict is jansson's, and a post is taken, refused and
 * taken apart as a naive reader of jansson's tree would.
 *
 * Input: one byte for the form (a digit), then the body.
 */
#include "fuzz/fuzz.h"
#include "fuzz/reference.h"

#include "claimd/json/scan.h"

static void
compare_draft(const struct store_draft *draft, const json_t *message, enum post_form form)
{
    int64_t ttl_s =
        form == POST_V1_1 ? api_limits_default.default_message_ttl : STORE_UNSET;
    int64_t delay_s =
        form == POST_V2 ? reference_integer(message, "delay", STORE_UNSET) : 0;
    json_t *body = json_loadb(draft->body.data, draft->body.len,
                              JSON_DECODE_ANY | JSON_ALLOW_NUL, NULL);

    fuzz_check(json_equal(body, json_object_get(message, "body")) == 1,
               "not the body that was sent: %.*s", (int)draft->body.len,
               draft->body.data);
    fuzz_check(bytes_equal(draft->body, bytes_trim(draft->body)),
               "white space around a body");
    fuzz_check(draft->ttl_s == reference_integer(message, "ttl", ttl_s), "ttl %lld",
               (long long)draft->ttl_s);
    fuzz_check(draft->delay_s == delay_s, "delay %lld", (long long)draft->delay_s);
    json_decref(body);
}

static void
compare(struct bytes body, enum post_form form, struct arena *arena)
{
    bool comparable;
    json_t *tree = reference_tree(body, &comparable);
    struct decoded_post post = {.drafts = NULL};
    struct reason why = {""};
    enum status st = decode_post(body, form, &api_limits_default, arena, &post, &why);
    enum status expected = reference_post(tree, form, &api_limits_default);

    fuzz_check(st == ST_OK || why.text[0] != '\0', "refused without a reason");
    fuzz_check(json_fault(body, &why) == (json_scan_document(body) != ST_OK),
               "a fault in a document, or none in what is not one");
    if (comparable) {
        fuzz_check((json_scan_document(body) == ST_OK) == (tree != NULL),
                   "the scanner and jansson differ");
        fuzz_check(st == expected, "%s instead of %s", status_name(st),
                   status_name(expected));
    }
    if (comparable && st == ST_OK) {
        const json_t *messages = reference_messages(tree, form);

        fuzz_check(post.count == json_array_size(messages), "%zu messages", post.count);
        for (size_t i = 0; i < post.count; i++)
            compare_draft(&post.drafts[i], json_array_get(messages, i), form);
    }
    json_decref(tree);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const enum post_form forms[] = {POST_V2, POST_V1_1, POST_V1};
    struct fuzz_memory m;

    if (size == 0)
        return 0;
    fuzz_memory_open(&m);
    compare(fuzz_input(data + 1, size - 1), forms[data[0] % 3], &m.arena);
    fuzz_memory_close(&m);
    return 0;
}
