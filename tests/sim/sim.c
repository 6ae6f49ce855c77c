#include "sim/sim.h"

#include "sim/history.h"

#include <stdlib.h>

/* ---------------------------------------------------------------------- life */

static void
make_actors(struct sim *sim)
{
    for (int part = 0; part < PART_COUNT; part++)
        for (int i = 0; i < sim->profile->actors[part]; i++) {
            struct actor *a = &sim->actors[sim->actor_count];

            a->part = (enum part)part;
            a->number = i;
            a->client = sim->actor_count % CLIENTS;
            sim->actor_count++;
        }
}

void
sim_open(struct sim *sim, const struct plan *plan, FILE *trace)
{
    memset(sim, 0, sizeof(*sim));
    sim->plan = plan;
    sim->profile = &plan->profile;
    sim->trace = trace;
    server_begin(&sim->server, sim->profile);
    ledger_init(&sim->ledger);
    make_actors(sim);
}

void
sim_close(struct sim *sim)
{
    ledger_fini(&sim->ledger);
    crash_fini(sim);
    if (!server_shut(&sim->server))
        (void)verdict_break(&sim->verdict, PROMISE_SOUND,
                            "the store did not give back all its memory");
}

/* ---------------------------------------------------------------------- judging */

static void
digest(struct sim *sim)
{
    const struct response *res = sim->server.last.res;
    uint64_t d = sim->digest;

    d = (d ^ (uint64_t)res->code) * 0x100000001b3; /* FNV-1a */
    for (size_t i = 0; i < res->body.len; i++)
        d = (d ^ (unsigned char)res->body.data[i]) * 0x100000001b3;
    sim->digest = d;
}

/*
 * How many of the dead letters that a starved claim came upon were moved. In any
 * case each has to be in exactly one of the two queues, and no younger one may have gone
 * before an older one.
 */
static size_t
count_moved(struct sim *sim, const struct judging *j)
{
    int to = ledger_dead_letters(&sim->ledger, j->op->place);
    struct claim_plan plan;
    size_t moved = 0;

    ledger_advance(&sim->ledger, j->now_ms);
    claim_plan_make(j, &plan);
    for (size_t i = 0; i < plan.letter_count; i++) {
        const struct known_message *m = plan.letters[i];
        bool here = server_has(&sim->server, j->op->place, m->id);
        bool there = server_has(&sim->server, to, m->id);

        if (here == there)
            (void)verdict_break(&sim->verdict,
                                here ? PROMISE_ONE_HOLDER : PROMISE_NOTHING_LOST,
                                "dead letter %s is in %s queues", m->id.text,
                                here ? "both" : "neither of the");
        else if (there && moved < i)
            (void)verdict_break(&sim->verdict, PROMISE_OLDEST_FIRST,
                                "dead letter %s was moved before an older one",
                                m->id.text);
        moved += there;
    }
    claim_plan_fini(&plan);
    return moved;
}

/*
 * A message was not given that had to be. If it is still there, it is not lost: it was
 * passed over, or is thought to be held or delayed when it is so no more.
 */
static void
look_for_missing(struct sim *sim, const struct operation *op)
{
    struct verdict *v = &sim->verdict;

    if (v->missing.text[0] == '\0' ||
        (v->broken != PROMISE_NOTHING_LOST && v->broken != PROMISE_GRACE))
        return;
    for (size_t i = 0; operation_place(op, i) != NOWHERE; i++)
        if (server_has(&sim->server, operation_place(op, i), v->missing))
            v->broken = v->withheld;
}

void
sim_judge(struct sim *sim, struct judging *j, struct trouble trouble, bool sound)
{
    if (!sound)
        (void)verdict_break(&sim->verdict, PROMISE_CONTRACT,
                            "the response is not the document it has to be");
    if (!server_has_rung(&sim->server))
        (void)verdict_break(&sim->verdict, PROMISE_NO_WAITER_LEFT,
                            "a waiter was notified, but no wake-up fired");
    tally_count(&sim->tally, j->op, j->waits ? NULL : j->response);
    digest(sim);
    history_request(sim, trouble, j->starved);
    if (!sim_broken(sim) && j->op->kind == OP_CLAIM && j->starved && j->waiter == NONE)
        j->moved_count = count_moved(sim, j);
    if (!sim_broken(sim) && !judge(j))
        look_for_missing(sim, j->op);
}

/* Does the request and judges the response. */
static void
perform(struct sim *sim, const struct operation *op, struct trouble trouble,
        struct sim_response *response)
{
    struct judging j = {.ledger = &sim->ledger,
                        .rules = &sim->profile->rules,
                        .op = op,
                        .response = response,
                        .now_ms = sim->server.now_ms,
                        .ahead_ms = sim->server.real.wall_ahead_ms,
                        .tight = trouble.tight,
                        .impaired = sim_impaired(sim),
                        .verdict = &sim->verdict,
                        .waiter = NONE};
    bool sound;

    crash_remember(sim);
    sound = server_do(&sim->server, op, trouble, response, &j.starved);
    j.body_bytes = sim->server.body.len;
    j.impaired = j.impaired || sim->server.log_refuses;
    if (operation_schedules(op))
        sim->server.first_lsn = 0; /* it may make queues first */
    sim_judge(sim, &j, trouble, sound);
}

bool
sim_look(struct sim *sim, const struct operation *op, struct sim_response *response)
{
    history_who(sim, NULL);
    perform(sim, op, (struct trouble){.starve = 0}, response);
    return !sim_broken(sim);
}

/* ---------------------------------------------------------------------- inspection */

static bool
inspect_messages(struct sim *sim, int place)
{
    struct operation op = {.kind = OP_LIST,
                           .place = place,
                           .limit = IDS_MAX,
                           .echo = true,
                           .include_claimed = true,
                           .include_delayed = true};
    struct sim_response response;

    do {
        if (!sim_look(sim, &op, &response))
            return false;
        op.from.marker = response.marker;
        op.from.incarnation = sim->ledger.queues[place].incarnation;
        if (response.count > 0)
            op.from.order = ledger_message(&sim->ledger, place,
                                           response.messages[response.count - 1].id.text)
                                ->order;
    } while (response.count == IDS_MAX);
    return true;
}

static bool
inspect_queue(struct sim *sim, int place)
{
    struct operation op = {.kind = OP_QUEUE_LIST, .place = place};
    struct sim_response response;

    if (!sim_look(sim, &op, &response))
        return false;
    op.kind = OP_QUEUE_SHOW;
    if (!sim_look(sim, &op, &response))
        return false;
    op.kind = OP_QUEUE_STATS;
    if (!sim_look(sim, &op, &response))
        return false;
    op.kind = OP_QUEUE_PAUSE; /* changes nothing */
    if (sim->profile->pause_once > 0 && !sim_look(sim, &op, &response))
        return false;
    if (sim->profile->actors[PART_SUBSCRIBER] == 0)
        return true;
    op.kind = OP_SUBSCRIPTION_LIST;
    if (!sim_look(sim, &op, &response))
        return false;
    op.kind = OP_PROGRESS_LIST;
    return sim_look(sim, &op, &response);
}

/* Lateness and lifetimes do not come from what a request has changed just now. */
static bool
is_of_change(enum promise p)
{
    return p != PROMISE_ON_TIME && p != PROMISE_GRACE;
}

bool
sim_inspect(struct sim *sim, int place, enum promise p)
{
    if (inspect_messages(sim, place) && inspect_queue(sim, place))
        return true;
    if (p != PROMISE_NONE && is_of_change(sim->verdict.broken))
        sim->verdict.broken = p;
    return false;
}

static void
inspect_refused_at(struct sim *sim, const struct operation *op, int place)
{
    int letters = ledger_dead_letters(&sim->ledger, place);

    const enum promise p = op->kind == OP_FINISH    ? PROMISE_ONE_STEP
                           : op->kind == OP_REDRIVE ? PROMISE_ONE_QUEUE
                                                    : PROMISE_ALL_OR_NOTHING;

    if (sim_inspect(sim, place, p) && letters != NOWHERE &&
        (op->kind == OP_CLAIM || op->kind == OP_FINISH))
        (void)sim_inspect(sim, letters, p);
}

void
sim_inspect_refused(struct sim *sim, const struct operation *op)
{
    FILE *trace = sim->trace;

    sim->trace = NULL; /* it is only of interest when it fails */
    for (size_t i = 0; operation_place(op, i) != NOWHERE && !sim_broken(sim); i++)
        inspect_refused_at(sim, op, operation_place(op, i));
    sim->trace = trace;
}

/* ---------------------------------------------------------------------- requests */

struct trouble
sim_trouble(struct sim *sim)
{
    const struct profile *p = sim->profile;
    struct trouble trouble = {.starve = 0};

    if (!sim->lucky && p->starve_once > 0 && random_once_in(&sim->luck, p->starve_once))
        trouble.starve = (uint64_t)random_between(&sim->luck, 1, 24);
    trouble.tight =
        !sim->lucky && p->memory > 0 && ledger_bytes(&sim->ledger) > p->memory;
    return trouble;
}

/* Where the network cuts the connection. */
enum cut { CUT_NOT, CUT_BEFORE, CUT_AFTER };

static enum cut
draw_cut(struct sim *sim)
{
    unsigned once = sim->profile->lose_once;

    if (sim->lucky || once == 0 || !random_once_in(&sim->luck, once))
        return CUT_NOT;
    return random_chance(&sim->luck, 40) ? CUT_BEFORE : CUT_AFTER;
}

bool
sim_loses_response(struct sim *sim)
{
    return draw_cut(sim) != CUT_NOT;
}

bool
sim_loses_claim(struct sim *sim, const struct operation *op,
                const struct sim_response *response)
{
    unsigned once = sim->profile->lose_claim_once;
    struct known_claim *c = NULL;
    bool uncount;

    if (sim->lucky || once == 0 || op->kind != OP_CLAIM || response->code != 201 ||
        op->key != 0 || sim_broken(sim) || !random_once_in(&sim->luck, once))
        return false; /* with a key it waits for the next attempt */
    for (size_t i = 0; c == NULL && operation_place(op, i) != NOWHERE; i++)
        c = ledger_claim(&sim->ledger, operation_place(op, i), response->location.text);
    uncount = random_chance(&sim->luck, 50);
    crash_remember(sim);
    server_release_unsent(&sim->server, uncount);
    ledger_release_unsent(&sim->ledger, c, uncount);
    history_note(
        sim, uncount ? "      (not a byte of the response is sent: it is given back)\n"
                     : "      (the response cannot be sent: it is given back)\n");
    return true;
}

/* The request with a key, which its actor remembers, or as it is. */
static const struct operation *
draw_key(struct sim *sim, struct actor *who, const struct operation *op)
{
    const unsigned once = sim->profile->key_once;

    if (once == 0 || op->key != 0 || !operation_takes_key(op) ||
        !random_once_in(&sim->luck, once))
        return op;
    who->retry = *op;
    who->retry.key = ++sim->keys;
    return &who->retry;
}

void
sim_retry(struct sim *sim, struct actor *who)
{
    const struct known_effect *effect = ledger_effect(&sim->ledger, who->retry.key);
    struct operation op = who->retry;
    struct sim_response response;

    /* A key that is forgotten would post the same bodies again, but each body is
     * another. */
    if (effect != NULL && op.draft_count > 0 &&
        !ledger_remembers(&sim->ledger, effect, sim->server.now_ms,
                          sim->profile->rules.key_window_ms))
        who->retry.key = 0;
    else if (sim_request(sim, who, &op, &response))
        actor_receive(who, &op, &response);
}

bool
sim_request(struct sim *sim, struct actor *who, const struct operation *op,
            struct sim_response *response)
{
    struct trouble trouble = sim_trouble(sim);
    enum cut cut = draw_cut(sim);

    if (sim_broken(sim))
        return false;
    op = draw_key(sim, who, op);
    history_who(sim, who);
    if (cut == CUT_BEFORE) {
        history_note(sim, "(a request is lost on its way)\n");
        return false;
    }
    perform(sim, op, trouble, response);
    if (cut == CUT_AFTER)
        history_note(sim, "      (the response is lost on its way)\n");
    if (!sim_broken(sim) && response->code == 503)
        sim_inspect_refused(sim, op);
    if (cut == CUT_NOT && sim_loses_claim(sim, op, response))
        return false;
    return cut == CUT_NOT && crash_sends(sim, who, op, response) && !sim_broken(sim);
}

/* ---------------------------------------------------------------------- choices */

int
sim_some_place(const struct sim *sim, struct random *r)
{
    int project = (int)random_below(r, (uint64_t)sim->profile->projects);

    return place_of(project, (int)random_below(r, (uint64_t)sim->profile->names));
}

/* One of the last things that went at this place. */
static struct store_id
some_gone(const struct ledger *l, struct random *r, int place)
{
    enum { LATELY = 60 };
    size_t window = l->gone_count < LATELY ? l->gone_count : LATELY;
    const struct gone *g;

    if (window == 0)
        return (struct store_id){""};
    g = &l->gone[l->gone_count - 1 - random_below(r, window)];
    return g->place == place ? g->id : (struct store_id){""};
}

struct store_id
sim_some_message(const struct sim *sim, struct random *r, int place)
{
    const struct known_queue *q = &sim->ledger.queues[place];

    if (q->count == 0 || random_chance(r, 25))
        return some_gone(&sim->ledger, r, place);
    if (random_chance(r, 60)) /* near the head, where the workers are */
        return q->messages[random_below(r, q->count < 8 ? q->count : 8)]->id;
    return q->messages[random_below(r, q->count)]->id;
}

struct store_id
sim_some_claim(const struct sim *sim, struct random *r, int place)
{
    const struct ledger *l = &sim->ledger;
    const struct known_claim *c;

    if (l->claim_count == 0 || random_chance(r, 30))
        return some_gone(l, r, place);
    c = l->claims[random_below(r, l->claim_count)];
    return c->place == place || random_chance(r, 5) ? c->id : (struct store_id){""};
}
