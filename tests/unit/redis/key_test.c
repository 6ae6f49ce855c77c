/*
 * The keys of a queue in Redis: all are in one slot, and no name collides with another
 * one. Declared in src/redis/script.h.
 */
#include "redis/script.h"

#include "support/check_main.h"

static void
expect_key(const struct store_queue *queue, const char *expected)
{
    struct mem *mem = mem_new(0);
    struct buf key;

    buf_init(&key, mem);
    key_of_queue(&key, queue);
    ck_assert_msg(bytes_equal_str(buf_view(&key), expected), "%.*s", (int)key.len,
                  key.data);
    buf_fini(&key);
    mem_destroy(mem);
}

START_TEST(keys_of_a_queue_are_in_the_slot_of_project_and_name)
{
    const struct store_queue queue = {bytes_str("p"), bytes_str("q.1_-"), STORE_QUEUE};
    const struct store_queue topic = {bytes_str("p"), bytes_str("q"), STORE_TOPIC};
    const struct store_queue nameless = {bytes_str(""), bytes_str("q"), STORE_QUEUE};
    const struct store_queue schedules = {bytes_str("p"), bytes_str("q"),
                                          STORE_SCHEDULES};

    expect_key(&queue, "claimd:1:{p/q.1_-}:");
    expect_key(&topic, "claimd:1:{p//q}:");
    expect_key(&nameless, "claimd:1:{/q}:");
    expect_key(&schedules, "claimd:1:{p///q}:");
    ck_assert_uint_eq(slot_of(bytes_str("claimd:1:{p/q}:m")), slot_of(bytes_str("p/q")));
}

START_TEST(special_characters_of_keys_are_escaped)
{
    const struct store_queue queue = {bytes_of("{a}/%\0\n \xc3\xa9", 10), bytes_str("q"),
                                      STORE_QUEUE};

    expect_key(&queue, "claimd:1:{%7Ba%7D%2F%25%00%0A%20%C3%A9/q}:");
}

START_TEST(lists_of_names_and_projects)
{
    const struct bytes project = bytes_str("p/");
    struct mem *mem = mem_new(0);
    struct buf key;

    buf_init(&key, mem);
    key_of_index(&key, &project, STORE_TOPIC);
    ck_assert(bytes_equal_str(buf_view(&key), "claimd:1:{p%2F}:t"));
    buf_reset(&key, 0);
    key_of_index(&key, NULL, STORE_QUEUE);
    ck_assert(bytes_equal_str(buf_view(&key), "claimd:1:projects:n"));
    buf_reset(&key, 0);
    key_of_index(&key, NULL, STORE_SCHEDULES);
    ck_assert(bytes_equal_str(buf_view(&key), "claimd:1:projects:s"));
    buf_fini(&key);
    mem_destroy(mem);
}
