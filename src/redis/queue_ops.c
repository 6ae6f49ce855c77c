/* The store's operations on queues. */
#include "redis/key.h"
#include "redis/letter.h"
#include "redis/metadata.h"
#include "redis/names.h"
#include "redis/show.h"

enum status
redis_queue_create(struct store *store, struct store_visit *visit,
                   const struct store_queue *where, const struct store_metadata *metadata,
                   bool *created)
{
    enum { NEW = 1, ITS_TAG, UNLISTED };
    struct redis_store *s = redis_of(store);
    char tag[TAG_DIGITS];
    struct call c;
    enum status st = redis_digits(s, tag, sizeof(tag));

    if (st != ST_OK)
        return st;
    call_begin(&c, s, visit, where);
    call_word(&c, bytes_of(tag, sizeof(tag)));
    metadata_add(&c, metadata);
    st = call_run(&c, SCRIPT_queue_create, CALL_CHANGES);
    if (st == ST_OK) {
        *created = call_integer(&c, NEW) != 0;
        if (call_integer(&c, UNLISTED) != 0)
            st = names_enter(s, visit, where, call_item(&c, ITS_TAG));
    }
    call_end(&c);
    return st;
}

enum status
redis_queue_update(struct store *store, struct store_visit *visit,
                   const struct store_queue *where, uint64_t version,
                   const struct store_metadata *metadata)
{
    struct call c;
    enum status st;

    call_begin(&c, redis_of(store), visit, where);
    call_number(&c, (int64_t)version);
    metadata_add(&c, metadata);
    st = call_run(&c, SCRIPT_queue_update, CALL_CHANGES);
    call_end(&c);
    return st;
}

/* ---------------------------------------------------------------------- views */

/* The views of a page; each has a text of its own. */
struct shown_queues {
    size_t room;
    struct store_queue_view views[];
};

/* A view with a text of its own: name, metadata, dead letter queue, one behind the other. */
static enum status
fill_view(struct redis_store *s, struct store_queue_view *view, struct bytes name,
          const struct call *c)
{
    enum { VERSION = 1, METADATA };
    struct store_metadata found = {.settings = STORE_SETTINGS_INIT};
    char *text;

    if (c != NULL)
        metadata_read(c, METADATA, &found);
    text = mem_alloc(s->config.mem,
                     name.len + found.json.len + found.settings.dead_letter.len + 1);
    if (text == NULL)
        return ST_NO_MEMORY;
    *view = (struct store_queue_view){.pin = text, .metadata = found};
    view->name = bytes_lay(&text, name);
    if (c == NULL)
        return ST_OK;
    view->version = (uint64_t)call_integer(c, VERSION);
    view->metadata.json = bytes_lay(&text, found.json);
    if (bytes_present(found.settings.dead_letter))
        view->metadata.settings.dead_letter =
            bytes_lay(&text, found.settings.dead_letter);
    return ST_OK;
}

static enum status
open_queues(struct redis_store *s, size_t room, struct store_queues *out)
{
    struct shown_queues *shown = mem_calloc(
        s->config.mem, 1, sizeof(*shown) + (room + 1) * sizeof(struct store_queue_view));

    if (shown == NULL)
        return ST_NO_MEMORY;
    *out = (struct store_queues){.store = &s->store, .queues = shown->views};
    return ST_OK;
}

void
redis_queues_release(const struct store *store, struct store_queues *queues)
{
    struct redis_store *s = redis_of((struct store *)(uintptr_t)store);

    for (size_t i = 0; i < queues->count; i++)
        mem_free(s->config.mem, queues->queues[i].pin);
    mem_free(s->config.mem, container_of(queues->queues, struct shown_queues, views[0]));
}

/* Adds a queue with its metadata. ST_NOT_FOUND. */
static enum status
add_queue(struct redis_store *s, struct store_visit *visit,
          const struct store_queue *where, struct store_queues *out)
{
    struct call c;
    enum status st;

    call_begin(&c, s, visit, where);
    st = call_run(&c, SCRIPT_queue_get, CALL_LOOKS);
    if (st == ST_OK)
        st = fill_view(s, &out->queues[out->count], where->name, &c);
    out->count += st == ST_OK;
    call_end(&c);
    return st;
}

enum status
redis_queue_get(struct store *store, struct store_visit *visit,
                const struct store_queue *where, struct store_queues *out)
{
    struct redis_store *s = redis_of(store);
    enum status st = open_queues(s, 1, out);

    if (st == ST_OK) {
        st = add_queue(s, visit, where, out);
        if (st != ST_OK)
            store_queues_release(out);
    }
    return st;
}

/* ---------------------------------------------------------------------- listing */

/* "(NAME", and what stands behind each member of that name, for ZRANGEBYLEX. */
static struct bytes
write_from(struct buf *out, struct bytes marker, struct bytes behind)
{
    if (!bytes_present(marker))
        return BYTES_NONE;
    buf_byte(out, '(');
    buf_bytes(out, marker);
    buf_bytes(out, behind);
    return buf_view(out);
}

/* The names of a project's queues behind a marker, and how many it has. */
static enum status
read_names(struct redis_store *s, const struct store_page *page, struct names *names)
{
    enum status st = ST_NO_MEMORY;
    struct buf key, from;
    struct bytes begin;

    buf_init(&key, s->config.mem);
    buf_init(&from, s->config.mem);
    key_of_names(&key, page->project, page->kind);
    begin = write_from(&from, page->marker, bytes_of("\0\xff", 2));
    if (!key.failed && !from.failed)
        st = names_page(s, buf_view(&key), begin, page->limit, names);
    buf_fini(&from);
    buf_fini(&key);
    return st;
}

static enum status
add_named(struct redis_store *s, struct store_visit *visit, const struct store_page *page,
          struct bytes member, struct store_queues *out)
{
    const struct store_queue where = {
        .project = page->project, .name = bytes_cut(&member, '\0'), .kind = page->kind};
    enum status st;

    if (out->count > 0 && bytes_equal(out->queues[out->count - 1].name, where.name))
        return ST_OK; /* its predecessor was not taken off */
    if (page->with_metadata) {
        st = add_queue(s, visit, &where, out);
        if (st != ST_NOT_FOUND)
            return st;
        (void)names_leave(s, &where, member); /* nobody did */
        return ST_OK;
    }
    st = fill_view(s, &out->queues[out->count], where.name, NULL);
    out->count += st == ST_OK;
    return st;
}

enum status
redis_queue_list(struct store *store, struct store_visit *visit,
                 const struct store_page *page, struct store_queues *out)
{
    struct redis_store *s = redis_of(store);
    enum status st = open_queues(s, page->limit, out);
    struct names names = {.store = s};

    if (st != ST_OK)
        return st;
    st = read_names(s, page, &names);
    for (size_t i = 0; st == ST_OK && i < names.count; i++)
        st = add_named(s, visit, page, names_at(&names, i), out);
    if (st == ST_OK) {
        out->total = names.total;
        out->more = names.count == page->limit;
    } else {
        store_queues_release(out);
    }
    names_release(&names);
    return st;
}

/* ---------------------------------------------------------------------- projects */

/* Adds those of a page of the list that have queues, as far as there is room. */
static enum status
add_projects(struct redis_store *s, const struct store_page *page,
             const struct names *names, struct store_queues *out)
{
    enum status st = ST_OK;

    for (size_t i = 0; st == ST_OK && i < names->count; i++) {
        uint64_t count;

        st = names_count(s, names_at(names, i), page->kind, &count);
        if (st != ST_OK || count == 0)
            continue;
        st = fill_view(s, &out->queues[out->count], names_at(names, i), NULL);
        out->count += st == ST_OK;
    }
    return st;
}

/* Goes on with the list until there are enough that have queues. */
static enum status
read_projects(struct redis_store *s, const struct store_page *page, struct buf *key,
              struct buf *from, struct store_queues *out)
{
    struct bytes begin = write_from(from, page->marker, bytes_str(""));
    enum status st = ST_OK;

    out->more = true;
    while (st == ST_OK && out->more && (out->count < page->limit || page->limit == 0)) {
        const size_t room = page->limit - out->count;
        struct names names;

        if (key->failed || from->failed)
            return ST_NO_MEMORY;
        st = names_page(s, buf_view(key), begin, room, &names);
        if (st != ST_OK)
            return st;
        out->total = names.total;
        st = add_projects(s, page, &names, out);
        out->more = names.count == room && room > 0;
        if (out->more) {
            buf_reset(from, SIZE_MAX);
            begin = write_from(from, names_at(&names, room - 1), bytes_str(""));
        }
        names_release(&names);
    }
    return st;
}

enum status
redis_project_list(struct store *store, struct store_visit *visit,
                   const struct store_page *page, struct store_queues *out)
{
    struct redis_store *s = redis_of(store);
    enum status st = open_queues(s, page->limit, out);
    struct buf key, from;

    (void)visit; /* queues do not expire */
    if (st != ST_OK)
        return st;
    buf_init(&key, s->config.mem);
    buf_init(&from, s->config.mem);
    key_of_projects(&key, page->kind);
    st = read_projects(s, page, &key, &from, out);
    if (st != ST_OK)
        store_queues_release(out);
    buf_fini(&from);
    buf_fini(&key);
    return st;
}

/* ---------------------------------------------------------------------- statistics */

enum status
redis_queue_stats(struct store *store, struct store_visit *visit,
                  const struct store_queue *where, struct store_stats *out)
{
    enum { NOW = 1, TAG, HELD, TOTAL, OLD, OLD_HEAD, NEW, NEW_HEAD };
    struct call c;
    enum status st;

    *out = (struct store_stats){0};
    call_begin(&c, redis_of(store), visit, where);
    st = call_run(&c, SCRIPT_queue_stats, CALL_LOOKS);
    if (st == ST_OK && call_has(&c, NEW_HEAD)) {
        const int64_t now_ms = call_integer(&c, NOW);

        out->claimed = (uint64_t)call_integer(&c, HELD);
        out->total = (uint64_t)call_integer(&c, TOTAL);
        for (int i = 0; i < 2; i++) {
            struct store_end *end = i == 0 ? &out->oldest : &out->newest;
            const size_t at = i == 0 ? OLD : NEW;

            const struct message_head head = show_head(&c, at + 1);

            show_id(call_item(&c, TAG), (uint64_t)call_integer(&c, at), head.id,
                    &end->id);
            end->created_ms = head.posted_ms;
            end->age_s = (now_ms - end->created_ms) / 1000;
        }
    }
    call_end(&c);
    return st;
}

/* ---------------------------------------------------------------------- removal */

enum status
redis_queue_delete(struct store *store, struct store_visit *visit,
                   const struct store_queue *where)
{
    enum { TAG = 1, LETTERS, ROUNDS = 16 };
    struct redis_store *s = redis_of(store);
    enum status st = ST_AGAIN;

    for (int round = 0; st == ST_AGAIN && round < ROUNDS; round++) {
        struct call c;

        call_begin_all(&c, s, visit, where);
        st = call_run(&c, SCRIPT_queue_delete, CALL_CHANGES);
        if (st == ST_AGAIN) {
            enum status driven = letters_drive(&c, LETTERS, visit, where);

            st = driven == ST_OK ? ST_AGAIN : driven;
        } else if (st == ST_OK && call_has(&c, TAG)) {
            st = names_leave(s, where, call_item(&c, TAG));
            done_count(&s->done, STORE_COUNT_QUEUES_GONE, 1);
            waiting_dismiss(s, where);
        } else if (st == ST_OK) {
            st = names_tidy(s, visit, where); /* perhaps it could not be taken off */
        }
        call_end(&c);
    }
    return st == ST_AGAIN ? ST_UNAVAILABLE : st;
}

enum status
redis_queue_purge(struct store *store, struct store_visit *visit,
                  const struct store_queue *where, enum store_purge what)
{
    struct call c;
    enum status st;

    call_begin(&c, redis_of(store), visit, where);
    call_number(&c, (int64_t)what);
    st = call_run(&c, SCRIPT_queue_purge, CALL_CHANGES);
    call_end(&c);
    return st;
}
