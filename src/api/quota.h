/*
 * quota: limits of a project (docs/api.md 16): requests per second, connections, and
 * long-polling requests. The store limits what a project stores.
 *
 * A token bucket with the tokens of one second limits the requests. A tenant is the
 * structure of a project. A tenant without connections and waiters is freed after a
 * second without requests, when another tenant is made.
 *
 *   Memory   about 200 bytes for an active project; nothing while no limit is set
 *   Cost     without limits one read of an atomic; else O(1) and a lock, one of sixteen
 *   Threads  any
 */
#ifndef API_QUOTA_H
#define API_QUOTA_H

#include "claimd/api/api.h"
#include "claimd/base/counter.h"

struct quotas; /* opaque */

/* ST_NO_MEMORY; ST_UNAVAILABLE: no entropy for the key of its table. */
enum status quotas_new(struct mem *mem, struct quotas **out);

/* No connection may be counted, and no request may wait. NULL is fine. */
void quotas_free(struct quotas *q);

/* Sets and reads the limits. */
void quotas_set(struct quotas *q, const struct api_project_limits *limits);
void quotas_get(const struct quotas *q, struct api_project_limits *out);

/*
 * Counts a request of the project, and its connection (NULL: none).
 * ST_PROJECT_REQUESTS, ST_PROJECT_CONNECTIONS, ST_NO_MEMORY.
 */
enum status quotas_admit(struct quotas *q, struct bytes project, int64_t now_ms,
                         struct api_connection *connection);

/* The connection has ended. Does nothing if it was not counted. */
void quotas_disconnect(struct api_connection *connection);

/*
 * Counts a request that is about to wait. *tenant is for quotas_wait_end(); NULL without
 * a limit. ST_PROJECT_WAITERS, ST_NO_MEMORY.
 */
enum status quotas_wait_begin(struct quotas *q, struct bytes project, int64_t now_ms,
                              struct api_tenant **tenant);

/* NULL is fine. */
void quotas_wait_end(struct api_tenant *tenant);

/* Counts a refusal, if its status is that of a limit, or ST_PAUSED. */
void quotas_count(struct quotas *q, enum status st);

/* The number of refusals, by status from ST_PROJECT_QUEUES on. */
enum { QUOTA_KINDS = ST_PROJECT_WAITERS - ST_PROJECT_QUEUES + 1 };
uint64_t quotas_refused(const struct quotas *q, size_t kind);

/* The number of refusals with ST_PAUSED, which is no limit. */
uint64_t quotas_refused_paused(const struct quotas *q);

/* The number of tenants, for tests. */
size_t quotas_tenants(struct quotas *q);

#endif
