/*
 * testapi/handlers: what tests may ask besides (docs/api.md 23); there only with the test API.
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

/* faults.c */
handler_fn handle_faults_show;
handler_fn handle_faults_set;
handler_fn handle_faults_delete;

/* ------------------------------------------------------------------ shared */

/* The body, which must be an object; the tree is owned. Explained. */
enum status testapi_read_body(struct context *ctx, json_t **out);

/*
 * The project that a request is about: the parameter, or the header X-Project-ID; absent: none
 * is named.
 */
struct bytes testapi_project(const struct context *ctx);

/* Entries of the history that are shown together. */
enum { TESTAPI_PAGE = 100, TESTAPI_PAGE_MOST = 1000 };

/* A bit for each of what time does. */
#define TESTAPI_EVENTS_OF_TIME                                                           \
    (UINT32_C(1) << HISTORY_CLAIM_ENDED | UINT32_C(1) << HISTORY_DELAY_ENDED |           \
     UINT32_C(1) << HISTORY_EXPIRED | UINT32_C(1) << HISTORY_DEAD_LETTER |               \
     UINT32_C(1) << HISTORY_SERVED)

struct testapi_page {
    struct buf *out;             /* borrowed */
    uint32_t events;             /* a bit for each that is shown */
    struct bytes project, queue; /* absent: of any */
    size_t limit;
    uint64_t since;
    size_t count;  /* private */
    uint64_t last; /* out: number of the last one that was shown */
    bool more;     /* out */
};

/* Writes `[...]`, and `,"links":[...]` if there are more. */
void testapi_write_page(struct context *ctx, struct testapi_page *page);

/* ------------------------------------------------------------------ faults in words */

/*
 * A fault in words (docs/api.md 23.7), as rules and the header Claimd-Fault have it:
 *
 *     latency; ms=N                       status=429|503[; retry_after=N]
 *     cut=before|after                    half
 *     slow; bytes=N; every_ms=N           end_claim                clock; seconds=N
 */

/* ST_BAD_VALUE, with the reason, which does not name the whole. */
enum status fault_read(struct bytes text, struct fault *out, struct reason *why);

/* Room for any fault in words, with a NUL. */
enum { FAULT_TEXT_CAP = 64 };

/* Writes the words, with a NUL. */
void fault_text(const struct fault *fault, char out[FAULT_TEXT_CAP]);

#endif
