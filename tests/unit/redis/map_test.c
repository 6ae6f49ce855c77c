#include "redis/cluster.h"

#include "support/check_main.h"

/* Answers as hiredis would read them. */
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

static const struct link_address asked = {"asked", 7000};

/* [[0, 99, [a, 1], [r, 2]], [100, last, ["", 3]]] */
struct answer {
    redisReply from[2], to[2], host[3], port[3], node[3], range[2], all;
    redisReply *node_items[3][2], *range_items[2][4], *items[2];
};

static void
make(struct answer *a, long long last)
{
    static const char *const hosts[] = {"a", "r", ""};

    *a = (struct answer){0};
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

START_TEST(slots_are_read_with_their_primaries)
{
    struct map_coverage coverage;
    struct answer a;
    struct map m;

    map_init(&m);
    make(&a, 200);
    ck_assert_int_eq(map_read(&m, &a.all, &asked), ST_OK);
    ck_assert_str_eq(map_address(&m, map_find(&m, 0)).host, "a");
    ck_assert_uint_eq(map_address(&m, map_find(&m, 99)).port, 1);
    ck_assert_str_eq(map_address(&m, map_find(&m, 100)).host, "asked");
    ck_assert_uint_eq(map_find(&m, 201), MAP_NOWHERE);
    coverage = map_coverage(&m);
    ck_assert_uint_eq(coverage.replicas_least, 0);
    ck_assert_uint_eq(coverage.slots_without_node, SLOT_COUNT - 201);
    map_fini(&m);
}
END_TEST

START_TEST(an_answer_that_makes_no_sense_changes_nothing)
{
    struct answer a;
    struct map m;

    map_init(&m);
    make(&a, 200);
    ck_assert_int_eq(map_read(&m, &a.all, &asked), ST_OK);
    make(&a, SLOT_COUNT); /* beyond the last one */
    ck_assert_int_eq(map_read(&m, &a.all, &asked), ST_UNAVAILABLE);
    make(&a, 50); /* ends before it begins */
    ck_assert_int_eq(map_read(&m, &a.all, &asked), ST_UNAVAILABLE);
    make(&a, 200);
    a.port[2] = number(0);
    ck_assert_int_eq(map_read(&m, &a.all, &asked), ST_UNAVAILABLE);
    make(&a, 200);
    a.range[1].elements = 2;
    ck_assert_int_eq(map_read(&m, &a.all, &asked), ST_UNAVAILABLE);
    a.all.elements = 0; /* a node that knows nobody */
    ck_assert_int_eq(map_read(&m, &a.all, &asked), ST_UNAVAILABLE);
    ck_assert_uint_ne(map_find(&m, 200), MAP_NOWHERE);
    map_fini(&m);
}
END_TEST

START_TEST(a_slot_moves_alone)
{
    const struct link_address to = {"b", 9};
    struct answer a;
    struct map m;

    map_init(&m);
    make(&a, 200);
    (void)map_read(&m, &a.all, &asked);
    map_move(&m, 7, &to);
    ck_assert_str_eq(map_address(&m, map_find(&m, 7)).host, "b");
    ck_assert_str_eq(map_address(&m, map_find(&m, 8)).host, "a");
    map_fini(&m);
}
END_TEST

START_TEST(one_redis_has_all_slots)
{
    struct map m;

    map_init(&m);
    map_set_single(&m, &asked);
    ck_assert_uint_eq(map_find(&m, 0), map_find(&m, SLOT_COUNT - 1));
    ck_assert(m.single);
    map_fini(&m);
}
END_TEST

START_TEST(a_map_that_is_full_of_nodes_begins_anew)
{
    struct link_address node = {"node", 1};
    struct map m;

    map_init(&m);
    for (uint16_t i = 1; i <= MAP_NODES; i++) {
        node.port = i;
        ck_assert_uint_eq(map_enter_node(&m, &node), i - 1);
    }
    ck_assert_uint_eq(map_enter_node(&m, &node), MAP_NODES - 1); /* is known */
    ck_assert_uint_eq(map_generation(&m), 0);
    node.port = MAP_NODES + 1;
    ck_assert_uint_eq(map_enter_node(&m, &node), 0);
    ck_assert_uint_eq(map_generation(&m), 1);
    ck_assert_uint_eq(map_find(&m, 0), MAP_NOWHERE);
    map_fini(&m);
}
END_TEST

START_TEST(addresses_of_redirections)
{
    struct link_address to;

    ck_assert(map_read_address("10.0.0.1:6381", &asked, &to));
    ck_assert_str_eq(to.host, "10.0.0.1");
    ck_assert_uint_eq(to.port, 6381);
    ck_assert(map_read_address(":6381", &asked, &to));
    ck_assert_str_eq(to.host, "asked");
    ck_assert(map_read_address("::1:6381", &asked, &to));
    ck_assert_str_eq(to.host, "::1");
    ck_assert(!map_read_address("host", &asked, &to));
    ck_assert(!map_read_address("host:", &asked, &to));
    ck_assert(!map_read_address("host:65536", &asked, &to));
    ck_assert(!map_read_address("host:6x", &asked, &to));
}
END_TEST
