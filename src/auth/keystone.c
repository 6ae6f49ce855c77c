/*
 * keystone: finds the user of a Keystone token. Declared in claimd/auth/keystone.h.
 *
 *     1. keystone_ask() refuses a text that can be no token (token_is_valid()).
 *     2. verdict_find_or_ask() looks for the digest of the token in the caches of
 *        accepted and of refused tokens.
 *     3. check_join() adds the caller to the check of its token. If there is none,
 *        check_submit() gives one to the executor, in front of others if Keystone has
 *        accepted the token before.
 *     4. The fiber of the caller parks (fiber_park()), and its worker serves other
 *        requests.
 *     5. run_check() runs on a thread of the executor. ask_wire() asks Keystone and
 *        blocks (keystone_wire.c). read_response() reads the verdict.
 *     6. keep_verdict() caches the verdict, unless the caches were cleared meanwhile.
 *     7. run_check() wakes all callers of the check. Each has a pin on the verdict, and
 *        keystone_ask() reads it for its caller.
 *
 * Read verdict.h for the caches, and keystone_token.c for the document of a token.
 */
#include "claimd/auth/keystone.h"

#include "auth/verdict.h"
#include "claimd/base/clock.h"
#include "claimd/base/fiber.h"
#include "claimd/base/lock.h"

enum { HEALTH_EVERY_MS = 1000 };

struct keystone {
    struct keystone_config config;
    struct lock lock; /* guards what follows */
    struct verdict_cache accepted, refused;
    struct hashmap checks; /* in progress, by digest */
    size_t waiters;        /* of all checks */
    uint64_t generation;   /* of the caches: grows with each keystone_clear_cache() */
    enum keystone_health reported;
    int64_t reported_ms;
};

/* A caller that waits for a check, on the stack of the caller. It is invalid after the
 * wake-up. */
struct waiter {
    struct waiter *next;
    struct fiber *fiber;     /* parked; NULL: the calling thread does the check */
    struct verdict *verdict; /* out, pinned */
};

/* A request to Keystone about a token. */
struct token_check {
    struct executor_job job;
    struct hashnode node;
    struct keystone *k;
    struct verdict *verdict;     /* pinned. It has the digest, and gets the result */
    struct waiter *first_waiter; /* guarded by k->lock */
    int64_t asked_ms;
    int64_t begun_ns; /* clock_stopwatch_ns() */
    uint64_t generation;
    size_t token_len;
    char token[];
};

/* ------------------------------------------------------------------ life */

enum status
keystone_new(const struct keystone_config *config, struct keystone **out)
{
    struct keystone *k = mem_calloc(config->mem, 1, sizeof(*k));

    if (k == NULL)
        return ST_NO_MEMORY;
    k->config = *config;
    lock_init(&k->lock);
    verdict_cache_init(&k->accepted, config->mem, &config->key, config->cache_tokens);
    verdict_cache_init(&k->refused, config->mem, &config->key, KEYSTONE_REFUSED_MAX);
    hashmap_init(&k->checks, config->mem);
    k->reported_ms = INT64_MIN / 2;
    *out = k;
    return ST_OK;
}

void
keystone_free(struct keystone *k)
{
    if (k == NULL)
        return;
    ENSURE(k->checks.count == 0);
    hashmap_fini(&k->checks);
    verdict_cache_fini(&k->accepted);
    verdict_cache_fini(&k->refused);
    lock_fini(&k->lock);
    mem_free(k->config.mem, k);
}

void
keystone_clear_cache(struct keystone *k)
{
    lock_acquire(&k->lock);
    verdict_cache_clear(&k->accepted);
    verdict_cache_clear(&k->refused);
    k->generation++;
    lock_release(&k->lock);
}

size_t
keystone_count(struct keystone *k)
{
    size_t count;

    lock_acquire(&k->lock);
    count = k->accepted.map.count + k->refused.map.count;
    lock_release(&k->lock);
    return count;
}

/* ------------------------------------------------------------------ checks */

static struct token_check *
check_of_node(const struct hashnode *node)
{
    return container_of(node, struct token_check, node);
}

static bool
check_has_digest(const struct hashnode *node, const void *key)
{
    return token_digest_equal(&check_of_node(node)->verdict->digest, key);
}

static void
check_free(struct token_check *q)
{
    struct mem *mem = q->k->config.mem;

    verdict_unpin(q->verdict);
    explicit_bzero(q->token, q->token_len);
    mem_free(mem, q);
}

static struct token_check *
check_new(struct keystone *k, const struct token_digest *digest, struct bytes token,
          int64_t now_ms)
{
    struct token_check *q = mem_calloc(k->config.mem, 1, sizeof(*q) + token.len);

    if (q == NULL)
        return NULL;
    q->k = k;
    q->verdict = verdict_new(k->config.mem);
    if (q->verdict == NULL) {
        mem_free(k->config.mem, q);
        return NULL;
    }
    q->verdict->digest = *digest;
    q->asked_ms = now_ms;
    q->begun_ns = clock_stopwatch_ns();
    q->generation = k->generation;
    q->token_len = token.len;
    memcpy(q->token, token.data, token.len);
    return q;
}

/* ------------------------------------------------------------------ responses */

/* Reads the document of a response into the verdict. */
static enum keystone_health
read_document(struct token_check *q, struct bytes body, struct reason *why)
{
    const struct keystone_config *config = &q->k->config;
    struct verdict *v = q->verdict;
    struct reason fault;

    reason_init(&fault);
    if (keystone_token_read(body, &config->roles, v, &fault) != ST_OK) {
        (void)reason_give(why, ST_UNAVAILABLE, "the response of Keystone is invalid: %s",
                          fault.text);
        return KEYSTONE_UNAVAILABLE;
    }
    v->status = ST_OK;
    v->from_ms = q->asked_ms;
    v->until_ms = q->asked_ms + config->cache_ms;
    if (v->until_ms > v->expires_ms)
        v->until_ms = v->expires_ms;
    return KEYSTONE_RESPONDING;
}

static enum keystone_health
read_response(struct token_check *q, int code, struct bytes body, struct reason *why)
{
    int64_t cache_ms = q->k->config.cache_ms;

    switch (code) {
    case 200:
        return read_document(q, body, why);
    case 404:
        if (cache_ms > KEYSTONE_REFUSED_MS)
            cache_ms = KEYSTONE_REFUSED_MS;
        q->verdict->status = ST_UNAUTHORIZED;
        q->verdict->from_ms = q->asked_ms;
        q->verdict->until_ms = q->asked_ms + cache_ms;
        return KEYSTONE_RESPONDING;
    case 401:
    case 403:
        (void)reason_give(why, ST_UNAVAILABLE,
                          "Keystone refused the service token (status %d)", code);
        return KEYSTONE_SERVICE_TOKEN_REFUSED;
    default:
        (void)reason_give(why, ST_UNAVAILABLE, "Keystone returned status %d", code);
        return KEYSTONE_UNAVAILABLE;
    }
}

/* Sends the request to Keystone, and reads the response into the verdict. */
static enum keystone_health
ask_wire(struct token_check *q, int64_t left_ms, struct reason *why)
{
    struct keystone_wire *wire = q->k->config.wire;
    enum keystone_health health = KEYSTONE_UNAVAILABLE;
    struct buf body;
    enum status st;
    int code = 0;

    buf_init(&body, q->k->config.mem);
    st = wire->ask(wire, bytes_of(q->token, q->token_len), left_ms, &code, &body, why);
    if (st == ST_OK)
        health = read_response(q, code, buf_view(&body), why);
    else if (st == ST_NO_MEMORY)
        q->verdict->status =
            reason_give(why, st, "out of memory while reading the response of Keystone");
    buf_fini(&body);
    return health;
}

/* Adds the verdict to its cache, unless the caches were cleared since the check began. */
static void
keep_verdict(struct keystone *k, const struct token_check *q)
{
    lock_assert_held(&k->lock);
    if (q->generation != k->generation)
        return;
    if (q->verdict->status == ST_OK)
        verdict_cache_put(&k->accepted, q->verdict);
    if (q->verdict->status != ST_UNAUTHORIZED)
        return;
    verdict_cache_put(&k->refused, q->verdict);
    verdict_cache_drop(&k->accepted, &q->verdict->digest);
}

static void
run_check(struct token_check *q)
{
    struct keystone *k = q->k;
    int64_t passed_ms = (clock_stopwatch_ns() - q->begun_ns) / 1000000;
    enum keystone_health health = KEYSTONE_UNAVAILABLE;
    struct reason why;
    bool report;

    reason_init(&why);
    if (passed_ms < k->config.timeout_ms)
        health = ask_wire(q, k->config.timeout_ms - passed_ms, &why);
    else
        (void)reason_give(&why, ST_UNAVAILABLE,
                          "the check waited too long behind checks of other tokens");
    lock_acquire(&k->lock);
    keep_verdict(k, q);
    report = health != k->reported &&
             q->asked_ms + passed_ms - k->reported_ms >= HEALTH_EVERY_MS;
    if (report) {
        k->reported = health;
        k->reported_ms = q->asked_ms + passed_ms;
    }
    if (k->config.executor != NULL) { /* else the check is not in the table */
        hashmap_remove(&k->checks, &q->node);
        for (const struct waiter *w = q->first_waiter; w != NULL; w = w->next)
            k->waiters--;
    }
    lock_release(&k->lock);
    if (report && k->config.health != NULL)
        k->config.health(k->config.ctx, health, why.text);
    while (q->first_waiter != NULL) {
        struct waiter *w = q->first_waiter;

        q->first_waiter = w->next;
        w->verdict = verdict_pin(q->verdict);
        if (w->fiber != NULL)
            fiber_wake(w->fiber);
    }
    check_free(q);
}

static void
run_check_job(struct executor_job *job)
{
    run_check(container_of(job, struct token_check, job));
}

/* ------------------------------------------------------------------ asking */

/* True if the text may be a token: visible ASCII, which cannot end a header. */
static bool
token_is_valid(struct bytes token)
{
    for (size_t i = 0; i < token.len; i++)
        if (token.data[i] <= 0x20 || token.data[i] >= 0x7f)
            return false;
    return token.len > 0 && token.len <= KEYSTONE_TOKEN_MAX;
}

/* Submits a check to the executor. Tokens that Keystone has accepted before go first,
 * because invented tokens may fill the queue. */
static enum status
check_submit(struct keystone *k, struct token_check *q)
{
    const bool known =
        verdict_cache_remembers(&k->accepted, &q->verdict->digest, q->asked_ms);
    enum status st = hashmap_reserve(&k->checks, 1);

    q->job.run = run_check_job;
    if (st == ST_OK)
        st = known ? executor_submit_first(k->config.executor, &q->job)
                   : executor_submit(k->config.executor, &q->job);
    if (st == ST_OK)
        hashmap_insert(&k->checks, &q->node,
                       token_digest_hash(&k->config.key, &q->verdict->digest));
    return st;
}

/* Adds the waiter to the check of its token. Begins the check if there is none. */
static enum status
check_join(struct keystone *k, const struct token_digest *digest, struct bytes token,
           int64_t now_ms, struct waiter *self)
{
    struct hashnode *node = hashmap_find(
        &k->checks, token_digest_hash(&k->config.key, digest), check_has_digest, digest);
    struct token_check *q;

    lock_assert_held(&k->lock);
    if (self->fiber == NULL || k->waiters >= KEYSTONE_WAITERS_MAX)
        return ST_UNAVAILABLE;
    if (node != NULL) {
        q = check_of_node(node);
    } else {
        enum status st;

        q = check_new(k, digest, token, now_ms);
        if (q == NULL)
            return ST_NO_MEMORY;
        st = check_submit(k, q); /* the check cannot end before the unlock */
        if (st != ST_OK) {
            check_free(q);
            return st;
        }
    }
    self->next = q->first_waiter;
    q->first_waiter = self;
    k->waiters++;
    return ST_OK;
}

/* Sets the verdict of the proof: a cached one, or that of a new check. */
static enum status
verdict_find_or_ask(struct keystone *k, struct bytes token, int64_t now_ms,
                    struct access_proof *proof)
{
    struct waiter self = {.fiber = fiber_current()};
    struct token_digest digest;
    enum status st = ST_OK;

    token_digest_of(token, &digest);
    lock_acquire(&k->lock);
    proof->verdict = verdict_cache_find(&k->accepted, &digest, now_ms);
    if (proof->verdict == NULL)
        proof->verdict = verdict_cache_find(&k->refused, &digest, now_ms);
    if (proof->verdict != NULL)
        (void)verdict_pin(proof->verdict);
    else if (k->config.executor != NULL)
        st = check_join(k, &digest, token, now_ms, &self);
    lock_release(&k->lock);
    if (proof->verdict != NULL || st != ST_OK)
        return st;
    if (k->config.executor == NULL) { /* the calling thread does the check */
        struct token_check *q = check_new(k, &digest, token, now_ms);

        if (q == NULL)
            return ST_NO_MEMORY;
        self.fiber = NULL;
        q->first_waiter = &self;
        run_check(q);
    } else {
        proof->asking = true;
        fiber_park(self.fiber);
        proof->asking = false;
    }
    proof->verdict = self.verdict;
    return st;
}

enum status
keystone_ask(struct keystone *k, struct bytes token, int64_t now_ms,
             struct access_proof *proof, struct keystone_caller *out, struct reason *why)
{
    const struct verdict *v;
    enum status st = ST_OK;

    if (!token_is_valid(token))
        return reason_give(why, ST_UNAUTHORIZED, "the token has an invalid format");
    if (proof->verdict == NULL)
        st = verdict_find_or_ask(k, token, now_ms, proof);
    if (st == ST_UNAVAILABLE)
        return reason_give(why, st, "claimd is checking too many tokens");
    if (st != ST_OK)
        return st;
    v = proof->verdict;
    if (v->status == ST_UNAVAILABLE)
        return reason_give(why, ST_UNAVAILABLE,
                           "claimd cannot reach the identity server");
    if (v->status == ST_UNAUTHORIZED)
        return reason_give(why, ST_UNAUTHORIZED, "the token is unknown");
    if (v->status == ST_OK && now_ms >= v->expires_ms)
        return reason_give(why, ST_UNAUTHORIZED, "the token has expired");
    if (v->status != ST_OK)
        return v->status;
    *out = (struct keystone_caller){.name = bytes_of(v->name, v->name_len),
                                    .roles = v->roles,
                                    .expires_ms = v->expires_ms};
    if (v->project_len > 0)
        out->project = bytes_of(v->project, v->project_len);
    return ST_OK;
}

void
access_proof_drop(struct access_proof *proof)
{
    verdict_unpin(proof->verdict);
    proof->verdict = NULL;
}
