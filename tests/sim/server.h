/*
 * server: the real API over the real engine, at a time of the simulation's choosing.
 *
 * Requests that wait are parked, as a front end does it: listeners take notes, and when
 * the API is called again is for the simulation to choose.
 *
 * In some seeds it has a journal on a simulated disk. The simulation chooses when the
 * journal commits, and how the process ends (sim/crash.h).
 */
#ifndef TESTS_SIM_SERVER_H
#define TESTS_SIM_SERVER_H

#include "claimd/journal/journal.h"
#include "claimd/scheduler/scheduler.h"
#include "sim/profile.h"
#include "sim/response.h"
#include "support/api_call.h"
#include "support/random.h"

/* A request that may wait for a message. */
struct parked {
    bool used;
    struct operation op;
    struct waiting waiting; /* leased */
    struct request req;
    struct arena arena;
    struct response res;
    struct buf target, body;  /* in the memory of the simulation */
    int64_t until_ms;         /* its time is over then; 0: it has not waited */
    bool waits;               /* that was its last response */
    bool notified, dismissed; /* the notes since: STORE_READY, STORE_GONE */
    char prefer[16];
    struct server *server;
};

/* The last request and its response, for who writes it down. */
struct exchanged {
    const char *method, *project, *key; /* key: NULL if there is none, likewise */
    const char *unique;                 /* of a unique message */
    struct bytes target, body;
    const struct response *res;
    bool waits; /* there is no response yet */
};

enum { LEASED_MAX = 24 };

/* How a process ends. */
enum server_end { END_TORN, END_LOSING_ALL, END_KILLED, END_PEACE };

struct server {
    const struct profile *profile; /* borrowed */
    struct mem *mem;
    struct store *store;
    struct clock real; /* stands: only schedules live by it, and its wall clock */
    /* In the memory of the simulation; NULL: time goes on by itself. */
    struct testapi *testapi;
    char key[32];            /* the Idempotency-Key of a request */
    char unique[40];         /* its header Claimd-Unique */
    struct api_caller mover; /* the caller of the test API */
    struct request move;     /* that is under way */
    char move_body[48];      /* requests of actors are made meanwhile */
    uint64_t moved;          /* so often it said so */
    struct sim_disk *disk;   /* NULL: it has no journal */
    struct disk *process;    /* the disk, as the process has it */
    struct journal *journal;
    struct store_log watch;     /* between the store and the journal: it fills in this: */
    uint64_t lsn;               /* of the last change in the log */
    uint64_t first_lsn;         /* of the first since sim/crash.h has reset it; 0: none */
    uint64_t place_lsn[PLACES]; /* likewise, of each queue */
    unsigned kinds[STORE_CHANGE_KINDS]; /* changes in this request, by kind */
    unsigned parts;   /* appends of it that have a POST, or DETAILS without a MOVE */
    bool log_refuses; /* the log has refused a change in this request */
    bool lost;        /* the journal has failed: nothing becomes durable */
    struct journal_recovery recovery;
    uint64_t recovered; /* LSN at which the log ended when it started */
    uint64_t starts;
    char error[JOURNAL_ERROR_CAP];
    struct api *api;
    struct api_caller caller;
    struct zones *zones;          /* of schedules: only UTC */
    struct scheduler *scheduler;  /* NULL: the profile has no planner */
    struct api_scheduler watcher; /* of it */
    struct clock clock;           /* shows now_ms to it */
    uint64_t schedules_lsn;       /* as place_lsn, of the schedules */
    struct api_caller peeper;     /* for server_has(): leaves the last response alone */
    int64_t now_ms;
    struct mem *own; /* of the simulation: for what is said to the server */
    struct buf target, body;
    struct exchanged last;
    struct parked parked[WAITERS_MAX]; /* by waiter */
    struct store_listener deliverer;
    bool delivery_notified; /* something is due since nothing was */
    struct store_delivery leased[LEASED_MAX];
    size_t leased_count;
    struct store_wakeup wakeup;
    bool wakeup_due, wakeup_fired; /* it was returned; it has fired since */
};

/* The faults of a request. */
struct trouble {
    uint64_t starve; /* this allocation fails (1: the first); 0: none does */
    bool tight;      /* the memory budget is used up */
};

/* Begins 2026-01-31T12:00:00.123Z: not at a whole second, on purpose. */
#define SERVER_START_MS INT64_C(1769860800123)

void server_begin(struct server *s, const struct profile *p);

/* The process ends. False if it has not given back all its memory. */
bool server_down(struct server *s, enum server_end how);

/* The next one starts when the wall clock shows this; s->now_ms is its time then. If it
 * cannot, s->error says why, and it has to be stopped. */
enum status server_boot(struct server *s, int64_t wall_ms);

/* Commits once; false: there was nothing to do, or the journal is lost. */
bool server_commit(struct server *s);

/* Reads all messages that are wanted from the disk. False: the disk is dead. */
bool server_load(struct server *s);

enum store_durability server_durability(const struct server *s, uint64_t lsn);

/* Closes it; false if it has not given back all its memory. */
bool server_shut(struct server *s);

/*
 * Does one request. False if the response is not the document it has to be; *starved
 * is true if the allocation that was to fail was reached.
 */
bool server_do(struct server *s, const struct operation *op, struct trouble trouble,
               struct sim_response *response, bool *starved);

/*
 * Passes the request that waits with this number to the API: the first time with an
 * operation, then with NULL. False as above; server_waits() says whether there is a
 * response.
 */
bool server_handle(struct server *s, int waiter, const struct operation *op,
                   enum waiting_end end, struct trouble trouble,
                   struct sim_response *response, bool *starved);

/* True if the request is parked, and its last response was that it waits. */
bool server_waits(const struct server *s, int waiter);

/* Ends the request, whatever became of it. Its last response is gone then. */
void server_end(struct server *s, int waiter);

/* The response was lost to the last request, a claim: gives it back. */
void server_release_unsent(struct server *s, bool uncount);

/* False if a wakeup that was returned has not fired. */
bool server_has_rung(struct server *s);

/* Leases what is due for delivery, the last of leased[]; NULL: nothing is, or there is no
 * space. */
struct store_delivery *server_lease(struct server *s);

/* True if a deliverer need not wait for a notification. */
bool server_is_notified(const struct server *s);

/* Takes one of leased[] back. True if the allocation that was to fail was reached. */
bool server_give(struct server *s, size_t which, struct trouble trouble,
                 enum store_outcome outcome, int64_t again_ms);

/* The scheduler has its turn. False: it had trouble. */
bool server_schedule(struct server *s, struct trouble trouble);

/* The next messages that schedules have posted behind this one; empty: the first.
 * Release them. */
struct store_batch server_scheduled(struct server *s, struct store_id behind);

/* Does a request about them, from SCHEDULE_QUEUE on. Returns the code. */
int server_call_scheduled(struct server *s, const char *method, const char *tail,
                          const char *body);

/* The wall clock is set. */
void server_set_wall(struct server *s, int64_t ahead_ms);

/* True if the message can be read at this place. The last response stays as it is. */
bool server_has(struct server *s, int place, struct store_id id);

/* So much time goes on, in one step. */
void server_pass(struct server *s, int64_t ms);

/* Housekeeping; false: the log has refused a change of it. */
bool server_settle(struct server *s);

/*
 * Where a message stands in its queue, and when it was dead-lettered; SIZE_MAX: it is not
 * there. Leaves the last response alone.
 */
size_t server_find(struct server *s, int place, struct store_id id, int64_t *dead_ms);

/*
 * The test API moves the clock: begin, then as often as it says false, then end, which
 * returns the code of the response. In between a waiter may have to try again, at
 * s->now_ms: server_calls().
 */
void server_advance_begin(struct server *s, int64_t seconds);
bool server_advance(struct server *s);
int server_advance_end(struct server *s);
bool server_calls(const struct server *s);

/* A promise is broken: no more requests. */
void server_end_waiters(struct server *s);

/* Housekeeping until nothing is left to do now; returns when there will be again. */
int64_t server_housekeep(struct server *s);

#endif
