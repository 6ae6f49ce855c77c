/* Reads a journal without using it: verify, show, salvage (claimd/journal/inspect.h). */
#include "claimd/journal/inspect.h"

#include "claimd/base/hash.h"
#include "claimd/ds/hashmap.h"
#include "journal/bodies_check.h"
#include "journal/journal_private.h"
#include "journal/reader.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ------------------------------------------------------------------ names of queues */

/* The names of the queues of the records, by their tags. O(1) per record. */
struct queue_names {
    struct mem *mem; /* owned */
    struct hashmap by_tag, by_name;
};

/* A queue that the log has named, or deleted. */
struct named_queue {
    struct hashnode by_tag, by_name; /* by_name: only of the last queue of a name */
    uint32_t tag;
    bool named, gone, replaced;
    struct store_queue where; /* points to text */
    char text[];
};

static enum status
queue_names_init(struct queue_names *queue_names)
{
    queue_names->mem = mem_new(0);
    if (queue_names->mem == NULL)
        return ST_NO_MEMORY;
    hashmap_init(&queue_names->by_tag, queue_names->mem);
    hashmap_init(&queue_names->by_name, queue_names->mem);
    return ST_OK;
}

static void
queue_names_fini(struct queue_names *queue_names)
{
    struct hashnode *node, *next;

    if (queue_names->mem == NULL)
        return;
    for (node = hashmap_walk(&queue_names->by_tag, NULL); node != NULL; node = next) {
        next = hashmap_walk(&queue_names->by_tag, node);
        hashmap_remove(&queue_names->by_tag, node);
        mem_free(queue_names->mem, container_of(node, struct named_queue, by_tag));
    }
    hashmap_fini(&queue_names->by_tag);
    hashmap_fini(&queue_names->by_name);
    mem_destroy(queue_names->mem);
    queue_names->mem = NULL;
}

static bool
has_tag(const struct hashnode *node, const void *key)
{
    return container_of(node, const struct named_queue, by_tag)->tag ==
           *(const uint32_t *)key;
}

static bool
has_name(const struct hashnode *node, const void *key)
{
    return store_queue_equal(
        &container_of(node, const struct named_queue, by_name)->where, key);
}

static struct named_queue *
named_queue_find(const struct queue_names *queue_names, uint32_t tag)
{
    struct hashnode *node =
        hashmap_find(&queue_names->by_tag, hash_mix(tag), has_tag, &tag);

    return node == NULL ? NULL : container_of(node, struct named_queue, by_tag);
}

static enum status
named_queue_add(struct queue_names *queue_names, uint32_t tag,
                const struct store_queue *q, struct named_queue **out)
{
    size_t project = q == NULL ? 0 : q->project.len, name = q == NULL ? 0 : q->name.len;
    struct named_queue *l;

    if (hashmap_reserve(&queue_names->by_tag, 1) != ST_OK ||
        hashmap_reserve(&queue_names->by_name, 1) != ST_OK)
        return ST_NO_MEMORY;
    l = mem_alloc(queue_names->mem, sizeof(*l) + project + name);
    if (l == NULL)
        return ST_NO_MEMORY;
    *l = (struct named_queue){.tag = tag, .named = q != NULL};
    if (q != NULL) {
        char *to = l->text;

        l->where.kind = q->kind;
        l->where.project = bytes_copy_to(&to, q->project);
        l->where.name = bytes_copy_to(&to, q->name);
    }
    hashmap_insert(&queue_names->by_tag, &l->by_tag, hash_mix(tag));
    *out = l;
    return ST_OK;
}

/* Makes this queue the last one of its name. */
static void
set_last_of_name(struct queue_names *queue_names, struct named_queue *l)
{
    /* The clients that chose the names do not run this command: no secret is needed. */
    static const struct hash_key key = {1, 2};
    uint64_t hash =
        hash_mix(hash_bytes(&key, l->where.project)) ^ hash_bytes(&key, l->where.name);
    struct hashnode *node =
        hashmap_find(&queue_names->by_name, hash, has_name, &l->where);
    struct named_queue *before;

    if (node != NULL) {
        before = container_of(node, struct named_queue, by_name);
        before->replaced = !before->gone;
        hashmap_remove(&queue_names->by_name, node);
    }
    hashmap_insert(&queue_names->by_name, &l->by_name, hash);
}

/* Updates the names by a record. ST_NO_MEMORY. */
static enum status
queue_names_update(struct queue_names *queue_names, const struct record *record)
{
    const bool gone = record->type == STORE_CHANGE_QUEUE_GONE;
    const struct store_change *change = &record->change;
    enum status st = ST_OK;
    struct named_queue *l;

    if (!gone && record->type != STORE_CHANGE_QUEUE)
        return ST_OK;
    l = named_queue_find(queue_names, change->tag);
    if (l == NULL) { /* else a checkpoint has named it */
        st = named_queue_add(queue_names, change->tag, gone ? NULL : &change->queue, &l);
        if (st == ST_OK && !gone)
            set_last_of_name(queue_names, l);
    }
    if (st == ST_OK && gone)
        l->gone = true;
    return st;
}

/* The name of the queue with this tag, also if it was deleted; NULL: unknown. */
static const struct store_queue *
queue_names_get(const struct queue_names *queue_names, uint32_t tag)
{
    const struct named_queue *l = named_queue_find(queue_names, tag);

    return l == NULL || !l->named ? NULL : &l->where;
}

/* ------------------------------------------------------------------ looking */

int
journal_lock(struct disk *disk, struct disk_file **out)
{
    struct disk_file *f = NULL;
    int error = disk_file_open(disk, JOURNAL_LOCK, DISK_READ, &f);

    *out = NULL;
    disk_close(disk, f);
    if (error == 0)
        error = disk_lock(disk, JOURNAL_LOCK, out);
    return error == ENOENT || error == EROFS ? 0 : error;
}

struct inspection {
    const struct journal_callbacks *callbacks;
    struct store *store; /* NULL: none, or not any more */
    bool broken;         /* the store refused a record */
    uint64_t from;
    struct queue_names queue_names;
    struct segments segments;
    struct reader reader;
    struct journal_bodies *bodies; /* NULL: they are not read */

    /* Of a salvage: */
    struct segments to;
    bool quiet;                       /* during the first pass */
    uint64_t unplaced_from, unplaced; /* a run of records without a queue */
    struct hashmap runs;              /* struct saved_run, owned; of queue_names.mem */
    uint8_t *frame;                   /* owned: of FRAME_BYTES_MAX bytes */
    struct frame next;
};

static void
report_segment(void *arg, const struct journal_segment *segment)
{
    const struct inspection *l = arg;

    if (l->callbacks->segment != NULL)
        l->callbacks->segment(l->callbacks->arg, segment);
}

static void
report_damage(void *arg, const struct journal_damage *damage)
{
    const struct inspection *l = arg;

    if (!l->quiet && l->callbacks->damage != NULL)
        l->callbacks->damage(l->callbacks->arg, damage);
}

static void
report_lost_messages(void *arg, const struct journal_damage *damage, uint64_t messages)
{
    struct inspection *l = arg;

    l->reader.found.damages++;
    l->reader.found.lost_messages += messages;
    report_damage(l, damage);
}

/* After the first reading: the body files can be read. */
static enum status
identify_bodies(struct inspection *l)
{
    int error =
        bodies_check_identify(l->bodies, l->reader.known ? l->segments.journal : NULL);
    char text[ERRNO_TEXT_CAP];

    l->bodies->report = report_lost_messages;
    l->bodies->arg = l;
    return error == 0 ? ST_OK
                      : reader_fail(&l->reader, ST_IO,
                                    "the journal cannot read " DURABLE_LSN_NAME ": %s",
                                    disk_error_text(error, text));
}

static enum status
note_file_gone(struct inspection *l, const struct record *record)
{
    return record->type == RECORD_MARK && record->mark.what == MARK_FILE_GONE
               ? bodies_note_gone(&l->bodies->bodies, (uint32_t)record->mark.since)
               : ST_OK;
}

static enum status
inspect_begin(struct inspection *l, struct disk *disk, char error[JOURNAL_ERROR_CAP])
{
    segments_init(&l->segments, disk, 0);
    l->segments.read_only = true;
    l->reader.segments = &l->segments;
    l->reader.test_api = true; /* for reading only */
    l->reader.error = error;
    l->reader.segment = report_segment;
    l->reader.damage = report_damage;
    l->reader.arg = l;
    if (queue_names_init(&l->queue_names) != ST_OK)
        return reader_fail(&l->reader, ST_NO_MEMORY, "out of memory");
    return reader_list(&l->reader);
}

static void
inspect_end(struct inspection *l)
{
    reader_fini(&l->reader);
    queue_names_fini(&l->queue_names);
    segments_fini(&l->segments);
}

static enum status
replay_record(void *arg, struct reader *reader, struct record *record)
{
    struct inspection *l = arg;
    enum status st = ST_OK;

    (void)reader;
    if (record->type == RECORD_MARK) {
        if (!l->broken)
            store_replay_marks(l->store, &record->mark.used);
        return note_file_gone(l, record);
    }
    if (!l->broken)
        st = store_replay(l->store, &record->change);
    l->broken = l->broken || st != ST_OK;
    return st;
}

static void
check_beginning(struct inspection *l)
{
    uint64_t first = l->reader.begins;
    char name[DISK_NAME_CAP];
    struct journal_damage damage = {
        .name = name,
        .what = "is the oldest segment, but the journal needs earlier ones",
        .from = 1,
        .to = first - 1};

    if (!reader_lacks_beginning(&l->reader) || l->reader.next_lsn == 0)
        return;
    segment_name(name, first);
    l->reader.found.damages++;
    l->reader.found.lost += first - 1;
    report_damage(l, &damage);
}

/* Ends the replay. ST_CONFLICT: the records contradict each other. */
static enum status
end_replay(struct inspection *l)
{
    struct journal_findings *found = &l->reader.found;
    enum status st;

    found->now_ms -= found->wall_ahead_ms;
    if (found->now_ms < found->last_ms)
        found->now_ms = found->last_ms;
    st = l->broken ? ST_BAD_VALUE : store_replay_end(l->store, found->now_ms);
    bodies_check_flush(l->bodies);
    found->replayed = st == ST_OK;
    if (st == ST_BAD_VALUE && found->damages == 0)
        return reader_fail(&l->reader, ST_CONFLICT,
                           "the journal is damaged: it has a queue without a name, or "
                           "two queues with the same name");
    if (st == ST_NO_MEMORY)
        return reader_fail(&l->reader, st,
                           "out of memory: the contents of the journal do not fit");
    if (st == ST_IO)
        return reader_fail(&l->reader, st, "%s", l->bodies->text);
    return ST_OK;
}

enum status
journal_verify(struct journal_bodies *bodies, struct store *store,
               const struct journal_callbacks *callbacks, struct journal_findings *out,
               char error[JOURNAL_ERROR_CAP])
{
    struct inspection l = {.callbacks = callbacks,
                           .store = store,
                           .bodies = bodies,
                           .reader = {.record = replay_record}};
    enum status st = inspect_begin(&l, bodies->bodies.disk, error);

    l.reader.found.now_ms = out->now_ms;
    if (st == ST_OK)
        st = reader_read(&l.reader);
    if (st == ST_OK)
        st = identify_bodies(&l);
    if (st == ST_OK) {
        check_beginning(&l);
        st = end_replay(&l);
    }
    *out = l.reader.found;
    inspect_end(&l);
    return st;
}

static enum status
show_record(void *arg, struct reader *reader, struct record *record)
{
    static const char *const mark_names[] = {[MARK_OPENED] = "OPENED",
                                             [MARK_CHECKPOINT_BEGIN] = "CHECKPOINT_BEGIN",
                                             [MARK_CHECKPOINT_END] = "CHECKPOINT_END",
                                             [MARK_CLOSED] = "CLOSED",
                                             [MARK_FILE_GONE] = "FILE_GONE"};
    struct inspection *l = arg;
    bool mark = record->type == RECORD_MARK;
    bool gone = mark && record->mark.what == MARK_FILE_GONE;
    struct journal_entry entry = {.lsn = reader->next_lsn,
                                  .type = record_type_name(record->type),
                                  .change = mark ? NULL : &record->change,
                                  .mark = mark ? mark_names[record->mark.what] : NULL,
                                  .since = mark && !gone ? record->mark.since : 0,
                                  .file = gone ? record->mark.since : 0,
                                  .now_ms = record->change.now_ms,
                                  .wall_ahead_ms = reader->found.wall_ahead_ms};

    if (queue_names_update(&l->queue_names, record) != ST_OK)
        return ST_NO_MEMORY;
    if (!mark)
        entry.queue = queue_names_get(&l->queue_names, record->change.tag);
    if (record->type == STORE_CHANGE_MOVE)
        entry.target = queue_names_get(&l->queue_names, record->change.target_tag);
    if (entry.lsn < l->from || l->callbacks->entry == NULL)
        return ST_OK;
    return l->callbacks->entry(l->callbacks->arg, &entry) ? ST_OK : ST_AGAIN;
}

enum status
journal_show(struct disk *disk, bool live, uint64_t from,
             const struct journal_callbacks *callbacks, struct journal_findings *out,
             char error[JOURNAL_ERROR_CAP])
{
    struct inspection l = {.callbacks = callbacks,
                           .from = from,
                           .reader = {.record = show_record, .live = live}};
    enum status st = inspect_begin(&l, disk, error);

    if (st == ST_OK)
        st = reader_read(&l.reader);
    *out = l.reader.found;
    inspect_end(&l);
    return st == ST_AGAIN ? ST_OK : st;
}

/* ------------------------------------------------------------------ salvage */

/*
 * A salvage reads the journal twice: first the names of all queues, which may come late,
 * then the records. It copies them as they are, except marks of checkpoints, whose LSNs
 * mean nothing in the copy. The copy begins with LSN 1, so it needs no checkpoint to be
 * whole. It has no body files: the messages of a RUN become STATE records.
 */
enum {
    FLUSH_AT = 1 << 20 /* bytes of a frame of the copy, unless it has one record */
};

/* Reports a run of records without a queue as damage. */
static void
report_unplaced_run(struct inspection *l)
{
    const struct journal_damage damage = {
        .name = l->reader.name,
        .offset = l->reader.now.end,
        .what = "has records of a queue, but the name of the queue is lost",
        .from = l->unplaced_from,
        .to = l->unplaced_from + l->unplaced - 1};

    if (l->unplaced == 0)
        return;
    l->reader.found.damages++;
    l->reader.found.lost += l->unplaced;
    report_damage(l, &damage);
    l->unplaced = 0;
}

static enum status
write_fails(struct inspection *l, int error)
{
    char text[ERRNO_TEXT_CAP];

    return reader_fail(&l->reader, ST_IO, "claimd cannot write the copy: %s",
                       disk_error_text(error, text));
}

static enum status
flush_frame(struct inspection *l)
{
    size_t size = FRAME_HEAD_BYTES + l->next.length;
    int error = 0;

    if (l->next.count == 0)
        return ST_OK;
    if (!segments_fits(&l->to, size))
        error = segments_begin(&l->to, l->next.first_lsn, l->next.time_ms);
    if (error == 0 && !segments_fits(&l->to, size))
        error = EFBIG;
    if (error == 0) {
        frame_seal(l->frame, &l->next, l->to.nonce);
        error = segments_write(&l->to, l->frame, size);
    }
    l->next.first_lsn += l->next.count;
    l->next.count = l->next.length = 0;
    return error == 0 ? ST_OK : write_fails(l, error);
}

static enum status
put_record(struct inspection *l, const void *record, size_t size, int64_t now_ms)
{
    size_t most = l->to.segment_bytes - SEGMENT_HEAD_BYTES;
    enum status st = ST_OK;

    if (most > FLUSH_AT)
        most = FLUSH_AT;
    if (l->next.count > 0 && FRAME_HEAD_BYTES + l->next.length + size > most)
        st = flush_frame(l);
    if (st != ST_OK)
        return st;
    memcpy(l->frame + FRAME_HEAD_BYTES + l->next.length, record, size);
    l->next.length += (uint32_t)size;
    l->next.count++;
    if (l->next.time_ms < now_ms)
        l->next.time_ms = now_ms;
    l->next.wall_ahead_ms = l->reader.found.wall_ahead_ms;
    return ST_OK;
}

/* A mark that says only which numbers were used. */
static enum status
put_mark(struct inspection *l, const struct record *record)
{
    struct mark mark = {.what = MARK_OPENED, .used = record->mark.used};
    uint8_t *bytes = malloc(record_bound(0, 0));
    enum status st;

    if (bytes == NULL)
        return ST_NO_MEMORY;
    st = put_record(l, bytes, record_write_mark(bytes, &mark, record->change.now_ms),
                    record->change.now_ms);
    free(bytes);
    return st;
}

static enum status
learn_names(void *arg, struct reader *reader, struct record *record)
{
    struct inspection *l = arg;
    enum status st = note_file_gone(l, record);

    (void)reader;
    return st == ST_OK ? queue_names_update(&l->queue_names, record) : st;
}

/* The last run of a block of numbers that the log has named. */
struct saved_run {
    struct hashnode node; /* in inspection.runs */
    uint32_t tag;         /* of its queue */
    uint64_t first;
    struct store_place place;
};

struct run_key {
    uint32_t tag;
    uint64_t first;
};

static bool
is_run(const struct hashnode *node, const void *key)
{
    const struct saved_run *run = container_of(node, struct saved_run, node);
    const struct run_key *wanted = key;

    return run->tag == wanted->tag && run->first == wanted->first;
}

/* Notes where the messages of a run are. *repeated: that is known already. */
static enum status
note_run(struct inspection *l, const struct store_change *change, bool *repeated)
{
    const struct store_run_record *record = change->run;
    const struct run_key key = {change->tag, record->first};
    const uint64_t hash = hash_mix(key.first + hash_mix(key.tag));
    struct hashnode *node = hashmap_find(&l->runs, hash, is_run, &key);
    struct saved_run *run;

    *repeated = false;
    if (node != NULL) {
        run = container_of(node, struct saved_run, node);
        *repeated = memcmp(&run->place, &record->place, sizeof(run->place)) == 0;
        run->place = record->place;
        return ST_OK;
    }
    if (hashmap_reserve(&l->runs, 1) != ST_OK)
        return ST_NO_MEMORY;
    run = mem_alloc(l->queue_names.mem, sizeof(*run));
    if (run == NULL)
        return ST_NO_MEMORY;
    *run = (struct saved_run){.tag = key.tag, .first = key.first, .place = record->place};
    hashmap_insert(&l->runs, &run->node, hash);
    return ST_OK;
}

static void
forget_runs(struct inspection *l)
{
    struct hashnode *node;

    if (l->queue_names.mem == NULL)
        return;
    while ((node = hashmap_walk(&l->runs, NULL)) != NULL) {
        hashmap_remove(&l->runs, node);
        mem_free(l->queue_names.mem, container_of(node, struct saved_run, node));
    }
    hashmap_fini(&l->runs);
}

static bool
next_of_one(struct store_change *change, struct store_message_record *out)
{
    if (change->at++ > 0)
        return false;
    *out = *(const struct store_message_record *)change->from[0];
    return true;
}

/* Writes a message of a body file to the log of the copy. */
static enum status
put_message(struct inspection *l, const struct store_change *run,
            const struct store_message_record *m)
{
    struct store_change one = {.kind = STORE_CHANGE_STATE,
                               .tag = run->tag,
                               .now_ms = run->now_ms,
                               .count = 1,
                               .next = next_of_one,
                               .from = {m}};
    uint8_t *bytes = malloc(record_bound(1, m->body.len));
    enum status st;

    if (bytes == NULL)
        return reader_fail(&l->reader, ST_NO_MEMORY, "out of memory");
    st = put_record(l, bytes, record_write(bytes, &one), run->now_ms);
    free(bytes);
    return st;
}

/* A RUN while it is copied. */
struct run_copy {
    struct inspection *l;
    const struct store_change *run;
    enum status written; /* else error[] says why */
};

static enum status
put_messages(void *arg, struct store_change *state)
{
    struct run_copy *copy = arg;
    const struct store_run_record *run = copy->run->run;
    struct store_message_record m;

    while (copy->written == ST_OK && state->next(state, &m))
        if (m.number - run->first < 64 && (run->stored >> (m.number - run->first) & 1))
            copy->written = put_message(copy->l, copy->run, &m);
    return copy->written;
}

/* Copies the messages of a run, unless a checkpoint repeats it: then the copy has them,
 * and later changes stay. */
static enum status
put_run(struct inspection *l, const struct named_queue *q,
        const struct store_change *change)
{
    struct run_copy copy = {l, change, ST_OK};
    bool repeated;
    enum status st = note_run(l, change, &repeated);

    if (st != ST_OK || repeated || q->gone)
        return st;
    st = bodies_check_read(l->bodies, &q->where, change->run, put_messages, &copy);
    if (st == ST_IO && copy.written == ST_OK)
        return reader_fail(&l->reader, st, "%s", l->bodies->text);
    return st == ST_NOT_FOUND ? ST_OK : st;
}

/* True if a record makes_queue its queue if there is none: the queue must have a name. */
static bool
makes_queue(const struct record *record, uint32_t *tag)
{
    *tag = record->type == STORE_CHANGE_MOVE ? record->change.target_tag
                                             : record->change.tag;
    switch (record->type) {
    case STORE_CHANGE_META: /* has no effect without the queue */
    case STORE_CHANGE_QUEUE_GONE:
    case STORE_CHANGE_PURGE:
    case STORE_CHANGE_DELETE:
    case STORE_CHANGE_RELEASE:
        return false;
    default:
        return true;
    }
}

static enum status
copy_record(void *arg, struct reader *reader, struct record *record)
{
    struct inspection *l = arg;
    const struct named_queue *q;
    bool makes;
    uint32_t tag;

    if (record->type == RECORD_MARK && record->mark.what != MARK_OPENED)
        return put_mark(l, record);
    makes = record->type != RECORD_MARK && makes_queue(record, &tag);
    q = makes ? named_queue_find(&l->queue_names, tag) : NULL;
    /* Another queue took its name, so this one was deleted. */
    if (q != NULL && q->replaced)
        return ST_OK;
    if (makes && (q == NULL || (!q->named && !q->gone))) {
        if (l->unplaced > 0 && l->reader.next_lsn != l->unplaced_from + l->unplaced)
            report_unplaced_run(l);
        if (l->unplaced++ == 0)
            l->unplaced_from = l->reader.next_lsn;
        return ST_OK;
    }
    if (record->type == STORE_CHANGE_RUN)
        return put_run(l, q, &record->change);
    return put_record(l, reader->record_at, reader->record_size, record->change.now_ms);
}

static enum status
read_again(struct inspection *l,
           enum status (*record)(void *arg, struct reader *r, struct record *record))
{
    char *error = l->reader.error;
    enum status st;

    l->reader = (struct reader){.segments = &l->segments,
                                .test_api = true,
                                .error = error,
                                .record = record,
                                .damage = report_damage,
                                .arg = l};
    l->quiet = record == learn_names;
    st = reader_read(&l->reader);
    report_unplaced_run(l);
    bodies_check_flush(l->bodies);
    reader_fini(&l->reader);
    return st;
}

static enum status
salvage_begin(struct inspection *l)
{
    int error;

    l->segments.read_only = true;
    l->frame = malloc(FRAME_BYTES_MAX);
    if (l->frame == NULL || queue_names_init(&l->queue_names) != ST_OK)
        return reader_fail(&l->reader, ST_NO_MEMORY, "out of memory");
    hashmap_init(&l->runs, l->queue_names.mem);
    if (journal_bodies_open(l->segments.disk, &l->bodies) != ST_OK)
        return reader_fail(&l->reader, ST_NO_MEMORY, "out of memory");
    entropy_init_system(&l->to.entropy);
    if (entropy_reserve(&l->to.entropy, NONCE_BYTES) != ST_OK)
        return reader_fail(&l->reader, ST_UNAVAILABLE,
                           "the system provides no random numbers");
    entropy_take(&l->to.entropy, l->to.journal, NONCE_BYTES);
    error = segments_list(&l->segments);
    return error == 0 ? ST_OK
                      : reader_fail(&l->reader, ST_IO,
                                    "the journal cannot list its directory: %s",
                                    strerror(error));
}

static enum status
salvage_finish(struct inspection *l)
{
    enum status st = flush_frame(l);
    int error;

    if (st != ST_OK || l->to.file == NULL)
        return st;
    error =
        segments_seal(&l->to, l->next.first_lsn, l->next.time_ms, l->next.wall_ahead_ms);
    if (error == 0)
        error = segments_note_durable(&l->to, l->next.first_lsn - 1, 0);
    if (error == 0)
        error = disk_sync_names(l->to.disk);
    return error == 0 ? ST_OK : write_fails(l, error);
}

enum status
journal_salvage(struct disk *from, struct disk *to, uint64_t segment_bytes,
                const struct journal_callbacks *callbacks, struct journal_findings *out,
                char error[JOURNAL_ERROR_CAP])
{
    struct inspection l = {
        .callbacks = callbacks, .next = {.first_lsn = 1}, .reader = {.error = error}};
    enum status st;

    segments_init(&l.segments, from, 0);
    segments_init(&l.to, to, segment_bytes);
    st = salvage_begin(&l);
    if (st == ST_OK)
        st = read_again(&l, learn_names);
    /* A copy of a test API's journal is one, too. It has no body files. */
    l.to.required = l.reader.required & ~(uint64_t)SEGMENT_BODIES;
    if (st == ST_OK)
        st = identify_bodies(&l);
    if (st == ST_OK)
        st = read_again(&l, copy_record);
    if (st == ST_OK)
        st = salvage_finish(&l);
    *out = l.reader.found;
    free(l.frame);
    forget_runs(&l);
    journal_bodies_close(l.bodies);
    segments_fini(&l.to);
    inspect_end(&l);
    return st;
}
