/*
 * scenario: chooses the next step of a connection and the pause after it (plan.h).
 *
 * A step is one request of the protocol: a post, a claim, a delete or a list. The choice
 * depends on the scenario, or on the phase before it, and on the messages that the
 * connection holds. Nothing here knows a protocol or a socket. driver.c calls it, and
 * protocol.c writes the step as a request.
 */
#include "load/plan.h"

const char *const scenario_names[SCENARIO_COUNT] = {
#define SCENARIO_NAME(id, name, text) name,
    SCENARIO_LIST(SCENARIO_NAME)
#undef SCENARIO_NAME
};

enum scenario
scenario_find(const char *name)
{
    int s = 0;

    while (s < SCENARIO_COUNT &&
           (scenario_names[s] == NULL || strcmp(scenario_names[s], name) != 0))
        s++;
    return (enum scenario)s;
}

bool
scenario_at_start(const struct plan *plan, const struct actor *a)
{
    if (a->next < a->held || a->dropped)
        return false;
    return plan->scenario != SCENARIO_CYCLE || !a->posted;
}

/* Takes up to `want` from the quota. 0 if it is used up. */
static unsigned
quota_take(const struct plan *plan, unsigned want)
{
    int64_t before = atomic_fetch_sub(plan->quota, want);

    if (before <= 0)
        return 0;
    return before < want ? (unsigned)before : want;
}

/*
 * A post or a claim. For a storm, its TTL is the time to expire_ns, rounded up to
 * seconds, so everything expires in the second after expire_ns.
 */
static struct step
step_make(const struct plan *plan, enum op op, unsigned count, int64_t start_ns)
{
    const enum scenario expiring = op == OP_POST ? SCENARIO_FILL : SCENARIO_HOLD;
    struct step s = {.op = op, .count = count};

    s.ttl = op == OP_POST ? plan->message_ttl : plan->claim_ttl;
    if (plan->expire_ns != 0 && plan->scenario == expiring) {
        s.ttl = (plan->expire_ns - start_ns + STOPWATCH_SECOND - 1) / STOPWATCH_SECOND;
        if (s.ttl < 1)
            s.ttl = 1;
    }
    return s;
}

static struct step
step_delete(const struct plan *plan, const struct actor *a)
{
    if (plan->deleting == DELETE_ONE_BY_ONE)
        return (struct step){.op = OP_DELETE, .count = 1};
    return (struct step){.op = OP_BULK_DELETE, .count = a->held - a->next};
}

/*
 * A quarter of the claims is released. The shares of posts and claims are such that the
 * number of messages stays about the same. One request in ten is a listing.
 */
static struct step
mixed_next(const struct plan *plan, struct actor *a, int64_t start_ns)
{
    uint64_t dice = actor_random(a) % 100;

    if (a->next < a->held) {
        /* If some messages of the claim are deleted, the others are deleted, too. */
        if (a->next == 0 && dice < 25)
            return (struct step){.op = OP_RELEASE, .count = a->held};
        return step_delete(plan, a);
    }
    if (dice < 15)
        return (struct step){.op = OP_LIST, .count = plan->batch};
    return step_make(plan, dice < 52 ? OP_POST : OP_CLAIM, plan->batch, start_ns);
}

/* PREPARE: deletes and creates each queue. The quota is the number of queues left. */
static bool
prepare_next(const struct plan *plan, struct actor *a, struct step *out)
{
    int64_t left;

    if (a->dropped) {
        a->dropped = false;
        *out = (struct step){.op = OP_CREATE};
        return true;
    }
    left = atomic_fetch_sub(plan->quota, 1);
    if (left <= 0)
        return false;
    a->queue = (unsigned)(left - 1);
    a->dropped = true;
    *out = (struct step){.op = OP_DROP};
    return true;
}

bool
scenario_next(const struct plan *plan, struct actor *a, int64_t start_ns,
              struct step *out)
{
    unsigned count;

    switch (plan->scenario) {
    case SCENARIO_POST:
        *out = step_make(plan, OP_POST, plan->batch, start_ns);
        return true;
    case SCENARIO_RELEASE:
        if (a->held > 0)
            *out = (struct step){.op = OP_RELEASE, .count = a->held};
        else
            *out = step_make(plan, OP_CLAIM, plan->batch, start_ns);
        return true;
    case SCENARIO_CYCLE:
        if (a->next >= a->held)
            a->posted = !a->posted;
        *out = a->next < a->held ? step_delete(plan, a)
                                 : step_make(plan, a->posted ? OP_POST : OP_CLAIM,
                                             plan->batch, start_ns);
        return true;
    case SCENARIO_LIST:
        *out = (struct step){.op = OP_LIST, .count = plan->batch};
        return true;
    case SCENARIO_MIXED:
        *out = mixed_next(plan, a, start_ns);
        return true;
    case SCENARIO_DELIVERY:
        a->due_ns = start_ns;
        *out =
            a->worker && a->next < a->held
                ? step_delete(plan, a)
                : step_make(plan, a->worker ? OP_CLAIM : OP_POST, plan->batch, start_ns);
        return true;
    case SCENARIO_PREPARE:
        return prepare_next(plan, a, out);
    case SCENARIO_FILL:
        count = quota_take(plan, plan->batch);
        *out = step_make(plan, OP_POST, count, start_ns);
        return count > 0;
    case SCENARIO_HOLD:
        actor_drop_messages(a);
        count = a->queue_empty ? 0 : quota_take(plan, plan->batch);
        *out = step_make(plan, OP_CLAIM, count, start_ns);
        return count > 0;
    case SCENARIO_COUNT:
        break;
    }
    return false;
}

int64_t
scenario_pause(const struct plan *plan, struct actor *a, const struct step *step,
               unsigned messages, int64_t took_ns)
{
    int64_t poll = plan->poll_ns;

    if (plan->scenario != SCENARIO_DELIVERY || step->op != OP_CLAIM || messages > 0)
        return 0;
    if (plan->wait > 0 && took_ns >= poll)
        return 0;
    return poll - poll / 4 + (int64_t)(actor_random(a) % (uint64_t)(poll / 2 + 1));
}

enum op
scenario_counted(const struct plan *plan)
{
    switch (plan->scenario) {
    case SCENARIO_RELEASE:
    case SCENARIO_HOLD:
        return OP_CLAIM;
    case SCENARIO_CYCLE:
    case SCENARIO_MIXED:
    case SCENARIO_DELIVERY:
        return plan->deleting == DELETE_IN_BULK ? OP_BULK_DELETE : OP_DELETE;
    case SCENARIO_LIST:
        return OP_LIST;
    default:
        return OP_POST;
    }
}
