/*
 * quota: how much of the server a project may have at a time (docs/api.md 16): requests a
 * second, connections, requests that wait. What it may have stored is the store's to see to.
 *
 * Requests a second are a bucket of tokens (of one second's worth) that fills with the time. A
 * tenant is what is remembered of a project; one that has nothing and has asked for nothing for
 * a second is forgotten when others come.
 *
 *   Memory   some 200 bytes for a project that is active; nothing while no limit is set
 *   Cost     without limits one look at an atomic; else a lock of a sixteenth of all, and O(1)
 *   Threads  any
 */
#ifndef API_QUOTA_H
#define API_QUOTA_H

#include "claimd/api/api.h"
#include "claimd/base/counter.h"

struct quotas; /* opaque */

/* ST_NO_MEMORY; ST_UNAVAILABLE: no entropy for the key of its table. */
enum status quotas_new(struct mem *mem, struct quotas **out);

/* Nobody may have a seat or wait. */
void quotas_free(struct quotas *q);

/* From now on these limits count. */
void quotas_set(struct quotas *q, const struct api_project_limits *limits);
void quotas_get(const struct quotas *q, struct api_project_limits *out);

/*
 * A request of the project, over the connection whose seat this is (NULL: no matter which).
 * ST_PROJECT_REQUESTS, ST_PROJECT_CONNECTIONS, ST_NO_MEMORY.
 */
enum status quotas_admit(struct quotas *q, struct bytes project, int64_t now_ms,
                         struct api_seat *seat);

/* The seat is free again; fine if nobody had it. */
void quotas_disconnect(struct api_seat *seat);

/*
 * A request of the project is about to wait; *tenant is then for quotas_wait_end(), NULL if
 * there is no limit. ST_PROJECT_WAITERS, ST_NO_MEMORY.
 */
enum status quotas_wait_begin(struct quotas *q, struct bytes project, int64_t now_ms,
                              struct api_tenant **tenant);
void quotas_wait_end(struct api_tenant *tenant);

/* Counts a request that was refused for one of the limits; fine for any status. */
void quotas_count(struct quotas *q, enum status st);

/* How many were, by status from ST_PROJECT_QUEUES on. */
enum { QUOTA_KINDS = ST_PROJECT_WAITERS - ST_PROJECT_QUEUES + 1 };
uint64_t quotas_refused(const struct quotas *q, size_t kind);

/* How many projects are remembered; for tests. O(1) a sixteenth. */
size_t quotas_tenants(struct quotas *q);

#endif
