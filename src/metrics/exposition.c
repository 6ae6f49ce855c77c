#include "claimd/metrics/exposition.h"

#include "claimd/json/string.h"

#include <stdio.h>

static bool
is_open(const struct exposition *x)
{
    return x->format == EXPOSITION_OPENMETRICS;
}

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

/* What the names of samples end with besides the family's. */
static const char *
suffix_of(const struct family *family)
{
    switch (family->kind) {
    case FAMILY_COUNTER:
        return "_total";
    case FAMILY_INFO:
        return "_info";
    case FAMILY_GAUGE:
    case FAMILY_HISTOGRAM:
        break;
    }
    return "";
}

static const char *
kind_name(const struct exposition *x, const struct family *family)
{
    switch (family->kind) {
    case FAMILY_COUNTER:
        return "counter";
    case FAMILY_HISTOGRAM:
        return "histogram";
    case FAMILY_INFO:
        return is_open(x) ? "info" : "gauge";
    case FAMILY_GAUGE:
        break;
    }
    return "gauge";
}

static void
write_head(struct exposition *x, const char *keyword, const char *text)
{
    buf_printf(x->out, "# %s %s%s %s\n", keyword, x->family->name,
               is_open(x) ? "" : suffix_of(x->family), text);
}

void
exposition_family(struct exposition *x, const struct family *family)
{
    x->family = family;
    write_head(x, "HELP", family->help);
    write_head(x, "TYPE", kind_name(x, family));
    if (is_open(x) && family->unit != NULL)
        write_head(x, "UNIT", family->unit);
}

/*
 * Escaped. What is not UTF-8, or a control character, stands there as \xNN, as text; two
 * values never become the same.
 */
static void
write_value(struct buf *out, struct bytes text)
{
    const unsigned char *at = (const unsigned char *)text.data, *end = at + text.len;

    while (at < end) {
        const unsigned char *behind = utf8_pass(at, end);

        /* A backslash that would look like the begin of \xNN is written so, too. */
        if (behind == NULL || (*at < ' ' && *at != '\n') || *at == 0x7f ||
            (*at == '\\' && behind < end && *behind == 'x'))
            buf_printf(out, "\\\\x%02x", *at++);
        else if (*at == '\n')
            buf_str(out, "\\n"), at = behind;
        else {
            if (*at == '"' || *at == '\\')
                buf_byte(out, '\\');
            buf_add(out, at, (size_t)(behind - at));
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

/* The name of a sample with its labels, and perhaps the bound of a bucket. */
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

/* "1.5"; at least one digit behind the point. */
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

void
exposition_sample(struct exposition *x, const struct label *labels, size_t count,
                  uint64_t value)
{
    write_name(x, suffix_of(x->family), labels, count, NULL);
    write_number(x, value);
}

void
exposition_decimal(struct exposition *x, const struct label *labels, size_t count,
                   uint64_t value, unsigned digits)
{
    char text[NUMBER_CAP];

    write_name(x, suffix_of(x->family), labels, count, NULL);
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
        write_name(x, "_bucket", labels, count,
                   i == bounds->count ? "+Inf" : decimal(text, bounds->at[i], digits));
        write_number(x, total);
    }
    write_name(x, "_sum", labels, count, NULL);
    buf_str(x->out, decimal(text, counter_read(&buckets->sum), digits));
    buf_byte(x->out, '\n');
    write_name(x, "_count", labels, count, NULL);
    write_number(x, total);
}

void
exposition_single(struct exposition *x, const struct family *family, uint64_t value)
{
    exposition_family(x, family);
    exposition_sample(x, NULL, 0, value);
}

void
exposition_end(struct exposition *x)
{
    if (is_open(x))
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
