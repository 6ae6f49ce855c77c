#include "client/work_line.h"

#include "claimd/json/scan.h"
#include "claimd/json/string.h"

#include <stdio.h>

/* Bytes of a line that are shown in a reason. */
enum { SAMPLE_MOST = 200 };

/* The members, in the order of their values. */
enum { LINE_ID, LINE_RESULT, LINE_DELAY, LINE_REASON, LINE_MEMBERS };

static bool
kind_read(const struct json_scan_value *value, enum outcome_kind *kind)
{
    static const struct {
        const char *name;
        enum outcome_kind kind;
    } results[] = {{"delete", OUTCOME_DELETE},
                   {"release", OUTCOME_RETRY},
                   {"dead_letter", OUTCOME_DEAD_LETTER}};

    for (size_t i = 0; i < sizeof(results) / sizeof(results[0]); i++) {
        if (value->kind != SCAN_STRING ||
            !json_string_equals(json_scan_inside(value), bytes_str(results[i].name)))
            continue;
        *kind = results[i].kind;
        return true;
    }
    return false;
}

void
line_read(struct work_line *l, struct bytes line)
{
    static const char *const names[] = {"id", "result", "delay", "reason"};
    struct json_scan_value values[LINE_MEMBERS];
    const struct json_scan_value *delay = &values[LINE_DELAY],
                                 *reason = &values[LINE_REASON];

    *l = (struct work_line){.delay_s = -1};
    if (json_members_read(line, names, LINE_MEMBERS, values, NULL) != ST_OK) {
        l->fault = "the line is no JSON object";
        return;
    }
    if (values[LINE_ID].kind != SCAN_STRING) {
        l->fault = "it has no id";
        return;
    }
    l->id = json_scan_inside(&values[LINE_ID]);
    if (json_left_out(&values[LINE_RESULT]))
        l->fault = "it has no result";
    else if (!kind_read(&values[LINE_RESULT], &l->kind))
        l->fault = "the result must be delete, release or dead_letter";
    else if (!json_left_out(delay) &&
             (delay->kind != SCAN_INTEGER || json_scan_to_i64(delay) < 0 ||
              json_scan_to_i64(delay) > BACKOFF_MOST_S))
        l->fault = "the delay must be a whole number of seconds from 0 to 43200";
    else if (!json_left_out(reason) && reason->kind != SCAN_STRING)
        l->fault = "the reason must be a string";
    if (l->fault != NULL)
        return;
    if (!json_left_out(delay))
        l->delay_s = json_scan_to_i64(delay);
    if (!json_left_out(reason))
        l->reason = json_scan_inside(reason);
}

struct bytes
line_sample(struct bytes line)
{
    return bytes_of(line.data, line.len < SAMPLE_MOST ? line.len : SAMPLE_MOST);
}

void
line_describe(char what[WHAT_MOST + 1], const char *fault)
{
    (void)snprintf(what, WHAT_MOST + 1, "invalid response: %s", fault);
}

/*
 * Decodes a reason to `text`, as far as it fits. A reason that is longer is cut at its
 * end.
 */
static struct bytes
reason_decode(char text[REASON_MOST], struct bytes inside)
{
    size_t len = 0;

    while (inside.len > 0) {
        char character[4];
        const unsigned n = utf8_write(json_string_next(&inside), character);

        if (len + n > REASON_MOST)
            break;
        memcpy(text + len, character, n);
        len += n;
    }
    return bytes_of(text, len);
}

void
outcome_of_line(struct job_outcome *o, const struct job_attempt *a,
                const struct work_line *l, struct bytes line)
{
    char text[REASON_MOST];

    *o = (struct job_outcome){.kind = l->fault != NULL ? OUTCOME_RETRY : l->kind};
    if (o->kind == OUTCOME_RETRY)
        o->delay_s =
            l->delay_s >= 0 ? l->delay_s : backoff_s(a->backoff, a->number, a->random);
    if (l->fault != NULL) {
        line_describe(o->what, l->fault);
        reason_write(o->reason, o->what, line_sample(line));
        return;
    }
    if (o->kind == OUTCOME_DELETE)
        return;
    if (bytes_present(l->reason))
        reason_write(o->reason, NULL, reason_decode(text, l->reason));
    (void)snprintf(o->what, sizeof(o->what), "%.*s", WHAT_MOST,
                   o->reason[0] != '\0' ? o->reason : "the command has responded so");
}
