#include "http/injected_fault.h"

#include "claimd/base/invariant.h"

static void
fault_delay(struct worker *w, struct exchange *ex)
{
    const int64_t now_ms = w->loop.round.now_ms;

    worker_set_phase(w, ex->conn, CONN_SUSPENDED);
    list_add_before(&w->suspended.delayed, &ex->conn->turn);
    /* + 1 because now_ms is rounded down */
    wheel_arm(w->suspended.deadlines, &ex->due, now_ms + ex->response.fault.ms + 1);
}

bool
fault_allows(struct worker *w, struct exchange *ex)
{
    if (ex->response.fault.kind != FAULT_LATENCY || worker_is_draining(w))
        return true;
    state_set(w, ex, EXCHANGE_DELAYED);
    fault_delay(w, ex);
    return false;
}

bool
fault_divides(const struct exchange *ex)
{
    const enum fault_kind kind = ex->response.fault.kind;

    return (kind == FAULT_HALF || kind == FAULT_SLOW) && !ex->response.stream &&
           ex->request.method != METHOD_HEAD && ex->response.code != 204 &&
           ex->response.code != 304 && ex->response.body.len > 0;
}

bool
fault_cuts(const struct exchange *ex)
{
    const enum fault_kind kind = ex->response.fault.kind;

    /* An event, and a response without a body, has no half. */
    return kind == FAULT_CUT_BEFORE || kind == FAULT_CUT_AFTER ||
           (kind == FAULT_HALF && !fault_divides(ex));
}

/* True if the next piece is due. If one was just sent, suspends the connection for a
 * while. */
static bool
piece_is_due(struct worker *w, struct exchange *ex)
{
    if (ex->piece == PIECE_DUE) {
        ex->piece = PIECE_SENT;
        return true;
    }
    if (ex->piece == PIECE_SENT) {
        ex->piece = PIECE_WAITS;
        fault_delay(w, ex);
        mhd_suspend(ex->conn);
    }
    return false;
}

ssize_t
fault_read_piece(struct exchange *ex, uint64_t at, char *out, size_t cap)
{
    struct worker *w = worker_of(ex->conn);
    const struct fault *fault = &ex->response.fault;
    const struct bytes body = buf_view(&ex->response.body);
    const uint64_t end = fault->kind == FAULT_HALF ? body.len / 2 : body.len;
    bool slow = fault->kind == FAULT_SLOW && !worker_is_draining(w);
    uint64_t len = cap;

    if (at >= end || ex->conn->phase == CONN_CLOSING)
        return PIECES_BREAK;
    if (slow && !piece_is_due(w, ex))
        return 0;
    if (len > end - at)
        len = end - at;
    if (slow && len > (uint64_t)fault->bytes)
        len = (uint64_t)fault->bytes;
    memcpy(out, body.data + at, (size_t)len);
    return (ssize_t)len;
}

void
fault_piece_due(struct worker *w, struct exchange *ex)
{
    ENSURE(ex->state == EXCHANGE_RESPONDED && ex->piece == PIECE_WAITS);
    ex->piece = PIECE_DUE;
    worker_set_phase(w, ex->conn, CONN_RESPONDING);
    mhd_resume(ex->conn);
}
