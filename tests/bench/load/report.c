/*
 * report: writes the result of a run (run.h) as text, JSON or CSV.
 *
 * All three forms take their rows from report_rows(): a row per operation, and one for
 * the time from a post to its claim. docs/performance.md describes what the numbers mean.
 */
#include "load/run.h"

#include <inttypes.h>

/* A row of a report: an operation, or the delivery of messages from post to claim. */
struct report_row {
    const char *name;
    uint64_t requests, messages, errors; /* requests 0: the row is of deliveries */
    const struct histogram *latency;     /* borrowed */
};

#define REPORT_ROWS (OP_COUNT + 1)

static const struct {
    const char *name;
    double percent;
} percentiles[] = {{"p50", 50}, {"p90", 90}, {"p99", 99}, {"p99.9", 99.9}, {"max", 100}};

#define PERCENTILES (sizeof percentiles / sizeof percentiles[0])

/* Makes a row for each operation that the run used. Returns their number. */
static size_t
report_rows(const struct op_stats *s, struct report_row rows[REPORT_ROWS])
{
    size_t count = 0;

    for (int op = 0; op < OP_COUNT; op++)
        if (s->requests[op] > 0)
            rows[count++] =
                (struct report_row){op_names[op], s->requests[op], s->messages[op],
                                    s->errors[op], &s->latency[op]};
    if (s->delivery.total > 0)
        rows[count++] =
            (struct report_row){"post to claim", 0, s->delivery.total, 0, &s->delivery};
    return count;
}

/* A percentile in microseconds. */
static double
report_us(const struct histogram *h, double percent)
{
    return (double)histogram_percentile(h, percent) / 1000.0;
}

static double
rate_of(const struct result *r, uint64_t count)
{
    return r->seconds > 0 ? (double)count / r->seconds : 0;
}

static double
messages_per_second(const struct result *r)
{
    return rate_of(r, r->stats->normal.messages[r->counted] +
                          r->stats->storm.messages[r->counted]);
}

/* CPU time of the server per request, in microseconds. 0 if it was not measured. */
static double
server_cpu_us(const struct result *r)
{
    if (!r->has_server || r->server_requests == 0)
        return 0;
    return r->server_cpu_seconds * 1e6 / (double)r->server_requests;
}

/* RSS per message of the backlog, in bytes. 0 if it was not measured. */
static double
resident_per_message(const struct options *o, const struct result *r)
{
    if (!r->has_server || o->backlog == 0 || r->resident_after < r->resident_before)
        return 0;
    return (double)(r->resident_after - r->resident_before) / (double)o->backlog;
}

static const char *
report_label(const struct options *o)
{
    return o->label != NULL ? o->label : o->protocol_name;
}

/* ------------------------------------------------------------------ text */

static void
write_operations(const struct op_stats *s, const char *title, FILE *out)
{
    struct report_row rows[REPORT_ROWS];
    size_t count = report_rows(s, rows);

    fprintf(out, "\n%-14s %10s %8s %8s %8s %8s %9s  us\n", title, "requests", "p50",
            "p90", "p99", "p99.9", "max");
    for (size_t i = 0; i < count; i++) {
        fprintf(out, "%-14s %10" PRIu64, rows[i].name,
                rows[i].requests > 0 ? rows[i].requests : rows[i].messages);
        for (size_t k = 0; k < PERCENTILES; k++)
            fprintf(out, " %*.0f", k + 1 == PERCENTILES ? 9 : 8,
                    report_us(rows[i].latency, percentiles[k].percent));
        fputc('\n', out);
    }
}

void
report_text(const struct options *o, const struct result *r, FILE *out)
{
    const struct stats *s = r->stats;

    fprintf(out,
            "%s: %s, batch %" PRId64 ", %" PRId64 " connections, %" PRId64
            " queues, backlog %" PRId64 ", ",
            report_label(o), scenario_names[o->scenario], o->batch, o->connections,
            o->queues, o->backlog);
    if (o->rate > 0)
        fprintf(out, "open loop at %.0f requests/s, ", o->rate);
    else
        fprintf(out, "closed loop, ");
    fprintf(out, "%.1f s\n", r->seconds);
    if (o->scenario == SCENARIO_DELIVERY) {
        fprintf(out, "%" PRId64 " producers, %" PRId64 " workers, ", o->producers,
                o->connections - o->producers);
        if (o->wait > 0)
            fprintf(out, "wait %" PRId64 " s, ", o->wait);
        fprintf(out, "poll %" PRId64 " ms\n", o->poll);
    }
    fputc('\n', out);
    fprintf(out, "messages       %10.0f per second\n", messages_per_second(r));
    fprintf(out, "requests       %10.0f per second\n",
            rate_of(r, stats_requests(r->stats)));
    if (r->has_server)
        fprintf(out, "server CPU     %10.2f s per million requests, %.0f %% busy\n",
                server_cpu_us(r),
                r->server_seconds > 0 ? 100 * r->server_cpu_seconds / r->server_seconds
                                      : 0);
    if (r->has_server && o->backlog > 0)
        fprintf(out, "resident       %10.1f bytes per message of %" PRId64 "\n",
                resident_per_message(o, r), o->body_bytes);
    fprintf(out, "generator CPU  %10.0f %% of one core\n",
            r->server_seconds > 0 ? 100 * r->own_cpu_seconds / r->server_seconds : 0);
    write_operations(&s->normal, "operation", out);
    if (r->storm_at > 0)
        write_operations(&s->storm, "in the storm", out);
    if (stats_errors(s) > 0)
        fprintf(out, "\nrefused        %10" PRIu64 " (the first with status %d)\n",
                stats_errors(s), s->first_error);
    if (s->unfinished > 0)
        fprintf(out, "\nno response    %10" PRIu64 " requests that were due\n",
                s->unfinished);
    if (r->undelivered > 0)
        fprintf(out, "\nnot delivered  %10" PRIu64 " messages that were due\n",
                r->undelivered);
    if (s->empty_claims > 0)
        fprintf(out, "\nempty claims   %10" PRIu64 "\n", s->empty_claims);
}

/* Names of operations contain no commas and no quotes. */
void
report_csv(const struct options *o, const struct result *r, FILE *out)
{
    struct report_row rows[REPORT_ROWS];
    size_t count = report_rows(&r->stats->normal, rows);

    fprintf(out,
            "label,scenario,batch,connections,rate,operation,requests,messages,errors,"
            "mean_us,p50_us,p90_us,p99_us,p99.9_us,max_us\n");
    for (size_t i = 0; i < count; i++) {
        fprintf(out,
                "%s,%s,%" PRId64 ",%" PRId64 ",%.0f,%s,%" PRIu64 ",%" PRIu64 ",%" PRIu64
                ",%.1f",
                report_label(o), scenario_names[o->scenario], o->batch, o->connections,
                o->rate, rows[i].name, rows[i].requests, rows[i].messages, rows[i].errors,
                histogram_mean(rows[i].latency) / 1000.0);
        for (size_t k = 0; k < PERCENTILES; k++)
            fprintf(out, ",%.1f", report_us(rows[i].latency, percentiles[k].percent));
        fputc('\n', out);
    }
}

/* ------------------------------------------------------------------ JSON */

/* Samples per point of the series: one point per second. */
#define SERIES_SPAN 10U

static void
json_text(const char *name, const char *text, FILE *out)
{
    fprintf(out, "  \"%s\": \"", name);
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;

        if (c == '"' || c == '\\')
            fprintf(out, "\\%c", c);
        else if (c < 0x20)
            fprintf(out, "\\u%04x", c);
        else
            fputc(c, out);
    }
    fprintf(out, "\",\n");
}

/* Writes the latencies and the end of an object. "curve" is [[percent, us], ...] for a
 * chart. */
static void
json_latency(const struct histogram *h, FILE *out)
{
    const char *comma = "";

    fprintf(out, ", \"mean_us\": %.1f", histogram_mean(h) / 1000.0);
    for (size_t i = 0; i < PERCENTILES; i++)
        fprintf(out, ", \"%s_us\": %.1f", percentiles[i].name,
                report_us(h, percentiles[i].percent));
    fprintf(out, ",\n      \"curve\": [");
    for (double left = 100; left > 0.0005 && left * (double)h->total >= 100;
         left *= 0.7) {
        fprintf(out, "%s[%.5f, %.1f]", comma, 100 - left, report_us(h, 100 - left));
        comma = ", ";
    }
    fprintf(out, "%s[100, %.1f]]}", comma, report_us(h, 100));
}

static void
json_delivery(const char *name, const struct op_stats *s, FILE *out)
{
    fprintf(out, "  \"%s\": {\"messages\": %" PRIu64, name, s->delivery.total);
    json_latency(&s->delivery, out);
    fprintf(out, ",\n");
}

static void
json_operations(const char *name, const struct op_stats *s, FILE *out)
{
    struct report_row rows[REPORT_ROWS];
    size_t count = report_rows(s, rows);

    fprintf(out, "  \"%s\": {", name);
    for (size_t i = 0; i < count && rows[i].requests > 0; i++) {
        fprintf(out,
                "%s\n    \"%s\": {\"requests\": %" PRIu64 ", \"messages\": %" PRIu64
                ", \"errors\": %" PRIu64,
                i == 0 ? "" : ",", rows[i].name, rows[i].requests, rows[i].messages,
                rows[i].errors);
        json_latency(rows[i].latency, out);
    }
    fprintf(out, "},\n");
}

static void
json_series(const struct series *s, FILE *out)
{
    const char *comma = "";

    fprintf(out, "  \"series\": [");
    for (size_t i = SERIES_SPAN; i < s->count; i += SERIES_SPAN) {
        fprintf(out, "%s\n    {\"at\": %.1f, \"requests\": %.0f, \"messages\": %.0f}",
                comma, s->samples[i].at, series_rate(s, i, SERIES_SPAN, false),
                series_rate(s, i, SERIES_SPAN, true));
        comma = ",";
    }
    fprintf(out, "]\n");
}

static void
json_totals(const struct options *o, const struct result *r, FILE *out)
{
    const struct stats *s = r->stats;

    fprintf(out, "  \"seconds\": %.3f,\n", r->seconds);
    fprintf(out, "  \"messages_per_second\": %.1f,\n", messages_per_second(r));
    fprintf(out, "  \"requests_per_second\": %.1f,\n",
            rate_of(r, stats_requests(r->stats)));
    fprintf(out, "  \"errors\": %" PRIu64 ",\n", stats_errors(s));
    fprintf(out, "  \"unfinished\": %" PRIu64 ",\n", s->unfinished);
    fprintf(out, "  \"empty_claims\": %" PRIu64 ",\n", s->empty_claims);
    fprintf(out, "  \"generator_cpu_seconds\": %.3f,\n", r->own_cpu_seconds);
    fprintf(out, "  \"accounted_seconds\": %.3f,\n", r->server_seconds);
    if (!r->has_server)
        return;
    fprintf(out, "  \"server_cpu_seconds\": %.3f,\n", r->server_cpu_seconds);
    fprintf(out, "  \"server_cpu_us_per_request\": %.3f,\n", server_cpu_us(r));
    if (o->backlog > 0)
        fprintf(out,
                "  \"resident_bytes_per_message\": %.1f,\n"
                "  \"resident_bytes\": %" PRIu64 ",\n  \"fill_seconds\": %.3f,\n",
                resident_per_message(o, r), r->resident_after, r->fill_seconds);
}

void
report_json(const struct options *o, const struct result *r, FILE *out)
{
    fprintf(out, "{\n");
    json_text("label", report_label(o), out);
    json_text("protocol", o->protocol_name, out);
    json_text("scenario", scenario_names[o->scenario], out);
    json_text("endpoint", o->endpoint, out);
    fprintf(out,
            "  \"batch\": %" PRId64 ",\n  \"connections\": %" PRId64
            ",\n  \"threads\": %" PRId64 ",\n  \"queues\": %" PRId64
            ",\n  \"backlog\": %" PRId64 ",\n  \"held\": %" PRId64
            ",\n  \"body_bytes\": %" PRId64 ",\n  \"rate\": %.1f,\n  \"wait\": %" PRId64
            ",\n",
            o->batch, o->connections, o->threads, o->queues, o->backlog, o->held,
            o->body_bytes, o->rate, o->wait);
    json_totals(o, r, out);
    json_operations("operations", &r->stats->normal, out);
    if (o->scenario == SCENARIO_DELIVERY) {
        fprintf(out,
                "  \"producers\": %" PRId64 ",\n  \"poll_ms\": %" PRId64
                ",\n  \"undelivered\": %" PRIu64 ",\n",
                o->producers, o->poll, r->undelivered);
        json_delivery("delivery", &r->stats->normal, out);
        if (r->storm_at > 0)
            json_delivery("storm_delivery", &r->stats->storm, out);
    }
    if (r->storm_at > 0) {
        fprintf(out, "  \"storm_at\": %.1f,\n", r->storm_at);
        json_operations("storm", &r->stats->storm, out);
    }
    json_series(&r->series, out);
    fprintf(out, "}\n");
}
