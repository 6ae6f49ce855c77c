/*
 * policy: which role may do what (docs/api.md 15.4).
 *
 * What can be allowed is an action: what a row of the API's tables of routes is for. A role is
 * a set of actions, and a caller has one role. The sets of policy_default can be changed by a
 * file in the spirit of OpenStack's oslo.policy: a JSON object of actions and rules,
 *
 *     {"queues:purge": "role:operator or role:worker", "messages:pop": "!"}
 *
 * of which each says anew who may do it: roles joined by "or", "@" for everybody with a role,
 * "!" for nobody. What it does not name stays.
 *
 *   Cost     policy_allows(): a load and a shift
 *   Threads  any: nothing changes
 */
#ifndef CLAIMD_AUTH_POLICY_H
#define CLAIMD_AUTH_POLICY_H

#include "claimd/base/bytes.h"
#include "claimd/base/status.h"
#include "claimd/json/reason.h"

#include <stdint.h>

enum { TOKEN_NAME_MAX = 64 }; /* of a token, or of a line of certificates */

/* X(NAME, text, the roles that may do it by default: READER is R and so on, see ROLE_LIST) */
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
    X(QUEUES_GET, "queues:get", R | P | W | O | A)                                       \
    X(QUEUES_GET_ALL, "queues:get_all", R | P | W | O | A)                               \
    X(QUEUES_STATS, "queues:stats", R | P | W | O | A)                                   \
    X(QUEUES_CREATE, "queues:create", P | W | O | A)                                     \
    X(QUEUES_UPDATE, "queues:update", O | A)                                             \
    X(QUEUES_DELETE, "queues:delete", O | A)                                             \
    X(QUEUES_PURGE, "queues:purge", O | A)                                               \
    X(QUEUES_SHARE, "queues:share", A)                                                   \
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
    X(READER, "reader")     /* looks */                                                  \
    X(PRODUCER, "producer") /* posts, and makes the queues for that */                   \
    X(WORKER, "worker")     /* claims, renews, releases, deletes */                      \
    X(OPERATOR, "operator") /* looks after queues, and does not work */                  \
    X(ADMIN, "admin")       /* everything */

enum role {
#define ROLE_ENUM(name, text) ROLE_##name,
    ROLE_LIST(ROLE_ENUM)
#undef ROLE_ENUM
        ROLE_COUNT /* also: none of them */
};

struct policy {
    uint64_t allowed[ROLE_COUNT]; /* of each role; a bit an action */
};

extern const struct policy policy_default;

static inline bool
policy_allows(const struct policy *p, enum role role, enum action action)
{
    return (p->allowed[role] >> action & 1) != 0;
}

/* The action or role of this name; ACTION_COUNT, ROLE_COUNT: there is none. */
enum action action_find(struct bytes name);
enum role role_find(struct bytes name);

/* Literals; NULL for ACTION_COUNT. */
const char *action_name(enum action action);
const char *role_name(enum role role);

/* ST_FORBIDDEN, with the roles that may. */
enum status policy_refuse(const struct policy *p, enum role role, enum action action,
                          struct reason *why);

/* ST_BAD_VALUE, with the roles that there are. */
enum status role_refuse(struct bytes name, struct reason *why);

/*
 * Changes *p as a policy file says. ST_BAD_VALUE: *why says what is wrong with it, and *p is as
 * before.
 */
enum status policy_read(struct policy *p, struct bytes text, struct reason *why);

/* ------------------------------------------------------------------ roles of an identity server */

/* Several roles of ours: a bit each. */
typedef unsigned role_set;

enum { ROLE_MAP_MAX = 64 };

/*
 * The meaning of an identity server's roles: "admin=admin, member=producer, member=worker". A name may
 * stand several times, and a caller with several roles may do what any of them may. Names are compared
 * with their case; a name that is not there means nothing. A look-up costs O(entries).
 */
struct role_map {
    size_t count;
    struct {
        struct bytes name; /* borrowed from the text */
        enum role role;
    } entries[ROLE_MAP_MAX];
};

/* Reads the table. ST_BAD_VALUE: *why says what is wrong with it. */
enum status role_map_read(struct role_map *out, struct bytes text, struct reason *why);

/* The meaning of the role with this name, which is the inside of a JSON string that was scanned. */
role_set role_map_find(const struct role_map *map, struct bytes inside);

#endif
