#include "redis/names.h"

#include "redis/key.h"

/* One change of one list; *count: how many there are then. */
static enum status
change(struct redis_store *s, struct bytes key, struct bytes member, enum script script,
       uint64_t *count)
{
    struct call c;
    enum status st;

    call_begin_key(&c, s, key);
    call_word(&c, member);
    st = call_run(&c, script, CALL_CHANGES);
    *count = (uint64_t)call_integer(&c, 1);
    call_end(&c);
    return st;
}

static enum status
change_names(struct redis_store *s, const struct store_queue *where, struct bytes tag,
             enum script script, uint64_t *count)
{
    struct buf key, member;
    enum status st = ST_NO_MEMORY;

    buf_init(&key, s->config.mem);
    buf_init(&member, s->config.mem);
    key_of_names(&key, where->project, where->kind);
    buf_bytes(&member, where->name);
    buf_byte(&member, '\0');
    buf_bytes(&member, tag);
    if (!key.failed && !member.failed)
        st = change(s, buf_view(&key), buf_view(&member), script, count);
    buf_fini(&member);
    buf_fini(&key);
    return st;
}

/* The project stays in the list when its queues go: whoever lists looks whether it has any. */
static enum status
enter_project(struct redis_store *s, const struct store_queue *where)
{
    struct buf key;
    uint64_t count;
    enum status st = ST_NO_MEMORY;

    buf_init(&key, s->config.mem);
    key_of_projects(&key, where->kind);
    if (!key.failed)
        st = change(s, buf_view(&key), where->project, SCRIPT_names_add, &count);
    buf_fini(&key);
    return st;
}

enum status
names_enter(struct redis_store *s, const struct store_visit *visit,
            const struct store_queue *where, struct bytes tag)
{
    uint64_t count;
    struct call c;
    enum status st = change_names(s, where, tag, SCRIPT_names_add, &count);

    bool there;

    if (st == ST_OK && count == 1)
        st = enter_project(s, where);
    if (st != ST_OK)
        return ST_UNCONFIRMED;
    call_begin(&c, s, visit, where);
    call_word(&c, tag);
    st = call_run(&c, SCRIPT_queue_listed, CALL_CHANGES);
    there = call_integer(&c, 1) != 0;
    call_end(&c);
    if (st != ST_OK)
        return ST_UNCONFIRMED;
    if (!there)
        return names_leave(s, where, tag);
    done_count(&s->done, STORE_COUNT_QUEUES_MADE, 1);
    return ST_OK;
}

enum status
names_leave(struct redis_store *s, const struct store_queue *where, struct bytes tag)
{
    uint64_t count;

    return change_names(s, where, tag, SCRIPT_names_remove, &count);
}

enum status
names_page(struct redis_store *s, struct bytes key, struct bytes from, size_t count,
           redisReply **names, uint64_t *total)
{
    char limit[DECIMAL_CAP];
    const struct bytes card[] = {BYTES_LIT("ZCARD"), key};
    const struct bytes list[] = {BYTES_LIT("ZRANGEBYLEX"),
                                 key,
                                 bytes_present(from) ? from : bytes_str("-"),
                                 BYTES_LIT("+"),
                                 BYTES_LIT("LIMIT"),
                                 BYTES_LIT("0"),
                                 {limit, decimal_write(limit, count)}};
    struct cluster_client *client = cluster_take(&s->cluster);
    redisReply *answer = NULL;
    struct reason why;
    enum status st;

    if (client == NULL)
        return ST_NO_MEMORY;
    st = cluster_say(client, slot_of(key), card, 2, &answer, &why);
    if (st == ST_OK)
        *total = (uint64_t)answer->integer;
    redis_answer_free(s, answer);
    if (st == ST_OK && names != NULL)
        st = cluster_say(client, slot_of(key), list, sizeof(list) / sizeof(list[0]),
                         names, &why);
    cluster_give(client);
    return st;
}
