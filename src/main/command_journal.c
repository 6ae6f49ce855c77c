/*
 * claimd verify and claimd backup: check a journal and save its intact records; copy a
 * journal.
 */
#include "claimd/base/plural.h"
#include "main/command.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <unistd.h>

/* ------------------------------------------------------------------ verify */

static void
print_segment(void *arg, const struct journal_segment *s)
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

/* Prints ": missing LSN 4 to 7", or nothing if no record is missing. */
static void
print_missing(const struct journal_damage *damage)
{
    if (damage->from < damage->to)
        (void)printf(": missing LSN %" PRIu64 " to %" PRIu64, damage->from, damage->to);
    else if (damage->from == damage->to)
        (void)printf(": missing LSN %" PRIu64, damage->from);
}

static void
print_damage(void *arg, const struct journal_damage *damage)
{
    (void)arg;
    (void)printf("damaged: %s at %" PRIu64 " %s", damage->name, damage->offset,
                 damage->what);
    print_missing(damage);
    (void)putchar('\n');
}

static int
print_verdict(const struct journal_findings *found)
{
    if (found->damages > 0) {
        (void)printf("the journal is damaged in %" PRIu64 " place%s, %" PRIu64
                     " record%s %s missing. ",
                     found->damages, plural_s(found->damages), found->lost,
                     plural_s(found->lost), plural_are(found->lost));
        if (found->lost_messages > 0)
            (void)printf("%" PRIu64 " message%s of body files %s lost. ",
                         found->lost_messages, plural_s(found->lost_messages),
                         plural_are(found->lost_messages));
        (void)printf("Restore a backup. To keep the intact "
                     "records, run 'claimd verify DIR --salvage OUT'.\n");
        return COMMAND_DAMAGED;
    }
    (void)printf("the journal is good: %" PRIu64 " segment%s, %" PRIu64
                 " record%s, up to LSN %" PRIu64 "%s\n",
                 found->segments, plural_s(found->segments), found->records,
                 plural_s(found->records), found->next_lsn == 0 ? 0 : found->next_lsn - 1,
                 found->torn_bytes == 0 ? ""
                                        : ". A crash left an unfinished frame behind it, "
                                          "which no response acknowledged");
    return COMMAND_GOOD;
}

static int
verify_journal(struct disk *d, const char *path)
{
    const struct journal_callbacks callbacks = {.segment = print_segment,
                                                .damage = print_damage};
    struct store_totals totals;
    struct command_replay r;
    int status = command_replay_open(&r, d, path, &callbacks);

    if (status == COMMAND_GOOD && r.found.replayed &&
        store_totals(r.store, STORE_AT(r.found.now_ms), &totals) == ST_OK)
        (void)printf("queues %" PRIu64 ", messages %" PRIu64 ", claimed %" PRIu64 "\n",
                     totals.queues, totals.messages, totals.claimed);
    command_replay_close(&r);
    if (status != COMMAND_GOOD)
        return status;
    if (r.found.segments == 0 && r.found.damages == 0)
        return command_fails(COMMAND_FAILED, "%s has no journal", path);
    return print_verdict(&r.found);
}

static void
print_salvage_damage(void *arg, const struct journal_damage *damage)
{
    (void)arg;
    if (damage->from > damage->to)
        return;
    (void)printf("salvage");
    print_missing(damage);
    (void)printf(" (%s at %" PRIu64 " %s)\n", damage->name, damage->offset, damage->what);
}

static int
salvage_journal(struct disk *from, const char *path)
{
    const struct journal_callbacks callbacks = {.damage = print_salvage_damage};
    struct journal_findings found = {0};
    struct disk *to = command_open_empty_dir(path);
    char error[JOURNAL_ERROR_CAP];
    int status = COMMAND_GOOD;

    if (to == NULL)
        return COMMAND_FAILED;
    (void)printf("\n");
    if (journal_salvage(from, to, 0, &callbacks, &found, error) != ST_OK)
        status = command_fails(COMMAND_FAILED, "%s: %s", path, error);
    else
        (void)printf("salvage: %s has what is left\n", path);
    if (status == COMMAND_GOOD && found.records > 0)
        status = verify_journal(to, path);
    disk_shut(to);
    return status;
}

static int
run_verify(const struct command_args *args)
{
    const char *out = args->values[0];
    struct command_journal j;
    int status = COMMAND_FAILED;

    if (command_journal_open(&j, args->words[0], "Verify a copy made by claimd backup"))
        status = verify_journal(j.disk, j.path);
    if (out != NULL && (status == COMMAND_GOOD || status == COMMAND_DAMAGED) &&
        salvage_journal(j.disk, out) != COMMAND_GOOD)
        status = COMMAND_FAILED;
    command_journal_close(&j);
    return status;
}

const struct command command_verify = {
    .about =
        "Reads the journal in DIR and reports whether it is complete: a line for each "
        "segment and for each damaged part, what a start would recover, and a verdict. "
        "It does not change the journal. No claimd may use the journal meanwhile.",
    .options = {{"--salvage", "OUT",
                 "Write the intact records to OUT, a new or empty directory, as a "
                 "journal that claimd can serve. The command reports what is missing."}},
    .example = "claimd verify /var/lib/claimd --salvage /var/lib/claimd-salvaged",
    .statuses = {"The journal is good. A torn last frame after a crash is no damage.",
                 "The journal cannot be read, or a process uses it.",
                 [COMMAND_DAMAGED] =
                     "The journal is damaged, even if --salvage saved a part."},
    .most = 1,
    .least = 1,
    .needs = "a directory",
    .run = run_verify};

/* ------------------------------------------------------------------ backup */

/* Descriptors of two directories: the source and the target of links. */
struct folders {
    int from, to;
};

/* A closed segment never changes, and a body file only grows. So both directories can
 * link them. */
static int
link_file(void *arg, const char *name)
{
    const struct folders *f = arg;

    return linkat(f->from, name, f->to, name, 0) == 0 ? 0 : errno;
}

static int
copy_journal(struct disk *from, struct disk *to, const struct command_args *args)
{
    struct folders folders = {open(args->words[0], O_RDONLY | O_DIRECTORY | O_CLOEXEC),
                              open(args->words[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    struct journal_linker linker = {.link = link_file, .arg = &folders};
    struct journal_backup_result made;
    char error[JOURNAL_ERROR_CAP];
    enum status st;

    if (folders.from < 0 || folders.to < 0)
        linker.link = NULL;
    st = journal_backup(from, to, &linker, &made, error);
    if (folders.from >= 0)
        (void)close(folders.from);
    if (folders.to >= 0)
        (void)close(folders.to);
    if (st != ST_OK)
        return command_fails(COMMAND_FAILED, "%s: %s", args->words[0], error);
    (void)printf("%s has %" PRIu64 " segment%s up to LSN %" PRIu64 ", %" PRIu64
                 " linked, %" PRIu64 " byte%s copied",
                 args->words[1], made.segments, plural_s(made.segments),
                 made.next_lsn == 0 ? 0 : made.next_lsn - 1, made.linked,
                 made.copied_bytes, plural_s(made.copied_bytes));
    if (made.bodies > 0)
        (void)printf(", %" PRIu64 " body file%s", made.bodies, plural_s(made.bodies));
    (void)putchar('\n');
    if (made.restarts > 0)
        (void)printf("The copy started again %u time%s, because claimd deleted "
                     "segments or body files during it.\n",
                     made.restarts, plural_s(made.restarts));
    return COMMAND_GOOD;
}

static int
run_backup(const struct command_args *args)
{
    struct disk *from = command_open_dir(args->words[0], false);
    struct disk *to = from == NULL ? NULL : command_open_empty_dir(args->words[1]);
    int status = COMMAND_FAILED;

    if (to != NULL)
        status = copy_journal(from, to, args);
    disk_shut(to);
    disk_shut(from);
    return status;
}

const struct command command_backup = {
    .about = "Copies the journal in DIR to OUT, a new or empty directory. A claimd may "
             "write DIR meanwhile. The copy contains every change that claimd "
             "acknowledged before the command started. On the same file system, finished "
             "segments are linked instead of copied. `claimd verify OUT` checks the "
             "copy, and `claimd --journal OUT` serves it.",
    .example = "claimd backup /var/lib/claimd /srv/claimd-backup",
    .statuses = {"The copy is complete.", "The copy failed."},
    .most = 2,
    .least = 2,
    .needs = "two directories",
    .run = run_backup};
