/*
 * script: the Lua scripts of src/redis/scripts, their keys, arguments and responses. The
 * scripts are functions of one library
 * (redis.io/docs/interact/programmability/functions-intro), one for each operation. The
 * library is a part of the program.
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

/*
 * The slot of a key in a Redis Cluster. If the key has a nonempty text between the first
 * { and the next }, only that text counts (Redis Cluster specification, "Key distribution
 * model"). O(length).
 */
uint16_t slot_of(struct bytes key);

/*
 * All keys of a queue are in one slot:
 *
 *     claimd:1:{PROJECT/NAME}:X      key X of a queue; {PROJECT//NAME} of a topic,
 *                                    {PROJECT///NAME} of a queue of schedules
 *     claimd:1:{PROJECT}:n           names of the queues of a project; :t of its topics,
 *                                    :s of its queues of schedules
 *     claimd:1:projects:n            projects that have had queues; :t topics, :s
 *                                    schedules
 *     claimd:1:due:K                 lists of queues with subscriptions (due.h)
 *     claimd:1:ends:K                lists of queues with claims that end
 *
 * 1 is the version of the layout. In projects and names, { } / % and all characters but
 * printable ASCII are written as %XX.
 */
#define KEY_PREFIX "claimd:1:"

/* The suffix of the channel that announces the changes of a queue. */
#define KEY_CHANNEL "w"

/* Writes the common part of the keys of a queue: "claimd:1:{p/q}:". Without memory,
 * out->failed is set. */
void key_of_queue(struct buf *out, const struct store_queue *queue);

/* Write a whole key. `project` is NULL for the list of projects. */
void key_of_index(struct buf *out, const struct bytes *project, enum store_kind kind);
enum due_kind { DUE_DELIVERIES, DUE_CLAIM_ENDS };
void key_of_due(struct buf *out, enum due_kind kind, unsigned list_no);

/* ---------------------------------------------------------------------- commands */

/*
 * Words of a command, encoded in the protocol of Redis (RESP,
 * redis.io/docs/reference/protocol-spec). O(bytes). Without memory, words.failed is
 * set.
 */
struct command_words {
    struct buf words;
    size_t count;
};

void command_init(struct command_words *c, struct mem *mem);
void command_fini(struct command_words *c);

void command_word(struct command_words *c, struct bytes word);
void command_number(struct command_words *c, int64_t number);

/* ---------------------------------------------------------------------- responses */

/* The head of a message, which the scripts keep beside its body. They pack it
 * little-endian and without gaps (lib/queue.lua). */
struct message_head {
    int64_t posted_ms, expires_ms;
    int64_t ready_ms; /* end of the delay; 0: the message is not delayed */
    uint32_t claim_count;
    uint64_t client;
    const struct store_checksum *checksum; /* borrowed from the text; NULL: none */
    struct bytes original_id; /* of a dead letter or a loaded message; or absent */
    bool returned;            /* a dead letter that was put back */
    struct bytes details;     /* message_details_read(); absent: none */
};

/* Reads a time that Lua has packed as a double. False: the text is too short, or the
 * number is out of range. */
bool message_time_read(struct bytes text, size_t at, int64_t *ms)
    __attribute__((warn_unused_result));

/* False: the text is no head. *out is unchanged then. */
bool message_head_read(struct bytes text, struct message_head *out)
    __attribute__((warn_unused_result));

/* Details as scripts pack them (lib/details.lua). The texts are borrowed. False: the
 * text is none. */
bool message_details_read(struct bytes text, struct store_details *out)
    __attribute__((warn_unused_result));
void message_details_write(struct buf *out, const struct store_details *details);

/*
 * The shape of the response of a script. A response is a list: a status (enum
 * response_status), the lead, and groups of words. A response with another status than OK
 * may consist of the status alone. Each word has a kind:
 *
 *     i  an integer from -2^53 to 2^53; also as a text
 *     n  likewise, not negative
 *     2  likewise, from 0 to 2
 *     t  a text
 *     k  an id of 24 bytes, or an empty text
 *     h  the head of a message
 *     c  a claim as queue_read.lua packs it, or an empty text
 *
 * Lua represents integers up to 2^53 exactly. Sums and differences of two fit an int64_t.
 */

/* The statuses of responses, as in lib/queue.lua. */
enum response_status {
    RESPONSE_OK,
    RESPONSE_AGAIN,
    RESPONSE_NOT_FOUND,
    RESPONSE_CHANGED,
    RESPONSE_CLAIMED,
    RESPONSE_NOT_CLAIMED,
    RESPONSE_OVER_CAPACITY,
    RESPONSE_TOO_LARGE,
    RESPONSE_NOT_SEALED,
    RESPONSE_SEALED,
    RESPONSE_CONFLICT,
    RESPONSE_PAUSED,
    RESPONSE_NEVER_READY,
    RESPONSE_NEEDS_FEED,   /* the script needs the keys S and U, */
    RESPONSE_NEEDS_FENCE,  /* or F (lib/queue.lua) */
    RESPONSE_EXPIRE_FIRST, /* call queue_expire, then call the script again */
    RESPONSE_REPEATED,     /* as OK, of an earlier call with this key (store/key.h) */
    RESPONSE_KEY_REUSED,
    RESPONSE_KEY_ENDED,
    RESPONSE_STATUSES
};

enum { SHAPE_CLAIM_SIZE = 40 }; /* of the kind c */

/* Limits of groups: the number that the request asked for, or none. */
#define SHAPE_ASKED (SIZE_MAX - 1)
#define SHAPE_ANY   SIZE_MAX

struct shape {
    const char *lead;  /* kinds of the words of the lead, which may end at each '|' */
    const char *group; /* kinds of the words of a group. After a '|': of a second kind of
                          groups, which an empty text separates from the first */
    size_t most;       /* groups of the first kind, SHAPE_ASKED or SHAPE_ANY */
};

/* True if the response has this shape. `asked`: the limit for SHAPE_ASKED. O(words). */
bool shape_check(const redisReply *response, const struct shape *shape, size_t asked);

/* The text of a word; absent: the word is NULL, or not a text. */
static inline struct bytes
reply_text(const redisReply *word)
{
    return word != NULL && word->type == REDIS_REPLY_STRING
               ? bytes_of(word->str, (size_t)word->len)
               : BYTES_NONE;
}

/* A word of a list. NULL: the list is NULL or no list, or has no such word. */
static inline redisReply *
reply_word(const redisReply *list, size_t i)
{
    return list != NULL && list->type == REDIS_REPLY_ARRAY && i < list->elements
               ? list->element[i]
               : NULL;
}

/* False: the word is not an integer. */
bool shape_integer(const redisReply *word, int64_t *out);

/* ---------------------------------------------------------------------- scripts */

/* Each script with the shape of its response: the lead, the words of a group, and the
 * limit of groups. */
#define SCRIPT_LIST(X)                                                                   \
    X(queue_create, "ntn", "", 0)                                                        \
    X(queue_get, "ntiiiiitiiiint", "", 0)                                                \
    X(queue_update, "", "", 0)                                                           \
    X(queue_update_full, "", "", 0)                                                      \
    X(queue_delete, "|t", "tt", 64)                                                      \
    X(queue_purge, "", "", 0)                                                            \
    X(queue_stats, "ntnn", "nh", 2)                                                      \
    X(queue_listed, "n", "", 0)                                                          \
    X(queue_metrics, "nnnnnnnnnniinnntnnnnnn", "", 0)                                    \
    X(queue_audit, "|t", "", 0)                                                          \
    X(queue_expire, "i", "tt", SHAPE_ANY)                                                \
    X(queue_ready, "nnn", "", 0)                                                         \
    X(queue_read, "ntn|tiiiiitiiiint", "nhtc", 256)                                      \
    X(queue_apply, "t", "", 0)                                                           \
    X(index_page, "n", "t", SHAPE_ASKED)                                                 \
    X(index_add, "", "", 0)                                                              \
    X(index_remove, "", "", 0)                                                           \
    X(message_post, "tnnn|k", "", 0)                                                     \
    X(message_post_keyed, "tnnn", "", 0)                                                 \
    X(message_list, "ntn", "nhtk", SHAPE_ASKED)                                          \
    X(message_get, "nt", "nhtk", SHAPE_ASKED)                                            \
    X(message_find, "nt", "nhtk", 1)                                                     \
    X(message_delete, "|n", "in", SHAPE_ASKED)                                           \
    X(message_pop, "n|t", "nhtk", SHAPE_ASKED)                                           \
    X(message_pop_keyed, "n|t", "nhtk", SHAPE_ANY)                                       \
    X(claim_create, "ntnn", "nhtk|tt", SHAPE_ASKED)                                      \
    X(claim_create_keyed, "ntnn", "nhtk|tt", SHAPE_ANY)                                  \
    X(claim_get, "ntnnii", "nhtk", SHAPE_ANY)                                            \
    X(claim_list, "nnn", "nknnnt", SHAPE_ASKED)                                          \
    X(claim_renew, "nn", "", 0)                                                          \
    X(claim_release, "n", "", 0)                                                         \
    X(claim_finish, "ttnnn", "in|tt", SHAPE_ASKED)                                       \
    X(claim_finish_post, "ttnnn", "in|tt", SHAPE_ASKED)                                  \
    X(claim_finish_keyed, "ttnnn", "in|tt", SHAPE_ASKED)                                 \
    X(claim_finish_post_keyed, "ttnnn", "in|tt", SHAPE_ASKED)                            \
    X(redrive, "tnnnni", "t|tt", SHAPE_ASKED)                                            \
    X(unique_find, "t", "", 0)                                                           \
    X(transfer_post, "tnnn|k", "", 0)                                                    \
    X(transfer_return, "", "", 0)                                                        \
    X(dead_letter_post, "ntn", "t", SHAPE_ASKED)                                         \
    X(transfer_forget, "", "", 0)                                                        \
    X(outbox_done, "", "", 0)                                                            \
    X(outbox_lease, "", "tt", SHAPE_ANY)                                                 \
    X(subscription_create, "tnknn", "", 0)                                               \
    X(subscription_get, "n", "nkttiinnnnnnnnnni", 1)                                     \
    X(subscription_list, "n", "nkttiinnnnnnnnnni", SHAPE_ASKED)                          \
    X(subscription_update, "i", "", 0)                                                   \
    X(subscription_confirm, "i", "", 0)                                                  \
    X(subscription_delete, "", "", 0)                                                    \
    X(delivery_lease, "nit", "knn2ttinntnn", SHAPE_ASKED)                                \
    X(delivery_done, "i", "", 0)                                                         \
    X(delivery_renew, "", "", 0)                                                         \
    X(due_add, "n", "", 0)                                                               \
    X(due_lease, "nn|ti", "", 0)                                                         \
    X(due_set, "", "", 0)

enum script {
#define SCRIPT_ENUM(name, lead, group, most) SCRIPT_##name,
    SCRIPT_LIST(SCRIPT_ENUM)
#undef SCRIPT_ENUM
        SCRIPTS
};

/* The library, for FUNCTION LOAD. Its name and those of its functions contain a hash of
 * its text. */
struct bytes script_library(void);

const struct shape *script_shape(enum script script);

/* The name of the script for FCALL. */
struct bytes script_function(enum script script);

#endif
