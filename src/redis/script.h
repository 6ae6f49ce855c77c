/*
 * script: the Lua scripts of src/redis/scripts, one for each operation, as they are built in: functions
 * of one library (redis.io/docs/interact/programmability/functions-intro).
 */
#ifndef REDIS_SCRIPT_H
#define REDIS_SCRIPT_H

#include "claimd/base/bytes.h"

#define SCRIPT_LIST(X)                                                                   \
    X(queue_create)                                                                      \
    X(queue_get)                                                                         \
    X(queue_update)                                                                      \
    X(queue_delete)                                                                      \
    X(queue_purge)                                                                       \
    X(queue_stats)                                                                       \
    X(queue_listed)                                                                      \
    X(queue_figures)                                                                     \
    X(queue_audit)                                                                       \
    X(queue_settle)                                                                      \
    X(queue_ready)                                                                       \
    X(queue_image)                                                                       \
    X(queue_load)                                                                        \
    X(names_page)                                                                        \
    X(names_add)                                                                         \
    X(names_remove)                                                                      \
    X(message_post)                                                                      \
    X(message_list)                                                                      \
    X(message_get)                                                                       \
    X(message_delete)                                                                    \
    X(message_delete_many)                                                               \
    X(message_pop)                                                                       \
    X(claim_create)                                                                      \
    X(claim_get)                                                                         \
    X(claim_renew)                                                                       \
    X(claim_release)                                                                     \
    X(letter_post)                                                                       \
    X(letter_forget)                                                                     \
    X(letter_done)                                                                       \
    X(subscription_create)                                                               \
    X(subscription_get)                                                                  \
    X(subscription_list)                                                                 \
    X(subscription_update)                                                               \
    X(subscription_confirm)                                                              \
    X(subscription_delete)                                                               \
    X(delivery_lend)                                                                     \
    X(delivery_done)                                                                     \
    X(delivery_keep)                                                                     \
    X(due_enter)                                                                         \
    X(due_take)                                                                          \
    X(due_set)

enum script {
#define SCRIPT_ENUM(name) SCRIPT_##name,
    SCRIPT_LIST(SCRIPT_ENUM)
#undef SCRIPT_ENUM
        SCRIPTS
};

/* The statuses of answers, as lib/queue.lua has them. */
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

/* The library, for FUNCTION LOAD. Its name and those of its functions say which version it is. */
struct bytes script_library(void);

/* What FCALL calls the script. */
struct bytes script_function(enum script script);

#endif
