#include "http/metrics.h"

#include "claimd/base/hash.h"

#include <stdio.h>

/* Maximum number of rows, so that a search ends soon. */
enum { ROWS_MOST = TRAFFIC_ROWS * 3 / 4 };

const int traffic_codes[TRAFFIC_CODES] = {200, 201, 204, 304, 400, 401, 403, 404,
                                          405, 406, 408, 409, 410, 411, 412, 413,
                                          414, 415, 429, 431, 500, 501, 503, 505};

static const struct bucket_bounds traffic_bounds_us = {13,
                                                       {50, 100, 250, 500, 1000, 2500,
                                                        10000, 50000, 250000, 1000000,
                                                        5000000, 20000000, 60000000}};

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
find_row(struct traffic *t, const char *route, enum method method)
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

void
traffic_count(struct traffic *t, const char *route, enum method method, int code,
              int64_t took_us)
{
    struct traffic_row *row;
    size_t i = 0;

    if (code == 0)
        return;
    while (i < TRAFFIC_CODES && traffic_codes[i] != code)
        i++;
    row = route == NULL ? &t->rest : find_row(t, route, method);
    counter_add(&row->codes[i], 1);
    buckets_add(&row->took_us, &traffic_bounds_us, took_us > 0 ? (uint64_t)took_us : 0);
}

void
traffic_count_load_wait(struct traffic *t, int64_t took_us)
{
    buckets_add(&t->load_waits_us, &traffic_bounds_us,
                took_us > 0 ? (uint64_t)took_us : 0);
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
    buckets_merge(&to->load_waits_us, &from->load_waits_us);
    for (size_t i = 0; i < TRAFFIC_ROWS; i++) {
        const struct traffic_row *row =
            atomic_load_explicit(&from->rows[i], memory_order_acquire);

        if (row != NULL)
            merge_row(find_row(to, row->route, row->method), row);
    }
}

/* ------------------------------------------------------------------ requests */

static void
write_codes(struct exposition *x, const struct traffic_row *row, struct label labels[3])
{
    char code[12];

    for (size_t i = 0; i <= TRAFFIC_CODES; i++) {
        uint64_t count = counter_read(&row->codes[i]);

        if (count == 0)
            continue;
        (void)snprintf(code, sizeof(code), "%d",
                       i == TRAFFIC_CODES ? 0 : traffic_codes[i]);
        labels[2] =
            (struct label){"code", bytes_str(i == TRAFFIC_CODES ? "other" : code)};
        exposition_sample(x, labels, 3, count);
    }
}

static void
write_rows(struct exposition *x, const struct traffic *t, bool durations)
{
    for (size_t i = 0; i <= TRAFFIC_ROWS; i++) {
        const struct traffic_row *row =
            i == TRAFFIC_ROWS ? &t->rest
                              : atomic_load_explicit(&t->rows[i], memory_order_relaxed);
        struct label labels[3];

        if (row == NULL)
            continue;
        labels[0] = (struct label){"route", bytes_str(row->route)};
        labels[1] = (struct label){"method", bytes_str(api_method_name(row->method))};
        if (durations)
            exposition_buckets(x, labels, 2, &row->took_us, &traffic_bounds_us, 6);
        else
            write_codes(x, row, labels);
    }
}

static void
write_traffic(const struct traffic *t, struct exposition *x)
{
    static const struct family requests = {
        "claimd_http_requests", FAMILY_COUNTER, NULL,
        "Number of completed requests, by route, method and status. Requests for an "
        "unknown path, or with a method that the path does not have, count as route "
        "none."};
    static const struct family durations = {
        "claimd_http_request_duration_seconds", FAMILY_HISTOGRAM, "seconds",
        "Time from the first line of a request to the end of its response, in seconds. "
        "Includes long polling."};

    exposition_family(x, &requests);
    write_rows(x, t, false);
    exposition_family(x, &durations);
    write_rows(x, t, true);
}

/* ------------------------------------------------------------------ connections */

static void
write_connections(const struct http_counts *counts, struct exposition *x)
{
    static const struct family connections = {
        "claimd_http_connections", FAMILY_GAUGE, NULL,
        "Number of connections, by phase: waiting for a request, receiving one, sending "
        "a response, or suspended until the response is ready."};
    static const char *const names[CONN_PHASES] = {[CONN_WAITING] = "waiting",
                                                   [CONN_RECEIVING] = "receiving",
                                                   [CONN_RESPONDING] = "answering",
                                                   [CONN_SUSPENDED] = "parked"};

    exposition_family(x, &connections);
    for (size_t phase = 0; phase < CONN_PHASES; phase++) {
        const struct label label = {"phase", bytes_str(names[phase])};

        exposition_sample(x, &label, 1, counts->connections[phase]);
    }
    metric_write(x, FAMILY_GAUGE, "claimd_http_max_connections", NULL,
                 "Maximum number of connections.", counts->max_connections, 0);
    metric_write(x, FAMILY_COUNTER, "claimd_http_connections_accepted", NULL,
                 "Number of connections accepted.", counts->accepted, 0);
    metric_write(
        x, FAMILY_COUNTER, "claimd_http_connections_refused", NULL,
        "Number of connections refused because of the limit or a lack of memory.",
        counts->refused, 0);
}

static void
write_suspended(const struct http_counts *counts, struct exposition *x)
{
    static const struct family parked = {
        "claimd_http_requests_parked", FAMILY_GAUGE, NULL,
        "Number of suspended requests, by reason: they wait for a message, the journal, "
        "a remote store, the identity server, their turn in a long operation, or the "
        "next "
        "event of a stream."};
    static const struct {
        const char *reason;
        enum exchange_state state;
    } reasons[] = {
        {"message", EXCHANGE_WAITING}, {"journal", EXCHANGE_COMMIT},
        {"remote", EXCHANGE_REMOTE},   {"identity", EXCHANGE_IDENTITY},
        {"turn", EXCHANGE_TURN},       {"stream", EXCHANGE_STREAM},
    };

    exposition_family(x, &parked);
    for (size_t r = 0; r < sizeof(reasons) / sizeof(reasons[0]); r++) {
        const struct label label = {"reason", bytes_str(reasons[r].reason)};

        exposition_sample(x, &label, 1, counts->suspended[reasons[r].state]);
    }
    metric_write(x, FAMILY_GAUGE, "claimd_http_max_waiters", NULL,
                 "Maximum number of long-polling requests.", counts->max_waiters, 0);
}

static void
write_load_waits(const struct traffic *t, struct exposition *x)
{
    static const struct family waits = {
        "claimd_http_load_wait_seconds", FAMILY_HISTOGRAM, "seconds",
        "Time that requests waited for messages from body files, in seconds."};

    exposition_family(x, &waits);
    exposition_buckets(x, NULL, 0, &t->load_waits_us, &traffic_bounds_us, 6);
}

void
http_metrics_write(const struct http_counts *counts, const struct traffic *traffic,
                   struct exposition *x)
{
    metric_write(x, FAMILY_GAUGE, "claimd_workers", NULL,
                 "Number of threads that serve requests.", counts->workers, 0);
    write_connections(counts, x);
    write_suspended(counts, x);
    write_traffic(traffic, x);
    if (counts->unloads)
        write_load_waits(traffic, x);
}
