#include "claimd/auth/policy.h"

#include "claimd/json/scan.h"
#include "claimd/json/string.h"

static const char *const action_names[] = {
#define ACTION_NAME(name, text, roles) text,
    ACTION_LIST(ACTION_NAME)
#undef ACTION_NAME
};

static const char *const role_names[] = {
#define ROLE_NAME(name, text) text,
    ROLE_LIST(ROLE_NAME)
#undef ROLE_NAME
};

_Static_assert(ACTION_COUNT <= 64, "a set of actions is a word");

enum { R = 1 << ROLE_READER, P = 1 << ROLE_PRODUCER, W = 1 << ROLE_WORKER };
enum { O = 1 << ROLE_OPERATOR, A = 1 << ROLE_ADMIN };

#define ALLOWED(role) [ROLE_##role] = 0 ACTION_LIST(ALLOWED_##role)
#define BIT(name, roles, who)                                                            \
    | (((roles) & (who)) != 0 ? UINT64_C(1) << ACTION_##name : 0)
#define ALLOWED_READER(name, text, roles)   BIT(name, roles, R)
#define ALLOWED_PRODUCER(name, text, roles) BIT(name, roles, P)
#define ALLOWED_WORKER(name, text, roles)   BIT(name, roles, W)
#define ALLOWED_OPERATOR(name, text, roles) BIT(name, roles, O)
#define ALLOWED_ADMIN(name, text, roles)    BIT(name, roles, A)

const struct policy policy_default = {{ALLOWED(READER), ALLOWED(PRODUCER),
                                       ALLOWED(WORKER), ALLOWED(OPERATOR),
                                       ALLOWED(ADMIN)}};

/* ------------------------------------------------------------------ names */

static size_t
find_name(const char *const *names, size_t count, struct bytes name)
{
    size_t i = 0;

    while (i < count && !bytes_equal_str(name, names[i]))
        i++;
    return i;
}

enum action
action_find(struct bytes name)
{
    return (enum action)find_name(action_names, ACTION_COUNT, name);
}

enum role
role_find(struct bytes name)
{
    return (enum role)find_name(role_names, ROLE_COUNT, name);
}

const char *
action_name(enum action action)
{
    return action == ACTION_COUNT ? NULL : action_names[action];
}

const char *
role_name(enum role role)
{
    return role_names[role];
}

/* Lists the roles that may do the action (p NULL: all roles): "producer, admin", or
 * "none". */
static const char *
list_roles(const struct policy *p, enum action action, char out[64])
{
    out[0] = '\0';
    for (unsigned role = 0; role < ROLE_COUNT; role++) {
        if (p != NULL && !policy_allows(p, (enum role)role, action))
            continue;
        if (out[0] != '\0')
            (void)strcat(out, ", ");
        (void)strcat(out, role_names[role]);
    }
    return out[0] == '\0' ? "none" : out;
}

enum status
policy_refuse(const struct policy *p, enum role role, enum action action,
              struct reason *why)
{
    char roles[64];

    return reason_give(why, ST_FORBIDDEN,
                       "the action %s is not allowed for the role %s. Allowed roles: %s",
                       action_name(action), role_name(role),
                       list_roles(p, action, roles));
}

enum status
role_refuse(struct bytes name, struct reason *why)
{
    char roles[64];

    return reason_give(why, ST_BAD_VALUE,
                       "the role \"%s\" does not exist. Use one of these: %s",
                       received(name).text, list_roles(NULL, ACTION_COUNT, roles));
}

/* ------------------------------------------------------------------ the file */

/* Cuts off the next word. */
static struct bytes
next_word(struct bytes *rest)
{
    *rest = bytes_trim(*rest);
    return bytes_cut(rest, ' ');
}

/* Adds the bit of the role in "role:worker". */
static enum status
rule_read_role(struct bytes word, unsigned *roles, struct reason *why)
{
    static const struct bytes prefix = BYTES_LIT("role:");
    struct bytes name;
    enum role role;

    if (!bytes_begin_with(word, prefix))
        return reason_give(why, ST_BAD_VALUE,
                           "a rule must be @, !, or role:NAME joined by or, not %.*s",
                           (int)word.len, word.data);
    name = bytes_of(word.data + prefix.len, word.len - prefix.len);
    role = role_find(name);
    if (role == ROLE_COUNT)
        return role_refuse(name, why);
    *roles |= 1U << role;
    return ST_OK;
}

static enum status
rule_read(struct bytes rule, unsigned *roles, struct reason *why)
{
    struct bytes rest = bytes_trim(rule);
    enum status st;

    *roles = 0;
    if (bytes_equal_str(rest, "@"))
        *roles = (1U << ROLE_COUNT) - 1;
    if (bytes_equal_str(rest, "@") || bytes_equal_str(rest, "!"))
        return ST_OK;
    for (;;) {
        st = rule_read_role(next_word(&rest), roles, why);
        if (st != ST_OK || !bytes_present(rest))
            return st;
        if (!bytes_equal_str(next_word(&rest), "or"))
            return reason_give(why, ST_BAD_VALUE, "roles must be joined by or");
        if (!bytes_present(rest))
            return reason_give(why, ST_BAD_VALUE, "a role must follow or");
    }
}

/* *seen: the actions that have a rule already. */
static enum status
policy_read_member(struct policy *p, uint64_t *seen, struct bytes name,
                   const struct json_scan_value *value, struct reason *why)
{
    enum action action = action_find(name);
    unsigned roles;
    uint64_t bit;
    enum status st;

    if (action == ACTION_COUNT)
        return reason_give(why, ST_BAD_VALUE, "the action %.*s does not exist",
                           (int)name.len, name.data);
    bit = UINT64_C(1) << action;
    if (value->kind != SCAN_STRING)
        return reason_give(why, ST_BAD_VALUE, "the rule of %.*s is not a string",
                           (int)name.len, name.data);
    if ((*seen & bit) != 0)
        return reason_give(why, ST_BAD_VALUE, "%.*s has two rules", (int)name.len,
                           name.data);
    *seen |= bit;
    st = rule_read(json_scan_inside(value), &roles, why);
    for (unsigned role = 0; st == ST_OK && role < ROLE_COUNT; role++)
        p->allowed[role] =
            (roles >> role & 1) != 0 ? p->allowed[role] | bit : p->allowed[role] & ~bit;
    return st;
}

enum status
policy_read(struct policy *p, struct bytes text, struct reason *why)
{
    struct policy next = *p;
    struct json_scan_value value;
    struct json_scan_name name;
    struct json_scan s;
    enum status st = ST_OK;
    uint64_t seen = 0;

    json_scan_begin(&s, text);
    if (!json_scan_enter(&s, SCAN_OBJECT) && !s.bad)
        return reason_give(why, ST_BAD_VALUE,
                           "a policy must be an object of actions and rules");
    while (st == ST_OK && json_scan_member(&s, &name))
        if (json_scan_value(&s, &value))
            st = policy_read_member(&next, &seen, name.text, &value, why);
    if (st == ST_OK && json_scan_end(&s) != ST_OK) {
        (void)json_fault(text, why);
        st = ST_BAD_VALUE;
    }
    if (st == ST_OK)
        *p = next;
    return st;
}

/* ------------------------------------------------------- roles of an identity server */

static enum status
role_map_read_entry(struct role_map *out, struct bytes entry, struct reason *why)
{
    struct bytes rest = entry, name = bytes_trim(bytes_cut(&rest, '=')), word;
    enum role role;

    if (!bytes_present(rest) || name.len == 0)
        return reason_give(why, ST_BAD_VALUE, "must be NAME=ROLE, separated by commas");
    word = bytes_trim(rest);
    role = role_find(word);
    if (role == ROLE_COUNT)
        return role_refuse(word, why);
    if (out->count == ROLE_MAP_MAX)
        return reason_give(why, ST_BAD_VALUE, "must have at most %d entries",
                           ROLE_MAP_MAX);
    out->entries[out->count].name = name;
    out->entries[out->count++].role = role;
    return ST_OK;
}

enum status
role_map_read(struct role_map *out, struct bytes text, struct reason *why)
{
    struct role_map map = {.count = 0};
    enum status st = ST_OK;

    while (st == ST_OK && bytes_present(text))
        st = role_map_read_entry(&map, bytes_cut(&text, ','), why);
    if (st == ST_OK)
        *out = map;
    return st;
}

role_set
role_map_find(const struct role_map *map, struct bytes inside)
{
    role_set roles = 0;

    for (size_t i = 0; i < map->count; i++)
        if (json_string_equals(inside, map->entries[i].name))
            roles |= 1U << map->entries[i].role;
    return roles;
}
