/*
 * kit: what a server has besides when tests are run against it (docs/ci.md): a clock that they
 * move, a history of what happened, and rules for what is to go wrong.
 *
 * It stands beside the store: it observes its changes, passes them on to the log if there is
 * one, and moves the clock by which the store lives. Without `ci` there is no kit, and nothing
 * of this costs anything.
 *
 *   Threads  any, but for kit_new(), kit_attach() and kit_free()
 */
#ifndef CLAIMD_KIT_KIT_H
#define CLAIMD_KIT_KIT_H

#include "claimd/base/clock.h"
#include "claimd/kit/faults.h"
#include "claimd/kit/history.h"
#include "claimd/store/log.h"

struct kit;

/* A kit whose clock runs with the wall clock; owned. ST_NO_MEMORY. */
enum status kit_new(struct mem *mem, struct kit **out);

/* After the store. */
void kit_free(struct kit *kit);

/* The store's clock. Nobody else moves it once the kit is attached. */
struct clock *kit_clock(struct kit *kit);

struct history *kit_history(struct kit *kit);
struct faults *kit_faults(struct kit *kit);

/* The log for the store; log: to whom it passes everything on, NULL: nobody. */
struct store_log *kit_log(struct kit *kit, struct store_log *log);

/* This is the store; moved(ctx) is called, from any thread, when its clock was moved. */
void
kit_attach(struct kit *kit, struct store *store, void (*moved)(void *ctx), void *ctx);

/* ------------------------------------------------------------------ time */

/* The clock can be moved by so much at a time: 366 days. */
enum { KIT_STEP_MOST_S = 366 * 24 * 3600 };

struct kit_time {
    int64_t now_ms, ahead_ms; /* of the wall clock */
    bool stands;
};
void kit_time(const struct kit *kit, struct kit_time *out);

/* Stops the clock, or starts it from where it stands. */
void kit_stop(struct kit *kit, bool stop);

/*
 * Moves the clock towards until_ms, from one deadline to the next: a step, or a slice of what
 * is due. True: it is there, and whatever was due by then has happened. Between two steps
 * whoever was called has been served. `since`: it stops when something that time does has
 * happened behind this number of the history; UINT64_MAX: it does not.
 */
bool kit_move(struct kit *kit, int64_t until_ms, uint64_t since);

/* ------------------------------------------------------------------ states */

/* One whole state is put in the place of another at a time. False: somebody is at it. */
bool kit_begin_exchange(struct kit *kit);
void kit_end_exchange(struct kit *kit);

/* ------------------------------------------------------------------ waiters */

/*
 * A request that waits for a message is told by the store, and asks again a moment later. The
 * kit stands between: while somebody was told who has not come, time does not go on.
 */
struct kit_call;

/*
 * Makes the call of a request of this project, owned: what the store tells kit_call_listener()
 * is passed on to `inner`, which is borrowed. NULL without memory.
 */
struct kit_call *
kit_call_new(struct kit *kit, struct bytes project, struct store_listener *inner);
struct store_listener *kit_call_listener(struct kit_call *call);

/* It waits no more, and the store does not know its listener any more. Fine with NULL. */
void kit_call_free(struct kit_call *call);

/* It asks again; true: because it was told. Then kit_call_served() comes when it has asked. */
bool kit_call_take(struct kit_call *call);
void kit_call_served(struct kit *kit);

/* Tells all who wait, of one project or (absent) of all, that their waiting is over. */
void kit_dismiss(struct kit *kit, struct bytes project);

/* Has everybody who was told asked again? */
bool kit_is_quiet(const struct kit *kit);

#endif
