/*
 * testapi/faults: rules that inject faults into requests (docs/api.md 23.7).
 *
 * A rule names the requests that it matches, and to which of them its fault applies. It
 * counts both. Only the first rule that matches a request counts it, even if its fault
 * does not apply. A rule that is used up matches no more. A new list replaces all rules
 * at once.
 *
 *   Bounds   FAULT_RULES_MOST rules
 *   Cost     faults_strike() O(rules); one load without rules
 *   Threads  any
 */
#ifndef CLAIMD_TESTAPI_FAULTS_H
#define CLAIMD_TESTAPI_FAULTS_H

#include "claimd/base/bytes.h"
#include "claimd/base/mem.h"
#include "claimd/base/status.h"

enum { FAULT_RULES_MOST = 100 };

enum fault_kind {
    FAULT_NONE,
    FAULT_LATENCY,    /* send the response after ms */
    FAULT_STATUS,     /* do nothing, and respond with `status` */
    FAULT_CUT_BEFORE, /* do nothing, and close the connection */
    FAULT_CUT_AFTER,  /* close the connection instead of sending the response */
    FAULT_HALF,       /* send half of the response */
    FAULT_SLOW,       /* send `bytes` of the response every ms */
    FAULT_END_CLAIM,  /* release the claim that the request made */
    FAULT_CLOCK       /* move the clock by `seconds` before the request */
};

struct fault {
    enum fault_kind kind;
    int status;            /* STATUS: 429 or 503 */
    int64_t retry_after_s; /* STATUS: of the response; -1: the value of the server */
    int64_t ms, bytes, seconds;
};

/* Properties of a request. In a rule, an absent one matches any. Clients are compared
 * without case. */
struct fault_match {
    struct bytes action, method, queue, project, client;
};

struct fault_rule {
    struct fault_match match;
    uint64_t skip, every; /* after `skip` matches, apply to every n-th, from 1 */
    uint64_t times;       /* the rule is used up after so many faults; 0: never */
    struct fault fault;
    uint64_t matched, struck; /* matches and faults since the list was made */
};

struct faults;

/* Makes an empty list, owned. ST_NO_MEMORY. */
enum status faults_new(struct mem *mem, struct faults **out);
void faults_free(struct faults *f); /* NULL is fine */

/* Replaces all rules by copies of these. ST_NO_MEMORY, and nothing is changed. */
enum status
faults_replace(struct faults *f, const struct fault_rule *rules, size_t count);

/* Counts a request. True if *out, a fault, applies to it. */
bool
faults_strike(struct faults *f, const struct fault_match *request, struct fault *out);

/* Visits the rules in their order, under the lock. `visit` must only copy. */
typedef void fault_visit_fn(void *ctx, const struct fault_rule *rule);
void faults_read(struct faults *f, fault_visit_fn *visit, void *ctx);

#endif
