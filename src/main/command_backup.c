/* claimd backup: a copy of a journal, also while a claimd writes it. */
#include "main/command.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <unistd.h>

/* Two directories: links are made from one to the other. */
struct folders {
    int from, to;
};

/* A segment that is closed is never written again: both may have it. */
static int
link_segment(void *arg, const char *name)
{
    const struct folders *f = arg;

    return linkat(f->from, name, f->to, name, 0) == 0 ? 0 : errno;
}

static void
close_folder(int fd)
{
    if (fd >= 0)
        (void)close(fd);
}

static int
tell(const struct command_words *words, const struct journal_backup_figures *made)
{
    (void)printf("%s has %" PRIu64 " segments up to LSN %" PRIu64 ", %" PRIu64
                 " linked, %" PRIu64 " bytes copied\n",
                 words->places[1], made->segments,
                 made->next_lsn == 0 ? 0 : made->next_lsn - 1, made->linked,
                 made->copied_bytes);
    if (made->restarts > 0)
        (void)printf(
            "The copy started again %u times, because checkpoints deleted segments "
            "during it.\n",
            made->restarts);
    return COMMAND_GOOD;
}

static int
copy(struct disk *from, struct disk *to, const struct command_words *words)
{
    struct folders folders = {open(words->places[0], O_RDONLY | O_DIRECTORY | O_CLOEXEC),
                              open(words->places[1], O_RDONLY | O_DIRECTORY | O_CLOEXEC)};
    struct journal_linker linker = {.link = link_segment, .arg = &folders};
    struct journal_backup_figures made;
    char error[JOURNAL_ERROR_CAP];
    enum status st;

    if (folders.from < 0 || folders.to < 0)
        linker.link = NULL;
    st = journal_backup(from, to, &linker, &made, error);
    close_folder(folders.from);
    close_folder(folders.to);
    return st == ST_OK ? tell(words, &made)
                       : command_fails(COMMAND_FAILED, "%s: %s", words->places[0], error);
}

static int
run(const struct command_words *words)
{
    struct disk *from = command_open(words->places[0]);
    struct disk *to = from == NULL ? NULL : command_open_empty(words->places[1]);
    int status = COMMAND_FAILED;

    if (to != NULL)
        status = copy(from, to, words);
    disk_shut(to);
    disk_shut(from);
    return status;
}

const struct command command_backup = {
    .name = "backup",
    .call = "backup DIR OUT",
    .summary = "Copy a journal, even while claimd writes it.",
    .usages = {"backup DIR OUT"},
    .about =
        "Copies the journal in DIR to OUT, a new or empty directory. A claimd may write "
        "DIR "
        "meanwhile. The copy contains every change that claimd acknowledged before the "
        "command started. On the same file system, finished segments are linked instead "
        "of "
        "copied. `claimd verify OUT` checks the copy, and `claimd --journal OUT` serves "
        "it.",
    .example = "claimd backup /var/lib/claimd /srv/claimd-backup",
    .ends = {"The copy is complete.", "The copy failed.", "The arguments are wrong."},
    .places = 2,
    .least = 2,
    .needs = "two directories",
    .run = run};
