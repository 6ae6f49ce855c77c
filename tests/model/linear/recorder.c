#include "model/linear/recorder.h"

#include "model/linear/client.h"
#include "support/random.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ID_CAP = 40, FEED_AFTER_MS = 10, LINEAR_WAITERS = 32 };

/* The state of a queue that all workers share. */
struct board {
    pthread_mutex_t lock; /* guards all of it */
    char name[64];
    unsigned numbered;                          /* messages that have a number */
    char messages[LINEAR_MESSAGES + 1][ID_CAP]; /* by number; empty: not known yet */
    /* By the number of the message that the post would have added: the id of the message
     * that had its key. */
    char existing[LINEAR_MESSAGES + 1][ID_CAP];
    unsigned claimed;                          /* claims that have a number */
    char claims[LINEAR_CLAIMS + 1][ID_CAP];    /* likewise */
    struct operation *waiting[LINEAR_WAITERS]; /* requests that may wait for a message */
    unsigned waiting_count;
    unsigned changes; /* additions to and removals from `waiting` */
    bool paused;      /* by the last response */
    struct history *history;
};

struct worker {
    const struct recording *recording;
    struct board *boards;
    pthread_barrier_t *gate;
    struct random random;
    unsigned number;
    unsigned keys; /* given out so far */
    struct client client;
    pthread_t thread;
    atomic_bool ends;  /* the feeder */
    atomic_uint *done; /* operations of all workers */
};

/* The thread after the workers kills the server if the recording has kills. Else it
 * feeds. */
static bool
is_killer(const struct worker *w)
{
    return w->number == w->recording->workers && w->recording->kills > 0;
}

/* Percentage of each kind of operation, in the order of enum linear_kind. */
static const unsigned weights[LINEAR_KINDS] = {16, 24, 6, 4, 8, 8, 3,
                                               3,  7,  6, 4, 1, 8, 2};

_Noreturn static void
unexpected(const char *what, const struct linear_response *a)
{
    char *text = a->document == NULL ? NULL : json_dumps(a->document, 0);

    printf("%s: response %d %s\n", what, a->code, text == NULL ? "" : text);
    exit(EXIT_FAILURE);
}

/* ---------------------------------------------------------------------- numbers */

/* Picks a known message, deleted or not, because a second DELETE is a test too. 0:
 * none. */
static uint8_t
some_message(struct worker *w, struct board *b, char id[ID_CAP])
{
    unsigned number = 0;

    pthread_mutex_lock(&b->lock);
    if (b->numbered > 0) {
        number = 1 + (unsigned)random_below(&w->random, b->numbered);
        memcpy(id, b->messages[number], ID_CAP);
        if (id[0] == '\0')
            number = 0;
    }
    pthread_mutex_unlock(&b->lock);
    return (uint8_t)number;
}

/* Picks one of the last six claims. 0: none, or its id is not known. */
static uint8_t
some_claim(struct worker *w, struct board *b, char id[ID_CAP])
{
    unsigned number = 0, recent;

    pthread_mutex_lock(&b->lock);
    if (b->claimed > 0) {
        recent = b->claimed < 6 ? b->claimed : 6;
        number = b->claimed - (unsigned)random_below(&w->random, recent);
        memcpy(id, b->claims[number], ID_CAP);
        if (id[0] == '\0') /* the response was lost */
            number = 0;
    }
    pthread_mutex_unlock(&b->lock);
    return (uint8_t)number;
}

/* Reserves numbers for `count` new messages. Returns the first, or 0 if none are left. */
static unsigned
number_messages(struct board *b, unsigned count)
{
    unsigned first = 0;

    pthread_mutex_lock(&b->lock);
    if (b->numbered + count <= LINEAR_MESSAGES) {
        first = b->numbered + 1;
        b->numbered += count;
    }
    pthread_mutex_unlock(&b->lock);
    return first;
}

static bool
claims_left(struct board *b, unsigned workers)
{
    bool left;

    pthread_mutex_lock(&b->lock);
    left = b->claimed + workers <= LINEAR_CLAIMS;
    pthread_mutex_unlock(&b->lock);
    return left;
}

/* Copies the id: the part after the last slash and before a question mark. */
static void
copy_id(char id[ID_CAP], const char *href)
{
    const char *slash = strrchr(href, '/');

    (void)snprintf(id, ID_CAP, "%.*s", (int)strcspn(slash + 1, "?"), slash + 1);
}

static uint8_t
number_claim(struct board *b, const char *location)
{
    unsigned number;

    pthread_mutex_lock(&b->lock);
    number = ++b->claimed;
    copy_id(b->claims[number], location);
    pthread_mutex_unlock(&b->lock);
    return (uint8_t)number;
}

/* Notes the id of a message, which may be that of a post whose response was lost. */
static void
learn_id(struct board *b, unsigned number, const char *href)
{
    pthread_mutex_lock(&b->lock);
    copy_id(b->messages[number], href);
    pthread_mutex_unlock(&b->lock);
}

/* Bodies are the messages' numbers. */
static void
read_messages(struct board *b, struct operation *op, const struct linear_response *a)
{
    const json_t *messages = json_object_get(a->document, "messages");

    if (json_array_size(messages) > LINEAR_BATCH)
        unexpected("too many messages", a);
    op->count = (uint8_t)json_array_size(messages);
    for (size_t i = 0; i < op->count; i++) {
        const json_t *message = json_array_get(messages, i);
        const json_int_t number = json_integer_value(json_object_get(message, "body"));
        char path[ID_CAP + 1];

        if (number < 1 || number > LINEAR_MESSAGES)
            unexpected("a message that no client posted", a);
        op->messages[i] = (uint8_t)number;
        (void)snprintf(path, sizeof(path), "/%s",
                       json_string_value(json_object_get(message, "id")));
        learn_id(b, (unsigned)number, path);
    }
}

/* ---------------------------------------------------------------------- operations */

static bool
takes_key(const struct operation *op)
{
    return (op->kind == LINEAR_POST && op->unique == 0) || op->kind == LINEAR_CLAIM ||
           op->kind == LINEAR_POP || op->kind == LINEAR_FINISH;
}

/* A pop that finds nothing keeps no key. */
static bool
is_empty(const struct linear_response *a)
{
    return json_array_size(json_object_get(a->document, "messages")) == 0;
}

/* The ages of popped messages grow. */
static void
remove_ages(const struct linear_response *a)
{
    const json_t *messages = json_object_get(a->document, "messages");

    for (size_t i = 0; i < json_array_size(messages); i++)
        (void)json_object_del(json_array_get(messages, i), "age");
}

/* Repeats a request that has had an effect. The response must be the same. */
static void
repeat(struct worker *w, const struct operation *op, const char *method,
       const char *target, const char *body, const char *key,
       const struct linear_response *first)
{
    struct linear_response again;

    if (op->kind == LINEAR_CLAIM || first->code >= 300 || !random_chance(&w->random, 30))
        return; /* others may have changed what the claim holds */
    w->client.key = key;
    client_fetch(&w->client, method, target, body, &again);
    remove_ages(first);
    remove_ages(&again);
    if (again.code != 0 &&
        (again.code != first->code || !json_equal(again.document, first->document)))
        unexpected("a request that was repeated", &again);
    json_decref(again.document);
}

/*
 * Sends a request. `rest` is the part of the target after the name of the queue. If the
 * request has an Idempotency-Key, the worker repeats it until there is a response. So it
 * happens once, after the first call and before the last response.
 */
static void
fetch(struct worker *w, const struct board *b, struct operation *op, const char *method,
      const char *rest, const char *body, struct linear_response *a)
{
    const bool keyed = takes_key(op) && random_chance(&w->random, 40);
    char target[1024], key[64];

    (void)snprintf(target, sizeof(target), "/%s/queues/%s%s",
                   op->kind == LINEAR_FINISH || op->kind == LINEAR_PAUSE ? "claimd"
                                                                         : "v2",
                   b->name, rest);
    (void)snprintf(key, sizeof(key), "linear-%u-%u", w->number, ++w->keys);
    do {
        w->client.key = keyed ? key : NULL;
        client_fetch(&w->client, method, target, body, a);
        op->call_ns = op->call_ns == 0 ? a->call_ns : op->call_ns;
    } while (keyed && a->code == 0);
    op->response_ns = a->response_ns;
    op->code = a->code;
    if (keyed && !(op->kind == LINEAR_POP && is_empty(a)))
        repeat(w, op, method, target, body, key, a);
}

/* Gives a post of one message a key, now and then. The feeder has to add messages. */
static void
draw_unique(struct worker *w, struct operation *op)
{
    if (w->number == w->recording->workers || !random_chance(&w->random, 70))
        return;
    op->unique = (uint8_t)(1 + random_below(&w->random, LINEAR_KEYS));
    op->until_claimed = random_chance(&w->random, 40);
}

/* Notes the id of the message that a post has added, or that had its key. */
static void
read_posted(struct board *b, struct operation *op, uint8_t number, bool existing,
            const char *href)
{
    if (!existing) {
        learn_id(b, number, href);
        return;
    }
    copy_id(b->existing[number], href);
    op->existing = number; /* until all ids are known: name_existing() */
}

/* Replaces the number of each unique post that has added nothing by that of the message
 * that had its key. */
static void
name_existing(const struct board *b)
{
    for (size_t i = 0; i < b->history->count; i++) {
        struct operation *op = &b->history->ops[i];
        const char *id = b->existing[op->existing];
        uint8_t number = 1;

        if (op->existing == 0)
            continue;
        while (number <= LINEAR_MESSAGES && strcmp(b->messages[number], id) != 0)
            number++;
        op->existing = number <= LINEAR_MESSAGES ? number : LINEAR_UNKNOWN;
    }
}

static bool
do_post(struct worker *w, struct board *b, struct operation *op)
{
    unsigned count = 1 + (unsigned)random_below(&w->random, 3);
    unsigned first = number_messages(b, count);
    char body[256] = "{\"messages\":[", unique[64];
    struct linear_response a;
    json_t *hrefs;

    if (first == 0)
        return false;
    for (unsigned i = 0; i < count; i++) {
        op->messages[i] = (uint8_t)(first + i);
        (void)snprintf(body + strlen(body), sizeof(body) - strlen(body),
                       "%s{\"ttl\":3600,\"body\":%u}", i == 0 ? "" : ",", first + i);
    }
    op->count = (uint8_t)count;
    strcat(body, "]}");
    if (count == 1)
        draw_unique(w, op);
    (void)snprintf(unique, sizeof(unique), "linear-%u%s", op->unique,
                   op->until_claimed ? "; until=claimed" : "");
    w->client.unique = op->unique == 0 ? NULL : unique;
    fetch(w, b, op, "POST", "/messages", body, &a);
    hrefs = json_object_get(a.document, "resources");
    if (a.code == 0)
        return true;
    if (a.code != 201 || json_array_size(hrefs) != count)
        unexpected("post", &a);
    for (unsigned i = 0; i < count; i++)
        read_posted(b, op, (uint8_t)(first + i), a.existing,
                    json_string_value(json_array_get(hrefs, i)));
    if (a.existing)
        op->count = 0;
    json_decref(a.document);
    return true;
}

/*
 * Makes one request of four long polling, if enough message numbers are left for the
 * feeder. The request times out only if neither a worker nor the feeder posts a message.
 */
static void
begin_waiting(struct worker *w, struct board *b, struct operation *op)
{
    if (w->recording->kills > 0 || !random_chance(&w->random, 25))
        return;
    pthread_mutex_lock(&b->lock);
    op->waits = b->numbered + 2 * w->recording->workers <= LINEAR_MESSAGES &&
                b->waiting_count < LINEAR_WAITERS;
    if (op->waits) {
        b->waiting[b->waiting_count++] = op;
        b->changes++;
    }
    pthread_mutex_unlock(&b->lock);
    if (op->waits)
        w->client.prefer = "wait=2";
}

static void
end_waiting(struct board *b, const struct operation *op)
{
    unsigned at = 0;

    if (!op->waits)
        return;
    pthread_mutex_lock(&b->lock);
    while (b->waiting[at] != op)
        at++;
    b->waiting[at] = b->waiting[--b->waiting_count];
    b->changes++;
    pthread_mutex_unlock(&b->lock);
}

static bool
do_claim(struct worker *w, struct board *b, struct operation *op)
{
    char rest[64];
    struct linear_response a;

    if (!claims_left(b, w->recording->workers))
        return false;
    op->limit = (uint8_t)(1 + random_below(&w->random, 4));
    (void)snprintf(rest, sizeof(rest), "/claims?limit=%u", op->limit);
    begin_waiting(w, b, op);
    fetch(w, b, op, "POST", rest, "{\"ttl\":3600,\"grace\":60}", &a);
    end_waiting(b, op);
    /* If an earlier attempt made the claim, it may be over by now, or hold less than it
     * took. */
    if (a.code == 409 || (a.call_ns != op->call_ns && a.code == 201))
        op->code = 0;
    else
        read_messages(b, op, &a);
    if (a.code == 201)
        op->made = number_claim(b, a.location);
    else if (op->code == 0)
        op->made = number_claim(b, "/"); /* the claim may exist, but its id is lost */
    json_decref(a.document);
    return true;
}

/* QUERY, RENEW, RELEASE. */
static bool
do_with_claim(struct worker *w, struct board *b, struct operation *op)
{
    const char *body = op->kind == LINEAR_RENEW ? "{\"ttl\":3600}" : NULL;
    const char *method = op->kind == LINEAR_QUERY   ? "GET"
                         : op->kind == LINEAR_RENEW ? "PATCH"
                                                    : "DELETE";
    char id[ID_CAP], rest[64];
    struct linear_response a;

    op->claim = some_claim(w, b, id);
    if (op->claim == 0)
        return false;
    (void)snprintf(rest, sizeof(rest), "/claims/%s", id);
    fetch(w, b, op, method, rest, body, &a);
    if (op->kind == LINEAR_QUERY)
        read_messages(b, op, &a);
    json_decref(a.document);
    return true;
}

static bool
do_delete(struct worker *w, struct board *b, struct operation *op)
{
    char id[ID_CAP], claim[ID_CAP] = "", rest[160];
    struct linear_response a;

    op->message = some_message(w, b, id);
    if (op->message == 0)
        return false;
    if (random_chance(&w->random, 70))
        op->claim = some_claim(w, b, claim);
    (void)snprintf(rest, sizeof(rest), "/messages/%s%s%s", id,
                   op->claim == 0 ? "" : "?claim_id=", claim);
    fetch(w, b, op, "DELETE", rest, NULL, &a);
    json_decref(a.document);
    return true;
}

static bool
do_delete_many(struct worker *w, struct board *b, struct operation *op)
{
    char id[ID_CAP], claim[ID_CAP] = "", rest[256] = "/messages?ids=";
    struct linear_response a;

    while (op->count < 3) {
        op->messages[op->count] = some_message(w, b, id);
        if (op->messages[op->count] == 0)
            break;
        (void)snprintf(rest + strlen(rest), sizeof(rest) - strlen(rest), "%s%s",
                       op->count == 0 ? "" : ",", id);
        op->count++;
    }
    if (op->count == 0)
        return false;
    if (random_chance(&w->random, 50))
        op->claim = some_claim(w, b, claim);
    if (op->claim != 0)
        (void)snprintf(rest + strlen(rest), sizeof(rest) - strlen(rest), "&claim_ids=%s",
                       claim);
    fetch(w, b, op, "DELETE", rest, NULL, &a);
    json_decref(a.document);
    return true;
}

static bool
do_get(struct worker *w, struct board *b, struct operation *op)
{
    char id[ID_CAP], rest[64];
    struct linear_response a;

    op->message = some_message(w, b, id);
    if (op->message == 0)
        return false;
    (void)snprintf(rest, sizeof(rest), "/messages/%s", id);
    fetch(w, b, op, "GET", rest, NULL, &a);
    if (a.code == 200 &&
        json_integer_value(json_object_get(a.document, "body")) != op->message)
        unexpected("another message", &a);
    json_decref(a.document);
    return true;
}

static bool
do_list(struct worker *w, struct board *b, struct operation *op)
{
    char rest[96];
    struct linear_response a;

    op->limit = (uint8_t)(1 + random_below(&w->random, LINEAR_BATCH));
    op->include_claimed = random_chance(&w->random, 50);
    if (is_killer(w)) { /* the killer lists all messages */
        op->limit = LINEAR_BATCH;
        op->include_claimed = true;
    }
    (void)snprintf(rest, sizeof(rest), "/messages?echo=true&limit=%u&include_claimed=%s",
                   op->limit, op->include_claimed ? "true" : "false");
    fetch(w, b, op, "GET", rest, NULL, &a);
    read_messages(b, op, &a);
    json_decref(a.document);
    return true;
}

static bool
do_stats(struct worker *w, struct board *b, struct operation *op)
{
    struct linear_response a;
    const json_t *messages;

    fetch(w, b, op, "GET", "/stats", NULL, &a);
    messages = json_object_get(a.document, "messages");
    op->claimed = (uint8_t)json_integer_value(json_object_get(messages, "claimed"));
    op->total = (uint8_t)json_integer_value(json_object_get(messages, "total"));
    json_decref(a.document);
    return true;
}

static bool
do_pop(struct worker *w, struct board *b, struct operation *op)
{
    char rest[64];
    struct linear_response a;

    op->limit = (uint8_t)(1 + random_below(&w->random, 2));
    (void)snprintf(rest, sizeof(rest), "/messages?pop=%u", op->limit);
    begin_waiting(w, b, op);
    fetch(w, b, op, "DELETE", rest, NULL, &a);
    end_waiting(b, op);
    read_messages(b, op, &a);
    json_decref(a.document);
    return true;
}

static bool
do_purge(struct worker *w, struct board *b, struct operation *op)
{
    struct linear_response a;

    fetch(w, b, op, "POST", "/purge", NULL, &a);
    json_decref(a.document);
    return true;
}

static bool
is_paused(struct board *b)
{
    bool paused;

    pthread_mutex_lock(&b->lock);
    paused = b->paused;
    pthread_mutex_unlock(&b->lock);
    return paused;
}

/* Pauses claims, or resumes them if they are paused. */
static bool
do_pause(struct worker *w, struct board *b, struct operation *op)
{
    struct linear_response a;

    op->pauses = !is_paused(b);
    fetch(w, b, op, "POST", "/pause",
          op->pauses ? "{\"claims\":true}" : "{\"claims\":false}", &a);
    if (a.code == 200 &&
        json_is_true(json_object_get(a.document, "claims")) != op->pauses)
        unexpected("pause", &a);
    pthread_mutex_lock(&b->lock);
    b->paused = op->pauses;
    pthread_mutex_unlock(&b->lock);
    json_decref(a.document);
    return true;
}

/* Notes which of the messages were held. */
static void
read_results(struct operation *op, const struct linear_response *a)
{
    const json_t *results = json_object_get(a->document, "results");

    if (a->code != 200)
        return;
    if (json_array_size(results) != op->count)
        unexpected("finish", a);
    for (size_t i = 0; i < op->count; i++) {
        const char *text =
            json_string_value(json_object_get(json_array_get(results, i), "result"));

        if (text == NULL)
            unexpected("a result", a);
        op->held |= (uint8_t)((strcmp(text, "not_held") != 0) << i);
    }
}

/* Two messages at most: one to delete, then one to release. They are two different
 * ones. */
static void
draw_items(struct worker *w, struct board *b, struct operation *op, char *body,
           size_t cap)
{
    static const char *const members[] = {"\"delete\":[\"%s\"],",
                                          "\"release\":[{\"id\":\"%s\"}],"};
    char id[ID_CAP];

    for (unsigned member = 0; member < 2; member++) {
        uint8_t message = some_message(w, b, id);

        if (message == 0 || random_chance(&w->random, 30) ||
            (op->count > 0 && op->messages[0] == message))
            continue;
        op->released |= (uint8_t)(member << op->count);
        op->messages[op->count++] = message;
        (void)snprintf(body + strlen(body), cap - strlen(body), members[member], id);
    }
}

static bool
do_finish(struct worker *w, struct board *b, struct operation *op)
{
    char claim[ID_CAP] = "", rest[96], body[512] = "{";
    struct linear_response a;
    const json_t *post, *hrefs;

    op->claim = some_claim(w, b, claim);
    if (op->claim == 0)
        return false;
    draw_items(w, b, op, body, sizeof(body));
    if (op->count == 0)
        return false;
    op->atomic = random_chance(&w->random, 50);
    /* Over Redis, which two servers share, its messages arrive behind the finish. */
    if (w->recording->ports[0] == w->recording->ports[1] && random_chance(&w->random, 40))
        op->posted = (uint8_t)number_messages(b, 1);
    if (op->posted != 0)
        draw_unique(w, op);
    if (op->posted != 0)
        (void)snprintf(body + strlen(body), sizeof(body) - strlen(body),
                       "\"post\":[{\"queue\":\"%s\",\"messages\":[{\"ttl\":3600,"
                       "\"body\":%u}]",
                       b->name, op->posted);
    if (op->unique != 0)
        (void)snprintf(body + strlen(body), sizeof(body) - strlen(body),
                       ",\"unique\":{\"key\":\"linear-%u\",\"until\":\"%s\"}", op->unique,
                       op->until_claimed ? "claimed" : "deleted");
    if (op->posted != 0)
        strcat(body, "}],");
    (void)snprintf(body + strlen(body), sizeof(body) - strlen(body), "\"atomic\":%s}",
                   op->atomic ? "true" : "false");
    (void)snprintf(rest, sizeof(rest), "/claims/%s/finish", claim);
    fetch(w, b, op, "POST", rest, body, &a);
    if (a.code != 0 && a.code != 200 && a.code != 404 && a.code != 409)
        unexpected("finish", &a);
    read_results(op, &a);
    post = json_array_get(json_object_get(a.document, "posted"), 0);
    hrefs = json_object_get(post, "resources");
    if (a.code == 200 && op->posted != 0) {
        if (json_array_size(hrefs) != 1)
            unexpected("the post of a finish", &a);
        read_posted(b, op, op->posted, json_is_true(json_object_get(post, "existing")),
                    json_string_value(json_array_get(hrefs, 0)));
    }
    json_decref(a.document);
    return true;
}

/* ---------------------------------------------------------------------- workers */

static enum linear_kind
some_kind(struct worker *w)
{
    uint64_t pick = random_below(&w->random, 100);
    unsigned kind = 0;

    while (pick >= weights[kind])
        pick -= weights[kind++];
    return (enum linear_kind)kind;
}

/* Does one operation and notes it; false if it was not possible just now. */
static bool
work(struct worker *w, struct board *b, enum linear_kind kind)
{
    typedef bool do_fn(struct worker *, struct board *, struct operation *);
    static do_fn *const functions[LINEAR_KINDS] = {
        [LINEAR_POST] = do_post,
        [LINEAR_CLAIM] = do_claim,
        [LINEAR_QUERY] = do_with_claim,
        [LINEAR_RENEW] = do_with_claim,
        [LINEAR_RELEASE] = do_with_claim,
        [LINEAR_DELETE] = do_delete,
        [LINEAR_DELETE_MANY] = do_delete_many,
        [LINEAR_GET] = do_get,
        [LINEAR_LIST] = do_list,
        [LINEAR_STATS] = do_stats,
        [LINEAR_POP] = do_pop,
        [LINEAR_PURGE] = do_purge,
        [LINEAR_FINISH] = do_finish,
        [LINEAR_PAUSE] = do_pause,
    };
    struct operation op = {.kind = kind, .worker = w->number};

    if (!functions[op.kind](w, b, &op))
        return false;
    pthread_mutex_lock(&b->lock);
    b->history->ops[b->history->count++] = op;
    pthread_mutex_unlock(&b->lock);
    return true;
}

static void *
worker_thread(void *ctx)
{
    struct worker *w = ctx;

    for (unsigned done = 0; done < w->recording->operations;) {
        if (done % w->recording->window == 0)
            w->client.gate = w->gate;
        if (!work(w, &w->boards[random_below(&w->random, RECORDER_QUEUES)], some_kind(w)))
            continue;
        done++;
        atomic_fetch_add(w->done, 1);
    }
    return NULL;
}

static bool
has_waiters(struct board *b)
{
    bool waits;

    pthread_mutex_lock(&b->lock);
    waits = b->waiting_count > 0;
    pthread_mutex_unlock(&b->lock);
    return waits;
}

/* Returns the changes to the waiting requests of all queues; *count is their number. */
static unsigned
waiting_changes(struct worker *w, unsigned *count)
{
    unsigned changes = 0;

    *count = 0;
    for (unsigned i = 0; i < RECORDER_QUEUES; i++) {
        struct board *b = &w->boards[i];

        pthread_mutex_lock(&b->lock);
        changes += b->changes;
        *count += b->waiting_count;
        pthread_mutex_unlock(&b->lock);
    }
    return changes;
}

/* Reads the number of long-polling requests from the metrics of the server. */
static unsigned
fetch_waiting(struct worker *w, int64_t *fetched_ns)
{
    static const char sample[] = "claimd_http_requests_parked{reason=\"message\"} ";
    const char *found;
    struct linear_response a;

    client_fetch(&w->client, "GET", "/metrics", NULL, &a);
    found = strstr(w->client.text, sample);
    if (a.code != 200 || found == NULL)
        unexpected("metrics", &a);
    json_decref(a.document);
    *fetched_ns = a.response_ns;
    return (unsigned)strtoul(found + strlen(sample), NULL, 10);
}

/* Notes that each waiting request is in its wait queue, if the server confirms the
 * number. */
static void
note_queued_waiters(struct worker *w)
{
    unsigned count, changes = waiting_changes(w, &count);
    int64_t fetched_ns;

    /* Two servers have separate wait queues. */
    if (w->recording->ports[0] != w->recording->ports[1] || count == 0 ||
        fetch_waiting(w, &fetched_ns) != count)
        return;
    for (unsigned i = 0; i < RECORDER_QUEUES; i++)
        pthread_mutex_lock(&w->boards[i].lock);
    for (unsigned i = 0; i < RECORDER_QUEUES; i++)
        changes -= w->boards[i].changes;
    for (unsigned i = 0; changes == 0 && i < RECORDER_QUEUES; i++)
        for (unsigned k = 0; k < w->boards[i].waiting_count; k++)
            if (w->boards[i].waiting[k]->queued_ns == 0)
                w->boards[i].waiting[k]->queued_ns = fetched_ns;
    for (unsigned i = RECORDER_QUEUES; i-- > 0;)
        pthread_mutex_unlock(&w->boards[i].lock);
}

/* Posts to each queue that has waiters in two checks in a row, or resumes its claims. */
static void *
feeder_thread(void *ctx)
{
    const struct timespec pause = {.tv_nsec = FEED_AFTER_MS * 1000000L};
    bool waited[RECORDER_QUEUES] = {false};
    struct worker *w = ctx;

    while (!atomic_load(&w->ends)) {
        (void)nanosleep(&pause, NULL);
        note_queued_waiters(w);
        for (unsigned i = 0; i < RECORDER_QUEUES; i++) {
            bool waits = has_waiters(&w->boards[i]);

            if (waits && waited[i])
                (void)work(w, &w->boards[i],
                           is_paused(&w->boards[i]) ? LINEAR_PAUSE : LINEAR_POST);
            waited[i] = waits;
        }
    }
    return NULL;
}

static void
kill_server(void)
{
    char line[16];

    printf("kill\n");
    if (fflush(stdout) != 0 || fgets(line, sizeof(line), stdin) == NULL) {
        (void)fputs("the caller has not killed the server\n", stderr);
        exit(EXIT_FAILURE);
    }
}

/* Kills the server once in each part of the history, the last time after its end. */
static void *
killer_thread(void *ctx)
{
    const struct timespec pause = {.tv_nsec = 200000};
    struct worker *w = ctx;
    unsigned all = w->recording->workers * w->recording->operations;
    unsigned part = all / w->recording->kills;

    for (unsigned i = 1; i <= w->recording->kills; i++) {
        unsigned at = i * part - (unsigned)random_below(&w->random, part);

        if (i == w->recording->kills)
            at = all;
        while (atomic_load(w->done) < at)
            (void)nanosleep(&pause, NULL);
        kill_server();
        for (unsigned n = 0; n < RECORDER_QUEUES; n++) {
            (void)work(w, &w->boards[n], LINEAR_STATS);
            (void)work(w, &w->boards[n], LINEAR_LIST);
        }
    }
    return NULL;
}

static void
start_worker(struct worker *w)
{
    void *(*thread)(void *) = w->number < w->recording->workers ? worker_thread
                              : is_killer(w)                    ? killer_thread
                                                                : feeder_thread;

    client_open(&w->client, w->recording->host, w->recording->ports[w->number % 2]);
    w->client.outlives = w->recording->kills > 0;
    if (pthread_create(&w->thread, NULL, thread, w) != 0)
        abort(); /* a test without threads ends */
}

static void
end_worker(struct worker *w)
{
    (void)pthread_join(w->thread, NULL);
    client_close(&w->client);
}

static void
open_board(struct board *b, const struct recording *recording, unsigned number,
           struct history *history)
{
    *b = (struct board){.history = history};
    history->count = 0;
    pthread_mutex_init(&b->lock, NULL);
    (void)snprintf(b->name, sizeof(b->name), "q%" PRIx64 "-%" PRIu64 "-%u-%u",
                   recording->seed, recording->round, recording->workers, number);
}

/* The queues must exist, because the model does not define statistics of a missing
 * queue. */
static void
make_queues(const struct recording *recording, const struct board *boards)
{
    struct client *c = malloc(sizeof(*c));
    char target[96];
    struct linear_response a;

    if (c == NULL)
        abort();
    client_open(c, recording->host, recording->ports[0]);
    for (unsigned i = 0; i < RECORDER_QUEUES; i++) {
        (void)snprintf(target, sizeof(target), "/v2/queues/%s", boards[i].name);
        client_fetch(c, "PUT", target, NULL, &a);
        if (a.code != 201)
            unexpected("make a queue", &a);
    }
    client_close(c);
    free(c);
}

static bool
is_possible(const struct recording *recording)
{
    unsigned operations = recording->workers * recording->operations;

    /* After each kill, the killer sends two requests to a queue. */
    return operations + 2 * recording->kills <= LINEAR_OPERATIONS - LINEAR_MESSAGES &&
           recording->operations % recording->window == 0;
}

void
record(const struct recording *recording, struct history out[RECORDER_QUEUES])
{
    struct random seeds = {recording->seed + recording->round};
    unsigned feeder = recording->workers; /* behind the workers */
    struct worker *workers = calloc(recording->workers + 1, sizeof(*workers));
    struct board *boards = calloc(RECORDER_QUEUES, sizeof(*boards));
    pthread_barrier_t gate;
    atomic_uint done = 0;

    if (workers == NULL || boards == NULL || !is_possible(recording) ||
        pthread_barrier_init(&gate, NULL, recording->workers) != 0)
        abort();
    for (unsigned i = 0; i < RECORDER_QUEUES; i++)
        open_board(&boards[i], recording, i, &out[i]);
    make_queues(recording, boards);
    for (unsigned i = 0; i <= recording->workers; i++) {
        workers[i].recording = recording;
        workers[i].boards = boards;
        workers[i].gate = &gate;
        workers[i].random.state = random_next(&seeds);
        workers[i].number = i;
        workers[i].done = &done;
        start_worker(&workers[i]);
    }
    for (unsigned i = 0; i < recording->workers; i++)
        end_worker(&workers[i]);
    atomic_store(&workers[feeder].ends, true);
    end_worker(&workers[feeder]);
    for (unsigned i = 0; i < RECORDER_QUEUES; i++) {
        name_existing(&boards[i]);
        pthread_mutex_destroy(&boards[i].lock);
    }
    pthread_barrier_destroy(&gate);
    free(workers);
    free(boards);
}
