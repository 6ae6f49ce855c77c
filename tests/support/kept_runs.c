#include "support/kept_runs.h"

#include "journal/record.h"

#include <stdlib.h>
#include <string.h>

enum fate { WRITING, DURABLE, FAILED };

struct kept_run {
    uint8_t *bytes; /* owned: a record; NULL: released */
    size_t size;
    enum fate fate;
};

static struct kept_runs *
kept_of(struct store_runs *runs)
{
    return container_of(runs, struct kept_runs, runs);
}

static enum status
kept_write(struct store_runs *runs, struct store_change *state, size_t bytes,
           struct store_place *place, uint64_t *ticket)
{
    struct kept_runs *k = kept_of(runs);
    struct kept_run *run;

    if (random_once_in(&k->dice, 10))
        return ST_AGAIN;
    if (k->count == k->capacity) {
        k->capacity = 2 * k->capacity + 64;
        k->all = realloc(k->all, k->capacity * sizeof(*k->all));
    }
    run = &k->all[k->count++];
    *run = (struct kept_run){.bytes = malloc(record_bound(state->count, bytes))};
    ENSURE(run->bytes != NULL);
    run->size = record_write(run->bytes, state);
    k->live++;
    *place =
        (struct store_place){.file = (uint32_t)k->count, .length = (uint32_t)run->size};
    *ticket = k->count;
    return ST_OK;
}

static enum store_durability
kept_written(struct store_runs *runs, uint64_t ticket)
{
    struct kept_runs *k = kept_of(runs);
    struct kept_run *run = &k->all[ticket - 1];

    if (run->fate == WRITING && random_once_in(&k->dice, 2))
        return STORE_PENDING;
    if (run->fate == WRITING) {
        run->fate = random_once_in(&k->dice, 10) ? FAILED : DURABLE;
        k->refused += run->fate == FAILED;
    }
    return run->fate == FAILED ? STORE_LOST : STORE_DURABLE;
}

static void
kept_load(struct store_runs *runs, struct store_load *load)
{
    list_add_before(&kept_of(runs)->loads, &load->link);
}

static struct kept_run *
kept_at(struct kept_runs *k, const struct store_place *place)
{
    struct kept_run *run = &k->all[place->file - 1];

    ENSURE(place->file <= k->count && run->bytes != NULL && run->fate == DURABLE);
    return run;
}

static enum status
kept_read(struct store_runs *runs, const struct store_place *place,
          enum status (*done)(void *arg, struct store_change *state), void *arg)
{
    const struct kept_run *run = kept_at(kept_of(runs), place);
    struct record record;

    ENSURE(record_read(run->bytes, run->size, &record) == ST_OK);
    return done(arg, &record.change);
}

void
kept_runs_load(void *kept_runs)
{
    struct kept_runs *k = kept_runs;
    struct list *link;

    while ((link = list_pop(&k->loads)) != NULL) {
        struct store_load *load = container_of(link, struct store_load, link);
        const struct kept_run *run = kept_at(k, &load->place);
        struct record record;

        ENSURE(record_read(run->bytes, run->size, &record) == ST_OK);
        load->done(load, &record.change);
        k->loaded++;
    }
}

static void
kept_release(struct store_runs *runs, uint32_t file)
{
    struct kept_runs *k = kept_of(runs);
    struct kept_run *run = &k->all[file - 1];

    ENSURE(file <= k->count && run->bytes != NULL);
    free(run->bytes);
    run->bytes = NULL;
    k->live--;
}

static enum status
kept_adopt(struct store_runs *runs, const struct store_queue *queue,
           const struct store_run_record *run)
{
    (void)queue;
    return kept_of(runs)->all[run->place.file - 1].bytes == NULL ? ST_NOT_FOUND : ST_OK;
}

void
kept_runs_init(struct kept_runs *k, uint64_t seed)
{
    *k = (struct kept_runs){.runs = {.write = kept_write,
                                     .written = kept_written,
                                     .load = kept_load,
                                     .release = kept_release,
                                     .adopt = kept_adopt,
                                     .read = kept_read},
                            .dice = {seed}};
    list_init(&k->loads);
}

size_t
kept_runs_fini(struct kept_runs *k)
{
    for (size_t i = 0; i < k->count; i++)
        free(k->all[i].bytes);
    free(k->all);
    return k->live;
}
