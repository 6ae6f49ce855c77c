/* claimd log: the records of a journal, a line each. */
#include "claimd/base/clock.h"
#include "main/command.h"

#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct filter {
    const char *queue, *project;
};

static bool
is_about(const struct filter *f, const struct store_queue *q)
{
    return q != NULL && (f->queue == NULL || bytes_equal_str(q->name, f->queue)) &&
           (f->project == NULL || bytes_equal_str(q->project, f->project));
}

/* Texts of clients on a line of ours. */
static void
print_text(struct bytes text)
{
    for (size_t i = 0; i < text.len; i++) {
        unsigned char c = (unsigned char)text.data[i];

        if (isgraph(c) && c != '\\')
            (void)putchar(c);
        else
            (void)printf("\\x%02x", c);
    }
}

static void
print_queue(const char *before, const struct store_queue *q, uint32_t tag)
{
    (void)printf("%s", before);
    if (q == NULL)
        (void)printf("?");
    else {
        print_text(q->project);
        (void)putchar('/');
        print_text(q->name);
    }
    (void)printf(" tag=%" PRIu32, tag);
}

static void
print_time(const char *before, int64_t ms)
{
    char text[CLOCK_TEXT_CAP];

    clock_text(ms, text);
    (void)printf("%s%s", before, text);
}

static void
print_messages(struct store_change *change)
{
    enum store_change_kind kind = change->kind;
    bool whole = kind == STORE_CHANGE_POST || kind == STORE_CHANGE_STATE ||
                 kind == STORE_CHANGE_MOVE;
    struct store_message_record m;

    if (change->count == 0)
        return;
    (void)printf(" messages=%zu:", change->count);
    while (change->next(change, &m)) {
        (void)printf(" %" PRIu64, m.number);
        if (kind == STORE_CHANGE_MOVE)
            (void)printf("<-%" PRIu64, m.old_number);
        if (whole)
            (void)printf("[%zu%s]", m.body.len, store_is_sealed(m.body) ? " sealed" : "");
        if (m.claim_count > 0)
            (void)printf("(count=%" PRIu32 ")", m.claim_count);
        if (m.claim != NULL)
            (void)printf("(claim=%" PRIu64 ")", store_id_number(&m.claim->id));
        if (m.original_id) {
            (void)printf("(id=");
            print_text(bytes_str(m.id.text));
            (void)putchar(')');
        }
    }
}

static void
print_change(struct store_change *change)
{
    switch (change->kind) {
    case STORE_CHANGE_QUEUE:
        (void)printf(" last_number=%" PRIu64 " last_claim=%" PRIu64, change->last_number,
                     change->last_claim);
        (void)printf(" metadata=%zu", change->metadata->json.len);
        break;
    case STORE_CHANGE_META:
        (void)printf(" metadata=%zu", change->metadata->json.len);
        break;
    case STORE_CHANGE_CLAIM:
    case STORE_CHANGE_RENEW:
    case STORE_CHANGE_RELEASE:
        (void)printf(" claim=%" PRIu64 " id=", store_id_number(&change->claim.id));
        print_text(bytes_str(change->claim.id.text));
        print_time(" ends=", change->claim.ends_ms);
        break;
    default:
        break;
    }
    print_messages(change);
}

static bool
print_entry(void *arg, const struct journal_entry *entry)
{
    const struct filter *f = arg;
    bool all = f->queue == NULL && f->project == NULL;

    if (!all && !is_about(f, entry->queue) && !is_about(f, entry->target))
        return true;
    (void)printf("%" PRIu64, entry->position);
    print_time(" ", entry->now_ms);
    (void)printf(" %s", entry->type);
    if (entry->change == NULL) {
        (void)printf(" %s", entry->mark);
        if (entry->since > 0)
            (void)printf(" since=%" PRIu64, entry->since);
    } else {
        print_queue(" ", entry->queue, entry->change->tag);
        if (entry->change->kind == STORE_CHANGE_MOVE)
            print_queue(" to ", entry->target, entry->change->target_tag);
        print_change(entry->change);
    }
    (void)putchar('\n');
    return !ferror(stdout); /* the reader has gone */
}

static bool
read_position(const char *text, uint64_t *out)
{
    char *end;

    *out = 0;
    if (text == NULL)
        return true;
    if (!isdigit((unsigned char)text[0]))
        return false;
    errno = 0;
    *out = strtoull(text, &end, 10);
    return *end == '\0' && errno == 0;
}

static int
run_log(const struct command_words *words)
{
    struct filter filter = {words->values[0], words->values[1]};
    const struct journal_eyes eyes = {
        .damage = command_tell_damage, .entry = print_entry, .arg = &filter};
    struct journal_findings found = {0};
    char error[JOURNAL_ERROR_CAP];
    struct command_journal j;
    uint64_t from;
    int status;

    if (!read_position(words->values[2], &from))
        return command_misused(&command_log,
                               "--from is \"%s\". It must be an LSN, which is a number",
                               words->values[2]);
    if (!command_journal_open(&j, words->places[0], NULL))
        status = COMMAND_FAILED;
    else if (journal_show(j.disk, j.in_use, from, &eyes, &found, error) != ST_OK)
        status = command_fails(COMMAND_FAILED, "%s: %s", j.path, error);
    else if (found.segments == 0 && found.damages == 0)
        status = command_fails(COMMAND_FAILED, "%s has no journal", j.path);
    else
        status = found.damages > 0 ? COMMAND_DAMAGED : COMMAND_GOOD;
    command_journal_close(&j);
    return status;
}

const struct command command_log = {
    .name = "log",
    .call = "log DIR",
    .summary = "Print a journal, record by record.",
    .usages = {"log DIR [--queue NAME] [--project ID] [--from LSN]"},
    .about = "Prints the records of the journal in DIR, one line each: LSN, time, type, "
             "project, queue, and the fields of the type. It prints lengths instead of "
             "message bodies. A claimd may write the journal meanwhile.",
    .options = {{"--queue", "NAME", "Print only records about queues with this name."},
                {"--project", "ID", "Print only records about queues of this project."},
                {"--from", "LSN", "Start at this LSN (log sequence number)."}},
    .example = "claimd log /var/lib/claimd --queue billing",
    .ends = {"All records were printed.", "The journal could not be read.",
             "The arguments are wrong.",
             "The journal is damaged. The command skipped the damaged parts."},
    .places = 1,
    .least = 1,
    .needs = "a directory",
    .run = run_log};
