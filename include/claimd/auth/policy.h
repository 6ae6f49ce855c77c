/*
 * policy: the actions that each role allows (docs/api.md 15.4).
 *
 * Each route of the API has an action. A role allows a set of actions, and a caller has
 * one role. A file can change the sets of policy_default. Like the files of oslo.policy
 * of OpenStack, it is a JSON object of actions and rules:
 *
 *     {"queues:purge": "role:operator or role:worker", "messages:pop": "!"}
 *
 * A rule replaces the default for its action: roles joined by "or", "@" for all roles,
 * "!" for none. Actions that the file does not name keep their default.
 *
 *   Cost     policy_allows(): a load and a shift
 *   Threads  any. Nothing changes
 *   Memory   none
 */
#ifndef CLAIMD_AUTH_POLICY_H
#define CLAIMD_AUTH_POLICY_H

#include "claimd/base/bytes.h"
#include "claimd/base/status.h"
#include "claimd/json/reason.h"

#include <stdint.h>

enum { TOKEN_NAME_MAX = 64 }; /* of a token, or of a line of certificates */

/* X(NAME, text, the default roles: R is READER and so on, see ROLE_LIST) */
#define ACTION_LIST(X)                                                                   \
    X(CLAIMS_CREATE, "claims:create", W | A)                                             \
    X(CLAIMS_GET, "claims:get", R | W | O | A)                                           \
    X(CLAIMS_UPDATE, "claims:update", W | A)                                             \
    X(CLAIMS_DELETE, "claims:delete", W | O | A)                                         \
    X(MESSAGES_CREATE, "messages:create", P | A)                                         \
    X(MESSAGES_GET, "messages:get", R | W | O | A)                                       \
    X(MESSAGES_GET_ALL, "messages:get_all", R | W | O | A)                               \
    X(MESSAGES_DELETE, "messages:delete", W | O | A)                                     \
    X(MESSAGES_DELETE_ALL, "messages:delete_all", W | O | A)                             \
    X(MESSAGES_POP, "messages:pop", W | A)                                               \
    X(MESSAGES_REDRIVE, "messages:redrive", O | A)                                       \
    X(QUEUES_GET, "queues:get", R | P | W | O | A)                                       \
    X(QUEUES_GET_ALL, "queues:get_all", R | P | W | O | A)                               \
    X(QUEUES_STATS, "queues:stats", R | P | W | O | A)                                   \
    X(QUEUES_CREATE, "queues:create", P | W | O | A)                                     \
    X(QUEUES_UPDATE, "queues:update", O | A)                                             \
    X(QUEUES_DELETE, "queues:delete", O | A)                                             \
    X(QUEUES_PURGE, "queues:purge", O | A)                                               \
    X(QUEUES_PAUSE, "queues:pause", O | A)                                               \
    X(QUEUES_SHARE, "queues:share", A)                                                   \
    X(SCHEDULES_GET, "schedules:get", R | W | O | A)                                     \
    X(SCHEDULES_SET, "schedules:set", O | A)                                             \
    X(TOPICS_GET, "topics:get", R | P | W | O | A)                                       \
    X(TOPICS_GET_ALL, "topics:get_all", R | P | W | O | A)                               \
    X(TOPICS_STATS, "topics:stats", R | P | W | O | A)                                   \
    X(TOPICS_CREATE, "topics:create", P | W | O | A)                                     \
    X(TOPICS_UPDATE, "topics:update", O | A)                                             \
    X(TOPICS_DELETE, "topics:delete", O | A)                                             \
    X(TOPICS_PURGE, "topics:purge", O | A)                                               \
    X(SUBSCRIPTION_GET, "subscription:get", R | O | A)                                   \
    X(SUBSCRIPTION_GET_ALL, "subscription:get_all", R | O | A)                           \
    X(SUBSCRIPTION_CREATE, "subscription:create", O | A)                                 \
    X(SUBSCRIPTION_UPDATE, "subscription:update", O | A)                                 \
    X(SUBSCRIPTION_DELETE, "subscription:delete", O | A)                                 \
    X(SUBSCRIPTION_CONFIRM, "subscription:confirm", O | A)                               \
    X(SUBSCRIPTION_PROGRESS, "subscription:progress", O | A)                             \
    X(HOME_GET, "home:get", R | P | W | O | A)                                           \
    X(PING_GET, "ping:get", R | P | W | O | A)                                           \
    X(HEALTH_GET, "health:get", O | A)                                                   \
    X(METRICS_GET, "metrics:get", O | A)                                                 \
    X(CI_USE, "ci:use", O | A)                                                           \
    X(STATE_DUMP, "state:dump", O | A)                                                   \
    X(STATE_LOAD, "state:load", O | A)

enum action {
#define ACTION_ENUM(name, text, roles) ACTION_##name,
    ACTION_LIST(ACTION_ENUM)
#undef ACTION_ENUM
        ACTION_COUNT /* also: none of them */
};

/* X(NAME, text): from the least to the most. */
#define ROLE_LIST(X)                                                                     \
    X(READER, "reader")     /* reads */                                                  \
    X(PRODUCER, "producer") /* posts, and makes queues */                                \
    X(WORKER, "worker")     /* claims, renews, releases, deletes */                      \
    X(OPERATOR, "operator") /* manages queues, and claims nothing */                     \
    X(ADMIN, "admin")       /* everything */

enum role {
#define ROLE_ENUM(name, text) ROLE_##name,
    ROLE_LIST(ROLE_ENUM)
#undef ROLE_ENUM
        ROLE_COUNT /* also: none of them */
};

struct policy {
    uint64_t allowed[ROLE_COUNT]; /* for each role a bit for each action */
};

extern const struct policy policy_default;

static inline bool
policy_allows(const struct policy *p, enum role role, enum action action)
{
    return (p->allowed[role] >> action & 1) != 0;
}

/* The action or role with this name; ACTION_COUNT, ROLE_COUNT: there is none. */
enum action action_find(struct bytes name);
enum role role_find(struct bytes name);

/* Literals; NULL for ACTION_COUNT. */
const char *action_name(enum action action);
const char *role_name(enum role role);

/* Returns ST_FORBIDDEN. The reason lists the allowed roles. */
enum status policy_refuse(const struct policy *p, enum role role, enum action action,
                          struct reason *why);

/* Returns ST_BAD_VALUE. The reason lists all roles. */
enum status role_refuse(struct bytes name, struct reason *why);

/* Applies a policy file to *p. ST_BAD_VALUE with a reason. *p is unchanged then. */
enum status policy_read(struct policy *p, struct bytes text, struct reason *why);

/* ------------------------------------------------------- roles of an identity server */

/* Several roles: a bit each. */
typedef unsigned role_set;

enum { ROLE_MAP_MAX = 64 };

/*
 * Maps the roles of an identity server to roles of claimd: "admin=admin, member=producer,
 * member=worker". A name may have several entries, and a caller with several roles may do
 * what any of them allows. Names are case-sensitive. Names without an entry are ignored.
 * A lookup costs O(entries).
 */
struct role_map {
    size_t count;
    struct {
        struct bytes name; /* borrowed from the text */
        enum role role;
    } entries[ROLE_MAP_MAX];
};

/* Reads a map. ST_BAD_VALUE with a reason. */
enum status role_map_read(struct role_map *out, struct bytes text, struct reason *why);

/* The roles for a name, which is the inside of a scanned JSON string. */
role_set role_map_find(const struct role_map *map, struct bytes inside);

#endif
