/*
 * script: the Lua scripts of src/redis/scripts, the keys that they use, the words that they get and the
 * responses that they give. They are built in as functions of one library
 * (redis.io/docs/interact/programmability/functions-intro), one for each operation.
 */
#ifndef REDIS_SCRIPT_H
#define REDIS_SCRIPT_H

#include "claimd/base/buf.h"
#include "claimd/base/bytes.h"
#include "claimd/store/types.h"

#include <hiredis/hiredis.h>
#include <stdbool.h>
#include <stdint.h>

/* ---------------------------------------------------------------------- keys */

enum { SLOT_COUNT = 16384 };

/* The slot of a key in a Redis Cluster: of the text between the first { and the next }, if there is any,
 * else of the whole key (Redis Cluster specification, "Key distribution model"). O(length). */
uint16_t slot_of(struct bytes key);

/*
 * The keys of a queue are in one slot:
 *
 *     claimd:1:{PROJECT/NAME}:X      of a queue; {PROJECT//NAME} of a topic
 *     claimd:1:{PROJECT}:n           the names of a project's queues; :t of its topics
 *     claimd:1:projects:n            the projects that have had queues; :t topics
 *     claimd:1:due:K                 queues with subscriptions (subscription_ops.h)
 *
 * 1 is the version of the layout. In projects and names { } / % and all but printing ASCII
 * characters stand as %XX.
 */
#define KEY_PREFIX "claimd:1:"

/* Behind that of a queue: the channel that announces its changes. */
#define KEY_CHANNEL "w"

/* Up to the colon: "claimd:1:{p/q}:". If there is no memory, out->failed. */
void key_of_queue(struct buf *out, const struct store_queue *queue);

/* The whole key. */
void key_of_index(struct buf *out, const struct bytes *project,
                  enum store_kind kind); /* NULL: of projects */
void key_of_due(struct buf *out, unsigned part);

/* ---------------------------------------------------------------------- words */

/* Words of a command as Redis reads them (RESP, redis.io/docs/reference/protocol-spec), one after the
 * other. O(bytes). If there is no memory, words.failed. */
struct command {
    struct buf words;
    size_t count;
};

void command_init(struct command *c, struct mem *mem);
void command_fini(struct command *c);

void command_word(struct command *c, struct bytes word);
void command_number(struct command *c, int64_t number);

/* ---------------------------------------------------------------------- responses */

/* The head of a message, which the scripts keep beside its body, as they pack it (lib/queue.lua):
 * little-endian, no gaps. */
struct message_head {
    int64_t posted_ms, expires_ms;
    int64_t ready_ms; /* when its delay is over; 0: it has none, or it is over */
    uint32_t claim_count;
    uint64_t client;
    const struct store_checksum *checksum; /* in the text; NULL: none */
    struct bytes id;                       /* that it came with; absent: none */
};

/* A time that Lua has packed as a double. False: the text is too short, or it is no time. */
bool message_time_read(struct bytes text, size_t at, int64_t *ms)
    __attribute__((warn_unused_result));

/* False: it is none; then *out is as it was. */
bool message_head_read(struct bytes text, struct message_head *out)
    __attribute__((warn_unused_result));

/*
 * The shape of the response of a script. A response is a list: a status (enum script_answer), the lead, and groups of words. With a status
 * other than OK it may be the status alone. Each word has a kind:
 *
 *     i  a whole number of 2^53 at most, either sign; also as a text
 *     n  the same, not negative
 *     2  the same, 2 at most
 *     t  a text
 *     k  an id of 24 bytes, or an empty text
 *     h  the head of a message
 *     c  a claim as queue_image.lua packs it, or an empty text
 *
 * The bounds of numbers are those of Lua, and they are such that sums and differences of two fit an
 * int64_t.
 */

/* The statuses of responses, as lib/queue.lua has them. */
enum script_answer {
    ANSWER_OK,
    ANSWER_AGAIN,
    ANSWER_NOT_FOUND,
    ANSWER_CHANGED,
    ANSWER_CLAIMED,
    ANSWER_NOT_CLAIMED,
    ANSWER_NO_ROOM,
    ANSWER_TOO_LARGE,
    ANSWER_NOT_SEALED,
    ANSWER_SEALED,
    ANSWER_CONFLICT,
    ANSWER_FEED,  /* it needs S and U, */
    ANSWER_FENCE, /* or F: lib/queue.lua */
    ANSWER_SETTLE /* as ANSWER_AGAIN, and queue_settle must be called before */
};

enum { SHAPE_CLAIM_SIZE = 40 }; /* of the kind c */

/* The request says how many groups there may be. Or any number of them: the reader takes what room it
 * needs from the response. */
#define SHAPE_ASKED (SIZE_MAX - 1)
#define SHAPE_ANY   SIZE_MAX

struct shape {
    const char *lead; /* kinds of its words; it may end at a '|' */
    const char *
        group; /* kinds of the words of a group; behind a '|': of those that follow, behind an
                          empty text */
    size_t most; /* groups of the first kind, SHAPE_ASKED or SHAPE_ANY */
};

/* Does the response have this shape? `asked`: groups, for SHAPE_ASKED. O(words). */
bool shape_check(const redisReply *response, const struct shape *shape, size_t asked);

/* The text that a word is; absent: it is none, or NULL. */
static inline struct bytes
reply_text(const redisReply *word)
{
    return word != NULL && word->type == REDIS_REPLY_STRING
               ? bytes_of(word->str, (size_t)word->len)
               : BYTES_NONE;
}

/* A word of a list, likewise; NULL: there is none. */
static inline redisReply *
reply_word(const redisReply *list, size_t i)
{
    return list != NULL && list->type == REDIS_REPLY_ARRAY && i < list->elements
               ? list->element[i]
               : NULL;
}

/* The whole number that a word is. False: it is none. */
bool shape_integer(const redisReply *word, int64_t *out);

/* ---------------------------------------------------------------------- scripts */

/* Each script, and the shape of its response: the lead, the words of a group, and how many groups there
 * are at most. */
#define SCRIPT_LIST(X)                                                                   \
    X(queue_create, "ntn", "", 0)                                                        \
    X(queue_get, "ntiiiiitii", "", 0)                                                    \
    X(queue_update, "", "", 0)                                                           \
    X(queue_delete, "|t", "tt", 64)                                                      \
    X(queue_purge, "", "", 0)                                                            \
    X(queue_stats, "ntnn", "nh", 2)                                                      \
    X(queue_listed, "n", "", 0)                                                          \
    X(queue_figures, "nnnnnnnnnniinnn", "", 0)                                           \
    X(queue_audit, "|t", "", 0)                                                          \
    X(queue_settle, "", "", 0)                                                           \
    X(queue_ready, "nnn", "", 0)                                                         \
    X(queue_image, "ntn|tiiiiitii", "nhtc", 256)                                         \
    X(queue_load, "t", "", 0)                                                            \
    X(index_page, "n", "t", SHAPE_ASKED)                                                 \
    X(index_add, "", "", 0)                                                              \
    X(index_remove, "", "", 0)                                                           \
    X(message_post, "tnnn", "", 0)                                                       \
    X(message_list, "ntn", "nhtk", SHAPE_ASKED)                                          \
    X(message_get, "nt", "nhtk", SHAPE_ASKED)                                            \
    X(message_delete, "|n", "in", SHAPE_ASKED)                                           \
    X(message_pop, "n|t", "nhtk", SHAPE_ASKED)                                           \
    X(claim_create, "ntnn", "nhtk|tt", SHAPE_ASKED)                                      \
    X(claim_get, "ntnnii", "nhtk", SHAPE_ANY)                                            \
    X(claim_renew, "nn", "", 0)                                                          \
    X(claim_release, "n", "", 0)                                                         \
    X(dead_letter_post, "nt", "", 0)                                                     \
    X(transfer_forget, "", "", 0)                                                        \
    X(outbox_done, "", "", 0)                                                            \
    X(subscription_create, "tnknn", "", 0)                                               \
    X(subscription_get, "n", "nkttiinnnnnnnnnni", 1)                                     \
    X(subscription_list, "n", "nkttiinnnnnnnnnni", SHAPE_ASKED)                          \
    X(subscription_update, "i", "", 0)                                                   \
    X(subscription_confirm, "i", "", 0)                                                  \
    X(subscription_delete, "", "", 0)                                                    \
    X(delivery_lease, "nit", "knn2ttinntnn", SHAPE_ASKED)                                \
    X(delivery_done, "i", "", 0)                                                         \
    X(delivery_keep, "", "", 0)                                                          \
    X(due_enter, "", "", 0)                                                              \
    X(due_take, "nn|ti", "", 0)                                                          \
    X(due_set, "", "", 0)

enum script {
#define SCRIPT_ENUM(name, lead, group, most) SCRIPT_##name,
    SCRIPT_LIST(SCRIPT_ENUM)
#undef SCRIPT_ENUM
        SCRIPTS
};

/* The library, for FUNCTION LOAD. Its name and those of its functions say which version it is. */
struct bytes script_library(void);

const struct shape *script_shape(enum script script);

/* The name of the script for FCALL. */
struct bytes script_function(enum script script);

#endif
