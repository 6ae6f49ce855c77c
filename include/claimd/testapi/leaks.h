/*
 * testapi/leaks: leaks that the store no longer has (docs/api.md 23.8), because time
 * ended them or a reset deleted them. Without this record, a later test hides the leak of
 * an earlier one.
 *
 *     leaks_add_expired()   time has ended a claim or a message: a suspect
 *     leaks_settle()        looks suspects up in the history. Those that leaked stay
 *     leaks_read()          visits the leaks
 *
 *   Bounds   LEAKS_KEPT_MOST leaks and LEAKS_SUSPECTS_MOST suspects. Further ones are
 *            only counted
 *   Cost     adding a suspect O(1), a leak O(leaks); settling as leak_look_up(), and
 *            nothing without suspects
 *   Threads  any
 */
#ifndef CLAIMD_TESTAPI_LEAKS_H
#define CLAIMD_TESTAPI_LEAKS_H

#include "claimd/testapi/history.h"

enum { LEAKS_KEPT_MOST = 1000, LEAKS_SUSPECTS_MOST = 10000, LEAKS_PROJECT_MAX = 256 };

struct leaks;

/* Owned. ST_NO_MEMORY. */
enum status leaks_new(struct mem *mem, struct leaks **out);
void leaks_free(struct leaks *l); /* NULL is fine */

/*
 * A move of the clock begins or ends. Until the next call, leaks_add_expired() ignores
 * the claims and messages of this project, because the test expects them to expire.
 */
struct leaks_expected {
    bool any;             /* false: none is expected */
    struct bytes project; /* absent: of all projects */
};
void leaks_expect(struct leaks *l, struct leaks_expected expected);

/* Copies a suspect that time has ended. May be called under a lock of the store. */
void leaks_add_expired(struct leaks *l, const struct leak *suspect);

/* Copies a leak that leak_look_up() has found. It is ignored if it is there already. */
void leaks_add(struct leaks *l, const struct leak *leak);

/* Looks up the suspects. ST_NO_MEMORY: some remain. */
enum status leaks_settle(struct leaks *l, struct history *h, struct arena *arena);

/*
 * Visits the leaks with numbers above `since`, oldest first, until `visit` returns false.
 * It is called under the lock, so it must only copy.
 */
typedef bool leaks_visit_fn(void *ctx, uint64_t number, const struct leak *leak);
void leaks_read(struct leaks *l, uint64_t since, leaks_visit_fn *visit, void *ctx);

/* Number of leaks, and of suspects that may be leaks, that were not kept. */
uint64_t leaks_left_out(struct leaks *l);

/* Forgets all leaks of a project. Absent: of all, with the number of those left out. */
void leaks_forget(struct leaks *l, struct bytes project);

#endif
