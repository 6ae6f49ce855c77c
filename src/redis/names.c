#include "redis/names.h"

#include "redis/key.h"

static enum status
change(struct redis_store *s, const struct store_queue *where, struct bytes tag,
       enum script script)
{
    struct buf key, member;
    struct call c;
    enum status st;

    buf_init(&key, s->config.mem);
    buf_init(&member, s->config.mem);
    key_of_names(&key, where->project, where->kind);
    buf_bytes(&member, where->name);
    buf_byte(&member, '\0');
    buf_bytes(&member, tag);
    call_begin_key(&c, s, buf_view(&key));
    call_word(&c, buf_view(&member));
    st = key.failed || member.failed ? ST_NO_MEMORY : call_run(&c, script, CALL_CHANGES);
    call_end(&c);
    buf_fini(&member);
    buf_fini(&key);
    return st;
}

enum status
names_enter(struct redis_store *s, const struct store_visit *visit,
            const struct store_queue *where, struct bytes tag)
{
    struct call c;
    enum status st = change(s, where, tag, SCRIPT_names_add);

    if (st != ST_OK)
        return st;
    call_begin(&c, s, visit, where);
    call_word(&c, tag);
    st = call_run(&c, SCRIPT_queue_listed, CALL_CHANGES);
    call_end(&c);
    return st;
}

enum status
names_leave(struct redis_store *s, const struct store_queue *where, struct bytes tag)
{
    return change(s, where, tag, SCRIPT_names_remove);
}
