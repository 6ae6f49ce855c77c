/*
 * alert_player: evaluates the rules of src/api/alert_rules.c on series that it reads, so
 * that tests/e2e/alerts_test.py can compare them with promtool.
 *
 *     alert_player rules     prints name, severity, minutes and summary of each rule
 *     alert_player           reads samples of /metrics, each minute behind a line
 *                            "minute", and prints the rules that fire in the last one
 */
#include "api/alert_rules.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

enum { QUEUES = 4, LABELS = 8, MINUTE_MS = 60000, RULES = 64 };

struct queue {
    char name[64];
    struct alert_queue now;
    struct store_sample samples[SAMPLER_SAMPLES];
    struct {
        double delivered, deleted, dead_lettered, unread, letters_expired;
    } before;
    int64_t since_ms[RULES]; /* 0: the condition does not hold */
    size_t count;
    bool known; /* it had a sample before */
    bool is_topic, subscribed, never_delivered;
};

static struct alert_minutes minutes;
static struct queue queues[QUEUES];
static int64_t server_since_ms[RULES];
static int64_t now_ms;

static struct queue *
queue_named(const char *name)
{
    size_t i = 0;

    while (queues[i].name[0] != '\0' && strcmp(queues[i].name, name) != 0)
        if (++i == QUEUES)
            abort();
    (void)snprintf(queues[i].name, sizeof(queues[i].name), "%s", name);
    return &queues[i];
}

static struct store_sample *
last_sample(struct queue *q)
{
    return &q->samples[q->count - 1];
}

static uint32_t
growth(const struct queue *q, double *before, double value)
{
    const double grown = q->known ? value - *before : 0;

    *before = value;
    return (uint32_t)grown;
}

/* Splits NAME{LABEL="VALUE",...} in place. Returns the number of labels. */
static size_t
split_labels(char *text, struct label labels[LABELS])
{
    char *at = strchr(text, '{');
    size_t count = 0;

    if (at == NULL)
        return 0;
    *at++ = '\0';
    while (*at != '}' && *at != '\0' && count < LABELS) {
        char *equals = strchr(at, '='), *end = strchr(equals + 2, '"');

        *equals = *end = '\0';
        labels[count++] = (struct label){at, bytes_str(equals + 2)};
        at = end[1] == ',' ? end + 2 : end + 1;
    }
    return count;
}

static struct bytes
label_named(const struct label *labels, size_t count, const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(labels[i].name, name) == 0)
            return labels[i].value;
    return BYTES_NONE;
}

/* A sample of the queues that have none of their own. False: it is not in the rules. */
static bool
rest_sample(const char *name, double value)
{
    static const struct {
        const char *name;
        enum alert_input input;
        double factor;
    } rows[] = {
        {"claimd_queue_messages_ready", ALERT_REST_READY, 1},
        {"claimd_queue_messages_ready", ALERT_REST_WAITING, 1},
        {"claimd_queue_dead_letters", ALERT_REST_WAITING, -1},
        {"claimd_queue_messages_dead_lettered_total", ALERT_REST_DEAD_LETTERED, 1},
        {"claimd_queue_messages_expired_unread_total", ALERT_REST_UNREAD, 1},
        {"claimd_queue_dead_letters_expired_total", ALERT_REST_LETTERS_EXPIRED, 1},
    };
    bool found = false;

    for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        if (strcmp(rows[i].name, name) == 0) {
            alert_minutes_add(&minutes, rows[i].input, rows[i].factor * value);
            found = true;
        }
    return found;
}

static void
queue_sample(const char *name, const struct label *labels, size_t count, double value)
{
    const struct bytes topic = label_named(labels, count, "topic");
    struct queue *q = queue_named(
        bytes_present(topic) ? topic.data : label_named(labels, count, "queue").data);
    struct store_sample *s = last_sample(q);

    q->is_topic = q->now.is_topic = bytes_present(topic);

    if (strcmp(name, "claimd_queue_messages_ready") == 0) {
        s->ready = (uint32_t)value;
        q->now.ready = (uint64_t)value;
    } else if (strcmp(name, "claimd_queue_oldest_ready_age_seconds") == 0) {
        q->now.ready_age_s = value;
    } else if (strcmp(name, "claimd_queue_oldest_claimed_age_seconds") == 0) {
        q->now.claim_age_s = value;
    } else if (strcmp(name, "claimd_queue_messages_deleted_total") == 0) {
        s->counts[STORE_QUEUE_DELETED] = growth(q, &q->before.deleted, value);
    } else if (strcmp(name, "claimd_queue_messages_delivered_total") == 0) {
        q->never_delivered = value == 0;
        s->counts[STORE_QUEUE_DELIVERED] = growth(q, &q->before.delivered, value);
    } else if (strcmp(name, "claimd_queue_messages_dead_lettered_total") == 0) {
        s->counts[STORE_QUEUE_DEAD_LETTERED] = growth(q, &q->before.dead_lettered, value);
    } else if (strcmp(name, "claimd_queue_messages_expired_unread_total") == 0) {
        s->unread = growth(q, &q->before.unread, value);
    } else if (strcmp(name, "claimd_queue_dead_letters_expired_total") == 0) {
        s->letters_expired = growth(q, &q->before.letters_expired, value);
    } else if (strcmp(name, "claimd_queue_bytes") == 0) {
        alert_minutes_add(&minutes, ALERT_BYTES, value);
    } else if (strcmp(name, "claimd_queue_unloaded_bytes") == 0) {
        alert_minutes_add(&minutes, ALERT_UNLOADED_BYTES, value);
    } else if (strcmp(name, "claimd_queue_messages") == 0) {
        alert_minutes_add(&minutes, ALERT_MESSAGES, value);
    } else if (strcmp(name, "claimd_queue_waiters") == 0) {
        q->now.waiters = (uint64_t)value;
    } else if (strcmp(name, "claimd_queue_subscriptions") == 0) {
        q->subscribed = value > 0;
    } else if (strcmp(name, "claimd_queue_claims") == 0) {
        q->now.claims = (uint64_t)value;
    } else if (strcmp(name, "claimd_queue_dead_letters") == 0) {
        q->now.dead_letters = (uint64_t)value;
    } else if (strcmp(name, "claimd_queue_paused") == 0) {
        if (bytes_equal_str(label_named(labels, count, "what"), "claims"))
            q->now.paused = s->paused = true;
    } else {
        (void)fprintf(stderr, "unknown metric %s\n", name);
        exit(1);
    }
}

/* Cuts an ending off. False: the text has none. */
static bool
cut_ending(char *text, const char *ending)
{
    const size_t len = strlen(text), cut = strlen(ending);

    if (len < cut || strcmp(text + len - cut, ending) != 0)
        return false;
    text[len - cut] = '\0';
    return true;
}

static void
play_sample(char *line)
{
    char *space = strrchr(line, ' ');
    const double value = strtod(space + 1, NULL);
    struct label labels[LABELS];
    struct family family = {.name = line, .kind = FAMILY_GAUGE};
    struct exposition_sample sample = {
        .family = &family, .labels = labels, .value = value};

    *space = '\0';
    sample.label_count = split_labels(line, labels);
    const struct bytes queue = label_named(labels, sample.label_count, "queue");

    if (bytes_present(queue) && queue.len == 0 && rest_sample(line, value))
        return;
    if (strncmp(line, "claimd_queue_", 13) == 0) {
        queue_sample(line, labels, sample.label_count, value);
        return;
    }
    if (cut_ending(line, "_bucket")) {
        const struct bytes bound = label_named(labels, sample.label_count, "le");

        family.kind = FAMILY_HISTOGRAM;
        sample.bound =
            bytes_equal_str(bound, "+Inf") ? INFINITY : strtod(bound.data, NULL);
    } else {
        (void)cut_ending(line, "_total");
    }
    alert_minutes_take(&minutes, &sample);
}

static void
begin_minute(void)
{
    now_ms += MINUTE_MS;
    alert_minutes_begin(&minutes, now_ms);
    for (size_t i = 0; i < QUEUES; i++) {
        struct queue *q = &queues[i];

        q->known = q->name[0] != '\0';
        q->now = (struct alert_queue){.is_topic = q->is_topic};
        q->subscribed = q->never_delivered = false;
        if (q->count == ALERT_MINUTES) /* as the sampler, which keeps an hour */
            memmove(q->samples, q->samples + 1, --q->count * sizeof(q->samples[0]));
        q->samples[q->count++] = (struct store_sample){.at_ms = now_ms};
    }
}

static bool
fires(const struct alert_rule *rule, bool holds, int64_t *since_ms)
{
    if (!holds)
        *since_ms = 0;
    else if (*since_ms == 0)
        *since_ms = now_ms;
    return holds && now_ms - *since_ms >= (int64_t)rule->for_minutes * MINUTE_MS;
}

static void
end_minute(bool print)
{
    double value;

    for (size_t r = 0; r < alert_rule_count; r++) {
        const struct alert_rule *rule = &alert_rules[r];

        if (rule->server != NULL &&
            fires(rule, rule->server(rule, &minutes, &value), &server_since_ms[r]) &&
            print)
            (void)printf("%s\n", rule->name);
        for (size_t i = 0; i < QUEUES && queues[i].name[0] != '\0'; i++) {
            struct queue *q = &queues[i];

            q->now.only_subscribers = q->subscribed && q->never_delivered;
            if (r == 0)
                alert_queue_read(&q->now, q->samples, q->count, now_ms);
            if (rule->queue != NULL &&
                fires(rule, rule->queue(&q->now, &value), &q->since_ms[r]) && print)
                (void)printf("%s %s\n", rule->name, q->name);
        }
    }
}

static void
print_rules(void)
{
    for (size_t i = 0; i < alert_rule_count; i++)
        (void)printf("%s %s %u %s\n", alert_rules[i].name, alert_rules[i].severity,
                     alert_rules[i].for_minutes, alert_rules[i].summary);
}

int
main(int argc, char **argv)
{
    char line[1024];

    if (argc > 1 && strcmp(argv[1], "rules") == 0) {
        print_rules();
        return 0;
    }
    while (fgets(line, sizeof(line), stdin) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        if (strcmp(line, "minute") != 0) {
            play_sample(line);
            continue;
        }
        if (now_ms > 0)
            end_minute(false);
        begin_minute();
    }
    end_minute(true);
    return 0;
}
