#include "api/wire/decode_state.h"

#include "api/caller.h"
#include "api/wire/state/queue.h"
#include "claimd/json/fault.h"

#include <stdio.h>
#include <stdlib.h>

/* Queues or topics of a project that are being read. */
struct listing {
    struct state_project *project;
    enum store_kind kind;
};

static enum status
read_queue_item(struct state_decoder *d, const struct doc_at *at, struct bytes text,
                size_t i, void *arg)
{
    const struct listing *l = arg;
    struct state_queue *q = &l->project->queues[l->project->count++];

    (void)i;
    q->where.project = l->project->name;
    q->where.kind = l->kind;
    return state_queue_read(d, at, text, q);
}

/* The place of the i-th queue of a project: queues first, then topics. */
static enum status
refuse_queue(struct state_decoder *d, const struct doc_at *up,
             const struct state_project *p, size_t i, const char *member,
             const char *what)
{
    const bool topic = p->queues[i].where.kind == STORE_TOPIC;
    size_t before = 0;

    while (topic && p->queues[before].where.kind == STORE_QUEUE)
        before++;
    {
        const struct doc_at list = {up, topic ? "topics" : "queues", BYTES_NONE, 0};
        const struct doc_at item = {&list, NULL, BYTES_NONE, i - before};
        const struct doc_at at = {&item, member, BYTES_NONE, 0};

        return doc_refuse(d, &at, "%s", what);
    }
}

/* Queues of a project in the order of their names, those of a kind together. */
struct sorted {
    const struct state_queue *queue;
    size_t index;
    size_t walk; /* of find_cycle() that came here first; 0: none */
};

static int
compare_queues(const void *a, const void *b)
{
    const struct store_queue *x = &((const struct sorted *)a)->queue->where;
    const struct store_queue *y = &((const struct sorted *)b)->queue->where;

    return x->kind != y->kind ? (x->kind > y->kind) - (x->kind < y->kind)
                              : bytes_compare(x->name, y->name);
}

static struct sorted *
find_queue(struct sorted *all, size_t count, struct bytes name)
{
    const struct state_queue wanted = {.where = {.name = name, .kind = STORE_QUEUE}};
    const struct sorted key = {&wanted, 0, 0};

    return bsearch(&key, all, count, sizeof(key), compare_queues);
}

static bool
moves_letters(const struct state_queue *q)
{
    const struct store_settings *set = &q->image.metadata.settings;

    return set->max_claim_count != STORE_UNSET && bytes_present(set->dead_letter);
}

/*
 * A queue whose dead letters would come back to it; NULL: there is none. A walk ends where an
 * earlier one has been, so each queue is looked at once.
 */
static const struct sorted *
find_cycle(struct sorted *all, size_t count)
{
    for (size_t walk = 1; walk <= count; walk++) {
        struct sorted *at = &all[walk - 1];

        while (at != NULL && at->walk == 0 && at->queue->where.kind == STORE_QUEUE) {
            at->walk = walk;
            at = moves_letters(at->queue)
                     ? find_queue(all, count,
                                  at->queue->image.metadata.settings.dead_letter)
                     : NULL;
        }
        if (at != NULL && at->walk == walk)
            return at;
    }
    return NULL;
}

static enum status
check_queues(struct state_decoder *d, const struct doc_at *up,
             const struct state_project *p)
{
    struct sorted *all = doc_array(d, p->count, sizeof(*all));
    const struct sorted *cycle;

    if (all == NULL)
        return ST_NO_MEMORY;
    for (size_t i = 0; i < p->count; i++)
        all[i] = (struct sorted){&p->queues[i], i, 0};
    qsort(all, p->count, sizeof(*all), compare_queues);
    for (size_t i = 1; i < p->count; i++)
        if (compare_queues(&all[i - 1], &all[i]) == 0)
            return refuse_queue(d, up, p, all[i].index, "name",
                                "another one has the same name");
    cycle = find_cycle(all, p->count);
    return cycle == NULL
               ? ST_OK
               : refuse_queue(d, up, p, cycle->index, "metadata._dead_letter_queue",
                              "the dead-letter queues form a cycle");
}

/* An id of a message and its queue. */
struct used_id {
    struct bytes text;
    size_t queue, message;
};

static int
compare_ids(const void *a, const void *b)
{
    const struct used_id *x = a, *y = b;
    int order = bytes_compare(x->text, y->text);

    return order != 0 ? order : (x->queue > y->queue) - (x->queue < y->queue);
}

/* A message is in one queue: a dead letter takes its id along. */
static enum status
check_ids(struct state_decoder *d, const struct doc_at *up, const struct state_project *p)
{
    struct used_id *ids;
    size_t count = 0;

    for (size_t i = 0; i < p->count; i++)
        count += p->queues[i].image.message_count;
    ids = doc_array(d, count, sizeof(*ids));
    if (ids == NULL)
        return ST_NO_MEMORY;
    count = 0;
    for (size_t i = 0; i < p->count; i++)
        for (size_t k = 0; k < p->queues[i].image.message_count; k++) {
            const struct store_id *id = &p->queues[i].image.messages[k].id;

            if (id->text[0] != '\0')
                ids[count++] = (struct used_id){store_id_bytes(id), i, k};
        }
    qsort(ids, count, sizeof(*ids), compare_ids);
    for (size_t i = 1; i < count; i++)
        if (bytes_equal(ids[i - 1].text, ids[i].text)) {
            char member[64];

            (void)snprintf(member, sizeof(member), "messages[%zu].id", ids[i].message);
            return refuse_queue(d, up, p, ids[i].queue, member,
                                "a message of another queue has the same id");
        }
    return ST_OK;
}

static enum status
read_project(struct state_decoder *d, const struct doc_at *at,
             const struct doc_member *queues, const struct doc_member *topics,
             struct state_project *out)
{
    const struct doc_at queue_list = {at, "queues", BYTES_NONE, 0};
    const struct doc_at topic_list = {at, "topics", BYTES_NONE, 0};
    struct listing l = {out, STORE_QUEUE};
    size_t queue_count, topic_count = 0;
    enum status st = doc_items_count(d, &queue_list, queues, &queue_count);

    if (st == ST_OK)
        st = doc_items_count(d, &topic_list, topics, &topic_count);
    if (st != ST_OK)
        return st;
    out->queues = doc_array(d, queue_count + topic_count, sizeof(*out->queues));
    if (out->queues == NULL)
        return ST_NO_MEMORY;
    st = doc_items(d, &queue_list, queues, read_queue_item, &l);
    l.kind = STORE_TOPIC;
    if (st == ST_OK)
        st = doc_items(d, &topic_list, topics, read_queue_item, &l);
    if (st == ST_OK)
        st = check_queues(d, at, out);
    return st == ST_OK ? check_ids(d, at, out) : st;
}

static enum status
read_named_project(struct state_decoder *d, const struct doc_at *at, struct bytes text,
                   struct state_project *out)
{
    struct doc_member m[] = {{.name = "queues"}, {.name = "topics"}};
    enum status st = doc_object(d, at, text, m, 2);

    return st == ST_OK ? read_project(d, at, &m[0], &m[1], out) : st;
}

static int
compare_projects(const void *a, const void *b)
{
    return bytes_compare(*(const struct bytes *)a, *(const struct bytes *)b);
}

static enum status
check_projects(struct state_decoder *d, const struct doc_at *up, const struct state *all)
{
    struct bytes *names = doc_array(d, all->count, sizeof(*names));

    if (names == NULL)
        return ST_NO_MEMORY;
    for (size_t i = 0; i < all->count; i++)
        names[i] = all->projects[i].name;
    qsort(names, all->count, sizeof(*names), compare_projects);
    for (size_t i = 1; i < all->count; i++)
        if (bytes_equal(names[i - 1], names[i])) {
            const struct doc_at at = {up, "", names[i], 0};

            return doc_refuse(d, &at, "it appears twice");
        }
    return ST_OK;
}

/* {"p": {"queues": [...]}, ...} */
static enum status
read_projects(struct state_decoder *d, const struct json_scan_value *value,
              struct state *out)
{
    const struct doc_at at = {NULL, "projects", BYTES_NONE, 0};
    struct json_scan_value item;
    struct json_scan_name name;
    enum status st = ST_OK;
    size_t count = 0;
    struct json_scan s;

    json_scan_begin(&s, value->text);
    if (!json_scan_enter(&s, SCAN_OBJECT))
        return doc_refuse(d, &at, "it must be an object");
    while (json_scan_member(&s, &name)) {
        (void)json_scan_value(&s, NULL);
        count++;
    }
    out->projects = doc_array(d, count, sizeof(*out->projects));
    if (out->projects == NULL)
        return ST_NO_MEMORY;
    json_scan_begin(&s, value->text);
    (void)json_scan_enter(&s, SCAN_OBJECT);
    while (st == ST_OK && json_scan_member(&s, &name)) {
        struct state_project *p = &out->projects[out->count];
        const struct doc_at place_of = {&at, "", name.text, 0};

        (void)json_scan_value(&s, &item);
        p->name = doc_unescape(name.text, d->arena);
        if (!bytes_present(p->name))
            return ST_NO_MEMORY;
        if (p->name.len > CALLER_PROJECT_MAX)
            return doc_refuse(d, &at, "%s", status_text(ST_BAD_PROJECT));
        out->count++;
        st = read_named_project(d, &place_of, item.text, p);
    }
    return st == ST_OK ? check_projects(d, &at, out) : st;
}

enum status
decode_state(struct state_decoder *d, struct bytes text, struct bytes project,
             bool may_name, struct state *out)
{
    enum { VERSION, NOW, QUEUES, TOPICS, PROJECTS, MEMBERS };
    struct doc_member m[MEMBERS] = {{.name = "version"},
                                    {.name = "now_ms"},
                                    {.name = "queues"},
                                    {.name = "topics"},
                                    {.name = "projects"}};
    uint64_t then_ms; /* times count from the moment when it is loaded */
    enum status st;

    *out = (struct state){.count = 0};
    if (json_fault(text, d->why))
        return ST_BAD_BODY;
    st = doc_object(d, NULL, text, m, MEMBERS);
    if (st == ST_OK)
        st = doc_version(d, &m[VERSION]);
    if (st == ST_OK)
        st = doc_count(d, NULL, &m[NOW], INT64_MAX, &then_ms);
    if (st != ST_OK)
        return st;
    if (m[PROJECTS].value.kind != SCAN_NONE) {
        const struct doc_at at = {NULL, "projects", BYTES_NONE, 0};

        if (bytes_present(project) && !may_name)
            return doc_refuse(d, &at, "it is not allowed in a request for one project");
        if (m[QUEUES].value.kind != SCAN_NONE || m[TOPICS].value.kind != SCAN_NONE)
            return doc_refuse(d, &at,
                              "it is not allowed together with queues and topics. Put "
                              "them into projects");
        return read_projects(d, &m[PROJECTS].value, out);
    }
    if (!bytes_present(project))
        return doc_refuse(d, NULL,
                          "the document must have the member projects, or the request "
                          "must name a project");
    out->projects = doc_array(d, 1, sizeof(*out->projects));
    if (out->projects == NULL)
        return ST_NO_MEMORY;
    out->count = 1;
    out->projects[0].name = project;
    return read_project(d, NULL, &m[QUEUES], &m[TOPICS], &out->projects[0]);
}
