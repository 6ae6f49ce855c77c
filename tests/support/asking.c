#include "support/asking.h"

#include <stdio.h>

static struct store_wakeup *
notify(struct store_listener *listener, enum store_notification notification)
{
    struct asking *a = container_of(listener, struct asking, waiting.listener);

    if (notification == STORE_READY)
        a->ready++;
    else
        a->gone++;
    return NULL;
}

void
asking_prepare(struct asking *a, struct api_fixture *f, const char *method,
               const char *target, const char *prefer)
{
    struct bytes path, query;

    *a = (struct asking){.f = f, .waiting.listener.notify = notify};
    arena_init(&a->arena, f->mem);
    buf_init(&a->res.body, f->mem);
    (void)snprintf(a->target, sizeof(a->target), "%s", target);
    query = bytes_str(a->target);
    path = bytes_cut(&query, '?');
    a->req = (struct request){.method = api_method(bytes_str(method)),
                              .path = path,
                              .query = query,
                              .arena = &a->arena,
                              .waiting = &a->waiting};
    a->req.headers[API_HEADER_ACCEPT] = bytes_str("application/json");
    a->req.headers[API_HEADER_CLIENT_ID] = bytes_str(API_CALL_CLIENT);
    a->req.headers[API_HEADER_PROJECT_ID] = bytes_str(API_CALL_PROJECT);
    if (prefer != NULL)
        a->req.headers[API_HEADER_PREFER] = bytes_str(prefer);
}

enum api_next
asking_ask(struct asking *a)
{
    a->req.now_ms = a->f->c.clock == NULL ? a->f->c.now_ms : clock_now_ms(a->f->c.clock);
    return api_handle(a->f->api, &a->req, &a->res);
}

void
asking_forget(struct asking *a)
{
    api_stop_waiting(a->f->api, &a->req);
    arena_fini(&a->arena);
    buf_fini(&a->res.body);
    ck_assert(store_audit(a->f->store));
}

const char *
asking_header(const struct asking *a, const char *name)
{
    for (size_t i = 0; i < a->res.header_count; i++)
        if (strcmp(a->res.headers[i].name, name) == 0)
            return a->res.headers[i].value;
    return NULL;
}

/* Asked once, it waits. */
void
asking_begin(struct asking *a, struct api_fixture *f, const char *method,
             const char *target, const char *prefer)
{
    asking_prepare(a, f, method, target, prefer);
    ck_assert_int_eq(asking_ask(a), API_WAIT);
    ck_assert_int_eq(a->ready + a->gone, 0);
}

/* Asked again, it has its response. */
void
asking_finish(struct asking *a, int code)
{
    ck_assert_int_eq(asking_ask(a), API_SEND);
    ck_assert_int_eq(a->res.code, code);
    ck_assert_uint_eq(a->waiting.waiter_count, 0); /* it stands in no line any more */
}
