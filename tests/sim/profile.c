#include "sim/profile.h"

#include "claimd/api/limits.h"

const char *
part_name(enum part part)
{
    static const char *const names[PART_COUNT] = {"producer",  "worker", "popper",
                                                  "observer",  "admin",  "subscriber",
                                                  "deliverer", "planner"};

    return names[part];
}

static void
draw_actors(struct profile *p, struct random *r)
{
    p->actors[PART_PRODUCER] = (int)random_between(r, 2, 12);
    p->actors[PART_WORKER] = (int)random_between(r, 4, 24);
    p->actors[PART_POPPER] = random_chance(r, 60) ? (int)random_between(r, 1, 4) : 0;
    p->actors[PART_OBSERVER] = (int)random_between(r, 1, 12);
    p->actors[PART_ADMIN] = random_chance(r, 75) ? (int)random_between(r, 1, 4) : 0;
    p->projects = (int)random_between(r, 1, PROJECTS);
    p->names = (int)random_between(r, 1, NAMES);
}

static void
draw_sizes(struct profile *p, struct random *r)
{
    p->batch = random_of(r, 1, 3, 10, 10, 40, DRAFTS_MAX);
    p->body = random_of(r, 20, 20, 60, 400, 3000);
    p->claim_limit = random_of(r, 1, 2, 5, 10, IDS_MAX);
    p->ttl_most_s = random_of(r, 61, 120, 400, 4000, 1209600);
    p->claim_most_s = random_of(r, 61, 120, 400, 43200);
}

static void
draw_rates(struct profile *p, struct random *r)
{
    p->wait_once = random_of(r, 1, 2, 4, 10);
    p->deadline_once = random_of(r, 0, 4, 8, 20, 60);
    p->long_wait_once = random_of(r, 0, 30, 100, 300);
    p->day_wait_once = random_of(r, 0, 0, 100, 400);
    p->housekeep_once = random_of(r, 0, 0, 1, 5, 50, 400);
    p->starve_once = random_of(r, 0, 0, 3, 10, 40);
    p->lose_once = random_of(r, 0, 5, 20, 100);
    p->delay_once = random_of(r, 0, 0, 2, 5, 20);
    p->reset_once = random_of(r, 0, 3, 10, 30);
    p->dead_letters_once = random_of(r, 0, 2, 4);
    p->memory = random_of(r, 0, 0, 4000, 30000);
}

/*
 * Queues that are empty most of the time, for some of the seeds; with dice of their own,
 * so that the others make the histories they always made.
 */
static void
draw_waiting(struct profile *p, struct random *r)
{
    if (!random_chance(r, 30))
        return;
    p->waiting_once = random_of(r, 1, 2);
    p->lose_claim_once = random_of(r, 0, 3, 10);
    p->actors[PART_PRODUCER] = (int)random_between(r, 1, 5);
    p->actors[PART_OBSERVER] = 1;
    p->names = (int)random_between(r, 1, 3);
    p->projects = 1;
    p->batch = random_of(r, 1, 1, 2, 5);
    p->claim_most_s = random_of(r, 61, 120);
    p->deadline_once = random_of(r, 0, 4, 8);
    p->long_wait_once = random_of(r, 0, 100);
    p->day_wait_once = 0;
    if (p->dead_letters_once > 0)
        p->names = NAMES;
}

/* Likewise. Posts are so small that the smallest segment has space for some of them. */
static void
draw_restarts(struct profile *p, struct random *r)
{
    if (!random_chance(r, 25))
        return;
    p->restart_once = random_of(r, 5, 20, 100, 200);
    p->commit_once = random_of(r, 1, 2, 4, 20);
    p->checkpoint_once = random_of(r, 0, 4, 10, 50);
    p->segment_bytes = UINT64_C(65536) << random_below(r, 3);
    if (random_chance(r, 40)) { /* many segments */
        p->segment_bytes = 65536;
        p->body = 1500;
        p->batch = 10;
    }
    if (random_chance(r, 40)) /* a journal that is full now and then */
        p->journal_bytes = p->segment_bytes * random_of(r, 4, 8);
    p->body = p->body > 400 && p->batch > 10 ? 400 : p->body;
    p->batch = p->batch > 10 && p->body > 60 ? 10 : p->batch;
}

/* Likewise: a queue with subscribers. */
static void
draw_subscribers(struct profile *p, struct random *r)
{
    if (!random_chance(r, 60) || p->waiting_once > 0)
        return;
    p->actors[PART_SUBSCRIBER] = (int)random_between(r, 2, 5);
    p->actors[PART_DELIVERER] = (int)random_between(r, 3, 9);
    p->actors[PART_WORKER] = (int)random_between(r, 1, 6);
    p->actors[PART_OBSERVER] = 1;
    p->projects = 1;
    if (p->names > 2)
        p->names = 2;
    if (random_chance(r, 70))
        p->day_wait_once = 0;
    p->fails_once = random_of(r, 2, 3, 40);
    p->transient_once = random_of(r, 0, 2, 5);
    p->rules.require_confirmation = random_chance(r, 40);
    p->rules.feed_bytes = random_of(r, 0, 0, 600, 4000, 40000);
    if (p->restart_once > 0 && random_chance(r, 60)) { /* many deliveries a life */
        p->restart_once = 100;
        p->fails_once = 40;
        p->transient_once = 0;
        p->rules.feed_bytes = 0;
        p->rules.require_confirmation = false;
        p->batch = 10;
    }
}

/* Likewise: jobs fail, and their messages go to dead-letter queues and back. */
static void
draw_failing_jobs(struct profile *p, struct random *r)
{
    if (!random_chance(r, 50))
        return;
    p->finish_once = random_of(r, 1, 2, 4);
    p->redrive_once = random_of(r, 2, 3, 6);
    if (p->actors[PART_ADMIN] == 0)
        p->actors[PART_ADMIN] = 1;
    if (random_chance(r, 60))
        p->dead_letters_once = random_of(r, 2, 3);
}

/* Likewise: requests have Idempotency-Keys, and are repeated. */
static void
draw_keys(struct profile *p, struct random *r)
{
    if (!random_chance(r, 40))
        return;
    p->key_once = random_of(r, 1, 2, 5);
    p->rules.few_keys = random_chance(r, 25);
}

/* Likewise: messages are unique, with few keys. */
static void
draw_unique(struct profile *p, struct random *r)
{
    if (!random_chance(r, 40))
        return;
    p->unique_once = random_of(r, 1, 2, 5);
    p->unique_keys = (int)random_of(r, 1, 3, 10);
}

struct known_unique
profile_some_unique(const struct profile *p, struct random *r)
{
    struct known_unique unique = {0, false};

    if (p->unique_once == 0 || !random_once_in(r, p->unique_once))
        return unique;
    unique.number = 1 + (int)random_below(r, (uint64_t)p->unique_keys);
    unique.until_claimed = random_chance(r, 40);
    return unique;
}

/* Likewise: queues are paused, and resumed. */
static void
draw_pauses(struct profile *p, struct random *r)
{
    if (!random_chance(r, 30))
        return;
    p->pause_once = random_of(r, 2, 4, 8);
    if (p->actors[PART_ADMIN] == 0)
        p->actors[PART_ADMIN] = 1;
}

/* Likewise: schedules, which are due when housekeeping says so. */
static void
draw_schedules(struct profile *p, struct random *r)
{
    if (!random_chance(r, 25))
        return;
    p->actors[PART_PLANNER] = (int)random_between(r, 1, 4);
    p->sets_wall = random_chance(r, 40);
    if (p->housekeep_once == 0 || p->housekeep_once > 5)
        p->housekeep_once = random_of(r, 1, 3);
}

static void
draw_rules(struct profile *p, struct random *r)
{
    const struct api_limits *l = &api_limits_default;

    p->claim_ttl_max = l->max_claim_ttl;
    p->claim_grace_max = l->max_claim_grace;
    if (random_chance(r, 10)) /* an operator to whom the 14 days matter */
        p->claim_ttl_max = p->claim_grace_max = p->claim_most_s = l->max_message_ttl;
    p->rules = (struct rules){
        .message_ttl_s = l->default_message_ttl,
        .max_message_ttl_s = l->max_message_ttl,
        .claim_ttl_s = l->default_claim_ttl,
        .claim_grace_s = l->default_claim_grace,
        .post_bytes = l->max_messages_post_size,
        .page = (int)l->default_page,
        .key_window_ms = l->idempotency_window * 1000,
        .strict_delete = random_chance(r, 25),
    };
}

void
profile_draw(struct profile *p, uint64_t seed)
{
    struct random r = {seed}, waiting = {seed ^ 0x77616974};
    struct random restarts = {seed ^ 0x6a6f7572}, subscribers = {seed ^ 0x73756273};
    struct random testapi = {seed ^ 0x6b697473}, failing = {seed ^ 0x6661696c};
    struct random keys = {seed ^ 0x6b657973}, pauses = {seed ^ 0x68616c74};
    struct random unloading = {seed ^ 0x72756e73}, unique = {seed ^ 0x6f6e6365};
    struct random schedules = {seed ^ 0x64756573};

    *p = (struct profile){.seed = seed};
    p->shards = random_of(&r, 1, 2, 4, 16);
    draw_actors(p, &r);
    draw_sizes(p, &r);
    draw_rates(p, &r);
    draw_rules(p, &r);
    draw_waiting(p, &waiting);
    draw_restarts(p, &restarts);
    draw_subscribers(p, &subscribers);
    draw_failing_jobs(p, &failing);
    draw_keys(p, &keys);
    draw_pauses(p, &pauses);
    draw_unique(p, &unique);
    draw_schedules(p, &schedules);
    p->testapi = random_chance(&testapi, 35);
    p->unload = p->restart_once > 0 && !p->testapi && random_chance(&unloading, 60);
}
