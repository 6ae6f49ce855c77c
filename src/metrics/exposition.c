#include "claimd/metrics/exposition.h"

#include "claimd/json/string.h"

#include <math.h>
#include <stdio.h>

const char *
exposition_type(enum exposition_format format)
{
    return format == EXPOSITION_OPENMETRICS
               ? "application/openmetrics-text; version=1.0.0; charset=utf-8"
               : "text/plain; version=0.0.4; charset=utf-8";
}

void
exposition_begin(struct exposition *x, struct buf *out, enum exposition_format format)
{
    *x = (struct exposition){.out = out, .format = format};
}

void
exposition_collect(struct exposition *x, exposition_take *take, void *arg)
{
    *x = (struct exposition){.take = take, .take_arg = arg};
}

/* By kind of family: the ends of the names of samples, and the names of types. */
static const char *const suffixes[] = {[FAMILY_COUNTER] = "_total",
                                       [FAMILY_GAUGE] = "",
                                       [FAMILY_HISTOGRAM] = "",
                                       [FAMILY_INFO] = "_info"};
static const char *const prometheus_types[] = {[FAMILY_COUNTER] = "counter",
                                               [FAMILY_GAUGE] = "gauge",
                                               [FAMILY_HISTOGRAM] = "histogram",
                                               [FAMILY_INFO] = "gauge"};

static void
write_head(struct exposition *x, const char *keyword, const char *text)
{
    buf_printf(x->out, "# %s %s%s %s\n", keyword, x->family->name,
               x->format == EXPOSITION_OPENMETRICS ? "" : suffixes[x->family->kind],
               text);
}

void
exposition_family(struct exposition *x, const struct family *family)
{
    const bool open = x->format == EXPOSITION_OPENMETRICS;

    x->family = family;
    if (x->take != NULL)
        return;
    write_head(x, "HELP", family->help);
    write_head(x, "TYPE",
               open && family->kind == FAMILY_INFO ? "info"
                                                   : prometheus_types[family->kind]);
    if (open && family->unit != NULL)
        write_head(x, "UNIT", family->unit);
}

/*
 * Writes the value of a label with escapes. Invalid UTF-8 and control characters become
 * the text \xNN. Two different values never become the same text.
 */
static void
write_value(struct buf *out, struct bytes text)
{
    const unsigned char *at = (const unsigned char *)text.data, *end = at + text.len;

    while (at < end) {
        const unsigned char *behind = utf8_pass(at, end);

        /* A backslash before x also becomes \xNN, because it would look like that
         * text. */
        if (behind == NULL || (*at < ' ' && *at != '\n') || *at == 0x7f ||
            (*at == '\\' && behind < end && *behind == 'x'))
            buf_printf(out, "\\\\x%02x", *at++);
        else {
            if (*at == '"' || *at == '\\' || *at == '\n')
                buf_byte(out, '\\');
            buf_add(out, *at == '\n' ? (const unsigned char *)"n" : at,
                    (size_t)(behind - at));
            at = behind;
        }
    }
}

static void
write_label(struct buf *out, const char *name, struct bytes value)
{
    buf_str(out, name);
    buf_str(out, "=\"");
    write_value(out, value);
    buf_byte(out, '"');
}

/* Writes the name of a sample with its labels. bound: of a bucket; NULL: none. */
static void
write_name(struct exposition *x, const char *suffix, const struct label *labels,
           size_t count, const char *bound)
{
    struct buf *out = x->out;
    size_t written = 0;

    buf_str(out, x->family->name);
    buf_str(out, suffix);
    if (count == 0 && bound == NULL) {
        buf_byte(out, ' ');
        return;
    }
    for (; written < count; written++) {
        buf_byte(out, written == 0 ? '{' : ',');
        write_label(out, labels[written].name, labels[written].value);
    }
    if (bound != NULL) {
        buf_byte(out, written == 0 ? '{' : ',');
        write_label(out, "le", bytes_str(bound));
    }
    buf_str(out, "} ");
}

enum { NUMBER_CAP = 32 };

/* Formats a decimal such as "1.5", with at least one digit after the point. */
static const char *
decimal(char out[NUMBER_CAP], uint64_t value, unsigned digits)
{
    uint64_t unit = 1;
    size_t len;

    for (unsigned i = 0; i < digits; i++)
        unit *= 10;
    (void)snprintf(out, NUMBER_CAP, "%llu.%0*llu", (unsigned long long)(value / unit),
                   digits == 0 ? 1 : (int)digits, (unsigned long long)(value % unit));
    len = strlen(out);
    while (out[len - 1] == '0' && out[len - 2] != '.')
        out[--len] = '\0';
    return out;
}

static void
write_number(struct exposition *x, uint64_t value)
{
    buf_u64(x->out, value);
    buf_byte(x->out, '\n');
}

static double
scaled(uint64_t value, unsigned digits)
{
    double unit = 1;

    for (unsigned i = 0; i < digits; i++)
        unit *= 10;
    return (double)value / unit;
}

static void
give(struct exposition *x, const struct label *labels, size_t count, double bound,
     double value)
{
    const struct exposition_sample sample = {x->family, labels, count, bound, value};

    x->take(x->take_arg, &sample);
}

void
exposition_sample(struct exposition *x, const struct label *labels, size_t count,
                  uint64_t value)
{
    if (x->take != NULL) {
        give(x, labels, count, 0, (double)value);
        return;
    }
    write_name(x, suffixes[x->family->kind], labels, count, NULL);
    write_number(x, value);
}

void
exposition_decimal(struct exposition *x, const struct label *labels, size_t count,
                   uint64_t value, unsigned digits)
{
    char text[NUMBER_CAP];

    if (x->take != NULL) {
        give(x, labels, count, 0, scaled(value, digits));
        return;
    }
    write_name(x, suffixes[x->family->kind], labels, count, NULL);
    buf_str(x->out, decimal(text, value, digits));
    buf_byte(x->out, '\n');
}

void
exposition_buckets(struct exposition *x, const struct label *labels, size_t count,
                   const struct buckets *buckets, const struct bucket_bounds *bounds,
                   unsigned digits)
{
    char text[NUMBER_CAP];
    uint64_t total = 0;

    for (size_t i = 0; i <= bounds->count; i++) {
        total += counter_read(&buckets->counts[i]);
        if (x->take != NULL) {
            give(x, labels, count,
                 i == bounds->count ? INFINITY : scaled(bounds->at[i], digits),
                 (double)total);
            continue;
        }
        write_name(x, "_bucket", labels, count,
                   i == bounds->count ? "+Inf" : decimal(text, bounds->at[i], digits));
        write_number(x, total);
    }
    if (x->take != NULL)
        return;
    write_name(x, "_sum", labels, count, NULL);
    buf_str(x->out, decimal(text, counter_read(&buckets->sum), digits));
    buf_byte(x->out, '\n');
    write_name(x, "_count", labels, count, NULL);
    write_number(x, total);
}

void
metric_write(struct exposition *x, enum family_kind kind, const char *name,
             const char *unit, const char *help, uint64_t value, unsigned digits)
{
    const struct family family = {name, kind, unit, help};

    exposition_family(x, &family);
    if (digits == 0)
        exposition_sample(x, NULL, 0, value);
    else
        exposition_decimal(x, NULL, 0, value, digits);
    x->family = NULL; /* `family` ends here */
}

void
exposition_end(struct exposition *x)
{
    if (x->take == NULL && x->format == EXPOSITION_OPENMETRICS)
        buf_str(x->out, "# EOF\n");
}

void
metrics_add(struct metrics *m, struct metrics_source *source)
{
    source->next = NULL;
    if (m->last == NULL)
        m->first = source;
    else
        m->last->next = source;
    m->last = source;
}

void
metrics_write(const struct metrics *m, struct exposition *x)
{
    for (struct metrics_source *at = m->first; at != NULL; at = at->next)
        at->write(at, x);
}
