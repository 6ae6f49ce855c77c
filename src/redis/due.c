#include "redis/due.h"

#include "claimd/base/invariant.h"

void
due_init(struct due_lists *lists, enum due_kind kind, int64_t pause_ms, int64_t avoid_ms)
{
    memset(lists, 0, sizeof(*lists));
    lists->kind = kind;
    lists->pause_ms = pause_ms;
    lists->avoid_ms = avoid_ms;
    lock_init(&lists->lock);
}

void
due_fini(struct due_lists *lists)
{
    lock_fini(&lists->lock);
}

/* The first characters of entries, by kind. */
static const char kind_letters[STORE_KINDS] = {
    [STORE_QUEUE] = 'q', [STORE_TOPIC] = 't', [STORE_SCHEDULES] = 's'};

/* Reads an entry of a list: a letter, length of the project, ':', project, name. */
static bool
due_member_read(struct bytes text, struct store_queue *out)
{
    struct bytes rest = text, number;
    const char *letter;
    uint64_t len;

    if (text.len < 3)
        return false;
    letter = memchr(kind_letters, text.data[0], sizeof(kind_letters));
    if (letter == NULL)
        return false;
    out->kind = (enum store_kind)(letter - kind_letters);
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
    buf_printf(&member, "%c%zu:", kind_letters[where->kind], where->project.len);
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

/* ------------------------------------------------------------------ avoided nodes */

static unsigned
node_of(struct redis_store *s, uint16_t slot)
{
    const uint16_t node = map_find(&s->cluster.map, slot);

    return node < MAP_NODES ? node : DUE_NODES - 1;
}

/* True if the node of the slot has failed a short time ago. Other nodes must not wait for
 * it. */
static bool
is_avoided(struct redis_store *s, struct due_lists *lists, enum due_use use,
           uint16_t slot, int64_t now_ms)
{
    const unsigned node = node_of(s, slot);
    bool avoided;

    lock_acquire(&lists->lock);
    avoided = lists->avoided_ms[use][node] > now_ms;
    lock_release(&lists->lock);
    return avoided;
}

static void
avoid(struct redis_store *s, struct due_lists *lists, enum due_use use, uint16_t slot,
      int64_t now_ms)
{
    const unsigned node = node_of(s, slot);

    lock_acquire(&lists->lock);
    lists->avoided_ms[use][node] = now_ms + lists->avoid_ms;
    lock_release(&lists->lock);
}

static uint16_t
slot_of_queue(struct redis_store *s, const struct store_queue *where)
{
    uint16_t slot;
    struct buf key;

    buf_init(&key, s->config.mem);
    key_of_queue(&key, where);
    slot = key.failed ? 0 : slot_of(buf_view(&key));
    buf_fini(&key);
    return slot;
}

enum status
due_add(struct redis_store *s, struct due_lists *lists, const struct store_op *op,
        const struct store_queue *where, int64_t ms)
{
    enum { NOW = 1 };
    const int64_t now_ms = redis_clock_ms(s, op->now_ms);
    const unsigned list_no = slot_of_queue(s, where) % DUE_LISTS;
    struct call c = due_list_call(s, lists, op, list_no, where);
    enum status st = ST_UNAVAILABLE;
    int64_t wait_ms = 0;

    call_number(&c, ms);
    if (!is_avoided(s, lists, DUE_LIST, c.request.slot, now_ms)) {
        st = call_run(&c, SCRIPT_due_add, CALL_BEST_EFFORT);
        if (st != ST_OK)
            avoid(s, lists, DUE_LIST, c.request.slot, now_ms);
        else if (ms > call_integer(&c, NOW))
            wait_ms = ms - call_integer(&c, NOW);
    }
    call_end(&c);
    poll_sooner(lists, list_no, now_ms + wait_ms);
    return st;
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

/* The words of the response of due_lease. */
enum { LEASE_NOW = 1, LEASE_NEXT, LEASE_QUEUE, LEASE_UNTIL };

/* Works on a leased queue, and sets its next time. If that is impossible, its lease ends,
 * or it waits as long as its node is avoided. */
static enum status
work_on(struct redis_store *s, struct due_lists *lists, const struct store_op *op,
        unsigned list_no, const struct call *lease, due_work_fn *work)
{
    int64_t next_ms = call_integer(lease, LEASE_NOW) + lists->avoid_ms;
    enum status st = ST_UNAVAILABLE;
    struct store_queue where;
    struct call set;
    uint16_t slot;

    if (!due_member_read(call_item(lease, LEASE_QUEUE), &where))
        return ST_NOT_FOUND;
    slot = slot_of_queue(s, &where);
    if (!is_avoided(s, lists, DUE_QUEUE, slot, redis_clock_ms(s, op->now_ms))) {
        st = work(s, op, &where, &next_ms);
        if (st != ST_OK)
            avoid(s, lists, DUE_QUEUE, slot, redis_clock_ms(s, op->now_ms));
    }
    if (st != ST_OK && lists->avoid_ms == 0)
        return st;
    set = due_list_call(s, lists, op, list_no, &where);
    call_number(&set, call_integer(lease, LEASE_UNTIL));
    call_number(&set, next_ms);
    (void)call_finish(&set, SCRIPT_due_set, CALL_BEST_EFFORT);
    return st;
}

enum status
due_poll(struct redis_store *s, struct due_lists *lists, const struct store_op *op,
         unsigned list_no, due_work_fn *work)
{
    const int64_t now_ms = redis_clock_ms(s, op->now_ms);
    int64_t wait_ms = DUE_RETRY_MS;
    struct call c;
    enum status st = ST_UNAVAILABLE;

    ENSURE(list_no < DUE_LISTS);
    lock_acquire(&lists->lock);
    lists->poll_ms[list_no] = now_ms + lists->pause_ms;
    lock_release(&lists->lock);
    c = due_list_call(s, lists, op, list_no, NULL);
    call_number(&c, DUE_LEASE_MS);
    if (!is_avoided(s, lists, DUE_LIST, c.request.slot, now_ms)) {
        st = call_run(&c, SCRIPT_due_lease, CALL_BEST_EFFORT);
        if (st != ST_OK)
            avoid(s, lists, DUE_LIST, c.request.slot, now_ms);
    }
    if (st == ST_OK) {
        const int64_t next_ms = call_integer(&c, LEASE_NEXT);

        wait_ms = lists->pause_ms;
        if (next_ms > 0 && next_ms - call_integer(&c, LEASE_NOW) < wait_ms)
            wait_ms = next_ms - call_integer(&c, LEASE_NOW);
        st = work_on(s, lists, op, list_no, &c, work);
        if (st != ST_NOT_FOUND)
            wait_ms = 0; /* another queue may be due */
    }
    call_end(&c);
    poll_sooner(lists, list_no, redis_clock_ms(s, op->now_ms) + wait_ms);
    return st;
}
