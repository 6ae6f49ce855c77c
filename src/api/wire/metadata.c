#include "api/wire/metadata.h"
#include "api/caller.h"
#include "api/wire/decode.h"
#include "api/wire/subscription.h"
#include "claimd/base/plural.h"
#include "claimd/json/scan.h"
#include "claimd/json/string.h"
#include "claimd/json/tree.h"

#include <stdio.h>

/* The members of docs/api.md 7.3; X(name, text). Those up to ENCRYPT show a default. */
#define RESERVED_LIST(X)                                                                 \
    X(POST_SIZE, "_max_messages_post_size")                                              \
    X(TTL, "_default_message_ttl")                                                       \
    X(DELAY, "_default_message_delay")                                                   \
    X(DEAD_LETTER, "_dead_letter_queue")                                                 \
    X(DEAD_LETTER_TTL, "_dead_letter_queue_messages_ttl")                                \
    X(CLAIM_COUNT, "_max_claim_count")                                                   \
    X(ENCRYPT, "_enable_encrypt_messages")                                               \
    X(FLAVOR, "_flavor")                                                                 \
    X(PERSISTENCE, "_persistence")                                                       \
    X(RETRY_POLICY, "_retry_policy")                                                     \
    X(CLAIM_TTL, "_default_claim_ttl")                                                   \
    X(CLAIM_GRACE, "_default_claim_grace")

enum reserved {
#define RESERVED_ENUM(name, text) RESERVED_##name,
    RESERVED_LIST(RESERVED_ENUM)
#undef RESERVED_ENUM
        RESERVED_COUNT
};

#define RESERVED_SHOWN (RESERVED_ENCRYPT + 1)

/* The first of these apply to topics. */
#define RESERVED_SHOWN_TOPIC (RESERVED_DELAY + 1)

static const char *const reserved_names[RESERVED_COUNT] = {
#define RESERVED_NAME(name, text) text,
    RESERVED_LIST(RESERVED_NAME)
#undef RESERVED_NAME
};

bool
metadata_is_reserved(struct bytes name)
{
    for (unsigned i = 0; i < RESERVED_COUNT; i++)
        if (bytes_equal_str(name, reserved_names[i]))
            return true;
    return false;
}

/* The value of a member. NULL if it is absent or null. */
static const json_t *
reserved_value(const json_t *document, enum reserved which)
{
    const json_t *value = json_object_get(document, reserved_names[which]);

    return json_is_null(value) ? NULL : value;
}

/* ------------------------------------------------------------------ checks */

/* Finds the range of a reserved integer. Without a maximum it has no options. False: no
 * integer. */
static bool
find_range(enum reserved which, const struct api_limits *l, struct integer_range *out)
{
    switch (which) {
    case RESERVED_POST_SIZE:
        *out = (struct integer_range){1, l->max_messages_post_size,
                                      "max_messages_post_size"};
        return true;
    case RESERVED_TTL:
    case RESERVED_DEAD_LETTER_TTL:
        *out = (struct integer_range){l->min_message_ttl, l->max_message_ttl,
                                      "min_message_ttl, max_message_ttl"};
        return true;
    case RESERVED_DELAY:
        *out = (struct integer_range){0, l->max_message_delay, "max_message_delay"};
        return true;
    case RESERVED_CLAIM_COUNT:
        *out = (struct integer_range){1, INT64_MAX, NULL};
        return true;
    case RESERVED_CLAIM_TTL:
        *out = (struct integer_range){l->min_claim_ttl, l->max_claim_ttl,
                                      "min_claim_ttl, max_claim_ttl"};
        return true;
    case RESERVED_CLAIM_GRACE:
        *out = (struct integer_range){l->min_claim_grace, l->max_claim_grace,
                                      "min_claim_grace, max_claim_grace"};
        return true;
    default:
        return false;
    }
}

static enum status
check_integer(enum reserved which, const json_t *value, const struct integer_range *range,
              struct reason *why)
{
    if (json_is_integer(value) && json_integer_value(value) >= range->min &&
        json_integer_value(value) <= range->max)
        return ST_OK;
    if (range->options == NULL)
        return reason_give(
            why, ST_BAD_VALUE, "%s is %s. It must be an integer of at least %lld",
            reserved_names[which], json_tree_received(value).text, (long long)range->min);
    return reason_give(why, ST_BAD_VALUE,
                       "%s is %s. It must be an integer between %lld and %lld (%s)",
                       reserved_names[which], json_tree_received(value).text,
                       (long long)range->min, (long long)range->max, range->options);
}

/* True also for the empty name, which means that none is set. */
static bool
is_queue_name(const json_t *value)
{
    return json_is_string(value) &&
           (json_string_length(value) == 0 ||
            caller_queue_name(
                bytes_of(json_string_value(value), json_string_length(value))) == ST_OK);
}

static enum status
check_member(enum reserved which, const json_t *value, const struct api_limits *limits,
             struct reason *why)
{
    struct integer_range range;

    if (find_range(which, limits, &range))
        return check_integer(which, value, &range, why);
    if (which == RESERVED_DEAD_LETTER && !is_queue_name(value))
        return reason_give(
            why, ST_BAD_VALUE,
            "%s is %s. It must be the name of a queue, a string of up to %d "
            "characters from A-Z a-z 0-9 _ - .",
            reserved_names[which], json_tree_received(value).text, CALLER_QUEUE_NAME_MAX);
    if (which == RESERVED_ENCRYPT && !json_is_boolean(value))
        return reason_give(why, ST_BAD_VALUE, "%s is %s. It must be true or false",
                           reserved_names[which], json_tree_received(value).text);
    if (which == RESERVED_PERSISTENCE &&
        !(json_is_string(value) && json_string_length(value) == 6 &&
          strcmp(json_string_value(value), "memory") == 0))
        return reason_give(why, ST_BAD_VALUE, "%s is %s. It must be \"memory\" or absent",
                           reserved_names[which], json_tree_received(value).text);
    if (which == RESERVED_RETRY_POLICY)
        return retry_policy_check(value, why);
    return ST_OK; /* RESERVED_FLAVOR: plain metadata without pooling */
}

/* Checks the reserved members. ST_BAD_VALUE with a reason. */
static enum status
metadata_check(const json_t *document, const struct api_limits *limits,
               struct reason *why)
{
    for (enum reserved i = 0; i < RESERVED_COUNT; i++) {
        const json_t *value = reserved_value(document, i);
        enum status st = value == NULL ? ST_OK : check_member(i, value, limits, why);

        if (st != ST_OK)
            return st;
    }
    return ST_OK;
}

enum status
metadata_check_lifetime(const struct store_settings *set, const struct api_limits *limits,
                        struct reason *why)
{
    const bool own_ttl = set->message_ttl_s != STORE_UNSET;
    const bool own_delay = set->message_delay_s != STORE_UNSET;
    const struct store_draft draft = {.ttl_s = STORE_UNSET, .delay_s = STORE_UNSET};
    const struct store_lifetime life =
        store_draft_lifetime(&draft, set,
                             (struct store_lifetime){limits->default_message_ttl,
                                                     limits->default_message_delay});

    if (store_lifetime_is_useful(life) || (!own_ttl && !own_delay))
        return ST_OK;
    return reason_give(
        why, ST_BAD_VALUE,
        "messages would expire before a worker can claim them. The delay of "
        "%lld second%s (%sdefault_message_delay) is not shorter than the TTL "
        "of %lld second%s (%sdefault_message_ttl)",
        (long long)life.delay_s, plural_s((uint64_t)life.delay_s), own_delay ? "_" : "",
        (long long)life.ttl_s, plural_s((uint64_t)life.ttl_s), own_ttl ? "_" : "");
}

/* ------------------------------------------------------------------ trees */

static int64_t
integer_setting(const json_t *document, enum reserved which)
{
    const json_t *value = reserved_value(document, which);

    return value == NULL ? STORE_UNSET : json_integer_value(value);
}

static enum status
extract_settings(const json_t *document, struct arena *arena, struct store_settings *out)
{
    const json_t *dead_letter = reserved_value(document, RESERVED_DEAD_LETTER);

    *out = (struct store_settings)STORE_SETTINGS_INIT;
    out->max_post_bytes = integer_setting(document, RESERVED_POST_SIZE);
    out->message_ttl_s = integer_setting(document, RESERVED_TTL);
    out->message_delay_s = integer_setting(document, RESERVED_DELAY);
    out->max_claim_count = integer_setting(document, RESERVED_CLAIM_COUNT);
    out->dead_letter_ttl_s = integer_setting(document, RESERVED_DEAD_LETTER_TTL);
    out->claim_ttl_s = integer_setting(document, RESERVED_CLAIM_TTL);
    out->claim_grace_s = integer_setting(document, RESERVED_CLAIM_GRACE);
    out->transient = reserved_value(document, RESERVED_PERSISTENCE) != NULL;
    out->encrypt = json_is_true(reserved_value(document, RESERVED_ENCRYPT));
    if (json_string_length(dead_letter) == 0)
        return ST_OK;
    out->dead_letter = arena_copy(
        arena, bytes_of(json_string_value(dead_letter), json_string_length(dead_letter)));
    return bytes_present(out->dead_letter) ? ST_OK : ST_NO_MEMORY;
}

static enum status
print_document(const json_t *document, struct arena *arena, struct bytes *out)
{
    struct bytes text = BYTES_LIT("");
    struct buf buf;

    buf_init(&buf, arena->mem);
    if (json_object_size(document) > 0) {
        json_tree_write(&buf, document);
        text = buf.failed ? BYTES_NONE : arena_copy(arena, buf_view(&buf));
    }
    buf_fini(&buf);
    if (!bytes_present(text))
        return ST_NO_MEMORY;
    *out = text;
    return ST_OK;
}

/* Prints a checked document and extracts its settings. ST_NO_MEMORY. */
static enum status
metadata_store(const json_t *document, struct arena *arena, struct store_metadata *out)
{
    struct store_metadata made;
    enum status st = extract_settings(document, arena, &made.settings);

    if (st == ST_OK)
        st = print_document(document, arena, &made.json);
    if (st == ST_OK)
        *out = made;
    return st;
}

enum status
metadata_tree(const struct store_metadata *metadata, json_t **out)
{
    json_t *empty;

    if (metadata->json.len > 0)
        return json_tree_read(metadata->json, out);
    empty = json_object();
    if (empty == NULL)
        return ST_NO_MEMORY;
    *out = empty;
    return ST_OK;
}

enum status
metadata_decode(struct bytes body, const struct api_limits *limits, struct arena *arena,
                struct store_metadata *out, struct reason *why)
{
    json_t *document = NULL;
    enum status st;

    if (body.len > (size_t)limits->max_queue_metadata)
        return ST_TOO_LARGE;
    if (body.len == 0) {
        *out = (struct store_metadata){BYTES_NONE, STORE_SETTINGS_INIT};
        return ST_OK;
    }
    st = json_tree_read(body, &document);
    if (st != ST_OK)
        return st == ST_BAD_BODY ? json_tree_refuse(body, why) : st;
    if (json_is_object(document))
        st = metadata_check(document, limits, why);
    else
        st = reason_give(why, ST_BAD_BODY, "the body must be an object");
    if (st == ST_OK)
        st = metadata_store(document, arena, out);
    json_decref(document);
    return st;
}

static enum status
set_member(json_t *document, enum reserved which, json_t *value)
{
    return json_object_set_new(document, reserved_names[which], value) == 0
               ? ST_OK
               : ST_NO_MEMORY;
}

enum status
metadata_keep(struct store_metadata *metadata, const struct store_settings *old,
              struct arena *arena)
{
    bool transient = old->transient && !metadata->settings.transient;
    bool encrypt = old->encrypt && !metadata->settings.encrypt;
    json_t *document = NULL;
    enum status st = ST_OK;

    if (transient || encrypt)
        st = metadata_tree(metadata, &document);
    if (st == ST_OK && transient)
        st = set_member(document, RESERVED_PERSISTENCE, json_string("memory"));
    if (st == ST_OK && encrypt)
        st = set_member(document, RESERVED_ENCRYPT, json_true());
    if (st == ST_OK && document != NULL)
        st = metadata_store(document, arena, metadata);
    json_decref(document);
    metadata->settings.paused = old->paused;
    metadata->settings.paused_by = old->paused_by;
    return st;
}

enum status
metadata_change(const json_t *document, const struct store_metadata *old,
                const struct api_limits *limits, struct arena *arena,
                struct store_metadata *out, struct reason *why)
{
    struct store_metadata made;
    enum status st;

    if (metadata_check(document, limits, why) != ST_OK)
        return ST_BAD_BODY;
    st = metadata_store(document, arena, &made);
    /* A queue of an older version may have such settings. Then other members can be
     * changed. */
    if (st == ST_OK && (made.settings.message_ttl_s != old->settings.message_ttl_s ||
                        made.settings.message_delay_s != old->settings.message_delay_s))
        st = metadata_check_lifetime(&made.settings, limits, why) == ST_OK ? ST_OK
                                                                           : ST_BAD_BODY;
    if (st == ST_OK && made.settings.transient != old->settings.transient)
        st = reason_give(why, ST_BAD_BODY,
                         "_persistence cannot be changed after the queue is created");
    /*
     * max_queue_metadata also limits the result of many patches. Metadata beyond it may
     * only become smaller.
     */
    if (st == ST_OK && made.json.len > (size_t)limits->max_queue_metadata &&
        made.json.len > old->json.len)
        st = reason_give(why, ST_BAD_BODY,
                         "the metadata would be %zu bytes long. The maximum is %lld "
                         "bytes (max_queue_metadata)",
                         made.json.len, (long long)limits->max_queue_metadata);
    made.settings.paused = old->settings.paused;
    made.settings.paused_by = old->settings.paused_by;
    if (st == ST_OK)
        *out = made;
    return st;
}

/* ------------------------------------------------------------------ responses */

static void
write_default(struct buf *out, enum reserved which, const struct api_limits *limits)
{
    switch (which) {
    case RESERVED_POST_SIZE:
        buf_i64(out, limits->max_messages_post_size);
        break;
    case RESERVED_TTL:
        buf_i64(out, limits->default_message_ttl);
        break;
    case RESERVED_DELAY:
        buf_i64(out, limits->default_message_delay);
        break;
    case RESERVED_ENCRYPT:
        buf_str(out, "false");
        break;
    default:
        buf_str(out, "null");
        break;
    }
}

/* True for null, false, 0 and empty values, which mean that a member is not set. */
static bool
is_unset(const struct json_scan_value *value)
{
    static const char *const texts[] = {"null", "false", "0", "0.0", "\"\"", "[]", "{}"};

    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        if (bytes_equal_str(value->text, texts[i]))
            return true;
    return false;
}

enum status
metadata_show(const struct store_metadata *metadata, enum store_kind kind,
              const struct api_limits *limits, struct buf *out)
{
    const enum reserved shown =
        kind == STORE_TOPIC ? RESERVED_SHOWN_TOPIC : RESERVED_SHOWN;
    bool seen[RESERVED_SHOWN + 1] = {false};
    struct json_scan scan;
    struct json_scan_name name;
    struct json_scan_value value;

    buf_byte(out, '{');
    json_scan_begin(&scan, metadata->json);
    if (json_scan_enter(&scan, SCAN_OBJECT)) {
        while (json_scan_member(&scan, &name) && json_scan_value(&scan, &value)) {
            enum reserved which = 0; /* `shown`: a member without a default */

            while (which < shown && !json_scan_name_is(&name, reserved_names[which]))
                which++;
            seen[which] = true;
            json_write_comma(out);
            buf_byte(out, '"');
            buf_bytes(out, name.text);
            buf_str(out, "\":");
            if (which < shown && is_unset(&value))
                write_default(out, which, limits);
            else
                buf_bytes(out, value.text);
        }
    }
    for (enum reserved i = 0; i < shown; i++) {
        if (seen[i])
            continue;
        json_write_name(out, reserved_names[i]);
        write_default(out, i, limits);
    }
    buf_byte(out, '}');
    return out->failed ? ST_NO_MEMORY : ST_OK;
}

void
metadata_plain(const struct store_metadata *metadata, struct buf *out)
{
    static const struct bytes nothing = BYTES_LIT("{}");

    buf_bytes(out, metadata->json.len > 0 ? metadata->json : nothing);
}

/* ------------------------------------------------------------------ warnings */

static void
warn_names(const struct store_metadata *metadata, struct arena *arena,
           struct warnings *out)
{
    struct json_scan scan;
    struct json_scan_name name;

    json_scan_begin(&scan, metadata->json);
    if (!json_scan_enter(&scan, SCAN_OBJECT))
        return;
    while (json_scan_member(&scan, &name) && json_scan_value(&scan, NULL))
        if (name.text.len > 0 && name.text.data[0] == '_' &&
            !metadata_is_reserved(name.text))
            warning_add_unknown(out, arena, "member", name.text, reserved_names,
                                RESERVED_COUNT);
}

void
metadata_warn(const struct store_metadata *metadata, struct bytes queue,
              struct arena *arena, struct warnings *out)
{
    const struct store_settings *set = &metadata->settings;
    const bool dead_letters = bytes_present(set->dead_letter);

    warn_names(metadata, arena, out);
    if (set->max_claim_count != STORE_UNSET && !dead_letters)
        warning_add(out, arena,
                    "_max_claim_count has no effect without _dead_letter_queue");
    else if (dead_letters && set->max_claim_count == STORE_UNSET)
        warning_add(
            out, arena,
            "without _max_claim_count, a message moves to _dead_letter_queue only "
            "if a worker asks for it");
    if (set->dead_letter_ttl_s != STORE_UNSET && !dead_letters)
        warning_add(out, arena,
                    "_dead_letter_queue_messages_ttl has no effect without "
                    "_dead_letter_queue");
    if (dead_letters && bytes_equal(set->dead_letter, queue))
        warning_add(
            out, arena,
            "_dead_letter_queue is the queue itself. A failing message returns to "
            "its end, and never stays");
}

/* The document as a response shows it, as an owned tree. NULL without memory. */
static json_t *
shown_tree(const struct store_metadata *metadata, enum store_kind kind,
           const struct api_limits *limits, struct arena *arena)
{
    json_t *tree = NULL;
    struct buf text;

    buf_init(&text, arena->mem);
    if (metadata_show(metadata, kind, limits, &text) == ST_OK)
        (void)json_tree_read(buf_view(&text), &tree);
    buf_fini(&text);
    return tree;
}

void
metadata_warn_kept(const struct store_metadata *given, const struct store_metadata *kept,
                   enum store_kind kind, const struct api_limits *limits,
                   struct arena *arena, struct warnings *out)
{
    enum { NAMES_MOST = 120 };
    json_t *mine = shown_tree(given, kind, limits, arena);
    json_t *theirs = shown_tree(kept, kind, limits, arena);
    char names[NAMES_MOST + 1] = "";
    struct json_scan scan;
    struct json_scan_name name;
    size_t len = 0;

    json_scan_begin(&scan, given->json);
    if (mine != NULL && theirs != NULL && json_scan_enter(&scan, SCAN_OBJECT))
        while (json_scan_member(&scan, &name) && json_scan_value(&scan, NULL)) {
            const json_t *a, *b;
            struct bytes plain;

            if (decode_name(&name, arena, &plain) != ST_OK)
                break;
            a = json_object_getn(mine, plain.data, plain.len);
            b = json_object_getn(theirs, plain.data, plain.len);
            if (a == NULL || json_equal(a, b))
                continue;
            len += (size_t)snprintf(names + len, sizeof(names) - len, "%s%s",
                                    len == 0 ? "" : ", ", received(name.text).text);
            if (len > NAMES_MOST)
                break;
        }
    if (len > 0)
        warning_add(out, arena,
                    "the %s exists, and PUT does not change it. It keeps its own %s%s. "
                    "PATCH changes them",
                    kind == STORE_TOPIC ? "topic" : "queue", names,
                    len > NAMES_MOST ? "..." : "");
    json_decref(mine);
    json_decref(theirs);
}
