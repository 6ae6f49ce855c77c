#include "bench/report.h"
#include "bench/scenario.h"

#include <inttypes.h>

/* Samples are summed to this many, one a second: enough for a plot. */
#define SERIES_SPAN 10U

static void
json_text(const char *text, FILE *out)
{
    fputc('"', out);
    for (; *text != '\0'; text++) {
        unsigned char c = (unsigned char)*text;

        if (c == '"' || c == '\\')
            fprintf(out, "\\%c", c);
        else if (c < 0x20)
            fprintf(out, "\\u%04x", c);
        else
            fputc(c, out);
    }
    fputc('"', out);
}

static void
json_member(const char *name, const char *text, FILE *out)
{
    fprintf(out, "  \"%s\": ", name);
    json_text(text, out);
    fprintf(out, ",\n");
}

/* [[percent, us], ...], ever closer to 100: the line of the plot. */
static void
json_curve(const struct histogram *h, FILE *out)
{
    double left = 100;
    const char *comma = "";

    fprintf(out, "[");
    while (left > 0.0005 && left * (double)h->total >= 100) {
        fprintf(out, "%s[%.5f, %.1f]", comma, 100 - left, report_us(h, 100 - left));
        comma = ", ";
        left *= 0.7;
    }
    fprintf(out, "%s[100, %.1f]]", comma, report_us(h, 100));
}

/* The rest of an object. */
static void
json_latency(const struct histogram *h, FILE *out)
{
    static const char *const names[REPORT_PERCENTILES] = {"p50", "p90", "p99", "p99.9",
                                                          "max"};

    fprintf(out, ", \"mean_us\": %.1f", histogram_mean(h) / 1000.0);
    for (size_t i = 0; i < REPORT_PERCENTILES; i++)
        fprintf(out, ", \"%s_us\": %.1f", names[i], report_us(h, report_percentiles[i]));
    fprintf(out, ",\n      \"curve\": ");
    json_curve(h, out);
    fprintf(out, "}");
}

static void
json_op(const struct op_stats *s, enum op op, FILE *out)
{
    json_text(op_name(op), out);
    fprintf(out,
            ": {\"requests\": %" PRIu64 ", \"messages\": %" PRIu64
            ", \"errors\": %" PRIu64,
            s->requests[op], s->messages[op], s->errors[op]);
    json_latency(&s->latency[op], out);
}

static void
json_delivery(const char *name, const struct op_stats *s, FILE *out)
{
    fprintf(out, "  \"%s\": {\"messages\": %" PRIu64, name, s->delivery.total);
    json_latency(&s->delivery, out);
    fprintf(out, ",\n");
}

/* What only this scenario has. */
static void
json_deliveries(const struct options *o, const struct result *r, FILE *out)
{
    if (o->scenario != SCENARIO_DELIVERY)
        return;
    fprintf(out,
            "  \"producers\": %" PRId64 ",\n  \"poll_ms\": %" PRId64
            ",\n  \"undelivered\": %" PRIu64 ",\n",
            o->producers, o->poll, r->undelivered);
    json_delivery("delivery", &r->stats->calm, out);
    if (r->storm_at > 0)
        json_delivery("storm_delivery", &r->stats->storm, out);
}

static void
json_ops(const char *name, const struct op_stats *s, FILE *out)
{
    const char *comma = "";

    fprintf(out, "  \"%s\": {", name);
    for (int op = 0; op < OP_COUNT; op++) {
        if (s->requests[op] == 0)
            continue;
        fprintf(out, "%s\n    ", comma);
        json_op(s, (enum op)op, out);
        comma = ",";
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
json_figures(const struct options *o, const struct result *r, FILE *out)
{
    const struct stats *s = r->stats;

    fprintf(out, "  \"seconds\": %.3f,\n", r->seconds);
    fprintf(out, "  \"messages_per_second\": %.1f,\n", report_messages_per_second(r));
    fprintf(out, "  \"requests_per_second\": %.1f,\n", report_requests_per_second(r));
    fprintf(out, "  \"errors\": %" PRIu64 ",\n",
            op_stats_errors(&s->calm) + op_stats_errors(&s->storm));
    fprintf(out, "  \"unfinished\": %" PRIu64 ",\n", s->unfinished);
    fprintf(out, "  \"empty_claims\": %" PRIu64 ",\n", s->empty_claims);
    fprintf(out, "  \"generator_cpu_seconds\": %.3f,\n", r->own_cpu_seconds);
    fprintf(out, "  \"accounted_seconds\": %.3f,\n", r->server_seconds);
    if (!r->has_server)
        return;
    fprintf(out, "  \"server_cpu_seconds\": %.3f,\n", r->server_cpu_seconds);
    fprintf(out, "  \"server_cpu_us_per_request\": %.3f,\n", report_server_cpu_us(r));
    if (o->backlog > 0)
        fprintf(out,
                "  \"resident_bytes_per_message\": %.1f,\n"
                "  \"resident_bytes\": %" PRIu64 ",\n  \"fill_seconds\": %.3f,\n",
                report_resident_bytes(o, r), r->resident_after, r->fill_seconds);
}

void
report_json(const struct options *o, const struct result *r, FILE *out)
{
    fprintf(out, "{\n");
    json_member("label", report_label(o), out);
    json_member("protocol", o->protocol_name, out);
    json_member("scenario", scenario_name(o->scenario), out);
    json_member("endpoint", o->endpoint, out);
    fprintf(out,
            "  \"batch\": %" PRId64 ",\n  \"connections\": %" PRId64
            ",\n  \"threads\": %" PRId64 ",\n  \"queues\": %" PRId64
            ",\n  \"backlog\": %" PRId64 ",\n  \"held\": %" PRId64
            ",\n  \"body_bytes\": %" PRId64 ",\n  \"rate\": %.1f,\n  \"wait\": %" PRId64
            ",\n",
            o->batch, o->connections, o->threads, o->queues, o->backlog, o->held,
            o->body_bytes, o->rate, o->wait);
    json_figures(o, r, out);
    json_ops("operations", &r->stats->calm, out);
    json_deliveries(o, r, out);
    if (r->storm_at > 0) {
        fprintf(out, "  \"storm_at\": %.1f,\n", r->storm_at);
        json_ops("storm", &r->stats->storm, out);
    }
    json_series(&r->series, out);
    fprintf(out, "}\n");
}
