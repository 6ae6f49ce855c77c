#include "journal/bodies_check.h"

#include "journal/record.h"
#include "journal/segment.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct journal_bodies *
journal_bodies_of(struct store_runs *runs)
{
    return container_of(runs, struct journal_bodies, bodies.runs);
}

/* ------------------------------------------------------------------ damage */

void
bodies_check_flush(struct journal_bodies *bodies)
{
    struct lost_runs *lost = &bodies->damaged;
    char name[DISK_NAME_CAP], what[768];
    const struct journal_damage damage = {
        .name = name, .offset = lost->offset, .what = what, .from = 1, .to = 0};

    if (lost->messages == 0)
        return;
    body_file_name(name, lost->file);
    (void)snprintf(what, sizeof(what),
                   "%s, so %" PRIu64 " messages of %s with numbers from %" PRIu64
                   " to %" PRIu64 " are lost",
                   lost->flaw, lost->messages, lost->queue, lost->first, lost->last);
    if (bodies->report != NULL)
        bodies->report(bodies->arg, &damage, lost->messages);
    lost->messages = 0;
}

static void
note_damage(struct journal_bodies *bodies, const struct store_queue *queue,
            const struct store_run_record *run)
{
    struct lost_runs *lost = &bodies->damaged;
    char text[sizeof(lost->queue)];

    (void)snprintf(text, sizeof(text), "the %s %.*s of the project %.*s",
                   queue->kind == STORE_TOPIC ? "topic" : "queue", (int)queue->name.len,
                   queue->name.len == 0 ? "" : queue->name.data, (int)queue->project.len,
                   queue->project.len == 0 ? "" : queue->project.data);
    if (lost->messages > 0 &&
        (lost->file != run->place.file || strcmp(lost->flaw, bodies->bodies.flaw) != 0 ||
         strcmp(lost->queue, text) != 0))
        bodies_check_flush(bodies);
    if (lost->messages == 0) {
        lost->file = run->place.file;
        lost->offset = run->place.offset;
        lost->flaw = bodies->bodies.flaw;
        lost->first = run->first + (uint64_t)__builtin_ctzll(run->stored);
        memcpy(lost->queue, text, sizeof(text));
    }
    lost->last = run->first + 63 - (uint64_t)__builtin_clzll(run->stored);
    lost->messages += (uint64_t)__builtin_popcountll(run->stored);
}

/* ------------------------------------------------------------------ reading */

struct checking {
    const struct store_run_record *run;
    enum status (*done)(void *arg, struct store_change *state); /* NULL: none */
    void *arg;
};

/* True if the messages have those that the log names. `state` is a copy. */
static bool
has_messages(struct store_change *state, const struct store_run_record *run)
{
    struct store_message_record m;
    struct store_outline outline;
    const char *at = run->outlines.data;

    for (uint64_t rest = run->stored; rest != 0; rest &= rest - 1) {
        const uint64_t number = run->first + (uint64_t)__builtin_ctzll(rest);

        do
            if (!state->next(state, &m))
                return false;
        while (m.number < number);
        memcpy(&outline, at, sizeof(outline));
        at += sizeof(outline);
        if (m.number != number || m.body.len != outline.length)
            return false;
    }
    return true;
}

static enum status
check_messages(void *arg, struct store_change *state)
{
    const struct checking *checking = arg;
    struct record copy = *container_of(state, struct record, change);

    if (!has_messages(&copy.change, checking->run))
        return ST_CONFLICT;
    return checking->done == NULL ? ST_OK : checking->done(checking->arg, state);
}

enum status
bodies_check_read(struct journal_bodies *bodies, const struct store_queue *queue,
                  const struct store_run_record *run,
                  enum status (*done)(void *arg, struct store_change *state), void *arg)
{
    struct store_runs *runs = &bodies->bodies.runs;
    struct checking checking = {run, done, arg};
    enum status st = bodies->adopt(runs, queue, run);

    if (st == ST_OK) {
        st = runs->read(runs, &run->place, check_messages, &checking);
        if (st == ST_CONFLICT) {
            bodies->bodies.flaw = "has other messages than the log says";
            st = ST_BAD_VALUE;
        }
        if (st != ST_OK)
            runs->release(runs, run->place.file);
    }
    if (st != ST_BAD_VALUE)
        return st;
    note_damage(bodies, queue, run);
    return ST_NOT_FOUND;
}

static enum status
check_adopted(struct store_runs *runs, const struct store_queue *queue,
              const struct store_run_record *run)
{
    return bodies_check_read(journal_bodies_of(runs), queue, run, NULL, NULL);
}

enum status
journal_bodies_load(struct journal_bodies *bodies, char error[JOURNAL_ERROR_CAP])
{
    enum bodies_result result;
    const char *what = NULL;
    int code = 0;

    do
        result = bodies_load(&bodies->bodies, &what, &code);
    while (result == BODIES_DONE);
    if (result != BODIES_FAILED)
        return ST_OK;
    (void)snprintf(error, JOURNAL_ERROR_CAP, "%s", bodies->text);
    return ST_IO;
}

/* ------------------------------------------------------------------ life */

int
bodies_check_identify(struct journal_bodies *bodies, const uint8_t *journal)
{
    struct durable_lsn mark;
    int error = 0;

    if (journal == NULL) {
        error = durable_lsn_read(bodies->bodies.disk, &mark);
        journal = mark.journal;
    }
    if (error == 0)
        memcpy(bodies->journal, journal, NONCE_BYTES);
    return error;
}

enum status
journal_bodies_open(struct disk *disk, struct journal_bodies **out)
{
    struct journal_bodies *bodies = calloc(1, sizeof(*bodies));

    *out = bodies;
    if (bodies == NULL)
        return ST_NO_MEMORY;
    bodies_init(&bodies->bodies, disk, bodies->journal, &bodies->lost);
    bodies->bodies.damage = bodies->text;
    bodies->bodies.damage_cap = sizeof(bodies->text);
    bodies->adopt = bodies->bodies.runs.adopt;
    bodies->bodies.runs.adopt = check_adopted;
    return ST_OK;
}

struct store_runs *
journal_bodies_runs(struct journal_bodies *bodies)
{
    return &bodies->bodies.runs;
}

void
journal_bodies_close(struct journal_bodies *bodies)
{
    if (bodies == NULL)
        return;
    bodies_fini(&bodies->bodies);
    free(bodies);
}
