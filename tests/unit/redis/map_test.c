/*
 * How a reply of CLUSTER SLOTS and a redirection change the map of slots, and that an
 * invalid one does not. Declared in src/redis/cluster.h.
 */
#include "redis/cluster.h"

#include "support/check_main.h"

/* Replies of Redis, as hiredis returns them. */
static redisReply
number(long long value)
{
    return (redisReply){.type = REDIS_REPLY_INTEGER, .integer = value};
}

static redisReply
text(const char *value)
{
    return (redisReply){.type = REDIS_REPLY_STRING,
                        .str = (char *)(uintptr_t)value,
                        .len = strlen(value)};
}

static redisReply
array(redisReply **items, size_t count)
{
    return (redisReply){.type = REDIS_REPLY_ARRAY, .element = items, .elements = count};
}

static const struct link_address queried = {"queried", 7000};

/* [[0, 99, [a, 1], [r, 2]], [100, last, ["", 3]]] */
struct slots_reply {
    redisReply from[2], to[2], host[3], port[3], node[3], range[2], all;
    redisReply *node_items[3][2], *range_items[2][4], *items[2];
};

static void
make_slots_reply(struct slots_reply *a, long long last)
{
    static const char *const hosts[] = {"a", "r", ""};

    *a = (struct slots_reply){0};
    for (int i = 0; i < 3; i++) {
        a->host[i] = text(hosts[i]);
        a->port[i] = number(i + 1);
        a->node_items[i][0] = &a->host[i];
        a->node_items[i][1] = &a->port[i];
        a->node[i] = array(a->node_items[i], 2);
    }
    for (int i = 0; i < 2; i++) {
        a->from[i] = number(i == 0 ? 0 : 100);
        a->to[i] = number(i == 0 ? 99 : last);
        a->range_items[i][0] = &a->from[i];
        a->range_items[i][1] = &a->to[i];
        a->range_items[i][2] = &a->node[i == 0 ? 0 : 2];
        a->range_items[i][3] = &a->node[1];
        a->range[i] = array(a->range_items[i], i == 0 ? 4 : 3);
        a->items[i] = &a->range[i];
    }
    a->all = array(a->items, 2);
}

static void
assert_host(struct map *m, uint16_t slot, const char *host)
{
    const struct link_address address = map_address(m, map_find(m, slot));

    ck_assert_str_eq(address.host, host);
}

#define MAP_TEST(id) FIXTURE_TEST_AS(id, struct map, m, map_init(m), map_fini(m))

MAP_TEST(map_read_finds_the_primary_of_each_slot)
{
    struct map_coverage coverage;
    struct slots_reply a;

    make_slots_reply(&a, 200);
    ck_assert_int_eq(map_read(m, &a.all, &queried), ST_OK);
    assert_host(m, 0, "a");
    ck_assert_uint_eq(map_address(m, map_find(m, 99)).port, 1);
    assert_host(m, 100, "queried");
    ck_assert_uint_eq(map_find(m, 201), MAP_NOWHERE);
    coverage = map_coverage(m);
    ck_assert_uint_eq(coverage.replicas_least, 0);
    ck_assert_uint_eq(coverage.slots_without_node, SLOT_COUNT - 201);
}

MAP_TEST(an_invalid_reply_does_not_change_the_map)
{
    struct slots_reply a;

    make_slots_reply(&a, 200);
    ck_assert_int_eq(map_read(m, &a.all, &queried), ST_OK);
    make_slots_reply(&a, SLOT_COUNT); /* beyond the last slot */
    ck_assert_int_eq(map_read(m, &a.all, &queried), ST_UNAVAILABLE);
    make_slots_reply(&a, 50); /* the range ends before it begins */
    ck_assert_int_eq(map_read(m, &a.all, &queried), ST_UNAVAILABLE);
    make_slots_reply(&a, 200);
    a.port[2] = number(0);
    ck_assert_int_eq(map_read(m, &a.all, &queried), ST_UNAVAILABLE);
    make_slots_reply(&a, 200);
    a.range[1].elements = 2;
    ck_assert_int_eq(map_read(m, &a.all, &queried), ST_UNAVAILABLE);
    a.all.elements = 0; /* a node that knows no slots */
    ck_assert_int_eq(map_read(m, &a.all, &queried), ST_UNAVAILABLE);
    ck_assert_uint_ne(map_find(m, 200), MAP_NOWHERE);
}

MAP_TEST(map_move_changes_one_slot_only)
{
    const struct link_address to = {"b", 9};
    struct slots_reply a;

    make_slots_reply(&a, 200);
    (void)map_read(m, &a.all, &queried);
    map_move(m, 7, &to);
    assert_host(m, 7, "b");
    assert_host(m, 8, "a");
}

MAP_TEST(a_single_redis_has_all_slots)
{
    map_set_single(m, &queried);
    ck_assert_uint_eq(map_find(m, 0), map_find(m, SLOT_COUNT - 1));
    ck_assert(m->single);
}

MAP_TEST(a_full_map_is_cleared_and_starts_a_generation)
{
    struct link_address node = {"node", 1};

    for (uint16_t i = 1; i <= MAP_NODES; i++) {
        node.port = i;
        ck_assert_uint_eq(map_enter_node(m, &node), i - 1);
    }
    ck_assert_uint_eq(map_enter_node(m, &node),
                      MAP_NODES - 1); /* the map has this node */
    ck_assert_uint_eq(map_generation(m), 0);
    node.port = MAP_NODES + 1;
    ck_assert_uint_eq(map_enter_node(m, &node), 0);
    ck_assert_uint_eq(map_generation(m), 1);
    ck_assert_uint_eq(map_find(m, 0), MAP_NOWHERE);
}

START_TEST(redirection_addresses_are_parsed)
{
    struct link_address to;

    ck_assert(map_read_address("10.0.0.1:6381", &queried, &to));
    ck_assert_str_eq(to.host, "10.0.0.1");
    ck_assert_uint_eq(to.port, 6381);
    ck_assert(map_read_address(":6381", &queried, &to));
    ck_assert_str_eq(to.host, "queried");
    ck_assert(map_read_address("::1:6381", &queried, &to));
    ck_assert_str_eq(to.host, "::1");
    ck_assert(!map_read_address("host", &queried, &to));
    ck_assert(!map_read_address("host:", &queried, &to));
    ck_assert(!map_read_address("host:65536", &queried, &to));
    ck_assert(!map_read_address("host:6x", &queried, &to));
}
