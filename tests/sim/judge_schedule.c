/* The rules for schedules: docs/api.md 31. */
#include "sim/judge.h"

#include <stdio.h>

/* ---------------------------------------------------------------------- messages */

/* Due times only grow, so that each posts once, whatever became of its message. But a new
 * schedule knows nothing of one with its name before. If the wall clock was set back, it
 * posts for due times of that one, or finds its messages. */
bool
judge_scheduled(struct ledger *l, struct bytes key, int64_t due_ms, int64_t now_ms,
                struct verdict *verdict)
{
    for (int i = 0; i < SCHEDULES; i++) {
        struct known_schedule *s = &l->schedules[i];
        const bool each = s->terms.overlap == SCHEDULE_OVERLAP_POST;
        char expected[64];
        int len = snprintf(expected, sizeof(expected), "schedule/runs/%d", i);

        if (each)
            (void)snprintf(expected + len, sizeof(expected) - (size_t)len, "/%lld",
                           (long long)(due_ms / 1000));
        if (!bytes_equal_str(key, expected))
            continue;
        if (!s->exists || s->terms.paused || due_ms > now_ms || due_ms < s->next_ms ||
            due_ms % (s->terms.every_s * 1000) != 0)
            return verdict_break(verdict, PROMISE_ON_TIME,
                                 "schedule %d posts for %lld, which is not due", i,
                                 (long long)due_ms);
        if (due_ms <= s->due_ms || (due_ms <= s->before_ms && !l->set_back))
            return verdict_break(verdict, PROMISE_DUE_ONCE,
                                 "schedule %d posts for %lld, and has posted for %lld", i,
                                 (long long)due_ms,
                                 (long long)(s->due_ms > 0 ? s->due_ms : s->before_ms));
        s->due_ms = due_ms;
        s->posted++;
        return true;
    }
    return verdict_break(verdict, PROMISE_CONTRACT, "no schedule posts under \"%.*s\"",
                         (int)key.len, key.data);
}

/* ---------------------------------------------------------------------- documents */

static int64_t
count_done(const struct seen_schedule *seen)
{
    return seen->posted + seen->missed + seen->skipped;
}

/* The first due time behind this. */
static int64_t
due_after(const struct schedule_terms *terms, int64_t at_ms)
{
    const int64_t step_ms = terms->every_s * 1000;

    return (at_ms / step_ms + 1) * step_ms;
}

static bool
same_recurrence(const struct schedule_terms *a, const struct schedule_terms *b)
{
    return a->every_s == b->every_s && a->cron == b->cron;
}

static bool
judge_terms(struct judging *j, const struct seen_schedule *seen,
            const struct schedule_terms *terms)
{
    return (same_recurrence(&seen->terms, terms) && seen->terms.missed == terms->missed &&
            seen->terms.overlap == terms->overlap &&
            seen->terms.paused == terms->paused) ||
           verdict_break(j->verdict, PROMISE_NOTHING_LOST,
                         "schedule %d is not as it was set", seen->number);
}

/* Each due time since the last look has posted, was missed or skipped, or comes next. Not
 * all are counted if very many have passed. */
static bool
judge_progress(struct judging *j, struct known_schedule *s,
               const struct seen_schedule *seen)
{
    const int64_t step_ms = s->terms.every_s * 1000, done = count_done(seen) - s->done;
    int64_t passed = 0;

    if ((s->unseen || j->ledger->set_back) && seen->posted > s->posted)
        s->posted = seen->posted;
    s->unseen = false;
    if (seen->posted != s->posted)
        return verdict_break(j->verdict, PROMISE_DUE_ONCE,
                             "schedule %d says it has posted %lld, but has %lld",
                             seen->number, (long long)seen->posted, (long long)s->posted);
    if ((s->next_ms == 0) != (seen->next_ms == 0) || seen->next_ms < s->next_ms ||
        seen->next_ms % step_ms != 0)
        return verdict_break(j->verdict, PROMISE_ON_TIME,
                             "schedule %d is due at %lld, but must be at %lld or later",
                             seen->number, (long long)seen->next_ms,
                             (long long)s->next_ms);
    passed = (seen->next_ms - s->next_ms) / step_ms;
    s->done += done;
    s->next_ms = seen->next_ms;
    return done == passed || (done < passed && done >= SCHEDULE_MISSED_MOST) ||
           verdict_break(j->verdict, PROMISE_DUE_ONCE,
                         "schedule %d has done %lld due times, but %lld have passed",
                         seen->number, (long long)done, (long long)passed);
}

static bool
judge_shown(struct judging *j, const struct seen_schedule *seen)
{
    struct known_schedule *s = &j->ledger->schedules[seen->number];

    if (!s->exists)
        return verdict_break(j->verdict, PROMISE_CONTRACT,
                             "schedule %d is shown, which does not exist", seen->number);
    return judge_terms(j, seen, &s->terms) && judge_progress(j, s, seen);
}

/* ---------------------------------------------------------------------- changes */

/* Is it the first due time behind now? If the wall clock was set back, those that are
 * done before count, too. */
static bool
is_next(const struct judging *j, const struct schedule_terms *terms, int64_t next_ms)
{
    const int64_t now_ms = j->now_ms + j->ahead_ms;
    const int64_t latest_ms = j->ledger->wall_ms > now_ms ? j->ledger->wall_ms : now_ms;

    if (terms->paused)
        return next_ms == 0;
    return next_ms >= due_after(terms, now_ms) &&
           next_ms <= due_after(terms, latest_ms) &&
           next_ms % (terms->every_s * 1000) == 0;
}

/* Due times count from now. Those that were due, and not done, are forgotten. */
static bool
judge_new_terms(struct judging *j, struct known_schedule *s,
                const struct seen_schedule *seen, const struct schedule_terms *terms)
{
    if (!judge_terms(j, seen, terms))
        return false;
    if (seen->posted != s->posted || count_done(seen) < s->done)
        return verdict_break(j->verdict, PROMISE_NOTHING_LOST,
                             "schedule %d has lost its progress", seen->number);
    if (!is_next(j, terms, seen->next_ms))
        return verdict_break(
            j->verdict, PROMISE_ON_TIME, "schedule %d is due at %lld, but begins at %lld",
            seen->number, (long long)seen->next_ms, (long long)(j->now_ms + j->ahead_ms));
    s->exists = true;
    s->terms = *terms;
    s->done = count_done(seen);
    s->next_ms = seen->next_ms;
    return true;
}

static bool
judge_set(struct judging *j, struct known_schedule *s)
{
    const struct schedule_terms *terms = &j->op->terms;
    const struct seen_schedule *seen = &j->response->schedules[0];

    if (!judge_code(j, s->exists ? 200 : 201,
                    s->exists ? PROMISE_NOTHING_LOST : PROMISE_CONTRACT))
        return false;
    if (s->exists && same_recurrence(&s->terms, terms) &&
        s->terms.paused == terms->paused) {
        s->terms = *terms;
        return judge_shown(j, seen);
    }
    if (!s->exists)
        *s = (struct known_schedule){
            .before_ms = s->due_ms > s->before_ms ? s->due_ms : s->before_ms};
    return judge_new_terms(j, s, seen, terms);
}

static bool
judge_pause(struct judging *j, struct known_schedule *s)
{
    const struct seen_schedule *seen = &j->response->schedules[0];
    struct schedule_terms terms = s->terms;

    if (!s->exists)
        return judge_code(j, 404, PROMISE_CONTRACT);
    if (!judge_code(j, 200, PROMISE_NOTHING_LOST))
        return false;
    if (terms.paused == j->op->terms.paused)
        return judge_shown(j, seen);
    terms.paused = j->op->terms.paused;
    return judge_new_terms(j, s, seen, &terms);
}

static bool
judge_list(struct judging *j)
{
    const struct sim_response *a = j->response;
    bool shown[SCHEDULES] = {false};

    if (!judge_code(j, 200, PROMISE_CONTRACT))
        return false;
    for (size_t i = 0; i < a->schedule_count; i++) {
        if (!judge_shown(j, &a->schedules[i]))
            return false;
        if (shown[a->schedules[i].number])
            return verdict_break(j->verdict, PROMISE_CONTRACT,
                                 "schedule %d is listed twice", a->schedules[i].number);
        shown[a->schedules[i].number] = true;
    }
    for (int i = 0; i < SCHEDULES; i++)
        if (j->ledger->schedules[i].exists && !shown[i] && !j->starved)
            return verdict_break(j->verdict, PROMISE_NOTHING_LOST,
                                 "schedule %d is not listed", i);
    return true;
}

bool
judge_schedule(struct judging *j)
{
    struct known_schedule *s = &j->ledger->schedules[j->op->schedule];

    switch (j->op->kind) {
    case OP_SCHEDULE_SET:
        return judge_set(j, s);
    case OP_SCHEDULE_PAUSE:
        return judge_pause(j, s);
    case OP_SCHEDULE_LIST:
        return judge_list(j);
    case OP_SCHEDULE_SHOW:
        if (!s->exists)
            return judge_code(j, 404, PROMISE_CONTRACT);
        return judge_code(j, 200, PROMISE_NOTHING_LOST) &&
               judge_shown(j, &j->response->schedules[0]);
    default:
        if (!judge_code(j, 204, PROMISE_CONTRACT))
            return false;
        s->exists = false;
        return true;
    }
}
