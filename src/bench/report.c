#include "bench/report.h"

#include "bench/scenario.h"

#include <inttypes.h>

const double report_percentiles[REPORT_PERCENTILES] = {50, 90, 99, 99.9, 100};

double
report_us(const struct histogram *h, double percent)
{
    return (double)histogram_percentile(h, percent) / 1000.0;
}

static double
per_second(const struct result *r, uint64_t count)
{
    return r->seconds > 0 ? (double)count / r->seconds : 0;
}

double
report_messages_per_second(const struct result *r)
{
    return per_second(r, r->stats->calm.messages[r->counted] +
                             r->stats->storm.messages[r->counted]);
}

double
report_requests_per_second(const struct result *r)
{
    return per_second(r, op_stats_requests(&r->stats->calm) +
                             op_stats_requests(&r->stats->storm));
}

double
report_server_cpu_us(const struct result *r)
{
    if (!r->has_server || r->server_requests == 0)
        return 0;
    return r->server_cpu_seconds * 1e6 / (double)r->server_requests;
}

double
report_resident_bytes(const struct options *o, const struct result *r)
{
    if (!r->has_server || o->backlog == 0 || r->resident_after < r->resident_before)
        return 0;
    return (double)(r->resident_after - r->resident_before) / (double)o->backlog;
}

const char *
report_label(const struct options *o)
{
    return o->label != NULL ? o->label : o->protocol_name;
}

static void
text_row(const char *name, uint64_t count, const struct histogram *h, FILE *out)
{
    fprintf(out, "%-14s %10" PRIu64, name, count);
    for (size_t i = 0; i < REPORT_PERCENTILES; i++)
        fprintf(out, " %*.0f", i + 1 == REPORT_PERCENTILES ? 9 : 8,
                report_us(h, report_percentiles[i]));
    fputc('\n', out);
}

static void
text_ops(const struct op_stats *s, const char *title, FILE *out)
{
    fprintf(out, "\n%-14s %10s %8s %8s %8s %8s %9s  us\n", title, "requests", "p50",
            "p90", "p99", "p99.9", "max");
    for (int op = 0; op < OP_COUNT; op++) {
        if (s->requests[op] > 0)
            text_row(op_name((enum op)op), s->requests[op], &s->latency[op], out);
    }
    if (s->delivery.total > 0)
        text_row(REPORT_DELIVERY, s->delivery.total, &s->delivery, out);
}

static void
text_delivery(const struct options *o, FILE *out)
{
    if (o->scenario != SCENARIO_DELIVERY)
        return;
    fprintf(out, "%" PRId64 " producers, %" PRId64 " workers, ", o->producers,
            o->connections - o->producers);
    if (o->wait > 0)
        fprintf(out, "wait %" PRId64 " s, ", o->wait);
    fprintf(out, "poll %" PRId64 " ms\n", o->poll);
}

static void
text_server(const struct options *o, const struct result *r, FILE *out)
{
    if (!r->has_server)
        return;
    fprintf(out, "server CPU     %10.2f s per million requests, %.0f %% busy\n",
            report_server_cpu_us(r),
            r->server_seconds > 0 ? 100 * r->server_cpu_seconds / r->server_seconds : 0);
    if (o->backlog > 0)
        fprintf(out, "resident       %10.1f bytes per message of %" PRId64 "\n",
                report_resident_bytes(o, r), o->body_bytes);
}

void
report_text(const struct options *o, const struct result *r, FILE *out)
{
    const struct stats *s = r->stats;

    fprintf(out,
            "%s: %s, batch %" PRId64 ", %" PRId64 " connections, %" PRId64
            " queues, backlog %" PRId64 ", ",
            report_label(o), scenario_name(o->scenario), o->batch, o->connections,
            o->queues, o->backlog);
    if (o->rate > 0)
        fprintf(out, "open loop at %.0f requests/s, ", o->rate);
    else
        fprintf(out, "closed loop, ");
    fprintf(out, "%.1f s\n", r->seconds);
    text_delivery(o, out);
    fputc('\n', out);
    fprintf(out, "messages       %10.0f per second\n", report_messages_per_second(r));
    fprintf(out, "requests       %10.0f per second\n", report_requests_per_second(r));
    text_server(o, r, out);
    fprintf(out, "generator CPU  %10.0f %% of one core\n",
            r->server_seconds > 0 ? 100 * r->own_cpu_seconds / r->server_seconds : 0);
    text_ops(&s->calm, "operation", out);
    if (r->storm_at > 0)
        text_ops(&s->storm, "in the storm", out);
    if (op_stats_errors(&s->calm) + op_stats_errors(&s->storm) > 0)
        fprintf(out, "\nrefused        %10" PRIu64 " (the first with status %d)\n",
                op_stats_errors(&s->calm) + op_stats_errors(&s->storm), s->first_error);
    if (s->unfinished > 0)
        fprintf(out, "\nno response    %10" PRIu64 " requests that were due\n",
                s->unfinished);
    if (r->undelivered > 0)
        fprintf(out, "\nnot delivered  %10" PRIu64 " messages that were due\n",
                r->undelivered);
    if (s->empty_claims > 0)
        fprintf(out, "\nempty claims   %10" PRIu64 "\n", s->empty_claims);
}

/* The rest of a row. */
static void
csv_latency(const struct histogram *h, FILE *out)
{
    fprintf(out, ",%.1f", histogram_mean(h) / 1000.0);
    for (size_t i = 0; i < REPORT_PERCENTILES; i++)
        fprintf(out, ",%.1f", report_us(h, report_percentiles[i]));
    fputc('\n', out);
}

static void
csv_row(const struct options *o, const char *name, uint64_t requests, uint64_t messages,
        uint64_t errors, FILE *out)
{
    fprintf(out, "%s,%s,%" PRId64 ",%" PRId64 ",%.0f,%s,%" PRIu64 ",%" PRIu64 ",%" PRIu64,
            report_label(o), scenario_name(o->scenario), o->batch, o->connections,
            o->rate, name, requests, messages, errors);
}

/* Names of operations have no commas or quotes: nothing to escape. */
void
report_csv(const struct options *o, const struct result *r, FILE *out)
{
    const struct op_stats *s = &r->stats->calm;

    fprintf(out,
            "label,scenario,batch,connections,rate,operation,requests,messages,errors,"
            "mean_us,p50_us,p90_us,p99_us,p99.9_us,max_us\n");
    for (int op = 0; op < OP_COUNT; op++) {
        if (s->requests[op] == 0)
            continue;
        csv_row(o, op_name((enum op)op), s->requests[op], s->messages[op], s->errors[op],
                out);
        csv_latency(&s->latency[op], out);
    }
    if (s->delivery.total > 0) {
        csv_row(o, REPORT_DELIVERY, 0, s->delivery.total, 0, out);
        csv_latency(&s->delivery, out);
    }
}
