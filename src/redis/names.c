#include "redis/names.h"

#include "redis/key.h"

/* One change of one list. */
static enum status
change(struct redis_store *s, struct bytes key, struct bytes member, enum script script)
{
    struct call c;
    enum status st;

    call_begin_key(&c, s, key);
    call_word(&c, member);
    st = call_run(&c, script, CALL_CHANGES);
    call_end(&c);
    return st;
}

static enum status
change_names(struct redis_store *s, const struct store_queue *where, struct bytes tag,
             enum script script)
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
        st = change(s, buf_view(&key), buf_view(&member), script);
    buf_fini(&member);
    buf_fini(&key);
    return st;
}

/* The project stays in the list when its queues go: whoever lists looks whether it has any. */
static enum status
enter_project(struct redis_store *s, const struct store_queue *where)
{
    struct buf key;
    enum status st = ST_NO_MEMORY;

    buf_init(&key, s->config.mem);
    key_of_projects(&key, where->kind);
    if (!key.failed)
        st = change(s, buf_view(&key), where->project, SCRIPT_names_add);
    buf_fini(&key);
    return st;
}

enum status
names_enter(struct redis_store *s, const struct store_visit *visit,
            const struct store_queue *where, struct bytes tag)
{
    struct call c;
    bool there;
    enum status st = change_names(s, where, tag, SCRIPT_names_add);

    if (st == ST_OK) /* also if it has others: whoever made those may have died here */
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
    return change_names(s, where, tag, SCRIPT_names_remove);
}

enum status
names_page(struct redis_store *s, struct bytes key, struct bytes from, size_t count,
           struct names *out)
{
    enum { TOTAL = 1 };
    struct call c;
    enum status st;

    *out = (struct names){.store = s};
    call_begin_key(&c, s, key);
    call_word(&c, bytes_present(from) ? from : bytes_str("-"));
    call_limit(&c, count);
    st = call_run(&c, SCRIPT_names_page, CALL_LOOKS);
    if (st == ST_OK) {
        out->total = (uint64_t)call_integer(&c, TOTAL);
        out->count = call_count(&c) - TOTAL - 1;
        out->answer = call_take_answer(&c);
    }
    call_end(&c);
    return st;
}

enum status
names_count(struct redis_store *s, struct bytes project, enum store_kind kind,
            uint64_t *count)
{
    enum status st = ST_NO_MEMORY;
    struct names names = {.store = s};
    struct buf key;

    buf_init(&key, s->config.mem);
    key_of_names(&key, project, kind);
    if (!key.failed)
        st = names_page(s, buf_view(&key), BYTES_NONE, 0, &names);
    *count = names.total;
    names_release(&names);
    buf_fini(&key);
    return st;
}

struct bytes
names_at(const struct names *names, size_t i)
{
    const redisReply *name = names->answer->element[i + 2];

    return bytes_of(name->str, (size_t)name->len);
}

void
names_release(struct names *names)
{
    redis_answer_free(names->store, names->answer);
    *names = (struct names){.store = names->store};
}

/* Takes a name off, if the queue that it was entered for has gone. */
static enum status
tidy_one(struct redis_store *s, const struct store_visit *visit,
         const struct store_queue *where, struct bytes tag)
{
    bool there;
    struct call c;
    enum status st;

    call_begin(&c, s, visit, where);
    call_word(&c, tag);
    st = call_run(&c, SCRIPT_queue_listed, CALL_CHANGES);
    there = call_integer(&c, 1) != 0;
    call_end(&c);
    return st != ST_OK || there ? st : names_leave(s, where, tag);
}

enum status
names_tidy(struct redis_store *s, const struct store_visit *visit,
           const struct store_queue *where)
{
    enum { MOST = 16 };
    enum status st = ST_NO_MEMORY;
    struct names names = {.store = s};
    struct buf key, from;

    buf_init(&key, s->config.mem);
    buf_init(&from, s->config.mem);
    key_of_names(&key, where->project, where->kind);
    buf_byte(&from, '[');
    buf_bytes(&from, where->name);
    buf_byte(&from, '\0');
    if (!key.failed && !from.failed)
        st = names_page(s, buf_view(&key), buf_view(&from), MOST, &names);
    for (size_t i = 0; st == ST_OK && i < names.count; i++) {
        struct bytes tag = names_at(&names, i), name = bytes_cut(&tag, '\0');

        if (!bytes_equal(name, where->name))
            break;
        st = tidy_one(s, visit, where, tag);
    }
    names_release(&names);
    buf_fini(&from);
    buf_fini(&key);
    return st;
}
