/* claimd verify: is a journal whole, and what can be saved of it? */
#include "claimd/engine/engine.h"
#include "main/command.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>

static void
tell_segment(void *arg, const struct journal_segment *s)
{
    (void)arg;
    (void)printf("%s", s->name);
    if (s->records == 0)
        (void)printf(" no records");
    else
        (void)printf(" LSN %" PRIu64 " to %" PRIu64, s->first_lsn, s->next_lsn - 1);
    (void)printf(", frames %" PRIu64 ", records %" PRIu64 ", bytes %" PRIu64 ", %s",
                 s->frames, s->records, s->bytes,
                 s->sealed  ? "sealed"
                 : !s->last ? "closed"
                            : "not sealed");
    if (s->torn_bytes > 0)
        (void)printf(", torn: the frame at %" PRIu64 " is not whole", s->end);
    (void)putchar('\n');
}

/* What a store has that was told all of it. */
static void
tell_totals(struct store *store, int64_t now_ms)
{
    struct store_visit visit = {.now_ms = now_ms};
    struct store_totals totals;

    if (store_totals(store, &visit, &totals) != ST_OK)
        return;
    (void)printf("queues %" PRIu64 ", messages %" PRIu64 ", claimed %" PRIu64 "\n",
                 totals.queues, totals.messages, totals.claimed);
}

static int
tell_verdict(const struct journal_findings *found)
{
    if (found->damages > 0) {
        (void)printf(
            "the journal is damaged in %" PRIu64 " places, %" PRIu64
            " records are missing. Restore a backup. To keep the intact records, run "
            "'claimd verify DIR --salvage OUT'.\n",
            found->damages, found->lost);
        return COMMAND_DAMAGED;
    }
    (void)printf("the journal is good: %" PRIu64 " segments, %" PRIu64
                 " records, up to LSN %" PRIu64 "%s\n",
                 found->segments, found->records,
                 found->next_lsn == 0 ? 0 : found->next_lsn - 1,
                 found->torn_bytes == 0 ? ""
                                        : ". A crash left an unfinished frame behind it, "
                                          "which no response acknowledged");
    return COMMAND_GOOD;
}

/* Why something was not read to its end. */
static int
tell_failure(const char *path, enum status st, const char *error)
{
    return command_fails(st == ST_CONFLICT ? COMMAND_DAMAGED : COMMAND_FAILED, "%s: %s",
                         path, error);
}

static int
verify(struct disk *d, const char *path)
{
    const struct journal_eyes eyes = {.segment = tell_segment,
                                      .damage = command_tell_damage};
    struct journal_findings found = {0};
    char error[JOURNAL_ERROR_CAP];
    struct command_store s;
    enum status st = command_store_open(&s);

    if (st != ST_OK)
        return command_fails(COMMAND_FAILED, "%s", status_text(st));
    found.now_ms = s.now_ms;
    st = journal_verify(d, engine_durable(s.store), &eyes, &found, error);
    if (st == ST_OK && found.replayed)
        tell_totals(s.store, s.now_ms);
    command_store_close(&s);
    if (st != ST_OK)
        return tell_failure(path, st, error);
    if (found.segments == 0 && found.damages == 0)
        return command_fails(COMMAND_FAILED, "%s has no journal", path);
    return tell_verdict(&found);
}

/* ------------------------------------------------------------------ salvage */

static void
tell_missing(void *arg, const struct journal_damage *damage)
{
    (void)arg;
    if (damage->from > damage->to)
        return;
    (void)printf("salvage");
    command_tell_missing(damage);
    (void)printf(" (%s at %" PRIu64 " %s)\n", damage->name, damage->offset, damage->what);
}

static int
salvage_to(struct disk *from, struct disk *to, const char *path)
{
    const struct journal_eyes eyes = {.damage = tell_missing};
    struct journal_findings found = {0};
    char error[JOURNAL_ERROR_CAP];
    enum status st = journal_salvage(from, to, 0, &eyes, &found, error);

    if (st != ST_OK)
        return tell_failure(path, st, error);
    (void)printf("salvage: %s has what is left\n", path);
    if (found.records == 0)
        return COMMAND_GOOD;
    return verify(to, path) == COMMAND_GOOD ? COMMAND_GOOD : COMMAND_FAILED;
}

static int
salvage(struct disk *from, const char *path)
{
    struct disk *to = command_open_empty(path);
    int status;

    if (to == NULL)
        return COMMAND_FAILED;
    (void)printf("\n");
    status = salvage_to(from, to, path);
    disk_shut(to);
    return status;
}

/* ------------------------------------------------------------------ the whole */

static int
run(const struct command_words *words)
{
    const char *path = words->places[0], *out = words->values[0];
    struct disk *d = command_open(path);
    struct disk_file *lock = NULL;
    int error, status;

    if (d == NULL)
        return COMMAND_FAILED;
    error = journal_hold(d, &lock);
    if (error == EWOULDBLOCK)
        status = command_fails(
            COMMAND_FAILED,
            "another process uses %s. Verify a copy made by claimd backup", path);
    else if (error != 0)
        status = command_fails(COMMAND_FAILED, "%s cannot be locked: %s", path,
                               strerror(error));
    else
        status = verify(d, path);
    if (out != NULL && (status == COMMAND_GOOD || status == COMMAND_DAMAGED) &&
        salvage(d, out) != COMMAND_GOOD)
        status = COMMAND_FAILED;
    disk_close(d, lock);
    disk_shut(d);
    return status;
}

const struct command command_verify = {
    .name = "verify",
    .call = "verify DIR [--salvage OUT]",
    .summary = "Check a journal, and save what is intact.",
    .usages = {"verify DIR [--salvage OUT]"},
    .about =
        "Reads the journal in DIR and reports whether it is complete: a line for each "
        "segment and for each damaged part, what a start would recover, and a verdict. "
        "It does not change the journal. No claimd may use the journal meanwhile.",
    .options =
        {{"--salvage", "OUT",
          "Write the intact records to OUT, a new or empty directory, as a journal that "
          "claimd can serve. The command reports what is missing."}},
    .example = "claimd verify /var/lib/claimd --salvage /var/lib/claimd-salvaged",
    .ends = {"The journal is good. A torn last frame after a crash is no damage.",
             "The journal cannot be read, or a process uses it.",
             "The arguments are wrong.",
             "The journal is damaged, even if --salvage saved a part."},
    .places = 1,
    .least = 1,
    .needs = "a directory",
    .run = run};
