#include "http/states.h"

#include "claimd/base/invariant.h"

bool
state_is_suspended(enum exchange_state state)
{
    return state >= EXCHANGE_TURN && state <= EXCHANGE_STREAM;
}

void
state_set(struct worker *w, struct exchange *ex, enum exchange_state state)
{
    if (state_is_suspended(ex->state))
        counter_subtract(&w->suspended.counts[ex->state], 1);
    if (state_is_suspended(state))
        counter_add(&w->suspended.counts[state], 1);
    ex->state = state;
}

void
state_unlist(struct worker *w, struct exchange *ex)
{
    if (list_linked(&ex->conn->turn))
        list_remove(&ex->conn->turn);
    if (list_linked(&ex->commit))
        list_remove(&ex->commit);
    wheel_disarm(w->suspended.deadlines, &ex->due);
}

void
state_make_ready(struct worker *w, struct exchange *ex)
{
    ENSURE(state_is_suspended(ex->state) && !list_linked(&ex->conn->turn));
    state_set(w, ex, EXCHANGE_READY);
    worker_set_phase(w, ex->conn, CONN_RESPONDING);
    mhd_resume(ex->conn);
}
