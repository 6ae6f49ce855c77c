/*
 * testapi/handlers: the handlers of the test API (docs/api.md 23), with the option ci.
 */
#ifndef API_TESTAPI_HANDLERS_H
#define API_TESTAPI_HANDLERS_H

#include "api/context.h"
#include "claimd/json/tree.h"

/* clock.c */
handler_fn handle_clock_show;
handler_fn handle_clock_set;
handler_fn handle_clock_advance;

/* history.c */
handler_fn handle_history;
handler_fn handle_expect;

/* state.c */
handler_fn handle_reset;
handler_fn handle_state_show;
handler_fn handle_state_set;

/* leaks.c */
handler_fn handle_leaks;

/* Reads the parameter `leaks`: true in *forget if it is "forget". Otherwise absent. */
enum status testapi_read_forget(struct context *ctx, bool *forget);

/* Records the leaks of a queue that the request is about to delete. */
enum status testapi_keep_leaks(struct context *ctx, const struct store_queue *queue);

/* Likewise of all queues of a project; absent: of all projects. */
enum status testapi_keep_all_leaks(struct context *ctx, struct bytes project);

/* faults.c */
handler_fn handle_faults_show;
handler_fn handle_faults_set;
handler_fn handle_faults_delete;

/* ------------------------------------------------------------------ shared */

/* Reads the body, an object, as an owned tree. Explains refusals. */
enum status testapi_read_body(struct context *ctx, json_t **out);

/* The project of a request: the parameter, or the header X-Project-ID. Absent without
 * both. */
struct bytes testapi_project(const struct context *ctx);

/* Default and maximum number of entries of a page. */
enum { TESTAPI_PAGE = 100, TESTAPI_PAGE_MOST = 1000 };

/* The events that time causes, a bit for each. */
#define TESTAPI_EVENTS_OF_TIME                                                           \
    (UINT32_C(1) << HISTORY_CLAIM_ENDED | UINT32_C(1) << HISTORY_DELAY_ENDED |           \
     UINT32_C(1) << HISTORY_EXPIRED | UINT32_C(1) << HISTORY_DEAD_LETTER |               \
     UINT32_C(1) << HISTORY_SCHEDULE | UINT32_C(1) << HISTORY_SERVED)

struct testapi_page {
    struct buf *out;             /* borrowed */
    uint32_t events;             /* to show, a bit for each */
    struct bytes project, queue; /* absent: any */
    size_t limit;
    uint64_t since; /* number of the entry before the first */
    size_t count;   /* private */
    uint64_t last;  /* out: number of the last entry */
    bool more;      /* out: there are more entries */
};

/* Writes `[...]`, and `,"links":[...]` if there are more entries. */
void testapi_write_page(struct context *ctx, struct testapi_page *page);

/* ------------------------------------------------------------------ faults in words */

/*
 * A fault in words (docs/api.md 23.7), in rules and in the header Claimd-Fault:
 *
 *     latency; ms=N                       status=429|503[; retry_after=N]
 *     cut=before|after                    half
 *     slow; bytes=N; every_ms=N           end_claim                clock; seconds=N
 */

/* Reads a fault. ST_BAD_VALUE, with a reason that does not name the header or the
 * rule. */
enum status fault_read(struct bytes text, struct fault *out, struct reason *why);

/* Space for any fault in words, with a NUL. */
enum { FAULT_TEXT_CAP = 64 };

/* Writes the words, with a NUL. */
void fault_text(const struct fault *fault, char out[FAULT_TEXT_CAP]);

#endif
