#include "api/testapi/handlers.h"

#include "claimd/testapi/testapi.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdio.h>

/* A number that belongs to a fault. */
struct amount {
    const char *name; /* NULL: there is none */
    int64_t least, most;
    size_t place; /* in struct fault */
    bool optional;
};

enum { AMOUNTS = 2 };

struct word {
    const char *text;
    enum fault_kind kind;
    int status;
    struct amount amounts[AMOUNTS];
};

enum { MS_MOST = 600000, BYTES_MOST = 65536, RETRY_MOST_S = 86400 };

#define PLACE(member) offsetof(struct fault, member)
#define RETRY                                                                            \
    {                                                                                    \
        {                                                                                \
            "retry_after", 0, RETRY_MOST_S, PLACE(retry_after_s), true                   \
        }                                                                                \
    }

static const struct word words[] = {
    {"latency", FAULT_LATENCY, 0, {{"ms", 1, MS_MOST, PLACE(ms), false}}},
    {"status=429", FAULT_STATUS, 429, RETRY},
    {"status=503", FAULT_STATUS, 503, RETRY},
    {"cut=before", FAULT_CUT_BEFORE, 0, {{0}}},
    {"cut=after", FAULT_CUT_AFTER, 0, {{0}}},
    {"half", FAULT_HALF, 0, {{0}}},
    {"slow",
     FAULT_SLOW,
     0,
     {{"bytes", 1, BYTES_MOST, PLACE(bytes), false},
      {"every_ms", 1, MS_MOST, PLACE(ms), false}}},
    {"end_claim", FAULT_END_CLAIM, 0, {{0}}},
    {"clock",
     FAULT_CLOCK,
     0,
     {{"seconds", 1, TESTAPI_STEP_MOST_S, PLACE(seconds), false}}},
};

enum { WORDS = sizeof(words) / sizeof(words[0]) };

static int64_t *
amount_at(struct fault *fault, const struct amount *amount)
{
    return (int64_t *)((char *)fault + amount->place);
}

static enum status
set_amount(const struct amount *amount, struct bytes text, struct fault *out,
           struct reason *why)
{
    int64_t value;

    if (!bytes_to_i64(text, &value) || value < amount->least || value > amount->most)
        return reason_give(
            why, ST_BAD_VALUE,
            "%s must be an integer between %" PRId64 " and %" PRId64 " (received \"%s\")",
            amount->name, amount->least, amount->most, received(text).text);
    *amount_at(out, amount) = value;
    return ST_OK;
}

/* Reads "; name=N; name=N". */
static enum status
read_amounts(const struct word *word, struct bytes rest, struct fault *out,
             struct reason *why)
{
    bool set[AMOUNTS] = {false};
    enum status st = ST_OK;

    while (bytes_present(rest) && st == ST_OK) {
        struct bytes value = bytes_trim(bytes_cut(&rest, ';'));
        struct bytes name = bytes_cut(&value, '=');
        size_t i = 0;

        while (i < AMOUNTS && (word->amounts[i].name == NULL || set[i] ||
                               !bytes_equal_str(name, word->amounts[i].name)))
            i++;
        if (i == AMOUNTS)
            return reason_give(why, ST_BAD_VALUE, "%s does not have the setting \"%s\"",
                               word->text, received(name).text);
        st = set_amount(&word->amounts[i], value, out, why);
        set[i] = true;
    }
    for (size_t i = 0; i < AMOUNTS && st == ST_OK; i++)
        if (word->amounts[i].name != NULL && !set[i] && !word->amounts[i].optional)
            st = reason_give(why, ST_BAD_VALUE, "%s requires %s=N", word->text,
                             word->amounts[i].name);
    return st;
}

enum status
fault_read(struct bytes text, struct fault *out, struct reason *why)
{
    struct bytes rest = text, first = bytes_trim(bytes_cut(&rest, ';'));
    struct fault fault = {.retry_after_s = -1};
    enum status st;

    for (size_t i = 0; i < WORDS; i++) {
        if (!bytes_equal_str(first, words[i].text))
            continue;
        fault.kind = words[i].kind;
        fault.status = words[i].status;
        st = read_amounts(&words[i], rest, &fault, why);
        if (st == ST_OK)
            *out = fault;
        return st;
    }
    return reason_give(why, ST_BAD_VALUE,
                       "a fault must be latency, status=429, status=503, cut=before, "
                       "cut=after, half, slow, end_claim or clock, with its settings "
                       "after a semicolon (received \"%s\")",
                       received(text).text);
}

void
fault_text(const struct fault *fault, char out[FAULT_TEXT_CAP])
{
    struct fault copy = *fault;
    size_t len = 0;

    for (size_t i = 0; i < WORDS; i++) {
        const struct word *word = &words[i];

        if (word->kind != fault->kind || word->status != fault->status)
            continue;
        len = (size_t)snprintf(out, FAULT_TEXT_CAP, "%s", word->text);
        for (size_t k = 0; k < AMOUNTS; k++) {
            const struct amount *amount = &word->amounts[k];
            int64_t value = amount->name == NULL ? -1 : *amount_at(&copy, amount);

            if (value >= 0)
                len += (size_t)snprintf(out + len, FAULT_TEXT_CAP - len, "; %s=%" PRId64,
                                        amount->name, value);
        }
        return;
    }
    out[0] = '\0';
}
