#include "support/pending.h"

#include <stdio.h>

static struct store_wakeup *
notify(struct store_listener *listener, enum store_notification notification)
{
    struct pending *a = container_of(listener, struct pending, waiting.listener);

    if (notification == STORE_READY)
        a->ready++;
    else
        a->gone++;
    return NULL;
}

void
pending_prepare(struct pending *a, struct api_fixture *f, const char *method,
                const char *target, const char *prefer)
{
    struct bytes path, query;

    *a = (struct pending){.f = f, .waiting.listener.notify = notify};
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
pending_fetch(struct pending *a)
{
    a->req.now_ms = a->f->c.clock == NULL ? a->f->c.now_ms : clock_now_ms(a->f->c.clock);
    return api_handle(a->f->api, &a->req, &a->res);
}

void
pending_end(struct pending *a)
{
    api_stop_waiting(a->f->api, &a->req);
    arena_fini(&a->arena);
    buf_fini(&a->res.body);
    ck_assert(store_audit(a->f->store));
}

const char *
pending_header(const struct pending *a, const char *name)
{
    for (size_t i = 0; i < a->res.header_count; i++)
        if (strcmp(a->res.headers[i].name, name) == 0)
            return a->res.headers[i].value;
    return NULL;
}

void
pending_begin(struct pending *a, struct api_fixture *f, const char *method,
              const char *target, const char *prefer)
{
    pending_prepare(a, f, method, target, prefer);
    ck_assert_int_eq(pending_fetch(a), API_WAIT);
    ck_assert_int_eq(a->ready + a->gone, 0);
}

void
pending_finish(struct pending *a, int code)
{
    ck_assert_int_eq(pending_fetch(a), API_SEND);
    ck_assert_int_eq(a->res.code, code);
    ck_assert_uint_eq(a->waiting.waiter_count, 0); /* it stands in no line any more */
}
