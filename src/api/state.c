#include "api/state.h"

#include "api/wire/metadata.h"
#include "api/wire/state.h"
#include "claimd/json/string.h"

#include <inttypes.h>
#include <stdlib.h>

/* Names asked for at once. */
enum { PAGE = 64 };

/* ------------------------------------------------------------------ names */

/* What was found, in the order of the names; from the arena. */
struct found {
    struct bytes *names;
    size_t count;
};

/* The next page of names, behind the last one that was found. */
static enum status
add_page(struct state_keeper *k, struct found *found, const struct store_queues *page)
{
    struct bytes *all =
        arena_array(k->arena, found->count + page->count + 1, sizeof(*all));

    if (all == NULL)
        return ST_NO_MEMORY;
    if (found->count > 0)
        memcpy(all, found->names, found->count * sizeof(*all));
    for (size_t i = 0; i < page->count; i++) {
        all[found->count] = arena_copy(k->arena, page->queues[i].name);
        if (!bytes_present(all[found->count]))
            return ST_NO_MEMORY;
        found->count++;
    }
    found->names = all;
    return ST_OK;
}

typedef enum status list_fn(struct store *s, struct store_visit *visit,
                            const struct store_page *page, struct store_queues *out);

static enum status
find_names(struct state_keeper *k, list_fn *list, struct bytes project,
           enum store_kind kind, struct found *found)
{
    struct store_page page = {.project = project, .kind = kind, .limit = PAGE};
    enum status st;
    bool more;

    *found = (struct found){NULL, 0};
    do {
        struct store_queues names = STORE_QUEUES_INIT;

        if (found->count > 0)
            page.marker = found->names[found->count - 1];
        page.limit = PAGE + found->count; /* so that copying them costs O(n) */
        st = list(k->store, k->visit, &page, &names);
        if (st == ST_OK)
            st = add_page(k, found, &names);
        more = names.more;
        store_queues_release(&names);
    } while (st == ST_OK && more);
    return st;
}

static int
compare_bytes(const void *a, const void *b)
{
    return bytes_compare(*(const struct bytes *)a, *(const struct bytes *)b);
}

/* Those that have queues or topics. */
static enum status
find_projects(struct state_keeper *k, struct found *out)
{
    struct found queues, topics;
    enum status st =
        find_names(k, k->store->ops->project_list, BYTES_NONE, STORE_QUEUE, &queues);
    size_t count = 0;

    if (st == ST_OK)
        st = find_names(k, k->store->ops->project_list, BYTES_NONE, STORE_TOPIC, &topics);
    if (st != ST_OK)
        return st;
    out->names =
        arena_array(k->arena, queues.count + topics.count + 1, sizeof(struct bytes));
    if (out->names == NULL)
        return ST_NO_MEMORY;
    for (size_t i = 0; i < queues.count; i++)
        out->names[count++] = queues.names[i];
    for (size_t i = 0; i < topics.count; i++)
        out->names[count++] = topics.names[i];
    qsort(out->names, count, sizeof(struct bytes), compare_bytes);
    out->count = 0;
    for (size_t i = 0; i < count; i++)
        if (i == 0 || !bytes_equal(out->names[i], out->names[out->count - 1]))
            out->names[out->count++] = out->names[i];
    return ST_OK;
}

/* ------------------------------------------------------------------ albums */

/* A queue as it was: its pieces, to be released. */
struct album {
    struct store_queue where;
    struct store_image *pieces; /* from the arena */
    size_t count;
    struct album *next;
};

/* The next piece, however much is due before. */
static enum status
take_piece(struct state_keeper *k, const struct store_queue *where,
           struct store_image *image)
{
    enum status st;

    do
        st = store_queue_image(k->store, k->visit, where, image);
    while (st == ST_AGAIN);
    return st;
}

static struct store_image *
add_piece(struct state_keeper *k, struct album *a)
{
    struct store_image *grown;

    if ((a->count & (a->count - 1)) != 0) /* there is room up to a power of two */
        return &a->pieces[a->count];
    grown = arena_array(k->arena, a->count == 0 ? 1 : 2 * a->count, sizeof(*grown));
    if (grown == NULL)
        return NULL;
    if (a->count > 0)
        memcpy(grown, a->pieces, a->count * sizeof(*grown));
    a->pieces = grown;
    return &a->pieces[a->count];
}

static void
album_release(struct album *a)
{
    while (a->count > 0)
        store_image_release(&a->pieces[--a->count]);
}

/* What has gone meanwhile has no pieces. */
static enum status
album_take(struct state_keeper *k, struct album *a)
{
    struct store_image image = STORE_IMAGE_INIT;
    enum status st;

    do {
        struct store_image *piece = add_piece(k, a);

        if (piece == NULL)
            return ST_NO_MEMORY;
        st = take_piece(k, &a->where, &image);
        if (st != ST_OK)
            return st == ST_NOT_FOUND ? ST_OK : st;
        *piece = image;
        a->count++;
        image.store = NULL; /* it is the album's */
        store_image_release(&image);
    } while (image.more);
    return ST_OK;
}

/* ------------------------------------------------------------------ writing */

static int
compare_claims(const void *a, const void *b)
{
    return strcmp(((const struct store_image_claim *)a)->id.text,
                  ((const struct store_image_claim *)b)->id.text);
}

/* A claim that holds messages of several pieces is shown by each. */
static enum status
write_claims(struct state_keeper *k, const struct album *a, struct buf *out)
{
    struct store_image_claim *all;
    size_t count = 0;

    for (size_t i = 0; i < a->count; i++)
        count += a->pieces[i].claim_count;
    all = arena_array(k->arena, count + 1, sizeof(*all));
    if (all == NULL)
        return ST_NO_MEMORY;
    count = 0;
    for (size_t i = 0; i < a->count; i++)
        for (size_t c = 0; c < a->pieces[i].claim_count; c++)
            all[count++] = a->pieces[i].claims[c];
    qsort(all, count, sizeof(*all), compare_claims);
    buf_str(out, ",\"claims\":[");
    for (size_t i = 0; i < count; i++) {
        if (i > 0 && compare_claims(&all[i - 1], &all[i]) == 0)
            continue;
        if (i > 0)
            buf_byte(out, ',');
        state_write_claim(out, &all[i], k->visit->now_ms);
    }
    buf_byte(out, ']');
    return ST_OK;
}

static void
write_messages(const struct state_keeper *k, const struct album *a, struct buf *out)
{
    bool first = true;

    buf_str(out, ",\"messages\":[");
    for (size_t i = 0; i < a->count; i++)
        for (size_t m = 0; m < a->pieces[i].message_count; m++) {
            if (!first)
                buf_byte(out, ',');
            first = false;
            state_write_message(out, &a->pieces[i], m, false, k->visit->now_ms);
        }
    buf_byte(out, ']');
}

static void
write_subscriptions(const struct state_keeper *k, const struct album *a, struct buf *out)
{
    bool first = true;

    buf_str(out, ",\"subscriptions\":[");
    for (size_t i = 0; i < a->count; i++)
        for (size_t s = 0; s < a->pieces[i].subscription_count; s++) {
            if (!first)
                buf_byte(out, ',');
            first = false;
            state_write_subscription(out, &a->pieces[i].subscriptions[s],
                                     k->visit->now_ms);
        }
    buf_byte(out, ']');
}

static enum status
write_queue(struct state_keeper *k, const struct store_queue *where, bool *first,
            struct buf *out)
{
    struct album album = {.where = *where};
    enum status st = album_take(k, &album);

    if (st == ST_OK && album.count > 0) {
        buf_str(out, *first ? "{\"name\":" : ",{\"name\":");
        *first = false;
        json_string_write(out, where->name);
        buf_str(out, ",\"metadata\":");
        metadata_plain(&album.pieces[0].metadata, out);
        st = write_claims(k, &album, out);
        write_messages(k, &album, out);
        write_subscriptions(k, &album, out);
        buf_byte(out, '}');
    }
    album_release(&album);
    return st;
}

static enum status
write_kind(struct state_keeper *k, struct bytes project, enum store_kind kind,
           const char *member, struct buf *out)
{
    struct found found;
    bool first = true;
    enum status st = find_names(k, k->store->ops->queue_list, project, kind, &found);

    buf_str(out, member);
    for (size_t i = 0; st == ST_OK && i < found.count; i++) {
        const struct store_queue where = {project, found.names[i], kind};

        st = write_queue(k, &where, &first, out);
    }
    buf_byte(out, ']');
    return st;
}

static enum status
write_project(struct state_keeper *k, struct bytes project, struct buf *out)
{
    enum status st = write_kind(k, project, STORE_QUEUE, "\"queues\":[", out);

    return st == ST_OK ? write_kind(k, project, STORE_TOPIC, ",\"topics\":[", out) : st;
}

static enum status
write_projects(struct state_keeper *k, struct buf *out)
{
    struct found projects;
    enum status st = find_projects(k, &projects);

    buf_str(out, "\"projects\":{");
    for (size_t i = 0; st == ST_OK && i < projects.count; i++) {
        if (i > 0)
            buf_byte(out, ',');
        json_string_write(out, projects.names[i]);
        buf_str(out, ":{");
        st = write_project(k, projects.names[i], out);
        buf_byte(out, '}');
    }
    buf_byte(out, '}');
    return st;
}

enum status
state_write(struct state_keeper *k, struct bytes project, struct buf *out)
{
    enum status st;

    buf_printf(out, "{\"version\":%d,\"now_ms\":%" PRId64 ",", STATE_VERSION,
               k->visit->now_ms);
    st = bytes_present(project) ? write_project(k, project, out) : write_projects(k, out);
    buf_byte(out, '}');
    return st;
}

/* ------------------------------------------------------------------ replacing */

static enum status
keep_kind(struct state_keeper *k, struct bytes project, enum store_kind kind,
          struct album **kept)
{
    struct found found;
    enum status st = find_names(k, k->store->ops->queue_list, project, kind, &found);

    for (size_t i = 0; st == ST_OK && i < found.count; i++) {
        struct album *a = arena_alloc(k->arena, sizeof(*a));

        if (a == NULL)
            return ST_NO_MEMORY;
        *a = (struct album){.where = {project, found.names[i], kind}, .next = *kept};
        *kept = a;
        st = album_take(k, a);
    }
    return st;
}

static enum status
keep_all(struct state_keeper *k, struct bytes project, struct album **kept)
{
    struct found projects = {&project, 1};
    enum status st = ST_OK;

    if (!bytes_present(project))
        st = find_projects(k, &projects);
    for (size_t i = 0; st == ST_OK && i < projects.count; i++) {
        st = keep_kind(k, projects.names[i], STORE_QUEUE, kept);
        if (st == ST_OK)
            st = keep_kind(k, projects.names[i], STORE_TOPIC, kept);
    }
    return st;
}

static enum status
delete_kept(struct state_keeper *k, const struct album *kept)
{
    enum status st = ST_OK;

    for (; st == ST_OK && kept != NULL; kept = kept->next)
        st = store_queue_delete(k->store, k->visit, &kept->where);
    return st;
}

/* Others may make a queue again as often as that while it is loaded. */
enum { TRIES = 64 };

/* Loads the first piece of a queue, in the place of one that others have made meanwhile. */
static enum status
load_over(struct state_keeper *k, const struct store_queue *where,
          const struct store_image *image)
{
    enum status st = store_queue_load(k->store, k->visit, where, image);

    for (int i = 0; st == ST_CONFLICT && i < TRIES; i++) {
        st = store_queue_delete(k->store, k->visit, where);
        if (st == ST_OK)
            st = store_queue_load(k->store, k->visit, where, image);
    }
    return st;
}

static bool
put_back(struct state_keeper *k, const struct album *kept)
{
    bool whole = true;

    for (; kept != NULL; kept = kept->next)
        for (size_t i = 0; i < kept->count; i++) {
            enum status st = i == 0 ? load_over(k, &kept->where, &kept->pieces[i])
                                    : store_queue_load(k->store, k->visit, &kept->where,
                                                       &kept->pieces[i]);

            whole = whole && st == ST_OK;
        }
    return whole;
}

/* Loads all; *at becomes the one that could not be. */
static enum status
load_all(struct state_keeper *k, const struct state *wanted,
         const struct state_queue **at)
{
    for (size_t p = 0; p < wanted->count; p++)
        for (size_t i = 0; i < wanted->projects[p].count; i++) {
            enum status st;

            *at = &wanted->projects[p].queues[i];
            st = load_over(k, &(*at)->where, &(*at)->image);
            if (st != ST_OK)
                return st;
        }
    *at = NULL;
    return ST_OK;
}

/* Deletes those that were loaded, in front of `end`. */
static void
unload(struct state_keeper *k, const struct state *wanted, const struct state_queue *end)
{
    for (size_t p = 0; p < wanted->count; p++)
        for (size_t i = 0; i < wanted->projects[p].count; i++) {
            const struct state_queue *q = &wanted->projects[p].queues[i];

            if (q == end)
                return;
            (void)store_queue_delete(k->store, k->visit, &q->where); /* what is left fails
                                                                      to be put back */
        }
}

static enum status
exchange(struct state_keeper *k, const struct state *wanted, const struct album *kept,
         struct reason *why)
{
    const struct state_queue *at = NULL;
    enum status st = delete_kept(k, kept);

    if (st == ST_OK) {
        st = load_all(k, wanted, &at);
        if (st == ST_OK)
            return ST_OK;
        (void)reason_give(why, st, "%s \"%.*s\" cannot be loaded: %s",
                          at->where.kind == STORE_TOPIC ? "topic" : "queue",
                          (int)at->where.name.len, at->where.name.data, status_text(st));
        unload(k, wanted, at);
    }
    if (!put_back(k, kept))
        (void)reason_give(why, st, "%s. Part of the old state was not restored",
                          status_text(st));
    return st;
}

/* What a piece takes when it is loaded, roughly. */
static size_t
piece_bytes(const struct store_image *image)
{
    size_t total = image->metadata.json.len;

    for (size_t i = 0; i < image->message_count; i++)
        total += sizeof(struct store_image_message) + image->messages[i].body.len;
    for (size_t i = 0; i < image->subscription_count; i++)
        total += 2 * sizeof(struct store_image_subscription) +
                 image->subscriptions[i].subscriber.len +
                 image->subscriptions[i].options.len;
    return total;
}

/*
 * Is there memory for the new state, and then for the old one once more? Its bodies are pinned
 * until all is over.
 */
static bool
has_room(const struct state_keeper *k, const struct state *wanted,
         const struct album *kept)
{
    size_t total = 0;

    for (size_t p = 0; p < wanted->count; p++)
        for (size_t i = 0; i < wanted->projects[p].count; i++)
            total += piece_bytes(&wanted->projects[p].queues[i].image);
    for (; kept != NULL; kept = kept->next)
        for (size_t i = 0; i < kept->count; i++)
            total += piece_bytes(&kept->pieces[i]);
    return mem_admits(k->mem, total);
}

enum status
state_replace(struct state_keeper *k, struct bytes project, const struct state *wanted,
              struct reason *why)
{
    struct album *kept = NULL;
    enum status st = keep_all(k, project, &kept);

    if (st == ST_OK && !has_room(k, wanted, kept))
        st = ST_OVER_BUDGET;
    if (st == ST_OK)
        st = exchange(k, wanted, kept, why);
    for (struct album *a = kept; a != NULL; a = a->next)
        album_release(a);
    return st;
}

enum status
state_refusal(enum status st)
{
    return st == ST_PROJECT_QUEUES || st == ST_PROJECT_MESSAGES || st == ST_PROJECT_BYTES
               ? ST_CONFLICT
               : st;
}
