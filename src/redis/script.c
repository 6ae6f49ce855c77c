#include "redis/script.h"

#include "claimd/base/invariant.h"

#include <inttypes.h>
#include <redis_scripts.h> /* made by scripts/cmake/lua.cmake */
#include <stdio.h>

/* ---------------------------------------------------------------------- commands */

void
command_init(struct command_words *c, struct mem *mem)
{
    buf_init(&c->words, mem);
    c->count = 0;
}

void
command_fini(struct command_words *c)
{
    buf_fini(&c->words);
}

void
command_word(struct command_words *c, struct bytes word)
{
    buf_byte(&c->words, '$');
    buf_u64(&c->words, word.len);
    buf_str(&c->words, "\r\n");
    buf_bytes(&c->words, word);
    buf_str(&c->words, "\r\n");
    c->count++;
}

void
command_number(struct command_words *c, int64_t number)
{
    char text[24];
    int len = snprintf(text, sizeof(text), "%" PRId64, number);

    command_word(c, bytes_of(text, (size_t)len));
}

/* ---------------------------------------------------------------------- keys */

static void
key_write_escaped(struct buf *out, struct bytes text)
{
    for (size_t i = 0; i < text.len; i++) {
        const unsigned char c = (unsigned char)text.data[i];

        if (c <= ' ' || c >= 0x7f || strchr("{}/%", c) != NULL)
            buf_printf(out, "%%%02X", c);
        else
            buf_byte(out, (char)c);
    }
}

void
key_of_queue(struct buf *out, const struct store_queue *queue)
{
    static const char *const slashes[STORE_KINDS] = {
        [STORE_QUEUE] = "/", [STORE_TOPIC] = "//", [STORE_SCHEDULES] = "///"};

    buf_str(out, KEY_PREFIX "{");
    key_write_escaped(out, queue->project);
    buf_str(out, slashes[queue->kind]);
    key_write_escaped(out, queue->name);
    buf_str(out, "}:");
}

void
key_of_index(struct buf *out, const struct bytes *project, enum store_kind kind)
{
    static const char *const suffixes[STORE_KINDS] = {
        [STORE_QUEUE] = ":n", [STORE_TOPIC] = ":t", [STORE_SCHEDULES] = ":s"};

    if (project == NULL) {
        buf_str(out, KEY_PREFIX "projects");
    } else {
        buf_str(out, KEY_PREFIX "{");
        key_write_escaped(out, *project);
        buf_str(out, "}");
    }
    buf_str(out, suffixes[kind]);
}

void
key_of_due(struct buf *out, enum due_kind kind, unsigned list_no)
{
    buf_printf(out, KEY_PREFIX "%s:%u", kind == DUE_DELIVERIES ? "due" : "ends", list_no);
}

/* CRC16-CCITT in the variant of XMODEM: polynomial 0x1021, not reflected, initial value
 * 0. */
static uint16_t
crc16(struct bytes text)
{
    uint16_t crc = 0;

    for (size_t i = 0; i < text.len; i++) {
        crc ^= (uint16_t)((uint8_t)text.data[i] << 8);
        for (int bit = 0; bit < 8; bit++)
            crc = (uint16_t)(crc & 0x8000 ? crc << 1 ^ 0x1021 : crc << 1);
    }
    return crc;
}

uint16_t
slot_of(struct bytes key)
{
    const char *open = memchr(key.data, '{', key.len);
    const char *begin = open == NULL ? NULL : open + 1;
    const char *close = NULL;

    if (begin != NULL)
        close = memchr(begin, '}', key.len - (size_t)(begin - key.data));
    if (close != NULL && close > begin)
        key = bytes_of(begin, (size_t)(close - begin));
    return crc16(key) % SLOT_COUNT;
}

/* ----------------------------------------------------------------- heads of messages */

enum {
    POSTED_AT = 0,
    EXPIRES_AT = 8,
    READY_AT = 16,
    COUNT_AT = 32,
    FLAGS_AT = 40,
    CLIENT_AT = 41,
    HEAD_SIZE = 49,
    ID_SIZE = 24
};

enum { FLAG_CHECKSUM = 1, FLAG_ORIGINAL_ID = 2, FLAG_RETURNED = 4 };

bool
message_time_read(struct bytes text, size_t at, int64_t *ms)
{
    static const double MOST = 9007199254740992.0; /* 2^53 */
    double value;                                  /* little-endian, as on this machine */

    if (text.len < sizeof(value) || at > text.len - sizeof(value))
        return false;
    memcpy(&value, text.data + at, sizeof(value));
    if (!(value >= -MOST && value <= MOST)) /* or it is NaN */
        return false;
    *ms = (int64_t)value;
    return true;
}

/* Offsets in details, as the scripts pack them. HAS_KEY is added to the length of the
 * client. HAS_CAUSE is added to that of the origin: the cause and the attempts of a dead
 * letter follow it. A key begins with a byte and its length, and its due time follows if
 * the byte has HAS_DUE. */
enum { RELEASED_AT = 0, DEAD_AT = 8, CLIENT_LEN_AT = 16, ORIGIN_LEN_AT, DETAILS_SIZE };
enum { HAS_KEY = 0x80, HAS_CAUSE = 0x80, KEY_FLAGS_AT = 0, KEY_LEN_AT, KEY_AT };
enum { UNTIL_CLAIMED = 1, HAS_DUE };

/* Takes the key off the beginning of the rest of the details. False: there is none. */
static bool
cut_key(struct bytes *text, struct store_unique *out)
{
    size_t len, end;
    uint8_t flags;

    if (text->len < KEY_AT)
        return false;
    flags = (uint8_t)text->data[KEY_FLAGS_AT];
    len = (uint8_t)text->data[KEY_LEN_AT];
    end = KEY_AT + len;
    if (flags > (UNTIL_CLAIMED | HAS_DUE) || len == 0 || len > STORE_UNIQUE_MAX ||
        text->len < end)
        return false;
    *out = (struct store_unique){.key = bytes_of(text->data + KEY_AT, len),
                                 .until_claimed = (flags & UNTIL_CLAIMED) != 0};
    if ((flags & HAS_DUE) != 0) {
        if (!message_time_read(*text, end, &out->due_ms))
            return false;
        end += sizeof(double);
    }
    *text = bytes_of(text->data + end, text->len - end);
    return true;
}

/* Takes the cause and the attempts off the beginning. False: they are not there. */
static bool
cut_cause(struct bytes *text, struct store_details *out)
{
    const size_t len = 1 + sizeof(out->attempts);

    if (text->len < len || text->data[0] <= STORE_CAUSE_UNKNOWN ||
        text->data[0] >= STORE_CAUSES)
        return false;
    out->cause = (enum store_cause)text->data[0];
    memcpy(&out->attempts, text->data + 1, sizeof(out->attempts));
    *text = bytes_of(text->data + len, text->len - len);
    return true;
}

bool
message_details_read(struct bytes text, struct store_details *out)
{
    struct store_details d = {.released_ms = 0};
    size_t client, origin;
    bool has_key, has_cause;

    if (text.len < DETAILS_SIZE ||
        !message_time_read(text, RELEASED_AT, &d.released_ms) ||
        !message_time_read(text, DEAD_AT, &d.dead_lettered_ms))
        return false;
    client = (uint8_t)text.data[CLIENT_LEN_AT] % HAS_KEY;
    has_key = (uint8_t)text.data[CLIENT_LEN_AT] >= HAS_KEY;
    origin = (uint8_t)text.data[ORIGIN_LEN_AT] % HAS_CAUSE;
    has_cause = (uint8_t)text.data[ORIGIN_LEN_AT] >= HAS_CAUSE;
    if (text.len < DETAILS_SIZE + client + origin)
        return false;
    text = bytes_of(text.data + DETAILS_SIZE, text.len - DETAILS_SIZE);
    if (client > 0)
        d.client = bytes_of(text.data, client);
    if (origin > 0)
        d.origin = bytes_of(text.data + client, origin);
    text = bytes_of(text.data + client + origin, text.len - client - origin);
    if (has_cause && !cut_cause(&text, &d))
        return false;
    if (has_key && !cut_key(&text, &d.unique))
        return false;
    if (d.released_ms != 0)
        d.reason = text;
    *out = d;
    return true;
}

void
message_details_write(struct buf *out, const struct store_details *details)
{
    const double times[] = {(double)details->released_ms,
                            (double)details->dead_lettered_ms};
    const struct store_unique *unique = &details->unique;
    const double due = (double)unique->due_ms;

    const bool caused = details->cause != STORE_CAUSE_UNKNOWN;

    ENSURE(details->client.len < HAS_KEY && details->origin.len < HAS_CAUSE &&
           unique->key.len <= STORE_UNIQUE_MAX);
    buf_add(out, times, sizeof(times)); /* little-endian, as on this machine */
    buf_byte(out, (char)(details->client.len + (unique->key.len > 0 ? HAS_KEY : 0)));
    buf_byte(out, (char)(details->origin.len + (caused ? HAS_CAUSE : 0)));
    buf_bytes(out, details->client);
    buf_bytes(out, details->origin);
    if (caused) {
        buf_byte(out, (char)details->cause);
        buf_add(out, &details->attempts, sizeof(details->attempts));
    }
    if (unique->key.len > 0) {
        buf_byte(out, (char)((unique->until_claimed ? UNTIL_CLAIMED : 0) |
                             (unique->due_ms != 0 ? HAS_DUE : 0)));
        buf_byte(out, (char)unique->key.len);
        buf_bytes(out, unique->key);
        if (unique->due_ms != 0)
            buf_add(out, &due, sizeof(due));
    }
    buf_bytes(out, details->reason);
}

/* Sets *out to the details behind the head, which has this size. False: there must be
 * none, or they are broken. */
static bool __attribute__((noinline)) /* few messages have details */
message_details_split(struct bytes text, size_t size, struct bytes *out)
{
    struct store_details details;
    double posted;

    if (text.len < size)
        return false;
    memcpy(&posted, text.data + POSTED_AT, sizeof(posted));
    *out = bytes_of(text.data + size, text.len - size);
    return posted != (double)(int64_t)posted && message_details_read(*out, &details);
}

bool
message_head_read(struct bytes text, struct message_head *out)
{
    struct message_head head = {.checksum = NULL};
    size_t size = HEAD_SIZE;
    unsigned flags;

    if (text.len < HEAD_SIZE || !message_time_read(text, POSTED_AT, &head.posted_ms) ||
        !message_time_read(text, EXPIRES_AT, &head.expires_ms) ||
        !message_time_read(text, READY_AT, &head.ready_ms))
        return false;
    flags = (unsigned char)text.data[FLAGS_AT];
    memcpy(&head.claim_count, text.data + COUNT_AT, sizeof(head.claim_count));
    memcpy(&head.client, text.data + CLIENT_AT, sizeof(head.client));
    if ((flags & FLAG_CHECKSUM) != 0) {
        head.checksum = (const struct store_checksum *)(text.data + size);
        size += sizeof(struct store_checksum);
    }
    if ((flags & FLAG_ORIGINAL_ID) != 0) {
        head.original_id = bytes_of(text.data + size, ID_SIZE);
        size += ID_SIZE;
    }
    head.returned = (flags & FLAG_RETURNED) != 0;
    if (text.len != size && !message_details_split(text, size, &head.details))
        return false;
    *out = head;
    return true;
}

/* ---------------------------------------------------------------------- responses */

static const int64_t NUMBER_MOST = INT64_C(1) << 53;

bool
shape_integer(const redisReply *word, int64_t *out)
{
    if (word->type == REDIS_REPLY_STRING)
        return bytes_to_i64(bytes_of(word->str, (size_t)word->len), out);
    *out = word->integer;
    return word->type == REDIS_REPLY_INTEGER;
}

static bool
word_is_number(const redisReply *word, int64_t least, int64_t most)
{
    int64_t number;

    return shape_integer(word, &number) && number >= least && number <= most;
}

static bool
word_has_kind(const redisReply *word, char kind)
{
    const struct bytes text = reply_text(word);
    struct message_head head;
    int64_t started_ms, ends_ms;

    switch (kind) {
    case 'i':
        return word_is_number(word, -NUMBER_MOST, NUMBER_MOST);
    case 'n':
        return word_is_number(word, 0, NUMBER_MOST);
    case '2':
        return word_is_number(word, 0, 2);
    case 'k':
        return bytes_present(text) && (text.len == 0 || text.len == ID_SIZE);
    case 'h':
        return bytes_present(text) && message_head_read(text, &head);
    case 'c':
        return bytes_present(text) &&
               (text.len == 0 || (text.len == SHAPE_CLAIM_SIZE &&
                                  message_time_read(text, 0, &started_ms) &&
                                  message_time_read(text, sizeof(double), &ends_ms)));
    default:
        return bytes_present(text);
    }
}

/* True if the words from *at on have these kinds, up to a '|' or the end. *at moves past
 * the words. */
static bool
match_words(const redisReply *r, size_t *at, const char *kinds)
{
    for (; *kinds != '\0' && *kinds != '|'; kinds++, ++*at)
        if (*at == r->elements || !word_has_kind(r->element[*at], *kinds))
            return false;
    return true;
}

/* Matches groups up to the end, or up to an empty text if a second kind of groups
 * follows. */
static bool
match_groups(const redisReply *r, size_t *at, const char *kinds, size_t most)
{
    const bool others = strchr(kinds, '|') != NULL;

    for (size_t i = 0; *at < r->elements; i++) {
        const redisReply *word = r->element[*at];

        if (others && word->type == REDIS_REPLY_STRING && word->len == 0)
            return true;
        if (i == most || *kinds == '\0' || !match_words(r, at, kinds))
            return false;
    }
    return true;
}

bool
shape_check(const redisReply *response, const struct shape *shape, size_t asked)
{
    const char *lead = shape->lead, *others = strchr(shape->group, '|');
    size_t at = 1;

    if (response == NULL || response->type != REDIS_REPLY_ARRAY ||
        response->elements == 0 || response->element[0]->type != REDIS_REPLY_INTEGER ||
        response->element[0]->integer < 0 ||
        response->element[0]->integer >= RESPONSE_STATUSES)
        return false;
    if (response->elements == 1 && response->element[0]->integer != RESPONSE_OK)
        return true;
    while (match_words(response, &at, lead)) {
        lead = strchr(lead, '|');
        if (lead == NULL)
            return match_groups(response, &at, shape->group,
                                shape->most == SHAPE_ASKED ? asked : shape->most) &&
                   (at++ == response->elements ||
                    match_groups(response, &at, others + 1, SIZE_MAX));
        if (at == response->elements)
            return true;
        lead++;
    }
    return false;
}

/* ---------------------------------------------------------------------- scripts */

struct bytes
script_library(void)
{
    return bytes_of(redis_library, sizeof(redis_library));
}

const struct shape *
script_shape(enum script script)
{
    static const struct shape shapes[SCRIPTS] = {
#define SCRIPT_SHAPE(name, lead, group, most) {lead, group, most},
        SCRIPT_LIST(SCRIPT_SHAPE)
#undef SCRIPT_SHAPE
    };

    ENSURE(script < SCRIPTS);
    return &shapes[script];
}

struct bytes
script_function(enum script script)
{
    static const char *const names[SCRIPTS] = {
#define SCRIPT_NAME(name, lead, group, most) redis_function_##name,
        SCRIPT_LIST(SCRIPT_NAME)
#undef SCRIPT_NAME
    };

    ENSURE(script < SCRIPTS);
    return bytes_str(names[script]);
}
