#include "http/measure.h"

#include <stdio.h>

#define COUNT_OF(array) (sizeof(array) / sizeof((array)[0]))

/* ------------------------------------------------------------------ requests */

enum { CODE_CAP = 12 };

static void
name_row(const struct traffic_row *row, struct label labels[2])
{
    labels[0] = (struct label){"route", bytes_str(row->route)};
    labels[1] = (struct label){"method", bytes_str(api_method_name(row->method))};
}

static void
write_codes(struct exposition *x, const struct traffic_row *row)
{
    struct label labels[3];
    char code[CODE_CAP];

    name_row(row, labels);
    for (size_t i = 0; i <= TRAFFIC_CODES; i++) {
        uint64_t count = counter_read(&row->codes[i]);

        if (count == 0)
            continue;
        if (i == TRAFFIC_CODES)
            labels[2] = (struct label){"code", bytes_str("other")};
        else {
            (void)snprintf(code, sizeof(code), "%d", traffic_codes[i]);
            labels[2] = (struct label){"code", bytes_str(code)};
        }
        exposition_sample(x, labels, 3, count);
    }
}

static void
write_durations(struct exposition *x, const struct traffic_row *row)
{
    struct label labels[2];

    name_row(row, labels);
    exposition_buckets(x, labels, 2, &row->took_us, &traffic_bounds_us, 6);
}

static void
write_rows(struct exposition *x, const struct traffic *t,
           void (*write)(struct exposition *x, const struct traffic_row *row))
{
    for (size_t i = 0; i < TRAFFIC_ROWS; i++) {
        const struct traffic_row *row =
            atomic_load_explicit(&t->rows[i], memory_order_relaxed);

        if (row != NULL)
            write(x, row);
    }
    write(x, &t->rest);
}

static void
write_traffic(const struct acceptor *a, struct exposition *x)
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
    struct traffic sum;

    traffic_init(&sum, a->shared->config->mem);
    for (size_t i = 0; i < a->worker_count; i++)
        traffic_merge(&sum, &a->workers[i].traffic);
    exposition_family(x, &requests);
    write_rows(x, &sum, write_codes);
    exposition_family(x, &durations);
    write_rows(x, &sum, write_durations);
    traffic_fini(&sum);
}

/* ------------------------------------------------------------------ connections */

static void
write_connections(const struct acceptor *a, struct exposition *x)
{
    static const struct family connections = {
        "claimd_http_connections", FAMILY_GAUGE, NULL,
        "Number of connections, by phase: waiting for a request, receiving one, sending "
        "a response, or suspended until the response is ready."};
    static const struct family most = {"claimd_http_max_connections", FAMILY_GAUGE, NULL,
                                       "Maximum number of connections."};
    static const struct family accepted = {"claimd_http_connections_accepted",
                                           FAMILY_COUNTER, NULL,
                                           "Number of connections accepted."};
    static const struct family refused = {
        "claimd_http_connections_refused", FAMILY_COUNTER, NULL,
        "Number of connections refused because of the limit or a lack of memory."};
    static const char *const names[CONN_PHASES] = {[CONN_WAITING] = "waiting",
                                                   [CONN_RECEIVING] = "receiving",
                                                   [CONN_ANSWERING] = "answering",
                                                   [CONN_PARKED] = "parked"};

    exposition_family(x, &connections);
    for (size_t phase = 0; phase < CONN_PHASES; phase++) {
        const struct label label = {"phase", bytes_str(names[phase])};
        uint64_t count = 0;

        for (size_t i = 0; i < a->worker_count; i++)
            count += counter_read(&a->workers[i].conns.counts[phase]);
        exposition_sample(x, &label, 1, count);
    }
    exposition_single(x, &most, a->max_connections);
    exposition_single(x, &accepted, counter_read(&a->accepted));
    exposition_single(x, &refused, counter_read(&a->refused));
}

static void
write_parked(const struct acceptor *a, struct exposition *x)
{
    static const struct family parked = {
        "claimd_http_requests_parked", FAMILY_GAUGE, NULL,
        "Number of suspended requests, by reason: they wait for a message, the journal, "
        "a remote store, the identity server, or their turn in a long operation."};
    static const struct family most = {"claimd_http_max_waiters", FAMILY_GAUGE, NULL,
                                       "Maximum number of long-polling requests."};
    static const struct {
        const char *reason;
        enum exchange_state state;
    } reasons[] = {
        {"message", EXCHANGE_WAITING}, {"journal", EXCHANGE_COMMIT},
        {"remote", EXCHANGE_REMOTE},   {"identity", EXCHANGE_IDENTITY},
        {"turn", EXCHANGE_SLICES},
    };

    exposition_family(x, &parked);
    for (size_t r = 0; r < COUNT_OF(reasons); r++) {
        const struct label label = {"reason", bytes_str(reasons[r].reason)};
        uint64_t count = 0;

        for (size_t i = 0; i < a->worker_count; i++)
            count += counter_read(&a->workers[i].parked.counts[reasons[r].state]);
        exposition_sample(x, &label, 1, count);
    }
    exposition_single(x, &most, a->shared->config->max_waiters);
}

void
measure_write(const struct acceptor *a, struct exposition *x)
{
    static const struct family workers = {"claimd_workers", FAMILY_GAUGE, NULL,
                                          "Number of threads that serve requests."};

    exposition_single(x, &workers, a->worker_count);
    write_connections(a, x);
    write_parked(a, x);
    write_traffic(a, x);
}
