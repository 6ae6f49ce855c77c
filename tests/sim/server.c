#include "sim/server.h"

#include "claimd/engine/engine.h"
#include "claimd/journal/journal.h"
#include "support/sim_disk.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* ---------------------------------------------------------------------- the log */

static struct server *
watched(struct store_log *log)
{
    return container_of(log, struct server, watch);
}

static enum status
watch_reserve(struct store_log *log, enum store_change_kind kind, bool checkpoint,
              size_t count, size_t bytes, size_t *space)
{
    struct server *s = watched(log);
    struct store_log *inner = journal_log(s->journal);
    enum status st = inner->reserve(inner, kind, checkpoint, count, bytes, space);

    s->log_refuses = s->log_refuses || (st != ST_OK && !checkpoint);
    return st;
}

static void
note_lsn(struct server *s, const struct store_queue *q, uint64_t lsn)
{
    if (q->kind == STORE_SCHEDULES)
        s->schedules_lsn = lsn;
    for (int place = 0; place < PLACES; place++)
        if (bytes_equal_str(q->name, place_name(place)) &&
            bytes_equal_str(q->project, place_project(place)))
            s->place_lsn[place] = lsn;
}

/* A copy of a change. The pointers of the change are valid only while it is appended. */
struct watched_change {
    enum store_change_kind kind;
    struct store_queue queue, target;
};

enum { WATCHED_CHANGES = 64 };

static bool
has_record(const struct store_change *change)
{
    switch (change->kind) {
    case STORE_CHANGE_QUEUE:
    case STORE_CHANGE_META:
    case STORE_CHANGE_QUEUE_GONE:
    case STORE_CHANGE_SUBSCRIPTION:
    case STORE_CHANGE_SUBSCRIPTION_GONE:
    case STORE_CHANGE_UNSUBSCRIBED:
        return true;
    case STORE_CHANGE_MOVE:
        return !change->transient || !change->target_transient;
    default:
        return change->kind < STORE_CHANGE_LOGGED && !change->transient;
    }
}

/* The changes of a group get LSNs one after the other. */
static uint64_t
watch_append(struct store_log *log, struct store_change *change, size_t *space)
{
    struct server *s = watched(log);
    struct store_log *inner = journal_log(s->journal);
    struct watched_change seen[WATCHED_CHANGES];
    size_t count = 0, records = 0;
    bool posts = false, moves = false;
    uint64_t lsn;

    for (const struct store_change *one = change; one != NULL; one = one->then) {
        if (count == WATCHED_CHANGES)
            abort();
        seen[count++] = (struct watched_change){one->kind, one->queue, one->target};
        records += has_record(one);
        posts |= one->kind == STORE_CHANGE_POST || one->kind == STORE_CHANGE_DETAILS;
        moves |= one->kind == STORE_CHANGE_MOVE;
    }
    s->parts += posts && !moves;
    lsn = inner->append(inner, change, space);
    /* With or without a RUN, clients see the same. */
    if (lsn == 0 || seen[0].kind == STORE_CHANGE_RUN)
        return lsn;
    s->lsn = lsn;
    if (s->first_lsn == 0)
        s->first_lsn = lsn + 1 - records;
    for (size_t i = 0; i < count; i++) {
        s->kinds[seen[i].kind]++;
        note_lsn(s, &seen[i].queue, lsn);
        if (seen[i].kind == STORE_CHANGE_MOVE)
            note_lsn(s, &seen[i].target, lsn);
    }
    return lsn;
}

static void
watch_unreserve(struct store_log *log, size_t space)
{
    struct store_log *inner = journal_log(watched(log)->journal);

    inner->unreserve(inner, space);
}

static void
journal_has_failed(void *arg, const char *text, int error)
{
    struct server *s = arg;

    (void)text;
    (void)error;
    s->lost = true;
}

static enum status
open_journal(struct server *s, const struct profile *p)
{
    struct journal_config config = {.segment_bytes = p->segment_bytes,
                                    .max_bytes = p->journal_bytes,
                                    .test_api = s->testapi != NULL,
                                    .seeded = true,
                                    .seed = p->seed + s->starts,
                                    .failed = journal_has_failed,
                                    .failed_arg = s};
    enum status st;

    s->process = config.disk = sim_disk_open(s->disk);
    s->watch = (struct store_log){
        .reserve = watch_reserve, .append = watch_append, .unreserve = watch_unreserve};
    memset(s->place_lsn, 0, sizeof(s->place_lsn));
    s->lsn = s->schedules_lsn = 0;
    s->lost = false;
    st = journal_open(&config, &s->journal, s->error);
    if (st != ST_OK)
        s->journal = NULL;
    return st;
}

static enum status
recover(struct server *s, int64_t wall_ms)
{
    struct journal_metrics metrics;
    enum status st;

    s->recovery = (struct journal_recovery){.now_ms = wall_ms, .accept_clock = true};
    st = journal_recover(s->journal, s->store, &s->recovery, s->error);
    if (st != ST_OK)
        return st;
    journal_metrics(s->journal, &metrics);
    s->recovered = metrics.durable;
    s->watch.largest = journal_log(s->journal)->largest;
    if (s->testapi != NULL)
        (void)testapi_log(s->testapi, &s->watch);
    if (s->lsn < s->recovered)
        s->lsn = s->recovered;
    s->now_ms = s->recovery.now_ms;
    return ST_OK;
}

bool
server_commit(struct server *s)
{
    return s->journal != NULL &&
           (journal_write_runs(s->journal) || journal_step(s->journal));
}

bool
server_load(struct server *s)
{
    while (journal_load_run(s->journal))
        continue;
    return !s->lost;
}

enum store_durability
server_durability(const struct server *s, uint64_t lsn)
{
    return store_log_durability(s->journal == NULL ? NULL : journal_log(s->journal), lsn);
}

static void
count_move(void *ctx)
{
    struct server *s = ctx;

    s->moved++;
}

/* It stands when there is a journal, too: what is recovered never is later than now. */
static void
open_testapi(struct server *s)
{
    if (testapi_new(s->own, &s->testapi) != ST_OK)
        abort();
    clock_init_manual(testapi_clock(s->testapi), s->now_ms);
}

static enum status
open_store(struct server *s, const struct profile *p, int64_t wall_ms)
{
    struct engine_config config = {
        .mem = s->mem,
        .shards = p->shards,
        .now_ms = s->now_ms,
        .message_ttl_s = p->rules.message_ttl_s,
        .claim_ttl_s = p->rules.claim_ttl_s,
        .claim_grace_s = p->rules.claim_grace_s,
        .max_message_ttl_s = p->rules.max_message_ttl_s,
        .key_window_ms = p->rules.key_window_ms,
        .keys = p->rules.few_keys ? 3 : 1000,
        .feed_bytes = (uint64_t)p->rules.feed_bytes,
        .require_confirmation = p->rules.require_confirmation,
        .seeded = true,
        .seed = p->seed + s->starts,
    };
    enum status st = s->disk == NULL ? ST_OK : open_journal(s, p);

    if (s->journal != NULL) {
        config.log = &s->watch;
        config.runs = journal_runs(s->journal);
        config.unload_all = p->unload;
        config.backlog_memory = p->unload ? 0 : UINT64_MAX;
    }
    if (s->testapi != NULL)
        config.log = testapi_log(s->testapi, config.log);
    if (engine_open(&config, &s->store) != ST_OK)
        abort();
    if (s->testapi != NULL)
        testapi_attach(s->testapi, s->store, NULL, count_move, s);
    s->starts++;
    return s->journal == NULL ? st : recover(s, wall_ms);
}

/* The thread of the scheduler is not started: server_schedule() is its turn. */
static enum status
open_body(void *ctx, const struct store_queue *queue, struct bytes body, struct buf *out)
{
    (void)ctx;
    (void)queue;
    buf_bytes(out, body);
    return out->failed ? ST_NO_MEMORY : ST_OK;
}

static enum status
watch_project(void *arg, struct bytes project)
{
    return scheduler_watch(arg, project);
}

static void
open_scheduler(struct server *s, const struct profile *p)
{
    struct scheduler_config config = {.mem = s->mem,
                                      .store = s->store,
                                      .clock = &s->clock,
                                      .real = &s->real,
                                      .open_body = open_body};

    if (p->actors[PART_PLANNER] == 0)
        return;
    clock_init_manual(&s->clock, s->now_ms);
    if (zones_open(s->mem, "/nonexistent", &s->zones) != ST_OK)
        abort();
    config.zones = s->zones;
    if (scheduler_open(&config, &s->scheduler) != ST_OK ||
        scheduler_reload(s->scheduler) != ST_OK)
        abort();
    s->watcher = (struct api_scheduler){watch_project, NULL, s->scheduler};
}

static void
close_scheduler(struct server *s)
{
    scheduler_close(s->scheduler);
    zones_close(s->zones);
    s->scheduler = NULL;
    s->zones = NULL;
}

static void
open_api(struct server *s, const struct profile *p)
{
    struct api_config config = {.limits = api_limits_default,
                                .store = s->store,
                                .mem = s->mem,
                                .testapi = s->testapi,
                                .real = &s->real,
                                .time_base = &s->real,
                                .zones = s->zones,
                                .scheduler = s->scheduler == NULL ? NULL : &s->watcher};

    config.limits.message_delete_with_claim_id = p->rules.strict_delete;
    config.limits.max_claim_ttl = p->claim_ttl_max;
    config.limits.max_claim_grace = p->claim_grace_max;
    if (api_new(&config, &s->api) != ST_OK)
        abort();
}

static void
fire(struct store_wakeup *wakeup)
{
    container_of(wakeup, struct server, wakeup)->wakeup_fired = true;
}

static struct store_wakeup *
notify_deliverer(struct store_listener *listener, enum store_notification notification)
{
    (void)notification; /* there is one only */
    container_of(listener, struct server, deliverer)->delivery_notified = true;
    return NULL;
}

enum status
server_boot(struct server *s, int64_t wall_ms)
{
    const struct profile *p = s->profile;
    int64_t now_ms = s->now_ms;
    enum status st;

    s->now_ms = wall_ms;
    if (p->testapi)
        open_testapi(s);
    st = open_store(s, p, wall_ms);
    if (st != ST_OK)
        s->now_ms = now_ms;
    else if (s->testapi != NULL)
        clock_init_manual(testapi_clock(s->testapi), s->now_ms);
    open_scheduler(s, p);
    open_api(s, p);
    s->delivery_notified = true;
    s->deliverer.notify = notify_deliverer;
    store_delivery_watch(s->store, &s->deliverer);
    api_caller_init(&s->caller, s->api, s->mem, s->now_ms);
    api_caller_init(&s->peeper, s->api, s->mem, s->now_ms);
    s->caller.loads = s->peeper.loads = s->journal;
    return st;
}

void
server_begin(struct server *s, const struct profile *p)
{
    *s = (struct server){.profile = p,
                         .mem = mem_new(0),
                         .own = mem_new(0),
                         .now_ms = SERVER_START_MS,
                         .wakeup.fire = fire};
    clock_init_manual(&s->real, SERVER_START_MS);
    if (s->mem == NULL || s->own == NULL)
        abort();
    buf_init(&s->target, s->own);
    buf_init(&s->body, s->own);
    if (p->restart_once > 0)
        s->disk = sim_disk_new(p->seed);
    if (server_boot(s, s->now_ms) != ST_OK)
        abort();
}

/* Returns how many allocations there had been. */
static uint64_t
trouble_begins(struct server *s, struct trouble trouble)
{
    uint64_t attempts = mem_attempts(s->mem);

    mem_set_budget(s->mem, trouble.tight ? 1 : 0);
    mem_fail_nth(s->mem, trouble.starve);
    s->log_refuses = false;
    memset(s->kinds, 0, sizeof(s->kinds));
    s->parts = 0;
    return attempts;
}

/* True if the allocation that was to fail was reached, or the log has refused a
 * change. */
static bool
trouble_ends(struct server *s, struct trouble trouble, uint64_t attempts)
{
    bool reached = mem_attempts(s->mem) - attempts >= trouble.starve;

    mem_fail_nth(s->mem, 0);
    mem_set_budget(s->mem, 0);
    return (trouble.starve != 0 && reached) || s->log_refuses;
}

static bool
take_back(struct server *s, size_t which, struct trouble trouble,
          enum store_outcome outcome, int64_t again_ms)
{
    struct store_delivery d = s->leased[which];
    uint64_t attempts;

    s->leased_count--;
    for (size_t i = which; i < s->leased_count; i++)
        s->leased[i] = s->leased[i + 1];
    attempts = trouble_begins(s, trouble);
    store_delivery_done(s->store, STORE_AT(s->now_ms), &d, outcome, again_ms);
    return trouble_ends(s, trouble, attempts);
}

/* False if memory is left. */
static bool
close_all(struct server *s)
{
    const struct trouble none = {.starve = 0};

    for (int i = 0; i < WAITERS_MAX; i++)
        if (s->parked[i].used)
            server_end(s, i);
    while (s->leased_count > 0) /* the outcome is unknown */
        (void)take_back(s, 0, none, STORE_OUTCOME_BACKED_OFF, s->now_ms);
    store_delivery_watch(s->store, NULL);
    api_caller_fini(&s->caller);
    api_caller_fini(&s->peeper);
    api_free(s->api);
    close_scheduler(s);
    journal_close(s->journal);
    s->journal = NULL;
    store_close(s->store);
    testapi_free(s->testapi);
    s->testapi = NULL;
    return mem_used(s->mem) == 0;
}

bool
server_down(struct server *s, enum server_end how)
{
    bool clean;

    if (how == END_KILLED)
        sim_disk_kill(s->disk);
    else if (how == END_TORN)
        sim_disk_crash(s->disk);
    else if (how == END_LOSING_ALL)
        sim_disk_crash_losing_all(s->disk);
    clean = close_all(s);
    if (how == END_PEACE)
        disk_shut(s->process);
    s->wakeup_due = false;
    return clean;
}

bool
server_shut(struct server *s)
{
    bool clean = close_all(s);

    sim_disk_free(s->disk);
    if (clean)
        mem_destroy(s->mem);
    buf_fini(&s->target);
    buf_fini(&s->body);
    mem_destroy(s->own);
    return clean;
}

static const char *
content_type(const struct operation *op)
{
    return op->kind == OP_QUEUE_PATCH ? "application/openstack-messaging-v2.0-json-patch"
                                      : NULL;
}

static void
set_headers(struct server *s, const struct operation *op)
{
    s->caller.headers[API_HEADER_CLIENT_ID] = client_uuid(op->client);
    s->caller.headers[API_HEADER_PROJECT_ID] = operation_project(op);
    s->caller.headers[API_HEADER_CONTENT_TYPE] = content_type(op);
    (void)snprintf(s->key, sizeof(s->key), "sim-key-%" PRIu64, op->key);
    s->caller.headers[API_HEADER_IDEMPOTENCY_KEY] = op->key == 0 ? NULL : s->key;
    unique_header(op->unique, s->unique, sizeof(s->unique));
    s->caller.headers[API_HEADER_UNIQUE] = op->unique.number == 0 ? NULL : s->unique;
}

/* The disk is dead, so the process ends before the request has its messages. */
static void
end_without_response(struct response *res)
{
    buf_reset(&res->body, 0);
    res->code = 503;
    res->headers[0] = (struct response_header){"Retry-After", "1"};
    res->header_count = 1;
    res->lsn = UINT64_MAX; /* which is never durable */
}

bool
server_do(struct server *s, const struct operation *op, struct trouble trouble,
          struct sim_response *response, bool *starved)
{
    const char *method;
    uint64_t attempts;

    buf_reset(&s->target, SIZE_MAX);
    buf_reset(&s->body, SIZE_MAX);
    method = operation_write(op, &s->target, &s->body);
    set_headers(s, op);
    s->caller.now_ms = s->now_ms;
    attempts = trouble_begins(s, trouble);
    (void)api_call_bytes(&s->caller, api_method(bytes_str(method)), buf_view(&s->target),
                         s->body.len == 0 ? BYTES_NONE : buf_view(&s->body));
    *starved = trouble_ends(s, trouble, attempts);
    if (s->caller.res.code == 0) {
        end_without_response(&s->caller.res);
        *starved = true;
    }
    s->last = (struct exchanged){.method = method,
                                 .project = operation_project(op),
                                 .key = op->key == 0 ? NULL : s->key,
                                 .unique = op->unique.number == 0 ? NULL : s->unique,
                                 .target = buf_view(&s->target),
                                 .body = buf_view(&s->body),
                                 .res = &s->caller.res};
    return response_read(op, &s->caller.res, response);
}

/* ---------------------------------------------------------------------- waiting */

/* Takes a note; one wakeup is enough for all of them. */
static struct store_wakeup *
notify(struct store_listener *listener, enum store_notification notification)
{
    struct parked *p = container_of(listener, struct parked, waiting.listener);
    struct server *s = p->server;

    p->notified = true;
    p->dismissed |= notification == STORE_GONE;
    if (s->wakeup_due)
        return NULL;
    s->wakeup_due = true;
    s->wakeup_fired = false;
    return &s->wakeup;
}

bool
server_has_rung(struct server *s)
{
    bool fired = !s->wakeup_due || s->wakeup_fired;

    s->wakeup_due = false;
    return fired;
}

/* Writes the request; its texts stay where they are as long as it waits. */
static void
park(struct server *s, struct parked *p, const struct operation *op)
{
    const char *mark;

    *p = (struct parked){.used = true, .op = *op, .server = s};
    p->waiting.listener.notify = notify;
    arena_init(&p->arena, s->mem);
    buf_init(&p->res.body, s->mem);
    buf_init(&p->target, s->own);
    buf_init(&p->body, s->own);
    p->req.method = api_method(bytes_str(operation_write(op, &p->target, &p->body)));
    p->req.path = buf_view(&p->target);
    p->req.body = p->body.len == 0 ? BYTES_NONE : buf_view(&p->body);
    p->req.arena = &p->arena;
    p->req.waiting = &p->waiting;
    mark = memchr(p->target.data, '?', p->target.len);
    if (mark != NULL) {
        p->req.path.len = (size_t)(mark - p->target.data);
        p->req.query = bytes_of(mark + 1, p->target.len - p->req.path.len - 1);
    }
    p->req.headers[API_HEADER_ACCEPT] = bytes_str("application/json");
    p->req.headers[API_HEADER_CLIENT_ID] = bytes_str(client_uuid(op->client));
    p->req.headers[API_HEADER_PROJECT_ID] = bytes_str(place_project(op->place));
    (void)snprintf(p->prefer, sizeof(p->prefer), "wait=%d", op->wait_s);
    p->req.headers[API_HEADER_PREFER] = bytes_str(p->prefer);
}

bool
server_handle(struct server *s, int waiter, const struct operation *op,
              enum waiting_end end, struct trouble trouble, struct sim_response *response,
              bool *starved)
{
    struct parked *p = &s->parked[waiter];
    enum api_next next;
    uint64_t attempts;

    if (op != NULL)
        park(s, p, op);
    p->req.now_ms = s->now_ms;
    p->waiting.end = end;
    p->notified = p->dismissed = false;
    attempts = trouble_begins(s, trouble);
    do
        next = api_handle(s->api, &p->req, &p->res);
    while (next == API_AGAIN || (next == API_LOAD && server_load(s)));
    if (next == API_LOAD) {
        api_stop_waiting(s->api, &p->req);
        end_without_response(&p->res);
    }
    *starved = trouble_ends(s, trouble, attempts) || next == API_LOAD;
    p->waits = next == API_WAIT;
    if (p->waits && p->until_ms == 0)
        p->until_ms = s->now_ms + p->waiting.wait_ms;
    s->last = (struct exchanged){.method = p->op.kind == OP_POP ? "DELETE" : "POST",
                                 .project = place_project(p->op.place),
                                 .target = buf_view(&p->target),
                                 .body = buf_view(&p->body),
                                 .res = &p->res,
                                 .waits = p->waits};
    if (!p->waits)
        return response_read(&p->op, &p->res, response);
    memset(response, 0, sizeof(*response));
    return p->res.body.len == 0;
}

bool
server_waits(const struct server *s, int waiter)
{
    return s->parked[waiter].used && s->parked[waiter].waits;
}

void
server_end(struct server *s, int waiter)
{
    struct parked *p = &s->parked[waiter];

    api_stop_waiting(s->api, &p->req);
    arena_fini(&p->arena);
    buf_fini(&p->res.body);
    buf_fini(&p->target);
    buf_fini(&p->body);
    p->used = p->waits = false;
}

void
server_release_unsent(struct server *s, bool uncount)
{
    const struct response *res = s->last.res;
    enum status st;

    do
        st =
            store_claim_release(s->store, STORE_AT(s->now_ms), &res->claim_queue,
                                res->claim_id, uncount ? STORE_NOT_SEEN : STORE_NOT_SENT);
    while (st == ST_AGAIN);
}

struct store_delivery *
server_lease(struct server *s)
{
    struct store_delivery *d = &s->leased[s->leased_count];
    enum status st;

    if (s->leased_count == LEASED_MAX)
        return NULL;
    s->delivery_notified = false;
    do
        st = store_delivery_next(s->store, STORE_AT(s->now_ms), d);
    while (st == ST_AGAIN);
    if (st != ST_OK)
        return NULL;
    s->delivery_notified = true; /* there may be more */
    s->leased_count++;
    return d;
}

bool
server_is_notified(const struct server *s)
{
    return s->delivery_notified;
}

bool
server_give(struct server *s, size_t which, struct trouble trouble,
            enum store_outcome outcome, int64_t again_ms)
{
    return take_back(s, which, trouble, outcome, again_ms);
}

/* ---------------------------------------------------------------------- schedules */

bool
server_schedule(struct server *s, struct trouble trouble)
{
    uint64_t attempts;

    clock_init_manual(&s->clock, s->now_ms);
    attempts = trouble_begins(s, trouble);
    (void)scheduler_step(s->scheduler); /* it is tried again */
    return !trouble_ends(s, trouble, attempts);
}

struct store_batch
server_scheduled(struct server *s, struct store_id behind)
{
    const struct store_queue queue = {.project = bytes_str(SCHEDULE_PROJECT),
                                      .name = bytes_str(SCHEDULE_QUEUE)};
    const struct store_filter filter = {
        .marker = behind.text[0] == '\0' ? BYTES_NONE : store_id_bytes(&behind),
        .limit = 100,
        .include_claimed = true,
        .include_delayed = true};
    struct store_batch batch = STORE_BATCH_INIT;
    enum status st;

    do
        st = store_message_list(s->store, STORE_AT(s->now_ms), &queue, &filter, &batch);
    while (st == ST_AGAIN);
    return batch;
}

int
server_call_scheduled(struct server *s, const char *method, const char *tail,
                      const char *body)
{
    char target[128];

    (void)snprintf(target, sizeof(target), "/%s/queues/" SCHEDULE_QUEUE "%s",
                   strcmp(tail, "/pause") == 0 ? "claimd" : "v2", tail);
    s->peeper.now_ms = s->now_ms;
    s->peeper.headers[API_HEADER_PROJECT_ID] = SCHEDULE_PROJECT;
    return api_call(&s->peeper, method, target, body);
}

void
server_set_wall(struct server *s, int64_t ahead_ms)
{
    s->real.wall_ahead_ms = ahead_ms;
    (void)scheduler_reload(s->scheduler); /* as its thread does */
}

bool
server_has(struct server *s, int place, struct store_id id)
{
    char target[128];

    (void)snprintf(target, sizeof(target), "/v2/queues/%s/messages/%s", place_name(place),
                   id.text);
    s->peeper.now_ms = s->now_ms;
    s->peeper.headers[API_HEADER_PROJECT_ID] = place_project(place);
    return api_call(&s->peeper, "GET", target, NULL) == 200;
}

bool
server_settle(struct server *s)
{
    s->log_refuses = false;
    (void)server_housekeep(s);
    return !s->log_refuses;
}

size_t
server_find(struct server *s, int place, struct store_id id, int64_t *dead_ms)
{
    const struct store_queue queue = {.project = bytes_str(place_project(place)),
                                      .name = bytes_str(place_name(place))};
    const struct store_filter filter = {
        .limit = 10000, .include_claimed = true, .include_delayed = true};
    struct store_batch batch = STORE_BATCH_INIT;
    size_t found = SIZE_MAX;
    enum status st;

    do
        st = store_message_list(s->store, (&(struct store_op){.now_ms = s->now_ms}),
                                &queue, &filter, &batch);
    while (st == ST_AGAIN && (s->journal == NULL || server_load(s)));
    for (size_t i = 0; st == ST_OK && i < batch.count; i++)
        if (strcmp(batch.messages[i].id.text, id.text) == 0) {
            found = i;
            *dead_ms = batch.messages[i].details == NULL
                           ? 0
                           : batch.messages[i].details->dead_lettered_ms;
        }
    store_batch_release(&batch);
    return found;
}

/* ---------------------------------------------------------------------- time */

void
server_pass(struct server *s, int64_t ms)
{
    s->now_ms += ms;
    if (s->testapi != NULL)
        clock_advance(testapi_clock(s->testapi), ms);
}

void
server_advance_begin(struct server *s, int64_t seconds)
{
    api_caller_init(&s->mover, s->api, s->own, s->now_ms);
    (void)snprintf(s->move_body, sizeof(s->move_body), "{\"seconds\":%lld}",
                   (long long)seconds);
    s->move = (struct request){.method = METHOD_POST,
                               .path = bytes_str("/claimd/clock/advance"),
                               .body = bytes_str(s->move_body),
                               .arena = &s->mover.arena};
    s->move.headers[API_HEADER_ACCEPT] = bytes_str("application/json");
}

bool
server_advance(struct server *s)
{
    enum api_next next;

    s->move.now_ms = s->now_ms;
    next = api_handle(s->api, &s->move, &s->mover.res);
    s->now_ms = clock_now_ms(testapi_clock(s->testapi));
    return next != API_AGAIN;
}

int
server_advance_end(struct server *s)
{
    int code = s->mover.res.code;

    api_caller_fini(&s->mover);
    return code;
}

bool
server_calls(const struct server *s)
{
    return !testapi_retries_are_done(s->testapi);
}

void
server_end_waiters(struct server *s)
{
    for (int i = 0; i < WAITERS_MAX; i++)
        if (s->parked[i].used)
            server_end(s, i);
}

int64_t
server_housekeep(struct server *s)
{
    int64_t next_ms;

    do
        store_housekeep(s->store, s->now_ms, &next_ms);
    while (next_ms <= s->now_ms);
    return next_ms;
}
