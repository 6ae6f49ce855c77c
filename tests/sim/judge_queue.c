/* The rules for queues: docs/api.md 7. */
#include "claimd/base/clock.h"
#include "sim/judge.h"

#include <stdio.h>

/* ---------------------------------------------------------------------- change */

/* Over the budget nothing is taken in. */
static bool
judge_admitted(struct judging *j)
{
    if (!j->tight)
        return true;
    return verdict_break(j->verdict, PROMISE_SAYS_SO,
                         "accepted although the memory budget is used up");
}

static bool
judge_put(struct judging *j)
{
    bool exists = judging_queue(j)->exists;

    if (!judge_code(j, exists ? 204 : 201,
                    exists ? PROMISE_NOTHING_LOST : PROMISE_CONTRACT))
        return false;
    if (exists)
        return true;
    if (!judge_admitted(j))
        return false;
    ledger_make_queue(j->ledger, j->op->place);
    judging_queue(j)->transient = j->op->transient;
    return true;
}

static bool
judge_settings(struct judging *j)
{
    const int64_t defaults[SETTING_COUNT] = {
        j->rules->post_bytes, j->rules->message_ttl_s, 0, STORE_UNSET, STORE_UNSET,
        STORE_UNSET};
    const struct known_queue *q = judging_queue(j);

    for (int i = 0; i < SETTING_COUNT; i++) {
        int64_t expected = q->settings[i] == STORE_UNSET ? defaults[i] : q->settings[i];

        if (j->response->settings[i] != expected)
            return verdict_break(
                j->verdict, PROMISE_NOTHING_LOST, "%s is %lld, but must be %lld",
                setting_member((enum setting)i), (long long)j->response->settings[i],
                (long long)expected);
    }
    return true;
}

static size_t
setting_len(enum setting setting, int64_t value)
{
    char text[32];

    if (setting == SETTING_DEAD_LETTER)
        return strlen(place_name((int)value));
    return (size_t)snprintf(text, sizeof(text), "%lld", (long long)value);
}

/* Does the document become longer? A shorter one is accepted also over the budget. */
static bool
grows(const struct judging *j)
{
    const enum setting setting = j->op->setting;
    const int64_t old = judging_queue(j)->settings[setting];

    return j->op->value != STORE_UNSET &&
           (old == STORE_UNSET ||
            setting_len(setting, j->op->value) > setting_len(setting, old));
}

/* Would messages expire before their delay is over, by the lifetimes that the patch
 * sets? */
static bool
patch_is_useless(const struct judging *j)
{
    const struct known_queue *q = judging_queue(j);
    int64_t ttl_s = q->settings[SETTING_TTL], delay_s = q->settings[SETTING_DELAY];

    if (j->op->setting != SETTING_TTL && j->op->setting != SETTING_DELAY)
        return false;
    *(j->op->setting == SETTING_TTL ? &ttl_s : &delay_s) = j->op->value;
    return delay_s != STORE_UNSET && delay_s > 0 &&
           delay_s >= (ttl_s == STORE_UNSET ? j->rules->message_ttl_s : ttl_s);
}

static bool
judge_patch(struct judging *j)
{
    struct known_queue *q = judging_queue(j);

    if (!q->exists)
        return judge_code(j, 404, PROMISE_CONTRACT);
    if (patch_is_useless(j))
        return judge_code(j, 400, PROMISE_CONTRACT);
    if (!judge_code(j, 200, PROMISE_CONTRACT) || (grows(j) && !judge_admitted(j)))
        return false;
    q->settings[j->op->setting] = j->op->value;
    return judge_settings(j);
}

static bool
judge_pause(struct judging *j)
{
    struct known_queue *q = judging_queue(j);

    if (!q->exists)
        return judge_code(j, 404, PROMISE_CONTRACT);
    if (!judge_code(j, 200, PROMISE_CONTRACT))
        return false;
    q->paused = (q->paused | j->op->pauses) & ~j->op->resumes;
    return j->response->paused == q->paused ||
           verdict_break(j->verdict, PROMISE_PAUSED, "%u is paused, but must be %u",
                         j->response->paused, q->paused);
}

/* ---------------------------------------------------------------------- show */

static bool
judge_end(struct judging *j, const struct seen_end *seen, const struct known_message *m)
{
    char created[CLOCK_TEXT_CAP];

    if (strcmp(seen->id.text, m->id.text) != 0)
        return verdict_break(j->verdict, PROMISE_OLDEST_FIRST,
                             "an end of the queue is %s, but must be %s", seen->id.text,
                             m->id.text);
    clock_text(m->posted_ms + j->ahead_ms, created);
    if (seen->age_s != (j->now_ms - m->posted_ms) / 1000 ||
        strcmp(seen->created, created) != 0)
        return verdict_break(j->verdict, PROMISE_ON_TIME,
                             "message %s was created %s and is %lld s old in the "
                             "statistics",
                             m->id.text, seen->created, (long long)seen->age_s);
    return true;
}

static bool
judge_stats(struct judging *j)
{
    const struct known_queue *q = judging_queue(j);
    const struct sim_response *a = j->response;
    int64_t held = 0;

    if (!judge_code(j, 200, PROMISE_CONTRACT))
        return false;
    for (size_t i = 0; i < q->count; i++)
        held += q->messages[i]->claim != NULL;
    if (a->total != (int64_t)q->count)
        return verdict_break(
            j->verdict,
            a->total < (int64_t)q->count ? PROMISE_NOTHING_LOST : PROMISE_CONTRACT,
            "%lld messages are counted, there are %zu", (long long)a->total, q->count);
    if (a->claimed != held || a->free != a->total - held)
        return verdict_break(j->verdict, PROMISE_ONE_HOLDER,
                             "%lld claimed and %lld free messages are counted, %lld of "
                             "%zu are claimed",
                             (long long)a->claimed, (long long)a->free, (long long)held,
                             q->count);
    if (q->count == 0)
        return a->oldest.id.text[0] == '\0' ||
               verdict_break(j->verdict, PROMISE_CONTRACT,
                             "an empty queue has an oldest");
    return judge_end(j, &a->oldest, q->messages[0]) &&
           judge_end(j, &a->newest, q->messages[q->count - 1]);
}

/* Names in byte order: "dead" "deader" "jobs" "mail". */
static bool
judge_list(struct judging *j)
{
    static const int sorted[NAMES] = {2, 3, 0, 1};
    int project = j->op->place / NAMES;
    size_t at = 0;

    if (!judge_code(j, 200, PROMISE_CONTRACT))
        return false;
    for (int i = 0; i < NAMES; i++) {
        int place = place_of(project, sorted[i]);
        bool listed = at < j->response->queue_count &&
                      bytes_equal_str(j->response->queues[at], place_name(place));

        if (listed != j->ledger->queues[place].exists)
            return verdict_break(
                j->verdict, listed ? PROMISE_CONTRACT : PROMISE_NOTHING_LOST,
                "queue %s is %slisted", place_name(place), listed ? "" : "not ");
        at += listed;
    }
    if (at != j->response->queue_count || j->response->queue_total != (int64_t)at)
        return verdict_break(j->verdict, PROMISE_CONTRACT,
                             "%zu queues listed, %lld counted, there are %zu",
                             j->response->queue_count,
                             (long long)j->response->queue_total, at);
    return true;
}

bool
judge_queue(struct judging *j)
{
    switch (j->op->kind) {
    case OP_QUEUE_PUT:
        return judge_put(j);
    case OP_QUEUE_PATCH:
        return judge_patch(j);
    case OP_QUEUE_PAUSE:
        return judge_pause(j);
    case OP_QUEUE_SHOW:
        return judge_code(j, 200, PROMISE_CONTRACT) && judge_settings(j);
    case OP_QUEUE_STATS:
        return judge_stats(j);
    case OP_QUEUE_LIST:
        return judge_list(j);
    default:
        break;
    }
    if (!judge_code(j, 204, PROMISE_CONTRACT))
        return false;
    if (j->op->kind == OP_QUEUE_PURGE)
        ledger_purge(j->ledger, j->op->place, j->op->purge);
    else
        ledger_delete_queue(j->ledger, j->op->place);
    return true;
}
