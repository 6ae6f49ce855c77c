#include "redis/waiting.h"

#include "claimd/base/invariant.h"
#include "redis/call.h"

enum {
    LOOKS = 16,           /* lines that are looked after by one housekeeping */
    TOLD = 256,           /* who are told of a deletion before others have the lock */
    LOOK_AGAIN_MS = 1000, /* when Redis could not be asked */
    UNHEARD_MS = 2000,    /* and a ms a line: what was not heard waits so long at most */
    WATCH_MS = 60000,     /* scripts publish for so long after somebody has looked */
    MOVES = 256           /* of the wheel, while others want the lock */
};

static int64_t
clock_ms(const struct redis_store *s, const struct store_visit *visit)
{
    return redis_clock_ms(s, visit->now_ms);
}

/* ------------------------------------------------------------------ lines */

static bool
is_line_of(const struct hashnode *node, const void *key)
{
    return store_queue_equal(&container_of(node, const struct line, node)->where, key);
}

static uint64_t
hash_of(const struct waiting *w, const struct store_queue *where)
{
    return hash_bytes(&w->key, where->project) ^
           hash_mix(hash_bytes(&w->key, where->name) + (uint64_t)where->kind);
}

static struct line *
find_line(struct waiting *w, const struct store_queue *where)
{
    struct hashnode *node = hashmap_find(&w->lines, hash_of(w, where), is_line_of, where);

    return node == NULL ? NULL : container_of(node, struct line, node);
}

static struct line *
make_line(struct waiting *w, const struct store_queue *where, int64_t now_ms)
{
    struct line *line;

    if (w->wheel == NULL)
        w->wheel = wheel_new(w->lines.mem, now_ms);
    if (w->wheel == NULL || hashmap_reserve(&w->lines, 1) != ST_OK)
        return NULL;
    line = line_new(w->lines.mem, where, &w->stirred);
    if (line == NULL)
        return NULL;
    if (w->kept)
        line_stir(line);
    hashmap_insert(&w->lines, &line->node, hash_of(w, where));
    atomic_fetch_add(&w->count, 1);
    return line;
}

static void
free_if_empty(struct waiting *w, struct line *line)
{
    if (line->count > 0)
        return;
    hashmap_remove(&w->lines, &line->node);
    wheel_disarm(w->wheel, &line->look);
    if (list_linked(&line->link))
        list_remove(&line->link);
    mem_free(w->lines.mem, line);
    atomic_fetch_sub(&w->count, 1);
}

/* ------------------------------------------------------------------ looking */

/* How many messages are ready, and in how many ms that may change by itself (-1: never). */
static enum status
ask(struct redis_store *s, const struct store_visit *visit,
    const struct store_queue *where, size_t *ready, int64_t *wait_ms)
{
    enum { READY = 1, NOW, DUE };
    enum status st;

    do {
        struct call c;

        call_begin(&c, s, visit, where);
        call_number(&c, s->waiting.kept ? WATCH_MS : 0);
        st = call_run(&c, SCRIPT_queue_ready, CALL_NOTES);
        *ready = (size_t)call_integer(&c, READY);
        *wait_ms = call_integer(&c, DUE) == 0
                       ? -1
                       : call_integer(&c, DUE) - call_integer(&c, NOW);
        call_end(&c);
    } while (st == ST_AGAIN);
    return st;
}

/* Has the line looked after in so many ms (-1: when nothing was heard for long). */
static void
look_in(struct waiting *w, struct line *line, int64_t now_ms, int64_t wait_ms)
{
    const int64_t unheard_ms = UNHEARD_MS + (int64_t)atomic_load(&w->count);

    if (w->kept && (wait_ms < 0 || wait_ms > unheard_ms))
        wait_ms = unheard_ms;
    if (wait_ms < 0)
        wheel_disarm(w->wheel, &line->look);
    else
        wheel_arm(w->wheel, &line->look, now_ms + wait_ms);
}

static void
look(struct redis_store *s, const struct store_visit *visit,
     const struct store_queue *where)
{
    struct waiting *w = &s->waiting;
    struct bells bells = {.count = 0};
    int64_t wait_ms = -1;
    size_t ready = 0;
    struct line *line;

    if (ask(s, visit, where, &ready, &wait_ms) != ST_OK) {
        ready = 0;
        wait_ms = LOOK_AGAIN_MS;
    }
    lock_acquire(&w->lock);
    line = find_line(w, where);
    if (line != NULL) {
        look_in(w, line, clock_ms(s, visit), wait_ms);
        line->ready = ready;
        line_call(line, ready, &bells);
    }
    lock_release(&w->lock);
    bells_ring(&bells);
    if (w->kept)
        w->wake(w->arg); /* a time may have come earlier */
}

static bool
somebody_waits(struct waiting *w, const struct store_queue *where)
{
    bool waits;

    if (atomic_load(&w->count) == 0)
        return false;
    lock_acquire(&w->lock);
    waits = find_line(w, where) != NULL;
    lock_release(&w->lock);
    return waits;
}

void
waiting_stir(struct redis_store *s, const struct store_visit *visit,
             const struct store_queue *where)
{
    if (somebody_waits(&s->waiting, where))
        look(s, visit, where);
}

/* ------------------------------------------------------------------ standing in line */

size_t
waiting_reserved(struct redis_store *s, const struct store_visit *visit,
                 const struct store_queue *where, size_t *limit)
{
    struct waiting *w = &s->waiting;
    const struct line *line;
    size_t reserved = 0;

    if (visit->waiter == NULL || atomic_load(&w->count) == 0)
        return 0;
    lock_acquire(&w->lock);
    line = find_line(w, where);
    if (line != NULL)
        reserved = line_reserved(line, visit->waiter);
    lock_release(&w->lock);
    if (reserved < STORE_RESERVED)
        return reserved;
    *limit = 0;
    return 0;
}

enum status
waiting_found_nothing(struct redis_store *s, struct store_visit *visit,
                      const struct store_queue *where, size_t wants)
{
    struct waiting *w = &s->waiting;
    struct line *line;

    if (visit->waiter == NULL)
        return ST_OK;
    lock_acquire(&w->lock);
    line = find_line(w, where);
    if (line == NULL)
        line = make_line(w, where, clock_ms(s, visit));
    if (line != NULL) {
        visit->waiter->home = w;
        line_enter(line, visit->waiter, wants);
        visit->waits = true;
    }
    lock_release(&w->lock);
    if (line == NULL)
        return ST_NO_MEMORY;
    look(s, visit, where); /* what has come before it stood there called nobody */
    return ST_OK;
}

static void
leave(struct waiting *w, struct store_waiter *waiter)
{
    struct line *line = waiter->line;

    if (line == NULL)
        return;
    line_leave(line, waiter);
    free_if_empty(w, line);
}

void
waiting_served(struct redis_store *s, const struct store_visit *visit,
               const struct store_queue *where)
{
    struct waiting *w = &s->waiting;

    if (visit->waiter != NULL && visit->waiter->home != NULL) {
        lock_acquire(&w->lock);
        leave(w, visit->waiter);
        lock_release(&w->lock);
    }
    waiting_stir(s, visit, where);
}

/* Whoever stands behind it is called by what was heard last: perhaps for nothing. */
void
redis_waiter_leave(struct store *store, struct store_waiter *waiter)
{
    struct waiting *w = &redis_of(store)->waiting;
    struct bells bells = {.count = 0};
    struct line *line;

    if (waiter->home == NULL)
        return;
    lock_acquire(&w->lock);
    line = waiter->line;
    if (line != NULL && line->count > 1) {
        line_leave(line, waiter);
        line_call(line, line->ready, &bells);
    } else {
        leave(w, waiter);
    }
    lock_release(&w->lock);
    bells_ring(&bells);
}

void
waiting_dismiss(struct redis_store *s, const struct store_queue *where)
{
    struct waiting *w = &s->waiting;
    struct bells bells = {.count = 0};
    struct line *line;
    bool more = atomic_load(&w->count) > 0;

    while (more) {
        lock_acquire(&w->lock);
        line = find_line(w, where);
        for (int i = 0; line != NULL && line->count > 0 && i < TOLD; i++)
            line_dismiss(line, &bells);
        more = line != NULL && line->count > 0;
        if (line != NULL)
            free_if_empty(w, line);
        lock_release(&w->lock);
        bells_ring(&bells);
    }
}

/* ------------------------------------------------------------------ housekeeping */

/* A line whose time has come, whose look is disarmed; NULL: there is none. */
static struct line *
due_line(struct waiting *w, int64_t now_ms)
{
    struct deadline *due;

    if (w->wheel == NULL)
        return NULL;
    (void)wheel_advance(w->wheel, now_ms, MOVES);
    due = wheel_drain(w->wheel);
    return due == NULL ? NULL : container_of(due, struct line, look);
}

/* Copies the address of a line; NULL, and where there is no memory: false. */
static bool
copy_address(const struct line *line, struct buf *text, struct store_queue *where)
{
    size_t project;

    if (line == NULL)
        return false;
    buf_reset(text, SIZE_MAX);
    *where = line->where;
    buf_bytes(text, line->where.project);
    buf_bytes(text, line->where.name);
    if (text->failed)
        return false;
    project = where->project.len;
    where->project = bytes_of(buf_view(text).data, project);
    where->name = bytes_of(buf_view(text).data + project, where->name.len);
    return true;
}

static bool
take_due(struct waiting *w, int64_t now_ms, struct buf *text, struct store_queue *where)
{
    struct line *line;
    bool good;

    lock_acquire(&w->lock);
    line = due_line(w, now_ms);
    good = copy_address(line, text, where);
    if (line != NULL && !good)
        wheel_arm(w->wheel, &line->look, now_ms + LOOK_AGAIN_MS);
    lock_release(&w->lock);
    return good;
}

int64_t
waiting_housekeep(struct redis_store *s, int64_t now_ms)
{
    const struct store_visit visit = {.now_ms = now_ms};
    struct waiting *w = &s->waiting;
    struct store_queue where;
    struct buf text;

    buf_init(&text, s->config.mem);
    for (int i = 0; i < LOOKS && take_due(w, now_ms, &text, &where); i++)
        look(s, &visit, &where);
    buf_fini(&text);
    return waiting_next_ms(s);
}

static int64_t
next_look(const struct waiting *w)
{
    return w->wheel == NULL ? INT64_MAX : wheel_next_ms(w->wheel);
}

int64_t
waiting_next_ms(struct redis_store *s)
{
    struct waiting *w = &s->waiting;
    int64_t ms;

    if (atomic_load(&w->count) == 0)
        return INT64_MAX;
    lock_acquire(&w->lock);
    ms = next_look(w);
    lock_release(&w->lock);
    return ms;
}

/* ------------------------------------------------------------------ the keeper's */

void
waiting_keep(struct redis_store *s, void (*wake)(void *arg), void *arg)
{
    struct waiting *w = &s->waiting;

    w->wake = wake;
    w->arg = arg;
    w->kept = true;
}

bool
waiting_take_fresh(struct redis_store *s, struct buf *text, struct store_queue *where)
{
    struct waiting *w = &s->waiting;
    struct list *link;
    bool taken;

    lock_acquire(&w->lock);
    link = list_pop(&w->stirred);
    taken =
        link != NULL && copy_address(container_of(link, struct line, link), text, where);
    lock_release(&w->lock);
    return taken;
}

int64_t
waiting_call_due(struct redis_store *s, int64_t now_ms)
{
    struct waiting *w = &s->waiting;
    struct bells bells = {.count = 0};
    struct line *line;
    int64_t ms;

    lock_acquire(&w->lock);
    for (int i = 0; i < TOLD && (line = due_line(w, now_ms)) != NULL; i++) {
        line_call(line, 1, &bells);
        look_in(w, line, now_ms, -1);
    }
    ms = next_look(w);
    lock_release(&w->lock);
    bells_ring(&bells);
    return ms;
}

void
waiting_heard(struct redis_store *s, const struct store_queue *where, bool gone)
{
    struct waiting *w = &s->waiting;
    struct bells bells = {.count = 0};
    struct line *line;

    if (gone) {
        waiting_dismiss(s, where);
        return;
    }
    lock_acquire(&w->lock);
    line = find_line(w, where);
    if (line != NULL)
        line_call(line, 1, &bells);
    lock_release(&w->lock);
    bells_ring(&bells);
}

/* ------------------------------------------------------------------ life */

void
waiting_init(struct waiting *w, struct mem *mem, const struct hash_key *key)
{
    *w = (struct waiting){.key = *key};
    lock_init(&w->lock);
    list_init(&w->stirred);
    hashmap_init(&w->lines, mem);
}

void
waiting_fini(struct waiting *w)
{
    ENSURE(w->lines.count == 0);
    wheel_free(w->wheel);
    hashmap_fini(&w->lines);
    lock_fini(&w->lock);
}
