#include "redis/due.h"

#include "claimd/base/invariant.h"

void
due_init(struct due_lists *lists, enum due_kind kind, int64_t pause_ms)
{
    *lists = (struct due_lists){.kind = kind, .pause_ms = pause_ms};
    lock_init(&lists->lock);
}

void
due_fini(struct due_lists *lists)
{
    lock_fini(&lists->lock);
}

/* Reads an entry of a list: 'q' or 't', length of the project, ':', project, name. */
static bool
due_member_read(struct bytes text, struct store_queue *out)
{
    struct bytes rest = text, number;
    uint64_t len;

    if (text.len < 3)
        return false;
    out->kind = text.data[0] == 't' ? STORE_TOPIC : STORE_QUEUE;
    rest.data++;
    rest.len--;
    number = bytes_cut(&rest, ':');
    if (!bytes_to_u64(number, &len) || !bytes_present(rest) || len > rest.len)
        return false;
    out->project = bytes_of(rest.data, (size_t)len);
    out->name = bytes_of(rest.data + len, rest.len - (size_t)len);
    return true;
}

/* Begins a call about a list, and about a queue in it (NULL: no queue). */
static struct call
due_list_call(struct redis_store *s, const struct due_lists *lists,
              const struct store_op *op, unsigned list_no,
              const struct store_queue *where)
{
    struct buf key, member;
    struct call c;

    buf_init(&key, s->config.mem);
    key_of_due(&key, lists->kind, list_no);
    c = call_begin_key(s, &key);
    call_time(&c, op);
    if (where == NULL)
        return c;
    buf_init(&member, s->config.mem);
    buf_printf(&member, "%c%zu:", where->kind == STORE_TOPIC ? 't' : 'q',
               where->project.len);
    buf_bytes(&member, where->project);
    buf_bytes(&member, where->name);
    call_buf(&c, &member);
    return c;
}

/* Polls the list at this time, or earlier. */
static void
poll_sooner(struct due_lists *lists, unsigned list_no, int64_t poll_ms)
{
    lock_acquire(&lists->lock);
    if (poll_ms < lists->poll_ms[list_no])
        lists->poll_ms[list_no] = poll_ms;
    lock_release(&lists->lock);
}

void
due_add(struct redis_store *s, struct due_lists *lists, const struct store_op *op,
        const struct store_queue *where, int64_t ms)
{
    enum { NOW = 1 };
    int64_t poll_ms = redis_clock_ms(s, op->now_ms);
    struct buf key;
    unsigned list_no;
    struct call c;

    buf_init(&key, s->config.mem);
    key_of_queue(&key, where);
    list_no = key.failed ? 0 : slot_of(buf_view(&key)) % DUE_LISTS;
    buf_fini(&key);
    c = due_list_call(s, lists, op, list_no, where);
    call_number(&c, ms);
    if (call_run(&c, SCRIPT_due_add, CALL_BEST_EFFORT) == ST_OK &&
        ms > call_integer(&c, NOW))
        poll_ms += ms - call_integer(&c, NOW);
    call_end(&c);
    poll_sooner(lists, list_no, poll_ms);
}

unsigned
due_next_list(struct due_lists *lists, int64_t *poll_ms)
{
    unsigned least = 0;

    lock_acquire(&lists->lock);
    for (unsigned i = 1; i < DUE_LISTS; i++)
        if (lists->poll_ms[i] < lists->poll_ms[least])
            least = i;
    *poll_ms = lists->poll_ms[least];
    lock_release(&lists->lock);
    return least;
}

void
due_pause(struct due_lists *lists, int64_t until_ms)
{
    lock_acquire(&lists->lock);
    for (unsigned i = 0; i < DUE_LISTS; i++)
        if (lists->poll_ms[i] < until_ms)
            lists->poll_ms[i] = until_ms;
    lock_release(&lists->lock);
}

enum status
due_poll(struct redis_store *s, struct due_lists *lists, const struct store_op *op,
         unsigned list_no, due_work_fn *work)
{
    enum { NOW = 1, NEXT, QUEUE, UNTIL };
    struct store_queue where;
    int64_t wait_ms = lists->pause_ms, work_ms = -1;
    struct call c;
    enum status st;

    ENSURE(list_no < DUE_LISTS);
    lock_acquire(&lists->lock);
    lists->poll_ms[list_no] = redis_clock_ms(s, op->now_ms) + wait_ms;
    lock_release(&lists->lock);
    c = due_list_call(s, lists, op, list_no, NULL);
    call_number(&c, DUE_LEASE_MS);
    st = call_run(&c, SCRIPT_due_lease, CALL_BEST_EFFORT);
    if (st != ST_OK)
        wait_ms = DUE_RETRY_MS;
    else if (call_integer(&c, NEXT) > 0 &&
             call_integer(&c, NEXT) - call_integer(&c, NOW) < wait_ms)
        wait_ms = call_integer(&c, NEXT) - call_integer(&c, NOW);
    if (st == ST_OK && due_member_read(call_item(&c, QUEUE), &where)) {
        st = work(s, op, &where, &work_ms);
        if (st == ST_OK) {
            struct call set = due_list_call(s, lists, op, list_no, &where);

            call_number(&set, call_integer(&c, UNTIL));
            call_number(&set, work_ms);
            (void)call_finish(&set, SCRIPT_due_set, CALL_BEST_EFFORT);
        }
        wait_ms = 0;
    } else if (st == ST_OK) {
        st = ST_NOT_FOUND;
    }
    call_end(&c);
    poll_sooner(lists, list_no, redis_clock_ms(s, op->now_ms) + wait_ms);
    return st;
}
