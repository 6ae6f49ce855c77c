/*
 * script: the Lua scripts of src/redis/scripts, one for each operation, as they are built in: functions
 * of one library (redis.io/docs/interact/programmability/functions-intro).
 */
#ifndef REDIS_SCRIPT_H
#define REDIS_SCRIPT_H

#include "redis/shape.h"

/*
 * Each script, and the shape of its response (shape.h): the lead, the words of a group, and how many
 * groups there are at most.
 */
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
    X(names_page, "n", "t", SHAPE_ASKED)                                                 \
    X(names_add, "", "", 0)                                                              \
    X(names_remove, "", "", 0)                                                           \
    X(message_post, "tnnn", "", 0)                                                       \
    X(message_list, "ntn", "nhtk", SHAPE_ASKED)                                          \
    X(message_get, "nt", "nhtk", SHAPE_ASKED)                                            \
    X(message_delete, "|n", "in", SHAPE_ASKED)                                           \
    X(message_pop, "n|t", "nhtk", SHAPE_ASKED)                                           \
    X(claim_create, "ntnn", "nhtk|tt", SHAPE_ASKED)                                      \
    X(claim_get, "ntnnii", "nhtk", SHAPE_ANY)                                            \
    X(claim_renew, "nn", "", 0)                                                          \
    X(claim_release, "n", "", 0)                                                         \
    X(letter_post, "nt", "", 0)                                                          \
    X(letter_forget, "", "", 0)                                                          \
    X(letter_done, "", "", 0)                                                            \
    X(subscription_create, "tnknn", "", 0)                                               \
    X(subscription_get, "n", "nkttiinnnnnnnnnni", 1)                                     \
    X(subscription_list, "n", "nkttiinnnnnnnnnni", SHAPE_ASKED)                          \
    X(subscription_update, "i", "", 0)                                                   \
    X(subscription_confirm, "i", "", 0)                                                  \
    X(subscription_delete, "", "", 0)                                                    \
    X(delivery_lend, "nit", "knn2ttinntnn", SHAPE_ASKED)                                 \
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

/* What its response looks like. */
const struct shape *script_shape(enum script script);

/* What FCALL calls the script. */
struct bytes script_function(enum script script);

#endif
