#include "http/ask.h"

#include "claimd/base/invariant.h"

/* Fibers of a worker, and of all. A stack is two mappings, and Linux lets a process have 65 530. */
enum { FIBERS_MOST = 1024, FIBERS_ALL = 16384 };

/* Its worker has to look at an exchange, which it may do at once. */
static void
call_back(void *arg)
{
    struct exchange *ex = arg;
    struct mailbox *m = ex->conn->mailbox;

    if (mailbox_post(m, &ex->conn->mail, MAIL_DONE))
        mailbox_wake(m);
}

void
ask_init(struct worker *w)
{
    const struct server_config *config = w->shared->config;
    size_t most = FIBERS_ALL / config->workers;

    if (most > FIBERS_MOST)
        most = FIBERS_MOST;
    if (config->fibers != 0)
        most = config->fibers;
    fiber_pool_init(&w->parked.fibers, config->mem, config->executor, most, call_back);
}

void
ask_fini(struct worker *w)
{
    fiber_pool_fini(&w->parked.fibers);
}

enum api_next
ask_here(const struct worker_shared *shared, struct exchange *ex)
{
    const char *outer = invariant_context(ex->id);
    enum api_next next;

    ex->request.now_ms = clock_now_ms(shared->config->clock);
    ex->request.body = buf_view(&ex->body);
    next = api_handle(shared->config->api, &ex->request, &ex->response);
    (void)invariant_context(outer);
    return next;
}

/* ------------------------------------------------------------------ fibers */

static void
run_fiber(void *arg)
{
    struct exchange *ex = arg;

    ex->next_step = ask_here(ex->shared, ex);
}

/* After the fiber has run for a while. */
static enum asking
look_at_fiber(struct worker *w, struct exchange *ex, enum fiber_state state)
{
    if (state == FIBER_PARKED)
        return ASK_AWAY;
    fiber_give(&w->parked.fibers, ex->fiber);
    ex->fiber = NULL;
    return ASK_BACK;
}

enum asking
ask_in_fiber(struct worker *w, struct exchange *ex)
{
    const char *outer;
    enum fiber_state state;

    ex->fiber = fiber_take(&w->parked.fibers);
    if (ex->fiber == NULL)
        return ASK_STUCK;
    ex->shared = w->shared;
    outer = invariant_context(ex->id);
    state = fiber_start(ex->fiber, run_fiber, ex);
    (void)invariant_context(outer);
    return look_at_fiber(w, ex, state);
}

enum asking
ask_go_on(struct worker *w, struct exchange *ex)
{
    const char *outer = invariant_context(ex->id);
    enum fiber_state state = fiber_go_on(ex->fiber);

    (void)invariant_context(outer);
    return look_at_fiber(w, ex, state);
}
