#include "sim/crash.h"

#include "sim/history.h"
#include "support/sim_disk.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

enum { COMMITS_MOST = 10000, TRIES = 50 };

static bool
is_on(const struct sim *sim)
{
    return sim->profile->restart_once > 0;
}

/* ---------------------------------------------------------------------- moments */

static void
drop_moments(struct crashes *c, size_t n)
{
    for (size_t i = 0; i < n; i++)
        ledger_fini(&c->moments[i].ledger);
    c->count -= n;
    if (c->count > 0)
        memmove(c->moments, c->moments + n, c->count * sizeof(*c->moments));
}

static void
add_moment(struct sim *sim, uint64_t lsn)
{
    struct crashes *c = &sim->crashes;

    if (c->count == c->cap) {
        c->cap = c->cap * 2 + 16;
        c->moments = realloc(c->moments, c->cap * sizeof(*c->moments));
        if (c->moments == NULL)
            abort();
    }
    c->moments[c->count] = (struct moment){.lsn = lsn};
    ledger_copy(&c->moments[c->count++].ledger, &sim->ledger);
}

void
crash_remember(struct sim *sim)
{
    struct crashes *c = &sim->crashes;
    struct moment *last = c->count == 0 ? NULL : &c->moments[c->count - 1];

    if (!is_on(sim))
        return;
    if (last != NULL && last->lsn == sim->server.lsn) {
        ledger_fini(&last->ledger);
        c->count--;
    } else if (last != NULL) {
        last->next = sim->server.first_lsn;
    }
    sim->server.first_lsn = 0;
    add_moment(sim, sim->server.lsn);
    while (c->count > 1 &&
           server_durability(&sim->server, c->moments[1].lsn) == STORE_DURABLE)
        drop_moments(c, 1);
}

/* The ledger becomes what it was when the log ended there. */
static void
go_back(struct sim *sim, uint64_t ended, uint64_t lsn, uint64_t first)
{
    struct crashes *c = &sim->crashes;
    struct ledger now = sim->ledger;
    size_t at = c->count;

    if (ended >= lsn || sim_broken(sim))
        return;
    while (at > 0 && c->moments[at - 1].lsn > ended)
        at--;
    if (at == 0)
        abort(); /* the oldest is durable */
    if (at == c->count)
        c->moments[at - 1].next = first;
    if (c->moments[at - 1].next != 0 && c->moments[at - 1].next <= ended)
        (void)verdict_break(&sim->verdict, PROMISE_ALL_OR_NOTHING,
                            "the log ends at %" PRIu64 ", within an operation", ended);
    ledger_copy(&sim->ledger, &c->moments[at - 1].ledger);
    sim->ledger.wall_ms = now.wall_ms;
    sim->ledger.set_back = now.set_back;
    for (int place = 0; place < PLACES; place++) { /* numbers of these wait for nothing */
        struct known_queue *q = &sim->ledger.queues[place];
        const struct known_queue *was = &now.queues[place];

        if (q->transient && was->transient && q->incarnation == was->incarnation)
            q->last_number = was->last_number;
    }
    for (int i = 0; i < SCHEDULES; i++) /* the log may end within a round */
        sim->ledger.schedules[i].unseen =
            sim->server.now_ms - sim->round_ms >= RUN_TTL_S * 1000;
    ledger_fini(&now);
    sim->tally.undone++;
}

/* ---------------------------------------------------------------------- responses */

static uint64_t
shown_of_place(const struct sim *sim, int place, uint64_t shown)
{
    uint64_t lsn = sim->server.place_lsn[place];

    return lsn > shown ? lsn : shown;
}

/* Changes up to this LSN are shown by the response: those of the queues that it is
 * about. */
static uint64_t
lsn_shown(const struct sim *sim, const struct operation *op,
          const struct sim_response *response)
{
    uint64_t shown = 0;

    if (response->code == 400 || response->code >= 500)
        return 0;
    if (operation_schedules(op))
        return sim->server.schedules_lsn;
    if ((op->kind == OP_FINISH && response->code != 200) || response->replayed)
        return shown_of_place(sim, op->place, 0);
    if (op->kind == OP_QUEUE_LIST) {
        for (int i = 0; i < NAMES; i++)
            shown = shown_of_place(sim, op->place / NAMES * NAMES + i, shown);
        return shown;
    }
    for (size_t i = 0; operation_place(op, i) != NOWHERE; i++) {
        int place = operation_place(op, i);

        shown = shown_of_place(sim, place, shown);
        if (response->code == 201 && op->kind == OP_CLAIM &&
            ledger_claim(&sim->ledger, place, response->location.text) != NULL)
            break;
    }
    return shown;
}

static void
acknowledge(struct sim *sim, uint64_t shown)
{
    if (sim->crashes.acknowledged < shown)
        sim->crashes.acknowledged = shown;
}

static void
commit_all(struct sim *sim)
{
    int n = 0;

    while (n < COMMITS_MOST && server_commit(&sim->server))
        n++;
    if (n == COMMITS_MOST)
        (void)verdict_break(&sim->verdict, PROMISE_SOUND,
                            "the journal never comes to an end");
}

static void
drop_held(struct sim *sim, size_t who)
{
    free(sim->crashes.held[who]);
    sim->crashes.held[who] = NULL;
}

static void
hold(struct sim *sim, size_t who, const struct held *held)
{
    drop_held(sim, who); /* its client does not wait any more */
    sim->crashes.held[who] = malloc(sizeof(*held));
    if (sim->crashes.held[who] == NULL)
        abort();
    *sim->crashes.held[who] = *held;
    sim->tally.held++;
    history_note(sim, "      (the response waits for the journal)\n");
}

bool
crash_sends(struct sim *sim, const struct actor *who, const struct operation *op,
            const struct sim_response *response)
{
    uint64_t lsn = sim->server.last.res->lsn, shown = lsn_shown(sim, op, response);

    if (!is_on(sim) || sim_broken(sim))
        return true;
    for (int kind = STORE_CHANGE_POST; kind <= STORE_CHANGE_RELEASE; kind++)
        if (sim->server.kinds[kind] > 1 &&
            (op->kind != OP_FINISH || kind != STORE_CHANGE_POST))
            return verdict_break(&sim->verdict, PROMISE_ALL_OR_NOTHING,
                                 "a request logs %u changes of the kind %d",
                                 sim->server.kinds[kind], kind);
    if (sim->server.parts > 1) /* a crash could keep a message without its key */
        return verdict_break(&sim->verdict, PROMISE_ALL_OR_NOTHING,
                             "a request logs messages and their details in %u parts",
                             sim->server.parts);
    if (lsn < shown)
        return verdict_break(&sim->verdict, PROMISE_NOTHING_LOST,
                             "the response waits for %" PRIu64 ", but shows %" PRIu64,
                             lsn, shown);
    if (random_once_in(&sim->crashes.luck, sim->profile->commit_once))
        commit_all(sim);
    if (server_durability(&sim->server, lsn) != STORE_DURABLE) {
        hold(sim, (size_t)(who - sim->actors),
             &(struct held){*op, *response, lsn, shown});
        return false;
    }
    acknowledge(sim, shown);
    return true;
}

bool
crash_delivers(struct sim *sim, uint64_t lsn, int place)
{
    if (!is_on(sim))
        return true;
    if (server_durability(&sim->server, lsn) != STORE_DURABLE)
        commit_all(sim);
    if (server_durability(&sim->server, lsn) != STORE_DURABLE)
        return false;
    acknowledge(sim, sim->server.place_lsn[place]);
    return true;
}

/* The front end looks which of them may go out. */
static void
send_held(struct sim *sim, struct random *r, unsigned percent)
{
    for (size_t i = 0; i < WAITERS_MAX; i++) {
        struct held *h = sim->crashes.held[i];
        enum store_durability durability;

        if (h == NULL || !random_chance(r, percent))
            continue;
        durability = server_durability(&sim->server, h->lsn);
        if (durability == STORE_DURABLE) {
            history_who(sim, &sim->actors[i]);
            history_note(sim, "gets its response\n");
            acknowledge(sim, h->shown);
            actor_receive(&sim->actors[i], &h->op, &h->response);
        }
        if (durability != STORE_PENDING)
            drop_held(sim, i);
    }
}

/* ---------------------------------------------------------------------- the disk */

static void
arm(struct sim *sim, struct random *r)
{
    static const enum sim_op others[] = {SIM_OPEN,   SIM_WRITE,      SIM_ALLOCATE,
                                         SIM_RENAME, SIM_UNLINK,     SIM_SYNC_NAMES,
                                         SIM_READ,   SIM_FREE_BYTES, SIM_LIST};
    struct crashes *c = &sim->crashes;
    struct sim_disk *disk = sim->server.disk;
    size_t other = (size_t)random_below(r, sizeof(others) / sizeof(others[0]));
    uint64_t nth = 1 + random_below(r, 12);

    switch (c->fault) {
    case DISK_LYING:
        sim_disk_set_lying(disk, true);
        sim_disk_fail(disk, SIM_SYNC, nth, EIO);
        break;
    case DISK_SYNC:
        sim_disk_fail(disk, SIM_SYNC, nth, EIO);
        break;
    case DISK_OTHER:
        sim_disk_fail(disk, others[other], nth, EIO);
        c->names_fail = others[other] == SIM_SYNC_NAMES;
        break;
    case DISK_DIES:
        sim_disk_die(disk, 1 + random_below(r, 120));
        break;
    case DISK_SHORT:
        sim_disk_set_short(disk, 40);
        break;
    case DISK_FULL:
        sim_disk_set_space(
            disk, random_below(r, random_of(r, 1, 1, 5) * sim->profile->segment_bytes));
        break;
    default:
        break;
    }
}

static void
mend(struct sim *sim)
{
    sim_disk_mend(sim->server.disk);
    sim->crashes.fault = DISK_NONE;
    sim->crashes.names_fail = false;
}

/* ---------------------------------------------------------------------- ends */

/* Has the time written down. False if the segment has no space for that. */
static bool
seal(struct server *s)
{
    enum { DURABLE_LSN_BYTES = 64 }; /* which are written in any case */
    uint64_t written = sim_disk_stats(s->disk)->bytes_written;

    journal_age(s->journal, s->now_ms);
    journal_seal(s->journal);
    return sim_disk_stats(s->disk)->bytes_written - written > DURABLE_LSN_BYTES;
}

/* Often while a commit is under way: between its write and its sync, say. */
static void
die_in_a_commit(struct sim *sim, struct random *r)
{
    if (random_chance(r, 20))
        journal_checkpoint(sim->server.journal);
    sim_disk_die(sim->server.disk, random_chance(r, 70) ? 2 : 1 + random_below(r, 12));
    commit_all(sim);
}

/* True if a clock that is set back afterwards must not matter. */
static bool
end_process(struct sim *sim, struct random *r)
{
    static const char *const texts[] = {"power fails, some of it is torn",
                                        "power fails, what was not synced is lost",
                                        "kill -9", "it ends in peace"};
    enum server_end how = (enum server_end)random_below(r, END_PEACE + 1);
    struct server *s = &sim->server;
    enum disk_fault fault = sim->crashes.fault;
    bool sealed = false, clean;

    if (s->lost && (fault == DISK_NONE || fault == DISK_SHORT || fault == DISK_FULL))
        (void)verdict_break(&sim->verdict, PROMISE_SOUND,
                            "the journal gives up with nothing wrong");
    if (!s->lost && random_chance(r, 20))
        journal_seal(s->journal);
    sealed = !s->lost && random_chance(r, 30) && how != END_PEACE;
    if (sealed) {
        sealed = seal(s);
    } else if (how != END_PEACE && !s->lost && random_chance(r, 60)) {
        die_in_a_commit(sim, r);
    }
    sealed = sealed && !s->lost;
    if (random_chance(r, 50))
        send_held(sim, r, 60);
    if (s->lost && how == END_PEACE)
        how = END_KILLED;
    if (how == END_KILLED && sim->crashes.names_fail)
        how = END_TORN;
    if (sim->trace != NULL)
        fprintf(sim->trace, "    (%s)\n", texts[how]);
    clean = server_down(s, how);
    if (how == END_PEACE && !s->lost)
        acknowledge(sim, s->lsn);
    if (how == END_PEACE && s->lost && sim->crashes.names_fail)
        sim_disk_crash(s->disk);
    else if (how == END_PEACE && random_chance(r, 50))
        sim_disk_crash_losing_all(s->disk);
    if (!clean)
        (void)verdict_break(&sim->verdict, PROMISE_SOUND, "memory is left at the end");
    for (size_t i = 0; i < WAITERS_MAX; i++)
        drop_held(sim, i);
    return sealed;
}

/* ---------------------------------------------------------------------- starts */

/* However often that takes: it may die while it starts, and again. */
static bool
start_process(struct sim *sim, struct random *r, int64_t wall_ms)
{
    struct server *s = &sim->server;
    enum status st = server_boot(s, wall_ms);

    for (int tries = 1; st != ST_OK; tries++) {
        bool excused =
            sim->crashes.fault != DISK_NONE && sim->crashes.fault != DISK_SHORT;

        if (st != ST_IO || !excused)
            return verdict_break(&sim->verdict, PROMISE_SOUND, "it does not start: %s",
                                 s->error);
        history_note(sim, "    (it does not start)\n");
        (void)server_down(s, (enum server_end)random_below(
                                 r, sim->crashes.names_fail ? END_KILLED : END_PEACE));
        mend(sim);
        if (tries < TRIES && random_chance(r, 30)) {
            sim->crashes.fault = random_chance(r, 50) ? DISK_DIES : DISK_SYNC;
            arm(sim, r);
        }
        /* A start that fails may remove a segment that has nothing but the time. */
        st = server_boot(s, wall_ms < s->now_ms ? s->now_ms : wall_ms);
    }
    return true;
}

/* All is there, and nothing else. */
static void
inspect(struct sim *sim)
{
    FILE *trace = sim->trace;
    struct sim_response response;

    sim->trace = NULL; /* it is only of interest when it fails */
    for (int place = 0; place < PLACES && !sim_broken(sim); place++)
        (void)sim_inspect(sim, place, PROMISE_NONE);
    for (size_t i = 0; i < sim->ledger.claim_count && !sim_broken(sim); i++) {
        const struct known_claim *c = sim->ledger.claims[i];
        struct operation op = {.kind = OP_CLAIM_SHOW, .place = c->place, .id = c->id};

        (void)sim_look(sim, &op, &response);
    }
    sim_inspect_schedules(sim);
    sim->trace = trace;
}

static void
restart(struct sim *sim, struct random *r, bool mended)
{
    struct crashes *c = &sim->crashes;
    struct server *s = &sim->server;
    uint64_t lsn, first;
    int64_t now_ms = s->now_ms, wall_ms = now_ms;
    bool early = random_chance(r, 50);

    sim->tally.restarts++;
    if (end_process(sim, r))
        wall_ms -= random_between(r, 0, 3600000);
    else if (random_chance(r, 50))
        wall_ms += random_between(r, 0, 20000);
    lsn = s->lsn;
    first = s->first_lsn;
    mend(sim);
    if (!mended && random_chance(r, 60))
        c->fault = (enum disk_fault)random_below(r, DISK_FAULTS);
    if (early)
        arm(sim, r);
    if (!start_process(sim, r, wall_ms) || sim_broken(sim))
        return;
    if (!early)
        arm(sim, r);
    if (s->now_ms < now_ms)
        (void)verdict_break(&sim->verdict, PROMISE_ON_TIME, "time goes back");
    if (s->recovered < c->acknowledged)
        (void)verdict_break(&sim->verdict, PROMISE_NOTHING_LOST,
                            "the log ends at %" PRIu64 ", but clients know of %" PRIu64,
                            s->recovered, c->acknowledged);
    go_back(sim, s->recovered, lsn, first);
    if (sim->trace != NULL)
        fprintf(sim->trace,
                "    (the server is started again, %" PRIu64 " of %" PRIu64
                " changes are left)\n",
                s->recovered, lsn);
    drop_moments(c, c->count);
    c->acknowledged = s->recovered;
    ledger_restart(&sim->ledger);
    add_moment(sim, s->recovered);
    s->first_lsn = 0; /* the log may end between the changes of the start, and these */
    sim_settle(sim, true);
    s->first_lsn = 0;
    sim_find_scheduled(sim);
    if (!sim_broken(sim))
        inspect(sim);
    crash_remember(sim);
}

/* ---------------------------------------------------------------------- turns */

void
crash_turn(struct sim *sim, struct random *r)
{
    const struct profile *p = sim->profile;
    struct server *s = &sim->server;

    if (!is_on(sim) || sim_broken(sim))
        return;
    sim->crashes.luck = (struct random){random_next(r)};
    if (random_chance(r, 30))
        (void)server_commit(s);
    if (random_chance(r, 20))
        commit_all(sim);
    if (random_chance(r, 3))
        journal_seal(s->journal);
    if (p->checkpoint_once > 0 && random_once_in(r, p->checkpoint_once))
        journal_checkpoint(s->journal);
    send_held(sim, r, 60);
    if (random_once_in(r, s->lost ? 2 : p->restart_once))
        restart(sim, r, false);
}

void
crash_settle(struct sim *sim, struct random *r)
{
    if (!is_on(sim) || sim_broken(sim))
        return;
    if (sim->server.lost || sim->crashes.fault != DISK_NONE)
        restart(sim, r, true);
    commit_all(sim);
    send_held(sim, r, 100);
}

void
crash_fini(struct sim *sim)
{
    for (size_t i = 0; i < WAITERS_MAX; i++)
        drop_held(sim, i);
    drop_moments(&sim->crashes, sim->crashes.count);
    free(sim->crashes.moments);
}
