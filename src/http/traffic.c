#include "http/traffic.h"

#include "claimd/base/hash.h"

/* No more rows than that, so that a search ends soon. */
enum { ROWS_MOST = TRAFFIC_ROWS * 3 / 4 };

const int traffic_codes[TRAFFIC_CODES] = {200, 201, 204, 304, 400, 401, 403, 404,
                                          405, 406, 408, 409, 410, 411, 412, 413,
                                          414, 415, 429, 431, 500, 501, 503, 505};

const struct bucket_bounds traffic_bounds_us = {13,
                                                {50, 100, 250, 500, 1000, 2500, 10000,
                                                 50000, 250000, 1000000, 5000000,
                                                 20000000, 60000000}};

void
traffic_init(struct traffic *t, struct mem *mem)
{
    *t = (struct traffic){.mem = mem, .rest = {.route = "none", .method = METHOD_OTHER}};
}

void
traffic_fini(struct traffic *t)
{
    for (size_t i = 0; i < TRAFFIC_ROWS; i++)
        mem_free(t->mem, atomic_load_explicit(&t->rows[i], memory_order_relaxed));
}

static struct traffic_row *
make_row(struct traffic *t, size_t place, const char *route, enum method method)
{
    struct traffic_row *row =
        t->count < ROWS_MOST ? mem_calloc(t->mem, 1, sizeof(*row)) : NULL;

    if (row == NULL)
        return &t->rest;
    row->route = route;
    row->method = method;
    t->count++;
    atomic_store_explicit(&t->rows[place], row, memory_order_release);
    return row;
}

static struct traffic_row *
row_of(struct traffic *t, const char *route, enum method method)
{
    size_t place = hash_mix((uint64_t)(uintptr_t)route + (uint64_t)method) % TRAFFIC_ROWS;

    for (;; place = (place + 1) % TRAFFIC_ROWS) {
        struct traffic_row *row =
            atomic_load_explicit(&t->rows[place], memory_order_relaxed);

        if (row == NULL)
            return make_row(t, place, route, method);
        if (row->route == route && row->method == method)
            return row;
    }
}

static size_t
place_of_code(int code)
{
    size_t i = 0;

    while (i < TRAFFIC_CODES && traffic_codes[i] != code)
        i++;
    return i;
}

void
traffic_count(struct traffic *t, const char *route, enum method method, int code,
              int64_t took_us)
{
    struct traffic_row *row;

    if (code == 0)
        return;
    row = route == NULL ? &t->rest : row_of(t, route, method);
    counter_add(&row->codes[place_of_code(code)], 1);
    buckets_add(&row->took_us, &traffic_bounds_us, took_us > 0 ? (uint64_t)took_us : 0);
}

static void
merge_row(struct traffic_row *to, const struct traffic_row *from)
{
    for (size_t i = 0; i <= TRAFFIC_CODES; i++)
        counter_add(&to->codes[i], counter_read(&from->codes[i]));
    buckets_merge(&to->took_us, &from->took_us);
}

void
traffic_merge(struct traffic *to, const struct traffic *from)
{
    merge_row(&to->rest, &from->rest);
    for (size_t i = 0; i < TRAFFIC_ROWS; i++) {
        const struct traffic_row *row =
            atomic_load_explicit(&from->rows[i], memory_order_acquire);

        if (row != NULL)
            merge_row(row_of(to, row->route, row->method), row);
    }
}
