/* claimd log: prints the records of a journal as lines of JSON. Read journal_show()
 * (claimd/journal/inspect.h) next. docs/journal.md explains the records. */
#include "claimd/json/string.h"
#include "main/command.h"

struct printer {
    const char *queue, *project; /* print only records about these; NULL: any */
    struct buf line;
};

static bool
is_about(const struct printer *p, const struct store_queue *q)
{
    return q != NULL && (p->queue == NULL || bytes_equal_str(q->name, p->queue)) &&
           (p->project == NULL || bytes_equal_str(q->project, p->project));
}

static void
write_key(struct buf *out, const struct store_unique *unique)
{
    json_write_text(out, "unique", unique->key);
    if (unique->until_claimed)
        json_write_text(out, "unique_until", bytes_str("claimed"));
}

static void
write_messages(struct buf *out, struct store_change *change)
{
    const enum store_change_kind kind = change->kind;
    struct store_message_record m;
    bool any = false;

    while (change->count > 0 && change->next(change, &m)) {
        if (!any) {
            json_write_name(out, "messages");
            buf_byte(out, '[');
        }
        any = true;
        json_write_comma(out);
        buf_byte(out, '{');
        json_write_u64(out, "number", m.number);
        if (kind == STORE_CHANGE_MOVE)
            json_write_u64(out, "old_number", m.old_number);
        if (m.original_id)
            json_write_text(out, "id", bytes_str(m.id.text));
        if (kind == STORE_CHANGE_POST || kind == STORE_CHANGE_STATE ||
            kind == STORE_CHANGE_MOVE)
            json_write_u64(out, "bytes", m.body.len);
        if (store_is_sealed(m.body))
            json_write_flag(out, "sealed", true);
        if (m.claim_count > 0)
            json_write_u64(out, "claim_count", m.claim_count);
        if (m.claim != NULL)
            json_write_text(out, "claim", bytes_str(m.claim->id.text));
        if (m.details != NULL)
            write_key(out, &m.details->unique);
        buf_byte(out, '}');
    }
    if (any)
        buf_byte(out, ']');
}

static void
write_run(struct buf *out, const struct store_run_record *run)
{
    json_write_u64(out, "first", run->first + (uint64_t)__builtin_ctzll(run->stored));
    json_write_u64(out, "last", run->first + 63 - (uint64_t)__builtin_clzll(run->stored));
    json_write_u64(out, "count", (uint64_t)__builtin_popcountll(run->stored));
    json_write_u64(out, "file", run->place.file);
    json_write_u64(out, "offset", run->place.offset);
}

static void
write_change(struct buf *out, struct store_change *change)
{
    json_write_u64(out, "tag", change->tag);
    switch (change->kind) {
    case STORE_CHANGE_MOVE:
        json_write_u64(out, "target_tag", change->target_tag);
        break;
    case STORE_CHANGE_QUEUE:
        json_write_u64(out, "last_number", change->last_number);
        json_write_u64(out, "last_claim", change->last_claim);
        json_write_u64(out, "metadata_bytes", change->metadata->json.len);
        break;
    case STORE_CHANGE_RUN:
        write_run(out, change->run);
        break;
    case STORE_CHANGE_META:
        json_write_u64(out, "metadata_bytes", change->metadata->json.len);
        break;
    case STORE_CHANGE_CLAIM:
    case STORE_CHANGE_RENEW:
    case STORE_CHANGE_RELEASE:
        json_write_text(out, "claim", bytes_str(change->claim.id.text));
        json_write_time(out, "ends", change->claim.ends_ms);
        break;
    default:
        break;
    }
    write_messages(out, change);
}

/* False if there is no memory for the line, or standard output fails. */
static bool
print_line(struct buf *line)
{
    buf_str(line, "}\n");
    if (!line->failed)
        (void)fwrite(line->data, 1, line->len, stdout);
    return !line->failed && !ferror(stdout);
}

static bool
print_entry(void *arg, const struct journal_entry *entry)
{
    struct printer *p = arg;
    struct buf *out = &p->line;

    if ((p->queue != NULL || p->project != NULL) && !is_about(p, entry->queue) &&
        !is_about(p, entry->target))
        return true;
    buf_reset(out, SIZE_MAX);
    buf_byte(out, '{');
    json_write_u64(out, "lsn", entry->lsn);
    json_write_time(out, "at", entry->now_ms + entry->wall_ahead_ms);
    json_write_text(out, "type", bytes_str(entry->type));
    if (entry->change == NULL)
        json_write_text(out, "mark", bytes_str(entry->mark));
    if (entry->since > 0)
        json_write_u64(out, "since", entry->since);
    if (entry->file > 0)
        json_write_u64(out, "file", entry->file);
    if (entry->queue != NULL) {
        json_write_text(out, "project", entry->queue->project);
        json_write_text(out, entry->queue->kind == STORE_TOPIC ? "topic" : "queue",
                        entry->queue->name);
    }
    if (entry->target != NULL)
        json_write_text(out, "target", entry->target->name);
    if (entry->change != NULL)
        write_change(out, entry->change);
    return print_line(out);
}

static void
print_damage(void *arg, const struct journal_damage *damage)
{
    struct buf *out = &((struct printer *)arg)->line;

    buf_reset(out, SIZE_MAX);
    buf_byte(out, '{');
    json_write_text(out, "damaged", bytes_str(damage->name));
    json_write_u64(out, "offset", damage->offset);
    json_write_text(out, "what", bytes_str(damage->what));
    if (damage->from <= damage->to) {
        json_write_u64(out, "missing_from", damage->from);
        json_write_u64(out, "missing_to", damage->to);
    }
    (void)print_line(out);
}

static int
run_log(const struct command_args *args)
{
    struct printer p = {.queue = args->values[0], .project = args->values[1]};
    const struct journal_callbacks callbacks = {
        .damage = print_damage, .entry = print_entry, .arg = &p};
    struct journal_findings found = {0};
    char error[JOURNAL_ERROR_CAP];
    struct command_journal j;
    uint64_t from = 0;
    int status;

    if (args->values[2] != NULL && !bytes_to_u64(bytes_str(args->values[2]), &from))
        return command_misused("log",
                               "--from is \"%s\". It must be an LSN, which is a number",
                               args->values[2]);
    buf_init(&p.line, args->mem);
    if (!command_journal_open(&j, args->words[0], NULL))
        status = COMMAND_FAILED;
    else if (journal_show(j.disk, j.in_use, from, &callbacks, &found, error) != ST_OK)
        status = command_fails(COMMAND_FAILED, "%s: %s", j.path, error);
    else if (p.line.failed)
        status = command_fails(COMMAND_FAILED, "no memory for a record");
    else if (found.segments == 0 && found.damages == 0)
        status = command_fails(COMMAND_FAILED, "%s has no journal", j.path);
    else
        status = found.damages > 0 ? COMMAND_DAMAGED : COMMAND_GOOD;
    command_journal_close(&j);
    buf_fini(&p.line);
    return status;
}

const struct command command_log = {
    .usages = {"log DIR [--queue NAME] [--project ID] [--from LSN]"},
    .about = "Prints the records of the journal in DIR, one line of JSON each: LSN, "
             "time, type, project, queue, and the fields of the type. It prints lengths "
             "instead of message bodies. A claimd may write the journal meanwhile.",
    .options = {{"--queue", "NAME", "Print only records about queues with this name."},
                {"--project", "ID", "Print only records about queues of this project."},
                {"--from", "LSN", "Start at this LSN (log sequence number)."}},
    .example = "claimd log /var/lib/claimd --queue billing",
    .statuses = {"All records were printed.", "The journal could not be read.",
                 [COMMAND_DAMAGED] =
                     "The journal is damaged. The command skipped the damaged parts."},
    .most = 1,
    .least = 1,
    .needs = "a directory",
    .run = run_log};
